/* own_host.c - see own_host.h. */
#include "own_host.h"

#include "message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MAX = 1024, PROBE_BLOCK = 64, GRID_SIZED = 32 };

/* ---- Elements: small integers, so that every order of a sum gives the same float ---- */

static bool is_float(tally_type type) {
    return type == TALLY_F32 || type == TALLY_F64;
}

static bool is_signed(tally_type type) {
    return type == TALLY_I8 || type == TALLY_I16 || type == TALLY_I32 || type == TALLY_I64;
}

static void put(tally_type type, void *array, uint64_t i, int64_t value) {
    const size_t size = tally_type_size(type);
    const float f = (float)value;
    const double d = (double)value;
    memcpy((char *)array + i * size,
           type == TALLY_F32   ? (const void *)&f
           : type == TALLY_F64 ? (const void *)&d
                               : (const void *)&value,
           size);
}

/* A float's value; an integer's, made as wide as it goes. */
struct number {
    double real;
    int64_t whole;
};

static struct number get(tally_type type, const void *array, uint64_t i) {
    const size_t size = tally_type_size(type);
    const char *at = (const char *)array + i * size;
    struct number v = {0, 0};
    if (type == TALLY_F32) {
        float f;
        memcpy(&f, at, sizeof f);
        v.real = (double)f;
    } else if (type == TALLY_F64) {
        memcpy(&v.real, at, sizeof v.real);
    } else {
        memcpy(&v.whole, at, size);
        const unsigned unused = 64 - 8 * (unsigned)size;
        v.whole = (int64_t)((uint64_t)v.whole << unused);
        v.whole = is_signed(type) ? v.whole >> unused : (int64_t)((uint64_t)v.whole >> unused);
        v.real = is_signed(type) ? (double)v.whole : (double)(uint64_t)v.whole;
    }
    return v;
}

static int64_t datum(tally_op op, tally_type type, uint64_t i) {
    const uint64_t mixed = (i + 1) * UINT64_C(0x9e3779b97f4a7c15) >> 32;
    switch (op) {
    case TALLY_SUM:
        return 1 + (int64_t)(mixed % 9);
    case TALLY_PROD: /* few 2s, so that floats are exact */
        return i % 37 == 3 && i < 700 ? 2 : 1;
    case TALLY_AND:
        return (int64_t) ~(UINT64_C(1) << mixed % 61);
    case TALLY_MIN:
    case TALLY_MAX:
        return (int64_t)(mixed % 100) - (is_float(type) || is_signed(type) ? 50 : 0);
    default:
        return (int64_t)mixed;
    }
}

