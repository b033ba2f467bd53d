/* own_host.c - see own_host.h. */
#include "teach/own_host.h"

#include "common/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MAX = 1024, PROBE_BLOCK = 64, GRID_SIZED = 32 };

/* ---- A launch ---- */

uint64_t own_host_most(const struct own_host *h) {
    return h->form == OWN_ONE_BLOCK && h->per_thread ? (uint64_t)h->per_thread * BLOCK_MAX
                                                     : UINT64_C(1) << 30;
}

static unsigned block_for(const struct own_session *s, const struct own_host *h, uint64_t n) {
    if (s->block) return s->block;
    if (h->form != OWN_ONE_BLOCK || !h->per_thread) return h->block;
    const uint64_t threads = (n + h->per_thread - 1) / h->per_thread;
    return threads > BLOCK_MAX ? BLOCK_MAX : (unsigned)threads;
}

static unsigned grid_for(const struct own_session *s, const struct own_host *h, uint64_t n) {
    uint64_t grid = 1;
    if (h->grid) return h->grid;
    if (s->options->grid) return (unsigned)s->options->grid;
    if (h->form == OWN_SEGMENTS) grid = (n + h->segment - 1) / h->segment;
    if (h->form == OWN_WHOLE_GRID) {
        grid = (n + 2 * (uint64_t)h->block - 1) / (2 * (uint64_t)h->block);
        if (grid > GRID_SIZED) grid = GRID_SIZED;
    }
    return (unsigned)grid;
}

static uint64_t length_for(const struct own_session *s, unsigned block, uint64_t n) {
    const char *length = s->options->length;
    if (!length) return n;
    return strcmp(length, "block") == 0 ? block : strtoull(length, NULL, 10);
}

static tally_own_launch launch_of(const struct own_session *s, const struct own_run *r,
                                  const void *x, const void *y) {
    const struct own_options *o = s->options;
    const bool shaped = o->width && r->block == o->block;
    return (tally_own_launch){.op = s->op,
                              .x = x,
                              .y = y,
                              .width = shaped ? o->width : 0,
                              .height = shaped ? o->height : 0,
                              .order = s->order,
                              .keeps = s->keeps,
                              .n = (size_t)r->n,
                              .grid = r->grid,
                              .block = r->block,
                              .length = r->length,
                              .outputs = r->grid,
                              .shared_bytes = r->shared_bytes,
                              .forgives = 1,
                              .work_most = OWN_WORK,
                              .accesses = s->accesses};
}

static size_t shared_for(const struct own_session *s, unsigned per_thread, unsigned block) {
    if (s->options->shared_bytes) return (size_t)s->options->shared_bytes;
    if (!s->kernel->is.is_dynamic) return 0;
    return (size_t)per_thread * block * tally_type_size(s->kernel->is.type);
}

/* Returns the result as the host finds it: one value, or several that it combines by `op`. */
static struct own_number result_of(const struct own_session *s, const struct own_host *h,
                                   tally_op op, const void *input, const void *output,
                                   const struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const bool parts = h->form == OWN_SEGMENTS && h->segment;
    const uint64_t blocks = parts ? (r->n + h->segment - 1) / h->segment : 1;
    const bool is_one = h->combines || s->kernel->is.output == NULL;
    if (s->kernel->is.output) return own_fold(op, type, output, NULL, is_one ? 1 : r->grid, 1);
    return own_fold(op, type, input, NULL, blocks, parts ? h->segment : 1);
}

/* Notes which operators give the kernel's result. Only short launches of one block are compared. */
static void note_looks(const struct own_session *s, const struct own_host *h, const void *x,
                       const void *input, const void *output, struct own_run *r) {
    const struct own_number got = result_of(s, h, s->op, input, output, r);
    for (int k = 0; k < OWN_LOOKS_KINDS; k++)
        if (own_looks_like(s, (enum own_looks)k, got, x, r->n)) r->looks |= 1u << k;
}

