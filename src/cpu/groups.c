/* cpu/groups.c - see groups.h. */
#include "cpu/groups.h"

#include "base/paths.h"
#include "base/scratch.h"
#include "base/status.h"
#include "base/stop.h"
#include "base/types.h"
#include "cpu/columns.h"
#include "cpu/kernels.h"
#include "cpu/rows.h"
#include "cpu/tuning.h"
#include "device/vectors.h"

#include <stdlib.h>
#include <string.h>

/* Returns whether all values are sums, means and counts, of a type that few_sums() takes. */
static int are_sums(const struct problem *p) {
    if (type_is_short_float(p->type) || (!type_is_float(p->type) && type_bits(p->type) == 64))
        return 0;
    for (unsigned v = 0; v < p->values; v++)
        if (p->value[v].op != TALLY_SUM && p->value[v].op != TALLY_MEAN &&
            p->value[v].op != TALLY_COUNT)
            return 0;
    return 1;
}

#if defined(TALLY_DEBUG)
enum { ADDED, AS_THEY_COME, SORTED };
static const char *const way_names[] = {[ADDED] = "added up in any order",
                                        [AS_THEY_COME] = "in order already",
                                        [SORTED] = "brought into order"};
static const struct path_axis way_axis = PATH_AXIS(way_names);
static const char *never_groups(const struct path_table *t, const unsigned at[PATH_AXES]) {
    struct problem p;
    const char *why = problem_path(at[1], at[2], &p);
    (void)t;
    if (why || at[0] != ADDED) return why;
    return are_sums(&p) ? NULL : "only sums of such elements are added up";
}
PATH_TABLE(groups_paths, "groups", never_groups, &way_axis, &path_ops, &path_types);
#endif

/* A sort by counting. The elements are cut into parts, one a task. First each part counts the
 * elements of every group, then it brings its elements to their places. */
struct sort_job {
    const struct shaped *s;
    const unsigned char *only; /* [groups]: not 0 for groups to be sorted; NULL: all */
    size_t parts, part;        /* how many parts; the elements of each but the last */
    struct scratch scratch;    /* has count[], bad[] and fall[] */
    int64_t *count; /* [parts][groups]: how many elements, then where the next one goes */
    size_t *bad;    /* [parts]: the first id that is wrong; SIZE_MAX: none */
    size_t *fall; /* [parts]: the first id below the one before it, or of an element in no group */
    char *x, *y;  /* NULL: only positions are sorted */
    uint64_t *position;
    size_t element; /* bytes of an element; 0: only positions are sorted */
    int halt;       /* the flag of stop_shared() */
};

static size_t part_end(const struct sort_job *job, size_t part) {
    return part + 1 == job->parts ? job->s->n : (part + 1) * job->part;
}

/* Returns whether the sort leaves out an element that is not masked. */
static int is_left_out(const struct sort_job *job, uint64_t id) {
    return id >= job->s->results || (job->only && !job->only[id]);
}

#define RUNS(type)                                                                                 \
    do {                                                                                           \
        const type *x = (const type *)s->ids + i;                                                  \
        for (; run + GROUPS_RUN < most && x[run + GROUPS_RUN] == x[0]; run += GROUPS_RUN) {        \
            type differ = 0;                                                                       \
            for (size_t k = 1; k < GROUPS_RUN; k++)                                                \
                differ |= (type)(x[run + k] ^ x[0]);                                               \
            if (differ) break;                                                                     \
        }                                                                                          \
    } while (0)

/* Returns how many ids directly behind the i-th one equal it, rounded down to a multiple of GROUPS_RUN.
 * Looks at `most` ids, the i-th included; so the result is less than `most`. */
static size_t same_ids(const struct shaped *s, size_t i, size_t most) {
    size_t run = 0;
    switch (type_size(s->ids_type)) {
    case 1:
        RUNS(unaligned_u8);
        break;
    case 2:
        RUNS(unaligned_u16);
        break;
    case 4:
        RUNS(unaligned_u32);
        break;
    default:
        RUNS(unaligned_u64);
    }
    return run;
}

