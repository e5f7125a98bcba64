"""A step for inputs of one kind: captured, lowered, fused if that is asked for, profiled, and run by its
plan."""
from __future__ import annotations

from functools import cached_property
from typing import Any, Callable, Optional

from . import graphs
from .lowering import Lowered
from .memory import ALIGNMENT
from .merging import merge
from .moving import host_size
from .program import away, profile, profile_apart
from .strides import TRIALS, Otherwise
from .tensors import empty_as, local
from .tracing import reason
from .updates import Update, add_state, add_updates, of_optimizer, unchanged

COMPARED = 2  # steps of each capture that are run eagerly, too


def _once(tensor: Any) -> Any:
    """Without the repetitions of an expanded tensor."""
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(dimension, 0, min(1, tensor.shape[dimension]))
    return tensor


def _captured(step: Any, loss: Any, inputs: Any, names: Any) -> Any:
    """(Captured, Lowered, fixed): the last are positions of inputs that must stay where they are:
    those that have gradients or are written to, and others in storages that are written to."""
    shared: dict[Any, dict[int, int]] = {}
    joint: set[int] = set()
    for i, tensor in enumerate(inputs):
        shared.setdefault(tensor.untyped_storage()._cdata, {}).setdefault(id(tensor), i)
    while True:
        captured = step.captured(loss, inputs, names, joint)
        lowered = Lowered(captured, step.device)
        written = {*captured.trained, *lowered.written()}
        more = {i for those in map(dict.values, shared.values())
                if len(those) > 1 and written.intersection(those) for i in those}
        if more <= joint:
            return captured, lowered, written | joint
        joint |= more


