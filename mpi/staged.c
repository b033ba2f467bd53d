/* staged.c - see staged.h. */
#include "staged.h"

#include "along.h"

#include <stdlib.h>

/* Elements stay on the device if results have so many bytes on average, or more. Reducing one result there takes
 * some twenty microseconds on an H200. In that time the host copies, brings side by side and reduces fewer bytes. */
enum { LONG_RUN = 16 << 10 };

void staged_free(struct staged *s) {
    for (int i = 0; i < s->owns; i++)
        free(s->owned[i]);
    free(s->run);
}

/* Copies bytes from the device and returns where they are now. Returns `from` if that is NULL, or for no bytes. */
static const void *bring(struct staged *s, tally_device *device, const void *from, size_t bytes,
                         tally_status *status) {
    if (!from || bytes == 0 || *status != TALLY_OK) return from;
    void *room = malloc(bytes);
    *status = room ? tally_resident_copy(device, room, from, bytes) : TALLY_ENOMEM;
    s->owned[s->owns++] = room;
    return room;
}

/* ---- Left where they are -------------------------------------------------------------------- */

/* Finds the runs of segments. Returns 0 if an offset is wrong. */
static int segment_runs(const tally_shape *s, size_t results, struct run *run) {
    if (!s->offsets && s->n % results > 0) return 0;
    if (s->offsets && s->offsets_type && s->offsets_type != TALLY_I32 &&
        s->offsets_type != TALLY_I64)
        return 0;
    for (size_t i = 0; i < results; i++) {
        const int64_t at = (int64_t)offset_along(s, i), end = (int64_t)offset_along(s, i + 1);
        if (at < 0 || end < at || (uint64_t)end > s->n) return 0;
        run[i] = (struct run){(ptrdiff_t)at, (ptrdiff_t)at, (size_t)(end - at)};
    }
    return 1;
}

/* Returns the stride of dimension d; that of C order where there are no strides. */
static ptrdiff_t stride_of(const tally_shape *s, const ptrdiff_t *stride, unsigned d) {
    ptrdiff_t next = 1;
    if (stride) return stride[d];
    for (unsigned i = s->dims; --i > d;)
        next *= (ptrdiff_t)s->length[i];
    return next;
}

/* Finds the runs of axes. Returns 0 unless the reduced dimensions are in C order, without gaps. */
static int axes_runs(const tally_shape *s, int has_y, size_t results, struct run *run) {
    ptrdiff_t each = 1;
    size_t number = 1;
    for (size_t i = 0; i < results; i++)
        run[i] = (struct run){0, 0, 0};
    for (unsigned d = s->dims; d-- > 0;) {
        const ptrdiff_t x = stride_of(s, s->x_stride, d), y = stride_of(s, s->y_stride, d);
        const size_t length = s->length[d];
        if (s->axes >> d & 1) {
            if (length > 1 && (x != each || (has_y && y != each))) return 0;
            each *= (ptrdiff_t)length;
            continue;
        }
        for (size_t i = 0; i < results; i++) {
            const ptrdiff_t at = (ptrdiff_t)(i / number % length);
            run[i].x += at * x;
            run[i].y += at * y;
        }
        number *= length;
    }
    for (size_t i = 0; i < results; i++)
        run[i].n = (size_t)each;
    return 1;
}

/* Sets the runs, if the elements of each result lie side by side, and there are many of each. */
static tally_status leave(struct staged *s, size_t element, size_t results) {
    const tally_shape *shape = &s->shape;
    size_t n = 0;
    if (shape->cut == TALLY_GROUPS || shape->mask || !s->x || results == 0) return TALLY_OK;
    if (is_along(shape)) return TALLY_OK;
    s->run = malloc(results * sizeof *s->run);
    if (!s->run) return TALLY_ENOMEM;
    int stays = shape->cut == TALLY_AXES ? axes_runs(shape, s->y != NULL, results, s->run)
                                         : segment_runs(shape, results, s->run);
    for (size_t i = 0; i < results && stays; i++)
        n += s->run[i].n;
    if (stays && n >= results * (LONG_RUN / element)) return TALLY_OK;
    free(s->run);
    s->run = NULL;
    return TALLY_OK;
}

/* ---- Brought -------------------------------------------------------------------------------- */

/* Copies an array with strides, from the first element in memory to the last. Returns where the element is now whose
 * indices are all 0. */
static const void *bring_axes(struct staged *s, tally_device *device, const void *from,
                              const ptrdiff_t *stride, size_t element, tally_status *status) {
    ptrdiff_t least = 0, greatest = 0;
    for (unsigned d = 0; d < s->shape.dims; d++) {
        if (s->shape.length[d] == 0) return from;
        const ptrdiff_t reach =
            (ptrdiff_t)(s->shape.length[d] - 1) * stride_of(&s->shape, stride, d);
        if (reach < 0)
            least += reach;
        else
            greatest += reach;
    }
    if (!from) return from;
    const ptrdiff_t before = least * (ptrdiff_t)element;
    const char *room = bring(s, device, (const char *)from + before,
                             (size_t)(greatest - least + 1) * element, status);
    return room ? room - before : NULL;
}

tally_status staged_bring(struct staged *s, tally_device *device, size_t element,
                          const tally_shape *shape, const void *x, const void *y, size_t results) {
    tally_status status = TALLY_OK;
    *s = (struct staged){.shape = *shape, .x = x, .y = y};
    if (shape->cut == TALLY_SEGMENTS)
        s->shape.offsets =
            bring(s, device, shape->offsets,
                  (shape->count + 1) * (shape->offsets_type == TALLY_I32 ? 4 : 8), &status);
    if (status == TALLY_OK) status = leave(s, element, results);
    if (s->run || status != TALLY_OK) return status;
    const size_t n = length_along(shape);
    if (shape->cut == TALLY_AXES || is_along(shape)) {
        s->x = bring_axes(s, device, x, shape->x_stride, element, &status);
        s->y = bring_axes(s, device, y, shape->y_stride, element, &status);
        s->shape.mask = bring_axes(s, device, shape->mask, shape->mask_stride, 1, &status);
    } else {
        s->x = bring(s, device, x, n * element, &status);
        s->y = bring(s, device, y, n * element, &status);
        s->shape.mask = bring(s, device, shape->mask, n, &status);
    }
    if (shape->cut == TALLY_GROUPS)
        s->shape.ids =
            bring(s, device, shape->ids,
                  n * tally_type_size(shape->ids_type ? shape->ids_type : TALLY_I64), &status);
    return status;
}
