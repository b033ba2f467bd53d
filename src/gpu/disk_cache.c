/* disk_cache.c - see disk_cache.h. */
#define _GNU_SOURCE /* secure_getenv, statx */
#include "gpu/disk_cache.h"

#include "base/hash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- Keys and names ------------------------------------------------------------------------ */

#define DIGITS         32       /* of a hash of 128 bits */
#define SUFFIX         ".tally" /* of a program's file; a file that is being written has more behind it */
#define NAME_ROOM      (DIGITS + sizeof SUFFIX)
#define TEMPORARY_ROOM (NAME_ROOM + 17)

/* Writes the FNV-1a hash of 128 bits of a text, in hexadecimal. */
static void write_hash(const char *text, char out[DIGITS + 1]) {
    const unsigned __int128 prime = (unsigned __int128)1 << 88 | 0x13b;
    unsigned __int128 h =
        (unsigned __int128)UINT64_C(0x6c62272e07bb0142) << 64 | UINT64_C(0x62b821756295c58d);
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * prime;
    snprintf(out, DIGITS + 1, "%016llx%016llx", (unsigned long long)(h >> 64),
             (unsigned long long)h);
}

/* The key has the root whole, as the root may hold an operator that somebody has made to have the hash of another
 * one. Of the text, which adds the library's own sources to the root, a hash is enough. */
char *disk_cache_key(const char *compiler, const char *root, const char *text) {
    char digest[DIGITS + 1];
    write_hash(text, digest);
    const size_t room = strlen(compiler) + strlen(root) + sizeof digest + 16;
    char *key = malloc(room);
    if (key) snprintf(key, room, "%s\ntext %s\n%s", compiler, digest, root);
    return key;
}

static void name_of(const char *key, char name[NAME_ROOM]) {
    write_hash(key, name);
    memcpy(name + DIGITS, SUFFIX, sizeof SUFFIX);
}

/* Returns whether a file has a name of ours; *temporary becomes true for one that is being written. */
static bool is_ours(const char *name, bool *temporary) {
    if (strspn(name, "0123456789abcdef") != DIGITS) return false;
    if (strncmp(name + DIGITS, SUFFIX, sizeof SUFFIX - 1) != 0) return false;
    const char *more = name + NAME_ROOM - 1;
    *temporary = *more == '.';
    return *more == '\0' || *temporary;
}

/* ---- The folder ---------------------------------------------------------------------------- */

/* Returns a setting of the environment; NULL if it is empty, or the process has another user's rights (setuid). */
static const char *setting(const char *name) {
    const char *value = secure_getenv(name);
    return value && *value ? value : NULL;
}

/* Returns the setting if it is an absolute path, which the specification of XDG demands, else NULL. */
static const char *absolute(const char *name) {
    const char *value = setting(name);
    return value && *value == '/' ? value : NULL;
}

static char *joined(const char *folder, const char *rest) {
    const size_t room = strlen(folder) + strlen(rest) + 1;
    char *path = malloc(room);
    if (path) snprintf(path, room, "%s%s", folder, rest);
    return path;
}

char *disk_cache_path(void) {
    const char *off = setting("TALLY_CACHE"), *folder = NULL;
    if (off && strcmp(off, "0") == 0) return NULL;
    if ((folder = setting("TALLY_CACHE_DIR"))) return joined(folder, "");
    if ((folder = absolute("XDG_CACHE_HOME"))) return joined(folder, "/tally");
    if ((folder = absolute("HOME"))) return joined(folder, "/.cache/tally");
    return NULL;
}

bool disk_cache_serves(bool driver_keeps) {
    const char *on = setting("TALLY_CACHE");
    return on ? strcmp(on, "0") != 0 : !driver_keeps;
}

/* Makes a folder and those around it, for the user alone. */
static void make_folders(char *path) {
    for (char *at = path + 1; (at = strchr(at, '/')); at++) {
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
}

/* Reads the attributes of an open file or folder. Returns whether that worked. (fstat() is no symbol of glibc 2.28, the
 * oldest that the wheel is for, but a program that is linked today would need it there.) */
static bool look(int file, struct statx *out) {
    return statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS, out) == 0;
}

