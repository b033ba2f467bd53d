"""A GPU's counters beside the model's counts, rung by rung.

    python3 bench/counters.py NCU_CSV MODEL_JSON [BUSY_CSV]

NCU_CSV is what `ncu --csv --metrics ...` says of `tally ladder --device cuda --finish host`, with or without the
program's own output around it; MODEL_JSON is `tally ladder --device model --finish host --json` at the same n and
block. A rung is launched several times: the table has the median, with ~ before it where launches differ. Columns
whose metrics are not in the file are left out. BUSY_CSV is ncu's again, of an array that fills the device, and makes
a second table. `scripts/gpu FOLDER counters` makes all three files and runs this.
"""
import csv
import json
import os
import re
import statistics
import sys

# Columns: (group, heading, who counts it, what is counted). A counter of the hardware may have several names.
LOADS = "l1tex__t_%s_pipe_lsu_mem_global_op_ld.sum"
STORES = "l1tex__t_%s_pipe_lsu_mem_global_op_st.sum"
ACTIVE, ACTIVE_ON = ("smsp__thread_inst_executed%s_per_inst_executed.ratio" % on for on in ("", "_pred_on"))
PATCHED = "smsp__sass_l1tex_pipe_lsu_wavefronts_mem_shared%s.sum"
COLUMNS = [
    ("blocks", "GPU", "grid", None),
    ("blocks", "model", "model", lambda c: c["blocks"]),
    ("loads", "requests", "gpu", [LOADS % "requests"]),
    ("loads", "sectors", "gpu", [LOADS % "sectors"]),
    ("loads", "asked/32", "model", lambda c: c["bytes_read"] / 32),
    ("stores", "requests", "gpu", [STORES % "requests"]),
    ("stores", "sectors", "gpu", [STORES % "sectors"]),
    ("stores", "asked/32", "model", lambda c: c["bytes_written"] / 32),
    ("lines", "GPU", "gpu", ["smsp__sass_l1tex_tags_mem_global.sum", "memory_l1_tag_requests_global"]),
    ("lines", "model", "model", lambda c: c["transactions"]),
    ("lines", "fewest", "model", lambda c: c["fewest_transactions"]),
    ("bank conflicts", "GPU", "gpu", ["l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum"]),
    ("bank conflicts", "patched", "excess", [PATCHED % "", PATCHED % "_ideal"]),
    ("bank conflicts", "model", "model", lambda c: c["bank_conflicts"]),
    ("divergent", "GPU", "gpu", ["smsp__sass_branch_targets_threads_divergent.sum"]),
    ("divergent", "model", "model", lambda c: c["divergent"]),
    ("additions", "GPU", "gpu", ["smsp__sass_thread_inst_executed_op_fadd_pred_on.sum"]),
    ("additions", "model", "model", lambda c: c["operations"]),
    ("warp instructions", "GPU", "gpu", ["smsp__inst_executed.sum"]),
    ("warp instructions", "issued/32", "model", lambda c: c["issued"] / 32),
    ("share of lanes", "active", "lanes", [ACTIVE]),
    ("share of lanes", "on", "lanes", [ACTIVE_ON]),
    ("share of lanes", "model", "efficiency", lambda c: c["efficiency"]),
    ("DRAM bytes", "read", "gpu", ["dram__bytes_read.sum"]),
    ("DRAM bytes", "written", "gpu", ["dram__bytes_write.sum"]),
]
STALLED = "smsp__average_warps_issue_stalled_%s_per_issue_active.ratio"
BUSY = [
    ("% of the most", "warps held", "rate", ["sm__warps_active.avg.pct_of_peak_sustained_active"]),
    ("% of the most", "instructions", "rate", ["smsp__issue_active.avg.pct_of_peak_sustained_active"]),
    ("% of the most", "L1", "rate", ["l1tex__throughput.avg.pct_of_peak_sustained_active"]),
    ("% of the most", "DRAM", "rate", ["dram__throughput.avg.pct_of_peak_sustained_elapsed"]),
    ("warps that wait for", "memory", "rate", [STALLED % "long_scoreboard"]),
    ("warps that wait for", "its queue", "rate", [STALLED % "lg_throttle"]),
    ("warps that wait for", "a barrier", "rate", [STALLED % "barrier"]),
]
LEGEND = """\
~ the median of launches that differ. Loads, stores and lines are of global memory.
loads, stores  The GPU moves sectors of 32 bytes. asked/32: what the model's lanes ask for, in sectors: with nothing
               fetched in vain the two are equal.
lines          The model's transactions: 128-byte lines, of loads and of stores. A line has 4 sectors; a request
               touches at least as many sectors as lines, at most 4 for each.
bank conflicts The GPU's counter also sees other waits for the memory's banks, which come and go. patched: counted by
               instructions put into the kernel.
divergent      The model counts branches of the source, the GPU those that the compiler has left.
instructions   The GPU's: all of them. issued/32: the model's, of those that apply the operator.
lanes          active: lanes that take part in an instruction. on: and whom it is not switched off for. model: its
               efficiency, useful operations a slot issued, of the operator alone."""
GRID_NOTE = """\
*              A grid sized to the device, which is not the model's: only what depends on the array alone compares."""


def number(text):
    return float(text.replace(",", ""))


