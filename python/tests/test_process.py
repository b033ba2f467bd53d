"""What surrounds the calls: threads, fork, a subinterpreter, Ctrl-C, memory, the command, documentation, types."""

import ast
import doctest
import gc
import importlib
import inspect
import json
import os
import pathlib
import pickle
import pydoc
import re
import runpy
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time
import tracemalloc
import types
import typing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import tally


def python(text, **more):
    return subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120, **more)


def resident():
    with open("/proc/self/statm", encoding="ascii") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_threads(rng):
    """Many threads, with arrays, problems, states and groups that they share."""
    x, few, ids = rng.standard_normal((40, 20_000)), rng.standard_normal(16), rng.integers(0, 9, 20_000)
    calls = (lambda: tally.sum(x), lambda: tally.var(x, axis=1), lambda: tally.argmax(x, axis=0), lambda: tally.argmin(few),
             lambda: tally.minmax(few), lambda: tally.mean(x[:2].astype(">f8"), axis=0), lambda: tally.sum(few, initial=1.5),
             lambda: tally.group("mean", x[0], ids), lambda: tally.segment("max", x[0], 100), lambda: tally.reduce("std,count", few),
             lambda: tally.sum(memoryview(few)), lambda: tally.std(few + 1j))
    want = [pickle.dumps(call()) for call in calls]
    states, groups = [tally.State("sum"), tally.State("std")], tally.Groups("sum", 9)

    def work(i):
        for k in range(len(calls)):
            k = (k + i) % len(calls)
            assert pickle.dumps(calls[k]()) == want[k], k
        for s in states:
            s.update(x[i])
        if i % 4 == 0:
            states[0].__iadd__(states[0].copy().clear()).value()
        groups.update(x[i], ids)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(40)))
    assert states[0].value() == tally.sum(x) and states[1].value() == tally.std(x)
    assert np.array_equal(groups.value(), tally.group("sum", x.reshape(-1), np.tile(ids, 40)))


def test_other_threads_go_on():
    """The interpreter's lock is given up while the engine works."""
    x, ticks, done = np.broadcast_to(np.ones(1), 1 << 26), [], threading.Event()

    def tick():
        while not done.is_set():
            ticks.append(time.perf_counter())
            time.sleep(0.001)

    t = threading.Thread(target=tick)
    t.start()
    start = time.perf_counter()
    tally.prod(x)
    end = time.perf_counter()
    done.set()
    t.join()
    assert sum(start < at < end for at in ticks) > 3


def test_fork(rng):
    x = rng.standard_normal(1 << 20)
    want = tally.sum(x)
    read, write = os.pipe()
    if (child := os.fork()) == 0:
        ok = tally.sum(x) == want and tally.sum(x.reshape(1024, -1), axis=0).shape == (1024,)
        os.write(write, b"1" if ok else b"0")
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 1) == b"1"
    os.close(read)
    os.close(write)


def test_subinterpreter():
    """The extension by itself: NumPy knows no subinterpreters."""
    done = python("""
        import sys
        try:
            import _xxsubinterpreters as sub
        except ImportError:
            import _interpreters as sub
        text = '''
        import importlib.util, array
        spec = importlib.util.spec_from_file_location("tally._core", %r)
        core = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(core)
        p = core.Problem(("sum", "var"), "f64", None, False, 0.0, None, False)
        s = core.State(p)
        s.feed(array.array("d", [1e16, 1.0, -1e16]), None, None)
        assert s.value()[0] == 1.0, s.value()
        '''
        import textwrap
        from tally import _core
        text = textwrap.dedent(text) % _core.__file__
        for _ in range(3):
            i = sub.create()
            failed = (sub.run_string if hasattr(sub, "run_string") else sub.exec)(i, text)
            assert failed is None, failed
            sub.destroy(i)
        import tally
        assert tally.sum([1, 2]) == 3
        print("fine")
        """)
    assert done.stdout.strip() == "fine", done.stderr


