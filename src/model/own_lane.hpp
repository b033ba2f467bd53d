/*
 * own_lane.hpp - lane.h in C++: the text that stands before a kernel that is compiled at run time. own_elements.hpp and
 * own_words.hpp follow this text (ladder/CMakeLists.txt).
 *
 * A student's kernel is plain CUDA C as nvcc takes it, not the dialect of kernels/dialect.h. So it is compiled
 * as C++, behind this text, with the instrumentation that lane.h describes and no library:
 *
 *   - The compiler's calls and ours go through a table, tally_hooks, that the loader of the object fills. A
 *     trampoline jumps to the entry, so that a hook's return address is that of the kernel's own line.
 *   - The elements are classes (own_elements.hpp): real<T> in place of float and double, whole<T> for an integer that a pointer
 *     or a shared array holds. Their operators tell the model when the operator of the reduction is applied;
 *     `input[i] += input[i + stride]` needs no mark. Between two plain int variables `+` is arithmetic
 *     on indices and is not counted.
 *   - own::kernel<>::describe() says what the kernel takes. Whoever compiles the text (cli/teach/own.c) puts that
 *     behind it, as tally_own_kernels and tally_own_kernel_count.
 *
 * Before this text OWN_OP_SUM or the like is to be defined, for the operator of the reduction. With OWN_UNCOUNTED elements are
 * plain numbers: the model sees the same accesses, and no operator. Texts whose types the classes do not suit are compiled so.
 */
#pragma GCC system_header
#define OWN_INLINE __attribute__((always_inline)) inline
#define OWN_UNSEEN __attribute__((noinline, no_sanitize("thread"), no_sanitize_coverage))

/* ---- The hooks ------------------------------------------------------------------------------ */

/* X(place in the table, symbol here, name of the model's function) */
#define OWN_HOOKS(X)                                                                               \
    X(0, __tsan_init, nothing)                                                                     \
    X(1, __tsan_func_entry, on_entry)                                                              \
    X(2, __tsan_func_exit, nothing)                                                                \
    X(3, __sanitizer_cov_trace_pc, on_block)                                                       \
    X(4, __tsan_read1, on_read1)                                                                   \
    X(5, __tsan_read2, on_read2)                                                                   \
    X(6, __tsan_read4, on_read4)                                                                   \
    X(7, __tsan_read8, on_read8)                                                                   \
    X(8, __tsan_read16, on_read16)                                                                 \
    X(9, __tsan_write1, on_write1)                                                                 \
    X(10, __tsan_write2, on_write2)                                                                \
    X(11, __tsan_write4, on_write4)                                                                \
    X(12, __tsan_write8, on_write8)                                                                \
    X(13, __tsan_write16, on_write16)                                                              \
    X(14, __tsan_unaligned_read2, on_read2)                                                        \
    X(15, __tsan_unaligned_read4, on_read4)                                                        \
    X(16, __tsan_unaligned_read8, on_read8)                                                        \
    X(17, __tsan_unaligned_read16, on_read16)                                                      \
    X(18, __tsan_unaligned_write2, on_write2)                                                      \
    X(19, __tsan_unaligned_write4, on_write4)                                                      \
    X(20, __tsan_unaligned_write8, on_write8)                                                      \
    X(21, __tsan_unaligned_write16, on_write16)                                                    \
    X(22, __tsan_volatile_read1, on_volatile_read1)                                                \
    X(23, __tsan_volatile_read2, on_volatile_read2)                                                \
    X(24, __tsan_volatile_read4, on_volatile_read4)                                                \
    X(25, __tsan_volatile_read8, on_volatile_read8)                                                \
    X(26, __tsan_volatile_read16, on_volatile_read16)                                              \
    X(27, __tsan_volatile_write1, on_volatile_write1)                                              \
    X(28, __tsan_volatile_write2, on_volatile_write2)                                              \
    X(29, __tsan_volatile_write4, on_volatile_write4)                                              \
    X(30, __tsan_volatile_write8, on_volatile_write8)                                              \
    X(31, __tsan_volatile_write16, on_volatile_write16)                                            \
    X(32, __ubsan_handle_out_of_bounds, on_index)                                                  \
    X(33, __ubsan_handle_out_of_bounds_abort, on_index)                                            \
    X(34, __tsan_read_range, on_read_range)                                                        \
    X(35, __tsan_write_range, on_write_range)                                                      \
    X(36, own_thread, thread)                                                                      \
    X(37, own_block, block)                                                                        \
    X(38, own_threads, threads)                                                                    \
    X(39, own_blocks, blocks)                                                                      \
    X(40, own_barrier, barrier)                                                                    \
    X(41, own_fence, fence)                                                                        \
    X(42, own_operation, operation)                                                                \
    X(43, own_shuffle, shuffle)                                                                    \
    X(44, own_meet, meet)                                                                          \
    X(45, own_on_atomic, on_atomic)                                                                \
    X(46, own_on_swap, on_swap)                                                                    \
    X(47, own_fence_block, fence_block)                                                            \
    X(48, own_thread_x, thread_x)                                                                  \
    X(49, own_thread_y, thread_y)                                                                  \
    X(50, own_thread_z, thread_z)                                                                  \
    X(51, own_threads_x, threads_x)                                                                \
    X(52, own_threads_y, threads_y)                                                                \
    X(53, own_threads_z, threads_z)                                                                \
    X(54, own_vote, vote)                                                                          \
    X(55, own_active, active)                                                                  \
    X(56, own_on_index, on_index_at)                                                               \
    X(57, own_fma, fma)                                                                            \
    X(58, own_fmaf, fmaf)                                                                          \
    X(59, own_note_array, note_array)                                                              \
    X(60, own_assert, on_assert)                                                                   \
    X(61, own_on_constant, on_constant)
