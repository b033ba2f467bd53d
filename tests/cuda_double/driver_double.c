/*
 * driver_double.c - a test double of NVIDIA's driver: a libcuda.so.1 without a GPU.
 *
 * It has the entry points that Tally uses, and runs kernels on the model (src/model), so that all of
 * the CUDA host code can be tested anywhere. It is no GPU, and its devices say so in their names. It
 * is strict where the real driver may be lenient: a call without a context fails, and what is not
 * given back is counted. As on a real device, an error of a kernel shows up at a later call, is
 * returned by all calls from then on, and ends with the context.
 *
 * Environment variables, looked at in every call:
 *   TALLY_CUDA_DOUBLE_FAIL=cuMemAlloc:2:2,...   the 2nd call of cuMemAlloc from now on comes to error
 *                                                2; a changed text starts counting anew
 *   TALLY_CUDA_DOUBLE_DEVICES=2                  how many devices there are; 1
 *   TALLY_CUDA_DOUBLE_VERSION=9000               the driver's version; 13000
 *   TALLY_CUDA_DOUBLE_MEMORY=1000000             bytes of memory of a device; 1 GiB
 */
#include "cuda/driver.h"
#include "cuda/images.h"
#include "gpu/simulated/programs.h"
#include "model/gpu.h"
#include "model/ladder.h"
#include "operators.h"
#include "table.h"

#include <ctype.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#define EXPORTED __attribute__((visibility("default")))

/* The host's own declarations, so that the two cannot differ. */
#define DECLARE(name, suffix, parameters) EXPORTED CUresult name##suffix parameters;
CUDA_CALLS(DECLARE)

/* For tests: how many objects of contexts there are - memory, streams, events, modules; */
EXPORTED size_t tally_cuda_double_objects(void);
/* how many holders the primary contexts have; */
EXPORTED size_t tally_cuda_double_holders(void);
/* how many contexts the calling thread has pushed and not popped; */
EXPORTED size_t tally_cuda_double_depth(void);
/* and how many failures TALLY_CUDA_DOUBLE_FAIL has brought about so far. */
EXPORTED size_t tally_cuda_double_failures(void);

enum { DEVICES_MAX = 4, STACK_MAX = 8 };

/* What a module was made from: one of these. */
struct program {
    const ladder_instance *ladder;
    const struct simulated_program *production;
    bool reads; /* src/kernels/read.cu */
};

struct object {
    enum { MEMORY, STREAM, EVENT, MODULE } kind;
    char *address; /* MEMORY */
    size_t bytes;
    double time;            /* EVENT: seconds; -1 before it is recorded */
    struct program program; /* MODULE */
    LIST_ENTRY(object) link;
};

