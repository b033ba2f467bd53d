/*
 * names.c - the names on the ladder: the kernels of kernels/ladder/rungs.h, with the CPU's loop below them and the
 * production reduction above.
 */
#include "ladder/names.h"

#include "base/status.h"
#include "ladder/arithmetic.h"

#include <string.h>

static const tally_rung rungs[] = {
    {"sequential", "one CPU thread adds one element after another",
     "each addition waits for the one before, and all other cores and lanes are idle",
     "interleaved-modulo", 0, 0},
#define RUNG(ID, name, kernel, file, INPUT, EXTRA, pairs, shared, idea, waste, mends)              \
    {name, idea, waste, mends, 1, (pairs) == PAIRS_GRID},
    LADDER_RUNGS(RUNG)
#undef RUNG
        {"tally", "the device's production reduction: the same bits everywhere", "", "", 0, 0},
};
enum { RUNGS = sizeof rungs / sizeof *rungs };
_Static_assert((int)RUNGS == (int)RUNG_TALLY + 1, "names.h numbers these");

const tally_rung *tally_ladder_rung(size_t i) {
    return i < RUNGS ? &rungs[i] : NULL;
}

tally_status rung_find(const char *name, size_t *out) {
    if (!name) return fail(TALLY_EINVAL, "a rung's name is NULL");
    for (size_t i = 0; i < RUNGS; i++)
        if (strcmp(rungs[i].name, name) == 0) {
            *out = i;
            return TALLY_OK;
        }
    char list[400] = "";
    for (size_t i = 0; i < RUNGS; i++) {
        strcat(list, " ");
        strcat(list, rungs[i].name);
    }
    return fail(TALLY_EINVAL, "'%.60s' is no rung of the ladder; the rungs are%s", name, list);
}

/* ---- The three ways to finish ---- */

static const char *const finishes[] = {[TALLY_FINISH_RELAUNCH] = "relaunch",
                                       [TALLY_FINISH_ATOMIC] = "atomic",
                                       [TALLY_FINISH_HOST] = "host"};
enum { FINISHES = sizeof finishes / sizeof *finishes };

const char *tally_finish_name(tally_finish finish) {
    return (size_t)finish < FINISHES ? finishes[finish] : NULL;
}

tally_status tally_finish_parse(const char *name, tally_finish *out) {
    if (!name || !out) return fail(TALLY_EINVAL, "tally_finish_parse: an argument is NULL");
    for (size_t i = 0; i < FINISHES; i++)
        if (strcmp(finishes[i], name) == 0) {
            *out = (tally_finish)i;
            return TALLY_OK;
        }
    return fail(TALLY_EINVAL, "'%.40s' is no way to finish; the ways are relaunch, atomic and host",
                name);
}

/* ---- Options ---- */

static tally_status check_block(const tally_ladder_options *o) {
    if (o->block > 1024 || (o->block & (o->block - 1)))
        return fail(TALLY_EINVAL,
                    "a block of %u threads: the ladder's kernels take a power of two "
                    "from 1 to 1024",
                    o->block);
    if (o->coarsen > 1 << 20)
        return fail(TALLY_EINVAL, "a coarsening factor of %u: it may be 1 to 2^20", o->coarsen);
    return TALLY_OK;
}

tally_status options_fill(const tally_ladder_options *options, tally_ladder_options *out) {
    if (!options || (!options->only && options->only_count))
        return fail(TALLY_EINVAL, "the ladder: an argument is NULL");
    if (!tally_op_name(options->op) || !tally_type_name(options->type) ||
        !tally_finish_name(options->finish))
        return fail(TALLY_EINVAL, "the ladder: no such operator, type or finish");
    if (!ladder_arithmetic_of(options->type, options->op))
        return fail(TALLY_EUNSUPPORTED, "no rung of the ladder is for %s",
                    tally_op_name(options->op));
    if (options->n > SIZE_MAX / 16)
        return fail(TALLY_EINVAL, "the ladder: %zu elements are too many", options->n);
    *out = *options;
    if (!out->block) out->block = 256;
    if (!out->coarsen) out->coarsen = 4;
    return check_block(out);
}
