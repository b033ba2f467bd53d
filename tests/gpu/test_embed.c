/* test_embed.c - the embedded sources and the text that becomes of a root. */
#include "../c/testing.h"

#include "gpu/embed.h"

static void finds_sources(void **state) {
    (void)state;
    assert_non_null(embed_find(embedded_sources, "kernels/dialect.h"));
    assert_non_null(embed_find(embedded_sources, "kernels/ladder/ladder.cu"));
    assert_non_null(embed_find(embedded_sources, "base/table.h"));
    assert_null(embed_find(embedded_sources, "dialect.h"));
    for (const struct embedded *e = embedded_sources; e->name; e++) {
        assert_int_equal(*e->end, 0);
        assert_int_equal(strlen((const char *)e->bytes), e->end - e->bytes);
    }
}

static void root_says_all(void **state) {
    const char *const defines[] = {"TYPE_F32", "FACTOR=2 + 2"};
    char *root = embed_root("ladder/ladder.cu", "int prelude;", defines, 2);
    (void)state;
    assert_string_equal(root, "#define TYPE_F32 1\n#define FACTOR 2 + 2\n#line 1 \"prelude\"\n"
                              "int prelude;\n#include \"kernels/ladder/ladder.cu\"\n");
    free(root);
}

static void expands_includes(void **state) {
    char *text =
        embed_expand("#include \"kernels/ladder/load.cu\"\n# include \"elsewhere.h\"\nend");
    (void)state;
    assert_non_null(text);
    assert_non_null(strstr(text, "#line 1 \"kernels/ladder/load.cu\"\n"));
    assert_non_null(strstr(text, "#line 1 \"kernels/operators.h\"\n"));
    assert_non_null(strstr(text, "#define TALLY_DIALECT_H"));
    assert_non_null(strstr(text, "load_elements"));
    assert_null(strstr(text, "#include \"dialect.h\""));
    assert_non_null(strstr(text, "#line 2 \"root\"\n# include \"elsewhere.h\"\nend\n"));
    free(text);
}

static void check_line(const char *log, const char *wanted) {
    char line[40];
    embed_log_line(line, sizeof line, log);
    assert_string_equal(line, wanted);
}

static void log_becomes_a_line(void **state) {
    (void)state;
    check_line("", "the compiler said nothing");
    check_line("\n \n", "the compiler said nothing");
    check_line("just this", "just this");
    check_line("a warning\nx.cu:3: error: no\n    x\r\n\n    ^\n", "x.cu:3: error: no; x; ^");
    check_line("error: 0123456789 0123456789 0123456789 0123456789\nmore",
               "error: 0123456789 0123456789 0123456789");
    check_line("error: 0123456789 0123456789 0123456\nmore",
               "error: 0123456789 0123456789 0123456; m");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_sources),
        cmocka_unit_test(root_says_all),
        cmocka_unit_test(expands_includes),
        cmocka_unit_test(log_becomes_a_line),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
