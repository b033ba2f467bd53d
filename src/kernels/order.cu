/*
 * order - the least and the greatest element at once; and, where INDEXED is defined, the lowest indices at which
 * they stand, and that of the first NaN.
 *
 * Elements become keys that sort like them (keys.h). The record holds the greatest key, and the greatest
 * complement of a key: 0 is then what has seen nothing. Elements of 16 bits and fewer are compared in 32 bits.
 * Without indices a NaN is seen by its key, which lies beyond those of the infinities.
 *
 * An index is kept complemented, too, so that the lower of two is the greater word, and 0 is none. Within a tile
 * only keys are compared; the tile is searched for the index where it has an extreme. A tile with a NaN
 * gives that one's index and no extremes, since none of them matters any more.
 *
 * A tile of 8 or 16 bits has many elements, and a thread only some tens of tiles: nearly each brings some lane of a warp
 * a new extreme, for which the others would wait. There the index kept is that of the tile's start; at the end
 * each thread loads the tiles that its extremes are in again, and searches those.
 */
#include "tuning.h"

#include "operators.h"

#include "keys.h"

#include "grid.h"

#include "result.h"

enum { GREATEST, LEAST, AT_GREATEST, AT_LEAST, AT_NAN };
#if defined(INDEXED)
#define WORDS 5
#else
#define WORDS 2
#endif

#if defined(TYPE_I64) || defined(TYPE_U64) || defined(TYPE_F64)
typedef u64 key;
#else
typedef u32 key;
#endif
#if defined(TYPE_I8) || defined(TYPE_U8) || defined(TYPE_I16) || defined(TYPE_U16) ||              \
    defined(TYPE_F16) || defined(TYPE_BF16)
#define KEY_NARROW 1
#else
#define KEY_NARROW 0
#endif
#define KEY_BITS (8 * (u32)sizeof(element))
#define KEY_MASK (~(key)0 >> (8 * sizeof(key) - KEY_BITS))

/* operators.h has floats by their bits where the operator is min or max. */
#if defined(FLOATING)
#define KIND ORDER_FLOAT
#define KEY_LIMITS                                                                                 \
    ((key)INFINITE | (key)SIGN) /* the key of +infinity; its complement is -infinity's */
#elif defined(SIGNED_TYPE)
#define KIND ORDER_SIGNED
#else
#define KIND ORDER_UNSIGNED
#endif

ORDER_KEYS(key)

PURE key key_of(element e) {
    return key_of_bits((key)e, KEY_BITS, KIND);
}

#if defined(FLOATING) || defined(INDEXED)
/* Whether the greatest or the least key of some elements is a NaN's. */
PURE u32 is_beyond(key most, key least) {
#if defined(FLOATING)
    return most > KEY_LIMITS || least < (KEY_MASK ^ KEY_LIMITS);
#else
    return 0;
#endif
}
#endif

#if defined(INDEXED)

/* The better of two extremes, each with its index. */
PURE void merge_extreme(u64 *a, const u64 *b, u32 extreme, u32 at) {
    if (b[extreme] > a[extreme] || (b[extreme] == a[extreme] && b[at] > a[at])) {
        a[extreme] = b[extreme];
        a[at] = b[at];
    }
}

PURE void merge(u64 *a, const u64 *b) {
    merge_extreme(a, b, GREATEST, AT_GREATEST);
    merge_extreme(a, b, LEAST, AT_LEAST);
    a[AT_NAN] = b[AT_NAN] > a[AT_NAN] ? b[AT_NAN] : a[AT_NAN];
}

PURE void add_at(element e, u64 *record, u64 index) {
    const key k = key_of(e);
    const u32 nan = is_beyond(k, k);
    const u64 other[WORDS] = {nan ? 0 : k, nan ? 0 : KEY_MASK ^ k, nan ? 0 : ~index,
                              nan ? 0 : ~index, nan ? ~index : 0};
    merge(record, other);
}

#define SEARCHES_LATER (KEY_NARROW && BLOCK > 1)

/* A tile has many elements of 8 or 16 bits: these are searched one after another, in a copy for an index to pick
 * from, so that the tile itself stays in registers. */
#if KEY_NARROW
#define UNROLL_SEARCH UNROLL_NOT
#else
#define UNROLL_SEARCH
#endif

PURE tile copy_apart(const tile *t) {
#if KEY_NARROW
    tile apart;
    UNROLL
    for (u32 i = 0; i < TILE_WORDS; i++)
        apart.word[i] = anew(t->word[i]);
    return apart;
#else
    return *t;
#endif
}

/* The number of the tile's first element with this key, which it has. */
PURE u32 find_key(const tile *t, key wanted) {
    const tile apart = copy_apart(t);
    u32 i = 0;
    UNROLL_SEARCH
    while (i < TILE - 1 && key_of(apart.e[i]) != wanted)
        i++;
    return i;
}

