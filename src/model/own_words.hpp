/* own_words.hpp - the keywords, types and functions of CUDA C for a kernel that is compiled at run time. It stands
 * behind own_elements.hpp. */

/* ---- The words ------------------------------------------------------------------------------ */

#define __global__        __attribute__((noinline, noclone))
#define __device__        __attribute__((always_inline)) __inline
#define __host__
#define __forceinline__
#define __constant__ OWN_DEVICE_VARIABLE
#define __managed__
#define __align__(bytes) __attribute__((aligned(bytes)))
#define __grid_constant__
#define __noinline__
#define __restrict__      __restrict
#define __launch_bounds__(...)
/* Put objects into sections, by which the model tells shared from global memory. (As in lane.h.) */
#if defined(__aarch64__)
#define __shared__ __attribute__((section("model_shared,\"aw\",%nobits//"), aligned(128))) static
#define OWN_DYNAMIC __attribute__((section("model_dynamic,\"aw\",%nobits//"), aligned(256), used))
#else
#define __shared__ __attribute__((section("model_shared,\"aw\",%nobits#"), aligned(128))) static
#define OWN_DYNAMIC __attribute__((section("model_dynamic,\"aw\",%nobits#"), aligned(256), used))
#endif
#define OWN_DEVICE_VARIABLE __attribute__((section("model_global"), aligned(16)))

struct own_dimension {
    unsigned x, y, z;
};
typedef own_dimension uint3;
struct dim3 {
    unsigned x, y, z;
    constexpr dim3(unsigned x = 1, unsigned y = 1, unsigned z = 1) : x(x), y(y), z(z) {}
    constexpr dim3(own_dimension d) : x(d.x), y(d.y), z(d.z) {}
};
#define threadIdx (own_dimension{own_thread_x(), own_thread_y(), own_thread_z()})
#define blockIdx  (own_dimension{own_block(), 0, 0})
#define blockDim  (own_dimension{own_threads_x(), own_threads_y(), own_threads_z()})
#define gridDim   (own_dimension{own_blocks(), 1, 1})
#define warpSize  32
#define __CUDACC__   1
#define __CUDA_ARCH__ 800 /* what the words here are of */
typedef unsigned long size_t;
typedef unsigned int uint;
typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long uint64_t;
typedef long int64_t;
typedef unsigned char uchar;
typedef unsigned short ushort;
typedef unsigned long ulong;
typedef long ptrdiff_t;
typedef unsigned long uintptr_t;
typedef decltype(nullptr) nullptr_t;

OWN_INLINE void __syncthreads() { own_barrier(); }
OWN_INLINE void __threadfence() { own_fence(); }
OWN_INLINE void __threadfence_block() { own_fence_block(); }
OWN_INLINE void __threadfence_system() { own_fence(); }
OWN_INLINE void __syncwarp(unsigned mask = 0xffffffffu) { own_meet(mask); }
OWN_INLINE unsigned __activemask() { return own_active(); }
OWN_INLINE unsigned __ballot_sync(unsigned mask, bool p) { return (unsigned)own_vote(mask, p, 2); }
OWN_INLINE int __any_sync(unsigned mask, bool p) { return own_vote(mask, p, 2) != 0; }
OWN_INLINE int __all_sync(unsigned mask, bool p) { return own_vote(mask, !p, 2) == 0; }

/* Flags of __syncthreads_count(). Calls use two rows of flags in turn. A lane writes a row again only behind the next
 * barrier, which all lanes reach after they have read the row. */
namespace own {
struct flags {
    unsigned char of[2][1024], row[1024];
};
constinit inline flags barrier_flags{};
OWN_UNSEEN inline void start_flags() { barrier_flags.row[own_thread()] = 0; }
OWN_UNSEEN inline void raise_flag(bool p) {
    const unsigned t = own_thread();
    barrier_flags.row[t] ^= 1;
    barrier_flags.of[barrier_flags.row[t]][t] = p;
}
OWN_UNSEEN inline int count_flags() {
    const unsigned row = barrier_flags.row[own_thread()];
    int count = 0;
    for (unsigned t = 0; t < own_threads(); t++)
        count += barrier_flags.of[row][t];
    return count;
}
} // namespace own
OWN_INLINE int __syncthreads_count(bool p) {
    own::raise_flag(p);
    own_barrier();
    return own::count_flags();
}
OWN_INLINE int __syncthreads_or(bool p) { return __syncthreads_count(p) != 0; }
OWN_INLINE int __syncthreads_and(bool p) { return __syncthreads_count(!p) == 0; }

