/* quick.c - see quick.h. */
#include "gpu/quick.h"

#include "base/types.h"
#include "gpu/part_kernels.h"
#include "gpu/tuning.h"
#include "problem/tree.h"

/* Returns whether a value can be worked out by a thread alone. */
static bool is_quick_value(const struct problem *p, unsigned v) {
    switch (p->value[v].op) {
    case TALLY_SUM:
        return !problem_has(p, MONOID_FAST) &&
               type_is_float(p->type) == type_is_float(p->value[v].type);
    case TALLY_MEAN:
        return !problem_has(p, MONOID_FAST) && type_is_float(p->type);
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_ARGMIN:
    case TALLY_ARGMAX:
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR:
    case TALLY_COUNT:
    case TALLY_NONZERO:
    case TALLY_ANY:
    case TALLY_ALL:
        return true;
    default:
        return false;
    }
}

/* Returns how many elements a row for `quick` may have; 0 where all rows have more. *team is the threads for a row:
 * 1, or a warp. */
static unsigned quick_most(const struct queue *queue, const struct shaped *s, unsigned *team) {
    const uint64_t mean = s->results ? parts_elements(s) / s->results : 0;
    unsigned most = QUICK_THREAD_MOST;
    *team = 1;
    const bool has_columns = s->keeps > 0 && s->kept[s->keeps - 1].x == 1;
    if (has_columns && s->kept[s->keeps - 1].length >= TREE_LANES && s->results >= QUICK_WARP_ROWS)
        most = QUICK_COLUMN;
    else if (!(has_columns && s->cut != TALLY_AXES) && queue->block >= TREE_LANES &&
             mean >= TREE_LANES && (s->results < QUICK_THREAD_ROWS || mean > QUICK_THREAD_MEAN)) {
        *team = TREE_LANES;
        most = s->results >= QUICK_WARP_ROWS ? QUICK_WARP_MOST : QUICK_FEW_MOST;
    }
    return s->cut == TALLY_AXES && s->each > most ? 0 : most;
}

bool quick_gives_values(const struct problem *p) {
    for (unsigned v = 0; v < p->values; v++)
        if (!is_quick_value(p, v)) return false;
    return true;
}

static bool takes(const struct queue *queue, const struct shaped *s) {
    unsigned team;
    return quick_gives_values(s->p) && quick_most(queue, s, &team) > 0;
}

#if defined(TALLY_DEBUG)
enum { A_THREAD, A_WARP, A_COLUMN };
static const char *const way_names[] = {
    [A_THREAD] = "a thread a row", [A_WARP] = "a warp a row", [A_COLUMN] = "a thread a column"};
static const struct path_axis way_axis = PATH_AXIS(way_names);
static const char *never_quick(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    return is_quick_value(&p, 0) ? NULL : "a thread alone cannot work it out";
}
PATH_TABLE(quick_paths, "short rows on a GPU", never_quick, &way_axis, &path_ops, &path_types);
#endif

static tally_status enqueue(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *c = run->call;
    unsigned team;
    run->plan.quick_most = quick_most(queue, c->s, &team);
    run->plan.team = team;
    TALLY_PATH_OF_VALUE(quick_paths, c->s->p,
                        team > 1                               ? A_WARP
                        : run->plan.quick_most == QUICK_COLUMN ? A_COLUMN
                                                               : A_THREAD);
    const uint64_t threads = (uint64_t)c->s->results * team;
    const struct gpu_argument taking[] = {BUFFER(c->x),    BUFFER(c->mask), BUFFER(run->offsets),
                                          BUFFER(c->work), BUFFER(c->out),  VALUE(run->plan)};
    return part_launch(queue, PART_QUICK,
                       parts_grid(queue, (threads + queue->block - 1) / queue->block), taking, 6);
}

const struct strategy quick_strategy = {.takes = takes, .enqueue = enqueue};
