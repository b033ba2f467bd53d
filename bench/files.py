"""The table of `make bench` for files: text, comma-separated values and .npy, by Tally and by others.

    bench/files.py BUILD [--mb SIZE] [--rounds R]

Each file is reduced by all contestants in turn, round after round; medians throughout, in GB of the file a second.
Commands are timed from their start to their end; what runs within this Python is timed without its imports.
A peer that is not here is left out, with a word: `scripts/install-deps bench` installs them.
"""
import argparse
import csv
import math
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from fractions import Fraction

import numpy as np

try:
    import duckdb
except ImportError:
    duckdb = None

def by_command(*command):
    def run(path):
        out = subprocess.run([word.replace("FILE", path) for word in command], check=True, capture_output=True, text=True)
        return Fraction(out.stdout.split()[-1])

    return run


def by_duckdb(query):
    return duckdb and (lambda path: float(duckdb.sql(query.format(path)).fetchall()[0][0]))


def rows(path, column):
    with open(path, newline="") as file:
        reader = csv.reader(file)
        next(reader)
        return math.fsum(float(row[column]) for row in reader)


def lines(path):
    with open(path) as file:
        return math.fsum(map(float, file))


def last_of_rome(path):
    """The sum of Rome's rows, out of a table of all cities."""
    sums = {}
    with open(path, newline="") as file:
        reader = csv.reader(file)
        next(reader)
        for row in reader:
            sums.setdefault(row[0], []).append(float(row[1]))
    return math.fsum(sums["Rome"])


def tally_of_rome(build):
    def run(path):
        command = [f"{build}/bin/tally", "sum", "-c", "price", "--by", "city", path]
        out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return Fraction(dict(line.split("\t") for line in out.splitlines())["Rome"])

    return run


def of_rome(*command, separator):
    """Takes Rome's sum from a command that prints a line for each city, its name first and its sum last."""
    def run(path):
        out = subprocess.run([word.replace("FILE", path) for word in command], check=True, capture_output=True, text=True).stdout
        return Fraction(next(line for line in out.splitlines() if line.startswith("Rome")).split(separator)[-1])

    return run


def have(name, run):
    return run if shutil.which(name) else None


def contestants(build):
    tally = f"{build}/bin/tally"
    text = lambda extra: by_command(tally, "sum", "FILE", *extra)
    awk = "gawk" if shutil.which("gawk") else "awk"
    shell = lambda line: by_command("sh", "-c", line)
    numbers = {
        "tally": text([]), "tally, 1 thread": text(["--threads", "1"]),
        "datamash": have("datamash", shell("LC_ALL=C datamash -R 17 sum 1 <FILE")),
        "miller": have("mlr", by_command("mlr", "--inidx", "--onidx", "stats1", "-a", "sum", "-f", "1", "FILE")),
        awk: have(awk, by_command(awk, '{ s += $1 } END { printf "%.17g\\n", s }', "FILE")),
        "python float, fsum": lines,
        "duckdb": by_duckdb("select sum(column0) from read_csv('{}', header=false)"),
    }
    column = {
        "tally -c price": text(["-c", "price"]),
        "tally -c price --decimal": text(["-c", "price", "--decimal"]),
        "datamash": have("datamash", shell("LC_ALL=C datamash -t, --header-in -R 17 sum 2 <FILE")),
        "miller": have("mlr", by_command("mlr", "--icsv", "--onidx", "stats1", "-a", "sum", "-f", "price", "FILE")),
        awk: have(awk, by_command(awk, "-F,", 'NR > 1 { s += $2 } END { printf "%.17g\\n", s }', "FILE")),
        "python csv, fsum": lambda path: rows(path, 1),
        "duckdb": by_duckdb("select sum(price) from read_csv('{}')"),
    }
    groups = {
        "tally -c price --by city": tally_of_rome(build),
        "datamash -s -g": have("datamash", of_rome("sh", "-c", "LC_ALL=C datamash -t, --header-in -R 17 -s -g 1 sum 2 <FILE", separator=",")),
        "miller -g": have("mlr", of_rome("mlr", "--icsv", "--ocsv", "stats1", "-a", "sum", "-f", "price", "-g", "city", "FILE", separator=",")),
        f"{awk}, an array": have(awk, of_rome(awk, "-F,", 'NR > 1 { s[$1] += $2 } END { for (k in s) printf "%s %.17g\\n", k, s[k] }', "FILE",
                                              separator=" ")),
        "python csv, fsum": last_of_rome,
        "duckdb, group by": duckdb and (lambda path: float(dict(duckdb.sql(
            f"select city, sum(price) from read_csv('{path}') group by city").fetchall())["Rome"])),
    }
    quoted = {
        "tally -c price": text(["-c", "price"]),
        "tally -c price, 1 thread": text(["-c", "price", "--threads", "1"]),
        "python csv, fsum": lambda path: rows(path, 1),
        "duckdb": by_duckdb("select sum(price::double) from read_csv('{}', quote='\"')"),
    }
    arrays = {
        "tally": text([]), "tally, 1 thread": text(["--threads", "1"]),
        "numpy load, sum": lambda path: float(np.load(path).sum()),
        "numpy memory map, sum": lambda path: float(np.load(path, mmap_mode="r").sum()),
    }
    return [("Numbers as text, 17 digits, one a line", "numbers.txt", numbers),
            ("A column of a table", "sales.csv", column),
            ("The same by keys, of which there are 100", "sales.csv", groups),
            ("A column of a table with every field quoted", "quoted.csv", quoted),
            ("A .npy file of f64", "numbers.npy", arrays)]


