"""What two runs of a step have made, compared: bit by bit, or by shares of norms."""
from __future__ import annotations

import hashlib
import itertools
import math
from types import MappingProxyType
from typing import Any, Mapping, Sequence

import torch


def bits(tensor: Any) -> Any:
    """The digest of a tensor."""
    return digest(tensor.resolve_conj().resolve_neg().flatten().contiguous().view(torch.uint8))


def digest(data: Any) -> Any:
    """Of bytes, where they lie: on a GPU a sum in which each word has an odd weight of its own, so
    that one that differs is seen."""
    if data.device.type == "cpu":
        return hashlib.sha256(data.numpy()).digest()
    total, head = torch.zeros((), dtype=torch.int64, device=data.device), data.numel() // 8 * 8
    words = (data[:head].view(torch.int64) if data.data_ptr() % 8 == 0 else data, data[head:])
    for number, part in enumerate(itertools.chain(*(w.split(1 << 20) for w in words))):
        weights = torch.arange(part.numel(), device=data.device) * 2 + (number << 24) + 1
        total += (part.long() * (weights * 0x2545F4914F6CDD1D)).sum()
    return total.item()


def norm(tensors: Any) -> float:
    """Of all of them as one vector."""
    total = 0.0
    for tensor in tensors:
        tensor = torch.view_as_real(tensor) if tensor.is_complex() else tensor
        floats = tensor if tensor.is_floating_point() else tensor.double()
        total += float(torch.linalg.vector_norm(floats, dtype=torch.float64)) ** 2
    return math.sqrt(total)


def distances(one: Mapping[str, Sequence[Any]], two: Mapping[str, Sequence[Any]]) -> dict[str, float]:
    """By name: the norm of the difference of all tensors of that name, as a share of their norm."""
    return {name: norm(s - t for s, t in zip(those, two[name])) / (norm(two[name]) or 1.0)
            if len(those) == len(two[name]) else math.inf for name, those in one.items()}


def agree(one: Mapping[str, Sequence[Any]], two: Mapping[str, Sequence[Any]],
          tolerance: float, noise: Mapping[str, float] = MappingProxyType({})) -> str:
    """In what they differ by more than a share of the norm of all tensors of that name, or "". (In
    some tensors only rounding is left, as in the gradient of what attention adds to all keys; and
    Adam's first step goes as far for a gradient that is rounding as for any other: parameters may
    differ a hundred times more.) noise: shares by which they differ anyway; twice as much is none."""
    for name, share in distances(one, two).items():
        allowed = tolerance * (100 if name == "parameters" else 1)
        if not share <= max(allowed, 2 * noise.get(name, 0.0)):
            return f"{name} (by {share:.1e} of their norm, {tolerance:.0e} is expected)"
    return ""
