/*
 * test_states.c - states: fed, merged, taken apart, saved, loaded and added up as words.
 *
 * Whatever is done to a state, what it knows must be what tally_reduce() says of the same elements, bit for
 * bit, and two states of the same elements must be saved as the same bytes. So most checks here compare
 * values with tally_reduce()'s, and bytes with those of a state that was fed everything at once. What
 * tally_reduce() itself gives is the business of test_limits.c and of the Python suite.
 */
#include "testing.h"

#include <math.h>

#define MOST_F64 0x1.fffffffffffffp1023

enum { N = 20000, BYTES = 100000 };

/* ---- Elements ------------------------------------------------------------------------------ */

static uint64_t seed;

static uint64_t rnd(uint64_t below) {
    return next_random(&seed) % below;
}

static unsigned fraction_bits(tally_type type) {
    return type == TALLY_F16 ? 10 : type == TALLY_BF16 ? 7 : type == TALLY_F32 ? 23 : 52;
}

/* One element's bits, of one of five kinds: moderate numbers, any bits but NaNs, zeros of both signs with a
 * few others, NaNs and infinities among numbers, and a few values over and over. */
enum { MODERATE, WILD, ZEROS, SPECIAL, FEW, KINDS };

static uint64_t element(tally_type type, int kind) {
    const unsigned bits = 8 * (unsigned)tally_type_size(type);
    const uint64_t random = next_random(&seed),
                   all = bits == 64 ? ~UINT64_C(0) : (UINT64_C(1) << bits) - 1;
    if (type < TALLY_F16) switch (kind) {
        case MODERATE:
            return (rnd(15) - (type <= TALLY_I64 ? 7 : 0)) & all;
        case ZEROS:
            return rnd(10) ? 0 : random & all;
        case FEW:
            return rnd(3) + 1;
        default:
            return random & all;
        }
    const unsigned fraction = fraction_bits(type);
    const uint64_t sign = random >> 63 << (bits - 1),
                   mantissa = random & ((UINT64_C(1) << fraction) - 1);
    const uint64_t top = (UINT64_C(1) << (bits - 1 - fraction)) - 1, one = top >> 1;
    const uint64_t spread = next_random(&seed);
    switch (kind) {
    case MODERATE:
        return sign | (one - spread % 4) << fraction | mantissa;
    case WILD:
        return sign | spread % top << fraction | mantissa;
    case ZEROS:
        return sign | (spread % 10 ? 0 : spread % top << fraction | mantissa);
    case SPECIAL:
        if (spread % 200 == 0) return sign | top << fraction | (spread % 3 ? 0 : mantissa | 1);
        return sign | (one - spread % 3) << fraction | mantissa;
    default:
        return sign | (one + spread % 3) << fraction;
    }
}

static _Alignas(64) unsigned char array_x[N * 8], array_y[N * 8];

static void put(unsigned char *array, tally_type type, size_t i, uint64_t bits) {
    const size_t size = tally_type_size(type);
    for (size_t b = 0; b < size; b++)
        array[i * size + b] = (unsigned char)(bits >> 8 * b);
}

static void fill(tally_type type, int kind, size_t n) {
    for (size_t i = 0; i < n; i++) {
        put(array_x, type, i, element(type, kind));
        put(array_y, type, i, element(type, kind));
    }
}

/* ---- Operators of a user's ----------------------------------------------------------------- */

#define OPERATOR(name, item, expression)                                                           \
    static void name(void *context, const void *left, const void *right, void *out,                \
                     size_t count) {                                                               \
        (void)context;                                                                             \
        for (size_t i = 0; i < count; i++) {                                                       \
            item a, b;                                                                             \
            memcpy(&a, (const char *)left + i * sizeof a, sizeof a);                               \
            memcpy(&b, (const char *)right + i * sizeof b, sizeof b);                              \
            const item c = (item)(expression);                                                     \
            memcpy((char *)out + i * sizeof c, &c, sizeof c);                                      \
        }                                                                                          \
    }
/* Associative nowhere, so that every bracket shows. */
OPERATOR(mix_1, uint8_t, (a ^ (a >> 3)) * 29u + b * 7u)
OPERATOR(mix_2, uint16_t, (a ^ (a >> 5)) * 40503u + b * 7u)
OPERATOR(mix_4, uint32_t, (a ^ (a >> 7)) * 2654435769u + b * 7u)
OPERATOR(mix_8, uint64_t, (a ^ (a >> 9)) * 0x9e3779b97f4a7c15u + b * 7u)
OPERATOR(add_8, uint64_t, a + b)

/* The first of all: its operand, bit for bit. */
static void first(void *context, const void *left, const void *right, void *out, size_t count) {
    const size_t size = context ? 8 : 4;
    (void)right;
    memmove(out, left, count * size);
}

static const uint64_t nothing = 0x2bcdef0123456789u;
static const tally_operator mixes[2][4] = {
    {{mix_1, NULL, &nothing, 0, NULL},
     {mix_2, NULL, &nothing, 0, NULL},
     {mix_4, NULL, &nothing, 0, NULL},
     {mix_8, NULL, &nothing, 0, NULL}},
    {{mix_1, NULL, &nothing, 1, NULL}, /* (they do not commute: "lanes by halves" shows as well) */
     {mix_2, NULL, &nothing, 1, NULL},
     {mix_4, NULL, &nothing, 1, NULL},
     {mix_8, NULL, &nothing, 1, NULL}},
};
static const tally_operator *mix_of(tally_type type, int commutative) {
    const size_t size = tally_type_size(type);
    return &mixes[commutative][size == 1 ? 0 : size == 2 ? 1 : size == 4 ? 2 : 3];
}

/* ---- States and what to compare of them ---------------------------------------------------- */

static tally_state *made(const tally_problem *problem) {
    tally_state *s = NULL;
    assert_ok(tally_state_create(problem, &s));
    assert_non_null(s);
    return s;
}

static const void *at_x(const tally_problem *p, size_t i) {
    return array_x + i * tally_type_size(p->type);
}

static int takes_two(const tally_problem *p) {
    size_t count;
    assert_ok(tally_problem_values(p, &count));
    for (size_t i = 0; i < count; i++)
        if (tally_problem_value_op(p, i) == TALLY_DOT) return 1;
    return 0;
}

static const void *at_y(const tally_problem *p, size_t i) {
    return takes_two(p) ? array_y + i * tally_type_size(p->type) : NULL;
}

static int is_tree(const tally_problem *p) {
    size_t count;
    assert_ok(tally_problem_values(p, &count));
    for (size_t i = 0; i < count; i++) {
        const tally_op op = tally_problem_value_op(p, i);
        if (op == TALLY_USER || (op == TALLY_PROD && p->type >= TALLY_F16)) return 1;
    }
    return 0;
}

/* Whether the order of its elements means something to it. */
static int is_ordered(const tally_problem *p) {
    size_t count;
    assert_ok(tally_problem_values(p, &count));
    for (size_t i = 0; i < count; i++) {
        const tally_op op = tally_problem_value_op(p, i);
        if (op == TALLY_ARGMIN || op == TALLY_ARGMAX) return 1;
    }
    return is_tree(p);
}

/* The state of elements [from, to) of the arrays, which knows where it stands. */
static tally_state *state_of(const tally_problem *p, size_t from, size_t to) {
    tally_state *s = made(p);
    if (is_tree(p)) assert_ok(tally_state_begin_at(s, from));
    assert_ok(tally_state_feed(s, NULL, at_x(p, from), at_y(p, from), to - from));
    return s;
}

struct saved {
    size_t size;
    unsigned char bytes[BYTES];
};

static void save(const tally_state *s, struct saved *out) {
    out->size = tally_state_size(s);
    assert_in_range(out->size, 56, BYTES);
    memset(out->bytes, 0xee, out->size);
    assert_ok(tally_state_save(s, out->bytes, out->size));
}

static const char *name_of(const tally_problem *p) {
    static char text[200];
    snprintf(text, sizeof text, "%s of %s%s, also %s", tally_op_name(p->op),
             tally_type_name(p->type), p->fast ? ", fast" : "",
             p->also[0] ? tally_op_name(p->also[0]) : "nothing");
    return text;
}

static void check_bytes(const tally_state *s, const struct saved *want, const char *what,
                        const tally_problem *p) {
    static struct saved got;
    save(s, &got);
    if (got.size != want->size || memcmp(got.bytes, want->bytes, got.size) != 0)
        fail_msg("%s: %s: the bytes differ", name_of(p), what);
}

/* The state's values are those of elements [from, to). */
static void check_values(const tally_state *s, const tally_problem *p, size_t from, size_t to,
                         const char *what) {
    tally_value want[TALLY_VALUES_MAX], got[TALLY_VALUES_MAX];
    size_t count;
    assert_ok(tally_problem_values(p, &count));
    const tally_status here = tally_reduce(NULL, p, at_x(p, from), at_y(p, from), to - from, want);
    const tally_status there = tally_state_value(s, got);
    if (here != there)
        fail_msg("%s: %s: %s, not %s", name_of(p), what, tally_status_text(there),
                 tally_status_text(here));
    if (here != TALLY_OK) return;
    for (size_t i = 0; i < count; i++)
        if (!same_values(&want[i], &got[i], 1)) {
            char a[32], b[32];
            tally_value_print(&got[i], a, sizeof a);
            tally_value_print(&want[i], b, sizeof b);
            fail_msg("%s: %s of [%zu, %zu): %s is %s, not %s", name_of(p), what, from, to,
                     tally_op_name(tally_problem_value_op(p, i)), a, b);
        }
}

/* Calls body() with every operator and type, and a few problems that ask for more. */
static void every_problem(void (*body)(const tally_problem *)) {
    for (int t = TALLY_I8; t <= TALLY_F64; t++) {
        const tally_type type = (tally_type)t;
        for (int op = TALLY_SUM; op <= TALLY_DESCRIBE; op++)
            body(ASK((tally_op)op, type, .ddof = op == TALLY_VAR));
        for (int commutative = 0; commutative < 2; commutative++)
            body(ASK(TALLY_USER, type, .user = mix_of(type, commutative)));
        body(ASK(TALLY_DESCRIBE, type, .ddof = 0.5,
                 .also = {TALLY_NORM1, TALLY_NORM2, TALLY_NORMINF, TALLY_SUMSQ, TALLY_ANY,
                          TALLY_ALL, TALLY_OR, TALLY_VAR}));
        body(ASK(TALLY_USER, type, .user = mix_of(type, 0),
                 .also = {TALLY_ARGMAX, TALLY_MEAN, TALLY_NONZERO}));
        body(ASK(TALLY_DOT, type, .also = {TALLY_SUM, TALLY_PROD, TALLY_ALL}));
        body(ASK(TALLY_ANY, type, .also = {TALLY_ALL}));
    }
    body(ASK(TALLY_SUM, TALLY_F32, .out = TALLY_BF16));
    body(ASK(TALLY_NORM2, TALLY_I32, .out = TALLY_F16));
}

/* ---- Fed ----------------------------------------------------------------------------------- */

static void feed_in_cuts(const tally_problem *p) {
    static struct saved whole;
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t n = rnd(4) ? rnd(300) : 4096 * rnd(4) + rnd(5000);
        fill(p->type, kind, n);
        tally_state *at_once = state_of(p, 0, n), *fed = made(p);
        save(at_once, &whole);
        for (size_t at = 0, m; at < n; at += m) {
            m = rnd(3) ? rnd(20) : rnd(n) + 1;
            if (m > n - at) m = n - at;
            assert_ok(tally_state_feed(fed, NULL, at_x(p, at), at_y(p, at), m));
            assert_int_equal(tally_state_count(fed), at + m);
            if (m % 7 == 1) check_values(fed, p, 0, at + m, "asked on the way");
        }
        check_values(at_once, p, 0, n, "fed at once");
        check_values(fed, p, 0, n, "fed in cuts");
        check_bytes(fed, &whole, "fed in cuts", p);
        tally_state_destroy(at_once);
        tally_state_destroy(fed);
    }
}

