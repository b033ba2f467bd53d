/*
 * words - turns records of a problem's monoids into words for other ranks (words.h), and all ranks' words into
 * values.
 *
 * pack: writes a rank's words, with a block of threads for each sum, and one for all else.
 * settle: makes values of words that have been added up and gathered, with a block for each state. Its threads bring
 * the words into the form of records, in shared memory, and settle sums; one of them lowers.
 * allreduce: does both in one block; between them the ranks exchange their words by mailboxes (words.h).
 * allreduce_few: does the same for a few floats. They become a double-double first (pair.h). If the pairs of all
 * ranks determine the value, no words are exchanged.
 */
#define RECORD_SPACE SHARED
#define SETTLED
#include "lower.h"

#include "settle.h"

#include "words.h"

#include "mailbox.h"

#if !defined(__OPENCL_VERSION__)
#include "half.h"

#include "pair.h"
#endif

BEGINS_EARLY

/* Writes the four counts of a sum, of floats from `count`; of integers only the last can be 1, where there are
 * elements. */
__device__ void pack_counts(const GLOBAL u64 *count, u32 floats, u64 n, GLOBAL u64 *out) {
    for (u32 k = 0; k < 3; k++)
        out[k] = floats ? count[k] : 0;
    out[3] = (floats ? count[0] | count[1] | count[2] | count[3] : n) != 0;
}

/* Writes the gathered words of this rank. */
__device__ void pack_gathered(const GLOBAL u64 *work, const lower_plan *p, GLOBAL u64 *out) {
    for (u32 k = 0; k < WORDS_GATHERED; k++)
        out[k] = 0;
    out[WORDS_GATHERED_N] = p->n;
    if (p->at[PLAN_FACTORS] != PLAN_NONE)
        for (u32 k = 0; k < 2; k++)
            out[WORDS_GATHERED_FACTORS + k] = work[p->at[PLAN_FACTORS] + k];
    if (p->at[PLAN_EXTREMES] != PLAN_NONE)
        for (u32 k = 0; k < (p->indexed ? 5u : 2u); k++)
            out[WORDS_GATHERED_EXTREMES + k] = work[p->at[PLAN_EXTREMES] + k];
}

/* Packs the record of a monoid. Monoid k < SUMS writes the words of sum k, and makes its record 0 if
 * plan.clears. Monoid SUMS writes everything else: n, bits, the count of elements other than zero,
 * and the gathered words. It also makes failed[0] and failed[1] 0. All threads of a block call
 * this; digit[] and masks[] are the block's own. */
__device__ void pack_monoid(u32 mine, GLOBAL u64 *work, const words_plan *plan, GLOBAL u64 *added,
                            GLOBAL u64 *gathered, GLOBAL u64 *failed, SHARED u64 *digit,
                            SHARED u32 *masks) {
    const lower_plan *p = &plan->lower;
    const u32 floats = is_float(p->type);
    u32 at = 1, to = 0, limbs = 0, first = 0, known = 0; /* of this monoid's sum */
    for (u32 monoid = 0; monoid < SUMS && plan->added; monoid++) {
        if (p->at[monoid] == PLAN_NONE) continue;
        const u32 two = monoid == PLAN_SQUARES || monoid == PLAN_PRODUCTS;
        if (monoid == mine) {
            to = at;
            limbs = words_limbs(floats, two);
            known = limb_layout_of(p->type, monoid).limbs;
            first = words_first(floats, two, known);
        }
        at += WORDS_COUNTS + words_limbs(floats, two);
    }
    work += plan->from;
    GLOBAL u64 *record = work + (limbs ? p->at[mine] : 0);
    for (u32 i = threadIdx.x; i < MASKS; i += BLOCK)
        masks[i] = 0;
    __syncthreads();
    if (threadIdx.x == 0 && limbs) pack_counts(record + known, floats, p->n, added + to);
    settle_sum(record, first, known, limbs, digit, masks);
    for (u32 i = threadIdx.x; i < limbs; i += BLOCK)
        added[to + WORDS_COUNTS + i] = digit[i];
    for (u32 i = threadIdx.x; i < known && plan->clears; i += BLOCK)
        record[i] = 0;
    if (threadIdx.x == 0 && limbs && floats && plan->clears)
        for (u32 k = 0; k < WORDS_COUNTS; k++)
            record[known + k] = 0;
    if (mine != SUMS || threadIdx.x != 0) return;
    for (u32 k = 0; k < 2 && failed; k++)
        failed[k] = 0;
    if (plan->gathered) pack_gathered(work, p, gathered);
    if (!plan->added) return;
    added[0] = p->n;
    if (p->at[PLAN_BITS] != PLAN_NONE)
        for (u32 k = 0; k < plan->bits; k++)
            added[at++] = work[p->at[PLAN_BITS]] >> k & 1;
    if (p->at[PLAN_NONZERO] != PLAN_NONE) added[at] = work[p->at[PLAN_NONZERO]];
}

