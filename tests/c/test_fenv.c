/*
 * test_fenv.c - the caller's floating environment neither changes a result nor is changed.
 *
 * A long list of calls is made once in the default environment and its results kept. The same list
 * is then made under every rounding mode, with subnormals flushed, with old exception flags standing
 * and with every floating exception trapped. Each single call must give the same bits and must leave
 * the control and status registers exactly as it found them.
 */
#define _GNU_SOURCE
#include "testing.h"

#include <fenv.h>
#include <signal.h>
#include <unistd.h>

/* The registers themselves, where we know them: fenv_t may hold more than the caller can see. */
typedef struct registers {
    uint64_t control; /* rounding, traps, flushing */
    uint64_t status;  /* exception flags */
} registers;

#if defined(__x86_64__)
#include <immintrin.h>
#define FLUSH_MODES 4
static registers read_registers(void) {
    uint16_t cw, sw;
    __asm__ volatile("fnstcw %0" : "=m"(cw));
    __asm__ volatile("fnstsw %0" : "=m"(sw));
    unsigned csr = _mm_getcsr();
    return (registers){(uint64_t)cw << 32 | (csr & ~0x3fu), (uint64_t)sw << 32 | (csr & 0x3f)};
}
static void set_flush(int mode) /* bit 0: results, bit 1: operands */
{
    unsigned csr = _mm_getcsr() & ~0x8040u;
    _mm_setcsr(csr | ((mode & 1) ? 0x8000u : 0) | ((mode & 2) ? 0x40u : 0));
}
#elif defined(__aarch64__)
#define FLUSH_MODES 2
static registers read_registers(void) {
    registers r;
    __asm__ volatile("mrs %0, fpcr" : "=r"(r.control));
    __asm__ volatile("mrs %0, fpsr" : "=r"(r.status));
    return r;
}
static void set_flush(int mode) {
    uint64_t control;
    __asm__ volatile("mrs %0, fpcr" : "=r"(control));
    control = (control & ~(1ull << 24)) | (uint64_t)(mode & 1) << 24;
    __asm__ volatile("msr fpcr, %0" : : "r"(control));
}
#else
#define FLUSH_MODES 1
static registers read_registers(void) {
    return (registers){(uint64_t)fegetround(), (uint64_t)fetestexcept(FE_ALL_EXCEPT)};
}
static void set_flush(int mode) {
    (void)mode;
}
#endif

#if defined(__aarch64__)
#define SMALL_DEVICE "cpu:isa=neon,threads=2"
#else
#define SMALL_DEVICE "cpu:isa=baseline,threads=2"
#endif

enum { MOST = 20000, LONG_N = 300001 };
static uint64_t numbers[LONG_N]; /* raw bits, read as every type */
static char where[200];          /* the environment, for the messages */

/* The list's results: recorded on the first run, compared on every other. */
static uint64_t recorded[20000];
static size_t recorded_count, compared;
static int recording;

/* A fault is told once for each kind of call, and the list goes on. */
static int faults;
static int first_of(const char *what) {
    static const char *told[200];
    faults++;
    size_t i = 0;
    while (i < 200 && told[i] && strcmp(told[i], what) != 0)
        i++;
    if (i == 200 || told[i]) return 0;
    told[i] = what;
    return 1;
}

static void result(uint64_t bits, const char *what) {
    if (recording) {
        assert_true(recorded_count < sizeof recorded / sizeof *recorded);
        recorded[recorded_count++] = bits;
    } else {
        if (recorded[compared] != bits && first_of(what))
            print_error("%s, %s: %#llx instead of %#llx\n", where, what, (unsigned long long)bits,
                        (unsigned long long)recorded[compared]);
        compared++;
    }
}

static registers held;
static const char *volatile calling; /* for the handler of a trap that was not held back */

static void unchanged(const char *what) {
    registers now = read_registers();
    if ((now.control != held.control || now.status != held.status) && first_of(what))
        print_error("%s: %s left control %#llx, status %#llx; they were %#llx, %#llx\n", where,
                    what, (unsigned long long)now.control, (unsigned long long)now.status,
                    (unsigned long long)held.control, (unsigned long long)held.status);
}

static void trapped(int signal_number) {
    (void)signal_number;
    static const char message[] = ": a floating exception was trapped inside this call\n";
    if (write(2, where, strlen(where)) + write(2, ": ", 2) + write(2, calling, strlen(calling)) +
            write(2, message, sizeof message - 1) >
        0)
        _exit(1);
    _exit(2);
}