static void test_cuts(void **state) {
    (void)state;
    seed = 1;
    every_problem(feed_in_cuts);
}

/* ---- Merged -------------------------------------------------------------------------------- */

/* Cuts the array into parts and merges them two by two: neighbours, or any two where that is all one. */
static void merge_parts(const tally_problem *p) {
    static struct saved whole;
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t n = rnd(2) ? rnd(300) : 4096 * rnd(4) + rnd(3000), parts = rnd(7) + 2;
        fill(p->type, kind, n);
        tally_state *part[8], *all = state_of(p, 0, n);
        save(all, &whole);
        tally_state_destroy(all);
        size_t cut[9] = {0};
        for (size_t i = 1; i < parts; i++)
            cut[i] = rnd(3) && cut[i - 1] < n ? cut[i - 1] + rnd(n - cut[i - 1]) : cut[i - 1];
        cut[parts] = n;
        for (size_t i = 0; i < parts; i++)
            part[i] = state_of(p, cut[i], cut[i + 1]);
        for (size_t left = parts; left > 1; left--) {
            size_t i = rnd(left - 1), j = i + 1;
            if (!is_ordered(p)) { /* any two of them, either into the other */
                j = rnd(left - 1);
                j += j >= i;
            }
            assert_ok(tally_state_merge(part[i], part[j]));
            tally_state_destroy(part[j]);
            memmove(&part[j], &part[j + 1], (left - j - 1) * sizeof *part);
        }
        check_values(part[0], p, 0, n, "merged");
        check_bytes(part[0], &whole, "merged", p);
        tally_state_destroy(part[0]);
    }
}

static void test_merges(void **state) {
    (void)state;
    seed = 2;
    every_problem(merge_parts);
}

/* A state merged with itself knows its elements twice. */
static void merge_with_itself(const tally_problem *p) {
    static struct saved before;
    const size_t n = 1 + rnd(200), size = tally_type_size(p->type);
    fill(p->type, (int)rnd(KINDS), n);
    tally_state *s = state_of(p, 0, n);
    save(s, &before);
    if (is_tree(p)) {
        assert_error(TALLY_EINVAL, tally_state_merge(s, s));
        check_bytes(s, &before, "merged with itself", p);
    } else {
        memcpy(array_x + n * size, array_x, n * size);
        memcpy(array_y + n * size, array_y, n * size);
        assert_ok(tally_state_merge(s, s));
        check_values(s, p, 0, 2 * n, "merged with itself");
    }
    tally_state_destroy(s);
    s = made(p); /* and nothing, merged with itself, is nothing */
    assert_ok(tally_state_merge(s, s));
    assert_int_equal(tally_state_count(s), 0);
    check_values(s, p, 0, 0, "nothing");
    tally_state_destroy(s);
}

static void test_itself(void **state) {
    (void)state;
    seed = 3;
    every_problem(merge_with_itself);
}

static void test_merge_of_different_problems(void **state) {
    (void)state;
    static struct saved before;
    const tally_operator one = mixes[0][3];
    tally_operator other = mixes[0][3];
    const uint64_t another = 5;
    int context;
    fill(TALLY_F64, MODERATE, 100);
    const tally_problem *const pairs[][2] = {
        {ASK(TALLY_SUM, TALLY_F64), ASK(TALLY_SUMSQ, TALLY_F64)},
        {ASK(TALLY_SUM, TALLY_F64), ASK(TALLY_SUM, TALLY_I64)},
        {ASK(TALLY_SUM, TALLY_I32), ASK(TALLY_SUM, TALLY_I64)},
        {ASK(TALLY_SUM, TALLY_F64), ASK(TALLY_SUM, TALLY_F64, .fast = 1)},
        {ASK(TALLY_SUM, TALLY_F64), ASK(TALLY_MEAN, TALLY_F64)},
        {ASK(TALLY_SUM, TALLY_F64), ASK(TALLY_SUM, TALLY_F64, .also = {TALLY_COUNT})},
        {ASK(TALLY_MIN, TALLY_F64), ASK(TALLY_MAX, TALLY_F64)},
        {ASK(TALLY_MIN, TALLY_F64), ASK(TALLY_MIN, TALLY_F32)},
        {ASK(TALLY_MIN, TALLY_F64), ASK(TALLY_ARGMIN, TALLY_F64)},
        {ASK(TALLY_AND, TALLY_F64), ASK(TALLY_OR, TALLY_F64)},
        {ASK(TALLY_PROD, TALLY_F64), ASK(TALLY_PROD, TALLY_F32)},
        {ASK(TALLY_PROD, TALLY_U64), ASK(TALLY_USER, TALLY_U64, .user = &one)},
        {ASK(TALLY_SUM, TALLY_F64, .also = {TALLY_MIN}),
         ASK(TALLY_SUM, TALLY_F32, .also = {TALLY_MIN})},
        {ASK(TALLY_ANY, TALLY_F64), ASK(TALLY_ALL, TALLY_F64)},
    };
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        for (int turn = 0; turn < 2; turn++) {
            const tally_problem *p = pairs[i][turn], *q = pairs[i][!turn];
            tally_state *left = state_of(p, 0, 10), *right = state_of(q, 10, 20);
            save(left, &before);
            assert_error(TALLY_EINVAL, tally_state_merge(left, right));
            assert_error(TALLY_EINVAL, tally_state_subtract(left, right));
            check_bytes(left, &before, "refused", p);
            tally_state_destroy(left);
            tally_state_destroy(right);
        }
    for (int change = 0; change < 4; change++) {
        other = one;
        if (change == 0) other.combine = add_8;
        if (change == 1) other.context = &context;
        if (change == 2) other.identity = &another;
        if (change == 3) other.commutative = 1;
        const tally_problem *p = ASK(TALLY_USER, TALLY_U64, .user = &one),
                            *q = ASK(TALLY_USER, TALLY_U64, .user = &other);
        tally_state *left = state_of(p, 0, 10), *right = state_of(q, 10, 20);
        assert_error(TALLY_EINVAL, tally_state_merge(left, right));
        tally_state_destroy(left);
        tally_state_destroy(right);
    }
}

/* Exact sums do not care which floating type their elements had. */
static void test_merge_of_different_types(void **state) {
    (void)state;
    static const tally_op ops[] = {TALLY_SUM,   TALLY_MEAN,  TALLY_VAR, TALLY_STD,    TALLY_NORM1,
                                   TALLY_NORM2, TALLY_SUMSQ, TALLY_DOT, TALLY_NONZERO};
    double together[400];
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        const tally_problem *wide = ASK(ops[o], TALLY_F64), *narrow = ASK(ops[o], TALLY_F32);
        float narrow_x[200];
        for (int i = 0; i < 400; i++)
            together[i] =
                (double)(float)((double)(rnd(2000001) - 1000000) * 0x1p-7 * (i % 9 ? 1 : 1e30));
        for (int i = 0; i < 200; i++)
            narrow_x[i] = (float)together[200 + i];
        const int two = ops[o] == TALLY_DOT;
        tally_state *left = made(wide), *right = made(narrow);
        tally_value want, got;
        assert_ok(tally_state_feed(left, NULL, together, two ? together : NULL, 200));
        assert_ok(tally_state_feed(right, NULL, narrow_x, two ? narrow_x : NULL, 200));
        assert_ok(tally_reduce(NULL, wide, together, two ? together : NULL, 400, &want));
        assert_ok(tally_state_merge(left, right));
        assert_ok(tally_state_value(left, &got));
        if (!same_values(&want, &got, 1)) fail_msg("%s of f64 and f32", tally_op_name(ops[o]));
        tally_state_destroy(left);
        tally_state_destroy(right);
    }
}

/* ---- Over the canonical tree ---------------------------------------------------------------- */

static const uint64_t awkward[] = {0,    1,    2,    4094,          4095,     4096,
                                   4097, 8191, 8192, 3 * 4096 + 17, 4 * 4096, 15000};

static void tree_problem(void (*body)(const tally_problem *)) {
    static const tally_type types[] = {TALLY_U8, TALLY_I16, TALLY_BF16, TALLY_F32, TALLY_F64};
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        for (int commutative = 0; commutative < 2; commutative++)
            body(ASK(TALLY_USER, types[t], .user = mix_of(types[t], commutative)));
        if (types[t] >= TALLY_F16) body(ASK(TALLY_PROD, types[t]));
    }
    body(ASK(TALLY_USER, TALLY_F32, .user = mix_of(TALLY_F32, 0),
             .also = {TALLY_ARGMIN, TALLY_SUM}));
}

static void merge_at(const tally_problem *p) {
    static struct saved whole;
    fill(p->type, FEW, N);
    for (size_t i = 0; i < sizeof awkward / sizeof *awkward; i++) {
        const size_t cut = (size_t)awkward[i];
        for (int round = 0; round < 3; round++) {
            const size_t end = cut + (round == 0 ? rnd(10) : rnd(N - cut)),
                         mid = cut + rnd(end - cut + 1);
            tally_state *left = state_of(p, 0, cut), *middle = state_of(p, cut, mid),
                        *right = state_of(p, mid, end), *all = state_of(p, 0, end);
            tally_value value[TALLY_VALUES_MAX];
            save(all, &whole);
            if (cut > 0 && mid > cut) /* a part is not the whole */
                assert_error(TALLY_EINVAL, tally_state_value(middle, value));
            if (round == 1) {
                assert_ok(tally_state_merge(left, middle));
                assert_ok(tally_state_merge(left, right));
            } else {
                assert_ok(tally_state_merge(middle, right));
                assert_ok(tally_state_merge(left, middle));
            }
            check_values(left, p, 0, end, "merged where it begins");
            check_bytes(left, &whole, "merged where it begins", p);
            tally_state_destroy(left);
            tally_state_destroy(middle);
            tally_state_destroy(right);
            tally_state_destroy(all);
        }
    }
}

static void test_tree_parts(void **state) {
    (void)state;
    seed = 4;
    tree_problem(merge_at);
}

/* Parts far behind: merged, they are the part fed at once, byte for byte. */
static void merge_far(const tally_problem *p) {
    static struct saved whole;
    static const uint64_t far[] = {(UINT64_C(1) << 32) - 5000,
                                   (UINT64_C(1) << 32) - 1,
                                   UINT64_C(1) << 32,
                                   (UINT64_C(1) << 32) + 1,
                                   (UINT64_C(1) << 44) - 4096,
                                   (UINT64_C(1) << 63) - 9999,
                                   UINT64_MAX - N};
    fill(p->type, FEW, N);
    for (size_t i = 0; i < sizeof far / sizeof *far; i++)
        for (int round = 0; round < 4; round++) {
            const size_t n = rnd(N), cut = rnd(n + 1);
            tally_state *left = made(p), *right = made(p), *all = made(p);
            assert_ok(tally_state_begin_at(left, 77)); /* (it can be told again) */
            assert_ok(tally_state_begin_at(left, far[i]));
            assert_ok(tally_state_begin_at(right, far[i] + cut));
            assert_ok(tally_state_begin_at(all, far[i]));
            assert_ok(tally_state_feed(left, NULL, at_x(p, 0), NULL, cut));
            assert_ok(tally_state_feed(right, NULL, at_x(p, cut), NULL, n - cut));
            for (size_t at = 0, m; at < n; at += m) {
                m = rnd(3) ? rnd(6000) : 1;
                m = m > n - at ? n - at : m;
                assert_ok(tally_state_feed(all, NULL, at_x(p, at), NULL, m));
            }
            save(all, &whole);
            assert_ok(tally_state_merge(left, right));
            check_bytes(left, &whole, "merged far behind", p);
            tally_state_destroy(left);
            tally_state_destroy(right);
            tally_state_destroy(all);
        }
}

static void test_tree_far(void **state) {
    (void)state;
    seed = 5;
    tree_problem(merge_far);
}

