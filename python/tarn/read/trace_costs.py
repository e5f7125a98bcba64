"""Costs and streams for a graph that is there, from a trace of its execution.

Read are traces in Chrome's format (PyTorch's profiler, Kineto; JAX's and others that name ops), and
Chakra's: JSON whose nodes have times, and .et (protobuf messages, each behind its length). An event
belongs to the op of its name; where no op has its name, the k-th event of a kind to the k-th op of
that kind, "aten::addmm" and "aten.addmm.default" being one kind. Events inside of one that is taken
are its own parts. Where ops launched kernels, the kernels' time is the cost. Needs no library."""
from __future__ import annotations

import bisect
import gzip
import json
import os
import re
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Optional, Union

import tarn

from .network import Reading, counted, listed

_KERNELS = ("kernel", "gpu_memcpy", "gpu_memset")
_OPS = ("cpu_op", "user_annotation", "Op", "operator")


class _Event(NamedTuple):
    name: str
    begin: float          # all in nanoseconds
    end: float            # on the host
    time: float           # of it or of the kernels that it launched
    stream: Optional[str]
    thread: Any


def _word(name: str) -> str:
    """"aten::addmm", "aten.addmm.default", "torch.ops.aten.addmm" are one kind: addmm."""
    parts = [p for p in re.split(r"::|\.", name.strip().removeprefix("torch.ops.")) if p]
    if len(parts) > 1 and parts[0] in ("aten", "prims", "c10d", "_c10d_functional", "ao"):
        return parts[1].lower()
    return name.strip().lower()


# ---- Reading ----

def _text(path: Any) -> Any:
    with open(path, "rb") as file:
        data = file.read()
    return gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data


def _events(data: bytes, name: str) -> list[_Event]:
    """In the order in which they began."""
    if data.lstrip()[:1] not in (b"{", b"["):
        found = _chakra_messages(data, name)
    else:
        try:
            contents = json.loads(data)
        except (ValueError, RecursionError) as error:
            raise tarn.BadInput(f"{name} is no trace: {error}") from None
        if isinstance(contents, dict) and isinstance(contents.get("nodes"), list):
            found = _chakra_json(contents["nodes"], name)
        else:
            listed_events = contents if isinstance(contents, list) else contents.get("traceEvents")
            if not isinstance(listed_events, list):
                raise tarn.BadInput(f"{name} is no trace: it has neither traceEvents nor nodes")
            found = _chrome(listed_events)
    if not found:
        raise tarn.BadInput(f"{name} has no event with a name and a time")
    return sorted(found, key=lambda e: (e.begin, -e.end))


def _real(value: Any) -> Optional[float]:
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) and \
        0 <= value < 1e18 else None


def _chrome(records: list[Any]) -> list[_Event]:
    """Complete events; those of the host get the time and the stream of the kernels they launched."""
    host, kernels = [], defaultdict(list)
    for record in records:
        if not isinstance(record, dict) or record.get("ph") != "X":
            continue
        time, begin = _real(record.get("dur")), _real(record.get("ts"))
        given = record.get("args")
        arguments: dict[str, Any] = given if isinstance(given, dict) else {}
        name = str(arguments.get("hlo_op") or record.get("name", ""))
        if time is None or begin is None or not name:
            continue
        number = str(arguments.get("External id"))
        kind = record.get("cat")
        if kind is not None and not isinstance(kind, str):
            continue
        if kind in _KERNELS:
            stream = arguments.get("stream")
            kernels[number].append(
                (time * 1e3, None if stream is None else str(stream)))
        elif kind in _OPS or kind is None:
            host.append((_Event(name, begin * 1e3, (begin + time) * 1e3, time * 1e3, None,
                                (str(record.get("pid")), str(record.get("tid")))), number))
    if not kernels:
        return [event for event, _ in host]
    return list(_with_kernels(host, kernels))


