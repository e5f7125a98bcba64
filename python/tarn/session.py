"""Sessions: a plan at work on this machine's cores, with kernels in Python."""
from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional, Union

from . import _native as n
from .errors import UsageError, call, check, result
from .graph import PathLike
from .planning import Plan


def _bytes_at(address: int, size: int) -> memoryview:
    """A writable view of memory, without a copy; numpy.frombuffer takes it."""
    return memoryview((c.c_char * size).from_address(address)).cast("B")


def _nanoseconds(timeout):
    return n.FOREVER if timeout is None else max(0, int(timeout * 1e9))


class Call:
    """What a kernel gets; valid during the call only. inputs and outputs are writable memoryviews
    of the tensors' bytes, in the op's order; workspace is one, or None."""

    __slots__ = ("_native", "op", "origin", "implementation", "recomputed", "stream", "iteration")

    def __init__(self, native):
        self._native = native
        self.op, self.origin, self.stream = native.op, native.origin, native.stream
        self.implementation = None if native.implementation == n.NONE else native.implementation
        self.recomputed, self.iteration = native.recomputed, native.iteration

    @property
    def inputs(self) -> list[memoryview]:
        native = self._native
        return list(map(_bytes_at, native.inputs[:native.inputs_count], native.input_sizes))

    @property
    def outputs(self) -> list[memoryview]:
        native = self._native
        return list(map(_bytes_at, native.outputs[:native.outputs_count], native.output_sizes))

    @property
    def workspace(self) -> Optional[memoryview]:
        native = self._native
        return _bytes_at(native.workspace, native.workspace_size) if native.workspace else None


Kernel = Callable[[Call], Any]
Memory = tuple[int, int]


