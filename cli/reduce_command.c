/*
 * reduce_command.c - `tally OP [FILE...]`: several inputs, one stream, one number.
 *
 * The named files are looked at before any of them is reduced: a wrong type in the last one is told
 * at once, and their sizes give the progress line its percentage.
 */
#include "command.h"

#include "arguments.h"
#include "json.h"
#include "message.h"
#include "progress.h"
#include "source.h"
#include "table.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define X(NAME, name, family)     " " #name
#define Y(NAME, name, kind, bits) " " #name
const char reduce_help[] =
    "Usage: tally OP [OPTION...] [FILE...]\n"
    "Reduces all elements of the files, as one stream, to one number, and prints it.\n"
    "OP is one of" TALLY_OPS(
        X) ".\n"
           "Without a FILE, or where it is -, standard input is read. A .npy file is recognised.\n"
           "\n"
           "  --dtype TYPE    the elements' type: needed for raw data; f64 where it is text\n"
           "  --text          numbers as text, one a line; blank lines and lines with # are left "
           "out\n"
           "  --out TYPE      round an exact floating sum to this floating type\n"
           "  --fast          plain, unordered floating additions: no promise on the bits\n"
           "  --device SPEC   auto (the default), cpu, cpu:threads=3,isa=avx2; see 'tally "
           "devices'\n"
           "  --threads N     so many threads of the cpu\n"
           "  --json          op, dtype, n, value, bits, device, seconds, gbps as one JSON object\n"
           "  --help          this text\n"
           "\n"
           "TYPE is one of" TALLY_TYPES(Y) ".\n"
                                           "The sum or product of integers is exact, as i64 or "
                                           "u64, or an error where it does not fit.\n";
#undef X
#undef Y

struct reduction {
    tally_op op;
    const char *op_name;
    tally_type said; /* what --dtype says, or 0 */
    bool is_text, as_json, help;
    tally_options options;
    const char *device_text; /* what --device says, or NULL */
    uint64_t threads;        /* what --threads says, or 0 */

    tally_device *device;
    tally_stream *stream;   /* made when the first input tells its type */
    tally_type type;        /* of all inputs; 0 until the first is open */
    const char *type_owner; /* the input that told it */
    uint64_t total;         /* bytes in all inputs together, 0 where that is not known */
    uint64_t elements;      /* fed so far */
};

/* ---- The command line ---- */

static bool set_option(struct reduction *r, int option) {
    switch (option) {
    case 'd':
        return argument_type("--dtype", optarg, &r->said);
    case 't':
        r->is_text = true;
        return true;
    case 'o':
        return argument_type("--out", optarg, &r->options.out);
    case 'f':
        r->options.fast = true;
        return true;
    case 'D':
        r->device_text = optarg;
        return true;
    case 'T':
        return argument_count("--threads", optarg, &r->threads);
    case 'j':
        r->as_json = true;
        return true;
    default:
        r->help = true;
        return true;
    }
}

static int read_options(struct reduction *r, int argc, char **argv) {
    static const struct option options[] = {
        {"dtype", required_argument, NULL, 'd'},
        {"text", no_argument, NULL, 't'},
        {"out", required_argument, NULL, 'o'},
        {"fast", no_argument, NULL, 'f'},
        {"device", required_argument, NULL, 'D'},
        {"threads", required_argument, NULL, 'T'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv);
        if (!set_option(r, c)) return STATUS_USAGE;
    }
    return STATUS_OK;
}

/* ---- The inputs ---- */

static bool check_type(struct reduction *r, const struct source *s) {
    if (r->type && r->type != s->type)
        return failed(
                   "%s holds %s but %s holds %s; one stream has one type, so convert one of them",
                   r->type_owner, tally_type_name(r->type), s->name, tally_type_name(s->type)),
               false;
    if (!r->type) r->type_owner = s->name;
    r->type = s->type;
    return true;
}

