/*
 * test_cuda_device.c - "cuda:0" through the public calls, on the test doubles of CUDA
 * (tests/cuda_double): the CPU's bits for every operator and type, and for each call of the driver that
 * may fail a clear status, nothing left behind, and a device that works again. This shows nothing about
 * a GPU.
 */
#include "../c/testing.h"
#include "../share.h"

#include "cuda/driver.h"

#include <dlfcn.h>
#include <pthread.h>

/* The driver's double as the test itself calls it; the library finds its own way to it. */
static struct cuda_driver driver;
static size_t (*objects)(void), (*holders)(void), (*depth)(void), (*failures)(void);

static void load(void *library, const char *name, void *out) {
    void *address = dlsym(library, name);
    if (!address) {
        printf("there is no %s; run this with LD_LIBRARY_PATH=" TALLY_CUDA_DOUBLE "\n", name);
        exit(1);
    }
    memcpy(out, &address, sizeof address);
}

static void load_double(void) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    load(library, "tally_cuda_double_objects", &objects);
    load(library, "tally_cuda_double_holders", &holders);
    load(library, "tally_cuda_double_depth", &depth);
    load(library, "tally_cuda_double_failures", &failures);
#define LOAD(name, suffix, parameters) load(library, #name #suffix, &driver.name);
    CUDA_CALLS(LOAD)
#undef LOAD
}

static void fail_at(const char *call, unsigned which, int error) {
    char rule[80];
    snprintf(rule, sizeof rule, "%s:%u:%d", call, which, error);
    setenv("TALLY_CUDA_DOUBLE_FAIL", rule, 1);
}

static void heal(void) {
    unsetenv("TALLY_CUDA_DOUBLE_FAIL");
}

static tally_device *opened(const char *spec) {
    tally_device *device = NULL;
    assert_ok(tally_open(spec, &device));
    return device;
}

/* ---- The test's own part in the primary context --------------------------------------------- */

/* Somebody else in the process uses the context, as is usual. Without that, a context that ends would
 * take with it whatever the library forgot. */
static CUcontext context;

static void hold_context(void) {
    assert_int_equal(driver.cuInit(0), 0);
    assert_int_equal(driver.cuDevicePrimaryCtxRetain(&context, 0), 0);
}

static void let_go_of_context(void) {
    assert_int_equal(driver.cuDevicePrimaryCtxRelease(0), 0);
}

#define LEAD 8 /* bytes before what is placed, so that it is aligned to elements and to no more */

/* A copy of bytes[0..size) in the device's memory. */
static CUdeviceptr place(const unsigned char *bytes, size_t size) {
    CUdeviceptr address = 0;
    CUstream stream = NULL;
    CUcontext ours;
    assert_int_equal(driver.cuCtxPushCurrent(context), 0);
    assert_int_equal(driver.cuMemAlloc(&address, LEAD + size), 0);
    assert_int_equal(driver.cuStreamCreate(&stream, 0), 0);
    assert_int_equal(driver.cuMemcpyHtoDAsync(address + LEAD, bytes, size, stream), 0);
    assert_int_equal(driver.cuStreamSynchronize(stream), 0);
    assert_int_equal(driver.cuStreamDestroy(stream), 0);
    assert_int_equal(driver.cuCtxPopCurrent(&ours), 0);
    return address + LEAD;
}

/* Where the context was lost in between, the memory is gone already. */
static void displace(CUdeviceptr address) {
    CUcontext ours;
    assert_int_equal(driver.cuCtxPushCurrent(context), 0);
    driver.cuMemFree(address - LEAD);
    assert_int_equal(driver.cuCtxPopCurrent(&ours), 0);
}

/* The library has nothing any more, but the test its hold. */
static void check_nothing_left(void) {
    assert_int_equal(objects(), 0);
    assert_int_equal(holders(), 1);
    assert_int_equal(depth(), 0);
}

/* ---- Jobs ------------------------------------------------------------------------------------ */

enum how { ARRAY, FAST, STREAM, RESIDENT, USER };

/* A reduction of the first n elements of data[]. */
struct job {
    enum how how;
    tally_op op; /* USER: which of users[] */
    tally_type type;
    size_t n;
};

/* What there is to reduce, in the type that was asked for last; somewhat off alignment. */
static unsigned char memory[(3 << 19) + 64], *const data = memory + 8;

static bool is_float(tally_type type) {
    return type >= TALLY_F16;
}

/* `value`, a small whole number, as an element. */
static void put(tally_type type, size_t i, int value) {
    static const uint64_t one[] = {[TALLY_F16] = 0x3c00, [TALLY_BF16] = 0x3f80};
    uint64_t bits = (uint64_t)(int64_t)value;
    const float f = (float)value;
    const double d = value;
    if (type == TALLY_F32) memcpy(&bits, &f, 4);
    if (type == TALLY_F64) memcpy(&bits, &d, 8);
    if (type == TALLY_F16 || type == TALLY_BF16) /* 1, -1 and 0 will do */
        bits = value == 0 ? 0 : one[type] | (value < 0 ? 0x8000 : 0);
    memcpy(data + i * tally_type_size(type), &bits, tally_type_size(type));
}

