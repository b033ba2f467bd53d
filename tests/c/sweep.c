/*
 * sweep.c - every small shape: reductions along axes, by segment and by group, held against each row alone.
 *
 *     sweep [--share N] [--part K N] [--seed S] [--only WORD] [DEVICE...]
 *
 * Kept dimensions of 1 to 70 and 2^k - 1, 2^k, 2^k + 1, rows of 1 to 70 elements, in the layouts of layouts[] below,
 * for each operator of cases[] and each type. The same rows are taken as segments and as groups. tally_reduce() of a
 * row's elements says what its result is. --share N runs one shape in N, drawn by the seed, which is printed; --part K N
 * runs the K-th of N parts, which are all shapes together.
 * Devices: all instruction sets of this machine, or those named. Exits with 1 after the first wrong result, and prints
 * the shape, the operator, the type and the row.
 *
 * Arrays are allocated with the bytes that they need and no more, so that AddressSanitizer sees each access outside.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tally.h>
#include <time.h>

#define ROWS_MOST    70 /* elements of a row */
#define DENSE        70 /* kept dimensions up to this one are all tried */
#define LARGEST      1025
#define OUTER        3 /* a dimension outside of the kept one and the rows */
#define DEVICES_MOST 16

static const struct reduction {
    tally_op op;
    int floats, integers; /* types that it has */
    tally_type out;
    double ddof;
} cases[] = {
    {TALLY_SUM, 1, 1, 0, 0},           {TALLY_SUM, 1, 0, TALLY_F32, 0}, {TALLY_MEAN, 1, 1, 0, 0},
    {TALLY_MEAN, 1, 0, TALLY_F32, 0},  {TALLY_VAR, 1, 1, 0, 0},         {TALLY_STD, 1, 1, 0, 1},
    {TALLY_VAR, 1, 0, TALLY_F32, 0.5}, {TALLY_MIN, 1, 1, 0, 0},         {TALLY_MAX, 1, 1, 0, 0},
    {TALLY_ARGMIN, 1, 1, 0, 0},        {TALLY_ARGMAX, 1, 1, 0, 0},      {TALLY_NORM1, 1, 1, 0, 0},
    {TALLY_NORM2, 1, 1, 0, 0},         {TALLY_NORMINF, 1, 1, 0, 0},     {TALLY_SUMSQ, 1, 1, 0, 0},
    {TALLY_DOT, 1, 1, 0, 0},           {TALLY_PROD, 1, 0, 0, 0},        {TALLY_AND, 1, 1, 0, 0},
    {TALLY_XOR, 1, 1, 0, 0},           {TALLY_NONZERO, 1, 1, 0, 0},     {TALLY_NANS, 1, 0, 0, 0},
    {TALLY_ALL, 1, 1, 0, 0},           {TALLY_DESCRIBE, 1, 1, 0, 0},
};
#define CASES (sizeof cases / sizeof cases[0])

/* The order of dimensions in memory, the outermost first. */
enum dimension { KEPT, ROW, FIRST, SECOND };
static const struct layout {
    const char *name;
    unsigned dims;
    enum dimension at[4];
} layouts[] = {
    {"kept row", 2, {KEPT, ROW}},
    {"row kept", 2, {ROW, KEPT}},
    {"first kept row", 3, {FIRST, KEPT, ROW}},
    {"first row kept", 3, {FIRST, ROW, KEPT}},
    {"first second kept row", 4, {FIRST, SECOND, KEPT, ROW}},
    {"first second row kept", 4, {FIRST, SECOND, ROW, KEPT}},
    {"kept first row", 3, {KEPT, FIRST, ROW}},
};
#define LAYOUTS (sizeof layouts / sizeof layouts[0])

static struct {
    tally_device *device;
    const char *spec;
} devices[DEVICES_MOST];
static size_t device_count;
static uint64_t seed, draws;
static size_t done;

