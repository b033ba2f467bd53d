/* keys.c - see keys.h. */
#include "keys.h"

#include <math.h>

static int is_float(tally_type type) {
    return type == TALLY_F16 || type == TALLY_BF16 || type == TALLY_F32 || type == TALLY_F64;
}

static int is_unsigned(tally_type type) {
    return type == TALLY_U8 || type == TALLY_U16 || type == TALLY_U32 || type == TALLY_U64;
}

/* Turns sign and magnitude, as floats have them, into a two's complement of the same order; and the reverse. */
static int64_t turn_negative(int64_t word) {
    return word < 0 ? word ^ INT64_MAX : word;
}

int64_t order_key(const tally_value *value, int greatest) {
    const int unused = 64 - 8 * (int)tally_type_size(value->type);
    uint64_t bits = tally_value_bits(value) << unused; /* the sign is the highest bit */
    if (is_float(value->type) && isnan(tally_value_double(value))) return NAN_KEY;
    if (is_unsigned(value->type)) bits ^= (uint64_t)1 << 63;
    int64_t key = (int64_t)bits;
    if (is_float(value->type)) key = turn_negative(key);
    return greatest ? ~key : key;
}

void from_order_key(tally_value *value, int64_t key, int greatest) {
    static const struct {
        tally_type type;
        uint64_t nan;
    } quiet[] = {{TALLY_F16, 0x7e00},
                 {TALLY_BF16, 0x7fc0},
                 {TALLY_F32, 0x7fc00000},
                 {TALLY_F64, UINT64_C(0x7ff8000000000000)}};
    const int unused = 64 - 8 * (int)tally_type_size(value->type);
    if (is_float(value->type) && key == NAN_KEY) {
        for (size_t i = 0; i < sizeof quiet / sizeof quiet[0]; i++)
            if (quiet[i].type == value->type) set_bits(value, quiet[i].nan);
        return;
    }
    if (greatest) key = ~key;
    if (is_float(value->type)) key = turn_negative(key);
    uint64_t bits = (uint64_t)key;
    if (is_unsigned(value->type)) bits ^= (uint64_t)1 << 63;
    set_bits(value, bits >> unused);
}

void set_bits(tally_value *value, uint64_t bits) {
    value->as.u64 = 0;
    switch (tally_type_size(value->type)) {
    case 1:
        value->as.u8 = (uint8_t)bits;
        break;
    case 2:
        value->as.u16 = (uint16_t)bits;
        break;
    case 4:
        value->as.u32 = (uint32_t)bits;
        break;
    default:
        value->as.u64 = bits;
    }
}
