/*
 * gpu.h - a probe that watches the model at work. Other machines behind struct gpu_api have none.
 */
#ifndef TALLY_MODEL_GPU_H
#define TALLY_MODEL_GPU_H

#include "gpu/gpu.h"
#include "model/model.h"

/* While a struct gpu is watched, the counts of its launches are added up here, and on_step() is called for
 * each of their steps. */
struct model_probe {
    model_counts counts;
    unsigned launches; /* so far; during a launch, how many came before it */
    void (*on_step)(void *context, unsigned launch, const model_step *step); /* or NULL */
    void *context;
    bool accesses; /* on_step() is told of every access */
};

/* Has `probe` watch all launches of a struct gpu that model_api opened, from now until it is called again;
 * NULL ends the watching. The probe stays the caller's. */
void model_gpu_watch(struct gpu *gpu, struct model_probe *probe);

#endif
