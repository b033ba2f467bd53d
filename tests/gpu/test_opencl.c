/*
 * test_opencl.c - the OpenCL host, on the first device that is here. Skips where there is none.
 */
#include "checks.h"

#include "gpu/ring.h"

#include "opencl/opencl.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

static void needs_device(void) {
    struct gpu_facts facts;
    if (opencl_api.count() == 0) {
        opencl_api.describe(0, &facts);
        print_message("skipped: %s\n", tally_error());
        skip();
    }
}

static int under_oclgrind(void) {
    const char *preload = getenv("LD_PRELOAD");
    return preload && strstr(preload, "oclgrind");
}

static void describes(void **state) {
    struct gpu_facts facts;
    (void)state;
    needs_device();
    for (size_t i = 0; i < opencl_api.count(); i++) {
        assert_ok(opencl_api.describe(i, &facts));
        print_message("opencl:%zu is %s: %u units, blocks of %u, f64 %d, 64-bit atomics %d\n", i,
                      facts.name, facts.units, facts.block_max, facts.doubles, facts.atomics64);
        assert_true(facts.name[0] && facts.units && facts.block_max && facts.shared_max);
        assert_true(facts.memory && facts.allocation_max && facts.allocation_max <= facts.memory);
    }
}

static void absent(void **state) {
    (void)state;
    check_absence(&opencl_api, opencl_api.count());
    check_absence(&opencl_api, SIZE_MAX);
}

static void memory(void **state) {
    (void)state;
    needs_device();
    check_memory(&opencl_api);
}

static void builds(void **state) {
    (void)state;
    needs_device();
    check_builds(&opencl_api);
}

static void ladder(void **state) {
    (void)state;
    needs_device();
    check_ladder(&opencl_api);
}

static void times(void **state) {
    (void)state;
    needs_device();
    check_time(&opencl_api);
}

static void reopening(void **state) {
    (void)state;
    needs_device();
    check_reopening(&opencl_api, under_oclgrind() ? 20 : 1000, 16 << 20);
}

static void threads(void **state) {
    (void)state;
    needs_device();
    if (under_oclgrind()) { /* it runs one program at a time */
        print_message("skipped under oclgrind\n");
        skip();
    }
    check_threads(&opencl_api, 4, 5);
}

static cl_mem (*real_create)(cl_context, cl_bits, size_t, void *, cl_int *);
static cl_bits flags_seen; /* of the last buffer in memory of the host's */

static cl_mem noting_create(cl_context context, cl_bits flags, size_t size, void *host,
                            cl_int *error) {
    if (host) flags_seen = flags;
    return real_create(context, flags, size, host, error);
}

/* A device that reads host memory uses it where it lies; also memory that must not be written. */
static void adopts(void **state) {
    struct gpu *gpu;
    struct gpu_memory *theirs;
    struct gpu_facts facts;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    needs_device();
    assert_ok(opencl_api.describe(0, &facts));
    if (!facts.reads_host_memory) {
        print_message("skipped: the device does not read host memory\n");
        skip();
    }
    unsigned char out[64];
    unsigned char *x = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(x, MAP_FAILED);
    for (size_t i = 0; i < page; i++)
        x[i] = (unsigned char)i;
    assert_int_equal(mprotect(x, page, PROT_READ), 0);
    assert_ok(opencl_api.open(0, NULL, &gpu));
    real_create = cl.clCreateBuffer;
    cl.clCreateBuffer = noting_create;
    assert_ok(opencl_api.adopt(gpu, x + 1, page - 1, &theirs));
    cl.clCreateBuffer = real_create;
    assert_true(flags_seen == (CL_MEM_READ_ONLY | CL_MEM_USE_HOST_PTR));
    assert_ok(opencl_api.read(gpu, out, theirs, 6, sizeof out));
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], (unsigned char)(i + 7));
    opencl_api.release(gpu, theirs);
    assert_ok(opencl_api.adopt(gpu, x, 0, &theirs));
    opencl_api.close(gpu);
    munmap(x, page);
}

/* ---- What is the caller's: contexts and queues ----------------------------------------------- */

struct theirs {
    cl_context context;
    cl_command_queue queue;
};

static struct theirs new_theirs(void) {
    struct theirs t;
    cl_int error = 1;
    cl_device_id device = opencl_device(0);
    t.context = cl.clCreateContext(NULL, 1, &device, NULL, NULL, &error);
    assert_int_equal(error, CL_SUCCESS);
    t.queue = cl.clCreateCommandQueue(t.context, device, 0, &error);
    assert_int_equal(error, CL_SUCCESS);
    return t;
}