/* Compares the result with the right one, and notes both in *r. */
static void judge(const struct own_session *s, const struct own_host *h, const void *x,
                  const void *y, int data, const void *input, const void *output,
                  struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const struct own_number right = own_fold(s->op, type, x, y, r->n, 1);
    const struct own_number got = result_of(s, h, s->op, input, output, r);
    double sizes = 0;
    r->least = r->greatest = own_get(type, x, 0).real;
    for (uint64_t i = 0; i < r->n; i++) {
        const double v = own_get(type, x, i).real;
        sizes += fabs(v) * (y ? 2 : 1);
        if (v < r->least) r->least = v;
        if (v > r->greatest) r->greatest = v;
    }
    /* n - 1 roundings of partial sums and one of the result, each at most u * sizes: so n * u * sizes. sizes is at
     * least the sum of the terms' magnitudes, as |y| is at most 2. The factor 1.001 leaves room for terms of order
     * u^2. */
    if (data == OWN_SPREAD)
        r->bound = (double)r->n * (type == TALLY_F32 ? 0x1p-24 : 0x1p-53) * sizes * 1.001;
    r->value = got.real;
    r->expected = right.real;
    r->is_right = r->result.is_complete && own_equals(type, got, right, r->bound);
    if (s->kernel->is.output && r->result.written == 0) r->is_right = false;
    if (r->grid == 1 && !y && r->n <= OWN_LOOKS_MOST) note_looks(s, h, x, input, output, r);
    if (r->is_right) return;
    if (r->result.fault == TALLY_OWN_RIGHT && *r->result.stray) {
        r->result.fault = r->result.stray_fault;
        r->result.line = r->result.stray_line;
        r->result.other_line = r->result.stray_other_line;
        r->result.detail = r->result.stray_detail;
        snprintf(r->result.sentence, sizeof r->result.sentence, "%s", r->result.stray);
    }
}

/* Returns how many basic blocks a warp may run between two barriers before it is taken for endless. 4 n^2, at most
 * 2^25, let a kernel end that compares every element with every other. */
static uint64_t patience_for(const struct own_host *h, uint64_t n) {
    const uint64_t pairs = n < 2900 ? 4 * n * n : UINT64_C(1) << 25;
    return (1 << 16) + 16 * n + (h->seems_endless ? 0 : pairs);
}

bool own_host_run(const struct own_session *s, const struct own_host *h, uint64_t n, int data,
                  uint64_t unit, void (*on_step)(void *context, const tally_ladder_step *step),
                  void *context, struct own_run *r) {
    const size_t size = tally_type_size(s->kernel->is.type);
    memset(r, 0, sizeof *r);
    if (s->work && *s->work > OWN_WORK_MOST) return false; /* report() writes the line */
    r->n = n;
    r->block = block_for(s, h, n);
    r->grid = grid_for(s, h, n);
    r->length = length_for(s, r->block, n);
    r->shared_bytes = shared_for(s, h->shared_per_thread, r->block);
    char *x = malloc((size_t)n * size), *input = malloc((size_t)n * size);
    char *output = malloc((size_t)r->grid * size);
    char *y = s->kernel->is.second ? malloc((size_t)n * size) : NULL;
    bool good = x && input && output && (y || !s->kernel->is.second);
    if (good) {
        own_fill(s, x, n, data, unit);
        if (y) own_fill_second(s, y, n, data);
        tally_own_launch how = launch_of(s, r, x, y);
        how.patience = patience_for(h, n);
        good = (s->program ? tally_own_time(s->program, &how, s->repeats, input, output,
                                            &r->seconds, &r->result)
                           : tally_own_run(s->kernel->own, 0, &how, on_step, context, input, output,
                                           &r->result)) == TALLY_OK;
        if (s->work) *s->work += r->result.work;
        if (s->program) r->result.written = 1; /* a device does not tell what the kernel writes */
        if (good)
            judge(s, h, x, y, data, input, output, r);
        else if (s->work && r->result.work > OWN_WORK)
            *s->work = OWN_WORK_MOST + 1;
        else
            failed("%s: %s", s->kernel->file, tally_error());
    } else {
        failed("no memory for %" PRIu64 " elements", n);
    }
    free(x);
    free(y);
    free(input);
    free(output);
    return good;
}

/* ---- Lengths beyond memory ---- */

enum { FAR_BLOCKS = 12, FAR_WINDOWS = 4096, FAR_PATIENCE = 1 << 16 };

struct far {
    unsigned blocks[FAR_BLOCKS];
    uint64_t starts[FAR_WINDOWS], counts[FAR_WINDOWS];
    tally_own_far windows;
    uint64_t elements; /* of all windows */
};

