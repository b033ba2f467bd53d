/*
 * own_host.h - the host program that a student's kernel is taken to have, and the results of its launches.
 *
 * A kernel alone does not say how it is launched. A trial launch shows which elements its blocks touch. The launch is
 * then the one that course texts have for such a kernel.
 */
#ifndef TALLY_CLI_OWN_HOST_H
#define TALLY_CLI_OWN_HOST_H

#include "teach/own_elements.h"

enum own_form {
    OWN_ONE_BLOCK, /* every block touches the same elements: there is to be one */
    OWN_SEGMENTS,  /* each block has a segment of its own */
    OWN_WHOLE_GRID /* the blocks' elements lie between each other's: the grid walks the array */
};

struct own_host {
    enum own_form form;
    unsigned block;      /* threads of a block, unless per_thread gives them */
    unsigned per_thread; /* one block: n / per_thread threads; 0: always `block` */
    uint64_t segment;
    unsigned grid;              /* blocks, where that does not follow from n; 0: it does */
    bool must_be_one;           /* several blocks make it wrong, and one block right */
    bool is_serial;             /* one thread: more make it wrong */
    bool seems_endless;         /* a short trial did not end */
    bool combines;              /* the last block makes the result of what the others leave */
    unsigned shared_per_thread; /* elements of an array without a size, for each thread */
};

struct own_run {
    uint64_t n;
    unsigned grid, block;
    uint64_t length; /* passed for the number of elements */
    size_t shared_bytes;
    bool is_right;          /* the value is, whatever faults there are */
    double value, expected; /* as far as a double shows them */
    double bound;           /* largest error of a right value; 0: it is exact */
    double least, greatest; /* elements */
    unsigned looks; /* short arrays: bit k is set if operator k of own_looks has this value */
    double seconds; /* of the launch, on a device that has a time */
    tally_own_result result;
};

/* Finds the launch that suits the kernel. false: its line is written. */
bool own_host_find(const struct own_session *s, struct own_host *out);
/* Finds the launch with blocks of `block` threads that has the form of `like`. Returns false, and writes no line, where
 * the kernel does not run so. */
bool own_host_at(const struct own_session *s, unsigned block, const struct own_host *like,
                 struct own_host *out);
/* Returns the most elements that the host can launch the kernel for. */
uint64_t own_host_most(const struct own_host *h);
/* Runs the kernel for n elements, at least one. `unit`: for OWN_UNIT, which element is the 1. */
bool own_host_run(const struct own_session *s, const struct own_host *h, uint64_t n, int data,
                  uint64_t unit, void (*on_step)(void *context, const tally_ladder_step *step),
                  void *context, struct own_run *out);
/* Runs some blocks of a launch for n elements, which may be more than memory holds: the first, the last, and some
 * between. Each of them must own its segment or, where the grid walks the array, a segment in each round. `grid` is the
 * number of blocks where the grid walks. Returns false, and writes no line, if this cannot be tried. */
bool own_host_far(const struct own_session *s, const struct own_host *h, uint64_t n, unsigned grid,
                  struct own_run *out);
/* Runs one warp of some blocks of a launch for n elements, and finds out whether it reads as many elements as its
 * lanes' share. The kernel is told that blocks have `told` threads, and that the warp's threads have the numbers from
 * `first` on. A lane whose number is `told` or more starts where thread (number % told) comes in a later round. n and
 * first are multiples of grid * told. The result is not checked. Returns false, and writes no line, if this cannot be
 * tried. */
bool own_host_shares(const struct own_session *s, uint64_t n, unsigned grid, unsigned told,
                     unsigned first, struct own_run *out);
/* Writes how the host launches it, in words. */
void own_host_words(const struct own_session *s, const struct own_host *h, const struct own_run *r,
                    char *text, size_t room);

#endif
