"""Sessions: a plan at work on this machine's cores, with kernels in Python."""
from __future__ import annotations

import atexit
import ctypes as c
import os
import threading
import weakref
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Literal, Optional, TypeVar, get_args

from . import _native as n
from ._native import call, check, result
from .errors import TarnError, UsageError
from .graph import PathLike
from .ids import GroupId, OpId, OpRef, StreamId, StreamRef, TensorRef
from .memory import Memory, Regions
from .planning import Plan, apart

T = TypeVar("T")
DEADLINE, SLICE = 5, 10**8  # the library's status; nanoseconds between two looks for Ctrl-C


def _nanoseconds(timeout: Optional[float]) -> int:
    return n.FOREVER if timeout is None or timeout > 1e10 else max(0, int(timeout * 1e9))


class Call:
    """What a kernel gets. inputs and outputs are memoryviews of the tensors' bytes, in the op's
    order, workspace is one, or None; inputs are read-only. They may be asked for during the call
    only. A view that is kept stays valid, but other ops write to its bytes later."""

    __slots__ = ("_native", "_views", "op", "origin", "implementation", "recomputed", "stream",
                 "iteration")

    def __init__(self, raw: Any, views: Callable[[int, int], memoryview]):
        self._native, self._views = raw, views
        self.op, self.origin = OpId(int(raw.op)), OpId(int(raw.origin))
        self.stream = StreamId(int(raw.stream))
        self.implementation = None if raw.implementation == n.NONE else int(raw.implementation)
        self.recomputed, self.iteration = bool(raw.recomputed), int(raw.iteration)

    def _raw(self) -> Any:
        if self._native is None:
            raise UsageError("the kernel has returned: its call has no memory any more")
        return self._native

    @property
    def inputs(self) -> list[memoryview]:
        raw = self._raw()
        found = map(self._views, raw.inputs[:raw.inputs_count], raw.input_sizes)
        return [view.toreadonly() for view in found]

    @property
    def outputs(self) -> list[memoryview]:
        raw = self._raw()
        return list(map(self._views, raw.outputs[:raw.outputs_count], raw.output_sizes))

    @property
    def workspace(self) -> Optional[memoryview]:
        raw = self._raw()
        return self._views(raw.workspace, raw.workspace_size) if raw.workspace else None


Kernel = Callable[[Call], Any]


def _needs(function: Callable[..., int], *arguments: Any) -> Callable[[int], Any]:
    """What a function of the library says that a memory space needs, as struct MemoryNeeds."""
    return lambda space: n.filled(n.MemoryNeeds, call, function, *arguments, space)


Bind = Literal["auto", "none", "node", "cache", "core"]


def _host_options(workers: int, bind: str) -> Any:
    words = get_args(Bind)
    if bind not in words:
        raise UsageError(f"bind: {bind!r} is none of {', '.join(words)}")
    return n.make(n.HostOptions, workers=workers, binding=words.index(bind))


def host_cores() -> int:
    """Cores that this thread may use. A program that forks its workers calls this before: a forked
    child does not look at the machine, and without what its parent knows binds nothing."""
    return int(n.lib.host_cores())


class Arena:
    """One memory for several plans, of which a session each may be on it: those of
    tarn.plan_family, or any whose persistent tensors agree. The sessions take turns, and are used
    from one thread at a time, together. Persistent tensors are the same for all; what else a
    session leaves lasts until another one's turn. A context manager.

        large, small = tarn.plan_family(["batch64.json", "batch8.json"])
        with tarn.Arena([large, small]) as arena:
            with tarn.Session(large, kernel, arena=arena) as one, \\
                    tarn.Session(small, kernel, arena=arena) as other: ...

    workers, memory, bind: as those of tarn.Session."""

    def __init__(self, plans: Iterable[Plan], *, workers: int = 0, memory: Optional[Memory] = None,
                 bind: Bind = "auto"):
        self.plans = list(plans)
        self._dropped = False
        count, self._host = len(self.plans), _host_options(workers, bind)
        host = n.lib.device_host(self._host)
        if not count:
            raise UsageError("an arena needs at least one plan")
        handles = (n.plan * count)(*(plan._handle for plan in self.plans))
        options = n.make(n.ArenaOptions)
        size = _needs(n.lib.arena_needs_sized, handles, count, host, options)
        self._regions = Regions(options, memory, len(self.plans[0].graph.spaces), size)
        self._handle: Any = result(n.arena, n.lib.arena_create, handles, count, host, options)

    def close(self) -> None:
        """Frees the arena, on which there may be no session any more."""
        if self._handle:
            if n.lib.arena_destroy(self._handle):
                raise UsageError("a session is on the arena, or another process has made it")
            self._handle = None
            self._regions = Regions()

    def __enter__(self) -> Arena:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()

    def __del__(self) -> None:
        """In a cycle of garbage a session may come later: it calls this again."""
        self._dropped = True
        if getattr(self, "_handle", None) and not n.lib.arena_destroy(self._handle):
            self._handle = None


