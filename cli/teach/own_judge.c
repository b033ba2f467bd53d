/*
 * own_judge.c - see own_judge.h.
 *
 * "Right" is a promise, so that a kernel is tried where students' kernels go wrong: at many lengths, among them some
 * beyond threads^2 and beyond 16 bits; with several blocks, one of them no power of two; with data of each kind that the
 * type and operator have; launched twice; and with the blocks, and the warps of each, in other orders. The model looks
 * for races and missing fences meanwhile, whatever the result is.
 */
#include "teach/own_judge.h"

#include "common/message.h"
#include "teach/own_wraps.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    N_MOST = 1 << 20,
    BEYOND_15_BITS = 33001,
    BEYOND_16_BITS = 70001,
    LONG = 1 << 17,
    FEW = 5200,
    SHORT = 1024,
    PICKS = 4
};

/* ---- Lengths ---- */

/* Returns whether the trials have cost so much that fewer and shorter ones follow. */
static bool is_costly(const struct own_judgement *j) {
    return j->session->work && *j->session->work > OWN_WORK;
}

static bool try_length(struct own_judgement *j, uint64_t n) {
    struct own_run run;
    if (n > SHORT && is_costly(j)) return true;
    if (n < 1 || n > own_host_most(&j->host) || n > N_MOST || j->tried_count == OWN_LENGTHS_MAX)
        return true;
    if (j->is_slow && n > FEW) return true;
    for (size_t i = 0; i < j->tried_count; i++)
        if (j->tried[i].n == n) return true;
    if (!own_host_run(j->session, &j->host, n, OWN_DATA, 0, NULL, NULL, &run)) return false;
    j->tried[j->tried_count++] = (struct own_tried){
        n, own_is_good(&run), run.result.is_complete, own_leaves(&run), run.value, run.expected};
    own_judge_note(j, &run);
    j->is_slow |= n >= 500 && run.result.counts.bytes_read >
                                  16 * n * tally_type_size(j->session->kernel->is.type);
    j->is_slow |= n >= 500 && run.result.work > 512 * n + 64 * (uint64_t)run.grid * run.block;
    j->endless |= run.result.fault == TALLY_OWN_ENDLESS;
    return true;
}

static int by_n(const void *a, const void *b) {
    const struct own_tried *x = a, *y = b;
    return (x->n > y->n) - (x->n < y->n);
}

/* Returns whether the grid that was asked for is so large that there is time for few launches only. */
static bool is_wide(const struct own_judgement *j) {
    return j->session->options->grid * (j->session->block ? j->session->block : j->host.block) >
           8192;
}

/* Tries small lengths, powers of two and their neighbours; lengths around the segment's; more segments than a block has
 * threads; and more elements than 15 and 16 bits count. Returns false if no length could be tried. */
static bool try_lengths(struct own_judgement *j, uint64_t asked) {
    static const uint64_t for_many_blocks[] = {1, 2, 33, 100, 1000, 1024};
    static const uint64_t always[] = {
        1,  2,  3,  4,  5,  6,   7,   8,   10,  12,  14,  15,  16,  17,  24,  31,   32,   33,
        48, 63, 64, 65, 96, 100, 127, 128, 129, 192, 255, 256, 257, 500, 512, 1000, 1023, 1024};
    const struct own_host *h = &j->host;
    const uint64_t b = h->block;
    const uint64_t s = h->form == OWN_SEGMENTS ? h->segment : 2 * b;
    uint64_t beyond = h->form == OWN_SEGMENTS ? (b + 1) * s : b * b;
    /* A grid of more blocks than a block has threads is special only where the kernel combines the blocks' values itself.
     * try_grids() tries such grids for kernels that walk the array. */
    if (!h->combines && h->form != OWN_ONE_BLOCK && beyond > LONG) beyond = 0;
    const uint64_t around[] = {s - 1,          s,
                               s + 1,          2 * s - 1,
                               2 * s,          2 * s + 1,
                               3 * s,          4 * s,
                               5 * s + 3,      asked,
                               beyond,         beyond ? beyond + s / 2 + 1 : 0,
                               BEYOND_15_BITS, BEYOND_16_BITS};
    const bool few = is_wide(j);
    const uint64_t *first = few ? for_many_blocks : always;
    const size_t count =
        few ? sizeof for_many_blocks / sizeof *first : sizeof always / sizeof *always;
    for (size_t i = 0; i < count; i++)
        if (j->endless || !try_length(j, first[i])) break;
    for (size_t i = 0; i < sizeof around / sizeof *around; i++)
        if (j->endless || !try_length(j, around[i])) break;
    if (j->tried_count == 0) return false; /* whose line is written */
    qsort(j->tried, j->tried_count, sizeof *j->tried, by_n);
    return true;
}

