/* parts.c - see parts.h. */
#include "gpu/parts.h"

#include "base/status.h"
#include "base/types.h"
#include "exact/kernel_words.h"
#include "gpu/columns.h"
#include "gpu/filled.h"
#include "gpu/groups.h"
#include "gpu/record.h"
#include "gpu/rows.h"
#include "gpu/source.h"
#include "gpu/tuning.h"
#include "gpu/vectors.h"
#include "kernels/request.h"
#include "kernels/sort.h"
#include "kernels/tuning.h"
#include "problem/tree.h"

#include <string.h>

#define HEAD_WORDS     4
#define GROUPS_SORTED  ((uint64_t)UINT32_MAX) /* groups are fewer: kernels/sort.cu */
#define NODES_LOG      5                      /* part_nodes joins 2^5 values */
#define LOOKS_A_THREAD 16                     /* kernels/parts.cu */

_Static_assert(PARTS_HEAD <= HEAD_WORDS && PARTS_OUTCOME_BYTES <= 8 * PARTS_HEAD, "parts.h");
_Static_assert(PARTS_DIMS == TALLY_DIMS_MAX && PARTS_LEAF == TREE_LEAF, "kernels/parts.h");
_Static_assert((int)PARTS_AXES == (int)TALLY_AXES && (int)PARTS_SEGMENTS == (int)TALLY_SEGMENTS &&
                   (int)PARTS_GROUPS == (int)TALLY_GROUPS,
               "kernels/parts.h");

/* ---- Sizes -------------------------------------------------------------------------------- */

/* How a sort brings elements into an order, and where in the workspace, in words. */
struct order_layout {
    bool is_wanted;
    uint64_t n;             /* elements before the sort */
    unsigned passes, digit; /* of the sort, and bits of the digit of each */
    unsigned arrays;        /* that the sort carries along; 0: elements' numbers */
    bool wide;              /* numbers have 64 bits, not 32 */
    uint64_t workers;       /* which count digits: kernels/sort.cu */
    /* The sort leaves what it carries, by array, and the ids at [0]; before its last pass they are at [1]. */
    uint64_t carried[2][2], keys[2], counts, totals;
};

/* A reduction's layout of the workspace, in words unless the name says bytes. */
struct parts_layout {
    uint64_t n;                /* elements in all rows, at most */
    uint64_t piece, pieces;    /* of `fold`: a piece's weight, and how many there are */
    bool is_cut;               /* a row may begin in one piece and end in another */
    unsigned grid, sums;       /* of `fold`; words of the records of a row's sums */
    struct order_layout by_id; /* the elements of the axis, in the order of their groups */
    struct order_layout shown; /* the numbers of those that a mask shows, for the tree alone */
    bool
        aside; /* elements are copied side by side in that order: what follows finds sorted groups */
    bool starts_own; /* the work has offsets that say where groups begin */
    bool gathered;   /* the tree's elements are copied to the workspace, side by side */
    /* Each is the word of the workspace at which its array begins. */
    uint64_t edges, starts, tree_starts, copy, values;
    uint64_t slots;                  /* room for the values of so many leaves of trees */
    const struct strategy *strategy; /* NULL: `fold` does all rows */
    bool is_filled;                  /* the strategy is given a filled copy of the array */
    struct filled_layout filled;     /* where the filled copy is */
    bool alone;                      /* the strategy does all rows, and wants no order */
    bool marked;                     /* rows that it leaves are marked, a byte each */
    uint64_t left, own; /* where the workspace says which these are, and the strategy's own words */
    uint64_t flag; /* the last word behind `left`: the strategy's own, 0 or marked as rows are */
    size_t bytes;  /* of the workspace */
    struct area area;
};

static unsigned sum_words(const struct problem *p) {
    unsigned words = 0;
    for (unsigned monoid = 0; monoid <= MONOID_MAGNITUDES; monoid++)
        if (p->monoids & MONOID_BIT(monoid))
            words += (unsigned)record_words(p, (enum monoid_id)monoid);
    return words;
}

static const struct strategy quick;
static const struct strategy *choose(const struct queue *queue, const struct shaped *s);

static unsigned bits_for(uint64_t most) {
    unsigned bits = 0;
    while (bits < 64 && most >> bits != 0)
        bits++;
    return bits;
}

/* Returns whether blocks sort tiles (kernels/sort.cu), and not threads stretches. */
static bool sorts_tiles(const struct queue *queue) {
    return !CPU_SHAPED(queue->block) && queue->facts->has_uniform_branches;
}

/* Returns the grid that brings n elements into an order. */
static unsigned order_grid(const struct queue *queue, uint64_t n) {
    const unsigned units = queue->facts->units ? queue->facts->units : 1;
    const uint64_t tile = (uint64_t)queue->block * SORT_EACH(queue->block) * SORT_TILES_A_BLOCK;
    const uint64_t each = sorts_tiles(queue) ? tile : (uint64_t)queue->block * SORT_WORKER_LEAST;
    const uint64_t blocks = (n + each - 1) / each, most = (uint64_t)units * SORT_BLOCKS_A_UNIT;
    return blocks == 0 ? 1 : blocks < most ? (unsigned)blocks : (unsigned)most;
}

/* Returns the same groups after a sort: their elements lie side by side, in order. */
static struct shaped put_aside(const struct shaped *s) {
    struct shaped a = *s;
    a.sorted = 1;
    a.skip_outside = 0;
    a.mask = NULL;
    return a;
}

/* Returns whether groups need an order, unless a strategy takes them as they are. */
static bool are_mixed(const struct shaped *s) {
    return s->cut == TALLY_GROUPS && (!s->sorted || s->mask || s->skip_outside);
}

/* Returns whether the work says where the rows of the tree's elements begin: they are other ones than all rows', or
 * those of several vectors. */
static bool has_tree_starts(const struct shaped *s) {
    return problem_has(s->p, MONOID_TREE) &&
           ((s->mask && !parts_drop_hidden(s)) || (s->cut != TALLY_AXES && s->vectors > 1));
}

