/*
 * device.c - a GPU as a device of the engine: CUDA, OpenCL and the model by one text.
 *
 * An array goes to the device in chunks; each chunk is one launch of the production kernel for its
 * operator and type, which adds it to a record in the device's memory (kernels/records.h). The record is
 * read back once, at the end, and becomes a struct partial. Two pieces of staging memory take turns, so
 * that an array may be larger than the device's memory and a copy need not wait for the kernel before.
 * A device that reads host memory as fast as its own (a CPU behind OpenCL) is handed the array itself.
 *
 * Trees: a launch makes leaf values, further ones combine them five levels at a time.
 *
 * One call at a time uses the device; others wait. A device that fails is dropped and opened again by the
 * next call.
 */
#include "device.h"

#include "exact/round.h"
#include "gpu/gpu.h"
#include "gpu/piece.h"
#include "gpu/source.h"
#include "kernels/tuning.h"
#include "ladder/roof.h"
#include "status.h"
#include "tree.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STAGING_MAX     ((size_t)64 << 20) /* bytes of each staging piece */
#define STAGING_ALIGNED 4096
#define MEMORY_LEAST    ((uint64_t)1 << 20) /* less than a megabyte is no device */
#define NODES_LEVELS    5                   /* that one launch of `nodes` combines */
#define SUM_WORDS       (SUPERACC_LIMBS + 1)

struct gpu_device {
    tally_device base;
    const struct gpu_api *api;
    size_t index;
    unsigned block;  /* threads of a block */
    uint64_t memory; /* bytes it is to use at most */
    struct gpu_facts facts;

    pthread_mutex_t lock; /* held by whoever uses what follows */
    struct gpu *gpu;      /* NULL after a failure: to be opened again */
    struct gpu_memory *work, *staging[2], *values[2];
    size_t work_bytes, staging_bytes, values_bytes;
};

static struct gpu_device *own(const tally_device *device) {
    return (struct gpu_device *)device;
}

/* ---- Opened and closed -------------------------------------------------------------------- */

static void drop(struct gpu_device *d) {
    if (d->gpu) d->api->close(d->gpu); /* and with it its memory and programs */
    d->gpu = NULL;
    d->work = d->staging[0] = d->staging[1] = d->values[0] = d->values[1] = NULL;
    d->work_bytes = d->staging_bytes = d->values_bytes = 0;
}

static tally_status enter(struct gpu_device *d) {
    pthread_mutex_lock(&d->lock);
    if (d->gpu) return TALLY_OK;
    tally_status s = d->api->open(d->index, &d->gpu);
    if (s != TALLY_OK) pthread_mutex_unlock(&d->lock);
    return s;
}

/* The call came to `s`. Whatever was under way is waited for: it may use the caller's memory. */
static tally_status leave(struct gpu_device *d, tally_status s) {
    if (s != TALLY_OK && s != TALLY_ELOST) {
        char why[512];
        snprintf(why, sizeof why, "%s", tally_error());
        tally_status finished = d->api->finish(d->gpu);
        fail(s, "%s", why);
        if (finished == TALLY_ELOST) drop(d);
    } else if (s == TALLY_ELOST) {
        drop(d);
    }
    pthread_mutex_unlock(&d->lock);
    return s;
}

/* Makes *piece one of at least `bytes` bytes; what it held is lost. */
static tally_status reserve(struct gpu_device *d, struct gpu_memory **piece, size_t *has,
                            size_t bytes) {
    if (*piece && *has >= bytes) return TALLY_OK;
    d->api->release(d->gpu, *piece);
    *piece = NULL;
    *has = 0;
    tally_status s = d->api->allocate(d->gpu, bytes, piece);
    if (s == TALLY_OK) *has = bytes;
    return s;
}

/* The same for two pieces of one size. */
static tally_status reserve_pair(struct gpu_device *d, struct gpu_memory *pieces[2], size_t *has,
                                 size_t bytes) {
    if (*has >= bytes) return TALLY_OK;
    size_t first = 0, second = 0;
    *has = 0;
    tally_status s = reserve(d, &pieces[0], &first, bytes);
    if (s == TALLY_OK) s = reserve(d, &pieces[1], &second, bytes);
    if (s == TALLY_OK) *has = bytes;
    return s;
}

