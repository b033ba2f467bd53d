/*
 * feed.c - moving an input's elements into a stream, in one of three ways.
 *
 * Mapped: a regular file is mapped window by window, and the device's threads read the page cache
 * itself. Measured on a file in the page cache, two threads: 27 GB/s mapped, 25 with the pages
 * populated beforehand, 17 when each thread reads its part into a buffer, 8 when one thread does.
 * Read: pipes and files that cannot be mapped pass through one buffer, so memory stays constant.
 * Text: numbers are read line by line (text.c).
 *
 * Elements in the other byte order are turned on the way, piece by piece.
 */
#include "source.h"

#include "message.h"
#include "progress.h"
#include "text.h"

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
    PIECE_BYTES = 512 << 10  /* turned at a time: stays in a core's cache */
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

static bool feed_native(struct source *s, tally_stream *stream, const void *x, size_t bytes) {
    size_t n = bytes / tally_type_size(s->type);
    if (tally_stream_feed(stream, x, n) != TALLY_OK)
        return failed("%s: %s", s->name, tally_error()), false;
    s->elements += n;
    progress_add(bytes);
    return true;
}

/* Feeds x[0..bytes), whole elements as they lie in the file. */
static bool feed(struct source *s, tally_stream *stream, const unsigned char *x, size_t bytes) {
    static unsigned char piece[PIECE_BYTES];
    if (!s->swapped) return feed_native(s, stream, x, bytes);
    for (size_t done = 0; done < bytes; done += PIECE_BYTES) {
        size_t size = bytes - done < PIECE_BYTES ? bytes - done : (size_t)PIECE_BYTES;
        turn(piece, x + done, size, tally_type_size(s->type));
        if (!feed_native(s, stream, piece, size)) return false;
    }
    return true;
}

/* ---- Mapped ---- */

#define LOST_TEXT " changed while it was read: it became shorter, or its disk failed; try again"

static const char *volatile mapped_name; /* the file that is mapped now, for the signal handler */

static void put(const char *text) {
    if (write(STDERR_FILENO, text, strlen(text)) < 0) _exit(STATUS_FAILED);
}

/* The kernel sends SIGBUS where a mapped page has gone: the file was cut shorter, or its disk failed.
 * There is no way back into the reduction, so this ends the process, with the line that says why. It
 * runs on whichever thread met the page. */
static void on_lost_page(int signal) {
    static atomic_flag told = ATOMIC_FLAG_INIT;
    (void)signal;
    while (atomic_flag_test_and_set(&told))
        pause(); /* another thread met it first */
    if (progress_visible) put(PROGRESS_ERASE);
    put("tally: ");
    put(mapped_name ? mapped_name : "the input");
    put(LOST_TEXT "\n");
    _exit(STATUS_FAILED);
}

/* A file that lost less than a page sends no signal: the lost bytes are read as zeros. */
static bool check_still_whole(const struct source *s) {
    struct stat status;
    if (fstat(s->file, &status) == 0 && (uint64_t)status.st_size >= s->data + s->bytes) return true;
    return failed("%s" LOST_TEXT, s->name), false;
}

enum mapped { MAPPED_ALL, MAPPED_FAILED, MAPPED_CANNOT };

static enum mapped feed_window(struct source *s, tally_stream *stream, uint64_t offset,
                               size_t size) {
    size_t before = (size_t)(offset % (uint64_t)sysconf(_SC_PAGESIZE));
    unsigned char *pages =
        mmap(NULL, before + size, PROT_READ, MAP_SHARED, s->file, (off_t)(offset - before));
    if (pages == MAP_FAILED) return MAPPED_CANNOT;
    madvise(pages, before + size, MADV_SEQUENTIAL);
    bool fed = feed(s, stream, pages + before, size);
    munmap(pages, before + size);
    return fed ? MAPPED_ALL : MAPPED_FAILED;
}

static enum mapped feed_mapped(struct source *s, tally_stream *stream) {
    mapped_name = s->name;
    signal(SIGBUS, on_lost_page);
    enum mapped result = MAPPED_ALL;
    for (uint64_t done = 0; done < s->bytes && result == MAPPED_ALL; done += WINDOW_BYTES) {
        uint64_t left = s->bytes - done;
        result = feed_window(s, stream, s->data + done,
                             left < WINDOW_BYTES ? (size_t)left : (size_t)WINDOW_BYTES);
        if (result == MAPPED_CANNOT && done > 0) {
            failed("%s cannot be mapped: %s", s->name, strerror(errno));
            result = MAPPED_FAILED;
        }
    }
    signal(SIGBUS, SIG_DFL);
    if (result == MAPPED_ALL && !check_still_whole(s)) return MAPPED_FAILED;
    return result;
}

/* ---- Read ---- */

/* What is wrong with the end of the data, if anything: `done` bytes came. */
static bool check_end(const struct source *s, uint64_t done) {
    size_t element = tally_type_size(s->type);
    if (s->bytes != SOURCE_UNKNOWN && done < s->bytes)
        return failed("%s is truncated: %" PRIu64 " bytes of data were promised, but only %" PRIu64
                      " came; write it again",
                      s->name, s->bytes, done),
               false;
    if (done % element)
        return failed("%s has %" PRIu64 " bytes, which is no multiple of the %zu bytes of a %s; "
                      "check --dtype",
                      s->name, done, element, tally_type_name(s->type)),
               false;
    return true;
}

/* After the array of a .npy file on a pipe nothing may follow. */
static bool check_nothing_follows(struct source *s) {
    char byte;
    size_t got;
    if (!source_read(s, &byte, 1, &got)) return false;
    if (got)
        return failed("%s has bytes after its array; a .npy file holds one array only", s->name),
               false;
    return true;
}

static bool feed_read(struct source *s, tally_stream *stream, unsigned char *buffer) {
    uint64_t done = 0;
    size_t got = BUFFER_BYTES;
    while (done < s->bytes && got == BUFFER_BYTES) {
        uint64_t left = s->bytes - done;
        size_t wanted = left < BUFFER_BYTES ? (size_t)left : (size_t)BUFFER_BYTES;
        if (!source_read(s, buffer, wanted, &got)) return false;
        if (!feed(s, stream, buffer, got - got % tally_type_size(s->type))) return false;
        done += got;
    }
    if (!check_end(s, done)) return false;
    return s->bytes == SOURCE_UNKNOWN || check_nothing_follows(s);
}

static bool feed_buffered(struct source *s, tally_stream *stream) {
    unsigned char *buffer = aligned_alloc(4096, BUFFER_BYTES);
    if (!buffer) return failed("no memory for a buffer of %d bytes", BUFFER_BYTES), false;
    fcntl(s->file, F_SETPIPE_SZ, 1 << 20); /* fewer waits; where that fails it stays as it is */
    bool fed = feed_read(s, stream, buffer);
    free(buffer);
    return fed;
}

bool source_feed(struct source *s, tally_stream *stream) {
    if (s->is_text) return text_feed(s, stream);
    if (s->can_map) {
        enum mapped result = feed_mapped(s, stream);
        if (result != MAPPED_CANNOT) return result == MAPPED_ALL;
    }
    return feed_buffered(s, stream);
}
