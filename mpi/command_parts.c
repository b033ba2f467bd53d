/*
 * command_parts.c - tally-mpi with many results: along axes, by segment, by group.
 *
 * Whatever the parts are, each element gets the number of its result, and the states of all results are fed as groups
 * and combined over the ranks. So a rank's elements may belong to any results, and nothing is held but a chunk of the
 * file and the states. Segments and groups along an axis number its indices first, and then the elements.
 */
#include "command.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How elements get the numbers of their results. number() does it for the n elements of the file from `at` on. */
struct numbering {
    int (*number)(struct numbering *w, uint64_t at, size_t n, int64_t *id);
    uint64_t results;
    int skips; /* elements whose id is outside belong to no result */

    struct file ids; /* --by */
    unsigned char *raw;

    struct file mask;
    unsigned char *marks; /* of a chunk; NULL without a mask */

    int64_t *offset; /* --segments: results + 1 of them */
    uint64_t each;   /* elements of each, where a length was given */

    unsigned dims; /* --axis: lengths in the order of the file, the last runs fastest, */
    uint64_t length[NPY_DIMS], stride[NPY_DIMS]; /* and what a step adds to the number */
    int reduced[NPY_DIMS];                       /* in the order of the array */

    uint64_t cut;   /* what --segments and --by cut: so many elements, or indices of an axis */
    uint64_t parts; /* along an axis: into how many segments or groups it is cut */
    int64_t *part;  /* along an axis: of each index the number of its part, or one below 0 */
    unsigned along; /* the axis in the order of the file, */
    uint64_t along_stride; /* and what a step from part to part adds to the number */
};

static int is_along(const struct run *r) {
    return r->parts.axis && (r->parts.segments || r->parts.by);
}

int parts_are_asked(const struct parts *p) {
    return p->axis || p->segments || p->by || p->mask;
}

int parts_check(const struct run *r) {
    const struct parts *p = &r->parts;
    if (r->output && !parts_are_asked(p))
        return misused("-o goes with --axis, --segments, --by or --mask; else redirect what is "
                       "printed");
    if (p->segments && p->by) return misused("--segments and --by exclude each other");
    if (is_along(r) && strchr(p->axis, ','))
        return misused("--segments and --by go with one axis, not with --axis %s", p->axis);
    if (!p->by && (p->groups || p->skip_outside))
        return misused("--groups and --skip-outside are for --by");
    return STATUS_OK;
}

/* ---- By group ------------------------------------------------------------------------------- */

static int64_t widened(const unsigned char *raw, size_t i, tally_type type) {
    tally_value v = {.type = type};
    const size_t size = tally_type_size(type);
    memcpy(&v.as, raw + i * size, size);
    switch (type) {
    case TALLY_I8:
        return v.as.i8;
    case TALLY_I16:
        return v.as.i16;
    case TALLY_I32:
        return v.as.i32;
    case TALLY_U64:
        return v.as.u64 > INT64_MAX ? INT64_MAX : v.as.i64;
    case TALLY_I64:
        return v.as.i64;
    default:
        return (int64_t)tally_value_bits(&v);
    }
}

static int number_groups(struct numbering *w, uint64_t at, size_t n, int64_t *id) {
    if (!w->raw || !read_elements(&w->ids, w->raw, at, n)) return 0;
    for (size_t i = 0; i < n; i++) {
        id[i] = widened(w->raw, i, w->ids.header.type);
        if (w->skips || (id[i] >= 0 && (uint64_t)id[i] < w->results)) continue;
        const uint64_t place = at + i;
        if (id[i] < 0)
            return wrong("%s: id %llu is %lld, below 0; --skip-outside leaves such elements out",
                         w->ids.name, (unsigned long long)place, (long long)id[i]);
        return wrong("%s: id %llu is %lld, outside of the %llu groups; --skip-outside leaves such "
                     "elements out, or say a larger --groups",
                     w->ids.name, (unsigned long long)place, (long long)id[i],
                     (unsigned long long)w->results);
    }
    return 1;
}

