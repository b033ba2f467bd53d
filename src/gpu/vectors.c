/* vectors.c - see vectors.h. */
#include "gpu/vectors.h"

#include "base/types.h"
#include "gpu/area.h"
#include "gpu/capability.h"
#include "gpu/column_values.h"
#include "gpu/programs.h"
#include "gpu/quick.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

#include "kernels/vectors.h"

#include <string.h>

#define ROWS_MOST  ((size_t)1 << 31)
#define TEAM_UNITS 32 /* the most units of a team: the lanes of a warp */

struct vectors_layout {
    const struct capability *fold;
    tally_type type; /* that the program is compiled for */
    bool wide;       /* a unit is several columns */
    uint64_t slabs, columns;
    unsigned width, tiles, readers; /* kernels/vectors.h */
    uint64_t piece, pieces;
    /* The words of the strategy's part of the workspace at which `heads` and `edges` begin; all words of that part. */
    uint64_t heads, edges, words;
};

/* Returns the threads of a block. */
static unsigned block_of(const struct queue *queue) {
    return block_or(queue, GPU_VECTORS_BLOCK);
}

static uint64_t parts_of(uint64_t whole, uint64_t part) {
    return (whole + part - 1) / part;
}

/* Returns whether the shape has columns along its innermost kept dimension, or a single one. */
static bool has_columns(const struct shaped *s) {
    const size_t step = (size_t)s->reduced[0].x; /* a negative one is large */
    return step < ROWS_MOST / type_size(s->p->type) && s->cut != TALLY_AXES &&
           (!s->mask || parts_drop_hidden(s)) && !s->y && s->results > 0 && s->keeps > 0 &&
           s->keeps <= 2 && (s->keeps == 1 || s->kept[1].x == 1) && s->n < ROWS_MOST &&
           s->count < ROWS_MOST && s->vectors < ROWS_MOST;
}

/* Returns the weight of a piece: an even share of the work for each team that the device runs at once. A piece below
 * VECTORS_PIECE_GOOD is made up to four times as large, so that at most three quarters of the device are idle. */
static uint64_t piece_of(const struct queue *queue, const struct shaped *s,
                         const struct vectors_layout *l) {
    const uint64_t threads =
        queue_units(queue) * (CPU_SHAPED(queue->block) ? 2 : GPU_VECTORS_THREADS_A_UNIT);
    const uint64_t teams = threads / l->width;
    const uint64_t weight =
        ((uint64_t)s->n + (uint64_t)s->count * VECTORS_PART) * l->tiles * l->slabs;
    const uint64_t few = 4 * weight / teams;
    uint64_t piece = parts_of(weight, teams);
    if (piece < VECTORS_PIECE_GOOD) piece = few < VECTORS_PIECE_GOOD ? few : VECTORS_PIECE_GOOD;
    return piece < VECTORS_PIECE_LEAST ? VECTORS_PIECE_LEAST : piece;
}

/* Returns whether these kernels are for the problem and the shape, and lays out its pieces. */
static bool lay_out(const struct queue *queue, const struct shaped *s, struct vectors_layout *l) {
    memset(l, 0, sizeof *l);
    if (!CPU_SHAPED(queue->block) && block_of(queue) % TEAM_UNITS != 0)
        return false; /* whole warps */
    if (!queue->facts->doubles || !has_columns(s) || !(l->fold = capability_for(BY_VECTORS, s->p)))
        return false;
    l->type = capability_type(l->fold, s->p);
    const bool has_slabs = s->keeps > 1 || s->kept[0].x != 1;
    const struct extent *column = has_slabs && s->keeps == 1 ? NULL : &s->kept[s->keeps - 1];
    const ptrdiff_t vector = type_size(l->type) == 8 ? 2 : 4;
    l->slabs = has_slabs ? (unsigned)s->kept[0].length : 1;
    l->columns = column ? (unsigned)column->length : 1;
    /* The lanes of a warp of `quick` read neighbouring elements of one vector together, which is faster. */
    if (l->columns == 1 && s->reduced[0].x == 1 && quick_gives_values(s->p)) return false;
    l->wide = l->columns % (unsigned)vector == 0 && s->reduced[0].x % vector == 0 &&
              (!has_slabs || s->kept[0].x % vector == 0);
    const uint64_t across = l->wide ? l->columns / (unsigned)vector : l->columns;
    const uint64_t most = block_of(queue) < TEAM_UNITS ? block_of(queue) : TEAM_UNITS;
    const uint64_t tiles = parts_of(across, most);
    l->tiles = (unsigned)tiles;
    l->width = (unsigned)parts_of(across, tiles);
    l->readers = TEAM_UNITS % l->width == 0 ? l->width : 1;
    l->piece = piece_of(queue, s, l);
    l->pieces = (unsigned)parts_of((uint64_t)s->n + (uint64_t)s->count * VECTORS_PART, l->piece);
    l->heads = 0;
    l->edges = 2 * (uint64_t)l->pieces;
    l->words = l->edges + 2 * (uint64_t)l->pieces * l->fold->words * s->vectors;
    return true;
}

/* ---- Launches ------------------------------------------------------------------------------ */

enum { WIDE, NARROW, JOIN, KERNELS };
static const char *const names[KERNELS] = {"wide", "narrow", "join_vectors"};