def _with_kernels(host: Sequence[tuple[_Event, Any]], kernels: Any) -> Iterator[_Event]:
    """An op has the kernels of all ops inside of it."""
    threads: dict[Any, list[tuple[_Event, Any]]] = defaultdict(list)
    for event, number in host:
        threads[event.thread].append((event, number))
    for events in threads.values():
        events.sort(key=lambda e: e[0].begin)
        begins = [event.begin for event, _ in events]
        for place, (event, _) in enumerate(events):
            behind = bisect.bisect_right(begins, event.end)
            parts = [part for inner, number in events[place:behind]
                     if inner.end <= event.end + 1
                     for part in kernels.get(number, ())]
            streams = Counter(stream for _, stream in parts if stream is not None)
            most = streams.most_common(1)
            yield event._replace(time=sum(time for time, _ in parts),
                                 stream=most[0][0] if most else None)


def _chakra_json(nodes: list[Any], name: str) -> list[_Event]:
    found = []
    for place, node in enumerate(nodes):
        if not isinstance(node, dict):
            continue
        micros = next((t for t in (_real(node.get(field)) for field in (
            "inclusive_dur", "exclusive_dur", "duration_micros", "dur")) if t is not None), None)
        if micros is None or not node.get("name"):
            continue
        given = _real(node.get("ts", node.get("start_time_micros")))
        begin = float(place) if given is None else given * 1e3
        stream = node.get("stream")
        found.append(_Event(str(node["name"]), begin, begin if given is None else begin + micros * 1e3,
                            micros * 1e3, None if stream is None else str(stream), 0))
    if not found:
        raise tarn.BadInput(f"{name} is an execution trace without times: give the profiler's trace "
                            "of the same run, or link both (chakra_trace_link)")
    return found


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while place < len(data) and shift < 64:
        value |= (data[place] & 127) << shift
        shift, place = shift + 7, place + 1
        if data[place - 1] < 128:
            return value, place
    raise ValueError("a number is cut short")


def _fields(data: bytes) -> Iterator[tuple[int, Union[int, bytes]]]:
    """(number, value) of each field of a protobuf message."""
    place = 0
    while place < len(data):
        key, place = _varint(data, place)
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            value, place = _varint(data, place)
            yield key >> 3, value
            continue
        if key & 7 == 2:
            size, place = _varint(data, place)
        if size is None or place + size > len(data):
            raise ValueError("a field is cut short")
        yield key >> 3, data[place:place + size]
        place += size


def _chakra_messages(data: bytes, name: str) -> list[_Event]:
    """et_def.proto: GlobalMetadata, then Node: name 2, start_time_micros 6, duration_micros 7."""
    found, place, count = [], 0, 0
    try:
        while place < len(data):
            size, place = _varint(data, place)
            if place + size > len(data):
                raise ValueError("a message is cut short")
            message = dict(_fields(data[place:place + size]))
            place, count = place + size, count + 1
            title, micros, begin = message.get(2), message.get(7, 0), message.get(6, 0)
            if count > 1 and isinstance(title, bytes) and isinstance(micros, int) and \
                    isinstance(begin, int):
                start = begin * 1e3 or float(count)
                found.append(_Event(title.decode("utf-8", "replace"), start,
                                    start + micros * 1e3 if begin else start, micros * 1e3, None, 0))
    except ValueError as error:
        raise tarn.BadInput(f"{name} is no trace: neither JSON nor Chakra's messages "
                            f"({error})") from None
    return found


# ---- Matching ----

def _taken(events: list[_Event], words: set[str], names: set[str]) -> list[_Event]:
    """Events of the graph's kinds that are not inside of another one."""
    ends: dict[Any, float] = {}
    result = []
    for event in events:
        if (event.name in names or _word(event.name) in words) and \
                event.begin >= ends.get(event.thread, -1.0):
            result.append(event)
            ends[event.thread] = event.end
    return result


