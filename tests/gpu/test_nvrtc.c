/*
 * test_nvrtc.c - every kernel source, each type and each operator, through CUDA's real run-time compiler:
 * no GPU is needed for that. Skips where there is no libnvrtc.
 */
#include "../c/testing.h"

#include "base/table.h"
#include "cuda/compiler.h"
#include "cuda/program.h"
#include "gpu/embed.h"

enum { DRIVER = 13000, SKIPPED = 77 };

static const char *const types[] = {
#define TYPE(NAME, ...) "TYPE_" #NAME,
    TALLY_TYPES(TYPE)
#undef TYPE
};
static const char *const ops[] = {
#define OP(NAME, ...) "OP_" #NAME,
    TALLY_OPS(OP)
#undef OP
};

static tally_status compile(const char *file, const char *prelude, const char *const *defines,
                            size_t count, int major, char **image) {
    char *root = embed_root(file, prelude, defines, count);
    char *text = embed_expand(root);
    assert_non_null(text);
    size_t size;
    tally_status status = compiler_run(text, file, major, 0, DRIVER, image, &size);
    free(text);
    free(root);
    return status;
}

static void compiles(const char *type, const char *op, int major) {
    const char *const defines[] = {type, op};
    char *image = NULL;
    assert_ok(compile("ladder/ladder.cu", NULL, defines, 2, major, &image));
    assert_memory_equal(image, "\177ELF", 4);
    free(image);
}

/* All pairs are cuda_compile_all's, with nvcc. */
static void every_type_and_operator(void **state) {
    const size_t type_count = sizeof types / sizeof *types, op_count = sizeof ops / sizeof *ops;
    (void)state;
    for (size_t i = 0; i < type_count || i < op_count; i++)
        compiles(types[i % type_count], ops[i % op_count], 9);
}

/* Each text of the production kernels, with each of its states, as PTX, since that takes less time. nvcc takes more of C++ and
 * of gcc's C than this compiler: all of these are programs of src/cuda/programs.cmake, too. */