/* ---- Kernels ------------------------------------------------------------------------------ */

#define DEFINES_MAX 6

struct recipe {
    const char *file;
    char text[DEFINES_MAX][24];
    const char *define[DEFINES_MAX];
    size_t defines;
};

static void define(struct recipe *c, const char *format, const char *name) {
    char *text = c->text[c->defines], *at = text;
    snprintf(text, sizeof c->text[0], format, name);
    for (; *at && *at != '='; at++)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    c->define[c->defines++] = text;
}

/* What to compile for a reduction: in the order in which compiled kernels are listed, alphabetical. */
static void find_recipe(const struct gpu_device *d, const struct reduction *r, struct recipe *c) {
    static const char *const files[] = {
        [METHOD_FLOAT_SUM] = "sum.cu",
        [METHOD_FAST_SUM] = "fast_sum.cu",
        [METHOD_INTEGER_SUM] = "integer_sum.cu",
        [METHOD_INTEGER_PROD] = "integer_product.cu",
        [METHOD_ORDER] = "order.cu",
        [METHOD_BITS] = "bits.cu",
        [METHOD_TREE] = "tree.cu",
    };
    static const char *const words[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    const char *type = tally_type_name(r->type), *op;
    c->file = files[r->method];
    c->defines = 0;
    if (d->block != GPU_BLOCK) {
        char block[12];
        snprintf(block, sizeof block, "%u", d->block);
        define(c, "BLOCK=%s", block);
    }
    switch (r->method) {
    case METHOD_ORDER:
        op = "min"; /* min and max are one kernel */
        break;
    case METHOD_BITS:
        op = tally_op_name(r->op);
        type = words[tally_type_size(r->type)]; /* only the size counts */
        break;
    case METHOD_TREE:
        /* For a user's operator: something whose partial results are elements. */
        op = !r->user ? "prod" : type_is_float(r->type) ? "sum" : "and";
        break;
    default:
        op = tally_op_name(r->op);
    }
    define(c, "OP_%s", op);
    if (r->user && !r->user->commutative) define(c, "%s", "ORDERED");
    define(c, "TYPE_%s", type);
    if (r->user) define(c, "%s", "USER_OPERATOR");
}

static tally_status find_program(struct gpu_device *d, const struct reduction *r,
                                 struct gpu_program **out) {
    struct recipe c;
    char *prelude = NULL;
    tally_status s = TALLY_OK;
    find_recipe(d, r, &c);
    if (r->type == TALLY_F64 && r->method != METHOD_ORDER && r->method != METHOD_BITS &&
        !d->facts.doubles)
        return fail(TALLY_EUNSUPPORTED, "%s:%zu has no f64 arithmetic", d->api->name, d->index);
    if (!d->facts.atomics64)
        return fail(TALLY_EUNSUPPORTED, "%s:%zu has no 64-bit atomics", d->api->name, d->index);
    if (r->user) s = source_prelude(r, &prelude);
    if (s == TALLY_OK) s = d->api->build(d->gpu, c.file, prelude, c.define, c.defines, out);
    free(prelude);
    return s;
}

/* ---- Launches ----------------------------------------------------------------------------- */

/* The largest grid that is worth while: all of the device at once. */
static unsigned grid_max(const struct gpu_device *d) {
    unsigned each = d->block == 1 ? CPU_BLOCKS_A_UNIT : GPU_BLOCKS_A_UNIT;
    unsigned units = d->facts.units ? d->facts.units : 1;
    return units * each;
}

static unsigned grid_for(const struct gpu_device *d, uint64_t parts) {
    unsigned most = grid_max(d);
    return parts == 0 ? 1 : parts < most ? (unsigned)parts : most;
}

/* Elements of a block's tile; on a CPU, of as many as make a block worth while. */
static size_t tile_elements(const struct gpu_device *d, size_t element) {
    return d->block == 1 ? CPU_TILES_A_BLOCK * CPU_TILE
                         : d->block * GPU_TILE(element) * 16 / element;
}

#define VALUE(v)                                                                                   \
    { .size = sizeof(v), .value = &(v) }
#define PIECE(m)                                                                                   \
    { .memory = (m) }

/* Adds n elements at the start of `x` to the record. */
static tally_status launch_fold(struct gpu_device *d, struct gpu_kernel *kernel,
                                struct gpu_memory *x, uint64_t n, size_t element) {
    const struct gpu_argument arguments[] = {PIECE(x), VALUE(n), PIECE(d->work)};
    return d->api->launch(d->gpu, kernel, grid_for(d, n / tile_elements(d, element)), d->block,
                          arguments, 3);
}

/* ---- Chunks ------------------------------------------------------------------------------- */

/* The array's way to the device: piece by piece. */
struct feed {
    struct gpu_device *d;
    const char *x;
    size_t n, element;
    size_t chunk; /* elements at a time */
    bool adopts;  /* the array itself is handed over */
    unsigned turn;
};

static size_t at_most(uint64_t limit, size_t value) {
    return value < limit ? value : (size_t)limit;
}

/* Chunks are multiples of `grain` elements. */
static tally_status feed_start(struct gpu_device *d, struct feed *f, const void *x, size_t n,
                               size_t element, size_t grain) {
    *f = (struct feed){.d = d, .x = x, .n = n, .element = element};
    f->adopts = d->facts.unified && (uintptr_t)x % element == 0;
    const uint64_t per_grid = (uint64_t)grid_max(d) << (PER_BLOCK_BITS - 1);
    size_t bytes = f->adopts
                       ? at_most(d->facts.allocation_max, SIZE_MAX / 2)
                       : at_most(d->memory / 4, at_most(d->facts.allocation_max, STAGING_MAX));
    size_t elements = at_most(per_grid, bytes / element);
    f->chunk = elements / grain * grain;
    if (f->chunk == 0)
        return fail(TALLY_ENOMEM, "%s:%zu has too little memory for a chunk of %zu elements",
                    d->api->name, d->index, grain);
    if (f->adopts) return TALLY_OK;
    bytes = (n < f->chunk ? n : f->chunk) * element;
    bytes = (bytes + STAGING_ALIGNED - 1) / STAGING_ALIGNED * STAGING_ALIGNED;
    return reserve_pair(d, d->staging, &d->staging_bytes, bytes);
}

/* The next chunk: *m elements at the start of *piece; 0 at the end. */
static tally_status feed_next(struct feed *f, struct gpu_memory **piece, size_t *m) {
    struct gpu_device *d = f->d;
    tally_status s = TALLY_OK;
    *m = f->n < f->chunk ? f->n : f->chunk;
    if (*m == 0) return s;
    if (f->adopts) {
        s = d->api->adopt(d->gpu, (void *)(uintptr_t)f->x, *m * f->element, piece);
    } else {
        *piece = d->staging[f->turn++ % 2];
        s = d->api->write(d->gpu, *piece, 0, f->x, *m * f->element);
    }
    f->x += *m * f->element;
    f->n -= *m;
    return s;
}

/* The chunk's launches have been put under way. */
static void feed_done(struct feed *f, struct gpu_memory *piece) {
    if (f->adopts) f->d->api->release(f->d->gpu, piece);
}

/* ---- Records ------------------------------------------------------------------------------ */

static size_t record_words(const struct reduction *r) {
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        return SUM_WORDS;
    case METHOD_INTEGER_SUM:
        return 3;
    case METHOD_INTEGER_PROD:
    case METHOD_ORDER:
        return 2;
    default:
        return 1;
    }
}