static int open_groups(struct numbering *w, const struct run *r) {
    const uint64_t n = w->cut;
    w->number = number_groups;
    w->skips = r->parts.skip_outside;
    if (!open_file(&w->ids, r->parts.by, (tally_type)0)) return 0;
    if (w->ids.header.type < TALLY_I8 || w->ids.header.type > TALLY_U64)
        return wrong("%s holds %s, where ids are integers", r->parts.by,
                     tally_type_name(w->ids.header.type));
    if (w->ids.header.count != n)
        return wrong("%s has %llu ids for %llu %s", r->parts.by,
                     (unsigned long long)w->ids.header.count, (unsigned long long)n,
                     is_along(r) ? "elements along the axis" : "elements");
    w->raw = malloc(CHUNK * 8);
    return w->raw ? 1 : wrong("no memory to read ids into");
}

/* Returns the greatest id of this rank's part; -1 where there is none. */
static int64_t greatest_id(const struct numbering *w, uint64_t first, uint64_t last) {
    int64_t greatest = -1;
    for (uint64_t at = first; at < last;) {
        const size_t n = last - at < CHUNK ? (size_t)(last - at) : CHUNK;
        if (!read_elements(&w->ids, w->raw, at, n)) return -1;
        for (size_t i = 0; i < n; i++) {
            const int64_t id = widened(w->raw, i, w->ids.header.type);
            if (id > greatest) greatest = id;
        }
        at += n;
    }
    return greatest;
}

/* ---- By segment ----------------------------------------------------------------------------- */

static int number_segments(struct numbering *w, uint64_t at, size_t n, int64_t *id) {
    uint64_t low = 0, high = w->results; /* finds the first segment that ends behind `at` */
    while (low < high) {
        const uint64_t middle = low + (high - low) / 2;
        if ((uint64_t)w->offset[middle + 1] <= at)
            low = middle + 1;
        else
            high = middle;
    }
    for (size_t i = 0; i < n; i++) {
        while (low < w->results && (uint64_t)w->offset[low + 1] <= at + i)
            low++;
        id[i] = low < w->results && (uint64_t)w->offset[low] <= at + i ? (int64_t)low : -1;
    }
    return 1;
}

static int read_offsets(struct numbering *w, const struct run *r) {
    const uint64_t n = w->cut;
    struct file f = {.handle = -1};
    int well = open_file(&f, r->parts.segments, (tally_type)0);
    const uint64_t count = well ? f.header.count : 0;
    if (well && ((f.header.type != TALLY_I32 && f.header.type != TALLY_I64) || count == 0))
        well = wrong("%s: offsets are i32 or i64, one more than segments", r->parts.segments);
    unsigned char *raw = well ? malloc(count * 8 + 8) : NULL;
    w->offset = well ? malloc((count + 1) * sizeof *w->offset) : NULL;
    if (well && (!raw || !w->offset)) well = wrong("no memory for the offsets");
    well = well && read_elements(&f, raw, 0, (size_t)count);
    for (uint64_t i = 0; i < count && well && raw && w->offset; i++) {
        w->offset[i] = widened(raw, (size_t)i, f.header.type);
        if (w->offset[i] < (i ? w->offset[i - 1] : 0) || (uint64_t)w->offset[i] > n)
            well = wrong("%s: offset %llu is %lld: it falls, or lies outside of the %llu elements",
                         r->parts.segments, (unsigned long long)i, (long long)w->offset[i],
                         (unsigned long long)n);
    }
    w->results = count ? count - 1 : 0;
    free(raw);
    if (f.handle >= 0) close(f.handle);
    return well;
}

