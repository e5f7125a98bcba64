"""Values that somebody has placed, each with bytes and a first and a last step: as a graph of one
stream, and as a plan."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from .network import Network, Reading, placed


class Value(NamedTuple):
    """It is alive from step `begin` to step `end`, both included; an `end` behind the last step: it is
    an output."""
    name: str
    begin: int
    end: int
    size: int
    offset: int
    space: int = 0


def storages(values: Sequence[Value]) -> list[list[Value]]:
    """Values that have bytes and a moment in common: their producer lets them share, so they are one
    storage."""
    found: list[list[Value]] = []
    for value in sorted(values, key=lambda v: (v.begin, v.end)):
        same = [s for s in found if any(
            v.space == value.space and v.begin <= value.end and value.begin <= v.end and
            v.offset < value.offset + value.size and value.offset < v.offset + v.size for v in s)]
        merged = [v for s in same for v in s] + [value]
        found = [s for s in found if not any(s is t for t in same)] + [merged]
    return found


def reading(net: Network, steps: Sequence[tuple[str, str]], values: Sequence[Value], method: str,
            alignment: int) -> Reading:
    """The graph with an op for each step (name, kind), and the plan."""
    last = len(steps) - 1
    made: list[list[int]] = [[] for _ in steps]
    read: list[list[int]] = [[] for _ in steps]
    offsets: dict[int, int] = {}
    shared = 0
    for storage in storages([v for v in values if v.size]):
        shared += len(storage) - 1
        low = min(v.offset for v in storage)
        size = max(v.offset + v.size for v in storage) - low
        kind = "output" if max(v.end for v in storage) > last else "intermediate"
        root = net.tensor(storage[0].name, size, kind, storage[0].space)
        offsets[root] = low
        for value in storage:
            tensor = root if value is storage[0] else net.alias(value.name, root)
            made[value.begin].append(tensor)
            if min(value.end, last) > value.begin:
                read[min(value.end, last)].append(tensor)
    for place, (name, kind) in enumerate(steps):
        net.op(name, kind, [t for t in read[place] if t not in made[place]], made[place])
    if shared:
        net.assume(f"{shared} of {len(values)} values in the bytes of another one while that is "
                   "alive, as their producer placed them: one storage")
    graph = net.finish()
    known = {net.id(tensor): offset for tensor, offset in offsets.items()}
    plan, refused = placed(graph, method, alignment,
                           {i: offset for i, offset in known.items() if i is not None}, {})
    return Reading(graph, tuple(net.assumed), plan, refused)
