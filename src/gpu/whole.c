/* whole.c - see whole.h. */
#include "gpu/whole.h"

#include "base/status.h"
#include "exact/round.h"
#include "gpu/lower_plan.h"
#include "gpu/record.h"
#include "gpu/reduce_buffer.h"
#include "gpu/source.h"
#include "gpu/whole_kernels.h"
#include "gpu/whole_request.h"
#include "gpu/whole_tree.h"
#include "kernels/request.h"
#include "kernels/tuning.h"
#include "problem/lower.h"
#include "problem/tree.h"

#include <stdatomic.h>
#include <string.h>

#define WARP_THREADS 32u /* of a warp */

/* Words of the head: enough for the counters and records of all launches (see the last assertion below). */
#define WORK_HEAD 512

_Static_assert(RESULT_OK == TALLY_OK && RESULT_NONE == TALLY_EINVAL &&
                   RESULT_RANGE == TALLY_ERANGE && RESULT_LOST == TALLY_ELOST,
               "request.h");
_Static_assert(sizeof(tally_result) == 16, "two words");
_Static_assert(LAUNCH_HEAD >= 1 + WIDE_FLOAT_LIMBS + FLOAT_COUNTS + SUM_GRID_WORDS, "heads.h");

/* Four sums of floats, two of them wide, and all other monoids have a record in the head, with a counter each. */
_Static_assert(WORK_HEAD >= 2 * (FLOAT_LIMBS + WIDE_FLOAT_LIMBS + 2 * FLOAT_COUNTS) + 1 + 2 + 5 +
                                1 + 1 + MONOIDS + 4 * SUM_GRID_WORDS,
               "its records");

/* ---- Sizes -------------------------------------------------------------------------------- */

struct layout {
    unsigned launches;
    const struct capability *row[MONOIDS]; /* each launch's row of the table */
    uint64_t place[MONOIDS];               /* of each launch, as kernels/request.h has it */
    uint32_t at[MONOIDS];                  /* where each monoid's record begins */
    uint32_t head;                         /* words of counters and records */
    size_t bytes;                          /* of the whole buffer */
    struct area area; /* all but the tree, whose values lie behind (whole_tree.h) */
};

/* Returns how many blocks of the kernel the device runs at once. */
static unsigned blocks_at_once(const struct queue *queue, const struct capability *c) {
    return queue_units(queue) * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : c->blocks);
}

/* Returns the elements of a block's tile; on a CPU, of as many tiles as make a block worth its start. */
static size_t tile_elements(const struct queue *queue, size_t element) {
    return CPU_SHAPED(queue->block) ? CPU_TILES_A_BLOCK * CPU_TILE
                                    : queue->block * GPU_TILE * 16 / element;
}

static unsigned grid_for(const struct queue *queue, const struct problem *p,
                         const struct capability *c, uint64_t n) {
    const uint64_t tiles = n / tile_elements(queue, type_size(p->type));
    uint64_t most = blocks_at_once(queue, c);
    if (!CPU_SHAPED(queue->block) && capability_has_limbs(c))
        most *= tiles / c->tiles / most + 1; /* rounds */
    if (capability_has_limbs(c)) {
        const uint64_t limit = SUM_THREADS_MOST / queue->block;
        if (most > limit) most = limit;
        if (most > SUM_BLOCKS_MOST) most = SUM_BLOCKS_MOST;
    }
    return tiles == 0 ? 1 : tiles < most ? (unsigned)tiles : (unsigned)most;
}

/* Returns the elements that a thread of `alone` has, at most: packs of two arrays share the
 * registers that those of one have. */
static unsigned alone_each(const struct problem *p, const struct capability *c) {
    const unsigned arrays = c->monoids == MONOID_BIT(MONOID_PRODUCTS) ? 2 : 1;
    return GPU_TILE / arrays * 16 / (unsigned)type_size(p->type);
}

/* Returns whether a kernel `alone` is for n elements. For a whole tile that is no exact sum
 * `reduce` is faster, as it loads packs without a test for each. */
static bool fits_alone(const struct queue *queue, const struct problem *p,
                       const struct capability *c, uint64_t n) {
    const uint64_t most = (uint64_t)queue->block * alone_each(p, c);
    return whole_has_alone(queue) && c->alone &&
           (n < most || (n == most && capability_has_limbs(c)));
}