static void count_task(void *context, size_t part, unsigned worker) {
    struct sort_job *job = context;
    const struct shaped *s = job->s;
    const size_t groups = s->results, begin = part * job->part, end = part_end(job, part);
    int64_t *count = job->count + part * groups;
    size_t bad = SIZE_MAX, fall = SIZE_MAX;
    (void)worker;
    memset(count, 0, groups * sizeof *count);
    uint64_t before = begin > 0 ? id_at(s->ids, s->ids_type, begin - 1) : 0;
    for (size_t i = begin; i < end; i++) {
        if (i % GROUPS_STOP_EVERY == 0 && stop_shared(&job->halt)) break;
        const uint64_t id = id_at(s->ids, s->ids_type, i);
        if (fall == SIZE_MAX && (id < before || is_left_out(job, id) || (s->mask && !s->mask[i])))
            fall = i;
        if (s->mask && !s->mask[i]) {
            before = id;
            continue;
        }
        if (!is_left_out(job, id))
            count[id]++;
        else if (id >= groups && !s->skip_outside && bad == SIZE_MAX)
            bad = i;
        if (id == before && !s->mask) { /* ids may be sorted: count many at once */
            const size_t here = GROUPS_STOP_EVERY - i % GROUPS_STOP_EVERY;
            TALLY_PATH("a run of one id");
            const size_t run = same_ids(s, i, here < end - i ? here : end - i);
            if (!is_left_out(job, id)) count[id] += (int64_t)run;
            i += run;
        }
        before = id;
    }
    job->bad[part] = bad;
    job->fall[part] = fall;
}

#define SCATTER(type)                                                                              \
    do {                                                                                           \
        type *to = (type *)(void *)job->x;                                                         \
        for (size_t i = begin; i < end; i++) {                                                     \
            if (i % GROUPS_STOP_EVERY == 0 && stop_shared(&job->halt)) return;                     \
            const uint64_t id = id_at(s->ids, s->ids_type, i);                                     \
            if ((s->mask && !s->mask[i]) || is_left_out(job, id)) continue;                        \
            const int64_t at = next[id]++;                                                         \
            memcpy(to + at, s->x + i * sizeof(type), sizeof(type));                                \
            if (job->y)                                                                            \
                memcpy((type *)(void *)job->y + at, s->y + i * sizeof(type), sizeof(type));        \
            if (job->position) job->position[at] = i;                                              \
        }                                                                                          \
    } while (0)

/* Brings the positions of a part's elements, none of which is masked, to their places. */
static void scatter_positions(struct sort_job *job, int64_t *next, size_t begin, size_t end) {
    const struct shaped *s = job->s;
    for (size_t i = begin; i < end; i++) {
        if (i % GROUPS_STOP_EVERY == 0 && stop_shared(&job->halt)) return;
        const uint64_t id = id_at(s->ids, s->ids_type, i);
        if (!is_left_out(job, id)) job->position[next[id]++] = i;
    }
}

static void scatter_task(void *context, size_t part, unsigned worker) {
    struct sort_job *job = context;
    const struct shaped *s = job->s;
    const size_t groups = s->results, begin = part * job->part, end = part_end(job, part);
    int64_t *next = job->count + part * groups;
    (void)worker;
    switch (job->element) {
    case 0:
        scatter_positions(job, next, begin, end);
        break;
    case 1:
        SCATTER(uint8_t);
        break;
    case 2:
        SCATTER(uint16_t);
        break;
    case 4:
        SCATTER(uint32_t);
        break;
    default:
        SCATTER(uint64_t);
    }
}

/* Returns the first element that any part has found; SIZE_MAX if none has. */
static size_t first_of(const size_t *found, size_t parts) {
    for (size_t i = 0; i < parts; i++)
        if (found[i] != SIZE_MAX) return found[i];
    return SIZE_MAX;
}

static tally_status no_memory(void) {
    return fail(TALLY_ENOMEM, "no memory to bring elements into the order of their groups");
}

