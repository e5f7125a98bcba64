"""The answer of tarn.torch.estimate: numbers, other plans of the step, a table, JSON, a page."""
from __future__ import annotations

import math
import os
import textwrap
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Optional, Union

import torch

import tarn

from .allocating import Eager
from .devices import GIB, MIB, Device
from ..timing import makespan, peak

BARELY = 0.97  # of the memory: from there on a program that does a little more fails
Budget = Union[int, float, str, None]
PathLike = Union[str, "os.PathLike[str]"]


def verdict(total: int, usable: int) -> str:
    if total > usable:
        return "does not fit"
    return "fits barely" if total >= BARELY * usable else "fits"


@dataclass
class Estimate:
    """What a step takes. Bytes, seconds, FLOP.

    plan        of the step, with the options that estimate() was given; `graph` is its graph
    persistent  bytes that stay from step to step, by kind: parameter, input, optimizer_state
    eager       PyTorch alone: bytes alive at once in a step, and held by its allocator in all
    heap        bytes that the step takes beside its arena (clipping, optimizers of the user)
    flops       of a step that recomputes nothing
    notes       what to know about the answer: one sentence each
    took        seconds of this process, by part"""
    name: str
    device: Device
    graph: tarn.Graph
    options: dict[str, Any]
    persistent: dict[str, int]
    eager: Eager
    heap: int
    flops: int
    eager_seconds: float
    notes: list[str] = field(default_factory=list)
    took: dict[str, float] = field(default_factory=dict)
    budget: Budget = None
    _plan: Optional[tarn.Plan] = None

    # ---- Bytes ----

    @property
    def plan(self) -> tarn.Plan:
        assert self._plan is not None
        return self._plan

    @property
    def stays(self) -> int:
        """Bytes that are there between steps: what persists, and what CUDA and libraries keep."""
        return sum(self.persistent.values()) + self.device.kept

    @property
    def arena(self) -> int:
        return self.plan.footprint

    @property
    def total(self) -> int:
        return self.stays + self.heap + self.arena

    @property
    def eager_total(self) -> int:
        """Bytes of the device that PyTorch alone takes."""
        return self.device.context + self.eager.held

    @property
    def verdict(self) -> str:
        """"fits", "fits barely" (from 97 % of the memory on) or "does not fit"."""
        return verdict(self.total, self.device.usable)

    @property
    def eager_verdict(self) -> str:
        return verdict(self.eager_total, self.device.usable)

    @property
    def fits(self) -> bool:
        return self.total <= self.device.usable

    @property
    def room(self) -> int:
        """Bytes that an arena may take on the device; below 0 if what stays is larger than it."""
        return self.device.usable - self.stays - self.heap

    # ---- Plans ----

    def planned(self, budget: Budget = None, **options: Any) -> tarn.Plan:
        """Another plan of the same step. budget: bytes, a share of the plan without one (0.75 or
        "75%"), or "fit": as much as the device has room for. tarn.DoesNotFit if it is too small."""
        options = {**self.options, **options}
        if budget == "fit":
            whole = tarn.plan(self.graph, **options)
            if whole.footprint <= self.room or self.room <= 0:
                return whole
            budget = self.room
        elif isinstance(budget, float):
            budget = math.ceil(budget * tarn.plan(self.graph, **options).footprint)
        return tarn.plan(self.graph, budget=budget, **options)

    @cached_property
    def least(self) -> tarn.Plan:
        """The plan of the smallest budget that is found."""
        try:
            return tarn.plan(self.graph, budget=1, **self.options)
        except tarn.DoesNotFit as error:
            least = error.least
        if least is None or least >= self._whole.footprint:
            return self._whole
        return tarn.plan(self.graph, budget=least, **self.options)

    @cached_property
    def fitting(self) -> Optional[tarn.Plan]:
        """A plan that fits the device: without a budget if that fits, or else with the largest
        budget there is room for. None: nothing fits."""
        if self.room <= 0:
            return None
        for plan in (self.plan, self._whole):
            if plan.footprint <= self.room:
                return plan
        try:
            return self.planned(self.room)
        except tarn.DoesNotFit:
            return None

    @cached_property
    def _whole(self) -> tarn.Plan:
        return self.plan if self.budget is None else tarn.plan(self.graph, **self.options)

    # ---- Time ----

    def seconds(self, plan: Optional[tarn.Plan] = None) -> float:
        """Of a step by the plan: of the device, or of the host if it takes longer to call the
        ops."""
        plan = plan or self.plan
        return max(makespan(plan) / 1e9, len(plan.graph.ops) * self.device.call)

    def overhead(self, plan: Optional[tarn.Plan] = None) -> float:
        """How much longer a step takes than by the plan without a budget: 0.1 is 10 %."""
        return self.seconds(plan) / self.seconds(self._whole) - 1

    # ---- For people and programs ----

    @property
    def decides(self) -> str:
        """What to change if it is too large: one sentence."""
        kinds = {kind.replace("_", " "): size for kind, size in self.persistent.items()}
        if self.stays + self.heap >= self.arena:
            kind, size = max([*kinds.items(), ("libraries", self.device.kept),
                              ("heap beside the arena", self.heap)], key=lambda item: item[1])
            text = (f"what stays takes {_size(self.stays)} of {_size(self.total)}, most of it "
                    f"{kind} ({_size(size)})")
            return text + ("" if self.fitting else "; smaller types or fewer parameters a device "
                           "help, a budget does not")
        found = peak(self.graph)
        if found is None:
            return "nothing is alive in a step"
        makers = ", ".join(f"{kind.removeprefix('aten.')} ({storages} tensors, {_size(size)})"
                           for kind, storages, size in found.makers[:3])
        return (f"without a budget the most is alive at op {found.op}: {_size(found.size)}; most "
                f"of it made by {makers}")

    def as_dict(self) -> dict[str, Any]:
        """What --json prints. Bytes, seconds."""
        fitting = self.fitting
        return {
            "format": "tarn.estimate", "version": 1, "model": self.name,
            "device": self.device.name, "usable_bytes": self.device.usable,
            "fits": self.verdict, "total_bytes": self.total, "arena_bytes": self.arena,
            "bound_bytes": self.plan.bound, "optimal": self.plan.optimal, "heap_bytes": self.heap,
            "stays_bytes": self.stays, "stays": {**self.persistent, "libraries": self.device.kept},
            "seconds": self.seconds(), "overhead_percent": 100 * self.overhead(),
            "budget": self.budget, "ops": len(self.plan.graph.ops),
            "recomputed_ops": self._recomputed(self.plan), "flops": self.flops,
            "pytorch": {"alive_bytes": self.eager.alive, "held_bytes": self.eager.held,
                        "total_bytes": self.eager_total, "seconds": self.eager_seconds,
                        "fits": self.eager_verdict},
            "fitting": fitting and {
                "arena_bytes": fitting.footprint,
                "total_bytes": self.stays + self.heap + fitting.footprint,
                "seconds": self.seconds(fitting),
                "overhead_percent": 100 * self.overhead(fitting),
                "recomputed_ops": self._recomputed(fitting)},
            "decides": self.decides, "notes": self.notes, "torch": torch.__version__,
            "took_seconds": self.took}

    @staticmethod
    def _recomputed(plan: tarn.Plan) -> int:
        return sum(plan.is_recomputed(op.id) for op in plan.graph.ops)

    def show(self, path: PathLike, **options: Any) -> None:
        """Draws the plan as `tarn show` does: path ends in .html, .svg, .txt or .json."""
        self.plan.show(path, **options)

    def __str__(self) -> str:
        device = self.device
        lines = [f"{self.name} on {device.name}, {_size(device.usable)} usable", "", "stays"]
        lines += [_row("  " + kind.replace("_", " "), size)
                  for kind, size in [*self.persistent.items(), ("CUDA and libraries", device.kept)]
                  if size]
        lines += [_row("  in all", self.stays), "",
                  f"{'a step':<26}{'arena':>12}{'in all':>12}{'time':>11}",
                  self._plan_row("PyTorch alone", self.eager.alive, self.eager_total,
                                 self.eager_seconds, self.eager_verdict)]
        name = "Tarn" if self.budget is None else "Tarn, budget"
        lines.append(self._plan_row(name, self.arena, self.total, self.seconds(), self.verdict,
                                    self.overhead()))
        fitting = self.fitting
        if fitting is not None and fitting is not self.plan and not self.fits:
            total = self.stays + self.heap + fitting.footprint
            lines.append(self._plan_row("Tarn, budget that fits", fitting.footprint, total,
                                        self.seconds(fitting), verdict(total, device.usable),
                                        self.overhead(fitting)))
        lines += ["", *_wrapped("decides", self.decides)]
        if fitting is None:
            lines += _wrapped("no budget fits", self._why_not())
        for note in self.notes:
            lines += _wrapped("note", note)
        return "\n".join(lines)

    def _why_not(self) -> str:
        if self.room <= 0:
            share = sum(self.persistent.values()) / max(1, self.device.usable - self.device.kept)
            return (f"what stays takes {_size(self.stays)}; divided evenly, {math.ceil(share)} "
                    "devices hold it, without a step")
        return (f"there is room for {_size(self.room)}, and the smallest arena found is "
                f"{_size(self.least.footprint)}")

    def _plan_row(self, name: str, arena: int, total: int, seconds: float, told: str,
                  overhead: float = 0.0) -> str:
        more = f", {overhead:+.1%}" if abs(overhead) > 5e-4 else ""
        return (f"  {name:<24}{_size(arena):>12}{_size(total):>12}{_time(seconds):>11}  {told}"
                f"{more}")


def _row(name: str, size: int) -> str:
    return f"{name:<26}{_size(size):>12}"


def _wrapped(what: str, text: str) -> list[str]:
    return textwrap.wrap(f"{what}: {text}", 100, subsequent_indent="  ", break_long_words=False)


def _size(size: int) -> str:
    return f"{size / GIB:.2f} GiB" if abs(size) >= GIB else f"{size / MIB:.2f} MiB"


def _time(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 10 else f"{1e3 * seconds:.1f} ms"