namespace own {
template <class V> union word {
    own_u64 bits;
    V v;
};
/* Does a shuffle. Its value counts as an element of an array, so that the model sees operators on it. */
template <class V> OWN_INLINE auto shuffled(unsigned mask, V v, unsigned source) {
    word<V> w{0};
    w.v = v;
    w.bits = own_shuffle(mask, w.bits, source);
    return wrap_element(w.v);
}
} // namespace own
/* A lane keeps its own value where a shuffle up or down would leave its part of `width` lanes, or an xor would reach a
 * later part. __shfl_sync() takes the lane's number within the part, modulo width. */
#define OWN_LANE (own_thread() % 32)
template <class A> requires own::operand<A> OWN_INLINE auto __shfl_sync(unsigned mask, A &&a, int lane, int width = 32) {
    return own::shuffled(mask, own::get(a), (OWN_LANE & ~(width - 1u)) | ((unsigned)lane & (width - 1u)));
}
template <class A> requires own::operand<A> OWN_INLINE auto __shfl_down_sync(unsigned mask, A &&a, unsigned delta, int width = 32) {
    const unsigned at = OWN_LANE, in = at & (width - 1u);
    return own::shuffled(mask, own::get(a), at + (in + delta < (unsigned)width) * delta);
}
template <class A> requires own::operand<A> OWN_INLINE auto __shfl_up_sync(unsigned mask, A &&a, unsigned delta, int width = 32) {
    const unsigned at = OWN_LANE, in = at & (width - 1u);
    return own::shuffled(mask, own::get(a), at - (in >= delta) * delta);
}
template <class A> requires own::operand<A> OWN_INLINE auto __shfl_xor_sync(unsigned mask, A &&a, int lanes, int width = 32) {
    const unsigned at = OWN_LANE, to = at ^ (unsigned)lanes;
    return own::shuffled(mask, own::get(a), (to & ~(width - 1u)) > (at & ~(width - 1u)) ? at : to);
}

namespace own {
template <class V> OWN_INLINE own_u64 bits_of(V v) {
    word<V> w{0};
    w.v = v;
    return w.bits;
}
template <class V> OWN_INLINE auto reduced(unsigned mask, V v, unsigned of_signed, unsigned of_unsigned, bool counted) {
    static_assert(sizeof(V) <= 4 && (V)0.5 == (V)0, "__reduce_*_sync() takes integers of 32 bits");
    if (counted) own_operation();
    return wrap_element((V)own_vote(mask, bits_of(v), (V)-1 < (V)0 ? of_signed : of_unsigned));
}
} // namespace own
template <class A> requires own::operand<A> OWN_INLINE unsigned __match_any_sync(unsigned mask, A &&a) {
    return (unsigned)own_vote(mask, own::bits_of(own::get(a)), 3);
}
template <class A> requires own::operand<A> OWN_INLINE unsigned __match_all_sync(unsigned mask, A &&a, int *all) {
    const unsigned same = (unsigned)own_vote(mask, own::bits_of(own::get(a)), 3);
    *all = same == (unsigned)own_vote(mask, 1, 2);
    return *all ? same : 0;
}
#define OWN_REDUCE(name, of_signed, of_unsigned, counted)                                          \
    template <class A> requires own::operand<A> OWN_INLINE auto name(unsigned mask, A &&a) {        \
        return own::reduced(mask, own::get(a), of_signed, of_unsigned, counted);                   \
    }
OWN_REDUCE(__reduce_add_sync, 4, 4, own::adds)
OWN_REDUCE(__reduce_min_sync, 5, 7, own::compares)
OWN_REDUCE(__reduce_max_sync, 6, 8, own::compares)
OWN_REDUCE(__reduce_and_sync, 9, 9, own::ands)
OWN_REDUCE(__reduce_or_sync, 10, 10, own::ors)
OWN_REDUCE(__reduce_xor_sync, 11, 11, own::xors)

/* Reads with a hint for the caches. __ldg() promises that nobody writes there. __ldcg() and __ldcv() bypass the first
 * cache, so they are volatile here. */
