/* recipe.c - see recipe.h. */
#include "gpu/recipe.h"

#include "gpu/source.h"
#include "kernels/request.h"
#include "kernels/tuning.h"
#include "status.h"

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

/* What to compile for a reduction: in the order in which compiled kernels are listed, alphabetical. */
static void find_recipe(const struct reduction *r, unsigned block_size, struct recipe *c) {
    static const char *const files[] = {
        [METHOD_FLOAT_SUM] = "sum.cu",
        [METHOD_FAST_SUM] = "fast_sum.cu",
        [METHOD_INTEGER_SUM] = "integer_sum.cu",
        [METHOD_INTEGER_PROD] = "integer_product.cu",
        [METHOD_ORDER] = "order.cu",
        [METHOD_BITS] = "bits.cu",
        [METHOD_TREE] = "tree.cu",
    };
    static const char *const words[] = {[1] = "u8", [2] = "u16", [4] = "u32", [8] = "u64"};
    const char *type = tally_type_name(r->type), *op;
    c->file = files[r->method];
    c->defines = 0;
    if (block_size != GPU_BLOCK) {
        char block[12];
        snprintf(block, sizeof block, "%u", block_size);
        define(c, "BLOCK=%s", block);
    }
    switch (r->method) {
    case METHOD_ORDER:
        op = "min"; /* min and max are one kernel */
        break;
    case METHOD_BITS:
        op = tally_op_name(r->op);
        type = words[tally_type_size(r->type)]; /* only the size counts */
        break;
    case METHOD_TREE:
        /* For a user's operator: something whose partial results are elements. */
        op = !r->user ? "prod" : type_is_float(r->type) ? "sum" : "and";
        break;
    default:
        op = tally_op_name(r->op);
    }
    define(c, "OP_%s", op);
    if (r->user && !r->user->commutative) define(c, "%s", "ORDERED");
    define(c, "TYPE_%s", type);
    if (r->user) define(c, "%s", "USER_OPERATOR");
}

tally_status recipe_build(const struct gpu_api *api, struct gpu *gpu, unsigned block,
                          const struct reduction *r, struct gpu_program **out) {
    const struct gpu_facts *facts = api->facts(gpu);
    struct recipe c;
    char *prelude = NULL;
    tally_status s = TALLY_OK;
    find_recipe(r, block, &c);
    if (r->type == TALLY_F64 && r->method != METHOD_ORDER && r->method != METHOD_BITS &&
        !facts->doubles)
        return fail(TALLY_EUNSUPPORTED, "%s has no f64 arithmetic", facts->name);
    if (!facts->atomics64) return fail(TALLY_EUNSUPPORTED, "%s has no 64-bit atomics", facts->name);
    if (r->user) s = source_check(r);
    if (s == TALLY_OK && r->user) s = source_prelude(r, &prelude);
    if (s == TALLY_OK) s = api->build(gpu, c.file, prelude, c.define, c.defines, out);
    free(prelude);
    return s;
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

uint32_t recipe_request(const struct reduction *r) {
    return request_type(r->out) | (r->op == TALLY_MIN ? REQUEST_LEAST : 0);
}
