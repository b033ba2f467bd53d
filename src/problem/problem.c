/*
 * problem.c - the table of operators: which monoids each needs, and what type its value has; and the plan of a problem.
 */
#include "problem/problem.h"

#include "base/status.h"
#include "base/table.h"
#include "base/types.h"

#include <string.h>

/* The natural type of a value, if the caller asks for none. */
enum result {
    OWN,   /* the element type */
    WIDE,  /* of floats their type, of integers i64 or u64 */
    REAL,  /* of floats their type, of integers f64 */
    INDEX, /* u64 */
    FLAG   /* u8 */
};

/* ANY_FLOAT: the caller may also ask for the value in any floating type. */
enum { NO_CHOICE, ANY_FLOAT };

#define ALSO_MAX (sizeof((tally_problem *)0)->also / sizeof(tally_op))

#define SUM        MONOID_BIT(MONOID_SUM)
#define SQUARES    MONOID_BIT(MONOID_SQUARES)
#define PRODUCTS   MONOID_BIT(MONOID_PRODUCTS)
#define MAGNITUDES MONOID_BIT(MONOID_MAGNITUDES)
#define FACTORS    MONOID_BIT(MONOID_FACTORS)
#define EXTREMES   MONOID_BIT(MONOID_EXTREMES)
#define BITS       MONOID_BIT(MONOID_BITS)
#define NONZERO    MONOID_BIT(MONOID_NONZERO)
#define TREE       MONOID_BIT(MONOID_TREE)

static const tally_op minmax[] = {TALLY_MIN, TALLY_MAX, 0};
static const tally_op describe[] = {TALLY_COUNT,  TALLY_NANS, TALLY_MIN,  TALLY_MAX, TALLY_ARGMIN,
                                    TALLY_ARGMAX, TALLY_SUM,  TALLY_MEAN, TALLY_STD, 0};

static const struct row {
    const char *name;
    unsigned of_floats, of_integers; /* the monoids that are needed */
    unsigned extremes;
    enum result result;
    int choice;
    const tally_op *list; /* the operators that it stands for, then 0; NULL: itself */
} rows[] = {
    /*                                floats         integers       extremes */
    [TALLY_SUM] = {"sum", SUM, SUM, 0, WIDE, ANY_FLOAT, NULL},
    [TALLY_PROD] = {"prod", TREE, FACTORS, 0, WIDE, NO_CHOICE, NULL},
    [TALLY_MIN] = {"min", EXTREMES, EXTREMES, WANT_LEAST, OWN, NO_CHOICE, NULL},
    [TALLY_MAX] = {"max", EXTREMES, EXTREMES, WANT_GREATEST, OWN, NO_CHOICE, NULL},
    [TALLY_AND] = {"and", BITS, BITS, 0, OWN, NO_CHOICE, NULL},
    [TALLY_OR] = {"or", BITS, BITS, 0, OWN, NO_CHOICE, NULL},
    [TALLY_XOR] = {"xor", BITS, BITS, 0, OWN, NO_CHOICE, NULL},
    [TALLY_MEAN] = {"mean", SUM, SUM, 0, REAL, ANY_FLOAT, NULL},
    [TALLY_VAR] = {"var", SUM | SQUARES, SUM | SQUARES, 0, REAL, ANY_FLOAT, NULL},
    [TALLY_STD] = {"std", SUM | SQUARES, SUM | SQUARES, 0, REAL, ANY_FLOAT, NULL},
    [TALLY_NORM1] = {"norm1", MAGNITUDES, MAGNITUDES, 0, WIDE, ANY_FLOAT, NULL},
    [TALLY_NORM2] = {"norm2", SQUARES, SQUARES, 0, REAL, ANY_FLOAT, NULL},
    [TALLY_NORMINF] = {"norminf", EXTREMES, EXTREMES, WANT_LEAST | WANT_GREATEST, WIDE, NO_CHOICE,
                       NULL},
    [TALLY_SUMSQ] = {"sumsq", SQUARES, SQUARES, 0, WIDE, ANY_FLOAT, NULL},
    [TALLY_DOT] = {"dot", PRODUCTS, PRODUCTS, 0, WIDE, ANY_FLOAT, NULL},
    [TALLY_ARGMIN] = {"argmin", EXTREMES, EXTREMES, WANT_LEAST | WANT_INDEX, INDEX, NO_CHOICE,
                      NULL},
    [TALLY_ARGMAX] = {"argmax", EXTREMES, EXTREMES, WANT_GREATEST | WANT_INDEX, INDEX, NO_CHOICE,
                      NULL},
    [TALLY_MINMAX] = {"minmax", 0, 0, 0, OWN, NO_CHOICE, minmax},
    [TALLY_COUNT] = {"count", 0, 0, 0, INDEX, NO_CHOICE, NULL},
    [TALLY_NANS] = {"nans", SUM, 0, 0, INDEX, NO_CHOICE, NULL},
    [TALLY_NONZERO] = {"nonzero", NONZERO, NONZERO, 0, INDEX, NO_CHOICE, NULL},
    [TALLY_ANY] = {"any", NONZERO, NONZERO, 0, FLAG, NO_CHOICE, NULL},
    [TALLY_ALL] = {"all", NONZERO, NONZERO, 0, FLAG, NO_CHOICE, NULL},
    [TALLY_DESCRIBE] = {"describe", 0, 0, 0, OWN, NO_CHOICE, describe},
    [TALLY_USER] = {"user", TREE, TREE, 0, OWN, NO_CHOICE, NULL},
};
#define ROWS (sizeof rows / sizeof rows[0])
_Static_assert(ROWS == TALLY_USER + 1, "a row for every operator");