#define OWN_LOAD(name, qualifier)                                                                  \
    template <class P> requires own::operand<P> OWN_INLINE auto name(const P *p) {                  \
        return own::wrap((own::plain_t<P>)*(const qualifier own::plain_t<P> *)p);                  \
    }
template <class P> requires own::operand<P> OWN_INLINE auto __ldg(const P *p) {
    own_on_constant(p, sizeof *p);
    return own::wrap((own::plain_t<P>)*(const own::plain_t<P> *)p);
}
OWN_LOAD(__ldca, )
OWN_LOAD(__ldcs, )
OWN_LOAD(__ldlu, )
OWN_LOAD(__ldcg, volatile)
OWN_LOAD(__ldcv, volatile)
template <class V> requires (!own::operand<V>) OWN_INLINE V __ldg(const V *p) {
    own_on_constant(p, sizeof *p);
    return *p;
}

/* A bit for each type that some atomic of CUDA takes: 1 int, 2 unsigned, 4 long long, 8 unsigned long long, 16 float,
 * 32 double, 64 unsigned short. 128 is any other type. */
namespace own {
template <class T> constexpr unsigned atomic_bit = (T)0.5 != (T)0 ? (sizeof(T) == 4 ? 16u : 32u)
                                                   : sizeof(T) == 8 ? ((T)-1 < (T)0 ? 4u : 8u)
                                                   : sizeof(T) == 4 ? ((T)-1 < (T)0 ? 1u : 2u)
                                                   : sizeof(T) == 2 && (T)-1 > (T)0 ? 64u : 128u;
} // namespace own
#define OWN_ATOMIC_TAKES(name, T, bits, words)                                                     \
    static_assert(own::atomic_bit<T> &(bits),                                                      \
                  #name "() takes " words ", and no other type: write a loop around atomicCAS()")
#define OWN_SITE ((unsigned long)__builtin_return_address(0))
#define OWN_ATOMIC(name, bits, words, ...)                                                         \
    namespace own {                                                                                \
    template <class T> OWN_UNSEEN T name##_at(T *p, T v) {                                         \
        own_on_atomic(p, sizeof(T), OWN_SITE);                                                     \
        const T old = *p;                                                                          \
        *p = (T)(__VA_ARGS__);                                                                     \
        return old;                                                                                \
    }                                                                                              \
    }                                                                                              \
    template <class P, class V> requires own::operand<P> && own::operand<V>                        \
    OWN_INLINE auto name(P *p, V &&v) {                                                            \
        using T = own::plain_t<P>;                                                                 \
        OWN_ATOMIC_TAKES(name, T, bits, words);                                                    \
        return own::wrap(own::name##_at<T>((T *)p, (T)own::get(v)));                               \
    }
OWN_ATOMIC(atomicAdd, 1 | 2 | 8 | 16 | 32, "int, unsigned, unsigned long long, float or double", old + v)
OWN_ATOMIC(atomicSub, 1 | 2, "int or unsigned", old - v)
OWN_ATOMIC(atomicMin, 1 | 2 | 4 | 8, "int, unsigned, long long or unsigned long long", v < old ? v : old)
OWN_ATOMIC(atomicMax, 1 | 2 | 4 | 8, "int, unsigned, long long or unsigned long long", v > old ? v : old)
OWN_ATOMIC(atomicAnd, 1 | 2 | 8, "int, unsigned or unsigned long long", old & v)
OWN_ATOMIC(atomicOr, 1 | 2 | 8, "int, unsigned or unsigned long long", old | v)
OWN_ATOMIC(atomicXor, 1 | 2 | 8, "int, unsigned or unsigned long long", old ^ v)
OWN_ATOMIC(atomicExch, 1 | 2 | 8 | 16, "int, unsigned, unsigned long long or float", v)
OWN_ATOMIC(atomicInc, 2, "unsigned", old >= v ? 0 : old + 1)
OWN_ATOMIC(atomicDec, 2, "unsigned", old == 0 || old > v ? v : old - 1)
namespace own {
template <class T> OWN_UNSEEN T atomicCAS_at(T *p, T expected, T v) {
    own_on_swap(p, sizeof(T), OWN_SITE);
    const T old = *p;
    if (old == expected) *p = v;
    return old;
}
} // namespace own
template <class P, class E, class V> requires own::operand<P>
OWN_INLINE auto atomicCAS(P *p, E &&expected, V &&v) {
    using T = own::plain_t<P>;
    static_assert(own::atomic_bit<T> & (1 | 2 | 8 | 64),
                  "atomicCAS() takes int, unsigned, unsigned long long or unsigned short: swap the bits, as "
                  "__float_as_int() and __double_as_longlong() give them");
    return own::wrap(own::atomicCAS_at<T>((T *)p, (T)own::get(expected), (T)own::get(v)));
}
namespace own {
template <class To, class From> OWN_INLINE To bits(From x) {
    union { From from; To to; } u{x};
    return u.to;
}
} // namespace own
template <class A> OWN_INLINE int __float_as_int(A &&a) { return own::bits<int>((float)own::get(a)); }
template <class A> OWN_INLINE unsigned __float_as_uint(A &&a) { return own::bits<unsigned>((float)own::get(a)); }
OWN_INLINE own::real_t<float> __int_as_float(int a) { return own::bits<float>(a); }
OWN_INLINE own::real_t<float> __uint_as_float(unsigned a) { return own::bits<float>(a); }
template <class A> OWN_INLINE long long __double_as_longlong(A &&a) { return own::bits<long long>((double)own::get(a)); }
OWN_INLINE own::real_t<double> __longlong_as_double(long long a) { return own::bits<double>(a); }
OWN_INLINE int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
OWN_INLINE int __clzll(long long x) { return x ? __builtin_clzll((unsigned long long)x) : 64; }
OWN_INLINE int __popcll(unsigned long long x) { return own::ones(x); }
OWN_INLINE int __popc(unsigned x) { return own::ones(x); }
OWN_INLINE int __ffs(int x) { return __builtin_ffs(x); }
OWN_INLINE int __ffsll(long long x) { return __builtin_ffsll(x); }
OWN_INLINE unsigned __lanemask_lt() { return (1u << OWN_LANE) - 1; }
OWN_INLINE int __mul24(int a, int b) { return a * b; }
OWN_INLINE unsigned __umul24(unsigned a, unsigned b) { return a * b; }
template <class A, class B> requires own::operand<A> && own::operand<B> OWN_INLINE auto __fadd_rn(A &&a, B &&b) { return a + b; }
template <class A, class B> requires own::operand<A> && own::operand<B> OWN_INLINE auto __dadd_rn(A &&a, B &&b) { return a + b; }
template <class A, class B> requires own::operand<A> && own::operand<B> OWN_INLINE auto __fmul_rn(A &&a, B &&b) { return a * b; }
template <class... A> OWN_INLINE int printf(const char *, A &&...) { return 0; }
#define assert(...)       ((__VA_ARGS__) ? (void)0 : own_assert())
#define NULL              0
#define INT_MAX           0x7fffffff
#define INT_MIN           (-INT_MAX - 1)
#define UINT_MAX          0xffffffffu
#define FLT_MAX           3.402823466e+38f
#define FLT_MIN           1.175494351e-38f
#define DBL_MAX           1.7976931348623157e+308
#define DBL_MIN           2.2250738585072014e-308
#define FLT_EPSILON       1.192092896e-07f
#define DBL_EPSILON       2.2204460492503131e-16
#define SHRT_MAX          32767
#define SHRT_MIN          (-32768)
#define USHRT_MAX         65535
#define CHAR_BIT          8
#define LONG_MAX          0x7fffffffffffffffL
#define LONG_MIN          (-LONG_MAX - 1)
#define ULONG_MAX         0xffffffffffffffffUL
#define LLONG_MAX         0x7fffffffffffffffLL
#define LLONG_MIN         (-LLONG_MAX - 1)
#define ULLONG_MAX        0xffffffffffffffffULL
#define INT32_MAX         INT_MAX
#define INT32_MIN         INT_MIN
#define UINT32_MAX        UINT_MAX
#define INT64_MAX         LONG_MAX
#define INT64_MIN         LONG_MIN
#define UINT64_MAX        ULONG_MAX
#define INFINITY          __builtin_inff()
#define HUGE_VALF         __builtin_inff()
#define HUGE_VAL          __builtin_inf()
#define NAN               __builtin_nanf("")
#define CUDART_INF_F      __builtin_inff()
#define CUDART_INF        __builtin_inf()

#define OWN_VECTOR(name, T, bytes, ...)                                                            \
    struct alignas(bytes) name {                                                                   \
        T __VA_ARGS__;                                                                             \
    };
#define OWN_VECTORS(name, T, two, four)                                                            \
    OWN_VECTOR(name##2, T, two, x, y)                                                              \
    OWN_VECTOR(name##4, T, four, x, y, z, w)                                                       \
    template <class A, class B> OWN_INLINE name##2 make_##name##2(A &&x, B &&y) {                  \
        return {T(own::get(x)), T(own::get(y))};                                                   \
    }                                                                                              \
    template <class A, class B, class C, class D>                                                  \
    OWN_INLINE name##4 make_##name##4(A &&x, B &&y, C &&z, D &&w) {                                \
        return {T(own::get(x)), T(own::get(y)), T(own::get(z)), T(own::get(w))};                   \
    }
#define OWN_VECTOR_3(name, T)                                                                      \
    OWN_VECTOR(name, T, sizeof(T), x, y, z)                                                        \
    template <class A, class B, class C> OWN_INLINE name make_##name(A &&x, B &&y, C &&z) {        \
        return {T(own::get(x)), T(own::get(y)), T(own::get(z))};                                   \
    }
