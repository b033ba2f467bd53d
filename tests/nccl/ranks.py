"""Ranks as threads of this process, each with a GPU, and a binding to libtally_nccl.

The GPUs are those of this machine where libnccl.so.2 is NCCL itself, and there are no more ranks than GPUs. Where it is the
double (nccl_double.c), they are the double's."""

import ctypes
import os
import threading
from ctypes import POINTER, Structure, byref, c_int, c_size_t, c_uint32, c_void_p

import numpy as np
import pytest

import tally
from native import Cuda
from test_words import outcomes

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
lib = ctypes.CDLL(os.environ.get("TALLY_NCCL_LIB") or os.path.join(ROOT, "build", "lib", "libtally_nccl.so"))
nccl = ctypes.CDLL("libnccl.so.2")
cuda = ctypes.CDLL("libcuda.so.1")
IS_DOUBLE = hasattr(nccl, "tally_nccl_double_open")


def device_count():
    count = c_int()
    return count.value if cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(byref(count)) == 0 else 0


DEVICES = 4 if IS_DOUBLE else device_count()
MOST = 8 if IS_DOUBLE else DEVICES  # ranks
needs_double = pytest.mark.skipif(not IS_DOUBLE, reason="only the double fails when it is told to")


def few(count):
    """So many ranks, or as many as there can be."""
    return max(1, min(count, MOST))


class Stretch(Structure):
    _fields_ = [("x", c_void_p), ("y", c_void_p), ("n", c_size_t)]


class Call(Structure):
    _fields_ = [("parts", POINTER(Stretch)), ("count", c_size_t), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("stream", c_void_p), ("results", c_void_p), ("peers", c_void_p)]


class Array(Structure):
    _fields_ = [("type", c_int), ("n", c_size_t), ("divisor", c_uint32), ("scatter", c_int), ("spare", c_size_t)]


class ArrayCall(Structure):
    _fields_ = [("x", c_void_p), ("out", c_void_p), ("outcome", c_void_p), ("workspace", c_void_p),
                ("workspace_bytes", c_size_t), ("stream", c_void_p), ("peers", c_void_p)]


def _declare(name, *arguments):
    function = getattr(lib, "tally_nccl_" + name)
    function.restype, function.argtypes = c_int, list(arguments)
    return function


P, PROBLEM, SIZE_T = c_void_p, POINTER(tally.Problem), POINTER(c_size_t)
lib.tally_nccl_error.restype = ctypes.c_char_p
version = _declare("version", POINTER(c_int))
measure = _declare("measure", P, PROBLEM, c_size_t, c_size_t, P, SIZE_T)
agree = _declare("agree", P, PROBLEM, c_size_t, P, POINTER(Call))
allreduce = _declare("allreduce", P, PROBLEM, P, POINTER(Call))
peers_open = _declare("peers_open", P, P, POINTER(P))
peers_abort = _declare("peers_abort", P)
lib.tally_nccl_peers_close.argtypes = [P]
measure_array = _declare("measure_array", P, POINTER(Array), P, SIZE_T)
agree_array = _declare("agree_array", P, POINTER(Array), P, POINTER(ArrayCall))
allreduce_array = _declare("allreduce_array", P, POINTER(Array), P, POINTER(ArrayCall))
if IS_DOUBLE:
    nccl.tally_nccl_double_sent.restype = ctypes.c_double
    nccl.tally_nccl_double_sent.argtypes = nccl.tally_nccl_double_overflowed.argtypes = [P]
    cuda.tally_cuda_double_capture.argtypes = [P, ctypes.c_bool]


def error():
    return lib.tally_nccl_error().decode()


