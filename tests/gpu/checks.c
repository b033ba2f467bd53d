/* checks.c - see checks.h. */
#include "checks.h"

#include "gpu/ring.h"

#include <math.h>
#include <pthread.h>
#include <unistd.h>

#define GRID  6u
#define BLOCK 64u

/* ---- One reduction, step by step ------------------------------------------------------------ */

/* Everything that a reduction by one rung takes; each call is left at the first failure. */
struct run {
    const struct gpu_api *api;
    struct gpu *gpu;
    struct gpu_memory *x, *partials, *total, *board;
    const ladder_arithmetic *instance;
};

static tally_status place(struct run *r, const void *x, size_t n) {
    const ladder_arithmetic *i = r->instance;
    const struct gpu_api *api = r->api;
    const size_t board = (GRID + 1) * i->word_size;
    uint64_t accumulator = 0, word = 0;
    tally_status status = api->allocate(r->gpu, n * i->element_size, &r->x);
    if (!status) status = api->write(r->gpu, r->x, 0, x, n * i->element_size);
    if (!status) status = api->allocate(r->gpu, GRID * i->accumulator_size, &r->partials);
    if (!status) status = api->allocate(r->gpu, i->word_size, &r->total);
    if (!status) status = api->allocate(r->gpu, board, &r->board);
    if (!status) status = api->fill(r->gpu, r->board, 0, 0, board);
    i->neutral(&accumulator);
    i->to_word(&word, &accumulator);
    return status ? status : api->write(r->gpu, r->total, 0, &word, i->word_size);
}

static const char *const type_defines[] = {
    "",         "TYPE_I8",  "TYPE_I16", "TYPE_I32",  "TYPE_I64", "TYPE_U8", "TYPE_U16",
    "TYPE_U32", "TYPE_U64", "TYPE_F16", "TYPE_BF16", "TYPE_F32", "TYPE_F64"};
static const char *const op_defines[] = {"",       "OP_SUM", "OP_PROD", "OP_MIN",
                                         "OP_MAX", "OP_AND", "OP_OR",   "OP_XOR"};

static tally_status launch(struct run *r, ladder_rung rung, size_t n) {
    const ladder_rung_info *info = ladder_rung_of(rung);
    const struct gpu_api *api = r->api;
    const char *const defines[] = {type_defines[r->instance->type], op_defines[r->instance->op]};
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    const uint64_t n64 = n;
    const struct gpu_argument arguments[] = {{.memory = r->x},
                                             {.value = &n64, .size = sizeof n64},
                                             {.memory = r->partials},
                                             {.memory = r->total},
                                             {.memory = r->board}};
    tally_status status = api->build(r->gpu, "ladder/ladder.cu", NULL, defines, 2, &program);
    if (!status) status = api->kernel(r->gpu, program, info->kernel, &kernel);
    if (!status)
        status = api->launch(r->gpu, kernel, GRID, BLOCK, arguments,
                             info->extra == LADDER_BOARD ? 5 : 4);
    return status;
}

/* A grid-sized rung over x[0..n), into `accumulator`. */
static tally_status reduce(const struct gpu_api *api, struct gpu *gpu, ladder_rung rung,
                           const ladder_arithmetic *instance, const void *x, size_t n,
                           void *accumulator) {
    struct run r = {.api = api, .gpu = gpu, .instance = instance};
    uint64_t word = 0;
    tally_status status = place(&r, x, n);
    if (!status) status = launch(&r, rung, n);
    if (!status) status = api->read(gpu, &word, r.total, 0, instance->word_size);
    instance->from_word(accumulator, &word);
    api->release(gpu, r.board);
    api->release(gpu, r.total);
    api->release(gpu, r.partials);
    api->release(gpu, r.x);
    return status;
}

tally_status sum_i32(const struct gpu_api *api, struct gpu *gpu, ladder_rung rung, const int32_t *x,
                     size_t n, int64_t *sum) {
    return reduce(api, gpu, rung, ladder_arithmetic_of(TALLY_I32, TALLY_SUM), x, n, sum);
}

