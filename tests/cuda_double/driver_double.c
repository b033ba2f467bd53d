/*
 * driver_double.c - a test double of NVIDIA's driver: a libcuda.so.1 without a GPU.
 *
 * It has the entry points that Tally uses, and runs kernels on the model (src/model), so that all of
 * the CUDA host code can be tested anywhere. It is no GPU, and its devices say so in their names. It
 * is strict where the real driver may be lenient: a call without a context fails, and what is not
 * given back is counted. As on a real device, an error of a kernel shows up at a later call, is
 * returned by all calls from then on, and ends with the context. Copies from pinned memory, fills and
 * copies within the device are put off until something waits for them: whoever does not wait reads, or
 * overwrites, what is not there yet. Kernels run at once, after what is before them in their stream.
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
#include "model/programs/programs.h"
#include "operators.h"

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
CUDA_LATER_CALLS(DECLARE)

/* For tests: how many objects of contexts there are - memory, streams, events, modules; */
EXPORTED size_t tally_cuda_double_objects(void);
/* A context of a device beside its primary one, and its end. */
EXPORTED CUcontext tally_cuda_double_context(CUdevice device);
EXPORTED void tally_cuda_double_end(CUcontext context);
/* A stream is being captured from here on, or no longer. (What is put there is done all the same.) */
EXPORTED void tally_cuda_double_capture(CUstream stream, bool on);
/* How many of a stream's copies and fills have not been done yet. */
EXPORTED size_t tally_cuda_double_put_off(CUstream stream);
/* Copies from and to the device, also where a stream is being captured; for the double of NCCL. */
EXPORTED CUresult tally_cuda_double_peek(void *to, CUdeviceptr from, size_t bytes, CUstream stream);
EXPORTED CUresult tally_cuda_double_poke(CUdeviceptr to, const void *from, size_t bytes,
                                         CUstream stream);
/* how many holders the primary contexts have; */
EXPORTED size_t tally_cuda_double_holders(void);
/* how many contexts the calling thread has pushed and not popped; */
EXPORTED size_t tally_cuda_double_depth(void);
/* and how many failures TALLY_CUDA_DOUBLE_FAIL has brought about so far. */
EXPORTED size_t tally_cuda_double_failures(void);
/* How many launches of kernels, of graphs, and fills there have been; a graph's kernels count as launches, too. */
EXPORTED size_t tally_cuda_double_launches(void);
EXPORTED size_t tally_cuda_double_graphs(void);
EXPORTED size_t tally_cuda_double_fills(void);

enum { DEVICES_MAX = 4, CONTEXTS_MAX = 2 * DEVICES_MAX, STACK_MAX = 8, NODES_MAX = 8 };

/* Something that a stream is yet to do: a copy from the host or from the device, or else a fill. */
struct work {
    char *to;
    const void *host, *from;
    unsigned char byte;
    size_t bytes;
    unsigned long number; /* in its stream */
    STAILQ_ENTRY(work) link;
};

/* A kernel of a graph, with arguments of its own. */
struct CUgraphNode_st {
    const model_kernel *kernel;
    unsigned grid, block;
    void **arguments;
};

struct object {
    enum { MEMORY, HOST, STREAM, EVENT, MODULE, GRAPH, EXEC } kind;
    char *address; /* MEMORY, HOST */
    size_t bytes;
    bool mapped;                         /* HOST: kernels see it */
    STAILQ_HEAD(, work) put_off;         /* STREAM */
    unsigned long put;                   /* how much work it was ever given */
    bool captured;                       /* it is being captured; EVENT: was recorded there */
    double time;                         /* EVENT: seconds; -1 before it is recorded */
    struct object *stream;               /* where it was recorded */
    unsigned long upto;                  /* after which work */
    const struct model_program *program; /* MODULE */
    unsigned nodes;                      /* GRAPH, EXEC */
    struct CUgraphNode_st node[NODES_MAX];
    struct object *graph; /* EXEC: what it was made of */
    LIST_ENTRY(object) link;
};

