/*
 * bench_shaped.c - see bench_shaped.h.
 *
 * A reduction in parts must read the array and its ids or offsets, and write the results. The roof
 * is the time of the fastest plain read of as many bytes, and then of the fastest plain write. All
 * take turns, as in bench.c.
 */
#include "bench/bench_shaped.h"

#include "common/arguments.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/message.h"
#include "common/progress.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { DIMS = TALLY_DIMS_MAX };
enum who { OURS, DEVICE_READ, WRITE, WRITES, PLAIN_READS, CONTESTANTS = PLAIN_READS + BENCH_READS };
static const uint64_t default_n = 1 << 26;
static const double shortest_turn = 500e-6; /* seconds: shorter calls are repeated within a turn */

struct shaped_bench {
    const struct bench_shaped *as;
    tally_device_info info;
    tally_shape shape;
    size_t length[DIMS];
    uint64_t n, results;
    size_t values, key_bytes, bytes_read, bytes_written;
    unsigned char *memory;  /* x, y, ids or offsets, side by side: bytes_read of them */
    unsigned char *written; /* the results: bytes_written */
    const unsigned char *y;
    void *out[TALLY_VALUES_MAX];
    uint64_t calls[CONTESTANTS];
    double *seconds; /* [contestant * rounds + round] */
    double median[CONTESTANTS];
    int status; /* of the command */
};

bool bench_shape_is_asked(const struct bench_shape *s) {
    return s->shape || s->axis || s->segments || s->groups || s->ids;
}

/* ---- What is asked for ---- */

static int check(const struct bench_shaped *as) {
    const struct bench_shape *s = &as->ask;
    if (!!s->shape + !!s->segments + !!s->groups > 1)
        return misused("--shape, --segments and --groups exclude each other; leave all but one "
                       "out");
    if (s->axis && !s->shape) return misused("--axis goes with --shape, as in --shape 1000x4");
    if (s->shape && !s->axis) return misused("--shape needs an axis to reduce, as in --axis 1");
    if (s->shape && as->n)
        return misused("--shape tells how many elements there are; leave -n out");
    if (s->ids && !s->groups) return misused("--ids goes with --groups");
    if (s->ids && strcmp(s->ids, "random") != 0 && strcmp(s->ids, "sorted") != 0 &&
        strcmp(s->ids, "zipf") != 0)
        return misused("--ids takes one of random sorted zipf; '%s' is none", s->ids);
    if (s->groups > INT32_MAX) return misused("--groups: ids are i32, so 2^31 - 1 is the most");
    return STATUS_OK;
}

/* Reads --shape: lengths with an x between them, as in 1000x4. */
static bool read_shape(struct shaped_bench *b) {
    const char *text = b->as->ask.shape;
    char part[32];
    b->n = 1;
    for (const char *at = text;; at++) {
        const size_t width = strcspn(at, "x");
        uint64_t length;
        if (b->shape.dims == DIMS)
            return b->status = misused("--shape %s has more than %d dimensions", text, (int)DIMS),
                   false;
        snprintf(part, sizeof part, "%.*s", (int)width, at);
        if (!argument_count("--shape", part, &length)) return b->status = STATUS_USAGE, false;
        b->length[b->shape.dims++] = (size_t)length;
        if (__builtin_mul_overflow(b->n, length, &b->n))
            return failed("--shape %s has more elements than can be counted", text), false;
        at += width;
        if (!*at) return true;
    }
}

static bool read_axis(struct shaped_bench *b) {
    const char *text = b->as->ask.axis;
    for (const char *at = text;; at++) {
        char *end;
        const long axis = strtol(at, &end, 10), dims = b->shape.dims;
        if (end == at || (*end && *end != ',') || axis < -dims || axis >= dims)
            return b->status = misused("--axis %s: --shape %s has the axes 0 to %ld", text,
                                       b->as->ask.shape, dims - 1),
                   false;
        b->shape.axes |= 1u << (axis < 0 ? axis + dims : axis);
        at = end;
        if (!*at) return true;
    }
}