_here = threading.local()  # kernels: how many this thread is in
_open: weakref.WeakSet[Session] = weakref.WeakSet()
_abandoned: list[Any] = []  # all that sessions use which did not end


def _close_all() -> None:
    """Ends all work before the interpreter does: threads of a session call kernels in Python."""
    for session in list(_open):
        session._end()


atexit.register(_close_all)


class Session:
    """Runs a plan's iterations over one arena, on threads of this process. From one thread at a
    time; a context manager.

        with tarn.Session(plan, kernel) as session:
            session.write(x, data)
            session.run(10)
            result = session.read(y)

    kernel: called with a tarn.Call for every op that has no kernel of its own (see bind). What it
    raises stops the session and is raised once: by submit, run or wait, else at the session's end
    if no other exception is under way. blocking: streams whose kernels wait for others.

    Views of the session's memory (view, group, those of a Call) may outlive it: memory goes with
    its last view. memory: an arena of the caller's, which no other session or arena has meanwhile: a
    writable buffer (mmap, bytearray, numpy array), which is kept, or (address, bytes), which the
    caller keeps as long as the session and its views; or a list of these by memory space.
    Persistent tensors must then be bound, too (see bind_memory). arena: a tarn.Arena instead, which
    several sessions share.

    workers: threads that run kernels; 0: as many as cores, at most as streams. bind: the processors
    on which a worker may run. "core", "cache", "node": those of its core, of its core's outermost
    cache, of its NUMA node; "none": as the creating thread; "auto": its core if there are workers
    for all cores, else the nodes of all workers' cores.
    """

    def __init__(self, plan: Plan, kernel: Optional[Kernel] = None, *, workers: int = 0,
                 blocking: Iterable[StreamRef] = (), flight: int = 0,
                 memory: Optional[Memory] = None, arena: Optional[Arena] = None,
                 bind: Bind = "auto"):
        self.plan = plan
        self._raised: Optional[BaseException] = None
        self._told, self._last = False, 0
        self._kernels: list[Any] = []
        self._host = arena._host if arena else _host_options(workers, bind)
        host, handle = n.lib.device_host(self._host), getattr(plan, "_handle", None)
        n.checked(n.plan, "plan", handle)
        streams = [plan.graph._known("stream", stream) for stream in blocking]
        options = n.make(n.SessionOptions, blocking=n.list_of(streams), flight=flight)
        self._arena = arena  # keeps it
        if arena is None:
            options.binds_persistent = memory is not None
            size = _needs(n.lib.session_needs_sized, handle, host, options)
            self._regions = Regions(options, memory, len(plan.graph.spaces), size)
        elif memory is not None or workers or bind != "auto":
            raise UsageError("an arena has its own memory and its own workers")
        else:
            n.checked(n.arena, "arena", arena._handle)
            self._regions, options.arena = arena._regions.copy(), arena._handle
        self._handle = result(n.session, n.lib.session_create, handle, host, options)
        _open.add(self)
        if kernel:
            self.bind_default(kernel)

    # ---- Kernels ----

    def _native_kernel(self, kernel: Kernel) -> Any:
        views, own = self._regions.view, weakref.ref(self)  # which the kernel does not keep

        def run(_user: Any, native: Any) -> int:
            given = Call(native.contents, views)
            _here.kernels = getattr(_here, "kernels", 0) + 1
            try:
                kernel(given)
                return 0
            except BaseException as error:  # pylint: disable=broad-except
                session = own()
                if session is not None:
                    session._raised = session._raised or error
                return 1
            finally:
                given._native = None
                _here.kernels -= 1

        wrapped = n.KERNEL(run)
        self._kernels.append(wrapped)  # as long as the session
        return wrapped

    def bind(self, op: OpRef, kernel: Kernel) -> None:
        """For one op of the source graph, and for whatever transforms have made of it."""
        number = op if isinstance(op, int) else self.plan.source._known("op", op)
        call(n.lib.session_bind, self._handle, number, self._native_kernel(kernel), None)

    def bind_default(self, kernel: Kernel) -> None:
        """For every op without a kernel of its own."""
        check(n.lib.session_bind_default(self._handle, self._native_kernel(kernel), None))

    def take(self, conditional: int, arm: int) -> None:
        """The arm that a conditional takes in iterations from now on; at first it is arm 0. Kernels
        of ops in other arms are not called."""
        call(n.lib.session_take, self._handle, conditional, arm)

    # ---- Memory ----

    def bind_memory(self, tensor: TensorRef, memory: Any) -> None:
        """Memory of the caller's for a persistent tensor or an output, from the next submit on: a
        writable buffer, which is kept until the work with it is done, or an address, whose memory
        the caller keeps."""
        number = self.plan.graph._known("tensor", tensor)
        size = self.plan.graph.tensors[number].size
        address, view = self._regions.given(memory, size)
        call(n.lib.session_bind_memory, self._handle, number, address)
        self._regions.bind(number, address, view)

    def view(self, tensor: TensorRef) -> memoryview:
        """A writable memoryview of a tensor's bytes, without a copy, which stays valid when the
        session is closed. Planned tensors other than outputs hold what the last writer of those
        bytes has left."""
        number = self.plan.graph._known("tensor", tensor)
        address = n.lib.session_address(self._handle, number)
        if not address:
            raise IndexError(f"tensor {number} is not bound")
        return self._regions.view(address, self.plan.graph.tensors[number].size)

    def group(self, index: GroupId) -> memoryview:
        """A memoryview of a contiguous group, for one call of a communication library."""
        address, size = c.c_void_p(), c.c_uint64()
        call(n.lib.session_group, self._handle, index, c.byref(address), c.byref(size))
        return self._regions.view(address.value or 0, size.value)

    def write(self, tensor: TensorRef, data: Any) -> None:
        """Copies bytes (anything with a contiguous buffer) to a tensor's first bytes."""
        source = memoryview(data).tobytes()
        number = self.plan.graph._known("tensor", tensor)
        call(n.lib.session_write, self._handle, number, source, len(source))

    def read(self, tensor: TensorRef) -> bytes:
        """A copy of a tensor's bytes."""
        number = self.plan.graph._known("tensor", tensor)
        size = self.plan.graph.tensors[number].size
        buffer = c.create_string_buffer(size)
        call(n.lib.session_read, self._handle, number, buffer, size)
        return buffer.raw

    # ---- Work ----

    def submit(self, iterations: int = 1) -> int:
        """Lets so many more iterations run; returns a ticket."""
        self._last = int(self._work(result, c.c_uint64, n.lib.session_submit, self._handle,
                                    iterations).value)
        return self._last

    def wait(self, ticket: int, timeout: Optional[float] = None) -> None:
        """Until the ticket's iterations have finished; timeout in seconds. When these are over, or
        with Ctrl-C, the session ends its work."""
        self._work(apart, call, n.lib.session_wait, self._handle, ticket, _nanoseconds(timeout),
                   stop=self.cancel)
        if ticket == self._last:
            self._regions.forget()

    def _work(self, function: Callable[..., T], *arguments: Any, **named: Any) -> T:
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
        """Waits for what is under way and frees the session, but for memory that has views."""
        if self._handle:
            self._destroy(timeout)
            if self._raised is not None and not self._told:
                raise self._raised

    def _destroy(self, timeout: Optional[float] = None) -> None:
        """In slices, if there is no limit, so that Ctrl-C is heard."""
        left = _nanoseconds(timeout)
        while True:
            error = n.Error()
            slice_of = SLICE if left == n.FOREVER else left
            status = n.lib.session_destroy_within(self._handle, slice_of, error)
            if status != DEADLINE or left != n.FOREVER:
                break
        check(status, error)
        self._handle = None
        self._kernels.clear()
        self._regions.clear()
        if self._arena is not None and self._arena._dropped:
            self._arena.__del__()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, kind: object, *_exception: object) -> None:
        self._told = self._told or kind is not None
        self.close()

    def _end(self) -> None:
        """Whoever needs the session no more does not hear of errors. What cannot be ended keeps its
        memory, kernels and plan."""
        if getattr(self, "_handle", None):
            if getattr(_here, "kernels", 0):  # garbage that was found in a kernel, maybe its own
                threading.Thread(target=self._end).start()
                return
            with suppress(TarnError):
                self._destroy()
            if self._handle:
                _abandoned.append(vars(self))

    def __del__(self) -> None:
        self._end()
