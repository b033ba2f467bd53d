/*
 * opencl.h - as much of OpenCL 1.2 as is used here, declared by ourselves.
 *
 * No header of OpenCL's is needed to build, and libOpenCL is looked for only when a device is asked
 * for: one binary runs with and without it. The names and numbers are the OpenCL specification's.
 */
#ifndef TALLY_OPENCL_OPENCL_H
#define TALLY_OPENCL_OPENCL_H

#include <stddef.h>
#include <stdint.h>

typedef int32_t cl_int;
typedef uint32_t cl_uint, cl_bool;
typedef int64_t cl_long;
typedef uint64_t cl_ulong, cl_bits; /* cl_bits: a set of flags */
typedef struct _cl_platform_id *cl_platform_id;
typedef struct _cl_device_id *cl_device_id;
typedef struct _cl_context *cl_context;
typedef struct _cl_command_queue *cl_command_queue;
typedef struct _cl_mem *cl_mem;
typedef struct _cl_program *cl_program;
typedef struct _cl_kernel *cl_kernel;
typedef struct _cl_event *cl_event;

/* The errors that calls return: X(NAME, number, status). `status` is what an error becomes unless the
 * caller knows better. */
#define OPENCL_ERRORS(X)                                                                           \
    X(CL_DEVICE_NOT_FOUND, -1, TALLY_EDEVICE)                                                      \
    X(CL_DEVICE_NOT_AVAILABLE, -2, TALLY_ELOST)                                                    \
    X(CL_COMPILER_NOT_AVAILABLE, -3, TALLY_ECOMPILE)                                               \
    X(CL_MEM_OBJECT_ALLOCATION_FAILURE, -4, TALLY_ENOMEM)                                          \
    X(CL_OUT_OF_RESOURCES, -5, TALLY_ELOST)                                                        \
    X(CL_OUT_OF_HOST_MEMORY, -6, TALLY_ENOMEM)                                                     \
    X(CL_PROFILING_INFO_NOT_AVAILABLE, -7, TALLY_EUNSUPPORTED)                                     \
    X(CL_MEM_COPY_OVERLAP, -8, TALLY_EINVAL)                                                       \
    X(CL_BUILD_PROGRAM_FAILURE, -11, TALLY_ECOMPILE)                                               \
    X(CL_MAP_FAILURE, -12, TALLY_ENOMEM)                                                           \
    X(CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, -14, TALLY_ELOST)                              \
    X(CL_INVALID_VALUE, -30, TALLY_EINVAL)                                                         \
    X(CL_INVALID_DEVICE, -33, TALLY_EDEVICE)                                                       \
    X(CL_INVALID_CONTEXT, -34, TALLY_EINVAL)                                                       \
    X(CL_INVALID_COMMAND_QUEUE, -36, TALLY_EINVAL)                                                 \
    X(CL_INVALID_HOST_PTR, -37, TALLY_EINVAL)                                                      \
    X(CL_INVALID_MEM_OBJECT, -38, TALLY_EINVAL)                                                    \
    X(CL_INVALID_PROGRAM_EXECUTABLE, -45, TALLY_ECOMPILE)                                          \
    X(CL_INVALID_KERNEL_NAME, -46, TALLY_EINVAL)                                                   \
    X(CL_INVALID_ARG_INDEX, -49, TALLY_EINVAL)                                                     \
    X(CL_INVALID_ARG_VALUE, -50, TALLY_EINVAL)                                                     \
    X(CL_INVALID_ARG_SIZE, -51, TALLY_EINVAL)                                                      \
    X(CL_INVALID_KERNEL_ARGS, -52, TALLY_EINVAL)                                                   \
    X(CL_INVALID_WORK_GROUP_SIZE, -54, TALLY_EINVAL)                                               \
    X(CL_INVALID_WORK_ITEM_SIZE, -55, TALLY_EINVAL)                                                \
    X(CL_INVALID_BUFFER_SIZE, -61, TALLY_ENOMEM)                                                   \
    X(CL_INVALID_GLOBAL_WORK_SIZE, -63, TALLY_EINVAL)                                              \
    X(CL_PLATFORM_NOT_FOUND_KHR, -1001, TALLY_EDEVICE)

