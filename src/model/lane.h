/*
 * lane.h - definitions in plain C of the names that kernels use, for the model.
 *
 * A translation unit includes this before the text of a kernel (kernels/dialect.h). The text is compiled
 * by gcc with
 *     -fsanitize=thread                  a call before every access to memory
 *     -fsanitize-coverage=trace-pc       a call at the start of every basic block
 *     -fsanitize=bounds                  a call when an index lies outside its array
 *     -Og -fno-reorder-blocks            accesses and blocks as the text has them, in its order, by
 *                                        which a warp comes together again (see schedule.c)
 *     -g1                                source lines, for reports
 * (CMake: tally_model_kernels()). The names of these calls are bound here to functions of ours, so
 * that no sanitizer's run time is involved, and a program that holds the model can itself run under
 * one.
 */
#ifndef TALLY_MODEL_LANE_H
#define TALLY_MODEL_LANE_H

#include "model/model.h"

typedef signed char i8;
typedef short i16;
typedef int i32;
typedef long long i64;
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef u32 uint4 __attribute__((vector_size(16)));

/* ---- The compiler's calls ------------------------------------------------------------------- */

#define BIND(theirs, ours) __asm__(".set " #theirs ", " #ours)
BIND(__tsan_init, model_nothing);
BIND(__tsan_func_entry, model_nothing);
BIND(__tsan_func_exit, model_nothing);
BIND(__sanitizer_cov_trace_pc, model_on_block);
BIND(__tsan_read1, model_on_read1);
BIND(__tsan_read2, model_on_read2);
BIND(__tsan_read4, model_on_read4);
BIND(__tsan_read8, model_on_read8);
BIND(__tsan_read16, model_on_read16);
BIND(__tsan_write1, model_on_write1);
BIND(__tsan_write2, model_on_write2);
BIND(__tsan_write4, model_on_write4);
BIND(__tsan_write8, model_on_write8);
BIND(__tsan_write16, model_on_write16);
BIND(__tsan_unaligned_read2, model_on_read2);
BIND(__tsan_unaligned_read4, model_on_read4);
BIND(__tsan_unaligned_read8, model_on_read8);
BIND(__tsan_unaligned_read16, model_on_read16);
BIND(__tsan_unaligned_write2, model_on_write2);
BIND(__tsan_unaligned_write4, model_on_write4);
BIND(__tsan_unaligned_write8, model_on_write8);
BIND(__tsan_unaligned_write16, model_on_write16);
BIND(__tsan_volatile_read1, model_on_volatile_read1);
BIND(__tsan_volatile_read2, model_on_volatile_read2);
BIND(__tsan_volatile_read4, model_on_volatile_read4);
BIND(__tsan_volatile_read8, model_on_volatile_read8);
BIND(__tsan_volatile_read16, model_on_volatile_read16);
BIND(__tsan_volatile_write1, model_on_volatile_write1);
BIND(__tsan_volatile_write2, model_on_volatile_write2);
BIND(__tsan_volatile_write4, model_on_volatile_write4);
BIND(__tsan_volatile_write8, model_on_volatile_write8);
BIND(__tsan_volatile_write16, model_on_volatile_write16);
BIND(__tsan_unaligned_volatile_read2, model_on_volatile_read2);
BIND(__tsan_unaligned_volatile_read4, model_on_volatile_read4);
BIND(__tsan_unaligned_volatile_read8, model_on_volatile_read8);
BIND(__tsan_unaligned_volatile_write2, model_on_volatile_write2);
BIND(__tsan_unaligned_volatile_write4, model_on_volatile_write4);
BIND(__tsan_unaligned_volatile_write8, model_on_volatile_write8);
BIND(__ubsan_handle_out_of_bounds, model_on_index);
BIND(__ubsan_handle_out_of_bounds_abort, model_on_index);
BIND(__tsan_read_range, model_on_read_range);
BIND(__tsan_write_range, model_on_write_range);

/* Debug builds count the paths of kernels (paths.h), by program. */
#if defined(TALLY_DEBUG)
#define PATH_ISA PROGRAM_PATHS
#include "base/paths.h"
#endif

/* Marks code of ours that the compiler is to leave without calls, so that the model does not see it. */
#define MODEL_UNSEEN __attribute__((unused, noinline, no_sanitize("thread"), no_sanitize_coverage))

