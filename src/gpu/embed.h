/*
 * embed.h - the kernels' texts, inside the library.
 *
 * The build turns files into tables of bytes (embed.cmake). One table holds the source texts under
 * src/kernels and what they include, so that a library without its source tree can hand them to a
 * compiler at run time; the CUDA host has another table, of compiled kernels.
 *
 * A run-time compiler gets one text. It is made from a short text, the root: the defines, the prelude
 * and one #include. Every #include is replaced by the file that it names. #line directives let the
 * compiler's messages name these files. Two builds are the same if their roots are.
 */
#ifndef TALLY_GPU_EMBED_H
#define TALLY_GPU_EMBED_H

#include <stddef.h>

struct embedded {
    const char *name;                 /* "kernels/dialect.h"; NULL ends a table */
    const unsigned char *bytes, *end; /* a 0 follows, so that texts are strings */
};

extern const struct embedded embedded_sources[]; /* named as under src/ */

/* Returns the entry of that name; NULL where the table has none. */
const struct embedded *embed_find(const struct embedded *table, const char *name);

/* Returns the root of a program, which the caller frees; NULL without memory. `file` is named as under
 * src/kernels; a define is "NAME" or "NAME=text"; `prelude` may be NULL. */
char *embed_root(const char *file, const char *prelude, const char *const *defines, size_t count);

/* Returns the root's text with every #include expanded, which the caller frees; NULL without
 * memory. An #include of a file outside the table stays: either its #if is not taken, or the
 * compiler complains. */
char *embed_expand(const char *root);

/* Writes a compiler's log to out as one line: from its first line with an error on, or all of it, its lines
 * joined by "; ", cut to `room` bytes. */
void embed_log_line(char *out, size_t room, const char *log);

#endif
