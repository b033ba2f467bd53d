"""Reductions over the ranks of an mpi4py communicator: the same bits, whatever their number.

Each rank has a part of an array: rank 0's elements come first, then rank 1's, and so on. What comes back is the
whole array's, on every rank, as `tally.State` gives it.

    from mpi4py import MPI
    import tally.mpi
    energy = tally.mpi.allreduce(x, "sum")                       # over MPI.COMM_WORLD
    mean, std = tally.mpi.allreduce(x, "mean,std", comm)
    state = tally.mpi.allreduce(state, comm=comm)                # of all that the ranks' states know

What a rank fails with is raised on all of them, and none waits for it.
"""

from __future__ import annotations

import builtins
import copy
import hashlib
from typing import Any

import numpy as np

from ._arguments import name_of
from ._arrays import PART, as_host_array
from ._operators import Operator
from ._states import Groups, State

__all__ = ["allreduce"]


# ---- The ranks agree --------------------------------------------------------------------------


def _first(a: Any, b: Any) -> Any:
    return b if a is None else a


def _raise_alike(comm: Any, error: BaseException | None) -> None:
    """Raises on all ranks the error of the lowest rank that failed, which one more message brings to them."""
    mine = None if error is None else (comm.Get_rank(), type(error).__name__, str(error))
    rank, name, text = comm.allreduce(mine, op=_first)
    kind = getattr(builtins, name, None)
    if error is not None and rank == comm.Get_rank():
        raise error
    usable = isinstance(kind, type) and issubclass(kind, Exception) and not issubclass(kind, UnicodeError)
    raise (kind if usable and kind else RuntimeError)(f"rank {rank}: {name}: {text}") from error


def _agree(comm: Any, question: str, error: BaseException | None) -> None:
    """Lets the ranks see, by one sum of four integers, whether all can go on and ask for the same."""
    h = int.from_bytes(hashlib.sha256(question.encode()).digest()[:4], "little")
    square = h * h
    frame = np.array([h, square & 0xFFFFFFFF, square >> 32, error is not None], np.int64)
    comm.Allreduce(_in_place(), frame)
    total, low, high, failed = (int(word) for word in frame)
    if failed:
        _raise_alike(comm, error)
    if total * total != comm.Get_size() * (low + (high << 32)):  # equal if and only if all are (Cauchy and Schwarz)
        raise ValueError(f"the ranks do not all ask for the same; this one for {question}")


def _in_place() -> Any:
    from mpi4py import MPI
    return MPI.IN_PLACE


# ---- States over ranks ------------------------------------------------------------------------


def _question(state: Any, fast: bool) -> str:
    op = repr(state._op) if isinstance(state._op, Operator) else ",".join(state._op)
    return f"{op} of {state._kind}, out {state._out}, ddof {state._ddof}" + ", fast" * fast


def _merge(left: Any, right: Any) -> Any:
    """Merges the states of neighbours, the lower rank's on the left. Returns an error in the state's place: all ranks get it."""
    for each in (left, right):
        if isinstance(each, BaseException):
            return each
    try:
        left += right
    except Exception as error:  # noqa: BLE001 (the others would wait for this rank)
        return error
    return left


def _words(state: Any, comm: Any) -> Any:
    """Returns the words that additions combine, or nothing where there are none. Raises if a sum of all ranks' counts might not
    fit a word: one that wraps around could not be told from a right one."""
    words: Any = state.words() if isinstance(state, State) else ()
    if len(words) > 0 and int(words[0]) > (2**63 - 1) // comm.Get_size():
        raise OverflowError("all ranks may have more than 2^63 - 1 elements, which a word cannot count")
    return words


def _together(state: Any, comm: Any, error: BaseException | None = None) -> Any:
    """Merges the ranks' states, after they have agreed. `error`: over the tree, why this rank has no state."""
    if len(words := _words(state, comm)) > 0:
        comm.Allreduce(_in_place(), words)
        return state.from_words(words)
    merged = comm.allreduce(error or state, op=_merge)
    if isinstance(merged, BaseException):
        raise merged
    return merged


def allreduce(x: Any, op: Any = None, comm: Any = None, *, y: Any = None, dtype: Any = None, ddof: float = 0,
              fast: bool = False, device: str | None = None) -> Any:
    """Reduces an array of which every rank has a part; or merges the ranks' states.

    Parameters
    ----------
    x : array_like, State or Groups
        This rank's elements, taken in C order; all ranks' are of one type. There may be none. Or a state, or those of
        groups, which stay as they are; a state of floating products or an operator of yours stands where its elements
        do (`State.begin_at`).
    op : str, tuple of str or Operator, optional
        As for `State`; "sum" if nothing is said. None for states.
    comm : mpi4py.MPI.Intracomm, optional
        MPI.COMM_WORLD if nothing is said. All its ranks call this, in the order of its other collectives.
    y : array_like, optional
        For dot, the other array.
    dtype : str or dtype, optional
        The floating type that the exact value is rounded to.
    ddof : float, optional
        For var and std.
    fast : bool, optional
        Plain additions: no promise on the bits.
    device : str, optional
        What this rank reduces its part on; it may differ.

    Returns
    -------
    The value, as `State.value` gives it, several as a tuple; or a new state, of all that the ranks' states know.

    Examples
    --------
    >>> tally.mpi.allreduce([1e16, 1.0, -1e16], "sum", MPI.COMM_SELF)
    np.float64(1.0)
    """
    if comm is None:
        from mpi4py import MPI
        comm = MPI.COMM_WORLD
    if isinstance(x, (State, Groups)):
        return _merge_all(x, comm, op is None and y is None and dtype is None and not ddof and not fast)
    error: BaseException | None = None
    question, size = "?", 0
    state: Any = None
    try:
        t = as_host_array(x)
        if t.type in PART:
            raise TypeError(f"elements over ranks are real numbers, not {t.array.dtype}")
        state, size = State("sum" if op is None else op, name_of(t.type), ddof=ddof, out=dtype, fast=fast), int(t.array.size)
        question = _question(state, fast)
        if not state._is_over_tree():
            state.update(x, y, device=device)
        elif y is not None:
            raise TypeError("only dot takes two arrays")
    except Exception as raised:  # noqa: BLE001 (the others would wait for this rank)
        error = raised
    _agree(comm, question, error)
    if state._is_over_tree():  # its elements stand behind those of the ranks below
        before = comm.exscan(size)
        try:
            state.begin_at(before or 0).update(t.array, device=device)
        except Exception as raised:  # noqa: BLE001
            error = raised
    return _together(state, comm, error).value()


def _merge_all(x: Any, comm: Any, is_plain: bool) -> Any:
    """Returns a new State or Groups of all that the ranks' know."""
    error: BaseException | None = None
    try:
        if not is_plain:
            raise TypeError("a state says itself what is asked of it")
        _words(x, comm)
    except Exception as raised:  # noqa: BLE001 (the others would wait for this rank)
        error = raised
    groups = f"{len(x)} groups" if isinstance(x, Groups) else "a state"
    _agree(comm, f"{groups}: {_question(x, getattr(x, '_fast', False))}", error)
    return _together(copy.deepcopy(x), comm)