static bool is_unsigned(tally_type type) {
    return type >= TALLY_U8 && type <= TALLY_U64;
}

/* 1 and -1, and of unsigned numbers 1 and a few 3: a product in range. */
static int factor(tally_type type, size_t i, unsigned random) {
    if (is_unsigned(type)) return i < 300 && i % 70 == 5 ? 3 : 1;
    return random % 2 ? 1 : -1;
}

/* Whole numbers from -3 to 3, or 0 to 6, but for products others: what has to be exact is in range. */
static void fill_small(tally_op op, tally_type type, size_t n) {
    uint64_t state = n;
    for (size_t i = 0; i < n; i++) {
        const unsigned r = (unsigned)(next_random(&state) >> 40);
        const int term = (int)(r % 7) - (is_unsigned(type) ? 0 : 3);
        put(type, i, op == TALLY_PROD ? factor(type, i, r) : term);
    }
}

/* Any bits at all; of floats no more than a few are infinite or no numbers, and mostly none. */
static void fill_wild(tally_type type, size_t n, bool specials) {
    static const unsigned char top[] = {
        [TALLY_F16] = 0x7c, [TALLY_BF16] = 0x7f, [TALLY_F32] = 0x7f, [TALLY_F64] = 0x7f};
    const size_t size = tally_type_size(type);
    uint64_t state = 3 * n + type;
    for (size_t i = 0; i < n; i++) {
        const uint64_t bits = next_random(&state);
        unsigned char *at = data + i * size;
        memcpy(at, &bits, size);
        if (is_float(type) && (at[size - 1] & top[type]) == top[type] && !specials)
            at[size - 1] &= (unsigned char)~0x44;
    }
}

static void modular(void *context_, const void *left, const void *right, void *out, size_t count) {
    const int64_t *a = left, *b = right;
    int64_t *c = out;
    (void)context_;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] * b[i] % 1000003;
}

static void last(void *context_, const void *left, const void *right, void *out, size_t count) {
    (void)context_, (void)left;
    memmove(out, right, count * 4);
}

static void halves(void *context_, const void *left, const void *right, void *out, size_t count) {
    const float *a = left, *b = right;
    float *c = out;
    (void)context_;
    for (size_t i = 0; i < count; i++)
        c[i] = a[i] * 0.5f + b[i];
}

static const int64_t zero, unit = 1;
static const tally_operator users[] = {
    {.combine = modular, .identity = &unit, .commutative = 1, .source = "a * b % 1000003"},
    {.combine = last, .identity = &zero, .source = "b"},
    {.combine = halves, .identity = &zero, .source = "a * 0.5f\n + b"},
};

static tally_status run_stream(tally_device *device, const struct job *job, tally_value *out) {
    const size_t size = tally_type_size(job->type);
    tally_state *fed = NULL;
    tally_status s = tally_state_create(ASK(job->op, job->type), &fed);
    for (size_t at = 0, m = 1; at < job->n && s == TALLY_OK; at += m, m = 4097) {
        if (m > job->n - at) m = job->n - at;
        s = tally_state_feed(fed, device, data + at * size, NULL, m);
    }
    if (s == TALLY_OK) s = tally_state_value(fed, out);
    tally_state_destroy(fed);
    return s;
}

/* `address`: where data[] lies on the device, for RESIDENT. */
static tally_status run(tally_device *device, const struct job *job, CUdeviceptr address,
                        tally_value *out) {
    switch (job->how) {
    case STREAM:
        return run_stream(device, job, out);
    case RESIDENT:
        if (!device) break;
        return tally_reduce_resident(device, ASK(job->op, job->type), (void *)(uintptr_t)address,
                                     NULL, job->n, out);
    case USER:
        return tally_reduce(device, ASK(TALLY_USER, job->type, .user = &users[job->op]), data, NULL,
                            job->n, out);
    case ARRAY:
    case FAST:
        break;
    }
    return tally_reduce(device, ASK(job->op, job->type, .fast = job->how == FAST), data, NULL,
                        job->n, out);
}

/* The same with data[] on the device for as long as the call takes. */
static tally_status run_whole(tally_device *device, const struct job *job, tally_value *out) {
    if (job->how != RESIDENT) return run(device, job, 0, out);
    const CUdeviceptr address = place(data, job->n * tally_type_size(job->type));
    const tally_status s = run(device, job, address, out);
    displace(address);
    return s;
}

static const char *title(const struct job *job) {
    static char text[80];
    static const char *const how[] = {"array", "fast", "stream", "resident", "user"};
    snprintf(text, sizeof text, "%s %s of %zu %s", how[job->how],
             job->how == USER ? users[job->op].source : tally_op_name(job->op), job->n,
             tally_type_name(job->type));
    return text;
}

