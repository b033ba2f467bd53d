"""The package beside NumPy, bottleneck and numbagg, as ratios: each measured in turn, run by run, in one process.

    python bench/python.py [small] [f8] [f4] [where] [-n ELEMENTS] [--runs RUNS] [--ops sum,var,std,argmin,argmax]
"""
import argparse
import statistics
import time

import numpy as np

import tally

PEERS = {"numpy": np}
for name in ("bottleneck", "numbagg"):
    try:
        PEERS[name] = __import__(name)
    except ImportError:
        pass


def times(calls, runs, repeat):
    """Returns medians in seconds of calls that take turns, after one call of each that warms the caches."""
    seen = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(runs):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(repeat):
                call()
            seen[name].append((time.perf_counter() - start) / repeat)
    return {name: statistics.median(s) for name, s in seen.items()}


#: NumPy's and the others' functions, where their name is neither ours nor `nan` and ours.
THEIRS = {"norm": np.linalg.norm, "bitwise_and": np.bitwise_and.reduce, "bitwise_or": np.bitwise_or.reduce,
          "bitwise_xor": np.bitwise_xor.reduce, "sumsq": lambda x: np.dot(x, x), "minmax": lambda x: (np.min(x), np.max(x))}
SMALL = ("sum prod min max minmax argmin argmax mean var std norm sumsq dot vecdot count_nonzero any all bitwise_and bitwise_or "
         "bitwise_xor").split()


def calls_of(op, x, **more):
    arguments = (x, x) if op in ("dot", "vecdot") else (x,)
    ours = getattr(tally, op)
    calls = {"tally": lambda: ours(*arguments, **more)}
    for name, module in PEERS.items():
        function = THEIRS.get(op) or getattr(np, op, None) if name == "numpy" else getattr(module, "nan" + op, None)
        if function is not None and not (name != "numpy" and (x.size < 100 or op in ("min", "max"))):
            calls[name] = lambda function=function: function(*arguments, **more)
    return calls


def show(what, seen, size):
    line = f"{what:34}{size / seen['tally'] / 1e9:8.1f} GB/s" if size > 1e6 else f"{what:34}{seen['tally'] * 1e6:8.2f} us  "
    print(line + "".join(f"{seen[n] / seen['tally']:12.2f}" if n in seen else f"{'':12}" for n in PEERS))


def mean_of_ratios(ratios):
    return statistics.geometric_mean(ratios) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", nargs="*", default=["small", "f8", "f4"], help="calls on 16 elements; large arrays of a type; of f8 with a mask")
    parser.add_argument("-n", type=int, default=1 << 24, help="elements of the large arrays (2^24)")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--ops", default="sum,var,std,argmin,argmax", help="along the axes of five shapes")
    a = parser.parse_args()
    print(f"{'':34}{'tally':>13}" + "".join(f"{'x ' + n:>12}" for n in PEERS))
    if "small" in a.what:
        x, least = np.arange(16.0), {}
        for op in SMALL:
            y = x.astype(int) if op.startswith("bitwise") else x
            seen = times(calls_of(op, y), 9, 2000)
            show(f"{op}, 16 {y.dtype}", seen, x.nbytes)
            least[op] = seen["numpy"] / seen["tally"] if "numpy" in seen else float("nan")
        show("sum, 4 x 4 f64, axis 0", times(calls_of("sum", x.reshape(4, 4), axis=0), 9, 2000), x.nbytes)
        print("NumPy's time over ours, at least:", *min(least.items(), key=lambda pair: pair[1]))
    rng, n = np.random.default_rng(1), a.n
    ratios = {}
    for dtype in [d for d in ("f8", "f4") if d in a.what]:
        x = rng.standard_normal(n).astype(dtype)
        for op in ("sum", "mean", "var", "norm", "argmax", "min"):
            show(f"{op}, {n} {dtype}", times(calls_of(op, x), a.runs, 1), x.nbytes)
        side = int(n**0.5)
        for shape in ((n // 4, 4), (4, n // 4), (side, side), (n // 256, 256), (256, n // 256)):
            y = x[:shape[0] * shape[1]].reshape(shape)
            for axis in (0, 1):
                for op in a.ops.split(","):
                    seen = times(calls_of(op, y, axis=axis), a.runs, 1)
                    ratios.setdefault(op, []).append(seen["numpy"] / seen["tally"])
                    show(f"{op} axis {axis}, {shape[0]} x {shape[1]} {dtype}", seen, y.nbytes)
    if "where" in a.what:
        x, shown = rng.standard_normal(n), rng.random(n) < 0.7
        side = int(n**0.5)
        for shape, axis in (((1, n), 1), ((side, side), 1), ((side, side), 0), ((n // 4, 4), 1), ((n // 4, 4), 0), ((4, n // 4), 0)):
            y, where = (z[:shape[0] * shape[1]].reshape(shape) for z in (x, shown))
            for op, more in (("sum", {}), ("max", {"initial": -np.inf}), ("var", {})):
                calls = {m.__name__: lambda m=m: getattr(m, op)(y, axis=axis, where=where, **more) for m in (tally, np)}
                show(f"{op} where, axis {axis}, {shape[0]} x {shape[1]} f8", times(calls, a.runs, 1), y.nbytes + where.nbytes)
    for op, r in ratios.items():
        print(f"{op} along axes: {mean_of_ratios(r):.1f} times NumPy in the geometric mean, {min(r):.2f} at least")


if __name__ == "__main__":
    main()
