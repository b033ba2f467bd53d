/*
 * column_values.c - turns the sums of columns into values: quotients, roots, variances, rounding with a test; writes
 * values; and splits numbers into the integers of a window, for groups. Of one instruction set.
 */
#include "cpu/column_arithmetic.h"
#include "cpu/column_kernels.h"

/* ---- Rounding ------------------------------------------------------------------------------- */

/* Rounds x, which has been rounded to odd and is no NaN, to f16 or bf16; returns its bits. */
ALWAYS_INLINE vu64 bits_16(vf64 x, int is_f16) {
    /* Round x to an odd float: cut it off, and set the last bit where that is not exact. */
    const vf32half f = FLOATS_OF_DOUBLES(x);
    const vf64 near = DOUBLES_OF_FLOATS(f), magnitude = absolute(x);
    vu64 u = WIDE_OF_WORDS((vu32half)f);
    u += (vu64)(absolute(near) > magnitude);
    u |= (vu64)(near != x) & 1;
    const vu64 sign = u >> 16 & 0x8000, m = u & 0x7fffffff;
    if (!is_f16) return sign | (m + 0x7fff + (m >> 16 & 1)) >> 16;
    /* f16's numbers below 2^-14 are multiples of 2^-24, which is the last bit that 2^28 has as a double. */
    const vu64 small = (vu64)(magnitude + 0x1p28) - (vu64)((vf64){0} + 0x1p28);
    const vu64 normal = ((m + 0xfff + (m >> 13 & 1)) >> 13) - (112 << 10);
    const vu64 finite = PICK((vu64)(normal < 0x7c00), normal, (vu64){0} + 0x7c00);
    return sign | PICK((vu64)(magnitude < 0x1p-14), small, finite);
}

/* Rounds whole vectors, also behind the last column: there is room for them. */
int ISA_NAME(round)(const double *s, const double *e, const double *b, size_t count,
                    tally_type type, uint64_t *bits, unsigned char *ok) {
    vi64 all = (vi64){0} - 1;
    for (size_t i = 0; i < count; i += LANES(double)) {
        const vf64 high = VECTOR_LOAD(vf64, s + i), low = VECTOR_LOAD(vf64, e + i);
        const vf64 bound = VECTOR_LOAD(vf64, b + i), d = reach(low, bound);
        const int is_exact = !any_set((vu64)(bound != 0));
        vi64 certain = (vi64){0} - 1;
        vu64 value;
        if (is_exact) {
            const vi64 plain = (vi64)(low == 0);
            if (type == TALLY_F64) {
                KERNEL_PATH("exact, to f64");
                value = (vu64)PICK(plain, (vi64)high, (vi64)(high + low));
            } else {
                const vf64 odd = any_set((vu64)~plain) ? to_odd(high, low) : high;
                if (type == TALLY_F32) {
                    KERNEL_PATH("exact, to f32");
                    const vf32half f = FLOATS_OF_DOUBLES(odd);
                    value = WIDE_OF_WORDS((vu32half)f);
                } else {
                    KERNEL_PATH("exact, to 16 bits");
                    value = bits_16(odd, type == TALLY_F16);
                }
            }
        } else if (type == TALLY_F64) {
            KERNEL_PATH("within a bound, to f64");
            value = (vu64)round_to_f64(high, low, d, &certain);
        } else if (type == TALLY_F32) {
            KERNEL_PATH("within a bound, to f32");
            vf32half f = round_to_f32(high, low, d, &certain);
            if (any_set(
                    (vu64)~certain)) { /* doubles are too coarse near the middle between floats */
                KERNEL_PATH("by way of odd, to f32");
                f = round_to_f32_by_odd(high, low, d, &certain);
            }
            value = WIDE_OF_WORDS((vu32half)f);
        } else {
            KERNEL_PATH("within a bound, to 16 bits");
            const vf64 x = to_odd(high, low - d);
            value = bits_16(x, type == TALLY_F16);
            certain = (vi64)(value == bits_16(to_odd(high, low + d), type == TALLY_F16)) &
                      (vi64)(x - x == 0);
        }
        memcpy(bits + i, &value, sizeof value);
        if (!is_exact && (i + LANES(double) > count || any_set((vu64)~certain))) {
            int64_t lanes[LANES(double)];
            memcpy(lanes, &certain, sizeof lanes);
            for (size_t k = 0; k < LANES(double); k++) {
                if (i + k >= count) lanes[k] = -1;
                ok[i + k] = (unsigned char)lanes[k];
            }
            all &= VECTOR_LOAD(vi64, lanes);
        } else
            memset(ok + i, 1, LANES(double));
    }
    return !any_set((vu64)~all);
}

