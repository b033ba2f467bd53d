/*
 * ranks.c - the combine tree of very many ranks, in one process: the same bits for any number of them.
 *
 *   simulate_ranks [MOST]       up to MOST ranks (100000)
 *
 * An array is cut, unevenly, into the parts of p ranks, each rank's state is made words, and the words are added up
 * as an allreduce by recursive doubling adds them, in a tree over ranks, and once more in a random order. The value
 * has to be the one of the whole array each time. A plain floating sum in that tree is printed beside it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

enum { N = 1 << 20 };

static double x[N];
static uint64_t seed = 1;

static uint64_t next_random(void) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

static void need(int holds, const char *what) {
    if (holds) return;
    fprintf(stderr, "simulate_ranks: %s: %s\n", what, tally_error());
    exit(1);
}

/* Adds one rank's words to another's. */
static void add(int64_t *into, const int64_t *from, size_t words) {
    for (size_t i = 0; i < words; i++)
        into[i] += from[i];
}

static double value_of(tally_state *state, const int64_t *words) {
    tally_value value;
    need(tally_state_from_words(state, words) == TALLY_OK, "words");
    need(tally_state_value(state, &value) == TALLY_OK, "a value");
    return value.as.f64;
}

static int simulate(size_t ranks, double expected) {
    static const tally_problem sum = {.op = TALLY_SUM, .type = TALLY_F64};
    tally_state *state;
    need(tally_state_create(&sum, &state) == TALLY_OK, "a state");
    const size_t words = tally_state_words(state);
    int64_t *all = calloc(ranks, words * sizeof *all), *any = calloc(words, sizeof *any);
    double *plain = calloc(ranks, sizeof *plain);
    need(all && any && plain, "no memory");
    for (size_t r = 0, at = 0; r < ranks; r++) {
        const size_t even = N / ranks,
                     end = r + 1 == ranks ? N : at + next_random() % (2 * even + 1);
        const size_t n = (end < N ? end : N) - at;
        tally_state_clear(state);
        need(tally_state_feed(state, NULL, x + at, NULL, n) == TALLY_OK, "fed");
        need(tally_state_to_words(state, all + r * words) == TALLY_OK, "words");
        for (size_t i = 0; i < n; i++)
            plain[r] += x[at + i];
        at += n;
    }
    /* In a random order, before the tree adds them up in place. */
    const size_t from = next_random() % ranks;
    size_t stride = next_random() % ranks | 1, a = ranks, b = stride;
    while (b) { /* a becomes the greatest common divisor of stride and ranks */
        const size_t rest = a % b;
        a = b;
        b = rest;
    }
    if (a != 1) stride = 1;
    for (size_t i = 0; i < ranks; i++)
        add(any, all + (from + i * stride) % ranks * words, words);
    unsigned levels = 0;
    for (size_t step = 1; step < ranks; step *= 2, levels++)
        for (size_t r = 0; r + step < ranks; r += 2 * step) {
            add(all + r * words, all + (r + step) * words, words);
            plain[r] += plain[r + step];
        }
    const double tree = value_of(state, all), random = value_of(state, any);
    const int same = memcmp(&tree, &expected, 8) == 0 && memcmp(&random, &expected, 8) == 0;
    printf("%7zu ranks  %2u levels  %a  %-9s  plain: %a\n", ranks, levels, tree,
           same ? "the same" : "DIFFERENT", plain[0]);
    tally_state_destroy(state);
    free(all);
    free(any);
    free(plain);
    return same;
}

int main(int argc, char **argv) {
    static const size_t counts[] = {1, 2, 3, 7, 64, 1000, 4097, 32768, 100000};
    const size_t most = argc > 1 ? strtoull(argv[1], NULL, 0) : 100000;
    static const tally_problem sum = {.op = TALLY_SUM, .type = TALLY_F64};
    tally_value whole;
    int same = 1;
    for (size_t i = 0; i < N; i++) /* of both signs, and of forty binary orders of magnitude */
        x[i] = ((double)(next_random() >> 12) - 0x1p51) *
               (double)(UINT64_C(1) << next_random() % 40) * 0x1p-70;
    need(tally_reduce(NULL, &sum, x, NULL, N, &whole) == TALLY_OK, "the whole");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        if (counts[i] <= most) same &= simulate(counts[i], whole.as.f64);
    return !same;
}
