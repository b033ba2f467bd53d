"""Results of several values."""

from __future__ import annotations

from typing import Any, NamedTuple


class MinMax(NamedTuple):
    """The least and the greatest element."""

    min: Any
    max: Any


class Description(NamedTuple):
    """What `tally.describe` says of an array."""

    count: Any
    nans: Any
    min: Any
    max: Any
    argmin: Any
    argmax: Any
    sum: Any
    mean: Any
    std: Any