KERNEL pack(GLOBAL u64 *work, const words_plan plan, GLOBAL u64 *added, GLOBAL u64 *gathered,
            GLOBAL u64 *failed) {
    __shared__ u64 digit[WIDE_FLOAT_LIMBS];
    __shared__ u32 masks[MASKS];
    wait_for_earlier();
    pack_monoid(blockIdx.x, work, &plan, added, gathered, failed, digit, masks);
}

/* ---- From words to values ------------------------------------------------------------------- */

/* Merges into *key and *at another rank's extreme and the complement of its index, which counts from `shift`. */
__device__ void merge_end(SHARED u64 *key, SHARED u64 *at, u64 other, u64 other_at, u64 shift) {
    if (other_at != 0) other_at -= shift; /* a complement: the index rises by `shift` */
    if (other > *key || (other == *key && other_at > *at)) {
        *key = other;
        *at = other_at;
    }
}

/* Merges a rank's gathered words into the records in `work`; its elements stand behind `before`
 * others. */
__device__ void merge_gathered(const GLOBAL u64 *word, const lower_plan *p, u64 before,
                               SHARED u64 *work) {
    enum { NEGATIVE = 1, ZERO = 2, OVERFLOW = 4 }; /* integer_product.cu */
    if (p->at[PLAN_FACTORS] != PLAN_NONE) {
        SHARED u64 *known = work + p->at[PLAN_FACTORS];
        const GLOBAL u64 *more = word + WORDS_GATHERED_FACTORS;
        const u64 a = known[0] ^ 1, b = more[0] ^ 1;
        known[1] = (known[1] ^ (more[1] & NEGATIVE)) | (more[1] & (ZERO | OVERFLOW));
        if (high_product(a, b) != 0)
            known[1] |= OVERFLOW;
        else
            known[0] = (a * b) ^ 1;
    }
    if (p->at[PLAN_EXTREMES] != PLAN_NONE) {
        SHARED u64 *known = work + p->at[PLAN_EXTREMES];
        const GLOBAL u64 *more = word + WORDS_GATHERED_EXTREMES;
        if (!p->indexed) {
            for (u32 k = 0; k < 2; k++)
                if (more[k] > known[k]) known[k] = more[k];
            return;
        }
        merge_end(&known[0], &known[2], more[0], more[2], before);
        merge_end(&known[1], &known[3], more[1], more[3], before);
        if (more[4] != 0 && more[4] - before > known[4]) known[4] = more[4] - before;
    }
}

/* Merges all ranks' gathered words of a state into the records in `work`, in the order of ranks.
 * Returns the number of elements. */
__device__ u64 merge_all(const GLOBAL u64 *gathered, const words_plan *plan, u64 state,
                         SHARED u64 *work) {
    const lower_plan *p = &plan->lower;
    u64 n = 0;
    for (u32 k = 0; k < 2 && p->at[PLAN_FACTORS] != PLAN_NONE; k++)
        work[p->at[PLAN_FACTORS] + k] = 0;
    for (u32 k = 0; k < (p->indexed ? 5u : 2u) && p->at[PLAN_EXTREMES] != PLAN_NONE; k++)
        work[p->at[PLAN_EXTREMES] + k] = 0;
    for (u64 rank = 0; rank < plan->ranks; rank++) {
        const GLOBAL u64 *word = gathered + (rank * plan->count + state) * plan->gathered;
        merge_gathered(word, p, n, work);
        n += word[WORDS_GATHERED_N];
    }
    return n;
}

