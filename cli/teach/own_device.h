/*
 * own_device.h - a student's kernel on CUDA or OpenCL, after the model has seen it.
 *
 * Three processes: the one that is shut and has the kernel on the model asks, through a page of memory that all
 * share; the command's own looks on, and ends what does not end; and one runs the kernel on the device. What
 * the first has written is not to be trusted.
 */
#ifndef TALLY_CLI_OWN_DEVICE_H
#define TALLY_CLI_OWN_DEVICE_H

#include "teach/own_host.h"

enum { OWN_DEVICE_LENGTHS = 24, OWN_DEVICE_TIMES = 4, OWN_DEVICE_SECONDS = 10 };

/* What is asked. */
struct own_question {
    struct own_host host;
    struct own_host timed; /* for the times: perhaps in other blocks */
    tally_own_kernel is;   /* without its names */
    bool has_output, has_length;
    tally_op op;
    unsigned block;
    bool leaves_arrays; /* on the model */
    bool is_endless;
    bool whole; /* only whole segments are asked for, as it leaves its arrays otherwise */
    uint64_t lengths[OWN_DEVICE_LENGTHS],
        times[OWN_DEVICE_TIMES]; /* numbers of elements; 0 ends a list */
    char nearest[32];            /* the rung to be timed beside it */
};

struct own_length {
    bool done, right;
    double value, expected;
};

struct own_time {
    bool done, right;
    double seconds, roof, nearest,
        tally; /* NaN: not measured. The roof is that of the rungs' run. */
};

/* What is answered. */
struct own_answer {
    char device[64], name[128];
    char why[700]; /* why it was not run, or not to the end; "" */
    uint64_t fault_n;
    char fault[600]; /* what the device has found */
    struct own_length lengths[OWN_DEVICE_LENGTHS];
    struct own_time times[OWN_DEVICE_TIMES];
};

struct own_page {
    struct own_question question;
    struct own_answer answer;
    volatile int asked, answered;
    volatile uint64_t now;          /* the n that runs, or 0 */
    volatile unsigned long started; /* so many launches */
};

/* A page for processes that are forked from this one; NULL without memory. */
struct own_page *own_page_make(void);
/* In the process that has the kernel on the model: asks, and waits for the answer. */
void own_device_ask(struct own_page *page);
/* In the command's process: answers, if something is asked. `text` is for that device. */
void own_device_answer(struct own_page *page, const char *device, const struct own_text *text,
                       const struct own_function *kernel, const char *file,
                       const struct own_options *options);

#endif