/* Sets start[], where each group begins, from the counts. Then turns the counts into the places of
 * each part's elements. */
static void place_groups(struct sort_job *job, int64_t *start) {
    const size_t groups = job->s->results;
    int64_t at = 0;
    for (size_t g = 0; g < groups; g++) {
        start[g] = at;
        for (size_t p = 0; p < job->parts; p++) {
            const int64_t n = job->count[p * groups + g];
            job->count[p * groups + g] = at;
            at += n;
        }
    }
    start[groups] = at;
}

static void lay_out_counts(struct sort_job *job) {
    job->count = scratch_array(&job->scratch, job->parts * job->s->results, sizeof *job->count);
    job->bad = scratch_array(&job->scratch, job->parts, sizeof *job->bad);
    job->fall = scratch_array(&job->scratch, job->parts, sizeof *job->fall);
}

/* Lays out the copies of `n` elements and, for an index, their positions. */
static void lay_out_copies(struct sort_job *job, size_t n, struct scratch *copies) {
    if (job->element) job->x = scratch_array(copies, n, job->element);
    if (job->s->y) job->y = scratch_array(copies, n, job->element);
    if (!job->element || job->s->p->extremes & WANT_INDEX)
        job->position = scratch_array(copies, n, sizeof *job->position);
}

static tally_status sort(struct cpu_device *d, struct sort_job *job, struct sorted *out) {
    const struct shaped *s = job->s;
    const size_t id_bytes = s->n * type_size(s->ids_type);
    tally_status shared = cpu_share(d, id_bytes, job->parts, count_task, job);
    if (shared != TALLY_OK) return shared;
    if (job->halt) return stop_status();
    const size_t bad = first_of(job->bad, job->parts), fall = first_of(job->fall, job->parts);
    if (bad != SIZE_MAX) return shape_bad_id(s, bad);
    if (s->sorted && fall != SIZE_MAX && !s->skip_outside && !s->mask) return shape_bad_id(s, fall);
    place_groups(job, out->start);
    if (job->element)
        TALLY_PATH_OF_VALUE(groups_paths, s->p, fall == SIZE_MAX ? AS_THEY_COME : SORTED);
    if (job->parts > 1) TALLY_PATH("in several parts");
    if (job->only) TALLY_PATH("groups that were left");
    if (fall == SIZE_MAX) { /* the elements lie in this order already */
        out->x = s->x;
        out->y = s->y;
        return TALLY_OK;
    }
    const size_t n = (size_t)out->start[s->results];
    lay_out_copies(job, n, &out->copies);
    if (!scratch_create(&out->copies, 0)) return no_memory();
    lay_out_copies(job, n, &out->copies);
    out->x = job->x;
    out->y = job->y;
    out->position = job->position;
    shared = cpu_share(d, s->n * (job->element ? job->element : sizeof *job->position), job->parts,
                       scatter_task, job);
    return shared == TALLY_OK && job->halt ? stop_status() : shared;
}

/* Sorts the elements of all groups, or of those with only[] not 0; or only their positions, where `element` is 0. */
static tally_status sort_some(struct cpu_device *d, const struct shaped *s,
                              const unsigned char *only, size_t element, struct sorted *out) {
    struct sort_job job = {.s = s, .only = only, .parts = 1, .element = element};
    if (d->threads > 1 && s->n / GROUPS_PART_LEAST > 1 && s->results <= s->n / 4)
        job.parts = s->n / GROUPS_PART_LEAST < d->threads ? s->n / GROUPS_PART_LEAST : d->threads;
    job.part = s->n / job.parts;
    tally_status status = TALLY_OK;
    lay_out_counts(&job);
    if (!sorted_begin(out, s->results) || !scratch_create(&job.scratch, 0)) status = no_memory();
    lay_out_counts(&job);
    if (status == TALLY_OK) status = sort(d, &job, out);
    scratch_destroy(&job.scratch);
    if (status != TALLY_OK) sorted_free(out);
    return status;
}

