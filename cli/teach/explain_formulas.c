/*
 * explain_formulas.c - closed formulas from the course texts, beside what the model counted.
 *
 * The counts come from running the kernels; the formulas are evaluated here and nowhere else. Where
 * the two differ, the steps tell in which iteration the formula goes astray.
 */
#include "teach/explain.h"

#include "common/message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Slots of the interleaved rungs that spread their threads, and of contiguous ----
 *
 * For one block of N/2 threads, N/64 warps, the text adds up the warps that are at work in each
 * iteration, times 32. Growing strides: all warps in the first five iterations, for strides 1 to 16,
 * then half of them in each. Shrinking strides: half of the warps fall idle in each iteration until
 * one is left, which stays for five more. */

static const char growing[] = "(5 * N/64 + N/128 + N/256 + ... + 1) * 32";
static const char shrinking[] = "(N/64 + N/128 + ... + 1 + 5 * 1) * 32";

/* Returns how many warps are at work in iteration i, from 0, by the formula for a block of `warps` warps; 0 past its
 * last iteration. */
static unsigned formula_warps(bool grows, unsigned warps, unsigned i) {
    if (grows) return i < 5 ? warps : i - 4 < 32 ? warps >> (i - 4) : 0;
    unsigned halvings = 0;
    while (warps >> halvings > 1)
        halvings++;
    return i <= halvings ? warps >> i : i <= halvings + 5 ? 1 : 0;
}

static uint64_t formula_slots(bool grows, unsigned warps) {
    uint64_t slots = 0;
    for (unsigned i = 0; formula_warps(grows, warps, i) > 0; i++)
        slots += 32 * formula_warps(grows, warps, i);
    return slots;
}

/* Returns the block's number of iterations: steps in which some lane applies the operator. */
static unsigned iterations(const struct seen_launch *l) {
    unsigned count = 0;
    while (count < l->first_count && sum_step(&l->first[count].step).active > 0)
        count++;
    return count;
}

/* Returns the first iteration in which the block has other warps at work than the formula says, or -1. */
static int first_difference(const struct seen_launch *l, bool grows, unsigned warps) {
    const unsigned count = iterations(l);
    for (unsigned i = 0; i < count; i++)
        if (sum_step(&l->first[i].step).active != formula_warps(grows, warps, i)) return (int)i;
    return formula_warps(grows, warps, count) ? (int)count : -1;
}

static void explain_difference(const struct seen_launch *l, bool grows, unsigned warps,
                               struct formula *f) {
    const int i = first_difference(l, grows, warps);
    if (i < 0 || i == (int)iterations(l)) {
        snprintf(f->difference, sizeof f->difference,
                 i < 0 ? "The formula is right in each of the %u iterations."
                       : "The formula has iterations that did not take place: there were %u.",
                 iterations(l));
        return;
    }
    const struct step_sums sums = sum_step(&l->first[i].step);
    snprintf(f->difference, sizeof f->difference,
             "The formula miscounts iteration %d, with stride %" PRIu64
             ": warps at work there are %u by the formula and %u as counted, with %u lane%s each. "
             "It lets all warps work for five iterations; the strides 1, 2, 4, 8, 16 and 32, at "
             "each of which every warp still has a lane at work, are six. So it has one of the %u "
             "iterations too few, and misses one turn of the block's %u warp%s: %u slots a block.",
             i + 1, l->first[i].step.stride, formula_warps(grows, warps, (unsigned)i), sums.active,
             sums.most_lanes, sums.most_lanes == 1 ? "" : "s", iterations(l), warps,
             warps == 1 ? "" : "s", 32 * warps);
}

static int slots_formula(const struct explanation *e, bool grows, struct formula *f,
                         char why[256]) {
    const unsigned block = e->options.run.block, warps = block / 32;
    const struct seen_launch *l = &e->launches[0];
    if (block < 32 || e->options.n == 0 || e->options.n % (2 * block) != 0) {
        snprintf(
            why, 256,
            "A text has a closed formula for the slots of %s. It holds for whole warps and full "
            "blocks: a block of 32 threads or more, and an -n that is a multiple of twice the "
            "block.",
            e->rung->name);
        return 0;
    }
    *f = (struct formula){.what = "slots", .formula = grows ? growing : shrinking};
    f->value = (double)(formula_slots(grows, warps) * l->blocks);
    f->counted = (double)l->slots;
    f->value_efficiency = (double)l->operations / f->value;
    f->counted_efficiency = (double)l->operations / f->counted;
    explain_difference(l, grows, warps, f);
    return 1;
}

/* ---- What coarsening saves ----
 *
 * N elements are a block's share without coarsening. A device with room for one block in C runs C of
 * them one after another: C log N rounds (the text calls them steps: applications of the operator one
 * after another), and as many barriers. A block coarsened by C does their work in 2 (C - 1) rounds of
 * each thread by itself and log N of its tree, with log N barriers. */

static unsigned log2_of(uint64_t n) {
    unsigned log = 0;
    while (n >>= 1)
        log++;
    return log;
}

/* Runs a rung over the elements of one coarsened block. */
static bool count_block(const struct explanation *e, const char *rung, tally_ladder_counts *out) {
    struct ladder_options options = e->options;
    tally_ladder_row row;
    options.run.finish = TALLY_FINISH_HOST; /* one launch */
    options.n = (uint64_t)2 * e->options.run.block * e->options.run.coarsen;
    if (!ladder_fill(&options)) return false;
    bool counted = tally_ladder_explain(rung, &options.run, NULL, NULL, &row) == TALLY_OK;
    if (!counted) failed("%s", tally_error());
    ladder_release(&options);
    *out = row.counts;
    return counted;
}

static struct formula compared(const char *what, const char *formula, uint64_t value,
                               uint64_t counted) {
    struct formula f = {
        .what = what, .formula = formula, .value = (double)value, .counted = (double)counted};
    snprintf(f.difference, sizeof f.difference,
             value == counted ? "The formula is right." : "The formula is not what was counted.");
    return f;
}

static int coarsening_formulas(const struct explanation *e, struct formula out[FORMULAS_MAX]) {
    const uint64_t factor = e->options.run.coarsen;
    const uint64_t log_n = log2_of((uint64_t)2 * e->options.run.block);
    tally_ladder_counts serial, coarse;
    if (!count_block(e, "shared", &serial) || !count_block(e, "coarsened", &coarse)) return -1;
    out[0] = compared("rounds of C blocks of shared, one after another", "C log N", factor * log_n,
                      serial.all_rounds);
    out[1] = compared("their barriers", "C log N", factor * log_n, serial.all_barriers);
    out[2] = compared("rounds of one block coarsened by C", "2 (C - 1) + log N",
                      2 * (factor - 1) + log_n, coarse.all_rounds);
    out[3] = compared("its barriers", "log N", log_n, coarse.all_barriers);
    return 4;
}

int explain_formulas(const struct explanation *e, struct formula out[FORMULAS_MAX], char why[256]) {
    *why = '\0';
    if (strcmp(e->rung->name, "interleaved-modulo") == 0 ||
        strcmp(e->rung->name, "interleaved-mask") == 0)
        return slots_formula(e, true, out, why);
    if (strcmp(e->rung->name, "contiguous") == 0) return slots_formula(e, false, out, why);
    if (strcmp(e->rung->name, "coarsened") == 0) return coarsening_formulas(e, out);
    return 0;
}