static void every_file(void **state) {
    static const char *const programs[][6] = {
        {"bits.cu", "OP_AND", "TYPE_U32"},
        {"columns.cu", "FOLD_SUM", "OP_SUM", "TYPE_F32"},
        {"columns.cu", "FOLD_SUM", "OP_SUM", "TYPE_F64"},
        {"columns.cu", "FOLD_SUM", "IN_FLOATS", "OP_SUM", "TYPE_BF16"},
        {"columns.cu", "FOLD_SQUARES", "OP_SUM", "TYPE_F32"},
        {"columns.cu", "FOLD_SQUARES", "IN_FLOATS", "OP_SUM", "TYPE_F32"},
        {"columns.cu", "FOLD_MOMENTS", "OP_SUM", "TYPE_F64"},
        {"columns.cu", "FOLD_END", "INDEXED", "OP_MIN", "TYPE_U32"},
        {"columns.cu", "FOLD_ENDS", "OP_MIN", "TYPE_F16"},
        {"columns.cu", "FOLD_FAST", "OP_SUM", "TYPE_F32"},
        {"double_moments.cu", "OP_SUM", "TYPE_F64"},
        {"fast_sum.cu", "OP_SUM", "TYPE_F32"},
        {"filled.cu"},
        {"group_ends.cu", "FOLD_COUNT", "OP_MIN", "TYPE_F32"},
        {"groups.cu", "OP_SUM", "TYPE_F32"},
        {"integer_moments.cu", "OP_SUM", "TYPE_I32"},
        {"integer_product.cu", "OP_PROD", "TYPE_I64"},
        {"integer_sum.cu", "OP_SUM", "TYPE_I32"},
        {"lower.cu"},
        {"moments.cu", "OP_SUM", "TYPE_F32"},
        {"nonzero.cu", "OP_OR", "TYPE_F32"},
        {"order.cu", "INDEXED", "OP_MIN", "TYPE_F32"},
        {"parts.cu"},
        {"rows.cu", "OP_SUM", "TYPE_F32"},
        {"rows.cu", "IN_FLOATS", "OP_SUM", "TYPE_F32"},
        {"rows.cu", "IN_FLOATS", "LIFT_SQUARE", "OP_SUM", "TYPE_BF16"},
        {"rows.cu", "LIFT_MOMENTS", "OP_SUM", "TYPE_BF16"},
        {"rows.cu", "INDEXED", "OP_MAX", "TYPE_I32"},
        {"shared_terms.cu"},
        {"sort.cu"},
        {"sum.cu", "LIFT_SQUARE", "OP_SUM", "TYPE_F32"},
        {"terms.cu"},
        {"tree.cu", "OP_PROD", "TYPE_F32"},
        {"vectors.cu", "FOLD_SUM", "OP_SUM", "TYPE_F32"},
        {"vectors.cu", "FOLD_MOMENTS", "OP_SUM", "TYPE_F64"},
        {"words.cu"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++) {
        size_t count = 0;
        char *image = NULL;
        while (count < 5 && programs[i][1 + count])
            count++;
        assert_ok(compile(programs[i][0], NULL, programs[i] + 1, count, 99, &image));
        assert_non_null(strstr(image, ".visible .entry "));
        free(image);
    }
}

static void every_architecture(void **state) {
    (void)state;
    compiles("TYPE_F64", "OP_SUM", 8);
    compiles("TYPE_BF16", "OP_MAX", 10);
}

/* A device that is newer than the compiler gets PTX; one that is older than all it knows, nothing. */
static void other_architectures(void **state) {
    static const char *const defines[] = {"TYPE_F32", "OP_SUM"};
    char *image = NULL;
    (void)state;
    assert_ok(compile("ladder/ladder.cu", NULL, defines, 2, 99, &image));
    assert_non_null(strstr(image, ".visible .entry single_pass("));
    assert_null(strstr(image, "fma.rn"));
    free(image);
    assert_error(TALLY_ECOMPILE, compile("ladder/ladder.cu", NULL, defines, 2, 1, &image));
}

static void errors_are_told(void **state) {
    static const char *const defines[] = {"TYPE_F32", "OP_SUM"};
    char *image = NULL;
    (void)state;
    assert_error(TALLY_ECOMPILE,
                 compile("ladder/load.cu", "\n__device__ int f(int a) { return a + nobody; }",
                         defines, 2, 9, &image));
    print_message("%s\n", tally_error());
    assert_non_null(strstr(tally_error(), "prelude(2)"));
    assert_non_null(strstr(tally_error(), "nobody"));
    assert_error(TALLY_ECOMPILE, compile("ladder/load.cu", NULL, NULL, 0, 9, &image));
    assert_non_null(strstr(tally_error(), "define one of"));
    assert_error(TALLY_ECOMPILE, compile("nothing.cu", NULL, NULL, 0, 9, &image));
    assert_null(image);
}

/* Whether a symbol table has a name. */
static int has_name(const struct program_image *image, const char *name) {
    const size_t length = strlen(name) + 1;
    for (size_t i = 0; i + length < image->size; i++)
        if (image->bytes[i] == '\0' && memcmp(image->bytes + i + 1, name, length) == 0) return 1;
    return 0;
}

/* Of a file of several kernels those are made that are asked for, an image for each; or all in one. */
static void kernel_by_kernel(void **state) {
    enum { WANTED = 3, ALL = 5 };
    static const char *const names[ALL] = {"zeros", "few", "many", "slices", "lower_groups"};
    static const char *const unknown[] = {"few", "fe"};
    static const char *const defines[] = {"OP_SUM", "TYPE_F32"};
    const struct program_target target = {9, 0, DRIVER};
    struct program p;
    (void)state;
    setenv("TALLY_CACHE", "0", 1);
    char *root = embed_root("groups.cu", NULL, defines, 2);
    assert_int_equal(program_kernels_in(root), ALL);
    assert_ok(program_make(root, "groups.cu", names, WANTED, &target, false, &p));
    assert_false(program_was_found(&p));
    assert_int_equal(p.count, WANTED);
    for (unsigned i = 0; i < p.count; i++)
        for (unsigned k = 0; k < ALL; k++)
            assert_int_equal(has_name(&p.image[i], names[k]), i == k);
    program_free(&p);
    assert_ok(program_make(root, "groups.cu", NULL, 0, &target, false, &p));
    assert_int_equal(p.count, 1);
    for (unsigned k = 0; k < ALL; k++)
        assert_int_equal(has_name(&p.image[0], names[k]), 1);
    program_free(&p);
    assert_error(TALLY_EINVAL, program_make(root, "groups.cu", unknown, 2, &target, false, &p));
    assert_non_null(strstr(tally_error(), "no kernel fe,"));
    program_free(&p);
    /* What is wrong in all of them is told in the calling thread. */
    assert_error(TALLY_ECOMPILE, program_make("#include \"kernels/groups.cu\"\n", "groups.cu",
                                              names, WANTED, &target, false, &p));
    assert_non_null(strstr(tally_error(), "define one of"));
    program_free(&p);
    free(root);
}

int main(void) {
    char *image = NULL;
    size_t size;
    if (compiler_run("__global__ void f() {}", "f", 9, 0, DRIVER, &image, &size) != TALLY_OK) {
        printf("skipped: %s\n", tally_error());
        return SKIPPED;
    }
    free(image);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_type_and_operator), cmocka_unit_test(every_file),
        cmocka_unit_test(every_architecture),      cmocka_unit_test(other_architectures),
        cmocka_unit_test(errors_are_told),         cmocka_unit_test(kernel_by_kernel),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
