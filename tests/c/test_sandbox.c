/*
 * test_sandbox.c - the process that runs a student's kernel can compute, ask for memory, write and end; and
 * nothing else.
 */
#include "teach/own_sandbox.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static int kept = -1; /* the file that a process keeps */

/* Runs `body` in a process of its own that is shut; returns what waitpid() says of it. */
static int in_process(int (*body)(void)) {
    int word;
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        own_limit(1);
        _exit(own_shut(kept) ? body() : 99);
    }
    assert_int_equal(waitpid(child, &word, 0), child);
    return word;
}

static int tries_what_it_may_not(void) {
    static char *const nothing[] = {NULL};
    if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EPERM) return 1;
    if (open("/tmp/tally-sandbox", O_WRONLY | O_CREAT, 0600) >= 0 || errno != EPERM) return 2;
    if (socket(AF_INET, SOCK_STREAM, 0) >= 0 || errno != EPERM) return 3;
    if (fork() >= 0 || errno != EPERM) return 4;
    if (execve("/bin/true", nothing, nothing) == 0 || errno != EPERM) return 5;
    if (kill(getppid(), SIGTERM) == 0) return 6;
    if (unlink("/tmp/tally-sandbox") == 0 || errno != EPERM) return 7;
    if (write(3, "x", 1) >= 0 || errno != EBADF) return 8; /* all other files are closed */
    return 0;
}

static int does_what_it_may(void) {
    char *memory = malloc(64 << 20);
    if (!memory) return 1;
    memset(memory, 1, 64 << 20);
    const int sum = memory[5] + memory[1 << 20];
    free(memory);
    return sum == 2 && write(STDERR_FILENO, "", 0) == 0 ? 0 : 2;
}

static int writes_to_what_it_keeps(void) {
    return write(kept, "kept", 4) == 4 && write(kept + 1, "x", 1) < 0 ? 0 : 1;
}

static int asks_for_too_much(void) {
    return malloc((size_t)8 << 30) ? 1 : 0;
}

static int goes_on(void) {
    for (volatile unsigned i = 0;; i++)
        ;
    return 0;
}

static void test_shut(void **state) {
    (void)state;
    assert_int_equal(in_process(tries_what_it_may_not), 0);
    assert_int_equal(in_process(does_what_it_may), 0);
    assert_int_equal(in_process(asks_for_too_much), 0);
    const int word = in_process(goes_on);
    assert_true(WIFSIGNALED(word) && (WTERMSIG(word) == SIGXCPU || WTERMSIG(word) == SIGKILL));
}

static void test_keeps_a_file(void **state) {
    char room[8];
    int ends[2], other;
    (void)state;
    assert_int_equal(pipe(ends), 0);
    kept = ends[1];
    other = dup2(ends[1], kept + 1); /* open, too, and not to be kept */
    assert_int_equal(in_process(writes_to_what_it_keeps), 0);
    assert_int_equal(read(ends[0], room, sizeof room), 4);
    kept = -1;
    close(other);
    close(ends[0]);
    close(ends[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shut),
                                       cmocka_unit_test(test_keeps_a_file)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
