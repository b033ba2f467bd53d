/*
 * command.c - tally-mpi: one reduction of a file by many ranks, each of which reads its part; rank 0 prints.
 *
 * The file is a .npy array, or raw elements with --dtype. Rank r of p feeds a state with the elements from n r / p
 * on, the states are combined, and the answer is what `tally` prints for the same file. A rank that cannot go on
 * says so before anybody waits for it; one line is written, by the lowest rank that has one.
 */
#include "command.h"

#include "../cli/common/arguments.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char help[] =
    "Usage: mpirun -n P tally-mpi OP[,OP...] [OPTION...] FILE\n"
    "       mpirun -n P tally-mpi dot [OPTION...] X Y\n"
    "Reduces a file by P ranks, each of which reads its part, and prints what 'tally OP' prints:\n"
    "the value alone; of several values the name, a tab and the value, one a line; for describe\n"
    "a table. The bits do not depend on P.\n"
    "\n"
    "FILE is a .npy file, or raw elements; 'tally help sum' lists the operators.\n"
    "\n"
    "  --dtype TYPE    the elements' type: needed for raw data\n"
    "  --out TYPE      round the exact value to this floating type\n"
    "  --ddof C        var and std divide by n - C; 0 is the default, 1 is for a sample\n"
    "\n"
    "Many results, one a line, of a .npy array:\n"
    "  --axis D[,D...] along these axes, from 0; -1 is the last\n"
    "  --segments S    of each segment: S is a .npy file of offsets, one more than segments, or\n"
    "                  the length that all have\n"
    "  --by IDS        of each group: IDS is a .npy file, an id from 0 for each element; id, tab,\n"
    "                  value, without groups of nothing\n"
    "                  With --axis D, both of vectors: offsets or ids lie along axis D, and "
    "results\n"
    "                  have the array's shape, but for a length of as many along D\n"
    "  --groups K      ids lie below K, instead of the greatest in the file\n"
    "  --skip-outside  leave out elements whose id is negative, or not below K\n"
    "  --mask M        leave out elements whose byte in the .npy file M is 0; also with the above\n"
    "  -o FILE         write the results to a .npy file; -: to standard output\n"
    "\n"
    "  --json          one JSON object, as 'tally' prints it, and how many ranks there were\n"
    "  --device SPEC   cpu:threads=1 (the default), cpu, auto; see 'tally devices'\n"
    "  --threads N     so many threads of the cpu for each rank\n"
    "  --help          this text\n";

/* ---- What goes wrong ------------------------------------------------------------------------ */

/* The first thing that went wrong on this rank; "" while nothing has. */
static char trouble[400];

int wrong(const char *format, ...) {
    va_list list;
    if (*trouble) return 0;
    va_start(list, format);
    vsnprintf(trouble, sizeof trouble, format, list);
    va_end(list);
    return 0;
}

/* Returns whether all ranks can go on. If not, the lowest that cannot says why. */
int all_well(int rank, int ranks) {
    int lowest = *trouble ? rank : ranks;
    MPI_Allreduce(MPI_IN_PLACE, &lowest, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (lowest == rank) failed("%s", trouble);
    return lowest == ranks;
}

/* ---- Files ---------------------------------------------------------------------------------- */

/* Reads `size` bytes at a place, or fewer at the end of the file. Returns how many; -1 where that fails. */
static ssize_t read_at(const struct file *f, void *bytes, size_t size, uint64_t at) {
    size_t got = 0;
    while (got < size) {
        const ssize_t n = pread(f->handle, (char *)bytes + got, size - got, (off_t)(at + got));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return -1;
        if (n == 0) break;
        got += (size_t)n;
    }
    return (ssize_t)got;
}

static int read_header(struct file *f, tally_type said) {
    unsigned char *bytes = NULL;
    size_t size = 4096;
    for (;;) {
        unsigned char *more = realloc(bytes, size);
        if (!more) return free(bytes), wrong("no memory for the header of %s", f->name);
        bytes = more;
        const ssize_t got = read_at(f, bytes, size, 0);
        if (got < 0) return free(bytes), wrong("%s cannot be read: %s", f->name, strerror(errno));
        const enum npy_result result = npy_read(bytes, (size_t)got, NULL, &f->header);
        if (result == NPY_MORE && f->header.needed > size) {
            size = f->header.needed;
            continue;
        }
        free(bytes);
        if (result == NPY_BAD) return wrong("%s: %s", f->name, f->header.problem);
        if (result == NPY_MORE) return wrong("%s ends within its header", f->name);
        if (said && f->header.type == 0 && f->header.element == tally_type_size(said))
            f->header.type = said;
        if (f->header.type == 0)
            return wrong("%s does not say what its two-byte elements are: --dtype bf16", f->name);
        if (said && f->header.type != said)
            return wrong("%s holds %s, and --dtype says %s", f->name,
                         tally_type_name(f->header.type), tally_type_name(said));
        return 1;
    }
}

int open_file(struct file *f, const char *name, tally_type said) {
    unsigned char start[16];
    struct stat about;
    f->name = name;
    f->handle = open(name, O_RDONLY | O_CLOEXEC);
    if (f->handle < 0) return wrong("%s cannot be opened: %s", name, strerror(errno));
    if (fstat(f->handle, &about) != 0 || !S_ISREG(about.st_mode))
        return wrong("%s is no regular file: each rank reads its part of one", name);
    const ssize_t got = read_at(f, start, sizeof start, 0);
    if (got > 0 && npy_recognise(start, (size_t)got)) {
        if (!read_header(f, said)) return 0;
    } else {
        if (!said)
            return wrong("%s is no .npy file; raw elements need --dtype, and text is for 'tally'",
                         name);
        f->header = (struct npy_header){.type = said, .element = tally_type_size(said)};
        f->header.count = (uint64_t)about.st_size / f->header.element;
        if ((uint64_t)about.st_size % f->header.element)
            return wrong("%s does not hold whole elements of %s", name, tally_type_name(said));
    }
    if ((uint64_t)about.st_size < f->header.needed + f->header.count * f->header.element)
        return wrong("%s is shorter than its header says", name);
    return 1;
}

/* Reads elements [first, first + n), and brings them to this machine's byte order. */
int read_elements(const struct file *f, unsigned char *to, uint64_t first, size_t n) {
    const size_t size = f->header.element;
    const ssize_t got = read_at(f, to, n * size, f->header.needed + first * size);
    if (got < 0) return wrong("%s cannot be read: %s", f->name, strerror(errno));
    if ((size_t)got < n * size) return wrong("%s has become shorter", f->name);
    if (f->header.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__))
        for (size_t i = 0; i < n; i++)
            for (size_t a = i * size, b = a + size - 1; a < b; a++, b--) {
                const unsigned char byte = to[a];
                to[a] = to[b];
                to[b] = byte;
            }
    return 1;
}

