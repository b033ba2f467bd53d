/*
 * own_report.h - the report of `tally explain --kernel` on a student's kernel, as text or as JSON.
 */
#ifndef TALLY_CLI_OWN_REPORT_H
#define TALLY_CLI_OWN_REPORT_H

#include "teach/explain.h"
#include "teach/own_device.h"
#include "teach/own_judge.h"

enum { MISCOUNTED_MAX = 512 };

struct own_report {
    struct explanation *e;
    const struct own_kernel *kernel;
    struct own_session session;
    uint64_t work;             /* of all runs on the model */
    struct own_options shaped; /* those that were asked for, with a block of two dimensions */
    struct own_judgement j;
    struct own_host main; /* for the launch that is shown */
    struct own_run run;
    char host_words[OWN_LAUNCH_WORDS];
    uint64_t miscounted_n;     /* the n for which elements were counted; 0: none */
    int times[MISCOUNTED_MAX]; /* how often the sum has each element */
    tally_ladder_row nearest;
    struct own_page *page; /* where a device is asked, or NULL */
};

/* Print the report, and return the status of the command's output. */
int own_report_print(const struct own_report *r);
int own_report_json(const struct own_report *r);
/* Writes what is reduced: "sum", or "sum of products a[i] * b[i] (dot)". Returns text. */
const char *own_report_what(const struct own_report *r, char text[200]);

#endif
