"""Masks of attention that mask nothing. A program that is told that it is being compiled may make one
where it makes none in eager execution, because it must not look at values then (transformers does);
and attention with a mask is another kernel, which is slower and may keep all scores."""
from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

ATTENTION = (torch.nn.functional.scaled_dot_product_attention,
             torch._C._nn.scaled_dot_product_attention)
MASK = 3  # its position among the arguments
LARGEST = 64 << 20  # bytes that are made to look at a mask


class _Unknown(Exception):
    """What a mask has is not known before the step runs."""


class _Repeatable(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """What draws numbers has other values each time."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded in func.tags:
            raise _Unknown
        return func(*args, **(kwargs or {}))


def drop_idle_masks(module: torch.fx.GraphModule) -> None:
    """Removes masks from calls of attention that depend on no input, and let everything through."""
    idle: dict[Any, tuple[Any, ...]] = {}  # what makes them, by mask; nothing: it masks
    for node in module.graph.nodes:
        if node.op != "call_function" or node.target not in ATTENTION:
            continue
        mask = node.kwargs.get("attn_mask", node.args[MASK] if len(node.args) > MASK else None)
        if not isinstance(mask, torch.fx.Node):
            continue
        if mask not in idle:
            idle[mask] = _idle(mask)
        if idle[mask] and _same_batch(node):
            if "attn_mask" in node.kwargs:
                node.update_kwarg("attn_mask", None)
            else:
                node.update_arg(MASK, None)
    made = {node for calls in idle.values() for node in calls}
    for node in reversed(module.graph.nodes):
        if node in made and not node.users:
            module.graph.erase_node(node)
    if made:
        module.recompile()


def _value(node: Any) -> Any:
    return node.meta.get("example_value", node.meta.get("val"))


def _same_batch(node: Any) -> bool:
    """A mask of a larger batch makes the results larger."""
    query, result = _value(node.args[0]) if node.args else None, _value(node)
    return (isinstance(query, torch.Tensor) and isinstance(result, torch.Tensor)
            and query.shape[:-1] == result.shape[:-1])


def _made_from(mask: Any) -> dict[Any, None]:
    """The calls that make it, itself the last. Raises _Unknown if one of them takes an input, or
    another one that is not attention takes what one of them makes, and so may write to it."""
    found: dict[Any, None] = {}
    left = [mask]
    while left:
        node = left.pop()
        if node in found:
            continue
        value = _value(node)
        if node.op not in ("call_function", "call_method") or (
                isinstance(value, torch.Tensor) and _owned(value) > LARGEST):
            raise _Unknown
        found[node] = None
        left += node.all_input_nodes
    for node in found:
        for user in node.users:
            if user not in found and not (user.op == "call_function" and user.target in ATTENTION):
                raise _Unknown
    return found


def _owned(value: torch.Tensor) -> int:
    """Bytes, without those of repeated ones."""
    count = value.element_size()
    for length, stride in zip(value.shape, value.stride()):
        count *= length if stride else 1
    return int(count)


def _idle(mask: Any) -> tuple[Any, ...]:
    """What makes it, if it lets everything through."""
    try:
        calls = _made_from(mask)
        values: dict[Any, Any] = {}
        with torch.no_grad(), _Repeatable():
            for node in mask.graph.nodes:
                if node in calls:
                    args, kwargs = torch.fx.map_arg((node.args, node.kwargs), values.__getitem__)
                    values[node] = (getattr(args[0], node.target)(*args[1:], **kwargs)
                                    if node.op == "call_method" else node.target(*args, **kwargs))
        value = values[mask]
        for dim in range(value.dim()):  # what is repeated is looked at once
            if value.shape[dim] and not value.stride(dim):
                value = value.narrow(dim, 0, 1)
        lets_through = value if value.dtype == torch.bool else value == 0
        return tuple(calls) if lets_through.all() else ()
    except Exception:  # pylint: disable=broad-except
        return ()  # calls that only the whole trace can make