static void end_theirs(const struct theirs *t) {
    assert_int_equal(cl.clReleaseCommandQueue(t->queue), CL_SUCCESS);
    assert_int_equal(cl.clReleaseContext(t->context), CL_SUCCESS);
}

static void wait_for_queue(void *queue) {
    assert_int_equal(cl.clFinish(queue), CL_SUCCESS);
}

static void callers_context(void **state) {
    struct gpu *gpu;
    struct gpu_memory *memory;
    unsigned char out[8] = {0};
    (void)state;
    needs_device();
    const struct theirs t = new_theirs();
    assert_ok(opencl_api.open(0, t.context, &gpu));
    check_queue(&opencl_api, gpu, t.queue, wait_for_queue);
    assert_ok(opencl_api.allocate(gpu, 8, &memory));
    end_theirs(&t); /* the queue ends; of the context the device is an owner, too */
    assert_ok(opencl_api.fill(gpu, memory, 0, 9, 8));
    assert_ok(opencl_api.read(gpu, out, memory, 0, 8));
    assert_int_equal(out[7], 9);
    opencl_api.close(gpu);
}

static void no_visible_memory(void **state) {
    struct gpu *gpu;
    struct gpu_memory *memory;
    volatile void *host;
    (void)state;
    needs_device();
    assert_ok(opencl_api.open(0, NULL, &gpu));
    assert_error(TALLY_EUNSUPPORTED, opencl_api.allocate_visible(gpu, 8, &memory, &host));
    opencl_api.close(gpu);
}

/* ---- Writes through the ring ----------------------------------------------------------------- */

/* A device that copies as one with memory of its own does, whatever it is. */
static struct gpu *separate_in(cl_context context) {
    struct gpu *gpu;
    assert_ok(opencl_api.open(0, context, &gpu));
    ((struct gpu_facts *)(uintptr_t)opencl_api.facts(gpu))->reads_host_memory = 0;
    return gpu;
}

static unsigned maps, unmaps;
static bool map_fails;
static void *(*real_map)(cl_command_queue, cl_mem, cl_bool, cl_bits, size_t, size_t, cl_uint,
                         const cl_event *, cl_event *, cl_int *);
static cl_int (*real_unmap)(cl_command_queue, cl_mem, void *, cl_uint, const cl_event *,
                            cl_event *);

static void *counting_map(cl_command_queue queue, cl_mem memory, cl_bool wait, cl_bits flags,
                          size_t offset, size_t size, cl_uint count, const cl_event *events,
                          cl_event *event, cl_int *error) {
    maps++;
    if (map_fails) {
        *error = CL_MAP_FAILURE;
        return NULL;
    }
    return real_map(queue, memory, wait, flags, offset, size, count, events, event, error);
}

static cl_int counting_unmap(cl_command_queue queue, cl_mem memory, void *at, cl_uint count,
                             const cl_event *events, cl_event *event) {
    unmaps++;
    return real_unmap(queue, memory, at, count, events, event);
}

/* Through the ring, and where its memory cannot be had: then without, and that is asked for once. */
static void writes(void **state) {
    (void)state;
    needs_device();
    if (under_oclgrind()) skip(); /* no kernel runs, and it has a record for each byte */
    real_map = cl.clEnqueueMapBuffer;
    real_unmap = cl.clEnqueueUnmapMemObject;
    cl.clEnqueueMapBuffer = counting_map;
    cl.clEnqueueUnmapMemObject = counting_unmap;
    for (int i = 0; i < 2; i++) {
        map_fails = i == 1;
        maps = unmaps = 0;
        struct gpu *gpu = separate_in(NULL);
        (map_fails ? check_writes_without_ring : check_writes)(&opencl_api, gpu);
        opencl_api.close(gpu);
        assert_int_equal(maps, 1);
        assert_int_equal(unmaps, !map_fails);
    }
    cl.clEnqueueMapBuffer = real_map;
    cl.clEnqueueUnmapMemObject = real_unmap;
}

/* User events are the test's alone, and not in opencl.h. */
static cl_event (*make_gate)(cl_context, cl_int *);
static cl_int (*open_gate)(cl_event, cl_int);

static bool find_user_events(void) {
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *const here = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") ? RTLD_DEFAULT : library;
    void *make = dlsym(here, "clCreateUserEvent"), *open = dlsym(here, "clSetUserEventStatus");
    memcpy(&make_gate, &make, sizeof make);
    memcpy(&open_gate, &open, sizeof open);
    return make && open && !under_oclgrind();
}

