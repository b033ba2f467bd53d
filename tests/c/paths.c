/*
 * paths.c - takes every path of the library (src/base/paths.h) at least once, and checks what comes of it.
 *
 *     paths [SEED]             the instruction sets of this CPU
 *     paths model [SEED]       the model of a GPU, and one whose memory most arrays do not fit
 *
 * Reductions along axes, by segment, by group and behind masks are held against tally_reduce() of each result's
 * elements; whole arrays against states that are fed a few elements at a time; states against what they were made of.
 * Data are random from a seed, the same in each run. scripts/paths says which path was not taken, in builds that count
 * them. A new schedule, type, operator or fallback needs a case here that takes it.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally.h>

static uint64_t draws;
static size_t calls;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = (draws += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void *allocate(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "paths: no memory\n");
        exit(2);
    }
    return p;
}

static void must_work(tally_status s, const char *what) {
    if (s == TALLY_OK) return;
    printf("paths: %s: %s\n", what, tally_error());
    exit(1);
}

#define MUST(call) must_work(call, #call)

static void must_be(int condition, const char *what, const tally_problem *p, const char *device) {
    if (condition) return;
    printf("paths: %s of %s, %s: %s\n", tally_op_name(p->op), tally_type_name(p->type), device,
           what);
    exit(1);
}

/* ---- Problems ------------------------------------------------------------------------------- */

/* A user's operator on elements of any size, of which the order matters. */
static void mix(void *context, const void *left, const void *right, void *out, size_t count) {
    const size_t size = *(const size_t *)context;
    for (size_t i = 0; i < count; i++) {
        uint64_t a = 0, b = 0;
        memcpy(&a, (const char *)left + i * size, size);
        memcpy(&b, (const char *)right + i * size, size);
        a = (a * 5 + 1) ^ b;
        memcpy((char *)out + i * size, &a, size);
    }
}
static void add(void *context, const void *left, const void *right, void *out, size_t count) {
    const uint32_t *a = left, *b = right;
    uint32_t *c = out;
    (void)context;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] + b[i];
}
static const uint64_t nothing;
static size_t sizes[] = {0, 1, 2, 3, 4, 5, 6, 7, 8};

static int is_float(tally_type type) {
    return type >= TALLY_F16;
}

/* The problem of one operator; returns 0 where there is none. */
static int find_problem(tally_op op, tally_type type, tally_problem *p, tally_operator *user) {
    size_t values;
    *p = (tally_problem){.op = op, .type = type};
    *user = (tally_operator){mix, &sizes[tally_type_size(type)], &nothing, 0, NULL};
    if (op == TALLY_USER) p->user = user;
    return tally_problem_values(p, &values) == TALLY_OK;
}

/* ---- Data ------------------------------------------------------------------------------------ */

enum kind {
    SMALL,         /* small integers */
    ONES,          /* around 1 */
    WILD,          /* of all exponents */
    SPECIAL,       /* with NaNs, infinities, zeros of both signs */
    CONSTANT,      /* equal elements */
    ZEROS,         /* -0 */
    SIGNS,         /* zeros of both signs */
    INFINITE,      /* +Inf, or the greatest integer */
    LEAST,         /* -Inf, or the least integer */
    WIDE_INFINITE, /* of all exponents, and +Inf at the end of a long row */
    STEPS,         /* stretches of 3000, each 2^30 times smaller than the one before */
    TWOS,          /* 2 and 3 */
    TIES,          /* 1, half of its last bit, and pairs of far smaller numbers that cancel */
    FAR_TIES,      /* the same of numbers that are 2^100 times smaller */
    SQUARES,       /* 32 numbers that cancel, whose squares add up to little more than a tie */
    ROOT_TIES, /* two sides of a right triangle, whose third is half way between two floats, and 30 zeros */
    BLOCKS, /* stretches of one magnitude each */
    STRETCHES, /* the same of 1024 numbers, 2^60 apart: two doubles hold the sum of each, but not of three */
    HUGE_ONES, /* near the greatest */
    TINY,      /* subnormal, or products of which are */
    SPREAD,    /* and more: of exponents from 0 down to -(kind - SPREAD) */
};

static void put_bits(char *to, tally_type type, uint64_t bits) {
    memcpy(to, &bits, tally_type_size(type)); /* little-endian */
}

/* Writes an element, the i-th of its array. */
static void put(char *to, tally_type type, unsigned kind, size_t i) {
    static const struct {
        unsigned bits, mantissa;
    } formats[] = {{16, 10}, {16, 7}, {32, 23}, {64, 52}};
    const uint64_t r = draw(), more = draw();
    static uint64_t block;
    if (!is_float(type)) {
        const unsigned bits = 8 * (unsigned)tally_type_size(type);
        const uint64_t top = UINT64_C(1) << (bits - 1);
        uint64_t v = r;
        if (kind == SMALL || kind == ONES) v = type <= TALLY_I64 ? r % 7 - 3 : r % 7;
        if (kind == CONSTANT) v = 7;
        if (kind == ZEROS || kind == SIGNS) v = 0;
        if (kind == BLOCKS) v = r % 50 == 0 ? 0 : 1;
        if (kind == HUGE_ONES) v = type <= TALLY_I64 ? top : UINT64_MAX;
        if (kind == LEAST) v = type <= TALLY_I64 ? top : 0;
        if (kind == TWOS) v = 2 + r % 2;
        if (kind == INFINITE) v = type <= TALLY_I64 ? top - 1 : UINT64_MAX;
        if (kind == TINY) v = type <= TALLY_I64 && r & 1 ? UINT64_MAX : 1;
        put_bits(to, type, v);
        return;
    }
    const unsigned bits = formats[type - TALLY_F16].bits,
                   mantissa = formats[type - TALLY_F16].mantissa;
    const uint64_t top = (UINT64_C(1) << (bits - 1 - mantissa)) - 1, bias = top >> 1;
    const uint64_t sign = r >> 63 << (bits - 1), fraction = r & ((UINT64_C(1) << mantissa) - 1);
    uint64_t field = bias;
    if (kind >= SPREAD) {
        const uint64_t down = more % (kind - SPREAD + 1);
        put_bits(to, type, sign | (bias > down ? bias - down : 1) << mantissa | fraction);
        return;
    }
    switch (kind) {
    case SMALL: { /* -8 ... 8 */
        const int v = (int)(r % 17) - 8;
        const unsigned e = v == 0 ? 0 : 31 - (unsigned)__builtin_clz((unsigned)abs(v));
        const uint64_t f =
            v == 0 ? 0 : (uint64_t)abs(v) << (mantissa - e) & ((UINT64_C(1) << mantissa) - 1);
        put_bits(to, type,
                 v == 0 ? 0 : (uint64_t)(v < 0) << (bits - 1) | (bias + e) << mantissa | f);
        return;
    }
    case WILD:
        field = more % top;
        break;
    case SPECIAL:
        if (more % 8 == 0) field = top;
        if (more % 8 == 1) {
            put_bits(to, type, sign);
            return;
        }
        if (field == top && more % 3 == 0) {
            put_bits(to, type, sign | top << mantissa);
            return;
        }
        break;
    case CONSTANT:
        put_bits(to, type, bias << mantissa | 5);
        return;
    case ZEROS:
        put_bits(to, type, UINT64_C(1) << (bits - 1));
        return;
    case SIGNS:
        put_bits(to, type, sign);
        return;
    case INFINITE:
    case LEAST:
        put_bits(to, type, (uint64_t)(kind == LEAST) << (bits - 1) | top << mantissa);
        return;
    case WIDE_INFINITE:
        field = i % 12000 == 11999 ? top : more % top;
        if (field < top) break;
        put_bits(to, type, top << mantissa);
        return;
    case STEPS:
        field = bias - (bias < 200 ? 0 : i / 3000 * 30);
        break;
    case TWOS:
        put_bits(to, type, (bias + 1) << mantissa | (r & 1) << (mantissa - 1));
        return;
    case SQUARES: { /* the least need more than the 53 bits that a double-double has left */
        static const unsigned downs[] = {0, 0, 0, 0, 42, 42, 80, 80};
        const unsigned at = i % 32,
                       down = at / 2 == 1 ? (mantissa + 1) / 2 : downs[at < 8 ? at : 7];
        put_bits(to, type,
                 (uint64_t)(at & 1) << (bits - 1) | (bias - (bias < 100 ? down % 14 : down))
                                                        << mantissa);
        return;
    }
    case ROOT_TIES: {
        const unsigned at = i % 32;
        const uint64_t sides[] = {(bias + mantissa) << mantissa | ((UINT64_C(1) << mantissa) - 1),
                                  (bias + (mantissa + 1) / 2 + 1) << mantissa};
        const uint64_t of_f16[] = {(bias + 10) << 10 | 791, (bias + 9) << 10 | 912}; /* 1815, 968 */
        put_bits(to, type, at > 1 ? 0 : type == TALLY_F16 ? of_f16[at] : sides[at]);
        return;
    }
    case TIES:
    case FAR_TIES:
        if (i % 20 > 1) {
            const unsigned far = bias > 100 ? 100 : (unsigned)bias - 1,
                           down = kind == TIES ? 2 * mantissa + 12 : far;
            put_bits(to, type, (uint64_t)(i & 1) << (bits - 1) | (bias - down) << mantissa | 1);
            return;
        }
        put_bits(to, type, (i % 20 ? bias - mantissa - 1 : bias) << mantissa);
        return;
    case BLOCKS:
        if (i % 300 == 0) block = more % top;
        field = i < 4 ? 1 : block;
        break;
    case STRETCHES:
        field = bias > 120 ? bias - 60 * (i / 1024 % 3) : bias;
        break;
    case HUGE_ONES:
        field = top - 1;
        break;
    case TINY:
        field = more % 3;
        break;
    }
    put_bits(to, type, sign | field << mantissa | fraction);
}

