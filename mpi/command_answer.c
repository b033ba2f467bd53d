/*
 * command_answer.c - what rank 0 prints or writes: the values, a line a result, a JSON object, or a .npy file.
 */
#include "command.h"

#include "../cli/parts/results_print.h"

#include <stdlib.h>
#include <string.h>

static void print_single(const struct run *r, const struct results *all, const tally_value *value) {
    results_print_single(all, value, strcmp(r->asked, "describe") == 0);
}

static void put_parts(const struct run *r, const struct answer *a, struct json_object *object) {
    const struct npy_header *h = &r->file[0].header;
    if (h->dims > 0 && h->dims <= NPY_DIMS)
        json_member(object, "shape", results_lengths(h->length, h->dims));
    if (r->parts.axis) json_member(object, "axis", results_lengths(a->axis, a->axes));
    if (r->parts.segments) json_count(object, "segments", a->parts);
    if (a->each) json_count(object, "segment_length", a->each);
    if (r->parts.by) json_count(object, "group_count", a->parts);
    if (r->parts.mask) json_text(object, "mask", r->parts.mask);
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
    if (!r->as_json) {
        print_single(r, &names, value);
        return finish_output();
    }
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
    struct results *all = &a->results;
    const struct results_groups groups = {a->known, NULL};
    tally_value one[TALLY_VALUES_MAX];
    if (r->output && !results_write(all, a->dims, a->length)) return STATUS_FAILED;
    if (r->as_json) {
        struct json_object *object = begin_object(r, all);
        put_parts(r, a, object);
        if (results_to_json(all, a->dims, a->length, &groups, r->output, object))
            return end_object(r, object);
        json_object_put(object);
        return STATUS_FAILED;
    }
    if (r->output) return finish_output();
    if (a->dims) return results_print_lines(all, &groups) ? finish_output() : STATUS_FAILED;
    if (!results_each(all, keep_single, one)) return STATUS_FAILED;
    print_single(r, all, one);
    return finish_output();
}
