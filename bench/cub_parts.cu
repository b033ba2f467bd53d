/*
 * cub_parts.cu - Tally's reductions in parts beside CUB's on one CUDA device: rows, segments by offsets, columns, groups.
 *
 * `make bench-gpu-parts` builds it against libtally and runs it: exact sums and greatest elements of f32 and f64, 2^28
 * elements in rows of 4 ... 2^27, as segments of the same lengths and of skewed ones, columns, and by random and sorted
 * ids. CUB's side is DeviceSegmentedReduce by offsets and, by sorted ids, DeviceReduce::ReduceByKey; it has nothing for
 * columns and random ids. All is in the device's memory. Times are medians of 9 between two events, by
 * tally_enqueue_shaped() and CUB in turn; GB/s are of the bytes that have to be read and written: elements,
 * offsets or ids, and results. `read` is a plain read of the elements.
 *
 * The elements are small integers, whose sums are the same in any order, so that results are compared bit for bit.
 *
 *   cub_parts [POWER [f32|f64]]
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cub/cub.cuh>
#include <functional>
#include <string>
#include <vector>

#include "tally.h"

#include "kernels/read.cu" /* last: kernels speak C, and have macros of their own */

enum { RUNS = 9 };
static cudaStream_t stream;
static tally_device *device;
static void *temporary;
static size_t temporary_bytes;

static void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

static void check(tally_status status) {
    if (status == TALLY_OK) return;
    std::fprintf(stderr, "tally: %s\n", tally_error());
    std::exit(1);
}

template <typename item> static item *room(size_t n) {
    void *made;
    check(cudaMalloc(&made, std::max(n, (size_t)1) * sizeof(item)), "memory");
    return (item *)made;
}

template <typename item> static item *put(const std::vector<item> &from) {
    item *to = room<item>(from.size());
    check(cudaMemcpy(to, from.data(), from.size() * sizeof(item), cudaMemcpyHostToDevice),
          "copying");
    return to;
}

template <typename item> static __global__ void fill(item *x, size_t n) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        x[i] = (item)((int)((unsigned)(i ^ i >> 15) * 2654435761u >> 28) - 7);
}

