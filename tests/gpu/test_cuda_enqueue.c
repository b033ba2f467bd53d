/* test_cuda_enqueue.c - tally_enqueue() on the test double of CUDA's driver: it waits for no reduction of another
 * thread's, and after a failure it opens nothing by itself. */
#include "../c/testing.h"

#include "cuda/driver.h"

#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>

static struct cuda_driver driver;
static size_t (*objects)(void), (*launches)(void), (*graphs)(void), (*fills)(void);
static void (*capture)(CUstream stream, bool on);
static CUcontext context;
static CUstream stream;

static void load(void *library, const char *name, void *out) {
    void *address = dlsym(library, name);
    assert_non_null(address);
    memcpy(out, &address, sizeof address);
}

static int load_double(void **state) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    (void)state;
    if (!library) return 1;
    load(library, "tally_cuda_double_objects", &objects);
    load(library, "tally_cuda_double_launches", &launches);
    load(library, "tally_cuda_double_graphs", &graphs);
    load(library, "tally_cuda_double_fills", &fills);
    load(library, "tally_cuda_double_capture", &capture);
#define LOAD(name, suffix, parameters) load(library, #name #suffix, &driver.name);
    CUDA_CALLS(LOAD)
#undef LOAD
    return driver.cuInit(0) || driver.cuDevicePrimaryCtxRetain(&context, 0) ||
           driver.cuCtxPushCurrent(context) || driver.cuStreamCreate(&stream, 1);
}

/* A call for the sum of four ones, and what it needs. */
struct caller {
    tally_device *device;
    tally_problem problem;
    tally_call call;
    CUdeviceptr x, work, result;
};

static void open_caller(struct caller *c) {
    static const double ones[] = {1, 1, 1, 1};
    size_t bytes = 0;
    *c = (struct caller){.problem = {.op = TALLY_SUM, .type = TALLY_F64}};
    assert_int_equal(tally_open("cuda:0", &c->device), TALLY_OK);
    assert_int_equal(tally_workspace(c->device, &c->problem, 4, &bytes), TALLY_OK);
    assert_int_equal(driver.cuMemAlloc(&c->x, sizeof ones), 0);
    assert_int_equal(driver.cuMemAlloc(&c->work, bytes), 0);
    assert_int_equal(driver.cuMemAlloc(&c->result, sizeof(tally_result)), 0);
    assert_int_equal(driver.cuMemcpyHtoDAsync(c->x, ones, sizeof ones, stream), 0);
    c->call = (tally_call){.x = (void *)(uintptr_t)c->x,
                           .n = 4,
                           .workspace = (void *)(uintptr_t)c->work,
                           .workspace_bytes = bytes,
                           .queue = stream,
                           .results = (void *)(uintptr_t)c->result};
}

static void close_caller(struct caller *c) {
    driver.cuMemFree(c->x);
    driver.cuMemFree(c->work);
    driver.cuMemFree(c->result);
    tally_close(c->device);
}

static atomic_bool reduced;

static void *reduce_much(void *data) {
    const tally_problem var = {.op = TALLY_VAR, .type = TALLY_F64};
    const size_t n = 400000;
    tally_value value;
    double *x = calloc(n, sizeof *x);
    if (x) tally_reduce(data, &var, x, NULL, n, &value);
    free(x);
    reduced = true;
    return NULL;
}

static void test_waits_for_nobody(void **state) {
    struct caller c;
    pthread_t thread;
    tally_result result;
    unsigned during = 0;
    (void)state;
    open_caller(&c);
    /* One call may return before the reduction begins, and one as it ends. (A machine with much to do may run the
     * threads one after the other, so there are several attempts.) */
    for (int attempt = 0; attempt < 8 && during <= 2; attempt++) {
        during = 0;
        reduced = false;
        assert_int_equal(pthread_create(&thread, NULL, reduce_much, c.device), 0);
        while (!reduced) {
            assert_int_equal(tally_enqueue(c.device, &c.problem, &c.call), TALLY_OK);
            during += !reduced;
        }
        pthread_join(thread, NULL);
    }
    assert_true(during > 2);
    assert_int_equal(driver.cuStreamSynchronize(stream), 0);
    assert_int_equal(driver.cuMemcpyDtoHAsync(&result, c.result, sizeof result, stream), 0);
    assert_int_equal(driver.cuStreamSynchronize(stream), 0);
    assert_int_equal(result.status, TALLY_OK);
    assert_true(result.as.f64 == 4);
    close_caller(&c);
}

