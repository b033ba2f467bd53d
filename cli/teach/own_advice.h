/*
 * own_advice.h - advice on each kind of fault in a student's kernel: why it matters, what mends it, which lesson
 * teaches it.
 */
#ifndef TALLY_CLI_OWN_ADVICE_H
#define TALLY_CLI_OWN_ADVICE_H

#include "teach/own_host.h"

/* Advice beside the sentence of a fault: why it matters, what mends it, and the lesson that teaches it, or "". */
struct own_advice {
    char why[400], mend[300], lesson[40];
};

void own_advise_fault(const struct own_session *s, const struct own_run *run,
                      struct own_advice *out);
void own_advise_finding(const struct own_session *s, const char *kind, struct own_advice *out);
/* Returns the operator's identity for a type, in CUDA C. */
const char *own_identity_words(tally_op op, tally_type type);

#endif
