"""The C library: where it is found, its structs and its functions, as include/tarn/ declares them.

A struct whose size the library is told may end after the last member that is used (docs/abi.md). A
test compares all of them with the headers."""
from __future__ import annotations

import ctypes as c
import ctypes.util
import os
from collections.abc import Callable, Iterable
from itertools import repeat
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Optional, TypeVar

from .errors import NONE as NONE, UsageError, error_of

T = TypeVar("T")

NO_OFFSET = FOREVER = NO_EFFORT = 0xFFFFFFFFFFFFFFFF

flag, i32, u32, u64, f64 = c.c_bool, c.c_int, c.c_uint32, c.c_uint64, c.c_double
size, text, pointer, to = c.c_size_t, c.c_char_p, c.c_void_p, c.POINTER
Ids = to(u32)
_HANDLES: list[Any] = [type("tarn." + name, (pointer,), {})
                       for name in ("Builder", "Graph", "Plan", "Session", "Arena")]
builder, graph, plan, session, arena = _HANDLES
_ENDS: dict[Any, int] = {u32: 1 << 32, u64: 1 << 64}


def checked(kind: Any, what: str, value: Any) -> Any:
    """The value for an argument or a field of this kind, unless ctypes would cut it or take it for
    something else."""
    if kind in _ENDS and not hasattr(value, "__index__"):
        raise TypeError(f"{what}: {value!r} is no whole number")
    if kind in _ENDS and not 0 <= value < _ENDS[kind]:
        raise UsageError(f"{what}: {value} is not from 0 to {_ENDS[kind] - 1}")
    if kind is text and what != "bytes" and b"\0" in (value or b""):  # these are counted
        raise UsageError(f"{what}: there is a NUL byte in {value!r}")
    if kind in _HANDLES and not isinstance(value, kind):
        raise UsageError(f"{what}: {value or 'what is closed or used up'} is no {kind.__name__}")
    return value


# ---- Structs ----

def _struct(name: str, /, **fields: Any) -> Any:
    def put(structure: Any, field: str, value: Any) -> None:  # also what the constructor is given
        c.Structure.__setattr__(structure, field, checked(fields[field], field, value))

    return type(name, (c.Structure,), {"_fields_": list(fields.items()), "__setattr__": put})


def _options(name: str, /, **fields: Any) -> Any:
    """A struct whose first member is its size."""
    return _struct(name, struct_size=size, **fields)


Error = _struct("Error", status=i32, device_code=i32, line=u32, column=u32, op=u32, tensor=u32,
                footprint=u64, pointer=c.c_char * 128, text=c.c_char * 512)
List = _struct("List", ids=Ids, count=size)
Hash = _struct("Hash", word=u64 * 2)
HashText = _struct("HashText", text=c.c_char * 33)

SpaceInfo = _struct("SpaceInfo", name=text, kind=i32, alignment=u64, capacity=u64)
TensorInfo = _struct("TensorInfo", name=text, size=u64, kind=i32, alignment=u64, space=u32,
                     offset=u64, offset_rule=i32, wanted_offset=u64)
Implementation = _struct("Implementation", name=text, cost=u64, workspace=u64, inputs=List,
                         outputs=List, workspace_first=flag)
OpInfo = _struct("OpInfo", name=text, kind=text, stream=u32, inputs=List, outputs=List,
                 control=List, workspace=u64, cost=u64, flops=u64, view=flag, workspace_first=flag,
                 recomputable=i32, inplace=to(u32 * 2), inplace_count=size,
                 implementations=to(Implementation), implementations_count=size, common=List,
                 workspace_space=u32, op_class=i32, branch=to(u32 * 2), branch_count=size,
                 move=flag)
GraphSummary = _struct("GraphSummary", streams=u32, ops=u32, views=u32, tensors=u32, storages=u32,
                       workspaces=u32, groups=u32, arcs=u32, arcs_kept=u32, sum=u64,
                       persistent=u64, serial_peak=u64, cost=u64)

WRITE = c.CFUNCTYPE(i32, pointer, pointer, size)
Reader = _options("Reader", name=text, bytes=text, size=size)
Writer = _options("Writer", name=text, write=WRITE)

AssignOptions = _options("AssignOptions", mode=i32, streams=u32, wait_ns=u32,
                         communication_words=to(text), communication_words_count=size,
                         copy_words=to(text), copy_words_count=size, alignment=u64)
