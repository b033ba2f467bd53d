/*
 * measure.h - functions of the programs here that measure CUDA devices: ending the program where a call fails, and
 * medians of seconds.
 */
#ifndef TALLY_BENCH_MEASURE_H
#define TALLY_BENCH_MEASURE_H

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#include <functional>
#include <vector>

#include "tally.h"

inline void check(cudaError_t error, const char *what) {
    if (error == cudaSuccess) return;
    std::fprintf(stderr, "%s: %s\n", what, cudaGetErrorString(error));
    std::exit(1);
}

inline void check(tally_status status) {
    if (status == TALLY_OK) return;
    std::fprintf(stderr, "tally: %s\n", tally_error());
    std::exit(1);
}

inline double seconds_of(const std::function<void()> &work) {
    const auto start = std::chrono::steady_clock::now();
    work();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

inline double median(std::vector<double> v) {
    std::sort(v.begin(), v.end());
    return v[v.size() / 2];
}

#endif
