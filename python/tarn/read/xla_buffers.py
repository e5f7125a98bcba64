"""XLA's buffer assignment (--xla_dump_to=FOLDER --xla_dump_hlo_as_text): what XLA placed where.

*-buffer-assignment.txt has allocations with the values in them (size, offset); live ranges are in
*-live-range.txt beside it, or behind it in the same file. The graph has an op for each instruction of
the schedule, those of loops' bodies included, and a tensor for each value. Needs no library."""
from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, Optional

import tarn

from .intervals import Value, reading
from .network import Network, Reading, counted, text_of

ALIGNMENT = 64  # of XLA on the CPU; the GPU's is 256, whose offsets are multiples of this one, too
_ALLOCATION = re.compile(r"\s*allocation (\d+):(?: 0x\w+,)? size (\d+)(.*)$")
_VALUE = re.compile(r"\s*value:\s*<\d+ (.*?)(?: \(phi\))? @(\d+)> \(size=(\d+),offset=(\d+)\)")
_RANGE = re.compile(r"\s+(\S+?)(\{[\d,\s]*\}):(\d+)-(\d+)\s*$")
_STEP = re.compile(r"\s+(\d+):(\S+)\s*$")


class _Allocation(NamedTuple):
    number: int
    size: int
    words: str
    color: int
    values: list[tuple[str, int, int]]

    def is_of(self, *words: str) -> bool:
        return any(re.search(rf"\b{word}\b", self.words) for word in words)


def _canonical(name: str) -> str:
    return name if name.endswith("}") else name + "{}"


def _allocations(text: str, name: str) -> list[_Allocation]:
    found: list[_Allocation] = []
    for line in text.splitlines():
        head = _ALLOCATION.match(line)
        value = _VALUE.match(line)
        if head:
            color = re.search(r"\bcolor (\d+)", head[3])
            found.append(_Allocation(int(head[1]), int(head[2]), head[3],
                                     int(color[1]) if color else 0, []))
        elif value and found:
            found[-1].values.append((_canonical(value[1]), int(value[3]), int(value[4])))
    if not found:
        raise tarn.BadInput(f"{name} has no allocations: it is no buffer assignment of XLA "
                            "(*-buffer-assignment.txt)")
    return found


def _ranges(text: str, name: str) -> tuple[list[str], dict[str, tuple[int, int]]]:
    """The schedule, and the live range of each value."""
    begin = text.find("HloLiveRange")
    steps: list[str] = []
    ranges: dict[str, tuple[int, int]] = {}
    for line in text[begin:].splitlines() if begin >= 0 else ():
        step, live = _STEP.match(line), _RANGE.match(line)
        if live:
            ranges[live[1] + live[2].replace(" ", "")] = int(live[3]), int(live[4])
        elif step and int(step[1]) == len(steps):
            steps.append(step[2])
        elif line.startswith("  Live ranges at"):
            break
    if not steps or not ranges:
        raise tarn.BadInput(f"{name} has no live ranges, and no file ...-live-range.txt that has them "
                            "lies beside it: dump with --xla_dump_hlo_as_text, or give live_ranges")
    return steps, ranges


class _Arena:
    """The allocations that are planned, of one memory space one behind the other."""

    def __init__(self, net: Network, allocations: list[_Allocation]):
        self.planned = [a for a in allocations
                        if not a.is_of("parameter", "constant", "thread-local")]
        colors = sorted({a.color for a in self.planned})
        self.spaces = {color: 0 for color in colors}
        if colors != [0]:
            kinds = {0: "device", 5: "pinned"}
            self.spaces = {color: net.space(f"color {color}", kinds.get(color, "scratch"))
                           for color in colors}
        self.bases, ends = {}, dict.fromkeys(colors, 0)
        for a in self.planned:
            self.bases[a.number] = ends[a.color]
            ends[a.color] += -(-a.size // ALIGNMENT) * ALIGNMENT


def read(path: Any, live_ranges: Optional[Any] = None) -> Reading:
    """See tarn.read.xla."""
    name = os.fspath(path)
    text = text_of(path)
    beside = str(name).replace("-buffer-assignment.txt", "-live-range.txt")
    if live_ranges is not None:
        more = text_of(live_ranges)
    elif "HloLiveRange" in text or beside == name or not os.path.exists(beside):
        more = text
    else:
        more = text_of(beside)
    allocations = _allocations(text, str(name))
    steps, ranges = _ranges(more, str(name))
    net = Network(os.path.basename(str(name)).replace("-buffer-assignment.txt", ""),
                  "XLA buffer assignment")
    net.assume("one stream, in the order of XLA's schedule, in which the bodies of loops and "
               "conditionals stand once")
    values = _values(net, _Arena(net, allocations), allocations, len(steps), ranges)
    return reading(net, [(step, "hlo") for step in steps], values, "xla", ALIGNMENT)


def _values(net: Network, arena: _Arena, allocations: list[_Allocation], count: int,
            ranges: dict[str, tuple[int, int]]) -> list[Value]:
    """What is planned; what persists is added to the network."""
    values = []
    lost, inside = 0, 0
    for allocation in allocations:
        if allocation.is_of("thread-local"):
            continue
        if allocation.number not in arena.bases:
            kind = "input" if allocation.is_of("parameter") else "parameter"
            title = allocation.values[0][0] if allocation.values else f"allocation {allocation.number}"
            net.tensor(title, allocation.size, kind)
            inside += max(len(allocation.values) - 1, 0)
            continue
        base, space = arena.bases[allocation.number], arena.spaces[allocation.color]
        for title, size, offset in allocation.values:
            if title in ranges:
                begin, end = ranges[title]
                values.append(Value(title, min(begin, count - 1), end, size, base + offset, space))
            else:
                lost += 1
    if lost:
        net.assume(f"{counted(lost, 'value')} without a live range left out")
    if inside:
        net.assume(f"{counted(inside, 'value')} that XLA placed in the bytes of a donated parameter or "
                   "a constant left out")
    return values