void ISA_NAME(mean)(double *s, double *e, double *b, size_t count, const double *n) {
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i += LANES(double)) {
        vf64 high = VECTOR_LOAD(vf64, s + i), low = VECTOR_LOAD(vf64, e + i),
             bound = VECTOR_LOAD(vf64, b + i);
        const vf64 by = VECTOR_LOAD(vf64, n + i);
        /* A power of two divides exactly, far enough from underflow. */
        const vi64 power = (vi64)(((vi64)by & ((INT64_C(1) << 52) - 1)) == 0) &
                           (vi64)(absolute(high) > 0x1p-800) &
                           ((vi64)(low == 0) | (vi64)(absolute(low) > 0x1p-900));
        const vf64 x = high / by, y = low / by;
        const vf64 z = (vf64)((vi64)(bound != 0) & (vi64)(bound / by + 0x1p-1000));
        divide(&high, &low, &bound, by);
        high = (vf64)PICK(power, (vi64)x, (vi64)high);
        low = (vf64)PICK(power, (vi64)y, (vi64)low);
        bound = (vf64)PICK(power, (vi64)z, (vi64)bound);
        memcpy(s + i, &high, sizeof high);
        memcpy(e + i, &low, sizeof low);
        memcpy(b + i, &bound, sizeof bound);
    }
}

void ISA_NAME(root)(double *s, double *e, double *b, size_t count) {
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i += LANES(double)) {
        vf64 high = VECTOR_LOAD(vf64, s + i), low = VECTOR_LOAD(vf64, e + i),
             bound = VECTOR_LOAD(vf64, b + i);
        take_root(&high, &low, &bound);
        memcpy(s + i, &high, sizeof high);
        memcpy(e + i, &low, sizeof low);
        memcpy(b + i, &bound, sizeof bound);
    }
}

void ISA_NAME(variance)(double *s, double *e, double *b, const double *q, const double *qe,
                        const double *qb, size_t count, const double *n, double ddof, int root,
                        double near) {
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i += LANES(double)) {
        vf64 high, rest, bound;
        variance_of(VECTOR_LOAD(vf64, s + i), VECTOR_LOAD(vf64, e + i), VECTOR_LOAD(vf64, b + i),
                    VECTOR_LOAD(vf64, q + i), VECTOR_LOAD(vf64, qe + i), VECTOR_LOAD(vf64, qb + i),
                    VECTOR_LOAD(vf64, n + i), ddof, root, near, &high, &rest, &bound);
        memcpy(s + i, &high, sizeof high);
        memcpy(e + i, &rest, sizeof rest);
        memcpy(b + i, &bound, sizeof bound);
    }
}

/* ---- Writing -------------------------------------------------------------------------------- */

/* Return a vector of elements of each size from words. */
ALWAYS_INLINE vu64 words_8(const uint64_t *bits) {
    return VECTOR_LOAD(vu64, bits);
}
ALWAYS_INLINE vu64 words_4(const uint64_t *bits) {
    vu32 v;
    for (size_t i = 0; i < LANES(uint32_t); i++)
        v[i] = (uint32_t)bits[i];
    return (vu64)v;
}
ALWAYS_INLINE vu64 words_2(const uint64_t *bits) {
    vu16 v;
    for (size_t i = 0; i < LANES(uint16_t); i++)
        v[i] = (uint16_t)bits[i];
    return (vu64)v;
}

