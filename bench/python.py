"""The package beside NumPy, bottleneck and numbagg, as ratios: each measured in turn, run by run, in one process.

    python bench/python.py [-n ELEMENTS] [--runs RUNS]
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
    """Medians in seconds of calls that take turns; (what came first may have warmed the caches)."""
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


def calls_of(op, x, **more):
    calls = {"tally": lambda: getattr(tally, op)(x, **more)}
    theirs = {"numpy": op, "bottleneck": "nan" + op, "numbagg": "nan" + op}
    for name, module in PEERS.items():
        function = getattr(module, theirs[name], None) if (name, op) != ("numpy", "norm") else np.linalg.norm
        if function is not None and not (name != "numpy" and (x.size < 100 or op in ("min", "max"))):
            calls[name] = lambda function=function: function(x, **more)
    return calls


def show(what, seen, size):
    line = f"{what:34}{size / seen['tally'] / 1e9:8.1f} GB/s" if size > 1e6 else f"{what:34}{seen['tally'] * 1e6:8.2f} us  "
    print(line + "".join(f"{seen[n] / seen['tally']:12.2f}" if n in seen else f"{'':12}" for n in PEERS))


def mean_of_ratios(ratios):
    return statistics.geometric_mean(ratios) if ratios else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=1 << 24, help="elements of the large arrays (2^24)")
    parser.add_argument("--runs", type=int, default=5)
    a = parser.parse_args()
    print(f"{'':34}{'tally':>13}" + "".join(f"{'x ' + n:>12}" for n in PEERS))
    x = np.arange(16.0)
    for op in ("sum", "mean", "var", "std", "min", "argmax", "any", "prod", "norm", "count_nonzero"):
        show(f"{op}, 16 f64", times(calls_of(op, x), 9, 2000), x.nbytes)
    show("sum, 4 x 4 f64, axis 0", times(calls_of("sum", x.reshape(4, 4), axis=0), 9, 2000), x.nbytes)
    rng, n = np.random.default_rng(1), a.n
    ratios = {}
    for dtype in ("f8", "f4"):
        x = rng.standard_normal(n).astype(dtype)
        for op in ("sum", "mean", "var", "norm", "argmax", "min"):
            show(f"{op}, {n} {dtype}", times(calls_of(op, x), a.runs, 1), x.nbytes)
        side = int(n**0.5)
        for shape in ((n // 4, 4), (4, n // 4), (side, side), (n // 256, 256), (256, n // 256)):
            y = x[:shape[0] * shape[1]].reshape(shape)
            for axis in (0, 1):
                for op in ("sum", "var", "argmax"):
                    seen = times(calls_of(op, y, axis=axis), a.runs, 1)
                    ratios.setdefault(op, []).append(seen["numpy"] / seen["tally"])
                    show(f"{op} axis {axis}, {shape[0]} x {shape[1]} {dtype}", seen, y.nbytes)
    for op, r in ratios.items():
        print(f"{op} along axes: {mean_of_ratios(r):.1f} times NumPy in the geometric mean, {min(r):.2f} at least")


if __name__ == "__main__":
    main()
