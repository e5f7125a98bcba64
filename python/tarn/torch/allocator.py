"""Planned memory for a loop that stays as it is: one iteration is recorded, planned, and the next
ones are served from one arena.

    for x, y in loader:
        with tarn.torch.iteration():
            loss = model(x, y); loss.backward(); optimizer.step(); optimizer.zero_grad()

Whatever is asked for that does not match the recording, or whose place is still in use, comes from
the ordinary allocator, as everything outside of iterations does. So no result ever changes."""
import ctypes as c
from contextlib import contextmanager, nullcontext

import torch

import tarn

from . import cuda, memory, recording

COUNTS = ("served", "unknown", "occupied", "lost")


class Allocator:
    """warmup: iterations before the one that is recorded, in which caches and optimizers take what
    they keep. device: "cpu", or "cuda" before anything is on the GPU. options: of tarn.plan."""

    _owner, _arenas = None, []  # those in which tensors were when another one took over, too

    def __init__(self, warmup=1, device="cpu", **options):
        self._device = device
        if device == "cuda":
            memory.allocator(device)
        self._wait, self._options = warmup, {"alignment": memory.ALIGNMENT[device], **options}
        self.events, self.plan = [], None
        self.counts = dict.fromkeys(COUNTS, 0)

    @contextmanager
    def iteration(self):
        """Marks one iteration of the program's main loop."""
        functions = memory.allocator(self._device)
        if Allocator._owner is not self:  # the process has one tape
            self.plan = None
        if self._wait > 0:
            self._wait -= 1
            yield
            return
        counts = (c.c_int64 * len(COUNTS))()
        begin = functions.tarn_tape_serve if self.plan else functions.tarn_tape_record
        begin()
        try:
            with cuda.events(functions) if self._device == "cuda" else nullcontext():
                yield
        finally:
            functions.tarn_tape_end()
            if self.plan:
                functions.tarn_tape_counts(counts)
                for name, count in zip(COUNTS, counts):
                    self.counts[name] += count
        if not self.plan:
            self._make_plan(functions)
        elif counts[1] > counts[0]:  # another loop, or other shapes: the next one is recorded
            self.plan = None

    def _make_plan(self, functions):
        count = functions.tarn_tape_events(None)
        numbers = (c.c_int64 * (4 * count))()
        functions.tarn_tape_events(numbers)
        self.events = [recording.Event(*numbers[4 * i:4 * i + 4]) for i in range(count)]
        requests = [e for e in self.events if e.action == recording.REQUEST]
        graph, tensors = recording.graph(self.events, "iteration")
        self.plan = tarn.plan(graph, **self._options)
        released = {e.block for e in self.events if e.action == recording.RELEASE}
        places = [self.plan.offset(tensors[e.block]) if e.block in released else -1
                  for e in requests]
        if Allocator._arenas and functions.tarn_tape_alive() == 0:
            Allocator._arenas.pop()
        arena = memory.Arena(self.plan.footprint, torch.device(self._device))
        Allocator._arenas.append(arena)
        Allocator._owner = self
        n = len(requests)
        sizes, streams = ((kind * n)(*(getattr(e, name) for e in requests))
                          for kind, name in ((c.c_uint64, "size"), (c.c_int64, "stream")))
        functions.tarn_tape_plan((c.c_int64 * n)(*places), sizes, streams, n,
                              arena.base, arena.size)

    def report(self):
        """Bytes of the arena, requests of a recorded iteration, and what became of all since."""
        requests = sum(e.action == recording.REQUEST for e in self.events)
        return {"arena": self.plan.footprint if self.plan else 0, "requests": requests,
                **self.counts}


_default = Allocator()
iteration, report = _default.iteration, _default.report
