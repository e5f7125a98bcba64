"""Sessions: a plan at work on this machine's cores, with kernels in Python."""
from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Optional, Union

from . import _native as n
from ._native import call, check, result
from .errors import TarnError
from .graph import PathLike
from .planning import Plan, apart


def _bytes_at(address: int, size: int, owner: Any = None) -> memoryview:
    """A writable view of memory, without a copy; numpy.frombuffer takes it. It keeps the owner."""
    array = (c.c_char * size).from_address(address)
    array.owner = owner
    return memoryview(array).cast("B")


def _nanoseconds(timeout):
    return n.FOREVER if timeout is None or timeout > 1e10 else max(0, int(timeout * 1e9))


class Call:
    """What a kernel gets; valid during the call only. inputs and outputs are writable memoryviews
    of the tensors' bytes, in the op's order; workspace is one, or None."""

    __slots__ = ("_native", "op", "origin", "implementation", "recomputed", "stream", "iteration")

    def __init__(self, raw: Any):  # type checkers know nothing of it
        self._native = raw
        self.op, self.origin, self.stream = int(raw.op), int(raw.origin), int(raw.stream)
        self.implementation = None if raw.implementation == n.NONE else int(raw.implementation)
        self.recomputed, self.iteration = bool(raw.recomputed), int(raw.iteration)

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
    raises stops the session and is raised once: by submit, run or wait, else at the session's end
    if no other exception is under way. memory: the arena as (address, bytes), or a list of these by
    memory space, which the caller keeps, and other sessions may use in turn; persistent tensors
    must then be bound, too (see bind_memory).
    """

    def __init__(self, plan: Plan, kernel: Optional[Kernel] = None, *, workers: int = 0,
                 blocking: Iterable[int] = (), flight: int = 0,
                 memory: Union[Memory, Sequence[Memory], None] = None):
        self.plan = plan
        self._raised, self._told = None, False
        self._kernels: list[Any] = []
        self._host = n.make(n.HostOptions, workers=workers)
        options = n.make(n.SessionOptions, blocking=n.list_of(blocking), flight=flight)
        if memory:
            arenas = [memory] if isinstance(memory[0], int) else memory
            options.memory, options.memory_size = arenas[0]
            options.space_memory = (n.SpaceMemory * len(arenas))((None, 0), *arenas[1:])
            options.space_memory_count = len(arenas)
            options.binds_persistent = options.shares_memory = True
        self._handle = result(n.session, n.lib.session_create, plan._handle,
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
        call(n.lib.session_bind_kernel, self._handle, op, self._native_kernel(kernel), None)

    def bind_default(self, kernel: Kernel) -> None:
        """For every op without a kernel of its own."""
        check(n.lib.session_bind_default(self._handle, self._native_kernel(kernel), None))

    # ---- Memory ----

    def bind_memory(self, tensor: int, address: int) -> None:
        """Memory of the caller's for a persistent tensor, which the caller keeps."""
        call(n.lib.session_bind_memory, self._handle, tensor, address)

    def view(self, tensor: int) -> memoryview:
        """A writable memoryview of a tensor's bytes, without a copy, until the session is closed.
        Planned tensors other than outputs hold what the last writer of those bytes has left."""
        address = n.lib.session_address(self._handle, self.plan.graph._known("tensor", tensor))
        if not address:
            raise IndexError(f"tensor {tensor} is not bound")
        return _bytes_at(address, self.plan.graph.tensors[tensor].size, self)

    def group(self, index: int) -> memoryview:
        """A memoryview of a contiguous group, for one call of a communication library."""
        address, size = c.c_void_p(), c.c_uint64()
        call(n.lib.session_group, self._handle, index, c.byref(address), c.byref(size))
        return _bytes_at(address.value, size.value, self)

    def write(self, tensor: int, data: Any) -> None:
        """Copies bytes (anything with a contiguous buffer) to a tensor's first bytes."""
        source = memoryview(data).tobytes()
        call(n.lib.session_write, self._handle, tensor, source, len(source))

    def read(self, tensor: int) -> bytes:
        """A copy of a tensor's bytes."""
        size = self.plan.graph.tensors[self.plan.graph._known("tensor", tensor)].size
        buffer = c.create_string_buffer(size)
        call(n.lib.session_read, self._handle, tensor, buffer, size)
        return buffer.raw

    # ---- Work ----

    def submit(self, iterations: int = 1) -> int:
        """Lets so many more iterations run; returns a ticket."""
        return self._work(result, c.c_uint64, n.lib.session_submit, self._handle, iterations).value

    def wait(self, ticket: int, timeout: Optional[float] = None) -> None:
        """Until the ticket's iterations have finished; timeout in seconds. When these are over, or
        with Ctrl-C, the session ends its work."""
        self._work(apart, call, n.lib.session_wait, self._handle, ticket, _nanoseconds(timeout),
                   stop=self.cancel)

    def _work(self, function, *arguments, **named):
        """What a kernel has raised comes in the place of what the library says of it."""
        try:
            return function(*arguments, **named)
        except TarnError as error:
            if self._raised is None or self._told:
                raise
            self._told = True
            raise self._raised from error

    def run(self, iterations: int = 1, timeout: Optional[float] = None) -> None:
        """submit and wait."""
        self.wait(self.submit(iterations), timeout)

    def check(self, iterations: int = 1, *, seed: int = 0,
              random_order: bool = False) -> dict[str, int]:
        """Runs a fresh session with checking kernels, every byte that is read compared; returns the
        report as a dict. tarn.CheckFailed names op, tensor and byte."""
        options = n.make(n.CheckOptions, iterations=iterations, seed=seed,
                         random_order=random_order)
        return n.fields_of(apart(n.filled, n.CheckReport, call, n.lib.session_check_sized,
                                 self._handle, options, stop=self.cancel))

    def cancel(self) -> None:
        """From any thread: the wait under way raises tarn.Interrupted."""
        n.lib.session_cancel(self._handle)

    def save_dump(self, path: PathLike, why: str = "") -> None:
        """Text: where every stream is, and what the flight recorder (option `flight`) remembers of
        its last commands. At any time, also after an error; why: its first line."""
        call(n.lib.session_save_dump, self._handle, os.fsencode(why) or None, os.fsencode(path))

    def save_trace(self, path: PathLike) -> None:
        """Chrome trace events of what the flight recorder remembers (option `flight`)."""
        call(n.lib.session_save_trace, self._handle, os.fsencode(path))

    # ---- Its end ----

    def close(self, timeout: Optional[float] = None) -> None:
        """Waits for what is under way and frees the session; views of its memory are dead."""
        if self._handle:
            call(n.lib.session_destroy_within, self._handle, _nanoseconds(timeout))
            self._handle = None
            self._kernels.clear()
            if self._raised is not None and not self._told:
                raise self._raised

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        self._told = self._told or kind is not None
        self.close()

    def __del__(self):
        if getattr(self, "_handle", None):
            n.lib.session_destroy_within(self._handle, n.FOREVER, None)
