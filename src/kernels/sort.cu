/*
 * sort - a stable radix sort of elements by their groups' ids.
 *
 * What is masked or of no group is left out. The sort carries along elements of one array or two, or only the
 * elements' numbers (sort.h).
 *
 * Each pass sorts by one digit of the ids, the lowest digit first, by three launches. Workers have equal shares of
 * the places before the pass, in their order. count: each worker counts its share's digits. scan: turns the counts of
 * each digit into the sums over all workers before, and a total. scatter: moves the elements. A worker's first
 * element with some digit goes behind all elements with a lower digit, and behind those with the same digit in the
 * shares of the workers before.
 *
 * Where blocks can hold barriers in loops, a worker is a block. It takes its share in tiles, sorts each in shared
 * memory, and writes it from there, so that neighbouring places are written together in each digit's stretch. A
 * warp's lanes find by votes which of them have equal digits, so that each lane knows its place among these. The
 * counts of each digit by each warp show how many keys come before the warp's.
 *
 * keys: before the first pass, writes the ids of elements as numbers of 32 bits, where they have fewer bits, or where
 * there is a mask. Other ids are read as they are.
 *
 * Elsewhere a worker is a thread, which moves its elements one after another.
 */
#define BLOCKS_A_UNIT SORT_BLOCKS_A_UNIT
#define OP_OR
#define TYPE_U64 /* the headers need an element type; the plan has the real one */
#include "tuning.h"

#include "operators.h"

#include "half.h"

#include "plan.h"

#include "kernel.h"

#include "result.h"

#define RECORD_SPACE SHARED
#include "lower.h"

#define HAS_VECTORS
#include "parts.h"

#include "sort.h"

#include "spots.h"

BEGINS_EARLY

/* The number of threads that a warp of the block has. */
#if BLOCK % WARP == 0
#define LANES(warp) WARP
#else
#define LANES(warp) (BLOCK - (warp)*WARP < WARP ? BLOCK - (warp)*WARP : WARP)
#endif
#define NO_KEY   (~0u) /* of elements that are left out; no group has it */
#define NO_PLACE (~0u) /* the place in a tile of what is left out */

/* Returns the number of places before a pass. */
__device__ u64 places(const GLOBAL u64 *work, const parts_plan *p, const sort_plan *s) {
    return s->pass == 0 ? p->n : work[PARTS_TOTAL];
}

/* Returns whether a mask hides element i of the axis in all vectors. */
__device__ u32 is_hidden(const GLOBAL u8 *mask, const parts_plan *p, u64 i) {
    u64 v = 0;
    do
        if (mask[element_spot(p, row_spot(p, v), i).mask]) return 0;
    while (++v < p->rows.vectors);
    return 1;
}

/* Returns the id of element i of the axis, or NO_KEY if it is of no group, or masked. With several vectors, a mask
 * only matters for an id that lies outside: it is no error if the mask hides element i in all vectors. */
__device__ u32 key_of_id(const GLOBAL u8 *ids, const GLOBAL u8 *mask, GLOBAL u64 *work,
                         const parts_plan *p, u64 i, u32 most) {
    const u64 id = id_of(ids, p, i);
    const u32 looks = p->masked && (p->rows.vectors <= 1 || id >= most);
    if (looks && is_hidden(mask, p, i)) return NO_KEY;
    if (id < most) return (u32)id;
    if (!p->skip_outside) note_least(&work[PARTS_BAD], i);
    return NO_KEY;
}

/* Writes the keys of all elements: the ids of those along the axis; or, if the sort compacts, 0 for each element of
 * the rows that the mask shows. */
