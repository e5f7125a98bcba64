"""A planned step as one CUDA graph: its launches are captured once, and launched together.

A capture holds for the program (plan, arena, where the model lies) and for the numbers that the
optimizer passes to its kernels; with others the step is captured again, and the graphs are kept. What
calls the program (hooks, clip) or computes on the host cannot be captured: it runs between parts, each
a graph. What ops ask the heap for inside of a capture is the graph's own (cuda_memory.h: pools).
Random numbers are drawn on from where the generator is, as PyTorch's graphs do it."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple, Optional, Sequence

import torch

from .cuda_graph import captured
from .drawing import Captured
from .memory import allocator
from .updates import Edit, Rates, Update, recorded_updates

CAPTURES = 4  # with other numbers, before rates are made tensors, or nothing is captured any more
ATTEMPTS = 8  # to capture a program, each with one more op that is left out; to compare a replay
PARTS, OPS = 32, 8  # with more parts than that, and fewer ops in each, nothing would be won


class NotCaptured(Exception):
    """The step runs without a CUDA graph; the text says why."""


class NotYet(Exception):
    """The optimizer has to make first what it keeps."""


class _Part(NamedTuple):
    """Ops from `first` up to `last`, as a graph or, without one, one by one. generators: what they
    draw from beside PyTorch's own."""
    first: int
    last: int
    graph: Any = None
    generators: Sequence[Any] = ()


