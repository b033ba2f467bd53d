/* test_cuda_enqueue.c - tally_enqueue() on the test double of CUDA's driver: it waits for no reduction of another
 * thread's, and after a failure it opens nothing by itself. */
#include "../c/testing.h"

#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>

static struct cuda_driver driver;
static size_t (*objects)(void);
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
    reduced = false;
    assert_int_equal(pthread_create(&thread, NULL, reduce_much, c.device), 0);
    while (!reduced) {
        assert_int_equal(tally_enqueue(c.device, &c.problem, &c.call), TALLY_OK);
        during += !reduced;
    }
    pthread_join(thread, NULL);
    assert_true(during > 1); /* one may have been before it began */
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
    assert_true(objects() <= had); /* nothing was made */
    assert_int_equal(tally_workspace(c.device, &c.problem, 4, &bytes), TALLY_OK);
    assert_true(objects() > 0);
    tally_close(c.device); /* the caller's memory went with the context */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_nobody),
        cmocka_unit_test(test_stays_lost),
    };
    return cmocka_run_group_tests(tests, load_double, NULL);
}
