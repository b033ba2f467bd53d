/*
 * intervals.c - runs the arithmetic that bounds its own errors, for tests/engine/test_intervals.py, which knows the
 * exact values.
 *
 *     intervals ISA mean COUNT                       the kernels of src/cpu/columns.h: s e b n -> s e b
 *     intervals ISA root COUNT                       s e b -> s e b
 *     intervals ISA variance COUNT DDOF ROOT NEAR    s e b q qe qb n -> s e b
 *     intervals ISA round COUNT TYPE                 s e b -> bits, ok (a word each)
 *     intervals host pair COUNT TYPE MEAN            src/kernels/pair.h: s e n -> bits, ok
 *     intervals host doubles COUNT TYPE OP DDOF ROUGH   src/kernels/doubles.h: s e q qe n -> bits, ok
 *     intervals host near COUNT TYPE OP DDOF DEPTH      src/kernels/certain: s e q qe n -> bits, ok; of sums s within e. DEPTH
 *                                                       0: of sums in two doubles each
 *     intervals host batch COUNT P    src/kernels/certain/batch.h: floats, 2^P a batch -> conditions() as one sum, as one of several,
 *                                     plain sum, s e, squares' s e, squares above a base, sum in floats; a number a batch
 *
 * It reads the arrays before the arrow from its standard input, COUNT doubles each, and writes those behind it to its
 * standard output. COUNT is a multiple of 16.
 */
#include "tally.h"

#include "cpu/kernels.h"
#include "exact/kernel_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- What pair.h needs ------------------------------------------------------------------------ */

enum { F16 = TALLY_F16, BF16 = TALLY_BF16, F32 = TALLY_F32, F64 = TALLY_F64 };
enum {
    SUM = TALLY_SUM,
    MEAN = TALLY_MEAN,
    VAR = TALLY_VAR,
    STD = TALLY_STD,
    NORM2 = TALLY_NORM2,
    SUMSQ = TALLY_SUMSQ
};

static float_format format_of(u32 type) {
    const float_format formats[] = {
        [F16] = {10, 15}, [BF16] = {7, 127}, [F32] = {23, 127}, [F64] = {52, 1023}};
    return formats[type];
}

#define fused(a, b, c) __builtin_fma(a, b, c)
#define square_root(x) __builtin_sqrt(x)

#include "kernels/doubles.h"

#include "kernels/certain/batch.h"

/* ---- The kernels ------------------------------------------------------------------------------ */

enum { ARRAYS = 10, KERNELS = 8 };

static const char *const kernels[] = {"mean", "root",    "variance", "round",
                                      "pair", "doubles", "batch",    "near"};
static const int reads[] = {4, 3, 7, 3, 3, 5, 1, 5}, arguments[] = {0, 0, 3, 1, 2, 4, 1, 4};

static double *array(size_t count) {
    double *a = aligned_alloc(64, count * sizeof *a);
    if (!a) exit(3);
    memset(a, 0, count * sizeof *a);
    return a;
}

static void pairs(double *const a[], size_t count, u32 type, u32 mean, uint64_t *bits,
                  uint64_t *ok) {
    for (size_t i = 0; i < count; i++) {
        const pair p = {a[0][i], a[1][i], PAIR_MIXED};
        u32 lost = 0;
        bits[i] = pair_value(&p, (u64)a[2][i], mean, type, &lost);
        ok[i] = !lost;
    }
}

static void doubles(double *const a[], size_t count, u32 type, u32 op, double ddof, double rough,
                    uint64_t *bits, uint64_t *ok) {
    for (size_t i = 0; i < count; i++) {
        const u64 n = (u64)a[4][i];
        u32 lost = 0;
        if (op == TALLY_SUM || op == TALLY_MEAN)
            bits[i] = doubles_value(a[0][i], a[1][i], n, op == TALLY_MEAN, type, 0, &lost);
        else if (op == TALLY_NORM2)
            bits[i] = norm_value(a[2][i], a[3][i], type, rough * a[2][i], &lost);
        else
            bits[i] = variance_value(a[0][i], a[1][i], a[2][i], a[3][i], n, ddof, op == TALLY_STD,
                                     type, rough, &lost);
        ok[i] = !lost;
    }
}

static void near_sums(double *const a[], size_t count, u32 type, u32 op, double ddof, double depth,
                      uint64_t *bits, uint64_t *ok) {
    for (size_t i = 0; i < count; i++) {
        const u32 n = (u32)a[4][i];
        if (op == SUM || op == MEAN)
            ok[i] = near_sum_rounds(a[0][i], a[1][i], n, op == MEAN, type, &bits[i]);
        else if (depth > 0)
            ok[i] = near_sums_round(a[0][i], a[2][i], n, depth, 1, op, ddof, type, &bits[i]);
        else
            ok[i] = near_doubles_round(a[0][i], a[1][i], a[2][i], a[3][i], n, 1, op, ddof, type,
                                       &bits[i]);
    }
}

