"""Captures the work of a function as a CUDA graph."""
from __future__ import annotations

import gc
import warnings
from contextlib import contextmanager
from collections.abc import Iterator
from typing import Any, Callable, Sequence

import torch

from .memory import allocator


def captured(call: Callable[[], None], generators: Sequence[Any] = ()) -> tuple[Any, int, int]:
    """Captures what `call` does on the current stream. Returns the graph, the memory pool of what it has
    requested, and the bytes of that pool. generators: those that it uses beside PyTorch's own."""
    functions, graph = allocator("cuda"), torch.cuda.CUDAGraph()
    if tuple(map(int, torch.__version__.split(".")[:2])) < (2, 14):  # later it warns, and does nothing
        for generator in generators:
            graph.register_generator_state(generator)
    torch.cuda.synchronize()
    with _collected_later():
        pool, failed = functions.tarn_cuda_pool_open(), True
        try:
            graph.capture_begin(capture_error_mode="thread_local")
            try:
                call()
                failed = False
            finally:
                try:
                    _end(graph)
                except Exception:  # pylint: disable=broad-except
                    _settle()
                    if not failed:  # else there is a cause
                        failed = True
                        raise
        finally:
            size = functions.tarn_cuda_pool_close()
            if failed:
                graph.reset()
                functions.tarn_cuda_pool_drop(pool)
    return graph, pool, size


def _end(graph: Any) -> None:
    with warnings.catch_warnings():  # a part may have nothing to launch
        warnings.filterwarnings("ignore", "The CUDA Graph is empty")
        graph.capture_end()


def _settle() -> None:
    """After a capture that could not be ended. The generators of PyTorch 2.11 take it for going on, and
    refuse to draw, until another one ends."""
    empty = torch.cuda.CUDAGraph()
    empty.capture_begin(capture_error_mode="thread_local")
    _end(empty)
    empty.reset()


@contextmanager
def _collected_later() -> Iterator[None]:
    """Python frees nothing meanwhile that a capture forbids to free."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()
