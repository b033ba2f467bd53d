/*
 * resident.c - arrays in the memory of a GPU, over ranks, against tally_reduce() of the whole.
 *
 *   LD_LIBRARY_PATH=tests/cuda_double/lib mpirun -n P mpi_resident
 *
 * Every second rank has its part in host memory instead. The GPU is the one that libcuda.so.1 says, or its test double.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tally_mpi.h"

enum { N = 20011 };
static double x_f64[N];
static float x_f32[N];
static int32_t x_i32[N];
static int rank, ranks, wrong;

/* ---- CUDA's driver ---------------------------------------------------------------------------- */

static void *driver;
static uint64_t stream;

static void call(const char *name, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
    int (*function)(uint64_t, uint64_t, uint64_t, uint64_t);
    *(void **)&function = driver ? dlsym(driver, name) : NULL;
    const int error = function ? function(a, b, c, d) : -1;
    if (error == 0) return;
    fprintf(stderr, "rank %d: %s: %d\n", rank, name, error);
    exit(1);
}

static void *on_device(const void *from, size_t bytes) {
    uint64_t address = 0;
    call("cuMemAlloc_v2", (uint64_t)(uintptr_t)&address, bytes + 8, 0, 0);
    if (bytes == 0) return (void *)(uintptr_t)address;
    call("cuMemcpyHtoDAsync_v2", address, (uint64_t)(uintptr_t)from, bytes, stream);
    call("cuStreamSynchronize", stream, 0, 0, 0);
    return (void *)(uintptr_t)address;
}

/* ---- Compared --------------------------------------------------------------------------------- */

static void check(tally_device *device, const tally_problem *p, const void *whole, size_t n) {
    const size_t size = tally_type_size(p->type), cut = n > 3 ? n / 3 : 0; /* the last has most */
    const size_t first = cut * (size_t)rank / (size_t)ranks,
                 end = rank + 1 == ranks ? n : cut * (size_t)(rank + 1) / (size_t)ranks;
    const char *mine = (const char *)whole + first * size;
    void *x = device ? on_device(mine, (end - first) * size) : (void *)(uintptr_t)mine;
    void *y = p->op == TALLY_DOT ? x : NULL;
    tally_value alone[TALLY_VALUES_MAX], found[2][TALLY_VALUES_MAX];
    tally_mpi_request *request = NULL;
    size_t values = 0;
    tally_problem_values(p, &values);
    const tally_status want = tally_reduce(NULL, p, whole, y ? whole : NULL, n, alone);
    tally_status s[2];
    s[0] = tally_mpi_allreduce_resident(device, p, x, y, end - first, found[0], MPI_COMM_WORLD);
    s[1] = tally_mpi_iallreduce_resident(device, p, x, y, end - first, found[1], MPI_COMM_WORLD,
                                         &request);
    if (s[1] == TALLY_OK) s[1] = tally_mpi_wait(&request);
    for (int k = 0; k < 2; k++) {
        int same = s[k] == want;
        for (size_t i = 0; i < values && same && want == TALLY_OK; i++)
            same =
                found[k][i].type == alone[i].type &&
                (!alone[i].type || tally_value_bits(&found[k][i]) == tally_value_bits(&alone[i]));
        if (!same && wrong++ < 5)
            fprintf(stderr, "rank %d of %d: %s of %s, %zu elements: %d, not %d: %s\n", rank, ranks,
                    tally_op_name(p->op), tally_type_name(p->type), n, s[k], want,
                    tally_mpi_error());
    }
    if (device) call("cuMemFree_v2", (uint64_t)(uintptr_t)x, 0, 0, 0);
}

/* A state that is fed from the device in two pieces, which end in the middle of a leaf. */
static void check_feeds(tally_device *device, const tally_problem *p) {
    enum { FIRST = 7000 };
    double *x = device ? on_device(x_f64, sizeof x_f64) : x_f64;
    tally_state *state = NULL;
    tally_value alone[TALLY_VALUES_MAX], found[TALLY_VALUES_MAX];
    size_t values = 0;
    int same = tally_state_create(p, &state) == TALLY_OK &&
               tally_state_feed_resident(state, device, x, NULL, FIRST) == TALLY_OK &&
               tally_state_feed_resident(state, device, x + FIRST, NULL, N - FIRST) == TALLY_OK &&
               tally_state_value(state, found) == TALLY_OK &&
               tally_problem_values(p, &values) == TALLY_OK &&
               tally_reduce(NULL, p, x_f64, NULL, N, alone) == TALLY_OK;
    for (size_t i = 0; i < values && same; i++)
        same = tally_value_bits(&found[i]) == tally_value_bits(&alone[i]);
    if (!same && wrong++ < 5)
        fprintf(stderr, "rank %d: a state of %s: %s\n", rank, tally_op_name(p->op), tally_error());
    tally_state_destroy(state);
    if (device) call("cuMemFree_v2", (uint64_t)(uintptr_t)x, 0, 0, 0);
}

