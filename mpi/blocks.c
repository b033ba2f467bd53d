/* blocks.c - see blocks.h. */
#include "blocks.h"

#include <limits.h>
#include <pthread.h>
#include <string.h>

uint64_t saved_word(const unsigned char *bytes, size_t at) {
    uint64_t word = 0;
    for (int i = 7; i >= 0; i--)
        word = word << 8 | bytes[at + (size_t)i];
    return word;
}

static int is_float(tally_type type) {
    return type == TALLY_F16 || type == TALLY_BF16 || type == TALLY_F32 || type == TALLY_F64;
}

int has_tree(const tally_problem *problem) {
    const size_t also = sizeof problem->also / sizeof problem->also[0];
    int found = problem->op == TALLY_USER || (problem->op == TALLY_PROD && is_float(problem->type));
    for (size_t i = 0; i < also && problem->also[i]; i++)
        found |= problem->also[i] == TALLY_USER ||
                 (problem->also[i] == TALLY_PROD && is_float(problem->type));
    return found;
}

/* Over the tree a state has at most 128 nodes, and the elements before its first whole leaf and behind its last
 * one. */
size_t block_room(const tally_problem *problem, const tally_state *none) {
    enum { NODES = 128, LEAF = 4096 };
    size_t room = tally_state_size(none);
    if (has_tree(problem)) room += 8 * NODES + 2 * LEAF * tally_type_size(problem->type);
    return (room + 7) / 8 * 8;
}

static void settle(struct block *block, size_t size, tally_status status) {
    block->size = (int64_t)size;
    block->status = status;
}

void block_save(struct block *block, const struct block_kind *kind, const tally_state *state) {
    settle(block, tally_state_size(state), tally_state_save(state, block->bytes, kind->room));
}

void block_save_groups(struct block *block, const struct block_kind *kind,
                       const tally_groups *groups) {
    const size_t size = tally_groups_size(groups); /* 0: for want of memory */
    settle(block, size, size ? tally_groups_save(groups, block->bytes, kind->room) : TALLY_ENOMEM);
}

/* ---- Merged --------------------------------------------------------------------------------- */

static void merge_states(const struct block *left, struct block *right,
                         const struct block_kind *kind) {
    tally_state *a = NULL, *b = NULL;
    /* A state of no elements changes nothing, and need not stand where the other begins. */
    if (saved_word(left->bytes, SAVED_N) == 0) return;
    tally_status s = tally_state_load(left->bytes, (size_t)left->size, kind->problem, &a);
    if (s == TALLY_OK) s = tally_state_load(right->bytes, (size_t)right->size, kind->problem, &b);
    if (s == TALLY_OK) s = tally_state_merge(a, b);
    if (s == TALLY_OK)
        block_save(right, kind, a);
    else
        right->status = s;
    tally_state_destroy(a);
    tally_state_destroy(b);
}

static void merge_groups(const struct block *left, struct block *right,
                         const struct block_kind *kind) {
    tally_groups *a = NULL, *b = NULL;
    tally_status s = tally_groups_load(left->bytes, (size_t)left->size, kind->problem, &a);
    if (s == TALLY_OK) s = tally_groups_load(right->bytes, (size_t)right->size, kind->problem, &b);
    if (s == TALLY_OK) s = tally_groups_merge(a, b);
    if (s == TALLY_OK)
        block_save_groups(right, kind, a);
    else
        right->status = s;
    tally_groups_destroy(a);
    tally_groups_destroy(b);
}

/* ---- MPI's operator and the datatypes' attribute, made once ----------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int once_error;
static int kind_key; /* the attribute of a datatype: its block_kind */
static MPI_Op merge_op;

static void merge_blocks(void *in, void *inout, int *length, MPI_Datatype *type) {
    struct block_kind *kind;
    int found = 0;
    MPI_Type_get_attr(*type, kind_key, (void *)&kind, &found);
    if (!found) return;
    for (int i = 0; i < *length; i++) {
        const struct block *left = (const void *)((char *)in + (size_t)i * block_bytes(kind));
        struct block *right = (void *)((char *)inout + (size_t)i * block_bytes(kind));
        if (left->status != TALLY_OK)
            right->status = left->status;
        else if (right->status == TALLY_OK && kind->are_groups)
            merge_groups(left, right, kind);
        else if (right->status == TALLY_OK)
            merge_states(left, right, kind);
    }
}

/* Frees the operator and the attribute's key. MPI_Finalize() calls this first, when it deletes MPI_COMM_SELF's
 * attributes. */
static int give_back(MPI_Comm comm, int key, void *value, void *extra) {
    (void)comm, (void)key, (void)value, (void)extra;
    int keys = kind_key;
    MPI_Op_free(&merge_op);
    return MPI_Type_free_keyval(&keys);
}

static void tell_mpi(void) {
    int last;
    once_error = MPI_Op_create(merge_blocks, 0, &merge_op);
    if (once_error == MPI_SUCCESS)
        once_error =
            MPI_Type_create_keyval(MPI_TYPE_NULL_COPY_FN, MPI_TYPE_NULL_DELETE_FN, &kind_key, NULL);
    if (once_error == MPI_SUCCESS)
        once_error = MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, give_back, &last, NULL);
    if (once_error != MPI_SUCCESS) return;
    once_error = MPI_Comm_set_attr(MPI_COMM_SELF, last, NULL);
    MPI_Comm_free_keyval(&last);
}

int block_op(MPI_Op *op) {
    pthread_once(&once, tell_mpi);
    *op = merge_op;
    return once_error;
}

int block_type(struct block_kind *kind, MPI_Datatype *type) {
    pthread_once(&once, tell_mpi);
    int error = once_error;
    *type = MPI_DATATYPE_NULL;
    if (block_bytes(kind) / 8 > INT_MAX) return MPI_ERR_COUNT;
    if (error == MPI_SUCCESS)
        error = MPI_Type_contiguous((int)(block_bytes(kind) / 8), MPI_INT64_T, type);
    if (error == MPI_SUCCESS) error = MPI_Type_set_attr(*type, kind_key, kind);
    if (error == MPI_SUCCESS) error = MPI_Type_commit(type);
    return error;
}