/* A context: the primary ones of all devices, then a second one of each. */
static struct device {
    model_device *model; /* while there is a context */
    unsigned retained;
    CUresult lost; /* what every call in the context comes to */
    size_t used;   /* bytes */
    LIST_HEAD(, object) objects;
} devices[CONTEXTS_MAX];

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* for all of the above */
static bool initialised;
static size_t object_count, failure_count, launch_count, graph_count, fill_count;
static unsigned captures; /* streams that are being captured */
static char fault_text[512];
static _Thread_local struct device *stack[STACK_MAX]; /* contexts; the last is current */
static _Thread_local unsigned depth;
static _Thread_local bool relaxed; /* what the thread does is none of the captures' concern */

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

/* What a thread must not do while a stream is being captured, unless it says that it knows better. */
static bool upsets_captures(const char *name) {
    static const char calls[] = " cuMemAlloc_v2 cuMemFree_v2 cuMemHostAlloc cuMemFreeHost "
                                "cuModuleLoadData cuModuleUnload cuStreamSynchronize "
                                "cuEventSynchronize cuMemcpyHtoDAsync_v2 cuMemcpyDtoHAsync_v2 "
                                "cuCtxSynchronize cuGraphInstantiateWithFlags ";
    char word[64];
    snprintf(word, sizeof word, " %s ", name);
    return captures > 0 && !relaxed && strstr(calls, word);
}