static char *make(tally_type type, unsigned kind, size_t n) {
    const size_t size = tally_type_size(type);
    char *x = allocate(n * size + 8);
    for (size_t i = 0; i < n; i++)
        put(x + i * size, type, kind, i);
    return x;
}

/* ---- Shapes ----------------------------------------------------------------------------------- */

/* What is reduced: its arrays begin at x, y and mask. */
struct call {
    tally_problem problem;
    tally_shape shape;
    const char *x, *y;
};

static struct {
    tally_device *device;
    const char *spec;
} devices[8];
static size_t device_count;

/* The elements of one result, side by side, and where each of them stands. */
struct gathered {
    char *x, *y;
    uint64_t *position;
    size_t n;
};

static void gather(const struct call *c, struct gathered *to, size_t at_x, size_t at_y,
                   size_t at_mask, uint64_t position) {
    const size_t size = tally_type_size(c->problem.type);
    if (c->shape.mask && !c->shape.mask[at_mask]) return;
    memcpy(to->x + to->n * size, c->x + at_x * size, size);
    if (c->y) memcpy(to->y + to->n * size, c->y + at_y * size, size);
    to->position[to->n++] = position;
}

static int64_t number_at(const void *numbers, tally_type type, size_t i) {
    return type == TALLY_I32 ? ((const int32_t *)numbers)[i] : ((const int64_t *)numbers)[i];
}

/* Gathers the elements of one result of vectors: columns whose parts lie along axis 0. */
static void gather_vector(const struct call *c, size_t result, struct gathered *to) {
    const tally_shape *s = &c->shape;
    const size_t columns = s->length[1], part = result / columns;
    size_t first = 0;
    for (size_t i = 0; i < s->length[0]; i++) {
        const size_t at = i * columns + result % columns;
        int is_its = 0;
        if (s->cut == TALLY_GROUPS)
            is_its = (uint64_t)number_at(s->ids, s->ids_type, i) == part;
        else {
            first = (size_t)number_at(s->offsets, s->offsets_type, part);
            is_its = i >= first && i < (size_t)number_at(s->offsets, s->offsets_type, part + 1);
        }
        if (is_its) gather(c, to, at, at, at, i - first);
    }
}

/* Gathers the elements of one result. */
static void gather_result(const struct call *c, size_t result, struct gathered *to) {
    const tally_shape *s = &c->shape;
    to->n = 0;
    if (s->cut != TALLY_AXES && s->dims > 0) {
        gather_vector(c, result, to);
        return;
    }
    if (s->cut == TALLY_SEGMENTS) {
        const size_t from = s->offsets ? (size_t)number_at(s->offsets, s->offsets_type, result)
                                       : s->n / s->count * result,
                     end = s->offsets ? (size_t)number_at(s->offsets, s->offsets_type, result + 1)
                                      : s->n / s->count * (result + 1);
        for (size_t i = from; i < end; i++)
            gather(c, to, i, i, i, i - from);
        return;
    }
    if (s->cut == TALLY_GROUPS) {
        for (size_t i = 0; i < s->n; i++)
            if ((uint64_t)number_at(s->ids, s->ids_type, i) == result) gather(c, to, i, i, i, i);
        return;
    }
    size_t index[4] = {0}, rows = 1;
    for (unsigned d = s->dims; d-- > 0;)
        if (!(s->axes >> d & 1)) {
            index[d] = result % s->length[d];
            result /= s->length[d];
        } else
            rows *= s->length[d];
    for (size_t i = 0; i < rows; i++) {
        size_t left = i, plain = 0, at[3] = {0};
        for (unsigned d = s->dims; d-- > 0;)
            if (s->axes >> d & 1) {
                index[d] = left % s->length[d];
                left /= s->length[d];
            }
        for (unsigned d = 0; d < s->dims; d++) {
            plain = plain * s->length[d] + index[d];
            if (s->x_stride) at[0] += index[d] * (size_t)s->x_stride[d];
            if (s->y_stride) at[1] += index[d] * (size_t)s->y_stride[d];
            if (s->mask_stride) at[2] += index[d] * (size_t)s->mask_stride[d];
        }
        gather(c, to, s->x_stride ? at[0] : plain, s->y_stride ? at[1] : plain,
               s->mask_stride ? at[2] : plain, i);
    }
}

/* The place of a result in out[v]. */
static size_t place_of(const tally_shape *s, size_t result) {
    size_t place = 0;
    if (!s->out_stride || s->cut != TALLY_AXES) return result;
    for (unsigned d = s->dims; d-- > 0;)
        if (!(s->axes >> d & 1)) {
            place += result % s->length[d] * (size_t)s->out_stride[d];
            result /= s->length[d];
        }
    return place;
}

#define MOST  ((size_t)1 << 20) /* elements of a result */
#define SPACE 4                 /* places for a result, at most: strides of results */

/* What each result is alone: the bits of all values, and the status of the first that does not exist. */
struct alone {
    size_t results, values;
    uint64_t *bits; /* [results][values] */
    tally_status worst;
};