OWN_VECTORS(float, own::real_t<float>, 8, 16)
OWN_VECTORS(double, own::real_t<double>, 16, 16)
OWN_VECTORS(char, own::element_t<signed char>, 2, 4)
OWN_VECTORS(uchar, own::element_t<unsigned char>, 2, 4)
OWN_VECTORS(short, own::element_t<short>, 4, 8)
OWN_VECTORS(ushort, own::element_t<unsigned short>, 4, 8)
OWN_VECTORS(int, own::element_t<int>, 8, 16)
OWN_VECTORS(uint, own::element_t<unsigned>, 8, 16)
OWN_VECTORS(longlong, own::element_t<long long>, 16, 16)
OWN_VECTORS(ulonglong, own::element_t<unsigned long long>, 16, 16)
OWN_VECTOR_3(float3, own::real_t<float>)
OWN_VECTOR_3(double3, own::real_t<double>)
OWN_VECTOR_3(int3, own::element_t<int>)
OWN_INLINE uint3 make_uint3(unsigned x, unsigned y, unsigned z) { return {x, y, z}; }

/* Functions that the compiler may call where the kernel copies or clears. */
extern "C" {
__attribute__((used, noinline)) inline void *memset(void *to, int byte, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = (unsigned char)byte;
    return to;
}
__attribute__((used, noinline)) inline void *memcpy(void *to, const void *from, size_t size) {
    for (size_t i = 0; i < size; i++)
        ((unsigned char *)to)[i] = ((const unsigned char *)from)[i];
    return to;
}
}

