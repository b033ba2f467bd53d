/*
 * test_limits.c - every operator at its limits, with values that can be worked out by hand.
 *
 * Nothing, one element, NaNs, infinities, zeros of both signs, sums that overflow on the way and come back,
 * products that underflow until there are enough of them, ties in rounding, the ends of the integers. Each
 * case is asked without a device, of threads, of a state, and, where zeros change nothing, strewn over a long
 * array of them, so that the vector code meets it, too.
 */
#include "testing.h"

#include <math.h>

static tally_device *device;

#define MAX64 0x1.fffffffffffffp1023
#define MIN64 0x1p-1074
#define MAX32 0x1.fffffep127
#define MIN32 0x1p-149

/* An element, written as a double, as its type's bytes; exact for all that is used here. */
static uint64_t bits_of(tally_type type, double x) {
    tally_value v;
    assert_ok(tally_reduce(NULL, ASK(TALLY_SUM, TALLY_F64, .out = type), &x, NULL, 1, &v));
    return tally_value_bits(&v);
}

enum { MOST = 12, LONG_N = 20011 };

struct array {
    unsigned char bytes[8 * LONG_N + 8];
};

static void place(struct array *a, tally_type type, size_t i, double x) {
    const size_t size = tally_type_size(type);
    uint64_t bits;
    if (type >= TALLY_F16)
        bits = isnan(x) ? (type == TALLY_F16    ? 0x7d01
                           : type == TALLY_BF16 ? 0xff81 /* of whatever sign and payload */
                           : type == TALLY_F32  ? 0xffa00001
                                                : UINT64_C(0x7ff4000000000001))
                        : bits_of(type, x);
    else
        bits = x < 0 ? (uint64_t)(int64_t)x : (uint64_t)x;
    for (size_t b = 0; b < size; b++)
        a->bytes[i * size + b] = (unsigned char)(bits >> 8 * b);
}

static const char *text_of(tally_status s, const tally_value *v) {
    static char text[2][40];
    static int turn;
    char *t = text[turn ^= 1];
    if (s != TALLY_OK) return tally_status_text(s);
    tally_value_print(v, t, 40);
    return t;
}

/* What a case should come to. */
struct answer {
    tally_status status;
    tally_type type;
    double value; /* for NaN: the canonical one */
};

static int is_answer(const struct answer *want, tally_status s, const tally_value *got) {
    if (s != want->status) return 0;
    if (s != TALLY_OK) return 1;
    if (got->type != want->type) return 0;
    if (want->type == TALLY_U64) return got->as.u64 == (uint64_t)want->value;
    if (want->type < TALLY_F16) return tally_value_double(got) == want->value;
    if (isnan(want->value)) {
        const uint64_t nan = want->type == TALLY_F16    ? 0x7e00
                             : want->type == TALLY_BF16 ? 0x7fc0
                             : want->type == TALLY_F32  ? 0x7fc00000
                                                        : UINT64_C(0x7ff8000000000000);
        return tally_value_bits(got) == nan;
    }
    return tally_value_bits(got) == bits_of(want->type, want->value) &&
           !signbit(tally_value_double(got)) == !signbit(want->value);
}

static void check_answer(const tally_problem *p, const struct answer *want, tally_status s,
                         const tally_value *got, const char *how, size_t n) {
    if (is_answer(want, s, got)) return;
    const tally_value wanted = {.type = TALLY_F64, .as.f64 = want->value};
    fail_msg("%s of %zu %s, %s: %s, not %s", tally_op_name(p->op), n, tally_type_name(p->type), how,
             text_of(s, got), text_of(want->status, &wanted));
}

static void ask(const tally_problem *p, const struct array *x, const struct array *y, size_t n,
                const struct answer *want) {
    tally_value value;
    const void *second = y ? y->bytes : NULL;
    const size_t size = tally_type_size(p->type);
    memset(&value, 0, sizeof value);
    tally_status s = tally_reduce(NULL, p, x->bytes, second, n, &value);
    check_answer(p, want, s, &value, "alone", n);
    s = tally_reduce(device, p, x->bytes, second, n, &value);
    check_answer(p, want, s, &value, "threads", n);
    tally_state *state, *right;
    assert_ok(tally_state_create(p, &state));
    assert_ok(tally_state_create(p, &right));
    assert_ok(tally_state_feed(state, NULL, x->bytes, second, n / 2));
    assert_ok(tally_state_feed(right, device, x->bytes + n / 2 * size,
                               y ? y->bytes + n / 2 * size : NULL, n - n / 2));
    if (p->op == TALLY_PROD && p->type >= TALLY_F16) { /* (over the tree only neighbours) */
        assert_ok(tally_state_feed(state, NULL, x->bytes + n / 2 * size, NULL, n - n / 2));
    } else {
        assert_ok(tally_state_merge(state, right));
    }
    s = tally_state_value(state, &value);
    check_answer(p, want, s, &value, "a state", n);
    tally_state_destroy(state);
    tally_state_destroy(right);
}

/* Whether zeros among the elements leave the answer as it is. */
static int is_sum(tally_op op) {
    return op == TALLY_SUM || op == TALLY_NORM1 || op == TALLY_NORM2 || op == TALLY_SUMSQ ||
           op == TALLY_DOT || op == TALLY_NORMINF || op == TALLY_NONZERO || op == TALLY_ANY ||
           op == TALLY_NANS || op == TALLY_OR || op == TALLY_XOR;
}

static void check(const tally_problem *p, const double *x, const double *y, size_t n,
                  struct answer want) {
    static struct array a, b, c, d;
    for (size_t i = 0; i < n; i++) {
        place(&a, p->type, i, x[i]);
        if (y) place(&b, p->type, i, y[i]);
    }
    ask(p, &a, y ? &b : NULL, n, &want);
    if (!is_sum(p->op) || (want.value == 0 && signbit(want.value) && n == 1)) return;
    if (want.value == 0 && signbit(want.value)) return;
    static const size_t lengths[] = {100, 4096, LONG_N};
    for (size_t l = 0; l < 3; l++) {
        const size_t length = lengths[l], size = tally_type_size(p->type);
        memset(&c, 0, size * length);
        if (y) memset(&d, 0, size * length);
        for (size_t i = 0; i < n; i++) {
            const size_t at = (i * 7919 + l * 31 + 5) % length;
            place(&c, p->type, at, x[i]);
            if (y) place(&d, p->type, at, y[i]);
        }
        ask(p, &c, y ? &d : NULL, length, &want);
    }
}

static struct answer is(tally_type type, double value) {
    return (struct answer){TALLY_OK, type, value};
}
static struct answer none(tally_status status) {
    return (struct answer){status, 0, 0};
}