/* The same within a context: *out is its device. */
static CUresult called_in(const char *name, struct device **out) {
    CUresult result = called(name);
    *out = depth ? stack[depth - 1] : NULL;
    if (!result && upsets_captures(name)) result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
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
    case CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO:
        *value = 2;
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

static void free_arguments(const struct CUgraphNode_st *node) {
    for (unsigned i = 0; i < node->kernel->arguments; i++)
        free(node->arguments[i]);
    free(node->arguments);
}

static void drop(struct object *o) {
    if (o->kind == HOST && !o->mapped) free(o->address);
    while (o->kind == STREAM && !STAILQ_EMPTY(&o->put_off)) {
        struct work *w = STAILQ_FIRST(&o->put_off);
        STAILQ_REMOVE_HEAD(&o->put_off, link);
        free(w);
    }
    for (unsigned i = 0; i < o->nodes; i++)
        free_arguments(&o->node[i]);
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
    while (!LIST_EMPTY(&d->objects))
        drop(LIST_FIRST(&d->objects));
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

size_t tally_cuda_double_launches(void) {
    return looked_at(&launch_count);
}

size_t tally_cuda_double_graphs(void) {
    return looked_at(&graph_count);
}

size_t tally_cuda_double_fills(void) {
    return looked_at(&fill_count);
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

CUresult cuDevicePrimaryCtxGetState(CUdevice device, unsigned *flags, int *active) {
    CUresult result = called(__func__);
    *flags = 0;
    *active = devices[device].model != NULL;
    return done(result);
}

CUcontext tally_cuda_double_context(CUdevice device) {
    struct device *d = &devices[DEVICES_MAX + device];
    if (d->model || model_open(&d->model) != MODEL_OK) abort();
    return (CUcontext)(void *)d;
}

void tally_cuda_double_end(CUcontext context) {
    end_context((struct device *)(void *)context);
}

CUresult cuCtxGetDevice(CUdevice *device) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    if (result == CUDA_SUCCESS) *device = (CUdevice)((d - devices) % DEVICES_MAX);
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

CUresult cuCtxGetCurrent(CUcontext *context) {
    CUresult result = called(__func__);
    *context = depth ? (CUcontext)(void *)stack[depth - 1] : NULL;
    return done(result);
}

/* ---- Streams and events --------------------------------------------------------------------- */

CUresult cuStreamCreate(CUstream *stream, unsigned flags) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    (void)flags;
    if (result == CUDA_SUCCESS) {
        struct object *o = add(d, (struct object){.kind = STREAM});
        STAILQ_INIT(&o->put_off);
        *stream = (CUstream)(void *)o;
    }
    return done(result);
}

static CUresult copy_within(struct device *d, char *to, const void *from, size_t bytes) {
    char *between = malloc(bytes);
    CUresult result = of_model(d, model_read(d->model, between, from, bytes));
    if (result == CUDA_SUCCESS) result = of_model(d, model_write(d->model, to, between, bytes));
    free(between);
    return result;
}

/* Does a stream's work up to a number. */
static CUresult catch_up(struct device *d, struct object *stream, unsigned long upto) {
    CUresult result = CUDA_SUCCESS;
    while (!STAILQ_EMPTY(&stream->put_off) && STAILQ_FIRST(&stream->put_off)->number <= upto) {
        struct work *w = STAILQ_FIRST(&stream->put_off);
        CUresult one = w->host   ? of_model(d, model_write(d->model, w->to, w->host, w->bytes))
                       : w->from ? copy_within(d, w->to, w->from, w->bytes)
                                 : of_model(d, model_fill(d->model, w->to, w->byte, w->bytes));
        if (result == CUDA_SUCCESS) result = one;
        STAILQ_REMOVE_HEAD(&stream->put_off, link);
        free(w);
    }
    return result;
}

/* As what frees memory does. */
static CUresult catch_up_all(struct device *d) {
    struct object *o;
    CUresult result = CUDA_SUCCESS;
    for (o = LIST_FIRST(&d->objects); o && !result; o = LIST_NEXT(o, link))
        if (o->kind == STREAM) result = catch_up(d, o, o->put);
    return result;
}

/* Takes work that is done when something waits for it; at once in a capture. */
static CUresult put_off(struct device *d, CUstream stream, struct work work) {
    struct object *s = find(d, stream, STREAM);
    struct work *w = malloc(sizeof *w);
    if (!w) abort();
    *w = work;
    w->number = ++s->put;
    STAILQ_INSERT_TAIL(&s->put_off, w, link);
    return s->captured ? catch_up(d, s, s->put) : CUDA_SUCCESS;
}

size_t tally_cuda_double_put_off(CUstream stream) {
    size_t count = 0;
    struct work *w;
    STAILQ_FOREACH(w, &((struct object *)(void *)stream)->put_off, link)
    count++;
    return count;
}

void tally_cuda_double_capture(CUstream stream, bool on) {
    struct object *s = (struct object *)(void *)stream;
    captures += (unsigned)on - (unsigned)s->captured;
    s->captured = on;
}

/* What puts work on a stream begins like this. */
static CUresult called_for(const char *name, CUstream stream, struct device **d) {
    CUresult result = called_in(name, d);
    return result ? result : find(*d, stream, STREAM) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

/* And what comes after all that is there, like this. */
static CUresult called_on(const char *name, CUstream stream, struct device **d) {
    CUresult result = called_for(name, stream, d);
    struct object *s = (struct object *)(void *)stream;
    return result ? result : catch_up(*d, s, s->put);
}

CUresult cuStreamDestroy_v2(CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS) drop((struct object *)(void *)stream);
    return done(result);
}

CUresult cuStreamSynchronize(CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    if (result == CUDA_SUCCESS && ((struct object *)(void *)stream)->captured)
        result = CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    return done(result);
}

CUresult cuStreamIsCapturing(CUstream stream, int *status) {
    struct device *d;
    CUresult result = called_for(__func__, stream, &d);
    if (result == CUDA_SUCCESS) *status = ((struct object *)(void *)stream)->captured;
    return done(result);
}

CUresult cuCtxSynchronize(void) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    return done(result ? result : catch_up_all(d));
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
    struct object *s = result ? NULL : find(d, stream, STREAM);
    if (result == CUDA_SUCCESS && !s) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) {
        clock_gettime(CLOCK_MONOTONIC, &now);
        o->time = (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
        o->stream = s;
        o->upto = s->put;
        o->captured = s->captured;
    }
    return done(result);
}

CUresult cuEventSynchronize(CUevent event) {
    struct device *d;
    struct object *o;
    CUresult result = called_with_event(__func__, event, &d, &o);
    if (result == CUDA_SUCCESS && o->captured) result = CUDA_ERROR_CAPTURED_EVENT;
    if (result == CUDA_SUCCESS && find(d, o->stream, STREAM))
        result = catch_up(d, o->stream, o->upto);
    return done(result);
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

/* The allocation that an address lies in, the device's or the host's. */
static struct object *memory_at(struct device *d, CUdeviceptr address) {
    struct object *o;
    for (o = LIST_FIRST(&d->objects); o; o = LIST_NEXT(o, link))
        if ((o->kind == MEMORY || o->kind == HOST) && address - (uintptr_t)o->address < o->bytes)
            return o;
    return NULL;
}

/* Whether kernels see all of a range. */
static bool is_reached(struct device *d, CUdeviceptr address, size_t bytes) {
    const struct object *o = memory_at(d, address);
    return o && (o->kind == MEMORY || o->mapped) &&
           bytes <= o->bytes - (address - (uintptr_t)o->address);
}

CUresult cuMemFree_v2(CUdeviceptr address) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    struct object *o = result ? NULL : memory_at(d, address);
    if (result == CUDA_SUCCESS && (!o || o->kind != MEMORY || o->address != pointer(address)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = catch_up_all(d);
    if (result == CUDA_SUCCESS) {
        result = of_model(d, model_free(d->model, o->address));
        d->used -= o->bytes;
        drop(o);
    }
    return done(result);
}

/* Memory that kernels are to see is the model's, and all of it counts as written. */
static CUresult allocate_host(struct device *d, struct object *o) {
    void *memory = NULL;
    CUresult result = CUDA_SUCCESS;
    if (o->mapped)
        result = of_model(d, model_allocate(d->model, o->bytes, &memory));
    else if (!(memory = malloc(o->bytes)))
        result = CUDA_ERROR_OUT_OF_MEMORY;
    if (result == CUDA_SUCCESS && o->mapped)
        result = of_model(d, model_fill(d->model, memory, 0, o->bytes));
    o->address = memory;
    return result;
}

CUresult cuMemHostAlloc(void **address, size_t bytes, unsigned flags) {
    struct device *d;
    struct object o = {
        .kind = HOST, .bytes = bytes, .mapped = (flags & CU_MEMHOSTALLOC_DEVICEMAP) != 0};
    CUresult result = called_in(__func__, &d);
    if (result == CUDA_SUCCESS && bytes == 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = allocate_host(d, &o);
    if (result == CUDA_SUCCESS) *address = add(d, o)->address;
    return done(result);
}

static struct object *host_at(struct device *d, const void *address) {
    struct object *o = memory_at(d, (uintptr_t)address);
    return o && o->kind == HOST ? o : NULL;
}

CUresult cuMemFreeHost(void *address) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    struct object *o = result ? NULL : host_at(d, address);
    if (result == CUDA_SUCCESS && (!o || o->address != address)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) result = catch_up_all(d);
    if (result == CUDA_SUCCESS && o->mapped) result = of_model(d, model_free(d->model, address));
    if (result == CUDA_SUCCESS) drop(o);
    return done(result);
}

CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *address, void *host, unsigned flags) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    const struct object *o = result ? NULL : host_at(d, host);
    if (result == CUDA_SUCCESS && (!o || !o->mapped || flags)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *address = (uintptr_t)host;
    return done(result);
}

/* From pinned memory a copy may come late; from any other the driver takes the bytes at once. */
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_for(__func__, stream, &d);
    if (result == CUDA_SUCCESS && !is_reached(d, to, bytes)) result = CUDA_ERROR_INVALID_VALUE;
    const bool pinned = result == CUDA_SUCCESS && host_at(d, from);
    if (result == CUDA_SUCCESS)
        result = put_off(d, stream, (struct work){.to = pointer(to), .host = from, .bytes = bytes});
    if (result == CUDA_SUCCESS && !pinned) {
        struct object *s = (struct object *)(void *)stream;
        result = catch_up(d, s, s->put);
    }
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
    CUresult result = called_for(__func__, stream, &d);
    if (result == CUDA_SUCCESS && (!is_reached(d, to, bytes) || !is_reached(d, from, bytes)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = put_off(d, stream,
                         (struct work){.to = pointer(to), .from = pointer(from), .bytes = bytes});
    return done(result);
}

CUresult tally_cuda_double_peek(void *to, CUdeviceptr from, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_on("tally_cuda_double_peek", stream, &d);
    if (result == CUDA_SUCCESS && !is_reached(d, from, bytes)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_read(d->model, to, pointer(from), bytes));
    return done(result);
}

CUresult tally_cuda_double_poke(CUdeviceptr to, const void *from, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_on("tally_cuda_double_poke", stream, &d);
    if (result == CUDA_SUCCESS && !is_reached(d, to, bytes)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = of_model(d, model_write(d->model, pointer(to), from, bytes));
    return done(result);
}

CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream) {
    struct device *d;
    CUresult result = called_for(__func__, stream, &d);
    if (result == CUDA_SUCCESS && !is_reached(d, to, bytes)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS)
        result = put_off(d, stream, (struct work){.to = pointer(to), .byte = byte, .bytes = bytes});
    fill_count++;
    return done(result);
}

CUresult cuPointerGetAttributes(unsigned count, int *attributes, void **values,
                                CUdeviceptr address) {
    CUresult result = called(__func__);
    const struct object *o = NULL;
    int i = 0;
    for (i = 0; i < CONTEXTS_MAX && !(o = memory_at(&devices[i], address)); i++)
        continue;
    for (unsigned k = 0; k < count && result == CUDA_SUCCESS; k++)
        switch (attributes[k]) {
        case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
            *(CUdeviceptr *)values[k] = o ? (uintptr_t)o->address : 0;
            break;
        case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
            *(size_t *)values[k] = o ? o->bytes : 0;
            break;
        case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
            *(int *)values[k] = o ? i % DEVICES_MAX : -2;
            break;
        default:
            *(int *)values[k] = !o                ? 0
                                : o->kind == HOST ? CU_MEMORYTYPE_HOST
                                                  : CU_MEMORYTYPE_DEVICE;
        }
    return done(result);
}

/* ---- Modules -------------------------------------------------------------------------------- */

/* The program of a name such as "sum.cu OP_SUM TYPE_F32", or a user's operator; NULL where the model has
 * none. */
static const struct model_program *program_named(const char *words) {
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
    return model_program_find(file, define, count);
}

/* An image is one that the library has compiled in, known by being the same bytes, or a line of text
 * from the double of the compiler. */
static const struct model_program *program_of(const unsigned char *image) {
    const char magic[] = "tally test double: ";
    if (strncmp((const char *)image, magic, strlen(magic)) == 0)
        return program_named((const char *)image + strlen(magic));
    const struct {
        uint32_t magic;
        uint16_t version, header;
        uint64_t size;
    } *fatbin = (const void *)image;
    if (fatbin->magic != 0xba55ed50) return NULL;
    for (const struct embedded *e = embedded_images; e->name; e++)
        if (fatbin->header + fatbin->size <= (size_t)(e->end - e->bytes) &&
            memcmp(image, e->bytes, fatbin->header + fatbin->size) == 0)
            return program_named(e->name);
    return NULL;
}

/* Ends an object, if it is there and of the kind. */
static CUresult ended(const char *name, const void *object, int kind) {
    struct device *d;
    CUresult result = called_in(name, &d);
    struct object *o = result ? NULL : find(d, object, kind);
    if (result == CUDA_SUCCESS && !o) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS) drop(o);
    return done(result);
}

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    const struct model_program *program = result ? NULL : program_of(image);
    if (result == CUDA_SUCCESS && !program) result = CUDA_ERROR_INVALID_IMAGE;
    if (result == CUDA_SUCCESS)
        *module = (CUmodule)(void *)add(d, (struct object){.kind = MODULE, .program = program});
    return done(result);
}

CUresult cuModuleUnload(CUmodule module) {
    return ended(__func__, module, MODULE);
}

CUresult cuModuleGetFunction(CUfunction *function, CUmodule module, const char *name) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    const struct object *o = result ? NULL : find(d, module, MODULE);
    if (result == CUDA_SUCCESS && !o) result = CUDA_ERROR_INVALID_HANDLE;
    if (result) return done(result);
    const model_kernel *kernel = model_program_kernel(o->program, name);
    *function = (CUfunction)(uintptr_t)kernel;
    return done(kernel ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
}

/* Whether a program says that its kernels wait by themselves (src/kernels/kernel.h): here, all with a kernel `reduce`,
 * lower.cu and words.cu. */
static bool waits_itself(const struct model_program *program) {
    return model_program_kernel(program, "reduce") || strncmp(program->name, "lower.cu", 8) == 0 ||
           strncmp(program->name, "words.cu", 8) == 0;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *address, size_t *bytes, CUmodule module,
                              const char *name) {
    struct device *d;
    CUresult result = called_in("cuModuleGetGlobal", &d);
    const struct object *o = result ? NULL : find(d, module, MODULE);
    if (result == CUDA_SUCCESS && !o) result = CUDA_ERROR_INVALID_HANDLE;
    if (result) return done(result);
    const bool early = strcmp(name, "begins_early") == 0 && waits_itself(o->program);
    *address = 0;
    *bytes = 4;
    return done(early ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND);
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
    launch_count++;
    return done(result);
}

/* The same as cuLaunchKernel() for a kernel that may begin early; TALLY_CUDA_DOUBLE_FAIL knows it by that name. */
CUresult cuLaunchKernelEx(const CUlaunchConfig *c, CUfunction function, void **parameters,
                          void **extra) {
    const char *name = ((const model_kernel *)(const void *)function)->name;
    const bool waits = strcmp(name, "reduce") == 0 || strcmp(name, "alone") == 0 ||
                       strcmp(name, "lower") == 0 || strcmp(name, "pack") == 0 ||
                       strcmp(name, "settle") == 0 || strncmp(name, "allreduce", 9) == 0;
    if (c->numAttrs != 1 || !waits ||
        c->attrs->id != CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION)
        return CUDA_ERROR_INVALID_VALUE;
    return cuLaunchKernel(function, c->gridDimX, c->gridDimY, c->gridDimZ, c->blockDimX,
                          c->blockDimY, c->blockDimZ, c->sharedMemBytes, c->hStream, parameters,
                          extra);
}

/* ---- Graphs ------------------------------------------------------------------------------------ */

CUresult cuThreadExchangeStreamCaptureMode(int *mode) {
    const int before = relaxed ? CU_STREAM_CAPTURE_MODE_RELAXED : 0;
    const CUresult result = called(__func__);
    if (result == CUDA_SUCCESS) {
        relaxed = *mode == CU_STREAM_CAPTURE_MODE_RELAXED;
        *mode = before;
    }
    return done(result);
}

static void *copied(const void *from, size_t bytes) {
    void *copy = malloc(bytes);
    if (!copy) abort();
    memcpy(copy, from, bytes);
    return copy;
}

/* Returns a node with copies of the arguments, as the driver makes them. */
static struct CUgraphNode_st node_of(const model_kernel *kernel, unsigned grid, unsigned block,
                                     void *const *arguments) {
    struct CUgraphNode_st node = {.kernel = kernel, .grid = grid, .block = block};
    node.arguments = calloc(kernel->arguments, sizeof *node.arguments);
    if (!node.arguments) abort();
    for (unsigned i = 0; i < kernel->arguments; i++)
        node.arguments[i] = copied(arguments[i], kernel->bytes[i]);
    return node;
}

static struct CUgraphNode_st node_of_params(const CUkernelNodeParams *p) {
    return node_of((const model_kernel *)(const void *)p->func, p->gridDimX, p->blockDimX,
                   p->kernelParams);
}

static bool is_plain(const CUkernelNodeParams *p) {
    return p->gridDimY == 1 && p->gridDimZ == 1 && p->blockDimY == 1 && p->blockDimZ == 1 &&
           p->sharedMemBytes == 0 && !p->extra && !p->kern && !p->ctx;
}

CUresult cuGraphCreate(CUgraph *graph, unsigned flags) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    if (result == CUDA_SUCCESS && flags != 0) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) *graph = (CUgraph)(void *)add(d, (struct object){.kind = GRAPH});
    return done(result);
}

