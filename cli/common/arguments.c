/*
 * arguments.c - reading the arguments that several subcommands share.
 */
#include "common/arguments.h"

#include "common/message.h"
#include "common/names.h"

#include <ctype.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Writes to `out` a suggestion such as "; did you mean --text?", or "" if no option is near to
 * `text`. Returns out. */
static const char *guess(const char *text, const struct option *options, char *out, size_t size) {
    char list[512] = "", word[64], near[64];
    for (; options->name; options++) {
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", used ? " " : "", options->name);
    }
    text += strspn(text, "-");
    snprintf(word, sizeof word, "%.*s", (int)strcspn(text, "="), text);
    *out = 0;
    if (names_nearest(word, list, ' ', near, sizeof near))
        snprintf(out, size, "; did you mean --%s?", near);
    return out;
}

int argument_unknown(int found, char **argv, const struct option *options) {
    const char *text = argv[optind - 1];
    char near[96];
    if (found == ':') return misused("%s needs a value; see 'tally help %s'", text, argv[0]);
    if (strncmp(text, "--", 2) == 0 && strchr(text, '=') && optopt)
        return misused("%s: this option takes no value; see 'tally help %s'", text, argv[0]);
    if (strncmp(text, "--", 2) != 0 && optopt)
        return misused("-%c is no option of this command; see 'tally help %s'", optopt, argv[0]);
    if (*guess(text, options, near, sizeof near))
        return misused("%s is no option of this command%s", text, near);
    return misused("%s is no option of this command; see 'tally help %s'", text, argv[0]);
}

/* ---- Counts ---- */

static bool read_plain(const char *text, char **end, uint64_t *out) {
    if (*text < '0' || *text > '9') return false;
    uint64_t value = 0;
    for (; *text >= '0' && *text <= '9'; text++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*text - '0'), &value))
            return false;
    *end = (char *)text;
    *out = value;
    return true;
}

static bool read_power(uint64_t base, const char *text, uint64_t *out) {
    char *end;
    uint64_t exponent, value = 1;
    if (!read_plain(text, &end, &exponent) || *end || exponent > 64) return false;
    for (uint64_t i = 0; i < exponent; i++)
        if (__builtin_mul_overflow(value, base, &value)) return false;
    *out = value;
    return true;
}

static bool read_count(const char *text, uint64_t *out) {
    char *end;
    if (read_plain(text, &end, out)) {
        if (!*end) return true;
        if (*end == '^') return read_power(*out, end + 1, out);
    }
    if (*text < '0' || *text > '9' || !strpbrk(text, "eE")) return false;
    double value = strtod(text, &end); /* "1.5e6": a whole number below 2^63 */
    if (*end || !(value < 0x1p63) || value != floor(value)) return false;
    *out = (uint64_t)value;
    return true;
}

bool argument_count(const char *option, const char *text, uint64_t *out) {
    uint64_t value;
    if (read_count(text, &value) && value >= 1) return *out = value, true;
    misused("%s takes a whole number from 1 up, such as 1000, 1e6 or 2^27; '%s' is none", option,
            text);
    return false;
}

/* ---- Types ---- */

/* Other names of the types: NumPy's codes, and NumPy's and C's names. The codes i8 and u8 are
 * missing: they are Tally's names of 8-bit types. With a byte order before them they are NumPy's
 * 64-bit types (parse_type()). */
static const struct {
    const char *name;
    tally_type type;
} aliases[] = {
    {"f2", TALLY_F16},     {"f4", TALLY_F32},      {"f8", TALLY_F64},        {"i1", TALLY_I8},
    {"i2", TALLY_I16},     {"i4", TALLY_I32},      {"u1", TALLY_U8},         {"u2", TALLY_U16},
    {"u4", TALLY_U32},     {"int8", TALLY_I8},     {"int16", TALLY_I16},     {"int32", TALLY_I32},
    {"int64", TALLY_I64},  {"uint8", TALLY_U8},    {"uint16", TALLY_U16},    {"uint32", TALLY_U32},
    {"uint64", TALLY_U64}, {"float16", TALLY_F16}, {"float32", TALLY_F32},   {"float64", TALLY_F64},
    {"half", TALLY_F16},   {"float", TALLY_F32},   {"single", TALLY_F32},    {"double", TALLY_F64},
    {"bool", TALLY_U8},    {"byte", TALLY_U8},     {"bfloat16", TALLY_BF16},
};

static bool parse_type(const char *text, tally_type *out) {
    const char native = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    const bool has_order = *text && (*text == native || *text == '=' || *text == '|');
    char name[16];
    if (strlen(text) >= sizeof name) return false;
    for (size_t i = 0; i <= strlen(text); i++)
        name[i] = (char)tolower((unsigned char)text[i]);
    if (has_order && strcmp(name + 1, "i8") == 0) return *out = TALLY_I64, true;
    if (has_order && strcmp(name + 1, "u8") == 0) return *out = TALLY_U64, true;
    if (!has_order && tally_type_parse(name, out) == TALLY_OK) return true;
    for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
        if (strcmp(name + has_order, aliases[i].name) == 0) return *out = aliases[i].type, true;
    return false;
}

bool argument_type(const char *option, const char *text, tally_type *out) {
    if (parse_type(text, out)) return true;
    const char foreign = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<';
    if (*text == foreign && parse_type(text + 1, out))
        return misused("%s %s: raw elements have this machine's byte order; a .npy file may have "
                       "the other",
                       option, text),
               false;
    misused("%s takes one of %s; '%s' is none", option, names_of_types(), text);
    return false;
}

/* ---- Devices ---- */

/* The number of threads is an option of the cpu device, so it joins the text that names it. */
static bool join_threads(const char *device, uint64_t threads, char *spec, size_t size) {
    if (strcmp(device, "auto") == 0) device = "cpu";
    bool has_options = strncmp(device, "cpu:", 4) == 0;
    if (strcmp(device, "cpu") != 0 && !has_options)
        return misused("--threads goes with the cpu only, not with --device %s; leave one out",
                       device),
               false;
    if (strstr(device, "threads="))
        return misused("--threads and --device %s both tell the number of threads; "
                       "leave one out",
                       device),
               false;
    snprintf(spec, size, "%s%sthreads=%" PRIu64, device, has_options ? "," : ":", threads);
    return true;
}

bool argument_needs_driver(const char *device) {
    static const char *const own[] = {"auto", "cpu", "model"};
    const size_t length = device ? strcspn(device, ":") : 0;
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        if (!device || (strlen(own[i]) == length && memcmp(device, own[i], length) == 0))
            return false;
    return true;
}

bool argument_device(const char *device, uint64_t threads, tally_device **out, int *status) {
    char spec[512];
    snprintf(spec, sizeof spec, "%s", device ? device : "auto");
    *status = STATUS_USAGE;
    if (threads && !join_threads(device ? device : "auto", threads, spec, sizeof spec))
        return false;
    *status = STATUS_FAILED;
    if (tally_open(spec, out) == TALLY_OK) return true;
    const char *error = tally_error(), *hint = "; 'tally devices' lists what is here";
    return failed("%s%s", error, strchr(error, ';') ? "" : hint), false;
}
