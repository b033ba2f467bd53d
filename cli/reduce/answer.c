/*
 * answer.c - what a reduction prints: one value alone; several as name, tab, value; describe as an
 * aligned table; groups as key, tab, values; or a JSON object.
 */
#include "reduce/reduction.h"

#include "common/json.h"
#include "common/message.h"
#include "common/types.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Bytes of an integer's digits: 2^64 squares of 64-bit integers add up to less than 2^192, 58 digits. */
enum { WHOLE_TEXT = 64 };

struct answer {
    uint64_t n;
    size_t count;
    tally_value value[TALLY_VALUES_MAX];
    tally_op op[TALLY_VALUES_MAX];
    char whole[TALLY_VALUES_MAX][WHOLE_TEXT]; /* a value that does not fit its type; else "" */
    char money[MONEY_TEXT];                   /* the one value, of decimals; else "" */
};

/* ---- Lowering ---- */

/* Prints the value of this index whole, where it is a sum, dot, norm1 or sumsq of integers. Returns false for others. */
static bool print_whole(const tally_problem *problem, const tally_state *state, size_t value,
                        char text[WHOLE_TEXT]) {
    size_t length;
    return !type_is_floating(problem->type) &&
           tally_state_print(state, value, text, WHOLE_TEXT, &length) == TALLY_OK;
}

/* Reports that the exact value does not fit into 64 bits. Only a product of integers comes here:
 * print_whole() prints the other operators' values in all their digits. */
static int tell_range(const struct reduction *r, const tally_problem *problem,
                      const tally_state *state) {
    const char *type = tally_type_name(problem->type);
    return failed("the exact %s of these %" PRIu64 " %s numbers does not fit %s; reduce parts of "
                  "the data, or convert them to f64",
                  r->asked, tally_state_count(state), type, *type == 'u' ? "u64" : "i64");
}

static bool lower(const struct reduction *r, const tally_problem *problem, const tally_state *state,
                  const struct index_map *index_map, struct answer *a) {
    *a->money = 0;
    a->n = tally_state_count(state);
    tally_status status = tally_problem_values(problem, &a->count);
    if (status == TALLY_OK) status = tally_state_value(state, a->value);
    if (status == TALLY_ERANGE) {
        a->value[0].type = 0;
        if (!print_whole(problem, state, 0, a->whole[0]))
            return tell_range(r, problem, state), false;
        a->op[0] = problem->op;
        return true;
    }
    if (status == TALLY_EINVAL && a->n == 0) {
        return failed("there is no %s of nothing: the input holds no number", r->asked), false;
    } else if (status != TALLY_OK) {
        return failed("%s", tally_error()), false;
    }
    index_map_apply(index_map, problem, a->value, a->count);
    for (size_t i = 0; i < a->count; i++) {
        a->op[i] = tally_problem_value_op(problem, i);
        if (a->value[i].type || !a->n || !print_whole(problem, state, i, a->whole[i]))
            *a->whole[i] = 0;
    }
    return true;
}

static bool is_extreme(tally_op op) {
    return op == TALLY_MIN || op == TALLY_MAX || op == TALLY_ARGMIN || op == TALLY_ARGMAX;
}

static void lower_money(const struct money *money, struct answer *a) {
    a->n = 0;
    a->count = 1;
    a->op[0] = TALLY_SUM;
    money_print(money, a->money);
}

/* Returns true if the group has no elements and only min, max, argmin or argmax are asked for: it
 * has no line, as these do not exist for no elements. */
static bool has_no_extremes(const struct reduction *r, const struct group *group) {
    tally_state *copy;
    size_t count = 0;
    if (!group->problem || !r->columns.by.count) return false;
    tally_problem_values(group->problem, &count);
    for (size_t i = 0; i < count; i++)
        if (!is_extreme(tally_problem_value_op(group->problem, i))) return false;
    const tally_state *state = group_state(&r->groups, group, &copy);
    const bool is_empty = state && !tally_state_count(state);
    tally_state_destroy(copy);
    return is_empty;
}