static void test_no_neighbours(void **state) {
    (void)state;
    static struct saved before, right_before;
    static const int64_t off[] = {-4096, -1, 1, 2, 4096};
    fill(TALLY_F32, FEW, N);
    const tally_problem *p = ASK(TALLY_PROD, TALLY_F32, .also = {TALLY_SUM, TALLY_ARGMAX});
    for (size_t i = 0; i < sizeof off / sizeof *off; i++)
        for (size_t n = 4100; n < 9000; n += 1333) {
            tally_state *left = state_of(p, 0, n), *right = made(p);
            assert_ok(tally_state_begin_at(right, n + (uint64_t)off[i]));
            assert_ok(tally_state_feed(right, NULL, at_x(p, n), NULL, 5000));
            save(left, &before);
            save(right, &right_before);
            assert_error(TALLY_EINVAL, tally_state_merge(left, right));
            check_bytes(left, &before, "no neighbours", p);
            check_bytes(right, &right_before, "no neighbours", p);
            check_values(left, p, 0, n, "no neighbours");
            tally_state_destroy(left);
            tally_state_destroy(right);
        }
    /* The right order matters, too; and a state that stands nowhere else stands at 0. */
    tally_state *left = state_of(p, 0, 10), *right = state_of(p, 10, 20), *none = made(p);
    assert_error(TALLY_EINVAL, tally_state_merge(right, left));
    assert_error(TALLY_EINVAL, tally_state_begin_at(right, 10));
    assert_error(TALLY_EINVAL, tally_state_merge(none, right));
    assert_ok(tally_state_merge(none, left));
    assert_ok(tally_state_merge(none, right));
    check_values(none, p, 0, 20, "into nothing");
    tally_state_destroy(left);
    tally_state_destroy(right);
    tally_state_destroy(none);
}

/* ---- Bytes made by hand --------------------------------------------------------------------- */

enum {
    AT_TYPE = 9,
    AT_OUT,
    AT_FAST,
    AT_OP,
    AT_ALSO,
    AT_USER = 21,
    AT_DDOF = 24,
    AT_N = 32,
    AT_FIRST = 40,
    AT_WORDS = 48
};

static void put64(struct saved *s, size_t at, uint64_t word) {
    for (int i = 0; i < 8; i++)
        s->bytes[at + (size_t)i] = (unsigned char)(word >> 8 * i);
}

static uint64_t get64(const struct saved *s, size_t at) {
    uint64_t word = 0;
    for (int i = 0; i < 8; i++)
        word |= (uint64_t)s->bytes[at + (size_t)i] << 8 * i;
    return word;
}

static void put_word(struct saved *s, size_t i, uint64_t word) {
    put64(s, AT_WORDS + 8 * i, word);
}

/* Makes the hash at the end right again. */
static void rehash(struct saved *s) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < s->size - 8; i++)
        hash = (hash ^ s->bytes[i]) * UINT64_C(0x100000001b3);
    put64(s, s->size - 8, hash);
}

static tally_status load(const struct saved *s, const tally_problem *p, tally_state **out) {
    /* a copy of just the right size, so that a sanitizer sees what is read behind it */
    unsigned char *copy = malloc(s->size);
    memcpy(copy, s->bytes, s->size);
    const tally_status status = tally_state_load(copy, s->size, p, out);
    free(copy);
    return status;
}

static tally_state *loaded(struct saved *s, const tally_problem *p) {
    tally_state *state = NULL;
    rehash(s);
    assert_ok(load(s, p, &state));
    check_bytes(state, s, "loaded and saved", p);
    return state;
}

static void refused(struct saved *s, const tally_problem *p, const char *what) {
    tally_state *state = NULL;
    rehash(s);
    const tally_status status = load(s, p, &state);
    if (status != TALLY_EFORMAT)
        fail_msg("%s, %s: loading came to %s", name_of(p), what, tally_status_text(status));
    assert_null(state);
}

/* A state of very many ones, over the canonical tree, by its format: nodes worth their leaves. */
static void test_tree_of_ones(void **state) {
    (void)state;
    static struct saved s;
    static uint64_t ones[10000];
    static const uint64_t zero = 0;
    const tally_operator adding = {add_8, NULL, &zero, 1, NULL};
    const tally_problem *p = ASK(TALLY_USER, TALLY_U64, .user = &adding);
    for (size_t i = 0; i < 10000; i++)
        ones[i] = 1;
    static const uint64_t counts[] = {4096 * 5 + 3,
                                      (UINT64_C(1) << 32) - 4999,
                                      UINT64_C(1) << 32,
                                      (UINT64_C(1) << 32) + 4097,
                                      (UINT64_C(1) << 52) - 1,
                                      UINT64_MAX - 12000};
    for (size_t c = 0; c < sizeof counts / sizeof *counts; c++) {
        const uint64_t n = counts[c], leaves = n / 4096, tail = n % 4096;
        tally_state *few = made(p), *many, *right = made(p);
        save(few, &s);
        tally_state_destroy(few);
        size_t at = AT_WORDS;
        for (int level = 63; level >= 0; level--)
            if (leaves >> level & 1) put64(&s, at, 4096 * (UINT64_C(1) << level)), at += 8;
        for (uint64_t i = 0; i < tail; i++, at += 8)
            put64(&s, at, 1);
        put64(&s, AT_N, n);
        s.size = at + 8;
        many = loaded(&s, p);
        tally_value value;
        assert_int_equal(tally_state_count(many), n);
        assert_ok(tally_state_value(many, &value));
        assert_true(value.as.u64 == n);
        assert_ok(tally_state_begin_at(right, n));
        assert_ok(tally_state_feed(right, NULL, ones, NULL, 10000));
        assert_ok(tally_state_merge(many, right));
        assert_ok(tally_state_value(many, &value));
        assert_true(value.as.u64 == n + 10000);
        assert_ok(tally_state_feed(many, NULL, ones, NULL, 2000));
        assert_ok(tally_state_value(many, &value));
        assert_true(value.as.u64 == n + 12000);
        if (n == UINT64_MAX - 12000) {
            save(many, &s);
            assert_error(TALLY_ERANGE, tally_state_feed(many, NULL, ones, NULL, 1));
            check_bytes(many, &s, "full", p);
        }
        tally_state_destroy(many);
        tally_state_destroy(right);
    }
}

/* NaNs differ from machine to machine in sign and payload: the nodes of products that are saved have canonical
 * ones. Those of a user's operator are what it gave. */
static void test_tree_of_nans(void **state) {
    (void)state;
    static struct saved s;
    static const struct {
        tally_type type;
        uint64_t nan, canonical;
    } types[] = {{TALLY_F64, UINT64_C(0xfff4000000000001), UINT64_C(0x7ff8000000000000)},
                 {TALLY_F32, 0xffa00001, 0x7fc00000},
                 {TALLY_BF16, 0xffa1, 0x7fc00000}, /* (is evaluated in f32) */
                 {TALLY_F16, 0xfd01, 0x7fc00000}};
    seed = 17;
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int user = 0; user < 2; user++) {
            const tally_type type = types[t].type;
            const tally_operator left_one = {first, type == TALLY_F64 ? &seed : NULL, &nothing, 0,
                                             NULL};
            if (user && tally_type_size(type) < 4) continue;
            const tally_problem *p =
                user ? ASK(TALLY_USER, type, .user = &left_one) : ASK(TALLY_PROD, type);
            fill(type, MODERATE, 3 * 4096);
            put(array_x, type, 0, types[t].nan);
            tally_state *all = state_of(p, 0, 3 * 4096), *back;
            save(all, &s);
            assert_true(get64(&s, AT_WORDS) == (user ? types[t].nan : types[t].canonical));
            check_values(all, p, 0, 3 * 4096, "a NaN");
            back = loaded(&s, p);
            check_values(back, p, 0, 3 * 4096, "a NaN, loaded");
            tally_state_destroy(all);
            tally_state_destroy(back);
            if (user) continue;
            put64(&s, AT_WORDS, types[t].canonical + 1);
            refused(&s, p, "a NaN that is not canonical");
        }
}

/* The same of a NaN that comes up between two leaves: infinity * 0. */
static void test_nan_between_leaves(void **state) {
    (void)state;
    static struct saved s;
    const tally_problem *p = ASK(TALLY_PROD, TALLY_F64);
    fill(TALLY_F64, FEW, 2 * 4096);
    for (size_t i = 0; i < 2 * 4096; i++)
        put(array_x, TALLY_F64, i,
            i == 7      ? UINT64_C(0x7ff0000000000000)
            : i == 5000 ? 0
                        : UINT64_C(0x3ff0000000000000));
    tally_state *all = state_of(p, 0, 2 * 4096);
    save(all, &s);
    assert_true(s.size == AT_WORDS + 8 + 8 && get64(&s, AT_WORDS) == UINT64_C(0x7ff8000000000000));
    tally_state_destroy(all);
}

/* ---- Taken apart ---------------------------------------------------------------------------- */

/* Once something has been taken away, sums come back as +0 where the elements left are all -0. */
static void check_window(const tally_state *s, const tally_problem *p, size_t from, size_t to,
                         int reduced) {
    tally_value want[TALLY_VALUES_MAX], got[TALLY_VALUES_MAX];
    size_t count;
    assert_ok(tally_problem_values(p, &count));
    const tally_status here = tally_reduce(NULL, p, at_x(p, from), at_y(p, from), to - from, want);
    assert_int_equal(tally_state_value(s, got), here);
    assert_int_equal(tally_state_count(s), to - from);
    for (size_t i = 0; i < count && here == TALLY_OK; i++) {
        if (reduced && want[i].type >= TALLY_F16 && tally_value_double(&want[i]) == 0 &&
            tally_problem_value_op(p, i) != TALLY_XOR)
            memset(&want[i].as, 0, sizeof want[i].as); /* +0 */
        if (!same_values(&want[i], &got[i], 1))
            fail_msg("%s: %s of the window [%zu, %zu)", name_of(p),
                     tally_op_name(tally_problem_value_op(p, i)), from, to);
    }
}

static void move_window(const tally_problem *p, size_t n) {
    for (int kind = 0; kind < KINDS; kind++) {
        fill(p->type, kind, n);
        tally_state *window = made(p), *leaving = made(p);
        size_t from = 0, to = 0;
        int reduced = 0;
        while (to < n || from < to) {
            size_t m = rnd(40);
            if (to < n && (rnd(2) || from == to)) {
                m = m > n - to ? n - to : m;
                assert_ok(tally_state_feed(window, NULL, at_x(p, to), at_y(p, to), m));
                to += m;
            } else {
                m = m > to - from ? to - from : m;
                tally_state_clear(leaving);
                assert_ok(tally_state_feed(leaving, NULL, at_x(p, from), at_y(p, from), m));
                assert_ok(tally_state_subtract(window, leaving));
                from += m;
                reduced = from < to; /* (a state of nothing starts anew) */
            }
            check_window(window, p, from, to, reduced);
        }
        tally_state *none = made(p);
        static struct saved empty;
        save(none, &empty);
        check_bytes(window, &empty, "a window that has left everything behind", p);
        tally_state_destroy(none);
        tally_state_destroy(window);
        tally_state_destroy(leaving);
    }
}

static void test_window(void **state) {
    (void)state;
    seed = 6;
    for (int t = TALLY_I8; t <= TALLY_F64; t++) {
        const tally_type type = (tally_type)t;
        move_window(ASK(TALLY_SUM, type,
                        .also = {TALLY_MEAN, TALLY_VAR, TALLY_STD, TALLY_NORM1, TALLY_NORM2,
                                 TALLY_SUMSQ, TALLY_NANS, TALLY_NONZERO}),
                    700);
        move_window(ASK(TALLY_DOT, type, .also = {TALLY_COUNT, TALLY_XOR}), 300);
        move_window(ASK(TALLY_NONZERO, type, .also = {TALLY_ANY, TALLY_ALL}), 300);
        move_window(ASK(TALLY_COUNT, type), 100);
    }
}

