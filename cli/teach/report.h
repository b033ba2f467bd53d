/*
 * report.h - the parts of a page of `tally report`.
 */
#ifndef TALLY_CLI_REPORT_H
#define TALLY_CLI_REPORT_H

#include "common/json.h"

#include <stdio.h>

/* ---- report_data.c: the model's records, for every combination that the page offers ---- */

/* Adds the rungs, the sources, and the lengths and blocks that the page offers. */
void report_add_rungs(struct json_object *page);
/* Writes an element <script> for each length, with the steps of all rungs and blocks: JSON, packed by gzip, as
 * base64. steps.js unpacks it. False after a failure, whose line is written. */
bool report_write_steps(FILE *f);

/* ---- report_measured.c: measured times, and the figures that the texts have published ---- */

/* Adds the H200's times, from docs/results, and the texts' figures. */
void report_add_measured(struct json_object *page);
/* Climbs the ladder here and adds its times; device is NULL for the first that is here. False after a failure,
 * whose line is written. */
bool report_measure(struct json_object *page, const char *device);

#endif
