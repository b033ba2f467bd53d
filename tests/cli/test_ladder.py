"""`tally ladder` and `tally explain`: counts worked out by hand, checks that hold, one clear line on errors."""

import json
import os
import pathlib
import subprocess
from xml.etree import ElementTree

import pytest

import exact

ROOT = pathlib.Path(__file__).resolve().parents[2]

KERNELS = ["interleaved-modulo", "interleaved-mask", "interleaved-index", "contiguous", "shared-modulo",
           "shared-contiguous", "shared", "coarsened", "grid-stride", "vectorized", "shuffle", "single-pass"]
ALL = ["sequential"] + KERNELS + ["tally"]
FINISHES = ["relaunch", "atomic", "host"]
KEYS = {"name", "correct", "ulp_error", "median_ms", "mflops", "gbps", "of_roof", "improvement_mflops",
        "launches"}
COUNTS = {"steps", "rounds", "barriers", "all_rounds", "all_barriers", "useful", "operations", "slots", "issued",
          "efficiency", "divergent", "transactions", "fewest_transactions", "bank_conflicts", "bytes_read",
          "bytes_written", "atomics"}


def ladder(tally, *args, device="model"):
    return tally.json("ladder", "--device", device, *args)


def counts(tally, rung, *args):
    (row,) = ladder(tally, "--only", rung, *args)["kernels"]
    assert row["correct"]
    return row["counts"]


@pytest.fixture(scope="session")
def opencl(tally):
    done = tally.run("ladder", "--device", "opencl", "-n", "1", "--only", "shared")
    if b"no OpenCL platform" in done.stderr or b"without opencl" in done.stderr:
        pytest.skip("no OpenCL platform is here")
    if b"LeakSanitizer" in done.stderr:
        pytest.skip("the OpenCL platform does not free what it has, and the command is built to notice")


# ---- On the model: every rung, finish, length ----

@pytest.mark.parametrize("finish", FINISHES)
def test_model_runs_every_rung(tally, finish):
    got = ladder(tally, "-n", 5000, "--finish", finish, "--block", 64)
    assert (got["device"], got["n"], got["op"], got["dtype"]) == ("model", 5000, "sum", "f32")
    assert (got["block"], got["finish"]) == (64, finish)
    assert [k["name"] for k in got["kernels"]] == KERNELS + ["tally"]
    for k in got["kernels"]:
        assert KEYS <= set(k) and COUNTS <= set(k["counts"])
        assert k["correct"] is True and k["median_ms"] is None
        assert k["launches"] == 1 or finish == "relaunch"
        c = k["counts"]
        assert c["transactions"] >= c["fewest_transactions"]
        if k["name"] == "tally":  # it adds integers, and the model does not see that as the operator
            assert all(c[key] is None for key in ("steps", "rounds", "operations", "slots", "issued", "efficiency"))
            assert c["barriers"] > 0
            continue
        blocks = c["blocks"] if k["name"] != "single-pass" else 1
        assert c["useful"] == (4999 if finish == "relaunch" else 5000 - blocks)
        assert c["useful"] <= c["operations"] <= c["issued"]
        assert c["efficiency"] == pytest.approx(c["useful"] / c["issued"], rel=1e-5)
        assert c["atomics"] >= blocks if finish == "atomic" else c["atomics"] == 0 or k["name"] == "single-pass"


@pytest.mark.parametrize("n", [0, 1, 2, 31, 32, 33, 127, 128, 129, 255, 256, 257, 1023, 4099])
@pytest.mark.parametrize("finish", FINISHES)
def test_lengths(tally, n, finish):
    for dtype in ("f32", "i32", "u8"):
        rows = ladder(tally, "-n", n, "--finish", finish, "--block", 64, "--dtype", dtype)["kernels"]
        assert all(k["correct"] for k in rows)
        assert len({k["bits"] for k in rows}) == 1 or dtype == "f32"


@pytest.mark.parametrize("block", [1, 2, 32, 1024])
def test_blocks(tally, block):
    assert all(k["correct"] for k in ladder(tally, "-n", 3000, "--block", block, "--dtype", "i16")["kernels"])


