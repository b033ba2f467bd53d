/*
 * small.c - the time of one call on a short array in cache, beside the plain scalar loop.
 *
 * Prints a row for each n and type: median ns of a call, of the loop, and their ratio. Each median is over
 * rounds that time a batch of calls and a batch of loops in turn.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tally.h>
#include <time.h>

enum { MAX_N = 4096, ROUNDS = 101 };

static double now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e9 * (double)t.tv_sec + (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v) {
    qsort(v, ROUNDS, sizeof *v, by_value);
    return v[ROUNDS / 2];
}

#define LOOP(name, type)                                                                           \
    static void loop_##name(const type *x, size_t n) {                                             \
        type sum = 0;                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            sum += x[i];                                                                           \
        __asm__ volatile("" : : "g"(sum) : "memory");                                              \
    }
LOOP(f64, double)
LOOP(f32, float)

int main(void) {
    static double x[MAX_N];
    static float y[MAX_N];
    unsigned long long state = 1;
    for (int i = 0; i < MAX_N; i++) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        x[i] = (double)(state >> 11) * 0x1p-53;
        y[i] = (float)(state >> 40) * 0x1p-24f;
    }
    tally_device *device;
    if (tally_open("auto", &device) != TALLY_OK) {
        fprintf(stderr, "%s\n", tally_error());
        return 1;
    }
    printf("%-6s %6s %10s %10s %8s\n", "dtype", "n", "tally ns", "loop ns", "ratio");
    const size_t sizes[] = {1, 16, 256, 4096};
    for (int f = 0; f < 2; f++)
        for (int s = 0; s < 4; s++) {
            size_t n = sizes[s], batch = 40000 / (n + 40);
            static double ours[ROUNDS], loop[ROUNDS];
            const tally_problem problem = {.op = TALLY_SUM, .type = f ? TALLY_F32 : TALLY_F64};
            tally_value sum;
            for (int r = 0; r < ROUNDS; r++) {
                double t0 = now_ns();
                for (size_t i = 0; i < batch; i++)
                    tally_reduce(device, &problem, f ? (const void *)y : (const void *)x, NULL, n,
                                 &sum);
                double t1 = now_ns();
                for (size_t i = 0; i < batch; i++) {
                    if (f)
                        loop_f32(y, n);
                    else
                        loop_f64(x, n);
                }
                double t2 = now_ns();
                ours[r] = (t1 - t0) / (double)batch;
                loop[r] = (t2 - t1) / (double)batch;
            }
            double a = median(ours), b = median(loop);
            printf("%-6s %6zu %10.0f %10.0f %8.2f\n", f ? "f32" : "f64", n, a, b, a / b);
        }
    tally_close(device);
    return 0;
}
