/*
 * transpose.c - turns rows and segments into columns, so that the kernels of columns can reduce them, and tests
 * offsets; of one instruction set.
 */
#include "cpu/column_kernels.h"
#include "cpu/column_loads.h"

/* ---- Rows as columns ------------------------------------------------------------------------ */

#define TRANSPOSE(bytes, element)                                                                  \
    void CONCAT(transpose_##bytes, TALLY_ISA)(const char *x, ptrdiff_t row, size_t rows,           \
                                              size_t columns, size_t width, char *to) {            \
        KERNEL_PATH("");                                                                           \
        element *out = (element *)to;                                                              \
        for (size_t r = 0; r < rows; r++) {                                                        \
            const element *from = (const element *)(x + (ptrdiff_t)r * row);                       \
            for (size_t c = 0; c < columns; c++)                                                   \
                out[c * width + r] = from[c];                                                      \
        }                                                                                          \
    }
TRANSPOSE(1, unaligned_u8)
TRANSPOSE(2, unaligned_u16)

#if TALLY_VECTOR == 64
/* Transposes 8 rows of 8 columns by three rounds of shuffles; stores the first `columns` columns. */
ALWAYS_INLINE void turn_64(__m512i *a, size_t columns, size_t width, uint64_t *out) {
    __m512i b[8];
    for (int i = 0; i < 8; i += 2) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 1]);
    }
    /* b[i]: lanes of columns 0 2 4 6 (or 1 3 5 7) of two rows */
    for (int i = 0; i < 8; i += 4)
        for (int j = 0; j < 2; j++) {
            a[i + j] = _mm512_shuffle_i64x2(b[i + j], b[i + j + 2], 0x88); /* columns j, j + 4 */
            a[i + j + 2] = _mm512_shuffle_i64x2(b[i + j], b[i + j + 2], 0xdd); /* j + 2, j + 6 */
        }
    for (size_t j = 0; j < 4; j++) {
        if (j < columns)
            _mm512_storeu_si512(out + j * width, _mm512_shuffle_i64x2(a[j], a[j + 4], 0x88));
        if (j + 4 < columns)
            _mm512_storeu_si512(out + (j + 4) * width, _mm512_shuffle_i64x2(a[j], a[j + 4], 0xdd));
    }
}

/* Transposes 16 rows of 16 columns by four rounds; stores the first `columns` columns. */
ALWAYS_INLINE void turn_32(__m512i *a, size_t columns, size_t width, uint32_t *out) {
    __m512i b[16];
    for (int i = 0; i < 16; i += 2) {
        b[i] = _mm512_unpacklo_epi32(a[i], a[i + 1]);
        b[i + 1] = _mm512_unpackhi_epi32(a[i], a[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int j = 0; j < 2; j++) { /* a[i + q]: column q of each quarter, of four rows */
            a[i + 2 * j] = _mm512_unpacklo_epi64(b[i + j], b[i + j + 2]);
            a[i + 2 * j + 1] = _mm512_unpackhi_epi64(b[i + j], b[i + j + 2]);
        }
    for (int q = 0; q < 4; q++) {
        const __m512i even = _mm512_shuffle_i32x4(a[q], a[4 + q], 0x88),
                      odd = _mm512_shuffle_i32x4(a[q], a[4 + q], 0xdd),
                      even2 = _mm512_shuffle_i32x4(a[8 + q], a[12 + q], 0x88),
                      odd2 = _mm512_shuffle_i32x4(a[8 + q], a[12 + q], 0xdd);
        const __m512i column[4] = {
            _mm512_shuffle_i32x4(even, even2, 0x88), _mm512_shuffle_i32x4(odd, odd2, 0x88),
            _mm512_shuffle_i32x4(even, even2, 0xdd), _mm512_shuffle_i32x4(odd, odd2, 0xdd)};
        for (int j = 0; j < 4; j++) {
            const size_t c = 4 * (size_t)j + (size_t)q;
            if (c < columns) _mm512_storeu_si512(out + c * width, column[j]);
        }
    }
}

/* Transposes a block of as many rows as a vector has lanes. `there` is a mask of the columns that exist. */
#define BLOCK(bits, element, mask)                                                                 \
    ALWAYS_INLINE void block_##bits(const char *x, ptrdiff_t row, mask there, size_t columns,      \
                                    size_t width, element *out) {                                  \
        __m512i a[512 / bits];                                                                     \
        for (int i = 0; i < 512 / bits; i++)                                                       \
            a[i] = _mm512_maskz_loadu_epi##bits(there, x + i * row);                               \
        turn_##bits(a, columns, width, out);                                                       \
    }
BLOCK(32, uint32_t, __mmask16)
BLOCK(64, uint64_t, __mmask8)

/* Transposes rows of four elements that lie side by side, by vectors of whole rows. The last arguments are the places
 * of columns 0 and 1 in two vectors. */
#define ROWS_OF_FOUR(bits, element, ...)                                                           \
    ALWAYS_INLINE void rows_of_four_##bits(const char *x, size_t width, element *out) {            \
        const __m512i first = _mm512_setr_epi##bits(__VA_ARGS__),                                  \
                      second = _mm512_add_epi##bits(first, _mm512_set1_epi##bits(2));              \
        const __m512i a = _mm512_loadu_si512(x), b = _mm512_loadu_si512(x + 64),                   \
                      c = _mm512_loadu_si512(x + 128), d = _mm512_loadu_si512(x + 192);            \
        for (size_t k = 0; k < 2;                                                                  \
             k++) { /* columns 2 k and 2 k + 1, of half a vector's rows each */                    \
            const __m512i p = _mm512_permutex2var_epi##bits(a, k ? second : first, b),             \
                          q = _mm512_permutex2var_epi##bits(c, k ? second : first, d);             \
            _mm512_storeu_si512(out + 2 * k * width, _mm512_shuffle_i64x2(p, q, 0x44));            \
            _mm512_storeu_si512(out + (2 * k + 1) * width, _mm512_shuffle_i64x2(p, q, 0xee));      \
        }                                                                                          \
    }