static int open_segments(struct numbering *w, const struct run *r) {
    const uint64_t n = w->cut;
    char *end;
    errno = 0;
    const unsigned long long length = strtoull(r->parts.segments, &end, 10);
    w->number = number_segments;
    w->skips = 1;
    if (*end || end == r->parts.segments || errno) return read_offsets(w, r);
    if (length == 0 || n % length != 0)
        return wrong("%s has %llu elements, which are not whole segments of %llu; a file of "
                     "offsets may have segments of any length",
                     r->file[0].name, (unsigned long long)n, length);
    w->results = n / length;
    w->each = length;
    w->offset = malloc((size_t)(w->results + 1) * sizeof *w->offset);
    if (!w->offset) return wrong("no memory for the offsets");
    for (uint64_t i = 0; i <= w->results; i++)
        w->offset[i] = (int64_t)(i * length);
    return 1;
}

/* ---- Along axes ----------------------------------------------------------------------------- */

static int number_axes(struct numbering *w, uint64_t at, size_t n, int64_t *id) {
    uint64_t index[NPY_DIMS] = {0}, rest = at, result = 0;
    for (unsigned d = w->dims; d-- > 0; rest /= w->length[d]) {
        index[d] = rest % w->length[d];
        result += index[d] * w->stride[d];
    }
    for (size_t i = 0; i < n; i++) {
        const int64_t part = w->part ? w->part[index[w->along]] : 0;
        id[i] = part < 0 || (w->part && (uint64_t)part >= w->parts)
                    ? -1
                    : (int64_t)(result + (uint64_t)part * w->along_stride);
        for (unsigned d = w->dims; d-- > 0;) {
            result += w->stride[d];
            if (++index[d] < w->length[d]) break;
            result -= w->stride[d] * w->length[d];
            index[d] = 0;
        }
    }
    return 1;
}

/* Sets the strides that number the results in C order. Reduced axes count `parts` there: 1, or the parts of the
 * axis that is cut. */
static void number_results(struct numbering *w, const struct run *r, uint64_t parts) {
    const struct npy_header *h = &r->file[0].header;
    uint64_t stride[NPY_DIMS];
    w->results = 1;
    for (unsigned d = w->dims; d-- > 0;) {
        stride[d] = w->results;
        w->results *= w->reduced[d] ? parts : h->length[d];
    }
    for (unsigned d = 0; d < w->dims; d++) {
        const unsigned from = h->is_fortran ? w->dims - 1 - d : d;
        w->length[d] = h->length[from];
        w->stride[d] = w->reduced[from] ? 0 : stride[from];
        if (!w->reduced[from]) continue;
        w->along = d;
        w->along_stride = stride[from];
    }
}

static int open_axes(struct numbering *w, const struct run *r) {
    const struct npy_header *h = &r->file[0].header;
    const long dims = (long)h->dims;
    const char *text = r->parts.axis;
    int *reduced = w->reduced;
    w->number = number_axes;
    if (h->dims > NPY_DIMS)
        return wrong("%s has %u axes, more than %d", r->file[0].name, h->dims, NPY_DIMS);
    for (;; text++) {
        char *end;
        long d = strtol(text, &end, 10);
        if (end == text || (*end && *end != ','))
            return wrong("--axis takes numbers of axes such as 0,-1, not '%s'", r->parts.axis);
        if (d < -dims || d >= dims)
            return wrong("%s has no axis %ld: it has %ld", r->file[0].name, d, dims);
        if (d < 0) d += dims;
        if (reduced[d]++) return wrong("--axis %s names an axis twice", r->parts.axis);
        text = end;
        if (!*text) break;
    }
    w->dims = h->dims;
    for (unsigned d = 0; d < w->dims; d++)
        if (reduced[d] && is_along(r)) w->cut = h->length[d];
    number_results(w, r, 1);
    return 1;
}

/* Numbers the axis' indices by --segments or --by; from then on number_axes() numbers elements by these. */
static int go_along(struct numbering *w, const struct run *r) {
    const uint64_t n = w->cut;
    int well = 1;
    w->parts = w->results;
    w->part = malloc((size_t)(n + 1) * sizeof *w->part);
    if (!w->part) return wrong("no memory for the parts of an axis");
    for (uint64_t at = 0; at < n && well;) {
        const size_t some = n - at < CHUNK ? (size_t)(n - at) : CHUNK;
        well = w->number(w, at, some, w->part + at);
        at += some;
    }
    number_results(w, r, w->parts);
    w->number = number_axes;
    w->skips = 1;
    return well;
}