static void test_stays_lost(void **state) {
    struct caller c;
    size_t bytes;
    (void)state;
    open_caller(&c);
    setenv("TALLY_CUDA_DOUBLE_FAIL", "cuLaunchKernel:1:999", 1); /* CUDA_ERROR_UNKNOWN */
    assert_int_equal(tally_enqueue(c.device, &c.problem, &c.call), TALLY_ELOST);
    unsetenv("TALLY_CUDA_DOUBLE_FAIL");
    const size_t had = objects();
    for (int i = 0; i < 3; i++)
        assert_int_equal(tally_enqueue(c.device, &c.problem, &c.call), TALLY_ELOST);
    assert_int_equal(tally_queue_is_captured(c.device, stream), 1);
    assert_int_equal(tally_queue_is_captured(NULL, NULL), 0); /* the CPU */
    assert_true(objects() <= had);                            /* nothing was made */
    assert_int_equal(tally_workspace(c.device, &c.problem, 4, &bytes), TALLY_OK);
    assert_true(objects() > 0);
    tally_close(c.device); /* the caller's memory went with the context */
}

/* ---- Heads (src/gpu/heads.h) --------------------------------------------------------------------- */

enum {
    LENGTH = 8192,
    MANY = 1100,
    KINDS = 7
}; /* several blocks; more workspaces than the queue has heads */

/* -3 ... 3 in turn, and a 4 in the middle. */
static double element(int i) {
    return i == LENGTH / 2 ? 4 : i % 7 - 3;
}

/* What problem i is, and its value for the first n elements, by a plain loop: all partial sums are exact. */
static double ask(int i, size_t n, tally_problem *problem) {
    static const tally_op ops[KINDS] = {TALLY_SUM, TALLY_MAX,     TALLY_SUMSQ,  TALLY_SUM,
                                        TALLY_VAR, TALLY_NONZERO, TALLY_NORMINF};
    double sum = 0, squares = 0, most = -INFINITY, largest = 0, nonzero = 0;
    *problem = (tally_problem){.op = ops[i % KINDS], .type = TALLY_F64, .fast = i % KINDS == 3};
    for (size_t k = 0; k < n; k++) {
        const double x = element((int)k);
        sum += x;
        squares += x * x;
        most = x > most ? x : most;
        largest = fabs(x) > largest ? fabs(x) : largest;
        nonzero += x != 0;
    }
    const double count = (double)n, mean = sum / count; /* n a power of two, where it counts */
    return problem->op == TALLY_MAX       ? most
           : problem->op == TALLY_NORMINF ? largest
           : problem->op == TALLY_VAR     ? squares / count - mean * mean
           : problem->op == TALLY_SUMSQ   ? squares
           : problem->op == TALLY_NONZERO ? nonzero
                                          : sum;
}

static void open_long(struct caller *c) {
    double *x = malloc(LENGTH * sizeof *x);
    size_t bytes = 0, most = 0;
    assert_non_null(x);
    for (int i = 0; i < LENGTH; i++)
        x[i] = element(i);
    *c = (struct caller){.call.n = LENGTH};
    assert_int_equal(tally_open("cuda:0", &c->device), TALLY_OK);
    for (int i = 0; i < KINDS; i++) {
        ask(i, 0, &c->problem);
        assert_int_equal(tally_workspace(c->device, &c->problem, LENGTH, &bytes), TALLY_OK);
        most = bytes > most ? bytes : most;
    }
    assert_int_equal(driver.cuMemAlloc(&c->x, LENGTH * sizeof *x), 0);
    assert_int_equal(driver.cuMemAlloc(&c->work, most + 8 * MANY), 0);
    assert_int_equal(driver.cuMemAlloc(&c->result, sizeof(tally_result)), 0);
    assert_int_equal(driver.cuMemcpyHtoDAsync(c->x, x, LENGTH * sizeof *x, stream), 0);
    assert_int_equal(driver.cuMemsetD8Async(c->work, 0x5a, most + 8 * MANY, stream), 0);
    assert_int_equal(driver.cuStreamSynchronize(stream), 0);
    free(x);
    c->call.x = (void *)(uintptr_t)c->x;
    c->call.workspace_bytes = most;
    c->call.results = (void *)(uintptr_t)c->result;
}

