"""Sharded steps: every rank of a process group runs the same plan, or all run as FSDP2 does."""
from __future__ import annotations

import functools
from typing import Any, Optional, Sequence, Union

import torch

import tarn

from ..agreement import council
from ..capture import capture
from ..memory import Arena
from ..tracing import NotRun, Traced
from ..updates import hooked, looks_at_several
from ..window import Memory, Nccl, communicators
from .gathering import sharded
from .joint import JointStep, check_options, without_regions
from .kernels import Cast, Pack
from .network import Network, measured
from .units import Refused, Whole

STREAMS = ("compute", "communication", "update")


class _Traced:
    """Traces the loss on the whole model."""

    def __init__(self, whole: Optional[Whole], refusal: str, traced: Traced) -> None:
        self._whole, self._refusal, self._traced = whole, refusal, traced

    def __call__(self, *batch: Any) -> Any:
        if self._whole is None:
            raise Refused(self._refusal)
        with self._whole.whole():
            return self._traced(*batch)


class ShardedStep(JointStep):
    """What tarn.torch.fsdp returns: a step on every rank of a process group, for a model that
    fully_shard has wrapped. All ranks call it, and `report`, together.

    A unit's gather is an op that may run again, its gradients are reduced and scattered by one op;
    both lie where the plan puts them. Where a JointStep runs eagerly it runs as FSDP2 does."""

    def __init__(self, model: Any, optimizer: Any, loss_fn: Any, example_batch: Any, *,
                 streams: int = 3, budget: Union[int, float, None] = None, timeout: float = 600,
                 network: Optional[Sequence[float]] = None, process_group: Any = None,
                 symmetric: bool = False, **options: Any) -> None:
        check_options(options)
        if not 1 <= streams <= len(STREAMS):
            raise ValueError(f"streams has to be 1, 2 or {len(STREAMS)}, not {streams}: "
                             f"{', '.join(STREAMS)}")
        self.streams = STREAMS[:streams]
        self.symmetric, self._bytes = symmetric, 0
        self.rounds = 3 if symmetric else 2
        self._refusal = ""
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
        self.network = self._measured(network, optimizer)
        if self._whole:
            self.clips_over = self._communicators()
            if looks_at_several(optimizer):
                self.updates_over = self.clips_over
        super().__init__(model, optimizer, loss_fn, example_batch, budget=budget, **options)

    def _communicators(self) -> tuple[str, ...]:
        """Those of the units, and of meshes inside of theirs, by name."""
        assert self._whole
        names = dict.fromkeys(unit.process_group.group_name for unit in self._whole.units)
        for shard in self._whole.shards:
            if shard.inner:
                names.update((group.group_name, None) for group in shard.inner.mesh.get_all_groups()
                             if group.size() > 1)
        return tuple(names)

    def _measured(self, network: Any, optimizer: Any) -> Network:
        if network is not None:
            return Network(*network)
        if self._whole is None:
            return Network(0.0, 1e9)
        device = next(p.device for group in optimizer.param_groups for p in group["params"])
        return measured(self._whole.units[0].process_group, device,
                        lambda mine: self.wire.told(mine, "the network's measure"))

    def planned(self, loss: Any, inputs: Any) -> Any:
        assert self._whole
        try:
            self._whole.check()
        except Refused as error:
            raise NotRun(str(error)) from None
        loss, inputs = self.of_tensors(loss, inputs)
        inputs = [shard.data if (shard := self._whole.shard(t)) else t for t in inputs]
        return super().planned(loss, inputs)

    def graph_of(self, variant: Any, waits: Any) -> Any:
        return variant.lowered.graph(self.name, variant.streams, variant.groups or (), waits,
                                     self.symmetric)

    def plan_of(self, variant: Any) -> None:
        super().plan_of(variant)
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

    def divide(self, lowered: Any) -> Sequence[str]:
        """Collectives of units and the casts before gathers have a stream of their own, what follows
        from a reduction has another one, and so have collectives of each communicator inside."""
        last = len(self.streams) - 1
        streams = list(self.streams)
        inner: dict[str, int] = {}  # streams of communicators that are no unit's
        behind: set[int] = set()
        for op in lowered.ops:
            roots = {lowered.storages[s].root for s in op.inputs}
            op.gathers = op.kind == "c10d.all_gather"
            if op.group and op.kind.startswith("_"):  # a functional collective
                op.meets_again = not lowered.writes(op)
                if last and op.group not in inner:
                    inner[op.group] = len(streams)
                    streams.append(f"communication{1 + len(inner)}")
                op.stream = inner.get(op.group, 0)
                continue
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
                op.prepares = isinstance(op.node.target, Cast)
        lowered.communication = [1, *inner.values()] if last else []
        return streams

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
        dtypes = {key: dtype for unit in self._whole.units
                  for key, dtype in unit.grad_dtypes().items()}
        with without_regions():
            return sharded(capture(loss, wholes, named, joint, grad_dtypes=dtypes,
                                   strides=self.strides),
                           self._whole.units, owners)

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