/* ---- Some elements -------------------------------------------------------------------------- */

/* Numbers all elements 0: there is one result. */
static int number_all(struct numbering *w, uint64_t at, size_t n, int64_t *id) {
    (void)w, (void)at;
    memset(id, 0, n * sizeof *id);
    return 1;
}

static int open_mask(struct numbering *w, const struct run *r) {
    const uint64_t n = r->file[0].header.count;
    if (!open_file(&w->mask, r->parts.mask, (tally_type)0)) return 0;
    if (w->mask.header.element != 1)
        return wrong("%s holds %s, where a mask is of single bytes", r->parts.mask,
                     tally_type_name(w->mask.header.type));
    if (w->mask.header.count != n)
        return wrong("%s has %llu bytes for %llu elements", r->parts.mask,
                     (unsigned long long)w->mask.header.count, (unsigned long long)n);
    w->marks = malloc(CHUNK);
    return w->marks ? 1 : wrong("no memory to read a mask into");
}

/* ---- One run -------------------------------------------------------------------------------- */

static int feed(struct run *r, struct numbering *w, tally_groups *groups) {
    const uint64_t n = r->file[0].header.count, first = part_start(n, r->rank, r->ranks),
                   last = part_start(n, r->rank + 1, r->ranks);
    const size_t most = CHUNK / 8;
    unsigned char *x = malloc((size_t)r->files * CHUNK);
    int64_t *id = malloc(most * sizeof *id);
    int well = 1;
    if (!x || !id) {
        free(x);
        free(id);
        return wrong("no memory to read into");
    }
    for (uint64_t at = first; at < last && well;) {
        const size_t chunk = last - at < most ? (size_t)(last - at) : most;
        unsigned char *y = r->files == 2 ? x + CHUNK : NULL;
        const tally_shape shape = {.cut = TALLY_GROUPS,
                                   .n = chunk,
                                   .count = (size_t)w->results,
                                   .ids = id,
                                   .mask = w->marks,
                                   .skip_outside = w->skips};
        well = read_elements(&r->file[0], x, at, chunk) &&
               (!y || read_elements(&r->file[1], y, at, chunk)) && w->number(w, at, chunk, id);
        if (well && w->marks) well = read_elements(&w->mask, w->marks, at, chunk);
        if (well && tally_groups_feed(groups, r->device, &shape, x, y) != TALLY_OK)
            well = wrong("%s", tally_error());
        at += chunk;
    }
    free(x);
    free(id);
    return well;
}

/* Sets the shape of the results. */
static void shape_of(const struct run *r, const struct numbering *w, struct answer *a) {
    const struct npy_header *h = &r->file[0].header;
    if (!r->parts.axis && !r->parts.segments && !r->parts.by) return;
    a->dims = 1;
    a->length[0] = a->parts = w->results;
    a->each = w->each;
    if (!r->parts.axis) return;
    a->dims = 0;
    a->parts = w->parts;
    for (unsigned d = 0; d < h->dims; d++) {
        if (w->reduced[d]) a->axis[a->axes++] = d;
        if (!w->reduced[d] || is_along(r))
            a->length[a->dims++] = w->reduced[d] ? w->parts : h->length[d];
    }
}

