/*
 * lesson.c - `tally lesson`: a lesson's question, its hints and its answer, and the verdict on a reader's repair.
 *
 * The texts are the files of lessons/ and lessons/repaired/, which the build puts into the command. A repair is judged as
 * `tally explain --kernel` judges; some lessons ask for a count, too.
 */
#include "common/arguments.h"
#include "common/command.h"
#include "common/message.h"
#include "common/temporary.h"
#include "teach/own_explain.h"
#include "teach/report_files.h"

#include <errno.h>
#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char lesson_help[] =
    "Usage: tally lesson [NUMBER [--hint]... [--answer]]\n"
    "       tally lesson NUMBER FILE [--json]\n"
    "Lessons about GPU reductions: a kernel, a question, a task. Without a number: their list. "
    "With a\n"
    "file, your repair of the lesson's kernel is judged on the model, as by 'tally explain "
    "--kernel':\n"
    "the exit status is 0 if it is right, 1 if it is wrong, 2 if it cannot be judged.\n"
    "\n"
    "  --hint            the first hint; given twice, the second, too\n"
    "  --answer          a repaired kernel, the verdict on it, and why it is right\n"
    "  --json            the verdict as JSON, as by 'tally explain --kernel'\n"
    "  --help            this text\n";

/* The goals of lessons beside a right result: three ask for a low count, one for an order of elements. A repair that
 * misses the goal may be right, but it misses the point of the lesson. */
static const struct explain_goal goals[] = {
    {1, "branches that diverge", offsetof(tally_ladder_counts, divergent), 10, 0},
    {11, "bank conflicts", offsetof(tally_ladder_counts, bank_conflicts), 0, 0},
    {12, "atomics", offsetof(tally_ladder_counts, atomics), 1, 256},
    {.lesson = 13}};

/* Returns the lesson's file, or the repaired one; NULL where there is no such lesson. */
static const struct embedded *find_lesson(unsigned number, bool repaired) {
    char start[32];
    snprintf(start, sizeof start, "%s%02u_", repaired ? "repaired/" : "", number);
    for (const struct embedded *e = lesson_files; e->name; e++)
        if (strncmp(e->name, start, strlen(start)) == 0) return e;
    return NULL;
}

/* Prints a line of the opening comment without its frame. */
static void print_comment_line(const char *line) {
    line += strspn(line, " *");
    printf("%.*s\n", (int)strcspn(line, "\n"), line);
}

/* Prints the which-th paragraph of the repaired file's opening comment that begins with the label. */
static void print_part(unsigned number, const char *label, int which) {
    const char *text = (const char *)find_lesson(number, true)->bytes;
    const char *end = strstr(text, "*/");
    bool inside = false;
    for (const char *line = text; line + 1 < end; line += strcspn(line, "\n") + 1) {
        const char *start = line + strspn(line, " *");
        const bool begins = strncmp(line, " * ", 3) == 0 && line[3] != ' ';
        if (begins) inside = strncmp(start, label, strlen(label)) == 0 && which-- == 0;
        if (inside) print_comment_line(line);
    }
}

static const char *behind_comment(const struct embedded *e) {
    const char *end = strstr((const char *)e->bytes, "*/");
    return end + 2 + strspn(end + 2, "\n");
}

/* Prints the first paragraph of a lesson's opening comment. */
static void print_question(const struct embedded *e) {
    const char *line = (const char *)e->bytes;
    for (line += strcspn(line, "\n") + 1; strncmp(line, " * ", 3) == 0;
         line += strcspn(line, "\n") + 1)
        print_comment_line(line);
}

static int print_list(void) {
    for (unsigned number = 1; find_lesson(number, false); number++) {
        printf("%2u  ", number);
        const char *line = (const char *)find_lesson(number, false)->bytes;
        bool first = true;
        for (line += strcspn(line, "\n") + 1; strncmp(line, " * ", 3) == 0;
             line += strcspn(line, "\n") + 1, first = false) {
            if (!first) fputs("    ", stdout);
            print_comment_line(line);
        }
    }
    puts("\n'tally lesson 2' shows a lesson's kernel and task.");
    return finish_output();
}