static cl_int (*real_write)(cl_command_queue, cl_mem, cl_bool, size_t, size_t, const void *,
                            cl_uint, const cl_event *, cl_event *);
static cl_event gate;           /* what each write waits for */
static unsigned writes_waiting; /* how many do */

/* A device that is slow to read: it does so when the gate opens, and that is where a fifth piece, which
 * must wait for the first, would be. */
static cl_int gated_write(cl_command_queue queue, cl_mem to, cl_bool wait, size_t offset,
                          size_t size, const void *from, cl_uint count, const cl_event *events,
                          cl_event *event) {
    assert_int_equal(wait, 0);
    assert_int_equal(count, 0);
    (void)events;
    writes_waiting++;
    return real_write(queue, to, wait, offset, size, from, 1, &gate, event);
}

static cl_int (*real_wait)(cl_uint, const cl_event *);

static cl_int opening_wait(cl_uint count, const cl_event *events) {
    assert_int_equal(writes_waiting, 4);
    writes_waiting = 0;
    return open_gate(gate, 0) ? -1 : real_wait(count, events);
}

/* No piece is filled again before it has been read. */
static void ring_waits(void **state) {
    enum { BYTES = RING_CHUNKS * RING_CHUNK + 12345 };
    struct gpu_memory *memory;
    unsigned char *x, *out;
    cl_int error = 0;
    (void)state;
    needs_device();
    if (!find_user_events()) {
        print_message("skipped: no user events\n");
        skip();
    }
    const struct theirs t = new_theirs();
    struct gpu *gpu = separate_in(t.context);
    x = malloc(BYTES);
    out = malloc(BYTES);
    assert_true(x && out);
    for (size_t i = 0; i < BYTES; i++)
        x[i] = (unsigned char)(i * 31 + i / 4096);
    assert_ok(opencl_api.allocate(gpu, BYTES, &memory));
    gate = make_gate(t.context, &error);
    assert_int_equal(error, CL_SUCCESS);
    real_write = cl.clEnqueueWriteBuffer;
    real_wait = cl.clWaitForEvents;
    cl.clEnqueueWriteBuffer = gated_write;
    cl.clWaitForEvents = opening_wait;
    writes_waiting = 0;
    const tally_status status = opencl_api.write(gpu, memory, 0, x, BYTES);
    cl.clEnqueueWriteBuffer = real_write;
    cl.clWaitForEvents = real_wait;
    assert_ok(status);
    assert_ok(opencl_api.read(gpu, out, memory, 0, BYTES));
    assert_memory_equal(x, out, BYTES);
    cl.clReleaseEvent(gate);
    opencl_api.close(gpu);
    end_theirs(&t);
    free(x);
    free(out);
}

/* ---- Many programs --------------------------------------------------------------------------- */

static int programs; /* that there are */
static cl_program (*real_program)(cl_context, cl_uint, const char **, const size_t *, cl_int *);
static cl_int (*real_release)(cl_program);

static cl_program counting_program(cl_context context, cl_uint count, const char **texts,
                                   const size_t *lengths, cl_int *error) {
    programs++;
    return real_program(context, count, texts, lengths, error);
}

static cl_int counting_release(cl_program program) {
    programs--;
    return real_release(program);
}

/* Builds the i-th of any number of programs, and has it work: y[0] = i. */
static void use_program(struct gpu *gpu, int i, struct gpu_memory *y) {
    char prelude[128];
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    int out = -1;
    snprintf(prelude, sizeof prelude, "__kernel void number(__global int *y) { y[0] = %d; }\n", i);
    assert_ok(opencl_api.build(gpu, "read.cu", prelude, NULL, 0, &program));
    assert_ok(opencl_api.kernel(gpu, program, "number", &kernel));
    const struct gpu_argument argument = {.memory = y};
    assert_ok(opencl_api.launch(gpu, kernel, 1, 1, &argument, 1));
    assert_ok(opencl_api.read(gpu, &out, y, 0, sizeof out));
    assert_int_equal(out, i);
}

