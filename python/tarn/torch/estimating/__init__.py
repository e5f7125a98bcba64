"""tarn.torch.estimate: will a training step fit, before there is a device. The parts: `devices`;
`fakes`, `attention`, `backward`, `known` and `capturing` (the step as calls of ATen); `optimizers`;
`costs`, `workspaces` and `profiles` (what ops take); `caching` and `allocating` (PyTorch alone);
`answer`; `command`."""
from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Optional, Union

import torch

import tarn

from ..lowering import Lowered, Op
from ..memory import rounded
from ..merging import keeps_order, merge
from ..stepping import divided
from ..updates import Edit, Update, add_updates, as_they_come, of_optimizer, updated_together
from . import devices, workspaces
from .allocating import eager
from .answer import Budget, Estimate
from .capturing import Inputs, Refused, capture, check, reason
from .costs import Costs, Roofline
from .devices import Device
from .fakes import fake_device
from .optimizers import Optimizer
from .profiles import Measured, Profile

__all__ = ["Device", "Estimate", "Profile", "Refused", "estimate"]


def estimate(model: torch.nn.Module, optimizer: torch.optim.Optimizer, loss_fn: Callable[..., Any],
             batch: Any, device: Union[str, Device] = "H100", *, memory: Optional[int] = None,
             streams: Optional[int] = None, ranks: int = 1, bucket_mb: float = 25, budget: Budget = None,
             clip: Optional[Callable[[Any], Any]] = None, name: Optional[str] = None,
             profile: Any = None, workspace: Optional[Mapping[str, workspaces.Rule]] = None,
             costs: Optional[Costs] = None, **options: Any) -> Estimate:
    """What tarn.torch.step, and PyTorch alone, would take on a device, as an Estimate. Nothing is
    computed, and nothing of the step's size is allocated: of the tensors of model and batch only
    types, shapes and strides are read, so that they may lie anywhere, on "meta" for example.

        with torch.device("meta"):
            model, x = Model(), torch.zeros(8, 1024, dtype=torch.long)
        print(tarn.torch.estimate(model, optimizer, loss_fn, x, device="H100", budget="fit"))

    model, optimizer, loss_fn, batch, streams, clip, name, options: as tarn.torch.step takes them

    device     a name (H100, H200, B200, A100, A100-40GB, MI300X, CPU) or a tarn.torch.Device
    memory     bytes that are usable, instead of the device's
    ranks      more than 1: a data-parallel step as tarn.torch.ddp makes it, on one of so many
               devices; bucket_mb: of its reductions
    budget     bytes, a share of the plan without one (0.75), or "fit": what the device has room for
               (what does not fit even so is no error: the answer says so)
    profile    measured costs (a Profile, its path, or a tarn.torch.step) instead of modelled ones
    workspace  bytes by operator ("aten::convolution": 64 << 20), or functions of its arguments
    costs      another source of costs: see estimating.costs.Costs

    Raises tarn.BadInput with the reason if the step cannot be captured (control flow that depends
    on data, .item(), a backward pass in the loss, reentrant checkpoints), and tarn.DoesNotFit if a
    budget in bytes, or a share, is too small."""
    streams = streams or 1
    if ranks > 1 and streams > 1:
        raise tarn.UsageError("a data-parallel step has the streams compute and communication: "
                              "give ranks or streams, not both")
    clock = _Clock()
    target = devices.find(device, memory)
    source, measured = costs or Roofline(target, workspace), None
    if profile is not None:
        source = measured = Measured(_profile_of(profile), source)
    step = _Step(model, optimizer, loss_fn, batch, target, ranks, int(bucket_mb * (1 << 20)), clip)
    step.merges = (target.type == "cpu" and ranks == streams == 1
                   and keeps_order({**options, "budget": budget}))
    options = {"alignment": target.alignment, **options}
    if streams > 1:
        options["assign"] = divided(streams, torch.device(target.type))
    with fake_device(target) as mode:
        clock.lap("start")
        try:
            step.capture(mode, clock)
        except tarn.TarnError:
            raise
        except Exception as error:  # pylint: disable=broad-except
            raise tarn.BadInput(f"the step cannot be estimated: {reason(error)}") from error
        step.cost(mode, source)
        clock.lap("costs")
    title = name or type(model).__name__
    graph = step.lowered.graph(title, step.streams, step.groups)
    clock.lap("graph")
    alone = eager(target, step.lowered, step.whole, step.heap, step.copies)
    clock.lap("allocator")
    found = Estimate(title, target, graph, options, step.persistent(), alone,
                     step.heap, step.flops, step.seconds(), step.notes, clock.laps, budget)
    if measured is not None:
        found.notes.append(f"{measured.known} ops have costs of the profile of "
                           f"{measured.profile.device}, {measured.unknown} are modelled")
    found._plan = _planned(found, budget)
    clock.lap("plan")
    return found


def _planned(found: Estimate, budget: Budget) -> tarn.Plan:
    try:
        return found.planned(budget)
    except tarn.DoesNotFit as error:
        if budget != "fit" or error.least is None:
            raise
        return tarn.plan(found.graph, budget=error.least, **found.options)


def _profile_of(given: Any) -> Profile:
    if isinstance(given, Profile):
        return given
    profile = getattr(given, "profile", None)  # of a step
    return profile if isinstance(profile, Profile) else Profile.load(given)


HOST_BYTES = 1 << 16  # numbers and seeds, which need no note