/* The inverse of order_key(). */
static uint64_t key_bits(tally_type type, uint64_t key) {
    unsigned width = 8 * (unsigned)tally_type_size(type);
    uint64_t top = UINT64_C(1) << (width - 1), all = top | (top - 1);
    if (type_is_float(type)) return key & top ? key ^ top : key ^ all;
    return type_is_signed(type) ? key ^ top : key;
}

static void decode_sum(const uint64_t *word, size_t n, struct partial *p) {
    struct superacc *limbs = float_sum_limbs(&p->u.sum);
    for (int i = 0; i < SUPERACC_LIMBS; i++)
        limbs->limb[i] = (int64_t)word[i];
    superacc_normalise(limbs);
    uint64_t seen = word[SUPERACC_LIMBS];
    p->u.sum.specials = seen & (SEEN_NAN | SEEN_PLUS_INF | SEEN_MINUS_INF);
    p->u.sum.mixed = (seen & 8) != 0;
    p->u.sum.count = n;
}

static void decode_order(const struct reduction *r, const uint64_t *word, struct partial *p) {
    unsigned width = 8 * (unsigned)tally_type_size(r->type);
    uint64_t all = ~UINT64_C(0) >> (64 - width), most = word[0], least = all ^ word[1];
    p->u.order.bits = key_bits(r->type, r->op == TALLY_MIN ? least : most);
    if (!type_is_float(r->type)) return;
    tally_value up = float_infinity(r->type, 0), down = float_infinity(r->type, 1);
    p->u.order.nan = most > order_key(r->type, tally_value_bits(&up)) ||
                     least < order_key(r->type, tally_value_bits(&down));
}

