"""How results of ops lie. PyTorch says of some ops that their results lie as their inputs do, and then
makes them contiguous (batch norm and many losses on the CPU): a later reshape, which was traced as a
view, is none. Such a step is traced again with what was found."""
from __future__ import annotations

from typing import Any, Hashable, Mapping, Tuple

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._pytree import tree_leaves

from .tensors import flat, tensors_of

Strides = Mapping[Hashable, Tuple[Any, ...]]  # of an op's results, by what it was given
TRIALS = 8  # of tracing a step


class Otherwise(Exception):
    """Some results did not lie as was traced; the cause is what failed."""

    def __init__(self, found: Strides) -> None:
        super().__init__()
        self.found = found


class Fakes(FakeTensorMode):  # type: ignore[misc, unused-ignore]
    """Whose results lie as was found."""

    def __init__(self, found: Strides, **options: Any) -> None:
        super().__init__(**options)
        self._found = found

    def dispatch(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = super().dispatch(func, types, args, kwargs)
        strides = self._found.get(_given(func, args, kwargs or {})) if self._found else None
        if strides is None:
            return made
        lying = [t if t is None or stride is None or t.stride() == stride
                 else t.new_empty_strided(t.shape, stride)
                 for t, stride in zip(flat(made), strides)]
        return lying[0] if isinstance(made, torch.Tensor) else type(made)(lying)


class Watching(torch.fx.Interpreter):  # type: ignore[misc, unused-ignore]
    """Runs a graph. Raises Otherwise where a call fails after results that did not lie as was traced."""

    def __init__(self, module: Any) -> None:
        super().__init__(module)
        self.found: dict[Hashable, Tuple[Any, ...]] = {}

    def run_node(self, n: Any) -> Any:
        return self.watched(n, self.env.__getitem__, lambda: super(Watching, self).run_node(n))

    def watched(self, node: Any, value: Any, run: Any) -> Any:
        """What `run` returns, which calls a node. value: of an argument."""
        try:
            result = run()
        except RuntimeError as error:
            if self.found and not isinstance(error, torch.OutOfMemoryError):
                raise Otherwise(self.found) from error
            raise
        if (isinstance(node.target, torch._ops.OpOverload) and not _makes_views(node.target)
                and _lie(node.meta["val"]) != _lie(result)):
            self._find(node, value, result)
        return result

    def _find(self, node: Any, value: Any, result: Any) -> None:
        traced, given = (torch.fx.node.map_arg((node.args, node.kwargs), of)
                         for of in (lambda n: n.meta["val"], value))
        if _lie(traced) == _lie(given):  # else it lies so because they do
            self.found[_given(node.target, *traced)] = tuple(
                None if t is None else t.stride() for t in flat(result))


def _lie(value: Any) -> Any:
    return [t.stride() for t in tensors_of(value)]


def _makes_views(function: Any) -> bool:
    return any(result.alias_info is not None for result in function._schema.returns)


def _given(function: Any, args: Any, kwargs: Any) -> Hashable:
    return function, tuple((t.shape, t.stride(), t.dtype) if isinstance(t, torch.Tensor) else repr(t)
                           for t in tree_leaves((args, kwargs)))
