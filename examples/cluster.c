/*
 * cluster.c - one sum over several machines, played by one: each adds its share to an accumulator and
 * sends its bytes; whoever receives them merges. However the data is split, the answer is the same bits.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tally.h>

static void check(tally_status s) {
    if (s == TALLY_OK) return;
    fprintf(stderr, "%s\n", tally_error());
    exit(1);
}

/* The sum of x[0..n) computed by `ranks` machines. */
static double sum_over(int ranks, const double *x, size_t n) {
    tally_accumulator *all;
    check(tally_accumulator_create(&all));
    for (int r = 0; r < ranks; r++) {
        size_t from = n * r / ranks, to = n * (r + 1) / ranks;
        tally_accumulator *mine, *received;
        unsigned char message[TALLY_ACCUMULATOR_BYTES];

        check(tally_accumulator_create(&mine)); /* on machine r */
        check(tally_accumulator_add(mine, NULL, TALLY_F64, x + from, to - from));
        tally_accumulator_save(mine, message);
        tally_accumulator_destroy(mine);

        check(tally_accumulator_load(message, sizeof message, &received)); /* on machine 0 */
        check(tally_accumulator_merge(all, received));
        tally_accumulator_destroy(received);
    }
    tally_value sum;
    check(tally_accumulator_round(all, TALLY_F64, &sum));
    tally_accumulator_destroy(all);
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
