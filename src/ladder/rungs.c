/* rungs.c - see rungs.h. */
#include "ladder/rungs.h"

#include <string.h>

#define RUNG(ID, name, kernel, file, INPUT, EXTRA, pairs, shared, idea, waste, mends)              \
    {name, #kernel, file, LADDER_##INPUT, LADDER_##EXTRA, pairs, idea, waste, mends},
static const ladder_rung_info rungs[] = {LADDER_RUNGS(RUNG)};
#undef RUNG

const ladder_rung_info *ladder_rung_of(ladder_rung rung) {
    return (unsigned)rung < LADDER_RUNG_COUNT ? &rungs[rung] : NULL;
}

const ladder_rung_info *ladder_rung_named(const char *name, ladder_rung *out) {
    for (unsigned i = 0; i < LADDER_RUNG_COUNT; i++)
        if (strcmp(rungs[i].name, name) == 0) {
            if (out) *out = (ladder_rung)i;
            return &rungs[i];
        }
    return NULL;
}

unsigned ladder_shared(ladder_rung rung, unsigned B) {
    switch (rung) {
#define RUNG(ID, name, kernel, file, INPUT, EXTRA, pairs, shared, ...)                             \
    case LADDER_##ID:                                                                              \
        return shared;
        LADDER_RUNGS(RUNG)
#undef RUNG
    case LADDER_RUNG_COUNT:
        break;
    }
    (void)B;
    return 0;
}

unsigned ladder_grid(ladder_rung rung, uint64_t n, unsigned block, unsigned factor,
                     unsigned processors) {
    const int pairs = rungs[rung].pairs;
    const uint64_t segment = (uint64_t)2 * block * (pairs == PAIRS_FACTOR ? factor : 1);
    uint64_t grid = n / segment + (n % segment != 0);
    if (pairs == PAIRS_GRID && grid > (uint64_t)4 * processors) grid = (uint64_t)4 * processors;
    if (grid > INT32_MAX) return 0;
    return grid ? (unsigned)grid : 1;
}
