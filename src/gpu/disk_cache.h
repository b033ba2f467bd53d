/*
 * disk_cache.h - compiled programs on disk, so that the next process does not compile them again.
 *
 * A program is one file of a folder: $TALLY_CACHE_DIR, else $XDG_CACHE_HOME/tally, else $HOME/.cache/tally.
 * TALLY_CACHE=0 turns the cache off. It does not keep the programs of a driver that keeps them on disk itself, unless
 * TALLY_CACHE=1. A program is known by its key, a text of all that the compiler's output depends on. The file holds
 * the whole key, and a hash by which damage is found.
 *
 * Any number of processes and threads use a folder at once, without locks: a file appears whole, by a rename. The
 * folder and its files are trusted only if they are the user's own and nobody else may write there. After any error
 * with them, a full disk included, the cache acts as if it were empty: no call fails, and no message is written.
 */
#ifndef TALLY_GPU_DISK_CACHE_H
#define TALLY_GPU_DISK_CACHE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DISK_CACHE_MOST                                                                            \
    ((uint64_t)512 << 20) /* bytes of all programs; those used longest ago go first */

/* Returns the key of a program, which the caller frees; NULL without memory. `compiler` names the compiler, its version,
 * options and target; `root` and `text` are the program's (embed.h). */
char *disk_cache_key(const char *compiler, const char *root, const char *text);

/* Returns the program of a key, which the caller frees, with a 0 behind it; NULL if there is none. */
char *disk_cache_load(const char *key, size_t *size);

/* Keeps a program, in place of any other of the same key, and drops the programs used longest ago until all of them
 * have `most` bytes at most. */
void disk_cache_store(const char *key, const void *bytes, size_t size, uint64_t most);

/* Returns whether the cache is to keep the programs of a driver. `driver_keeps` says that the driver keeps them on disk itself. */
bool disk_cache_serves(bool driver_keeps);

/* Returns the folder's path, which the caller frees; NULL if the cache is off, or there is no such folder to name. */
char *disk_cache_path(void);

#endif
