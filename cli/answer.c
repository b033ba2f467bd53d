/*
 * answer.c - what a reduction prints: one value alone; several as name, tab, value; describe as an
 * aligned table; or a JSON object.
 */
#include "reduction.h"

#include "json.h"
#include "message.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

struct answer {
    size_t count;
    tally_value value[TALLY_VALUES_MAX];
    tally_op op[TALLY_VALUES_MAX];
};

/* Why there is no one value. */
static int tell_range(const struct reduction *r) {
    const tally_op op = r->problem.op;
    const bool rounds =
        op == TALLY_SUM || op == TALLY_NORM1 || op == TALLY_SUMSQ || op == TALLY_DOT;
    const char *type = tally_type_name(r->problem.type);
    return failed("the exact %s of these %" PRIu64 " %s numbers does not fit %s; %s", r->asked,
                  tally_state_count(r->state), type, *type == 'u' ? "u64" : "i64",
                  rounds ? "--out f64 rounds it"
                         : "reduce parts of the data, or convert them to f64");
}

static bool lower(struct reduction *r, struct answer *a) {
    tally_status status = tally_problem_values(&r->problem, &a->count);
    if (status == TALLY_OK) status = tally_state_value(r->state, a->value);
    if (status == TALLY_ERANGE) return tell_range(r), false;
    if (status == TALLY_EINVAL && tally_state_count(r->state) == 0)
        return failed("there is no %s of nothing: the input holds no number", r->asked), false;
    if (status != TALLY_OK) return failed("%s", tally_error()), false;
    for (size_t i = 0; i < a->count; i++)
        a->op[i] = tally_problem_value_op(&r->problem, i);
    return true;
}

/* Why the i-th of several values is none; "" where it is one. */
static const char *reason(const struct reduction *r, const struct answer *a, size_t i) {
    if (a->value[i].type) return "";
    if (tally_state_count(r->state) == 0) return "of nothing";
    return *tally_type_name(r->problem.type) == 'u' ? "it does not fit u64" : "it does not fit i64";
}

static void print_values(const struct reduction *r, const struct answer *a) {
    const bool is_table = r->problem.op == TALLY_DESCRIBE && r->op_count == 1;
    for (size_t i = 0; i < a->count; i++) {
        char text[32];
        const char *name = tally_op_name(a->op[i]), *why = reason(r, a, i);
        tally_value_print(&a->value[i], text, sizeof text);
        if (a->count == 1)
            puts(text);
        else if (!is_table)
            printf("%s\t%s\n", name, text);
        else
            printf(*why ? "%-6s  %s (%s)\n" : "%-6s  %s\n", name, text, why);
    }
}

static int print_json(const struct reduction *r, const struct answer *a) {
    tally_device_info device;
    if (tally_device_describe(r->device, &device) != TALLY_OK) return failed("%s", tally_error());
    struct json_object *object = json_new_object();
    json_text(object, "op", r->asked);
    if (a->count > 1) json_ops(object, "ops", a->op, a->count);
    json_text(object, "dtype", tally_type_name(r->problem.type));
    json_count(object, "n", tally_state_count(r->state));
    json_results(object, a->value, a->count);
    json_text(object, "device", device.spec);
    json_measure(object, "seconds", r->seconds);
    json_measure(object, "gbps", (double)r->bytes * 1e-9 / r->seconds);
    return json_print(object);
}

int answer_print(struct reduction *r) {
    struct answer a;
    if (!lower(r, &a)) return STATUS_FAILED;
    if (r->as_json) return print_json(r, &a);
    print_values(r, &a);
    return finish_output();
}