static uint64_t draw(void) { /* splitmix64 */
    uint64_t z = (draws += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void *allocate(size_t bytes) {
    void *p = malloc(bytes ? bytes : 1);
    if (!p) {
        fprintf(stderr, "sweep: no memory\n");
        exit(2);
    }
    return p;
}

static void check(tally_status s, const char *what) {
    if (s == TALLY_OK) return;
    fprintf(stderr, "sweep: %s: %s\n", what, tally_error());
    exit(1);
}

/* ---- Data ------------------------------------------------------------------------------------ */

static uint16_t bf16_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    return (uint16_t)(u >> 16);
}

/* Truncated; what is finite and too large becomes the greatest finite number. */
static uint16_t f16_of(float f) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    const uint32_t sign = u >> 16 & 0x8000, field = u >> 23 & 255, mantissa = u >> 13 & 0x3ff;
    const int exponent = (int)field - 127 + 15;
    if (field == 255) return (uint16_t)(sign | 0x7c00 | mantissa);
    if (exponent >= 31) return (uint16_t)(sign | 0x7bff);
    if (exponent > 0) return (uint16_t)(sign | (uint32_t)exponent << 10 | mantissa);
    return (uint16_t)(sign | (exponent > -10 ? (mantissa | 0x400) >> (1 - exponent) : 0));
}

/* Writes element r of row k as `type`. Each row has one of these kinds, by the shape. */
static void put(char *to, tally_type type, unsigned kind, size_t k, size_t r) {
    const double around = (double)(int64_t)(draw() % 2001) - 1000;
    double d;
    switch (kind) {
    case 0: /* small integers: sums are exact */
        d = around;
        break;
    case 1: { /* what cancels leaves a rest far below, of the row's own */
        const double six[] = {1e30, 1, -1e30, (double)(k + 1), 0, 1e-30 * (double)(k + 1)};
        d = six[r % 6];
        break;
    }
    case 2: /* wide exponents */
        d = around * (double)(1 + draw() % 7) * (draw() % 2 ? 0x1p-90 : draw() % 2 ? 1 : 0x1p60);
        break;
    case 3: /* results that underflow */
        d = around * (draw() % 2 ? 0x1p-149 : 0x1p-160);
        break;
    case 4: /* equal elements */
        d = (double)(k + 1) * 0.1;
        break;
    default: /* what is special, now and then */
        d = draw() % 40 ? around
                        : (double[]){-0.0, 0.0, 1.0 / 0.0, -1.0 / 0.0, 0.0 / 0.0}[draw() % 5];
    }
    if (kind == 5 && draw() % 3 == 0) d = -0.0;
    const uint64_t bits = kind == 0 ? (uint64_t)(int64_t)(around / 20) : draw();
    const float f = (float)d;
    const uint16_t half = f16_of(f), brain = bf16_of(f);
    switch (type) {
    case TALLY_F64:
        memcpy(to, &d, 8);
        break;
    case TALLY_F32:
        memcpy(to, &f, 4);
        break;
    case TALLY_F16:
        memcpy(to, &half, 2);
        break;
    case TALLY_BF16:
        memcpy(to, &brain, 2);
        break;
    default:
        memcpy(to, &bits, tally_type_size(type));
    }
}

/* ---- One shape ------------------------------------------------------------------------------- */

/* Rows of one length side by side, and what each of them is alone. */
struct rows {
    const struct reduction *c;
    tally_problem problem;
    size_t kept, length, outer; /* kept * outer rows */
    size_t element, values;
    char *x, *y;
    uint64_t *bits; /* [value][row] */
    tally_status worst;
};

static int is_dot(const struct rows *w) {
    return w->problem.op == TALLY_DOT;
}

static uint64_t bits_at(const void *at, size_t size) {
    uint64_t bits = 0;
    memcpy(&bits, at, size);
    return bits;
}