/* ---- One run -------------------------------------------------------------------------------- */

/* Feeds this rank's part of the file to the state. */
static int feed(struct run *r) {
    const uint64_t n = r->file[0].header.count;
    const uint64_t first = part_start(n, r->rank, r->ranks),
                   last = part_start(n, r->rank + 1, r->ranks);
    const size_t size = r->file[0].header.element, most = CHUNK / size;
    if (tally_state_create(&r->problem, &r->state) != TALLY_OK ||
        tally_state_begin_at(r->state, first) != TALLY_OK)
        return wrong("%s", tally_error());
    unsigned char *x = calloc((size_t)r->files, CHUNK);
    if (!x) return wrong("no memory to read into");
    int well = 1;
    for (uint64_t at = first; at < last && well;) {
        const size_t chunk = last - at < most ? (size_t)(last - at) : most;
        unsigned char *y = r->files == 2 ? x + CHUNK : NULL;
        well = read_elements(&r->file[0], x, at, chunk) &&
               (!y || read_elements(&r->file[1], y, at, chunk));
        if (well && tally_state_feed(r->state, r->device, x, y, chunk) != TALLY_OK)
            well = wrong("%s", tally_error());
        at += chunk;
    }
    free(x);
    return well;
}

static int show(const struct run *r) {
    tally_value value[TALLY_VALUES_MAX];
    tally_problem rounded = r->problem; /* a valid one where --out f64 is allowed */
    rounded.out = TALLY_F64;
    const tally_status s = tally_state_value(r->state, value);
    if (r->rank != 0) return s == TALLY_OK ? STATUS_OK : STATUS_FAILED;
    if (s == TALLY_ERANGE)
        return failed("the exact %s does not fit 64 bits%s", r->asked,
                      tally_problem_value_type(&rounded, 0)
                          ? "; --out f64 rounds what is built on sums"
                          : "");
    return s == TALLY_OK ? answer_values(r, value) : failed("%s", tally_error());
}

static int reduce(struct run *r, char **names, tally_type said) {
    int status = STATUS_FAILED;
    if (!r->device && tally_open("cpu:threads=1", &r->device) != TALLY_OK)
        wrong("%s", tally_error());
    for (int i = 0; i < r->files && !*trouble; i++)
        open_file(&r->file[i], names[i], said);
    if (!*trouble && r->files == 2 &&
        (r->file[0].header.type != r->file[1].header.type ||
         r->file[0].header.count != r->file[1].header.count))
        wrong("%s and %s differ in type or length", names[0], names[1]);
    r->problem.type = r->file[0].header.type;
    size_t values;
    if (!*trouble && tally_problem_values(&r->problem, &values) != TALLY_OK)
        wrong("%s", tally_error());
    if (parts_are_asked(&r->parts)) return parts_reduce(r);
    if (!*trouble) feed(r);
    if (all_well(r->rank, r->ranks)) {
        if (tally_mpi_allreduce_states(&r->problem, &r->state, 1, MPI_COMM_WORLD) == TALLY_OK)
            status = show(r);
        else if (r->rank == 0)
            failed("%s", tally_mpi_error());
    }
    return status;
}

