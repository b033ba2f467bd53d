"""Exact reductions over torch.distributed's ranks. PyTorch itself is not needed: what the module uses of it stands here, over
NumPy, with threads for ranks; where it is installed, its own Gloo is used as well."""

import importlib
import importlib.util
import inspect
import sys
import threading
import types
from fractions import Fraction

import numpy as np
import pytest

import tally

DTYPES = {"float32": np.float32, "float16": np.float16, "int32": np.int32, "int64": np.int64, "float64": np.float64}


class Dtype:
    def __init__(self, name):
        self.name = name

    def __str__(self):
        return "torch." + self.name


class Tensor:
    """An array as torch.Tensor shows it, in the host's memory."""

    is_cuda, device = False, "cpu"

    def __init__(self, array):
        self.array = array

    @property
    def dtype(self):
        return getattr(torch, str(self.array.dtype))

    @property
    def shape(self):
        return self.array.shape

    def __dlpack__(self, **kw):
        return self.array.__dlpack__(**kw)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()

    def contiguous(self):
        return Tensor(np.ascontiguousarray(self.array))

    def view(self, *shape):
        return Tensor(self.array.reshape(*shape))

    def numel(self):
        return self.array.size

    def data_ptr(self):
        return self.array.ctypes.data

    def element_size(self):
        return self.array.itemsize

    def copy_(self, other):
        self.array[...] = other.array

    def tolist(self):
        return self.array.tolist()

    def to(self, device):
        return self

    cpu = to_host = lambda self: self

    def numpy(self):
        return self.array


class Ranks(threading.local):
    number, world = 0, None


class World:
    def __init__(self, count):
        self.count, self.barrier, self.given = count, threading.Barrier(count), [None] * count


here = Ranks()


def _all_reduce(tensor, op, group=None):
    world = here.world
    world.given[here.number] = tensor.array.copy()
    world.barrier.wait(30)
    total = (np.max if op == "max" else np.sum)(np.array(world.given), axis=0).astype(tensor.array.dtype)
    world.barrier.wait(30)
    tensor.array[...] = total


def stand_in():
    made, dist = types.ModuleType("torch"), types.ModuleType("torch.distributed")
    for name in DTYPES:
        setattr(made, name, Dtype(name))
    made.zeros = lambda n, dtype, device: Tensor(np.zeros(n, DTYPES[dtype.name]))
    made.empty = made.zeros
    made.empty_like = lambda x: Tensor(np.empty_like(x.array))
    made.from_numpy, made.Tensor = Tensor, type("Tensor", (), {})  # (other than ours: taken by DLPack)
    made.futures = types.SimpleNamespace(Future=Future)
    dist.all_reduce, dist.get_world_size = _all_reduce, lambda group=None: here.world.count
    dist.ReduceOp = types.SimpleNamespace(MAX="max", SUM="sum")
    made.distributed = dist
    return made, dist


class Future:
    def set_result(self, value):
        self.value = value


torch, _dist = stand_in()


@pytest.fixture
def exact(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "torch.distributed", _dist)
    for name in ("_peers", "torch_distributed"):
        monkeypatch.delitem(sys.modules, f"tally.{name}", raising=False)
        monkeypatch.delattr(tally, name, raising=False)
    yield importlib.import_module("tally.torch_distributed")
    for name in ("_peers", "torch_distributed"):
        sys.modules.pop(f"tally.{name}", None)


