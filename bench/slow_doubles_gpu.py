"""Sums and norms of the package on a GPU, with doubles and without (doubles=fast, doubles=slow): of rows and of whole arrays.

    python bench/slow_doubles_gpu.py

Each line is a type, a shape and an operator: microseconds on the device, of a graph of several calls, with doubles, in floats, and
PyTorch's; the quotient is the first over the second. The last lines are its geometric means.
"""
import math
import statistics

import torch

import tally
from model_shapes_gpu import graph_of, on_device

SHAPES = [(2048, 4096), (8192, 4096), (8192, 8192), (65536, 128), (4096, 32000), (1 << 20, 64), (1 << 20, 24), (1 << 27,), (1 << 20,), (4096,)]
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
OPS = {"sum": (tally.sum, torch.sum), "norm": (tally.norm, torch.linalg.vector_norm)}
DOUBLES = ["fast", "slow"]


def compare(x, op):
    """Microseconds with doubles, in floats, and PyTorch's."""
    ours, theirs = OPS[op]
    axis, times = x.ndim - 1, max(2, min(20, (1 << 27) // x.numel()))
    graphs, results = [], []
    for doubles in DOUBLES:
        tally._arrays.Operand.spec = property(lambda self: f"cuda:{self.number},doubles={doubles}")
        tally._repeated.clear_cache()
        results.append(ours(x, axis=axis))
        graphs.append(graph_of(lambda: ours(x, axis=axis), times))
    graphs.append(graph_of(lambda: theirs(x, dim=axis), times))
    assert bytes(results[0].cpu().reshape(-1).view(torch.uint8)) == bytes(results[1].cpu().reshape(-1).view(torch.uint8))
    return on_device(graphs, times)


def main():
    quotients = {}
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}; microseconds")
    print(f"{'':30}{'doubles':>9}{'floats':>9}{'PyTorch':>9}")
    for shape in SHAPES:
        for type_, dtype in TYPES.items():
            x = torch.randn(shape, device="cuda").to(dtype)
            for op in OPS:
                took = compare(x, op)
                quotients.setdefault((op, type_, "rows" if x.ndim > 1 else "whole"), []).append(took[0] / took[1])
                name = f"{type_} {' x '.join(map(str, shape))} {op}"
                print(f"{name:30}{took[0]:9.1f}{took[1]:9.1f}{took[2]:9.1f}{took[0] / took[1]:7.2f}", flush=True)
    for (op, type_, what), q in quotients.items():
        print(f"geometric mean, {op} of {what}, {type_}: {math.exp(statistics.fmean(map(math.log, q))):.2f}")


if __name__ == "__main__":
    main()
