/*
 * unpack.h - the bytes that a compressed file stands for, in order and in constant memory.
 */
#ifndef TALLY_CLI_UNPACK_H
#define TALLY_CLI_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

struct unpacker;

/* Reads up to `size` packed bytes, fewer only at the end. False, with the line that says why, on an error. */
typedef bool unpack_source(void *context, unsigned char *bytes, size_t size, size_t *got);

/* An unpacker for bytes that open with these, if they are gzip's or zstd's: *out; else it is NULL. The bytes
 * are those that read(context, ...) gives. False, with a line, where there is no memory. name: for
 * messages; it is borrowed. */
bool unpack_open(const char *name, const unsigned char *bytes, size_t size, unpack_source *read,
                 void *context, struct unpacker **out);
/* A member of a zip archive, such as a .npz: of the name, or of that name and .npy; NULL: the only one. */
bool unpack_member(const char *archive, const char *member, struct unpacker **out);

bool unpack_read(struct unpacker *unpacker, unsigned char *bytes, size_t size, size_t *got);
void unpack_close(struct unpacker *unpacker); /* NULL is allowed */

#endif