static struct device {
    model_device *model; /* while there is a context */
    unsigned retained;
    CUresult lost; /* what every call in the context comes to */
    size_t used;   /* bytes */
    LIST_HEAD(, object) objects;
} devices[DEVICES_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all of the above */
static bool initialised;
static size_t object_count, failure_count;
static char fault_text[512];
static _Thread_local struct device *stack[STACK_MAX]; /* contexts; the last is current */
static _Thread_local unsigned depth;

/* ---- Failures, injected and real ------------------------------------------------------------ */

static unsigned long setting(const char *name, unsigned long otherwise) {
    const char *text = getenv(name);
    return text && *text ? strtoul(text, NULL, 0) : otherwise;
}

static bool is_final(CUresult error) {
    return error == CUDA_ERROR_ILLEGAL_ADDRESS || error == CUDA_ERROR_LAUNCH_TIMEOUT ||
           error == CUDA_ERROR_ECC_UNCORRECTABLE || error == CUDA_ERROR_UNKNOWN ||
           (error >= CUDA_ERROR_ASSERT && error <= CUDA_ERROR_LAUNCH_FAILED);
}

/* Counts a call of `name` and says whether it is one that is to fail: with which error. */
static CUresult injected(const char *name) {
    enum { RULES_MAX = 8 };
    static char current[256];
    static unsigned counts[RULES_MAX];
    const char *rules = getenv("TALLY_CUDA_DOUBLE_FAIL");
    const size_t length = strcspn(name, "_");
    CUresult result = CUDA_SUCCESS;

    if (!rules) rules = "";
    if (strcmp(current, rules) != 0) {
        snprintf(current, sizeof current, "%s", rules);
        memset(counts, 0, sizeof counts);
    }
    for (unsigned i = 0; i < RULES_MAX && *rules; i++) {
        unsigned which = 0;
        int error = 0;
        if (strncmp(rules, name, length) == 0 && rules[length] == ':' &&
            sscanf(rules + length, ":%u:%d", &which, &error) == 2 && ++counts[i] == which) {
            result = error;
            failure_count++;
        }
        rules += strcspn(rules, ",");
        rules += *rules == ',';
    }
    return result;
}

/* A call begins that needs no context; every one that began ends with done(). */
static CUresult called(const char *name) {
    pthread_mutex_lock(&lock);
    return injected(name);
}

static CUresult done(CUresult result) {
    pthread_mutex_unlock(&lock);
    return result;
}

/* The same within a context: *out is its device. */
static CUresult called_in(const char *name, struct device **out) {
    CUresult result = called(name);
    *out = depth ? stack[depth - 1] : NULL;
    if (!*out || !(*out)->model) return result ? result : CUDA_ERROR_INVALID_CONTEXT;
    if (is_final(result) && (*out)->lost == CUDA_SUCCESS) (*out)->lost = result;
    return result ? result : (*out)->lost;
}

static CUresult of_model(struct device *d, model_status status) {
    switch (status) {
    case MODEL_OK:
        return CUDA_SUCCESS;
    case MODEL_EINVAL:
        return CUDA_ERROR_INVALID_VALUE;
    case MODEL_ENOMEM:
        return CUDA_ERROR_OUT_OF_MEMORY;
    case MODEL_EFAULT:
        break;
    }
    snprintf(fault_text, sizeof fault_text, "%s", model_error(d->model));
    d->lost = model_last_fault(d->model)->kind == MODEL_FAULT_BOUNDS ? CUDA_ERROR_ILLEGAL_ADDRESS
                                                                     : CUDA_ERROR_LAUNCH_FAILED;
    return CUDA_SUCCESS; /* for now */
}

static const struct {
    CUresult error;
    const char *name, *text;
} texts[] = {
    {CUDA_SUCCESS, "CUDA_SUCCESS", "no error"},
    {CUDA_ERROR_INVALID_VALUE, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {CUDA_ERROR_OUT_OF_MEMORY, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {CUDA_ERROR_NO_DEVICE, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {CUDA_ERROR_INVALID_IMAGE, "CUDA_ERROR_INVALID_IMAGE", "device kernel image is invalid"},
    {CUDA_ERROR_INVALID_CONTEXT, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
     "the provided PTX was compiled with an unsupported toolchain."},
    {CUDA_ERROR_NOT_FOUND, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {CUDA_ERROR_LAUNCH_FAILED, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

static CUresult find_text(CUresult error, size_t *out) {
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (texts[i].error == error) {
            *out = i;
            return CUDA_SUCCESS;
        }
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuGetErrorName(CUresult error, const char **name) {
    size_t i = 0;
    CUresult result = called(__func__);
    if (result == CUDA_SUCCESS) result = find_text(error, &i);
    *name = result ? NULL : texts[i].name;
    return done(result);
}

/* Of a kernel's fault, the model has more to say than CUDA's text. */
CUresult cuGetErrorString(CUresult error, const char **text) {
    size_t i = 0;
    CUresult result = called(__func__);
    if (result == CUDA_SUCCESS) result = find_text(error, &i);
    *text = result ? NULL : is_final(error) && *fault_text ? fault_text : texts[i].text;
    return done(result);
}

/* ---- Driver and devices --------------------------------------------------------------------- */

static size_t device_count(void) {
    const unsigned long count = setting("TALLY_CUDA_DOUBLE_DEVICES", 1);
    return count < DEVICES_MAX ? count : DEVICES_MAX;
}

static size_t device_memory(void) {
    return setting("TALLY_CUDA_DOUBLE_MEMORY", 1ul << 30);
}

CUresult cuInit(unsigned flags) {
    CUresult result = called(__func__);
    if (result == CUDA_SUCCESS) initialised = flags == 0;
    return done(result);
}

CUresult cuDriverGetVersion(int *version) {
    CUresult result = called(__func__);
    *version = (int)setting("TALLY_CUDA_DOUBLE_VERSION", 13000);
    return done(result);
}

CUresult cuDeviceGetCount(int *count) {
    CUresult result = called(__func__);
    *count = (int)device_count();
    return done(result ? result : initialised ? CUDA_SUCCESS : 3);
}

static bool is_device(CUdevice device) {
    return device >= 0 && (size_t)device < device_count();
}

CUresult cuDeviceGet(CUdevice *device, int ordinal) {
    CUresult result = called(__func__);
    *device = ordinal;
    return done(result ? result : is_device(ordinal) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetName(char *name, int room, CUdevice device) {
    CUresult result = called(__func__);
    snprintf(name, (size_t)room, "test double %d of a CUDA device (no GPU)", device);
    return done(result);
}

CUresult cuDeviceTotalMem_v2(size_t *bytes, CUdevice device) {
    CUresult result = called(__func__);
    *bytes = device_memory();
    return done(result ? result : is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice device) {
    CUresult result = called(__func__);
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
        *value = MODEL_BLOCK_MAX;
        break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK:
        *value = 48 << 10;
        break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
        *value = MODEL_PROCESSORS;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
        *value = 9;
        break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
        *value = 0;
        break;
    default:
        return done(CUDA_ERROR_INVALID_VALUE);
    }
    return done(result ? result : is_device(device) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE);
}

/* ---- Contexts ------------------------------------------------------------------------------- */

static struct object *add(struct device *d, struct object object) {
    struct object *o = malloc(sizeof *o);
    if (!o) abort();
    *o = object;
    LIST_INSERT_HEAD(&d->objects, o, link);
    object_count++;
    return o;
}

static void drop(struct object *o) {
    LIST_REMOVE(o, link);
    object_count--;
    free(o);
}

static struct object *find(struct device *d, const void *object, int kind) {
    struct object *o;
    for (o = LIST_FIRST(&d->objects); o; o = LIST_NEXT(o, link))
        if (o == object && (int)o->kind == kind) return o;
    return NULL;
}

static void end_context(struct device *d) {
    while (!LIST_EMPTY(&d->objects)) {
        struct object *o = LIST_FIRST(&d->objects);
        LIST_REMOVE(o, link);
        object_count--;
        free(o);
    }
    model_close(d->model);
    d->model = NULL;
    d->lost = CUDA_SUCCESS;
    d->used = 0;
}

static size_t looked_at(const size_t *count) {
    pthread_mutex_lock(&lock);
    const size_t value = *count;
    pthread_mutex_unlock(&lock);
    return value;
}

size_t tally_cuda_double_objects(void) {
    return looked_at(&object_count);
}

size_t tally_cuda_double_failures(void) {
    return looked_at(&failure_count);
}

size_t tally_cuda_double_depth(void) {
    return depth;
}

size_t tally_cuda_double_holders(void) {
    size_t holders = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < DEVICES_MAX; i++)
        holders += devices[i].retained;
    pthread_mutex_unlock(&lock);
    return holders;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *context, CUdevice device) {
    CUresult result = called(__func__);
    struct device *d = &devices[device];
    if (result == CUDA_SUCCESS && !d->model && model_open(&d->model) != MODEL_OK)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    d->retained += result == CUDA_SUCCESS;
    *context = (CUcontext)(void *)d;
    return done(result);
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice device) {
    CUresult result = called(__func__);
    struct device *d = &devices[device];
    if (result == CUDA_SUCCESS && d->retained == 0) result = CUDA_ERROR_INVALID_CONTEXT;
    if (result == CUDA_SUCCESS && --d->retained == 0) end_context(d);
    return done(result);
}

CUresult cuDevicePrimaryCtxReset_v2(CUdevice device) {
    CUresult result = called(__func__);
    if (result == CUDA_SUCCESS) end_context(&devices[device]);
    return done(result);
}

CUresult cuCtxPushCurrent_v2(CUcontext context) {
    CUresult result = called(__func__);
    if (depth == STACK_MAX) abort(); /* somebody forgets to pop */
    if (result == CUDA_SUCCESS) stack[depth++] = (struct device *)(void *)context;
    return done(result);
}

CUresult cuCtxPopCurrent_v2(CUcontext *context) {
    CUresult result = called(__func__);
    if (depth == 0) return done(CUDA_ERROR_INVALID_CONTEXT);
    *context = (CUcontext)(void *)stack[--depth];
    return done(result);
}

/* ---- Streams and events --------------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    (void)flags;
    if (result == CUDA_SUCCESS) *stream = (CUstream)(void *)add(d, (struct object){.kind = STREAM});
    return done(result);
}

/* What takes a stream begins like this. */
static CUresult called_on(const char *name, CUstream stream, struct device **d) {
    CUresult result = called_in(name, d);
    return result ? result : find(*d, stream, STREAM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS) drop((struct object *)(void *)stream);
    return done(result);
}

CUresult cuStreamSynchronize(CUstream stream) {
    struct device *d;
    return done(called_on(__func__, stream, &d));
}

CUresult cuEventCreate(CUevent *event, unsigned flags) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    (void)flags;
    if (result == CUDA_SUCCESS)
        *event = (CUevent)(void *)add(d, (struct object){.kind = EVENT, .time = -1});
    return done(result);
}

static CUresult called_with_event(const char *name, CUevent event, struct device **d,
                                  struct object **out) {
    CUresult result = called_in(name, d);
    *out = result ? NULL : find(*d, event, EVENT);
    return result ? result : *out ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuEventDestroy_v2(CUevent event) {
    struct device *d;
    struct object *o;
    CUresult result = called_with_event(__func__, event, &d, &o);
    if (result == CUDA_SUCCESS) drop(o);
    return done(result);
}

CUresult cuEventRecord(CUevent event, CUstream stream) {
    struct device *d;
    struct object *o;
    struct timespec now;
    CUresult result = called_with_event(__func__, event, &d, &o);
    if (result == CUDA_SUCCESS && !find(d, stream, STREAM)) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        o->time = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
    }
    return done(result);
}

CUresult cuEventSynchronize(CUevent event) {
    struct device *d;
    struct object *o;
    return done(called_with_event(__func__, event, &d, &o));
}

CUresult cuEventElapsedTime(float *milliseconds, CUevent from, CUevent to) {
    struct device *d;
    struct object *start;
    CUresult result = called_with_event(__func__, from, &d, &start);
    struct object *stop = result ? NULL : find(d, to, EVENT);
    if (result == CUDA_SUCCESS && (!stop || start->time < 0 || stop->time < 0))
        result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) *milliseconds = (float)((stop->time - start->time) * 1e3);
    return done(result);
}

/* ---- Memory --------------------------------------------------------------------------------- */

static void *pointer(CUdeviceptr address) {
    return (void *)(uintptr_t)address;
}

CUresult cuMemAlloc_v2(CUdeviceptr *address, size_t bytes) {
    struct device *d;
    void *memory = NULL;
    CUresult result = called_in(__func__, &d);
    if (result == CUDA_SUCCESS && bytes == 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS && bytes > device_memory() - d->used)
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS) result = of_model(d, model_allocate(d->model, bytes, &memory));
    if (result == CUDA_SUCCESS) {
        add(d, (struct object){.kind = MEMORY, .address = memory, .bytes = bytes});
        d->used += bytes;
        *address = (CUdeviceptr)(uintptr_t)memory;
    }
    return done(result);
}

/* The allocation that an address lies in. */
static struct object *memory_at(struct device *d, CUdeviceptr address) {
    struct object *o;
    for (o = LIST_FIRST(&d->objects); o; o = LIST_NEXT(o, link))
        if (o->kind == MEMORY && address - (uintptr_t)o->address < o->bytes) return o;
    return NULL;
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    struct object *o = result ? NULL : memory_at(d, address);
    if (result == CUDA_SUCCESS && (!o || o->address != pointer(address)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        result = of_model(d, model_free(d->model, o->address));
        d->used -= o->bytes;
        drop(o);
    }
    return done(result);
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_write(d->model, pointer(to), from, bytes));
    return done(result);
}

CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_read(d->model, to, pointer(from), bytes));
    return done(result);
}

CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    char *between = result ? NULL : malloc(bytes);
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_read(d->model, between, pointer(from), bytes));
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_write(d->model, pointer(to), between, bytes));
    free(between);
    return done(result);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_fill(d->model, pointer(to), byte, bytes));
    return done(result);
}

