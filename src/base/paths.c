/* paths.c - see paths.h. */
#include "base/paths.h"

#if defined(TALLY_DEBUG)

#include "base/table.h"
#include "tally.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TYPE_NAME(NAME, name, kind, bits) [TALLY_##NAME] = #name,
static const char *const type_names[] = {TALLY_TYPES(TYPE_NAME)};
const struct path_axis path_types = {1, sizeof type_names / sizeof *type_names, type_names};

#define OP_NAME(NAME, name, family) [TALLY_##NAME] = #name,
#define STATISTIC_NAME(NAME, name)  [TALLY_##NAME] = #name,
static const char *const op_names[] = {TALLY_OPS(OP_NAME)
                                           TALLY_STATISTICS(STATISTIC_NAME)[TALLY_USER] = "user"};
const struct path_axis path_ops = {1, sizeof op_names / sizeof *op_names, op_names};

/* The array of all tables: the linker puts the pointers that PATH_KNOWN() defines side by side. A
 * program may have no tables, so the symbols are weak. */
extern struct path_table *const __start_tally_paths[] __attribute__((weak, visibility("hidden")));
extern struct path_table *const __stop_tally_paths[] __attribute__((weak, visibility("hidden")));

/* ---- Cells --------------------------------------------------------------------------------- */

static size_t axis_values(const struct path_table *t, unsigned k) {
    return t->axis[k] ? t->axis[k]->end - t->axis[k]->first : 1;
}

static size_t cells_of(const struct path_table *t) {
    size_t cells = 1;
    for (unsigned k = 0; k < PATH_AXES; k++)
        cells *= axis_values(t, k);
    return cells;
}

/* Sets at[] to the values that the axes have at a cell. */
static void values_at(const struct path_table *t, size_t cell, unsigned at[PATH_AXES]) {
    for (unsigned k = PATH_AXES; k-- > 0;) {
        at[k] = (unsigned)(cell % axis_values(t, k)) + (t->axis[k] ? t->axis[k]->first : 0);
        cell /= axis_values(t, k);
    }
}

const unsigned path_nowhere[PATH_AXES];

void path_take(const struct path_table *t, const unsigned at[PATH_AXES]) {
    size_t cell = 0;
    for (unsigned k = 0; k < PATH_AXES; k++) {
        const unsigned value = at[k] - (t->axis[k] ? t->axis[k]->first : 0);
        if (value >= axis_values(t, k)) {
            fprintf(stderr, "tally: %s: value %u is not on axis %u of its paths\n", t->place, at[k],
                    k);
            abort();
        }
        cell = cell * axis_values(t, k) + value;
    }
    if (t->taken) __atomic_fetch_add(&t->taken[cell], 1, __ATOMIC_RELAXED);
}

/* ---- Names --------------------------------------------------------------------------------- */

/* Appends a text to the `used` bytes in line[0..size), cut off at size - 1. Returns the new
 * length. */
static size_t append(char *line, size_t size, size_t used, const char *text) {
    const size_t length = strlen(text), left = size - 1 - used;
    const size_t more = length < left ? length : left;
    memcpy(line + used, text, more);
    line[used + more] = '\0';
    return used + more;
}

/* Calls take() for each path in turn, with its name and with the reason why no call takes it, or
 * "". The tables' rules are asked only if `with_reasons`. */
static void each_name(void (*take)(void *context, const char *name, const char *reason),
                      void *context, int with_reasons) {
    unsigned at[PATH_AXES];
    char name[512];
    for (struct path_table *const *t = __start_tally_paths; t < __stop_tally_paths; t++)
        for (size_t cell = 0; cell < cells_of(*t); cell++) {
            size_t used = 0;
            values_at(*t, cell, at);
            if ((*t)->isa) {
                used = append(name, sizeof name, used, (*t)->isa);
                used = append(name, sizeof name, used, " ");
            }
            used = append(name, sizeof name, used, (*t)->place);
            if (*(*t)->what) used = append(name, sizeof name, used, ": ");
            used = append(name, sizeof name, used, (*t)->what);
            for (unsigned k = 0; k < PATH_AXES && (*t)->axis[k]; k++) {
                used = append(name, sizeof name, used, k ? " " : ": ");
                used = append(name, sizeof name, used, (*t)->axis[k]->names[at[k]]);
            }
            const char *never = (*t)->reason;
            if (with_reasons && !never && (*t)->never) never = (*t)->never(*t, at);
            take(context, name, never ? never : "");
        }
}

static void write_name(void *out, const char *name, const char *reason) {
    fprintf(out, "%s\t%s\n", name, reason);
}

/* Writes the names to a file unless it is there; other processes may do so, too. */
static void keep_names(const char *path) {
    char own[4096];
    if (access(path, F_OK) == 0) return;
    if ((size_t)snprintf(own, sizeof own, "%s.%ld", path, (long)getpid()) >= sizeof own) return;
    FILE *out = fopen(own, "w");
    if (!out) return;
    each_name(write_name, out, 1);
    if (fclose(out) != 0 || rename(own, path) != 0) unlink(own);
}

/* Continues an FNV-1a hash with a name and the zero behind it. */
static void hash_name(void *context, const char *name, const char *reason) {
    uint64_t *hash = context;
    (void)reason;
    for (size_t i = 0; i == 0 || name[i - 1]; i++)
        *hash = (*hash ^ (unsigned char)name[i]) * 0x100000001b3u;
}

/* Returns the hash of all names. Allocates nothing: a test's own allocator may not be ready before
 * main(). */
static uint64_t hash_of_names(void) {
    uint64_t hash = 0xcbf29ce484222325u;
    each_name(hash_name, &hash, 0);
    return hash;
}

/* ---- Counters ------------------------------------------------------------------------------ */

/* Maps the counters; where that cannot be done nothing is counted. */
__attribute__((constructor)) static void map_counters(void) {
    char path[4096];
    const char *folder = getenv("TALLY_PATHS");
    size_t cells = 0;
    if (!folder || !*folder) return;
    for (struct path_table *const *t = __start_tally_paths; t < __stop_tally_paths; t++)
        cells += cells_of(*t);
    if (cells == 0) return;
    const uint64_t layout = hash_of_names();
    /* ".counts", the end of the other file's name, is a byte longer than ".names". */
    if (snprintf(path, sizeof path - 1, "%s/%016llx.names", folder, (unsigned long long)layout) >=
        (int)sizeof path - 1)
        return;
    mkdir(folder, 0777);
    keep_names(path);
    memcpy(strrchr(path, '.'), ".counts", sizeof ".counts");
    const int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (file < 0) return;
    void *counters = MAP_FAILED;
    if (ftruncate(file, (off_t)(cells * sizeof(uint64_t))) == 0)
        counters =
            mmap(NULL, cells * sizeof(uint64_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (counters == MAP_FAILED) return;
    uint64_t *at = counters;
    for (struct path_table *const *t = __start_tally_paths; t < __stop_tally_paths; t++) {
        (*t)->taken = at;
        at += cells_of(*t);
    }
}

#endif