/* ---- The words ------------------------------------------------------------------------------ */

#define GLOBAL
#define SHARED
#define PURE               MODEL_UNSEEN static
#define EXCHANGE           1
#define UNIFORM(condition) (condition)
#define COUNT_OPERATION()  model_operation()
#define FLOAT_ATOMIC_ADD   1

#define __global__ __attribute__((noinline)) static
/* MODEL_CALLS: helpers are functions of their own. A kernel whose basic blocks are counted has to
 * be one function. A large one whose counts nobody reads compiles in a third of the time with
 * calls. */
#if defined(MODEL_CALLS)
#define __device__ __attribute__((unused, noinline)) static
#else
#define __device__ __attribute__((always_inline)) static inline
#endif

/* Blocks run one after another, so one copy of a shared array serves them all. The section tells the
 * model what is shared memory. (The rest of the name makes it one of zeros that takes no room in
 * the file; the compiler's own choice of flags lands in a comment.) */
#if defined(__aarch64__)
#define __shared__ __attribute__((section("model_shared,\"aw\",%nobits//"))) static
#else
#define __shared__ __attribute__((section("model_shared,\"aw\",%nobits#"))) static
#endif

/* Return values that never change while a lane lives, hence `const`: the compiler may call once and
 * remember. */
__attribute__((const)) unsigned model_thread(void);
__attribute__((const)) unsigned model_block(void);
__attribute__((const)) unsigned model_threads(void);
__attribute__((const)) unsigned model_blocks(void);
typedef struct model_dimension {
    unsigned x;
} model_dimension;
#define threadIdx ((model_dimension){model_thread()})
#define blockIdx  ((model_dimension){model_block()})
#define blockDim  ((model_dimension){model_threads()})
#define gridDim   ((model_dimension){model_blocks()})

void model_barrier(void);
void model_fence(void);
void model_operation(void);
#define __syncthreads()        model_barrier()
#define __threadfence()        model_fence()
#define __threadfence_system() model_fence()
#define leading_zeros(u)       ((u32)__builtin_clz(u))

u64 model_shuffle(unsigned mask, u64 value, unsigned source);
#define model_lane_index()         (model_thread() % 32)
#define HAS_SHUFFLES               1
#define __shfl_sync(mask, v, lane) ((__typeof__(v))model_shuffle(mask, v, (lane) % 32))
#define __shfl_xor_sync(mask, v, lanes)                                                            \
    ((__typeof__(v))model_shuffle(mask, v, model_lane_index() ^ (lanes)))
#define __shfl_down_sync(mask, v, delta)                                                           \
    ((__typeof__(v))model_shuffle(mask, v, model_lane_index() + (delta)))

u32 model_add_u32(u32 *p, u32 v);
u64 model_add_u64(u64 *p, u64 v);
float model_add_float(float *p, float v);
double model_add_double(double *p, double v);
u32 model_and_u32(u32 *p, u32 v);
u64 model_and_u64(u64 *p, u64 v);
u32 model_or_u32(u32 *p, u32 v);
u64 model_or_u64(u64 *p, u64 v);
u32 model_xor_u32(u32 *p, u32 v);
u64 model_xor_u64(u64 *p, u64 v);
u32 model_exchange_u32(u32 *p, u32 v);
u64 model_exchange_u64(u64 *p, u64 v);
u32 model_cas_u32(u32 *p, u32 expected, u32 v);
u64 model_cas_u64(u64 *p, u64 expected, u64 v);
#define MODEL_WORD(p, name) _Generic((p), u32 * : name##_u32, u64 * : name##_u64)
#define atomicAdd(p, v)                                                                            \
    _Generic((p), u32 *: model_add_u32, u64 *: model_add_u64, float *: model_add_float,            \
             double *: model_add_double)(p, v)
#define atomicAnd(p, v)           MODEL_WORD(p, model_and)(p, v)
#define atomicOr(p, v)            MODEL_WORD(p, model_or)(p, v)
#define atomicXor(p, v)           MODEL_WORD(p, model_xor)(p, v)
#define atomicExch(p, v)          MODEL_WORD(p, model_exchange)(p, v)
#define atomicCAS(p, expected, v) MODEL_WORD(p, model_cas)(p, expected, v)
#define atomicLoad(p)             (*(volatile const __typeof__(*(p)) *)(p))
#define atomicStore(p, v)         ((void)(*(volatile __typeof__(*(p)) *)(p) = (v)))