static void far_block(struct far *f, uint64_t block, uint64_t grid) {
    size_t at = f->windows.block_count;
    if (block >= grid || at == FAR_BLOCKS) return;
    for (size_t i = 0; i < at; i++)
        if (f->blocks[i] == block) return;
    for (; at > 0 && f->blocks[at - 1] > block; at--)
        f->blocks[at] = f->blocks[at - 1];
    f->blocks[at] = (unsigned)block;
    f->windows.block_count++;
}

/* Adds a window of `count` elements from `start` on, behind the others. A window that touches the last one makes that
 * longer. Returns false if there are too many windows. */
static bool far_window(struct far *f, uint64_t start, uint64_t count) {
    const size_t k = f->windows.windows;
    if (start >= f->windows.n) return true;
    if (count > f->windows.n - start) count = f->windows.n - start;
    f->elements += count;
    if (k && f->starts[k - 1] + f->counts[k - 1] == start) {
        f->counts[k - 1] += count;
        return true;
    }
    if (k == FAR_WINDOWS) return false;
    f->starts[k] = start;
    f->counts[k] = count;
    f->windows.windows++;
    return true;
}

/* Chooses the blocks that run, and the windows that are theirs: of `segment` elements in each of the grid's rounds. */
static bool far_choose(struct far *f, uint64_t n, uint64_t grid, uint64_t segment, bool walks) {
    const uint64_t round = grid * segment;
    f->windows =
        (tally_own_far){.blocks = f->blocks, .starts = f->starts, .counts = f->counts, .n = n};
    far_block(f, 0, grid);
    far_block(f, grid / 2, grid);
    far_block(f, grid - 1, grid);
    if (!walks)
        for (unsigned bits = 28; bits <= 32; bits++) /* where an index may wrap */
            far_block(f, (UINT64_C(1) << bits) / segment + 1, grid);
    for (uint64_t at = 0; at < (walks ? n : 1); at += round)
        for (size_t i = 0; i < f->windows.block_count; i++)
            if (!far_window(f, at + f->blocks[i] * segment, segment)) return false;
    return true;
}

/* Returns the combined results of the blocks that ran. A block leaves its result in an element of the output, or without
 * an output in the first element of its segment. */
static struct own_number far_result(const struct own_session *s, const struct far *f,
                                    uint64_t segment, const void *input, const void *output) {
    const tally_type type = s->kernel->is.type;
    const size_t size = tally_type_size(type);
    if (s->kernel->is.output) return own_fold(s->op, type, output, NULL, f->windows.block_count, 1);
    char firsts[FAR_BLOCKS * 8];
    for (size_t i = 0; i < f->windows.block_count; i++) {
        uint64_t at = 0;
        for (size_t k = 0; f->starts[k] + f->counts[k] <= f->blocks[i] * segment; k++)
            at += f->counts[k];
        for (size_t k = 0; k < f->windows.windows; k++)
            if (f->blocks[i] * segment - f->starts[k] < f->counts[k])
                at += f->blocks[i] * segment - f->starts[k];
        memcpy(firsts + i * size, (const char *)input + at * size, size);
    }
    return own_fold(s->op, type, firsts, NULL, f->windows.block_count, 1);
}

static bool far_run(const struct own_session *s, const struct own_host *h, struct far *f,
                    char *elements[4], struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const bool has_second = s->kernel->is.second != NULL;
    own_fill(s, elements[0], f->elements, OWN_DATA, 0);
    own_fill_second(s, elements[1], f->elements, OWN_DATA);
    tally_own_launch how = launch_of(s, r, elements[0], has_second ? elements[1] : NULL);
    how.n = (size_t)f->elements;
    how.outputs = f->windows.block_count;
    how.far = &f->windows;
    how.patience = FAR_PATIENCE;
    if (tally_own_run(s->kernel->own, 0, &how, NULL, NULL, elements[2], elements[3], &r->result) !=
        TALLY_OK)
        return false;
    const struct own_number right =
        own_fold(s->op, type, elements[0], has_second ? elements[1] : NULL, f->elements, 1);
    const struct own_number got = far_result(s, f, h->segment, elements[2], elements[3]);
    r->value = got.real;
    r->expected = right.real;
    r->is_right = r->result.is_complete && own_equals(type, got, right, 0);
    return r->result.fault != TALLY_OWN_ENDLESS;
}

