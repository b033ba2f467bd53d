/*
 * binaries.h - OpenCL programs as the bytes that a driver gives out and takes back, for the disk cache.
 */
#ifndef TALLY_OPENCL_BINARIES_H
#define TALLY_OPENCL_BINARIES_H

#include "opencl/opencl.h"

#include <stdbool.h>

#define BINARIES_NAME 1024 /* room for a compiler's name */

/* Writes the name of a device's compiler to `out`, for the disk cache: platform, device, their versions and the options.
 * The programs of two compilers of one name are the same. */
void binaries_name(cl_device_id device, const char *options, char out[BINARIES_NAME]);

/* Returns whether the disk cache is to keep programs of the device's driver. PoCL keeps its programs itself. The
 * bytes that it gives out hold a form of each kernel for any block size, which takes some ten times as long to
 * compile as the form that a launch needs. */
bool binaries_are_kept(cl_device_id device);

/* Returns the built program of a key from the disk cache; NULL if there is none, or the driver does not take it. */
cl_program binaries_load(cl_context context, cl_device_id device, const char *options,
                         const char *key);

/* Keeps a program that has been built for the device, if the driver gives out its bytes. */
void binaries_store(cl_program program, cl_device_id device, const char *key);

#endif