static double fast_value(tally_type type, uint64_t bits) {
    tally_value v = float_from_bits(type == TALLY_F64 ? TALLY_F64 : TALLY_F32, bits);
    return type == TALLY_F64 ? v.as.f64 : (double)v.as.f32;
}

/* The record of n elements as a partial. */
static void decode(const struct reduction *r, const uint64_t *word, size_t n, struct partial *p) {
    partial_clear(r, p);
    switch (r->method) {
    case METHOD_FLOAT_SUM:
        decode_sum(word, n, p);
        break;
    case METHOD_FAST_SUM:
        p->u.fast = fast_value(r->type, word[0]);
        break;
    case METHOD_INTEGER_SUM:
        p->u.integer = (__int128)((unsigned __int128)word[2] << 64) +
                       ((__int128)(int64_t)word[1] * ((__int128)1 << 32)) + (int64_t)word[0];
        break;
    case METHOD_INTEGER_PROD:
        p->u.product.magnitude = word[0] ^ 1;
        p->u.product.negative = word[1] & 1;
        p->u.product.zero = word[1] >> 1 & 1;
        p->u.product.overflow = word[1] >> 2 & 1;
        break;
    case METHOD_ORDER:
        decode_order(r, word, p);
        break;
    case METHOD_BITS:
        p->u.bits = r->op == TALLY_AND ? p->u.bits & ~word[0] : word[0];
        break;
    case METHOD_TREE:
        break;
    }
}

/* ---- The engine's calls ------------------------------------------------------------------- */

/* Memory for the counter, the record and, but for exact sums, a record a block; all 0. */
static tally_status clear_work(struct gpu_device *d, const struct reduction *r) {
    size_t words = record_words(r), board = r->method == METHOD_FLOAT_SUM ? 0 : grid_max(d);
    tally_status s = reserve(d, &d->work, &d->work_bytes, 8 * (1 + words * (1 + board)));
    return s == TALLY_OK ? d->api->fill(d->gpu, d->work, 0, 0, 8 * (1 + words)) : s;
}

static tally_status fold(struct gpu_device *d, const struct reduction *r, const void *x, size_t n,
                         struct partial *into) {
    uint64_t record[SUM_WORDS];
    size_t element = tally_type_size(r->type), total = n, m;
    struct gpu_program *program = NULL;
    struct gpu_kernel *kernel;
    struct gpu_memory *piece;
    struct feed f;
    tally_status s = find_program(d, r, &program);
    if (s == TALLY_OK) s = d->api->kernel(d->gpu, program, "reduce", &kernel);
    if (s == TALLY_OK) s = clear_work(d, r);
    if (s == TALLY_OK) s = feed_start(d, &f, x, n, element, 1);
    while (s == TALLY_OK && (s = feed_next(&f, &piece, &m)) == TALLY_OK && m > 0) {
        s = launch_fold(d, kernel, piece, m, element);
        feed_done(&f, piece);
    }
    if (s == TALLY_OK) s = d->api->read(d->gpu, record, d->work, 8, 8 * record_words(r));
    if (s != TALLY_OK) return s;
    struct partial mine;
    decode(r, record, total, &mine);
    partial_merge(r, into, &mine);
    return TALLY_OK;
}

