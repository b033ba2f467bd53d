/*
 * fuzz_state.c - libFuzzer's bytes against states.
 *
 * The first byte picks one of four games, the second a problem: every operator, with one that is a user's.
 *   0  the bytes are a saved state, or claim to be: load() must refuse them or take them whole. What it takes
 *      must save to the very same bytes and be good for everything that can be done with a state. The third
 *      byte says whether header and hash are made right first, which no fuzzer would guess.
 *   1  the bytes are damage: a good state is saved, some of its bytes are changed, and load() must refuse it
 *      unless nothing changed.
 *   2  the bytes are elements: fed at once, or in pieces that are saved, loaded and merged, at whatever index
 *      they begin, they must come to the same bytes and values; and words must add up, and what was added
 *      last must be possible to take away.
 *   3  the bytes are a sum's: the rounded sum must be within half a unit of the exact one, which taking it
 *      away again shows.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "fuzz_state: line %d: %s: %s\n", __LINE__, #condition, tally_error()); \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { BYTES = 80000, WORDS = 600 };

/* Of 8-byte elements, whatever they are; not associative, so that every bracket shows. */
static void mix(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    for (size_t i = 0; i < count; i++) {
        uint64_t a, b;
        memcpy(&a, (const char *)left + 8 * i, 8);
        memcpy(&b, (const char *)right + 8 * i, 8);
        a = (a ^ (a >> 9)) * 0x9e3779b97f4a7c15u + b * 7;
        memcpy((char *)out + 8 * i, &a, 8);
    }
}
static const uint64_t nothing = 4711;
static const tally_operator in_order = {mix, NULL, &nothing, 0, NULL},
                            in_lanes = {mix, NULL, &nothing, 1, NULL};

/* The problem that two bytes name. */
static tally_problem problem_of(unsigned a, unsigned b) {
    tally_problem p = {.op = (tally_op)(1 + a % 27), .type = (tally_type)(1 + b % 12)};
    static const double ddofs[] = {0, 1, 0.5, 0x1p-1074, 1e300};
    if (p.op == TALLY_VAR || p.op == TALLY_STD) p.ddof = ddofs[b / 12 % 5];
    if (a % 27 + 1 >= TALLY_USER) {
        p.op = TALLY_USER;
        p.type = b % 3 == 0 ? TALLY_I64 : b % 3 == 1 ? TALLY_U64 : TALLY_F64;
        p.user = a % 2 ? &in_order : &in_lanes;
        if (b & 64) p.also[0] = TALLY_DESCRIBE;
    } else if (a >= 135) { /* several in one */
        p.also[0] = TALLY_NORM1;
        p.also[1] = (tally_op)(1 + b / 12 % 7);
        p.also[2] = a & 1 ? TALLY_DESCRIBE : TALLY_ANY;
        if ((p.op == TALLY_AND || p.op == TALLY_OR || p.op == TALLY_XOR) &&
            p.also[1] >= TALLY_AND && p.also[1] <= TALLY_XOR)
            p.also[1] = p.op;
    }
    return p;
}

static int asks(const tally_problem *p, tally_op op) {
    size_t count;
    REQUIRE(tally_problem_values(p, &count) == TALLY_OK);
    for (size_t i = 0; i < count; i++)
        if (tally_problem_value_op(p, i) == op) return 1;
    return 0;
}

static int over_tree(const tally_problem *p) {
    return asks(p, TALLY_USER) || (p->type >= TALLY_F16 && asks(p, TALLY_PROD));
}

static tally_state *made(const tally_problem *p) {
    tally_state *s;
    REQUIRE(tally_state_create(p, &s) == TALLY_OK);
    return s;
}

struct saved {
    size_t size;
    unsigned char bytes[BYTES];
};

static void save(const tally_state *s, struct saved *out) {
    out->size = tally_state_size(s);
    REQUIRE(out->size <= BYTES);
    REQUIRE(tally_state_save(s, out->bytes, out->size) == TALLY_OK);
}

