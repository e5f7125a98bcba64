"""Tarn in PyTorch. Nothing of it is imported before it is used.

    step = tarn.torch.step(model, optimizer, loss_fn, batch, reorder=True)   # stepping.py
    with tarn.torch.iteration(): ...                                        # allocator.py
    tarn.torch.ddp(model, optimizer, loss_fn, batch)                        # distributed.py
    tarn.torch.fsdp(model, optimizer, loss_fn, batch, budget=0.6)           # sharding/
    print(tarn.torch.estimate(model, optimizer, loss_fn, batch, "H100"))    # estimating/
    tarn.torch.install("cuda")                  # first, on a GPU              memory.py
    tarn.torch.snapshot.load("snapshot.pickle")                             # snapshot.py, no torch
"""
from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import allocator as allocator
    from . import snapshot as snapshot
    from .allocator import iteration as iteration
    from .distributed import DistributedStep as ddp
    from .estimating import Device as Device
    from .estimating import Profile as Profile
    from .estimating import estimate as estimate
    from .memory import allocator as install
    from .sharding import fsdp as fsdp
    from .stepping import Step as step

    __all__ = ["Device", "Profile", "allocator", "ddp", "estimate", "fsdp", "install", "iteration",
               "snapshot", "step"]

OLDEST = "2.9.0.dev0"  # of PyTorch, builds before its release included
_WHERE = {"iteration": ("allocator", "iteration"), "install": ("memory", "allocator"),
          "step": ("stepping", "Step"), "ddp": ("distributed", "DistributedStep"),
          "fsdp": ("sharding", "fsdp"),
          "estimate": ("estimating", "estimate"), "Device": ("estimating", "Device"),
          "Profile": ("estimating", "Profile"),
          "allocator": ("allocator",), "snapshot": ("snapshot",)}


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, *attribute = _WHERE[name]
    if name != "snapshot":
        import torch
        if torch.__version__ < OLDEST:
            raise ImportError(f"tarn.torch needs PyTorch {OLDEST[:3]} or later, and this is "
                              f"{torch.__version__}")
    found = importlib.import_module("." + module, __name__)
    return getattr(found, *attribute) if attribute else found
