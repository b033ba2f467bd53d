/* groups.c - see groups.h. */
#include "gpu/groups.h"

#include "kernels/tuning.h"
#include "types.h"

#include "kernels/groups.h"

#include <string.h>

#define ELEMENTS_MOST ((size_t)1 << 31) /* kernels/groups.cu: words have room for so many */
#define GROUPS_MOST   ((size_t)1 << 31)
#define GROUPS_FREE   ((size_t)1 << 16) /* more groups than this are to have some elements each */
#define MEAN_LEAST    8
#define COPIES_MOST   32
#define TILE_A_THREAD 8 /* kernels/groups.cu */
#define FEW_A_UNIT    3 /* blocks that a multiprocessor has at once */
#define MANY_A_UNIT   32

static unsigned bits_of(const struct shaped *s) {
    return 8 * (unsigned)type_size(s->p->type);
}

static unsigned is_counted(const struct shaped *s) {
    return (unsigned)problem_asks(s->p, TALLY_MEAN);
}

static bool takes(const struct queue *queue, const struct shaped *s) {
    const struct problem *p = s->p;
    if (CPU_SHAPED(queue->block) || !queue->facts->has_uniform_branches) return false;
    if (s->cut != TALLY_GROUPS || s->sorted || p->parts != PART_BIT(PART_SUM)) return false;
    if (p->values > GROUPS_VALUES || s->n == 0 || s->n >= ELEMENTS_MOST) return false;
    if (s->results >= GROUPS_MOST || (s->results > GROUPS_FREE && s->n / s->results < MEAN_LEAST))
        return false;
    for (unsigned v = 0; v < p->values; v++) {
        const bool of_floats = type_is_float(p->type);
        if (of_floats != type_is_float(p->value[v].type)) return false;
        if (p->value[v].op != TALLY_SUM && !(of_floats && p->value[v].op == TALLY_MEAN))
            return false;
    }
    return true;
}

static uint64_t words(const struct queue *queue, const struct shaped *s) {
    (void)queue;
    return (GROUPS_RECORD(type_is_float(s->p->type), bits_of(s)) + 2) * (uint64_t)s->results;
}

enum { FEW, MANY, LOWER, ZEROS, KERNELS };
static const char *const names[KERNELS] = {"few", "many", "lower_groups", "zeros"};

static tally_status prepare(struct queue *queue, const struct shaped *s) {
    static const char *const defines[] = {"OP_SUM"};
    const tally_type type = s->p->type;
    struct gpu_kernel *found[KERNELS] = {0};
    struct gpu_program *program = NULL;
    if (queue->groups[type][0]) return TALLY_OK;
    tally_status status = recipe_build_typed(queue->api, queue->gpu, queue->block, "groups.cu",
                                             defines, 1, type, &program);
    for (unsigned i = 0; i < KERNELS && status == TALLY_OK; i++)
        status = queue->api->kernel(queue->gpu, program, names[i], &found[i]);
    if (status == TALLY_OK) memcpy(queue->groups[type], found, sizeof found);
    return status;
}

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
    memcpy(plan->value, run->plan.lower.value, call->values * sizeof *plan->value);
    memcpy(plan->out, run->plan.out, call->values * sizeof *plan->out);
    plan->left = run->plan.left;
    plan->records = run->own;
    plan->ids = (uint32_t)s->ids_type;
    plan->masked = call->mask != NULL;
    plan->skip_outside = s->skip_outside != 0;
    plan->counted = is_counted(s);
}

static unsigned grid_of(const struct queue *queue, uint64_t things, unsigned each,
                        unsigned a_unit) {
    const unsigned units = queue->facts->units ? queue->facts->units : 1;
    const uint64_t blocks = (things + (uint64_t)queue->block * each - 1) / (queue->block * each);
    return blocks < (uint64_t)units * a_unit ? (unsigned)blocks : units * a_unit;
}

static tally_status enqueue(struct parts_run *run) {
    struct queue *queue = run->queue;
    const struct parts_call *call = run->call;
    const struct shaped *s = call->s;
    const uint64_t cells = (GROUPS_DIGITS(type_is_float(s->p->type), bits_of(s)) + is_counted(s)) *
                           (uint64_t)s->results;
    const bool is_few = cells <= GROUPS_CELLS;
    struct groups_plan plan;
    make_plan(run, &plan);
    for (plan.copies = 1; plan.copies < COPIES_MOST && 2 * plan.copies * cells <= GROUPS_CELLS;)
        plan.copies *= 2;
    tally_status status = prepare(queue, s);
    if (status != TALLY_OK) return status;
    struct gpu_kernel *const *kernel = queue->groups[s->p->type];
    const struct gpu_argument adding[] = {PIECE(call->x), PIECE(call->ids), PIECE(call->mask),
                                          PIECE(call->work), VALUE(plan)};
    const struct gpu_argument lowering[] = {PIECE(call->work), PIECE(call->out), VALUE(plan)};
    const struct gpu_argument looking[] = {PIECE(call->x),    PIECE(call->ids), PIECE(call->mask),
                                           PIECE(call->work), PIECE(call->out), VALUE(plan)};
    const unsigned grid = grid_of(queue, s->n, TILE_A_THREAD, is_few ? FEW_A_UNIT : MANY_A_UNIT);
    status =
        queue->api->launch(queue->gpu, kernel[is_few ? FEW : MANY], grid, queue->block, adding, 5);
    if (status == TALLY_OK)
        status = queue->api->launch(queue->gpu, kernel[LOWER],
                                    grid_of(queue, s->results, 1, MANY_A_UNIT), queue->block,
                                    lowering, 3);
    if (status == TALLY_OK && type_is_float(s->p->type))
        status = queue->api->launch(queue->gpu, kernel[ZEROS], grid, queue->block, looking, 6);
    return status;
}

const struct strategy groups_strategy = {takes, words, prepare, enqueue, true};
