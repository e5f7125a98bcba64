"""A kernel, or a call of a library, as a target of an fx node: a function of tensors that says itself
what it writes to. What ATen's schemas say of its operators."""
from __future__ import annotations

import types
from typing import Any, Callable, Optional, Sequence


class Kernel:
    """Called with tensors, returns those that it has made.

    writes    positions of arguments that it writes in place
    is_random whether it draws random numbers
    key       of what it computes: equal for kernels that do the same to tensors of the same kinds
    into      the same, called with the arguments and, behind them, the tensors to make; or None
    """

    def __init__(self, name: str, writes: Sequence[int] = (), is_random: bool = False,
                 key: str = "") -> None:
        self.writes, self.is_random, self.key = tuple(writes), is_random, key or name
        self.call: Callable[..., Any] = _not_there
        self.into: Optional[Callable[..., Any]] = None
        self.tags: Sequence[Any] = ()
        self.__name__ = self.__qualname__ = name
        self.__module__ = __name__  # for fx
        self._schema = types.SimpleNamespace(name=f"inductor::{name}", arguments=[],
                                             is_mutable=bool(writes))

    def __call__(self, *tensors: Any) -> Any:
        return self.call(*tensors)

    def __str__(self) -> str:
        return f"inductor.{self.key}"


def _not_there(*_tensors: Any) -> Any:
    raise RuntimeError("a kernel is called that is not compiled")