@pytest.mark.parametrize("op", exact.OPS)
@pytest.mark.parametrize("dtype", exact.TYPES)
def test_operators_and_types(tally, op, dtype):
    for finish in FINISHES:
        rows = ladder(tally, "-n", 777, "--op", op, "--dtype", dtype, "--finish", finish, "--block", 32)
        for k in rows["kernels"]:
            assert k["correct"], k
            assert k["ulp_error"] == 0 or (op == "sum" and dtype in exact.FLOATS)


def test_exact_says_what_it_means(tally):
    for k in ladder(tally, "-n", 100000)["kernels"]:
        assert k["exact"] == (k["ulp_error"] == 0)


# ---- Counts, by hand ----

def test_counts_of_eight_elements(tally):
    """One block of 4 threads and 8 elements: 3 steps, 4 + 2 + 1 additions, one warp all the time."""
    for rung in ("interleaved-modulo", "interleaved-mask", "interleaved-index", "contiguous"):
        c = counts(tally, rung, "-n", 8, "--block", 4)
        assert (c["steps"], c["barriers"], c["operations"], c["slots"]) == (3, 3, 7, 96)
        assert c["efficiency"] == pytest.approx(7 / 96, rel=1e-5)
        assert c["bank_conflicts"] == 0
        # Each step reads left and right and writes left, 32 bytes in one line; thread 0 then reads the
        # result and writes it to the partials.
        assert c["transactions"] == 3 * 3 + 2
        assert (c["bytes_read"], c["bytes_written"]) == (7 * 8 + 4, 7 * 4 + 4)


def test_counts_of_shared(tally):
    """64 elements, 32 threads: one addition while loading, then strides 16, 8, 4, 2, 1."""
    c = counts(tally, "shared", "-n", 64, "--block", 32)
    assert (c["steps"], c["barriers"], c["operations"], c["slots"]) == (6, 6, 63, 6 * 32)
    assert (c["bytes_read"], c["bytes_written"]) == (64 * 4, 4)
    assert (c["transactions"], c["fewest_transactions"]) == (3, 3)


def test_bank_conflicts(tally):
    """The modulo tree in shared memory: threads 2, 4, 8 ... words apart queue for a bank."""
    assert counts(tally, "shared-modulo", "-n", 64, "--block", 32)["bank_conflicts"] > 0
    assert counts(tally, "shared-contiguous", "-n", 64, "--block", 32)["bank_conflicts"] == 0


def test_launches(tally):
    rows = {k["name"]: k["launches"] for k in ladder(tally, "-n", "2^16", "--block", 32)["kernels"]}
    assert rows["shared"] == 3  # 1024 partials, 16, 1
    assert rows["single-pass"] == 1
    assert rows["shuffle"] == 2


def test_coarsening(tally):
    """2 (C - 1) + log N rounds in a coarsened block, as the text derives."""
    for factor in (1, 2, 8):
        c = counts(tally, "coarsened", "-n", 2 * 64 * factor, "--block", 64, "--coarsen", factor)
        assert c["blocks"] == 1
        assert c["rounds"] == 2 * (factor - 1) + 7
        assert c["barriers"] == 7


