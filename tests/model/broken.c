/*
 * broken.c - kernels that are wrong on purpose, and their right neighbours, to see that the model
 * tells them apart. Compiled as kernels are. The tests look for the lines marked with [words].
 */
#include "model/lane.h"

#include "kernels/dialect.h"

#include "broken.h"

/* ---- Barriers ------------------------------------------------------------------------------- */

__global__ void barrier_in_branch(u32 *out) {
    if (threadIdx.x < 20) __syncthreads(); /* [barrier in branch] */
    out[threadIdx.x] = 1;
}
MODEL_KERNEL1(barrier_in_branch, u32 *);

__global__ void two_barriers(u32 *out) {
    if (threadIdx.x % 2)
        __syncthreads(); /* [odd barrier] */
    else
        __syncthreads(); /* [even barrier] */
    out[threadIdx.x] = 1;
}
MODEL_KERNEL1(two_barriers, u32 *);

__global__ void shuffle_in_branch(u32 *out) {
    u32 v = threadIdx.x;
    if (threadIdx.x < 16) v = __shfl_down_sync(FULL_WARP, v, 8); /* [shuffle in branch] */
    __syncthreads();
    out[threadIdx.x] = v;
}
MODEL_KERNEL1(shuffle_in_branch, u32 *);

__global__ void shuffle_half_warp(u32 *out) {
    u32 v = threadIdx.x;
    if (threadIdx.x < 16)
        v = __shfl_down_sync(0xffffu, v, 8);
    else
        v = __shfl_xor_sync(0xffff0000u, v, 1);
    out[threadIdx.x] = v;
}
MODEL_KERNEL1(shuffle_half_warp, u32 *);

/* ---- Addresses ------------------------------------------------------------------------------ */

__global__ void past_the_end(const u32 *x, u32 *out) {
    out[threadIdx.x] = x[threadIdx.x + 1]; /* [past the end] */
}
MODEL_KERNEL2(past_the_end, const u32 *, u32 *);

__global__ void past_shared(u32 *out) {
    __shared__ u32 values[32];
    values[threadIdx.x] = 1; /* [past shared] */
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x];
}
MODEL_KERNEL1(past_shared, u32 *);

__global__ void null_pointer(u32 *out) {
    *out = 1; /* [null] */
}
MODEL_KERNEL1(null_pointer, u32 *);

__global__ void misaligned(const char *x, u32 *out) {
    out[0] = *(const u32 *)(x + 2); /* [misaligned] */
}
MODEL_KERNEL2(misaligned, const char *, u32 *);

/* ---- What nothing has written --------------------------------------------------------------- */

__global__ void unwritten_shared(u32 *out) {
    __shared__ u32 values[64];
    if (threadIdx.x != 7) values[threadIdx.x] = 1;
    __syncthreads();
    out[threadIdx.x] = values[threadIdx.x]; /* [unwritten shared] */
}
MODEL_KERNEL1(unwritten_shared, u32 *);

__global__ void last_blocks_shared(u32 *out) {
    __shared__ u32 values[64];
    if (blockIdx.x == 0) values[threadIdx.x] = 1;
    __syncthreads();
    out[blockIdx.x * blockDim.x + threadIdx.x] = values[threadIdx.x]; /* [last block's] */
}
MODEL_KERNEL1(last_blocks_shared, u32 *);

__global__ void adds_to_output(u32 *out) {
    out[threadIdx.x] += 1; /* [unwritten global] */
}
MODEL_KERNEL1(adds_to_output, u32 *);

/* ---- Races ---------------------------------------------------------------------------------- */

__global__ void race_shared(u32 *out) {
    __shared__ u32 values[64];
    values[threadIdx.x] = threadIdx.x;           /* [race: write] */
    out[threadIdx.x] = values[threadIdx.x ^ 32]; /* [race: read] */
}
MODEL_KERNEL1(race_shared, u32 *);

__global__ void race_in_warp(u32 *out) {
    __shared__ u32 values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    for (u32 stride = 16; stride > 0; stride /= 2) /* no barrier: "a warp is in step anyway" */
        if (threadIdx.x < stride)
            values[threadIdx.x] += values[threadIdx.x + stride]; /* [race in warp] */
    out[threadIdx.x] = values[0];
}
MODEL_KERNEL1(race_in_warp, u32 *);

