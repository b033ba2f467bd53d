/*
 * keys_of_type.h - a template: src/kernels/certain/order.h for one type, as a function keys_TYPE(). Before including it,
 * define the type's words as src/kernels/operators.h has them, and KEYS, the function's name.
 */
#undef TALLY_CERTAIN_ORDER_H
#undef LONG_KEYS
#undef HAS_NANS
#undef KEY_MASK
#undef KEY_SIGN
#undef KEY_BASE
#undef KEY_MOST
#undef TURN_NONE
#undef TURN_ALL
#define IN_TYPE_(word, name) word##_##name
#define IN_TYPE(word, name)  IN_TYPE_(word, name)
#define element              IN_TYPE(element, KEYS)
#define key                  IN_TYPE(key, KEYS)
#define key_of               IN_TYPE(key_of, KEYS)
#define other_key            IN_TYPE(other_key, KEYS)
#define first_nan            IN_TYPE(first_nan, KEYS)
#define element_of_key       IN_TYPE(element_of_key, KEYS)

typedef ELEMENT element;
#include "kernels/certain/order.h"

/* Writes of each of `count` elements its key, the key for the other extreme, the one that all NaNs share, and the
 * element of the key; at last KEY_MOST. */
static void KEYS(const uint64_t *bits, size_t count, int turned, uint64_t *out) {
    const key flip = turned ? TURN_ALL : TURN_NONE;
    for (size_t i = 0; i < count; i++, out += 4) {
        const key k = key_of((element)bits[i], flip);
        out[0] = k;
        out[1] = other_key(k);
        out[2] = first_nan(k);
        out[3] = element_of_key(k, flip) & (~(uint64_t)0 >> (64 - 8 * sizeof(element)));
    }
    *out = KEY_MOST;
}
#undef element
#undef key
#undef key_of
#undef other_key
#undef first_nan
#undef element_of_key
#undef IN_TYPE
#undef IN_TYPE_
#undef KEYS
#undef ELEMENT
#undef FLOATING
#undef SIGNED_TYPE
#undef SIGN
#undef INFINITE
#undef TYPE_F64
#undef TYPE_I64
#undef TYPE_U64
