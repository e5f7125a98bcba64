"""What would Tarn have needed? Reads PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot).

    snapshot = tarn.torch.snapshot.load("snapshot.pickle")
    print(snapshot.needs())
    snapshot.graph().save("step.json")          # for the command line

Needs no torch, and executes nothing of the pickle: it may hold plain values only."""
from __future__ import annotations

import bisect
import itertools
import math
import os
import warnings
from typing import Any, Optional, Union

import tarn

from . import plain_pickle
from .recording import RELEASE, REQUEST, Event, graph

ALIGNMENT = 512  # of PyTorch's CUDA allocator
RECORD = "call torch.cuda.memory._record_memory_history first"


# ---- What a file may say ----

def _field(record: Any, name: Any, low: Any, high: Any) -> Any:
    """A whole number of a record in [low, high)."""
    value = record.get(name)
    if type(value) is not int or not low <= value < high:
        what = type(value).__name__
        if type(value) is int:  # which may have more digits than a message
            what = str(value) if value.bit_length() < 80 else f"of {value.bit_length()} bits"
        raise tarn.BadInput(f"{name} has to be a number from {low} to {high - 1}, not {what}")
    return value


def _time(record: Any) -> None:
    """Nothing is made of times, but they have to be some."""
    value = record.get("time_us", 0)
    if not (type(value) is int and value.bit_length() < 64) and \
            not (type(value) is float and math.isfinite(value)):
        raise tarn.BadInput("time_us is no time")


def _size(record: Any, name: Any = "size") -> Any:
    return _field(record, name, 1, 1 << 53)


def _address(record: Any, name: Any = "addr") -> Any:
    return _field(record, name, 0, 1 << 64)


def _stream(record: Any) -> Any:
    return _field(record, "stream", -(1 << 63), 1 << 64)


def _list(record: Any, name: Any) -> Any:
    """A list of dicts."""
    found = record.get(name, [])
    if type(found) is not list or not all(type(item) is dict for item in found):
        raise tarn.BadInput(f"{name} is no list of records")
    return found


# ---- Blocks ----