static void reduce_alone(const struct call *c, struct alone *a) {
    static char x[8 * MOST], y[8 * MOST];
    static uint64_t position[MOST];
    const tally_problem *p = &c->problem;
    struct gathered own = {x, y, position, 0};
    a->worst = TALLY_OK;
    MUST(tally_problem_values(p, &a->values));
    MUST(tally_shape_results(&c->shape, &a->results));
    a->bits = allocate(a->results * a->values * sizeof *a->bits);
    for (size_t i = 0; i < a->results; i++) {
        tally_value value[TALLY_VALUES_MAX];
        gather_result(c, i, &own);
        const tally_status s = tally_reduce(NULL, p, own.x, c->y ? own.y : NULL, own.n, value);
        if (s != TALLY_OK && a->worst == TALLY_OK) a->worst = s;
        for (size_t v = 0; v < a->values; v++) {
            const tally_op op = tally_problem_value_op(p, v);
            const int index = op == TALLY_ARGMIN || op == TALLY_ARGMAX;
            const int exists = s == TALLY_OK && value[v].type != 0;
            uint64_t right = exists ? tally_value_bits(&value[v]) : 0;
            if (exists && index) right = own.position[right];
            if (!exists && index && a->values > 1) right = UINT64_MAX;
            a->bits[i * a->values + v] = right;
        }
    }
}

/* Reduces in parts on each device, and holds each result against its elements alone. */
static void check_shaped(const struct call *c, const char *what) {
    const tally_problem *p = &c->problem;
    struct alone a;
    reduce_alone(c, &a);
    for (size_t d = 0; d < device_count; d++, calls++) {
        void *out[TALLY_VALUES_MAX];
        for (size_t v = 0; v < a.values; v++)
            out[v] = allocate(SPACE * a.results * 8);
        const tally_status status =
            tally_reduce_shaped(devices[d].device, p, &c->shape, c->x, c->y, out);
        must_be((status == TALLY_OK) == (a.worst == TALLY_OK) || a.values > 1, what, p,
                devices[d].spec);
        for (size_t v = 0; v < a.values; v++) {
            const size_t size = tally_type_size(tally_problem_value_type(p, v));
            for (size_t i = 0; i < a.results; i++) {
                const uint64_t right = a.bits[i * a.values + v];
                uint64_t got = 0;
                memcpy(&got, (char *)out[v] + place_of(&c->shape, i) * size, size);
                if (got == right) continue;
                printf("paths: %s, %s: %s of %s, result %zu: %" PRIx64 " for %" PRIx64 "\n",
                       devices[d].spec, what, tally_op_name(tally_problem_value_op(p, v)),
                       tally_type_name(p->type), i, got, right);
                exit(1);
            }
            free(out[v]);
        }
    }
    free(a.bits);
}

/* Along one axis of two: `rows` results of `each` elements, whose strides are these. */
static void check_axes(tally_problem p, unsigned kind, size_t results, size_t each, ptrdiff_t kept,
                       ptrdiff_t reduced, ptrdiff_t out, int masked, const char *what) {
    const size_t n = (results - 1) * (size_t)kept + (each - 1) * (size_t)reduced + 1;
    const size_t length[2] = {results, each};
    const ptrdiff_t stride[2] = {kept, reduced}, to[2] = {out, 0};
    char *x = make(p.type, kind, n), *y = p.op == TALLY_DOT ? make(p.type, kind, n) : NULL;
    unsigned char *mask = allocate(n);
    for (size_t i = 0; i < n; i++)
        mask[i] = draw() % 3 != 0;
    const struct call c = {.problem = p,
                           .shape = {.cut = TALLY_AXES,
                                     .dims = 2,
                                     .length = length,
                                     .x_stride = stride,
                                     .y_stride = y ? stride : NULL,
                                     .mask = masked ? mask : NULL,
                                     .mask_stride = masked ? stride : NULL,
                                     .out_stride = out != 1 ? to : NULL,
                                     .axes = 2},
                           .x = x,
                           .y = y};
    check_shaped(&c, what);
    free(x);
    free(y);
    free(mask);
}

/* Segments of these lengths, in turn. */
static void check_segments(tally_problem p, unsigned kind, size_t count, const size_t *lengths,
                           size_t different, tally_type offsets_type, int masked,
                           const char *what) {
    int64_t *offsets = allocate((count + 1) * sizeof *offsets);
    int32_t *narrow = allocate((count + 1) * sizeof *narrow);
    size_t n = 0;
    for (size_t i = 0; i <= count; i++) {
        offsets[i] = (int64_t)n;
        narrow[i] = (int32_t)n;
        if (i < count) n += lengths[i % different];
    }
    char *x = make(p.type, kind, n), *y = p.op == TALLY_DOT ? make(p.type, kind, n) : NULL;
    unsigned char *mask = allocate(n);
    for (size_t i = 0; i < n; i++)
        mask[i] = draw() % 3 != 0;
    const struct call c = {
        .problem = p,
        .shape = {.cut = TALLY_SEGMENTS,
                  .n = n,
                  .count = count,
                  .offsets = offsets_type == TALLY_I32 ? (void *)narrow : offsets,
                  .offsets_type = offsets_type,
                  .mask = masked ? mask : NULL},
        .x = x,
        .y = y};
    check_shaped(&c, what);
    free(offsets);
    free(narrow);
    free(x);
    free(y);
    free(mask);
}

enum parts { BY_SEGMENT, BY_ID, BY_ID_OR_OUTSIDE };

/* Columns by segments of their rows of these lengths, in turn, or by as many ids in any order, of which some may be those
 * of no group. */
static void check_vectors(tally_problem p, unsigned kind, size_t count, const size_t *lengths,
                          size_t different, size_t columns, enum parts by, const char *what) {
    int64_t *places = allocate((count + 1) * sizeof *places);
    size_t length[2] = {0, columns};
    for (size_t i = 0; i <= count; i++) {
        places[i] = (int64_t)length[0];
        if (i < count) length[0] += lengths[i % different];
    }
    int32_t *ids = allocate(length[0] * sizeof *ids);
    for (size_t i = 0; i < length[0]; i++)
        ids[i] = by == BY_ID_OR_OUTSIDE && draw() % 3 == 0
                     ? -1
                     : (int32_t)(draw() % 3 == 0 ? draw() % count : count / 2);
    const size_t n = length[0] * columns;
    char *x = make(p.type, kind, n), *y = p.op == TALLY_DOT ? make(p.type, kind, n) : NULL;
    const struct call c = {.problem = p,
                           .shape = {.cut = by != BY_SEGMENT ? TALLY_GROUPS : TALLY_SEGMENTS,
                                     .dims = 2,
                                     .length = length,
                                     .axes = 1,
                                     .count = count,
                                     .offsets = by != BY_SEGMENT ? NULL : places,
                                     .ids = by != BY_SEGMENT ? ids : NULL,
                                     .ids_type = TALLY_I32,
                                     .skip_outside = by == BY_ID_OR_OUTSIDE},
                           .x = x,
                           .y = y};
    check_shaped(&c, what);
    free(places);
    free(ids);
    free(x);
    free(y);
}

enum order { MIXED, IN_ORDER, PROMISED, SOME_OUTSIDE };

