"""Moves of a plan in PyTorch: copies to the host's memory and back, on streams of their own.

What an iteration makes waits in `Host`. Parameters and states of the optimizer live in the host's
memory between their uses: on a GPU their storages are made to lie there, pinned, where the GPU
reads and writes them as any other tensor, slowly. So all that looks at them outside of a planned
step (an eager one, state_dict, deepcopy) works as ever."""
from __future__ import annotations

import ctypes as c
from collections import defaultdict
from contextlib import contextmanager
from typing import Any, Callable, NamedTuple, Optional
from collections.abc import Iterator

import torch

from .memory import allocator
from .tensors import distance, local

PAGE = 4096


@contextmanager
def on_host(device: Any) -> Iterator[None]:
    """What this thread asks the GPU's allocator for inside is pinned memory of the host."""
    functions = allocator(device.type)
    if device.type == "cuda":
        functions.tarn_cuda_on_host(1)
    try:
        yield
    finally:
        if device.type == "cuda":
            functions.tarn_cuda_on_host(0)


class Host:
    """Bytes in which planned tensors wait; on a GPU pinned ones of the host."""

    def __init__(self, size: int, device: Any) -> None:
        self.size = size
        with on_host(device):
            self._bytes = torch.empty(size + PAGE, dtype=torch.uint8, device=device)
        self.base = self._bytes.data_ptr() + -self._bytes.data_ptr() % PAGE


def host_size(plan: Any) -> int:
    """Bytes of what a plan has in other memories than the arena's."""
    return sum(space.footprint for space in plan.spaces[1:])


def bring_home(storage: Any) -> None:
    """To the host's memory, with all tensors that lie in it, unless it is there or on no GPU; not
    while a graph is captured."""
    if storage.device.type != "cuda" or not storage.nbytes():
        return
    if is_home(storage) or torch.cuda.is_current_stream_capturing():
        return
    with on_host(storage.device):
        _swap(storage, torch.UntypedStorage(storage.nbytes(), device=storage.device))


def is_home(storage: Any) -> bool:
    """Does a storage of a GPU lie in the host's memory?"""
    return bool(allocator("cuda").tarn_cuda_is_on_host(storage.data_ptr()))


def _swap(storage: Any, other: Any) -> None:
    """The bytes of a storage become those of another one, which gets its old ones."""
    torch.cuda.synchronize()
    other.copy_(storage)
    torch.cuda.synchronize()
    allocator("cuda").tarn_cuda_swap(storage._cdata, other._cdata)


class Homes:
    """Where what persists lies, by root: its storage, and the byte at which it begins there."""

    def __init__(self, lowered: Any, tensors: Any) -> None:
        """tensors: for the placeholders."""
        self._lowered, self._tensors = lowered, tensors

    def of(self, root: Any) -> Any:
        """None: the optimizer has not made it yet."""
        lowered = self._lowered
        if root in lowered.states:
            update, places = lowered.states[root]
            value = update.value(*places[0])
            return None if value is None else (value.untyped_storage(), 0)
        real = self._tensors[lowered.persistent[root]]
        return real.untyped_storage(), distance(real, lowered.value[lowered.holders[root]])

    def bring(self, roots: Any) -> None:
        """What moves and persists lies in the host's memory then, wherever it was put meanwhile.
        Raises ValueError, before anything is changed, where a state has another size now."""
        for root in roots:
            if root in self._lowered.states:
                self._settle(root)
            found = self.of(root)
            if found:
                bring_home(found[0])

    def fetch(self, roots: Any) -> None:
        """What another plan has left in the host's memory lies on the GPU again."""
        for root in roots if self._lowered.device.type == "cuda" else ():
            found = self.of(root)
            if found and found[0].nbytes() and is_home(found[0]):
                _swap(found[0], torch.UntypedStorage(found[0].nbytes(), device=found[0].device))

    def _settle(self, root: Any) -> None:
        """A state that was loaded may be a part of a larger storage: it gets one of its own."""
        size, (update, places) = self._lowered.storages[root].size, self._lowered.states[root]
        values = [update.value(*place) for place in places]
        if all(value is None for value in values):
            return
        if any(value is None or value.untyped_storage()._cdata != values[0].untyped_storage()._cdata
               for value in values):
            raise ValueError("states of the optimizer that shared their bytes do not any more")
        if values[0].untyped_storage().nbytes() == size:
            return
        if len(values) == 1:
            number, name = places[0]
            own = values[0].clone()
            if own.untyped_storage().nbytes() == size:
                update.optimizer.state[update.parameters[number]][name] = own
                return
        raise ValueError(f"a state of the optimizer had {size} bytes when the step was planned, and "
                         f"lies in {values[0].untyped_storage().nbytes()} now")


