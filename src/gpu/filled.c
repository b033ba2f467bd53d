/* filled.c - see filled.h. */
#include "gpu/filled.h"

#include "base/types.h"
#include "gpu/lower_plan.h"
#include "gpu/programs.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

#include "kernels/filled.h"

#define WARP 32

/* ---- Which problems ------------------------------------------------------------------------ */

/* Returns whether a value depends on the number of elements, or on their absence. */
static bool counts(const struct problem *p) {
    if (p->monoids & (MONOID_BIT(MONOID_EXTREMES) | MONOID_BIT(MONOID_FAST))) return false;
    if (type_is_float(p->type)) return true;
    for (unsigned v = 0; v < p->values; v++)
        if (p->value[v].op == TALLY_MEAN || p->value[v].op == TALLY_VAR ||
            p->value[v].op == TALLY_STD)
            return true;
    return false;
}

bool filled_matters(const struct shaped *copy) {
    return copy->filled && (counts(copy->p) || (copy->p->extremes & WANT_INDEX));
}

/* Returns whether the problem has one neutral element. Problems for both extremes have none, as no
 * element is both the least and the greatest. Fast means would need counts, which their kernels do
 * not have. */
static bool has_neutral(const struct problem *p) {
    const unsigned sums = MONOID_BIT(MONOID_SUM) | MONOID_BIT(MONOID_SQUARES);
    if (p->monoids == MONOID_BIT(MONOID_EXTREMES)) return (problem_ends(p) & ~WANT_INDEX) == 1;
    if (p->monoids == MONOID_BIT(MONOID_FAST)) return p->values == 1 && p->value[0].op == TALLY_SUM;
    return p->monoids == MONOID_BIT(MONOID_MAGNITUDES) || (p->monoids & ~sums) == 0;
}

uint64_t filled_neutral(const struct problem *p) {
    const unsigned width = 8 * (unsigned)type_size(p->type);
    const uint64_t all = UINT64_MAX >> (64 - width), sign = (uint64_t)1 << (width - 1);
    const bool greatest = (p->extremes & WANT_GREATEST) != 0;
    if (!(p->monoids & MONOID_BIT(MONOID_EXTREMES)))
        return type_is_float(p->type) && !problem_has(p, MONOID_FAST) ? sign : 0;
    switch (p->type) { /* the infinity, or the least or the greatest integer */
    case TALLY_F16:
        return 0x7c00 | (greatest ? sign : 0);
    case TALLY_BF16:
        return 0x7f80 | (greatest ? sign : 0);
    case TALLY_F32:
        return 0x7f800000 | (greatest ? sign : 0);
    case TALLY_F64:
        return UINT64_C(0x7ff0000000000000) | (greatest ? sign : 0);
    default:
        return (greatest ? 0 : all) ^ (type_is_signed(p->type) ? sign : 0);
    }
}

/* ---- The copy's shape ---------------------------------------------------------------------- */

/* The axes of a copy from the outermost to the innermost, each a kept or a reduced one of the shape's. */
struct axes {
    unsigned count;
    struct extent *of[2 * TALLY_DIMS_MAX];
};

static size_t step_of(const struct extent *e) {
    return e->x < 0 ? (size_t)-e->x : (size_t)e->x;
}

/* Returns the shape's axes in the order of rows, or sorted by their steps in memory; equal ones
 * stay in their order. */
static struct axes axes_of(struct shaped *s, bool in_order) {
    struct axes a = {.count = 0};
    for (unsigned d = 0; d < s->keeps + s->reduces; d++) {
        struct extent *one = d < s->keeps ? &s->kept[d] : &s->reduced[d - s->keeps];
        unsigned k = a.count++;
        for (; !in_order && k > 0 && step_of(a.of[k - 1]) < step_of(one); k--)
            a.of[k] = a.of[k - 1];
        a.of[k] = one;
    }
    return a;
}

