/*
 * test_disk_cache.c - compiled programs on disk (src/gpu/disk_cache.h): what is kept comes back, and whatever else a folder
 * holds has no effect. Each test has a folder of its own.
 */
#include "../c/testing.h"

#include "gpu/disk_cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PATH_ROOM = 512, NOBODY = 65534 };
static char folder[PATH_ROOM / 4];

/* ---- Help ----------------------------------------------------------------------------------- */

static int new_folder(void **state) {
    (void)state;
    unsetenv("TALLY_CACHE");
    unsetenv("XDG_CACHE_HOME");
    unsetenv("HOME");
    snprintf(folder, sizeof folder, "/tmp/tally-cache-XXXXXX");
    if (!mkdtemp(folder)) return -1;
    return setenv("TALLY_CACHE_DIR", folder, 1);
}

static int end_folder(void **state) {
    char command[PATH_ROOM];
    (void)state;
    snprintf(command, sizeof command, "chmod -R u+rwx %s && rm -rf %s", folder, folder);
    return system(command); /* NOLINT(cert-env33-c,concurrency-mt-unsafe): a name of mkdtemp() */
}

/* Writes the path of the folder's only file to `out`; returns how many files there are. */
static unsigned only_file(char out[PATH_ROOM]) {
    unsigned count = 0;
    struct dirent *d;
    DIR *stream = opendir(folder);
    while (stream && (d = readdir(stream)))
        if (d->d_name[0] != '.') {
            count++;
            snprintf(out, PATH_ROOM, "%s/%s", folder, d->d_name);
        }
    if (stream) closedir(stream);
    return count;
}

static size_t read_file(const char *path, char *out, size_t room) {
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    const size_t size = fread(out, 1, room, file);
    fclose(file);
    return size;
}

static void write_file(const char *path, const char *bytes, size_t size) {
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static void store(const char *key, const char *program) {
    disk_cache_store(key, program, strlen(program), DISK_CACHE_MOST);
}

/* Returns whether the program is there; fails if another is. */
static int has(const char *key, const char *program) {
    size_t size = 0;
    char *found = disk_cache_load(key, &size);
    if (!found) return 0;
    assert_int_equal(size, strlen(program));
    assert_string_equal(found, program);
    free(found);
    return 1;
}

/* ---- What is kept --------------------------------------------------------------------------- */

static void hits_and_misses(void **state) {
    char path[PATH_ROOM];
    struct stat s;
    size_t size;
    (void)state;
    assert_false(has("one", ""));
    store("one", "first");
    assert_true(has("one", "first"));
    assert_false(has("on", ""));
    assert_false(has("one ", ""));
    store("two", "second");
    store("one", "another");
    assert_true(has("two", "second") && has("one", "another"));
    disk_cache_store("zeros", "a\0b\0", 4, DISK_CACHE_MOST);
    char *found = disk_cache_load("zeros", &size);
    assert_non_null(found);
    assert_memory_equal(found, "a\0b\0", 5);
    assert_int_equal(size, 4);
    free(found);
    assert_int_equal(only_file(path), 3);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0600);
}

/* Each part of a key makes another one. */
static void keys(void **state) {
    char *all[4] = {disk_cache_key("a", "b", "c"), disk_cache_key("A", "b", "c"),
                    disk_cache_key("a", "B", "c"), disk_cache_key("a", "b", "C")};
    (void)state;
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < i; j++)
            assert_string_not_equal(all[i], all[j]);
    for (int i = 0; i < 4; i++)
        free(all[i]);
}

static void has_path(const char *wanted) {
    char *path = disk_cache_path();
    if (wanted) {
        assert_non_null(path);
        assert_string_equal(path, wanted);
    } else {
        assert_null(path);
    }
    free(path);
}

