"""The machines' own calls, as a program with its own queues and memory makes them: OpenCL's and CUDA's.

Each machine has a context, makes queues, allocates memory, and copies on a queue. They share no code with
the library.
"""

import ctypes
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import pytest


class OpenCL:
    spec = "opencl:0"

    def __init__(self):
        try:
            self.cl = ctypes.CDLL("libOpenCL.so.1")
        except OSError as e:
            pytest.skip(str(e))
        for name in ("clCreateContext", "clCreateCommandQueue", "clCreateBuffer"):
            getattr(self.cl, name).restype = c_void_p
        platform, self.device, error = c_void_p(), c_void_p(), c_int()
        if self.cl.clGetPlatformIDs(1, byref(platform), None) or \
                self.cl.clGetDeviceIDs(platform, c_uint64(0xffffffff), 1, byref(self.device), None):
            pytest.skip("no OpenCL device")
        properties = (c_void_p * 3)(0x1084, platform.value, None)
        self.context = self.cl.clCreateContext(properties, 1, byref(self.device), None, None,
                                               byref(error))
        assert error.value == 0

    def queue(self):
        error = c_int()
        queue = self.cl.clCreateCommandQueue(c_void_p(self.context), self.device, c_uint64(0),
                                             byref(error))
        assert error.value == 0
        return queue

    def memory(self, size):
        error = c_int()
        made = self.cl.clCreateBuffer(c_void_p(self.context), c_uint64(1), c_size_t(max(size, 1)),
                                      None, byref(error))
        assert error.value == 0
        return made

    def free(self, memory):
        self.cl.clReleaseMemObject(c_void_p(memory))

    def write(self, queue, memory, array):
        """Not waited for: the array must stay."""
        assert self.cl.clEnqueueWriteBuffer(
            c_void_p(queue), c_void_p(memory), 0, c_size_t(0), c_size_t(array.nbytes),
            c_void_p(array.ctypes.data), 0, None, None) == 0

    def read(self, queue, array, memory):
        """Waits."""
        assert self.cl.clEnqueueReadBuffer(
            c_void_p(queue), c_void_p(memory), 1, c_size_t(0), c_size_t(array.nbytes),
            c_void_p(array.ctypes.data), 0, None, None) == 0

    def close(self):
        self.cl.clReleaseContext(c_void_p(self.context))


class Cuda:
    spec = "cuda:0"

    def __init__(self, index=0):
        try:
            self.cu = ctypes.CDLL("libcuda.so.1")
        except OSError as e:
            pytest.skip(str(e))
        self.device, context = c_int(), c_void_p()
        if self.cu.cuInit(0) or self.cu.cuDeviceGet(byref(self.device), index):
            pytest.skip("no CUDA device")
        self.call("cuDevicePrimaryCtxRetain", byref(context), self.device)
        self.context = context.value
        self.enter()

    def call(self, name, *arguments):
        error = getattr(self.cu, name)(*arguments)
        assert error == 0, f"{name}: {error}"

    def enter(self):
        """For each thread that makes calls of its own."""
        self.call("cuCtxPushCurrent_v2", c_void_p(self.context))

    def leave(self):
        context = c_void_p()
        self.call("cuCtxPopCurrent_v2", byref(context))

    def queue(self):
        stream = c_void_p()
        self.call("cuStreamCreate", byref(stream), c_uint(1))
        return stream.value

    def memory(self, size):
        address = c_uint64()
        self.call("cuMemAlloc_v2", byref(address), c_size_t(max(size, 1)))
        return address.value

    def free(self, memory):
        self.call("cuMemFree_v2", c_uint64(memory))

    def write(self, queue, memory, array):
        self.call("cuMemcpyHtoDAsync_v2", c_uint64(memory), c_void_p(array.ctypes.data),
                  c_size_t(array.nbytes), c_void_p(queue))

    def read(self, queue, array, memory):
        self.call("cuMemcpyDtoHAsync_v2", c_void_p(array.ctypes.data), c_uint64(memory),
                  c_size_t(array.nbytes), c_void_p(queue))
        self.call("cuStreamSynchronize", c_void_p(queue))

    def capture(self, queue, work):
        """What work() puts on the queue, as a function that does it again."""
        graph, ready = c_void_p(), c_void_p()
        if not hasattr(self.cu, "cuStreamBeginCapture_v2"):
            pytest.skip("a driver without graphs")
        self.call("cuStreamBeginCapture_v2", c_void_p(queue), c_uint(0))
        work()
        self.call("cuStreamEndCapture", c_void_p(queue), byref(graph))
        self.call("cuGraphInstantiateWithFlags", byref(ready), graph, c_uint64(0))
        return lambda: self.call("cuGraphLaunch", ready, c_void_p(queue))

    def close(self):
        self.leave()
        self.call("cuDevicePrimaryCtxRelease_v2", self.device)


MACHINES = {"opencl": OpenCL, "cuda": Cuda}
