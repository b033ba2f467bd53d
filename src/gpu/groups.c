/* groups.c - see groups.h. */
#include "gpu/groups.h"

#include "base/types.h"
#include "gpu/capability.h"
#include "gpu/programs.h"
#include "gpu/tuning.h"
#include "kernels/tuning.h"

#include "kernels/groups.h"

#include <string.h>

#define ELEMENTS_MOST ((size_t)1 << 31) /* that groups' words have room for: kernels/groups.cu */
#define GROUPS_MOST   ((size_t)1 << 31)
/* The digits of 16 bits that a copy of a float's sum should have, at least. 9 digits hold f64 whose exponents
 * are up to 9 * 16 - 53 = 91 apart; 5 digits hold shorter floats that are up to 5 * 16 - 24 = 56 apart. */
#define DIGITS_WANTED(bits) ((bits) == 64 ? 9u : 5u)
#define TILE_A_THREAD       8 /* elements: kernels/groups.cu */

/* ---- Sizes ----------------------------------------------------------------------------- */

static unsigned bits_of(const struct shaped *s) {
    return 8 * (unsigned)type_size(s->p->type);
}

/* Returns 1 if the kernels count a sum's elements, too, for a mean; else 0. */
static unsigned is_counted(const struct shaped *s) {
    return (unsigned)problem_asks(s->p, TALLY_MEAN);
}

static bool is_float_sum(const struct capability *f, const struct problem *p) {
    return f->words == 0 && type_is_float(p->type);
}

/* Returns the bytes of a copy of a group's cells. A sum has digits of 32 bits if `wide`, else of 16 bits: a float's sum
 * as many as DIGITS_WANTED() says. */
static unsigned cell_bytes(const struct capability *f, const struct shaped *s, bool wide) {
    const unsigned bits = bits_of(s), digits = wide                    ? GROUPS_WIDE(bits)
                                               : is_float_sum(f, s->p) ? DIGITS_WANTED(bits)
                                                                       : GROUPS_DIGITS(bits);
    if (f->words == 0) return f->cell * (digits + is_counted(s));
    return (f->words - f->twice) * (f->cell ? f->cell : bits == 64 ? 8 : 4);
}

static bool takes(const struct queue *queue, const struct shaped *s) {
    const struct problem *p = s->p;
    if (CPU_SHAPED(queue->block) || !queue->facts->has_uniform_branches) return false;
    if (s->cut != TALLY_GROUPS || s->sorted || !shape_is_flat(s) || !capability_for(BY_GROUPS, p))
        return false;
    if (p->values > GROUPS_VALUES || s->n == 0 || s->n >= ELEMENTS_MOST) return false;
    return s->results < GROUPS_MOST &&
           (s->results <= GROUPS_FREE || s->n / s->results >= GROUPS_MEAN_LEAST);
}

static uint64_t words(const struct queue *queue, const struct shaped *s) {
    const unsigned own = capability_for(BY_GROUPS, s->p)->words;
    (void)queue;
    return (own ? own : GROUPS_RECORD(type_is_float(s->p->type), bits_of(s)) + 2) *
           (uint64_t)s->results;
}

/* ---- Launches ------------------------------------------------------------------------------ */

enum { FEW, MANY, LOWER, SLICES, ZEROS, INDICES, KERNELS };
static const char *const names[KERNELS] = {"few",    "many",  "lower_groups",
                                           "slices", "zeros", "indices"};

static bool has_kernel(const struct capability *f, const struct problem *p, int kernel) {
    return kernel == SLICES    ? f->words == 0
           : kernel == ZEROS   ? is_float_sum(f, p)
           : kernel == INDICES ? f->twice
                               : true;
}

static tally_status find_kernels(struct queue *queue, const struct shaped *s,
                                 struct gpu_kernel *const **out) {
    const struct capability *f = capability_for(BY_GROUPS, s->p);
    const char *own[KERNELS];
    for (int i = 0; i < KERNELS; i++)
        own[i] = has_kernel(f, s->p, i) ? names[i] : NULL;
    return program_kernels(queue, BY_GROUPS, f, s->p, false, own, KERNELS, out);
}

static tally_status prepare(struct queue *queue, const struct shaped *s) {
    struct gpu_kernel *const *found;
    return find_kernels(queue, s, &found);
}

#if defined(TALLY_DEBUG)
static const char *const kernel_names[KERNELS] = {
    [FEW] = "few",       [MANY] = "many",   [LOWER] = "lower_groups",
    [SLICES] = "slices", [ZEROS] = "zeros", [INDICES] = "indices"};
static const struct path_axis kernel_axis = PATH_AXIS(kernel_names);
static const char *never_groups(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why) return why;
    if (!capability_for(BY_GROUPS, &p)) return "groups have no fold for it";
    return has_kernel(capability_for(BY_GROUPS, &p), &p, (int)at[0])
               ? NULL
               : "the fold has no such kernel";
}
PATH_TABLE(groups_paths, "groups on a GPU", never_groups, &kernel_axis, &path_ops, &path_types);
#endif