static void folders(void **state) {
    char home[PATH_ROOM], path[PATH_ROOM + 32];
    struct stat s;
    (void)state;
    has_path(folder);
    setenv("HOME", "/h", 1);
    setenv("XDG_CACHE_HOME", "/x", 1);
    has_path(folder);
    setenv("TALLY_CACHE_DIR", "", 1);
    has_path("/x/tally");
    setenv("XDG_CACHE_HOME", "x", 1); /* no absolute path: as if it were not there */
    has_path("/h/.cache/tally");
    unsetenv("HOME");
    has_path(NULL);
    store("key", "program");
    assert_false(has("key", ""));
    setenv("TALLY_CACHE_DIR", folder, 1);
    setenv("TALLY_CACHE", "1", 1);
    has_path(folder);
    store("key", "program");
    assert_true(disk_cache_serves(false));
    assert_true(disk_cache_serves(true));
    setenv("TALLY_CACHE", "0", 1);
    assert_false(disk_cache_serves(false));
    assert_false(disk_cache_serves(true));
    has_path(NULL);
    assert_false(has("key", ""));
    store("more", "program");
    unsetenv("TALLY_CACHE");
    assert_true(disk_cache_serves(false));
    assert_false(disk_cache_serves(true));
    assert_true(has("key", "program"));
    assert_false(has("more", ""));
    /* Folders that are not there are made, for the user alone. */
    unsetenv("TALLY_CACHE_DIR");
    unsetenv("XDG_CACHE_HOME");
    snprintf(home, sizeof home, "%s/home", folder);
    setenv("HOME", home, 1);
    assert_false(has("key", ""));
    assert_int_equal(stat(home, &s), -1); /* a look makes nothing */
    store("key", "program");
    assert_true(has("key", "program"));
    snprintf(path, sizeof path, "%s/.cache/tally", home);
    assert_int_equal(stat(path, &s), 0);
    assert_int_equal(s.st_mode & 0777, 0700);
}

/* ---- What is wrong with a file -------------------------------------------------------------- */

/* A file that is cut off anywhere, or of which a byte has changed, is none; the next one takes its place. */
static void damaged_files(void **state) {
    char path[PATH_ROOM], whole[256], bytes[256];
    (void)state;
    store("key", "program");
    assert_int_equal(only_file(path), 1);
    const size_t size = read_file(path, whole, sizeof whole);
    for (size_t i = 0; i < size; i++) {
        write_file(path, whole, i);
        assert_false(has("key", ""));
        memcpy(bytes, whole, size);
        bytes[i] = (char)(bytes[i] ^ 1 << i % 8);
        write_file(path, bytes, size);
        assert_false(has("key", ""));
    }
    memcpy(bytes, whole, size);
    bytes[size] = 0;
    write_file(path, bytes, size + 1);
    assert_false(has("key", ""));
    store("key", "program");
    assert_true(has("key", "program"));
}

/* Lengths that wrap around are no file's. */
static void hostile_lengths(void **state) {
    char path[PATH_ROOM], bytes[256];
    (void)state;
    store("key", "program");
    assert_int_equal(only_file(path), 1);
    const size_t size = read_file(path, bytes, sizeof bytes);
    for (size_t at = 8; at < 24; at += 8)
        for (int turn = 0; turn < 3; turn++) {
            static const uint64_t lengths[] = {UINT64_MAX, UINT64_MAX - 2, UINT64_C(1) << 63};
            char changed[256];
            memcpy(changed, bytes, size);
            memcpy(changed + at, &lengths[turn], 8);
            write_file(path, changed, size);
            assert_false(has("key", ""));
        }
}

/* A sound file under the name of another key is not taken. */
static void file_of_another_key(void **state) {
    char one[PATH_ROOM], bytes[256], two[PATH_ROOM];
    (void)state;
    store("one", "first");
    assert_int_equal(only_file(one), 1);
    const size_t size = read_file(one, bytes, sizeof bytes);
    unlink(one);
    store("two", "second");
    assert_int_equal(only_file(two), 1);
    write_file(two, bytes, size);
    assert_false(has("two", ""));
}

static void no_files(void **state) {
    char path[PATH_ROOM], other[PATH_ROOM + 8], bytes[PATH_ROOM];
    (void)state;
    store("key", "program");
    assert_int_equal(only_file(path), 1);
    snprintf(other, sizeof other, "%s.else", path);
    assert_int_equal(rename(path, other), 0);
    assert_int_equal(symlink(other, path), 0); /* a link */
    assert_false(has("key", ""));
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0); /* a pipe, which nobody writes to */
    assert_false(has("key", ""));
    unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_false(has("key", ""));
    store("key", "program");
    assert_false(has("key", ""));
    assert_int_equal(only_file(bytes), 2); /* and nothing half written */
    rmdir(path);
    assert_int_equal(rename(other, path), 0);
    assert_int_equal(chmod(path, 0), 0); /* root reads it all the same */
    assert_int_equal(has("key", "program"), geteuid() == 0);
}

