/* queue.c - see queue.h. */
#include "gpu/queue.h"

#include "gpu/piece.h"
#include "gpu/recipe.h"
#include "gpu/record.h"
#include "kernels/request.h"
#include "kernels/tuning.h"
#include "lower.h"
#include "status.h"
#include "tree.h"
#include "types.h"

#include <stdatomic.h>
#include <string.h>

#define NODES_LEVELS 5         /* that one launch of `nodes` combines */
#define PATIENCE     (1 << 14) /* looks at a result before waiting by the driver: some 300 us */

_Static_assert(BOARD == 1 + RECORD_MAX, "request.h");
_Static_assert(RESULT_OK == TALLY_OK && RESULT_RANGE == TALLY_ERANGE && TALLY_F64 == 12,
               "request.h");

/* ---- Opened and closed -------------------------------------------------------------------- */

tally_status queue_open(struct queue *queue, const struct gpu_api *api, size_t index, void *context,
                        unsigned block) {
    volatile void *seen = NULL;
    *queue = (struct queue){.api = api, .block = block};
    tally_status s = api->open(index, context, &queue->gpu);
    if (s != TALLY_OK) return s;
    queue->facts = api->facts(queue->gpu);
    s = api->allocate_visible(queue->gpu, 16, &queue->result, &seen);
    queue->seen = s == TALLY_OK ? seen : NULL;
    if (s != TALLY_OK) s = api->allocate(queue->gpu, 16, &queue->result);
    if (s != TALLY_OK) queue_close(queue);
    return s;
}

void queue_close(struct queue *queue) {
    if (queue->gpu) queue->api->close(queue->gpu); /* and with it its memory and programs */
    *queue = (struct queue){0};
}

tally_status queue_reserve(struct queue *queue, struct gpu_memory **piece, size_t *has,
                           size_t bytes) {
    if (*piece && *has >= bytes) return TALLY_OK;
    queue->api->release(queue->gpu, *piece);
    *piece = NULL;
    *has = 0;
    tally_status s = queue->api->allocate(queue->gpu, bytes, piece);
    if (s == TALLY_OK) *has = bytes;
    return s;
}

static tally_status find_kernels(struct queue *queue, const struct problem *p, enum part part,
                                 struct kernels *out) {
    struct gpu_program *program = NULL;
    const bool tree = part == PART_TREE;
    tally_status s = recipe_build(queue->api, queue->gpu, queue->block, p, part, &program);
    if (s == TALLY_OK)
        s = queue->api->kernel(queue->gpu, program, tree ? "leaves" : "reduce", &out->first);
    if (s == TALLY_OK && tree) s = queue->api->kernel(queue->gpu, program, "nodes", &out->second);
    return s;
}

tally_status queue_kernels(struct queue *queue, const struct problem *p, enum part part,
                           struct kernels *out) {
    if (part == PART_TREE && p->user) return find_kernels(queue, p, part, out);
    const int bits_op = part == PART_BITS ? (int)p->bits_op - TALLY_AND : 0;
    struct kernels *known = &queue->known[part][bits_op][p->type];
    if (!known->first) {
        struct kernels found = {0};
        tally_status s = find_kernels(queue, p, part, &found);
        if (s != TALLY_OK) return s;
        *known = found;
    }
    *out = *known;
    return TALLY_OK;
}

/* ---- Sizes -------------------------------------------------------------------------------- */

static unsigned units(const struct queue *queue) {
    return queue->facts->units ? queue->facts->units : 1;
}

/* Blocks that the device has at once. */
/* Whether the part is an exact sum of floats, whose blocks are large and meet limb by limb. */
static bool is_float_sum(const struct problem *p, enum part part) {
    return part == PART_SUM && type_is_float(p->type);
}

