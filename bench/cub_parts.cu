/*
 * cub_parts.cu - Tally's reductions in parts beside CUB's on one CUDA device: rows, segments by offsets, columns, groups.
 *
 * `make bench-gpu-parts` builds it against libtally and runs it, for f32 and f64, 2^28 elements in rows of 4 ... 2^27, as
 * segments of the same lengths and of skewed ones, columns, and by random and sorted ids: exact sums and greatest
 * elements; of rows and columns also fast sums, means, both ends, indices, variances and 2-norms; of rows sums of i32,
 * and sums of odd lengths; and exact sums of segments, sums and variances of columns, and variances of rows, of uniform
 * and log-uniform data (2^-20 to 2^20). CUB's side is DeviceSegmentedReduce by offsets and, by sorted ids,
 * DeviceReduce::ReduceByKey; it has nothing for columns and random ids. All is in the device's memory. Times are medians
 * of 5 runs between two events, or of one run if that takes long, of tally_enqueue_shaped() and CUB in turn. GB/s are
 * of the bytes that have to be read and written: elements, offsets or ids, and results. `read` is a plain read of the
 * elements, and `of roof` our rate divided by that.
 *
 * Where CUB has its turn the elements are small integers, whose sums are the same in any order, so that results are
 * compared bit for bit.
 *
 *   cub_parts [POWER [f32|f64 [PART]]]    PART: only cases whose names have this in them
 */
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cub/cub.cuh>
#include <functional>
#include <string>
#include <vector>

#include "measure.h"

#include "kernels/read.cu" /* last: kernels speak C, and have macros of their own */

enum { RUNS = 5 };
static const double SLOW = 0.02; /* seconds: what takes longer is run once */
static cudaStream_t stream;
static tally_device *device;
static void *temporary;
static size_t temporary_bytes;
static double roof; /* the rate of plain reads, bytes a second */
static const char *wanted = "";

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

enum data { INTEGERS, UNIFORM, LOG_UNIFORM };

template <typename item> static __global__ void fill(item *x, size_t n, data kind) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        unsigned long long bits = i * 0x9e3779b97f4a7c15ull;
        bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9ull;
        bits = (bits ^ bits >> 32) * 0x94d049bb133111ebull;
        const double u = (double)(bits >> 11) * 0x1p-53;
        x[i] = kind == INTEGERS  ? (item)((int)(bits >> 60) - 7)
               : kind == UNIFORM ? (item)u
                                 : (item)exp2(40 * u - 20);
    }
}

static __global__ void fill_even(long long *offsets, size_t count, long long length) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < count;
         i += (size_t)gridDim.x * blockDim.x)
        offsets[i] = (long long)i * length;
}

/* Makes ids below `count`: sorted ones, or random ones. */
static __global__ void fill_ids(int *ids, size_t n, size_t count, bool sorted) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        unsigned long long bits = (i + 1) * 0xd1342543de82ef95ull;
        bits = (bits ^ bits >> 31) * 0xbf58476d1ce4e5b9ull;
        ids[i] = sorted ? (int)(i * count / n) : (int)((bits ^ bits >> 29) % count);
    }
}

template <typename item>
static __global__ void compare(const item *a, const item *b, size_t n, unsigned *differs) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x)
        if (!(a[i] == b[i])) *differs = 1;
}

/* Returns the seconds of a run on the stream: the median of RUNS after two that are not counted; or the second's, if
 * that is more than SLOW. */
static double seconds_on_stream(const std::function<void()> &run) {
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
        if (i >= 2 || (i == 1 && 1e-3 * milliseconds > SLOW)) took.push_back(1e-3 * milliseconds);
        if (i == 1 && !took.empty()) break;
    }
    cudaEventDestroy(begin);
    cudaEventDestroy(end);
    return median(took);
}