ReorderOptions = _options("ReorderOptions", alignment=u64, effort=u32, keep_time=flag,
                          report=pointer, control=pointer, report_size=size, slowdown_max=f64)
CoupleOptions = _options("CoupleOptions", alignment=u64, capacity=u64, keep=f64, slowdown_max=f64,
                         wait_ns=u32)
InPlaceOptions = _options("InPlaceOptions", kinds=to(text), kinds_count=size)
BudgetOptions = _options("BudgetOptions", budget=u64, method=i32, effort=u64, alignment=u64,
                         report=pointer, control=pointer, report_size=size, known_only=flag,
                         share=f64)
OffloadOptions = _options("OffloadOptions", out_bytes_per_second=u64, into_bytes_per_second=u64,
                          latency_ns=u64, kinds=u32, margin=f64, space=u32, capacity=u64, out_stream=text,
                          into_stream=text, bytes_min=u64, effort=u64, report=pointer,
                          report_size=size)
VerifyOptions = _options("VerifyOptions", in_place_kinds=to(text), in_place_kinds_count=size)
PlanProgress = _options("PlanProgress", footprint=u64, bound=u64, steps=u64)
PROGRESS = c.CFUNCTYPE(None, pointer, to(PlanProgress))
HEARTBEAT = c.CFUNCTYPE(flag, pointer, to(PlanProgress))
Placed = _struct("Placed", id=u32, offset=u64, size=u64)
Places = _struct("Places", places=to(Placed), count=size)
PlanOptions = _options("PlanOptions", alignment=u64, capacity=u64, method=text, threads=u32,
                       seed=u64, effort=u64, seconds=f64, progress=PROGRESS, user=pointer,
                       stop=to(flag), assign=to(AssignOptions), reorder=to(ReorderOptions),
                       couple=to(CoupleOptions), in_place=to(InPlaceOptions), boundary=i32,
                       budget=to(BudgetOptions), node_limit=u32, heartbeat=HEARTBEAT, pad_groups=i32,
                       keep=Places, offload=to(OffloadOptions))
PlanSummary = _struct("PlanSummary", method=text, alignment=u64, footprint=u64, persistent=u64,
                      bound=u64, optimal=flag, waits=u32, boundary_waits=u32, transform_ms=f64,
                      order_ms=f64, place_ms=f64, verify_ms=f64, stopped=i32, pad_groups=i32, ended=i32)
Wait = _struct("Wait", op=u32, on=u32)
Waits = _struct("Waits", waits=to(Wait), count=size)
PlanSpaceSummary = _struct("PlanSpaceSummary", method=text, footprint=u64, persistent=u64,
                           bound=u64, optimal=flag)
PlanIdentity = _struct("PlanIdentity", source=Hash, plan=Hash)

Window = _struct("Window", space=u32, offset=u64, size=u64)

Device = _struct("Device", table=pointer, self=pointer)
HostOptions = _options("HostOptions", workers=u32, execute=pointer,
                       execute_user=pointer, memory=pointer, binding=i32)
Call = _options("Call", op=u32, origin=u32, implementation=u32, recomputed=flag, stream=u32,
                iteration=u64, queue=pointer, inputs=to(pointer), outputs=to(pointer),
                workspace=pointer, inputs_count=size, outputs_count=size, input_sizes=to(u64),
                output_sizes=to(u64), workspace_size=u64)
KERNEL = c.CFUNCTYPE(i32, pointer, to(Call))
MemoryNeeds = _struct("MemoryNeeds", size=u64, alignment=u64, arena=u64, persistent=u64)
SpaceMemory = _struct("SpaceMemory", memory=pointer, size=u64)
SessionOptions = _options("SessionOptions", blocking=List, urgent=to(List), memory=pointer,
                          memory_size=u64, binds_persistent=flag, capture=flag, unroll=u32,
                          depth=u32, patience_ns=u64, flight=u32,
                          stamps=flag, arena=pointer,
                          queues=pointer, space_memory=to(SpaceMemory), space_memory_count=size)
ArenaOptions = _options("ArenaOptions", memory=pointer, memory_size=u64, binds_persistent=flag,
                        space_memory=to(SpaceMemory), space_memory_count=size)
CheckOptions = _options("CheckOptions", iterations=u32, seed=u64, delay_ns=u32, random_order=flag)
CheckReport = _struct("CheckReport", ops_run=u64, bytes_read=u64, bytes_written=u64, digest=u64)


