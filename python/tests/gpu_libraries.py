"""CUDA libraries for the tests of arrays on a GPU: the real PyTorch and CuPy where they are and see a device; else
stand-ins for what tally uses of them, whose memory and stream are the CUDA driver's - a real one's, or that of
tests/cuda_double.

A stand-in's array knows its layout by a NumPy array of the same layout in a buffer of the host as large as its memory.
"""

import ctypes
import functools
import operator
import sys
import types
from ctypes import byref, c_int, c_size_t, c_ubyte, c_uint, c_uint64, c_void_p

import numpy as np

try:
    import ml_dtypes
    BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
except ImportError:
    BFLOAT16 = None


class Driver:
    """CUDA's driver, with a context and a stream: one for all tests."""

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


@functools.lru_cache(maxsize=None)
def the_driver():
    return Driver()


class Memory:
    def __init__(self, driver, size):
        made = c_uint64()
        driver.call("cuMemAlloc_v2", byref(made), c_size_t(max(1, size)))
        self.driver, self.address, self.buffer = driver, made.value, np.zeros(size, "u1")
        # Libraries hand out memory that they have used before: workspaces may have any content.
        driver.call("cuMemsetD8Async", made, c_ubyte(made.value >> 8 & 255), c_size_t(max(1, size)), driver.stream)

    def write(self):
        self.driver.call("cuMemcpyHtoDAsync_v2", c_uint64(self.address), c_void_p(self.buffer.ctypes.data),
                         c_size_t(self.buffer.nbytes), self.driver.stream)
        self.driver.call("cuStreamSynchronize", self.driver.stream)

    def read(self):
        self.driver.call("cuMemcpyDtoHAsync_v2", c_void_p(self.buffer.ctypes.data), c_uint64(self.address),
                         c_size_t(self.buffer.nbytes), self.driver.stream)
        self.driver.call("cuStreamSynchronize", self.driver.stream)

    def __del__(self):
        self.driver.call("cuStreamSynchronize", self.driver.stream)
        self.driver.call("cuMemFree_v2", c_uint64(self.address))


class Array:
    """What both libraries' arrays are; `layout` is NumPy's of the same layout in memory.buffer."""

    def __init__(self, memory, layout):
        self.memory, self.layout = memory, layout

    @classmethod
    def make(cls, driver, shape, dtype):
        dtype = np.dtype(dtype)
        memory = Memory(driver, int(np.prod(shape, dtype=int)) * dtype.itemsize)
        return cls(memory, memory.buffer.view(dtype).reshape(shape))

    @property
    def shape(self):
        return self.layout.shape

    @property
    def pointer(self):
        if self.layout.size == 0:
            return 0
        return self.memory.address + self.layout.ctypes.data - self.memory.buffer.ctypes.data

    def host(self):
        self.memory.read()
        return np.array(self.layout)  # as it is laid out or not: the elements count

    def set(self, x):
        self.memory.read()
        self.layout[...] = x
        self.memory.write()
        return self

    def copy_of(self, x):
        return type(self).make(self.memory.driver, x.shape, x.dtype).set(x)

    def __getitem__(self, cut):
        layout = self.layout[cut]
        return type(self)(self.memory, layout if isinstance(layout, np.ndarray) else self.layout[cut, ...])

    def __dlpack_device__(self):
        return 2, 0

    def view(self, dtype):
        return type(self)(self.memory, self.layout.view(np.dtype(getattr(dtype, "numpy", dtype))))

    def __setitem__(self, cut, x):
        self.memory.read()
        self.layout[cut] = x.host() if isinstance(x, Array) else x
        self.memory.write()

    def __len__(self):
        return len(self.layout)

    def sum(self, axis):
        return self.copy_of(self.host().sum(axis))

    def clip(self, least, most):
        return self.copy_of(self.host().clip(least, most))

    real = property(lambda self: type(self)(self.memory, self.layout.real))
    imag = property(lambda self: type(self)(self.memory, self.layout.imag))

    def reshape(self, *shape):
        shape = shape[0] if len(shape) == 1 else shape
        try:
            return type(self)(self.memory, np.reshape(self.layout, shape, copy=False))
        except ValueError:
            return self.copy_of(np.reshape(self.host(), shape))

    def transpose(self, *axes):
        return type(self)(self.memory, self.layout.transpose(*axes))

    permute = transpose

    def astype(self, dtype):
        return self.copy_of(self.host().astype(getattr(dtype, "numpy", dtype)))

    to = astype

    def broadcast(self, shape):
        return type(self)(self.memory, np.broadcast_to(self.layout, shape))


def _by_host(function):
    def method(self, *others):
        with np.errstate(all="ignore"):
            return self.copy_of(np.asarray(function(self.host(), *(o.host() if isinstance(o, Array) else o for o in others))))
    return method


for _name in ("add", "sub", "mul", "and", "or", "xor", "lshift", "rshift", "lt", "le", "ge", "eq", "ne"):
    setattr(Array, f"__{_name}__", _by_host(getattr(operator, f"__{_name}__")))
