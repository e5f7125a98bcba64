"""Memory in which tensors lie, and views of it: a view keeps what it shows.

What the package allocates are anonymous mappings of Python's mmap, whose memoryviews keep them: so
no view can outlive its bytes, whatever becomes of the session. The same holds for the caller's
buffers, which cannot be closed or resized meanwhile (BufferError). Of bare addresses nothing is
known: the caller keeps their memory."""
from __future__ import annotations

import ctypes as c
import mmap
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, Optional, Union

from . import _native as n
from .errors import OutOfResources, UsageError

Bytes = Union[tuple[int, int], Any]  # (address, size), or a writable buffer
Memory = Union[Bytes, Sequence[Bytes]]
Region = tuple[int, memoryview]  # where it begins


def _of_address(address: int, size: int) -> memoryview:
    return memoryview((c.c_char * size).from_address(address)).cast("B")


def _of_buffer(buffer: Any) -> Region:
    try:
        view = memoryview(buffer).cast("B")
        array = (c.c_char * view.nbytes).from_buffer(view)
    except TypeError as error:
        raise UsageError(f"memory must be a writable, contiguous buffer: {error}") from None
    return c.addressof(array), view


def _allocated(size: int, alignment: int) -> Region:
    try:
        pages = mmap.mmap(-1, size + alignment, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    except (OSError, OverflowError, ValueError) as error:
        raise OutOfResources(f"no memory for an arena of {size} bytes: {error}") from None
    start, view = _of_buffer(pages)
    skipped = -start % max(alignment, 1)
    return start + skipped, view[skipped:skipped + size]


def _is_list(memory: Any) -> bool:
    return isinstance(memory, (list, tuple)) and not (
        isinstance(memory, tuple) and len(memory) == 2 and isinstance(memory[0], int))


class Regions:
    """The memory of a session or an arena, by memory space, and what was bound to its tensors."""

    def __init__(self, options: Any = None, memory: Optional[Memory] = None, spaces: int = 0,
                 needs: Optional[Callable[[int], Any]] = None):
        """options: a struct that takes memory, which is allocated where there is none. needs: what
        a space needs. No arguments: no memory."""
        self._spaces: list[Region] = []
        self._bound: dict[int, Region] = {}  # by tensor
        self._before: list[Region] = []  # what was bound, and may be in use
        if memory is not None:
            given = list(memory) if _is_list(memory) else [memory]
            self._spaces = [self.given(*one) if isinstance(one, tuple) else _of_buffer(one)
                            for one in given]
        elif needs:
            wanted = [needs(space) for space in range(spaces)]
            self._spaces = [_allocated(each.size, each.alignment) for each in wanted]
        places = [(start if view.nbytes else None, view.nbytes) for start, view in self._spaces]
        if places:
            options.memory, options.memory_size = places[0]
            options.space_memory = (n.SpaceMemory * len(places))((None, 0), *places[1:])
            options.space_memory_count = len(places)

    def copy(self) -> Regions:
        made = Regions()
        made._spaces = list(self._spaces)
        return made

    @staticmethod
    def given(memory: Any, size: int) -> Region:
        """Of an address, or of a buffer that must be so large at least."""
        if hasattr(memory, "__index__"):
            return int(memory), _of_address(memory, size)
        start, view = _of_buffer(memory)
        if view.nbytes < size:
            raise UsageError(f"the memory has {view.nbytes} bytes, the tensor {size}")
        return start, view[:size]

    def bind(self, tensor: int, address: int, view: memoryview) -> None:
        if tensor in self._bound:
            self._before.append(self._bound[tensor])
        self._bound[tensor] = (address, view)

    def forget(self) -> None:
        """Nothing is at work: what was bound before is not needed any more."""
        self._before.clear()

    def clear(self) -> None:
        """For the session's end. Views keep what they show."""
        self._spaces, self._bound = [], {}
        self.forget()

    def view(self, address: int, size: int) -> memoryview:
        """Bytes of one of the regions; of the library's own memory, if it is none of theirs."""
        for start, whole in chain(self._spaces, self._bound.values(), self._before):
            if start <= address and address + size <= start + whole.nbytes:
                return whole[address - start:address - start + size]
        return _of_address(address, size)
