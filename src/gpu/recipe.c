/* recipe.c - see recipe.h. */
#include "gpu/recipe.h"

#include "base/status.h"
#include "base/types.h"
#include "gpu/source.h"
#include "kernels/request.h"
#include "kernels/tuning.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- The table ---------------------------------------------------------------------------- */

enum {
    SHORT_FLOATS = 1, /* all but f64 */
    DOUBLES = 2,
    SIGNED = 4,
    UNSIGNED = 8,
    FLOATS = SHORT_FLOATS | DOUBLES,
    INTEGERS = SIGNED | UNSIGNED,
    ALL_TYPES = FLOATS | INTEGERS
};

#define SUM        MONOID_BIT(MONOID_SUM)
#define SQUARES    MONOID_BIT(MONOID_SQUARES)
#define PRODUCTS   MONOID_BIT(MONOID_PRODUCTS)
#define MAGNITUDES MONOID_BIT(MONOID_MAGNITUDES)

/* The recipes. The search takes the first row that fits, so rows for several monoids come before
 * those for one of them. */
static const struct recipe recipes[] = {
    {SUM | SQUARES, SHORT_FLOATS, 0, 0, "moments.cu", NULL, "sum"},
    {SUM | SQUARES, DOUBLES, 0, 0, "double_moments.cu", NULL, "sum"},
    {SUM | SQUARES, INTEGERS, 0, 0, "integer_moments.cu", NULL, "sum"},
    {SUM, FLOATS, 0, 0, "sum.cu", NULL, "sum"},
    {SQUARES, FLOATS, 0, 0, "sum.cu", "LIFT_SQUARE", "sum"},
    {PRODUCTS, FLOATS, 0, 0, "sum.cu", "LIFT_PRODUCT", "sum"},
    {MAGNITUDES, FLOATS, 0, 0, "sum.cu", "LIFT_MAGNITUDE", "sum"},
    {MAGNITUDES, FLOATS, 0, 0, "sum.cu", NULL, "sum"}, /* of imaginary parts: their sum */
    {SUM, INTEGERS, 0, 0, "integer_sum.cu", NULL, "sum"},
    {SQUARES, INTEGERS, 0, 0, "integer_sum.cu", "LIFT_SQUARE", "sum"},
    {PRODUCTS, INTEGERS, 0, 0, "integer_sum.cu", "LIFT_PRODUCT", "sum"},
    {MAGNITUDES, SIGNED, 0, 0, "integer_sum.cu", "LIFT_MAGNITUDE", "sum"},
    {MAGNITUDES, UNSIGNED, 0, 0, "integer_sum.cu", NULL, "sum"},
    {MONOID_BIT(MONOID_FAST), FLOATS, 0, 0, "fast_sum.cu", NULL, "sum"},
    {MONOID_BIT(MONOID_FACTORS), INTEGERS, 0, 0, "integer_product.cu", NULL, "prod"},
    {MONOID_BIT(MONOID_EXTREMES), ALL_TYPES, 0, 0, "order.cu", NULL, "min"}, /* and max */
    {MONOID_BIT(MONOID_EXTREMES), ALL_TYPES, WANT_INDEX, 0, "order.cu", "INDEXED", "min"},
    {MONOID_BIT(MONOID_BITS), INTEGERS, 0, TALLY_AND, "bits.cu", NULL, "and"},
    {MONOID_BIT(MONOID_BITS), INTEGERS, 0, TALLY_OR, "bits.cu", NULL, "or"},
    {MONOID_BIT(MONOID_BITS), INTEGERS, 0, TALLY_XOR, "bits.cu", NULL, "xor"},
    {MONOID_BIT(MONOID_NONZERO), ALL_TYPES, 0, 0, "nonzero.cu", NULL, "or"},
    {MONOID_BIT(MONOID_TREE), ALL_TYPES, 0, 0, "tree.cu", NULL, NULL},
};
#define RECIPES (sizeof recipes / sizeof recipes[0])
_Static_assert(RECIPES <= RECIPES_MAX, "recipe.h");

static int kind_of(tally_type type) {
    if (type == TALLY_F64) return DOUBLES;
    return type_is_float(type) ? SHORT_FLOATS : type_is_signed(type) ? SIGNED : UNSIGNED;
}

