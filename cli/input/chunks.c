/*
 * chunks.c - see chunks.h.
 *
 * The chunks wait in a ring until a thread is free to work on one; the caller's thread, which reads and hands on, is one
 * of them while there is nothing else to do. Chunks are handed on in their order: so what becomes of them does not
 * depend on the threads. A text of one chunk is read without any thread but the caller's.
 */
#include "input/chunks.h"

#include "common/message.h"
#include "common/progress.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 18, /* read at a time */
    MOST_THREADS = 256
};

struct chunks {
    struct source *source;
    struct chunk_work work;
    bool ended;    /* all has been read */
    bool too_long; /* up to a line that is too long */

    struct chunk *ring;
    size_t room;
    uint64_t handed, taken, read; /* how many chunks have been handed on, given to a thread, read */
    bool in_hand;                 /* the caller uses the one that is handed on last */

    /* Of `taken`, `read`, `done` of the chunks, and `closing`, once threads run. */
    pthread_mutex_t lock;
    pthread_cond_t waiting, finished;
    pthread_t thread[MOST_THREADS];
    size_t threads; /* that run beside the caller's */
    bool closing;
};

/* ---- Reading ---- */

static bool grow(struct chunk *p, size_t wanted) {
    if (wanted <= p->room) return true;
    wanted = (wanted + 0xffff) / 0x10000 * 0x10000;
    char *grown = realloc(p->text, wanted);
    if (!grown) return failed("no memory for a buffer of %zu bytes", wanted), false;
    p->text = grown;
    p->room = wanted;
    return true;
}

/* The mark that some programs open a text with; and the texts of two-byte characters, which some write. */
static bool check_start(const struct chunks *r, struct chunk *p, size_t used) {
    if (used >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0) p->begin = 3;
    if (used < 2 || (memcmp(p->text, "\xff\xfe", 2) != 0 && memcmp(p->text, "\xfe\xff", 2) != 0))
        return true;
    return failed("%s is text in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE | tally ...",
                  r->source->name),
           false;
}

/* Reads on behind the part of a line that the chunk begins with, until a line ends in it, or is too long. */
static bool read_lines(struct chunks *r, struct chunk *p, size_t used) {
    size_t got = CHUNK_BYTES, wanted = CHUNK_BYTES;
    const char *last = NULL;
    while (!last && got == wanted && used <= LINE_BYTES) {
        wanted = LINE_BYTES + 1 - used < CHUNK_BYTES ? LINE_BYTES + 1 - used : (size_t)CHUNK_BYTES;
        if (!grow(p, used + wanted + 1 + CHUNK_SPARE) ||
            !source_read(r->source, p->text + used, wanted, &got))
            return false;
        progress_add(got);
        last = got ? memrchr(p->text + used, '\n', got) : NULL;
        used += got;
    }
    const bool is_long = !last && got == wanted;
    p->is_cut = is_long && r->work.cuts_lines;
    r->too_long = is_long && !p->is_cut;
    r->ended = r->too_long || got < wanted;
    if (got < wanted &&
        (used ? p->text[used - 1] != '\n' : p->continues)) { /* the end of a last line */
        p->text[used++] = '\n';
        last = p->text + used - 1;
    }
    p->end = p->is_cut ? used : last ? (size_t)(last + 1 - p->text) : 0;
    p->rest = used - p->end;
    memset(p->text + used, 0, CHUNK_SPARE);
    return r->read || check_start(r, p, used);
}

/* Reads the next chunk; the last chunk's rest is its beginning. */
static bool read_more(struct chunks *r) {
    struct chunk *p = &r->ring[r->read % r->room];
    const struct chunk *before = &r->ring[(r->read ? r->read - 1 : 0) % r->room];
    const size_t rest = r->read ? before->rest : 0;
    p->is_first = !r->read;
    p->continues = r->read && before->is_cut;
    if (!grow(p, rest + CHUNK_BYTES + 1 + CHUNK_SPARE)) return false;
    if (!p->made && !(p->made = calloc(1, r->work.made_bytes)))
        return failed("no memory for a buffer of %zu bytes", r->work.made_bytes), false;
    if (rest) memmove(p->text, before->text + before->end, rest);
    p->begin = 0;
    p->done = false;
    return read_lines(r, p, rest) && r->work.prepare(r->work.context, p);
}

