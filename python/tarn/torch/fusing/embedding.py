"""The gradient of an embedding's table. Inductor adds it up with atomic operations, or leaves it to
`index_put`, which adds the rows of one index one after the other: 8,192 words of two types took 5.5 of
BERT's 41 ms on an H100. PyTorch's own kernel sorts as well, but adds up parts of ten rows side by
side. A table of a few rows is as many sums."""
from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

import torch

FEW = 8  # rows: each reads the whole gradient

_library = torch.library.Library("tarn", "DEF")  # pylint: disable=not-callable
_library.define("embedding_backward(Tensor gradient, Tensor indices, SymInt rows, SymInt padding) -> Tensor")


@contextlib.contextmanager
def deterministic() -> Iterator[None]:
    """Sums are not made with atomic operations. What PyTorch allocates is not filled for that."""
    mode, fills = torch.get_deterministic_debug_mode(), torch.utils.deterministic
    was_filled = fills.fill_uninitialized_memory
    if not mode:
        torch.set_deterministic_debug_mode(1)
        fills.fill_uninitialized_memory = False
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode(mode)
        fills.fill_uninitialized_memory = was_filled


def _call(gradient: torch.Tensor, indices: torch.Tensor, rows: int, padding: int) -> torch.Tensor:
    with deterministic():
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