static int fits(const struct recipe *r, const struct problem *p, unsigned monoids,
                const struct gpu_facts *facts, unsigned block) {
    const unsigned extremes = MONOID_BIT(MONOID_EXTREMES), bits = MONOID_BIT(MONOID_BITS);
    if ((r->monoids & ~monoids) != 0) return 0;
    if (r->monoids == (SUM | SQUARES) && type_is_float(p->type)) {
        /* They are computed with doubles; those of f64 also with lanes' sums, which a CPU's blocks lack. */
        if (!facts->doubles || (p->type == TALLY_F64 && CPU_SHAPED(block))) return 0;
    }
    if (r->monoids == MAGNITUDES && type_is_float(p->type) && (r->define == NULL) != p->is_complex)
        return 0;
    if (r->monoids & extremes && r->index != (p->extremes & WANT_INDEX)) return 0;
    if (r->monoids & bits) return r->bits == p->bits_op; /* of floats, too: by their size */
    return (r->types & kind_of(p->type)) != 0;
}

unsigned recipe_choose(const struct problem *p, const struct gpu_facts *facts, unsigned block,
                       const struct recipe *out[MONOIDS]) {
    unsigned monoids = p->monoids, count = 0;
    for (size_t i = 0; i < RECIPES && monoids != 0; i++)
        if (fits(&recipes[i], p, monoids, facts, block)) {
            out[count++] = &recipes[i];
            monoids &= ~recipes[i].monoids;
        }
    return count;
}

unsigned recipe_number(const struct recipe *r) {
    return (unsigned)(r - recipes);
}

int recipe_has_limbs(const struct recipe *r) {
    return !(r->types & INTEGERS) && (r->monoids & (SUM | SQUARES | PRODUCTS | MAGNITUDES)) != 0;
}

int recipe_has_alone(const struct recipe *r) {
    if (r->monoids == MONOID_BIT(MONOID_TREE) || r->monoids == (SUM | SQUARES) || r->index)
        return 0;
    return recipe_has_limbs(r) || r->monoids != PRODUCTS;
}

unsigned recipe_tiles_a_block(const struct recipe *r) {
    return r->monoids == (SUM | SQUARES) ? GPU_MOMENTS_TILES_A_BLOCK : GPU_TILES_A_BLOCK;
}

unsigned recipe_blocks_a_unit(const struct recipe *r, const struct problem *p) {
    if (!recipe_has_limbs(r)) {
        const bool both = r->monoids == (SUM | SQUARES);
        return both && type_size(p->type) == 1 ? GPU_SUM_BLOCKS_A_UNIT : GPU_BLOCKS_A_UNIT;
    }
    /* Products are computed with as doubles (kernels/lift.h), but for those of two f16. */
    const bool products =
        (r->monoids & SQUARES) || ((r->monoids & PRODUCTS) && p->type != TALLY_F16);
    return products ? GPU_PRODUCT_BLOCKS_A_UNIT : GPU_SUM_BLOCKS_A_UNIT;
}

/* ---- Compiling ---------------------------------------------------------------------------- */

#define DEFINES_MAX 6

struct defines {
    char text[DEFINES_MAX][24];
    const char *define[DEFINES_MAX];
    size_t count;
};

static void define(struct defines *d, const char *format, const char *name) {
    char *text = d->text[d->count], *at = text;
    snprintf(text, sizeof d->text[0], format, name);
    for (; *at && *at != '='; at++)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    d->define[d->count++] = text;
}

static void define_block(struct defines *d, unsigned block) {
    char text[12];
    if (block == GPU_BLOCK) return;
    snprintf(text, sizeof text, "%u", block);
    define(d, "BLOCK=%s", text);
}

/* Returns the element type as the kernel is to know it: where only its size counts, the unsigned
 * integer of that size. */