class _Blocks:
    """The blocks of a device that are alive: by address, which bytes, which number, whose stream."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.alive: dict[int, Any] = {}
        self._starts: list[int] = []
        self._before: list[Event] = []
        self._numbers = itertools.count()

    def request(self, address: Any, size: Any, stream: Any) -> None:
        """What lies there has been released before, whether the trace says so or not."""
        self._end_between(address, address + size)
        number = next(self._numbers)
        self.alive[address] = (size, number, stream)
        bisect.insort(self._starts, address)
        self.events.append(Event(REQUEST, number, size, stream))

    def release(self, address: Any, size: Any, stream: Any) -> None:
        if address in self.alive:
            self._end(address)
            return
        number = next(self._numbers)  # from before the trace
        self._before.append(Event(REQUEST, number, size, stream))
        self.events.append(Event(RELEASE, number, size, stream))

    def _end(self, address: Any) -> None:
        size, number, stream = self.alive.pop(address)
        del self._starts[bisect.bisect_left(self._starts, address)]
        self.events.append(Event(RELEASE, number, size, stream))

    def _end_between(self, begin: Any, end: Any) -> None:
        """Blocks do not overlap: of those that begin before, the last one alone may reach there."""
        first = bisect.bisect_left(self._starts, begin)
        if first > 0:
            before = self._starts[first - 1]
            first -= before + self.alive[before][0] > begin
        for address in self._starts[first:bisect.bisect_left(self._starts, end)]:
            self._end(address)

    def read(self, trace: Any) -> Any:
        for entry in trace:
            action = entry.get("action")
            _time(entry)
            if action == "alloc":
                self.request(_address(entry), _size(entry), _stream(entry))
            elif action == "free_completed":
                self.release(_address(entry), _size(entry), _stream(entry))
            elif action in ("segment_free", "segment_unmap"):
                begin = _address(entry)
                self._end_between(begin, begin + _size(entry))
        return self._before + self.events


def _held(trace: Any, reserved: Any) -> Any:
    """The most that PyTorch held during a trace at whose end it holds `reserved`."""
    most = held = reserved
    for entry in reversed(trace):
        if entry.get("action") in ("segment_alloc", "segment_map"):
            held -= _size(entry)
        elif entry.get("action") in ("segment_free", "segment_unmap"):
            held += _size(entry)
        most = max(most, held)
    return most


class Snapshot:
    """The requests of one device. A block lives until its release has been completed, which is when
    all streams that used it had come that far; a trace that does not say so (skip_actions) ends it
    when its bytes are requested again. `kept`: bytes that were there all the time; `reserved`:
    what PyTorch holds at the end; `peak`: the most that was requested at once.

    device: None takes the device whose trace it is, or of several traces that of device 0."""

    def __init__(self, contents: Any, device: Any = None) -> None:
        traces = contents.get("device_traces", []) if type(contents) is dict else []
        traces = traces if type(traces) is list else []
        devices = [number for number, trace in enumerate(traces) if trace]
        if device is None:
            device = devices[0] if len(devices) == 1 else 0
        if device not in devices:
            other = f", or read another one, with device={devices[0]}" if devices else ""
            raise tarn.BadInput(f"it holds no trace of device {device!r} (devices: {devices}): "
                                f"{RECORD}{other}")
        self.device = device
        trace = _list({"trace": traces[device]}, "trace")
        blocks = _Blocks()
        self.events = blocks.read(trace)
        changes = (e.size if e.action == REQUEST else -e.size for e in self.events)
        self.peak = max(itertools.accumulate(changes, initial=0))
        segments = [s for s in _list(contents, "segments")
                    if _field({"device": 0, **s}, "device", 0, 1 << 31) == device]
        self.reserved = sum(_size(s, "total_size") for s in segments)
        self.kept = sum(self._kept_in(segment, blocks.alive) for segment in segments)
        held = _held(trace, self.reserved)
        if segments and self.peak > held:
            warnings.warn(f"the trace of device {device} has {self.peak} bytes at once, but PyTorch "
                          f"held {held}: releases are missing in it, so that more seems to be "
                          "needed than was; record without skip_actions", stacklevel=2)

    @staticmethod
    def _kept_in(segment: Any, alive: Any) -> Any:
        """Bytes of its blocks that are in use, and that the trace knows nothing of."""
        kept, address = 0, _address(segment, "address")
        for block in _list(segment, "blocks"):
            address = _address(block, "address") if "address" in block else address
            size = _size(block)
            if block.get("state") == "active_allocated" and address not in alive:
                kept += size
            address += size
        return kept

    def graph(self, name: str = "snapshot", one_stream: bool = False) -> tarn.Graph:
        """A tarn.Graph with the streams of the snapshot, which says nothing of how they were
        ordered: so they are unordered. one_stream: ordered as the host called, a packing instance
        that can be saved as CSV, too."""
        return graph(self.events, name, one_stream)[0]

    def needs(self, **options: Any) -> dict[str, int]:
        """Bytes: of one arena if all streams were ordered as the host called, of one for unordered
        streams, and what PyTorch requested and reserved."""
        options = {"alignment": ALIGNMENT, **options}
        return {"ordered": tarn.plan(self.graph(one_stream=True), **options).footprint,
                "unordered": tarn.plan(self.graph(), **options).footprint,
                "peak": self.peak, "reserved": self.reserved, "kept": self.kept}


def load(path: Union[str, os.PathLike[str]], device: Optional[int] = None) -> Snapshot:
    """A snapshot file; tarn.BadInput where it is none, is damaged, or lacks the device's trace."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        return Snapshot(plain_pickle.loads(data), device)
    except Exception as error:  # pylint: disable=broad-except
        raise tarn.BadInput(f"{os.fspath(path)} is no memory snapshot of PyTorch that can be "
                            f"planned: {str(error)[:400] or type(error).__name__}") from None
