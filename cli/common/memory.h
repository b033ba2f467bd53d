/*
 * memory.h - large buffers for measuring: asked for only where the machine has the memory, instead
 * of letting the system find out when the pages are touched.
 */
#ifndef TALLY_CLI_MEMORY_H
#define TALLY_CLI_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Bytes that this process can still use without pushing the machine out of memory. */
uint64_t memory_available(void);
/* Zeroed pages, large ones where the system has them; NULL where there are none. */
void *memory_get(size_t bytes);
void memory_release(void *memory, size_t bytes); /* NULL is allowed */

#endif
