/*
 * reduce_command.c - the command line of `tally OP [FILE...]`.
 */
#include "common/command.h"

#include "common/arguments.h"
#include "common/guard.h"
#include "common/message.h"
#include "input/fields.h"
#include "parts/shaped.h"
#include "reduce/reduction.h"

#include <getopt.h>
#include <math.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char reduce_help[] =
    "Usage: tally OP[,OP...] [OPTION...] [FILE...]\n"
    "Reduces all elements of the files, as one array, and prints the value alone; of several\n"
    "values the name, a tab and the value, one a line; for describe a table.\n"
    "\n"
    "  sum prod min max         and or xor: by the bits\n"
    "  mean var std             the mean; the variance and its root, of the population\n"
    "  norm1 norm2 norminf      sum of |x|, root of the sum of x^2, greatest |x|\n"
    "  sumsq dot                sum of x^2; dot X Y of two inputs in step\n"
    "  argmin argmax minmax     the index of the least (greatest), from 0; min and max\n"
    "  count nans nonzero       how many elements, NaNs, elements that are not 0\n"
    "  any all                  1 if some (every) element is not 0, else 0\n"
    "  describe                 count nans min max argmin argmax sum mean std\n"
    "\n"
    "Without a FILE, or where it is -, standard input is read. A .npy file and text are\n"
    "recognised, also where gzip or zstd has packed them; a.npz:x is a member of an archive. Text\n"
    "is numbers with blanks or line ends between them; lines that start with # are left out.\n"
    "Of an Arrow or Parquet file -c names the columns; Python with pyarrow reads it. a.npy:x is a\n"
    "field of a structured array.\n"
    "\n"
    "  --dtype TYPE    the elements' type: needed for raw data; f64 where it is text\n"
    "  --text          the input is text: needed beside --dtype\n"
    "  --raw           the input is raw elements, whatever it looks like\n"
    "  --skip-na       leave out missing values: NaN, of text also NA, null and the like, and\n"
    "                  empty fields\n"
    "  --na WORDS      the same, and these words or numbers, as in --na .,-9999\n"
    "  --decimal-mark M, --thousands T   how numbers are written: --decimal-mark , for 1,5 and\n"
    "                  --thousands , for 1,234\n"
    "  --decimal       sum: the exact decimal sum of the decimals as written, whole\n"
    "  --each          a line for each file, its name before the value, and one for the total\n"
    "\n"
    "  -c, --column C  a table's column C: a number from 1, or a name of the first line; of "
    "several,\n"
    "                  as in -c price,quantity, a line each; dot takes two of them, x and y. A "
    "comma\n"
    "                  in a name stands in quotes or behind a backslash\n"
    "  --by K          with -c: a value for each key in column K: key, tab, value, in order of\n"
    "                  appearance; of several columns, as in --by city,year, each has a field\n"
    "  --sort          in order of the keys instead\n"
    "  --header        the first line has names, also where columns are given by number;\n"
    "                  --no-header: it has none. Else it has where words stand above numbers\n"
    "  -F, --delimiter CHAR   what parts the fields: one character, tab, or blank for runs of\n"
    "                  blanks; else the first lines tell. Fields may stand in double quotes\n"
    "\n"
    "Many results of one .npy array, one a line or in a file of their own:\n"
    "  --axis D[,D...] along these axes, from 0; -1 is the last\n"
    "  --segments S    of each segment: S is a .npy file of offsets, one more than segments, or\n"
    "                  the length that all have\n"
    "  --by IDS        without -c: of each group: IDS is a .npy file, an id from 0 for each\n"
    "                  element; id, tab, value, without groups of nothing\n"
    "                  With --axis D, both of vectors: offsets or ids lie along axis D, and "
    "results\n"
    "                  have the array's shape, but for a length of as many along D\n"
    "  --groups K      ids lie below K, instead of the greatest in the file\n"
    "  --skip-outside  leave out elements whose id is negative, or not below K\n"
    "  --mask M        leave out elements whose byte in the .npy file M is 0; also with the above\n"
    "  -o FILE         write the results to a .npy file; -: to standard output. Several values\n"
    "                  are a structured array\n"
    "\n"
    "  --out TYPE      round the exact value to this floating type: sum, mean, var, std, norm1,\n"
    "                  norm2, sumsq, dot\n"
    "  --ddof C        var and std divide by n - C; 0 is the default, 1 is for a sample\n"
    "  --fast          sum, mean: plain, unordered floating additions, no promise on the bits\n"
    "  --device SPEC   auto (the default), cpu, cpu:threads=3,isa=avx2; see 'tally devices'\n"
    "  --threads N     so many threads of the cpu\n"
    "  --json          op, dtype, n, value, bits, device, seconds, gbps as one JSON object; of\n"
    "                  several values ops, value and bits are lists\n"
    "  --help          this text\n"
    "\n"
    "TYPE is one of i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64,\n"
    "or a name that NumPy or C has for it: float32, double, <f4.\n"
    "A floating value is the exact one, rounded once. Those of integers are exact; a sum, dot,\n"
    "norm1 or sumsq beyond 64 bits is printed whole, a product beyond them is an error.\n";

