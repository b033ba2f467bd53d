/*
 * bits.c - one digest of very many results, to be compared between machines.
 *
 *   bits [DEVICE]
 *
 * Arrays of every type are made from fixed seeds by integer arithmetic alone, reduced with every
 * operator in every way the library offers - without a device, on DEVICE (two threads of the CPU, if
 * not given), by a state fed in odd pieces - and everything that comes back goes into a hash; so do the
 * bytes of saved states. It prints one line per operator and type and a total. The output must be the same, byte for byte, for every
 * device, instruction set and processor. Exit status 1 where two ways of one run already differ.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally.h"

/* ---- Hash and generator ------------------------------------------------------------------- */

#define FNV_START 0xcbf29ce484222325u

static uint64_t hash_byte(uint64_t hash, unsigned byte) {
    return (hash ^ byte) * 0x100000001b3u;
}

static uint64_t hash_number(uint64_t hash, uint64_t number) {
    for (int i = 0; i < 8; i++)
        hash = hash_byte(hash, (unsigned)(number >> (8 * i)) & 0xff);
    return hash;
}

static uint64_t seed;

static uint64_t next_random(void) {
    uint64_t z = (seed += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* ---- Arrays ------------------------------------------------------------------------------- */

/* Long enough for both threads. ThreadSanitizer, which is tenfold slower, needs one kind of data. */
#ifdef __SANITIZE_THREAD__
enum { LONG_N = 300001, KINDS = 1 };
#else
enum { LONG_N = 300001, KINDS = 5 };
#endif
static unsigned char room[8 * LONG_N + 64], other_room[8 * LONG_N + 64];

typedef struct format { /* of a floating type; all zero for the integers */
    unsigned bits, field;
} format;

static format format_of(tally_type type) {
    switch (type) {
    case TALLY_F16:
        return (format){16, 10};
    case TALLY_BF16:
        return (format){16, 7};
    case TALLY_F32:
        return (format){32, 23};
    case TALLY_F64:
        return (format){64, 52};
    default:
        return (format){0, 0};
    }
}

/* The i-th element of a kind of array, as raw bits. */
static uint64_t element(tally_type type, unsigned kind, size_t i) {
    static uint64_t before, block;
    uint64_t random = next_random();
    const format f = format_of(type);
    if (f.bits == 0) {
        switch (kind) {
        case 0:
            return random; /* the whole range */
        case 1:
            return random % 7 - (type <= TALLY_I64 ? 3 : 0);
        case 2:
            return random % 500 == 0 ? 2 : type <= TALLY_I64 && random & 4096 ? UINT64_MAX : 1;
        case 3:
            return random & 1 ? UINT64_MAX : (uint64_t)1 << (8 * tally_type_size(type) - 1);
        default:
            return random & (random >> 20) & 0xff;
        }
    }
    const uint64_t top = ((uint64_t)1 << (f.bits - 1 - f.field)) - 1, bias = top >> 1;
    const uint64_t sign = random >> 63 << (f.bits - 1);
    const uint64_t mantissa = random & (((uint64_t)1 << f.field) - 1);
    const uint64_t spread = next_random();
    switch (kind) {
    case 0: /* around 1 */
        return sign | (bias - spread % 2) << f.field | mantissa;
    case 1: /* every finite number */
        return sign | spread % top << f.field | mantissa;
    case 2: /* x, -x, x', -x', ... and small rests */
        if (i % 2) return random % 100 ? before ^ (uint64_t)1 << (f.bits - 1) : mantissa;
        return before = sign | (spread % (top - 1) + 1) << f.field | mantissa;
    case 3: /* blocks of one magnitude each, subnormal ones among them */
        if (i % 300 == 0) block = spread % 5 ? spread / 8 % top : 0;
        return sign | block << f.field | mantissa;
    default: /* around 1 with an infinity or a NaN now and then, and zeros */
        if (spread % 6000 == 7) return sign | top << f.field | (spread % 5 ? 0 : mantissa);
        return sign | (spread % 50 ? bias << f.field | mantissa : 0);
    }
}

/* Fills an array at an odd place of `into`; returns where. */
static const unsigned char *fill(unsigned char *into, tally_type type, unsigned kind, size_t n) {
    const size_t size = tally_type_size(type);
    unsigned char *at = into + (kind * 3 + n) % 9;
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = element(type, kind, i);
        const uint8_t b8 = (uint8_t)bits;
        const uint16_t b16 = (uint16_t)bits;
        const uint32_t b32 = (uint32_t)bits;
        memcpy(at + i * size,
               size == 1   ? (const void *)&b8
               : size == 2 ? (const void *)&b16
               : size == 4 ? (const void *)&b32
                           : (const void *)&bits,
               size);
    }
    return at;
}

/* ---- Results ------------------------------------------------------------------------------ */

static tally_device *device;
static unsigned long missing; /* results that the device does not give yet */

static uint64_t hash_result(uint64_t hash, tally_status status, const tally_value *value) {
    hash = hash_byte(hash, status);
    if (status != TALLY_OK) return hash;
    char text[32];
    const size_t length = tally_value_print(value, text, sizeof text);
    hash = hash_byte(hash, value->type);
    hash = hash_number(hash, tally_value_bits(value));
    for (size_t i = 0; i < length; i++)
        hash = hash_byte(hash, (unsigned char)text[i]);
    return hash;
}

static void must_work(tally_status status) {
    if (status == TALLY_OK) return;
    fprintf(stderr, "bits: %s\n", tally_error());
    exit(1);
}

static uint64_t hash_results(tally_status status, const tally_problem *problem,
                             const tally_value *values) {
    uint64_t hash = FNV_START;
    size_t count;
    must_work(tally_problem_values(problem, &count));
    for (size_t i = 0; i < count; i++)
        hash = hash_result(hash, status, &values[i]);
    return hash;
}

static void must_agree(uint64_t one, uint64_t other, const char *what, tally_type type, size_t n,
                       unsigned kind) {
    if (one == other) return;
    fprintf(stderr, "bits: %s of %zu %s, kind %u: two ways, two results\n", what, n,
            tally_type_name(type), kind);
    exit(1);
}

/* An array of one kind, and for dot a second. */
struct data {
    const unsigned char *x, *y;
    size_t n;
    unsigned kind;
};

/* Whether the device did what it was asked; it may lack parts, which the calling thread then stands for. */
static int did(tally_status status) {
    if (status == TALLY_EUNSUPPORTED && device) {
        missing++;
        return 0;
    }
    return 1;
}

/* Feeds an array in odd pieces, asks on the way, and gives the hash of the result. */
static uint64_t fed(tally_device *where, const tally_problem *problem, const struct data *in) {
    const size_t size = tally_type_size(problem->type);
    tally_value values[TALLY_VALUES_MAX];
    tally_state *state;
    size_t piece = 1;
    must_work(tally_state_create(problem, &state));
    for (size_t at = 0; at < in->n; at += piece, piece = piece * 3 % 7919 + 1) {
        if (piece > in->n - at) piece = in->n - at;
        const void *x = in->x + at * size, *y = in->y ? in->y + at * size : NULL;
        tally_status status = tally_state_feed(state, where, x, y, piece);
        if (!did(status)) status = tally_state_feed(state, NULL, x, y, piece);
        must_work(status);
        if (piece % 5 == 0) (void)tally_state_value(state, values);
    }
    const tally_status status = tally_state_value(state, values);
    tally_state_destroy(state);
    return hash_results(status, problem, values);
}

/* An array reduced in three ways, which must agree. */
static uint64_t reduced(const tally_problem *problem, const char *name, const struct data *in,
                        int device_feeds) {
    tally_value values[TALLY_VALUES_MAX];
    tally_status status = tally_reduce(NULL, problem, in->x, in->y, in->n, values);
    const uint64_t alone = hash_results(status, problem, values);
    status = tally_reduce(device, problem, in->x, in->y, in->n, values);
    if (did(status))
        must_agree(alone, hash_results(status, problem, values), name, problem->type, in->n,
                   in->kind);
    must_agree(alone, fed(device_feeds ? device : NULL, problem, in), name, problem->type, in->n,
               in->kind);
    return alone;
}

static uint64_t built_in(const tally_problem *problem, const struct data *in) {
    return reduced(problem, tally_op_name(problem->op), in, in->n % 2 != 0);
}

/* Operators that are associative nowhere; written so that no multiply-add can be fused. */
static void mix_u32(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    const uint32_t *a = left, *b = right;
    uint32_t *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (a[i] + b[i]) * 0x9e3779b1u ^ (a[i] & b[i]);
}
static void order_u32(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    const uint32_t *a = left, *b = right;
    uint32_t *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (a[i] ^ (a[i] >> 5)) * 0x85ebca6bu + b[i];
}
static void mix_f64(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    const double *a = left, *b = right;
    double *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (a[i] + b[i]) * 0.7;
}
static void order_f64(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    const double *a = left, *b = right;
    double *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (a[i] - b[i]) * 0.9;
}
static void mix_f32(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    const float *a = left, *b = right;
    float *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (a[i] + b[i]) * 0.7f;
}

typedef struct users_operator {
    const char *name;
    tally_type type;
    tally_operator op;
} users_operator;

static const uint64_t nothing = 0x123456789abcdefu;
#define MIX_U32 "(a + b) * 0x9e3779b1u ^ (a & b)"
static const users_operator users[] = {
    {"mix", TALLY_U32, {mix_u32, NULL, &nothing, 1, MIX_U32}},
    {"mix-in-order", TALLY_U32, {mix_u32, NULL, &nothing, 0, MIX_U32}},
    {"order", TALLY_U32, {order_u32, NULL, &nothing, 0, "(a ^ (a >> 5)) * 0x85ebca6bu + b"}},
    {"mix", TALLY_F64, {mix_f64, NULL, &nothing, 1, "(a + b) * 0.7"}},
    {"order", TALLY_F64, {order_f64, NULL, &nothing, 0, "(a - b) * 0.9"}},
    {"mix", TALLY_F32, {mix_f32, NULL, &nothing, 1, "(a + b) * 0.7f"}},
};

static uint64_t user(const users_operator *u, const struct data *in) {
    const tally_problem problem = {.op = TALLY_USER, .type = u->type, .user = &u->op};
    return reduced(&problem, u->name, in, in->n % 2 == 0);
}

/* The saved bytes of a state that took the array in two parts, one of which was saved and loaded. */
static uint64_t saved(const tally_problem *problem, const struct data *in) {
    static unsigned char bytes[80000];
    const size_t cut = in->n / 3, width = tally_type_size(problem->type);
    const unsigned char *x = in->x + cut * width, *y = in->y ? in->y + cut * width : NULL;
    tally_state *left, *right, *loaded;
    must_work(tally_state_create(problem, &left));
    must_work(tally_state_create(problem, &right));
    must_work(tally_state_begin_at(right, cut));
    must_work(tally_state_feed(left, NULL, in->x, in->y, cut));
    tally_status status = tally_state_feed(right, device, x, y, in->n - cut);
    if (!did(status)) status = tally_state_feed(right, NULL, x, y, in->n - cut);
    must_work(status);
    uint64_t hash = FNV_START;
    must_work(tally_state_save(right, bytes, sizeof bytes));
    size_t size = tally_state_size(right);
    for (size_t i = 0; i < size; i++)
        hash = hash_byte(hash, bytes[i]);
    must_work(tally_state_load(bytes, size, problem, &loaded));
    must_work(tally_state_merge(left, loaded));
    must_work(tally_state_save(left, bytes, sizeof bytes));
    size = tally_state_size(left);
    for (size_t i = 0; i < size; i++)
        hash = hash_byte(hash, bytes[i]);
    tally_state_destroy(left);
    tally_state_destroy(right);
    tally_state_destroy(loaded);
    return hash;
}

/* ---- Everything --------------------------------------------------------------------------- */

static uint64_t total = FNV_START;

static void print(const char *name, tally_type type, uint64_t hash) {
    printf("%-8s %-4s %016" PRIx64 "\n", name, tally_type_name(type), hash);
    total = hash_number(total, hash);
}

static const size_t lengths[] = {0,   1,    2,    3,    7,    8,    17,   31,    33,    64,    129,
                                 255, 1000, 4095, 4096, 4097, 8193, 9001, 12289, 20000, LONG_N};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void classic(tally_op op, tally_type type) {
    uint64_t hash = FNV_START;
    seed = (uint64_t)type * 1000 + (uint64_t)op;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t l = 0; l < LENGTHS; l++) {
            const size_t n = lengths[l];
            if (n == LONG_N && kind != 1 && kind != 4) continue;
            const struct data in = {fill(room, type, kind, n), NULL, n, kind};
            tally_problem problem = {.op = op, .type = type};
            if (op != TALLY_SUM || type < TALLY_F16) {
                hash = hash_number(hash, built_in(&problem, &in));
                continue;
            }
            for (int out = TALLY_F16; out <= TALLY_F64; out++) {
                problem.out = (tally_type)out;
                hash = hash_number(hash, built_in(&problem, &in));
            }
        }
    print(tally_op_name(op), type, hash);
}