/* Returns the status that all ranks get where some have failed: that of one, if all failed alike. `failed`: FAILED_WORDS.
 * The mean of the squares is the square of the mean only if all statuses are equal. */
__device__ u32 failure_of(const GLOBAL i64 *failed) {
    if (!failed || failed[0] == 0) return RESULT_OK;
    const u64 ranks = (u64)failed[0], sum = (u32)failed[1], squares = (u64)failed[1] >> 32;
    return ranks * squares == sum * sum ? (u32)(sum / ranks) : RESULT_NONE;
}

/* Digits of all sums of a state. */
#define SETTLED_DIGITS (2 * FLOAT_LIMBS + 2 * WIDE_FLOAT_LIMBS)

/* Writes the results of a state from the words of all ranks. By all threads of a block; work[] (but
 * for the sums' limbs), digits[], masks[] and *numbers are its own. */
INLINED void settle_state(u64 state, const GLOBAL u64 *added, const GLOBAL u64 *gathered,
                          const GLOBAL i64 *failed, const words_plan *plan, GLOBAL u64 *results,
                          SHARED u64 *work, SHARED u64 *digits, SHARED u32 *masks,
                          lower_scratch *numbers) {
    const u32 type = plan->lower.type, floats = is_float(type);
    const GLOBAL u64 *word = added + state * plan->added;
    for (u32 i = threadIdx.x; i < SUMS * MASKS; i += BLOCK)
        masks[i] = 0;
    __syncthreads();
    u32 at = 1, known = 0;
    for (u32 monoid = 0; monoid < SUMS; monoid++) {
        const u32 there = plan->lower.at[monoid] != PLAN_NONE;
        const u32 two = monoid == PLAN_SQUARES || monoid == PLAN_PRODUCTS;
        const u32 limbs = there ? words_limbs(floats, two) : 0;
        const limb_layout s = limb_layout_of(type, monoid);
        if (UNIFORM(there)) {
            settle_sum(word + at + WORDS_COUNTS, 0, limbs, limbs, digits + known,
                       masks + monoid * MASKS);
            if (there && threadIdx.x == 0) {
                numbers->digit_ranges[monoid] = digit_range_of(
                    digits + known, limbs, s.lowest - 32 * (i32)words_first(floats, two, s.limbs),
                    masks + monoid * MASKS);
                for (u32 k = 0; k < WORDS_COUNTS && floats; k++)
                    work[plan->lower.at[monoid] + s.limbs + k] = word[at + k];
            }
            at += there ? WORDS_COUNTS + limbs : 0;
            known += limbs;
        }
    }
    if (threadIdx.x != 0) return;
    lower_plan p = plan->lower;
    if (p.at[PLAN_BITS] != PLAN_NONE) {
        u64 bits = 0;
        for (u32 k = 0; k < plan->bits; k++, at++)
            bits |= (u64)(plan->is_xor ? word[at] & 1 : word[at] != 0) << k;
        work[p.at[PLAN_BITS]] = bits;
    }
    if (p.at[PLAN_NONZERO] != PLAN_NONE) work[p.at[PLAN_NONZERO]] = word[at];
    p.n = plan->gathered ? merge_all(gathered, plan, state, work) : word[0];
    const u32 failure = failure_of(failed);
    for (u32 v = 0; v < p.values; v++) {
        const u32 out = p.value[v] >> 8;
        u32 status = failure;
        const u64 bits =
            failure ? 0 : lower_value(work, &p, p.value[v] & 255, out, &status, numbers);
        put_result(results + 2 * (state * p.values + v), out, bits, status);
    }
}

KERNEL settle(const GLOBAL u64 *added, const GLOBAL u64 *gathered, const GLOBAL i64 *failed,
              const words_plan plan, GLOBAL u64 *results) {
    __shared__ u64 work[WORDS_RECORDS];
    __shared__ u64 digits[SETTLED_DIGITS];
    __shared__ u32 masks[SUMS * MASKS];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    settle_state(blockIdx.x, added, gathered, failed, &plan, results, work, digits, masks,
                 &numbers);
}

