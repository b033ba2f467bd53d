/* whole_kernels.c - see whole_kernels.h. */
#include "gpu/whole_kernels.h"

#include "gpu/cache.h"
#include "gpu/programs.h"
#include "kernels/tuning.h"

#include <stdlib.h>
#include <string.h>

bool whole_has_alone(const struct queue *queue) {
    return !CPU_SHAPED(queue->block) && queue->facts->has_uniform_branches;
}

enum { KERNELS = sizeof(struct kernels) / sizeof(struct gpu_kernel *) };

/* Returns the names of a program's kernels, in the order of struct kernels, and NULL for those that there are not. */
static const char *const *names_of(const struct queue *queue, const struct capability *c) {
    static const char *const tree[KERNELS] = {"leaves", "nodes", "part_leaves", "part_nodes"};
    static const char *const reduce[KERNELS] = {"reduce"};
    static const char *const alone[KERNELS] = {"reduce", "alone"};
    return capability_is_tree(c) ? tree : c->alone && whole_has_alone(queue) ? alone : reduce;
}

static struct kernels kernels_in(struct gpu_kernel *const *found) {
    return (struct kernels){found[0], found[1], found[2], found[3]};
}

static bool is_user(const struct known_user *known, const struct problem *p) {
    return known->source && known->type == p->type &&
           !known->commutative == !p->user->commutative &&
           strcmp(known->source, p->user->source) == 0;
}

/* Whatever is remembered was among the last KNOWN_USERS programs with a prelude that this struct gpu built, and
 * those are in its cache. */
_Static_assert(KNOWN_USERS <= GPU_CACHE_USERS, "cache.h");

/* Finds the kernels of a user's operator. The queue remembers the last KNOWN_USERS operators by their source. */
static tally_status user_kernels(struct queue *queue, const struct problem *p,
                                 const struct capability *c, struct kernels *out) {
    const char *const *names = names_of(queue, c);
    struct gpu_program *program = NULL;
    struct gpu_kernel *found[KERNELS] = {0};
    for (int i = 0; i < KNOWN_USERS && p->user->source; i++)
        if (is_user(&queue->users[i], p)) {
            TALLY_PATH("an operator that is known");
            *out = queue->users[i].kernels;
            return TALLY_OK;
        }
    tally_status s = program_build(queue, BY_WHOLE, c, p, false, &program);
    if (s == TALLY_OK) s = program_find(queue, program, names, KERNELS, found);
    if (s != TALLY_OK) return s;
    *out = kernels_in(found);
    char *source = p->user->source ? strdup(p->user->source) : NULL;
    if (!source) return TALLY_OK; /* then it is not remembered */
    struct known_user *slot = &queue->users[queue->next_user++ % KNOWN_USERS];
    free(slot->source);
    *slot = (struct known_user){source, p->user->commutative, p->type, *out};
    return TALLY_OK;
}

tally_status whole_kernels(struct queue *queue, const struct problem *p, const struct capability *c,
                           struct kernels *out) {
    struct gpu_kernel *const *found;
    if (capability_is_tree(c) && p->user) return user_kernels(queue, p, c, out);
    const tally_status s =
        program_kernels(queue, BY_WHOLE, c, p, false, names_of(queue, c), KERNELS, &found);
    if (s == TALLY_OK) *out = kernels_in(found);
    return s;
}

tally_status whole_tree_kernels(struct queue *queue, const struct problem *p, struct kernels *out) {
    const struct capability *tree[MONOIDS];
    struct problem alone = *p;
    alone.monoids = MONOID_BIT(MONOID_TREE);
    capability_cover(&alone, queue->facts, queue->block, tree);
    return whole_kernels(queue, p, tree[0], out);
}

tally_status whole_lower_kernel(struct queue *queue) {
    struct gpu_program *program = NULL;
    if (queue->lower) return TALLY_OK;
    tally_status s = program_build_plain(queue, "lower.cu", &program);
    if (s == TALLY_OK) s = queue->api->kernel(queue->gpu, program, "lower", &queue->lower);
    return s;
}
