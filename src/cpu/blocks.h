/*
 * cpu/blocks.h - blocks of results, whose states are planes of columns (columns.h): functions that allocate these,
 * add to them and lower them. Their callers decide which elements become which columns.
 */
#ifndef TALLY_CPU_BLOCKS_H
#define TALLY_CPU_BLOCKS_H

#include "base/scratch.h"
#include "base/stop.h"
#include "cpu/columns.h"
#include "cpu/cpu.h"
#include "cpu/tuning.h"

#define FORM_BIT(form) (1u << (form))

enum way { DIRECT, FOLDED, TRANSPOSED, COPIED };

struct blocks {
    const struct shaped *s;
    const struct problem *p;
    const struct column_kernels *k;
    enum way way;
    size_t element;
    unsigned forms;           /* FORM_BIT()s */
    unsigned plane_of[FORMS]; /* where a form's planes begin in a block */
    unsigned planes;
    struct extent inner_kept, inner; /* the innermost kept and reduced dimension; length 1: none */
    unsigned outer_kept, outer;      /* how many dimensions are outside of these */
    size_t width;                    /* columns of a block */
    size_t fold;   /* FOLDED: how many rows of `unit` columns lie side by side: a power of two */
    size_t unit;   /* results that lie side by side and are folded together */
    size_t blocks; /* blocks along the innermost kept dimension */
    size_t total;  /* blocks in all */
    size_t parts, each;  /* parts of the outermost reduced dimension; its elements in a part */
    size_t group;        /* blocks of a task, where each has one part */
    size_t tile;         /* elements of a tile */
    few_kernel *few;     /* for results of a few elements; NULL: there is none, or they have more */
    int counts;          /* values depend on the numbers of elements, value[3] of a worker */
    int runs;            /* rows are summed by running totals where these are exact */
    uint64_t *kept;      /* the planes of all parts, where there are several */
    unsigned char *todo; /* marks of results that are left to cpu_rows(); NULL: none */
    struct block_worker *workers;
    int failed; /* there was no memory to mark a result */
    /* The fallback, by exact sums, for blocks with uncertain results; NULL: this is the fallback. */
    struct blocks *exact;
    int again; /* some result of several parts is uncertain */
    int *halt; /* the flag of stop_shared() */
    /* Vectors: 1 if an index counts along the whole axis, not from its part's start; the indices of the elements in
     * the order in which they are taken, or NULL. */
    int absolute;
    const uint64_t *order;
};

/* A worker's arrays and progress. */
struct block_worker {
    struct absence absence;
    size_t since;                /* elements since the last test for a stop */
    struct scratch scratch;      /* has the arrays below */
    uint64_t *planes;            /* of a block */
    uint64_t *fold, *transposed; /* planes of folded columns, and these transposed */
    struct room tile, tile2;     /* elements of x and of y as rows of columns */
    double *value[4];            /* s, e and b (columns.h); numbers of elements */
    uint64_t bits[ACROSS_WIDTH + COLUMN_STEP];
    unsigned char ok[ACROSS_WIDTH + COLUMN_STEP];
    uint64_t *running; /* room for running totals of segments and rows */
    unsigned failed,
        wait;    /* consecutive failures of the fast path; blocks to skip it for (see WAIT_MOST) */
    int certain; /* all results of the block are; else ok[] says which */
    const unsigned char *order; /* sorted segments: the segment of each column; else NULL */
};

/* A block: where its elements and its results begin, and which results they are. */
struct block {
    const char *x, *y;
    ptrdiff_t out;
    size_t number, row; /* of the first result: among the caller's, and in the order of rows.h */
    size_t first,
        width; /* the block's results, [first, first + width) of the innermost dimension */
    /* Vectors: `unit` columns are of one part, and the next ones of the next part. unit_row, unit_number and unit_out
     * are the distances between the first results of two such parts. 0: no units. start[]: where each part's elements
     * begin. */
    size_t unit, unit_row, unit_number;
    ptrdiff_t unit_out;
    const size_t *start;
};