class Recorded:
    """A program that is captured. `left_out`: ops that run between the parts, and why; `graphs`: how
    many there are; `bytes`: what they have taken from the heap; `is_trusted`: has a replay given what
    the planned step gives? `was_whole`: was each graph launched in the last replay? `arena`: where
    the program lay in the capture."""

    def __init__(self, program: Any, rates: Rates) -> None:
        self._program = program
        self._pools: list[int] = []
        self._parts: list[_Part] = []
        self._drawn: Captured  # of the last attempt, as are:
        self._calls: dict[int, Callable[[], None]]  # for ops that run otherwise in a capture
        self._functions = allocator("cuda")
        self.left_out: dict[str, str] = {}
        self.bytes = 0
        self.is_trusted, self.was_whole, self._compared = False, False, 0
        try:
            self._capture_all(rates)
        except BaseException:
            self.close()
            raise
        self.arena = program.arena

    def _capture_all(self, rates: Rates) -> None:
        """Tries until no op fails."""
        program = self._program
        failed: dict[int, str] = {}
        most = max(PARTS, len(program.ops) // OPS)
        for _ in range(ATTEMPTS):
            left = self._bind(failed)
            if len(_parts(left, len(program.ops))) > most:
                raise NotCaptured(f"{len(left)} ops cannot be captured: {next(iter(left.values()))}")
            found = self._capture(left, rates)
            if found is None:
                break
            self.close()
            if program.keepers:  # it has what it wanted
                program.move()
            else:
                failed[found[0]] = found[1]
        else:
            why = next(reversed(failed.values()), "a library keeps memory each time")
            raise NotCaptured(f"more than {ATTEMPTS} ops cannot be captured: {why}")
        self.left_out = {program.ops[i].name: why for i, why in left.items()}

    def trust(self) -> None:
        """After a replay that has given what the planned step gives; the next one is compared, too, if
        not all graphs were launched."""
        self.is_trusted = self.was_whole
        self._compared += 1
        if not self.is_trusted and self._compared >= ATTEMPTS:
            raise NotCaptured(f"hooks take gradients away in each of {ATTEMPTS} steps")

    def part_of(self, index: int) -> str:
        """Which part an op belongs to, as text."""
        ops = self._program.ops
        for number, part in enumerate(self._parts, 1):
            if part.first <= index < part.last:
                kind = "beside graphs" if part.graph is None else "a CUDA graph"
                return (f"part {number} of {len(self._parts)}, {kind}, ops {ops[part.first].name} to "
                        f"{ops[part.last - 1].name}")
        return ""

    @property
    def graphs(self) -> int:
        return sum(part.graph is not None for part in self._parts)

    def close(self) -> None:
        """Gives back what the graphs have."""
        if self._parts and sys and not sys.is_finalizing():
            torch.cuda.synchronize()
        self._parts.clear()
        for pool in self._pools:
            self._functions.tarn_cuda_pool_drop(pool)
        self._pools.clear()

    def replay(self) -> None:
        """Runs the step. Graphs are valid only in the arena of their capture. If a library has kept
        bytes of that arena, the program moves to another one."""
        program = self._program
        self.was_whole = True
        self._drawn.begin()
        with torch.no_grad(), torch.autocast("cuda", enabled=False):  # what an op needs is in it
            for part in self._parts:
                replays = (part.graph is not None and program.arena is self.arena
                           and not program.lowered.dropped)
                if part.graph is not None:
                    self._drawn.go(part.generators, replays)
                    self.was_whole = self.was_whole and replays
                if replays:
                    part.graph.replay()
                else:  # also where a hook has taken a gradient away, which is no part of the graph
                    program.run_part(part.first, part.last)

    # ---- Capture ----

    def _bind(self, failed: dict[int, str]) -> dict[int, str]:
        """Binds for a capture what draws otherwise there. Returns the ops that cannot be part of a
        graph, and why: those that have failed among them."""
        program = self._program
        self._drawn, self._calls = Captured(program), {}
        left = {i: why for i, op in enumerate(program.ops) if (why := _hindrance(program, op))}
        left.update(failed)
        with _stream_of_its_own():
            for i, op in enumerate(program.ops):
                if i not in left and self._drawn.touches(op):
                    try:
                        self._calls[i] = program.bind(op, self._drawn)
                    except Exception as error:  # pylint: disable=broad-except
                        left[i] = _line(error)
        for i, op in enumerate(program.ops):
            if i not in left and (why := self._drawn.hindrance(op)):
                left[i] = why
        return _together(left, self._drawn.groups(), len(program.ops))

    def _capture(self, left: dict[int, str], rates: Rates) -> Optional[tuple[int, str]]:
        """Captures all parts. Returns the op that has failed, and how."""
        with _stream_of_its_own(), recorded_updates(rates):
            torch.cuda.current_blas_handle()  # takes its workspace here
            for first, last in _parts(left, len(self._program.ops)):
                if first in left:
                    self._parts.append(_Part(first, last))
                    continue
                at, generators = [first], self._drawn.generators(first, last)
                try:
                    graph = self._graph(first, last, at, generators)
                    self._parts.append(_Part(first, last, graph, generators))
                except Exception as error:  # pylint: disable=broad-except
                    if at[0] >= last:
                        raise NotCaptured(f"the capture has failed: {_line(error)}") from error
                    return at[0], _line(error)
        return None

    def _graph(self, first: int, last: int, at: list[int], generators: Sequence[Any]) -> Any:
        """The graph of some ops; `at` tells which one is being captured."""
        calls = [self._counted(i, at) for i in range(first, last)]

        def capture() -> None:
            self._program.run_part(first, last, calls)
            at[0] = last

        graph, pool, size = captured(capture, generators)
        self._pools.append(pool)
        self.bytes += size
        return graph

    def _counted(self, index: int, at: list[int]) -> Callable[[], None]:
        program, name = self._program, self._program.ops[index].name
        call = self._calls.get(index, program.calls[index])

        def counted() -> None:
            at[0] = index
            call()
            if program.keepers:
                raise RuntimeError(f"{name} keeps memory that was its workspace")

        return counted


@contextmanager
def _stream_of_its_own() -> Iterator[None]:
    """Inside, work goes to a new stream, behind that of the current one, and without gradients and
    autocast, as in Program.run. The current stream waits for it in the end, but after an error."""
    current, stream = torch.cuda.current_stream(), torch.cuda.Stream()
    stream.wait_stream(current)
    with torch.cuda.stream(stream), torch.no_grad(), torch.autocast("cuda", enabled=False):
        yield
    current.wait_stream(stream)


def _line(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"{type(error).__name__}: {text[0] if text else 'no text'}"


def _parts(left: dict[int, str], count: int) -> list[tuple[int, int]]:
    """Where each begins and ends: ops that are left out are parts of their own, neighbours one."""
    bounds = [i for i in range(1, count) if (i in left) != (i - 1 in left)]
    return list(zip([0, *bounds], [*bounds, count])) if count else []


def hindrance(op: Any) -> str:
    """Why an op that runs something else than a call of ATen cannot be captured, or ""."""
    if isinstance(op.run, Edit):
        return "hooks of parameters and clip are the program's own"
    if isinstance(op.run, Update):
        return op.run.hindrance()
    return "ranks reduce gradients" if op.run is not None else ""


def _hindrance(program: Any, final: Any) -> str:
    """Why an op of the plan's graph cannot be captured, as far as that is known before."""
    if final.move:
        return ""
    op = program.lowered.ops[program.plan.origin(final.id)]
    return hindrance(op) if op.run is not None else ""


def _together(left: dict[int, str], groups: Any, count: int) -> dict[int, str]:
    """`left` with all ops of each group of which one is among them, or lies in another part than the
    others where they have to be one graph. groups: as drawing.Captured tells them."""
    left = dict(left)
    while True:
        part = {i: number for number, (first, last) in enumerate(_parts(left, count))
                for i in range(first, last)}
        more: dict[int, str] = {}
        for members, in_one in groups:
            if any(i in left for i in members):
                why = "it draws what an op has drawn that is no part of a graph, or tells it where"
            elif in_one and len({part[i] for i in members}) > 1:
                why = "it draws again, or first, what another part draws, too"
            else:
                continue
            more.update((i, why) for i in members if i not in left)
        if not more:
            return left
        left.update(more)


class Recordings:
    """The captures of one program, by what they hold for."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._known: dict[Any, Recorded] = {}
        self.rates = Rates(optimizer)

    def close(self) -> None:
        for recorded in self._known.values():
            recorded.close()
        self._known.clear()

    def of(self, program: Any) -> tuple[Recorded, bool]:
        """The capture that holds for a step, and whether it was made just now. Raises NotCaptured if
        that cannot be had."""
        self.rates.fill()
        if any(known.arena is not program.arena for known in self._known.values()):
            self.close()  # a library has kept bytes of that arena, and the program lies elsewhere
        key = (self.rates.numbers(), _flags(), _kept(self._optimizer))
        if key in self._known:
            return self._known[key], False
        if len(self._known) >= CAPTURES and not self.rates.become_tensors():
            raise NotCaptured("the optimizer's numbers change from step to step: make lr a "
                              "tensor on the GPU, or the optimizer with fused=True")
        if len(self._known) >= CAPTURES:
            self.close()
            return self.of(program)
        if not all(op.run.ready() for op in program.lowered.ops if isinstance(op.run, Update)):
            raise NotYet
        self._known[key] = Recorded(program, self.rates)
        return self._known[key], True


def _kept(optimizer: Any) -> tuple[int, ...]:
    """Where the optimizer keeps what it keeps."""
    return tuple(value.data_ptr() for state in optimizer.state.values() for value in state.values()
                 if isinstance(value, torch.Tensor))


def _flags() -> tuple[Any, ...]:
    """What libraries look at when they choose kernels."""
    cudnn, matmul = torch.backends.cudnn, torch.backends.cuda.matmul
    return (cudnn.enabled, cudnn.benchmark, cudnn.deterministic, cudnn.allow_tf32,
            matmul.allow_tf32, matmul.allow_fp16_reduced_precision_reduction,
            torch.get_deterministic_debug_mode())
