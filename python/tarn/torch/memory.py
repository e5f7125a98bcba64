"""The allocators of PyTorch, replaced by ones that serve planned addresses (cpu.cpp, cuda.cpp)."""
from __future__ import annotations

import ctypes as c
import functools
import sys
from pathlib import Path
from typing import Any

import torch
from torch.utils import cpp_extension

from .tensors import view_of

ALIGNMENT = {"cpu": 64, "cuda": 512}  # of PyTorch's allocators


def rounded(size: int, alignment: int) -> int:
    """Up to a multiple of the alignment."""
    return -(-size // alignment) * alignment


@functools.lru_cache(maxsize=None)
def library(name: str) -> tuple[str, Any]:
    """(path, functions) of a file of this package, compiled once for each version of torch."""
    version = torch.__version__.split("+", maxsplit=1)[0].replace(".", "_")
    cudart = (torch.version.cuda or "13").split(".", maxsplit=1)[0]
    headers, flags = [], []
    if name == "cuda":  # not with_cuda, which wants a compiler for kernels
        packages = sorted(Path(torch.__file__).parents[1].glob("nvidia/*/include"))
        found = [Path(cpp_extension.CUDA_HOME or "/usr/local/cuda", "include"), *packages,
                 Path("/usr/include")]  # a package may have the header, and not what it includes
        headers = [str(folder) for folder in found if (folder / "cuda_runtime_api.h").exists()
                   and (folder / "crt/host_defines.h").exists()][:1]
        if not headers:
            raise RuntimeError("the allocator is compiled with cuda_runtime_api.h, which is not "
                               "here: pip install nvidia-cuda-runtime, or set CUDA_HOME")
        folder = Path(torch.__file__).with_name("lib")
        flags = ["-L" + str(folder), "-Wl,--no-as-needed", "-ltorch_cuda", "-lc10_cuda"]
    path = cpp_extension.load(
        f"tarn_{name}_{version}", [str(Path(__file__).with_name(name + ".cpp"))],
        extra_cflags=["-O2", "-std=c++20", f"-DCUDART_MAJOR={cudart}"], extra_ldflags=flags,
        extra_include_paths=headers, with_cuda=False, is_python_module=False)
    functions = c.CDLL(path)
    for function in ("arena", "frame_end", "frame_summarize", "live", "peak", "requests",
                     "tape_events"):
        getattr(functions, "tarn_" + function).restype = c.c_int64
    functions.tarn_arena.argtypes = [c.c_void_p, c.c_int64]
    functions.tarn_arena_drop.argtypes = [c.c_void_p]
    functions.tarn_frame_summarize.argtypes = [c.c_void_p, c.c_int64, c.c_void_p, c.c_void_p]
    functions.tarn_tape_events.argtypes = [c.c_void_p]
    functions.tarn_tape_make.argtypes = [c.c_void_p, c.c_int64]
    functions.tarn_tape_told.argtypes = [c.c_int64] * 3
    functions.tarn_tape_counts.argtypes = [c.c_void_p]
    return path, functions


@functools.lru_cache(maxsize=None)
def allocator(device: str = "cpu") -> Any:
    """Installs the allocator of a type of device for this process, compiled where that was not done
    yet, and returns its functions. On the CPU tensors from before keep their memory; on CUDA it has
    to come before anything is on the GPU. (torch.cuda.MemPool with it would ask for segments and
    keep them, so that single requests would never come here.)"""
    path, functions = library(device)
    if device == "cpu":
        functions.tarn_install()
        return functions
    functions.tarn_cuda_stream.restype = c.c_int64
    functions.tarn_cuda_stream.argtypes = [c.c_void_p]
    functions.tarn_cuda_pool_open.restype = functions.tarn_cuda_pool_close.restype = c.c_int64
    functions.tarn_cuda_pool_drop.argtypes = functions.tarn_cuda_generator.argtypes = [c.c_int64]
    functions.tarn_cuda_generator.restype = c.c_int64
    functions.tarn_cuda_install.restype = c.c_char_p
    functions.tarn_cuda_is_on_host.argtypes = [c.c_void_p]
    functions.tarn_cuda_swap.argtypes = [c.c_void_p, c.c_void_p]
    functions.tarn_cuda_copy.argtypes = [c.c_void_p, c.c_void_p, c.c_size_t, c.c_void_p]
    refused = functions.tarn_cuda_install()
    if refused:
        raise RuntimeError(refused.decode(errors="replace"))
    return functions


@functools.lru_cache(maxsize=None)
def frames(device: str) -> tuple[Any, Any]:
    """(begin, end) of an op's frame: of calls.h, without a turn of the interpreter's lock, because
    they take less time than that. begin takes the address of a `Frame`."""
    allocator(device)
    functions = c.PyDLL(library(device)[0])
    begin, end = functions.tarn_frame_begin, functions.tarn_frame_end
    begin.argtypes, begin.restype, end.restype = [c.c_void_p], None, c.c_int64
    return begin, end


class Frame(c.Structure):
    """Opened of calls.h. Slots are three numbers each: struct Slot of tape.h."""
    _fields_ = [("_slots", c.c_void_p), ("_count", c.c_int64), ("_workspace", c.c_void_p),
                ("_size", c.c_int64)]

    def __init__(self, slots: Any, workspace: Any) -> None:
        self._kept = (c.c_int64 * len(slots))(*slots)
        super().__init__(c.addressof(self._kept), len(slots) // 3, *workspace)


class Arena:
    """Bytes in which planned tensors lie, on a torch.device."""

    def __init__(self, size: Any, device: Any, host: Any = None, memory: Any = None) -> None:
        """host: a moving.Host, for what waits elsewhere. memory: makes what has the bytes, of their
        number (window.Memory); None: PyTorch has them."""
        self._functions, self.host = allocator(device.type), host
        self._memory = memory(size + 4096) if memory else None
        self._bytes = (self._memory.bytes if self._memory else
                       torch.empty(size + 4096, dtype=torch.uint8, device=device))
        # Never 0: PyTorch knows what a pluggable allocator has given by its address alone, and what
        # lies first in the arena would be taken for all of it.
        self._shift = 4096 - self._bytes.data_ptr() % 4096
        self.size, self.base = size, self._bytes.data_ptr() + self._shift
        self.session: Any = None  # of tarn, that runs over these bytes
        self.is_lost = False  # is it left to who keeps bytes of it?
        if not self._functions.tarn_arena(self.base, size):
            raise RuntimeError("there are more than 64 arenas")

    def __del__(self) -> None:
        if hasattr(self, "base") and sys and not sys.is_finalizing():  # tensors may end after it
            self._functions.tarn_arena_drop(self.base)
            if self._memory:
                self._memory.close()

    @property
    def is_registered(self) -> bool:
        """May its bytes be registered with other ranks?"""
        return self._memory is not None

    def register(self, window: Any) -> None:
        """The bytes of a plan's window, with communicators, where there are some."""
        if self._memory and window:
            begin = self._shift + window.offset
            self._memory.register(begin, begin + window.size)

    def lend(self, session: Any) -> None:
        """To a session of tarn, or to none; closes the one that has them."""
        had, self.session = self.session, session
        if had:
            had.close()

    def tensor(self, offset: Any, like: Any) -> Any:
        """The bytes from `offset` on, as the storage under a tensor like this one."""
        start, remainder = divmod(self._shift + offset, like.element_size())
        assert remainder == 0
        return view_of(self._bytes.untyped_storage(), like, start)

    def bytes(self, offset: Any, size: Any) -> Any:
        return self._bytes[self._shift + offset:self._shift + offset + size]


def summarize(functions: Any, outputs: Any) -> Any:
    """Of what was traced: (workspace, the request that each output was or -1, temporaries alive)"""
    count = len(outputs)
    addresses = (c.c_void_p * count)(*(o.untyped_storage().data_ptr() for o in outputs))
    ordinals, kept = (c.c_int64 * count)(), c.c_int64()
    workspace = functions.tarn_frame_summarize(addresses, count, ordinals, c.byref(kept))
    return workspace, list(ordinals), kept.value
