/*
 * guard.c - see guard.h.
 *
 * An OpenCL driver may call abort() when it is asked for its devices. (PoCL does without /sys, or
 * with too little memory.) This would end the command, so the work is done by a child process. To
 * find the broken driver, a child tries each of them alone: OCL_ICD_VENDORS tells the OpenCL loader
 * where the files are that name drivers.
 */
#include "common/guard.h"

#include "common/message.h"
#include "tally.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define VENDORS "OCL_ICD_VENDORS"
static const char usual_place[] = "/etc/OpenCL/vendors";
static const char no_place[] = "/nonexistent";

/* Forks. The system kills the child when its parent ends. */
static pid_t start(void) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
    return child;
}

/* Waits for the child. Returns the signal that ended it, or 0: *status is then its exit status. */
static int wait_for(pid_t child, int *status) {
    int word;
    while (waitpid(child, &word, 0) < 0)
        ;
    *status = WIFEXITED(word) ? WEXITSTATUS(word) : STATUS_FAILED;
    return WIFSIGNALED(word) ? WTERMSIG(word) : 0;
}

static bool is_crash(int number) {
    return number == SIGABRT || number == SIGSEGV || number == SIGBUS || number == SIGILL ||
           number == SIGFPE;
}

static void open_all(void) {
    enum { MOST = 64 };
    static tally_device_info infos[MOST];
    tally_device *device;
    size_t count = 0;
    if (tally_device_list(infos, MOST, &count) != TALLY_OK) return;
    for (size_t i = 0; i < count && i < MOST; i++)
        if (tally_open(infos[i].spec, &device) == TALLY_OK) tally_close(device);
}

/* Returns true if a process crashes that uses only the driver that this file names. */
static bool is_broken(const char *file) {
    int status;
    pid_t child = start();
    if (child < 0) return false;
    if (child > 0) return is_crash(wait_for(child, &status));
    int nowhere = open("/dev/null", O_WRONLY);
    dup2(nowhere, STDOUT_FILENO);
    dup2(nowhere, STDERR_FILENO);
    setenv(VENDORS, file, 1);
    open_all();
    _exit(STATUS_OK);
}

/* Finds the file that names the broken driver: text[0..size). Returns false if there is none. */
static bool find_broken(char *text, size_t size) {
    const char *place = getenv(VENDORS);
    if (!place || !*place) place = usual_place;
    DIR *folder = opendir(place);
    snprintf(text, size, "%s", place);
    if (!folder) return is_broken(text);
    bool found = false;
    for (struct dirent *entry; !found && (entry = readdir(folder));) {
        const char *end = strrchr(entry->d_name, '.');
        if (!end || strcmp(end, ".icd") != 0) continue;
        snprintf(text, size, "%s/%s", place, entry->d_name);
        found = is_broken(text);
    }
    closedir(folder);
    return found;
}

/* Ends this process by the signal that ended the child, so that its caller sees the true cause,
 * such as SIGPIPE or SIGTERM. */
static int die_too(int number) {
    failed("ended by signal %d (%s)", number, strsignal(number));
    signal(number, SIG_DFL);
    raise(number);
    return STATUS_FAILED;
}

int guarded(int (*run)(void *argument), void *argument, bool again) {
    int status;
    char driver[4096];
    pid_t child = start();
    if (child < 0) return run(argument);
    if (child == 0) {
        status = run(argument);
        fflush(NULL);
        _exit(status);
    }
    int number = wait_for(child, &status);
    if (number == 0) return status;
    if (!is_crash(number)) return die_too(number);
    const bool found = find_broken(driver, sizeof driver);
    if (!found) return failed("a device's driver ended the process (%s)", strsignal(number));
    if (!again)
        return failed("the OpenCL driver that %s names breaks down (%s); nothing was computed",
                      driver, strsignal(number));
    failed("the OpenCL driver that %s names breaks down (%s); it is left out, and OpenCL with it",
           driver, strsignal(number));
    setenv(VENDORS, no_place, 1);
    return run(argument);
}
