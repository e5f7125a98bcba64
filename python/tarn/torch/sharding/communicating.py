"""tarn.torch.step of a model that communicates by itself: by functional collectives in its loss, or by
DTensors among its parameters (tensor parallelism, parameters that are gathered where they are used).
The loss is captured as this rank's part of it: DTensors are replaced by their local tensors, and what
they communicate is a part of the graph."""
from __future__ import annotations

from typing import Any, Optional, Sequence

import torch.distributed as dist

from ..agreement import council
from ..capture import capture
from ..collectives import divide
from ..stepping import Step
from ..tensors import dtensor, local
from ..updates import hooked, looks_at_several, of_optimizer
from .coalescing import coalesced
from .joint import JointStep, check_options, without_regions
from .network import Network, measured
from .units import Refused


def distributed(model: Any) -> list[Any]:
    """The DTensors that a model has."""
    return [t for t in (*model.parameters(), *model.buffers()) if local(t) is not t]


def members(group: Any, tensors: Any) -> list[int]:
    """The ranks that have to agree: those of the group; or those that collectives of DTensors can
    reach from this one, one after the other, along the dimensions of their meshes."""
    if group is not None:
        return list(dist.get_process_group_ranks(group))
    meshes = list(dict.fromkeys(t.device_mesh for t in tensors))
    if len(meshes) == 1:
        return sorted(meshes[0].mesh.flatten().tolist())
    roots = set(map(_root_of, meshes))
    if len(roots) != 1:
        raise ValueError("the model has DTensors of several meshes that are no parts of one: pass "
                         "process_group= with all ranks that communicate")
    root, ranks = roots.pop(), None
    names = {name for mesh in meshes for name in mesh.mesh_dim_names or ("",)}
    if names <= set(root.mesh_dim_names or ()):
        place = tuple(slice(None) if name in names else own for name, own in
                      zip(root.mesh_dim_names, root.get_coordinate()))
        ranks = root.mesh[place]
    return sorted((root.mesh if ranks is None else ranks).flatten().tolist())


def _root_of(mesh: Any) -> Any:
    """The mesh that it is a part of; private in PyTorch."""
    if hasattr(mesh, "_get_root_mesh"):
        return mesh._get_root_mesh()
    from torch.distributed import device_mesh
    known = getattr(device_mesh, "_mesh_resources", None)  # PyTorch 2.9
    return known.get_root_mesh(mesh) if known else mesh


def _groups(tensors: Any) -> dict[str, Any]:
    """By name: the communicators of the meshes of DTensors."""
    meshes = dict.fromkeys(t.device_mesh for t in tensors)
    return {g.group_name: g for mesh in meshes for g in mesh.get_all_groups() if g.size() > 1}


class CommunicatingStep(JointStep):
    """What tarn.torch.step returns for a model with DTensors, or with a process_group. All ranks call
    it, and `report`, together. Collectives run on a stream of their communicator, in one order."""

    may_differ = True

    def __init__(self, model: Any, optimizer: Any, loss_fn: Any, example_batch: Any, *,
                 process_group: Any = None, timeout: float = 600,
                 network: Optional[Sequence[float]] = None, streams: Optional[int] = None,
                 **options: Any) -> None:
        check_options(options)
        if streams not in (None, 1):
            raise ValueError("a step that communicates has one stream for its computation, and one "
                             "for each communicator: leave streams out")
        tensors = distributed(model)
        groups = _groups(tensors)
        self.wire = council(process_group, timeout, members(process_group, tensors))
        device = next(p.device for group in optimizer.param_groups for p in group["params"])
        self.network = Network(*network) if network is not None else measured(
            next(iter(groups.values()), process_group), device,
            lambda mine: self.wire.told(mine, "the network's measure"))
        own = () if process_group is None else (process_group.group_name,)
        self.clips_over = tuple(dict.fromkeys([*groups, *own]))
        self.updates_over = self.clips_over if looks_at_several(optimizer) else ()
        self._owners: list[Any] = []  # of the inputs: the DTensors whose parts they are
        super().__init__(model, optimizer, loss_fn, example_batch, **options)

    # ---- DTensors and their parts ----

    def tracing(self) -> Any:
        if any(hasattr(module, "_get_fsdp_state") for module in self.model.modules()):
            return _refuse
        return super().tracing()

    def planned(self, loss: Any, inputs: Any) -> Any:
        loss, self._owners = self.of_tensors(loss, inputs)
        try:
            return super().planned(loss, list(map(local, self._owners)))
        finally:
            self._owners = []  # the batch among them

    def returned(self, variant: Any, results: Any) -> Any:
        return [result if spec is None else dtensor(result, spec)
                for result, spec in zip(results, variant.specs)]

    def parameter(self, tensor: Any) -> Any:
        known = [*self.model.parameters(), *of_optimizer(self.optimizer)]
        return next((p for p in known if local(p) is tensor), tensor)

    def marks(self, inputs: Any) -> Any:
        return super().marks(self._owners), tuple(getattr(t, "_spec", None) for t in self._owners)

    def captured(self, loss: Any, inputs: Any, names: Any, joint: Any) -> Any:
        own = {id(t): names[id(local(t))] for t in self._owners if id(local(t)) in names}
        with without_regions():
            captured = capture(loss, self._owners, own, joint,
                               bool(self.clip) or any(map(hooked, self._owners)),
                               strides=self.strides)
        return coalesced(captured, self.is_exact())

    # ---- Plans ----

    def divide(self, lowered: Any) -> Sequence[str]:
        streams: Sequence[str] = divide(lowered, self.streams)
        for op in lowered.ops:
            if op.group and op.node is not None:
                op.gathers = op.kind == "c10d.all_gather"  # made by `coalesced`
                op.meets_again = not op.gathers and not lowered.writes(op)
        _prepare(lowered)
        return streams

    def plan_of(self, variant: Any) -> None:
        if any(op.gathers for op in variant.lowered.ops):
            super().plan_of(variant)
        else:
            Step.plan_of(self, variant)


def _refuse(*_batch: Any) -> Any:
    raise Refused("fully_shard has wrapped the model: use tarn.torch.fsdp")


def _prepare(lowered: Any) -> None:
    """Marks what gathers alone read, and what depends on parameters alone; it runs on their streams."""
    readers: dict[int, list[Any]] = {}
    makers: dict[int, Any] = {}
    for op in lowered.ops:
        for s in op.inputs:
            readers.setdefault(lowered.storages[s].root, []).append(op)
        makers.update((lowered.storages[s].root, op) for s in op.outputs)
    found = {id(op): op for op in lowered.ops
             if op.node is not None and not op.group and not op.is_random and not lowered.writes(op)}

    def fits(op: Any) -> bool:
        ins = (lowered.storages[s].root for s in op.inputs)
        outs = (lowered.storages[s].root for s in op.outputs)
        return (all(root in lowered.persistent or id(makers[root]) in found for root in ins)
                and all(readers.get(root) and all(r.gathers or id(r) in found for r in readers[root])
                        for root in outs))

    wrong = [op for op in found.values() if not fits(op)]
    while wrong:
        for op in wrong:
            del found[id(op)]
        wrong = [op for op in found.values() if not fits(op)]
    for op in reversed(list(found.values())):
        op.prepares = True
        op.stream = next(r.stream for s in op.outputs for r in readers[lowered.storages[s].root])
