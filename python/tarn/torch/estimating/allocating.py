"""What PyTorch alone would take for the same step: alive at once, and held by its allocator. There
the optimizer comes last, when all gradients are there."""
from __future__ import annotations

from typing import Any, NamedTuple

from ..memory import rounded
from ..updates import Update
from .caching import Call, held
from .devices import Device


class Eager(NamedTuple):
    """Bytes: the most that is alive at once beyond what stays, and all that the allocator holds,
    what stays included."""
    alive: int
    held: int


def eager(device: Device, lowered: Any, whole: int, clip: int, copies: int = 0) -> Eager:
    """whole: workspace of the optimizer's step on all parameters; clip: of what comes before it;
    copies: bytes beside the gradients that DistributedDataParallel reduces."""
    updates = [op for op in lowered.ops if isinstance(op.run, Update)]
    ops = [op for op in lowered.ops if not isinstance(op.run, Update)] + updates
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for at, op in enumerate(ops):
        for root in dict.fromkeys(lowered.storages[s].root for s in op.inputs + op.outputs):
            first.setdefault(root, at)
            last[root] = at
    made: list[dict[Any, int]] = [{} for _ in ops]
    ended: list[list[Any]] = [[] for _ in ops]
    persistent: list[int] = [copies] if copies else []
    state: dict[int, list[int]] = {}
    for root, at in first.items():
        storage = lowered.storages[root]
        if root not in lowered.persistent:
            made[at][root] = storage.size
            ended[len(ops) - 1 if storage.kind == "gradient" else last[root]].append(root)
        elif storage.kind == "optimizer_state":
            state.setdefault(at, []).append(storage.size)
    persistent += [lowered.storages[root].size for root in lowered.persistent
                   if lowered.storages[root].kind != "optimizer_state"]
    workspaces = [0 if isinstance(op.run, Update) else op.workspace for op in ops]
    if updates:
        workspaces[-len(updates)] = max(whole, clip)
    alive = most = 0
    for at, workspace in enumerate(workspaces):
        alive += sum(rounded(size, device.alignment) for size in made[at].values())
        most = max(most, alive + workspace)
        alive -= sum(rounded(lowered.storages[root].size, device.alignment) for root in ended[at])
    calls = list(map(Call, made, workspaces, ended))
    if device.type != "cuda":  # no allocator that keeps blocks
        return Eager(most, most + sum(persistent) + sum(map(sum, state.values())))
    return Eager(most, held([*persistent, *device.libraries], state, calls))
