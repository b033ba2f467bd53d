/*
 * fast_sum.c - fast sums of one instruction set: additions that round, in the order that suits the vectors.
 *
 * Elements are added in f32 (f64 for f64) in eight vectors, enough to hide the latency of an addition;
 * every FAST_BLOCK elements these go to a double, which keeps the error somewhat smaller at no cost.
 */
#include "cpu/vector.h"

#define FAST_BLOCK 65536

#define FAST_SUM(name, element, real, vector, WIDEN)                                               \
    void ISA_NAME(fast_##name)(const void *array, size_t n, void *state) {                         \
        KERNEL_PATH("");                                                                           \
        enum { LANES_ = LANES(real), ROW = 8 * LANES(real) };                                      \
        const element *x = array;                                                                  \
        for (size_t m; n > 0; n -= m) {                                                            \
            m = n < FAST_BLOCK ? n : FAST_BLOCK;                                                   \
            vector sum[8] = {{0}};                                                                 \
            size_t i = 0;                                                                          \
            for (; i + ROW <= m; i += ROW, x += ROW) {                                             \
                PREFETCH_AHEAD(x, ROW * sizeof *x);                                                \
                for (int k = 0; k < 8; k++)                                                        \
                    sum[k] += WIDEN(x + k * LANES_);                                               \
            }                                                                                      \
            for (; i < m; i += LANES_, x += LANES_) {                                              \
                element last[LANES_] = {0};                                                        \
                size_t rest = m - i < LANES_ ? m - i : LANES_;                                     \
                memcpy(last, x, rest * sizeof *x);                                                 \
                sum[0] += WIDEN(last);                                                             \
            }                                                                                      \
            sum[0] =                                                                               \
                ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7])); \
            double block = 0;                                                                      \
            for (size_t k = 0; k < LANES_; k++)                                                    \
                block += sum[0][k];                                                                \
            *(double *)state += block;                                                             \
        }                                                                                          \
    }

FAST_SUM(f64, unaligned_f64, double, vf64, LOAD_F64)
FAST_SUM(f32, unaligned_f32, float, vf32, LOAD_F32)
FAST_SUM(f16, unaligned_u16, float, vf32, LOAD_F16)
FAST_SUM(bf16, unaligned_u16, float, vf32, LOAD_BF16)