/* ---- Whose it is ---------------------------------------------------------------------------- */

static void others_may_write(void **state) {
    char path[PATH_ROOM];
    (void)state;
    store("key", "program");
    assert_int_equal(only_file(path), 1);
    assert_int_equal(chmod(path, 0622), 0);
    assert_false(has("key", ""));
    assert_int_equal(chmod(path, 0644), 0);
    assert_true(has("key", "program"));
    assert_int_equal(chmod(folder, 0770), 0);
    assert_false(has("key", ""));
    store("more", "program");
    assert_int_equal(only_file(path), 1);
    assert_int_equal(chmod(folder, 0755), 0);
    assert_true(has("key", "program"));
}

static void foreign_owners(void **state) {
    char path[PATH_ROOM];
    (void)state;
    if (geteuid() != 0) skip();
    store("key", "program");
    assert_int_equal(only_file(path), 1);
    assert_int_equal(chown(path, NOBODY, (gid_t)-1), 0);
    assert_false(has("key", ""));
    assert_int_equal(chown(path, 0, (gid_t)-1), 0);
    assert_true(has("key", "program"));
    assert_int_equal(chown(folder, NOBODY, (gid_t)-1), 0);
    assert_false(has("key", ""));
    store("more", "program");
    assert_int_equal(only_file(path), 1);
    assert_int_equal(chown(folder, 0, (gid_t)-1), 0);
}

/* Runs `work` in a process of its own, of another user if this one is root's. */
static void in_child(void (*work)(void)) {
    int status = 0;
    fflush(NULL);
    if (geteuid() == 0) assert_int_equal(chown(folder, NOBODY, (gid_t)-1), 0);
    const pid_t child = fork();
    if (child == 0) {
        if (geteuid() == 0 && setuid(NOBODY) != 0) _exit(2);
        work();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void must(int condition) {
    if (!condition) _exit(1);
}

static void without_rights(void) {
    store("key", "program");
    must(has("key", "program"));
    must(chmod(folder, 0500) == 0); /* it can be read, and no file can be made */
    store("more", "program");
    must(has("key", "program") && !has("more", ""));
    must(chmod(folder, 0) == 0);
    store("more", "program");
    must(!has("key", ""));
    must(chmod(folder, 0700) == 0 && has("key", "program"));
    setenv("TALLY_CACHE_DIR", "/proc/tally/cache", 1);
    store("key", "program");
    must(!has("key", ""));
    setenv("TALLY_CACHE_DIR", "/dev/null", 1);
    store("key", "program");
    must(!has("key", ""));
}

static void folder_without_rights(void **state) {
    (void)state;
    in_child(without_rights);
}

/* A limit on files' sizes, beyond which a write would end the process by a signal. */
static void with_limit(void) {
    const struct rlimit limit = {60, 60};
    char path[PATH_ROOM];
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    store("key", "a program that is longer than this limit allows");
    must(!has("key", "") && only_file(path) == 0);
    store("key", "short");
    must(has("key", "short"));
}

static void limited_files(void **state) {
    (void)state;
    in_child(with_limit);
}

/* ---- How many there are --------------------------------------------------------------------- */

static void set_age(const char *path, time_t seconds) {
    struct timespec times[2];
    clock_gettime(CLOCK_REALTIME, &times[0]);
    times[0].tv_sec -= seconds;
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Sets the ages of all files: `first` seconds of the one stored first, and so on. */
static void age_all(time_t seconds) {
    struct dirent *d;
    char path[PATH_ROOM];
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    while ((d = readdir(stream))) {
        struct stat s;
        snprintf(path, sizeof path, "%s/%s", folder, d->d_name);
        assert_int_equal(stat(path, &s), 0);
        if (S_ISREG(s.st_mode) && time(NULL) - s.st_mtim.tv_sec < 60) set_age(path, seconds);
    }
    closedir(stream);
}

/* The programs used longest ago go first; a program that is loaded is used. */
static void bounded(void **state) {
    char program[1000], path[PATH_ROOM], key[16];
    (void)state;
    memset(program, 'x', sizeof program);
    program[sizeof program - 1] = '\0';
    for (int i = 0; i < 4; i++) {
        snprintf(key, sizeof key, "%d", i);
        store(key, program);
        age_all(1000 - 100 * i);
    }
    assert_int_equal(only_file(path), 4);
    assert_true(has("0", program)); /* now 1 is the one that was used longest ago */
    disk_cache_store("4", program, strlen(program), 4500);
    assert_int_equal(only_file(path), 4);
    assert_false(has("1", ""));
    assert_true(has("0", program) && has("2", program) && has("3", program) && has("4", program));
    disk_cache_store("5", program, strlen(program), 1200);
    assert_int_equal(only_file(path), 1);
    assert_true(has("5", program));
    disk_cache_store("6", program, strlen(program), 900); /* it has no room alone */
    assert_true(has("5", program) && !has("6", ""));
}

/* Files that are not ours stay, and do not count; of ours, those that were given up half written go. */
static void others_files_stay(void **state) {
    static const char *const names[] = {
        "notes.txt", "0123456789abcdef0123456789abcdef", "0123456789abcdef0123456789abcde.tally",
        "0123456789abcdef0123456789abcdeF.tally", "0123456789abcdef0123456789abcdef.tallyx"};
    char path[PATH_ROOM], old[PATH_ROOM], young[PATH_ROOM], large[100] = "x";
    struct stat s;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        write_file(path, large, sizeof large);
        set_age(path, 100000);
    }
    snprintf(old, sizeof old, "%s/0123456789abcdef0123456789abcdef.tally.1", folder);
    snprintf(young, sizeof young, "%s/0123456789abcdef0123456789abcdef.tally.2", folder);
    write_file(old, "x", 1);
    write_file(young, "x", 1);
    set_age(old, 7200);
    set_age(young, 600);
    disk_cache_store("key", "program", 7, 60);
    disk_cache_store("more", "program", 7, 60);
    assert_true(has("more", "program") && !has("key", ""));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, names[i]);
        assert_int_equal(stat(path, &s), 0);
    }
    assert_int_equal(stat(old, &s), -1);
    assert_int_equal(stat(young, &s), 0);
}