static int64_t combined(tally_op op, bool has_sign, int64_t a, int64_t b) {
    const bool less = has_sign ? b < a : (uint64_t)b < (uint64_t)a;
    switch (op) {
    case TALLY_SUM:
        return (int64_t)((uint64_t)a + (uint64_t)b);
    case TALLY_PROD:
        return (int64_t)((uint64_t)a * (uint64_t)b);
    case TALLY_MIN:
        return less ? b : a;
    case TALLY_MAX:
        return less ? a : b;
    case TALLY_AND:
        return a & b;
    case TALLY_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

static double combined_real(tally_op op, double a, double b) {
    switch (op) {
    case TALLY_SUM:
        return a + b;
    case TALLY_PROD:
        return a * b;
    case TALLY_MIN:
        return fmin(a, b);
    default:
        return fmax(a, b);
    }
}

/* Combines elements `step` apart, of which there are `count`, in order. The elements of floats are small
 * integers: no double is rounded here. */
static struct number fold(tally_op op, tally_type type, const void *x, uint64_t count,
                          uint64_t step) {
    struct number all = get(type, x, 0);
    for (uint64_t i = 1; i < count; i++) {
        const struct number v = get(type, x, i * step);
        if (is_float(type)) {
            all.real = combined_real(op, all.real, v.real);
        } else {
            put(type, &all.whole, 0, combined(op, is_signed(type), all.whole, v.whole));
            all = get(type, &all.whole, 0);
        }
    }
    if (type == TALLY_F32) all.real = (double)(float)all.real;
    return all;
}

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

static void fill(const struct own_session *s, void *x, uint64_t n, int data, uint64_t unit) {
    const tally_type type = s->kernel->is.type;
    const uint64_t few =
        n >> 20; /* of so many elements one is not 0: the sum is an exact float still */
    const bool thin = s->op == TALLY_SUM && few > 1;
    for (uint64_t i = 0; i < n; i++)
        put(type, x, i,
            data != OWN_DATA              ? data == OWN_ONES || i == unit
            : thin && i * 40503 / 7 % few ? 0
                                          : datum(s->op, type, i));
}

void own_host_value(const struct own_session *s, double number, tally_value *out) {
    const tally_type type = s->kernel->is.type;
    *out = (tally_value){.type = type};
    if (type == TALLY_F32)
        out->as.f32 = (float)number;
    else if (type == TALLY_F64)
        out->as.f64 = number;
    else
        put(type, &out->as, 0, number < 0 ? (int64_t)number : (int64_t)(uint64_t)number);
}

void *own_host_elements(const struct own_session *s, uint64_t n) {
    void *x = malloc((size_t)n * tally_type_size(s->kernel->is.type));
    if (x) fill(s, x, n, OWN_DATA, 0);
    return x;
}

static tally_own_launch launch_of(const struct own_session *s, const struct own_run *r,
                                  const void *x) {
    return (tally_own_launch){.op = s->op,
                              .x = x,
                              .n = (size_t)r->n,
                              .grid = r->grid,
                              .block = r->block,
                              .length = r->length,
                              .outputs = r->grid,
                              .shared_bytes = r->shared_bytes,
                              .forgives = 1,
                              .accesses = s->accesses};
}

static size_t shared_for(const struct own_session *s, unsigned per_thread, unsigned block) {
    if (s->options->shared_bytes) return (size_t)s->options->shared_bytes;
    if (!s->kernel->is.is_dynamic) return 0;
    return (size_t)per_thread * block * tally_type_size(s->kernel->is.type);
}

/* Takes the result from where the host finds it, and holds it against the right one. */
static void judge(const struct own_session *s, const struct own_host *h, const void *x,
                  const void *input, const void *output, struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const struct number right = fold(s->op, type, x, r->n, 1);
    const bool parts = h->form == OWN_SEGMENTS && h->segment;
    const uint64_t blocks = parts ? (r->n + h->segment - 1) / h->segment : 1;
    const struct number got = s->kernel->is.output
                                  ? fold(s->op, type, output, h->combines ? 1 : r->grid, 1)
                                  : fold(s->op, type, input, blocks, parts ? h->segment : 1);
    r->value = got.real;
    r->expected = right.real;
    r->is_right = r->result.is_complete &&
                  (is_float(type) ? got.real == right.real : got.whole == right.whole);
    if (s->kernel->is.output && r->result.written == 0) r->is_right = false;
}

bool own_host_run(const struct own_session *s, const struct own_host *h, uint64_t n, int data,
                  uint64_t unit, void (*on_step)(void *context, const tally_ladder_step *step),
                  void *context, struct own_run *r) {
    const size_t size = tally_type_size(s->kernel->is.type);
    memset(r, 0, sizeof *r);
    r->n = n;
    r->block = block_for(s, h, n);
    r->grid = grid_for(s, h, n);
    r->length = length_for(s, r->block, n);
    r->shared_bytes = shared_for(s, h->shared_per_thread, r->block);
    char *x = malloc((size_t)n * size), *input = malloc((size_t)n * size);
    char *output = malloc((size_t)r->grid * size);
    bool good = x && input && output;
    if (good) {
        fill(s, x, n, data, unit);
        const tally_own_launch how = launch_of(s, r, x);
        good = (s->program ? tally_own_time(s->program, &how, s->repeats, input, output,
                                            &r->seconds, &r->result)
                           : tally_own_run(s->kernel->own, 0, &how, on_step, context, input, output,
                                           &r->result)) == TALLY_OK;
        if (s->program) r->result.written = 1; /* nobody sees there what it writes */
        if (good)
            judge(s, h, x, input, output, r);
        else
            failed("%s: %s", s->kernel->file, tally_error());
    } else {
        failed("no memory for %" PRIu64 " elements", n);
    }
    free(x);
    free(input);
    free(output);
    return good;
}

/* ---- Finding the launch ---- */

/* A launch of two blocks over more elements than they should need, to see which they touch. */
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
    fill(s, x, n, OWN_ONES, 0);
    tally_own_launch how = launch_of(s, &r, x);
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
    } else { /* it came to no second block: its first is all there is to see */
        h->segment = p->last[0] - p->first[0];
        if (h->segment > 2 * (uint64_t)block) h->segment = 2 * (uint64_t)block;
    }
}

/* How well a launch does: right and without a fault is 3, right is 2, without a fault is 1. */
static int try(const struct own_session *s, const struct own_host *h, uint64_t n) {
    struct own_run r;
    if (!own_host_run(s, h, n, OWN_DATA, 0, NULL, NULL, &r)) return -1;
    if (r.result.fault == TALLY_OWN_ENDLESS) return 3; /* no other launch is better */
    return 2 * r.is_right + (r.result.fault == TALLY_OWN_RIGHT);
}

/* Of one block: n/2 threads, n threads, or always as many. */
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

/* The best launch with blocks of that many threads, and how well it does. */
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
    if (like->form == OWN_ONE_BLOCK) return true;
    if (!probe(s, block, like->shared_per_thread, &seen)) return false;
    read_probe(&seen, block, out);
    return out->form == like->form;
}

bool own_host_find(const struct own_session *s, struct own_host *out) {
    unsigned blocks[OWN_BLOCKS_MAX + 2], count = 0;
    int best = -2;
    if (s->block) {
        blocks[count++] = s->block;
    } else {
        for (size_t i = 0; i < s->kernel->block_count; i++)
            blocks[count++] = s->kernel->blocks[i];
        blocks[count++] = PROBE_BLOCK;
        blocks[count++] = 32;
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
    if (best >= 0) return true;
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
