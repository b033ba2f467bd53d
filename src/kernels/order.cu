/*
 * order - the least and the greatest element at once; and, where INDEXED is defined, the lowest indices at which
 * they stand, and that of the first NaN.
 *
 * Elements become keys that sort like them (keys.h). The record holds the greatest key, and the greatest complement
 * of a key, so that the record of no elements is 0. Without indices a NaN is found by its key, which lies beyond
 * those of the infinities.
 *
 * Elements of 8 or 16 bits are compared as they come, several to a word (streams.h), and only a tile's extremes become
 * keys.
 *
 * An index is kept complemented, too, so that the lower of two is the greater word, and 0 is none. Within a tile only
 * keys are compared; the tile is searched for the index where it has a new extreme. A tile with a NaN gives the NaN's
 * index and no extremes, since extremes do not matter any more.
 *
 * A tile of elements of 8 or 16 bits has many of them, and a thread has only some tens of tiles. So nearly each tile
 * brings some lane of a warp a new extreme, and the other lanes would wait for its search. Instead the index of the
 * tile's start is kept. At the end the tiles with extremes are loaded again, and searched. Where a warp can merge its
 * lanes' records at once (AT_ONCE), it searches only the first of the tiles that have its extreme.
 */
#include "tuning.h"

#include "operators.h"

#include "keys.h"

#include "grid.h"

#include "result.h"

enum { GREATEST, LEAST, AT_GREATEST, AT_LEAST, AT_NAN };
#if defined(INDEXED)
#define INDEXED_WORDS 3
#else
#define INDEXED_WORDS 0
#endif
#define WORDS (2 + INDEXED_WORDS)

#if ELEMENT_WIDTH == 64
typedef u64 key;
#else
typedef u32 key;
#endif
#define KEY_NARROW (ELEMENT_WIDTH < 32)
#define KEY_BITS   ((u32)ELEMENT_WIDTH)
#define KEY_MASK   (~(key)0 >> (8 * sizeof(key) - KEY_BITS))

/* For min and max, operators.h defines floats as their bits. */
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

#if KEY_NARROW
#include "streams.h"

/* Finds the greatest and the least key of a tile. */
PURE void find_extremes(const tile *t, key *most, key *least) {
    const stream_ends e = ends_of(t);
    *most = key_of((element)greatest_bits(e));
    *least = key_of((element)least_bits(e));
}
#else
#if defined(TYPE_F64) && BLOCK > 1 &&                                                              \
    !defined(__OPENCL_VERSION__) /* OpenCL devices may have no doubles */
#define KEY_DOUBLES 1
#endif

PURE void find_keys(const tile *t, key *most, key *least) {
    *most = 0;
    *least = KEY_MASK;
    UNROLL
    for (u32 i = 0; i < TILE; i++) {
        const key k = key_of(t->e[i]);
        *most = k > *most ? k : *most;
        *least = k < *least ? k : *least;
    }
}

/* Finds a tile's greatest and least key. A GPU compares doubles as they are, in half the
 * instructions. These comparisons ignore NaNs and the signs of zeros. So a tile with a NaN, or with
 * a zero as an extreme, is compared by keys. */
PURE void find_extremes(const tile *t, key *most, key *least) {
#if defined(KEY_DOUBLES)
    u32 nan = 0;
    double greatest = double_from(t->e[0]), smallest = greatest;
    UNROLL
    for (u32 i = 0; i < TILE; i += 2) {
        const double a = double_from(t->e[i]), b = double_from(t->e[i + 1]);
        nan |= !(a <= b) && !(a > b);
    }
    UNROLL
    for (u32 i = 1; i < TILE; i++) {
        const double d = double_from(t->e[i]);
        greatest = d > greatest ? d : greatest;
        smallest = d < smallest ? d : smallest;
    }
    *most = key_of(double_bits(greatest));
    *least = key_of(double_bits(smallest));
    if (!nan && greatest != 0 && smallest != 0) return;
#endif
    find_keys(t, most, least);
}
#endif

/* AT_ONCE is 1 if a warp merges its lanes' records at once. Wide keys with indices would take too many registers. */
#define AT_ONCE (WARP_AT_ONCE && (KEY_NARROW || INDEXED_WORDS == 0))

#if AT_ONCE
/* Returns the greatest of a warp's 64-bit words: the greatest high half, and then the greatest low
 * half among the words that have it. */
PURE u64 warp_most_long(u64 w) {
    const u32 high = warp_most((u32)(w >> 32));
    const u32 low = warp_most((u32)(w >> 32) == high ? (u32)w : 0);
    return (u64)high << 32 | low;
}
#endif

#if defined(FLOATING) || defined(INDEXED)
/* Returns whether the greatest or the least key of some elements is a NaN's. */
PURE u32 is_beyond(key most, key least) {
#if defined(FLOATING)
    return most > KEY_LIMITS || least < (KEY_MASK ^ KEY_LIMITS);
#else
    return 0;
#endif
}
#endif

#if defined(INDEXED)

/* Replaces a's extreme and index by b's if b's extreme is greater, or the same at a lower index. */
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

/* Returns the number of the tile's first element of which `is_so` holds; there is one. Where tiles are searched at the
 * end, all threads of a warp may do that at once: they do it without branches. */
#if SEARCHES_LATER
#define FIRST_WHERE(is_so)                                                                         \
    u32 at = 0;                                                                                    \
    UNROLL                                                                                         \
    for (u32 i = TILE; i-- > 0;)                                                                   \
        at = is_so ? i : at;                                                                       \
    return at
