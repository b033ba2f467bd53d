"""tally.torch_distributed over the GPUs of one machine, a process a GPU: bits first, then times beside PyTorch's own.

    python bench/torch_ranks.py [RANKS] [LOG2_ELEMENTS]       (without a GPU: over Gloo)

Bits: sums element by element against fractions on a sample and against the same call in the host's memory over Gloo, whole
values against one process, and the gradients of a model under DistributedDataParallel against the rounded means of the
gradients that each rank has found. Each is a line that begins with PASS or FAIL. Times are medians of the slowest rank's.
"""

import os
import statistics
import sys
import tempfile
import time
from fractions import Fraction

import numpy as np
import torch
import torch.distributed as dist
import torch.multiprocessing as processes

import tally
import tally.torch_distributed as exact

TYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "f16": torch.float16}


class Ranks:
    """This process among the others: its GPU, a group for it, and one for the host's memory."""

    def __init__(self, number, count, folder):
        self.number, self.count, self.failed = number, count, 0
        where = {"init_method": f"file://{folder}/ranks", "rank": number, "world_size": count}
        if torch.cuda.is_available():
            torch.cuda.set_device(number)
            self.gpu, self.ids = torch.device("cuda", number), [number]
            dist.init_process_group("nccl", device_id=self.gpu, **where)
        else:
            self.gpu, self.ids = torch.device("cpu"), None
            dist.init_process_group("gloo", **where)
        self.host = dist.new_group(backend="gloo")

    def all_of(self, value):
        made = [None] * self.count
        dist.all_gather_object(made, value, group=self.host)
        return made

    def verdict(self, what, right, more=""):
        right = all(self.all_of(bool(right)))
        self.failed += not right
        if self.number == 0:
            print("PASS" if right else "FAIL", what, more, flush=True)

    def say(self, text):
        if self.number == 0:
            print(text, flush=True)

    def generator(self, seed):
        return torch.Generator().manual_seed(1000 * seed + self.number)


def bits(x):
    return x.detach().cpu().contiguous().view(torch.int32 if x.element_size() == 4 else torch.int16)


def nearest(value, dtype):
    """Returns the number of a type that is nearest to a fraction, ties to even: the best of a guess and its two neighbours."""
    if value == 0:
        return torch.zeros((), dtype=dtype)
    guess = torch.tensor(float(value), dtype=torch.float64).to(dtype)
    around = [torch.nextafter(guess, torch.tensor(to, dtype=dtype)) for to in (-float("inf"), float("inf"))] + [guess]
    around = [a for a in around if torch.isfinite(a)]
    return min(around, key=lambda v: (abs(Fraction(float(v)) - value), int(bits(v)) & 1))


def kinds(ranks, dtype, n):
    """Numbers like gradients; of many magnitudes; and with infinities and NaNs among them."""
    g = ranks.generator(n)
    normal = torch.randn(n, generator=g)
    spread = torch.randint(-60 if dtype != torch.float16 else -9, 9, (n,), generator=g)
    wide = normal * torch.pow(2.0, spread)
    special = wide.clone()
    special[torch.rand(n, generator=g) < 0.01] = float("inf")
    special[torch.rand(n, generator=g) < 0.01] = float("nan")
    return {"gradients": (normal * 0.01).to(dtype), "wide": wide.to(dtype), "specials": special.to(dtype)}


def check_arrays(ranks):
    for name, dtype in TYPES.items():
        for n in (1, 777, (1 << 20) + 5):
            for kind, x in kinds(ranks, dtype, n).items():
                for divisor in (1, 3):
                    there = exact.all_reduce(x.clone().to(ranks.gpu), divisor=divisor)
                    by_messages = exact.all_reduce(x.clone().to(ranks.gpu), divisor=divisor, messages=True)
                    here = exact.all_reduce(x.clone(), group=ranks.host, divisor=divisor)
                    same = torch.equal(bits(there), bits(here)) and torch.equal(bits(there), bits(by_messages))
                    sample = torch.randint(0, n, (min(n, 300),), generator=torch.Generator().manual_seed(5))
                    terms = ranks.all_of(x[sample].double().tolist())
                    if kind != "specials":
                        sums = torch.stack([nearest(sum(map(Fraction, column)) / divisor, dtype) for column in zip(*terms)])
                        same = same and torch.equal(bits(there)[sample], bits(sums))
                    if not same or n > 777:
                        ranks.verdict(f"all_reduce {name} {kind}, {n} elements, divisor {divisor}", same)


def check_peers(ranks):
    """Checks that GPUs reach each other's memory; arrays longer than a stretch, or not contiguous; ranks that disagree."""
    if not torch.cuda.is_available():
        return
    peers = exact._peers.peers_of(None, ranks.gpu)
    ranks.verdict("the GPUs reach each other's memory", peers is not None)
    x = torch.randn((1 << 25) + 3, generator=ranks.generator(9)).to(ranks.gpu)
    same = torch.equal(bits(exact.all_reduce(x.clone())), bits(exact.all_reduce(x.clone(), messages=True)))
    ranks.verdict(f"all_reduce f32, {len(x)} elements: in stretches", same)
    y = x[:1 << 20].view(1024, 1024)
    same = torch.equal(bits(exact.all_reduce(y.clone().t())), bits(exact.all_reduce(y.clone(), messages=True).t()))
    ranks.verdict("all_reduce of a transposed array", same)
    try:
        exact.all_reduce(x[:1000].clone(), divisor=1 + (ranks.number == 0))
        ranks.verdict("ranks that mean different arrays are told so", False)
    except RuntimeError as e:
        ranks.verdict("ranks that mean different arrays are told so", "different" in str(e))


