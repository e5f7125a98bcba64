"""Sharded steps: every rank of a process group runs the same plan, or all run as FSDP2 does."""
from __future__ import annotations

import contextlib
import functools
import math
from typing import Any, Optional, Sequence, Union

import torch

import tarn

from .. import collectives
from ..capture import capture
from ..memory import Arena
from ..stepping import Report, Step
from ..tracing import NotRun, Traced, reason
from ..updates import hooked, is_one_by_one
from ..window import Memory, Nccl, communicators
from .agreement import council
from .gathering import sharded
from .kernels import Cast, Pack
from .network import Network, measured
from .schedules import fastest
from .units import Refused, Whole

STREAMS = ("compute", "communication", "update")
NEW, EAGER = -1, -2  # votes; others are numbers of variants
ALONE = {"Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "RMSprop",
         "Rprop", "SGD"}  # optimizers that look at each number alone


class _Traced:
    """Traces the loss on the whole model."""

    def __init__(self, whole: Optional[Whole], refusal: str, traced: Traced) -> None:
        self._whole, self._refusal, self._traced = whole, refusal, traced

    def __call__(self, *batch: Any) -> Any:
        if self._whole is None:
            raise Refused(self._refusal)
        with self._whole.whole():
            return self._traced(*batch)


class ShardedStep(Step):
    """What tarn.torch.fsdp returns: a Step on every rank of a process group, for a model that
    fully_shard has wrapped. All ranks call it, and `report`, together.

    A unit's gather is an op that may run again, its gradients are reduced and scattered by one op;
    both lie where the plan puts them. Before each step the ranks say which plan they would run; if
    they differ, or one of them has to run eagerly, all run as FSDP2 does, and `reason` says why."""

    def __init__(self, model: Any, optimizer: Any, loss_fn: Any, example_batch: Any, *,
                 streams: int = 3, budget: Union[int, float, None] = None, timeout: float = 600,
                 network: Optional[Sequence[float]] = None, process_group: Any = None,
                 symmetric: bool = False, **options: Any) -> None:
        if options.get("seconds"):
            raise ValueError("each rank plans, and ranks that are ended by the clock would find "
                             "other plans; give effort, which is counted, instead of seconds")
        if options.get("fuse") or options.get("compare") == "sample" or options.get("offload"):
            raise ValueError('sharded steps take neither fuse nor compare="sample" nor offload')
        if not 1 <= streams <= len(STREAMS):
            raise ValueError(f"streams has to be 1, 2 or {len(STREAMS)}, not {streams}: "
                             f"{', '.join(STREAMS)}")
        self.streams = STREAMS[:streams]
        self.symmetric, self._bytes = symmetric, 0
        self._rounds = 3 if symmetric else 2  # of a capture
        self._voted, self._talks, self._refusal = True, self._rounds, ""
        self._whole: Optional[Whole] = None
        self.wire = council(process_group, timeout)
        try:
            self._whole = Whole(model)
        except Refused as error:
            self._refusal = str(error)
        self._refusal = next(filter(None, self.wire.told(self._refusal, "what the ranks can plan")),
                             "")
        if self._refusal:
            self._whole = None
        self._network = self._measured(network, optimizer)
        if self._whole:
            name = self._whole.units[0].process_group.group_name
            self.clips_over = name
            if type(optimizer).__name__ not in ALONE or not is_one_by_one(optimizer):
                self.updates_over = name
        super().__init__(model, optimizer, loss_fn, example_batch, budget=budget, graph=False,
                         **options)

    def _measured(self, network: Any, optimizer: Any) -> Network:
        if network is not None:
            return Network(*network)
        if self._whole is None:
            return Network(0.0, 1e9)
        device = next(p.device for group in optimizer.param_groups for p in group["params"])
        return measured(self._whole.units[0].process_group, device,
                        lambda mine: self.wire.told(mine, "the network's measure"))

    # ---- Calls ----

    def _call(self, batch: Any) -> Any:
        self._voted = False
        try:
            return super()._call(batch)
        finally:
            self._vote(EAGER)

    def eager(self, *batch: Any) -> Any:
        self._vote(EAGER)
        return super().eager(*batch)

    def __call__(self, *batch: Any) -> Any:
        self._voted = False
        return super().__call__(*batch)

    def _vote(self, mine: int) -> Any:
        """What each rank would run; once in each call."""
        if self._voted:
            return None
        self._voted = True
        return self.wire.votes(mine)

    def meet(self, key: Any) -> None:
        keys = list(self.variants)
        mine = EAGER if key in self._refused else keys.index(key) if key in keys else NEW
        votes = self._vote(mine)
        if len(set(votes)) == 1:
            return
        eager = [rank for rank, vote in enumerate(votes) if vote == EAGER]
        raise NotRun(f"ranks {eager} run eagerly" if eager else
                     "the ranks have batches of different kinds")

    def planned(self, loss: Any, inputs: Any) -> Any:
        assert self._whole
        try:
            self._whole.check()
        except Refused as error:
            raise NotRun(str(error)) from None
        inputs = [shard.data if (shard := self._whole.shard(t)) else t for t in inputs]
        return super().planned(loss, inputs)

    def _run(self, variant: Any) -> None:
        try:
            super()._run(variant)
        except BaseException as error:
            self.wire.failed(error)
            raise

    # ---- Captures: all ranks, or none ----

    def _capture(self, loss: Any, inputs: Any) -> Any:
        self._talks = 0
        try:
            variant = super()._capture(loss, inputs)
            self._talk([(op.stream, op.name, variant.plan.is_recomputed(op.id))
                        for op in variant.plan.graph.ops if op.op_class == "collective"])
            return variant
        except Exception as error:
            while self._talks < self._rounds:  # the others wait for what this rank has not captured
                with contextlib.suppress(ValueError):
                    self._talk(None, reason(error))
            raise

    def plan_of(self, variant: Any) -> None:
        lowered = variant.lowered

        def graph_of(waits: Any) -> Any:
            return lowered.graph(self.name, variant.streams, variant.groups or (), waits,
                                 self.symmetric)

        if isinstance(self.budget, float):
            plan, *_ = fastest(lowered, None, graph_of, self._options)
            self.budget = math.ceil(self.budget * plan.footprint)
        variant.plan, lowered.ops, lowered.ids = fastest(lowered, self.budget, graph_of,
                                                         self._options)
        if self.symmetric:
            variant.plan = self._alike(variant.plan)
        variant.graph = variant.plan.source

    def _alike(self, plan: Any) -> Any:
        """A plan in which what collectives touch lies where it does in the other ranks' plans. Ranks
        with one graph have one plan; different ones (of uneven parts) are planned as a family."""
        told = self._talk((plan.identity, plan.source.to_bytes()))
        if len({identity for identity, _ in told}) > 1:
            texts = list(dict.fromkeys(text for _, text in told))
            plans = tarn.plan_family([tarn.Graph.from_bytes(text) for text in texts],
                                     ranks=True, budget=self.budget, **self._options)
            plan = plans[texts.index(plan.source.to_bytes())]
            self._bytes = max(self._bytes, *(made.spaces[0].footprint for made in plans))
        self._bytes = max(self._bytes, plan.spaces[0].footprint)
        return plan

    @property
    def window(self) -> Any:
        """Where what collectives touch lies in the first plan's arena, on all ranks; None: nowhere in
        particular, or nothing is planned."""
        return self._first.plan.window if self._first and self._first.plan else None

    def room(self, variant: Any) -> int:
        """As many on all ranks, so that they make arenas, and register windows, together."""
        return self._bytes if self.symmetric else super().room(variant)

    def arena_of(self, size: int, host: Any) -> Arena:
        if not self.symmetric:
            return super().arena_of(size, host)
        assert self._whole
        groups = {id(unit.process_group): unit.process_group for unit in self._whole.units}
        known = communicators(list(groups.values()), self.device)
        if not known:
            return super().arena_of(size, host)
        return Arena(size, self.device, host, functools.partial(
            Memory, Nccl(), device=self.device, communicators=known))

    def _program(self, variant: Any, inputs: Any) -> Any:
        program = super()._program(variant, inputs)
        if self.symmetric and self._arena is not None:
            self._arena.register(variant.plan.window)
        return program

    def _talk(self, mine: Any, why: str = "") -> Any:
        self._talks += 1
        told = self.wire.told((mine, why), "a capture")
        for rank, (theirs, failure) in enumerate(told):
            if theirs is None:
                raise ValueError(f"on rank {rank} {failure}")
        if self._talks == self._rounds and any(theirs != told[0][0] for theirs, _ in told):
            raise ValueError("the ranks' plans differ in their collectives")
        return [theirs for theirs, _ in told]

    def agree(self, lowered: Any) -> None:
        """The ranks' graphs have to be one: costs are those of the slowest rank, workspaces and
        states those of the rank with most."""
        for op in lowered.ops:
            if op.group:
                op.cost = self._network.cost(collectives.received(lowered, op))
        mine = [(op.kind, op.cost, op.workspace, op.on_heap,
                 [lowered.storages[s].size for s in op.inputs if self._is_state(lowered, s)])
                for op in lowered.ops]
        told = self._talk(mine)
        if len({tuple(kind for kind, *_ in theirs) for theirs in told}) > 1:
            raise ValueError("the ranks have captured different ops")
        for op, *those in zip(lowered.ops, *told):
            _, costs, workspaces, heaps, states = zip(*those)
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

    def divide(self, lowered: Any) -> Sequence[str]:
        """Collectives and the casts before gathers have a stream of their own, and what follows
        from a reduction has another one."""
        last = len(self.streams) - 1
        behind: set[int] = set()
        for op in lowered.ops:
            roots = {lowered.storages[s].root for s in op.inputs}
            op.gathers = "all_gather" in op.kind
            if op.group:
                op.stream = min(1, last)
            elif roots & behind or op.run:
                op.stream = last
            if op.group and not op.gathers or roots & behind:
                behind.update({lowered.storages[s].root for s in op.outputs}
                              - lowered.persistent.keys())
        for op in lowered.ops:  # casts, and what lays gradients back to back
            if isinstance(op.node and op.node.target, (Cast, Pack)):
                op.stream = min(1, last)
        lowered.communication = [1] if last else []
        return self.streams

    def rehearses(self, variant: Any) -> Any:
        return variant.to_compare > 0

    def _differs(self, loss: Any, batch: Any) -> str:
        told = self.wire.told(super()._differs(loss, batch), "the comparison with FSDP2")
        return next(filter(None, told), "")

    # ---- The model ----

    def tracing(self) -> Any:
        return _Traced(self._whole, self._refusal, super().tracing())

    def _shard(self, tensor: Any) -> Any:
        """The shard whose stand-in, or whose bytes, a tensor is."""
        assert self._whole
        found = self._whole.shard(tensor)
        return found or next((s for s in self._whole.shards if s.data is tensor), None)

    def names(self) -> dict[int, str]:
        assert self._whole
        return {id(shard.data if (shard := self._whole.shard(t)) else t): n for n, t in
                [*self.model.named_parameters(), *self.model.named_buffers()]}

    def parameters(self) -> Any:
        assert self._whole
        return [shard.parameter if (shard := self._whole.shard(t)) else t
                for t in self.model.parameters()]

    def parameter(self, tensor: Any) -> Any:
        shard = self._shard(tensor)
        return shard.parameter if shard else tensor

    def captured(self, loss: Any, inputs: Any, names: Any, joint: Any) -> Any:
        assert self._whole
        owners = [self._shard(tensor) for tensor in inputs]
        wholes = [owner.stand_in if owner else tensor for owner, tensor in zip(owners, inputs)]
        named = {**names, **{id(o.stand_in): o.name for o in owners if o}}
        return sharded(capture(loss, wholes, named, joint), self._whole.units, owners)

    def marks(self, inputs: Any) -> Any:
        assert self._whole
        return (super().marks(inputs),
                tuple((s.parameter.requires_grad, hooked(s.parameter)) for s in self._whole.shards))

    def buckets(self, parameters: Any) -> Any:
        """Those of a unit are updated by one op."""
        assert self._whole
        wanted = {id(p): p for p in parameters}
        for unit in self._whole.units:
            bucket = [wanted.pop(id(s.parameter)) for s in unit.shards if id(s.parameter) in wanted]
            if bucket:
                yield bucket
        if wanted:
            yield from super().buckets(list(wanted.values()))

    def report(self) -> Report:
        report, first = super().report(), self._first
        if first is None:
            return report
        ops = [(op, first.lowered.ops[first.plan.origin(op.id)]) for op in first.plan.graph.ops]
        again = [op for op, _ in ops if first.plan.is_recomputed(op.id) or op.name.endswith("'")]
        gathers = {op.id for op, source in ops if source.gathers}
        return report._replace(
            recomputed=[op.name.rstrip("'") for op in again], gathers=len(gathers),
            gathered_again=[op.name.rstrip("'") for op in again if op.id in gathers],
            received=sum(collectives.received(first.lowered, source) for _, source in ops
                         if source.group))