static void check_groups(tally_problem p, unsigned kind, size_t groups, size_t n,
                         tally_type ids_type, enum order order, int masked, const char *what) {
    int64_t *ids = allocate(n * sizeof *ids);
    int32_t *narrow = allocate(n * sizeof *narrow);
    char *x = make(p.type, kind, n), *y = p.op == TALLY_DOT ? make(p.type, kind, n) : NULL;
    unsigned char *mask = allocate(n);
    for (size_t i = 0; i < n; i++) {
        const int in_order = order == IN_ORDER || order == PROMISED;
        ids[i] = (int64_t)(in_order ? i * groups / n : i ? draw() % groups : groups - 1);
        if (order == SOME_OUTSIDE && i && draw() % 3 == 0) ids[i] = -1;
        narrow[i] = (int32_t)ids[i];
        mask[i] = draw() % 3 != 0;
    }
    const struct call c = {.problem = p,
                           .shape = {.cut = TALLY_GROUPS,
                                     .n = n,
                                     .count = groups,
                                     .ids = ids_type == TALLY_I32 ? (void *)narrow : ids,
                                     .ids_type = ids_type,
                                     .sorted = order == PROMISED,
                                     .skip_outside = order == SOME_OUTSIDE,
                                     .mask = masked ? mask : NULL},
                           .x = x,
                           .y = y};
    check_shaped(&c, what);
    free(ids);
    free(narrow);
    free(x);
    free(y);
    free(mask);
}

#define LENGTHS(...) (const size_t[]){__VA_ARGS__}, sizeof((size_t[]){__VA_ARGS__}) / sizeof(size_t)

/* Every schedule of the CPU for one problem. */
static void check_schedules(const tally_problem *p) {
    const size_t size = tally_type_size(p->type), lines = 32768 / size; /* a long row */
    static const unsigned kinds[] = {SMALL, SPECIAL, CONSTANT, WILD, SPREAD + 40};
    tally_problem real = *p;
    real.out = TALLY_F64;
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        const unsigned kind = kinds[k];
        check_axes(*p, kind, 40, 9, 1, 40, 1, 0, "columns");
        check_axes(*p, kind, 37, 4, 1, 37, 1, 0, "columns of four");
        check_axes(*p, kind, 36, 4, 4, 1, 1, 0, "rows of four");
        check_axes(*p, kind, 36, 20, 20, 1, 1, 0, "rows of 20");
        check_axes(*p, kind, 18, 40, 40, 1, 1, 0, "rows of 40");
        check_axes(*p, kind, 20, 10, 90, 3, 2, 0, "rows with strides");
        check_segments(*p, kind, 40, LENGTHS(4), TALLY_I64, 0, "segments of four");
        check_segments(*p, kind, 60, LENGTHS(0, 3, 12, 40, 1, 7), TALLY_I32, 0, "segments");
        check_segments(*p, kind, 40, LENGTHS(12), TALLY_I32, 0, "segments of 12");
        check_groups(*p, kind, 10, 100, TALLY_I64, MIXED, 0, "groups");
    }
    check_axes(*p, SMALL, 3, 50, 1, 3, 1, 0, "three columns");
    if (tally_problem_value_type(&real, 0) == TALLY_F64)
        check_axes(real, SMALL, 40, 9, 1, 40, 1, 0, "columns as f64");
    check_segments(*p, SMALL, 40, LENGTHS(0), TALLY_I64, 0, "empty segments");
    check_segments(*p, SMALL, 40, LENGTHS(lines, 1, 1, 1), TALLY_I64, 0,
                   "segments, some of them long");
    check_segments(*p, SMALL, 1, LENGTHS(lines), TALLY_I64, 0, "a long segment");
    check_groups(*p, SMALL, 10, 100, TALLY_I32, IN_ORDER, 0, "groups in order");
    check_groups(*p, SMALL, 10, 100, TALLY_I32, PROMISED, 0, "groups whose order is promised");
    check_groups(*p, SMALL, 10, 100, TALLY_I32, MIXED, 1, "groups behind a mask");
    check_groups(*p, SMALL, 150, 100, TALLY_I32, MIXED, 0, "more groups than elements");
    check_groups(*p, SMALL, 10, 100, TALLY_I32, SOME_OUTSIDE, 0, "groups, and ids outside");
    check_vectors(*p, SMALL, 5, LENGTHS(0, 3, 90, 1, 7), 12, BY_ID_OR_OUTSIDE,
                  "vectors, and ids outside");
    check_axes(*p, SMALL, 20, 10, 10, 1, 1, 1, "rows behind a mask");
    check_axes(*p, SMALL, 20, 10, 1, 20, 1, 1, "columns behind a mask");
    check_axes(*p, SMALL, 20, 10, 30, 2, 2, 1, "rows with strides behind a mask");
    check_segments(*p, SMALL, 20, LENGTHS(0, 1, 7, 30), TALLY_I64, 1, "segments behind a mask");
    check_axes(*p, SMALL, 1, 9000, 9000, 1, 1, 1, "a long row behind a mask");
}

/* ---- Whole arrays ----------------------------------------------------------------------------- */

static int same(const tally_value *a, const tally_value *b, size_t values) {
    for (size_t v = 0; v < values; v++)
        if (a[v].type != b[v].type ||
            (a[v].type && tally_value_bits(&a[v]) != tally_value_bits(&b[v])))
            return 0;
    return 1;
}

/* Feeds x[from, to) to a state, `piece` elements at a time. */
static void feed(tally_state *s, const tally_problem *p, const char *x, const char *y, size_t from,
                 size_t to, size_t piece) {
    const size_t size = tally_type_size(p->type);
    for (size_t m, at = from; at < to; at += m) {
        m = to - at < piece ? to - at : piece;
        MUST(tally_state_feed(s, NULL, x + at * size, y ? y + at * size : NULL, m));
    }
}

static void check_whole(const tally_problem *p, unsigned kind, size_t n) {
    char *x = make(p->type, kind, n), *y = p->op == TALLY_DOT ? make(p->type, kind, n) : NULL;
    tally_value right[TALLY_VALUES_MAX], got[TALLY_VALUES_MAX];
    tally_state *state;
    size_t values;
    MUST(tally_problem_values(p, &values));
    MUST(tally_state_create(p, &state));
    feed(state, p, x, y, 0, n, n > 20000 ? 1000 : 7);
    const tally_status s = tally_state_value(state, right);
    tally_state_destroy(state);
    for (size_t d = 0; d < device_count; d++, calls++) {
        const tally_status t = tally_reduce(devices[d].device, p, x, y, n, got);
        must_be(s == t && (s != TALLY_OK || same(right, got, values)), "a whole array", p,
                devices[d].spec);
    }
    free(x);
    free(y);
}

static int sums_floats(const tally_problem *p) {
    return is_float(p->type) && p->op != TALLY_USER && p->op != TALLY_PROD && p->op != TALLY_MIN &&
           p->op != TALLY_MAX && p->op != TALLY_NORMINF &&
           (p->op < TALLY_AND || p->op > TALLY_XOR) && p->op != TALLY_ARGMIN &&
           p->op != TALLY_ARGMAX && p->op != TALLY_DESCRIBE && p->op != TALLY_COUNT &&
           p->op != TALLY_MINMAX && p->op != TALLY_ANY && p->op != TALLY_ALL &&
           p->op != TALLY_NONZERO;
}

