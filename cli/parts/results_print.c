/*
 * results_print.c - results of a reduction in parts as lines of text - several values with tabs between them, groups behind
 * their ids - or as members of a JSON object.
 */
#include "parts/results_print.h"

#include <inttypes.h>
#include <stdio.h>

struct printing {
    const struct results *results;
    struct results_groups groups;
    struct json_object *value[TALLY_VALUES_MAX], *bits[TALLY_VALUES_MAX], *into;
};

/* ---- Text ---- */

void results_print_single(const struct results *r, const tally_value *value, bool is_table) {
    char text[32];
    for (size_t v = 0; v < r->values; v++) {
        results_text(&value[v], text);
        if (r->values == 1)
            puts(text);
        else
            printf(is_table ? "%-6s  %s\n" : "%s\t%s\n", tally_op_name(r->op[v]), text);
    }
}

static bool print_line(void *context, uint64_t number, const tally_value *value) {
    const struct printing *p = context;
    char text[32];
    if (p->groups.count) {
        if (!p->groups.count[number]) return true;
        printf("%" PRIu64 "\t", p->groups.label ? p->groups.label[number] : number);
    }
    for (size_t v = 0; v < p->results->values; v++) {
        if (v) putchar('\t');
        fputs(results_text(&value[v], text), stdout);
    }
    putchar('\n');
    return !ferror(stdout);
}

bool results_print_lines(struct results *r, const struct results_groups *groups) {
    struct printing p = {.results = r, .groups = *groups};
    if (r->values > 1) {
        if (groups->count) fputs("id\t", stdout);
        for (size_t v = 0; v < r->values; v++)
            printf("%s%s", v ? "\t" : "", tally_op_name(r->op[v]));
        putchar('\n');
    }
    return results_each(r, print_line, &p) || ferror(stdout);
}

/* ---- JSON ---- */

struct json_object *results_lengths(const uint64_t *length, unsigned dims) {
    struct json_object *list = json_new_list();
    for (unsigned d = 0; d < dims; d++)
        json_item(list, json_object_new_uint64(length[d]));
    return list;
}

static bool add_single(void *context, uint64_t number, const tally_value *value) {
    const struct printing *p = context;
    (void)number;
    json_results(p->into, value, NULL, p->results->values);
    return true;
}

static bool add_group(void *context, uint64_t number, const tally_value *value) {
    const struct printing *p = context;
    if (!p->groups.count[number]) return true;
    struct json_object *group = json_new_object();
    json_count(group, "key", p->groups.label ? p->groups.label[number] : number);
    json_count(group, "n", p->groups.count[number]);
    json_results(group, value, NULL, p->results->values);
    json_item(p->into, group);
    return true;
}

static bool add_result(void *context, uint64_t number, const tally_value *value) {
    const struct printing *p = context;
    (void)number;
    for (size_t v = 0; v < p->results->values; v++)
        json_items(p->value[v], p->bits[v], &value[v]);
    return true;
}

/* Puts the results into a list, or several values into a list of such lists. An object that is put
 * into another must not be used any more: it is freed if there is no memory for it. */
static bool put_lists(struct results *r, struct printing *p, struct json_object *object) {
    for (size_t v = 0; v < r->values; v++) {
        p->value[v] = json_new_list();
        p->bits[v] = json_new_list();
    }
    const bool done = results_each(r, add_result, p);
    struct json_object *value = r->values == 1 ? p->value[0] : json_new_list();
    struct json_object *bits = r->values == 1 ? p->bits[0] : json_new_list();
    for (size_t v = 0; v < r->values && r->values > 1; v++) {
        json_item(value, p->value[v]);
        json_item(bits, p->bits[v]);
    }
    json_member(object, "value", value);
    json_member(object, "bits", bits);
    return done;
}

bool results_to_json(struct results *r, unsigned dims, const uint64_t *length,
                     const struct results_groups *groups, const char *output,
                     struct json_object *object) {
    struct printing p = {.results = r, .groups = *groups, .into = object};
    struct json_object *types = json_new_list();
    json_member(object, "results", results_lengths(length, dims));
    for (size_t v = 0; v < r->values; v++)
        json_item(types, json_new_text(tally_type_name(r->type[v])));
    json_member(object, "types", types);
    if (output) {
        json_text(object, "output", output);
        return true;
    }
    if (!dims) return results_each(r, add_single, &p);
    if (!groups->count) return put_lists(r, &p, object);
    p.into = json_new_list();
    const bool done = results_each(r, add_group, &p);
    json_member(object, "groups", p.into);
    return done;
}
