/* images.c - see images.h. */
#include "cuda/images.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFINES_MAX 8 /* of an image */

static int by_text(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const void *image_find(const char *file, const char *const *defines, size_t count) {
    const char *sorted[DEFINES_MAX];
    char name[256];
    if (count > DEFINES_MAX) return NULL;
    for (size_t i = 0; i < count; i++)
        sorted[i] = defines[i];
    qsort(sorted, count, sizeof *sorted, by_text);

    size_t at = (size_t)snprintf(name, sizeof name, "%s", file);
    for (size_t i = 0; i < count && at < sizeof name; i++)
        at += (size_t)snprintf(name + at, sizeof name - at, " %s", sorted[i]);
    const struct embedded *image = at < sizeof name ? embed_find(embedded_images, name) : NULL;
    return image ? image->bytes : NULL;
}
