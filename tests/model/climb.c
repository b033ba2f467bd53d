/*
 * climb.c - from elements to result, in the three ways to finish.
 *
 *   relaunch  the partials of one launch are the input of the next, two buffers in turn
 *   atomic    all blocks combine into one word
 *   host      the partials are read back and combined here
 */
#include "climb.h"

#include "base/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TRY(call)                                                                                  \
    do                                                                                             \
        if ((call) != MODEL_OK) {                                                                  \
            fprintf(stderr, "%s, %s, n = %zu, block %u: %s\n", info->name, tally_op_names[c->op],  \
                    c->n, c->block, model_error(device));                                          \
            goto out;                                                                              \
        }                                                                                          \
    while (0)

static const char *const tally_op_names[] = {"", "sum", "prod", "min", "max", "and", "or", "xor"};

const struct model_program *ladder_program(tally_type type, tally_op op) {
#define TYPE(NAME, ...) [TALLY_##NAME] = "TYPE_" #NAME,
#define OP(NAME, ...)   [TALLY_##NAME] = "OP_" #NAME,
    static const char *const types[] = {TALLY_TYPES(TYPE)}, *const ops[] = {TALLY_OPS(OP)};
    const char *const defines[] = {types[type] ? types[type] : "", ops[op] ? ops[op] : ""};
    return model_program_find("ladder/ladder.cu", defines, 2);
}

/* A kernel of the ladder's for elements of the arithmetic's type. */
static const model_kernel *kernel_of(const climb *c, const ladder_arithmetic *arithmetic,
                                     const char *name) {
    const struct model_program *program = ladder_program(arithmetic->type, c->op);
    return model_program_kernel(program, name);
}

int climb_rung(model_device *device, const climb *c, tally_value *out, model_counts *counts) {
    const ladder_rung_info *info = ladder_rung_of(c->rung);
    const ladder_arithmetic *instance = ladder_arithmetic_of(c->type, c->op);
    const size_t element = instance->element_size, size = instance->accumulator_size;
    void *x = NULL, *buffers[2] = {NULL, NULL}, *total = NULL, *board = NULL, *none = NULL;
    char *copy = malloc(c->n * element + size * (c->n + 1));
    uint64_t n = c->n;
    double accumulator[1] = {0}, wide[1] = {0}; /* room for any, aligned */
    int result = -1;

    unsigned grid = ladder_grid(c->rung, n, c->block, c->factor, MODEL_PROCESSORS);
    TRY(model_allocate(device, c->n * element, &x));
    TRY(model_write(device, x, c->x, c->n * element));
    TRY(model_allocate(device, (c->n + 1) * size, &buffers[0]));
    TRY(model_allocate(device, grid * size, &buffers[1]));
    TRY(model_allocate(device, sizeof(uint64_t), &total));
    TRY(model_allocate(device, (grid + 1) * instance->word_size, &board));
    TRY(model_fill(device, board, 0, instance->word_size));
    instance->neutral(accumulator);
    instance->to_word(wide, accumulator);
    TRY(model_write(device, total, wide, instance->word_size));

    const void *input = x;
    if (info->input == LADDER_COPY) { /* not among the counts: it is the same for all */
        unsigned blocks = (unsigned)((n + 255) / 256);
        void *arguments[] = {&x, &n, &buffers[0]};
        model_launch launch = {.kernel = kernel_of(c, instance, "load_elements"),
                               .grid = blocks + !blocks,
                               .block = 256,
                               .arguments = arguments};
        TRY(model_run(device, &launch, NULL));
        input = buffers[0];
    }
    for (unsigned level = 1;; level++) {
        void *partials = buffers[level % 2];
        uint32_t factor = c->factor;
        void *extra = info->extra == LADDER_FACTOR ? (void *)&factor : (void *)&board;
        void *arguments[] = {&input, &n, &partials, c->how == FINISH_ATOMIC ? &total : &none,
                             extra};
        const model_launch launch = {.kernel = kernel_of(c, instance, info->kernel),
                                     .grid = grid,
                                     .block = c->block,
                                     .arguments = arguments,
                                     .on_step = c->on_step,
                                     .context = c->context};
        TRY(model_run(device, &launch, counts));
        n = info->extra == LADDER_BOARD ? 1 : grid;
        if (c->how == FINISH_ATOMIC) {
            TRY(model_read(device, wide, total, instance->word_size));
            instance->from_word(accumulator, wide);
            break;
        }
        if (n == 1) {
            TRY(model_read(device, accumulator, partials, size));
            break;
        }
        if (c->how == FINISH_HOST) {
            TRY(model_read(device, copy, partials, n * size));
            memcpy(accumulator, copy, size);
            for (size_t i = 1; i < n; i++) {
                memcpy(wide, copy + i * size, size);
                instance->combine(accumulator, wide);
            }
            break;
        }
        instance = ladder_arithmetic_of(instance->accumulator_type, c->op);
        input = partials;
        grid = ladder_grid(c->rung, n, c->block, c->factor, MODEL_PROCESSORS);
    }
    ladder_result(ladder_arithmetic_of(c->type, c->op), accumulator, c->n, out);
    TRY(model_read(device, copy, x, c->n * element));
    if (c->n && memcmp(copy, c->x, c->n * element) != 0)
        fprintf(stderr, "%s changed the elements\n", info->name);
    else
        result = 0;
out:
    free(copy);
    model_free(device, x);
    model_free(device, buffers[0]);
    model_free(device, buffers[1]);
    model_free(device, total);
    model_free(device, board);
    return result;
}
