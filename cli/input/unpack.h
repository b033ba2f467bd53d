/*
 * unpack.h - unpacks a compressed file, or a member of an archive, in order and in constant memory.
 */
#ifndef TALLY_CLI_UNPACK_H
#define TALLY_CLI_UNPACK_H

#include <stdbool.h>
#include <stddef.h>

struct unpacker;

/* Reads up to `size` packed bytes, fewer only at the end. False, with the line that says why, on an error. */
typedef bool unpack_source(void *context, unsigned char *bytes, size_t size, size_t *got);

/* Makes an unpacker, *out, if the data begin with bytes[0..size) and are gzip's or zstd's; else
 * *out is NULL. The unpacker gets all packed bytes, also these first ones, from read(context, ...).
 * name: for messages; it is borrowed. Returns false, with a message, if memory is short. */
bool unpack_open(const char *name, const unsigned char *bytes, size_t size, unpack_source *read,
                 void *context, struct unpacker **out);
/* Opens a member of a zip archive, such as a .npz: the member with this name, or with this name and
 * .npy; NULL: the only one. */
bool unpack_member(const char *archive, const char *member, struct unpacker **out);

bool unpack_read(struct unpacker *unpacker, unsigned char *bytes, size_t size, size_t *got);
void unpack_close(struct unpacker *unpacker); /* NULL is allowed */

#endif