/* Problem i, in the workspace that begins `at` bytes on, on a stream. */
static tally_status call(struct caller *c, int i, size_t at, CUstream on, double *wanted) {
    *wanted = ask(i, c->call.n, &c->problem);
    c->call.workspace = (void *)(uintptr_t)(c->work + at);
    c->call.queue = on;
    return tally_enqueue(c->device, &c->problem, &c->call);
}

static void check_call(struct caller *c, int i, size_t at, CUstream on) {
    tally_result result;
    double wanted;
    assert_int_equal(call(c, i, at, on, &wanted), TALLY_OK);
    assert_int_equal(driver.cuStreamSynchronize(on), 0);
    assert_int_equal(driver.cuMemcpyDtoHAsync(&result, c->result, sizeof result, on), 0);
    assert_int_equal(driver.cuStreamSynchronize(on), 0);
    assert_int_equal(result.status, TALLY_OK);
    assert_true((c->problem.op == TALLY_NONZERO ? (double)result.as.u64 : result.as.f64) == wanted);
}

/* One workspace of any content, for problems of several kinds in turn, on two streams, and after a call that failed:
 * every value is right. */
static void test_keeps_heads_clean(void **state) {
    struct caller c;
    CUstream other;
    double wanted;
    (void)state;
    open_long(&c);
    assert_int_equal(driver.cuStreamCreate(&other, 1), 0);
    for (int i = 0; i < 4 * KINDS; i++)
        check_call(&c, i, 0, i % 3 ? stream : other);
    for (int i = 0; i < KINDS; i++) {
        setenv("TALLY_CUDA_DOUBLE_FAIL", "cuLaunchKernel:1:2", 1); /* CUDA_ERROR_OUT_OF_MEMORY */
        assert_int_equal(call(&c, i, 0, stream, &wanted), TALLY_ENOMEM);
        unsetenv("TALLY_CUDA_DOUBLE_FAIL");
        check_call(&c, i, 0, stream);
        check_call(&c, i + 1, 0, other);
    }
    driver.cuStreamDestroy(other);
    close_caller(&c);
}

/* More workspaces than there are heads: the last ones have theirs in themselves. */
static void test_runs_out_of_heads(void **state) {
    struct caller c;
    (void)state;
    open_long(&c);
    c.call.n = 4096; /* two blocks */
    for (int i = 0; i < MANY; i++)
        check_call(&c, i, 8 * (size_t)i, stream);
    for (int i = 0; i < MANY; i += 100)
        check_call(&c, i + 1, 8 * (size_t)i, stream);
    close_caller(&c);
}

/* ---- What a call costs ------------------------------------------------------------------------------- */

/* The launches and fills of a call for one value of n elements, whose bits are looked at, too. */
static void check_cost(struct caller *c, int i, size_t n, size_t launched, size_t filled) {
    c->call.n = n;
    check_call(c, i, 0, stream); /* finds kernels, and gives the workspace a head */
    const size_t launches_before = launches(), fills_before = fills();
    check_call(c, i, 0, stream);
    assert_int_equal(launches() - launches_before, launched);
    assert_int_equal(fills() - fills_before, filled);
}

/* Nothing is cleared before a call for one value. Of few elements it is one launch, whatever is asked. */
static void test_what_a_call_costs(void **state) {
    struct caller c;
    (void)state;
    open_long(&c);
    for (int i = 0; i < KINDS; i++) {
        const size_t records = i == 4 || i == 6 ? 1 : 0; /* of f64: sums and squares; extremes */
        check_cost(&c, i, 16, 1, 0);
        check_cost(&c, i, 1024, 1, 0);
        check_cost(&c, i, LENGTH, records > 0 ? records + 1 : 1, 0);
    }
    close_caller(&c);
}

