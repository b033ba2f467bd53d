/*
 * machines.h - the machines that run kernels, found by name.
 */
#ifndef TALLY_LADDER_MACHINES_H
#define TALLY_LADDER_MACHINES_H

#include "gpu/gpu.h"

/* Finds what a device's text names: "opencl:1" is number 1 of the machine called opencl. *api is NULL where
 * the text names no machine that runs kernels. TALLY_EDEVICE where the number is none, or no such device is here. */
tally_status machine_parse(const char *device, const struct gpu_api **api, size_t *number);

#endif