#if defined(TALLY_DEBUG)
static const char *const kernel_names[KERNELS] = {
    [WIDE] = "wide", [NARROW] = "narrow", [JOIN] = "join_vectors"};
static const struct path_axis kernel_axis = PATH_AXIS(kernel_names);
static const char *never_vectors(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    return capability_for(BY_VECTORS, &p) ? NULL : "columns have no fold for it";
}
PATH_TABLE(vectors_paths, "vectors on a GPU", never_vectors, &kernel_axis, &path_ops, &path_types);
#endif

static tally_status find_kernels(struct queue *queue, const struct problem *p,
                                 const struct vectors_layout *l, struct gpu_kernel *const **out) {
    const char *wanted[KERNELS] = {[JOIN] = names[JOIN]};
    const unsigned fold = l->wide ? WIDE : NARROW;
    wanted[fold] = names[fold];
    return program_kernels(queue, BY_VECTORS, l->fold, p, false, wanted, KERNELS, out);
}

static void make_plan(const struct parts_run *run, const struct vectors_layout *l,
                      vectors_plan *plan) {
    const struct parts_call *call = run->call;
    const struct shaped *s = call->s;
    const bool has_slabs = s->keeps > 1 || s->kept[0].x != 1;
    const struct extent *column = &s->kept[s->keeps - 1];
    memset(plan, 0, sizeof *plan);
    plan_column_values(run, 0, &plan->values);
    plan->parts = run->plan.rows;
    plan->parts.count = s->count;
    plan->parts.vectors = 1;
    plan->order = run->plan.order;
    plan->slabs = l->slabs;
    plan->columns = l->columns;
    plan->x = call->first_x;
    plan->slab_step = has_slabs ? s->kept[0].x : 0;
    plan->row_bytes = (uint32_t)s->reduced[0].x * (uint32_t)type_size(s->p->type);
    plan->out_first = s->out_first;
    plan->out_slab = has_slabs ? s->kept[0].out : 0;
    plan->out_part = s->reduced[0].out;
    plan->out_column = l->columns > 1 ? column->out : 1;
    plan->piece = l->piece;
    plan->pieces = l->pieces;
    /* To cut a part costs a join, and not to cut it makes pieces uneven. */
    plan->whole = l->piece / 4 < VECTORS_WHOLE_MOST ? l->piece / 4 : VECTORS_WHOLE_MOST;
    plan->left = run->plan.left;
    plan->is_cut = run->flags;
    plan->heads = run->own + l->heads;
    plan->edges = run->own + l->edges;
    plan->width = l->width;
    plan->tiles = l->tiles;
    plan->readers = plan->order ? l->readers : 1;
    const uint64_t vectors = s->vectors;
    plan->shares =
        (unsigned)(vectors < 64 * VECTORS_SHARES ? parts_of(vectors, 64) : VECTORS_SHARES);
    plan->slices = (unsigned)(vectors < 4 * VECTORS_SLICES ? parts_of(vectors, 4) : VECTORS_SLICES);
    plan->absolute = run->plan.absolute;
}

static tally_status enqueue(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *call = run->call;
    struct vectors_layout l;
    vectors_plan plan;
    lay_out(queue, call->s, &l);
    struct gpu_kernel *const *kernel;
    tally_status s = find_kernels(queue, call->s->p, &l, &kernel);
    if (s != TALLY_OK) return s;
    make_plan(run, &l, &plan);
    const struct gpu_argument folding[] = {BUFFER(call->x), BUFFER(run->offsets),
                                           BUFFER(call->work), BUFFER(call->out), VALUE(plan)};
    const struct gpu_argument joining[] = {BUFFER(call->work), BUFFER(call->out), VALUE(plan)};
    const uint64_t tasks = (uint64_t)l.pieces * l.tiles * l.slabs;
    const unsigned most = 8 * parts_blocks_at_once(queue);
    const uint64_t folds = parts_of(tasks, block_of(queue) / (l.width ? l.width : 1)),
                   joins = JOIN_FEW_TASKS(l.pieces, block_of(queue), plan.shares);
    TALLY_PATH_OF_VALUE(vectors_paths, call->s->p, l.wide ? WIDE : NARROW);
    TALLY_PATH_OF_VALUE(vectors_paths, call->s->p, JOIN);
    s = queue->api->launch(queue->gpu, kernel[l.wide ? WIDE : NARROW],
                           (unsigned)(folds < VECTORS_GRID_MOST ? folds : VECTORS_GRID_MOST),
                           block_of(queue), folding, 5);
    if (s == TALLY_OK)
        s = queue->api->launch(queue->gpu, kernel[JOIN], (unsigned)(joins < most ? joins : most),
                               block_of(queue), joining, 3);
    return s;
}

static bool takes(const struct queue *queue, const struct shaped *s) {
    struct vectors_layout l;
    return lay_out(queue, s, &l);
}

static uint64_t words(const struct queue *queue, const struct shaped *s) {
    struct vectors_layout l;
    lay_out(queue, s, &l);
    return l.words;
}

static tally_status prepare(struct queue *queue, const struct shaped *s) {
    struct vectors_layout l;
    lay_out(queue, s, &l);
    struct gpu_kernel *const *found;
    return find_kernels(queue, s->p, &l, &found);
}

const struct strategy vectors_strategy = {
    .takes = takes, .words = words, .prepare = prepare, .enqueue = enqueue};
