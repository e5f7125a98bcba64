"""What PyTorch's caching allocator would hold: the rules of CUDACachingAllocator.cpp, without
expandable segments, for the requests of a step that is repeated."""
from __future__ import annotations

import bisect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional

from .devices import MIB

ROUND = 512
SMALL, SMALL_SEGMENT = MIB, 2 * MIB  # requests up to the first come from segments of the second
MEDIUM, MEDIUM_SEGMENT = 10 * MIB, 20 * MIB
LARGE_ROUND = 2 * MIB


class _Block:
    """A part of a segment, linked with its neighbours there."""
    __slots__ = ("address", "after", "before", "free", "size", "small")

    def __init__(self, size: int, small: bool, address: int, before: Optional[_Block] = None,
                 after: Optional[_Block] = None) -> None:
        self.size, self.small, self.address = size, small, address
        self.before, self.after, self.free = before, after, False


class Caching:
    """`reserved`: bytes of all segments, which are kept."""

    def __init__(self) -> None:
        self.reserved = 0
        self._free: dict[bool, list[Any]] = {True: [], False: []}  # (size, address, block)
        self._next = 0

    def take(self, size: int) -> _Block:
        """The smallest free block that is large enough, or one of a new segment; what is left of it
        is split off, unless it is too small."""
        size = max(ROUND, -(-size // ROUND) * ROUND)
        small = size <= SMALL
        free = self._free[small]
        at = bisect.bisect_left(free, (size, -1))
        block = free.pop(at)[2] if at < len(free) else self._segment(size, small)
        rest = block.size - size
        if rest >= ROUND if small else rest > SMALL:
            other = _Block(rest, small, block.address + size, block, block.after)
            if block.after:
                block.after.before = other
            block.after, block.size = other, size
            self._release(other)
        block.free = False
        return block

    def give(self, block: _Block) -> None:
        """Merges the block with free neighbours."""
        before, after = block.before, block.after
        if before is not None and before.free:
            self._forget(before)
            block.address, block.before = before.address, before.before
            block.size += before.size
            if before.before:
                before.before.after = block
        if after is not None and after.free:
            self._forget(after)
            block.after = after.after
            block.size += after.size
            if after.after:
                after.after.before = block
        self._release(block)

    def _segment(self, size: int, small: bool) -> _Block:
        whole = (SMALL_SEGMENT if small else MEDIUM_SEGMENT if size < MEDIUM
                 else -(-size // LARGE_ROUND) * LARGE_ROUND)
        self.reserved += whole
        block = _Block(whole, small, self._next)
        self._next += whole + LARGE_ROUND  # segments are never neighbours
        return block

    def _forget(self, block: _Block) -> None:
        free = self._free[block.small]
        free.pop(bisect.bisect_left(free, (block.size, block.address)))

    def _release(self, block: _Block) -> None:
        block.free = True
        bisect.insort(self._free[block.small], (block.size, block.address, block))


class Call(NamedTuple):
    """Of one op: sizes by name of what it makes, its workspace, and the names that end with it."""
    made: Mapping[Any, int]
    workspace: int
    ended: Sequence[Any]


def held(persistent: Sequence[int], later: Mapping[int, Sequence[int]], calls: Sequence[Call],
         steps: int = 4) -> int:
    """Bytes of the segments after some steps. persistent: sizes that are there from the start;
    later: sizes that an op makes in the first step and keeps."""
    memory = Caching()
    for size in persistent:
        memory.take(size)
    for step in range(steps):
        blocks = {}
        for number, call in enumerate(calls):
            for name, size in call.made.items():
                blocks[name] = memory.take(size)
            for size in later.get(number, ()) if step == 0 else ():
                memory.take(size)
            if call.workspace:
                memory.give(memory.take(call.workspace))
            for name in call.ended:
                memory.give(blocks.pop(name))
    return memory.reserved