/* Returns the threads of a launch of `alone`: a whole block for an exact sum, which has much to do;
 * for others as few warps as n elements want. */
static unsigned alone_threads(const struct queue *queue, const struct problem *p,
                              const struct capability *c, uint64_t n) {
    const uint64_t each = (uint64_t)WARP_THREADS * alone_each(p, c), warps = (n + each - 1) / each;
    if (capability_has_limbs(c) || warps * WARP_THREADS >= queue->block) return queue->block;
    return warps == 0 ? WARP_THREADS : (unsigned)warps * WARP_THREADS;
}

uint64_t whole_launch_max(const struct queue *queue) {
    const unsigned each = CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_PRODUCT_BLOCKS_A_UNIT;
    const uint64_t most = (uint64_t)queue_units(queue) * each << (PER_BLOCK_BITS - 1);
    return most < UINT64_C(1) << (TERMS_MOST - 1) ? most : UINT64_C(1) << (TERMS_MOST - 1);
}

/* Returns the words of the board for n elements or fewer: a record for each block; exact sums of floats have none. */
static uint64_t board_words(const struct queue *queue, const struct problem *p,
                            const struct capability *c, uint64_t n, uint64_t record) {
    const unsigned least = blocks_at_once(queue, c), blocks = grid_for(queue, p, c, n);
    return capability_has_limbs(c) ? 0 : record * (blocks > least ? blocks : least);
}

/* Lays out the work for n elements or fewer, with the values of a tree of tree_n elements or, for 0, without. */
static void lay_out(const struct queue *queue, const struct problem *p, uint64_t n, uint64_t tree_n,
                    struct layout *out) {
    struct area *area = &out->area;
    area_begin(area, queue->api);
    area_take(area, WORK_HEAD);
    out->head = 0;
    out->launches = capability_cover(p, queue->facts, queue->block, out->row);
    for (unsigned i = 0; i < out->launches; i++) {
        const struct capability *c = out->row[i];
        uint64_t words = 0;
        if (capability_is_tree(c)) continue;
        const uint32_t head = out->head;
        for (unsigned monoid = 0; monoid < MONOID_TREE; monoid++)
            if (c->monoids & MONOID_BIT(monoid)) {
                out->at[monoid] = out->head + 1 + (uint32_t)words;
                words += record_words(p, (enum monoid_id)monoid);
            }
        out->head += 1 + (uint32_t)words + (capability_has_limbs(c) ? SUM_GRID_WORDS : 0);
        out->place[i] = head | area_take(area, board_words(queue, p, c, n, words)) << 32;
    }
    area_forbid(area, 8 * (uint64_t)out->head, 8 * WORK_HEAD);
    out->bytes = 8 * (size_t)area->end;
    if (tree_n > 0) out->bytes = whole_tree_bytes(area, p, tree_n, whole_tree_root(tree_n));
}

/* ---- Launches ----------------------------------------------------------------------------- */

static tally_status launch_fold(struct queue *queue, const struct problem *p,
                                const struct capability *c, const struct inputs *in,
                                struct gpu_memory *heads, struct gpu_memory *boards, uint64_t place,
                                uint32_t request, struct gpu_memory *result) {
    struct kernels k;
    const uint64_t n = in->n, first = in->first;
    const unsigned imaginary = MONOID_BIT(MONOID_PRODUCTS) | MONOID_BIT(MONOID_MAGNITUDES);
    struct gpu_memory *x = p->is_complex && c->monoids & imaginary ? in->y : in->x;
    const struct gpu_argument arguments[] = {BUFFER(x),    BUFFER(in->y),  VALUE(n),
                                             VALUE(first), BUFFER(heads),  BUFFER(boards),
                                             VALUE(place), VALUE(request), BUFFER(result)};
    tally_status s = whole_kernels(queue, p, c, &k);
    if (s != TALLY_OK) return s;
    if (request & REQUEST_ALONE && fits_alone(queue, p, c, n)) {
        TALLY_PATH("alone");
        return queue->api->launch(queue->gpu, k.second, 1, alone_threads(queue, p, c, n), arguments,
                                  9);
    }
    return queue->api->launch(queue->gpu, k.first, grid_for(queue, p, c, n), queue->block,
                              arguments, 9);
}

