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

enum { WIDE = 256 }; /* threads of a block of several warps, as programs launch it */

/* A race within a warp may be one of all the block's warps, which the host's block has too few of. So a larger block is
 * launched. Returns true, with that run, if two warps race there by the same lines: __syncwarp() does not mend that. */
static bool is_between_warps(const struct own_judgement *j, const struct own_run *run,
                             struct own_run *wide) {
    const tally_own_result *f = &run->result, *w = &wide->result;
    struct own_host h;
    if (f->fault != TALLY_OWN_RACE || f->detail != 1 || j->session->block || run->block >= WIDE ||
        !own_host_at(j->session, WIDE, &j->host, &h))
        return false;
    const uint64_t n = run->n > 4 * WIDE ? run->n : 4 * WIDE, most = own_host_most(&h);
    return own_host_run(j->session, &h, n < most ? n : most, OWN_DATA, 0, NULL, NULL, wide) &&
           w->fault == TALLY_OWN_RACE && w->detail == 0 &&
           ((w->line == f->line && w->other_line == f->other_line) ||
            (w->line == f->other_line && w->other_line == f->line));
}

void own_judge_note(struct own_judgement *j, const struct own_run *run) {
    const tally_own_result *f = &run->result;
    struct own_run wide;
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
    if (is_between_warps(j, run, &wide)) run = &wide;
    struct own_seen_fault *seen = &j->faults[j->fault_count++];
    *seen = (struct own_seen_fault){.n = run->n,
                                    .block = run->block,
                                    .kind = f->fault,
                                    .line = f->line,
                                    .other_line = f->other_line};
    snprintf(seen->sentence, sizeof seen->sentence, "%s", run->result.sentence);
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
