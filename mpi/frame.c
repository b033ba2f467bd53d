/* frame.c - see frame.h. */
#include "frame.h"

/* ---- Counts --------------------------------------------------------------------------------- */

static int bits_a_count(int ranks) {
    return 63 / counts_a_word(ranks);
}

/* The i-th count: adds this rank to it, or reads it. */
static void count_rank(int64_t *word, int i, int ranks) {
    const int each = counts_a_word(ranks);
    word[i / each] += (int64_t)1 << i % each * bits_a_count(ranks);
}

static int64_t read_count(const int64_t *word, int i, int ranks) {
    const int each = counts_a_word(ranks), bits = bits_a_count(ranks);
    return word[i / each] >> i % each * bits & (((int64_t)1 << bits) - 1);
}

/* ---- The hash ------------------------------------------------------------------------------- */

/* Returns whether all of the numbers that were added up are equal: by Cauchy and Schwarz, if their
 * mean's square is the mean of their squares. The sums are below 2^63 and the squares below 2^31 *
 * 2^64. */
static int all_equal(const int64_t *word, int ranks) {
    const unsigned __int128 sum = (unsigned __int128)word[0];
    const unsigned __int128 squares =
        (unsigned __int128)word[1] + ((unsigned __int128)word[2] << 32);
    return sum * sum == squares * (unsigned)ranks;
}

/* ---- The frame ------------------------------------------------------------------------------ */

void frame_fill(int64_t *frame, int payload, uint64_t hash, tally_status status, int is_wide,
                int rank, int ranks) {
    const uint64_t h = hash >> 32, square = h * h;
    frame[FRAME_HASH] = (int64_t)h;
    frame[FRAME_HASH + 1] = (int64_t)(square & 0xffffffff);
    frame[FRAME_HASH + 2] = (int64_t)(square >> 32);
    frame[FRAME_RANK] = status == TALLY_OK ? 0 : rank;
    for (int i = FRAME_COUNTS; i < payload; i++)
        frame[i] = 0;
    if (status != TALLY_OK) count_rank(frame + FRAME_COUNTS, (int)status - 1, ranks);
    if (is_wide) count_rank(frame + FRAME_COUNTS, WIDE - 1, ranks);
}

struct verdict frame_read(const int64_t *frame, int payload, int ranks) {
    struct verdict v = {.rank = frame[FRAME_RANK]};
    int64_t any = 0;
    for (int i = FRAME_COUNTS; i < payload; i++)
        any |= frame[i];
    if (any) {
        for (int s = STATUSES; s > 0; s--) {
            const int64_t count = read_count(frame + FRAME_COUNTS, s - 1, ranks);
            v.failed += count;
            if (count > 0) v.status = (tally_status)s;
        }
        v.wide = read_count(frame + FRAME_COUNTS, WIDE - 1, ranks);
    }
    if (v.status == TALLY_OK && !all_equal(frame + FRAME_HASH, ranks)) v.status = TALLY_EINVAL;
    return v;
}