static void check_wholes(const tally_problem *p) {
    static const size_t lengths[] = {0, 1, 2, 7, 9, 300, 6000};
    for (unsigned kind = SMALL; kind <= TINY; kind++)
        for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++)
            check_whole(p, kind, lengths[l]);
    if (!sums_floats(p)) return;
    static const unsigned spreads[] = {14, 30, 40, 50, 60};
    for (size_t i = 0; i < sizeof spreads / sizeof *spreads; i++)
        check_whole(p, SPREAD + spreads[i], 30000);
    check_whole(p, BLOCKS, 30000);
    check_whole(p, SPECIAL, 30000);
    check_whole(p, WILD, 150000);
}

/* ---- States ------------------------------------------------------------------------------------ */

static void must_have(tally_state *s, const tally_problem *p, const tally_value *right,
                      tally_status status, size_t values, const char *what) {
    tally_value got[TALLY_VALUES_MAX];
    const tally_status t = tally_state_value(s, got);
    must_be(t == status && (t != TALLY_OK || same(got, right, values)), what, p, "states");
    calls++;
}

/* Returns whether the C library reads the digits as the value. (It reads no f16 and no bf16.) */
static int reads_as(const char *digits, const tally_value *value) {
    char text[40];
    switch (value->type) {
    case TALLY_F16:
    case TALLY_BF16:
        return 1;
    case TALLY_F32:
        return strtof(digits, NULL) == value->as.f32 || isnan(value->as.f32);
    case TALLY_F64:
        return strtod(digits, NULL) == value->as.f64 || isnan(value->as.f64);
    default:
        tally_value_print(value, text, sizeof text);
        return strcmp(text, digits) == 0;
    }
}

/* States of two parts of an array: merged, taken apart, negated, divided, saved and loaded, as words. */
static void check_states(const tally_problem *p, unsigned kind) {
    const size_t n = 6000, cut = 2500, size = tally_type_size(p->type);
    char *x = make(p->type, kind, n), *y = p->op == TALLY_DOT ? make(p->type, kind, n) : NULL;
    tally_value all[TALLY_VALUES_MAX], first[TALLY_VALUES_MAX], value;
    tally_state *left, *right, *other;
    size_t values;
    MUST(tally_problem_values(p, &values));
    const tally_status of_all = tally_reduce(NULL, p, x, y, n, all),
                       of_first = tally_reduce(NULL, p, x, y, cut, first);
    MUST(tally_state_create(p, &left));
    MUST(tally_state_create(p, &right));
    MUST(tally_state_begin_at(right, cut));
    feed(left, p, x, y, 0, cut, n);
    feed(right, p, x, y, cut, n, n);

    const size_t bytes = tally_state_size(right);
    char *saved = allocate(bytes);
    MUST(tally_state_save(right, saved, bytes));
    MUST(tally_state_load(saved, bytes, p, &other));
    free(saved);
    tally_state_destroy(right);
    right = other;

    if (tally_state_merge_words(left) > 0) {
        const size_t words = tally_state_merge_words(left);
        int64_t *a = allocate(words * 8), *b = allocate(words * 8);
        MUST(tally_state_to_merge_words(left, a));
        MUST(tally_state_to_merge_words(right, b));
        MUST(tally_merge_words(p, a, b));
        MUST(tally_state_create(p, &other));
        MUST(tally_state_from_merge_words(other, b));
        must_have(other, p, all, of_all, values, "merged as parts");
        tally_state_destroy(other);
        free(a);
        free(b);
    }
    if (tally_state_words(left) > 0) {
        const size_t words = tally_state_words(left);
        int64_t *a = allocate(words * 8), *b = allocate(words * 8);
        MUST(tally_state_to_words(left, a));
        MUST(tally_state_to_words(right, b));
        for (size_t i = 0; i < words; i++)
            a[i] += b[i];
        MUST(tally_state_create(p, &other));
        MUST(tally_state_from_words(other, a));
        must_have(other, p, all, of_all, values, "added as words");
        tally_state_destroy(other);
        free(a);
        free(b);
    }
    MUST(tally_state_merge(left, right));
    must_have(left, p, all, of_all, values, "merged");
    if (tally_state_divided(left, 1, is_float(p->type) ? 0 : TALLY_F64, &value) == TALLY_OK &&
        is_float(p->type) && p->op != TALLY_MEAN && of_all == TALLY_OK)
        must_be(same(&value, all, 1), "divided by 1", p, "states");
    char digits[2901];
    size_t length;
    if (tally_state_print(left, 0, digits, sizeof digits, &length) == TALLY_OK &&
        of_all == TALLY_OK)
        must_be(length == strlen(digits) && reads_as(digits, all), "printed", p, "states");
    if (tally_state_subtract(left, right) == TALLY_OK)
        must_have(left, p, first, of_first, values, "taken apart");
    if (tally_state_negate(left) == TALLY_OK) {
        MUST(tally_state_negate(left));
        must_have(left, p, first, of_first, values, "negated twice");
    }
    (void)size;
    tally_state_destroy(left);
    tally_state_destroy(right);
    free(x);
    free(y);
}

/* ---- What one problem in all takes -------------------------------------------------------------- */

static tally_problem ask(tally_op op, tally_type type) {
    return (tally_problem){.op = op, .type = type};
}

/* Sums by running totals, where these fail and where segments are too long for them. */
static void check_running(tally_type type) {
    const size_t size = tally_type_size(type), lines = 32768 / size;
    const tally_problem sum = ask(TALLY_SUM, type), mean = ask(TALLY_MEAN, type);
    static const unsigned kinds[] = {SMALL, SPECIAL, ZEROS, SPREAD + 60, SPREAD + 200};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        check_segments(sum, kinds[k], 40, LENGTHS(lines, 1, 40, 3), TALLY_I64, 0, "long segments");
        check_segments(mean, kinds[k], 40, LENGTHS(lines, 1, 40, 3), TALLY_I64, 0, "long segments");
        check_segments(sum, kinds[k], 18, LENGTHS(1100), TALLY_I64, 0, "segments of 1100");
        check_segments(sum, kinds[k], 40, LENGTHS(12), TALLY_I64, 0, "segments of 12");
        check_segments(sum, kinds[k], 40, LENGTHS(3, 5), TALLY_I64, 0, "segments of 3 and 5");
        check_segments(sum, kinds[k], 40, LENGTHS(4), TALLY_I32, 0, "segments of four");
        check_segments(sum, kinds[k], 40, LENGTHS(3, 5), TALLY_I32, 0, "segments of 3 and 5");
    }
}

/* Sums of small integers, which are exact in any order. */
static void check_fast(tally_type type) {
    const size_t n = 1000;
    char *x = make(type, SMALL, n);
    tally_problem exact = ask(TALLY_SUM, type), fast = exact;
    tally_value right, got;
    fast.fast = 1;
    fast.out = exact.out = TALLY_F64;
    for (int mean = 0; mean < 2; mean++) {
        exact.op = fast.op = mean ? TALLY_MEAN : TALLY_SUM;
        MUST(tally_reduce(NULL, &exact, x, NULL, n, &right));
        for (size_t d = 0; d < device_count; d++, calls++) {
            MUST(tally_reduce(devices[d].device, &fast, x, NULL, n, &got));
            must_be(same(&right, &got, 1), "a fast sum", &fast, devices[d].spec);
        }
    }
    free(x);
}

