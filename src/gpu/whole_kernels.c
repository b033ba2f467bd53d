/* whole_kernels.c - see whole_kernels.h. */
#include "gpu/whole_kernels.h"

#include "gpu/cache.h"
#include "kernels/tuning.h"

#include <stdlib.h>
#include <string.h>

bool whole_has_alone(const struct queue *queue) {
    return !CPU_SHAPED(queue->block) && queue->facts->has_uniform_branches;
}

static tally_status find_kernels(struct queue *queue, const struct problem *p,
                                 const struct recipe *r, struct kernels *out) {
    struct gpu_program *program = NULL;
    tally_status s = recipe_build(queue->api, queue->gpu, queue->block, p, r, &program);
    if (s == TALLY_OK)
        s = queue->api->kernel(queue->gpu, program, is_tree(r) ? "leaves" : "reduce", &out->first);
    if (s == TALLY_OK && recipe_has_alone(r) && whole_has_alone(queue))
        s = queue->api->kernel(queue->gpu, program, "alone", &out->second);
    if (s == TALLY_OK && is_tree(r))
        s = queue->api->kernel(queue->gpu, program, "nodes", &out->second);
    if (s == TALLY_OK && is_tree(r))
        s = queue->api->kernel(queue->gpu, program, "part_leaves", &out->part_leaves);
    if (s == TALLY_OK && is_tree(r))
        s = queue->api->kernel(queue->gpu, program, "part_nodes", &out->part_nodes);
    return s;
}

static bool is_user(const struct known_user *known, const struct problem *p) {
    return known->source && known->type == p->type &&
           !known->commutative == !p->user->commutative &&
           strcmp(known->source, p->user->source) == 0;
}

/* Whatever is remembered was among the last KNOWN_USERS programs with a prelude that this struct gpu built, and
 * those are in its cache. */
_Static_assert(KNOWN_USERS <= GPU_CACHE_USERS, "cache.h");

/* The kernels of a user's operator; the last few are remembered by their source. */
static tally_status user_kernels(struct queue *queue, const struct problem *p,
                                 const struct recipe *r, struct kernels *out) {
    struct kernels found = {0};
    for (int i = 0; i < KNOWN_USERS && p->user->source; i++)
        if (is_user(&queue->users[i], p)) {
            TALLY_PATH("an operator that is known");
            *out = queue->users[i].kernels;
            return TALLY_OK;
        }
    tally_status s = find_kernels(queue, p, r, &found);
    if (s != TALLY_OK) return s;
    *out = found;
    char *source = p->user->source ? strdup(p->user->source) : NULL;
    if (!source) return TALLY_OK; /* then it is not remembered */
    struct known_user *slot = &queue->users[queue->next_user++ % KNOWN_USERS];
    free(slot->source);
    *slot = (struct known_user){source, p->user->commutative, p->type, found};
    return TALLY_OK;
}

tally_status whole_kernels(struct queue *queue, const struct problem *p, const struct recipe *r,
                           struct kernels *out) {
    if (is_tree(r) && p->user) return user_kernels(queue, p, r, out);
    struct kernels *known = &queue->known[recipe_number(r)][p->type];
    if (!known->first) {
        struct kernels found = {0};
        tally_status s = find_kernels(queue, p, r, &found);
        if (s != TALLY_OK) return s;
        *known = found;
    }
    *out = *known;
    return TALLY_OK;
}

tally_status whole_tree_kernels(struct queue *queue, const struct problem *p, struct kernels *out) {
    const struct recipe *recipe[MONOIDS];
    struct problem alone = *p;
    alone.monoids = MONOID_BIT(MONOID_TREE);
    recipe_choose(&alone, queue->facts, queue->block, recipe);
    return whole_kernels(queue, p, recipe[0], out);
}

tally_status whole_lower_kernel(struct queue *queue) {
    struct gpu_program *program = NULL;
    if (queue->lower) return TALLY_OK;
    tally_status s = recipe_build_plain(queue->api, queue->gpu, queue->block, "lower.cu", &program);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "lower", &queue->lower);
    return s;
}