/* Fewer lengths than of the classic ones, in turns; all of them for one kind. */
static void statistic(tally_op op, tally_type type) {
    static const double ddofs[] = {0, 1, 0.5, 1e3};
    uint64_t hash = FNV_START;
    seed = (uint64_t)type * 1000 + (uint64_t)op;
    for (unsigned kind = 0; kind < KINDS; kind++)
        for (size_t l = 0; l < LENGTHS; l++) {
            const size_t n = lengths[l];
            if (n == LONG_N ? kind != (unsigned)type % KINDS : l % KINDS != kind && l % 3 != 1)
                continue;
            const tally_problem problem = {
                .op = op,
                .type = type,
                .ddof = op == TALLY_VAR || op == TALLY_STD ? ddofs[l % 4] : 0,
                .out = op >= TALLY_MEAN && op <= TALLY_STD && l % 5 == 4 ? TALLY_F32 : 0};
            const struct data in = {
                fill(room, type, kind, n),
                op == TALLY_DOT ? fill(other_room, type, (kind + 1) % KINDS, n) : NULL, n, kind};
            hash = hash_number(hash, built_in(&problem, &in));
        }
    print(tally_op_name(op), type, hash);
}

/* Saved bytes of all kinds of states. */
static void states(tally_type type) {
    static const tally_problem problems[] = {
        {.op = TALLY_SUM},
        {.op = TALLY_PROD, .also = {TALLY_XOR, TALLY_ANY}},
        {.op = TALLY_DESCRIBE, .also = {TALLY_NORM1, TALLY_NONZERO, TALLY_OR}},
        {.op = TALLY_DOT, .also = {TALLY_NORM2, TALLY_ALL}},
        {.op = TALLY_SUM, .fast = 1, .also = {TALLY_NORMINF, TALLY_AND}},
    };
    uint64_t hash = FNV_START;
    seed = type;
    for (size_t p = 0; p < sizeof problems / sizeof *problems; p++)
        for (size_t l = 0; l + 1 < LENGTHS; l++) {
            const unsigned kind = (unsigned)(p + l) % KINDS;
            const size_t n = lengths[l];
            tally_problem problem = problems[p];
            problem.type = type;
            if (problem.fast && type >= TALLY_F16) continue; /* fast sums have no promise */
            const struct data in = {
                fill(room, type, kind, n),
                problem.op == TALLY_DOT ? fill(other_room, type, kind, n) : NULL, n, kind};
            hash = hash_number(hash, saved(&problem, &in));
        }
    print("states", type, hash);
}

