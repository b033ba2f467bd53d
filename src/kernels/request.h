/*
 * request.h - what a launch of a production kernel is asked to leave behind. Kernels and the host read it
 * alike.
 *
 * A request is one word. 0: the total stays in `work`, as a record, and further launches add to it.
 * Otherwise the last block turns the total into a value, writes that to `result` and leaves `work` as it
 * found it, all zero. Then the word says what the value is to be:
 *
 *   bits 0-3    the tally_type of the result
 *   bit 4       LEAST: min and not max, which are one kernel
 *   bit 5       ALONE: a grid of one block, which adds to nothing: `work` is not looked at
 *   bits 8-15   for floats, the bits of mantissa behind the implicit one ...
 *   bits 16-26  ... and the exponent's bias
 *
 * `result` is two words: the value's bits; and a status, with the type above it. The status is written
 * last, so that a host that can see `result` may wait for it to change.
 */
#ifndef TALLY_REQUEST_H
#define TALLY_REQUEST_H

#define REQUEST_LEAST (1u << 4)
#define REQUEST_ALONE (1u << 5)
#define REQUEST_FLOAT(type, mantissa, bias)                                                        \
    ((unsigned)(type) | (unsigned)(mantissa) << 8 | (unsigned)(bias) << 16)

#define REQUEST_TYPE(r)     ((r)&15u)
#define REQUEST_MANTISSA(r) ((r) >> 8 & 255u)
#define REQUEST_BIAS(r)     ((r) >> 16 & 2047u)

#define BOARD                                                                                      \
    70 /* work[BOARD ...]: records of blocks; before it the counter and the widest record */

#define RESULT_OK      0u /* TALLY_OK */
#define RESULT_RANGE   5u /* TALLY_ERANGE: an exact integer does not fit its type */
#define RESULT_PENDING (~0u)

#endif
