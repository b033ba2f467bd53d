/*
 * kernel_set.c - the tables of one instruction set's kernels: of rows, and of columns.
 */
#include "cpu/column_arithmetic.h"
#include "cpu/column_kernels.h"
#include "cpu/kernels.h"
#include "cpu/vector.h"

#define TEXT2(a) #a
#define TEXT(a)  TEXT2(a)

#define INTEGER_TYPES(X)                                                                           \
    X(I8, i8, 8)                                                                                   \
    X(I16, i16, 16)                                                                                \
    X(I32, i32, 32)                                                                                \
    X(I64, i64, 64)                                                                                \
    X(U8, u8, 8)                                                                                   \
    X(U16, u16, 16)                                                                                \
    X(U32, u32, 32)                                                                                \
    X(U64, u64, 64)
#define FLOAT_TYPES(X)                                                                             \
    X(F16, f16, 16)                                                                                \
    X(BF16, bf16, 16)                                                                              \
    X(F32, f32, 32)                                                                                \
    X(F64, f64, 64)
#define ALL_TYPES(X)                                                                               \
    INTEGER_TYPES(X)                                                                               \
    FLOAT_TYPES(X)

#define DECLARE_INTEGER(NAME, name, bits) fold_kernel CONCAT(prod_##name, TALLY_ISA);
#define DECLARE_FLOAT(NAME, name, bits)                                                            \
    fold_kernel CONCAT(fast_##name, TALLY_ISA);                                                    \
    find_kernel CONCAT(find_nan_##name, TALLY_ISA);                                                \
    void CONCAT(product_leaves_##name, TALLY_ISA)(const void *x, size_t n, void *out);
#define DECLARE_ANY(NAME, name, bits)                                                              \
    fold_kernel CONCAT(sum_##name, TALLY_ISA), CONCAT(squares_##name, TALLY_ISA),                  \
        CONCAT(magnitudes_##name, TALLY_ISA), CONCAT(min_##name, TALLY_ISA),                       \
        CONCAT(max_##name, TALLY_ISA), CONCAT(extremes_##name, TALLY_ISA),                         \
        CONCAT(nonzero_##name, TALLY_ISA);                                                         \
    pair_kernel CONCAT(products_##name, TALLY_ISA);
#define DECLARE_BITS(bits)                                                                         \
    fold_kernel CONCAT(and_##bits, TALLY_ISA), CONCAT(or_##bits, TALLY_ISA),                       \
        CONCAT(xor_##bits, TALLY_ISA);                                                             \
    find_kernel CONCAT(find_##bits, TALLY_ISA);

INTEGER_TYPES(DECLARE_INTEGER)
FLOAT_TYPES(DECLARE_FLOAT)
ALL_TYPES(DECLARE_ANY)
fold_kernel ISA_NAME(moments_f64), ISA_NAME(moments_f32), ISA_NAME(moments_bf16);
DECLARE_BITS(8)
DECLARE_BITS(16)
DECLARE_BITS(32)
DECLARE_BITS(64)
uint64_t ISA_NAME(read_plain)(const void *, size_t);
uint64_t ISA_NAME(read_ahead)(const void *, size_t);
uint64_t ISA_NAME(read_streams)(const void *, size_t);

#define ENTRY(kernel, NAME, name)    [TALLY_##NAME] = CONCAT(kernel##_##name, TALLY_ISA),
#define SUM(NAME, name, bits)        ENTRY(sum, NAME, name)
#define SQUARES(NAME, name, bits)    ENTRY(squares, NAME, name)
#define MAGNITUDES(NAME, name, bits) ENTRY(magnitudes, NAME, name)
#define PRODUCTS(NAME, name, bits)   ENTRY(products, NAME, name)
#define FACTORS(NAME, name, bits)    ENTRY(prod, NAME, name)
#define FAST(NAME, name, bits)       ENTRY(fast, NAME, name)
#define LEAVES(NAME, name, bits)     ENTRY(product_leaves, NAME, name)
#define LEAST(NAME, name, bits)      ENTRY(min, NAME, name)
#define GREATEST(NAME, name, bits)   ENTRY(max, NAME, name)
#define EXTREMES(NAME, name, bits)   ENTRY(extremes, NAME, name)
#define FIND(NAME, name, bits)       ENTRY(find, NAME, bits)
#define FIND_NAN(NAME, name, bits)   ENTRY(find_nan, NAME, name)
#define NONZERO(NAME, name, bits)    ENTRY(nonzero, NAME, name)
#define AND(NAME, name, bits)        ENTRY(and, NAME, bits)
#define OR(NAME, name, bits)         ENTRY(or, NAME, bits)
#define XOR(NAME, name, bits)        ENTRY(xor, NAME, bits)

static const struct column_kernels columns = {
    .form = {[FORM_SUM1] = ISA_NAME(forms_one),
             [FORM_SUM2] = ISA_NAME(forms_two),
             [FORM_MAGNITUDES] = ISA_NAME(forms_magnitudes),
             [FORM_SQUARES] = ISA_NAME(forms_squares),
             [FORM_PRODUCTS] = ISA_NAME(forms_products),
             [FORM_MOMENTS] = ISA_NAME(forms_moments),
             [FORM_WIDE] = ISA_NAME(forms_wide),
             [FORM_ORDER] = ISA_NAME(forms_order),
             [FORM_LEAST] = ISA_NAME(forms_least),
             [FORM_GREATEST] = ISA_NAME(forms_greatest),
             [FORM_AND] = ISA_NAME(forms_and),
             [FORM_OR] = ISA_NAME(forms_or),
             [FORM_XOR] = ISA_NAME(forms_xor),
             [FORM_NONZERO] = ISA_NAME(forms_nonzero),
             [FORM_NANS] = ISA_NAME(forms_nans)},
    .gather = {[1] = ISA_NAME(gather_1),
               [2] = ISA_NAME(gather_2),
               [4] = ISA_NAME(gather_4),
               [8] = ISA_NAME(gather_8)},
    .segments = ISA_NAME(segments_kernels),
    .few = ISA_NAME(few_kernels),
    .copy = ISA_NAME(copy),
    .unkey = ISA_NAME(unkey),
    .falls = {[4] = ISA_NAME(falls_4), [8] = ISA_NAME(falls_8)},
    .even = {[4] = ISA_NAME(even_4), [8] = ISA_NAME(even_8)},
    .transpose = {[1] = ISA_NAME(transpose_1),
                  [2] = ISA_NAME(transpose_2),
                  [4] = ISA_NAME(transpose_4),
                  [8] = ISA_NAME(transpose_8)},
    .put = {[1] = ISA_NAME(put_1),
            [2] = ISA_NAME(put_2),
            [4] = ISA_NAME(put_4),
            [8] = ISA_NAME(put_8)},
    .narrow = ISA_NAME(narrow),
    .split = ISA_NAME(split),
    .round = ISA_NAME(round),
    .mean = ISA_NAME(mean),
    .root = ISA_NAME(root),
    .variance = ISA_NAME(variance),
    .near = {[TALLY_F16] = MOMENTS_NEAR_short,
             [TALLY_BF16] = MOMENTS_NEAR_short,
             [TALLY_F32] = MOMENTS_NEAR_short,
             [TALLY_F64] = MOMENTS_NEAR_long},
};

const struct cpu_kernels ISA_NAME(cpu_kernels) = {
    .isa = TEXT(TALLY_ISA),
    .sum = {ALL_TYPES(SUM)},
    .squares = {ALL_TYPES(SQUARES)},
    .magnitudes = {ALL_TYPES(MAGNITUDES)},
    .products = {ALL_TYPES(PRODUCTS)},
    .moments = {ENTRY(moments, F64, f64) ENTRY(moments, F32, f32) ENTRY(moments, BF16, bf16)},
    .fast = {FLOAT_TYPES(FAST)},
    .factors = {INTEGER_TYPES(FACTORS)},
    .least = {ALL_TYPES(LEAST)},
    .greatest = {ALL_TYPES(GREATEST)},
    .extremes = {ALL_TYPES(EXTREMES)},
    .find = {ALL_TYPES(FIND)},
    .find_nan = {FLOAT_TYPES(FIND_NAN)},
    .bits = {{ALL_TYPES(AND)}, {ALL_TYPES(OR)}, {ALL_TYPES(XOR)}},
    .nonzero = {ALL_TYPES(NONZERO)},
    .product_leaves = {FLOAT_TYPES(LEAVES)},
    .read = {ISA_NAME(read_plain), ISA_NAME(read_ahead), ISA_NAME(read_streams)},
    .columns = &columns,
};
