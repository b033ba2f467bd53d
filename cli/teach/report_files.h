/*
 * report_files.h - the files inside the command: those that a page of `tally report` is made of, and the lessons.
 */
#ifndef TALLY_CLI_REPORT_FILES_H
#define TALLY_CLI_REPORT_FILES_H

struct embedded {
    const char *name;                 /* "page.css"; NULL ends the table */
    const unsigned char *bytes, *end; /* a 0 follows, so that texts are strings */
};

extern const struct embedded report_files[]; /* the build makes it (CMakeLists.txt) */
/* Returns the text of one of them; NULL where the build has none of that name. */
const char *report_file(const char *name);
extern const struct embedded
    lesson_files[]; /* "02_barrier_missing.cu", "repaired/02_barrier_missing.cu" */

#endif