/* Returns whether a folder or a file is the user's, and nobody else may write there. */
static bool is_trusted(const struct statx *s) {
    return s->stx_uid == geteuid() && (s->stx_mode & (S_IWGRP | S_IWOTH)) == 0;
}

/* Opens the folder; if `make`, makes it first where it is missing. Returns -1 if there is no trusted one. */
static int open_folder(bool make) {
    char *path = disk_cache_path();
    struct statx s;
    if (!path) return -1;
    if (make) make_folders(path);
    const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    free(path);
    if (folder < 0) return -1;
    if (look(folder, &s) && is_trusted(&s)) return folder;
    close(folder);
    return -1;
}

/* ---- Files --------------------------------------------------------------------------------- */

/* The head of a file. The key and the program follow it. */
struct head {
    char magic[8];
    uint64_t key, size; /* bytes of each */
    uint64_t hash;      /* of both */
};
static const char magic[8] = "tally 1";

static bool read_all(int file, char *to, size_t size) {
    while (size > 0) {
        const ssize_t got = read(file, to, size);
        if (got < 0 && errno == EINTR) continue;
        if (got <= 0) return false;
        to += got;
        size -= (size_t)got;
    }
    return true;
}

static bool write_all(int file, const void *bytes, size_t size) {
    const char *from = bytes;
    while (size > 0) {
        const ssize_t put = write(file, from, size);
        if (put < 0 && errno == EINTR) continue;
        if (put <= 0) return false;
        from += put;
        size -= (size_t)put;
    }
    return true;
}

/* Returns whether the `size` bytes of a file are a program of this key. */
static bool is_sound(const char *file, size_t size, const char *key) {
    struct head head;
    const char *body = file + sizeof head;
    const size_t length = strlen(key);
    memcpy(&head, file, sizeof head);
    return memcmp(head.magic, magic, sizeof magic) == 0 && head.key == length &&
           size - sizeof head > length && head.size == size - sizeof head - length &&
           memcmp(body, key, length) == 0 &&
           hash((const unsigned char *)body, size - sizeof head) == head.hash;
}

/* Returns the program of a file, which the caller frees, with a 0 behind it; NULL if the file is not sound. */
static char *read_program(int file, const char *key, size_t *out) {
    struct statx s;
    if (!look(file, &s) || !S_ISREG(s.stx_mode) || !is_trusted(&s)) return NULL;
    if (s.stx_size <= sizeof(struct head) || s.stx_size > DISK_CACHE_MOST) return NULL;
    const size_t size = (size_t)s.stx_size, before = sizeof(struct head) + strlen(key);
    char *bytes = malloc(size + 1);
    if (!bytes || !read_all(file, bytes, size) || !is_sound(bytes, size, key)) {
        free(bytes);
        return NULL;
    }
    *out = size - before;
    memmove(bytes, bytes + before, *out);
    bytes[*out] = '\0';
    return bytes;
}

char *disk_cache_load(const char *key, size_t *size) {
    static const struct timespec now[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_NOW}};
    char name[NAME_ROOM], *program = NULL;
    const int folder = open_folder(false);
    if (folder < 0) return NULL;
    name_of(key, name);
    const int file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0) {
        program = read_program(file, key, size);
        if (program) futimens(file, now); /* it is used now: see trim() */
        close(file);
    }
    close(folder);
    return program;
}

/* ---- Keeping ------------------------------------------------------------------------------- */

#define TEMPORARY_AGE 3600 /* seconds after which a half written file counts as given up */

struct entry {
    char name[NAME_ROOM];
    struct timespec used;
    uint64_t size;
};

static int by_use(const void *a, const void *b) {
    const struct timespec *x = &((const struct entry *)a)->used,
                          *y = &((const struct entry *)b)->used;
    if (x->tv_sec != y->tv_sec) return x->tv_sec < y->tv_sec ? -1 : 1;
    return (x->tv_nsec > y->tv_nsec) - (x->tv_nsec < y->tv_nsec);
}

/* Lists the programs of a folder in *out, which the caller frees, and removes files that were given up half written.
 * Returns their number. */
