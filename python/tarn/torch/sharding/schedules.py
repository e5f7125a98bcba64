"""Orders in which a sharded step may communicate. What a plan has alive at once depends on when gathers
begin, which nothing but their readers bounds: the budget is tried with several schedules, and the
fastest plan that fits is taken. One of them is FSDP2's."""
from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple, Optional

import tarn

from ..timing import WAIT, makespan

ALIKE = 0.002  # a share of the time by which plans are as fast as others
NEAR = 0.01  # a share of the budget: a plan made without a search that is further above it is left
NEVER, IF_REFUSED, ALWAYS = range(3)  # is a budget looked for in a schedule?


class Schedule(NamedTuple):
    """Ops of a Lowered in another order, some twice, and pairs of places (later, earlier): the later
    one waits. searched: if it does not fit, is a budget looked for in it? IF_REFUSED: if an earlier
    schedule, of ops that each run once, cannot keep to the budget."""
    ops: list[Any]
    control: list[tuple[int, int]]
    searched: int = ALWAYS


def _roots(lowered: Any, ids: Any) -> Any:
    return [lowered.storages[s].root for s in ids]


def gathered_twice(lowered: Any, ops: Any) -> list[Any]:
    """Every unit that the backward pass reads is gathered for it again, but the last one (ZeRO-3)."""
    loss = lowered.root(lowered.value[lowered.results[0]])
    turn = max(i for i, op in enumerate(ops) if loss in _roots(lowered, op.outputs))
    makers = {root: op for op in ops if op.gathers for root in _roots(lowered, op.outputs)}
    casts = {root: op for op in ops if op.prepares for root in _roots(lowered, op.outputs)}
    gathers = [op for op in ops[:turn] if op.gathers]
    last = gathers[-1] if gathers else None
    twins: dict[int, int] = {}
    made: list[Any] = []

    def twin(storage: int) -> int:
        old = lowered.storages[storage]
        twins[old.root] = lowered.storage(old.name + "'", old.size, old.kind)
        lowered.twins[twins[old.root]] = old.root
        return twins[old.root]

    def again(op: Any) -> None:
        for given in _roots(lowered, op.inputs):
            if given in casts and given not in twins:
                again(casts[given])
        made.append(dataclasses.replace(
            op, name=op.name + "'", outputs=[twin(s) for s in op.outputs],
            inputs=[twins.get(root, s) for s, root in zip(op.inputs, _roots(lowered, op.inputs))]))

    for i, op in enumerate(ops):
        roots = _roots(lowered, op.inputs)
        for root in roots:
            maker = makers.get(root)
            if i > turn and maker is not None and maker is not last and root not in twins:
                again(maker)
        made.append(op if i <= turn or not twins.keys() & set(roots) else dataclasses.replace(
            op, inputs=[twins.get(root, s) for s, root in zip(op.inputs, roots)]))
    return made