/* ---- Ranks that write into each other's memory ---------------------------------------------- */

/* Writes this rank's message to all others, whose mailboxes are address[0..ranks). Then adds up all
 * ranks' additive words in `message`, and puts all ranks' other words in `gathered`. All threads of
 * a block call this, each for every BLOCK-th word. */
__device__ void exchange_words(const words_plan *p, GLOBAL u64 *message, GLOBAL u64 *gathered,
                               GLOBAL u64 *mailbox, const SHARED u64 *address, u64 turn,
                               SHARED u32 *lost) {
    const u32 added = FAILED_WORDS + p->added, all = added + p->gathered;
    const u64 flag = mailbox_flag(turn);
    u32 stopped = 0;
    for (u32 i = threadIdx.x; i < all; i += BLOCK) {
        GLOBAL u64 *own = i < added ? message + i : gathered + (i - added);
        u64 sum = own[i < added ? 0 : (u64)p->mine * p->gathered];
        for (u64 rank = 0; rank < p->ranks; rank++) {
            if (rank == p->mine) continue;
            GLOBAL u64 *theirs = (GLOBAL u64 *)(size_t)address[rank];
            send_word(mailbox_slot(theirs, p->ranks, turn, p->mine, i), flag, sum);
        }
        for (u64 rank = 0; rank < p->ranks; rank++) {
            if (rank == p->mine) continue;
            GLOBAL u64 *slot = mailbox_slot(mailbox, p->ranks, turn, rank, i);
            const u64 word = receive_word(slot, mailbox, flag, &stopped);
            if (i < added)
                sum += word;
            else
                own[rank * p->gathered] = word;
        }
        if (i < added) *own = sum;
    }
    if (stopped) atomicAdd(lost, 1u);
    __syncthreads();
    if (threadIdx.x != 0) return;
    mailbox[MAILBOX_TURN] = turn + 1;
    if (*lost) {
        message[0] = 1;
        message[1] = RESULT_LOST;
    }
}

#if !defined(__OPENCL_VERSION__)
/* ---- Pairs ----------------------------------------------------------------------------------
 *
 * Where the problem is a sum, mean or norm1 of floats alone, the ranks first send each other PAIR_WORDS words: s and
 * e of the pair that is the sum of the rank's elements; and a word with PAIR_... bits, from bit STATUS_SHIFT on the
 * status that the rank has failed with, and from bit COUNT_SHIFT on its number of elements. A rank with many elements
 * says that its pair is lost. All ranks conclude the same from all pairs: the value, or that words have to be
 * exchanged, in one more turn. */
#define PAIR_WORDS   3u
#define ALL_PAIRS    (PAIR_WORDS * MAILBOX_RANKS)
#define STATUS_SHIFT 8
#define COUNT_SHIFT  16

/* Sends this rank's words in pairs[] to all other ranks. All threads call this. */
__device__ void send_pair(const words_plan *p, const SHARED u64 *address, u64 turn,
                          const SHARED u64 *pairs) {
    for (u32 i = threadIdx.x; i < p->ranks * PAIR_WORDS; i += BLOCK) {
        GLOBAL u64 *theirs = (GLOBAL u64 *)(size_t)address[i / PAIR_WORDS];
        if (i / PAIR_WORDS != p->mine)
            send_word(mailbox_slot(theirs, p->ranks, turn, p->mine, i % PAIR_WORDS),
                      mailbox_flag(turn), pairs[p->mine * PAIR_WORDS + i % PAIR_WORDS]);
    }
}

/* Makes pairs[] the words of all ranks. All threads call this. */
__device__ void receive_pairs(const words_plan *p, GLOBAL u64 *mailbox, u64 turn, SHARED u64 *pairs,
                              SHARED u32 *lost) {
    for (u32 i = threadIdx.x; i < p->ranks * PAIR_WORDS; i += BLOCK) {
        u32 stopped = 0;
        if (i / PAIR_WORDS != p->mine)
            pairs[i] =
                receive_word(mailbox_slot(mailbox, p->ranks, turn, i / PAIR_WORDS, i % PAIR_WORDS),
                             mailbox, mailbox_flag(turn), &stopped);
        if (stopped) atomicAdd(lost, 1u);
    }
}

