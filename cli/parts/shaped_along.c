/*
 * shaped_along.c - segments and groups along an axis.
 *
 * The results have the array's shape, but along the axis one element for each segment or group. The
 * arrays are whole in memory, mapped or read, and one call reduces them.
 */
#include "parts/shaped_cuts.h"

#include "common/message.h"
#include "common/types.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static unsigned axis_of(const struct job *job) {
    return (unsigned)__builtin_ctz(job->axes);
}

/* Reads the key, an array of one dimension. */
static bool load_key(struct job *job) {
    char text[SHAPE_TEXT];
    if (job->key.source.dims == 1) return operand_load(&job->key);
    return failed("%s has shape %s; %s along an axis are an array of one dimension",
                  job->key.source.name, operand_shape(&job->key, text),
                  job->ask.ids ? "ids" : "offsets"),
           false;
}

static bool plan_segments(struct job *job, uint64_t n, tally_shape *shape) {
    char *end;
    shape->cut = TALLY_SEGMENTS;
    if (job->key.is_open) {
        if (!load_key(job)) return false;
        if (job->key.n == 0)
            return failed("%s holds no offsets; N segments have N + 1", job->key.source.name),
                   false;
        shape->offsets = job->key.all;
        shape->offsets_type = job->key.source.type;
        shape->count = (size_t)job->key.n - 1;
        return true;
    }
    job->each = strtoull(job->ask.segments, &end, 10);
    if (strlen(job->ask.segments) > 18 || !job->each)
        return failed("--segments %s: segments have a length from 1 up; ./%s would be a file",
                      job->ask.segments, job->ask.segments),
               false;
    shape->count = (size_t)(n / job->each);
    return n % job->each == 0 || (failed("axis %u of %s has %" PRIu64
                                         " elements, which are not whole segments of %" PRIu64
                                         "; a file of offsets may have segments of any length",
                                         axis_of(job), job->x.source.name, n, job->each),
                                  false);
}

/* Finds how many groups there are where --groups does not say it: one more than the greatest id. */
static bool find_groups(const struct job *job, size_t *count) {
    tally_problem ends = TALLY_DEFAULTS;
    tally_value value[2], id;
    ends.op = TALLY_MINMAX;
    ends.type = job->key.source.type;
    *count = 0;
    if (job->key.n == 0) return true;
    if (tally_reduce(job->r->device, &ends, job->key.all, NULL, (size_t)job->key.n, value) !=
        TALLY_OK)
        return failed("%s", tally_error()), false;
    if (tally_value_double(&value[1]) < 0) return true;
    if (tally_value_convert(&value[1], TALLY_U64, &id) == TALLY_OK && id.as.u64 < SIZE_MAX / 16)
        return *count = (size_t)id.as.u64 + 1, true;
    return failed("%s: id %" PRIu64 " is more than groups can have; --groups with --skip-outside "
                  "leaves it out",
                  job->key.source.name, id.as.u64),
           false;
}

static bool plan_groups(struct job *job, uint64_t n, tally_shape *shape) {
    if (!load_key(job)) return false;
    if (job->key.n != n)
        return failed("%s has %" PRIu64 " ids, but axis %u of %s has %" PRIu64
                      " elements; each needs a partner",
                      job->key.source.name, job->key.n, axis_of(job), job->x.source.name, n),
               false;
    shape->cut = TALLY_GROUPS;
    shape->ids = job->key.all;
    shape->ids_type = job->key.source.type;
    shape->skip_outside = job->ask.skip_outside;
    shape->count = (size_t)job->ask.groups;
    if (!shape->count && !find_groups(job, &shape->count)) return false;
    job->span = shape->count;
    return true;
}

static bool reduce(struct job *job, tally_shape *shape) {
    size_t results;
    double bytes = (double)job->results.record;
    for (unsigned d = 0; d < job->dims; d++)
        bytes *= (double)job->length[d];
    if (!job_fits(bytes)) return failed("no memory for results of %.3g GB", bytes * 1e-9), false;
    if (tally_shape_results(shape, &results) != TALLY_OK)
        return failed("%s: %s", job->x.source.name, tally_error()), false;
    if (!results_room(&job->results, results)) return false;
    const tally_status status = tally_reduce_shaped(job->r->device, &job->r->problem, shape,
                                                    job->x.all, job->y.all, job->results.out);
    if (status == TALLY_OK) return results_put(&job->results, results);
    if (status == TALLY_EINVAL && job->key.is_open && !tally_error_result(&results))
        return failed("%s: %s", job->key.source.name, tally_error()), false;
    return job_failed(job, 0, status);
}

bool job_along(struct job *job) {
    const struct source *s = &job->x.source;
    const unsigned axis = axis_of(job);
    size_t length[NPY_DIMS];
    ptrdiff_t x[NPY_DIMS], y[NPY_DIMS], mask[NPY_DIMS];
    if (!job_map(job) && !job_load(job)) return false;
    for (unsigned d = 0; d < s->dims; d++) {
        length[d] = (size_t)s->length[d];
        job->length[d] = s->length[d];
    }
    tally_shape shape = {.dims = s->dims, .length = length, .axes = job->axes};
    if (!(job->ask.ids ? plan_groups(job, s->length[axis], &shape)
                       : plan_segments(job, s->length[axis], &shape)))
        return false;
    if (job->x.n) { /* without elements the product of the other lengths may overflow */
        operand_strides(&job->x, x);
        shape.x_stride = x;
        if (job->y.is_open) operand_strides_like(&job->y, s, y);
        if (job->mask.is_open) operand_strides_like(&job->mask, s, mask);
        shape.y_stride = job->y.is_open ? y : NULL;
        shape.mask_stride = job->mask.is_open ? mask : NULL;
    }
    shape.mask = job->mask.is_open ? job->mask.all : NULL;
    job->dims = s->dims;
    job->length[axis] = shape.count;
    job->r->bytes += job->x.n * job->x.element * (job->y.is_open ? 2 : 1);
    return reduce(job, &shape);
}
