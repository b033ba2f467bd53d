/*
 * textbook_loop.c - the loop that everybody writes first: it adds the floats of a .npy file one by one, in float.
 *
 * Shown by `make demo` for its answer. No Tally in here.
 */
#define _POSIX_C_SOURCE 199309L /* clock_gettime() */

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int argc, char **argv) {
    FILE *f = argc == 2 ? fopen(argv[1], "rb") : NULL;
    unsigned char head[10];
    if (!f || fread(head, 1, 10, f) != 10 || head[6] != 1) {
        fprintf(stderr, "usage: textbook_loop FILE.npy (version 1, little-endian float32)\n");
        return 1;
    }
    fseek(f, 10 + head[8] + 256 * head[9], SEEK_SET);
    enum { PIECE = 1 << 20 };
    float *x = malloc(PIECE * sizeof *x), sum = 0;
    if (!x) return 1;
    double seconds = 0;
    size_t n;
    while ((n = fread(x, sizeof *x, PIECE, f)) > 0) {
        struct timespec before, after;
        clock_gettime(CLOCK_MONOTONIC, &before);
        for (size_t i = 0; i < n; i++)
            sum += x[i];
        clock_gettime(CLOCK_MONOTONIC, &after);
        seconds += (double)(after.tv_sec - before.tv_sec) +
                   1e-9 * (double)(after.tv_nsec - before.tv_nsec);
    }
    printf("%.9g %.6f\n", sum, seconds); /* the sum, and the loop's own time */
    free(x);
    fclose(f);
    return 0;
}
