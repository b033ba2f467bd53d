/* run.c - see run.h. */
#include "run.h"

#include "take.h"

/* Combines all ranks' words in place: added, or merged. */
static int all_words(int64_t *word, size_t count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                     MPI_Request *r) {
    return r ? MPI_Iallreduce(MPI_IN_PLACE, word, (int)count, type, op, comm, r)
             : MPI_Allreduce(MPI_IN_PLACE, word, (int)count, type, op, comm);
}

static int issue_frame(struct task *t, MPI_Comm comm, MPI_Request *r) {
    MPI_Datatype type;
    MPI_Op op;
    if (!t->layout.is_merged)
        return all_words(t->frame, (size_t)t->layout.words, MPI_INT64_T, MPI_SUM, comm, r);
    const int error = frame_datatype(t->attribute, &type, &op);
    return error == MPI_SUCCESS ? all_words(t->frame, 1, type, op, comm, r) : error;
}

/* Sends rank 0's values and status to all ranks, as plain bytes. */
static int share_values(struct task *t, MPI_Comm comm, MPI_Request *r) {
    void *at = t->shaped ? (void *)t->shaped->answer : &t->given;
    const int size = t->shaped ? (int)t->shaped->answer_bytes : (int)(sizeof t->given);
    return r ? MPI_Ibcast(at, size, MPI_BYTE, 0, comm, r) : MPI_Bcast(at, size, MPI_BYTE, 0, comm);
}

int task_issue(struct task *t, MPI_Comm comm, MPI_Request *r) {
    const int count = (int)t->blocks;
    switch (t->step) {
    case STEP_FRAME:
    case STEP_AGREE:
        return issue_frame(t, comm, r);
    case STEP_WORDS:
        return all_words(t->word, t->all_words, MPI_INT64_T, MPI_SUM, comm, r);
    case STEP_MERGED:
        return all_words(t->word, t->count, t->type, t->op, comm, r);
    case STEP_PLACE:
        return r ? MPI_Iexscan(t->place, t->place + t->count, count, MPI_UINT64_T, MPI_SUM, comm, r)
                 : MPI_Exscan(t->place, t->place + t->count, count, MPI_UINT64_T, MPI_SUM, comm);
    case STEP_MERGE:
        return r ? MPI_Ireduce(t->block, t->merged, count, t->type, t->op, 0, comm, r)
                 : MPI_Reduce(t->block, t->merged, count, t->type, t->op, 0, comm);
    case STEP_VALUES:
        return share_values(t, comm, r);
    case STEP_SHARE:
        return r ? MPI_Ibcast(t->merged, count, t->type, 0, comm, r)
                 : MPI_Bcast(t->merged, count, t->type, 0, comm);
    case STEP_REASON:
        return r ? MPI_Ibcast(t->line, sizeof t->line, MPI_CHAR, t->reason_from, comm, r)
                 : MPI_Bcast(t->line, sizeof t->line, MPI_CHAR, t->reason_from, comm);
    case STEP_DONE:
        break;
    }
    return MPI_SUCCESS;
}

tally_status task_run(struct task *t) {
    while (t->step != STEP_DONE) {
        const int error = task_issue(t, t->comm, NULL);
        if (error == MPI_SUCCESS)
            task_take(t);
        else
            task_lost(t, error);
    }
    return task_end(t);
}