Array.__rsub__ = _by_host(lambda a, b: b - a)


class Context:
    id = 0

    def __init__(self, *_):
        pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


class CuPyArray(Array):
    @property
    def data(self):
        return types.SimpleNamespace(ptr=self.pointer)

    dtype = property(lambda self: self.layout.dtype)
    strides = property(lambda self: self.layout.strides)
    size = property(lambda self: self.layout.size)
    device = Context()
    get = Array.host
    real = Array.real.setter(lambda self, x: Array.real.fget(self).__setitem__(..., x))
    imag = Array.imag.setter(lambda self, x: Array.imag.fget(self).__setitem__(..., x))


CuPyArray.__module__ = "cupy"


class TorchType:
    def __init__(self, name):
        self.name = name
        self.numpy = BFLOAT16 if name == "bfloat16" else np.dtype(name)
        self.itemsize = self.numpy.itemsize

    def __str__(self):
        return f"torch.{self.name}"


NAMES = ("float64", "float32", "float16", *(() if BFLOAT16 is None else ("bfloat16",)), "int8", "int16", "int32", "int64",
         "uint8", "uint16", "uint32", "uint64", "bool", "complex64", "complex128")
TYPES = {name: TorchType(name) for name in NAMES}


class TorchDevice:
    type, index = "cuda", 0