/* Along an axis, where nobody asks what became of it: one launch, and one for rows that it may have left. */
static void test_what_rows_cost(void **state) {
    static const tally_op ops[] = {TALLY_SUM, TALLY_MEAN, TALLY_VAR, TALLY_MAX, TALLY_ARGMIN};
    struct caller c;
    double row[4];
    (void)state;
    open_long(&c);
    for (int i = 0; i < 10; i++) {
        const size_t length[] = {4, 16};
        const tally_problem problem = {.op = ops[i % 5], .type = TALLY_F64};
        const tally_shape shape = {.cut = TALLY_AXES, .dims = 2, .length = length, .axes = 2};
        size_t bytes = 0;
        void *out[] = {(void *)(uintptr_t)c.result};
        CUdeviceptr work;
        assert_int_equal(tally_workspace_shaped(c.device, &problem, &shape, &bytes), TALLY_OK);
        assert_int_equal(driver.cuMemAlloc(&work, bytes), 0);
        assert_int_equal(driver.cuMemsetD8Async(work, 0x5a, bytes, stream), 0);
        assert_int_equal(driver.cuMemAlloc(&c.result, sizeof row), 0);
        out[0] = (void *)(uintptr_t)c.result;
        const tally_shaped_call asked = {.shape = &shape,
                                         .x = c.call.x,
                                         .workspace = (void *)(uintptr_t)work,
                                         .workspace_bytes = bytes,
                                         .queue = stream,
                                         .out = out};
        const size_t launches_before = launches(), fills_before = fills();
        assert_int_equal(tally_enqueue_shaped(c.device, &problem, &asked), TALLY_OK);
        const bool is_certain = problem.op == TALLY_MAX || problem.op == TALLY_ARGMIN;
        assert_int_equal(launches() - launches_before, is_certain ? 1 : 2);
        assert_int_equal(fills() - fills_before, 0);
        driver.cuStreamSynchronize(stream);
        assert_int_equal(driver.cuMemcpyDtoHAsync(row, c.result, sizeof row, stream), 0);
        driver.cuStreamSynchronize(stream);
        if (problem.op == TALLY_SUM)
            for (int r = 0; r < 4; r++) {
                double sum = 0;
                for (int k = 0; k < 16; k++)
                    sum += element(16 * r + k);
                assert_true(row[r] == sum);
            }
        driver.cuMemFree(work);
    }
    close_caller(&c);
}

/* ---- Calls that come again (src/cuda/graphs.h) --------------------------------------------------- */

enum { RESULTS = 12, EACH = 12, ARRAYS = 2 };

/* Sums of rows, or of columns, of two arrays; the 8th and 9th sums are found by `fold` only. */
struct repeated {
    tally_device *device;
    CUdeviceptr x[ARRAYS], out[ARRAYS], work;
    size_t bytes;
    double *host[ARRAYS];
    tally_shape shape;
    size_t length[2];
    int along, across; /* from an element of a sum to the next one, and from a sum to the next */
};

/* Its kernels may leave a sum, so that others follow. */
static const tally_problem double_sum = {.op = TALLY_SUM, .type = TALLY_F64};

static double *make_doubles(const struct repeated *r, int of) {
    double *x = malloc(sizeof(double) * RESULTS * EACH);
    assert_non_null(x);
    for (int i = 0; i < RESULTS * EACH; i++)
        x[i] = (i * (of + 3)) % 11 - 5;
    for (int k = 7; k <= 8; k++) {
        x[k * r->across + 3 * r->along] = 1e300;
        x[k * r->across + 4 * r->along] = -1e300;
        x[k * r->across + 5 * r->along] = 1e-100;
    }
    return x;
}

