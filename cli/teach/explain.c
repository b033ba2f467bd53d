/*
 * explain.c - see explain.h: the steps of a kernel on the model, as text and as JSON.
 *
 * A step is what happens between two barriers. Its picture has one character for each warp, which
 * shows how many of the warp's lanes are at work.
 */
#include "teach/explain.h"

#include "common/json.h"
#include "common/message.h"
#include "teach/ladder_counts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WARP = 32, LAUNCHES_SHOWN = 3 };

/* ---- Watching ---- */

static unsigned bits_set(uint32_t mask) {
    return (unsigned)__builtin_popcount(mask);
}

struct step_sums sum_step(const tally_ladder_step *s) {
    struct step_sums sums = {.fewest_lanes = WARP};
    for (unsigned w = 0; w < s->warps; w++) {
        const tally_ladder_warp *warp = &s->warp[w];
        const unsigned lanes = bits_set(warp->lanes);
        sums.operations += warp->operations;
        sums.issued += warp->issued;
        if (warp->issued / WARP > sums.rounds) sums.rounds = warp->issued / WARP;
        sums.divergent += warp->divergent;
        sums.lines += warp->transactions;
        sums.fewest_lines += warp->fewest_transactions;
        sums.conflicts += warp->bank_conflicts;
        if (!lanes) continue;
        sums.active++;
        if (lanes < sums.fewest_lanes) sums.fewest_lanes = lanes;
        if (lanes > sums.most_lanes) sums.most_lanes = lanes;
    }
    return sums;
}

/* Returns the array with room for one more than `count` elements; NULL without memory. Its capacity
 * is a power of two. */
static void *grown(void *array, size_t count, size_t size) {
    if (count & (count - 1)) return array;
    return realloc(array, (count ? 2 * count : 1) * size);
}

static bool keep_step(struct seen_step **steps, size_t *count, const tally_ladder_step *step) {
    struct seen_step *more = grown(*steps, *count, sizeof **steps);
    if (!more) return false;
    *steps = more;
    more[*count].step = *step;
    memcpy(more[*count].warps, step->warp, step->warps * sizeof *step->warp);
    more[*count].accesses = NULL;
    if (step->accesses) {
        more[*count].accesses = malloc(step->accesses * sizeof *step->access);
        if (!more[*count].accesses) return false;
        memcpy(more[*count].accesses, step->access, step->accesses * sizeof *step->access);
    }
    ++*count;
    return true;
}

static void drop_steps(struct seen_step **steps, size_t *count) {
    for (size_t i = 0; i < *count; i++)
        free((*steps)[i].accesses);
    free(*steps);
    *steps = NULL;
    *count = 0;
}

static bool keep(struct seen_launch *l, const tally_ladder_step *step, bool all) {
    if (all && !keep_step(&l->all, &l->all_count, step)) return false;
    if (step->block == 0) return keep_step(&l->first, &l->first_count, step);
    if (step->block != l->last_block) drop_steps(&l->last, &l->last_count); /* they come in order */
    l->last_block = step->block;
    return keep_step(&l->last, &l->last_count, step);
}

static struct seen_launch *launch_of(struct explanation *e, unsigned launch) {
    while (e->launch_count <= launch) {
        struct seen_launch *more = grown(e->launches, e->launch_count, sizeof *more);
        if (!more) return NULL;
        e->launches = more;
        more[e->launch_count++] = (struct seen_launch){0};
    }
    return &e->launches[launch];
}

void explain_note_step(void *explanation, const tally_ladder_step *step) {
    struct explanation *e = explanation;
    struct seen_launch *l = launch_of(e, step->launch);
    const struct step_sums sums = sum_step(step);
    if (!l || !keep(l, step, e->options.run.accesses)) {
        e->out_of_memory = true;
        return;
    }
    l->blocks = step->block + 1;
    l->operations += sums.operations;
    l->slots += (uint64_t)WARP * sums.active;
}

/* Sets the pointers in the steps: realloc() may have moved the arrays that they point to. */
static void settle_pointers(struct seen_step *steps, size_t count) {
    for (size_t i = 0; i < count; i++) {
        steps[i].step.warp = steps[i].warps;
        steps[i].step.access = steps[i].accesses;
    }
}

