/*
 * sum.c - the C interface in ten lines: the sum that the textbook loop gets wrong.
 *
 *     cc sum.c $(pkg-config --cflags --libs tally) && ./a.out
 */
#include <stdio.h>
#include <tally.h>

int main(void) {
    double x[] = {1e16, 1.0, -1e16, 1.0};
    double loop = 0;
    for (int i = 0; i < 4; i++)
        loop += x[i];

    const tally_problem problem = {.op = TALLY_SUM, .type = TALLY_F64};
    tally_value sum;
    if (tally_reduce(NULL, &problem, x, NULL, 4, &sum) != TALLY_OK) {
        fprintf(stderr, "%s\n", tally_error());
        return 1;
    }
    printf("loop %g, exact %g\n", loop, sum.as.f64);
    return 0;
}
