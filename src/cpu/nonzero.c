/*
 * nonzero.c - counts the elements that are not zero, of one instruction set.
 *
 * Zeros are counted, lane by lane, each lane as wide as an element: a comparison gives -1 there. A lane of 8 bits
 * counts up to 255, one of 16 bits up to 65535, and wider lanes hold the count of a whole fold; then lanes are added
 * up. Only an element's size matters, and for floats the sign bit, which is ignored: -0 is a zero, and NaN is none.
 */
#include "cpu/vector.h"

/* most: vectors that a lane's count takes. up: 1 for floats, whose sign bit is shifted out. Four streams are
 * read side by side, which is faster than one (read.c). */
#define STREAMS NONZERO_STREAMS
#define NONZERO(name, type, most, up)                                                              \
    void ISA_NAME(nonzero_##name)(const void *array, size_t n, void *state) {                      \
        KERNEL_PATH("");                                                                           \
        typedef VECTOR_OF(type) vector;                                                            \
        typedef type UNALIGNED unaligned;                                                          \
        const unaligned *x = array;                                                                \
        const size_t rows = n / (STREAMS * LANES(type)), apart = rows * LANES(type);               \
        uint64_t zeros = 0;                                                                        \
        for (size_t round, done = 0; done < rows; done += round) {                                 \
            vector count[STREAMS] = {{0}};                                                         \
            round = rows - done < (most) ? rows - done : (most);                                   \
            for (size_t i = 0; i < round; i++, x += LANES(type))                                   \
                for (int k = 0; k < STREAMS; k++) {                                                \
                    const vector v = VECTOR_LOAD(vector, x + k * apart);                           \
                    PREFETCH_PLAIN(x + k * apart, TALLY_VECTOR, 2048, 1);                          \
                    count[k] -= (vector)((v << (up)) == 0);                                        \
                }                                                                                  \
            for (int k = 0; k < STREAMS; k++)                                                      \
                for (size_t j = 0; j < LANES(type); j++)                                           \
                    zeros += count[k][j];                                                          \
        }                                                                                          \
        x += (STREAMS - 1) * apart;                                                                \
        for (size_t i = 0; i < n - STREAMS * apart; i++)                                           \
            zeros += (type)((uint64_t)x[i] << (up)) == 0;                                          \
        *(uint64_t *)state += n - zeros;                                                           \
    }

#define MOST_8  255
#define MOST_16 65535
#define MOST_32 ((size_t)1 << 30)
#define MOST_64 ((size_t)1 << 30)

NONZERO(i8, uint8_t, MOST_8, 0)
NONZERO(u8, uint8_t, MOST_8, 0)
NONZERO(i16, uint16_t, MOST_16, 0)
NONZERO(u16, uint16_t, MOST_16, 0)
NONZERO(i32, uint32_t, MOST_32, 0)
NONZERO(u32, uint32_t, MOST_32, 0)
NONZERO(i64, uint64_t, MOST_64, 0)
NONZERO(u64, uint64_t, MOST_64, 0)
NONZERO(f16, uint16_t, MOST_16, 1)
NONZERO(bf16, uint16_t, MOST_16, 1)
NONZERO(f32, uint32_t, MOST_32, 1)
NONZERO(f64, uint64_t, MOST_64, 1)