def launches(path):
    """{kernel: {(block, grid): {metric: [one value a launch]}}} of all the lines that are ncu's."""
    kernels, header = {}, None
    with open(path) as lines:
        for cells in csv.reader(line for line in lines if line.startswith('"')):
            if cells[0] == "ID":
                header = cells
            if header is None or len(cells) != len(header) or cells[0] == "ID":
                continue
            row = dict(zip(header, cells))
            shape = tuple(int(re.match(r"\((\d+), 1, 1\)", row[k])[1]) for k in ("Block Size", "Grid Size"))
            metrics = kernels.setdefault(row["Kernel Name"].split("(")[0], {}).setdefault(shape, {})
            if row["Metric Value"] != "n/a":  # ncu knows the name, but not on this GPU
                metrics.setdefault(row["Metric Name"], []).append(number(row["Metric Value"]))
    if not kernels:
        sys.exit(f"{path}: no line of ncu's is in it")
    return kernels


def rungs():
    """(name, kernel, whether the grid is sized to the device) from the one table of the ladder's kernels."""
    here = os.path.dirname(os.path.abspath(__file__))
    with open(os.path.join(here, "..", "src", "kernels", "ladder", "rungs.h")) as text:
        found = re.findall(r'X\([A-Z_]+,\s*"([\w-]+)",\s*(\w+),\s*"\w+\.cu",\s*\w+,\s*\w+,\s*(\w+)',
                           re.sub(r"\\\n", "", text.read()))
    return [(name, kernel, pairs == "PAIRS_GRID") for name, kernel, pairs in found]


def only_shape(path, kernels, name, kernel):
    if kernel not in kernels:
        sys.exit(f"{path}: {kernel}, the kernel of {name}, is not in it")
    if len(kernels[kernel]) != 1:
        sys.exit(f"{path}: {kernel} ran on several grids; run the ladder with --finish host")
    return next(iter(kernels[kernel].items()))


def cell(column, grid, metrics, counts):
    _, _, kind, what = column
    if kind == "grid":
        return str(grid)
    if kind in ("model", "efficiency"):
        value = what(counts)
        return f"{value:.0f}" if kind == "model" else f"{value:.2f}"
    if kind == "excess":
        medians = [statistics.median(metrics[name]) for name in what if name in metrics]
        return f"{medians[0] - medians[1]:.0f}" if len(medians) == 2 else None
    values = next((metrics[name] for name in what if name in metrics), None)
    if values is None:
        return None
    value, sign = statistics.median(values), "~" if max(values) != min(values) else ""
    if kind == "gpu":
        return f"{sign}{value:.0f}"
    return f"{value / 32:.2f}" if kind == "lanes" else f"{value:.1f}"


def show(columns, names, rows):
    """Prints the columns that some row has, under a line of group names."""
    kept = [i for i in range(len(columns)) if any(row[i] is not None for row in rows)]
    # A group without columns of the GPU has none of the model. But lines stay: loads and stores can be compared with them.
    measured = {columns[i][0] for i in kept if columns[i][2] not in ("model", "efficiency")} | {"lines"}
    kept = [i for i in kept if columns[i][0] in measured]
    widths = [max(len(columns[i][1]), *(len(row[i] or "-") for row in rows)) for i in kept]
    first = max(len(name) for name in names)
    line, at = " " * first, 0
    while at < len(kept):
        group, end = columns[kept[at]][0], at
        while end < len(kept) and columns[kept[end]][0] == group:
            end += 1
        width = sum(widths[at:end]) + 2 * (end - at - 1)
        if len(group) > width:
            widths[at] += len(group) - width
            width = len(group)
        line += " | " + group.ljust(width)
        at = end
    print(line.rstrip())
    for name, row in [("", [c[1] for c in columns])] + list(zip(names, rows)):
        text = name.ljust(first)
        for k, i in enumerate(kept):
            opens = k == 0 or columns[i][0] != columns[kept[k - 1]][0]
            text += (" | " if opens else "  ") + (row[i] or "-").rjust(widths[k])
        print(text)


def main():
    if len(sys.argv) not in (3, 4):
        sys.exit(__doc__)
    kernels = launches(sys.argv[1])
    with open(sys.argv[2]) as text:
        model = json.load(text)
    counts = {k["name"]: k["counts"] for k in model["kernels"]}
    names, rows = [], []
    for name, kernel, sized in rungs():
        (block, grid), metrics = only_shape(sys.argv[1], kernels, name, kernel)
        if block != model["block"] or (not sized and grid != counts[name]["blocks"]):
            sys.exit(f"{name}: {grid} blocks of {block} threads on the GPU, {counts[name]['blocks']} of "
                     f"{model['block']} on the model")
        names.append(name + ("*" if sized else ""))
        rows.append([cell(c, grid, metrics, counts[name]) for c in COLUMNS])
    print(f"{model['op']} of {model['n']} {model['dtype']}, blocks of {model['block']} threads, coarsened by "
          f"{model['coarsen']}: one launch of each rung\n")
    show(COLUMNS, names, rows)
    print(f"\n{LEGEND}\n{GRID_NOTE}")
    if len(sys.argv) == 4:
        kernels = launches(sys.argv[3])
        names = [(name, kernel) for name, kernel, _ in rungs() if kernel in kernels]
        shapes = [only_shape(sys.argv[3], kernels, name, kernel) for name, kernel in names]
        print("\nWith an array that fills the device: shares of what it can do, and how many warps of a scheduler "
              "wait\nfor each instruction that starts\n")
        show(BUSY, [name for name, _ in names], [[cell(c, shape[1], metrics, None) for c in BUSY]
                                                 for shape, metrics in shapes])


main()
