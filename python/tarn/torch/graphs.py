"""A planned step as one CUDA graph: its launches are captured once, and launched together.

A capture holds for the program (plan, arena, where the model lies) and for the numbers that the
optimizer passes to its kernels; with others the step is captured again, and the graphs are kept. What
calls the program (hooks, clip) or computes on the host cannot be captured: it runs between parts, each
a graph. What ops ask the heap for inside of a capture is the graph's own (cuda_memory.h: pools).
Random numbers are drawn on from where the generator is, as PyTorch's graphs do it."""
from __future__ import annotations

import dataclasses
import gc
import warnings
from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any, Callable, NamedTuple, Optional

import torch

from .memory import allocator, summarize
from .tensors import flat, tensors_of
from .updates import Edit, Rates, Update, recorded_updates

CAPTURES = 4  # with other numbers, before rates are made tensors, or nothing is captured any more
ATTEMPTS = 8  # to capture a program, each with one more op that is left out
PARTS, OPS = 32, 8  # with more parts than that, and fewer ops in each, nothing would be won


class NotCaptured(Exception):
    """The step runs without a CUDA graph; the text says why."""


class NotYet(Exception):
    """The optimizer has to make first what it keeps."""


class _Part(NamedTuple):
    """Ops from `first` up to `last`, as a graph or, without one, one by one."""
    first: int
    last: int
    graph: Any


