/* capability.c - see capability.h. */
#include "gpu/capability.h"

#include "base/types.h"
#include "gpu/strategy.h"
#include "gpu/tuning.h"
#include "kernels/groups.h"
#include "kernels/tuning.h"

#include "kernels/column_values.h"

/* ---- The table ---------------------------------------------------------------------------- */

#define TYPE(name) (1u << TALLY_##name)
#define FLOATS     (TYPE(F16) | TYPE(BF16) | TYPE(F32) | TYPE(F64))
#define HALVES     (TYPE(F16) | TYPE(BF16))
#define SIGNED     (TYPE(I8) | TYPE(I16) | TYPE(I32) | TYPE(I64))
#define UNSIGNED   (TYPE(U8) | TYPE(U16) | TYPE(U32) | TYPE(U64))
#define BYTES      (TYPE(I8) | TYPE(U8))
#define LONG       (TYPE(F64) | TYPE(I64) | TYPE(U64))
#define INTEGERS   (SIGNED | UNSIGNED)
#define ALL        (FLOATS | INTEGERS)

#define OP(name)     (1u << TALLY_##name)
#define ENDS         (OP(MIN) | OP(MAX))
#define INDICES      (OP(ARGMIN) | OP(ARGMAX))
#define MOMENTS      (OP(SUM) | OP(MEAN) | OP(SUMSQ) | OP(NORM2) | OP(VAR) | OP(STD))
#define COUNTS       (OP(COUNT) | OP(NONZERO) | OP(ANY) | OP(ALL))
#define ONE          (1u << 1) /* results of problem_ends() */
#define BOTH         (1u << 2)
#define ONE_INDEX    (ONE << WANT_INDEX)
#define BOTH_INDICES (BOTH << WANT_INDEX)

#define HAS(monoid)                    MONOID_BIT(MONOID_##monoid)
#define DEFINES(n, ...)                .count = (n), .define = {__VA_ARGS__}
#define ROW(of, elements, kernel_file) .monoids = (of), .types = (elements), .file = (kernel_file)
#define PROGRAM(of, ends, elements, operators, types_of_values, most)                              \
    .monoids = (of), .extremes = (ends), .types = (elements), .ops = (operators),                  \
    .give = (types_of_values), .values = (most)

