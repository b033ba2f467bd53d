/*
 * read.c - plain reads of memory, for the read roof: the fastest that bytes can come in.
 *
 * Three ways that different machines like best: one stream; one stream with prefetch; four streams.
 */
#include "cpu/vector.h"

static uint64_t finish(vu64 a, const unsigned char *p, size_t rest) {
    uint64_t all = any_bits((vi64)a);
    while (rest-- > 0)
        all ^= *p++;
    return all;
}

uint64_t ISA_NAME(read_plain)(const void *bytes, size_t size) {
    KERNEL_PATH("");
    const unsigned char *p = bytes;
    vu64 a = {0};
    for (; size >= 4 * TALLY_VECTOR; size -= 4 * TALLY_VECTOR, p += 4 * TALLY_VECTOR)
        a ^= (VECTOR_LOAD(vu64, p) ^ VECTOR_LOAD(vu64, p + TALLY_VECTOR)) ^
             (VECTOR_LOAD(vu64, p + 2 * TALLY_VECTOR) ^ VECTOR_LOAD(vu64, p + 3 * TALLY_VECTOR));
    return finish(a, p, size);
}

uint64_t ISA_NAME(read_ahead)(const void *bytes, size_t size) {
    KERNEL_PATH("");
    const unsigned char *p = bytes;
    vu64 a = {0};
    for (; size >= 4 * TALLY_VECTOR; size -= 4 * TALLY_VECTOR, p += 4 * TALLY_VECTOR) {
        PREFETCH(p, 4 * TALLY_VECTOR, STREAM_AHEAD, 2);
        a ^= (VECTOR_LOAD(vu64, p) ^ VECTOR_LOAD(vu64, p + TALLY_VECTOR)) ^
             (VECTOR_LOAD(vu64, p + 2 * TALLY_VECTOR) ^ VECTOR_LOAD(vu64, p + 3 * TALLY_VECTOR));
    }
    return finish(a, p, size);
}

uint64_t ISA_NAME(read_streams)(const void *bytes, size_t size) {
    KERNEL_PATH("");
    const unsigned char *p = bytes;
    size_t quarter = size / 4 / TALLY_VECTOR * TALLY_VECTOR;
    vu64 a = {0};
    for (size_t i = 0; i < quarter; i += TALLY_VECTOR, p += TALLY_VECTOR)
        a ^= (VECTOR_LOAD(vu64, p) ^ VECTOR_LOAD(vu64, p + quarter)) ^
             (VECTOR_LOAD(vu64, p + 2 * quarter) ^ VECTOR_LOAD(vu64, p + 3 * quarter));
    return finish(a, p + 3 * quarter, size - 4 * quarter);
}