class Session:
    """Runs a plan's iterations over one arena, on threads of this process. From one thread at a
    time; a context manager.

        with tarn.Session(plan, kernel) as session:
            session.write(x, data)
            session.run(10)
            result = session.read(y)

    kernel: called with a tarn.Call for every op that has no kernel of its own (see bind). What it
    raises stops the session and is raised by run or wait. memory: the arena as (address, bytes),
    or a list of these by memory space, which the caller keeps, and other sessions may use in turn;
    persistent tensors must then be bound, too (see bind_memory).
    """

    def __init__(self, plan: Plan, kernel: Optional[Kernel] = None, *, workers: int = 0,
                 blocking: Iterable[int] = (), flight: int = 0,
                 memory: Union[Memory, Sequence[Memory], None] = None):
        self.plan = plan
        self._raised = None
        self._kernels: list[Any] = []
        self._host = n.make(n.HostOptions, workers=workers)
        options = n.make(n.SessionOptions, blocking=n.list_of(blocking), flight=flight)
        if memory:
            arenas = [memory] if isinstance(memory[0], int) else memory
            options.memory, options.memory_size = arenas[0]
            options.space_memory = (n.SpaceMemory * len(arenas))((None, 0), *arenas[1:])
            options.space_memory_count = len(arenas)
            options.binds_persistent = options.shares_memory = True
        self._handle = result(c.c_void_p, n.lib.session_create, plan._handle,
                              n.lib.device_host(self._host), options)
        if kernel:
            self.bind_default(kernel)

    # ---- Kernels ----

    def _native_kernel(self, kernel):
        def run(_user, native):
            try:
                kernel(Call(native.contents))
                return 0
            except BaseException as error:  # pylint: disable=broad-except
                self._raised = self._raised or error
                return 1

        wrapped = n.KERNEL(run)
        self._kernels.append(wrapped)  # as long as the session
        return wrapped

    def bind(self, op: int, kernel: Kernel) -> None:
        """For one op of the source graph, and for whatever transforms have made of it."""
        if n.lib.session_bind(self._live(), op, self._native_kernel(kernel), None):
            raise UsageError(f"op {op} does not exist or is never launched, or the session is at "
                             "work")

    def bind_default(self, kernel: Kernel) -> None:
        """For every op without a kernel of its own."""
        check(n.lib.session_bind_default(self._live(), self._native_kernel(kernel), None))

    # ---- Memory ----

    def bind_memory(self, tensor: int, address: int) -> None:
        """Memory of the caller's for a persistent tensor, which the caller keeps."""
        call(n.lib.session_bind_memory, self._live(), tensor, address)

    def view(self, tensor: int) -> memoryview:
        """A writable memoryview of a tensor's bytes, without a copy, until the session is closed.
        Planned tensors other than outputs hold what the last writer of those bytes has left."""
        address = n.lib.session_address(self._live(), tensor)
        if not address:
            raise IndexError(f"tensor {tensor} does not exist or is not bound")
        return _bytes_at(address, self.plan.graph.tensors[tensor].size)

    def group(self, index: int) -> memoryview:
        """A memoryview of a contiguous group, for one call of a communication library."""
        address, size = c.c_void_p(), c.c_uint64()
        call(n.lib.session_group, self._live(), index, c.byref(address), c.byref(size))
        return _bytes_at(address.value, size.value)

    def write(self, tensor: int, data: Any) -> None:
        """Copies bytes (anything with a contiguous buffer) to a tensor's first bytes."""
        source = memoryview(data).tobytes()
        call(n.lib.session_write, self._live(), tensor, source, len(source))

    def read(self, tensor: int) -> bytes:
        """A copy of a tensor's bytes."""
        size = self.plan.graph.tensors[tensor].size
        buffer = c.create_string_buffer(size)
        call(n.lib.session_read, self._live(), tensor, buffer, size)
        return buffer.raw

    # ---- Work ----

    def submit(self, iterations: int = 1) -> int:
        """Lets so many more iterations run; returns a ticket."""
        return result(c.c_uint64, n.lib.session_submit, self._live(), iterations).value

    def wait(self, ticket: int, timeout: Optional[float] = None) -> None:
        """Until the ticket's iterations have finished; timeout in seconds."""
        try:
            call(n.lib.session_wait, self._live(), ticket, _nanoseconds(timeout))
        except Exception as error:
            if self._raised is not None:
                raise self._raised from error
            raise

    def run(self, iterations: int = 1, timeout: Optional[float] = None) -> None:
        """submit and wait."""
        self.wait(self.submit(iterations), timeout)

    def check(self, iterations: int = 1, *, seed: int = 0,
              random_order: bool = False) -> dict[str, int]:
        """Runs a fresh session with checking kernels, every byte that is read compared; returns the
        report as a dict. tarn.CheckFailed names op, tensor and byte."""
        options = n.make(n.CheckOptions, iterations=iterations, seed=seed,
                         random_order=random_order)
        return n.fields_of(n.filled(n.CheckReport, call, n.lib.session_check_sized, self._live(),
                                    options))

    def cancel(self) -> None:
        """From any thread: the wait under way raises tarn.Interrupted."""
        n.lib.session_cancel(self._live())

    def save_dump(self, path: PathLike, why: str = "") -> None:
        """Text: where every stream is, and what the flight recorder (option `flight`) remembers of
        its last commands. At any time, also after an error; why: its first line."""
        call(n.lib.session_save_dump, self._live(), os.fsencode(why) or None, os.fsencode(path))

    def save_trace(self, path: PathLike) -> None:
        """Chrome trace events of what the flight recorder remembers (option `flight`)."""
        call(n.lib.session_save_trace, self._live(), os.fsencode(path))

    # ---- Its end ----

    def close(self, timeout: Optional[float] = None) -> None:
        """Waits for what is under way and frees the session; views of its memory are dead."""
        if self._handle:
            call(n.lib.session_destroy_within, self._handle, _nanoseconds(timeout))
            self._handle = None

    def _live(self):
        if not self._handle:
            raise UsageError("the session is closed")
        return self._handle

    def __enter__(self):
        return self

    def __exit__(self, *_exception):
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            n.lib.session_destroy_within(self._handle, n.FOREVER, None)