/* The search takes the first row that fits, so rows for several monoids come before those for one of them. */
static const struct capability whole[] = {
    {ROW(HAS(SUM) | HAS(SQUARES), FLOATS & ~TYPE(F64), "moments.cu"), DEFINES(1, "OP_SUM"),
     .doubles = FLOATS, .blocks = GPU_PRODUCT_BLOCKS_A_UNIT, .tiles = GPU_MOMENTS_TILES_A_BLOCK},
    {ROW(HAS(SUM) | HAS(SQUARES), TYPE(F64), "double_moments.cu"), DEFINES(1, "OP_SUM"),
     .doubles = FLOATS, .warps = true, .blocks = GPU_PRODUCT_BLOCKS_A_UNIT,
     .tiles = GPU_MOMENTS_TILES_A_BLOCK},
    {ROW(HAS(SUM) | HAS(SQUARES), BYTES, "integer_moments.cu"), DEFINES(1, "OP_SUM"),
     .blocks = GPU_SUM_BLOCKS_A_UNIT},
    {ROW(HAS(SUM) | HAS(SQUARES), INTEGERS, "integer_moments.cu"), DEFINES(1, "OP_SUM"),
     .blocks = GPU_BLOCKS_A_UNIT},
    {ROW(HAS(SUM), FLOATS, "sum.cu"), DEFINES(1, "OP_SUM"), .doubles = TYPE(F64),
     .blocks = GPU_SUM_BLOCKS_A_UNIT, .tiles = GPU_TILES_A_BLOCK, .alone = true},
    {ROW(HAS(SQUARES), FLOATS, "sum.cu"), DEFINES(2, "LIFT_SQUARE", "OP_SUM"),
     .doubles = FLOATS & ~TYPE(F16), .in_floats = {0, HALVES | TYPE(F32)},
     .blocks = GPU_PRODUCT_BLOCKS_A_UNIT, .tiles = GPU_TILES_A_BLOCK, .alone = true},
    /* Products are doubles (kernels/lift.h), but for those of two f16, which are floats. */
    {ROW(HAS(PRODUCTS), TYPE(F16), "sum.cu"), DEFINES(2, "LIFT_PRODUCT", "OP_SUM"),
     .blocks = GPU_SUM_BLOCKS_A_UNIT, .tiles = GPU_TILES_A_BLOCK, .alone = true},
    {ROW(HAS(PRODUCTS), FLOATS, "sum.cu"), DEFINES(2, "LIFT_PRODUCT", "OP_SUM"), .doubles = FLOATS,
     .blocks = GPU_PRODUCT_BLOCKS_A_UNIT, .tiles = GPU_TILES_A_BLOCK, .alone = true},
    {ROW(HAS(MAGNITUDES), FLOATS, "sum.cu"), .real = true, DEFINES(2, "LIFT_MAGNITUDE", "OP_SUM"),
     .doubles = TYPE(F64), .blocks = GPU_SUM_BLOCKS_A_UNIT, .tiles = GPU_TILES_A_BLOCK,
     .alone = true},
    /* The sum of imaginary parts. */
    {ROW(HAS(MAGNITUDES), FLOATS, "sum.cu"), .imaginary = true, DEFINES(1, "OP_SUM"),
     .doubles = TYPE(F64), .blocks = GPU_SUM_BLOCKS_A_UNIT, .tiles = GPU_TILES_A_BLOCK,
     .alone = true},
    {ROW(HAS(SUM), INTEGERS, "integer_sum.cu"), DEFINES(1, "OP_SUM"), .blocks = GPU_BLOCKS_A_UNIT,
     .alone = true},
    {ROW(HAS(SQUARES), INTEGERS, "integer_sum.cu"), DEFINES(2, "LIFT_SQUARE", "OP_SUM"),
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(PRODUCTS), INTEGERS, "integer_sum.cu"), DEFINES(2, "LIFT_PRODUCT", "OP_SUM"),
     .blocks = GPU_BLOCKS_A_UNIT},
    {ROW(HAS(MAGNITUDES), SIGNED, "integer_sum.cu"), DEFINES(2, "LIFT_MAGNITUDE", "OP_SUM"),
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(MAGNITUDES), UNSIGNED, "integer_sum.cu"), DEFINES(1, "OP_SUM"),
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(FAST), FLOATS, "fast_sum.cu"), DEFINES(1, "OP_SUM"), .doubles = TYPE(F64),
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(FACTORS), INTEGERS, "integer_product.cu"), DEFINES(1, "OP_PROD"),
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(EXTREMES), ALL, "order.cu"), .extremes = ONE | BOTH, DEFINES(1, "OP_MIN"),
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(EXTREMES), ALL, "order.cu"), .extremes = ONE_INDEX | BOTH_INDICES,
     DEFINES(2, "INDEXED", "OP_MIN"), .blocks = GPU_BLOCKS_A_UNIT},
    {ROW(HAS(BITS), ALL, "bits.cu"), .ops = OP(AND), DEFINES(1, "OP_AND"), .by_size = ALL,
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(BITS), ALL, "bits.cu"), .ops = OP(OR), DEFINES(1, "OP_OR"), .by_size = ALL,
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(BITS), ALL, "bits.cu"), .ops = OP(XOR), DEFINES(1, "OP_XOR"), .by_size = ALL,
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    {ROW(HAS(NONZERO), ALL, "nonzero.cu"), DEFINES(1, "OP_OR"), .by_size = INTEGERS,
     .blocks = GPU_BLOCKS_A_UNIT, .alone = true},
    /* programs.c adds the define OP_..., which depends on the operator. */
    {ROW(HAS(TREE), ALL, "tree.cu"), .doubles = TYPE(F64), .blocks = GPU_BLOCKS_A_UNIT},
};

