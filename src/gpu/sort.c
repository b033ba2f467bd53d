/* sort.c - see sort.h. */
#include "gpu/sort.h"

#include "base/status.h"
#include "base/types.h"
#include "gpu/programs.h"
#include "gpu/tuning.h"
#include "kernels/sort.h"
#include "kernels/tuning.h"

#include <string.h>

#define GROUPS_SORTED  ((uint64_t)UINT32_MAX) /* groups are fewer: kernels/sort.cu */
#define LOOKS_A_THREAD 4                      /* ids that a thread looks at, at least */

/* ---- Which groups -------------------------------------------------------------------------- */

bool sort_is_needed(const struct shaped *s) {
    return s->cut == TALLY_GROUPS && (!s->sorted || s->mask || s->skip_outside);
}

bool sort_carries_elements(const struct shaped *s) {
    return sort_is_needed(s) && !(s->p->extremes & WANT_INDEX) && shape_is_flat(s);
}

struct shaped sort_outcome(const struct shaped *s) {
    struct shaped a = *s;
    a.sorted = 1;
    a.skip_outside = 0;
    a.mask = NULL;
    return a;
}

bool sort_is_possible(const struct shaped *s) {
    return s->cut != TALLY_GROUPS || s->sorted || s->count < GROUPS_SORTED;
}

tally_status sort_check(const struct shaped *s) {
    if (sort_is_possible(s)) return TALLY_OK;
    return fail(
        TALLY_EUNSUPPORTED,
        "%zu groups, where a device brings elements into the order of up to %llu: sort them by "
        "their ids, and promise it (shape.sorted)",
        s->count, (unsigned long long)GROUPS_SORTED - 1);
}

/* ---- Layout ---------------------------------------------------------------------------------- */

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

/* Returns the most bits of a digit in a sort of n elements. */
static unsigned bits_of_pass(const struct queue *queue, uint64_t n) {
    if (!sorts_tiles(queue)) return SORT_THREAD_BITS(queue->block);
    return n <= SORT_CACHED_MOST ? SORT_TILE_BITS : SORT_MEMORY_BITS;
}

/* Returns the grid that sorts n elements. */
static unsigned grid_for(const struct queue *queue, uint64_t n) {
    const unsigned units = queue_units(queue);
    const uint64_t tile = (uint64_t)queue->block * SORT_EACH(queue->block) * SORT_TILES_A_BLOCK;
    const uint64_t each = sorts_tiles(queue) ? tile : (uint64_t)queue->block * SORT_WORKER_LEAST;
    const uint64_t blocks = (n + each - 1) / each, most = (uint64_t)units * SORT_BLOCKS_A_UNIT;
    return blocks == 0 ? 1 : blocks < most ? (unsigned)blocks : (unsigned)most;
}

unsigned sort_looks_grid(const struct queue *queue, uint64_t n) {
    const unsigned most = parts_blocks_at_once(queue) * LOOKS_A_BLOCK;
    const uint64_t blocks = n / (queue->block * LOOKS_A_THREAD) + 1;
    return blocks < most ? (unsigned)blocks : most;
}

/* Returns whether the sort has to make the ids that it begins with. */
static bool makes_keys(const struct sort_layout *o, const struct shaped *s) {
    return o->compacts || s->mask || type_size(s->ids_type) < 4;
}

void sort_lay_out(const struct queue *queue, const struct shaped *s, struct sort_layout *o,
                  struct area *area) {
    const unsigned most = bits_of_pass(queue, o->n);
    const size_t count = o->compacts ? 1 : s->count; /* ids are below it */
    const unsigned bits = count > 0 ? bits_for((uint64_t)count - 1) : 0;
    if (!o->is_wanted) return;
    o->passes = bits == 0 ? 1 : (bits + most - 1) / most;
    o->digit = (bits + o->passes - 1) / o->passes;
    o->wide = o->n >> 32 != 0;
    const uint64_t size = o->arrays == 0 ? (o->wide ? 8 : 4) : type_size(s->p->type);
    const uint64_t each = (o->n * size + 15) / 16 * 2; /* words; packs of 16 bytes are read */
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned a = 0; (a == 0 || a < o->arrays) && i < o->passes; a++)
            o->carried[a][i] = area_take_pairs(area, each);
        if (i == 0 ? o->passes == 1 : o->passes == 1 && !makes_keys(o, s)) continue;
        o->keys[i] = area_take_pairs(area, (o->n + 3) / 4 * 2);
    }
    o->workers = (uint64_t)grid_for(queue, o->n) * (sorts_tiles(queue) ? 1 : queue->block);
    o->totals = area_take(area, (uint64_t)1 << o->digit);
    o->counts = area_take(area, o->workers << o->digit);
}

