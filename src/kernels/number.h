/*
 * number.h - exact quotients and roots of large integers, rounded once: for hosts (src/exact/lower.c) and
 * for kernels (lower.cu) alike.
 *
 * A number is a magnitude of 32-bit digits, lowest first, times 2^exponent, with a sign. Exponents are
 * multiples of 32, so that numbers line up digit by digit. A superaccumulator becomes a number; products
 * and differences of numbers are exact; the last step divides two of them, takes the root if asked to, and
 * rounds. Only integer arithmetic is used.
 *
 * Before including this header, define u32, i32, u64, i64, PURE, SELDOM, UNROLL_NOT and leading_zeros() of a u32 as
 * kernel.h does, and include rounding.h.
 *
 * One thread works on these numbers now and then: a GPU's compiler makes one copy of each
 * function and of each loop, as it would else need half a minute for a megabyte of code.
 */
#ifndef TALLY_NUMBER_H
#define TALLY_NUMBER_H

/* Digits of the largest number: the square of a sum of floats (68 limbs and a carry, twice over), or n
 * times a sum of squares of f64 (136 limbs, a carry, and two digits of n). */
#define NUMBER_DIGITS 140

typedef struct number {
    i32 count;    /* digits; digit[count - 1] is not 0. 0: the number is 0 */
    i32 exponent; /* of digit[0]; a multiple of 32 */
    u32 negative;
    u32 digit[NUMBER_DIGITS];
} number;

/* Takes zero digits off both ends. */
SELDOM void number_trim(number *a) {
    i32 zeros = 0;
    UNROLL_NOT
    while (a->count > 0 && a->digit[a->count - 1] == 0)
        a->count--;
    UNROLL_NOT
    while (zeros < a->count && a->digit[zeros] == 0)
        zeros++;
    if (zeros == 0) return;
    a->count -= zeros;
    a->exponent += 32 * zeros;
    UNROLL_NOT
    for (i32 i = 0; i < a->count; i++)
        a->digit[i] = a->digit[i + zeros];
}

/* *out = value * 2^exponent, for any exponent. */
SELDOM void number_of(u64 value, i32 exponent, number *out) {
    const i32 shift = exponent & 31; /* also of a negative one: the digit's exponent is the floor */
    out->exponent = exponent - shift;
    out->negative = 0;
    out->count = 3;
    out->digit[0] = (u32)(value << shift);
    out->digit[1] = (u32)(value >> (32 - shift)); /* shift = 0: the digit above */
    out->digit[2] = shift ? (u32)(value >> 32 >> (32 - shift)) : 0;
    number_trim(out);
}

/* *out = the sum of signed limbs, limb_at(i) weighing 2^(lowest + 32 i), and of `above`, 0 or -1, right above the
 * last one. |limb| < 2^62, limbs < NUMBER_DIGITS - 1. */
#define NUMBER_OF_LIMBS(limb_at, limbs, lowest, above, out)                                        \
    do {                                                                                           \
        i64 carry_ = 0;                                                                            \
        (out)->exponent = (lowest);                                                                \
        for (i32 i_ = 0; i_ < (i32)(limbs); i_++) {                                                \
            const i64 sum_ = (i64)limb_at(i_) + carry_;                                            \
            (out)->digit[i_] = (u32)sum_;                                                          \
            carry_ = sum_ >> 32; /* floor */                                                       \
        }                                                                                          \
        number_close((out), (i32)(limbs), carry_ + (above));                                       \
    } while (0)

/* Makes *a a number of its `count` digits in two's complement; `above` is the value of all digits
 * above them. */
SELDOM void number_close(number *a, i32 count, i64 above) {
    a->negative = above < 0;
    a->digit[count] = (u32)above;
    a->digit[count + 1] = (u32)(above >> 32);
    a->count = count + 2;
    if (a->negative) {
        u64 one = 1; /* two's complement: invert every digit and add one */
        UNROLL_NOT
        for (i32 i = 0; i < a->count; i++) {
            const u64 digit = (u64)(~a->digit[i]) + one;
            a->digit[i] = (u32)digit;
            one = digit >> 32;
        }
    }
    number_trim(a);
}

