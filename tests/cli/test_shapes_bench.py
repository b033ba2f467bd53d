"""`tally bench` of results of parts: every kind of it, at small sizes, and what it cannot do."""

import pytest

KEYS = {"op", "dtype", "n", "results", "bytes_read", "bytes_written", "device", "threads", "isa", "data", "fast", "rounds",
        "median_ms", "gbps", "roof_gbps", "of_roof"}

CASES = [
    (("--shape", "1024x4", "--axis", "1"), 4096, 1024, 0, {"shape": [1024, 4], "axis": [1]}),
    (("--shape", "2^4x5x6", "--axis", "0,-1"), 480, 5, 0, {"shape": [16, 5, 6], "axis": [0, 2]}),
    (("--shape", "7", "--axis", "0"), 7, 1, 0, {"shape": [7], "axis": [0]}),
    (("--segments", "64", "-n", "4096"), 4096, 64, 65 * 8, {"segments": "64"}),
    (("--segments", "giant", "-n", "2^13"), 8192, 2002, 2003 * 8, {"segments": "giant"}),
    (("--segments", "empty", "-n", "2^13"), 8192, 576, 577 * 8, {"segments": "empty"}),
    (("--segments", "empty", "-n", "1"), 1, 64, 65 * 8, {"segments": "empty"}),
    (("--groups", "10", "-n", "1000"), 1000, 10, 4000, {"groups": 10, "ids": "random"}),
    (("--groups", "10", "--ids", "sorted", "-n", "1000"), 1000, 10, 4000, {"groups": 10, "ids": "sorted"}),
    (("--groups", "10", "--ids", "zipf", "-n", "1000"), 1000, 10, 4000, {"groups": 10, "ids": "zipf"}),
]


@pytest.mark.parametrize("op, dtype, values, elements", [("sum", "f64", 8, 8), ("dot", "f32", 4, 8), ("minmax", "i16", 4, 2)])
@pytest.mark.parametrize("args, n, results, keys, told", CASES)
def test_bench(tally, args, n, results, keys, told, op, dtype, values, elements):
    got = tally.json("bench", op, "--dtype", dtype, "--repeat", 1, *args)
    assert set(got) == KEYS | set(told) and told.items() <= got.items()
    assert (got["op"], got["dtype"], got["n"], got["results"], got["rounds"]) == (op, dtype, n, results, 1)
    assert got["bytes_read"] == (n * elements + 7) // 8 * 8 + keys and got["bytes_written"] == results * values
    moved = (got["bytes_read"] + got["bytes_written"]) * 1e-6
    assert got["gbps"] == pytest.approx(moved / got["median_ms"], rel=1e-3)
    assert got["of_roof"] == pytest.approx(got["gbps"] / got["roof_gbps"], rel=1e-3)


def test_table(tally):
    lines = tally("bench", "sum", "--segments", "zipf", "-n", "2^12", "--repeat", 1).splitlines()
    assert lines[0].startswith("sum of 4096 f64 (uniform) in segments: zipf, ") and lines[0].endswith(" results")
    assert [line.split()[0] for line in lines[4:]] == ["tally", "roof", "reads", "writes"]
    assert lines[3].split() == ["time", "moved", "of", "roof"]


@pytest.mark.parametrize("args, status, words", [
    (("--segments", "63", "-n", "64"), 1, "64 elements are not whole segments of 63"),
    (("--segments", "x"), 2, "--segments takes a length, or one of zipf giant empty; 'x' is none"),
    (("--shape", "4x4"), 2, "--shape needs an axis to reduce, as in --axis 1"),
    (("--axis", "1"), 2, "--axis goes with --shape, as in --shape 1000x4"),
    (("--shape", "4x4", "--axis", "2"), 2, "--axis 2: --shape 4x4 has the axes 0 to 1"),
    (("--shape", "4x", "--axis", "0"), 2, "--shape takes a whole number"),
    (("--shape", "x".join("1" * 17), "--axis", "0"), 2, "--shape 1x1"),
    (("--shape", "4x4", "--axis", "1", "-n", "4"), 2, "--shape tells how many elements there are; leave -n out"),
    (("--shape", "2^40x2^40", "--axis", "0"), 1, "--shape 2^40x2^40 has more elements than can be counted"),
    (("--shape", "2^50", "--axis", "0"), 1, "not enough memory for 1125899906842624 elements and 1 results"),
    (("--groups", "4", "--ids", "foo"), 2, "--ids takes one of random sorted zipf; 'foo' is none"),
    (("--ids", "random"), 2, "--ids goes with --groups"),
    (("--groups", "2^40"), 2, "--groups: ids are i32, so 2^31 - 1 is the most"),
    (("--groups", "3", "--segments", "4"), 2, "--shape, --segments and --groups exclude each other"),
])
def test_what_cannot_be(tally, args, status, words):
    assert tally.fails("bench", *args, status=status).startswith(words)


def test_argmin_of_nothing(tally):
    assert "has no elements, so there is no argmin" in tally.fails("bench", "argmin", "--segments", "empty", "-n", 4096)
