/* own_report.c - the report on a student's kernel as text: see own_report.h. */
#include "teach/own_report.h"

#include "common/message.h"
#include "teach/ladder_counts.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void print_times(const struct own_report *r, const struct own_answer *a) {
    const double size = (double)tally_type_size(r->kernel->is.type);
    if (!a->times[0].done) return;
    printf("\n  %10s %12s %9s %9s %8s %16s %12s\n", "n", "the kernel", "MFLOPS", "GB/s", "of roof",
           r->nearest.name ? r->nearest.name : "", "tally");
    for (size_t i = 0; i < OWN_DEVICE_TIMES && a->times[i].done; i++) {
        const struct own_time *t = &a->times[i];
        const double n = (double)r->page->question.times[i];
        char nearest[32] = "";
        if (r->nearest.name) snprintf(nearest, sizeof nearest, "%.4g ms", t->nearest * 1e3);
        printf("  %10.0f %9.4g ms %9.0f %9.2f %7.1f%% %16s %9.4g ms%s\n", n, t->seconds * 1e3,
               (n - 1) * 1e-6 / t->seconds, n * size * 1e-9 / t->seconds,
               100 * t->roof / t->seconds, nearest, t->tally * 1e3, t->right ? "" : "  WRONG");
    }
    puts(
        "  The kernel's time is one launch's, without combining what its blocks leave; the rungs' "
        "is "
        "of the\n  whole reduction. The roof is plain reads of the same memory, or a rung that was "
        "faster.");
}

static void print_device(const struct own_report *r) {
    if (!r->page) return;
    const struct own_answer *a = &r->page->answer;
    size_t tried = 0, right = 0;
    const struct own_length *wrong = NULL;
    uint64_t most = 0;
    printf("\nOn %s%s%s%s:\n", a->device, *a->name ? " (" : "", a->name, *a->name ? ")" : "");
    for (size_t i = 0; i < OWN_DEVICE_LENGTHS && a->lengths[i].done; i++) {
        tried++;
        right += a->lengths[i].right;
        if (!a->lengths[i].right && !wrong) wrong = &a->lengths[i];
        if (r->page->question.lengths[i] > most) most = r->page->question.lengths[i];
    }
    if (tried && right == tried)
        printf("  right for all %zu lengths tried%s, up to %" PRIu64 "\n", tried,
               r->page->question.whole ? ", of whole segments" : "", most);
    else if (tried)
        printf("  wrong for %zu of the %zu lengths tried\n", tried - right, tried);
    if (wrong && wrong->value != wrong->expected)
        printf("  n = %" PRIu64 ": the result is %.9g, and %.9g would be right\n",
               r->page->question.lengths[wrong - a->lengths], wrong->value, wrong->expected);
    if (*a->fault) printf("  n = %" PRIu64 ": %s\n", a->fault_n, a->fault);
    if (*a->why) printf("  %s%s\n", tried ? "" : "not run: ", a->why);
    print_times(r, a);
}

static void print_miscounted(const struct own_report *r) {
    unsigned said = 0, wrong = 0;
    if (!r->miscounted_n) return;
    for (uint64_t i = 0; i < r->miscounted_n; i++)
        wrong += r->times[i] != 1;
    if (!wrong) return;
    printf("With n = %" PRIu64 ", of the elements:", r->miscounted_n);
    for (uint64_t i = 0; i < r->miscounted_n && said < 8; i++) {
        uint64_t to = i;
        if (r->times[i] == 1) continue;
        while (to + 1 < r->miscounted_n && r->times[to + 1] == r->times[i])
            to++;
        printf("%s %" PRIu64, said++ ? ";" : "", i);
        if (to > i) printf(to == i + 1 ? " and %" PRIu64 : " to %" PRIu64, to);
        if (r->times[i] == 0)
            printf(to > i ? " are left out" : " is left out");
        else
            printf(to > i ? " count %d times" : " counts %d times", r->times[i]);
        i = to;
    }
    puts(said == 8 ? "; ..." : ".");
}

/* Writes a paragraph behind a label, 100 columns wide. */
static void print_labelled(const char *label, const char *text) {
    enum { WIDE = 100, INDENT = 13 };
    int column = printf("    %-9s", label);
    while (*text) {
        const int word = (int)strcspn(text, " ");
        if (column > INDENT && column + 1 + word > WIDE) column = printf("\n%*s", INDENT, "") - 1;
        column += printf("%s%.*s", column > INDENT ? " " : "", word, text);
        text += word;
        text += strspn(text, " ");
    }
    putchar('\n');
}

static void print_advice(const struct own_advice *a) {
    if (*a->why) print_labelled("why:", a->why);
    if (*a->mend) print_labelled("mend:", a->mend);
    if (*a->lesson) print_labelled("lesson:", a->lesson);
}