/* clang-format off */
#define float_bits(x)  (((union { float f; u32 u; }){.f = (x)}).u)
#define float_from(b)  (((union { u32 u; float f; }){.u = (b)}).f)
#define double_bits(x) (((union { double f; u64 u; }){.f = (x)}).u)
#define double_from(b) (((union { u64 u; double f; }){.u = (b)}).f)
/* clang-format on */

/* ---- Handing kernels to the model ---------------------------------------------------------- */

/* After a kernel's text: defines `static const model_kernel NAME_kernel`, given the types of the
 * kernel's parameters. */
#define MODEL_KERNEL1(name, A) MODEL_CALLER(name, 1, (MODEL_ARG(A, 0)), sizeof(A))
#define MODEL_KERNEL2(name, A, B)                                                                  \
    MODEL_CALLER(name, 2, (MODEL_ARG(A, 0), MODEL_ARG(B, 1)), sizeof(A), sizeof(B))
#define MODEL_KERNEL3(name, A, B, C)                                                               \
    MODEL_CALLER(name, 3, (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2)), sizeof(A),          \
                 sizeof(B), sizeof(C))
#define MODEL_KERNEL4(name, A, B, C, D)                                                            \
    MODEL_CALLER(name, 4, (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2), MODEL_ARG(D, 3)),    \
                 sizeof(A), sizeof(B), sizeof(C), sizeof(D))
#define MODEL_KERNEL5(name, A, B, C, D, E)                                                         \
    MODEL_CALLER(                                                                                  \
        name, 5,                                                                                   \
        (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2), MODEL_ARG(D, 3), MODEL_ARG(E, 4)),     \
        sizeof(A), sizeof(B), sizeof(C), sizeof(D), sizeof(E))
#define MODEL_KERNEL6(name, A, B, C, D, E, F)                                                      \
    MODEL_CALLER(name, 6,                                                                          \
                 (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2), MODEL_ARG(D, 3),              \
                  MODEL_ARG(E, 4), MODEL_ARG(F, 5)),                                               \
                 sizeof(A), sizeof(B), sizeof(C), sizeof(D), sizeof(E), sizeof(F))
#define MODEL_KERNEL7(name, A, B, C, D, E, F, G)                                                   \
    MODEL_CALLER(name, 7,                                                                          \
                 (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2), MODEL_ARG(D, 3),              \
                  MODEL_ARG(E, 4), MODEL_ARG(F, 5), MODEL_ARG(G, 6)),                              \
                 sizeof(A), sizeof(B), sizeof(C), sizeof(D), sizeof(E), sizeof(F), sizeof(G))
#define MODEL_KERNEL8(name, A, B, C, D, E, F, G, H)                                                \
    MODEL_CALLER(name, 8,                                                                          \
                 (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2), MODEL_ARG(D, 3),              \
                  MODEL_ARG(E, 4), MODEL_ARG(F, 5), MODEL_ARG(G, 6), MODEL_ARG(H, 7)),             \
                 sizeof(A), sizeof(B), sizeof(C), sizeof(D), sizeof(E), sizeof(F), sizeof(G),      \
                 sizeof(H))
#define MODEL_KERNEL9(name, A, B, C, D, E, F, G, H, I)                                             \
    MODEL_CALLER(name, 9,                                                                          \
                 (MODEL_ARG(A, 0), MODEL_ARG(B, 1), MODEL_ARG(C, 2), MODEL_ARG(D, 3),              \
                  MODEL_ARG(E, 4), MODEL_ARG(F, 5), MODEL_ARG(G, 6), MODEL_ARG(H, 7),              \
                  MODEL_ARG(I, 8)),                                                                \
                 sizeof(A), sizeof(B), sizeof(C), sizeof(D), sizeof(E), sizeof(F), sizeof(G),      \
                 sizeof(H), sizeof(I))
#define MODEL_ARG(T, i) *(T *)arguments[i]
#define MODEL_CALLER(name, count, values, ...)                                                     \
    MODEL_UNSEEN static void name##_call(void *const *arguments) {                                 \
        name values;                                                                               \
    }                                                                                              \
    static const size_t name##_bytes[] = {__VA_ARGS__};                                            \
    static const model_kernel name##_kernel = {#name, name##_call, count, name##_bytes}

#endif
