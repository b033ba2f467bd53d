/*
 * test_cuda.c - the CUDA host on the test double of the driver (tests/cuda_double): that it works, and
 * that each call of the driver may fail without harm. This shows nothing about a GPU.
 */
#include "checks.h"

#include "cuda/driver.h"
#include "gpu/disk_cache.h"

#include <dirent.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

static void fail_at(const char *call, unsigned which, int error) {
    char rule[80];
    snprintf(rule, sizeof rule, "%s:%u:%d", call, which, error);
    setenv("TALLY_CUDA_DOUBLE_FAIL", rule, 1);
}

static void heal(void) {
    unsetenv("TALLY_CUDA_DOUBLE_FAIL");
}

/* A function of the double's own. */
static void find(const char *name, void *function) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    assert_non_null(library);
    void *address = dlsym(library, name);
    assert_non_null(address);
    memcpy(function, &address, sizeof address);
    dlclose(library);
}

static size_t objects(void) {
    size_t (*count)(void);
    find("tally_cuda_double_objects", &count);
    return count();
}

static void capture(CUstream stream, bool on) {
    void (*set)(CUstream, bool);
    find("tally_cuda_double_capture", &set);
    set(stream, on);
}

static size_t put_off(CUstream stream) {
    size_t (*count)(CUstream);
    find("tally_cuda_double_put_off", &count);
    return count(stream);
}

/* A context of the caller's, not the primary one, with a stream in it. */
struct theirs {
    CUcontext context;
    CUstream stream;
};

static struct theirs new_theirs(CUdevice device) {
    struct theirs t;
    CUcontext (*make)(CUdevice);
    find("tally_cuda_double_context", &make);
    t.context = make(device);
    assert_int_equal(cu.cuCtxPushCurrent(t.context), 0);
    assert_int_equal(cu.cuStreamCreate(&t.stream, 0), 0);
    assert_int_equal(cu.cuCtxPopCurrent(&t.context), 0);
    return t;
}

static void end_theirs(const struct theirs *t) {
    void (*end)(CUcontext);
    find("tally_cuda_double_end", &end);
    if (t->stream) capture(t->stream, false);
    end(t->context);
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
    assert_error(TALLY_EDEVICE, cuda_api.open(0, NULL, &gpu));
    assert_non_null(strstr(tally_error(), "CUDA_ERROR_NO_DEVICE"));
    assert_error(TALLY_EDEVICE, cuda_api.open(0, NULL, &gpu));
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
    assert_ok(cuda_api.open(0, NULL, &first));
    assert_ok(cuda_api.open(1, NULL, &second));
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
    assert_ok(cuda_api.open(0, NULL, &gpu));
    assert_int_equal(cuda_api.facts(gpu)->memory, 1000000);
    assert_ok(cuda_api.allocate(gpu, 900000, &most));
    assert_error(TALLY_ENOMEM, cuda_api.allocate(gpu, 200000, &more));
    assert_non_null(strstr(tally_error(), "200000 bytes"));
    cuda_api.release(gpu, most);
    assert_ok(cuda_api.allocate(gpu, 200000, &more));
    cuda_api.close(gpu);
    unsetenv("TALLY_CUDA_DOUBLE_MEMORY");
}

/* ---- What is the caller's: contexts and streams ---------------------------------------------- */

static void wait_for_stream(void *stream) {
    assert_int_equal(cu.cuStreamSynchronize(stream), 0);
}

static void callers_context(void **state) {
    const struct theirs t = new_theirs(0);
    struct gpu *gpu, *stranger;
    CUcontext gone;
    int32_t x[3] = {1, 2, 3};
    int64_t sum = 0;
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_DEVICES", "2", 1);
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(sum_i32(&cuda_api, gpu, LADDER_SHUFFLE, x, 3, &sum));
    assert_int_equal(sum, 6);
    assert_int_equal(cu.cuCtxPushCurrent(t.context), 0);
    check_queue(&cuda_api, gpu, t.stream, wait_for_stream);
    assert_int_equal(cu.cuCtxPopCurrent(&gone), 0);
    check_visible(&cuda_api, gpu);
    cuda_api.close(gpu);
    assert_int_equal(objects(), 1); /* their stream */
    assert_error(TALLY_EINVAL, cuda_api.open(1, t.context, &stranger));
    assert_non_null(strstr(tally_error(), "another device's"));
    assert_int_equal(objects(), 1);
    end_theirs(&t);
    unsetenv("TALLY_CUDA_DOUBLE_DEVICES");
}

