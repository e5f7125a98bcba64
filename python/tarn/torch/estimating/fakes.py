"""A device that is not there: fake tensors on it, for which PyTorch chooses the kernels that it
would choose on the device. What PyTorch asks a GPU is answered from the Device."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any
from unittest import mock

import torch
import torch.utils.checkpoint
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.optim import optimizer as optimizers
from torch.utils import _foreach_utils

import tarn

from .attention import attention_of
from .devices import Device

# Without a GPU, autograd of PyTorch before 2.10 ends the process at a fake tensor of a GPU.
NEEDS_A_GPU = not hasattr(torch._C, "_ensureCUDADeviceGuardSet")
GRAPH_TASK = 1  # what checkpoints are told: they want to be in a backward pass
ANSWERS = {"torch.cuda.amp.common.amp_definitely_not_available": lambda *_: False,
           "torch.cuda.is_bf16_supported": lambda *_, **__: True,
           "torch.cuda.current_device": lambda: 0,
           "torch.cuda.synchronize": lambda *_: None,
           "torch.fx.experimental.proxy_tensor.CONSTANT_NUMEL_LIMIT": -1,  # known.py does it
           "torch._C._current_graph_task_id": lambda: GRAPH_TASK}


@contextlib.contextmanager
def fake_device(device: Device) -> Iterator[Any]:
    """A FakeTensorMode for tensors on the device."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(_supported())
        if torch.get_default_device().type == "meta":  # inside of `with torch.device("meta")`
            stack.enter_context(torch.device("cpu"))
        if device.type == "cuda":
            _check()
            stack.enter_context(_attention(device))
            for name, answer in ANSWERS.items():
                stack.enter_context(mock.patch(name, answer))
            stack.enter_context(mock.patch("torch.cuda.get_device_capability",
                                           lambda *_: device.capability))
            # else constants would lie on a GPU that is there, and could not be read
            stack.enter_context(mock.patch.object(FakeTensorMode, "avoid_device_init", True))
        yield FakeTensorMode(allow_non_fake_inputs=True)


def _check() -> None:
    if NEEDS_A_GPU and not torch.cuda.is_available():
        raise tarn.BadInput(f"the step cannot be estimated: PyTorch {torch.__version__} can trace "
                            "steps of a GPU only where there is one; install PyTorch 2.10 or later, "
                            "or give device=\"cpu\"")


@contextlib.contextmanager
def _supported() -> Iterator[None]:
    """Optimizers and clipping take the paths for many tensors at once, as for tensors that are not
    fake."""
    lists = (optimizers._foreach_supported_types, _foreach_utils._foreach_supported_types)
    for types in lists:
        types.append(FakeTensor)
    try:
        yield
    finally:
        for types in lists:
            types.remove(FakeTensor)


@contextlib.contextmanager
def _attention(device: Device) -> Iterator[None]:
    library = torch.library.Library("aten", "IMPL")  # pylint: disable=not-callable
    try:
        library.impl("scaled_dot_product_attention", attention_of(device), "AutogradCUDA",
                     allow_override=True)
        yield
    finally:
        library._destroy()
