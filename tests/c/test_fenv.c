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
#include <math.h>
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
static uint64_t numbers[LONG_N + 16]; /* raw bits, read as every type */
static char where[200];               /* the environment, for the messages */

/* The list's results: recorded on the first run, compared on every other. */
static uint64_t recorded[100000];
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

static void all_values(const tally_problem *problem, const tally_value *value, const char *what) {
    size_t count = 0;
    CALL(assert_ok(tally_problem_values(problem, &count)));
    for (size_t i = 0; i < count; i++) {
        result(value[i].type, "a type");
        if (value[i].type) result(bits_of(&value[i]), what);
    }
}

/* A state that is fed in pieces, one of which is another state's that was saved and loaded. */
static void states(tally_device *device, const tally_problem *problem) {
    static unsigned char bytes[100000];
    const void *y = problem->op == TALLY_DOT ? numbers + 3 : NULL;
    tally_state *whole, *part, *other;
    tally_value value[TALLY_VALUES_MAX];
    CALL(assert_ok(tally_state_create(problem, &whole)));
    CALL(assert_ok(tally_state_create(problem, &part)));
    for (int i = 0; i < 5; i++)
        CALL(assert_ok(tally_state_feed(whole, device, numbers + 10 * i, y, 999)));
    CALL(assert_ok(tally_state_begin_at(part, 5 * 999)));
    CALL(assert_ok(tally_state_feed(part, device, numbers + 50, y, 9999)));
    CALL(assert_ok(tally_state_save(part, bytes, sizeof bytes)));
    CALL(assert_ok(tally_state_load(bytes, tally_state_size(part), problem, &other)));
    CALL(assert_ok(tally_state_merge(whole, other)));
    CALL(assert_ok(tally_state_value(whole, value)));
    all_values(problem, value, tally_op_name(problem->op));
    CALL(tally_state_destroy(other));
    tally_status status;
    CALL(status = tally_state_subtract(whole, part));
    result(status, "a status");
    CALL(status = tally_state_negate(whole));
    result(status, "a status");
    CALL(assert_ok(tally_state_copy(whole, &other)));
    CALL(assert_ok(tally_state_value(other, value)));
    all_values(problem, value, "after a subtraction");
    CALL(tally_state_clear(other));
    CALL(tally_state_destroy(other));
    CALL(tally_state_destroy(part));
    CALL(tally_state_destroy(whole));
}

/* A sum of f64 into which other types' are merged. */
static void exact_states(tally_device *device) {
    unsigned char bytes[4000];
    int64_t words[200];
    tally_state *sum, *part, *other;
    tally_value value;
    CALL(assert_ok(tally_state_create(ASK(TALLY_SUM, TALLY_F64), &sum)));
    for (int type = TALLY_F16; type <= TALLY_F64; type++) {
        CALL(assert_ok(tally_state_create(ASK(TALLY_SUM, (tally_type)type), &part)));
        CALL(assert_ok(tally_state_feed(part, device, numbers + 7, NULL, 5000)));
        CALL(assert_ok(tally_state_merge(sum, part)));
        CALL(assert_ok(tally_state_save(sum, bytes, sizeof bytes)));
        CALL(assert_ok(tally_state_load(bytes, tally_state_size(sum), NULL, &other)));
        CALL(assert_ok(tally_state_merge(sum, other)));
        CALL(assert_ok(tally_state_to_words(sum, words)));
        CALL(assert_ok(tally_state_from_words(sum, words)));
        CALL(tally_state_destroy(other));
        CALL(tally_state_destroy(part));
        for (int out = TALLY_F16; out <= TALLY_F64; out++)
            for (int by = 1; by < 4; by++) {
                CALL(assert_ok(tally_state_divided(sum, by, (tally_type)out, &value)));
                result(bits_of(&value), "sum, divided");
            }
    }
    CALL(tally_state_destroy(sum));
}

