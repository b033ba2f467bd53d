/*
 * gpu.h - watching the model at work: what the other machines behind struct gpu_api cannot give.
 */
#ifndef TALLY_MODEL_GPU_H
#define TALLY_MODEL_GPU_H

#include "gpu/gpu.h"
#include "model/model.h"

/* Sees every launch while it is set: they are counted together, and each step is told of. */
struct model_probe {
    model_counts counts;
    unsigned launches; /* so far; during a launch, how many came before it */
    void (*on_step)(void *context, unsigned launch, const model_step *step); /* or NULL */
    void *context;
};

/* gpu: one that model_api opened. probe NULL: nobody watches any more. */
void model_gpu_watch(struct gpu *gpu, struct model_probe *probe);

#endif
