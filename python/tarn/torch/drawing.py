"""Random numbers of a planned step. Ops that run again draw what they have drawn before. Attention with
dropout tells its backward pass where it has drawn (`Lowered.elsewhere`): on the host, but inside of a
capture of a CUDA graph on the GPU."""
from __future__ import annotations

import dataclasses
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

import torch

from .cuda_graph import captured
from .memory import ALIGNMENT, allocator, summarize
from .tensors import flat, tensors_of, view_of


def _own(device: Any) -> Any:
    """PyTorch's own generator of a GPU."""
    index = torch.cuda.current_device() if device.index is None else device.index
    return torch.cuda.default_generators[index]


class Draws:
    """Has ops draw again what ops have drawn first, by a key that both have."""

    def __init__(self, device: Any) -> None:
        self._at: dict[Any, Any] = {}  # where the generator was, by key
        if device.type == "cuda":  # only its offset moves in a step
            own = _own(device)
            self._get, self._set = own.get_offset, own.set_offset
        else:
            generator = torch.default_generator
            self._get, self._set = generator.get_state, generator.set_state

    def first(self, key: Any, call: Callable[[], Any]) -> Callable[[], None]:
        """Calls an op, and keeps the position of the generator before that."""
        get, at = self._get, self._at

        def run() -> None:
            at[key] = get()
            call()

        return run

    def again(self, _index: int, key: Any, call: Callable[[], Any]) -> Callable[[], None]:
        """Calls an op with the generator at the position that was kept."""
        get, put, at = self._get, self._set, self._at

        def run() -> None:
            now = get()
            put(at[key])
            try:
                call()
            finally:
                put(now)

        return run


def chains(numbers: Iterable[int]) -> list[int]:
    """Divides a sequence into rising ones, as few as possible; returns for each number which one it
    belongs to."""
    ends: list[int] = []
    found = []
    for number in numbers:
        below = [i for i, end in enumerate(ends) if end < number]
        chain = max(below, key=ends.__getitem__) if below else len(ends)
        ends[chain:chain + 1] = [number]
        found.append(chain)
    return found


SEED = ALIGNMENT["cuda"]  # bytes for each


def seeds_size(lowered: Any, footprint: int) -> int:
    """Bytes behind those of a plan, in the arena, for what ops make on the host, on the GPU."""
    sizes = [t.untyped_storage().nbytes() for t in lowered.elsewhere.values()]
    return -footprint % SEED + SEED * len(sizes) if sizes and max(sizes) <= SEED else 0


