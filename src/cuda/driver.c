/*
 * driver.c - finding NVIDIA's driver, and saying what is wrong where there is none to use.
 */
#include "cuda/driver.h"
#include "base/status.h"
#include "cuda/library.h"
#include "gpu/loader.h"

#include <dlfcn.h>
#include <pthread.h>

#define OLDEST 11000 /* the oldest CUDA of a driver */

struct cuda_driver cu;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *library; /* NULL until its entry points are in cu */
static bool tried, ready;
static int version;

static const struct entry entries[] = {
#define ENTRY(name, suffix, parameters) {#name #suffix, offsetof(struct cuda_driver, name)},
    CUDA_CALLS(ENTRY)};
static const struct entry later_entries[] = {CUDA_LATER_CALLS(ENTRY)};
#undef ENTRY

static tally_status load(void) {
    if (library) return TALLY_OK;
    void *found = loader_open("libcuda.so.1");
    if (!found)
        return fail(TALLY_EDEVICE, "no CUDA: libcuda.so.1, NVIDIA's driver, %s", loader_absence());
    const char *missing = library_fill(found, entries, sizeof entries / sizeof *entries, &cu);
    if (missing) {
        dlclose(found);
        return fail(
            TALLY_EDEVICE,
            "no CUDA: the driver is too old: it lacks %s; one for CUDA %d.%d or later is needed",
            missing, OLDEST / 1000, OLDEST % 1000 / 10);
    }
    for (size_t i = 0; i < sizeof later_entries / sizeof *later_entries; i++)
        library_fill(found, &later_entries[i], 1, &cu);
    library = found;
    return TALLY_OK;
}

const char *driver_error_name(CUresult error) {
    const char *name = NULL;
    return cu.cuGetErrorName(error, &name) == CUDA_SUCCESS && name ? name : "an unknown error";
}

const char *driver_error_text(CUresult error) {
    const char *text = NULL;
    return cu.cuGetErrorString(error, &text) == CUDA_SUCCESS && text ? text : "no description";
}

static tally_status start(void) {
    tally_status status = load();
    if (status) return status;
    CUresult result = cu.cuInit(0);
    if (result == CUDA_SUCCESS) result = cu.cuDriverGetVersion(&version);
    if (result)
        return fail(TALLY_EDEVICE, "no CUDA: the driver does not start: %s (%s)",
                    driver_error_name(result), driver_error_text(result));
    if (version < OLDEST)
        return fail(
            TALLY_EDEVICE,
            "no CUDA: the driver is too old: it is for CUDA %d.%d; %d.%d or later is needed",
            version / 1000, version % 1000 / 10, OLDEST / 1000, OLDEST % 1000 / 10);
    ready = true;
    return TALLY_OK;
}

tally_status driver_ready(bool again) {
    tally_status status = TALLY_OK;
    pthread_mutex_lock(&lock);
    if (!ready) status = tried && !again ? TALLY_EDEVICE : start();
    tried = true;
    pthread_mutex_unlock(&lock);
    return status;
}

int driver_version(void) {
    return version;
}

CUresult driver_pointer(CUdeviceptr address, struct pointer_facts *out) {
    int asked[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                   CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE};
    void *values[] = {&out->type, &out->ordinal, &out->start, &out->bytes};
    *out = (struct pointer_facts){.ordinal = -1};
    return cu.cuPointerGetAttributes(4, asked, values, address);
}