/* ---- Tables -------------------------------------------------------------------------------- */

struct row {
    tally_op op;
    double ddof;
    double want;
    size_t n;
    double x[MOST], y[MOST];
};

static const struct row of_f64[] = {
    /* Sums that leave the range and come back; or do not. */
    {TALLY_SUM, 0, MAX64, 3, {MAX64, MAX64, -MAX64}, {0}},
    {TALLY_SUM, 0, INFINITY, 2, {MAX64, MAX64}, {0}},
    {TALLY_SUM, 0, INFINITY, 2, {MAX64, 0x1p970}, {0}}, /* half a place beyond: to even */
    {TALLY_SUM, 0, MAX64, 2, {MAX64, 0x1.fffffffffffffp969}, {0}}, /* a little less */
    {TALLY_SUM, 0, 0, 4, {MAX64, MAX64, -MAX64, -MAX64}, {0}},
    {TALLY_SUM, 0, MIN64, 3, {MAX64, MIN64, -MAX64}, {0}},
    {TALLY_MEAN, 0, MAX64, 2, {MAX64, MAX64}, {0}},
    {TALLY_MEAN, 0, -MAX64, 3, {-MAX64, -MAX64, -MAX64}, {0}},
    {TALLY_MEAN, 0, 0x1p1022, 4, {0x1p1023, 0x1p1023, 0x1p1023, -0x1p1023}, {0}},
    {TALLY_NORM1, 0, INFINITY, 2, {MAX64, -MAX64}, {0}},
    {TALLY_NORM1, 0, MAX64, 3, {-MAX64, 0, -0.0}, {0}},
    {TALLY_SUMSQ, 0, INFINITY, 1, {MAX64}, {0}},
    {TALLY_SUMSQ, 0, INFINITY, 1, {-0x1p512}, {0}},
    {TALLY_SUMSQ, 0, 0x1p1023, 2, {-0x1p511, 0x1p511}, {0}},
    {TALLY_NORM2, 0, MAX64, 1, {-MAX64}, {0}},
    {TALLY_NORM2, 0, INFINITY, 2, {MAX64, MAX64}, {0}},
    {TALLY_NORM2, 0, 0x1.4p1002, 2, {0x1.8p1001, -0x1p1002}, {0}},
    {TALLY_NORM2, 0, 0x1.4p-1068, 2, {0x1.8p-1069, 0x1p-1068}, {0}},
    {TALLY_NORM2, 0, MIN64, 1, {MIN64}, {0}},
    {TALLY_NORM2, 0, 2 * MIN64, 4, {MIN64, MIN64, -MIN64, MIN64}, {0}},
    {TALLY_NORM2, 0, MIN64, 2, {MIN64, MIN64}, {0}}, /* 1.41 */
    {TALLY_NORM2, 0, 0x1p511, 2, {0x1p511, MIN64}, {0}},
    {TALLY_NORM2, 0, 0x1.6a09e667f3bcdp0, 2, {1, 1}, {0}},
    {TALLY_NORMINF, 0, MAX64, 3, {1, -MAX64, MAX64}, {0}},
    {TALLY_NORMINF, 0, MIN64, 2, {-MIN64, 0}, {0}},
    {TALLY_VAR, 0, INFINITY, 2, {MAX64, -MAX64}, {0}},
    {TALLY_STD, 0, MAX64, 2, {MAX64, -MAX64}, {0}},
    {TALLY_STD, 1, INFINITY, 2, {MAX64, -MAX64}, {0}}, /* times the root of 2 */
    {TALLY_STD, 0, 0, 3, {MAX64, MAX64, MAX64}, {0}},
    {TALLY_STD, 0, MIN64, 2, {MIN64, -MIN64}, {0}},
    {TALLY_VAR, 0, 0, 2, {MIN64, -MIN64}, {0}}, /* 2^-2148 */
    /* Products below the least number, until there are enough of them. */
    {TALLY_DOT, 0, 0, 1, {0x1p-600}, {0x1p-475}}, /* 2^-1075: to even */
    {TALLY_DOT, 0, 0, 1, {MIN64}, {MIN64}},
    {TALLY_DOT, 0, -0.0, 1, {-MIN64}, {MIN64}},
    {TALLY_DOT, 0, MIN64, 2, {0x1p-600, 0x1p-600}, {0x1p-475, 0x1p-475}},
    {TALLY_DOT, 0, 2 * MIN64, 3, {0x1p-600, 0x1p-600, 0x1p-600}, {0x1p-475, 0x1p-475, 0x1p-475}},
    {TALLY_DOT, 0, MIN64, 2, {0x1p-600, MIN64}, {0x1p-475, MIN64}}, /* a little more than half */
    {TALLY_DOT, 0, 0, 2, {0x1p-600, MIN64}, {0x1p-475, -MIN64}},    /* a little less */
    {TALLY_DOT,
     0,
     MIN64,
     4,
     {0x1p-538, 0x1p-538, 0x1p-538, 0x1p-538},
     {0x1p-538, 0x1p-538, 0x1p-538, 0x1p-538}},
    {TALLY_SUMSQ, 0, MIN64, 4, {0x1p-538, 0x1p-538, -0x1p-538, 0x1p-538}, {0}},
    {TALLY_SUMSQ, 0, 0, 2, {0x1p-538, 0x1p-538}, {0}},
    {TALLY_SUMSQ, 0, 0, 1, {MIN64}, {0}},
    {TALLY_DOT, 0, 15, 3, {0x1p1000, -0x1p1000, 3}, {0x1p1000, 0x1p1000, 5}},
    {TALLY_DOT, 0, 0, 2, {MAX64, MAX64}, {MAX64, -MAX64}},
    {TALLY_DOT, 0, 0x1p-1000, 4, {0x1p600, 0x1p-500, 0x1p600, 0}, {0x1p600, 0x1p-500, -0x1p600, 1}},
    {TALLY_DOT, 0, INFINITY, 1, {0x1p512}, {0x1p512}},
    {TALLY_DOT, 0, -INFINITY, 1, {0x1p512}, {-0x1p512}},
    {TALLY_DOT, 0, 0x1p-52, 2, {0x1.0000000000001p0, -1}, {1, 1}},
    {TALLY_DOT, 0, 0x1p-104, 3, {0x1.0000000000001p0, -1, -0x1p-51}, {0x1.0000000000001p0, 1, 1}},
    /* NaNs and infinities. */
    {TALLY_SUM, 0, INFINITY, 3, {1, INFINITY, -MAX64}, {0}},
    {TALLY_SUM, 0, -INFINITY, 3, {MAX64, MAX64, -INFINITY}, {0}},
    {TALLY_SUM, 0, NAN, 2, {INFINITY, -INFINITY}, {0}},
    {TALLY_MEAN, 0, INFINITY, 2, {INFINITY, 1}, {0}},
    {TALLY_MEAN, 0, NAN, 2, {INFINITY, -INFINITY}, {0}},
    {TALLY_NORM1, 0, INFINITY, 2, {INFINITY, -INFINITY}, {0}},
    {TALLY_NORM2, 0, INFINITY, 2, {-INFINITY, 3}, {0}},
    {TALLY_SUMSQ, 0, INFINITY, 2, {-INFINITY, 3}, {0}},
    {TALLY_NORMINF, 0, INFINITY, 2, {-INFINITY, 3}, {0}},
    {TALLY_VAR, 0, NAN, 2, {INFINITY, 3}, {0}},
    {TALLY_STD, 0, NAN, 2, {INFINITY, INFINITY}, {0}},
    {TALLY_DOT, 0, NAN, 1, {INFINITY}, {0}},
    {TALLY_DOT, 0, NAN, 1, {-0.0}, {-INFINITY}},
    {TALLY_DOT, 0, INFINITY, 2, {INFINITY, 5}, {2, -MAX64}},
    {TALLY_DOT, 0, -INFINITY, 2, {INFINITY, 5}, {-MIN64, 1}},
    {TALLY_DOT, 0, NAN, 2, {INFINITY, INFINITY}, {1, -1}},
    {TALLY_DOT, 0, INFINITY, 2, {-INFINITY, INFINITY}, {-1, INFINITY}},
    {TALLY_DOT, 0, NAN, 2, {1, 2}, {NAN, 2}},
    {TALLY_MIN, 0, -INFINITY, 3, {1, -INFINITY, INFINITY}, {0}},
    {TALLY_MAX, 0, INFINITY, 3, {1, -INFINITY, INFINITY}, {0}},
    {TALLY_PROD, 0, NAN, 2, {INFINITY, 0}, {0}},
    {TALLY_PROD, 0, -INFINITY, 2, {INFINITY, -2}, {0}},
    /* Zeros and their signs. */
    {TALLY_SUM, 0, -0.0, 2, {-0.0, -0.0}, {0}},
    {TALLY_SUM, 0, 0, 2, {-0.0, 0}, {0}},
    {TALLY_SUM, 0, 0, 2, {1, -1}, {0}},
    {TALLY_MEAN, 0, -0.0, 3, {-0.0, -0.0, -0.0}, {0}},
    {TALLY_MEAN, 0, 0, 3, {-0.0, -0.0, 0}, {0}},
    {TALLY_NORM1, 0, 0, 2, {-0.0, -0.0}, {0}},
    {TALLY_NORM2, 0, 0, 2, {-0.0, -0.0}, {0}},
    {TALLY_SUMSQ, 0, 0, 2, {-0.0, -0.0}, {0}},
    {TALLY_NORMINF, 0, 0, 2, {-0.0, -0.0}, {0}},
    {TALLY_VAR, 0, 0, 2, {-0.0, -0.0}, {0}},
    {TALLY_STD, 0, 0, 2, {-0.0, 0}, {0}},
    {TALLY_DOT, 0, -0.0, 1, {-0.0}, {1}},
    {TALLY_DOT, 0, -0.0, 2, {-0.0, 5}, {1, -0.0}},
    {TALLY_DOT, 0, 0, 1, {-0.0}, {-1}},
    {TALLY_DOT, 0, 0, 2, {-0.0, 2}, {1, 0}},
    {TALLY_MIN, 0, -0.0, 3, {0, -0.0, 0}, {0}},
    {TALLY_MAX, 0, 0, 3, {-0.0, 0, -0.0}, {0}},
    /* Variances: of large numbers close together; of one; fewer than ddof. */
    {TALLY_VAR, 0, 0.25, 2, {1e15, 1e15 + 1}, {0}},
    {TALLY_VAR, 1, 0.5, 2, {1e15, 1e15 + 1}, {0}},
    {TALLY_VAR, 0, 1, 2, {1e16, 1e16 + 2}, {0}},
    {TALLY_VAR, 0, 0, 5, {0.1, 0.1, 0.1, 0.1, 0.1}, {0}},
    {TALLY_VAR, 1, 0, 3, {1e300, 1e300, 1e300}, {0}},
    {TALLY_STD, 0, 0.5, 2, {0x1p52, 0x1p52 + 1}, {0}},
    {TALLY_STD, 0, 2, 8, {2, 4, 4, 4, 5, 5, 7, 9}, {0}},
    {TALLY_VAR, 1, NAN, 1, {3}, {0}},
    {TALLY_VAR, 0, 0, 1, {3}, {0}},
    {TALLY_VAR, 0x1.fffffffffffffp-1, 0, 1, {3}, {0}},
    {TALLY_VAR, 1.5, 1, 2, {3, 4}, {0}},                      /* 1/2 / 0.5 */
    {TALLY_VAR, 0x1.fffffffffffffp0, 0x1p51, 2, {0, 1}, {0}}, /* 1/2 / 2^-52 */
    {TALLY_VAR, 2, NAN, 2, {0, 1}, {0}},
    {TALLY_VAR, 0x1.0000000000001p1, NAN, 2, {0, 1}, {0}},
    {TALLY_STD, 1e300, NAN, 2, {0, 1}, {0}},
    {TALLY_STD, 0x1p64, NAN, 2, {0, 1}, {0}},
    {TALLY_VAR, MIN64, 0.25, 2, {0, 1}, {0}}, /* 1/2 / (2 - 2^-1074) */
    {TALLY_VAR, MAX64, NAN, 2, {0, 1}, {0}},
    /* Ties: means half way between two numbers, roots and quotients nearly so. */
    {TALLY_MEAN, 0, 1, 2, {1, 0x1.0000000000001p0}, {0}},
    {TALLY_MEAN, 0, 0x1.0000000000002p0, 2, {0x1.0000000000001p0, 0x1.0000000000002p0}, {0}},
    {TALLY_MEAN, 0, 0, 2, {MIN64, 0}, {0}},
    {TALLY_MEAN, 0, 2 * MIN64, 2, {3 * MIN64, 0}, {0}},
    {TALLY_MEAN, 0, MIN64, 3, {MIN64, MIN64, 0}, {0}},
    {TALLY_MEAN, 0, -0.0, 2, {-MIN64, 0}, {0}},
    {TALLY_MEAN, 0, 0x1.5555555555555p-2, 3, {1, 0, 0}, {0}},
    {TALLY_MEAN,
     0,
     1,
     3,
     {3, 0x1.8p-52, 0},
     {0}}, /* 1 + 2^-53, a tie; a trace more; a trace less */
    {TALLY_MEAN, 0, 0x1.0000000000001p0, 3, {3, 0x1.8p-52, 0x1p-300}, {0}},
    {TALLY_MEAN, 0, 1, 3, {3, 0x1.8p-52, -0x1p-300}, {0}},
    {TALLY_NORM2, 0, 1, 3, {1, 0x1p-26, 0x1p-53}, {0}}, /* the root of (1 + 2^-53)^2 */
    {TALLY_NORM2, 0, 0x1.0000000000001p0, 4, {1, 0x1p-26, 0x1p-53, 0x1p-500}, {0}},
    {TALLY_SUM, 0, 1, 2, {1, 0x1p-53}, {0}},
    {TALLY_SUM, 0, 0x1.0000000000001p0, 3, {1, 0x1p-53, MIN64}, {0}},
    {TALLY_SUM, 0, 1, 3, {1, 0x1p-53, -MIN64}, {0}},
    /* Counts. */
    {TALLY_COUNT, 0, 3, 3, {NAN, 0, 1}, {0}},
    {TALLY_NANS, 0, 2, 4, {NAN, 0, NAN, INFINITY}, {0}},
    {TALLY_NONZERO, 0, 3, 5, {NAN, 0, -0.0, MIN64, -INFINITY}, {0}},
    {TALLY_ANY, 0, 0, 2, {0, -0.0}, {0}},
    {TALLY_ANY, 0, 1, 2, {NAN, 0}, {0}},
    {TALLY_ANY, 0, 1, 2, {0, MIN64}, {0}},
    {TALLY_ALL, 0, 1, 2, {NAN, MIN64}, {0}},
    {TALLY_ALL, 0, 0, 2, {NAN, -0.0}, {0}},
    /* Where the extremes are: the first of equals, -0 below +0, the first NaN. */
    {TALLY_ARGMIN, 0, 1, 4, {0, -0.0, 0, -0.0}, {0}},
    {TALLY_ARGMAX, 0, 0, 4, {0, -0.0, 0, -0.0}, {0}},
    {TALLY_ARGMAX, 0, 1, 2, {-0.0, 0}, {0}},
    {TALLY_ARGMIN, 0, 2, 5, {3, 2, 1, 1, 2}, {0}},
    {TALLY_ARGMAX, 0, 0, 5, {3, 3, 1, 1, 3}, {0}},
    {TALLY_ARGMIN, 0, 1, 4, {1, NAN, -5, NAN}, {0}},
    {TALLY_ARGMAX, 0, 1, 4, {1, NAN, 5, NAN}, {0}},
    {TALLY_ARGMAX, 0, 2, 3, {INFINITY, -INFINITY, NAN}, {0}},
    {TALLY_ARGMIN, 0, 0, 2, {INFINITY, INFINITY}, {0}},
    {TALLY_ARGMAX, 0, 0, 2, {-INFINITY, -INFINITY}, {0}},
    {TALLY_ARGMIN, 0, 1, 3, {INFINITY, MAX64, INFINITY}, {0}},
    {TALLY_ARGMIN, 0, 0, 1, {INFINITY}, {0}}, /* (as a state: behind one of nothing) */
    {TALLY_ARGMAX, 0, 0, 1, {-INFINITY}, {0}},
};

