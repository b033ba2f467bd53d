"""All devices of a machine as one: "cuda:all", "opencl:all". The bits of the calling thread, however the array is cut.

The double of the CUDA driver is asked for three devices; where there are real ones they are taken as they are."""

import ctypes
import os
from ctypes import POINTER, Structure, byref, c_size_t, c_void_p

import numpy as np
import pytest

import data
import native
import tally
from conftest import open_device
from tally import DTYPE, NOBODY, SIZE

os.environ["TALLY_CUDA_DOUBLE_DEVICES"] = "3"


class Stretch(Structure):
    _fields_ = [("x", c_void_p), ("y", c_void_p), ("n", c_size_t)]


reduce_distributed = tally.lib.tally_reduce_distributed
reduce_distributed.argtypes = [c_void_p, POINTER(tally.Problem), POINTER(Stretch), c_size_t, c_void_p]


@pytest.fixture(scope="module", params=["cuda:all", "opencl:all", "model:all"])
def everybody(request):
    opened = open_device(request.param)
    yield opened
    opened.close()


def test_described(everybody):
    kind = everybody.spec.split(":")[0]
    info = everybody.info()
    assert info.spec.decode() == kind + ":all" and " of " in info.name.decode()
    assert info.units > 0 and info.memory_bytes > 0


@pytest.mark.parametrize("op,type_", [("sum", "f64"), ("argmin", "f64"), ("prod", "f64"), ("describe", "f32"), ("dot", "f32"),
                                      ("sum", "i16"), ("argmax", "u16"), ("minmax", "i32"), ("var", "f32"), ("xor", "i64")])
def test_host_arrays(everybody, op, type_):
    """Some tasks, where it is folded by CUDA of two devices: a few MiB would be one's. Extremes in any of them, equal ones too."""
    if everybody.spec != "opencl:all" and (everybody.spec != "cuda:all" or type_ not in ("f64", "i64")):
        return  # where the model computes, time is dear
    g = data.rng(f"all {op} {type_}")
    folded = everybody.spec == "cuda:all" and op != "prod"
    n = (33 << 20 if folded else 9 << 18) // SIZE[type_] + 123
    kind = "full" if type_[0] != "f" else "near-one" if op == "prod" else "normal"
    raw = data.make(g, kind, type_, n)
    raw[g.integers(0, n, 3)] = raw[g.integers(0, n)]
    y = data.make(g, kind, type_, n) if op == "dot" else None
    assert tally.reduce_array(everybody, op, type_, raw, y) == tally.reduce_array(NOBODY, op, type_, raw, y)


@pytest.mark.parametrize("n", [0, 1, 4095, 4097])
def test_short_arrays(everybody, n):
    raw = data.make(data.rng(f"all {n}"), "near-one", "f64", n)
    for op in ("sum", "prod", "max"):
        assert tally.reduce_array(everybody, op, "f64", raw) == tally.reduce_array(NOBODY, op, "f64", raw)


@pytest.fixture
def places(everybody):
    """Each device's own calls, and a queue of each."""
    if not everybody.spec.startswith("cuda"):
        pytest.skip("CUDA's device pointers")
    found, infos = [], (tally.DeviceInfo * 16)()
    count = c_size_t()
    assert tally.device_list(infos, 16, byref(count)) == 0
    for i in range(sum(info.spec.startswith(b"cuda:") for info in infos[:count.value])):
        place = native.Cuda(i)
        found.append((place, place.queue()))
    yield found
    for place, _ in reversed(found):
        place.close()


def distributed(device, places, op, type_, raw, lengths, y=None):
    """The outcome for the elements in stretches of those lengths."""
    stretches, begin = (Stretch * len(places))(), 0
    for i, ((place, queue), n) in enumerate(zip(places, lengths)):
        place.enter()
        for name, array in (("x", raw), ("y", y)):
            if array is None or n == 0:
                continue
            part = array[begin:begin + n].copy()
            at, back = place.memory(part.nbytes), np.empty_like(part)
            place.write(queue, at, part)
            place.read(queue, back, at)  # waits
            setattr(stretches[i], name, at)
        stretches[i].n = n
        begin += n
        place.leave()
    assert begin == len(raw)
    asked = tally.problem(op, type_)
    values = tally.fresh_values(tally.value_count(asked))
    status = reduce_distributed(device.handle, byref(asked), stretches, len(places), values)
    return tally.outcomes(status, values)