def _matched(graph: tarn.Graph, events: list[_Event]) -> dict[int, list[_Event]]:
    """Events of each op; several where the trace has several iterations."""
    ops = [op for op in graph.ops if not op.view]
    by_name = {op.name: op.id for op in ops}
    kinds: dict[str, list[int]] = defaultdict(list)
    for op in ops:
        kinds[_word(op.kind)].append(op.id)
    result: dict[int, list[_Event]] = defaultdict(list)
    queues: dict[str, list[_Event]] = defaultdict(list)
    for event in _taken(events, set(kinds), set(by_name)):
        if event.name in by_name:
            result[by_name[event.name]].append(event)
        else:
            queues[_word(event.name)].append(event)
    for word, queue in queues.items():
        ids = [i for i in kinds.get(word, ()) if i not in result]
        for place, event in enumerate(queue if ids else ()):
            if len(queue) % len(ids) == 0 or place < len(ids):
                result[ids[place % len(ids)]].append(event)
    return result


def _ordered(ops: list[dict[str, Any]], roots: list[int]) -> None:
    """Control arcs for what the order of one stream said before: who writes a storage comes after who
    read or wrote it."""
    writer: dict[int, int] = {}
    readers: dict[int, list[int]] = defaultdict(list)
    for op in ops:
        if op.get("view"):
            continue
        reads = {roots[t] for t in op["inputs"]}
        writes = {roots[t] for t in op["outputs"]}
        before = {writer[s] for s in reads | writes if s in writer}
        before |= {v for s in writes for v in readers[s]}
        before = {v for v in before if v != op["id"] and ops[v]["stream"] != op["stream"]}
        if before:
            op["control"] = sorted({*op.get("control", ()), *before})
        for s in writes:
            writer[s], readers[s] = op["id"], []
        for s in reads - writes:
            readers[s].append(op["id"])


def read(trace: Any, graph: Any, streams: bool = False) -> Reading:
    """See tarn.read.costs."""
    name = str(os.fspath(trace))
    given = graph if isinstance(graph, tarn.Graph) else tarn.Graph.load(graph)
    try:
        data = _text(trace)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise tarn.BadInput(f"{name} is damaged: {error}") from None
    matched = _matched(given, _events(data, name))
    if not matched:
        raise tarn.BadInput(f"{name} has no event of an op of {given.name!r}, by name or kind (as "
                            f"{listed(sorted({op.kind for op in given.ops}))})")
    text = json.loads(given.to_bytes())
    ops = text["ops"]
    for op, events in matched.items():
        ops[op]["cost"] = round(sum(e.time for e in events) / len(events))
    launched = [op["id"] for op in ops if not op.get("view")]
    missing = [ops[i]["name"] for i in launched if i not in matched]
    assumed = [f"costs of {len(matched)} of {counted(len(launched), 'op')}, by name and else by kind "
               "and order"]
    if missing:
        assumed.append(f"{counted(len(missing), 'op')} without an event as they were "
                       f"({listed(missing)})")
    if any(len(events) > 1 for events in matched.values()):
        assumed.append("several events of an op averaged: iterations")
    if streams:
        assumed.append(_move(text, matched, given))
    made = tarn.Graph.from_bytes(json.dumps(text).encode(), given.name + ".json")
    return Reading(made, tuple(assumed))


def _move(text: dict[str, Any], matched: dict[int, list[_Event]], graph: tarn.Graph) -> str:
    """Puts ops on the trace's streams; says what was done."""
    found = {op: next((e.stream for e in events if e.stream is not None), None)
             for op, events in matched.items()}
    names = sorted({s for s in found.values() if s is not None})
    if not names:
        raise tarn.UsageError("the trace has no streams: streams says nothing here")
    makers = {t: op["id"] for op in text["ops"] for t in op["outputs"]}
    for op in text["ops"]:
        stream = found.get(op["id"])
        if stream is None:  # with the op whose result it reads
            before = [makers[t] for t in op["inputs"] if makers.get(t, op["id"]) < op["id"]]
            op["stream"] = text["ops"][max(before)]["stream"] if before else 0
        else:
            op["stream"] = names.index(stream)
    text["streams"] = [{"id": i, "name": f"stream {s}"} for i, s in enumerate(names)]
    _ordered(text["ops"], [int(t.root) for t in graph.tensors])
    return (f"ops on {counted(len(names), 'stream')} of the trace; those without an event with the op "
            "whose result they read; what wrote over what in the graph's order is kept in order")