class DLTensor(ctypes.Structure):
    _fields_ = [("data", c_void_p), ("device", c_int), ("id", c_int), ("ndim", c_int), ("code", ctypes.c_uint8),
                ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", c_uint64)]


LOOK = ctypes.PYFUNCTYPE(c_int, ctypes.py_object, ctypes.POINTER(DLTensor))
STREAM = ctypes.PYFUNCTYPE(c_int, c_int, c_int, ctypes.POINTER(c_void_p))


class Exchange(ctypes.Structure):
    """DLPack's table of functions, of which tally calls two."""
    _fields_ = [("major", c_uint), ("minor", c_uint), ("before", c_void_p), ("allocate", c_void_p), ("take", c_void_p),
                ("give", c_void_p), ("look", LOOK), ("stream", STREAM)]


def exchange_table(stream):
    """A capsule of a table whose library works on that stream."""

    def look(tensor, out):
        layout, t = tensor.layout, out[0]
        numbers = ctypes.c_int64 * max(1, layout.ndim)
        tensor.looked = numbers(*layout.shape), numbers(*(s // layout.itemsize for s in layout.strides))
        t.shape, t.strides = tensor.looked
        t.device, t.id, t.ndim, t.lanes, t.bits = 2, 0, layout.ndim, 1, 8 * layout.itemsize
        t.code = {"i": 0, "u": 1, "f": 2, "V": 4, "c": 5, "b": 6}[layout.dtype.kind]
        t.data, t.byte_offset = tensor.memory.address, tensor.pointer - tensor.memory.address
        return 0

    def on(device, number, out):
        out[0] = stream.cuda_stream
        return 0

    table = Exchange(1, 2, None, None, None, None, LOOK(look), STREAM(on))
    make = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (c_void_p, c_void_p, c_void_p)
    name = ctypes.create_string_buffer(b"dlpack_exchange_api")
    KEEP.append((table, name))
    return make(ctypes.addressof(table), ctypes.addressof(name), None)


KEEP = []  # what capsules point to


class TorchTensor(Array):
    is_cuda = True
    device = TorchDevice()
    dtype = property(lambda self: TYPES[str(self.layout.dtype)])
    data_ptr = property(lambda self: lambda: self.pointer)

    def stride(self):
        return tuple(s // self.layout.itemsize for s in self.layout.strides)

    def get_device(self):
        return 0

    def numel(self):
        return self.layout.size

    def dim(self):
        return self.layout.ndim

    def is_contiguous(self):
        return self.layout.flags.c_contiguous

    negated = requires_grad = False

    def is_neg(self):
        return self.negated

    def is_conj(self):
        return False

    conj = _by_host(np.conj)

    def resolve_conj(self):
        return self

    @property
    def data(self):
        return self

    def unbind(self):
        return [self[i] for i in range(len(self.layout))]

    def new_empty_strided(self, shape, strides):
        made = self.make(self.memory.driver, shape, self.layout.dtype)
        assert [s // made.layout.itemsize for s in made.layout.strides] == list(strides)
        return made

    def contiguous(self):
        return self if self.layout.flags.c_contiguous else self.copy_of(self.host())

    def copy_(self, x):
        self.set(x.host())

    def cpu(self):
        return types.SimpleNamespace(numpy=self.host)


def functions(cls, driver):
    """What both modules call the same."""
    return {
        "moveaxis": lambda x, a, b: cls(x.memory, np.moveaxis(x.layout, a, b)),
        "full_like": lambda x, number: x.copy_of(np.full_like(x.layout, number)),
        "stack": lambda xs, axis=0: xs[0].copy_of(np.stack([x.host() for x in xs], axis)),
        "where": lambda mask, x, y: x.copy_of(np.where(mask.host(), x.host(), y.host() if isinstance(y, Array) else
                                                       x.layout.dtype.type(y))),
        "broadcast_to": lambda x, shape: x.broadcast(shape),
        "from_host": lambda x: cls.make(driver, x.shape, x.dtype).set(x)}


def make_cupy(driver):
    stream = types.SimpleNamespace(ptr=driver.stream.value,
                                   synchronize=lambda: driver.call("cuStreamSynchronize", driver.stream))
    return types.SimpleNamespace(
        **functions(CuPyArray, driver), ndarray=CuPyArray,
        empty=lambda shape, dtype: CuPyArray.make(driver, shape, dtype),
        full=lambda shape, number, dtype: CuPyArray.make(driver, shape, dtype).set(number),
        concatenate=lambda xs, axis: xs[0].copy_of(np.concatenate([x.host() for x in xs], axis)),
        zeros=lambda shape, dtype: CuPyArray.make(driver, shape, dtype).set(0),
        arange=lambda n, dtype: CuPyArray.make(driver, (n,), dtype).set(np.arange(n)), conj=_by_host(np.conj),
        argsort=lambda x, axis, kind: x.copy_of(np.argsort(x.host(), axis, kind=kind)),
        take_along_axis=lambda x, order, axis: x.copy_of(np.take_along_axis(x.host(), order.host(), axis)),
        ascontiguousarray=lambda x: x if x.layout.flags.c_contiguous else x.copy_of(x.host()),
        cuda=types.SimpleNamespace(Device=Context, get_current_stream=lambda: stream))


def make_torch(driver):
    stream = types.SimpleNamespace(cuda_stream=driver.stream.value,
                                   synchronize=lambda: driver.call("cuStreamSynchronize", driver.stream))
    TorchTensor.__dlpack_c_exchange_api__ = exchange_table(stream)
    return types.SimpleNamespace(
        **functions(TorchTensor, driver), **TYPES, Tensor=TorchTensor, _C=types.SimpleNamespace(),
        empty=lambda shape, dtype, device: TorchTensor.make(driver, shape, dtype.numpy),
        full=lambda shape, number, dtype, device: TorchTensor.make(driver, shape, dtype.numpy).set(number),
        unsafe_split=lambda x, size: [x[i:i + size] for i in range(0, len(x.layout), size)],
        inference_mode=Context, is_inference_mode_enabled=lambda: False, is_grad_enabled=lambda: True,
        zeros=lambda shape, dtype, device: TorchTensor.make(driver, shape, dtype.numpy).set(0),
        arange=lambda n, dtype, device: TorchTensor.make(driver, (n,), dtype.numpy).set(np.arange(n)),
        complex=lambda a, b: a.copy_of(np.stack([a.host(), b.host()], -1).view(np.result_type(a.layout, "c8"))[..., 0]),
        argsort=lambda x, dim, stable: x.copy_of(np.argsort(x.host(), dim, kind="stable" if stable else None)),
        take_along_dim=lambda x, order, dim: x.copy_of(np.take_along_axis(x.host(), order.host(), dim)),
        cat=lambda xs, axis: xs[0].copy_of(np.concatenate([x.host() for x in xs], axis)),
        device=lambda kind, index: (kind, index), cuda=types.SimpleNamespace(
            current_stream=lambda number: stream, is_current_stream_capturing=lambda: False))


class Library:
    """A library for the tests: brings arrays there and back."""

    def __init__(self, name, module, is_real):
        self.name, self.module, self.is_real = name, module, is_real

    def there(self, x):
        if not self.is_real:
            return self.module.from_host(x)
        if self.name == "cupy":
            return self.module.asarray(x)
        if x.dtype == BFLOAT16:
            return self.module.from_numpy(x.view(np.int16)).cuda().view(self.module.bfloat16)
        return self.module.from_numpy(np.ascontiguousarray(x)).reshape(x.shape).cuda()

    def back(self, x):
        assert type(x).__module__.partition(".")[0] in (self.name, "gpu_libraries"), type(x)
        if not self.is_real:
            return x.host()
        if self.name == "cupy":
            return x.get()
        if x.dtype == self.module.bfloat16:
            return x.cpu().view(self.module.int16).numpy().view(BFLOAT16)
        return x.cpu().numpy()

    def broadcast(self, x, shape):
        if not self.is_real:
            return x.broadcast(shape)
        return x.expand(shape) if self.name == "torch" else self.module.broadcast_to(x, shape)

    def transpose(self, x, order):
        return x.permute(*order) if self.name == "torch" else x.transpose(*order)


def find(name, monkeypatch):
    """The library of that name; None where there is no device, nor the driver's double."""
    try:
        module = __import__(name)
        if module.cuda.is_available():
            return Library(name, module, True)
    except (ImportError, AttributeError):
        pass
    try:
        driver = the_driver()
    except OSError:
        return None
    module = {"cupy": make_cupy, "torch": make_torch}[name](driver)
    monkeypatch.setitem(sys.modules, name, module)
    return Library(name, module, False)