static tally_type result_type(tally_op op, tally_type type) {
    switch (op) {
    case TALLY_COUNT:
    case TALLY_NANS:
    case TALLY_NONZERO:
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
        return TALLY_U64;
    case TALLY_ANY:
    case TALLY_ALL:
        return TALLY_U8;
    default:
        return type;
    }
}

static void test_f64(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof of_f64 / sizeof *of_f64; i++) {
        const struct row *r = &of_f64[i];
        const tally_problem p = {.op = r->op, .type = TALLY_F64, .ddof = r->ddof};
        check(&p, r->x, r->op == TALLY_DOT ? r->y : NULL, r->n,
              is(result_type(r->op, TALLY_F64), r->want));
    }
}

/* The same rules in narrow types, of numbers that all of them have; the range is each type's own. */
static void test_narrow(void **state) {
    (void)state;
    static const struct {
        tally_type type;
        double most, least, next; /* next: the number behind 1 */
    } types[] = {{TALLY_F16, 65504, 0x1p-24, 1 + 0x1p-10},
                 {TALLY_BF16, 0x1.fep127, 0x1p-133, 1 + 0x1p-7},
                 {TALLY_F32, MAX32, MIN32, 1 + 0x1p-23}};
    for (size_t t = 0; t < 3; t++) {
        const double most = types[t].most, least = types[t].least, next = types[t].next;
        const struct row rows[] = {
            {TALLY_SUM, 0, most, 3, {most, most, -most}, {0}},
            {TALLY_SUM, 0, INFINITY, 2, {most, most}, {0}},
            {TALLY_MEAN, 0, most, 2, {most, most}, {0}},
            {TALLY_NORM1, 0, INFINITY, 2, {most, -most}, {0}},
            {TALLY_NORM2, 0, most, 1, {-most}, {0}},
            {TALLY_NORM2, 0, INFINITY, 2, {most, most}, {0}},
            {TALLY_NORM2, 0, least, 1, {-least}, {0}},
            {TALLY_NORM2, 0, least, 2, {least, -least}, {0}},
            {TALLY_NORM2, 0, 2 * least, 3, {least, -least, least}, {0}}, /* 1.73 */
            {TALLY_NORM2, 0, 5, 2, {-3, 4}, {0}},
            {TALLY_NORMINF, 0, most, 2, {-most, 1}, {0}},
            {TALLY_SUMSQ, 0, INFINITY, 1, {most}, {0}},
            {TALLY_SUMSQ, 0, 0, 1, {least}, {0}},
            {TALLY_STD, 0, most, 2, {most, -most}, {0}},
            {TALLY_STD, 1, INFINITY, 2, {most, -most}, {0}},
            {TALLY_STD, 0, least, 2, {least, -least}, {0}},
            {TALLY_DOT, 0, 15, 3, {most, -most, 3}, {most, most, 5}},
            {TALLY_DOT, 0, 0, 2, {least, least}, {least, -least}},
            {TALLY_DOT, 0, -0.0, 1, {least}, {-least}},
            {TALLY_DOT, 0, 0, 1, {least}, {0.5}},
            {TALLY_DOT, 0, 2 * least, 3, {least, least, least}, {0.5, 0.5, 0.5}}, /* 1.5 */
            {TALLY_DOT, 0, NAN, 1, {INFINITY}, {-0.0}},
            {TALLY_DOT, 0, -INFINITY, 1, {INFINITY}, {-least}},
            {TALLY_MEAN, 0, 1, 2, {1, next}, {0}},
            {TALLY_MEAN, 0, 0, 2, {least, 0}, {0}},
            {TALLY_MEAN, 0, 2 * least, 2, {3 * least, 0}, {0}},
            {TALLY_MEAN, 0, -0.0, 2, {-0.0, -0.0}, {0}},
            {TALLY_SUM, 0, -0.0, 2, {-0.0, -0.0}, {0}},
            {TALLY_VAR, 1, NAN, 1, {3}, {0}},
            {TALLY_VAR, 0, 0.25, 2, {256, 255}, {0}},
            {TALLY_VAR, 0, NAN, 2, {INFINITY, 1}, {0}},
            {TALLY_NONZERO, 0, 2, 4, {NAN, 0, -0.0, least}, {0}},
            {TALLY_NANS, 0, 1, 4, {NAN, 0, INFINITY, least}, {0}},
            {TALLY_ALL, 0, 1, 3, {NAN, INFINITY, -least}, {0}},
            {TALLY_ARGMIN, 0, 1, 4, {0, -0.0, 0, -0.0}, {0}},
            {TALLY_ARGMAX, 0, 1, 3, {-0.0, 0, 0}, {0}},
            {TALLY_ARGMAX, 0, 1, 4, {1, NAN, INFINITY, NAN}, {0}},
            {TALLY_ARGMIN, 0, 0, 2, {INFINITY, INFINITY}, {0}},
            {TALLY_MIN, 0, -0.0, 2, {0, -0.0}, {0}},
            {TALLY_MAX, 0, 0, 2, {-0.0, 0}, {0}},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const tally_problem p = {.op = rows[i].op, .type = types[t].type, .ddof = rows[i].ddof};
            check(&p, rows[i].x, p.op == TALLY_DOT ? rows[i].y : NULL, rows[i].n,
                  is(result_type(p.op, p.type), rows[i].want));
        }
        /* Rounded once to a type that is asked for: 2^-11 and a little, as f16 straight. */
        const tally_problem p = {.op = TALLY_SUM, .type = types[t].type, .out = TALLY_F64};
        check(&p, (const double[]){most, least, -most}, NULL, 3, is(TALLY_F64, least));
    }
    const tally_problem p = {.op = TALLY_MEAN, .type = TALLY_F64, .out = TALLY_F16};
    check(&p, (const double[]){1, 1 + 0x1p-10 + 0x1p-50}, NULL, 2, is(TALLY_F16, 1 + 0x1p-10));
    check(&p, (const double[]){1, 1 + 0x1p-10}, NULL, 2, is(TALLY_F16, 1));
    const tally_problem q = {.op = TALLY_STD, .type = TALLY_F64, .out = TALLY_F32};
    check(&q, (const double[]){MAX64, -MAX64}, NULL, 2, is(TALLY_F32, INFINITY));
    check(&q, (const double[]){MIN64, -MIN64}, NULL, 2, is(TALLY_F32, 0));
}

