/*
 * command_answer.c - what rank 0 prints or writes: the values, a line a result, a JSON object, or a .npy file.
 */
#include "command.h"

#include "../cli/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Text ----------------------------------------------------------------------------------- */

/* One result alone: its value; of several values the names, too. */
static int print_single(const struct run *r, const struct results *all, const tally_value *value) {
    char text[32];
    const char *shape = strcmp(r->asked, "describe") == 0 ? "%-6s  %s\n" : "%s\t%s\n";
    for (size_t v = 0; v < all->values; v++) {
        results_text(&value[v], text);
        if (all->values == 1)
            puts(text);
        else
            printf(shape, tally_op_name(all->op[v]), text);
    }
    return finish_output();
}

struct printing {
    const struct answer *answer;
    struct json_object *object, *value[TALLY_VALUES_MAX], *bits[TALLY_VALUES_MAX], *groups;
};

/* A line for each result; of groups those that have elements. */
static bool print_line(void *context, uint64_t number, const tally_value *value) {
    const struct answer *a = ((struct printing *)context)->answer;
    char text[32];
    if (a->known && a->known[number] == 0) return true;
    if (a->known) printf("%llu\t", (unsigned long long)number);
    for (size_t v = 0; v < a->results.values; v++)
        printf("%s%s", v ? "\t" : "", results_text(&value[v], text));
    putchar('\n');
    return !ferror(stdout);
}

static void print_names(const struct answer *a) {
    const struct results *all = &a->results;
    if (all->values == 1) return;
    if (a->known) fputs("id\t", stdout);
    for (size_t v = 0; v < all->values; v++)
        printf("%s%s", v ? "\t" : "", tally_op_name(all->op[v]));
    putchar('\n');
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static struct json_object *lengths(const uint64_t *length, unsigned dims) {
    struct json_object *list = json_new_list();
    for (unsigned d = 0; d < dims; d++)
        json_item(list, json_object_new_uint64(length[d]));
    return list;
}

static bool add_result(void *context, uint64_t number, const tally_value *value) {
    struct printing *p = context;
    const struct answer *a = p->answer;
    if (a->known) {
        if (a->known[number] == 0) return true;
        struct json_object *group = json_new_object();
        json_count(group, "key", number);
        json_count(group, "n", a->known[number]);
        json_results(group, value, NULL, a->results.values);
        json_item(p->groups, group);
        return true;
    }
    for (size_t v = 0; v < a->results.values; v++)
        json_items(p->value[v], p->bits[v], &value[v]);
    return true;
}

/* Lists of all results, or of several values a list of these. */
static bool add_lists(struct printing *p, struct results *all) {
    for (size_t v = 0; v < all->values; v++) {
        p->value[v] = json_new_list();
        p->bits[v] = json_new_list();
    }
    const bool done = results_each(all, add_result, p);
    struct json_object *value = all->values == 1 ? p->value[0] : json_new_list();
    struct json_object *bits = all->values == 1 ? p->bits[0] : json_new_list();
    for (size_t v = 0; v < all->values && all->values > 1; v++) {
        json_item(value, p->value[v]);
        json_item(bits, p->bits[v]);
    }
    json_member(p->object, "value", value);
    json_member(p->object, "bits", bits);
    return done;
}

static void put_parts(const struct run *r, const struct answer *a, struct json_object *object) {
    const struct npy_header *h = &r->file[0].header;
    struct json_object *types = json_new_list();
    if (h->dims > 0 && h->dims <= NPY_DIMS)
        json_member(object, "shape", lengths(h->length, h->dims));
    if (r->parts.axis) json_member(object, "axis", lengths(a->axis, a->axes));
    if (r->parts.segments) json_count(object, "segments", a->length[0]);
    if (a->each) json_count(object, "segment_length", a->each);
    if (r->parts.by) json_count(object, "group_count", a->length[0]);
    if (r->parts.mask) json_text(object, "mask", r->parts.mask);
    json_member(object, "results", lengths(a->length, a->dims));
    for (size_t v = 0; v < a->results.values; v++)
        json_item(types, json_new_text(tally_type_name(a->results.type[v])));
    json_member(object, "types", types);
}

static struct json_object *begin_object(const struct run *r, const struct results *all) {
    struct json_object *object = json_new_object();
    json_text(object, "op", r->asked);
    if (all->values > 1) json_ops(object, "ops", all->op, all->values);
    json_text(object, "dtype", tally_type_name(r->problem.type));
    json_count(object, "n", r->file[0].header.count);
    return object;
}

static int end_object(const struct run *r, struct json_object *object) {
    const double seconds = MPI_Wtime() - r->began;
    const double bytes = (double)r->file[0].header.count * r->files *
                         (double)tally_type_size(r->file[0].header.type);
    tally_device_info device;
    json_count(object, "ranks", (uint64_t)r->ranks);
    if (tally_device_describe(r->device, &device) == TALLY_OK)
        json_text(object, "device", device.spec);
    json_measure(object, "seconds", seconds);
    json_measure(object, "gbps", bytes * 1e-9 / seconds);
    return json_print(object);
}

/* ---- The answer ------------------------------------------------------------------------------ */

int answer_values(const struct run *r, const tally_value *value) {
    struct results names;
    if (!results_begin(&names, &r->problem, NULL)) return STATUS_FAILED;
    if (!r->as_json) return print_single(r, &names, value);
    struct json_object *object = begin_object(r, &names);
    json_results(object, value, NULL, names.values);
    return end_object(r, object);
}

static bool keep_single(void *context, uint64_t number, const tally_value *value) {
    (void)number;
    memcpy(context, value, TALLY_VALUES_MAX * sizeof *value);
    return true;
}

int answer_results(const struct run *r, struct answer *a) {
    struct printing p = {.answer = a};
    struct results *all = &a->results;
    tally_value one[TALLY_VALUES_MAX];
    if (r->output && !results_write(all, a->dims, a->length)) return STATUS_FAILED;
    if (!a->dims && !results_each(all, keep_single, one)) return STATUS_FAILED;
    if (r->as_json) {
        bool done = true;
        p.object = begin_object(r, all);
        put_parts(r, a, p.object);
        if (r->output) {
            json_text(p.object, "output", r->output);
        } else if (!a->dims) {
            json_results(p.object, one, NULL, all->values);
        } else if (a->known) {
            p.groups = json_new_list();
            done = results_each(all, add_result, &p);
            json_member(p.object, "groups", p.groups);
        } else {
            done = add_lists(&p, all);
        }
        if (done) return end_object(r, p.object);
        json_object_put(p.object);
        return STATUS_FAILED;
    }
    if (r->output) return finish_output();
    if (!a->dims) return print_single(r, all, one);
    print_names(a);
    return results_each(all, print_line, &p) || ferror(stdout) ? finish_output() : STATUS_FAILED;
}
