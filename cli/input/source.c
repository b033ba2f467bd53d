/*
 * source.c - opening an input and finding out what it holds.
 *
 * A .npy file is recognised by its first bytes, also on a pipe: so the first bytes are read ahead,
 * and handed on later where they turn out to be data.
 */
#include "input/source.h"

#include "common/message.h"
#include "input/arrow.h"
#include "input/guess.h"
#include "input/npy.h"
#include "input/unpack.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIRST_LOOK = 4096 }; /* bytes: all of nearly every .npy header */

bool source_is_stdin(const char *name) {
    return strcmp(name, "-") == 0;
}

/* ---- Reading ---- */

static bool read_plain(struct source *s, unsigned char *bytes, size_t size, size_t *got) {
    *got = 0;
    while (*got < size) {
        ssize_t n = read(s->file, bytes + *got, size - *got);
        if (n == 0) break;
        if (n > 0)
            *got += (size_t)n;
        else if (errno != EINTR)
            return failed("%s cannot be read: %s", s->name, strerror(errno)), false;
    }
    return true;
}

/* Reads packed bytes for the unpacker; the first come from s->before. */
static bool read_packed(void *context, unsigned char *bytes, size_t size, size_t *got) {
    struct source *s = context;
    size_t first = s->before_end - s->before_next;
    if (first > size) first = size;
    if (first) memcpy(bytes, s->before + s->before_next, first);
    s->before_next += first;
    if (!read_plain(s, bytes + first, size - first, got)) return false;
    *got += first;
    return true;
}

static bool read_file(struct source *s, unsigned char *bytes, size_t size, size_t *got) {
    if (s->unpacker) return unpack_read(s->unpacker, bytes, size, got);
    if (!read_plain(s, bytes, size, got)) return false;
    return *got == size || !s->helper || arrow_end(s->name, &s->helper); /* it may have failed */
}

bool source_read(struct source *s, void *bytes, size_t size, size_t *got) {
    size_t first = s->ahead_end - s->ahead_next;
    if (first > size) first = size;
    if (first) memcpy(bytes, s->ahead + s->ahead_next, first);
    s->ahead_next += first;
    if (!read_file(s, (unsigned char *)bytes + first, size - first, got)) return false;
    *got += first;
    return true;
}

/* Makes s->ahead hold the first `size` bytes, or all there are. */
static bool look_ahead(struct source *s, size_t size) {
    if (size <= s->ahead_end) return true;
    unsigned char *grown = realloc(s->ahead, size);
    if (!grown) return failed("no memory for the first %zu bytes of %s", size, s->name), false;
    s->ahead = grown;
    size_t got;
    if (!read_file(s, s->ahead + s->ahead_end, size - s->ahead_end, &got)) return false;
    s->ahead_end += got;
    return true;
}

/* ---- Recognising ---- */

/* Sets the type of the elements. The opaque two-byte elements that ml_dtypes writes for bfloat16
 * need --dtype bf16. */
static bool settle_type(struct source *s, const struct npy_header *header, tally_type said) {
    if (!header->type && said != TALLY_BF16)
        return failed("%s holds two-byte elements without a type (dtype 'V2'); "
                      "if they are bfloat16, add --dtype bf16",
                      s->name),
               false;
    s->type = header->type ? header->type : said;
    if (said && said != s->type)
        return failed("%s holds %s, but --dtype says %s; leave --dtype out or convert the array",
                      s->name, tally_type_name(s->type), tally_type_name(said)),
               false;
    return true;
}

static bool check_npy_size(const struct source *s, uint64_t wanted) {
    if (s->bytes == SOURCE_UNKNOWN || s->bytes == wanted) return true;
    if (s->bytes < wanted)
        return failed("%s is truncated: its header promises %" PRIu64
                      " bytes of data, but only %" PRIu64 " follow; write it again",
                      s->name, wanted, s->bytes),
               false;
    return failed("%s has %" PRIu64 " bytes after its array; a .npy file holds one array only",
                  s->name, s->bytes - wanted),
           false;
}

