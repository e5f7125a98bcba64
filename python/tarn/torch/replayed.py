"""The first replay of a step's CUDA graphs, compared with the planned step, before they are trusted. A
capture keeps addresses and numbers: it is wrong if it reads what was freed since, or a number of the
host's that is another one in the next step."""
from __future__ import annotations

import gc
import math
from functools import partial
from typing import Any, Mapping, NamedTuple

import torch

from .comparing import bits, norm
from .tensors import local, tensors_of
from .updates import unchanged

NO_ROOM = "there is no memory to compare its first replay"
PIECE = 1 << 22  # elements that are compared at once
ROUNDING = 1e-6  # share of a tensor's norm by which runs may differ that do not give equal bits


class _Made(NamedTuple):
    """A tensor that a step has made or changed. place: what it lies in, see _writers."""
    tensor: Any
    place: Any


_Name = tuple[str, str]  # what kind of tensor (parameter, a name of the optimizer's, ...); its own name


def difference(step: Any, variant: Any, recorded: Any) -> str:
    """Runs a step, and before that its graphs, which is undone. Returns in what these have given
    something else, or "". Where equal runs may give other bits, and do, the step is run some more
    times, and the graphs may differ as much as these do. What the step changes is copied meanwhile:
    on the GPU, or, where there is no room, on the host. Where that cannot be had, says so."""
    for on_host in (False, True)[bool(step.samples):]:
        try:
            return _difference(step, variant, recorded, on_host)
        except _NoRoom:
            gc.collect()
    _planned(variant)
    return NO_ROOM


class _NoRoom(Exception):
    """What was done is undone."""


def _planned(variant: Any) -> None:
    with variant.recordings.rates.given():
        variant.program.run()


def _difference(step: Any, variant: Any, recorded: Any, on_host: bool) -> str:
    program = variant.program
    written = [*(program.tensors[i] for i in variant.fixed), *step.model.buffers()]

    planned = partial(_planned, variant)

    def made(of: Any) -> dict[_Name, Any]:
        return {name: of(made.tensor) for name, made in _made(step, variant).items()}

    def undone(run: Any, of: Any) -> dict[_Name, Any]:
        try:
            with unchanged(step.optimizer, written, on_host, in_place=True):
                run()
                return made(of)
        except torch.OutOfMemoryError as error:
            raise _NoRoom from error

    replayed = undone(recorded.replay, bits)
    if step.is_exact():
        planned()
        try:
            found = made(bits)
        except torch.OutOfMemoryError:
            return NO_ROOM
        return _told(step, variant, recorded, [n for n in found if replayed.get(n) != found[n]])
    if replayed == undone(planned, bits):
        planned()
        return ""

    def copy(tensor: Any) -> Any:
        return tensor.to("cpu", copy=True)

    replayed, before = undone(recorded.replay, copy), undone(planned, copy)
    planned()
    now = _made(step, variant)
    try:
        norms = {name: _norm(one.tensor) for name, one in now.items()}
        noise = {name: _apart(one.tensor, before[name]) for name, one in now.items()}
        apart = {name: _apart(one.tensor, replayed[name]) for name, one in now.items()}
    except torch.OutOfMemoryError:
        return NO_ROOM
    return _told(step, variant, recorded, [name for name in now if not apart[name] <= max(
        2 * _noise(name, noise, norms), ROUNDING * norms[name])])


def _norm(tensor: Any) -> float:
    """Of what is finite in a tensor."""
    return norm(torch.where(torch.isfinite(some), some, 0) for some in tensor.flatten().split(PIECE))


def _noise(name: _Name, noise: Mapping[_Name, float], norms: Mapping[_Name, float]) -> float:
    """By how much two planned steps may be apart in a tensor, if another time they are apart by
    `noise`: by as much as in all tensors of its kind, but by no larger share of its norm than in the
    one of them where this is largest."""
    kind = [n for n in noise if n[0] == name[0]]
    share = max(noise[n] / norms[n] if norms[n] else math.inf if noise[n] else 0.0 for n in kind)
    return min(sum(noise[n] for n in kind), share * norms[name] if norms[name] else math.inf)


def _apart(one: Any, other: Any) -> float:
    """The norm of a difference; what is equal, or not a number in both, is 0 apart."""
    def difference(some: Any, others: Any) -> Any:
        others = others.to(some.device)
        exact = torch.complex128 if some.is_complex() else torch.float64
        are_equal = (some == others) | (some != some) & (others != others)
        return torch.where(are_equal, 0, some.to(exact) - others.to(exact))

    return norm(map(difference, one.flatten().split(PIECE), other.flatten().split(PIECE)))


def _made(step: Any, variant: Any) -> dict[_Name, _Made]:
    """By kind and name."""
    names = {id(local(t)): name for name, t in (*step.model.named_parameters(),
                                                *step.model.named_buffers())}
    parameters = [(local(p), step.optimizer.state.get(p, {})) for p in tensors_of(
        [group["params"] for group in step.optimizer.param_groups])]
    found: dict[_Name, _Made] = {}

    def add(kind: str, name: str, tensor: Any, place: Any = None) -> None:
        place = tensor.untyped_storage()._cdata if place is None else place
        found[kind, name] = _Made(tensor.detach(), place)

    for number, result in enumerate(variant.program.results[:variant.results_count]):
        if isinstance(result, torch.Tensor):
            add("result", f"result {number}" if number else "loss", result, ("result", number))
    for number, (parameter, state) in enumerate(parameters):
        name = names.get(id(parameter), f"parameter {number}")
        add("parameter", name, parameter)
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                add(key, f"{key} of {name}", local(value))
    trained = {id(parameter) for parameter, _ in parameters}
    for i in sorted(variant.fixed):
        tensor = variant.program.tensors[i]
        if id(tensor) not in trained:
            add("buffer", names.get(id(tensor), f"input {i}"), tensor)
    return found


def _writers(variant: Any) -> dict[Any, int]:
    """The last op that writes, by what it writes: a storage, or a result by its number."""
    program, lowered = variant.program, variant.lowered
    last = {program.root_of(t): i for i, op in enumerate(program.ops) for t in op.outputs}
    places = {("result", number): lowered.root(lowered.value.get(node, node))
              for number, node in enumerate(lowered.results[:variant.results_count])
              if isinstance(node, torch.fx.Node)}
    for root, position in lowered.persistent.items():
        if position is not None:
            places[program.tensors[position].untyped_storage()._cdata] = root
    for root, (update, those) in lowered.states.items():
        for where in those:
            if (value := update.value(*where)) is not None:
                places[value.untyped_storage()._cdata] = root
    return {place: last[root] for place, root in places.items() if root in last}


def _told(step: Any, variant: Any, recorded: Any, names: list[_Name]) -> str:
    """What is said of tensors that differ; names the one that is written first."""
    if not names:
        return ""
    writers, now, end = _writers(variant), _made(step, variant), len(variant.program.ops)
    name = min(names, key=lambda n: writers.get(now[n].place, end))
    part = recorded.part_of(writers.get(now[name].place, end))
    others = f", and of {len(names) - 1} more tensors," if len(names) > 1 else ""
    return (f"its first replay has given other values of {name[1]}{others} than the planned step"
            + (f": {part}" if part else ""))