KERNEL keys(const GLOBAL u8 *ids, const GLOBAL u8 *mask, const GLOBAL u8 *offsets, GLOBAL u64 *work,
            const parts_plan plan, const sort_plan sort) {
    wait_for_earlier();
    GLOBAL u32 *key = (GLOBAL u32 *)(work + sort.keys);
    u64 first = 0, end = plan.n;
    if (sort.compacts && plan.cut != PARTS_AXES) {
        const u32 is_bad = read_word(&work[PARTS_BAD]) != ~(u64)0;
        end = is_bad ? 0 : row_start(offsets, plan.rows, plan.rows.count);
        first = is_bad ? 0 : row_start(offsets, plan.rows, 0);
    }
    for (u64 j = (u64)blockIdx.x * BLOCK + threadIdx.x; j < plan.n; j += (u64)gridDim.x * BLOCK) {
        if (!sort.compacts)
            key[j] = key_of_id(ids, mask, work, &plan, j, sort.most);
        else if (j >= first && j < end && mask[numbered_spot(offsets, work, &plan, j).mask])
            key[j] = 0;
        else
            key[j] = NO_KEY;
    }
}

/* Returns the ids before a pass, of 64 bits where sort.wide_ids; those from sort.most on are of elements that are left
 * out. */
__device__ const GLOBAL u8 *keys_of(const GLOBAL u8 *ids, const GLOBAL u64 *work,
                                    const sort_plan *s) {
    return s->keys ? (const GLOBAL u8 *)(work + s->keys) : ids;
}

/* Returns the id at place j, or NO_KEY. */
__device__ u32 key_at(const GLOBAL u8 *keys, const sort_plan *s, u64 j) {
    const u64 key = s->wide_ids ? ((const GLOBAL u64 *)keys)[j] : ((const GLOBAL u32 *)keys)[j];
    return key < s->most ? (u32)key : NO_KEY;
}

PURE u32 digit_of(const sort_plan *s, u32 key) {
    return key >> s->shift & ((1u << s->bits) - 1);
}

/* Makes the elements behind the last one 0, up to the end of its pack of 16 bytes, since packs are
 * read as a whole. One thread calls this. */
__device__ void fill_last_pack(GLOBAL u64 *work, const sort_plan *s, u64 n) {
    for (u32 a = 0; a < s->arrays; a++)
        for (u64 i = n; i * s->width % 128 != 0; i++)
            store_bits((GLOBAL u8 *)(work + s->to[a]), s->width, (i64)i, 0);
}

#define ROW  16u /* threads whose sums one thread adds up */
#define ROWS ((BLOCK + ROW - 1) / ROW)

/* Returns the sum of the values of all threads before this one; *total becomes that of all threads.
 * `part` has ROW * ROWS + ROWS places. */
INLINED u64 sum_before(u64 own, SHARED u64 *part, u64 *total) {
    u64 before = 0;
    part[threadIdx.x] = own;
    __syncthreads();
    if (threadIdx.x < ROWS) {
        SHARED u64 *row = part + ROW * threadIdx.x;
        u64 one[ROW], sum = 0;
        UNROLL
        for (u32 t = 0; t < ROW; t++)
            one[t] = ROW * threadIdx.x + t < BLOCK ? row[t] : 0;
        UNROLL
        for (u32 t = 0; t < ROW; t++) {
            row[t] = sum;
            sum += one[t];
        }
        part[ROW * ROWS + threadIdx.x] = sum;
    }
    __syncthreads();
    *total = 0;
    UNROLL
    for (u32 r = 0; r < ROWS; r++) {
        const u64 one = part[ROW * ROWS + r];
        before += r < threadIdx.x / ROW ? one : 0;
        *total += one;
    }
    before += part[threadIdx.x];
    __syncthreads();
    return before;
}

/* Replaces a digit's counts, one for each worker, by the sums of the counts of the workers before, and writes their
 * total. A block takes a digit. */
KERNEL scan(GLOBAL u64 *work, u64 workers, const sort_plan plan) {
    __shared__ u64 part[ROW * ROWS + ROWS];
    wait_for_earlier();
    GLOBAL u64 *count = work + plan.counts + blockIdx.x * workers;
    const u64 each = (workers + BLOCK - 1) / BLOCK, first = threadIdx.x * each;
    const u64 end = first + each < workers ? first + each : workers;
    u64 own = 0, total;
    for (u64 i = first; i < end; i++)
        own += count[i];
    u64 before = sum_before(own, part, &total);
    if (threadIdx.x == 0) work[plan.totals + blockIdx.x] = total;
    for (u64 i = first; i < end; i++) {
        const u64 one = count[i];
        count[i] = before;
        before += one;
    }
}

