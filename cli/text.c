/*
 * text.c - numbers as text, with blanks and line ends between them, read by several threads.
 *
 * The text is read in pieces of whole lines. They wait in a ring until a thread is free to turn one into
 * elements; the caller's thread, which reads and hands on, is one of them while there is nothing else to do. Pieces are
 * handed on in their order, and each counts its lines: so neither the elements nor what is said of a word that is no
 * number depends on the threads. A text of one piece is read without any thread but the caller's.
 */
#include "text.h"

#include "decimal.h"
#include "message.h"
#include "progress.h"
#include "types.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    LINE_BYTES = 1 << 20,  /* the longest line, without its end */
    PIECE_BYTES = 1 << 18, /* read at a time */
    MOST_THREADS = 256
};

struct piece {
    char *text; /* owned, as is what follows */
    unsigned char *element;
    size_t text_room, element_room; /* bytes */
    size_t end, rest; /* whole lines are [0, end), and a part of one [end, end + rest) */

    /* What a thread has made of it. */
    bool done;
    size_t elements; /* bytes */
    size_t at;       /* `end`, or where a word is no number */
    size_t length;   /* of this word */
    uint64_t lines;  /* line ends before that */
    uint64_t added;  /* numbers that are in `money` */
    struct money money;
    enum decimal_result result; /* of the word */
};

struct text_reader {
    struct source *source;
    uint64_t line; /* the number of the line that is handed on next, from 1 */
    bool ended;    /* all has been read */
    bool too_long; /* up to a line that is too long */

    struct piece *ring;
    size_t room;
    uint64_t handed, taken, read; /* how many pieces have been handed on, given to a thread, read */
    bool in_hand;                 /* the caller uses the one that is handed on last */

    pthread_mutex_t
        lock; /* of `taken`, `read`, `done` of the pieces, and `closing`, once threads run */
    pthread_cond_t waiting, finished;
    pthread_t thread[MOST_THREADS];
    size_t threads; /* that run beside the caller's */
    bool closing;
};

/* ---- One piece ---- */

