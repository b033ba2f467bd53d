/*
 * first_reduction.cu - a first reduction on a GPU, in plain CUDA C and without Tally.
 *
 *     nvcc -O3 -o first_reduction examples/first_reduction.cu && ./first_reduction [n]
 *
 * It sums n floats (2^24 if none is given) with the kernel that docs/ladder.md calls `shared`: every thread adds
 * two elements while it loads them, the block's threads then add up their sums in shared memory, and the
 * block writes one partial sum. The host launches the kernel again over the partial sums until one is left; two
 * buffers take turns, since a launch must not write where it reads. Any n from 0 up works.
 *
 * Things to look for: where memory is allocated and freed; how the grid follows from n; what is timed, by
 * events, and what is not; that every call is checked; and that the float answer differs from the exact one.
 */
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define BLOCK 256 /* threads of a block: a power of two, for the tree below */

/* Every CUDA call returns whether it worked, and nothing else reports a failure. */
#define CHECK(call)                                                                                \
    do {                                                                                           \
        const cudaError_t error_ = (call);                                                         \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(error_));                                                   \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

/* output[b] = the sum of block b's segment of 2 * BLOCK elements. */
__global__ void sum_segments(const float *input, float *output, size_t n) {
    __shared__ float partial[BLOCK];
    const unsigned t = threadIdx.x;
    const size_t i = (size_t)blockIdx.x * (2 * BLOCK) + t;

    /* The last segment may be short: a place behind the end counts 0. */
    partial[t] = (i < n ? input[i] : 0.0f) + (i + BLOCK < n ? input[i + BLOCK] : 0.0f);

    for (unsigned stride = BLOCK / 2; stride > 0; stride /= 2) {
        __syncthreads(); /* all threads, also those that have nothing to add */
        if (t < stride) partial[t] += partial[t + stride];
    }
    if (t == 0) output[blockIdx.x] = partial[0]; /* thread 0 wrote it itself: no barrier */
}

/* Blocks for n elements: one for each segment that has begun. */
static size_t blocks_for(size_t n) {
    return (n + 2 * BLOCK - 1) / (2 * BLOCK);
}

/* Sums the n elements at device_x, using two buffers of blocks_for(n) floats; the array is left as it is. */
static float sum_on_device(const float *device_x, size_t n, float *buffer[2]) {
    float sum = 0.0f;
    const float *input = device_x;
    int turn = 0;
    if (n == 0) return sum;
    do {
        const size_t blocks = blocks_for(n);
        sum_segments<<<(unsigned)blocks, BLOCK>>>(input, buffer[turn], n);
        CHECK(cudaGetLastError()); /* a launch that did not start; errors within it show later */
        input = buffer[turn];
        turn = 1 - turn;
        n = blocks; /* not BLOCK: there are as many partial sums as there were blocks */
    } while (n > 1);
    CHECK(cudaMemcpy(&sum, input, sizeof sum, cudaMemcpyDeviceToHost)); /* waits for the launches */
    return sum;
}

int main(int argc, char **argv) {
    const size_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : (size_t)1 << 24;
    const size_t bytes = n * sizeof(float);
    if (blocks_for(n) > 0x7fffffff || n > SIZE_MAX / sizeof(float)) {
        fprintf(stderr, "first_reduction: %zu elements are more than one grid can take\n", n);
        return 1;
    }

    float *x = (float *)malloc(bytes ? bytes : 1);
    if (!x) return fprintf(stderr, "first_reduction: no memory for %zu bytes\n", bytes), 1;
    double exact = 0; /* exact here: integers below 2^53, divided by 2^10 at the end */
    for (size_t i = 0; i < n; i++) {
        const unsigned value = (unsigned)(i * 2654435761u) >> 22; /* 0 to 1023 */
        x[i] = (float)value / 1024.0f;
        exact += value;
    }
    exact /= 1024;

    float *device_x, *buffer[2];
    CHECK(cudaMalloc((void **)&device_x, bytes ? bytes : 1));
    for (int i = 0; i < 2; i++)
        CHECK(cudaMalloc((void **)&buffer[i], (blocks_for(n) + 1) * sizeof(float)));

    /* Events are marks in the stream of work; the time between two is the device's own. */
    cudaEvent_t begin, copied, done;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&copied));
    CHECK(cudaEventCreate(&done));

    CHECK(cudaMemcpy(device_x, x, bytes, cudaMemcpyHostToDevice));
    sum_on_device(device_x, n, buffer); /* a first run, not timed: the driver loads the kernel */

    CHECK(cudaEventRecord(begin, 0));
    CHECK(cudaMemcpy(device_x, x, bytes, cudaMemcpyHostToDevice));
    CHECK(cudaEventRecord(copied, 0));
    const float sum = sum_on_device(device_x, n, buffer);
    CHECK(cudaEventRecord(done, 0));
    CHECK(cudaEventSynchronize(done));

    float copy_ms = 0, sum_ms = 0;
    CHECK(cudaEventElapsedTime(&copy_ms, begin, copied));
    CHECK(cudaEventElapsedTime(&sum_ms, copied, done));
    const double additions = n > 0 ? (double)(n - 1) : 0;
    printf("n               %zu\n", n);
    printf("sum             %.9g\n", sum);
    printf("exact           %.17g (off by %g)\n", exact, fabs((double)sum - exact));
    printf("copy            %.3f ms, not part of the reduction\n", copy_ms);
    printf("reduction       %.3f ms, %.0f MFLOPS, %.1f GB/s\n", sum_ms, additions / (sum_ms * 1e3),
           (double)bytes / (sum_ms * 1e6));

    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(copied));
    CHECK(cudaEventDestroy(done));
    CHECK(cudaFree(device_x));
    for (int i = 0; i < 2; i++)
        CHECK(cudaFree(buffer[i]));
    free(x);
    return 0;
}