def write_files(folder, megabytes):
    """Writes the files. Returns the exact sum for each table; sums of floats are rounded."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal(megabytes * 10**6 // 20)
    with open(f"{folder}/numbers.txt", "w") as file:
        file.writelines(f"{v!r}\n" for v in x.tolist())
    cities = ["Rome"] + [f"City {i}" for i in range(99)]
    n = megabytes * 10**6 // 20
    cents, city = rng.integers(0, 10**7, n).tolist(), rng.integers(0, len(cities), n).tolist()
    with open(f"{folder}/sales.csv", "w") as file:
        file.write("city,price,quantity\n")
        file.writelines(f"{cities[k]},{c // 100}.{c % 100:02},{k}\n" for k, c in zip(city, cents))
    with open(f"{folder}/quoted.csv", "w") as file:
        file.write('"city","price","quantity"\n')
        file.writelines(f'"{cities[k]}","{c // 100}.{c % 100:02}","{k}"\n' for k, c in zip(city, cents))
    y = rng.standard_normal(megabytes * 10**6 // 8)
    np.save(f"{folder}/numbers.npy", y)
    return {"Numbers as text, 17 digits, one a line": math.fsum(x),
            "A column of a table": Fraction(sum(cents), 100),
            "The same by keys, of which there are 100": Fraction(sum(c for k, c in zip(city, cents) if k == 0), 100),
            "A column of a table with every field quoted": Fraction(sum(cents), 100),
            "A .npy file of f64": math.fsum(y)}


def table(title, path, contestants, rounds, exact):
    size = os.path.getsize(path)
    print(f"\n{title}: {size * 1e-6:.0f} MB\n{'':34}{'GB/s':>8}{'/tally':>9}  answer - exact")
    runs = {name: run for name, run in contestants.items() if run}
    times, answers = {name: [] for name in runs}, {}
    for _ in range(rounds):
        for name, run in runs.items():
            before = time.perf_counter()
            answers[name] = run(path)
            times[name].append(time.perf_counter() - before)
    first = next(iter(runs))
    for name, run in contestants.items():
        if not run:
            print(f"{name:34}{'-':>8}{'':9}  not here; scripts/install-deps bench installs it")
            continue
        median = statistics.median(times[name])
        answer = answers[name]
        error = float(answer) - exact if isinstance(exact, float) else float(Fraction(answer) - exact)
        print(f"{name:34}{size * 1e-9 / median:8.3f}{statistics.median(times[first]) / median:9.2f}  {error:.3g}", flush=True)


def tables(build, rounds=5, megabytes=200):
    with tempfile.TemporaryDirectory() as folder:
        exact = write_files(folder, megabytes)
        for title, name, who in contestants(build):
            table(title, f"{folder}/{name}", who, rounds, exact[title])


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--mb", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    sys.exit(tables(args.build, args.rounds, args.mb))
