/*
 * statistics.c - every operator on every type that it has a meaning for, beside the read roof.
 *
 *   bench_statistics [-n LOG2] [-b LOG2] [-r ROUNDS] [-o OP,OP...] [-t TYPE,TYPE...] [-d DEVICE]
 *                    [-k normal|wide|wild|zeros]
 *
 * Arrays have 2^n elements, or as many as 2^b bytes hold; they lie in huge pages where the machine has them.
 * Prints GB/s of the elements read, the roof's, and their ratio. Each round times the roof of the same memory
 * and the operator in turn; what is printed are medians over the rounds, of the ratios too.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <tally.h>
#include <time.h>
#include <unistd.h>

enum { MAX_ROUNDS = 101, PATTERN = 1 << 20 };

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *v, int n) {
    qsort(v, (size_t)n, sizeof *v, by_value);
    return v[n / 2];
}

/* Returns whether `word` is one of the list's words, which have commas between them; or there is no list. */
static int is_listed(const char *list, const char *word) {
    const size_t length = strlen(word);
    for (const char *p = list; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL)
        if (strncmp(p, word, length) == 0 && (p[length] == ',' || p[length] == '\0')) return 1;
    return !list;
}

static unsigned long long state = 1;

static unsigned long long next_bits(void) { /* splitmix64 */
    unsigned long long z = state += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

static double uniform(void) {
    return ((double)(next_bits() >> 12) + 0.5) * 0x1p-52;
}

/* normal: a standard normal. wide: 40 binary orders of magnitude. wild: any finite bits. zeros: -0. */
static double element(const char *kind) {
    const double normal = sqrt(-2 * log(uniform())) * cos(6.283185307179586 * uniform());
    return strcmp(kind, "wide") == 0 ? ldexp(normal, (int)(next_bits() % 41) - 20) : normal;
}

static void fill_element(char *p, tally_type type, const char *kind) {
    const size_t size = tally_type_size(type);
    unsigned long long bits = next_bits();
    if (type >= TALLY_F16) {
        const double d = element(kind);
        const float f = (float)d;
        unsigned word;
        memcpy(&word, &f, sizeof word);
        if (strcmp(kind, "zeros") == 0) {
            bits = 1ULL << (8 * size - 1);
        } else if (strcmp(kind, "wild") == 0) { /* no exponent of all ones */
            const unsigned long long ones = type == TALLY_F64    ? 0x7ffULL << 52
                                            : type == TALLY_F32  ? 0x7f800000
                                            : type == TALLY_BF16 ? 0x7f80
                                                                 : 0x7c00;
            while ((bits & ones) == ones)
                bits = next_bits();
        } else if (type == TALLY_F64) {
            memcpy(&bits, &d, sizeof bits);
        } else if (type == TALLY_F32) {
            bits = word;
        } else if (type == TALLY_BF16) {
            bits = word >> 16;
        } else { /* f16: sign, exponent + 15, ten bits; an exponent out of range gives 2^-24 or 2^15 */
            const int e = (int)(word >> 23 & 255) - 112;
            bits = (word >> 16 & 0x8000) | (e < 1    ? 1
                                            : e > 30 ? 30u << 10
                                                     : (unsigned)e << 10 | (word >> 13 & 0x3ff));
        }
    } else if (size == 8) {
        bits >>= 8; /* so that a sum fits */
        if (next_bits() & 1) bits = type == TALLY_I64 ? 0 - bits : bits;
    }
    memcpy(p, &bits, size);
}

static void fill(char *p, size_t n, tally_type type, const char *kind) {
    const size_t size = tally_type_size(type), pattern = n < PATTERN ? n : PATTERN;
    for (size_t i = 0; i < pattern; i++)
        fill_element(p + i * size, type, kind);
    for (size_t i = pattern; i < n; i += pattern)
        memcpy(p + i * size, p, (n - i < pattern ? n - i : pattern) * size);
}

static void measure(tally_device *device, tally_op op, tally_type type, const char *x,
                    const char *y, size_t n, int rounds) {
    const tally_problem problem = {.op = op, .type = type};
    tally_value values[TALLY_VALUES_MAX];
    double ratio[MAX_ROUNDS], ours[MAX_ROUNDS], roof[MAX_ROUNDS];
    const size_t bytes = n * tally_type_size(type);
    if (op != TALLY_DOT) y = NULL;
    const double scale = y ? 2 : 1;
    size_t count;
    if (tally_problem_values(&problem, &count) != TALLY_OK) return;
    for (int r = -1; r < rounds; r++) {
        double read = 0;
        if (tally_device_read(device, x, bytes, &read) != TALLY_OK) return;
        double took = INFINITY;
        for (int k = 0; k < 3; k++) { /* the roof is the best of three, too */
            const double before = now();
            const tally_status s = tally_reduce(device, &problem, x, y, n, values);
            took = fmin(took, now() - before);
            if (s != TALLY_OK && s != TALLY_ERANGE) {
                fprintf(stderr, "%s\n", tally_error());
                return;
            }
        }
        if (r < 0) continue; /* the first touches memory */
        ours[r] = 1e-9 * scale * (double)bytes / took;
        roof[r] = 1e-9 * (double)bytes / read;
        ratio[r] = ours[r] / roof[r];
    }
    printf("%-9s %-5s %8.2f %8.2f %7.2f\n", tally_op_name(op), tally_type_name(type),
           median(ours, rounds), median(roof, rounds), median(ratio, rounds));
    fflush(stdout);
}

static char *get_memory(size_t bytes) {
    char *memory = aligned_alloc((size_t)2 << 20, (bytes + 0x1fffff) & ~(size_t)0x1fffff);
    if (memory) madvise(memory, bytes, MADV_HUGEPAGE);
    return memory;
}

int main(int argc, char **argv) {
    int log2n = 27, log2bytes = 0, rounds = 7;
    const char *ops = NULL, *types = NULL, *spec = "cpu", *kind = "normal";
    for (int c; (c = getopt(argc, argv, "n:b:r:o:t:d:k:")) != -1;)
        switch (c) {
        case 'n':
            log2n = atoi(optarg);
            break;
        case 'b':
            log2bytes = atoi(optarg);
            break;
        case 'r':
            rounds = atoi(optarg) < MAX_ROUNDS ? atoi(optarg) : MAX_ROUNDS;
            break;
        case 'o':
            ops = optarg;
            break;
        case 't':
            types = optarg;
            break;
        case 'd':
            spec = optarg;
            break;
        case 'k':
            kind = optarg;
            break;
        default:
            return 2;
        }
    const size_t most = log2bytes ? (size_t)1 << log2bytes : (size_t)8 << log2n;
    tally_device *device;
    char *x = get_memory(most), *y = get_memory(most);
    if (!x || !y || tally_open(spec, &device) != TALLY_OK) {
        fprintf(stderr, "%s\n", x && y ? tally_error() : "no memory");
        return 1;
    }
    printf("%-9s %-5s %8s %8s %7s\n", "op", "type", "GB/s", "roof", "ratio");
    for (tally_type type = TALLY_F64; type >= TALLY_I8; type--) {
        if (!is_listed(types, tally_type_name(type))) continue;
        const size_t n = log2bytes ? most / tally_type_size(type) : (size_t)1 << log2n;
        fill(x, n, type, kind);
        fill(y, n, type, kind);
        for (tally_op op = TALLY_SUM; op < TALLY_USER; op++)
            if (op != TALLY_COUNT && is_listed(ops, tally_op_name(op)))
                measure(device, op, type, x, y, n, rounds);
    }
    tally_close(device);
    free(x);
    free(y);
    return 0;
}
