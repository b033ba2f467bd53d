/* own_wraps.c - see own_wraps.h. */
#include "teach/own_wraps.h"

#include <inttypes.h>
#include <stdio.h>

/* Runs some blocks of a launch for about `about` elements. In a grid that walks the array, a round has about `threads`
 * elements. The last round has half a segment, so that it is block 0's, however the kernel divides the elements that
 * are left over. */
static bool try_far_length(const struct own_judgement *j, uint64_t about, uint64_t threads,
                           struct own_run *run) {
    const struct own_host *h = &j->host;
    const uint64_t s = h->segment, grid = threads / s;
    const uint64_t round = h->form == OWN_WHOLE_GRID ? grid * s : s;
    return round &&
           own_host_far(j->session, h, about / round * round + s / 2 + 1, (unsigned)grid, run);
}

/* Returns a length near to the most that the type of n holds: below 2^31 if n is an int, else below 2^32, where an int
 * index wraps. It is far enough below that for a few rounds of the grid more not to wrap. */
static uint64_t far_length(const tally_own_kernel *k) {
    const uint64_t one = 1;
    return k->length_type == TALLY_I32 ? (one << 30) + (one << 28) : (one << 31) + (one << 29);
}
#define BEYOND_32_BITS ((UINT64_C(1) << 32) + (UINT64_C(1) << 29))

/* Tells what a run for such a length has found: as a finding or, beyond 32 bits, as a note. */
static void tell_far(struct own_judgement *j, const struct own_run *run, bool is_note) {
    char values[160];
    own_say_values(run, values);
    const char *what = *run->result.sentence ? run->result.sentence : values;
    if (!is_note)
        own_find(j, "overflow", "with n = %" PRIu64 " an index does not hold its value: %s", run->n,
                 what);
    else if (!*j->note)
        snprintf(j->note, sizeof j->note,
                 "beyond 2^32 elements an index of 32 bits wraps: with n = %" PRIu64 ", %.300s",
                 run->n, what);
}

/* Runs some blocks of a launch for such a length, each on its own part of the array. Returns false if these parts are
 * not known: the same blocks must be right for a short array first. */
static bool try_windows(struct own_judgement *j, uint64_t about) {
    const uint64_t short_grid = 40, segment = j->host.segment, threads = UINT64_C(1) << 26;
    struct own_run run;
    if (j->host.form == OWN_ONE_BLOCK || j->host.combines || !segment ||
        !try_far_length(j, 3 * short_grid * segment, short_grid * segment, &run) ||
        !own_is_good(&run) || !try_far_length(j, about, threads, &run))
        return false;
    j->far = run.n;
    if (!own_is_good(&run))
        tell_far(j, &run, false);
    else if (tally_type_size(j->session->kernel->is.length_type) == 8 &&
             try_far_length(j, BEYOND_32_BITS, threads, &run) && !own_is_good(&run))
        tell_far(j, &run, true);
    return true;
}

/* Tries such a length with one block whose stride is a number of the text, the threads of that block. All rounds would
 * take too long: the lanes begin a few rounds before the end, or before an int wraps. */
static void try_last_rounds(struct own_judgement *j, uint64_t about) {
    enum { ROUNDS = 8, EARLIER = 64 };
    const unsigned block = j->host.block;
    const uint64_t round = block, wraps = UINT64_C(1) << 31;
    const uint64_t far = about > wraps ? wraps + ROUNDS / 2 * round : about / round * round;
    struct own_run run;
    if (!own_host_shares(j->session, (EARLIER + ROUNDS) * round, 1, block, EARLIER * block, &run) ||
        !run.is_right || wraps % round ||
        !own_host_shares(j->session, far, 1, block, (unsigned)(far - ROUNDS * round), &run))
        return;
    j->far = run.n;
    if (!run.is_right) tell_far(j, &run, false);
}

/* Tries such a length with one block, or with blocks that divide the array otherwise than by segments. One warp of a
 * few blocks runs. The blocks are so many, or are told of so many threads, that each thread has few rounds. First the
 * lanes must read their share of a short array, or nothing is known. */
static void try_shares(struct own_judgement *j, uint64_t about) {
    enum { THREADS = 1 << 21, ROUNDS = 8, SHORT_GRID = 16 };
    const struct own_session *s = j->session;
    const bool is_one = j->host.form == OWN_ONE_BLOCK;
    const unsigned asked = (unsigned)s->options->grid, block = j->host.block;
    const unsigned grid = is_one ? 1 : asked ? asked : THREADS / block;
    const unsigned short_grid = is_one || asked ? grid : SHORT_GRID;
    unsigned told = is_one || asked ? THREADS : block;
    while (told > block && (uint64_t)told * grid > THREADS)
        told /= 2;
    const uint64_t round = (uint64_t)ROUNDS * grid * told;
    struct own_run run;
    if (s->options->width || (is_one && j->host.per_thread)) return;
    if (!own_host_shares(s, (uint64_t)ROUNDS * short_grid * told, short_grid, told, 0, &run) ||
        !run.is_right) {
        if (is_one) try_last_rounds(j, about);
        return;
    }
    if (!own_host_shares(s, about / round * round, grid, told, 0, &run)) return;
    j->far = run.n;
    if (!run.is_right)
        tell_far(j, &run, false);
    else if (tally_type_size(s->kernel->is.length_type) == 8 &&
             own_host_shares(s, BEYOND_32_BITS / round * round, grid, told, 0, &run) &&
             !run.is_right)
        tell_far(j, &run, true);
}

/* Has a warp walk for more rounds than the lengths that memory holds give it: a kernel whose loop counts to a number of the
 * text leaves elements out. Returns false if it does. */
static bool try_rounds(struct own_judgement *j) {
    enum { ROUNDS = 8192, FEW = 8 };
    const struct own_session *s = j->session;
    const unsigned block = j->host.block, grid = s->options->grid && j->host.form != OWN_ONE_BLOCK
                                                     ? (unsigned)s->options->grid
                                                     : 1;
    const uint64_t round = (uint64_t)grid * block;
    struct own_run run;
    if (s->options->width || j->host.form == OWN_SEGMENTS || j->host.per_thread ||
        ROUNDS * round > UINT64_C(1) << 29 ||
        !own_host_shares(s, FEW * round, grid, block, 0, &run) || !run.is_right ||
        !own_host_shares(s, ROUNDS * round, grid, block, 0, &run))
        return true;
    if (run.is_right) return j->rounds = ROUNDS, true;
    own_find(j, "lengths", "with n = %" PRIu64 " by %u block%s, %s", run.n, grid,
             grid == 1 ? "" : "s", run.result.sentence);
    return false;
}

void own_judge_far(struct own_judgement *j, const struct own_pattern *p) {
    const tally_own_kernel *k = &j->session->kernel->is;
    if (!k->length || tally_type_size(k->length_type) < 4 || p->is != RIGHT_ANY) return;
    const uint64_t about = far_length(k);
    if (try_rounds(j) && !try_windows(j, about)) try_shares(j, about);
}
