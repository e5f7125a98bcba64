"""tarn.torch.fsdp: models that fully_shard (FSDP2) has wrapped train by planned steps, in which the
plan decides what is gathered again. `units` reads what FSDP2 has made, `gathering` writes the capture
of the whole model as one of shards, `step` runs it on all ranks or on none, which `..agreement` sees
to; `network` has the costs."""
from __future__ import annotations

from typing import Any, Mapping, Optional, Sequence, Union

from .step import ShardedStep


def fsdp(model: Any, optimizer: Any, loss_fn: Any, example_batch: Any, *,
         units: Optional[Sequence[Any]] = None, wrap: Mapping[str, Any] = {},
         **options: Any) -> ShardedStep:
    """A step on every rank of a process group, for a model that fully_shard has wrapped:

        for block in model.blocks: fully_shard(block)
        fully_shard(model)
        optimizer = torch.optim.AdamW(model.parameters())
        step = tarn.torch.fsdp(model, optimizer, loss_fn, (x, y), budget=0.6)

    units      modules, or their names: they, and the model around them, are wrapped here, and the
               optimizer, which must not have worked yet, gets the parameters that this makes
    wrap       arguments of fully_shard for these: mesh, mp_policy, ...
    streams    3: collectives run beside the computation, and what the optimizer does beside both;
               2: it computes with the rest; 1: one op after another
    budget     bytes, or a share of the plan without one: units are gathered again, and ops run
               again, until it fits
    network    (seconds of a collective without bytes, bytes received in a second), for the costs;
               None: measured
    symmetric  True: what collectives read and write lies at one offset on all ranks, in one range of
               the arena; on NCCL that is of ncclMemAlloc and registered as a window
    timeout    seconds that a rank waits for the others in planned steps
    options    of tarn.torch.step, but fuse, graph, compare="sample" and seconds

    All ranks make it, call it and its `report` together. What is not planned runs as FSDP2 does, on
    all ranks; `step.reason` says why."""
    if units is not None:
        from .wrapping import wrapped  # pylint: disable=import-outside-toplevel
        wrapped(model, optimizer, units, wrap)
    elif wrap:
        raise ValueError("wrap is for models that are wrapped here: give units, too")
    return ShardedStep(model, optimizer, loss_fn, example_batch, **options)


__all__ = ["ShardedStep", "fsdp"]
