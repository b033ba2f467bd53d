"""Arrays of other libraries: DLPack in both forms, buffers, read-only memory, bfloat16, memory maps, columns."""

import array
import ctypes
import gc
import importlib
import importlib.util

import numpy as np
import pytest

import tally
from tally import _arrays, _core


def imported(name):
    """A module, or None where it is not here."""
    return importlib.import_module(name) if importlib.util.find_spec(name) else None


class Producer:
    """A library of our own that hands its memory out by DLPack."""

    def __init__(self, x, versioned=True, device=(1, 0), code=None, bits=None):
        self.x, self.versioned, self.device, self.code, self.bits = x, versioned, device, code, bits
        self.asked = []

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **more):
        self.asked.append(more)
        if self.versioned and "max_version" not in more:
            raise BufferError("versioned only")
        if not self.versioned and "max_version" in more:
            raise TypeError("unexpected keyword argument 'max_version'")
        return capsule(self.x, self.versioned, self.device, self.code, self.bits)


class Tensor(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32),
                ("ndim", ctypes.c_int32), ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
                ("byte_offset", ctypes.c_uint64)]


RELEASE = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("release", RELEASE)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p),
                ("release", RELEASE), ("flags", ctypes.c_uint64), ("tensor", Tensor)]


ALIVE = {}
CODES = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


@RELEASE
def release(address):
    ALIVE.pop(address)


