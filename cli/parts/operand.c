/*
 * operand.c - see operand.h.
 */
#include "parts/operand.h"

#include "common/memory.h"
#include "common/message.h"
#include "common/progress.h"
#include "input/feed.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool operand_open(struct operand *o, const char *name, const struct reading *how) {
    memset(o, 0, sizeof *o);
    if (!source_open(&o->source, name, how)) return false;
    o->is_open = true;
    o->n = source_count(&o->source);
    o->element = tally_type_size(o->source.type);
    return true;
}

void operand_close(struct operand *o) {
    if (o->is_open) source_close(&o->source);
    free(o->buffer);
    memset(o, 0, sizeof *o);
}

void operand_map(struct operand *o) {
    if (!o->all && !o->at) o->all = source_map(&o->source);
}

static bool no_memory(const struct operand *o, uint64_t bytes) {
    return failed("%s: no memory for %.3g GB; a plain .npy file of this machine's byte order is "
                  "read where it lies",
                  o->source.name, (double)bytes * 1e-9),
           false;
}

static bool grow(struct operand *o, uint64_t bytes) {
    if (bytes <= o->room && o->buffer) return true;
    unsigned char *grown = bytes < memory_available() ? realloc(o->buffer, (size_t)bytes) : NULL;
    if (!grown) return no_memory(o, bytes);
    o->buffer = grown;
    o->room = (size_t)bytes;
    return true;
}

/* Loads the next chunk of the source, if nothing is left of the last one. */
static bool fill(struct operand *o) {
    const void *x;
    if (o->left_count) return true;
    if (!source_next(&o->source, &x, &o->left_count)) return false;
    o->left = x;
    return true;
}

static size_t take(struct operand *o, void *to, uint64_t most) {
    const size_t n = o->left_count < most ? o->left_count : (size_t)most;
    if (to && n) memcpy(to, o->left, n * o->element);
    o->left += n * o->element;
    o->left_count -= n;
    return n;
}

bool operand_load(struct operand *o) {
    operand_map(o);
    if (o->all) return true;
    uint64_t known = o->n == SOURCE_UNKNOWN ? 1 << 20 : o->n + 1;
    if (known > SIZE_MAX / 2 / o->element) return no_memory(o, UINT64_MAX);
    uint64_t n = 0;
    if (!grow(o, known * o->element)) return false;
    for (;;) {
        if (!fill(o)) return false;
        if (!o->left_count) break;
        const uint64_t needs = (n + o->left_count) * o->element;
        if (needs > o->room && !grow(o, needs + needs / 2)) return false;
        n += take(o, o->buffer + n * o->element, o->left_count);
    }
    o->n = n;
    o->all = o->buffer;
    return true;
}

bool operand_next(struct operand *o, size_t wanted, const void **x, size_t *got) {
    *got = 0;
    if (o->all) {
        *x = o->all + o->at * o->element;
        *got = o->n - o->at < wanted ? (size_t)(o->n - o->at) : wanted;
        o->at += *got;
        progress_add((uint64_t)*got * o->element);
        return true;
    }
    if (!grow(o, (uint64_t)wanted * o->element + 1)) return false;
    while (*got < wanted) {
        if (!fill(o)) return false;
        if (!o->left_count) break;
        *got += take(o, o->buffer + *got * o->element, wanted - *got);
    }
    *x = o->buffer;
    o->at += *got;
    if (*got < wanted) o->n = o->at;
    return true;
}

bool operand_skip(struct operand *o, uint64_t count) {
    if (o->all) {
        o->at += o->n - o->at < count ? o->n - o->at : count;
        return true;
    }
    while (count) {
        if (!fill(o)) return false;
        if (!o->left_count) {
            o->n = o->at;
            return true;
        }
        const size_t n = take(o, NULL, count);
        o->at += n;
        count -= n;
    }
    return true;
}

const char *operand_shape(const struct operand *o, char text[SHAPE_TEXT]) {
    const struct source *s = &o->source;
    size_t used = (size_t)snprintf(text, SHAPE_TEXT, "(");
    const unsigned dims = s->has_shape ? s->dims : 1;
    for (unsigned d = 0; d < dims && d < NPY_DIMS; d++)
        used += (size_t)snprintf(text + used, SHAPE_TEXT - used, "%s%" PRIu64, d ? ", " : "",
                                 s->has_shape ? s->length[d] : o->n);
    snprintf(text + used, SHAPE_TEXT - used, dims > NPY_DIMS ? ", ...)" : dims == 1 ? ",)" : ")");
    return text;
}

/* Writes the lengths that are not 1; returns how many there are. */
static unsigned plain(const struct source *s, uint64_t length[NPY_DIMS]) {
    unsigned dims = 0;
    for (unsigned d = 0; d < s->dims && d < NPY_DIMS; d++)
        if (s->length[d] != 1) length[dims++] = s->length[d];
    return dims;
}

bool operand_matches(const struct operand *o, const struct operand *x) {
    uint64_t mine[NPY_DIMS], theirs[NPY_DIMS];
    char text[SHAPE_TEXT], other[SHAPE_TEXT];
    const char *name = o->source.name;
    if (o->n != SOURCE_UNKNOWN && x->n != SOURCE_UNKNOWN && o->n != x->n)
        return failed("%s has %" PRIu64 " elements but %s has %" PRIu64 "; each needs a partner",
                      name, o->n, x->source.name, x->n),
               false;
    if (!o->source.has_shape || !x->source.has_shape) return true;
    const unsigned dims = plain(&o->source, mine);
    if (dims != plain(&x->source, theirs) || memcmp(mine, theirs, dims * sizeof *mine) != 0)
        return failed("%s has shape %s but %s has %s; each element needs a partner", name,
                      operand_shape(o, text), x->source.name, operand_shape(x, other)),
               false;
    return true;
}

void operand_strides(const struct operand *o, ptrdiff_t stride[NPY_DIMS]) {
    const struct source *s = &o->source;
    ptrdiff_t next = 1;
    for (unsigned i = 0; i < s->dims; i++) {
        const unsigned d = s->is_fortran ? i : s->dims - 1 - i;
        stride[d] = next;
        next *= (ptrdiff_t)s->length[d];
    }
}

void operand_strides_like(const struct operand *o, const struct source *x,
                          ptrdiff_t stride[NPY_DIMS]) {
    ptrdiff_t own[NPY_DIMS] = {0};
    unsigned at = 0;
    operand_strides(o, own);
    for (unsigned d = 0; d < x->dims; d++) {
        stride[d] = 0;
        if (x->length[d] == 1) continue;
        while (o->source.length[at] == 1)
            at++;
        stride[d] = own[at++];
    }
}