/* A NaN anywhere is the answer to everything that is a floating number. */
static void test_nan(void **state) {
    (void)state;
    for (int t = TALLY_F16; t <= TALLY_F64; t++)
        for (int op = TALLY_SUM; op <= TALLY_DOT; op++)
            for (size_t at = 0; at < 3; at++) {
                if (op == TALLY_AND || op == TALLY_OR || op == TALLY_XOR) continue;
                double x[3] = {1, INFINITY, -2};
                static const double y[3] = {1, 1, 1};
                x[at] = NAN;
                const tally_problem p = {.op = (tally_op)op, .type = (tally_type)t};
                check(&p, x, op == TALLY_DOT ? y : NULL, 3, is((tally_type)t, NAN));
            }
}

/* ---- Nothing ------------------------------------------------------------------------------- */

static void test_nothing(void **state) {
    (void)state;
    static struct array a;
    for (int t = TALLY_I8; t <= TALLY_F64; t++) {
        const tally_type type = (tally_type)t;
        const int floats = type >= TALLY_F16;
        const tally_type wide = floats ? type : type <= TALLY_I64 ? TALLY_I64 : TALLY_U64;
        const tally_type real = floats ? type : TALLY_F64;
        const int bits = 8 * (int)tally_type_size(type);
        const double least = floats ? -INFINITY : type <= TALLY_I64 ? -ldexp(1, bits - 1) : 0;
        const struct {
            tally_op op;
            struct answer want;
        } rows[] = {
            {TALLY_SUM, is(wide, 0)},           {TALLY_PROD, is(wide, 1)},
            {TALLY_MAX, is(type, least)},       {TALLY_OR, is(type, 0)},
            {TALLY_XOR, is(type, 0)},           {TALLY_MEAN, is(real, NAN)},
            {TALLY_VAR, is(real, NAN)},         {TALLY_STD, is(real, NAN)},
            {TALLY_NORM1, is(wide, 0)},         {TALLY_NORM2, is(real, 0)},
            {TALLY_NORMINF, is(wide, 0)},       {TALLY_SUMSQ, is(wide, 0)},
            {TALLY_ARGMIN, none(TALLY_EINVAL)}, {TALLY_ARGMAX, none(TALLY_EINVAL)},
            {TALLY_COUNT, is(TALLY_U64, 0)},    {TALLY_NANS, is(TALLY_U64, 0)},
            {TALLY_NONZERO, is(TALLY_U64, 0)},  {TALLY_ANY, is(TALLY_U8, 0)},
            {TALLY_ALL, is(TALLY_U8, 1)},       {TALLY_DOT, is(wide, 0)},
        };
        for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
            const tally_problem p = {.op = rows[i].op, .type = type};
            ask(&p, &a, NULL, 0, &rows[i].want);
            tally_value value;
            const tally_status s = tally_reduce(NULL, &p, NULL, NULL, 0, &value);
            check_answer(&p, &rows[i].want, s, &value, "NULL", 0);
        }
        tally_value value[9];
        assert_ok(tally_reduce(NULL, ASK(TALLY_MIN, type), NULL, NULL, 0, value));
        assert_true(floats ? tally_value_double(value) == INFINITY
                           : tally_value_bits(value) == (type <= TALLY_I64
                                                             ? (UINT64_C(1) << (bits - 1)) - 1
                                                             : ~UINT64_C(0) >> (64 - bits)));
        assert_ok(tally_reduce(NULL, ASK(TALLY_AND, type), NULL, NULL, 0, value));
        if (!floats) assert_true(tally_value_bits(value) == ~UINT64_C(0) >> (64 - bits));
        /* describe: the two indices are not there, all else is. */
        assert_ok(tally_reduce(NULL, ASK(TALLY_DESCRIBE, type), NULL, NULL, 0, value));
        static const tally_op ops[9] = {TALLY_COUNT, TALLY_NANS,   TALLY_MIN,
                                        TALLY_MAX,   TALLY_ARGMIN, TALLY_ARGMAX,
                                        TALLY_SUM,   TALLY_MEAN,   TALLY_STD};
        for (size_t i = 0; i < 9; i++) {
            assert_int_equal(tally_problem_value_op(ASK(TALLY_DESCRIBE, type), i), ops[i]);
            tally_value one;
            const tally_status s = tally_reduce(NULL, ASK(ops[i], type), NULL, NULL, 0, &one);
            if (ops[i] == TALLY_ARGMIN || ops[i] == TALLY_ARGMAX) {
                assert_int_equal(s, TALLY_EINVAL);
                assert_true(value[i].type == 0);
                char text[32];
                tally_value_print(&value[i], text, sizeof text);
                assert_string_equal(text, "none");
            } else {
                assert_int_equal(s, TALLY_OK);
                assert_true(same_values(&one, &value[i], 1));
            }
        }
    }
}