/* Writes the result, and returns 1, if the words of all ranks determine it. One thread calls
 * this. */
__device__ u32 settle_pairs(const words_plan *p, const SHARED u64 *pairs, u32 stopped,
                            GLOBAL u64 *results) {
    const u32 op = p->lower.value[0] & 255, type = p->lower.value[0] >> 8;
    u32 status = stopped ? RESULT_LOST : RESULT_OK, lost = 0;
    pair sum = {-0.0, 0, 0};
    u64 n = 0, bits = 0;
    for (u32 rank = 0; rank < p->ranks && !stopped; rank++) {
        const SHARED u64 *word = pairs + rank * PAIR_WORDS;
        const pair one = {double_from(word[0]), double_from(word[1]), (u32)word[2] & 255};
        const u32 failed = (u32)(word[2] >> STATUS_SHIFT) & 255;
        pair_merge(&sum, &one);
        n += word[2] >> COUNT_SHIFT;
        if (status == RESULT_OK) status = failed;
    }
    if (status == RESULT_OK) {
        if (sum.seen & PAIR_LOST) return 0;
        bits = pair_value(&sum, n, op == MEAN, type, &lost);
        if (lost) return 0;
    }
    put_result(results, type, bits, status);
    return 1;
}
#endif

/* Does a rank's work for one state whose records are there: packs its words (if plan.packs),
 * exchanges them, and settles. `message` has two words for failures, then the additive words, then
 * those gathered of all ranks. One block. */
KERNEL allreduce(GLOBAL u64 *work, const words_plan plan, GLOBAL u64 *message, GLOBAL u64 *mailbox,
                 GLOBAL u64 *results) {
    __shared__ u64 known[WORDS_RECORDS];
    __shared__ u64 digits[SETTLED_DIGITS];
    __shared__ u32 masks[SUMS * MASKS];
    __shared__ u64 address[MAILBOX_RANKS];
    __shared__ u32 lost[1];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    GLOBAL u64 *gathered = message + FAILED_WORDS + plan.added;
    u64 turn = mailbox[MAILBOX_TURN];
    for (u32 i = threadIdx.x; i < plan.ranks; i += BLOCK)
        address[i] = mailbox[MAILBOX_ADDRESSES + i];
    if (threadIdx.x == 0) lost[0] = 0;
#if !defined(__OPENCL_VERSION__)
    __shared__ u64 pairs[ALL_PAIRS];
    __shared__ u32 settled[1];
    if (plan.tries) {
        if (threadIdx.x == 0) {
            SHARED u64 *own = pairs + plan.mine * PAIR_WORDS;
            own[0] = own[1] = 0;
            own[2] = plan.lower.n << COUNT_SHIFT | (plan.packs ? 0 : message[1]) << STATUS_SHIFT |
                     PAIR_LOST;
        }
        __syncthreads();
        send_pair(&plan, address, turn, pairs);
    }
#endif
    for (u32 monoid = 0; monoid <= SUMS; monoid++)
        if (UNIFORM(plan.packs && (monoid == SUMS || plan.lower.at[monoid] != PLAN_NONE)))
            pack_monoid(plan.packs ? monoid : SUMS + 1, work, &plan, message + FAILED_WORDS,
                        gathered + (u64)plan.mine * plan.gathered, message, digits, masks);
    __syncthreads();
#if !defined(__OPENCL_VERSION__)
    if (plan.tries) {
        receive_pairs(&plan, mailbox, turn, pairs, lost);
        __syncthreads();
        if (threadIdx.x == 0) {
            settled[0] = settle_pairs(&plan, pairs, lost[0], results);
            if (settled[0]) mailbox[MAILBOX_TURN] = turn + 1;
        }
        __syncthreads();
        if (settled[0]) return;
        turn++;
    }
#endif
    exchange_words(&plan, message, gathered, mailbox, address, turn, lost);
    __syncthreads();
    settle_state(0, message + FAILED_WORDS, gathered, (const GLOBAL i64 *)message, &plan, results,
                 known, digits, masks, &numbers);
}