#if CPU_SHAPED(BLOCK) || defined(__OPENCL_VERSION__)
#define SORTS_TILES 0
#else
#define SORTS_TILES 1
#endif

#if !SORTS_TILES

/* ---- A thread is a worker ----------------------------------------------------------------------------- */

/* Places [from, to): a worker's, of all that workers share evenly. */
typedef struct even_share {
    u64 worker, workers, from, to;
} even_share;

PURE even_share even_share_of(u64 n, u64 worker, u64 workers) {
    const u64 each = (n + workers - 1) / workers;
    even_share s = {worker, workers, worker * each, worker * each + each};
    if (s.to > n) s.to = n;
    if (s.from > s.to) s.from = s.to;
    return s;
}

KERNEL count(const GLOBAL u8 *ids, GLOBAL u64 *work, const parts_plan plan, const sort_plan sort) {
    wait_for_earlier();
    const even_share s = even_share_of(
        places(work, &plan, &sort), (u64)blockIdx.x * BLOCK + threadIdx.x, (u64)gridDim.x * BLOCK);
    GLOBAL u64 *count = work + sort.counts + s.worker;
    const GLOBAL u8 *keys = keys_of(ids, work, &sort);
    for (u32 d = 0; d < 1u << sort.bits; d++)
        count[d * s.workers] = 0;
    for (u64 j = s.from; j < s.to; j++) {
        const u32 key = key_at(keys, &sort, j);
        if (key != NO_KEY)
            count[digit_of(&sort, key) * s.workers]++;
        else if (!sort.keys && !plan.skip_outside)
            note_least(&work[PARTS_BAD], j);
    }
}

/* Returns the bits carried from place j of array a. */
__device__ u64 carried(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u64 *work,
                       const parts_plan *p, const sort_plan *s, u32 a, u64 j) {
    if (s->pass > 0) return load_bits((const GLOBAL u8 *)(work + s->from[a]), s->width, (i64)j);
    if (s->arrays == 0) return j;
    return a == 0 ? load_bits(x, s->width, p->x + (i64)j) : load_bits(y, s->width, p->y + (i64)j);
}

KERNEL scatter(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *ids, GLOBAL u64 *work,
               const parts_plan plan, const sort_plan sort) {
    wait_for_earlier();
    const even_share s = even_share_of(
        places(work, &plan, &sort), (u64)blockIdx.x * BLOCK + threadIdx.x, (u64)gridDim.x * BLOCK);
    GLOBAL u64 *next_place = work + sort.counts + s.worker;
    const GLOBAL u8 *keys = keys_of(ids, work, &sort);
    u64 before = 0;
    for (u32 d = 0; d < 1u << sort.bits; d++) {
        if (sort.starts && s.worker == 0 && d <= plan.rows.count) work[sort.starts + d] = before;
        next_place[d * s.workers] += before;
        before += work[sort.totals + d];
    }
    if (s.worker == 0) {
        for (u64 d = (u64)1 << sort.bits; sort.starts && d <= plan.rows.count; d++)
            work[sort.starts + d] = before;
        if (sort.pass == 0) work[PARTS_TOTAL] = before;
        fill_last_pack(work, &sort, before);
    }
    for (u64 j = s.from; j < s.to; j++) {
        const u32 key = key_at(keys, &sort, j);
        if (key == NO_KEY) continue;
        const u64 to = next_place[digit_of(&sort, key) * s.workers]++;
        if (sort.keys_to) ((GLOBAL u32 *)(work + sort.keys_to))[to] = key;
        for (u32 a = 0; a == 0 || a < sort.arrays; a++)
            store_bits((GLOBAL u8 *)(work + sort.to[a]), sort.width, (i64)to,
                       carried(x, y, work, &plan, &sort, a, j));
    }
}

#else