void explain_settle(struct explanation *e) {
    for (size_t i = 0; i < e->launch_count; i++) {
        settle_pointers(e->launches[i].first, e->launches[i].first_count);
        settle_pointers(e->launches[i].last, e->launches[i].last_count);
        settle_pointers(e->launches[i].all, e->launches[i].all_count);
    }
}

/* ---- The picture ---- */

/* Returns the character that shows a warp with these lanes at work. */
static char picture(uint32_t lanes) {
    const unsigned count = bits_set(lanes);
    return count == WARP ? '#' : count >= WARP / 2 ? '+' : count > 1 ? '-' : count ? '1' : '.';
}

static void print_lanes(const struct step_sums *s) {
    char text[32] = "-";
    if (s->active && s->fewest_lanes == s->most_lanes)
        snprintf(text, sizeof text, "%u", s->most_lanes);
    else if (s->active)
        snprintf(text, sizeof text, "%u to %u", s->fewest_lanes, s->most_lanes);
    printf("  %10s", text);
}

static void print_step(const tally_ladder_step *step) {
    const struct step_sums s = sum_step(step);
    char stride[24] = "-";
    if (step->stride) snprintf(stride, sizeof stride, "%" PRIu64, step->stride);
    printf("%4u  %6s  %6u  %5u of %-2u", step->step + 1, stride, s.rounds, s.active, step->warps);
    print_lanes(&s);
    printf("  %5" PRIu64 " (%" PRIu64 ")%*s  %9" PRIu64 "  %9" PRIu64 "  ", s.lines, s.fewest_lines,
           s.fewest_lines < 10 ? 2 : s.fewest_lines < 100, "", s.conflicts, s.divergent);
    for (unsigned w = 0; w < step->warps; w++)
        putchar(picture(step->warp[w].lanes));
    putchar('\n');
}

static void print_steps(const struct seen_step *steps, size_t count) {
    printf(
        "step  stride  rounds  warps at work  lanes each  lines (fewest)  conflicts  divergent  ");
    if (count && steps[0].step.warps > 1)
        printf("warps 0 to %u\n", steps[0].step.warps - 1);
    else
        puts("warp 0");
    for (size_t i = 0; i < count; i++)
        print_step(&steps[i].step);
}

static void print_launch(const struct explanation *e, size_t i) {
    const struct seen_launch *l = &e->launches[i];
    printf("\nLaunch %zu, %" PRIu64 " block%s of %u threads%s:\n", i + 1, l->blocks,
           l->blocks == 1 ? "" : "s", e->options.run.block,
           l->blocks == 1 ? "" : "; block 0 of them");
    print_steps(l->first, l->first_count);
    if (l->last_count > l->first_count) {
        printf("\nThe last block to finish, %u, does more:\n", l->last_block);
        print_steps(l->last, l->last_count);
    }
}

void explain_print_launches(const struct explanation *e) {
    for (size_t i = 0; i < e->launch_count && i < LAUNCHES_SHOWN; i++)
        print_launch(e, i);
    if (e->launch_count > LAUNCHES_SHOWN)
        printf("\n... and %zu launch%s more, alike.\n", e->launch_count - LAUNCHES_SHOWN,
               e->launch_count - LAUNCHES_SHOWN == 1 ? "" : "es");
    printf(
        "\n# all 32 lanes of a warp apply the operator, + 16 and more, - 2 and more, 1 one, "
        ". none.\nstep: what happens between two barriers. rounds: applications of the operator, "
        "one after another.\nlines: of 128 bytes, of global memory, touched by the warps' loads "
        "and stores.\n");
}

/* ---- In words ---- */