class Variant:
    """The step for inputs of one kind: captured, lowered, profiled, planned."""

    def __init__(self, step: Any, loss: Any, inputs: Any, fuses: Any) -> None:
        """loss: as Dynamo has traced it, called with inputs. fuses: settings of Inductor, or None."""
        for _ in range(TRIALS):
            try:
                return self._make(step, loss, inputs, fuses)
            except Otherwise as error:
                failed: Any = error
            if failed.found.items() <= step.strides.items():
                break
            step.strides.update(failed.found)
        cause = failed.__cause__
        cause.args = (f"{cause}\n\n{failed}",)  # with the place in the program
        raise cause

    def _make(self, step: Any, loss: Any, inputs: Any, fuses: Any) -> None:
        names = step.names()
        captured, self.lowered, self.fixed = _captured(step, loss, inputs, names)
        step.check(self.lowered)
        self.fused: Any = None  # a fusing.Fused
        self.reason: Optional[str] = None  # why it is not what was asked for
        self.recordings: Any = None  # a graphs.Recordings
        self.recorded: Any = None  # the graphs.Recorded that ran last
        self.not_recorded: Optional[str] = None  # why there is no CUDA graph
        self.program: Any = None
        self.plan: Any = None
        self.misses = 0
        self.reduced = 0  # a number of the parameters whose gradients are reduced (distributed.py)
        self.noise: dict[str, float] = {}  # see Report
        self.optimizer = step.optimizer
        self.to_compare = COMPARED if step.compares is True else 0
        trained = {*names, *map(id, map(local, of_optimizer(step.optimizer)))}
        for i in captured.trained:
            if id(inputs[i]) not in trained:
                name = captured.inputs[i][0]
                raise ValueError(f"{name} requires a gradient, and is no parameter of the model or "
                                 "the optimizer: freeze it with requires_grad_(False)")
        self._moved: set[int] = set()
        self._copies = {i: empty_as(t) for i, t in enumerate(inputs) if id(t) in step.batch}
        if self.fixed & self._copies.keys():
            raise ValueError("the loss writes to the batch")
        tensors = self.tensors(inputs)
        self.written = [tensors[i] for i in self.fixed]
        self.results_count, self.specs = captured.results_count, captured.specs
        groups: Any = None
        if fuses is not None:
            try:
                groups = self._fuse(step, captured, inputs, tensors, fuses)
            except Exception as error:  # pylint: disable=broad-except
                self.fused, self.reason = None, reason(error, "fused")
        if self.fused is None:
            updates, groups = self._complete(step, self.lowered, captured, inputs)
            self._profile(step, self.lowered, updates, tensors)
        self.lowered.wire = step.wire
        streams = step.divide(self.lowered)
        step.agree(self.lowered)
        self.graph = self.lowered.graph(step.name, streams, groups)
        self.meets = any(op.group for op in self.lowered.ops)  # other ranks: no CUDA graph
        self.streams, self.groups = streams, groups

    def _may_draw_again(self, step: Any, lowered: Any) -> None:
        """With a budget; threads would take turns at one generator."""
        if step.budget is not None and (step.device.type == "cuda" or step.queues == 1):
            for op in lowered.ops:
                op.redraws = op.is_random

    def _profile(self, step: Any, lowered: Any, updates: Any, tensors: Any) -> None:
        self._may_draw_again(step, lowered)
        if step.samples:
            profile_apart(lowered, tensors, step.optimizer)
            step.costs.agree(lowered)
        else:
            with unchanged(step.optimizer, self.written):
                profile(lowered, tensors, step.queues)
                step.costs.agree(lowered)
                if step.merges:
                    updates = merge(lowered, ALIGNMENT[step.device.type])
                for op in updates:
                    add_state(lowered, op)

    def _complete(self, step: Any, lowered: Any, captured: Any, inputs: Any) -> Any:
        """With the optimizer. Returns its updates, and groups of gradients."""
        for result in lowered.results[:self.results_count]:
            lowered.become(result, "output")
        return add_updates(lowered, captured, step, inputs)

    def _fuse(self, step: Any, captured: Any, inputs: Any, tensors: Any, settings: Any) -> Any:
        from . import fusing  # pylint: disable=import-outside-toplevel
        fusing.Fused.check(tensors)
        self.fused = fusing.fused(captured, step.budget is None, step.bytes, settings)
        lowered = Lowered(self.fused.captured, step.device)
        if not self.fixed.issuperset(lowered.written()):
            raise fusing.Refused("Inductor's kernels write to other inputs than the step")
        updates, groups = self._complete(step, lowered, self.fused.captured, inputs)
        self.fused.load()
        self._profile(step, lowered, updates, tensors)
        self.lowered = lowered
        return groups

    @cached_property
    def sizes(self) -> tuple[int, int]:
        """Bytes that its plan, once it is made, takes in the arena, and in other memories."""
        return int(self.plan.spaces[0].footprint), host_size(self.plan)

    def check_moves(self) -> None:
        """Raises ValueError where what the plan moves cannot be moved."""
        roots = away(self.lowered, self.plan).keys()
        for op in self.lowered.ops if roots else ():
            touched = {self.lowered.storages[s].root for s in (*op.inputs, *op.outputs)}
            if isinstance(op.run, Update) and not op.run.may_move and touched & roots:
                raise ValueError("parameters and states move with PyTorch's own optimizers only, "
                                 "without hooks: leave them out of the kinds that `offload` has")

    def tensors(self, inputs: Any) -> Any:
        """For the placeholders, and the constants. What moves again and again is copied."""
        if self.program:
            moved = {i for i, t in enumerate(inputs) if t.data_ptr() != self.program.addresses[i]
                     and i not in self.fixed and i not in self._copies}
            self._copies.update((i, empty_as(inputs[i])) for i in moved & self._moved)
            self._moved |= moved
        for i, own in self._copies.items():
            _once(own).copy_(_once(inputs[i]))
        return [*(self._copies.get(i, t) for i, t in enumerate(inputs)), *self.lowered.constants]

    def run(self, record: bool = False, differs: Optional[Callable[[Any], str]] = None) -> None:
        """record: as a CUDA graph. differs: runs the step, and its graph that is given, which is undone;
        says in what they differ. A graph is used once that is "": the step after the one in which it is
        captured is compared, so that what the capture has frozen shows."""
        try:
            self.recorded = None
            self.program.bring_home()
            if not (record and not self.meets and self._replays(differs)):
                self.program.run()
        except BaseException:  # its streams have stopped
            self.close()
            self.lowered.dropped.clear()
            raise

    def _replays(self, differs: Optional[Callable[[Any], str]]) -> bool:
        """Runs the step, unless it returns False."""
        if self.not_recorded or not self.program.has_run:  # all that is made once is there after that
            return False
        self.recordings = self.recordings or graphs.Recordings(self.optimizer)
        has_run = False
        try:
            recorded, is_new = self.recordings.of(self.program)
            if not recorded.is_trusted and differs:
                if is_new:
                    return False
                has_run = True
                if why := differs(recorded):
                    raise graphs.NotCaptured(why)
                recorded.trust()
            else:
                self.recorded = recorded
                recorded.replay()
        except graphs.NotYet:
            return False
        except graphs.NotCaptured as error:
            self.not_recorded = f"no CUDA graph: {error}"
            self.recordings.close()
            return has_run
        return True

    def close(self) -> None:
        if self.recordings:
            self.recordings.close()
            self.recordings = None
        if self.program:
            self.program.close()
            self.program = None