/* The primary context, handed in, is not given up either; and one that is lost begins anew. */
static void callers_primary_context(void **state) {
    CUcontext context;
    CUdeviceptr address = 0;
    struct gpu *gpu, *next;
    struct gpu_memory *memory;
    (void)state;
    assert_int_equal(cu.cuDevicePrimaryCtxRetain(&context, 0), 0);
    assert_ok(cuda_api.open(0, context, &gpu));
    cuda_api.close(gpu);
    assert_int_equal(cu.cuCtxPushCurrent(context), 0);
    assert_int_equal(cu.cuMemAlloc(&address, 8), 0); /* it is still there */
    assert_int_equal(cu.cuMemFree(address), 0);
    assert_int_equal(cu.cuCtxPopCurrent(&context), 0);

    assert_ok(cuda_api.open(0, context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 8, &memory));
    fail_at("cuMemsetD8Async", 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_error(TALLY_ELOST, cuda_api.fill(gpu, memory, 0, 0, 8));
    heal();
    assert_error(TALLY_ELOST, cuda_api.open(0, context, &next));
    assert_ok(cuda_api.open(0, NULL, &next)); /* which resets it */
    assert_error(TALLY_ELOST, cuda_api.fill(gpu, memory, 0, 0, 8));
    cuda_api.close(gpu);
    assert_ok(cuda_api.open(0, context, &gpu)); /* of the new generation */
    assert_ok(cuda_api.allocate(gpu, 8, &memory));
    assert_ok(cuda_api.fill(gpu, memory, 0, 0, 8));
    cuda_api.close(gpu);
    cuda_api.close(next);
    assert_int_equal(cu.cuDevicePrimaryCtxRelease(0), 0);
    assert_int_equal(objects(), 0);
}

/* A caller's context that is lost stays so, and takes nobody else's with it. */
static void callers_context_is_lost(void **state) {
    const struct theirs t = new_theirs(0);
    struct gpu *gpu, *again = NULL, *ours;
    struct gpu_memory *memory, *kept;
    int in = 5, out = 0;
    (void)state;
    assert_ok(cuda_api.open(0, NULL, &ours));
    assert_ok(cuda_api.allocate(ours, sizeof in, &kept));
    assert_ok(cuda_api.write(ours, kept, 0, &in, sizeof in));
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 8, &memory));
    fail_at("cuMemsetD8Async", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_error(TALLY_ELOST, cuda_api.fill(gpu, memory, 0, 0, 8));
    heal();
    assert_error(TALLY_ELOST, cuda_api.finish(gpu));
    assert_error(TALLY_ELOST, cuda_api.open(0, t.context, &again));
    assert_non_null(strstr(tally_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
    assert_null(again);
    assert_ok(cuda_api.open(0, NULL, &again)); /* and resets nothing */
    assert_ok(cuda_api.read(ours, &out, kept, 0, sizeof out));
    assert_int_equal(out, 5);
    cuda_api.close(again);
    cuda_api.close(gpu);
    cuda_api.close(ours);
    end_theirs(&t);
    assert_int_equal(objects(), 0);
}

/* And the primary one that is lost, and begins anew, does not take a caller's with it. */
static void callers_context_stays(void **state) {
    const struct theirs t = new_theirs(0);
    struct gpu *gpu, *ours;
    struct gpu_memory *memory, *kept;
    int in = 5, out = 0;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, sizeof in, &kept));
    assert_ok(cuda_api.write(gpu, kept, 0, &in, sizeof in));
    assert_ok(cuda_api.open(0, NULL, &ours));
    assert_ok(cuda_api.allocate(ours, 8, &memory));
    fail_at("cuMemsetD8Async", 1, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_error(TALLY_ELOST, cuda_api.fill(ours, memory, 0, 0, 8));
    heal();
    cuda_api.close(ours);
    assert_ok(cuda_api.open(0, NULL, &ours));
    assert_ok(cuda_api.read(gpu, &out, kept, 0, sizeof out));
    assert_int_equal(out, 5);
    cuda_api.close(ours);
    cuda_api.close(gpu);
    end_theirs(&t);
    assert_int_equal(objects(), 0);
}

/* Fills and launches are on the caller's stream, which neither finish() nor close() waits for. */
static void works_on_callers_stream(void **state) {
    const struct theirs t = new_theirs(0);
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    const uint64_t n = 2;
    struct gpu *gpu;
    struct gpu_memory *memory, *out;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 8, &memory));
    assert_ok(cuda_api.allocate(gpu, 16, &out));
    assert_ok(cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    assert_ok(cuda_api.kernel(gpu, program, "load_elements", &kernel));
    const struct gpu_argument arguments[] = {
        {.memory = memory}, {.value = &n, .size = sizeof n}, {.memory = out}};
    cuda_api.use(gpu, true, t.stream);
    assert_ok(cuda_api.fill(gpu, memory, 0, 9, 8));
    assert_int_equal(put_off(t.stream), 1);
    assert_ok(cuda_api.launch(gpu, kernel, 1, 64, arguments, 3));
    assert_int_equal(put_off(t.stream), 0); /* which the kernel came after */
    assert_ok(cuda_api.fill(gpu, memory, 0, 9, 8));
    assert_int_equal(put_off(t.stream), 1);
    assert_ok(cuda_api.finish(gpu));
    assert_int_equal(put_off(t.stream), 1);
    cuda_api.close(gpu);
    end_theirs(&t);
}

