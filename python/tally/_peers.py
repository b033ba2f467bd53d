"""Arrays that are added up over GPUs of one machine, which read and write each other's memory: no message is sent.

PyTorch's symmetric memory gives each rank a room, a buffer that all ranks reach: a mailbox (tally.h, tally_enqueue_shared()), a
stretch of terms, and a stretch of sums. An array goes through the room stretch by stretch, on the current stream.
"""

from __future__ import annotations

import socket
import weakref
import zlib
from typing import Any

import torch  # type: ignore[import-not-found, unused-ignore]
import torch.distributed as dist  # type: ignore[import-not-found, unused-ignore]

from . import _core

_STRETCH = 64 << 20  # bytes of terms, and of sums
_RANKS, _ADDRESSES = 16, 2  # tally.h: TALLY_MAILBOX_RANKS, TALLY_MAILBOX_ADDRESSES


class Peers:
    """The rooms of a group's ranks. Every rank makes one at the same time; RuntimeError where a GPU does not reach another."""

    def __init__(self, group: Any, device: Any) -> None:
        import torch.distributed._symmetric_memory as symmetric  # type: ignore[import-not-found, unused-ignore]
        self.mine, self.ranks = dist.get_rank(group), dist.get_world_size(group)
        self.mailbox_bytes = 256 + 16384 * self.ranks
        self.room = symmetric.empty(self.mailbox_bytes + 2 * _STRETCH, dtype=torch.uint8, device=device).zero_()
        self.rooms = tuple(symmetric.rendezvous(self.room, group=group).buffer_ptrs)
        addresses = torch.tensor(self.rooms, dtype=torch.int64, device=device)
        self.room[8 * _ADDRESSES:8 * (_ADDRESSES + self.ranks)].copy_(addresses.view(torch.uint8))

    def all_reduce(self, x: Any, kind: str, divisor: int) -> int:
        """Replaces the elements of a contiguous tensor by the rounded sums of all ranks'; returns the status, the same on all."""
        most = _STRETCH // x.element_size()
        outcomes = torch.zeros((x.numel() // most + 1, 2), dtype=torch.int64, device=x.device)
        queue = torch.cuda.current_stream(x.device).cuda_stream
        terms, sums = (self.mailbox_bytes + i * _STRETCH for i in (0, 1))
        same = zlib.crc32(f"{kind} {x.numel()} {divisor}".encode())  # ranks that mean different arrays have different numbers
        for outcome, first in enumerate(range(0, x.numel(), most)):
            stretch = x[first:first + most]
            size = stretch.numel() * x.element_size()
            self.room[terms:terms + size].view(x.dtype).copy_(stretch)
            _core.terms_shared(f"cuda:{x.device.index}", kind, stretch.numel(), divisor, self.mine, tuple(r + terms for r in self.rooms),
                               tuple(r + sums for r in self.rooms), same, self.rooms[self.mine], outcomes[outcome].data_ptr(), queue)
            stretch.copy_(self.room[sums:sums + size].view(x.dtype))
        return int((outcomes[:, 1] & 0xffffffff).max())


_known: weakref.WeakKeyDictionary[Any, dict[Any, Peers | None]] = weakref.WeakKeyDictionary()


def peers_of(group: Any, device: Any) -> Peers | None:
    """The rooms of a group, made by the first call, which all ranks make together; None where they cannot all be reached."""
    group = group or dist.group.WORLD
    made = _known.setdefault(group, {})
    if device not in made:
        made[device] = _make(group, device)
    return made[device]


def _make(group: Any, device: Any) -> Peers | None:
    ranks = dist.get_world_size(group)
    if ranks < 2 or ranks > _RANKS or len(set(_told(group, socket.gethostname()))) > 1:
        return None
    try:
        peers: Peers | None = Peers(group, device)
    except (ImportError, AttributeError, RuntimeError):
        peers = None
    torch.cuda.synchronize(device)  # the mailbox is ready before another rank can write there
    return peers if all(_told(group, peers is not None)) else None


def _told(group: Any, word: Any) -> list[Any]:
    """Returns the words of all ranks, in the order of ranks."""
    words = [None] * dist.get_world_size(group)
    dist.all_gather_object(words, word, group=group)
    return words