/* Results of so many bytes that they are written past the caches: the least of one element, or of two equal ones. */
static void check_many(tally_type type, int twice) {
    const size_t size = tally_type_size(type), n = ((size_t)17 << 20) / size;
    const size_t length[2] = {n, twice ? 2 : 1};
    const ptrdiff_t stride[2] = {1, 0};
    const tally_problem least = ask(TALLY_MIN, type);
    const tally_shape shape = {
        .cut = TALLY_AXES, .dims = 2, .length = length, .x_stride = stride, .axes = 2};
    char *x = allocate(n * size), *y = allocate(n * size);
    for (size_t i = 0; i < n * size; i++)
        x[i] = (char)(i * 7 + (i >> 8) * 3);
    for (size_t d = 0; d < device_count; d++, calls++) {
        void *out[] = {y};
        memset(y, 0, n * size);
        MUST(tally_reduce_shaped(devices[d].device, &least, &shape, x, NULL, out));
        must_be(memcmp(x, y, n * size) == 0, "many results", &least, devices[d].spec);
    }
    free(x);
    free(y);
}

/* Sums of bytes by groups, of which each element's is `id(i)`. */
static void check_bytes(size_t groups, size_t n, size_t (*id)(size_t i, size_t groups)) {
    const tally_problem sum = ask(TALLY_SUM, TALLY_U8);
    uint8_t *x = allocate(n);
    int32_t *ids = allocate(n * sizeof *ids);
    uint64_t *right = allocate(groups * sizeof *right), *got = allocate(groups * sizeof *got);
    memset(right, 0, groups * sizeof *right);
    for (size_t i = 0; i < n; i++) {
        x[i] = (uint8_t)draw();
        ids[i] = (int32_t)id(i, groups);
        right[ids[i]] += x[i];
    }
    const tally_shape shape = {
        .cut = TALLY_GROUPS, .n = n, .count = groups, .ids = ids, .ids_type = TALLY_I32};
    void *out[] = {got};
    MUST(tally_reduce_shaped(NULL, &sum, &shape, x, NULL, out));
    must_be(memcmp(right, got, groups * sizeof *got) == 0, "sums of bytes", &sum, "groups");
    free(x);
    free(ids);
    free(right);
    free(got);
    calls++;
}
static size_t in_turn(size_t i, size_t groups) {
    return (i * 5 + groups - 1) % groups;
}
static size_t mostly_first(size_t i, size_t groups) {
    return i == 0 ? groups - 1 : 0;
}

/* The next allocation fails: sums are then made of sorted elements. The linker has aligned_alloc() call this. */
static int fails;
void *__real_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size) {
    if (fails) {
        fails = 0;
        return NULL;
    }
    return __real_aligned_alloc(alignment, size);
}

/* {2^21 1000, 2^21 225, 32, 1}: the root of the sum of the squares, 2^42 1025^2 + 1025, is 2^-44 below the tie
 * 2^21 1025 + 2^-22. */
static void check_tie(tally_type type) {
    static const int32_t four[] = {2097152000, 471859200, 32, 1};
    const size_t length[2] = {20, 4};
    int32_t x[80];
    for (size_t i = 0; i < 80; i++)
        x[i] = four[i % 4];
    const struct call c = {.problem = ask(TALLY_NORM2, type),
                           .shape = {.cut = TALLY_AXES, .dims = 2, .length = length, .axes = 2},
                           .x = (const char *)x};
    check_shaped(&c, "near a tie");
}

static int never_stop(void *context) {
    (void)context;
    return 0;
}

/* Offsets that fall are refused. */
static void check_refusals(void) {
    static const int64_t wide[] = {0, 2, 1, 3};
    static const int32_t narrow[] = {0, 2, 1, 3};
    static const double x[] = {1, 2, 3};
    const tally_problem sum = ask(TALLY_SUM, TALLY_F64);
    double result[3];
    void *out[] = {result};
    for (int is_wide = 0; is_wide < 2; is_wide++)
        for (size_t d = 0; d < device_count; d++, calls++) {
            const tally_shape shape = {.cut = TALLY_SEGMENTS,
                                       .n = 3,
                                       .count = 3,
                                       .offsets = is_wide ? (const void *)wide : narrow,
                                       .offsets_type = is_wide ? TALLY_I64 : TALLY_I32};
            const tally_status s =
                tally_reduce_shaped(devices[d].device, &sum, &shape, x, NULL, out);
            must_be(s == TALLY_EINVAL, "offsets that fall", &sum, devices[d].spec);
        }
}

/* Variances from exact sums alone: about a mean that is given, and of complex numbers. */
static void check_exact_variances(void) {
    static const double x[] = {0, 3}, y[] = {0, 4};
    tally_problem p = ask(TALLY_VAR, TALLY_F32);
    p.about = 1;
    p.mean[0] = 0.5;
    check_axes(p, WILD, 20, 10, 1, 20, 1, 0, "columns about a mean");
    p = ask(TALLY_VAR, TALLY_F64);
    p.is_complex = 1;
    for (size_t d = 0; d < device_count; d++, calls++) {
        tally_value v;
        MUST(tally_reduce(devices[d].device, &p, x, y, 2, &v));
        must_be(v.as.f64 == 6.25, "complex numbers", &p, devices[d].spec);
    }
}

/* Means of what is no NaN, and where it is least. */
static void check_skipped(void) {
    enum { N = 3 * 6000 };
    static double x[N];
    tally_problem p = ask(TALLY_MEAN, TALLY_F64);
    p.skip_nan = 1;
    for (int nans = 0; nans < 2; nans++)
        for (size_t d = 0; d < device_count; d++, calls++) {
            static const size_t length[] = {3, N / 3};
            const tally_shape rows = {
                .cut = TALLY_AXES, .dims = 2, .length = length, .axes = 1 << 1};
            double mean[3];
            void *const out[] = {mean};
            tally_value v;
            for (size_t i = 0; i < N; i++)
                x[i] = nans && i % 3 == 0 ? (double)NAN : (double)(i % 3);
            p.op = TALLY_MEAN;
            MUST(tally_reduce(devices[d].device, &p, x, NULL, N, &v));
            must_be(v.as.f64 == (nans ? 1.5 : 1), "without NaNs", &p, devices[d].spec);
            MUST(tally_reduce(NULL, &p, x, NULL, N, &v));
            must_be(v.as.f64 == (nans ? 1.5 : 1), "without NaNs", &p, "the calling thread");
            MUST(tally_reduce_shaped(devices[d].device, &p, &rows, x, NULL, out));
            must_be(mean[0] == v.as.f64 && mean[2] == v.as.f64, "rows without NaNs", &p,
                    devices[d].spec);
            p.op = TALLY_ARGMIN;
            MUST(tally_reduce(devices[d].device, &p, x, NULL, N, &v));
            must_be(v.as.u64 == (uint64_t)nans, "where the least is", &p, devices[d].spec);
        }
}

/* Segments along the last axis: vectors whose elements lie side by side. */
static void check_rows_of_vectors(void) {
    static const int64_t x[2][4] = {{1, 2, 3, 4}, {INT64_MAX, 5, 6, 7}}, offsets[] = {0, 2, 4};
    static const size_t length[] = {2, 4};
    const tally_problem sum = ask(TALLY_SUM, TALLY_I64);
    const tally_shape shape = {.cut = TALLY_SEGMENTS,
                               .dims = 2,
                               .length = length,
                               .axes = 2,
                               .count = 2,
                               .offsets = offsets};
    for (size_t d = 0; d < device_count; d++, calls++) {
        int64_t got[4];
        size_t result = 0;
        void *const out[] = {got};
        const tally_status s = tally_reduce_shaped(devices[d].device, &sum, &shape, x, NULL, out);
        must_be(s == TALLY_ERANGE && tally_error_result(&result) && result == 2, "rows", &sum,
                devices[d].spec);
        must_be(got[0] == 3 && got[1] == 7 && got[2] == 0 && got[3] == 13, "rows", &sum,
                devices[d].spec);
    }
}

