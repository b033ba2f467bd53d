"""Sums of one file by several processes: each feeds a state with its part; the states are merged in any order."""
import multiprocessing
import sys
import tempfile

import numpy as np

import tally


def part(arguments):
    path, first, last = arguments
    return tally.State("sum,mean,std").update(np.load(path, mmap_mode="r")[first:last])


def main(path):
    n = len(np.load(path, mmap_mode="r"))
    edges = [n * i // 8 for i in range(9)]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        whole = tally.State("sum,mean,std")
        for state in pool.imap_unordered(part, [(path, a, b) for a, b in zip(edges, edges[1:])]):
            whole += state
    total, mean, std = whole.value()
    print(f"{whole.count} elements: sum {total}, mean {mean}, std {std}")
    assert total == tally.sum(np.load(path, mmap_mode="r"))


if __name__ == "__main__":
    if len(sys.argv) > 1:
        main(sys.argv[1])
    else:
        with tempfile.NamedTemporaryFile(suffix=".npy") as file:
            np.save(file, np.random.default_rng(1).standard_normal(1_000_000))
            file.flush()
            main(file.name)