#define PUT(bytes, element)                                                                        \
    void CONCAT(put_##bytes, TALLY_ISA)(char *to, const uint64_t *restrict bits, size_t count,     \
                                        int past) {                                                \
        element *restrict out = (element *)to;                                                     \
        size_t i = 0;                                                                              \
        for (; past && i < count && (uintptr_t)(out + i) % TALLY_VECTOR != 0; i++)                 \
            out[i] = (element)bits[i];                                                             \
        for (; past && i + LANES(element) <= count; i += LANES(element)) {                         \
            const vu64 v = words_##bytes(bits + i);                                                \
            KERNEL_PATH("past the caches");                                                        \
            WRITE_PAST(out + i, v);                                                                \
        }                                                                                          \
        for (; i < count; i++)                                                                     \
            out[i] = (element)bits[i];                                                             \
    }
PUT(2, unaligned_u16)
PUT(4, unaligned_u32)
PUT(8, unaligned_u64)

void ISA_NAME(put_1)(char *to, const uint64_t *restrict bits, size_t count, int past) {
    (void)past;
    KERNEL_PATH("");
    for (size_t i = 0; i < count; i++)
        to[i] = (char)bits[i];
}

void ISA_NAME(copy)(char *to, const char *from, size_t bytes, int past) {
    const size_t head = (0 - (uintptr_t)to) % TALLY_VECTOR, first = head < bytes ? head : bytes;
    if (!past) {
        KERNEL_PATH("");
        memcpy(to, from, bytes);
        return;
    }
    memcpy(to, from, first);
    size_t i = first;
    KERNEL_PATH("past the caches");
    for (; i + TALLY_VECTOR <= bytes; i += TALLY_VECTOR) {
        const vu64 v = VECTOR_LOAD(vu64, from + i);
        WRITE_PAST(to + i, v);
    }
    memcpy(to + i, from + i, bytes - i);
}

/* ---- Windows of integers -------------------------------------------------------------------- */

void ISA_NAME(narrow)(const void *ids, size_t n, uint32_t *restrict out) {
    KERNEL_PATH("");
    const unaligned_u64 *from = ids;
    for (size_t i = 0; i < n; i += 8)
        __builtin_prefetch((const char *)(from + i + n), 0, 2);
    for (size_t i = 0; i < n; i++)
        out[i] = (uint32_t)from[i] | (0 - (uint32_t)(from[i] >> 31 != 0));
}

/* Splits numbers by extraction (extract.h): added to 1.5 * 2^(52 + u), a number becomes one whose
 * last bit weighs 2^u. */
int ISA_NAME(split)(const double *x, size_t n, int exponent, int64_t *high, int64_t *low) {
    const int64_t word = ((int64_t)(exponent - 40 + 52 + 1023) << 52) | INT64_C(1) << 51;
    const int64_t word2 = word - (INT64_C(40) << 52);
    const vi64 bits = (vi64){0} + word, bits2 = (vi64){0} + word2;
    const vf64 sigma = (vf64)bits, sigma2 = (vf64)bits2;
    const vf64 limit = (vf64)((vi64){0} + ((int64_t)(exponent - 1 + 1023) << 52));
    vi64 wrong = {0};
    for (size_t i = 0; i < n; i += LANES(double)) {
        PREFETCH(x + i, TALLY_VECTOR, 8192, 2);
        const vf64 v = VECTOR_LOAD(vf64, x + i), t = v + sigma, rest = v - (t - sigma),
                   t2 = rest + sigma2;
        const vi64 up = (vi64)t - bits, down = (vi64)t2 - bits2;
        wrong |= ~(vi64)(absolute(v) < limit) | (vi64)(rest != t2 - sigma2) |
                 (vi64)((vi64)v == INT64_MIN);
        memcpy(high + i, &up, sizeof up);
        memcpy(low + i, &down, sizeof down);
    }
    if (any_set((vu64)wrong))
        KERNEL_PATH("not exact");
    else
        KERNEL_PATH("exact");
    return !any_set((vu64)wrong);
}
