"""Planned memory for a loop that stays as it is: one iteration is recorded, planned, and the next
ones are served from one arena.

    for x, y in loader:
        with tarn.torch.iteration():
            loss = model(x, y); loss.backward(); optimizer.step(); optimizer.zero_grad()

Whatever is asked for that does not match the recording, or whose place is still in use, comes from
the ordinary allocator, as everything outside of iterations does. So no result ever changes."""
from __future__ import annotations

import ctypes as c
import sys
import threading
import warnings
import weakref
from contextlib import contextmanager, nullcontext
from typing import Any, Callable, ContextManager, Optional
from collections.abc import Iterator

import torch

import tarn

from ..errors import index_of
from . import cuda, memory, recording

COUNTS = ("served", "unknown", "occupied", "lost", "skipped")
OPTIONS = ("capacity", "effort", "method", "progress", "seconds", "seed", "threads")
LOOPS, PAUSE = 8, 64  # that `iteration` tells apart; the most iterations between two recordings


class Allocator:
    """The memory of one loop. Of all iterations in a process one at a time is recorded or served;
    those inside of it, or of other threads meanwhile, are left alone.
    warmup: iterations before the one that is recorded, in which caches and optimizers take what
    they keep. device: "cpu", or "cuda" before anything is on the GPU. options: of tarn.plan,
    but for those that would change the iteration."""

    _lock = threading.Lock()  # held by the iteration that is under way

    def __init__(self, warmup: int = 1, device: str = "cpu", **options: Any) -> None:
        self._device = torch.device(device).type
        index_of(tuple(memory.ALIGNMENT), "device", self._device)
        for name in options:
            index_of(OPTIONS, "option", name)
        if self._device == "cuda":
            memory.allocator(self._device)
        self._wait, self._pause, self._lost = warmup, 0, False
        self._options = {"alignment": memory.ALIGNMENT[self._device], **options}
        self.events: list[recording.Event] = []
        self.plan: Optional[tarn.Plan] = None
        self._tape = 0
        self._leave: Callable[[], Any] = lambda: None
        self._counts = (c.c_int64 * len(COUNTS))()

    @contextmanager
    def iteration(self) -> Iterator[None]:
        """Marks one iteration of the program's main loop."""
        if self._wait > 0 or not self._lock.acquire(blocking=False):
            self._wait -= 1
            self._counts[-1] += 1
            yield
            return
        try:
            yield from self._taped(memory.allocator(self._device))
        finally:
            self._lock.release()

    def _taped(self, functions: Any) -> Iterator[Any]:
        if self._device == "cuda" and self.plan and (self._lost or self.plan.boundary_waits()):
            torch.cuda.synchronize()  # with what the iteration before has left to be done
        try:
            functions.tarn_tape_begin(self._tape)
            with cuda.events(functions) if self._device == "cuda" else nullcontext():
                yield
        finally:
            functions.tarn_tape_end()
            self._lost = functions.tarn_tape_is_lost()
        if not self.plan:
            try:
                self._make_plan(functions)
            except Exception as error:  # pylint: disable=broad-except
                warnings.warn(f"a loop has no plan and is served from the heap: {error}")
                self._drop()
        elif functions.tarn_tape_counts(self._counts):
            self._pause = 0
        else:  # other shapes: they are recorded, ever later if that is in vain
            self._drop()

    def _drop(self) -> None:
        self._leave()
        self.plan, self._tape = None, 0
        self._wait, self._pause = self._pause, min(2 * self._pause + 1, PAUSE)

    def _make_plan(self, functions: Any) -> None:
        count = functions.tarn_tape_events(None)
        numbers = (c.c_int64 * (4 * count))()
        functions.tarn_tape_events(numbers)
        self.events = [recording.Event(*numbers[4 * i:4 * i + 4]) for i in range(count)]
        graph, tensors = recording.graph(self.events, "iteration")
        plan = tarn.plan(graph, **self._options)
        places = [plan.offset(tensor) for tensor in tensors.values()]
        tape = functions.tarn_tape_make((c.c_int64 * len(places))(*places), plan.footprint)
        if tape < 0:
            raise MemoryError("there are no bytes for an arena, or tensors in too many of them")
        self._leave = weakref.finalize(self, functions.tarn_tape_leave, tape)
        self.plan, self._tape = plan, tape

    def report(self) -> dict[str, int]:
        """Bytes of the arena, requests of a recorded iteration, and what became of all since.
        skipped: iterations that were left alone: to warm up, inside of another one or beside one in
        another thread, or after plans of which nothing came."""
        requests = sum(e.action == recording.REQUEST for e in self.events)
        return {"arena": self.plan.footprint if self.plan else 0, "requests": requests,
                **dict(zip(COUNTS, self._counts))}


_loops: dict[Any, Allocator] = {}


def iteration() -> ContextManager[None]:
    """Marks one iteration of the loop that calls it: each line of the program has an Allocator."""
    caller = sys._getframe(1)
    place = caller.f_code.co_filename, caller.f_lineno
    loop = _loops[place] = _loops.pop(place) if place in _loops else Allocator()
    if len(_loops) > LOOPS:
        _loops.pop(list(_loops)[0], None)
    return loop.iteration()


def report() -> dict[str, int]:
    """The sums of Allocator.report() over all loops that `iteration` knows."""
    reports = [loop.report() for loop in list(_loops.values()) or [Allocator()]]
    return {name: sum(each[name] for each in reports) for name in reports[0]}
