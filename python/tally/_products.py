"""Products of complex numbers, by any library: neighbours are multiplied, then neighbours of these, until one is left. Each
of the two parts is made of products and a sum that are rounded one by one, which is the same on every machine."""

from __future__ import annotations

from typing import Any


def products(library: Any, real: Any, imaginary: Any, mask: Any) -> tuple[Any, Any]:
    """Both parts of the products of rows, (results, elements). `mask`: which elements are there."""
    present = None
    if mask is not None:  # those that are there come first, in their order
        present = library.cast(mask, "int64").sum(1).reshape(-1, 1)
        order = library.argsort(library.cast(mask, "uint8") ^ 1)
        real, imaginary = library.take_along(real, order, 1), library.take_along(imaginary, order, 1)
        one = library.arange(real.shape[1], real).reshape(1, -1) < present
        real, imaginary = library.where(one, real, 1), library.where(one, imaginary, 0)
    while real.shape[1] > 1:
        n = real.shape[1]
        a, b, c, d = real[:, :n - 1:2], imaginary[:, :n - 1:2], real[:, 1::2], imaginary[:, 1::2]
        r, i = a * c - b * d, a * d + b * c
        if present is not None:  # the last one there goes on as it is
            both = library.arange(r.shape[1], real).reshape(1, -1) * 2 + 1 < present
            r, i = library.where(both, r, a), library.where(both, i, b)
            present = (present + 1) >> 1
        rest = n // 2 * 2
        real, imaginary = (r, i) if rest == n else (library.join([r, real[:, rest:]]), library.join([i, imaginary[:, rest:]]))
    return tuple(library.where(part == part, part, float("nan")) for part in (real[:, 0], imaginary[:, 0]))