static bool set_ddof(struct reduction *r, const char *text) {
    char *end;
    r->problem.ddof = strtod(text, &end);
    if (end != text && !*end && r->problem.ddof >= 0 && isfinite(r->problem.ddof)) return true;
    return misused("--ddof takes a finite number from 0 up; '%s' is none", text), false;
}

static bool set_delimiter(struct reduction *r, const char *text) {
    if (strcmp(text, "blank") == 0) return r->columns.delimiter = BY_BLANKS, true;
    const bool is_tab = strcmp(text, "\\t") == 0 || strcmp(text, "tab") == 0;
    if (!is_tab && (strlen(text) != 1 || strchr("\"\r\n", *text) || *text == BY_BLANKS))
        return misused("-F takes one character, tab or blank; '%s' is none of these", text), false;
    r->columns.delimiter = is_tab ? '\t' : *text;
    return true;
}

static bool set_mark(struct reduction *r, const char *text) {
    if (strlen(text) != 1 || !strchr(".,", *text))
        return misused("--decimal-mark takes . or ,; '%s' is neither", text), false;
    r->spelling.mark = *text;
    return true;
}

/* Sets the thousands separator: one UTF-8 character, which may have several bytes. */
static bool set_thousands(struct reduction *r, const char *text) {
    size_t length = strlen(text);
    for (const char *at = text + 1; length && *at; at++)
        if ((*at & 0xc0) != 0x80) length = SIZE_MAX;
    if (!length || length >= sizeof r->spelling.thousands || strchr("0123456789+-eE\"", *text))
        return misused("--thousands takes one character, as in --thousands ,; '%s' is none", text),
               false;
    memcpy(r->spelling.thousands, text, length + 1);
    return true;
}

/* Reads the list of an option. Rejects a second list for the same option: it would hide the first
 * one, or change the order of what both name. */
static bool set_list(struct list *list, const char *option, const char *text) {
    if (list->whole)
        return misused("%s is given twice; give one list, as in %s %s,%s", option, option,
                       list->whole, text),
               false;
    return list_parse(list, text);
}

/* Reads the words of --na. A value that is equal to one of them counts as missing. */
static bool set_na(struct reduction *r, const char *text) {
    if (!set_list(&r->na, "--na", text)) return false;
    if (!r->na.count)
        return misused("--na takes words with commas between them, as in --na .,-9999"), false;
    struct spelling *s = &r->spelling;
    s->skip_na = true;
    s->na_count = r->na.count;
    memcpy(s->na, r->na.item, sizeof s->na);
    return true;
}

