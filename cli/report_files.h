/*
 * report_files.h - the files that a page of `tally report` is made of, inside the command.
 */
#ifndef TALLY_CLI_REPORT_FILES_H
#define TALLY_CLI_REPORT_FILES_H

struct embedded {
    const char *name;                 /* "page.css"; NULL ends the table */
    const unsigned char *bytes, *end; /* a 0 follows, so that texts are strings */
};

extern const struct embedded report_files[]; /* the build makes it (CMakeLists.txt) */

#endif
