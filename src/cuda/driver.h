/*
 * driver.h - as much of CUDA's driver interface as is used here, declared by ourselves.
 *
 * Building needs no header of CUDA's, and libcuda.so.1, which comes with NVIDIA's driver, is looked for
 * only when a device is asked for: one binary runs with and without it. The names and numbers are
 * those of CUDA's documentation.
 */
#ifndef TALLY_CUDA_DRIVER_H
#define TALLY_CUDA_DRIVER_H

#include "tally.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int CUresult;
typedef int CUdevice;
typedef uint64_t CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUgraph_st *CUgraph;
typedef struct CUgraphNode_st *CUgraphNode;
typedef struct CUgraphExec_st *CUgraphExec;

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_INVALID_VALUE = 1,
    CUDA_ERROR_OUT_OF_MEMORY = 2,
    CUDA_ERROR_DEVICE_UNAVAILABLE = 46,
    CUDA_ERROR_NO_DEVICE = 100,
    CUDA_ERROR_INVALID_DEVICE = 101,
    CUDA_ERROR_INVALID_IMAGE = 200,
    CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_NO_BINARY_FOR_GPU = 209,
    CUDA_ERROR_ECC_UNCORRECTABLE = 214,
    CUDA_ERROR_INVALID_PTX = 218,
    CUDA_ERROR_NVLINK_UNCORRECTABLE = 220,
    CUDA_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    CUDA_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    CUDA_ERROR_JIT_COMPILATION_DISABLED = 223,
    CUDA_ERROR_CONTAINED = 226,
    CUDA_ERROR_INVALID_HANDLE = 400,
    CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700,
    CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    CUDA_ERROR_LAUNCH_TIMEOUT = 702,
    CUDA_ERROR_CONTEXT_IS_DESTROYED = 709,
    CUDA_ERROR_ASSERT = 710,
    CUDA_ERROR_HARDWARE_STACK_ERROR = 714,
    CUDA_ERROR_LAUNCH_FAILED = 719,
    CUDA_ERROR_SYSTEM_NOT_READY = 802,
    CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, /* 900 to 908: what a capture does not allow */
    CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905,
    CUDA_ERROR_CAPTURED_EVENT = 907,
    CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD = 908,
    CUDA_ERROR_UNKNOWN = 999,

    /* Attributes of a device. */
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK = 1,
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK = 8,
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    CU_DEVICE_ATTRIBUTE_SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO = 87,
    /* Attributes of a pointer, and the kinds of memory it may point into. */
    CU_POINTER_ATTRIBUTE_MEMORY_TYPE = 2,
    CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL = 9,
    CU_POINTER_ATTRIBUTE_RANGE_START_ADDR = 11,
    CU_POINTER_ATTRIBUTE_RANGE_SIZE = 12,
    CU_MEMORYTYPE_HOST = 1,
    CU_MEMORYTYPE_DEVICE = 2,
    /* Flags of a stream, which then does not wait for the default stream, and of an event. */
    CU_STREAM_NON_BLOCKING = 1,
    CU_EVENT_DISABLE_TIMING = 2,
    /* Flags of host memory: it is for all contexts; kernels see it. */
    CU_MEMHOSTALLOC_PORTABLE = 1,
    CU_MEMHOSTALLOC_DEVICEMAP = 2
};

/* An attribute of cuLaunchKernelEx(): the kernel may begin while earlier work in the stream still
 * runs, and waits for its end by itself. */
enum { CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6 };
typedef struct CUlaunchAttribute {
    int id;
    char pad[4];
    union {
        char pad[64];
        int programmaticStreamSerializationAllowed;
    } value;
} CUlaunchAttribute;
typedef struct CUlaunchConfig {
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    CUstream hStream;
    CUlaunchAttribute *attrs;
    unsigned numAttrs;
} CUlaunchConfig;