def check_values(ranks):
    for name, dtype in {**TYPES, "f64": torch.float64}.items():
        n = (1 << 18) + 3
        part = (torch.randn(n + 1000 * ranks.number, generator=ranks.generator(3)) * 100).to(dtype)
        parts = ranks.all_of(part)
        whole = one_process(torch.cat(parts))
        for op in ("sum", "mean", "var", "std", "norm1", "norm2", "sumsq", "count", "nonzero"):
            there = exact.reduce(part.to(ranks.gpu), op)
            if name == "bf16":
                right = str(there) == str(whole(op))
            else:
                right = np.asarray(there).tobytes() == np.asarray(whole(op)).tobytes()
            if not right:
                ranks.verdict(f"reduce {name} {op}", False, f"{there!r} {whole(op)!r}")
        ranks.verdict(f"reduce {name}: sum, mean, var, std, norms, counts", True)


def one_process(x):
    """Returns a function of op: the value that one process finds on the CPU."""
    name = str(x.dtype).removeprefix("torch.")

    def value(op):
        state = tally.State(op, {"bfloat16": "bf16"}.get(name, name))
        state.update(x)
        return state.value()
    return value


def model_of(ranks):
    torch.manual_seed(7)
    return torch.nn.Sequential(torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 512), torch.nn.GELU(),
                               torch.nn.Linear(512, 10)).to(ranks.gpu)


def check_hook(ranks):
    """Checks that gradients under the hook are the rounded exact means of the ranks' own."""
    torch.use_deterministic_algorithms(True)
    for dtype in (torch.float32, torch.bfloat16):
        model = model_of(ranks).to(dtype)
        x = torch.randn(64, 256, generator=ranks.generator(11)).to(ranks.gpu, dtype)
        model(x).float().square().mean().backward()
        own = [p.grad.detach().cpu().clone() for p in model.parameters()]
        model.zero_grad(set_to_none=True)
        wrapped = torch.nn.parallel.DistributedDataParallel(model, device_ids=ranks.ids)
        wrapped.register_comm_hook(None, exact.comm_hook)
        wrapped(x).float().square().mean().backward()
        everybody = ranks.all_of(own)
        right, sampled = True, 0
        for i, p in enumerate(model.parameters()):
            got = p.grad.detach().cpu().flatten()
            columns = [e[i].flatten() for e in everybody]
            some = torch.randint(0, got.numel(), (min(got.numel(), 200),), generator=torch.Generator().manual_seed(i))
            want = torch.stack([nearest(sum(Fraction(float(c[k])) for c in columns) / ranks.count, dtype) for k in some])
            right = right and torch.equal(bits(got[some]), bits(want))
            sampled += len(some)
        ranks.verdict(f"comm_hook, {dtype}", right, f"({sampled} gradients)")
    torch.use_deterministic_algorithms(False)


def seconds(ranks, work, times=9):
    took = []
    wait = torch.cuda.synchronize if torch.cuda.is_available() else int
    for _ in range(times + 2):
        wait()
        dist.barrier(group=ranks.host)
        start = time.perf_counter()
        work()
        wait()
        took.append(max(ranks.all_of(time.perf_counter() - start)))
    return statistics.median(took[2:])


def times(ranks, log2):
    for name, dtype in TYPES.items():
        x = (torch.randn(1 << log2, generator=ranks.generator(1)) * 0.01).to(ranks.gpu, dtype)
        plain = seconds(ranks, lambda: dist.all_reduce(x.clone()))
        ours = seconds(ranks, lambda: exact.all_reduce(x.clone()))
        sent = seconds(ranks, lambda: exact.all_reduce(x.clone(), messages=True))
        ranks.say(f"all_reduce of 2^{log2} {name:5} plain {plain * 1e3:8.3f} ms   exact {ours * 1e3:8.3f} ms   {ours / plain:6.2f}"
                  f"   by messages {sent * 1e3:8.3f} ms   {sent / plain:6.2f}")
    x = torch.randn(1 << log2, device=ranks.gpu)

    def plain_sum():
        total = x.sum()
        dist.all_reduce(total)
        return total.item()

    plain, ours = seconds(ranks, plain_sum), seconds(ranks, lambda: exact.reduce(x))
    ranks.say(f"sum of 2^{log2} f32 a GPU    plain {plain * 1e3:8.3f} ms   exact {ours * 1e3:8.3f} ms   {ours / plain:6.2f}")
    for hook in (None, exact.comm_hook):
        wrapped = torch.nn.parallel.DistributedDataParallel(model_of(ranks), device_ids=ranks.ids)
        if hook:
            wrapped.register_comm_hook(None, hook)
        batch = torch.randn(64, 256, device=ranks.gpu)
        took = seconds(ranks, lambda: wrapped(batch).square().mean().backward())
        ranks.say(f"a step of a small model, {'exact means' if hook else 'plain means'}  {took * 1e3:8.3f} ms")


def rank(number, count, folder, log2):
    ranks = Ranks(number, count, folder)
    for part in (check_arrays, check_peers, check_values, check_hook, lambda r: times(r, log2)):
        part(ranks)
    dist.destroy_process_group()
    if ranks.failed:
        sys.exit(1)


if __name__ == "__main__":
    os.environ.setdefault("NCCL_NVLS_ENABLE", "0")
    ranks = int(sys.argv[1]) if len(sys.argv) > 1 else torch.cuda.device_count()
    with tempfile.TemporaryDirectory() as folder:
        processes.spawn(rank, (ranks, folder, int(sys.argv[2]) if len(sys.argv) > 2 else 26), nprocs=ranks)