/* ---- Launches -------------------------------------------------------------------------------- */

enum { KEYS, COUNT, SCAN, SCATTER, SCATTER_32, SCATTER_64 };
static const char *const names[SORT_KERNELS] = {
    [KEYS] = "keys",       [COUNT] = "count",           [SCAN] = "scan",
    [SCATTER] = "scatter", [SCATTER_32] = "scatter_32", [SCATTER_64] = "scatter_64"};

/* Returns the kernel that moves the values of a sort. */
static unsigned scatter_for(const struct queue *queue, const struct sort_plan *sort) {
    if (!sorts_tiles(queue) || sort->arrays > 1) return SCATTER;
    return sort->width == 32 ? SCATTER_32 : sort->width == 64 ? SCATTER_64 : SCATTER;
}

tally_status sort_prepare(struct queue *queue) {
    struct gpu_program *program = NULL;
    struct gpu_kernel *found[SORT_KERNELS] = {0};
    const char *own[SORT_KERNELS];
    if (queue->sort[0]) return TALLY_OK;
    for (unsigned i = 0; i < SORT_KERNELS; i++)
        own[i] = i <= SCATTER || sorts_tiles(queue) ? names[i] : NULL;
    tally_status s = program_build_plain(queue, "sort.cu", &program);
    if (s == TALLY_OK) s = program_find(queue, program, own, SORT_KERNELS, found);
    if (s == TALLY_OK) memcpy(queue->sort, found, sizeof found);
    return s;
}

tally_status sort_enqueue(struct queue *queue, const struct parts_call *c,
                          const struct sort_layout *o, const struct parts_plan *plan) {
    const struct gpu_api *api = queue->api;
    const unsigned grid = grid_for(queue, o->n), digits = 1u << o->digit;
    const bool has_keys = makes_keys(o, c->s);
    struct gpu_memory *offsets = c->s->cut == TALLY_GROUPS ? c->work : c->offsets;
    struct sort_plan sort = {.counts = o->counts,
                             .totals = o->totals,
                             .starts = o->passes == 1 ? o->starts : 0,
                             .bits = o->digit,
                             .compacts = o->compacts,
                             .arrays = o->arrays};
    sort.width = o->arrays > 0 ? 8 * (uint32_t)type_size(c->s->p->type) : o->wide ? 64 : 32;
    sort.most = o->compacts ? 1 : (uint32_t)c->s->count;
    if (!o->compacts && c->s->ids_type == TALLY_I32 && sort.most >> 31)
        sort.most = (uint32_t)1 << 31;
    tally_status s = sort_prepare(queue);
    if (sorts_tiles(queue))
        TALLY_PATH("tiles");
    else
        TALLY_PATH("stretches");
    if (o->passes > 1) TALLY_PATH("several passes");
    if (o->arrays == 0) TALLY_PATH("numbers of elements");
    if (o->arrays == 1) TALLY_PATH("elements");
    if (o->arrays == 2) TALLY_PATH("pairs of elements");
    if (has_keys) TALLY_PATH("keys");
    if (o->compacts) TALLY_PATH("what a mask leaves");
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
        sort.wide_ids = pass == 0 && !has_keys && type_size(c->s->ids_type) == 8;
        const struct gpu_argument making[] = {BUFFER(c->ids),  BUFFER(c->mask), BUFFER(offsets),
                                              BUFFER(c->work), VALUE(*plan),    VALUE(sort)};
        const struct gpu_argument counting[] = {BUFFER(c->ids), BUFFER(c->work), VALUE(*plan),
                                                VALUE(sort)};
        const struct gpu_argument scanning[] = {BUFFER(c->work), VALUE(o->workers), VALUE(sort)};
        const struct gpu_argument moving[] = {BUFFER(c->x),    BUFFER(c->y), BUFFER(c->ids),
                                              BUFFER(c->work), VALUE(*plan), VALUE(sort)};
        if (pass == 0 && sort.keys != 0)
            s = api->launch(queue->gpu, queue->sort[KEYS], sort_looks_grid(queue, o->n),
                            queue->block, making, 6);
        if (s == TALLY_OK)
            s = api->launch(queue->gpu, queue->sort[COUNT], grid, queue->block, counting, 4);
        if (s == TALLY_OK)
            s = api->launch(queue->gpu, queue->sort[SCAN], digits, queue->block, scanning, 3);
        if (s == TALLY_OK)
            s = api->launch(queue->gpu, queue->sort[scatter_for(queue, &sort)], grid, queue->block,
                            moving, 6);
    }
    return s;
}