@pytest.mark.parametrize("op,type_", [("sum", "f64"), ("argmin", "f32"), ("describe", "f64"), ("dot", "bf16"), ("prod", "f32"),
                                      ("prod", "u32"), ("any", "i8")])
def test_stretches(everybody, places, op, type_):
    g = data.rng(f"stretches {op} {type_}")
    kind = "full" if type_ in ("u32", "i8") else "near-one" if op == "prod" else "normal"
    for lengths in ([8192, 4096, 77], [0, 12288, 3], [4096, 0, 0], [0, 0, 0], [0, 0, 5]):
        lengths = (lengths + [0] * len(places))[:len(places)]
        raw = data.make(g, kind, type_, sum(lengths))
        y = data.make(g, kind, type_, sum(lengths)) if op == "dot" else None
        want = tally.reduce_array(NOBODY, op, type_, raw, y)
        assert distributed(everybody, places, op, type_, raw, lengths, y) == want, lengths


def test_stretches_that_cannot_be(everybody, places):
    raw = data.make(data.rng("stretches"), "near-one", "f64", 100)
    if len(places) > 1:
        lengths = [60, 40] + [0] * (len(places) - 2)
        assert distributed(everybody, places, "prod", "f64", raw, lengths) == "EINVAL"
        assert "stretch 0 has 60 elements" in tally.error().decode()
        assert distributed(everybody, places[:1], "sum", "f64", raw, [100]) == "EINVAL"
    one = c_void_p(raw.ctypes.data)
    status = tally.reduce_resident(everybody.handle, byref(tally.problem("sum", "f64")), one, None, 100, tally.fresh_values(1))
    assert tally.STATUS[status] == "EUNSUPPORTED"


def test_a_range_that_ends_on_another_device(places):
    """An array that begins in one device's memory and ends in another's is neither's."""
    if len(places) > 1:
        at = []
        for i, (place, _) in enumerate(places[:2]):
            place.enter()
            at.append((place.memory(64), i))
            place.leave()
        (low, first), (high, _) = sorted(at)
        device = open_device(f"cuda:{first}")
        status = tally.reduce_resident(device.handle, byref(tally.problem("sum", "f64")), c_void_p(low), None,
                                       (high - low) // 8 + 1, tally.fresh_values(1))
        device.close()
        assert tally.STATUS[status] == "EUNSUPPORTED" and "not this device's" in tally.error().decode()


def test_no_queues(everybody):
    """What cannot be done names the device as it was opened."""
    size = c_size_t()
    status = tally.lib.tally_workspace(c_void_p(everybody.handle), byref(tally.problem("sum", "f64")), c_size_t(9), byref(size))
    assert tally.STATUS[status] == "EUNSUPPORTED"
    assert tally.error().decode() == everybody.spec + " has no queues to put a reduction on"


def test_one_device_is_a_stretch():
    """What is one device, or none at all, takes one stretch."""
    raw = data.make(data.rng("one stretch"), "normal", "f64", 1000)
    for device in (NOBODY, tally.Device("cpu")):
        for count in (1, 2):
            stretches = (Stretch * 2)(Stretch(raw.ctypes.data, None, 1000), Stretch(None, None, 0))
            values = tally.fresh_values(1)
            status = reduce_distributed(device.handle, byref(tally.problem("sum", "f64")), stretches, count, values)
            got = tally.outcomes(status, values)
            assert got == (tally.reduce_array(NOBODY, "sum", "f64", raw) if count == 1 else "EINVAL")


def test_a_failure_is_told(everybody, monkeypatch):
    """The line of the device that failed reaches the caller, and the next call works."""
    if not everybody.spec.startswith("cuda") or not hasattr(ctypes.CDLL("libcuda.so.1"), "tally_cuda_double_failures"):
        pytest.skip("only the double fails when asked to")
    raw = np.ones((5 << 18) // 8)
    monkeypatch.setenv("TALLY_CUDA_DOUBLE_FAIL", "cuLaunchKernel:2:719")
    status = tally.reduce_array(everybody, "sum", "f64", raw.view(np.uint64))
    assert "ELOST" in str(status) or "launch" in str(status).lower()
    monkeypatch.delenv("TALLY_CUDA_DOUBLE_FAIL")
    assert tally.reduce_array(everybody, "sum", "f64", raw.view(np.uint64)) == \
        tally.reduce_array(NOBODY, "sum", "f64", raw.view(np.uint64))