static tally_status gpu_fold(tally_device *device, const struct reduction *r, const void *x,
                             size_t n, struct partial *into) {
    struct gpu_device *d = own(device);
    tally_status s = enter(d);
    return s == TALLY_OK ? leave(d, fold(d, r, x, n, into)) : s;
}

/* The values of m elements' leaves, joined to subtrees of 2^level of them, to *out. */
static tally_status launch_tree(struct gpu_device *d, struct gpu_program *program,
                                struct gpu_memory *x, uint64_t m, unsigned level,
                                struct gpu_memory **out) {
    struct gpu_kernel *leaves, *nodes;
    tally_status s = d->api->kernel(d->gpu, program, "leaves", &leaves);
    if (s == TALLY_OK) s = d->api->kernel(d->gpu, program, "nodes", &nodes);
    if (s != TALLY_OK) return s;
    const unsigned warps = (d->block + TREE_LANES - 1) / TREE_LANES;
    uint64_t count = (m + TREE_LEAF - 1) / TREE_LEAF;
    const struct gpu_argument to_leaves[] = {PIECE(x), VALUE(m), PIECE(d->values[0])};
    s = d->api->launch(d->gpu, leaves, grid_for(d, (count + warps - 1) / warps), d->block,
                       to_leaves, 3);
    unsigned from = 0;
    while (s == TALLY_OK && level > 0) {
        uint32_t levels = level < NODES_LEVELS ? level : NODES_LEVELS;
        const struct gpu_argument to_nodes[] = {PIECE(d->values[from]), VALUE(count), VALUE(levels),
                                                PIECE(d->values[1 - from])};
        uint64_t parts = (count + warps * TREE_LANES - 1) / (warps * TREE_LANES);
        s = d->api->launch(d->gpu, nodes, grid_for(d, parts), d->block, to_nodes, 4);
        count = (count + (1u << levels) - 1) >> levels;
        level -= levels;
        from = 1 - from;
    }
    *out = d->values[from];
    return s;
}

static tally_status leaves(struct gpu_device *d, const struct reduction *r, const void *x, size_t n,
                           unsigned level, char *out) {
    size_t element = tally_type_size(r->type), size = tree_value_size(r), m;
    const size_t grain = (size_t)TREE_LEAF << level;
    struct gpu_program *program = NULL;
    struct gpu_memory *piece, *values;
    struct feed f = {0};
    tally_status s = find_program(d, r, &program);
    if (s == TALLY_OK) s = feed_start(d, &f, x, n, element, grain);
    size_t most = n < f.chunk ? n : f.chunk;
    if (s == TALLY_OK)
        s = reserve_pair(d, d->values, &d->values_bytes, (most / TREE_LEAF + 1) * size);
    while (s == TALLY_OK && (s = feed_next(&f, &piece, &m)) == TALLY_OK && m > 0) {
        size_t bytes = (m + grain - 1) / grain * size;
        s = launch_tree(d, program, piece, m, level, &values);
        if (s == TALLY_OK) s = d->api->read(d->gpu, out, values, 0, bytes);
        feed_done(&f, piece);
        out += bytes;
    }
    return s;
}

static tally_status gpu_leaves(tally_device *device, const struct reduction *r, const void *x,
                               size_t n, unsigned level, void *out) {
    struct gpu_device *d = own(device);
    tally_status s = source_check(r);
    if (s != TALLY_OK) return s;
    s = enter(d);
    return s == TALLY_OK ? leave(d, leaves(d, r, x, n, level, out)) : s;
}

/* ---- Data on the device ------------------------------------------------------------------- */

/* The whole tree: level upon level, until one value is left. */
static tally_status reduce_tree(struct gpu_device *d, const struct reduction *r,
                                struct gpu_program *program, struct gpu_memory *x, size_t n,
                                tally_value *out) {
    const uint64_t leaf_count = (n - 1) / TREE_LEAF + 1;
    unsigned level = leaf_count > 1 ? 64 - (unsigned)__builtin_clzll(leaf_count - 1) : 0;
    struct gpu_memory *values;
    union tree_value value;
    tally_status s = reserve_pair(d, d->values, &d->values_bytes, leaf_count * tree_value_size(r));
    if (s == TALLY_OK) s = launch_tree(d, program, x, n, level, &values);
    if (s == TALLY_OK) s = d->api->read(d->gpu, &value, values, 0, tree_value_size(r));
    if (s != TALLY_OK) return s;
    struct tree tree;
    tree_clear(&tree);
    tree_append(r, &tree, &value, 0);
    *out = tree_value(r, &tree);
    return TALLY_OK;
}