static void one_device(tally_device *device, int thorough) {
    static const size_t lengths[] = {0, 1, 2, 17, 300, 4097, MOST, LONG_N};
    tally_status status;
    for (int type = TALLY_I8; type <= TALLY_F64; type++)
        for (int op = TALLY_SUM; op <= TALLY_DESCRIBE; op++)
            for (size_t k = 0; k < 8; k += thorough || op > TALLY_XOR ? 1 : 3) {
                if (op > TALLY_XOR && lengths[k] == LONG_N && !thorough) continue;
                const tally_problem *asked = ASK((tally_op)op, (tally_type)type, .ddof = 1);
                tally_value value[TALLY_VALUES_MAX];
                memset(value, 0, sizeof value);
                /* the statistics by turns, for there are many */
                if (op > TALLY_XOR && (k + (size_t)op + (size_t)type) % 3 != 0) continue;
                CALL(status =
                         tally_reduce(device, asked, numbers, op == TALLY_DOT ? numbers + 11 : NULL,
                                      lengths[k], value));
                result(status, "a status");
                if (status == TALLY_OK) all_values(asked, value, tally_op_name((tally_op)op));
            }
    for (int type = TALLY_F16; type <= TALLY_F64; type++)
        for (int out = TALLY_F16; out <= TALLY_F64; out++)
            for (size_t k = 1; k < 7; k++) {
                tally_value value = {TALLY_U8, {0}};
                CALL(status = tally_reduce(device,
                                           ASK(TALLY_SUM, (tally_type)type, .out = (tally_type)out),
                                           numbers + 100, NULL, lengths[k] / 2, &value));
                result(status, "a status");
                result(bits_of(&value), "sum to another type");
            }
    for (int type = TALLY_F16; type <= TALLY_F64; type++) { /* fast: any bits, same environment */
        tally_value value;
        CALL(assert_ok(tally_reduce(device, ASK(TALLY_SUM, (tally_type)type, .fast = 1), numbers,
                                    NULL, MOST, &value)));
    }
    for (int ordered = 0; ordered < 2; ordered++)
        for (size_t k = 0; k < 8; k++) {
            tally_value value;
            CALL(assert_ok(tally_reduce(
                device,
                ASK(TALLY_USER, TALLY_F64, .user = ordered ? &ordered_third : &third_of_sum),
                numbers, NULL, lengths[k], &value)));
            result(bits_of(&value), "user operator");
        }
    for (int type = TALLY_F16; type <= TALLY_F64; type++)
        for (int op = TALLY_SUM; op <= TALLY_USER; op++) {
            if (op == TALLY_USER && type != TALLY_F64) continue;
            states(device, ASK((tally_op)op, (tally_type)type, .ddof = 0.75,
                               .user = op == TALLY_USER ? &third_of_sum : NULL));
        }
    exact_states(device);
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

/* A ddof is looked at before anything is reduced; and what is wrong with it is said. */
static void ddofs(void) {
    static const double all[] = {0,        1,   0.1,  0x1p-1074, -0x1p-1074, 1e300,     -1,
                                 INFINITY, NAN, -0.0, 1e-320,    -INFINITY,  123.456789};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        static tally_problem problem = {.op = TALLY_VAR, .type = TALLY_F64};
        tally_value value = {TALLY_U8, {0}};
        tally_status status;
        memcpy(&problem.ddof, &all[i], sizeof all[i]);
        CALL(status = tally_reduce(NULL, &problem, numbers, NULL, 200, &value));
        result(status, "ddof");
        if (status == TALLY_OK) result(bits_of(&value), "ddof");
        uint64_t hash = 0;
        for (const char *c = tally_error(); status != TALLY_OK && *c; c++)
            hash = hash * 131 + (unsigned char)*c;
        result(hash, "the text about a ddof");
    }
}

static tally_device *devices[4]; /* NULL, then some that were opened in the default environment */

static void everything(void) {
    for (int i = 0; i < 3; i++)
        one_device(devices[i], i == 0);
    values();
    ddofs();
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
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
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
                /* Under AddressSanitizer each rounding with one of the others. */
                if (UNDER_ASAN && (flush != mode % FLUSH_MODES || special != mode % (2 + traps)))
                    continue;
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
