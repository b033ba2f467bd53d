/*
 * order - the least and the greatest element at once: min and max.
 *
 * Elements become unsigned keys that sort like them: floats with their negative ones reversed, so that
 * -0 comes just below +0, and NaNs beyond the infinities, where the host sees them. The record holds the
 * greatest key, and the greatest complement of a key: 0 is then what has seen nothing. Elements of 16
 * bits and fewer are compared in 32 bits.
 */
#include "tuning.h"

#include "operators.h"

#define WORDS 2
#include "result.h"

#if defined(TYPE_I64) || defined(TYPE_U64) || defined(TYPE_F64)
typedef u64 key;
#else
typedef u32 key;
#endif
#define KEY_BITS (8 * (u32)sizeof(element))
#define KEY_MASK (~(key)0 >> (8 * sizeof(key) - KEY_BITS))
#define KEY_SIGN ((key)1 << (KEY_BITS - 1))

/* operators.h has floats by their bits where the operator is min or max. */
PURE key key_of(element e) {
#if defined(FLOATING)
    const key bits = (key)e;
    return bits & KEY_SIGN ? bits ^ KEY_MASK : bits | KEY_SIGN;
#elif defined(SIGNED_TYPE)
    return ((key)e & KEY_MASK) ^ KEY_SIGN;
#else
    return (key)e;
#endif
}

PURE void merge(u64 *a, const u64 *b) {
    a[0] = b[0] > a[0] ? b[0] : a[0];
    a[1] = b[1] > a[1] ? b[1] : a[1];
}

PURE void add_tile(const tile *t, u64 *record) {
    key most = 0, least = KEY_MASK;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const key k = key_of(t->e[i]);
        most = k > most ? k : most;
        least = k < least ? k : least;
    }
    const u64 other[WORDS] = {most, KEY_MASK ^ least};
    merge(record, other);
}

/* The inverse. */
PURE u64 bits_of(key k) {
#if defined(FLOATING)
    return k & KEY_SIGN ? k ^ KEY_SIGN : k ^ KEY_MASK;
#elif defined(SIGNED_TYPE)
    return k ^ KEY_SIGN;
#else
    return k;
#endif
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    const key most = (key)total[0], least = KEY_MASK ^ (key)total[1];
#if defined(FLOATING)
    const float_format f = requested_format(request);
    const u64 infinity = float_infinity_bits(f, 0);
    if (n == 0) return float_infinity_bits(f, !(request & REQUEST_LEAST));
    if (most > (infinity ^ KEY_SIGN) || least < (KEY_MASK ^ (infinity ^ KEY_SIGN)))
        return float_nan_bits(f);
#endif
    return bits_of(request & REQUEST_LEAST ? least : most);
}

#define PAD x[0] /* an element that is there: it changes nothing */
#include "fold.h"
