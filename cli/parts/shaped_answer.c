/*
 * shaped_answer.c - prints the answer of a reduction in parts, by results_print.h. Its JSON object
 * also says how the array was cut.
 */
#include "parts/shaped_cuts.h"

#include "common/message.h"
#include "parts/results_print.h"

#include <stdlib.h>

/* Prints one result as the command prints that of a whole array. */
static bool print_single(void *context, uint64_t number, const tally_value *value) {
    const struct job *job = context;
    (void)number;
    results_print_single(&job->results, value,
                         job->r->problem.op == TALLY_DESCRIBE && job->r->op_count == 1);
    return true;
}

static int print_text(struct job *job) {
    const struct results_groups groups = {job->group_count, job->label};
    const bool done = job->dims ? results_print_lines(&job->results, &groups)
                                : results_each(&job->results, print_single, job);
    return done ? finish_output() : STATUS_FAILED;
}

static void put_cut(const struct job *job, struct json_object *object) {
    const struct source *s = &job->x.source;
    if (s->has_shape)
        json_member(object, "shape",
                    results_lengths(s->length, s->dims > NPY_DIMS ? NPY_DIMS : s->dims));
    if (job->ask.axis) {
        struct json_object *list = json_new_list();
        for (unsigned d = 0; d < s->dims; d++)
            if (job->axes >> d & 1) json_item(list, json_object_new_uint64(d));
        json_member(object, "axis", list);
    }
    if (job->ask.segments)
        json_count(object, "segments",
                   job->length[job->ask.axis ? (unsigned)__builtin_ctz(job->axes) : 0]);
    if (job->each) json_count(object, "segment_length", job->each);
    if (job->ask.ids) json_count(object, "group_count", job->span);
    if (job->ask.mask) json_text(object, "mask", job->mask.source.name);
}

static int print_json(struct job *job) {
    const struct reduction *r = job->r;
    struct results *all = &job->results;
    const struct results_groups groups = {job->group_count, job->label};
    tally_device_info device;
    if (tally_device_describe(r->device, &device) != TALLY_OK) return failed("%s", tally_error());
    struct json_object *object = json_new_object();
    json_text(object, "op", r->asked);
    if (all->values > 1) json_ops(object, "ops", all->op, all->values);
    json_text(object, "dtype", tally_type_name(r->problem.type));
    json_count(object, "n", r->numbers);
    put_cut(job, object);
    const bool done =
        results_to_json(all, job->dims, job->length, &groups, job->ask.output, object);
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