@pytest.mark.parametrize("call", ["tally.prod(x)", "tally.sum(x.reshape(-1, 4), axis=0)", "tally.var(x.reshape(4, -1), axis=1)",
                                  "tally.sum(x[::-1])", "tally.group('sum', x, ids)", "tally.State('prod').update(x)",
                                  "tally.sum(x.view('>f8'), axis=None)"])
def test_interrupt(call):
    """Ctrl-C ends a long call, soon, and nothing is broken. (No time is asserted but one a hundred times as long.)"""
    done = python(f"""
        import os, signal, threading, time
        import numpy as np, tally
        x = np.lib.stride_tricks.as_strided(np.ones(1), (1 << 33,), (0,)) if 'x[::-1]' in {call!r} else np.zeros(1 << 27)
        ids = np.zeros(1 << 27, 'i1') if 'ids' in {call!r} else None
        signal.signal(signal.SIGINT, signal.default_int_handler)  # (what a shell has put behind it ignores Ctrl-C)
        tally.sum(np.ones(1 << 20))
        def later():
            time.sleep(0.2)
            global sent
            sent = time.perf_counter()
            os.kill(os.getpid(), signal.SIGINT)
        threading.Thread(target=later).start()
        try:
            while True:
                {call}
        except KeyboardInterrupt:
            took = time.perf_counter() - sent
        assert tally.sum(np.ones(1 << 22)) == 1 << 22
        print(took)
        """)
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) < 10


