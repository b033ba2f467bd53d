/*
 * cub.cu - Tally beside CUB's DeviceReduce on one CUDA device, size by size.
 *
 * It is C++, because CUB is. `make bench-gpu` builds it against libtally and runs it: exact
 * and fast sums and greatest elements of f32, f64, bf16, i32 and i64, for n = 2^8 ... 2^30. It measures
 *
 *   device   between two events around the work, with the data already there; both sides as a captured
 *            graph of so many calls that the host's part does not count
 *   whole    from the host's call until the host has the result: tally_reduce_resident(), and CUB with the
 *            result copied to pinned memory
 *   roof     plain reads of the same memory (kernels/read.cu)
 *
 * and prints both sides' times in microseconds and CUB's over Tally's: above 1 is in Tally's favour. Then it measures
 * Tally's exact statistics of floats whose exponents are spread little or much, beside the roof, at the largest n.
 * `g2g` is CUB's sum with the same bits on every GPU, where the toolkit has it (CCCL 3.1; a newer CCCL than
 * the toolkit's can be given to `make bench-gpu` as NVCC_FLAGS=-I...). Runs alternate;
 * each time is a median of 15, which read the same array: one that fits the cache is read from it. The
 * two results are compared first; CUB's sums of i32 wrap and its sums of floats round, so data are small.
 *
 *   cub [LEAST [MOST [TYPE]]]     powers of two; only that type; LEAST above MOST: only the spread data
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cub/cub.cuh>
#include <cuda_bf16.h>
#include <functional>
#include <type_traits>
#include <vector>
#if __has_include(<cuda/__execution/determinism.h>)
#include <cuda/__execution/determinism.h>
#include <cuda/__execution/require.h>
#include <cuda/std/execution>
#include <cuda/stream_ref>
#define HAS_G2G 1
#else
#define HAS_G2G 0
#endif

#include "measure.h"

#include "kernels/read.cu" /* last: kernels speak C, and have macros of their own */

enum { RUNS = 15 };
static int least = 8, most = 30;
static const char *only = "";

/* ---- The contestants ---------------------------------------------------------------------- */

struct bench {
    tally_device *device;
    cudaStream_t stream;
    void *x, *result, *workspace, *temporary, *pinned;
    size_t workspace_bytes, temporary_bytes;
    size_t n;
    tally_problem problem;
};

static void run_tally(const bench &b) {
    tally_call call = {};
    call.x = b.x;
    call.n = b.n;
    call.workspace = b.workspace;
    call.workspace_bytes = b.workspace_bytes;
    call.queue = b.stream;
    call.results = b.result;
    check(tally_enqueue(b.device, &b.problem, &call));
}

static double whole_tally(const bench &b) {
    tally_value value;
    check(tally_reduce_resident(b.device, &b.problem, b.x, NULL, b.n, &value));
    return tally_value_double(&value);
}

template <typename item> static void run_cub(const bench &b) {
    size_t bytes = b.temporary_bytes;
    const item *x = (const item *)b.x;
    item *out = (item *)b.result;
    check(b.problem.op == TALLY_SUM
              ? cub::DeviceReduce::Sum(b.temporary, bytes, x, out, (long long)b.n, b.stream)
              : cub::DeviceReduce::Max(b.temporary, bytes, x, out, (long long)b.n, b.stream),
          "CUB");
}

/* Runs CUB's sum with the same bits on every GPU; nothing for types other than float and double. */
template <typename item> static void run_g2g(const bench &b) {
#if HAS_G2G
    if constexpr (std::is_floating_point<item>::value) {
        const cuda::stream_ref stream(b.stream);
        auto environment = cuda::std::execution::env{
            cuda::execution::require(cuda::execution::determinism::gpu_to_gpu), stream};
        check(cub::DeviceReduce::Reduce((const item *)b.x, (item *)b.result, (int)b.n,
                                        cuda::std::plus<item>{}, item{}, environment),
              "CUB, gpu_to_gpu");
    }
#else
    (void)b;
#endif
}

template <typename item> static double whole_cub(const bench &b) {
    run_cub<item>(b);
    check(cudaMemcpyAsync(b.pinned, b.result, sizeof(item), cudaMemcpyDeviceToHost, b.stream),
          "reading the result");
    check(cudaStreamSynchronize(b.stream), "waiting");
    return (double)*(item *)b.pinned;
}

