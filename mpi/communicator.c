/* communicator.c - see communicator.h. */
#include "communicator.h"

#include "lanes.h"
#include "merged.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- Kept with the communicator --------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error, memory_key;

/* What the thread's last call found, as long as no communicator has been freed: MPI's own look-up takes longer. */
static atomic_uint freed;
static _Thread_local struct {
    MPI_Comm comm;
    struct memory *memory;
    unsigned freed;
} last;

static int give_back(MPI_Comm comm, int key, void *value, void *extra) {
    struct memory *m = value;
    (void)comm, (void)key, (void)extra;
    atomic_fetch_add(&freed, 1);
    lanes_free(m->lanes);
    if (m->typed_words) MPI_Type_free(&m->type);
    free(m);
    return MPI_SUCCESS;
}

static void make_key(void) {
    once_error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, give_back, &memory_key, NULL);
}

static int make_memory(MPI_Comm comm, struct memory **out) {
    struct memory *m = malloc(sizeof *m);
    if (!m) return MPI_ERR_NO_MEM;
    *m = (struct memory){.form = FIRST_FORM};
    MPI_Comm_rank(comm, &m->rank);
    MPI_Comm_size(comm, &m->ranks);
    const int error = MPI_Comm_set_attr(comm, memory_key, m);
    if (error == MPI_SUCCESS)
        *out = m;
    else
        free(m);
    return error;
}

int memory_of(MPI_Comm comm, struct memory **out) {
    int found = 0;
    const unsigned now = atomic_load_explicit(&freed, memory_order_relaxed);
    if (last.memory && last.comm == comm && last.freed == now) {
        *out = last.memory;
        return MPI_SUCCESS;
    }
    *out = NULL;
    pthread_once(&once, make_key);
    int error = once_error;
    if (error == MPI_SUCCESS) error = MPI_Comm_get_attr(comm, memory_key, (void *)out, &found);
    if (error == MPI_SUCCESS && !found) error = make_memory(comm, out);
    if (error != MPI_SUCCESS) return error;
    last.comm = comm;
    last.memory = *out;
    last.freed = now;
    return MPI_SUCCESS;
}

int memory_type(struct memory *m, MPI_Datatype *type, MPI_Op *op) {
    if (m->typed_words != m->form.words) {
        if (m->typed_words) MPI_Type_free(&m->type);
        m->typed_words = 0;
        const int error = merged_mpi((size_t)m->form.words, &m->type, &m->op);
        if (error != MPI_SUCCESS) return error;
        m->typed_words = m->form.words;
    }
    *type = m->type;
    *op = m->op;
    return MPI_SUCCESS;
}

/* ---- Learnt ----------------------------------------------------------------------------------- */

static int greater(int a, int b) {
    return a > b ? a : b;
}

static int is_enough(struct form form, struct need need) {
    return (form.is_merged ? need.merged : need.added) <= form.words;
}

/* The form in which all that has been needed has room; the first one where there is none. */
static struct form form_for(struct need need) {
    if (need.added <= FRAME_MOST) return (struct form){greater(need.added, FRAME_WORDS), 0};
    if (need.merged <= FRAME_MOST) return (struct form){greater(need.merged, FRAME_WORDS), 1};
    return FIRST_FORM;
}

void memory_learn(struct memory *m, struct need need) {
    enum { CALLS = 8 }; /* so many in a row that would do with less make a frame shorter */
    if (need.added > FRAME_MOST && need.merged > FRAME_MOST)
        return; /* takes more messages anyway */
    m->most.added = greater(m->most.added, need.added);
    m->most.merged = greater(m->most.merged, need.merged);
    m->calls++;
    const int fits = is_enough(m->form, need);
    if (fits && m->calls < CALLS) return;
    m->form = form_for(m->most);
    if (!is_enough(m->form, need)) m->form = form_for(need);
    m->most = fits ? (struct need){0, 0} : need;
    m->calls = 0;
}
