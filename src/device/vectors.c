/* vectors.c - see vectors.h. */
#include "device/vectors.h"

#include "base/paths.h"
#include "base/scratch.h"
#include "base/status.h"
#include "base/types.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

/* Most elements that are copied at a time, unless one vector has more: 2^21 make the fixed cost of a device's call
 * small. */
#define VECTORS_COPIED ((size_t)1 << 21)

struct extent vector_at(const struct shaped *s, size_t vector) {
    struct extent at = {.out = s->out_first, .number = s->number_first};
    for (unsigned k = s->keeps; k-- > 0;) {
        const struct extent *e = &s->kept[k];
        const ptrdiff_t i = (ptrdiff_t)(vector % e->length);
        vector /= e->length;
        at.x += i * e->x;
        at.y += i * e->y;
        at.mask += i * e->mask;
        at.out += i * e->out;
        at.number += (size_t)i * e->number;
    }
    return at;
}

/* ---- Checks -------------------------------------------------------------------------------- */

tally_status vectors_check_offsets(const struct shaped *s) {
    int64_t before = 0;
    for (size_t i = 0; i <= s->count; i++) {
        const int64_t at = offset_at(s->offsets, s->offsets_type, i);
        if (at < before || (uint64_t)at > s->n) return shape_bad_offset(s, i);
        before = at;
    }
    return TALLY_OK;
}

/* Returns whether the mask shows element i along the axis in any vector. */
static int is_shown(const struct shaped *s, size_t i) {
    if (!s->mask) return 1;
    for (size_t v = 0; v < s->vectors; v++)
        if (s->mask[vector_at(s, v).mask + (ptrdiff_t)i * s->reduced[0].mask]) return 1;
    return 0;
}

tally_status vectors_check_ids(const struct shaped *s) {
    const int rises = s->sorted && !s->skip_outside && !s->mask;
    uint64_t before = 0;
    for (size_t i = 0; i < s->n; i++) {
        const uint64_t id = id_at(s->ids, s->ids_type, i);
        if (id >= s->count && !s->skip_outside && is_shown(s, i)) return shape_bad_id(s, i);
        if (rises && id < before) return shape_bad_id(s, i);
        before = id;
    }
    return TALLY_OK;
}

/* ---- Vectors one behind another --------------------------------------------------------------- */

/* Some vectors, copied one behind another, so that they can be reduced as one long vector. */
struct copies {
    struct scratch scratch;
    char *x, *y, *mask;
    int64_t *cuts; /* offsets or ids */
    double *means;
    void *out[TALLY_VALUES_MAX];
    size_t first, n; /* of a vector's elements, these are copied: [first, first + n) */
};

/* Returns how many doubles each of the caller's means has. */
static size_t means_parts(const struct shaped *s) {
    return s->p->is_complex ? 2 : 1;
}

static void lay_out(const struct shaped *s, struct copies *c, size_t vectors) {
    struct scratch *scratch = &c->scratch;
    const size_t n = vectors * c->n, element = type_size(s->p->type), results = vectors * s->count;
    c->x = scratch_array(scratch, n, element);
    c->y = scratch_array(scratch, s->y ? n : 0, element);
    c->mask = scratch_array(scratch, s->mask ? n : 0, 1);
    c->cuts = scratch_array(scratch, s->cut == TALLY_GROUPS ? n : results + 1, sizeof *c->cuts);
    c->means = scratch_array(scratch, s->means ? results : 0, means_parts(s) * sizeof *c->means);
    for (unsigned v = 0; v < s->p->values; v++)
        c->out[v] = scratch_array(scratch, results, type_size(s->p->value[v].type));
}

#define COPY(type)                                                                                 \
    do {                                                                                           \
        typedef type __attribute__((aligned(1), may_alias)) unaligned;                             \
        const unaligned *x = (const unaligned *)from;                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            ((unaligned *)to)[i] = x[(ptrdiff_t)i * step];                                         \
    } while (0)