static void run_read(const bench &b, size_t size) {
    cudaDeviceProp device;
    check(cudaGetDeviceProperties(&device, 0), "device 0");
    read_all<<<8 * device.multiProcessorCount, 256, 0, b.stream>>>(
        (const pack *)b.x, b.n * size / 16, (u32 *)b.workspace);
}

/* ---- Measuring ---------------------------------------------------------------------------- */

/* Captures `times` calls into a graph. */
static cudaGraphExec_t capture(const bench &b, const std::function<void()> &run, int times) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    check(cudaStreamBeginCapture(b.stream, cudaStreamCaptureModeThreadLocal), "capturing");
    for (int i = 0; i < times; i++)
        run();
    check(cudaStreamEndCapture(b.stream, &graph), "capturing");
    check(cudaGraphInstantiate(&ready, graph, 0), "making a graph");
    cudaGraphDestroy(graph);
    return ready;
}

/* Medians of the device's time for one call of each, in microseconds; runs alternate. */
static std::vector<double> device_times(const bench &b,
                                        const std::vector<std::function<void()>> &contestants) {
    const int times = b.n <= 1 << 20 ? 20 : b.n <= 1 << 24 ? 5 : 1;
    std::vector<cudaGraphExec_t> graphs;
    std::vector<std::vector<double>> took(contestants.size());
    std::vector<double> medians;
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "an event");
    check(cudaEventCreate(&end), "an event");
    for (const auto &run : contestants)
        graphs.push_back(capture(b, run, times));
    for (int i = 0; i < RUNS + 2; i++)
        for (size_t k = 0; k < graphs.size(); k++) {
            float milliseconds = 0;
            cudaEventRecord(begin, b.stream);
            check(cudaGraphLaunch(graphs[k], b.stream), "launching");
            cudaEventRecord(end, b.stream);
            check(cudaEventSynchronize(end), "waiting");
            cudaEventElapsedTime(&milliseconds, begin, end);
            if (i >= 2) took[k].push_back(1e3 * milliseconds / times);
        }
    for (size_t k = 0; k < graphs.size(); k++) {
        cudaGraphExecDestroy(graphs[k]);
        std::sort(took[k].begin(), took[k].end());
        medians.push_back(took[k][RUNS / 2]);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return medians;
}

/* Medians of the host's time for one call of each. */
static void whole_times(const std::function<double()> run[2], double median[2]) {
    const int runs = 4 * RUNS;
    std::vector<double> took[2];
    for (int i = 0; i < runs + 4; i++)
        for (int k = 0; k < 2; k++) {
            const auto before = std::chrono::steady_clock::now();
            volatile double sink = run[k]();
            (void)sink;
            const std::chrono::duration<double, std::micro> time =
                std::chrono::steady_clock::now() - before;
            if (i >= 4) took[k].push_back(time.count());
        }
    for (int k = 0; k < 2; k++) {
        std::sort(took[k].begin(), took[k].end());
        median[k] = took[k][runs / 2];
    }
}

template <typename item> static void compare(const bench &b, int power) {
    double ours = whole_tally(b);
    const double theirs = whole_cub<item>(b);
    if (b.problem.type == TALLY_I32) ours = (double)(int)(long long)ours; /* CUB's wraps */
    if (std::fabs(ours - theirs) > 0.05 * std::fabs(theirs) + 0.02 * (double)b.n)
        std::printf("2^%d: tally says %.17g, CUB %.17g\n", power, ours, theirs);
}

template <typename item> static __global__ void fill(item *x, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        x[i] = (item)(float)((int)((unsigned)i * 2654435761u >> 28) -
                             7); /* -7 ... 8, as if at random */
}

