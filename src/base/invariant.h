/*
 * invariant.h - assertions of what the code relies on: a lock that is held, a range that is valid, a state
 * that is normal.
 *
 * If the condition is false, TALLY_ASSERT(condition) ends the program with a line that names the condition and its
 * place. Builds that define TALLY_DEBUG have it; in all others it is nothing, and the condition is compiled but never
 * evaluated. It is for faults of the library's own: a caller's mistake gets a status code.
 */
#ifndef TALLY_INVARIANT_H
#define TALLY_INVARIANT_H

#if defined(TALLY_DEBUG)

#include <stdio.h>
#include <stdlib.h>

__attribute__((cold, unused)) static _Noreturn void invariant_broken(const char *condition,
                                                                     const char *file, int line) {
    fprintf(stderr, "tally: %s:%d: this does not hold: %s\n", file, line, condition);
    abort();
}

#define TALLY_ASSERT(condition)                                                                    \
    ((condition) ? (void)0 : invariant_broken(#condition, __FILE__, __LINE__))

#else

#define TALLY_ASSERT(condition) ((void)(0 && (condition)))

#endif

#endif