__global__ void write_after_read(u32 *out) {
    __shared__ u32 values[64];
    values[threadIdx.x] = threadIdx.x;
    __syncthreads();
    const u32 v = values[0];             /* [many read] */
    if (threadIdx.x == 0) values[0] = 9; /* [one writes] */
    out[threadIdx.x] = v;
}
MODEL_KERNEL1(write_after_read, u32 *);

__global__ void race_between_blocks(u32 *out) {
    if (threadIdx.x == 0) *out = blockIdx.x; /* [blocks race] */
}
MODEL_KERNEL1(race_between_blocks, u32 *);

__global__ void lost_updates(u32 *out) {
    if (threadIdx.x == 0)
        atomicAdd(out, 1u);
    else if (threadIdx.x == 1)
        *out = 5; /* [plain beside atomic] */
}
MODEL_KERNEL1(lost_updates, u32 *);

__global__ void all_add(u32 *out) {
    atomicAdd(out, 1u);
}
MODEL_KERNEL1(all_add, u32 *);

/* The last block adds up what the others left: with both fences, without one, without the other. */
__device__ void last_block(u32 *values, u32 *ticket, u32 *out, int before, int after) {
    if (threadIdx.x == 0) {
        values[blockIdx.x] = blockIdx.x + 1; /* [leave own] */
        if (before) __threadfence();
        if (atomicAdd(ticket, 1u) == gridDim.x - 1) { /* [take a ticket] */
            if (after) __threadfence();
            u32 sum = 0;
            for (u32 b = 0; b < gridDim.x; b++)
                sum += values[b]; /* [read others'] */
            *out = sum;
        }
    }
}
__global__ void fenced(u32 *values, u32 *ticket, u32 *out) {
    last_block(values, ticket, out, 1, 1);
}
MODEL_KERNEL3(fenced, u32 *, u32 *, u32 *);
__global__ void unfenced_writer(u32 *values, u32 *ticket, u32 *out) {
    last_block(values, ticket, out, 0, 1);
}
MODEL_KERNEL3(unfenced_writer, u32 *, u32 *, u32 *);
__global__ void unfenced_reader(u32 *values, u32 *ticket, u32 *out) {
    last_block(values, ticket, out, 1, 0);
}
MODEL_KERNEL3(unfenced_reader, u32 *, u32 *, u32 *);

/* ---- The end -------------------------------------------------------------------------------- */

__global__ void endless(u32 *out) {
    while (atomicAdd(out, 0u) == 0) /* [endless] */
        ;
}
MODEL_KERNEL1(endless, u32 *);

/* ---- Counting ------------------------------------------------------------------------------- */

/* A branch in a loop that lanes leave at different times: lane l runs 1 + l % 4 rounds. */
__global__ void ragged_loop(u32 *out) {
    u32 v = 0;
    for (u32 i = 0; i <= threadIdx.x % 4; i++) {
        if (i % 2)
            v += 1;
        else
            v += 2;
        out[threadIdx.x] = v;
    }
    out[threadIdx.x] = v + 1;
}
MODEL_KERNEL1(ragged_loop, u32 *);

__global__ void strided_banks(u32 *out, u32 stride) {
    __shared__ u32 values[32 * 32];
    values[threadIdx.x * stride] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[0];
}
MODEL_KERNEL2(strided_banks, u32 *, u32);

__global__ void wide_banks(u64 *out, u32 stride) {
    __shared__ u64 values[32 * 32];
    values[threadIdx.x * stride] = threadIdx.x;
    __syncthreads();
    out[threadIdx.x] = values[0];
}
MODEL_KERNEL2(wide_banks, u64 *, u32);

__global__ void copy_strided(const u32 *x, u32 *out, u32 stride) {
    out[threadIdx.x] = x[threadIdx.x * stride];
}
MODEL_KERNEL3(copy_strided, const u32 *, u32 *, u32);

#define ADDRESS(name) &name##_kernel,
const model_kernel *const broken_kernels[] = {BROKEN_KERNELS(ADDRESS)};