/* Fills and launches into a capture, which forbids nearly all else. */
static tally_status capture_work(struct gpu *gpu, const struct theirs *t, struct gpu_memory *a,
                                 struct gpu_memory *b) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    const uint64_t none = 0;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    const struct gpu_argument arguments[] = {
        {.memory = a}, {.value = &none, .size = sizeof none}, {.memory = b}};
    tally_status status = cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program);
    if (!status) status = cuda_api.kernel(gpu, program, "load_elements", &kernel);
    if (!status) status = cuda_api.fill(gpu, a, 0, 1, 8);
    if (!status) status = cuda_api.finish(gpu);
    if (status) return status;
    capture(t->stream, true);
    cuda_api.use(gpu, true, t->stream);
    status = cuda_api.fill(gpu, a, 0, 3, 8);
    if (!status) status = cuda_api.launch(gpu, kernel, 1, 64, arguments, 3);
    cuda_api.use(gpu, false, NULL);
    capture(t->stream, false);
    return status;
}

static void captures(void **state) {
    const struct theirs t = new_theirs(0);
    unsigned char out[8] = {0};
    struct gpu *gpu;
    struct gpu_memory *a, *b;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 8, &a));
    assert_ok(cuda_api.allocate(gpu, 8, &b));
    assert_ok(capture_work(gpu, &t, a, b));
    assert_ok(cuda_api.read(gpu, out, a, 0, 8));
    assert_int_equal(out[0], 3); /* (the double does it all the same) */
    capture(t.stream, true);
    assert_error(TALLY_EINVAL, cuda_api.finish(gpu)); /* no harm is done */
    capture(t.stream, false);
    assert_ok(cuda_api.finish(gpu));
    cuda_api.close(gpu);
    end_theirs(&t);
}

/* ---- Many programs --------------------------------------------------------------------------- */

enum { MANY = 200, KEPT = 64 }; /* KEPT: what cache.h says */

/* The i-th of any number of programs: the plain reads after a prelude of their own. */
static tally_status build_user(struct gpu *gpu, int i, struct gpu_program **out) {
    char prelude[64];
    snprintf(prelude, sizeof prelude, "#define USERS_%d", i);
    return cuda_api.build(gpu, "read.cu", prelude, NULL, 0, out);
}

static tally_status launch_user(struct gpu *gpu, struct gpu_kernel *kernel,
                                struct gpu_memory *out) {
    const uint64_t none = 0;
    const struct gpu_argument arguments[] = {
        {.memory = out}, {.value = &none, .size = sizeof none}, {.memory = out}};
    return cuda_api.launch(gpu, kernel, 1, 1, arguments, 3);
}

/* Of programs with a prelude the last KEPT are kept, and early ones are compiled again when they are asked
 * for; the others all stay. */
static void programs_are_bounded(void **state) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    const struct theirs t = new_theirs(0);
    struct gpu *gpu;
    struct gpu_memory *out;
    struct gpu_program *first, *program, *again;
    struct gpu_kernel *sum, *kernel;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 64, &out));
    assert_ok(cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &first));
    assert_ok(cuda_api.kernel(gpu, first, "load_elements", &sum));
    const size_t before = objects();
    for (int i = 0; i < MANY; i++) {
        assert_ok(build_user(gpu, i, &program));
        assert_ok(cuda_api.kernel(gpu, program, "read_all", &kernel));
        assert_ok(launch_user(gpu, kernel, out));
        assert_true(objects() <= before + KEPT);
    }
    assert_int_equal(objects(), before + KEPT);
    assert_ok(build_user(gpu, MANY - KEPT,
                         &program)); /* the one that is next to go, were it not asked for */
    assert_ok(build_user(gpu, 0, &again));
    assert_ok(cuda_api.kernel(gpu, again, "read_pieces", &kernel));
    assert_ok(launch_user(gpu, kernel, out));
    assert_ok(build_user(gpu, MANY - KEPT, &again));
    assert_ptr_equal(program, again);
    assert_int_equal(objects(), before + KEPT);
    assert_ok(cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    assert_ptr_equal(first, program);
    assert_ok(cuda_api.kernel(gpu, first, "load_elements", &kernel));
    assert_ptr_equal(sum, kernel);
    cuda_api.close(gpu);
    end_theirs(&t);
    assert_int_equal(objects(), 0);
}

