/*
 * own.h - a student's kernel: compiled, and run in a process that can do nothing else.
 */
#ifndef TALLY_CLI_OWN_H
#define TALLY_CLI_OWN_H

#include "own_text.h"
#include "tally.h"

#include <stdbool.h>
#include <stdio.h>

enum { OWN_DEFINES_MAX = 16 };

/* What was asked for. */
struct own_options {
    const char *spec; /* mine.cu, or mine.cu:sum where the file has several kernels */
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
    struct own_page *page; /* through which that is asked for (own_device.h) */
    bool is_misused;       /* own_option() has written why */
};

enum { OWN_SECONDS = 10 };
/* The exit status: the verdict. Misuse of the command has STATUS_USAGE, which is the same number as NOT_JUDGED. */
enum { OWN_RIGHT = 0, OWN_WRONG = 1, OWN_NOT_JUDGED = 2 };

/* The options, for getopt_long(), and their values. */
#define OWN_LONG_OPTIONS                                                                           \
    {"kernel", required_argument, NULL, 'k'}, {"grid", required_argument, NULL, 'g'},              \
        {"length", required_argument, NULL, 'l'}, {"seed", required_argument, NULL, 'e'},          \
        {"define", required_argument, NULL, 'D'}, {                                                \
        "shared", required_argument, NULL, 's'                                                     \
    }

#define OWN_OPTIONS_HELP                                                                           \
    "  --kernel FILE     the kernel in this file; FILE:NAME where it has several\n"                \
    "  --grid G          the host launches so many blocks; otherwise as many as n needs\n"         \
    "  --length L        what the host passes for n: a number, or block (its threads)\n"           \
    "  --shared BYTES    shared memory of the launch, for extern __shared__ arrays\n"              \
    "  -D, --define D    the kernel's text is compiled with D, NAME or NAME=VALUE, defined\n"      \
    "  --seed S          of the data and of the orders of blocks that are tried; 1\n"

/* Takes one option by its value above, with optarg; false for one that is not among them. */
bool own_option(struct own_options *o, int option);
/* Whether they go together; false: the line is written. */
bool own_options_fit(const struct own_options *o);

struct own_kernel {
    char file[256]; /* without its folder */
    char name[OWN_NAME];
    unsigned line;
    unsigned template_block;         /* for which its template is compiled; 0: for any */
    unsigned blocks[OWN_BLOCKS_MAX]; /* what the text defines that may be the threads of a block */
    size_t block_count;
    bool is_flat;           /* as in own_text */
    unsigned width, height; /* as in own_text */
    tally_own *own;         /* which holds this kernel alone; in the other process */
    tally_own_kernel is;
    const char *text; /* the file */
    FILE *svg;        /* open for writing, if that was asked for */
};

/* Compiles the kernel and has run() do the rest in a process of its own, which has the kernel, no files but
 * standard output and error, little memory and little time. op and type: what is asked for. Returns what run() does, or
 * OWN_NOT_JUDGED; every failure has its line. */
int own_in_process(const struct own_options *o, tally_op op, tally_type type,
                   int (*run)(void *context, struct own_kernel *kernel), void *context);

#endif
