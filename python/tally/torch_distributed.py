"""Exact reductions over the ranks of torch.distributed: the same bits for any number of ranks, on any backend.

Only integers travel, by torch.distributed.all_reduce(): so NCCL, Gloo, MPI and whatever else adds integers and finds the
greatest of them will do. Tensors on a GPU are worked on there, on the current stream. The sums of arrays on GPUs of one
machine need no message: the GPUs read each other's memory.

>>> import torch.distributed as dist, tally.torch_distributed as exact        # doctest: +SKIP
>>> exact.all_reduce(gradient)                  # sums element by element, each rounded once     # doctest: +SKIP
>>> exact.reduce(losses, "mean")                # a value of all ranks' elements                 # doctest: +SKIP
>>> model = DistributedDataParallel(model); model.register_comm_hook(None, exact.comm_hook)     # doctest: +SKIP
"""

from __future__ import annotations

from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found, unused-ignore]

from . import _core, _peers
from ._arguments import kind_of
from ._states import State

_WORDS = {"i32": torch.int32, "i64": torch.int64}
_ROW = 512  # words of a spare row
_PART = 16  # one spare row for so many times 512 elements, and ...
_LEAST = 8  # ... so many more


def all_reduce(tensor: Any, *, group: Any = None, divisor: int = 1, messages: bool = False) -> Any:
    """Replaces each element by the sum of all ranks' elements there, divided by `divisor`, rounded once; returns the
    tensor. f32, f16 and bf16. It waits for the sums. RuntimeError where the ranks mean different arrays, or one has failed:
    the elements are then undefined.

    Up to 16 GPUs of one machine add up in each other's memory, of which each sets 128 MiB aside at the group's first call.
    Elsewhere, or with `messages`, there are two messages: 12 bytes for 512 elements, and an int64 for each f32 (an int32 for
    each f16 and bf16 of up to 16 ranks); and a third where a sixteenth of neighbouring elements lie too far apart for that.
    """
    kind = kind_of(tensor.dtype)
    if kind not in ("f32", "f16", "bf16"):
        raise TypeError(f"a tensor of {tensor.dtype}: exact sums over ranks are of float32, float16 and bfloat16")
    if divisor < 1:
        raise ValueError(f"divisor={divisor} is not positive")
    flat = tensor.contiguous().view(-1)
    peers = _peers.peers_of(group, tensor.device) if tensor.is_cuda and not messages else None
    if peers:
        if peers.all_reduce(flat, kind, divisor) != 0:
            raise RuntimeError("the ranks mean different arrays, or one has failed")
        if flat.data_ptr() != tensor.data_ptr():
            tensor.copy_(flat.view(tensor.shape))
        return tensor
    spare, needs = flat.numel() // _ROW // _PART + _LEAST, -1
    while needs != 0:
        status, needs, sums = _sums(flat, kind, group, divisor, spare)
        if status not in (0, 4):
            raise RuntimeError("another rank has failed")
        spare = needs
    tensor.copy_(sums.view(tensor.shape))
    return tensor


def _sums(x: Any, kind: str, group: Any, divisor: int, spare: int) -> tuple[int, int, Any]:
    """Returns (status, spare rows that are needed, or 0 if there were enough, sums). The first two are the same on all ranks."""
    n, ranks = x.numel(), dist.get_world_size(group)
    rows = _core.terms_sizes(kind, n, ranks, 0)[5]
    spare = min(spare, rows)
    word, bound_count, _, spare_words, workspace_bytes, _ = _core.terms_sizes(kind, n, ranks, spare)
    device, queue = None, 0
    if x.is_cuda:
        device, queue = f"cuda:{x.device.index}", torch.cuda.current_stream(x.device).cuda_stream
    own = n + n % 2  # the spare words begin at a multiple of 8 bytes
    bounds = torch.zeros(max(bound_count, 2), dtype=torch.int32, device=x.device)
    words = torch.zeros(own + spare_words + 2, dtype=_WORDS[word], device=x.device)
    workspace = torch.empty(workspace_bytes // 8, dtype=torch.int64, device=x.device)
    outcome = torch.zeros(2, dtype=torch.int64, device=x.device)
    sums = torch.empty_like(x)
    first = words.data_ptr()
    at = (x.data_ptr(), bounds.data_ptr(), first, first + own * words.element_size(), 0, workspace.data_ptr(), sums.data_ptr(),
          outcome.data_ptr(), queue)
    asked = (device, kind, n, ranks, spare, divisor, at)
    _core.terms(0, *asked)
    dist.all_reduce(bounds, op=dist.ReduceOp.MAX, group=group)
    _core.terms(1, *asked)
    dist.all_reduce(words, op=dist.ReduceOp.SUM, group=group)
    _core.terms(2, *asked)
    needs, status = outcome.tolist()
    return status & 0xffffffff, needs, sums


def reduce(x: Any, op: Any = "sum", *, group: Any = None, **asked: Any) -> Any:
    """The value of all ranks' elements together, as tally.State(op, ...) has it: sums, means, variances, norms, counts and
    combinations of these. A rank may have no elements."""
    state = State(op, x.dtype, **asked)
    if x.numel():
        state.update(x)
    words = state.words()
    if len(words) == 0:
        raise NotImplementedError(f"{op!r} is not built on sums: additions do not combine its states")
    sent = torch.from_numpy(words).to(x.device)
    dist.all_reduce(sent, op=dist.ReduceOp.SUM, group=group)
    return state.from_words(sent.cpu().numpy()).value()


def comm_hook(group, bucket):  # type: ignore[no-untyped-def] # PyTorch refuses a hook whose annotations are not its own
    """For DistributedDataParallel.register_comm_hook(group, comm_hook): gradients are the exact means of all ranks'."""
    gradients = bucket.buffer()
    all_reduce(gradients, group=group, divisor=dist.get_world_size(group))
    done: Any = torch.futures.Future()
    done.set_result(gradients)
    return done
