/*
 * column_kernels.h - declares the kernels of columns.h of one instruction set, by the file that has them.
 * kernel_set.c joins them to a table.
 */
#ifndef TALLY_CPU_COLUMN_KERNELS_H
#define TALLY_CPU_COLUMN_KERNELS_H

#include "cpu/columns.h"
#include "cpu/vector.h"

/* The types whose sums are doubles, as X(ROW, name): a table of kernels has a kernel for each. */
#define FLOATS(X)                                                                                  \
    X(I8, i8)                                                                                      \
    X(I16, i16)                                                                                    \
    X(I32, i32)                                                                                    \
    X(U8, u8)                                                                                      \
    X(U16, u16) X(U32, u32) X(F16, f16) X(BF16, bf16) X(F32, f32) X(F64, f64)

/* column_sums.c */
extern column_forms ISA_NAME(forms_one), ISA_NAME(forms_two), ISA_NAME(forms_magnitudes),
    ISA_NAME(forms_squares), ISA_NAME(forms_products), ISA_NAME(forms_moments);

/* column_words.c */
extern column_forms ISA_NAME(forms_wide), ISA_NAME(forms_order), ISA_NAME(forms_least),
    ISA_NAME(forms_greatest), ISA_NAME(forms_and), ISA_NAME(forms_or), ISA_NAME(forms_xor),
    ISA_NAME(forms_nonzero), ISA_NAME(forms_nans);
unkey_kernel ISA_NAME(unkey);

/* transpose.c */
transpose_kernel ISA_NAME(transpose_1), ISA_NAME(transpose_2), ISA_NAME(transpose_4),
    ISA_NAME(transpose_8);
gather_kernel ISA_NAME(gather_1), ISA_NAME(gather_2), ISA_NAME(gather_4), ISA_NAME(gather_8);
falls_kernel ISA_NAME(falls_4), ISA_NAME(falls_8);
even_kernel ISA_NAME(even_4), ISA_NAME(even_8);

/* few_rows.c, segments.c */
extern few_kernel *const ISA_NAME(few_kernels)[TALLY_ARGMAX + 1][COLUMN_TYPES];
extern segments_kernel *const ISA_NAME(segments_kernels)[COLUMN_TYPES];

/* column_values.c */
round_kernel ISA_NAME(round);
mean_kernel ISA_NAME(mean);
root_kernel ISA_NAME(root);
variance_kernel ISA_NAME(variance);
put_kernel ISA_NAME(put_1), ISA_NAME(put_2), ISA_NAME(put_4), ISA_NAME(put_8);
copy_kernel ISA_NAME(copy);
narrow_kernel ISA_NAME(narrow);
split_kernel ISA_NAME(split);

#endif