/* Looks at a file that can be opened twice: its type must fit, and its size is added up. */
static bool look_at(struct reduction *r, const char *name) {
    struct stat status;
    struct source s;
    if (source_is_stdin(name) || (stat(name, &status) == 0 && !S_ISREG(status.st_mode)))
        return r->total = SOURCE_UNKNOWN, true;
    if (!source_open(&s, name, r->said, r->is_text)) return false;
    bool fits = check_type(r, &s);
    source_close(&s);
    if (s.bytes == SOURCE_UNKNOWN) r->total = SOURCE_UNKNOWN;
    if (r->total != SOURCE_UNKNOWN) r->total += s.bytes;
    return fits;
}

static bool look_at_all(struct reduction *r, char **names, int count) {
    int stdins = 0;
    for (int i = 0; i < count; i++) {
        stdins += source_is_stdin(names[i]);
        if (!look_at(r, names[i])) return false;
    }
    if (stdins > 1)
        return failed("standard input is named twice, and can be read once only"), false;
    if (r->total == SOURCE_UNKNOWN) r->total = 0;
    return true;
}

static bool create_stream(struct reduction *r) {
    if (r->stream) return true;
    if (tally_stream_create(r->device, r->op, r->type, &r->options, &r->stream) == TALLY_OK)
        return true;
    return failed("%s", tally_error()), false;
}

static bool feed_one(struct reduction *r, const char *name) {
    struct source s;
    if (!source_open(&s, name, r->said, r->is_text)) return false;
    bool fed = check_type(r, &s) && create_stream(r) && source_feed(&s, r->stream);
    r->elements += s.elements;
    source_close(&s);
    return fed;
}

static bool feed_all(struct reduction *r, char **names, int count) {
    progress_begin(r->total);
    for (int i = 0; i < count; i++)
        if (!feed_one(r, names[i])) return false;
    progress_end();
    return true;
}

/* ---- The result ---- */

static bool get_result(struct reduction *r, tally_value *value) {
    tally_status status = tally_stream_result(r->stream, value);
    if (status == TALLY_OK) return true;
    if (status != TALLY_ERANGE) return failed("%s", tally_error()), false;
    return failed("the exact %s of these %" PRIu64 " %s numbers does not fit %s; "
                  "reduce parts of the data, or convert them to f64",
                  r->op_name, r->elements, tally_type_name(r->type),
                  tally_type_name(*tally_type_name(r->type) == 'u' ? TALLY_U64 : TALLY_I64)),
           false;
}

static int print_result(const struct reduction *r, const tally_value *value, double seconds) {
    if (!r->as_json) {
        char text[32];
        tally_value_print(value, text, sizeof text);
        puts(text);
        return finish_output();
    }
    tally_device_info device;
    if (tally_device_describe(r->device, &device) != TALLY_OK) return failed("%s", tally_error());
    double bytes = (double)r->elements * (double)tally_type_size(r->type);
    struct json_object *object = json_object_new_object();
    json_text(object, "op", r->op_name);
    json_text(object, "dtype", tally_type_name(r->type));
    json_count(object, "n", r->elements);
    json_result(object, value);
    json_text(object, "device", device.spec);
    json_measure(object, "seconds", seconds);
    json_measure(object, "gbps", bytes * 1e-9 / seconds);
    return json_print(object);
}

static int reduce(struct reduction *r, char **names, int count) {
    tally_value value;
    if (!look_at_all(r, names, count)) return STATUS_FAILED;
    double start = clock_seconds();
    if (!feed_all(r, names, count) || !get_result(r, &value)) return STATUS_FAILED;
    return print_result(r, &value, clock_seconds() - start);
}

int reduce_command(int argc, char **argv) {
    static char *standard_input[] = {"-"};
    struct reduction r = {.op_name = argv[0]};
    int status = read_options(&r, argc, argv);
    if (status != STATUS_OK) return status;
    if (r.help) return fputs(reduce_help, stdout), finish_output();
    if (tally_op_parse(r.op_name, &r.op) != TALLY_OK) return failed("%s", tally_error());
    if (!argument_device(r.device_text, r.threads, &r.device, &status)) return status;
    bool named = optind < argc;
    status = reduce(&r, named ? argv + optind : standard_input, named ? argc - optind : 1);
    tally_stream_destroy(r.stream);
    tally_close(r.device);
    return status;
}
