/*
 * end_keys.h - extremes as the greatest of keys: unsigned integers of an element's size that sort as elements do, or,
 * for the least element, the other way round. A NaN has a key above all others.
 *
 * Key 0 is the state of no elements. No float has it, and the integer that has it is the identity.
 *
 * Before including this header, include operators.h and lower.h.
 */
#ifndef TALLY_END_KEYS_H
#define TALLY_END_KEYS_H

#if defined(TYPE_F64)
#define ELEMENT_TYPE F64
#elif defined(TYPE_F32)
#define ELEMENT_TYPE F32
#elif defined(TYPE_F16)
#define ELEMENT_TYPE F16
#else
#define ELEMENT_TYPE BF16
#endif
#define ELEMENT_BITS (8 * (u32)sizeof(element))

#if defined(TYPE_F64) || defined(TYPE_I64) || defined(TYPE_U64)
typedef u64 key;
#else
typedef u32 key;
#endif
#define KEY_MASK (~(key)0 >> (8 * sizeof(key) - ELEMENT_BITS))
#define KEY_NAN  (~(key)0)
#if defined(FLOATING)
#define FLOATS 1
#else
#define FLOATS 0
#endif

/* Returns an element's order-preserving key, or the key's complement where `flip` is KEY_MASK. */
PURE key key_of(element e, key flip) {
#if defined(FLOATING)
    const key negative = (key)0 - (key)(e >> (ELEMENT_BITS - 1));
    const key k = ((key)e ^ (negative | SIGN) ^ flip) & KEY_MASK;
    return (e & (SIGN - 1)) > INFINITE ? KEY_NAN : k;
#else
    return (key)e ^ flip;
#endif
}

/* Returns the bits of the element with key k. `flip` is the one of key_of(). For signed integers it
 * turns the sign bit over, too, which makes their bits keys. */
PURE u64 key_bits(key k, key flip) {
#if defined(FLOATING)
    if (k == KEY_NAN) return float_nan_bits(format_of(ELEMENT_TYPE));
    return bits_of_key(k ^ flip, ELEMENT_BITS, ORDER_FLOAT);
#else
    return (u64)(k ^ flip);
#endif
}

#endif