/* Measures and prints one line: Tally, and CUB beside it where it has such a reduction. */
template <typename item>
static void line(const std::string &name, tally_op op, const tally_shape &shape, item *x,
                 size_t results, double bytes, item *ours, item *theirs,
                 const std::function<void()> &cub, bool fast = false,
                 tally_type type = sizeof(item) == 4 ? TALLY_F32 : TALLY_F64) {
    if (name.find(wanted) == std::string::npos) return;
    tally_problem problem = {};
    problem.op = op;
    problem.type = type;
    problem.fast = fast;
    tally_shaped_call call = {};
    void *out[2] = {ours, ours + results}, *work, *outcome = room<tally_outcome>(1);
    check(tally_workspace_shaped(device, &problem, &shape, &call.workspace_bytes));
    check(cudaMalloc(&work, call.workspace_bytes), "workspace");
    call.shape = &shape;
    call.x = x;
    call.workspace = work;
    call.queue = stream;
    call.out = out;
    call.outcome = outcome;
    const double mine =
        seconds_on_stream([&] { check(tally_enqueue_shaped(device, &problem, &call)); });
    const double other = cub ? seconds_on_stream(cub) : 0;
    tally_outcome told;
    check(cudaMemcpy(&told, outcome, sizeof told, cudaMemcpyDeviceToHost), "reading");
    const char *note = told.status == TALLY_OK ? "" : "  FAILED";
    std::printf("%-34s %9.1f %9.2f", name.c_str(), 1e-9 * bytes / mine, bytes / mine / roof);
    if (cub) {
        unsigned *differs = (unsigned *)outcome, found;
        check(cudaMemset(differs, 0, sizeof *differs), "clearing");
        compare<<<1024, 256>>>(ours, theirs, results, differs);
        check(cudaMemcpy(&found, differs, sizeof found, cudaMemcpyDeviceToHost), "reading");
        if (found) note = "  DIFFERENT";
        std::printf(" %9.1f %7.2f%s\n", 1e-9 * bytes / other, other / mine, note);
    } else
        std::printf(" %9s %7s%s\n", "-", "-", note);
    std::fflush(stdout);
    cudaFree(work);
    cudaFree(outcome);
}

/* Reduces `count` segments, whose offsets are on the device. */
template <typename item>
static void segments_at(const std::string &name, tally_op op, item *x, size_t n, long long *at,
                        size_t count, bool beside) {
    item *ours = room<item>(count), *theirs = room<item>(count);
    tally_shape shape = {};
    shape.cut = TALLY_SEGMENTS;
    shape.n = n;
    shape.count = count;
    shape.offsets = at;
    std::function<void()> cub = [&] {
        size_t bytes = temporary_bytes;
        check(op == TALLY_SUM
                  ? cub::DeviceSegmentedReduce::Sum(temporary, bytes, x, theirs, (long long)count,
                                                    at, at + 1, stream)
                  : cub::DeviceSegmentedReduce::Max(temporary, bytes, x, theirs, (long long)count,
                                                    at, at + 1, stream),
              "CUB");
    };
    line<item>(name, op, shape, x, count,
               (double)(n + count) * sizeof(item) + 8.0 * (double)(count + 1), ours, theirs,
               beside ? cub : nullptr);
    cudaFree(ours);
    cudaFree(theirs);
}

template <typename item>
static void segments(const std::string &name, tally_op op, item *x, size_t n,
                     const std::vector<long long> &offsets) {
    long long *at = put(offsets);
    segments_at(name, op, x, n, at, offsets.size() - 1, true);
    cudaFree(at);
}

/* Reduces segments of 2^length elements. */
template <typename item>
static void even_segments(const std::string &what, tally_op op, item *x, size_t n, int length,
                          bool beside) {
    const size_t count = n >> length;
    long long *at = room<long long>(count + 1);
    fill_even<<<1024, 256>>>(at, count + 1, 1ll << length);
    check(cudaDeviceSynchronize(), "filling");
    segments_at(what + ", segments of 2^" + std::to_string(length), op, x, n, at, count, beside);
    cudaFree(at);
}

template <typename item>
static void axis(const std::string &name, tally_op op, item *x, size_t rows, size_t columns,
                 unsigned reduced, bool fast = false) {
    const size_t length[2] = {rows, columns}, results = reduced == 0 ? columns : rows;
    const size_t words = op == TALLY_MINMAX ? 2 : op == TALLY_ARGMAX ? 8 / sizeof(item) : 1;
    item *ours = room<item>(words * results);
    tally_shape shape = {};
    shape.cut = TALLY_AXES;
    shape.dims = 2;
    shape.length = length;
    shape.axes = 1u << reduced;
    line<item>(name, op, shape, x, results,
               ((double)(rows * columns) + (double)(words * results)) * sizeof(item), ours, nullptr,
               nullptr, fast);
    cudaFree(ours);
}

