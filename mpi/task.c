/* task.c - see task.h. */
#include "task.h"

#include "explain.h"
#include "spare.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void *(*const volatile task_clear)(void *, int, size_t) = memset;

void task_give_up(struct task *t, tally_status status, const char *why) {
    if (t->status != TALLY_OK) return;
    t->status = status;
    snprintf(t->line, sizeof t->line, "rank %d: %s", t->rank, why ? why : tally_error());
}

void *task_memory(struct task *t, size_t count, size_t size) {
    void *room = size && count > (SIZE_MAX - 8) / size ? NULL : malloc(count * size + 8);
    if (!room) task_give_up(t, TALLY_ENOMEM, "no memory for the message");
    return room;
}

void task_lost(struct task *t, int error) {
    char text[MPI_MAX_ERROR_STRING] = "";
    int length = 0;
    MPI_Error_string(error, text, &length);
    t->status = TALLY_ELOST;
    snprintf(t->line, sizeof t->line, "MPI failed: %.200s", text);
    t->step = STEP_DONE;
}

void task_outcome(struct task *t, tally_status status) {
    t->status = status;
    if (status != TALLY_OK) snprintf(t->line, sizeof t->line, "%s", tally_error());
    t->step = STEP_DONE;
}

void task_give_values(struct task *t) {
    t->step = STEP_DONE;
    if (t->status != TALLY_OK || !t->ask.out || !task_is_wanted(t)) return;
    memcpy(t->ask.out, t->given.value, t->values * sizeof *t->ask.out);
}

tally_status task_end(struct task *t) {
    const tally_status s = t->status;
    if (s != TALLY_OK) explain(s, "%s", t->line);
    if (t->type != MPI_DATATYPE_NULL) MPI_Type_free(&t->type);
    spare_give(t->problem, t->own);
    spare_give(t->problem, t->none);
    free(t->own_words);
    free(t->block);
    free(t->merged);
    for (size_t i = 0; i < t->blocks && t->loaded; i++)
        tally_state_destroy(t->loaded[i]);
    tally_groups_destroy(t->loaded_groups);
    tally_groups_destroy(t->spare_groups);
    free(t->loaded);
    free(t->own_places);
    if (t->shaped) shaped_end(t->shaped);
    return s;
}