static unsigned blocks_at_once(const struct queue *queue, const struct problem *p, enum part part) {
    if (CPU_SHAPED(queue->block)) return units(queue) * CPU_BLOCKS_A_UNIT;
    const unsigned each = is_float_sum(p, part) ? GPU_SUM_BLOCKS_A_UNIT : GPU_BLOCKS_A_UNIT;
    return units(queue) * each;
}

/* Elements of a block's tile; on a CPU, of as many as make a block worth while. */
static size_t tile_elements(const struct queue *queue, size_t element) {
    return CPU_SHAPED(queue->block) ? CPU_TILES_A_BLOCK * CPU_TILE
                                    : queue->block * GPU_TILE * 16 / element;
}

static unsigned grid_for(const struct queue *queue, const struct problem *p, enum part part,
                         uint64_t n) {
    const uint64_t tiles = n / tile_elements(queue, tally_type_size(p->type));
    uint64_t most = blocks_at_once(queue, p, part);
    if (!CPU_SHAPED(queue->block) && is_float_sum(p, part)) /* so many rounds of them */
        most *= tiles / GPU_TILES_A_BLOCK / most + 1;
    return tiles == 0 ? 1 : tiles < most ? (unsigned)tiles : (unsigned)most;
}

static unsigned tree_grid(const struct queue *queue, uint64_t blocks) {
    const unsigned most =
        units(queue) * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_BLOCKS_A_UNIT);
    return blocks == 0 ? 1 : blocks < most ? (unsigned)blocks : most;
}

uint64_t queue_launch_max(const struct queue *queue) {
    const unsigned each = CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_SUM_BLOCKS_A_UNIT;
    return (uint64_t)units(queue) * each << (PER_BLOCK_BITS - 1);
}

static uint64_t leaf_count(uint64_t n) {
    return (n + TREE_LEAF - 1) / TREE_LEAF;
}

/* The nodes of all levels that launches leave: 32 make one, and so on. */
static size_t values_bytes(const struct problem *p, uint64_t n) {
    return (leaf_count(n) + leaf_count(n) / 16 + 64) * tree_value_size(p);
}

size_t queue_workspace(const struct queue *queue, const struct problem *p, enum part part,
                       uint64_t n) {
    if (part == PART_TREE) return values_bytes(p, n);
    const size_t words = record_words(p, part);
    const size_t board = is_float_sum(p, part) ? 0 : blocks_at_once(queue, p, part);
    return 8 * (BOARD + words * board);
}

/* ---- Launches ----------------------------------------------------------------------------- */

static void *const nothing = NULL;

#define VALUE(v)                                                                                   \
    { .size = sizeof(v), .value = &(v) }
#define PIECE(m)                                                                                   \
    { .memory = (m), .size = sizeof nothing, .value = &nothing } /* NULL: a null pointer */

static tally_status launch_fold(struct queue *queue, const struct problem *p, enum part part,
                                struct gpu_memory *x, uint64_t n, struct gpu_memory *work,
                                uint32_t request, struct gpu_memory *result) {
    struct kernels k;
    const struct gpu_argument arguments[] = {PIECE(x), VALUE(n), PIECE(work), VALUE(request),
                                             PIECE(result)};
    tally_status s = queue_kernels(queue, p, part, &k);
    if (s != TALLY_OK) return s;
    return queue->api->launch(queue->gpu, k.first, grid_for(queue, p, part, n), queue->block,
                              arguments, 5);
}

/* Leaves, and subtrees of 2^level of them, to `values`; *at is where, in nodes. The last launch has the
 * request. */
