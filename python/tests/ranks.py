"""What test_mpi.py starts with mpirun: reductions over ranks against those of the whole in one process."""

import sys

import numpy as np
from mpi4py import MPI

import tally
import tally.mpi

comm = MPI.COMM_WORLD
rank, ranks = comm.Get_rank(), comm.Get_size()
rng = np.random.default_rng(int(sys.argv[1]))


def part(x):
    """This rank's elements: parts are uneven, and rank 1 has none."""
    cuts = [0, *sorted(int(c) for c in rng.integers(0, len(x) + 1, ranks - 1)), len(x)]
    if ranks > 1:
        cuts[2 if ranks > 2 else 1] = cuts[1] if ranks > 2 else len(x)
    return slice(cuts[rank], cuts[rank + 1])


def same(a, b):
    a, b = (v if isinstance(v, tuple) else (v,) for v in (a, b))
    assert len(a) == len(b), (a, b)
    for u, v in zip(a, b):
        assert np.asarray(u).dtype == np.asarray(v).dtype and np.asarray(u).tobytes() == np.asarray(v).tobytes(), (a, b)


arrays = [rng.standard_normal(10007) * 10.0 ** rng.integers(-200, 100, 10007), rng.standard_normal(9001).astype("f4"),
          rng.integers(-50, 50, 5003), np.zeros(0), np.array([1e16, 1.0, -1e16, np.inf, 0.1])]
line = tally.Operator("3 * a + b", identity=0)
for x in arrays:
    ops = ["sum", "mean", "std", "norm2", "min", "minmax", "nonzero", "prod", "describe", "sum,norm1,max"]
    for op in [*ops, "argmax" if len(x) else "any", line if x.dtype == "i8" else "nans"]:
        here = part(x)
        whole = tally.State(op, x.dtype).update(x)
        if len(x) == 0 and op in ("min", "minmax", "describe", "sum,norm1,max"):  # there is no least of nothing, on any rank
            try:
                tally.mpi.allreduce(x[here], op, comm)
            except ValueError as error:
                assert "no elements" in str(error)
                continue
            raise AssertionError(op)
        if op == "prod" and x.dtype == "i8":  # beyond 64 bits on all ranks alike
            try:
                tally.mpi.allreduce(x[here], op, comm)
            except OverflowError:
                continue
        same(tally.mpi.allreduce(x[here], op, comm), whole.value())
        mine = tally.State(op, x.dtype).begin_at(here.start).update(x[here])
        saved = bytes(mine)
        together = tally.mpi.allreduce(mine, comm=comm)
        assert bytes(together) == bytes(whole) and bytes(mine) == saved, op
x = arrays[0]
here = part(x)
same(tally.mpi.allreduce(x[here], "dot", y=x[::-1][here]), tally.dot(x, x[::-1]))
same(tally.mpi.allreduce(x[here], "std", ddof=1, dtype="f4"), tally.std(x, ddof=1, dtype="f4"))
ids = rng.integers(0, 7, len(x))
groups = tally.mpi.allreduce(tally.Groups("mean", 7).update(x[here], ids[here]), comm=comm)
same(groups.value(), tally.group("mean", x, ids))


def fails(kind, text, call):
    """All ranks raise it, and are in step afterwards."""
    try:
        call()
    except kind as error:
        assert text in str(error), error
    else:
        raise AssertionError("nothing was raised")
    same(tally.mpi.allreduce(np.ones(rank), comm=comm), np.float64(ranks * (ranks - 1) // 2))


bad = rank == ranks - 1
if ranks > 1:
    fails(ValueError, "the ranks do not all", lambda: tally.mpi.allreduce(x, "min" if bad else "sum"))
    fails(ValueError, "the ranks do not all", lambda: tally.mpi.allreduce(arrays[1] if bad else x))
    fails(ValueError, "the ranks do not all", lambda: tally.mpi.allreduce(tally.State("sum") if bad else [1.0]))
    fails(ValueError, "begin", lambda: tally.mpi.allreduce(tally.State("prod").begin_at(5 * rank).update(np.ones(3))))
fails(ValueError, "nonsense", lambda: tally.mpi.allreduce(x, "nonsense" if bad else "sum"))
fails(TypeError, "complex", lambda: tally.mpi.allreduce(x * 1j if bad else x))
many = tally.State("mean").update([1.0])
for _ in range(63 if bad else 1):  # more than a word counts, on one rank
    many += many
fails(OverflowError, "2^63", lambda: tally.mpi.allreduce(many))
fails(TypeError, "says itself", lambda: tally.mpi.allreduce(tally.State("sum"), "sum" if bad else None))
if rank == 0:
    print("right")