static int known(tally_op op) {
    return (size_t)op >= 1 && (size_t)op < ROWS;
}

const char *tally_op_name(tally_op op) {
    return known(op) ? rows[op].name : NULL;
}

tally_status tally_op_parse(const char *name, tally_op *out) {
    if (!name || !out) return fail(TALLY_EINVAL, "tally_op_parse: an argument is NULL");
    for (size_t o = 1; o < TALLY_USER; o++) /* a user's operator has no name */
        if (strcmp(name, rows[o].name) == 0) {
            *out = (tally_op)o;
            return TALLY_OK;
        }
#define NAME(NAME, name, family) #name " "
#define STATISTIC(NAME, name)    #name " "
    return fail(TALLY_EINVAL, "'%.40s' is no operator; the operators are %.*s", name,
                (int)(sizeof TALLY_OPS(NAME) TALLY_STATISTICS(STATISTIC) - 2),
                TALLY_OPS(NAME) TALLY_STATISTICS(STATISTIC));
#undef NAME
#undef STATISTIC
}

static tally_type natural_type(enum result result, tally_type type) {
    switch (result) {
    case WIDE:
        return type_is_float(type) ? type : type_wide(type);
    case REAL:
        return type_is_float(type) ? type : TALLY_F64;
    case INDEX:
        return TALLY_U64;
    case FLAG:
        return TALLY_U8;
    case OWN:
        break;
    }
    return type;
}

/* Returns whether the operator's value is lowered from the fast sum. */
static int is_fast(const struct problem *p, tally_op op) {
    return p->fast && type_is_float(p->type) && (op == TALLY_SUM || op == TALLY_MEAN);
}

/* Returns whether a value of the operator can have the type `wanted`. */
static int may_be(const struct problem *p, tally_op op, tally_type wanted) {
    if (rows[op].choice != ANY_FLOAT || !type_is_float(wanted)) return 0;
    return is_fast(p, op) ? wanted == TALLY_F64 : 1;
}

/* Adds the value of one operator to the plan. Sets *chosen if the value takes the type `wanted`, which is 0 if the
 * caller asks for none. */
static tally_status add_value(struct problem *p, tally_op op, tally_type wanted, int *chosen) {
    const struct row *row = &rows[op];
    const tally_type natural = natural_type(row->result, p->type);
    const unsigned monoids = type_is_float(p->type) ? row->of_floats : row->of_integers;
    const unsigned i = p->values;
    if (i == TALLY_VALUES_MAX)
        return fail(TALLY_EINVAL, "a problem has %d values at most", TALLY_VALUES_MAX);
    if (op == TALLY_AND || op == TALLY_OR || op == TALLY_XOR) {
        if (p->bits_op && p->bits_op != op)
            return fail(TALLY_ETYPE, "%s and %s do not go into one problem",
                        tally_op_name(p->bits_op), row->name);
        p->bits_op = op;
    }
    p->value[i].op = op;
    p->value[i].type = natural;
    if (wanted && (wanted == natural || may_be(p, op, wanted))) {
        p->value[i].type = wanted;
        *chosen = 1;
    }
    if (p->is_complex && (!type_is_float(p->type) || (op != TALLY_VAR && op != TALLY_STD)))
        return fail(TALLY_ETYPE, "of complex numbers there are var and std of floats, not %s of %s",
                    row->name, tally_type_name(p->type));
    p->monoids |= is_fast(p, op) ? MONOID_BIT(MONOID_FAST) : monoids;
    if (p->is_complex) p->monoids |= PRODUCTS | MAGNITUDES;
    p->extremes |= row->extremes;
    p->values++;
    return TALLY_OK;
}

static tally_status add_op(struct problem *p, tally_op op, tally_type wanted, int *chosen) {
    if (!known(op)) return fail(TALLY_EINVAL, "%d is no operator", (int)op);
    if (!rows[op].list) return add_value(p, op, wanted, chosen);
    tally_status s = TALLY_OK;
    for (const tally_op *each = rows[op].list; *each && s == TALLY_OK; each++)
        s = add_value(p, *each, wanted, chosen);
    return s;
}

