/* own_findings.c - see own_findings.h. */
#include "teach/own_findings.h"

#include <stdarg.h>
#include <stdio.h>

bool own_leaves(const struct own_run *run) {
    return run->result.fault == TALLY_OWN_BOUNDS || run->result.fault == TALLY_OWN_ALIGNMENT;
}

bool own_is_good(const struct own_run *run) {
    return run->is_right && run->result.fault == TALLY_OWN_RIGHT;
}

void own_judge_note(struct own_judgement *j, const struct own_run *run) {
    const tally_own_result *f = &run->result;
    if (*f->note && !*j->note)
        snprintf(j->note, sizeof j->note,
                 "%.330s. The standard asks for a fence there; GPUs pass the value on, as a "
                 "barrier stands there and the "
                 "block has not read the place before.",
                 f->note);
    if (f->fault == TALLY_OWN_RIGHT) return;
    for (size_t i = 0; i < j->fault_count; i++)
        if (j->faults[i].kind == f->fault && j->faults[i].line == f->line &&
            j->faults[i].other_line == f->other_line)
            return;
    if (j->fault_count == OWN_FAULTS_MAX) return;
    struct own_seen_fault *seen = &j->faults[j->fault_count++];
    *seen = (struct own_seen_fault){.n = run->n,
                                    .block = run->block,
                                    .kind = f->fault,
                                    .line = f->line,
                                    .other_line = f->other_line};
    snprintf(seen->sentence, sizeof seen->sentence, "%s", f->sentence);
    own_advise_fault(j->session, run, &seen->advice);
}

void own_find(struct own_judgement *j, const char *kind, const char *format, ...) {
    va_list list;
    if (j->finding_count == OWN_FINDINGS_MAX) return;
    struct own_finding *f = &j->findings[j->finding_count++];
    f->kind = kind;
    va_start(list, format);
    vsnprintf(f->sentence, sizeof f->sentence, format, list);
    va_end(list);
    own_advise_finding(j->session, kind, &f->advice);
}

void own_say_values(const struct own_run *run, char text[160]) {
    if (run->bound > 0)
        snprintf(text, 160, "the result is %.9g, and %.9g would be right, within %.3g", run->value,
                 run->expected, run->bound);
    else
        snprintf(text, 160, "the result is %.17g, and %.17g would be right", run->value,
                 run->expected);
}