/* n elements at the start of a piece of memory: one launch, or a few for a tree. */
static tally_status reduce_piece(struct gpu_device *d, const struct reduction *r,
                                 struct gpu_memory *x, size_t n, tally_value *out) {
    uint64_t record[SUM_WORDS];
    struct gpu_program *program = NULL;
    struct gpu_kernel *kernel;
    if (n > (uint64_t)grid_max(d) << (PER_BLOCK_BITS - 1))
        return fail(TALLY_EUNSUPPORTED, "%s:%zu: %zu elements are more than one launch can take",
                    d->api->name, d->index, n);
    tally_status s = find_program(d, r, &program);
    if (s == TALLY_OK && r->method == METHOD_TREE) return reduce_tree(d, r, program, x, n, out);
    if (s == TALLY_OK) s = d->api->kernel(d->gpu, program, "reduce", &kernel);
    if (s == TALLY_OK) s = clear_work(d, r);
    if (s == TALLY_OK) s = launch_fold(d, kernel, x, n, tally_type_size(r->type));
    if (s == TALLY_OK) s = d->api->read(d->gpu, record, d->work, 8, 8 * record_words(r));
    if (s != TALLY_OK) return s;
    struct partial all;
    decode(r, record, n, &all);
    return partial_value(r, &all, out);
}

tally_status gpu_reduce_piece(const struct gpu_api *api, struct gpu *gpu, const struct reduction *r,
                              struct gpu_memory *x, size_t n, tally_value *out, double *seconds) {
    const struct gpu_facts *facts = api->facts(gpu);
    struct gpu_device d = {.api = api, .gpu = gpu, .facts = *facts, .memory = facts->memory};
    d.block = facts->unified ? 1 : GPU_BLOCK;
    tally_value value;
    tally_status s = api->mark(gpu, 0);
    if (s == TALLY_OK) s = reduce_piece(&d, r, x, n, &value);
    if (s == TALLY_OK) s = api->mark(gpu, 1);
    if (s == TALLY_OK) s = api->elapsed(gpu, seconds);
    api->release(gpu, d.work);
    for (int i = 0; i < 2; i++)
        api->release(gpu, d.values[i]);
    if (s == TALLY_OK) *out = value;
    return s;
}

static tally_status adopt_and_reduce(struct gpu_device *d, const struct reduction *r, void *memory,
                                     size_t n, tally_value *out) {
    size_t element = tally_type_size(r->type);
    struct gpu_memory *piece;
    if ((uintptr_t)memory % element != 0)
        return fail(TALLY_EINVAL, "%s:%zu: the memory is not aligned to its elements", d->api->name,
                    d->index);
    if (!d->facts.unified && d->api == &opencl_api)
        return fail(TALLY_EUNSUPPORTED, "%s:%zu takes no memory of others", d->api->name, d->index);
    tally_status s = d->api->adopt(d->gpu, memory, n * element, &piece);
    if (s != TALLY_OK) return s;
    s = reduce_piece(d, r, piece, n, out);
    d->api->release(d->gpu, piece);
    return s;
}

static tally_status gpu_resident(tally_device *device, const struct reduction *r, void *memory,
                                 size_t n, tally_value *out) {
    struct gpu_device *d = own(device);
    tally_value value;
    tally_status s = enter(d);
    if (s != TALLY_OK) return s;
    s = leave(d, adopt_and_reduce(d, r, memory, n, &value));
    if (s == TALLY_OK) *out = value;
    return s;
}

/* ---- The read roof ------------------------------------------------------------------------ */

