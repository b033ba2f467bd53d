/* columns.c - see columns.h. */
#include "gpu/columns.h"

#include "base/hash.h"
#include "base/types.h"
#include "gpu/capability.h"
#include "gpu/column_values.h"
#include "gpu/filled.h"
#include "gpu/programs.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

#include "kernels/columns.h"

#include <stdlib.h>
#include <string.h>

struct columns_layout {
    const struct capability *fold;
    tally_type type; /* that the program is compiled for */
    bool wide;       /* a unit is several columns */
    unsigned width, strands, depth, tiles, chunks, chunk, groups; /* kernels/columns.h */
    unsigned join_width, join_strands, join_tiles;                /* the same for `join` */
    uint64_t words; /* of the workspace: the states of chunks */
};

/* ---- Tiles --------------------------------------------------------------------------------- */

#define ROWS_MOST  ((size_t)1 << 31)
#define TASKS_MOST ((uint64_t)1 << 31)
/* A task is a tile of one chunk. A round is as many tasks as the device runs at once. */
/* Rows that a thread loads at a time (kernels/columns.cu). */
#define WIDE_ROWS(l)   (type_size((l)->type) == 2 ? 8 : 4)
#define NARROW_ROWS(l) (type_size((l)->type) == 8 ? 8 : 16)

static uint64_t parts_of(uint64_t whole, uint64_t part) {
    return (whole + part - 1) / part;
}