static double median(const std::function<void()> &run) {
    std::vector<double> took;
    cudaEvent_t begin, end;
    check(cudaEventCreate(&begin), "an event");
    check(cudaEventCreate(&end), "an event");
    for (int i = 0; i < RUNS + 2; i++) {
        float milliseconds = 0;
        cudaEventRecord(begin, stream);
        run();
        cudaEventRecord(end, stream);
        check(cudaEventSynchronize(end), "waiting");
        cudaEventElapsedTime(&milliseconds, begin, end);
        if (i >= 2) took.push_back(1e-3 * milliseconds);
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    std::sort(took.begin(), took.end());
    return took[RUNS / 2];
}

/* One line: ours beside theirs, where there is such a thing. */
template <typename item>
static void line(const std::string &name, tally_op op, const tally_shape &shape, item *x,
                 size_t results, double bytes, item *ours, item *theirs,
                 const std::function<void()> &cub) {
    tally_problem problem = {};
    problem.op = op;
    problem.type = sizeof(item) == 4 ? TALLY_F32 : TALLY_F64;
    tally_shaped_call call = {};
    void *out[1] = {ours}, *work, *outcome = room<tally_outcome>(1);
    check(tally_workspace_shaped(device, &problem, &shape, &call.workspace_bytes));
    check(cudaMalloc(&work, call.workspace_bytes), "workspace");
    call.shape = &shape;
    call.x = x;
    call.workspace = work;
    call.queue = stream;
    call.out = out;
    call.outcome = outcome;
    const double mine = median([&] { check(tally_enqueue_shaped(device, &problem, &call)); });
    const double other = cub ? median(cub) : 0;
    tally_outcome told;
    check(cudaMemcpy(&told, outcome, sizeof told, cudaMemcpyDeviceToHost), "reading");
    const char *note = told.status == TALLY_OK ? "" : "  FAILED";
    if (cub) {
        std::vector<item> a(results), b(results);
        check(cudaMemcpy(a.data(), ours, results * sizeof(item), cudaMemcpyDeviceToHost),
              "reading");
        check(cudaMemcpy(b.data(), theirs, results * sizeof(item), cudaMemcpyDeviceToHost),
              "reading");
        for (size_t i = 0; i < results; i++)
            if (!(a[i] == b[i])) note = "  DIFFERENT";
        std::printf("%-34s %9.1f %9.1f %7.2f%s\n", name.c_str(), 1e-9 * bytes / mine,
                    1e-9 * bytes / other, other / mine, note);
    } else
        std::printf("%-34s %9.1f %9s %7s%s\n", name.c_str(), 1e-9 * bytes / mine, "-", "-", note);
    std::fflush(stdout);
    cudaFree(work);
    cudaFree(outcome);
}

template <typename item>
static void segments(const std::string &name, tally_op op, item *x, size_t n,
                     const std::vector<long long> &offsets) {
    const size_t count = offsets.size() - 1;
    long long *at = put(offsets);
    item *ours = room<item>(count), *theirs = room<item>(count);
    tally_shape shape = {};
    shape.cut = TALLY_SEGMENTS;
    shape.n = n;
    shape.count = count;
    shape.offsets = at;
    line<item>(
        name, op, shape, x, count,
        (double)n * sizeof(item) + 8.0 * (double)offsets.size() + (double)count * sizeof(item),
        ours, theirs, [&] {
            size_t bytes = temporary_bytes;
            check(op == TALLY_SUM
                      ? cub::DeviceSegmentedReduce::Sum(temporary, bytes, x, theirs,
                                                        (long long)count, at, at + 1, stream)
                      : cub::DeviceSegmentedReduce::Max(temporary, bytes, x, theirs,
                                                        (long long)count, at, at + 1, stream),
                  "CUB");
        });
    cudaFree(at);
    cudaFree(ours);
    cudaFree(theirs);
}

template <typename item>
static void axis(const std::string &name, tally_op op, item *x, size_t rows, size_t columns,
                 unsigned reduced) {
    const size_t length[2] = {rows, columns}, results = reduced == 0 ? columns : rows;
    item *ours = room<item>(results);
    tally_shape shape = {};
    shape.cut = TALLY_AXES;
    shape.dims = 2;
    shape.length = length;
    shape.axes = 1u << reduced;
    line<item>(name, op, shape, x, results,
               ((double)(rows * columns) + (double)results) * sizeof(item), ours, nullptr, nullptr);
    cudaFree(ours);
}

template <typename item> static void groups(item *x, size_t n, size_t count, bool sorted) {
    std::vector<int> ids(n);
    unsigned long long state = 1;
    for (size_t i = 0; i < n; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        ids[i] = sorted ? (int)(i * count / n) : (int)((state >> 33) % count);
    }
    int *at = put(ids), *keys = room<int>(count), *runs = room<int>(1);
    item *ours = room<item>(count), *theirs = room<item>(count);
    tally_shape shape = {};
    shape.cut = TALLY_GROUPS;
    shape.n = n;
    shape.count = count;
    shape.ids = at;
    shape.ids_type = TALLY_I32;
    shape.sorted = sorted;
    std::function<void()> cub;
    if (sorted)
        cub = [&] {
            size_t bytes = temporary_bytes;
            check(cub::DeviceReduce::ReduceByKey(temporary, bytes, at, keys, x, theirs, runs,
                                                 ::cuda::std::plus<item>{}, (int)n, stream),
                  "CUB");
        };
    line<item>("by " + std::to_string(count) + (sorted ? " sorted ids" : " random ids"), TALLY_SUM,
               shape, x, count, (double)n * (sizeof(item) + 4) + (double)count * sizeof(item), ours,
               theirs, cub);
    cudaFree(at);
    cudaFree(keys);
    cudaFree(runs);
    cudaFree(ours);
    cudaFree(theirs);
}

static std::vector<long long> even(size_t n, size_t length) {
    std::vector<long long> offsets;
    for (size_t i = 0; i <= n; i += length)
        offsets.push_back((long long)i);
    return offsets;
}

template <typename item> static void all(int power, const char *type) {
    const size_t n = (size_t)1 << power;
    item *x = room<item>(n);
    fill<<<4096, 256, 0, stream>>>(x, n);
    cudaDeviceProp facts;
    check(cudaGetDeviceProperties(&facts, 0), "device 0");
    const double read = median([&] {
        read_all<<<8 * facts.multiProcessorCount, 256, 0, stream>>>(
            (const pack *)x, n * sizeof(item) / 16, (u32 *)temporary);
    });
    std::printf("\n%s, 2^%d elements; read %.1f GB/s\n%-34s %9s %9s %7s\n", type, power,
                1e-9 * (double)n * sizeof(item) / read, "GB/s", "tally", "cub", "cub/t");
    for (tally_op op : {TALLY_SUM, TALLY_MAX}) {
        const std::string what = op == TALLY_SUM ? "sum, " : "max, ";
        for (int length = 2; length < power; length += 2)
            segments(what + "segments of 2^" + std::to_string(length), op, x, n,
                     even(n, (size_t)1 << length));
        segments(what + "two segments", op, x, n, even(n, n / 2));
        for (int length = 2; length < power; length += 4)
            axis(what + "rows of 2^" + std::to_string(length), op, x, n >> length,
                 (size_t)1 << length, 1);
        for (int length = 2; length < power; length += 4)
            axis(what + "columns of 2^" + std::to_string(length), op, x, (size_t)1 << length,
                 n >> length, 0);
    }
    std::vector<long long> giant = even(n / 1024, 4), empty, mixed = {0};
    giant.back() = (long long)n - 7;
    giant.push_back((long long)n);
    for (size_t i = 0; i <= n; i += n / 64)
        empty.insert(empty.end(), 1 << 14, (long long)i);
    for (unsigned long long state = 1; mixed.back() < (long long)n;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        const long long next = mixed.back() + (1ll << (state >> 60));
        mixed.push_back(std::min(next, (long long)n));
    }
    segments("sum, one giant among short ones", TALLY_SUM, x, n, giant);
    segments("sum, mostly empty ones", TALLY_SUM, x, n, empty);
    segments("sum, of 2^0 to 2^15, mixed", TALLY_SUM, x, n, mixed);
    for (size_t count : {10, 1000, 4000, 1000000})
        groups(x, n, count, false);
    for (size_t count : {1000, 1000000})
        groups(x, n, count, true);
    cudaFree(x);
}

int main(int argc, char **argv) {
    const int power = argc > 1 ? std::atoi(argv[1]) : 28;
    const char *only = argc > 2 ? argv[2] : "";
    tally_device_info info;
    check(cudaSetDevice(0), "device 0");
    check(cudaStreamCreate(&stream), "a stream");
    check(tally_open("cuda:0", &device));
    check(tally_device_describe(device, &info));
    temporary_bytes = 64 << 20;
    temporary = room<char>(temporary_bytes);
    std::printf("%s\n", info.name);
    if (!*only || !std::strcmp(only, "f32")) all<float>(power, "f32");
    if (!*only || !std::strcmp(only, "f64")) all<double>(power, "f64");
    tally_close(device);
    return 0;
}
