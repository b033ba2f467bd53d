/* binaries.c - see binaries.h. */
#include "opencl/binaries.h"

#include "gpu/disk_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROOM 128 /* of one name */

/* Writes the property `what` of the device's platform to out; an empty text if the driver does not
 * say. */
static void ask_platform(cl_device_id device, cl_uint what, char out[ROOM]) {
    cl_platform_id platform = NULL;
    *out = '\0';
    cl.clGetDeviceInfo(device, CL_DEVICE_PLATFORM, sizeof(cl_platform_id), &platform, NULL);
    if (platform) cl.clGetPlatformInfo(platform, what, ROOM, out, NULL);
}

bool binaries_are_kept(cl_device_id device) {
    char platform[ROOM];
    ask_platform(device, CL_PLATFORM_NAME, platform);
    return disk_cache_serves(strcmp(platform, "Portable Computing Language") == 0);
}

void binaries_name(cl_device_id device, const char *options, char out[BINARIES_NAME]) {
    char platform_name[ROOM], platform_version[ROOM], name[ROOM] = "", version[ROOM] = "",
                                                      driver[ROOM] = "";
    ask_platform(device, CL_PLATFORM_NAME, platform_name);
    ask_platform(device, CL_PLATFORM_VERSION, platform_version);
    cl.clGetDeviceInfo(device, CL_DEVICE_NAME, sizeof name, name, NULL);
    cl.clGetDeviceInfo(device, CL_DEVICE_VERSION, sizeof version, version, NULL);
    cl.clGetDeviceInfo(device, CL_DRIVER_VERSION, sizeof driver, driver, NULL);
    snprintf(out, BINARIES_NAME, "OpenCL %s, %s, %s, %s, driver %s %s", platform_name,
             platform_version, name, version, driver, options);
}

cl_program binaries_load(cl_context context, cl_device_id device, const char *options,
                         const char *key) {
    size_t size;
    cl_int error, taken = CL_SUCCESS;
    char *bytes = disk_cache_load(key, &size);
    if (!bytes) return NULL;
    const unsigned char *binary = (unsigned char *)bytes;
    cl_program program =
        cl.clCreateProgramWithBinary(context, 1, &device, &size, &binary, &taken, &error);
    free(bytes);
    if (error || !program) return NULL;
    if (taken == CL_SUCCESS &&
        cl.clBuildProgram(program, 1, &device, options, NULL, NULL) == CL_SUCCESS)
        return program;
    cl.clReleaseProgram(program);
    return NULL;
}

/* The bytes of a program for each of the `count` devices of its context. It has been built for
 * device number `which`. */
struct bytes_of_devices {
    cl_uint count, which;
    cl_device_id *devices;
    size_t *sizes;
    unsigned char **binaries;
};

static cl_int get(cl_program program, cl_uint what, size_t size, void *out) {
    return cl.clGetProgramInfo(program, what, size, out, NULL);
}

/* Takes a program's bytes from the driver. Returns whether those for the device are among them. */
static int take(cl_program program, cl_device_id device, struct bytes_of_devices *b) {
    if (get(program, CL_PROGRAM_NUM_DEVICES, sizeof b->count, &b->count) || b->count == 0) return 0;
    b->devices = calloc(b->count, sizeof *b->devices);
    b->sizes = calloc(b->count, sizeof *b->sizes);
    b->binaries = calloc(b->count, sizeof *b->binaries);
    if (!b->devices || !b->sizes || !b->binaries) return 0;
    if (get(program, CL_PROGRAM_DEVICES, b->count * sizeof *b->devices, b->devices) ||
        get(program, CL_PROGRAM_BINARY_SIZES, b->count * sizeof *b->sizes, b->sizes))
        return 0;
    while (b->which < b->count && b->devices[b->which] != device)
        b->which++;
    for (cl_uint i = 0; i < b->count; i++) /* some drivers write the bytes of all */
        if (b->sizes[i] > 0 && !(b->binaries[i] = malloc(b->sizes[i]))) return 0;
    return b->which < b->count && b->sizes[b->which] > 0 &&
           get(program, CL_PROGRAM_BINARIES, b->count * sizeof *b->binaries, b->binaries) ==
               CL_SUCCESS;
}

void binaries_store(cl_program program, cl_device_id device, const char *key) {
    struct bytes_of_devices b = {0};
    if (take(program, device, &b))
        disk_cache_store(key, b.binaries[b.which], b.sizes[b.which], DISK_CACHE_MOST);
    for (cl_uint i = 0; b.binaries && i < b.count; i++)
        free(b.binaries[i]);
    free(b.binaries);
    free(b.sizes);
    free(b.devices);
}
