/* folds.c - see folds.h. */
#include "gpu/folds.h"

#include "base/status.h"
#include "base/types.h"
#include "gpu/filled.h"
#include "gpu/tuning.h"
#include "kernels/groups.h"
#include "kernels/tuning.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- The table ---------------------------------------------------------------------------- */

/* Types of elements. BY_SIZE: of integers their size is all that counts; SHORT: up to 32 bits; LONG: 64; WIDE: more than a
 * byte. */
enum {
    FLOATS = 1,
    INTEGERS = 2,
    ALL = FLOATS | INTEGERS,
    BY_SIZE = 4,
    SHORT = 8,
    LONG = 16,
    WIDE = 32
};

/* Types of values. ANY: sums have those of the elements' kind, means float types. OWN: the elements' type. WHOLE: sums have
 * integer types, means f64. */
enum { ANY, OWN, WHOLE };

#define OP(name)    (1u << TALLY_##name)
#define ENDS        (OP(MIN) | OP(MAX))
#define INDICES     (OP(ARGMIN) | OP(ARGMAX))
#define MOMENTS     (OP(SUM) | OP(MEAN) | OP(SUMSQ) | OP(NORM2) | OP(VAR) | OP(STD))
#define END(n)      (1u << (n)) /* a result of problem_ends() */
#define NO_END      END(0)
#define ONE_INDEX   END(1 | WANT_INDEX)
#define ROWS        (1u << BY_ROWS)
#define COLUMNS     (1u << BY_COLUMNS | 1u << BY_VECTORS)
#define GROUPS      (1u << BY_GROUPS)
#define HAS(monoid) MONOID_BIT(MONOID_##monoid)

#define DEFINES(n, ...) .count = (n), .define = {__VA_ARGS__}
#define PROGRAM(by, of, ends, elements, operators, types_of_values, most)                          \
    .schedules = (by), .monoids = (of), .extremes = (ends), .types = (elements),                   \
    .ops = (operators), .gives = (types_of_values), .values = (most)