/* ---- In parts ----------------------------------------------------------------------------------- */

/* Rows, of which a rank's part is long enough to stay on the device. */
enum { ROWS = 2, PART = 33000, RANKS_MOST = 8, GROUPS = 7, MOST = ROWS * PART * RANKS_MOST };
static double rows[MOST];
static int32_t ids[MOST];
static unsigned char mask[MOST];

/* Where rank r begins, of n things that the ranks share. */
static size_t begin(size_t n, int r) {
    return n * (size_t)r / (size_t)ranks;
}

static void *brought(tally_device *device, const void *from, size_t bytes) {
    return device && from ? on_device(from, bytes) : (void *)(uintptr_t)from;
}

static void release(tally_device *device, const void *at) {
    if (device && at) call("cuMemFree_v2", (uint64_t)(uintptr_t)at, 0, 0, 0);
}

/* This rank's n elements of x, by `part`, whose arrays are the host's, against the whole. */
static void check_shape(tally_device *device, const char *what, const tally_problem *p,
                        tally_shape part, const double *x, size_t n, const tally_shape *whole) {
    void *together[TALLY_VALUES_MAX], *alone[TALLY_VALUES_MAX];
    size_t values = 0, results = 0;
    tally_problem_values(p, &values);
    tally_shape_results(whole, &results);
    for (size_t v = 0; v < values; v++) {
        together[v] = calloc(results + 1, 8);
        alone[v] = calloc(results + 1, 8);
    }
    void *mine = brought(device, x, n * sizeof *x), *y = p->op == TALLY_DOT ? mine : NULL;
    part.offsets = brought(device, part.offsets, (results + 1) * 4);
    part.ids = brought(device, part.ids, n * 4);
    part.mask = brought(device, part.mask, n);
    const tally_status want = tally_reduce_shaped(NULL, p, whole, rows, y ? rows : NULL, alone);
    const tally_status s =
        tally_mpi_allreduce_shaped_resident(device, p, &part, mine, y, together, MPI_COMM_WORLD);
    int same = s == want;
    for (size_t v = 0; v < values; v++) {
        const size_t size = tally_type_size(tally_problem_value_type(p, v));
        same = same && memcmp(together[v], alone[v], results * size) == 0;
        free(together[v]);
        free(alone[v]);
    }
    if (!same && wrong++ < 5)
        fprintf(stderr, "rank %d of %d: %s, %s: %d, not %d: %s\n", rank, ranks, what,
                tally_op_name(p->op), s, want, tally_mpi_error());
    release(device, mine);
    release(device, part.offsets);
    release(device, part.ids);
    release(device, part.mask);
}

static void check_shapes(tally_device *device, const tally_problem *p) {
    const size_t length = (size_t)PART * (size_t)ranks, a = PART * (size_t)rank, n = PART;
    const size_t all[] = {ROWS, length}, mine[] = {ROWS, n}, total = ROWS * length;
    const ptrdiff_t stride[] = {(ptrdiff_t)length, 1}, upwards[] = {1, ROWS};
    tally_shape whole = {.cut = TALLY_AXES, .dims = 2, .length = all, .axes = 1 << 1};
    tally_shape part = whole;
    part.length = mine;
    part.x_stride = part.y_stride = stride;
    check_shape(device, "rows", p, part, rows + a, (ROWS - 1) * length + n, &whole);
    part.x_stride = part.y_stride = whole.x_stride = whole.y_stride = upwards;
    check_shape(device, "columns", p, part, rows + a * ROWS, n * ROWS, &whole);

    /* Segments: of each rank its part of each, side by side. */
    int32_t ends[ROWS + 1] = {0}, all_ends[ROWS + 1] = {0};
    double *side = malloc(ROWS * n * sizeof *side + 8);
    for (size_t i = 0; i < ROWS; i++) {
        memcpy(side + i * n, rows + i * length + a, n * sizeof *side);
        ends[i + 1] = (int32_t)((i + 1) * n);
        all_ends[i + 1] = (int32_t)((i + 1) * length);
    }
    whole = (tally_shape){.cut = TALLY_SEGMENTS,
                          .n = total,
                          .count = ROWS,
                          .offsets = all_ends,
                          .offsets_type = TALLY_I32};
    part = whole;
    part.n = ROWS * n;
    part.offsets = ends;
    check_shape(device, "segments", p, part, side, part.n, &whole);
    part.offsets = whole.offsets = NULL;
    if (p->op == TALLY_SUM)
        check_shape(device, "segments of one length", p, part, side, part.n, &whole);
    free(side);

    if (p->op != TALLY_ARGMAX && p->op != TALLY_DESCRIBE) {
        whole = (tally_shape){.cut = TALLY_GROUPS,
                              .dims = 2,
                              .length = all,
                              .axes = 1 << 1,
                              .n = length,
                              .count = GROUPS,
                              .ids = ids,
                              .ids_type = TALLY_I32,
                              .skip_outside = 1};
        part = whole;
        part.n = n;
        part.length = mine;
        part.x_stride = part.y_stride = stride;
        part.ids = ids + a;
        check_shape(device, "groups along an axis", p, part, rows + a, (ROWS - 1) * length + n,
                    &whole);
    }
    if (p->op != TALLY_SUM && p->op != TALLY_DESCRIBE) return;
    const size_t first = begin(total, rank);
    whole = (tally_shape){.cut = TALLY_GROUPS,
                          .n = total,
                          .count = GROUPS,
                          .ids = ids,
                          .ids_type = TALLY_I32,
                          .skip_outside = 1,
                          .mask = mask};
    part = whole;
    part.n = begin(total, rank + 1) - first;
    part.ids = ids + first;
    part.mask = mask + first;
    check_shape(device, "groups", p, part, rows + first, part.n, &whole);
}