/* Fails unless `got`, which `s` came with, is what the calling thread alone makes of the job. */
static void check_result(const struct job *job, tally_status s, const tally_value *got) {
    tally_value want;
    const tally_status wanted = run(NULL, job, 0, &want);
    if (s != wanted)
        fail_msg("%s: %s; the CPU says: %s (%s)", title(job), tally_status_text(s),
                 tally_status_text(wanted), tally_error());
    if (s == TALLY_OK &&
        (got->type != want.type || tally_value_bits(got) != tally_value_bits(&want)))
        fail_msg("%s: %016llx, but the CPU's is %016llx", title(job),
                 (unsigned long long)tally_value_bits(got),
                 (unsigned long long)tally_value_bits(&want));
}

static void check_like_cpu(tally_device *device, const struct job *job) {
    tally_value got;
    check_result(job, run_whole(device, job, &got), &got);
}

/* ---- The CPU's bits -------------------------------------------------------------------------- */

/* Small numbers and any bits, the latter also with infinities and NaNs among them. */
static void check_kinds(tally_device *device, const struct job *job) {
    fill_small(job->op, job->type, job->n);
    check_like_cpu(device, job);
    if (job->how == FAST) return; /* promises nothing of rounding */
    for (int specials = 0; specials <= is_float(job->type); specials++) {
        fill_wild(job->type, job->n, specials);
        check_like_cpu(device, job);
    }
}

static void check_all(const char *spec, enum how how, const size_t *lengths, size_t count) {
    tally_device *device = opened(spec);
    for (tally_op op = TALLY_SUM; op <= TALLY_XOR; op++)
        for (tally_type type = TALLY_I8; type <= TALLY_F64; type++)
            for (size_t i = 0; i < count; i++) {
                const struct job job = {how, op, type, lengths[i] / tally_type_size(type)};
                if (how == FAST && (op != TALLY_SUM || !is_float(type))) continue;
                check_kinds(device, &job);
            }
    tally_close(device);
    check_nothing_left();
}

/* Lengths in bytes: one element or none, around a pack, a warp's packs, a block's tile, several blocks'. */
static const size_t lengths[] = {1, 8, 24, 16 * 33, 16384 - 8, 16384 + 8, 70008};
#define LENGTHS (sizeof lengths / sizeof *lengths)

static void arrays(void **state) {
    (void)state;
    check_all("cuda:0", ARRAY, lengths, LENGTHS);
    check_all("cuda", FAST, lengths, LENGTHS);
}

static void streams(void **state) {
    static const size_t some[] = {24, 40008};
    (void)state;
    check_all("cuda:0", STREAM, some, 2);
}

static void resident(void **state) {
    (void)state;
    check_all("cuda:0", RESIDENT, lengths + 1, LENGTHS - 1);
}

static void check_memory_refused(tally_device *device, tally_status wanted, CUdeviceptr address) {
    tally_value got;
    check_error(tally_reduce_resident(device, ASK(TALLY_SUM, TALLY_F32), (void *)(uintptr_t)address,
                                      NULL, 9, &got),
                wanted, "tally_reduce_resident()");
}

static void foreign_memory(void **state) {
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_DEVICES", "2", 1);
    tally_device *device = opened("cuda:0"), *other = opened("cuda:1");
    const CUdeviceptr address = place(data, 100);
    check_memory_refused(device, TALLY_EINVAL, 0);
    check_memory_refused(device, TALLY_EINVAL, address + 1);
    check_memory_refused(device, TALLY_EUNSUPPORTED, (CUdeviceptr)(uintptr_t)data);
    check_memory_refused(other, TALLY_EUNSUPPORTED, address);
    tally_close(other);
    tally_close(device);
    displace(address);
    unsetenv("TALLY_CUDA_DOUBLE_DEVICES");
    check_nothing_left();
}

/* In pieces: 1 MiB is all of the device that is used, and a quarter of it the most of a piece. */
static void larger_than_memory(void **state) {
    static const size_t length = (1 << 20) + (1 << 17) + 8;
    (void)state;
    tally_device *device = opened("cuda:0,memory=1M");
    for (tally_op op = TALLY_SUM; op <= TALLY_XOR; op++)
        for (tally_type type = TALLY_I8; type <= TALLY_F64; type++) {
            const struct job job = {ARRAY, op, type, length / tally_type_size(type)};
            if (is_float(type))
                fill_wild(type, job.n, false);
            else
                fill_small(op, type, job.n);
            check_like_cpu(device, &job);
        }
    tally_close(device);
    check_nothing_left();
}

static void operators(void **state) {
    static const size_t counts[] = {0, 1, 33, 4097, 20000};
    static const tally_type types[] = {TALLY_I64, TALLY_I32, TALLY_F32};
    tally_value got;
    (void)state;
    tally_device *device = opened("cuda:0");
    for (unsigned u = 0; u < 3; u++)
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            const struct job job = {USER, (tally_op)u, types[u], counts[i]};
            fill_small(TALLY_SUM, job.type, job.n);
            check_like_cpu(device, &job);
        }
    tally_operator op = users[2];
    op.source = "a +\n foo(b)";
    assert_error(TALLY_ECOMPILE, tally_reduce(device, ASK(TALLY_USER, TALLY_F32, .user = &op), data,
                                              NULL, 5, &got));
    assert_non_null(strstr(tally_error(), "operator(2)"));
    assert_non_null(strstr(tally_error(), "foo"));
    op.source = NULL;
    assert_error(TALLY_EUNSUPPORTED, tally_reduce(device, ASK(TALLY_USER, TALLY_F32, .user = &op),
                                                  data, NULL, 5, &got));
    op.source = "a";
    assert_error(TALLY_EUNSUPPORTED, tally_reduce(device, ASK(TALLY_USER, TALLY_F16, .user = &op),
                                                  data, NULL, 5, &got));
    tally_close(device);
    check_nothing_left();
}

