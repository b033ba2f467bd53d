/* parts.c - see parts.h. */
#include "gpu/parts.h"

#include "exact/kernel_words.h"
#include "gpu/columns.h"
#include "gpu/groups.h"
#include "gpu/record.h"
#include "gpu/rows.h"
#include "gpu/strategy.h"
#include "kernels/request.h"
#include "kernels/tuning.h"
#include "status.h"
#include "tree.h"
#include "types.h"

#include <string.h>

#define HEAD_WORDS     4
#define DIGIT_BITS     4 /* kernels/parts.cu */
#define DIGITS         16
#define NODES_LOG      5 /* part_nodes joins 2^5 values */
#define PIECE_LEAST    ((uint64_t)1 << 14)
#define PIECES_A_UNIT  8
#define LOOKS_A_THREAD 16 /* kernels/parts.cu */
#define LOOKS_A_BLOCK  4  /* blocks of `starts` that run where one of most other kernels does */

/* The kernel `quick`. Where there are THREAD_ROWS rows, of no more than THREAD_MEAN elements on average, a thread takes
 * each row of up to THREAD_MOST elements; else a warp takes each row of up to FEW_MOST elements, or of WARP_MOST where
 * there are WARP_ROWS rows. Columns, which neighbouring threads read side by side, are a thread's up to QUICK_COLUMN
 * elements where there are WARP_ROWS of them. */
#define THREAD_ROWS  (1 << 16)
#define THREAD_MEAN  512
#define THREAD_MOST  1024
#define WARP_ROWS    4096
#define WARP_MOST    (1 << 16)
#define FEW_MOST     4096
#define QUICK_COLUMN (1 << 16)

/* The kernel `few`, a block for each row: elements in all, of a row, and rows, at most. */
#define FEW_ELEMENTS 16384
#define FEW_EACH     2048
#define FEW_ROWS     256

/* Up to so many rows those that a strategy leaves are marked, a byte each: kernels/parts.h. */
#define MARKED_ROWS 16384

_Static_assert(PARTS_HEAD <= HEAD_WORDS && PARTS_OUTCOME_BYTES <= 8 * PARTS_HEAD, "parts.h");
_Static_assert(PARTS_DIMS == TALLY_DIMS_MAX && PARTS_LEAF == TREE_LEAF, "kernels/parts.h");
_Static_assert((int)PARTS_AXES == (int)TALLY_AXES && (int)PARTS_SEGMENTS == (int)TALLY_SEGMENTS &&
                   (int)PARTS_GROUPS == (int)TALLY_GROUPS,
               "kernels/parts.h");

/* ---- Sizes -------------------------------------------------------------------------------- */

/* What a reduction takes, and where in the work everything is: in words, but for what says bytes. */
struct parts_layout {
    uint64_t n;             /* elements in all rows, at most */
    uint64_t piece, pieces; /* of `fold`: a piece's weight, and how many there are */
    bool is_cut;            /* a row may begin in one piece and end in another */
    unsigned grid, sums;    /* of `fold`; words of the records of a row's sums */
    bool ordered;           /* elements are brought into an order first */
    bool compacted;         /* ... which leaves out what a mask hides, for the tree alone */
    bool starts_own;        /* the work has offsets that say where rows begin */
    bool gathered;          /* the tree's elements are copied to the work, side by side */
    unsigned passes;        /* of the sort, a digit each */
    uint64_t edges, order[2], counts, starts, gather, values; /* where these begin in the work */
    uint64_t slots;                  /* room for the values of so many leaves of trees */
    const struct strategy *strategy; /* NULL: `fold` does all rows */
    bool alone;                      /* the strategy does all rows, and wants no order */
    bool marked;                     /* rows that it leaves are marked, a byte each */
    uint64_t left, own; /* where the work says which these are, and the strategy's own words */
    size_t bytes;       /* of the work */
};

static unsigned blocks_at_once(const struct queue *queue) {
    const unsigned units = queue->facts->units ? queue->facts->units : 1;
    return units * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_PRODUCT_BLOCKS_A_UNIT);
}

unsigned parts_grid(const struct queue *queue, uint64_t blocks) {
    const unsigned most = blocks_at_once(queue);
    return blocks == 0 ? 1 : blocks < most ? (unsigned)blocks : most;
}