static tally_status check_length(const struct queue *queue, uint64_t n) {
    if (n <= whole_launch_max(queue)) return TALLY_OK;
    return fail(TALLY_EUNSUPPORTED, "%llu elements are more than one launch can take",
                (unsigned long long)n);
}

/* ---- Records ------------------------------------------------------------------------------- */

static tally_status zero_head(struct queue *queue, const struct layout *l,
                              struct gpu_memory *work) {
    return l->head ? queue->api->fill(queue->gpu, work, 0, 0, 8 * (size_t)l->head) : TALLY_OK;
}

/* Makes queue->work large enough, with a head that is 0. */
static tally_status clean_work(struct queue *queue, const struct layout *l) {
    const bool is_clean = queue->clean && queue->work_bytes >= l->bytes;
    tally_status s = queue_reserve(queue, &queue->work, &queue->work_bytes, l->bytes);
    if (s == TALLY_OK) area_guard(&l->area, queue->gpu, queue->work);
    if (is_clean) return s;
    if (s == TALLY_OK) s = queue->api->fill(queue->gpu, queue->work, 0, 0, 8 * WORK_HEAD);
    queue->clean = s == TALLY_OK;
    return s;
}

tally_status whole_clear(struct queue *queue, const struct problem *p) {
    struct layout l;
    lay_out(queue, p, 0, 0, &l);
    tally_status s = clean_work(queue, &l);
    queue->clean = false;
    return s;
}

/* Enqueues the folds of all monoids but the tree, with the head that begins at word `first` of `heads`. */
static tally_status fold_all(struct queue *queue, const struct problem *p, const struct layout *l,
                             const struct inputs *in, struct gpu_memory *heads, uint32_t first,
                             struct gpu_memory *work) {
    tally_status s = TALLY_OK;
    for (unsigned i = 0; i < l->launches && s == TALLY_OK; i++)
        if (!capability_is_tree(l->row[i]))
            s = launch_fold(queue, p, l->row[i], in, heads, work, l->place[i] + first, 0, NULL);
    return s;
}

tally_status whole_fold(struct queue *queue, const struct problem *p, const struct inputs *in) {
    struct layout l;
    lay_out(queue, p, 0, 0, &l);
    return fold_all(queue, p, &l, in, queue->work, 0, queue->work);
}

tally_status whole_take(struct queue *queue, const struct problem *p, struct state *into) {
    struct layout l;
    uint64_t head[WORK_HEAD];
    lay_out(queue, p, 0, 0, &l);
    if (l.head == 0) return TALLY_OK;
    tally_status s = queue->api->read(queue->gpu, head, queue->work, 0, 8 * (size_t)l.head);
    if (s == TALLY_OK)
        for_monoids(monoid, p) record_merge(p, (enum monoid_id)monoid, head + l.at[monoid], into);
    return s;
}

/* ---- From memory of the device to a value -------------------------------------------------- */

/* Returns whether one block reduces n elements and meets no other. */
static bool is_alone(const struct queue *queue, const struct problem *p, const struct capability *c,
                     uint64_t n) {
    if (capability_has_limbs(c)) return fits_alone(queue, p, c, n);
    return whole_has_alone(queue) && grid_for(queue, p, c, n) == 1;
}

/* Enqueues the launches of a problem for which whole_gives_values(). The head, in `heads`, is 0, and is 0 again
 * afterwards; a block that is alone, and a tree, need none. */
static tally_status start_values(struct queue *queue, const struct problem *p,
                                 const struct layout *l, const struct inputs *in,
                                 struct gpu_memory *heads, uint64_t place, struct gpu_memory *work,
                                 uint32_t request, struct gpu_memory *result) {
    const struct capability *c = l->row[0];
    request |= whole_request(p);
    if (capability_is_tree(c)) {
        uint64_t at;
        return whole_tree_enqueue(queue, p, in->x, in->n, whole_tree_root(in->n), &l->area, work,
                                  request, result, &at);
    }
    if (is_alone(queue, p, c, in->n)) request |= REQUEST_ALONE;
    return launch_fold(queue, p, c, in, heads, work, place, request, result);
}

