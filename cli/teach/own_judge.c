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
#include "teach/own_advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
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

/* ---- What was seen ---- */

bool own_leaves(const struct own_run *run) {
    return run->result.fault == TALLY_OWN_BOUNDS || run->result.fault == TALLY_OWN_ALIGNMENT;
}

static bool is_good(const struct own_run *run) {
    return run->is_right && run->result.fault == TALLY_OWN_RIGHT;
}

void own_judge_note(struct own_judgement *j, const struct own_run *run) {
    const tally_own_result *f = &run->result;
    if (*f->note && !*j->note)
        snprintf(j->note, sizeof j->note,
                 "%.330s. The standard asks for a fence there; GPUs pass the value on, as a "
                 "barrier stands there and the "
                 "block has not read the place before.",
                 f->note);
    if (f->fault == TALLY_OWN_RIGHT) return;
    for (size_t i = 0; i < j->fault_count; i++)
        if (j->faults[i].kind == f->fault && j->faults[i].line == f->line &&
            j->faults[i].other_line == f->other_line)
            return;
    if (j->fault_count == OWN_FAULTS_MAX) return;
    struct own_seen_fault *seen = &j->faults[j->fault_count++];
    *seen = (struct own_seen_fault){.n = run->n,
                                    .block = run->block,
                                    .kind = f->fault,
                                    .line = f->line,
                                    .other_line = f->other_line};
    snprintf(seen->sentence, sizeof seen->sentence, "%s", f->sentence);
    own_advise_fault(j->session, run, &seen->advice);
}

__attribute__((format(printf, 3, 4))) static void find(struct own_judgement *j, const char *kind,
                                                       const char *format, ...) {
    va_list list;
    if (j->finding_count == OWN_FINDINGS_MAX) return;
    struct own_finding *f = &j->findings[j->finding_count++];
    f->kind = kind;
    va_start(list, format);
    vsnprintf(f->sentence, sizeof f->sentence, format, list);
    va_end(list);
    own_advise_finding(j->session, kind, &f->advice);
}

/* "the result is 3, and 4 would be right" */
static void say_values(const struct own_run *run, char text[160]) {
    if (run->bound > 0)
        snprintf(text, 160, "the result is %.9g, and %.9g would be right, within %.3g", run->value,
                 run->expected, run->bound);
    else
        snprintf(text, 160, "the result is %.17g, and %.17g would be right", run->value,
                 run->expected);
}

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
        n, is_good(&run), run.result.is_complete, own_leaves(&run), run.value, run.expected};
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

/* Small lengths, powers of two and their neighbours; those around the segment's; more segments than a block has threads;
 * more elements than 16 bits count. */
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

/* ---- Which lengths are right ---- */

static bool is_any(uint64_t n, uint64_t unused) {
    (void)n, (void)unused;
    return true;
}
static bool is_power(uint64_t n, uint64_t unused) {
    (void)unused;
    return (n & (n - 1)) == 0;
}
static bool is_even(uint64_t n, uint64_t unused) {
    (void)unused;
    return n % 2 == 0;
}
static bool is_multiple(uint64_t n, uint64_t segment) {
    return n % segment == 0;
}
static bool is_at_most(uint64_t n, uint64_t segment) {
    return n <= segment;
}
static bool is_power_of_two_at_most(uint64_t n, uint64_t segment) {
    return is_power(n, 0) && n <= segment;
}

static bool is_exactly(uint64_t n, uint64_t right) {
    return n == right;
}

typedef bool rule(uint64_t n, uint64_t segment);

/* Returns whether the rule says which lengths are right, n = 1 apart where `but_one` is set. */
static bool follows(const struct own_judgement *j, rule *is, uint64_t s, bool but_one) {
    for (size_t i = 0; i < j->tried_count; i++)
        if (j->tried[i].right != is(j->tried[i].n, s) && !(but_one && j->tried[i].n == 1))
            return false;
    return true;
}

/* A rule, and the number that it is about. */
struct pattern {
    rule *is; /* NULL: none is known */
    uint64_t s;
    bool but_one;
    char words[200];
};

static uint64_t most_right(const struct own_judgement *j) {
    uint64_t most = 0;
    for (size_t i = 0; i < j->tried_count; i++)
        if (j->tried[i].right) most = j->tried[i].n;
    return most;
}