def capsule(x, versioned, device, code, bits):
    m = (Versioned if versioned else Managed)()
    shape = (ctypes.c_int64 * x.ndim)(*x.shape)
    strides = (ctypes.c_int64 * x.ndim)(*(s // x.itemsize for s in x.strides))
    m.tensor = Tensor(x.ctypes.data, *device, x.ndim, CODES[x.dtype.kind] if code is None else code,
                      bits or 8 * x.itemsize, 1, shape, strides, 0)
    m.release = release
    if versioned:
        m.major, m.minor, m.flags = 1, 0, 0 if x.flags.writeable else 1
    ALIVE[ctypes.addressof(m)] = (m, x, shape, strides)
    return new_capsule(ctypes.addressof(m), b"dltensor_versioned" if versioned else b"dltensor", None)


@pytest.mark.parametrize("versioned", [False, True])
@pytest.mark.parametrize("dtype", ["f2", "f4", "f8", "i1", "i8", "u1", "u4", "?", "c16"])
def test_dlpack(rng, versioned, dtype):
    x = (rng.standard_normal((5, 6)) * 9).astype(dtype)[::-2, ::2]
    x.setflags(write=not versioned)
    producer = Producer(x, versioned)
    assert np.array_equal(tally.sum(producer, axis=0), tally.sum(x.copy(), axis=0))
    assert not ALIVE, "given back"


def test_dlpack_is_not_copied():
    x = np.ones(1 << 20)
    tensor = _core.Tensor(Producer(x).__dlpack__(max_version=(1, 0)))
    assert np.shares_memory(np.asarray(tensor), x)
    there = np.asarray(tensor)
    assert there.ctypes.data == x.ctypes.data and (there.shape, there.strides) == ((1 << 20,), (8,))
    del tensor, there
    assert not ALIVE


def test_dlpack_read_only():
    x = np.ones(3)
    x.setflags(write=False)
    assert not np.asarray(_core.Tensor(Producer(x).__dlpack__(max_version=(1, 0)))).flags.writeable


def test_dlpack_that_is_none():
    with pytest.raises(TypeError):
        _core.Tensor(object())
    c = Producer(np.ones(3)).__dlpack__(max_version=(1, 0))
    t = _core.Tensor(c)
    with pytest.raises(TypeError, match="nobody has used"):
        _core.Tensor(c)
    del t
    with pytest.raises(TypeError, match="Producer.*not known"):
        tally.sum(Producer(np.ones(3), code=2, bits=8))
    assert not ALIVE


def test_elsewhere():
    with pytest.raises(TypeError, match="GPU"):
        tally.sum(Producer(np.ones(3), device=(10, 0)))
    with pytest.raises(NotImplementedError, match="GPU"):
        tally.sum(Producer(np.ones(3), device=(2, 0)))


def test_bfloat16(rng):
    wide = rng.standard_normal(1000).astype("f4")
    bits = (wide.view("u4") >> 16).astype("u2")
    exact = (bits.astype("u4") << 16).view("f4")
    producer = Producer(bits, code=4)
    assert tally.sum(producer, dtype="f4") == tally.sum(exact)
    assert tally.argmax(producer) == exact.argmax()
    assert np.array_equal(tally.mean(Producer(bits.reshape(10, 100), code=4), axis=1, dtype="f8"),
                          tally.mean(exact.reshape(10, 100), axis=1, dtype="f8"))
    ml_dtypes = pytest.importorskip("ml_dtypes")
    x = bits.view(ml_dtypes.bfloat16)
    got = tally.sum(x)
    assert got.dtype == ml_dtypes.bfloat16 and got == ml_dtypes.bfloat16(float(tally.sum(exact, dtype="f8")))
    assert tally.max(x.reshape(10, 100), axis=0).dtype == ml_dtypes.bfloat16
    with pytest.raises(TypeError):
        tally.sum(x, initial=1.0)


@pytest.mark.filterwarnings("ignore:ComplexHalf")
def test_elements_that_are_not_reduced():
    """A TypeError names their type, whatever the library says of them."""
    ml_dtypes, torch, jax = map(imported, ("ml_dtypes", "torch", "jax"))
    bad = [(np.zeros(2, "V4"), "V4"), (np.zeros(2, "g"), "wider than float64")]
    for name in ("float8_e4m3fn", "float8_e5m2", "int4"):
        bad += [(np.ones(2).astype(getattr(ml_dtypes, name)), name)] * (ml_dtypes is not None)
        bad += [(jax.numpy.ones(2, getattr(jax.numpy, name)), name)] if jax else []
    if torch:
        bad += [(torch.zeros(2, dtype=torch.float8_e4m3fn), "Tensor of torch.float8_e4m3fn"), (torch.eye(2).to_sparse(), "strided"),
                (torch.zeros(2, dtype=torch.complex32), "complex32")]
    for x, text in bad:
        for call in (tally.sum, tally.State("sum").update, lambda x: tally.group("sum", x, [0, 0])):
            with pytest.raises(TypeError) as caught:
                call(x)
            assert text in str(caught.value) and "structure" not in str(caught.value) and "\n" not in str(caught.value)


def test_type_in_is_type_out():
    class Namespace:
        @staticmethod
        def asarray(x):
            return ("theirs", np.asarray(x))

    class Theirs(Producer):
        def __array_namespace__(self):
            return Namespace

    kind, value = tally.sum(Theirs(np.arange(6.0).reshape(2, 3)), axis=0)
    assert kind == "theirs" and np.array_equal(value, [3, 5, 7])


def test_jax_without_wide_types():
    """Results come back as JAX's arrays if these hold them, else not at all."""
    jax = pytest.importorskip("jax")
    x = jax.numpy.asarray(np.array([2**31 - 1, 2**31 - 1], "i4"))
    if jax.config.jax_enable_x64 or jax.default_backend() != "cpu":
        pytest.skip("of the CPU, without 64 bits")
    for call in (tally.sum, tally.sumsq, tally.prod, lambda x: tally.sum(x, axis=0), lambda x: tally.dot(x, x),
                 lambda x: tally.group("sum", x, [0, 0]), lambda x: tally.reduce("sum,max", x)):
        with pytest.raises(OverflowError, match="int32, which jax makes.*jax_enable_x64"):
            call(x)
    for call in (tally.mean, tally.norm, lambda x: tally.describe(x - x), lambda x: tally.sum(x, dtype="f8"), lambda x: tally.sum(x * 1.0, dtype="f8")):
        with pytest.raises(TypeError, match="float32.*jax_enable_x64.*dtype='f4'"):
            call(x)
    small = x - (2**31 - 2)
    for value, want in ((tally.sum(small), 2), (tally.argmax(small), 0), (tally.count_nonzero(x), 2), (tally.max(x), 2**31 - 1),
                        (tally.mean(small, dtype="f4"), 1), (tally.sum(x * 0.5), 2.0**31), (tally.any(x), True)):
        assert isinstance(value, jax.Array) and value == want
    assert tally.State("sum", "i4").update(x).value() == 2**32 - 2 == tally.sum(np.asarray(x))


def test_buffers():
    assert tally.sum(array.array("d", [1e16, 1, -1e16])) == 1
    assert tally.sum(memoryview(bytes([1, 2, 3]))) == 6 and tally.max(bytearray(b"az")) == 122
    assert tally.sum(array.array("i", [1, 2])).dtype == np.int64
    assert tally.sum([1, 2.5]) == 3.5 and tally.sum(3) == 3 and tally.mean((1, 2)) == 1.5


def test_memory_map(tmp_path, rng):
    path = tmp_path / "x.npy"
    np.save(path, rng.standard_normal((100, 100)))
    x = np.load(path, mmap_mode="r")
    assert type(x) is np.memmap and np.array_equal(tally.sum(x, axis=0), tally.sum(np.array(x), axis=0))
    assert isinstance(tally.sum(x), np.float64) and tally.mean(x) == tally.mean(np.array(x))


def test_subclasses():
    class Mine(np.ndarray):
        pass

    assert tally.sum(np.arange(3.0).view(Mine)) == 3
    assert tally.sum(np.ma.masked_array([1.0, 2.0])) == 3  # nothing is masked


def test_data_frames():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"city": [0, 1, 0], "price": [0.1, 0.2, 0.3]})
    assert np.array_equal(tally.group("sum", frame["price"], frame["city"]), [0.1 + 0.3, 0.2])
    with pytest.raises(TypeError, match="missing"):
        tally.sum(pandas.Series([1, None], dtype="Int64"))


