"""What an op costs on a device that is not there. `Costs` is the interface of all sources of costs:
`Roofline` here, and a profile that was measured (profiles.py)."""
from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple, Optional, Protocol

import torch
from torch.utils.flop_counter import flop_registry

from ..lowering import Lowered, Op
from ..tensors import tensors_of
from . import workspaces
from .devices import Device

HALF = (torch.float16, torch.bfloat16)
EMPTY = ("aten::empty", "aten::empty_like", "aten::new_empty", "aten::empty_strided",
         "aten::new_empty_strided", "aten::empty_permuted")

# How often some ops go over their operands, where it is more than once. They are GPU kernels.
PASSES = {"aten::cudnn_batch_norm": 1.5, "aten::cudnn_batch_norm_backward": 1.6,
          "aten::native_batch_norm": 1.5, "aten::native_batch_norm_backward": 1.6,
          "aten::native_layer_norm_backward": 1.6, "aten::_log_softmax": 1.3,
          "aten::_log_softmax_backward_data": 1.3, "aten::_softmax": 1.3}


class Cost(NamedTuple):
    """Of one op: seconds, bytes of workspace, FLOP, and bytes that are read and written."""
    seconds: float = 0.0
    workspace: int = 0
    flops: int = 0
    moved: int = 0


class Costs(Protocol):
    """Where costs come from."""

    def of(self, lowered: Lowered, op: Op, moved: int = 0, workspace: int = 0) -> Cost:
        """Of a call of ATen; or of an op of the optimizer or the user, of which the estimate knows
        how many bytes it moves and how much workspace it takes."""


class Roofline:
    """An op takes as long as its arithmetic or its memory traffic, whichever takes longer."""

    def __init__(self, device: Device,
                 table: Optional[Mapping[str, workspaces.Rule]] = None) -> None:
        """table: workspaces that take the place of the rules, by the names of operators."""
        known = workspaces.CUDA if device.type == "cuda" else workspaces.CPU
        self.device, self.table = device, {**known, **(table or {})}
        self._traffic = device.bandwidth * device.share("memory")
        self._products = torch.get_float32_matmul_precision() != "highest"
        self._convolutions = torch.backends.cudnn.allow_tf32

    def of(self, lowered: Lowered, op: Op, moved: int = 0, workspace: int = 0) -> Cost:
        if op.node is not None:
            return self._call(op.node)
        if op.kind.startswith("comm."):
            return Cost(moved / self.device.link + self.device.launch, workspace, 0, moved)
        seconds = max(moved / self._traffic, self.device.launch)
        return Cost(seconds, workspace, 0, moved)

    def _call(self, node: Any) -> Cost:
        name, value = node.target._schema.name, node.meta.get("val")
        workspace = workspaces.workspace_of(node, self.table)
        if name in EMPTY:
            return Cost(workspace=workspace)
        read = {id(t): t for n in node.all_input_nodes for t in tensors_of(n.meta.get("val"))}
        made = {id(t): t for t in tensors_of(value)}
        size = sum(map(_moved, {**read, **made}.values()))
        if name == "aten::embedding":  # reads the rows that it needs
            size = 2 * sum(map(_moved, made.values()))
        seconds = size * PASSES.get(name, 1) / self._traffic
        flops, kind = _flops(node, value)
        if flops:
            operands = list({**read, **made}.values())
            seconds = max(seconds, self._arithmetic(flops, kind, operands))
            if kind == "convolution" and self.device.type == "cuda" and any(
                    t.dim() == 4 and t.is_contiguous() for t in operands):
                seconds += 2 * size / self._traffic  # copied to the layout that cuDNN works in
        return Cost(max(self.device.launch, seconds), workspace, flops, size)

    def _arithmetic(self, flops: int, kind: str, operands: Any) -> float:
        types = {t.dtype for t in operands}
        half = not types.isdisjoint(HALF)
        if kind == "attention":
            share = "attention" if half else "attention_fp32"
            return flops / (self.device.rate("half" if half else "tf32") * self.device.share(share))
        tf32 = self._convolutions if kind == "convolution" else self._products
        eight = any(t.itemsize == 1 and t.is_floating_point for t in types)
        rate = ("fp8" if eight else "half" if half else "fp64" if torch.float64 in types
                else "tf32" if tf32 else "fp32")
        share = kind
        if kind == "product" and not all(_aligned(t) for t in operands if t.dim() > 1):
            share = "unaligned_half" if half else "unaligned"
        return flops / (self.device.rate(rate) * self.device.share(share))


def _aligned(tensor: torch.Tensor) -> bool:
    """Do all of its rows begin at multiples of 16 bytes?"""
    return all(stride * tensor.element_size() % 16 == 0
               for stride in tensor.stride() if stride > 1)


def _moved(tensor: torch.Tensor) -> int:
    """Bytes of the elements that are there: those of an expanded tensor are read once."""
    count = math.prod(n for n, stride in zip(tensor.shape, tensor.stride()) if stride)
    return int(min(count * tensor.element_size(), tensor.untyped_storage().nbytes()))


def _flops(node: Any, value: Any) -> tuple[int, str]:
    """(FLOP, kind of kernel)"""
    packet = getattr(node.target, "overloadpacket", None)
    name = node.target._schema.name
    if "attention" in name and "query" in (given := workspaces.arguments_of(node)):
        return _attention_flops(given, "backward" in name), "attention"
    if packet not in flop_registry:
        return 0, ""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
    kind = "convolution" if "convolution" in name else "product"
    return int(flop_registry[packet](*args, **kwargs, out_val=value)), kind


def _attention_flops(given: Mapping[str, Any], backward: bool) -> int:
    """Two products forward, five backward; half of them if the mask is causal. (PyTorch's own
    formula wants as many heads of keys as of queries, and ignores the mask.)"""
    q, k, v = (given[name].shape for name in ("query", "key", "value"))
    flops = 2 * q[0] * q[1] * q[2] * k[2] * (q[3] + v[3])
    return int(flops * (2.5 if backward else 1) * (0.5 if given.get("is_causal") else 1))