tally_status cpu_sort(tally_device *device, const struct shaped *s, struct sorted *out) {
    return sort_some((struct cpu_device *)device, s, NULL, type_size(s->p->type), out);
}

tally_status cpu_sort_positions(struct cpu_device *d, const struct shaped *s, struct sorted *out) {
    struct shaped ids = *s;
    ids.x = ids.y = NULL;
    ids.mask = NULL; /* each vector has its own */
    ids.results = s->count;
    if (s->mask && !s->skip_outside) {
        const tally_status status = vectors_check_ids(s);
        if (status != TALLY_OK) return status;
        ids.skip_outside = 1;
    }
    return sort_some(d, &ids, NULL, 0, out);
}

/* ---- Few groups, of sums -------------------------------------------------------------------- */

/* The sum of a group of n elements, as in columns.h: s + e +- b. */
struct group_sum {
    double s, e, b;
    uint64_t n;
};

/* A thread's integers of a group: high 2^(E - 40) + low 2^(E - 80), where E is its window's. */
struct group_integers {
    int64_t high, low;
    uint64_t n, seen; /* elements; how many of them are in the group's sum already */
};

/* `high` and `low` of a struct group_integers, as one vector. */
typedef int64_t two_integers __attribute__((vector_size(16)));

/* A thread's window, of the exponent E: its elements are less than 2^(E - 1) in magnitude, so an element adds no more
 * than 2^39 to an integer, and 2^22 elements no more than 2^61. */
struct window {
    int open, exponent;
    unsigned failed, pause; /* chunks that did not fit, in a row; chunks not to be tried */
    size_t left;            /* elements until the integers have to be emptied */
};
#define WINDOW_ELEMENTS ((size_t)1 << 22)

/* A worker's window, integers and sums. */
struct sums_worker {
    struct scratch scratch;          /* has the arrays */
    struct group_sum *sums;          /* [room] */
    struct group_integers *integers; /* [room], each in one line of the caches */
    struct window window;
};

struct sums_job {
    const struct shaped *s;
    const struct column_kernels *k;
    size_t part, element;
    struct sums_worker *workers; /* [threads] */
    size_t room;                 /* groups, and one for elements in no group */
    size_t bad;                  /* the first id outside; SIZE_MAX: none */
    int fetches;                 /* the sums are too many for the caches */
};

#define WIDEN_ALL(type, from, to)                                                                  \
    for (size_t i = 0; i < n; i++) {                                                               \
        type v;                                                                                    \
        memcpy(&v, (const char *)(from) + i * sizeof v, sizeof v);                                 \
        (to)[i] = v;                                                                               \
    }                                                                                              \
    break

static void widen_elements(tally_type type, const char *x, size_t n, double *out) {
    switch (type) {
    case TALLY_I8:
        WIDEN_ALL(int8_t, x, out);
    case TALLY_I16:
        WIDEN_ALL(int16_t, x, out);
    case TALLY_I32:
        WIDEN_ALL(int32_t, x, out);
    case TALLY_U8:
        WIDEN_ALL(uint8_t, x, out);
    case TALLY_U16:
        WIDEN_ALL(uint16_t, x, out);
    case TALLY_U32:
        WIDEN_ALL(uint32_t, x, out);
    case TALLY_F32:
        WIDEN_ALL(float, x, out);
    default:
        memcpy(out, x, n * sizeof *out);
    }
}

#define NARROW_ALL(type)                                                                           \
    do {                                                                                           \
        const type *from = (const type *)s->ids + first;                                           \
        for (size_t i = 0; i < n; i++) {                                                           \
            const uint32_t beyond = from[i] != (type)(int32_t)from[i];                             \
            out[i] = (uint32_t)from[i] | (0 - beyond);                                             \
        }                                                                                          \
    } while (0);                                                                                   \
    break

