"""Draws what bench/sweeps.py has measured, an SVG a sweep.

    python3 bench/plot_sweeps.py FILE.csv FOLDER

writes sweep-block.svg, sweep-coarsen.svg, sweep-finish.svg and sweep-n.svg, those that the file has lines for. The
same file gives the same bytes. Needs Matplotlib (Debian: python3-matplotlib).
"""
import csv
import os
import sys

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "tally", "svg.fonttype": "none", "font.size": 10, "axes.grid": True,
                            "grid.alpha": 0.3, "axes.spines.top": False, "axes.spines.right": False})
import matplotlib.pyplot as plt  # noqa: E402

MARKS = "o s ^ v D P X * < > h p d".split()
# The labels of the settings along the x axis, which all are powers of two.
AXES = {"block": "threads of a block", "coarsen": "coarsening factor", "n": "elements"}


def power(value):
    value = int(value)
    return f"$2^{{{value.bit_length() - 1}}}$" if value > 1024 else str(value)


def lines_of(rows, along, group):
    """{group's value: [(value along the axis, GB/s)]} in the file's order."""
    lines = {}
    for row in rows:
        lines.setdefault(tuple(row[k] for k in group), []).append((int(row[along]), float(row["gbps"])))
    return {name: sorted(points) for name, points in lines.items()}


def finish(figure, axes, rows, along, title, path):
    values = sorted({int(row[along]) for row in rows})
    axes.set_xscale("log", base=2)
    axes.set_xticks(values, [power(v) for v in values])
    axes.minorticks_off()
    axes.set_xlabel(AXES[along])
    axes.set_ylabel("GB/s")
    if along == "n":
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.set_title(f"{title}\n{rows[0]['name']}", fontsize=10, loc="left")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def draw_roof(axes, rows):
    roof = max(float(row["roof_gbps"]) for row in rows)
    axes.axhline(roof, color="black", linewidth=1, linestyle=":", label=f"roof, {roof:.4g} GB/s")


def draw(rows, along, title, path):
    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    draw_roof(axes, rows)
    for i, ((rung,), points) in enumerate(lines_of(rows, along, ["rung"]).items()):
        axes.plot(*zip(*points), marker=MARKS[i % len(MARKS)], markersize=5, color=f"C{i % 10}",
                  linestyle="-" if i < 10 else "--", label=rung)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    finish(figure, axes, rows, along, title, path)


def draw_finishes(rows, title, path):
    """A panel a finish, so that the same rung has the same colour in each."""
    finishes = list(dict.fromkeys(row["finish"] for row in rows))
    rungs = list(dict.fromkeys(row["rung"] for row in rows))
    figure, panels = plt.subplots(1, len(finishes), figsize=(10, 4.5), sharey=True, layout="constrained", squeeze=False)
    for panel, how in zip(panels[0], finishes):
        here = [row for row in rows if row["finish"] == how]
        draw_roof(panel, rows)
        for (rung,), points in lines_of(here, "block", ["rung"]).items():
            i = rungs.index(rung)
            panel.plot(*zip(*points), marker=MARKS[i % len(MARKS)], markersize=4, color=f"C{i % 10}",
                       linestyle="-" if i < 10 else "--", label=rung)
        panel.set_xscale("log", base=2)
        values = sorted({int(row["block"]) for row in here})
        panel.set_xticks(values, [power(v) for v in values])
        panel.minorticks_off()
        panel.set_xlabel(AXES["block"])
        panel.set_title(how, fontsize=10, loc="left")
    panels[0][0].set_ylabel("GB/s")
    panels[0][0].set_ylim(bottom=0)
    handles, labels = panels[0][0].get_legend_handles_labels()
    panels[0][-1].legend(handles, labels, loc="center left", bbox_to_anchor=(1, 0.5), frameon=False)
    figure.suptitle(f"{title}\n{rows[0]['name']}", fontsize=10, x=0.01, ha="left")
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    with open(sys.argv[1], newline="") as lines:
        rows = list(csv.DictReader(lines))
    if not rows:
        sys.exit(f"{sys.argv[1]}: no line in it")
    titles = {"block": "Sum of {n} floats by the number of threads in a block",
              "coarsen": "Sum of {n} floats by the coarsening factor",
              "finish": "Sum of {n} floats by finish and block", "n": "Sums of floats by their number"}
    for sweep, title in titles.items():
        those = [row for row in rows if row["sweep"] == sweep]
        if not those:
            continue
        path = os.path.join(sys.argv[2], f"sweep-{sweep}.svg")
        title = title.format(n=power(those[0]["n"]))
        if sweep == "finish":
            draw_finishes(those, title, path)
        else:
            draw(those, sweep, title, path)
        print(path)


main()
