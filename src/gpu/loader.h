/*
 * loader.h - libraries that are looked for at run time: drivers and compilers of others.
 */
#ifndef TALLY_GPU_LOADER_H
#define TALLY_GPU_LOADER_H

/* Opens a shared library by its name or path; NULL where there is none, and in a program that is linked
 * statically: it has no dynamic loader of its own, and what it opened could not be called. */
void *loader_open(const char *file);

/* Why loader_open() returned NULL, as the end of a sentence: "was not found", or that the program is static. */
const char *loader_absence(void);

#endif
