/* own_host.c - see own_host.h. */
#include "teach/own_host.h"

#include "common/message.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK_MAX = 1024, PROBE_BLOCK = 64, GRID_SIZED = 32 };

/* ---- Elements ---- */

static bool is_float(tally_type type) {
    return type == TALLY_F32 || type == TALLY_F64;
}

static bool is_signed(tally_type type) {
    return type == TALLY_I8 || type == TALLY_I16 || type == TALLY_I32 || type == TALLY_I64;
}

/* A float's value; an integer's, made as wide as it goes. */
struct number {
    double real;
    int64_t whole;
};

static void put(tally_type type, void *array, uint64_t i, struct number value) {
    const size_t size = tally_type_size(type);
    const float f = (float)value.real;
    memcpy((char *)array + i * size,
           type == TALLY_F32   ? (const void *)&f
           : type == TALLY_F64 ? (const void *)&value.real
                               : (const void *)&value.whole,
           size);
}

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

const char *own_data_words(enum own_data data) {
    static const char *const words[OWN_DATA_KINDS] = {
        [OWN_DATA] = "small whole numbers",
        [OWN_ONES] = "ones",
        [OWN_UNIT] = "one 1 among zeros",
        [OWN_SIGNS] = "numbers of both signs",
        [OWN_NEGATIVE] = "negative numbers",
        [OWN_POSITIVE] = "great positive numbers",
        [OWN_FRACTIONS] = "fractions",
        [OWN_WIDTH] = "numbers that need all bits of the type",
        [OWN_SPREAD] = "numbers of widely different size",
        [OWN_TIES] = "numbers of one magnitude and both signs"};
    return words[data];
}

bool own_data_suits(enum own_data data, tally_op op, tally_type type) {
    const bool bits = op == TALLY_AND || op == TALLY_OR || op == TALLY_XOR;
    switch (data) {
    case OWN_SIGNS:
    case OWN_NEGATIVE:
    case OWN_TIES:
        return !bits && (is_float(type) || is_signed(type));
    case OWN_POSITIVE:
        return op == TALLY_MIN || op == TALLY_MAX;
    case OWN_FRACTIONS:
        return is_float(type);
    case OWN_SPREAD:
        return is_float(type) && op == TALLY_SUM;
    default:
        return true;
    }
}

