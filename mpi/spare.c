/* spare.c - see spare.h. */
#include "spare.h"

#include "blocks.h"

#include <pthread.h>
#include <string.h>

static _Thread_local struct {
    tally_state *state, *kept; /* kept: the spare state, also while it is taken */
    tally_problem problem;
    size_t words, merge_words;
} spare;

/* ---- Given back when the thread ends --------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int has_key;

static void destroy(void *state) {
    tally_state_destroy(state);
}

static void make_key(void) {
    has_key = pthread_key_create(&key, destroy) == 0;
}

/* ---- Taken and given -------------------------------------------------------------------------- */

/* Keeps a state as the thread's spare one. (That of the main thread is never freed, but reachable until the
 * process ends.) */
static void keep(tally_state *state) {
    spare.state = spare.kept = state;
    pthread_setspecific(key, state);
}

static int same_problem(const tally_problem *a, const tally_problem *b) {
    return a->op == b->op && a->type == b->type && a->out == b->out && a->fast == b->fast &&
           a->ddof == b->ddof && !a->about && !b->about && !a->is_complex == !b->is_complex &&
           memcmp(a->also, b->also, sizeof a->also) == 0;
}

tally_status spare_take(const tally_problem *problem, tally_state **out, size_t *words,
                        size_t *merge_words) {
    if (spare.state && !problem->user && same_problem(problem, &spare.problem)) {
        *out = spare.state;
        *words = spare.words;
        *merge_words = spare.merge_words;
        spare.state = NULL; /* the key still has it, until another is kept */
        tally_state_clear(*out);
        return TALLY_OK;
    }
    const tally_status s = tally_state_create(problem, out);
    if (s != TALLY_OK) return s;
    *words = tally_state_words(*out);
    *merge_words = tally_state_merge_words(*out);
    return TALLY_OK;
}

void spare_give(const tally_problem *problem, tally_state *state) {
    if (!state) return;
    if (state == spare.kept && !spare.state) { /* the taken state comes back */
        spare.state = state;
        return;
    }
    pthread_once(&once, make_key);
    /* A user's operator is the caller's, and states over the tree are large. */
    if (!has_key || problem->user || has_tree(problem)) {
        tally_state_destroy(state);
        return;
    }
    tally_state_destroy(spare.state);
    spare.problem = *problem;
    spare.words = tally_state_words(state);
    spare.merge_words = tally_state_merge_words(state);
    keep(state);
}
