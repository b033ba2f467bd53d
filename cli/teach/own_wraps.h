/*
 * own_wraps.h - trials of a student's kernel at lengths at which an index wraps. No memory holds such arrays: some
 * blocks of the launch run, and only their parts of the array exist.
 */
#ifndef TALLY_CLI_OWN_WRAPS_H
#define TALLY_CLI_OWN_WRAPS_H

#include "teach/own_pattern.h"

/* Tries such lengths, if the kernel is right for every shorter one. */
void own_judge_far(struct own_judgement *j, const struct own_pattern *p);

#endif
