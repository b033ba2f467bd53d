/*
 * own_kernel.h - a student's kernel: what was asked for, and the kernel that is compiled.
 */
#ifndef TALLY_CLI_OWN_KERNEL_H
#define TALLY_CLI_OWN_KERNEL_H

#include "tally.h"
#include "teach/own_text.h"

#include <stdbool.h>
#include <stdio.h>

enum { OWN_DEFINES_MAX = 16 };

/* The options of `--kernel`, as the command line has them. */
struct own_options {
    const char *spec;      /* mine.cu, or mine.cu:sum where the file has several kernels */
    const char *preferred; /* the kernel where the file has several and spec names none, or NULL */
    uint64_t grid, shared_bytes;
    const char *
        length; /* what the host passes for the number of elements: a number, `block`, or NULL: n */
    unsigned block;   /* the threads of a block that were asked for; 0: none */
    unsigned seconds; /* of the processor's time, at most */
    bool rungs_only;  /* an option was given that is for rungs */
    unsigned width,
        height; /* of a block of two or three dimensions, whose threads `block` are; 0: it has one */
    const char *defines[OWN_DEFINES_MAX]; /* NAME=VALUE or NAME */
    size_t define_count;
    uint64_t seed;         /* of the data and of the order of blocks */
    const char *svg;       /* a file that the kernel's process is to write, or NULL */
    const char *device;    /* to run on after the model; NULL: none */
    struct own_page *page; /* the page through which the device is asked (own_device.h) */
    bool is_misused;       /* own_option() has written why */
};

/* The exit status: the verdict. Misuse of the command has STATUS_USAGE, which is the same number as NOT_JUDGED. */
enum { OWN_RIGHT = 0, OWN_WRONG = 1, OWN_NOT_JUDGED = 2 };

struct own_kernel {
    char file[256]; /* without its folder */
    char name[OWN_NAME];
    unsigned line;
    unsigned template_block;         /* for which its template is compiled; 0: for any */
    unsigned blocks[OWN_BLOCKS_MAX]; /* what the text defines that may be the threads of a block */
    size_t block_count;
    bool counts_blocks;     /* as in own_function */
    bool is_serial;         /* as in own_function */
    bool is_flat;           /* as in own_text */
    unsigned width, height; /* as in own_text */
    tally_own *own;         /* the loaded object, with this kernel only; in its own process */
    tally_own_kernel is;
    const char *text; /* the file */
    FILE *svg;        /* open for writing, if that was asked for */
};

#endif