/* ---- Indexes -------------------------------------------------------------------------------- */

namespace own {
template <class E> struct extent { static constexpr unsigned long value = 0; };
template <class T, unsigned long N> struct extent<T (&)[N]> { static constexpr unsigned long value = N; };
OWN_UNSEEN inline void check_index(long index, unsigned long n, const char *array) {
    if ((unsigned long)index >= n) own_on_index(index, OWN_SITE, array);
}
template <class I> constexpr OWN_INLINE auto index_of(I i) {
    if constexpr (operand<I>)
        return get(i);
    else
        return i;
}
template <class T> constexpr void name_type(char (&out)[8]) {
    int at = 0;
    constexpr bool is_real = (T)0.5 != (T)0;
    out[at++] = is_real ? 'f' : (T)-1 < (T)0 ? 'i' : 'u';
    if (sizeof(T) > 1) out[at++] = sizeof(T) == 2 ? '1' : sizeof(T) == 4 ? '3' : '6';
    out[at++] = sizeof(T) == 1 ? '8' : sizeof(T) == 2 ? '6' : sizeof(T) == 4 ? '2' : '4';
}
template <class T> struct innermost { using type = T; };
template <class T, unsigned long N> struct innermost<T[N]> : innermost<T> {};
template <class T> struct innermost<T[]> : innermost<T> {};
/* The name of the type of a variable's elements: "" if that is no number. */
template <class T> struct type_of_text {
    char name[8] = "";
    constexpr type_of_text() {
        using E = bare_t<typename innermost<T>::type>;
        if constexpr (__is_same(E, bool))
            name_type<unsigned char>(name);
        else if constexpr (operand<E>)
            name_type<plain_t<E>>(name);
    }
};
template <class T> inline constexpr type_of_text<T> type_text{};
/* Tells the model how large the elements of a shared array are, and of which type. */
template <class T> OWN_INLINE void note_array(T &array) {
    own_note_array(&array, sizeof(typename innermost<T>::type), type_text<T>.name);
}
template <class T> constexpr own_variable variable(T &v) {
    own_variable out{&v, sizeof(typename innermost<T>::type), {}};
    for (int i = 0; i < 8; i++)
        out.type[i] = type_text<T>.name[i];
    return out;
}
/* Returns the index of an array or pointer, an expression of type E of that name, and has the model stop outside an array. */
template <class E, class I> constexpr OWN_INLINE auto at(I i, const char *array) {
    const auto k = index_of(i);
    if constexpr (extent<E>::value != 0)
        if (!__builtin_is_constant_evaluated() && !(__builtin_constant_p(k) && (unsigned long)(long)k < extent<E>::value))
            check_index((long)k, extent<E>::value, array);
    return k;
}
} // namespace own