void explain_print_totals(const struct explanation *e) {
    const tally_ladder_counts *c = &e->row.counts;
    printf("\nIn all, %u launch%s, %" PRIu64 " block%s:\n", e->row.launches,
           e->row.launches == 1 ? "" : "es", c->blocks, c->blocks == 1 ? "" : "s");
    printf("  of one block%s: steps at work %" PRIu64 ", rounds %" PRIu64 ", barriers %" PRIu64
           "; of all blocks: barriers %" PRIu64 "\n",
           e->row.launches == 1 ? "" : ", added up over launches", c->steps, c->rounds, c->barriers,
           c->all_barriers);
    printf("  operations: useful %" PRIu64 ", applied %" PRIu64 "; slots %" PRIu64
           ", issued %" PRIu64 "; efficiency %.2f\n",
           c->useful, c->operations, c->slots, c->issued, ladder_efficiency(c));
    printf("  transactions %" PRIu64 ", fewest possible %" PRIu64 "; bytes read %" PRIu64
           ", written %" PRIu64 "\n",
           c->transactions, c->fewest_transactions, c->bytes_read, c->bytes_written);
    printf("  bank conflicts %" PRIu64 ", divergent branches %" PRIu64 ", atomics %" PRIu64 "\n",
           c->bank_conflicts, c->divergent, c->atomics);
}

/* ---- JSON ---- */

static struct json_object *json_warp(const tally_ladder_warp *w, unsigned number) {
    struct json_object *object = json_new_object();
    char mask[16];
    snprintf(mask, sizeof mask, "0x%08" PRIx32, w->lanes);
    json_count(object, "warp", number);
    json_count(object, "lanes", bits_set(w->lanes));
    json_text(object, "mask", mask);
    json_count(object, "operations", w->operations);
    json_count(object, "issued", w->issued);
    json_count(object, "divergent", w->divergent);
    json_count(object, "transactions", w->transactions);
    json_count(object, "fewest_transactions", w->fewest_transactions);
    json_count(object, "bank_conflicts", w->bank_conflicts);
    return object;
}

static struct json_object *json_step(const tally_ladder_step *s, bool accesses) {
    const struct step_sums sums = sum_step(s);
    struct json_object *object = json_new_object();
    struct json_object *warps = json_new_list();
    json_count(object, "launch", s->launch);
    json_count(object, "block", s->block);
    json_count(object, "step", s->step + 1);
    json_count(object, "stride", s->stride);
    json_flag(object, "barrier", s->barrier);
    json_count(object, "active_warps", sums.active);
    json_count(object, "rounds", sums.rounds);
    json_count(object, "operations", sums.operations);
    json_count(object, "issued", sums.issued);
    json_count(object, "divergent", sums.divergent);
    json_count(object, "transactions", sums.lines);
    json_count(object, "fewest_transactions", sums.fewest_lines);
    json_count(object, "bank_conflicts", sums.conflicts);
    for (unsigned w = 0; w < s->warps; w++)
        json_item(warps, json_warp(&s->warp[w], w));
    json_member(object, "warps", warps);
    if (accesses) json_member(object, "accesses", json_accesses(s));
    return object;
}

struct json_object *explain_json_steps(const struct explanation *e) {
    struct json_object *steps = json_new_list();
    for (size_t i = 0; i < e->launch_count; i++) {
        const struct seen_launch *l = &e->launches[i];
        for (size_t s = 0; s < l->all_count; s++)
            json_item(steps, json_step(&l->all[s].step, true));
        if (l->all_count) continue;
        for (size_t s = 0; s < l->first_count; s++)
            json_item(steps, json_step(&l->first[s].step, false));
        for (size_t s = 0; s < l->last_count; s++)
            json_item(steps, json_step(&l->last[s].step, false));
    }
    return steps;
}

/* ---- Its memory ---- */

int explain_too_many(const struct explanation *e) {
    return failed("the accesses of at most %d elements are told, not of %" PRIu64
                  ": choose a smaller -n",
                  EXPLAIN_STEPS_MAX, e->options.n);
}

void explain_forget(struct explanation *e) {
    for (size_t i = 0; i < e->launch_count; i++) {
        struct seen_launch *l = &e->launches[i];
        drop_steps(&l->first, &l->first_count);
        drop_steps(&l->last, &l->last_count);
        drop_steps(&l->all, &l->all_count);
    }
    free(e->launches);
    ladder_release(&e->options);
}