static tally_state *loaded(const struct saved *from, const tally_problem *p) {
    tally_state *s;
    REQUIRE(tally_state_load(from->bytes, from->size, p, &s) == TALLY_OK);
    return s;
}

static void check_same(const tally_state *s, const struct saved *want) {
    static struct saved got;
    save(s, &got);
    REQUIRE(got.size == want->size && memcmp(got.bytes, want->bytes, got.size) == 0);
}

/* The values, which there may not be; whatever they are, they can be printed. */
static tally_status values_of(const tally_state *s, const tally_problem *p, tally_value *out) {
    size_t count;
    char text[32];
    const tally_status status = tally_state_value(s, out);
    REQUIRE(status == TALLY_OK || status == TALLY_ERANGE || status == TALLY_EINVAL);
    REQUIRE(tally_problem_values(p, &count) == TALLY_OK);
    for (size_t i = 0; i < count && status == TALLY_OK; i++)
        REQUIRE(tally_value_print(&out[i], text, sizeof text) < sizeof text);
    return status;
}

/* Everything that can be done with the state that `bytes` are. */
static void exercise(const struct saved *bytes, const tally_problem *p) {
    static struct saved again;
    static int64_t words[WORDS];
    tally_value value[TALLY_VALUES_MAX];
    tally_state *s = loaded(bytes, p), *other = made(p), *copy;
    const uint64_t n = tally_state_count(s);
    check_same(s, bytes);
    (void)values_of(s, p, value);
    REQUIRE(tally_state_copy(s, &copy) == TALLY_OK);
    check_same(copy, bytes);
    tally_status status = tally_state_merge(copy, s);
    REQUIRE(status == TALLY_OK || status == TALLY_ERANGE || status == TALLY_EINVAL);
    if (status != TALLY_OK) {
        check_same(copy, bytes);
    } else { /* the same elements twice */
        REQUIRE(tally_state_count(copy) == 2 * n);
        (void)values_of(copy, p, value);
        save(copy, &again);
        tally_state_destroy(copy);
        copy = loaded(&again, p);
        check_same(copy, &again);
        if (tally_state_subtract(copy, s) == TALLY_OK) {
            REQUIRE(tally_state_count(copy) == n);
            (void)values_of(copy, p, value);
        }
    }
    if (tally_state_negate(copy) == TALLY_OK) (void)values_of(copy, p, value);
    if (tally_state_divided(copy, -3, TALLY_F64, value) == TALLY_OK)
        REQUIRE(value[0].type == TALLY_F64);
    if (tally_state_words(s) > 0 && tally_state_to_words(s, words) == TALLY_OK) {
        REQUIRE(tally_state_words(s) <= WORDS);
        REQUIRE(tally_state_from_words(other, words) == TALLY_OK);
        REQUIRE(tally_state_count(other) == n);
    }
    tally_state_clear(other);
    REQUIRE(tally_state_count(other) == 0);
    tally_state_destroy(s);
    tally_state_destroy(other);
    tally_state_destroy(copy);
}

static void rehash(struct saved *s) {
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
    for (size_t i = 0; i < s->size - 8; i++)
        hash = (hash ^ s->bytes[i]) * 0x100000001b3u;
    for (int i = 0; i < 8; i++)
        s->bytes[s->size - 8 + (size_t)i] = (unsigned char)(hash >> (8 * i));
}