# ---- Functions ----

error = to(Error)
SIZED = (pointer, size)  # a struct and its size; see sized()

# names -> result, arguments; a result of i32 is a status
_FUNCTIONS: dict[str, tuple[Any, ...]] = {
    "version": (text,),
    "status_text": (text, i32),
    "builder_create": (builder, text),
    "builder_destroy graph_destroy plan_destroy session_cancel": (None, pointer),
    "builder_stream": (u32, builder, text),
    "builder_space_sized builder_tensor_sized builder_op_sized": (u32, builder, *SIZED),
    "builder_alias": (u32, builder, u32, text),
    "builder_slice": (u32, builder, u32, u64, u64, text),
    "builder_control": (None, builder, u32, u32),
    "builder_after_readers": (None, builder, u32),
    "builder_group builder_group_padded": (None, builder, List),
    "builder_group_offsets": (None, builder, List, to(u64)),
    "builder_group_symmetric": (None, builder, u32, text),
    "builder_finish": (i32, builder, to(graph), error),
    "graph_load": (i32, text, pointer, to(graph), error),
    "graph_save plan_save session_save_trace": (i32, pointer, text, error),
    "graph_read": (i32, to(Reader), pointer, to(graph), error),
    "graph_write plan_write": (i32, pointer, to(Writer), error),
    "graph_name": (text, pointer),
    "graph_streams_count graph_ops_count graph_tensors_count graph_spaces_count graph_groups_count":
        (u32, pointer),
    "graph_stream_name": (text, pointer, u32),
    "graph_op_sized graph_tensor_sized graph_space_sized plan_space_sized":
        (flag, pointer, u32, *SIZED),
    "graph_root plan_op_origin plan_tensor_origin plan_op_implementation": (u32, pointer, u32),
    "graph_group plan_launches": (List, pointer, u32),
    "graph_group_is_padded plan_op_is_recomputed": (flag, pointer, u32),
    "graph_group_offsets": (to(u64), pointer, u32),
    "graph_group_symmetric": (text, pointer, u32),
    "graph_op_class": (i32, pointer, u32),
    "graph_hash": (Hash, pointer),
    "hash_format": (HashText, Hash),
    "graph_summarize_sized": (i32, pointer, *SIZED, error),
    "graph_bound": (i32, pointer, to(u64), error),
    "plan_create": (i32, graph, to(PlanOptions), to(plan), error),
    "family_plan ranks_plan": (i32, to(graph), size, to(PlanOptions), to(plan), error),
    "family_verify": (i32, to(plan), size, error),
    "plan_window": (flag, plan, to(Window)),
    "plan_load": (i32, text, graph, i32, to(VerifyOptions), to(plan), error),
    "plan_read": (i32, to(Reader), graph, i32, to(VerifyOptions), to(plan), error),
    "plan_summarize_sized": (None, pointer, *SIZED),
    "plan_asked": (text, pointer),
    "plan_answers": (i32, pointer, to(PlanOptions), error),
    "plan_graph": (graph, plan),
    "plan_offset plan_workspace_offset": (u64, pointer, u32),
    "plan_waits plan_boundary_waits": (Waits, pointer),
    "plan_group": (i32, pointer, u32, to(u64), to(u64)),
    "plan_identify": (PlanIdentity, pointer),
    "plan_verify": (i32, pointer, pointer, pointer, pointer, error),
    "device_host": (Device, to(HostOptions)),
    "host_cores": (u32,),
    "session_needs_sized": (i32, plan, Device, to(SessionOptions), u32, *SIZED, error),
    "arena_needs_sized": (i32, to(plan), size, Device, to(ArenaOptions), u32, *SIZED, error),
    "arena_create": (i32, to(plan), size, Device, to(ArenaOptions), to(arena), error),
    "arena_destroy": (i32, arena),
    "session_create": (i32, plan, Device, to(SessionOptions), to(session), error),
    "session_destroy_within": (i32, session, u64, error),
    "session_take": (i32, session, u32, u32, error),
    "session_bind": (i32, session, u32, KERNEL, pointer, error),
    "session_bind_default": (i32, session, KERNEL, pointer),
    "session_bind_memory": (i32, session, u32, pointer, error),
    "session_address": (pointer, session, u32),
    "session_group": (i32, session, u32, to(pointer), to(u64), error),
    "session_write session_read": (i32, session, u32, pointer, u64, error),
    "session_submit": (i32, session, u64, to(u64), error),
    "session_wait": (i32, session, u64, u64, error),
    "session_save_dump": (i32, session, text, text, error),
    "session_check_sized": (i32, session, to(CheckOptions), *SIZED, error),
}


