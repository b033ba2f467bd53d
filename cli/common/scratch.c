/*
 * scratch.c - see scratch.h.
 */
#include "common/scratch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char name[4096];
static volatile sig_atomic_t is_there;

void scratch_remove(void) {
    if (!is_there) return;
    is_there = 0;
    unlink(name);
}

static void on_signal(int number) {
    scratch_remove();
    signal(number, SIG_DFL);
    raise(number);
}

/* Installs on_signal(), unless the signal is ignored, as under nohup, or has a handler. */
static void watch(int number) {
    struct sigaction before;
    if (sigaction(number, NULL, &before) == 0 && before.sa_handler == SIG_DFL)
        signal(number, on_signal);
}

/* Returns the permissions of the new file: those of the file that it replaces, else the usual ones. */
static mode_t permissions(const char *path) {
    struct stat status;
    if (stat(path, &status) == 0) return status.st_mode & 0777;
    const mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* Creates the file. Signals are blocked until `is_there` is set: a signal before that would leave
 * the file behind. */
static int create(void) {
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGXFSZ};
    sigset_t all, before;
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &before);
    const int file = mkstemp(name), why = errno;
    is_there = file >= 0;
    for (size_t i = 0; file >= 0 && i < sizeof numbers / sizeof *numbers; i++)
        watch(numbers[i]);
    sigprocmask(SIG_SETMASK, &before, NULL);
    errno = why;
    return file;
}

int scratch_create(const char *path) {
    const char *slash = strrchr(path, '/');
    const int folder = slash ? (int)(slash + 1 - path) : 0;
    if (snprintf(name, sizeof name, "%.*s.tally-XXXXXX", folder, path) >= (int)sizeof name)
        return errno = ENAMETOOLONG, -1;
    if (access(path, F_OK) == 0 && access(path, W_OK) != 0) return -1;
    const int file = create();
    if (file < 0 || fchmod(file, permissions(path)) == 0) return file;
    const int why = errno;
    scratch_remove();
    close(file);
    return errno = why, -1;
}

bool scratch_keep(const char *path) {
    if (rename(name, path) != 0) return false;
    is_there = 0;
    return true;
}
