/*
 * results.c - see results.h.
 */
#include "parts/results.h"

#include "common/memory.h"
#include "common/message.h"
#include "common/scratch.h"
#include "common/temporary.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    MEMORY_BYTES = 32 << 20, /* bytes of results in memory; more go to a scratch file */
    COPY_BYTES = 1 << 20,
    HEADER_BYTES = 33 * 64 /* the most: 32 fields and 16 lengths. Its size is a multiple of 64 */
};

static const char *shown(const struct results *r) {
    return r->path && strcmp(r->path, "-") != 0 ? r->path : "standard output";
}

static bool cannot_write(const char *name) {
    return failed("%s cannot be written: %s", name, strerror(errno)), false;
}

/* Returns true if a new file may take the place of `path`: it is a regular file, or does not exist.
 * A device, a pipe or standard output is written to as it is. */
static bool is_plain(const char *path) {
    struct stat status;
    if (strcmp(path, "-") == 0) return false;
    return stat(path, &status) != 0 || (!S_ISDIR(status.st_mode) && S_ISREG(status.st_mode));
}

/* Returns false, with a message, if an operator is asked for twice: the fields of a .npy file have
 * the operators' names, which must differ. */
static bool check_fields(const struct results *r) {
    for (size_t i = 0; i < r->values; i++)
        for (size_t j = 0; j < i; j++)
            if (r->op[i] == r->op[j])
                return failed("%s is asked for twice, and the fields of a .npy file have names of "
                              "their own; leave one out",
                              tally_op_name(r->op[i])),
                       false;
    return true;
}

bool results_begin(struct results *r, const tally_problem *problem, const char *path) {
    *r = (struct results){.problem = *problem, .path = path, .file = -1};
    if (tally_problem_values(problem, &r->values) != TALLY_OK)
        return failed("%s", tally_error()), false;
    for (size_t v = 0; v < r->values; v++) {
        r->op[v] = tally_problem_value_op(problem, v);
        r->type[v] = tally_problem_value_type(problem, v);
        r->record += tally_type_size(r->type[v]);
    }
    if (!path) return true;
    if (!check_fields(r)) return false;
    if (!is_plain(path)) {
        const int file = strcmp(path, "-") == 0 ? -1 : open(path, O_WRONLY | O_CLOEXEC);
        if (file < 0) return strcmp(path, "-") == 0 || cannot_write(path);
        close(file);
        return true;
    }
    r->file = scratch_create(path);
    if (r->file < 0) return cannot_write(path);
    r->is_scratch = true;
    return true;
}

void results_end(struct results *r) {
    for (size_t v = 0; v < r->values; v++)
        free(r->out[v]);
    free(r->memory);
    if (r->file >= 0) close(r->file);
    if (r->is_scratch) scratch_remove();
    *r = (struct results){.file = -1};
}

bool results_room(struct results *r, size_t count) {
    if (count <= r->room && r->room) return true;
    size_t bytes;
    const bool fits =
        !__builtin_mul_overflow(count, r->record, &bytes) && bytes < memory_available();
    for (size_t v = 0; v < r->values; v++) {
        free(r->out[v]);
        r->out[v] = fits ? malloc(count * tally_type_size(r->type[v]) + 1) : NULL;
        if (!r->out[v]) {
            r->room = 0;
            return failed("no memory for %zu results; reduce parts of the data", count), false;
        }
    }
    r->room = count;
    return true;
}

/* ---- Collecting ---- */

static bool write_all(int file, const unsigned char *bytes, size_t size, const char *name) {
    while (size) {
        const ssize_t n = write(file, bytes, size);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return cannot_write(name);
        bytes += n;
        size -= (size_t)n;
    }
    return true;
}

static const char *file_name(const struct results *r) {
    return r->is_scratch ? shown(r) : "the scratch file";
}

/* Moves the results from memory to the .npy file, behind the place of its header, or to a file
 * without a name. */
static bool spill(struct results *r) {
    char name[4096];
    r->spilled = true;
    if (!r->is_scratch) {
        snprintf(name, sizeof name, "%s/tally-XXXXXX", temporary_folder());
        r->file = mkstemp(name);
        if (r->file < 0) return cannot_write(name);
        unlink(name);
    } else if (lseek(r->file, HEADER_BYTES, SEEK_SET) < 0) {
        return cannot_write(r->path);
    }
    return write_all(r->file, r->memory, r->used, file_name(r));
}

static bool append(struct results *r, const unsigned char *bytes, size_t size) {
    if (!size) return true;
    if (!r->spilled && size > MEMORY_BYTES - r->used && !spill(r)) return false;
    if (r->spilled) return write_all(r->file, bytes, size, file_name(r));
    if (r->used + size > r->size) {
        const size_t wanted = 2 * (r->used + size);
        unsigned char *grown = realloc(r->memory, wanted);
        if (!grown) return failed("no memory for the results"), false;
        r->memory = grown;
        r->size = wanted;
    }
    memcpy(r->memory + r->used, bytes, size);
    r->used += size;
    return true;
}

/* Copies results from number `from` on out of the block, each with its values side by side. */
static void gather(const struct results *r, size_t from, size_t count, unsigned char *to) {
    size_t at = 0;
    for (size_t v = 0; v < r->values; v++) {
        const size_t size = tally_type_size(r->type[v]);
        const unsigned char *x = (const unsigned char *)r->out[v] + from * size;
        for (size_t i = 0; i < count; i++)
            memcpy(to + i * r->record + at, x + i * size, size);
        at += size;
    }
}