def _load() -> Any:
    """The functions of TARN_LIBRARY, else of the library in this package, else of the system's."""
    own = Path(__file__).with_name("libtarn_python.so")
    path = os.environ.get("TARN_LIBRARY") or (str(own) if own.exists() else
                                              ctypes.util.find_library("tarn") or "libtarn.so.0")
    try:
        library = c.CDLL(path)
    except OSError as error:
        raise ImportError(f"tarn: the library cannot be loaded ({error}); install the package "
                          "with pip, or name libtarn.so in TARN_LIBRARY") from None
    return SimpleNamespace(**{name: _function(library, name, *types)
                              for names, types in _FUNCTIONS.items() for name in names.split()})


def _function(library: Any, name: str, returned: Any, *kinds: Any) -> Callable[..., Any]:
    native = c.CFUNCTYPE(returned, *kinds)(("tarn_" + name, library))
    return lambda *arguments: native(*map(checked, kinds, repeat(name), arguments))


lib = _load()


def version() -> str:
    """The library's version, for example "0.1.0"."""
    return str(lib.version().decode())


def make(structure: Any, **fields: Any) -> Any:
    """A struct of options, with its size as the library wants it."""
    return structure(struct_size=c.sizeof(structure), **fields)


def reader_of(data: Any, name: str = "") -> Any:
    """A struct tarn_reader of anything with a contiguous buffer."""
    data = memoryview(data).tobytes()
    return make(Reader, name=os.fsencode(name) or None, bytes=data, size=len(data))


def sized(structure: Any) -> tuple[Any, int]:
    """A struct and its size, for the functions that take both."""
    return c.byref(structure), c.sizeof(structure)


def filled(kind: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """A struct that a function of the library fills, which takes the struct and its size last."""
    structure = kind()
    function(*arguments, *sized(structure))
    return structure


def list_of(ids: Iterable[int]) -> Any:
    """A struct tarn_list; it and structs that it is put into keep its array alive."""
    ids = [checked(u32, "an id", i) for i in ids]
    return List((u32 * len(ids))(*ids), len(ids))


def ids_of(native: Any) -> list[Any]:
    """The ids of a struct tarn_list as a list."""
    return list(native.ids[:native.count])


def fields_of(native: Any) -> dict[str, Any]:
    """A struct's fields as a dict."""
    return {name: getattr(native, name) for name, _ in native._fields_}


def record_of(kind: Callable[..., T], native: Any, /, **known: Any) -> T:
    """A named tuple of the struct's fields of the same names, but for those that are known."""
    return kind(**known, **{name: _plain(getattr(native, name))
                            for name in getattr(kind, "_fields") if name not in known})


def _plain(value: Any) -> Any:
    if isinstance(value, List):
        return tuple(ids_of(value))
    return decoded(value) if value is None or isinstance(value, bytes) else value


def decoded(value: Optional[bytes]) -> str:
    """A C string as Python's; names may hold any bytes."""
    return value.decode(errors="surrogateescape") if value else ""


def encoded(value: str) -> bytes:
    """The inverse."""
    if not isinstance(value, str):
        raise TypeError(f"a name is a str, not {value!r}")
    return value.encode(errors="surrogateescape")


def check(status: int, error: Any = None, path: Optional[str] = None) -> None:
    """Raises what a status means; `error` is the struct that the call filled."""
    if status:
        text = error.text.decode(errors="replace") if error else ""
        raise error_of(status, text or lib.status_text(status).decode(), error, path)


def call(function: Callable[..., int], *arguments: Any) -> None:
    """Calls a function whose last argument is the struct for errors. The last bytes among the others
    are the path, if it is about a file."""
    error = Error()
    status = function(*arguments, error)
    if status:
        paths = [os.fsdecode(given) for given in arguments if isinstance(given, bytes)]
        check(status, error, paths[-1] if paths else None)


def result(kind: Any, function: Callable[..., int], *arguments: Any) -> Any:
    """The same where the argument before that one is a pointer to the result, of a ctypes kind."""
    value = kind()
    call(function, *arguments, c.byref(value))
    return value