/* A program that a caller's stream may still run is waited for before it goes. */
static void dropping_waits(void **state) {
    const struct theirs t = new_theirs(0);
    struct gpu *gpu;
    struct gpu_memory *out;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 64, &out));
    assert_ok(build_user(gpu, 0, &program));
    assert_ok(cuda_api.kernel(gpu, program, "read_all", &kernel));
    cuda_api.use(gpu, true, t.stream);
    assert_ok(launch_user(gpu, kernel, out));
    assert_ok(cuda_api.fill(gpu, out, 0, 1, 64));
    cuda_api.use(gpu, false, NULL);
    for (int i = 1; i < KEPT; i++)
        assert_ok(build_user(gpu, i, &program));
    assert_int_equal(put_off(t.stream), 1); /* there is room: nobody waits */
    fail_at("cuCtxSynchronize", 1, CUDA_ERROR_OUT_OF_MEMORY);
    const size_t full = objects();
    assert_ok(build_user(gpu, KEPT, &program)); /* the first cannot go now, the second does */
    heal();
    assert_int_equal(objects(), full);
    assert_int_equal(put_off(t.stream), 1);
    assert_ok(build_user(gpu, KEPT + 1, &program));
    assert_int_equal(objects(), full);
    assert_int_equal(put_off(t.stream), 0);
    cuda_api.close(gpu);
    end_theirs(&t);
    assert_int_equal(objects(), 0);
}

/* A program in a graph, which may run at any time, stays. */
static void captured_programs_stay(void **state) {
    const struct theirs t = new_theirs(0);
    struct gpu *gpu;
    struct gpu_memory *out;
    struct gpu_program *captured, *program;
    struct gpu_kernel *kernel;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 64, &out));
    assert_ok(build_user(gpu, 0, &captured));
    assert_ok(cuda_api.kernel(gpu, captured, "read_all", &kernel));
    capture(t.stream, true);
    cuda_api.use(gpu, true, t.stream);
    assert_ok(launch_user(gpu, kernel, out));
    cuda_api.use(gpu, false, NULL);
    capture(t.stream, false);
    const size_t before = objects();
    for (int i = 1; i < MANY; i++)
        assert_ok(build_user(gpu, i, &program));
    assert_int_equal(objects(), before + KEPT);
    assert_ok(build_user(gpu, 0, &program));
    assert_ptr_equal(program, captured);
    assert_ok(launch_user(gpu, kernel, out));
    cuda_api.close(gpu);
    end_theirs(&t);
    assert_int_equal(objects(), 0);
}

#if defined(TALLY_DEBUG)
/* A debug build stops at a launch of a kernel whose program has been dropped. */
static void dropped_kernels_stop(void **state) {
    struct gpu *gpu;
    struct gpu_memory *out;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    int ended = 0;
    (void)state;
    assert_ok(cuda_api.open(0, NULL, &gpu));
    assert_ok(cuda_api.allocate(gpu, 64, &out));
    assert_ok(build_user(gpu, 0, &program));
    assert_ok(cuda_api.kernel(gpu, program, "read_all", &kernel));
    for (int i = 1; i <= KEPT; i++)
        assert_ok(build_user(gpu, i, &program));
    const pid_t child = fork();
    if (child == 0) {
        fclose(stderr);
        signal(SIGABRT, SIG_DFL);
        launch_user(gpu, kernel, out);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFSIGNALED(ended) && WTERMSIG(ended) == SIGABRT);
    cuda_api.close(gpu);
}
#endif

/* ---- Leaving the context ---------------------------------------------------------------------- */

/* What was made in a call whose last step fails, to leave the context, is given back. */
static void leaving_fails(void **state) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    const struct theirs t = new_theirs(0);
    struct gpu *gpu;
    struct gpu_memory *memory;
    struct gpu_program *program;
    volatile void *host;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    const size_t before = objects();
    fail_at("cuCtxPopCurrent", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_error(TALLY_ENOMEM, cuda_api.allocate(gpu, 1000, &memory));
    heal();
    assert_int_equal(objects(), before);
    fail_at("cuCtxPopCurrent", 1, 12345);
    assert_error(TALLY_ELOST, cuda_api.allocate_visible(gpu, 1000, &memory, &host));
    heal();
    assert_int_equal(objects(), before);
    fail_at("cuCtxPopCurrent", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_error(TALLY_ENOMEM, cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program));
    heal();
    assert_int_equal(objects(), before);
    cuda_api.close(gpu);
    end_theirs(&t);
    assert_int_equal(objects(), 0);
}