/* Recognises a .npy file. size: of the whole file, or SOURCE_UNKNOWN. */
static bool recognise_npy(struct source *s, uint64_t size, tally_type said) {
    struct npy_header header;
    enum npy_result result;
    while ((result = npy_read(s->ahead, s->ahead_end, s->field, &header)) == NPY_MORE) {
        if (!look_ahead(s, header.needed)) return false;
        if (s->ahead_end < header.needed)
            return failed("%s is truncated: it ends within its header; write it again", s->name),
                   false;
    }
    if (result == NPY_BAD) return failed("%s: %s", s->name, header.problem), false;
    if (!settle_type(s, &header, said)) return false;
    s->record = header.record;
    s->offset = header.offset;
    uint64_t wanted = header.count * source_step(s);
    s->bytes = size == SOURCE_UNKNOWN ? size : size - header.needed;
    if (!check_npy_size(s, wanted)) return false;
    s->bytes = wanted;
    s->data += header.needed;
    s->ahead_next = header.needed;
    s->has_shape = true;
    s->is_fortran = header.is_fortran;
    s->dims = header.dims;
    memcpy(s->length, header.length, sizeof s->length);
    s->swapped =
        header.element > 1 && header.big_endian != (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__);
    return true;
}

/* Formats that cannot be read in this way, by their first bytes, and advice for each. */
static const struct {
    const char *magic;
    size_t bytes;
    const char *what, *mend;
} packed[] = {
    {"PK\3\4", 4, "a .npz or zip archive", "unpack it, and reduce the .npy files in it"},
    {"\xfd"
     "7zXZ",
     5, "compressed by xz", "unpack it: xzcat FILE | tally ..."},
    {"BZh", 3, "compressed by bzip2", "unpack it: bzcat FILE | tally ..."},
    {"\x89HDF", 4, "a HDF5 file", "save the data set as a .npy file"},
    {"PAR1", 4, "a Parquet file", "give it by its name, not packed and not through a pipe"},
    {"ARROW1", 6, "an Arrow file", "give it by its name, not packed and not through a pipe"},
};

static bool check_unpacked(const struct source *s) {
    for (size_t i = 0; i < sizeof packed / sizeof *packed; i++)
        if (s->ahead_end >= packed[i].bytes &&
            memcmp(s->ahead, packed[i].magic, packed[i].bytes) == 0)
            return failed("%s is %s; %s", s->name, packed[i].what, packed[i].mend), false;
    return true;
}

static bool recognise_raw(struct source *s, uint64_t size, tally_type said) {
    if (!said && s->how.is_raw)
        return failed("%s: --raw needs the elements' type, as in --dtype f64", s->name), false;
    const char *encoding = said ? NULL : guess_wide_text(s->ahead, s->ahead_end);
    if (encoding)
        return failed(
                   "%s looks like text in %s; convert it: iconv -f %s -t UTF-8 FILE | tally ...; "
                   "for raw elements say their type, as in --dtype f64",
                   s->name, encoding, encoding),
               false;
    if (!said)
        return failed("%s is neither text nor a .npy file; for raw elements say their type, as in "
                      "--dtype f64",
                      s->name),
               false;
    if (!s->how.is_raw && guess_numbers(s->ahead, s->ahead_end, s->ahead_end == FIRST_LOOK))
        return failed("%s looks like numbers as text, not like raw %s; say --text or --raw",
                      s->name, tally_type_name(said)),
               false;
    if (!s->how.is_raw && tally_type_size(said) > 1 && guess_lines(s->ahead, s->ahead_end))
        return failed("%s looks like text, not like raw %s; say --text or --raw", s->name,
                      tally_type_name(said)),
               false;
    s->type = said;
    s->bytes = size;
    if (size != SOURCE_UNKNOWN && size % tally_type_size(said))
        return failed("%s has %" PRIu64 " bytes, which is no multiple of the %zu bytes of a %s; "
                      "check --dtype",
                      s->name, size, tally_type_size(said), tally_type_name(said)),
               false;
    return true;
}

static bool recognise_text(struct source *s, uint64_t size, tally_type said) {
    if (npy_recognise(s->ahead, s->ahead_end))
        return failed("%s is a .npy file; leave %s out", s->name, s->how.text_option), false;
    s->type = said ? said : TALLY_F64;
    s->bytes = size;
    s->is_text = true;
    return true;
}

/* Prepares to read rows. --dtype must be the type of all columns of numbers; decimals are read as
 * it. */
