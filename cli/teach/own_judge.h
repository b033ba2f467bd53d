/*
 * own_judge.h - the verdict on a student's kernel, and the trials that it rests on.
 */
#ifndef TALLY_CLI_OWN_JUDGE_H
#define TALLY_CLI_OWN_JUDGE_H

#include "teach/own_findings.h"

/* Runs the kernel for many lengths, blocks, data, orders and launches, among them `n` elements, and judges it. false: no
 * run succeeded, and its line is written. */
bool own_judge(struct own_judgement *j, uint64_t n);

#endif