void cpu_narrow_ids(const struct shaped *s, const struct column_kernels *k, size_t first, size_t n,
                    uint32_t *out) {
    switch (s->ids_type) {
    case TALLY_I8:
        NARROW_ALL(unaligned_i8);
    case TALLY_I16:
        NARROW_ALL(unaligned_i16);
    case TALLY_I32:
        NARROW_ALL(unaligned_i32);
    case TALLY_U8:
        NARROW_ALL(unaligned_u8);
    case TALLY_U16:
        NARROW_ALL(unaligned_u16);
    case TALLY_U32:
        NARROW_ALL(unaligned_u32);
    default:
        k->narrow((const unaligned_u64 *)s->ids + first, n, out);
    }
}

/* Adds each x[i] to the sum of group id[i]. */
static void add_sums(struct group_sum *sums, const uint32_t *id, const double *x, size_t n) {
    for (size_t i = 0; i < n; i++) {
        struct group_sum *g = &sums[id[i]];
        const double s = g->s, t = s + x[i], z = t - s, error = (s - (t - z)) + (x[i] - z);
        const double e = g->e, u = e + error, y = u - e, rest = (e - (u - y)) + (error - y);
        g->s = t;
        g->e = u;
        g->b += rest < 0 ? -rest : rest;
        g->n++;
    }
}

/* Adds a number to a sum whose n counts it already. */
static void add_number(struct group_sum *g, double x) {
    const uint32_t only = 0;
    g->n--;
    add_sums(g, &only, &x, 1);
}

/* Moves a thread's integers to its sums. */
static void empty_integers(const struct window *w, struct group_integers *integers,
                           struct group_sum *sums, size_t groups) {
    const double unit = __builtin_ldexp(1, w->exponent - 40),
                 unit2 = __builtin_ldexp(1, w->exponent - 80);
    if (!w->open) return;
    TALLY_PATH("");
    for (size_t g = 0; g < groups; g++) {
        struct group_integers *from = &integers[g];
        if (from->n == from->seen) continue;
        sums[g].n += from->n - from->seen;
        add_number(&sums[g], (double)(from->high >> 32) * 0x1p32 * unit);
        add_number(&sums[g], (double)(from->high & 0xffffffff) * unit);
        add_number(&sums[g], (double)(from->low >> 32) * 0x1p32 * unit2);
        add_number(&sums[g], (double)(from->low & 0xffffffff) * unit2);
        from->high = from->low = 0;
        from->seen = from->n;
    }
}

/* Sets w->left to how many more elements every group's integers have room for. Empties the integers
 * first if a group has more than WINDOW_ELEMENTS / 2 elements in them. */
static void look_at_windows(struct window *w, struct group_integers *integers,
                            struct group_sum *sums, size_t groups) {
    uint64_t most = 0;
    for (size_t g = 0; g < groups; g++) {
        const uint64_t own = integers[g].n - integers[g].seen;
        most = own > most ? own : most;
    }
    w->left = WINDOW_ELEMENTS;
    if (most > WINDOW_ELEMENTS / 2) {
        TALLY_PATH("full");
        empty_integers(w, integers, sums, groups);
    } else {
        TALLY_PATH("not full yet");
        w->left -= most;
    }
}

/* Opens a window with some room above the largest of the elements, unless that is too large or too small. */
static void open_window(struct window *w, const double *x, size_t n) {
    double most = 0;
    for (size_t i = 0; i < n; i++) {
        const double magnitude = __builtin_fabs(x[i]);
        most = magnitude > most ? magnitude : most;
    }
    w->open = most > 0x1p-800 && most < 0x1p800;
    if (!w->open) {
        TALLY_PATH("too large or too small");
        return;
    }
    TALLY_PATH("opened");
    (void)__builtin_frexp(most, &w->exponent);
    w->exponent += 4;
    w->left = WINDOW_ELEMENTS;
}

