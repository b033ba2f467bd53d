/*
 * chunks.c - see chunks.h.
 *
 * Chunks wait in a ring until a thread is free to work on one. The caller's thread reads the text
 * and hands chunks on. It works on chunks, too, while it has nothing else to do. Chunks are handed
 * on in order, so results do not depend on the number of threads. For a text of one chunk no thread
 * is started.
 */
#include "input/chunks.h"

#include "common/message.h"
#include "common/progress.h"
#include "input/guess.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum {
    CHUNK_BYTES = 1 << 18, /* read at a time */
    FIRST_LINES = 3,       /* of a table's first chunk: the names, a row and its end ... */
    FIRST_BYTES = 1 << 24, /* ... if they have no more bytes than that */
    MOST_THREADS = 256
};

struct chunks {
    struct source *source;
    struct chunk_work work;
    bool ended;    /* all has been read */
    bool too_long; /* the reading stopped at a line that is too long */

    struct chunk *ring;
    size_t room;
    uint64_t handed, taken, read; /* how many chunks have been handed on, given to a thread, read */
    bool in_hand;                 /* the caller still uses the chunk handed on last */

    /* Once threads run, the lock guards `taken`, `read`, `closing` and each chunk's `done`. */
    pthread_mutex_t lock;
    pthread_cond_t waiting, finished;
    pthread_t thread[MOST_THREADS];
    size_t threads; /* threads beside the caller's */
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

#define BYTE_ORDER_MARK "\xef\xbb\xbf" /* of UTF-8 */

/* Skips the byte-order mark of a UTF-8 text. Fails with a message for UTF-16 and UTF-32. */
static bool check_start(const struct chunks *r, struct chunk *p, size_t used) {
    if (used >= 3 && memcmp(p->text, BYTE_ORDER_MARK, 3) == 0) p->begin = 3;
    const char *encoding = guess_wide_text((const unsigned char *)p->text, used);
    return !encoding ||
           (failed("%s is text in %s; convert it: iconv -f %s -t UTF-8 FILE | tally ...",
                   r->source->name, encoding, encoding),
            false);
}

/* Returns where a line without an end, of `used` bytes, is cut: behind its last byte or its last blank. 0: nowhere. */
static size_t find_cut(const struct chunks *r, const struct chunk *p, size_t used) {
    const size_t mark = !r->read && memcmp(p->text, BYTE_ORDER_MARK, 3) == 0 ? 3 : 0;
    const char *first = p->text + mark + strspn(p->text + mark, " \t\r\v\f");
    if (r->work.cut == CUT_ANYWHERE) return used;
    if (*first == '#' && !p->continues) return 0; /* a comment */
    while (used && p->text[used - 1] != ' ' && p->text[used - 1] != '\t')
        used--;
    return used;
}

static size_t count_lines(const char *at, const char *end) {
    size_t count = 0;
    for (; (at = memchr(at, '\n', (size_t)(end - at))); at++)
        count++;
    return count;
}

/* Reads behind the chunk's first `used` bytes, which begin a line, until the chunk has a line end or its line is too long. A
 * table's first chunk needs FIRST_LINES, which show its form. */
static bool read_lines(struct chunks *r, struct chunk *p, size_t used) {
    const bool opens_table = !r->read && r->work.cut == CUT_ANYWHERE;
    const size_t most = opens_table ? FIRST_BYTES : LINE_BYTES;
    size_t got = CHUNK_BYTES, wanted = CHUNK_BYTES, lines = opens_table ? FIRST_LINES : 1;
    while (lines && got == wanted && used <= most) {
        wanted = most + 1 - used < CHUNK_BYTES ? most + 1 - used : (size_t)CHUNK_BYTES;
        if (!grow(p, used + wanted + 1 + CHUNK_SPARE) ||
            !source_read(r->source, p->text + used, wanted, &got))
            return false;
        progress_add(got);
        const size_t more = count_lines(p->text + used, p->text + used + got);
        lines -= more < lines ? more : lines;
        used += got;
    }
    const char *last = memrchr(p->text, '\n', used);
    const bool is_long = !last && got == wanted;
    memset(p->text + used, 0, CHUNK_SPARE);
    const size_t cut = is_long ? find_cut(r, p, used) : 0;
    p->is_cut = cut;
    r->too_long = is_long && !cut;
    r->ended = r->too_long || got < wanted;
    if (got < wanted &&
        (used ? p->text[used - 1] != '\n' : p->continues)) { /* the end of a last line */
        p->text[used++] = '\n';
        last = p->text + used - 1;
        memset(p->text + used, 0, CHUNK_SPARE);
    }
    p->end = cut ? cut : last ? (size_t)(last + 1 - p->text) : 0;
    p->rest = used - p->end;
    return r->read || check_start(r, p, used);
}

/* Reads the next chunk, which begins with the rest of the chunk before it. */
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

/* Makes the ring large enough for all threads, and starts them. If memory or threads are short,
 * fewer threads do the work. */
static void start(struct chunks *r) {
    size_t threads = r->source->how.threads < MOST_THREADS ? (size_t)r->source->how.threads
                                                           : (size_t)MOST_THREADS;
    struct chunk *ring = threads > 1 ? realloc(r->ring, 2 * threads * sizeof *ring) : NULL;
    if (!ring) return;
    memset(ring + 1, 0, (2 * threads - 1) * sizeof *ring); /* the first chunk keeps its contents */
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

/* Works on a chunk that no thread has taken; if there is none, waits until a thread has finished
 * one. */
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