/* ---- Segments ---- */

static double uniform(uint64_t i) {
    return ((double)(bench_random(i) >> 11) + 0.5) * 0x1p-53;
}

/* Returns a random length up to 2^16; a length's chance falls as its power -1.5. */
static uint64_t zipf_length(uint64_t i) {
    const double u = uniform(i), length = 1 / (u * u);
    return length < 65536 ? (uint64_t)length : 65536;
}

static uint64_t put_zipf(uint64_t n, int64_t *offset) {
    uint64_t at = 0, count = 0;
    for (;; count++) {
        if (offset) offset[count] = (int64_t)at;
        if (at == n) return count;
        const uint64_t length = zipf_length(count);
        at = n - at < length ? n : at + length;
    }
}

/* Puts a thousand segments of one element, two that share nearly all, and a thousand of one.
 * Returns their number. */
static uint64_t put_giant(uint64_t n, int64_t *offset) {
    const uint64_t few = n / 4 < 1000 ? n / 4 : 1000;
    for (uint64_t i = 0; i <= few && offset; i++) {
        offset[i] = (int64_t)i;
        offset[few + 2 + i] = (int64_t)(n - few + i);
    }
    if (offset) offset[few + 1] = (int64_t)(n / 2);
    return 2 * few + 2;
}

/* Puts 64 segments, and behind each n / 1024 without elements. Returns their number. */
static uint64_t put_empty(uint64_t n, int64_t *offset) {
    const uint64_t each = n / 1024 + 1;
    for (uint64_t i = 0; i < 64 * each && offset; i++)
        offset[i + 1] = (int64_t)((i / each + 1) * (n / 64) + (i / each == 63 ? n % 64 : 0));
    if (offset) offset[0] = 0;
    return 64 * each;
}

static const struct {
    const char *name;
    uint64_t (*put)(uint64_t n, int64_t *offset);
} skews[] = {{"zipf", put_zipf}, {"giant", put_giant}, {"empty", put_empty}};

static int find_skew(const char *name) {
    for (int i = 0; i < (int)(sizeof skews / sizeof *skews); i++)
        if (strcmp(skews[i].name, name) == 0) return i;
    return -1;
}

static bool plan_segments(struct shaped_bench *b) {
    const char *text = b->as->ask.segments;
    const int skew = find_skew(text);
    uint64_t length;
    b->shape.cut = TALLY_SEGMENTS;
    if (skew >= 0) {
        b->results = skews[skew].put(b->n, NULL);
        b->key_bytes = (size_t)(b->results + 1) * 8;
        return true;
    }
    if (*text < '0' || *text > '9')
        return b->status = misused(
                   "--segments takes a length, or one of zipf giant empty; '%s' is none", text),
               false;
    if (!argument_count("--segments", text, &length)) return b->status = STATUS_USAGE, false;
    if (length > b->n || b->n % length)
        return failed("%" PRIu64 " elements are not whole segments of %" PRIu64, b->n, length),
               false;
    b->results = b->n / length; /* by offsets, as all others */
    b->key_bytes = (size_t)(b->results + 1) * 8;
    return true;
}

static void put_offsets(struct shaped_bench *b, int64_t *offset) {
    const int skew = find_skew(b->as->ask.segments);
    if (skew >= 0)
        skews[skew].put(b->n, offset);
    else
        for (uint64_t i = 0; i <= b->results; i++)
            offset[i] = (int64_t)(i * (b->n / b->results));
    b->shape.offsets = offset;
}

/* ---- Groups ---- */