/* Adds a chunk to the groups: in integers where that is exact, else in doubles. */
static void add_chunk(struct sums_job *job, unsigned worker, const uint32_t *id, const double *x,
                      size_t n) {
    struct sums_worker *own = &job->workers[worker];
    struct group_sum *sums = own->sums;
    struct group_integers *integers = own->integers;
    struct window *w = &own->window;
    int64_t high[GROUPS_CHUNK + COLUMN_STEP], low[GROUPS_CHUNK + COLUMN_STEP];
    if (w->pause > 0) {
        TALLY_PATH("in doubles, untried");
        w->pause--;
        add_sums(sums, id, x, n);
        return;
    }
    if (!w->open)
        open_window(w, x, n);
    else if (w->left < n)
        look_at_windows(w, integers, sums, job->room);
    if (!w->open || !job->k->split(x, n, w->exponent, high, low)) {
        TALLY_PATH("in doubles");
        add_sums(sums, id, x, n);
        if (++w->failed < 3) return;
        TALLY_PATH("a window that is given up");
        empty_integers(w, integers, sums, job->room); /* the next chunk opens another */
        w->open = 0;
        w->pause = w->failed < 64 ? w->failed : 64;
        return;
    }
    TALLY_PATH("in integers");
    w->failed = 0;
    w->left -= n;
    for (size_t i = 0; i < n; i++) {
        struct group_integers *g = &integers[id[i]];
        if (job->fetches)
            __builtin_prefetch(&integers[id[i + GROUPS_AHEAD < n ? i + GROUPS_AHEAD : i]], 1);
        two_integers sum;
        memcpy(&sum, g, sizeof sum);
        sum += (two_integers){high[i], low[i]};
        memcpy(g, &sum, sizeof sum);
        g->n++;
    }
}

static void sums_task(void *context, size_t task, unsigned worker) {
    struct sums_job *job = context;
    const struct shaped *s = job->s;
    const uint32_t groups = (uint32_t)s->results;
    uint32_t id[GROUPS_CHUNK];
    double x[GROUPS_CHUNK + COLUMN_STEP] = {0};
    const size_t begin = task * job->part,
                 end = s->n - begin < job->part ? s->n : begin + job->part;
    for (size_t m, at = begin; at < end; at += m) {
        m = end - at < GROUPS_CHUNK ? end - at : GROUPS_CHUNK;
        cpu_narrow_ids(s, job->k, at, m, id);
        const char *from = s->x + at * job->element;
        const double *values = x;
        if (s->p->type == TALLY_F64 && m == GROUPS_CHUNK && (uintptr_t)from % sizeof *x == 0)
            values = (const double *)(const void *)from; /* as they lie */
        else {
            widen_elements(s->p->type, from, m, x);
            memset(x + m, 0, COLUMN_STEP * sizeof *x);
        }
        uint32_t outside = 0;
        for (size_t i = 0; i < m; i++)
            outside |= id[i] >= groups;
        if (outside || s->mask)
            for (size_t i = 0; i < m; i++) {
                if (s->mask && !s->mask[at + i])
                    id[i] = groups;
                else if (id[i] >= groups) {
                    size_t known = __atomic_load_n(&job->bad, __ATOMIC_RELAXED);
                    while (at + i < known &&
                           !__atomic_compare_exchange_n(&job->bad, &known, at + i, 0,
                                                        __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
                    }
                    id[i] = groups;
                }
            }
        add_chunk(job, worker, id, values, m);
    }
}

/* Returns whether some ids, `step` apart, never fall. */
static int do_not_fall(const struct shaped *s, size_t step) {
    for (size_t k = 1; k < GROUPS_SAMPLES && k * step < s->n; k++)
        if (id_at(s->ids, s->ids_type, k * step) < id_at(s->ids, s->ids_type, (k - 1) * step))
            return 0;
    return 1;
}

int cpu_ids_look_sorted(const struct shaped *s) {
    const size_t step = s->n / GROUPS_SAMPLES | 1; /* odd, as ids may have a period */
    return do_not_fall(s, 1) && do_not_fall(s, step);
}

/* Adds the sums b[i] to the sums a[i]. */
static void merge_sums(struct group_sum *a, const struct group_sum *b, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const double t = a[i].s + b[i].s, z = t - a[i].s, error = (a[i].s - (t - z)) + (b[i].s - z);
        const double u = a[i].e + b[i].e, y = u - a[i].e, rest = (a[i].e - (u - y)) + (b[i].e - y);
        const double w = u + error, q = w - u, more = (u - (w - q)) + (error - q);
        a[i].s = t;
        a[i].e = w;
        a[i].b += b[i].b + (rest < 0 ? -rest : rest) + (more < 0 ? -more : more);
        a[i].n += b[i].n;
    }
}