/* ---- Right lengths ---- */

/* Chooses up to PICKS lengths of at most FEW elements that the kernel is right for, spread over all such. Returns how
 * many. */
static size_t pick(const struct own_judgement *j, uint64_t least, uint64_t out[PICKS]) {
    uint64_t right[OWN_LENGTHS_MAX];
    size_t count = 0, picked = 0;
    const uint64_t most = is_costly(j) ? SHORT : FEW;
    for (size_t i = 0; i < j->tried_count; i++)
        if (j->tried[i].right && j->tried[i].n <= most && j->tried[i].n >= least)
            right[count++] = j->tried[i].n;
    if (count && is_wide(j)) return out[0] = right[count - 1], 1;
    for (size_t k = 0; k < PICKS && count; k++) {
        const uint64_t n = right[k * (count - 1) / (PICKS - 1)];
        if (!picked || out[picked - 1] != n) out[picked++] = n;
    }
    return picked;
}

/* ---- Data ---- */

static bool is_an_element(const struct own_run *r) {
    return r->value >= r->least && r->value <= r->greatest;
}

static void try_data(struct own_judgement *j) {
    const struct own_session *s = j->session;
    const bool is_extreme = s->op == TALLY_MIN || s->op == TALLY_MAX;
    uint64_t lengths[PICKS];
    const size_t count = pick(j, 1, lengths);
    j->data[OWN_DATA] = true;
    for (enum own_data data = OWN_SIGNS; data < OWN_DATA_KINDS; data++) {
        if (!own_data_suits(data, s->op, s->kernel->is.type)) continue;
        j->data[data] = true;
        for (size_t i = 0; i < count; i++) {
            struct own_run run;
            char values[160];
            if (!own_host_run(s, &j->host, lengths[i], data, 0, NULL, NULL, &run)) return;
            own_judge_note(j, &run);
            if (run.is_right) continue;
            own_say_values(&run, values);
            own_find(j, "data", "with %s, n = %" PRIu64 ", %s%s", own_data_words(data), run.n,
                     values,
                     is_extreme && !is_an_element(&run) ? "; that is none of the elements" : "");
            break;
        }
    }
}

/* ---- Another operator ---- */

static void try_looks(struct own_judgement *j) {
    static const char *const names[] = {"sum",
                                        "prod",
                                        "min",
                                        "max",
                                        "and",
                                        "or",
                                        "xor",
                                        "the sum of absolute values (norm1)",
                                        "the sum of squares (sumsq)",
                                        "the greatest absolute value (norminf)",
                                        "the number of elements (count)",
                                        "the mean (mean)"};
    const struct own_session *s = j->session;
    static const uint64_t lengths[] = {2, 3, 7, 20, OWN_LOOKS_MOST};
    static const enum own_data kinds[] = {OWN_SIGNS, OWN_POSITIVE, OWN_DATA};
    unsigned looks = ~0u;
    bool is_wrong = false;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        if (kinds[k] && !own_data_suits(kinds[k], s->op, s->kernel->is.type)) continue;
        for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
            struct own_run run;
            if (lengths[i] > own_host_most(&j->host)) break;
            if (!own_host_run(s, &j->host, lengths[i], kinds[k], 0, NULL, NULL, &run)) return;
            if (run.grid > 1 || !run.result.is_complete) continue;
            looks &= run.looks;
            is_wrong |= !run.is_right;
        }
    }
    if (!is_wrong) return;
    if (looks == ~0u || !looks) return;
    const int look = __builtin_ctz(looks);
    j->finding_count = 0; /* the operator explains the other findings */
    own_find(j, "operator", "this is %s; you asked for %s", names[look], tally_op_name(s->op));
    struct own_advice *a = &j->findings[0].advice;
    snprintf(a->why, sizeof a->why, "The result is another operator's for every length tried.");
    snprintf(a->lesson, sizeof a->lesson, "lessons/01_first_tree.cu");
    if (look <= OWN_LOOKS_XOR)
        snprintf(a->mend, sizeof a->mend, "Ask for it, as in --op %s, or change the kernel.",
                 names[look]);
    else
        snprintf(a->mend, sizeof a->mend, "Combine the elements as they are.");
}

