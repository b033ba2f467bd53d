/*
 * end_keys.h - from the key of an extreme (certain/order.h) to the bits of its element.
 *
 * Before including this header, include operators.h and lower.h.
 */
#ifndef TALLY_END_KEYS_H
#define TALLY_END_KEYS_H

#include "element_type.h"

#include "certain/order.h"

/* Returns the bits of the element with key k; if k is a NaN's key, those of the canonical NaN. */
ORDER_UNUSED PURE u64 key_bits(key k, key flip) {
    if (HAS_NANS && k > KEY_MOST) return float_nan_bits(format_of(ELEMENT_TYPE));
    return element_of_key(k, flip);
}

#endif
