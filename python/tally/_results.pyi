"""Results of several values, for type checkers."""

from typing import Any, Generic, NamedTuple

from typing_extensions import TypeVar

_T = TypeVar("_T", default=Any)

class MinMax(NamedTuple, Generic[_T]):
    min: _T
    max: _T

class Description(NamedTuple):
    count: Any
    nans: Any
    min: Any
    max: Any
    argmin: Any
    argmax: Any
    sum: Any
    mean: Any
    std: Any