/* The text's type of what an argument points to, for own_deduce.c. */
namespace own {
template <class E> struct text_of { using type = E; };
template <class X> struct text_of<whole<X>> { using type = X; };
template <class P> struct pointee { using type = P; };
template <class E> struct pointee<E *> { using type = typename text_of<bare_t<E>>::type; };
template <class E> struct pointee<E[]> { using type = typename text_of<bare_t<E>>::type; };
template <class E, unsigned long N> struct pointee<E[N]> { using type = typename text_of<bare_t<E>>::type; };
template <class P> struct no_reference { using type = P; };
template <class P> struct no_reference<P &> { using type = P; };
template <class P> struct no_const { using type = P; };
template <class E> struct no_const<E *const> { using type = E *; };
template <class E> struct no_const<E *volatile> { using type = E *; };
template <class P> using text_t = typename pointee<typename no_const<typename no_reference<P>::type>::type>::type;
} // namespace own

/* ---- Of the standard library ---------------------------------------------------------------- */

namespace own {
template <class T> struct limits {
    static constexpr bool is_real = (T)0.5 != (T)0, is_signed = (T)-1 < (T)0;
    static constexpr OWN_INLINE T max() {
        if constexpr (is_real) return sizeof(T) == 4 ? (T)FLT_MAX : (T)DBL_MAX;
        else return is_signed ? (T)(((own_u64)1 << (8 * sizeof(T) - 1)) - 1) : (T)~(own_u64)0;
    }
    static constexpr OWN_INLINE T lowest() {
        if constexpr (is_real) return -max();
        else return is_signed ? (T)(-max() - 1) : (T)0;
    }
    static constexpr OWN_INLINE T min() {
        if constexpr (is_real) return sizeof(T) == 4 ? (T)FLT_MIN : (T)DBL_MIN;
        else return lowest();
    }
    static constexpr OWN_INLINE T infinity() { return (T)__builtin_inf(); }
    static constexpr OWN_INLINE T epsilon() { return sizeof(T) == 4 ? (T)FLT_EPSILON : (T)DBL_EPSILON; }
};
#define OWN_FUNCTOR(name, ...)                                                                     \
    template <class T = void> struct name {                                                        \
        template <class A, class B> OWN_INLINE T operator()(A &&a, B &&b) const { return (T)(__VA_ARGS__); } \
    };                                                                                             \
    template <> struct name<void> {                                                                \
        template <class A, class B> OWN_INLINE auto operator()(A &&a, B &&b) const { return __VA_ARGS__; } \
    };
OWN_FUNCTOR(plus, a + b)
OWN_FUNCTOR(multiplies_by, a *b)
OWN_FUNCTOR(less, min(a, b))
OWN_FUNCTOR(greater, max(a, b))
OWN_FUNCTOR(bit_and, a &b)
OWN_FUNCTOR(bit_or, a | b)
OWN_FUNCTOR(bit_xor, a ^ b)
} // namespace own
namespace std {
template <class T> struct numeric_limits : own::limits<own::plain_t<T>> {};
using own::min; using own::max; using own::abs; using own::fabs; using own::sqrt; using own::plus;
template <class T = void> using multiplies = own::multiplies_by<T>;
using ::size_t; using ::uint32_t; using ::int32_t; using ::uint64_t; using ::int64_t;
} // namespace std

/* ---- Cooperative groups: a block, its tiles, the lanes that run together --------------------- */