static void load_anything(const tally_problem *p, const uint8_t *data, size_t size) {
    static struct saved bytes;
    tally_state *s = NULL;
    if (size < 1) return;
    const unsigned how = data[0] % 4;
    data++, size--;
    if (how == 0) { /* the bytes as they are */
        bytes.size = size < BYTES ? size : BYTES;
        memcpy(bytes.bytes, data, bytes.size);
    } else { /* behind a right header; 1: of a state that knows some elements */
        tally_state *good = made(p);
        static uint64_t ones[9000];
        if (how == 1) {
            const size_t n = size > 1 ? (data[0] | data[1] << 8) % 9000 : 0;
            REQUIRE(tally_state_feed(good, NULL, ones, asks(p, TALLY_DOT) ? ones : NULL, n) ==
                    TALLY_OK);
        }
        save(good, &bytes);
        tally_state_destroy(good);
        if (how == 3 && size + 40 < BYTES) { /* of any length */
            bytes.size = 40 + size;
            if (bytes.size < 56) bytes.size = 56;
        }
        for (size_t i = 32, k = how == 1 ? 2 : 0; i < bytes.size - 8 && k < size; i++, k++)
            if (how != 1)
                bytes.bytes[i] = data[k];
            else
                bytes.bytes[i] ^= data[k]; /* a few changes at a time */
        rehash(&bytes);
    }
    const tally_status status = tally_state_load(bytes.bytes, bytes.size, p, &s);
    REQUIRE(status == TALLY_OK || status == TALLY_EFORMAT || status == TALLY_EINVAL);
    if (status != TALLY_OK) {
        REQUIRE(s == NULL && tally_error()[0] != '\0');
        return;
    }
    tally_state_destroy(s);
    exercise(&bytes, p);
}

static void load_damaged(const tally_problem *p, const uint8_t *data, size_t size) {
    static struct saved bytes, good;
    tally_state *s = made(p);
    const size_t elements = size / 2, width = tally_type_size(p->type);
    const void *y = asks(p, TALLY_DOT) ? data : NULL;
    REQUIRE(tally_state_feed(s, NULL, data, y, elements / width) == TALLY_OK);
    save(s, &good);
    tally_state_destroy(s);
    exercise(&good, p);
    bytes = good;
    for (size_t i = elements; i + 2 < size && i < elements + 9; i += 3) /* one to three bytes */
        bytes.bytes[(size_t)(data[i] << 8 | data[i + 1]) % bytes.size] = data[i + 2];
    const tally_status status = tally_state_load(bytes.bytes, bytes.size, p, &s);
    if (memcmp(bytes.bytes, good.bytes, good.size) == 0) {
        REQUIRE(status == TALLY_OK);
        tally_state_destroy(s);
    } else {
        REQUIRE(status == TALLY_EFORMAT);
    }
}

static void check_words(const tally_state *whole, const tally_state *left, const tally_state *right,
                        const tally_problem *p) {
    static int64_t words[WORDS], more[WORDS];
    static struct saved want;
    const size_t count = tally_state_words(whole);
    if (count == 0) return;
    REQUIRE(count <= WORDS);
    REQUIRE(tally_state_to_words(left, words) == TALLY_OK);
    REQUIRE(tally_state_to_words(right, more) == TALLY_OK);
    for (size_t i = 0; i < count; i++)
        words[i] += more[i];
    tally_state *s = made(p);
    REQUIRE(tally_state_from_words(s, words) == TALLY_OK);
    save(whole, &want);
    check_same(s, &want);
    tally_state_destroy(s);
}

