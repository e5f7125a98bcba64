"""A backward pass without autograd's engine, which asks CUDA for the streams of a GPU that is not
there: the same nodes, called in the engine's order."""
from __future__ import annotations

import contextlib
import heapq
import itertools
from collections.abc import Iterator
from typing import Any, Optional
from unittest import mock

import torch
from torch.autograd.function import BackwardCFunction


class Hooks:
    """The hooks that the program registers on tensors while it is captured, which the engine would
    call: by tensor for leaves, by node and output for other tensors."""

    def __init__(self) -> None:
        self._on: dict[Any, list[Any]] = {}
        self._alive: list[Any] = []  # what the keys belong to

    @contextlib.contextmanager
    def recorded(self) -> Iterator[None]:
        original = torch.Tensor.register_hook

        def register_hook(tensor: Any, hook: Any) -> Any:
            handle = original(tensor, hook)
            node = tensor.grad_fn
            key = id(tensor) if node is None else (id(node), tensor.output_nr)
            self._alive.append(tensor if node is None else node)
            self._on.setdefault(key, []).append(hook)
            return handle

        with mock.patch.object(torch.Tensor, "register_hook", register_hook):
            yield

    def applied(self, key: Any, gradient: Any) -> Any:
        for hook in self._on.get(key, ()):
            changed = hook(gradient)
            gradient = gradient if changed is None else changed
        return gradient


def gradients(loss: Any, leaves: Any, hooks: Hooks) -> list[Optional[Any]]:
    """As torch.autograd.grad(loss, leaves, allow_unused=True)."""
    if loss.grad_fn is None:
        return [torch.ones_like(loss) if leaf is loss else None for leaf in leaves]
    waits, order = _waits(loss.grad_fn), itertools.count()
    sums: dict[Any, dict[int, Any]] = {loss.grad_fn: {loss.output_nr: torch.ones_like(loss)}}
    found: dict[int, Any] = {}
    ready = [(0, next(order), loss.grad_fn)]
    while ready:
        node = heapq.heappop(ready)[2]
        given = sums.pop(node, {})
        if hasattr(node, "variable"):  # the end: AccumulateGrad
            if 0 in given:
                found[id(node.variable)] = hooks.applied(id(node.variable), given[0])
            continue
        given = {number: hooks.applied((id(node), number), gradient)
                 for number, gradient in given.items()}
        made = _call(node, given) if given else itertools.repeat(None)
        for (following, number), gradient in zip(node.next_functions, made):
            if following is None:
                continue
            if gradient is not None:
                at = sums.setdefault(following, {})
                gradient = _as_expected(following, number, gradient)
                at[number] = gradient if number not in at else at[number] + gradient
            waits[following] -= 1
            if not waits[following]:
                heapq.heappush(ready, (-following._sequence_nr(), next(order), following))
    return [found.get(id(leaf)) for leaf in leaves]


def _waits(root: Any) -> dict[Any, int]:
    """How many nodes each node waits for."""
    waits: dict[Any, int] = {}
    seen, rest = {root}, [root]
    while rest:
        for following, _ in rest.pop().next_functions:
            if following is not None:
                waits[following] = waits.get(following, 0) + 1
                if following not in seen:
                    seen.add(following)
                    rest.append(following)
    return waits


def _call(node: Any, given: dict[int, Any]) -> Any:
    metadata = node._input_metadata
    if isinstance(node, BackwardCFunction):
        zeros = getattr(node, "materialize_grads", True)
        made = node.apply(*(given[i] if i in given or not zeros else
                            torch.zeros(m.shape, dtype=m.dtype, device=m.device)
                            for i, m in enumerate(metadata)))
    else:
        with torch.no_grad():
            made = node(*(given.get(i) for i in range(len(metadata))))
    return made if isinstance(made, (tuple, list)) else (made,)


def _as_expected(node: Any, number: int, gradient: Any) -> Any:
    """The engine's validate_outputs: of the type and shape of what was made."""
    expected = node._input_metadata[number] if hasattr(node, "_input_metadata") else None
    if expected is None:
        return gradient
    with torch.no_grad():
        if tuple(gradient.shape) != tuple(expected.shape):
            gradient = gradient.sum_to_size(expected.shape)
        return gradient if gradient.dtype == expected.dtype else gradient.to(expected.dtype)