static const struct capability rows[] = {
    {PROGRAM(HAS(SUM), 0, FLOATS, OP(SUM) | OP(MEAN), GIVES_OWN, 1), DEFINES(1, "OP_SUM"),
     .in_floats = {0, HALVES | TYPE(F32)}, .again = HALVES | TYPE(F32)},
    {PROGRAM(HAS(SUM), 0, INTEGERS & ~BYTES, OP(SUM) | OP(MEAN), GIVES_INTEGER, 1),
     DEFINES(1, "OP_SUM")},
    {PROGRAM(HAS(MAGNITUDES), 0, FLOATS, OP(NORM1), GIVES_OWN, 1),
     DEFINES(2, "LIFT_MAGNITUDE", "OP_SUM"), .in_floats = {0, HALVES | TYPE(F32)},
     .again = HALVES | TYPE(F32)},
    {PROGRAM(HAS(SQUARES), 0, FLOATS, OP(SUMSQ) | OP(NORM2), GIVES_OWN, 2),
     DEFINES(2, "LIFT_SQUARE", "OP_SUM"), .in_floats = {0, HALVES | TYPE(F32)}},
    {PROGRAM(HAS(SUM) | HAS(SQUARES), 0, FLOATS, MOMENTS, GIVES_OWN, 4),
     DEFINES(2, "LIFT_MOMENTS", "OP_SUM")},
    {PROGRAM(HAS(FAST), 0, FLOATS, OP(SUM), GIVES_OWN, 1), DEFINES(2, "FAST", "OP_SUM"),
     .certain = true},
    {PROGRAM(HAS(EXTREMES), ONE | BOTH, ALL & ~BYTES, ENDS | OP(NORMINF), GIVES_OWN, 2),
     DEFINES(1, "OP_MIN"), .certain = true},
    {PROGRAM(HAS(EXTREMES), ONE_INDEX, ALL & ~BYTES, OP(ARGMIN), GIVES_ANY, 1),
     DEFINES(2, "INDEXED", "OP_MIN"), .certain = true},
    {PROGRAM(HAS(EXTREMES), ONE_INDEX, ALL & ~BYTES, OP(ARGMAX), GIVES_ANY, 1),
     DEFINES(2, "INDEXED", "OP_MAX"), .certain = true},
};