class Double:
    """A world of the double's, for one test."""

    def __init__(self, count):
        self.comms = (c_void_p * count)()
        assert nccl.tally_nccl_double_open(count, self.comms) == 0

    def open_device(self, number):
        handle = c_void_p()
        assert tally.c_open(f"cuda:{number % DEVICES}".encode(), byref(handle)) == 0, tally.error()
        return handle.value

    def close_device(self, device):
        tally.c_close(device)

    def capture(self, rank, work, meet):
        """Tells the double that the streams of all ranks are being captured, so that whoever waits or allocates is told
        off."""
        meet()
        cuda.tally_cuda_double_capture(rank.stream, True)
        try:
            return work()
        finally:
            meet()
            cuda.tally_cuda_double_capture(rank.stream, False)
            meet()

    def abort(self, number):
        nccl.tally_nccl_double_abort(c_void_p(self.comms[number]))

    def close(self):
        self.sent = nccl.tally_nccl_double_sent(self.comms[0])
        assert not nccl.tally_nccl_double_overflowed(self.comms[0]), "a sum of words has overflowed"
        for comm in reversed(self.comms):
            nccl.tally_nccl_double_close(c_void_p(comm))


class Gpus:
    """NCCL's communicators, a GPU a rank. They and the devices last until one of them fails, as they are slow to make."""

    worlds, devices, contexts, sent = {}, {}, [], None

    def __new__(cls, count):
        if count not in cls.worlds:
            cls.contexts = cls.contexts or [Cuda(i) for i in range(DEVICES)]  # they outlive the tests' own
            world = cls.worlds[count] = super().__new__(cls)
            world.comms, world.count = (c_void_p * count)(), count
            error = nccl.ncclCommInitAll(world.comms, count, None)
            assert error == 0, f"ncclCommInitAll: {error}"
        return cls.worlds[count]

    def open_device(self, number):
        if number not in self.devices:
            self.devices[number] = Double.open_device(self, number)
        return self.devices[number]

    def close_device(self, device):
        pass

    def capture(self, rank, work, meet):
        """What work() returns, with what it has put into a graph done once."""
        graph, ready = c_void_p(), c_void_p()
        rank.machine.call("cuStreamBeginCapture_v2", c_void_p(rank.stream), c_uint32(1))  # this thread's calls
        made = work()
        rank.machine.call("cuStreamEndCapture", c_void_p(rank.stream), byref(graph))
        rank.machine.call("cuGraphInstantiateWithFlags", byref(ready), graph, ctypes.c_uint64(0))
        meet()
        rank.machine.call("cuGraphLaunch", ready, c_void_p(rank.stream))
        rank.machine.call("cuStreamSynchronize", c_void_p(rank.stream))
        return made

    def abort(self, number):
        if self.worlds.pop(self.count, None):
            for comm in self.comms:
                nccl.ncclCommAbort(c_void_p(comm))

    def close(self):
        pass