/* The shortest of the plain reads, and of the reduction that does the least: an or of words. */
static tally_status time_reads(struct gpu_device *d, struct gpu_memory *x, size_t bytes,
                               double *best) {
    const struct reduction ors = {.op = TALLY_OR, .type = TALLY_U32, .method = METHOD_BITS};
    struct gpu_program *program = NULL;
    struct gpu_kernel *kernel;
    tally_status s = roof_measure(d->api, d->gpu, x, bytes, best);
    if (s == TALLY_OK) s = find_program(d, &ors, &program);
    if (s == TALLY_OK) s = d->api->kernel(d->gpu, program, "reduce", &kernel);
    if (s == TALLY_OK) s = clear_work(d, &ors);
    for (int run = 0; run < 3 && s == TALLY_OK; run++) {
        double seconds = *best;
        s = d->api->mark(d->gpu, 0);
        if (s == TALLY_OK) s = launch_fold(d, kernel, x, bytes / 4, 4);
        if (s == TALLY_OK) s = d->api->mark(d->gpu, 1);
        if (s == TALLY_OK) s = d->api->elapsed(d->gpu, &seconds);
        if (seconds < *best) *best = seconds;
    }
    return s;
}

/* As much of the bytes as fits the device, in its memory; the time is scaled to all of them. */
static tally_status read_roof(struct gpu_device *d, const void *bytes, size_t size,
                              double *seconds) {
    struct gpu_memory *piece = NULL;
    size_t part = at_most(d->memory / 2, at_most(d->facts.allocation_max, size)) / 16 * 16;
    tally_status s;
    *seconds = 0;
    if (part == 0) return TALLY_OK;
    if (d->facts.unified && (uintptr_t)bytes % 16 == 0) {
        s = d->api->adopt(d->gpu, (void *)(uintptr_t)bytes, part, &piece);
    } else {
        s = d->api->allocate(d->gpu, part, &piece);
        if (s == TALLY_OK) s = d->api->write(d->gpu, piece, 0, bytes, part);
    }
    if (s == TALLY_OK) s = time_reads(d, piece, part, seconds);
    d->api->finish(d->gpu);
    d->api->release(d->gpu, piece);
    *seconds *= (double)size / (double)part;
    return s;
}

static tally_status gpu_read(tally_device *device, const void *bytes, size_t size,
                             double *seconds) {
    if (own(device)->api == &model_api)
        return fail(TALLY_EUNSUPPORTED, "the model has no time, and so no read roof");
    struct gpu_device *d = own(device);
    double took = 0;
    tally_status s = enter(d);
    if (s != TALLY_OK) return s;
    s = leave(d, read_roof(d, bytes, size, &took));
    if (s == TALLY_OK) *seconds = took;
    return s;
}

/* ---- Opening and describing --------------------------------------------------------------- */

/* A number with an optional K, M or G behind it. */
static bool parse_size(const char *text, size_t length, uint64_t *out) {
    uint64_t value = 0;
    size_t i = 0;
    for (; i < length && text[i] >= '0' && text[i] <= '9' && i < 18; i++)
        value = 10 * value + (uint64_t)(text[i] - '0');
    unsigned shift = 0;
    if (i > 0 && i + 1 == length)
        shift = text[i] == 'K' ? 10 : text[i] == 'M' ? 20 : text[i] == 'G' ? 30 : 0;
    if (i == 0 || i + (shift > 0) != length || value > UINT64_MAX >> shift) return false;
    *out = value << shift;
    return true;
}

/* Reads "1,memory=64M,block=32"; what is left out keeps its value. */
static tally_status parse_options(const char *options, struct gpu_device *d, bool *given_block) {
    for (size_t length; *options; options += length + (options[length] == ',')) {
        length = strcspn(options, ",");
        uint64_t number = 0;
        if (strncmp(options, "memory=", 7) == 0 && parse_size(options + 7, length - 7, &number) &&
            number >= MEMORY_LEAST) {
            d->memory = number;
        } else if (strncmp(options, "block=", 6) == 0 &&
                   parse_size(options + 6, length - 6, &number) && number >= 1 && number <= 1024 &&
                   (number & (number - 1)) == 0) {
            d->block = (unsigned)number;
            *given_block = true;
        } else if (parse_size(options, length, &number) && number < 1000) {
            d->index = (size_t)number;
        } else {
            return fail(TALLY_EDEVICE,
                        "'%.*s' is no option of an %s device; there are its number, memory=BYTES "
                        "(1M or more) and block=THREADS (a power of two up to 1024)",
                        (int)(length < 40 ? length : 40), options, d->api->name);
        }
    }
    return TALLY_OK;
}