static bool set_option(struct reduction *r, int option) {
    switch (option) {
    case 'd':
        return argument_type("--dtype", optarg, &r->how.said);
    case 't':
        r->how.is_text = true;
        r->how.text_option = "--text";
        return true;
    case 'r':
        r->how.is_raw = true;
        return true;
    case 's':
        r->spelling.skip_na = true;
        return true;
    case 'n':
        return set_na(r, optarg);
    case 'M':
        return set_mark(r, optarg);
    case 'u':
        return set_thousands(r, optarg);
    case 'N':
        r->columns.no_header = true;
        return true;
    case 'C':
        return set_list(&r->columns.value, "-c", optarg);
    case 'B':
        return set_list(&r->columns.by, "--by", optarg);
    case 'H':
        r->columns.has_header = true;
        return true;
    case 'F':
        return set_delimiter(r, optarg);
    case 'S':
        r->sorted = true;
        return true;
    case 'e':
        r->by_file = true;
        return true;
    case 'm':
        r->is_decimal = true;
        return true;
    case 'O':
        return argument_type("--out", optarg, &r->problem.out);
    case 'o':
        r->shaping.output = optarg;
        return true;
    case 'a':
        r->shaping.axis = optarg;
        return true;
    case 'g':
        r->shaping.segments = optarg;
        return true;
    case 'k':
        r->shaping.mask = optarg;
        return true;
    case 'G':
        return argument_count("--groups", optarg, &r->shaping.groups);
    case 'K':
        r->shaping.skip_outside = true;
        return true;
    case 'x':
        r->has_ddof = true;
        return set_ddof(r, optarg);
    case 'f':
        r->problem.fast = 1;
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
        {"raw", no_argument, NULL, 'r'},
        {"skip-na", no_argument, NULL, 's'},
        {"na", required_argument, NULL, 'n'},
        {"decimal-mark", required_argument, NULL, 'M'},
        {"thousands", required_argument, NULL, 'u'},
        {"column", required_argument, NULL, 'C'},
        {"by", required_argument, NULL, 'B'},
        {"header", no_argument, NULL, 'H'},
        {"no-header", no_argument, NULL, 'N'},
        {"delimiter", required_argument, NULL, 'F'},
        {"sort", no_argument, NULL, 'S'},
        {"each", no_argument, NULL, 'e'},
        {"decimal", no_argument, NULL, 'm'},
        {"axis", required_argument, NULL, 'a'},
        {"segments", required_argument, NULL, 'g'},
        {"groups", required_argument, NULL, 'G'},
        {"skip-outside", no_argument, NULL, 'K'},
        {"mask", required_argument, NULL, 'k'},
        {"out", required_argument, NULL, 'O'},
        {"ddof", required_argument, NULL, 'x'},
        {"fast", no_argument, NULL, 'f'},
        {"device", required_argument, NULL, 'D'},
        {"threads", required_argument, NULL, 'T'},
        {"json", no_argument, NULL, 'j'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":hc:F:o:", options, NULL)) != -1;) {
        if (c == 'c') c = 'C';
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (!set_option(r, c)) return STATUS_USAGE;
    }
    struct spelling *s = &r->spelling;
    for (size_t i = 0; i < s->na_count; i++)
        s->has_na_number |= spelling_is_number(s, s->na[i]);
    if (r->columns.by.whole && !r->columns.value.whole) /* --by without -c names a file of ids */
        r->shaping.ids = r->columns.by.whole;
    return STATUS_OK;
}

/* Returns a column that is given by name instead of number, or NULL. */
static const char *named_column(const struct columns *c) {
    const struct list *both[] = {&c->value, &c->by};
    for (size_t k = 0; k < 2; k++)
        for (size_t i = 0; i < both[k]->count; i++)
            if (both[k]->item[i][strspn(both[k]->item[i], "0123456789")]) return both[k]->item[i];
    return NULL;
}

/* Rejects words of --na that may be the two sides of a decimal comma. */
static bool check_na(const struct reduction *r) {
    char both[SPELLING_PLAIN];
    for (size_t i = 0; r->spelling.mark == ',' && r->na.is_plain && i + 1 < r->na.count; i++) {
        const char *one = r->na.item[i], *other = r->na.item[i + 1];
        if (snprintf(both, sizeof both, "%s,%s", one, other) < (int)sizeof both &&
            spelling_is_number(&r->spelling, both))
            return misused("--na %s may have one number or two; put '\"%s\"' for one, or "
                           "'\"%s\",%s' for two",
                           both, both, one, other),
                   false;
    }
    return true;
}

