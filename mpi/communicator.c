/* communicator.c - see communicator.h. */
#include "communicator.h"

#include "duplicates.h"
#include "explain.h"
#include "merged.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- Kept with the communicator --------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error, attribute_key;

/* The thread's last look-up, which is valid if no communicator was freed since. One by MPI takes longer. */
static atomic_uint freed;
static _Thread_local struct {
    MPI_Comm comm;
    struct attribute *attribute;
    unsigned freed;
} last;

static int give_back(MPI_Comm comm, int key, void *value, void *extra) {
    struct attribute *m = value;
    (void)comm, (void)key, (void)extra;
    atomic_fetch_add(&freed, 1);
    duplicates_free(m->duplicates);
    if (m->typed_words) MPI_Type_free(&m->type);
    free(m);
    return MPI_SUCCESS;
}

static void make_key(void) {
    once_error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, give_back, &attribute_key, NULL);
}

static int make_attribute(MPI_Comm comm, struct attribute **out) {
    struct attribute *m = malloc(sizeof *m);
    if (!m) return MPI_ERR_NO_MEM;
    *m = (struct attribute){.layout = FIRST_LAYOUT};
    MPI_Comm_rank(comm, &m->rank);
    MPI_Comm_size(comm, &m->ranks);
    const int error = MPI_Comm_set_attr(comm, attribute_key, m);
    if (error == MPI_SUCCESS)
        *out = m;
    else
        free(m);
    return error;
}

/* Returns whether the thread's last call was on this communicator. */
static int is_last(MPI_Comm comm) {
    return last.attribute && last.comm == comm &&
           last.freed == atomic_load_explicit(&freed, memory_order_relaxed);
}

tally_status check_communicator(MPI_Comm comm) {
    int is_inter = 0;
    if (is_last(comm)) return TALLY_OK;
    if (comm == MPI_COMM_NULL) return explain(TALLY_EINVAL, "the communicator is MPI_COMM_NULL");
    if (MPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || !is_inter) return TALLY_OK;
    return explain(TALLY_EINVAL, "the communicator is of two groups: reduce over each of them, or "
                                 "over what MPI_Intercomm_merge() makes");
}

int attribute_of(MPI_Comm comm, struct attribute **out) {
    int found = 0;
    if (is_last(comm)) {
        *out = last.attribute;
        return MPI_SUCCESS;
    }
    const unsigned now = atomic_load_explicit(&freed, memory_order_relaxed);
    *out = NULL;
    pthread_once(&once, make_key);
    int error = once_error;
    if (error == MPI_SUCCESS) error = MPI_Comm_get_attr(comm, attribute_key, (void *)out, &found);
    if (error == MPI_SUCCESS && !found) error = make_attribute(comm, out);
    if (error != MPI_SUCCESS) return error;
    last.comm = comm;
    last.attribute = *out;
    last.freed = now;
    return MPI_SUCCESS;
}

int frame_datatype(struct attribute *m, MPI_Datatype *type, MPI_Op *op) {
    if (m->typed_words != m->layout.words) {
        if (m->typed_words) MPI_Type_free(&m->type);
        m->typed_words = 0;
        const int error = merged_mpi((size_t)m->layout.words, &m->type, &m->op);
        if (error != MPI_SUCCESS) return error;
        m->typed_words = m->layout.words;
    }
    *type = m->type;
    *op = m->op;
    return MPI_SUCCESS;
}

/* ---- Learnt ----------------------------------------------------------------------------------- */

static int greater(int a, int b) {
    return a > b ? a : b;
}

static int is_enough(struct frame_layout layout, struct need need) {
    return (layout.is_merged ? need.merged : need.added) <= layout.words;
}

/* Returns the shortest layout with room for what is needed; FIRST_LAYOUT if none has. */
static struct frame_layout layout_for(struct need need) {
    if (need.added <= FRAME_MOST) return (struct frame_layout){greater(need.added, FRAME_WORDS), 0};
    if (need.merged <= FRAME_MOST)
        return (struct frame_layout){greater(need.merged, FRAME_WORDS), 1};
    return FIRST_LAYOUT;
}

void learn_layout(struct attribute *m, struct need need) {
    enum { CALLS = 8 }; /* after so many calls in a row that needed less, a frame becomes shorter */
    if (need.added > FRAME_MOST && need.merged > FRAME_MOST)
        return; /* takes more messages anyway */
    m->most.added = greater(m->most.added, need.added);
    m->most.merged = greater(m->most.merged, need.merged);
    m->calls++;
    const int fits = is_enough(m->layout, need);
    if (fits && m->calls < CALLS) return;
    m->layout = layout_for(m->most);
    if (!is_enough(m->layout, need)) m->layout = layout_for(need);
    m->most = fits ? (struct need){0, 0} : need;
    m->calls = 0;
}
