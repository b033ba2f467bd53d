"""libtally_mpi under mpirun: the programs of this folder with different numbers of ranks.

MPIRUN is how ranks are started, PROGRAMS the folder of the programs. MPI_QUICK=1 takes few ranks and few checks: an MPI
that spins while it waits takes a time slice for each message where there are more ranks than cores."""
import json
import os
import random
import subprocess

import pytest

MPIRUN = os.environ.get("MPIRUN", "mpirun --oversubscribe").split()
PROGRAMS = os.environ["PROGRAMS"]
QUICK = os.environ.get("MPI_QUICK") == "1"
SEED = os.environ.get("TALLY_SEED") or str(random.randrange(1 << 32))
SOME = slice(int(SEED) % 3, None, 3) if QUICK else slice(None)
# As root Open MPI wants to be told twice.
ENVIRONMENT = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}


def run(ranks, name, *arguments, fails=False):
    done = subprocess.run([*MPIRUN, "-n", str(ranks), os.path.join(PROGRAMS, name), *arguments], env=ENVIRONMENT,
                          capture_output=True, text=True, timeout=300, check=False)
    assert (done.returncode != 0) == fails, f"{ranks} ranks, seed {SEED}: {done.stdout}{done.stderr}"
    return done.stdout if not fails else done.stderr


def digest(ranks, every):
    lines = run(ranks, "mpi_digest", SEED, str(every)).splitlines()
    return next(line for line in lines if line.startswith("digest"))


@pytest.fixture(scope="module")
def alone():
    """The digest of one process, for a share of the checks."""
    known = {}
    return lambda every: known.setdefault(every, digest(1, every))


@pytest.mark.parametrize("ranks", [2, 3] if QUICK else range(2, 14))
def test_digest_of_any_number_of_ranks(ranks, alone):
    every = {2: 5, 3: 97}[ranks] if QUICK else {2: 1, 3: 2}.get(ranks, 7)
    assert digest(ranks, every) == alone(every), f"seed {SEED}"


@pytest.mark.parametrize("ranks", [1, 2] if QUICK else [1, 2, 5, 29])
def test_how_many_messages_a_call_takes(ranks):
    assert "right" in run(ranks, "mpi_messages")


def test_more_ranks_than_a_frame_has_room_for(alone):
    """Extremes of more than 27 ranks take a second message, or a longer frame."""
    assert digest(29, 97) == alone(97), f"seed {SEED}"


@pytest.mark.parametrize("ranks", [1, 2] if QUICK else [1, 2, 3, 5])
def test_requests_complete_in_any_order(ranks):
    assert "right" in run(ranks, "mpi_requests")


@pytest.mark.parametrize("ranks", [1, 2] if QUICK else [1, 2, 3, 5])
def test_many_results(ranks):
    assert "right" in run(ranks, "mpi_shaped", SEED), f"seed {SEED}"


@pytest.mark.parametrize("ranks", [1, 3])
def test_arrays_in_the_memory_of_a_gpu(ranks, monkeypatch):
    """On the test double of CUDA, where this build has it."""
    double = os.path.join(PROGRAMS, "..", "tests", "cuda_double", "lib")
    if not os.path.isdir(double):
        pytest.skip("this build is without GPUs")
    monkeypatch.setitem(ENVIRONMENT, "LD_LIBRARY_PATH", double)
    assert "right" in run(ranks, "mpi_resident")


@pytest.mark.parametrize("ranks", [2] if QUICK else [2, 3, 4])
def test_a_rank_that_fails(ranks):
    assert "right" in run(ranks, "mpi_faults", *(["few"] if QUICK or ranks == 4 else []))