static void test_subtract_refused(void **state) {
    (void)state;
    static struct saved before;
    static const tally_op without[] = {TALLY_PROD,    TALLY_MIN,    TALLY_MAX,    TALLY_AND,
                                       TALLY_OR,      TALLY_ARGMIN, TALLY_ARGMAX, TALLY_MINMAX,
                                       TALLY_NORMINF, TALLY_ANY,    TALLY_ALL,    TALLY_DESCRIBE};
    seed = 7;
    for (int t = TALLY_I8; t <= TALLY_F64; t++) {
        const tally_type type = (tally_type)t;
        fill(type, MODERATE, 100);
        for (size_t o = 0; o < sizeof without / sizeof *without; o++)
            for (int also = 0; also < 2; also++) {
                const tally_problem *p =
                    also ? ASK(TALLY_SUM, type, .also = {without[o]}) : ASK(without[o], type);
                tally_state *s = state_of(p, 0, 20), *part = state_of(p, 0, 7);
                save(s, &before);
                assert_error(TALLY_EUNSUPPORTED, tally_state_subtract(s, part));
                assert_error(TALLY_EUNSUPPORTED, tally_state_negate(s));
                check_bytes(s, &before, "refused", p);
                tally_state_destroy(s);
                tally_state_destroy(part);
            }
        const tally_problem *p = ASK(TALLY_SUM, type);
        tally_state *s = state_of(p, 0, 20), *part = state_of(p, 0, 21);
        save(s, &before);
        assert_error(TALLY_EINVAL, tally_state_subtract(s, part));
        check_bytes(s, &before, "more than there is", p);
        assert_ok(tally_state_subtract(s, s)); /* all of it */
        assert_int_equal(tally_state_count(s), 0);
        check_values(s, p, 0, 0, "minus itself");
        tally_state_destroy(s);
        tally_state_destroy(part);
    }
    const tally_problem *fast = ASK(TALLY_SUM, TALLY_F32, .fast = 1);
    tally_state *s = state_of(fast, 0, 20), *part = state_of(fast, 0, 7);
    assert_error(TALLY_EUNSUPPORTED, tally_state_subtract(s, part));
    assert_error(TALLY_EUNSUPPORTED, tally_state_negate(s));
    tally_state_destroy(s);
    tally_state_destroy(part);
    const tally_problem *user = ASK(TALLY_USER, TALLY_F32, .user = mix_of(TALLY_F32, 0));
    s = state_of(user, 0, 20);
    part = state_of(user, 0, 7);
    assert_error(TALLY_EUNSUPPORTED, tally_state_subtract(s, part));
    assert_error(TALLY_EUNSUPPORTED, tally_state_negate(s));
    tally_state_destroy(s);
    tally_state_destroy(part);
}

/* What cannot have been among the elements cannot be taken away. */
static void test_subtract_strangers(void **state) {
    (void)state;
    static struct saved before;
    static const struct {
        double there[3], stranger[2];
    } cases[] = {
        {{1, 2, 3}, {NAN, 1}},
        {{1, 2, 3}, {INFINITY, 1}},
        {{1, 2, 3}, {-INFINITY, 1}},
        {{INFINITY, INFINITY, INFINITY}, {1, 2}}, /* one infinity is left of three? */
        {{NAN, -INFINITY, INFINITY}, {1, 2}},
        {{NAN, -INFINITY, INFINITY}, {NAN, NAN}},
        {{0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023},
         {0, 0}}, /* 3 * max left in one */
    };
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
        const tally_problem *p = ASK(TALLY_SUM, TALLY_F64, .also = {TALLY_SUMSQ, TALLY_NORM1});
        tally_state *s = made(p), *part = made(p);
        assert_ok(tally_state_feed(s, NULL, cases[c].there, NULL, 3));
        assert_ok(tally_state_feed(part, NULL, cases[c].stranger, NULL, 2));
        save(s, &before);
        assert_error(TALLY_EINVAL, tally_state_subtract(s, part));
        check_bytes(s, &before, "strangers", p);
        tally_state_destroy(s);
        tally_state_destroy(part);
    }
    /* Squares and magnitudes do not fall below 0, counts not above n. */
    static const tally_op ops[] = {TALLY_SUMSQ, TALLY_NORM1, TALLY_NORM2, TALLY_NONZERO};
    static const double small[3] = {1, 1, 1}, large[2] = {5, 5}, none[2] = {0, 0};
    for (size_t o = 0; o < 4; o++) {
        const tally_problem *p = ASK(ops[o], TALLY_F64);
        tally_state *s = made(p), *part = made(p);
        assert_ok(tally_state_feed(s, NULL, small, NULL, 3));
        assert_ok(tally_state_feed(part, NULL, ops[o] == TALLY_NONZERO ? none : large, NULL, 2));
        save(s, &before);
        assert_error(TALLY_EINVAL, tally_state_subtract(s, part));
        check_bytes(s, &before, "strangers", p);
        tally_state_destroy(s);
        tally_state_destroy(part);
    }
    /* As many as there are, but not these. */
    static const double some[2] = {1, 2}, wrong[2] = {1, 3};
    for (int op = TALLY_SUM; op <= TALLY_SUMSQ; op += TALLY_SUMSQ - TALLY_SUM) {
        const tally_problem *p = ASK((tally_op)op, TALLY_F64);
        tally_state *s = made(p), *part = made(p);
        assert_ok(tally_state_feed(s, NULL, some, NULL, 2));
        assert_ok(tally_state_feed(part, NULL, wrong, NULL, 2));
        save(s, &before);
        assert_error(TALLY_EINVAL, tally_state_subtract(s, part));
        check_bytes(s, &before, "strangers", p);
        tally_state_destroy(s);
        tally_state_destroy(part);
    }
    /* However long that is tried, no sum leaves the range that its elements can have. */
    const tally_problem *p = ASK(TALLY_SUM, TALLY_F64);
    tally_state *s = made(p), *plus = made(p), *minus = made(p);
    static const double most = 0x1.fffffffffffffp1023, least = -0x1.fffffffffffffp1023;
    assert_ok(tally_state_feed(s, NULL, &most, NULL, 1));
    for (int i = 0; i < 50; i++) {
        tally_state_clear(plus);
        tally_state_clear(minus);
        assert_ok(tally_state_feed(plus, NULL, &most, NULL, 1));
        assert_ok(tally_state_feed(minus, NULL, &least, NULL, 1));
        for (int k = 0; k < 60; k++) {
            assert_ok(tally_state_merge(plus, plus));
            assert_ok(tally_state_merge(minus, minus));
        }
        assert_ok(tally_state_merge(s, plus));
        assert_error(TALLY_EINVAL, tally_state_subtract(s, minus)); /* one element, of 2^1085? */
        assert_ok(tally_state_subtract(s, plus));
    }
    save(s, &before);
    tally_state *again = loaded(&before, p);
    tally_state_destroy(again);
    tally_state_destroy(s);
    tally_state_destroy(plus);
    tally_state_destroy(minus);
}

static void test_zero_signs(void **state) {
    (void)state;
    static const double minus_zeros[4] = {-0.0, -0.0, -0.0, -0.0}, ones[2] = {1, -1};
    const tally_problem *p = ASK(TALLY_SUM, TALLY_F64, .also = {TALLY_MEAN});
    tally_value value[2];
    tally_state *s = made(p), *part = made(p);
    assert_ok(tally_state_feed(s, NULL, minus_zeros, NULL, 4));
    assert_ok(tally_state_value(s, value));
    assert_true(signbit(value[0].as.f64) && signbit(value[1].as.f64));
    assert_ok(tally_state_feed(part, NULL, minus_zeros, NULL, 1));
    assert_ok(tally_state_subtract(s, part)); /* "a sum that is then exactly zero is +0" */
    assert_ok(tally_state_value(s, value));
    assert_true(value[0].as.f64 == 0 && !signbit(value[0].as.f64) && !signbit(value[1].as.f64));
    tally_state_clear(s);
    assert_ok(tally_state_feed(s, NULL, minus_zeros, NULL, 4));
    assert_ok(tally_state_negate(s)); /* "a sum of zeros is then +0" */
    assert_ok(tally_state_value(s, value));
    assert_true(value[0].as.f64 == 0 && !signbit(value[0].as.f64) && !signbit(value[1].as.f64));
    assert_ok(tally_state_feed(s, NULL, minus_zeros, NULL, 4));
    assert_ok(tally_state_value(s, value));
    assert_false(signbit(value[0].as.f64));
    tally_state_clear(s); /* forgets that, too */
    assert_ok(tally_state_feed(s, NULL, minus_zeros, NULL, 4));
    assert_ok(tally_state_value(s, value));
    assert_true(signbit(value[0].as.f64));
    assert_ok(tally_state_feed(s, NULL, ones, NULL, 2));
    assert_ok(tally_state_value(s, value));
    assert_false(signbit(value[0].as.f64));
    tally_state_destroy(s);
    tally_state_destroy(part);
}

static void test_negate(void **state) {
    (void)state;
    static const tally_op ops[] = {TALLY_SUM, TALLY_MEAN, TALLY_DOT};
    static struct saved before;
    seed = 8;
    for (int t = TALLY_I8; t <= TALLY_F64; t++)
        for (int kind = 0; kind < KINDS; kind++)
            for (size_t o = 0; o < 3; o++) {
                const tally_type type = (tally_type)t;
                if (type >= TALLY_U8 && type <= TALLY_U64) continue;
                const tally_problem *p = ASK(ops[o], type);
                const size_t n = rnd(5) ? rnd(300) : 0, size = tally_type_size(type);
                fill(type, kind, n);
                tally_state *s = state_of(p, 0, n), *twice;
                save(s, &before);
                assert_ok(tally_state_copy(s, &twice));
                assert_ok(tally_state_negate(s));
                assert_ok(tally_state_negate(twice));
                assert_ok(tally_state_negate(twice));
                tally_value want, got;
                const tally_status first = tally_reduce(NULL, p, at_x(p, 0), at_y(p, 0), n, &want);
                assert_int_equal(tally_state_value(twice, &got), first);
                if (first == TALLY_OK && tally_value_double(&want) != 0)
                    assert_true(same_values(&want, &got, 1));
                if (first == TALLY_OK && tally_value_double(&want) != 0)
                    check_bytes(twice, &before, "negated twice", p);
                for (size_t i = 0; i < n; i++) { /* now the elements themselves */
                    uint64_t bits = 0;
                    memcpy(&bits, array_x + i * size, size);
                    const uint64_t top = UINT64_C(1) << (8 * size - 1);
                    if (type < TALLY_F16 && bits == top) bits = 0; /* (has no negative: not here) */
                    put(array_x, type, i, type < TALLY_F16 ? 0 - bits : bits ^ top);
                }
                if (type < TALLY_F16 && (kind == WILD || kind == SPECIAL)) {
                    tally_state_destroy(s);
                    tally_state_destroy(twice);
                    continue;
                }
                const tally_status second = tally_reduce(NULL, p, at_x(p, 0), at_y(p, 0), n, &want);
                assert_int_equal(tally_state_value(s, &got), second);
                if (want.type >= TALLY_F16 && tally_value_double(&want) == 0)
                    memset(&want.as, 0, sizeof want.as);
                if (second == TALLY_OK && !same_values(&want, &got, 1))
                    fail_msg("%s, negated", name_of(p));
                tally_state_destroy(s);
                tally_state_destroy(twice);
            }
    /* The negative of what has none in its type. */
    const tally_problem *p = ASK(TALLY_SUM, TALLY_I64);
    static const int64_t least = INT64_MIN, one = 1;
    tally_state *s = made(p), *u = made(ASK(TALLY_SUM, TALLY_U64));
    tally_value value;
    assert_ok(tally_state_feed(s, NULL, &least, NULL, 1));
    assert_ok(tally_state_negate(s));
    assert_error(TALLY_ERANGE, tally_state_value(s, &value));
    assert_ok(tally_state_divided(s, 1, TALLY_F64, &value));
    assert_true(value.as.f64 == 0x1p63);
    assert_ok(tally_state_negate(s));
    assert_ok(tally_state_value(s, &value));
    assert_true(value.as.i64 == INT64_MIN);
    assert_ok(tally_state_feed(u, NULL, &one, NULL, 1));
    assert_ok(tally_state_negate(u));
    assert_error(TALLY_ERANGE, tally_state_value(u, &value));
    tally_state_destroy(s);
    tally_state_destroy(u);
}