/* ---- Every call fails ------------------------------------------------------------------------ */

/* Calls that a reduction cannot do without: were one's failure overlooked, the result could be right
 * only by luck. */
static const char must_be_told[] = " cuStreamSynchronize cuMemcpyHtoDAsync cuMemcpyDtoHAsync "
                                   "cuMemsetD8Async cuLaunchKernel cuModuleGetFunction ";
/* Calls that give something back, */
static const char gives_back[] =
    " cuMemFree cuMemFreeHost cuModuleUnload cuStreamDestroy cuEventDestroy "
    "cuDevicePrimaryCtxRelease ";
/* and calls before and after all others: without the first, nothing can be given back, and a failure of
 * the second hides that something was made. */
static const char around[] = " cuCtxPushCurrent cuCtxPopCurrent ";

static bool is_among(const char *list, const char *call) {
    char word[64];
    snprintf(word, sizeof word, " %s ", call);
    return strstr(list, word) != NULL;
}

struct failure {
    const char *call;
    unsigned which;
    int error;
};

static void check_status(const struct job *job, const struct failure *f, tally_status s) {
    const tally_status wanted = f->error == CUDA_ERROR_OUT_OF_MEMORY ? TALLY_ENOMEM : TALLY_ELOST;
    const char *text = tally_error();
    if (s != wanted)
        fail_msg("%s: error %d of call %u of %s comes to: %s", title(job), f->error, f->which,
                 f->call, tally_status_text(s));
    if (!*text || strchr(text, '\n') || !strstr(text, "cuda:0"))
        fail_msg("%s: error %d of call %u of %s leaves \"%s\"", title(job), f->error, f->which,
                 f->call, text);
}

static void check_untouched(const struct job *job, const struct failure *f,
                            const tally_value *got) {
    tally_value filled;
    memset(&filled, 0xa5, sizeof filled);
    if (memcmp(&filled, got, sizeof filled) != 0)
        fail_msg("%s: error %d of call %u of %s writes a result", title(job), f->error, f->which,
                 f->call);
}

static void check_healthy(tally_device *device, const struct job *job, const struct failure *f) {
    tally_value got;
    const tally_status s = run(device, job, 0, &got);
    if (s != TALLY_OK)
        fail_msg("%s: after error %d of call %u of %s: %s", title(job), f->error, f->which, f->call,
                 tally_error());
    check_result(job, s, &got);
}

/* The call failed, or could do without what failed. The device is as good as new. */
static void check_outcome(tally_device *device, const struct job *job, const struct failure *f,
                          tally_status s, const tally_value *got, bool told) {
    const struct job plain = {ARRAY, TALLY_SUM, TALLY_I32, 100};
    if (s == TALLY_OK) {
        if (told && is_among(must_be_told, f->call))
            fail_msg("%s: error %d of call %u of %s went unnoticed", title(job), f->error, f->which,
                     f->call);
        check_result(job, s, got);
        return;
    }
    check_status(job, f, s);
    check_untouched(job, f, got);
    heal();
    if (device) check_healthy(device, job->how == RESIDENT ? &plain : job, f);
}

/* What such a call leaves behind, nobody can give back: begins anew, in a context without it. */
static void forgive(const struct failure *f) {
    if (!is_among(gives_back, f->call) && !is_among(around, f->call)) return;
    for (size_t i = holders(); i > 0; i--)
        let_go_of_context();
    hold_context();
}

/* Once a device has come and gone, and another one after it. */
static void check_leftovers(const struct job *job, const struct failure *f) {
    if (objects() > 0 || holders() != 1 || depth() > 0)
        fail_msg("%s: error %d of call %u of %s leaves %zu objects, %zu holders, %zu contexts",
                 title(job), f->error, f->which, f->call, objects(), holders() - 1, depth());
}

/* Opens, runs the job and closes while one call fails; says whether that call came about. */
static bool run_failing(const char *spec, const struct job *job, const struct failure *f) {
    const CUdeviceptr address =
        job->how == RESIDENT ? place(data, job->n * tally_type_size(job->type)) : 0;
    tally_device *device = NULL, *next;
    tally_value got;
    const size_t before = failures();
    memset(&got, 0xa5, sizeof got);
    fail_at(f->call, f->which, f->error);
    tally_status s = tally_open(spec, &device);
    if (s == TALLY_OK) s = run(device, job, address, &got);
    const bool told = failures() > before;
    check_outcome(device, job, f, s, &got, told);
    tally_close(device);
    const bool failed = failures() > before;
    heal();
    if (address) displace(address);
    forgive(f);

    assert_ok(tally_open(spec, &next));
    assert_ok(run_whole(next, job, &got));
    check_result(job, TALLY_OK, &got);
    tally_close(next);
    check_leftovers(job, f);
    return failed;
}