static tally_status launch_tree(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                                uint64_t n, unsigned level, struct gpu_memory *values,
                                uint32_t request, struct gpu_memory *result, uint64_t *at) {
    struct kernels k;
    const unsigned warps = (queue->block + TREE_LANES - 1) / TREE_LANES;
    uint64_t count = leaf_count(n), from = 0, identity = 0;
    uint32_t asked = level == 0 ? request : 0;
    if (n == 0) identity = tree_identity_bits(p);
    const struct gpu_argument to_leaves[] = {PIECE(x),        VALUE(n),     PIECE(values),
                                             VALUE(identity), VALUE(asked), PIECE(result)};
    tally_status s = queue_kernels(queue, p, PART_TREE, &k);
    if (s != TALLY_OK) return s;
    s = queue->api->launch(queue->gpu, k.first, tree_grid(queue, (count + warps - 1) / warps),
                           queue->block, to_leaves, 6);
    while (s == TALLY_OK && level > 0) {
        const uint32_t levels = level < NODES_LEVELS ? level : NODES_LEVELS;
        const uint64_t to = from + count, parts = count / (warps * TREE_LANES) + 1;
        level -= levels;
        asked = level == 0 ? request : 0;
        const struct gpu_argument to_nodes[] = {PIECE(values), VALUE(from), VALUE(count),
                                                VALUE(levels), VALUE(to),   VALUE(asked),
                                                PIECE(result)};
        s = queue->api->launch(queue->gpu, k.second, tree_grid(queue, parts), queue->block,
                               to_nodes, 7);
        count = (count + (1u << levels) - 1) >> levels;
        from = to;
    }
    *at = from;
    return s;
}

/* ---- Adding to a record -------------------------------------------------------------------- */

static tally_status zero(struct queue *queue, const struct problem *p, enum part part,
                         struct gpu_memory *work) {
    return queue->api->fill(queue->gpu, work, 0, 0, 8 * (1 + record_words(p, part)));
}

/* Room to work in that holds nothing but 0 where it matters. */
static tally_status clean_work(struct queue *queue, const struct problem *p, enum part part) {
    struct work *work = &queue->work[part];
    const size_t bytes = queue_workspace(queue, p, part, 0);
    if (work->clean && work->bytes >= bytes) return TALLY_OK;
    tally_status s = queue_reserve(queue, &work->memory, &work->bytes, bytes);
    if (s == TALLY_OK) s = queue->api->fill(queue->gpu, work->memory, 0, 0, 8 * BOARD);
    work->clean = s == TALLY_OK;
    return s;
}

tally_status queue_clear(struct queue *queue, const struct problem *p, enum part part) {
    tally_status s = clean_work(queue, p, part);
    queue->work[part].clean = false;
    return s;
}

tally_status queue_fold(struct queue *queue, const struct problem *p, enum part part,
                        struct gpu_memory *x, uint64_t n) {
    return launch_fold(queue, p, part, x, n, queue->work[part].memory, 0, NULL);
}

tally_status queue_take(struct queue *queue, const struct problem *p, enum part part,
                        struct state *into) {
    uint64_t record[RECORD_MAX];
    tally_status s = queue->api->read(queue->gpu, record, queue->work[part].memory, 8,
                                      8 * record_words(p, part));
    if (s == TALLY_OK) record_merge(p, part, record, into);
    return s;
}

/* ---- Trees -------------------------------------------------------------------------------- */

tally_status queue_leaves(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                          uint64_t n, unsigned level, size_t *at) {
    uint64_t first = 0;
    tally_status s = queue_reserve(queue, &queue->values, &queue->values_bytes,
                                   queue_workspace(queue, p, PART_TREE, n));
    if (s == TALLY_OK) s = launch_tree(queue, p, x, n, level, queue->values, 0, NULL, &first);
    *at = (size_t)first * tree_value_size(p);
    return s;
}

/* ---- From memory of the device to a value -------------------------------------------------- */

/* The one part of a problem whose kernel gives its value. */
static enum part only_part(const struct problem *p) {
    return (enum part)__builtin_ctz(p->parts);
}