static void reduce_alone(struct rows *w) {
    const size_t rows = w->kept * w->outer;
    tally_value value[TALLY_VALUES_MAX];
    w->worst = TALLY_OK;
    for (size_t i = 0; i < rows; i++) {
        const size_t at = i * w->length * w->element;
        const tally_status s = tally_reduce(NULL, &w->problem, w->x + at,
                                            is_dot(w) ? w->y + at : NULL, w->length, value);
        if (s != TALLY_OK && s != TALLY_ERANGE) check(s, "a row alone");
        for (size_t v = 0; v < w->values; v++) {
            const int exists = s == TALLY_OK && value[v].type != 0;
            w->bits[v * rows + i] = exists ? tally_value_bits(&value[v]) : 0;
            if (!exists) w->worst = TALLY_ERANGE; /* of several values one may not exist */
        }
    }
}

/* Compares results[v][i], i < rows, with those of rows alone. */
static void compare(const struct rows *w, const char *device, const char *layout, size_t rows,
                    tally_status s, void *const *out) {
    done++;
    if (s != TALLY_OK && s != w->worst) {
        printf("sweep: %s, %s of %s, %s: %zu x %zu: %s\n", device, tally_op_name(w->problem.op),
               tally_type_name(w->problem.type), layout, w->kept, w->length, tally_error());
        exit(1);
    }
    for (size_t v = 0; v < w->values; v++) {
        const tally_type type = tally_problem_value_type(&w->problem, v);
        for (size_t i = 0; i < rows; i++) {
            const uint64_t got = bits_at((char *)out[v] + i * tally_type_size(type),
                                         tally_type_size(type)),
                           right = w->bits[v * w->kept * w->outer + i];
            if (got == right) continue;
            printf(
                "sweep: %s, %s of %s as %s (ddof %g), %s: %zu x %zu, row %zu, value %zu: %" PRIx64
                " for %" PRIx64 "\n",
                device, tally_op_name(w->problem.op), tally_type_name(w->problem.type),
                tally_type_name(type), w->problem.ddof, layout, w->kept, w->length, i, v, got,
                right);
            exit(1);
        }
    }
    if (s != w->worst && rows == w->kept * w->outer) {
        printf("sweep: %s, %s of %s, %s: %zu x %zu: %s for %s\n", device,
               tally_op_name(w->problem.op), tally_type_name(w->problem.type), layout, w->kept,
               w->length, tally_status_text(s), tally_status_text(w->worst));
        exit(1);
    }
}

static void **make_out(const struct rows *w, size_t rows) {
    void **out = allocate(w->values * sizeof *out);
    for (size_t v = 0; v < w->values; v++)
        out[v] = allocate(rows * tally_type_size(tally_problem_value_type(&w->problem, v)));
    return out;
}

static void free_out(const struct rows *w, void **out) {
    for (size_t v = 0; v < w->values; v++)
        free(out[v]);
    free(out);
}