static void print_judgement(const struct own_report *r) {
    const struct own_tried *first = NULL;
    printf("\nThe kernel is %s.\n", r->j.verdict);
    print_labelled("tried:", r->j.tried_words);
    if (*r->j.note) print_labelled("note:", r->j.note);
    /* A lesson's kernel that takes no n may be right, and leave its arrays for lengths that it is not for. */
    if (r->e->lesson && r->j.status == OWN_RIGHT) return;
    for (size_t i = 0; i < r->j.fault_count; i++) {
        printf("  n = %" PRIu64 ": %s\n", r->j.faults[i].n, r->j.faults[i].sentence);
        print_advice(&r->j.faults[i].advice);
    }
    for (size_t i = 0; i < r->j.finding_count; i++) {
        const bool more =
            i + 1 < r->j.finding_count &&
            strcmp(r->j.findings[i].advice.mend, r->j.findings[i + 1].advice.mend) == 0;
        printf("  %s\n", r->j.findings[i].sentence);
        if (!more) print_advice(&r->j.findings[i].advice);
    }
    for (size_t i = 0; i < r->j.tried_count && !first; i++)
        if (r->j.tried[i].complete && r->j.tried[i].value != r->j.tried[i].expected)
            first = &r->j.tried[i];
    if (first)
        printf("  n = %" PRIu64 ": the result is %.9g, and %.9g would be right\n", first->n,
               first->value, first->expected);
    print_miscounted(r);
}

/* Returns whether a rung reduces its input in place. */
static bool is_in_place(const char *rung) {
    return strncmp(rung, "interleaved-", 12) == 0 || strcmp(rung, "contiguous") == 0;
}

static void print_compared(const struct own_report *r) {
    const tally_ladder_counts *a = &r->run.result.counts, *b = &r->nearest.counts;
    if (!r->nearest.name) return;
    const struct {
        const char *what;
        uint64_t mine, its;
    } rows[] = {{"steps at work", a->steps, b->steps},
                {"rounds", a->rounds, b->rounds},
                {"barriers", a->barriers, b->barriers},
                {"useful operations", a->useful, b->useful},
                {"applied operations", a->operations, b->operations},
                {"slots", a->slots, b->slots},
                {"issued slots", a->issued, b->issued},
                {"divergent branches", a->divergent, b->divergent},
                {"transactions", a->transactions, b->transactions},
                {"fewest possible", a->fewest_transactions, b->fewest_transactions},
                {"bank conflicts", a->bank_conflicts, b->bank_conflicts},
                {"bytes read", a->bytes_read, b->bytes_read},
                {"bytes written", a->bytes_written, b->bytes_written},
                {"atomics", a->atomics, b->atomics}};
    printf(
        "\nThe nearest rung of the ladder is %s ('tally explain %s'), with the same n and block:\n",
        r->nearest.name, r->nearest.name);
    const int wide = (int)strlen(r->kernel->name) > 14 ? (int)strlen(r->kernel->name) : 14;
    printf("  %-20s %*s %18s\n", "", wide, r->kernel->name, r->nearest.name);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        printf("  %-20s %*" PRIu64 " %18" PRIu64 "\n", rows[i].what, wide, rows[i].mine,
               rows[i].its);
    printf("  %-20s %*.2f %18.2f\n", "efficiency", wide, ladder_efficiency(a),
           ladder_efficiency(b));
    if (!r->kernel->is.output && is_in_place(r->nearest.name))
        puts("That rung works on a copy of the array, which it makes first, and writes its result "
             "to another: "
             "the\ntransactions and bytes of both are among its.");
    if (a->operations == 0 && r->run.n > 1)
        puts("No operation was seen: they are counted where an operand comes from an array or a "
             "shuffle;\natomics are counted apart.");
}

const char *own_report_what(const struct own_report *r, char text[200]) {
    const tally_own_kernel *k = &r->kernel->is;
    snprintf(text, 200, k->second ? "%s of products %s[i] * %s[i]%s" : "%s",
             tally_op_name(r->session.op), k->input, k->second ? k->second : "",
             r->session.op == TALLY_SUM ? " (dot)" : "");
    return text;
}

int own_report_print(const struct own_report *r) {
    char what[200];
    printf("%s:%u: %s of %" PRIu64 " %s by kernel %s, on the model\n", r->kernel->file,
           r->kernel->line, own_report_what(r, what), r->run.n, tally_type_name(r->kernel->is.type),
           r->kernel->name);
    printf("The host is taken to do this: %s.\n", r->host_words);
    print_judgement(r);
    if (r->e->lesson) {
        if (r->j.status == OWN_RIGHT)
            printf("\nLesson %u: right.\n", r->e->lesson);
        else
            printf("\nLesson %u: not yet; 'tally lesson %u --hint' helps.\n", r->e->lesson,
                   r->e->lesson);
        return finish_output();
    }
    if (!r->run.result.is_complete)
        printf("\nWith n = %" PRIu64 " it did not come to its end; what it did until then:\n",
               r->run.n);
    explain_print_launches(r->e);
    explain_print_totals(r->e);
    if (r->run.result.is_complete) print_compared(r);
    print_device(r);
    return finish_output();
}
