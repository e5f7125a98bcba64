"""The first replay of a step's CUDA graphs, compared with the planned step, before they are trusted. A
capture keeps addresses and numbers: it is wrong if it reads what was freed since, or a number of the
host's that is another one in the next step."""
from __future__ import annotations

from typing import Any, NamedTuple

import torch

from .comparing import bits, norm
from .tensors import local, tensors_of
from .updates import unchanged

ROUNDING = 1e-6  # share of a tensor's norm by which runs may differ that do not give equal bits


class _Made(NamedTuple):
    """A tensor that a step has made or changed. place: what it lies in, see _writers."""
    kind: str
    tensor: Any
    place: Any


def difference(step: Any, variant: Any, recorded: Any) -> str:
    """Runs a step, and before that its graphs, which is undone. Returns in what these have given
    something else, or "". Where equal runs may give other bits, and do, the step is run some more
    times, and the graphs may differ as much as these do."""
    program = variant.program
    written = [*(program.tensors[i] for i in variant.fixed), *step.model.buffers()]

    def planned() -> None:
        with variant.recordings.rates.given():
            program.run()

    def made(of: Any) -> dict[str, Any]:
        return {name: of(made.tensor) for name, made in _made(step, variant).items()}

    def undone(run: Any, of: Any) -> dict[str, Any]:
        with unchanged(step.optimizer, written, step.samples, in_place=True):
            run()
            return made(of)

    replayed = undone(recorded.replay, bits)
    if step.is_exact():
        planned()
        found = made(bits)
        return _told(step, variant, recorded, [n for n in found if replayed.get(n) != found[n]])
    if replayed == undone(planned, bits):
        planned()
        return ""

    def copy(tensor: Any) -> Any:
        return tensor.to("cpu", copy=True) if step.samples else tensor.clone()

    replayed, before = undone(recorded.replay, copy), undone(planned, copy)
    planned()
    noise: dict[str, float] = {}  # by kinds: how far two planned steps are apart
    now = _made(step, variant)
    for name, one in now.items():
        noise[one.kind] = noise.get(one.kind, 0.0) + _apart(one.tensor, before[name])
    return _told(step, variant, recorded, [
        name for name, one in now.items() if not _apart(one.tensor, replayed[name]) <= max(
            2 * noise[one.kind], ROUNDING * norm([one.tensor]))])


def _apart(one: Any, other: Any) -> float:
    other = other.to(one.device)
    return norm([one - other if one.is_complex() else one.double() - other.double()])


def _made(step: Any, variant: Any) -> dict[str, _Made]:
    """By name."""
    names = {id(local(t)): name for name, t in (*step.model.named_parameters(),
                                                *step.model.named_buffers())}
    parameters = [(local(p), step.optimizer.state.get(p, {})) for p in tensors_of(
        [group["params"] for group in step.optimizer.param_groups])]
    found: dict[str, _Made] = {}

    def add(kind: str, name: str, tensor: Any, place: Any = None) -> None:
        place = tensor.untyped_storage()._cdata if place is None else place
        found[name] = _Made(kind, tensor.detach(), place)

    for number, result in enumerate(variant.program.results[:variant.results_count]):
        if isinstance(result, torch.Tensor):
            add("result", f"result {number}" if number else "loss", result, ("result", number))
    for number, (parameter, state) in enumerate(parameters):
        name = names.get(id(parameter), f"parameter {number}")
        add("parameter", name, parameter)
        for key, value in state.items():
            if isinstance(value, torch.Tensor):
                add("state", f"{key} of {name}", local(value))
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


def _told(step: Any, variant: Any, recorded: Any, names: list[str]) -> str:
    """What is said of tensors that differ; names the one that is written first."""
    if not names:
        return ""
    writers, now, end = _writers(variant), _made(step, variant), len(variant.program.ops)
    name = min(names, key=lambda n: writers.get(now[n].place, end))
    part = recorded.part_of(writers.get(now[name].place, end))
    others = f", and of {len(names) - 1} more tensors," if len(names) > 1 else ""
    return (f"its first replay has given other values of {name}{others} than the planned step"
            + (f": {part}" if part else ""))
