/*
 * own_read.h - reads a student's text: keeps the device's part of it, and notes its kernels (own_text.h).
 */
#ifndef TALLY_CLI_OWN_READ_H
#define TALLY_CLI_OWN_READ_H

#include "teach/own_text.h"

/* Reads the text of a file. The host's part of it (other functions, #include, #pragma) becomes blanks, so that every
 * line keeps its number. Kernels are looked for where #if and its like, with the macros of `defines`, let the compiler
 * look. Returns false on failure: `why` says what is wrong, in line *line. */
bool own_text_read(const char *bytes, size_t length, const char *const *defines,
                   size_t define_count, struct own_text *out, char *why, size_t room,
                   unsigned *line);
void own_text_forget(struct own_text *t);

#endif
