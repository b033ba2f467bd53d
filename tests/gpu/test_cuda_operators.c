/*
 * test_cuda_operators.c - ever new operators of a user's on "cuda:0", through the public calls, on the test
 * doubles of CUDA (tests/cuda_double).
 */
#include "../c/testing.h"

#include <dlfcn.h>

static void modular(void *context, const void *left, const void *right, void *out, size_t count) {
    const int64_t *a = left, *b = right;
    int64_t *c = out;
    (void)context;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] * b[i] % 1000003;
}

/* A process that makes ever new operators does not hold ever more programs, and the first still works.
 * (Operators differ in their blanks, which the compiler's double does not look at.) */
static void many_operators(void **state) {
    enum { MANY = 200, KEPT = 64, N = 100 }; /* KEPT: what src/gpu/cache.h says */
    static const int64_t one = 1;
    char source[MANY + 32] = "a * b % 1000003";
    const tally_operator op = {
        .combine = modular, .identity = &one, .commutative = 1, .source = source};
    const tally_problem problem = {.op = TALLY_USER, .type = TALLY_I64, .user = &op};
    int64_t x[N];
    tally_value wanted, got;
    tally_device *device;
    size_t (*objects)(void), after_first = 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    void *address = library ? dlsym(library, "tally_cuda_double_objects") : NULL;
    (void)state;
    assert_non_null(address); /* or this is no double */
    memcpy(&objects, &address, sizeof address);
    for (int i = 0; i < N; i++)
        x[i] = 1 + i;
    assert_ok(tally_reduce(NULL, &problem, x, NULL, N, &wanted));
    assert_ok(tally_open("cuda:0", &device));
    for (int i = 0; i <= MANY; i++) {
        snprintf(source, sizeof source, "a%*s * b %% 1000003", i % MANY, "");
        assert_ok(tally_reduce(device, &problem, x, NULL, N, &got));
        assert_true(got.as.i64 == wanted.as.i64);
        if (i == 0) after_first = objects();
        assert_true(objects() < after_first + KEPT);
    }
    tally_close(device);
    assert_int_equal(objects(), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_operators),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
