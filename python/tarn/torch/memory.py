"""The CPU allocator of PyTorch, replaced by one that serves planned addresses (cpu.cpp, tape.h)."""
import ctypes as c
import functools
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from torch.utils import cpp_extension

from .lowering import view_of

ALIGNMENT = 64  # of PyTorch's CPU allocator


def compiled(source, *flags):
    """The path of a library made from a file of this package, once for each version of torch."""
    version = torch.__version__.split("+", maxsplit=1)[0].replace(".", "_")
    return cpp_extension.load(f"tarn_{source.stem}_{version}", [str(source)],
                              extra_cflags=["-O2", "-std=c++20", *flags], with_cuda=False,
                              is_python_module=False)


def declare(functions, *counts):
    """Says what the functions take and return; `counts`: those that return a number."""
    for name in ("tape_events", "tape_alive", *counts):
        getattr(functions, "tarn_" + name).restype = c.c_int64
    functions.tarn_tape_events.argtypes = [c.c_void_p]
    functions.tarn_tape_plan.argtypes = [c.c_void_p] * 3 + [c.c_int64, c.c_void_p, c.c_int64]
    functions.tarn_tape_told.argtypes = [c.c_int64] * 3
    functions.tarn_tape_counts.argtypes = [c.c_void_p]
    return functions


@functools.lru_cache(maxsize=None)
def allocator():
    """Compiles the allocator where that was not done yet, installs it for this process and returns
    its functions. Tensors from before keep their memory."""
    path = compiled(Path(__file__).with_name("cpu.cpp"))
    functions = declare(c.CDLL(path), "live", "peak", "requests", "frame_summarize")
    functions.tarn_arena.argtypes = [c.c_void_p, c.c_int64]
    functions.tarn_arena_drop.argtypes = [c.c_void_p]
    functions.tarn_frame_begin.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_int64]
    functions.tarn_frame_summarize.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_void_p]
    functions.tarn_install()
    return functions


events = nullcontext  # the CPU has no streams, and no events between them


class Arena:
    """Bytes in which planned tensors lie."""

    def __init__(self, size):
        self._bytes = torch.empty(size + 4096, dtype=torch.uint8)
        self._shift = -self._bytes.data_ptr() % 4096
        self.size, self.base = size, self._bytes.data_ptr() + self._shift
        allocator().tarn_arena(self.base, size)

    def __del__(self):
        if hasattr(self, "base") and not sys.is_finalizing():  # then tensors may end after it
            allocator().tarn_arena_drop(self.base)

    def tensor(self, offset, like):
        """The bytes from `offset` on, as the storage under a tensor like this one."""
        start, remainder = divmod(self._shift + offset, like.element_size())
        assert remainder == 0
        return view_of(self._bytes.untyped_storage(), like, start)

    def bytes(self, offset, size):
        return self._bytes[self._shift + offset:self._shift + offset + size]


@contextmanager
def traced():
    """Notes what an op asks for while it runs on the heap."""
    allocator().tarn_frame_trace()
    try:
        yield
    finally:
        allocator().tarn_frame_end()


def summarize(outputs):
    """Of what was traced: (workspace, the request that each output was or -1, temporaries alive)"""
    count = len(outputs)
    addresses = (c.c_void_p * count)(*(o.untyped_storage().data_ptr() for o in outputs))
    ordinals, kept = (c.c_int64 * count)(), c.c_int64()
    workspace = allocator().tarn_frame_summarize(addresses, count, ordinals, c.byref(kept))
    return workspace, list(ordinals), kept.value