class _Clock:
    def __init__(self) -> None:
        self.laps: dict[str, float] = {}
        self._begin = time.perf_counter()

    def lap(self, name: str) -> None:
        now = time.perf_counter()
        self.laps[name], self._begin = now - self._begin, now


class _Lowered(Lowered):
    """Takes tensors of the host, too: numbers, and the seeds of attention."""

    on_host = 0  # bytes

    def _new(self, tensor: Any, name: Any, kind: Any = "intermediate") -> Any:
        own = self.device
        if tensor.device != own:
            self.on_host += tensor.untyped_storage().nbytes()
        self.device = tensor.device
        try:
            return super()._new(tensor, name, kind)
        finally:
            self.device = own


def _reduction(*_gradients: Any) -> Any:
    raise AssertionError("an estimate runs nothing")


class _Step:
    """A step on its way to a graph; also what updates.py wants to know of one."""

    clips_over = updates_over = ""  # as stepping.Step has them
    agrees = merges = False

    def __init__(self, model: Any, optimizer: Any, loss_fn: Any, batch: Any, target: Device,
                 ranks: int, limit: int, clip: Any) -> None:
        self.model, self.optimizer, self.clip = model, optimizer, clip
        self._loss_fn, self._target, self._ranks, self._limit = loss_fn, target, ranks, limit
        self._batch = tuple(batch) if isinstance(batch, (tuple, list)) else (batch,)
        self.device = torch.device("cuda", 0) if target.type == "cuda" else torch.device("cpu")
        self.reduction = _reduction if ranks > 1 else None
        self.streams = ("compute", "communication") if ranks > 1 else ("compute",)
        self.flops = self.whole = self.heap = self.copies = 0
        self.notes: list[str] = []

    def parameters(self) -> Any:
        return list(self.model.parameters())

    def parameter(self, tensor: Any) -> Any:
        return tensor

    def disagreement(self, name: str) -> str:
        return name  # nothing runs

    def buckets(self, parameters: Any) -> Any:
        if self._ranks > 1:
            known = [*self.model.parameters(), *of_optimizer(self.optimizer)]
            return as_they_come(parameters, known, self._limit)
        return updated_together(parameters, self.device.type == "cuda", False)

    def capture(self, mode: Any, clock: _Clock) -> None:
        check(self.model, self.optimizer)
        inputs = Inputs(self.model, self.optimizer, self._batch, mode, self.device)
        captured = capture(self.model, self._loss_fn, inputs, mode, self.device)
        clock.lap("capture")
        self.lowered = _Lowered(captured, self.device)
        for result in self.lowered.results[:captured.results_count]:
            self.lowered.become(result, "output")
        self.updates, self.groups = add_updates(self.lowered, captured, self, inputs.given)
        self._trained = [inputs.given[i] for i in captured.trained]
        self._note(captured, inputs.notes)
        clock.lap("lower")

    def _note(self, captured: Any, seen: list[str]) -> None:
        if not captured.trained:
            self.notes.append("no parameter has a gradient")
        self.notes += seen
        if self.lowered.on_host > HOST_BYTES:
            self.notes.append(f"tensors of {self.lowered.on_host} bytes lie on the host, and are "
                              "counted as if they lay on the device; tarn.torch.step would run "
                              "eagerly")

    def cost(self, mode: Any, source: Costs) -> None:
        lowered, device = self.lowered, self.device
        optimizer = Optimizer(self.optimizer, mode, device, self._target.alignment)
        took: dict[int, Any] = {}
        for op in lowered.ops:
            moved = workspace = 0
            if isinstance(op.run, (Update, Edit)):
                one = took[id(op)] = (
                    optimizer.step(op.run.parameters) if isinstance(op.run, Update)
                    else optimizer.edit(op.run._function, op.run.parameters))
                moved, workspace = one.moved, one.workspace
            elif op.node is None:  # a reduction: a ring sends and receives nearly twice its bytes
                size = sum(lowered.storages[s].size for s in op.inputs)
                moved = round(2 * size * (self._ranks - 1) / self._ranks)
                self.copies += size
            self._set(op, source.of(lowered, op, moved, workspace))
        if self.merges:
            self.updates = merge(lowered, self._target.alignment)
        for op in self.updates:
            self._keep(op, [size for part in op.parts or [op] for size in took[id(part)].kept])
        trained = [p for op in self.updates for p in op.run.parameters]
        if trained:
            self.whole = optimizer.step(trained).workspace

    def _keep(self, op: Op, sizes: list[int]) -> None:
        """The states of an update, as add_state does for what is there."""
        lowered = self.lowered
        for number, size in enumerate(sizes):
            root = lowered.storage(f"{op.name}.state{number}", size, "optimizer_state")
            lowered.persistent[root] = None
            op.inputs.append(root)
            op.outputs.append(lowered.write(root, op.name))

    def _set(self, op: Op, cost: Any) -> None:
        op.cost, op.workspace = round(1e9 * cost.seconds), cost.workspace
        self.flops += cost.flops
        if op.on_heap:
            self.heap, op.workspace = max(self.heap, op.workspace), 0

    def persistent(self) -> dict[str, int]:
        sizes: Counter[str] = Counter()
        for root in self.lowered.persistent:
            storage = self.lowered.storages[root]
            sizes[storage.kind] += rounded(storage.size, self._target.alignment)
        return dict(sizes)

    def seconds(self) -> float:
        """Of PyTorch alone."""
        costs = sum(op.cost for op in self.lowered.ops) / 1e9
        return max(costs, len(self.lowered.ops) * self._target.call)
