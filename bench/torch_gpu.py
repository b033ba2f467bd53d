"""Arrays on a GPU: the package beside PyTorch and CuPy, by the device's clock, on 2^28 elements.

    python bench/torch_gpu.py [-n LOG2] [--rounds ROUNDS] [--types f32,f64,bf16] [--calls | --whole | --masked]

GB/s of the elements that are read; `roof` is the share of the fastest plain read of the same bytes. Calls take turns,
round by round; what is shown are medians. Then how long a call of 16 elements takes to return.
"""
import argparse
import statistics
import time

import torch

import tally

try:
    import cupy
except ImportError:
    cupy = None

TYPES = {"f32": torch.float32, "f64": torch.float64, "bf16": torch.bfloat16}
WHOLE = {
    "sum": (torch.sum, "sum"), "mean": (torch.mean, "mean"), "var": (lambda x: torch.var(x, correction=0), "var"),
    "std": (lambda x: torch.std(x, correction=0), "std"), "norm": (torch.linalg.vector_norm, None), "sumsq": (None, None),
    "dot": (torch.dot, "dot"), "min": (torch.min, "min"), "max": (torch.max, "max"), "minmax": (torch.aminmax, None),
    "argmin": (torch.argmin, "argmin"), "argmax": (torch.argmax, "argmax"), "count_nonzero": (torch.count_nonzero,
                                                                                           "count_nonzero"),
    "any": (torch.any, None), "all": (torch.all, None),
}
ALONG = {"sum": torch.sum, "argmax": torch.argmax, "var": lambda x, axis: torch.var(x, axis, correction=0)}
SHAPES = ((14, 14), (24, 4), (26, 2), (20, 8), (4, 24))

READ = r"""
extern "C" __global__ void plain_read(const uint4 *x, unsigned long long n, uint4 *out) {
    const unsigned long long step = (unsigned long long)gridDim.x * blockDim.x;
    unsigned long long i = (unsigned long long)blockIdx.x * blockDim.x + threadIdx.x;
    unsigned word = 0;
    for (; i + 3 * step < n; i += 4 * step) {
        const uint4 a = x[i], b = x[i + step], c = x[i + 2 * step], d = x[i + 3 * step];
        word ^= a.x ^ a.y ^ a.z ^ a.w ^ b.x ^ b.y ^ b.z ^ b.w ^ c.x ^ c.y ^ c.z ^ c.w ^ d.x ^ d.y ^ d.z ^ d.w;
    }
    for (; i < n; i += step) word ^= x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    if (word == 0x7e57ab1e) out->x = word;
}
"""


def seconds(call, most=0.01):
    """Returns a call's time on the device, of as many calls in a row as take a hundredth of a second."""
    start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    start.record()
    call()
    end.record()
    end.synchronize()
    count = max(1, min(20, int(most / (1e-3 * start.elapsed_time(end) + 1e-6))))
    start.record()
    for _ in range(count):
        call()
    end.record()
    end.synchronize()
    return 1e-3 * start.elapsed_time(end) / count


def turns(calls, rounds):
    """Medians of calls that take turns. One that takes a long time is not asked again."""
    seen = {}
    for name, call in calls.items():
        call()  # compiles
    for _ in range(rounds):
        for name, call in calls.items():
            if len(seen.get(name, ())) == 0 or statistics.median(seen[name]) < 0.02:
                seen.setdefault(name, []).append(seconds(call))
    return {name: statistics.median(s) for name, s in seen.items()}


