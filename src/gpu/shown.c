/* gpu/shown.c - see gpu/shown.h. */
#include "gpu/shown.h"

#include "base/paths.h"
#include "base/status.h"
#include "gpu/filled.h"
#include "gpu/single.h"

/* A shape with a mask that the device makes, and the layout of the workspace. */
struct masked {
    struct shaped shape;
    struct shown_axes axes; /* of the shape without that mask */
    uint64_t n;             /* bytes of the mask; 0: there is none */
    uint64_t at;            /* the word of the workspace at which it begins */
    size_t bytes;           /* of the workspace */
};

static void lay_out(const struct queue *queue, const struct shaped *s, struct masked *m) {
    static const unsigned char on_the_device;
    m->shape = *s;
    m->n = 0;
    if (shown_is_needed(s)) {
        m->n = shown_plan(&m->shape, &m->axes);
        m->shape.mask = &on_the_device;
    }
    m->bytes = parts_workspace(queue, &m->shape);
    m->at = (m->bytes + 15) / 16 * 2;
    if (m->n > 0)
        m->bytes = 8 * (size_t)m->at + (m->n < SIZE_MAX / 4 ? (size_t)m->n : SIZE_MAX / 4);
}

size_t shown_workspace(const struct queue *queue, const struct shaped *s) {
    struct masked m;
    struct single room;
    if (!s->p->skip_nan) return parts_workspace(queue, single_for(s, &room));
    lay_out(queue, s, &m);
    return m.bytes;
}

tally_status shown_prepare(struct queue *queue, const struct shaped *s) {
    struct masked m;
    struct single room;
    if (!s->p->skip_nan) return parts_prepare(queue, single_for(s, &room));
    lay_out(queue, s, &m);
    const tally_status status = filled_prepare(queue);
    return status == TALLY_OK ? parts_prepare(queue, &m.shape) : status;
}

tally_status shown_enqueue(struct queue *queue, const struct parts_call *call) {
    struct parts_call masked = *call;
    struct masked m;
    struct single room;
    if (!call->s->p->skip_nan) {
        masked.s = single_for(call->s, &room);
        return parts_enqueue(queue, &masked);
    }
    lay_out(queue, call->s, &m);
    if (m.n == 0) return parts_enqueue(queue, call);
    TALLY_PATH("a mask that the device makes");
    masked.s = &m.shape;
    masked.mask = call->work;
    masked.first_mask = 8 * (int64_t)m.at;
    const tally_status status = filled_show(queue, call, &m.axes, m.n, m.at);
    return status == TALLY_OK ? parts_enqueue(queue, &masked) : status;
}

/* ---- Whole arrays ------------------------------------------------------------------------------ */

/* Returns the shape of one result of all elements. */
static struct shaped whole_of(const struct problem *p, uint64_t n) {
    return (struct shaped){.p = p,
                           .cut = TALLY_AXES,
                           .results = 1,
                           .reduces = n > 0,
                           .reduced[0] = {.length = n, .x = 1, .y = 1},
                           .each = n};
}

/* Returns the word of the workspace at which the values begin. */
static uint64_t values_at(const struct queue *queue, const struct shaped *s) {
    return (shown_workspace(queue, s) + 7) / 8;
}

size_t shown_workspace_whole(const struct queue *queue, const struct problem *p, uint64_t n) {
    const struct shaped s = whole_of(p, n);
    return 8 * ((size_t)values_at(queue, &s) + p->values);
}

tally_status shown_prepare_whole(struct queue *queue, const struct problem *p, uint64_t n) {
    const struct shaped s = whole_of(p, n);
    return shown_prepare(queue, &s);
}

tally_status shown_enqueue_whole(struct queue *queue, const struct problem *p,
                                 const struct inputs *in, struct gpu_memory *work,
                                 struct gpu_memory *results) {
    const struct shaped s = whole_of(p, in->n);
    const uint64_t values = values_at(queue, &s);
    struct parts_call call = {
        .s = &s, .x = in->x, .y = in->y, .work = work, .out = work, .values = p->values};
    for (unsigned v = 0; v < p->values; v++)
        call.at[v] = 8 * (values + v);
    const tally_status status = shown_enqueue(queue, &call);
    return status == TALLY_OK ? filled_tell(queue, &call, values, results) : status;
}