static int32_t *some_integers(size_t n, int64_t *sum) {
    uint64_t state = n;
    int32_t *x = malloc((n + 1) * sizeof *x);
    assert_non_null(x);
    *sum = 0;
    for (size_t i = 0; i < n; i++)
        *sum += x[i] = (int32_t)next_random(&state);
    return x;
}

/* The rungs whose grid the host chooses freely. */
static const ladder_rung rungs[] = {LADDER_GRID_STRIDE, LADDER_VECTORIZED, LADDER_SHUFFLE,
                                    LADDER_SINGLE_PASS};

static struct gpu *opened(const struct gpu_api *api) {
    struct gpu *gpu = NULL;
    assert_ok(api->open(0, NULL, &gpu));
    assert_non_null(gpu);
    return gpu;
}

/* ---- Checks --------------------------------------------------------------------------------- */

void check_memory(const struct gpu_api *api) {
    struct gpu *gpu = opened(api);
    struct gpu_memory *a, *b, *nothing;
    unsigned char in[1000], out[1000], wanted[1000];
    for (size_t i = 0; i < sizeof in; i++)
        wanted[i] = in[i] = (unsigned char)(i * 7 + i / 256);
    memcpy(wanted + 3, in + 500, 5);
    memcpy(wanted + 17, in + 1, 3);
    memset(wanted + 990, 0xab, 10);

    assert_ok(api->allocate(gpu, sizeof in, &a));
    assert_ok(api->allocate(gpu, sizeof in, &b));
    assert_ok(api->allocate(gpu, 0, &nothing));
    assert_ok(api->write(gpu, a, 0, in, sizeof in));
    assert_ok(api->copy(gpu, b, 0, a, 0, sizeof in));
    assert_ok(api->copy(gpu, b, 3, a, 500, 5));
    assert_ok(api->write(gpu, b, 17, in + 1, 3));
    assert_ok(api->fill(gpu, b, 990, 0xab, 10));
    assert_ok(api->read(gpu, out, b, 0, sizeof out));
    assert_memory_equal(out, wanted, sizeof out);
    assert_ok(api->read(gpu, out, b, 996, 4));
    assert_int_equal(out[0], 0xab);

    assert_ok(api->write(gpu, nothing, 0, in, 0));
    assert_ok(api->read(gpu, out, nothing, 0, 0));
    assert_ok(api->fill(gpu, nothing, 0, 1, 0));
    assert_ok(api->copy(gpu, nothing, 0, a, 7, 0));
    assert_error(TALLY_EINVAL, api->write(gpu, a, 1, in, sizeof in));
    assert_error(TALLY_EINVAL, api->read(gpu, out, a, SIZE_MAX, 2));
    assert_error(TALLY_EINVAL, api->fill(gpu, a, 1001, 0, 0));
    assert_error(TALLY_EINVAL, api->copy(gpu, a, 0, b, 999, 2));
    assert_error(TALLY_ENOMEM, api->allocate(gpu, SIZE_MAX / 8, &nothing));
    assert_error(TALLY_EINVAL, api->adopt(gpu, NULL, 1, &nothing));
    api->release(gpu, a);
    api->release(gpu, NULL);
    assert_ok(api->finish(gpu));
    api->close(gpu); /* frees b */
    api->close(NULL);
}

void check_builds(const struct gpu_api *api) {
    struct gpu *gpu = opened(api);
    struct gpu_program *program, *again, *other;
    struct gpu_kernel *kernel, *same;
    const char *const i32[] = {"TYPE_I32", "OP_SUM"}, *const u8[] = {"TYPE_U8", "OP_MAX"};
    const char *const none[] = {"OP_SUM"};

    assert_ok(api->build(gpu, "ladder/ladder.cu", NULL, i32, 2, &program));
    assert_ok(api->build(gpu, "ladder/ladder.cu", NULL, i32, 2, &again));
    assert_ptr_equal(program, again);
    assert_ok(api->build(gpu, "ladder/ladder.cu", NULL, u8, 2, &other));
    assert_ptr_not_equal(program, other);

    assert_ok(api->kernel(gpu, program, "vectorized", &kernel));
    assert_ok(api->kernel(gpu, program, "vectorized", &same));
    assert_ptr_equal(kernel, same);
    assert_error(TALLY_EINVAL, api->kernel(gpu, program, "no_such_kernel", &kernel));
    assert_non_null(strstr(tally_error(), "no_such_kernel"));

    assert_error(TALLY_ECOMPILE, api->build(gpu, "ladder/ladder.cu", NULL, none, 1, &program));
    assert_non_null(strstr(tally_error(), "define one of TYPE_I8"));
    assert_error(TALLY_ECOMPILE, api->build(gpu, "no_such_file.cu", NULL, NULL, 0, &program));
    assert_ok(api->build(gpu, "ladder/ladder.cu", NULL, i32, 2, &again));
    api->close(gpu);
}