/* Lowers the sums; marks in left[] groups whose rounding is not certain, or that have no elements.
 * Returns 0 if no group is marked, 1 if all marked groups have no elements, else 2. */
static int lower_sums(const struct shaped *s, const struct column_kernels *k,
                      const struct group_sum *sums, unsigned char *left) {
    const int floating = type_is_float(s->p->type);
    int any = 0;
    for (size_t first = 0; first < s->results; first += GROUPS_CHUNK) {
        double a[GROUPS_CHUNK], e[GROUPS_CHUNK], b[GROUPS_CHUNK], n[GROUPS_CHUNK];
        uint64_t bits[GROUPS_CHUNK];
        unsigned char ok[GROUPS_CHUNK];
        const size_t m = s->results - first < GROUPS_CHUNK ? s->results - first : GROUPS_CHUNK;
        for (unsigned v = 0; v < s->p->values; v++) {
            const tally_op op = s->p->value[v].op;
            const tally_type out = s->p->value[v].type;
            memset(a, 0, sizeof a);
            memset(e, 0, sizeof e);
            memset(b, 0, sizeof b);
            memset(ok, 1, sizeof ok);
            for (size_t i = 0; i < GROUPS_CHUNK; i++)
                n[i] = 1;
            for (size_t i = 0; i < m; i++) {
                const struct group_sum *g = &sums[first + i];
                a[i] = g->s == 0 && !floating ? 0 : g->s;
                e[i] = g->e;
                b[i] = g->b;
                n[i] = g->n ? (double)g->n : 1;
                bits[i] = g->n;
            }
            if (op == TALLY_MEAN) k->mean(a, e, b, m, n);
            if (op != TALLY_COUNT && type_is_float(out)) k->round(a, e, b, m, out, bits, ok);
            for (size_t i = 0; i < m; i++) {
                if (op == TALLY_SUM && !type_is_float(out)) {
                    ok[i] = b[i] == 0 && a[i] < 0x1p62 && a[i] > -0x1p62 &&
                            (a[i] >= 0 || out == TALLY_I64);
                    bits[i] = ok[i] ? (uint64_t)((int64_t)a[i] + (int64_t)e[i]) : 0;
                }
                const int is_empty = sums[first + i].n == 0;
                if (op != TALLY_COUNT && is_empty) ok[i] = 0;
                left[first + i] |= !ok[i];
                if (!ok[i] && any < 2) any = is_empty ? 1 : 2;
                shaped_put(s, v, (ptrdiff_t)(first + i), bits[i]);
            }
        }
    }
    return any;
}

static void lay_out_sums(struct sums_worker *worker, size_t room) {
    worker->sums = scratch_array(&worker->scratch, room, sizeof *worker->sums);
    worker->integers = scratch_array(&worker->scratch, room, sizeof *worker->integers);
}

/* Allocates the sums of `threads` threads, all of no elements. Returns 0 if there is no memory. */
static int make_sums(struct sums_job *job, unsigned threads) {
    job->workers = calloc(threads, sizeof *job->workers);
    for (unsigned i = 0; job->workers && i < threads; i++) {
        struct sums_worker *worker = &job->workers[i];
        lay_out_sums(worker, job->room);
        if (!scratch_create(&worker->scratch, 0)) return 0;
        lay_out_sums(worker, job->room);
        memset(worker->integers, 0, job->room * sizeof *worker->integers);
        for (size_t g = 0; g < job->room; g++)
            worker->sums[g] = (struct group_sum){.s = -0.0};
    }
    return job->workers != NULL;
}

