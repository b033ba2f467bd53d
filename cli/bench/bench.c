/*
 * bench.c - `tally bench`: times one reduction beside loops and reads of the same memory.
 *
 * The contestants take turns, round after round, so that whatever else the machine does meets all of
 * them alike; each one's time is the median over the rounds. Between two turns the machine rests, as
 * the threads of one runtime may still be spinning on a core when the next one wants it.
 */
#include "common/command.h"

#include "bench/bench_data.h"
#include "bench/bench_loops.h"
#include "bench/bench_shaped.h"
#include "common/arguments.h"
#include "common/guard.h"
#include "common/json.h"
#include "common/memory.h"
#include "common/message.h"
#include "common/names.h"
#include "common/progress.h"

#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

const char bench_help[] =
    "Usage: tally bench [OP] [OPTION...]\n"
    "Times a reduction of an array in memory beside the plain sequential loop, an OpenMP SIMD\n"
    "loop, and plain reads of the same memory, in turns; shows the median of each. On a GPU the\n"
    "array lies in the device's memory, as for its plain reads; a line of its own shows the time\n"
    "with the copy from the host's. The two loops are the CPU's always.\n"
    "Results of parts - see below - move the array, its ids or offsets, and the results: the roof\n"
    "reads and writes as many bytes. On a GPU their time is that with the copy.\n"
    "OP is any operator of 'tally help sum'; sum is the default. dot has two arrays.\n"
    "\n"
    "  --dtype TYPE    the elements' type; f64 is the default\n"
    "  -n, --n N       so many elements, such as 1000, 1e6 or 2^27, the default\n"
    "  --data KIND     uniform (the default), normal, loguniform or wild; for any all elements "
    "are\n"
    "                  0, and for all none is, so that all are looked at\n"
    "  --shape AxB...  an array of this shape, such as 16777216x4; with --axis\n"
    "  --axis D[,D...] reduced along these\n"
    "  --segments S    segments of this length, or one of zipf, giant (two that hold nearly all)\n"
    "                  and empty (most of them); by i64 offsets\n"
    "  --groups K      so many groups, by i32 ids\n"
    "  --ids KIND      random (the default), sorted or zipf\n"
    "  --device SPEC   auto (the default), cpu, cpu:threads=3,isa=avx2; see 'tally devices'\n"
    "  --threads N     so many threads of the cpu\n"
    "  --fast          plain, unordered floating additions: no promise on the bits\n"
    "  --repeat R      so many rounds; 9 is the default\n"
    "  --json          the measurements as one JSON object\n"
    "  --help          this text\n"
    "\n"
    "TYPE is one of i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64.\n";

enum { MOST_ROUNDS = 1000 };
static const double shortest_turn = 500e-6; /* seconds: shorter calls are repeated within a turn */

enum who {
    OURS,      /* in the device's own memory, where it has any */
    WITH_COPY, /* tally_reduce() */
    SEQUENTIAL,
    OPENMP,
    DEVICE_READ,
    PLAIN_READS,
    CONTESTANTS = PLAIN_READS + BENCH_READS
};

struct bench {
    tally_problem problem;
    uint64_t n, threads, rounds; /* threads: 0 where --threads is not given */
    enum bench_data data;
    const char *device_text;
    struct bench_shape shape;
    bool as_json, help;

    tally_device *device;
    tally_device_info info;
    bool is_gpu;      /* a device with memory of its own */
    int loop_threads; /* of the OpenMP loops: as many as the device uses, 1 without OpenMP */
    const struct loops *loops;
    unsigned char *x, *y; /* y: the second half of x's memory, for dot; else NULL */
    size_t bytes;         /* bytes of x and y */
    size_t values;
    tally_value value[TALLY_VALUES_MAX];
    uint64_t calls[CONTESTANTS]; /* within one turn */
    double *seconds;             /* of a call: [contestant * rounds + round] */
    double median[CONTESTANTS];
};

/* ---- The command line ---- */

static bool set_data(struct bench *b, const char *text) {
    if (bench_data_parse(text, &b->data)) return true;
    return misused("--data takes one of " BENCH_DATA_NAMES "; '%s' is none", text), false;
}

static bool set_rounds(struct bench *b, const char *text) {
    if (!argument_count("--repeat", text, &b->rounds)) return false;
    if (b->rounds <= MOST_ROUNDS) return true;
    return misused("--repeat takes at most %d rounds", MOST_ROUNDS), false;
}