static bool settle_rows(struct source *s) {
    const tally_type said = s->how.said;
    for (size_t i = 0; i < s->found.count; i++) {
        tally_type *type = &s->found.type[i];
        if (said && *type && *type != said)
            return failed("%s: column %s holds %s, but --dtype says %s; leave --dtype out", s->name,
                          s->how.arrow.values->item[i], tally_type_name(*type),
                          tally_type_name(said)),
                   false;
        if (!*type) *type = said;
        if (s->how.arrow.kind == ARROW_PAIRS && (!*type || *type != s->found.type[0]))
            return failed("%s: dot takes two columns of one type of numbers, or --dtype f64 for "
                          "decimals",
                          s->name),
                   false;
    }
    s->is_rows = true;
    s->type = s->found.type[0] ? s->found.type[0] : TALLY_F64;
    return s->is_text = true;
}

/* Prepares to read what the helper sends: rows, elements, or decimals as text. */
static bool settle_arrow(struct source *s) {
    if (s->how.arrow.kind >= ARROW_ROWS) return settle_rows(s);
    if (s->found.type[0] && s->how.arrow.kind == ARROW_ARRAY) {
        struct npy_header header = {.type = s->found.type[0]};
        return settle_type(s, &header, s->how.said);
    }
    s->is_text = true;
    s->is_decimal = s->how.is_decimal || !s->how.said;
    s->type = s->how.said ? s->how.said : TALLY_F64;
    return true;
}

/* Starts the helper, puts its pipe into the place of the file, and reads its first line. */
static bool recognise_arrow(struct source *s) {
    close(s->file);
    s->ahead_next = s->ahead_end = 0;
    s->can_map = false;
    s->data = 0;
    s->bytes = SOURCE_UNKNOWN;
    if (!arrow_open(s->name, &s->how.arrow, s->how.spelling->skip_na, &s->file, &s->helper) ||
        !look_ahead(s, FIRST_LOOK))
        return false;
    const char *first = (const char *)s->ahead;
    const char *end = s->ahead_end ? memchr(s->ahead, '\n', s->ahead_end) : NULL;
    if (!end || !arrow_read_line(first, end, &s->found))
        return failed("%s: python3 has not written a column", s->name), false;
    s->ahead_next = (size_t)(end - first) + 1;
    return settle_arrow(s);
}

/* ---- Opening ---- */

/* Sets *size to the bytes that are left to read of a regular file, else to SOURCE_UNKNOWN. A
 * regular file of size 0 may be one of /proc: then only reading shows how long it is. */
static bool measure(struct source *s, uint64_t *size) {
    struct stat status;
    if (fstat(s->file, &status) != 0)
        return failed("%s cannot be read: %s", s->name, strerror(errno)), false;
    *size = SOURCE_UNKNOWN;
    if (!S_ISREG(status.st_mode) || status.st_size == 0) return true;
    off_t at = lseek(s->file, 0, SEEK_CUR); /* a shell may hand on a file that is partly read */
    if (at < 0) return true;
    s->can_map = true;
    s->data = (uint64_t)at;
    *size = status.st_size > at ? (uint64_t)(status.st_size - at) : 0;
    return true;
}

/* Makes `ahead` the first bytes of what a compressed file or an archive holds. */
static bool unpack(struct source *s, uint64_t *size) {
    const bool is_archive = s->ahead_end >= 4 && memcmp(s->ahead, "PK\3\4", 4) == 0;
    if (s->how.is_raw || s->unpacker) return true;
    if (is_archive && s->can_map && s->file > STDIN_FILENO) {
        if (!unpack_member(s->name, NULL, &s->unpacker)) return false;
    } else if (!unpack_open(s->name, s->ahead, s->ahead_end, read_packed, s, &s->unpacker)) {
        return false;
    }
    if (!s->unpacker) return true;
    s->before = s->ahead;
    s->before_end = s->ahead_end;
    s->ahead = NULL;
    s->ahead_end = 0;
    s->can_map = false;
    s->data = 0;
    *size = SOURCE_UNKNOWN;
    return look_ahead(s, FIRST_LOOK);
}

/* Rejects a file that is named .npy and does not begin as one, unless --dtype is given or the file
 * was packed. A .npy file that is cut short would look like text, or like nothing at all. */
static bool check_name(const struct source *s) {
    const size_t length = strlen(s->name);
    if (s->how.said || s->unpacker || length < 4 || strcmp(s->name + length - 4, ".npy") != 0)
        return true;
    return failed("%s does not begin as a .npy file does: it is cut short, or of another format; "
                  "write it again, or say --text or --dtype",
                  s->name),
           false;
}

