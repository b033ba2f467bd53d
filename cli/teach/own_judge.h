/*
 * own_judge.h - the verdict on a student's kernel, and the trials that it rests on.
 */
#ifndef TALLY_CLI_OWN_JUDGE_H
#define TALLY_CLI_OWN_JUDGE_H

#include "teach/own_advice.h"

enum { OWN_LENGTHS_MAX = 96, OWN_FAULTS_MAX = 6, OWN_FINDINGS_MAX = 8, OWN_TRIED_BLOCKS_MAX = 12 };

struct own_tried {
    uint64_t n;
    bool right; /* and without a fault */
    bool complete;
    bool leaves; /* its arrays */
    double value, expected;
};

struct own_seen_fault {
    uint64_t n;
    unsigned block;
    tally_own_fault kind;
    unsigned line, other_line;
    char sentence[512];
    struct own_advice advice;
};

/* A result that is wrong, without a fault that says why. */
struct own_finding {
    const char *
        kind; /* "data", "block", "second launch", "order", "operator", "lengths", "grid", "overflow" */
    char sentence[512];
    struct own_advice advice;
};

struct own_tried_block {
    unsigned threads;
    bool runs;          /* it can be launched so */
    bool right;         /* for the lengths that it is right for with the judgement's own block */
    bool leaves_shared; /* its shared arrays are too short for so many threads */
};

struct own_judgement {
    const struct own_session *session;
    struct own_host host; /* of the lengths */
    struct own_tried tried[OWN_LENGTHS_MAX];
    size_t tried_count;
    struct own_seen_fault faults[OWN_FAULTS_MAX];
    size_t fault_count,
        length_faults; /* all; those that a run for a length with small whole numbers has */
    struct own_finding findings[OWN_FINDINGS_MAX];
    size_t finding_count;
    struct own_tried_block blocks[OWN_TRIED_BLOCKS_MAX];
    size_t block_count;
    bool data[OWN_DATA_KINDS]; /* that were tried */
    uint64_t far;              /* a length beyond 2^30, of which some blocks were tried; 0: none */
    unsigned launches, orders; /* that were tried, in a row; of blocks */
    bool is_slow; /* each block reads the array many times: long lengths are left out */
    bool endless; /* it does not end for one of the lengths */
    int status;   /* OWN_RIGHT or OWN_WRONG */
    char verdict[600], tried_words[700];
    char note[512]; /* what the standard asks for and hardware does not; "" for nothing */
};

/* Notes the fault of a run, with what there is to say of it, unless it is known. */
void own_judge_note(struct own_judgement *j, const struct own_run *run);
bool own_leaves(const struct own_run *run);
/* Runs the kernel for many lengths, blocks, data, orders and launches, among them `n` elements, and judges it. false: no
 * run succeeded, and its line is written. */
bool own_judge(struct own_judgement *j, uint64_t n);

#endif
