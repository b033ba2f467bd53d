/*
 * order.h - order-preserving keys: unsigned integers, the greatest of which belongs to the greatest element, or to
 * the least one where keys are turned. A NaN's key is above all others, so the greatest key says whether there is a
 * NaN.
 *
 * Integers. A key is the element with its sign bit turned over, where it has one; `flip` has that bit, or for turned
 * keys all others.
 *
 * Floats. Let v(x) be the bits of x as a signed integer, with all bits but the sign turned over where x is negative. v
 * rises with x, -0 just below +0. With NaNs at both ends it runs through all integers of the type:
 *
 *     negative NaNs < v(-infinity) < ... < v(-0) = -1 < v(+0) = 0 < ... < v(+infinity) < positive NaNs
 *
 * The key is v(x) - v(-infinity), modulo the type's range. So -infinity has key 0 and +infinity KEY_MOST; both kinds of
 * NaNs lie above it, as negative ones wrap around. v(-x) = -1 - v(x), so the key of -x is KEY_MOST less that of x, for
 * NaNs, too: keys are turned by turning the element's sign (least first) or by other_key().
 *
 * Key 0 is the state of no elements. It is the key of the identity: -infinity, or the least integer.
 *
 * tests/engine/test_order.py compares keys of all elements of 16 bits, and of others, with the order that it knows.
 *
 * Before including this header, include operators.h and keys.h.
 */
#ifndef TALLY_CERTAIN_ORDER_H
#define TALLY_CERTAIN_ORDER_H

#if defined(TYPE_F64) || defined(TYPE_I64) || defined(TYPE_U64)
#define LONG_KEYS 1
typedef u64 key;
#else
#define LONG_KEYS 0
typedef u32 key;
#endif
#define KEY_MASK (~(key)0 >> (8 * sizeof(key) - 8 * sizeof(element)))

#if defined(FLOATING)
#define HAS_NANS  1
#define KEY_SIGN  ((key)SIGN)
#define KEY_BASE  ((((key)INFINITE | KEY_SIGN) ^ (KEY_SIGN - 1)) & KEY_MASK) /* v(-infinity) */
#define KEY_MOST  (((key)INFINITE - KEY_BASE) & KEY_MASK)                    /* of +infinity */
#define TURN_NONE ((key)0)
#else
#define HAS_NANS 0
#define KEY_MOST KEY_MASK
#if defined(SIGNED_TYPE)
#define TURN_NONE ((key)SIGN & KEY_MASK)
#else
#define TURN_NONE ((key)0)
#endif
#endif
/* The `flip` of key_of() is TURN_NONE where the greatest element is wanted, and TURN_ALL where the least one is. */
#define TURN_ALL (TURN_NONE ^ KEY_MASK)

/* Returns an element's key. `flip` is TURN_NONE or TURN_ALL. */
PURE key key_of(element e, key flip) {
#if HAS_NANS
    const key b = (key)e ^ (flip & KEY_SIGN);
    return ((b & KEY_SIGN ? b ^ (KEY_SIGN - 1) : b) - KEY_BASE) & KEY_MASK;
#else
    return ((key)e & KEY_MASK) ^ flip;
#endif
}

/* Returns the key that the element has where the other extreme is wanted. */
ORDER_UNUSED PURE key other_key(key k) {
    return (KEY_MOST - k) & KEY_MASK;
}

/* Returns the same key for all NaNs, so that the first of them is the first with the greatest key. */
ORDER_UNUSED PURE key first_nan(key k) {
#if HAS_NANS
    return k > KEY_MOST ? KEY_MOST + 1 : k;
#else
    return k;
#endif
}

/* Returns the bits of the element with key k, which is no NaN's. */
ORDER_UNUSED PURE u64 element_of_key(key k, key flip) {
#if HAS_NANS
    const key b = (k + KEY_BASE) & KEY_MASK;
    return (b & KEY_SIGN ? b ^ (KEY_SIGN - 1) : b) ^ (flip & KEY_SIGN);
#else
    return k ^ flip;
#endif
}

#endif
