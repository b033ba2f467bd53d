/*
 * test_cuda.c - the CUDA host on the test double of the driver (tests/cuda_double): that it works, and
 * that each call of the driver may fail without harm. This shows nothing about a GPU.
 */
#include "checks.h"

#include "cuda/driver.h"

#include <dlfcn.h>

static void fail_at(const char *call, unsigned which, int error) {
    char rule[80];
    snprintf(rule, sizeof rule, "%s:%u:%d", call, which, error);
    setenv("TALLY_CUDA_DOUBLE_FAIL", rule, 1);
}

static void heal(void) {
    unsetenv("TALLY_CUDA_DOUBLE_FAIL");
}

static size_t objects(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    size_t (*count)(void);
    assert_non_null(library);
    void *address = dlsym(library, "tally_cuda_double_objects");
    assert_non_null(address);
    memcpy(&count, &address, sizeof count);
    const size_t result = count();
    dlclose(library);
    return result;
}

/* ---- The driver's start, before anything else ------------------------------------------------ */

static void start_fails(const char *word) {
    check_absence(&cuda_api, 0);
    if (!strstr(tally_error(), word))
        fail_msg("\"%s\" says nothing of \"%s\"", tally_error(), word);
}

static void starts(void **state) {
    struct gpu_facts facts;
    (void)state;
    fail_at("cuInit", 1, CUDA_ERROR_NO_DEVICE);
    assert_int_equal(cuda_api.count(), 0);
    fail_at("cuInit", 2, CUDA_ERROR_NO_DEVICE); /* count() does not ask again: it is to be quick */
    assert_int_equal(cuda_api.count(), 0);
    heal();
    assert_int_equal(cuda_api.count(), 0);
    setenv("TALLY_CUDA_DOUBLE_FAIL", "cuInit:1:100,cuInit:2:12345", 1);
    struct gpu *gpu = NULL;
    assert_error(TALLY_EDEVICE, cuda_api.open(0, &gpu));
    assert_non_null(strstr(tally_error(), "CUDA_ERROR_NO_DEVICE"));
    assert_error(TALLY_EDEVICE, cuda_api.open(0, &gpu));
    assert_non_null(strstr(tally_error(), "an unknown error"));
    setenv("TALLY_CUDA_DOUBLE_FAIL", "cuDriverGetVersion:1:999,cuDriverGetVersion:2:999", 1);
    start_fails("does not start");
    heal();
    setenv("TALLY_CUDA_DOUBLE_VERSION", "10020", 1);
    start_fails("it is for CUDA 10.2; 11.0 or later is needed");
    unsetenv("TALLY_CUDA_DOUBLE_VERSION");

    assert_ok(cuda_api.describe(0, &facts));
    assert_non_null(strstr(facts.name, "test double")); /* or this is no test of ours */
    assert_int_equal(cuda_api.count(), 1);
    assert_int_equal(facts.major, 9);
}

/* ---- What works ------------------------------------------------------------------------------ */

static void absent(void **state) {
    (void)state;
    check_absence(&cuda_api, 1);
    assert_non_null(strstr(tally_error(), "there is no cuda:1"));
    check_absence(&cuda_api, SIZE_MAX);
}

static void memory(void **state) {
    (void)state;
    check_memory(&cuda_api);
    assert_int_equal(objects(), 0);
}

static void builds(void **state) {
    (void)state;
    check_builds(&cuda_api);
    assert_int_equal(objects(), 0);
}

static void ladder(void **state) {
    (void)state;
    check_ladder(&cuda_api);
    assert_int_equal(objects(), 0);
}

static void times(void **state) {
    (void)state;
    check_time(&cuda_api);
}

static void reopening(void **state) {
    (void)state;
    check_reopening(&cuda_api, 1000, 4 << 20);
    assert_int_equal(objects(), 0);
}

static void threads(void **state) {
    (void)state;
    check_threads(&cuda_api, 4, 5);
    assert_int_equal(objects(), 0);
}

