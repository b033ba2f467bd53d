/*
 * batch.h - when additions of short floats as doubles lose nothing: one lemma on the exponents of a batch.
 *
 * A batch is at most 2^p floats of 24 significant bits or fewer. Two words bound their exponents:
 *
 *   most    the largest |x|, as bits of an f32
 *   least   the smallest 2 |x| - 1, as such bits; a zero gives 2^32 - 1, the largest word, and so does not count
 *
 * The spread of a batch is the distance of the exponent fields of its largest element and its smallest one but 0.
 *
 * Lemma. Let E be the largest exponent field, L the smallest one, spread = E - L, and all elements finite. The unit is
 * 2^-150, half the smallest f32. An element of field f is a multiple of 2^f units, and smaller than
 * 2^(f + FLOAT_DIGITS) units. So all elements are multiples of 2^L and smaller than 2^(E + FLOAT_DIGITS).
 *
 * 1. Plain sums. A sum of 2^p elements is a multiple of 2^L and smaller than 2^(E + FLOAT_DIGITS + p). It is a double if
 *    E + FLOAT_DIGITS + p <= L + DOUBLE_DIGITS. So no addition rounds if
 *
 *        spread + p <= DOUBLE_DIGITS - FLOAT_DIGITS.
 *
 * 2. Compensated sums: TwoSum gives the error of each addition, and the errors are added plainly. By step 1 a sum is
 *    smaller than 2^(E + FLOAT_DIGITS + p), so an error is at most 2^(E + FLOAT_DIGITS + p - DOUBLE_DIGITS - 1). 2^p
 *    errors add up to at most 2^(E + FLOAT_DIGITS + 2 p - DOUBLE_DIGITS - 1), and all are multiples of 2^L. Their sums
 *    are doubles if that is at most 2^(L + DOUBLE_DIGITS), or spread + 2 p <= 2 DOUBLE_DIGITS - FLOAT_DIGITS + 1. One
 *    less is asked for:
 *
 *        spread + 2 p <= 2 DOUBLE_DIGITS - FLOAT_DIGITS.
 *
 * 3. Compensated sums of squares. The square of a float is a double. In units of 2^(2 L), of the squared unit, squares are
 *    integers smaller than 2^(2 spread + 2 FLOAT_DIGITS), and 2^p of them add up to less than
 *    2^(2 spread + 2 FLOAT_DIGITS + p). An error is at most 2^-DOUBLE_DIGITS of that, and 2^p errors add up to at most
 *    2^(2 (spread + p) + 2 FLOAT_DIGITS - DOUBLE_DIGITS). By the condition of step 1 that is at most 2^DOUBLE_DIGITS. So
 *    the sums of errors are doubles under the same condition as plain sums.
 *
 * 4. Squares above a base: the sum of squares begins at B = 2^(2 (E + FLOAT_DIGITS) + p) squared units, which 2^p squares do
 *    not reach. So it stays below 2 B and is always the larger operand: one subtraction gives an addition's error. An error
 *    is at most 2^-DOUBLE_DIGITS B, as in step 3, so the condition is the same. E and L may be bounds that are chosen first.
 *
 * 5. Sums in floats of elements of d digits, which are multiples of 2^(f + FLOAT_DIGITS - d): step 1 with FLOAT_DIGITS for a
 *    double's digits, so that no addition rounds if spread + p + d <= FLOAT_DIGITS. Nor is one too large for a float if
 *    E + p < 254.
 *
 * An infinity or a NaN has no place in the lemma. A plain sum that meets one is an infinity or a NaN, as it should be,
 * whatever the batch's other elements are. So a batch of one sum is right then, as if its spread were 0: OF_ONE_SUM. In a
 * batch of several sums the other sums may be wrong. Its spread satisfies no condition: OF_SEVERAL_SUMS.
 *
 * Hosts and kernels include this text. tests/engine/test_intervals.py checks it with batches at the limits.
 *
 * Before including this header, define u32, i32 and PURE.
 */
#ifndef TALLY_CERTAIN_BATCH_H
#define TALLY_CERTAIN_BATCH_H

/* Bits of significands. Floats shorter than f32 have fewer. */
#define FLOAT_DIGITS  24
#define DOUBLE_DIGITS 53

/* The spread that counts for a batch with an infinity or a NaN. Finite batches have at most 253. */
#define OF_ONE_SUM      0
#define OF_SEVERAL_SUMS 255

/* The largest spread at which 2^p elements, and the squares of these, satisfy the conditions of the lemma. */
#define PLAIN_SPREAD_MOST(p)       (DOUBLE_DIGITS - FLOAT_DIGITS - (p))
#define COMPENSATED_SPREAD_MOST(p) (2 * DOUBLE_DIGITS - FLOAT_DIGITS - 2 * (p))

/* The same of elements of so many digits that are added up as floats; exponent fields are below FLOAT_FIELD_END - p. */
#define FLOAT_SPREAD_MOST(digits, p) (FLOAT_DIGITS - (digits) - (p))
#define FLOAT_FIELD_END              254u

/* The bounds of a batch of no elements. */
#define NO_MOST  0u
#define NO_LEAST (~0u)

/* Widens the bounds of a batch so that they hold for an element with these bits, too. */
PURE void note_magnitude(u32 bits, u32 *most, u32 *least) {
    const u32 magnitude = bits & 0x7fffffffu, twice = 2 * bits - 1;
    *most = magnitude > *most ? magnitude : *most;
    *least = twice < *least ? twice : *least;
}

/* Returns whether a batch has an infinity or a NaN. */
PURE u32 has_special(u32 most) {
    return most >> 23 == 255;
}

/* Returns the spread of a batch; 0 if all elements are 0; `special`, OF_ONE_SUM or OF_SEVERAL_SUMS, if it has an
 * infinity or a NaN. */
PURE i32 spread_of(u32 most, u32 least, i32 special) {
    const i32 high = (i32)(most >> 23), low = (i32)((least + 1) >> 24);
    return high == 255 ? special : high <= low ? 0 : high - low;
}

/* Return whether plain sums, those in floats of elements of so many digits up to `most`, or compensated sums of at most 2^p
 * elements of this spread are exact. */
PURE u32 plain_sums_are_exact(i32 spread, i32 p) {
    return spread <= PLAIN_SPREAD_MOST(p);
}
PURE u32 float_sums_are_exact(u32 most, i32 spread, i32 digits, i32 p) {
    return spread <= FLOAT_SPREAD_MOST(digits, p) && most >> 23 < FLOAT_FIELD_END - (u32)p;
}
PURE u32 compensated_sums_are_exact(i32 spread, i32 p) {
    return spread <= COMPENSATED_SPREAD_MOST(p);
}

#endif