/* Copies n elements of `size` bytes, `step` elements apart. */
static void copy(char *to, const char *from, ptrdiff_t step, size_t n, size_t size) {
    if (step == 1) {
        memcpy(to, from, n * size);
        return;
    }
    switch (size) {
    case 1:
        COPY(uint8_t);
        break;
    case 2:
        COPY(uint16_t);
        break;
    case 4:
        COPY(uint32_t);
        break;
    default:
        COPY(uint64_t);
    }
}

static void copy_vectors(const struct shaped *s, const struct copies *c, size_t from,
                         size_t count) {
    const struct extent *axis = &s->reduced[0];
    const size_t element = type_size(s->p->type);
    for (size_t v = 0; v < count && c->n > 0; v++) {
        const struct extent at = vector_at(s, from + v);
        const ptrdiff_t begin = (ptrdiff_t)c->first, size = (ptrdiff_t)element;
        const size_t to = v * c->n;
        copy(c->x + to * element, s->x + (at.x + begin * axis->x) * size, axis->x, c->n, element);
        if (s->y)
            copy(c->y + to * element, s->y + (at.y + begin * axis->y) * size, axis->y, c->n,
                 element);
        if (s->mask)
            copy(c->mask + to, (const char *)s->mask + at.mask + begin * axis->mask, axis->mask,
                 c->n, 1);
    }
}

static void copy_cuts(const struct shaped *s, const struct copies *c, size_t vectors) {
    for (size_t v = 0; v < vectors; v++) {
        int64_t *to = c->cuts + v * (s->cut == TALLY_GROUPS ? c->n : s->count);
        if (s->cut == TALLY_SEGMENTS)
            for (size_t i = 0; i <= s->count; i++)
                to[i] = offset_at(s->offsets, s->offsets_type, i) + (int64_t)(v * c->n) -
                        (int64_t)c->first;
        else
            for (size_t i = 0; i < c->n; i++) {
                const uint64_t id = id_at(s->ids, s->ids_type, i);
                to[i] = id < s->count ? (int64_t)(v * s->count + id) : -1;
            }
    }
}

static void copy_means(const struct shaped *s, const struct copies *c, size_t from,
                       size_t vectors) {
    const size_t parts = means_parts(s);
    for (size_t i = 0; i < vectors && s->means; i++) {
        const size_t number = vector_at(s, from + i).number;
        for (size_t k = 0; k < s->count; k++)
            memcpy(c->means + (i * s->count + k) * parts,
                   s->means + (number + k * s->reduced[0].number) * parts,
                   parts * sizeof *c->means);
    }
}

/* Copies the results to the caller's memory. A group's index counts from its vector's first element, so the elements
 * of the vectors before are subtracted. */
static void deliver(const struct shaped *s, const struct copies *c, size_t from, size_t vectors) {
    for (unsigned v = 0; v < s->p->values; v++) {
        const size_t size = type_size(s->p->value[v].type);
        const tally_op op = s->p->value[v].op;
        const int moves = s->cut == TALLY_GROUPS && (op == TALLY_ARGMIN || op == TALLY_ARGMAX);
        for (size_t i = 0; i < vectors; i++) {
            const ptrdiff_t place = vector_at(s, from + i).out;
            char *results = (char *)c->out[v] + i * s->count * size;
            for (size_t k = 0; k < s->count; k++) {
                uint64_t *index = (uint64_t *)(void *)(results + k * size);
                if (moves && *index != UINT64_MAX && *index >= i * c->n) *index -= i * c->n;
                memcpy((char *)s->out[v] +
                           (place + (ptrdiff_t)k * s->reduced[0].out) * (ptrdiff_t)size,
                       results + k * size, size);
            }
        }
    }
}