/* ---- A block is a worker ------------------------------------------------------------------------------ */

#define DIGITS (1u << SORT_TILE_BITS)
#define EACH   SORT_EACH(BLOCK)
#define TILE   (BLOCK * EACH)
#define WARPS  ((BLOCK + WARP - 1) / WARP)
#define OWN    ((DIGITS + BLOCK - 1) / BLOCK) /* digits of a thread */

/* Returns the number of tiles in a worker's share. The share of block b begins with tile b times that number. */
PURE u64 tiles_of(u64 n, u64 workers) {
    return ((n + TILE - 1) / TILE + workers - 1) / workers;
}

/* Returns how many of a tile's places from `first` on are below n. */
PURE u32 places_left(u64 n, u64 first) {
    return first >= n ? 0 : n - first < TILE ? (u32)(n - first) : TILE;
}

/* Loads the keys at places first, first + step, first + 2 * step, ... of a tile. A key is NO_KEY if its element is
 * left out, or its place is not below n. */
INLINED void load_keys(const GLOBAL u8 *keys, const sort_plan *s, u64 n, u64 first, u32 step,
                       u32 *key) {
    const u32 many = places_left(n, first);
    if (s->wide_ids) {
        const GLOBAL u64 *from = (const GLOBAL u64 *)keys + first;
        u64 id[EACH];
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            id[k] = k * step < many ? from[k * step] : NO_KEY;
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            key[k] = id[k] < s->most ? (u32)id[k] : NO_KEY;
    } else {
        const GLOBAL u32 *from = (const GLOBAL u32 *)keys + first;
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            key[k] = k * step < many ? from[k * step] : NO_KEY;
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            key[k] = key[k] < s->most ? key[k] : NO_KEY;
    }
}

KERNEL count(const GLOBAL u8 *ids, GLOBAL u64 *work, const parts_plan plan, const sort_plan sort) {
    __shared__ u32 tally[DIGITS];
    wait_for_earlier();
    const GLOBAL u8 *keys = keys_of(ids, work, &sort);
    const u32 checks = !sort.keys && !plan.skip_outside; /* no other kernel has checked the ids */
    const u64 n = places(work, &plan, &sort), tiles = tiles_of(n, gridDim.x);
    for (u32 d = threadIdx.x; d < 1u << sort.bits; d += BLOCK)
        tally[d] = 0;
    __syncthreads();
    for (u64 t = blockIdx.x * tiles; t < blockIdx.x * tiles + tiles && t * TILE < n; t++) {
        u32 key[EACH];
        u32 lacks = 0;
        load_keys(keys, &sort, n, t * TILE + threadIdx.x, BLOCK, key);
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            if (key[k] != NO_KEY)
                atomicAdd(&tally[digit_of(&sort, key[k])], 1u);
            else
                lacks = 1;
        if (lacks && checks)
            for (u64 j = t * TILE + threadIdx.x; j < n && j < (t + 1) * TILE; j += BLOCK)
                if (key_at(keys, &sort, j) == NO_KEY) note_least(&work[PARTS_BAD], j);
    }
    __syncthreads();
    for (u32 d = threadIdx.x; d < 1u << sort.bits; d += BLOCK)
        work[sort.counts + (u64)d * gridDim.x + blockIdx.x] = tally[d];
}

/* Counts the lanes of the warp that have a key (`is_there`) with this lane's digit: *before of those before this
 * lane, *all of all. A digit has `bits` bits. */