static const struct fold folds[] = {
    /* Rows, of one or more values. */
    {PROGRAM(ROWS, HAS(SUM), NO_END, FLOATS, OP(SUM) | OP(MEAN), OWN, 1), DEFINES(1, "OP_SUM")},
    {PROGRAM(ROWS, HAS(SUM), NO_END, INTEGERS | WIDE, OP(SUM) | OP(MEAN), WHOLE, 1),
     DEFINES(1, "OP_SUM")},
    {PROGRAM(ROWS, HAS(MAGNITUDES), NO_END, FLOATS, OP(NORM1), OWN, 1),
     DEFINES(2, "LIFT_MAGNITUDE", "OP_SUM")},
    {PROGRAM(ROWS, HAS(SQUARES), NO_END, FLOATS, OP(SUMSQ) | OP(NORM2), OWN, 2),
     DEFINES(2, "LIFT_SQUARE", "OP_SUM")},
    {PROGRAM(ROWS, HAS(SUM) | HAS(SQUARES), NO_END, FLOATS, MOMENTS, OWN, 4),
     DEFINES(2, "LIFT_MOMENTS", "OP_SUM")},
    {PROGRAM(ROWS, HAS(FAST), NO_END, FLOATS, OP(SUM), OWN, 1), .certain = true,
     DEFINES(2, "FAST", "OP_SUM")},
    {PROGRAM(ROWS, HAS(EXTREMES), END(1) | END(2), ALL | WIDE, ENDS, OWN, 2), .certain = true,
     DEFINES(1, "OP_MIN")},
    {PROGRAM(ROWS, HAS(EXTREMES), ONE_INDEX, ALL | WIDE, OP(ARGMIN), ANY, 1), .certain = true,
     DEFINES(2, "INDEXED", "OP_MIN")},
    {PROGRAM(ROWS, HAS(EXTREMES), ONE_INDEX, ALL | WIDE, OP(ARGMAX), ANY, 1), .certain = true,
     DEFINES(2, "INDEXED", "OP_MAX")},
    /* Columns and vectors: words of a state, and blocks. */
    {PROGRAM(COLUMNS, HAS(SUM), NO_END, ALL, OP(SUM) | OP(MEAN), ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_SUM", "OP_SUM"), .words = 3, .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(COLUMNS, HAS(SUM) | HAS(SQUARES), NO_END, FLOATS, MOMENTS, ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_MOMENTS", "OP_SUM"), .words = 5, .blocks = GPU_PRODUCT_BLOCKS_A_UNIT},
    {PROGRAM(COLUMNS, HAS(SQUARES), NO_END, FLOATS, OP(SUMSQ) | OP(NORM2), ANY, COLUMNS_VALUES),
     DEFINES(2, "FOLD_SQUARES", "OP_SUM"), .words = 4, .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(COLUMNS, HAS(FAST), NO_END, FLOATS, OP(SUM) | OP(MEAN), ANY, COLUMNS_VALUES),
     .certain = true, DEFINES(2, "FOLD_FAST", "OP_SUM"), .words = 1,
     .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    {PROGRAM(COLUMNS, HAS(EXTREMES), END(1), ALL | BY_SIZE, ENDS, ANY, COLUMNS_VALUES),
     .certain = true, DEFINES(2, "FOLD_END", "OP_MIN"), .words = 1, .blocks = GPU_BLOCKS_A_UNIT},
    {PROGRAM(COLUMNS, HAS(EXTREMES), END(2), ALL | BY_SIZE, ENDS, ANY, COLUMNS_VALUES),
     .certain = true, DEFINES(2, "FOLD_ENDS", "OP_MIN"), .words = 2, .blocks = GPU_BLOCKS_A_UNIT},
    {PROGRAM(COLUMNS, HAS(EXTREMES), ONE_INDEX, ALL | BY_SIZE, ENDS | INDICES, ANY, COLUMNS_VALUES),
     .certain = true, DEFINES(3, "FOLD_END", "INDEXED", "OP_MIN"), .words = 2,
     .blocks = GPU_COLUMN_BLOCKS_A_UNIT},
    /* Groups in any order: words of a record, and the size of a cell. */
    {PROGRAM(GROUPS, HAS(SUM), NO_END, FLOATS, OP(SUM) | OP(MEAN), ANY, GROUPS_VALUES),
     .file = "groups.cu", DEFINES(1, "OP_SUM"), .cell = 4},
    {PROGRAM(GROUPS, HAS(SUM), NO_END, INTEGERS, OP(SUM), ANY, GROUPS_VALUES), .file = "groups.cu",
     DEFINES(1, "OP_SUM"), .cell = 4},
    {PROGRAM(GROUPS, HAS(EXTREMES), END(1), ALL | BY_SIZE, ENDS, ANY, GROUPS_VALUES),
     .file = "group_ends.cu", DEFINES(2, "FOLD_END", "OP_MIN"), .words = 1},
    {PROGRAM(GROUPS, HAS(EXTREMES), END(2), ALL | BY_SIZE, ENDS, ANY, GROUPS_VALUES),
     .file = "group_ends.cu", DEFINES(2, "FOLD_ENDS", "OP_MIN"), .words = 2},
    {PROGRAM(GROUPS, HAS(EXTREMES), ONE_INDEX, ALL | BY_SIZE | SHORT, ENDS | INDICES, ANY,
             GROUPS_VALUES),
     .file = "group_ends.cu", DEFINES(3, "FOLD_END", "INDEXED", "OP_MIN"), .words = 1, .cell = 8},
    {PROGRAM(GROUPS, HAS(EXTREMES), ONE_INDEX, ALL | BY_SIZE | LONG, ENDS | INDICES, ANY,
             GROUPS_VALUES),
     .file = "group_ends.cu", DEFINES(3, "FOLD_END", "INDEXED", "OP_MIN"), .words = 2, .cell = 8,
     .twice = true},
    {PROGRAM(GROUPS, HAS(NONZERO), NO_END, ALL | BY_SIZE,
             OP(COUNT) | OP(NONZERO) | OP(ANY) | OP(ALL), ANY, GROUPS_VALUES),
     .file = "group_ends.cu", DEFINES(2, "FOLD_COUNT", "OP_MIN"), .words = 2, .cell = 4},
    {PROGRAM(GROUPS, 0, NO_END, ALL | BY_SIZE, OP(COUNT), ANY, GROUPS_VALUES),
     .file = "group_ends.cu", DEFINES(2, "FOLD_COUNT", "OP_MIN"), .words = 2, .cell = 4},
};
#define FOLDS (sizeof folds / sizeof *folds)

/* ---- Which fold --------------------------------------------------------------------------- */

static bool is_for_type(const struct fold *f, tally_type type) {
    const size_t size = type_size(type);
    if (!(f->types & (type_is_float(type) ? FLOATS : INTEGERS))) return false;
    return !(f->types & (size > 4 ? SHORT : LONG)) && !(f->types & WIDE && size == 1);
}

static bool gives_value(const struct fold *f, const struct problem *p, unsigned v) {
    const tally_op op = p->value[v].op;
    const tally_type type = p->value[v].type;
    if (!(f->ops >> op & 1)) return false;
    if (f->gives == OWN) return type == p->type;
    if (op == TALLY_SUM) return type_is_float(p->type) == type_is_float(type);
    return op != TALLY_MEAN || (f->gives == WHOLE ? type == TALLY_F64 : type_is_float(type));
}

const struct fold *fold_for(enum schedule schedule, const struct problem *p) {
    for (const struct fold *f = folds; f < folds + FOLDS; f++) {
        bool gives = p->values >= 1 && p->values <= f->values;
        if (!(f->schedules >> schedule & 1) || f->monoids != p->monoids) continue;
        if (!(f->extremes >> problem_ends(p) & 1) || !is_for_type(f, p->type)) continue;
        for (unsigned v = 0; v < p->values && gives; v++)
            gives = gives_value(f, p, v);
        if (gives) return f;
    }
    return NULL;
}

tally_type fold_type(const struct fold *f, const struct problem *p) {
    static const tally_type by_size[] = {
        [1] = TALLY_U8, [2] = TALLY_U16, [4] = TALLY_U32, [8] = TALLY_U64};
    return f->types & BY_SIZE && !type_is_float(p->type) ? by_size[type_size(p->type)] : p->type;
}

unsigned fold_number(const struct fold *f) {
    return (unsigned)(f - folds);
}

/* ---- A queue's kernels -------------------------------------------------------------------- */

/* The kernels of a schedule's programs for one fold, by whether they are loose and by type. */
struct known_folds {
    struct gpu_kernel *kernel[SCHEDULES][FOLDS][2][TYPE_ROWS][FOLD_KERNELS];
};

tally_status fold_kernels(struct queue *queue, enum schedule schedule, const struct fold *f,
                          bool loose, tally_type type, const char *const *names, unsigned count,
                          struct gpu_kernel *const **out) {
    static const char *const files[SCHEDULES] = {
        [BY_ROWS] = "rows.cu", [BY_COLUMNS] = "columns.cu", [BY_VECTORS] = "vectors.cu"};
    struct gpu_kernel *found[FOLD_KERNELS] = {0};
    struct gpu_program *program = NULL;
    void **const cache = &queue->caches[CACHE_KERNELS];
    if (!*cache) *cache = calloc(1, sizeof(struct known_folds));
    if (!*cache) return fail(TALLY_ENOMEM, "no memory for a table of kernels");
    struct known_folds *const table = *cache;
    struct gpu_kernel **known = table->kernel[schedule][f - folds][loose][type];
    *out = known;
    if (known[0]) return TALLY_OK;
    tally_status s = recipe_build_typed(queue->api, queue->gpu, queue->block,
                                        f->file ? f->file : files[schedule], f->define, f->count,
                                        loose, type, &program);
    for (unsigned i = 0; i < count && s == TALLY_OK; i++)
        if (names[i]) s = queue->api->kernel(queue->gpu, program, names[i], &found[i]);
    if (s == TALLY_OK) memcpy(known, found, sizeof found);
    return s;
}

/* ---- Values of columns -------------------------------------------------------------------- */

/* Returns 1 / (n (n - ddof)), or 1 for n = 0; 0 if n or ddof is out of the usual range. */
static double variance_scale(uint64_t n, const struct lower_plan *lower) {
    const double count = (double)n, ddof = ldexp((double)lower->ddof, lower->exponent);
    const int is_far = lower->ddof != 0 && abs(lower->exponent) > 64;
    if (lower->ddof >> 53 != 0 || is_far || (n > 0 && !(ddof < count))) return 0;
    return n == 0 ? 1 : 1 / (count * (count - ddof));
}

void plan_column_values(const struct parts_run *run, uint64_t n, struct column_values *plan) {
    const struct parts_call *call = run->call;
    const struct lower_plan *lower = &run->plan.lower;
    const double scale = variance_scale(n, lower);
    memset(plan, 0, sizeof *plan);
    plan->count = call->values;
    memcpy(plan->value, lower->value, call->values * sizeof *plan->value);
    memcpy(plan->out, run->plan.out, call->values * sizeof *plan->out);
    plan->ddof = lower->ddof;
    plan->exponent = lower->exponent;
    memcpy(&plan->scale, &scale, sizeof scale);
    plan->flip = problem_flip(call->s->p);
    plan->filled = run->plan.filled;
    plan->neutral = call->s->filled ? filled_neutral(call->s->p) : 0;
}
