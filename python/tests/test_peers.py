"""Arrays that GPUs add up in each other's memory, without a GPU: threads for ranks, the host's memory for theirs, and a stand-in
for tally_terms_shared() that adds up what lies at the addresses it is given. bench/torch_ranks.py runs the real one."""

import collections
import ctypes
import importlib
import sys
import types
import zlib
from fractions import Fraction

import numpy as np
import pytest

import tally
import test_torch_distributed as ranks
from test_torch_distributed import Dtype, Tensor, here, nearest, over


Device = collections.namedtuple("Device", "index")


class Memory(Tensor):
    """A tensor on a GPU, as far as its memory goes."""

    is_cuda, device = True, Device(0)

    def __getitem__(self, at):
        made = self.array[at]
        return Memory(made) if isinstance(made, np.ndarray) else made

    def zero_(self):
        self.array[...] = 0
        return self

    def view(self, *shape):
        if isinstance(shape[0], Dtype):
            return Memory(self.array.view(shape[0].name))
        return Memory(self.array.reshape(*shape))

    def contiguous(self):
        return Memory(np.ascontiguousarray(self.array))

    def __and__(self, bits):
        return self.array & bits


def exchange(word):
    world = here.world
    world.given[here.number] = word
    world.barrier.wait(30)
    words = list(world.given)
    world.barrier.wait(30)
    return words


def at(address, n):
    return np.ctypeslib.as_array((ctypes.c_float * n).from_address(address))


def terms_shared(device, kind, n, divisor, mine, terms, sums, same, mailbox, outcome, queue):
    """What the kernels do, but that each rank adds up all elements for itself."""
    addresses = at(mailbox + 16, 2 * len(terms)).view(np.int64)
    assert (device, kind, queue) == ("cuda:0", "f32", 7) and mine == here.number and mailbox == addresses[mine]
    assert (np.diff([terms, addresses], axis=0) < 0).all()
    status = 0 if len(set(exchange(same))) == 1 else 3
    made = [nearest(np.float32, sum(map(Fraction, column)) / divisor) for column in np.array([at(t, n) for t in terms], float).T]
    exchange(None)
    if not status:
        at(sums[mine], n)[...] = made
    np.ctypeslib.as_array((ctypes.c_uint64 * 2).from_address(outcome))[...] = 0, 0xabcd << 32 | status


def gpus(hosts, reach=True):
    """PyTorch with GPUs, on these hosts."""
    torch, dist = ranks.stand_in()
    torch.uint8 = Dtype("uint8")
    torch.zeros = lambda shape, dtype, device: Memory(np.zeros(shape, dtype.name))
    torch.tensor = lambda values, dtype, device: Memory(np.array(values, dtype.name))
    torch.cuda = types.SimpleNamespace(current_stream=lambda device: types.SimpleNamespace(cuda_stream=7), synchronize=lambda device: None)
    dist.get_rank, dist.group = lambda group: here.number, types.SimpleNamespace(WORLD=Group())

    def all_gather_object(words, word, group):
        words[:] = exchange(hosts[here.number] if isinstance(word, str) else word)

    def rendezvous(room, group):
        if not reach and here.number == 1:
            raise RuntimeError("no way from GPU 1 to GPU 0")
        return types.SimpleNamespace(buffer_ptrs=exchange(room.data_ptr()) if reach else [0] * here.world.count)

    dist.all_gather_object = all_gather_object
    symmetric = types.ModuleType("torch.distributed._symmetric_memory")
    symmetric.empty = lambda n, dtype, device: Memory(np.full(n, 0xa5, dtype.name))
    symmetric.rendezvous = rendezvous
    return {"torch": torch, "torch.distributed": dist, symmetric.__name__: symmetric}


class Group:
    pass


@pytest.fixture
def exact_on(monkeypatch):
    def make(*asked):
        for name, module in gpus(*asked).items():
            monkeypatch.setitem(sys.modules, name, module)
        for name in ("_peers", "torch_distributed"):
            monkeypatch.delitem(sys.modules, f"tally.{name}", raising=False)
            monkeypatch.delattr(tally, name, raising=False)
        exact = importlib.import_module("tally.torch_distributed")
        monkeypatch.setattr(exact._peers, "_core", types.SimpleNamespace(terms_shared=terms_shared))
        monkeypatch.setattr(exact._peers, "_STRETCH", 64)
        return exact
    yield make
    for name in ("_peers", "torch_distributed"):
        sys.modules.pop(f"tally.{name}", None)
        vars(tally).pop(name, None)


@pytest.mark.parametrize("n", [0, 1, 16, 17, 50])
@pytest.mark.parametrize("count", [2, 3, 16])
def test_stretches(exact_on, count, n):
    """Arrays of any number of stretches, of which the last may be short; a later array; one that is not contiguous."""
    exact = exact_on(["a"] * count)
    rng = np.random.default_rng(count + n)
    arrays = [(rng.standard_normal((n, 2)) * 2.0 ** rng.integers(-60, 9, (n, 2))).astype(np.float32)[:, 0] for _ in range(count)]
    groups = [Group() for _ in range(count)]

    def body(r):
        first, second = Memory(arrays[r].copy()), Memory(arrays[r][::-1])
        exact.all_reduce(first, group=groups[r])
        exact.all_reduce(second, group=groups[r], divisor=3)
        return first.array, second.array[::-1]

    sums = [sum(map(Fraction, column)) for column in zip(*(a.tolist() for a in arrays))]
    whole, thirds = (np.array([nearest(np.float32, s / d) for s in sums], np.float32) for d in (1, 3))
    for first, second in over(count, body):
        assert first.tobytes() == whole.tobytes() and second.tobytes() == thirds.tobytes()


def test_different_arrays(exact_on):
    """The status is said to be other than 0, and is no number of rows."""
    exact = exact_on(["a", "a"])
    groups = [Group(), Group()]
    with pytest.raises(RuntimeError, match="different arrays"):
        over(2, lambda r: exact.all_reduce(Memory(np.zeros(3, np.float32)), group=groups[r], divisor=1 + r))
    assert zlib.crc32(b"f32 3 1") != zlib.crc32(b"f32 3 2")


@pytest.mark.parametrize("hosts, reach", [(["a", "b", "a"], True), (["a"] * 3, False), (["a"], True), (["a"] * 17, True)])
def test_out_of_reach(exact_on, hosts, reach):
    """Ranks on two hosts, GPUs of which one does not reach another, a rank alone, more ranks than a mailbox has: none on any rank."""
    exact = exact_on(hosts, reach)
    groups = [Group() for _ in hosts]
    assert over(len(hosts), lambda r: exact._peers.peers_of(groups[r], "cuda:0")) == [None] * len(hosts)
