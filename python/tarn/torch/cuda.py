"""Streams of a GPU: how they carry out a plan, and which events order them."""
from __future__ import annotations

import functools
import itertools
from collections import defaultdict
from contextlib import contextmanager
from unittest import mock
from typing import Any
from collections.abc import Iterator

import torch

from .recording import RECORD, WAIT


@functools.lru_cache(maxsize=None)
def streams(queues: Any) -> Any:
    """Those of a plan with so many queues but the first one; the same ones for all plans."""
    return [*streams(queues - 1), torch.cuda.Stream()] if queues > 1 else []


def in_order(calls: Any) -> Any:
    """The same as Streams.run, on the caller's stream."""
    def run(start: Any, keepers: Any) -> Any:
        for done in range(start, len(calls)):
            calls[done]()
            if keepers:
                return done + 1
        return len(calls)

    return run


class Streams:
    """The ops of a plan on streams of the GPU: each stream in its order, and behind what its ops
    wait for. The first one is the caller's, which waits for all at the end of a step."""

    def __init__(self, plan: Any, calls: Any) -> None:
        """calls: what to call for each op"""
        self._others = streams(len(plan.graph.streams))
        waits = defaultdict(list)
        for op, on in plan.waits():
            waits[op].append(on)
        events = {on: torch.cuda.Event() for on in itertools.chain(*waits.values())}
        self._order = [(op.stream, [events[on] for on in waits[op.id]], calls[op.id],
                        events.get(op.id)) for op in plan.graph.ops]  # in an order that may be run

    def run(self, start: Any = 0, keepers: Any = ()) -> Any:
        """Calls those from `start` on, until one is among `keepers`; returns how many are done."""
        own = torch.cuda.current_stream()
        for other in self._others:
            other.wait_stream(own)
        with torch.cuda.stream(own):  # the current stream again in the end
            current = own
            for done, (number, waits, call, event) in enumerate(self._order[start:], start + 1):
                stream = self._others[number - 1] if number else own
                for wait in waits:
                    stream.wait_event(wait)
                if stream is not current:
                    torch.cuda.set_stream(stream)
                    current = stream
                call()
                if event:
                    stream.record_event(event)
                if keepers:
                    return done
        for other in self._others:
            own.wait_stream(other)
        return len(self._order)

    def run_part(self, first: int, last: int, calls: Any) -> None:
        """Those from `first` up to `last`, behind all before, and before all behind them. calls: what
        to call for each."""
        own = torch.cuda.current_stream()
        for other in self._others:
            other.wait_stream(own)
        recorded = set()
        for (number, waits, _, event), call in zip(self._order[first:last], calls):
            stream = self._others[number - 1] if number else own
            for wait in waits:
                if wait in recorded:  # others are of ops before
                    stream.wait_event(wait)
            with torch.cuda.stream(stream):
                call()
            if event:
                stream.record_event(event)
                recorded.add(event)
        for other in self._others:
            own.wait_stream(other)

    def close(self) -> None:
        torch.cuda.synchronize()


@contextmanager
def events(functions: Any) -> Iterator[Any]:
    """Tells the tape of every event that is recorded or waited for, numbered as they come."""
    kind, numbers, count = torch.cuda.Event, {}, itertools.count()

    def telling(action: Any, call: Any) -> Any:
        def method(event: Any, stream: Any = None) -> None:
            call(event, stream)
            if action == RECORD:
                numbers[id(event)] = next(count)
            if id(event) in numbers:  # one of an iteration before orders nothing
                on = torch.cuda.current_stream() if stream is None else stream
                functions.tarn_tape_told(action, numbers[id(event)],
                                         functions.tarn_cuda_stream(on.cuda_stream))

        return method

    with mock.patch.multiple(kind, record=telling(RECORD, kind.record),
                             wait=telling(WAIT, kind.wait)):
        yield
