/*
 * feed.c - an input's elements, window by window, in one of three ways.
 *
 * Mapped: a regular file is mapped window by window, and the device's threads read the page cache
 * itself. Measured on a file in the page cache, two threads: 27 GB/s mapped, 25 with the pages
 * populated beforehand, 17 when each thread reads its part into a buffer, 8 when one thread does.
 * Read: pipes and files that cannot be mapped pass through one buffer, so memory stays constant.
 * Text: numbers are read line by line (text.c).
 *
 * Elements in the other byte order are byte-swapped chunk by chunk.
 */
#include "input/feed.h"

#include "common/message.h"
#include "common/progress.h"
#include "common/scratch.h"
#include "input/text.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    WINDOW_BYTES = 64 << 20, /* mapped at a time: waking the threads costs nothing beside it */
    BUFFER_BYTES = 4 << 20,  /* read at a time */
    CHUNK_BYTES = 512 << 10  /* byte-swapped or gathered at a time: stays in a core's cache */
};

/* Copies elements, each with its bytes in the other order. They need no alignment. */
static void turn(unsigned char *to, const unsigned char *from, size_t bytes, size_t element) {
    uint16_t x2;
    uint32_t x4;
    uint64_t x8;
    for (size_t i = 0; element == 2 && i < bytes; i += 2) {
        memcpy(&x2, from + i, 2);
        x2 = __builtin_bswap16(x2);
        memcpy(to + i, &x2, 2);
    }
    for (size_t i = 0; element == 4 && i < bytes; i += 4) {
        memcpy(&x4, from + i, 4);
        x4 = __builtin_bswap32(x4);
        memcpy(to + i, &x4, 4);
    }
    for (size_t i = 0; element == 8 && i < bytes; i += 8) {
        memcpy(&x8, from + i, 8);
        x8 = __builtin_bswap64(x8);
        memcpy(to + i, &x8, 8);
    }
}

/* ---- Mapped ---- */

#define LOST_TEXT " changed while it was read: it became shorter, or its disk failed; try again"

/* The inputs that are mapped now, for the signal handler: two arrays of a dot product, a mask, ids
 * or offsets. */
enum { MAPPED_INPUTS = 4 };
static struct {
    const char *volatile name;
    unsigned char *volatile pages;
    volatile size_t bytes;
} mapped[MAPPED_INPUTS];

static void put(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(STATUS_FAILED);
}

static const char *mapped_at(const unsigned char *address) {
    for (int i = 0; i < MAPPED_INPUTS; i++)
        if (mapped[i].name && address >= mapped[i].pages &&
            address < mapped[i].pages + mapped[i].bytes)
            return mapped[i].name;
    return NULL;
}

/* The kernel sends SIGBUS where a mapped page has gone: the file was cut shorter, or its disk failed.
 * There is no way back into the reduction, so this ends the process, with the line that says why. It
 * runs on whichever thread met the page. */
static void on_lost_page(int number, siginfo_t *info, void *context) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    const char *name = mapped_at(info->si_addr);
    (void)context;
    if (!name) { /* not ours */
        signal(number, SIG_DFL);
        return;
    }
    while (atomic_flag_test_and_set(&told))
        pause(); /* another thread met it first */
    if (progress_visible) put(PROGRESS_ERASE);
    put("tally: ");
    put(name);
    put(LOST_TEXT "\n");
    scratch_remove();
    _exit(STATUS_FAILED);
}

static void watch(const struct source *s) {
    static const struct sigaction action = {.sa_sigaction = on_lost_page, .sa_flags = SA_SIGINFO};
    for (int i = 0; i < MAPPED_INPUTS; i++)
        if (!mapped[i].name) {
            mapped[i].pages = s->pages;
            mapped[i].bytes = s->pages_bytes;
            mapped[i].name = s->name;
            sigaction(SIGBUS, &action, NULL);
            return;
        }
}

static void unmap(struct source *s) {
    if (!s->pages) return;
    for (int i = 0; i < MAPPED_INPUTS; i++)
        if (mapped[i].name && mapped[i].pages == s->pages) mapped[i].name = NULL;
    munmap(s->pages, s->pages_bytes);
    s->pages = NULL;
}

/* A file that lost less than a page sends no signal: the lost bytes are read as zeros. */
static bool check_still_whole(const struct source *s) {
    struct stat status;
    if (fstat(s->file, &status) == 0 && (uint64_t)status.st_size >= s->data + s->bytes) return true;
    return failed("%s" LOST_TEXT, s->name), false;
}

/* Maps the next window. Where even the first cannot be mapped the file is to be read instead: can_map
 * is then no longer set. */
static bool map_window(struct source *s) {
    uint64_t offset = s->data + s->done, left = s->bytes - s->done;
    const size_t window = WINDOW_BYTES - WINDOW_BYTES % source_step(s);
    size_t size = left < window ? (size_t)left : window;
    size_t before = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
    unmap(s);
    if (!left) return s->ended = true, check_still_whole(s);
    void *pages =
        mmap(NULL, before + size, PROT_READ, MAP_SHARED, s->file, (off_t)(offset - before));
    if (pages == MAP_FAILED) {
        s->can_map = false;
        return s->done == 0 || (failed("%s cannot be mapped: %s", s->name, strerror(errno)), false);
    }
    madvise(pages, before + size, MADV_SEQUENTIAL);
    s->pages = pages;
    s->pages_bytes = before + size;
    watch(s);
    s->window = s->pages + before;
    s->left = size;
    s->done += size;
    return true;
}

