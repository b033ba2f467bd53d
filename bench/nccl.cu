/*
 * bench_nccl - exact reductions over the GPUs of one machine beside plain NCCL, all in one process, a thread a GPU.
 *
 *     bench_nccl [GPUS]       all of them, or so many
 *
 * Three parts, each a line a case, of medians of the slowest rank's time by its device's clock:
 *   latency     an exact sum of 2^10 floats a GPU, in a graph, beside ncclAllReduce of 8, 544 and 600 bytes, and the
 *               parts of it that a GPU does by itself
 *   rate        an exact sum of 2^30 floats a GPU beside the same on one GPU alone (tally_enqueue)
 *   gradients   exact sums of arrays of 2^26 elements, f32 and bf16, beside plain ncclAllReduce of them
 * NVLink multicast is to stay off: NCCL_NVLS_ENABLE=0 is set before NCCL starts.
 */
#include "nccl/tally_nccl.h"

#include <cuda_runtime.h>
#include <nccl.h>

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#define CHECK(call)                                                                                \
    do {                                                                                           \
        const int error_ = (int)(call);                                                            \
        if (error_) {                                                                              \
            fprintf(stderr, "%s:%d: %s: %d %s %s\n", __FILE__, __LINE__, #call, error_,            \
                    tally_nccl_error(), tally_error());                                            \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct Rank {
    int number, count;
    ncclComm_t comm;
    cudaStream_t stream;
    tally_device *device;
    std::barrier<> *all;
};

static void *memory(size_t bytes) {
    void *made = nullptr;
    CHECK(cudaMalloc(&made, bytes));
    CHECK(cudaMemset(made, 0, bytes));
    return made;
}

/* Fills x with normal numbers of the size of gradients, made of a hash of their indices. */
template <typename T> __global__ void fill(T *x, size_t n, unsigned seed) {
    for (size_t i = blockIdx.x * (size_t)blockDim.x + threadIdx.x; i < n;
         i += (size_t)gridDim.x * blockDim.x) {
        unsigned long long h = (i + 1) * 0x9e3779b97f4a7c15ull + seed;
        h = (h ^ (h >> 29)) * 0xbf58476d1ce4e5b9ull;
        h ^= h >> 32;
        const float u = (float)(unsigned)h * 0x1p-32f + 0x1p-33f,
                    v = (float)(unsigned)(h >> 32) * 0x1p-32f;
        const float value = 0.01f * sqrtf(-2 * logf(u)) * cosf(6.2831853f * v);
        if (sizeof(T) == 4)
            ((float *)x)[i] = value;
        else
            ((unsigned short *)x)[i] = (unsigned short)(__float_as_uint(value) >> 16);
    }
}

/* Returns the seconds of one work(): the median of 9 runs of `times` each, which all ranks begin together. */
static double seconds(const Rank &r, int times, const std::function<void()> &work) {
    cudaEvent_t from, to;
    std::vector<double> took;
    CHECK(cudaEventCreate(&from));
    CHECK(cudaEventCreate(&to));
    work();
    CHECK(cudaStreamSynchronize(r.stream));
    for (int run = 0; run < 9; run++) {
        float milliseconds = 0;
        r.all->arrive_and_wait();
        CHECK(cudaEventRecord(from, r.stream));
        for (int i = 0; i < times; i++)
            work();
        CHECK(cudaEventRecord(to, r.stream));
        CHECK(cudaStreamSynchronize(r.stream));
        CHECK(cudaEventElapsedTime(&milliseconds, from, to));
        took.push_back(milliseconds * 1e-3 / times);
    }
    std::sort(took.begin(), took.end());
    return took[took.size() / 2];
}

/* Returns the greatest of all ranks' numbers. */
static double slowest(const Rank &r, double mine) {
    static double all[64];
    all[r.number] = mine;
    r.all->arrive_and_wait();
    const double most = *std::max_element(all, all + r.count);
    r.all->arrive_and_wait();
    return most;
}

/* Captures the launches of work() into a graph. Returns a function that launches the graph. */
static std::function<void()> graph_of(const Rank &r, const std::function<void()> &work) {
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamBeginCapture(r.stream, cudaStreamCaptureModeThreadLocal));
    work();
    CHECK(cudaStreamEndCapture(r.stream, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    return [=] { CHECK(cudaGraphLaunch(ready, r.stream)); };
}

static void say(const Rank &r, const char *what, double seconds, double beside) {
    if (r.number == 0)
        printf("%-36s %12.2f us   %6.3f of what it stands beside\n", what, seconds * 1e6,
               seconds / beside);
}

struct Sum {
    tally_problem problem;
    tally_stretch part;
    tally_nccl_call call;
};

/* An exact sum of n floats a GPU, ready to be enqueued. */
static Sum *make_sum(const Rank &r, float *x, size_t n) {
    Sum *s = new Sum{};
    size_t bytes = 0;
    s->problem.op = TALLY_SUM;
    s->problem.type = TALLY_F32;
    s->part = {x, nullptr, n};
    CHECK(tally_nccl_measure(r.device, &s->problem, n, 1, r.comm, &bytes));
    s->call = {&s->part, 1, memory(bytes), bytes, r.stream, memory(64)};
    CHECK(tally_nccl_agree(r.device, &s->problem, n, r.comm, &s->call));
    return s;
}

/* Measures the parts of an exact sum over ranks that a GPU does by itself: its words, and the value of all words. */
static void steps(const Rank &r, const Sum *s, double beside) {
    tally_words sizes;
    CHECK(tally_words_measure(r.device, &s->problem, 1024, 1, &sizes));
    int64_t *added = (int64_t *)memory(8 * sizes.added);
    void *work = memory(sizes.workspace_bytes);
    tally_words_call words = {s->part.x, nullptr, s->part.n, work,   sizes.workspace_bytes,
                              r.stream,  added,   nullptr,   nullptr};
    tally_values_call values = {added, nullptr, 1, 1, nullptr, r.stream, s->call.results};
    const double before = slowest(r, seconds(r, 200,
                                             graph_of(r,
                                                      [&] {
                                                          CHECK(tally_enqueue_words(
                                                              r.device, &s->problem, &words));
                                                      }))),
                 behind = slowest(
                     r, seconds(r, 200, graph_of(r, [&] {
                                    CHECK(tally_enqueue_values(r.device, &s->problem, &values));
                                })));
    say(r, "  of which: its words", before, beside);
    say(r, "  from words to the value", behind, beside);
}

/* A kernel of one thread, before and behind a message: no reduction can do less. */
static __global__ void touch(int64_t *word) {
    word[0] = 0;
}

/* Makes a mailbox that all GPUs can write (tally.h, tally_enqueue_shared()). */
static void *make_mailbox(const Rank &r) {
    static void *mailboxes[64];
    mailboxes[r.number] = memory(TALLY_MAILBOX_BYTES(r.count));
    r.all->arrive_and_wait();
    for (int peer = 0; peer < r.count; peer++)
        if (peer != r.number) {
            const cudaError_t error = cudaDeviceEnablePeerAccess(peer, 0);
            if (error != cudaErrorPeerAccessAlreadyEnabled) CHECK(error);
            (void)cudaGetLastError();
        }
    CHECK(cudaMemcpy((uint64_t *)mailboxes[r.number] + TALLY_MAILBOX_ADDRESSES, mailboxes,
                     8 * r.count, cudaMemcpyHostToDevice));
    r.all->arrive_and_wait();
    return mailboxes[r.number];
}

/* Measures the same sum by the peers' memory, without a message of NCCL's, and compares the bits. */
static void shared_latency(const Rank &r, const Sum *s, double beside) {
    tally_words sizes;
    uint64_t by_nccl[2] = {0}, value[2] = {1};
    CHECK(tally_words_measure(r.device, &s->problem, 1024, 1, &sizes));
    tally_shared_call call = {};
    call.x = s->part.x, call.n = s->part.n;
    call.workspace = memory(sizes.workspace_bytes), call.workspace_bytes = sizes.workspace_bytes;
    call.queue = r.stream;
    call.words = memory(8 * (2 + sizes.added + sizes.gathered * r.count));
    call.mailbox = make_mailbox(r);
    call.ranks = (size_t)r.count, call.mine = (size_t)r.number;
    call.results = memory(64);
    auto work = [&] { CHECK(tally_enqueue_shared(r.device, &s->problem, &call)); };
    const double graph = slowest(r, seconds(r, 200, graph_of(r, work))),
                 calls = slowest(r, seconds(r, 200, work));
    CHECK(tally_nccl_allreduce(r.device, &s->problem, r.comm, &s->call));
    CHECK(cudaStreamSynchronize(r.stream));
    CHECK(cudaMemcpy(by_nccl, s->call.results, 16, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(value, call.results, 16, cudaMemcpyDeviceToHost));
    say(r, "exact sum, peers' memory", graph, beside);
    say(r, "exact sum, peers' memory, no graph", calls, beside);
    if (memcmp(by_nccl, value, 16) != 0) printf("rank %d: NOT THE SAME BITS\n", r.number);
}

static void latency(const Rank &r) {
    int64_t *sent = (int64_t *)memory(600);
    float *x = (float *)memory(4096);
    fill<<<1, 256, 0, r.stream>>>(x, 1024, (unsigned)r.number);
    Sum *s = make_sum(r, x, 1024);
    auto plain = [&](size_t count) {
        return slowest(r, seconds(r, 200, graph_of(r, [&, count] {
                                      CHECK(ncclAllReduce(sent, sent, count, ncclInt64, ncclSum,
                                                          r.comm, r.stream));
                                  })));
    };
    const double one = plain(1), frame = plain(68), words = plain(75);
    const double between = slowest(
        r, seconds(r, 200, graph_of(r, [&] {
                       touch<<<1, 1, 0, r.stream>>>(sent);
                       CHECK(ncclAllReduce(sent, sent, 75, ncclInt64, ncclSum, r.comm, r.stream));
                       touch<<<1, 1, 0, r.stream>>>(sent);
                   })));
    size_t bytes = 0;
    CHECK(tally_workspace(r.device, &s->problem, 1024, &bytes));
    tally_call mine = {x, nullptr, 1024, memory(bytes), bytes, r.stream, s->call.results};
    const double alone = slowest(r, seconds(r, 200, graph_of(r, [&] {
                                                CHECK(tally_enqueue(r.device, &s->problem, &mine));
                                            })));
    const double exact =
        slowest(r, seconds(r, 200, graph_of(r, [&] {
                               CHECK(tally_nccl_allreduce(r.device, &s->problem, r.comm, &s->call));
                           })));
    say(r, "ncclAllReduce, 8 bytes", one, frame);
    say(r, "ncclAllReduce, 544 bytes", frame, frame);
    say(r, "ncclAllReduce, 600 bytes: the words", words, frame);
    say(r, "  between two kernels that do nothing", between, frame);
    say(r, "exact sum of 2^10 floats, one GPU", alone, frame);
    say(r, "exact sum of 2^10 floats a GPU", exact, frame);
    steps(r, s, frame);
    shared_latency(r, s, frame);
    const double calls = slowest(r, seconds(r, 200,
                                            [&] {
                                                CHECK(ncclAllReduce(sent, sent, 68, ncclInt64,
                                                                    ncclSum, r.comm, r.stream));
                                            })),
                 exact_calls = slowest(
                     r, seconds(r, 200, [&] {
                         CHECK(tally_nccl_allreduce(r.device, &s->problem, r.comm, &s->call));
                     }));
    say(r, "ncclAllReduce, 544 bytes, no graph", calls, calls);
    say(r, "exact sum of 2^10 floats, no graph", exact_calls, calls);
}

static void rate(const Rank &r) {
    const size_t n = (size_t)1 << 30;
    float *x = (float *)memory(4 * n);
    size_t bytes = 0;
    fill<<<1024, 256, 0, r.stream>>>(x, n, (unsigned)r.number);
    Sum *s = make_sum(r, x, n);
    CHECK(tally_workspace(r.device, &s->problem, n, &bytes));
    tally_call alone = {x, nullptr, n, memory(bytes), bytes, r.stream, s->call.results};
    const double one =
        slowest(r, seconds(r, 5, [&] { CHECK(tally_enqueue(r.device, &s->problem, &alone)); }));
    const double all =
        slowest(r, seconds(r, 5, [&] {
                    CHECK(tally_nccl_allreduce(r.device, &s->problem, r.comm, &s->call));
                }));
    say(r, "exact sum, 2^30 floats, one GPU", one, one);
    say(r, "exact sum, 2^30 floats a GPU", all, one);
    if (r.number == 0)
        printf("%-36s %12.0f GB/s a GPU, %.3f of one GPU's rate\n", "", 4e-9 * (double)n / all,
               one / all);
    CHECK(cudaFree(x));
}

template <typename T>
static void gradients(const Rank &r, tally_type type, ncclDataType_t plain_type, const char *name) {
    const size_t n = (size_t)1 << 26;
    const tally_nccl_array array = {type, n, 0, 0, 0};
    size_t bytes = 0;
    T *x = (T *)memory(sizeof(T) * n), *out = (T *)memory(sizeof(T) * n);
    tally_outcome *outcome = (tally_outcome *)memory(sizeof *outcome), told;
    fill<<<1024, 256, 0, r.stream>>>(x, n, (unsigned)r.number);
    CHECK(tally_nccl_measure_array(r.device, &array, r.comm, &bytes));
    const tally_nccl_array_call call = {x, out, outcome, memory(bytes), bytes, r.stream, nullptr};
    CHECK(tally_nccl_agree_array(r.device, &array, r.comm, &call));
    tally_nccl_array_call near = call; /* the same by peers' memory */
    near.out = memory(sizeof(T) * n);
    CHECK(tally_nccl_peers_open(r.comm, r.stream, &near.peers));
    CHECK(tally_nccl_agree_array(r.device, &array, r.comm, &near));
    const double plain =
        slowest(r, seconds(r, 5, [&] {
                    CHECK(ncclAllReduce(x, out, n, plain_type, ncclSum, r.comm, r.stream));
                }));
    const double exact = slowest(
        r,
        seconds(r, 5, [&] { CHECK(tally_nccl_allreduce_array(r.device, &array, r.comm, &call)); }));
    CHECK(cudaMemcpy(&told, outcome, sizeof told, cudaMemcpyDeviceToHost));
    const double by_peers = slowest(
        r,
        seconds(r, 5, [&] { CHECK(tally_nccl_allreduce_array(r.device, &array, r.comm, &near)); }));
    std::vector<T> by_words(n), direct(n);
    CHECK(cudaMemcpy(by_words.data(), out, sizeof(T) * n, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(direct.data(), near.out, sizeof(T) * n, cudaMemcpyDeviceToHost));
    if (memcmp(by_words.data(), direct.data(), sizeof(T) * n) != 0)
        printf("rank %d: NOT THE SAME BITS\n", r.number);
    const tally_terms terms = {type, n, (unsigned)r.count, n / 512 / 16 + 8, 0, 0};
    tally_terms_sizes sizes;
    CHECK(tally_terms_measure(&terms, &sizes));
    tally_terms_call own = {};
    own.x = x, own.out = out, own.outcome = outcome, own.queue = r.stream;
    own.count = n / (size_t)r.count; /* a rank's share */
    own.bounds = memory(4 * sizes.bounds);
    own.words = memory(8 * sizes.words);
    own.spare = memory(8 * sizes.spare);
    own.workspace = memory(sizes.workspace_bytes);
    const double step[] = {
        slowest(r, seconds(r, 5, [&] { CHECK(tally_terms_bounds(r.device, &terms, &own)); })),
        slowest(r, seconds(r, 5, [&] { CHECK(tally_terms_words(r.device, &terms, &own)); })),
        slowest(r, seconds(r, 5, [&] { CHECK(tally_terms_values(r.device, &terms, &own)); }))};
    /* The messages of an exact sum, and nothing between them. */
    const size_t shard = n / (size_t)r.count, element = sizeof(T), word = 2 * element;
    const size_t rows = word * 512 * terms.spare;
    char *words = (char *)memory(word * n + rows), *to = words + word * shard * (size_t)r.number;
    const double messages = slowest(
        r, seconds(r, 5, [&] {
            CHECK(ncclAllReduce(own.bounds, own.bounds, sizes.bounds, ncclInt32, ncclMax, r.comm,
                                r.stream));
            CHECK(ncclGroupStart());
            CHECK(ncclReduceScatter(words, to, shard, word == 8 ? ncclInt64 : ncclInt32, ncclSum,
                                    r.comm, r.stream));
            CHECK(ncclAllReduce(words + word * n, words + word * n, rows / word,
                                word == 8 ? ncclInt64 : ncclInt32, ncclSum, r.comm, r.stream));
            CHECK(ncclGroupEnd());
            CHECK(ncclAllGather((char *)out + element * shard * (size_t)r.number, out,
                                element * shard, ncclInt8, r.comm, r.stream));
        }));
    CHECK(cudaFree(words));
    say(r, (std::string("ncclAllReduce, 2^26 ") + name).c_str(), plain, plain);
    say(r, (std::string("exact sums, 2^26 ") + name).c_str(), exact, plain);
    say(r, (std::string("exact sums, peers' memory, 2^26 ") + name).c_str(), by_peers, plain);
    say(r, "by NCCL: its messages alone", messages, plain);
    say(r, "  a GPU by itself: bounds", step[0], plain);
    say(r, "  words", step[1], plain);
    say(r, "  values", step[2], plain);
    if (told.status && r.number == 0)
        printf("outcome %d: %llu rows are needed\n", told.status, (unsigned long long)told.at);
    CHECK(cudaFree(x));
    CHECK(cudaFree(out));
    CHECK(cudaFree(call.workspace));
    r.all->arrive_and_wait(); /* no rank uses another's memory any more */
    tally_nccl_peers_close(near.peers);
    CHECK(cudaFree(near.out));
}

static void run(Rank r) {
    char spec[16];
    CHECK(cudaSetDevice(r.number));
    CHECK(cudaStreamCreate(&r.stream));
    snprintf(spec, sizeof spec, "cuda:%d", r.number);
    CHECK(tally_open(spec, &r.device));
    latency(r);
    rate(r);
    gradients<float>(r, TALLY_F32, ncclFloat32, "floats");
    gradients<unsigned short>(r, TALLY_BF16, ncclBfloat16, "bf16");
    gradients<unsigned short>(r, TALLY_F16, ncclFloat16, "f16");
    CHECK(cudaStreamSynchronize(r.stream));
    tally_close(r.device);
}

int main(int argc, char **argv) {
    int count = 0;
    ncclComm_t comm[64];
    std::vector<std::thread> threads;
    setenv("NCCL_NVLS_ENABLE", "0", 1);
    CHECK(cudaGetDeviceCount(&count));
    if (argc > 1) count = std::min(count, atoi(argv[1]));
    CHECK(ncclCommInitAll(comm, count, nullptr));
    std::barrier<> all(count);
    printf("%d GPUs\n", count);
    for (int i = 0; i < count; i++)
        threads.emplace_back(run, Rank{i, count, comm[i], nullptr, nullptr, &all});
    for (auto &thread : threads)
        thread.join();
    return 0;
}