/* out = a * b, out another number than both. a->count + b->count <= NUMBER_DIGITS. */
SELDOM void number_multiply(const number *a, const number *b, number *out) {
    out->exponent = a->exponent + b->exponent;
    out->negative = a->negative ^ b->negative;
    out->count = a->count + b->count;
    UNROLL_NOT
    for (i32 i = 0; i < out->count; i++)
        out->digit[i] = 0;
    UNROLL_NOT
    for (i32 i = 0; i < a->count; i++) {
        u64 carry = 0;
        UNROLL_NOT
        for (i32 j = 0; j < b->count; j++) {
            /* (2^32 - 1)^2 + 2 (2^32 - 1) = 2^64 - 1 */
            const u64 sum = (u64)a->digit[i] * b->digit[j] + out->digit[i + j] + carry;
            out->digit[i + j] = (u32)sum;
            carry = sum >> 32;
        }
        out->digit[i + b->count] = (u32)carry;
    }
    number_trim(out);
}

/* Returns the digit that weighs 2^exponent; exponent is a multiple of 32. */
PURE u32 number_digit(const number *a, i32 exponent) {
    const i32 i = (exponent - a->exponent) / 32;
    return exponent >= a->exponent && i < a->count ? a->digit[i] : 0;
}

/* *out = the finite double with these bits. */
SELDOM void number_of_double(u64 bits, number *out) {
    const u32 field = (u32)(bits >> 52) & 2047;
    number_of((bits & (((u64)1 << 52) - 1)) | (u64)(field != 0) << 52,
              (i32)(field ? field : 1) - 1075, out);
    out->negative = (u32)(bits >> 63);
}

/* out = a - b, out another number than both. The digits between the lowest and the highest of the two are at most
 * NUMBER_DIGITS - 2. */
SELDOM void number_subtract(const number *a, const number *b, number *out) {
    const i32 a_end = a->exponent + 32 * a->count, b_end = b->exponent + 32 * b->count;
    i32 low = a->exponent < b->exponent ? a->exponent : b->exponent;
    i32 end = a_end > b_end ? a_end : b_end;
    if (a->count == 0 || b->count == 0) {
        low = a->count ? a->exponent : b->exponent;
        end = a->count ? a_end : b_end;
    }
    i64 borrow = 0;
    const i32 count = (end - low) / 32;
    out->exponent = low;
    UNROLL_NOT
    for (i32 i = 0; i < count; i++) {
        const i64 left = (i64)number_digit(a, low + 32 * i), right = number_digit(b, low + 32 * i);
        const i64 digit = (a->negative ? -left : left) - (b->negative ? -right : right) + borrow;
        out->digit[i] = (u32)digit;
        borrow = digit >> 32; /* floor: -2 to 1 */
    }
    number_close(out, count, borrow);
}

/* ---- Division, root, rounding ------------------------------------------------------------------- */

#define QUOTIENT_DIGITS 6  /* at most */
#define DIVISOR_DIGITS  44 /* n (n - ddof) has at most 2 + 37 (round_variance()) */

/* Room to work in, whose content means nothing before or after. The caller says where it lies. */
typedef struct number_scratch {
    number a, b, c, d;
    u32 u[DIVISOR_DIGITS + QUOTIENT_DIGITS + 1], v[DIVISOR_DIGITS], q[QUOTIENT_DIGITS], r[3];
} number_scratch;

/* Divides u by v, both of 32-bit digits, v normalised: its highest bit is set (Knuth, The Art of Computer
 * Programming, volume 2, algorithm D). u has n + digits + 1 digits of which the highest is below v's; the
 * quotient's `digits` + 1 digits go to q, the remainder to u. n >= 2. */
PURE void divide_digits(u32 *u, const u32 *v, i32 n, i32 digits, u32 *q) {
    UNROLL_NOT
    for (i32 j = digits; j >= 0; j--) {
        const u64 top = (u64)u[j + n] << 32 | u[j + n - 1];
        u64 guess = top / v[n - 1], rest = top % v[n - 1];
        while (guess >> 32 || guess * v[n - 2] > (rest << 32 | u[j + n - 2])) {
            guess--;
            rest += v[n - 1];
            if (rest >> 32) break;
        }
        i64 borrow = 0;
        u64 carry = 0;
        UNROLL_NOT
        for (i32 i = 0; i < n; i++) {
            const u64 product = guess * v[i] + carry;
            const i64 left = (i64)u[i + j] - (i64)(product & 0xffffffffu) + borrow;
            u[i + j] = (u32)left;
            borrow = left >> 32;
            carry = product >> 32;
        }
        const i64 left = (i64)u[j + n] - (i64)carry + borrow;
        u[j + n] = (u32)left;
        if (left < 0) { /* the guess was one too large: once in 2^31 or so */
            guess--;
            u64 sum = 0;
            UNROLL_NOT
            for (i32 i = 0; i < n; i++) {
                sum += (u64)u[i + j] + v[i];
                u[i + j] = (u32)sum;
                sum >>= 32;
            }
            u[j + n] += (u32)sum;
        }
        q[j] = (u32)guess;
    }
}

