/*
 * isa.c - finds the kernels that this machine can run, and whether they have to prefetch.
 */
#include "cpu/kernel_path.h"
#include "cpu/kernels.h"
#include "cpu/prefetch.h"

#include <string.h>

size_t cpu_prefetches = ~(size_t)0;

#if defined(__x86_64__)
#include <cpuid.h>

__attribute__((constructor)) static void look_at_vendor(void) {
    __builtin_cpu_init();
    if (__builtin_cpu_is("amd")) cpu_prefetches = 0;
}

extern const struct cpu_kernels cpu_kernels_baseline, cpu_kernels_avx2, cpu_kernels_avx512;

static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

/* Returns whether the machine has all instructions that CMakeLists.txt names for the AVX2 kernels,
 * as the compiler may use all of them. */
static int has_avx2(void) {
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
           __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2") && has_f16c();
}

static int has_avx512(void) {
    return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512cd");
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

#if defined(TALLY_DEBUG)
const char *cpu_isa_is_absent(const struct path_table *t, const unsigned at[PATH_AXES]) {
    (void)at;
#if defined(__x86_64__)
    __builtin_cpu_init(); /* paths are listed by a constructor */
#endif
    return cpu_kernels_named(t->isa) ? NULL : "this machine lacks the instruction set";
}
#endif
