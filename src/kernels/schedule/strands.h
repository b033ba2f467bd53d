/*
 * strands.h - the threads of a block that have the same columns merge their states through shared memory.
 *
 * Before including this header, include a state.
 */
#ifndef TALLY_SCHEDULE_STRANDS_H
#define TALLY_SCHEDULE_STRANDS_H

/* Columns of a unit that reduce_strands() merges between two barriers: several, if states are short. */
#define REDUCED_AT_ONCE(vector) (STATE_WORDS > 3 ? 1 : (vector))

/* Merges the states of all strands into those of strand 0, unit by unit. Thread t has the states of unit t % width and
 * strand t / width, if it `is_there`. In each step half of the remaining strands write theirs to `scratch`, and the other
 * half merges them. `scratch` has a state for each thread and column. All threads of the block call this. */
INLINED void reduce_strands(u32 width, u32 strands, u32 strand, u32 is_there, u32 vector, state *a,
                            SHARED u64 *scratch) {
    u32 kept;
    for (u32 left = strands; left > 1; left = kept) {
        kept = (left + 1) / 2;
        UNROLL
        for (u32 from = 0; from < vector; from += REDUCED_AT_ONCE(vector)) {
            __syncthreads();
            if (is_there && strand >= kept && strand < left) {
                UNROLL
                for (u32 v = 0; v < REDUCED_AT_ONCE(vector); v++)
                    UNROLL
                for (u32 k = 0; k < STATE_WORDS; k++)
                    scratch[(v * STATE_WORDS + k) * BLOCK + threadIdx.x] =
                        state_word(&a[from + v], k);
            }
            __syncthreads();
            if (is_there && strand + kept < left) {
                UNROLL
                for (u32 v = 0; v < REDUCED_AT_ONCE(vector); v++) {
                    u64 words[STATE_WORDS];
                    UNROLL
                    for (u32 k = 0; k < STATE_WORDS; k++)
                        words[k] =
                            scratch[(v * STATE_WORDS + k) * BLOCK + threadIdx.x + kept * width];
                    const state b = state_of_words(words);
                    a[from + v] = merge(a[from + v], b);
                }
            }
        }
    }
}

#endif
