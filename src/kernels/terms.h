/*
 * terms.h - arrays that are added up over ranks, element by element: how an element becomes an integer of few words
 * which plain addition combines, and how the sum becomes the nearest float. For kernels (terms.cu) and for the host
 * (src/exact/terms.c) alike.
 *
 * Bounds. The array is cut into blocks of TERMS_BLOCK elements. Of each block all ranks agree, by a greatest value of
 * three numbers, on an exponent above all of its bits, on one at or below all of its bits, and on whether there are
 * negative zeros, infinities or NaNs among its elements.
 *
 * Terms. An element x of the block is then the integer x / 2^lowest, exactly. Below it stand up to three counters of so
 * many bits that they can count the ranks, where the block needs them: of terms that are not -0; of +infinities; of
 * -infinities. A NaN counts as both. The whole is cut into digits, each a word with the integer's sign: a digit has so
 * many bits that as many words as there are ranks add up without overflow. The first word stands in the place of the
 * element, the others in rows of words which the blocks that need them get one after another.
 *
 * Values. The words, added up over the ranks, say what the digits add up to: the exact sum, which is rounded once.
 *
 * Before including this header, define i32, i64, u32, u64, PURE and leading_zeros() of a u32, and include rounding.h.
 */
#ifndef TALLY_TERMS_H
#define TALLY_TERMS_H

#define TERMS_BLOCK 512u
#define TERMS_NONE  (-(1 << 20)) /* a bound of no elements: below all others */

/* The bounds of a block: the exponent above all bits, the lowest bit's negated exponent, and notes. */
enum { BOUND_TOP, BOUND_LOW, BOUND_NOTES, BOUND_WORDS };
enum { NOTES_NONE, NOTES_ZERO, NOTES_SPECIAL };

/* The most 32-bit limbs of a sum: f32 reaches from 2^-149 to 2^128, 277 bits; three counters have 63, a word more of
 * digits 63, and a number of ranks 20 and a sign. 424 bits, in limbs that begin at multiples of 32. */
#define TERMS_LIMBS 16u

typedef struct terms_plan {
    u64 n;
    u64 shard;        /* elements of a shard: no block crosses from one into the next */
    u64 in_shards;    /* elements in shards; the rest begins here */
    u64 per_shard;    /* blocks of a shard */
    u64 sharded;      /* blocks of all shards */
    u64 blocks;       /* of all elements */
    u64 spare;        /* rows that there are for words behind the first */
    u64 first, count; /* the elements whose sums are wanted */
    i32 mantissa, bias;
    u32 element; /* bits of an element, */
    u32 word;    /* of a word, */
    u32 digit;   /* of a digit: ranks * 2^digit is at most 2^(word - 1) */
    u32 counter; /* of a counter: ranks are fewer than 2^counter, which is at most 2^21 */
    u32 divisor; /* what sums are divided by, at least 1 */
    u32 padding;
} terms_plan;

/* Returns a / b. GPUs divide numbers of 32 bits in a tenth of the instructions that 64 take. */
PURE u64 terms_quotient(u64 a, u64 b) {
    return (a | b) >> 32 ? a / b : (u32)a / (u32)b;
}

/* A block's elements: from start on, before end. */
typedef struct terms_range {
    u64 start, end;
} terms_range;

PURE terms_range terms_range_of(const terms_plan *p, u64 block) {
    terms_range r;
    u64 limit = p->n;
    if (block >= p->sharded) {
        r.start = p->in_shards + (block - p->sharded) * TERMS_BLOCK;
    } else {
        const u64 shard = terms_quotient(block, p->per_shard);
        r.start = shard * p->shard + (block - shard * p->per_shard) * TERMS_BLOCK;
        limit = (shard + 1) * p->shard;
    }
    r.end = r.start + TERMS_BLOCK < limit ? r.start + TERMS_BLOCK : limit;
    return r;
}

/* Returns the block of an element. */
PURE u64 terms_block_of(const terms_plan *p, u64 element) {
    if (element < p->in_shards)
        return element / p->shard * p->per_shard + element % p->shard / TERMS_BLOCK;
    return p->sharded + (element - p->in_shards) / TERMS_BLOCK;
}

/* Blocks for which the device finds at a time where their rows of words begin. */
#define TERMS_CHUNK 1024u
PURE u64 terms_chunks(const terms_plan *p) {
    return p->blocks / TERMS_CHUNK + 1;
}