static void check_divided(const tally_problem *p, double x, int64_t divisor, double want) {
    tally_state *s = made(p);
    tally_value value;
    const float narrow = (float)x;
    const int64_t whole = p->type == TALLY_I64 ? (int64_t)x : 0;
    assert_ok(tally_state_feed(s, NULL,
                               p->type == TALLY_F64   ? (const void *)&x
                               : p->type == TALLY_F32 ? (const void *)&narrow
                                                      : (const void *)&whole,
                               NULL, 1));
    assert_ok(tally_state_divided(s, divisor, TALLY_F64, &value));
    if (!(value.type == TALLY_F64 &&
          (value.as.f64 == want || (isnan(want) && isnan(value.as.f64))) &&
          signbit(value.as.f64) == signbit(want)))
        fail_msg("%s: %a / %lld is %a, not %a", name_of(p), x, (long long)divisor, value.as.f64,
                 want);
    tally_state_destroy(s);
}

static void test_divided(void **state) {
    (void)state;
    static const tally_op ops[] = {TALLY_SUM, TALLY_MEAN, TALLY_NORM1, TALLY_SUMSQ, TALLY_DOT};
    tally_value value;
    seed = 9;
    for (int i = 0; i < 2000;
         i++) { /* below 2^53 a double's division is the exact one, rounded once */
        const double x = (double)(int64_t)(rnd(UINT64_C(1) << 54) - (UINT64_C(1) << 53));
        int64_t divisor = (int64_t)rnd(UINT64_C(1) << (1 + rnd(53))) + 1;
        if (rnd(2)) divisor = -divisor;
        check_divided(ASK(TALLY_SUM, i % 2 ? TALLY_F64 : TALLY_I64), x, divisor,
                      x / (double)divisor);
    }
    for (int i = 0; i < 2000; i++) { /* in f32, of numbers below 2^24 */
        const float x = (float)(int64_t)(rnd(1u << 25) - (1u << 24)),
                    by = (float)(rnd(1u << 24) + 1);
        tally_state *s = made(ASK(TALLY_SUM, TALLY_F32));
        assert_ok(tally_state_feed(s, NULL, &x, NULL, 1));
        assert_ok(tally_state_divided(s, (int64_t)by, 0, &value)); /* 0: f32 */
        assert_true(value.type == TALLY_F32 && value.as.f32 == x / by);
        tally_state_destroy(s);
    }
    const tally_problem *p = ASK(TALLY_SUM, TALLY_F64);
    check_divided(p, 0x1p63, INT64_MIN, -1);
    check_divided(p, 0x1p-1074, 2, 0); /* half of the least: to even */
    check_divided(p, 0x1.8p-1073, 2, 0x1p-1073);
    check_divided(p, 0x1p-1074, INT64_MIN, -0.0);
    check_divided(p, 0x1.fffffffffffffp1023, -1, -0x1.fffffffffffffp1023);
    check_divided(p, INFINITY, -3, -INFINITY);
    check_divided(p, -INFINITY, -3, INFINITY);
    check_divided(p, NAN, -3, NAN);
    check_divided(p, 0.0, 7, 0.0);
    check_divided(p, 0.0, -7, -0.0);
    check_divided(p, -0.0, 7, -0.0);
    check_divided(p, -0.0, -7, 0.0);
    check_divided(ASK(TALLY_SUM, TALLY_I64), 0x1p62, INT64_MIN, -0.5);
    /* Sums that no double holds, brought back by the division. */
    static const double most[4] = {0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023,
                                   0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023};
    tally_state *s = made(p);
    assert_ok(tally_state_feed(s, NULL, most, NULL, 4));
    assert_ok(tally_state_divided(s, 4, 0, &value));
    assert_true(value.as.f64 == most[0]);
    assert_ok(tally_state_divided(s, 2, 0, &value));
    assert_true(value.as.f64 == INFINITY);
    tally_state_destroy(s);
    /* For exact sums, and no others. */
    fill(TALLY_F64, MODERATE, 30);
    for (int op = TALLY_SUM; op <= TALLY_DESCRIBE; op++) {
        int may = 0;
        for (size_t o = 0; o < 5; o++)
            may |= (int)ops[o] == op;
        s = state_of(ASK((tally_op)op, TALLY_F64), 0, 30);
        if (may)
            assert_ok(tally_state_divided(s, 3, 0, &value));
        else
            assert_error(TALLY_EUNSUPPORTED, tally_state_divided(s, 3, 0, &value));
        tally_state_destroy(s);
    }
    s = state_of(ASK(TALLY_SUM, TALLY_F64, .fast = 1), 0, 30);
    assert_error(TALLY_EUNSUPPORTED, tally_state_divided(s, 3, 0, &value));
    tally_state_destroy(s);
    /* The mean is the sum divided by n. */
    s = state_of(ASK(TALLY_MEAN, TALLY_F64), 0, 30);
    tally_value mean;
    assert_ok(tally_state_divided(s, 30, 0, &value));
    assert_ok(tally_state_value(s, &mean));
    assert_true(same_values(&mean, &value, 1));
    tally_state_destroy(s);
}

/* ---- Copied, cleared, counted --------------------------------------------------------------- */

static void copy_and_clear(const tally_problem *p) {
    static struct saved empty, before;
    fill(p->type, (int)rnd(KINDS), 9000);
    tally_state *s = made(p), *copy = NULL;
    const size_t n = 4000 + rnd(5000);
    save(s, &empty);
    assert_int_equal(tally_state_count(s), 0);
    assert_ok(tally_state_feed(s, NULL, at_x(p, 0), at_y(p, 0), n));
    save(s, &before);
    assert_ok(tally_state_copy(s, &copy));
    check_bytes(copy, &before, "a copy", p);
    assert_ok(tally_state_feed(s, NULL, at_x(p, 0), at_y(p, 0), 9000 - n));
    check_bytes(copy, &before, "a copy, after its original was fed", p);
    check_values(copy, p, 0, n, "a copy");
    tally_state_clear(s);
    assert_int_equal(tally_state_count(s), 0);
    check_bytes(s, &empty, "cleared", p);
    check_values(s, p, 0, 0, "cleared");
    tally_state_destroy(s);
    assert_ok(tally_state_feed(copy, NULL, at_x(p, n), at_y(p, n), 9000 - n));
    check_values(copy, p, 0, 9000, "a copy that is fed on");
    tally_state_destroy(copy);
    s = made(p); /* clear() also takes it back to 0 */
    assert_ok(tally_state_begin_at(s, 4711));
    assert_ok(tally_state_feed(s, NULL, at_x(p, 0), at_y(p, 0), 10));
    assert_ok(tally_state_copy(s, &copy));
    save(s, &before);
    check_bytes(copy, &before, "a copy that begins elsewhere", p);
    tally_state_clear(s);
    check_bytes(s, &empty, "cleared", p);
    tally_state_destroy(s);
    tally_state_destroy(copy);
}

static void test_copies(void **state) {
    (void)state;
    seed = 10;
    every_problem(copy_and_clear);
}

/* A state has its own copy of the user's operator, of its text and of its identity. */
static void test_operator_is_copied(void **state) {
    (void)state;
    static struct saved bytes;
    tally_value value, want;
    uint64_t *identity = malloc(sizeof *identity);
    char *source = strdup("(a ^ (a >> 9)) * 0x9e3779b97f4a7c15u + b * 7u");
    tally_operator *op = malloc(sizeof *op);
    tally_problem *p = malloc(sizeof *p);
    tally_state *s, *copy, *again;
    fill(TALLY_U64, WILD, 9000);
    *identity = 4711;
    *op = (tally_operator){mix_8, NULL, identity, 0, source};
    *p = (tally_problem){.op = TALLY_USER, .type = TALLY_U64, .user = op};
    assert_ok(tally_reduce(NULL, p, array_x, NULL, 9000, &want));
    s = made(p);
    save(s, &bytes);
    assert_ok(tally_state_load(bytes.bytes, bytes.size, p, &again));
    memset(identity, 0xab, sizeof *identity); /* whatever is done to the caller's: */
    memset(source, 'x', strlen(source));
    memset(op, 0xcd, sizeof *op);
    memset(p, 0xef, sizeof *p);
    free(identity);
    free(source);
    free(op);
    free(p);
    assert_ok(tally_state_value(s, &value));
    assert_true(value.type == TALLY_U64 && value.as.u64 == 4711);
    assert_ok(tally_state_copy(s, &copy));
    tally_state_destroy(s);
    tally_state *const both[] = {copy, again};
    for (int i = 0; i < 2; i++) {
        assert_ok(tally_state_value(both[i], &value));
        assert_true(value.as.u64 == 4711);
        assert_ok(tally_state_feed(both[i], NULL, array_x, NULL, 5000));
        assert_ok(tally_state_feed(both[i], NULL, array_x + 5000 * 8, NULL, 4000));
        assert_ok(tally_state_value(both[i], &value));
        assert_true(same_values(&value, &want, 1));
        tally_state_destroy(both[i]);
    }
}

/* ---- Saved and loaded ----------------------------------------------------------------------- */

static void save_and_load(const tally_problem *p) {
    static struct saved bytes, other;
    static const size_t lengths[] = {0, 1, 2, 100, 4096, 9001};
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        const size_t n = lengths[l];
        tally_state *back = NULL;
        fill(p->type, (int)(l % KINDS), n + 50);
        tally_state *s = state_of(p, 0, n);
        save(s, &bytes);
        assert_ok(load(&bytes, p, &back));
        check_bytes(back, &bytes, "loaded", p);
        check_values(back, p, 0, n, "loaded");
        assert_int_equal(tally_state_count(back), n);
        assert_ok(tally_state_feed(back, NULL, at_x(p, n), at_y(p, n), 50));
        check_values(back, p, 0, n + 50, "loaded and fed on");
        tally_state_destroy(back);
        if (p->user) {
            back = NULL;
            assert_error(TALLY_EFORMAT, load(&bytes, NULL, &back));
            assert_null(back);
        } else {
            assert_ok(load(&bytes, NULL, &back));
            check_bytes(back, &bytes, "loaded without a problem", p);
            tally_state_destroy(back);
        }
        tally_state_destroy(s);
        if (n != 2 && n != 0) continue;
        for (size_t i = 0; i < bytes.size; i++) { /* every single byte matters */
            other = bytes;
            other.bytes[i] ^= (unsigned char)(1u << rnd(8));
            back = NULL;
            const tally_status status = load(&other, p, &back);
            if (status != TALLY_EFORMAT)
                fail_msg("%s: byte %zu changed: %s", name_of(p), i, tally_status_text(status));
            assert_null(back);
        }
        for (size_t size = 0; size < bytes.size; size += 1 + rnd(40)) {
            other = bytes;
            other.size = size;
            assert_error(TALLY_EFORMAT, load(&other, p, &back));
            if (size >= 56) refused(&other, p, "cut off");
        }
        other = bytes;
        memset(other.bytes + other.size - 8, 0, 16);
        other.size += 8;
        refused(&other, p, "eight bytes more");
    }
}

static void test_saved(void **state) {
    (void)state;
    seed = 11;
    every_problem(save_and_load);
}

/* The words of a state of n elements, with some of them changed: none may be loaded. */
struct wrong {
    const char *what;
    const tally_problem *p;
    size_t n;
    int word; /* which, or HEAD_N, HEAD_FIRST */
    uint64_t value;
    int word_2; /* and another; 0: none */
    uint64_t value_2;
};
enum { HEAD_N = -1, HEAD_FIRST = -2 };