static int print_lesson(unsigned number) {
    const struct embedded *e = find_lesson(number, false);
    printf("Lesson %u, lessons/%s\n\n", number, e->name);
    print_question(e);
    printf("\n%s\n", behind_comment(e));
    print_part(number, "Task:", 0);
    printf("\nWrite it into a file; 'tally lesson %u mine.cu' judges it, 'tally lesson %u --hint' "
           "helps.\n",
           number, number);
    return finish_output();
}

/* Copies the name of the text's first kernel. */
static void copy_kernel_name(const char *text, char *name, size_t room) {
    static const char mark[] = "__global__ void ";
    const char *at = strstr(text, mark);
    at = at ? at + sizeof mark - 1 : "";
    snprintf(name, room, "%.*s", (int)strcspn(at, "( \n"), at);
}

/* Judges the kernel of a file: where it has several, the one that the lesson asks for. */
static int judge(unsigned number, const char *file, bool as_json) {
    struct explanation e = {.options.run = {.op = TALLY_SUM, .type = TALLY_F32}};
    const struct embedded *repaired = find_lesson(number, true);
    char name[64];
    copy_kernel_name((const char *)repaired->bytes, name, sizeof name);
    const struct own_options own = {.spec = file, .seconds = OWN_SECONDS, .preferred = name};
    e.options.as_json = as_json;
    e.lesson = number;
    for (size_t i = 0; i < sizeof goals / sizeof *goals; i++)
        if (goals[i].lesson == number) e.goal = &goals[i];
    if (e.goal) e.options.run.block = e.goal->block;
    return own_explain(&e, &own);
}

/* Prints the repaired kernel, why it is right, and the verdict on it. The judge reads files, so the kernel is written to
 * one, which does not stay. */
static int print_answer(unsigned number) {
    const struct embedded *e = find_lesson(number, true);
    const char *name = strchr(e->name, '/') + 1;
    char path[512], file[640];
    snprintf(path, sizeof path, "%s/tally-lesson-XXXXXX", temporary_folder());
    if (!mkdtemp(path)) return failed("%s: %s", path, strerror(errno));
    snprintf(file, sizeof file, "%s/%s", path, name);
    FILE *f = fopen(file, "we");
    const bool good = f && fputs(behind_comment(e), f) >= 0;
    int status = OWN_NOT_JUDGED;
    if (f && fclose(f) == 0 && good) {
        printf("%s\n", behind_comment(e));
        print_part(number, "Why:", 0);
        status = finish_output() == STATUS_OK ? judge(number, file, false) : OWN_NOT_JUDGED;
    } else {
        failed("%s: %s", file, strerror(errno));
    }
    unlink(file);
    rmdir(path);
    return status;
}

int lesson_command(int argc, char **argv) {
    static const struct option options[] = {{"hint", no_argument, NULL, 'i'},
                                            {"answer", no_argument, NULL, 'a'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"help", no_argument, NULL, 'h'},
                                            {NULL, 0, NULL, 0}};
    unsigned hints = 0;
    bool answer = false, as_json = false;
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":h", options, NULL)) != -1;) {
        if (c == '?' || c == ':') return argument_unknown(c, argv, options);
        if (c == 'h') return fputs(lesson_help, stdout), finish_output();
        hints += c == 'i';
        answer |= c == 'a';
        as_json |= c == 'j';
    }
    if (optind == argc && (hints || answer || as_json))
        return misused("lesson takes a number before its options; 'tally lesson' lists them");
    if (optind == argc) return print_list();
    char *end;
    const unsigned long number = strtoul(argv[optind], &end, 10);
    if (*end || number < 1 || number > 99 || !find_lesson((unsigned)number, false))
        return misused("'%s' is no lesson; 'tally lesson' lists them", argv[optind]);
    const char *file = optind + 1 < argc ? argv[optind + 1] : NULL;
    if (argc - optind > 2)
        return misused("lesson takes a number and a file; '%s' is one too many", argv[optind + 2]);
    if (file && (hints || answer)) return misused("--hint and --answer take no file");
    if (as_json && !file) return misused("--json goes with a file to judge");
    if (hints > 2) return misused("there are two hints");
    if (file) return judge((unsigned)number, file, as_json);
    for (unsigned i = 0; i < hints; i++)
        print_part((unsigned)number, "Hint:", (int)i);
    if (answer) return print_answer((unsigned)number);
    return hints ? finish_output() : print_lesson((unsigned)number);
}
