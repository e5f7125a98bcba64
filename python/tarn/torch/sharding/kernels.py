"""What a unit's gather, its reduction and the casts around them are in a captured graph: one op each,
whose results are views of one tensor, so that the plan keeps a unit, or makes it again, as a whole."""
from __future__ import annotations

from typing import Any, Sequence

import torch

from ..collectives import Collective, reduced
from ..kernel import Kernel

ALIGNMENT = 64  # bytes at which the tensors of a unit begin


def _room(counts: Sequence[int], dtype: Any, device: Any) -> Any:
    """Tensors of these many elements in one storage."""
    step = max(1, ALIGNMENT // dtype.itemsize)
    starts, end = [], 0
    for count in counts:
        starts.append(end)
        end += -(-count // step) * step
    buffer = torch.empty(end, dtype=dtype, device=device)
    return [buffer[start:start + count] for start, count in zip(starts, counts)]


class Cast(Kernel):
    """This rank's parts, of another type."""

    def __init__(self, dtype: Any) -> None:
        super().__init__("cast", key=f"cast to {dtype}")
        self._schema.name = "sharding::to_copy"
        self._dtype = dtype
        self.call, self.into = self._call, self._into

    def _call(self, *parts: Any) -> Any:
        outs = _room([part.numel() for part in parts], self._dtype, parts[0].device)
        self._into(*parts, *outs)
        return outs

    def _into(self, *tensors: Any) -> None:
        count = len(tensors) // 2
        for part, out in zip(tensors[:count], tensors[count:]):
            out.copy_(part)


class Pack(Kernel):
    """Gradients as the ranks' parts back to back, each part padded, of the type that is reduced:
    what the rank of each row gets. plans: by gradient, (dimension that is shared out, elements of a
    rank's part)."""

    def __init__(self, ranks: int, plans: Sequence[tuple[int, int]], dtype: Any,
                 divided: Any) -> None:
        super().__init__("pack", key=f"pack for {ranks} as {dtype}")
        self._schema.name = "sharding::cat"
        self._ranks, self._plans, self._dtype, self._divided = ranks, plans, dtype, divided
        self.call, self.into = self._call, self._into

    def _call(self, *gradients: Any) -> Any:
        width = sum(part for _, part in self._plans)
        out = torch.empty(self._ranks * width, dtype=self._dtype or gradients[0].dtype,
                          device=gradients[0].device)
        self._into(*gradients, out)
        return [out]

    def _into(self, *tensors: Any) -> None:
        *gradients, out = tensors
        rows, start = out.view(self._ranks, -1), 0
        for gradient, (dimension, part) in zip(gradients, self._plans):
            place = rows[:, start:start + part]
            start += part
            self._put(place, gradient.unflatten(dimension, (self._ranks, -1)).movedim(dimension, 0)
                      if dimension else gradient)
        if self._divided:
            out.div_(self._divided)

    def _put(self, place: Any, gradient: Any) -> None:
        part, flat = place.shape[1], gradient.reshape(-1)
        whole, rest = divmod(flat.numel(), part)
        place[:whole].copy_(flat[:whole * part].view(whole, part))
        if whole < self._ranks:  # the last ranks' parts are padded
            place[whole:].zero_()
            place[whole, :rest].copy_(flat[whole * part:])


class Gather(Collective):
    """The ranks' parts of a unit's parameters, each behind the other. late: of each, whether the
    backward pass reads it; those and the others are two tensors."""

    def __init__(self, ranks: int, group: str, late: Sequence[bool]) -> None:
        super().__init__("all_gather", group)
        self._ranks, self._late = ranks, tuple(late)

    def alone(self, *parts: Any) -> Any:
        rooms = {late: iter(_room([self._ranks * part.numel() for part, other
                                   in zip(parts, self._late) if other == late],
                                  parts[0].dtype, parts[0].device)) for late in set(self._late)}
        outs = [next(rooms[late]) for late in self._late]
        for part, out in zip(parts, outs):
            out.view(self._ranks, -1).copy_(part)
        return outs

    def start(self, group: Any, given: Any, outs: Any) -> Any:
        return group.allgather_into_tensor_coalesced(outs, list(given)), None

    def received(self, ranks: int, given: int, made: int) -> int:
        return made * (ranks - 1) // ranks


class Scatter(Collective):
    """This rank's parts of the reduced gradients, which are given as the ranks' parts one behind the
    other."""

    def __init__(self, ranks: int, group: str, how: str) -> None:
        super().__init__("reduce_scatter", group)
        self._ranks, self._how = ranks, how

    def alone(self, *gradients: Any) -> Any:
        outs = _room([g.numel() // self._ranks for g in gradients], gradients[0].dtype,
                     gradients[0].device)
        for gradient, out in zip(gradients, outs):
            out.copy_(gradient.reshape(self._ranks, -1)[0])
        return outs

    def start(self, group: Any, given: Any, outs: Any) -> Any:
        return reduced(group, outs, given, self._how)

    def received(self, ranks: int, given: int, made: int) -> int:
        return given * (ranks - 1) // ranks


class Reduce(Collective):
    """The same of all replicas, in their places."""

    def __init__(self, group: str, how: str) -> None:
        super().__init__("all_reduce", group)
        self._how = how

    def alone(self, *parts: Any) -> Any:
        outs = _room([part.numel() for part in parts], parts[0].dtype, parts[0].device)
        for part, out in zip(parts, outs):
            out.copy_(part)
        return outs

    def start(self, group: Any, given: Any, outs: Any) -> Any:
        return reduced(group, outs, given, self._how, scattered=False)

    def received(self, ranks: int, given: int, made: int) -> int:
        return 2 * given * (ranks - 1) // ranks
