/* recipe.c - see recipe.h. */
#include "gpu/recipe.h"

#include "gpu/source.h"
#include "kernels/request.h"
#include "kernels/tuning.h"
#include "status.h"
#include "types.h"

#include <stdio.h>
#include <stdlib.h>

#define DEFINES_MAX 6

struct recipe {
    const char *file;
    char text[DEFINES_MAX][24];
    const char *define[DEFINES_MAX];
    size_t defines;
};

static void define(struct recipe *c, const char *format, const char *name) {
    char *text = c->text[c->defines], *at = text;
    snprintf(text, sizeof c->text[0], format, name);
    for (; *at && *at != '='; at++)
        if (*at >= 'a' && *at <= 'z') *at = (char)(*at - 'a' + 'A');
    c->define[c->defines++] = text;
}

/* What to compile for a part: in the order in which compiled kernels are listed, alphabetical. NULL where
 * there is no kernel for it. */
static void find_recipe(const struct problem *p, enum part part, unsigned block_size,
                        struct recipe *c) {
    static const char *const words[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    const int floats = type_is_float(p->type);
    const char *type = tally_type_name(p->type), *op = "sum";
    c->file = NULL;
    c->defines = 0;
    if (block_size != GPU_BLOCK) {
        char block[12];
        snprintf(block, sizeof block, "%u", block_size);
        define(c, "BLOCK=%s", block);
    }
    switch (part) {
    case PART_SUM:
        c->file = floats ? "sum.cu" : "integer_sum.cu";
        break;
    case PART_FAST:
        c->file = "fast_sum.cu";
        break;
    case PART_FACTORS:
        c->file = "integer_product.cu";
        op = "prod";
        break;
    case PART_EXTREMES:
        if (!(p->extremes & WANT_INDEX)) c->file = "order.cu";
        op = "min"; /* min and max are one kernel */
        break;
    case PART_BITS:
        c->file = "bits.cu";
        op = tally_op_name(p->bits_op);
        type = words[tally_type_size(p->type)]; /* only the size counts */
        break;
    case PART_TREE:
        /* For a user's operator: something whose partial results are elements. */
        c->file = "tree.cu";
        op = !p->user ? "prod" : floats ? "sum" : "and";
        break;
    default:
        break;
    }
    define(c, "OP_%s", op);
    if (part == PART_TREE && p->user && !p->user->commutative) define(c, "%s", "ORDERED");
    define(c, "TYPE_%s", type);
    if (part == PART_TREE && p->user) define(c, "%s", "USER_OPERATOR");
}

tally_status recipe_build(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                          const struct problem *p, enum part part, struct gpu_program **out) {
    const struct gpu_facts *facts = api->facts(gpu);
    const int user = part == PART_TREE && p->user;
    struct recipe c;
    char *prelude = NULL;
    tally_status s = TALLY_OK;
    find_recipe(p, part, block, &c);
    if (!c.file)
        return fail(TALLY_EUNSUPPORTED, "%s has no kernel for this reduction", facts->name);
    if (p->type == TALLY_F64 && part != PART_EXTREMES && part != PART_BITS && !facts->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", facts->name);
    if (!facts->atomics64) return fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics", facts->name);
    if (user) s = source_check(p);
    if (s == TALLY_OK && user) s = source_prelude(p, &prelude);
    if (s == TALLY_OK) s = api->build(gpu, c.file, prelude, c.define, c.defines, out);
    free(prelude);
    return s;
}

int recipe_gives_value(const struct problem *p) {
    if (p->values != 1) return 0;
    switch (p->value[0].op) {
    case TALLY_SUM: /* an integer sum only as an integer */
        return type_is_float(p->type) || !type_is_float(p->value[0].type);
    case TALLY_PROD:
    case TALLY_MIN:
    case TALLY_MAX:
    case TALLY_AND:
    case TALLY_OR:
    case TALLY_XOR:
    case TALLY_USER:
        return 1;
    default:
        return 0;
    }
}

/* Mantissa and bias of a floating type; 0 for others. */
static uint32_t request_type(tally_type type) {
    switch (type) {
    case TALLY_F16:
        return REQUEST_FLOAT(TALLY_F16, 10, 15);
    case TALLY_BF16:
        return REQUEST_FLOAT(TALLY_BF16, 7, 127);
    case TALLY_F32:
        return REQUEST_FLOAT(TALLY_F32, 23, 127);
    case TALLY_F64:
        return REQUEST_FLOAT(TALLY_F64, 52, 1023);
    default:
        return (uint32_t)type;
    }
}

uint32_t recipe_request(const struct problem *p) {
    return request_type(p->value[0].type) | (p->value[0].op == TALLY_MIN ? REQUEST_LEAST : 0);
}