static void make_plan(const struct parts_run *run, struct groups_plan *plan) {
    const struct parts_call *call = run->call;
    const struct shaped *s = call->s;
    memset(plan, 0, sizeof *plan);
    plan->n = s->n;
    plan->count = s->results;
    plan->x = call->first_x;
    plan->mask = call->first_mask;
    plan->out_first = s->out_first;
    plan->number_first = s->number_first;
    plan->values = call->values;
    plan->first_value = call->only;
    plan->several = s->p->values > 1;
    memcpy(plan->value, run->plan.lower.value, call->values * sizeof *plan->value);
    memcpy(plan->out, run->plan.out, call->values * sizeof *plan->out);
    plan->left = run->plan.left;
    plan->records = run->own;
    plan->ids = (uint32_t)s->ids_type;
    plan->masked = call->mask != NULL;
    plan->skip_outside = s->skip_outside != 0;
    plan->counted = is_counted(s);
    plan->flip = problem_flip(s->p);
}

/* Plans how groups' cells lie in blocks' shared memory; returns the kernel that is to be used: MANY
 * where they do not fit there. */
static int share_out(const struct capability *f, const struct shaped *s, struct groups_plan *plan) {
    const uint64_t room = GROUPS_CELLS * 4;
    const bool wide = f->words == 0 && cell_bytes(f, s, false) * s->results > room;
    const uint64_t each = cell_bytes(f, s, wide);
    for (plan->slices = 1; plan->slices <= (wide ? GROUPS_SLICES : 1); plan->slices++) {
        plan->each = (uint32_t)((s->results + plan->slices - 1) / plan->slices);
        if (each * plan->each <= room) break;
    }
    if (each * plan->each > room) return MANY;
    plan->copies = 1;
    while (plan->copies < GROUPS_COPIES && 2 * plan->copies * each * plan->each <= room)
        plan->copies *= 2;
    plan->digits = wide ? GROUPS_WIDE(bits_of(s)) : GROUPS_DIGITS(bits_of(s));
    if (is_float_sum(f, s->p) && !wide) {
        const uint64_t digits = room / 4 / ((uint64_t)plan->copies * plan->each) - is_counted(s);
        const unsigned most = GROUPS_DIGITS_MOST(bits_of(s));
        /* Copies lie an odd number of cells apart (groups.cu), so an odd number of digits wastes no cell. */
        plan->digits = digits > most ? most : (unsigned)(digits - 1) | 1;
    }
    return wide ? SLICES : FEW;
}

static unsigned grid_of(const struct queue *queue, uint64_t things, unsigned each,
                        unsigned a_unit) {
    const unsigned units = queue_units(queue);
    const uint64_t blocks = (things + (uint64_t)queue->block * each - 1) / (queue->block * each);
    return blocks < (uint64_t)units * a_unit ? (unsigned)blocks : units * a_unit;
}

static tally_status enqueue(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *call = run->call;
    const struct shaped *s = call->s;
    const struct capability *f = capability_for(BY_GROUPS, s->p);
    struct groups_plan plan;
    make_plan(run, &plan);
    const int which = share_out(f, s, &plan);
    const bool is_few = which != MANY;
    struct gpu_kernel *const *kernel;
    tally_status status = find_kernels(queue, s, &kernel);
    if (status != TALLY_OK) return status;
    const struct gpu_argument adding[] = {BUFFER(call->x), BUFFER(call->ids), BUFFER(call->mask),
                                          BUFFER(call->work), VALUE(plan)};
    const struct gpu_argument lowering[] = {BUFFER(call->work), BUFFER(call->out), VALUE(plan)};
    const struct gpu_argument looking[] = {BUFFER(call->x),    BUFFER(call->ids),
                                           BUFFER(call->mask), BUFFER(call->work),
                                           BUFFER(call->out),  VALUE(plan)};
    unsigned grid =
        grid_of(queue, s->n, TILE_A_THREAD, is_few ? GROUPS_FEW_A_UNIT : GROUPS_MANY_A_UNIT);
    if (is_few) grid = grid < plan.slices ? plan.slices : grid / plan.slices * plan.slices;
    TALLY_PATH_OF_VALUE(groups_paths, s->p, (unsigned)which);
    TALLY_PATH_OF_VALUE(groups_paths, s->p, LOWER);
    if (f->twice) TALLY_PATH_OF_VALUE(groups_paths, s->p, INDICES);
    if (is_float_sum(f, s->p)) TALLY_PATH_OF_VALUE(groups_paths, s->p, ZEROS);
    status = queue->api->launch(queue->gpu, kernel[which], grid, queue->block, adding, 5);
    if (status == TALLY_OK && f->twice)
        status = queue->api->launch(queue->gpu, kernel[INDICES],
                                    grid_of(queue, s->n, TILE_A_THREAD, GROUPS_FEW_A_UNIT),
                                    queue->block, adding, 5);
    if (status == TALLY_OK)
        status = queue->api->launch(queue->gpu, kernel[LOWER],
                                    grid_of(queue, s->results, 1, GROUPS_MANY_A_UNIT), queue->block,
                                    lowering, 3);
    if (status == TALLY_OK && is_float_sum(f, s->p))
        status = queue->api->launch(queue->gpu, kernel[ZEROS], grid, queue->block, looking, 6);
    return status;
}

const struct strategy groups_strategy = {
    .takes = takes, .words = words, .prepare = prepare, .enqueue = enqueue, .unordered = true};
