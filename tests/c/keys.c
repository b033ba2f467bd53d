/*
 * keys.c - the order of src/kernels/certain/order.h, for tests/engine/test_order.py.
 *
 *     keys TYPE TURNED COUNT      reads the bits of COUNT elements from its standard input, a word of 64 bits each, and
 *                                 writes what keys_of_type.h says
 */
#include "exact/kernel_words.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FLOATING
#define ELEMENT  uint16_t
#define SIGN     0x8000
#define INFINITE 0x7c00
#define KEYS     keys_f16
#include "keys_of_type.h"

#define FLOATING
#define ELEMENT  uint16_t
#define SIGN     0x8000
#define INFINITE 0x7f80
#define KEYS     keys_bf16
#include "keys_of_type.h"

#define FLOATING
#define ELEMENT  uint32_t
#define SIGN     0x80000000u
#define INFINITE 0x7f800000u
#define KEYS     keys_f32
#include "keys_of_type.h"

#define FLOATING
#define TYPE_F64
#define ELEMENT  uint64_t
#define SIGN     0x8000000000000000ul
#define INFINITE 0x7ff0000000000000ul
#define KEYS     keys_f64
#include "keys_of_type.h"

#define SIGNED_TYPE
#define ELEMENT int16_t
#define SIGN    0x8000
#define KEYS    keys_i16
#include "keys_of_type.h"

#define SIGNED_TYPE
#define TYPE_I64
#define ELEMENT int64_t
#define SIGN    0x8000000000000000ul
#define KEYS    keys_i64
#include "keys_of_type.h"

#define ELEMENT uint8_t
#define KEYS    keys_u8
#include "keys_of_type.h"

#define ELEMENT uint32_t
#define KEYS    keys_u32
#include "keys_of_type.h"

static const struct {
    const char *name;
    void (*keys)(const uint64_t *bits, size_t count, int turned, uint64_t *out);
} types[] = {{"f16", keys_f16}, {"bf16", keys_bf16}, {"f32", keys_f32}, {"f64", keys_f64},
             {"i16", keys_i16}, {"i64", keys_i64},   {"u8", keys_u8},   {"u32", keys_u32}};

int main(int argc, char **argv) {
    size_t t = 0;
    if (argc != 4) return 2;
    while (t < sizeof types / sizeof *types && strcmp(types[t].name, argv[1]) != 0)
        t++;
    const size_t count = strtoul(argv[3], NULL, 10);
    if (t == sizeof types / sizeof *types || count == 0) return 2;
    uint64_t *bits = calloc(count, sizeof *bits), *out = calloc(4 * count + 1, sizeof *out);
    if (!bits || !out || fread(bits, sizeof *bits, count, stdin) != count) return 3;
    types[t].keys(bits, count, atoi(argv[2]), out);
    fwrite(out, sizeof *out, 4 * count + 1, stdout);
    free(bits);
    free(out);
    return fflush(stdout) == 0 ? 0 : 3;
}