/* ---- Blocks ---- */

/* Writes the lengths to try with another block: those that the pattern says are right. Returns how many. */
static size_t lengths_for(const struct own_judgement *j, const struct own_pattern *p,
                          const struct own_host *h, uint64_t out[PICKS + 4]) {
    const uint64_t s = h->segment ? h->segment : 2 * (uint64_t)h->block;
    const uint64_t any[] = {1, s / 2 + 1, s - 1, s + 1, 3 * s + 5, 2 * s};
    const uint64_t powers[] = {2, 64, 256, 1024};
    size_t count = 0;
    if (p->is == RIGHT_ANY)
        for (size_t i = 0; i < sizeof any / sizeof *any; i++)
            out[count++] = any[i];
    else if (p->is == RIGHT_POWERS)
        for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
            out[count++] = powers[i];
    else if (p->is == RIGHT_MULTIPLES)
        for (uint64_t k = 1; k <= 3; k++)
            out[count++] = k * s;
    else
        return pick(j, 1, out);
    return count;
}

/* Tries blocks of `threads` threads. Keeps the run that is wrong in *wrong. */
static void try_block(struct own_judgement *j, const struct own_pattern *p, unsigned threads,
                      struct own_run *wrong) {
    struct own_tried_block *t = &j->blocks[j->block_count];
    const struct own_session *s = j->session;
    struct own_session with = *s;
    struct own_host h;
    uint64_t lengths[PICKS + 4];
    for (size_t i = 0; i < j->block_count; i++)
        if (j->blocks[i].threads == threads) return;
    if (j->block_count == OWN_TRIED_BLOCKS_MAX) return;
    *t = (struct own_tried_block){.threads = threads, .right = true};
    j->block_count++;
    if (s->kernel->template_block && threads != s->kernel->template_block) return;
    t->runs = true;
    if (!own_host_at(&with, threads, &j->host,
                     &h)) { /* it is launched otherwise, or ends at once */
        t->right = false;
        t->leaves_shared = true;
        return;
    }
    const size_t count = lengths_for(j, p, &h, lengths);
    for (size_t i = 0; i < count && t->right; i++) {
        struct own_run run;
        if (!own_host_run(&with, &h, lengths[i], OWN_DATA, 0, NULL, NULL, &run)) {
            t->runs = false;
            return;
        }
        t->right = own_is_good(&run);
        t->leaves_shared = own_leaves(&run);
        if (!t->right) *wrong = run;
    }
}

/* Writes "32, 64 and 256" for the blocks of that verdict. */
static size_t list_blocks(const struct own_judgement *j, bool right, bool powers, char text[160]) {
    unsigned which[OWN_TRIED_BLOCKS_MAX];
    size_t count = 0, used = 0;
    for (size_t i = 0; i < j->block_count; i++) {
        const struct own_tried_block *t = &j->blocks[i];
        const bool power = !(t->threads & (t->threads - 1));
        if (t->runs && t->right == right && power == powers) which[count++] = t->threads;
    }
    for (size_t i = 0; i < count; i++)
        for (size_t k = i + 1; k < count; k++)
            if (which[k] < which[i]) {
                const unsigned kept = which[i];
                which[i] = which[k];
                which[k] = kept;
            }
    *text = '\0';
    for (size_t i = 0; i < count && used < 150; i++)
        used += (size_t)snprintf(text + used, 160 - used, "%s%u",
                                 i == 0           ? ""
                                 : i + 1 == count ? " and "
                                                  : ", ",
                                 which[i]);
    return count;
}

static bool block_is_right(const struct own_judgement *j, unsigned threads) {
    for (size_t i = 0; i < j->block_count; i++)
        if (j->blocks[i].threads == threads) return j->blocks[i].runs && j->blocks[i].right;
    return false;
}

/* Returns whether the text names the block: in a constant, or in the length of a shared array. */
static bool text_names_block(const struct own_judgement *j) {
    const struct own_kernel *k = j->session->kernel;
    for (size_t i = 0; i < k->block_count; i++)
        if (block_is_right(j, k->blocks[i]) && k->blocks[i] > 32) return true;
    return k->template_block != 0;
}

static bool is_wrong_block(const struct own_tried_block *t) {
    return t->runs && !t->right && !t->leaves_shared && !(t->threads & (t->threads - 1));
}

/* Tries blocks of several sizes. A wrong result is only mentioned, and is no finding, if the block is too large for a
 * shared array or is no power of two, or if the text names a block that is right. */