enum {
#define NUMBER(name, number, status) name = number,
    OPENCL_ERRORS(NUMBER)
#undef NUMBER
        CL_SUCCESS = 0,
    CL_PLATFORM_VERSION = 0x0901,
    CL_PLATFORM_NAME = 0x0902,
    CL_DEVICE_TYPE_CPU = 1 << 1,
    CL_DEVICE_TYPE = 0x1000,
    CL_DEVICE_MAX_COMPUTE_UNITS = 0x1002,
    CL_DEVICE_MAX_WORK_GROUP_SIZE = 0x1004,
    CL_DEVICE_MAX_MEM_ALLOC_SIZE = 0x1010,
    CL_DEVICE_SINGLE_FP_CONFIG = 0x101b,
    CL_DEVICE_GLOBAL_MEM_SIZE = 0x101f,
    CL_DEVICE_LOCAL_MEM_SIZE = 0x1023,
    CL_DEVICE_NAME = 0x102b,
    CL_DRIVER_VERSION = 0x102d,
    CL_DEVICE_VERSION = 0x102f,
    CL_DEVICE_EXTENSIONS = 0x1030,
    CL_DEVICE_PLATFORM = 0x1031,
    CL_DEVICE_DOUBLE_FP_CONFIG = 0x1032,
    CL_FP_CORRECTLY_ROUNDED_DIVIDE_SQRT = 1 << 7,
    CL_CONTEXT_PLATFORM = 0x1084,
    CL_QUEUE_PROFILING_ENABLE = 1 << 1,
    CL_MAP_WRITE = 1 << 1,
    CL_MEM_READ_WRITE = 1 << 0,
    CL_MEM_READ_ONLY = 1 << 2,
    CL_MEM_USE_HOST_PTR = 1 << 3,
    CL_MEM_ALLOC_HOST_PTR = 1 << 4,
    CL_MEM_SIZE = 0x1102,
    CL_PROGRAM_NUM_DEVICES = 0x1162,
    CL_PROGRAM_DEVICES = 0x1163,
    CL_PROGRAM_BINARY_SIZES = 0x1165,
    CL_PROGRAM_BINARIES = 0x1166,
    CL_PROGRAM_BUILD_LOG = 0x1183,
    CL_PROFILING_COMMAND_END = 0x1283
};
#define CL_DEVICE_TYPE_ALL UINT64_C(0xffffffff)