#if HAS_BALLOT && BLOCK % WARP == 0
#define SYNC_WARP() __syncwarp()
#define VOTES       1
INLINED void rank_in_warp(u32 digit, u32 is_there, u32 bits, SHARED u32 *votes, u32 *before,
                          u32 *all) {
    u32 peers = __ballot_sync(FULL_WARP, is_there);
    UNROLL
    for (u32 b = 0; b < SORT_TILE_BITS; b++) {
        if ((b == 5 || b == 7) && b >= bits) break; /* a test at every bit takes longer */
        const u32 has = digit >> b & 1, others = __ballot_sync(FULL_WARP, has);
        peers &= has ? others : ~others;
    }
    *before = (u32)__popc(peers & ((1u << threadIdx.x % WARP) - 1));
    *all = (u32)__popc(peers);
}
#else
#define SYNC_WARP() __syncthreads()
#define VOTES       BLOCK
INLINED void rank_in_warp(u32 digit, u32 is_there, u32 bits, SHARED u32 *votes, u32 *before,
                          u32 *all) {
    const u32 first = threadIdx.x / WARP * WARP;
    votes[threadIdx.x] = is_there ? digit : NO_KEY;
    __syncthreads();
    *before = *all = 0;
    for (u32 t = first; t < first + WARP && t < BLOCK; t++) {
        const u32 is_peer = votes[t] == digit;
        *all += is_peer;
        *before += is_peer && t < threadIdx.x;
    }
    __syncthreads();
    (void)bits;
}
#endif

/* Sets place[k] to where the share's first element with the thread's k-th digit goes. Block 0 also writes the number
 * of elements, and, if one pass sorts by whole ids (s->starts), where groups begin. */
INLINED void find_places(GLOBAL u64 *work, const parts_plan *p, const sort_plan *s, u64 *place,
                         SHARED u64 *part) {
    const u32 digits = 1u << s->bits;
    u64 own[OWN], sum = 0, total;
    UNROLL
    for (u32 k = 0; k < OWN; k++) {
        const u32 d = threadIdx.x * OWN + k;
        own[k] = d < digits ? work[s->totals + d] : 0;
        place[k] = d < digits ? work[s->counts + (u64)d * gridDim.x + blockIdx.x] : 0;
        sum += own[k];
    }
    u64 before = sum_before(sum, part, &total);
    UNROLL
    for (u32 k = 0; k < OWN; k++) {
        const u32 d = threadIdx.x * OWN + k;
        place[k] += before;
        if (s->starts && blockIdx.x == 0 && d < digits && d <= p->rows.count)
            work[s->starts + d] = before;
        before += own[k];
    }
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        if (s->starts && p->rows.count >= digits) work[s->starts + digits] = total;
        if (s->pass == 0) work[PARTS_TOTAL] = total;
        fill_last_pack(work, s, total);
    }
}

/* Sets at[k] to how many keys of the same digit come before the lane's k-th key in the warp's part of the tile.
 * counts[d] becomes the number of keys with digit d in that part. */
INLINED void rank_keys(const sort_plan *s, const u32 *key, u32 lanes, SHARED u16 *counts,
                       SHARED u32 *votes, u32 *at) {
    for (u32 d = threadIdx.x % WARP; d < 1u << s->bits; d += lanes)
        counts[d] = 0;
    SYNC_WARP();
    UNROLL
    for (u32 k = 0; k < EACH; k++) {
        const u32 d = digit_of(s, key[k]);
        u32 before, all;
        rank_in_warp(d, key[k] != NO_KEY, s->bits, votes, &before, &all);
        const u32 known = counts[d];
        at[k] = known + before;
        SYNC_WARP();
        if (before == 0 && key[k] != NO_KEY) counts[d] = (u16)(known + all);
        SYNC_WARP();
    }
}

/* Turns the warps' counts of each digit into the places in the tile where each warp's keys with that digit begin. A
 * key with digit d at place i of the tile then goes to after[d] + i. place[] becomes where the next tile's keys go.
 * Returns the number of all keys. */