#define CALL(call)                                                                                 \
    do {                                                                                           \
        calling = #call;                                                                           \
        held = read_registers();                                                                   \
        call;                                                                                      \
        unchanged(#call);                                                                          \
    } while (0)

/* A value's bits without a floating instruction of ours. */
static uint64_t bits_of(const tally_value *value) {
    uint64_t bits = 0;
    memcpy(&bits, &value->as, tally_type_size(value->type));
    return bits;
}

/* Not associative, inexact, and sensitive to every mode; must see the default environment. */
static void combine(void *context, const void *left, const void *right, void *out, size_t count) {
    (void)context;
    const double *a = left, *b = right;
    double *c = out;
    for (size_t i = 0; i < count; i++)
        c[i] = (a[i] + b[i]) / 3;
}
static const double zero = 0;
static const tally_operator third_of_sum = {combine, NULL, &zero, 1, NULL};
static const tally_operator ordered_third = {combine, NULL, &zero, 0, NULL};

static void one_device(tally_device *device, int thorough) {
    static const size_t lengths[] = {0, 1, 2, 17, 300, 4097, MOST, LONG_N};
    tally_status status;
    for (int type = TALLY_I8; type <= TALLY_F64; type++)
        for (int op = TALLY_SUM; op <= TALLY_XOR; op++)
            for (size_t k = 0; k < 8; k += thorough ? 1 : 3) {
                tally_value value = {TALLY_U8, {0}};
                CALL(status = tally_reduce(device, (tally_op)op, (tally_type)type, numbers,
                                           lengths[k], NULL, &value));
                result(status, "a status");
                if (status == TALLY_OK) result(bits_of(&value), tally_op_name((tally_op)op));
            }
    for (int type = TALLY_F16; type <= TALLY_F64; type++)
        for (int out = TALLY_F16; out <= TALLY_F64; out++)
            for (size_t k = 1; k < 7; k++) {
                tally_value value = {TALLY_U8, {0}};
                const tally_options options = {0, (tally_type)out};
                CALL(status = tally_reduce(device, TALLY_SUM, (tally_type)type, numbers + 100,
                                           lengths[k] / 2, &options, &value));
                result(status, "a status");
                result(bits_of(&value), "sum to another type");
            }
    for (int type = TALLY_F16; type <= TALLY_F64; type++) { /* fast: any bits, same environment */
        tally_value value;
        const tally_options options = {1, 0};
        CALL(assert_ok(
            tally_reduce(device, TALLY_SUM, (tally_type)type, numbers, MOST, &options, &value)));
    }
    for (int ordered = 0; ordered < 2; ordered++)
        for (size_t k = 0; k < 8; k++) {
            tally_value value;
            CALL(assert_ok(tally_reduce_user(device, ordered ? &ordered_third : &third_of_sum,
                                             TALLY_F64, numbers, lengths[k], &value)));
            result(bits_of(&value), "user operator");
        }
    for (int type = TALLY_F16; type <= TALLY_F64; type++)
        for (int op = TALLY_SUM; op <= TALLY_MAX; op++) {
            tally_stream *stream;
            tally_value value;
            CALL(assert_ok(
                tally_stream_create(device, (tally_op)op, (tally_type)type, NULL, &stream)));
            for (int i = 0; i < 5; i++)
                CALL(assert_ok(tally_stream_feed(stream, numbers + 10 * i, 999)));
            CALL(assert_ok(tally_stream_result(stream, &value)));
            result(bits_of(&value), "stream");
            CALL(tally_stream_destroy(stream));
        }
    tally_stream *stream;
    tally_value value;
    CALL(assert_ok(tally_stream_create_user(device, &third_of_sum, TALLY_F64, &stream)));
    CALL(assert_ok(tally_stream_feed(stream, numbers, 9999)));
    CALL(assert_ok(tally_stream_result(stream, &value)));
    result(bits_of(&value), "user stream");
    CALL(tally_stream_destroy(stream));

    unsigned char bytes[TALLY_ACCUMULATOR_BYTES];
    tally_accumulator *acc, *other;
    CALL(assert_ok(tally_accumulator_create(&acc)));
    for (int type = TALLY_F16; type <= TALLY_F64; type++) {
        CALL(assert_ok(tally_accumulator_add(acc, device, (tally_type)type, numbers + 7, 5000)));
        CALL(tally_accumulator_save(acc, bytes));
        CALL(assert_ok(tally_accumulator_load(bytes, sizeof bytes, &other)));
        CALL(assert_ok(tally_accumulator_merge(acc, other)));
        CALL(tally_accumulator_destroy(other));
        for (int out = TALLY_F16; out <= TALLY_F64; out++) {
            CALL(assert_ok(tally_accumulator_round(acc, (tally_type)out, &value)));
            result(bits_of(&value), "accumulator");
        }
    }
    CALL(tally_accumulator_destroy(acc));
}

/* Values as doubles and as text: conversions that a rounding mode likes to bend. */
static void values(void) {
    uint64_t state = 5;
    for (int i = 0; i < 400; i++)
        for (int type = TALLY_I64; type <= TALLY_F64; type++) {
            tally_value value;
            memset(&value, 0, sizeof value);
            value.type = (tally_type)type;
            uint64_t bits = next_random(&state);
            if (i == 0) bits = 0x8000000000000401u;
            if (i == 1) bits = 1;
            memcpy(&value.as, &bits, tally_type_size(value.type));
            if (i % 8) continue;
            char text[32];
            double d;
            size_t length;
            CALL(length = tally_value_print(&value, text, sizeof text));
            uint64_t hash = 0;
            for (size_t k = 0; k < length; k++)
                hash = hash * 131 + (unsigned char)text[k];
            result(hash, "tally_value_print");
            CALL(d = tally_value_double(&value));
            memcpy(&bits, &d, 8);
            result(bits, "tally_value_double");
            CALL(bits = tally_value_bits(&value));
            result(bits, "tally_value_bits");
        }
}

static tally_device *devices[4]; /* NULL, then some that were opened in the default environment */

static void everything(void) {
    for (int i = 0; i < 3; i++)
        one_device(devices[i], i == 0);
    values();
    tally_device *device;
    tally_device_info info;
    size_t count;
    double seconds;
    CALL(assert_ok(tally_open("cpu:threads=3", &device)));
    CALL(assert_ok(tally_device_describe(device, &info)));
    CALL(assert_ok(tally_device_list(NULL, 0, &count)));
    CALL(assert_ok(tally_device_read(device, numbers, sizeof numbers, &seconds)));
    one_device(device, 0); /* its threads were born into this environment */
    CALL(tally_close(device));
    CALL((void)tally_open("no such device", &device));
}

static int traps_work(void) {
#ifdef __GLIBC__
    int before = feenableexcept(FE_ALL_EXCEPT);
    int worked = before != -1 && (fegetexcept() & FE_INEXACT);
    fedisableexcept(FE_ALL_EXCEPT);
    return worked;
#else
    return 0;
#endif
}

static void set_traps(int on) {
#ifdef __GLIBC__
    feclearexcept(FE_ALL_EXCEPT);
    if (on) feenableexcept(FE_ALL_EXCEPT);
#else
    (void)on;
#endif
}

static void test_environment(void **state) {
    (void)state;
    static const int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    static const char *const names[] = {"nearest", "upward", "downward", "toward zero"};
    uint64_t seed = 1;
    for (size_t i = 0; i < LONG_N; i++) {
        uint64_t bits = next_random(&seed);
        /* doubles around 1 and, now and then, subnormals and full-range ones; and no NaN in the
         * first 300, so that short sums are numbers */
        if (i % 64 == 9)
            bits &= 0x800fffffffffffffu;
        else if (i % 64 != 17 || i < 300)
            bits = (bits & 0x803fffffffffffffu) | 0x3fc0000000000000u;
        numbers[i] = bits;
    }
    assert_ok(tally_open("cpu:threads=3", &devices[1]));
    assert_ok(tally_open(SMALL_DEVICE, &devices[2]));
    snprintf(where, sizeof where, "default environment");
    recording = 1;
    everything();
    recording = 0;
    compared = 0;
    everything(); /* the list repeats itself at all */
    assert_int_equal(compared, recorded_count);

    int traps = traps_work();
    signal(SIGFPE, trapped);
    for (int mode = 0; mode < 4; mode++)
        for (int flush = 0; flush < FLUSH_MODES; flush++)
            for (int special = 0; special < 2 + traps; special++) {
                snprintf(where, sizeof where, "rounding %s, flushing %d, %s", names[mode], flush,
                         special == 0   ? "no flags"
                         : special == 1 ? "old flags"
                                        : "everything trapped");
                feclearexcept(FE_ALL_EXCEPT);
                if (special == 1) feraiseexcept(FE_DIVBYZERO | FE_UNDERFLOW);
                if (special == 2) set_traps(1);
                fesetround(modes[mode]);
                set_flush(flush);
                compared = 0;
                everything();
                set_flush(0);
                fesetround(FE_TONEAREST);
#ifdef __GLIBC__
                fedisableexcept(FE_ALL_EXCEPT);
#endif
                feclearexcept(FE_ALL_EXCEPT);
                assert_int_equal(compared, recorded_count);
            }
    tally_close(devices[1]);
    tally_close(devices[2]);
    if (faults) fail_msg("%d calls changed the environment or were changed by it", faults);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_environment)};
    return cmocka_run_group_tests_name("floating environment", tests, NULL, NULL);
}