/* Waits for the results of `values` values, and copies their words to word[]. If the host can see the results, it polls
 * the last word, which is written last, up to QUEUE_PATIENCE times before it lets the driver wait. */
static tally_status wait_for(struct queue *queue, unsigned values, uint64_t *word) {
    if (!queue->seen)
        return queue->api->read(queue->gpu, word, queue->result, 0, values * sizeof(tally_result));
    const unsigned last = 2 * values - 1;
    tally_status s = TALLY_OK;
    for (int i = 0; i < QUEUE_PATIENCE && (uint32_t)queue->seen[last] == RESULT_PENDING; i++) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if ((uint32_t)queue->seen[last] == RESULT_PENDING) s = queue->api->finish(queue->gpu);
    atomic_thread_fence(memory_order_acquire);
    for (unsigned i = 0; i <= last; i++)
        word[i] = queue->seen[i];
    if (s == TALLY_OK && (uint32_t)word[last] == RESULT_PENDING)
        return fail(TALLY_ELOST, "%s: a kernel ended without a result", queue->facts->name);
    return s;
}

tally_status whole_reduce(struct queue *queue, const struct problem *p, const struct inputs *in,
                          tally_value *out, double *seconds) {
    struct layout l;
    uint64_t word[2 * QUEUE_VALUES] = {0};
    lay_out(queue, p, in->n, in->n, &l);
    const bool records = !capability_is_tree(l.row[0]);
    tally_status s = check_length(queue, in->n);
    if (!records) area_begin(&l.area, queue->api); /* the tree is in memory of its own */
    if (s == TALLY_OK)
        s = records ? clean_work(queue, &l)
                    : queue_reserve(queue, &queue->values, &queue->values_bytes,
                                    whole_tree_bytes(&l.area, p, in->n, whole_tree_root(in->n)));
    if (s != TALLY_OK) return s;
    if (records) queue->clean = false; /* until the launch has come to its end */
    if (queue->seen) queue->seen[2 * p->values - 1] = RESULT_PENDING;
    if (seconds) s = queue->api->mark(queue->gpu, 0);
    if (s == TALLY_OK)
        s = start_values(queue, p, &l, in, queue->work, l.place[0],
                         records ? queue->work : queue->values, queue->seen ? REQUEST_WATCHED : 0,
                         queue->result);
    if (s == TALLY_OK && seconds) s = queue->api->mark(queue->gpu, 1);
    if (s == TALLY_OK) s = wait_for(queue, p->values, word);
    if (s == TALLY_OK && seconds) s = queue->api->elapsed(queue->gpu, seconds);
    if (s != TALLY_OK) return s;
    if (records) queue->clean = true;
    if ((uint32_t)word[1] != RESULT_OK) return lower_absence(p, (tally_status)(uint32_t)word[1]);
    for (unsigned v = 0; v < p->values; v++)
        out[v] = value_of_bits(p->value[v].type, word[2 * v]);
    return TALLY_OK;
}

/* ---- Without the host ----------------------------------------------------------------------- */

#if defined(TALLY_DEBUG)
enum { ONE_BLOCK, BLOCKS, A_TREE, LOWERED };
static const char *const way_names[] = {[ONE_BLOCK] = "one block gives the value",
                                        [BLOCKS] = "the last block gives the value",
                                        [A_TREE] = "the tree's root",
                                        [LOWERED] = "records are lowered"};
static const struct path_axis way_axis = PATH_AXIS(way_names);
static const char *never_whole(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (source_check(&p) != TALLY_OK) return "such a user's operator runs on the CPU";
    if (!whole_gives_values(&p)) return at[0] == LOWERED ? NULL : "no kernel gives the value";
    if (at[0] == LOWERED) return "a kernel gives the value";
    return (at[0] == A_TREE) == problem_has(&p, MONOID_TREE) ? NULL
           : at[0] == A_TREE                                 ? "no tree gives it"
                                                             : "a tree gives it";
}
PATH_TABLE(whole_paths, "whole arrays on a GPU", never_whole, &way_axis, &path_ops, &path_types);
#endif