/* ---- The command line: the same on every rank; rank 0 speaks. -------------------------------- */

/* Reads the operators. Returns 0 where a name is no operator's. */
static int read_ops(char *text, tally_problem *p) {
    size_t count = 0;
    for (char *name = strtok(text, ","); name; name = strtok(NULL, ","), count++) {
        tally_op op;
        if (tally_op_parse(name, &op) != TALLY_OK || op == TALLY_USER)
            return wrong("'%s' is no operator; 'tally help sum' lists them", name);
        if (count > sizeof p->also / sizeof p->also[0]) return wrong("more than nine operators");
        if (count == 0)
            p->op = op;
        else
            p->also[count - 1] = op;
    }
    return count > 0 ? 1 : wrong("no operator is given");
}

struct words {
    char *ops;
    const char *device;
    tally_type said;
    uint64_t threads;
    int help;
};

static int read_words(int argc, char **argv, struct run *r, struct words *w) {
    static const struct option options[] = {{"dtype", required_argument, NULL, 't'},
                                            {"out", required_argument, NULL, 'r'},
                                            {"ddof", required_argument, NULL, 'd'},
                                            {"device", required_argument, NULL, 'v'},
                                            {"threads", required_argument, NULL, 'n'},
                                            {"axis", required_argument, NULL, 'a'},
                                            {"segments", required_argument, NULL, 's'},
                                            {"by", required_argument, NULL, 'b'},
                                            {"groups", required_argument, NULL, 'g'},
                                            {"skip-outside", no_argument, NULL, 'k'},
                                            {"mask", required_argument, NULL, 'm'},
                                            {"output", required_argument, NULL, 'o'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    if (r->rank != 0) { /* only rank 0 writes what is wrong with the command line */
        const int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (nowhere >= 0) dup2(nowhere, STDERR_FILENO);
    }
    for (int found; (found = getopt_long(argc, argv, ":o:", options, NULL)) != -1;) {
        char *end = NULL;
        int well = 1;
        if (found == 't') well = argument_type("--dtype", optarg, &w->said);
        if (found == 'r') well = argument_type("--out", optarg, &r->problem.out);
        if (found == 'n') well = argument_count("--threads", optarg, &w->threads);
        if (found == 'v') w->device = optarg;
        if (found == 'h') w->help = 1;
        if (found == 'a') r->parts.axis = optarg;
        if (found == 's') r->parts.segments = optarg;
        if (found == 'b') r->parts.by = optarg;
        if (found == 'g') well = argument_count("--groups", optarg, &r->parts.groups);
        if (found == 'k') r->parts.skip_outside = 1;
        if (found == 'm') r->parts.mask = optarg;
        if (found == 'o') r->output = optarg;
        if (found == 'j') r->as_json = 1;
        if (found == 'd') {
            r->problem.ddof = strtod(optarg, &end);
            if (*end || end == optarg || !isfinite(r->problem.ddof))
                return misused("--ddof takes a number of at least 0, not '%s'", optarg);
        }
        if (found == '?' || found == ':') return argument_unknown(found, argv, options);
        if (!well) return STATUS_USAGE;
    }
    if (w->help) return STATUS_OK;
    if (optind >= argc) return misused("no operator is given; --help tells more");
    char *asked = argv[optind++];
    w->ops = strdup(asked);
    r->asked = w->ops;
    if (!w->ops || !read_ops(asked, &r->problem)) return misused("%s", trouble);
    r->files = r->problem.op == TALLY_DOT ? 2 : 1;
    for (int i = 0; i < 8; i++)
        if (r->problem.also[i] == TALLY_DOT) r->files = 2;
    if (argc - optind != r->files)
        return misused("%s takes %s, not %d", w->ops, r->files == 2 ? "two files" : "one file",
                       argc - optind);
    return parts_check(r);
}

int main(int argc, char **argv) {
    struct run r = {.file = {{.handle = -1}, {.handle = -1}}};
    struct words w = {0};
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &r.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &r.ranks);
    r.began = MPI_Wtime();
    const int speaks = dup(STDERR_FILENO);
    int status = read_words(argc, argv, &r, &w);
    if (status == STATUS_OK && w.help) {
        if (r.rank == 0) fputs(help, stdout), status = finish_output();
    } else if (status == STATUS_OK) {
        int found = STATUS_OK;
        if (speaks >= 0) dup2(speaks, STDERR_FILENO);
        if ((w.device || w.threads) && !argument_device(w.device, w.threads, &r.device, &found))
            wrong("this rank has no such device");
        status = reduce(&r, argv + optind, w.said);
    }
    tally_state_destroy(r.state);
    tally_close(r.device);
    for (int i = 0; i < 2; i++)
        if (r.file[i].handle >= 0) close(r.file[i].handle);
    if (speaks >= 0) close(speaks);
    free(w.ops);
    MPI_Finalize();
    return status;
}