static tally_status check_user(const tally_problem *asked, const struct problem *p) {
    const int uses = problem_asks(p, TALLY_USER);
    if (uses && (!asked->user || !asked->user->combine || !asked->user->identity))
        return fail(TALLY_EINVAL, "a user operator needs a combine function and an identity");
    if (!uses && asked->user)
        return fail(TALLY_EINVAL, "the problem brings an operator of its own, but does not ask for "
                                  "TALLY_USER");
    if (uses && type_is_float(p->type) && problem_asks(p, TALLY_PROD))
        return fail(TALLY_ETYPE,
                    "a user operator and a product of floats do not go into one problem");
    return TALLY_OK;
}

/* Returns whether ddof is finite and not negative. It looks at the bits: the caller's floating
 * environment is still in force, where a comparison could raise flags, or trap, or take a subnormal
 * for 0. */
static int is_ddof(double ddof) {
    uint64_t bits;
    memcpy(&bits, &ddof, sizeof bits);
    return bits < UINT64_C(0x7ff) << 52 || bits == UINT64_C(1) << 63;
}

static tally_status bad_ddof(double ddof) {
    tally_value value = {.type = TALLY_F64};
    char text[32];
    memcpy(&value.as.f64, &ddof, sizeof ddof);
    tally_value_print(&value, text, sizeof text);
    return fail(TALLY_EINVAL, "ddof is %s; it is a finite number from 0 up", text);
}

/* Returns an error if one of the fields is invalid, whatever the others are. */
static tally_status check_words(const tally_problem *asked) {
    if (!asked) return fail(TALLY_EINVAL, "the problem is NULL");
    if (!known(asked->op)) return fail(TALLY_EINVAL, "%d is no operator", (int)asked->op);
    if (!type_is_known(asked->type))
        return fail(TALLY_ETYPE, "%d is no element type", (int)asked->type);
    if (asked->out && !type_is_known(asked->out))
        return fail(TALLY_ETYPE, "%d is no result type", (int)asked->out);
    if (!is_ddof(asked->ddof)) return bad_ddof(asked->ddof);
    return TALLY_OK;
}

tally_status problem_plan(const tally_problem *asked, struct problem *out) {
    int chosen = 0;
    tally_status s = check_words(asked);
    if (s != TALLY_OK) return s;
    out->type = asked->type;
    out->fast = asked->fast != 0;
    out->skip_nan = asked->skip_nan && type_is_float(asked->type);
    out->ddof = asked->ddof;
    out->about = 0;
    memcpy(out->mean, asked->mean, sizeof out->mean);
    out->is_complex = asked->is_complex != 0;
    out->bits_op = 0;
    out->user = asked->user;
    out->value[0].type = asked->type;
    out->monoids = out->extremes = out->values = 0;
    s = add_op(out, asked->op, asked->out, &chosen);
    for (size_t i = 0; i < ALSO_MAX && asked->also[i] && s == TALLY_OK; i++)
        s = add_op(out, asked->also[i], asked->out, &chosen);
    if (s == TALLY_OK && asked->about) problem_about(out);
    if (s == TALLY_OK && (asked->user || problem_has(out, MONOID_TREE))) s = check_user(asked, out);
    if (s == TALLY_OK && asked->out && !chosen)
        s = fail(TALLY_ETYPE, "%s of %s comes back as %s, not as %s", tally_op_name(asked->op),
                 tally_type_name(out->type), tally_type_name(out->value[0].type),
                 tally_type_name(asked->out));
    return s;
}

void problem_about(struct problem *p) {
    p->about = problem_asks(p, TALLY_VAR) || problem_asks(p, TALLY_STD);
}

int problem_asks(const struct problem *p, tally_op op) {
    for (unsigned i = 0; i < p->values; i++)
        if (p->value[i].op == op) return 1;
    return 0;
}

tally_status tally_problem_values(const tally_problem *problem, size_t *count) {
    struct problem p;
    if (!count) return fail(TALLY_EINVAL, "tally_problem_values: count is NULL");
    tally_status s = problem_plan(problem, &p);
    if (s == TALLY_OK) *count = p.values;
    return s;
}

tally_op tally_problem_value_op(const tally_problem *problem, size_t i) {
    struct problem p;
    return problem_plan(problem, &p) == TALLY_OK && i < p.values ? p.value[i].op : 0;
}

#if defined(TALLY_DEBUG)
static void combine_nothing(void *context, const void *left, const void *right, void *out,
                            size_t count) {
    (void)context, (void)left, (void)right, (void)out, (void)count;
}

const char *problem_path(unsigned op, unsigned type, struct problem *out) {
    static const uint64_t nothing;
    static const tally_operator user = {combine_nothing, NULL, &nothing, 1, "a"};
    const tally_problem asked = {
        .op = (tally_op)op, .type = (tally_type)type, .user = op == TALLY_USER ? &user : NULL};
    if (problem_plan(&asked, out) != TALLY_OK) return "there is no such problem";
    return out->values == 1 && out->value[0].op == asked.op
               ? NULL
               : "a problem has the operators that it stands for";
}
#endif

tally_type tally_problem_value_type(const tally_problem *problem, size_t i) {
    struct problem p;
    if (problem_plan(problem, &p) != TALLY_OK || i >= p.values) return 0;
    return p.value[i].type;
}
