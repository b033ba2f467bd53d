/*
 * cub.cu - one of Tally's kernels beside CUB's DeviceReduce, on one CUDA device, size by size.
 *
 * The one C++ file here, because CUB is C++. It is compiled once for each case - `make bench-gpu` does
 * that and runs them all - with TYPE_x and OP_y and the kernel's file as CASE_FILE: sums and greatest
 * elements of f32, f64, i32, i64 and bf16. For n = 2^8 ... 2^30 it measures
 *
 *   device   between two events around the work, with the data already there
 *   whole    from the host's call until the host has the result
 *
 * and prints both sides' times in microseconds and CUB's over Tally's: above 1 is in Tally's favour.
 * `g2g` is CUB's sum with the same bits on every GPU, where the toolkit has it (CCCL 3.1). Each time is
 * the median of 21 runs, which read the same array: sizes below the cache's are read from that. The two
 * results are compared first; CUB's sums of i32 wrap and its sums of floats round, so the data are small.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <vector>
#if __has_include(<cuda/__execution/determinism.h>) && defined(OP_SUM) && \
    (defined(TYPE_F32) || defined(TYPE_F64))
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/require.h>
#define HAS_G2G 1
#else
#define HAS_G2G 0
#endif

#include CASE_FILE /* last: kernels speak C, and have macros of their own */

#if defined(TYPE_F32)
typedef float item;
#elif defined(TYPE_F64)
typedef double item;
#elif defined(TYPE_BF16)
typedef __nv_bfloat16 item;
#elif defined(TYPE_I32)
typedef int item;
#else
typedef long long item;
#endif

#if defined(OP_SUM) && !defined(SIGNED_TYPE)
enum { RECORD = LIMBS + 1 };
#else
enum { RECORD = WORDS };
#endif

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

struct bench {
    item *x, *out;
    u64 *work;
    void *temporary;
    size_t n, temporary_bytes;
    unsigned grid;
};

/* ---- The contestants ---------------------------------------------------------------------- */

static void run_tally(const bench &b) {
    const size_t tiles = b.n / (BLOCK * TILE);
    const unsigned grid = (unsigned)std::min<size_t>(std::max<size_t>(tiles, 1), b.grid);
    check(cudaMemsetAsync(b.work, 0, 8 * (1 + RECORD)), "clearing the record");
    reduce<<<grid, BLOCK>>>((const element *)b.x, b.n, b.work);
}

static double tally_result(const bench &b) {
    u64 record[1 + RECORD];
    check(cudaMemcpy(record, b.work, sizeof record, cudaMemcpyDeviceToHost), "reading the record");
    double value = 0;
#if defined(OP_SUM) && !defined(SIGNED_TYPE)
    for (int i = LIMBS - 1; i >= 0; i--)
        if (record[1 + i] != 0)
            value += std::ldexp((double)(i64)record[1 + i], 32 * i + LIMB_LOWEST);
#elif defined(OP_SUM)
    for (int i = 2; i >= 0; i--)
        value += std::ldexp((double)(i64)record[1 + i], 32 * i);
#else
    const key k = (key)record[1];
#if defined(FLOATING)
    const key bits = k & KEY_SIGN ? k ^ KEY_SIGN : k ^ KEY_MASK;
    item result;
    std::memcpy(&result, &bits, sizeof result);
    value = (double)(float)result;
#else
    value = (double)(SIGNED_TYPE)(k ^ KEY_SIGN);
#endif
#endif
    return value;
}

static void run_cub(const bench &b) {
    size_t bytes = b.temporary_bytes;
#if defined(OP_SUM)
    check(cub::DeviceReduce::Sum(b.temporary, bytes, b.x, b.out, (i64)b.n), "CUB");
#else
    check(cub::DeviceReduce::Max(b.temporary, bytes, b.x, b.out, (i64)b.n), "CUB");
#endif
}

