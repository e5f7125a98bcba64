"""tarn.torch.ddp: data-parallel steps whose gradients are reduced where they lie."""
from __future__ import annotations

from functools import partial
from typing import Any

import torch
import torch.distributed as dist

import tarn

from .stepping import COMPARED, Step, kind_of, of_optimizer
from .updates import as_they_come


def _flat(tensor: Any) -> Any:
    """All of a tensor's elements, in the order in which they lie."""
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _reduce(group: Any, whole: Any) -> None:
    """The mean over all ranks, as DistributedDataParallel makes it."""
    dist.all_reduce(whole.div_(dist.get_world_size(group)), group=group)


def _reduction(group: Any, *gradients: Any) -> Any:
    """What to call for one all_reduce over gradients that lie back to back."""
    first, end = gradients[0], gradients[0].data_ptr()
    for gradient in gradients:
        assert gradient.data_ptr() == end and gradient.dtype == first.dtype
        end += gradient.nbytes
    whole = first.as_strided((sum(g.numel() for g in gradients),), (1,), first.storage_offset())
    return partial(_reduce, group, whole)


class DistributedStep(Step):
    """tarn.torch.ddp: a Step on every rank of a process group, gradients averaged over the ranks.
    All ranks make it with the same shapes, and call it and `report` together; shapes of later
    batches may differ. options: those of tarn.torch.step but `streams`, and no `seconds`: each rank
    plans, with work that is counted, so that all come to the same plan.

    Gradients of a bucket lie back to back in the arena and are reduced there by one call, on a
    stream beside the backward pass; nothing is copied. All ranks reduce the same buckets in the
    same order, whatever each of them plans and runs. They compare the plans of the example."""

    streams = ("compute", "communication")

    def __init__(self, model: Any, *arguments: Any, process_group: Any = None, bucket_mb: Any = 25,
                 **options: Any) -> None:
        if options.get("seconds"):
            raise ValueError("each rank plans, and ranks that are ended by the clock would find "
                             "other plans; give effort, which is counted, instead of seconds")
        self._group, self._limit = process_group, int(bucket_mb * (1 << 20))
        self._calls = self._talks = 0
        held = [*model.named_parameters(), *model.named_buffers()]
        models = self._told([(name, tuple(t.shape), t.dtype, t.requires_grad) for name, t in held])
        if any(other != models[0] for other in models):
            raise tarn.Rejected("the ranks' models differ in names, shapes, types or what is "
                                "trained")
        for _, tensor in held:
            dist.broadcast(tensor.detach(), group=process_group, group_src=0)
        self.reduction = partial(_reduction, process_group)
        try:
            super().__init__(model, *arguments, **options)
        finally:
            while self._talks < 2:  # the others wait for what this rank has not captured
                self._captured(None)

    def __call__(self, *batch: Any) -> Any:
        buffers = list(self.model.buffers())
        if buffers and self.model.training:  # as DistributedDataParallel does
            group = self._group or dist.group.WORLD
            dist._broadcast_coalesced(group, buffers, 250 << 20, 0)
        self._alike = self._calls < COMPARED and all(  # all ranks compare, or none
            self._told(self.plan and kind_of(batch) == kind_of(self.example)))
        self._calls += 1
        return super().__call__(*batch)

    def rehearses(self, variant: Any) -> Any:
        own = super().rehearses(variant) and variant is self._first
        return self._alike and all(self._told(own))

    def _told(self, mine: Any) -> Any:
        """What each rank says."""
        everybodys = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(everybodys, mine, group=self._group)
        return everybodys

    def _differs(self, loss: Any, batch: Any) -> str:
        return next(filter(None, self._told(super()._differs(loss, batch))), "")

    def _noise(self, variant: Any, batch: Any) -> dict[str, float]:
        """Not measured: all ranks would have to take part in its steps."""
        return {}

    # ---- Buckets ----

    def buckets(self, parameters: Any) -> Any:
        known = [*self.model.parameters(), *of_optimizer(self.optimizer)]
        return as_they_come(parameters, known, self._limit)

    def reduce(self) -> None:
        known = {id(p): p for p in [*self.model.parameters(), *of_optimizer(self.optimizer)]}
        for bucket in self.buckets([p for p in known.values() if p.grad is not None]):
            gradients = [_flat(p.grad) for p in bucket]
            whole = torch.cat(gradients)
            _reduce(self._group, whole)
            for gradient, mean in zip(gradients, whole.split([g.numel() for g in gradients])):
                gradient.copy_(mean)

    # ---- The example's capture ----

    def agree(self, lowered: Any) -> None:
        """Times differ from rank to rank; plans must not: those of the first rank hold."""
        if self._is_example:
            measured = [(op.cost, op.workspace, op.on_heap) for op in lowered.ops]
            for op, agreed in zip(lowered.ops, self._captured(measured)[0]):
                op.cost, op.workspace, op.on_heap = agreed

    def _capture(self, loss: Any, inputs: Any) -> Any:
        variant = super()._capture(loss, inputs)
        if self._is_example:
            identities = self._captured(variant.plan.identity)
            if len(set(identities)) > 1:
                raise tarn.Rejected(f"the ranks' plans differ: {identities}")
        return variant

    def _captured(self, mine: Any) -> Any:
        """What each rank has captured; all ranks call this twice, with None where they have not."""
        self._talks += 1
        everybodys = self._told(mine)
        if mine is not None and None in everybodys:
            raise ValueError("another rank has not captured it")
        return everybodys
