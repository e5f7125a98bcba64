"""tarn.torch.ddp: data-parallel steps whose gradients are reduced where they lie."""
from __future__ import annotations

from functools import partial
from typing import Any, Optional

import torch
import torch.distributed as dist

import tarn

from .agreement import EAGER, AgreeingStep, council, number_of
from .tracing import reason
from .updates import as_they_come, divided, of_optimizer

FAILED = -1  # a vote, as EAGER; others say what is reduced
COALESCED = 250 << 20  # bytes of buffers that are sent as one, as DistributedDataParallel sends them


def _flat(tensor: Any) -> Any:
    """All of a tensor's elements, in the order in which they lie."""
    return tensor.as_strided((tensor.numel(),), (1,), tensor.storage_offset())


def _wait(wire: Any, work: Any, device: Any, op: str) -> None:
    """Until a collective is done; on a GPU streams wait, and the host does not."""
    if device.type == "cpu":
        wire.wait(work, op)
    else:
        wire.unwatched()
        work.wait()


def _reduce(group: Any, wire: Any, whole: Any, op: str) -> None:
    """The mean over all ranks, as DistributedDataParallel makes it."""
    work = dist.all_reduce(whole.div_(dist.get_world_size(group)), group=group, async_op=True)
    _wait(wire, work, whole.device, op)


def _reduction(group: Any, wire: Any, op: str, *gradients: Any) -> Any:
    """What to call for one all_reduce over gradients that lie back to back."""
    first, end = gradients[0], gradients[0].data_ptr()
    for gradient in gradients:
        assert gradient.data_ptr() == end and gradient.dtype == first.dtype
        end += gradient.nbytes
    whole = first.as_strided((sum(g.numel() for g in gradients),), (1,), first.storage_offset())
    return partial(_reduce, group, wire, whole, op)