LOOKS = r"""
#define _GNU_SOURCE
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
/* Stands before libc's: the library asks the coarse clock wherever it looks whether to stop. Counted are the pages that the
 * main thread meets for the first time between two looks. */
static long last, most, count, counting;
static long pages(void) {
    struct rusage r;
    getrusage(RUSAGE_THREAD, &r);
    return r.ru_minflt;
}
static void look(void) {
    const long now = pages();
    if (now - last > most) most = now - last;
    last = now;
    count++;
}
int clock_gettime(clockid_t id, struct timespec *t) {
    if (counting && id == CLOCK_MONOTONIC_COARSE && getpid() == syscall(SYS_gettid)) look();
    return (int)syscall(SYS_clock_gettime, id, t);
}
void looks_begin(void) { most = count = 0; last = pages(); counting = 1; }
long looks_end(void) { look(); counting = 0; return most; }
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts by getrusage(RUSAGE_THREAD)")
@pytest.mark.skipif("asan" in os.environ.get("LD_PRELOAD", ""), reason="ASan's own memory would be counted, too")
def test_pieces_between_looks(tmp_path):
    """How much of an array a thread takes between two looks at whether to stop, counted and not timed: memory that nobody
    has touched is met page by page. What is not NumPy's zeros lies in shared memory, which is met 64 KiB at a time."""
    (tmp_path / "looks.c").write_text(LOOKS)
    subprocess.run([os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-o", str(tmp_path / "looks.so"),
                    str(tmp_path / "looks.c")], check=True)
    zeros = [f"tally.{op}({x})" for op in ("sum", "var", "prod", "argmax")
             for x in ("x", "x.reshape(-1, 4), axis=0", "x.reshape(2, -1), axis=1", "x.reshape(4096, -1), axis=0",
                       "x.reshape(-1, 256), axis=0", "x[::-1]", "x.reshape(-1, 2048)[:, ::2], axis=1")]
    zeros += ["tally.norm(x, ord=1)", "tally.count_nonzero(x)", "tally.sum(x.reshape(4, -1), axis=1, where=few)", "tally.sum(x, dtype='f4')",
              "tally.prod(x, dtype='f4')", "tally.sum(x.view('>f8'))", "tally.var(x.view('>f8').reshape(4, -1), axis=1)",
              "tally.sum(x, initial=2.5)", "tally.sum(x, fast=True)", "tally.bitwise_xor(x.view('i8'))", "tally.all(x.view("'"?"'"))",
              "tally.dot(x, x)", "tally.vecdot(x.reshape(4, -1), x.reshape(4, -1))", "tally.sum(x.view('c16'))",
              "tally.var(x.view('c16'))", "tally.var(x, mean=1.5)", "tally.sum(x.view('u1'))", "tally.sum(x.view('f4'))",
              "tally.segment('sum', x, 4)", "tally.segment('var', x, 1 << 20)", "tally.segment('sum', x[::-1], 512)",
              "tally.segment('prod', x, [0, 5, x.size])", "tally.group('sum', x, ids[:x.size], groups=7)", "tally.group('max', x, ids[:x.size], groups=7, fill_value=0)",
              "tally.group('prod', x, ids[:x.size], groups=7)", "tally.State('sum').update(x)", "tally.State('prod').update(x)",
              "tally.State('describe').update(x[::-1])", "tally.Groups('mean', groups=7).update(x, ids[:x.size])",
              "tally.reduce(operator, x.view('i8'))", "tally.reduce('count,mean,std', x, axis=0)"]
    long = ["tally.segment('prod', x, [0, 5, x.size])", "tally.var(x.reshape(4, -1), axis=1)", "tally.sum(x.reshape(-1, 4), axis=0)",
            "tally.argmax(x.reshape(-1, 256), axis=0)", "tally.segment('sum', x, 2)"]
    wild = ["tally.sum(w)", "tally.var(w)", "tally.sum(w.reshape(-1, 4), axis=0)", "tally.sum(w.reshape(4, -1), axis=1)",
            "tally.var(w.reshape(512, -1), axis=0)", "tally.sum(w[::-1])", "tally.group('sum', w, ids[:w.size], groups=7)"]
    done = python(f"""
        import ctypes, mmap, os
        import numpy as np, tally
        looks = ctypes.CDLL({str(tmp_path / "looks.so")!r})
        operator = tally.Operator("a * b % 1000003", identity=1)
        n, few, ids = 1 << 23, np.ones((4, 1), bool), np.ones(1 << 23, "u1")
        rng = np.random.default_rng(1)
        def of_file(data):
            f = os.memfd_create("wild")
            os.write(f, data)
            return lambda: np.frombuffer(mmap.mmap(f, len(data)), "f8")
        wild = of_file(np.ldexp(rng.standard_normal(1 << 21), rng.integers(-900, 900, 1 << 21)).tobytes())
        def pages(call, **names):
            looks.looks_begin()
            eval(call, globals(), names)
            return looks.looks_end()
        for call in {zeros!r}:
            pages(call, x=np.zeros(1 << 20)), print(pages(call, x=np.zeros(n)) >> 8)
        for call in {long!r}:
            print(pages(call, x=np.zeros(1 << 27)) >> 8)
        with np.errstate(all="ignore"):
            for call in {wild!r}:
                print(pages(call, w=wild()) >> 4)
        print(pages("np.add.reduce(x)", x=np.zeros(n)) >> 8, pages("np.add.reduce(w)", w=wild()) >> 4)
        """, env={**os.environ, "NUMPY_MADVISE_HUGEPAGE": "0", "LD_PRELOAD": ":".join(filter(None, (os.environ.get("LD_PRELOAD"), str(tmp_path / "looks.so"))))})
    assert done.returncode == 0, done.stderr
    *took, seen, seen_wild = map(int, done.stdout.split())
    assert seen >= 64 and seen_wild >= 16, "all of an array is seen where nobody looks"
    took = dict(zip(zeros + long + wild, took))
    assert max(took.values()) <= 16, {call: megabytes for call, megabytes in took.items() if megabytes > 16}