static struct pattern find_pattern(const struct own_judgement *j) {
    const struct own_host *h = &j->host;
    const uint64_t s = h->segment ? h->segment : 2 * (uint64_t)h->block, most = most_right(j);
    struct pattern p = {.s = s};
    const struct {
        rule *is;
        uint64_t s;
    } rules[] = {{is_any, s},
                 {is_power, s},
                 {h->segment ? is_multiple : NULL, s},
                 {is_even, s},
                 {is_multiple, 4},
                 {is_multiple, 8},
                 {is_multiple, 16},
                 {is_multiple, 32},
                 {is_at_most, s},
                 {is_power_of_two_at_most, s},
                 {is_at_most, most},
                 {is_power_of_two_at_most, most},
                 {is_exactly, most}};
    for (int but_one = 0; but_one < 2 && !p.is; but_one++)
        for (size_t i = 0; i < sizeof rules / sizeof *rules && !p.is; i++)
            if (rules[i].is && most > 1 && follows(j, rules[i].is, rules[i].s, but_one)) {
                p.is = rules[i].is;
                p.s = rules[i].s;
                p.but_one = but_one;
            }
    const char *only = j->session->kernel->is.length ? "only " : "";
    if (p.is == is_any && p.but_one)
        snprintf(p.words, sizeof p.words, "right for every length tried");
    if (p.is == is_power)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a power of two, and wrong for every other length tried", only);
    else if (p.is == is_multiple && p.s != h->segment)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a multiple of %" PRIu64 ", and for no other length tried",
                 only, p.s);
    else if (p.is == is_multiple)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a multiple of the segment, which is %" PRIu64
                 " for blocks of %u threads, and for no other length tried",
                 only, s, h->block);
    else if (p.is == is_exactly)
        snprintf(p.words, sizeof p.words,
                 "right for n = %" PRIu64 ", and for no other length tried", p.s);
    else if (p.is == is_even)
        snprintf(p.words, sizeof p.words, "right only for even n, and wrong for odd n");
    else if (p.is == is_at_most)
        snprintf(p.words, sizeof p.words, "right up to n = %" PRIu64 ", and wrong beyond", p.s);
    else if (p.is == is_power_of_two_at_most)
        snprintf(p.words, sizeof p.words,
                 "right %swhere n is a power of two up to %" PRIu64
                 ", and for no other length tried",
                 only, p.s);
    if (p.is && p.but_one && strlen(p.words) < sizeof p.words - 20)
        strcat(p.words, ", n = 1 apart");
    return p;
}