static tally_status reduce(tally_device *device, const struct shaped *s, struct copies *c,
                           size_t from, size_t vectors) {
    struct shaped flat = {.p = s->p,
                          .cut = s->cut,
                          .x = c->x,
                          .y = s->y ? c->y : NULL,
                          .mask = s->mask ? (const unsigned char *)c->mask : NULL,
                          .out = c->out,
                          .results = vectors * s->count,
                          .n = vectors * c->n,
                          .count = vectors * s->count,
                          .vectors = 1,
                          .offsets = s->cut == TALLY_SEGMENTS ? c->cuts : NULL,
                          .offsets_type = TALLY_I64,
                          .ids = s->cut == TALLY_GROUPS ? c->cuts : NULL,
                          .ids_type = TALLY_I64,
                          .skip_outside = s->skip_outside || s->mask,
                          .sorted = s->sorted,
                          .means = s->means ? c->means : NULL,
                          .means_count = vectors * s->count * means_parts(s)};
    flat.reduced[0] = (struct extent){.length = flat.n,
                                      .x = 1,
                                      .y = s->y != NULL,
                                      .mask = s->mask != NULL,
                                      .out = 1,
                                      .number = 1};
    copy_vectors(s, c, from, vectors);
    copy_cuts(s, c, vectors);
    copy_means(s, c, from, vectors);
    return device->kind->shaped(device, &flat);
}

/* Reduces vectors [from, from + vectors). *number becomes the caller's number of the first result that does not
 * exist, or SIZE_MAX if all exist. A call reports only one such result, and the caller may number results in another
 * order than the call. So each vector is then reduced alone, and the lowest number is taken. */
static tally_status reduce_some(tally_device *device, const struct shaped *s, struct copies *c,
                                size_t from, size_t vectors, size_t *number) {
    tally_status status = reduce(device, s, c, from, vectors);
    size_t part, worst = from;
    *number = SIZE_MAX;
    if (status != TALLY_OK && !tally_error_result(&part)) return status;
    deliver(s, c, from, vectors);
    if (status == TALLY_OK) return TALLY_OK;
    if (vectors == 1) {
        *number = vector_at(s, from).number + part * s->reduced[0].number;
        return status;
    }
    TALLY_PATH("results that do not exist");
    for (size_t i = 0; i < vectors; i++) {
        size_t one;
        status = reduce_some(device, s, c, from + i, 1, &one);
        if (status != TALLY_OK && one == SIZE_MAX) return status;
        if (one >= *number) continue;
        *number = one;
        worst = from + i;
    }
    return reduce_some(device, s, c, worst, 1, number); /* stores that result's line */
}

/* Reduces all vectors, `most` at a time. */
static tally_status reduce_all(tally_device *device, const struct shaped *s, struct copies *c,
                               size_t most) {
    tally_status absent = TALLY_OK;
    size_t first = SIZE_MAX;
    char words[128] = "";
    for (size_t m, from = 0; from < s->vectors; from += m) {
        size_t number, part;
        m = s->vectors - from < most ? s->vectors - from : most;
        const tally_status status = reduce_some(device, s, c, from, m, &number);
        if (status != TALLY_OK && number == SIZE_MAX) return status;
        if (number >= first) continue;
        first = number;
        absent = status;
        (void)snprintf(words, sizeof words, "%s", tally_error_result(&part));
    }
    return absent == TALLY_OK ? TALLY_OK : fail_result(absent, first, "%s", words);
}

tally_status shaped_by_vectors(tally_device *device, const struct shaped *s) {
    struct copies c = {.n = s->n};
    if (s->vectors == 0 || (s->results == 0 && s->cut == TALLY_SEGMENTS)) return TALLY_OK;
    tally_status status =
        s->cut == TALLY_SEGMENTS ? vectors_check_offsets(s) : vectors_check_ids(s);
    if (status != TALLY_OK || s->results == 0) return status;
    if (s->cut == TALLY_SEGMENTS) {
        c.first = (size_t)offset_at(s->offsets, s->offsets_type, 0);
        c.n = (size_t)offset_at(s->offsets, s->offsets_type, s->count) - c.first;
    }
    const size_t longer = c.n > s->count ? c.n : s->count;
    size_t most = VECTORS_COPIED / longer;
    most = most < 1 ? 1 : most < s->vectors ? most : s->vectors;
    TALLY_PATH("copied one behind another");
    lay_out(s, &c, most);
    if (!scratch_create(&c.scratch, 0))
        return fail(TALLY_ENOMEM, "no memory for copies of %zu elements", most * c.n);
    lay_out(s, &c, most);
    status = reduce_all(device, s, &c, most);
    scratch_destroy(&c.scratch);
    return status;
}