def test_a_signal_handler_that_raises():
    class Mine(Exception):
        pass

    def handler(*_):
        raise Mine

    old = signal.signal(signal.SIGALRM, handler)
    x = np.zeros(1 << 25)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1)
        with pytest.raises(Mine):
            while True:
                tally.prod(x)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def every_call(x):
    for op in ("sum", "mean", "var", "min", "argmax", "any", "norm", "prod", "minmax", "describe"):
        getattr(tally, op)(x)
        getattr(tally, op)(x, axis=0)
    tally.sum(x.astype(">f8"), axis=0)
    tally.sum(x, initial=1.0, where=x > 0, axis=1)
    tally.segment("sum", x, [0, 3, 10])
    tally.group("sum", x[0], np.arange(10) % 3)
    s = tally.State("var").update(x)
    s += pickle.loads(pickle.dumps(s))
    s.value()
    for bad in (lambda: tally.sum(x, axis=9), lambda: tally.sum(x, device="none"), lambda: tally.sum(np.array(["a"])),
                lambda: tally.sum(np.array([2**62] * 3)), lambda: tally.State.from_bytes(b"12", "sum")):
        try:
            bad()
        except Exception:
            pass


def test_nothing_leaks():
    x = np.ones((10, 10))
    for _ in range(50 if getattr(sys, "_is_gil_enabled", lambda: True)() else 500):  # without a lock caches take longer to fill
        every_call(x)
    gc.collect()
    tracemalloc.start()
    every_call(x)
    gc.collect()
    grown = []
    while len(grown) < 12 and (not grown or grown[-1] >= 2_000):  # Python's own caches fill for a while; what leaks grows for ever
        before = tracemalloc.get_traced_memory()[0]
        for _ in range(200):
            every_call(x)
        gc.collect()
        grown.append(tracemalloc.get_traced_memory()[0] - before)
    tracemalloc.stop()
    assert grown[-1] < 2_000, grown
    before = resident()
    for _ in range(300):
        every_call(x)
    assert resident() - before < 4 << 20


def test_extra_memory():
    """Under 16 MB beside the array and the result. (Linux lowers the mark of the most memory when it is told to.)"""
    calls = ["tally.sum(x)", "tally.sum(x, axis=0)", "tally.sum(x, axis=1)", "tally.var(x.T, axis=0)", "tally.sum(x, where=m)",
             "tally.sum(x, dtype='f4')", "tally.sum(x.view('>f8'), axis=1)", "tally.mean(x[::-1, ::2])", "tally.argmax(x, axis=1)",
             "tally.prod(x)", "tally.prod(x, dtype='f4')", "tally.sum(x, initial=2.5)", "tally.norm(x[:, ::3], axis=1)",
             "tally.std(x.view('c16'))", "tally.mean(x, axis=1, where=m)", "tally.group('sum', x[0], i)",
             "tally.segment('sum', x.reshape(-1)[::-1], 512)", "tally.norm(x.view('>c16'))",
             "tally.group('sum', x.reshape(-1)[::-1], j)", "tally.any(x.view('c16'), axis=0)", "tally.sum(wide, axis=0, out=out)",
             "tally.var(wide, axis=0, out=out)", "tally.argmax(wide, axis=0, out=out.view('i8'))", "tally.mean(wide, axis=0, out=out4)",
             "tally.reduce('sum', wide, axis=0, out=out)", "tally.segment('max', x.reshape(-1)[::-1], [0, 1 << 22, 1 << 23])",
             "tally.dot(x.reshape(-1), big)", "tally.vecdot(big.reshape(x.shape), x)", "tally.Groups('sum', 7).update(x.reshape(-1), j)",
             "tally.Groups('max', 7).update(x.reshape(-1)[::-1], j)", "tally.norm(big, np.inf)", "x + 1"]
    done = python(f"""
        import numpy as np, tally
        x, m, i = np.ones((2048, 4096)), np.ones((2048, 4096), bool), np.arange(4096) % 7
        j, big = np.zeros(1 << 23, "u1"), np.full(1 << 23, 2**53 + 1)
        wide, out, out4 = np.ones((2, 1 << 22)), np.ones(1 << 22), np.ones(1 << 22, "f4")
        tally.sum(np.ones((600, 600)), axis=0), tally.sum(np.ones(1 << 21)), tally.sum(np.ones(9, '>f8'), initial=2.0)
        def megabytes(name):
            with open("/proc/self/status", encoding="ascii") as f:
                return next(int(line.split()[1]) for line in f if line.startswith(name)) >> 10
        for call in {calls!r}:
            with open("/proc/self/clear_refs", "w", encoding="ascii") as f:
                f.write("5")
            before = megabytes("VmRSS:")
            r = eval(call)
            print(megabytes("VmHWM:") - before)
            del r
        """, env={**os.environ, "MALLOC_MMAP_THRESHOLD_": "1000000"})
    assert done.returncode == 0, done.stderr
    took = dict(zip(calls, map(int, done.stdout.split())))
    assert took.pop("x + 1") >= 64, "seen"
    assert max(took.values()) < 16, took