@pytest.mark.parametrize("ranks", [2] if QUICK else [3])
def test_the_command_prints_what_tally_prints(ranks, tmp_path):
    tally = os.path.join(PROGRAMS, "tally")
    if not os.path.exists(tally):
        pytest.skip("this build is without the tally command")
    numpy = pytest.importorskip("numpy")
    rng = numpy.random.default_rng(int(SEED))
    names = {}
    for name, array in (("a", rng.normal(size=20011)), ("b", rng.normal(size=20011).astype(">f8")),
                        ("bytes", rng.integers(0, 256, 77).astype("u1")), ("none", numpy.zeros(0, "f4"))):
        names[name] = str(tmp_path / f"{name}.npy")
        numpy.save(names[name], array)
    names["raw"] = str(tmp_path / "raw")
    rng.normal(size=1003).astype("<f4").tofile(names["raw"])
    for name, array in (("cube", rng.normal(size=(31, 17, 5))), ("fortran", numpy.asfortranarray(rng.integers(0, 9, (7, 11, 13)))),
                        ("ids", rng.integers(0, 40, 20011).astype("u2")), ("some", rng.integers(-2, 40, 20011)),
                        ("cuts", numpy.sort(rng.integers(0, 20012, 50))), ("marks", rng.random(20011) < 0.7),
                        ("few", rng.integers(0, 2, (31, 17, 5)).astype("u1")), ("of17", rng.integers(0, 7, 17).astype("i2")),
                        ("of11", numpy.sort(rng.integers(0, 12, 6)))):
        names[name] = str(tmp_path / f"{name}.npy")
        numpy.save(names[name], array)
    for words in ("sum a", "describe a", "prod b", "std,argmin,nonzero b --ddof 1", "dot a b", "xor bytes",
                  "sum raw --dtype f32 --out f64", "minmax none", "mean a --device cpu --threads 2", "sum cube --axis 1",
                  "mean,max fortran --axis 0,-1", "sum,count a --by ids", "argmin a --by some --skip-outside",
                  "describe a --by ids --groups 50", "var,nonzero a --segments cuts", "dot a b --by ids",
                  "sum none --segments 4", "sum,argmin,count a --mask marks", "describe cube --mask few",
                  "sum,max cube --axis -1 --mask few", "mean,argmax a --by ids --mask marks", "norm2 a --segments cuts --mask marks",
                  "sum,mean cube --axis 1 --by of17", "var,count cube --axis -2 --by of17 --groups 9 -o OUT",
                  "max fortran --axis 1 --segments of11 -o OUT", "sum cube --axis 0 --segments 31 --mask few", "sum,var cube --axis 1 -o OUT", "sum a --mask marks -o OUT", "min,argmin a --by ids -o OUT")[SOME]:
        words = [names.get(word, word) for word in words.split()]
        outs = [str(tmp_path / f"{who}.out.npy") for who in ("tally", "ranks")] if "OUT" in words else None
        one, ours = [[w if w != "OUT" else outs[i] for w in words] for i in range(2)]
        want = subprocess.run([tally, *one], capture_output=True, text=True, check=True).stdout
        assert run(ranks, "tally-mpi", *ours) == want, f"seed {SEED}: {words}"
        assert not outs or open(outs[0], "rb").read() == open(outs[1], "rb").read(), f"seed {SEED}: {words}"
    for words in ("describe a", "sum,argmin a --mask marks", "sum cube --axis 0,2", "sum,max a --by ids", "std a --segments cuts",
                  "count bytes --segments 7", "std cube --axis 1 --by of17", "nonzero cube --axis 1 -o -")[SOME]:
        words = [names.get(word, word) for word in words.split()] + ["--json"]
        if "-o" in words:
            words[words.index("-")] = str(tmp_path / "out.npy")
        want = json.loads(subprocess.run([tally, *words], capture_output=True, text=True, check=True).stdout)
        got = json.loads(run(ranks, "tally-mpi", *words))
        assert got.pop("ranks") == ranks
        for key in ("device", "seconds", "gbps"):
            assert got.pop(key) and want.pop(key)
        assert got == want, f"seed {SEED}: {words}"
    for words, line in (("sum nowhere", "nowhere cannot be opened"), ("sum raw", "raw elements need --dtype"),
                        ("maen a", "'maen' is no operator"), ("dot a bytes", "differ in type or length"),
                        ("sum a --dtype f32", "holds f64, and --dtype says f32"), ("argmin none", "there is no argmin"),
                        ("dot a", "takes two files"), ("sum a --by some", "below 0"), ("sum a --by ids --groups 9", "outside of the 9 groups"),
                        ("sum a --segments 7", "not whole segments"), ("sum cube --axis 3", "has no axis 3"), ("sum a --by b", "integers"),
                        ("sum a --by bytes", "77 ids"), ("prod a --axis 0", "is for 'tally'"), ("sum a --segments some", "offset"),
                        ("sum bytes --by bytes --groups 2^60", "memory"), ("sum a --mask ids", "single bytes"),
                        ("sum a --mask bytes", "77 bytes for 20011"), ("prod a --mask marks", "is for 'tally'"), ("sum a -o x", "-o goes with"),
                        ("sum cube --axis 0 --by of17", "17 ids for 31"), ("sum cube --axis 0,1 --by of17", "go with one axis"), ("sum a --what", "--what"))[SOME]:
        words = [names.get(word, word) for word in words.split()]
        said = [each for each in run(ranks, "tally-mpi", *words, fails=True).splitlines() if each.startswith("tally:")]
        assert len(said) == 1 and line in said[0], said


def test_the_model_of_the_example():
    """Its energy has the same bits for any number of ranks, by tally_allreduce()."""
    if not os.path.exists(os.path.join(PROGRAMS, "example_energy")):
        pytest.skip("this build is without Fortran")
    bits = {run(ranks, "example_energy").split()[2] for ranks in ((1, 2) if QUICK else (1, 2, 3, 8))}
    assert len(bits) == 1, bits


@pytest.mark.parametrize("ranks", [1, 2] if QUICK else [1, 2, 3])
def test_expressions_without_elements(ranks):
    """Fortran's arguments of any form, of which one rank's have no elements."""
    if not os.path.exists(os.path.join(PROGRAMS, "mpi_empty")):
        pytest.skip("this build is without Fortran")
    assert "right" in run(ranks, "mpi_empty")