/* Each call fails each time that it is made, in turn for one of three reasons; which one is first, `turn` says. */
static unsigned every_failure(const char *spec, const struct job *job, unsigned turn) {
    static const char *const calls[] = {
#define NAME(name, suffix, parameters) #name,
        CUDA_CALLS(NAME)
#undef NAME
    };
    static const int errors[] = {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_LAUNCH_FAILED, 12345};
    unsigned count = 0;
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++) {
        struct failure f = {calls[c], 1, errors[turn % 3]};
        while (run_failing(spec, job, &f)) {
            count++;
            f.error = errors[(turn + f.which++) % 3];
        }
    }
    return count;
}

/* Which reason comes first: another one each run, or TALLY_SEED. */
static unsigned first_reason(void) {
    const char *seed = getenv("TALLY_SEED");
    const unsigned first = seed ? (unsigned)strtoul(seed, NULL, 10) : (unsigned)time(NULL);
    print_message("TALLY_SEED=%u\n", first);
    return first % 3;
}

static void check_failures(const char *spec, const struct job *job, unsigned turn) {
    if (job->how == USER)
        fill_small(TALLY_SUM, job->type, job->n);
    else
        fill_small(job->op, job->type, job->n);
    const unsigned count = every_failure(spec, job, turn);
    print_message("%s: %u failures\n", title(job), count);
    assert_true(count > 10);
    check_nothing_left();
}

static void every_call_fails(void **state) {
    static const struct job jobs[] = {
        {ARRAY, TALLY_SUM, TALLY_F32, 300},
        {ARRAY, TALLY_SUM, TALLY_I16, 300},
        {ARRAY, TALLY_PROD, TALLY_U64, 300},
        {ARRAY, TALLY_MAX, TALLY_F64, 300},
        {ARRAY, TALLY_XOR, TALLY_U8, 300},
        {ARRAY, TALLY_PROD, TALLY_BF16, 9000},
        {FAST, TALLY_SUM, TALLY_F64, 300},
        {STREAM, TALLY_SUM, TALLY_F16, 4200},
        {STREAM, TALLY_PROD, TALLY_F32, 300},
        {RESIDENT, TALLY_SUM, TALLY_F64, 300},
        {RESIDENT, TALLY_MIN, TALLY_I8, 300},
        {RESIDENT, TALLY_PROD, TALLY_F64, 9000},
        {USER, 0, TALLY_I64, 300},
    };
    const unsigned first = first_reason();
    (void)state;
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        if (is_in_share(i, 4)) check_failures("cuda:0", &jobs[i], first + (unsigned)i);
}

/* In several pieces, so that the second and third ones fail as well. */
static void every_call_fails_between_pieces(void **state) {
    static const struct job jobs[] = {{ARRAY, TALLY_SUM, TALLY_F64, 9000},
                                      {ARRAY, TALLY_AND, TALLY_U16, 40000},
                                      {ARRAY, TALLY_PROD, TALLY_F32, 20000}};
    const unsigned first = first_reason();
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_MEMORY", "100000", 1);
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        if (is_in_share(i, 3)) check_failures("cuda:0", &jobs[i], first + (unsigned)i);
    unsetenv("TALLY_CUDA_DOUBLE_MEMORY");
}

/* The driver fails, and then has no words for it. */
static void errors_without_names(void **state) {
    const struct job job = {ARRAY, TALLY_SUM, TALLY_F32, 300};
    tally_value got;
    (void)state;
    fill_small(job.op, job.type, job.n);
    tally_device *device = opened("cuda:0");
    setenv("TALLY_CUDA_DOUBLE_FAIL", "cuLaunchKernel:1:719,cuGetErrorName:1:1,cuGetErrorString:1:1",
           1);
    assert_error(TALLY_ELOST, run(device, &job, 0, &got));
    heal();
    check_like_cpu(device, &job);
    tally_close(device);
    check_nothing_left();
}

/* The read roof, and what it alone calls. */
static void read_roof(void **state) {
    static const char *const calls[] = {
        "cuEventRecord",  "cuEventSynchronize", "cuMemAlloc",       "cuEventElapsedTime",
        "cuLaunchKernel", "cuModuleLoadData",   "cuMemcpyHtoDAsync"};
    const struct job job = {ARRAY, TALLY_SUM, TALLY_F32, 300};
    double seconds = -1;
    (void)state;
    fill_small(job.op, job.type, job.n);
    for (size_t c = 0; c < sizeof calls / sizeof *calls; c++)
        for (unsigned which = 1; which <= 2; which++) {
            const struct failure f = {calls[c], which, which == 1 ? CUDA_ERROR_LAUNCH_FAILED : 2};
            tally_device *device = opened("cuda:0");
            fail_at(f.call, f.which, f.error);
            const tally_status s = tally_device_read(device, data, 1000, &seconds);
            heal();
            if (s != TALLY_OK) check_status(&job, &f, s);
            if (which == 1) assert_int_not_equal(s, TALLY_OK);
            assert_true(s == TALLY_OK ? seconds > 0 : seconds == -1);
            seconds = -1;
            check_healthy(device, &job, &f);
            tally_close(device);
            check_nothing_left();
        }
}