/* Checks that the options go together and suit the operators. Returns an exit status. */
static int check_options(const struct reduction *r) {
    const struct columns *c = &r->columns;
    const int status = shaped_check(r);
    if (status != STATUS_OK) return status;
    const bool is_table = c->value.whole;
    if (!is_table && (c->has_header || c->no_header || c->delimiter))
        return misused("%s goes with a table's column; name it, as in -c 2 or -c price",
                       c->has_header  ? "--header"
                       : c->no_header ? "--no-header"
                                      : "-F");
    if (c->has_header && c->no_header)
        return misused("--header and --no-header exclude each other; leave one out");
    if (r->sorted && !c->by.whole) return misused("--sort goes with --by");
    if (!check_na(r)) return STATUS_USAGE;
    if (r->by_file && (is_table || r->is_decimal))
        return misused("--each and %s exclude each other; leave one out",
                       is_table ? "-c" : "--decimal");
    const bool is_dot = reduction_asks(r, TALLY_DOT);
    if ((r->is_decimal || r->by_file) && is_dot)
        return misused("dot takes two arrays, and neither --each nor --decimal");
    if (is_dot && is_table && c->value.count != 2)
        return misused("dot takes two columns of a table, as in -c price,quantity");
    if ((is_table && !c->value.count) || (is_table && c->by.whole && !c->by.count))
        return misused("%s takes up to %d names or numbers of columns, as in price,quantity",
                       c->value.count ? "--by" : "-c", LIST_MOST);
    const char *name = c->no_header ? named_column(c) : NULL;
    if (name) return misused("--no-header: columns are given by number, not as '%s'", name);
    if (r->is_decimal &&
        (r->op_count != 1 || r->problem.op != TALLY_SUM || r->how.said || r->problem.out))
        return misused("--decimal goes with sum alone, and without --dtype and --out");
    if ((is_table || r->is_decimal) && r->how.is_raw)
        return misused("%s reads text; leave --raw out", is_table ? "-c" : "--decimal");
    if (r->how.is_text && r->how.is_raw)
        return misused("--text and --raw exclude each other; leave one out");
    const struct spelling *spelling = &r->spelling;
    if (*spelling->thousands == (spelling->mark ? spelling->mark : '.'))
        return misused(
            "--thousands and the decimal mark are both '%s'; choose another --decimal-mark",
            spelling->thousands);
    if (!is_table && *spelling->thousands == ' ')
        return misused("--thousands ' ' goes with a table's column: blanks part numbers");
    if (!spelling_is_plain(spelling) && (r->how.is_raw || shaped_is_asked(&r->shaping)))
        return misused("%s goes with text", spelling->mark ? "--decimal-mark" : "--thousands");
    if (r->has_ddof && !reduction_asks(r, TALLY_VAR) && !reduction_asks(r, TALLY_STD))
        return misused("--ddof goes with var, std and describe, not with %s", r->asked);
    return STATUS_OK;
}

/* The argument of run(): a reduction and the names of its inputs. */
struct work {
    struct reduction *reduction;
    char **names;
    int count;
};

/* Sets the number of threads that read text: those of the device, or, if it reports none, one for
 * each core that this process may use. */
static void find_threads(struct reduction *r) {
    tally_device_info info = {.threads = 0};
    cpu_set_t cores;
    if (tally_device_describe(r->device, &info) == TALLY_OK) r->how.threads = info.threads;
    if (!r->how.threads && sched_getaffinity(0, sizeof cores, &cores) == 0)
        r->how.threads = (uint64_t)CPU_COUNT(&cores);
}

static int run(void *argument) {
    const struct work *work = argument;
    struct reduction *r = work->reduction;
    int status;
    if (!argument_device(r->device_text, r->threads, &r->device, &status)) return status;
    find_threads(r);
    status =
        (shaped_is_asked(&r->shaping) ? shaped_run : reduction_run)(r, work->names, work->count);
    tally_state_destroy(r->state);
    kept_free(&r->kept);
    groups_free(&r->groups);
    tally_close(r->device);
    return status;
}

static int command(struct reduction *r, int argc, char **argv) {
    static char *standard_input[] = {"-"};
    int status = reduction_ops(r, argv[0]);
    if (status == STATUS_OK) status = read_options(r, argc, argv);
    if (status != STATUS_OK) return status;
    if (r->help) return fputs(reduce_help, stdout), finish_output();
    status = check_options(r);
    if (status != STATUS_OK) return status;
    const bool is_table = r->columns.value.whole;
    if (is_table || r->is_decimal) {
        r->how.is_text = true;
        r->how.text_option = is_table ? "-c" : "--decimal";
        r->columns.in_pairs = reduction_asks(r, TALLY_DOT);
        r->how.is_decimal = r->is_decimal;
        if (r->is_decimal && !is_table) r->how.arrow.kind = ARROW_TEXT;
    }
    const bool named = optind < argc;
    struct work work = {r, named ? argv + optind : standard_input, named ? argc - optind : 1};
    return argument_needs_driver(r->device_text) ? guarded(run, &work, false) : run(&work);
}

int reduce_command(int argc, char **argv) {
    struct reduction r = {.device = NULL};
    r.how.spelling = &r.spelling;
    const int status = command(&r, argc, argv);
    list_free(&r.columns.value);
    list_free(&r.columns.by);
    list_free(&r.na);
    return status;
}