static void adopts(void **state) {
    struct gpu *first, *second;
    struct gpu_memory *ours, *theirs;
    CUdeviceptr address = 0;
    int on_host = 5, out = 0;
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_DEVICES", "2", 1);
    assert_ok(cuda_api.open(0, &first));
    assert_ok(cuda_api.open(1, &second));
    assert_error(TALLY_EUNSUPPORTED, cuda_api.adopt(first, &on_host, sizeof on_host, &theirs));
    /* What another library has in the same context: */
    CUcontext context;
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_int_equal(cu.cuCtxPushCurrent(context), 0);
    assert_int_equal(cu.cuMemAlloc(&address, sizeof on_host), 0);
    assert_ok(cuda_api.adopt(first, (void *)(uintptr_t)address, sizeof on_host, &theirs));
    assert_error(TALLY_EUNSUPPORTED,
                 cuda_api.adopt(second, (void *)(uintptr_t)address, sizeof on_host, &ours));
    assert_ok(cuda_api.write(first, theirs, 0, &on_host, sizeof on_host));
    assert_ok(cuda_api.read(first, &out, theirs, 0, sizeof out));
    assert_int_equal(out, 5);
    cuda_api.release(first, theirs);
    cuda_api.close(first);
    cuda_api.close(second);
    assert_int_equal(objects(), 1); /* their memory is still there, and their context current */
    assert_int_equal(cu.cuMemFree(address), 0);
    assert_int_equal(cu.cuCtxPopCurrent(&context), 0);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), 0);
    unsetenv("TALLY_CUDA_DOUBLE_DEVICES");
}

static void device_memory_ends(void **state) {
    struct gpu *gpu;
    struct gpu_memory *most, *more;
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_MEMORY", "1000000", 1);
    assert_ok(cuda_api.open(0, &gpu));
    assert_int_equal(cuda_api.facts(gpu)->memory, 1000000);
    assert_ok(cuda_api.allocate(gpu, 900000, &most));
    assert_error(TALLY_ENOMEM, cuda_api.allocate(gpu, 200000, &more));
    assert_non_null(strstr(tally_error(), "200000 bytes"));
    cuda_api.release(gpu, most);
    assert_ok(cuda_api.allocate(gpu, 200000, &more));
    cuda_api.close(gpu);
    unsetenv("TALLY_CUDA_DOUBLE_MEMORY");
}

/* ---- What fails ------------------------------------------------------------------------------ */

/* All calls of the interface once; stops at the first that fails, and gives everything back. */
static tally_status session(void) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    struct gpu *gpu = NULL;
    struct gpu_memory *a = NULL, *b = NULL, *none = NULL;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    struct gpu_facts facts;
    int32_t x[40] = {0};
    int64_t sum = 0;
    double seconds;
    tally_status status = cuda_api.describe(0, &facts);
    if (!status) status = cuda_api.open(0, &gpu);
    if (status) return status;
    status = cuda_api.allocate(gpu, 400, &a);
    if (!status) status = cuda_api.allocate(gpu, 400, &b);
    if (!status) status = cuda_api.write(gpu, a, 0, x, sizeof x);
    if (!status) status = cuda_api.fill(gpu, b, 0, 1, 400);
    if (!status) status = cuda_api.copy(gpu, b, 0, a, 0, sizeof x);
    if (!status) status = cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program);
    if (!status) status = cuda_api.kernel(gpu, program, "load_elements", &kernel);
    if (!status) status = cuda_api.mark(gpu, 0);
    if (!status) status = sum_i32(&cuda_api, gpu, LADDER_SHUFFLE, x, 40, &sum);
    if (!status) status = cuda_api.mark(gpu, 1);
    if (!status) status = cuda_api.elapsed(gpu, &seconds);
    if (!status) status = cuda_api.finish(gpu);
    if (!status && (status = cuda_api.adopt(gpu, x, 1, &none)) == TALLY_EUNSUPPORTED)
        status = TALLY_OK; /* the host's memory: the driver was asked, and has said so */
    cuda_api.release(gpu, a);
    cuda_api.close(gpu);
    return status;
}