namespace cooperative_groups {
struct thread_group {
    unsigned mask, rank, count; /* mask 0: a block */
    OWN_INLINE void sync() const {
        if (mask)
            own_meet(mask);
        else
            own_barrier();
    }
    OWN_INLINE unsigned thread_rank() const { return rank; }
    OWN_INLINE unsigned size() const { return count; }
    OWN_INLINE unsigned num_threads() const { return count; }
};
struct thread_block : thread_group {
    static OWN_INLINE void sync() { own_barrier(); }
    static OWN_INLINE own_dimension group_index() { return own_dimension{own_block(), 0, 0}; }
    static OWN_INLINE own_dimension thread_index() { return threadIdx; }
    static OWN_INLINE own_dimension dim_threads() { return blockDim; }
    static OWN_INLINE own_dimension group_dim() { return blockDim; }
};
OWN_INLINE thread_block this_thread_block() { return thread_block{{0, own_thread(), own_threads()}}; }

/* Lanes of one warp, in the order of their numbers: a tile of a power of two, or those that run together. */
struct lanes_group : thread_group {
    OWN_INLINE unsigned lane_of(unsigned place) const {
        const unsigned first = (unsigned)__builtin_ctz(mask);
        if (mask >> first == (count < 32 ? (1u << count) - 1 : ~0u)) return first + place;
        unsigned left = mask;
        for (; place > 0; place--)
            left &= left - 1;
        return (unsigned)__builtin_ctz(left);
    }
    OWN_INLINE void sync() const { own_meet(mask); }
    template <class A> OWN_INLINE auto shfl(A &&a, unsigned place) const {
        return own::shuffled(mask, own::get(a), lane_of(place % count));
    }
    template <class A> OWN_INLINE auto shfl_down(A &&a, unsigned delta) const {
        return own::shuffled(mask, own::get(a), lane_of(rank + delta < count ? rank + delta : rank));
    }
    template <class A> OWN_INLINE auto shfl_up(A &&a, unsigned delta) const {
        return own::shuffled(mask, own::get(a), lane_of(rank >= delta ? rank - delta : rank));
    }
    template <class A> OWN_INLINE auto shfl_xor(A &&a, unsigned lanes) const {
        return own::shuffled(mask, own::get(a), lane_of((rank ^ lanes) < count ? rank ^ lanes : rank));
    }
    OWN_INLINE unsigned ballot(bool p) const {
        return (__ballot_sync(mask, p) & mask) >> (unsigned)__builtin_ctz(mask);
    }
    OWN_INLINE int any(bool p) const { return __any_sync(mask, p); }
    OWN_INLINE int all(bool p) const { return __all_sync(mask, p); }
};
typedef lanes_group coalesced_group;
template <unsigned N, class Parent = void> struct thread_block_tile : lanes_group {
    static OWN_INLINE unsigned size() { return N; }
    static OWN_INLINE unsigned num_threads() { return N; }
    OWN_INLINE unsigned meta_group_rank() const { return own_thread() / N; }
    OWN_INLINE unsigned meta_group_size() const { return (own_threads() + N - 1) / N; }
};
template <unsigned N> OWN_INLINE auto tiled_partition(const thread_group &) {
    static_assert(N > 0 && N <= 32 && (N & (N - 1)) == 0, "a tile has 1, 2, 4, 8, 16 or 32 threads here");
    const unsigned in = own_thread() % 32 & ~(N - 1);
    return thread_block_tile<N>{{{(N < 32 ? (1u << N % 32) - 1 : ~0u) << in, own_thread() % N, N}}};
}
OWN_INLINE lanes_group tiled_partition(const thread_group &, unsigned n) {
    const unsigned in = own_thread() % 32 & ~(n - 1);
    return lanes_group{{(n < 32 ? (1u << n) - 1 : ~0u) << in, own_thread() % n, n}};
}
OWN_INLINE coalesced_group coalesced_threads() {
    const unsigned mask = own_active();
    return lanes_group{{mask, (unsigned)own::ones(mask & ((1u << own_thread() % 32) - 1)),
                        (unsigned)own::ones(mask)}};
}
template <class T = void> using plus = own::plus<T>;
template <class T = void> using less = own::less<T>;
template <class T = void> using greater = own::greater<T>;
template <class T = void> using bit_and = own::bit_and<T>;
template <class T = void> using bit_or = own::bit_or<T>;
template <class T = void> using bit_xor = own::bit_xor<T>;
template <class G> OWN_INLINE void sync(const G &g) { g.sync(); }
/* Combines the lanes' values by a tree of shuffles. All lanes get the first lane's result. */
template <class G, class A, class F> OWN_INLINE auto reduce(const G &g, A &&a, F &&f) {
    auto v = own::wrap(own::get(a));
    for (unsigned far = 1; far < g.count; far *= 2) {
        const auto other = g.shfl_down(v, far);
        if (g.rank + far < g.count) v = own::wrap(own::get(f(own::wrap_element(own::get(v)), own::wrap_element(own::get(other)))));
    }
    return own::wrap(own::get(g.shfl(v, 0)));
}
} // namespace cooperative_groups