class Rank:
    """One rank: a device, a stream, a communicator, and memory that is given back at the end."""

    def __init__(self, number, count, world):
        self.number, self.count, self.world, self.comm = number, count, world, world.comms[number]
        self.machine = Cuda(number % DEVICES)
        self.device, self.stream, self.taken = world.open_device(number), self.machine.queue(), []
        self.captures = self.aborts = self.shares = False
        self.peers = c_void_p()

    def room(self, size):
        self.taken.append(self.machine.memory(max(size, 8)))
        return self.taken[-1]

    def put(self, array):
        memory = self.room(array.nbytes)
        if array.nbytes:
            self.machine.write(self.stream, memory, array)
        return memory

    def get(self, memory, dtype, count):
        out = np.zeros(count, dtype)
        if count:
            self.machine.read(self.stream, out, memory)
        return out

    def has_failed(self, made):
        """Whether the rank would end its communicator: so that nobody waits for messages that it may not have sent."""
        return self.aborts and made[0] != tally.OK

    def captured(self, work):
        """What work() returns; if that is wanted, while the rank's stream is being captured into a graph."""
        return self.world.capture(self, work, lambda: self.all.wait(30)) if self.captures else work()

    def share(self):
        """Opens the peers, if that is wanted."""
        if self.shares and not self.peers:
            opened = peers_open(self.comm, self.stream, byref(self.peers))
            assert opened == (tally.OK if self.count == 1 or not IS_DOUBLE else tally.EUNSUPPORTED), error()

    def values(self, problem, parts, n=None, agrees=True):
        """(status, outcomes of each result) of parts (x, y or None), one for each result."""
        size = c_size_t()
        longest = max([len(x) for x, _ in parts], default=0)
        status = measure(self.device, byref(problem), longest if n is None else n, len(parts), self.comm, byref(size))
        if status:
            return status, None
        work = self.put(np.full(size.value, 0xA5, np.uint8))
        values = tally.value_count(problem)
        results = self.put(np.full(2 * values * len(parts) + 2, 0x5A5A, np.uint64))
        stretches = (Stretch * max(len(parts), 1))()
        for i, (x, y) in enumerate(parts):
            stretches[i] = Stretch(self.put(x), None if y is None else self.put(y), len(x))
        self.share()
        call = Call(stretches, len(parts), work, size.value, self.stream, results, self.peers)
        if agrees:
            status = agree(self.device, byref(problem), longest, self.comm, byref(call))
            if status:
                return status, None
        status = self.captured(lambda: allreduce(self.device, byref(problem), self.comm, byref(call)))
        made = self.get(results, np.uint64, 2 * values * len(parts) + 2)
        assert (made[-2:] == 0x5A5A).all(), "wrote past its results"
        return status, [outcomes(made[2 * values * i:2 * values * (i + 1)]) for i in range(len(parts))] \
            if (made != 0x5A5A).any() else None

    def sums(self, type_, x, divisor=0, scatter=False, spare=0, in_place=False, agrees=True):
        """(status, outcome, sums) of an array."""
        array = Array(tally.CODE[type_], len(x), divisor, scatter, spare)
        size, n = c_size_t(), len(x) // self.count if scatter else len(x)
        status = measure_array(self.device, byref(array), self.comm, byref(size))
        if status:
            return status, None, None
        work = self.put(np.full(size.value, 0xA5, np.uint8))
        given = self.put(x)
        out = given if in_place else self.put(np.full(n + 8, 0x77, x.dtype))
        told = self.put(np.full(2, 0xEE, np.uint64))
        self.share()
        call = ArrayCall(given, out, told, work, size.value, self.stream, self.peers)
        if agrees:
            status = agree_array(self.device, byref(array), self.comm, byref(call))
            if status:
                return status, None, None
        status = self.captured(lambda: allreduce_array(self.device, byref(array), self.comm, byref(call)))
        outcome = self.get(told, np.uint64, 2).tolist()
        made = self.get(out, x.dtype, n + (0 if in_place else 8))
        assert in_place or (made[n:] == 0x77).all(), "wrote past its sums"
        return status, (outcome[1] & 0xffffffff, outcome[0]), made[:n]

    def close(self):
        lib.tally_nccl_peers_close(self.peers)
        for memory in self.taken:
            self.machine.free(memory)
        self.world.close_device(self.device)
        self.machine.close()


class Ranks:
    """What each of so many ranks makes of f(rank), in the order of ranks; and what they have sent."""

    def __init__(self, count, f, **attributes):
        if count > MOST:
            pytest.skip(f"{MOST} GPUs")
        world = (Double if IS_DOUBLE else Gpus)(count)
        self.made, self.failed, barrier = [None] * count, [], threading.Barrier(count)

        def body(number):
            try:
                rank = Rank(number, count, world)
                rank.all = barrier
                for name, value in attributes.items():
                    setattr(rank, name, value)
                try:
                    self.made[number] = f(rank)
                    if rank.has_failed(self.made[number]):
                        world.abort(number)
                finally:
                    rank.close()
            except BaseException as e:  # noqa: BLE001
                self.failed.append(e)
                world.abort(number)

        threads = [threading.Thread(target=body, args=(i,), daemon=True) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(40)
            assert not thread.is_alive(), "a rank hangs"
        if self.failed:
            raise self.failed[0]
        world.close()
        self.sent = world.sent