static void run_layout(const struct rows *w, const struct layout *l) {
    size_t length[4];
    ptrdiff_t stride[4], of[4] = {0}, at = 1;
    uint32_t axes = 0;
    size_t outer = 1;
    for (unsigned d = l->dims; d-- > 0;) {
        const enum dimension what = l->at[d];
        length[d] = what == KEPT ? w->kept : what == ROW ? w->length : what == FIRST ? OUTER : 2;
        if (what == ROW) axes |= 1u << d;
        if (what == FIRST || what == SECOND) outer *= length[d];
        stride[d] = of[what] = at;
        at *= (ptrdiff_t)length[d];
    }
    const size_t n = (size_t)at, rows = outer * w->kept;
    if (outer > w->outer) return;
    char *x = allocate(n * w->element), *y = is_dot(w) ? allocate(n * w->element) : NULL;
    /* Results lie in C order of the kept dimensions, as rows do but where the kept dimension is outside. */
    size_t *order = allocate(rows * sizeof *order);
    const int inside = l->at[0] == KEPT && l->dims == 3;
    for (size_t o = 0; o < outer; o++)
        for (size_t k = 0; k < w->kept; k++) {
            const size_t row = o * w->kept + k;
            const size_t first = l->dims == 4 ? o / 2 : o, second = l->dims == 4 ? o % 2 : 0;
            order[inside ? k * outer + o : row] = row;
            for (size_t r = 0; r < w->length; r++) {
                const ptrdiff_t to = (ptrdiff_t)first * of[FIRST] + (ptrdiff_t)second * of[SECOND] +
                                     (ptrdiff_t)k * of[KEPT] + (ptrdiff_t)r * of[ROW];
                const size_t from = (row * w->length + r) * w->element;
                memcpy(x + (size_t)to * w->element, w->x + from, w->element);
                if (y) memcpy(y + (size_t)to * w->element, w->y + from, w->element);
            }
        }
    struct rows mine = *w;
    mine.bits = allocate(w->values * w->kept * w->outer * sizeof *mine.bits);
    for (size_t v = 0; v < w->values; v++)
        for (size_t i = 0; i < rows; i++)
            mine.bits[v * w->kept * w->outer + i] = w->bits[v * w->kept * w->outer + order[i]];
    const tally_shape shape = {.cut = TALLY_AXES,
                               .dims = l->dims,
                               .length = length,
                               .x_stride = stride,
                               .y_stride = y ? stride : NULL,
                               .axes = axes};
    for (size_t d = 0; d < device_count; d++) {
        void **out = make_out(w, rows);
        const tally_status s =
            tally_reduce_shaped(devices[d].device, &w->problem, &shape, x, y, out);
        compare(&mine, devices[d].spec, l->name, rows, s, out);
        free_out(w, out);
    }
    free(mine.bits);
    free(order);
    free(x);
    free(y);
}

/* Rows as segments, by their offsets and by their number; and as groups, their elements in turn. */
static void run_parts(const struct rows *w) {
    const size_t n = w->kept * w->length;
    int64_t *offsets = allocate((w->kept + 1) * sizeof *offsets);
    int32_t *ids = allocate(n * sizeof *ids);
    char *x = allocate(n * w->element), *mixed = allocate(n * w->element);
    memcpy(x, w->x, n * w->element);
    for (size_t i = 0; i <= w->kept; i++)
        offsets[i] = (int64_t)(i * w->length);
    for (size_t k = 0; k < w->kept; k++)
        for (size_t r = 0; r < w->length; r++) {
            memcpy(mixed + (r * w->kept + k) * w->element, x + (k * w->length + r) * w->element,
                   w->element);
            ids[r * w->kept + k] = (int32_t)k;
        }
    const tally_shape
        by_offsets = {.cut = TALLY_SEGMENTS, .n = n, .count = w->kept, .offsets = offsets},
        even = {.cut = TALLY_SEGMENTS, .n = n, .count = w->kept},
        groups = {.cut = TALLY_GROUPS, .n = n, .count = w->kept, .ids = ids, .ids_type = TALLY_I32};
    const int index = w->problem.op == TALLY_ARGMIN || w->problem.op == TALLY_ARGMAX ||
                      w->problem.op == TALLY_DESCRIBE; /* of groups it counts within x */
    for (size_t d = 0; d < device_count; d++) {
        void **out = make_out(w, w->kept);
        tally_status s =
            tally_reduce_shaped(devices[d].device, &w->problem, &by_offsets, x, NULL, out);
        compare(w, devices[d].spec, "segments by offsets", w->kept, s, out);
        s = tally_reduce_shaped(devices[d].device, &w->problem, &even, x, NULL, out);
        compare(w, devices[d].spec, "segments of one length", w->kept, s, out);
        if (!index) {
            s = tally_reduce_shaped(devices[d].device, &w->problem, &groups, mixed, NULL, out);
            compare(w, devices[d].spec, "groups", w->kept, s, out);
        }
        free_out(w, out);
    }
    free(offsets);
    free(ids);
    free(x);
    free(mixed);
}

