"""Measures and draws that the time of reductions in parts grows with the bytes, and with nothing else.

    /usr/bin/python3 bench/shapes_cost.py measure FILE.json [--n 28] [--runs R] [--type f64] [--note TEXT]
    /usr/bin/python3 bench/shapes_cost.py draw FILE.json            # writes FILE-n.svg and FILE-length.svg; needs matplotlib

Two plots, of exact sums beside NumPy's:
  n        arrays of 2^10 to 2^n elements: rows of 4, rows and columns of the square root, segments of 64 by offsets, groups of
           1000 random ids;
  length   2^n elements as rows, columns and segments of 1 to 2^n elements.
Ours and the peer take turns; a time is the median of the turns, each as many calls as 2 ms hold, and is kept with the
quartiles beside it. The roof is the shortest time in which tally_device_read() reads the same bytes. A machine that does anything else gives
figures of no worth: say so with --note, which the plots then bear.
"""

import argparse
import ctypes
import json
import os
import platform
import statistics
import sys
import time

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("what", choices=["measure", "draw"])
parser.add_argument("file")
parser.add_argument("--n", type=int, default=28)
parser.add_argument("--runs", type=int, default=5)
parser.add_argument("--type", default="f64", choices=["f64", "f32"])
parser.add_argument("--note", default="")
TURN = 2e-3  # seconds


# ---- Measuring ----

class Measuring:
    def __init__(self, options):
        sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tests", "engine"))
        import shapes
        self.t, self.runs = shapes, options.runs
        self.device = shapes.open_device("cpu")
        self.problem = shapes.Problem("sum", options.type)
        self.x = np.random.default_rng(1).random(1 << options.n).astype(shapes.DTYPE[options.type])
        self.points = []

    def ours(self, shape, x, count):
        t = self.t
        out, pointers = t.outputs(self.problem, count)
        return lambda keep=(shape, out): t.check(
            t.lib.tally_reduce_shaped(self.device, self.problem.c, shape, t.address(x), None, pointers))

    def turn(self, call):
        before, calls = time.perf_counter(), 0
        while True:
            call()
            calls += 1
            seconds = time.perf_counter() - before
            if seconds >= TURN:
                return seconds / calls

    def roof(self, x):
        seconds, least = ctypes.c_double(), 1e9
        for _ in range(self.runs):
            self.t.check(self.t.lib.tally_device_read(self.device, ctypes.c_void_p(self.t.address(x)),
                                                      ctypes.c_size_t(x.nbytes), ctypes.byref(seconds)))
            least = min(least, seconds.value)
        return least

    def point(self, plot, case, length, x, bytes_, ours, peer):
        calls = {"tally": ours, "NumPy": peer}
        for call in calls.values():
            call()
        times = {who: [] for who in calls}
        for _ in range(self.runs):
            for who, call in calls.items():
                times[who].append(self.turn(call))
        point = {"plot": plot, "case": case, "n": x.size, "length": length, "bytes": bytes_, "roof": self.roof(x)}
        for who, seconds in times.items():
            quartiles = statistics.quantiles(seconds, n=4) if len(seconds) > 1 else seconds * 3
            point[who] = {"median": statistics.median(seconds), "low": quartiles[0], "high": quartiles[2]}
        self.points.append(point)
        print(f"{plot:7}{case:24}n 2^{int(x.size).bit_length() - 1:<3} length {length:<10}"
              f"{point['tally']['median'] * 1e6:12.1f} us{point['NumPy']['median'] * 1e6:12.1f} us"
              f"  roof {point['roof'] * 1e6:10.1f} us", flush=True)

    def rows(self, plot, case, x, count, length):
        a = x.reshape(count, length)
        self.point(plot, case, length, x, x.nbytes + count * x.itemsize,
                   self.ours(self.t.axes_shape(a, [1]), a, count), lambda: a.sum(axis=1))

    def columns(self, plot, case, x, count, length):
        a = x.reshape(length, count)
        self.point(plot, case, length, x, x.nbytes + count * x.itemsize,
                   self.ours(self.t.axes_shape(a, [0]), a, count), lambda: a.sum(axis=0))

    def segments(self, plot, case, x, count, length):
        offsets = np.arange(0, x.size + 1, length)
        self.point(plot, case, length, x, x.nbytes + offsets.nbytes + count * x.itemsize,
                   self.ours(self.t.segments_shape(x.size, offsets), x, count), lambda: np.add.reduceat(x, offsets[:-1]))

    def groups(self, plot, case, x, groups):
        ids = np.random.default_rng(2).integers(0, groups, x.size)
        self.point(plot, case, x.size // groups, x, x.nbytes + ids.nbytes + groups * x.itemsize,
                   self.ours(self.t.groups_shape(x.size, ids, groups), x, groups), lambda: np.bincount(ids, x, groups))