/* Merges two axes into one if the outer one goes on where the inner one ends, in the array and in
 * the results. */
static unsigned merged(struct extent *axis, unsigned count) {
    unsigned kept = 0;
    for (unsigned d = 0; d < count; d++) {
        struct extent *last = kept > 0 ? &axis[kept - 1] : NULL;
        const ptrdiff_t length = (ptrdiff_t)axis[d].length;
        if (last && last->x == axis[d].x * length && last->out == axis[d].out * length &&
            last->number == axis[d].number * axis[d].length) {
            axis[d].length *= last->length;
            *last = axis[d];
        } else
            axis[kept++] = axis[d];
    }
    return kept;
}

bool filled_shape(const struct queue *queue, const struct shaped *s, bool in_order,
                  struct shaped *copy) {
    const uint64_t n = (uint64_t)s->results * s->each;
    if (s->cut != TALLY_AXES || s->y || !parts_are_many(queue, n)) return false;
    if (n > queue->facts->memory / FILLED_MEMORY_PART / type_size(s->p->type)) return false;
    if (s->mask && !has_neutral(s->p)) return false;
    *copy = *s;
    struct axes a = axes_of(copy, in_order);
    ptrdiff_t step = 1;
    for (unsigned i = a.count; i-- > 0; step *= (ptrdiff_t)a.of[i]->length)
        a.of[i]->x = step;
    for (unsigned d = 0; d < copy->reduces; d++) /* reduced axes have no results */
        copy->reduced[d].out = 0, copy->reduced[d].number = 0;
    copy->keeps = merged(copy->kept, copy->keeps);
    copy->reduces = merged(copy->reduced, copy->reduces);
    copy->mask = NULL;
    copy->filled = s->mask != NULL;
    return true;
}

/* ---- Launches ------------------------------------------------------------------------------ */

void filled_lay_out(const struct shaped *copy, bool in_order, struct area *area,
                    struct filled_layout *l) {
    const uint64_t n = (uint64_t)copy->results * copy->each;
    l->in_order = in_order;
    /* Kernels read the copy in packs of 16 bytes, also its last bytes. */
    l->to = area_take_pairs(area, (n * type_size(copy->p->type) + 15) / 16 * 2);
    l->counts = 0;
    if (copy->filled && counts(copy->p))
        l->counts = area_take_bytes(area, copy->results * (copy->each >> 32 ? 8 : 4));
}

enum { FILL_IN, COUNT_THERE, SHOW, TELL };
static const char *const names[FILLED_KERNELS] = {"fill_in", "count_there", "show", "tell"};

tally_status filled_prepare(struct queue *queue) {
    struct gpu_program *program = NULL;
    struct gpu_kernel *found[FILLED_KERNELS] = {0};
    if (queue->filled[0]) return TALLY_OK;
    tally_status s = program_build_plain(queue, "filled.cu", &program);
    if (s == TALLY_OK) s = program_find(queue, program, names, FILLED_KERNELS, found);
    if (s == TALLY_OK)
        for (unsigned i = 0; i < FILLED_KERNELS; i++)
            queue->filled[i] = found[i];
    return s;
}

/* Plans the copy's axes. Two are merged if the outer one goes on where the inner one ends. */
static void plan_axes(const struct shaped *s, bool in_order, struct filled_plan *plan) {
    struct shaped there = *s;
    const struct axes from = axes_of(&there, in_order);
    plan->dims = 0;
    for (unsigned i = from.count; i-- > 0;) {
        const struct extent *e = from.of[i];
        const struct part_extent next = {.length = e->length, .x = e->x, .mask = e->mask};
        struct part_extent *last = plan->dims > 0 ? &plan->dim[plan->dims - 1] : NULL;
        const int64_t length = last ? (int64_t)last->length : 0;
        if (last && next.x == last->x * length && next.mask == last->mask * length)
            last->length *= e->length;
        else
            plan->dim[plan->dims++] = next;
    }
    if (plan->dims == 0)
        plan->dim[plan->dims++] = (struct part_extent){.length = 1, .x = 1, .mask = 1};
}

