/*
 * compiler.c - NVRTC, loaded when first needed; see compiler.h.
 *
 * Floating arithmetic is compiled as written: no fused multiply-add, subnormal numbers kept, division
 * and square root rounded correctly.
 */
#define _GNU_SOURCE /* dladdr, statx */
#include "cuda/compiler.h"

#include "base/status.h"
#include "cuda/library.h"
#include "gpu/embed.h"
#include "gpu/loader.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef int nvrtcResult;
typedef struct _nvrtcProgram *nvrtcProgram;

enum { NVRTC_SUCCESS = 0, NVRTC_ERROR_OUT_OF_MEMORY = 1, NVRTC_ERROR_COMPILATION = 6 };

/* X(name, parameters); all of them are in NVRTC 11.2. */
#define NVRTC_CALLS(X)                                                                             \
    X(nvrtcVersion, (int *major, int *minor))                                                      \
    X(nvrtcCreateProgram, (nvrtcProgram * program, const char *text, const char *name, int count,  \
                           const char *const *headers, const char *const *include_names))          \
    X(nvrtcDestroyProgram, (nvrtcProgram * program))                                               \
    X(nvrtcCompileProgram, (nvrtcProgram program, int count, const char *const *options))          \
    X(nvrtcGetProgramLogSize, (nvrtcProgram program, size_t * size))                               \
    X(nvrtcGetProgramLog, (nvrtcProgram program, char *log))                                       \
    X(nvrtcGetNumSupportedArchs, (int *count))                                                     \
    X(nvrtcGetSupportedArchs, (int *archs))                                                        \
    X(nvrtcGetCUBINSize, (nvrtcProgram program, size_t * size))                                    \
    X(nvrtcGetCUBIN, (nvrtcProgram program, char *image))                                          \
    X(nvrtcGetPTXSize, (nvrtcProgram program, size_t * size))                                      \
    X(nvrtcGetPTX, (nvrtcProgram program, char *image))

static struct nvrtc {
#define MEMBER(name, parameters) nvrtcResult(*name) parameters;
    NVRTC_CALLS(MEMBER)
#undef MEMBER
} nvrtc;

static const struct entry entries[] = {
#define ENTRY(name, parameters) {#name, offsetof(struct nvrtc, name)},
    NVRTC_CALLS(ENTRY)
#undef ENTRY
};

/* ---- Finding it ----------------------------------------------------------------------------- */

/* Compilers, the newest first. find() takes none newer than the driver, which could not load its
 * output. */
static const struct {
    int major;
    const char *file;
} versions[] = {{13, "libnvrtc.so.13"}, {12, "libnvrtc.so.12"}, {11, "libnvrtc.so.11.2"}};
static const char *const folders[] = {"", "/usr/local/cuda/lib64/"}; /* "": the usual places */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library;

static void *find(int driver) {
    char path[64];
    for (size_t v = 0; v < sizeof versions / sizeof *versions; v++)
        for (size_t f = 0; f < sizeof folders / sizeof *folders; f++) {
            if (versions[v].major > driver / 1000) continue;
            snprintf(path, sizeof path, "%s%s", folders[f], versions[v].file);
            void *found = loader_open(path);
            if (found && !library_fill(found, entries, sizeof entries / sizeof *entries, &nvrtc))
                return found;
            if (found) dlclose(found);
        }
    return NULL;
}

static tally_status load(int driver) {
    pthread_mutex_lock(&lock);
    if (!library) library = find(driver);
    pthread_mutex_unlock(&lock);
    if (library) return TALLY_OK;
    return fail(
        TALLY_ECOMPILE,
        "this kernel has to be compiled, but no compiler was found: libnvrtc.so.%d, of the CUDA "
        "toolkit, or an older one",
        driver / 1000);
}

/* ---- Compiling ------------------------------------------------------------------------------ */

/* Returns the newest architecture that the compiler knows and that a device of architecture
 * `wanted`, 10 * major + minor, can run; 0 if there is none. */
static int architecture(int wanted) {
    int count = 0, best = 0;
    if (nvrtc.nvrtcGetNumSupportedArchs(&count) || count <= 0) return 0;
    int *archs = calloc((size_t)count, sizeof *archs);
    if (archs && nvrtc.nvrtcGetSupportedArchs(archs) == NVRTC_SUCCESS)
        for (int i = 0; i < count; i++)
            if (archs[i] <= wanted && archs[i] > best) best = archs[i];
    free(archs);
    return best;
}