static bool lower_group(const struct reduction *r, const struct group *group, struct answer *a) {
    tally_state *copy;
    if (group->money) return lower_money(group->money, a), true;
    const tally_state *state = group_state(&r->groups, group, &copy);
    const bool is_done = state && lower(r, group->problem, state, &group->index_map, a);
    tally_state_destroy(copy);
    if (!is_done) return false;
    for (size_t i = 0; i < a->count && !a->n && r->columns.by.count; i++)
        if (is_extreme(a->op[i])) a->value[i].type = 0; /* of no elements: none */
    return true;
}

/* Lowers the state of all elements: of a table its only group, else the reduction's own state. */
static bool lower_all(const struct reduction *r, struct answer *a) {
    if (r->columns.value.whole) {
        if (r->groups.count) return lower_group(r, &r->groups.list[0], a);
        if (!r->is_decimal)
            return lower(r, &r->problem, r->state, &r->index_map, a); /* a table without rows */
    }
    if (!r->is_decimal) return lower(r, &r->problem, r->state, &r->index_map, a);
    lower_money(&r->money, a);
    return true;
}

/* ---- Text ---- */

static const char *value_text(const struct answer *a, size_t i, char text[32]) {
    if (*a->money) return a->money;
    if (*a->whole[i]) return a->whole[i];
    tally_value_print(&a->value[i], text, 32);
    return text;
}

static void print_values(const struct reduction *r, const struct answer *a) {
    const bool is_table = r->problem.op == TALLY_DESCRIBE && r->op_count == 1;
    for (size_t i = 0; i < a->count; i++) {
        char buffer[32];
        const char *name = tally_op_name(a->op[i]), *text = value_text(a, i, buffer);
        if (a->count == 1)
            puts(text);
        else if (!is_table)
            printf("%s\t%s\n", name, text);
        else
            printf("%-6s  %s%s\n", name, text,
                   a->value[i].type || *a->whole[i] ? "" : " (of nothing)");
    }
}

/* Prints a key. Bytes that would break the output into other lines or fields are escaped; the zero
 * byte between two of the key's fields becomes a tab. */
static void print_key(const char *key, size_t length) {
    for (size_t i = 0; i < length; i++) {
        const char *escaped = !key[i]          ? "\t" /* between its fields */
                              : key[i] == '\t' ? "\\t"
                              : key[i] == '\n' ? "\\n"
                              : key[i] == '\r' ? "\\r"
                                               : NULL;
        if (escaped)
            fputs(escaped, stdout);
        else
            putchar(key[i]);
    }
}

/* Returns true if the output has a value for each group, and none for all elements. */
static bool is_grouped(const struct reduction *r) {
    return r->columns.value.whole && (r->columns.by.whole || columns_apart(&r->columns));
}

/* Prints a line of the values' names above several values, behind those of the keys. */
static void print_names(const struct reduction *r, const struct answer *a) {
    const struct list *by = &r->columns.by;
    if (a->count == 1) return;
    for (size_t i = 0; i < by->count; i++)
        printf("%s%s", i ? "\t" : "", by->item[i]);
    if (r->by_file) fputs("file", stdout);
    if (is_grouped(r) && columns_apart(&r->columns))
        fputs(by->count ? "\tcolumn" : "column", stdout);
    for (size_t i = 0; i < a->count; i++)
        printf("\t%s", tally_op_name(a->op[i]));
    putchar('\n');
}

static void print_line(const char *key, size_t length, const struct answer *a) {
    char buffer[32];
    print_key(key, length);
    for (size_t i = 0; i < a->count; i++)
        printf("\t%s", value_text(a, i, buffer));
    putchar('\n');
}

/* Returns true if every group has a value. print_groups() checks this first, so that an error
 * leaves no partial output. */
static bool check_groups(const struct reduction *r) {
    struct answer a;
    for (size_t i = 0; i < r->groups.count; i++)
        if (!has_no_extremes(r, &r->groups.list[i]) && !lower_group(r, &r->groups.list[i], &a))
            return false;
    return true;
}

static bool print_groups(const struct reduction *r) {
    struct answer a;
    bool has_names = false;
    if (!check_groups(r)) return false;
    for (size_t i = 0; i < r->groups.count; i++) {
        const struct group *group = &r->groups.list[i];
        if (has_no_extremes(r, group)) continue;
        if (!lower_group(r, group, &a)) return false;
        if (!has_names) print_names(r, &a);
        has_names = true;
        print_line(group->key, group->key_bytes, &a);
    }
    return true;
}

