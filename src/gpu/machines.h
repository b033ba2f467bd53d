/*
 * machines.h - the one list of the machines that run kernels, in the order in which they are preferred.
 *
 * GPU_MACHINES(X)   X(machine): `machine` is the part of a device's spec before ':'. The machine is
 * struct gpu_api machine##_api (gpu.h), and the device that it makes is struct device_kind
 * machine##_device_kind. A new machine is a folder and a line here.
 */
#ifndef TALLY_GPU_MACHINES_H
#define TALLY_GPU_MACHINES_H

#define GPU_MACHINES(X)                                                                            \
    X(cuda)                                                                                        \
    X(opencl)                                                                                      \
    X(model)

#endif