def test_polars():
    polars = pytest.importorskip("polars")
    frame = polars.DataFrame({"city": [0, 1, 0], "price": [0.1, 0.2, 0.3]})
    assert np.array_equal(tally.group("sum", frame["price"], frame["city"]), [0.1 + 0.3, 0.2])
    with pytest.raises(TypeError, match="nulls"):
        tally.sum(polars.Series([1, None]))


def test_arrow(rng):
    pyarrow = pytest.importorskip("pyarrow")
    assert tally.sum(pyarrow.array([1e16, 1.0, -1e16])) == 1
    for name in ("int8", "uint16", "int32", "uint64", "float16", "float32", "float64"):
        x = rng.integers(0, 50, 1000).astype(name)
        there = pyarrow.array(x)
        taken = _arrays.as_host_array(there).array
        assert taken.ctypes.data == there.buffers()[1].address and not taken.flags.writeable
        for a, b in ((there, x), (there.slice(7), x[7:]), (there.slice(7, 500), x[7:507]), (there.slice(3, 0), x[3:3])):
            assert tally.sum(a) == tally.sum(b) and np.asarray(tally.sum(a)).dtype == np.asarray(tally.sum(b)).dtype
    bits = rng.random(100) < 0.5
    for first in (0, 3, 8, 17):
        assert tally.count_nonzero(pyarrow.array(bits).slice(first, 40)) == np.count_nonzero(bits[first:first + 40])
    column = pyarrow.chunked_array([[1, 2], [3]])
    assert tally.sum(column.combine_chunks()) == 6 and tally.sum(pyarrow.chunked_array([[1, 2, 3]])) == 6
    assert tally.sum(pyarrow.chunked_array([], pyarrow.int32())) == 0
    for bad, why in ((pyarrow.array([1, None, 3, None]), "2 nulls.*drop_null"), (pyarrow.array(["a"]), "format"),
                     (pyarrow.array([1, 1]).dictionary_encode(), "dictionary"), (column, "2 pieces"),
                     (pyarrow.chunked_array([[1.5, None]]), "1 nulls")):
        with pytest.raises(TypeError, match=why):
            tally.sum(bad)
    assert tally.sum(pyarrow.array([1, None, 3]).slice(2)) == 3  # the null lies outside
    keys = pyarrow.array([0, 1, 0])
    assert np.array_equal(tally.group("sum", pyarrow.array([1.0, 2.0, 3.0]), keys), [4, 2])


