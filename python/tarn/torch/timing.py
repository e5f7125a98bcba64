"""How long a planned step takes by its ops' costs, and where its peak is."""
from __future__ import annotations

from typing import NamedTuple, Optional

import tarn

WAIT = 2000  # nanoseconds of an event's wait on a GPU


def makespan(plan: tarn.Plan, wait: int = 0) -> int:
    """Nanoseconds from the start of the first op to the end of the last one: an op starts when the
    op before it in its stream has ended, and `wait` after all ops that it waits for have."""
    ops = {op.id: op for op in plan.graph.ops}
    queues = [plan.launches(tarn.StreamId(stream)) for stream in range(len(plan.graph.streams))]
    if len(queues) == 1:
        return sum(op.cost for op in ops.values())
    waits: dict[int, list[int]] = {}
    for later, earlier in plan.waits():
        waits.setdefault(later, []).append(earlier)
    ends: dict[int, int] = {}
    now, at = [0] * len(queues), [0] * len(queues)
    while len(ends) < len(ops):
        had = len(ends)
        for stream, queue in enumerate(queues):
            while at[stream] < len(queue):
                op = queue[at[stream]]
                before = waits.get(op, [])
                if any(earlier not in ends for earlier in before):
                    break
                start = max([now[stream], *(ends[earlier] + wait for earlier in before)])
                now[stream] = ends[op] = start + ops[op].cost
                at[stream] += 1
        assert len(ends) > had, "ops of the plan wait for each other"
    return max(ends.values(), default=0)


class Peak(NamedTuple):
    """The op at which the most is alive if ops run one after the other, its bytes, and who made
    them: (kind of op, storages, bytes), the most first."""
    op: str
    size: int
    makers: list[tuple[str, int, int]]


def peak(graph: tarn.Graph) -> Optional[Peak]:
    """Of a graph whose ops are in the order in which they run."""
    ops, tensors = list(graph.ops), list(graph.tensors)
    last: dict[int, int] = {}
    for op in ops:
        for tensor in [*op.inputs, *op.outputs]:
            last[tensors[tensor].root] = op.id
    alive: dict[int, tuple[str, int]] = {}
    size = 0
    best, at, there = -1, None, {}
    for op in ops:
        for tensor in op.outputs:
            root = tensors[tensor].root
            if not tensors[root].is_persistent and root not in alive:
                alive[root] = (op.kind or op.name, tensors[root].size)
                size += tensors[root].size
        if size + op.workspace > best:
            best, at, there = size + op.workspace, op, dict(alive)
        for root in {tensors[tensor].root for tensor in [*op.inputs, *op.outputs]}:
            if last[root] == op.id and root in alive:
                size -= alive.pop(root)[1]
    if at is None:
        return None
    sums: dict[str, tuple[int, int]] = {}
    for kind, count in there.values():
        storages, total = sums.get(kind, (0, 0))
        sums[kind] = (storages + 1, total + count)
    makers = sorted(((kind, *both) for kind, both in sums.items()), key=lambda item: -item[2])
    return Peak(at.name, best, makers)
