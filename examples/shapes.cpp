/*
 * shapes.cpp - Tally from C++: the means of a table's rows, and the sum and the largest of each order's lines.
 *
 *     c++ -std=c++17 shapes.cpp $(pkg-config --cflags --libs tally) && ./a.out
 */
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <tally.h>
#include <vector>

static void check(tally_status s) {
    if (s != TALLY_OK) throw std::runtime_error(tally_error());
}

struct closes {
    void operator()(tally_device *device) const {
        tally_close(device);
    }
};
using device_handle = std::unique_ptr<tally_device, closes>;

static device_handle open_device(const char *spec) {
    tally_device *device = nullptr;
    check(tally_open(spec, &device));
    return device_handle(device);
}

/* Returns the mean of each row of a table in C order. */
static std::vector<double> row_means(tally_device *device, const std::vector<double> &x,
                                     size_t columns) {
    const size_t length[] = {x.size() / columns, columns};
    tally_problem mean = TALLY_DEFAULTS;
    mean.op = TALLY_MEAN;
    mean.type = TALLY_F64;
    tally_shape rows = TALLY_DEFAULTS;
    rows.cut = TALLY_AXES;
    rows.dims = 2;
    rows.length = length;
    rows.axes = 1 << 1;
    std::vector<double> means(length[0]);
    void *const out[] = {means.data()};
    check(tally_reduce_shaped(device, &mean, &rows, x.data(), nullptr, out));
    return means;
}

struct totals {
    std::vector<double> sum, largest;
};

/* Returns the sum and the largest element of each segment, of which segment i begins at offsets[i]. */
static totals segment_totals(tally_device *device, const std::vector<double> &x,
                             const std::vector<int64_t> &offsets) {
    tally_problem problem = TALLY_DEFAULTS;
    problem.op = TALLY_SUM;
    problem.type = TALLY_F64;
    problem.also[0] = TALLY_MAX; /* in the same pass */
    tally_shape segments = TALLY_DEFAULTS;
    segments.cut = TALLY_SEGMENTS;
    segments.n = x.size();
    segments.count = offsets.size() - 1;
    segments.offsets = offsets.data();
    totals t{std::vector<double>(segments.count), std::vector<double>(segments.count)};
    void *const out[] = {t.sum.data(), t.largest.data()};
    check(tally_reduce_shaped(device, &problem, &segments, x.data(), nullptr, out));
    return t;
}

int main() {
    try {
        const device_handle device = open_device("cpu");
        const std::vector<double> table = {1e16, 1, -1e16, 2, 0.1, 0.2, 0.3, 0.4};
        for (double mean : row_means(device.get(), table, 4))
            std::printf("row mean %g\n", mean);

        const totals t = segment_totals(device.get(), table, {0, 3, 4, 8});
        for (size_t i = 0; i < t.sum.size(); i++)
            std::printf("segment %zu: sum %g, largest %g\n", i, t.sum[i], t.largest[i]);
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