class DistributedStep(AgreeingStep):
    """tarn.torch.ddp: a Step on every rank of a process group, gradients averaged over the ranks.
    All ranks make it with the same shapes, and call it and `report` together; shapes of later
    batches may differ. options: those of tarn.torch.step but `streams`, and no `seconds`: each rank
    plans, with work that is counted, so that all come to the same plan.

    Gradients of a bucket lie back to back in the arena and are reduced there by one call, on a
    stream beside the backward pass; nothing is copied. All ranks reduce the same buckets in the
    same order, whatever each of them plans. They compare the plans of the example, and before each
    step they say what they would reduce: if one of them has to run eagerly, all do. What one of
    them raises, all raise, with its number. timeout: seconds that a rank waits for the others."""

    streams = ("compute", "communication")

    def __init__(self, model: Any, *arguments: Any, process_group: Any = None, bucket_mb: Any = 25,
                 timeout: float = 600, **options: Any) -> None:
        if options.get("seconds"):
            raise ValueError("each rank plans, and ranks that are ended by the clock would find "
                             "other plans; give effort, which is counted, instead of seconds")
        self._group, self._limit = process_group, int(bucket_mb * (1 << 20))
        self._talks, self._reduced = 0, 0
        self._said = {"PyTorch": torch.__version__, "Tarn": tarn.__version__,
                      **{option: "a function" if callable(value) else repr(value)
                         for option, value in options.items() if option != "costs"}}
        self.wire = council(process_group, timeout)
        held = [*model.named_parameters(), *model.named_buffers()]
        mine = [(name, tuple(t.shape), t.dtype, t.requires_grad) for name, t in held]
        models = self.wire.told((mine, self._limit), "the comparison of models")
        if any(other != models[0] for other in models):
            raise tarn.Rejected("the ranks' models differ in names, shapes, types or what is "
                                "trained, or they are given other buckets")
        for _, tensor in held:
            dist.broadcast(tensor.detach(), group=process_group, group_src=0)
        self.reduction = partial(_reduction, process_group, self.wire)
        try:
            super().__init__(model, *arguments, **options)
            while self._talks < 2:
                self._captured(None)
        except Exception as error:
            while self._talks < 2:  # the others wait for what this rank has not captured
                try:
                    self._captured(None, error)
                except (tarn.TarnError, ValueError):
                    pass
            raise

    def _begin(self) -> None:
        if self.model.training:  # as DistributedDataParallel does
            self._send_buffers()

    def _send_buffers(self) -> None:
        """Of the first rank to the others."""
        buffers = sorted((b.detach() for b in self.model.buffers()), key=lambda b: f"{b.device} {b.dtype}")
        for some in divided(buffers, COALESCED, COALESCED):
            flat = torch.cat([buffer.reshape(-1) for buffer in some])
            work = dist.broadcast(flat, group=self._group, group_src=0, async_op=True)
            _wait(self.wire, work, flat.device, "the broadcast of buffers")
            for buffer, sent in zip(some, flat.split([b.numel() for b in some])):
                buffer.copy_(sent.view(buffer.shape))

    # ---- All ranks, or none ----

    def rehearses(self, variant: Any) -> Any:
        """All ranks compare, or none. This is where they meet that can run a plan."""
        own = super().rehearses(variant) and variant is self._first
        votes = self._vote(variant.reduced << 1 | bool(own))
        if len({vote >> 1 for vote in votes}) > 1:
            self._not_run("the ranks have gradients of different parameters")
        return all(vote & 1 for vote in votes)

    def eager(self, *batch: Any) -> Any:
        self._vote(EAGER)
        self._is_before = True
        try:
            return super().eager(*batch)
        except Exception as error:
            if self._is_before:
                self._meet([], error)
            raise

    def _meet(self, parameters: Any, error: Optional[Exception] = None) -> None:
        """Before the reductions of an eager step: all ranks have gradients of these, or all raise."""
        self._is_before = False
        mine = FAILED if error else self._number(parameters)
        votes = self.wire.votes(mine, "the reductions of a step")
        if FAILED not in votes and len(set(votes)) == 1:
            return
        names = {id(p): name for name, p in self.model.named_parameters()}
        said = (f"{type(error).__name__}: {error}" if error else "",
                [names.get(id(p), "") for p in parameters])
        told = self.wire.told(said, "the reductions of a step")
        self._is_told = True
        for parameter in self._known():  # of a step that is none
            parameter.grad = None
        for rank, (text, _) in zip(self.wire.members, told):
            if text and not error:
                raise tarn.Rejected(f"rank {rank} has failed in an eager step: {text}")
        if not error:
            every = dict.fromkeys(name for _, those in told for name in those)
            missing = [f"rank {rank} has none of {next(n for n in every if n not in those)}"
                       for rank, (_, those) in zip(self.wire.members, told)
                       if set(those) != set(every)]
            raise tarn.Rejected("the ranks have gradients of different parameters, which cannot be "
                                f"reduced: {'; '.join(missing)}")

    def _number(self, parameters: Any) -> int:
        """Equal where gradients of the same parameters are reduced."""
        own = set(map(id, parameters))
        places = [i for i, p in enumerate(self._known()) if id(p) in own]
        return number_of(str(places))

    def _noise(self, variant: Any, batch: Any) -> dict[str, float]:
        """Not measured: all ranks would have to take part in its steps."""
        return {}

    # ---- Buckets ----

    def _known(self) -> list[Any]:
        """All parameters, in one order on all ranks."""
        known = [*self.model.parameters(), *of_optimizer(self.optimizer)]
        return list({id(p): p for p in known}.values())

    def buckets(self, parameters: Any) -> Any:
        self._reduced = self._number(parameters)
        return as_they_come(parameters, self._known(), self._limit)

    def reduce(self) -> None:
        trained = [p for p in self._known() if p.grad is not None]
        self._meet(trained)
        for number, bucket in enumerate(self.buckets(trained)):
            gradients = [_flat(p.grad) for p in bucket]
            whole = torch.cat(gradients)
            _reduce(self._group, self.wire, whole, f"all_reduce{number}")
            for gradient, mean in zip(gradients, whole.split([g.numel() for g in gradients])):
                gradient.copy_(mean)

    # ---- Captures ----

    def agree(self, lowered: Any) -> None:
        """Times differ from rank to rank; plans must not: those of the first rank hold."""
        if self._is_example:
            measured = [(op.cost, op.workspace, op.on_heap) for op in lowered.ops]
            for op, agreed in zip(lowered.ops, self._captured(measured)[0]):
                op.cost, op.workspace, op.on_heap = agreed

    def _capture(self, loss: Any, inputs: Any) -> Any:
        variant = super()._capture(loss, inputs)
        variant.reduced = self._reduced
        if self._is_example:
            identities = self._captured(variant.plan.identity)
            if len(set(identities)) > 1:
                raise tarn.Rejected(f"the ranks' plans differ: {self._otherwise()}")
        return variant

    def _otherwise(self) -> str:
        """Which options differ from rank to rank, with the values; all ranks call this."""
        told = self.wire.told(self._said, "the comparison of options")
        found = []
        for option in dict.fromkeys(option for said in told for option in said):
            values = [said.get(option, "not given") for said in told]
            if len(set(values)) > 1:
                found.append(f"{option} is " + ", ".join(
                    f"{value} on rank {rank}" for rank, value in zip(self.wire.members, values)))
        return "; ".join(found) or ("their options and versions are equal, so their processors, "
                                    "libraries or settings of PyTorch are not")

    def _captured(self, mine: Any, error: Optional[BaseException] = None) -> Any:
        """What each rank has captured; all ranks call this twice, with None where they have not.
        error: what the constructor raises on this rank, which the others raise, too."""
        self._talks += 1
        told = self.wire.told((mine, reason(error) if error else self.reason or "", bool(error),
                               isinstance(error, tarn.DoesNotFit)), "a capture")
        for rank, (_, why, raises, large) in zip(self.wire.members, told):
            if raises and not error:
                raise (tarn.DoesNotFit if large else tarn.Rejected)(f"on rank {rank} {why}")
        for rank, (theirs, why, *_) in zip(self.wire.members, told):
            if theirs is None and mine is not None:
                raise ValueError(f"on rank {rank} {why or 'it was not captured'}")
        return [theirs for theirs, *_ in told]
