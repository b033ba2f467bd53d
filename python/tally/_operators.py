"""Operators of the caller's: a C expression in `a` and `b`, compiled for the CPU by the system's compiler and for GPUs
by their drivers."""

from __future__ import annotations

import atexit
import ctypes
import functools
import os
import shlex
import shutil
import subprocess
import tempfile
import threading
from typing import Any

from . import _core
from ._arguments import element_of
from ._arrays import DTYPE

_C_TYPE = {"i8": "int8_t", "i16": "int16_t", "i32": "int32_t", "i64": "int64_t", "u8": "uint8_t", "u16": "uint16_t",
           "u32": "uint32_t", "u64": "uint64_t", "f32": "float", "f64": "double"}

_TEXT = """#include <math.h>
#include <stddef.h>
#include <stdint.h>
typedef {type} element;
void combine(void *context, const void *left, const void *right, void *out, size_t count) {{
    const element *x = left, *y = right;
    element *z = out;
    (void)context;
    for (size_t i = 0; i < count; i++) {{
        const element a = x[i], b = y[i];
        z[i] = (element)(
#line 1 "operator"
{expression}
        );
    }}
}}
"""

_lock = threading.Lock()


@functools.lru_cache(maxsize=None)
def _folder(process: int) -> str:
    folder = tempfile.mkdtemp(prefix="tally-")
    atexit.register(shutil.rmtree, folder, True)
    return folder


@functools.lru_cache(maxsize=256)
def _compile(expression: str, kind: str) -> ctypes.CDLL:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    if not shutil.which(compiler[0]):
        raise ValueError(f"an operator is compiled by the system's C compiler, and {compiler[0]} is not here: install "
                         "one, or set CC")
    folder = _folder(os.getpid())
    with tempfile.NamedTemporaryFile("w", dir=folder, suffix=".c", delete=False, encoding="utf-8") as text:
        text.write(_TEXT.format(type=_C_TYPE[kind], expression=expression))
    library = text.name[:-2] + ".so"
    made = subprocess.run([*compiler, "-O3", "-std=gnu11", "-fwrapv", "-ffp-contract=off", "-fno-fast-math", "-fPIC", "-shared",
                           "-o", library, text.name, "-lm"], capture_output=True, text=True, check=False)
    if made.returncode != 0:
        lines = [line for line in made.stderr.splitlines() if "error" in line]
        raise ValueError(f"the operator {expression!r} does not compile for {kind}: {lines[0] if lines else made.stderr}")
    return ctypes.CDLL(library)


class Operator:
    """An associative operator of yours, from a C expression.

    Parameters
    ----------
    expression : str
        An expression in `a` and `b`, both of the elements' type, in the C that the system's compiler, OpenCL and CUDA
        have in common. Integers wrap around (but the compilers of GPUs may take it that in a + b < a they do not). It is
        associative: a op (b op c) is (a op b) op c, or nearly so; it is evaluated over a tree whose shape depends on the
        number of elements alone.
    identity : number
        The result for no elements.
    commutative : bool, optional
        Whether operands may be exchanged.

    Examples
    --------
    >>> tally.reduce(tally.Operator("a * b % 1000003", identity=1), [123456, 234567, 345678])
    np.int64(378171)
    """

    def __init__(self, expression: str, identity: Any, commutative: bool = False):
        if not isinstance(expression, str) or not expression.strip():
            raise TypeError("an operator is a text such as 'a * b % 1000003'")
        if any(c in expression for c in "\r\n#;{}"):
            raise ValueError("an operator is one expression: no statements, no directives, no further lines")
        self.expression, self.identity, self.commutative = expression, identity, bool(commutative)

    def __repr__(self) -> str:
        return f"Operator({self.expression!r}, identity={self.identity!r}, commutative={self.commutative})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Operator) and repr(self) == repr(other)

    def __hash__(self) -> int:
        return hash(repr(self))

    def problem(self, kind: str) -> _core.Problem:
        """The problem of reducing elements of a type by it."""
        if kind not in _C_TYPE:
            raise TypeError(f"operators are for integers, float32 and float64, not for {kind}")
        with _lock:
            library = _compile(self.expression, kind)
        address = ctypes.cast(library.combine, ctypes.c_void_p).value
        identity = element_of("identity", self.identity, DTYPE[kind], "the elements are").tobytes()
        return _core.Problem(("user",), kind, None, False, 0.0,
                             (address, identity, self.commutative, self.expression, library))