INLINED u32 place_digits(SHARED u16 *counts, SHARED u64 *after, SHARED u64 *part, u32 digits,
                         u64 *place) {
    u32 own[OWN];
    u64 sum = 0, total;
    __syncthreads();
    UNROLL
    for (u32 k = 0; k < OWN; k++) {
        const u32 d = threadIdx.x * OWN + k;
        own[k] = 0;
        UNROLL
        for (u32 w = 0; w < WARPS; w++)
            own[k] += d < digits ? counts[w * DIGITS + d] : 0;
        sum += own[k];
    }
    u64 before = sum_before(sum, part, &total);
    UNROLL
    for (u32 k = 0; k < OWN; k++) {
        const u32 d = threadIdx.x * OWN + k;
        u32 next = (u32)before;
        if (d < digits) {
            UNROLL
            for (u32 w = 0; w < WARPS; w++) {
                const u32 one = counts[w * DIGITS + d];
                counts[w * DIGITS + d] = (u16)next;
                next += one;
            }
            after[d] = place[k] - before;
        }
        place[k] += own[k];
        before += own[k];
    }
    __syncthreads();
    return (u32)total;
}

/* Loads what array a carries, of `width` bits, for the lane's keys, which are at places first, first + step, ...
 * before the pass. low[] gets the lower 32 bits, high[] the upper 32 if `width` is 64. `index` is that of the
 * caller's first element. */
INLINED void load_carried(const GLOBAL u8 *x, const GLOBAL u64 *work, const sort_plan *s, u32 a,
                          u32 width, i64 index, u64 first, u32 step, const u32 *at, u32 *low,
                          u32 *high) {
    const u32 is_number = s->pass == 0 && s->arrays == 0;
    const GLOBAL u8 *from = s->pass == 0 ? x : (const GLOBAL u8 *)(work + s->from[a]);
    const i64 begin = (s->pass == 0 ? index : 0) + (i64)first;
    if (width == 64) UNROLL
    for (u32 k = 0; k < EACH; k++) {
        u64 v = first + k * step;
        if (at[k] != NO_PLACE && !is_number) v = ((const GLOBAL u64 *)from + begin)[k * step];
        low[k] = (u32)v;
        high[k] = (u32)(v >> 32);
    }
    else if (is_number) UNROLL for (u32 k = 0; k < EACH; k++) low[k] = (u32)first + k * step;
    else if (width == 32) UNROLL for (u32 k = 0; k < EACH; k++) low[k] =
        at[k] != NO_PLACE ? ((const GLOBAL u32 *)from + begin)[k * step] : 0;
    else UNROLL for (u32 k = 0; k < EACH; k++) low[k] =
        at[k] != NO_PLACE ? (u32)load_bits(from, width, begin + k * step) : 0;
}

/* Transposes a tile through shared memory: stores own[k] at the place at[k], and sets own[k] to the word at place
 * k * BLOCK + threadIdx.x, if that is below `many`. */
INLINED void exchange_words(SHARED u32 *space, const u32 *at, u32 many, u32 *own) {
    UNROLL
    for (u32 k = 0; k < EACH; k++)
        if (at[k] != NO_PLACE) space[at[k]] = own[k];
    __syncthreads();
    UNROLL
    for (u32 k = 0; k < EACH; k++)
        own[k] = k * BLOCK + threadIdx.x < many ? space[k * BLOCK + threadIdx.x] : 0;
    __syncthreads();
}

/* Stores own[k] of `type` at the destination of the tile's place k * BLOCK + threadIdx.x, whose key has digit[k]. This loop
 * does nothing else, so that compilers begin all its loads from shared memory before the first store. */
#define WRITE_WORDS(type, out, own)                                                                \
    UNROLL                                                                                         \
    for (u32 k = 0; k < EACH; k++) {                                                               \
        const u32 i = k * BLOCK + threadIdx.x;                                                     \
        if (i < many) ((GLOBAL type *)(out))[after[digit[k]] + i] = (own);                         \
    }

/* Writes what array a carries for `many` keys to the places after the pass; digit[k] as in WRITE_WORDS(). */
INLINED void write_carried(GLOBAL u64 *work, const sort_plan *s, u32 a, u32 width, const u32 *at,
                           u32 many, SHARED u32 *space, const SHARED u64 *after, const u32 *digit,
                           u32 *low, u32 *high) {
    GLOBAL u8 *out = (GLOBAL u8 *)(work + s->to[a]);
    exchange_words(space, at, many, low);
    if (width == 64) {
        exchange_words(space, at, many, high);
        WRITE_WORDS(u64, out, (u64)high[k] << 32 | low[k])
    } else if (width == 32)
        WRITE_WORDS(u32, out, low[k])
    else if (width == 16)
        WRITE_WORDS(u16, out, (u16)low[k])
    else
        WRITE_WORDS(u8, out, (u8)low[k])
}

