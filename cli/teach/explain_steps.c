/*
 * explain_steps.c - the accesses of a step as JSON: what each lane reads, writes and exchanges, and where.
 */
#include "common/json.h"
#include "teach/explain.h"

#include <string.h>

enum { WARP = 32, LINE = 128, BANK = 4, BANKS = 32 };

static const char *act_name(tally_ladder_act act) {
    static const char *const names[] = {[TALLY_LADDER_READ] = "read",
                                        [TALLY_LADDER_WRITE] = "write",
                                        [TALLY_LADDER_ATOMIC] = "atomic",
                                        [TALLY_LADDER_EXCHANGE] = "exchange",
                                        [TALLY_LADDER_APPLY] = "apply"};
    return names[act];
}

static void add_number(struct json_object *list, uint64_t number) {
    json_item(list, json_object_new_uint64(number));
}

/* Adds a value in decimal. NaN and infinities are texts, as JSON has no numbers for them. */
static void add_value(struct json_object *list, const tally_value *v) {
    struct json_object *box = json_new_object(), *value = NULL;
    json_result(box, v);
    if (json_object_object_get_ex(box, "value", &value)) json_item(list, json_object_get(value));
    json_object_put(box);
}

/* Adds the lines, or the banks, that lane l's access touches. */
static void add_lines(struct json_object *list, const tally_ladder_access *x, unsigned l) {
    const uint64_t from = x->element[l] * (x->size / x->elements), last = from + x->size - 1;
    if (x->shared)
        for (uint64_t word = from / BANK; word <= last / BANK; word++)
            add_number(list, word % BANKS);
    else
        add_number(list, from / LINE);
}

static void add_memory(struct json_object *object, const tally_ladder_access *x) {
    json_text(object, "memory", x->shared ? "shared" : "global");
    json_text(object, "array", x->array);
    json_count(object, "elements_each", x->elements);
    if (x->shared) {
        json_count(object, "bank_conflicts", x->bank_conflicts);
    } else {
        json_count(object, "transactions", x->transactions);
        json_count(object, "fewest_transactions", x->fewest_transactions);
    }
}

static struct json_object *json_access(const tally_ladder_access *x) {
    const bool memory =
        *x->array && x->act != TALLY_LADDER_APPLY && x->act != TALLY_LADDER_EXCHANGE;
    const bool gives = x->act == TALLY_LADDER_EXCHANGE || x->act == TALLY_LADDER_ATOMIC;
    struct json_object *object = json_new_object(), *threads = json_new_list();
    struct json_object *elements = json_new_list(), *values = json_new_list();
    struct json_object *lines = json_new_list(), *given = json_new_list();
    for (uint32_t lanes = x->lanes; lanes; lanes &= lanes - 1) {
        const unsigned l = (unsigned)__builtin_ctz(lanes);
        add_number(threads, x->warp * WARP + l);
        if (x->act == TALLY_LADDER_APPLY) continue;
        add_number(elements, x->act == TALLY_LADDER_EXCHANGE ? x->warp * WARP + x->element[l]
                                                             : x->element[l]);
        add_value(values, &x->value[l]);
        if (memory) add_lines(lines, x, l);
        if (gives) add_value(given, &x->given[l]);
    }
    json_text(object, "act", act_name(x->act));
    json_count(object, "warp", x->warp);
    if (memory) add_memory(object, x);
    json_member(object, "threads", threads);
    if (x->act != TALLY_LADDER_APPLY) {
        json_member(object, x->act == TALLY_LADDER_EXCHANGE ? "from_threads" : "elements",
                    json_object_get(elements));
        json_member(object, "values", json_object_get(values));
    }
    if (memory) json_member(object, x->shared ? "banks" : "lines", json_object_get(lines));
    if (gives)
        json_member(object, x->act == TALLY_LADDER_ATOMIC ? "found" : "given",
                    json_object_get(given));
    json_object_put(elements);
    json_object_put(values);
    json_object_put(lines);
    json_object_put(given);
    if (x->line) {
        json_text(object, "file", x->file);
        json_count(object, "line", x->line);
    }
    return object;
}

struct json_object *json_accesses(const tally_ladder_step *step) {
    struct json_object *list = json_new_list();
    for (size_t i = 0; i < step->accesses; i++)
        json_item(list, json_access(&step->access[i]));
    return list;
}
