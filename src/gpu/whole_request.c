/* whole_request.c - see whole_request.h. */
#include "gpu/whole_request.h"

#include "base/types.h"
#include "exact/round.h"
#include "kernels/request.h"

static bool are_extremes(tally_op first, tally_op second, tally_op least, tally_op greatest) {
    return (first == least && second == greatest) || (first == greatest && second == least);
}

/* Returns whether the problem is for both extremes, or for both their indices, and nothing else. */
static bool is_both(const struct problem *p) {
    const tally_op first = p->value[0].op, second = p->values == 2 ? p->value[1].op : first;
    return are_extremes(first, second, TALLY_MIN, TALLY_MAX) ||
           are_extremes(first, second, TALLY_ARGMIN, TALLY_ARGMAX);
}

bool whole_gives_values(const struct problem *p) {
    if (is_both(p)) return true;
    if (p->values != 1) return false;
    switch (p->value[0].op) {
    case TALLY_SUM: /* sums of integers only as integers */
    case TALLY_NORM1:
    case TALLY_SUMSQ:
    case TALLY_DOT:
        return type_is_float(p->type) || !type_is_float(p->value[0].type);
    case TALLY_PROD:
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR:
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
    case TALLY_NONZERO:
    case TALLY_ANY:
    case TALLY_ALL:
    case TALLY_USER:
        return true;
    default:
        return false;
    }
}

_Static_assert(TYPE_ROWS <= 16, "kernels/request.h and kernels/lower.h have four bits for a type");

/* Returns the bits of a request for the value's type and, of a float, its mantissa's length and
 * exponent's bias. */
static uint32_t request_type(tally_type type) {
    if (!type_is_float(type)) return (uint32_t)type;
    const float_format f = format_of(type);
    return REQUEST_FLOAT(type, f.mantissa, f.bias);
}

uint32_t whole_request(const struct problem *p) {
    const tally_op op = p->value[0].op;
    return request_type(p->value[0].type) |
           (op == TALLY_MIN || op == TALLY_ARGMIN ? REQUEST_LEAST : 0) |
           (is_both(p) ? REQUEST_BOTH : 0) | (op == TALLY_ANY ? REQUEST_ANY : 0) |
           (op == TALLY_ALL ? REQUEST_ALL : 0);
}
