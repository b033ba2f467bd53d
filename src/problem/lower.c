/* lower.c - see lower.h. */
#include "problem/lower.h"

#include "base/paths.h"
#include "base/status.h"
#include "base/types.h"
#include "exact/lower.h"
#include "exact/round.h"

#if defined(TALLY_DEBUG)
static const char *never_lowered(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    (void)t;
    return problem_path(at[0], at[1], &p);
}
PATH_TABLE(lower_paths, "a value", never_lowered, &path_ops, &path_types);
#endif

/* Returns a sum in the type that the plan chose: exactly in an integer type, if it fits; rounded in
 * a floating one. */
static tally_status lower_sum(const struct exact_sum *s, uint64_t n, tally_type type,
                              tally_value *out) {
    if (!type_is_float(type)) {
        if (exact_integer(s, type, out)) return TALLY_OK;
        TALLY_PATH("an integer that does not fit");
        return TALLY_ERANGE;
    }
    *out = exact_round(s, n, type);
    return TALLY_OK;
}

/* Returns the mean: of the fast sum where the problem has one, else of the exact sum. */
static tally_status lower_mean(const struct problem *p, const struct state *s, tally_type type,
                               tally_value *out) {
    if (s->n == 0) {
        TALLY_PATH("of nothing");
        *out = float_nan(type);
    } else if (problem_has(p, MONOID_FAST)) {
        TALLY_PATH("fast");
        *out = round_double(type, s->fast / (double)s->n);
    } else
        *out = exact_quotient(&s->sum, s->n, 0, s->n, type);
    return TALLY_OK;
}

static tally_status lower_product(const struct factors *f, tally_type type, tally_value *out) {
    const uint64_t magnitude = f->zero ? 0 : f->magnitude;
    const int negative = f->negative && magnitude != 0;
    if (f->overflow && !f->zero) {
        TALLY_PATH("an overflow of 64 bits");
        return TALLY_ERANGE;
    }
    if (type == TALLY_I64 && magnitude > (uint64_t)INT64_MAX + (uint64_t)negative) {
        TALLY_PATH("an overflow of i64");
        return TALLY_ERANGE;
    }
    *out = value_of_bits(type, negative ? 0 - magnitude : magnitude);
    return TALLY_OK;
}

static tally_status lower_norminf(const struct problem *p, const struct state *s, tally_type type,
                                  tally_value *out) {
    const struct extremes *e = &s->extremes;
    uint64_t a, b;
    if (s->n == 0) {
        TALLY_PATH("of nothing");
        *out = value_of_bits(type, 0);
        return TALLY_OK;
    }
    if (e->nan) {
        TALLY_PATH("a NaN");
        *out = float_nan(type);
        return TALLY_OK;
    }
    a = type_magnitude(p->type, e->least);
    b = type_magnitude(p->type, e->greatest);
    a = a > b ? a : b;
    if (type == TALLY_I64 && a > INT64_MAX) {
        TALLY_PATH("the magnitude of the least i64");
        return TALLY_ERANGE;
    }
    *out = value_of_bits(type, a);
    return TALLY_OK;
}

static tally_status lower_index(const struct state *s, uint64_t index, tally_value *out) {
    if (s->n == 0) {
        TALLY_PATH("of nothing");
        return TALLY_EINVAL;
    }
    *out = value_of_bits(TALLY_U64, s->extremes.nan ? s->extremes.at_nan : index);
    return TALLY_OK;
}

/* Returns the variance, or its root. Of complex elements the sums of products and of magnitudes are those of the imaginary
 * parts. */
static tally_value lower_variance(const struct problem *p, const struct state *s, int root,
                                  tally_type type) {
    const struct exact_moments part[] = {
        {&s->sum, &s->squares, p->about ? &p->mean[0] : NULL},
        {&s->magnitudes, &s->products, p->about ? &p->mean[1] : NULL}};
    return exact_variance(part, p->is_complex ? 2 : 1, s->n, p->ddof, root, type);
}