static void put_ids(struct shaped_bench *b, int32_t *id) {
    const uint64_t groups = b->as->ask.groups;
    const char *kind = b->as->ask.ids ? b->as->ask.ids : "random";
    for (uint64_t i = 0; i < b->n; i++) {
        uint64_t value;
        if (*kind == 's')
            value = (uint64_t)((unsigned __int128)i * groups / b->n);
        else if (*kind == 'z') /* the chance of an id falls as its inverse */
            value = (uint64_t)exp(uniform(i) * log((double)groups + 1)) - 1;
        else
            value = (uint64_t)((unsigned __int128)bench_random(i) * groups >> 64);
        id[i] = (int32_t)(value < groups ? value : groups - 1);
    }
    b->shape.ids = id;
    b->shape.ids_type = TALLY_I32;
}

/* ---- Setting up ---- */

static bool plan(struct shaped_bench *b) {
    const struct bench_shape *ask = &b->as->ask;
    size_t results = 0;
    b->n = b->as->n ? b->as->n : default_n;
    if (ask->shape) {
        b->shape = (tally_shape){.cut = TALLY_AXES, .length = b->length};
        if (!read_shape(b) || !read_axis(b)) return false;
        if (tally_shape_results(&b->shape, &results) != TALLY_OK)
            return failed("%s", tally_error()), false;
        b->results = results;
        return true;
    }
    if (b->n > SIZE_MAX / 64)
        return failed("-n %" PRIu64 " is more than memory holds", b->n), false;
    if (ask->segments) {
        if (!plan_segments(b)) return false;
    } else {
        b->shape.cut = TALLY_GROUPS;
        b->results = ask->groups;
        b->key_bytes = (size_t)b->n * 4;
    }
    b->shape.n = (size_t)b->n;
    b->shape.count = (size_t)b->results;
    return true;
}

static bool get_memory(struct shaped_bench *b) {
    const tally_problem *p = &b->as->problem;
    const uint64_t free_bytes = memory_available();
    const uint64_t element = tally_type_size(p->type) * (p->op == TALLY_DOT ? 2 : 1);
    uint64_t size, out = 0;
    for (size_t v = 0; v < b->values; v++)
        out += tally_type_size(tally_problem_value_type(p, v));
    bool fits = !__builtin_mul_overflow(b->n, element, &size) &&
                !__builtin_mul_overflow(b->results, out, &out) && size < free_bytes / 2 &&
                b->key_bytes < free_bytes / 2 && out < free_bytes / 2 &&
                size + b->key_bytes + out < free_bytes;
    size = (size + 7) / 8 * 8;
    if (fits) {
        b->bytes_read = (size_t)size + b->key_bytes;
        b->bytes_written = (size_t)out;
        b->memory = memory_get(b->bytes_read + 8);
        b->written = memory_get(b->bytes_written + 8 * TALLY_VALUES_MAX);
    }
    b->seconds = calloc(CONTESTANTS * b->as->rounds, sizeof *b->seconds);
    if (!fits || !b->memory || !b->written || !b->seconds)
        return failed("not enough memory for %" PRIu64 " elements and %" PRIu64 " results: %.2f GB "
                      "are free; choose fewer",
                      b->n, b->results, (double)free_bytes * 1e-9),
               false;
    if (p->op == TALLY_DOT) b->y = b->memory + b->n * element / 2;
    bench_data_fill(b->as->data, p->op, p->type, b->memory,
                    (size_t)b->n * (p->op == TALLY_DOT ? 2 : 1));
    if (b->shape.cut == TALLY_SEGMENTS) put_offsets(b, (int64_t *)(void *)(b->memory + size));
    if (b->shape.cut == TALLY_GROUPS) put_ids(b, (int32_t *)(void *)(b->memory + size));
    unsigned char *at = b->written;
    for (size_t v = 0; v < b->values; v++) {
        b->out[v] = at;
        at += (b->results * tally_type_size(tally_problem_value_type(p, v)) + 7) / 8 * 8;
    }
    return true;
}

/* ---- Running ---- */

static volatile double kept; /* so that no compiler leaves out a loop */

