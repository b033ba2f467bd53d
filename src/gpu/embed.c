/*
 * embed.c - from a root to the whole text; see embed.h.
 */
#include "gpu/embed.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_LENGTH 200

const struct embedded *embed_find(const struct embedded *table, const char *name) {
    for (; table->name; table++)
        if (strcmp(table->name, name) == 0) return table;
    return NULL;
}

/* Closes a stream into memory. Returns its text, or NULL if memory ran out on the way. */
static char *finished(FILE *stream, char **text) {
    const bool broken = ferror(stream) != 0;
    if (fclose(stream) == 0 && !broken) return *text;
    free(*text);
    return NULL;
}

char *embed_root(const char *file, const char *prelude, const char *const *defines, size_t count) {
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t name = strcspn(defines[i], "=");
        const char *value = defines[i][name] ? defines[i] + name + 1 : "1";
        fprintf(out, "#define %.*s %s\n", (int)name, defines[i], value);
    }
    if (prelude) fprintf(out, "#line 1 \"prelude\"\n%s\n", prelude);
    fprintf(out, "#include \"kernels/%s\"\n", file);
    return finished(out, &text);
}

/* ---- Includes ------------------------------------------------------------------------------- */

/* The files that are being expanded, innermost first. */
struct nest {
    const struct nest *outer;
    const char *name; /* "" for the root */
};

/* Returns whether a file is being expanded already. A file that includes itself has a guard, or it would
 * have no end; so its second inclusion, within the first, may be left out. */
static bool being_expanded(const struct nest *nest, const char *name) {
    for (; nest; nest = nest->outer)
        if (strcmp(nest->name, name) == 0) return true;
    return false;
}

/* Writes to out the table's name for `path`, which is relative to the folder of the file `from`: "../operators.h"
 * from "kernels/ladder/load.cu" is "kernels/operators.h". Returns false if the path leaves the table's root, or the
 * name is too long. */
static bool resolve(char out[NAME_MAX_LENGTH], const char *from, const char *path, size_t length) {
    const char *slash = strrchr(from, '/');
    size_t at = slash ? (size_t)(slash - from) + 1 : 0;
    memcpy(out, from, at);
    for (; length >= 3 && strncmp(path, "../", 3) == 0; path += 3, length -= 3) {
        if (at == 0) return false;
        for (at--; at > 0 && out[at - 1] != '/'; at--)
            ;
    }
    if (at + length >= NAME_MAX_LENGTH) return false;
    memcpy(out + at, path, length);
    out[at + length] = '\0';
    return true;
}

/* Returns the file that a line includes; NULL where the line is no #include, or of a file that the table
 * does not have. */
static const struct embedded *included(const char *line, const char *from) {
    char name[NAME_MAX_LENGTH];
    line += strspn(line, " \t");
    if (*line++ != '#') return NULL;
    line += strspn(line, " \t");
    if (strncmp(line, "include", 7) != 0) return NULL;
    line += 7 + strspn(line + 7, " \t");
    if (*line++ != '"') return NULL;
    if (!resolve(name, from, line, strcspn(line, "\"\n"))) return NULL;
    return embed_find(embedded_sources, name);
}

static void expand(FILE *out, const char *text, const struct nest *nest) {
    for (unsigned number = 1; *text; number++) {
        const size_t length = strcspn(text, "\n");
        const struct embedded *file = included(text, nest->name);
        if (!file) {
            fwrite(text, 1, length, out);
            fputc('\n', out);
        } else if (!being_expanded(nest, file->name)) {
            const struct nest inner = {nest, file->name};
            fprintf(out, "#line 1 \"%s\"\n", file->name);
            expand(out, (const char *)file->bytes, &inner);
            fprintf(out, "#line %u \"%s\"\n", number + 1, *nest->name ? nest->name : "root");
        }
        text += length + (text[length] == '\n');
    }
}

char *embed_expand(const char *root) {
    const struct nest nest = {NULL, ""};
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    if (!out) return NULL;
    expand(out, root, &nest);
    return finished(out, &text);
}

/* ---- What compilers say --------------------------------------------------------------------- */

void embed_log_line(char *out, size_t room, const char *log) {
    const char *error = strstr(log, "error");
    const char *line = error ? error : log;
    size_t at = 0;
    while (line > log && line[-1] != '\n')
        line--;
    snprintf(out, room, "the compiler said nothing");
    while (*(line += strspn(line, " \t\r\n")) && at < room) {
        const size_t length = strcspn(line, "\r\n");
        at += (size_t)snprintf(out + at, room - at, "%s%.*s", at ? "; " : "", (int)length, line);
        line += length;
    }
}