static bool recognise(struct source *s) {
    uint64_t size = SOURCE_UNKNOWN;
    if (!s->unpacker && !measure(s, &size)) return false;
    if (!look_ahead(s, FIRST_LOOK)) return false;
    if (s->can_map && !s->how.is_raw &&
        (!s->how.is_text || s->how.arrow.values || s->how.arrow.column || s->how.arrow.kind) &&
        s->file > STDIN_FILENO && arrow_recognise(s->ahead, s->ahead_end))
        return recognise_arrow(s);
    if (!unpack(s, &size)) return false;
    if (size != SOURCE_UNKNOWN && s->ahead_end < FIRST_LOOK && s->ahead_end < size) {
        s->can_map = false; /* a file of /sys: it promises a page, and holds a line */
        size = SOURCE_UNKNOWN;
    }
    if (s->how.is_text)
        return (guess_text(s->ahead, s->ahead_end) || check_unpacked(s)) &&
               recognise_text(s, size, s->how.said);
    if (s->how.is_raw) return recognise_raw(s, size, s->how.said);
    if (npy_recognise(s->ahead, s->ahead_end)) return recognise_npy(s, size, s->how.said);
    if (!check_unpacked(s) || !check_name(s)) return false;
    if (!s->how.said && guess_text(s->ahead, s->ahead_end))
        return recognise_text(s, size, s->how.said);
    return recognise_raw(s, size, s->how.said);
}

const char *source_field(const char *name, char path[1024]) {
    const char *colon = NULL;
    for (const char *at = name; (at = strstr(at, ".npy:")); at++)
        if (at[5]) colon = at + 4;
    if (!colon || (size_t)(colon - name) >= 1024 || access(name, F_OK) == 0) {
        snprintf(path, 1024, "%s", name);
        return NULL;
    }
    snprintf(path, 1024, "%.*s", (int)(colon - name), name);
    return colon + 1;
}

/* Returns the colon of a name such as a.npz:x or a.zip:x; NULL for other names, and if a file has
 * this name as a whole. */
static const char *member_colon(const char *name) {
    const char *npz = strstr(name, ".npz:"), *at = npz ? npz : strstr(name, ".zip:");
    return at && at[5] && access(name, F_OK) != 0 ? at + 4 : NULL;
}

bool source_is_member(const char *name) {
    return member_colon(name);
}

static bool open_member(struct source *s, bool *is_member) {
    const char *colon = member_colon(s->base);
    *is_member = colon;
    if (!*is_member) return true;
    snprintf(s->path, sizeof s->path, "%.*s", (int)(colon - s->base), s->base);
    return unpack_member(s->path, colon + 1, &s->unpacker);
}

bool source_open(struct source *s, const char *name, const struct reading *how) {
    bool is_member;
    bool is_stdin = source_is_stdin(name);
    *s = (struct source){
        .name = is_stdin ? "standard input" : name, .how = *how, .file = STDIN_FILENO};
    s->field = source_field(name, s->base);
    if (!open_member(s, &is_member)) return false;
    if (is_member)
        s->file = -1;
    else if (!is_stdin)
        s->file = open(s->base, O_RDONLY | O_CLOEXEC);
    if (s->file < 0 && !is_member)
        return failed("%s cannot be opened: %s", name, strerror(errno)), false;
    if (is_stdin && isatty(s->file) && isatty(STDERR_FILENO))
        fputs("tally: numbers are read from the terminal; Ctrl-D ends them\n", stderr);
    if (recognise(s)) return true;
    source_drop(s);
    return false;
}

uint64_t source_count(const struct source *s) {
    return s->is_text || s->bytes == SOURCE_UNKNOWN ? SOURCE_UNKNOWN : s->bytes / source_step(s);
}

bool source_lies_like(const struct source *s, const struct source *other) {
    if (!s->has_shape || !other->has_shape || s->dims < 2 || other->dims < 2 ||
        s->is_fortran == other->is_fortran)
        return true;
    return failed("%s is in %s's order and %s in %s's, so that their elements do not lie in pairs; "
                  "save one of them in the other's order",
                  s->name, s->is_fortran ? "Fortran" : "C", other->name,
                  other->is_fortran ? "Fortran" : "C"),
           false;
}

void source_drop(struct source *s) {
    unpack_close(s->unpacker);
    arrow_close(&s->helper);
    if (s->file > STDIN_FILENO) close(s->file);
    free(s->ahead);
    free(s->before);
    s->ahead = s->before = NULL;
    s->unpacker = NULL;
}
