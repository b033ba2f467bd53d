"""Variances on a GPU that the engine has no operator for: of complex numbers, and about a mean that is given.

The words of a state (tally.h) hold n, the exact sum S and the exact sum of squares Q. The engine's last step makes
(n Q - S^2) / (n (n - ddof)) of them, and rounds it once. It is handed words with S = 0 that come to what is meant:

    about a mean m        n and Q - 2 m S + n m^2; of complex numbers these of both parts, added up
    of complex numbers    n (n - ddof) and n Q - S^2 of both parts, with no ddof: n' Q' / n'^2 is Q' / n'; both
                          times the ddof's denominator

These integers of some 4000 bits are made on the device, of digits of 16 bits in int64 arrays (results, digits): nothing
waits. Digit i weighs 2^(16 i) times the lowest bit, which is 2^-1088 in sums, and 2^-2176 in squares and products of two.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Sequence

from ._arrays import DTYPE, FLOATS
from ._arguments import problem

_COUNTS = 4  # words before a sum's limbs: NaNs, infinities of both signs, whether mixed
_SUM, _SQUARES = 68, 136  # limbs of 32 bits, of floats
_INTEGER_SUM, _SUM_AT, _SQUARES_AT = 4, 34, 68  # an integer sum's limbs, and where the limb of 1 is
_AT_SQUARES = 1 + _COUNTS + _SUM + _COUNTS
_RESULT = 16  # bytes of a tally_result
_AT_ONCE = 32  # results; each needs half a megabyte

_MOST_DENOMINATOR = 16  # of a ddof: digits stay below 2^46


def is_for_complex(n: int, ddof: float) -> bool:
    """Return whether variances of n complex numbers have that ddof: n (n - ddof) times its denominator is below 2^62."""
    denominator = Fraction(ddof).denominator
    return denominator <= _MOST_DENOMINATOR and n * n * denominator <= 1 << 62


class Moments:
    """The exact sums of the rows of an array: digits of |S|, its sign, digits of Q, and whether not all is finite."""

    def __init__(self, library: Any, words: Any, kind: str):
        limbs = _SUM if kind in FLOATS else _INTEGER_SUM
        total, squares = words[:, 1 + _COUNTS:1 + _COUNTS + limbs], words[:, 1 + 2 * _COUNTS + limbs:]
        negative = total[:, -1:] >> 63
        magnitude = (total ^ negative) & 0xffffffff
        magnitude[:, :1] = magnitude[:, :1] - negative
        if kind not in FLOATS:
            magnitude = _placed(library, magnitude, _SUM, _SUM_AT)
            squares = _placed(library, squares, _SQUARES, _SQUARES_AT)
        self.count = words[:, :1]
        self.special = words[:, 1:4].sum(1)
        self.sign = negative * 2 + 1
        self.sum, self.squares = _digits(library, magnitude), _digits(library, squares)


class Mean:
    """Numbers of an f64 array of one dimension: digits of their magnitudes, signs, and whether they are not finite."""

    def __init__(self, library: Any, m: Any, number: int):
        bits = library.view(m, "int64").reshape(len(m), 1)
        field = (bits >> 52) & 0x7ff
        mantissa = (bits & ((1 << 52) - 1)) + (field.clip(0, 1) << 52)
        up = field.clip(1, 2047) + 13 - library.arange(2 * _SUM, number).reshape(1, 2 * _SUM) * 16
        self.digits = ((mantissa << up.clip(0, 16)) >> (up * -1).clip(0, 63)) & 0xffff
        self.sign = 1 - ((bits >> 63) & 1) * 2
        self.special = (field.clip(2046, 2047) - 2046).reshape(len(m))


def _placed(library: Any, limbs: Any, count: int, at: int) -> Any:
    """The same limbs from `at` on among so many."""
    placed = library.zeros_beside(limbs, (limbs.shape[0], count))
    placed[:, at:at + limbs.shape[1]] = limbs
    return placed


def _digits(library: Any, words: Any) -> Any:
    """Words of 32 bits that are not negative as digits."""
    return library.stack([words & 0xffff, words >> 16], 2).reshape(words.shape[0], 2 * words.shape[1])


def _words(digits: Any) -> Any:
    """Digits, |digit| < 2^46, as words that are not carried."""
    pairs = digits.reshape(digits.shape[0], digits.shape[1] // 2, 2)
    return pairs[:, :, 0] + pairs[:, :, 1] * 65536


def _carried(digits: Any) -> Any:
    """The same number by digits below 2^18, of digits that are not negative: each hands its upper bits on."""
    out = digits & 0xffff
    for k in (1, 2, 3):
        piece = digits >> 16 * k
        piece = piece & 0xffff if k < 3 else piece
        out[:, k:] = out[:, k:] + piece[:, :-k]
    return out


def _product(library: Any, a: Any, b: Any) -> Any:
    """Products of numbers by digits of 16 bits, (results, A) by (results, B): digits below 136 2^33."""
    rows, first, second = a.shape[0], a.shape[1], b.shape[1]
    width = first + second
    table = library.zeros_beside(a, (rows, first, width))
    table[:, :, :second] = a.reshape(rows, first, 1) * b.reshape(rows, 1, second)
    # Row i is moved by i places where rows are one place shorter.
    moved = table.reshape(rows, first * width)[:, :first * (width - 1)].reshape(rows, first, width - 1)
    out = library.zeros_beside(a, (rows, width))
    out[:, :-1] = moved.sum(1)
    return out


def _handed(library: Any, moments: Sequence[Moments], means: Sequence[Mean] | None, count: Any, ddof: float) -> Any:
    """The words that are handed to the engine. `ddof`: one that is_for_complex(), where there are no means."""
    squares = moments[0].squares
    special = moments[0].special
    for m in moments[1:]:
        squares, special = squares + m.squares, special + m.special
    if means is None:
        total = _carried(squares * count)
        for m in moments:
            total = total - _product(library, m.sum, m.sum)
        exact = Fraction(ddof)
        total = total * exact.denominator
        count = (count * (count * exact.denominator - exact.numerator)).clip(0, None)
    else:
        total = squares
        for m, mean in zip(moments, means):
            square = _carried(_carried(_product(library, mean.digits, mean.digits)) * count)
            total = total + square - _product(library, mean.digits, m.sum) * (m.sign * mean.sign * 2)
            special = special + mean.special
    words = library.zeros_beside(total, (total.shape[0], _AT_SQUARES + _SQUARES))
    words[:, :1] = count
    words[:, 1] = special
    words[:, _AT_SQUARES:] = _words(total)
    return words


def _moments(library: Any, rows: Any, kind: str, number: int, stream: int, spec: str) -> Moments:
    """Of rows that lie one behind another."""
    p = problem(("var",), kind)
    count, n = rows.shape
    size, room = p.words_sizes(n, 1, spec)
    words, work = library.empty((count, size), "int64", number), library.empty((room,), "uint8", number)
    at, to, step = library.address(rows), library.address(words), n * DTYPE[kind].itemsize
    for i in range(count):
        p.enqueue_words(at + i * step, n, library.address(work), room, stream, to + 8 * size * i, spec)
    return Moments(library, words, kind)


def variances(op: str, parts: Sequence[Any], kind: str, mask: Any, means: Sequence[Any] | None, *, library: Any, number: int,
              out: str, name: str, ddof: float) -> Any:
    """The variances, or their roots, of rows: an array of one dimension of dtype `name`. `parts`: the rows of the real
    numbers of `kind`, or of complex numbers' two parts; `mask`: their elements that are there; `means`: None, or arrays of
    f64, one for each part."""
    stream, spec, results = library.stream(number), f"cuda:{number}", []
    p = problem((op,), "f64", None if out == "f64" else out, False, ddof if means is not None else 0.0)
    for start in range(0, parts[0].shape[0], _AT_ONCE):
        cut = slice(start, start + _AT_ONCE)
        rows = [part[cut] for part in parts]
        if mask is not None:
            rows = [library.where(mask[cut], part, 0) for part in rows]
        moments = [_moments(library, library.contiguous(part), kind, number, stream, spec) for part in rows]
        count = moments[0].count if mask is None else library.cast(mask[cut], "int64").sum(1).reshape(-1, 1)
        given = None if means is None else [Mean(library, m[cut], number) for m in means]
        words = _handed(library, moments, given, count, ddof)
        assert p.words_sizes(1, words.shape[0], spec)[0] == words.shape[1]
        values = library.empty((words.shape[0], _RESULT // DTYPE[out].itemsize), name, number)
        p.enqueue_values(library.address(words), words.shape[0], stream, library.address(values), spec)
        results.append(values[:, 0])
    return library.contiguous(library.join(results))