CUresult cuPointerGetAttribute(void *value, int attribute, CUdeviceptr address) {
    CUresult result = called(__func__);
    size_t i = 0;
    while (i < DEVICES_MAX && !memory_at(&devices[i], address))
        i++;
    if (result == CUDA_SUCCESS && i == DEVICES_MAX) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        *(int *)value =
            attribute == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? (int)i : CU_MEMORYTYPE_DEVICE;
    return done(result);
}

/* ---- Modules -------------------------------------------------------------------------------- */

static bool has_word(const char *text, const char *word) {
    const char *at = strstr(text, word);
    return at && !isalnum((unsigned char)at[strlen(word)]);
}

/* The ladder's kernels for "... TYPE_x ... OP_y ...". */
static const ladder_instance *ladder_named(const char *words) {
    tally_type type = 0;
    tally_op op = 0;
#define TYPE(NAME, ...)                                                                            \
    if (has_word(words, "TYPE_" #NAME)) type = TALLY_##NAME;
#define OP(NAME, ...)                                                                              \
    if (has_word(words, "OP_" #NAME)) op = TALLY_##NAME;
    TALLY_TYPES(TYPE)
    TALLY_OPS(OP)
    return type && op ? ladder_instance_of(type, op) : NULL;
}

/* A user's operator, or a file and its defines. */
static const struct simulated_program *production_named(const char *words) {
    enum { DEFINES_MAX = 8 };
    const char *define[DEFINES_MAX];
    char text[256], *rest = text;
    size_t count = 0;
    for (const struct double_operator *o = double_operators; o->name; o++)
        if (strcmp(o->name, words) == 0) return o->program;
    snprintf(text, sizeof text, "%s", words);
    const char *file = strsep(&rest, " ");
    while (rest && count < DEFINES_MAX)
        define[count++] = strsep(&rest, " ");
    return simulated_find(file, define, count);
}

/* The program of a name such as "sum.cu OP_SUM TYPE_F32"; false where the model has none. */
static bool program_named(const char *words, struct program *out) {
    const char ladder[] = "ladder/ladder.cu ";
    *out = (struct program){.reads = strcmp(words, "read.cu") == 0};
    if (strncmp(words, ladder, strlen(ladder)) == 0)
        out->ladder = ladder_named(words);
    else if (!out->reads)
        out->production = production_named(words);
    return out->reads || out->ladder || out->production;
}

/* An image is one that the library has compiled in, known by being the same bytes, or a line of text
 * from the double of the compiler. */
static bool program_of(const unsigned char *image, struct program *out) {
    const char magic[] = "tally test double: ";
    if (strncmp((const char *)image, magic, strlen(magic)) == 0)
        return program_named((const char *)image + strlen(magic), out);
    const struct {
        uint32_t magic;
        uint16_t version, header;
        uint64_t size;
    } *fatbin = (const void *)image;
    if (fatbin->magic != 0xba55ed50) return false;
    for (const struct embedded *e = embedded_images; e->name; e++)
        if (fatbin->header + fatbin->size <= e->size &&
            memcmp(image, e->bytes, fatbin->header + fatbin->size) == 0)
            return program_named(e->name, out);
    return false;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    struct device *d;
    struct program program;
    CUresult result = called_in(__func__, &d);
    if (result == CUDA_SUCCESS && !program_of(image, &program)) result = CUDA_ERROR_INVALID_IMAGE;
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)(void *)add(d, (struct object){.kind = MODULE, .program = program});
    return done(result);
}

CUresult cuModuleUnload(CUmodule module) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    struct object *o = result ? NULL : find(d, module, MODULE);
    if (result == CUDA_SUCCESS && !o) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) drop(o);
    return done(result);
}

static const model_kernel *kernel_among(const model_kernel *const *kernels, size_t count,
                                        const char *name) {
    for (size_t i = 0; i < count && kernels[i]; i++)
        if (strcmp(kernels[i]->name, name) == 0) return kernels[i];
    return NULL;
}

static const model_kernel *kernel_named(const struct program *p, const char *name) {
    if (p->reads) return kernel_among(model_read_kernels, MODEL_READ_KERNELS, name);
    if (p->production)
        return kernel_among(p->production->kernels,
                            sizeof p->production->kernels / sizeof *p->production->kernels, name);
    if (strcmp(p->ladder->load->name, name) == 0) return p->ladder->load;
    return kernel_among(p->ladder->rungs, LADDER_RUNG_COUNT, name);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    const struct object *o = result ? NULL : find(d, module, MODULE);
    if (result == CUDA_SUCCESS && !o) result = CUDA_ERROR_INVALID_HANDLE;
    if (result) return done(result);
    const model_kernel *kernel = kernel_named(&o->program, name);
    *function = (CUfunction)(uintptr_t)kernel;
    return done(kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
}

CUresult cuLaunchKernel(CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                        unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared,
                        CUstream stream, void **parameters, void **extra) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS &&
        (grid_y != 1 || grid_z != 1 || block_y != 1 || block_z != 1 || shared != 0 || extra))
        result = CUDA_ERROR_INVALID_VALUE;
    const model_launch launch = {.kernel = (const model_kernel *)(const void *)function,
                                 .grid = grid_x,
                                 .block = block_x,
                                 .arguments = parameters};
    if (result == CUDA_SUCCESS) result = of_model(d, model_run(d->model, &launch, NULL));
    return done(result);
}
