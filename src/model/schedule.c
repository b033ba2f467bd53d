/*
 * schedule.c - the scheduler: it chooses the lanes that run next.
 *
 * Lock step. The lanes of a warp stop at the start of every basic block. Of all that can run, those
 * that stand at the lowest address run together, one after the other, to their next stop; what they
 * did at the same place in the text counts as one instruction of the warp. As the compiler is told
 * to leave the blocks in the order of the text, the ways out of a branch or a loop lie behind it:
 * lanes that are ahead wait there for those that are still inside, and the warp goes on as one. That
 * is where real hardware brings them together again, too.
 *
 * A branch is seen by its outcome: lanes that ran a block together and now stand at different places
 * have diverged. The two branches of `a && b` are one: see is_same_branch().
 *
 * Lanes at a barrier or a shuffle wait. When no lane of a warp can run, shuffles whose lanes have all
 * come are done; when no warp can run, a barrier that all the block's lanes stand at is over. If lanes
 * still wait then, it is a fault.
 */
#include "base/invariant.h"
#include "model/machine.h"

#include <string.h>

static void lane_main(void) {
    struct model_device *d = model_now;
    d->launch->kernel->call(d->launch->arguments);
    d->lane->state = LANE_DONE;
    schedule_leave(d);
}

/* Returns who runs next: the lanes of the group in their order, then the scheduler. */
static fiber *next_turn(struct model_device *d) {
    TALLY_ASSERT(d->turn <= d->group_size && d->group_size <= MODEL_WARP);
    if (d->turn == d->group_size) return &d->scheduler;
    d->lane = d->group[d->turn++];
    return &d->lane->fiber;
}

void schedule_yield(struct model_device *d) {
    model_lane *me = d->lane;
    memory_settle_overwrite(d);
    fiber_switch(&me->fiber, next_turn(d));
    me->accesses = 0;
    me->applied = 0;
}

_Noreturn void schedule_leave(struct model_device *d) {
    fiber *me = &d->lane->fiber;
    memory_settle_overwrite(d);
    for (;;)
        fiber_switch(me, d->fault.kind || d->out_of_memory ? &d->scheduler : next_turn(d));
}

/* ---- A warp --------------------------------------------------------------------------------- */

/* Puts into the group the lanes in `state` that stand at the lowest address at or above `from`. */
static void gather(struct model_device *d, model_lane *warp, unsigned lanes, lane_state state,
                   uintptr_t from) {
    uintptr_t lowest = UINTPTR_MAX;
    d->group_size = 0;
    for (unsigned l = 0; l < lanes; l++) {
        if (warp[l].state != state || warp[l].site < from || warp[l].site > lowest) continue;
        if (warp[l].site < lowest) d->group_size = 0;
        lowest = warp[l].site;
        d->group[d->group_size++] = &warp[l];
    }
}

/* The places at which a group's lanes go on after a basic block. */
struct ways {
    uintptr_t near, far; /* if there are two places: the lower address and the higher */
    unsigned count; /* of places: 1, 2, or 3 for more. Two are 3 unless both are basic blocks */
};

static struct ways find_ways(const struct model_device *d) {
    struct ways w = {d->group[0]->site, 0, 1};
    const lane_state state = d->group[0]->state;
    for (unsigned i = 1; i < d->group_size; i++) {
        const model_lane *l = d->group[i];
        if (l->state != state) w.count = 3;
        if (l->state != state || l->site == w.near || (w.count > 1 && l->site == w.far)) continue;
        if (w.count++ == 1) w.far = l->site;
    }
    if (w.count == 2 && w.far < w.near) w = (struct ways){w.far, w.near, 2};
    if (w.count == 2 && state != LANE_RUNNING) w.count = 3;
    return w;
}

/* The way by which a group of lanes reached the basic block that it runs next. */
struct arrival {
    uintptr_t start,
        other_way; /* the block; where the lanes went from which the whole group has just parted, or 0 */
    bool
        has_met; /* it is all lanes that parted at a branch; one part ran a block without effect in between */
    uintptr_t
        read; /* the start of that block, if it touches memory and has_met would hold otherwise; else 0 */
};

static struct arrival find_arrival(const struct model_device *d) {
    struct arrival a = {d->group[0]->site, d->group[0]->other_way, false, 0};
    unsigned waited = 0, came = 0, read = 0;
    for (unsigned i = 0; i < d->group_size; i++) {
        const model_lane *l = d->group[i];
        if (l->other_way != a.other_way) a.other_way = 0;
        waited += l->half == HALF_WAITS;
        came += l->half == HALF_CAME;
        read += l->half == HALF_READ;
        if (l->half == HALF_READ) a.read = l->half_site;
    }
    a.has_met = waited && came && waited + came == d->group_size;
    if (!waited || waited + read != d->group_size) a.read = 0;
    return a;
}