static tally_status lower_one(const struct problem *p, const struct state *s,
                              const tally_value *tree, tally_op op, tally_type type,
                              tally_value *out) {
    const struct extremes *e = &s->extremes;
    switch (op) {
    case TALLY_SUM:
        if (!problem_has(p, MONOID_FAST)) return lower_sum(&s->sum, s->n, type, out);
        TALLY_PATH("a fast sum");
        *out = round_double(type, s->fast);
        return TALLY_OK;
    case TALLY_MEAN:
        return lower_mean(p, s, type, out);
    case TALLY_VAR:
    case TALLY_STD:
        *out = lower_variance(p, s, op == TALLY_STD, type);
        return TALLY_OK;
    case TALLY_NORM1:
        return lower_sum(&s->magnitudes, s->n, type, out);
    case TALLY_NORM2:
        *out = exact_root(&s->squares, type);
        return TALLY_OK;
    case TALLY_SUMSQ:
        return lower_sum(&s->squares, s->n, type, out);
    case TALLY_DOT:
        return lower_sum(&s->products, s->n, type, out);
    case TALLY_MIN:
        *out = e->nan ? float_nan(type) : value_of_bits(type, e->least);
        return TALLY_OK;
    case TALLY_MAX:
        *out = e->nan ? float_nan(type) : value_of_bits(type, e->greatest);
        return TALLY_OK;
    case TALLY_NORMINF:
        return lower_norminf(p, s, type, out);
    case TALLY_ARGMIN:
        return lower_index(s, e->at_least, out);
    case TALLY_ARGMAX:
        return lower_index(s, e->at_greatest, out);
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR:
        *out = value_of_bits(type, s->bits);
        return TALLY_OK;
    case TALLY_COUNT:
        *out = value_of_bits(type, s->n);
        return TALLY_OK;
    case TALLY_NANS:
        *out = value_of_bits(type, type_is_float(p->type) ? s->sum.nans : 0);
        return TALLY_OK;
    case TALLY_NONZERO:
        *out = value_of_bits(type, s->nonzero);
        return TALLY_OK;
    case TALLY_ANY:
        *out = value_of_bits(type, s->nonzero != 0);
        return TALLY_OK;
    case TALLY_ALL:
        *out = value_of_bits(type, s->nonzero == s->n);
        return TALLY_OK;
    case TALLY_PROD:
        if (!type_is_float(p->type)) return lower_product(&s->factors, type, out);
        *out = *tree;
        return TALLY_OK;
    case TALLY_USER:
        *out = *tree;
        return TALLY_OK;
    case TALLY_MINMAX:
    case TALLY_DESCRIBE:
        break; /* a plan has the operators that they stand for */
    }
    return TALLY_EINVAL;
}

tally_status lower_absence(const struct problem *p, tally_status s) {
    const char *name = tally_op_name(p->value[0].op);
    if (s == TALLY_ERANGE)
        return fail(s, "the exact %s of these %s elements does not fit %s", name,
                    tally_type_name(p->type), tally_type_name(p->value[0].type));
    return fail(s, "no elements, so there is no %s", name);
}

tally_status lower_values(const struct problem *p, const struct state *s, const tally_value *tree,
                          tally_value *out) {
    for (unsigned i = 0; i < p->values; i++) {
        tally_value v;
        const tally_status status = lower_one(p, s, tree, p->value[i].op, p->value[i].type, &v);
        TALLY_PATH_OF(lower_paths, (unsigned)p->value[i].op, (unsigned)p->type);
        if (status == TALLY_OK)
            out[i] = v;
        else if (p->values == 1)
            return lower_absence(p, status);
        else {
            TALLY_PATH("one of several values that does not exist");
            out[i] = (tally_value){.as.u64 = 0};
        }
    }
    return TALLY_OK;
}