static void fill_randomly(unsigned char *x, size_t n, uint64_t state) {
    for (size_t i = 0; i < n; i++)
        x[i] = (unsigned char)(i % 8 ? state >> 8 * (i % 8) : next_random(&state));
}

/* One write in the middle of memory that is otherwise 0x5a, and a second one right after it. */
static void check_write(const struct gpu_api *api, struct gpu *gpu, size_t offset, size_t bytes) {
    const size_t all = offset + 2 * bytes + 9;
    struct gpu_memory *memory;
    unsigned char *x = malloc(bytes + 1), *wanted = malloc(all), *out = malloc(all);
    assert_true(x && wanted && out);
    memset(wanted, 0x5a, all);
    assert_ok(api->allocate(gpu, all, &memory));
    assert_ok(api->fill(gpu, memory, 0, 0x5a, all));
    for (int i = 0; i < 2; i++) {
        unsigned char *to = wanted + offset + (size_t)i * (bytes + 1);
        fill_randomly(x + 1, bytes, all + (size_t)i);
        memcpy(to, x + 1, bytes);
        assert_ok(api->write(gpu, memory, (size_t)(to - wanted), x + 1, bytes));
        memset(x, 0xee, bytes + 1);
    }
    assert_ok(api->read(gpu, out, memory, 0, all));
    if (memcmp(out, wanted, all) != 0)
        fail_msg("%zu bytes at %zu did not arrive as written", bytes, offset);
    api->release(gpu, memory);
    free(x);
    free(wanted);
    free(out);
}

void check_writes(const struct gpu_api *api, struct gpu *gpu) {
    static const size_t piece = RING_CHUNK;
    check_writes_without_ring(api, gpu);
    check_write(api, gpu, 67, RING_CHUNKS * piece + 3);
    check_write(api, gpu, 75, 9 * piece - 5);
}

void check_writes_without_ring(const struct gpu_api *api, struct gpu *gpu) {
    /* Around what a piece of a ring has, and what its threads share. */
    static const size_t piece = RING_CHUNK;
    const size_t sizes[] = {0,         1,     RING_LEAST, RING_LEAST + 1, 2 * RING_SHARE - 1,
                            piece - 1, piece, piece + 1};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        check_write(api, gpu, 3 + 8 * i, sizes[i]);
}

enum { HALF = 100003 };

static void expect_bytes(const struct gpu_api *api, struct gpu *gpu, struct gpu_memory *memory,
                         int first, int second) {
    static unsigned char out[2 * HALF];
    assert_ok(api->read(gpu, out, memory, 0, sizeof out));
    for (size_t i = 0; i < sizeof out; i++)
        if (out[i] != (i < HALF ? first : second))
            fail_msg("byte %zu is %d instead of %d", i, out[i], i < HALF ? first : second);
}

void check_queue(const struct gpu_api *api, struct gpu *gpu, void *queue, void (*wait)(void *)) {
    static unsigned char x[2 * HALF];
    struct gpu_memory *a;
    assert_ok(api->allocate(gpu, sizeof x, &a));
    for (int round = 0; round < 3; round++) {
        memset(x, 1, sizeof x);
        assert_ok(api->write(gpu, a, 0, x, sizeof x)); /* ours, */
        assert_ok(api->finish(gpu));
        api->use(gpu, true, queue);
        assert_ok(api->fill(gpu, a, HALF, 2, HALF)); /* theirs */
        wait(queue);
        expect_bytes(api, gpu, a, 1, 2); /* a read is ours always */
        api->use(gpu, false, NULL);
        assert_ok(api->fill(gpu, a, 0, 5, HALF));
        expect_bytes(api, gpu, a, 5, 2);
    }
    api->release(gpu, a);
}

