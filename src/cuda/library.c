/* library.c - see library.h. */
#include "cuda/library.h"

#include <dlfcn.h>
#include <string.h>

const char *library_fill(void *library, const struct entry *entries, size_t count, void *calls) {
    for (size_t i = 0; i < count; i++) {
        void *address = dlsym(library, entries[i].symbol);
        if (!address) return entries[i].symbol;
        memcpy((char *)calls + entries[i].offset, &address, sizeof address);
    }
    return NULL;
}
