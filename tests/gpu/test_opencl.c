/*
 * test_opencl.c - the OpenCL host, on the first device that is here. Skips where there is none.
 */
#include "checks.h"

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

/* Host memory of a unified device is used where it lies; also memory that must not be written. */
static void adopts(void **state) {
    struct gpu *gpu;
    struct gpu_memory *theirs;
    struct gpu_facts facts;
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    (void)state;
    needs_device();
    assert_ok(opencl_api.describe(0, &facts));
    if (!facts.unified) {
        print_message("skipped: the device is not unified\n");
        skip();
    }
    unsigned char out[64];
    unsigned char *x = mmap(NULL, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_ptr_not_equal(x, MAP_FAILED);
    for (size_t i = 0; i < page; i++)
        x[i] = (unsigned char)i;
    assert_int_equal(mprotect(x, page, PROT_READ), 0);
    assert_ok(opencl_api.open(0, &gpu));
    assert_ok(opencl_api.adopt(gpu, x + 1, page - 1, &theirs));
    assert_ok(opencl_api.read(gpu, out, theirs, 6, sizeof out));
    for (size_t i = 0; i < sizeof out; i++)
        assert_int_equal(out[i], (unsigned char)(i + 7));
    opencl_api.release(gpu, theirs);
    assert_ok(opencl_api.adopt(gpu, x, 0, &theirs));
    opencl_api.close(gpu);
    munmap(x, page);
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
    assert_ok(opencl_api.open(0, &gpu));
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
    assert_ok(opencl_api.open(0, &gpu));
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
        cmocka_unit_test(threads),
        cmocka_unit_test(rounds_as_written),
        cmocka_unit_test(reopening),
        cmocka_unit_test(compile_errors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