/* Where the caller has made the context current, as who uses CUDA's own interface has, there is nothing to
 * push and pop. */
static void current_context(void **state) {
    const struct theirs t = new_theirs(0);
    CUcontext current = NULL;
    struct gpu *gpu;
    struct gpu_memory *memory;
    (void)state;
    assert_ok(cuda_api.open(0, t.context, &gpu));
    assert_ok(cuda_api.allocate(gpu, 8, &memory));
    assert_int_equal(cu.cuCtxPushCurrent(t.context), 0);
    setenv("TALLY_CUDA_DOUBLE_FAIL", "cuCtxPushCurrent:1:12345,cuCtxPopCurrent:1:12345", 1);
    assert_ok(cuda_api.fill(gpu, memory, 0, 1, 8));
    assert_ok(cuda_api.finish(gpu));
    heal();
    assert_int_equal(cu.cuCtxGetCurrent(&current), 0);
    assert_ptr_equal(current, t.context);
    assert_int_equal(cu.cuCtxPopCurrent(&current), 0);
    assert_ok(cuda_api.fill(gpu, memory, 0, 1, 8));
    assert_int_equal(cu.cuCtxGetCurrent(&current), 0);
    assert_null(current);
    cuda_api.close(gpu);
    end_theirs(&t);
}

/* ---- Writes through pinned memory ------------------------------------------------------------ */

static void writes(void **state) {
    struct gpu *gpu;
    (void)state;
    assert_ok(cuda_api.open(0, NULL, &gpu));
    const size_t before = objects();
    check_writes(&cuda_api, gpu);
    assert_int_equal(objects(), before + 5); /* the pieces are one, with four events */
    cuda_api.close(gpu);
    assert_int_equal(objects(), 0);
}

/* No pinned memory, or no event for a piece: then without. */
static void writes_without_pinned_memory(void **state) {
    struct gpu *gpu;
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_ok(cuda_api.open(0, NULL, &gpu));
        const size_t before = objects();
        fail_at(i == 0 ? "cuMemHostAlloc" : "cuEventCreate", i == 2 ? 3 : 1,
                CUDA_ERROR_OUT_OF_MEMORY);
        check_writes_without_ring(&cuda_api, gpu);
        heal();
        assert_int_equal(objects(), before);
        cuda_api.close(gpu);
    }
    assert_int_equal(objects(), 0);
}

/* Memory that is pinned already is read where it lies, before write() returns. */
static void writes_from_pinned_memory(void **state) {
    enum { BYTES = 300001 };
    static unsigned char out[BYTES];
    struct gpu *gpu;
    struct gpu_memory *memory, *pinned;
    volatile void *host;
    (void)state;
    assert_ok(cuda_api.open(0, NULL, &gpu));
    assert_ok(cuda_api.allocate(gpu, BYTES, &memory));
    assert_ok(cuda_api.allocate_visible(gpu, BYTES, &pinned, &host));
    const size_t before = objects();
    for (size_t bytes = 7; bytes <= BYTES; bytes += BYTES - 7) {
        memset((void *)(uintptr_t)host, 1, bytes);
        assert_ok(cuda_api.write(gpu, memory, 0, (void *)(uintptr_t)host, bytes));
        memset((void *)(uintptr_t)host, 2, bytes);
        assert_ok(cuda_api.read(gpu, out, memory, 0, bytes));
        for (size_t i = 0; i < bytes; i++)
            assert_int_equal(out[i], 1);
    }
    assert_int_equal(objects(), before); /* no ring for that */
    cuda_api.close(gpu);
}

static void visible(void **state) {
    struct gpu *gpu;
    struct gpu_memory *memory;
    volatile void *host;
    (void)state;
    assert_ok(cuda_api.open(0, NULL, &gpu));
    check_visible(&cuda_api, gpu);
    fail_at("cuMemHostAlloc", 1, CUDA_ERROR_OUT_OF_MEMORY);
    assert_error(TALLY_ENOMEM, cuda_api.allocate_visible(gpu, 8, &memory, &host));
    assert_non_null(strstr(tally_error(), "8 bytes"));
    heal();
    cuda_api.close(gpu);
    assert_int_equal(objects(), 0);
}

/* ---- What fails ------------------------------------------------------------------------------ */