#define OWN_EXPORTED extern "C" __attribute__((visibility("default")))
#define OWN_NAME(place, symbol, name) #name,
OWN_EXPORTED void *tally_hooks[64];
OWN_EXPORTED const char *const tally_hook_names[];
const char *const tally_hook_names[] = {OWN_HOOKS(OWN_NAME) nullptr};
void *tally_hooks[64];
#if defined(__x86_64__)
#define OWN_JUMP(place, symbol, name)                                                              \
    __asm__(".text\n.type " #symbol ", @function\n" #symbol ": jmp *tally_hooks+8*" #place         \
            "(%rip)\n");
#elif defined(__aarch64__)
#define OWN_JUMP(place, symbol, name)                                                              \
    __asm__(".text\n.type " #symbol ", %function\n" #symbol ": adrp x16, tally_hooks+8*" #place    \
            "\n ldr x16, [x16, #:lo12:tally_hooks+8*" #place "]\n br x16\n");
#else
#error "own kernels run on x86-64 and aarch64 only"
#endif
__asm__(".hidden tally_hooks"); /* the jumps need a symbol of this object; others find the table by its address below */
OWN_HOOKS(OWN_JUMP)
OWN_EXPORTED void **const tally_hook_table;
void **const tally_hook_table = tally_hooks;

typedef unsigned long long own_u64;
extern "C" {
__attribute__((const)) unsigned own_thread(void);
__attribute__((const)) unsigned own_block(void);
__attribute__((const)) unsigned own_threads(void);
__attribute__((const)) unsigned own_blocks(void);
__attribute__((const)) unsigned own_thread_x(void);
__attribute__((const)) unsigned own_thread_y(void);
__attribute__((const)) unsigned own_thread_z(void);
__attribute__((const)) unsigned own_threads_x(void);
__attribute__((const)) unsigned own_threads_y(void);
__attribute__((const)) unsigned own_threads_z(void);
void own_barrier(void);
void own_fence_block(void);
own_u64 own_vote(unsigned mask, own_u64 value, unsigned kind);
unsigned own_active(void);
void own_fence(void);
void own_operation(void);
own_u64 own_shuffle(unsigned mask, own_u64 value, unsigned source);
void own_meet(unsigned mask);
void own_on_atomic(void *p, unsigned size, unsigned long site);
void own_on_swap(void *p, unsigned size, unsigned long site);
void own_assert(void);
void own_on_constant(const volatile void *p, unsigned long bytes);
void own_on_index(long index, unsigned long site, const char *array);
void own_note_array(const volatile void *array, unsigned long element, const char *type);
__attribute__((const)) double own_fma(double a, double b, double c);
__attribute__((const)) float own_fmaf(float a, float b, float c);
}