/* Feeds all of data[] but 1000 elements in one call, which fails, and then again. */
static void check_stream_goes_on(tally_device *device, const struct job *job, unsigned which) {
    const size_t size = tally_type_size(job->type);
    tally_state *fed = NULL;
    tally_value got;
    fill_small(job->op, job->type, job->n);
    assert_ok(tally_state_create(ASK(job->op, job->type), &fed));
    assert_ok(tally_state_feed(fed, device, data, NULL, 1000));
    fail_at("cuMemcpyDtoHAsync", which, CUDA_ERROR_LAUNCH_FAILED);
    assert_error(TALLY_ELOST,
                 tally_state_feed(fed, device, data + 1000 * size, NULL, job->n - 1000));
    heal();
    assert_ok(tally_state_feed(fed, device, data + 1000 * size, NULL, job->n - 1000));
    const tally_status s = tally_state_value(fed, &got);
    check_result(job, s, &got);
    tally_state_destroy(fed);
}

/* States are as they were before a call that failed, and go on. */
static void going_on(void **state) {
    static const struct job jobs[] = {{STREAM, TALLY_SUM, TALLY_F64, 6000},
                                      {STREAM, TALLY_MIN, TALLY_I32, 6000},
                                      {STREAM, TALLY_PROD, TALLY_F32, 5000},
                                      {STREAM, TALLY_PROD, TALLY_F32, 9000}};
    tally_device *device = opened("cuda:0");
    tally_state *sum, *sum_here;
    tally_value got, want;
    (void)state;
    fill_wild(TALLY_F32, 6000, false);
    assert_ok(tally_state_create(ASK(TALLY_SUM, TALLY_F32, .out = TALLY_F64), &sum));
    assert_ok(tally_state_create(ASK(TALLY_SUM, TALLY_F32, .out = TALLY_F64), &sum_here));
    assert_ok(tally_state_feed(sum_here, NULL, data, NULL, 6000));
    assert_ok(tally_state_feed(sum, device, data, NULL, 1000));
    fail_at("cuMemcpyDtoHAsync", 1, CUDA_ERROR_LAUNCH_FAILED);
    assert_error(TALLY_ELOST, tally_state_feed(sum, device, data + 4000, NULL, 5000));
    heal();
    assert_int_equal(tally_state_count(sum), 1000);
    assert_ok(tally_state_feed(sum, device, data + 4000, NULL, 5000));
    assert_ok(tally_state_value(sum, &got));
    assert_ok(tally_state_value(sum_here, &want));
    assert_true(tally_value_bits(&got) == tally_value_bits(&want));
    for (size_t i = 0; i < sizeof jobs / sizeof *jobs; i++)
        check_stream_goes_on(device, &jobs[i], i < 3 ? 1 : 2);
    tally_state_destroy(sum);
    tally_state_destroy(sum_here);
    tally_close(device);
    check_nothing_left();
}

/* ---- Larger accidents ------------------------------------------------------------------------ */

static void driver_starts(void **state) {
    tally_device *device = NULL;
    (void)state;
    fail_at("cuInit", 1, CUDA_ERROR_NO_DEVICE);
    assert_error(TALLY_EDEVICE, tally_open("cuda:0", &device));
    assert_non_null(strstr(tally_error(), "CUDA_ERROR_NO_DEVICE"));
    fail_at("cuDriverGetVersion", 1, 999);
    assert_error(TALLY_EDEVICE, tally_open("cuda:0", &device));
    heal();
    setenv("TALLY_CUDA_DOUBLE_VERSION", "10020", 1);
    assert_error(TALLY_EDEVICE, tally_open("cuda:0", &device));
    assert_non_null(strstr(tally_error(), "too old"));
    unsetenv("TALLY_CUDA_DOUBLE_VERSION");
    assert_null(device);
    assert_error(TALLY_EDEVICE, tally_open("cuda:1", &device));
    device = opened("cuda:0");
    assert_int_equal(holders(), 1);
    tally_close(device);
    assert_int_equal(objects() + holders(), 0);
}

/* A kernel reads between two pieces of memory, where there is none. (What ends in none is refused.) All that use the context notice, and go on in the
 * next one; a device that is another does not notice. */
