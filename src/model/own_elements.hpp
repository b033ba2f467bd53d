/* own_elements.hpp - the classes of elements for a kernel that is compiled at run time. own_lane.hpp, which stands
 * before this text, says why there are such classes. */

namespace own {
OWN_INLINE int ones(unsigned long long x) {
    x -= x >> 1 & 0x5555555555555555u;
    x = (x & 0x3333333333333333u) + (x >> 2 & 0x3333333333333333u);
    return (int)(((x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fu) * 0x0101010101010101u >> 56);
}
template <class T> struct bare { using type = T; };
template <class T> struct bare<T &> { using type = typename bare<T>::type; };
template <class T> struct bare<T &&> { using type = typename bare<T>::type; };
template <class T> struct bare<const T> { using type = typename bare<T>::type; };
template <class T> struct bare<volatile T> { using type = typename bare<T>::type; };
template <class T> struct bare<const volatile T> { using type = T; };
template <class T> using bare_t = typename bare<T>::type;

template <class T> struct real;
template <class T> struct whole;
template <class T> struct kind { static constexpr int value = 0; using type = T; };
template <class T> struct kind<real<T>> { static constexpr int value = 1; using type = T; };
template <class T> struct kind<whole<T>> { static constexpr int value = 2; using type = T; };
template <class T> concept element = kind<bare_t<T>>::value != 0;
template <class T> using plain_t = typename kind<bare_t<T>>::type;
template <class T> struct is_plain { static constexpr bool value = false; };
#define OWN_PLAIN(T) template <> struct is_plain<T> { static constexpr bool value = true; };
OWN_PLAIN(bool) OWN_PLAIN(char) OWN_PLAIN(signed char) OWN_PLAIN(unsigned char) OWN_PLAIN(short)
OWN_PLAIN(unsigned short) OWN_PLAIN(int) OWN_PLAIN(unsigned) OWN_PLAIN(long) OWN_PLAIN(unsigned long)
OWN_PLAIN(long long) OWN_PLAIN(unsigned long long) OWN_PLAIN(float) OWN_PLAIN(double)
template <class T> concept plain = is_plain<bare_t<T>>::value;
template <class T> concept operand = element<T> || plain<T>;
/* element_t<T> is the type of an array's elements, where the kernel's text has T: whole<T> in place of an integer. */
template <class T, bool is_whole = plain<T>> struct held { using type = T; };
#ifndef OWN_UNCOUNTED
template <class T> struct held<T, true> { using type = whole<T>; };
#endif
template <> struct held<bool, true> { using type = bool; };
template <class T> using element_t = typename held<T>::type;

template <class A> constexpr OWN_INLINE plain_t<A> get(A &&a) {
    if constexpr (element<A>)
        return a.v;
    else
        return a;
}
template <class A, class V> OWN_INLINE void put(A &&a, V v) {
    if constexpr (element<A>)
        a.v = v;
    else
        a = v;
}

template <class T> struct arm;
template <class A, class T> constexpr bool is_wide_arm = false;
template <class U, class T> constexpr bool is_wide_arm<arm<U>, T> = (U)0.5 != (U)0 && sizeof(U) > sizeof(T);
/* Stands for float and double. A number converts to a real implicitly. A real converts to a number by a cast only, so
 * that `i < n ? x[i] : 0.0f` has one meaning. */
template <class T> struct real {
    T v;
    real() = default; /* an uninitialized variable holds the pattern that own.c's flags ask for */
    constexpr real(const real &) = default;
    template <class U> requires plain<U> constexpr OWN_INLINE real(U x) : v((T)x) {}
    template <class U> requires(element<U> && !is_wide_arm<bare_t<U>, T>) OWN_INLINE real(U &&x) : v((T)x.v) {}
    template <class U> requires is_wide_arm<bare_t<U>, T> explicit OWN_INLINE real(U &&x) : v((T)x.v) {}
    constexpr real &operator=(const real &) = default;
    template <class U> requires operand<U> OWN_INLINE real &operator=(U &&x) {
        v = (T)get(x);
        return *this;
    }
    template <class U> requires operand<U> OWN_INLINE void operator=(U &&x) volatile { v = (T)get(x); }
    template <class U> requires plain<U> explicit OWN_INLINE operator U() const { return (U)v; }
    template <class U> requires plain<U> explicit OWN_INLINE operator U() const volatile { return (U)v; }
};

/* An integer in an array. It converts to a number implicitly. */
template <class T> struct whole {
    T v;
    whole() = default;
    constexpr whole(const whole &) = default;
    template <class U> requires operand<U> explicit OWN_INLINE whole(U &&x) : v((T)get(x)) {}
    constexpr whole &operator=(const whole &) = default;
    template <class U> requires operand<U> OWN_INLINE whole &operator=(U &&x) {
        v = (T)get(x);
        return *this;
    }
    template <class U> requires operand<U> OWN_INLINE void operator=(U &&x) volatile { v = (T)get(x); }
    OWN_INLINE operator T() const { return v; }
    OWN_INLINE operator T() const volatile { return v; }
    OWN_INLINE T operator++() { return ++v; }
    OWN_INLINE T operator++(int) { return v++; }
    OWN_INLINE T operator--() { return --v; }
    OWN_INLINE T operator--(int) { return v--; }
};

/* An arm of `c ? a : b` that is an integer of an array, or a plain double. OWN_ARM() stands around each arm of the
 * text. C++ wants exactly one of two arms to convert to the other's type. So an arm converts implicitly only to the
 * type that C++ would choose for such numbers, and to a lesser type by a cast. A real remains a reference to its place:
 * then `a > b ? a : b` has no branch. With OWN_LOOSE a double beside a real of 32 bits converts to such a real, for
 * texts that initialize a float by a double. */
template <class A, class B> using common_t = decltype(A() + B());
template <class A, class B> concept alike = sizeof(A) == sizeof(B) && ((A)0.5 == (A)0) == ((B)0.5 == (B)0) &&
                                            ((A)-1 < (A)0) == ((B)-1 < (B)0);
template <class T, class U> concept becomes = alike<T, U> || alike<common_t<T, U>, U>;
template <class T> struct arm {
    T v;
    struct from {};
    constexpr OWN_INLINE arm(T v, from) : v(v) {}
    constexpr arm(const arm &) = default;
    template <class U> requires(plain<U> && !becomes<T, U> && becomes<U, T>) constexpr OWN_INLINE arm(U x) : v((T)x) {}
    template <class U> requires(!becomes<T, U> && becomes<U, T>) constexpr OWN_INLINE arm(const arm<U> &x) : v((T)x.v) {}
    template <class U> requires(!becomes<T, U> && becomes<U, T>) OWN_INLINE arm(const real<U> &x) : v((T)x.v) {}
    constexpr arm &operator=(const arm &) & = default;
    template <class U> requires operand<U> OWN_INLINE arm &operator=(U &&x) & {
        v = (T)get(x);
        return *this;
    }
    template <class U> requires plain<U> constexpr explicit(!becomes<T, U>) OWN_INLINE operator U() const { return (U)v; }
    template <class U> OWN_INLINE operator whole<U>() const { return whole<U>(v); }
};
template <class T> struct kind<arm<T>> { static constexpr int value = (T)0.5 != (T)0 ? 1 : 2; using type = T; };
/* is_place: whether A can be assigned to. An operator's value cannot, nor `c ? a : b`, whose arms may be copies
 * here. */
template <class A> struct is_place { static constexpr bool value = false; };
template <class A> struct is_place<A &> { static constexpr bool value = true; };

#ifdef OWN_UNCOUNTED
template <class V> OWN_INLINE V wrap(V v) { return v; }
template <class V> OWN_INLINE V wrap_element(V v) { return v; }
template <class V> using real_t = V;
#define OWN_ARM
#else
#define OWN_ARM own::arm_of
template <class A> requires(kind<bare_t<A>>::value == 1) constexpr OWN_INLINE A arm_of(A &&a) { return static_cast<A &&>(a); }
template <class A> requires(kind<bare_t<A>>::value != 1) constexpr OWN_INLINE auto arm_of(A &&a) {
    if constexpr (kind<bare_t<A>>::value == 2)
        return arm<plain_t<A>>(get(a), {});
#ifndef OWN_LOOSE
    else if constexpr (__is_same(bare_t<A>, double))
        return arm<double>(a, {});
#endif
    else
        return a;
}
template <class V> using real_t = real<V>;
template <class V> OWN_INLINE auto wrap(V v) {
    if constexpr ((V)0.5 != (V)0)
        return real<V>(v);
    else
        return v;
}
/* Makes a number an element as of an array, so that the model sees operators on it. */
template <class V> OWN_INLINE auto wrap_element(V v) {
    if constexpr ((V)0.5 != (V)0)
        return real<V>(v);
    else
        return whole<V>(v);
}
#endif

#ifdef OWN_OP_SUM
constexpr bool adds = true;
#else
constexpr bool adds = false;
#endif
#ifdef OWN_OP_PROD
constexpr bool multiplies = true;
#else
constexpr bool multiplies = false;
#endif
#if defined(OWN_OP_MIN) || defined(OWN_OP_MAX)
constexpr bool compares = true;
#else
constexpr bool compares = false;
#endif
#ifdef OWN_OP_AND
constexpr bool ands = true;
#else
constexpr bool ands = false;
#endif
#ifdef OWN_OP_OR
constexpr bool ors = true;
#else
constexpr bool ors = false;
#endif
#ifdef OWN_OP_XOR
constexpr bool xors = true;
#else
constexpr bool xors = false;
#endif

template <class A, class B> concept one_element = operand<A> && operand<B> && (element<A> || element<B>);

#define OWN_BINARY(op, counted)                                                                    \
    template <class A, class B> requires one_element<A, B> OWN_INLINE auto operator op(A &&a, B &&b) { \
        const auto x = get(a);                                                                     \
        const auto y = get(b);                                                                     \
        if constexpr (counted) own_operation();                                                    \
        return wrap(x op y);                                                                       \
    }                                                                                              \
    template <class A, class B> requires(one_element<A, B> && is_place<A>::value)                  \
    OWN_INLINE A &&operator op##=(A &&a, B &&b) {                                                  \
        const auto x = get(a);                                                                     \
        const auto y = get(b);                                                                     \
        if constexpr (counted) own_operation();                                                    \
        put(a, (plain_t<A>)(x op y));                                                              \
        return static_cast<A &&>(a);                                                               \
    }
OWN_BINARY(+, adds)
OWN_BINARY(-, false)
OWN_BINARY(*, multiplies)
OWN_BINARY(/, false)
OWN_BINARY(%, false)
OWN_BINARY(&, ands)
OWN_BINARY(|, ors)
OWN_BINARY(^, xors)
OWN_BINARY(<<, false)
OWN_BINARY(>>, false)
#define OWN_COMPARE(op, counted)                                                                   \
    template <class A, class B> requires one_element<A, B> OWN_INLINE bool operator op(A &&a, B &&b) { \
        const auto x = get(a);                                                                     \
        const auto y = get(b);                                                                     \
        if constexpr (counted) own_operation();                                                    \
        return x op y;                                                                             \
    }
OWN_COMPARE(<, compares)
OWN_COMPARE(>, compares)
OWN_COMPARE(<=, compares)
OWN_COMPARE(>=, compares)
OWN_COMPARE(==, false)
OWN_COMPARE(!=, false)
template <class A> requires element<A> OWN_INLINE auto operator-(A &&a) { return wrap(-get(a)); }
template <class A> requires element<A> OWN_INLINE auto operator+(A &&a) { return wrap(+get(a)); }
template <class A> requires element<A> OWN_INLINE auto operator~(A &&a) { return wrap(~get(a)); }
template <class A> requires element<A> OWN_INLINE bool operator!(A &&a) { return !get(a); }

/* Returns the lesser, or the greater, of two reals: of a NaN and a number the number, as CUDA does. Counts as no branch. */
template <class V> OWN_UNSEEN V lesser_real(V x, V y) { return y != y || x < y ? x : y; }
template <class V> OWN_UNSEEN V greater_real(V x, V y) { return y != y || x > y ? x : y; }

/* `take` converts an argument. The functions whose names end with f take floats, and so round a double. */
#define OWN_CHOOSE(name, op, real_name, take)                                                      \
    template <class A, class B> requires operand<A> && operand<B> OWN_INLINE auto name(A &&a, B &&b) { \
        const auto x = take(get(a));                                                               \
        const auto y = take(get(b));                                                               \
        using V = decltype(x op y ? x : y);                                                        \
        if constexpr (compares && (element<A> || element<B>)) own_operation();                     \
        if constexpr ((bare_t<V>)0.5 != (bare_t<V>)0)                                              \
            return wrap(real_name<bare_t<V>>(x, y));                                               \
        else                                                                                       \
            return wrap(x op y ? x : y);                                                           \
    }
} // namespace own
using own::operator+; using own::operator-; using own::operator*; using own::operator/;
using own::operator%; using own::operator&; using own::operator|; using own::operator^;
using own::operator<<; using own::operator>>; using own::operator<; using own::operator>;
using own::operator~; using own::operator<=; using own::operator>=; using own::operator==; using own::operator!=;
using own::operator+=; using own::operator-=; using own::operator*=; using own::operator/=;
using own::operator%=; using own::operator&=; using own::operator|=; using own::operator^=;
using own::operator<<=; using own::operator>>=;
namespace own {
OWN_CHOOSE(min, <, lesser_real, )
OWN_CHOOSE(max, >, greater_real, )
OWN_CHOOSE(fminf, <, lesser_real, (float))
OWN_CHOOSE(fmaxf, >, greater_real, (float))
OWN_CHOOSE(fmin, <, lesser_real, )
OWN_CHOOSE(fmax, >, greater_real, )
template <class A> requires operand<A> OWN_INLINE auto fabsf(A &&a) { return wrap(__builtin_fabsf((float)get(a))); }
template <class A> requires operand<A> OWN_INLINE auto fabs(A &&a) { return wrap(get(a) < 0 ? -get(a) : get(a)); }
template <class A> requires operand<A> OWN_INLINE auto abs(A &&a) { return wrap(get(a) < 0 ? -get(a) : get(a)); }
/* Rounding, without a library: numbers from 2^52 up are whole. */
OWN_INLINE double truncated(double x) { return x > -4503599627370496.0 && x < 4503599627370496.0 ? (double)(long long)x : x; }
OWN_INLINE double floored(double x) { return truncated(x) > x ? truncated(x) - 1 : truncated(x); }
OWN_INLINE double nearest_even(double x) {
    const double down = floored(x), rest = x - down;
    return rest < 0.5 || (rest == 0.5 && floored(down / 2) * 2 == down) ? down : down + 1;
}
OWN_INLINE double rounded(double x) { return x < 0 ? -floored(0.5 - x) : floored(x + 0.5); }
#define OWN_UNARY(name, take, ...)                                                                 \
    template <class A> requires operand<A> OWN_INLINE auto name(A &&a) {                           \
        const auto x = take(get(a));                                                               \
        return wrap(__VA_ARGS__);                                                                  \
    }
#define OWN_UNARIES(name, ...)                                                                     \
    OWN_UNARY(name, , (decltype(x * 1.0f))__VA_ARGS__) OWN_UNARY(name##f, (float), (float)__VA_ARGS__)
OWN_UNARIES(trunc, truncated(x))
OWN_UNARIES(floor, floored(x))
OWN_UNARIES(ceil, -floored(-(double)x))
OWN_UNARIES(rint, nearest_even(x))
OWN_UNARIES(round, rounded(x))
OWN_UNARY(sqrtf, , __builtin_sqrtf((float)x))
OWN_UNARY(sqrt, , (decltype(x * 1.0f))__builtin_sqrt((double)x))
OWN_UNARY(__fsqrt_rn, , __builtin_sqrtf((float)x))
template <class A> requires operand<A> OWN_INLINE bool signbit(A &&a) { return __builtin_signbit(get(a)); }
template <class A> requires operand<A> OWN_INLINE bool isnan(A &&a) { return get(a) != get(a); }
template <class A> requires operand<A> OWN_INLINE bool isinf(A &&a) { return __builtin_isinf((double)get(a)); }
template <class A> requires operand<A> OWN_INLINE bool isfinite(A &&a) { return __builtin_isfinite((double)get(a)); }
template <class A, class B, class C> requires operand<A> && operand<B> && operand<C>
OWN_INLINE auto fmaf(A &&a, B &&b, C &&c) {
    if constexpr (adds && (element<A> || element<B> || element<C>)) own_operation();
    return wrap(own_fmaf((float)get(a), (float)get(b), (float)get(c)));
}
template <class A, class B, class C> requires operand<A> && operand<B> && operand<C>
OWN_INLINE auto fma(A &&a, B &&b, C &&c) {
    if constexpr (adds && (element<A> || element<B> || element<C>)) own_operation();
    if constexpr (__is_same(bare_t<decltype(get(a) * get(b) + get(c))>, float))
        return wrap(own_fmaf(get(a), get(b), get(c)));
    else
        return wrap(own_fma((double)get(a), (double)get(b), (double)get(c)));
}
} // namespace own
using own::min; using own::max; using own::fminf; using own::fmaxf; using own::fmin; using own::fmax;
using own::fabsf; using own::fabs; using own::abs;
using own::trunc; using own::truncf; using own::floor; using own::floorf; using own::ceil; using own::ceilf;
using own::rint; using own::rintf; using own::round; using own::roundf; using own::sqrtf; using own::sqrt;
using own::signbit; using own::isnan; using own::isinf; using own::isfinite; using own::fmaf; using own::fma;
using own::__fsqrt_rn;