/* Returns whether the sort copies the elements. It does not for an index, which counts in the
 * caller's array, nor for vectors, which would be as many copies. */
static bool goes_aside(const struct shaped *s) {
    return are_mixed(s) && !(s->p->extremes & WANT_INDEX) && shape_is_flat(s);
}

/* Returns whether `fold` and `join` alone lower the problem's values: variances about a mean that is given, or of complex
 * numbers. */
static bool is_exact_only(const struct problem *p) {
    return p->about || p->is_complex;
}

/* Returns the strategy for the problem on a filled copy of the array, or NULL. The copy has the
 * shape *copy: its axes are in the order of memory or, if *in_order, of rows. */
static const struct strategy *strategy_for_filled(const struct queue *queue, const struct shaped *s,
                                                  struct shaped *copy, bool *in_order) {
    static const struct strategy *const ones[] = {&columns_strategy, &rows_strategy};
    for (int turn = 0; turn < 2; turn++) {
        *in_order = turn;
        if (is_exact_only(s->p) || !filled_shape(queue, s, *in_order, copy)) return NULL;
        for (unsigned i = 0; i < sizeof ones / sizeof *ones; i++)
            if (ones[i]->takes(queue, copy)) return ones[i];
    }
    return NULL;
}

/* Returns the strategy for the problem; on sorted elements if none takes them as they are. */
static const struct strategy *strategy_for(const struct queue *queue, const struct shaped *s) {
    const struct strategy *own = choose(queue, s);
    if ((own && own->unordered) || !goes_aside(s)) return own;
    const struct shaped aside = put_aside(s);
    return choose(queue, &aside);
}

/* Returns whether the sort by ids has to make the ids that it begins with. */
static bool makes_keys(const struct shaped *s) {
    return s->mask || !(s->ids_type == TALLY_I32 || s->ids_type == TALLY_U32);
}

/* Plans how o->n elements, of o->arrays arrays, are brought into an order by ids below `count`, and where in the
 * workspace. `brings_keys`: the caller's ids are those that the sort begins with. */
static void lay_out_order(const struct queue *queue, size_t count, size_t element, bool brings_keys,
                          struct order_layout *o, struct area *area) {
    const unsigned most = sorts_tiles(queue) ? SORT_TILE_BITS : SORT_THREAD_BITS(queue->block);
    const unsigned bits = count > 0 ? bits_for((uint64_t)count - 1) : 0;
    if (!o->is_wanted) return;
    o->passes = bits == 0 ? 1 : (bits + most - 1) / most;
    o->digit = (bits + o->passes - 1) / o->passes;
    o->wide = o->n >> 32 != 0;
    const uint64_t size = o->arrays == 0 ? (o->wide ? 8 : 4) : element;
    const uint64_t each = (o->n * size + 15) / 16 * 2; /* words; packs of 16 bytes are read */
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned a = 0; (a == 0 || a < o->arrays) && i < o->passes; a++)
            o->carried[a][i] = area_take_pairs(area, each);
        if (i == 0 ? o->passes == 1 : o->passes == 1 && brings_keys) continue;
        o->keys[i] = area_take_pairs(area, (o->n + 3) / 4 * 2);
    }
    o->workers = (uint64_t)order_grid(queue, o->n) * (sorts_tiles(queue) ? 1 : queue->block);
    o->totals = area_take(area, (uint64_t)1 << o->digit);
    o->counts = area_take(area, o->workers << o->digit);
}

/* Returns how many elements all rows have, at most. */
static uint64_t elements_of(const struct shaped *s) {
    return s->cut == TALLY_AXES ? (uint64_t)s->results * s->each : (uint64_t)s->n * s->vectors;
}

static void lay_out(const struct queue *queue, const struct shaped *s,
                    const struct strategy *strategy, struct parts_layout *l) {
    const struct problem *p = s->p;
    const bool tree = problem_has(p, MONOID_TREE);
    memset(l, 0, sizeof *l);
    l->n = elements_of(s);
    l->sums = sum_words(p);
    const uint64_t weight = s->results == 0 ? 0 : l->n + (uint64_t)s->results * PARTS_ROW_WEIGHT;
    const unsigned units = queue->facts->units ? queue->facts->units : 1;
    l->piece = weight / (units * FOLD_PIECES_A_UNIT) + 1;
    if (l->piece < FOLD_PIECE_LEAST) l->piece = FOLD_PIECE_LEAST;
    const uint64_t row = (uint64_t)s->each + PARTS_ROW_WEIGHT;
    if (s->cut == TALLY_AXES && row <= l->piece) l->piece = (l->piece + row - 1) / row * row;
    l->is_cut = s->cut != TALLY_AXES || l->piece % row != 0;
    l->pieces = (weight + l->piece - 1) / l->piece;
    l->grid = parts_grid(queue, l->pieces);
    struct shaped copy;
    bool in_order = false;
    l->strategy = strategy;
    const struct strategy *on_copy = l->strategy && l->strategy != &quick
                                         ? NULL
                                         : strategy_for_filled(queue, s, &copy, &in_order);
    l->is_filled = on_copy != NULL;
    if (l->is_filled) l->strategy = on_copy;
    l->alone = l->strategy && l->strategy->unordered;
    l->by_id.is_wanted = !l->alone && are_mixed(s);
    l->by_id.n = s->n;
    l->aside = l->by_id.is_wanted && goes_aside(s);
    l->by_id.arrays = !l->aside ? 0 : problem_has(p, MONOID_PRODUCTS) ? 2 : 1;
    l->shown.is_wanted = tree && s->mask && !parts_drop_hidden(s);
    l->shown.n = l->n;
    l->starts_own = s->cut == TALLY_GROUPS && !l->alone;
    l->gathered =
        tree && !l->aside && (l->by_id.is_wanted || l->shown.is_wanted || !parts_are_contiguous(s));
    struct area *area = &l->area;
    area_begin(area, queue->api);
    area_take(area, HEAD_WORDS);
    l->edges = area_take(area, l->alone ? 0 : 2 * l->pieces * (PARTS_WORDS + l->sums));
    lay_out_order(queue, s->count, type_size(p->type), !makes_keys(s), &l->by_id, area);
    lay_out_order(queue, 1, type_size(p->type), false, &l->shown, area);
    l->starts = area_take(area, l->starts_own ? s->count + 1 : 0);
    l->tree_starts = area_take(area, has_tree_starts(s) ? s->results + 1 : 0);
    l->copy = area_take_bytes(area, l->gathered ? l->n * type_size(p->type) : 0);
    if (l->is_filled) filled_lay_out(&copy, in_order, area, &l->filled);
    l->slots = l->n / TREE_LEAF + s->results;
    l->values = area_take(area, tree ? (l->slots + 1) * tree_value_size(p) / 8 + 1 : 0);
    l->marked =
        l->strategy && !l->alone && !problem_has(p, MONOID_FAST) && s->results <= MARKED_ROWS;
    const uint64_t left = l->strategy ? s->results / (l->marked ? 8 : 64) + 3 : 0;
    l->left = area_take(area, left);
    l->flag = l->left + left - 1;
    l->own = area_take(area, l->strategy && l->strategy->words
                                 ? l->strategy->words(queue, l->is_filled ? &copy : s)
                                 : 0);
    l->bytes = 8 * (size_t)area->end;
}