static const char *type_of(const struct problem *p, const struct recipe *r) {
    static const char *const words[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    const unsigned by_size = MONOID_BIT(MONOID_BITS) | MONOID_BIT(MONOID_NONZERO);
    if ((r->monoids & by_size && !type_is_float(p->type)) || r->monoids == MONOID_BIT(MONOID_BITS))
        return words[type_size(p->type)];
    return tally_type_name(p->type);
}

/* Lists the defines to compile with, in alphabetical order, as the table of compiled-in kernels has
 * them. */
static void find_defines(const struct problem *p, const struct recipe *r, unsigned block,
                         struct defines *d) {
    const int user = r->monoids == MONOID_BIT(MONOID_TREE) && p->user;
    const char *op = r->op;
    /* For a user's operator: something whose partial results are elements. */
    if (!op) op = !p->user ? "prod" : type_is_float(p->type) ? "sum" : "and";
    d->count = 0;
    define_block(d, block);
    if (r->define) define(d, "%s", r->define);
    define(d, "OP_%s", op);
    if (user && !p->user->commutative) define(d, "%s", "ORDERED");
    define(d, "TYPE_%s", type_of(p, r));
    if (user) define(d, "%s", "USER_OPERATOR");
}

/* Returns whether the kernel computes with doubles. */
static int needs_doubles(const struct problem *p, const struct recipe *r) {
    const unsigned by_bits =
        MONOID_BIT(MONOID_EXTREMES) | MONOID_BIT(MONOID_BITS) | MONOID_BIT(MONOID_NONZERO);
    if (r->monoids & (SQUARES | PRODUCTS) && type_is_float(p->type))
        return p->type != TALLY_F16 || r->monoids == (SUM | SQUARES);
    return p->type == TALLY_F64 && !(r->monoids & by_bits);
}

tally_status recipe_build(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                          const struct problem *p, const struct recipe *r,
                          struct gpu_program **out) {
    const struct gpu_facts *facts = api->facts(gpu);
    const int user = r->monoids == MONOID_BIT(MONOID_TREE) && p->user;
    struct defines d;
    char *prelude = NULL;
    tally_status s = TALLY_OK;
    if (needs_doubles(p, r) && !facts->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", facts->name);
    if (!facts->atomics64) return fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics", facts->name);
    if (user) s = source_check(p);
    if (s == TALLY_OK && user) s = source_prelude(p, &prelude);
    find_defines(p, r, block, &d);
    if (s == TALLY_OK) s = api->build(gpu, r->file, prelude, d.define, d.count, out);
    free(prelude);
    return s;
}

tally_status recipe_build_plain(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                                const char *file, struct gpu_program **out) {
    struct defines d = {.count = 0};
    define_block(&d, block);
    return api->build(gpu, file, NULL, d.define, d.count, out);
}

tally_status recipe_build_typed(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                                const char *file, const char *const *words, size_t count,
                                bool loose, tally_type type, struct gpu_program **out) {
    struct defines d = {.count = 0};
    define_block(&d, block);
    for (size_t i = 0; i < count; i++) {
        if (loose && i + 1 == count) define(&d, "%s", "LOOSE");
        define(&d, "%s", words[i]);
    }
    define(&d, "TYPE_%s", tally_type_name(type));
    return api->build(gpu, file, NULL, d.define, d.count, out);
}

/* ---- Values ------------------------------------------------------------------------------- */

static bool are_extremes(tally_op first, tally_op second, tally_op least, tally_op greatest) {
    return (first == least && second == greatest) || (first == greatest && second == least);
}

/* Returns whether the problem is for both extremes, or for where they are, and nothing else. */
static bool is_both(const struct problem *p) {
    const tally_op first = p->value[0].op, second = p->values == 2 ? p->value[1].op : first;
    return are_extremes(first, second, TALLY_MIN, TALLY_MAX) ||
           are_extremes(first, second, TALLY_ARGMIN, TALLY_ARGMAX);
}

int recipe_gives_values(const struct problem *p) {
    if (is_both(p)) return 1;
    if (p->values != 1) return 0;
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
        return 1;
    default:
        return 0;
    }
}

/* Returns the bits of a request that tell the value's type and, of a float, its mantissa's length
 * and exponent's bias. */
static uint32_t request_type(tally_type type) {
    switch (type) {
    case TALLY_F16:
        return REQUEST_FLOAT(TALLY_F16, 10, 15);
    case TALLY_BF16:
        return REQUEST_FLOAT(TALLY_BF16, 7, 127);
    case TALLY_F32:
        return REQUEST_FLOAT(TALLY_F32, 23, 127);
    case TALLY_F64:
        return REQUEST_FLOAT(TALLY_F64, 52, 1023);
    default:
        return (uint32_t)type;
    }
}

uint32_t recipe_request(const struct problem *p) {
    const tally_op op = p->value[0].op;
    return request_type(p->value[0].type) |
           (op == TALLY_MIN || op == TALLY_ARGMIN ? REQUEST_LEAST : 0) |
           (is_both(p) ? REQUEST_BOTH : 0) | (op == TALLY_ANY ? REQUEST_ANY : 0) |
           (op == TALLY_ALL ? REQUEST_ALL : 0);
}