const void *source_map(struct source *s) {
    const size_t before = (size_t)(s->data % (uint64_t)sysconf(_SC_PAGESIZE));
    if (!s->can_map || s->is_text || s->swapped || s->bytes == SOURCE_UNKNOWN || !s->bytes ||
        s->record || s->bytes > SIZE_MAX / 2 || s->bytes % tally_type_size(s->type))
        return NULL;
    void *pages = mmap(NULL, before + (size_t)s->bytes, PROT_READ, MAP_SHARED, s->file,
                       (off_t)(s->data - before));
    if (pages == MAP_FAILED) return NULL;
    s->pages = pages;
    s->pages_bytes = before + (size_t)s->bytes;
    watch(s);
    s->done = s->bytes;
    s->elements = source_count(s);
    s->ended = true;
    return s->pages + before;
}

bool source_is_whole(const struct source *s) {
    return !s->pages || check_still_whole(s);
}

/* ---- Read ---- */

/* Returns false, with a message, if the data end too early or within an element. */
static bool check_end(const struct source *s) {
    size_t element = source_step(s);
    if (s->bytes != SOURCE_UNKNOWN && s->done < s->bytes)
        return failed("%s is truncated: %" PRIu64 " bytes of data were promised, but only %" PRIu64
                      " came; write it again",
                      s->name, s->bytes, s->done),
               false;
    if (s->done % element)
        return failed("%s has %" PRIu64 " bytes, which is no multiple of the %zu bytes of a %s; "
                      "check --dtype",
                      s->name, s->done, element, tally_type_name(s->type)),
               false;
    return true;
}

/* After the array of a .npy file on a pipe nothing may follow. */
static bool check_nothing_follows(struct source *s) {
    char byte;
    size_t got;
    if (s->bytes == SOURCE_UNKNOWN) return true;
    if (!source_read(s, &byte, 1, &got)) return false;
    if (got)
        return failed("%s has bytes after its array; a .npy file holds one array only", s->name),
               false;
    return true;
}

static bool get_buffer(struct source *s, unsigned char **buffer, size_t bytes) {
    if (!*buffer) *buffer = aligned_alloc(4096, bytes);
    return *buffer || (failed("%s: no memory for a buffer of %zu bytes", s->name, bytes), false);
}

static bool read_window(struct source *s) {
    uint64_t left = s->bytes - s->done;
    const size_t step = source_step(s), most = BUFFER_BYTES - BUFFER_BYTES % step;
    size_t got, wanted = left < most ? (size_t)left : most;
    if (!get_buffer(s, &s->buffer, BUFFER_BYTES)) return false;
    if (!s->done) fcntl(s->file, F_SETPIPE_SZ, 1 << 20); /* for fewer waits; may fail */
    if (!source_read(s, s->buffer, wanted, &got)) return false;
    s->done += got;
    s->window = s->buffer;
    s->left = got - got % step;
    if (got == most) return true; /* there may be more */
    s->ended = true;
    return check_end(s) && check_nothing_follows(s);
}

/* ---- Handing on ---- */

/* Byte-swaps the first elements of the window into s->chunk. */
static bool turn_chunk(struct source *s, const void **x, size_t *bytes) {
    if (!get_buffer(s, &s->chunk, CHUNK_BYTES)) return false;
    *bytes = s->left < CHUNK_BYTES ? s->left : (size_t)CHUNK_BYTES;
    turn(s->chunk, s->window, *bytes, tally_type_size(s->type));
    *x = s->chunk;
    return true;
}

/* Copies the field out of the window's first records into s->chunk. */
static bool gather_chunk(struct source *s, const void **x, size_t *n) {
    const size_t element = tally_type_size(s->type);
    if (!get_buffer(s, &s->chunk, CHUNK_BYTES)) return false;
    *n = s->left / s->record;
    if (*n > CHUNK_BYTES / element) *n = CHUNK_BYTES / element;
    for (size_t i = 0; i < *n; i++)
        memcpy(s->chunk + i * element, s->window + i * s->record + s->offset, element);
    if (s->swapped) turn(s->chunk, s->chunk, *n * element, element);
    s->window += *n * s->record;
    s->left -= *n * s->record;
    *x = s->chunk;
    progress_add(*n * s->record);
    return true;
}

static bool fill_window(struct source *s) {
    while (!s->left && !s->ended) {
        bool by_map = s->can_map;
        if (!(by_map ? map_window(s) : read_window(s))) return false;
    }
    return true;
}

static bool array_next(struct source *s, const void **x, size_t *n) {
    size_t bytes;
    if (!fill_window(s)) return false;
    if (s->record && s->left) return gather_chunk(s, x, n);
    *x = s->window;
    bytes = s->left;
    if (bytes) { /* an empty window may be NULL */
        if (s->swapped && !turn_chunk(s, x, &bytes)) return false;
        s->window += bytes;
        s->left -= bytes;
    }
    *n = bytes / tally_type_size(s->type);
    progress_add(bytes);
    return true;
}

bool source_next(struct source *s, const void **x, size_t *n) {
    if (!(s->is_text ? text_next(s, x, n) : array_next(s, x, n))) return false;
    s->elements += *n;
    return true;
}

void source_close(struct source *s) {
    unmap(s);
    text_close(s);
    free(s->buffer);
    free(s->chunk);
    s->buffer = s->chunk = NULL;
    source_drop(s);
}