/* Fills the results: each thread a part. */
static void fill(struct shaped_bench *b, int value, int threads) {
    const size_t part = b->bytes_written / (size_t)threads + 1;
#if TALLY_OPENMP
#pragma omp parallel for num_threads(threads) if (threads > 1)
#endif
    for (int t = 0; t < threads; t++) {
        const size_t first = (size_t)t * part;
        if (first >= b->bytes_written) continue;
        const size_t left = b->bytes_written - first;
        memset(b->written + first, value, left < part ? left : part);
    }
}

static bool take_turn(struct shaped_bench *b, int who, uint64_t calls, double *seconds) {
    if (who == DEVICE_READ) {
        if (tally_device_read(b->as->device, b->memory, b->bytes_read, seconds) == TALLY_OK)
            return true;
        return failed("%s", tally_error()), false;
    }
    const double start = clock_seconds();
    for (uint64_t i = 0; i < calls; i++) {
        if (who == WRITE || who == WRITES)
            fill(b, (int)i, who == WRITE ? 1 : b->as->threads);
        else if (who >= PLAIN_READS)
            kept =
                b->as->read[who - PLAIN_READS](b->memory, NULL, b->bytes_read / 8, b->as->threads);
        else if (tally_reduce_shaped(b->as->device, &b->as->problem, &b->shape, b->memory, b->y,
                                     b->out) != TALLY_OK)
            return failed("%s", tally_error()), false;
    }
    *seconds = (clock_seconds() - start) / (double)calls;
    return true;
}

/* Sleeps for longer than the threads of an OpenMP runtime spin after their loop is done. */
static void rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* A first call of each warms up, and a second tells how many make a turn long enough to be timed. */
static bool run_rounds(struct shaped_bench *b) {
    const uint64_t rounds = b->as->rounds;
    for (int who = 0; who < CONTESTANTS; who++) {
        double seconds;
        rest();
        if (!take_turn(b, who, 1, &seconds) || !take_turn(b, who, 1, &seconds)) return false;
        b->calls[who] =
            seconds < shortest_turn ? (uint64_t)(shortest_turn / (seconds + 1e-9)) + 1 : 1;
    }
    for (uint64_t round = 0; round < rounds; round++)
        for (int who = 0; who < CONTESTANTS; who++) {
            rest();
            if (!take_turn(b, who, b->calls[who], &b->seconds[(uint64_t)who * rounds + round]))
                return false;
        }
    return true;
}