static void run_g2g(const bench &b) {
#if HAS_G2G
    auto environment = cuda::execution::require(cuda::execution::determinism::gpu_to_gpu);
    check(cub::DeviceReduce::Reduce(b.x, b.out, (i64)b.n, cuda::std::plus<item>{}, item{},
                                    environment),
          "CUB, gpu_to_gpu");
#else
    (void)b;
#endif
}

static double cub_result(const bench &b) {
    item result;
    check(cudaMemcpy(&result, b.out, sizeof result, cudaMemcpyDeviceToHost), "reading the result");
    return (double)result;
}

/* ---- Measuring ---------------------------------------------------------------------------- */

struct times {
    double device, whole; /* microseconds */
};

template <typename Run, typename Result>
static times measure(const bench &b, Run run, Result result) {
    enum { RUNS = 21 };
    std::vector<double> device, whole;
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "an event");
    check(cudaEventCreate(&end), "an event");
    for (int i = 0; i < RUNS + 2; i++) {
        float milliseconds = 0;
        cudaEventRecord(begin);
        run(b);
        cudaEventRecord(end);
        check(cudaEventSynchronize(end), "waiting");
        cudaEventElapsedTime(&milliseconds, begin, end);
        const auto before = std::chrono::steady_clock::now();
        run(b);
        volatile double sink = result(b);
        (void)sink;
        const std::chrono::duration<double, std::micro> took =
            std::chrono::steady_clock::now() - before;
        if (i < 2) continue; /* warm-up */
        device.push_back(1e3 * milliseconds);
        whole.push_back(took.count());
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(device.begin(), device.end());
    std::sort(whole.begin(), whole.end());
    return {device[RUNS / 2], whole[RUNS / 2]};
}

static __global__ void fill(item *x, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        x[i] = (item)(float)((int)(i * 2654435761u >> 28) - 7); /* -7 ... 8, as if at random */
}

int main() {
    const size_t most = (size_t)1 << 30;
    bench b = {};
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0), "device 0");
    b.grid = (unsigned)device.multiProcessorCount * GPU_BLOCKS_A_UNIT;
    b.n = most;
    check(cudaMalloc(&b.x, most * sizeof(item)), "memory for the array");
    check(cudaMalloc(&b.out, sizeof(item)), "memory");
    check(cudaMalloc(&b.work, 8 * (1 + RECORD + (size_t)b.grid * WORDS)), "memory");
    cub::DeviceReduce::Sum(nullptr, b.temporary_bytes, b.x, b.out, (i64)most);
    check(cudaMalloc(&b.temporary, b.temporary_bytes += 1 << 20), "memory");
    fill<<<8 * b.grid, 256>>>(b.x, most);
    check(cudaDeviceSynchronize(), "filling the array");

    std::printf("%s, %s\n%-6s %10s %10s %7s %10s %10s %7s %10s %7s %8s\n", device.name, CASE, "n",
                "tally", "cub", "cub/t", "whole", "cub", "cub/t", "g2g", "g2g/t", "GB/s");
    for (int power = 8; power <= 30; power++) {
        b.n = (size_t)1 << power;
        run_tally(b);
        run_cub(b);
        const double ours = tally_result(b), theirs = cub_result(b);
        if (!(std::fabs(ours - theirs) <= 0.02 * std::fabs(theirs) + 0.02 * (double)b.n))
            std::printf("2^%d: tally says %.17g, CUB %.17g\n", power, ours, theirs);
        const times t = measure(b, run_tally, tally_result), c = measure(b, run_cub, cub_result);
        std::printf("2^%-4d %10.2f %10.2f %7.2f %10.2f %10.2f %7.2f ", power, t.device, c.device,
                    c.device / t.device, t.whole, c.whole, c.whole / t.whole);
        if (HAS_G2G) {
            const times g = measure(b, run_g2g, cub_result);
            std::printf("%10.2f %7.2f ", g.device, g.device / t.device);
        } else {
            std::printf("%10s %7s ", "-", "-");
        }
        std::printf("%8.1f\n", 1e-3 * (double)(b.n * sizeof(item)) / t.device);
    }
    return 0;
}
