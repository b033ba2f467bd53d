"""Arrays by Arrow's C data interface: numbers are read where they lie; missing ones are an error that says so.

An array comes as two capsules, its type and its data; a column of several pieces as a stream of arrays. Whoever
takes a structure over calls its `release`, once; the capsule does so if nobody has taken it.
"""

from __future__ import annotations

import ctypes
from ctypes import POINTER, c_char_p, c_int, c_int64, c_void_p
from typing import Any

import numpy as np

_FORMATS = {b"c": "i1", b"C": "u1", b"s": "i2", b"S": "u2", b"i": "i4", b"I": "u4", b"l": "i8", b"L": "u8", b"e": "f2",
            b"f": "f4", b"g": "f8", b"b": "bits"}


#: The first letters of other formats, which are not reduced, and words for the error.
_OTHERS = {b"d:": "decimals: cast them to float64, which rounds each, or scale them to integers",
           b"td": "dates: cast them to integers", b"ts": "dates: cast them to integers", b"tt": "times: cast them to integers",
           b"tD": "durations: cast them to integers", b"+s": "tables of columns: give one of them",
           b"+": "lists or unions: give their numbers alone", b"n": "nulls alone", b"u": "texts", b"U": "texts", b"vu": "texts"}


class _Schema(ctypes.Structure):
    _fields_ = [("format", c_char_p), ("name", c_char_p), ("metadata", c_void_p), ("flags", c_int64), ("n_children", c_int64),
                ("children", c_void_p), ("dictionary", c_void_p), ("release", c_void_p), ("private", c_void_p)]


class _Array(ctypes.Structure):
    _fields_ = [("length", c_int64), ("null_count", c_int64), ("offset", c_int64), ("n_buffers", c_int64),
                ("n_children", c_int64), ("buffers", POINTER(c_void_p)), ("children", c_void_p), ("dictionary", c_void_p),
                ("release", c_void_p), ("private", c_void_p)]


class _Stream(ctypes.Structure):
    _fields_ = [("get_schema", c_void_p), ("get_next", c_void_p), ("get_last_error", c_void_p), ("release", c_void_p),
                ("private", c_void_p)]


def _release(structure: Any) -> None:
    if structure.release:
        ctypes.CFUNCTYPE(None, c_void_p)(structure.release)(ctypes.addressof(structure))


def _behind(capsule: Any, name: bytes, kind: Any) -> Any:
    get = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return kind.from_address(get(capsule, name))


class Memory:
    """Memory that NumPy's arrays lie in. They keep this object alive, and it `keep`, whose end releases the memory."""

    def __init__(self, address: int, size: int, kind: str, keep: Any = None):
        self.keep = keep
        self.__array_interface__ = {"data": (address, True), "shape": (size,), "typestr": kind, "version": 3}


def _numbers(schema: _Schema, array: _Array, keep: Any) -> np.ndarray[Any, Any]:
    kind = _FORMATS.get(schema.format)
    if schema.dictionary:
        raise TypeError("a dictionary-encoded Arrow array: reduce its indices, or decode it")
    if kind is None:
        what = next((text for start, text in _OTHERS.items() if schema.format.startswith(start)), "no numbers or booleans")
        raise TypeError(f"tally does not reduce Arrow's format {schema.format.decode()!r}, which is of {what}")
    extension = _extension(schema.metadata)
    if extension:
        raise TypeError(f"an Arrow array of the extension type {extension} is more than its numbers: give its storage")
    first, n = array.offset, array.length
    if array.buffers[0] and array.null_count != 0:
        there = _bits(array.buffers[0], first, n, keep)
        if not there.all():
            raise TypeError(f"the Arrow array has {n - int(np.count_nonzero(there))} nulls: drop them (drop_null()) or give "
                            "them a value (fill_null()) first")
    if n == 0:
        return np.empty(0, "?" if kind == "bits" else kind)
    if kind == "bits":
        return _bits(array.buffers[1], first, n, keep)
    dtype = np.dtype(kind)
    whole: np.ndarray[Any, Any] = np.asarray(Memory(array.buffers[1], first + n, dtype.str, keep))
    return whole[first:]


def _extension(metadata: int | None) -> str:
    """The name of an extension type, from a schema's pairs of texts, each behind its length in 32 bits; or ""."""
    if not metadata:
        return ""
    at = metadata

    def number() -> int:
        nonlocal at
        at += 4
        return ctypes.c_int32.from_address(at - 4).value

    def text() -> bytes:
        nonlocal at
        size = number()
        at += size
        return ctypes.string_at(at - size, size)

    pairs = {text(): text() for _ in range(number())}
    return pairs.get(b"ARROW:extension:name", b"").decode(errors="replace")


def _bits(address: int, first: int, n: int, keep: Any) -> np.ndarray[Any, Any]:
    packed = np.asarray(Memory(address, (first + n + 7) // 8, "|u1", keep))[first // 8:]
    return np.unpackbits(packed, bitorder="little")[first % 8:first % 8 + n].view(np.bool_)


def from_array(x: Any) -> np.ndarray[Any, Any]:
    """An array with __arrow_c_array__, where it lies; booleans, which are bits there, as bytes."""
    capsules = x.__arrow_c_array__()
    schema, array = (_behind(c, name, kind) for c, name, kind in zip(capsules, (b"arrow_schema", b"arrow_array"),
                                                                     (_Schema, _Array)))
    return _numbers(schema, array, capsules)


class _Taken:
    """A structure of our own that has been filled by a producer."""

    def __init__(self, structure: Any):
        self.structure = structure

    def __del__(self) -> None:
        _release(self.structure)


def from_stream(x: Any) -> np.ndarray[Any, Any]:
    """A column with __arrow_c_stream__, where it lies; TypeError if it lies in several pieces."""
    capsule = x.__arrow_c_stream__()
    stream = _behind(capsule, b"arrow_array_stream", _Stream)
    get = ctypes.CFUNCTYPE(c_int, c_void_p, c_void_p)
    schema = _Taken(_Schema())
    pieces = []
    error = get(stream.get_schema)(ctypes.addressof(stream), ctypes.addressof(schema.structure))
    while not error:
        piece = _Taken(_Array())
        error = get(stream.get_next)(ctypes.addressof(stream), ctypes.addressof(piece.structure))
        if error or not piece.structure.release:
            break
        if piece.structure.length:
            pieces.append(_numbers(schema.structure, piece.structure, piece))
    if error:
        raise ValueError(f"the Arrow stream failed with error {error}")
    if len(pieces) > 1:
        raise TypeError(f"the column lies in {len(pieces)} pieces: combine_chunks() or rechunk() first, or feed each to a "
                        "tally.State")
    if pieces:
        return pieces[0]
    return _numbers(schema.structure, _Array(buffers=(c_void_p * 2)()), None)