/* A kernel in a graph. `extra`, `kern` and `ctx` stay 0. */
typedef struct CUkernelNodeParams {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern, *ctx;
} CUkernelNodeParams;
/* A node of a graph: here always a kernel, whose type is 0. */
typedef struct CUgraphNodeParams {
    int type, reserved0[3];
    union {
        long long reserved1[29];
        CUkernelNodeParams kernel;
    } of;
    long long reserved2;
} CUgraphNodeParams;
/* How a node depends on the one before it. If all fields are 0, it begins when that has ended. With
 * these two values it may begin early, like a launch with the attribute above. */
enum { CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC = 1, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC = 1 };
typedef struct CUgraphEdgeData {
    unsigned char from_port, to_port, type, reserved[5];
} CUgraphEdgeData;
/* The mode in which a thread may make calls that are otherwise forbidden while a stream is captured
 * into a graph. */
enum { CU_STREAM_CAPTURE_MODE_RELAXED = 2 };

/* The entry points: X(name, suffix, parameters); `suffix` is what newer versions of a call add to
 * its name. All of them are in drivers for CUDA 11.0. */
#define CUDA_CALLS(X)                                                                              \
    X(cuInit, , (unsigned flags))                                                                  \
    X(cuDriverGetVersion, , (int *version))                                                        \
    X(cuGetErrorName, , (CUresult error, const char **name))                                       \
    X(cuGetErrorString, , (CUresult error, const char **text))                                     \
    X(cuDeviceGetCount, , (int *count))                                                            \
    X(cuDeviceGet, , (CUdevice * device, int ordinal))                                             \
    X(cuDeviceGetName, , (char *name, int room, CUdevice device))                                  \
    X(cuDeviceTotalMem, _v2, (size_t * bytes, CUdevice device))                                    \
    X(cuDeviceGetAttribute, , (int *value, int attribute, CUdevice device))                        \
    X(cuDevicePrimaryCtxRetain, , (CUcontext * context, CUdevice device))                          \
    X(cuDevicePrimaryCtxRelease, _v2, (CUdevice device))                                           \
    X(cuDevicePrimaryCtxReset, _v2, (CUdevice device))                                             \
    X(cuDevicePrimaryCtxGetState, , (CUdevice device, unsigned *flags, int *active))               \
    X(cuCtxPushCurrent, _v2, (CUcontext context))                                                  \
    X(cuCtxPopCurrent, _v2, (CUcontext * context))                                                 \
    X(cuCtxGetCurrent, , (CUcontext * context))                                                    \
    X(cuCtxGetDevice, , (CUdevice * device))                                                       \
    X(cuCtxSynchronize, , (void))                                                                  \
    X(cuStreamCreate, , (CUstream * stream, unsigned flags))                                       \
    X(cuStreamDestroy, _v2, (CUstream stream))                                                     \
    X(cuStreamSynchronize, , (CUstream stream))                                                    \
    X(cuStreamIsCapturing, , (CUstream stream, int *status))                                       \
    X(cuEventCreate, , (CUevent * event, unsigned flags))                                          \
    X(cuEventDestroy, _v2, (CUevent event))                                                        \
    X(cuEventRecord, , (CUevent event, CUstream stream))                                           \
    X(cuEventSynchronize, , (CUevent event))                                                       \
    X(cuEventElapsedTime, , (float *milliseconds, CUevent from, CUevent to))                       \
    X(cuMemAlloc, _v2, (CUdeviceptr * address, size_t bytes))                                      \
    X(cuMemFree, _v2, (CUdeviceptr address))                                                       \
    X(cuMemHostAlloc, , (void **address, size_t bytes, unsigned flags))                            \
    X(cuMemFreeHost, , (void *address))                                                            \
    X(cuMemHostGetDevicePointer, _v2, (CUdeviceptr * address, void *host, unsigned flags))         \
    X(cuMemcpyHtoDAsync, _v2, (CUdeviceptr to, const void *from, size_t bytes, CUstream stream))   \
    X(cuMemcpyDtoHAsync, _v2, (void *to, CUdeviceptr from, size_t bytes, CUstream stream))         \
    X(cuMemcpyDtoDAsync, _v2, (CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream))   \
    X(cuMemsetD8Async, , (CUdeviceptr to, unsigned char byte, size_t bytes, CUstream stream))      \
    X(cuPointerGetAttributes, ,                                                                    \
      (unsigned count, int *attributes, void **values, CUdeviceptr address))                       \
    X(cuModuleLoadData, , (CUmodule * module, const void *image))                                  \
    X(cuModuleUnload, , (CUmodule module))                                                         \
    X(cuModuleGetFunction, , (CUfunction * function, CUmodule module, const char *name))           \
    X(cuModuleGetGlobal, _v2,                                                                      \
      (CUdeviceptr * address, size_t * bytes, CUmodule module, const char *name))                  \
    X(cuLaunchKernel, ,                                                                            \
      (CUfunction function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,   \
       unsigned block_y, unsigned block_z, unsigned shared, CUstream stream, void **parameters,    \
       void **extra))

