/*
 * two_sum.h - additions whose errors are not lost, and the way to a shorter float that rounds once.
 *
 * Before including this header, include dialect.h.
 */
#ifndef TALLY_TWO_SUM_H
#define TALLY_TWO_SUM_H

/* Returns a + b, rounded, and its error. An infinity or a NaN makes the error a NaN. */
PURE double two_sum(double a, double b, double *error) {
    const double sum = a + b, t = sum - a;
    *error = (a - (sum - t)) + (b - t);
    return sum;
}

/* Does the same with floats. */
PURE float two_sum_float(float a, float b, float *error) {
    const float sum = a + b, t = sum - a;
    *error = (a - (sum - t)) + (b - t);
    return sum;
}

/* Adds x to the double-double *s + *e. Returns not 0 if that loses a bit; the sum is then lost. It
 * does so if x is infinite or a NaN, or if *s overflows, as the error is then a NaN. */
PURE u64 pair_add(double x, double *s, double *e) {
    double error;
    const double t = two_sum(*s, x, &error);
    const double u = *e + error, v = u - *e;
    const u64 wrong =
        (double_bits(v) ^ double_bits(error)) | (double_bits(u - v) ^ double_bits(*e));
    *s = t;
    *e = u;
    return wrong;
}

/* Returns a + r rounded to odd; |r| is at most half of a's last bit. A later rounding to a shorter
 * format is then the only one in effect. */
PURE double pair_to_odd(double a, double r) {
    const u64 bits = double_bits(a);
    if (r == 0 || bits & 1 || a == 0) return a;
    return double_from((r > 0) == (a > 0) ? bits + 1 : bits - 1);
}

#endif