/* Calls whose first failure cannot go unnoticed. */
static const char must_fail[] =
    " cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceTotalMem cuDeviceGetAttribute "
    "cuDevicePrimaryCtxRetain cuCtxPushCurrent cuCtxPopCurrent cuStreamCreate cuStreamSynchronize "
    "cuEventCreate cuEventRecord cuEventSynchronize cuEventElapsedTime cuMemAlloc "
    "cuMemcpyHtoDAsync "
    "cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemsetD8Async cuPointerGetAttribute cuModuleLoadData "
    "cuModuleGetFunction cuLaunchKernel ";

static void check_failure(const char *call, unsigned which, int error) {
    char word[64];
    snprintf(word, sizeof word, " %s ", call);
    fail_at(call, which, error);
    tally_status status = session();
    heal();
    if (status == TALLY_OK) {
        if (which == 1 && strstr(must_fail, word))
            fail_msg("error %d of %s went unnoticed", error, call);
    } else {
        const char *text = tally_error();
        if (!*text || strchr(text, '\n'))
            fail_msg("error %d of call %u of %s leaves \"%s\"", error, which, call, text);
        if (error == CUDA_ERROR_OUT_OF_MEMORY && status != TALLY_ENOMEM)
            fail_msg("%s without memory comes to: %s", call, tally_status_text(status));
        if (error == CUDA_ERROR_LAUNCH_FAILED && status != TALLY_ELOST)
            fail_msg("%s on a lost device comes to: %s", call, tally_status_text(status));
    }
    const size_t before = objects();
    status = session();
    if (status)
        fail_msg("after error %d of call %u of %s nothing works: %s", error, which, call,
                 tally_error());
    assert_true(objects() <= before); /* fewer if the device was lost and came back */
}

static void every_call_fails(void **state) {
    static const char *const calls[] = {
#define NAME(name, suffix, parameters) #name,
        CUDA_CALLS(NAME)
#undef NAME
    };
    static const int errors[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED, 12345};
    (void)state;
    assert_ok(session());
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
            for (unsigned which = 1; which <= 6; which++)
                check_failure(calls[c], which, errors[e]);
}

/* A kernel goes astray: the device is lost to all that use it, but not to who opens it next, nor is
 * another device. */