/* Sums rows of i32, whose results are i64, and rows of odd lengths, most of which begin unaligned. */
template <typename item> static void other_rows(item *x, size_t n, int power) {
    for (int length = 2; length < power && sizeof(item) == 4; length += 4) {
        const size_t columns = (size_t)1 << length, rows = n >> length;
        const size_t extent[2] = {rows, columns};
        item *ours = room<item>(8 / sizeof(item) * rows);
        tally_shape shape = {};
        shape.cut = TALLY_AXES;
        shape.dims = 2;
        shape.length = extent;
        shape.axes = 2;
        line<item>("sum of i32, rows of 2^" + std::to_string(length), TALLY_SUM, shape, x, rows,
                   (double)n * sizeof(item) + 8.0 * (double)rows, ours, nullptr, nullptr, false,
                   TALLY_I32);
        cudaFree(ours);
    }
    for (size_t columns : {3, 5, 7, 17, 33, 65, 1001})
        axis("sum, rows of " + std::to_string(columns), TALLY_SUM, x, n / columns, columns, 1);
}

/* Rows of 4, 64, 1024 ... elements. */
template <typename item>
static void all_rows(const std::string &what, tally_op op, item *x, int power, bool fast = false) {
    for (int length = 2; length < power; length += 4)
        axis(what + ", rows of 2^" + std::to_string(length), op, x, (size_t)1 << (power - length),
             (size_t)1 << length, 1, fast);
}

/* Columns of 4, 64, 1024 ... elements. */
template <typename item>
static void all_columns(const std::string &what, tally_op op, item *x, int power, int step = 4,
                        bool fast = false) {
    for (int length = 2; length < power; length += step)
        axis(what + ", columns of 2^" + std::to_string(length), op, x, (size_t)1 << length,
             (size_t)1 << (power - length), 0, fast);
}

