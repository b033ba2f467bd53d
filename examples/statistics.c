/*
 * statistics.c - one pass for everything there is to say about an array; and a moving window, whose mean and
 * standard deviation never drift, however long it moves.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tally.h>

static void check(tally_status s) {
    if (s == TALLY_OK) return;
    fprintf(stderr, "%s\n", tally_error());
    exit(1);
}

/* Prints each value of a problem under its operator's name. */
static void print(const tally_problem *problem, const tally_value *values) {
    size_t count;
    check(tally_problem_values(problem, &count));
    for (size_t i = 0; i < count; i++) {
        char text[32];
        tally_value_print(&values[i], text, sizeof text);
        printf("  %-8s %s\n", tally_op_name(tally_problem_value_op(problem, i)), text);
    }
}

int main(void) {
    enum { N = 100000, WINDOW = 1000 };
    static double x[N];
    for (int i = 0; i < N;
         i++) /* small steps upon a large number, which a running sum would lose */
        x[i] = 1e9 + i % 3 * 0.1 + (i == N / 2 ? 1e16 : 0);

    /* Everything at once, in one pass, with the sample's standard deviation. */
    const tally_problem all = {.op = TALLY_DESCRIBE, .type = TALLY_F64, .ddof = 1};
    tally_value values[TALLY_VALUES_MAX];
    check(tally_reduce(NULL, &all, x, NULL, N, values));
    printf("all %d:\n", N);
    print(&all, values);

    /* The window: what comes in at one end is added, what leaves at the other is taken away. */
    const tally_problem moving = {.op = TALLY_MEAN, .type = TALLY_F64, .also = {TALLY_STD}};
    tally_state *window, *leaving;
    check(tally_state_create(&moving, &window));
    check(tally_state_create(&moving, &leaving));
    check(tally_state_feed(window, NULL, x, NULL, WINDOW));
    for (int i = WINDOW; i < N; i += WINDOW / 10) {
        check(tally_state_feed(window, NULL, x + i, NULL, WINDOW / 10));
        tally_state_clear(leaving);
        check(tally_state_feed(leaving, NULL, x + i - WINDOW, NULL, WINDOW / 10));
        check(tally_state_subtract(window, leaving));
    }
    tally_value afresh[TALLY_VALUES_MAX];
    check(tally_state_value(window, values));
    check(tally_reduce(NULL, &moving, x + N - WINDOW, NULL, WINDOW, afresh));
    printf("the last %d, by a window that moved %d times:\n", WINDOW, (N - WINDOW) / (WINDOW / 10));
    print(&moving, values);
    printf("the same computed afresh:\n");
    print(&moving, afresh);
    tally_state_destroy(window);
    tally_state_destroy(leaving);
    return tally_value_bits(&values[0]) != tally_value_bits(&afresh[0]) ||
           tally_value_bits(&values[1]) != tally_value_bits(&afresh[1]);
}