bool own_host_far(const struct own_session *s, const struct own_host *h, uint64_t n, unsigned grid,
                  struct own_run *r) {
    const bool walks = h->form == OWN_WHOLE_GRID;
    const uint64_t blocks = walks ? grid : (n + h->segment - 1) / h->segment;
    if (!h->segment || !blocks || blocks > UINT32_MAX / 2) return false;
    memset(r, 0, sizeof *r);
    r->n = n;
    r->block = block_for(s, h, n);
    r->length = length_for(s, r->block, n);
    r->grid = (unsigned)blocks;
    r->shared_bytes = shared_for(s, h->shared_per_thread, r->block);
    struct far *f = calloc(1, sizeof *f);
    bool good = f && far_choose(f, n, blocks, h->segment, walks);
    char *elements[4] = {NULL, NULL, NULL, NULL}; /* x, y, what becomes of x, the output */
    for (size_t i = 0; i < 4 && good; i++)
        good = (elements[i] = calloc(f->elements + FAR_BLOCKS, 8)) != NULL;
    good = good && far_run(s, h, f, elements, r);
    for (size_t i = 0; i < 4; i++)
        free(elements[i]);
    free(f);
    return good;
}

bool own_host_shares(const struct own_session *s, uint64_t n, unsigned grid, unsigned told,
                     unsigned first, struct own_run *r) {
    enum { LANES = 32 };
    const unsigned blocks[] = {0, grid / 2, grid - 1};
    const uint64_t share = LANES * ((n - first) / ((uint64_t)grid * told));
    memset(r, 0, sizeof *r);
    *r = (struct own_run){.n = n, .length = n, .grid = grid, .block = LANES, .is_right = true};
    r->length = length_for(s, told, n);
    r->shared_bytes = shared_for(s, 1, BLOCK_MAX / 4);
    for (size_t i = 0; i < sizeof blocks / sizeof *blocks && r->is_right; i++) {
        const tally_own_far far = {
            .blocks = blocks + i, .block_count = 1, .n = n, .told = told, .first = first};
        tally_own_launch how = launch_of(s, r, NULL, NULL);
        if (i && blocks[i] == blocks[i - 1]) continue;
        how.n = 0;
        how.far = &far;
        how.patience = FAR_PATIENCE + 2 * share;
        if (tally_own_run(s->kernel->own, 0, &how, NULL, NULL, NULL, NULL, &r->result) != TALLY_OK)
            return false;
        r->is_right = r->result.far_read == share && !r->result.far_left;
        if (r->is_right) continue;
        if (!r->result.far_left)
            snprintf(r->result.sentence, sizeof r->result.sentence,
                     "the first warp of block %u reads %" PRIu64 " of the %" PRIu64
                     " elements that are its share",
                     blocks[i], (uint64_t)r->result.far_read, share);
    }
    return true;
}

/* ---- Finding the launch ---- */

/* Launches two blocks over more elements than they should need, to see which they touch. */
static bool probe(const struct own_session *s, unsigned block, unsigned shared_per_thread,
                  tally_own_result *out) {
    const uint64_t n = 64 * (uint64_t)block;
    struct own_run r = {.n = n,
                        .grid = 2,
                        .block = block,
                        .length = length_for(s, block, n),
                        .shared_bytes = shared_for(s, shared_per_thread, block)};
    char *x = malloc((size_t)n * tally_type_size(s->kernel->is.type));
    if (!x) return failed("no memory for %" PRIu64 " elements", n), false;
    own_fill(s, x, n, OWN_ONES, 0);
    tally_own_launch how = launch_of(s, &r, x, s->kernel->is.second ? x : NULL);
    how.outputs = (size_t)n;
    const bool good =
        tally_own_run(s->kernel->own, 0, &how, NULL, NULL, NULL, NULL, out) == TALLY_OK;
    free(x);
    return good;
}

static void read_probe(const tally_own_result *p, unsigned block, struct own_host *h) {
    const bool second = p->last[1] > p->first[1];
    h->block = block;
    h->combines = p->combines;
    h->form = OWN_SEGMENTS;
    if (second && p->first[1] > p->first[0]) {
        h->segment = p->first[1] - p->first[0];
        if (p->last[0] > p->first[1]) h->form = OWN_WHOLE_GRID;
    } else if (second || !p->last[0]) {
        h->form = OWN_ONE_BLOCK;
        h->per_thread = 2;
    } else { /* block 1 touched nothing, so that only block 0 shows the segment */
        h->segment = p->last[0] - p->first[0];
        if (h->segment > 2 * (uint64_t)block) h->segment = 2 * (uint64_t)block;
    }
}

/* Returns how well a launch does: right and without a fault is 3, right is 2, without a fault is 1, neither is 0; -1 if
 * it did not run. */