static void check_others(void) {
    for (tally_type type = TALLY_I8; type <= TALLY_F64; type++)
        check_running(type);
    for (tally_type type = TALLY_F16; type <= TALLY_F64; type++)
        check_fast(type);
    for (tally_type type = TALLY_U8; type <= TALLY_U64; type++)
        check_many(type, 0);
    check_many(TALLY_U32, 1);
    check_tie(TALLY_I32);
    check_tie(TALLY_U32);
    check_refusals();
    check_exact_variances();
    check_skipped();
    check_whole(&(tally_problem){.op = TALLY_SUM, .type = TALLY_F16}, SPECIAL, 150000);
    check_whole(&(tally_problem){.op = TALLY_NORM1, .type = TALLY_F16}, SPECIAL, 150000);

    /* Blocks that fail the short way, so that the next ones are not tried. */
    check_axes(ask(TALLY_SUM, TALLY_F32), SPECIAL, 5000, 4, 1, 5000, 1, 0, "many columns of four");
    check_axes(ask(TALLY_NORMINF, TALLY_I64), HUGE_ONES, 20, 10, 1, 20, 1, 0, "beyond i64");
    tally_problem sum = ask(TALLY_SUM, TALLY_I64);
    sum.out = TALLY_F64;
    check_axes(sum, WILD, 20, 10, 1, 20, 1, 0, "64-bit integers as f64");
    check_segments(ask(TALLY_MAX, TALLY_I16), SMALL, 20, LENGTHS(9000, 5), TALLY_I64, 1,
                   "long and short segments behind a mask");

    /* Groups: windows that are given up, groups without elements, many groups, many elements, no memory. */
    check_groups(ask(TALLY_SUM, TALLY_F64), WILD, 10, 20000, TALLY_I64, MIXED, 0, "wild groups");
    check_groups(ask(TALLY_SUM, TALLY_I32), SMALL, 50, 60, TALLY_I64, MIXED, 0, "empty groups");
    check_bytes(((size_t)1 << 18) + 100, (size_t)5 << 18, in_turn);
    check_bytes(8, ((size_t)1 << 22) + 9000, in_turn);
    check_bytes(8, ((size_t)1 << 22) + 9000, mostly_first);
    fails = 1;
    check_groups(ask(TALLY_SUM, TALLY_F64), SMALL, 10, 100, TALLY_I64, MIXED, 0, "no memory");

    /* Vectors: states that are not near enough, and vectors that are copied, some of whose results do not exist. */
    check_vectors(ask(TALLY_VAR, TALLY_F64), CONSTANT, 5, LENGTHS(40), 20, BY_SEGMENT,
                  "columns, again");
    check_rows_of_vectors();

    /* A state that a stop would leave as it was. */
    tally_stop_when(never_stop, NULL);
    check_whole(&(tally_problem){.op = TALLY_MAX, .type = TALLY_I8}, SMALL, (size_t)5 << 20);
    tally_stop_when(NULL, NULL);

    for (size_t d = 0; d < device_count; d++) {
        double seconds;
        MUST(tally_device_read(devices[d].device, devices, sizeof devices, &seconds));
    }
}

/* What several threads do. */
static void check_threads(void) {
    tally_problem p;
    tally_operator user;
    double seconds;
    char *bytes = allocate((size_t)4 << 20);
    memset(bytes, 1, (size_t)4 << 20);
    device_count = 1;
    devices[0].spec = "cpu:threads=3";
    MUST(tally_open(devices[0].spec, &devices[0].device));
    MUST(tally_device_read(devices[0].device, bytes, (size_t)4 << 20, &seconds));
    free(bytes);
    check_axes(ask(TALLY_VAR, TALLY_F64), SMALL, 20, 20000, 1, 20, 1, 0, "columns in parts");
    check_axes(ask(TALLY_VAR, TALLY_F64), CONSTANT, 20, 20000, 1, 20, 1, 0, "columns in parts");
    check_vectors(ask(TALLY_VAR, TALLY_F64), CONSTANT, 2, LENGTHS(20000, 9000), 20, BY_SEGMENT,
                  "parts that are cut");
    check_vectors(ask(TALLY_SUM, TALLY_F64), SMALL, 3, LENGTHS(3000), 24, BY_ID,
                  "groups taken as they come");
    check_segments(ask(TALLY_VAR, TALLY_F64), ONES, 2, LENGTHS(90000), TALLY_I64, 0, "two rows");
    check_segments(ask(TALLY_PROD, TALLY_F64), ONES, 2, LENGTHS(90000), TALLY_I64, 0, "two rows");
    check_whole(&(tally_problem){.op = TALLY_PROD, .type = TALLY_F64}, ONES, 200000);
    check_whole(&(tally_problem){.op = TALLY_SUM, .type = TALLY_F64}, ONES, 200000);
    check_groups(ask(TALLY_MAX, TALLY_F64), ONES, 4, 200000, TALLY_I64, MIXED, 0, "groups");
    find_problem(TALLY_USER, TALLY_U32, &p, &user);
    user.combine = add;
    user.commutative = 1;
    check_whole(&p, SMALL, 9000);
    tally_close(devices[0].device);
}

/* ---- All of it --------------------------------------------------------------------------------- */

static void open_devices(void) {
    static const char *const specs[] = {"cpu:threads=1,isa=baseline", "cpu:threads=1,isa=avx2",
                                        "cpu:threads=1,isa=avx512", "cpu:threads=1,isa=neon"};
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++)
        if (tally_open(specs[i], &devices[device_count].device) == TALLY_OK)
            devices[device_count++].spec = specs[i];
}

/* Holds the GPU kernels of one problem against tally_reduce(): few shapes, as the model is slow. */
static void check_kernels(const tally_problem *p, unsigned kind) {
    check_axes(*p, kind, 33, 70, 1, 33, 1, 0, "columns");
    check_axes(*p, kind, 33, 40, 40, 1, 1, 0, "rows");
    check_axes(*p, kind, 210, 10, 10, 1, 1, 0, "more short rows than the device has warps");
    check_axes(*p, kind, 2, 1100, 1100, 1, 1, 0, "long rows");
    check_segments(*p, kind, 12, LENGTHS(0, 3, 12, 70, 1, 7), TALLY_I32, 0, "segments");
    check_groups(*p, kind, 10, 150, TALLY_I64, MIXED, 0, "groups");
    check_axes(*p, kind, 33, 40, 40, 1, 1, 1, "rows behind a mask");
    check_axes(*p, kind, 9, 40, 40, 1, 1, 1, "few rows behind a mask");
    check_axes(*p, kind, 33, 40, 1, 33, 1, 1, "columns behind a mask");
    check_vectors(*p, kind, 6, LENGTHS(0, 3, 150, 1, 7), 8, BY_SEGMENT, "segments of vectors");
    check_vectors(*p, kind, 2, LENGTHS(1, 2200), 2, BY_SEGMENT, "a segment of many pieces");
    check_vectors(*p, kind, 5, LENGTHS(0, 3, 90, 1, 7), 3, BY_ID, "groups of vectors");
}