/* Returns the columns of a unit. */
static uint64_t vector_of(const struct columns_layout *l) {
    return !l->wide ? 1 : type_size(l->type) == 8 ? 2 : 4;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

/* Lays out tiles of `width` units by `strands` strands. It cuts rows into chunks that make `rounds`
 * rounds. Returns the layout's merit: the share of the device's threads with work, less the cost of
 * the chunks' states, the merges of strands and the last round; 0 if it is impossible. */
static double tile(const struct queue *queue, const struct shaped *s, unsigned width,
                   unsigned strands, unsigned rounds, struct columns_layout *l) {
    const struct extent *row = &s->reduced[0], *column = &s->kept[s->keeps - 1];
    const unsigned rows = l->wide ? WIDE_ROWS(l) : NARROW_ROWS(l), block = queue->block;
    const unsigned units = queue_units(queue);
    const uint64_t at_once = (uint64_t)units * l->fold->blocks;
    const uint64_t slabs = s->keeps > 1 ? s->kept[0].length : 1;
    const uint64_t across = column->length / vector_of(l);
    const uint64_t tiles = parts_of(across, width);
    l->width = width;
    l->strands = strands;
    l->depth = (unsigned)least(block / (width * l->strands), slabs);
    const uint64_t groups = parts_of(slabs, l->depth), step = (uint64_t)l->strands * rows;
    uint64_t chunks = at_once * rounds / (tiles * groups);
    if (chunks > row->length / (step * COLUMNS_CHUNK_TILES))
        chunks = row->length / (step * COLUMNS_CHUNK_TILES);
    if (chunks == 0) chunks = 1;
    const uint64_t chunk =
        chunks == 1 ? row->length : parts_of(parts_of(row->length, chunks), step) * step;
    chunks = parts_of(row->length, chunk);
    if (tiles >= TASKS_MOST || groups >= TASKS_MOST || tiles * groups >= TASKS_MOST / chunks)
        return 0;
    l->tiles = (unsigned)tiles;
    l->groups = (unsigned)groups;
    l->chunks = (unsigned)chunks;
    l->chunk = (unsigned)chunk;
    l->words = chunks > 1 ? chunks * s->results * l->fold->words : 0;
    const uint64_t tasks = tiles * groups * chunks;
    const double done = (double)tasks / (double)at_once,
                 took = (double)parts_of(tasks, at_once) + COLUMNS_UNEVEN;
    const double bytes = (double)s->results * (double)s->each * (double)type_size(l->type);
    const double own = (double)least(row->length, chunk) / strands; /* rows of a thread */
    double meetings = 0;
    for (unsigned left = strands; left > 1; left = (left + 1) / 2)
        meetings += COLUMNS_MEETING;
    const double used = (double)(across * slabs) / (double)(tiles * width * groups * l->depth);
    return used * (double)(width * l->strands * l->depth) / block * done / took * own /
           (own + meetings) / (1 + 16 * (double)l->words / bytes);
}

/* Lays out the tiles of `join`. A tile is halved until a thread has at most JOIN_CHUNKS chunks, but keeps
 * JOIN_WIDTH_LEAST results side by side, so that neighbouring threads read neighbouring words. */
static void lay_out_join(const struct queue *queue, const struct shaped *s,
                         struct columns_layout *l) {
    unsigned width = queue->block;
    while (width > JOIN_WIDTH_LEAST && queue->block / width * JOIN_CHUNKS < l->chunks)
        width /= 2;
    if (s->results < width) width = (unsigned)s->results;
    l->join_width = width;
    l->join_strands = (unsigned)least(queue->block / width, l->chunks);
    l->join_tiles = (unsigned)parts_of(s->results, width);
}

/* Returns whether the shape has columns: neighbouring results are of neighbouring elements. */
static bool has_columns(const struct shaped *s) {
    return s->cut == TALLY_AXES && !s->mask && !s->y && s->results > 0 && s->reduces == 1 &&
           (s->keeps == 1 || s->keeps == 2) && s->kept[s->keeps - 1].x == 1 && s->each > 0 &&
           s->each < ROWS_MOST;
}

/* Lays out the best tiles; returns whether there are any. */
static bool find_tiles(const struct queue *queue, const struct shaped *s,
                       struct columns_layout *l) {
    const ptrdiff_t vector = type_size(l->type) == 8 ? 2 : 4;
    const size_t columns = s->kept[s->keeps - 1].length;
    const uint64_t wide = (uint64_t)queue->block * (uint64_t)vector * WIDE_ROWS(l); /* of a block */
    /* One column a thread keeps more threads busy where elements are few. The kernel for few rows takes wide units. */
    const bool are_few = s->each > WIDE_ROWS(l) && s->results * s->each < queue_units(queue) * wide;
    l->wide = columns % (size_t)vector == 0 && s->reduced[0].x % vector == 0 &&
              (s->keeps == 1 || s->kept[0].x % vector == 0) && !are_few;
    const size_t across = l->wide ? columns / (size_t)vector : columns;
    struct columns_layout best = *l;
    double most = 0;
    /* Tries as many units as a block has threads for, or all, and then fewer: multiples of COLUMNS_WIDTH_LEAST. */
    size_t width = across < queue->block ? across : queue->block;
    while (width > 0) {
        const uint64_t most_strands =
            least(queue->block / width, parts_of(s->each, l->wide ? WIDE_ROWS(l) : NARROW_ROWS(l)));
        for (unsigned strands = (unsigned)most_strands; strands > 0; strands /= 2)
            for (unsigned rounds = 1; rounds <= COLUMNS_ROUNDS; rounds++) {
                struct columns_layout it = *l;
                const double good = tile(queue, s, (unsigned)width, strands, rounds, &it);
                if (good > most * 1.01) {
                    most = good;
                    best = it;
                }
                if (it.chunks == 1) break;
            }
        width = (width - 1) / COLUMNS_WIDTH_LEAST * COLUMNS_WIDTH_LEAST;
    }
    *l = best;
    if (l->chunks > 1) lay_out_join(queue, s, l);
    return most > 0;
}

/* The inputs of find_tiles(): the fold, the type, and these numbers of a shape that
 * has_columns(). */
struct columns_key {
    uint64_t fold, type, results, each;
    uint64_t keeps, slabs, columns; /* kept dimensions; their lengths, slabs 0 if there is one */
    ptrdiff_t slab_step, row_step;
};

/* Tiles that have been laid out before: `found` is what find_tiles() returned. */
struct known_columns {
    struct columns_key key;
    struct columns_layout layout;
    bool known, found;
};

/* Returns the place where the tiles for a key are remembered, in memory that the queue frees; NULL: nowhere. */
static struct known_columns *place_of(const struct queue *queue, const struct columns_key *key) {
    struct known_columns *const all = queue->caches[CACHE_COLUMNS];
    return all ? &all[hash_words(key, sizeof *key) % KNOWN_COLUMNS] : NULL;
}

/* Returns whether these kernels are for the problem and the shape, and lays out the best tiles. The
 * arrays' addresses do not count, so the workspace is the same for all. A search of all tiles takes
 * longer than a launch, so a cache keeps the last layouts. */
static bool lay_out(const struct queue *queue, const struct shaped *s, struct columns_layout *l) {
    memset(l, 0, sizeof *l);
    if (CPU_SHAPED(queue->block) || !queue->facts->doubles || !has_columns(s) ||
        !(l->fold = capability_for(BY_COLUMNS, s->p)))
        return false;
    l->type = capability_type(l->fold, s->p);
    const bool has_slabs = s->keeps > 1;
    const struct columns_key key = {.fold = capability_number(BY_COLUMNS, l->fold),
                                    .type = (uint64_t)l->type,
                                    .results = s->results,
                                    .each = s->each,
                                    .keeps = s->keeps,
                                    .slabs = has_slabs ? s->kept[0].length : 0,
                                    .columns = s->kept[s->keeps - 1].length,
                                    .slab_step = has_slabs ? s->kept[0].x : 0,
                                    .row_step = s->reduced[0].x};
    struct known_columns *place = place_of(queue, &key);
    if (place && place->known && memcmp(&place->key, &key, sizeof key) == 0) {
        TALLY_PATH("tiles that are known");
        *l = place->layout;
        return place->found;
    }
    const bool found = find_tiles(queue, s, l);
    if (place)
        *place = (struct known_columns){.key = key, .layout = *l, .known = true, .found = found};
    return found;
}

/* ---- Launches ------------------------------------------------------------------------------ */

enum { WIDE, NARROW, JOIN, FEW, KERNELS };
static const char *const names[KERNELS] = {"wide", "narrow", "join", "few"};

/* Returns whether the program has a kernel for few rows: all but those of sums of f64. */
static bool has_few(const struct columns_layout *l) {
    return l->type != TALLY_F64 || l->fold->monoids != MONOID_BIT(MONOID_SUM);
}

#if defined(TALLY_DEBUG)
static const char *const kernel_names[KERNELS] = {
    [WIDE] = "wide", [NARROW] = "narrow", [JOIN] = "join", [FEW] = "few"};
static const struct path_axis kernel_axis = PATH_AXIS(kernel_names);
static const char *never_columns(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct columns_layout l;
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (!(l.fold = capability_for(BY_COLUMNS, &p))) return "columns have no fold for it";
    l.type = capability_type(l.fold, &p);
    return at[0] == FEW && !has_few(&l) ? "sums of f64 have no such kernel" : NULL;
}
PATH_TABLE(columns_paths, "columns on a GPU", never_columns, &kernel_axis, &path_ops, &path_types);
#endif

/* Returns which kernel folds the columns. */
static unsigned kernel_for(const struct queue *queue, const struct shaped *s,
                           const struct columns_layout *l) {
    const uint64_t blocks = parts_of(s->kept[s->keeps - 1].length / vector_of(l), queue->block);
    const bool are_few = has_few(l) && l->wide && (s->keeps == 1 || s->kept[0].length == 1) &&
                         s->each <= WIDE_ROWS(l) && blocks < TASKS_MOST;
    return are_few ? FEW : l->wide ? WIDE : NARROW;
}

/* Finds the kernel that folds the columns, and JOIN if it follows. */
static tally_status find_kernels(struct queue *queue, const struct shaped *shape,
                                 const struct columns_layout *l, struct gpu_kernel *const **out) {
    const char *wanted[KERNELS] = {0};
    const unsigned first = kernel_for(queue, shape, l);
    wanted[first] = names[first];
    if (first != FEW && l->chunks > 1) wanted[JOIN] = names[JOIN];
    return program_kernels(queue, BY_COLUMNS, l->fold, shape->p, filled_matters(shape), wanted,
                           KERNELS, out);
}

static void make_plan(const struct parts_run *run, const struct columns_layout *l,
                      columns_plan *plan) {
    const struct parts_call *call = run->call;
    const struct shaped *s = call->s;
    const struct extent *column = &s->kept[s->keeps - 1];
    memset(plan, 0, sizeof *plan);
    plan->slabs = s->keeps > 1 ? s->kept[0].length : 1;
    plan->columns = column->length;
    plan->rows = s->each;
    plan->x = call->first_x;
    plan->slab_step = s->keeps > 1 ? s->kept[0].x : 0;
    plan->row_step = s->reduced[0].x;
    plan->out_first = s->out_first;
    plan->out_slab = s->keeps > 1 ? s->kept[0].out : 0;
    plan->out_column = column->out;
    plan->left = run->plan.left;
    plan->states = run->own;
    plan->width = l->width;
    plan->strands = l->strands;
    plan->depth = l->depth;
    plan->tiles = l->tiles;
    plan->chunks = l->chunks;
    plan->chunk = l->chunk;
    plan->groups = l->groups;
    plan_column_values(run, s->each, &plan->values);
    plan->counts = run->plan.counts;
    plan->wide_counts = run->plan.wide_counts;
    plan->leaves_none = run->plan.leaves_none;
}

#define GRID_MOST 65536u

static unsigned grid_of(uint64_t tasks) {
    return tasks < GRID_MOST ? (unsigned)tasks : GRID_MOST;
}

static tally_status enqueue(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *call = run->call;
    struct columns_layout layout, *l = &layout;
    columns_plan plan, joined;
    lay_out(queue, call->s, l);
    struct gpu_kernel *const *kernel;
    tally_status s = find_kernels(queue, call->s, l, &kernel);
    if (s != TALLY_OK) return s;
    make_plan(run, l, &plan);
    joined = plan;
    joined.width = l->join_width;
    joined.strands = l->join_strands;
    joined.tiles = l->join_tiles;
    joined.depth = 1;
    const struct gpu_argument folding[] = {BUFFER(call->x), BUFFER(call->work), BUFFER(call->out),
                                           VALUE(plan)};
    const struct gpu_argument joining[] = {BUFFER(call->x), BUFFER(call->work), BUFFER(call->out),
                                           VALUE(joined)};
    const unsigned first = kernel_for(queue, call->s, l);
    TALLY_PATH_OF_VALUE(columns_paths, call->s->p, first);
    if (first == FEW) {
        const uint64_t blocks = parts_of(plan.columns / vector_of(l), queue->block);
        return queue->api->launch(queue->gpu, kernel[FEW], (unsigned)blocks, queue->block, folding,
                                  4);
    }
    if (l->chunks > 1) TALLY_PATH_OF_VALUE(columns_paths, call->s->p, JOIN);
    if (call->s->filled) TALLY_PATH("columns of a filled copy");
    s = queue->api->launch(queue->gpu, kernel[first],
                           grid_of((uint64_t)l->tiles * l->chunks * l->groups), queue->block,
                           folding, 4);
    if (s == TALLY_OK && l->chunks > 1)
        s = queue->api->launch(queue->gpu, kernel[JOIN], grid_of(l->join_tiles), queue->block,
                               joining, 4);
    return s;
}

static bool takes(const struct queue *queue, const struct shaped *s) {
    struct columns_layout l;
    return lay_out(queue, s, &l);
}

static uint64_t words(const struct queue *queue, const struct shaped *s) {
    struct columns_layout l;
    lay_out(queue, s, &l);
    return l.words;
}

static tally_status prepare(struct queue *queue, const struct shaped *s) {
    struct columns_layout l;
    if (!queue->caches[CACHE_COLUMNS]) /* (without the cache, each call lays out tiles again) */
        queue->caches[CACHE_COLUMNS] = calloc(KNOWN_COLUMNS, sizeof(struct known_columns));
    struct gpu_kernel *const *found;
    lay_out(queue, s, &l);
    return find_kernels(queue, s, &l, &found);
}

static bool is_certain(const struct queue *queue, const struct shaped *s) {
    const struct capability *c = capability_for(BY_COLUMNS, s->p);
    return c->certain || capability_adds_again(c, queue, s, COLUMNS_AGAIN_MOST);
}

const struct strategy columns_strategy = {.takes = takes,
                                          .words = words,
                                          .prepare = prepare,
                                          .enqueue = enqueue,
                                          .is_certain = is_certain};
