"""Tarn in PyTorch. Nothing of it is imported before it is used.

    step = tarn.torch.step(model, optimizer, loss_fn, batch, reorder=True)   # stepping.py
    with tarn.torch.iteration(): ...                                        # allocator.py
    tarn.torch.ddp(model, optimizer, loss_fn, batch)                        # distributed.py
    tarn.torch.install("cuda")                  # first, on a GPU              memory.py
    tarn.torch.snapshot.load("snapshot.pickle")                             # snapshot.py, no torch
"""
import importlib

_WHERE = {"iteration": ("allocator", "iteration"), "install": ("memory", "allocator"),
          "step": ("stepping", "Step"), "ddp": ("distributed", "DistributedStep"),
          "allocator": ("allocator",), "snapshot": ("snapshot",)}


def __getattr__(name):
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    module, *attribute = _WHERE[name]
    found = importlib.import_module("." + module, __name__)
    return getattr(found, *attribute) if attribute else found