bool parts_are_contiguous(const struct shaped *s) {
    if (s->cut != TALLY_AXES) return true;
    if (s->keeps > 1 || s->reduces > 1) return false;
    if (s->reduces == 1 && s->reduced[0].x != 1) return false;
    return s->keeps == 0 || s->kept[0].x == (ptrdiff_t)s->each;
}

unsigned problem_ends(const struct problem *p) {
    const unsigned both = WANT_LEAST | WANT_GREATEST;
    return ((p->extremes & both) == both ? 2 : (p->extremes & both) != 0) |
           (p->extremes & WANT_INDEX);
}

uint64_t problem_flip(const struct problem *p) {
    const unsigned width = 8 * (unsigned)type_size(p->type);
    const uint64_t all = UINT64_MAX >> (64 - width);
    return (type_is_signed(p->type) ? (uint64_t)1 << (width - 1) : 0) ^
           (p->extremes & WANT_GREATEST ? 0 : all);
}

static unsigned sum_words(const struct problem *p) {
    unsigned words = 0;
    for (unsigned part = 0; part <= PART_MAGNITUDES; part++)
        if (p->parts & PART_BIT(part)) words += (unsigned)record_words(p, (enum part)part);
    return words;
}

static const struct strategy *choose(const struct queue *queue, const struct shaped *s);

static void lay_out(const struct queue *queue, const struct shaped *s, struct parts_layout *l) {
    const struct problem *p = s->p;
    const bool tree = problem_has(p, PART_TREE);
    memset(l, 0, sizeof *l);
    l->n = s->cut == TALLY_AXES ? (uint64_t)s->results * s->each : s->n;
    l->sums = sum_words(p);
    const uint64_t weight = s->results == 0 ? 0 : l->n + (uint64_t)s->results * PARTS_ROW_WEIGHT;
    const unsigned units = queue->facts->units ? queue->facts->units : 1;
    l->piece = weight / (units * PIECES_A_UNIT) + 1;
    if (l->piece < PIECE_LEAST) l->piece = PIECE_LEAST;
    const uint64_t row = (uint64_t)s->each + PARTS_ROW_WEIGHT;
    if (s->cut == TALLY_AXES && row <= l->piece) l->piece = (l->piece + row - 1) / row * row;
    l->is_cut = s->cut != TALLY_AXES || l->piece % row != 0;
    l->pieces = (weight + l->piece - 1) / l->piece;
    l->grid = parts_grid(queue, l->pieces);
    l->compacted = tree && s->mask && s->cut != TALLY_GROUPS;
    l->strategy = choose(queue, s);
    l->alone = l->strategy && l->strategy->unordered;
    l->ordered = l->compacted || (s->cut == TALLY_GROUPS && !l->alone &&
                                  (!s->sorted || s->mask || s->skip_outside));
    l->starts_own = l->compacted || (s->cut == TALLY_GROUPS && !l->alone);
    l->gathered = tree && (l->ordered || !parts_are_contiguous(s));
    l->passes = 1;
    if (s->cut == TALLY_GROUPS)
        while (l->passes * DIGIT_BITS < 64 && (s->results - 1) >> (l->passes * DIGIT_BITS) != 0 &&
               s->results > 0)
            l->passes++;
    uint64_t at = HEAD_WORDS;
    l->edges = at;
    if (!l->alone) at += 2 * l->pieces * (PARTS_WORDS + l->sums);
    if (l->ordered) {
        l->order[0] = at;
        at += l->n;
        l->order[1] = at;
        if (l->passes > 1) at += l->n;
        l->counts = at;
        at += (uint64_t)DIGITS * blocks_at_once(queue);
    }
    l->starts = at;
    if (l->starts_own) at += s->results + 1;
    l->gather = at;
    if (l->gathered) at += (l->n * type_size(p->type) + 7) / 8;
    l->values = at;
    l->slots = l->n / TREE_LEAF + s->results;
    if (tree) at += (l->slots + 1) * tree_value_size(p) / 8 + 1;
    l->left = at;
    l->marked = l->strategy && !l->alone && !problem_has(p, PART_FAST) && s->results <= MARKED_ROWS;
    if (l->strategy) at += s->results / (l->marked ? 8 : 64) + 2;
    l->own = at;
    if (l->strategy && l->strategy->words) at += l->strategy->words(queue, s);
    l->bytes = 8 * (size_t)at;
}

