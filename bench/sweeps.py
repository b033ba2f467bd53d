"""Sweeps of the ladder: one setting changes, everything else stays.

    python3 bench/sweeps.py FILE.csv [--device cuda] [-n 2^30] [--only block,coarsen,finish,n] [--seconds S]

    block    every rung, in blocks of 32 to 1024 threads
    coarsen  the rung coarsened, by 1 to 64
    finish   every rung that leaves partials, with each of the three finishes, in blocks of 64 to 1024
    n        every rung, from 2^10 elements to -n in factors of 4

A line of FILE.csv is a rung in one of these. Lines are written as they are measured, and a line that is there is
not measured again: a sweep that was cut short, by --seconds perhaps, goes on where it stopped. TALLY names the command.
bench/plot_sweeps.py draws the file; `scripts/gpu FOLDER sweeps` does both.
"""
import argparse
import csv
import json
import os
import subprocess
import sys
import time

TALLY = os.environ.get("TALLY", os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "build", "bin", "tally"))
SETTINGS = ["sweep", "device", "name", "n", "block", "coarsen", "finish"]
RESULTS = ["rung", "ms", "gbps", "of_roof", "roof_gbps", "launches", "ulp_error"]
BLOCKS = [32, 64, 128, 256, 512, 1024]
FINISHES = ["relaunch", "atomic", "host"]
USUAL = {"block": 256, "coarsen": 4, "finish": "relaunch"}


def number(text):
    base, _, power = text.partition("^")
    return int(base) ** int(power or 1)


def runs(sweep, n, rungs):
    """The runs of a sweep: ({setting: value}, rungs)."""
    partial = [r for r in rungs if r not in ("sequential", "single-pass", "tally")]
    if sweep == "block":
        return [({"n": n, "block": block}, partial + ["single-pass"]) for block in BLOCKS]
    if sweep == "coarsen":
        return [({"n": n, "coarsen": 1 << k}, ["coarsened"]) for k in range(7)]
    if sweep == "finish":
        return [({"n": n, "block": block, "finish": finish}, partial) for block in BLOCKS[1:] for finish in FINISHES]
    sizes, size = [], n
    while size >= 1 << 10:
        sizes.insert(0, size)
        size //= 4
    return [({"n": size}, rungs) for size in sizes]


def measure(device, settings, rungs):
    command = [TALLY, "ladder", "--device", device, "--json"]
    for key, value in settings.items():
        command += [("-" if key == "n" else "--") + key, str(value)]
    done = subprocess.run(command + ["--only", ",".join(rungs)], capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return json.loads(done.stdout)


def rungs_of(device):
    listed = json.loads(subprocess.run([TALLY, "ladder", "--list", "--json"], capture_output=True, check=True).stdout)
    names = [rung["name"] for rung in listed["rungs"] if rung["kernel"] or rung["name"] == "tally"]
    return names if device.split(":")[0] != "cpu" else ["sequential", "tally"]


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file")
    options.add_argument("--device", default="cuda")
    options.add_argument("-n", type=number, default=1 << 30)
    options.add_argument("--only", default="block,coarsen,finish,n")
    options.add_argument("--seconds", type=float, default=float("inf"), help="start nothing after so many seconds")
    args = options.parse_args()
    rungs, there, start = rungs_of(args.device), set(), time.monotonic()
    begun = os.path.exists(args.file) and os.path.getsize(args.file) > 0
    if begun:
        with open(args.file, newline="") as lines:
            there = {tuple(row[k] for k in SETTINGS if k != "name") + (row["rung"],) for row in csv.DictReader(lines)}
    with open(args.file, "a", newline="") as out:
        lines = csv.DictWriter(out, SETTINGS + RESULTS, lineterminator="\n")
        if not begun:
            lines.writeheader()
        for sweep in args.only.split(","):
            for changed, wanted in runs(sweep, args.n, rungs):
                settings = {**USUAL, **changed}
                key = (sweep, args.device) + tuple(str(settings[k]) for k in ("n", "block", "coarsen", "finish"))
                missing = [rung for rung in wanted if key + (rung,) not in there]
                if not missing:
                    continue
                if time.monotonic() - start > args.seconds:
                    sys.exit(print(f"{args.seconds:.0f} s are over, before {sweep} {changed}: run it again to go on"))
                print(sweep, *(f"{k} {v}" for k, v in changed.items()), flush=True)
                got = measure(args.device, settings, missing)
                for k in got["kernels"]:
                    if not k["correct"]:
                        sys.exit(f"{k['name']} is wrong: {sweep} {settings}")
                    lines.writerow({"sweep": sweep, "device": args.device, "name": got["name"], **settings,
                                    "rung": k["name"], "ms": k["median_ms"], "gbps": k["gbps"],
                                    "of_roof": k["of_roof"], "roof_gbps": got["roof_gbps"],
                                    "launches": k["launches"], "ulp_error": k["ulp_error"]})
                out.flush()


main()