CUresult cuGraphDestroy(CUgraph graph) {
    return ended(__func__, graph, GRAPH);
}

/* Adds a kernel behind the last one: other graphs are not made here. */
CUresult cuGraphAddNode_v2(CUgraphNode *node, CUgraph graph, const CUgraphNode *on,
                           const CUgraphEdgeData *how, size_t count, CUgraphNodeParams *what) {
    struct device *d;
    CUresult result = called_in("cuGraphAddNode", &d);
    struct object *o = result ? NULL : find(d, graph, GRAPH);
    if (result == CUDA_SUCCESS && !o) result = CUDA_ERROR_INVALID_HANDLE;
    if (result == CUDA_SUCCESS &&
        (o->nodes == NODES_MAX || what->type != 0 || !is_plain(&what->of.kernel) ||
         count != (o->nodes > 0) || (count > 0 && *on != &o->node[o->nodes - 1]) ||
         (count > 0 && how->from_port != how->type)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        o->node[o->nodes] = node_of_params(&what->of.kernel);
        *node = &o->node[o->nodes++];
    }
    return done(result);
}

CUresult cuGraphInstantiateWithFlags(CUgraphExec *exec, CUgraph graph, unsigned long long flags) {
    struct device *d;
    CUresult result = called_in(__func__, &d);
    struct object *o = result ? NULL : find(d, graph, GRAPH);
    if (result == CUDA_SUCCESS && (!o || flags != 0)) result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct object *made = add(d, (struct object){.kind = EXEC, .graph = o, .nodes = o->nodes});
        for (unsigned i = 0; i < o->nodes; i++)
            made->node[i] =
                node_of(o->node[i].kernel, o->node[i].grid, o->node[i].block, o->node[i].arguments);
        *exec = (CUgraphExec)(void *)made;
    }
    return done(result);
}