class Mover:
    """Binds the moves of a plan to addresses."""

    def __init__(self, program: Any) -> None:
        self._plan, self._arena = program.plan, program.arena
        self._tensors, self._root = program.held, program.root_of
        self._homes = program.homes
        self._copy: Any = _copy_on_gpu if program.lowered.device.type == "cuda" else c.memmove

    def bind(self, op: Any) -> Callable[[], None]:
        """What to call for a move."""
        target, source = op.outputs[0], op.inputs[0]
        size, copy, find = self._tensors[target].size, self._copy, self._homes.of
        to, start = self._address(target), self._address(source)
        root = self._root(target)

        def fixed() -> None:
            copy(to, start, size)

        def into() -> None:
            home = find(root)
            if home:  # else nothing is there yet
                copy(to, home[0].data_ptr() + home[1], size)

        def out() -> None:
            home = find(root)
            if home:
                bring_home(home[0])
                copy(home[0].data_ptr() + home[1], start, size)

        return out if to is None else into if start is None else fixed

    def _address(self, tensor: Any) -> Optional[int]:
        """None: what persists."""
        told = self._tensors[tensor]
        if told.is_persistent:
            return None
        base = self._arena.host.base if told.space else self._arena.base
        return int(base + self._plan.offset(tensor))


def _copy_on_gpu(to: int, start: int, size: int) -> None:
    code = allocator("cuda").tarn_cuda_copy(to, start, size,
                                            torch.cuda.current_stream().cuda_stream)
    if code:
        raise RuntimeError(f"a copy between the GPU and the host has failed: CUDA error {code}")


# ---- Updates of what lies elsewhere ----

class Placed(NamedTuple):
    """Where parameters and states of an update lie while it runs. parameters: (parameter, a tensor
    there); states: by the parameter's number and the name, what makes a tensor there like one."""
    parameters: list[tuple[Any, Any]]
    states: dict[tuple[int, str], Callable[[Any], Any]]


def placed(program: Any, update: Any, places: Any) -> Optional[Placed]:
    """places: offsets in the arena, by roots. None: all lies where it persists."""
    lowered, found = program.lowered, Placed([], {})
    for root in places.keys() & lowered.persistent.keys():
        if root in lowered.states:
            for place in lowered.states[root][1]:
                found.states[place] = _maker(program.arena, places[root])
            continue
        storage, begin = program.homes.of(root)
        for parameter in map(local, update.parameters):
            if parameter.untyped_storage()._cdata == storage._cdata:
                there = program.arena.tensor(places[root] - begin, parameter.detach())
                found.parameters.append((parameter, there))
    return found if found.parameters or found.states else None


def _maker(arena: Any, offset: int) -> Callable[[Any], Any]:
    return lambda like: arena.tensor(offset, like)


@contextmanager
def lying(where: Placed, update: Any) -> Iterator[None]:
    """Inside parameters and states lie there; what the optimizer makes anew is copied there."""
    state, own = update.optimizer.state, update.own
    homes = [(parameter, parameter.data) for parameter, _ in where.parameters]
    here: dict[tuple[int, str], Any] = {}
    own.state = defaultdict(dict)
    for number, parameter in enumerate(update.parameters):
        if parameter in state:
            values = own.state[parameter] = dict(state[parameter])
            for name, value in values.items():
                if (number, name) in where.states:
                    here[number, name] = values[name] = where.states[number, name](value)
    try:
        for parameter, there in where.parameters:
            parameter.data = there
        yield
        for number, parameter in enumerate(update.parameters):
            for name, value in own.state.get(parameter, {}).items():
                if value is here.get((number, name), state):
                    continue
                if (number, name) in where.states:
                    where.states[number, name](value).copy_(value)
                if value is not state[parameter].get(name, own):
                    state[parameter][name] = value
    finally:
        own.state = state  # else views keep the arena alive
        for parameter, home in homes:
            parameter.data = home
