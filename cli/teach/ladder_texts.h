/*
 * ladder_texts.h - the figures that course texts have published about the ladder.
 */
#ifndef TALLY_CLI_LADDER_TEXTS_H
#define TALLY_CLI_LADDER_TEXTS_H

/* Measured by the texts' authors, on GPUs of theirs; 0 where a text gives no figure. */
struct ladder_published {
    const char *rung;
    double mflops; /* one text: the sum of 2^30 floats */
    double ms;     /* another: the kernel's time, for an array whose length it does not name */
};

/* Returns the figures for a rung; NULL if no text has one. */
const struct ladder_published *ladder_published(const char *rung);

extern const char ladder_published_notes[]; /* lines that tell where the figures are from */

#endif
