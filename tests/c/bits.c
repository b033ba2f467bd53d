/*
 * bits.c - one digest of very many results, to be compared between machines.
 *
 *   bits [DEVICE]
 *
 * Arrays of every type are made from fixed seeds by integer arithmetic alone, reduced with every
 * operator in every way the library offers - without a device, on DEVICE (two threads of the CPU, if
 * not given), as a stream in odd pieces - and everything that comes back goes into a hash. It prints
 * one line per operator and type and a total. The output must be the same, byte for byte, for every
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

enum { LONG_N = 300001, KINDS = 5 }; /* long enough for both threads */
static unsigned char room[8 * LONG_N + 64];

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

/* Fills the array at an odd place; returns where. */
static const unsigned char *fill(tally_type type, unsigned kind, size_t n) {
    const size_t size = tally_type_size(type);
    unsigned char *at = room + (kind * 3 + n) % 9;
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

static void must_agree(uint64_t one, uint64_t other, const char *what, tally_type type, size_t n,
                       unsigned kind) {
    if (one == other) return;
    fprintf(stderr, "bits: %s of %zu %s, kind %u: two ways, two results\n", what, n,
            tally_type_name(type), kind);
    exit(1);
}

static void must_work(tally_status status) {
    if (status == TALLY_OK) return;
    fprintf(stderr, "bits: %s\n", tally_error());
    exit(1);
}

/* Feeds an array in odd pieces, asks on the way, and gives the hash of the result. */
static uint64_t streamed(tally_stream *stream, const unsigned char *x, tally_type type, size_t n) {
    tally_value value;
    size_t piece = 1;
    for (size_t at = 0; at < n; at += piece, piece = piece * 3 % 7919 + 1) {
        if (piece > n - at) piece = n - at;
        must_work(tally_stream_feed(stream, x + at * tally_type_size(type), piece));
        if (piece % 5 == 0) (void)tally_stream_result(stream, &value);
    }
    const tally_status status = tally_stream_result(stream, &value);
    const uint64_t hash = hash_result(FNV_START, status, &value);
    tally_stream_destroy(stream);
    return hash;
}

/* An array reduced in three ways, which must agree. */
static uint64_t built_in(tally_op op, tally_type type, tally_type out, const unsigned char *x,
                         size_t n, unsigned kind) {
    const tally_options options = {0, out};
    tally_value value;
    tally_stream *stream;
    tally_status status = tally_reduce(NULL, op, type, x, n, &options, &value);
    const uint64_t alone = hash_result(FNV_START, status, &value);
    status = tally_reduce(device, op, type, x, n, &options, &value);
    must_agree(alone, hash_result(FNV_START, status, &value), tally_op_name(op), type, n, kind);
    must_work(tally_stream_create(n % 2 ? device : NULL, op, type, &options, &stream));
    must_agree(alone, streamed(stream, x, type, n), tally_op_name(op), type, n, kind);
    return alone;
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

static uint64_t user(const users_operator *u, const unsigned char *x, size_t n, unsigned kind) {
    tally_value value;
    tally_stream *stream;
    tally_status status = tally_reduce_user(NULL, &u->op, u->type, x, n, &value);
    const uint64_t alone = hash_result(FNV_START, status, &value);
    status = tally_reduce_user(device, &u->op, u->type, x, n, &value);
    must_agree(alone, hash_result(FNV_START, status, &value), u->name, u->type, n, kind);
    must_work(tally_stream_create_user(n % 2 ? NULL : device, &u->op, u->type, &stream));
    must_agree(alone, streamed(stream, x, u->type, n), u->name, u->type, n, kind);
    return alone;
}

/* The saved bytes of an accumulator that took the array in two halves through a merge. */
static uint64_t accumulated(tally_type type, const unsigned char *x, size_t n) {
    const size_t half = n / 3;
    unsigned char bytes[TALLY_ACCUMULATOR_BYTES];
    tally_accumulator *a, *b;
    must_work(tally_accumulator_create(&a));
    must_work(tally_accumulator_create(&b));
    must_work(tally_accumulator_add(a, device, type, x + half * tally_type_size(type), n - half));
    must_work(tally_accumulator_add(b, NULL, type, x, half));
    must_work(tally_accumulator_merge(a, b));
    tally_accumulator_save(a, bytes);
    uint64_t hash = FNV_START;
    for (size_t i = 0; i < sizeof bytes; i++)
        hash = hash_byte(hash, bytes[i]);
    tally_accumulator_destroy(a);
    tally_accumulator_destroy(b);
    return hash;
}

/* ---- Everything --------------------------------------------------------------------------- */

int main(int argc, char **argv) {
    static const size_t lengths[] = {0,    1,    2,    3,    7,     8,     17,
                                     31,   33,   64,   129,  255,   1000,  4095,
                                     4096, 4097, 8193, 9001, 12289, 20000, LONG_N};
    must_work(tally_open(argc > 1 ? argv[1] : "cpu:threads=2", &device));

    uint64_t total = FNV_START;
    for (int op = TALLY_SUM; op <= TALLY_XOR; op++)
        for (int t = TALLY_I8; t <= TALLY_F64; t++) {
            const tally_type type = (tally_type)t;
            uint64_t hash = FNV_START;
            seed = (uint64_t)t * 1000 + (uint64_t)op;
            for (unsigned kind = 0; kind < KINDS; kind++)
                for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                    const size_t n = lengths[l];
                    if (n == LONG_N && kind != 1 && kind != 4) continue;
                    const unsigned char *x = fill(type, kind, n);
                    if (op == TALLY_SUM && t >= TALLY_F16) {
                        for (int out = TALLY_F16; out <= TALLY_F64; out++)
                            hash = hash_number(
                                hash, built_in(TALLY_SUM, type, (tally_type)out, x, n, kind));
                        hash = hash_number(hash, accumulated(type, x, n));
                    } else {
                        hash = hash_number(hash, built_in((tally_op)op, type, 0, x, n, kind));
                    }
                }
            printf("%-4s %-4s %016" PRIx64 "\n", tally_op_name((tally_op)op), tally_type_name(type),
                   hash);
            total = hash_number(total, hash);
        }
    for (size_t u = 0; u < sizeof users / sizeof *users; u++) {
        uint64_t hash = FNV_START;
        seed = u;
        for (unsigned kind = 0; kind < KINDS; kind++)
            for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
                if (lengths[l] == LONG_N && kind != 0) continue;
                const unsigned char *x = fill(users[u].type, kind, lengths[l]);
                hash = hash_number(hash, user(&users[u], x, lengths[l], kind));
            }
        printf("%s %s %016" PRIx64 "\n", users[u].name, tally_type_name(users[u].type), hash);
        total = hash_number(total, hash);
    }
    printf("total %016" PRIx64 "\n", total);
    tally_close(device);
    return 0;
}
