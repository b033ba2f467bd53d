/*
 * test_opencl_device.c - "opencl:0" through the public calls: an array that may only be read, and programs on disk. Skips
 * where there is no device.
 */
#include "../c/testing.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* Data that lie in a file, mapped to be read: a reduction reads them where they are, and only reads. */
static void reads_a_read_only_mapping(void **state) {
    enum { N = 1 << 20 };
    const tally_problem sums = {.op = TALLY_SUM, .type = TALLY_F64};
    const tally_problem products = {.op = TALLY_PROD, .type = TALLY_F64};
    tally_device *device;
    tally_value sum, wanted;
    FILE *file = tmpfile();
    (void)state;
    if (tally_open("opencl:0", &device) != TALLY_OK) {
        print_message("skipped: %s\n", tally_error());
        skip();
    }
    assert_non_null(file);
    for (int i = 0; i < N; i++) {
        const double x = 1.0 / (3 + i);
        assert_int_equal(fwrite(&x, sizeof x, 1, file), 1);
    }
    assert_int_equal(fflush(file), 0);
    const double *x = mmap(NULL, N * sizeof *x, PROT_READ, MAP_SHARED, fileno(file), 0);
    assert_ptr_not_equal(x, MAP_FAILED);
    assert_ok(tally_reduce(NULL, &sums, x, NULL, N, &wanted));
    assert_ok(tally_reduce(device, &sums, x, NULL, N, &sum));
    assert_true(tally_value_bits(&sum) == tally_value_bits(&wanted));
    assert_ok(tally_reduce(NULL, &products, x + 1, NULL, 1000, &wanted));
    assert_ok(tally_reduce(device, &products, x + 1, NULL, 1000, &sum));
    assert_true(tally_value_bits(&sum) == tally_value_bits(&wanted));
    munmap((void *)(uintptr_t)x, N * sizeof *x);
    fclose(file);
    tally_close(device);
}

/* Runs a reduction by the first device, opened anew, and compares it with plain integers. */
static void sums_once(void) {
    static const int32_t x[] = {3, 1, 4, 1, 5, 9, 2, 6};
    tally_device *device;
    tally_value sum;
    assert_ok(tally_open("opencl:0", &device));
    assert_ok(tally_reduce(device, ASK(TALLY_SUM, TALLY_I32), x, NULL, 8, &sum));
    assert_int_equal(sum.as.i64, 31);
    tally_close(device);
}

/* Sets the time of last use of a folder's files to long ago if `age`; returns how many of them have it. */
static unsigned look_at_files(const char *folder, int age, char *path, size_t room) {
    const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
    unsigned count = 0;
    struct stat s;
    struct dirent *d;
    DIR *stream = opendir(folder);
    assert_non_null(stream);
    while ((d = readdir(stream))) {
        if (d->d_name[0] == '.') continue;
        snprintf(path, room, "%s/%s", folder, d->d_name);
        if (age) assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
        assert_int_equal(stat(path, &s), 0);
        count += s.st_mtim.tv_sec == 1000000000;
    }
    closedir(stream);
    return count;
}

/* A program is kept on disk and used from there, if PoCL's are to be; a broken one is compiled again, and kept again. */
static void keeps_programs(void **state) {
    char folder[] = "/tmp/tally-opencl-XXXXXX", path[300];
    struct stat before, after;
    tally_device *device;
    (void)state;
    if (tally_open("opencl:0", &device) != TALLY_OK) {
        print_message("skipped: %s\n", tally_error());
        skip();
    }
    tally_close(device);
    assert_non_null(mkdtemp(folder));
    setenv("TALLY_CACHE_DIR", folder, 1);
    setenv("TALLY_CACHE", "1", 1);
    sums_once();
    assert_int_equal(look_at_files(folder, 1, path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    sums_once();
    assert_int_equal(look_at_files(folder, 0, path, sizeof path), 0); /* used, and the same file */
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    look_at_files(folder, 1, path, sizeof path);
    setenv("TALLY_CACHE", "0", 1);
    sums_once();
    assert_int_equal(look_at_files(folder, 0, path, sizeof path), 1); /* not used */
    setenv("TALLY_CACHE", "1", 1);
    assert_int_equal(truncate(path, before.st_size / 2), 0);
    sums_once();
    assert_int_equal(look_at_files(folder, 1, path, sizeof path), 1);
    assert_int_equal(stat(path, &before), 0);
    sums_once();
    assert_int_equal(look_at_files(folder, 0, path, sizeof path), 0);
    assert_int_equal(stat(path, &after), 0);
    assert_true(before.st_ino == after.st_ino);
    unlink(path);
    assert_int_equal(rmdir(folder), 0);
    setenv("TALLY_CACHE", "0", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_a_read_only_mapping),
        cmocka_unit_test(keeps_programs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