size_t parts_workspace(const struct queue *queue, const struct shaped *s) {
    struct parts_layout l;
    lay_out(queue, s, &l);
    return l.bytes;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

static const char *const names[PARTS_KERNELS] = {"fold",   "join",    "check",  "count",
                                                 "scan",   "scatter", "starts", "gather",
                                                 "report", "quick",   "few"};
enum { FOLD, JOIN, CHECK, COUNT, SCAN, SCATTER, STARTS, GATHER, REPORT, QUICK, FEW };

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

tally_status parts_prepare(struct queue *queue, const struct shaped *s) {
    const struct strategy *strategy = choose(queue, s);
    struct kernels k;
    tally_status status = find_parts(queue);
    if (status == TALLY_OK && problem_has(s->p, PART_TREE))
        status = queue_tree_kernels(queue, s->p, &k);
    if (status == TALLY_OK && strategy && strategy->prepare) status = strategy->prepare(queue, s);
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
    static const uint32_t rest[PARTS] = {[PART_NONZERO] = 0, [PART_BITS] = 1,     [PART_FAST] = 2,
                                         [PART_FACTORS] = 3, [PART_EXTREMES] = 5, [PART_TREE] = 10};
    uint32_t at = 0;
    queue_lower_plan(p, lower);
    lower->indexed = 1;
    for (unsigned part = 0; part < PARTS; part++) {
        if (!(p->parts & PART_BIT(part))) continue;
        lower->at[part] = part <= PART_MAGNITUDES ? at : l->sums + rest[part];
        if (part <= PART_MAGNITUDES) at += (uint32_t)record_words(p, (enum part)part);
    }
    lower->values = c->values;
    for (unsigned v = 0; v < c->values; v++) {
        lower->value[v] = (uint32_t)p->value[c->only + v].op | (uint32_t)p->value[c->only + v].type
                                                                   << 8;
        plan->out[v] = c->at[c->only + v];
    }
    plan->several = p->values > 1;
    plan->first_value = c->only;
    plan->xored = problem_has(p, PART_BITS) && p->bits_op == TALLY_XOR;
}

static void make_plan(const struct parts_call *c, const struct parts_layout *l,
                      struct parts_plan *plan) {
    const struct shaped *s = c->s;
    memset(plan, 0, sizeof *plan);
    plan_values(c, l, plan);
    plan->rows = (struct part_rows){.count = s->results, .each = s->each};
    if (s->cut == TALLY_SEGMENTS) plan->rows.kind = type_size(s->offsets_type);
    plan->piece = l->piece;
    plan->pieces = l->pieces;
    plan->edges = l->edges;
    plan->values = 8 * l->values;
    plan->x = c->first_x;
    plan->y = c->first_y;
    plan->mask = c->first_mask;
    plan->left = l->strategy ? l->left : 0;
    plan->unasked = c->unasked && s->cut == TALLY_AXES && !problem_has(s->p, PART_TREE);
    plan->out_first = s->out_first;
    plan->number_first = s->number_first;
    plan->n = l->n;
    plan->cut = (uint32_t)s->cut;
    plan->parts = s->p->parts;
    plan->sums = l->sums;
    plan->masked = c->mask != NULL;
    plan->absolute = s->cut == TALLY_GROUPS;
    plan->skip_outside = s->skip_outside != 0;
    plan->ids = (uint32_t)s->ids_type;
    plan->keeps = s->keeps;
    plan->reduces = s->reduces;
    for (unsigned d = 0; d < s->keeps; d++)
        plan->kept[d] = extent_of(&s->kept[d]);
    for (unsigned d = 0; d < s->reduces; d++)
        plan->reduced[d] = extent_of(&s->reduced[d]);
}

/* ---- Launches ----------------------------------------------------------------------------- */

void *const parts_nothing = NULL; /* a null pointer's value */

struct run {
    struct queue *queue;
    const struct parts_call *c;
    struct parts_layout l;
    struct parts_plan plan;
    struct part_rows tree_rows;      /* where the rows of the tree's elements begin, ... */
    struct gpu_memory *tree_offsets; /* ... by the offsets in this piece */
};

static tally_status launch(struct run *r, int kernel, unsigned grid,
                           const struct gpu_argument *arguments, size_t count) {
    return r->queue->api->launch(r->queue->gpu, r->queue->part[kernel], grid, r->queue->block,
                                 arguments, count);
}

/* The grid for `n` things, of which a thread takes one at a time. */
static unsigned threads_for(const struct run *r, uint64_t n) {
    const unsigned block = r->queue->block;
    return parts_grid(r->queue, (n + block - 1) / block);
}

/* The grid of `starts` for n ids: no more blocks than the device runs at once of a kernel that does so little. */
static unsigned looks_grid(const struct run *r, uint64_t n) {
    const unsigned most = blocks_at_once(r->queue) * LOOKS_A_BLOCK;
    const uint64_t blocks = n / (r->queue->block * LOOKS_A_THREAD) + 1;
    return blocks < most ? (unsigned)blocks : most;
}

/* Puts a sort of the elements' indices by their groups under way, or of those that a mask leaves; *order is the word of
 * the work where they then are. */
static tally_status sort(struct run *r, const struct parts_plan *plan, uint64_t *order) {
    const struct parts_call *c = r->c;
    const struct parts_layout *l = &r->l;
    const unsigned grid = parts_grid(r->queue, l->n / (r->queue->block * 16) + 1);
    uint64_t from = 0;
    tally_status s = TALLY_OK;
    for (uint32_t pass = 0; pass < l->passes && s == TALLY_OK; pass++) {
        const uint64_t to = l->order[pass % 2], size = (uint64_t)DIGITS * grid;
        const struct gpu_argument counting[] = {PIECE(c->ids), PIECE(c->mask),   PIECE(c->work),
                                                VALUE(from),   VALUE(l->counts), VALUE(pass),
                                                VALUE(*plan)};
        const struct gpu_argument scanning[] = {PIECE(c->work), VALUE(l->counts), VALUE(size)};
        const struct gpu_argument moving[] = {PIECE(c->ids), PIECE(c->mask), PIECE(c->work),
                                              VALUE(from),   VALUE(to),      VALUE(l->counts),
                                              VALUE(pass),   VALUE(*plan)};
        s = launch(r, COUNT, grid, counting, 7);
        if (s == TALLY_OK) s = launch(r, SCAN, 1, scanning, 3);
        if (s == TALLY_OK) s = launch(r, SCATTER, grid, moving, 8);
        from = to;
    }
    *order = from;
    return s;
}

/* Puts the launches under way that say where rows begin and which elements they have: the check of offsets, the sort,
 * the offsets in the work, the copy of the tree's elements in their order. Notes in the run where these are. */
static tally_status find_rows(struct run *r) {
    const struct parts_call *c = r->c;
    const struct parts_layout *l = &r->l;
    struct parts_plan *plan = &r->plan;
    const unsigned grid = threads_for(r, (uint64_t)c->s->results + 1);
    tally_status s = TALLY_OK;
    if (c->s->cut == TALLY_SEGMENTS &&
        !(l->strategy && l->strategy->checks && l->strategy->checks(c->s))) {
        const struct gpu_argument checking[] = {PIECE(c->offsets), PIECE(c->work), VALUE(*plan)};
        s = launch(r, CHECK, grid, checking, 3);
    }
    r->tree_rows = plan->rows;
    r->tree_offsets = c->offsets;
    if (s != TALLY_OK || !l->starts_own) return s;

    struct parts_plan ordered = *plan;
    const uint64_t to = l->starts;
    if (l->ordered) s = sort(r, &ordered, &ordered.order);
    if (s != TALLY_OK) return s;
    const struct gpu_argument starting[] = {PIECE(c->ids), PIECE(c->offsets), PIECE(c->work),
                                            VALUE(to), VALUE(ordered)};
    unsigned wide = grid;
    if (c->s->cut == TALLY_GROUPS && !l->ordered) wide = looks_grid(r, l->n + 1);
    s = launch(r, STARTS, grid > wide ? grid : wide, starting, 5);
    r->tree_rows = (struct part_rows){.count = c->s->results, .offsets = 8 * l->starts, .kind = 8};
    r->tree_offsets = c->work;
    if (c->s->cut == TALLY_GROUPS) {
        plan->rows = r->tree_rows;
        plan->order = ordered.order;
        plan->masked = 0;
    } else
        plan->tree_starts = 1;
    if (s == TALLY_OK && l->gathered) {
        const uint64_t bytes = 8 * l->gather;
        const struct gpu_argument gathering[] = {PIECE(c->x), PIECE(c->work), VALUE(bytes),
                                                 VALUE(ordered)};
        s = launch(r, GATHER, threads_for(r, l->n), gathering, 4);
    }
    return s;
}

/* Copies the tree's elements side by side where they do not lie so, and find_rows() has not done it. */
static tally_status gather(struct run *r) {
    const uint64_t bytes = 8 * r->l.gather;
    const struct gpu_argument gathering[] = {PIECE(r->c->x), PIECE(r->c->work), VALUE(bytes),
                                             VALUE(r->plan)};
    if (!r->l.gathered || r->l.starts_own) return TALLY_OK;
    return launch(r, GATHER, threads_for(r, r->l.n), gathering, 4);
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
                                    .first = l->gathered ? 8 * l->gather / type_size(p->type)
                                                         : (uint64_t)c->first_x,
                                    .values = 8 * l->values / tree_value_size(p),
                                    .stride = 1};
    if (l->slots == 0) return TALLY_OK;
    const struct gpu_argument to_leaves[] = {PIECE(x), PIECE(r->tree_offsets), PIECE(c->work),
                                             PIECE(c->work), VALUE(plan)};
    const struct gpu_argument to_nodes[] = {PIECE(r->tree_offsets), PIECE(c->work), PIECE(c->work),
                                            VALUE(plan)};
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

/* Whether a value can be worked out by a thread alone. */
static bool is_quick_value(const struct problem *p, unsigned v) {
    switch (p->value[v].op) {
    case TALLY_SUM:
        return !problem_has(p, PART_FAST) &&
               type_is_float(p->type) == type_is_float(p->value[v].type);
    case TALLY_MEAN:
        return !problem_has(p, PART_FAST) && type_is_float(p->type);
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
    const uint64_t n = s->cut == TALLY_AXES ? (uint64_t)s->results * s->each : s->n;
    const uint64_t mean = s->results ? n / s->results : 0;
    unsigned most = THREAD_MOST;
    *team = 1;
    if (s->cut == TALLY_AXES && s->keeps > 0 && s->kept[s->keeps - 1].x == 1 &&
        s->kept[s->keeps - 1].length >= TREE_LANES && s->results >= WARP_ROWS)
        most = QUICK_COLUMN;
    else if (queue->block >= TREE_LANES && mean >= TREE_LANES &&
             (s->results < THREAD_ROWS || mean > THREAD_MEAN)) {
        *team = TREE_LANES;
        most = s->results >= WARP_ROWS ? WARP_MOST : FEW_MOST;
    }
    return s->cut == TALLY_AXES && s->each > most ? 0 : most;
}

static bool takes_quick(const struct queue *queue, const struct shaped *s) {
    unsigned team;
    for (unsigned v = 0; v < s->p->values; v++)
        if (!is_quick_value(s->p, v)) return false;
    return quick_most(queue, s, &team) > 0;
}

static tally_status enqueue_quick(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *c = run->call;
    unsigned team;
    run->plan.quick_most = quick_most(queue, c->s, &team);
    run->plan.team = team;
    const uint64_t threads = (uint64_t)c->s->results * team;
    const struct gpu_argument taking[] = {PIECE(c->x),    PIECE(c->mask), PIECE(run->offsets),
                                          PIECE(c->work), PIECE(c->out),  VALUE(run->plan)};
    return queue->api->launch(queue->gpu, queue->part[QUICK],
                              parts_grid(queue, (threads + queue->block - 1) / queue->block),
                              queue->block, taking, 6);
}

static const struct strategy quick = {takes_quick, NULL, NULL, enqueue_quick, false, NULL};

/* The first that takes a problem and a shape is asked to do it. */
static const struct strategy *const strategies[] = {
    &columns_strategy, /* results side by side */
    &rows_strategy,    /* elements side by side */
    &groups_strategy,  /* ids in any order */
    &quick,            /* a thread or a warp for each short row */
};

static const struct strategy *choose(const struct queue *queue, const struct shaped *s) {
    for (size_t i = 0; i < sizeof strategies / sizeof *strategies && s->results > 0; i++)
        if (strategies[i]->takes(queue, s)) return strategies[i];
    return NULL;
}

/* Returns another mark than the last 254 calls had, whose rows the same work may still name. */
static uint64_t next_mark(struct queue *queue) {
    return queue->mark = queue->mark % 255 + 1;
}

/* Has the strategy put its launches under way, after clearing what has to be 0 before them: the bits of rows that it
 * leaves, or all words of one that is alone. Marks need none where there are words at all. */
static tally_status follow(struct run *r, struct gpu_memory *offsets) {
    struct queue *queue = r->queue;
    struct parts_run own = {
        .queue = queue, .call = r->c, .offsets = offsets, .plan = r->plan, .own = r->l.own};
    const uint64_t end = r->l.alone ? r->l.bytes : 8 * r->l.own;
    tally_status s = TALLY_OK;
    if (!r->l.marked || !r->c->written)
        s = queue->api->fill(queue->gpu, r->c->work, 8 * r->l.left, 0, end - 8 * r->l.left);
    return s == TALLY_OK ? r->l.strategy->enqueue(&own) : s;
}

/* ---- Few elements --------------------------------------------------------------------------- */

bool parts_are_few(const struct problem *p, uint64_t results, uint64_t each) {
    return !problem_has(p, PART_TREE) && results > 0 && each > 0 && results <= FEW_ROWS &&
           each <= FEW_EACH && results * each <= FEW_ELEMENTS;
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
    r.plan.unasked = 1;
    r.plan.as_results = as_results;
    const struct gpu_argument arguments[] = {PIECE(call->x), PIECE(call->y), PIECE(call->mask),
                                             PIECE(call->out), VALUE(r.plan)};
    tally_status status = find_parts(queue);
    if (status != TALLY_OK) return status;
    return launch(&r, FEW, parts_grid(queue, s->results), arguments, 5);
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

/* ---- All of it ------------------------------------------------------------------------------- */

tally_status parts_enqueue(struct queue *queue, const struct parts_call *call) {
    const struct shaped *shaped = call->s;
    struct run r = {.queue = queue, .c = call};
    if (call->unasked && shaped->cut == TALLY_AXES &&
        parts_are_few(shaped->p, shaped->results, shaped->each))
        return enqueue_few(queue, call, false);
    lay_out(queue, shaped, &r.l);
    make_plan(call, &r.l, &r.plan);
    if (r.l.marked) r.plan.left |= next_mark(queue) << PARTS_MARK_AT;
    tally_status s = find_parts(queue);
    if (s == TALLY_OK && !call->keep_outcome && !r.plan.unasked)
        s = queue->api->fill(queue->gpu, call->work, 0, 0xff, 8 * HEAD_WORDS);
    if (r.l.alone) return s == TALLY_OK ? follow(&r, NULL) : s;
    if (s == TALLY_OK) s = find_rows(&r);
    if (s != TALLY_OK || shaped->results == 0) return s;
    if (problem_has(shaped->p, PART_TREE)) s = evaluate_trees(&r);
    if (s != TALLY_OK) return s;
    r.plan.tree = r.tree_rows;
    struct gpu_memory *offsets = shaped->cut == TALLY_GROUPS ? call->work : call->offsets;
    const struct gpu_argument folding[] = {PIECE(call->x), PIECE(call->y),    PIECE(call->mask),
                                           PIECE(offsets), PIECE(call->work), PIECE(call->out),
                                           VALUE(r.plan)};
    const struct gpu_argument joining[] = {PIECE(offsets), PIECE(call->work), PIECE(call->out),
                                           VALUE(r.plan)};
    if (r.l.strategy) s = follow(&r, offsets);
    if (s == TALLY_OK) s = launch(&r, FOLD, r.l.grid, folding, 7);
    if (s == TALLY_OK && r.l.pieces > 1 && r.l.is_cut)
        s = launch(&r, JOIN, parts_grid(queue, r.l.pieces - 1), joining, 4);
    return s;
}

tally_status parts_report(struct queue *queue, struct gpu_memory *work, struct gpu_memory *to) {
    const struct gpu_argument arguments[] = {PIECE(work), PIECE(to)};
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