template <typename item> static void one_case(bench &b, const char *name) {
    std::printf("\n%s\n%-6s %10s %10s %7s %10s %10s %7s %10s %7s %8s %7s\n", name, "n", "tally",
                "cub", "cub/t", "whole", "cub", "cub/t", "g2g", "g2g/t", "GB/s", "of roof");
    const bool g2g = HAS_G2G && b.problem.op == TALLY_SUM && b.problem.type >= TALLY_F32;
    for (int power = least; power <= most; power++) {
        b.n = (size_t)1 << power;
        compare<item>(b, power);
        std::vector<std::function<void()>> contestants = {
            [&] { run_tally(b); }, [&] { run_cub<item>(b); }, [&] { run_read(b, sizeof(item)); }};
        if (g2g) contestants.push_back([&] { run_g2g<item>(b); });
        const std::vector<double> t = device_times(b, contestants);
        double whole[2];
        const std::function<double()> calls[2] = {[&] { return whole_tally(b); },
                                                  [&] { return whole_cub<item>(b); }};
        whole_times(calls, whole);
        std::printf("2^%-4d %10.2f %10.2f %7.2f %10.2f %10.2f %7.2f ", power, t[0], t[1],
                    t[1] / t[0], whole[0], whole[1], whole[1] / whole[0]);
        if (g2g)
            std::printf("%10.2f %7.2f ", t[3], t[3] / t[0]);
        else
            std::printf("%10s %7s ", "-", "-");
        std::printf("%8.1f %7.2f\n", 1e-3 * (double)(b.n * sizeof(item)) / t[0],
                    std::min(t[2], std::min(t[0], t[1])) / t[0]);
        std::fflush(stdout);
    }
}

template <typename item> static void all_cases(bench b, tally_type type) {
    const std::string name = tally_type_name(type);
    const size_t n = (size_t)1 << most;
    if (*only && name != only) return;
    b.problem.type = type;
    check(cudaMalloc(&b.x, n * sizeof(item)), "memory for the array");
    fill<<<4096, 256>>>((item *)b.x, n);
    check(cudaDeviceSynchronize(), "filling the array");
    b.problem.op = TALLY_SUM;
    one_case<item>(b, (name + (type >= TALLY_F16 ? ", exact sum" : ", sum")).c_str());
    b.problem.fast = 1;
    if (type >= TALLY_F16) one_case<item>(b, (name + ", fast sum").c_str());
    b.problem.fast = 0;
    b.problem.op = TALLY_MAX;
    one_case<item>(b, (name + ", max").c_str());
    check(cudaFree(b.x), "giving memory back");
}

/* ---- Spread data -------------------------------------------------------------------------- */

/* uniform: in [-1, 1). loguniform: +-2^u, u uniform in [-20, 20). wild: any finite bits. outliers: uniform, but for a
 * wild one in 1000. */
enum { UNIFORM_DATA, LOGUNIFORM_DATA, WILD_DATA, OUTLIERS_DATA, KINDS };
static const char *const kinds[KINDS] = {"uniform", "loguniform", "wild", "outliers"};

/* splitmix64 */
static __device__ unsigned long long random_bits(unsigned long long z) {
    z += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

template <typename item, typename word>
static __global__ void spread(word *x, size_t n, int kind, int fraction) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        const unsigned long long r = random_bits(i);
        const double u = (double)(r >> 11) * 0x1p-53;
        const word bits = (word)(r >> (64 - 8 * sizeof(word)));
        const word field = ((word) ~(word)0 >> 1) >> fraction << fraction;
        const bool outlier = random_bits(r) % 1000 == 0;
        if (kind == WILD_DATA || (kind == OUTLIERS_DATA && outlier)) {
            x[i] = (bits & field) == field ? bits ^ ((word)1 << fraction) : bits;
        } else {
            const double magnitude = kind == LOGUNIFORM_DATA ? exp2(40 * u - 20) : u;
            const item v = (item)(float)(r & 1 ? magnitude : -magnitude);
            memcpy(&x[i], &v, sizeof v);
        }
    }
}

/* Returns whether the device's value of the first elements is the CPU's. */
static bool is_right(bench b) {
    const size_t size = tally_type_size(b.problem.type);
    tally_value ours = {}, theirs = {};
    b.n = std::min(b.n, (size_t)1 << 22);
    b.problem.out = TALLY_F64; /* a double shows more bits, and does not overflow */
    std::vector<char> host(b.n * size);
    check(cudaMemcpy(host.data(), b.x, b.n * size, cudaMemcpyDeviceToHost), "reading the array");
    check(tally_reduce(NULL, &b.problem, host.data(), NULL, b.n, &theirs));
    check(tally_reduce_resident(b.device, &b.problem, b.x, NULL, b.n, &ours));
    const double a = tally_value_double(&ours), c = tally_value_double(&theirs);
    return std::memcmp(&a, &c, sizeof a) == 0;
}