static size_t list(int folder, DIR *stream, struct entry **out) {
    size_t count = 0, room = 0;
    struct dirent *d;
    struct statx s;
    bool temporary;
    *out = NULL;
    while ((d = readdir(stream))) {
        if (!is_ours(d->d_name, &temporary)) continue;
        if (statx(folder, d->d_name, AT_SYMLINK_NOFOLLOW, STATX_BASIC_STATS, &s) != 0 ||
            !S_ISREG(s.stx_mode))
            continue;
        if (temporary) {
            if (time(NULL) - s.stx_mtime.tv_sec > TEMPORARY_AGE) unlinkat(folder, d->d_name, 0);
            continue;
        }
        if (count == room) {
            struct entry *more = realloc(*out, (room = 2 * room + 64) * sizeof **out);
            if (!more) break;
            *out = more;
        }
        struct entry *e = &(*out)[count++];
        memcpy(e->name, d->d_name, NAME_ROOM);
        e->used = (struct timespec){.tv_sec = s.stx_mtime.tv_sec, .tv_nsec = s.stx_mtime.tv_nsec};
        e->size = s.stx_size;
    }
    return count;
}

/* Drops the least recently used programs until at most `most` bytes are left. A program that another process has
 * dropped meanwhile counts as dropped. */
static void trim(int folder, uint64_t most) {
    struct entry *entries;
    uint64_t sum = 0;
    const int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *stream = again >= 0 ? fdopendir(again) : NULL;
    if (!stream) {
        if (again >= 0) close(again);
        return;
    }
    const size_t count = list(folder, stream, &entries);
    closedir(stream);
    for (size_t i = 0; i < count; i++)
        sum += entries[i].size;
    if (sum > most) qsort(entries, count, sizeof *entries, by_use);
    for (size_t i = 0; i < count && sum > most; i++) {
        unlinkat(folder, entries[i].name, 0);
        sum -= entries[i].size;
    }
    free(entries);
}

/* Opens a file of a name that no other process has, to be renamed to `name` when it is whole. */
static int open_temporary(int folder, const char *name, char out[TEMPORARY_ROOM]) {
    struct timespec now;
    for (unsigned try = 0; try < 8; try++) {
        clock_gettime(CLOCK_REALTIME, &now);
        const unsigned number = (unsigned)now.tv_nsec + try;
        snprintf(out, TEMPORARY_ROOM, "%s.%08x%08x", name, (unsigned)getpid(), number);
        const int file =
            openat(folder, out, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
        if (file >= 0 || errno != EEXIST) return file;
    }
    return -1;
}

/* Returns whether the process may write a file of so many bytes. A write beyond the limit would end it by a signal. */
static bool fits_limit(uint64_t size) {
    struct rlimit limit;
    return getrlimit(RLIMIT_FSIZE, &limit) == 0 &&
           (limit.rlim_cur == RLIM_INFINITY || size <= limit.rlim_cur);
}

/* Makes head, key and program one file. Returns NULL without memory. */
static char *make_file(const char *key, const void *bytes, size_t size, size_t *out) {
    struct head head = {.key = strlen(key), .size = size};
    char *file = malloc(*out = sizeof head + head.key + size);
    if (!file) return NULL;
    memcpy(file + sizeof head, key, head.key);
    memcpy(file + sizeof head + head.key, bytes, size);
    memcpy(head.magic, magic, sizeof magic);
    head.hash = hash((const unsigned char *)file + sizeof head, head.key + size);
    memcpy(file, &head, sizeof head);
    return file;
}

void disk_cache_store(const char *key, const void *bytes, size_t size, uint64_t most) {
    char name[NAME_ROOM], temporary[TEMPORARY_ROOM];
    size_t length;
    const int folder = open_folder(true);
    if (folder < 0) return;
    char *whole = make_file(key, bytes, size, &length);
    name_of(key, name);
    const int file = whole && size > 0 && length <= most && fits_limit(length)
                         ? open_temporary(folder, name, temporary)
                         : -1;
    if (file >= 0) {
        const bool written = write_all(file, whole, length);
        if (close(file) == 0 && written && renameat(folder, temporary, folder, name) == 0)
            trim(folder, most);
        else
            unlinkat(folder, temporary, 0);
    }
    free(whole);
    close(folder);
}
