/*
 * loader.h - libraries that are looked for at run time: drivers and compilers of others.
 */
#ifndef TALLY_GPU_LOADER_H
#define TALLY_GPU_LOADER_H

/* Opens a shared library by its name or path; NULL if there is none. A statically linked program
 * has no dynamic loader, so it always gets NULL. */
void *loader_open(const char *file);

/* Returns why loader_open() returned NULL, as the end of a sentence: "was not found", or that the
 * program is static. */
const char *loader_absence(void);

#endif