/* The number of the tile's first NaN, which it has. */
PURE u32 find_nan(const tile *t) {
    const tile apart = copy_apart(t);
    u32 i = 0;
    UNROLL_SEARCH
    while (i < TILE - 1 && !is_beyond(key_of(apart.e[i]), key_of(apart.e[i])))
        i++;
    return i;
}

/* What is kept of an element of a tile that begins at `start`: its index, or, where that is searched for later, the start. */
#if SEARCHES_LATER
#define KEPT(start, found) (~(start))
#else
#define KEPT(start, found) (~((start) + INDEX_IN_TILE(found)))
#endif

/* A thread's tiles come in the order of their indices, so an equal key of a later tile changes nothing. */
__device__ void add_tile_at(const tile *t, u64 *record, u64 start) {
    key most = 0, least = KEY_MASK;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const key k = key_of(t->e[i]);
        most = k > most ? k : most;
        least = k < least ? k : least;
    }
    if (is_beyond(most, least)) {
        const u64 at = KEPT(start, find_nan(t));
        record[AT_NAN] = at > record[AT_NAN] ? at : record[AT_NAN];
        return;
    }
    if (most > record[GREATEST] || record[AT_GREATEST] == 0) {
        record[GREATEST] = most;
        record[AT_GREATEST] = KEPT(start, find_key(t, most));
    }
    if ((KEY_MASK ^ least) > record[LEAST] || record[AT_LEAST] == 0) {
        record[LEAST] = KEY_MASK ^ least;
        record[AT_LEAST] = KEPT(start, find_key(t, least));
    }
}

#if SEARCHES_LATER
#define SEARCHES_KEPT 1
/* From the kept start of a tile, or 0, to the kept index of its first element with the key, or of its first NaN; x[0] has
 * the index `first`. */
INLINED u64 found_in(const GLOBAL element *x, u64 first, u64 kept, key wanted, u32 of_nan) {
    tile t;
    if (kept == 0) return 0;
    load_tile(&t, (const GLOBAL uint4 *)(x + (~kept - first)));
    return ~(~kept + INDEX_IN_TILE(of_nan ? find_nan(&t) : find_key(&t, wanted)));
}

__device__ void find_kept(const GLOBAL element *x, u64 first, u64 *record) {
    record[AT_GREATEST] = found_in(x, first, record[AT_GREATEST], (key)record[GREATEST], 0);
    record[AT_LEAST] = found_in(x, first, record[AT_LEAST], KEY_MASK ^ (key)record[LEAST], 0);
    record[AT_NAN] = found_in(x, first, record[AT_NAN], 0, 1);
}
#endif

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    *status = n == 0 ? RESULT_NONE : RESULT_OK;
    if (n == 0) return 0;
    if (total[AT_NAN]) return ~total[AT_NAN];
    return request & REQUEST_LEAST ? ~total[AT_LEAST] : ~total[AT_GREATEST];
}

#else

PURE void merge(u64 *a, const u64 *b) {
    a[GREATEST] = b[GREATEST] > a[GREATEST] ? b[GREATEST] : a[GREATEST];
    a[LEAST] = b[LEAST] > a[LEAST] ? b[LEAST] : a[LEAST];
}

PURE void add_tile(const tile *t, u64 *record) {
    key most = 0, least = KEY_MASK;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const key k = key_of(t->e[i]);
        most = k > most ? k : most;
        least = k < least ? k : least;
    }
    const u64 other[WORDS] = {most, KEY_MASK ^ least};
    merge(record, other);
}

PURE u64 value_of(const u64 *total, u64 n, u32 request, u32 *status) {
    const key most = (key)total[GREATEST], least = KEY_MASK ^ (key)total[LEAST];
#if defined(FLOATING)
    const float_format f = requested_format(request);
    if (n == 0) return float_infinity_bits(f, !(request & REQUEST_LEAST));
    if (is_beyond(most, least)) return float_nan_bits(f);
#endif
    return bits_of_key(request & REQUEST_LEAST ? least : most, KEY_BITS, KIND);
}

#endif

#if WARP_AT_ONCE && !defined(INDEXED)
#define MERGES_AT_ONCE 1
/* Words of 64 bits by their high halves, and then by the low ones of those that have the highest. */
PURE u64 warp_most_key(u64 w) {
#if defined(TYPE_I64) || defined(TYPE_U64) || defined(TYPE_F64)
    const u32 high = warp_most((u32)(w >> 32));
    const u32 low = warp_most((u32)(w >> 32) == high ? (u32)w : 0);
    return (u64)high << 32 | low;
#else
    return warp_most((u32)w);
#endif
}

PURE void merge_at_once(u64 *record) {
    record[GREATEST] = warp_most_key(record[GREATEST]);
    record[LEAST] = warp_most_key(record[LEAST]);
}
#endif

#define PAD x[0] /* an element that is there: it changes nothing */
#include "fold.h"