static void lost_device(void **state) {
    const struct job job = {ARRAY, TALLY_SUM, TALLY_F32, 5000};
    tally_value got;
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_DEVICES", "2", 1);
    fill_small(job.op, job.type, job.n);
    tally_device *culprit = opened("cuda:0"), *victim = opened("cuda:0"), *other = opened("cuda:1");
    tally_device *const all[] = {culprit, victim, other};
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 3; i++)
            check_like_cpu(all[i], &job);
        memset(&got, 0xa5, sizeof got);
        const CUdeviceptr one = place(data, 400), two = place(data, 400);
        const CUdeviceptr low = one < two ? one : two, high = one < two ? two : one;
        void *address = (void *)(uintptr_t)low;
        assert_error(TALLY_EUNSUPPORTED, tally_reduce_resident(culprit, ASK(TALLY_SUM, TALLY_F32),
                                                               address, NULL, 1u << 30, &got));
        assert_error(TALLY_ELOST,
                     tally_reduce_resident(culprit, ASK(TALLY_SUM, TALLY_F32), address, NULL,
                                           (high + 400 - low) / sizeof(float), &got));
        assert_non_null(strstr(tally_error(), "CUDA_ERROR_ILLEGAL_ADDRESS"));
        check_untouched(&job, &(struct failure){"(a kernel)", 1, 700}, &got);
        if (round % 2) check_like_cpu(culprit, &job); /* before or after the victim: all the same */
        assert_error(TALLY_ELOST, run(victim, &job, 0, &got));
        check_like_cpu(other, &job);
    }
    for (int i = 0; i < 3; i++) {
        check_like_cpu(all[i], &job);
        tally_close(all[i]);
    }
    unsetenv("TALLY_CUDA_DOUBLE_DEVICES");
    check_nothing_left();
}

/* Somebody else has most of the device's memory. A larger array fails then, a smaller one after it does
 * not; and all goes well again once the memory is free. */
static void out_of_memory(void **state) {
    static const tally_op ops[] = {TALLY_SUM, TALLY_PROD, TALLY_MIN, TALLY_OR};
    CUdeviceptr most;
    CUcontext ours;
    (void)state;
    setenv("TALLY_CUDA_DOUBLE_MEMORY", "1000000", 1);
    tally_device *device = opened("cuda:0");
    assert_int_equal(driver.cuCtxPushCurrent(context), 0);
    assert_int_equal(driver.cuMemAlloc(&most, 850000), 0);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        const struct job small = {ARRAY, ops[i], TALLY_F32, 1000},
                         large = {ARRAY, ops[i], TALLY_F32, 60000};
        tally_value got;
        fill_small(large.op, large.type, large.n);
        check_like_cpu(device, &small);
        memset(&got, 0xa5, sizeof got);
        assert_error(TALLY_ENOMEM, run(device, &large, 0, &got));
        assert_non_null(strstr(tally_error(), "bytes of memory"));
        check_untouched(&large, &(struct failure){"cuMemAlloc", 1, 2}, &got);
        check_like_cpu(device, &small);
    }
    assert_int_equal(driver.cuMemFree(most), 0);
    assert_int_equal(driver.cuCtxPopCurrent(&ours), 0);
    const struct job large = {ARRAY, TALLY_OR, TALLY_F32, 60000};
    check_like_cpu(device, &large);
    tally_close(device);
    unsetenv("TALLY_CUDA_DOUBLE_MEMORY");
    check_nothing_left();
}

/* Neither an image of the library's nor what the compiler makes is anything to an older driver. */
static void old_driver(void **state) {
    const struct job with_image = {ARRAY, TALLY_SUM, TALLY_F32, 300},
                     without = {ARRAY, TALLY_MAX, TALLY_U8, 300}, *jobs[] = {&with_image, &without};
    tally_value got;
    (void)state;
    tally_device *device = opened("cuda:0");
    for (int i = 0; i < 2; i++) {
        fill_small(jobs[i]->op, jobs[i]->type, jobs[i]->n);
        setenv("TALLY_CUDA_DOUBLE_FAIL", "cuModuleLoadData:1:222,cuModuleLoadData:2:222", 1);
        assert_error(TALLY_ECOMPILE, run(device, jobs[i], 0, &got));
        assert_non_null(strstr(tally_error(), "the driver is older than the kernels' PTX"));
        heal();
        check_like_cpu(device, jobs[i]);
    }
    tally_close(device);
    check_nothing_left();
}

/* The compiler has no memory, or is broken; a kernel that is there already still works. */
static void compiler_fails(void **state) {
    const struct job known = {ARRAY, TALLY_AND, TALLY_I8, 300},
                     job = {ARRAY, TALLY_MAX, TALLY_U8, 300};
    tally_value got;
    (void)state;
    tally_device *device = opened("cuda:0");
    fill_small(job.op, job.type, job.n);
    check_like_cpu(device, &known);
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "1", 1);
    assert_error(TALLY_ENOMEM, run(device, &job, 0, &got));
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "11", 1);
    assert_error(TALLY_ECOMPILE, run(device, &job, 0, &got));
    check_like_cpu(device, &known);
    unsetenv("TALLY_CUDA_DOUBLE_NVRTC");
    check_like_cpu(device, &job);
    tally_close(device);
    check_nothing_left();
}

