"""States: what is known of a reduction after some of its elements."""

from __future__ import annotations

import copy
import operator
import os
import struct
from typing import TYPE_CHECKING, Any, Callable

import numpy as np

from . import _core, _gpu
from ._arguments import NO_IDENTITY, kind_of, name_of, real
from ._arrays import DTYPE, FLOATS, PART, Operand, as_host_array, check_labels, holds_all, wrap_numpy
from ._host import BLOCK, FEW_GROUPS, HOST, check_empty, chunks, contiguous, groups_by_blocks, in_order, is_in_order, shown, store
from ._operators import Operator
from ._parts import check_one, gather, names_of, problem_of


if TYPE_CHECKING:
    from typing_extensions import Self

#: Bytes on the CPU, and on other devices: fewer are fed under the state's lock, and no signal handler runs meanwhile.
_SHORT, _SHORT_THERE = 1 << 20, 1 << 15


def _elements(t: Operand, kind: str) -> np.dtype[Any]:
    """The dtype that fed elements are brought to; TypeError where that would not be exact."""
    if t.type != kind and (t.type in PART or "bf16" in (t.type, kind) or not holds_all(t.array, DTYPE[kind])):
        raise TypeError(f"a state of {name_of(kind)} is not fed {name_of(t.type)} elements, which it cannot hold exactly")
    return DTYPE[kind]


