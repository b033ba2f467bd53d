/*
 * ladder_texts.c - see ladder_texts.h.
 */
#include "teach/ladder_texts.h"

#include <stddef.h>
#include <string.h>

static const struct ladder_published table[] = {
    {"sequential", 504, 21.241},
    {"interleaved-modulo", 0, 3.796},
    {"interleaved-index", 1911, 0},
    {"contiguous", 1978, 2.752},
    {"shared", 0, 2.15},
    {"coarsened", 0, 0.677},
};

const char ladder_published_notes[] =
    "The texts' figures are their authors', on GPUs of theirs. MFLOPS: one text, n = 2^30 floats: "
    "CPU "
    "504,\n"
    "initial approach 1911 (+1407), global memory coalescing 1978 (+67). ms: another text, kernels "
    "only, one\n"
    "array whose length it does not name; about 21 ms for the GPU with copies; its coarsened "
    "kernel "
    "(by 4)\n"
    "reads but half of the data.\n";

const struct ladder_published *ladder_published(const char *rung) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strcmp(table[i].rung, rung) == 0) return &table[i];
    return NULL;
}
