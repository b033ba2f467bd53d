/*
 * arrow.c - see arrow.h.
 */
#include "input/arrow.h"

#include "common/message.h"

#include "arrow_script.h" /* static const char arrow_script[]: the text of arrow.py */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

bool arrow_recognise(const unsigned char *bytes, size_t size) {
    return (size >= 4 && memcmp(bytes, "PAR1", 4) == 0) ||
           (size >= 6 && memcmp(bytes, "ARROW1", 6) == 0);
}

bool arrow_is_file(const char *path) {
    unsigned char bytes[8];
    struct stat status;
    /* Looks only at regular files: bytes read from a pipe are lost, and a FIFO without a writer
     * blocks. */
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) return false;
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    const ssize_t got = file < 0 ? -1 : read(file, bytes, sizeof bytes);
    if (file >= 0) close(file);
    return got > 0 && arrow_recognise(bytes, (size_t)got);
}

static void run_python(const char *path, const struct arrow_asked *asked, bool skip_na, int out) {
    static const char *const kinds[] = {"array", "text", "rows", "pairs"};
    const char *argument[2 * LIST_MOST + 16], **to = argument;
    char count[24];
    const int nothing = open("/dev/null", O_RDONLY);
    const struct list *values = asked->column ? NULL : asked->values, *keys = asked->keys;
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    dup2(nothing, STDIN_FILENO);
    dup2(out, STDOUT_FILENO);
    snprintf(count, sizeof count, "%zu", values ? values->count : (size_t)1);
    *to++ = "python3";
    *to++ = "-c";
    *to++ = arrow_script;
    *to++ = path;
    *to++ = skip_na ? "skip" : "keep";
    *to++ = kinds[asked->kind];
    *to++ = asked->values && asked->values->is_plain && asked->values->count > 1
                ? asked->values->whole
                : "";
    *to++ = count;
    if (!values) *to++ = asked->column ? asked->column : "";
    for (size_t i = 0; values && i < values->count; i++)
        *to++ = values->item[i];
    *to++ = keys && keys->is_plain && keys->count > 1 ? keys->whole : "";
    for (size_t i = 0; keys && i < keys->count; i++)
        *to++ = keys->item[i];
    *to = NULL;
    execvp("python3", (char **)(uintptr_t)argument);
    _exit(failed("%s is an Arrow or Parquet file, and python3, which reads them, cannot be run: "
                 "%s; save the column as a .npy file",
                 path, strerror(errno)));
}

bool arrow_open(const char *path, const struct arrow_asked *asked, bool skip_na, int *file,
                pid_t *helper) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) return failed("%s: no pipe: %s", path, strerror(errno)), false;
    *helper = fork();
    if (*helper == 0) run_python(path, asked, skip_na, ends[1]);
    close(ends[1]);
    *file = ends[0];
    if (*helper > 0) return true;
    close(ends[0]);
    *helper = 0;
    *file = -1;
    return failed("%s: no process to read it: %s", path, strerror(errno)), false;
}

static bool read_word(const char **at, const char *end, char word[16]) {
    size_t length = 0;
    while (*at + length < end && (*at)[length] != ',' && (*at)[length] != ' ')
        length++;
    if (length >= 16) return false;
    memcpy(word, *at, length);
    word[length] = 0;
    *at += length;
    return true;
}

bool arrow_read_line(const char *line, const char *end, struct arrow_found *out) {
    char word[16];
    *out = (struct arrow_found){.count = 0};
    do {
        line += out->count > 0;
        if (out->count == LIST_MOST || !read_word(&line, end, word)) return false;
        const bool is_decimal = strcmp(word, "decimal") == 0;
        if (!is_decimal && tally_type_parse(word, &out->type[out->count]) != TALLY_OK) return false;
        out->count++;
    } while (line < end && *line == ',');
    while (line < end && *line == ' ') {
        line++;
        if (!read_word(&line, end, word)) return false;
        out->is_value_whole |= strcmp(word, "values") == 0;
        out->is_key_whole |= strcmp(word, "keys") == 0;
    }
    return line == end;
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