static void open_repeated(struct repeated *r, bool are_rows) {
    *r = (struct repeated){.along = are_rows ? 1 : RESULTS, .across = are_rows ? EACH : 1};
    r->length[0] = are_rows ? RESULTS : EACH;
    r->length[1] = are_rows ? EACH : RESULTS;
    r->shape =
        (tally_shape){.cut = TALLY_AXES, .dims = 2, .length = r->length, .axes = are_rows ? 2 : 1};
    assert_int_equal(tally_open("cuda:0", &r->device), TALLY_OK);
    assert_int_equal(tally_workspace_shaped(r->device, &double_sum, &r->shape, &r->bytes),
                     TALLY_OK);
    assert_int_equal(driver.cuMemAlloc(&r->work, r->bytes), 0);
    assert_int_equal(driver.cuMemsetD8Async(r->work, 0x5a, r->bytes, stream), 0);
    for (int i = 0; i < ARRAYS; i++) {
        r->host[i] = make_doubles(r, i);
        assert_int_equal(driver.cuMemAlloc(&r->x[i], sizeof(double) * RESULTS * EACH), 0);
        assert_int_equal(driver.cuMemAlloc(&r->out[i], sizeof(double) * RESULTS), 0);
        driver.cuMemcpyHtoDAsync(r->x[i], r->host[i], sizeof(double) * RESULTS * EACH, stream);
    }
    assert_int_equal(driver.cuStreamSynchronize(stream), 0);
}

static void close_repeated(struct repeated *r) {
    for (int i = 0; i < ARRAYS; i++) {
        free(r->host[i]);
        driver.cuMemFree(r->x[i]);
        driver.cuMemFree(r->out[i]);
    }
    driver.cuMemFree(r->work);
    tally_close(r->device);
}

static tally_status call_again(const struct repeated *r, int i, CUstream on) {
    void *out[] = {(void *)(uintptr_t)r->out[i]};
    const tally_shaped_call call = {.shape = &r->shape,
                                    .x = (void *)(uintptr_t)r->x[i],
                                    .workspace = (void *)(uintptr_t)r->work,
                                    .workspace_bytes = r->bytes,
                                    .queue = on,
                                    .out = out};
    return tally_enqueue_shaped(r->device, &double_sum, &call);
}

/* Makes a call, and looks at its sums, which doubles hold but for what cancels. Until then they are wiped. */
static void check_again(const struct repeated *r, int i, CUstream on) {
    double got[RESULTS];
    assert_int_equal(driver.cuMemsetD8Async(r->out[i], 0x5a, sizeof got, on), 0);
    assert_int_equal(call_again(r, i, on), TALLY_OK);
    assert_int_equal(driver.cuStreamSynchronize(on), 0);
    assert_int_equal(driver.cuMemcpyDtoHAsync(got, r->out[i], sizeof got, on), 0);
    assert_int_equal(driver.cuStreamSynchronize(on), 0);
    for (int k = 0; k < RESULTS; k++) {
        double sum = 0, tiny = 0;
        for (int j = 0; j < EACH; j++) {
            const double x = r->host[i][k * r->across + j * r->along];
            tiny += fabs(x) < 1e-9 ? x : 0;
            sum += fabs(x) < 1e9 && fabs(x) > 1e-9 ? x : 0;
        }
        assert_true(got[k] == (sum + tiny));
    }
}

/* Calls with several launches go as graphs after a while, each with its own arguments; on every stream for itself, and
 * not where a stream is captured. */
