/*
 * own_host.h - the host program that a student's kernel is taken to have, and what it gets from the kernel.
 *
 * A kernel alone does not say how it is launched. What can be seen is which elements its blocks touch in a
 * trial launch, and from that the launch follows as the texts have it.
 */
#ifndef TALLY_CLI_OWN_HOST_H
#define TALLY_CLI_OWN_HOST_H

#include "own.h"

enum own_form {
    OWN_ONE_BLOCK, /* every block touches the same elements: there is to be one */
    OWN_SEGMENTS,  /* each block has a segment of its own */
    OWN_WHOLE_GRID /* the blocks' elements lie between each other's: the grid walks the array */
};

struct own_host {
    enum own_form form;
    unsigned block;      /* its threads; one block: for as many elements as it takes */
    unsigned per_thread; /* one block: n / per_thread threads; 0: always `block` */
    uint64_t segment;
    bool combines;              /* the last block makes the result of what the others leave */
    unsigned shared_per_thread; /* elements of an array without a size, a thread */
};

enum { OWN_DATA, OWN_ONES, OWN_UNIT }; /* elements: numbers; ones; one 1 among zeros */

struct own_run {
    uint64_t n;
    unsigned grid, block;
    uint64_t length; /* passed for the number of elements */
    size_t shared_bytes;
    bool is_right;          /* the value is, whatever faults there are */
    double value, expected; /* as far as a double shows them */
    double seconds;         /* of the launch, on a device that has a time */
    tally_own_result result;
};

struct own_session {
    const struct own_kernel *kernel;
    const struct own_options *options;
    tally_op op;
    unsigned block;             /* that was asked for; 0: none */
    bool accesses;              /* on_step() is told of them */
    tally_own_program *program; /* on a device that has a time; NULL: on the model */
    unsigned repeats;           /* there */
};

/* Finds the launch that suits the kernel. false: its line is written. */
bool own_host_find(const struct own_session *s, struct own_host *out);
/* The same for blocks of `block` threads; false, silently, where the kernel does not run so. */
bool own_host_at(const struct own_session *s, unsigned block, const struct own_host *like,
                 struct own_host *out);
/* The most elements that it can launch the kernel for. */
uint64_t own_host_most(const struct own_host *h);
/* Runs it for n elements, of which there is at least one. `unit`: for OWN_UNIT, which element is the 1. */
bool own_host_run(const struct own_session *s, const struct own_host *h, uint64_t n, int data,
                  uint64_t unit, void (*on_step)(void *context, const tally_ladder_step *step),
                  void *context, struct own_run *out);
/* The number of a run as a value of the kernel's type. */
void own_host_value(const struct own_session *s, double number, tally_value *out);
/* The elements of OWN_DATA, which the caller frees; NULL without memory. */
void *own_host_elements(const struct own_session *s, uint64_t n);
/* Writes how the host launches it, in words. */
void own_host_words(const struct own_session *s, const struct own_host *h, const struct own_run *r,
                    char *text, size_t room);

#endif