#if !defined(__OPENCL_VERSION__)
/* ---- A few floats --------------------------------------------------------------------------- */

#define FEW_AT_ONCE 4
#define WARPS_HERE  (BLOCK < WARP ? 1 : BLOCK / WARP)

/* Returns element i as a double. */
__device__ double double_at(const GLOBAL u8 *x, u32 type, u64 i) {
    if (type == F64) return ((const GLOBAL double *)x)[i];
    if (type == F32) return (double)((const GLOBAL float *)x)[i];
    const u32 bits = ((const GLOBAL u16 *)x)[i];
    return (double)float_from(type == BF16 ? bits << 16 : half_bits_widened(bits));
}

/* Returns element i as a term of the monoid. */
__device__ double term_at(const GLOBAL u8 *x, const words_plan *p, u64 i) {
    const double e = double_at(x, p->lower.type, i);
    return p->monoid == PLAN_MAGNITUDES ? double_from(double_bits(e) & ~((u64)1 << 63)) : e;
}

/* Adds up the pairs of lanes l ... l + 2 * apart - 1 of each warp into lane l's. */
__device__ void merge_pairs(pair *a, u32 apart, SHARED u64 *exchange) {
    (void)exchange;
    for (; apart > 0; apart /= 2) {
        pair other;
        other.s = double_from(__shfl_down_sync(FULL_WARP, double_bits(a->s), apart));
        other.e = double_from(__shfl_down_sync(FULL_WARP, double_bits(a->e), apart));
        other.seen = (u32)__shfl_down_sync(FULL_WARP, (u64)a->seen, apart);
        pair_merge(a, &other);
    }
}

/* Returns the pair of all elements in thread 0; `rows` has PAIR_WORDS words a warp. */
__device__ pair pair_of_few(const GLOBAL u8 *x, const words_plan *p, SHARED u64 *rows,
                            SHARED u64 *exchange) {
    const u64 n = p->lower.n;
    const u32 lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    pair sum = {-0.0, 0, 0};
    for (u64 first = threadIdx.x; first < n; first += FEW_AT_ONCE * BLOCK) {
        double term[FEW_AT_ONCE];
        UNROLL
        for (u32 k = 0; k < FEW_AT_ONCE; k++)
            term[k] = first + k * BLOCK < n ? term_at(x, p, first + k * BLOCK) : -0.0;
        UNROLL
        for (u32 k = 0; k < FEW_AT_ONCE; k++) {
            if (double_bits(term[k]) != (u64)1 << 63) sum.seen |= PAIR_MIXED;
            pair_add_any(&sum, term[k]);
        }
    }
    merge_pairs(&sum, (BLOCK < WARP ? BLOCK : WARP) / 2, exchange);
    if (lane == 0) {
        rows[warp * PAIR_WORDS] = double_bits(sum.s);
        rows[warp * PAIR_WORDS + 1] = double_bits(sum.e);
        rows[warp * PAIR_WORDS + 2] = sum.seen;
    }
    __syncthreads();
    if (warp == 0) {
        const u32 row = lane < WARPS_HERE ? lane : 0;
        const pair none = {-0.0, 0, 0},
                   one = {double_from(rows[row * PAIR_WORDS]),
                          double_from(rows[row * PAIR_WORDS + 1]), (u32)rows[row * PAIR_WORDS + 2]};
        sum = lane < WARPS_HERE ? one : none;
        merge_pairs(&sum, WARPS_HERE / 2, exchange);
    }
    return sum;
}

/* Adds a term to limbs; limb 0 weighs 2^-1088, and the counts behind them are as in a record. A
 * limb gets less than 2^33 from each of FEW_ELEMENTS terms. */