tally_status queue_start(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                         uint64_t n, struct gpu_memory *work, bool clean,
                         struct gpu_memory *result) {
    const enum part part = only_part(p);
    uint32_t request = recipe_request(p);
    if (n > queue_launch_max(queue))
        return fail(TALLY_EUNSUPPORTED, "%llu elements are more than one launch can take",
                    (unsigned long long)n);
    if (part == PART_TREE) {
        uint64_t at;
        const uint64_t leaves = leaf_count(n);
        const unsigned level = leaves > 1 ? 64 - (unsigned)__builtin_clzll(leaves - 1) : 0;
        return launch_tree(queue, p, x, n, level, work, request, result, &at);
    }
    if (queue->facts->has_uniform_branches && grid_for(queue, p, part, n) == 1)
        request |= REQUEST_ALONE;
    tally_status s = clean || request & REQUEST_ALONE ? TALLY_OK : zero(queue, p, part, work);
    return s == TALLY_OK ? launch_fold(queue, p, part, x, n, work, request, result) : s;
}

/* The result as soon as it is there, without asking the driver; or else with it. */
static tally_status wait_for(struct queue *queue, uint64_t word[2]) {
    if (!queue->seen) return queue->api->read(queue->gpu, word, queue->result, 0, 16);
    tally_status s = TALLY_OK;
    for (int i = 0; i < PATIENCE && (uint32_t)queue->seen[1] == RESULT_PENDING; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if ((uint32_t)queue->seen[1] == RESULT_PENDING) s = queue->api->finish(queue->gpu);
    atomic_thread_fence(memory_order_acquire);
    for (int i = 0; i < 2; i++)
        word[i] = queue->seen[i];
    if (s == TALLY_OK && (uint32_t)word[1] == RESULT_PENDING)
        return fail(TALLY_ELOST, "%s: a kernel ended without a result", queue->facts->name);
    return s;
}

static tally_status own_work(struct queue *queue, const struct problem *p, uint64_t n,
                             struct gpu_memory **out) {
    const enum part part = only_part(p);
    tally_status s = part == PART_TREE ? queue_reserve(queue, &queue->values, &queue->values_bytes,
                                                       queue_workspace(queue, p, part, n))
                                       : clean_work(queue, p, part);
    *out = part == PART_TREE ? queue->values : queue->work[part].memory;
    return s;
}

tally_status queue_reduce(struct queue *queue, const struct problem *p, struct gpu_memory *x,
                          uint64_t n, tally_value *out, double *seconds) {
    struct gpu_memory *work;
    uint64_t word[2];
    bool *clean = &queue->work[only_part(p)].clean;
    tally_status s = own_work(queue, p, n, &work);
    if (s != TALLY_OK) return s;
    *clean = false; /* until the launch has come to its end */
    if (queue->seen) queue->seen[1] = RESULT_PENDING;
    if (seconds) s = queue->api->mark(queue->gpu, 0);
    if (s == TALLY_OK) s = queue_start(queue, p, x, n, work, true, queue->result);
    if (s == TALLY_OK && seconds) s = queue->api->mark(queue->gpu, 1);
    if (s == TALLY_OK) s = wait_for(queue, word);
    if (s == TALLY_OK && seconds) s = queue->api->elapsed(queue->gpu, seconds);
    if (s != TALLY_OK) return s;
    *clean = true;
    if ((uint32_t)word[1] != RESULT_OK) return lower_absence(p, TALLY_ERANGE);
    *out = value_of_bits(p->value[0].type, word[0]);
    return TALLY_OK;
}

tally_status gpu_reduce_piece(const struct gpu_api *api, struct gpu *gpu, const struct problem *p,
                              struct gpu_memory *x, size_t n, tally_value *out, double *seconds) {
    struct queue queue = {.api = api, .gpu = gpu, .facts = api->facts(gpu)};
    queue.block = queue.facts->is_cpu ? 1 : GPU_BLOCK;
    tally_status s = api->allocate(gpu, 16, &queue.result);
    if (s == TALLY_OK) s = queue_reduce(&queue, p, x, n, out, seconds);
    api->release(gpu, queue.result);
    for (int part = 0; part < PARTS; part++)
        api->release(gpu, queue.work[part].memory);
    api->release(gpu, queue.values);
    return s;
}