/* Declares the shared memory of a block that scatters: a tile's words, the warps' counts of each digit, the distance of each
 * digit's keys to their destination, and room for scans and votes. */
#define SCATTER_SPACE                                                                              \
    __shared__ u32 space[TILE];                                                                    \
    __shared__ u16 counts[WARPS * DIGITS];                                                         \
    __shared__ u64 after[DIGITS], part[ROW * ROWS + ROWS];                                         \
    __shared__ u32 votes[VOTES];

/* Scatters the block's share: `arrays` arrays, or the numbers of elements, of `width` bits. */
INLINED void scatter_share(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *ids,
                           GLOBAL u64 *work, const parts_plan *p, const sort_plan *s, u32 arrays,
                           u32 width, SHARED u32 *space, SHARED u16 *counts, SHARED u64 *after,
                           SHARED u64 *part, SHARED u32 *votes) {
    const u64 n = places(work, p, s), tiles = tiles_of(n, gridDim.x);
    const u32 digits = 1u << s->bits, warp = threadIdx.x / WARP;
    const u32 lanes = LANES(warp);
    SHARED u16 *own_counts = counts + warp * DIGITS;
    const GLOBAL u8 *keys = keys_of(ids, work, s);
    u64 place[OWN];
    find_places(work, p, s, place, part);
    for (u64 t = blockIdx.x * tiles; t < blockIdx.x * tiles + tiles && t * TILE < n; t++) {
        const u64 from = t * TILE + warp * (WARP * EACH) + threadIdx.x % WARP;
        u32 key[EACH], at[EACH], digit[EACH], low[EACH], high[EACH];
        load_keys(keys, s, n, from, lanes, key);
        rank_keys(s, key, lanes, own_counts, votes, at);
        const u32 many = place_digits(counts, after, part, digits, place);
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            at[k] = key[k] == NO_KEY ? NO_PLACE : at[k] + own_counts[digit_of(s, key[k])];
        load_carried(x, work, s, 0, width, p->x, from, lanes, at, low, high);
        exchange_words(space, at, many, key);
        UNROLL
        for (u32 k = 0; k < EACH; k++)
            digit[k] = digit_of(s, key[k]);
        if (s->keys_to) WRITE_WORDS(u32, work + s->keys_to, key[k])
        write_carried(work, s, 0, width, at, many, space, after, digit, low, high);
        if (arrays > 1) {
            load_carried(y, work, s, 1, width, p->y, from, lanes, at, low, high);
            write_carried(work, s, 1, width, at, many, space, after, digit, low, high);
        }
    }
}

/* scatter_32 and scatter_64 carry one array of that width, or the elements' numbers. `scatter` has code for all widths: with
 * twice as many instructions a tile took twice as long. */
KERNEL scatter(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *ids, GLOBAL u64 *work,
               const parts_plan plan, const sort_plan sort) {
    SCATTER_SPACE
    wait_for_earlier();
    scatter_share(x, y, ids, work, &plan, &sort, sort.arrays, sort.width, space, counts, after,
                  part, votes);
}

KERNEL scatter_32(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *ids, GLOBAL u64 *work,
                  const parts_plan plan, const sort_plan sort) {
    SCATTER_SPACE
    wait_for_earlier();
    scatter_share(x, y, ids, work, &plan, &sort, 1, 32, space, counts, after, part, votes);
}

KERNEL scatter_64(const GLOBAL u8 *x, const GLOBAL u8 *y, const GLOBAL u8 *ids, GLOBAL u64 *work,
                  const parts_plan plan, const sort_plan sort) {
    SCATTER_SPACE
    wait_for_earlier();
    scatter_share(x, y, ids, work, &plan, &sort, 1, 64, space, counts, after, part, votes);
}

#endif