def roof_of(x, rounds):
    """GB/s of the fastest plain read of an array's bytes."""
    if cupy is None:
        return float("nan")
    kernel, size = cupy.RawKernel(READ, "plain_read"), x.numel() * x.element_size()
    bytes_ = cupy.from_dlpack(x.view(torch.uint8))
    units, out = torch.cuda.get_device_properties(0).multi_processor_count, cupy.zeros(4, "u4")
    best = 0.0
    for blocks, threads in ((2, 1024), (4, 512), (8, 256), (16, 256), (64, 256)):
        best = max(best, size / turns({"": lambda: kernel((blocks * units,), (threads,), (bytes_, size // 16, out))},
                                      rounds)[""])
    return best / 1e9


def show(what, size, seen, roof):
    rates = [size / seen[name] / 1e9 if name in seen else None for name in ("tally", "torch", "cupy")]
    print(f"{what:30}" + "".join(f"{r:10.1f}" if r else f"{'-':>10}" for r in rates) + f"{rates[0] / roof:8.2f}" +
          (f"{rates[0] / rates[1]:10.2f}" if rates[1] else f"{'-':>10}"), flush=True)


def head(what):
    print(f"\n{what:30}{'tally':>10}{'torch':>10}{'cupy':>10}{'roof':>8}{'x torch':>10}", flush=True)


def host_time(call, count=40):
    """Microseconds until a call returns, the median; of few calls in a row, so that none waits for room in the queue."""
    seen = []
    for _ in range(60):
        torch.cuda.synchronize()
        start = time.perf_counter()
        for _ in range(count):
            call()
        seen.append((time.perf_counter() - start) / count)
    torch.cuda.synchronize()
    return 1e6 * statistics.median(seen)


def masked(x, rounds, roof):
    """Arrays of which half of the elements are masked, and arrays whose elements lie apart; GB/s of elements and mask."""
    last = x.numel().bit_length() - 1
    there, size = torch.rand(x.numel(), device="cuda") < 0.5, x.element_size()
    theirs = {"sum": lambda z, m, axis: torch.where(m, z, 0).sum(axis),
              "max": lambda z, m, axis: torch.where(m, z, -torch.inf).amax(axis)}
    head("where=, GB/s")
    for rows, columns in ((0, last), (last - 2, 2), (last - 6, 6), (last // 2, last - last // 2), (4, last - 4)):
        z, m = x.reshape(1 << rows, 1 << columns), there.reshape(1 << rows, 1 << columns)
        for axis in (0, 1) if rows else (1,):
            for op in ("sum", "mean", "var", "max"):
                more = {"initial": -torch.inf} if op == "max" else {}
                calls = {"tally": lambda: getattr(tally, op)(z, axis=axis, where=m, **more)}
                if op in theirs:
                    calls["torch"] = lambda: theirs[op](z, m, axis)
                show(f"{op} axis {axis}, 2^{rows} x 2^{columns}", x.numel() * (size + 1), turns(calls, rounds), roof)
    third = (last - last // 2) // 2
    cube = x.reshape(1 << last // 2, 1 << third, -1)
    square = x.reshape(1 << last // 2, -1)
    head("elements apart, GB/s")
    for what, z, axis in (("every other, rows", square[:, ::2], 1), ("every other, columns", square[:, ::2], 0),
                          ("rows of 64 of 128", x.reshape(-1, 128)[:, :64], 1),
                          ("rows but for their first", square[:, 1:], 1),
                          ("cube, axes 0 and 2", cube, (0, 2)), ("cube, axis 1 and rest turned", cube.permute(2, 0, 1), 1),
                          ("cube transposed, axis 0", cube.permute(1, 2, 0), 0)):
        for op in ("sum", "max", "var"):
            them = {"sum": torch.sum, "max": torch.amax, "var": lambda z, axis: torch.var(z, axis, correction=0)}[op]
            calls = {"tally": lambda: getattr(tally, op)(z, axis=axis), "torch": lambda: them(z, axis)}
            show(f"{op}, {what}", z.numel() * size, turns(calls, rounds), roof)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=28, help="log2 of the elements (28)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--types", default="f32,f64,bf16")
    parser.add_argument("--calls", action="store_true", help="only the last part: how long calls take to return")
    parser.add_argument("--whole", action="store_true", help="only whole arrays")
    parser.add_argument("--masked", action="store_true", help="only arrays with a mask, and those whose elements lie apart")
    a = parser.parse_args()
    print(torch.cuda.get_device_name(), "torch", torch.__version__, "" if cupy is None else f"cupy {cupy.__version__}")
    torch.manual_seed(1)
    for name in () if a.calls else a.types.split(","):
        x, y = (torch.randn(1 << a.n, device="cuda").to(TYPES[name]) for _ in range(2))
        roof = roof_of(x, a.rounds)
        print(f"\n{name}, 2^{a.n} standard normal elements; a plain read {roof:.0f} GB/s")
        if a.masked:
            masked(x, a.rounds, roof)
            continue
        head("whole array, GB/s")
        arrays = (x, y) if cupy is None or name != "f32" else (x, y, cupy.from_dlpack(x), cupy.from_dlpack(y))
        for op, (theirs, cupys) in WHOLE.items():
            two = op == "dot"
            calls = {"tally": lambda: getattr(tally, op)(*arrays[:1 + two])}
            if theirs:
                calls["torch"] = lambda: theirs(*arrays[:1 + two])
            if cupys and len(arrays) == 4:
                calls["cupy"] = lambda: getattr(cupy, cupys)(*arrays[2:3 + two])
            show(op, (1 + two) * x.numel() * x.element_size(), turns(calls, a.rounds), roof)
        if a.whole:
            continue
        head("along an axis, GB/s")
        for rows, columns in SHAPES if name == "f32" else SHAPES[:1]:
            rows += a.n - 28
            for axis in (0, 1):
                for op, theirs in ALONG.items():
                    z = x.reshape(1 << rows, 1 << columns)
                    calls = {"tally": lambda: getattr(tally, op)(z, axis=axis), "torch": lambda: theirs(z, axis)}
                    if cupy is not None and name == "f32" and op == "sum":
                        w = cupy.from_dlpack(z)
                        calls["cupy"] = lambda: cupy.sum(w, axis)
                    show(f"{op} axis {axis}, 2^{rows} x 2^{columns}", x.numel() * x.element_size(), turns(calls, a.rounds),
                         roof)
        del x, y, arrays
    if a.whole or a.masked:
        return
    x, z, wide = torch.ones(16, device="cuda"), torch.ones(4, 4, device="cuda"), torch.ones(1024, 1024, device="cuda")
    there, f64 = z > 0, torch.float64
    print(f"\n{'until a call returns, us':30}{'tally':>10}{'torch':>10}{'ratio':>10}")
    for what, ours, theirs in (("sum, 16 f32", lambda: tally.sum(x), lambda: torch.sum(x)),
                               ("mean, 16 f32", lambda: tally.mean(x), lambda: torch.mean(x)),
                               ("var, 16 f32", lambda: tally.var(x), lambda: torch.var(x)),
                               ("norm, 16 f32", lambda: tally.norm(x), lambda: torch.linalg.vector_norm(x)),
                               ("dot, 16 f32", lambda: tally.dot(x, x), lambda: torch.dot(x, x)),
                               ("max, 16 f32", lambda: tally.max(x), lambda: torch.max(x)),
                               ("argmax, 16 f32", lambda: tally.argmax(x), lambda: torch.argmax(x)),
                               ("minmax, 16 f32", lambda: tally.minmax(x), lambda: torch.aminmax(x)),
                               ("any, 16 f32", lambda: tally.any(x), lambda: torch.any(x)),
                               ("sum axis 0, 4 x 4 f32", lambda: tally.sum(z, axis=0), lambda: torch.sum(z, 0)),
                               ("sum axis 1, 4 x 4 f32", lambda: tally.sum(z, axis=1), lambda: torch.sum(z, 1)),
                               ("mean axis 0, 4 x 4 f32", lambda: tally.mean(z, axis=0), lambda: torch.mean(z, 0)),
                               ("argmax axis 1, 4 x 4 f32", lambda: tally.argmax(z, axis=1), lambda: torch.argmax(z, 1)),
                               ("var axis 1, 4 x 4 f32", lambda: tally.var(z, axis=1), lambda: torch.var(z, 1, correction=0)),
                               ("norm axis 1, 4 x 4 f32", lambda: tally.norm(z, axis=1),
                                lambda: torch.linalg.vector_norm(z, dim=1)),
                               ("sum to f64, 16 f32", lambda: tally.sum(x, dtype=f64), lambda: torch.sum(x, dtype=f64)),
                               ("sum keepdims, 4 x 4 f32", lambda: tally.sum(z, keepdims=True),
                                lambda: torch.sum(z, (0, 1), keepdim=True)),
                               ("sum where=, 4 x 4 f32", lambda: tally.sum(z, where=there), lambda: torch.sum(z)),
                               ("sum axis 0 where=, 4 x 4", lambda: tally.sum(z, axis=0, where=there), lambda: torch.sum(z, 0)),
                               ("mean, 2^20 f32", lambda: tally.mean(wide), lambda: torch.mean(wide)),
                               ("var, 2^20 f32", lambda: tally.var(wide), lambda: torch.var(wide, correction=0)),
                               ("sum axis 0, 1024 x 1024", lambda: tally.sum(wide, axis=0), lambda: torch.sum(wide, 0)),
                               ("sum axis 1, 1024 x 1024", lambda: tally.sum(wide, axis=1), lambda: torch.sum(wide, 1))):
        mine, other = host_time(ours), host_time(theirs)
        print(f"{what:30}{mine:10.2f}{other:10.2f}{mine / other:10.2f}")


if __name__ == "__main__":
    main()
