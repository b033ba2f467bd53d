"""Arrays that lie on a GPU, with a stand-in for CuPy whose memory and stream are the CUDA driver's: a real one's, or
that of tests/cuda_double, by

    LD_LIBRARY_PATH=build/tests/cuda_double/lib python -m pytest python/tests/test_gpu.py
"""

import ctypes
import sys
import types
from ctypes import byref, c_int, c_size_t, c_uint, c_uint64, c_void_p

import numpy as np
import pytest

import tally


class Driver:
    def __init__(self):
        self.cu = ctypes.CDLL("libcuda.so.1")
        self.device, self.context, self.stream = c_int(), c_void_p(), c_void_p()
        if self.cu.cuInit(0) or self.cu.cuDeviceGet(byref(self.device), 0):
            raise OSError
        self.call("cuDevicePrimaryCtxRetain", byref(self.context), self.device)
        self.call("cuCtxPushCurrent_v2", self.context)
        self.call("cuStreamCreate", byref(self.stream), c_uint(1))

    def call(self, name, *arguments):
        error = getattr(self.cu, name)(*arguments)
        assert error == 0, f"{name}: {error}"


class Device:
    id = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class ndarray:
    """What tally uses of cupy.ndarray."""

    device = Device()

    def __init__(self, size=0, dtype="u1", driver=None, address=None, shape=None):
        self.driver, self.dtype = driver, np.dtype(dtype)
        self.shape = (size,) if shape is None else shape
        self.ndim = len(self.shape)
        if address is None:
            made = c_uint64()
            driver.call("cuMemAlloc_v2", byref(made), c_size_t(max(1, size * self.dtype.itemsize)))
            address = made.value
        self.data = types.SimpleNamespace(ptr=address)
        self.flags = types.SimpleNamespace(c_contiguous=True)

    def __dlpack_device__(self):
        return 2, 0

    def __getitem__(self, cut):
        return ndarray(dtype=self.dtype, driver=self.driver, address=self.data.ptr, shape=(cut.stop,))

    def view(self, dtype):
        dtype = np.dtype(dtype)
        return ndarray(dtype=dtype, driver=self.driver, address=self.data.ptr, shape=(self.shape[0] // dtype.itemsize,))

    def reshape(self, shape):
        return ndarray(dtype=self.dtype, driver=self.driver, address=self.data.ptr, shape=shape)

    def set(self, x):
        self.driver.call("cuMemcpyHtoDAsync_v2", c_uint64(self.data.ptr), c_void_p(x.ctypes.data), c_size_t(x.nbytes),
                         self.driver.stream)
        return self

    def get(self):
        out = np.empty(self.shape, self.dtype)
        self.driver.call("cuMemcpyDtoHAsync_v2", c_void_p(out.ctypes.data), c_uint64(self.data.ptr), c_size_t(out.nbytes),
                         self.driver.stream)
        self.driver.call("cuStreamSynchronize", self.driver.stream)
        return out[()]


ndarray.__module__ = "cupy"


@pytest.fixture
def cupy(monkeypatch):
    try:
        driver = Driver()
    except OSError:
        pytest.skip("no CUDA device, nor its double")
    stream = types.SimpleNamespace(ptr=driver.stream.value)
    module = types.SimpleNamespace(
        ndarray=ndarray, dtype=np.dtype, empty=lambda size, dtype: ndarray(size, dtype, driver),
        asarray=lambda x: ndarray(x.size, x.dtype, driver, shape=x.shape).set(x) if x.ndim == 1 else None,
        cuda=types.SimpleNamespace(get_current_stream=lambda: stream))
    monkeypatch.setitem(sys.modules, "cupy", module)
    return module


@pytest.mark.parametrize("dtype", ["f8", "f4", "f2", "i4", "u1", "?"])
def test_whole_arrays(cupy, rng, dtype):
    x = np.ascontiguousarray((rng.standard_normal(3000) * 9).astype(dtype))
    there = cupy.asarray(x)
    for op in ("sum", "mean", "var", "min", "max", "argmin", "any", "all", "count_nonzero", "norm", "sumsq"):
        got, want = getattr(tally, op)(there), getattr(tally, op)(x)
        assert type(got).__module__ == "cupy" and got.shape == ()
        assert got.get() == want and got.dtype == np.asarray(want).dtype, op
    if dtype != "?":
        assert tally.dot(there, there).get() == tally.dot(x, x)


def test_arguments(cupy, rng):
    x = rng.standard_normal(100).astype("f4")
    there = cupy.asarray(x)
    assert tally.sum(there, dtype=np.float64).get() == tally.sum(x, dtype="f8")
    assert tally.var(there, ddof=1).get() == tally.var(x, ddof=1)
    for bad, error in ((lambda: tally.sum(there, axis=0), NotImplementedError),
                       (lambda: tally.sum(there, initial=1.0), NotImplementedError),
                       (lambda: tally.sum(there, device="cpu"), ValueError),
                       (lambda: tally.sum(there, dtype=int), TypeError),
                       (lambda: tally.dot(there, x), TypeError)):
        with pytest.raises(error):
            bad()
