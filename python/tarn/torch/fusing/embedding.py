"""The gradient of an embedding's table. Inductor adds it up with atomic operations, or leaves it to
`index_put`, which adds the rows of one index one after the other: 8,192 words of two types took 5.5 of
BERT's 41 ms on an H100. PyTorch's own kernel sorts as well, but adds up parts of ten rows side by
side. A table of a few rows is as many sums."""
from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import torch

FEW = 8  # rows: each reads the whole gradient
_lock = threading.Lock()
_inside = 0  # of `deterministic`: threads that are
_before: tuple[int, bool] = (0, True)  # the mode, and whether memory is filled, outside of it

_library = torch.library.Library("tarn", "DEF")  # pylint: disable=not-callable
_library.define("embedding_backward(Tensor gradient, Tensor indices, SymInt rows, SymInt padding)"
                " -> Tensor")


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Sums are not made with atomic operations. What PyTorch allocates is not filled for that."""
    global _before, _inside  # pylint: disable=global-statement
    fills = torch.utils.deterministic
    with _lock:
        if not _inside:
            _before = torch.get_deterministic_debug_mode(), fills.fill_uninitialized_memory
            if not _before[0]:
                torch.set_deterministic_debug_mode(1)
                fills.fill_uninitialized_memory = False
        _inside += 1
    try:
        yield
    finally:
        with _lock:
            _inside -= 1
            if not _inside:
                torch.set_deterministic_debug_mode(_before[0])
                fills.fill_uninitialized_memory = _before[1]


def _call(gradient: torch.Tensor, indices: torch.Tensor, rows: int, padding: int) -> torch.Tensor:
    switch = deterministic() if gradient.is_cuda else contextlib.nullcontext()
    with switch:  # the sums on a CPU are made in order anyway
        made: torch.Tensor = torch.ops.aten.embedding_dense_backward(gradient, indices, rows, padding,
                                                                     False)
    return made


def _fake(gradient: torch.Tensor, indices: torch.Tensor, rows: int, padding: int) -> torch.Tensor:
    del indices, padding
    return gradient.new_empty((rows, gradient.shape[-1]))


_library.impl("embedding_backward", _call, "CompositeExplicitAutograd")
torch.library.register_fake("tarn::embedding_backward", _fake, lib=_library)


def embedding_backward(decomposition: Any, gradient: Any, indices: Any, rows: int, padding: int,
                       by_frequency: bool) -> Any:
    """A decomposition of aten.embedding_dense_backward. decomposition: PyTorch's."""
    if by_frequency:
        return decomposition(gradient, indices, rows, padding, by_frequency)
    if rows > FEW:
        return torch.ops.tarn.embedding_backward(gradient, indices, rows, padding)
    flat = gradient.reshape(-1, 1, gradient.shape[-1])
    numbers = torch.arange(rows, device=indices.device).reshape(1, -1, 1)
    is_its = (indices.reshape(-1, 1, 1) == numbers) & (numbers != padding)
    return torch.where(is_its, flat, 0).sum(0)
