/*
 * heads.h - heads for callers' workspaces: memory of a queue's own, in which a launch counts and keeps its records.
 *
 * A launch that gives values leaves its head 0, and so does the one that lowers records to one value. To clear
 * a caller's workspace before such a launch would take as long as the launch. So the launch has its head in memory of
 * the queue's own, which was cleared once: each address of a workspace has a head there from its first call on, for
 * good. Calls with one workspace come one after another - that is the caller's to see to -, and so do the uses of its
 * head, in streams and in graphs alike. Where a call fails, the workspace loses its head, and nobody gets that head
 * again: it may hold anything. When there are no more heads, a fill clears one in the workspace.
 */
#ifndef TALLY_GPU_HEADS_H
#define TALLY_GPU_HEADS_H

#include "gpu/gpu.h"

#define HEADS 1024
/* Words of each: enough for the launches of one value, and for sums whose records are wanted. */
#define LAUNCH_HEAD 256

/* The head of a caller's workspace. */
struct known_head {
    const void *workspace;
    uint32_t number; /* HEADS: it has none any more */
    struct known_head *next;
};

struct heads {
    struct gpu_memory *memory;       /* HEADS of LAUNCH_HEAD words, or NULL */
    uint32_t given;                  /* so many of them have been given to workspaces */
    struct known_head *known[HEADS]; /* lists, by a hash of the workspace's address */
};

/* Makes the memory, unless it is there, and waits until all of it is 0. */
tally_status heads_make(struct heads *heads, const struct gpu_api *api, struct gpu *gpu);
/* Returns the head of a workspace, which is given one if it has none; NULL where there are no more. */
struct known_head *heads_find(struct heads *heads, const void *workspace);
/* Takes a workspace's head away, whatever it holds; does nothing for NULL. */
void heads_give_up(struct known_head *head);
/* Frees the lists of known workspaces, which lie in the host's memory. */
void heads_forget(struct heads *heads);

#endif