void check_visible(const struct gpu_api *api, struct gpu *gpu) {
    const ladder_arithmetic *instance = ladder_arithmetic_of(TALLY_I32, TALLY_SUM);
    struct run r = {.api = api, .gpu = gpu, .instance = instance};
    struct gpu_memory *total;
    volatile void *host = NULL;
    uint64_t word = 0;
    int64_t wanted, sum = 0;
    int32_t *x = some_integers(1000, &wanted);
    assert_ok(api->allocate_visible(gpu, instance->word_size, &total, &host));
    assert_non_null((const void *)(uintptr_t)host);
    assert_ok(place(&r, x, 1000));
    assert_ok(api->copy(gpu, total, 0, r.total, 0, instance->word_size));
    api->release(gpu, r.total);
    r.total = total;
    assert_ok(launch(&r, LADDER_SHUFFLE, 1000));
    assert_ok(api->finish(gpu));
    memcpy(&word, (const void *)(uintptr_t)host, instance->word_size);
    instance->from_word(&sum, &word);
    assert_true(sum == wanted);
    assert_ok(api->fill(gpu, total, 0, 7, instance->word_size));
    assert_ok(api->finish(gpu));
    assert_int_equal(*(volatile char *)host, 7);
    api->release(gpu, total);
    assert_ok(api->allocate_visible(gpu, 0, &total, &host)); /* close() frees it */
    api->release(gpu, r.board);
    api->release(gpu, r.partials);
    api->release(gpu, r.x);
    free(x);
}

/* Small whole numbers, so that sums of floats are exact in any order. */
static void check_sum(const struct gpu_api *api, struct gpu *gpu, tally_type type, size_t n) {
    const ladder_arithmetic *instance = ladder_arithmetic_of(type, TALLY_SUM);
    double accumulator, *x = malloc((n + 1) * sizeof *x);
    float *narrow = (float *)x;
    tally_value result;
    int64_t sum = 0;
    uint64_t state = n;
    assert_non_null(x);
    for (size_t i = 0; i < n; i++) {
        const int value = (int)(next_random(&state) % 15) - 7;
        sum += value;
        if (type == TALLY_F32)
            narrow[i] = (float)value;
        else
            x[i] = value;
    }
    for (size_t k = 0; k < sizeof rungs / sizeof *rungs; k++) {
        assert_ok(reduce(api, gpu, rungs[k], instance, x, n, &accumulator));
        ladder_result(instance, &accumulator, n, &result);
        const double wanted = (double)sum;
        const double got = type == TALLY_F32 ? (double)result.as.f32 : result.as.f64;
        if (got != wanted || signbit(got) != signbit(wanted))
            fail_msg("%s, n = %zu: %g instead of %g", ladder_rung_of(rungs[k])->name, n, got,
                     wanted);
    }
    free(x);
}

void check_ladder(const struct gpu_api *api) {
    static const size_t lengths[] = {0, 1, 31, 33, 1000, 4099};
    struct gpu *gpu = opened(api);
    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        int64_t wanted, sum;
        int32_t *x = some_integers(lengths[l], &wanted);
        for (size_t k = 0; k < sizeof rungs / sizeof *rungs; k++) {
            assert_ok(sum_i32(api, gpu, rungs[k], x, lengths[l], &sum));
            assert_true(sum == wanted);
        }
        free(x);
        check_sum(api, gpu, TALLY_F32, lengths[l]);
        if (api->facts(gpu)->doubles) check_sum(api, gpu, TALLY_F64, lengths[l]);
    }
    api->close(gpu);
}