class Recorded:
    """A program that is captured. `left_out`: ops that run between the parts, and why; `graphs`: how
    many there are; `bytes`: what they have taken from the heap."""

    def __init__(self, program: Any, rates: Rates) -> None:
        self._program = program
        self._pools: list[int] = []
        self._parts: list[_Part] = []
        self._functions = allocator("cuda")
        self.left_out: dict[str, str] = {}
        self.bytes = 0
        left = {i: why for i, op in enumerate(program.ops) if (why := _hindrance(program, op))}
        failed: Any = None
        most = max(PARTS, len(program.ops) // OPS)
        for _ in range(ATTEMPTS):
            if len(_parts(left, len(program.ops))) > most:
                raise NotCaptured(f"{len(left)} ops cannot be captured: {next(iter(left.values()))}")
            failed = self._capture(left, rates)
            if failed is None:
                break
            self.close()
            if program.keepers:  # it has what it wanted
                program.move()
            else:
                left[failed[0]] = failed[1]
        else:
            raise NotCaptured(f"more than {ATTEMPTS} ops cannot be captured: {failed[1]}")
        self.left_out = {program.ops[i].name: why for i, why in left.items()}

    @property
    def graphs(self) -> int:
        return sum(part.graph is not None for part in self._parts)

    def close(self) -> None:
        """Gives back what the graphs have."""
        if self._parts:
            torch.cuda.synchronize()
        self._parts.clear()
        for pool in self._pools:
            self._functions.tarn_cuda_pool_drop(pool)
        self._pools.clear()

    def replay(self) -> bool:
        """Runs the step; False: it cannot be replayed once more, because a library has kept bytes of
        the arena, and the program lies in another one."""
        program = self._program
        holds = True
        for part in self._parts:
            if part.graph is not None and holds and not program.lowered.dropped:
                part.graph.replay()
            else:  # also where a hook has taken a gradient away, which is no part of the graph
                holds = program.run_part(part.first, part.last) and holds
        return holds

    # ---- Capture ----

    def _capture(self, left: dict[int, str], rates: Rates) -> Optional[tuple[int, str]]:
        """Captures all parts. Returns the op that has failed, and how."""
        stream = torch.cuda.Stream()
        own = torch.cuda.current_stream()
        stream.wait_stream(own)
        with torch.cuda.stream(stream), torch.no_grad(), torch.autocast("cuda", enabled=False), \
                recorded_updates(rates):
            torch.cuda.current_blas_handle()  # takes its workspace here
            for first, last in _parts(left, len(self._program.ops)):
                if first in left:
                    self._parts.append(_Part(first, last, None))
                    continue
                at = [first]
                try:
                    self._parts.append(_Part(first, last, self._graph(first, last, at)))
                except Exception as error:  # pylint: disable=broad-except
                    if at[0] >= last:
                        raise NotCaptured(f"the capture has failed: {_line(error)}") from error
                    return at[0], _line(error)
        own.wait_stream(stream)
        return None

    def _graph(self, first: int, last: int, at: list[int]) -> Any:
        """The graph of some ops; `at` tells which one is being captured."""
        calls = [self._counted(i, at) for i in range(first, last)]

        def capture() -> None:
            self._program.run_part(first, last, calls)
            at[0] = last

        graph, pool, size = _captured(capture)
        self._pools.append(pool)
        self.bytes += size
        return graph

    def _counted(self, index: int, at: list[int]) -> Callable[[], None]:
        program, final = self._program, self._program.ops[index]
        call = program.calls[index]
        made = () if final.move else program.lowered.ops[program.plan.origin(final.id)].made.values()
        if any(program.lowered.root(t) in program.lowered.elsewhere for t in made):
            call = program.bind(final, _traced)

        def counted() -> None:
            at[0] = index
            call()
            if program.keepers:
                raise RuntimeError(f"{final.name} keeps memory that was its workspace")

        return counted


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
    lowered = program.lowered
    op = lowered.ops[program.plan.origin(final.id)]
    if op.run is not None:
        return hindrance(op)
    if program.draws_again(final):
        return "it draws again what it has drawn, from where the generator was"
    made = {lowered.root(t) for t in op.made.values()} & lowered.elsewhere.keys()
    read = {lowered.root(t) for n in op.node.all_input_nodes
            for t in tensors_of(lowered.value[n])} & lowered.elsewhere.keys()
    drawn = {lowered.root(t) for other in lowered.ops if other.is_random
             for t in other.made.values()}
    if (made | read) & drawn:
        return "it draws random numbers and tells on the host where"
    return ""


def _captured(call: Callable[[], None]) -> tuple[Any, int, int]:
    """(graph, the pool of what was asked for, its bytes) of what is done on the current stream."""
    functions, graph = allocator("cuda"), torch.cuda.CUDAGraph()
    torch.cuda.synchronize()
    with _collected_later():
        pool, failed = functions.tarn_cuda_pool_open(), True
        try:
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                call()
                failed = False
            finally:
                try:
                    _end(graph)
                except Exception:  # pylint: disable=broad-except
                    _settle()
                    if not failed:  # else there is a cause
                        failed = True
                        raise
        finally:
            size = functions.tarn_cuda_pool_close()
            if failed:
                graph.reset()
                functions.tarn_cuda_pool_drop(pool)
    return graph, pool, size


def _end(graph: Any) -> None:
    with warnings.catch_warnings():  # a part may have nothing to launch
        warnings.filterwarnings("ignore", "The CUDA Graph is empty")
        graph.capture_end()


def _settle() -> None:
    """After a capture that could not be ended. The generators of PyTorch 2.11 take it for going on, and
    refuse to draw, until another one ends."""
    empty = torch.cuda.CUDAGraph()
    empty.capture_begin(capture_error_mode="thread_local")
    _end(empty)
    empty.reset()


def _traced(op: Any, call: Callable[[], Any]) -> Any:
    """The op with the requests that it makes in a capture: attention makes its seeds on the GPU
    then. In a capture that is thrown away."""
    functions = allocator("cuda")
    told: list[Any] = []

    def capture() -> None:
        functions.tarn_frame_trace()
        try:
            results = flat(call())
        finally:
            functions.tarn_frame_end()
        told.extend(summarize(functions, [results[i] for i in op.made])[1])

    graph, pool, _ = _captured(capture)
    graph.reset()
    functions.tarn_cuda_pool_drop(pool)
    return dataclasses.replace(op, ordinals=dict(zip(op.made, told)))


@contextmanager
def _collected_later() -> Iterator[None]:
    """Python frees nothing meanwhile that a capture forbids to free."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


class Recordings:
    """The captures of one program, by what they hold for."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._known: dict[Any, Recorded] = {}
        self._rates = Rates(optimizer)

    def close(self) -> None:
        for recorded in self._known.values():
            recorded.close()
        self._known.clear()

    def run(self, program: Any) -> Recorded:
        """One step. Raises NotCaptured, before anything has run, if that cannot be had."""
        self._rates.fill()
        key = (self._rates.numbers(), _flags(), _kept(self._optimizer))
        recorded = self._known.get(key)
        if recorded is None:
            if len(self._known) >= CAPTURES and not self._rates.become_tensors():
                raise NotCaptured("the optimizer's numbers change from step to step: make lr a "
                                  "tensor on the GPU, or the optimizer with fused=True")
            if len(self._known) >= CAPTURES:
                self.close()
                return self.run(program)
            if not all(op.run.ready() for op in program.lowered.ops if isinstance(op.run, Update)):
                raise NotYet
            recorded = Recorded(program, self._rates)
            self._known[key] = recorded
        if not recorded.replay():
            self.close()
        return recorded


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