ROWS_OF_FOUR(32, uint32_t, 0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29)
ROWS_OF_FOUR(64, uint64_t, 0, 4, 8, 12, 1, 5, 9, 13)

/* Transposes block by block. Rows less than 64 bytes apart share lines, so only every `near`-th of them is
 * prefetched. */
#define TRANSPOSE_BLOCKS(bytes, bits, element, mask, near)                                         \
    void CONCAT(transpose_##bytes, TALLY_ISA)(const char *x, ptrdiff_t row, size_t rows,           \
                                              size_t columns, size_t width, char *to) {            \
        const size_t side = 64 / bytes;                                                            \
        element *out = (element *)(void *)to;                                                      \
        size_t r = 0;                                                                              \
        const ptrdiff_t ahead = row >= 128 ? (ptrdiff_t)side * row : TRANSPOSE_AHEAD;              \
        for (; columns == 4 && row == 4 * bytes && r + side <= rows; r += side) {                  \
            PREFETCH(x + (ptrdiff_t)r * row, 256, TRANSPOSE_AHEAD, 2);                             \
            KERNEL_PATH("rows of four");                                                           \
            rows_of_four_##bits(x + (ptrdiff_t)r * row, width, out + r);                           \
        }                                                                                          \
        for (; r + side <= rows; r += side) {                                                      \
            KERNEL_PATH("blocks");                                                                 \
            for (ptrdiff_t i = 0; i < (ptrdiff_t)side; i += row >= 64 ? 1 : near)                  \
                PREFETCH(x + ((ptrdiff_t)r + i) * row, columns * bytes, ahead, 2);                 \
            for (size_t c = 0; c < columns; c += side) {                                           \
                const size_t m = columns - c < side ? columns - c : side;                          \
                block_##bits(x + (ptrdiff_t)r * row + c * bytes, row, (mask)((1u << m) - 1), m,    \
                             width, out + c * width + r);                                          \
            }                                                                                      \
        }                                                                                          \
        if (r < rows) KERNEL_PATH("rows that are no block");                                       \
        for (; r < rows; r++)                                                                      \
            for (size_t c = 0; c < columns; c++)                                                   \
                memcpy(out + c * width + r, x + (ptrdiff_t)r * row + c * bytes, bytes);            \
    }
TRANSPOSE_BLOCKS(4, 32, uint32_t, __mmask16, 4)
TRANSPOSE_BLOCKS(8, 64, uint64_t, __mmask8, 1)
#else
TRANSPOSE(4, unaligned_u32)
TRANSPOSE(8, unaligned_u64)
#endif

