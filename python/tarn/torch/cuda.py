"""tarn.torch.allocator on CUDA: PyTorch's pluggable allocator, and the events that order streams.
It has to be installed before anything is on the GPU, and for the whole process: torch.cuda.MemPool
with it would ask for segments and keep them, so that single requests would never come here."""
import ctypes as c
import functools
import itertools
from contextlib import contextmanager
from pathlib import Path

import torch

from .memory import compiled, declare
from .recording import RECORD, WAIT

ALIGNMENT = 512


@functools.lru_cache(maxsize=None)
def library():
    """(path, functions)"""
    major = (torch.version.cuda or "13").split(".", maxsplit=1)[0]
    path = compiled(Path(__file__).with_name("cuda.cpp"), f"-DCUDART_MAJOR={major}")
    functions = declare(c.CDLL(path), "cuda_stream")
    functions.tarn_cuda_stream.argtypes = [c.c_void_p]
    return path, functions


@functools.lru_cache(maxsize=None)
def allocator():
    """Installs the allocator for this process and returns its functions."""
    path, functions = library()
    pluggable = torch.cuda.memory.CUDAPluggableAllocator(path, "tarn_cuda_allocate",
                                                         "tarn_cuda_release")
    use = c.cast(functions.tarn_cuda_use, c.c_void_p).value
    pluggable.allocator().set_record_stream_fn(use)
    torch.cuda.memory.change_current_allocator(pluggable)
    return functions


class Arena:
    def __init__(self, size):
        self._bytes = torch.empty(size, dtype=torch.uint8, device="cuda")
        self.size, self.base = size, self._bytes.data_ptr()


@contextmanager
def events(functions):
    """Tells the tape of every event that is recorded or waited for, numbered as they come."""
    kind, numbers, count = torch.cuda.Event, {}, itertools.count()
    record, wait = kind.record, kind.wait

    def told(action, event, stream):
        stream = torch.cuda.current_stream() if stream is None else stream
        functions.tarn_tape_told(action, numbers[id(event)],
                                 functions.tarn_cuda_stream(stream.cuda_stream))

    def recorded(event, stream=None):
        record(event, stream)
        numbers[id(event)] = next(count)
        told(RECORD, event, stream)

    def waited(event, stream=None):
        wait(event, stream)
        if id(event) in numbers:  # one of an iteration before orders nothing
            told(WAIT, event, stream)

    kind.record, kind.wait = recorded, waited
    try:
        yield
    finally:
        kind.record, kind.wait = record, wait
