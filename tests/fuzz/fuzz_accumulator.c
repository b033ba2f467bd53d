/*
 * fuzz_accumulator.c - libFuzzer's bytes against the superaccumulator.
 *
 * The first byte picks one of three games:
 *   0  the bytes are a saved accumulator, or claim to be: load() must refuse them or take them whole.
 *      What it takes must save to the very same bytes, round to every type and merge. The second
 *      byte says whether magic, version and hash are made right first, which no fuzzer would guess.
 *   1  the bytes are damage: a good accumulator is saved, some of its bytes are changed, and load()
 *      must refuse it unless nothing changed.
 *   2  the bytes are numbers: added at once, or in pieces and merged backwards, or through a save and
 *      a load, they must come to the same bytes; and the rounded sum must be within half a unit of
 *      the exact one, which taking it away again shows.
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
            fprintf(stderr, "fuzz_accumulator: line %d: %s\n", __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

enum { BYTES = TALLY_ACCUMULATOR_BYTES };

static tally_accumulator *made(void) {
    tally_accumulator *acc;
    REQUIRE(tally_accumulator_create(&acc) == TALLY_OK);
    return acc;
}

static tally_accumulator *loaded(const unsigned char *bytes) {
    tally_accumulator *acc;
    REQUIRE(tally_accumulator_load(bytes, BYTES, &acc) == TALLY_OK);
    return acc;
}

/* Everything that can be done with an accumulator that holds `bytes`. */
static void exercise(const unsigned char *bytes) {
    unsigned char again[BYTES], twice[BYTES];
    tally_accumulator *acc = loaded(bytes), *other = made();
    tally_accumulator_save(acc, again);
    REQUIRE(memcmp(bytes, again, BYTES) == 0);
    for (int type = TALLY_F16; type <= TALLY_F64; type++) {
        tally_value value;
        REQUIRE(tally_accumulator_round(acc, (tally_type)type, &value) == TALLY_OK);
        REQUIRE(value.type == (tally_type)type);
        char text[32];
        REQUIRE(tally_value_print(&value, text, sizeof text) < sizeof text);
    }
    const uint64_t count = tally_accumulator_count(acc);
    REQUIRE(tally_accumulator_merge(other, acc) == TALLY_OK); /* nothing + acc */
    tally_accumulator_save(other, again);
    REQUIRE(memcmp(bytes, again, BYTES) == 0);
    REQUIRE(tally_accumulator_merge(acc, acc) == TALLY_OK);
    REQUIRE(tally_accumulator_merge(other, other) == TALLY_OK);
    REQUIRE(tally_accumulator_count(acc) == 2 * count);
    tally_accumulator_save(acc, again);
    tally_accumulator_save(other, twice);
    REQUIRE(memcmp(twice, again, BYTES) == 0);
    tally_accumulator_clear(other);
    REQUIRE(tally_accumulator_count(other) == 0);
    tally_accumulator_destroy(acc);
    tally_accumulator_destroy(other);
}

static void load_anything(const uint8_t *data, size_t size) {
    unsigned char bytes[BYTES];
    if (size > BYTES && data[0] % 2) {
        size = BYTES;
        memcpy(bytes, data + 1, BYTES);
        memcpy(bytes, "TALLYACC\1", 9);
        uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a */
        for (int i = 0; i < BYTES - 8; i++)
            hash = (hash ^ bytes[i]) * 0x100000001b3u;
        for (int i = 0; i < 8; i++)
            bytes[BYTES - 8 + i] = (unsigned char)(hash >> (8 * i));
        data = bytes;
    }
    tally_accumulator *acc = NULL;
    const tally_status status = tally_accumulator_load(data, size, &acc);
    REQUIRE(status == TALLY_OK || status == TALLY_EFORMAT || status == TALLY_EINVAL);
    if (status != TALLY_OK) {
        REQUIRE(acc == NULL && tally_error()[0] != '\0');
        return;
    }
    REQUIRE(size == BYTES);
    tally_accumulator_destroy(acc);
    exercise(data);
}