static void try_blocks(struct own_judgement *j, const struct own_pattern *p) {
    static const unsigned threads[] = {32, 64, 256, 1024, 96};
    const struct own_session *s = j->session;
    char wrong[160], right[160];
    struct own_run runs[OWN_TRIED_BLOCKS_MAX];
    const bool is_fixed = s->block || s->kernel->template_block || j->host.is_serial ||
                          (j->host.form == OWN_ONE_BLOCK && j->host.per_thread);
    j->blocks[j->block_count++] =
        (struct own_tried_block){.threads = j->host.block, .runs = true, .right = true};
    if (s->block) j->blocks[0].threads = s->block;
    if (is_fixed || !p->is) return;
    for (size_t i = 0; i < s->kernel->block_count; i++)
        try_block(j, p, s->kernel->blocks[i], &runs[j->block_count % OWN_TRIED_BLOCKS_MAX]);
    for (size_t i = 0; i < sizeof threads / sizeof *threads; i++)
        try_block(j, p, threads[i], &runs[j->block_count % OWN_TRIED_BLOCKS_MAX]);
    bool is_wrong = false;
    for (size_t i = 0; i < j->block_count; i++) {
        is_wrong |= is_wrong_block(&j->blocks[i]);
    }
    if (!is_wrong || text_names_block(j)) return;
    for (size_t i = 0; i < j->block_count; i++)
        if (is_wrong_block(&j->blocks[i])) own_judge_note(j, &runs[i]);
    list_blocks(j, false, true, wrong);
    list_blocks(j, true, true, right);
    own_find(j, "block", "with blocks of %s threads it is right, and with blocks of %s it is wrong",
             right, wrong);
}

/* ---- Launches, orders, grids ---- */

static void try_again(struct own_judgement *j) {
    uint64_t lengths[PICKS];
    const size_t count = pick(j, 1, lengths);
    struct own_session second = *j->session;
    second.keeps = true;
    j->launches = 2;
    for (size_t i = 0; i < count; i++) {
        struct own_run run;
        char values[160];
        if (!own_host_run(j->session, &j->host, lengths[i], OWN_DATA, 0, NULL, NULL, &run) ||
            !own_is_good(&run) ||
            !own_host_run(&second, &j->host, lengths[i], OWN_DATA, 0, NULL, NULL, &run))
            return;
        if (own_is_good(&run)) continue;
        own_judge_note(j, &run);
        own_say_values(&run, values);
        own_find(j, "second launch",
                 "the first launch is right and the second launch wrong: n = %" PRIu64 ", %s",
                 run.n, run.is_right ? "with a fault" : values);
        return;
    }
}

static void try_orders(struct own_judgement *j) {
    uint64_t lengths[PICKS];
    const size_t count = pick(j, 1, lengths);
    const unsigned drawn = 2 + (unsigned)(j->session->options->seed % 1000000);
    const unsigned orders[] = {1, drawn, drawn + 1};
    j->orders = 1 + sizeof orders / sizeof *orders;
    for (size_t k = 0; k < sizeof orders / sizeof *orders; k++)
        for (size_t i = count; i-- > 0;) {
            struct own_session with = *j->session;
            struct own_run run;
            char values[160];
            with.order = orders[k];
            if (!own_host_run(&with, &j->host, lengths[i], OWN_DATA, 0, NULL, NULL, &run)) return;
            own_judge_note(j, &run);
            if (run.is_right) continue;
            own_say_values(&run, values);
            own_find(j, "order of blocks", "with %s, n = %" PRIu64 ": %s",
                     orders[k] == 1 ? "the blocks from the last to the first"
                                    : "the blocks in another order",
                     run.n, values);
            return;
        }
}

/* Tries other grids, if no length is wrong with the host's own. A grid sized to the device may have more blocks than a block has
 * threads; where the kernel combines the blocks' values itself, more than twice as many, too. */