CUresult cuGraphExecKernelNodeSetParams_v2(CUgraphExec exec, CUgraphNode node,
                                           const CUkernelNodeParams *what) {
    struct device *d;
    CUresult result = called_in("cuGraphExecKernelNodeSetParams", &d);
    struct object *o = result ? NULL : find(d, exec, EXEC);
    if (result == CUDA_SUCCESS && (!o || !find(d, o->graph, GRAPH) || !is_plain(what)))
        result = CUDA_ERROR_INVALID_VALUE;
    if (result == CUDA_SUCCESS) {
        struct CUgraphNode_st *own = &o->node[node - o->graph->node];
        free_arguments(own);
        *own = node_of_params(what);
    }
    return done(result);
}

CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
    struct device *d;
    CUresult result = called_on(__func__, stream, &d);
    const struct object *o = result ? NULL : find(d, exec, EXEC);
    if (result == CUDA_SUCCESS && (!o || ((struct object *)(void *)stream)->captured))
        result = CUDA_ERROR_INVALID_VALUE;
    for (unsigned i = 0; result == CUDA_SUCCESS && i < o->nodes; i++) {
        const model_launch launch = {.kernel = o->node[i].kernel,
                                     .grid = o->node[i].grid,
                                     .block = o->node[i].block,
                                     .arguments = o->node[i].arguments};
        result = of_model(d, model_run(d->model, &launch, NULL));
        launch_count++;
    }
    graph_count++;
    return done(result);
}

CUresult cuGraphExecDestroy(CUgraphExec exec) {
    return ended(__func__, exec, EXEC);
}
