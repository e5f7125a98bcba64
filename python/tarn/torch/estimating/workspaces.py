"""Memory that an op takes beside its results and gives back, by rule.

Products take none: cuBLAS has a workspace for each handle, which it keeps (Device.libraries). What
cuDNN takes for a convolution is not known before it has chosen an algorithm on the device: it
counts as none, unless a table or a measured profile says otherwise."""
from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Union

import torch

Rule = Union[int, Callable[[Mapping[str, Any]], int]]


def arguments_of(node: torch.fx.Node) -> dict[str, Any]:
    """The arguments of a call by their names in its schema; fake tensors stand for nodes."""
    args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), lambda n: n.meta.get("val"))
    target: Any = node.target
    given = {a.name: a.default_value for a in target._schema.arguments}
    return {**given, **dict(zip(given, args)), **kwargs}


def _flash_backward(given: Mapping[str, Any]) -> int:
    """Gradients of queries are summed up in fp32, in rows of 128 words. Those of keys and values
    that several heads of queries share are made for each of these heads."""
    q, k = given["query"], given["key"]
    rows, width = -(-q.shape[2] // 128) * 128, -(-q.shape[3] // 32) * 32
    heads = q.shape[1] // k.shape[1]
    shared = 2 * heads * k.numel() * k.element_size() if heads > 1 else 0
    return int(4 * q.shape[0] * q.shape[1] * rows * (width + 1) + shared)


def _by_channels(tensor: torch.Tensor) -> bool:
    return not tensor.is_contiguous() and tensor.is_contiguous(memory_format=torch.channels_last)


def _blocked(weight: torch.Tensor, groups: int) -> int:
    """Bytes of the weights in oneDNN's layout: channels of each group come in blocks of 16."""
    blocks = -(-weight.shape[0] // groups // 16) * -(-weight.shape[1] // 16)
    return int(groups * blocks * 256 * weight.shape[2:].numel() * weight.element_size())


def _onednn(given: Mapping[str, Any]) -> int:
    """oneDNN copies weights and activations to layouts of its own, in blocks of 16 channels, which
    images of a few channels do without. Products (1 x 1 without a stride) need no other layout."""
    x, weight = given["input"], given["weight"]
    if x.dim() != 4:
        return 0
    backward = "grad_output" in given
    if (tuple(weight.shape[2:]), tuple(given["stride"]), given["groups"]) == ((1, 1), (1, 1), 1):
        mixed = backward and _by_channels(x) != _by_channels(given["grad_output"])
        return int(given["grad_output"].nbytes) if mixed else 0
    if _by_channels(x):  # activations stay as they are
        return int(weight.nbytes) + (_blocked(weight, given["groups"]) if backward else 0)
    made = given["grad_output"].numel() if backward else _made(given)
    return int(weight.nbytes + (x.nbytes if x.shape[1] >= 16 else 0) + made * x.element_size())


def _made_contiguous(given: Mapping[str, Any]) -> int:
    return 0 if given["input"].is_contiguous() else int(given["input"].nbytes)


def _by_images(given: Mapping[str, Any]) -> int:
    """Batch-norm on images that are not laid out by channels works in a copy of its gradient."""
    x = given["input"]
    return int(x.nbytes) if x.dim() > 2 and x.is_contiguous() else 0


def _made(given: Mapping[str, Any]) -> int:
    """Elements of a convolution's result."""
    x, weight = given["input"], given["weight"]
    channels = weight.shape[1] * given["groups"] if given["transposed"] else weight.shape[0]
    if given["transposed"]:
        sizes = [(n - 1) * s + k for n, s, k in zip(x.shape[2:], given["stride"], weight.shape[2:])]
    else:
        sizes = [(n + 2 * p - d * (k - 1) - 1) // s + 1 for n, p, d, k, s in
                 zip(x.shape[2:], given["padding"], given["dilation"], weight.shape[2:],
                     given["stride"])]
    return int(x.shape[0] * channels * math.prod(sizes))


# By the names of operators: bytes, or a function of their arguments (workspaces.arguments_of).
CUDA: dict[str, Rule] = {"aten::_scaled_dot_product_flash_attention_backward": _flash_backward}
CPU: dict[str, Rule] = {"aten::convolution": _onednn, "aten::convolution_backward": _onednn,
                        "aten::native_layer_norm": _made_contiguous,
                        "aten::native_layer_norm_backward": _made_contiguous,
                        "aten::native_batch_norm_backward": _by_images}


def workspace_of(node: torch.fx.Node, table: Mapping[str, Rule]) -> int:
    target: Any = node.target
    rule = table.get(target._schema.name, 0)
    return rule if isinstance(rule, int) else rule(arguments_of(node))
