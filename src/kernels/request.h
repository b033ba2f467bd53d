/*
 * request.h - the arguments of a launch of a production kernel. Kernels and the host read them alike.
 *
 * Every kernel `reduce` has the same arguments:
 *
 *   x, y     the elements x[0..n), and for sums of products y[0..n); other kernels do not look at y
 *   n        how many they are
 *   first    the index of x[0]: where a result is an index, it counts from there
 *   heads    memory of 64-bit words, in which the launch has a counter, and right behind it a record
 *   boards   the same, in which it has a board (records.h)
 *   place    where: the counter is word place % 2^32 of heads, the board begins at word place / 2^32 of boards
 *   request  what is to be left behind
 *   result   where a value goes
 *
 * A request is one word. 0: the total is added to the record.
 * Otherwise the last block turns the total into a value, writes that to `result` and leaves counter and record
 * as it found them, all zero. Then the word says what the value is to be:
 *
 *   bits 0-3    the tally_type of the result
 *   bit 4       LEAST: the least element, or its index, and not the greatest's; one kernel finds both
 *   bit 5       ALONE: a grid of one block: neither heads nor boards are looked at
 *   bits 6-7    of a count of nonzero elements: the count itself, or ANY, or ALL
 *   bits 8-15   for floats, the bits of mantissa behind the implicit one ...
 *   bits 16-26  ... and the exponent's bias
 *   bit 27      WATCHED: the host waits for `result` to change
 *   bit 28      BOTH: the other extreme, too, or its index, behind the one that LEAST says
 *
 * `result` is two words for each value: the value's bits; and a status, with the type above it. The status is written
 * last. So a host that can see `result` and says WATCHED may wait for the status to change; with BOTH, for the second
 * one.
 */
#ifndef TALLY_REQUEST_H
#define TALLY_REQUEST_H

#define REQUEST_LEAST   (1u << 4)
#define REQUEST_ALONE   (1u << 5)
#define REQUEST_ANY     (1u << 6)
#define REQUEST_ALL     (2u << 6)
#define REQUEST_WATCHED (1u << 27)
#define REQUEST_BOTH    (1u << 28)
#define REQUEST_FLOAT(type, mantissa, bias)                                                        \
    ((unsigned)(type) | (unsigned)(mantissa) << 8 | (unsigned)(bias) << 16)

#define REQUEST_TYPE(r)     ((r)&15u)
#define REQUEST_MANTISSA(r) ((r) >> 8 & 255u)
#define REQUEST_BIAS(r)     ((r) >> 16 & 2047u)

#define SUM_THREADS_MOST (1u << 23) /* the most threads of a grid of sum.cu */
#define SUM_BLOCKS_MOST  (1u << 15)
#define SUM_GRID_WORDS                                                                             \
    16 /* the most words that an exact sum (sum.cu) has in a launch's head behind its record */

#define RESULT_OK      0u /* TALLY_OK */
#define RESULT_NONE    1u /* TALLY_EINVAL: the index of an extreme of no elements */
#define RESULT_RANGE   5u /* TALLY_ERANGE: an exact integer does not fit its type */
#define RESULT_LOST    9u /* TALLY_ELOST: another rank's words did not come */
#define RESULT_PENDING (~0u)

#endif