static void change(struct saved *s, int word, uint64_t value) {
    if (word >= 0)
        put_word(s, (size_t)word, value);
    else
        put64(s, word == HEAD_N ? AT_N : AT_FIRST, value);
}

static void check_wrong(const struct wrong *w) {
    static struct saved bytes;
    tally_state *s = state_of(w->p, 0, w->n), *back;
    save(s, &bytes);
    tally_state_destroy(s);
    back = loaded(&bytes, w->p); /* right as it is */
    tally_state_destroy(back);
    change(&bytes, w->word, w->value);
    if (w->word_2) change(&bytes, w->word_2, w->value_2);
    refused(&bytes, w->p, w->what);
}

enum { NANS, PLUS, MINUS, MIXED, LIMBS }; /* words of a sum; of floats: 68 limbs, from 2^-1088 on */
enum { SECOND = LIMBS + 68 };             /* the words behind them */
enum { LEAST, GREATEST, LEAST_AT, GREATEST_AT, NAN_AT, ANY_NAN }; /* of extremes */
#define ALL_32     UINT64_C(0xffffffff)
#define MINUS_2_32 (UINT64_C(0) - (UINT64_C(1) << 32))

static void test_impossible(void **state) {
    (void)state;
    const tally_problem *sum = ASK(TALLY_SUM, TALLY_F64), *whole = ASK(TALLY_SUM, TALLY_I32),
                        *squares = ASK(TALLY_SUMSQ, TALLY_F64),
                        *lengths = ASK(TALLY_NORM1, TALLY_F64), *arg = ASK(TALLY_ARGMIN, TALLY_F64),
                        *most = ASK(TALLY_ARGMAX, TALLY_F64), *least = ASK(TALLY_MIN, TALLY_F32),
                        *iarg = ASK(TALLY_ARGMIN, TALLY_I16), *prod = ASK(TALLY_PROD, TALLY_U16),
                        *iprod = ASK(TALLY_PROD, TALLY_I16), *xor = ASK(TALLY_XOR, TALLY_U8),
                        *and = ASK(TALLY_AND, TALLY_U8), *nonzero = ASK(TALLY_NONZERO, TALLY_F64),
                        *any = ASK(TALLY_ANY, TALLY_F64), *all = ASK(TALLY_ALL, TALLY_F64),
                        *fast = ASK(TALLY_SUM, TALLY_F64, .fast = 1),
                        *var = ASK(TALLY_VAR, TALLY_F64),
                        *user = ASK(TALLY_USER, TALLY_U64, .user = &mixes[0][3]),
                        *both = ASK(TALLY_MIN, TALLY_F64, .also = {TALLY_SUM});
    const uint64_t nan = UINT64_C(0x7ff8000000000000), inf = UINT64_C(0x7ff0000000000000);
    const uint64_t sign = UINT64_C(1) << 63;
    const struct wrong wrongs[] = {
        {"the last limb is -2^32, the rest 0", sum, 9, LIMBS + 67, MINUS_2_32, 0, 0},
        {"the last limb is below -2^32", sum, 9, LIMBS + 67, MINUS_2_32 - 1, 0, 0},
        {"the last limb is 2^32", sum, 9, LIMBS + 67, UINT64_C(1) << 32, 0, 0},
        {"the last limb is the least", sum, 9, LIMBS + 67, sign, 0, 0},
        {"a limb is -2^32", sum, 9, LIMBS + 40, MINUS_2_32, 0, 0},
        {"a limb is 2^32", sum, 9, LIMBS + 40, UINT64_C(1) << 32, 0, 0},
        {"a limb is -1", sum, 9, LIMBS + 3, UINT64_MAX, 0, 0},
        {"a limb is the greatest", sum, 9, LIMBS + 3, INT64_MAX, 0, 0},
        {"2^1087 of one element", sum, 1, LIMBS + 67, UINT64_C(1) << 31, 0, 0},
        {"2^1024 of one element", sum, 1, LIMBS + 66, 1, 0, 0},
        {"3 * 2^1024 of three elements", sum, 3, LIMBS + 66, 3, 0, 0},
        {"2^1056 of 2^32 elements", sum, 9, HEAD_N, UINT64_C(1) << 32, LIMBS + 67, 1},
        {"-2^1025 of one element", sum, 1, LIMBS + 66, ALL_32 - 1, LIMBS + 67, UINT64_MAX},
        {"less than 2^-1074", sum, 9, LIMBS, 1u << 13, 0, 0},
        {"something, of nothing", sum, 9, HEAD_N, 0, 0, 0},
        {"more NaNs than elements", sum, 9, NANS, 10, 0, 0},
        {"more infinities than elements", sum, 9, PLUS, 10, 0, 0},
        {"more -infinities than elements", sum, 9, MINUS, 10, 0, 0},
        {"more of both than elements", sum, 9, NANS, 5, PLUS, 5},
        {"more of both than elements", sum, 9, PLUS, 5, MINUS, 5},
        {"NaNs that wrap around", sum, 9, NANS, UINT64_MAX, PLUS, 2},
        {"infinities that wrap around", sum, 9, PLUS, 2, MINUS, UINT64_MAX},
        {"mixed is 2", sum, 9, MIXED, 2, 0, 0},
        {"mixed is negative", sum, 9, MIXED, UINT64_MAX, 0, 0},
        {"a number of nothing but -0", sum, 9, MIXED, 0, 0, 0},
        {"2^96 of i32", whole, 9, LIMBS + 3, 1, 0, 0},
        {"more than n * 2^64", whole, 3, LIMBS + 2, 4, 0, 0},
        {"the last limb below -2^32", whole, 3, LIMBS + 3, MINUS_2_32 - 1, 0, 0},
        {"squares below 0", squares, 9, LIMBS + 135, UINT64_MAX, LIMBS + 134, ALL_32},
        {"squares that are -infinite", squares, 9, MINUS, 1, 0, 0},
        {"squares of nothing but -0", squares, 0, HEAD_N, 3, 0, 0},
        {"magnitudes below 0", lengths, 9, LIMBS + 67, UINT64_MAX, LIMBS + 66, ALL_32},
        {"magnitudes that are -infinite", lengths, 9, MINUS, 1, 0, 0},
        {"magnitudes of nothing but -0", lengths, 0, HEAD_N, 3, 0, 0},
        {"a NaN's index = n", arg, 9, NAN_AT, 9, ANY_NAN, 1},
        {"a NaN without an index", arg, 9, ANY_NAN, 1, 0, 0},
        {"a NaN's index without a NaN", arg, 9, NAN_AT, 3, 0, 0},
        {"2 for a NaN", arg, 9, NAN_AT, 3, ANY_NAN, 2},
        {"a NaN among integers", iarg, 9, NAN_AT, 3, ANY_NAN, 1},
        {"a NaN of nothing", arg, 0, NAN_AT, 0, ANY_NAN, 1},
        {"an index = n", arg, 9, LEAST_AT, 9, 0, 0},
        {"no index", arg, 9, LEAST_AT, UINT64_MAX, 0, 0},
        {"an index of nothing", arg, 0, LEAST_AT, 1, 0, 0},
        {"a least element that is NaN", arg, 9, LEAST, nan, 0, 0},
        {"an index that is not wanted", arg, 9, GREATEST_AT, 1, 0, 0},
        {"an element that is not wanted", arg, 9, GREATEST, 1, 0, 0},
        {"a greatest element that is -NaN", most, 9, GREATEST, sign | nan, 0, 0},
        {"the index of the greatest = n", most, 9, GREATEST_AT, 9, 0, 0},
        {"an element of more bits than f32", least, 9, LEAST, UINT64_C(1) << 32, 0, 0},
        {"an element of more bits than i16", iarg, 9, LEAST, UINT64_C(1) << 16, 0, 0},
        {"an index where none is asked for", least, 9, LEAST_AT, 1, 0, 0},
        {"a NaN's index where none is asked for", least, 9, NAN_AT, 1, ANY_NAN, 1},
        {"an element behind a NaN", least, 9, ANY_NAN, 1, 0, 0},
        {"a product of 0 without a zero", prod, 3, 0, 0, 1, 0},
        {"a negative product of naturals", prod, 3, 1, 1, 0, 0},
        {"an unknown flag of a product", iprod, 3, 1, 8, 0, 0},
        {"a product with a zero and a sign", iprod, 3, 0, 0, 1, 3},
        {"a product too large, with a sign", iprod, 3, 0, 0, 1, 5},
        {"a magnitude although a factor was 0", iprod, 3, 0, 5, 1, 2},
        {"a magnitude although it is too large", iprod, 3, 0, 5, 1, 4},
        {"a product of nothing that is 2", iprod, 0, 0, 2, 0, 0},
        {"bits beyond the type", xor, 3, 0, 256, 0, 0},
        {"bits of nothing", xor, 0, 0, 1, 0, 0},
        {"bits of nothing", and, 0, 0, 0, 0, 0},
        {"more that are not zero than elements", nonzero, 9, 0, 10, 0, 0},
        {"any is 2", any, 9, 0, 2, 0, 0},
        {"all is neither 0 nor n", all, 9, 0, 4, 0, 0},
        {"a fast sum of nothing that is not 0", fast, 0, 0, 1, 0, 0},
        {"the first index, beyond the last there is", sum, 9, HEAD_FIRST, UINT64_MAX - 8, 0, 0},
        {"another length", user, 9, HEAD_N, 8, 0, 0},
        {"another length", user, 9, HEAD_N, 10, 0, 0},
        {"another first index", user, 5000, HEAD_FIRST, 1, 0, 0},
        {"NaNs in the squares, not in the sum", var, 9, SECOND + NANS, 1, 0, 0},
        {"NaNs in the sum, not in the squares", var, 9, NANS, 1, 0, 0},
        {"infinities in the sum, not in the squares", var, 9, MINUS, 1, 0, 0},
        {"infinities in the squares, not in the sum", var, 9, SECOND + PLUS, 1, 0, 0},
        {"NaNs in the sum, not among the extremes", both, 9, NANS, 1, 0, 0},
        {"NaNs among the extremes, not in the sum", both, 9, SECOND + LEAST, inf, SECOND + ANY_NAN,
         1},
    };
    fill(TALLY_F64, FEW, 5000);
    for (size_t i = 0; i < sizeof wrongs / sizeof *wrongs; i++) {
        seed = 12;
        fill(wrongs[i].p->type, FEW, 10);
        for (size_t k = 0; k < 10; k++) /* positive sums, so that no limb is negative */
            array_x[k * tally_type_size(wrongs[i].p->type) + tally_type_size(wrongs[i].p->type) -
                    1] &= 0x7f;
        check_wrong(&wrongs[i]);
    }
    /* Headers. */
    static struct saved good, bytes;
    fill(TALLY_F64, FEW, 10);
    tally_state *s = state_of(sum, 0, 9), *back = NULL;
    save(s, &good);
    tally_state_destroy(s);
    static const struct {
        size_t at;
        unsigned char value;
    } headers[] = {{8, 0},
                   {8, 2},
                   {8, 255},
                   {AT_TYPE, 0},
                   {AT_TYPE, 13},
                   {AT_OUT, 13},
                   {AT_OUT, 4},
                   {AT_FAST, 2},
                   {AT_OP, 0},
                   {AT_OP, 200},
                   {AT_ALSO, 99},
                   {AT_ALSO + 1, 3},
                   {AT_ALSO + 7, 3},
                   {22, 1},
                   {23, 1},
                   {AT_DDOF + 7, 0xbf},
                   {AT_DDOF + 7, 0xff},
                   {AT_OP, TALLY_USER},
                   {AT_OP, TALLY_MIN}};
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        bytes = good;
        bytes.bytes[headers[i].at] = headers[i].value;
        if (headers[i].at == AT_DDOF + 7) bytes.bytes[AT_DDOF + 6] = 0xf0;
        refused(&bytes, sum, "a header"); /* another problem's */
        rehash(&bytes);
        back = NULL;
        const tally_status status = load(&bytes, NULL, &back);
        if (status != TALLY_EFORMAT)
            fail_msg("byte %zu is %u: %s", headers[i].at, headers[i].value,
                     tally_status_text(status));
        assert_null(back);
    }
    for (int flag = 1; flag < 4; flag++) { /* a user's operator of a sum */
        bytes = good;
        bytes.bytes[AT_USER] = (unsigned char)flag;
        rehash(&bytes);
        const tally_status status = load(&bytes, NULL, &back);
        check_error(status, TALLY_EFORMAT, "load");
        assert_null(back);
    }
    /* The other operator: it commutes. */
    s = state_of(user, 0, 9);
    save(s, &bytes);
    tally_state_destroy(s);
    assert_error(TALLY_EFORMAT,
                 load(&bytes, ASK(TALLY_USER, TALLY_U64, .user = &mixes[1][3]), &back));
    assert_null(back);
}