template <typename item, typename word>
static void spread_cases(bench b, tally_type type, int fraction) {
    static const tally_op ops[] = {TALLY_SUM, TALLY_SUMSQ, TALLY_VAR};
    const std::string name = tally_type_name(type);
    if (*only && name != only) return;
    b.n = (size_t)1 << most;
    b.problem.type = type;
    check(cudaMalloc(&b.x, b.n * sizeof(item)), "memory for the array");
    for (int kind = 0; kind < KINDS; kind++) {
        spread<item, word><<<4096, 256>>>((word *)b.x, b.n, kind, fraction);
        check(cudaDeviceSynchronize(), "filling the array");
        for (const tally_op op : ops) {
            b.problem.op = op;
            const std::vector<double> t =
                device_times(b, {[&] { run_tally(b); }, [&] { run_read(b, sizeof(item)); }});
            std::printf("%-5s %-6s %-11s %10.2f %8.1f %7.2f%s\n", name.c_str(), tally_op_name(op),
                        kinds[kind], t[0], 1e-3 * (double)(b.n * sizeof(item)) / t[0], t[1] / t[0],
                        is_right(b) ? "" : "  NOT the CPU's value");
            std::fflush(stdout);
        }
    }
    check(cudaFree(b.x), "giving memory back");
}

static void all_spread(const bench &b) {
    std::printf("\nspread data, n = 2^%d, exact\n%-5s %-6s %-11s %10s %8s %7s\n", most, "type",
                "op", "data", "tally", "GB/s", "of roof");
    spread_cases<float, u32>(b, TALLY_F32, 23);
    spread_cases<double, u64>(b, TALLY_F64, 52);
    spread_cases<__nv_bfloat16, u16>(b, TALLY_BF16, 7);
}

/* Allocates memory that is enough for each of the cases. */
static void make_room(bench &b) {
    static const tally_op ops[] = {TALLY_SUM, TALLY_MAX, TALLY_SUMSQ, TALLY_VAR};
    b.workspace_bytes = 4 << 20; /* a word for each thread of the read kernel */
    for (int type = TALLY_I8; type <= TALLY_F64; type++)
        for (const tally_op op : ops)
            for (int fast = 0; fast < 2; fast++) {
                tally_problem problem = {};
                problem.op = op;
                problem.type = (tally_type)type;
                problem.fast = fast && op == TALLY_SUM;
                size_t bytes;
                check(tally_workspace(b.device, &problem, (size_t)1 << most, &bytes));
                b.workspace_bytes = std::max(b.workspace_bytes, bytes);
            }
    b.temporary_bytes = 16 << 20;
    check(cudaMalloc(&b.workspace, b.workspace_bytes), "memory");
    check(cudaMalloc(&b.temporary, b.temporary_bytes), "memory");
    check(cudaMalloc(&b.result, sizeof(tally_result)), "memory");
    check(cudaMallocHost(&b.pinned, 16), "memory");
}

int main(int argc, char **argv) {
    bench b = {};
    tally_device_info info;
    if (argc > 1) least = std::atoi(argv[1]);
    if (argc > 2) most = std::atoi(argv[2]);
    if (argc > 3) only = argv[3];
    check(cudaSetDevice(0), "device 0");
    check(cudaStreamCreate(&b.stream), "a stream");
    check(tally_open("cuda:0", &b.device));
    check(tally_device_describe(b.device, &info));
    make_room(b);
    std::printf("%s; times in microseconds\n", info.name);
    all_cases<float>(b, TALLY_F32);
    all_cases<double>(b, TALLY_F64);
    all_cases<__nv_bfloat16>(b, TALLY_BF16);
    all_cases<int>(b, TALLY_I32);
    all_cases<long long>(b, TALLY_I64);
    all_spread(b);
    tally_close(b.device);
    return 0;
}
