"""Random numbers as eager execution draws them: op by op in its order, each into a tensor with its
strides. A generator fills some tensors in the order in which they lie and others in the order of their
indices; which one depends on the device, the operator and the strides. So here the same operator fills
a tensor with the same strides.

`tarn::drawn` stands for that from functional.py to source.py, which reads it as an empty tensor and the
operator in place. It is never run."""
from __future__ import annotations

from typing import Any, NamedTuple, Optional, Sequence

import torch

from ..capture import is_random
from .source import DRAWN, Refused

aten = torch.ops.aten

# Operators that draw in place, and those whose result is an empty tensor that one of them fills: by
# what it is called in a program.
_FILLS: dict[Any, str] = {
    aten.bernoulli_.float: "bernoulli_.float", aten.bernoulli.p: "bernoulli_.float",
    aten.bernoulli_.Tensor: "bernoulli_.Tensor", aten.bernoulli.default: "bernoulli_.Tensor",
    aten.uniform_.default: "uniform_.default", aten.rand_like.default: "uniform_.default",
    aten.normal_.default: "normal_.default", aten.randn_like.default: "normal_.default",
    aten.rand.default: "uniform_.default", aten.randn.default: "normal_.default",
    aten.randint_like.default: "random_.to", aten.randint_like.low_dtype: "random_",
    aten.randint.default: "random_.to", aten.randint.low: "random_",
    aten.exponential_.default: "exponential_.default", aten.cauchy_.default: "cauchy_.default",
    aten.geometric_.default: "geometric_.default", aten.log_normal_.default: "log_normal_.default"}
# Others that draw by index, whatever the layouts of what they read (attention's backward passes draw
# again what a seed and an offset that they read say), and one that keeps the layout.
_ATTENTION = ("_scaled_dot_product_flash_attention", "_scaled_dot_product_flash_attention_for_cpu",
              "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention",
              "_scaled_dot_product_fused_attention_overrideable")
_BY_INDEX = {packet for packet in (getattr(aten, name, None) for name in (
    "multinomial", *_ATTENTION, *(name + "_backward" for name in _ATTENTION),
    "_flash_attention_forward", "_efficient_attention_forward", "_cudnn_attention_forward",
    "_flash_attention_backward", "_efficient_attention_backward", "_cudnn_attention_backward"))
    if packet}
_KEEPS_LAYOUT = {aten.native_dropout}


class Draw(NamedTuple):
    """A random op of eager execution. operator: its name, or "" where its number, which
    `tarn::drawn` carries, says which one it is; read: layouts of what it reads, where they decide
    which number goes where."""
    operator: str
    read: Optional[list[Any]]


_library = torch.library.Library("tarn", "FRAGMENT")  # pylint: disable=not-callable
_library.define(  # number: among all random ops of eager execution, from 1
    f"{DRAWN}(str operator, SymInt number, SymInt[] size, SymInt[] stride, ScalarType dtype, "
    "Device device, Scalar[] numbers, Tensor? shares) -> Tensor", tags=(torch.Tag.nondeterministic_seeded,))


def _fake(operator: str, number: int, size: Sequence[int], stride: Sequence[int], dtype: Any,
          device: Any, numbers: Sequence[Any], shares: Optional[torch.Tensor]) -> torch.Tensor:
    del operator, number, numbers, shares
    return torch.empty_strided(size, stride, dtype=dtype, device=device)


torch.library.register_fake(f"tarn::{DRAWN}", _fake, lib=_library)


class Drawing(torch.fx.Interpreter):  # type: ignore[misc, unused-ignore]
    """Runs a captured graph, and draws by `tarn::drawn`."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self._count = 0

    def run_node(self, n: Any) -> Any:
        numbers = _numbers(n)
        self._count += is_random(n)
        if numbers is None:
            return super().run_node(n)
        made, shares = n.meta["val"], _shares(n)
        drawn = getattr(torch.ops.tarn, DRAWN)(
            _FILLS[n.target], self._count, made.shape, made.stride(), made.dtype, made.device,
            numbers, None if shares is None else self.env[shares])
        return self.env[n.args[0]].copy_(drawn) if n.target._schema.is_mutable else drawn


def _numbers(node: Any) -> Optional[list[Any]]:
    """The numbers that a call of one of _FILLS is given, or None if it is another call."""
    if node.op != "call_function" or node.target not in _FILLS or node.kwargs.get("generator"):
        return None
    numbers = [node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
               for i, a in enumerate(node.target._schema.arguments)
               if a.name not in ("self", "size") and not a.kwarg_only]
    if _FILLS[node.target] == "bernoulli_.Tensor":
        numbers = []  # its shares are a tensor: see _shares
    return numbers if all(isinstance(n, (bool, int, float)) for n in numbers) else None


def _shares(node: Any) -> Any:
    """The node of the shares of ones that `bernoulli` is given, or None."""
    return node.args[-1] if _FILLS[node.target] == "bernoulli_.Tensor" else None


def draws_of(module: Any) -> list[Draw]:
    """The random ops of a captured graph, in order. Raises Refused."""
    found = []
    for node in filter(is_random, module.graph.nodes):
        read = [other.meta["val"] for other in node.all_input_nodes]
        packet = getattr(node.target, "overloadpacket", None)
        operator = node.target._schema.name.replace("::", ".")
        if _numbers(node) is not None:
            shares = _shares(node)
            found.append(Draw("", None if shares is None else [layout(shares.meta["val"])]))
        elif packet in _BY_INDEX or packet in _KEEPS_LAYOUT:
            found.append(Draw(operator, None if packet in _BY_INDEX else [layout(t) for t in read]))
        elif not all(t.is_contiguous() for t in read):  # nor is it known how its result lies
            raise Refused(f"{node.target} draws random numbers for a tensor that is not contiguous")
        else:
            found.append(Draw(operator, [layout(t) for t in read]))
    return found


def layout(tensor: Any) -> Any:
    """Alignment decides how many numbers at once CUDA's dropout draws."""
    begin = tensor.storage_offset() * tensor.element_size() % 16
    return tuple(tensor.shape), tensor.stride(), begin