/* A hash of 64 bits (the finalizer of SplitMix64). */
static uint64_t hash(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static int64_t small(tally_op op, tally_type type, uint64_t i) {
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

/* A factor. All but some 24 of n are 1 or -1; of these at most six have a mantissa, of `bits` bits, so that products in
 * any order are exact. */
static double factor(enum own_data data, tally_type type, uint64_t i, uint64_t n, uint64_t h) {
    const uint64_t apart = n / 24 + 1;
    const double sign = data == OWN_NEGATIVE || (data != OWN_WIDTH && h & 1) ? -1 : 1;
    if (i % apart) return sign;
    const uint64_t k = i / apart;
    if (k % 4 == 0 && data == OWN_FRACTIONS) return sign * 1.5;
    if (k < 3 && data == OWN_WIDTH) return type == TALLY_F64 ? 1 + 0x1p-16 : 1 + 0x1p-7;
    return sign * (k % 2 ? 2 : 0.5 + (data != OWN_FRACTIONS) * 1.5);
}

/* A term of a sum. Sums of absolute values stay below 2^24 of the terms' unit for floats, 2^53 for doubles. */
static double term(enum own_data data, tally_type type, uint64_t n, uint64_t h) {
    const double sign = h >> 63 ? -1 : 1;
    const int bits = type == TALLY_F64 ? 50 : 21;
    const double most = ldexp(1, bits) / (double)n;
    switch (data) {
    case OWN_NEGATIVE:
        return -1 - (double)(h % 9);
    case OWN_FRACTIONS: /* multiples of 2^-6, or of 2^-30 */
        return sign * (double)(h % (type == TALLY_F64 ? UINT64_C(1) << 32 : 512)) *
               (type == TALLY_F64 ? 0x1p-30 : 0x1p-6);
    case OWN_WIDTH:
        return sign * (most < 2 ? 1 : floor(most - (double)(h % 1024) * most * 0x1p-12));
    case OWN_SPREAD:
        return sign * ldexp(1 + (double)(h % 4096) * 0x1p-12, (int)(h >> 20 & 31) - 16);
    case OWN_TIES:
        return sign * 3;
    default:
        return sign * (double)(1 + h % 50);
    }
}

/* A candidate for the least or the greatest. */
static double candidate(enum own_data data, tally_type type, uint64_t h) {
    const double sign = h >> 63 ? -1 : 1;
    const double far = type == TALLY_F64 ? 1e300 : 1e37;
    switch (data) {
    case OWN_NEGATIVE:
        return -far * (1 + (double)(h % 1024) * 0x1p-10);
    case OWN_POSITIVE:
        return far * (1 + (double)(h % 1024) * 0x1p-10);
    case OWN_FRACTIONS: /* between -1/2 and 1/2 */
        return (double)(h >> (type == TALLY_F64 ? 14 : 42)) *
                   (type == TALLY_F64 ? 0x1p-50 : 0x1p-22) -
               0.5;
    case OWN_WIDTH:
    case OWN_SPREAD:
        return sign * ldexp(1 + (double)(h % 4096) * 0x1p-12, (int)(h >> 20 & 127) - 64);
    case OWN_TIES:
        return sign * 7.5;
    default:
        return sign * (double)(1 + h % 50);
    }
}

static int64_t whole_number(enum own_data data, tally_op op, tally_type type, uint64_t i,
                            uint64_t n, uint64_t h) {
    const unsigned bits = 8 * (unsigned)tally_type_size(type) - is_signed(type);
    const int64_t sign = h >> 63 ? -1 : 1;
    const uint64_t all = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    const bool is_extreme = op == TALLY_MIN || op == TALLY_MAX;
    if (op == TALLY_OR || op == TALLY_AND) { /* each bit is one element's */
        uint64_t mine = 0;
        for (unsigned b = 0; b < 8 * tally_type_size(type); b++)
            if (i == hash(b * 7 + n) % n) mine |= UINT64_C(1) << b;
        return (int64_t)(op == TALLY_OR ? mine : ~mine);
    }
    if (op == TALLY_XOR) return (int64_t)h;
    if (op == TALLY_PROD)
        return data == OWN_WIDTH ? (int64_t)(h | 1)
                                 : (i % (n / 16 + 1) ? 1 : 3) * (data == OWN_NEGATIVE ? -1 : sign);
    switch (data) {
    case OWN_NEGATIVE:
        return is_extreme ? -(int64_t)(all - h % (all / 8)) : -1 - (int64_t)(h % 9);
    case OWN_POSITIVE:
        return (int64_t)(all - h % (all / 8));
    case OWN_WIDTH:
        if (is_extreme || bits < 31) return (int64_t)h;
        return (is_signed(type) ? sign : 1) * (int64_t)(all / n - h % (all / n / 4 + 1));
    case OWN_TIES:
        return sign * 7;
    default:
        return sign * (int64_t)(1 + h % 50);
    }
}

static struct number datum(const struct own_session *s, enum own_data data, uint64_t i, uint64_t n,
                           uint64_t unit) {
    const tally_type type = s->kernel->is.type;
    const uint64_t h = hash(hash(s->options->seed + 64 * (uint64_t)data) + i);
    struct number v = {0, 0};
    if (data <= OWN_UNIT) {
        v.whole = data == OWN_DATA ? small(s->op, type, i) : data == OWN_ONES || i == unit;
        v.real = (double)v.whole;
    } else if (data == OWN_POWERS) {
        v.whole = INT64_C(1) << i;
        v.real = (double)v.whole;
    } else if (!is_float(type)) {
        v.whole = whole_number(data, s->op, type, i, n, h);
    } else if (s->op == TALLY_PROD) {
        v.real = factor(data, type, i, n, h);
    } else {
        v.real = s->op == TALLY_SUM ? term(data, type, n, h) : candidate(data, type, h);
    }
    return v;
}

/* Returns element i of the second array: a power of two, so that a product has no more bits than its other factor. */
static struct number second_datum(tally_type type, enum own_data data, uint64_t i) {
    static const double floats[] = {1, -1, 2, 0.5};
    struct number v = {1, 1};
    if (data == OWN_ONES || data == OWN_UNIT) return v;
    v.real = data == OWN_DATA ? 1 + (double)(i % 3) : floats[hash(i) % 4];
    v.whole = 1 + (int64_t)(i % 3);
    if (is_signed(type) && data != OWN_DATA && hash(i) & 1) v.whole = -v.whole;
    return v;
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

static struct number one(int64_t whole) {
    return (struct number){(double)whole, whole};
}

/* Combines elements `step` apart, of which there are `count`, in order; with y, products. No double is rounded here,
 * but those of OWN_SPREAD, by less than their bound. */
static struct number fold(tally_op op, tally_type type, const void *x, const void *y,
                          uint64_t count, uint64_t step) {
    struct number all = {0, 0};
    long double sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct number v = get(type, x, i * step);
        if (y) {
            const struct number w = get(type, y, i * step);
            v.real *= w.real;
            v.whole = (int64_t)((uint64_t)v.whole * (uint64_t)w.whole);
        }
        sum += (long double)v.real;
        if (is_float(type)) {
            all.real = i ? combined_real(op, all.real, v.real) : v.real;
        } else {
            struct number next =
                one(i ? combined(op, is_signed(type), all.whole, v.whole) : v.whole);
            put(type, &next.whole, 0, next);
            all = get(type, &next.whole, 0);
        }
    }
    if (is_float(type) && op == TALLY_SUM) all.real = (double)sum;
    if (type == TALLY_F32) all.real = (double)(float)all.real;
    return all;
}

static const tally_op look_ops[] = {
    [OWN_LOOKS_SUM] = TALLY_SUM, [OWN_LOOKS_PROD] = TALLY_PROD, [OWN_LOOKS_MIN] = TALLY_MIN,
    [OWN_LOOKS_MAX] = TALLY_MAX, [OWN_LOOKS_AND] = TALLY_AND,   [OWN_LOOKS_OR] = TALLY_OR,
    [OWN_LOOKS_XOR] = TALLY_XOR};

/* Reduces the elements by an operator that a wrong kernel may implement instead of the one asked for. */
static struct number other_fold(enum own_looks look, tally_type type, const void *x, uint64_t n) {
    struct number all = {0, 0};
    if (look <= OWN_LOOKS_XOR) return fold(look_ops[look], type, x, NULL, n, 1);
    if (look == OWN_LOOKS_MEAN) {
        all = fold(TALLY_SUM, type, x, NULL, n, 1);
        return (struct number){all.real / (double)n, all.whole / (int64_t)n};
    }
    for (uint64_t i = 0; i < n; i++) {
        struct number v = get(type, x, i);
        const bool negative = is_float(type) ? v.real < 0 : is_signed(type) && v.whole < 0;
        const struct number size = {negative ? -v.real : v.real, negative ? -v.whole : v.whole};
        if (look == OWN_LOOKS_NORM1)
            all = (struct number){all.real + size.real, all.whole + size.whole};
        if (look == OWN_LOOKS_SUMSQ)
            all = (struct number){all.real + v.real * v.real, all.whole + v.whole * v.whole};
        if (look == OWN_LOOKS_NORMINF && size.real > all.real) all = size;
        if (look == OWN_LOOKS_COUNT) all = one((int64_t)n);
    }
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

static void fill(const struct own_session *s, void *x, uint64_t n, int data, uint64_t unit) {
    const tally_type type = s->kernel->is.type;
    const uint64_t few =
        n >> 20; /* of so many elements one is not 0: the sum is an exact float still */
    const bool thin = s->op == TALLY_SUM && data == OWN_DATA && few > 1;
    for (uint64_t i = 0; i < n; i++)
        put(type, x, i,
            thin && i * 40503 / 7 % few ? one(0) : datum(s, (enum own_data)data, i, n, unit));
}

static void fill_second(const struct own_session *s, void *y, uint64_t n, int data) {
    for (uint64_t i = 0; i < n; i++)
        put(s->kernel->is.type, y, i, second_datum(s->kernel->is.type, (enum own_data)data, i));
}

void own_host_value(const struct own_session *s, double number, tally_value *out) {
    const tally_type type = s->kernel->is.type;
    *out = (tally_value){.type = type};
    if (type == TALLY_F32)
        out->as.f32 = (float)number;
    else if (type == TALLY_F64)
        out->as.f64 = number;
    else
        put(type, &out->as, 0, one(number < 0 ? (int64_t)number : (int64_t)(uint64_t)number));
}

void *own_host_elements(const struct own_session *s, uint64_t n) {
    void *x = malloc((size_t)n * tally_type_size(s->kernel->is.type));
    if (x) fill(s, x, n, OWN_DATA, 0);
    return x;
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

/* The result, from where the host finds it: combined by `op` where there are several values. */
static struct number result_of(const struct own_session *s, const struct own_host *h, tally_op op,
                               const void *input, const void *output, const struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const bool parts = h->form == OWN_SEGMENTS && h->segment;
    const uint64_t blocks = parts ? (r->n + h->segment - 1) / h->segment : 1;
    const bool is_one = h->combines || s->kernel->is.output == NULL;
    if (s->kernel->is.output) return fold(op, type, output, NULL, is_one ? 1 : r->grid, 1);
    return fold(op, type, input, NULL, blocks, parts ? h->segment : 1);
}

static bool equals(tally_type type, struct number a, struct number b, double bound) {
    if (!is_float(type)) return a.whole == b.whole;
    return a.real == b.real || fabs(a.real - b.real) <= bound;
}

/* Returns the value that an integer output holds before the launch, as a kernel may add to it. */
static int64_t identity_of(tally_op op, tally_type type) {
    const unsigned bits = 8 * (unsigned)tally_type_size(type) - is_signed(type);
    const uint64_t most = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    switch (op) {
    case TALLY_PROD:
        return 1;
    case TALLY_AND:
        return -1;
    case TALLY_MIN:
        return (int64_t)most;
    case TALLY_MAX:
        return is_signed(type) ? -(int64_t)most - 1 : 0;
    default:
        return 0;
    }
}

/* Returns whether the kernel's result is the other operator's, or that combined with what the output holds at first. */
static bool looks_like(const struct own_session *s, enum own_looks look, struct number got,
                       struct number other) {
    const tally_type type = s->kernel->is.type;
    const double bound = look == OWN_LOOKS_MEAN ? 1e-5 * fabs(other.real) : 0; /* it is rounded */
    if (equals(type, got, other, bound)) return true;
    if (look > OWN_LOOKS_XOR || is_float(type)) return false;
    struct number all =
        one(combined(look_ops[look], is_signed(type), identity_of(s->op, type), other.whole));
    put(type, &all.whole, 0, all);
    return got.whole == get(type, &all.whole, 0).whole;
}

/* Notes which operators give the kernel's result. Only short launches of one block are compared. */
static void note_looks(const struct own_session *s, const struct own_host *h, const void *x,
                       const void *input, const void *output, struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const struct number got = result_of(s, h, s->op, input, output, r);
    for (int k = 0; k < OWN_LOOKS_KINDS; k++) {
        const bool of_bits = k >= OWN_LOOKS_AND && k <= OWN_LOOKS_XOR;
        if (of_bits && is_float(type)) continue;
        const struct number other = other_fold((enum own_looks)k, type, x, r->n);
        if (looks_like(s, (enum own_looks)k, got, other)) r->looks |= 1u << k;
    }
}

/* Takes the result, and holds it against the right one. */
static void judge(const struct own_session *s, const struct own_host *h, const void *x,
                  const void *y, int data, const void *input, const void *output,
                  struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const struct number right = fold(s->op, type, x, y, r->n, 1);
    const struct number got = result_of(s, h, s->op, input, output, r);
    double sizes = 0;
    r->least = r->greatest = get(type, x, 0).real;
    for (uint64_t i = 0; i < r->n; i++) {
        const double v = get(type, x, i).real;
        sizes += fabs(v) * (y ? 2 : 1);
        if (v < r->least) r->least = v;
        if (v > r->greatest) r->greatest = v;
    }
    /* n - 1 roundings, each of a partial sum that is at most the sum of the sizes; and the result's own. */
    if (data == OWN_SPREAD)
        r->bound = (double)r->n * (type == TALLY_F32 ? 0x1p-24 : 0x1p-53) * sizes * 1.001;
    r->value = got.real;
    r->expected = right.real;
    r->is_right = r->result.is_complete && equals(type, got, right, r->bound);
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

/* Returns how many basic blocks a warp may run between two barriers until it is taken for endless: a kernel that compares every
 * element with every other ends. */
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
        fill(s, x, n, data, unit);
        if (y) fill_second(s, y, n, data);
        tally_own_launch how = launch_of(s, r, x, y);
        how.patience = patience_for(h, n);
        good = (s->program ? tally_own_time(s->program, &how, s->repeats, input, output,
                                            &r->seconds, &r->result)
                           : tally_own_run(s->kernel->own, 0, &how, on_step, context, input, output,
                                           &r->result)) == TALLY_OK;
        if (s->work) *s->work += r->result.work;
        if (s->program) r->result.written = 1; /* nobody sees there what it writes */
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

/* Adds elements that are there, behind those that are; a window that touches the last one makes it longer. */
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
static struct number far_result(const struct own_session *s, const struct far *f, uint64_t segment,
                                const void *input, const void *output) {
    const tally_type type = s->kernel->is.type;
    const size_t size = tally_type_size(type);
    if (s->kernel->is.output) return fold(s->op, type, output, NULL, f->windows.block_count, 1);
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
    return fold(s->op, type, firsts, NULL, f->windows.block_count, 1);
}

static bool far_run(const struct own_session *s, const struct own_host *h, struct far *f,
                    char *elements[4], struct own_run *r) {
    const tally_type type = s->kernel->is.type;
    const bool has_second = s->kernel->is.second != NULL;
    fill(s, elements[0], f->elements, OWN_DATA, 0);
    fill_second(s, elements[1], f->elements, OWN_DATA);
    tally_own_launch how = launch_of(s, r, elements[0], has_second ? elements[1] : NULL);
    how.n = (size_t)f->elements;
    how.outputs = f->windows.block_count;
    how.far = &f->windows;
    how.patience = FAR_PATIENCE;
    if (tally_own_run(s->kernel->own, 0, &how, NULL, NULL, elements[2], elements[3], &r->result) !=
        TALLY_OK)
        return false;
    const struct number right =
        fold(s->op, type, elements[0], has_second ? elements[1] : NULL, f->elements, 1);
    const struct number got = far_result(s, f, h->segment, elements[2], elements[3]);
    r->value = got.real;
    r->expected = right.real;
    r->is_right = r->result.is_complete && equals(type, got, right, 0);
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
        how.patience = FAR_PATIENCE;
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
    } else { /* it came to no second block: its first is all there is to see */
        h->segment = p->last[0] - p->first[0];
        if (h->segment > 2 * (uint64_t)block) h->segment = 2 * (uint64_t)block;
    }
}

/* How well a launch does: right and without a fault is 3, right is 2, without a fault is 1. */
static int try(const struct own_session *s, struct own_host *h, uint64_t n) {
    struct own_run r;
    if (!own_host_run(s, h, n, OWN_DATA, 0, NULL, NULL, &r)) return -1;
    if (r.result.fault == TALLY_OWN_ENDLESS)
        return h->seems_endless = true, 3; /* no other launch is better */
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
    if (like->is_serial) return false;
    if (like->form == OWN_ONE_BLOCK) return true;
    if (!probe(s, block, like->shared_per_thread, &seen)) return false;
    read_probe(&seen, block, out);
    return out->form == like->form;
}

/* Returns whether several blocks make it wrong by what they do to each other, and no missing fence does. */
static bool is_wrong_by_blocks(const struct own_session *s, const struct own_host *h) {
    const uint64_t n = h->form == OWN_SEGMENTS ? 2 * h->segment : 16 * (uint64_t)h->block;
    struct own_run r;
    if (!own_host_run(s, h, n, OWN_DATA, 0, NULL, NULL, &r) || r.grid < 2) return false;
    if (r.result.fault == TALLY_OWN_ORDER || r.result.fault == TALLY_OWN_ENDLESS) return false;
    return !r.is_right || (r.result.fault == TALLY_OWN_RACE && r.result.detail == 2);
}

bool own_host_find(const struct own_session *s, struct own_host *out) {
    unsigned blocks[OWN_BLOCKS_MAX + 2], count = 0;
    int best = -2;
    if (s->block) {
        blocks[count++] = s->block;
    } else {
        /* A number below 32 is seldom a block, and an array of 1024 is as often for the largest block there is. */
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
    /* Several blocks make it wrong: one that walks the whole array may make it right, or leave another fault alone. */
    const bool may_be_one = best >= 0 && best < 3 && !s->options->grid &&
                            out->form != OWN_ONE_BLOCK && !out->combines &&
                            is_wrong_by_blocks(s, out);
    for (unsigned i = 0; i < count && may_be_one && best < 3; i++) {
        struct own_host trial = *out;
        trial.form = OWN_ONE_BLOCK;
        trial.block = blocks[i];
        trial.segment = 0;
        trial.per_thread = 0;
        trial.must_be_one = true;
        /* One that takes n is to walk an array of any length; one that does not may be for its block's only. */
        const int score = s->kernel->is.length ? try(s, &trial, 8 * (uint64_t)trial.block + 5)
                                               : find_one_block(s, &trial);
        if (score <= best) continue;
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