def tree_slots(block):
    """What the tree of one block issues: strides block / 2 ... 1, at each of which the first warps add."""
    return sum(32 * max(1, (block >> i) // 32) for i in range(1, block.bit_length()))


@pytest.mark.parametrize("block", [32, 64, 256])
@pytest.mark.parametrize("factor", [1, 4, 16])
def test_efficiency_of_coarsened(tally, block, factor):
    """All threads add 2C - 1 times, then comes a tree: the more of the first, the nearer to 1."""
    c = counts(tally, "coarsened", "-n", 2 * block * factor, "--block", block, "--coarsen", factor)
    assert c["useful"] == c["operations"] == 2 * block * factor - 1
    assert c["slots"] == block + tree_slots(block)
    assert c["issued"] == (2 * factor - 1) * block + tree_slots(block)
    assert c["efficiency"] == pytest.approx(c["useful"] / c["issued"], rel=1e-5)


@pytest.mark.parametrize("block", [32, 64, 512])
def test_shuffle_applies_more_than_it_needs(tally, block):
    """Each element is added to what its thread has, which at first is 0; then all 32 lanes of a warp combine five
    times, and in the first warp once more for each halving of the number of warps."""
    c = counts(tally, "shuffle", "-n", 2 * block, "--block", block)
    warps = block // 32
    assert c["blocks"] == 1 and c["useful"] == 2 * block - 1
    assert c["operations"] == 2 * block + warps * 5 * 32 + 32 * (warps.bit_length() - 1)


def test_barriers_of_all_blocks(tally):
    """16 blocks of 32 threads, then one for their results: 6 barriers in each, 12 along the longest way."""
    c = counts(tally, "shared", "-n", 1024, "--block", 32)
    assert (c["blocks"], c["barriers"], c["all_barriers"]) == (17, 12, 17 * 6)


def test_atomics_are_not_operations(tally):
    """A block's result goes into the total by an atomic; the slots and the text's formula stay."""
    for op in ("sum", "min", "prod"):
        c = counts(tally, "contiguous", "-n", 4096, "--block", 128, "--op", op, "--finish", "atomic")
        assert (c["blocks"], c["operations"], c["useful"]) == (16, 4080, 4080)
        assert c["atomics"] >= 16
    (f,) = tally.json("explain", "interleaved-modulo", "--finish", "atomic")["formulas"]
    assert (f["value"], f["counted"]) == (3040, 3552)


# ---- explain ----

@pytest.mark.parametrize("rung", ["interleaved-modulo", "interleaved-mask"])
def test_explain_spread_threads(tally, rung):
    got = tally.json("explain", rung)
    assert (got["n"], got["block"], got["correct"]) == (1024, 512, True)
    active = [s["active_warps"] for s in got["steps"] if s["active_warps"]]
    assert active == [16] * 6 + [8, 4, 2, 1]
    strides = [s["stride"] for s in got["steps"] if s["active_warps"]]
    assert strides == [2**i for i in range(10)]
    lanes = [max(w["lanes"] for w in s["warps"]) for s in got["steps"] if s["active_warps"]]
    assert lanes == [32, 16, 8, 4, 2, 1, 1, 1, 1, 1]
    assert got["counts"]["operations"] == 1023
    assert got["counts"]["slots"] == 32 * sum(active)
    (f,) = got["formulas"]
    assert (f["value"], f["counted"]) == (3040, 3552)
    assert round(f["value_efficiency"], 2) == 0.34 and round(f["counted_efficiency"], 2) == 0.29
    assert "iteration 6, with stride 32" in f["difference"]
    assert got["mended_by"] == "interleaved-index"
    assert got["sentence"].startswith(f"What {rung} wastes: ")


@pytest.mark.parametrize("n, block", [(1024, 512), (5000, 64), (777, 32), (0, 1)])
def test_mask_is_modulo(tally, n, block):
    """A mask in place of a division changes no access, branch or addition."""
    args = ("-n", n, "--block", block)
    assert counts(tally, "interleaved-mask", *args) == counts(tally, "interleaved-modulo", *args)


@pytest.mark.parametrize("rung", ["interleaved-index", "contiguous"])
def test_explain_halves_its_threads(tally, rung):
    """The first threads are at work: 512, 256 ... 1 of them, in ten steps."""
    steps = [s for s in tally.json("explain", rung)["steps"] if s["active_warps"]]
    lanes = [sum(w["lanes"] for w in s["warps"]) for s in steps]
    assert lanes == [512 >> i for i in range(10)]
    assert [s["active_warps"] for s in steps] == [16, 8, 4, 2] + [1] * 6
    strides = [1 << i for i in range(10)]
    assert [s["stride"] for s in steps] == (strides if rung == "interleaved-index" else strides[::-1])


def test_explain_contiguous(tally):
    got = tally.json("explain", "contiguous")
    assert [s["active_warps"] for s in got["steps"] if s["active_warps"]] == [16, 8, 4, 2] + [1] * 6
    (f,) = got["formulas"]
    assert f["value"] == f["counted"] == got["counts"]["slots"] == 1152
    assert round(f["counted_efficiency"], 2) == 0.89
    assert "is right" in f["difference"]


def test_explain_coarsened(tally):
    for factor in (2, 4, 16):
        formulas = tally.json("explain", "coarsened", "--block", 128, "--coarsen", factor)["formulas"]
        assert [f["counted"] for f in formulas] == [8 * factor, 8 * factor, 2 * (factor - 1) + 8, 8]
        assert all(f["value"] == f["counted"] for f in formulas)


def test_formula_only_where_it_holds(tally):
    for args in (("-n", 1000), ("-n", 1024, "--block", 16), ("-n", 0)):
        got = tally.json("explain", "contiguous", *args)
        assert got["formulas"] == [] and "closed formula for the slots of contiguous" in got["no_formula"]
        assert got["no_formula"] in tally("explain", "contiguous", *args)
    assert tally.json("explain", "contiguous")["no_formula"] == ""
    assert tally.json("explain", "shared")["no_formula"] == ""


def test_one_is_singular(tally):
    text = tally("explain", "interleaved-modulo", "-n", 64, "--block", 32)
    assert "the block's 1 warp: 32 slots" in text and "1 warps" not in text and "1 launches" not in text
    text = tally("explain", "shared", "-n", 1000, "--block", 4)
    assert "... and 1 launch more, alike." in text


@pytest.mark.parametrize("rung", KERNELS)
def test_explain_and_ladder_agree(tally, rung):
    args = ("-n", 5000, "--block", 64)
    got = tally.json("explain", rung, *args)
    assert got["counts"] == counts(tally, rung, *args)
    for s in got["steps"]:
        assert s["operations"] == sum(w["operations"] for w in s["warps"])
        assert s["issued"] == sum(w["issued"] for w in s["warps"])
        assert s["rounds"] == max(w["issued"] for w in s["warps"]) // 32
        assert s["active_warps"] == sum(w["lanes"] > 0 for w in s["warps"])
        for w in s["warps"]:
            assert bin(int(w["mask"], 16)).count("1") == w["lanes"]
    text = tally("explain", rung, *args)
    assert text.splitlines()[0] == f"{rung}: {got['idea']}"
    assert text.splitlines()[-1] == got["sentence"]


def test_explain_picture(tally):
    lines = tally("explain", "contiguous").splitlines()
    assert any(line.endswith("  ################") for line in lines)
    assert any(line.endswith("  ########........") for line in lines)
    assert any(line.endswith("  1...............") for line in lines)


# ---- Timed ----

def check_timed(got, names):
    assert [k["name"] for k in got["kernels"]] == names
    before = None
    for k in got["kernels"]:
        assert k["correct"] and k["median_ms"] > 0 and "counts" not in k
        assert k["mflops"] == pytest.approx((got["n"] - 1) / k["median_ms"] / 1e3, rel=1e-3)
        if before is None:
            assert k["improvement_mflops"] is None
        else:
            gain = k["mflops"] - before["mflops"]
            assert k["improvement_mflops"] == pytest.approx(gain, rel=1e-2, abs=0.02 * k["mflops"])
        assert k["of_roof"] is None or k["of_roof"] <= 1.0001
        assert k["with_copy_ms"] >= k["median_ms"]
        before = k


def test_cpu(tally):
    got = ladder(tally, "-n", "2^16", device="cpu")
    check_timed(got, ["sequential", "tally"])
    assert got["kernels"][1]["exact"]
    assert ladder(tally, "-n", 0, device="cpu")["kernels"][1]["value"] == 0
    rows = ladder(tally, "-n", 1000, "--only", "tally", device="cpu:threads=1")["kernels"]
    assert [k["name"] for k in rows] == ["tally"]


@pytest.mark.parametrize("op", exact.OPS)
@pytest.mark.parametrize("dtype", exact.TYPES)
def test_sequential_loop(tally, op, dtype):
    for n in (0, 1, 1000):
        for k in ladder(tally, "-n", n, "--op", op, "--dtype", dtype, device="cpu")["kernels"]:
            assert k["correct"], k


@pytest.mark.parametrize("finish", FINISHES)
def test_opencl(tally, opencl, finish):
    got = ladder(tally, "-n", 100003, "--finish", finish, "--dtype", "i32", device="opencl")
    assert got["device"] == "opencl" and got["roof_gbps"] > 0 and got["roof"]
    assert [n for n in (k["name"] for k in got["kernels"]) if n != "tally"] == ALL[:-1]
    check_timed(got, [k["name"] for k in got["kernels"]])
    assert len({k["bits"] for k in got["kernels"]}) == 1


@pytest.mark.parametrize("n", [0, 1, 513])  # tests/opencl has more lengths, types and operators
def test_opencl_lengths(tally, opencl, n):
    for dtype, op in (("i32", "sum"), ("bf16", "max")):
        rows = ladder(tally, "-n", n, "--dtype", dtype, "--op", op, device="opencl")["kernels"]
        assert all(k["correct"] for k in rows), rows


def test_tables(tally):
    lines = tally("ladder", "--device", "cpu", "-n", "1e5").splitlines()
    assert lines[0].startswith("sum of 100000 f32 on cpu (")
    for word in ("approach", "MFLOPS", "GB/s", "of roof", "improvement", "launches", "with copy", "the texts"):
        assert any(word in line for line in lines)
    assert any("504 MFLOPS" in line for line in lines)
    assert "the texts" not in tally("ladder", "--device", "cpu", "-n", "1e5", "--dtype", "f64")
    model = tally("ladder", "--device", "model", "-n", "1000").splitlines()
    for rung in KERNELS:
        assert any(line.startswith(rung + " ") for line in model)


def test_tables_keep_their_columns_apart(tally):
    """The texts' column keeps its distance, however long the errors; what is not counted is a dash."""
    lines = tally("ladder", "--device", "cpu", "-n", "2^20").splitlines()
    head = next(line for line in lines if line.startswith("approach"))
    (row,) = [line for line in lines if line.startswith("sequential")]
    at = head.index("the texts")
    assert row[at:].startswith("504 MFLOPS") and row[at - 2:at] == "  "
    (row,) = [line for line in tally("ladder", "--device", "model", "-n", 100).splitlines() if line.startswith("tally")]
    assert row.split()[1] == "-" and row.split()[4:8] == ["-"] * 4


def test_list(tally):
    lines = tally("ladder", "--list").splitlines()
    assert [line.split()[0] for line in lines[:len(ALL)]] == ALL
    rungs = tally.json("ladder", "--list")["rungs"]
    assert [r["name"] for r in rungs] == ALL
    assert [r["name"] for r in rungs if r["kernel"]] == KERNELS
    for line, r in zip(lines, rungs):
        assert line.split(maxsplit=1)[1] == r["idea"]
        assert r["mended_by"] in ALL + [""]


# ---- The command line ----

def test_only(tally):
    for words in (("--only", "shared", "shuffle"), ("--only", "shared,shuffle"),
                  ("--only", "shuffle", "--only", "shared")):
        assert [k["name"] for k in ladder(tally, "-n", 100, *words)["kernels"]] == ["shared", "shuffle"]


FAILURES = [
    (("ladder", "--only", "frob"), "'frob' is no rung of the ladder; the rungs are " + " ".join(ALL)),
    (("ladder", "--device", "model", "--only", "sequential"), "rung 'sequential' does not run on model"),
    (("ladder", "--device", "cpu", "--only", "shared"), "rung 'shared' does not run on cpu"),
    (("ladder", "--device", "abacus"), "'abacus' names no device; a device is one of auto cpu cuda opencl model"),
    (("ladder", "--device", "model:1"), "there is no model:1; the last one here is model:0"),
    (("ladder", "--device", "model:x"), "after the colon comes a number, such as model:0"),
    (("ladder", "--device", "cpu:threads=x"), "threads"),
    (("ladder", "--device", "model", "-n", "2^50"), "not enough memory for 1125899906842624 f32 numbers: "),
    (("explain", "frob"), "'frob' is no rung of the ladder; those to explain are " + " ".join(KERNELS)),
    (("explain", "sequential"), "'sequential' is no kernel"),
]

USAGE = [
    (("ladder", "frob"), "ladder takes no argument such as 'frob'; rungs follow --only"),
    (("ladder", "--op", "median"), "'median' is no operator"),
    (("ladder", "--finish", "later"), "'later' is no way to finish; the ways are relaunch, atomic and host"),
    (("ladder", "--dtype", "f65"), "--dtype takes one of"),
    (("ladder", "--block", "48"), "--block takes a power of two from 1 to 1024; '48' is none"),
    (("ladder", "--block", "2048"), "--block takes a power of two from 1 to 1024; '2048' is none"),
    (("ladder", "--coarsen", "0"), "--coarsen takes a whole number from 1 up"),
    (("ladder", "-n", "x"), "'x' is none"),
    (("ladder", "--frob"), "--frob is no option of this command; see 'tally help ladder'"),
    (("ladder", "--only"), "--only needs a value"),
    (("explain",), "explain takes a rung"),
    (("explain", "shared", "shuffle"), "explain takes one rung; 'shuffle' is one too many"),
    (("explain", "shared", "--device", "cpu"), "--device goes with --kernel"),
]


@pytest.mark.parametrize("args, words", FAILURES, ids=[" ".join(a) for a, _ in FAILURES])
def test_failures(tally, args, words):
    assert words in tally.fails(*args)


@pytest.mark.parametrize("args, words", USAGE, ids=[" ".join(a) for a, _ in USAGE])
def test_usage(tally, args, words):
    assert words in tally.fails(*args, status=2)


def test_help(tally):
    for command in ("ladder", "explain"):
        text = tally("help", command)
        assert text == tally(command, "--help") and text.startswith(f"Usage: tally {command}")
        for option in ("-n", "--op", "--dtype", "--block", "--coarsen", "--finish", "--json"):
            assert option in text


# ---- Steps: what each lane accesses ----

def steps_of(tally, rung, *args):
    got = tally.json("explain", rung, "--steps", *args)
    assert got["correct"]
    return got


@pytest.mark.parametrize("n, block", [(16, 8), (13, 4), (1000, 64)])
@pytest.mark.parametrize("rung", KERNELS)
def test_steps_replay(tally, rung, n, block):
    """Replays the accesses: every read gives what was last written, a step's costs are its accesses', and each
    value that is written is the sum of what its thread has gathered since."""
    got = steps_of(tally, rung, "-n", n, "--block", block)
    first = {}
    for launch in range(got["launches"]):
        memory = {}
        for s in (s for s in got["steps"] if s["launch"] == launch):
            if s["step"] == 1:
                memory = {k: v for k, v in memory.items() if k[0] in ("x", "partials", "board", "total")}
            before = dict(memory)
            for key in ("transactions", "fewest_transactions", "bank_conflicts"):
                assert sum(a.get(key, 0) for a in s["accesses"]) == s[key]
            masks = [0] * len(s["warps"])
            for a in s["accesses"]:
                assert all(t // 32 == a["warp"] for t in a["threads"])
                if a["act"] == "apply":
                    masks[a["warp"]] |= sum(1 << t % 32 for t in a["threads"])
                elif a["act"] == "exchange":
                    give = dict(zip(a["threads"], a["given"]))
                    for t, f, v in zip(a["threads"], a["from_threads"], a["values"]):
                        assert f not in give or give[f] == v or v != v
                else:
                    assert a["file"].endswith(".cu") and a["line"] > 0
                    lines = a.get("lines") or a["banks"]
                    for e, line in zip(a["elements"], lines):
                        assert line == (e * 4 // 128 if "lines" in a else e % 32)
                    if "lines" in a:
                        assert len(set(a["lines"])) == a["transactions"]
                        assert a["transactions"] >= a["fewest_transactions"] > 0
                    for e, v in zip(a["elements"], a["values"]):
                        key = (a["array"], e)
                        if a["act"] == "read":
                            assert before.get(key, v) == v or memory.get(key) == v, (s["step"], key)
                            before.setdefault(key, v)
                            if launch == 0 and a["array"] == "x":
                                first.setdefault(e, v)
                        else:
                            memory[key] = v
            assert [int(w["mask"], 16) for w in s["warps"]] == masks
            memory = {**before, **memory}
    assert all(v in range(1, 10) for v in first.values())
    assert memory[("partials", 0)] == tally_sum(tally, rung, n)


def tally_sum(tally, rung, n, cache={}):
    """The sum of the digits: of those that a kernel reads one by one."""
    if n not in cache:
        got = steps_of(tally, "contiguous", "-n", n, "--block", 1024)
        first = {}
        for s in got["steps"]:
            for a in s["accesses"]:
                if a["act"] == "read" and a["array"] == "x":
                    for e, v in zip(a["elements"], a["values"]):
                        first.setdefault(e, v)
        assert sorted(first) == list(range(n))
        cache[n] = sum(first.values())
    return cache[n]


def test_steps_of_contiguous(tally):
    """Who combines what, and the line that does it, worked out by hand."""
    got = steps_of(tally, "contiguous", "-n", 8, "--block", 4)
    text = (ROOT / "src/kernels/ladder/contiguous.cu").read_text().splitlines()
    for s, stride in zip(got["steps"], [4, 2, 1]):
        right, left, write = [a for a in s["accesses"] if a["act"] != "apply"]
        threads = list(range(stride))
        assert right["threads"] == left["threads"] == write["threads"] == threads
        assert sorted([left["elements"], right["elements"]]) == [threads, [t + stride for t in threads]]
        assert write["elements"] == threads and write["act"] == "write"
        assert write["values"] == [a + b for a, b in zip(left["values"], right["values"])]
        assert "x[left] = combine(x[left], x[left + stride])" in text[write["line"] - 1]


def test_steps_are_of_few_elements(tally):
    assert "accesses" not in tally.json("explain", "shared")["steps"][0]
    assert "of at most 4096 elements" in tally.fails("explain", "shared", "--json", "--steps", "-n", 4097)
    assert "--steps goes with --json" in tally.fails("explain", "shared", "--steps", status=2)
    assert "--json is not drawn" in tally.fails("explain", "shared", "--json", "--draw", status=2)


def test_steps_without_symbols(tally, tmp_path):
    """A command whose symbols are gone tells the same, but for the shared arrays' names and the lines."""
    bare = tmp_path / "tally"
    done = subprocess.run(["strip", "-o", bare, tally.binary], capture_output=True)
    assert done.returncode == 0, done.stderr
    for rung in ("shared", "shuffle"):
        args = ["explain", rung, "-n", "100", "--block", "64", "--json", "--steps"]
        got = json.loads(subprocess.run([bare, *args], check=True, capture_output=True).stdout)
        want = tally.json(*args[:-2], "--steps")
        for s in want["steps"]:
            for a in s["accesses"]:
                a.pop("file", None)
                a.pop("line", None)
                if a.get("memory") == "shared":
                    a["array"] = "shared"
        assert got == want


# ---- Pictures ----

def draw(tally, *args, columns=100, locale="C.UTF-8"):
    return tally("explain", *args, "--draw", env={**os.environ, "COLUMNS": str(columns), "LC_ALL": locale})


PICTURE = """\
  x           0   1   2   3   4   5   6   7
  before      8   1   2   8   5   4   6   9
  thread      ◄─0─╯   ◄─1─╯   ◄─2─╯   ◄─3─╯
  after       9      10       9      15"""


def test_draw(tally):
    text = draw(tally, "interleaved-modulo", "-n", 8, "--block", 4)
    assert PICTURE in text
    assert "Step 2, stride 2, 2 threads apply the operator; a barrier ends it" in text
    assert "interleaved_modulo.cu:" in text and "x written: 1 transaction (fewest 1), line 0" in text
    assert text.splitlines()[1] == "sum of 8 f32: 43"
    plain = draw(tally, "interleaved-modulo", "-n", 8, "--block", 4, locale="C")
    assert plain.isascii() and PICTURE.replace("◄", "<").replace("─", "-").replace("╯", "+") in plain


@pytest.mark.parametrize("rung", KERNELS)
@pytest.mark.parametrize("n, block", [(0, 4), (1, 1), (13, 4), (16, 8), (7, 1024)])
def test_drawn_within_the_width(tally, rung, n, block):
    columns = 110
    done = tally.run("explain", rung, "-n", n, "--block", block, "--draw",
                     env={**os.environ, "COLUMNS": str(columns), "LC_ALL": "C.UTF-8"})
    text = done.stdout.decode()
    if done.returncode:
        assert block == 1024 and "choose a smaller -n or --block" in done.stderr.decode() and not text
    else:
        assert max(len(line) for line in text.splitlines()) <= columns


def test_too_wide_to_draw(tally):
    line = tally.fails("explain", "shared", "-n", 64, "--block", 32, "--draw", env={**os.environ, "COLUMNS": "80"})
    assert "a row of 64 elements needs" in line and "here are 80" in line
    assert "too wide to draw" in tally.fails("explain", "coarsened", "-n", 4096, "--block", 512, "--coarsen", 8, "--svg", "-")


@pytest.mark.parametrize("n,block", [(64, 32), (100, 64), (600, 512)])
def test_wide_arrays_are_folded(tally, n, block):
    """A picture is no wider for 600 elements than for 33: 32 a row. All that a step writes is in it, with its thread."""
    args = ["explain", "shared-contiguous", "-n", n, "--block", block]
    svg = ElementTree.fromstring(tally(*args, "--svg", "-"))
    steps = [s for s in json.loads(tally(*args, "--json", "--steps"))["steps"] if s["launch"] == s["block"] == 0]
    name = "{http://www.w3.org/2000/svg}"
    assert float(svg.get("width")) <= 84 + 32 * 40 + 16
    groups = svg.findall(name + "g")[:len(steps)]
    for s, g in zip(steps, groups):
        texts = lambda kind: sorted(int(e.text) for e in g.iter(name + "text") if e.get("class") == kind and e.text.isdigit())
        written = [(e, t) for a in s["accesses"] if a["act"] == "write" for e, t in zip(a["elements"], a["threads"])]
        assert sum(r.get("class") == "cell new" for r in g.iter(name + "rect")) == len(written)
        if s["operations"] and s["stride"]:
            assert texts("t") == sorted(t for _, t in written)
            crossing = sorted(f"+{e + s['stride']}" for e, _ in written if e // 32 != (e + s["stride"]) // 32)
            assert sorted(e.text for e in g.iter(name + "text") if e.get("class") == "i" and e.text[0] == "+") == crossing
            rows = {k // 32 for e, _ in written for k in (e, e + s["stride"])}
            shown = [int(e.text) for e in g.iter(name + "text") if e.get("class") == "i" and e.text.isdigit()]
            assert {e // 32 for e in shown} == rows


@pytest.mark.parametrize("rung", KERNELS)
def test_svg(tally, rung, tmp_path):
    file = tmp_path / "picture.svg"
    done = tally.run("explain", rung, "--svg", file)
    assert done.returncode == 0 and done.stdout == done.stderr == b""
    svg = ElementTree.parse(file).getroot()
    name = "{http://www.w3.org/2000/svg}"
    assert svg.find(name + "title").text == f"{rung}, step by step"
    assert "16 elements" in svg.find(name + "desc").text
    width, height = float(svg.get("width")), float(svg.get("height"))
    for text in svg.iter(name + "text"):
        assert 0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height
    assert "prefers-color-scheme: dark" in svg.find(name + "style").text
    assert "No such file or directory" in tally.fails("explain", rung, "--svg", tmp_path / "no" / "x.svg")
