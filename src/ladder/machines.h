/*
 * machines.h - the machines that run kernels, found by name.
 */
#ifndef TALLY_LADDER_MACHINES_H
#define TALLY_LADDER_MACHINES_H

#include "gpu/gpu.h"

/* Finds the machine and the device number that a text names: "opencl:1" is device 1 of the machine called opencl. Sets
 * *api to NULL if the text names no machine that runs kernels. Returns TALLY_EDEVICE if the number is malformed or no
 * such device is here. */
tally_status machine_parse(const char *device, const struct gpu_api **api, size_t *number);

#endif