/* The entry points: X(NAME, result, parameters). */
#define OPENCL_CALLS(X)                                                                            \
    X(clGetPlatformIDs, cl_int, (cl_uint room, cl_platform_id * out, cl_uint * count))             \
    X(clGetPlatformInfo, cl_int,                                                                   \
      (cl_platform_id platform, cl_uint what, size_t room, void *out, size_t *size))               \
    X(clGetDeviceIDs, cl_int,                                                                      \
      (cl_platform_id platform, cl_bits type, cl_uint room, cl_device_id * out, cl_uint * count))  \
    X(clGetDeviceInfo, cl_int,                                                                     \
      (cl_device_id device, cl_uint what, size_t room, void *out, size_t *size))                   \
    X(clCreateContext, cl_context,                                                                 \
      (const intptr_t *properties, cl_uint count, const cl_device_id *devices,                     \
       void (*notify)(const char *, const void *, size_t, void *), void *user, cl_int *error))     \
    X(clRetainContext, cl_int, (cl_context context))                                               \
    X(clReleaseContext, cl_int, (cl_context context))                                              \
    X(clCreateCommandQueue, cl_command_queue,                                                      \
      (cl_context context, cl_device_id device, cl_bits properties, cl_int * error))               \
    X(clReleaseCommandQueue, cl_int, (cl_command_queue queue))                                     \
    X(clFlush, cl_int, (cl_command_queue queue))                                                   \
    X(clFinish, cl_int, (cl_command_queue queue))                                                  \
    X(clCreateBuffer, cl_mem,                                                                      \
      (cl_context context, cl_bits flags, size_t size, void *host, cl_int *error))                 \
    X(clRetainMemObject, cl_int, (cl_mem memory))                                                  \
    X(clReleaseMemObject, cl_int, (cl_mem memory))                                                 \
    X(clGetMemObjectInfo, cl_int,                                                                  \
      (cl_mem memory, cl_uint what, size_t room, void *out, size_t *size))                         \
    X(clEnqueueWriteBuffer, cl_int,                                                                \
      (cl_command_queue queue, cl_mem to, cl_bool wait, size_t offset, size_t size,                \
       const void *from, cl_uint count, const cl_event *events, cl_event *event))                  \
    X(clEnqueueReadBuffer, cl_int,                                                                 \
      (cl_command_queue queue, cl_mem from, cl_bool wait, size_t offset, size_t size, void *to,    \
       cl_uint count, const cl_event *events, cl_event *event))                                    \
    X(clEnqueueFillBuffer, cl_int,                                                                 \
      (cl_command_queue queue, cl_mem to, const void *pattern, size_t pattern_size, size_t offset, \
       size_t size, cl_uint count, const cl_event *events, cl_event *event))                       \
    X(clEnqueueCopyBuffer, cl_int,                                                                 \
      (cl_command_queue queue, cl_mem from, cl_mem to, size_t from_offset, size_t to_offset,       \
       size_t size, cl_uint count, const cl_event *events, cl_event *event))                       \
    X(clEnqueueMapBuffer, void *,                                                                  \
      (cl_command_queue queue, cl_mem memory, cl_bool wait, cl_bits flags, size_t offset,          \
       size_t size, cl_uint count, const cl_event *events, cl_event *event, cl_int *error))        \
    X(clEnqueueUnmapMemObject, cl_int,                                                             \
      (cl_command_queue queue, cl_mem memory, void *at, cl_uint count, const cl_event *events,     \
       cl_event *event))                                                                           \
    X(clCreateProgramWithSource, cl_program,                                                       \
      (cl_context context, cl_uint count, const char **texts, const size_t *lengths,               \
       cl_int *error))                                                                             \
    X(clCreateProgramWithBinary, cl_program,                                                       \
      (cl_context context, cl_uint count, const cl_device_id *devices, const size_t *sizes,        \
       const unsigned char **binaries, cl_int *taken, cl_int *error))                              \
    X(clGetProgramInfo, cl_int,                                                                    \
      (cl_program program, cl_uint what, size_t room, void *out, size_t *size))                    \
    X(clBuildProgram, cl_int,                                                                      \
      (cl_program program, cl_uint count, const cl_device_id *devices, const char *options,        \
       void (*notify)(cl_program, void *), void *user))                                            \
    X(clGetProgramBuildInfo, cl_int,                                                               \
      (cl_program program, cl_device_id device, cl_uint what, size_t room, void *out,              \
       size_t *size))                                                                              \
    X(clReleaseProgram, cl_int, (cl_program program))                                              \
    X(clCreateKernel, cl_kernel, (cl_program program, const char *name, cl_int *error))            \
    X(clReleaseKernel, cl_int, (cl_kernel kernel))                                                 \
    X(clSetKernelArg, cl_int, (cl_kernel kernel, cl_uint i, size_t size, const void *value))       \
    X(clEnqueueNDRangeKernel, cl_int,                                                              \
      (cl_command_queue queue, cl_kernel kernel, cl_uint dimensions, const size_t *offset,         \
       const size_t *global, const size_t *local, cl_uint count, const cl_event *events,           \
       cl_event *event))                                                                           \
    X(clEnqueueMarkerWithWaitList, cl_int,                                                         \
      (cl_command_queue queue, cl_uint count, const cl_event *events, cl_event *event))            \
    X(clWaitForEvents, cl_int, (cl_uint count, const cl_event *events))                            \
    X(clGetEventProfilingInfo, cl_int,                                                             \
      (cl_event event, cl_uint what, size_t room, void *out, size_t *size))                        \
    X(clReleaseEvent, cl_int, (cl_event event))

/* The entry points as loaded; all of them are set once opencl_device() has returned a device. */
struct opencl {
#define MEMBER(name, result, parameters) result(*name) parameters;
    OPENCL_CALLS(MEMBER)
#undef MEMBER
};
extern struct opencl cl;

/* Return the number of devices of all platforms, which the first call of any thread finds; and
 * device i, or NULL if there is none. */
size_t opencl_count(void);
cl_device_id opencl_device(size_t i);
/* Returns one line that says why opencl_count() was 0, or opencl_device() NULL; to be called after them. */
const char *opencl_absence(void);

#endif