static void gpu_close(tally_device *device) {
    struct gpu_device *d = own(device);
    drop(d);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static tally_status gpu_open(const struct device_kind *kind, const struct gpu_api *api,
                             const char *options, tally_device **out) {
    struct gpu_device parsed = {.base.kind = kind, .api = api, .block = GPU_BLOCK};
    bool given_block = false;
    tally_status s = parse_options(options, &parsed, &given_block);
    if (s == TALLY_OK) s = api->describe(parsed.index, &parsed.facts);
    if (s != TALLY_OK) return s;
    const struct gpu_facts *facts = &parsed.facts;
    if (!given_block && facts->unified) parsed.block = 1;
    if (parsed.block > facts->block_max)
        return fail(TALLY_EDEVICE, "%s:%zu has no blocks of %u threads, but up to %u", api->name,
                    parsed.index, parsed.block, facts->block_max);
    if (api == &model_api && parsed.block != GPU_BLOCK)
        return fail(TALLY_EDEVICE, "the model's kernels were built for blocks of %d threads",
                    GPU_BLOCK);
    if (parsed.memory == 0 || parsed.memory > facts->memory) parsed.memory = facts->memory;
    if (parsed.facts.allocation_max > parsed.memory / 2)
        parsed.facts.allocation_max = parsed.memory / 2;

    struct gpu_device *d = malloc(sizeof *d);
    if (!d) return fail(TALLY_ENOMEM, "no memory for the %s device", api->name);
    *d = parsed;
    s = api->open(d->index, &d->gpu);
    if (s != TALLY_OK) {
        free(d);
        return s;
    }
    pthread_mutex_init(&d->lock, NULL);
    *out = &d->base;
    return TALLY_OK;
}

static void describe_facts(const struct gpu_api *api, size_t index, const struct gpu_facts *facts,
                           tally_device_info *out) {
    snprintf(out->spec, sizeof out->spec, "%s:%zu", api->name, index);
    snprintf(out->name, sizeof out->name, "%s", facts->name);
    if (facts->major > 0)
        snprintf(out->isa, sizeof out->isa, "sm_%d%d", facts->major, facts->minor);
    out->units = facts->units;
    out->memory_bytes = facts->memory;
}

static void gpu_describe(const tally_device *device, tally_device_info *out) {
    const struct gpu_device *d = own(device);
    describe_facts(d->api, d->index, &d->facts, out);
    out->memory_bytes = d->memory;
}

static void gpu_list(const struct gpu_api *api, size_t i, tally_device_info *out) {
    struct gpu_facts facts = {0};
    if (api->describe(i, &facts) != TALLY_OK) snprintf(facts.name, sizeof facts.name, "?");
    describe_facts(api, i, &facts, out);
}

#define TREE_LEVEL 10 /* subtrees of 2^10 leaves: 2^22 elements a value that the host sees */

#define GPU_KIND(machine)                                                                          \
    static tally_status machine##_open(const char *options, tally_device **out) {                  \
        return gpu_open(&machine##_device_kind, &machine##_api, options, out);                     \
    }                                                                                              \
    static void machine##_list(size_t i, tally_device_info *out) {                                 \
        gpu_list(&machine##_api, i, out);                                                          \
    }                                                                                              \
    static size_t machine##_count(void) {                                                          \
        return machine##_api.count();                                                              \
    }                                                                                              \
    const struct device_kind machine##_device_kind = {                                             \
        .name = #machine,                                                                          \
        .open = machine##_open,                                                                    \
        .close = gpu_close,                                                                        \
        .describe = gpu_describe,                                                                  \
        .count = machine##_count,                                                                  \
        .list = machine##_list,                                                                    \
        .fold = gpu_fold,                                                                          \
        .leaves = gpu_leaves,                                                                      \
        .tree_level = TREE_LEVEL,                                                                  \
        .resident = gpu_resident,                                                                  \
        .read = gpu_read,                                                                          \
    };
GPU_KIND(cuda)
GPU_KIND(opencl)
GPU_KIND(model)