static int print_text(const struct reduction *r) {
    struct answer a;
    if (is_grouped(r)) return print_groups(r) ? finish_output() : STATUS_FAILED;
    if (!lower_all(r, &a)) return STATUS_FAILED;
    if (r->by_file) {
        if (!print_groups(r)) return STATUS_FAILED;
        print_line("total", 5, &a);
    } else {
        print_values(r, &a);
    }
    return finish_output();
}

/* ---- JSON ---- */

static void json_answer(struct json_object *object, const struct answer *a) {
    const char *whole[TALLY_VALUES_MAX];
    for (size_t i = 0; i < a->count; i++)
        whole[i] = *a->money ? a->money : *a->whole[i] ? a->whole[i] : NULL;
    json_results(object, a->value, whole, a->count);
}

/* Returns the name of the type of a group's elements, or with NULL of all elements: "decimal" for decimals. */
static const char *type_name(const struct reduction *r, const struct group *group) {
    const bool is_decimal = group ? group->money != NULL : r->is_decimal;
    return is_decimal ? "decimal" : tally_type_name(group ? group->problem->type : r->problem.type);
}

/* Returns true if two groups have elements of different types. */
static bool types_differ(const struct reduction *r) {
    for (size_t i = 1; i < r->groups.count; i++)
        if (strcmp(type_name(r, &r->groups.list[0]), type_name(r, &r->groups.list[i])) != 0)
            return true;
    return false;
}

/* Adds a group's key to its JSON object: as a text if it has one field, else as a list of texts. A
 * column's name is a member of its own. */
static void json_key(const struct reduction *r, struct json_object *item, const char *key) {
    const size_t fields = r->columns.by.count;
    struct json_object *list = fields > 1 ? json_new_list() : NULL;
    if (r->by_file) json_text(item, "file", key);
    for (size_t i = 0; i < fields; i++, key += strlen(key) + 1)
        if (list)
            json_item(list, json_new_text(key));
        else
            json_text(item, "key", key);
    if (list) json_member(item, "key", list);
    if (is_grouped(r) && columns_apart(&r->columns)) json_text(item, "column", key);
}

static bool json_groups(const struct reduction *r, struct json_object *object) {
    struct json_object *list = json_new_list();
    const bool has_types = types_differ(r);
    struct answer a;
    bool done = true;
    for (size_t i = 0; i < r->groups.count; i++) {
        const struct group *group = &r->groups.list[i];
        if (has_no_extremes(r, group)) continue;
        done = lower_group(r, group, &a);
        if (!done) break;
        struct json_object *item = json_new_object();
        json_key(r, item, group->key);
        if (has_types) json_text(item, "dtype", type_name(r, group));
        if (!group->money) json_count(item, "n", a.n);
        json_answer(item, &a);
        json_item(list, item); /* last, as this frees `item` if memory is short */
    }
    json_member(object, "groups", list);
    return done;
}

static int print_json(const struct reduction *r) {
    tally_device_info device;
    struct answer a = {.n = 0};
    if (tally_device_describe(r->device, &device) != TALLY_OK) return failed("%s", tally_error());
    if (!is_grouped(r) && !lower_all(r, &a)) return STATUS_FAILED;
    struct json_object *object = json_new_object();
    json_text(object, "op", r->asked);
    size_t count = 0;
    tally_op ops[TALLY_VALUES_MAX];
    tally_problem_values(&r->problem, &count);
    for (size_t i = 0; i < count; i++)
        ops[i] = tally_problem_value_op(&r->problem, i);
    if (count > 1) json_ops(object, "ops", ops, count);
    json_text(object, "dtype", type_name(r, r->groups.count ? &r->groups.list[0] : NULL));
    json_count(object, "n", r->numbers);
    if (!is_grouped(r)) json_answer(object, &a);
    if ((is_grouped(r) || r->by_file) && !json_groups(r, object)) {
        json_object_put(object);
        return STATUS_FAILED;
    }
    json_text(object, "device", device.spec);
    json_measure(object, "seconds", r->seconds);
    json_measure(object, "gbps", (double)r->bytes * 1e-9 / r->seconds);
    return json_print(object);
}

int answer_print(struct reduction *r) {
    if (r->sorted) groups_sort(&r->groups, r->columns.by.count, &r->spelling);
    return r->as_json ? print_json(r) : print_text(r);
}