static void feed_elements(const tally_problem *p, const uint8_t *data, size_t size) {
    static struct saved bytes, want;
    static unsigned char array[9000 * 8];
    if (size < 4) return;
    const size_t width = tally_type_size(p->type), most = (size - 4) / width;
    const uint8_t *x = data + 4;
    size_t n = most;
    const int long_one = data[1] & 1; /* repeated to more than a leaf */
    if (long_one && most > 0) {
        n = 4000 + data[2] * 16u;
        for (size_t i = 0; i < n; i++)
            memcpy(array + i * width, x + i % most * width, width);
        x = array;
    }
    const size_t cut = n ? (data[0] | (size_t)data[3] << 8) % (n + 1) : 0;
    const int two = asks(p, TALLY_DOT);
#define AT(i) x + (i)*width, two ? x + (i)*width : NULL
    tally_state *whole = made(p), *left = made(p), *right = made(p), *none = made(p), *back;
    tally_value a[TALLY_VALUES_MAX], b[TALLY_VALUES_MAX];
    size_t count;
    REQUIRE(tally_problem_values(p, &count) == TALLY_OK);

    const tally_status direct = tally_reduce(NULL, p, AT(0), n, a);
    REQUIRE(tally_state_feed(whole, NULL, AT(0), n) == TALLY_OK);
    REQUIRE(tally_state_count(whole) == n);
    REQUIRE(values_of(whole, p, b) == direct);
    for (size_t i = 0; i < count && direct == TALLY_OK; i++)
        REQUIRE(a[i].type == b[i].type && tally_value_bits(&a[i]) == tally_value_bits(&b[i]));
    save(whole, &want);
    exercise(&want, p);

    if (over_tree(p)) REQUIRE(tally_state_begin_at(right, cut) == TALLY_OK);
    REQUIRE(tally_state_feed(left, NULL, AT(0), cut) == TALLY_OK);
    size_t piece = 1;
    for (size_t at = cut; at < n; at += piece, piece = piece * 5 % 4099 + 1) {
        if (piece > n - at) piece = n - at;
        REQUIRE(tally_state_feed(right, NULL, AT(at), piece) == TALLY_OK);
    }
    check_words(whole, left, right, p);
    save(right, &bytes);
    exercise(&bytes, p);
    back = loaded(&bytes, p);
    if (cut > 0 && cut < n && over_tree(p)) { /* the wrong way about, and without what is between */
        save(left, &bytes);
        REQUIRE(tally_state_merge(right, left) == TALLY_EINVAL);
        REQUIRE(tally_state_merge(none, right) == TALLY_EINVAL);
    }
    REQUIRE(tally_state_merge(none, left) == TALLY_OK);
    REQUIRE(tally_state_merge(left, back) == TALLY_OK);
    check_same(left, &want);
    if (tally_state_subtract(left, back) == TALLY_OK) /* what was added last is taken away */
        REQUIRE(tally_state_count(left) == cut);
    tally_state_destroy(whole);
    tally_state_destroy(left);
    tally_state_destroy(right);
    tally_state_destroy(none);
    tally_state_destroy(back);
#undef AT
}

static void add_and_take_away(const uint8_t *data, size_t size) {
    if (size < 1) return;
    const tally_problem p = {.op = TALLY_SUM,
                             .type = (tally_type)(TALLY_F16 + data[0] % 4),
                             .out = TALLY_F64},
                        of_f64 = {.op = TALLY_SUM, .type = TALLY_F64};
    const size_t n = (size - 1) / tally_type_size(p.type);
    tally_state *s = made(&p), *minus = made(&of_f64);
    tally_value sum, rest;
    REQUIRE(tally_state_feed(s, NULL, data + 1, NULL, n) == TALLY_OK);
    REQUIRE(tally_state_value(s, &sum) == TALLY_OK);
    const uint64_t magnitude = tally_value_bits(&sum) & 0x7fffffffffffffffu;
    if (magnitude < 0x7ff0000000000000u) {
        /* s - sum is at most half the last place of sum (taken upwards, at powers of two) */
        const double negative = -sum.as.f64;
        REQUIRE(tally_state_feed(minus, NULL, &negative, NULL, 1) == TALLY_OK);
        REQUIRE(tally_state_merge(s, minus) == TALLY_OK);
        REQUIRE(tally_state_value(s, &rest) == TALLY_OK);
        double here, next;
        const uint64_t after = magnitude + 1;
        memcpy(&here, &magnitude, 8);
        memcpy(&next, &after, 8);
        const double left = rest.as.f64 < 0 ? -rest.as.f64 : rest.as.f64;
        if (after < 0x7ff0000000000000u)
            REQUIRE(left <= (next - here) / 2 || (left == 0 && magnitude == 0));
    }
    tally_state_destroy(s);
    tally_state_destroy(minus);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size < 3) return 0;
    const tally_problem p = problem_of(data[1], data[2]);
    switch (data[0] % 4) {
    case 0:
        load_anything(&p, data + 3, size - 3);
        break;
    case 1:
        load_damaged(&p, data + 3, size - 3);
        break;
    case 2:
        feed_elements(&p, data + 3, size - 3);
        break;
    default:
        add_and_take_away(data + 3, size - 3);
    }
    return 0;
}