static int try(const struct own_session *s, struct own_host *h, uint64_t n) {
    struct own_run r;
    if (!own_host_run(s, h, n, OWN_DATA, 0, NULL, NULL, &r)) return -1;
    if (r.result.fault == TALLY_OWN_ENDLESS)
        return h->seems_endless = true, 3; /* no other launch is better */
    return 2 * r.is_right + (r.result.fault == TALLY_OWN_RIGHT);
}

/* Finds the best launch of one block: n / 2 threads, n threads, or always as many. Returns how well it does. */
static int find_one_block(const struct own_session *s, struct own_host *h) {
    static const unsigned per_thread[] = {2, 1, 0};
    int best = -2;
    struct own_host chosen = *h;
    for (size_t i = 0; i < sizeof per_thread / sizeof *per_thread && best < 3; i++) {
        struct own_host trial = *h;
        trial.per_thread = per_thread[i];
        const uint64_t n = (uint64_t)h->block * (per_thread[i] ? per_thread[i] : 8);
        const int score = try(s, &trial, n);
        if (score > best) {
            best = score;
            chosen = trial;
        }
    }
    /* What is right for n/2 threads may be right for any number of them. */
    if (best == 3 && chosen.per_thread) {
        struct own_host trial = chosen;
        trial.per_thread = 0;
        if (try(s, &trial, 8 * (uint64_t)h->block + 5) == 3) chosen = trial;
    }
    *h = chosen;
    return best;
}

/* Finds the best launch with blocks of `block` threads. Returns how well it does. */
static int find_at(const struct own_session *s, unsigned block, unsigned shared_per_thread,
                   struct own_host *out) {
    tally_own_result seen;
    *out = (struct own_host){.shared_per_thread = shared_per_thread};
    if (!probe(s, block, shared_per_thread, &seen)) return -1;
    read_probe(&seen, block, out);
    if (s->options->grid == 1) {
        out->form = OWN_ONE_BLOCK;
        out->per_thread = 2;
    }
    if (out->form == OWN_ONE_BLOCK) return find_one_block(s, out);
    return try(s, out, out->form == OWN_SEGMENTS ? 2 * out->segment : 16 * (uint64_t)block);
}

bool own_host_at(const struct own_session *s, unsigned block, const struct own_host *like,
                 struct own_host *out) {
    tally_own_result seen;
    *out = *like;
    out->block = block;
    if (s->kernel->template_block && block != s->kernel->template_block) return false;
    if (like->is_serial) return false;
    if (like->form == OWN_ONE_BLOCK) return true;
    if (!probe(s, block, like->shared_per_thread, &seen)) return false;
    read_probe(&seen, block, out);
    return out->form == like->form;
}

/* Returns whether several blocks make the kernel wrong because they disturb each other, and not for want of a fence. */
static bool is_wrong_by_blocks(const struct own_session *s, const struct own_host *h) {
    const uint64_t n = h->form == OWN_SEGMENTS ? 2 * h->segment : 16 * (uint64_t)h->block;
    struct own_run r;
    if (!own_host_run(s, h, n, OWN_DATA, 0, NULL, NULL, &r) || r.grid < 2) return false;
    if (r.result.fault == TALLY_OWN_ORDER || r.result.fault == TALLY_OWN_ENDLESS) return false;
    return !r.is_right ||
           (r.result.fault == TALLY_OWN_RACE && (r.result.detail == 2 || r.result.detail == 4));
}

