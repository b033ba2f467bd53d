/*
 * nvrtc_double.c - a test double of CUDA's run-time compiler: a libnvrtc.so.13 that compiles nothing.
 *
 * Its images are a line of text that names the type and the operator of the source, by which the
 * driver's double finds the model's kernels. A source without a type does not compile, for the reason
 * the real compiler would give. TALLY_CUDA_DOUBLE_NVRTC=ERROR makes every compilation fail so.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORTED __attribute__((visibility("default")))

typedef struct program {
    const char *text; /* the caller's, who keeps it until the end */
    char image[96];
    const char *log;
} * program;

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

int nvrtcCreateProgram(program *out, const char *text, const char *name, int count,
                       const char *const *headers, const char *const *include_names) {
    (void)name, (void)count, (void)headers, (void)include_names;
    *out = calloc(1, sizeof **out);
    if (!*out) return NVRTC_ERROR_OUT_OF_MEMORY;
    (*out)->text = text;
    (*out)->log = "";
    return 0;
}

int nvrtcDestroyProgram(program *p) {
    free(*p);
    *p = NULL;
    return 0;
}

/* The word that follows "#define " and begins as told; its length, or 0. */
static int defined(const char *text, const char *beginning, const char **word) {
    char line[32];
    snprintf(line, sizeof line, "#define %s", beginning);
    const char *at = strstr(text, line);
    if (!at) return 0;
    *word = at + strlen("#define ");
    return (int)strcspn(*word, " \n");
}

int nvrtcCompileProgram(program p, int count, const char *const *options) {
    const char *type = "", *op = "", *error = getenv("TALLY_CUDA_DOUBLE_NVRTC");
    const int type_length = defined(p->text, "TYPE_", &type),
              op_length = defined(p->text, "OP_", &op);
    (void)count, (void)options;
    if (error && *error) return atoi(error);
    if (!type_length || !op_length) {
        p->log = "warning: this is a test double\nkernels/operators.h(1): error: #error directive: "
                 "\"define one of TYPE_I8 ... TYPE_F64\"\n  #error\n\n1 error detected.\n";
        return NVRTC_ERROR_COMPILATION;
    }
    snprintf(p->image, sizeof p->image, "tally test double: %.*s %.*s", type_length, type,
             op_length, op);
    return 0;
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