/* Offsets that fall, on one rank. */
static void check_bad_shape(tally_device *device) {
    const int32_t good[] = {0, 40000, 80000}, bad[] = {0, 90000, 80000};
    double out[2];
    void *x = brought(device, rows, sizeof rows),
         *offsets = brought(device, rank == ranks - 1 ? bad : good, sizeof good);
    const tally_shape shape = {.cut = TALLY_SEGMENTS,
                               .n = 80000,
                               .count = 2,
                               .offsets = offsets,
                               .offsets_type = TALLY_I32};
    const tally_status s = tally_mpi_allreduce_shaped_resident(
        device, &(tally_problem){.op = TALLY_SUM, .type = TALLY_F64}, &shape, x, NULL,
        (void *[]){out}, MPI_COMM_WORLD);
    if (s != TALLY_EINVAL && wrong++ < 5) fprintf(stderr, "offsets that fall: %d\n", s);
    release(device, x);
    release(device, offsets);
}

int main(int argc, char **argv) {
    static const size_t lengths[] = {0, 2, 5000, N};
    tally_device *device = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    for (int i = 0; i < N; i++) {
        x_i32[i] = i % 201 - 100;
        x_f64[i] = (1 + i % 1000 * 1e-9) * (i % 3 ? 1 : -1);
        x_f32[i] = (float)x_f64[i];
    }
    if (rank % 2 == 0) {
        uint64_t context = 0;
        driver = dlopen("libcuda.so.1", RTLD_NOW);
        call("cuInit", 0, 0, 0, 0);
        call("cuDevicePrimaryCtxRetain", (uint64_t)(uintptr_t)&context, 0, 0, 0);
        call("cuCtxPushCurrent_v2", context, 0, 0, 0);
        call("cuStreamCreate", (uint64_t)(uintptr_t)&stream, 1, 0, 0);
        if (tally_open("cuda:0", &device) != TALLY_OK) {
            fprintf(stderr, "rank %d: %s\n", rank, tally_error());
            return 1;
        }
    }
    for (int op = TALLY_SUM; op < TALLY_USER; op++)
        for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            check(device, &(tally_problem){.op = (tally_op)op, .type = TALLY_F64}, x_f64,
                  lengths[i]);
            check(device,
                  &(tally_problem){.op = (tally_op)op, .type = i % 2 ? TALLY_F32 : TALLY_I32},
                  i % 2 ? (void *)x_f32 : (void *)x_i32, lengths[i]);
        }
    check_feeds(device, &(tally_problem){.op = TALLY_DESCRIBE, .type = TALLY_F64});
    check_feeds(device, &(tally_problem){.op = TALLY_PROD, .type = TALLY_F64});
    for (int i = 0; i < MOST; i++) {
        rows[i] = (1 + i % 1013 * 1e-7) * (i % 3 ? 1 : -1);
        ids[i] = i * 31 % (GROUPS + 2) - 1;
        mask[i] = i % 5 != 0;
    }
    for (int i = 0; i < 6; i++)
        check_shapes(device, (tally_problem[]){
                                 {.op = TALLY_SUM, .type = TALLY_F64},
                                 {.op = TALLY_DOT, .type = TALLY_F64},
                                 {.op = TALLY_MEAN, .type = TALLY_F64, .also = {TALLY_MIN}},
                                 {.op = TALLY_ARGMAX, .type = TALLY_F64},
                                 {.op = TALLY_PROD, .type = TALLY_F64},
                                 {.op = TALLY_DESCRIBE, .type = TALLY_F64},
                             } + i);
    check_bad_shape(device);
    /* What is wrong on one rank: memory that is no device's, and a NULL. */
    const tally_problem sum = {.op = TALLY_SUM, .type = TALLY_F64};
    tally_value value = {.type = (tally_type)99};
    tally_status s = tally_mpi_allreduce_resident(device, &sum, device ? NULL : x_f64, NULL, 100,
                                                  &value, MPI_COMM_WORLD);
    if (s != TALLY_EINVAL || value.type != (tally_type)99) wrong++;
    int all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) puts(all ? "wrong" : "right");
    tally_close(device);
    MPI_Finalize();
    return all != 0;
}
