"""The kernels' keys (src/kernels/certain/order.h) sort as elements do: all of 16 bits and fewer, a sample of longer ones."""

import os
import subprocess

import numpy as np
import pytest

import data

KEYS = os.environ.get("KEYS")
FLOATS = {"f16": (16, 0x7C00), "bf16": (16, 0x7F80), "f32": (32, 0x7F800000), "f64": (64, 0x7FF0000000000000)}  # width, infinity
INTEGERS = {"i16": (16, True), "i64": (64, True), "u8": (8, False), "u32": (32, False)}  # width, signed

pytestmark = pytest.mark.skipif(not KEYS, reason="KEYS names the program that makes keys")


def elements(name):
    """The bits of elements: all there are, or edges, neighbours and random ones."""
    width = (FLOATS.get(name) or INTEGERS[name])[0]
    if width <= 16:
        return list(range(1 << width))
    g, mask = data.rng(f"keys {name}"), (1 << width) - 1
    edges = [0, 1, 1 << (width - 1), mask, FLOATS[name][1] if name in FLOATS else 77]
    edges += [e | 1 << (width - 1) for e in edges]
    near = {(e + d) & mask for e in edges for d in range(-3, 4)}
    return sorted(near | {int(b) & mask for b in g.integers(0, 1 << 63, 2000, dtype=np.uint64) * np.uint64(2) + np.uint64(1)})


def is_nan(name, bits):
    return name in FLOATS and bits & ((1 << (FLOATS[name][0] - 1)) - 1) > FLOATS[name][1]


def place(name, bits):
    """Where an element stands among all of its type that are no NaNs, as a number that rises with it: -0 before +0."""
    if name in FLOATS:
        sign = 1 << (FLOATS[name][0] - 1)
        return -1 - (bits & (sign - 1)) if bits & sign else bits
    width, signed = INTEGERS[name]
    return bits - (1 << width) if signed and bits >> (width - 1) else bits


def keys(name, bits, turned):
    """Key, other key, key that NaNs share and element of the key, by element; and the greatest key of a number."""
    done = subprocess.run([KEYS, name, str(turned), str(len(bits))], input=np.array(bits, np.uint64).tobytes(),
                          stdout=subprocess.PIPE, check=True)
    found = np.frombuffer(done.stdout, np.uint64).tolist()
    return [found[4 * i: 4 * i + 4] for i in range(len(bits))], found[-1]


@pytest.mark.parametrize("turned", [0, 1])
@pytest.mark.parametrize("name", [*FLOATS, *INTEGERS])
def test_keys(name, turned):
    bits = elements(name)
    found, most = keys(name, bits, turned)
    there = dict(zip(bits, found))
    numbers = sorted((b for b in bits if not is_nan(name, b)), key=lambda b: place(name, b), reverse=bool(turned))
    least = most + 1
    for b in reversed(numbers):
        assert there[b][0] < least, hex(b)
        least = there[b][0]
    assert least == 0 and there[numbers[-1]][0] == most
    others = dict(zip(bits, keys(name, bits, 1 - turned)[0]))
    for b in bits:
        key, other, shared, element = there[b]
        assert other == others[b][0], hex(b)
        if is_nan(name, b):
            assert key > most and other > most and shared == most + 1, hex(b)
        else:
            assert shared == key and element == b, hex(b)