class _Again:
    """Computes the forward pass of units again where the backward pass reads it, from what goes into
    each unit: as checkpoints around units do."""

    def __init__(self, lowered: Any, ops: Any, units: int, gathers: int) -> None:
        """Of how many of the first units it computes, and gathers, again."""
        self._lowered = lowered
        self._twins: dict[int, int] = {}
        loss = lowered.root(lowered.value[lowered.results[0]])
        self._turn = max(i for i, op in enumerate(ops) if loss in _roots(lowered, op.outputs))
        self._ops = ops
        self.made: list[Any] = []
        gathered = {root: number for number, op in enumerate(op for op in ops if op.gathers)
                    for root in _roots(lowered, op.outputs)}
        self._maker: dict[int, Any] = {}
        unit = 0
        part: dict[int, int] = {}
        kept = {s for op in ops if op.gathers and gathered[_roots(lowered, op.outputs)[0]] > gathers
                for s in _roots(lowered, op.inputs + op.outputs)}
        written: dict[int, int] = {}
        for op in ops:
            for root in _roots(lowered, op.outputs):
                written[root] = written.get(root, 0) + 1
        for op in ops[:self._turn]:
            outs = _roots(lowered, op.outputs)
            if op.gathers or op.prepares:
                self._maker.update((root, op) for root in outs if root not in kept)
                continue
            unit = max([unit, *(gathered.get(r, 0) for r in _roots(lowered, op.inputs))])
            part.update((root, unit) for root in outs)
            crossing = {root for root in _roots(lowered, op.inputs) if part.get(root, unit) < unit}
            for root in crossing:  # goes into a unit
                self._maker.pop(root, None)
            if op.may_repeat and not op.is_random and unit <= units and all(
                    written[root] == 1 and root not in lowered.persistent for root in outs):
                self._maker.update((root, op) for root in outs)

    def run(self) -> list[Any]:
        for i, op in enumerate(self._ops):
            self.made.append(op if i <= self._turn else self._reading(op))
        return self.made

    def _reading(self, op: Any) -> Any:
        """The op, reading what was made again."""
        lowered, inputs = self._lowered, []
        for storage, root in zip(op.inputs, _roots(lowered, op.inputs)):
            if root not in self._twins and root in self._maker:
                self._make(self._maker[root])
            inputs.append(self._twins.get(root, storage))
        return op if inputs == op.inputs else dataclasses.replace(op, inputs=inputs)

    def _make(self, op: Any) -> None:
        """Without recursion: chains are as long as a unit is deep."""
        waiting = [op]
        while waiting:
            top = waiting[-1]
            outs = _roots(self._lowered, top.outputs)
            missing = [self._maker[root] for root in _roots(self._lowered, top.inputs)
                       if root in self._maker and root not in self._twins]
            if outs[0] in self._twins:
                waiting.pop()
            elif missing:
                waiting.append(missing[0])
            else:
                again = self._reading(top)
                self.made.append(dataclasses.replace(
                    again, name=top.name + "'", outputs=[self._twin(s) for s in top.outputs]))
                waiting.pop()

    def _twin(self, storage: int) -> int:
        old = self._lowered.storages[storage]
        twin = self._lowered.storage(old.name + "'", old.size, old.kind)
        self._twins[old.root] = twin
        self._lowered.twins[twin] = old.root
        return int(twin)


def computed_again(lowered: Any, ops: Any, units: int, gathers: int) -> list[Any]:
    """The first units, up to these numbers, are computed and gathered again for the backward pass.
    With both as many as there are, but the last: ZeRO-3 with checkpoints."""
    return _Again(lowered, ops, units, gathers).run()


def _before(lowered: Any, ops: Any, casts: Any, place: int) -> Any:
    """The places of what prepares the gather at that place, in order."""
    found: set[int] = set()
    waiting = [place]
    while waiting:
        more = {casts[root] for root in _roots(lowered, ops[waiting.pop()].inputs) if root in casts}
        waiting += more - found
        found |= more
    return sorted(found)


def chains(lowered: Any, ops: Any) -> list[tuple[int, list[int]]]:
    """Of each gather, in the order of their first readers: the place of that reader among the ops of
    computation, and the places of what prepares the gather and of the gather."""
    reads = [set(_roots(lowered, op.inputs)) for op in ops]
    compute = [i for i, op in enumerate(ops) if op.stream == 0]
    casts = {root: i for i, op in enumerate(ops) if op.prepares and op.stream
             for root in _roots(lowered, op.outputs)}
    found = []
    for i, op in enumerate(ops):
        if op.gathers:
            outs = set(_roots(lowered, op.outputs))
            first = next((k for k, j in enumerate(compute) if outs & reads[j]), len(compute))
            found.append((first, [*_before(lowered, ops, casts, i), i]))
    return sorted(found)