/* ---- Segments as columns -------------------------------------------------------------------- */

#define GATHER(bytes, element)                                                                     \
    void CONCAT(gather_##bytes, TALLY_ISA)(const char *x, const size_t *start,                     \
                                           const size_t *length, size_t count, size_t longest,     \
                                           int again, uint64_t fill, char *to) {                   \
        KERNEL_PATH("");                                                                           \
        element *out = (element *)to;                                                              \
        for (size_t c = 0; c < STEP; c++) {                                                        \
            const element *from = (const element *)x + (c < count ? start[c] : 0);                 \
            const size_t n = c < count ? length[c] : 0;                                            \
            for (size_t r = 0; r < n; r++)                                                         \
                out[r * STEP + c] = from[r];                                                       \
            for (size_t r = n; r < longest; r++)                                                   \
                out[r * STEP + c] = again && n ? from[0] : (element)fill;                          \
        }                                                                                          \
    }
GATHER(1, unaligned_u8)
GATHER(2, unaligned_u16)
#if TALLY_VECTOR == 64
/* Transposes segments: loads a vector of each at a time; a mask selects the elements that are in the segment. */
#define GATHER_BLOCKS(bytes, bits, element, integer, mask)                                         \
    void CONCAT(gather_##bytes, TALLY_ISA)(const char *x, const size_t *start,                     \
                                           const size_t *length, size_t count, size_t longest,     \
                                           int again, uint64_t fill, char *to) {                   \
        KERNEL_PATH("");                                                                           \
        const size_t side = 64 / bytes;                                                            \
        uint##bits##_t *out = (uint##bits##_t *)(void *)to;                                        \
        const element *from = (const element *)x;                                                  \
        for (size_t r = 0; r < longest; r += side)                                                 \
            for (size_t c = 0; c < STEP; c += side) {                                              \
                __m512i a[64 / bytes];                                                             \
                for (size_t i = 0; i < side; i++) {                                                \
                    const size_t n = c + i < count ? length[c + i] : 0, at = n ? start[c + i] : 0; \
                    const element other = again && n ? from[at] : (element)fill;                   \
                    const size_t here = n > r ? (n - r < side ? n - r : side) : 0;                 \
                    a[i] = _mm512_mask_loadu_epi##bits(_mm512_set1_epi##bits((integer)other),      \
                                                       (mask)((1u << here) - 1), from + at + r);   \
                }                                                                                  \
                turn_##bits(a, side, STEP, out + r * STEP + c);                                    \
            }                                                                                      \
    }
GATHER_BLOCKS(4, 32, unaligned_u32, int32_t, __mmask16)
GATHER_BLOCKS(8, 64, unaligned_u64, int64_t, __mmask8)
#else
GATHER(4, unaligned_u32)
GATHER(8, unaligned_u64)
#endif

#define FALLS(bytes, type)                                                                         \
    int CONCAT(falls_##bytes, TALLY_ISA)(const void *offsets, size_t n) {                          \
        const type *o = offsets;                                                                   \
        type wrong = 0;                                                                            \
        for (size_t i = 1; i < n; i++)                                                             \
            wrong |= o[i] < o[i - 1];                                                              \
        if (wrong)                                                                                 \
            KERNEL_PATH("yes");                                                                    \
        else                                                                                       \
            KERNEL_PATH("no");                                                                     \
        return wrong != 0;                                                                         \
    }
FALLS(4, unaligned_i32)
FALLS(8, unaligned_i64)

#define EVEN(bytes, type)                                                                          \
    int CONCAT(even_##bytes, TALLY_ISA)(const void *offsets, size_t n, size_t each) {              \
        const type *o = offsets;                                                                   \
        type wrong = 0;                                                                            \
        for (size_t i = 0; i < n; i++)                                                             \
            wrong |= (o[i + 1] - o[i]) ^ (type)each;                                               \
        if (wrong)                                                                                 \
            KERNEL_PATH("no");                                                                     \
        else                                                                                       \
            KERNEL_PATH("yes");                                                                    \
        return wrong == 0;                                                                         \
    }
EVEN(4, unaligned_u32)
EVEN(8, unaligned_u64)