static void try_grids(struct own_judgement *j, const struct own_pattern *p) {
    /* Elements a thread, of which the fourth part are 16-byte loads, and four of these are under way together. */
    enum { EACH = 14 };
    const unsigned b = j->host.block, grids[] = {1, 2, 3, b + 1, 2 * b + 3};
    if (j->host.form != OWN_WHOLE_GRID || j->session->options->grid || p->is != RIGHT_ANY) return;
    const size_t count = sizeof grids / sizeof *grids - !j->host.combines;
    for (size_t i = 0; i < count; i++) {
        struct own_host h = j->host;
        struct own_run run;
        char values[160];
        h.grid = grids[i];
        const uint64_t n = (grids[i] > 3 ? 2 : EACH) * (uint64_t)grids[i] * b + 7;
        if (!own_host_run(j->session, &h, n, OWN_DATA, 0, NULL, NULL, &run)) return;
        if (own_is_good(&run) || (own_leaves(&run) && grids[i] > 3)) continue;
        own_judge_note(j, &run);
        if (run.is_right) return; /* the fault says what is wrong */
        own_say_values(&run, values);
        own_find(j, "grid", "with %u block%s of %u threads, n = %" PRIu64 ", %s", run.grid,
                 run.grid == 1 ? "" : "s", run.block, run.n, values);
        return;
    }
}

/* Runs two blocks for more elements than they need. Their result is of no use, but they must keep to their arrays. The
 * launch was found by such a trial (own_host.c): if a fault ended that one, it has shown too little of the kernel. */
static void try_few_blocks(struct own_judgement *j) {
    struct own_host h = j->host;
    struct own_run run;
    if (h.form != OWN_SEGMENTS || j->session->options->grid) return;
    h.grid = 2;
    if (own_host_run(j->session, &h, 64 * (uint64_t)h.block, OWN_ONES, 0, NULL, NULL, &run) &&
        own_leaves(&run))
        own_judge_note(j, &run);
}

/* ---- The verdict ---- */

static void list_lengths(const struct own_judgement *j, bool right, char *text, size_t room) {
    size_t used = 0, said = 0;
    for (size_t i = 0; i < j->tried_count && used < room; i++)
        if (j->tried[i].right == right) {
            if (++said > 12) {
                snprintf(text + used, room - used, ", ...");
                return;
            }
            used += (size_t)snprintf(text + used, room - used, "%s%" PRIu64, said > 1 ? ", " : "",
                                     j->tried[i].n);
        }
}

static void say_verdict(struct own_judgement *j, const struct own_pattern *p) {
    char list[200] = "";
    size_t right = 0;
    const uint64_t most = j->tried[j->tried_count - 1].n;
    for (size_t i = 0; i < j->tried_count; i++)
        right += j->tried[i].right;
    /* A kernel that takes no n is for the lengths that the host launches it for. */
    const bool has_no_n = (p->is == RIGHT_MULTIPLES || p->is == RIGHT_POWERS ||
                           p->is == RIGHT_POWERS_UP_TO || p->is == RIGHT_ONE) &&
                          !j->session->kernel->is.length;
    const bool all = right == j->tried_count;
    j->status = (all || has_no_n) && !j->finding_count && !j->endless ? OWN_RIGHT : OWN_WRONG;
    if (j->fault_count > (has_no_n ? j->length_faults : 0)) j->status = OWN_WRONG;
    if (j->finding_count && strcmp(j->findings[0].kind, "operator") == 0)
        snprintf(j->verdict, sizeof j->verdict, "wrong: %s", j->findings[0].sentence);
    else if (all && j->finding_count)
        snprintf(j->verdict, sizeof j->verdict,
                 "wrong: right for all %zu lengths tried with small whole numbers, but %s", right,
                 j->findings[0].sentence);
    else if (all && j->status == OWN_WRONG)
        snprintf(j->verdict, sizeof j->verdict,
                 "wrong: its results are right for all %zu lengths tried, but it has a fault",
                 right);
    else if (all)
        snprintf(j->verdict, sizeof j->verdict,
                 "right for all %zu lengths tried, from 1 to %" PRIu64 "%s", right, most,
                 j->host.is_serial     ? ", launched as one thread; with several it is wrong"
                 : j->host.must_be_one ? ", launched as one block; with several it is wrong"
                                       : "");
    else if (j->endless)
        snprintf(j->verdict, sizeof j->verdict, "wrong: with n = %" PRIu64 " it does not end",
                 most);
    else if (right == 0)
        snprintf(j->verdict, sizeof j->verdict,
                 "wrong for all %zu lengths tried, from 1 to %" PRIu64, j->tried_count, most);
    else if (p->is)
        snprintf(j->verdict, sizeof j->verdict, "%s%s", p->words,
                 has_no_n ? "; it takes no n" : "");
    else {
        list_lengths(j, false, list, sizeof list);
        snprintf(j->verdict, sizeof j->verdict, "wrong for %zu of the %zu lengths tried: %s",
                 j->tried_count - right, j->tried_count, list);
    }
}

