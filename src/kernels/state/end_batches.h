/*
 * end_batches.h - batches of elements whose extremes are wanted (extremes.h).
 *
 * Where a GPU can (CUDA, from sm_80 on), floats of 16 and 32 bits are compared by instructions that know the order of keys
 * (certain/order.h): of a NaN and anything else they make the canonical NaN, and -0 is less than +0. Of 16 bits they compare
 * two at once. All other elements are compared by their keys.
 *
 * Before including this header, include pack.h and extremes.h, with HAS_LEAST 1 and FLIP(p) TURN_NONE.
 */
#ifndef TALLY_STATE_END_BATCHES_H
#define TALLY_STATE_END_BATCHES_H

#if HAS_NANS && !LONG_KEYS && ABILITY >= 800
#if defined(TYPE_F32)
typedef float ends_word; /* an element */
#define WORD_OF(e)      float_from(e)
#define COMPARED(how)   asm(how ".NaN.f32 %0, %0, %1;" : "+f"(a) : "f"(b))
#define KEY_IN(w, half) key_of(float_bits(w), TURN_NONE)
#else
typedef u32 ends_word; /* two */
#define WORD_OF(e)      ((u32)(e) | (u32)(e) << 16)
#define KEY_IN(w, half) key_of((element)((w) >> 16 * (half)), TURN_NONE)
#if defined(TYPE_F16)
#define COMPARED(how) asm(how ".NaN.f16x2 %0, %0, %1;" : "+r"(a) : "r"(b))
#else
#define COMPARED(how) asm(how ".NaN.bf16x2 %0, %0, %1;" : "+r"(a) : "r"(b))
#endif
#endif

PURE ends_word greatest_of(ends_word a, ends_word b) {
    COMPARED("max");
    return a;
}
PURE ends_word least_of(ends_word a, ends_word b) {
    COMPARED("min");
    return a;
}

typedef struct batch {
    ends_word most, least;
} batch;

PURE void begin(batch *k, u32 at) {
    k->most = WORD_OF((element)(INFINITE | SIGN));
    k->least = WORD_OF((element)INFINITE);
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    k->most = greatest_of(k->most, WORD_OF(inside ? e : (element)(INFINITE | SIGN)));
    k->least = least_of(k->least, WORD_OF(inside ? e : (element)INFINITE));
}
#if !defined(TYPE_F32)
#define HAS_ADD_PACK 1
INLINED void add_pack(batch *k, const pack *p, u32 at) {
    UNROLL
    for (u32 i = 0; i < PACK / 2; i++) {
        k->most = greatest_of(k->most, p->pair[i]);
        k->least = least_of(k->least, p->pair[i]);
    }
}
#endif
PURE state finish(const batch *k, u64 start) {
    state a = {KEY_IN(k->most, 0), KEY_IN(k->least, 0)};
#if !defined(TYPE_F32)
    const state b = {KEY_IN(k->most, 1), KEY_IN(k->least, 1)};
    a = merge(a, b);
#endif
    return a;
}
#else
typedef state batch;

PURE void begin(batch *k, u32 at) {
    *k = none();
}
INLINED void add(batch *k, element e, u32 at, u32 inside) {
    add_key(k, key_of(e, TURN_NONE), inside);
}
PURE state finish(const batch *k, u64 start) {
    return *k;
}
#endif

#endif
