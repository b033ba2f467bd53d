/*
 * scan.c - see scan.h.
 */
#include "input/scan.h"

#include <stdbool.h>
#include <string.h>

static void scan_plain(const char *at, const char *end, char delimiter, struct scanned *out) {
    const char *found = memchr(at, '\n', (size_t)(end - at));
    out->end = found ? found : end;
    out->count = out->words = 0;
    for (const char *first = at; first < out->end || !out->words; first += 64) {
        uint64_t marks = 0;
        for (unsigned i = 0; i < 64 && first + i < out->end; i++)
            marks |= (uint64_t)(first[i] == delimiter) << i;
        out->count += (size_t)__builtin_popcountll(marks);
        if (out->words < SCAN_WORDS) out->marks[out->words++] = marks;
        if (first + 64 >= out->end) break;
    }
}

#ifdef __x86_64__
#include <immintrin.h>

/* Returns a word in which bit i is set if byte i of 64 is `what`. */
__attribute__((target("avx2"), always_inline)) static inline uint64_t marks_of(const char *at,
                                                                               __m256i what) {
    const __m256i low = _mm256_loadu_si256((const __m256i *)(const void *)at);
    const __m256i high = _mm256_loadu_si256((const __m256i *)(const void *)(at + 32));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(low, what)) |
           (uint64_t)(uint32_t)_mm256_movemask_epi8(_mm256_cmpeq_epi8(high, what)) << 32;
}

__attribute__((target("avx2,popcnt,bmi"))) static void
scan_avx2(const char *at, const char *end, char delimiter, struct scanned *out) {
    const __m256i ends = _mm256_set1_epi8('\n'), delimiters = _mm256_set1_epi8(delimiter);
    size_t count = 0, words = 0;
    for (;; at += 64) {
        uint64_t stop = marks_of(at, ends), marks = marks_of(at, delimiters);
        if (end - at < 64) stop |= (uint64_t)1 << (end - at);
        if (stop) marks &= (stop & -stop) - 1; /* those before the first end */
        if (words < SCAN_WORDS) out->marks[words++] = marks;
        count += (size_t)__builtin_popcountll(marks);
        if (!stop) continue;
        out->count = count;
        out->words = words;
        out->end = at + __builtin_ctzll(stop);
        return;
    }
}
#endif

scan_line *scan_best(void) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("popcnt") &&
        __builtin_cpu_supports("bmi"))
        return scan_avx2;
#endif
    return scan_plain;
}