static void load_damaged(const uint8_t *data, size_t size) {
    unsigned char bytes[BYTES], good[BYTES];
    tally_accumulator *acc = made();
    const size_t numbers = size / 2;
    REQUIRE(tally_accumulator_add(acc, NULL, TALLY_F32, data, numbers / 4) == TALLY_OK);
    tally_accumulator_save(acc, good);
    tally_accumulator_destroy(acc);
    exercise(good);
    memcpy(bytes, good, BYTES);
    for (size_t i = numbers; i + 2 < size && i < numbers + 9; i += 3) /* one to three bytes */
        bytes[(data[i] << 8 | data[i + 1]) % BYTES] = data[i + 2];
    const tally_status status = tally_accumulator_load(bytes, BYTES, &acc);
    if (memcmp(bytes, good, BYTES) == 0) {
        REQUIRE(status == TALLY_OK);
        tally_accumulator_destroy(acc);
    } else {
        REQUIRE(status == TALLY_EFORMAT);
    }
}

static void add_numbers(const uint8_t *data, size_t size) {
    if (size < 2) return;
    const tally_type type = (tally_type)(TALLY_F16 + data[0] % 4);
    const size_t width = tally_type_size(type), n = (size - 2) / width;
    const size_t cut = n ? data[1] % (n + 1) : 0;
    const uint8_t *x = data + 2;
    unsigned char whole[BYTES], pieces[BYTES];

    tally_accumulator *a = made(), *b = made(), *c;
    REQUIRE(tally_accumulator_add(a, NULL, type, x, n) == TALLY_OK);
    tally_accumulator_save(a, whole);
    REQUIRE(tally_accumulator_count(a) == n);
    exercise(whole);

    REQUIRE(tally_accumulator_add(b, NULL, type, x + cut * width, n - cut) == TALLY_OK);
    tally_accumulator_save(b, pieces);
    c = loaded(pieces);
    for (size_t i = cut; i-- > 0;) /* the rest backwards, one by one */
        REQUIRE(tally_accumulator_add(c, NULL, type, x + i * width, 1) == TALLY_OK);
    tally_accumulator_save(c, pieces);
    REQUIRE(memcmp(whole, pieces, BYTES) == 0);

    tally_value sum, direct, rest;
    const tally_options options = {0, TALLY_F64};
    REQUIRE(tally_accumulator_round(a, TALLY_F64, &sum) == TALLY_OK);
    REQUIRE(tally_reduce(NULL, TALLY_SUM, type, x, n, &options, &direct) == TALLY_OK);
    REQUIRE(tally_value_bits(&sum) == tally_value_bits(&direct));

    const uint64_t magnitude = tally_value_bits(&sum) & 0x7fffffffffffffffu;
    if (magnitude < 0x7ff0000000000000u) {
        /* a - sum is at most half the last place of sum (taken upwards, at powers of two) */
        const double minus = -sum.as.f64;
        REQUIRE(tally_accumulator_add(a, NULL, TALLY_F64, &minus, 1) == TALLY_OK);
        REQUIRE(tally_accumulator_round(a, TALLY_F64, &rest) == TALLY_OK);
        double here, next;
        const uint64_t after = magnitude + 1;
        memcpy(&here, &magnitude, 8);
        memcpy(&next, &after, 8);
        const double left = rest.as.f64 < 0 ? -rest.as.f64 : rest.as.f64;
        if (after < 0x7ff0000000000000u)
            REQUIRE(left <= (next - here) / 2 || (left == 0 && magnitude == 0));
    }
    tally_accumulator_destroy(a);
    tally_accumulator_destroy(b);
    tally_accumulator_destroy(c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    switch (data[0] % 3) {
    case 0:
        load_anything(data + 1, size - 1);
        break;
    case 1:
        load_damaged(data + 1, size - 1);
        break;
    default:
        add_numbers(data + 1, size - 1);
    }
    return 0;
}
