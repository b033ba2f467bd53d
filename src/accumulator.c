/*
 * accumulator.c - the public superaccumulator: a float_sum with a handle, and its form as bytes.
 *
 * The bytes, all little-endian:
 *   0    8    "TALLYACC"
 *   8    1    version, 1
 *   9    1    SEEN_... flags of NaNs and infinities met
 *   10   1    1 if some number was not -0
 *   11   1    0
 *   12   8    how many numbers were added
 *   20   268  the normalised sum's digits: limbs 0 .. 66, 32 bits each, lowest first
 *   288  8    limb 67, signed 64 bits
 *   296  8    FNV-1a hash of bytes 0 .. 295
 * Normalised digits are unique; where a NaN or an infinity was met the finite part no longer matters and
 * is 0, and two opposite infinities are a NaN: so equal multisets give equal bytes.
 */
#include "device.h"
#include "exact/float_sum.h"
#include "fpenv.h"
#include "status.h"

#include <stdlib.h>
#include <string.h>

struct tally_accumulator {
    struct float_sum sum;
};

tally_status tally_accumulator_create(tally_accumulator **out) {
    if (!out) return fail(TALLY_EINVAL, "tally_accumulator_create: out is NULL");
    tally_accumulator *acc = malloc(sizeof *acc);
    if (!acc) return fail(TALLY_ENOMEM, "no memory for an accumulator (%zu bytes)", sizeof *acc);
    float_sum_clear(&acc->sum);
    *out = acc;
    return TALLY_OK;
}

void tally_accumulator_destroy(tally_accumulator *acc) {
    free(acc);
}

void tally_accumulator_clear(tally_accumulator *acc) {
    float_sum_clear(&acc->sum);
}

tally_status tally_accumulator_add(tally_accumulator *acc, tally_device *device, tally_type type,
                                   const void *x, size_t n) {
    if (!acc) return fail(TALLY_EINVAL, "tally_accumulator_add: the accumulator is NULL");
    if (!type_is_float(type))
        return fail(TALLY_ETYPE, "an accumulator adds f16, bf16, f32 or f64, not %s",
                    tally_type_name(type) ? tally_type_name(type) : "an unknown type");
    if (n > 0 && !x) return fail(TALLY_EINVAL, "the array is NULL but n is %zu", n);
    if (n > SIZE_MAX / 2 / tally_type_size(type))
        return fail(TALLY_EINVAL, "n = %zu elements of %s are more than memory can hold", n,
                    tally_type_name(type));
    if (n == 0) return TALLY_OK;
    struct reduction r;
    tally_status s = reduction_plan(TALLY_SUM, type, NULL, &r);
    if (s != TALLY_OK) return s;
    if (!device) device = cpu_calling_thread();
    struct fp_env caller = fp_env_enter();
    struct partial p;
    partial_clear(&r, &p);
    s = device->kind->fold(device, &r, x, n, &p);
    if (s == TALLY_OK) float_sum_merge(&acc->sum, &p.u.sum);
    fp_env_leave(caller);
    return s;
}

tally_status tally_accumulator_merge(tally_accumulator *acc, const tally_accumulator *from) {
    if (!acc || !from) return fail(TALLY_EINVAL, "tally_accumulator_merge: an argument is NULL");
    struct float_sum copy = from->sum; /* the two may be one */
    float_sum_merge(&acc->sum, &copy);
    return TALLY_OK;
}

uint64_t tally_accumulator_count(const tally_accumulator *acc) {
    return acc->sum.count;
}

tally_status tally_accumulator_round(const tally_accumulator *acc, tally_type type,
                                     tally_value *out) {
    if (!acc || !out) return fail(TALLY_EINVAL, "tally_accumulator_round: an argument is NULL");
    if (!type_is_float(type))
        return fail(TALLY_ETYPE, "an accumulator rounds to f16, bf16, f32 or f64, not %s",
                    tally_type_name(type) ? tally_type_name(type) : "an unknown type");
    *out = float_sum_round(&acc->sum, type);
    return TALLY_OK;
}

/* ---- As bytes ----------------------------------------------------------------------------- */

enum {
    AT_VERSION = 8,
    AT_SPECIALS = 9,
    AT_MIXED = 10,
    AT_COUNT = 12,
    AT_DIGITS = 20,
    AT_TOP = AT_DIGITS + 4 * (SUPERACC_LIMBS - 1),
    AT_HASH = AT_TOP + 8
};
_Static_assert(AT_HASH + 8 == TALLY_ACCUMULATOR_BYTES, "the header promises the size");

static const unsigned char magic[8] = {'T', 'A', 'L', 'L', 'Y', 'A', 'C', 'C'};
#define SAVED_VERSION 1

