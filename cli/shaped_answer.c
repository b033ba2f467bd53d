/*
 * shaped_answer.c - what a reduction in parts prints: a result a line, several values with tabs between them
 * below a line of their names; groups behind their ids; or a JSON object.
 */
#include "shaped_job.h"

#include "json.h"
#include "message.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

struct printing {
    struct job *job;
    struct json_object *value[TALLY_VALUES_MAX], *bits[TALLY_VALUES_MAX], *groups;
};

/* ---- Text ---- */

/* One result alone, as the command prints that of a whole array. */
static bool print_single(void *context, uint64_t number, const tally_value *value) {
    const struct job *job = context;
    const struct reduction *r = job->r;
    const bool is_table = r->problem.op == TALLY_DESCRIBE && r->op_count == 1;
    char text[32];
    (void)number;
    for (size_t v = 0; v < job->results.values; v++) {
        results_text(&value[v], text);
        if (job->results.values == 1)
            puts(text);
        else
            printf(is_table ? "%-6s  %s\n" : "%s\t%s\n", tally_op_name(job->results.op[v]), text);
    }
    return true;
}

static bool print_line(void *context, uint64_t number, const tally_value *value) {
    const struct job *job = context;
    char text[32];
    if (job->group_count) {
        if (!job->group_count[number]) return true;
        printf("%" PRIu64 "\t", number);
    }
    for (size_t v = 0; v < job->results.values; v++) {
        if (v) putchar('\t');
        fputs(results_text(&value[v], text), stdout);
    }
    putchar('\n');
    return !ferror(stdout);
}

static int print_text(struct job *job) {
    const struct results *r = &job->results;
    if (!job->dims) return results_each(&job->results, print_single, job) ? finish_output() : 1;
    if (r->values > 1) {
        if (job->group_count) fputs("id\t", stdout);
        for (size_t v = 0; v < r->values; v++)
            printf("%s%s", v ? "\t" : "", tally_op_name(r->op[v]));
        putchar('\n');
    }
    return results_each(&job->results, print_line, job) || ferror(stdout) ? finish_output()
                                                                          : STATUS_FAILED;
}

/* ---- JSON ---- */

static bool add_result(void *context, uint64_t number, const tally_value *value) {
    struct printing *p = context;
    const struct job *job = p->job;
    if (job->group_count) {
        if (!job->group_count[number]) return true;
        struct json_object *group = json_new_object();
        json_count(group, "key", number);
        json_count(group, "n", job->group_count[number]);
        json_results(group, value, NULL, job->results.values);
        json_item(p->groups, group);
        return true;
    }
    for (size_t v = 0; v < job->results.values; v++)
        json_items(p->value[v], p->bits[v], &value[v]);
    return true;
}

static struct json_object *lengths(const uint64_t *length, unsigned dims) {
    struct json_object *list = json_new_list();
    for (unsigned d = 0; d < dims; d++)
        json_item(list, json_object_new_uint64(length[d]));
    return list;
}

static void put_cut(const struct job *job, struct json_object *object) {
    const struct source *s = &job->x.source;
    if (s->has_shape)
        json_member(object, "shape", lengths(s->length, s->dims > NPY_DIMS ? NPY_DIMS : s->dims));
    if (job->ask.axis) {
        struct json_object *list = json_new_list();
        for (unsigned d = 0; d < s->dims; d++)
            if (job->axes >> d & 1) json_item(list, json_object_new_uint64(d));
        json_member(object, "axis", list);
    }
    if (job->ask.segments) json_count(object, "segments", job->length[0]);
    if (job->each) json_count(object, "segment_length", job->each);
    if (job->ask.ids) json_count(object, "group_count", job->groups);
    if (job->ask.mask) json_text(object, "mask", job->mask.source.name);
}

static void make_lists(struct printing *p) {
    for (size_t v = 0; v < p->job->results.values; v++) {
        p->value[v] = json_new_list();
        p->bits[v] = json_new_list();
    }
}

/* A list of the results; of several values a list of these. What is put into another is used no more, as it
 * is freed where there is no memory for it. */
static void put_lists(struct printing *p, struct json_object *object) {
    const size_t values = p->job->results.values;
    struct json_object *value = values == 1 ? p->value[0] : json_new_list();
    struct json_object *bits = values == 1 ? p->bits[0] : json_new_list();
    for (size_t v = 0; v < values && values > 1; v++) {
        json_item(value, p->value[v]);
        json_item(bits, p->bits[v]);
    }
    json_member(object, "value", value);
    json_member(object, "bits", bits);
}

static bool add_single(void *context, uint64_t number, const tally_value *value) {
    const struct printing *p = context;
    (void)number;
    json_results(p->groups, value, NULL, p->job->results.values);
    return true;
}

static int print_json(struct job *job) {
    const struct reduction *r = job->r;
    struct results *all = &job->results;
    struct printing p = {.job = job};
    tally_device_info device;
    bool done = true;
    if (tally_device_describe(r->device, &device) != TALLY_OK) return failed("%s", tally_error());
    struct json_object *object = json_new_object(), *types = json_new_list();
    json_text(object, "op", r->asked);
    if (all->values > 1) json_ops(object, "ops", all->op, all->values);
    json_text(object, "dtype", tally_type_name(r->problem.type));
    json_count(object, "n", r->numbers);
    put_cut(job, object);
    json_member(object, "results", lengths(job->length, job->dims));
    for (size_t v = 0; v < all->values; v++)
        json_item(types, json_object_new_string(tally_type_name(all->type[v])));
    json_member(object, "types", types);
    if (job->ask.output) {
        json_text(object, "output", job->ask.output);
    } else if (!job->dims) {
        p.groups = object;
        done = results_each(all, add_single, &p);
    } else if (job->group_count) {
        p.groups = json_new_list();
        done = results_each(all, add_result, &p);
        json_member(object, "groups", p.groups);
    } else {
        make_lists(&p);
        done = results_each(all, add_result, &p);
        put_lists(&p, object);
    }
    json_text(object, "device", device.spec);
    json_measure(object, "seconds", r->seconds);
    json_measure(object, "gbps", (double)r->bytes * 1e-9 / r->seconds);
    if (done) return json_print(object);
    json_object_put(object);
    return STATUS_FAILED;
}

int job_print(struct job *job) {
    if (job->r->as_json) return print_json(job);
    return job->ask.output ? finish_output() : print_text(job);
}