/* Makes r, of three digits, the root of q, of QUOTIENT_DIGITS digits, rounded down. Returns whether
 * there is a remainder. Two bits of q make one of r. The remainder stays below 2 r + 1: 98 bits, in
 * two words. */
PURE u32 root_digits(const u32 *q, u32 *r) {
    u64 high = 0, low = 0, root_high = 0, root_low = 0;
    UNROLL_NOT
    for (i32 i = 16 * QUOTIENT_DIGITS - 1; i >= 0; i--) {
        const u64 pair = q[i / 16] >> (2 * (i % 16)) & 3;
        high = high << 2 | low >> 62;
        low = low << 2 | pair;
        const u64 trial_high = root_high << 2 | root_low >> 62, trial_low = root_low << 2 | 1;
        root_high = root_high << 1 | root_low >> 63;
        root_low <<= 1;
        if (high > trial_high || (high == trial_high && low >= trial_low)) {
            high -= trial_high + (low < trial_low);
            low -= trial_low;
            root_low |= 1;
        }
    }
    r[0] = (u32)root_low;
    r[1] = (u32)(root_low >> 32);
    r[2] = (u32)root_high;
    return high != 0 || low != 0;
}

/* Returns the bits of the float nearest to the digits times 2^exponent, plus a little more if
 * `sticky`; +0 if all digits are 0. */
SELDOM u64 round_digits(float_format f, u32 negative, const u32 *digit, i32 count, i32 exponent,
                        u32 sticky) {
    UNROLL_NOT
    while (count > 0 && digit[count - 1] == 0)
        count--;
    if (count == 0) return 0;
    const u32 shift = leading_zeros(digit[count - 1]);
    const u64 second = count > 1 ? digit[count - 2] : 0, third = count > 2 ? digit[count - 3] : 0;
    const u64 rest = third << shift; /* 32 bits, and what is shifted out of them */
    const u64 two = (u64)digit[count - 1] << 32 | second;
    u32 more = sticky | ((rest & 0xffffffffu) != 0);
    UNROLL_NOT
    for (i32 i = 0; i < count - 3; i++)
        more |= digit[i] != 0;
    return round_bits(f, negative, two << shift | rest >> 32,
                      exponent + 32 * (count - 2) - (i32)shift, more != 0);
}

PURE u64 round_number(float_format f, const number *a) {
    return round_digits(f, a->negative, a->digit, a->count, a->exponent, 0);
}

/* Returns the bits of the float nearest to a / b, b > 0, or if `root` to its square root, a >= 0;
 * +0 if a is 0. b has at most DIVISOR_DIGITS - 2 digits.
 * The numerator is cut, or filled up with zeros, to `digits` digits more than the divisor. So the
 * quotient, rounded down, has at least 65 bits; for a root it has at least 129 bits, and the root
 * 65. Of the cut digits and the remainder only their presence matters, since floor(floor(x) / b) =
 * floor(x / b) and floor(sqrt(floor(x))) = floor(sqrt(x)). */