static tally_status complain(nvrtcProgram program, nvrtcResult result, const char *file) {
    char line[400] = "";
    size_t size = 0;
    if (result == NVRTC_ERROR_OUT_OF_MEMORY)
        return fail(TALLY_ENOMEM, "no memory to compile %s", file);
    if (result != NVRTC_ERROR_COMPILATION)
        return fail(TALLY_ECOMPILE, "%s: NVRTC fails with error %d", file, result);
    nvrtc.nvrtcGetProgramLogSize(program, &size);
    char *log = calloc(1, size + 1);
    if (log && nvrtc.nvrtcGetProgramLog(program, log) == NVRTC_SUCCESS)
        embed_log_line(line, sizeof line, log);
    free(log);
    return fail(TALLY_ECOMPILE, "%s: %s", file, line);
}

/* Copies the compiler's output, machine code or PTX, to *image, which the caller frees; *out is its size. */
static nvrtcResult take(nvrtcProgram program, int machine_code, char **image, size_t *out) {
    size_t size = 0;
    nvrtcResult result = machine_code ? nvrtc.nvrtcGetCUBINSize(program, &size)
                                      : nvrtc.nvrtcGetPTXSize(program, &size);
    if (result) return result;
    char *made = calloc(1, size + 1);
    if (!made) return NVRTC_ERROR_OUT_OF_MEMORY;
    result = machine_code ? nvrtc.nvrtcGetCUBIN(program, made) : nvrtc.nvrtcGetPTX(program, made);
    if (result)
        free(made);
    else
        *image = made, *out = size;
    return result;
}

/* The options of every compilation but for the target. */
static const char *const strict[] = {"-fmad=false", "-ftz=false", "-prec-div=true",
                                     "-prec-sqrt=true"};
enum { STRICT = sizeof strict / sizeof *strict };

/* A compilation makes machine code, or PTX, for the architecture that the option names. */
struct target {
    bool machine_code; /* else PTX */
    char option[40];
};

/* Loads the compiler, and finds what it can make for a device. */
static tally_status choose(int major, int minor, int driver, struct target *out) {
    const tally_status status = load(driver);
    if (status) return status;
    const int wanted = 10 * major + minor, arch = architecture(wanted);
    if (arch == 0)
        return fail(TALLY_ECOMPILE,
                    "NVRTC does not compile for devices of compute capability %d.%d", major, minor);
    out->machine_code = arch == wanted;
    snprintf(out->option, sizeof out->option, "--gpu-architecture=%s_%d",
             out->machine_code ? "sm" : "compute", arch);
    return TALLY_OK;
}

/* A compiler's version says nothing of its patches, so its file's size and time are in the name, too. */
tally_status compiler_name(int major, int minor, int driver, char out[COMPILER_NAME]) {
    struct target target;
    struct statx s = {0};
    Dl_info info;
    void *place;
    int version[2] = {0, 0};
    const tally_status status = choose(major, minor, driver, &target);
    if (status) return status;
    nvrtc.nvrtcVersion(&version[0], &version[1]);
    memcpy(&place, &nvrtc.nvrtcVersion, sizeof place);
    if (dladdr(place, &info) && info.dli_fname)
        statx(AT_FDCWD, info.dli_fname, 0, STATX_BASIC_STATS, &s);
    int at =
        snprintf(out, COMPILER_NAME, "NVRTC %d.%d, %lld bytes of %lld %s", version[0], version[1],
                 (long long)s.stx_size, (long long)s.stx_mtime.tv_sec, target.option);
    for (int i = 0; i < STRICT; i++)
        at += snprintf(out + at, (size_t)(COMPILER_NAME - at), " %s", strict[i]);
    return TALLY_OK;
}

tally_status compiler_run(const char *text, const char *file, int major, int minor, int driver,
                          char **image, size_t *size) {
    struct target target;
    tally_status status = choose(major, minor, driver, &target);
    if (status) return status;
    const char *options[1 + STRICT] = {target.option};
    memcpy(options + 1, strict, sizeof strict);
    nvrtcProgram program = NULL;
    nvrtcResult result = nvrtc.nvrtcCreateProgram(&program, text, file, 0, NULL, NULL);
    if (result == NVRTC_SUCCESS)
        result = nvrtc.nvrtcCompileProgram(program, sizeof options / sizeof *options, options);
    if (result == NVRTC_SUCCESS) result = take(program, target.machine_code, image, size);
    if (result) status = complain(program, result, file);
    if (program) nvrtc.nvrtcDestroyProgram(&program);
    return status;
}
