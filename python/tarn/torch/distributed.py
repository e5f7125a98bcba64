"""tarn.torch.ddp: data-parallel steps whose gradients are reduced where they lie."""
from functools import partial

import torch.distributed as dist

from .stepping import Step
from .updates import divided


def _reduction(group, *gradients):
    """What to call for one all_reduce over gradients that lie back to back; the mean over all
    ranks, as DistributedDataParallel makes it."""
    first, count = gradients[0], sum(g.numel() for g in gradients)
    end = first.data_ptr()
    for gradient in gradients:
        assert gradient.data_ptr() == end and gradient.dtype == first.dtype
        end += gradient.nbytes
    whole = first.as_strided((count,), (1,), first.storage_offset())
    world = dist.get_world_size(group)
    return lambda: dist.all_reduce(whole.div_(world), group=group)


class DistributedStep(Step):
    """tarn.torch.ddp: a Step on every rank of a process group, gradients averaged over the ranks.
    All ranks make it, and call it, at the same time with the same shapes and numbers.

    Gradients of a bucket lie back to back in the arena and are reduced there by one call, on a
    stream beside the backward pass; nothing is copied. options: those of tarn.torch.step but
    `streams`. The ranks compare their plans before the first step.
    """

    streams = ("compute", "communication")
    compares = False

    def __init__(self, model, *arguments, process_group=None, bucket_mb=25, **options):
        self._group, self._limit = process_group, int(bucket_mb * (1 << 20))
        for tensor in [*model.parameters(), *model.buffers()]:
            dist.broadcast(tensor.detach(), 0, group=process_group)
        self.reduction = partial(_reduction, process_group)
        super().__init__(model, *arguments, **options)
        if self.plan is None:
            self.eager()

    def __call__(self, *batch):
        buffers = list(self.model.buffers())
        if buffers and self.model.training:  # as DistributedDataParallel does
            group = self._group or dist.group.WORLD
            dist._broadcast_coalesced(group, buffers, 250 << 20, 0)
        return super().__call__(*batch)

    def eager(self, *batch):
        raise RuntimeError(f"ddp cannot run eagerly: {self.reason}")

    def report(self):
        raise NotImplementedError("of a step without ddp")

    def buckets(self, ready):
        """The first one small, so that communication begins early; of one type each."""
        return divided(ready, min(self._limit, 1 << 20), self._limit,
                       lambda before, item: before.parameter.dtype != item.parameter.dtype)

    def agree(self, lowered):
        """Times differ from rank to rank; plans must not: those of the first rank hold."""
        measured = [[(op.cost, op.workspace, op.on_heap) for op in lowered.ops]]
        dist.broadcast_object_list(measured, 0, group=self._group)
        if len(measured[0]) != len(lowered.ops):
            raise RuntimeError("the ranks have captured different steps")
        for op, agreed in zip(lowered.ops, measured[0]):
            op.cost, op.workspace, op.on_heap = agreed

    def _capture(self, loss, inputs):
        try:
            variant = super()._capture(loss, inputs)
            mine = variant.plan.identity
        except Exception as error:  # pylint: disable=broad-except
            variant, mine = None, f"{type(error).__name__}: {error}"
        everybodys = [None] * dist.get_world_size(self._group)
        dist.all_gather_object(everybodys, mine, group=self._group)
        if variant is None or set(everybodys) != {mine}:
            raise RuntimeError(f"the ranks' plans differ: {everybodys}")
        return variant