static tally_status use_theirs(struct gpu *gpu, const struct theirs *t, struct gpu_memory *a,
                               struct gpu_memory *b) {
    unsigned char out[8];
    tally_status status = cuda_api.fill(gpu, a, 0, 1, 8);
    cuda_api.use(gpu, true, t->stream);
    if (!status) status = cuda_api.fill(gpu, a, 0, 1, 8);
    if (!status) status = cuda_api.finish(gpu);
    cuda_api.use(gpu, false, NULL);
    if (!status) status = cuda_api.read(gpu, out, a, 0, 8);
    if (!status) status = capture_work(gpu, t, a, b);
    return status ? status : cuda_api.finish(gpu);
}

/* All calls of the interface once; stops at the first that fails, and gives everything back. With
 * `theirs`, in that context and on that stream, too. */
static tally_status session(const struct theirs *theirs) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    static const unsigned char large[100001];
    struct gpu *gpu = NULL;
    struct gpu_memory *a = NULL, *b = NULL, *seen = NULL, *none = NULL;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    struct gpu_facts facts;
    volatile void *host;
    int32_t x[40] = {0};
    int64_t sum = 0;
    double seconds;
    tally_status status = cuda_api.describe(0, &facts);
    if (!status) status = cuda_api.open(0, theirs ? theirs->context : NULL, &gpu);
    if (status) return status;
    status = cuda_api.allocate(gpu, 400, &a);
    if (!status) status = cuda_api.allocate(gpu, sizeof large, &b);
    if (!status) status = cuda_api.allocate_visible(gpu, 8, &seen, &host);
    if (!status) status = cuda_api.write(gpu, a, 0, x, sizeof x);
    if (!status) status = cuda_api.write(gpu, b, 0, large, sizeof large);
    if (!status) status = cuda_api.fill(gpu, b, 0, 1, 400);
    if (!status) status = cuda_api.copy(gpu, b, 0, a, 0, sizeof x);
    if (!status) status = cuda_api.build(gpu, "ladder/ladder.cu", NULL, defines, 2, &program);
    if (!status) status = cuda_api.kernel(gpu, program, "load_elements", &kernel);
    if (!status) status = cuda_api.mark(gpu, 0);
    if (!status) status = sum_i32(&cuda_api, gpu, LADDER_SHUFFLE, x, 40, &sum);
    if (!status) status = cuda_api.mark(gpu, 1);
    if (!status) status = cuda_api.elapsed(gpu, &seconds);
    if (!status) status = cuda_api.finish(gpu);
    if (!status && theirs) status = use_theirs(gpu, theirs, a, b);
    if (!status && (status = cuda_api.adopt(gpu, x, 1, &none)) == TALLY_EUNSUPPORTED)
        status = TALLY_OK; /* the host's memory: the driver was asked, and has said so */
    cuda_api.release(gpu, a);
    cuda_api.release(gpu, seen);
    cuda_api.close(gpu);
    return status;
}

/* Calls whose first failure cannot go unnoticed: always, in a context of ours, in one of theirs. (Where
 * the ring asks whether it needs to be, or for memory, it does without an answer.) */
static const char must_fail[] =
    " cuDeviceGetCount cuDeviceGet cuDeviceGetName cuDeviceTotalMem cuDeviceGetAttribute "
    "cuCtxPushCurrent cuCtxPopCurrent cuStreamCreate cuStreamSynchronize "
    "cuEventCreate cuEventRecord cuEventSynchronize cuEventElapsedTime cuMemAlloc "
    "cuMemHostAlloc cuMemHostGetDevicePointer cuMemcpyHtoDAsync "
    "cuMemcpyDtoHAsync cuMemcpyDtoDAsync cuMemsetD8Async cuModuleLoadData "
    "cuModuleGetFunction cuLaunchKernel ",
                  must_fail_ours[] = " cuDevicePrimaryCtxRetain ",
                  must_fail_theirs[] = " cuDevicePrimaryCtxGetState cuCtxGetDevice ";

static void check_failure(const char *call, unsigned which, int error, bool given) {
    char word[64];
    struct theirs t = new_theirs(0);
    const size_t at_first = objects();
    snprintf(word, sizeof word, " %s ", call);
    fail_at(call, which, error);
    tally_status status = session(given ? &t : NULL);
    heal();
    if (status == TALLY_OK) {
        if (which == 1 &&
            (strstr(must_fail, word) || strstr(given ? must_fail_theirs : must_fail_ours, word)))
            fail_msg("error %d of %s went unnoticed", error, call);
    } else {
        const char *text = tally_error();
        if (!*text || strchr(text, '\n'))
            fail_msg("error %d of call %u of %s leaves \"%s\"", error, which, call, text);
        if (error == CUDA_ERROR_OUT_OF_MEMORY && status != TALLY_ENOMEM)
            fail_msg("%s without memory comes to: %s", call, tally_status_text(status));
        if (error == CUDA_ERROR_LAUNCH_FAILED && status != TALLY_ELOST)
            fail_msg("%s on a lost device comes to: %s", call, tally_status_text(status));
        /* Nothing is left but what could not be given back. */
        if (error == CUDA_ERROR_OUT_OF_MEMORY && !strstr(call, "Free") &&
            !strstr(call, "Destroy") && !strstr(call, "Unload") &&
            (!strstr(call, "Ctx") || strstr(call, "CtxPop")) && objects() > at_first)
            fail_msg("error %d of call %u of %s leaks", error, which, call);
    }
    end_theirs(&t);
    t = new_theirs(0);
    const size_t before = objects();
    status = session(given ? &t : NULL);
    if (status)
        fail_msg("after error %d of call %u of %s nothing works: %s", error, which, call,
                 tally_error());
    assert_true(objects() <= before); /* fewer if the device was lost and came back */
    end_theirs(&t);
}

