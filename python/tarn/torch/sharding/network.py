"""What a collective costs, by a model: all ranks have the same costs, and so the same plan, and no
collective is profiled (another rank may not capture this step, or fail)."""
from __future__ import annotations

import time
from typing import Any, NamedTuple

import torch
import torch.distributed as dist


class Network(NamedTuple):
    """Seconds until a collective of no bytes is done, and bytes that a rank receives in a second."""
    latency: float
    bandwidth: float

    def cost(self, received: int) -> int:
        """Nanoseconds of a collective in which each rank receives that many bytes."""
        return round(1e9 * (self.latency + received / self.bandwidth))


FAKE = Network(50e-6, 50e9)


def measured(group: Any, device: Any, slowest: Any) -> Network:
    """Of a process group, by all-gathers of two sizes; all ranks call it together. slowest: given
    numbers of this rank, returns lists of those of each rank."""
    ranks = dist.get_world_size(group)
    if ranks == 1 or dist.get_backend(group) == "fake":
        return FAKE
    small, large = 1 << 8, 1 << 19
    seconds = [_seconds(group, device, size, ranks) for size in (small, large)]
    seconds = [max(times) for times in zip(*slowest(seconds))]
    grown = max(seconds[1] - seconds[0], 1e-9)
    return Network(seconds[0], (large - small) * (ranks - 1) / grown)


def _seconds(group: Any, device: Any, size: int, ranks: int) -> float:
    given = torch.zeros(size, dtype=torch.uint8, device=device)
    out = torch.empty(size * ranks, dtype=torch.uint8, device=device)
    times = []
    for _ in range(4):
        begin = time.perf_counter()
        dist.all_gather_into_tensor(out, given, group=group)
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        times.append(time.perf_counter() - begin)
    return min(times[1:])