static bool is_blank(char c) { /* within a line */
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

static bool ends_word(char c) {
    return c == '\n' || is_blank(c);
}

/* What is written where there is no value. */
bool text_is_missing(const char *word) {
    static const char *const words[] = {"NA", "N/A", "nan", "+nan", "-nan", "null", "none", "-"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(word, words[i]) == 0) return true;
    return false;
}

/* Whether nothing but blanks stands before it in its line. */
static bool opens_line(const char *first, const char *at) {
    while (at > first && is_blank(at[-1]))
        at--;
    return at == first || at[-1] == '\n';
}

/* Reads a word by the long way; the byte behind it is overwritten for as long. */
static enum decimal_result read_word(const struct source *s, struct piece *p, char *word,
                                     size_t length) {
    const char after = word[length];
    enum decimal_result result = DECIMAL_MALFORMED;
    word[length] = 0;
    if (memchr(word, 0, length)) {
        result = DECIMAL_MALFORMED;
    } else if (s->how.skip_na && text_is_missing(word)) {
        result = DECIMAL_OK;
    } else if (s->money) {
        result = money_add(&p->money, word);
        p->added += result == DECIMAL_OK;
    } else {
        result = decimal_read(s->type, word, p->element + p->elements);
        if (result == DECIMAL_OK) p->elements += tally_type_size(s->type);
    }
    word[length] = after;
    return result;
}

/* Makes elements of the piece, up to its end or to a word that is no number. Threads call it, each with a
 * piece of its own. */
static void read_piece(const struct source *s, struct piece *p) {
    char *at = p->text + p->at, *const first = at, *const end = p->text + p->end;
    p->result = DECIMAL_OK;
    while (at < end && p->result == DECIMAL_OK) {
        if (!s->money) {
            unsigned char *element = p->element + p->elements;
            at += decimal_many(s->type, at, end, &element, &p->lines) - at;
            p->elements = (size_t)(element - p->element);
            if (at >= end) break;
        }
        if (*at == '\n') {
            at++, p->lines++;
        } else if (is_blank(*at)) {
            at++;
        } else if (*at == '#' && opens_line(first, at)) {
            at = memchr(at, '\n', (size_t)(end - at));
        } else {
            char *word = at;
            while (!ends_word(*at))
                at++;
            p->length = (size_t)(at - word);
            p->result = read_word(s, p, word, p->length);
            if (p->result != DECIMAL_OK) at = word;
        }
    }
    p->at = (size_t)(at - p->text);
}

/* ---- What is wrong ---- */

/* How a word that is no number of the type may be mended. */
static const char *hint(const struct source *s, const char *word) {
    double x;
    if (text_is_missing(word)) return "--skip-na leaves such words out";
    if (!type_is_floating(s->type) && decimal_read(TALLY_F64, word, &x) == DECIMAL_OK)
        return "choose --dtype f64";
    if (strchr(word, ',') || strchr(word, ';'))
        return "numbers stand between blanks; of a table, -c 1 takes the first column";
    return "numbers with blanks between them are expected";
}

static bool tell_word(const struct source *s, uint64_t line, const struct piece *p) {
    char shown[QUOTED_BYTES], *word = p->text + p->at;
    const char *type = s->money ? "decimal" : tally_type_name(s->type);
    word[p->length] = 0;
    quoted(word, p->length, shown);
    if (p->result == DECIMAL_RANGE)
        return failed("%s:%" PRIu64 ": %s does not fit %s; choose a wider --dtype", s->name, line,
                      shown, type),
               false;
    return failed("%s:%" PRIu64 ": '%s' is no %s number; %s", s->name, line, shown, type,
                  hint(s, strlen(word) == p->length ? word : "")),
           false;
}

static bool tell_line(const struct text_reader *r) {
    return failed("%s:%" PRIu64 ": the line is longer than %d bytes; is this text?",
                  r->source->name, r->line, LINE_BYTES),
           false;
}

/* ---- Reading ---- */

static bool grow(void **memory, size_t *room, size_t wanted) {
    if (wanted <= *room) return true;
    wanted = (wanted + 0xffff) / 0x10000 * 0x10000;
    void *grown = realloc(*memory, wanted);
    if (!grown) return failed("no memory for a buffer of %zu bytes", wanted), false;
    *memory = grown;
    *room = wanted;
    return true;
}

/* The mark that some programs open a text with; and the texts of two-byte characters, which some write. */
static bool check_start(struct text_reader *r, struct piece *p, size_t used) {
    if (used >= 3 && memcmp(p->text, "\xef\xbb\xbf", 3) == 0) p->at = 3;
    if (used < 2 || (memcmp(p->text, "\xff\xfe", 2) != 0 && memcmp(p->text, "\xfe\xff", 2) != 0))
        return true;
    return failed("%s is text in UTF-16; convert it: iconv -f UTF-16 -t UTF-8 FILE | tally ...",
                  r->source->name),
           false;
}

/* Reads on behind the part of a line that the piece begins with, until a line ends in it. */
static bool read_lines(struct text_reader *r, struct piece *p, size_t used) {
    size_t got = PIECE_BYTES, wanted = PIECE_BYTES;
    const char *last = NULL;
    while (!last && got == wanted && used <= LINE_BYTES) {
        wanted = LINE_BYTES + 1 - used < PIECE_BYTES ? LINE_BYTES + 1 - used : (size_t)PIECE_BYTES;
        if (!grow((void **)&p->text, &p->text_room, used + wanted + 1 + DECIMAL_SPARE) ||
            !source_read(r->source, p->text + used, wanted, &got))
            return false;
        progress_add(got);
        last = got ? memrchr(p->text + used, '\n', got) : NULL;
        used += got;
    }
    r->too_long = !last && got == wanted;
    r->ended = r->too_long || got < wanted;
    if (got < wanted && used && p->text[used - 1] != '\n') { /* a last line without its end */
        p->text[used++] = '\n';
        last = p->text + used - 1;
    }
    p->end = last ? (size_t)(last + 1 - p->text) : 0;
    p->rest = used - p->end;
    memset(p->text + used, 0, DECIMAL_SPARE);
    return r->read || check_start(r, p, used);
}

/* Reads the next piece of whole lines; the last piece's rest is its beginning. */
static bool read_more(struct text_reader *r) {
    struct piece *p = &r->ring[r->read % r->room];
    const struct piece *before = &r->ring[(r->read ? r->read - 1 : 0) % r->room];
    const size_t rest = r->read ? before->rest : 0, element = tally_type_size(r->source->type);
    if (!grow((void **)&p->text, &p->text_room, rest + PIECE_BYTES + 1 + DECIMAL_SPARE))
        return false;
    if (rest) memmove(p->text, before->text + before->end, rest);
    p->at = 0;
    if (!read_lines(r, p, rest)) return false;
    p->elements = 0;
    p->lines = p->added = 0;
    p->done = false;
    if (r->source->money) p->money = (struct money){.places = 0};
    return r->source->money ||
           grow((void **)&p->element, &p->element_room, (p->end / 2 + 1) * element);
}

/* ---- Threads ---- */

/* The next piece that no thread has taken, or NULL. The lock is held. */
static struct piece *take(struct text_reader *r) {
    return r->taken < r->read ? &r->ring[r->taken++ % r->room] : NULL;
}

static void *work(void *context) {
    struct text_reader *r = context;
    pthread_mutex_lock(&r->lock);
    while (!r->closing) {
        struct piece *p = take(r);
        if (!p) {
            pthread_cond_wait(&r->waiting, &r->lock);
            continue;
        }
        pthread_mutex_unlock(&r->lock);
        read_piece(r->source, p);
        pthread_mutex_lock(&r->lock);
        p->done = true;
        pthread_cond_signal(&r->finished);
    }
    pthread_mutex_unlock(&r->lock);
    return NULL;
}

/* Makes the ring wide enough for all threads, and starts them. Where that cannot be done, fewer do it. */
static void start(struct text_reader *r) {
    size_t threads = r->source->how.threads < MOST_THREADS ? (size_t)r->source->how.threads
                                                           : (size_t)MOST_THREADS;
    struct piece *ring = threads > 1 ? realloc(r->ring, 2 * threads * sizeof *ring) : NULL;
    if (!ring) return;
    memset(ring + 1, 0, (2 * threads - 1) * sizeof *ring); /* the first is where it was */
    r->ring = ring;
    r->room = 2 * threads;
    while (r->threads + 1 < threads && pthread_create(&r->thread[r->threads], NULL, work, r) == 0)
        r->threads++;
}

/* ---- In order ---- */

static bool open_reader(struct source *s) {
    if (s->text) return true;
    struct text_reader *r = calloc(1, sizeof *r);
    s->text = r;
    if (r) r->ring = calloc(1, sizeof *r->ring);
    if (!r || !r->ring) return failed("no memory for a buffer of %zu bytes", sizeof *r), false;
    r->source = s;
    r->line = 1;
    r->room = 1;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->waiting, NULL);
    pthread_cond_init(&r->finished, NULL);
    return true;
}