/* Returns whether packs of `each` elements, and the mask's bytes, lie in the arrays as in the copy.
 * All steps but the innermost consist of whole packs; so does the innermost length, unless it is
 * the only one. */
static bool are_packs(const struct filled_plan *plan, int64_t each) {
    const struct part_extent *inner = &plan->dim[0];
    bool fits =
        inner->x == 1 && (!plan->masked || inner->mask == 1) && (!plan->paired || inner->y == 1);
    fits = fits && (plan->dims == 1 || inner->length % (uint64_t)each == 0);
    for (unsigned d = 1; d < plan->dims; d++)
        fits = fits && plan->dim[d].x % each == 0 &&
               (!plan->masked || plan->dim[d].mask % each == 0) &&
               (!plan->paired || plan->dim[d].y % each == 0);
    return fits;
}

/* Returns whether results lie side by side in the mask, and each four of them begin at a multiple
 * of 4 bytes. */
static bool are_fours(const struct shaped *s) {
    if (s->keeps == 0 || s->kept[s->keeps - 1].mask != 1 || s->kept[s->keeps - 1].length % 4 != 0)
        return false;
    bool fits = true;
    for (unsigned d = 0; d + 1 < s->keeps; d++)
        fits = fits && s->kept[d].mask % 4 == 0;
    for (unsigned d = 0; d < s->reduces; d++)
        fits = fits && s->reduced[d].mask % 4 == 0;
    return fits;
}

/* Returns the grid for `blocks` blocks of work. */
static unsigned grid_for(const struct queue *queue, uint64_t blocks) {
    const uint64_t units = queue_units(queue);
    const uint64_t most =
        units * (CPU_SHAPED(queue->block) ? CPU_BLOCKS_A_UNIT : GPU_BLOCKS_A_UNIT);
    return blocks == 0 ? 1 : (unsigned)(blocks < most ? blocks : most);
}

/* Returns a word of `bits`, repeated every `width` bits. */
static uint64_t repeated(uint64_t bits, unsigned width) {
    for (; width < 64; width *= 2)
        bits |= bits << width;
    return bits;
}

tally_status filled_enqueue(struct queue *queue, const struct parts_call *call,
                            const struct parts_plan *plan, const struct filled_layout *l) {
    const struct gpu_api *api = queue->api;
    const struct shaped *s = call->s;
    const uint64_t n = (uint64_t)s->results * s->each, block = queue->block;
    const uint64_t threads = block * grid_for(queue, UINT64_MAX);
    struct filled_plan filled = {
        .n = n,
        .to = l->to,
        .neutral = repeated(filled_neutral(s->p), 8 * (unsigned)type_size(s->p->type)),
        .x = call->first_x,
        .mask = call->first_mask,
        .width = 8 * (uint32_t)type_size(s->p->type),
        .masked = call->mask != NULL,
        .team = s->each > FILLED_TEAM_ROW ? WARP : 1};
    plan_axes(s, l->in_order, &filled);
    filled.in_packs = are_packs(&filled, 128 / filled.width);
    filled.in_fours = are_fours(s);
    /* The threads of a warp count columns side by side, unless there are too few. */
    if (s->keeps > 0 && s->kept[s->keeps - 1].mask == 1 && s->results > WARP) filled.team = 1;
    if (block % WARP != 0) filled.team = 1;
    /* Rows are cut where there are fewer than the device has threads. */
    const uint64_t rows = filled.in_fours ? (s->results + 3) / 4 : s->results;
    const uint64_t least =
        filled.in_fours && filled.team == 1 ? FILLED_CHUNK_LEAST / 8 : FILLED_CHUNK_LEAST;
    const uint64_t wanted = threads / filled.team / rows + 1;
    filled.chunk = (s->each + wanted - 1) / wanted;
    if (filled.chunk < least) filled.chunk = least;
    filled.chunks = (s->each + filled.chunk - 1) / filled.chunk;
    tally_status status = filled_prepare(queue);
    if (status == TALLY_OK && l->counts) {
        const bool wide = s->each >> 32 != 0;
        struct parts_plan counting = *plan;
        counting.counts = l->counts;
        counting.wide_counts = wide;
        counting.mask = call->first_mask;
        const struct gpu_argument arguments[] = {BUFFER(call->mask), BUFFER(call->work),
                                                 VALUE(counting), VALUE(filled)};
        const uint64_t teams = s->results * filled.chunks;
        status = api->fill(queue->gpu, call->work, 8 * l->counts, 0, s->results * (wide ? 8 : 4));
        if (status == TALLY_OK)
            status = api->launch(queue->gpu, queue->filled[COUNT_THERE],
                                 grid_for(queue, (teams * filled.team + block - 1) / block),
                                 queue->block, arguments, 4);
    }
    const uint64_t tile = block * FILLED_AT_ONCE * (128 / filled.width);
    const struct gpu_argument arguments[] = {BUFFER(call->x), BUFFER(call->mask),
                                             BUFFER(call->work), VALUE(filled)};
    if (status == TALLY_OK)
        status = api->launch(queue->gpu, queue->filled[FILL_IN],
                             grid_for(queue, (n + tile - 1) / tile), queue->block, arguments, 4);
    return status;
}

