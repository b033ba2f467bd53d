/*
 * fuzz_npy.c - libFuzzer over the reader of .npy headers.
 *
 * Any bytes must be read or refused without touching memory outside them, and whatever is accepted
 * must be something the rest of the command can rely on. A header that is complete is also cut at
 * every shorter length, where the reader may ask for more but must not accept.
 */
#include "input/npy.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void require(bool holds) {
    if (!holds) abort();
}

static void check(const struct npy_header *h, enum npy_result result, size_t size) {
    switch (result) {
    case NPY_OK:
        require(h->needed <= size);
        require(h->element == (h->type ? tally_type_size(h->type) : 2));
        require(h->count <= INT64_MAX / (h->record ? h->record : h->element));
        require(!h->record || h->offset + h->element <= h->record);
        break;
    case NPY_MORE:
        require(h->needed > size);
        break;
    case NPY_BAD:
        require(h->problem[0] != 0);
        require(memchr(h->problem, 0, sizeof h->problem) != NULL);
        break;
    }
}

/* Reads a copy that ends where its allocation ends, so that AddressSanitizer sees one byte more. */
static enum npy_result read_copy(const unsigned char *data, size_t size, const char *field) {
    struct npy_header header;
    unsigned char *copy = malloc(size ? size : 1);
    require(copy != NULL);
    if (size) memcpy(copy, data, size);
    enum npy_result result = npy_read(copy, size, field, &header);
    check(&header, result, size);
    free(copy);
    return result;
}

static void read_field(const unsigned char *data, size_t size, const char *field) {
    if (read_copy(data, size, field) != NPY_OK) return;
    struct npy_header header;
    npy_read(data, size, field, &header);
    size_t first = header.needed > 256 ? header.needed - 256 : 0;
    for (size_t cut = first; cut < header.needed; cut++)
        require(read_copy(data, cut, field) == NPY_MORE);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    read_field(data, size, NULL);
    read_field(data, size, "x");
    return 0;
}