/* Enqueues a problem for which whole_gives_values(), with a head of the queue's or else one in the workspace. */
static tally_status enqueue_values(struct queue *queue, const struct problem *p,
                                   const struct layout *l, const struct inputs *in,
                                   struct gpu_memory *work, const void *workspace,
                                   struct gpu_memory *results) {
    const struct capability *c = l->row[0];
    uint64_t place = l->place[0];
    TALLY_PATH_OF_VALUE(whole_paths, p,
                        capability_is_tree(c)          ? A_TREE
                        : is_alone(queue, p, c, in->n) ? ONE_BLOCK
                                                       : BLOCKS);
    if (capability_is_tree(c) || is_alone(queue, p, c, in->n))
        return start_values(queue, p, l, in, work, place, work, 0, results);
    struct known_head *head = heads_find(&queue->heads, workspace);
    if (!head) {
        TALLY_PATH("no head");
        tally_status s = zero_head(queue, l, work);
        return s != TALLY_OK ? s : start_values(queue, p, l, in, work, place, work, 0, results);
    }
    place = place >> 32 << 32 | head->number * LAUNCH_HEAD;
    tally_status s = start_values(queue, p, l, in, queue->heads.memory, place, work, 0, results);
    if (s != TALLY_OK) heads_give_up(head);
    return s;
}

size_t whole_workspace(const struct queue *queue, const struct problem *p, uint64_t n) {
    struct layout l;
    lay_out(queue, p, n, problem_has(p, MONOID_TREE) ? n + 1 : 0, &l);
    return l.bytes;
}

tally_status whole_prepare(struct queue *queue, const struct problem *p, uint64_t n,
                           size_t *bytes) {
    struct layout l;
    struct kernels k;
    lay_out(queue, p, 0, 0, &l);
    tally_status s = heads_make(&queue->heads, queue->api, queue->gpu);
    if (s == TALLY_OK && !whole_gives_values(p)) s = whole_lower_kernel(queue);
    for (unsigned i = 0; i < l.launches && s == TALLY_OK; i++)
        s = whole_kernels(queue, p, l.row[i], &k);
    if (s == TALLY_OK) *bytes = whole_workspace(queue, p, n);
    return s;
}

static struct lower_plan make_plan(const struct problem *p, const struct layout *l, uint64_t n,
                                   uint64_t root) {
    struct lower_plan plan;
    lower_plan_of(p, &plan);
    plan.n = n;
    for_monoids(monoid, p) plan.at[monoid] = l->at[monoid];
    plan.at[MONOID_TREE] = (uint32_t)root;
    return plan;
}

/* Enqueues the lowering of records in `heads`, from word `first` on, to values. The first `clear` words there are
 * then made 0. */
static tally_status lower_all(struct queue *queue, const struct problem *p, const struct layout *l,
                              uint64_t n, uint64_t root, struct gpu_memory *heads, uint32_t first,
                              uint32_t clear, struct gpu_memory *results) {
    struct lower_plan plan = make_plan(p, l, n, root);
    for_monoids(monoid, p) if (monoid != MONOID_TREE) plan.at[monoid] += first;
    const struct gpu_argument arguments[] = {BUFFER(heads), VALUE(plan), VALUE(first), VALUE(clear),
                                             BUFFER(results)};
    return queue->api->launch(queue->gpu, queue->lower, p->values, queue->block, arguments, 5);
}

/* Enqueues records of all monoids, and the values out of them. The records of a problem of one value, but
 * for a tree's, are in a head of the queue's, if there is one, which `lower` clears; else they are in the workspace. */