static void programs_are_bounded(void **state) {
    enum { MANY = 68, KEPT = 64 }; /* KEPT: what cache.h says */
    struct gpu *gpu;
    struct gpu_memory *y;
    (void)state;
    needs_device();
    setenv("POCL_EXTRA_BUILD_FLAGS", "-cl-opt-disable",
           1); /* PoCL is to be done soon with so many */
    real_program = cl.clCreateProgramWithSource;
    real_release = cl.clReleaseProgram;
    cl.clCreateProgramWithSource = counting_program;
    cl.clReleaseProgram = counting_release;
    assert_ok(opencl_api.open(0, NULL, &gpu));
    assert_ok(opencl_api.allocate(gpu, sizeof(int), &y));
    for (int i = 0; i < MANY; i++) {
        use_program(gpu, i, y);
        assert_true(programs <= KEPT + 1);
    }
    assert_int_equal(programs, KEPT);
    use_program(gpu, 0, y);
    use_program(gpu, MANY - 1, y);
    assert_int_equal(programs, KEPT);
    opencl_api.close(gpu);
    assert_int_equal(programs, 0);
    cl.clCreateProgramWithSource = real_program;
    cl.clReleaseProgram = real_release;
    unsetenv("POCL_EXTRA_BUILD_FLAGS");
}

/* a * b + c is rounded twice, whatever the compiler would like better. */
static void rounds_as_written(void **state) {
    static const char prelude[] =
        "__kernel void contracted(__global const float *x, __global float *y)\n"
        "{ y[0] = x[0] * x[1] + x[2]; y[1] = x[0] / x[1]; y[2] = x[3] * 0.5f; }\n";
    static const char *const defines[] = {"TYPE_F32", "OP_SUM"};
    const float x[4] = {1 + 0x1p-12f, 1 + 0x1p-12f, -1 - 0x1p-11f, 0x1p-126f};
    const float wanted[3] = {0, 1, 0x1p-127f}; /* with one rounding the first is 2^-24 */
    float y[3] = {-1, -1, -1};
    struct gpu *gpu;
    struct gpu_memory *from, *to;
    struct gpu_program *program;
    struct gpu_kernel *kernel;
    (void)state;
    needs_device();
    assert_ok(opencl_api.open(0, NULL, &gpu));
    assert_ok(opencl_api.allocate(gpu, sizeof x, &from));
    assert_ok(opencl_api.allocate(gpu, sizeof y, &to));
    assert_ok(opencl_api.write(gpu, from, 0, x, sizeof x));
    assert_ok(opencl_api.build(gpu, "ladder/load.cu", prelude, defines, 2, &program));
    assert_ok(opencl_api.kernel(gpu, program, "contracted", &kernel));
    const struct gpu_argument arguments[3] = {{.memory = from}, {.memory = to}, {.memory = to}};
    assert_ok(opencl_api.launch(gpu, kernel, 1, 1, arguments, 2));
    assert_ok(opencl_api.read(gpu, y, to, 0, sizeof y));
    assert_memory_equal(y, wanted, sizeof y);
    assert_error(TALLY_EINVAL, opencl_api.launch(gpu, kernel, 1, 1 << 20, arguments, 2));
    assert_error(TALLY_EINVAL, opencl_api.launch(gpu, kernel, 1, 1, arguments, 3));
    opencl_api.close(gpu);
}

/* An error in a prelude - a user's operator - is told with its line and the compiler's words. */
static void compile_errors(void **state) {
    static const char *const defines[] = {"TYPE_F32", "OP_SUM"};
    struct gpu *gpu;
    struct gpu_program *program;
    (void)state;
    needs_device();
    assert_ok(opencl_api.open(0, NULL, &gpu));
    assert_error(TALLY_ECOMPILE,
                 opencl_api.build(gpu, "ladder/load.cu", "\nint f(int a) { return a + nobody; }",
                                  defines, 2, &program));
    print_message("%s\n", tally_error());
    if (!under_oclgrind()) /* which counts lines in its own way */
        assert_non_null(strstr(tally_error(), "prelude:2"));
    assert_non_null(strstr(tally_error(), "nobody"));
    opencl_api.close(gpu);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(describes),
        cmocka_unit_test(absent),
        cmocka_unit_test(memory),
        cmocka_unit_test(builds),
        cmocka_unit_test(ladder),
        cmocka_unit_test(times),
        cmocka_unit_test(adopts),
        cmocka_unit_test(callers_context),
        cmocka_unit_test(no_visible_memory),
        cmocka_unit_test(writes),
        cmocka_unit_test(ring_waits),
        cmocka_unit_test(threads),
        cmocka_unit_test(programs_are_bounded),
        cmocka_unit_test(rounds_as_written),
        cmocka_unit_test(reopening),
        cmocka_unit_test(compile_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
