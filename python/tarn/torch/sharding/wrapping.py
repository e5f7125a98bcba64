"""Wraps a model by fully_shard, and gives its optimizer the parameters that this makes."""
from __future__ import annotations

from typing import Any

from torch.distributed.fsdp import fully_shard


def wrapped(model: Any, optimizer: Any, units: Any, options: Any) -> None:
    """units: modules of the model, or their names; options: arguments of fully_shard."""
    if optimizer.state:
        raise ValueError("the optimizer has made a step already: wrap the model by fully_shard before "
                         "you make the optimizer, or give units before its first step")
    modules = [model.get_submodule(unit) if isinstance(unit, str) else unit for unit in units]
    known = {id(module): position for position, module in enumerate(model.modules())}
    if not all(id(module) in known for module in modules):
        raise ValueError("units has a module that is none of the model's")
    before = dict(model.named_parameters(remove_duplicate=False))
    for module in sorted(modules, key=lambda module: -known[id(module)]):  # the inner ones first
        if module is not model:
            fully_shard(module, **options)
    fully_shard(model, **options)
    after = dict(model.named_parameters(remove_duplicate=False))
    made = {id(tensor): after[name] for name, tensor in before.items()}
    for group in optimizer.param_groups:
        group["params"] = [made.get(id(p), p) for p in group["params"]]