/* The usual calls wait for no compiler: the library has their programs (src/cuda/programs.cmake). */
static void usual_calls_compile_nothing(void **state) {
    static const tally_op ops[] = {TALLY_SUM, TALLY_MEAN,   TALLY_MIN, TALLY_MAX,
                                   TALLY_VAR, TALLY_ARGMAX, TALLY_STD, TALLY_NORM2};
    static const tally_type types[] = {TALLY_F32, TALLY_BF16, TALLY_F64, TALLY_I32};
    static const uint64_t x[64 * 40];
    static char out[2][64 * 40 * 8];
    static const struct {
        unsigned dims;
        size_t length[3];
        uint32_t axes; /* a bit each */
    } shapes[] = {{2, {12, 200}, 2},   {2, {12, 200}, 1},   {2, {400, 4}, 2},
                  {2, {4, 400}, 1},    {2, {400, 6}, 1},    {3, {4, 20, 24}, 2},
                  {3, {4, 20, 24}, 4}, {3, {4, 20, 24}, 1}, {3, {4, 20, 24}, 6},
                  {3, {4, 20, 24}, 3}};
    (void)state;
    if (!TALLY_CUDA_HAS_IMAGES) skip();
    tally_device *device = opened("cuda:0");
    setenv("TALLY_CUDA_DOUBLE_NVRTC", "11", 1); /* every compilation fails */
    for (size_t o = 0; o < sizeof ops / sizeof *ops; o++)
        for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
            const tally_problem problem = {.op = ops[o], .type = types[t]};
            tally_value value;
            assert_ok(tally_reduce(device, &problem, x, NULL, 1000, &value));
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
                const tally_shape shape = {.cut = TALLY_AXES,
                                           .dims = shapes[s].dims,
                                           .length = shapes[s].length,
                                           .axes = shapes[s].axes};
                void *const got[] = {out[0]}, *const wanted[] = {out[1]};
                assert_ok(tally_reduce_shaped(NULL, &problem, &shape, x, NULL, wanted));
                assert_ok(tally_reduce_shaped(device, &problem, &shape, x, NULL, got));
                assert_memory_equal(out[0], out[1], sizeof out[0]);
            }
        }
    unsetenv("TALLY_CUDA_DOUBLE_NVRTC");
    tally_close(device);
    check_nothing_left();
}

static void opened_many_times(void **state) {
    const struct job job = {ARRAY, TALLY_SUM, TALLY_F32, 300};
    (void)state;
    fill_small(job.op, job.type, job.n);
    for (int i = 0; i < 1000; i++) {
        tally_device *device = opened("cuda:0");
        if (i % 20 == 0) check_like_cpu(device, &job);
        tally_close(device);
        check_nothing_left();
    }
}

/* ---- Threads --------------------------------------------------------------------------------- */

enum { THREADS = 6, ROUNDS = 15 };

struct worker {
    pthread_t thread;
    tally_device *shared;
    const tally_value *want;
    const char *wrong; /* NULL: all went well */
};

/* A device that is shared and one of its own, which is opened and closed each time. */
static void *work(void *argument) {
    struct worker *w = argument;
    for (int i = 0; i < ROUNDS && !w->wrong; i++) {
        tally_device *mine = NULL, *devices[2] = {w->shared, NULL};
        tally_value got;
        if (tally_open("cuda:0", &mine) != TALLY_OK) w->wrong = "open";
        devices[1] = mine;
        for (int k = 0; k < 2 && !w->wrong; k++)
            if (tally_reduce(devices[k], ASK(TALLY_SUM, TALLY_F32), data, NULL, 3000, &got) !=
                TALLY_OK)
                w->wrong = "reduce";
            else if (tally_value_bits(&got) != tally_value_bits(w->want))
                w->wrong = "bits";
        tally_close(mine);
    }
    return NULL;
}

static void threads(void **state) {
    struct worker workers[THREADS];
    tally_value want;
    (void)state;
    fill_wild(TALLY_F32, 3000, false);
    assert_ok(tally_reduce(NULL, ASK(TALLY_SUM, TALLY_F32), data, NULL, 3000, &want));
    tally_device *shared[2] = {opened("cuda:0"), opened("cuda:0")};
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (struct worker){.shared = shared[i % 2], .want = &want};
        assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (workers[i].wrong) fail_msg("thread %d: %s", i, workers[i].wrong);
    }
    tally_close(shared[0]);
    tally_close(shared[1]);
    check_nothing_left();
}

int main(void) {
    load_double();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arrays),
        cmocka_unit_test(streams),
        cmocka_unit_test(resident),
        cmocka_unit_test(foreign_memory),
        cmocka_unit_test(larger_than_memory),
        cmocka_unit_test(operators),
        cmocka_unit_test(threads),
        cmocka_unit_test(opened_many_times),
        cmocka_unit_test(lost_device),
        cmocka_unit_test(out_of_memory),
        cmocka_unit_test(old_driver),
        cmocka_unit_test(compiler_fails),
        cmocka_unit_test(usual_calls_compile_nothing),
        cmocka_unit_test(errors_without_names),
        cmocka_unit_test(read_roof),
        cmocka_unit_test(going_on),
        cmocka_unit_test(every_call_fails),
        cmocka_unit_test(every_call_fails_between_pieces),
    };
    /* First, and before the test has a context of its own: a driver starts only once. */
    const struct CMUnitTest start[] = {cmocka_unit_test(driver_starts)};
    int failed = cmocka_run_group_tests(start, NULL, NULL);
    hold_context();
    failed += cmocka_run_group_tests(tests, NULL, NULL);
    return failed;
}
