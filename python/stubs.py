"""Writes tally/__init__.pyi, the types of the public functions for type checkers: python stubs.py FILE. The build does so.

A function's overloads come in this order: with out=, whose type is the result's; of a whole array, which gives a number; with
keepdims=True, which gives an array; along one axis, which gives a number where the array is known to have one dimension, and an
array where it is known to have more; and of everything else, such as arrays of other libraries, Any. Where the number of
dimensions is not known, neither is the result along an axis, as with NumPy's own functions.
"""

import sys

HEAD = '''"""The public functions, for type checkers; docs/python.md and help() explain them. Written by stubs.py."""

from collections.abc import Sequence
from typing import Any, Literal, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Never, TypeVar

from ._checks import checked as checked
from ._operators import Operator as Operator
from ._results import Description as Description, MinMax as MinMax
from ._states import Groups as Groups, State as State

_Axis = SupportsIndex | tuple[SupportsIndex, ...] | None
_Host = NDArray[Any] | Sequence[Any]
_Reals = Sequence[float] | Sequence[Sequence[float]]
_Dims = tuple[int, int] | tuple[int, int, int] | tuple[int, int, int, int]
_Unknown = np.ndarray[tuple[Never], Any]  # an array of an unknown number of dimensions alone is one of these
_Small = np.bool_ | np.signedinteger[Any]
_Integer = np.bool_ | np.integer[Any]

_Out = TypeVar("_Out", bound=np.ndarray[Any, Any])
_S = TypeVar("_S", bound=np.generic)
_F = TypeVar("_F", bound=np.floating[Any])
_X = TypeVar("_X", bound=np.inexact[Any])

_Indices = Literal["argmin", "argmax", "count", "nans", "nonzero", "count_nonzero"]
_Floats = Literal["mean", "var", "std", "norm", "norm2"]
_Truths = Literal["any", "all"]
_Others = Literal["sum", "prod", "min", "max", "norm1", "norminf", "sumsq", "and", "or", "xor", "bitwise_and", "bitwise_or", "bitwise_xor"]

__version__: str
__all__: list[str]

def devices() -> list[dict[str, Any]]: ...
def load_ipython_extension(shell: Any) -> None: ...
'''

#: Parameters by name: their type, which an overload may narrow. All have defaults but the first.
TYPES = {"axis": "_Axis", "ord": "float | None", "dtype": "Any", "out": "Any", "ddof": "float", "keepdims": "bool", "initial": "Any",
         "where": "Any", "mean": "Any", "correction": "float | None", "fast": "bool", "device": "str | None", "progress": "bool",
         "offsets": "Any", "ids": "Any", "groups": "SupportsIndex | None", "skip_outside": "bool", "sorted": "bool", "fill_value": "Any"}
FALSE, TRUE, CAST = "Literal[False]", "Literal[True]", "type[_S] | np.dtype[_S]"

#: What elements give: of a TypeVar themselves.
SIGNED, UNSIGNED = ("_Small", "np.int64"), ("np.unsignedinteger[Any]", "np.uint64")
INTEGERS, COMPLEX = ("_Integer", "np.float64"), ("np.complexfloating[Any, Any]", "np.floating[Any]")
SUMS, OWN = [("_X", "_X"), SIGNED, UNSIGNED], [("_S", "_S")]
REALS = [("_F", "_F"), INTEGERS, COMPLEX]

#: Each function's parameters, in their order, and what its elements give: one result of all, or by elements' type.
FUNCTIONS = {
    "all": ("axis out keepdims * where device", "np.bool_"), "any": ("axis out keepdims * where device", "np.bool_"),
    "argmax": ("axis out * keepdims device", "np.int64"), "argmin": ("axis out * keepdims device", "np.int64"),
    "bitwise_and": ("axis out keepdims initial where * device", OWN), "bitwise_or": ("axis out keepdims initial where * device", OWN),
    "bitwise_xor": ("axis out keepdims initial where * device", OWN), "count_nonzero": ("axis * keepdims device", "np.int64"),
    "max": ("axis out keepdims initial where * device progress", OWN),
    "mean": ("axis dtype out keepdims * where fast device progress", [("_X", "_X"), INTEGERS]),
    "min": ("axis out keepdims initial where * device progress", OWN),
    "norm": ("ord axis keepdims * dtype device progress", REALS),
    "prod": ("axis dtype out keepdims initial where * device progress", SUMS),
    "std": ("axis dtype out ddof keepdims * where mean correction device progress", REALS),
    "sum": ("axis dtype out keepdims initial where * fast device progress", SUMS),
    "sumsq": ("axis dtype out keepdims * where device progress", SUMS),
    "var": ("axis dtype out ddof keepdims * where mean correction device progress", REALS),
}


def signature(name, first, parameters, result, needed=(), **types):
    """One overload. `needed` are parameters without a default; all behind them go by name."""
    text, starred, defaults = [first], False, False
    for p in parameters:
        if p == "*" or (p in needed and defaults and not starred):
            text += [] if starred else ["*"]
            starred = True
        if p != "*":
            text.append(f"{p}: {types.get(p, TYPES[p])}" + ("" if p in needed else " = ..."))
            defaults |= p not in needed
    return f"def {name}({', '.join(text)}) -> {result}: ..."