static int compare(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_medians(struct shaped_bench *b) {
    const uint64_t rounds = b->as->rounds;
    for (int who = 0; who < CONTESTANTS; who++) {
        double *s = b->seconds + (uint64_t)who * rounds;
        qsort(s, rounds, sizeof *s, compare);
        b->median[who] = (s[(rounds - 1) / 2] + s[rounds / 2]) / 2;
    }
}

/* ---- Telling ---- */

static double read_seconds(const struct shaped_bench *b) {
    double best = b->median[DEVICE_READ];
    for (int who = PLAIN_READS; who < CONTESTANTS; who++)
        if (b->median[who] < best) best = b->median[who];
    return best;
}

static double write_seconds(const struct shaped_bench *b) {
    return b->median[WRITE] < b->median[WRITES] ? b->median[WRITE] : b->median[WRITES];
}

static double roof_seconds(const struct shaped_bench *b) {
    return read_seconds(b) + write_seconds(b);
}

static double gigabytes(const struct shaped_bench *b) {
    return (double)(b->bytes_read + b->bytes_written) * 1e-9;
}

static void json_cut(const struct shaped_bench *b, struct json_object *object) {
    const struct bench_shape *ask = &b->as->ask;
    if (ask->shape) {
        struct json_object *lengths = json_new_list(), *axes = json_new_list();
        for (unsigned d = 0; d < b->shape.dims; d++) {
            json_item(lengths, json_object_new_uint64(b->length[d]));
            if (b->shape.axes >> d & 1) json_item(axes, json_object_new_uint64(d));
        }
        json_member(object, "shape", lengths);
        json_member(object, "axis", axes);
    }
    if (ask->segments) json_text(object, "segments", ask->segments);
    if (ask->groups) json_count(object, "groups", ask->groups);
    if (ask->groups) json_text(object, "ids", ask->ids ? ask->ids : "random");
}

static int print_json(const struct shaped_bench *b) {
    const double ours = b->median[OURS], roof = roof_seconds(b);
    struct json_object *object = json_new_object();
    json_text(object, "op", tally_op_name(b->as->problem.op));
    json_text(object, "dtype", tally_type_name(b->as->problem.type));
    json_count(object, "n", b->n);
    json_cut(b, object);
    json_count(object, "results", b->results);
    json_count(object, "bytes_read", b->bytes_read);
    json_count(object, "bytes_written", b->bytes_written);
    json_text(object, "device", b->info.spec);
    json_count(object, "threads", b->info.threads);
    json_text(object, "isa", b->info.isa);
    json_text(object, "data", bench_data_name(b->as->data));
    json_flag(object, "fast", b->as->problem.fast);
    json_count(object, "rounds", b->as->rounds);
    json_measure(object, "median_ms", ours * 1e3);
    json_measure(object, "gbps", gigabytes(b) / ours);
    json_measure(object, "roof_gbps", gigabytes(b) / roof);
    json_measure(object, "of_roof", roof / ours);
    return json_print(object);
}

static void print_row(const char *name, double seconds, double gb, double roof) {
    printf("  %-16s %12.6g ms %9.2f GB/s %7.2f\n", name, seconds * 1e3, gb / seconds,
           roof / seconds);
}

static int print_table(const struct shaped_bench *b) {
    const struct bench_shape *ask = &b->as->ask;
    const double roof = roof_seconds(b);
    printf("%s of %" PRIu64 " %s (%s%s) ", tally_op_name(b->as->problem.op), b->n,
           tally_type_name(b->as->problem.type), bench_data_name(b->as->data),
           b->as->problem.fast ? ", fast" : "");
    if (ask->shape) printf("of shape %s along axis %s", ask->shape, ask->axis);
    if (ask->segments) printf("in segments: %s", ask->segments);
    if (ask->groups) printf("by %" PRIu64 " %s ids", ask->groups, ask->ids ? ask->ids : "random");
    printf(", %" PRIu64 " results\n", b->results);
    if (b->info.threads)
        printf("on %s, %u threads, %s", b->info.spec, b->info.threads, b->info.isa);
    else
        printf("on %s (%s), with the copy from the host", b->info.spec, b->info.name);
    printf("; medians of %" PRIu64 " rounds\n\n", b->as->rounds);
    printf("  %-16s %12s    %9s      %7s\n", "", "time", "moved", "of roof");
    print_row("tally", b->median[OURS], gigabytes(b), roof);
    print_row("roof", roof, gigabytes(b), roof);
    printf("  %-16s %12.6g ms %9.2f GB/s\n", "  reads", read_seconds(b) * 1e3,
           (double)b->bytes_read * 1e-9 / read_seconds(b));
    printf("  %-16s %12.6g ms\n", "  writes", write_seconds(b) * 1e3);
    return finish_output();
}

int bench_shaped(const struct bench_shaped *as) {
    struct shaped_bench b = {.as = as};
    int status = check(as);
    if (status != STATUS_OK) return status;
    if (tally_problem_values(&as->problem, &b.values) != TALLY_OK)
        return failed("%s", tally_error());
    if (tally_device_describe(as->device, &b.info) != TALLY_OK) return failed("%s", tally_error());
    b.status = STATUS_FAILED;
    if (plan(&b) && get_memory(&b) && run_rounds(&b)) {
        find_medians(&b);
        b.status = as->as_json ? print_json(&b) : print_table(&b);
    }
    memory_release(b.memory, b.bytes_read + 8);
    memory_release(b.written, b.bytes_written + 8 * TALLY_VALUES_MAX);
    free(b.seconds);
    return b.status;
}