/* Entry points that may be missing: later drivers have them. */
#define CUDA_LATER_CALLS(X)                                                                        \
    X(cuLaunchKernelEx, ,                                                                          \
      (const CUlaunchConfig *config, CUfunction function, void **parameters, void **extra))        \
    X(cuThreadExchangeStreamCaptureMode, , (int *mode))                                            \
    X(cuGraphCreate, , (CUgraph * graph, unsigned flags))                                          \
    X(cuGraphDestroy, , (CUgraph graph))                                                           \
    X(cuGraphAddNode, _v2,                                                                         \
      (CUgraphNode * node, CUgraph graph, const CUgraphNode *on, const CUgraphEdgeData *how,       \
       size_t count, CUgraphNodeParams *what))                                                     \
    X(cuGraphInstantiateWithFlags, ,                                                               \
      (CUgraphExec * exec, CUgraph graph, unsigned long long flags))                               \
    X(cuGraphExecKernelNodeSetParams, _v2,                                                         \
      (CUgraphExec exec, CUgraphNode node, const CUkernelNodeParams *what))                        \
    X(cuGraphLaunch, , (CUgraphExec exec, CUstream stream))                                        \
    X(cuGraphExecDestroy, , (CUgraphExec exec))

/* The loaded entry points. After driver_ready() has returned TALLY_OK all are set, but for the
 * later ones, which may be NULL. */
struct cuda_driver {
#define MEMBER(name, suffix, parameters) CUresult(*name) parameters;
    CUDA_CALLS(MEMBER)
    CUDA_LATER_CALLS(MEMBER)
#undef MEMBER
};
extern struct cuda_driver cu;

/* Loads the driver and starts it, once for all threads. Returns TALLY_OK where it works, else TALLY_EDEVICE.
 * After a call that failed the next one tries anew if `again` is true; if not, it returns TALLY_EDEVICE at
 * once, without a line for tally_error(). */
tally_status driver_ready(bool again);

/* Return the driver's name for an error, and its description; neither is ever NULL. */
const char *driver_error_name(CUresult error);
const char *driver_error_text(CUresult error);

/* CUDA's facts about an address. */
struct pointer_facts {
    unsigned type;     /* CU_MEMORYTYPE_..., or another kind; 0: CUDA does not know the address */
    int ordinal;       /* of the device; -1 where CUDA does not say */
    CUdeviceptr start; /* of the piece of memory that the address lies in */
    size_t bytes;      /* of that piece; 0 where CUDA does not say */
};
CUresult driver_pointer(CUdeviceptr address, struct pointer_facts *out);

/* Returns the version of CUDA that the driver is made for: 1000 * major + 10 * minor. 0 before
 * driver_ready(). */
int driver_version(void);

#endif