/* The workspace, in words: where each block's spare rows begin, how many all blocks need, and from TERMS_CHUNKS_AT() on
 * how many each chunk needs. */
#define TERMS_CHUNKS_AT(plan) ((plan).blocks + 1)
PURE u64 terms_work_words(const terms_plan *p) {
    return TERMS_CHUNKS_AT(*p) + terms_chunks(p);
}

/* ---- Bounds --------------------------------------------------------------------------------- */

/* Splits a finite float: returns an integer m < 2^24; the magnitude is m 2^*exponent. */
PURE u32 terms_split(const terms_plan *p, u32 bits, i32 *exponent) {
    const u32 field = bits >> p->mantissa & (2u * (u32)p->bias + 1);
    *exponent = (i32)(field ? field : 1) - p->bias - p->mantissa;
    return (bits & ((1u << p->mantissa) - 1)) | (u32)(field != 0) << p->mantissa;
}

PURE u32 terms_is_negative(const terms_plan *p, u32 bits) {
    return bits >> (p->element - 1) & 1;
}

PURE u32 terms_is_special(const terms_plan *p, u32 bits) {
    const u32 most = 2u * (u32)p->bias + 1;
    return (bits >> p->mantissa & most) == most;
}

PURE void terms_raise(i32 *known, i32 more) {
    if (more > *known) *known = more;
}

PURE void terms_no_bounds(i32 *bounds) {
    bounds[BOUND_TOP] = bounds[BOUND_LOW] = TERMS_NONE;
    bounds[BOUND_NOTES] = NOTES_NONE;
}

/* Makes the bounds hold for an element more. */
PURE void terms_bound(const terms_plan *p, u32 bits, i32 *bounds) {
    i32 exponent;
    const u32 m = terms_split(p, bits, &exponent);
    if (terms_is_special(p, bits)) {
        terms_raise(&bounds[BOUND_NOTES], NOTES_SPECIAL);
    } else if (m == 0) {
        if (terms_is_negative(p, bits)) terms_raise(&bounds[BOUND_NOTES], NOTES_ZERO);
    } else {
        const i32 lowest = 31 - (i32)leading_zeros(m & (0 - m));
        terms_raise(&bounds[BOUND_TOP], exponent + 32 - (i32)leading_zeros(m));
        terms_raise(&bounds[BOUND_LOW], -(exponent + lowest));
    }
}

/* ---- Terms ---------------------------------------------------------------------------------- */

/* The layout of a block's integers. */
typedef struct terms_layout {
    i32 lowest;   /* the exponent of the integers' lowest bit */
    u32 counters; /* bits of counters below it */
    u32 digits;   /* at least 1 */
} terms_layout;

PURE terms_layout terms_layout_of(const terms_plan *p, i32 top, i32 low, i32 notes) {
    terms_layout l = {0, 0, 1};
    u32 bits = 0;
    if (top > TERMS_NONE) {
        l.lowest = -low;
        bits = (u32)(top + low);
    }
    if (notes == NOTES_ZERO) l.counters = p->counter;
    if (notes == NOTES_SPECIAL) l.counters = 3 * p->counter;
    bits += l.counters;
    if (bits > p->digit) l.digits = (bits + p->digit - 1) / p->digit;
    return l;
}

/* Returns the tally_status of a reduction whose blocks need `needs` rows of words behind the first,
 * and in which `failed` ranks have failed. */
PURE u32 terms_status(const terms_plan *p, u64 needs, i64 failed) {
    return failed ? 1 /* TALLY_EINVAL */ : needs > p->spare ? 4 /* TALLY_ENOMEM */ : 0;
}

/* Returns the element's j-th word. The digits of the integer and of the counters have no bit in
 * common, so a word is below 2^digit in magnitude. */
PURE i64 terms_word(const terms_plan *p, terms_layout l, u32 bits, u32 j) {
    const u64 all = ((u64)1 << p->digit) - 1;
    const u32 negative = terms_is_negative(p, bits);
    i32 exponent;
    u32 m = terms_split(p, bits, &exponent);
    u64 counts = m != 0 || !negative, shifted = 0;
    if (terms_is_special(p, bits)) {
        const u32 nan = (bits & ((1u << p->mantissa) - 1)) != 0;
        counts |= (u64)(nan || !negative) << p->counter | (u64)(nan || negative)
                                                              << (2 * p->counter);
        m = 0;
    }
    if (l.counters == 0) counts = 0;
    i32 up = exponent - l.lowest;
    if (up < 0) { /* the bits that go are 0 */
        m = up > -32 ? m >> -up : 0;
        up = 0;
    }
    const i32 down = (i32)(j * p->digit) - (up + (i32)l.counters);
    if (down >= 0 && down < 32) shifted = m >> down;
    if (down < 0 && down > -64) shifted = (u64)m << -down;
    const i64 digit = (i64)(shifted & all);
    const u32 at = j * p->digit;
    return (negative ? -digit : digit) + (at < 64 ? (i64)(counts >> at & all) : 0);
}

