"""Random numbers as eager execution draws them: op by op in its order, each into a tensor with its
strides. A generator fills some tensors in the order in which they lie and others in the order of their
indices; which one depends on the device, the operator and the strides. So here the same operator fills
a tensor with the same strides.

`tarn::drawn` stands for that from functional.py to source.py, which reads it as an empty tensor and the
operator in place. It is never called."""
from __future__ import annotations

from typing import Any, Optional, Sequence

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
    aten.randint_like.default: "random_.to", aten.randint_like.low_dtype: "random_",
    aten.exponential_.default: "exponential_.default", aten.cauchy_.default: "cauchy_.default",
    aten.geometric_.default: "geometric_.default", aten.log_normal_.default: "log_normal_.default"}
_BY_INDEX = ("scaled_dot_product", "flash_attention", "efficient_attention", "multinomial")

_library = torch.library.Library("tarn", "FRAGMENT")  # pylint: disable=not-callable
_library.define(  # number: no two are equal, so that no pass makes one of them
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
        if numbers is None:
            return super().run_node(n)
        made, self._count, shares = n.meta["val"], self._count + 1, _shares(n)
        drawn = getattr(torch.ops.tarn, DRAWN)(
            _FILLS[n.target], self._count, made.shape, made.stride(), made.dtype, made.device,
            numbers, None if shares is None else self.env[shares])
        return self.env[n.args[0]].copy_(drawn) if n.target._schema.is_mutable else drawn


def _numbers(node: Any) -> Optional[list[Any]]:
    """The numbers that a call of one of _FILLS is given, or None if it is another call."""
    if node.op != "call_function" or node.target not in _FILLS or node.kwargs.get("generator"):
        return None
    numbers = [node.args[i] if i < len(node.args) else node.kwargs.get(a.name, a.default_value)
               for i, a in enumerate(node.target._schema.arguments) if i and not a.kwarg_only]
    numbers = [n for n in numbers if not isinstance(n, torch.fx.Node)]
    return numbers if all(isinstance(n, (bool, int, float)) for n in numbers) else None


def _shares(node: Any) -> Any:
    """The node of the shares of ones that `bernoulli` is given, or None."""
    return node.args[-1] if _FILLS[node.target] == "bernoulli_.Tensor" else None


def layouts(module: Any) -> list[Any]:
    """For each random op of a captured graph, in order: the layouts of the tensors that it reads, or
    None if they do not decide which number is drawn where. Raises Refused."""
    found = []
    for node in filter(is_random, module.graph.nodes):
        read = [other.meta["val"] for other in node.all_input_nodes]
        if _numbers(node) is not None:
            shares = _shares(node)
            found.append(None if shares is None else [layout(shares.meta["val"])])
        elif any(name in str(node.target) for name in _BY_INDEX):
            found.append(None)
        elif node.target._schema.is_mutable and not all(t.is_contiguous() for t in read):
            raise Refused(f"{node.target} draws random numbers into a tensor that is not contiguous")
        else:
            found.append([layout(t) for t in read])
    return found


def layout(tensor: Any) -> Any:
    return tuple(tensor.shape), tensor.stride()
