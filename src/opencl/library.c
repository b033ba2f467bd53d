/*
 * library.c - finding OpenCL, and the devices of all its platforms.
 *
 * An OpenCL that is in the process already goes first: the program's own, or one that a tool such as
 * oclgrind has put in front of it. Then libOpenCL.so.1, which knows all drivers installed.
 */
#include "opencl/opencl.h"

#include "gpu/loader.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct opencl cl;

static pthread_once_t once = PTHREAD_ONCE_INIT;
static cl_device_id *devices;
static size_t device_count;
static char absence[160];

static const struct {
    const char *symbol;
    size_t offset;
} calls[] = {
#define CALL(name, result, parameters) {#name, offsetof(struct opencl, name)},
    OPENCL_CALLS(CALL)
#undef CALL
};

static int load(void) {
    const int here = dlsym(RTLD_DEFAULT, "clGetPlatformIDs") != NULL;
    void *library = here ? RTLD_DEFAULT : loader_open("libOpenCL.so.1");
    if (!here && !library) {
        snprintf(absence, sizeof absence, "libOpenCL.so.1 %s", loader_absence());
        return 0;
    }
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        void *address = dlsym(library, calls[i].symbol);
        if (!address) {
            snprintf(absence, sizeof absence,
                     "libOpenCL.so.1 is too old: it lacks %s, of OpenCL 1.2", calls[i].symbol);
            return 0;
        }
        memcpy((char *)&cl + calls[i].offset, &address, sizeof address);
    }
    return 1;
}

static void add_devices(cl_platform_id platform) {
    cl_uint count = 0;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 0, NULL, &count) || count == 0) return;
    cl_device_id *more = realloc(devices, (device_count + count) * sizeof(cl_device_id));
    if (!more) return;
    devices = more;
    if (cl.clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, count, devices + device_count, NULL) ==
        CL_SUCCESS)
        device_count += count;
}

static void find_devices(void) {
    cl_uint count = 0;
    if (!load()) return;
    snprintf(absence, sizeof absence, "no OpenCL driver is installed");
    if (cl.clGetPlatformIDs(0, NULL, &count) || count == 0) return;
    cl_platform_id *platforms = calloc(count, sizeof(cl_platform_id));
    if (platforms && cl.clGetPlatformIDs(count, platforms, NULL) == CL_SUCCESS)
        for (cl_uint i = 0; i < count; i++)
            add_devices(platforms[i]);
    free(platforms);
    snprintf(absence, sizeof absence,
             device_count ? "there are fewer devices" : "no driver has a device");
}

size_t opencl_count(void) {
    pthread_once(&once, find_devices);
    return device_count;
}

cl_device_id opencl_device(size_t i) {
    return i < opencl_count() ? devices[i] : NULL;
}

const char *opencl_absence(void) {
    return absence;
}