/* ---- Blocks of one digit, without NaNs and infinities: most of them ------------------------- */

/* Returns whether the block is plain: its words and values take few steps. */
PURE u32 terms_is_plain(const terms_plan *p, terms_layout l) {
    return l.digits == 1 && l.counters <= p->counter;
}

/* Defines the only word of an element of a plain block, as terms_word() returns it. The element is
 * an integer m below 2^(mantissa + 1), times 2^from and a constant of the format. m begins at the
 * top of U, of W bits, and moves down until 2^lowest is its lowest bit. Unless m is 0 that is 1 to
 * W - 1 places: the digit has at most W - 1 bits, and no bit of m lies below. */
#define TERMS_PLAIN_WORD(NAME, U, W)                                                               \
    PURE U NAME(const terms_plan *p, terms_layout l, u32 bits) {                                   \
        const u32 magnitude = bits & ((1u << (p->element - 1)) - 1);                               \
        const u32 field = magnitude >> p->mantissa, from = field ? field : 1;                      \
        const U m = (U)(magnitude - ((from - 1) << p->mantissa)) << ((W)-1 - p->mantissa);         \
        const u32 down = (u32)((W)-1 + p->bias + l.lowest - (i32)l.counters - (i32)from);          \
        const U word = m >> (down < (W) ? down : (W)-1);                                           \
        const u32 negative = bits >> (p->element - 1) & 1;                                         \
        const U count = l.counters && (magnitude != 0 || !negative);                               \
        return (negative ? 0 - word : word) + count;                                               \
    }
TERMS_PLAIN_WORD(terms_plain_word_32, u32, 32)
TERMS_PLAIN_WORD(terms_plain_word_64, u64, 64)

PURE u32 terms_zeros_32(u32 w) {
    return leading_zeros(w);
}
PURE u32 terms_zeros_64(u64 w) {
    return w >> 32 ? leading_zeros((u32)(w >> 32)) : 32 + leading_zeros((u32)w);
}

/* Defines the bits of the value of a sum of such words, as terms_value() returns them, if the
 * divisor is 1. Below the normal numbers every sum is exact, since all terms are multiples of the
 * least number. So the dropped bits, `drop`, are fewer than W - mantissa. */
#define TERMS_PLAIN_VALUE(NAME, U, I, W, zeros)                                                    \
    PURE u32 NAME(const terms_plan *p, terms_layout l, I word) {                                   \
        const I sum = word >> l.counters; /* floor */                                              \
        const u32 negative = sum < 0, sign = 1u << (p->element - 1);                               \
        const u32 infinity = (2 * (u32)p->bias + 1) << p->mantissa;                                \
        const U u = negative ? 0 - (U)sum : (U)sum;                                                \
        if (u == 0) return l.counters && word == 0 ? sign : 0;                                     \
        const i32 top = (W)-1 - (i32)zeros(u) + l.lowest, least = 1 - p->bias;                     \
        const i32 e = top > least ? top : least, drop = e - p->mantissa - l.lowest;                \
        const u32 d = (u32)(drop > 0 ? drop : 1); /* half a unit, ties to even */                  \
        const u32 rounded = (u32)((u + (((U)1 << (d - 1)) - 1) + (u >> d & 1)) >> d);              \
        const u32 kept = drop > 0 ? rounded : (u32)u << (drop < 0 ? -drop : 0);                    \
        const u32 bits = kept + ((u32)(e + p->bias - 1) << p->mantissa);                           \
        return (negative ? sign : 0) | (bits < infinity ? bits : infinity);                        \
    }
TERMS_PLAIN_VALUE(terms_plain_value_32, u32, i32, 32, terms_zeros_32)
TERMS_PLAIN_VALUE(terms_plain_value_64, u64, i64, 64, terms_zeros_64)

/* ---- Values --------------------------------------------------------------------------------- */