static void put(unsigned char *bytes, uint64_t word, int size) {
    for (int i = 0; i < size; i++)
        bytes[i] = (unsigned char)(word >> 8 * i);
}

static uint64_t get(const unsigned char *bytes, int size) {
    uint64_t word = 0;
    for (int i = 0; i < size; i++)
        word |= (uint64_t)bytes[i] << 8 * i;
    return word;
}

/* FNV-1a: notices any single changed byte. */
static uint64_t hash(const unsigned char *bytes, size_t size) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        h = (h ^ bytes[i]) * UINT64_C(0x100000001b3);
    return h;
}

void tally_accumulator_save(const tally_accumulator *acc,
                            unsigned char bytes[TALLY_ACCUMULATOR_BYTES]) {
    enum { BOTH = SEEN_PLUS_INF | SEEN_MINUS_INF };
    struct float_sum sum = acc->sum;
    if ((sum.specials & SEEN_NAN) || (sum.specials & BOTH) == BOTH) sum.specials = SEEN_NAN;
    struct superacc *limbs = float_sum_limbs(&sum);
    if (sum.specials) superacc_clear(limbs);
    superacc_normalise(limbs);

    memset(bytes, 0, TALLY_ACCUMULATOR_BYTES);
    memcpy(bytes, magic, sizeof magic);
    bytes[AT_VERSION] = SAVED_VERSION;
    bytes[AT_SPECIALS] = sum.specials;
    bytes[AT_MIXED] = sum.mixed;
    put(bytes + AT_COUNT, sum.count, 8);
    for (int i = 0; i < SUPERACC_LIMBS - 1; i++)
        put(bytes + AT_DIGITS + 4 * i, (uint64_t)limbs->limb[i], 4);
    put(bytes + AT_TOP, (uint64_t)limbs->limb[SUPERACC_LIMBS - 1], 8);
    put(bytes + AT_HASH, hash(bytes, AT_HASH), 8);
}

/* Whether save() can have written these fields. */
static int possible(const unsigned char *bytes) {
    int64_t top = (int64_t)get(bytes + AT_TOP, 8);
    unsigned char specials = bytes[AT_SPECIALS], mixed = bytes[AT_MIXED];
    int zero = top == 0;
    for (int i = AT_DIGITS; i < AT_TOP; i++)
        zero = zero && bytes[i] == 0;
    const uint64_t too_small = (UINT64_C(1) << (-1074 - SUPERACC_LOWEST)) - 1; /* below 2^-1074 */
    return (specials <= SEEN_PLUS_INF || specials == SEEN_MINUS_INF) && mixed <= 1 &&
           bytes[AT_MIXED + 1] == 0 && (mixed || (zero && !specials)) && (zero || !specials) &&
           (get(bytes + AT_DIGITS, 4) & too_small) == 0 && top < INT64_C(1) << 32 &&
           top >= -(INT64_C(1) << 32);
}

tally_status tally_accumulator_load(const unsigned char *bytes, size_t size,
                                    tally_accumulator **out) {
    if (!bytes || !out) return fail(TALLY_EINVAL, "tally_accumulator_load: an argument is NULL");
    if (size != TALLY_ACCUMULATOR_BYTES)
        return fail(TALLY_EFORMAT, "a saved accumulator has %d bytes, not %zu",
                    TALLY_ACCUMULATOR_BYTES, size);
    if (memcmp(bytes, magic, sizeof magic) != 0)
        return fail(TALLY_EFORMAT, "these bytes do not begin with TALLYACC: no saved accumulator");
    if (bytes[AT_VERSION] != SAVED_VERSION)
        return fail(TALLY_EFORMAT,
                    "the accumulator was saved in version %d of the format; this library reads %d",
                    bytes[AT_VERSION], SAVED_VERSION);
    if (get(bytes + AT_HASH, 8) != hash(bytes, AT_HASH))
        return fail(TALLY_EFORMAT, "the saved accumulator is damaged: its hash does not match");
    if (!possible(bytes))
        return fail(TALLY_EFORMAT, "the saved accumulator holds impossible values");

    tally_accumulator *acc = NULL;
    tally_status s = tally_accumulator_create(&acc);
    if (s != TALLY_OK) return s;
    struct superacc *limbs = float_sum_limbs(&acc->sum);
    for (int i = 0; i < SUPERACC_LIMBS - 1; i++)
        limbs->limb[i] = (int64_t)get(bytes + AT_DIGITS + 4 * i, 4);
    limbs->limb[SUPERACC_LIMBS - 1] = (int64_t)get(bytes + AT_TOP, 8);
    limbs->used = 1;
    acc->sum.specials = bytes[AT_SPECIALS];
    acc->sum.mixed = bytes[AT_MIXED];
    acc->sum.count = get(bytes + AT_COUNT, 8);
    *out = acc;
    return TALLY_OK;
}