/* Arrays of several megabytes for a device of one: halves, chunks, and what the host does in its place. */
static void check_fallbacks(void) {
    const tally_problem sum = ask(TALLY_SUM, TALLY_F32), least = ask(TALLY_ARGMIN, TALLY_U8);
    check_axes(sum, SMALL, 3, 100000, 100000, 1, 1, 0, "rows that do not fit together");
    check_axes(sum, SMALL, 3, 100000, 100000, 1, 3, 0, "results that lie apart");
    check_axes(sum, SMALL, 1, 400000, 400000, 1, 1, 0, "a row that does not fit");
    check_axes(ask(TALLY_PROD, TALLY_F32), ONES, 1, 400000, 400000, 1, 1, 0, "a row's tree");
    check_axes(sum, SMALL, 1, 200000, 400000, 2, 1, 0, "a row with strides");
    check_axes(least, SMALL, 1, 1000000, 1000000, 1, 1, 1, "a row behind a mask");
    check_axes(ask(TALLY_SUM, TALLY_I64), HUGE_ONES, 1, 200000, 200000, 2, 1, 0,
               "a sum that is too large");
    check_segments(sum, SMALL, 4, LENGTHS(100000), TALLY_I64, 0,
                   "segments that do not fit together");
    check_groups(sum, SMALL, 10, 300000, TALLY_I32, MIXED, 0, "groups that do not fit");
    for (int by = BY_SEGMENT; by <= BY_ID_OR_OUTSIDE; by++)
        check_vectors(sum, SMALL, 4, LENGTHS(5000), 20, (enum parts)by,
                      "vectors that do not fit together");
    check_whole(&sum, SMALL, 400000);
    check_whole(&(tally_problem){.op = TALLY_PROD, .type = TALLY_F64}, ONES, 200000);
    check_whole(&(tally_problem){.op = TALLY_PROD, .type = TALLY_F16}, ONES,
                (1 << 22) + 5); /* a whole subtree */
}

static void on_device(const char *spec) {
    device_count = 1;
    devices[0].spec = spec;
    MUST(tally_open(spec, &devices[0].device));
}

/* Sums and what is made of them. */
static void check_sums(tally_type type) {
    static const tally_op sums[] = {TALLY_SUM, TALLY_MEAN, TALLY_VAR, TALLY_NORM1, TALLY_NORM2};
    static const unsigned kinds[] = {SMALL,       SPECIAL,     WILD,        ZEROS, SIGNS,
                                     HUGE_ONES,   INFINITE,    TIES,        ONES,  BLOCKS,
                                     SPREAD + 25, SPREAD + 40, SPREAD + 150};
    for (size_t i = 0; i < sizeof sums / sizeof *sums; i++) {
        const tally_problem p = ask(sums[i], type);
        const size_t count = is_float(type) ? sizeof kinds / sizeof *kinds : 1;
        for (size_t k = 0; k < count && (is_float(type) || i < 2); k++)
            check_kernels(&p, kinds[k]);
        tally_problem other = p;
        if (!is_float(type) && i < 2) { /* beyond 64 bits, and beyond a mean's 53 */
            other.out = TALLY_F64;
            check_kernels(&other, HUGE_ONES);
        }
        if (!is_float(type)) continue;
        check_segments(p, STRETCHES, 2, LENGTHS(3000), TALLY_I64, 0, "segments that are cut");
        check_segments(p, SPREAD + 1000, 2, LENGTHS(1100), TALLY_I64, 0, "segments that are cut");
        other.op = i % 2 ? TALLY_VAR : TALLY_SUMSQ; /* ties of squares */
        check_axes(other, SQUARES, 40, 32, 32, 1, 1, 0, "rows of 32");
        check_axes(other, SQUARES, 33, 32, 1, 33, 1, 0, "columns of 32");
        check_vectors(other, SQUARES, 2, LENGTHS(32), 33, BY_SEGMENT, "vectors of 32");
        if (p.op == TALLY_NORM2) {
            check_axes(p, ROOT_TIES, 40, 32, 32, 1, 1, 0, "rows of 32");
            check_axes(p, ROOT_TIES, 33, 32, 1, 33, 1, 0, "columns of 32");
            check_vectors(p, ROOT_TIES, 2, LENGTHS(32), 33, BY_SEGMENT, "vectors of 32");
            other = p;
            other.also[0] = TALLY_SUMSQ;
            check_kernels(&other, SMALL);
        }
        other = p;
        other.also[0] = TALLY_VAR;
        check_kernels(&other, TWOS);
        check_kernels(&other, SPREAD + 40);
        if (i > 1) continue;
        other = p;
        other.fast = 1;
        check_kernels(&other, SMALL);
    }
}

static void check_model(void) {
    static const tally_type types[] = {TALLY_I32, TALLY_I64, TALLY_BF16, TALLY_F32, TALLY_F64};
    static const tally_op ends[] = {TALLY_MIN, TALLY_MINMAX, TALLY_ARGMIN, TALLY_ARGMAX};
    on_device("model");
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        check_sums(types[t]);
        for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
            const tally_problem p = ask(ends[i], types[t]);
            check_kernels(&p, SMALL);
            check_kernels(&p, SPECIAL);
            check_kernels(&p, INFINITE);
            check_kernels(&p, LEAST);
            check_kernels(&p, HUGE_ONES);
        }
    }
    check_axes(ask(TALLY_SUM, TALLY_F64), WILD, 2, 40000, 40000, 1, 1, 0, "rows that `fold` cuts");
    for (int ways = 0; ways < 2; ways++)
        check_axes(ask(ways ? TALLY_NORM1 : TALLY_SUM, TALLY_F64), STEPS, 2, 12000, 12000, 1, 1, 0,
                   "rows of several pieces");
    check_axes(ask(TALLY_NORM1, TALLY_F32), WIDE_INFINITE, 2, 12000, 12000, 1, 1, 0,
               "rows of several pieces, infinite at their ends");
    tally_close(devices[0].device);
    on_device("model:doubles=slow");
    check_sums(TALLY_BF16);
    check_sums(TALLY_F32);
    for (int ways = 0; ways < 2; ways++)
        check_axes(ask(ways ? TALLY_NORM1 : TALLY_SUM, TALLY_BF16), FAR_TIES, 33, 40, 40, 1, 1, 0,
                   "rows that are near ties");
    check_axes(ask(TALLY_NORM1, TALLY_F32), WIDE_INFINITE, 2, 12000, 12000, 1, 1, 0,
               "rows of several pieces, infinite at their ends");
    tally_close(devices[0].device);
    on_device("model:memory=1M");
    check_fallbacks();
    tally_close(devices[0].device);
}

int main(int argc, char **argv) {
    const int on_model = argc > 1 && strcmp(argv[1], "model") == 0;
    draws = argc > 1 + on_model ? strtoull(argv[1 + on_model], NULL, 0) : 1;
    if (on_model) {
        check_model();
        printf("paths: %zu calls on the model, all as they should be\n", calls);
        return 0;
    }
    open_devices();
    for (int op = TALLY_SUM; op <= TALLY_USER; op++)
        for (int type = TALLY_I8; type <= TALLY_F64; type++) {
            tally_problem p;
            tally_operator user;
            if (!find_problem((tally_op)op, (tally_type)type, &p, &user)) continue;
            check_schedules(&p);
            check_wholes(&p);
            check_states(&p, SMALL);
            check_states(&p, SPECIAL);
        }
    check_others();
    for (size_t d = 0; d < device_count; d++)
        tally_close(devices[d].device);
    check_threads();
    printf("paths: %zu calls, all as they should be\n", calls);
    return 0;
}