class Captured:
    """What a program draws in captures. There the generator goes forward only, from where it is when
    the graph is launched, and nobody learns where that is. So ops that draw again use copies of the
    generator, which are put where it is before each launch and go forward from there in the capture.
    One copy serves ops that follow each other in the order in which they have drawn first: a backward
    pass needs about as many copies as there are layers.

    Attention tells the backward pass where it has drawn in tensors on the GPU, `seeds`."""

    def __init__(self, program: Any) -> None:
        self._program, self._device = program, program.lowered.device
        self._functions, end = allocator("cuda"), int(program.plan.spaces[0].footprint)
        size = seeds_size(program.lowered, end)
        has_room = 0 < size <= program.arena.size - end
        self._begin = end + -end % SEED if has_room else None  # of seeds, in the arena
        self.seeds: dict[Any, Any] = {}  # by roots of `Lowered.elsewhere`
        self._on_gpu: Optional[bool] = None  # where seeds lie: None: nowhere yet
        self._at: dict[Any, int] = {}
        ops = [(i, op) for i, op in enumerate(program.ops) if program.draws_again(op)]
        order: dict[Any, int] = {}
        self._keys = {i: program.plan.origin(op.id) for i, op in ops}
        for key in self._keys.values():
            order.setdefault(key, len(order))
        again = [i for i, op in ops if program.plan.is_recomputed(op.id)]
        self._chains = dict(zip(again, chains(order[self._keys[i]] for i in again)))
        self._copies = [_own(self._device).clone_state()
                        for _ in range(max(self._chains.values(), default=-1) + 1)]

    def touches(self, final: Any) -> bool:
        """Is an op of the plan's graph bound in another way for a capture?"""
        return bool(self._program.draws_again(final) or self._elsewhere(final))

    def groups(self) -> list[tuple[list[int], bool]]:
        """Ops that are all part of graphs, or none of them; and whether of one graph."""
        found: dict[Any, list[int]] = {}
        for i, final in enumerate(self._program.ops):
            for root in self._elsewhere(final) & self.seeds.keys():
                found.setdefault(("seed", root), []).append(i)
            if i in self._keys:
                found.setdefault(("again", self._keys[i]), []).append(i)
        return [(those, kind == "again") for (kind, _), those in found.items()]

    def hindrance(self, final: Any) -> str:
        """Why an op cannot be captured, or ""."""
        there = self._elsewhere(final) - self.seeds.keys()
        if there and there & self._program.lowered.drawn():
            return "it draws random numbers and tells on the host where"
        return ""

    def _elsewhere(self, final: Any) -> set[Any]:
        """The roots of what an op makes or reads on the host."""
        lowered = self._program.lowered
        if final.move or not lowered.elsewhere:
            return set()
        op = lowered.ops[self._program.plan.origin(final.id)]
        read = [] if op.node is None else [
            t for n in op.node.all_input_nodes for t in tensors_of(lowered.value[n])]
        return {root for root in map(lowered.root, (*op.made.values(), *read))
                if root in lowered.elsewhere}

    # ---- Where ops have drawn ----

    def tensor(self, root: Any, fake: Any) -> Any:
        """Like a fake one, for a root of `Lowered.elsewhere`."""
        lies = self.seeds.get(root)
        if lies is None:
            return view_of(self._program.lowered.elsewhere[root].untyped_storage(), fake, 0)
        return view_of(lies.untyped_storage(), fake, lies.storage_offset())

    def traced(self, op: Any, call: Callable[[], Any], roots: Mapping[int, Any]) -> Any:
        """An op with the requests for memory that it makes in a capture (one that is thrown away), and
        with `seeds` for what it makes on the GPU there. roots: of what it makes, by place."""
        told: list[Any] = []

        def trace() -> None:
            self._functions.tarn_frame_trace()
            try:
                results = flat(call())
            finally:
                self._functions.tarn_frame_end()
            made = [results[i] for i in op.made]
            told.extend(summarize(self._functions, made)[1])
            there.extend(t.device.type == self._device.type for t in made)

        there: list[bool] = []
        graph, pool, _ = captured(trace)
        graph.reset()
        self._functions.tarn_cuda_pool_drop(pool)
        elsewhere = self._program.lowered.elsewhere
        for i, is_there in zip(op.made, there):
            if roots[i] in elsewhere and is_there and self._begin is not None:
                offset = self._begin + list(elsewhere).index(roots[i]) * SEED
                self.seeds[roots[i]] = self._program.arena.tensor(offset, elsewhere[roots[i]])
        return dataclasses.replace(op, ordinals=dict(zip(op.made, told)))

    def begin(self) -> None:
        """A step begins."""
        self._on_gpu = None

    def go(self, generators: Sequence[Any], on_gpu: bool) -> None:
        """Before some ops that are a graph run, as that or one by one. generators: what
        `generators` has returned for them."""
        if self._on_gpu not in (None, on_gpu):
            for root, seed in self.seeds.items():
                host = self._program.lowered.elsewhere[root]
                (seed if on_gpu else host).copy_(host if on_gpu else seed)
        self._on_gpu = on_gpu
        if on_gpu and generators:
            own = _own(self._device)
            for copy in generators:
                if copy.initial_seed() != own.initial_seed():
                    copy.manual_seed(own.initial_seed())
                copy.set_offset(own.get_offset())

    # ---- Ops that draw again ----

    def generators(self, first: int, last: int) -> list[Any]:
        """Copies that these ops draw from."""
        return [self._copies[c] for c in sorted({
            chain for i, chain in self._chains.items() if first <= i < last})]

    def first(self, key: Any, call: Callable[[], Any]) -> Callable[[], None]:
        """As Draws.first."""
        def run() -> None:
            self._at[key] = self._move(0)
            call()

        return run

    def again(self, index: int, key: Any, call: Callable[[], Any]) -> Callable[[], None]:
        """As Draws.again."""
        copy, generator = self._copies[self._chains[index]], _own(self._device)

        def run() -> None:
            own = generator.graphsafe_get_state()
            generator.graphsafe_set_state(copy)
            try:
                self._move(self._at[key] - self._move(0))
                if self._move(0) != self._at[key]:
                    raise RuntimeError("the generator does not go where an op has drawn before")
                call()
            finally:
                generator.graphsafe_set_state(own)

        return run

    def _move(self, by: int) -> int:
        return int(self._functions.tarn_cuda_generator(by))