/* ---- Describing a kernel -------------------------------------------------------------------- */

namespace own {
template <class P> struct parameter {
    static constexpr own_parameter of() {
        own_parameter p{};
        if constexpr (plain<P> && !element<P>) {
            p.kind = (bare_t<P>)0.5 == (bare_t<P>)0 ? OWN_INTEGER : OWN_OTHER;
            name_type<bare_t<P>>(p.type);
        } else if constexpr (__is_empty(bare_t<P>)) {
            p.kind = OWN_DEFAULT;
        }
        p.bytes = sizeof(P);
        return p;
    }
};
template <class E> struct parameter<E *> {
    template <class C> struct is_const { static constexpr unsigned value = 0; };
    template <class C> struct is_const<const C> { static constexpr unsigned value = 1; };
    static constexpr own_parameter of() {
        own_parameter p{};
        if constexpr (operand<E> && !__is_same(bare_t<E>, bool)) {
            p.kind = OWN_POINTER;
            p.is_const = is_const<E>::value;
            name_type<plain_t<E>>(p.type);
        }
        return p;
    }
};
template <class P> struct parameter<P *__restrict> : parameter<P *> {};
template <class T> struct argument {
    static OWN_INLINE T of(void *p) {
        if constexpr (__is_empty(T))
            return T{};
        else
            return (T) * (own_u64 *)p;
    }
};
template <class T> struct argument<T *> { static OWN_INLINE T *of(void *p) { return *(T **)p; } };
template <class T> struct argument<T *__restrict> { static OWN_INLINE T *of(void *p) { return *(T **)p; } };
template <unsigned... I> struct places {};
template <unsigned N, unsigned... I> struct count_to : count_to<N - 1, N - 1, I...> {};
template <unsigned... I> struct count_to<0, I...> { using type = places<I...>; };
template <auto f> struct kernel;
template <class... P, void (*f)(P...)> struct kernel<f> {
    static_assert(sizeof...(P) <= OWN_PARAMETERS_MAX, "a kernel has at most 8 parameters here");
    template <unsigned... I> OWN_UNSEEN static void enter(void *const *a, places<I...>) {
        f(argument<P>::of(a[I])...);
    }
    OWN_UNSEEN static void call(void *const *a) {
        start_flags();
        enter(a, typename count_to<sizeof...(P)>::type{});
    }
    static constexpr own_kernel describe(const char *name, const char *names) {
        return {name, names, call, nullptr, sizeof...(P), {parameter<P>::of()...}};
    }
};
} // namespace own

#undef OWN_UNSEEN
#undef OWN_JUMP
#undef OWN_HOOKS
#undef OWN_ATOMIC
#undef OWN_NAME
#define inline /* __device__ is inline already */
#define __inline__
#ifndef OWN_UNCOUNTED
#define float             own::real<float>
#define double            own::real<double>
#endif
/* The kernel's text may not use these: they would go around the model. */
#pragma GCC poison asm __asm __asm__ _Pragma no_sanitize __no_sanitize__ no_sanitize_thread no_sanitize_coverage
#pragma GCC poison no_sanitize_address disable_sanitizer_instrumentation constructor destructor ifunc section
#pragma GCC poison alloca __builtin_alloca __builtin_memcpy __builtin_memset __builtin_memmove naked
#pragma GCC poison __section__ __constructor__ __destructor__ __ifunc__ __naked__ __no_sanitize_thread__
#pragma GCC poison no_sanitize_undefined __no_sanitize_undefined__ __no_sanitize_address__ __no_sanitize_coverage__