/* ---- Many at once --------------------------------------------------------------------------- */

enum { PROCESSES = 8, ROUNDS = 150, KEYS = 6 };

/* Stores and loads a few programs in a random order, in a cache that has room for about half of them. */
static void be_busy(uint64_t seed) {
    char key[16], program[2000];
    for (int round = 0; round < ROUNDS; round++) {
        const unsigned k = (unsigned)(next_random(&seed) % KEYS);
        snprintf(key, sizeof key, "key %u", k);
        memset(program, 'a' + (int)k, sizeof program);
        program[1000 + 100 * k] = '\0';
        size_t size = 0;
        char *found = disk_cache_load(key, &size);
        must(!found || (size == strlen(program) && strcmp(found, program) == 0));
        free(found);
        if (next_random(&seed) % 2) disk_cache_store(key, program, strlen(program), 4000);
    }
}

static void many_processes(void **state) {
    pid_t child[PROCESSES];
    char path[PATH_ROOM];
    struct dirent *d;
    (void)state;
    fflush(NULL);
    for (int i = 0; i < PROCESSES; i++)
        if ((child[i] = fork()) == 0) {
            be_busy((uint64_t)i);
            _exit(0);
        }
    for (int i = 0; i < PROCESSES; i++) {
        int status = 1;
        assert_int_equal(waitpid(child[i], &status, 0), child[i]);
        assert_int_equal(status, 0);
    }
    store("last", "program");
    assert_true(has("last", "program"));
    assert_in_range(only_file(path), 1, KEYS + 1);
    DIR *stream = opendir(folder); /* nothing half written is left */
    assert_non_null(stream);
    while ((d = readdir(stream)))
        assert_true(d->d_name[0] == '.' || strlen(d->d_name) == 38);
    closedir(stream);
}

int main(void) {
#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, new_folder, end_folder)
    const struct CMUnitTest tests[] = {
        IN_FOLDER(hits_and_misses),   IN_FOLDER(keys),
        IN_FOLDER(folders),           IN_FOLDER(damaged_files),
        IN_FOLDER(hostile_lengths),   IN_FOLDER(file_of_another_key),
        IN_FOLDER(no_files),          IN_FOLDER(others_may_write),
        IN_FOLDER(foreign_owners),    IN_FOLDER(folder_without_rights),
        IN_FOLDER(limited_files),     IN_FOLDER(bounded),
        IN_FOLDER(others_files_stay), IN_FOLDER(many_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