/* Shows the results of `asked`, the problem without the count that plan() has added. */
static int show(const struct run *r, const struct numbering *w, const tally_problem *asked,
                tally_groups *groups) {
    struct answer a = {.axes = 0};
    void *out[TALLY_VALUES_MAX] = {NULL};
    const size_t results = (size_t)w->results;
    uint64_t *known = calloc(results + 1, sizeof *known);
    int status = STATUS_FAILED;
    shape_of(r, w, &a);
    const bool is_ready =
        results_begin(&a.results, asked, r->output) && results_room(&a.results, results);
    if (is_ready && !known) failed("no memory for the results");
    if (is_ready && known) {
        memcpy(out, a.results.out, sizeof out);
        out[a.results.values] = known;
        if (r->parts.by && !is_along(r)) a.known = known;
        if (tally_groups_values(groups, out) != TALLY_OK)
            failed("%s: %s", r->file[0].name, tally_error());
        else if (results_put(&a.results, results))
            status = answer_results(r, &a);
    }
    results_end(&a.results);
    free(known);
    return status;
}

/* Refuses operators that groups over ranks do not have, and adds one that counts. */
static int plan(struct run *r) {
    size_t also = 0, all, count = 0, *values = &count;
    if (tally_problem_values(&r->problem, values) != TALLY_OK) return wrong("%s", tally_error());
    for (size_t v = 0; v < *values; v++) {
        const tally_op op = tally_problem_value_op(&r->problem, v);
        if (op == TALLY_PROD && r->problem.type >= TALLY_F16)
            return wrong("a floating prod in parts is for 'tally': its order is that of a tree");
        if ((op == TALLY_ARGMIN || op == TALLY_ARGMAX) && (r->parts.axis || r->parts.segments))
            return wrong("%s along axes and of segments is for 'tally': it counts within a result",
                         tally_op_name(op));
    }
    while (also < 8 && r->problem.also[also])
        also++;
    if (also == 8) return wrong("more than eight operators in parts");
    r->problem.also[also] = TALLY_COUNT;
    return tally_problem_values(&r->problem, &all) == TALLY_OK ? 1 : wrong("%s", tally_error());
}

int parts_reduce(struct run *r) {
    struct numbering w = {
        .number = number_all, .results = 1, .ids = {.handle = -1}, .mask = {.handle = -1}};
    const tally_problem asked = r->problem;
    tally_groups *groups = NULL;
    int status = STATUS_FAILED;
    w.cut = r->file[0].header.count;
    int well = r->file[0].header.type && plan(r) && (!r->parts.axis || open_axes(&w, r)) &&
               (!r->parts.by || open_groups(&w, r)) &&
               (!r->parts.segments || open_segments(&w, r)) && (!r->parts.mask || open_mask(&w, r));
    if (!all_well(r->rank, r->ranks)) goto end;
    if (r->parts.by) {
        int64_t most = (int64_t)r->parts.groups - 1;
        if (!r->parts.groups && w.raw)
            most = greatest_id(&w, part_start(w.cut, r->rank, r->ranks),
                               part_start(w.cut, r->rank + 1, r->ranks));
        MPI_Allreduce(MPI_IN_PLACE, &most, 1, MPI_INT64_T, MPI_MAX, MPI_COMM_WORLD);
        w.results = (uint64_t)most + 1;
    }
    well = well && (!is_along(r) || go_along(&w, r));
    if (!all_well(r->rank, r->ranks)) goto end;
    if (tally_groups_create(&r->problem, (size_t)w.results, &groups) != TALLY_OK)
        well = wrong("%s", tally_error());
    if (well) feed(r, &w, groups);
    if (!all_well(r->rank, r->ranks)) goto end;
    if (tally_mpi_allreduce_groups(&r->problem, (size_t)w.results, &groups, MPI_COMM_WORLD) ==
        TALLY_OK)
        status = r->rank == 0 ? show(r, &w, &asked, groups) : STATUS_OK;
    else if (r->rank == 0)
        failed("%s", tally_mpi_error());
    MPI_Bcast(&status, 1, MPI_INT, 0, MPI_COMM_WORLD);
end:
    tally_groups_destroy(groups);
    free(w.raw);
    free(w.offset);
    free(w.part);
    free(w.marks);
    if (w.mask.handle >= 0) close(w.mask.handle);
    if (w.ids.handle >= 0) close(w.ids.handle);
    return status;
}
