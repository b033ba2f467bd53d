"""Rows and columns of arrays as language models have them: the package beside PyTorch on a GPU.

    python bench/model_shapes_gpu.py [--only TEXT] [--kernels] [--device OPTIONS]

Each line is a shape, a type, an axis and an operator: microseconds on the device, of a graph of several calls, and until a call
returns, each the library's and PyTorch's; the quotient is PyTorch's over the library's. The last lines are geometric means and
the cells below 1 / 1.1. --kernels lists the kernels of each call with their times instead. --device opens the library's device
with these options, such as doubles=slow.
"""
import argparse
import math
import statistics
import time

import torch

import tally

SHAPES = [(1, 4096), (32, 4096), (2048, 4096), (8192, 4096), (8192, 8192), (65536, 128), (4096, 32000), (1 << 20, 64)]
TYPES = {"bf16": torch.bfloat16, "f32": torch.float32}
OPS = {"sum": (tally.sum, torch.sum), "mean": (tally.mean, torch.mean), "max": (tally.max, torch.amax),
       "argmax": (tally.argmax, torch.argmax), "norm": (tally.norm, torch.linalg.vector_norm), "var": (tally.var, None)}


def variance(x, dim):
    return torch.var(x, dim=dim, correction=0)


def graph_of(call, times):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        for _ in range(3):
            call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, stream=stream):
        for _ in range(times):
            call()
    return graph


def on_device(graphs, times, rounds=9):
    """Microseconds of a call of each graph, which take turns."""
    took = [[] for _ in graphs]
    for graph in graphs:
        graph.replay()
    for _ in range(rounds):
        for graph, t in zip(graphs, took):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            t.append(begin.elapsed_time(end) * 1000 / times)
    return [statistics.median(t) for t in took]


def until_it_returns(calls, rounds=7, times=20):
    took = [[] for _ in calls]
    for _ in range(rounds):
        for call, t in zip(calls, took):
            torch.cuda.synchronize()
            begin = time.perf_counter()
            for _ in range(times):
                call()
            t.append((time.perf_counter() - begin) * 1e6 / times)
    torch.cuda.synchronize()
    return [statistics.median(t) for t in took]


def kernels_of(call):
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as seen:
        for _ in range(5):
            call()
        torch.cuda.synchronize()
    return ", ".join(f"{e.key[:40]} x{e.count / 5:g} {e.device_time_total / e.count:.1f}" for e in seen.key_averages())


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--only", default="")
    options.add_argument("--kernels", action="store_true")
    options.add_argument("--device", default="")
    options = options.parse_args()
    if options.device:
        tally._arrays.Operand.spec = property(lambda self: f"cuda:{self.number},{options.device}")
    quotients, slow = {}, []
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds")
    print(f"{'':34}{'device':>9}{'PyTorch':>9}{'':7}{'returns':>9}{'PyTorch':>9}")
    for shape in SHAPES:
        for type_, dtype in TYPES.items():
            x = torch.randn(shape, device="cuda").to(dtype)
            for axis in (1, 0):
                for op, (ours, theirs) in OPS.items():
                    name = f"{type_} {shape[0]} x {shape[1]} axis {axis} {op}"
                    if options.only not in name:
                        continue
                    calls = [lambda: ours(x, axis=axis), lambda: (theirs or variance)(x, dim=axis)]
                    for call in calls:
                        for _ in range(12):  # (the library makes graphs of calls that come again)
                            call()
                    if options.kernels:
                        print(f"{name:34}", kernels_of(calls[0]), "|", kernels_of(calls[1]), flush=True)
                        continue
                    times = max(2, min(20, (1 << 27) // x.numel()))
                    device = on_device([graph_of(call, times) for call in calls], times)
                    host = until_it_returns(calls, times=min(20, 2 * times))
                    for what, (a, b) in (("device", device), ("returns", host)):
                        quotients.setdefault((what, type_, axis), []).append(b / a)
                        if b / a < 1 / 1.1:
                            slow.append(f"{name}, {what}: {b / a:.2f}")
                    print(f"{name:34}{device[0]:9.1f}{device[1]:9.1f}{device[1] / device[0]:7.2f}{host[0]:9.1f}{host[1]:9.1f}"
                          f"{host[1] / host[0]:7.2f}", flush=True)
    for (what, type_, axis), q in quotients.items():
        print(f"geometric mean of {what}, {type_}, axis {axis}: {math.exp(statistics.fmean(map(math.log, q))):.2f}")
    print(f"{len(slow)} of {sum(map(len, quotients.values()))} below 1 / 1.1:", "; ".join(slow))


if __name__ == "__main__":
    main()