static void every_call_fails(void **state) {
    static const char *const calls[] = {
#define NAME(name, suffix, parameters) #name,
        CUDA_CALLS(NAME)
#undef NAME
    };
    static const int errors[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED, 12345};
    const struct theirs t = new_theirs(0);
    (void)state;
    assert_ok(session(NULL));
    assert_ok(session(&t));
    assert_int_equal(objects(), 1);
    end_theirs(&t);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
            for (unsigned which = 1; which <= 6; which++) {
                check_failure(calls[c], which, errors[e], false);
                check_failure(calls[c], which, errors[e], true);
            }
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
    assert_ok(cuda_api.open(0, NULL, &broken));
    assert_ok(cuda_api.open(0, NULL, &bystander));
    assert_ok(cuda_api.open(1, NULL, &other));
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

    assert_ok(cuda_api.open(0, NULL, &next)); /* while the others are still open */
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
    assert_ok(cuda_api.open(0, NULL, &gpu));
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

/* ---- Programs on disk ------------------------------------------------------------------------ */

/* The path of the only file of a folder. */
static void only_file(const char *folder, char *out, size_t room) {
    unsigned count = 0;
    struct dirent *d;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    while ((d = readdir(stream)))
        if (d->d_name[0] != '.') {
            count++;
            snprintf(out, room, "%s/%s", folder, d->d_name);
        }
    closedir(stream);
    assert_int_equal(count, 1);
}

/* Reads the key of a file of the disk cache: its length is the second word, and it begins behind the fourth. */
static void read_key(const char *path, char *key, size_t room) {
    uint64_t head[4];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(head, sizeof head, 1, file), 1);
    assert_true(head[1] < room);
    assert_int_equal(fread(key, 1, head[1], file), head[1]);
    key[head[1]] = '\0';
    fclose(file);
}

static tally_status build_in_new(const char *prelude) {
    static const char *const defines[] = {"TYPE_U8", "OP_MAX"};
    struct gpu *gpu;
    struct gpu_program *program;
    assert_ok(cuda_api.open(0, NULL, &gpu));
    const tally_status status =
        cuda_api.build(gpu, "ladder/ladder.cu", prelude, defines, 2, &program);
    cuda_api.close(gpu);
    return status;
}

/* What one device has compiled the next one finds on disk; what the driver does not take is compiled again. */
static void programs_on_disk(void **state) {
    char folder[] = "/tmp/tally-cuda-XXXXXX", path[300], key[1000];
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("TALLY_CACHE_DIR", folder, 1);
    unsetenv("TALLY_CACHE");
    assert_ok(build_in_new(NULL));
    only_file(folder, path, sizeof path);
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "11", 1); /* every compilation fails from here on */
    assert_ok(build_in_new(NULL));
    assert_error(TALLY_ECOMPILE, build_in_new("/* another program */"));
    setenv("TALLY_CACHE", "0", 1);
    assert_error(TALLY_ECOMPILE, build_in_new(NULL));
    unsetenv("TALLY_CACHE");
    fail_at("cuModuleLoadData", 1, CUDA_ERROR_OUT_OF_MEMORY); /* the image is not to blame */
    assert_error(TALLY_ENOMEM, build_in_new(NULL));
    heal();
    read_key(path, key, sizeof key);
    assert_non_null(strstr(key, "NVRTC 13.0"));
    assert_non_null(strstr(key, "--gpu-architecture=sm_90 -fmad=false"));
    disk_cache_store(key, "no image", 8, DISK_CACHE_MOST);
    assert_error(TALLY_ECOMPILE, build_in_new(NULL));
    unsetenv("TALLY_CUDA_DOUBLE_NVRTC");
    assert_ok(build_in_new(NULL));
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "11", 1);
    assert_ok(build_in_new(NULL));
    unsetenv("TALLY_CUDA_DOUBLE_NVRTC");
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    setenv("TALLY_CACHE", "0", 1);
}

