"""Costs that were measured once, on the device itself: `step.profile.save()` writes them, and
`estimate(profile=…)` takes them in the place of the roofline's. An op is known by its operator,
the types and shapes of its tensors and its other arguments, so that a profile of one network holds
for the same ops of others."""
from __future__ import annotations

import json
import os
from typing import Any, NamedTuple, Union

import torch

import tarn

from ..lowering import Lowered, Op
from .costs import Cost, Costs

FORMAT, VERSION = "tarn.profile", 1


class Entry(NamedTuple):
    """Means of seconds and the most workspace, over `times` ops."""
    seconds: float
    workspace: int
    times: int


def _word(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype)[6:]}{list(value.shape)}".replace(" ", "")
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_word, value)) + "]"
    if isinstance(value, (torch.device, torch.Generator)):
        return "-"
    return repr(value)


def signature(lowered: Lowered, op: Op) -> str:
    """What ops that cost the same have in common."""
    values = lowered.value
    if op.node is None:
        parameters = getattr(op.run, "parameters", None)
        if parameters is None:
            parameters = [values[node] for node in op.arguments]
        return f"{op.kind}({','.join(map(_word, parameters))})"
    args, kwargs = torch.fx.node.map_arg((op.node.args, op.node.kwargs), values.__getitem__)
    words = [*map(_word, args),
             *(f"{name}={_word(value)}" for name, value in sorted(kwargs.items())
               if name not in ("device", "layout", "pin_memory"))]
    return f"{op.node.target}({','.join(words)})"


class Profile:
    """Measured costs by signature. `device`, `torch`: what they were measured with."""

    def __init__(self, entries: dict[str, Entry], device: str = "", version: str = "") -> None:
        self.entries, self.device, self.torch = entries, device, version

    @classmethod
    def of(cls, lowered: Lowered, device: torch.device) -> Profile:
        """Of a step that has been profiled (program.profile); updates that run as one apart."""
        entries: dict[str, Entry] = {}
        for op in (part for op in lowered.ops for part in op.parts or [op]):
            key = signature(lowered, op)
            old = entries.get(key, Entry(0.0, 0, 0))
            seconds = (old.seconds * old.times + op.cost / 1e9) / (old.times + 1)
            entries[key] = Entry(seconds, max(old.workspace, op.workspace), old.times + 1)
        name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type
        return cls(entries, name, torch.__version__)

    def save(self, path: Union[str, os.PathLike[str]]) -> None:
        contents = {"format": FORMAT, "version": VERSION, "device": self.device,
                    "torch": self.torch,
                    "ops": {key: entry._asdict() for key, entry in self.entries.items()}}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(contents, file, indent=1)

    @classmethod
    def load(cls, path: Union[str, os.PathLike[str]]) -> Profile:
        """tarn.BadInput if the file is no profile."""
        name = os.fspath(path)
        with open(path, encoding="utf-8") as file:
            try:
                contents = json.load(file)
            except ValueError as error:
                raise tarn.BadInput(f"{name} is no JSON: {error}") from None
        if type(contents) is not dict or contents.get("format") != FORMAT:
            raise tarn.BadInput(f'{name} is no profile: /format has to be "{FORMAT}"')
        if contents.get("version") != VERSION:
            raise tarn.BadInput(f"{name}: /version has to be {VERSION}, not "
                                f"{contents.get('version')!r}")
        ops = contents.get("ops")
        if type(ops) is not dict:
            raise tarn.BadInput(f"{name}: /ops has to be an object")
        entries = {key: _entry(f"{name}: /ops/{key}", value) for key, value in ops.items()}
        return cls(entries, str(contents.get("device", "")), str(contents.get("torch", "")))


def _entry(place: str, value: Any) -> Entry:
    value = value if type(value) is dict else {}
    seconds, workspace, times = (value.get(name) for name in Entry._fields)
    if type(seconds) not in (int, float) or not 0 <= seconds < 1e6:
        raise tarn.BadInput(f"{place}/seconds has to be a number from 0 to 1e6")
    for name, number in (("workspace", workspace), ("times", times)):
        if type(number) is not int or not 0 <= number < 1 << 53:
            raise tarn.BadInput(f"{place}/{name} has to be a whole number from 0 to 2^53")
    return Entry(float(seconds), int(workspace or 0), int(times or 0))


class Measured:
    """A profile's costs; those of ops that it does not know come from `otherwise`. `known` and
    `unknown` count the ops that it was asked for."""

    def __init__(self, profile: Profile, otherwise: Costs) -> None:
        self.profile, self.otherwise = profile, otherwise
        self.known = self.unknown = 0

    def of(self, lowered: Lowered, op: Op, moved: int = 0, workspace: int = 0) -> Cost:
        modelled = self.otherwise.of(lowered, op, moved, workspace)
        entry = self.profile.entries.get(signature(lowered, op))
        if entry is None:
            self.unknown += 1
            return modelled
        self.known += 1
        return modelled._replace(seconds=entry.seconds, workspace=entry.workspace)