__device__ void add_to_limbs(SHARED u64 *limbs, double x) {
    const u64 bits = double_bits(x), sign = bits >> 63, fraction = bits & (((u64)1 << 52) - 1);
    const i32 field = exponent_field(x);
    if (field == NOT_FINITE) {
        atomicAdd(&limbs[FLOAT_LIMBS + (fraction ? 0 : 1 + sign)], (u64)1);
        return;
    }
    const u64 m = fraction | (u64)(field != 0) << 52;
    const u32 offset = (u32)((field ? field : 1) - 1075 + 1088), shift = offset % 32;
    const u64 low = (m & 0xffffffffu) << shift, high = (m >> 32) << shift;
    const u64 digit[3] = {low & 0xffffffffu, (low >> 32) + (high & 0xffffffffu), high >> 32};
    UNROLL
    for (u32 k = 0; k < 3; k++)
        if (digit[k]) atomicAdd(&limbs[offset / 32 + k], sign ? 0 - digit[k] : digit[k]);
    if (bits != (u64)1 << 63) atomicOr(&limbs[FLOAT_LIMBS + 3], (u64)1);
}

/* Does a rank's work for the sum of up to FEW_ELEMENTS elements in one launch. One block. */
KERNEL allreduce_few(const GLOBAL u8 *x, GLOBAL u64 *work, const words_plan plan,
                     GLOBAL u64 *message, GLOBAL u64 *mailbox, GLOBAL u64 *results) {
    __shared__ u64 known[WORDS_RECORDS];
    __shared__ u64 digits[SETTLED_DIGITS];
    __shared__ u32 masks[SUMS * MASKS];
    __shared__ u64 address[MAILBOX_RANKS];
    __shared__ u64 rows[PAIR_WORDS * WARPS_HERE];
    __shared__ u64 pairs[ALL_PAIRS];
    __shared__ u64 limbs[FLOAT_LIMBS + FLOAT_COUNTS];
    __shared__ u64 exchange[EXCHANGE];
    __shared__ u32 lost[1];
    __shared__ u32 settled[1];
    SHARED_LOWER_SCRATCH numbers;
    wait_for_earlier();
    GLOBAL u64 *gathered = message + FAILED_WORDS + plan.added;
    const u64 turn = mailbox[MAILBOX_TURN];
    for (u32 i = threadIdx.x; i < plan.ranks; i += BLOCK)
        address[i] = mailbox[MAILBOX_ADDRESSES + i];
    if (threadIdx.x == 0) lost[0] = 0;
    const pair own = pair_of_few(x, &plan, rows, exchange);
    if (threadIdx.x == 0) {
        SHARED u64 *word = pairs + plan.mine * PAIR_WORDS;
        word[0] = double_bits(own.s);
        word[1] = double_bits(own.e);
        word[2] = plan.lower.n << COUNT_SHIFT | own.seen;
    }
    __syncthreads();
    send_pair(&plan, address, turn, pairs);
    receive_pairs(&plan, mailbox, turn, pairs, lost);
    __syncthreads();
    if (threadIdx.x == 0) {
        settled[0] = settle_pairs(&plan, pairs, lost[0], results);
        if (settled[0]) mailbox[MAILBOX_TURN] = turn + 1;
    }
    __syncthreads();
    if (settled[0]) return;
    for (u32 i = threadIdx.x; i < FLOAT_LIMBS + FLOAT_COUNTS; i += BLOCK)
        limbs[i] = 0;
    __syncthreads();
    for (u64 i = threadIdx.x; i < plan.lower.n; i += BLOCK)
        add_to_limbs(limbs, term_at(x, &plan, i));
    __syncthreads();
    for (u32 i = threadIdx.x; i < FLOAT_LIMBS + FLOAT_COUNTS; i += BLOCK)
        work[plan.lower.at[plan.monoid] + i] = limbs[i];
    __syncthreads();
    for (u32 monoid = 0; monoid <= SUMS; monoid++)
        if (monoid == SUMS || monoid == plan.monoid)
            pack_monoid(monoid, work, &plan, message + FAILED_WORDS,
                        gathered + (u64)plan.mine * plan.gathered, message, digits, masks);
    __syncthreads();
    exchange_words(&plan, message, gathered, mailbox, address, turn + 1, lost);
    __syncthreads();
    settle_state(0, message + FAILED_WORDS, gathered, (const GLOBAL i64 *)message, &plan, results,
                 known, digits, masks, &numbers);
}
#endif