static void run_shape(const struct reduction *c, tally_type type, size_t kept, size_t length) {
    struct rows w = {.c = c,
                     .problem = {.op = c->op, .type = type, .out = c->out, .ddof = c->ddof},
                     .kept = kept,
                     .length = length,
                     .outer = kept <= DENSE ? 2 * OUTER : 1,
                     .element = tally_type_size(type)};
    check(tally_problem_values(&w.problem, &w.values), "a problem");
    const size_t rows = kept * w.outer;
    const unsigned kind = (unsigned)(draw() % 6);
    w.x = allocate(rows * length * w.element);
    w.y = is_dot(&w) ? allocate(rows * length * w.element) : NULL;
    for (size_t i = 0; i < rows * length; i++) {
        put(w.x + i * w.element, type, kind, i / length, i % length);
        if (w.y) put(w.y + i * w.element, type, kind == 1 ? 0 : kind, i / length, i % length);
    }
    w.bits = allocate(w.values * rows * sizeof *w.bits);
    reduce_alone(&w);
    for (size_t l = 0; l < LAYOUTS; l++)
        run_layout(&w, &layouts[l]);
    if (!is_dot(&w)) {
        if (w.outer == 1 || w.worst == TALLY_OK) run_parts(&w);
    }
    free(w.bits);
    free(w.x);
    free(w.y);
}

/* ---- All shapes ------------------------------------------------------------------------------ */

static void open_device(const char *spec) {
    if (device_count == DEVICES_MOST) return;
    if (tally_open(spec, &devices[device_count].device) != TALLY_OK) {
        fprintf(stderr, "sweep: %s\n", tally_error());
        exit(2);
    }
    devices[device_count++].spec = spec;
}

static void open_instruction_sets(void) {
    const char *specs[] = {"cpu:isa=baseline", "cpu:isa=avx2", "cpu:isa=avx512", "cpu:isa=neon"};
    tally_device *device;
    for (size_t i = 0; i < sizeof specs / sizeof specs[0]; i++)
        if (tally_open(specs[i], &device) == TALLY_OK) {
            tally_close(device);
            open_device(specs[i]);
        }
}

int main(int argc, char **argv) {
    uint64_t share = 1, part = 0, parts = 1, shape = 0;
    seed = (uint64_t)time(NULL);
    const char *only = NULL, *from = getenv("TALLY_SEED");
    if (from) seed = strtoull(from, NULL, 0);
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--share") == 0 && i + 1 < argc)
            share = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--part") == 0 && i + 2 < argc) {
            part = strtoull(argv[++i], NULL, 0);
            parts = strtoull(argv[++i], NULL, 0);
        } else if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 0);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else
            open_device(argv[i]);
    if (device_count == 0) open_instruction_sets();
    setvbuf(stdout, NULL, _IOLBF, 0);
    printf("sweep: seed %" PRIu64 ", one shape in %" PRIu64 "\n", seed, share);
    draws = seed;
    size_t kept[DENSE + 30], count = 0;
    for (size_t k = 1; k <= DENSE; k++)
        kept[count++] = k;
    for (size_t power = 128; power < LARGEST; power *= 2)
        for (size_t k = power - 1; k <= power + 1; k++)
            kept[count++] = k;
    for (size_t c = 0; c < CASES; c++) {
        if (only && strcmp(only, tally_op_name(cases[c].op)) != 0) continue;
        for (tally_type type = TALLY_I8; type <= TALLY_F64; type++) {
            const int floating = type >= TALLY_F16;
            if (floating ? !cases[c].floats : !cases[c].integers) continue;
            for (size_t k = 0; k < count; k++)
                for (size_t r = 1; r <= ROWS_MOST; r++)
                    if (draw() % share == 0 && shape++ % parts == part)
                        run_shape(&cases[c], type, kept[k], r);
        }
    }
    for (size_t d = 0; d < device_count; d++)
        tally_close(devices[d].device);
    printf("sweep: %zu reductions, none differs from its rows alone\n", done);
    return 0;
}