static void free_sums(struct sums_job *job, unsigned threads) {
    for (unsigned i = 0; job->workers && i < threads; i++)
        scratch_destroy(&job->workers[i].scratch);
    free(job->workers);
}

/* Sums few groups, whose ids come in any order, and returns 1. *status is the status; *any is the result of
 * lower_sums(), not 0 if left[] marks groups to be done as segments. Returns 0 and does nothing if there is no
 * memory, or segments are faster. */
static int few_sums(struct cpu_device *d, const struct shaped *s, unsigned char *left, int *any,
                    tally_status *status) {
    struct sums_job job = {.k = d->kernels->columns,
                           .s = s,
                           .element = type_size(s->p->type),
                           .room = s->results + 1,
                           .bad = SIZE_MAX,
                           .fetches = s->results > FEW_GROUPS};
    if (!are_sums(s->p) || s->results > s->n || s->sorted || cpu_ids_look_sorted(s)) return 0;
    if (s->results > INT32_MAX) return 0; /* cpu_narrow_ids() makes larger ids invalid */
    if (job.fetches && s->n / s->results / d->threads < GROUPS_MEAN_LEAST) return 0;
    if (!make_sums(&job, d->threads)) {
        TALLY_PATH("no memory");
        free_sums(&job, d->threads);
        return 0;
    }
    TALLY_PATH_OF_VALUE(groups_paths, s->p, ADDED);
    if (job.fetches) TALLY_PATH("more groups than the caches hold");
    if (s->mask) TALLY_PATH("a mask");
    job.part = s->n / d->threads / 16 / GROUPS_CHUNK * GROUPS_CHUNK + GROUPS_CHUNK;
    if (job.part > GROUPS_TASK) job.part = GROUPS_TASK;
    *status = cpu_share(d, s->n * job.element, (s->n + job.part - 1) / job.part, sums_task, &job);
    if (*status == TALLY_OK && job.bad != SIZE_MAX && !s->skip_outside)
        *status = shape_bad_id(s, job.bad);
    else if (*status == TALLY_OK) {
        for (unsigned i = 0; i < d->threads; i++)
            empty_integers(&job.workers[i].window, job.workers[i].integers, job.workers[i].sums,
                           job.room);
        for (unsigned i = 1; i < d->threads; i++)
            merge_sums(job.workers[0].sums, job.workers[i].sums, s->results);
        *any = lower_sums(s, job.k, job.workers[0].sums, left);
    }
    free_sums(&job, d->threads);
    return 1;
}

tally_status cpu_groups(struct cpu_device *d, const struct shaped *s, struct absence *absence) {
    struct sorted sorted;
    struct shaped segments = *s;
    tally_status status = TALLY_OK;
    unsigned char *left = calloc(s->results + 1, 1);
    int any = 0;
    if (!left) return no_memory();
    if (few_sums(d, s, left, &any, &status)) {
        if (status != TALLY_OK || !any) {
            free(left);
            return status;
        }
    } else {
        free(left);
        left = NULL;
    }
    if (any == 1) { /* all groups that are left are empty */
        TALLY_PATH("groups without elements");
        status = sorted_begin(&sorted, s->results) ? TALLY_OK : no_memory();
        if (sorted.start) memset(sorted.start, 0, (s->results + 1) * sizeof *sorted.start);
        sorted.x = s->x;
    } else
        status = sort_some(d, s, left, type_size(s->p->type), &sorted);
    if (status != TALLY_OK) {
        free(left);
        return status;
    }
    segments.cut = TALLY_SEGMENTS;
    segments.mask = NULL; /* what it leaves out is not among the sorted elements */
    segments.offsets = sorted.start;
    segments.offsets_type = TALLY_I64;
    const struct rows rows = {.s = &segments,
                              .start = sorted.start,
                              .start_type = TALLY_I64,
                              .x = sorted.x,
                              .y = sorted.y,
                              .absolute = 1,
                              .position = sorted.position,
                              .only = left};
    status = cpu_rows(d, &rows, absence);
    sorted_free(&sorted);
    free(left);
    return status;
}