def _feed_blocks(state: _core.State, x: np.ndarray[Any, Any], y: Any, dtype: np.dtype[Any], device: str | None) -> None:
    """Feeds elements, or pairs of them, that the engine cannot read where they lie: copies of blocks."""
    for at in chunks(x, BLOCK // dtype.itemsize):
        state.feed(contiguous(x[at], dtype), None if y is None else contiguous(y[at], dtype), device)


def _numbers(op: Any, p: _core.Problem, kind: str, values: tuple[Any, ...]) -> Any:
    """Values of a state, with the dtypes that they have in Python."""
    numbers = []
    for what, value in zip(p.values(), values):
        if value is None:
            raise OverflowError(f"the exact {what[0]} does not fit {what[1]}")
        array = np.empty((), DTYPE[what[1]])
        store(array, what, value)
        numbers.append(wrap_numpy(*shown(*what, array, kind)))
    return gather(op, *numbers)


class _Known:
    """The common part of State and Groups: the operator, its options and the elements' type; merging, saving and showing."""

    __slots__ = ("_op", "_kind", "_ddof", "_out", "_known")
    _known: Any  # the extension's State or Groups

    def __init__(self, op: Any, dtype: Any, ddof: float, out: Any):
        self._op = op if isinstance(op, Operator) else names_of(op)
        self._kind, self._out, self._ddof = kind_of(dtype) or "f64", kind_of(out), real("ddof=", ddof)
        if self._kind in PART or self._out in PART:
            raise TypeError("states are of real numbers: keep one for each part")

    def _is_over_tree(self) -> bool:
        """Return whether the operator goes over the canonical tree: states merge with neighbours only, and Groups do not merge."""
        return isinstance(self._op, Operator) or ("prod" in self._op and self._kind in FLOATS)

    def _label(self) -> str:
        return repr(self._op) if isinstance(self._op, Operator) else repr(",".join(self._op))

    def _with(self, result: Self, other: Any, change: str) -> Self:
        """Returns one of these, changed by another's states: merged, or subtracted."""
        if not isinstance(other, type(self)):
            return NotImplemented  # type: ignore[no-any-return]
        getattr(result._known, change)(other._known)
        return result

    def __iadd__(self, other: Any) -> Self:
        return self._with(self, other, "merge")

    def __add__(self, other: Any) -> Self:
        return self._with(copy.copy(self), other, "merge")

    def __bytes__(self) -> bytes:
        saved: bytes = self._known.save()
        return saved


class State(_Known):
    """All that is known of a reduction after some of its elements: fed, merged, saved, and lowered to its value.

    The value is that of one array with all the elements, bit for bit, however they were cut.

    Parameters
    ----------
    op : str, tuple of str or Operator
        "sum", "var", "argmax", ...; "count,mean,std" for several; or an operator of yours.
    dtype : str or dtype, optional
        The elements' type: "f64", "i32", numpy.float32, ... ("i8" and "u8" are NumPy's, of 8 bytes.)
    ddof : float, optional
        For var and std.
    out : str or dtype, optional
        The floating type that the exact value is rounded to.
    fast : bool, optional
        Plain additions: no promise on the bits.

    Examples
    --------
    >>> s = tally.State("sum", "f64")
    >>> s.update([1e16, 1.0]).update([-1e16]).value()
    np.float64(1.0)
    """

    __slots__ = ("_fast",)

    def __init__(self, op: Any, dtype: Any = "f64", *, ddof: float = 0, out: Any = None, fast: bool = False):
        _Known.__init__(self, op, dtype, ddof, out)
        self._fast = bool(fast)
        self._known = _core.State(problem_of(self._op, self._kind, self._out, self._fast, self._ddof))

    def update(self, x: Any, y: Any = None, *, device: str | None = None) -> State:
        """Adds elements behind those that are there, in C order; for dot, of two arrays. Returns the state.

        An array on a GPU is read there, and waited for.
        """
        if device is None and type(x) is not np.ndarray and _gpu.is_on_gpu(x):
            return self._add(_gpu.feed, self._kind, x, y)
        t = as_host_array(x)
        dtype = _elements(t, self._kind)
        other = None
        if y is not None:
            u = as_host_array(y)
            _elements(u, self._kind)
            other = u.array
            if other.shape != t.array.shape:
                raise ValueError(f"the arrays have shapes {t.array.shape} and {other.shape}")
            check_labels(t, u)
        array = t.array
        lies = array.dtype == dtype and is_in_order(array) and (other is None or (other.dtype == dtype and is_in_order(other)))
        if array.size * dtype.itemsize < (_SHORT if device is None else _SHORT_THERE):
            if not lies:
                array, other = contiguous(array, dtype), None if other is None else contiguous(other, dtype)
            self._known.feed(array, other, device)
            return self
        return self._add(_core.State.feed, array, other, device) if lies else self._add(_feed_blocks, array, other, dtype, device)

    def _add(self, feed: Callable[..., None], *more: Any) -> State:
        """Adds what feed(state, *more) feeds: all or nothing. Other threads and signal handlers may use this state meanwhile."""
        known = self._known

        def end() -> int:  # over the tree: the number of elements and the first one's index, which the saved bytes have at 32
            return sum(struct.unpack_from("<2Q", known.save(), 32)) if self._is_over_tree() else 0

        while True:
            part, place = _core.State(known.problem), end()
            part.begin_at(place)
            feed(part, *more)
            try:
                known.merge(part)
                return self
            except ValueError:
                if place == end():  # else others have added elements there, and these come behind them
                    raise

    def value(self) -> Any:
        """The value, as the function of that name gives it; several values as a tuple. Of no elements there is no least or
        greatest."""
        if self._known.count() == 0:
            for name, _ in self._known.problem.values():
                if name in NO_IDENTITY:
                    raise ValueError(f"the state has no elements, so there is no {name}")
        return _numbers(self._op, self._known.problem, self._kind, self._known.value())

    def divided(self, divisor: int, dtype: Any = None) -> Any:
        """The exact sum divided by an integer, rounded once. For what is built on one sum."""
        kind = kind_of(dtype)
        number = self._known.divided(divisor, kind)
        kind = kind or self._out or (self._kind if self._kind in FLOATS else "f64")
        return number if kind == "bf16" else DTYPE[kind].type(number)

    @property
    def count(self) -> int:
        """How many elements it knows."""
        return int(self._known.count())

    @property
    def dtype(self) -> str:
        """The name of the elements' type, such as "float64"."""
        return name_of(self._kind)

    def begin_at(self, first: int) -> State:
        """Says that the elements to come begin at this index of the whole array; for floating products and operators
        of yours, whose states are merged with their neighbours only. Returns the state."""
        self._known.begin_at(first)
        return self

    def __isub__(self, other: Any) -> State:
        return self._with(self, other, "subtract")

    def __sub__(self, other: Any) -> State:
        return self._with(copy.copy(self), other, "subtract")

    def negate(self) -> State:
        """Makes it the state of the negated elements: for sum, mean and dot. Returns the state."""
        self._known.negate()
        return self

    def clear(self) -> State:
        """Back to no elements. Returns the state."""
        self._known = _core.State(self._known.problem)
        return self

    def copy(self) -> State:
        """Another state that knows the same."""
        result = object.__new__(State)
        result._op, result._kind, result._ddof, result._out, result._fast = self._op, self._kind, self._ddof, self._out, self._fast
        result._known = _core.State(self._known.problem, self._known)
        return result

    __copy__ = copy

    def words(self) -> np.ndarray[Any, np.dtype[np.int64]]:
        """The wire form: words that plain integer addition combines, over an MPI_SUM or ncclSum. Empty where there is
        none."""
        return np.frombuffer(self._known.words(), np.int64).copy()

    def from_words(self, words: Any) -> State:
        """Makes it the state that added-up words say. Returns the state."""
        integers = as_host_array(words).array
        if integers.dtype.kind not in "iu" or integers.dtype.itemsize != 8:
            raise TypeError(f"words are int64, as words() gives them, not {integers.dtype}")
        self._known.from_words(np.ascontiguousarray(integers, np.int64))
        return self

    @classmethod
    def from_bytes(cls, saved: Any, op: Any, dtype: Any = "f64", *, ddof: float = 0, out: Any = None,
                   fast: bool = False) -> State:
        """The state that `bytes()` has saved; the other arguments as it was made with."""
        result = cls(op, dtype, ddof=ddof, out=out, fast=fast)
        result._known = _core.State(result._known.problem, saved)
        return result

    def __reduce__(self) -> Any:
        return _load_state, (bytes(self), self._op, self._kind, self._ddof, self._out, self._fast)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, State) and self._op == other._op and bytes(self) == bytes(other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<State of {self._label()} of {self.count} {self.dtype}>"


def _load_state(saved: bytes, op: Any, kind: str, ddof: float, out: str | None, fast: bool) -> State:
    return State.from_bytes(saved, op, name_of(kind), ddof=ddof, out=out and name_of(out), fast=fast)


#: The exact sums that an operator's state holds: of elements, squares, products or magnitudes.
_SUMS = {"sum": "x", "mean": "x", "nans": "x", "var": "x x^2", "std": "x x^2", "sumsq": "x^2", "norm2": "x^2", "dot": "xy", "norm1": "|x|",
         "describe": "x x^2"}
_SUM_SIZE = 1152  # bytes of one such sum (the engine's sizeof)
_REST_SIZE = 64  # bytes of all else of a group, rounded up


def _make_groups(p: _core.Problem, count: int) -> _core.Groups:
    """Make the states of groups, or raise a MemoryError that says what they need. (The system promises more memory than it has,
    and ends the process when it is written.)"""
    sums = {part for name, _ in p.values() for part in _SUMS.get(name, "").split()}
    size = count * (_SUM_SIZE * len(sums) + _REST_SIZE)
    too_many = MemoryError(f"the states of {count} groups need about {size / 1e9:.1f} GB; tally.group() of elements that are all "
                           "there needs memory for groups that occur, and numpy.unique(ids, return_inverse=True) numbers these")
    if size > os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"):
        raise too_many
    try:
        return _core.Groups(p, count)
    except MemoryError:
        raise too_many from None


class Groups(_Known):
    """The states of all groups of a grouped reduction, for elements that come in pieces.

    Parameters
    ----------
    op : str, tuple of str or Operator
        What to reduce by.
    groups : int
        How many groups there are.
    dtype : str or dtype, optional
        The elements' type.
    ddof, out
        As for `State`.

    Examples
    --------
    >>> g = tally.Groups("sum", 2)
    >>> g.update([1.0, 2.0], [0, 1]).update([3.0], [0]).value()
    array([4., 2.])
    """

    __slots__ = ("_count",)

    def __init__(self, op: Any, groups: int, dtype: Any = "f64", *, ddof: float = 0, out: Any = None):
        _Known.__init__(self, check_one(op), dtype, ddof, out)
        self._count = operator.index(groups)
        self._known = _make_groups(problem_of(self._op, self._kind, self._out, False, self._ddof), self._count)

    def update(self, x: Any, ids: Any, *, where: Any = None, skip_outside: bool = False,
               device: str | None = None) -> Groups:
        """Adds elements, each to the group of its id. Returns the groups."""
        t = as_host_array(x)
        dtype = _elements(t, self._kind)
        t_ids = HOST.ids(ids, None)
        numbers, more = t_ids.array, ("u8" if t_ids.type == "bool" else t_ids.type, self._count, skip_outside, False)
        chosen = HOST.mask(where, t_ids)
        mask = None if chosen is None else chosen.array
        if t.array.ndim != 1:
            raise ValueError("groups are fed arrays of one dimension")
        if t.array.shape != numbers.shape:
            raise ValueError(f"{t.array.size} elements, but {numbers.size} ids")
        if t.labelled is not None:
            for beside in filter(None, (t_ids, chosen)):
                check_labels(t, beside)
        if t.array.nbytes > BLOCK and self._count <= FEW_GROUPS and not self._is_over_tree():
            part = _core.Groups(self._known.problem, self._count)  # so that all of it is fed, or nothing
            groups_by_blocks(part, t.array, self._kind, mask, ("groups", numbers, *more), device)
            self._known.merge(part)
            return self
        self._known.feed(contiguous(t.array, dtype), None if mask is None else in_order(mask), ("groups", in_order(numbers), *more),
                         device)
        return self

    def _counts(self) -> np.ndarray[Any, Any]:
        """How many elements each group has."""
        counts: np.ndarray[Any, Any] = np.empty(self._count, np.uint64)
        self._known.counts(counts)
        return counts

    def value(self, *, fill_value: Any = None) -> Any:
        """An array with a result for each group; several values as a tuple. `fill_value`: what min, max, argmin and argmax are
        for a group without elements; else that is an error."""
        p: _core.Problem = self._known.problem
        arrays = tuple(np.empty(self._count, DTYPE[kind]) for _, kind in p.values())
        try:
            self._known.values(arrays)
        except ValueError:  # an index of nothing; all other results are there
            if fill_value is None:
                raise
            arrays[0][self._counts() == 0] = np.iinfo(np.uint64).max
        check_empty(p.values(), arrays, self._counts, fill_value)
        return gather(self._op, *(wrap_numpy(*shown(*what, array, self._kind)) for what, array in zip(p.values(), arrays)))

    @classmethod
    def from_bytes(cls, saved: Any, op: Any, groups: int, dtype: Any = "f64", *, ddof: float = 0,
                   out: Any = None) -> Groups:
        """The groups that `bytes()` has saved; the other arguments as they were made with."""
        result = cls(op, groups, dtype, ddof=ddof, out=out)
        result._known = _core.Groups(result._known.problem, result._count, saved)
        return result

    def __reduce__(self) -> Any:
        return _load_groups, (bytes(self), self._op, self._count, self._kind, self._ddof, self._out)

    def __len__(self) -> int:
        return self._count

    def __repr__(self) -> str:
        return f"<Groups: {self._count} of {self._label()} of {name_of(self._kind)}>"


def _load_groups(saved: bytes, op: Any, count: int, kind: str, ddof: float, out: str | None) -> Groups:
    return Groups.from_bytes(saved, op, count, name_of(kind), ddof=ddof, out=out and name_of(out))