/* ---- Masks of NaNs ---------------------------------------------------------------------------- */

/* Returns the bits of a floating type's infinity. */
static uint64_t infinity_of(tally_type type) {
    const struct problem least = {
        .type = type, .monoids = MONOID_BIT(MONOID_EXTREMES), .extremes = WANT_LEAST};
    return filled_neutral(&least);
}

tally_status filled_show(struct queue *queue, const struct parts_call *call,
                         const struct shown_axes *axes, uint64_t n, uint64_t to) {
    const tally_type type = call->s->p->type;
    const uint32_t width = 8 * (uint32_t)type_size(type), each = 128 / width;
    struct filled_plan plan = {.n = n,
                               .to = to,
                               .x = call->first_x,
                               .y = call->first_y,
                               .mask = call->first_mask,
                               .infinity = infinity_of(type),
                               .width = width,
                               .masked = call->mask != NULL,
                               .paired = call->y != NULL,
                               .dims = axes->count};
    for (unsigned d = 0; d < axes->count; d++) {
        const struct extent *e = &axes->of[axes->count - 1 - d];
        plan.dim[d] =
            (struct part_extent){.length = e->length, .x = e->x, .y = e->y, .mask = e->mask};
    }
    plan.in_packs = are_packs(&plan, each);
    const uint64_t tile = queue->block * FILLED_AT_ONCE * (plan.in_packs ? each : 1);
    const struct gpu_argument arguments[] = {BUFFER(call->x), BUFFER(call->y), BUFFER(call->mask),
                                             BUFFER(call->work), VALUE(plan)};
    const tally_status s = filled_prepare(queue);
    if (s != TALLY_OK) return s;
    return queue->api->launch(queue->gpu, queue->filled[SHOW],
                              grid_for(queue, (n + tile - 1) / tile), queue->block, arguments, 5);
}

tally_status filled_tell(struct queue *queue, const struct parts_call *call, uint64_t values,
                         struct gpu_memory *results) {
    struct lower_plan plan;
    lower_plan_of(call->s->p, &plan);
    const struct gpu_argument arguments[] = {BUFFER(call->work), BUFFER(results), VALUE(values),
                                             VALUE(plan)};
    const tally_status s = filled_prepare(queue);
    if (s != TALLY_OK) return s;
    return queue->api->launch(queue->gpu, queue->filled[TELL], 1, queue->block, arguments, 4);
}