bool own_host_find(const struct own_session *s, struct own_host *out) {
    unsigned blocks[OWN_BLOCKS_MAX + 2], count = 0;
    int best = -2;
    if (s->block) {
        blocks[count++] = s->block;
    } else {
        /* A number below 32 is seldom a block. An array of 1024 is often made for any block, as that is the largest
         * one. */
        for (size_t i = 0; i < s->kernel->block_count; i++)
            if (s->kernel->blocks[i] >= 32 && s->kernel->blocks[i] < BLOCK_MAX)
                blocks[count++] = s->kernel->blocks[i];
        blocks[count++] = PROBE_BLOCK;
        blocks[count++] = 32;
        for (size_t i = 0; i < s->kernel->block_count; i++)
            if (s->kernel->blocks[i] < 32 || s->kernel->blocks[i] == BLOCK_MAX)
                blocks[count++] = s->kernel->blocks[i];
    }
    const unsigned shared_most = s->kernel->is.is_dynamic && !s->options->shared_bytes ? 2 : 1;
    for (unsigned i = 0; i < count && best < 3; i++)
        for (unsigned shared = 1; shared <= shared_most && best < 3; shared++) {
            struct own_host trial;
            const int score = find_at(s, blocks[i], shared, &trial);
            if (score <= best) continue;
            best = score;
            *out = trial;
        }
    /* If several blocks make it wrong, one that walks the whole array may make it right, or leave only another
     * fault. */
    const bool may_be_one = best >= 0 && best < 3 && !s->options->grid &&
                            out->form != OWN_ONE_BLOCK && !out->combines &&
                            !s->kernel->counts_blocks && is_wrong_by_blocks(s, out);
    const bool is_of_segments = out->form == OWN_SEGMENTS && strstr(s->kernel->text, "blockIdx");
    for (unsigned i = 0; i < count && may_be_one && best < 3; i++) {
        struct own_host trial = *out;
        trial.form = OWN_ONE_BLOCK;
        trial.block = blocks[i];
        trial.segment = 0;
        trial.per_thread = 0;
        trial.must_be_one = true;
        /* A kernel that takes n is to walk an array of any length. One that does not may be for a length that fits its
         * block only. */
        const int score = s->kernel->is.length ? try(s, &trial, 8 * (uint64_t)trial.block + 5)
                                               : find_one_block(s, &trial);
        /* Blocks that own segments walk no array: one of them is a launch only if it is right. */
        if (score <= best || (is_of_segments && score < 2)) continue;
        best = score;
        *out = trial;
    }
    if (s->kernel->is_serial && best >= 0 && best < 3 && !s->block && !s->options->grid) {
        struct own_host trial = {.form = OWN_ONE_BLOCK, .block = 1, .is_serial = true};
        if (try(s, &trial, 77) == 3) best = 3, *out = trial;
    }
    if (best >= 0) return true;
    if (s->work && *s->work > OWN_WORK_MOST) return false; /* report() writes the line */
    return failed("%s: %s", s->kernel->file, tally_error()), false;
}

/* ---- In words ---- */

void own_host_words(const struct own_session *s, const struct own_host *h, const struct own_run *r,
                    char *text, size_t room) {
    const tally_own_kernel *k = &s->kernel->is;
    char arguments[200], shared[64] = "", at[64];
    snprintf(arguments, sizeof arguments, "%s%s%s", k->input, k->output ? ", " : "",
             k->output ? k->output : "");
    if (k->length)
        snprintf(arguments + strlen(arguments), sizeof arguments - strlen(arguments), ", %" PRIu64,
                 r->length);
    if (r->shared_bytes) snprintf(shared, sizeof shared, ", %zu", r->shared_bytes);
    int used = snprintf(text, room, "%s<<<%u, %u%s>>>(%s), once; ", s->kernel->name, r->grid,
                        r->block, shared, arguments);
    text += used < (int)room ? used : (int)room - 1;
    room -= used < (int)room ? (size_t)used : room - 1;
    if (h->form == OWN_ONE_BLOCK && h->per_thread && !s->block)
        snprintf(at, sizeof at, "one block of n%s threads", h->per_thread == 2 ? " / 2" : "");
    else if (h->is_serial)
        snprintf(at, sizeof at, "one thread");
    else if (h->form == OWN_ONE_BLOCK)
        snprintf(at, sizeof at, "one block");
    else if (h->form == OWN_SEGMENTS && h->segment == 1)
        snprintf(at, sizeof at, "a block for every element");
    else if (h->form == OWN_SEGMENTS)
        snprintf(at, sizeof at, "a block for every %" PRIu64 " elements", h->segment);
    else
        snprintf(at, sizeof at, "blocks that walk the array together");
    used = snprintf(text, room, "%s; ", at);
    text += used < (int)room ? used : (int)room - 1;
    room -= used < (int)room ? (size_t)used : room - 1;
    if (k->output)
        snprintf(text, room,
                 r->grid > 1 && !h->combines
                     ? "%s holds the identity at first, and the host combines its %u elements"
                     : "%s[0] holds the identity at first, and the result in the end",
                 k->output, r->grid);
    else if (h->form == OWN_SEGMENTS && r->grid > 1)
        snprintf(text, room, "the host combines the first element of each segment of %s", k->input);
    else
        snprintf(text, room, "the result is %s[0]", k->input);
}
