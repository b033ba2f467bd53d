/*
 * host_arrays.cu - arrays in host memory on the CUDA devices here, and one array that lies on all of them.
 *
 * `make bench-gpu-host` builds it against libtally and runs it: exact sums of f32 in ordinary memory, 2^20 ... 2^31 bytes, by
 * tally_reduce() on "cuda:0" and, where there are several, on "cuda:all"; beside the rate at which the bus brings pinned
 * memory to the device, and the CPU. Then, where there are several devices, arrays of 2^30 bytes on each, by
 * tally_reduce_distributed(). GB/s, medians of 9 in turn. All sums have to have the same bits.
 *
 *   host_arrays [POWER]
 */
#include <cstring>

#include "measure.h"

enum { RUNS = 9 };
static const size_t PINNED = (size_t)64 << 20;

static const tally_problem sum = {TALLY_SUM, TALLY_F32};

/* Returns the sum's bits. Ends the program if they are not `known`, unless that is 0. */
static uint64_t sum_on(tally_device *device, const float *x, size_t n, uint64_t known) {
    tally_value value;
    check(tally_reduce(device, &sum, x, nullptr, n, &value));
    const uint64_t bits = tally_value_bits(&value);
    if (known == 0 || bits == known) return bits;
    std::fprintf(stderr, "other bits: %llx, not %llx\n", (unsigned long long)bits,
                 (unsigned long long)known);
    std::exit(1);
}

/* Copies `bytes` bytes of pinned memory to the device. */
static void copy_pinned(void *to, const void *pinned, size_t bytes) {
    for (size_t left = bytes; left > 0; left -= std::min(left, PINNED))
        check(cudaMemcpyAsync(to, pinned, std::min(left, PINNED), cudaMemcpyHostToDevice),
              "copying");
    check(cudaDeviceSynchronize(), "copying");
}

static void from_the_host(const std::vector<tally_device *> &devices, const float *x,
                          unsigned most) {
    void *there, *pinned;
    check(cudaSetDevice(0), "device 0");
    check(cudaMalloc(&there, PINNED), "memory");
    check(cudaMallocHost(&pinned, PINNED), "pinned memory");
    std::memcpy(pinned, x, PINNED);
    std::printf("bytes     pinned      cpu   cuda:0  /pinned  %s\n",
                devices.size() > 2 ? "cuda:all  /pinned" : "");
    for (unsigned power = 20; power <= most; power++) {
        const size_t bytes = (size_t)1 << power;
        std::vector<std::vector<double>> took(devices.size() + 1);
        uint64_t bits = 0;
        for (unsigned run = 0; run <= RUNS; run++) { /* the first warms up */
            double s = seconds_of([&] { copy_pinned(there, pinned, bytes); });
            if (run > 0) took[0].push_back(s);
            for (size_t d = 0; d < devices.size(); d++) {
                s = seconds_of([&] { bits = sum_on(devices[d], x, bytes / 4, bits); });
                if (run > 0) took[d + 1].push_back(s);
            }
        }
        const double pinned_rate = (double)bytes / median(took[0]) / 1e9;
        std::printf("2^%-6u %8.1f %8.1f", power, pinned_rate,
                    (double)bytes / median(took[1]) / 1e9);
        for (size_t d = 2; d < took.size(); d++) {
            const double rate = (double)bytes / median(took[d]) / 1e9;
            std::printf(" %8.1f %8.2f", rate, rate / pinned_rate);
        }
        std::printf("\n");
    }
    check(cudaFree(there), "giving memory back");
    check(cudaFreeHost(pinned), "giving memory back");
}

static void on_all(tally_device *cpu, tally_device *all, int count, const float *x, size_t bytes) {
    std::vector<tally_stretch> stretches((size_t)count);
    tally_value value;
    for (int i = 0; i < count; i++) {
        check(cudaSetDevice(i), "a device");
        check(cudaMalloc(&stretches[(size_t)i].x, bytes), "memory");
        check(cudaMemcpy(stretches[(size_t)i].x, x, bytes, cudaMemcpyHostToDevice), "copying");
        stretches[(size_t)i].n = bytes / 4;
    }
    std::vector<double> took;
    for (unsigned run = 0; run <= RUNS; run++) {
        const double s = seconds_of([&] {
            check(tally_reduce_distributed(all, &sum, stretches.data(), stretches.size(), &value));
        });
        if (run > 0) took.push_back(s);
    }
    tally_state *state;
    tally_value wanted;
    check(tally_state_create(&sum, &state));
    for (int i = 0; i < count; i++)
        check(tally_state_feed(state, cpu, x, nullptr, bytes / 4));
    check(tally_state_value(state, &wanted));
    tally_state_destroy(state);
    if (tally_value_bits(&value) != tally_value_bits(&wanted)) {
        std::fprintf(stderr, "other bits on %d devices\n", count);
        std::exit(1);
    }
    const double whole = (double)bytes * count;
    std::printf("%.0f bytes on %d devices: %.1f GB/s\n", whole, count, whole / median(took) / 1e9);
    for (int i = 0; i < count; i++) {
        check(cudaSetDevice(i), "a device");
        check(cudaFree(stretches[(size_t)i].x), "giving memory back");
    }
}

int main(int argc, char **argv) {
    const unsigned most = argc > 1 ? (unsigned)std::atoi(argv[1]) : 31;
    const size_t n = std::max((size_t)1 << most, PINNED) / 4;
    std::vector<float> x(n);
    std::vector<tally_device *> devices(2);
    tally_device_info info;
    int count = 0;
    for (size_t i = 0; i < n; i++)
        x[i] = (float)((i * 2654435761u >> 8) % 16777216u) / 16777216.0f;
    check(cudaGetDeviceCount(&count), "devices");
    check(tally_open("cpu", &devices[0]));
    check(tally_open("cuda:0", &devices[1]));
    check(tally_device_describe(devices[1], &info));
    std::printf("%d of %s; f32, exact sums; GB/s\n", count, info.name);
    if (count > 1) {
        devices.push_back(nullptr);
        check(tally_open("cuda:all", &devices[2]));
    }
    from_the_host(devices, x.data(), most);
    if (count > 1)
        on_all(devices[0], devices[2], count, x.data(), std::min((size_t)1 << 30, n * 4));
    for (tally_device *device : devices)
        tally_close(device);
    return 0;
}