def over(count, f):
    """What f(number) is on each rank."""
    world, made, failed = World(count), [None] * count, []

    def body(number):
        here.world, here.number = world, number
        try:
            made[number] = f(number)
        except BaseException as e:  # noqa: BLE001
            failed.append(e)
            world.barrier.abort()

    threads = [threading.Thread(target=body, args=(i,)) for i in range(count)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    if failed:
        raise failed[0]
    return made


def nearest(dtype, value):
    """The number of a type next to a fraction, ties to even: by the two doubles around it."""
    if value == 0:
        return dtype(0)
    guess = dtype(float(value))
    around = [np.nextafter(guess, dtype(-np.inf)), guess, np.nextafter(guess, dtype(np.inf))]
    return min(around, key=lambda v: (abs(Fraction(float(v)) - value), int(v.view(f"u{v.itemsize}")) & 1))


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_all_reduce(exact, dtype, count):
    rng = np.random.default_rng(count)
    for spread in (0, 12 if dtype == np.float16 else 60):
        arrays = [(rng.standard_normal((7, 90)) * 2.0 ** rng.integers(-spread, 1, (7, 90)) / 8).astype(dtype)
                  for _ in range(count)]
        sums = np.array([[nearest(dtype, sum(Fraction(float(a[i, j])) for a in arrays)) for j in range(90)] for i in range(7)])
        made = over(count, lambda r: exact.all_reduce(Tensor(arrays[r].copy())).array)
        assert all((m == sums).all() for m in made)


def test_too_few_rows_at_first(exact):
    """Elements of all exponents take more rows than there are at first, and a second try."""
    rng = np.random.default_rng(1)
    bits = rng.integers(0, 0x7f800000, 20 * 512, dtype=np.uint32)
    x = bits.view(np.float32)
    made = over(2, lambda r: exact.all_reduce(Tensor(x.copy() if r else -x)).array)
    assert all((m.view(np.uint32) == 0).all() for m in made)


def test_comm_hook(exact):
    class Bucket:
        def __init__(self, array):
            self.tensor = Tensor(array)

        def buffer(self):
            return self.tensor

    hook = inspect.signature(exact.comm_hook)  # PyTorch takes none with other annotations than its own
    assert all(a is inspect.Signature.empty for a in (hook.return_annotation, hook.parameters["bucket"].annotation))
    arrays = [np.full(5, v, np.float32) for v in (1, 2, 4)]
    made = over(3, lambda r: exact.comm_hook(None, Bucket(arrays[r])).value.array)
    assert all((m == np.float32(7 / 3)).all() for m in made)


def test_reduce(exact):
    x = np.array([1e16, 1.0, -1e16, 2.5, 3.0])
    for count in (1, 2, 3, 6):
        parts = np.array_split(x, count)
        assert over(count, lambda r: float(exact.reduce(Tensor(parts[r])))) == [6.5] * count
        assert over(count, lambda r: float(exact.reduce(Tensor(parts[r]), "mean"))) == [1.3] * count
    with pytest.raises(NotImplementedError):
        over(1, lambda r: exact.reduce(Tensor(x), "min"))


def test_what_is_refused(exact):
    with pytest.raises(TypeError):
        over(1, lambda r: exact.all_reduce(Tensor(np.zeros(3))))
    with pytest.raises(ValueError):
        over(1, lambda r: exact.all_reduce(Tensor(np.zeros(3, np.float32)), divisor=0))


def _gloo_rank(number, count, path, queue):
    import torch as real
    import torch.distributed as dist
    import tally.torch_distributed as module
    dist.init_process_group("gloo", init_method=f"file://{path}", rank=number, world_size=count)
    x = real.tensor([1e8, 1.0, -1e8][number], dtype=real.float32).repeat(3)
    total = float(module.reduce(x, "sum"))
    model = real.nn.parallel.DistributedDataParallel(real.nn.Linear(1, 1, bias=False))
    model.register_comm_hook(None, module.comm_hook)
    model(x[:1].view(1, 1)).backward()  # the gradient is x; its mean, a third
    queue.put(module.all_reduce(x).tolist() + [total, model.module.weight.grad.item()])
    dist.destroy_process_group()


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="no PyTorch")
def test_gloo(tmp_path):
    import multiprocessing
    context = multiprocessing.get_context("spawn")
    queue = context.Queue()
    processes = [context.Process(target=_gloo_rank, args=(i, 3, tmp_path / "ranks", queue)) for i in range(3)]
    for p in processes:
        p.start()
    assert [queue.get(timeout=120) for _ in processes] == \
        [[1.0, 1.0, 1.0, 3.0, float(np.float32(1 / 3))]] * 3
    for p in processes:
        p.join()
