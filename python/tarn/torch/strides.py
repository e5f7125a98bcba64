"""The strides of results. For some ops (batch norm and gradients of losses on the CPU) a fake tensor
keeps the strides of the input, but the kernel returns a contiguous tensor. A later reshape, which
is a view in the trace, then needs a copy. Such a step is traced again with the strides of kernels."""
from __future__ import annotations

from typing import Any, Hashable, Mapping, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from .tensors import flat, tensors_of

Strides = Mapping[Hashable, Tuple[Any, ...]]  # of an op's results, by what it was given
TRIALS = 8  # of tracing a step


class Otherwise(Exception):
    """Some results had other strides than in the trace; its cause is the error of a later call."""

    def __init__(self, found: Strides) -> None:
        super().__init__()
        self.found = found


class Fakes(FakeTensorMode):  # type: ignore[misc, unused-ignore]
    """A mode in which results have the strides that were found."""

    def __init__(self, found: Strides, **options: Any) -> None:
        super().__init__(**options)
        self._found = found

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().dispatch(func, types, args, kwargs)
        strides = self._found.get(_given(func, args, kwargs or {})) if self._found else None
        if strides is None:
            return made
        corrected = [t if t is None or stride is None or t.stride() == stride
                 else t.new_empty_strided(t.shape, stride)
                 for t, stride in zip(flat(made), strides)]
        return corrected[0] if isinstance(made, torch.Tensor) else type(made)(corrected)


class Watching(torch.fx.Interpreter):  # type: ignore[misc, unused-ignore]
    """Runs a graph. Raises Otherwise if a call fails after results with other strides than traced."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.found: dict[Hashable, Tuple[Any, ...]] = {}

    def run_node(self, n: Any) -> Any:
        return self.watched(n, self.env.__getitem__, lambda: super(Watching, self).run_node(n))

    def watched(self, node: Any, value: Any, run: Any) -> Any:
        """Calls a node by `run`, and returns its result. value: gives the value of an argument."""
        try:
            result = run()
        except RuntimeError as error:
            if self.found and not isinstance(error, torch.OutOfMemoryError):
                raise Otherwise(self.found) from error
            raise
        if (isinstance(node.target, torch._ops.OpOverload) and not _makes_views(node.target)
                and _strides(node.meta["val"]) != _strides(result)):
            self._find(node, value, result)
        return result

    def _find(self, node: Any, value: Any, result: Any) -> None:
        traced, given = (torch.fx.node.map_arg((node.args, node.kwargs), of)
                         for of in (lambda n: n.meta["val"], value))
        if _strides(traced) == _strides(given):  # else the strides of the inputs may be the reason
            self.found[_given(node.target, *traced)] = tuple(
                None if t is None else t.stride() for t in flat(result))


def _strides(value: Any) -> Any:
    return [t.stride() for t in tensors_of(value)]


def _makes_views(function: Any) -> bool:
    return any(result.alias_info is not None for result in function._schema.returns)


def _given(function: Any, args: Any, kwargs: Any) -> Hashable:
    return function, tuple((t.shape, t.stride(), t.dtype) if isinstance(t, torch.Tensor) else repr(t)
                           for t in tree_leaves((args, kwargs)))
