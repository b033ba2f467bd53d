/*
 * fpenv.h - the floating environment in which Tally computes, whatever the caller's is.
 *
 * Round to nearest even, subnormals as they are, no traps. fp_env_enter() sets that for this thread and
 * returns the caller's environment with its exception flags; fp_env_leave() puts it back. On x86-64 and AArch64 both
 * are a few instructions: only the control and status words of the vector unit are touched, which is where Tally's
 * arithmetic runs. Elsewhere the C library does it.
 */
#ifndef TALLY_FPENV_H
#define TALLY_FPENV_H

#include <stdint.h>

#if defined(__x86_64__)
#include <immintrin.h>

struct fp_env {
    uint32_t mxcsr;
};

static inline struct fp_env fp_env_enter(void) {
    struct fp_env caller = {_mm_getcsr()};
    if ((caller.mxcsr & ~0x3fu) != 0x1f80) _mm_setcsr(0x1f80); /* no traps, the rest 0 */
    __asm__ volatile("" ::: "memory");
    return caller;
}

static inline void fp_env_leave(struct fp_env caller) {
    __asm__ volatile("" ::: "memory");
    if (_mm_getcsr() != caller.mxcsr)
        _mm_setcsr(caller.mxcsr); /* reading is quicker than writing */
}

#elif defined(__aarch64__)

struct fp_env {
    uint64_t control, status;
};

static inline struct fp_env fp_env_enter(void) {
    struct fp_env caller;
    uint64_t plain = 0;
    __asm__ volatile("mrs %0, fpcr\n\tmrs %1, fpsr\n\tmsr fpcr, %2"
                     : "=&r"(caller.control), "=&r"(caller.status)
                     : "r"(plain)
                     : "memory");
    return caller;
}

static inline void fp_env_leave(struct fp_env caller) {
    __asm__ volatile("msr fpcr, %0\n\tmsr fpsr, %1"
                     :
                     : "r"(caller.control), "r"(caller.status)
                     : "memory");
}

#else
#include <fenv.h>

struct fp_env {
    fenv_t all;
};

static inline struct fp_env fp_env_enter(void) {
    struct fp_env caller;
    fegetenv(&caller.all);
    fesetenv(FE_DFL_ENV);
    return caller;
}

static inline void fp_env_leave(struct fp_env caller) {
    fesetenv(&caller.all);
}

#endif
#endif
