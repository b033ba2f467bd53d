/* memory.c - see memory.h. */
#include "gpu/memory.h"

#include "base/status.h"

#include <stdlib.h>

tally_status gpu_memory_keep(struct gpu_memory_list *list, const char *device,
                             struct gpu_memory made, struct gpu_memory **out) {
    struct gpu_memory *memory = malloc(sizeof *memory);
    if (!memory) return fail(TALLY_ENOMEM, "%s: no memory on the host", device);
    *memory = made;
    LIST_INSERT_HEAD(list, memory, link);
    *out = memory;
    return TALLY_OK;
}

void gpu_memory_drop(struct gpu_memory *memory) {
    LIST_REMOVE(memory, link);
    free(memory);
}

tally_status gpu_memory_check(const char *device, const struct gpu_memory *memory, size_t offset,
                              size_t bytes) {
    if (offset <= memory->bytes && bytes <= memory->bytes - offset) return TALLY_OK;
    return fail(TALLY_EINVAL, "%s: %zu bytes at %zu of a buffer of %zu", device, bytes, offset,
                memory->bytes);
}