/* Returns whether two blocks begin on one source line. */
static bool is_one_line(struct model_device *d, uintptr_t first, uintptr_t second) {
    const unsigned kept = sizeof d->lines / sizeof *d->lines;
    for (unsigned i = 0; i < d->line_count; i++)
        if (d->lines[i].first == first && d->lines[i].second == second)
            return d->lines[i].is_one_line;
    model_place a = {.site = first}, b = {.site = second};
    model_find_line(&a);
    model_find_line(&b);
    const bool same = a.line && a.line == b.line;
    if (d->line_count == kept) d->line_count = 0;
    d->lines[d->line_count].first = first;
    d->lines[d->line_count].second = second;
    d->lines[d->line_count++].is_one_line = same;
    return same;
}

/* Returns whether those of the group that have evaluated b all go one way. */
static bool agree(const struct model_device *d) {
    uintptr_t to = 0;
    for (unsigned i = 0; i < d->group_size; i++) {
        const model_lane *l = d->group[i];
        if (l->half != HALF_READ) continue;
        if (to && l->site != to) return false;
        to = l->site;
    }
    return true;
}

/* Returns whether the group's branch is the second half of `a && b` or `a || b`. Hardware makes two
 * predicates and one branch of these. There are three cases. The block only evaluates b, and one of
 * its ways leads to the lanes from which a has parted the group. Or all lanes have met again with
 * their results, and a block that only tests these parts them. Or b reads memory, so that hardware
 * branches around it, as in nested ifs: then lanes part again only if b differs among those that
 * have evaluated it. */
static bool is_same_branch(struct model_device *d, const struct arrival *a, const struct ways *w,
                           bool is_quiet) {
    if (w->count != 2 || !is_quiet || w->near <= a->start) return false;
    if (a->read && agree(d) && is_one_line(d, a->read, a->start)) return true;
    return a->has_met || (a->other_way && (w->near == a->other_way || w->far == a->other_way));
}

/* Notes for the lanes of the group how they come to their next block. */
static void note_ways(struct model_device *d, const struct arrival *a, const struct ways *w,
                      bool is_quiet) {
    const bool parts = w->count == 2 && w->near > a->start;
    for (unsigned i = 0; i < d->group_size; i++) {
        model_lane *l = d->group[i];
        const bool comes = w->count == 1 && a->other_way && l->site == a->other_way;
        l->other_way = parts && l->site == w->near ? w->far : 0;
        l->half_site = a->start;
        l->half = comes                        ? is_quiet ? HALF_CAME : HALF_READ
                  : parts && l->site == w->far ? HALF_WAITS
                                               : HALF_NONE;
    }
}

static void run_group(struct model_device *d) {
    const struct arrival a = find_arrival(d);
    d->turn = 0;
    fiber_switch(&d->scheduler, next_turn(d));
    if (d->fault.kind || d->out_of_memory) return;

    unsigned rounds = 0;
    for (unsigned i = 0; i < d->group_size; i++)
        if (d->group[i]->applied > rounds) rounds = d->group[i]->applied;
    const bool is_quiet = d->access_count == 0 && rounds == 0;
    count_accesses(d);

    const struct ways w = find_ways(d);
    d->warp->rounds += rounds;
    d->warp->divergent += w.count > 1 && !is_same_branch(d, &a, &w, is_quiet);
    note_ways(d, &a, &w, is_quiet);
    d->work += d->group_size;
    if (++d->spent > d->patience || d->work > d->work_most) {
        const model_lane *l = d->group[0];
        fault_at(d, MODEL_FAULT_ENDLESS, 0, 0, l->site, l->index);
        d->fault.waits = d->waited > d->spent / 2;
    }
}

/* Returns the i-th lane's value of a shuffle. A source lane that takes no part waits elsewhere, has
 * left, or is not in the block. Hardware leaves its value undefined; the model returns the reading
 * lane's own value with all bits inverted. */
static uint64_t shuffled(struct model_device *d, const model_lane *warp, unsigned i,
                         uint32_t here) {
    const model_lane *l = d->group[i];
    unsigned source = l->shuffle_source;
    if (source >= MODEL_WARP) source = l->index % MODEL_WARP; /* past the warp: its own */
    if (here >> source & 1) return warp[source].shuffle_value;
    fault_stray(d, l, source);
    return ~l->shuffle_value;
}