def of_one_array(name, order, results, array="NDArray[{}]", number="{}"):
    """The overloads of a function of one array."""
    ps = order.split()
    index = {"axis": "SupportsIndex | None"} if name.startswith("arg") else {}
    none = {p: "None" for p in ("dtype", "out") if p in ps}
    keeps = ["keepdims"]
    written = []

    def add(x, result, needed=(), **types):
        written.append(signature(name, f"x: {x}", ps, result, needed, **{**index, **types}))

    if "out" in ps:
        add("Any", "_Out", ["out"], out="_Out")
    add("_Unknown", number.format("Any"), ["axis"], **none, axis="SupportsIndex", keepdims=FALSE)
    for element, result in results if isinstance(results, list) else [(None, results)]:
        def of(dims):
            return f"np.ndarray[{dims}, Any]" if element is None else f"np.ndarray[{dims}, np.dtype[{element}]]"
        add("_Host" if element is None else of("Any"), number.format(result), **none, axis="None", keepdims=FALSE)
        add("_Host" if element is None else of("Any"), array.format(result), keeps, **none, keepdims=TRUE)
        add(of("tuple[int]"), number.format(result), ["axis"], **none, axis="SupportsIndex", keepdims=FALSE)
        add(of("_Dims"), array.format(result), ["axis"], **none, axis="SupportsIndex", keepdims=FALSE)
    if "dtype" in ps:
        add("_Host", "_S", ["dtype"], **{**none, "dtype": CAST}, axis="None", keepdims=FALSE)
        add("_Host", "NDArray[_S]", ["dtype", "keepdims"], **{**none, "dtype": CAST}, keepdims=TRUE)
    if isinstance(results, list) and INTEGERS in results:
        add("_Reals", "np.float64", **none, axis="None", keepdims=FALSE)
    add("Any", number.format("Any"))
    return written


def of_products(name, parameters, results):
    """The overloads of a function of two arrays."""
    a, b = ("a", "b") if name == "dot" else ("x1", "x2")
    none = {"dtype": "None", **({"out": "None"} if "out" in parameters else {"axis": "SupportsIndex"})}
    types = {p: t for p, t in none.items() if p != "dtype"}
    written = [signature(name, f"{a}: Any, {b}: Any", parameters, "_Out", ["out"], out="_Out")] if name == "dot" else []
    written += [signature(name, f"{a}: {x}, {b}: {y}", parameters, "Any", **types) for x, y in (("_Unknown", "Any"), ("Any", "_Unknown"))]
    for x, y, element, result in results:
        written.append(signature(name, f"{a}: np.ndarray[{x}, np.dtype[{element}]], {b}: np.ndarray[{y}, np.dtype[{element}]]",
                                 parameters, result, **none))
    last = {} if "out" in parameters else types
    return [*written, signature(name, f"{a}: Any, {b}: Any", parameters, "Any", **last)]


def of_parts(name, parameters, needed):
    """The overloads of segment and group."""
    axis = {"axis": "SupportsIndex"}
    return [signature(name, f"op: {op}, x: {x}", parameters, result, needed, **axis) for op, x, result in (
        ("_Indices", "_Host", "NDArray[np.integer[Any]]"), ("_Floats", "_Host", "NDArray[np.floating[Any]]"),
        ("_Truths", "_Host", "NDArray[np.bool_]"), ("_Others | Operator", "_Host", "NDArray[Any]"),
        ('Literal["minmax"]', "_Host", "MinMax[NDArray[Any]]"), ('Literal["describe"]', "Any", "Description"), ("Any", "Any", "Any"))]


def of_names(parameters):
    """The overloads of reduce."""
    none = {"out": "None"}
    written = []
    for op, number, array in (("_Indices", "np.int64", "NDArray[Any]"), ("_Floats", "np.floating[Any]", "NDArray[Any]"),
                              ("_Truths", "np.bool_", "NDArray[np.bool_]")):
        dtype = {} if op == "_Floats" else {"dtype": "None"}
        written.append(signature("reduce", f"op: {op}, x: _Host", parameters, number, **none, **dtype, axis="None", keepdims=FALSE))
        written.append(signature("reduce", f"op: {op}, x: _Host", parameters, array, ["keepdims"], **none, keepdims=TRUE))
    written.append(signature("reduce", "op: _Others | Operator, x: _Host", parameters, "NDArray[Any]", ["keepdims"], **none, keepdims=TRUE))
    written.append(signature("reduce", "op: Any, x: Any", parameters, "_Out", ["out"], out="_Out"))
    for op, result in (("minmax", "MinMax[Any]"), ("describe", "Description")):
        written.append(signature("reduce", f'op: Literal["{op}"], x: Any', parameters, result, **none))
    return [*written, signature("reduce", "op: Any, x: Any", parameters, "Any")]


def text():
    vector, dims = "tuple[int]", "_Dims"
    all_of_them = [of_one_array(name, *of) for name, of in FUNCTIONS.items()]
    all_of_them.append(of_one_array("minmax", "axis keepdims * device", OWN, "MinMax[NDArray[{}]]", "MinMax[{}]"))
    all_of_them.append([signature("describe", "x: Any", "axis keepdims * device".split(), "Description")])
    all_of_them.append(of_products("dot", "out * dtype device".split(), [
        (vector, vector, "_X", "_X"), (vector, vector, "np.signedinteger[Any]", "np.int64"), (dims, "Any", "_X", "NDArray[_X]")]))
    all_of_them.append(of_products("vecdot", "axis * dtype device".split(), [(vector, vector, "_X", "_X"), (dims, "Any", "_X", "NDArray[_X]")]))
    all_of_them.append(of_names("axis * dtype out keepdims where ddof fast device progress".split()))
    all_of_them.append(of_parts("segment", "offsets * axis dtype ddof fill_value device".split(), ["offsets"]))
    all_of_them.append(of_parts("group", "ids groups * axis dtype ddof where skip_outside sorted fill_value device".split(), ["ids"]))
    return HEAD + "".join(("@overload\n" if len(each) > 1 else "") + line + "\n" for each in all_of_them for line in each)


if __name__ == "__main__":
    with open(sys.argv[1], "w", encoding="utf-8") as file:
        file.write(text())