static tally_status start_all(struct queue *queue, const struct problem *p, const struct layout *l,
                              const struct inputs *in, struct gpu_memory *work,
                              const void *workspace, struct gpu_memory *results) {
    uint64_t root = 0;
    struct known_head *head = NULL;
    TALLY_PATH_OF_VALUE(whole_paths, p, LOWERED);
    tally_status s = whole_lower_kernel(queue);
    if (p->values == 1 && !problem_has(p, MONOID_TREE) && l->head <= LAUNCH_HEAD)
        head = heads_find(&queue->heads, workspace);
    if (head && s == TALLY_OK) {
        TALLY_PATH("a head");
        const uint32_t first = head->number * LAUNCH_HEAD;
        queue_hold(queue);
        if (in->n > 0) s = fold_all(queue, p, l, in, queue->heads.memory, first, work);
        if (s == TALLY_OK)
            s = lower_all(queue, p, l, in->n, root, queue->heads.memory, first, l->head, results);
        s = queue_send(queue, s);
        if (s != TALLY_OK) heads_give_up(head);
        return s;
    }
    if (s == TALLY_OK) s = zero_head(queue, l, work);
    if (s == TALLY_OK && in->n > 0) s = fold_all(queue, p, l, in, work, 0, work);
    if (s == TALLY_OK && in->n > 0 && problem_has(p, MONOID_TREE))
        s = whole_tree_enqueue(queue, p, in->x, in->n, whole_tree_root(in->n), &l->area, work, 0,
                               NULL, &root);
    return s == TALLY_OK ? lower_all(queue, p, l, in->n, root, work, 0, 0, results) : s;
}

tally_status whole_enqueue(struct queue *queue, const struct problem *p, const struct inputs *in,
                           struct gpu_memory *work, const void *workspace,
                           struct gpu_memory *results) {
    struct layout l;
    lay_out(queue, p, in->n, 0, &l);
    tally_status s = check_length(queue, in->n);
    if (s != TALLY_OK) return s;
    return whole_gives_values(p) ? enqueue_values(queue, p, &l, in, work, workspace, results)
                                 : start_all(queue, p, &l, in, work, workspace, results);
}

/* ---- For ranks ------------------------------------------------------------------------------ */

tally_status whole_prepare_records(struct queue *queue, const struct problem *p, bool heads) {
    struct layout l;
    struct kernels k;
    lay_out(queue, p, 0, 0, &l);
    tally_status s = heads ? heads_make(&queue->heads, queue->api, queue->gpu) : TALLY_OK;
    for (unsigned i = 0; i < l.launches && s == TALLY_OK; i++)
        s = whole_kernels(queue, p, l.row[i], &k);
    return s;
}

/* Returns whether the head has counters and records of exact sums of floats only, and few enough
 * for one of the queue's. */
static bool has_only_sums(const struct layout *l) {
    for (unsigned i = 0; i < l->launches; i++)
        if (!capability_has_limbs(l->row[i])) return false;
    return l->launches > 0 && l->head <= LAUNCH_HEAD;
}

tally_status whole_enqueue_records(struct queue *queue, const struct problem *p,
                                   const struct inputs *in, struct gpu_memory *work,
                                   const void *workspace, struct records *out) {
    struct layout l;
    lay_out(queue, p, in->n, 0, &l);
    tally_status s = check_length(queue, in->n);
    if (s != TALLY_OK) return s;
    *out = (struct records){.memory = work};
    if (has_only_sums(&l)) out->head = heads_find(&queue->heads, workspace);
    if (out->head) {
        out->memory = queue->heads.memory;
        out->from = out->head->number * LAUNCH_HEAD;
    } else {
        s = zero_head(queue, &l, work);
    }
    if (s == TALLY_OK && in->n > 0) s = fold_all(queue, p, &l, in, out->memory, out->from, work);
    if (s != TALLY_OK) heads_give_up(out->head);
    return s;
}

uint32_t whole_records_plan(const struct queue *queue, const struct problem *p, uint64_t n,
                            struct lower_plan *plan) {
    struct layout l;
    lay_out(queue, p, n, 0, &l);
    *plan = make_plan(p, &l, n, 0);
    return l.head;
}

/* ---- For the ladder -------------------------------------------------------------------------- */

tally_status gpu_reduce_buffer(const struct gpu_api *api, struct gpu *gpu, const struct problem *p,
                               struct gpu_memory *x, size_t n, tally_value *out, double *seconds) {
    struct queue queue = {.api = api, .gpu = gpu, .facts = api->facts(gpu)};
    const struct inputs in = {.x = x, .n = n};
    queue.block = queue.facts->is_cpu ? 1 : GPU_BLOCK;
    tally_status s = api->allocate(gpu, QUEUE_RESULT_BYTES, &queue.result);
    if (s == TALLY_OK) s = whole_reduce(&queue, p, &in, out, seconds);
    api->release(gpu, queue.result);
    api->release(gpu, queue.work);
    api->release(gpu, queue.values);
    queue_forget(&queue);
    return s;
}