/* Returns the bits of a sum's value, divided by the divisor: of its counters and of top *
 * 2^exponent, with its sign. The highest bit of top is set unless it is 0; if `sticky`, there is a
 * little more below it. */
PURE u64 terms_settle(const terms_plan *p, terms_layout l, u64 counts, u32 negative, u64 top,
                      i32 exponent, u32 sticky) {
    const float_format f = {p->mantissa, p->bias};
    const u64 all = ((u64)1 << p->counter) - 1;
    if (l.counters > p->counter) {
        const u64 plus = counts >> p->counter & all, minus = counts >> (2 * p->counter);
        if (plus && minus) return float_nan_bits(f);
        if (plus || minus) return float_infinity_bits(f, minus != 0);
    }
    if (top == 0) return l.counters && (counts & all) == 0 ? float_sign(f) : 0;
    if (p->divisor > 1) {
        /* The quotient has 32 bits or more, and then zeros; no format keeps more than 24, so that the lowest bit can
         * stand for whatever is left over. */
        u64 quotient = top / p->divisor;
        sticky |= top % p->divisor != 0;
        for (; !(quotient >> 63); quotient <<= 1)
            exponent--;
        top = quotient | sticky;
    }
    return round_bits(f, negative, top, exponent, sticky);
}

/* Returns the bits of the value of a sum of one digit. */
PURE u64 terms_value(const terms_plan *p, terms_layout l, i64 word) {
    const u64 counts = (u64)word & (((u64)1 << l.counters) - 1);
    const i64 sum = word >> l.counters; /* floor */
    const u32 negative = sum < 0;
    u64 top = negative ? 0 - (u64)sum : (u64)sum;
    const u32 up = top ? terms_zeros_64(top) : 0;
    return terms_settle(p, l, counts, negative, top << up, l.lowest - (i32)up, 0);
}

/* Adds the j-th word of a sum to limbs of 32 bits' worth each. A limb gets less than 2^33 from each of at most 13
 * words. */
PURE void terms_add(const terms_plan *p, i64 word, u32 j, i64 *limb) {
    const u32 at = j * p->digit / 32, up = j * p->digit % 32;
    const u64 low = ((u64)word & 0xffffffffu) << up;
    const i64 high = (i64)((u64)(word >> 32)
                           << up); /* below 2^63 in magnitude, as word >> 32 is a 32-bit number */
    limb[at] += (i64)(low & 0xffffffffu);
    limb[at + 1] += (i64)(low >> 32) + (i64)((u64)high & 0xffffffffu);
    limb[at + 2] += high >> 32;
}

/* Returns the bits of the value of a sum whose words have been added to TERMS_LIMBS limbs. Changes
 * the limbs. */
PURE u64 terms_value_of_limbs(const terms_plan *p, terms_layout l, i64 *limb) {
    i64 carry = 0;
    u32 sticky = 0;
    for (u32 i = 0; i < TERMS_LIMBS; i++) {
        const i64 sum = limb[i] + carry;
        limb[i] = sum & 0xffffffff;
        carry = sum >> 32;
    }
    const u32 negative = carry < 0;
    const u64 low = (u64)limb[0] | (u64)limb[1] << 32;
    const u64 below = ((u64)1 << l.counters) - 1, counts = low & below;
    limb[0] &= (i64)(~below & 0xffffffffu);
    limb[1] &= (i64)(~below >> 32);
    u64 one = negative; /* two's complement: invert every digit and add one */
    for (u32 i = 0; i < TERMS_LIMBS && negative; i++) {
        one += ~(u64)limb[i] & 0xffffffffu;
        limb[i] = (i64)(one & 0xffffffffu);
        one >>= 32;
    }
    u32 count = TERMS_LIMBS;
    while (count > 0 && limb[count - 1] == 0)
        count--;
    if (count == 0) return terms_settle(p, l, counts, 0, 0, 0, 0);
    const u64 first = (u64)limb[count - 1] << 32 | (u64)(count > 1 ? limb[count - 2] : 0);
    const u64 third = (u64)(count > 2 ? limb[count - 3] : 0);
    const u32 up = terms_zeros_64(first); /* below 32 */
    sticky = (third << up & 0xffffffffu) != 0;
    for (u32 i = 0; i + 3 < count; i++)
        sticky |= limb[i] != 0;
    return terms_settle(p, l, counts, negative, first << up | third << up >> 32,
                        l.lowest - (i32)l.counters + 32 * ((i32)count - 2) - (i32)up, sticky);
}

#endif