template <typename item>
static void groups(item *x, size_t n, size_t count, bool sorted, tally_op op = TALLY_SUM) {
    int *at = room<int>(n), *keys = room<int>(count), *runs = room<int>(1);
    fill_ids<<<4096, 256>>>(at, n, count, sorted);
    check(cudaDeviceSynchronize(), "filling");
    item *ours = room<item>(8 / sizeof(item) * count), *theirs = room<item>(count);
    tally_shape shape = {};
    shape.cut = TALLY_GROUPS;
    shape.n = n;
    shape.count = count;
    shape.ids = at;
    shape.ids_type = TALLY_I32;
    shape.sorted = sorted;
    std::function<void()> cub;
    if (sorted && op == TALLY_SUM)
        cub = [&] {
            size_t bytes = temporary_bytes;
            check(cub::DeviceReduce::ReduceByKey(temporary, bytes, at, keys, x, theirs, runs,
                                                 ::cuda::std::plus<item>{}, (int)n, stream),
                  "CUB");
        };
    const std::string what = op == TALLY_SUM   ? ""
                             : op == TALLY_VAR ? "variance "
                                               : std::string(tally_op_name(op)) + " ";
    line<item>(what + "by " + std::to_string(count) + (sorted ? " sorted ids" : " random ids"), op,
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

/* Offsets of segments of n elements, whose lengths are made of pseudorandom words. */
static std::vector<long long> mixed(size_t n,
                                    const std::function<long long(unsigned long long)> &length) {
    std::vector<long long> offsets = {0};
    for (unsigned long long state = 1; offsets.back() < (long long)n;) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        offsets.push_back(std::min(offsets.back() + length(state), (long long)n));
    }
    return offsets;
}

template <typename item> static void all(int power, const char *type) {
    const size_t n = (size_t)1 << power;
    item *x = room<item>(n);
    fill<<<4096, 256, 0, stream>>>(x, n, INTEGERS);
    cudaDeviceProp facts;
    check(cudaGetDeviceProperties(&facts, 0), "device 0");
    const double read = seconds_on_stream([&] {
        read_all<<<8 * facts.multiProcessorCount, 256, 0, stream>>>(
            (const pack *)x, n * sizeof(item) / 16, (u32 *)temporary);
    });
    roof = (double)n * sizeof(item) / read;
    std::printf("\n%s, 2^%d elements; read %.1f GB/s\n%-34s %9s %9s %9s %7s\n", type, power,
                1e-9 * roof, "GB/s", "tally", "of roof", "cub", "cub/t");
    for (tally_op op : {TALLY_SUM, TALLY_MAX}) {
        const std::string what = op == TALLY_SUM ? "sum" : "max";
        for (int length = 2; length < power; length += 2)
            even_segments(what, op, x, n, length, true);
        even_segments(what, op, x, n, power - 1, true);
        all_rows(what, op, x, power);
        all_columns(what, op, x, power);
    }
    all_rows("fast sum", TALLY_SUM, x, power, true);
    all_rows("mean", TALLY_MEAN, x, power);
    all_rows("min and max", TALLY_MINMAX, x, power);
    all_rows("argmax", TALLY_ARGMAX, x, power);
    other_rows(x, n, power);
    all_rows("variance", TALLY_VAR, x, power);
    all_rows("2-norm", TALLY_NORM2, x, power);
    all_columns("variance", TALLY_VAR, x, power);
    all_columns("2-norm", TALLY_NORM2, x, power, 8);
    all_columns("mean", TALLY_MEAN, x, power, 8);
    all_columns("min and max", TALLY_MINMAX, x, power, 8);
    all_columns("argmax", TALLY_ARGMAX, x, power, 8);
    all_columns("fast sum", TALLY_SUM, x, power, 8, true);
    for (int length = 2; length < power; length += 8)
        even_segments("variance", TALLY_VAR, x, n, length, false);
    std::vector<long long> giant = even(n / 1024, 4), empty;
    giant.back() = (long long)n - 7;
    giant.push_back((long long)n);
    for (size_t i = 0; i <= n; i += n / 64)
        empty.insert(empty.end(), 1 << 14, (long long)i);
    segments("sum, one giant among short ones", TALLY_SUM, x, n, giant);
    segments("sum, mostly empty ones", TALLY_SUM, x, n, empty);
    for (long long most : {32, 200, 2000})
        segments("sum, of 0 to " + std::to_string(most) + ", mixed", TALLY_SUM, x, n,
                 mixed(n, [=](unsigned long long word) {
                     return (long long)((word >> 32) % (most + 1));
                 }));
    segments("sum, of 2^0 to 2^15, mixed", TALLY_SUM, x, n,
             mixed(n, [](unsigned long long word) { return 1ll << (word >> 60); }));
    for (size_t count : {10, 1000, 4000, 1000000})
        groups(x, n, count, false);
    for (size_t count : {1000, 1000000})
        groups(x, n, count, true);
    groups(x, n, 1000, true, TALLY_VAR);
    for (tally_op op : {TALLY_MAX, TALLY_ARGMAX, TALLY_COUNT, TALLY_MEAN, TALLY_VAR, TALLY_PROD})
        for (size_t count : {10, 1000, 1000000})
            groups(x, n, count, false, op);
    for (data kind : {UNIFORM, LOG_UNIFORM}) {
        fill<<<4096, 256, 0, stream>>>(x, n, kind);
        for (int length = 2; length < power; length += 4)
            even_segments(kind == UNIFORM ? "sum, uniform" : "sum, log-uniform", TALLY_SUM, x, n,
                          length, false);
        all_columns(kind == UNIFORM ? "sum, uniform" : "sum, log-uniform", TALLY_SUM, x, power);
        all_columns(kind == UNIFORM ? "variance, uniform" : "variance, log-uniform", TALLY_VAR, x,
                    power, 8);
        all_rows(kind == UNIFORM ? "variance, uniform" : "variance, log-uniform", TALLY_VAR, x,
                 power);
    }
    cudaFree(x);
}

int main(int argc, char **argv) {
    const int power = argc > 1 ? std::atoi(argv[1]) : 28;
    const char *only = argc > 2 ? argv[2] : "";
    if (argc > 3) wanted = argv[3];
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
