/*
 * main.c - the tally command: the table of subcommands, and the commands help and version.
 *
 * Each operator is a subcommand with the operator's name; reduce_command() runs all of these.
 */
#include "common/command.h"
#include "common/message.h"
#include "common/names.h"
#include "tally.h"

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *help;    /* all of its help */
    const char *summary; /* one line for the overview */
};

static int help_command(int argc, char **argv);
static int version_command(int argc, char **argv);
static const char version_help[] = "Usage: tally version\n"
                                   "Says which version this is, as does tally -V.\n";
static const char help_help[] = "Usage: tally help [COMMAND]\n"
                                "Says what the command does and which options it takes.\n";

/* clang-format off */
static const struct command commands[] = {
    {"sum", reduce_command, reduce_help, "the exact sum, rounded once"},
    {"prod", reduce_command, reduce_help, "the product: integers exact, floats over the canonical tree"},
    {"min", reduce_command, reduce_help, "the least element; -0 lies below +0, and NaN in is NaN out"},
    {"max", reduce_command, reduce_help, "the greatest element"},
    {"and", reduce_command, reduce_help, "the bits that are set in all elements"},
    {"or", reduce_command, reduce_help, "the bits that are set in at least one"},
    {"xor", reduce_command, reduce_help, "the bits that are set in an odd number of them"},
    {"mean", reduce_command, reduce_help, "the exact mean, rounded once"},
    {"var", reduce_command, reduce_help, "the variance, of the population or with --ddof 1 of a sample"},
    {"std", reduce_command, reduce_help, "the standard deviation"},
    {"norm1", reduce_command, reduce_help, "the sum of |x|"},
    {"norm2", reduce_command, reduce_help, "the square root of the sum of x^2"},
    {"norminf", reduce_command, reduce_help, "the greatest |x|"},
    {"sumsq", reduce_command, reduce_help, "the sum of x^2"},
    {"dot", reduce_command, reduce_help, "the sum of x y, of two inputs in step"},
    {"argmin", reduce_command, reduce_help, "the index of the least element, counted from 0"},
    {"argmax", reduce_command, reduce_help, "the index of the greatest"},
    {"minmax", reduce_command, reduce_help, "the least and the greatest element"},
    {"count", reduce_command, reduce_help, "how many elements there are"},
    {"nans", reduce_command, reduce_help, "how many are NaN"},
    {"nonzero", reduce_command, reduce_help, "how many are not 0"},
    {"any", reduce_command, reduce_help, "1 if some element is not 0, else 0"},
    {"all", reduce_command, reduce_help, "1 if no element is 0, else 0"},
    {"describe", reduce_command, reduce_help, "count, nans, min, max, argmin, argmax, sum, mean, std"},
    {"devices", devices_command, devices_help, "the devices here, and how fast they read"},
    {"bench", bench_command, bench_help, "times a reduction beside plain loops and the read roof"},
#ifdef TALLY_LADDER
    {"ladder", ladder_command, ladder_help, "the classic GPU kernels, checked, and timed or counted"},
    {"explain", explain_command, explain_help, "one of these kernels, or your own, step by step"},
    {"report", report_command, report_help, "a page that shows all of them, to be opened in a browser"},
    {"lesson", lesson_command, lesson_help, "kernels to mend: a question, hints, an answer, a verdict"},
    {"quiz", quiz_command, quiz_help, "questions about these kernels; the model knows the answers"},
#endif
    {"help", help_command, help_help, "explains a command"},
    {"version", version_command, version_help, "says which version this is"},
};
/* clang-format on */
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Returns the command of this name, or NULL. A list such as "sum,max" is run by the function that
 * runs each operator alone, so any operator's entry serves. */
static const struct command *find(const char *name) {
    if (strchr(name, ',')) return &commands[0];
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

static int unknown_command(const char *name) {
    char list[512] = "", near[32];
    for (size_t i = 0; i < COMMANDS; i++) {
        if (i) strcat(list, " ");
        strcat(list, commands[i].name);
    }
    if (names_nearest(name, list, ' ', near, sizeof near))
        return misused("'%s' is no command; did you mean %s?", name, near);
    return misused("'%s' is no command; the commands are %s", name, list);
}

static int print_overview(void) {
    puts("Usage: tally COMMAND [ARGUMENT...]\n"
         "Reduces arrays in parallel, with the right answer and the same bits on every machine.\n"
         "\n"
         "  tally sum a.npy              the exact sum of an array, rounded once\n"
         "  tally max --dtype f32 a.raw  raw elements need their type\n"
         "  seq 10 | tally sum           numbers as text\n"
         "\n"
         "Commands:");
    for (size_t i = 0; i < COMMANDS; i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    puts("\n'tally help COMMAND' or 'tally COMMAND --help' tells more; so does 'man tally'.");
    return finish_output();
}

static int help_command(int argc, char **argv) {
    if (argc > 2) return misused("help takes one command at a time");
    if (argc < 2) return print_overview();
    if (strcmp(argv[1], "--help") == 0) argv[1] = argv[0];
    const struct command *command = find(argv[1]);
    if (!command) return unknown_command(argv[1]);
    fputs(command->help, stdout);
    return finish_output();
}

static int print_version(void) {
    printf("tally %s\n", tally_version());
    return finish_output();
}

static int version_command(int argc, char **argv) {
    if (argc > 1 && strcmp(argv[1], "--help") == 0)
        return fputs(version_help, stdout), finish_output();
    if (argc > 1) return misused("version takes no argument such as '%s'", argv[1]);
    return print_version();
}

/* Opens /dev/null in place of a closed descriptor 0, 1 or 2. Otherwise the next file that is opened
 * would get its number: `-` would read that file, or messages would be written into it. So 0 can
 * then not be read, and 1 not be written. */
static bool reserve_descriptors(void) {
    for (int file = STDIN_FILENO; file <= STDERR_FILENO; file++)
        if (fcntl(file, F_GETFD) < 0 &&
            open("/dev/null", file == STDOUT_FILENO ? O_RDONLY : O_WRONLY) != file)
            return false;
    return true;
}

int main(int argc, char **argv) {
    if (!reserve_descriptors()) return STATUS_FAILED;
    if (argc < 2) return misused("no command is given; 'tally help' lists them");
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0) return print_overview();
    if (strcmp(name, "--version") == 0 || strcmp(name, "-V") == 0) return print_version();
    const struct command *command = find(name);
    if (!command) return unknown_command(name);
    return command->run(argc - 1, argv + 1);
}