bool results_put(struct results *r, size_t count) {
    enum { SOME = 512 };
    unsigned char some[SOME * 8 * TALLY_VALUES_MAX];
    r->count += count;
    if (r->values == 1) return append(r, r->out[0], count * r->record);
    for (size_t i = 0; i < count; i += SOME) {
        const size_t n = count - i < SOME ? count - i : (size_t)SOME;
        gather(r, i, n, some);
        if (!append(r, some, n * r->record)) return false;
    }
    return true;
}

/* ---- The file ---- */

static const char *descr(tally_type type, char text[8]) {
    const char *name = tally_type_name(type);
    const size_t size = tally_type_size(type);
    const char order = size == 1 ? '|' : __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '<' : '>';
    snprintf(text, 8, "%c%c%zu", order, type == TALLY_BF16 ? 'V' : *name, size);
    return text;
}

/* Writes the header and returns its size: HEADER_BYTES if the results are already in the .npy file
 * behind it, else the least multiple of 64. */
static size_t print_header(const struct results *r, unsigned dims, const uint64_t *length,
                           unsigned char header[HEADER_BYTES]) {
    static const unsigned char magic[8] = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0};
    char type[8], *text = (char *)header + 10;
    const size_t room = HEADER_BYTES - 10;
    size_t used = 0, size = HEADER_BYTES;
#define PRINT(...) used += (size_t)snprintf(text + used, room - used, __VA_ARGS__)
    PRINT("{'descr': ");
    if (r->values == 1) PRINT("'%s'", descr(r->type[0], type));
    for (size_t v = 0; v < r->values && r->values > 1; v++)
        PRINT("%s('%s', '%s')", v ? ", " : "[", tally_op_name(r->op[v]), descr(r->type[v], type));
    PRINT("%s, 'fortran_order': False, 'shape': (", r->values > 1 ? "]" : "");
    for (unsigned d = 0; d < dims; d++)
        PRINT("%" PRIu64 "%s", length[d], dims == 1 ? "," : d + 1 < dims ? ", " : "");
    PRINT("), }");
#undef PRINT
    if (!r->spilled || !r->is_scratch) size = (10 + used + 1 + 63) / 64 * 64;
    memset(text + used, ' ', size - 10 - used - 1);
    header[size - 1] = '\n';
    memcpy(header, magic, sizeof magic);
    header[8] = (size - 10) & 0xff;
    header[9] = (unsigned char)((size - 10) >> 8);
    return size;
}

/* Copies the results from the file to another. */
static bool copy_file(const struct results *r, int to) {
    unsigned char *some = malloc(COPY_BYTES);
    ssize_t n = some && lseek(r->file, 0, SEEK_SET) == 0 ? 1 : -1;
    bool done = true;
    while (done && n > 0 && (n = read(r->file, some, COPY_BYTES)) > 0)
        done = write_all(to, some, (size_t)n, shown(r));
    free(some);
    return n >= 0 ? done : (failed("the scratch file cannot be read: %s", strerror(errno)), false);
}

bool results_write(struct results *r, unsigned dims, const uint64_t *length) {
    unsigned char header[HEADER_BYTES];
    const size_t size = print_header(r, dims, length, header);
    const bool to_stdout = strcmp(r->path, "-") == 0;
    const int to = r->is_scratch ? r->file
                   : to_stdout   ? STDOUT_FILENO
                                 : open(r->path, O_WRONLY | O_CLOEXEC);
    if (to < 0 || (r->is_scratch && lseek(to, 0, SEEK_SET) != 0)) return cannot_write(shown(r));
    bool done = write_all(to, header, size, shown(r));
    if (done && !r->spilled) done = write_all(to, r->memory, r->used, shown(r));
    if (done && r->spilled && !r->is_scratch) done = copy_file(r, to);
    if (r->is_scratch) r->file = -1;
    if (!to_stdout && close(to) != 0 && done) done = cannot_write(shown(r));
    if (!done || !r->is_scratch) return done;
    if (!scratch_keep(r->path)) return cannot_write(r->path);
    r->is_scratch = false;
    return true;
}

/* ---- Reading them again ---- */

/* Returns true if value v is the argmin or argmax of no elements. It occurs only beside other
 * values: alone it would have been an error. */
static bool is_none(const struct results *r, size_t v, uint64_t bits) {
    return r->values > 1 && bits == UINT64_MAX &&
           (r->op[v] == TALLY_ARGMIN || r->op[v] == TALLY_ARGMAX);
}

static void unpack(const struct results *r, const unsigned char *record, tally_value *values) {
    for (size_t v = 0; v < r->values; v++) {
        const size_t size = tally_type_size(r->type[v]);
        values[v] = (tally_value){.type = r->type[v]};
        memcpy(&values[v].as, record, size);
        if (is_none(r, v, values[v].as.u64)) values[v].type = 0;
        record += size;
    }
}

bool results_each(struct results *r,
                  bool (*each)(void *context, uint64_t number, const tally_value *values),
                  void *context) {
    tally_value values[TALLY_VALUES_MAX];
    const size_t most = COPY_BYTES / r->record;
    unsigned char *some = r->spilled ? malloc(most * r->record) : NULL;
    bool more = true;
    for (uint64_t i = 0; i < r->count && more;) {
        const size_t n = r->count - i < most ? (size_t)(r->count - i) : most;
        const unsigned char *at = some ? some : r->memory + i * r->record;
        const off_t place = (off_t)(i * r->record);
        if (r->file >= 0 &&
            (!some || pread(r->file, some, n * r->record, place) != (ssize_t)(n * r->record))) {
            failed("the scratch file cannot be read: %s", strerror(errno));
            more = false;
        }
        for (size_t k = 0; k < n && more; k++, i++) {
            unpack(r, at + k * r->record, values);
            more = each(context, i, values);
        }
    }
    free(some);
    return more;
}

const char *results_text(const tally_value *value, char text[32]) {
    tally_value_print(value, text, 32);
    return text;
}
