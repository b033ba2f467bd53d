/*
 * own_findings.h - what trials of a student's kernel have found: faults, and wrong results that no fault explains.
 */
#ifndef TALLY_CLI_OWN_FINDINGS_H
#define TALLY_CLI_OWN_FINDINGS_H

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
    /* "data", "block", "second launch", "order of blocks", "operator", "lengths", "grid", "overflow" */
    const char *kind;
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
    struct own_host host; /* for the trials of lengths */
    struct own_tried tried[OWN_LENGTHS_MAX];
    size_t tried_count;
    struct own_seen_fault faults[OWN_FAULTS_MAX];
    /* length_faults: those of the trials of lengths, with OWN_DATA */
    size_t fault_count, length_faults;
    struct own_finding findings[OWN_FINDINGS_MAX];
    size_t finding_count;
    struct own_tried_block blocks[OWN_TRIED_BLOCKS_MAX];
    size_t block_count;
    bool data[OWN_DATA_KINDS]; /* that were tried */
    uint64_t far;              /* a length beyond 2^30, of which some blocks were tried; 0: none */
    unsigned rounds; /* of a loop that walks the array, that a warp has done; 0: not tried */
    unsigned launches, orders; /* launches in a row, and orders of blocks, that were tried */
    bool is_slow; /* each block reads the array many times: long lengths are left out */
    bool endless; /* it does not end for one of the lengths */
    int status;   /* OWN_RIGHT or OWN_WRONG */
    char verdict[600], tried_words[700];
    char note[512]; /* a remark that leaves the verdict as it is; "" for none */
};

/* Returns whether a run's fault is an access outside its arrays, or a misaligned one. */
bool own_leaves(const struct own_run *run);
/* Returns whether a run is right, and without a fault. */
bool own_is_good(const struct own_run *run);
/* Adds the fault of a run, with advice on it, unless it is in the list. */
void own_judge_note(struct own_judgement *j, const struct own_run *run);
/* Notes a finding of a kind. */
__attribute__((format(printf, 3, 4))) void own_find(struct own_judgement *j, const char *kind,
                                                    const char *format, ...);
/* Writes "the result is 3, and 4 would be right". */
void own_say_values(const struct own_run *run, char text[160]);

#endif
