/*
 * ladder_options.c - see ladder_options.h.
 */
#include "teach/ladder_options.h"

#include "bench/bench_data.h"
#include "common/arguments.h"
#include "common/memory.h"
#include "common/message.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { BLOCK_MAX = 1024, COARSEN_MAX = 1 << 20 };

static bool set_n(struct ladder_options *o, const char *text) {
    o->has_n = true;
    o->n = 0;
    return strcmp(text, "0") == 0 || argument_count("-n", text, &o->n);
}

static bool set_block(struct ladder_options *o, const char *text) {
    uint64_t block = 0;
    unsigned size[3] = {0, 1, 1};
    char rest;
    const int sizes = sscanf(text, "%4ux%4ux%4u%c", &size[0], &size[1], &size[2], &rest);
    const bool is_shape = strchr(text, 'x') && sizes >= 2 && sizes <= 3;
    o->width = o->height = 0;
    if (is_shape) {
        block = (uint64_t)size[0] * size[1] * size[2];
        o->width = size[0];
        o->height = size[1];
    } else if (!argument_count("--block", text, &block)) {
        return false;
    }
    if (block > BLOCK_MAX || block < 1)
        return misused("--block takes a power of two from 1 to %d; '%s' is none", BLOCK_MAX, text),
               false;
    o->run.block = (unsigned)block;
    return true;
}

bool ladder_block_fits(const struct ladder_options *o) {
    const unsigned block = o->run.block;
    if (!o->width && !(block & (block - 1))) return true;
    return misused("--block takes a power of two from 1 to %d; '%u' is none", BLOCK_MAX, block),
           false;
}

static bool set_coarsen(struct ladder_options *o, const char *text) {
    uint64_t coarsen;
    if (!argument_count("--coarsen", text, &coarsen)) return false;
    if (coarsen > COARSEN_MAX)
        return misused("--coarsen takes a factor of at most %d", COARSEN_MAX), false;
    o->run.coarsen = (unsigned)coarsen;
    return true;
}

/* Returns whether the library has understood an option's word. If not, writes the library's error
 * line. */
static bool understood(const char *option, tally_status status) {
    if (status == TALLY_OK) return true;
    return misused("%s: %s", option, tally_error()), false;
}

bool ladder_option(struct ladder_options *o, int option) {
    switch (option) {
    case 'n':
        return set_n(o, optarg);
    case 'o':
        return understood("--op", tally_op_parse(optarg, &o->run.op));
    case 'd':
        return argument_type("--dtype", optarg, &o->run.type);
    case 'b':
        return set_block(o, optarg);
    case 'c':
        return set_coarsen(o, optarg);
    case 'f':
        return understood("--finish", tally_finish_parse(optarg, &o->run.finish));
    case 'j':
        o->as_json = true;
        return true;
    default:
        o->help = true;
        return true;
    }
}

bool ladder_fill(struct ladder_options *o) {
    const uint64_t free = memory_available();
    uint64_t size;
    void *x = NULL;
    if (__builtin_mul_overflow(o->n, tally_type_size(o->run.type), &size) || size > free / 2 ||
        (size > 0 && !(x = memory_get((size_t)size))))
        return failed("not enough memory for %" PRIu64 " %s numbers: %.2f GB are free; "
                      "choose a smaller -n",
                      o->n, tally_type_name(o->run.type), (double)free * 1e-9),
               false;
    o->bytes = (size_t)size;
    o->run.x = x;
    o->run.n = (size_t)o->n;
    bench_data_fill(o->digits ? BENCH_DIGITS : BENCH_UNIFORM, o->run.op, o->run.type, x, o->run.n);
    return true;
}

void ladder_release(struct ladder_options *o) {
    memory_release((void *)o->run.x, o->bytes);
}
