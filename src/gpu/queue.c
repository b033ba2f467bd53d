/* queue.c - see queue.h. */
#include "gpu/queue.h"

#include <stdlib.h>

void *const queue_no_buffer = NULL;

tally_status queue_open_bare(struct queue *queue, const struct gpu_api *api, size_t index,
                             void *context, unsigned block) {
    *queue = (struct queue){.api = api, .block = block};
    tally_status s = api->open(index, context, &queue->gpu);
    if (s == TALLY_OK) queue->facts = api->facts(queue->gpu);
    return s;
}

tally_status queue_open(struct queue *queue, const struct gpu_api *api, size_t index, void *context,
                        unsigned block) {
    volatile void *seen = NULL;
    tally_status s = queue_open_bare(queue, api, index, context, block);
    if (s != TALLY_OK) return s;
    s = api->allocate_visible(queue->gpu, QUEUE_RESULT_BYTES, &queue->result, &seen);
    queue->seen = s == TALLY_OK ? seen : NULL;
    if (s != TALLY_OK) s = api->allocate(queue->gpu, QUEUE_RESULT_BYTES, &queue->result);
    if (s != TALLY_OK) queue_close(queue);
    return s;
}

void queue_forget(struct queue *queue) {
    for (int i = 0; i < KNOWN_USERS; i++)
        free(queue->users[i].source);
    for (unsigned i = 0; i < QUEUE_CACHES; i++)
        free(queue->caches[i]);
    heads_forget(&queue->heads);
}

void queue_close(struct queue *queue) {
    if (queue->gpu) queue->api->close(queue->gpu); /* and with it its memory and programs */
    queue_forget(queue);
    *queue = (struct queue){0};
}

tally_status queue_reserve(struct queue *queue, struct gpu_memory **buffer, size_t *has,
                           size_t bytes) {
    if (*buffer && *has >= bytes) return TALLY_OK;
    queue->api->release(queue->gpu, *buffer);
    *buffer = NULL;
    *has = 0;
    tally_status s = queue->api->allocate(queue->gpu, bytes, buffer);
    if (s == TALLY_OK) *has = bytes;
    return s;
}

tally_status queue_reserve_parts(struct queue *queue, size_t bytes) {
    const bool is_new = !queue->parts_work || queue->parts_bytes < bytes;
    const tally_status s = queue_reserve(queue, &queue->parts_work, &queue->parts_bytes, bytes);
    if (s != TALLY_OK || !is_new || bytes == 0) return s;
    return queue->api->fill(queue->gpu, queue->parts_work, 0, 0, bytes);
}