/* for_forms(f, a) statement: a loop over the forms of a problem. */
#define for_forms(f, a)                                                                            \
    for (unsigned f##_left = (a)->forms, f;                                                        \
         f##_left && (f = (unsigned)__builtin_ctz(f##_left), 1); f##_left &= f##_left - 1)

static inline const struct column_form *form_of(const struct blocks *a, unsigned f) {
    return &a->k->form[f][a->p->type];
}

/* Returns the forms that a value needs, as FORM_BIT()s; 0 if there are none, and the value is done
 * row by row. */
unsigned block_forms_of(const struct problem *p, tally_op op, tally_type out);
#if defined(TALLY_DEBUG)
/* Returns why columns cannot compute this operator for this type, or NULL. *p becomes the plan of the problem. */
const char *never_in_forms(unsigned op, unsigned type, struct problem *p);
#endif
/* Sets the forms and their planes. Returns 0 if a value has no form, so that the problem is done row by row. */
int block_plan_forms(struct blocks *a);
/* Returns whether all values are variances, of a type for which approximate sums suffice. */
int blocks_want_moments(const struct blocks *a);

/* Lanes of a plane of folded columns: COLUMN_STEP results of COLUMN_STEP columns each, or one unit; and a step more,
 * as kernels write whole steps. */
#define FOLD_STRIDE (COLUMN_STEP * COLUMN_STEP + COLUMN_STEP)
_Static_assert(FOLD_STRIDE >= 2 * FOLD_COLS + COLUMN_STEP,
               "a unit has fewer than FOLD_COLS results");

/* Makes columns [at, at + width) the states of no elements; indices start at `first`. */
void block_clear(const struct blocks *a, uint64_t *planes, size_t stride, size_t at, size_t width,
                 uint64_t first);
/* Adds rows to columns [at, at + width). */
void block_add_rows(const struct blocks *a, uint64_t *planes, size_t stride, size_t at,
                    const struct column_rows *in, size_t width);
/* Copies columns [at, at + width) of one block to columns from `to` on of another. */
void block_copy_columns(const struct blocks *a, uint64_t *into, size_t into_stride, size_t to,
                        const uint64_t *from, size_t stride, size_t at, size_t width);
/* Merges columns [at, at + width) of one block into the same ones of another; the elements of `into` come first. */
void block_merge(const struct blocks *a, uint64_t *into, const uint64_t *from, size_t stride,
                 size_t at, size_t width);
/* Adds n elements of each of `unit` results, which lie side by side, to the folded columns from `at` on. */
void block_add_folded(const struct blocks *a, uint64_t *planes, size_t at, const char *x,
                      const char *y, size_t n, uint64_t first, int starts);
/* Merges the folded columns into the first `unit`. */
void block_merge_folded(const struct blocks *a, uint64_t *planes);

/* Returns whether results are folded one by one to COLUMN_STEP columns each, and COLUMN_STEP results
 * are then merged at once. */
static inline int block_has_batches(const struct blocks *a) {
    return a->unit == 1 && a->fold == COLUMN_STEP;
}
/* Merges the columns of each of `count` results in h->fold into one column of h->transposed. There
 * the k-th columns of all results lie side by side, so that one merge takes all results. */
void block_merge_batch(const struct blocks *a, struct block_worker *h, size_t count);

/* Returns the number of column i's result in the block. */
static inline size_t block_result_of(const struct block_worker *h, size_t i) {
    return h->order ? h->order[i] : i;
}
/* Writes the results of a block, marks the uncertain ones, and returns 1. But if some are uncertain and there is a
 * fallback, a->exact, returns 0: the fallback then has to do the block again. */
int block_lower(struct blocks *a, struct block_worker *h, const uint64_t *planes, size_t stride,
                const struct block *at);
/* Writes the results of a part without elements. */
void block_lower_nothing(const struct blocks *a, struct block_worker *h, const struct block *at);
/* Marks a result that is left to cpu_rows(). */
void block_mark(struct blocks *a, size_t row);
/* Makes non-temporal stores visible to other threads before the task ends: an ordinary store tells
 * them of its end, and may overtake these. */
void block_finish_writing(void);

static inline size_t block_words(const struct blocks *a) {
    return (a->width + COLUMN_STEP) * a->planes;
}

/* Returns the bytes of a tile of `rows` rows, `pitch` elements apart. */
static inline size_t block_tile_bytes(const struct blocks *a, size_t rows, size_t pitch) {
    return rows * pitch * a->element;
}

static inline int blocks_are_halted(const struct blocks *a) {
    return __atomic_load_n(a->halt, __ATOMIC_RELAXED);
}

/* Returns whether a task has to stop before the next `elements` elements. */
static inline int block_halts(const struct blocks *a, struct block_worker *h, size_t elements) {
    h->since += elements;
    if (h->since < ACROSS_STOP_ELEMENTS) return blocks_are_halted(a);
    h->since = 0;
    return stop_shared(a->halt);
}

/* Returns whether the fast path should be tried on the next block (see WAIT_MOST). */
static inline int block_may_try(struct block_worker *h) {
    if (h->wait == 0) return 1;
    h->wait--;
    return 0;
}

static inline void block_note_try(struct block_worker *h, int succeeded) {
    h->wait = succeeded ? 0 : h->failed;
    h->failed = succeeded ? 0 : h->failed < WAIT_MOST ? h->failed + 1 : WAIT_MOST;
}

/* Allocates the arrays of `threads` workers. Returns 0 if there is no memory; blocks_finish() frees them, and notes in
 * *absence and *status what the workers have found. */
int blocks_make_workers(struct blocks *a, unsigned threads);
void blocks_finish(struct blocks *a, unsigned threads, struct absence *absence,
                   tally_status *status);
/* Returns how many of `total` pieces of `bytes` bytes make a task, so that each thread gets several
 * tasks if there are enough pieces. */
size_t blocks_of_task(size_t total, size_t bytes, unsigned threads);

#endif
