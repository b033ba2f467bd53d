/* heads.c - see heads.h. */
#include "gpu/heads.h"

#include <stdlib.h>

tally_status heads_make(struct heads *heads, const struct gpu_api *api, struct gpu *gpu) {
    struct gpu_memory *memory = NULL;
    if (heads->memory) return TALLY_OK;
    tally_status s = api->allocate(gpu, 8 * HEADS * LAUNCH_HEAD, &memory);
    if (s == TALLY_OK) s = api->fill(gpu, memory, 0, 0, 8 * HEADS * LAUNCH_HEAD);
    if (s == TALLY_OK) s = api->finish(gpu);
    if (s == TALLY_OK)
        heads->memory = memory;
    else
        api->release(gpu, memory);
    return s;
}

struct known_head *heads_find(struct heads *heads, const void *workspace) {
    const uint64_t mixed = (uint64_t)(uintptr_t)workspace * UINT64_C(0x9e3779b97f4a7c15);
    struct known_head **list = &heads->known[(mixed >> 32) % HEADS], *head = *list;
    if (!heads->memory) return NULL;
    while (head && head->workspace != workspace)
        head = head->next;
    if (head && head->number < HEADS) return head;
    if (heads->given == HEADS) return NULL;
    if (!head) {
        head = malloc(sizeof *head);
        if (!head) return NULL;
        *head = (struct known_head){.workspace = workspace, .next = *list};
        *list = head;
    }
    head->number = heads->given++;
    return head;
}

void heads_give_up(struct known_head *head) {
    if (head) head->number = HEADS;
}

void heads_forget(struct heads *heads) {
    for (int i = 0; i < HEADS; i++)
        while (heads->known[i]) {
            struct known_head *next = heads->known[i]->next;
            free(heads->known[i]);
            heads->known[i] = next;
        }
}