SELDOM u64 round_quotient(float_format f, const number *a, const number *b, u32 root,
                          number_scratch *scratch) {
    u32 *u = scratch->u, *v = scratch->v, *q = scratch->q, *r = scratch->r;
    const i32 digits = root ? QUOTIENT_DIGITS - 1 : 3;
    const i32 low_zero = b->count == 1; /* algorithm D wants two digits */
    const i32 n = b->count + low_zero;
    const u32 shift = b->count > 0 ? leading_zeros(b->digit[b->count - 1]) : 0;
    u32 sticky = 0;
    if (a->count == 0) return 0;

    UNROLL_NOT
    for (i32 i = 0; i < n; i++) {
        const u64 own = i >= low_zero ? b->digit[i - low_zero] : 0;
        const u64 below = i > low_zero ? b->digit[i - low_zero - 1] : 0;
        v[i] = (u32)((own << 32 | below) << shift >> 32);
    }
    const i32 cut = a->count - (n + digits); /* digits of a that are left out; < 0: zeros put in */
    UNROLL_NOT
    for (i32 i = 0; i < cut; i++)
        sticky |= a->digit[i] != 0;
    UNROLL_NOT
    for (i32 i = 0; i <= n + digits; i++) {
        const i32 at = i + cut;
        const u64 own = at >= 0 && at < a->count ? a->digit[at] : 0;
        const u64 below = i > 0 && at > 0 && at <= a->count ? a->digit[at - 1] : 0;
        u[i] = (u32)((own << 32 | below) << shift >> 32);
    }
    UNROLL_NOT
    for (i32 i = 0; i < QUOTIENT_DIGITS; i++)
        q[i] = 0;
    divide_digits(u, v, n, digits, q);
    UNROLL_NOT
    for (i32 i = 0; i < n; i++)
        sticky |= u[i] != 0;
    const i32 exponent = a->exponent + 32 * cut - (b->exponent - 32 * low_zero);
    if (!root) return round_digits(f, a->negative, q, digits + 1, exponent, sticky != 0);
    sticky |= root_digits(q, r);
    return round_digits(f, 0, r, 3, exponent / 2, sticky != 0); /* exponents are multiples of 32 */
}

/* Replaces the exact sum S and sum of squares Q of n elements by those that a variance about a mean m needs:
 * *squares = Q - 2 m S + n m^2, the sum of squares of distances from m, and *sum = 0. `mean` has the bits of m, a
 * finite double. The lowest digit of each term weighs 2^-2176 or more, as that of Q does. |x| and |m| are below 2^1024,
 * so *squares <= 2^64 (2^1025)^2 = 2^2114: 135 digits. */
SELDOM void number_about(u64 mean, u64 n, number *sum, number *squares, number_scratch *scratch) {
    number *m = &scratch->a, *cross = &scratch->b, *c = &scratch->c, *d = &scratch->d;
    number_of_double(mean, m);
    number_multiply(m, sum, cross);
    number_multiply(m, m, c);
    number_of(n, 0, sum);
    number_multiply(c, sum, d);
    d->negative = 1; /* -n m^2 */
    number_subtract(squares, cross, c);
    number_subtract(c, d, sum);
    number_subtract(sum, cross, squares);
    sum->count = 0;
}

/* Makes the sum of squares, *squares, that of complex numbers: adds that of their imaginary parts, *more. */
SELDOM void number_add_squares(number *squares, number *more, number_scratch *scratch) {
    more->negative = 1;
    number_subtract(squares, more, &scratch->a);
    *squares = scratch->a;
}

/* Returns the variance of n > 0 elements from their exact sum and sum of squares, or if `root` the
 * standard deviation: (n squares - sum^2 - imaginary^2) / (n (n - ddof)), rounded once. `imaginary` is the sum of complex
 * numbers' imaginary parts, or 0. ddof = mantissa * 2^exponent is finite and not negative. The result is NaN if
 * n <= ddof. By Cauchy and Schwarz the numerator is not negative. */
SELDOM u64 round_variance(float_format f, const number *sum, const number *imaginary,
                          const number *squares, u64 n, u64 mantissa, i32 exponent, u32 root,
                          number_scratch *scratch) {
    number *count = &scratch->a, *a = &scratch->b, *b = &scratch->c, *c = &scratch->d;
    number_of(n, 0, count);
    number_of(mantissa, exponent, a);
    if (a->count > 0 && a->exponent + 32 * a->count > 96)
        return float_nan_bits(f); /* ddof >= 2^64 > n */
    number_subtract(count, a, b); /* n - ddof: at most 2 + 35 digits */
    if (b->count == 0 || b->negative) return float_nan_bits(f);
    number_multiply(count, b, c); /* n (n - ddof) */
    number_multiply(count, squares, a);
    number_multiply(sum, sum, b);
    number_subtract(a, b, count);
    if (imaginary->count == 0) return round_quotient(f, count, c, root, scratch);
    number_multiply(imaginary, imaginary, b);
    number_subtract(count, b, a);
    return round_quotient(f, a, c, root, scratch);
}

#endif
