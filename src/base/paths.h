/*
 * paths.h - the paths of the library, and how often each was taken.
 *
 * A path is a place that some calls pass and others do not: a schedule, a kernel, a level of precision, a fallback.
 *
 *     TALLY_PATH("no memory");                   the path of this place in the code
 *     TALLY_PATH_OF(across_paths, way, op, type);  a cell of a table: one path for each combination of its axes
 *
 * Builds that define TALLY_DEBUG count them; in all others both macros are nothing. A compiled place registers itself,
 * and a new value of an axis adds its cells: so nobody keeps a list. A table's rule is a function that says which cells
 * no call can take, and why.
 *
 * Counts are kept only if the environment variable TALLY_PATHS names a folder. Its file LAYOUT.counts, which all
 * processes map, has a counter for each path, and LAYOUT.names has a line for each. So a process that crashes, forks or
 * is shut in a sandbox counts, too. LAYOUT is a hash of the names: programs with other paths have files of their own.
 * scripts/paths reads them.
 */
#ifndef TALLY_PATHS_H
#define TALLY_PATHS_H

#if defined(TALLY_DEBUG)

#include <stdint.h>

/* Values [first, end) of an axis, by name. */
struct path_axis {
    unsigned first, end;
    const char *const *names; /* [end] */
};
#define PATH_AXIS(names)                                                                           \
    { 0, sizeof(names) / sizeof *(names), names }

/* The axis of element types, and that of operators, TALLY_USER included. */
extern const struct path_axis path_types, path_ops;

#define PATH_AXES 4

struct path_table {
    const char *isa;   /* the instruction set or program of a kernel; else NULL */
    const char *place; /* a function, or the title of a table */
    const char *what;  /* what happens there; "" if `place` says it */
    const struct path_axis *axis[PATH_AXES]; /* NULL: no more axes */
    const char *reason;                      /* why no call can take it; NULL */
    /* Returns why no call can take the path with these values of the axes, or NULL if one can. */
    const char *(*never)(const struct path_table *t, const unsigned at[PATH_AXES]);
    uint64_t *taken; /* a counter for each cell; NULL: nothing is counted */
};

/* Counts a path. `at` has a value for each axis; path_nowhere is for a table that has none. */
extern const unsigned path_nowhere[PATH_AXES];
void path_take(const struct path_table *t, const unsigned at[PATH_AXES]);

/* Registers a table: puts its address into the section that paths.c reads. */
#define PATH_KNOWN(table)                                                                          \
    static struct path_table *const table##_known __attribute__((used, section("tally_paths"))) =  \
        &(table)

/* Defines a table: its title, its rule and its axes. */
#define PATH_TABLE(table, title, rule, ...)                                                        \
    static struct path_table table = {                                                             \
        .place = (title), .what = "", .never = (rule), .axis = {__VA_ARGS__}};                     \
    PATH_KNOWN(table)

/* PATH_ISA is defined where kernels are compiled for the model: to the name of their program. */
#if defined(PATH_ISA)
#elif defined(TALLY_ISA)
#define PATH_TEXT2(a) #a
#define PATH_TEXT(a)  PATH_TEXT2(a)
#define PATH_ISA      PATH_TEXT(TALLY_ISA)
#else
#define PATH_ISA NULL
#endif

#define TALLY_PATH_UNLESS(name, rule, why)                                                         \
    do {                                                                                           \
        static struct path_table path_here_ = {                                                    \
            .isa = PATH_ISA, .place = __func__, .what = (name), .reason = (why), .never = (rule)}; \
        PATH_KNOWN(path_here_);                                                                    \
        path_take(&path_here_, path_nowhere);                                                      \
    } while (0)
#define TALLY_PATH_OF(table, ...) path_take(&(table), (const unsigned[PATH_AXES]){__VA_ARGS__})

#else

#define TALLY_PATH_UNLESS(name, rule, why) ((void)0)
#define TALLY_PATH_OF(table, ...)          ((void)0)

#endif

#define TALLY_PATH(name) TALLY_PATH_UNLESS(name, NULL, NULL)

#endif
