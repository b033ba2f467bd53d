/*
 * nvrtc_double.c - a test double of CUDA's run-time compiler: a libnvrtc.so.13 that compiles nothing.
 *
 * Its images are a line of text, by which the driver's double finds the model's kernels: the file, the
 * defines that the source begins with and, where there is one, the user's operator. What has no kernels
 * there does not compile, for the reason that the real compiler would give where it would, too.
 * TALLY_CUDA_DOUBLE_NVRTC=ERROR makes every compilation fail so.
 */
#include "operators.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef struct program {
    const char *text, *file; /* the caller's, who keeps them until the end */
    char image[256];
    char log[400];
} * program;

EXPORTED int nvrtcVersion(int *major, int *minor);
EXPORTED int nvrtcCreateProgram(program *out, const char *text, const char *name, int count,
                                const char *const *headers, const char *const *include_names);
EXPORTED int nvrtcDestroyProgram(program *p);
EXPORTED int nvrtcCompileProgram(program p, int count, const char *const *options);
EXPORTED int nvrtcGetProgramLogSize(program p, size_t *size);
EXPORTED int nvrtcGetProgramLog(program p, char *log);
EXPORTED int nvrtcGetNumSupportedArchs(int *count);
EXPORTED int nvrtcGetSupportedArchs(int *archs);
EXPORTED int nvrtcGetCUBINSize(program p, size_t *size);
EXPORTED int nvrtcGetCUBIN(program p, char *image);
EXPORTED int nvrtcGetPTXSize(program p, size_t *size);
EXPORTED int nvrtcGetPTX(program p, char *image);

enum { NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_COMPILATION = 6 };

int nvrtcVersion(int *major, int *minor) {
    *major = 13;
    *minor = 0;
    return 0;
}

int nvrtcCreateProgram(program *out, const char *text, const char *name, int count,
                       const char *const *headers, const char *const *include_names) {
    (void)count, (void)headers, (void)include_names;
    *out = calloc(1, sizeof **out);
    if (!*out) return NVRTC_ERROR_OUT_OF_MEMORY;
    (*out)->text = text;
    (*out)->file = name;
    return 0;
}

int nvrtcDestroyProgram(program *p) {
    free(*p);
    *p = NULL;
    return 0;
}

/* Whether a file of the kernels is in the text. */
static bool has_file(const char *text, const char *file) {
    char line[128];
    snprintf(line, sizeof line, "#line 1 \"kernels/%s\"\n", file);
    return strstr(text, line) != NULL;
}

/* Adds the defines that the text begins with: " OP_SUM BLOCK=64". */
static void add_defines(const char *text, char *image, size_t room) {
    size_t at = strlen(image);
    char name[64], value[64];
    while (at < room && sscanf(text, "#define %63s %63[^\n]", name, value) == 2) {
        const bool plain = strcmp(value, "1") == 0;
        at += (size_t)snprintf(image + at, room - at, " %s%s%s", name, plain ? "" : "=",
                               plain ? "" : value);
        text += strcspn(text, "\n") + 1;
    }
}

/* Adds the user's operator, each stretch of white space as one blank: ": a + b". Returns its first
 * character in the image, NULL where there is no operator. */
static const char *add_operator(const char *text, char *image, size_t room) {
    const char *line = "#line 1 \"operator\"\n", *from = strstr(text, line);
    size_t start = strlen(image) + 2, at = start;
    const char *end = from ? strstr(from, "\n);") : NULL;
    if (!end || start >= room) return NULL;
    memcpy(image + start - 2, ": ", 2);
    for (from += strlen(line); from < end && at + 1 < room; from++)
        if (!isspace((unsigned char)*from))
            image[at++] = *from;
        else if (image[at - 1] != ' ')
            image[at++] = ' ';
    image[at] = '\0';
    return image + start;
}

static bool operator_known(const char *image) {
    const char *name = strstr(image, "tree.cu");
    for (const struct double_operator *o = double_operators; name && o->name; o++)
        if (strcmp(o->name, name) == 0) return true;
    return false;
}

/* Whether the program has kernels in the driver's double; why not goes to its log. */
static bool compiles(program p) {
    const size_t room = sizeof p->log;
    snprintf(p->image, sizeof p->image, "tally test double: %s", p->file);
    add_defines(p->text, p->image, sizeof p->image);
    const char *combination = add_operator(p->text, p->image, sizeof p->image);
    /* (Programs for all problems, like parts.cu, define their own.) */
    const char *type = strstr(p->text, "#define TYPE_"), *op = strstr(p->text, "#define OP_");
    if (!has_file(p->text, p->file))
        snprintf(p->log, room, "root(1): error: cannot open source file \"kernels/%s\"\n", p->file);
    else if (has_file(p->text, "operators.h") && (!type || !op))
        snprintf(p->log, room,
                 "warning: this is a test double\nkernels/operators.h(1): error: #error directive: "
                 "\"define one of TYPE_I8 ... TYPE_F64\"\n  #error\n\n1 error detected.\n");
    else if (combination && !operator_known(p->image))
        snprintf(p->log, room, "operator(2): error: no operator of the test double's: %s\n",
                 combination);
    return p->log[0] == '\0';
}

int nvrtcCompileProgram(program p, int count, const char *const *options) {
    const char *error = getenv("TALLY_CUDA_DOUBLE_NVRTC");
    (void)count, (void)options;
    if (error && *error) return atoi(error);
    return compiles(p) ? 0 : NVRTC_ERROR_COMPILATION;
}

int nvrtcGetProgramLogSize(program p, size_t *size) {
    *size = strlen(p->log) + 1;
    return 0;
}

int nvrtcGetProgramLog(program p, char *log) {
    strcpy(log, p->log);
    return 0;
}

int nvrtcGetNumSupportedArchs(int *count) {
    *count = 2;
    return 0;
}

int nvrtcGetSupportedArchs(int *archs) {
    archs[0] = 80;
    archs[1] = 90;
    return 0;
}

int nvrtcGetCUBINSize(program p, size_t *size) {
    *size = strlen(p->image) + 1;
    return 0;
}

int nvrtcGetCUBIN(program p, char *image) {
    strcpy(image, p->image);
    return 0;
}

int nvrtcGetPTXSize(program p, size_t *size) {
    return nvrtcGetCUBINSize(p, size);
}

int nvrtcGetPTX(program p, char *image) {
    return nvrtcGetCUBIN(p, image);
}
