/*
 * command.h - the subcommands: what the table in main.c refers to.
 *
 * argv[0] is the subcommand's name, so that its errors can point to its help. The exit status is
 * returned.
 */
#ifndef TALLY_CLI_COMMAND_H
#define TALLY_CLI_COMMAND_H

int reduce_command(int argc, char **argv);
int devices_command(int argc, char **argv);
int bench_command(int argc, char **argv);
int ladder_command(int argc, char **argv);
int explain_command(int argc, char **argv);
int report_command(int argc, char **argv);
int quiz_command(int argc, char **argv);
int lesson_command(int argc, char **argv);

extern const char reduce_help[], devices_help[], bench_help[], ladder_help[], explain_help[],
    report_help[], quiz_help[], lesson_help[];

#endif
