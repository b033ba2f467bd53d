/*
 * own_device.h - a student's kernel on CUDA or OpenCL, after the model has seen it.
 *
 * Three processes share a page of memory. The sandboxed one, which has run the kernel on the model, writes a question.
 * The command's own process answers: it starts the third one, which runs the kernel on the device, and kills it if it
 * does not end. The sandboxed process may be under the kernel's control, so that its question is checked before use.
 */
#ifndef TALLY_CLI_OWN_DEVICE_H
#define TALLY_CLI_OWN_DEVICE_H

#include "teach/own_host.h"

enum { OWN_DEVICE_LENGTHS = 24, OWN_DEVICE_TIMES = 4, OWN_DEVICE_SECONDS = 10 };

/* The question of the sandboxed process. */
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

/* The answer of the command's process. */
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
    volatile unsigned long started; /* how many launches have started */
};

/* Makes a page that processes forked from this one share; NULL without memory. */
struct own_page *own_page_make(void);
/* Asks, and waits for the answer. Called in the process that has the kernel on the model. */
void own_device_ask(struct own_page *page);
/* Answers, if something is asked. Called in the command's process. `text` has the kernel's text for each kind of
 * device. */
void own_device_answer(struct own_page *page, const char *device, const struct own_text *text,
                       const struct own_function *kernel, const char *file,
                       const struct own_options *options);

#endif
