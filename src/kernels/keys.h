/*
 * keys.h - unsigned integers that sort as elements do: for hosts (src/problem/monoid.c) and kernels (order.cu, lower.h) alike.
 *
 * The key of a float has the order of min and max: -0 just below +0, positive NaNs above +infinity and
 * negative ones below -infinity. A key has as many bits as its element.
 *
 * ORDER_KEYS(word) defines key_of_bits() and bits_of_key() on the unsigned type `word`. Before
 * including this header, define u32 and PURE.
 */
#ifndef TALLY_KEYS_H
#define TALLY_KEYS_H

#define ORDER_UNSIGNED 0u
#define ORDER_SIGNED   1u
#define ORDER_FLOAT    2u

#define ORDER_UNUSED __attribute__((unused)) /* some files need only one of the two */

/* key_of_bits() returns the key of an element of `width` bits, from 1 to the width of `word`. bits_of_key() is its
 * inverse. `kind` is one of the ORDER_...s. */
#define ORDER_KEYS(word)                                                                           \
    ORDER_UNUSED PURE word key_of_bits(word bits, u32 width, u32 kind) {                           \
        const word sign = (word)((word)1 << (width - 1)), all = (word)(sign | (sign - 1));         \
        if (kind == ORDER_FLOAT) return bits & sign ? bits ^ all : bits | sign;                    \
        return kind == ORDER_SIGNED ? (bits ^ sign) & all : bits;                                  \
    }                                                                                              \
    ORDER_UNUSED PURE word bits_of_key(word k, u32 width, u32 kind) {                              \
        const word sign = (word)((word)1 << (width - 1)), all = (word)(sign | (sign - 1));         \
        if (kind == ORDER_FLOAT) return k & sign ? k ^ sign : k ^ all;                             \
        return kind == ORDER_SIGNED ? k ^ sign : k;                                                \
    }

#endif