/* Reads a piece, and lets a thread have it. */
static bool offer(struct text_reader *r) {
    if (!read_more(r)) return false;
    if (!r->read && !r->ended) start(r);
    pthread_mutex_lock(&r->lock);
    r->read++;
    pthread_cond_signal(&r->waiting);
    pthread_mutex_unlock(&r->lock);
    return true;
}

/* Does what there is to do while the oldest piece is not done: reads one of the pieces, or waits for a thread. */
static void help(struct text_reader *r, const struct piece *oldest) {
    pthread_mutex_lock(&r->lock);
    struct piece *p = oldest->done ? NULL : take(r);
    if (p) {
        pthread_mutex_unlock(&r->lock);
        read_piece(r->source, p);
        pthread_mutex_lock(&r->lock);
        p->done = true;
    } else if (!oldest->done) {
        pthread_cond_wait(&r->finished, &r->lock);
    }
    pthread_mutex_unlock(&r->lock);
}

static bool is_done(struct text_reader *r, const struct piece *p) {
    pthread_mutex_lock(&r->lock);
    const bool done = p->done;
    pthread_mutex_unlock(&r->lock);
    return done;
}

/* *out becomes the next piece in order, done; NULL at the end. */
static bool next_piece(struct text_reader *r, struct piece **out) {
    for (;;) {
        struct piece *oldest = &r->ring[r->handed % r->room];
        if (r->handed < r->read && is_done(r, oldest)) return *out = oldest, true;
        if (!r->ended && r->read - r->handed < r->room) {
            if (!offer(r)) return false;
        } else if (r->handed < r->read) {
            help(r, oldest);
        } else {
            return *out = NULL, !r->too_long || tell_line(r);
        }
    }
}

bool text_next(struct source *s, const void **x, size_t *n) {
    struct piece *p;
    *n = 0;
    if (!open_reader(s)) return false;
    struct text_reader *r = s->text;
    while (!*n) {
        r->handed += r->in_hand;
        r->in_hand = false;
        if (!next_piece(r, &p)) return false;
        if (!p) return true;
        r->line += p->lines;
        if (p->result != DECIMAL_OK) return tell_word(s, r->line, p);
        if (s->money) money_merge(s->money, &p->money);
        s->elements += p->added;
        *x = p->element;
        *n = p->elements / tally_type_size(s->type);
        r->in_hand = true;
    }
    return true;
}

void text_close(struct source *s) {
    struct text_reader *r = s->text;
    s->text = NULL;
    if (!r) return;
    pthread_mutex_lock(&r->lock);
    r->closing = true;
    pthread_cond_broadcast(&r->waiting);
    pthread_mutex_unlock(&r->lock);
    for (size_t i = 0; i < r->threads; i++)
        pthread_join(r->thread[i], NULL);
    for (size_t i = 0; r->ring && i < r->room; i++) {
        free(r->ring[i].text);
        free(r->ring[i].element);
    }
    free(r->ring);
    free(r);
}
