/*
 * loader.c - see loader.h.
 *
 * In a program that is linked statically dlopen() may succeed, with a second C library beside the program's; the first
 * call into it then crashes. Such a program is known by its headers, which name no interpreter.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr() */
#endif
#include "gpu/loader.h"

#include <dlfcn.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>

/* Notes whether the first object, the program, names an interpreter. Returns 1, which ends the
 * walk. */
static int find_interpreter(struct dl_phdr_info *program, size_t size, void *found) {
    (void)size;
    for (int i = 0; i < program->dlpi_phnum; i++)
        if (program->dlpi_phdr[i].p_type == PT_INTERP) *(bool *)found = true;
    return 1;
}

static bool is_static(void) {
    bool has_interpreter = false;
    dl_iterate_phdr(find_interpreter, &has_interpreter);
    return !has_interpreter;
}

void *loader_open(const char *file) {
    return is_static() ? NULL : dlopen(file, RTLD_NOW | RTLD_LOCAL);
}

const char *loader_absence(void) {
    return is_static() ? "cannot be loaded by a program that is linked statically"
                       : "was not found";
}
