/*
 * exact_chunks.h - the exact sum of the terms of an array on one thread: extraction where it works, bins where not.
 *
 * A template with the parameters of extract.h; it makes the function NAME: a pair_kernel where PAIRED, else a
 * fold_kernel. The array is taken in chunks that stay in the first-level cache while they are tried:
 *   1. extract with the open window, with LEVELS levels, which the usual data need;
 *   2. else with MAX_LEVELS levels; the next chunks start with these, twice as many after each failure in a row;
 *   3. else with a window of the chunk's own;
 *   4. else into bins; the next chunks go there untried, twice as many after each failure in a row, so that wild
 *      data does not pay for trying.
 */

/* NEEDS_LEVELS is 0 if LEVELS levels take all terms. TERM_HIGHEST is the greatest exponent of a term, and all terms
 * are multiples of 2^TERM_LOWEST. choose() sets E to at most TERM_HIGHEST + 2 + 5, as its room is at most 5, and
 * LEVELS levels reach down to 2^(E - LEVELS MANTISSA). */
#ifndef TERM_HIGHEST
#define NEEDS_LEVELS 1
#else
#define NEEDS_LEVELS (TERM_HIGHEST + 7 - LEVELS * MANTISSA > TERM_LOWEST)
#endif
#define ONE_DEPTH "LEVELS take all exponents of these terms"

struct PROGRESS {
    STATE *sum;
    struct WINDOW window;
    unsigned deep;     /* chunks still to be done with all levels at once, */
    unsigned depth;    /* and how many the next time */
    unsigned binned;   /* chunks still to be binned untried, */
    unsigned patience; /* and how many the next time */
    struct BINS bins;
};

static __attribute__((noinline)) int INSTANCE(shallow)(struct WINDOW *w, const ELEMENT *x,
                                                       const ELEMENT *y, size_t n, size_t apart) {
    return INSTANCE(extract)(w, LEVELS, x, y, n, apart);
}

static __attribute__((noinline)) int INSTANCE(deep)(struct WINDOW *w, const ELEMENT *x,
                                                    const ELEMENT *y, size_t n, size_t apart) {
    return INSTANCE(extract)(w, MAX_LEVELS, x, y, n, apart);
}

/* Returns the bits of the largest magnitude of a chunk's terms, which lie as extract() takes
 * them. */
static INT INSTANCE(largest_of_all)(const ELEMENT *x, const ELEMENT *y, size_t n, size_t apart) {
    if (!apart) return INSTANCE(largest)(x, y, n);
    INT most = 0;
    for (size_t j = 0; j < STREAMS; j++) {
        INT here = INSTANCE(largest)(x + j * apart, y + j * apart, n / STREAMS);
        most = here > most ? here : most;
    }
    return most;
}

static void INSTANCE(bin_all)(struct PROGRESS *p, const ELEMENT *x, const ELEMENT *y, size_t n,
                              size_t apart) {
    if (!apart)
        INSTANCE(bin)(&p->bins, x, y, n, p->sum);
    else
        for (size_t j = 0; j < STREAMS; j++)
            INSTANCE(bin)(&p->bins, x + j * apart, y + j * apart, n / STREAMS, p->sum);
}

/* Adds a chunk's terms, which lie as extract() takes them, in the first way that works. */
static void INSTANCE(chunk)(struct PROGRESS *p, const ELEMENT *x, const ELEMENT *y, size_t n,
                            size_t apart) {
    struct WINDOW *w = &p->window;
    if (p->binned > 0) {
        KERNEL_PATH("bins, untried");
        p->binned--;
        INSTANCE(bin_all)(p, x, y, n, apart);
        return;
    }
    if (w->open) {
        if (p->deep == 0 && INSTANCE(shallow)(w, x, y, n, apart)) {
            KERNEL_PATH("the open window, few levels");
            p->depth = 1;
            return;
        }
        if (INSTANCE(deep)(w, x, y, n, apart)) {
            if (p->deep > 0) {
                KERNEL_PATH_IF(NEEDS_LEVELS, "the open window, all levels at once", ONE_DEPTH);
                p->deep--;
            } else {
                KERNEL_PATH_IF(NEEDS_LEVELS, "the open window, all levels", ONE_DEPTH);
                p->deep = p->depth - 1;
                p->depth = p->depth < MAX_DEPTH ? 2 * p->depth : MAX_DEPTH;
            }
            return;
        }
        INSTANCE(close)(w, p->sum);
    }
    if (INSTANCE(choose)(w, INSTANCE(largest_of_all)(x, y, n, apart), 1) &&
        (INSTANCE(shallow)(w, x, y, n, apart) || INSTANCE(deep)(w, x, y, n, apart))) {
        KERNEL_PATH("a window of its own");
        p->patience = 4;
        return;
    }
    KERNEL_PATH("bins");
    w->open = 0;
    INSTANCE(bin_all)(p, x, y, n, apart);
    p->binned = p->patience - 1;
    p->patience = p->patience < MAX_PATIENCE ? 2 * p->patience : MAX_PATIENCE;
}

#if PAIRED
void ISA_NAME(NAME)(const void *first, const void *second, size_t n, void *state) {
    const ELEMENT *x = first, *y = second;
#else
void ISA_NAME(NAME)(const void *array, size_t n, void *state) {
    const ELEMENT *x = array, *y = x;
#endif
    struct PROGRESS progress;
    STATE *s = progress.sum = state;
    if (n == 0) return;
#ifdef FEW_MAX
    if (n <= FEW_MAX && INSTANCE(few)(x, y, n, s)) {
        KERNEL_PATH("a few terms as one integer");
        return;
    }
#endif
    progress.window.open = 0;
    progress.deep = progress.binned = 0;
    progress.depth = 1;
    progress.patience = 4;
    progress.bins.used = 0;

    /* The first window is guessed from three terms, with some room: seldom wrong, and soon mended. */
    INT guess = INSTANCE(magnitude)(x, y);
    for (int i = 0; i < 2; i++) {
        const size_t at = i ? n - 1 : n / 2;
        const INT other = INSTANCE(magnitude)(x + at, y + at);
        guess = other > guess ? other : guess;
    }
    INSTANCE(choose)(&progress.window, guess, 5);

    if (n > CHUNK) {
        KERNEL_PATH("several streams");
        /* A short chunk brings the rest to the vector's alignment, where the elements allow it. */
        size_t head = (TALLY_VECTOR - (uintptr_t)x % TALLY_VECTOR) % TALLY_VECTOR / sizeof(ELEMENT);
        if (head > 0) INSTANCE(chunk)(&progress, x, y, head, 0);
        x += head;
        y += head;
        n -= head;
        /* Memory answers faster when asked for several places in turn than for one (see read.c). */
        const size_t stream = CHUNK / STREAMS, rows = n / CHUNK, apart = rows * stream;
        for (size_t i = 0; i < rows; i++)
            INSTANCE(chunk)(&progress, x + i * stream, y + i * stream, CHUNK, apart);
        x += rows * CHUNK;
        y += rows * CHUNK;
        n -= rows * CHUNK;
    }
    if (n > 0) INSTANCE(chunk)(&progress, x, y, n, 0);
    if (progress.window.open) INSTANCE(close)(&progress.window, s);
    INSTANCE(empty)(&progress.bins, s);
}

#undef NEEDS_LEVELS
#undef ONE_DEPTH