/* Words changed at random, with a right hash: whatever is loaded is saved as the same bytes and can be used. */
static void change_and_load(const tally_problem *p) {
    static struct saved good, bytes;
    static const uint64_t values[] = {0,
                                      1,
                                      2,
                                      3,
                                      UINT64_MAX,
                                      UINT64_MAX - 1,
                                      INT64_MAX,
                                      UINT64_C(1) << 63,
                                      UINT64_C(1) << 32,
                                      MINUS_2_32,
                                      0xffffffff,
                                      0x80000000};
    unsigned accepted = 0;
    for (int round = 0; round < 60; round++) {
        const size_t n = round % 3 == 0 ? 5 : rnd(40);
        fill(p->type, round % KINDS, n);
        tally_state *s = state_of(p, 0, n), *back = NULL, *other = NULL;
        save(s, &good);
        tally_state_destroy(s);
        bytes = good;
        for (uint64_t changes = rnd(4); changes-- > 0;) {
            const size_t words = (bytes.size - 8 - AT_N) / 8;
            const size_t at = AT_N + 8 * (rnd(2) ? rnd(words) : rnd(words < 12 ? words : 12));
            put64(&bytes, at,
                  rnd(4) ? values[rnd(sizeof values / sizeof *values)]
                         : get64(&bytes, at) ^ UINT64_C(1) << rnd(64));
        }
        rehash(&bytes);
        const tally_status status = load(&bytes, p, &back);
        if (status != TALLY_OK) {
            assert_int_equal(status, TALLY_EFORMAT);
            continue;
        }
        accepted++;
        check_bytes(back, &bytes, "changed, and loaded all the same", p);
        tally_value value[TALLY_VALUES_MAX];
        (void)tally_state_value(back, value);
        assert_ok(tally_state_copy(back, &other));
        const tally_status merged = tally_state_merge(other, back);
        if (merged == TALLY_OK) {
            assert_true(tally_state_count(other) == 2 * tally_state_count(back));
            (void)tally_state_value(other, value);
            save(other, &good);
            s = loaded(&good, p);
            tally_state_destroy(s);
            if (tally_state_subtract(other, back) == TALLY_OK)
                (void)tally_state_value(other, value);
        } else {
            check_bytes(other, &bytes, "not merged", p);
        }
        tally_state_destroy(other);
        tally_state_destroy(back);
    }
    assert_true(accepted > 0);
}

static void test_changed(void **state) {
    (void)state;
    seed = 13;
    every_problem(change_and_load);
}

/* ---- Counts that end ------------------------------------------------------------------------ */

static void test_counts_end(void **state) {
    (void)state;
    static struct saved bytes, before;
    static const tally_op ops[] = {TALLY_COUNT, TALLY_SUM, TALLY_ARGMAX, TALLY_NONZERO,
                                   TALLY_VAR,   TALLY_XOR, TALLY_DOT,    TALLY_DESCRIBE};
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++) {
        const tally_problem *p = ASK(ops[o], TALLY_F64);
        seed = 14;
        fill(TALLY_F64, MODERATE, 20);
        tally_state *few = state_of(p, 0, 5), *s, *part = state_of(p, 0, 3);
        save(few, &bytes);
        put64(&bytes, AT_N, UINT64_MAX - 4);
        s = loaded(&bytes, p);
        assert_true(tally_state_count(s) == UINT64_MAX - 4);
        save(s, &before);
        assert_error(TALLY_ERANGE, tally_state_merge(s, few));
        assert_error(TALLY_ERANGE, tally_state_merge(few, s));
        assert_error(TALLY_ERANGE, tally_state_merge(s, s));
        assert_error(TALLY_ERANGE, tally_state_feed(s, NULL, at_x(p, 0), at_y(p, 0), 5));
        check_bytes(s, &before, "full", p);
        assert_ok(tally_state_merge(s, part)); /* 2^64 - 2 */
        assert_ok(tally_state_feed(s, NULL, at_x(p, 0), at_y(p, 0), 1));
        assert_true(tally_state_count(s) == UINT64_MAX);
        save(s, &before);
        assert_error(TALLY_ERANGE, tally_state_feed(s, NULL, at_x(p, 0), at_y(p, 0), 1));
        assert_error(TALLY_ERANGE, tally_state_merge(s, part));
        check_bytes(s, &before, "full", p);
        if (tally_state_words(s) > 0) {
            int64_t words[300];
            assert_error(TALLY_ERANGE, tally_state_to_words(s, words));
        }
        tally_state_destroy(s);
        tally_state_destroy(few);
        tally_state_destroy(part);
    }
    /* Where it begins counts as well. */
    const tally_problem *p = ASK(TALLY_SUM, TALLY_F64);
    tally_state *s = made(p);
    assert_ok(tally_state_begin_at(s, UINT64_MAX - 3));
    assert_error(TALLY_ERANGE, tally_state_feed(s, NULL, at_x(p, 0), NULL, 4));
    assert_ok(tally_state_feed(s, NULL, at_x(p, 0), NULL, 3));
    assert_error(TALLY_ERANGE, tally_state_feed(s, NULL, at_x(p, 0), NULL, 1));
    tally_state_destroy(s);
}

/* A state that is merged with itself over and over, until there are no more numbers to count with. */
static void test_doublings(void **state) {
    (void)state;
    static struct saved bytes;
    static const double numbers[][2] = {{1.5, 1.5},
                                        {0, 1},
                                        {0x1.fffffffffffffp1023, 0x1.fffffffffffffp1023},
                                        {-0x1.fffffffffffffp1023, -0x1.fffffffffffffp1023},
                                        {0x1p-1074, 0x1p-1074},
                                        {-3, 0x1p900}};
    for (size_t c = 0; c < sizeof numbers / sizeof *numbers; c++) {
        const double a = numbers[c][0], b = numbers[c][1];
        const tally_problem *p =
            ASK(TALLY_SUM, TALLY_F64,
                .also = {TALLY_MEAN, TALLY_VAR, TALLY_NORM1, TALLY_SUMSQ, TALLY_NONZERO});
        tally_state *s = made(p);
        tally_value start[6], value[6];
        assert_ok(tally_state_feed(s, NULL, numbers[c], NULL, 2));
        assert_ok(tally_state_value(s, start));
        for (int k = 1; k < 63; k++) {
            assert_ok(tally_state_merge(s, s));
            assert_true(tally_state_count(s) == UINT64_C(2) << k);
            assert_ok(tally_state_value(s, value));
            const double exact = a == -3 ? b * ldexp(1, k) : c == 1 ? ldexp(1, k) : ldexp(a, k + 1);
            if (value[0].as.f64 != exact)
                fail_msg("%a + %a, doubled %d times: %a", a, b, k, value[0].as.f64);
            if (value[1].as.f64 != start[1].as.f64)
                fail_msg("%a and %a, doubled %d times: the mean is %a", a, b, k, value[1].as.f64);
            if (value[2].as.f64 != start[2].as.f64)
                fail_msg("%a and %a, doubled %d times: the variance is %a", a, b, k,
                         value[2].as.f64);
            save(s, &bytes); /* and once through a file */
            tally_state_destroy(s);
            s = loaded(&bytes, p);
        }
        for (int k = 63; k < 100; k++) { /* 2^64 elements are too many, ever after */
            assert_error(TALLY_ERANGE, tally_state_merge(s, s));
            check_bytes(s, &bytes, "full", p);
        }
        tally_state_destroy(s);
    }
    /* 2^1085 of 2^62 elements by hand, as saved: doubled it is an infinity, and never 0. */
    const tally_problem *p = ASK(TALLY_SUM, TALLY_F64);
    static const double one = 1;
    for (int negative = 0; negative < 2; negative++) {
        tally_state *s = made(p);
        tally_value value;
        assert_ok(tally_state_feed(s, NULL, &one, NULL, 1));
        save(s, &bytes);
        tally_state_destroy(s);
        put64(&bytes, AT_N, UINT64_C(1) << 62);
        put_word(&bytes, LIMBS + 34, 0);
        put_word(&bytes, LIMBS + 67, negative ? 0 - (UINT64_C(1) << 29) : UINT64_C(1) << 29);
        s = loaded(&bytes, p);
        for (int k = 0; k < 2; k++) {
            assert_ok(tally_state_value(s, &value));
            assert_true(value.as.f64 == (negative ? -INFINITY : INFINITY));
            assert_ok(tally_state_divided(s, INT64_MIN, TALLY_F64, &value));
            assert_true(value.as.f64 == (k ? 0x1p1023 : 0x1p1022) * (negative ? 1 : -1));
            assert_ok(tally_state_divided(s, INT64_MAX, TALLY_F32, &value));
            assert_true(value.as.f32 == (negative ? -INFINITY : INFINITY));
            if (k == 0) assert_ok(tally_state_merge(s, s));
        }
        save(s, &bytes);
        tally_state_destroy(s);
        s = loaded(&bytes, p);
        assert_error(TALLY_ERANGE, tally_state_merge(s, s));
        tally_state_destroy(s);
    }
}

/* Two states merged into each other in turn: what they have added up since their carries were settled grows
 * as fast as their counts, far beyond what limbs hold. */
static void test_in_turns(void **state) {
    (void)state;
    static const double numbers[] = {MOST_F64, -MOST_F64, 0x1p-1074, -0x1.23456789abcdep300,
                                     0x1.8p-600};
    for (size_t c = 0; c < sizeof numbers / sizeof *numbers; c++) {
        const tally_problem *p =
            ASK(TALLY_MEAN, TALLY_F64, .also = {TALLY_VAR, TALLY_NORM2, TALLY_SUMSQ, TALLY_NORM1});
        const double two[2] = {numbers[c], numbers[c]};
        tally_state *a = made(p), *b = made(p);
        tally_value value[5];
        assert_ok(tally_state_feed(a, NULL, two, NULL, 1));
        assert_ok(tally_state_feed(b, NULL, two, NULL, 2));
        int merges = 0;
        for (; tally_state_merge(merges % 2 ? b : a, merges % 2 ? a : b) == TALLY_OK; merges++) {
            assert_ok(tally_state_value(merges % 2 ? b : a, value));
            if (value[0].as.f64 != two[0] || value[1].as.f64 != 0)
                fail_msg("%a, %d merges: the mean is %a, the variance %a", two[0], merges,
                         value[0].as.f64, value[1].as.f64);
        }
        assert_in_range(merges, 85, 95); /* F(93) is the last Fibonacci number below 2^64 */
        static struct saved bytes;
        save(a, &bytes);
        tally_state *back = loaded(&bytes, p);
        tally_state_destroy(back);
        tally_state_destroy(a);
        tally_state_destroy(b);
    }
}

/* ---- Words that additions combine ------------------------------------------------------------ */