/* Columns and vectors. */
static const struct capability columns[] = {
    {PROGRAM(HAS(SUM), 0, ALL, OP(SUM) | OP(MEAN), GIVES_ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_SUM", "OP_SUM"), .in_floats = {0, HALVES | TYPE(F32)},
     .again = HALVES | TYPE(F32), .words = 3, .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(HAS(SUM) | HAS(SQUARES), 0, FLOATS, MOMENTS, GIVES_ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_MOMENTS", "OP_SUM"), .words = 5, .blocks = GPU_PRODUCT_BLOCKS_A_UNIT},
    /* For roots only: they hardly ever lie half way between two floats, where Ziv's test would fail. A sum of squares
     * itself often does. */
    {PROGRAM(HAS(SQUARES), 0, HALVES | TYPE(F32), OP(NORM2), GIVES_OWN, 1),
     DEFINES(2, "FOLD_SQUARES", "OP_SUM"), .in_floats = {0, HALVES | TYPE(F32)}, .is_near = true,
     .words = 4, .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(HAS(SQUARES), 0, HALVES, OP(SUMSQ) | OP(NORM2), GIVES_ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_SQUARES", "OP_SUM"), .in_floats = {HALVES, HALVES}, .words = 4,
     .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(HAS(SQUARES), 0, FLOATS, OP(SUMSQ) | OP(NORM2), GIVES_ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_SQUARES", "OP_SUM"), .in_floats = {0, TYPE(F32)}, .words = 4,
     .blocks = GPU_PRODUCT_BLOCKS_A_UNIT},
    {PROGRAM(HAS(FAST), 0, FLOATS, OP(SUM) | OP(MEAN), GIVES_ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_FAST", "OP_SUM"), .certain = true, .words = 1,
     .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(HAS(EXTREMES), ONE, ALL, ENDS, GIVES_ANY, COLUMNS_VALUES), .by_size = INTEGERS,
     DEFINES(2, "FOLD_END", "OP_MIN"), .certain = true, .words = 1, .blocks = GPU_BLOCKS_A_UNIT},
    {PROGRAM(HAS(EXTREMES), BOTH, ALL, ENDS | OP(NORMINF), GIVES_ANY, COLUMNS_VALUES),
     .by_size = INTEGERS, DEFINES(2, "FOLD_ENDS", "OP_MIN"), .certain = true, .words = 2,
     .blocks = GPU_BLOCKS_A_UNIT},
    {PROGRAM(HAS(EXTREMES), ONE_INDEX, ALL, ENDS | INDICES, GIVES_ANY, COLUMNS_VALUES),
     .by_size = INTEGERS, DEFINES(3, "FOLD_END", "INDEXED", "OP_MIN"), .certain = true, .words = 2,
     .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
};

/* Groups in any order. */
static const struct capability groups[] = {
    {PROGRAM(HAS(SUM), 0, FLOATS, OP(SUM) | OP(MEAN), GIVES_ANY, GROUPS_VALUES),
     .file = "groups.cu", DEFINES(1, "OP_SUM"), .cell = 4},
    {PROGRAM(HAS(SUM), 0, INTEGERS, OP(SUM), GIVES_ANY, GROUPS_VALUES), .file = "groups.cu",
     DEFINES(1, "OP_SUM"), .cell = 4},
    {PROGRAM(HAS(EXTREMES), ONE, ALL, ENDS, GIVES_ANY, GROUPS_VALUES), .by_size = INTEGERS,
     DEFINES(2, "FOLD_END", "OP_MIN"), .words = 1},
    {PROGRAM(HAS(EXTREMES), BOTH, ALL, ENDS, GIVES_ANY, GROUPS_VALUES), .by_size = INTEGERS,
     DEFINES(2, "FOLD_ENDS", "OP_MIN"), .words = 2},
    {PROGRAM(HAS(EXTREMES), ONE_INDEX, ALL & ~LONG, ENDS | INDICES, GIVES_ANY, GROUPS_VALUES),
     .by_size = INTEGERS, DEFINES(3, "FOLD_END", "INDEXED", "OP_MIN"), .words = 1, .cell = 8},
    {PROGRAM(HAS(EXTREMES), ONE_INDEX, LONG, ENDS | INDICES, GIVES_ANY, GROUPS_VALUES),
     .by_size = INTEGERS, DEFINES(3, "FOLD_END", "INDEXED", "OP_MIN"), .words = 2, .cell = 8,
     .twice = true},
    {PROGRAM(HAS(NONZERO), 0, ALL, COUNTS, GIVES_ANY, GROUPS_VALUES), .by_size = INTEGERS,
     DEFINES(2, "FOLD_COUNT", "OP_MIN"), .words = 2, .cell = 4},
    {PROGRAM(0, 0, ALL, OP(COUNT), GIVES_ANY, GROUPS_VALUES), .by_size = INTEGERS,
     DEFINES(2, "FOLD_COUNT", "OP_MIN"), .words = 2, .cell = 4},
};

#define COUNT_OF(list) (sizeof(list) / sizeof *(list))
_Static_assert(COUNT_OF(whole) <= CAPABILITIES && COUNT_OF(rows) <= CAPABILITIES &&
                   COUNT_OF(columns) <= CAPABILITIES && COUNT_OF(groups) <= CAPABILITIES,
               "capability.h");

static const struct {
    const struct capability *row;
    size_t count;
    const char *file; /* of rows that name none */
} schedules[SCHEDULES] = {
    [BY_WHOLE] = {whole, COUNT_OF(whole), NULL},
    [BY_ROWS] = {rows, COUNT_OF(rows), "rows.cu"},
    [BY_COLUMNS] = {columns, COUNT_OF(columns), "columns.cu"},
    [BY_VECTORS] = {columns, COUNT_OF(columns), "vectors.cu"},
    [BY_GROUPS] = {groups, COUNT_OF(groups), "group_ends.cu"},
};

/* ---- Which row ---------------------------------------------------------------------------- */

static unsigned bit_of(tally_type type) {
    return 1u << type;
}

/* Returns whether the row takes the problem's elements, and its extremes. */
static bool takes(const struct capability *c, const struct problem *p) {
    if (!(c->types & bit_of(p->type)) || (p->is_complex ? c->real : c->imaginary)) return false;
    return !(c->monoids & MONOID_BIT(MONOID_EXTREMES)) || (c->extremes >> problem_ends(p) & 1);
}

static bool gives_value(const struct capability *c, const struct problem *p, unsigned v) {
    const tally_op op = p->value[v].op;
    const tally_type type = p->value[v].type;
    if (!(c->ops >> op & 1)) return false;
    if (op == TALLY_NORMINF && !type_is_float(p->type)) return false; /* its type is i64 or u64 */
    if (c->give == GIVES_OWN) return type == p->type;
    if (op == TALLY_SUM) return type_is_float(p->type) == type_is_float(type);
    return op != TALLY_MEAN || (c->give == GIVES_INTEGER ? type == TALLY_F64 : type_is_float(type));
}

const struct capability *capability_for(enum schedule schedule, const struct problem *p) {
    const struct capability *c = schedules[schedule].row;
    for (const struct capability *end = c + schedules[schedule].count; c < end; c++) {
        bool gives = p->values >= 1 && p->values <= c->values;
        if (c->monoids != p->monoids || !takes(c, p)) continue;
        for (unsigned v = 0; v < p->values && gives; v++)
            gives = gives_value(c, p, v);
        if (gives) return c;
    }
    return NULL;
}

/* Returns whether the device has what the row needs. Doubles are not asked of a row for a single monoid, as no other
 * row could replace it: program_build() then reports that they are missing. */
static bool is_possible(const struct capability *c, const struct problem *p,
                        const struct gpu_facts *facts, unsigned block) {
    const bool is_single = (c->monoids & (c->monoids - 1)) == 0;
    if (c->warps && CPU_SHAPED(block)) return false;
    return is_single || facts->doubles || !capability_needs_doubles(c, p);
}

unsigned capability_cover(const struct problem *p, const struct gpu_facts *facts, unsigned block,
                          const struct capability *out[MONOIDS]) {
    unsigned missing = p->monoids, count = 0;
    for (const struct capability *c = whole; c < whole + COUNT_OF(whole) && missing != 0; c++) {
        if ((c->monoids & ~missing) != 0 || !takes(c, p)) continue;
        if (c->ops && !(c->ops >> p->bits_op & 1)) continue;
        if (!is_possible(c, p, facts, block)) continue;
        out[count++] = c;
        missing &= ~c->monoids;
    }
    return count;
}

#define WARP 32

bool capability_adds_again(const struct capability *c, const struct queue *queue,
                           const struct shaped *s, size_t most) {
    const unsigned types = c->again & ~c->in_floats[queue->has_slow_doubles];
    return queue->facts->has_uniform_branches && queue->block % WARP == 0 && s->each <= most &&
           (types & bit_of(s->p->type)) != 0;
}

/* ---- Of a row ----------------------------------------------------------------------------- */

unsigned capability_number(enum schedule schedule, const struct capability *c) {
    return (unsigned)(c - schedules[schedule].row);
}

const char *capability_file(enum schedule schedule, const struct capability *c) {
    return c->file ? c->file : schedules[schedule].file;
}

tally_type capability_type(const struct capability *c, const struct problem *p) {
    static const tally_type by_size[] = {
        [1] = TALLY_U8, [2] = TALLY_U16, [4] = TALLY_U32, [8] = TALLY_U64};
    return c->by_size & bit_of(p->type) ? by_size[type_size(p->type)] : p->type;
}

bool capability_needs_doubles(const struct capability *c, const struct problem *p) {
    return (c->doubles & bit_of(p->type)) != 0;
}