size_t parts_workspace(const struct queue *queue, const struct shaped *s) {
    struct parts_layout l;
    lay_out(queue, s, strategy_for(queue, s), &l);
    return l.bytes;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

static const char *const names[PARTS_KERNELS] = {"fold",   "join",   "check", "starts",
                                                 "gather", "report", "quick", "few"};
enum { FOLD, JOIN, CHECK, STARTS, GATHER, REPORT, QUICK, FEW };
static const char *const sort_names[SORT_KERNELS] = {"keys", "count", "scan", "scatter"};
enum { KEYS, COUNT, SCAN, SCATTER };

static tally_status find_parts(struct queue *queue) {
    struct gpu_program *program = NULL;
    if (queue->part[0]) return TALLY_OK;
    if (!queue->facts->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", queue->facts->name);
    if (!queue->facts->atomics64)
        return fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics", queue->facts->name);
    struct gpu_kernel *found[PARTS_KERNELS] = {0};
    tally_status s = recipe_build_plain(queue->api, queue->gpu, queue->block, "parts.cu", &program);
    for (unsigned i = 0; i < PARTS_KERNELS && s == TALLY_OK; i++)
        s = queue->api->kernel(queue->gpu, program, names[i], &found[i]);
    if (s == TALLY_OK) memcpy(queue->part, found, sizeof found);
    return s;
}

static tally_status find_sort(struct queue *queue) {
    struct gpu_program *program = NULL;
    struct gpu_kernel *found[SORT_KERNELS] = {0};
    if (queue->sort[0]) return TALLY_OK;
    tally_status s = recipe_build_plain(queue->api, queue->gpu, queue->block, "sort.cu", &program);
    for (unsigned i = 0; i < SORT_KERNELS && s == TALLY_OK; i++)
        s = queue->api->kernel(queue->gpu, program, sort_names[i], &found[i]);
    if (s == TALLY_OK) memcpy(queue->sort, found, sizeof found);
    return s;
}

bool parts_can_order(const struct shaped *s) {
    return s->cut != TALLY_GROUPS || s->sorted || s->count < GROUPS_SORTED;
}

static tally_status cannot_order(const struct shaped *s) {
    return fail(
        TALLY_EUNSUPPORTED,
        "%zu groups, where a device brings elements into the order of up to %llu: sort them by "
        "their ids, and promise it (shape.sorted)",
        s->count, (unsigned long long)GROUPS_SORTED - 1);
}

tally_status parts_prepare(struct queue *queue, const struct shaped *s) {
    struct shaped aside = put_aside(s);
    struct parts_layout l;
    struct kernels k;
    bool in_order;
    if (!parts_can_order(s)) return cannot_order(s);
    lay_out(queue, s, strategy_for(queue, s), &l);
    tally_status status = find_parts(queue);
    if (status == TALLY_OK && (l.by_id.is_wanted || l.shown.is_wanted)) status = find_sort(queue);
    if (status == TALLY_OK && problem_has(s->p, MONOID_TREE))
        status = queue_tree_kernels(queue, s->p, &k);
    if (status == TALLY_OK && l.is_filled) {
        strategy_for_filled(queue, s, &aside, &in_order);
        status = filled_prepare(queue);
    }
    if (status == TALLY_OK && l.strategy && l.strategy->prepare)
        status = l.strategy->prepare(queue, l.aside || l.is_filled ? &aside : s);
    return status;
}

/* ---- The plan ----------------------------------------------------------------------------- */

static struct part_extent extent_of(const struct extent *e) {
    return (struct part_extent){.length = e->length,
                                .number = e->number,
                                .x = e->x,
                                .y = e->y,
                                .mask = e->mask,
                                .out = e->out};
}

static void plan_values(const struct parts_call *c, const struct parts_layout *l,
                        struct parts_plan *plan) {
    const struct problem *p = c->s->p;
    struct lower_plan *lower = &plan->lower;
    static const uint32_t rest[MONOIDS] = {
        [MONOID_NONZERO] = 0, [MONOID_BITS] = 1,     [MONOID_FAST] = 2,
        [MONOID_FACTORS] = 3, [MONOID_EXTREMES] = 5, [MONOID_TREE] = 10};
    uint32_t at = 0;
    queue_lower_plan(p, lower);
    lower->indexed = 1;
    for (unsigned monoid = 0; monoid < MONOIDS; monoid++) {
        if (!(p->monoids & MONOID_BIT(monoid))) continue;
        lower->at[monoid] = monoid <= MONOID_MAGNITUDES ? at : l->sums + rest[monoid];
        if (monoid <= MONOID_MAGNITUDES) at += (uint32_t)record_words(p, (enum monoid_id)monoid);
    }
    lower->values = c->values;
    for (unsigned v = 0; v < c->values; v++) {
        lower->value[v] = (uint32_t)p->value[c->only + v].op | (uint32_t)p->value[c->only + v].type
                                                                   << 8;
        plan->out[v] = c->at[c->only + v];
    }
    plan->several = p->values > 1;
    plan->first_value = c->only;
    plan->xored = problem_has(p, MONOID_BITS) && p->bits_op == TALLY_XOR;
}

static void make_plan(const struct parts_call *c, const struct parts_layout *l,
                      struct parts_plan *plan) {
    const struct shaped *s = c->s;
    memset(plan, 0, sizeof *plan);
    plan_values(c, l, plan);
    plan->rows = (struct part_rows){
        .count = s->results, .each = s->each, .vectors = s->cut == TALLY_AXES ? 1 : s->vectors};
    if (s->cut == TALLY_SEGMENTS) plan->rows.kind = type_size(s->offsets_type);
    plan->piece = l->piece;
    plan->pieces = l->pieces;
    plan->edges = l->edges;
    plan->values = 8 * l->values;
    plan->x = c->first_x;
    plan->y = c->first_y;
    plan->mask = c->first_mask;
    plan->left = l->strategy ? l->left : 0;
    plan->ignore_errors =
        c->ignore_errors && s->cut == TALLY_AXES && !problem_has(s->p, MONOID_TREE);
    plan->out_first = s->out_first;
    plan->number_first = s->number_first;
    plan->n = l->n;
    plan->cut = (uint32_t)s->cut;
    plan->monoids = s->p->monoids;
    plan->sums = l->sums;
    plan->masked = c->mask != NULL;
    plan->absolute = s->cut == TALLY_GROUPS;
    plan->is_flat = s->cut != TALLY_AXES && shape_is_flat(s);
    plan->skip_outside = s->skip_outside != 0;
    plan->ids = (uint32_t)s->ids_type;
    plan->keeps = s->keeps;
    plan->reduces = s->cut == TALLY_AXES ? s->reduces : 1;
    for (unsigned d = 0; d < s->keeps; d++)
        plan->kept[d] = extent_of(&s->kept[d]);
    for (unsigned d = 0; d < plan->reduces; d++)
        plan->reduced[d] = extent_of(&s->reduced[d]);
}

/* ---- Launches ----------------------------------------------------------------------------- */

struct run {
    struct queue *queue;
    const struct parts_call *c;
    struct parts_layout l;
    struct parts_plan plan;
    struct parts_call aside;         /* what `c` is once the elements lie aside */
    struct shaped shape_aside;       /* the shape of `aside` */
    struct part_rows tree_rows;      /* where the rows of the tree's elements begin */
    struct gpu_memory *tree_offsets; /* the offsets for tree_rows */
};

static tally_status launch(struct run *r, int kernel, unsigned grid,
                           const struct gpu_argument *arguments, size_t count) {
    return r->queue->api->launch(r->queue->gpu, r->queue->part[kernel], grid, r->queue->block,
                                 arguments, count);
}

/* Returns the grid for `n` things, of which a thread takes one at a time. */
static unsigned threads_for(const struct run *r, uint64_t n) {
    const unsigned block = r->queue->block;
    return parts_grid(r->queue, (n + block - 1) / block);
}

/* Returns the grid of `starts` for n ids: the blocks that the device runs at once of so small a
 * kernel, at most. */
static unsigned looks_grid(const struct run *r, uint64_t n) {
    const unsigned most = parts_blocks_at_once(r->queue) * LOOKS_A_BLOCK;
    const uint64_t blocks = n / (r->queue->block * LOOKS_A_THREAD) + 1;
    return blocks < most ? (unsigned)blocks : most;
}

/* Returns the plan of the axis that segments or groups cut: its parts, and its elements. */
static struct parts_plan plan_of_axis(const struct run *r) {
    struct parts_plan plan = r->plan;
    plan.rows.count = r->c->s->count;
    plan.n = r->c->s->n;
    return plan;
}

/* Enqueues a sort of the elements by their groups or, with `compacts`, of those that a mask leaves. */
static tally_status sort(struct run *r, const struct order_layout *o, const struct parts_plan *plan,
                         bool compacts) {
    const struct parts_call *c = r->c;
    struct queue *queue = r->queue;
    const struct gpu_api *api = queue->api;
    const unsigned grid = order_grid(queue, o->n), digits = 1u << o->digit;
    const bool has_keys = compacts || makes_keys(c->s);
    struct gpu_memory *offsets = c->s->cut == TALLY_GROUPS ? c->work : c->offsets;
    struct sort_plan sort = {.counts = o->counts,
                             .totals = o->totals,
                             .bits = o->digit,
                             .compacts = compacts,
                             .arrays = o->arrays};
    sort.width = o->arrays > 0 ? 8 * (uint32_t)type_size(c->s->p->type) : o->wide ? 64 : 32;
    if (o->passes == 1 && !compacts) sort.starts = r->l.starts;
    sort.most = compacts ? 1 : (uint32_t)c->s->count;
    if (!compacts && c->s->ids_type == TALLY_I32 && sort.most >> 31) sort.most = (uint32_t)1 << 31;
    tally_status s = find_sort(queue);
    if (sorts_tiles(queue))
        TALLY_PATH("tiles");
    else
        TALLY_PATH("stretches");
    if (o->passes > 1) TALLY_PATH("several passes");
    if (o->arrays == 0) TALLY_PATH("numbers of elements");
    if (o->arrays == 1) TALLY_PATH("elements");
    if (o->arrays == 2) TALLY_PATH("pairs of elements");
    if (has_keys) TALLY_PATH("keys");
    if (compacts) TALLY_PATH("what a mask leaves");
    for (uint32_t pass = 0; pass < o->passes && s == TALLY_OK; pass++) {
        const unsigned to = (o->passes - 1 - pass) % 2;
        sort.pass = pass;
        sort.shift = pass * o->digit;
        sort.keys = o->keys[!to];
        sort.keys_to = o->keys[to];
        for (unsigned a = 0; a < 2; a++) {
            sort.from[a] = o->carried[a][!to];
            sort.to[a] = o->carried[a][to];
        }
        if (pass == 0 && !has_keys) sort.keys = 0;
        const struct gpu_argument making[] = {BUFFER(c->ids),  BUFFER(c->mask), BUFFER(offsets),
                                              BUFFER(c->work), VALUE(*plan),    VALUE(sort)};
        const struct gpu_argument counting[] = {BUFFER(c->ids), BUFFER(c->work), VALUE(*plan),
                                                VALUE(sort)};
        const struct gpu_argument scanning[] = {BUFFER(c->work), VALUE(o->workers), VALUE(sort)};
        const struct gpu_argument moving[] = {BUFFER(c->x),    BUFFER(c->y), BUFFER(c->ids),
                                              BUFFER(c->work), VALUE(*plan), VALUE(sort)};
        if (pass == 0 && sort.keys != 0)
            s = api->launch(queue->gpu, queue->sort[KEYS], looks_grid(r, o->n), queue->block,
                            making, 6);
        if (s == TALLY_OK)
            s = api->launch(queue->gpu, queue->sort[COUNT], grid, queue->block, counting, 4);
        if (s == TALLY_OK)
            s = api->launch(queue->gpu, queue->sort[SCAN], digits, queue->block, scanning, 3);
        if (s == TALLY_OK)
            s = api->launch(queue->gpu, queue->sort[SCATTER], grid, queue->block, moving, 6);
    }
    return s;
}

/* From here on the elements are those that lie aside, in the order of their groups. */
static void turn_aside(struct run *r) {
    const size_t size = type_size(r->c->s->p->type);
    r->shape_aside = put_aside(r->c->s);
    r->aside = *r->c;
    r->aside.s = &r->shape_aside;
    r->aside.x = r->c->work;
    r->aside.first_x = r->plan.x = (int64_t)(8 * r->l.by_id.carried[0][0] / size);
    if (r->c->y) {
        r->aside.y = r->c->work;
        r->aside.first_y = r->plan.y = (int64_t)(8 * r->l.by_id.carried[1][0] / size);
    }
    r->aside.mask = NULL;
    r->plan.skip_outside = 0;
    r->c = &r->aside;
}

/* Enqueues the launch that writes where groups begin, unless the sort has done that; `axis` is the plan of the axis. */
static tally_status find_starts(struct run *r, struct parts_plan axis) {
    const struct parts_call *c = r->c;
    const struct order_layout *o = &r->l.by_id;
    const uint64_t to = r->l.starts, first = o->is_wanted ? 8 * o->keys[0] : 0;
    if (o->is_wanted && o->passes == 1) {
        TALLY_PATH("written by the sort");
        return TALLY_OK;
    }
    TALLY_PATH("from ids");
    axis.ordered = o->is_wanted;
    if (o->is_wanted) axis.ids = c->s->count >> 31 ? TALLY_U32 : TALLY_I32;
    const struct gpu_argument arguments[] = {BUFFER(o->is_wanted ? c->work : c->ids),
                                             BUFFER(c->offsets),
                                             BUFFER(c->work),
                                             VALUE(first),
                                             VALUE(to),
                                             VALUE(axis)};
    const unsigned grid = threads_for(r, (uint64_t)c->s->count + 1);
    const unsigned wide = looks_grid(r, c->s->n + 1);
    return launch(r, STARTS, grid > wide ? grid : wide, arguments, 6);
}

/* Enqueues the launches that bring the elements of groups into their order, and say where groups begin. */
static tally_status find_groups(struct run *r) {
    const struct shaped *shape = r->c->s;
    const struct parts_layout *l = &r->l;
    struct parts_plan axis = plan_of_axis(r);
    tally_status s = TALLY_OK;
    if (parts_drop_hidden(shape)) axis.rows.vectors = 1;
    if (!parts_can_order(shape)) return cannot_order(shape);
    if (l->by_id.is_wanted) s = sort(r, &l->by_id, &axis, false);
    if (s == TALLY_OK) s = find_starts(r, axis);
    r->plan.rows = (struct part_rows){
        .count = shape->results, .offsets = 8 * l->starts, .kind = 8, .vectors = shape->vectors};
    r->plan.order = l->by_id.is_wanted && !l->aside ? l->by_id.carried[0][0] : 0;
    r->plan.wide_order = l->by_id.wide;
    if (parts_drop_hidden(shape)) r->plan.masked = 0;
    return s;
}

/* Enqueues the launches that say where the rows of the tree's elements begin, after those that bring the numbers of the
 * ones that a mask shows side by side. */
static tally_status find_tree_rows(struct run *r) {
    const struct parts_call *c = r->c;
    const struct order_layout *o = &r->l.shown;
    const uint64_t first = 0, to = r->l.tree_starts;
    tally_status s = o->is_wanted ? sort(r, o, &r->plan, true) : TALLY_OK;
    if (o->is_wanted)
        TALLY_PATH("from what a mask leaves");
    else
        TALLY_PATH("from parts of vectors");
    r->plan.shown = o->is_wanted ? o->carried[0][0] : 0;
    r->plan.wide_shown = o->wide;
    struct parts_plan plan = r->plan;
    plan.ordered = o->is_wanted;
    plan.row_starts = 1;
    const struct gpu_argument arguments[] = {BUFFER(c->work), BUFFER(r->tree_offsets),
                                             BUFFER(c->work), VALUE(first),
                                             VALUE(to),       VALUE(plan)};
    if (s == TALLY_OK)
        s = launch(r, STARTS, threads_for(r, (uint64_t)c->s->results + 1), arguments, 6);
    r->tree_rows = (struct part_rows){.count = c->s->results, .offsets = 8 * to, .kind = 8};
    r->tree_offsets = c->work;
    r->plan.tree_starts = 1;
    return s;
}

/* Enqueues the launches that say where rows begin and which elements they have: the check of offsets, the order,
 * the offsets in the workspace. Notes in the run where these are. */
static tally_status find_rows(struct run *r) {
    const struct parts_call *c = r->c;
    const struct parts_layout *l = &r->l;
    tally_status s = TALLY_OK;
    if (c->s->cut == TALLY_SEGMENTS &&
        !(l->strategy && l->strategy->checks && l->strategy->checks(c->s))) {
        const unsigned grid = threads_for(r, (uint64_t)c->s->count + 1);
        struct parts_plan axis = plan_of_axis(r);
        axis.rows.vectors = 1;
        const struct gpu_argument checking[] = {BUFFER(c->offsets), BUFFER(c->work), VALUE(axis)};
        s = launch(r, CHECK, grid, checking, 3);
    }
    if (s == TALLY_OK && l->starts_own) s = find_groups(r);
    r->tree_rows = r->plan.rows;
    r->tree_offsets = c->s->cut == TALLY_GROUPS ? c->work : c->offsets;
    if (s == TALLY_OK && has_tree_starts(c->s)) s = find_tree_rows(r);
    if (l->aside) turn_aside(r);
    return s;
}

/* Copies the tree's elements side by side where they do not lie so. */
static tally_status gather(struct run *r) {
    const uint64_t bytes = 8 * r->l.copy;
    const struct shaped *s = r->c->s;
    struct gpu_memory *offsets = s->cut == TALLY_GROUPS ? r->c->work : r->c->offsets;
    const struct gpu_argument gathering[] = {BUFFER(r->c->x), BUFFER(offsets), BUFFER(r->c->work),
                                             VALUE(bytes), VALUE(r->plan)};
    if (!r->l.gathered) return TALLY_OK;
    TALLY_PATH("elements of trees, side by side");
    return launch(r, GATHER, threads_for(r, r->l.n), gathering, 5);
}

static tally_status evaluate_trees(struct run *r) {
    const struct parts_call *c = r->c;
    const struct parts_layout *l = &r->l;
    const struct problem *p = c->s->p;
    const unsigned warps = (r->queue->block + TREE_LANES - 1) / TREE_LANES;
    const unsigned grid = parts_grid(r->queue, (l->slots + warps - 1) / warps);
    const uint64_t longest = c->s->cut == TALLY_AXES ? c->s->each : l->n;
    struct gpu_memory *x = l->gathered ? c->work : c->x;
    struct kernels k;
    struct part_leaves_plan plan = {.rows = r->tree_rows,
                                    .slots = l->slots,
                                    .first = l->gathered ? 8 * l->copy / type_size(p->type)
                                                         : (uint64_t)c->first_x,
                                    .values = 8 * l->values / tree_value_size(p),
                                    .stride = 1};
    if (l->slots == 0) return TALLY_OK;
    TALLY_PATH("");
    const struct gpu_argument to_leaves[] = {BUFFER(x), BUFFER(r->tree_offsets), BUFFER(c->work),
                                             BUFFER(c->work), VALUE(plan)};
    const struct gpu_argument to_nodes[] = {BUFFER(r->tree_offsets), BUFFER(c->work),
                                            BUFFER(c->work), VALUE(plan)};
    tally_status s = gather(r);
    if (s == TALLY_OK) s = queue_tree_kernels(r->queue, p, &k);
    if (s == TALLY_OK)
        s = r->queue->api->launch(r->queue->gpu, k.part_leaves, grid, r->queue->block, to_leaves,
                                  5);
    for (; s == TALLY_OK && plan.stride < (longest + TREE_LEAF - 1) / TREE_LEAF;
         plan.stride <<= NODES_LOG)
        s = r->queue->api->launch(r->queue->gpu, k.part_nodes, grid, r->queue->block, to_nodes, 4);
    return s;
}

/* ---- Strategies --------------------------------------------------------------------------- */

/* Returns whether a value can be worked out by a thread alone. */
static bool is_quick_value(const struct problem *p, unsigned v) {
    switch (p->value[v].op) {
    case TALLY_SUM:
        return !problem_has(p, MONOID_FAST) &&
               type_is_float(p->type) == type_is_float(p->value[v].type);
    case TALLY_MEAN:
        return !problem_has(p, MONOID_FAST) && type_is_float(p->type);
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR:
    case TALLY_COUNT:
    case TALLY_NONZERO:
    case TALLY_ANY:
    case TALLY_ALL:
        return true;
    default:
        return false;
    }
}

/* Returns how many elements a row for `quick` may have; 0 where all rows have more. *team is the threads for a row:
 * 1, or a warp. */
static unsigned quick_most(const struct queue *queue, const struct shaped *s, unsigned *team) {
    const uint64_t mean = s->results ? elements_of(s) / s->results : 0;
    unsigned most = QUICK_THREAD_MOST;
    *team = 1;
    const bool has_columns = s->keeps > 0 && s->kept[s->keeps - 1].x == 1;
    if (has_columns && s->kept[s->keeps - 1].length >= TREE_LANES && s->results >= QUICK_WARP_ROWS)
        most = QUICK_COLUMN;
    else if (!(has_columns && s->cut != TALLY_AXES) && queue->block >= TREE_LANES &&
             mean >= TREE_LANES && (s->results < QUICK_THREAD_ROWS || mean > QUICK_THREAD_MEAN)) {
        *team = TREE_LANES;
        most = s->results >= QUICK_WARP_ROWS ? QUICK_WARP_MOST : QUICK_FEW_MOST;
    }
    return s->cut == TALLY_AXES && s->each > most ? 0 : most;
}

bool parts_are_quick(const struct problem *p) {
    for (unsigned v = 0; v < p->values; v++)
        if (!is_quick_value(p, v)) return false;
    return true;
}

static bool takes_quick(const struct queue *queue, const struct shaped *s) {
    unsigned team;
    return parts_are_quick(s->p) && quick_most(queue, s, &team) > 0;
}

#if defined(TALLY_DEBUG)
enum { A_THREAD, A_WARP, A_COLUMN, A_BLOCK, FOLD_ALONE };
static const char *const way_names[] = {[A_THREAD] = "quick, a thread a row",
                                        [A_WARP] = "quick, a warp a row",
                                        [A_COLUMN] = "quick, a thread a column",
                                        [A_BLOCK] = "few, a block a row",
                                        [FOLD_ALONE] = "fold alone"};
static const struct path_axis way_axis = PATH_AXIS(way_names);
static const char *never_parts(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (at[0] == A_BLOCK)
        return problem_has(&p, MONOID_TREE) ? "the canonical tree takes launches of its own" : NULL;
    if (source_check(&p) != TALLY_OK) return "such a user's operator runs on the CPU";
    if (at[0] == FOLD_ALONE || is_quick_value(&p, 0)) return NULL;
    return "a thread alone cannot work it out";
}
PATH_TABLE(parts_paths, "parts on a GPU", never_parts, &way_axis, &path_ops, &path_types);
#endif

static tally_status enqueue_quick(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *c = run->call;
    unsigned team;
    run->plan.quick_most = quick_most(queue, c->s, &team);
    run->plan.team = team;
    TALLY_PATH_OF_VALUE(parts_paths, c->s->p,
                        team > 1                               ? A_WARP
                        : run->plan.quick_most == QUICK_COLUMN ? A_COLUMN
                                                               : A_THREAD);
    const uint64_t threads = (uint64_t)c->s->results * team;
    const struct gpu_argument taking[] = {BUFFER(c->x),    BUFFER(c->mask), BUFFER(run->offsets),
                                          BUFFER(c->work), BUFFER(c->out),  VALUE(run->plan)};
    return queue->api->launch(queue->gpu, queue->part[QUICK],
                              parts_grid(queue, (threads + queue->block - 1) / queue->block),
                              queue->block, taking, 6);
}

static const struct strategy quick = {.takes = takes_quick, .enqueue = enqueue_quick};

/* The first that takes a problem and a shape is asked to do it. */
static const struct strategy *const strategies[] = {
    &columns_strategy, /* results side by side */
    &vectors_strategy, /* segments and groups of rows of those */
    &rows_strategy,    /* elements side by side */
    &groups_strategy,  /* ids in any order */
    &quick,            /* a thread or a warp for each short row */
    NULL,
};

static const struct strategy *choose(const struct queue *queue, const struct shaped *s) {
    if (is_exact_only(s->p)) return NULL;
    for (const struct strategy *const *one = strategies; *one && s->results > 0; one++)
        if ((*one)->takes(queue, s)) return *one;
    return NULL;
}

/* Returns another mark than the last 254 calls had, whose rows the same work may still name. */
static uint64_t next_mark(struct queue *queue) {
    return queue->mark = queue->mark % 255 + 1;
}

/* Enqueues a filled copy of the array, and has the strategy reduce that. What it leaves is reduced from the array
 * itself. */
static tally_status fill(struct run *r, struct parts_run *own) {
    const struct parts_call *c = r->c;
    const size_t size = type_size(c->s->p->type);
    bool in_order;
    strategy_for_filled(r->queue, c->s, &r->shape_aside, &in_order);
    if (in_order)
        TALLY_PATH("a copy in the order of rows");
    else
        TALLY_PATH("a copy in the order of memory");
    r->aside = *c;
    r->aside.s = &r->shape_aside;
    r->aside.x = c->work;
    r->aside.first_x = (int64_t)(8 * r->l.filled.to / size);
    r->aside.mask = NULL;
    own->call = &r->aside;
    make_plan(&r->aside, &r->l, &own->plan);
    own->plan.left = r->plan.left;
    own->plan.filled = 1;
    own->plan.counts = r->l.filled.counts;
    own->plan.wide_counts = c->s->each >> 32 != 0;
    return filled_enqueue(r->queue, c, &r->plan, &r->l.filled);
}

/* Returns whether the strategy may leave rows, which `fold` and `join` then do. */
static bool may_leave(const struct run *r) {
    const struct shaped *s = r->c->s;
    const struct strategy *strategy = r->l.strategy;
    return !strategy || !strategy->is_certain || r->l.is_filled || s->cut != TALLY_AXES ||
           s->each == 0 || !strategy->is_certain(s);
}

/* Has the strategy enqueue its launches, after clearing what has to be 0 before them: the bits of rows that it
 * leaves, or all words of one that is alone. Marks need none where there are words at all. */
static tally_status follow(struct run *r, struct gpu_memory *offsets) {
    struct queue *queue = r->queue;
    struct parts_run own = {.queue = queue,
                            .call = r->c,
                            .offsets = offsets,
                            .plan = r->plan,
                            .own = r->l.own,
                            .flag = r->l.flag};
    const uint64_t end = r->l.alone ? r->l.bytes : 8 * r->l.own;
    tally_status s = TALLY_OK;
    if (r->l.marked)
        TALLY_PATH("rows that are left are marked");
    else
        TALLY_PATH("rows that are left have bits");
    if (r->l.marked ? !r->c->written : may_leave(r))
        s = queue->api->fill(queue->gpu, r->c->work, 8 * r->l.left, 0, end - 8 * r->l.left);
    if (s == TALLY_OK && r->l.is_filled) s = fill(r, &own);
    return s == TALLY_OK ? r->l.strategy->enqueue(&own) : s;
}

/* ---- Few elements --------------------------------------------------------------------------- */

bool parts_are_few(const struct problem *p, uint64_t results, uint64_t each) {
    return !problem_has(p, MONOID_TREE) && results > 0 && each > 0 && results <= PARTS_FEW_ROWS &&
           each <= PARTS_FEW_EACH && results * each <= PARTS_FEW_ELEMENTS;
}

tally_status parts_prepare_few(struct queue *queue) {
    return find_parts(queue);
}

static tally_status enqueue_few(struct queue *queue, const struct parts_call *call,
                                bool as_results) {
    const struct shaped *s = call->s;
    struct run r = {.queue = queue, .c = call};
    r.l = (struct parts_layout){.n = (uint64_t)s->results * s->each, .sums = sum_words(s->p)};
    make_plan(call, &r.l, &r.plan);
    r.plan.ignore_errors = 1;
    r.plan.as_results = as_results;
    const struct gpu_argument arguments[] = {BUFFER(call->x),    BUFFER(call->y),
                                             BUFFER(call->mask), BUFFER(call->means),
                                             BUFFER(call->out),  VALUE(r.plan)};
    tally_status status = find_parts(queue);
    if (status != TALLY_OK) return status;
    TALLY_PATH_OF_VALUE(parts_paths, s->p, A_BLOCK);
    return launch(&r, FEW, parts_grid(queue, s->results), arguments, 6);
}

tally_status parts_enqueue_few(struct queue *queue, const struct problem *p,
                               const struct inputs *in, struct gpu_memory *results) {
    const struct shaped row = {.p = p,
                               .cut = TALLY_AXES,
                               .results = 1,
                               .reduces = 1,
                               .reduced[0] = {.length = in->n, .x = 1, .y = 1},
                               .each = in->n};
    struct parts_call call = {
        .s = &row, .x = in->x, .y = in->y, .out = results, .values = p->values};
    for (unsigned v = 0; v < p->values; v++)
        call.at[v] = v * sizeof(tally_result);
    return enqueue_few(queue, &call, true);
}

/* Returns whether `few` does the rows, unless a strategy is_one_launch(), too. */
static bool may_be_for_few(const struct parts_call *call) {
    const struct shaped *s = call->s;
    return call->ignore_errors && s->cut == TALLY_AXES && parts_are_few(s->p, s->results, s->each);
}

/* Returns whether a strategy does all rows by one launch, which takes less time for an element than `few` does. */
static bool is_one_launch(const struct queue *queue, const struct strategy *strategy,
                          const struct shaped *s) {
    return strategy && strategy->is_certain && strategy->is_single && strategy->is_certain(s) &&
           strategy->is_single(queue, s);
}

/* ---- All of it ------------------------------------------------------------------------------- */

tally_status parts_enqueue(struct queue *queue, const struct parts_call *call) {
    const struct shaped *shaped = call->s;
    struct run r = {.queue = queue, .c = call};
    const bool few = may_be_for_few(call);
    if (few && shaped->each <= PARTS_FEW_CERTAIN) return enqueue_few(queue, call, false);
    const struct strategy *strategy = strategy_for(queue, shaped);
    if (few && !is_one_launch(queue, strategy, shaped)) return enqueue_few(queue, call, false);
    lay_out(queue, shaped, strategy, &r.l);
    make_plan(call, &r.l, &r.plan);
    if (r.l.marked) r.plan.left |= next_mark(queue) << PARTS_MARK_AT;
    tally_status s = find_parts(queue);
    area_guard(&r.l.area, queue->gpu, call->work);
    if (s == TALLY_OK && !call->keep_outcome && !r.plan.ignore_errors)
        s = queue->api->fill(queue->gpu, call->work, 0, 0xff, 8 * HEAD_WORDS);
    if (r.l.alone) TALLY_PATH("a strategy that wants no order");
    if (r.l.alone) return s == TALLY_OK ? follow(&r, NULL) : s;
    if (s == TALLY_OK) s = find_rows(&r);
    if (s != TALLY_OK || shaped->results == 0) return s;
    if (problem_has(shaped->p, MONOID_TREE)) s = evaluate_trees(&r);
    if (s != TALLY_OK) return s;
    r.plan.tree = r.tree_rows;
    struct gpu_memory *offsets = shaped->cut == TALLY_GROUPS ? call->work : call->offsets;
    call = r.c;
    const struct gpu_argument folding[] = {
        BUFFER(call->x),     BUFFER(call->y),    BUFFER(call->mask), BUFFER(offsets),
        BUFFER(call->means), BUFFER(call->work), BUFFER(call->out),  VALUE(r.plan)};
    const struct gpu_argument joining[] = {BUFFER(offsets), BUFFER(call->means), BUFFER(call->work),
                                           BUFFER(call->out), VALUE(r.plan)};
    if (r.l.strategy)
        s = follow(&r, offsets);
    else
        TALLY_PATH_OF_VALUE(parts_paths, call->s->p, FOLD_ALONE);
    if (!may_leave(&r)) TALLY_PATH("no row is left");
    if (s != TALLY_OK || !may_leave(&r)) return s;
    s = launch(&r, FOLD, r.l.grid, folding, 8);
    if (r.l.pieces > 1 && r.l.is_cut) TALLY_PATH("rows that are cut");
    if (s == TALLY_OK && r.l.pieces > 1 && r.l.is_cut)
        s = launch(&r, JOIN, parts_grid(queue, r.l.pieces - 1), joining, 5);
    return s;
}

tally_status parts_report(struct queue *queue, struct gpu_memory *work, struct gpu_memory *to) {
    const struct gpu_argument arguments[] = {BUFFER(work), BUFFER(to)};
    tally_status s = find_parts(queue);
    if (s != TALLY_OK) return s;
    return queue->api->launch(queue->gpu, queue->part[REPORT], 1, queue->block, arguments, 2);
}

struct parts_outcome parts_outcome(const uint64_t *word) {
    struct parts_outcome o = {.bad = word[PARTS_BAD], .absence = {.number = UINT64_MAX}};
    const uint64_t first = word[PARTS_ABSENT];
    if (first != UINT64_MAX)
        o.absence = (struct absence){.number = first / 64,
                                     .status = first & 1 ? TALLY_EINVAL : TALLY_ERANGE,
                                     .value = (unsigned)(first % 64 / 2)};
    return o;
}
