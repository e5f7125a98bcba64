"""Recorded requests for memory as graphs: what was alive when, on which stream. Knows no torch.

A recording is a list of events in the order of the host's calls. A stream runs its own in that
order; streams are ordered among each other where one has waited for another's event, where a block
goes from one to the other, and nowhere else."""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import tarn

REQUEST, RELEASE, USE, RECORD, WAIT = range(5)
ACTIONS = ("request", "release", "use", "record", "wait")


class Event(NamedTuple):
    """block: of memory; for RECORD and WAIT an event of the device. USE: by another stream."""
    action: int
    block: int
    size: int
    stream: int


def graph(events: Sequence[Event], name: str = "recording",
          one_stream: bool = False) -> tuple[tarn.Graph, dict[int, tarn.TensorId]]:
    """(tarn.Graph, {block: tensor}). Blocks that are never released are outputs, which no plan
    gives away. one_stream: as if the streams took turns in the order of the host's calls."""
    events = [e._replace(stream=0) for e in events] if one_stream else events
    builder = tarn.Builder(name)
    streams = sorted({e.stream for e in events})
    ids = {stream: builder.stream(f"stream {stream}") for stream in streams}
    released = {e.block for e in events if e.action == RELEASE}
    tensors, users, recorded = {}, {}, {}
    for e in events:
        stream, what = ids[e.stream], f"{ACTIONS[e.action]} {e.block}"
        if e.action == REQUEST:
            kind = "intermediate" if e.block in released else "output"
            tensors[e.block] = builder.tensor(f"block {e.block}", e.size, kind)
            users[e.block] = {stream}
            builder.op(what, stream, outputs=[tensors[e.block]], kind="request")
        elif e.action == USE:
            users[e.block].add(stream)
        elif e.action == RELEASE:
            for user in sorted(users[e.block]):
                builder.op(what, user, inputs=[tensors[e.block]], kind="release")
        elif e.action == RECORD:
            recorded[e.block] = builder.op(what, stream, kind="record")
        elif e.block in recorded:
            builder.op(what, stream, kind="wait", control=[recorded[e.block]])
    return builder.finish(), tensors