/* ---- Threads ---- */

/* The next chunk that no thread has taken, or NULL. The lock is held. */
static struct chunk *take(struct chunks *r) {
    return r->taken < r->read ? &r->ring[r->taken++ % r->room] : NULL;
}

static void *work(void *context) {
    struct chunks *r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->closing) {
        struct chunk *p = take(r);
        if (!p) {
            pthread_cond_wait(&r->waiting, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        r->work.make(r->work.context, p);
        pthread_mutex_lock(&r->lock);
        p->done = true;
        pthread_cond_signal(&r->finished);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Makes the ring wide enough for all threads, and starts them. Where that cannot be done, fewer do it. */
static void start(struct chunks *r) {
    size_t threads = r->source->how.threads < MOST_THREADS ? (size_t)r->source->how.threads
                                                           : (size_t)MOST_THREADS;
    struct chunk *ring = threads > 1 ? realloc(r->ring, 2 * threads * sizeof *ring) : NULL;
    if (!ring) return;
    memset(ring + 1, 0, (2 * threads - 1) * sizeof *ring); /* the first is where it was */
    r->ring = ring;
    r->room = 2 * threads;
    while (r->threads + 1 < threads && pthread_create(&r->thread[r->threads], NULL, work, r) == 0)
        r->threads++;
}

/* ---- In order ---- */

bool chunks_open(struct source *source, const struct chunk_work *work, struct chunks **out) {
    struct chunks *r = *out = calloc(1, sizeof *r);
    if (r) r->ring = calloc(1, sizeof *r->ring);
    if (!r || !r->ring) return failed("no memory for a buffer of %zu bytes", sizeof *r), false;
    r->source = source;
    r->work = *work;
    r->room = 1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->waiting, NULL);
    pthread_cond_init(&r->finished, NULL);
    return true;
}

/* Reads a chunk, and lets a thread have it. */
static bool offer(struct chunks *r) {
    if (!read_more(r)) return false;
    if (!r->read && !r->ended) start(r);
    pthread_mutex_lock(&r->lock);
    r->read++;
    pthread_cond_signal(&r->waiting);
    pthread_mutex_unlock(&r->lock);
    return true;
}

/* Does what there is to do while the oldest chunk is not done: reads one of the chunks, or waits for a thread. */
static void help(struct chunks *r, const struct chunk *oldest) {
    pthread_mutex_lock(&r->lock);
    struct chunk *p = oldest->done ? NULL : take(r);
    if (p) {
        pthread_mutex_unlock(&r->lock);
        r->work.make(r->work.context, p);
        pthread_mutex_lock(&r->lock);
        p->done = true;
    } else if (!oldest->done) {
        pthread_cond_wait(&r->finished, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_done(struct chunks *r, const struct chunk *p) {
    pthread_mutex_lock(&r->lock);
    const bool done = p->done;
    pthread_mutex_unlock(&r->lock);
    return done;
}

bool chunks_next(struct chunks *r, struct chunk **out) {
    r->handed += r->in_hand;
    r->in_hand = false;
    *out = NULL;
    for (;;) {
        struct chunk *oldest = &r->ring[r->handed % r->room];
        if (r->handed < r->read && is_done(r, oldest))
            return r->in_hand = true, *out = oldest, true;
        if (!r->ended && r->read - r->handed < r->room) {
            if (!offer(r)) return false;
        } else if (r->handed < r->read) {
            help(r, oldest);
        } else {
            return true;
        }
    }
}

bool chunks_too_long(const struct chunks *r) {
    return r->too_long;
}

void chunks_close(struct chunks *r) {
    if (!r) return;
    if (r->threads) {
        pthread_mutex_lock(&r->lock);
        r->closing = true;
        pthread_cond_broadcast(&r->waiting);
        pthread_mutex_unlock(&r->lock);
    }
    for (size_t i = 0; i < r->threads; i++)
        pthread_join(r->thread[i], NULL);
    for (size_t i = 0; r->ring && i < r->room; i++) {
        if (r->ring[i].made) r->work.release(r->ring[i].made);
        free(r->ring[i].made);
        free(r->ring[i].text);
    }
    free(r->ring);
    free(r);
}
