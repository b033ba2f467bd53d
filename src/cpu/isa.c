/*
 * isa.c - which kernels this machine can run.
 */
#include "cpu/kernels.h"

#include <string.h>

#if defined(__x86_64__)

extern const struct cpu_kernels cpu_kernels_baseline, cpu_kernels_avx2, cpu_kernels_avx512;

/* The compiler may use all of x86-64-v3 and -v4 in those files, so all of it must be here. */
static int has_avx2(void) {
    return __builtin_cpu_supports("x86-64-v3");
}

static int has_avx512(void) {
    return __builtin_cpu_supports("x86-64-v4");
}

static int always(void) {
    return 1;
}

static const struct {
    const struct cpu_kernels *kernels;
    int (*here)(void);
} sets[] = {{&cpu_kernels_avx512, has_avx512},
            {&cpu_kernels_avx2, has_avx2},
            {&cpu_kernels_baseline, always}};

#else

#if defined(__aarch64__)
extern const struct cpu_kernels cpu_kernels_neon;
#define ONLY cpu_kernels_neon
#else
extern const struct cpu_kernels cpu_kernels_baseline;
#define ONLY cpu_kernels_baseline
#endif

static int always(void) {
    return 1;
}

static const struct {
    const struct cpu_kernels *kernels;
    int (*here)(void);
} sets[] = {{&ONLY, always}};

#endif

#define SETS (sizeof sets / sizeof sets[0])

const struct cpu_kernels *cpu_kernels_best(void) {
    for (size_t i = 0; i < SETS; i++)
        if (sets[i].here()) return sets[i].kernels;
    return NULL; /* not reached: the last one is always here */
}

const struct cpu_kernels *cpu_kernels_named(const char *isa) {
    for (size_t i = 0; i < SETS; i++)
        if (strcmp(sets[i].kernels->isa, isa) == 0 && sets[i].here()) return sets[i].kernels;
    return NULL;
}