static bool set_option(struct bench *b, int option) {
    switch (option) {
    case 'd':
        return argument_type("--dtype", optarg, &b->problem.type);
    case 'n':
        return argument_count("-n", optarg, &b->n);
    case 'a':
        return set_data(b, optarg);
    case 's':
        b->shape.shape = optarg;
        return true;
    case 'x':
        b->shape.axis = optarg;
        return true;
    case 'g':
        b->shape.segments = optarg;
        return true;
    case 'G':
        return argument_count("--groups", optarg, &b->shape.groups);
    case 'i':
        b->shape.ids = optarg;
        return true;
    case 'D':
        b->device_text = optarg;
        return true;
    case 'T':
        return argument_count("--threads", optarg, &b->threads);
    case 'f':
        b->problem.fast = 1;
        return true;
    case 'r':
        return set_rounds(b, optarg);
    case 'j':
        b->as_json = true;
        return true;
    default:
        b->help = true;
        return true;
    }
}

static int read_operator(struct bench *b, int argc, char **argv) {
    if (optind == argc) return STATUS_OK;
    if (argc - optind > 1)
        return misused("bench takes one operator; '%s' is one too many", argv[optind + 1]);
    if (tally_op_parse(argv[optind], &b->problem.op) == TALLY_OK) return STATUS_OK;
    char near[32];
    if (names_nearest(argv[optind], names_of_ops(), ' ', near, sizeof near))
        return misused("'%s' is no operator; did you mean %s?", argv[optind], near);
    return misused("bench takes one of the operators %s; '%s' is none", names_of_ops(),
                   argv[optind]);
}

