"""NCCL's symmetric memory under an arena: its bytes are of ncclMemAlloc, and the range in which the
plan has what collectives reach (Plan.window) is registered with each communicator. The library is the
one that the process has loaded already."""
from __future__ import annotations

import ctypes as c
from typing import Any, Sequence

import torch

ALIGNMENT = 4096  # NCCL_WIN_REQUIRED_ALIGNMENT
COLL_SYMMETRIC = 1  # NCCL_WIN_COLL_SYMMETRIC


class Nccl:
    """The few functions of NCCL that windows need."""

    def __init__(self, library: str = "libnccl.so.2") -> None:
        try:
            self._library = c.CDLL(library)
            self._text = self._library.ncclGetErrorString
            for name in ("MemAlloc", "MemFree", "CommWindowRegister", "CommWindowDeregister"):
                getattr(self._library, "nccl" + name)
        except (OSError, AttributeError) as error:
            raise RuntimeError(f"symmetric memory needs NCCL 2.27 or later: {error}") from None
        self._text.restype = c.c_char_p

    def _call(self, name: str, *arguments: Any) -> None:
        code = getattr(self._library, "nccl" + name)(*arguments)
        if code:
            why = ("all ranks must register windows of one size, in memory of ncclMemAlloc"
                   if name == "CommWindowRegister" else "train without symmetric=True")
            raise RuntimeError(
                f"nccl{name} failed with code {code}, {self._text(code).decode()}: {why}")

    def allocate(self, size: int) -> int:
        address = c.c_void_p()
        self._call("MemAlloc", c.byref(address), c.c_size_t(size))
        return int(address.value or 0)

    def free(self, address: int) -> None:
        self._call("MemFree", c.c_void_p(address))

    def enter(self, communicator: int, address: int, size: int) -> int:
        window = c.c_void_p()
        self._call("CommWindowRegister", c.c_void_p(communicator), c.c_void_p(address), c.c_size_t(size),
                   c.byref(window), c.c_int(COLL_SYMMETRIC))
        return int(window.value or 0)

    def leave(self, communicator: int, window: int) -> None:
        if window:  # NCCL gives none where the machine has none
            self._call("CommWindowDeregister", c.c_void_p(communicator), c.c_void_p(window))


class Memory:
    """Bytes of ncclMemAlloc as a tensor, and the one range of them that is registered."""

    def __init__(self, nccl: Nccl, size: int, device: torch.device, communicators: Sequence[int]) -> None:
        self._nccl, self._communicators = nccl, list(communicators)
        self._handles: list[int] = []
        self._range = (0, 0)
        self.address = nccl.allocate(size)
        storage = torch._C._construct_storage_from_data_pointer(self.address, device, size)
        self.bytes = torch.empty(0, dtype=torch.uint8, device=device).set_(storage)

    def register(self, begin: int, end: int) -> None:
        """These bytes, from the multiple of what NCCL wants on; nothing if they are already. All ranks
        call it together, with the same numbers."""
        begin -= (self.address + begin) % ALIGNMENT
        if self._range[0] <= begin and end <= self._range[1]:
            return
        if self._range[1]:
            begin, end = min(begin, self._range[0]), max(end, self._range[1])
        if self.bytes.is_cuda:
            torch.cuda.synchronize()  # collectives may still be under way in the old one
        self._leave()
        for communicator in self._communicators:
            self._handles.append(self._nccl.enter(communicator, self.address + begin, end - begin))
        self._range = (begin, end)

    def _leave(self) -> None:
        self._range = (0, 0)
        while self._handles:
            self._nccl.leave(self._communicators[len(self._handles) - 1], self._handles.pop())

    def close(self) -> None:
        """No tensor may lie in it any more, and the process groups must still be there."""
        if self.address:
            self._leave()
            address, self.address = self.address, 0
            self._nccl.free(address)


def communicators(groups: Sequence[Any], device: torch.device) -> list[int]:
    """ncclComm_t of those process groups that have one; makes those that nobody has used."""
    found: list[int] = []
    for group in groups:
        backend = group._get_backend(device)
        if not hasattr(backend, "_comm_ptr"):
            continue
        if not backend._comm_ptr():
            torch.distributed.all_reduce(torch.zeros(1, device=device), group=group)
        found.append(int(backend._comm_ptr()))
    return found