/* Returns the spread times 16, with a bit for each condition that it satisfies: also of sums in floats of 8 and 11 digits. */
static double conditions(u32 most, i32 spread, i32 p) {
    return 16.0 * spread + 8 * (float_sums_are_exact(most, spread, 11, p) != 0) +
           4 * (float_sums_are_exact(most, spread, 8, p) != 0) +
           2 * (compensated_sums_are_exact(spread, p) != 0) +
           (plain_sums_are_exact(spread, p) != 0);
}

/* Adds up batches as the lemma of certain/batch.h says. Squares begin at the base that the batch's own bounds give. */
static void batches(double *const a[], size_t count, int p) {
    for (size_t first = 0; first < count; first += (size_t)1 << p) {
        const size_t b = first >> p;
        u32 most = NO_MOST, least = NO_LEAST;
        float in_floats = -0.0f;
        double plain = -0.0, s = -0.0, e = 0, square = 0, rest = 0, above, more = 0, error;
        for (size_t i = first; i < first + ((size_t)1 << p); i++)
            note_magnitude(float_bits((float)a[0][i]), &most, &least);
        const double base = double_from((u64)(1023 + 2 * ((i32)(most >> 23) - 126) + p) << 52);
        above = base;
        for (size_t i = first; i < first + ((size_t)1 << p); i++) {
            const double x = a[0][i], before = above;
            plain += x;
            in_floats += (float)x;
            s = two_sum(s, x, &error);
            e += error;
            square = two_sum(square, x * x, &error);
            rest += error;
            above = fused(x, x, before);
            more += fused(x, x, before - above);
        }
        const double found[] = {conditions(most, spread_of(most, least, OF_ONE_SUM), p),
                                conditions(most, spread_of(most, least, OF_SEVERAL_SUMS), p),
                                plain,
                                s,
                                e,
                                square,
                                rest,
                                above - base,
                                more,
                                (double)in_floats};
        for (int i = 0; i < ARRAYS; i++)
            a[i][b] = found[i];
    }
}

int main(int argc, char **argv) {
    int k = 0;
    while (argc > 3 && k < KERNELS && strcmp(argv[2], kernels[k]) != 0)
        k++;
    if (argc <= 3 || k == KERNELS || argc != 4 + arguments[k]) return 2;
    const struct cpu_kernels *set = cpu_kernels_named(argv[1]);
    const struct column_kernels *c = set ? set->columns : NULL;
    const size_t count = strtoul(argv[3], NULL, 10);
    double *a[ARRAYS];
    if (!c && k < 4) return 2;
    if (count == 0 || count % 16 != 0) return 2;
    for (int i = 0; i < ARRAYS; i++)
        a[i] = array(count);
    for (int i = 0; i < reads[k]; i++)
        if (fread(a[i], sizeof(double), count, stdin) != count) return 3;
    uint64_t *bits = (uint64_t *)array(count), *ok = (uint64_t *)array(count);
    unsigned char *flags = (unsigned char *)array(count);
    if (k == 0) c->mean(a[0], a[1], a[2], count, a[3]);
    if (k == 1) c->root(a[0], a[1], a[2], count);
    if (k == 2)
        c->variance(a[0], a[1], a[2], a[3], a[4], a[5], count, a[6], atof(argv[4]), atoi(argv[5]),
                    atof(argv[6]));
    if (k == 3) {
        c->round(a[0], a[1], a[2], count, (tally_type)atoi(argv[4]), bits, flags);
        for (size_t i = 0; i < count; i++)
            ok[i] = flags[i] != 0;
    }
    if (k == 4) pairs(a, count, (u32)atoi(argv[4]), (u32)atoi(argv[5]), bits, ok);
    if (k == 5)
        doubles(a, count, (u32)atoi(argv[4]), (u32)atoi(argv[5]), atof(argv[6]), atof(argv[7]),
                bits, ok);
    if (k == 7)
        near_sums(a, count, (u32)atoi(argv[4]), (u32)atoi(argv[5]), atof(argv[6]), atof(argv[7]),
                  bits, ok);
    if (k == 6) batches(a, count, atoi(argv[4]));
    if (k < 3 || k == 6)
        for (int i = 0; i < (k == 6 ? ARRAYS : 3); i++)
            fwrite(a[i], sizeof(double), count, stdout);
    else if (fwrite(bits, sizeof *bits, count, stdout) == count)
        fwrite(ok, sizeof *ok, count, stdout);
    for (int i = 0; i < ARRAYS; i++)
        free(a[i]);
    free(bits);
    free(ok);
    free(flags);
    return fflush(stdout) == 0 ? 0 : 3;
}