static void test_goes_as_graphs(void **state) {
    (void)state;
    for (int are_rows = 0; are_rows < 2; are_rows++) {
        struct repeated r;
        CUstream other;
        const size_t had = objects();
        open_repeated(&r, are_rows);
        assert_int_equal(driver.cuStreamCreate(&other, 1), 0);
        const size_t before = graphs();
        for (int i = 0; i < 30; i++)
            check_again(&r, i % ARRAYS, stream);
        const size_t alone = graphs() - before;
        assert_true(alone > 10 && alone < 30);
        for (int i = 0; i < 20; i++)
            check_again(&r, i % ARRAYS, i % 3 ? stream : other);
        assert_true(graphs() - before > alone);
        const size_t now = graphs();
        capture(stream, true);
        assert_int_equal(tally_queue_is_captured(r.device, stream), 1);
        assert_int_equal(tally_queue_is_captured(r.device, other), 0);
        for (int i = 0; i < 20; i++)
            assert_int_equal(call_again(&r, i % ARRAYS, stream), TALLY_OK);
        for (int i = 0; i < 20; i++) /* beside the captured one */
            assert_int_equal(call_again(&r, i % ARRAYS, other), TALLY_OK);
        capture(stream, false);
        assert_int_equal(tally_queue_is_captured(r.device, stream), 0);
        setenv("TALLY_CUDA_DOUBLE_FAIL", "cuStreamIsCapturing:1:1", 1);
        assert_int_equal(tally_queue_is_captured(r.device, stream), 1); /* it cannot be told */
        unsetenv("TALLY_CUDA_DOUBLE_FAIL");
        assert_true(graphs() - now < 20);
        check_again(&r, 1, stream);
        driver.cuStreamDestroy(other);
        close_repeated(&r);
        assert_int_equal(objects(), had);
    }
}

/* If memory runs out when a graph is made, set or launched, the call launches its kernels one by one. */
static void test_goes_without_graphs(void **state) {
    static const char *const calls[] = {"cuGraphCreate",
                                        "cuGraphAddNode",
                                        "cuGraphInstantiateWithFlags",
                                        "cuGraphExecKernelNodeSetParams",
                                        "cuThreadExchangeStreamCaptureMode",
                                        "cuStreamIsCapturing",
                                        "cuGraphLaunch"};
    (void)state;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (int which = 1; which <= 12; which += which < 3 ? 1 : 4) {
            struct repeated r;
            char rule[64];
            const size_t had = objects();
            open_repeated(&r, true);
            snprintf(rule, sizeof rule, "%s:%d:2", calls[c], which);
            setenv("TALLY_CUDA_DOUBLE_FAIL", rule, 1);
            for (int i = 0; i < 14; i++) {
                assert_int_equal(call_again(&r, i % ARRAYS, stream), TALLY_OK);
            }
            unsetenv("TALLY_CUDA_DOUBLE_FAIL");
            for (int i = 0; i < ARRAYS; i++)
                check_again(&r, i, stream);
            close_repeated(&r);
            assert_int_equal(objects(), had);
        }
}

/* A call on more streams than graphs are kept: the ones that were not called for longest lose theirs. */
static void test_keeps_some_graphs(void **state) {
    enum { STREAMS = 300, KEPT = 256 };
    CUstream streams[STREAMS];
    struct repeated r;
    (void)state;
    open_repeated(&r, true);
    for (int i = 0; i < STREAMS; i++)
        assert_int_equal(driver.cuStreamCreate(&streams[i], 1), 0);
    const size_t had = objects();
    r.length[0] = 2; /* which is soon done */
    for (int i = 0; i < STREAMS; i++)
        for (int k = 0; k < 9; k++)
            assert_int_equal(call_again(&r, k % ARRAYS, streams[i]), TALLY_OK);
    const size_t made = objects() - had; /* a graph is two */
    assert_true(made > KEPT && made <= 2 * KEPT);
    const size_t before = graphs();
    assert_int_equal(call_again(&r, 0, streams[STREAMS - 1]), TALLY_OK);
    assert_int_equal(graphs() - before, 1);
    r.length[0] = RESULTS;
    for (int i = 0; i < STREAMS; i++)
        driver.cuStreamDestroy(streams[i]);
    check_again(&r, 1, stream);
    close_repeated(&r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_nobody),    cmocka_unit_test(test_keeps_heads_clean),
        cmocka_unit_test(test_runs_out_of_heads),   cmocka_unit_test(test_what_a_call_costs),
        cmocka_unit_test(test_what_rows_cost),      cmocka_unit_test(test_goes_as_graphs),
        cmocka_unit_test(test_goes_without_graphs), cmocka_unit_test(test_keeps_some_graphs),
        cmocka_unit_test(test_stays_lost), /* the last one: the stream goes with the context */
    };
    return cmocka_run_group_tests(tests, load_double, NULL);
}