static uint32_t combined(model_exchange kind, uint32_t a, uint32_t b) {
    switch (kind) {
    case EXCHANGE_ADD:
        return a + b;
    case EXCHANGE_MIN_SIGNED:
        return (int32_t)b < (int32_t)a ? b : a;
    case EXCHANGE_MAX_SIGNED:
        return (int32_t)b > (int32_t)a ? b : a;
    case EXCHANGE_MIN:
        return b < a ? b : a;
    case EXCHANGE_MAX:
        return b > a ? b : a;
    case EXCHANGE_AND:
        return a & b;
    case EXCHANGE_OR:
        return a | b;
    default:
        return a ^ b;
    }
}

/* Returns the value that the i-th lane of the group gets from a vote, a match or a reduction of the group. */
static uint64_t voted(const struct model_device *d, unsigned i) {
    const model_exchange kind = d->group[0]->exchange;
    uint32_t lanes = 0, all = (uint32_t)d->group[0]->shuffle_value;
    for (unsigned k = 0; k < d->group_size; k++) {
        const model_lane *l = d->group[k];
        const bool counts = kind == EXCHANGE_BALLOT
                                ? l->shuffle_value != 0
                                : l->shuffle_value == d->group[i]->shuffle_value;
        lanes |= (uint32_t)counts << (l->index % MODEL_WARP);
        if (k > 0) all = combined(kind, all, (uint32_t)l->shuffle_value);
    }
    return kind == EXCHANGE_BALLOT || kind == EXCHANGE_MATCH ? lanes : all;
}

/* Cuts the group, lanes that wait at one place, down to those with the mask of its i-th lane. Returns whether all have
 * come that the mask names, but for lanes that are done or that the block does not have. */
static bool gather_named(struct model_device *d, const model_lane *warp, unsigned lanes,
                         unsigned i) {
    const uint32_t named = d->group[i]->shuffle_mask;
    uint32_t here = 0, alive = 0;
    unsigned count = 0;
    for (unsigned k = 0; k < d->group_size; k++) {
        if (d->group[k]->shuffle_mask != named) continue;
        here |= UINT32_C(1) << (d->group[k]->index % MODEL_WARP);
        d->group[count++] = d->group[k];
    }
    for (unsigned l = 0; l < lanes; l++)
        alive |= (uint32_t)(warp[l].state != LANE_DONE) << l;
    d->group_size = count;
    return (named & alive) == here;
}

static void exchange_group(struct model_device *d, const model_lane *warp) {
    const model_exchange kind = d->group[0]->exchange;
    uint64_t given[MODEL_WARP] = {0};
    uint32_t here = 0;
    for (unsigned i = 0; i < d->group_size; i++)
        here |= UINT32_C(1) << (d->group[i]->index % MODEL_WARP);
    for (unsigned i = 0; i < d->group_size && kind != EXCHANGE_MEET; i++)
        given[i] = kind == EXCHANGE_SHUFFLE ? shuffled(d, warp, i, here) : voted(d, i);
    if (kind == EXCHANGE_MEET)
        d->warp_epoch = ++d->epoch;
    else if (kind == EXCHANGE_SHUFFLE && d->launch->accesses)
        trace_exchange(d, given);
    for (unsigned i = 0; i < d->group_size; i++) {
        d->group[i]->shuffle_value = given[i];
        d->group[i]->state = LANE_RUNNING;
    }
}

/* Does an exchange whose lanes have all come; returns whether there was one. Lanes that wait at one place may be
 * several groups of lanes, as tiles of a warp are: each has its mask. */
static bool run_exchange(struct model_device *d, model_lane *warp, unsigned lanes) {
    for (uintptr_t from = 0;; from = d->group[0]->site + 1) {
        gather(d, warp, lanes, LANE_SHUFFLE, from);
        if (d->group_size == 0) return false;
        const uintptr_t site = d->group[0]->site;
        const unsigned waiting = d->group_size;
        for (unsigned i = 0; i < waiting; i++) {
            gather(d, warp, lanes, LANE_SHUFFLE, site);
            if (!gather_named(d, warp, lanes, i)) continue;
            exchange_group(d, warp);
            return true;
        }
        gather(d, warp, lanes, LANE_SHUFFLE, site);
    }
}

