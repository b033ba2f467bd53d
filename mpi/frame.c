/* frame.c - see frame.h. */
#include "frame.h"

uint64_t question_add(uint64_t hash, const void *bytes, size_t size) {
    const unsigned char *at = bytes;
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ at[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static void put_half(int64_t *word, uint32_t h) {
    const uint64_t square = (uint64_t)h * h;
    word[0] = h;
    word[1] = (int64_t)(square & 0xffffffff);
    word[2] = (int64_t)(square >> 32);
}

/* Whether all of the numbers that were added up are equal: by Cauchy and Schwarz, if their mean's square is the
 * mean of their squares. The sums are below 2^63 and the squares below 2^31 * 2^64. */
static int all_equal(const int64_t *word, int ranks) {
    const unsigned __int128 sum = (unsigned __int128)word[0];
    const unsigned __int128 squares =
        (unsigned __int128)word[1] + ((unsigned __int128)word[2] << 32);
    return sum * sum == squares * (unsigned)ranks;
}

void frame_fill(int64_t *frame, uint64_t hash, tally_status status, int rank) {
    for (int i = 0; i < FRAME_PAYLOAD; i++)
        frame[i] = 0;
    put_half(frame + FRAME_HASH, (uint32_t)hash);
    put_half(frame + FRAME_HASH + 3, (uint32_t)(hash >> 32));
    if (status == TALLY_OK) return;
    frame[FRAME_STATUS + (status - 1) / 2] = (int64_t)1 << 32 * ((status - 1) % 2);
    frame[FRAME_RANK] = rank;
}

struct verdict frame_read(const int64_t *frame, int ranks) {
    struct verdict v = {.rank = frame[FRAME_RANK]};
    for (int s = 2 * (FRAME_RANK - FRAME_STATUS); s > 0; s--) {
        const int64_t count = frame[FRAME_STATUS + (s - 1) / 2] >> 32 * ((s - 1) % 2) & 0xffffffff;
        v.failed += count;
        if (count > 0) v.status = (tally_status)s;
    }
    v.alike = all_equal(frame + FRAME_HASH, ranks) && all_equal(frame + FRAME_HASH + 3, ranks);
    if (v.status == TALLY_OK && !v.alike) v.status = TALLY_EINVAL;
    return v;
}
