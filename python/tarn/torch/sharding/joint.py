"""Steps that all ranks of a process group run planned, or none of them: the base of `ShardedStep` and
of steps that communicate by themselves (`communicating`)."""
from __future__ import annotations

import math
from typing import Any, Optional, Union
from unittest import mock

import torch

import tarn

from .. import collectives
from ..agreement import EAGER, AgreeingStep, number_of
from ..report import Report
from ..tracing import NotRun, reason
from .network import Network
from .schedules import fastest

NEW = -3  # a vote, as EAGER, less a number of the batch's kind; others are numbers of variants


def check_options(options: Any) -> None:
    """Raises ValueError for options of tarn.torch.step that steps of several ranks do not take."""
    if options.get("seconds"):
        raise ValueError("each rank plans, and ranks that are ended by the clock would find "
                         "other plans; give effort, which is counted, instead of seconds")
    if options.get("fuse") or options.get("compare") == "sample" or options.get("offload"):
        raise ValueError('steps of several ranks take neither fuse nor compare="sample" nor '
                         'offload')


class JointStep(AgreeingStep):
    """Before each call the ranks say which plan they would run; if they differ, or one of them has to
    run eagerly, all run eagerly, and `reason` says why. A plan is made by all ranks or by none, with
    equal costs, and the order of their collectives is compared. Batches of different kinds are planned
    together if that gives the same collectives; if not, what was tried refuses no rank's kind of batch.
    Subclasses set `wire` before `__init__`, and `network`."""

    network: Network
    rounds = 2  # of talks in a capture
    may_differ = False  # other ops than collectives, from rank to rank

    def __init__(self, model: Any, optimizer: Any, loss_fn: Any, example_batch: Any, *,
                 budget: Union[int, float, None] = None, **options: Any) -> None:
        check_options(options)
        if options.pop("graph", None):
            raise ValueError("steps of several ranks are no CUDA graphs: leave graph out")
        self._talks = self.rounds
        self._votes: tuple[int, ...] = ()  # of all ranks, in this call
        self._apart: set[tuple[int, ...]] = set()  # votes after which no plan was made
        self._bound: dict[Any, Any] = {}  # by loss: what it takes beside tensors, and without that
        super().__init__(model, optimizer, loss_fn, example_batch, budget=budget, graph=False,
                         **options)

    def of_tensors(self, loss: Any, inputs: Any) -> tuple[Any, list[Any]]:
        """A loss that Dynamo has traced, and what it takes, without what is no tensor (meshes)."""
        others = {i: value for i, value in enumerate(inputs) if not isinstance(value, torch.Tensor)}
        if others:
            known = self._bound.get(loss)
            if known is None or known[0] != others:
                known = self._bound[loss] = others, _without(loss, others)
            loss = known[1]
        return loss, [value for value in inputs if isinstance(value, torch.Tensor)]

    # ---- Calls ----

    def _call(self, batch: Any) -> Any:
        self._voted = False
        try:
            result = super()._call(batch)
        except Exception:  # an interrupt promises nothing
            self._vote(EAGER)
            raise
        self._vote(EAGER)
        return result

    def eager(self, *batch: Any) -> Any:
        self._vote(EAGER)
        return super().eager(*batch)

    def meet(self, key: Any) -> None:
        keys = list(self.variants)
        mine = EAGER if key in self._refused else keys.index(key) if key in keys else NEW
        if mine == NEW:
            mine -= number_of(repr(self._tried))  # the kind of the batch, before anything is tried
        votes = self._votes = tuple(self._vote(mine))
        if len(set(votes)) == 1 or votes and max(votes) <= NEW and votes not in self._apart:
            return
        self._not_run(self._eager_ranks(votes) or "the ranks have batches of different kinds")

    def _no_plan(self, why: str) -> None:
        """No plan is made, as all ranks know. Raises ValueError, which refuses this kind of batch for
        good; or NotRun, if the ranks' batches are of different kinds, each of which may have a plan
        with others."""
        if len(set(self._votes)) == 1:
            raise ValueError(why)
        self._apart.add(self._votes)
        raise NotRun(f"{why}; their batches are of different kinds")

    def rehearses(self, variant: Any) -> Any:
        return variant.to_compare > 0

    # ---- Captures: all ranks, or none ----

    def check(self, lowered: Any) -> None:
        """Raises ValueError where it communicates with ranks that have not agreed."""
        known = set(self.wire.members)
        for op in lowered.ops:
            others = sorted(collectives.ranks_of(op) - known)
            if others:
                raise ValueError(f"it communicates ({op.kind}) with ranks {others}, which do not "
                                 "agree on what is planned: pass process_group=, with all of them")

    def _capture(self, loss: Any, inputs: Any) -> Any:
        self._talks = 0
        try:
            variant = super()._capture(loss, inputs)
            self._talk([(op.stream, op.name, variant.plan.is_recomputed(op.id))
                        for op in variant.plan.graph.ops if op.op_class == "collective"])
            return variant
        except Exception as error:
            failure = error
            while self._talks < self.rounds:  # the others wait for what this rank has not captured
                try:
                    self._talk(None, error)
                except tarn.DoesNotFit as other:
                    failure = other if not isinstance(error, tarn.TarnError) else error
                except (ValueError, NotRun):
                    pass
            if isinstance(failure, NotRun):
                self._not_run(str(failure))
            raise failure

    def graph_of(self, variant: Any, waits: Any) -> Any:
        """Of the ops that its `lowered` has, with these waits."""
        return variant.lowered.graph(self.name, variant.streams, variant.groups or (), waits)

    def plan_of(self, variant: Any) -> None:
        lowered = variant.lowered

        def graph_of(waits: Any) -> Any:
            return self.graph_of(variant, waits)

        if isinstance(self.budget, float):
            plan, *_ = fastest(lowered, None, graph_of, self._options)
            self.budget = math.ceil(self.budget * plan.footprint)
        variant.plan, lowered.ops, lowered.ids = fastest(lowered, self.budget, graph_of,
                                                         self._options)
        variant.graph = variant.plan.source

    def _talk(self, mine: Any, error: Optional[Exception] = None) -> Any:
        """What each rank says. If one has failed, all raise: tarn.DoesNotFit if it is that and the
        constructor raises it, or the ranks' batches are of one kind; else as `_no_plan`."""
        self._talks += 1
        why = reason(error) if error else ""
        told = self.wire.told((mine, why, isinstance(error, tarn.DoesNotFit)), "a capture")
        failed = [(rank, why, large) for rank, (theirs, why, large) in zip(self.wire.members, told)
                  if theirs is None]
        for rank, why, large in sorted(failed, key=lambda failure: not failure[2]):
            text = f"on rank {rank} {why}"
            if large and (self._is_example or len(set(self._votes)) == 1):
                raise tarn.DoesNotFit(text)
            self._no_plan(text)
        if self._talks == self.rounds and any(theirs != told[0][0] for theirs, *_ in told):
            self._no_plan("the ranks' plans differ in their collectives")
        return [theirs for theirs, *_ in told]

    def agree(self, lowered: Any) -> None:
        """The ranks' graphs have to be one, or at least have the same collectives: costs are those of
        the slowest rank, workspaces and states those of the rank with most."""
        for op in lowered.ops:
            if op.group:
                op.cost = self.network.cost(collectives.received(lowered, op))
        mine = [(op.kind, op.cost, op.workspace, op.on_heap, bool(op.group),
                 [lowered.storages[s].size for s in op.inputs if self._is_state(lowered, s)])
                for op in lowered.ops]
        told = self._talk(mine)
        own = lowered.ops
        if len({tuple(kind for kind, *_ in theirs) for theirs in told}) > 1:
            if not self.may_differ:
                self._no_plan("the ranks have captured different ops")
            own = [op for op in own if op.group]  # parts of uneven sizes, one of them padded
            told = [[entry for entry in theirs if entry[4]] for theirs in told]
            if len({tuple(kind for kind, *_ in theirs) for theirs in told}) > 1:
                self._no_plan("the ranks have captured different collectives")
        for op, *those in zip(own, *told):
            _, costs, workspaces, heaps, _, states = zip(*those)
            op.cost, op.on_heap = max(costs), any(heaps)
            op.workspace = 0 if op.on_heap else max(workspaces)
            self._complete_states(lowered, op, max(states, key=len))

    @staticmethod
    def _is_state(lowered: Any, storage: int) -> bool:
        return bool(lowered.storages[storage].kind == "optimizer_state")

    def _complete_states(self, lowered: Any, op: Any, sizes: Any) -> None:
        """Of a rank whose parts are empty."""
        own = [s for s in op.inputs if self._is_state(lowered, s)]
        for size in sizes[len(own):]:
            root = lowered.storage(f"{op.name}.state", size, "optimizer_state")
            lowered.persistent[root] = None
            op.inputs.append(root)
            op.outputs.append(lowered.write(root, op.name))
        for storage, size in zip(own, sizes):
            root = lowered.storages[storage].root
            lowered.storages[root].size = size

    # ---- Report ----

    def report(self) -> Report:
        report, first = super().report(), self._first
        if first is None:
            return report
        ops = [(op, first.lowered.ops[first.plan.origin(op.id)]) for op in first.plan.graph.ops]
        again = [op for op, _ in ops if first.plan.is_recomputed(op.id) or op.name.endswith("'")]
        gathers = {op.id for op, source in ops if source.gathers}
        meeting = [source for _, source in ops if source.group and source.node is not None]
        return report._replace(
            recomputed=[op.name.rstrip("'") for op in again], gathers=len(gathers),
            gathered_again=[op.name.rstrip("'") for op in again if op.id in gathers],
            collectives=len(meeting),
            received=sum(collectives.received(first.lowered, source) for source in meeting))


# ---- Traces with DTensors ----

def _without(loss: Any, others: dict[int, Any]) -> Any:
    """The same loss, with what is no tensor (meshes) as attributes."""
    graph = torch.fx.Graph()
    graph.output(graph.graph_copy(loss.graph, {}))
    made = torch.fx.GraphModule(loss, graph)  # with the parts of the loss that its graph names
    holders = made.graph.find_nodes(op="placeholder")
    for i, value in others.items():
        name = f"tarn_other{i}"
        setattr(made, name, value)
        with made.graph.inserting_before(holders[i]):
            holders[i].replace_all_uses_with(made.graph.get_attr(name))
        made.graph.erase_node(holders[i])
    made.recompile()
    return made


def _refuse_regions(*_: Any, **__: Any) -> Any:
    raise ValueError("a DTensor draws random numbers on a GPU, by a generator of its own (dropout)")


def without_regions() -> Any:
    """Inside a DTensor that draws random numbers on a GPU is refused: they would not be a part of
    the trace."""
    from torch.distributed.tensor import _random  # pylint: disable=import-outside-toplevel
    return mock.patch.object(_random.OffsetBasedRNGTracker, "_distribute_region", _refuse_regions)