def test_the_command(tmp_path):
    np.save(tmp_path / "x.npy", np.array([1e16, 1.0, -1e16]))
    done = subprocess.run([sys.executable, "-m", "tally", "sum", str(tmp_path / "x.npy")], capture_output=True, text=True)
    if "built without the command" in done.stderr:
        pytest.skip("built without the command")
    assert done.stdout.strip() == "1" or done.stdout.strip().startswith("1"), done


def test_doctests():
    failed = tried = 0
    for name in ("tally", "tally._states", "tally._parts", "tally._operators", "tally._functions", "tally.dask"):
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        result = doctest.testmod(module, extraglobs={"tally": tally}, optionflags=doctest.NORMALIZE_WHITESPACE)
        failed, tried = failed + result.failed, tried + result.attempted
    for name in tally.__all__:  # the fast calls
        thing = getattr(tally, name)
        for test in doctest.DocTestFinder(recurse=False).find(thing, name, module=False, globs={"tally": tally}):
            result = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(test)
            failed, tried = failed + result.failed, tried + result.attempted
    assert failed == 0 and tried > 25, (failed, tried)


def test_a_package_that_is_not_here(monkeypatch):
    """Without dask there is no tally.dask, and whoever looks at all names of tally goes on."""
    for name in [m for m in sys.modules if m.partition(".")[0] == "dask" or m == "tally.dask"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "dask", None)
    monkeypatch.delattr(tally, "dask", raising=False)
    assert not hasattr(tally, "dask") and "dask" not in dir(tally) and hasattr(tally, "mpi")
    with pytest.raises(AttributeError, match="dask"):
        tally.dask
    assert "sum" in dict(inspect.getmembers(tally)) and "bitwise_xor" in pydoc.render_doc(tally)
    with pytest.raises(ImportError):
        importlib.import_module("tally.dask")


def test_every_name_is_explained():
    for name in tally.__all__:
        thing = getattr(tally, name)
        assert inspect.getdoc(thing), name
        if name not in ("Description", "MinMax", "checked", "devices"):
            assert ">>>" in inspect.getdoc(thing), name
            assert inspect.signature(thing).parameters, name
    assert not any("or tuple" in inspect.getdoc(getattr(tally, name)) for name in ("argmin", "argmax", "vecdot"))
    assert pickle.loads(pickle.dumps(tally.sum)) is tally.sum and tally.sum.__module__ == "tally"


def test_one_extension_for_all_interpreters():
    """With the headers of 3.13, a '#' in a format of PyArg_ParseTuple is an error on 3.11 and 3.12."""
    sources = pathlib.Path(__file__).parent.parent.joinpath("ext").glob("*.[ch]")
    for source in sources:
        formats = re.findall(r'(?:Parse\w*|BuildValue|CallFunction)\([^;"]*"([^"]*)"', source.read_text())
        assert not any("#" in format for format in formats), source