class Unexportable:
    """What some pyarrow's arrays do that DLPack cannot describe: they say so when they are asked where they lie."""

    def __init__(self, array):
        self.__arrow_c_array__ = array.__arrow_c_array__

    def __dlpack_device__(self):
        raise TypeError("not by DLPack")


def test_arrow_without_dlpack():
    pyarrow = pytest.importorskip("pyarrow")
    assert tally.any(Unexportable(pyarrow.array([False, True])))
    assert tally.sum(Unexportable(pyarrow.array([1.0, 2.0]))) == 3


def test_arrow_gives_back(rng):
    pyarrow = pytest.importorskip("pyarrow")
    before = pyarrow.total_allocated_bytes()
    for _ in range(10):
        tally.sum(pyarrow.array(rng.random(100000)))
        tally.sum(pyarrow.chunked_array([rng.random(100000)]))
        with pytest.raises(TypeError):
            tally.sum(pyarrow.chunked_array([[1.0] * 100000, [2.0] * 100000]))
    gc.collect()
    assert pyarrow.total_allocated_bytes() == before


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.arange(6.0).reshape(2, 3)
    assert torch.equal(tally.sum(x, axis=0), x.sum(0)) and isinstance(tally.sum(x), torch.Tensor)
    assert tally.sum(x.to(torch.bfloat16)).dtype == torch.bfloat16
    for out in (torch.empty(3), torch.empty(3, dtype=torch.float64), torch.empty(6)[::2]):
        assert tally.sum(x, axis=0, out=out) is out and torch.equal(out.float(), x.sum(0))
        assert tally.reduce("max", x.numpy(), axis=0, out=out) is out and torch.equal(out.float(), x[1])
    x.requires_grad_()
    y, state = (2 * x.detach().exp()), tally.State("sum", "f4")
    for call in (tally.sum, lambda x: tally.sum(x, axis=0), lambda x: tally.vecdot(y, x), state.update, lambda x: tally.sum(2 * x),
                 lambda x: tally.sum(torch.nn.Parameter(y)), lambda x: tally.sum([x, y]), lambda x: tally.group("sum", x, [0, 0], axis=0)):
        with pytest.raises(TypeError, match="detach"):
            call(x)
    assert tally.sum(x.detach()) == 15 and state.count == 0
    with torch.no_grad():
        assert tally.sum(x) == 15
    with torch.inference_mode():
        assert tally.sum(x) == 15


@pytest.mark.parametrize("shape", [(7,), (40, 50), (3, 1, 65), (300, 400)])
def test_bools_of_other_bytes(rng, shape):
    """A view of bytes as bool: whatever is not 0 is True."""
    odd = (rng.integers(0, 256, shape, dtype="u1") * rng.integers(0, 2, shape, dtype="u1")).view("?")
    for x in (odd, odd[..., ::2], odd[::-1]):
        clean, flat = x.view("u1") != 0, x.reshape(-1)
        for axis in (None, *range(x.ndim)):
            for op in ("sum", "prod", "min", "max", "minmax", "argmin", "argmax", "mean", "var", "norm", "count_nonzero", "any", "all",
                       "bitwise_and", "bitwise_xor", "describe"):
                if op == "describe" and axis is not None:
                    continue
                ours, want = (getattr(tally, op)(a, axis=axis) if op != "describe" else tally.describe(a) for a in (x, clean))
                np.testing.assert_array_equal(ours, want)
        ids = rng.integers(0, 3, flat.size)
        assert tally.State("sum", "bool").update(x).value() == clean.sum() == tally.dot(flat, flat)
        assert tally.Groups("sum", 3, "bool").update(flat, ids).value().tolist() == tally.group("sum", flat, ids, 3).tolist() == \
            np.bincount(ids, clean.reshape(-1), 3).tolist()
        assert tally.segment("sum", flat, 1)[0] == clean.sum() == tally.sum(x, initial=0)
        assert tally.sum(np.ones(x.shape), where=x) == clean.sum() == tally.group("count", ids, flat, 2)[1]
        assert tally.sum(np.broadcast_to(x, (2, *x.shape)), axis=0).tolist() == (2 * clean).tolist()
