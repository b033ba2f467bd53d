/*
 * product.c - floating products of one instruction set: leaves of the canonical tree (tree.h).
 *
 * The 32 lanes of a leaf are 32 lanes of vectors, however many vectors that makes: every instruction set
 * multiplies the same pairs.
 */
#include "cpu/vector.h"
#include "problem/tree.h"

#define PRODUCT_LEAVES(name, element, real, vector, WIDEN)                                         \
    /* Returns the product of the first `lanes` lanes, combined by halves. */                      \
    static real meet_##name(real *lane, size_t lanes) {                                            \
        for (size_t h = TREE_LANES / 2; h > 0; h /= 2) {                                           \
            for (size_t j = 0; j < h && j + h < lanes; j++)                                        \
                lane[j] *= lane[j + h];                                                            \
            if (lanes > h) lanes = h;                                                              \
        }                                                                                          \
        return lane[0];                                                                            \
    }                                                                                              \
    static real full_leaf_##name(const element *x) {                                               \
        KERNEL_PATH("");                                                                           \
        enum { STEP = LANES(real), VECTORS = TREE_LANES / LANES(real) };                           \
        vector product[VECTORS];                                                                   \
        for (int k = 0; k < VECTORS; k++)                                                          \
            product[k] = WIDEN(x + k * STEP);                                                      \
        for (int row = 1; row < TREE_LEAF / TREE_LANES; row++) {                                   \
            x += TREE_LANES;                                                                       \
            PREFETCH_AHEAD(x, TREE_LANES * sizeof *x);                                             \
            for (int k = 0; k < VECTORS; k++)                                                      \
                product[k] *= WIDEN(x + k * STEP);                                                 \
        }                                                                                          \
        real lane[TREE_LANES];                                                                     \
        memcpy(lane, product, sizeof lane);                                                        \
        return meet_##name(lane, TREE_LANES);                                                      \
    }                                                                                              \
    static real short_leaf_##name(const element *x, size_t n) {                                    \
        KERNEL_PATH("");                                                                           \
        enum { STEP = LANES(real) };                                                               \
        real lane[TREE_LANES];                                                                     \
        for (size_t i = 0; i < n; i += STEP) {                                                     \
            element some[STEP] = {0};                                                              \
            size_t m = n - i < STEP ? n - i : STEP;                                                \
            memcpy(some, x + i, m * sizeof *x);                                                    \
            vector v = WIDEN(some);                                                                \
            for (size_t j = 0; j < m; j++) {                                                       \
                if (i + j < TREE_LANES)                                                            \
                    lane[i + j] = v[j];                                                            \
                else                                                                               \
                    lane[(i + j) % TREE_LANES] *= v[j];                                            \
            }                                                                                      \
        }                                                                                          \
        return meet_##name(lane, n < TREE_LANES ? n : TREE_LANES);                                 \
    }                                                                                              \
    void ISA_NAME(product_leaves_##name)(const void *array, size_t n, void *out) {                 \
        const element *x = array;                                                                  \
        real *to = out;                                                                            \
        for (; n >= TREE_LEAF; n -= TREE_LEAF, x += TREE_LEAF)                                     \
            *to++ = full_leaf_##name(x);                                                           \
        if (n > 0) *to = short_leaf_##name(x, n);                                                  \
    }

PRODUCT_LEAVES(f64, unaligned_f64, double, vf64, LOAD_F64)
PRODUCT_LEAVES(f32, unaligned_f32, float, vf32, LOAD_F32)
PRODUCT_LEAVES(f16, unaligned_u16, float, vf32, LOAD_F16)
PRODUCT_LEAVES(bf16, unaligned_u16, float, vf32, LOAD_BF16)