/* Chooses right lengths of at most FEW elements, spread over those that are. */
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
            say_values(&run, values);
            find(j, "data", "with %s, n = %" PRIu64 ", %s%s", own_data_words(data), run.n, values,
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
    j->finding_count = 0; /* which this explains */
    find(j, "operator", "this is %s; you asked for %s", names[look], tally_op_name(s->op));
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

/* The lengths for another block: those of the pattern. */
static size_t lengths_for(const struct own_judgement *j, const struct pattern *p,
                          const struct own_host *h, uint64_t out[PICKS + 4]) {
    const uint64_t s = h->segment ? h->segment : 2 * (uint64_t)h->block;
    const uint64_t any[] = {1, s / 2 + 1, s - 1, s + 1, 3 * s + 5, 2 * s};
    const uint64_t powers[] = {2, 64, 256, 1024};
    size_t count = 0;
    if (p->is == is_any)
        for (size_t i = 0; i < sizeof any / sizeof *any; i++)
            out[count++] = any[i];
    else if (p->is == is_power)
        for (size_t i = 0; i < sizeof powers / sizeof *powers; i++)
            out[count++] = powers[i];
    else if (p->is == is_multiple)
        for (uint64_t k = 1; k <= 3; k++)
            out[count++] = k * s;
    else
        return pick(j, 1, out);
    return count;
}

/* Tries blocks of so many threads; the run that is wrong is kept. */
static void try_block(struct own_judgement *j, const struct pattern *p, unsigned threads,
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
        t->right = is_good(&run);
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

/* Several blocks. A block that is too large for a shared array, and one that is no power of two, is only told; and so is
 * every other where the text names a block that is right. */
static void try_blocks(struct own_judgement *j, const struct pattern *p) {
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
    find(j, "block", "with blocks of %s threads it is right, and with blocks of %s it is wrong",
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
            !is_good(&run) ||
            !own_host_run(&second, &j->host, lengths[i], OWN_DATA, 0, NULL, NULL, &run))
            return;
        if (is_good(&run)) continue;
        own_judge_note(j, &run);
        say_values(&run, values);
        find(j, "second launch",
             "the first launch is right and the second launch wrong: n = %" PRIu64 ", %s", run.n,
             run.is_right ? "with a fault" : values);
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
            say_values(&run, values);
            find(j, "order of blocks", "with %s, n = %" PRIu64 ": %s",
                 orders[k] == 1 ? "the blocks from the last to the first"
                                : "the blocks in another order",
                 run.n, values);
            return;
        }
}

/* Tries other grids, if no length is wrong with the host's own. A grid sized to the device may have more blocks than a block has
 * threads; where the kernel combines the blocks' values itself, more than twice as many, too. */
static void try_grids(struct own_judgement *j, const struct pattern *p) {
    /* Elements a thread, of which the fourth part are 16-byte loads, and four of these are under way together. */
    enum { EACH = 14 };
    const unsigned b = j->host.block, grids[] = {1, 2, 3, b + 1, 2 * b + 3};
    if (j->host.form != OWN_WHOLE_GRID || j->session->options->grid || p->is != is_any) return;
    const size_t count = sizeof grids / sizeof *grids - !j->host.combines;
    for (size_t i = 0; i < count; i++) {
        struct own_host h = j->host;
        struct own_run run;
        char values[160];
        h.grid = grids[i];
        const uint64_t n = (grids[i] > 3 ? 2 : EACH) * (uint64_t)grids[i] * b + 7;
        if (!own_host_run(j->session, &h, n, OWN_DATA, 0, NULL, NULL, &run)) return;
        if (is_good(&run) || (own_leaves(&run) && grids[i] > 3)) continue;
        own_judge_note(j, &run);
        if (run.is_right) return; /* the fault says what is wrong */
        say_values(&run, values);
        find(j, "grid", "with %u block%s of %u threads, n = %" PRIu64 ", %s", run.grid,
             run.grid == 1 ? "" : "s", run.block, run.n, values);
        return;
    }
}

/* Two blocks for more elements than they need: what they leave is of no use, but they are to keep to their arrays. The
 * launch was found by such a trial, and a kernel that ended there has shown too little of itself. */
static void try_few_blocks(struct own_judgement *j) {
    struct own_host h = j->host;
    struct own_run run;
    if (h.form != OWN_SEGMENTS || j->session->options->grid) return;
    h.grid = 2;
    if (own_host_run(j->session, &h, 64 * (uint64_t)h.block, OWN_ONES, 0, NULL, NULL, &run) &&
        own_leaves(&run))
        own_judge_note(j, &run);
}

/* ---- Lengths at which an index wraps ---- */

/* Runs some blocks of a launch for about `about` elements; a grid that walks the array has about `threads`. The last round
 * has half a segment, so that it is block 0's, whoever is given what is left over. */
static bool try_far_length(const struct own_judgement *j, uint64_t about, uint64_t threads,
                           struct own_run *run) {
    const struct own_host *h = &j->host;
    const uint64_t s = h->segment, grid = threads / s;
    const uint64_t round = h->form == OWN_WHOLE_GRID ? grid * s : s;
    return round &&
           own_host_far(j->session, h, about / round * round + s / 2 + 1, (unsigned)grid, run);
}

/* Lengths at which an int, or an unsigned, wraps: near to the most that the type of n holds, but so far from it that a few
 * rounds of the grid more do not wrap; and one beyond 32 bits. */
static uint64_t far_length(const tally_own_kernel *k) {
    const uint64_t one = 1;
    return k->length_type == TALLY_I32 ? (one << 30) + (one << 28) : (one << 31) + (one << 29);
}
#define BEYOND_32_BITS ((UINT64_C(1) << 32) + (UINT64_C(1) << 29))

/* Says what a run for such a length has found; beyond 32 bits it is a note. */
static void tell_far(struct own_judgement *j, const struct own_run *run, bool is_note) {
    char values[160];
    say_values(run, values);
    const char *what = *run->result.sentence ? run->result.sentence : values;
    if (!is_note)
        find(j, "overflow", "with n = %" PRIu64 " an index does not hold its value: %s", run->n,
             what);
    else if (!*j->note)
        snprintf(j->note, sizeof j->note,
                 "beyond 2^32 elements an index of 32 bits wraps: with n = %" PRIu64 ", %.300s",
                 run->n, what);
}

/* Runs some blocks of a launch for such a length, on what of the array is theirs. Returns false where that is not known: the
 * same blocks of a short array must be right first. */
static bool try_windows(struct own_judgement *j, uint64_t about) {
    const uint64_t short_grid = 40, segment = j->host.segment, threads = UINT64_C(1) << 26;
    struct own_run run;
    if (j->host.form == OWN_ONE_BLOCK || j->host.combines || !segment ||
        !try_far_length(j, 3 * short_grid * segment, short_grid * segment, &run) ||
        !is_good(&run) || !try_far_length(j, about, threads, &run))
        return false;
    j->far = run.n;
    if (!is_good(&run))
        tell_far(j, &run, false);
    else if (tally_type_size(j->session->kernel->is.length_type) == 8 &&
             try_far_length(j, BEYOND_32_BITS, threads, &run) && !is_good(&run))
        tell_far(j, &run, true);
    return true;
}

/* The same for one block whose stride is a number of the text, the threads of that block. So many rounds would take too long:
 * the lanes begin a few rounds before the end, or before an int wraps. */
static void try_last_rounds(struct own_judgement *j, uint64_t about) {
    enum { ROUNDS = 8, EARLIER = 64 };
    const unsigned block = j->host.block;
    const uint64_t round = block, wraps = UINT64_C(1) << 31;
    const uint64_t far = about > wraps ? wraps + ROUNDS / 2 * round : about / round * round;
    struct own_run run;
    if (!own_host_shares(j->session, (EARLIER + ROUNDS) * round, 1, block, EARLIER * block, &run) ||
        !run.is_right || wraps % round ||
        !own_host_shares(j->session, far, 1, block, (unsigned)(far - ROUNDS * round), &run))
        return;
    j->far = run.n;
    if (!run.is_right) tell_far(j, &run, false);
}

/* Runs a warp of some blocks of so many threads that few rounds are left to each: of one block, or of blocks that share the array
 * in another way than by segments. One block, or the blocks that were asked for, are told of more threads than blocks have. The
 * lanes must read their share of a short array, or nothing is known. */
static void try_shares(struct own_judgement *j, uint64_t about) {
    enum { THREADS = 1 << 21, ROUNDS = 8, SHORT_GRID = 16 };
    const struct own_session *s = j->session;
    const bool is_one = j->host.form == OWN_ONE_BLOCK;
    const unsigned asked = (unsigned)s->options->grid, block = j->host.block;
    const unsigned grid = is_one ? 1 : asked ? asked : THREADS / block;
    const unsigned short_grid = is_one || asked ? grid : SHORT_GRID;
    unsigned told = is_one || asked ? THREADS : block;
    while (told > block && (uint64_t)told * grid > THREADS)
        told /= 2;
    const uint64_t round = (uint64_t)ROUNDS * grid * told;
    struct own_run run;
    if (s->options->width || (is_one && j->host.per_thread)) return;
    if (!own_host_shares(s, (uint64_t)ROUNDS * short_grid * told, short_grid, told, 0, &run) ||
        !run.is_right) {
        if (is_one) try_last_rounds(j, about);
        return;
    }
    if (!own_host_shares(s, about / round * round, grid, told, 0, &run)) return;
    j->far = run.n;
    if (!run.is_right)
        tell_far(j, &run, false);
    else if (tally_type_size(s->kernel->is.length_type) == 8 &&
             own_host_shares(s, BEYOND_32_BITS / round * round, grid, told, 0, &run) &&
             !run.is_right)
        tell_far(j, &run, true);
}

static void try_far(struct own_judgement *j, const struct pattern *p) {
    const tally_own_kernel *k = &j->session->kernel->is;
    if (!k->length || tally_type_size(k->length_type) < 4 || p->is != is_any) return;
    const uint64_t about = far_length(k);
    if (!try_windows(j, about)) try_shares(j, about);
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

static void say_verdict(struct own_judgement *j, const struct pattern *p) {
    char list[200] = "";
    size_t right = 0;
    const uint64_t most = j->tried[j->tried_count - 1].n;
    for (size_t i = 0; i < j->tried_count; i++)
        right += j->tried[i].right;
    /* A kernel that takes no n is for the lengths that the host launches it for. */
    const bool has_no_n = (p->is == is_multiple || p->is == is_power ||
                           p->is == is_power_of_two_at_most || p->is == is_exactly) &&
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

/* Notes that results are wrong, and nothing is known that explains it: for which lengths, or what the first of them is. */
static void find_lengths(struct own_judgement *j, const struct pattern *p) {
    const struct own_tried *first = j->tried;
    const double unset = 1e37; /* what nothing has set is such a float, or none */
    while (first < j->tried + j->tried_count && first->right)
        first++;
    if (p->is || first == j->tried + j->tried_count)
        find(j, "lengths", "it is not right for every n");
    else
        find(j, "lengths", "with n = %" PRIu64 " the result is %.9g, and %.9g would be right",
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
    if (j->far) ADD("; n = %" PRIu64 " by some blocks of its launch", j->far);
    if (j->launches) ADD("; two launches in a row");
    if (j->orders) ADD("; %u orders of the blocks", j->orders);
    ADD("; seed %" PRIu64, o->seed);
#undef ADD
}

bool own_judge(struct own_judgement *j, uint64_t n) {
    if (!try_lengths(j, n)) return false;
    const struct pattern p = find_pattern(j);
    j->data[OWN_DATA] = true;
    j->length_faults = j->fault_count;
    if (!j->endless) {
        try_data(j);
        try_blocks(j, &p);
        try_again(j);
        try_orders(j);
        try_grids(j, &p);
        try_few_blocks(j);
        try_far(j, &p);
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
