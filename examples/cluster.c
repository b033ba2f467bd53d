/*
 * cluster.c - one sum over several machines, played by one: each feeds its share to a state and sends the
 * state's bytes; whoever receives them merges. However the data is split, the answer is the same bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tally.h>

static void check(tally_status s) {
    if (s == TALLY_OK) return;
    fprintf(stderr, "%s\n", tally_error());
    exit(1);
}

static const tally_problem problem = {.op = TALLY_SUM, .type = TALLY_F64};

/* Returns the saved state of a share, as a machine of its own makes it. The caller frees it. */
static void *share(const double *x, size_t n, size_t *size) {
    tally_state *mine;
    check(tally_state_create(&problem, &mine));
    check(tally_state_feed(mine, NULL, x, NULL, n));
    *size = tally_state_size(mine);
    void *message = malloc(*size);
    if (!message) exit(1);
    check(tally_state_save(mine, message, *size));
    tally_state_destroy(mine);
    return message;
}

/* The sum of x[0..n) computed by `ranks` machines. */
static double sum_over(int ranks, const double *x, size_t n) {
    tally_state *all;
    check(tally_state_create(&problem, &all));
    for (int r = 0; r < ranks; r++) {
        const size_t from = n * r / ranks, to = n * (r + 1) / ranks;
        size_t size;
        void *message = share(x + from, to - from, &size);
        tally_state *received;
        check(tally_state_load(message, size, &problem, &received));
        check(tally_state_merge(all, received));
        tally_state_destroy(received);
        free(message);
    }
    tally_value sum;
    check(tally_state_value(all, &sum));
    tally_state_destroy(all);
    return sum.as.f64;
}

int main(void) {
    size_t n = 1000000;
    double *x = malloc(n * sizeof *x);
    if (!x) return 1;
    for (size_t i = 0; i < n; i++)
        x[i] = (i % 2 ? -1.0 : 1.0) / (double)(i + 1);
    for (int ranks = 1; ranks <= 1000; ranks *= 10)
        printf("%4d ranks: %a\n", ranks, sum_over(ranks, x, n));
    free(x);
    return 0;
}