/* Adds a finding if results are wrong and nothing explains it. It tells the first wrong result, unless a rule of the
 * wrong lengths is known. */
static void find_lengths(struct own_judgement *j, const struct own_pattern *p) {
    const struct own_tried *first = j->tried;
    const double unset = 1e37; /* an uninitialized float is larger, or NaN: see NEWER_FLAG */
    while (first < j->tried + j->tried_count && first->right)
        first++;
    if (p->is || first == j->tried + j->tried_count)
        own_find(j, "lengths", "it is not right for every n");
    else
        own_find(j, "lengths", "with n = %" PRIu64 " the result is %.9g, and %.9g would be right",
                 first->n, first->value, first->expected);
    struct own_advice *a = &j->findings[j->finding_count - 1].advice;
    if (first != j->tried + j->tried_count && first->complete && fabs(first->expected) < unset &&
        !(fabs(first->value) < unset))
        snprintf(a->mend, sizeof a->mend,
                 "Give each variable a value before it is used, the identity of %s: what nothing "
                 "has set holds any number.",
                 tally_op_name(j->session->op));
}

/* Writes the words of what the verdict rests on. */
static void say_tried(struct own_judgement *j) {
    char blocks[160], odd[160], *text = j->tried_words;
    const size_t room = sizeof j->tried_words;
    size_t used = 0;
#define ADD(...) used += (size_t)snprintf(text + used, used < room ? room - used : 0, __VA_ARGS__)
    if (j->tried_count == 1)
        ADD("n = %" PRIu64, j->tried[0].n);
    else
        ADD("%zu lengths from %" PRIu64 " to %" PRIu64, j->tried_count, j->tried[0].n,
            j->tried[j->tried_count - 1].n);
    const struct own_options *o = j->session->options;
    const size_t count = o->width ? 0 : list_blocks(j, true, true, blocks);
    if (o->width && o->width * o->height == o->block)
        ADD("; blocks of %ux%u threads", o->width, o->height);
    else if (o->width)
        ADD("; blocks of %ux%ux%u threads", o->width, o->height, o->block / (o->width * o->height));
    if (j->host.is_serial)
        ADD("; one thread");
    else if (j->host.form == OWN_ONE_BLOCK && j->host.per_thread && !j->session->block)
        ADD("; blocks as large as n needs");
    else if (count)
        ADD(j->block_count > 1 ? "; right with blocks of %s threads" : "; blocks of %s threads",
            blocks);
    else if (j->block_count == 1 && !o->width)
        ADD("; blocks of %u threads", j->blocks[0].threads);
    if (!o->width && j->block_count > 1 && list_blocks(j, true, false, odd))
        ADD("%s%s", count ? ", and of " : "; right with blocks of ", odd);
    if (list_blocks(j, false, true, blocks)) ADD("; not with blocks of %s", blocks);
    if (list_blocks(j, false, false, odd))
        ADD("; not with blocks of %s, which is no power of two", odd);
    ADD("; data: ");
    bool more = false;
    for (enum own_data d = OWN_DATA; d < OWN_DATA_KINDS; d++)
        if (j->data[d]) {
            ADD("%s%s", more ? ", " : "", own_data_words(d));
            more = true;
        }
    if (j->rounds) ADD("; %u rounds of a warp's loop", j->rounds);
    if (j->far) ADD("; n = %" PRIu64 " by some blocks of its launch", j->far);
    if (j->launches) ADD("; two launches in a row");
    if (j->orders) ADD("; %u orders of the blocks", j->orders);
    ADD("; seed %" PRIu64, o->seed);
#undef ADD
}

bool own_judge(struct own_judgement *j, uint64_t n) {
    if (!try_lengths(j, n)) return false;
    const struct own_pattern p = own_pattern_find(j);
    j->data[OWN_DATA] = true;
    j->length_faults = j->fault_count;
    if (!j->endless) {
        try_data(j);
        try_blocks(j, &p);
        try_again(j);
        try_orders(j);
        try_grids(j, &p);
        try_few_blocks(j);
        own_judge_far(j, &p);
        size_t right = 0;
        for (size_t i = 0; i < j->tried_count; i++)
            right += j->tried[i].right;
        if (right < j->tried_count || j->finding_count) try_looks(j);
    }
    if (j->session->work && *j->session->work > OWN_WORK_MOST) return false;
    say_verdict(j, &p);
    say_tried(j);
    if (j->status == OWN_WRONG && !j->finding_count && !j->fault_count) find_lengths(j, &p);
    return true;
}