static void lost_device_comes_back(void **state) {
    static const int32_t x[3] = {1, 2, 3};
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    struct gpu *broken, *bystander, *other, *next;
    struct gpu_memory *small, *out, *theirs, *later;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    const uint64_t n = 1 << 20; /* more than there is */
    int64_t sum = 0, found = 0;
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_DEVICES", "2", 1);
    assert_ok(cuda_api.open(0, &broken));
    assert_ok(cuda_api.open(0, &bystander));
    assert_ok(cuda_api.open(1, &other));
    assert_ok(cuda_api.allocate(bystander, 8, &theirs));
    assert_ok(cuda_api.allocate(broken, 8, &small));
    assert_ok(cuda_api.allocate(broken, 8, &out));
    assert_ok(cuda_api.fill(broken, small, 0, 0, 8));
    assert_ok(cuda_api.build(broken, "ladder/ladder.cu", NULL, defines, 2, &program));
    assert_ok(cuda_api.kernel(broken, program, "load_elements", &kernel));
    const struct gpu_argument arguments[] = {
        {.memory = small}, {.value = &n, .size = sizeof n}, {.memory = out}};
    assert_ok(cuda_api.launch(broken, kernel, 1, 64, arguments, 3));
    assert_error(TALLY_ELOST, cuda_api.finish(broken));
    print_message("%s\n", tally_error());
    assert_non_null(strstr(tally_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    cuda_api.release(broken, out); /* leaves the message alone */
    assert_non_null(strstr(tally_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_error(TALLY_ELOST, cuda_api.read(bystander, &sum, theirs, 0, 8));
    assert_ok(sum_i32(&cuda_api, other, LADDER_SHUFFLE, x, 3, &sum));
    assert_int_equal(sum, 6);

    assert_ok(cuda_api.open(0, &next)); /* while the others are still open */
    assert_ok(cuda_api.allocate(next, 8, &later));
    assert_ok(cuda_api.write(next, later, 0, &sum, 8));
    assert_error(TALLY_ELOST, cuda_api.read(bystander, &sum, theirs, 0, 8));
    cuda_api.close(broken);
    cuda_api.release(bystander, theirs);
    cuda_api.close(bystander);
    assert_ok(cuda_api.read(next, &found, later, 0, 8));
    assert_int_equal(found, 6);
    assert_ok(sum_i32(&cuda_api, next, LADDER_SINGLE_PASS, x, 3, &sum));
    assert_int_equal(sum, 6);
    cuda_api.close(next);
    cuda_api.close(other);
    assert_int_equal(objects(), 0);
    unsetenv("TALLY_CUDA_DOUBLE_DEVICES");
}

static void compiling_fails(void **state) {
    static const char *const defines[] = {"TYPE_U8", "OP_MAX"}, *const i32[] = {"OP_SUM",
                                                                                "TYPE_I32"};
    struct gpu *gpu;
    struct gpu_program *program;
    (void)state;
    assert_ok(cuda_api.open(0, &gpu));
    fail_at("cuModuleLoadData", 1, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
    assert_error(TALLY_ECOMPILE,
                 cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    assert_non_null(strstr(tally_error(), "the driver is older than the kernels' PTX"));
    heal();
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "1", 1);
    assert_error(TALLY_ENOMEM, cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "11", 1);
    assert_error(TALLY_ECOMPILE,
                 cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    /* Neither the image, if there is one, nor the compiler: */
    setenv("TALLY_CUDA_DOUBLE_FAIL", "cuModuleLoadData:1:209", 1);
    assert_error(TALLY_ECOMPILE, cuda_api.build(gpu, "ladder/ladder.cu", NULL, i32, 2, &program));
    unsetenv("TALLY_CUDA_DOUBLE_NVRTC");
    heal();
    assert_ok(cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    assert_ok(cuda_api.build(gpu, "ladder/ladder.cu", NULL, i32, 2, &program));
    cuda_api.close(gpu);
}

static void launch_arguments(void **state) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    static const struct gpu_argument many[33];
    struct gpu *gpu;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    (void)state;
    assert_ok(cuda_api.open(0, &gpu));
    assert_ok(cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    assert_ok(cuda_api.kernel(gpu, program, "vectorized", &kernel));
    assert_error(TALLY_EINVAL, cuda_api.launch(gpu, kernel, 1, 1, many, 33));
    assert_error(TALLY_EINVAL, cuda_api.launch(gpu, kernel, 0, 1, many, 0));
    assert_error(TALLY_EINVAL, cuda_api.launch(gpu, kernel, 1, 2048, many, 0));
    cuda_api.close(gpu);
}

/* On a machine with a driver this must not run on that by accident. */
static int double_is_here(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    return library && dlsym(library, "tally_cuda_double_objects");
}

int main(void) {
    if (!double_is_here()) {
        printf("run this with LD_LIBRARY_PATH=" TALLY_CUDA_DOUBLE "\n");
        return 1;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(starts), /* first: a driver starts only once */
        cmocka_unit_test(absent),
        cmocka_unit_test(memory),
        cmocka_unit_test(builds),
        cmocka_unit_test(ladder),
        cmocka_unit_test(times),
        cmocka_unit_test(adopts),
        cmocka_unit_test(threads),
        cmocka_unit_test(reopening),
        cmocka_unit_test(device_memory_ends),
        cmocka_unit_test(compiling_fails),
        cmocka_unit_test(launch_arguments),
        cmocka_unit_test(lost_device_comes_back),
        cmocka_unit_test(every_call_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
