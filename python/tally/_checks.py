"""Errors of calls on GPU arrays that depend on the elements: an exact integer does not fit, an offset falls. Only a caller that
uses checked() waits for them."""

from __future__ import annotations

import contextlib
import contextvars
import struct
from typing import Any, Callable, Iterator

from . import _core

RESULT = 16  #: bytes of a tally_result and of a tally_outcome, both with their status at byte 8


def check_statuses(backend: Any, memory: Any, what: tuple[tuple[str, str], ...], is_outcome: bool) -> None:
    """Raises the error in memory: that of one outcome, or the first one of results, RESULT bytes for each of `what`."""
    for i, (op, kind) in enumerate(what[:1] if is_outcome else what):
        at, status, value = struct.unpack("=Qii", backend.to_host(memory[RESULT * i:RESULT * (i + 1)]))
        if status == 0:
            continue
        if is_outcome and value < 0:
            raise ValueError(f"offset or id {at} is out of order or out of bounds; the results mean nothing")
        where, (op, kind) = (f"result {at}: ", what[value]) if is_outcome else ("", (op, kind))
        if kind != "u64":
            raise OverflowError(f"{where}the exact {op} does not fit {kind}")
        raise ValueError(f"result {at} has no elements, so there is no {op}" if is_outcome else
                         f"attempt to get {op} of an empty sequence")


def check_fits(backend: Any, fits: Any, text: str) -> None:
    """Raises if some integer does not fit the type that it was converted to: `fits` is an array of bool."""
    if not all(backend.to_host(fits)):
        raise OverflowError(text)


def check_elements(backend: Any, has: Any, op: str) -> None:
    """Raises if a result has no elements."""
    there = backend.to_host(has)
    if not all(there):
        raise ValueError(f"result {there.index(0)} has no elements, so there is no {op}")


pending: contextvars.ContextVar[list[Callable[[], None]] | None] = contextvars.ContextVar("tally_checks", default=None)


@contextlib.contextmanager
def checked() -> Iterator[None]:
    """A with statement behind which calls on GPU arrays are known to have been right.

    A call on an array on a GPU does not wait, so it cannot raise what only the elements say: that an exact integer does
    not fit its type, that a segment has no least element, that an offset falls or an id lies outside. Such a result is
    0. At the end of this statement everything that was asked in it is waited for, and the first such error is raised.

    Examples
    --------
    >>> with tally.checked():
    ...     total = tally.sum([1, 2, 3])
    """
    checks: list[Callable[[], None]] = []
    token = pending.set(checks)
    _core._defer_checks(1)
    try:
        yield
    finally:
        _core._defer_checks(-1)
        pending.reset(token)
    for check in checks:
        check()