def begun(lowered: Any, ops: Any, gathers: Any, distances: Any) -> Schedule:
    """Each gather of `chains` begins when the one that is read so many gathers before it is read first,
    and what a reduction has read is free when the one behind it is done."""
    inner = any(op.kind.startswith("c10d.") for op in ops)  # of units: others are inside of them
    starts: dict[int, list[Any]] = {}
    for number, ((_, chain), far) in enumerate(zip(gathers, distances)):
        starts.setdefault(gathers[number - far][0] if number >= far else 0, []).append(chain)
    moved = {i for _, chain in gathers for i in chain}
    made: list[Any] = []
    control: list[tuple[int, int]] = []
    reductions: list[int] = []
    reduced: set[int] = set()  # over shards, and then over replicas: one reduction
    last: Optional[int] = None
    waited, place = 0, 0
    for i, op in enumerate(ops):
        if i in moved:
            continue
        if op.stream == 0:
            for chain in starts.get(place, ()):
                if last is not None:
                    control.append((len(made), last))
                made += [ops[j] for j in chain]
            place += 1
            if len(reductions) - 1 > waited:
                waited = len(reductions) - 1
                control.append((len(made), reductions[-2]))
            last = len(made)
        elif op.group and not (inner and op.kind.startswith("_")):
            if not reduced.intersection(_roots(lowered, op.inputs)):
                reductions.append(len(made))
            reduced.update(_roots(lowered, op.outputs))
        made.append(op)
    return Schedule(made, control)


def ahead(lowered: Any, ops: Any, distance: int) -> Schedule:
    """As FSDP2 prefetches, with that distance for all gathers."""
    found = chains(lowered, ops)
    return begun(lowered, ops, found, [distance] * len(found))


def schedules(lowered: Any, budget: Any) -> Any:
    """As they are to be tried."""
    ops = list(lowered.ops)
    if {op.stream for op in ops if op.group} <= {0}:
        yield Schedule(ops, [])
        return
    yield Schedule(ahead(lowered, ops, 0).ops, [])  # nothing waits that need not
    for distance in (1, 2):
        yield ahead(lowered, ops, distance)
    if budget is not None:
        twice = gathered_twice(lowered, ops)
        for distance in (1, 2):
            yield ahead(lowered, twice, distance)._replace(
                searched=IF_REFUSED if distance == 1 else NEVER)
        most = sum(op.gathers for op in ops) - 2  # but the last
        for some in sorted({most // 4, most // 2, 3 * most // 4, most} - {0, -1, -2}):
            for gathers in sorted({some, most}):
                again = ahead(lowered, computed_again(lowered, ops, some, gathers), 1)
                yield again._replace(searched=IF_REFUSED if some == most else NEVER)


class _Way(NamedTuple):
    """A plan of a schedule."""
    time: int
    size: int
    plan: tarn.Plan
    ops: list[Any]
    ids: Any


def fastest(lowered: Any, budget: Any, graph_of: Any, options: Any) -> Any:
    """(plan, ops, ids of tensors) of the fastest schedule that fits; without a budget, the smallest of
    those that are about as fast. graph_of: makes a graph of waits and the ops that `lowered` has.
    Raises tarn.DoesNotFit with the smallest `least` of all schedules.

    The search within a budget decides what is gathered again, and how far ahead. It begins with the
    schedule in which nothing waits that need not, which is about as fast as a step can be; where the
    budget costs no time there, no other schedule is tried."""
    source, found = list(lowered.ops), []
    failure: Optional[tarn.DoesNotFit] = None
    free = 0  # nanoseconds of the first schedule without a budget

    def planned(ops: Any, waits: Any, budget: Optional[int], **more: Any) -> _Way:
        lowered.ops = ops
        try:
            plan = tarn.plan(graph_of(waits), budget=budget, **{**options, **more})
            return _Way(makespan(plan, WAIT), plan.footprint, plan, ops, lowered.ids)
        finally:
            lowered.ops = source

    for ops, waits, searched in schedules(lowered, budget):
        is_near = True
        if budget is not None:
            way = planned(ops, waits, None, effort=0)
            is_near = way.size <= (1 + NEAR) * budget
        if is_near:
            way = planned(ops, waits, None)
        free = free or way.time
        if budget is None or way.size <= budget:
            found.append(way)
        elif searched == ALWAYS or searched == IF_REFUSED and failure:
            try:
                found.append(planned(ops, waits, budget))
            except tarn.DoesNotFit as error:
                failure = min(failure or error, error, key=lambda refusal: refusal.least or math.inf)
        if budget is not None and found and found[-1].time <= (1 + ALIKE) * free:
            break
    if failure and not found:
        raise failure
    limit = min(way.time for way in found) * (1 + (ALIKE if budget is None else 0))
    chosen = min((way for way in found if way.time <= limit), key=lambda way: way.size)
    return chosen.plan, chosen.ops, chosen.ids
