/*
 * exact_sum.h - the exact sum of an array on one thread: extraction where it works, bins where not.
 *
 * A template with the parameters of extract.h; it makes the function NAME. The array is taken in chunks
 * that stay in the first-level cache while they are tried:
 *   1. extract with the open window, at the number of levels that has served so far;
 *   2. else once more with all levels;
 *   3. else with a window of the chunk's own;
 *   4. else into bins, and so for the next few chunks too, more of them each time in a row, so that wild
 *      data does not pay for trying.
 */

#define MAX_PATIENCE 256

void CONCAT(NAME, TALLY_ISA)(const void *array, size_t n, struct partial *into) {
    struct float_sum *s = &into->u.sum;
    const ELEMENT *x = array;
    struct WINDOW w;
    w.open = 0;
    struct BINS bins;
    bins.used = 0;
    unsigned binned = 0,
             patience = 4; /* chunks still to be binned untried, and how many next time */
    unsigned deep = 0;     /* chunks still to be done with all levels at once */
    s->count += n;
    if (n <= FEW_MAX && PART(few)(x, n, s)) return;

    /* The first window is guessed from three elements, with some room: seldom wrong, and soon mended. */
    INT guess = PART(magnitude)(x);
    if (PART(magnitude)(x + n / 2) > guess) guess = PART(magnitude)(x + n / 2);
    if (PART(magnitude)(x + n - 1) > guess) guess = PART(magnitude)(x + n - 1);
    PART(choose)(&w, guess, 5);

    /* A first short chunk brings the rest to the vector's alignment, where the elements allow it. */
    size_t m = (TALLY_VECTOR - (uintptr_t)x % TALLY_VECTOR) % TALLY_VECTOR / sizeof(ELEMENT);
    m = (m == 0 ? CHUNK : n <= CHUNK ? n : m + CHUNK - LANES(REAL));
    for (; n > 0; x += m, n -= m, m = CHUNK) {
        if (m > n) m = n;
        if (binned > 0) {
            binned--;
            PART(bin)(&bins, x, m, s);
            continue;
        }
        if (w.open) {
            if (deep == 0 && PART(extract)(&w, 2, x, m)) {
                patience = 4;
                continue;
            }
            if (PART(extract)(&w, MAX_LEVELS, x, m)) {
                deep = deep > 0 ? deep - 1 : 16;
                continue;
            }
            PART(close)(&w, s);
        }
        if (PART(choose)(&w, PART(largest)(x, m), 1) &&
            (PART(extract)(&w, 2, x, m) || PART(extract)(&w, MAX_LEVELS, x, m)))
            continue;
        w.open = 0;
        PART(bin)(&bins, x, m, s);
        binned = patience - 1;
        patience = patience < MAX_PATIENCE ? 2 * patience : MAX_PATIENCE;
    }
    if (w.open) PART(close)(&w, s);
    PART(empty)(&bins, s);
}