static int read_options(struct bench *b, int argc, char **argv) {
    static const struct option options[] = {
        {"dtype", required_argument, NULL, 'd'},
        {"n", required_argument, NULL, 'n'},
        {"data", required_argument, NULL, 'a'},
        {"device", required_argument, NULL, 'D'},
        {"threads", required_argument, NULL, 'T'},
        {"fast", no_argument, NULL, 'f'},
        {"repeat", required_argument, NULL, 'r'},
        {"json", no_argument, NULL, 'j'},
        {"shape", required_argument, NULL, 's'},
        {"axis", required_argument, NULL, 'x'},
        {"segments", required_argument, NULL, 'g'},
        {"groups", required_argument, NULL, 'G'},
        {"ids", required_argument, NULL, 'i'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":hn:", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (!set_option(b, c)) return STATUS_USAGE;
    }
    return read_operator(b, argc, argv);
}

/* ---- Setting up ---- */

static bool get_memory(struct bench *b) {
    uint64_t size, free = memory_available();
    const bool two = b->problem.op == TALLY_DOT;
    bool fits = !__builtin_mul_overflow(b->n, tally_type_size(b->problem.type), &size) &&
                !__builtin_mul_overflow(size, two ? 2 : 1, &size) && size < free &&
                (b->x = memory_get((size_t)size));
    b->seconds = calloc(CONTESTANTS * b->rounds, sizeof *b->seconds);
    if (!fits || !b->seconds)
        return failed("not enough memory for %" PRIu64 " %s numbers: %.2f GB are free; "
                      "choose a smaller -n",
                      b->n, tally_type_name(b->problem.type), (double)free * 1e-9),
               false;
    b->bytes = (size_t)size;
    if (two) b->y = b->x + b->bytes / 2;
    return true;
}

struct loops {
    const char *isa;
    bench_loop *(*openmp)(tally_op op, tally_type type);
    bench_loop *(*read)(int which);
};

static const struct loops all_loops[] = {
#define LOOPS(isa)                                                                                 \
    { #isa, bench_openmp_##isa, bench_read_##isa }
#if defined(__x86_64__)
    LOOPS(baseline),
    LOOPS(avx2),
    LOOPS(avx512),
#elif defined(__aarch64__)
    LOOPS(neon),
#else
    LOOPS(baseline),
#endif
};

/* Returns the loops for the best instruction set of this machine: a cpu device without options
 * names it. They stay the same if --device asks for a lesser one. */
static const struct loops *pick_loops(void) {
    tally_device_info info;
    tally_device *cpu;
    if (tally_open("cpu", &cpu) != TALLY_OK) return all_loops;
    const tally_status s = tally_device_describe(cpu, &info);
    tally_close(cpu);
    if (s != TALLY_OK) return all_loops;
    for (size_t i = 0; i < sizeof all_loops / sizeof *all_loops; i++)
        if (strcmp(all_loops[i].isa, info.isa) == 0) return &all_loops[i];
    return all_loops;
}

static bool describe(struct bench *b) {
    if (tally_device_describe(b->device, &b->info) != TALLY_OK)
        return failed("%s", tally_error()), false;
    b->is_gpu = b->info.threads == 0;
    b->loop_threads = b->info.threads ? (int)b->info.threads : (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (!TALLY_OPENMP) b->loop_threads = 1;
    b->loops = pick_loops();
    return true;
}

/* ---- Running ---- */

static volatile double kept; /* so that no compiler leaves out a loop */

static bool run_ours(struct bench *b, uint64_t calls) {
    for (uint64_t i = 0; i < calls; i++)
        if (tally_reduce(b->device, &b->problem, b->x, b->y, (size_t)b->n, b->value))
            return failed("%s", tally_error()), false;
    return true;
}

static bool run_loop(const struct bench *b, enum who who, uint64_t calls) {
    bool reads = who >= PLAIN_READS;
    bench_loop *loop = who == SEQUENTIAL ? bench_sequential(b->problem.op, b->problem.type)
                       : reads           ? b->loops->read((int)(who - PLAIN_READS))
                                         : b->loops->openmp(b->problem.op, b->problem.type);
    size_t n = reads ? b->bytes / 8 : (size_t)b->n;
    for (uint64_t i = 0; i < calls; i++)
        kept = loop(b->x, b->y, n, b->loop_threads);
    return true;
}

/* Takes a turn of `calls` calls. *seconds becomes the time of one call. */
static bool take_turn(struct bench *b, enum who who, uint64_t calls, double *seconds) {
    if (who == DEVICE_READ) {
        if (tally_device_read(b->device, b->x, b->bytes, seconds) == TALLY_OK) return true;
        return failed("%s", tally_error()), false;
    }
    if (who == OURS && b->is_gpu) {
        if (tally_device_time(b->device, &b->problem, b->x, b->y, (size_t)b->n, b->value,
                              seconds) == TALLY_OK)
            return true;
        return failed("%s", tally_error()), false;
    }
    double start = clock_seconds();
    if (!(who <= WITH_COPY ? run_ours(b, calls) : run_loop(b, who, calls))) return false;
    *seconds = (clock_seconds() - start) / (double)calls;
    return true;
}

/* Sleeps for longer than the threads of an OpenMP runtime spin after their loop is done. */
static void rest(void) {
    nanosleep(&(struct timespec){.tv_nsec = 20 * 1000 * 1000}, NULL);
}

/* Returns whether a contestant takes part: on a CPU there is no copy to time. */
static bool takes_part(const struct bench *b, int who) {
    return who != WITH_COPY || b->is_gpu;
}

/* A first call of each warms up, and a second tells how many make a turn long enough to be timed. */
static bool warm_up(struct bench *b) {
    for (int who = 0; who < CONTESTANTS; who++) {
        double seconds;
        if (!takes_part(b, who)) continue;
        rest();
        if (!take_turn(b, (enum who)who, 1, &seconds) || !take_turn(b, (enum who)who, 1, &seconds))
            return false;
        b->calls[who] =
            seconds < shortest_turn ? (uint64_t)(shortest_turn / (seconds + 1e-9)) + 1 : 1;
    }
    return true;
}

static bool run_rounds(struct bench *b) {
    if (!warm_up(b)) return false;
    for (uint64_t round = 0; round < b->rounds; round++)
        for (int who = 0; who < CONTESTANTS; who++) {
            if (!takes_part(b, who)) continue;
            rest();
            if (!take_turn(b, (enum who)who, b->calls[who],
                           &b->seconds[(uint64_t)who * b->rounds + round]))
                return false;
        }
    return true;
}

static int compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void find_medians(struct bench *b) {
    for (int who = 0; who < CONTESTANTS; who++) {
        double *s = b->seconds + (uint64_t)who * b->rounds;
        qsort(s, b->rounds, sizeof *s, compare);
        b->median[who] = (s[(b->rounds - 1) / 2] + s[b->rounds / 2]) / 2;
    }
}

/* ---- Telling ---- */

/* Returns the rate at which elements are read; NaN for count, which reads nothing. */
static double gbps(const struct bench *b, double seconds) {
    return b->problem.op == TALLY_COUNT ? (double)NAN : (double)b->bytes * 1e-9 / seconds;
}

static double of(const struct bench *b, double seconds, double ours) {
    return b->problem.op == TALLY_COUNT ? (double)NAN : seconds / ours;
}

/* Returns the fastest of the ways to read the memory. */
static double roof_seconds(const struct bench *b) {
    double best = b->median[DEVICE_READ];
    for (int who = PLAIN_READS; who < CONTESTANTS; who++)
        if (b->median[who] < best) best = b->median[who];
    return best;
}

static int print_json(const struct bench *b) {
    double roof = roof_seconds(b), ours = b->median[OURS];
    struct json_object *object = json_new_object();
    json_text(object, "op", tally_op_name(b->problem.op));
    json_text(object, "dtype", tally_type_name(b->problem.type));
    json_count(object, "n", b->n);
    json_text(object, "device", b->info.spec);
    json_count(object, "threads", b->info.threads);
    json_text(object, "isa", b->info.isa);
    json_count(object, "openmp_threads", (uint64_t)b->loop_threads);
    json_text(object, "data", bench_data_name(b->data));
    json_flag(object, "fast", b->problem.fast);
    json_count(object, "rounds", b->rounds);
    json_measure(object, "median_ms", ours * 1e3);
    json_measure(object, "gbps", gbps(b, ours));
    if (b->is_gpu) json_measure(object, "with_copy_ms", b->median[WITH_COPY] * 1e3);
    json_measure(object, "sequential_gbps", gbps(b, b->median[SEQUENTIAL]));
    json_measure(object, "openmp_gbps", gbps(b, b->median[OPENMP]));
    json_measure(object, "roof_gbps", (double)b->bytes * 1e-9 / roof);
    json_measure(object, "of_roof", of(b, roof, ours));
    json_measure(object, "of_openmp", of(b, b->median[OPENMP], ours));
    json_results(object, b->value, NULL, b->values);
    return json_print(object);
}

static void print_row(const struct bench *b, const char *name, double seconds) {
    printf("  %-16s %12.6g ms", name, seconds * 1e3);
    if (isfinite(gbps(b, seconds)))
        printf(" %9.2f GB/s %7.2f", gbps(b, seconds), roof_seconds(b) / seconds);
    putchar('\n');
}

static void print_head(const struct bench *b) {
    printf("%s of %" PRIu64 " %s (%s%s) =", tally_op_name(b->problem.op), b->n,
           tally_type_name(b->problem.type), bench_data_name(b->data),
           b->problem.fast ? ", fast" : "");
    for (size_t i = 0; i < b->values; i++) {
        char text[32];
        tally_value_print(&b->value[i], text, sizeof text);
        printf("%s %s", i ? "," : "", text);
    }
    putchar('\n');
}

static int print_table(const struct bench *b) {
    char text[32];
    print_head(b);
    if (b->is_gpu)
        printf("on %s (%s)", b->info.spec, b->info.name);
    else
        printf("on %s, %u threads, %s", b->info.spec, b->info.threads, b->info.isa);
    printf("; medians of %" PRIu64 " rounds\n\n", b->rounds);
    printf("  %-16s %12s    %9s      %7s\n", "", "time", "read", "of roof");
    print_row(b, "tally", b->median[OURS]);
    if (b->is_gpu) print_row(b, "with the copy", b->median[WITH_COPY]);
    snprintf(text, sizeof text, "openmp simd (%d)", b->loop_threads);
    print_row(b, text, b->median[OPENMP]);
    print_row(b, "sequential", b->median[SEQUENTIAL]);
    print_row(b, "read roof", roof_seconds(b));
    return finish_output();
}

static int bench_parts(const struct bench *b) {
    const struct loops *loops = pick_loops();
    struct bench_shaped as = {.ask = b->shape,
                              .problem = b->problem,
                              .n = b->n,
                              .rounds = b->rounds,
                              .data = b->data,
                              .device = b->device,
                              .threads = b->loop_threads,
                              .as_json = b->as_json};
    for (int i = 0; i < BENCH_READS; i++)
        as.read[i] = loops->read(i);
    return bench_shaped(&as);
}

static int bench(struct bench *b) {
    if (bench_shape_is_asked(&b->shape)) return describe(b) ? bench_parts(b) : STATUS_FAILED;
    if (!b->n) b->n = 1 << 27;
    if (tally_problem_values(&b->problem, &b->values) != TALLY_OK)
        return failed("%s", tally_error());
    if (!describe(b) || !get_memory(b)) return STATUS_FAILED;
    bench_data_fill(b->data, b->problem.op, b->problem.type, b->x,
                    b->bytes / tally_type_size(b->problem.type));
    if (!run_rounds(b)) return STATUS_FAILED;
    find_medians(b);
    return b->as_json ? print_json(b) : print_table(b);
}

static int run(void *argument) {
    struct bench *b = argument;
    int status;
    if (!argument_device(b->device_text, b->threads, &b->device, &status)) return status;
    status = bench(b);
    memory_release(b->x, b->bytes);
    free(b->seconds);
    tally_close(b->device);
    return status;
}

int bench_command(int argc, char **argv) {
    struct bench b = {.problem = {.op = TALLY_SUM, .type = TALLY_F64}, .rounds = 9};
    int status = read_options(&b, argc, argv);
    if (status != STATUS_OK) return status;
    if (b.help) return fputs(bench_help, stdout), finish_output();
    return argument_needs_driver(b.device_text) ? guarded(run, &b, false) : run(&b);
}
