/*
 * arrow.c - see arrow.h.
 */
#include "arrow.h"

#include "message.h"

#include "arrow_script.h" /* static const char arrow_script[]: the text of arrow.py */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

bool arrow_recognise(const unsigned char *bytes, size_t size) {
    return (size >= 4 && memcmp(bytes, "PAR1", 4) == 0) ||
           (size >= 6 && memcmp(bytes, "ARROW1", 6) == 0);
}

bool arrow_is_file(const char *path) {
    unsigned char bytes[8];
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, bytes, sizeof bytes);
    if (file >= 0) close(file);
    return got > 0 && arrow_recognise(bytes, (size_t)got);
}

static void run_python(const char *path, const char *column, bool skip_na, int out) {
    const int nothing = open("/dev/null", O_RDONLY);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    execlp("python3", "python3", "-c", arrow_script, path, column, skip_na ? "skip" : "keep",
           (char *)NULL);
    _exit(failed("%s is an Arrow or Parquet file, and python3, which reads them, cannot be run: "
                 "%s; save the column as a .npy file",
                 path, strerror(errno)));
}

bool arrow_open(const char *path, const char *column, bool skip_na, int *file, pid_t *helper) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return failed("%s: no pipe: %s", path, strerror(errno)), false;
    *helper = fork();
    if (*helper == 0) run_python(path, column, skip_na, ends[1]);
    close(ends[1]);
    *file = ends[0];
    if (*helper > 0) return true;
    close(ends[0]);
    *helper = 0;
    *file = -1;
    return failed("%s: no process to read it: %s", path, strerror(errno)), false;
}

bool arrow_end(const char *path, pid_t *helper) {
    int status;
    pid_t which = *helper;
    *helper = 0;
    while (waitpid(which, &status, 0) < 0)
        if (errno != EINTR) return false;
    if (WIFSIGNALED(status))
        failed("%s: python3 was ended by signal %d (%s)", path, WTERMSIG(status),
               strsignal(WTERMSIG(status)));
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

void arrow_close(pid_t *helper) {
    if (*helper <= 0) return;
    kill(*helper, SIGTERM);
    while (waitpid(*helper, NULL, 0) < 0 && errno == EINTR)
        ;
    *helper = 0;
}
