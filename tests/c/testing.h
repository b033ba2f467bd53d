/*
 * testing.h - what the C tests share: numbers that are the same everywhere, and the check that a
 * failed call explains itself.
 *
 * The C tests look at what Python cannot: the floating environment, allocation failures, fork,
 * threads, and calls with wrong arguments. What a result must be is mostly the Python suite's work;
 * here sums of small whole numbers are enough, which plain C adds up exactly.
 */
#ifndef TALLY_TESTING_H
#define TALLY_TESTING_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tally.h"

/* ThreadSanitizer runs everything tenfold slower and knows nothing of threads after a fork(). */
#if defined(__SANITIZE_THREAD__)
#define UNDER_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define UNDER_TSAN 1
#endif
#endif
#ifndef UNDER_TSAN
#define UNDER_TSAN 0
#endif

/* AddressSanitizer looks at what a call does, and needs it fewer times. */
#if defined(__SANITIZE_ADDRESS__)
#define UNDER_ASAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define UNDER_ASAN 1
#endif
#endif
#ifndef UNDER_ASAN
#define UNDER_ASAN 0
#endif

/* splitmix64: the next of a sequence of well-mixed 64-bit numbers. */
static inline uint64_t next_random(uint64_t *state) {
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* Whether the values are of the same types and bits. */
static inline int same_values(const tally_value *a, const tally_value *b, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (a[i].type != b[i].type ||
            (a[i].type && tally_value_bits(&a[i]) != tally_value_bits(&b[i])))
            return 0;
    return 1;
}

/* Fails unless the call came to `wanted` (no success) and left one line of text. */
static inline void check_error(tally_status status, tally_status wanted, const char *call) {
    if (status != wanted)
        fail_msg("%s came to \"%s\", not \"%s\"", call, tally_status_text(status),
                 tally_status_text(wanted));
    const char *text = tally_error();
    assert_non_null(text);
    if (text[0] == '\0' || strchr(text, '\n')) fail_msg("%s: tally_error() is \"%s\"", call, text);
}
#define assert_error(wanted, call) check_error((call), (wanted), #call)

/* A problem in a call: ASK(TALLY_VAR, TALLY_F32, .ddof = 1). */
#define ASK(the_op, the_type, ...)                                                                 \
    (&(const tally_problem){.op = (the_op), .type = (the_type), __VA_ARGS__})

/* Fails unless the call came to TALLY_OK. */
static inline void check_ok(tally_status status, const char *call) {
    if (status != TALLY_OK)
        fail_msg("%s came to \"%s\": %s", call, tally_status_text(status), tally_error());
}
#define assert_ok(call) check_ok((call), #call)

#endif