/* ---- Integers ------------------------------------------------------------------------------ */

#define P63 9223372036854775808.0

static void test_integers(void **state) {
    (void)state;
    const struct {
        tally_op op;
        tally_type type, out;
        double ddof;
        struct answer want;
        size_t n;
        double x[MOST], y[MOST]; /* exact in a double */
    } rows[] = {
        {TALLY_NORMINF, TALLY_I64, 0, 0, none(TALLY_ERANGE), 2, {-P63, 5}, {0}},
        {TALLY_NORMINF, TALLY_I64, 0, 0, is(TALLY_I64, 7), 2, {-7, 5}, {0}},
        {TALLY_NORMINF, TALLY_I8, 0, 0, is(TALLY_I64, 128), 2, {-128, 127}, {0}},
        {TALLY_NORMINF, TALLY_I32, 0, 0, is(TALLY_I64, 2147483648.0), 2, {-2147483648.0, 1}, {0}},
        {TALLY_NORMINF, TALLY_U64, 0, 0, is(TALLY_U64, P63), 2, {P63, 1}, {0}},
        {TALLY_NORM1, TALLY_I64, 0, 0, none(TALLY_ERANGE), 1, {-P63}, {0}},
        {TALLY_NORM1, TALLY_I64, TALLY_F64, 0, is(TALLY_F64, P63), 1, {-P63}, {0}},
        {TALLY_NORM1, TALLY_I8, 0, 0, is(TALLY_I64, 255), 2, {-128, -127}, {0}},
        {TALLY_NORM1, TALLY_U64, 0, 0, none(TALLY_ERANGE), 2, {P63, P63}, {0}},
        {TALLY_SUM, TALLY_U64, 0, 0, none(TALLY_ERANGE), 2, {P63, P63}, {0}},
        {TALLY_SUM, TALLY_U64, TALLY_F32, 0, is(TALLY_F32, 0x1p64), 2, {P63, P63}, {0}},
        {TALLY_SUM, TALLY_U64, 0, 0, is(TALLY_U64, P63 + 2048), 2, {P63, 2048}, {0}},
        {TALLY_SUM, TALLY_I64, 0, 0, none(TALLY_ERANGE), 2, {-P63, -1}, {0}},
        {TALLY_SUM, TALLY_I64, 0, 0, is(TALLY_I64, -P63), 3, {-P63, -1, 1}, {0}},
        {TALLY_SUM,
         TALLY_I64,
         TALLY_F64,
         0,
         is(TALLY_F64, -0x1p65),
         4,
         {-P63, -P63, -P63, -P63},
         {0}},
        {TALLY_SUM, TALLY_I64, TALLY_F16, 0, is(TALLY_F16, -INFINITY), 1, {-P63}, {0}},
        {TALLY_SUMSQ, TALLY_U64, 0, 0, none(TALLY_ERANGE), 1, {4294967296.0}, {0}},
        {TALLY_SUMSQ, TALLY_U64, TALLY_F64, 0, is(TALLY_F64, 0x1p64), 1, {4294967296.0}, {0}},
        {TALLY_SUMSQ, TALLY_U64, TALLY_F64, 0, is(TALLY_F64, 0x1p127), 2, {P63, P63}, {0}},
        {TALLY_SUMSQ, TALLY_I64, 0, 0, none(TALLY_ERANGE), 1, {-P63}, {0}},
        {TALLY_SUMSQ, TALLY_I64, 0, 0, none(TALLY_ERANGE), 1, {3037000500.0}, {0}},
        {TALLY_SUMSQ, TALLY_U64, 0, 0, is(TALLY_U64, 0x9p60), 1, {3221225472.0}, {0}},
        {TALLY_SUMSQ, TALLY_I8, 0, 0, is(TALLY_I64, 32768), 2, {-128, -128}, {0}},
        {TALLY_SUMSQ, TALLY_U8, 0, 0, is(TALLY_U64, 130050), 2, {255, 255}, {0}},
        {TALLY_SUMSQ, TALLY_I32, 0, 0, is(TALLY_I64, 0x1p62), 1, {-2147483648.0}, {0}},
        {TALLY_SUMSQ, TALLY_I32, 0, 0, none(TALLY_ERANGE), 2, {-2147483648.0, -2147483648.0}, {0}},
        {TALLY_DOT, TALLY_I64, 0, 0, is(TALLY_I64, -P63), 1, {-P63}, {1}},
        {TALLY_DOT, TALLY_I64, 0, 0, none(TALLY_ERANGE), 1, {-P63}, {-1}},
        {TALLY_DOT, TALLY_I64, TALLY_F64, 0, is(TALLY_F64, 0x1p126), 1, {-P63}, {-P63}},
        {TALLY_DOT, TALLY_I64, 0, 0, is(TALLY_I64, 1), 3, {-P63, P63 - 1024, 3}, {2, 2, 683}},
        {TALLY_DOT, TALLY_U64, 0, 0, none(TALLY_ERANGE), 2, {P63, P63}, {1, 1}},
        {TALLY_DOT, TALLY_I8, 0, 0, is(TALLY_I64, -16256), 1, {-128}, {127}},
        {TALLY_DOT, TALLY_U8, 0, 0, is(TALLY_U64, 65025), 1, {255}, {255}},
        {TALLY_MEAN, TALLY_I64, 0, 0, is(TALLY_F64, -512), 2, {-P63, P63 - 1024}, {0}},
        {TALLY_MEAN, TALLY_I8, 0, 0, is(TALLY_F64, -0.5), 2, {-128, 127}, {0}},
        {TALLY_MEAN, TALLY_U64, 0, 0, is(TALLY_F64, P63), 2, {P63, P63}, {0}},
        {TALLY_MEAN, TALLY_I16, TALLY_F32, 0, is(TALLY_F32, 0x1.555556p-2), 3, {1, 0, 0}, {0}},
        {TALLY_MEAN, TALLY_I16, 0, 0, is(TALLY_F64, 0), 2, {5, -5}, {0}},
        {TALLY_VAR, TALLY_I64, 0, 0, is(TALLY_F64, 0x1p124), 2, {-P63 / 2, P63 / 2}, {0}},
        {TALLY_VAR, TALLY_I64, 0, 0, is(TALLY_F64, 0), 2, {-P63, -P63}, {0}},
        {TALLY_STD, TALLY_I64, 0, 0, is(TALLY_F64, P63 / 2), 2, {-P63 / 2, P63 / 2}, {0}},
        {TALLY_VAR, TALLY_U64, 0, 0, is(TALLY_F64, 0x1p124), 2, {P63, 0}, {0}},
        {TALLY_VAR, TALLY_U64, 0, 1, is(TALLY_F64, 0x1p125), 2, {P63, 0}, {0}},
        {TALLY_VAR, TALLY_U8, 0, 2, is(TALLY_F64, NAN), 2, {255, 0}, {0}},
        {TALLY_STD, TALLY_U8, 0, 0, is(TALLY_F64, 2), 8, {2, 4, 4, 4, 5, 5, 7, 9}, {0}},
        {TALLY_NORM2, TALLY_I8, 0, 0, is(TALLY_F64, 5), 2, {-3, 4}, {0}},
        {TALLY_NORM2, TALLY_I64, 0, 0, is(TALLY_F64, P63), 1, {-P63}, {0}},
        {TALLY_NORM2, TALLY_U64, 0, 0, is(TALLY_F64, 0x1p64), 4, {P63, P63, P63, P63}, {0}},
        {TALLY_PROD, TALLY_I64, 0, 0, is(TALLY_I64, -P63), 2, {-P63, 1}, {0}},
        {TALLY_PROD, TALLY_I64, 0, 0, none(TALLY_ERANGE), 2, {-P63, -1}, {0}},
        {TALLY_PROD, TALLY_I64, 0, 0, is(TALLY_I64, 0), 4, {-P63, -P63, 0, 5}, {0}},
        {TALLY_PROD, TALLY_U64, 0, 0, none(TALLY_ERANGE), 2, {P63, 2}, {0}},
        {TALLY_ARGMIN, TALLY_I64, 0, 0, is(TALLY_U64, 1), 4, {0, -P63, 5, -P63}, {0}},
        {TALLY_ARGMAX, TALLY_U64, 0, 0, is(TALLY_U64, 2), 4, {0, 1, P63, P63}, {0}},
        {TALLY_ARGMAX, TALLY_U8, 0, 0, is(TALLY_U64, 0), 4, {0, 0, 0, 0}, {0}},
        {TALLY_ARGMIN, TALLY_U8, 0, 0, is(TALLY_U64, 0), 4, {255, 255, 255, 255}, {0}},
        {TALLY_ARGMAX, TALLY_I8, 0, 0, is(TALLY_U64, 0), 3, {-128, -128, -128}, {0}},
        {TALLY_ARGMIN, TALLY_I16, 0, 0, is(TALLY_U64, 0), 3, {32767, 32767, 32767}, {0}},
        {TALLY_ARGMAX, TALLY_U8, 0, 0, is(TALLY_U64, 0), 1, {0}, {0}},
        {TALLY_ARGMIN, TALLY_I16, 0, 0, is(TALLY_U64, 0), 1, {32767}, {0}},
        {TALLY_NANS, TALLY_I32, 0, 0, is(TALLY_U64, 0), 2, {1, 2}, {0}},
        {TALLY_NONZERO, TALLY_I64, 0, 0, is(TALLY_U64, 2), 3, {0, -P63, 1}, {0}},
        {TALLY_ALL, TALLY_U16, 0, 0, is(TALLY_U8, 0), 3, {1, 0, 256}, {0}},
        {TALLY_ALL, TALLY_U16, 0, 0, is(TALLY_U8, 1), 2, {1, 256}, {0}},
        {TALLY_ANY, TALLY_U16, 0, 0, is(TALLY_U8, 1), 3, {0, 0, 256}, {0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const tally_problem p = {
            .op = rows[i].op, .type = rows[i].type, .out = rows[i].out, .ddof = rows[i].ddof};
        check(&p, rows[i].x, p.op == TALLY_DOT ? rows[i].y : NULL, rows[i].n, rows[i].want);
    }
    /* The largest u64 of all, which no double is. */
    static const uint64_t most[2] = {UINT64_MAX, UINT64_MAX};
    static const int64_t ends[2] = {INT64_MIN, INT64_MAX};
    tally_value value;
    assert_ok(tally_reduce(device, ASK(TALLY_MEAN, TALLY_U64), most, NULL, 2, &value));
    assert_true(value.as.f64 == 0x1p64);
    assert_ok(tally_reduce(device, ASK(TALLY_VAR, TALLY_U64), most, NULL, 2, &value));
    assert_true(value.as.f64 == 0);
    assert_ok(tally_reduce(device, ASK(TALLY_NORMINF, TALLY_U64), most, NULL, 2, &value));
    assert_true(value.as.u64 == UINT64_MAX);
    assert_ok(
        tally_reduce(device, ASK(TALLY_SUMSQ, TALLY_U64, .out = TALLY_F64), most, NULL, 2, &value));
    assert_true(value.as.f64 == 0x1p129);
    assert_ok(
        tally_reduce(device, ASK(TALLY_DOT, TALLY_U64, .out = TALLY_F64), most, most, 2, &value));
    assert_true(value.as.f64 == 0x1p129);
    assert_ok(tally_reduce(device, ASK(TALLY_MEAN, TALLY_I64), ends, NULL, 2, &value));
    assert_true(value.as.f64 == -0.5);
    assert_ok(tally_reduce(device, ASK(TALLY_STD, TALLY_I64), ends, NULL, 2, &value));
    assert_true(value.as.f64 == 0x1p63); /* (2^64 - 1) / 2 */
}

/* ---- Several values at once ------------------------------------------------------------------ */

static void test_several(void **state) {
    (void)state;
    static const int64_t ends[3] = {INT64_MAX, INT64_MIN, INT64_MAX};
    static const int64_t large[2] = {INT64_MAX, INT64_MAX};
    tally_value v[TALLY_VALUES_MAX];
    assert_ok(tally_reduce(device, ASK(TALLY_DESCRIBE, TALLY_I64), large, NULL, 2, v));
    assert_true(v[0].type == TALLY_U64 && v[0].as.u64 == 2 && v[1].as.u64 == 0);
    assert_true(v[2].as.i64 == INT64_MAX && v[3].as.i64 == INT64_MAX);
    assert_true(v[4].as.u64 == 0 && v[5].as.u64 == 0);
    assert_true(v[6].type == 0); /* the sum does not fit, */
    assert_true(v[7].type == TALLY_F64 && v[7].as.f64 == 0x1p63 && v[8].as.f64 == 0); /* these do */
    /* as a floating number it does, too */
    assert_ok(
        tally_reduce(device, ASK(TALLY_DESCRIBE, TALLY_I64, .out = TALLY_F64), large, NULL, 2, v));
    assert_true(v[6].type == TALLY_F64 && v[6].as.f64 == 0x1p64 && v[2].type == TALLY_I64);
    const tally_problem p = {.op = TALLY_NORMINF,
                             .type = TALLY_I64,
                             .also = {TALLY_COUNT, TALLY_SUMSQ, TALLY_MINMAX, TALLY_NORM1,
                                      TALLY_ANY, TALLY_PROD, TALLY_ALL, TALLY_XOR}};
    size_t count;
    assert_ok(tally_problem_values(&p, &count));
    assert_int_equal(count, 10);
    assert_ok(tally_reduce(device, &p, ends, NULL, 3, v));
    assert_true(v[0].type == 0 && v[2].type == 0 && v[5].type == 0 && v[7].type == 0);
    assert_true(v[1].as.u64 == 3 && v[3].as.i64 == INT64_MIN && v[4].as.i64 == INT64_MAX);
    assert_true(v[6].type == TALLY_U8 && v[6].as.u8 == 1 && v[8].as.u8 == 1);
    assert_true(v[9].type == TALLY_I64 && v[9].as.i64 == INT64_MIN);
    /* Where it is the only value, its absence is an error; twice it is not. */
    assert_error(TALLY_ERANGE,
                 tally_reduce(device, ASK(TALLY_NORMINF, TALLY_I64), ends, NULL, 3, v));
    assert_ok(tally_reduce(device, ASK(TALLY_NORMINF, TALLY_I64, .also = {TALLY_NORMINF}), ends,
                           NULL, 3, v));
    assert_true(v[0].type == 0 && v[1].type == 0);
    /* An operator ends the list: what stands behind a 0 is not looked at. */
    const tally_problem ended = {.op = TALLY_SUM, .type = TALLY_F64, .also = {0, (tally_op)99}};
    assert_ok(tally_problem_values(&ended, &count));
    assert_int_equal(count, 1);
    /* As many as there can be, each like itself alone. */
    static const double x[5] = {3, -1, NAN, 4, 1.5};
    const tally_problem most = {
        .op = TALLY_DESCRIBE,
        .type = TALLY_F64,
        .also = {TALLY_DESCRIBE, TALLY_DESCRIBE, TALLY_MINMAX, TALLY_MINMAX, TALLY_NORMINF}};
    assert_ok(tally_problem_values(&most, &count));
    assert_int_equal(count, TALLY_VALUES_MAX);
    for (size_t n = 0; n <= 5; n++) {
        assert_ok(tally_reduce(device, &most, x, NULL, n, v));
        for (size_t i = 0; i < count; i++) {
            tally_value one;
            const tally_op op = tally_problem_value_op(&most, i);
            const tally_status s = tally_reduce(NULL, ASK(op, TALLY_F64), x, NULL, n, &one);
            if (s == TALLY_OK)
                assert_true(same_values(&one, &v[i], 1));
            else
                assert_true(v[i].type == 0);
        }
    }
    /* y goes with any problem that has a dot in it. */
    static const double y[5] = {1, 2, 3, 4, 5};
    assert_ok(tally_reduce(device, ASK(TALLY_MAX, TALLY_F64, .also = {TALLY_DOT}), x + 3, y, 2, v));
    assert_true(v[0].as.f64 == 4 && v[1].as.f64 == 7);
    assert_error(TALLY_EINVAL, tally_reduce(device, ASK(TALLY_MAX, TALLY_F64, .also = {TALLY_DOT}),
                                            x, NULL, 2, v));
    assert_error(TALLY_EINVAL, tally_reduce(device, ASK(TALLY_MAX, TALLY_F64), x, y, 2, v));
}

/* Every operator, beside all others: what is shared does not change it. */
static void test_company(void **state) {
    (void)state;
    static struct array x, y;
    uint64_t seed = 21;
    for (int t = TALLY_I8; t <= TALLY_F64; t++)
        for (int round = 0; round < 60; round++) {
            const tally_type type = (tally_type)t;
            const size_t n = next_random(&seed) % (round % 10 ? 40 : 9000);
            for (size_t i = 0; i < n; i++) {
                place(&x, type, i, (double)(next_random(&seed) % 100));
                place(&y, type, i, (double)(next_random(&seed) % 100));
            }
            tally_problem p = {.op = (tally_op)(1 + next_random(&seed) % TALLY_DESCRIBE),
                               .type = type};
            for (size_t k = 0; k < next_random(&seed) % 4; k++)
                p.also[k] = (tally_op)(1 + next_random(&seed) % TALLY_DESCRIBE);
            size_t count;
            if (tally_problem_values(&p, &count) != TALLY_OK) continue; /* and with or */
            int two = 0;
            for (size_t i = 0; i < count; i++)
                two |= tally_problem_value_op(&p, i) == TALLY_DOT;
            tally_value all[TALLY_VALUES_MAX], one;
            const tally_status s = tally_reduce(device, &p, x.bytes, two ? y.bytes : NULL, n, all);
            for (size_t i = 0; i < count; i++) {
                const tally_op op = tally_problem_value_op(&p, i);
                const tally_status alone = tally_reduce(NULL, ASK(op, type), x.bytes,
                                                        op == TALLY_DOT ? y.bytes : NULL, n, &one);
                if (count == 1) assert_int_equal(s, alone);
                if (s != TALLY_OK) continue;
                if (alone == TALLY_OK ? !same_values(&one, &all[i], 1) : all[i].type != 0)
                    fail_msg("%s of %zu %s, beside others", tally_op_name(op), n,
                             tally_type_name(type));
            }
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_f64),      cmocka_unit_test(test_narrow),
        cmocka_unit_test(test_nan),      cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_integers), cmocka_unit_test(test_several),
        cmocka_unit_test(test_company),
    };
    if (tally_open("cpu:threads=2", &device) != TALLY_OK) {
        fprintf(stderr, "cpu:threads=2: %s\n", tally_error());
        return 1;
    }
    const int failed = cmocka_run_group_tests_name("limits", tests, NULL, NULL);
    tally_close(device);
    return failed;
}