#else
#define FIRST_WHERE(is_so)                                                                         \
    u32 i = 0;                                                                                     \
    UNROLL                                                                                         \
    while (i < TILE - 1 && !(is_so))                                                               \
        i++;                                                                                       \
    return i
#endif

#if SEARCHES_LATER
/* Returns the number of the tile's first element with the wanted key. In a word's difference from
 * the wanted word that element is 0. A subtraction of 1 from each element then borrows from its
 * highest bit. If a word has several such elements, the lowest one is found. */
PURE u32 find_key(const tile *t, key wanted) {
    const u32 ones = KEY_BITS == 8 ? 0x01010101u : 0x00010001u;
    const u32 pattern = (u32)bits_of_key(wanted, KEY_BITS, KIND) * ones;
    u32 at = 0, there = 1;
    UNROLL
    for (u32 i = TILE_WORDS; i-- > 0;) {
        const u32 other = t->word[i] ^ pattern;
        const u32 zero = (other - ones) & ~other & (ones << (KEY_BITS - 1));
        at = zero ? i : at;
        there = zero ? zero : there;
    }
    return at * (32 / KEY_BITS) + (31 - leading_zeros(there & (0 - there))) / KEY_BITS;
}
#else
PURE u32 find_key(const tile *t, key wanted) {
    FIRST_WHERE(key_of(t->e[i]) == wanted);
}
#endif

PURE u32 find_nan(const tile *t) {
    FIRST_WHERE(is_beyond(key_of(t->e[i]), key_of(t->e[i])));
}

/* The word that is kept for element number `found` of the tile that begins at `start`: the complement of its index,
 * or, where that is searched for later, of the start. */
#if SEARCHES_LATER
#define KEPT(start, found) (~(start))
#else
#define KEPT(start, found) (~((start) + INDEX_IN_TILE(found)))
#endif

/* Adds a tile that begins at the index `start`. A thread's tiles come in the order of their indices, so an equal key of
 * a later tile changes nothing. */
__device__ void add_tile_at(const tile *t, u64 *record, u64 start) {
    key most, least;
    find_extremes(t, &most, &least);
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
/* Loads the thread's part of the tile whose start is kept; x[0] has the index `first`. */
INLINED void load_kept(tile *t, const GLOBAL element *x, u64 first, u64 kept) {
    load_tile(t, (const GLOBAL uint4 *)(x + (~kept - first)));
}

/* Returns the kept index of element `number` of the tile whose start was kept. */
PURE u64 kept_index(u64 kept, u32 number) {
    return ~(~kept + INDEX_IN_TILE(number));
}

#if AT_ONCE
/* Drops a lane's extreme unless it is the warp's, and the lane's tile is the first with it.
 * Extremes are of 16 bits. */
INLINED void keep_first(u64 *record, u32 extreme, u32 at) {
    const u32 best = warp_most((u32)record[extreme]);
    const u64 first = warp_most_long(record[extreme] == best ? record[at] : 0);
    if (record[extreme] != best || record[at] != first) record[extreme] = record[at] = 0;
}
#endif

/* Turns kept starts of tiles into kept indices, before loose elements are added (fold.h). Where one extreme's
 * index is asked for, the other one's is not looked for. */
__device__ void find_kept(const GLOBAL element *x, u64 first, u32 request, u64 *record) {
    if (request && !(request & (REQUEST_LEAST | REQUEST_BOTH))) record[AT_LEAST] = 0;
    if (request & REQUEST_LEAST && !(request & REQUEST_BOTH)) record[AT_GREATEST] = 0;
#if AT_ONCE
    keep_first(record, GREATEST, AT_GREATEST);
    keep_first(record, LEAST, AT_LEAST);
    if (record[AT_NAN] != warp_most_long(record[AT_NAN])) record[AT_NAN] = 0;
#endif
    tile t;
    if (record[AT_GREATEST] != 0) {
        load_kept(&t, x, first, record[AT_GREATEST]);
        record[AT_GREATEST] = kept_index(record[AT_GREATEST], find_key(&t, (key)record[GREATEST]));
    }
    if (record[AT_LEAST] != 0) {
        load_kept(&t, x, first, record[AT_LEAST]);
        record[AT_LEAST] =
            kept_index(record[AT_LEAST], find_key(&t, KEY_MASK ^ (key)record[LEAST]));
    }
    if (record[AT_NAN] != 0) {
        load_kept(&t, x, first, record[AT_NAN]);
        record[AT_NAN] = kept_index(record[AT_NAN], find_nan(&t));
    }
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
    key most, least;
    find_extremes(t, &most, &least);
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

#if AT_ONCE
#define MERGES_AT_ONCE 1
PURE u64 warp_most_key(u64 w) {
    return sizeof(key) == 8 ? warp_most_long(w) : warp_most((u32)w);
}

PURE void merge_at_once(u64 *record) {
    const u64 greatest = warp_most_key(record[GREATEST]), least = warp_most_key(record[LEAST]);
#if defined(INDEXED)
    record[AT_GREATEST] = warp_most_long(record[GREATEST] == greatest ? record[AT_GREATEST] : 0);
    record[AT_LEAST] = warp_most_long(record[LEAST] == least ? record[AT_LEAST] : 0);
    record[AT_NAN] = warp_most_long(record[AT_NAN]);
#endif
    record[GREATEST] = greatest;
    record[LEAST] = least;
}
#endif

#define GIVES_BOTH
#define PAD x[0] /* an element of the array, which changes no extreme */
#include "fold.h"