def processor():
    try:
        with open("/proc/cpuinfo") as f:
            return next(line.split(":")[1].strip() for line in f if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.machine()


def measure(options):
    m = Measuring(options)
    for log in range(10, options.n + 1):
        x = m.x[: 1 << log]
        m.rows("n", "rows of 4", x, x.size // 4, 4)
        m.rows("n", "rows, square", x, 1 << log // 2, x.size >> log // 2)
        m.columns("n", "columns, square", x, x.size >> log // 2, 1 << log // 2)
        m.segments("n", "segments of 64", x, x.size // 64, 64)
        m.groups("n", "1000 groups", x, 1000)
    for log in range(options.n + 1):
        count, length = m.x.size >> log, 1 << log
        m.rows("length", "rows", m.x, count, length)
        m.columns("length", "columns", m.x, count, length)
        m.segments("length", "segments", m.x, count, length)
    # (The peer may change with its version, and both with the machine.)
    about = {"processor": processor(), "threads": len(os.sched_getaffinity(0)), "numpy": np.__version__,
             "type": options.type, "n": options.n, "runs": options.runs, "note": options.note}
    with open(options.file, "w") as f:
        f.write(json.dumps(about)[:-1] + ', "points": [\n' + ",\n".join(map(json.dumps, m.points)) + "\n]}\n")


# ---- Drawing ----

def draw(options):
    try:
        import matplotlib
    except ImportError:
        sys.exit("drawing needs matplotlib: the package python3-matplotlib, or pip install matplotlib")
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    matplotlib.rcParams["svg.hashsalt"] = "tally"  # the same file for the same figures
    with open(options.file) as f:
        data = json.load(f)
    titles = {"n": "Sums in parts: the time against the number of elements",
              "length": f"Sums in parts of 2^{data['n']} elements: the time against the length of a part"}
    for plot, title in titles.items():
        points = [p for p in data["points"] if p["plot"] == plot]
        across = "n" if plot == "n" else "length"
        figure, axes = plt.subplots(figsize=(9, 6))
        for i, case in enumerate(dict.fromkeys(p["case"] for p in points)):
            mine = [p for p in points if p["case"] == case]
            for who, style in (("tally", "-"), ("NumPy", ":")):
                axes.plot([p[across] for p in mine], [p[who]["median"] for p in mine], style, color=f"C{i}",
                          label=f"{case}, {who}")
                axes.fill_between([p[across] for p in mine], [p[who]["low"] for p in mine],
                                  [p[who]["high"] for p in mine], color=f"C{i}", alpha=0.1, linewidth=0)
        roofs = {}
        for p in points:
            roofs[p[across]] = min(p["roof"], roofs.get(p[across], p["roof"]))
        axes.plot(list(roofs), list(roofs.values()), "--", color="black", label="reading the elements")
        axes.set(xscale="log", yscale="log", title=title, ylabel="seconds",
                 xlabel="elements" if plot == "n" else "elements of a part")
        axes.set_xscale("log", base=2)
        axes.grid(True, which="major", alpha=0.3)
        axes.legend(fontsize=7, ncol=2)
        about = f"{data['type']}, {data['processor']}, {data['threads']} threads, NumPy {data['numpy']}"
        figure.text(0.01, 0.01, about + (f"; {data['note']}" if data["note"] else ""), fontsize=7)
        name = f"{options.file.removesuffix('.json')}-{plot}.svg"
        figure.savefig(name, metadata={"Date": None})
        print(name)


if __name__ == "__main__":
    options = parser.parse_args()
    (measure if options.what == "measure" else draw)(options)
