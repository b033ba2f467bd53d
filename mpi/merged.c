/* merged.c - see merged.h. */
#include "merged.h"

#include <limits.h>
#include <pthread.h>

enum { ALSO = sizeof((tally_problem *)0)->also / sizeof(tally_op) };
_Static_assert(ALSO == 8 && (int)TALLY_USER < 256, "operators are bytes of a word");

/* ---- The problem, in words: all that its words and their merging depend on ------------------- */

static void save_problem(const tally_problem *p, int64_t *word) {
    uint64_t also = 0;
    for (int i = 0; i < ALSO; i++)
        also |= (uint64_t)p->also[i] << 8 * i;
    word[0] = (int64_t)((uint64_t)p->op | (uint64_t)p->type << 8 | (uint64_t)p->out << 16 |
                        (uint64_t)(p->is_complex != 0) << 24);
    word[1] = (int64_t)also;
}

static tally_problem load_problem(const int64_t *word) {
    tally_problem p = {.op = (tally_op)(word[0] & 255),
                       .type = (tally_type)(word[0] >> 8 & 255),
                       .out = (tally_type)(word[0] >> 16 & 255),
                       .is_complex = (int)(word[0] >> 24 & 1)};
    for (int i = 0; i < ALSO; i++)
        p.also[i] = (tally_op)((uint64_t)word[1] >> 8 * i & 255);
    return p;
}

/* ---- One frame -------------------------------------------------------------------------------- */

void merged_fill(int64_t *frame, const tally_problem *problem, size_t states, size_t merge_words,
                 uint64_t hash, tally_status status, int rank) {
    frame[MERGED_HASH] = (int64_t)hash;
    frame[MERGED_STATUS] = status;
    frame[MERGED_FAILED] = status != TALLY_OK;
    frame[MERGED_RANK] = status != TALLY_OK ? rank : 0;
    frame[MERGED_APART] = 0;
    frame[MERGED_PROBLEM] = frame[MERGED_PROBLEM + 1] = 0;
    if (problem) save_problem(problem, frame + MERGED_PROBLEM);
    frame[MERGED_STATES] = problem ? (int64_t)states : 0;
    frame[MERGED_WORDS] = (int64_t)merge_words;
}

struct verdict merged_read(const int64_t *frame) {
    struct verdict v = {.status = (tally_status)frame[MERGED_STATUS],
                        .failed = frame[MERGED_FAILED],
                        .rank = frame[MERGED_RANK]};
    const uint64_t apart = (uint64_t)frame[MERGED_APART];
    if (v.status == TALLY_OK && apart)
        v.status = apart & 1 ? TALLY_EINVAL : (tally_status)__builtin_ctzll(apart);
    return v;
}

/* Merges the frame of lower ranks, `left`, into `right`. */
static void merge(const int64_t *left, int64_t *right) {
    right[MERGED_APART] |= left[MERGED_APART] | (left[MERGED_HASH] != right[MERGED_HASH]);
    if (left[MERGED_FAILED] &&
        (!right[MERGED_FAILED] || left[MERGED_STATUS] < right[MERGED_STATUS]))
        right[MERGED_STATUS] = left[MERGED_STATUS];
    right[MERGED_FAILED] += left[MERGED_FAILED];
    right[MERGED_RANK] += left[MERGED_RANK];
    if (right[MERGED_FAILED] || right[MERGED_APART] || right[MERGED_STATES] == 0) return;
    const tally_problem p = load_problem(right + MERGED_PROBLEM);
    const int64_t merge_words = right[MERGED_WORDS];
    for (int64_t i = 0; i < right[MERGED_STATES]; i++) {
        const int64_t at = MERGED_HEAD + i * merge_words;
        const tally_status s = tally_merge_words(&p, left + at, right + at);
        if (s != TALLY_OK) right[MERGED_APART] |= INT64_C(1) << s;
    }
}

/* ---- MPI's operator, made once ---------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error;
static MPI_Op merge_op;

/* MPI's operator: combines `in`, of lower ranks, with `inout`, and puts the result into `inout`. */
static void merge_all(void *in, void *inout, int *length, MPI_Datatype *type) {
    int bytes = 0;
    MPI_Type_size(*type, &bytes);
    const size_t words = (size_t)bytes / sizeof(int64_t);
    for (int i = 0; i < *length; i++)
        merge((const int64_t *)in + (size_t)i * words, (int64_t *)inout + (size_t)i * words);
}

static int give_back(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    return MPI_Op_free(&merge_op);
}

static void tell_mpi(void) {
    int last;
    once_error = MPI_Op_create(merge_all, 0, &merge_op);
    if (once_error == MPI_SUCCESS)
        once_error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, give_back, &last, NULL);
    if (once_error != MPI_SUCCESS) return;
    once_error = MPI_Comm_set_attr(MPI_COMM_SELF, last, NULL);
    MPI_Comm_free_keyval(&last);
}

int merged_mpi(size_t words, MPI_Datatype *type, MPI_Op *op) {
    pthread_once(&once, tell_mpi);
    int error = once_error;
    *op = merge_op;
    *type = MPI_DATATYPE_NULL;
    if (words > INT_MAX / sizeof(int64_t)) return MPI_ERR_COUNT;
    if (error == MPI_SUCCESS) error = MPI_Type_contiguous((int)words, MPI_INT64_T, type);
    if (error == MPI_SUCCESS) error = MPI_Type_commit(type);
    return error;
}
