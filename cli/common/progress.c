/*
 * progress.c - a progress line for people: only on a terminal, only once the work has taken a
 * second, renewed five times a second, and erased before anything else is written.
 */
#include "common/progress.h"

#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static const double first_after = 1.0; /* seconds before the line appears */
static const double renew_after = 0.2; /* seconds between two of its texts */

static bool wanted;
static double begun, shown;
static uint64_t done, expected;
volatile sig_atomic_t progress_visible;

double clock_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void progress_begin(uint64_t total) {
    wanted = isatty(STDERR_FILENO);
    begun = clock_seconds();
    shown = begun + first_after - renew_after;
    done = 0;
    expected = total;
}

static void show(double seconds) {
    fputs(PROGRESS_ERASE, stderr);
    if (expected) fprintf(stderr, "%3.0f%%  ", 100.0 * (double)done / (double)expected);
    fprintf(stderr, "%.2f GB done, %.2f GB/s", (double)done * 1e-9, (double)done * 1e-9 / seconds);
    fflush(stderr);
    progress_visible = 1;
}

void progress_add(uint64_t bytes) {
    done += bytes;
    if (!wanted) return;
    double now = clock_seconds();
    if (now - shown < renew_after) return;
    shown = now;
    show(now - begun);
}

void progress_end(void) {
    if (!progress_visible) return;
    progress_visible = 0;
    fputs(PROGRESS_ERASE, stderr);
    fflush(stderr);
}