def test_stubs_have_every_parameter():
    stubs = ast.parse(pathlib.Path(tally.__file__).with_suffix(".pyi").read_text(encoding="utf-8"))
    told = {f.name: [a.arg for a in (*f.args.args, *f.args.kwonlyargs)] for f in stubs.body if isinstance(f, ast.FunctionDef)}
    for name in told.keys() - {"devices"}:
        assert told[name] == list(inspect.signature(getattr(tally, name)).parameters), name
    assert len(told) > 20


def test_types(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(textwrap.dedent("""
        import numpy as np
        import tally
        x = np.ones((3, 4))
        a = tally.sum(x, axis=(0, -1), keepdims=True, dtype=np.float32)
        low = tally.minmax(x).min
        s: tally.State = tally.State("sum", "f64").update(x)
        s += tally.State("sum")
        b: bytes = bytes(s)
        d: tally.Description = tally.describe(x)
        g = tally.group("sum", x, [0, 1, 1, 0], groups=2)
        """))
    (tmp_path / "wrong.py").write_text("import tally\ntally.sum(1, axis='x')\ntally.minmax([1]).least\n")
    package = os.path.dirname(tally.__file__)
    env = dict(os.environ) if "site-packages" in package else {**os.environ, "MYPYPATH": os.path.dirname(package)}
    # (Of the libraries but NumPy nothing is read: their types are most of the time, and none of ours.)
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = true\n" + "".join(
        f"[mypy-{name}.*]\nfollow_imports = skip\n" for name in ("dask", "pandas", "polars", "pyarrow")))
    done = subprocess.run([sys.executable, "-m", "mypy", "--cache-dir", str(tmp_path / "cache"), "-p", "tally", "-m", "user", "-m",
                           "wrong"], capture_output=True, text=True, cwd=tmp_path, env=env)
    errors = [line for line in done.stdout.splitlines() if "error:" in line]
    assert done.returncode == 1 and len(errors) == 2 and all("wrong.py" in e for e in errors), done.stdout


USES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "uses.py")


def test_types_of_results(tmp_path):
    """What mypy and pyright know of each result on a page of uses is what it is."""
    extensions = pytest.importorskip("typing_extensions")
    seen = []

    def check(value, said):
        origin, arguments = typing.get_origin(said) or said, typing.get_args(said)
        if said is not typing.Any:
            assert isinstance(value, origin), (value, said)
        if origin is np.ndarray:
            element = typing.get_args(arguments[1])[0]
            assert element is typing.Any or issubclass(value.dtype.type, typing.get_origin(element) or element), (value, said)
        elif origin is tally.MinMax and arguments:
            check(value.min, arguments[0])
        seen.append(said)
        return value

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(extensions, "assert_type", check)
        patch.setattr(tally.MinMax, "__class_getitem__", lambda item: types.GenericAlias(tally.MinMax, item), raising=False)
        runpy.run_path(USES)
    assert len(seen) > 30


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_page_of_uses(tmp_path, checker):
    pytest.importorskip(checker)
    shutil.copy(USES, tmp_path / "uses.py")
    (tmp_path / "wrong.py").write_text("import numpy as np, tally\nx: str = tally.sum(np.ones(3))\ny: int = tally.group('mean', np.ones(2), [0, 1])\n")
    package = os.path.dirname(tally.__file__)
    beside = [] if "site-packages" in package else [os.path.dirname(package)]
    (tmp_path / "pyrightconfig.json").write_text(json.dumps({"typeCheckingMode": "strict", "extraPaths": beside}))
    command = {"mypy": ["--strict", "--cache-dir", str(tmp_path / "cache")], "pyright": ["--pythonpath", sys.executable]}[checker]
    env = {**os.environ, "MYPYPATH": os.pathsep.join(beside), "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    for page, errors in (("uses.py", 0), ("wrong.py", 2)):
        done = subprocess.run([sys.executable, "-m", checker, *command, page], capture_output=True, text=True, cwd=tmp_path, env=env)
        found = [line for line in done.stdout.splitlines() if " error: " in line]
        assert len(found) == errors and all(page in line for line in found), done.stdout + done.stderr