void check_time(const struct gpu_api *api) {
    struct gpu *gpu = opened(api);
    struct gpu_memory *memory;
    double seconds = -1;
    assert_error(TALLY_EINVAL, api->elapsed(gpu, &seconds));
    assert_ok(api->allocate(gpu, 1 << 20, &memory));
    assert_ok(api->mark(gpu, 0));
    assert_error(TALLY_EINVAL, api->elapsed(gpu, &seconds));
    assert_ok(api->fill(gpu, memory, 0, 1, 1 << 20));
    assert_ok(api->mark(gpu, 1));
    assert_ok(api->elapsed(gpu, &seconds));
    assert_true(seconds > 0 && seconds < 10);
    assert_ok(api->mark(gpu, 0)); /* a second measurement */
    assert_ok(api->mark(gpu, 1));
    assert_ok(api->elapsed(gpu, &seconds));
    assert_true(seconds >= 0 && seconds < 10);
    api->close(gpu);
}

/* Bytes of memory that the process has. */
static size_t resident(void) {
    unsigned long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (f && fscanf(f, "%*u %lu", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

void check_reopening(const struct gpu_api *api, unsigned times, size_t bytes) {
    size_t before = 0;
    for (unsigned i = 0; i < times; i++) {
        struct gpu_memory *memory;
        struct gpu *gpu = opened(api);
        assert_ok(api->allocate(gpu, 100000, &memory));
        assert_ok(api->fill(gpu, memory, 0, 1, 100000));
        assert_ok(api->mark(gpu, 0));
        assert_ok(api->finish(gpu));
        api->close(gpu);
        if (i == times / 10) /* by then caches are warm */
            before = resident();
    }
#if defined(__SANITIZE_ADDRESS__) ||                                                               \
    defined(__SANITIZE_THREAD__) /* keeps what is freed for a while */
    bytes = SIZE_MAX / 2;
#endif
    const size_t after = resident();
    if (after > before + bytes)
        fail_msg("opening and closing leaks: %zu bytes in %u times", after - before, times);
}

struct worker {
    const struct gpu_api *api;
    unsigned rounds;
    const int32_t *x;
    size_t n;
    int64_t wanted;
    char problem[600];
};

/* cmocka's assertions are the main thread's; here a problem is noted. */
static void *work(void *argument) {
    struct worker *w = argument;
    struct gpu *gpu = NULL;
    int64_t sum = 0;
    tally_status status = w->api->open(0, NULL, &gpu);
    for (unsigned r = 0; r < w->rounds && status == TALLY_OK; r++) {
        status = sum_i32(w->api, gpu, rungs[r % 4], w->x, w->n, &sum);
        if (status == TALLY_OK && sum != w->wanted)
            snprintf(w->problem, sizeof w->problem, "a wrong sum in round %u", r);
    }
    if (status) snprintf(w->problem, sizeof w->problem, "%s", tally_error());
    w->api->close(gpu);
    return NULL;
}

void check_threads(const struct gpu_api *api, unsigned threads, unsigned rounds) {
    enum { THREADS_MAX = 8 };
    pthread_t ids[THREADS_MAX];
    struct worker workers[THREADS_MAX];
    int64_t wanted;
    int32_t *x = some_integers(3001, &wanted);
    assert_true(threads <= THREADS_MAX);
    for (unsigned t = 0; t < threads; t++) {
        workers[t] =
            (struct worker){.api = api, .rounds = rounds, .x = x, .n = 3001, .wanted = wanted};
        assert_int_equal(pthread_create(&ids[t], NULL, work, &workers[t]), 0);
    }
    for (unsigned t = 0; t < threads; t++)
        pthread_join(ids[t], NULL);
    free(x);
    for (unsigned t = 0; t < threads; t++)
        if (*workers[t].problem) fail_msg("thread %u: %s", t, workers[t].problem);
}

void check_absence(const struct gpu_api *api, size_t i) {
    struct gpu *gpu = NULL;
    struct gpu_facts facts;
    assert_error(TALLY_EDEVICE, api->open(i, NULL, &gpu));
    assert_error(TALLY_EDEVICE, api->describe(i, &facts));
    assert_null(gpu);
}