static void add_words(const tally_problem *p) {
    static struct saved want;
    enum { PARTS = 1000, MOST_WORDS = 600 };
    static int64_t words[PARTS][MOST_WORDS];
    tally_state *s = made(p);
    const size_t count = tally_state_words(s);
    int additive = !is_tree(p) && !p->fast;
    size_t values;
    assert_ok(tally_problem_values(p, &values));
    for (size_t i = 0; i < values; i++)
        switch (tally_problem_value_op(p, i)) {
        case TALLY_SUM:
        case TALLY_MEAN:
        case TALLY_VAR:
        case TALLY_STD:
        case TALLY_NORM1:
        case TALLY_NORM2:
        case TALLY_SUMSQ:
        case TALLY_DOT:
        case TALLY_COUNT:
        case TALLY_NANS:
        case TALLY_NONZERO:
        case TALLY_ANY:
        case TALLY_ALL:
            break;
        default:
            additive = 0;
        }
    assert_true(additive == (count > 0));
    if (!additive) {
        assert_error(TALLY_EUNSUPPORTED, tally_state_to_words(s, words[0]));
        assert_error(TALLY_EUNSUPPORTED, tally_state_from_words(s, words[0]));
        tally_state_destroy(s);
        return;
    }
    assert_true(count <= MOST_WORDS);
    for (int kind = 0; kind < KINDS; kind++) {
        const size_t n = 1500, parts = kind == WILD || rnd(4) == 0 ? PARTS : 20;
        fill(p->type, kind, n);
        tally_state *all = state_of(p, 0, n), *part = made(p);
        save(all, &want);
        size_t at = 0;
        for (size_t i = 0; i < parts; i++) {
            size_t m = i == parts - 1 ? n - at : rnd(4) * (n / parts) / 2;
            m = m > n - at ? n - at : m;
            tally_state_clear(part);
            assert_ok(tally_state_feed(part, NULL, at_x(p, at), at_y(p, at), m));
            assert_ok(tally_state_to_words(part, words[i]));
            at += m;
        }
        for (size_t left = parts; left > 1; left--) { /* any two, until one is left */
            const size_t i = rnd(left);
            size_t j = rnd(left - 1);
            j += j >= i;
            for (size_t w = 0; w < count; w++)
                words[i][w] += words[j][w];
            memcpy(words[j], words[left - 1], sizeof words[j]);
            if (i == left - 1) memcpy(words[j], words[i], sizeof words[j]);
        }
        assert_ok(tally_state_from_words(s, words[0]));
        check_bytes(s, &want, "words added up", p);
        check_values(s, p, 0, n, "words added up");
        tally_state_destroy(all);
        tally_state_destroy(part);
    }
    tally_state_destroy(s);
}

/* The same by tally_merge_words(), neighbours in any order. */
static void merge_words(const tally_problem *p) {
    static struct saved want;
    enum { PARTS = 12, MOST_WORDS = 600 };
    static int64_t words[PARTS][MOST_WORDS];
    tally_state *s = made(p);
    const size_t count = tally_state_merge_words(s), n = 700;
    if (tally_state_words(s)) assert_int_equal(tally_state_words(s), count);
    if (count == 0) {
        assert_true(is_tree(p) || p->fast);
        assert_error(TALLY_EUNSUPPORTED, tally_state_to_merge_words(s, words[0]));
        assert_error(TALLY_EUNSUPPORTED, tally_state_from_merge_words(s, words[0]));
        assert_error(TALLY_EUNSUPPORTED, tally_merge_words(p, words[0], words[1]));
        tally_state_destroy(s);
        return;
    }
    assert_true(!is_tree(p) && count <= MOST_WORDS);
    for (int kind = 0; kind < KINDS; kind++) {
        fill(p->type, kind, n);
        tally_state *all = state_of(p, 0, n), *part = made(p);
        save(all, &want);
        for (size_t i = 0, at = 0; i < PARTS; i++) {
            const size_t m = i == PARTS - 1 ? n - at : rnd(3) * (n / PARTS) / 2;
            tally_state_clear(part);
            assert_ok(tally_state_feed(part, NULL, at_x(p, at), at_y(p, at), m));
            assert_ok(tally_state_to_merge_words(part, words[i]));
            at += m;
        }
        for (size_t left = PARTS; left > 1; left--) {
            const size_t i = rnd(left - 1);
            assert_ok(tally_merge_words(p, words[i], words[i + 1]));
            memmove(words[i], words[i + 1], (left - i - 1) * sizeof words[i]);
        }
        assert_ok(tally_state_from_merge_words(s, words[0]));
        check_bytes(s, &want, "words merged", p);
        check_values(s, p, 0, n, "words merged");
        tally_state_destroy(all);
        tally_state_destroy(part);
    }
    tally_state_destroy(s);
}

static void test_parts(void **state) {
    (void)state;
    seed = 16;
    every_problem(merge_words);
}

static void test_parts_that_are_refused(void **state) {
    (void)state;
    const tally_problem min = {.op = TALLY_MIN, .type = TALLY_F64};
    double x = 1;
    int64_t words[16], other[16];
    tally_state *s = made(&min);
    assert_int_equal(tally_state_merge_words(NULL), 0);
    assert_error(TALLY_EINVAL, tally_state_to_merge_words(NULL, words));
    assert_error(TALLY_EINVAL, tally_state_from_merge_words(s, NULL));
    assert_error(TALLY_EINVAL, tally_merge_words(&min, NULL, words));
    assert_error(TALLY_EINVAL, tally_merge_words(NULL, words, words));
    assert_ok(tally_state_feed(s, NULL, &x, NULL, 1));
    assert_ok(tally_state_to_merge_words(s, words));
    memcpy(other, words, sizeof other);
    other[tally_state_merge_words(s) - 1] = 2; /* whether there is a NaN */
    assert_error(TALLY_EFORMAT, tally_merge_words(&min, words, other));
    assert_error(TALLY_EFORMAT, tally_state_from_merge_words(s, other));
    tally_state_destroy(s);

    /* Of several monoids: the first are not merged where a later one cannot be. */
    const tally_problem both = {.op = TALLY_SUM, .type = TALLY_F64, .also = {TALLY_MIN}};
    int64_t left[200], right[200], before[200];
    s = made(&both);
    const size_t size = tally_state_merge_words(s) * sizeof *left;
    assert_true(size > 0 && size <= sizeof left);
    assert_ok(tally_state_feed(s, NULL, &x, NULL, 1));
    assert_ok(tally_state_to_merge_words(s, left));
    memcpy(right, left, size);
    right[tally_state_merge_words(s) - 1] = 2;
    memcpy(before, right, size);
    assert_error(TALLY_EFORMAT, tally_merge_words(&both, left, right));
    assert_memory_equal(right, before, size);
    /* Counts of elements that are none, and more than a word counts. */
    const int64_t counts[][2] = {{-1, 1}, {1, -1}, {INT64_MIN, INT64_MIN}};
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
        memcpy(right, left, size);
        left[0] = counts[i][0];
        right[0] = counts[i][1];
        memcpy(before, right, size);
        assert_error(TALLY_EFORMAT, tally_merge_words(&both, left, right));
        assert_memory_equal(right, before, size);
    }
    left[0] = INT64_MAX;
    right[0] = 1;
    memcpy(before, right, size);
    assert_error(TALLY_ERANGE, tally_merge_words(&both, left, right));
    assert_memory_equal(right, before, size);
    tally_state_destroy(s);
}

static void test_words(void **state) {
    (void)state;
    seed = 15;
    every_problem(add_words);
}

/* As many parts as a word has room for: by multiplication. */
static void test_many_words(void **state) {
    (void)state;
    static const tally_type types[] = {TALLY_F64, TALLY_F32, TALLY_I64, TALLY_U64};
    static const int64_t wholes[] = {INT64_MIN, -1};
    static const double numbers[] = {-0x1.fffffffffffffp1023, -0x1p-1074};
    static const float singles[] = {-0x1.fffffep127f, -0x1p-149f};
    int64_t words[400];
    for (int t = 0; t < 4; t++)
        for (int one = 0; one < 2; one++) {
            const tally_problem *p =
                ASK(TALLY_SUM, types[t], .also = {TALLY_SUMSQ, TALLY_NORM1, TALLY_MEAN, TALLY_VAR},
                    .out = TALLY_F64);
            tally_state *s = made(p), *want = made(p);
            const size_t count = tally_state_words(s);
            static struct saved bytes;
            assert_in_range(count, 1, 400);
            const void *x = types[t] == TALLY_F64   ? (const void *)&numbers[one]
                            : types[t] == TALLY_F32 ? (const void *)&singles[one]
                                                    : (const void *)&wholes[one];
            assert_ok(tally_state_feed(s, NULL, x, NULL, 1));
            assert_ok(tally_state_feed(want, NULL, x, NULL, 1));
            assert_ok(tally_state_to_words(s, words));
            for (size_t w = 0; w < count; w++)
                words[w] *= INT64_C(1) << 31;
            assert_ok(tally_state_from_words(s, words));
            for (int k = 0; k < 31; k++)
                assert_ok(tally_state_merge(want, want));
            save(want, &bytes);
            check_bytes(s, &bytes, "2^31 states", p);
            tally_state_destroy(s);
            tally_state_destroy(want);
        }
}

static void test_wrong_words(void **state) {
    (void)state;
    const tally_problem *p = ASK(TALLY_SUM, TALLY_F64);
    static struct saved before;
    int64_t good[100], words[100];
    seed = 16;
    fill(TALLY_F64, FEW, 9);
    tally_state *s = state_of(p, 0, 9);
    assert_int_equal(tally_state_words(s), 1 + 4 + 68);
    assert_ok(tally_state_to_words(s, good));
    assert_int_equal(good[0], 9);
    save(s, &before);
    static const struct {
        int word;
        int64_t value;
    } wrong[] = {{0, -1},         {0, 0},  {1, 10}, {1, -1},        {2, 10},
                 {3, 10},         {4, -1}, {4, 0},  {4, 10},        {72, INT64_MAX},
                 {72, INT64_MIN}, {72, 1}, {5, 1},  {71, INT64_MAX}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        memcpy(words, good, sizeof words);
        words[wrong[i].word] = wrong[i].value;
        assert_error(TALLY_EFORMAT, tally_state_from_words(s, words));
        check_bytes(s, &before, "wrong words", p);
    }
    assert_ok(tally_state_from_words(s, good));
    check_bytes(s, &before, "right words", p);
    memset(words, 0, sizeof words); /* nothing */
    assert_ok(tally_state_from_words(s, words));
    assert_int_equal(tally_state_count(s), 0);
    check_values(s, p, 0, 0, "no words");
    tally_state_destroy(s);
    s = made(p); /* wherever it stood, it stands at 0 then */
    assert_ok(tally_state_begin_at(s, 5));
    assert_ok(tally_state_from_words(s, good));
    check_bytes(s, &before, "words", p);
    tally_state_destroy(s);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_merges),
        cmocka_unit_test(test_itself),
        cmocka_unit_test(test_merge_of_different_problems),
        cmocka_unit_test(test_merge_of_different_types),
        cmocka_unit_test(test_tree_parts),
        cmocka_unit_test(test_tree_far),
        cmocka_unit_test(test_no_neighbours),
        cmocka_unit_test(test_tree_of_ones),
        cmocka_unit_test(test_tree_of_nans),
        cmocka_unit_test(test_nan_between_leaves),
        cmocka_unit_test(test_window),
        cmocka_unit_test(test_subtract_refused),
        cmocka_unit_test(test_subtract_strangers),
        cmocka_unit_test(test_zero_signs),
        cmocka_unit_test(test_negate),
        cmocka_unit_test(test_divided),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_operator_is_copied),
        cmocka_unit_test(test_saved),
        cmocka_unit_test(test_impossible),
        cmocka_unit_test(test_changed),
        cmocka_unit_test(test_counts_end),
        cmocka_unit_test(test_doublings),
        cmocka_unit_test(test_in_turns),
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_parts_that_are_refused),
        cmocka_unit_test(test_many_words),
        cmocka_unit_test(test_wrong_words),
    };
    return cmocka_run_group_tests_name("states", tests, NULL, NULL);
}
