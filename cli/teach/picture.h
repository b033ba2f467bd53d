/*
 * picture.h - the contents of a picture of a kernel's steps: rows of elements, and which thread combines which.
 *
 * A strip is a row of elements that lie side by side in one array, or of the lanes' registers. A link goes
 * from a thread to the elements that it combines. picture_text.c and picture_svg.c draw them; picture_fold.c
 * makes rows of long strips.
 */
#ifndef TALLY_CLI_PICTURE_H
#define TALLY_CLI_PICTURE_H

#include "teach/explain.h"

#include <stdio.h>

enum { PICTURE_VALUE = 24 }; /* bytes of a value's text */

struct picture_cell {
    char before[PICTURE_VALUE]; /* as the step finds it; "" where no step has seen it yet */
    char after[PICTURE_VALUE];  /* as the step leaves it; "" where it does not write it */
    bool read;
    unsigned thread; /* that wrote it last */
};

struct picture_link {
    unsigned thread;
    uint64_t *from; /* the elements, ascending */
    size_t count;
    bool returns; /* the result is written to this strip ... */
    uint64_t to;  /* ... here */
    bool crosses; /* it leaves its row of a folded strip, and is drawn in words */
    unsigned row; /* links of one row do not overlap; those that cross take none */
};

struct picture_strip {
    char name[24];  /* of the array; "registers" */
    bool registers; /* elements are lanes, `after` is what they get */
    uint64_t first; /* the index of the first cell */
    size_t count;   /* of cells */
    struct picture_cell *cells;
    struct picture_link *links;
    size_t link_count;
    unsigned rows; /* that the links take */
};

struct picture_step {
    const tally_ladder_step *step;
    struct picture_strip *strips; /* in the order in which they are touched */
    size_t strip_count;
    size_t left_out;  /* rows of folded strips that the step does not touch */
    bool applies;     /* some thread applies the operator */
    unsigned threads; /* threads that apply it */
    char file[40];    /* the step's line in the kernel's text: see find_line() */
    unsigned line;
    char source[160]; /* its text, cut to fit */
    char memory[640]; /* "read 2 lines of x (0, 1), fewest 2; ..."; "" where there is none */
};

struct picture {
    struct picture_step *steps;
    size_t count;
    bool lost; /* no memory */
};

/* Makes a picture of steps that one block does, one after the other. picture_free() it, also after a failure,
 * whose line is written. */
bool picture_make(const struct explanation *e, const struct seen_step *steps, size_t count,
                  struct picture *out);
void picture_free(struct picture *picture);

/* Makes rows of 32 cells of longer strips. False without memory. */
bool picture_fold(struct picture *picture);
/* Puts links that overlap into different rows. */
void picture_place_links(struct picture *picture, struct picture_strip *strip);
void picture_free_strip(struct picture_strip *strip);

/* Returns how many cells the longest strip has. */
size_t picture_widest(const struct picture *picture);

/* Prints the steps' pictures as text, for the terminal's width and its characters: `tally explain RUNG --draw`. */
int picture_print(const struct explanation *e);
/* Writes the steps' pictures to a file as SVG: `tally explain RUNG --svg FILE`. */
int picture_write_svg(const struct explanation *e, const char *file);

#endif