/* Runs a warp until all its lanes wait at barriers, are done, or are stuck. */
static void run_warp(struct model_device *d, unsigned w) {
    model_lane *warp = d->lanes + w * MODEL_WARP;
    unsigned lanes = d->launch->block - w * MODEL_WARP;
    if (lanes > MODEL_WARP) lanes = MODEL_WARP;
    d->warp = &d->warps[w];
    d->warp_epoch = d->barrier_epoch;
    d->spent = d->waited = 0;
    for (;;) {
        gather(d, warp, lanes, LANE_RUNNING, 0);
        if (d->group_size > 0)
            run_group(d);
        else if (!run_exchange(d, warp, lanes))
            return;
        if (d->fault.kind || d->out_of_memory) return;
    }
}

/* ---- A block -------------------------------------------------------------------------------- */

/* Reports the fault of a block with no lane that can run, and whose lanes do not all wait at one
 * barrier. */
static void stuck(struct model_device *d) {
    const model_lane *waiting = NULL;
    for (unsigned i = 0; i < d->launch->block; i++) { /* a lane at a shuffle is preferred */
        const model_lane *l = &d->lanes[i];
        if (l->state == LANE_SHUFFLE && (!waiting || waiting->state != LANE_SHUFFLE))
            waiting = l;
        else if (l->state == LANE_BARRIER && !waiting)
            waiting = l;
    }
    if (!waiting) return; /* not reached: then all lanes have ended, and nobody asks */
    fault_at(d, waiting->state == LANE_SHUFFLE ? MODEL_FAULT_SHUFFLE : MODEL_FAULT_BARRIER, 0, 0,
             waiting->site, waiting->index);
    for (unsigned i = 0; i < d->launch->block; i++) {
        const model_lane *l = &d->lanes[i];
        if (waiting->state == LANE_SHUFFLE && l->index / MODEL_WARP != waiting->index / MODEL_WARP)
            continue;
        if (l->state != waiting->state || l->site != waiting->site) {
            fault_other(d, l->state == LANE_DONE ? 0 : l->site, d->block, l->index);
            return;
        }
    }
    fault_other(d, waiting->site, d->block, waiting->index); /* they differ in the mask only */
}

void schedule_block(struct model_device *d) {
    TALLY_ASSERT(model_now == d && d->access_count == 0 && d->release_count <= d->release_capacity);
    const unsigned lanes = d->launch->block, warps = (lanes + MODEL_WARP - 1) / MODEL_WARP;

    d->step = 0;
    d->block_epoch = d->barrier_epoch = d->block_epochs[d->block] = d->epoch;
    d->block_steps = d->block_barriers = d->block_rounds = 0;
    d->acquired_count = 0;
    d->seen[d->block] = d->block;
    d->seen_at = 0;
    d->has_written = false;
    d->unsettled = 0;
    for (unsigned i = 0; i < lanes; i++) {
        model_lane *l = &d->lanes[i];
        *l = (model_lane){.stack = (uintptr_t)(d->stacks + i * STACK), .index = i, .x = i};
        if (d->launch->width) {
            const unsigned row = i / d->launch->width;
            l->x = i % d->launch->width;
            l->y = row % d->launch->height;
            l->z = row / d->launch->height;
        }
        fiber_prepare(&l->fiber, (void *)l->stack, STACK - i % MODEL_WARP * STAGGER, lane_main);
    }
    for (bool barrier = true; barrier;) {
        for (unsigned w = 0; w < warps; w++) {
            run_warp(d, d->launch->order ? warps - 1 - w : w);
            if (d->fault.kind || d->out_of_memory) {
                count_accesses(d);
                count_step(d, false);
                return;
            }
        }
        unsigned done = 0, waiting = 0;
        for (unsigned i = 0; i < lanes; i++) {
            const model_lane *l = &d->lanes[i];
            done += l->state == LANE_DONE;
            waiting += l->state == LANE_BARRIER && l->site == d->lanes[0].site;
        }
        barrier = waiting == lanes;
        if (!barrier && done != lanes) stuck(d);
        count_step(d, barrier);
        d->barrier_epoch = d->epoch;
        d->work += lanes;
        if (barrier && (d->step > d->barriers_most || d->work > d->work_most)) {
            /* the kernel passes barriers without end */
            fault_at(d, MODEL_FAULT_ENDLESS, 0, 0, d->lanes[0].site, 0);
            return;
        }
        if (barrier)
            for (unsigned i = 0; i < lanes; i++) {
                d->lanes[i].state = LANE_RUNNING;
                d->lanes[i].latest = d->lanes[i].before = 0;
            }
    }
}