static void operators(void) {
    for (size_t u = 0; u < sizeof users / sizeof *users; u++) {
        uint64_t hash = FNV_START, states_hash = FNV_START;
        const tally_problem problem = {
            .op = TALLY_USER, .type = users[u].type, .user = &users[u].op};
        seed = u;
        for (unsigned kind = 0; kind < KINDS; kind++)
            for (size_t l = 0; l < LENGTHS; l++) {
                if (lengths[l] == LONG_N && kind != 0) continue;
                const struct data in = {fill(room, users[u].type, kind, lengths[l]), NULL,
                                        lengths[l], kind};
                hash = hash_number(hash, user(&users[u], &in));
                /* A user's operator gives what NaN it gives, and that is the machine's choice: here are
                 * data that lead to none. */
                const int may_be_nan = users[u].type >= TALLY_F16 && kind != 0;
                if (l % KINDS == kind && !may_be_nan)
                    states_hash = hash_number(states_hash, saved(&problem, &in));
            }
        print(users[u].name, users[u].type, hash);
        print("states", users[u].type, states_hash);
    }
}

int main(int argc, char **argv) {
    must_work(tally_open(argc > 1 ? argv[1] : "cpu:threads=2", &device));
    for (int op = TALLY_SUM; op <= TALLY_XOR; op++)
        for (int t = TALLY_I8; t <= TALLY_F64; t++)
            classic((tally_op)op, (tally_type)t);
    for (int op = TALLY_XOR + 1; op <= TALLY_DESCRIBE; op++)
        for (int t = TALLY_I8; t <= TALLY_F64; t++)
            statistic((tally_op)op, (tally_type)t);
    for (int t = TALLY_I8; t <= TALLY_F64; t++)
        states((tally_type)t);
    operators();
    printf("total %016" PRIx64 "\n", total);
    if (missing)
        fprintf(stderr, "bits: %s does not do %lu of these; the CPU stood in\n", argv[1], missing);
    tally_close(device);
    return 0;
}
