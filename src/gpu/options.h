/*
 * options.h - the options behind the machine's name in a device's spec, as in "cuda:1,memory=64M,block=32".
 */
#ifndef TALLY_GPU_OPTIONS_H
#define TALLY_GPU_OPTIONS_H

#include "tally.h"

#include <stddef.h>
#include <stdint.h>

/* The options of a device's spec; one that it does not name is 0. */
struct gpu_options {
    size_t index;    /* the device's number */
    uint64_t memory; /* bytes that it is to use at most */
    unsigned block;  /* threads of a block */
    enum { DOUBLES_SLOW = 1, DOUBLES_FAST } doubles;
};

/* Parses options. Returns TALLY_EDEVICE if one is unknown; `machine` is the machine's name for that message. */
tally_status gpu_parse_options(const char *options, const char *machine, struct gpu_options *out);

#endif