/* Removes a file of a folder, any one; returns how many there were. */
static unsigned remove_one(const char *folder) {
    char path[300] = "";
    unsigned count = 0;
    struct dirent *d;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    while ((d = readdir(stream)))
        if (d->d_name[0] != '.') {
            count++;
            snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        }
    closedir(stream);
    if (count > 0) assert_int_equal(unlink(path), 0);
    return count;
}

/* Has `count` of a program's kernels made together, and finds them. */
static tally_status build_groups(size_t count) {
    static const char *const defines[] = {"OP_SUM", "TYPE_F32"};
    static const char *const names[] = {"few", "many", "lower_groups", "slices", "zeros"};
    struct gpu *gpu;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    assert_ok(cuda_api.open(0, NULL, &gpu));
    const size_t before = objects();
    assert_ok(cuda_api.build(gpu, "groups.cu", NULL, defines, 2, &program));
    assert_int_equal(objects(), before); /* nothing is compiled yet */
    tally_status status = cuda_api.make(gpu, program, names, count);
    if (status != TALLY_OK) assert_int_equal(objects(), before); /* also what was loaded is gone */
    if (status == TALLY_OK) assert_int_equal(objects(), before + count);
    for (size_t i = 0; i < count && status == TALLY_OK; i++)
        assert_ok(cuda_api.kernel(gpu, program, names[i], &kernel));
    assert_ok(cuda_api.make(gpu, program, names, status == TALLY_OK ? count : 0));
    if (status == TALLY_OK) assert_int_equal(objects(), before + count); /* each once */
    if (status == TALLY_OK)
        assert_error(TALLY_EINVAL, cuda_api.kernel(gpu, program, "none", &kernel));
    cuda_api.close(gpu);
    assert_int_equal(objects(), 0);
    return status;
}

/* Of a file of several kernels those are compiled that are asked for. What one of them fails in, all do. */
static void programs_of_kernels(void **state) {
    char folder[] = "/tmp/tally-cuda-XXXXXX";
    (void)state;
    assert_non_null(mkdtemp(folder));
    setenv("TALLY_CACHE_DIR", folder, 1);
    unsetenv("TALLY_CACHE");
    fail_at("cuModuleLoadData", 3, CUDA_ERROR_OUT_OF_MEMORY);
    assert_error(TALLY_ENOMEM, build_groups(5));
    heal();
    assert_int_equal(remove_one(folder), 0);
    assert_ok(build_groups(5));
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "11", 1);
    assert_ok(build_groups(5));
    assert_int_equal(remove_one(folder), 5);
    assert_error(TALLY_ECOMPILE, build_groups(5));
    unsetenv("TALLY_CUDA_DOUBLE_NVRTC");
    fail_at("cuModuleLoadData", 4,
            CUDA_ERROR_INVALID_IMAGE); /* one from the disk, maybe: all are made anew */
    assert_ok(build_groups(5));
    heal();
    for (unsigned left = 5; left > 0; left--)
        assert_int_equal(remove_one(folder), left);
    assert_ok(build_groups(2));
    for (unsigned left = 2; left > 0; left--)
        assert_int_equal(remove_one(folder), left);
    assert_int_equal(rmdir(folder), 0);
    setenv("TALLY_CACHE", "0", 1);
}

static void launch_arguments(void **state) {
    static const char *const defines[] = {"TYPE_I32", "OP_SUM"};
    static const struct gpu_argument many[33];
    struct gpu *gpu;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    (void)state;
    assert_ok(cuda_api.open(0, NULL, &gpu));
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
        cmocka_unit_test(programs_on_disk),
        cmocka_unit_test(programs_of_kernels),
        cmocka_unit_test(launch_arguments),
        cmocka_unit_test(callers_context),
        cmocka_unit_test(callers_primary_context),
        cmocka_unit_test(callers_context_is_lost),
        cmocka_unit_test(callers_context_stays),
        cmocka_unit_test(works_on_callers_stream),
        cmocka_unit_test(captures),
        cmocka_unit_test(programs_are_bounded),
        cmocka_unit_test(dropping_waits),
        cmocka_unit_test(captured_programs_stay),
#if defined(TALLY_DEBUG)
        cmocka_unit_test(dropped_kernels_stop),
#endif
        cmocka_unit_test(leaving_fails),
        cmocka_unit_test(current_context),
        cmocka_unit_test(writes),
        cmocka_unit_test(writes_without_pinned_memory),
        cmocka_unit_test(writes_from_pinned_memory),
        cmocka_unit_test(visible),
        cmocka_unit_test(lost_device_comes_back),
        cmocka_unit_test(every_call_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
