"""The C library: where it is found, its structs and its functions, as include/tarn/ declares them.

tests/python_layout.c compares every struct here with the headers."""
import ctypes as c
import ctypes.util
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

NONE = 0xFFFFFFFF  # no id
NO_OFFSET = FOREVER = NO_EFFORT = 0xFFFFFFFFFFFFFFFF

Ids = c.POINTER(c.c_uint32)


class Error(c.Structure):
    _fields_ = [("status", c.c_int), ("device_code", c.c_int), ("line", c.c_uint32),
                ("column", c.c_uint32), ("op", c.c_uint32), ("tensor", c.c_uint32),
                ("pointer", c.c_char * 128), ("text", c.c_char * 512)]


class List(c.Structure):
    _fields_ = [("ids", Ids), ("count", c.c_size_t)]


class Hash(c.Structure):
    _fields_ = [("word", c.c_uint64 * 2)]


class HashText(c.Structure):
    _fields_ = [("text", c.c_char * 33)]


class SpaceInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_int), ("alignment", c.c_uint64),
                ("capacity", c.c_uint64)]


class TensorInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("size", c.c_uint64), ("kind", c.c_int),
                ("alignment", c.c_uint64), ("space", c.c_uint32)]


class Implementation(c.Structure):
    _fields_ = [("name", c.c_char_p), ("cost", c.c_uint64), ("workspace", c.c_uint64),
                ("inputs", List), ("outputs", List), ("workspace_first", c.c_bool)]


class OpInfo(c.Structure):
    _fields_ = [("name", c.c_char_p), ("kind", c.c_char_p), ("stream", c.c_uint32),
                ("inputs", List), ("outputs", List), ("control", List), ("workspace", c.c_uint64),
                ("cost", c.c_uint64), ("flops", c.c_uint64), ("view", c.c_bool),
                ("workspace_first", c.c_bool), ("recomputable", c.c_int),
                ("inplace", c.POINTER(c.c_uint32 * 2)), ("inplace_count", c.c_size_t),
                ("implementations", c.POINTER(Implementation)),
                ("implementations_count", c.c_size_t), ("common", List),
                ("workspace_space", c.c_uint32)]


READ = c.CFUNCTYPE(c.c_ssize_t, c.c_void_p, c.c_void_p, c.c_size_t)
WRITE = c.CFUNCTYPE(c.c_int, c.c_void_p, c.c_void_p, c.c_size_t)


class Reader(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("bytes", c.c_char_p),
                ("size", c.c_size_t), ("read", READ), ("user", c.c_void_p)]


class Writer(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("name", c.c_char_p), ("write", WRITE),
                ("user", c.c_void_p), ("bytes", c.c_void_p), ("room", c.c_size_t),
                ("size", c.POINTER(c.c_size_t))]


class GraphSummary(c.Structure):
    _fields_ = [(name, c.c_uint32) for name in ("streams", "ops", "views", "tensors", "storages",
                                                "workspaces", "groups", "arcs", "arcs_kept")]
    _fields_ += [(name, c.c_uint64) for name in ("sum", "persistent", "serial_peak", "cost")]


class AssignOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("mode", c.c_int), ("streams", c.c_uint32),
                ("wait_ns", c.c_uint32), ("communication_words", c.POINTER(c.c_char_p)),
                ("communication_words_count", c.c_size_t), ("copy_words", c.POINTER(c.c_char_p)),
                ("copy_words_count", c.c_size_t), ("alignment", c.c_uint64), ("report", c.c_void_p),
                ("report_size", c.c_size_t)]


class ReorderOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("alignment", c.c_uint64), ("effort", c.c_uint32),
                ("keep_time", c.c_bool), ("report", c.c_void_p), ("control", c.c_void_p),
                ("report_size", c.c_size_t)]


class CoupleOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("alignment", c.c_uint64), ("capacity", c.c_uint64),
                ("keep", c.c_double), ("slowdown_max", c.c_double), ("wait_ns", c.c_uint32),
                ("report", c.c_void_p), ("control", c.c_void_p), ("report_size", c.c_size_t)]


class InPlaceOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("kinds", c.POINTER(c.c_char_p)),
                ("kinds_count", c.c_size_t), ("report", c.c_void_p), ("report_size", c.c_size_t)]


class BudgetOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("budget", c.c_uint64), ("method", c.c_int),
                ("effort", c.c_uint64), ("alignment", c.c_uint64), ("report", c.c_void_p),
                ("control", c.c_void_p), ("report_size", c.c_size_t)]


class PlanProgress(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("footprint", c.c_uint64), ("bound", c.c_uint64),
                ("steps", c.c_uint64)]


PROGRESS = c.CFUNCTYPE(None, c.c_void_p, c.POINTER(PlanProgress))
BEAT = c.CFUNCTYPE(c.c_bool, c.c_void_p, c.POINTER(PlanProgress))


class PlanOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("alignment", c.c_uint64), ("capacity", c.c_uint64),
                ("method", c.c_char_p), ("threads", c.c_uint32), ("seed", c.c_uint64),
                ("effort", c.c_uint64), ("seconds", c.c_double), ("progress", PROGRESS),
                ("user", c.c_void_p), ("stop", c.POINTER(c.c_bool)),
                ("assign", c.POINTER(AssignOptions)), ("reorder", c.POINTER(ReorderOptions)),
                ("couple", c.POINTER(CoupleOptions)), ("in_place", c.POINTER(InPlaceOptions)),
                ("boundary", c.c_int), ("budget", c.POINTER(BudgetOptions)),
                ("node_limit", c.c_uint32), ("beat", BEAT), ("pad_groups", c.c_int)]


class PlanSummary(c.Structure):
    _fields_ = [("method", c.c_char_p), ("alignment", c.c_uint64), ("footprint", c.c_uint64),
                ("persistent", c.c_uint64), ("bound", c.c_uint64), ("optimal", c.c_bool),
                ("waits", c.c_uint32), ("boundary_waits", c.c_uint32)]
    _fields_ += [(name, c.c_double) for name in ("transform_ms", "order_ms", "place_ms",
                                                 "verify_ms")]
    _fields_ += [("stopped", c.c_int), ("pad_groups", c.c_int)]


class Wait(c.Structure):
    _fields_ = [("op", c.c_uint32), ("on", c.c_uint32)]


class Waits(c.Structure):
    _fields_ = [("waits", c.POINTER(Wait)), ("count", c.c_size_t)]


class Certificate(c.Structure):
    _fields_ = [("bound", c.c_uint64), ("launched", Ids), ("streams_count", c.c_size_t),
                ("gaps", List), ("inside", List)]


class PlanSpaceSummary(c.Structure):
    _fields_ = [("method", c.c_char_p), ("footprint", c.c_uint64), ("persistent", c.c_uint64),
                ("bound", c.c_uint64), ("optimal", c.c_bool), ("certificate", Certificate)]


class PlanIdentity(c.Structure):
    _fields_ = [("source", Hash), ("plan", Hash)]


class Device(c.Structure):
    _fields_ = [("table", c.c_void_p), ("self", c.c_void_p)]


class HostOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("workers", c.c_uint32), ("unpinned", c.c_bool),
                ("small_pages", c.c_bool), ("execute", c.c_void_p), ("execute_user", c.c_void_p),
                ("memory", c.c_void_p)]


class Call(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("op", c.c_uint32), ("origin", c.c_uint32),
                ("implementation", c.c_uint32), ("recomputed", c.c_bool), ("stream", c.c_uint32),
                ("iteration", c.c_uint64), ("queue", c.c_void_p), ("inputs", c.POINTER(c.c_void_p)),
                ("outputs", c.POINTER(c.c_void_p)), ("workspace", c.c_void_p),
                ("inputs_count", c.c_size_t), ("outputs_count", c.c_size_t),
                ("input_sizes", c.POINTER(c.c_uint64)), ("output_sizes", c.POINTER(c.c_uint64)),
                ("workspace_size", c.c_uint64)]


KERNEL = c.CFUNCTYPE(c.c_int, c.c_void_p, c.POINTER(Call))


class SpaceMemory(c.Structure):
    _fields_ = [("memory", c.c_void_p), ("size", c.c_uint64)]


class SessionOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("blocking", List), ("urgent", c.POINTER(List)),
                ("memory", c.c_void_p), ("memory_size", c.c_uint64), ("binds_persistent", c.c_bool),
                ("shares_memory", c.c_bool), ("capture", c.c_bool), ("unroll", c.c_uint32),
                ("uncapturable", List), ("depth", c.c_uint32), ("patience_ns", c.c_uint64),
                ("flight", c.c_uint32), ("stamps", c.c_bool), ("flight_line", c.c_void_p),
                ("flight_user", c.c_void_p), ("stream_devices", Ids),
                ("more_devices", c.POINTER(Device)), ("more_devices_count", c.c_size_t),
                ("arena", c.c_void_p), ("queues", c.c_void_p),
                ("space_memory", c.POINTER(SpaceMemory)), ("space_memory_count", c.c_size_t)]


class CheckOptions(c.Structure):
    _fields_ = [("struct_size", c.c_size_t), ("iterations", c.c_uint32), ("seed", c.c_uint64),
                ("delay_ns", c.c_uint32), ("random_order", c.c_bool), ("order", c.c_void_p),
                ("order_count", c.c_size_t), ("timeout_ns", c.c_uint64)]


class CheckReport(c.Structure):
    _fields_ = [("ops_run", c.c_uint64), ("bytes_read", c.c_uint64), ("bytes_written", c.c_uint64),
                ("digest", c.c_uint64)]


_ptr, _err, _size, _text = c.c_void_p, c.POINTER(Error), c.c_uint64, c.c_char_p

# name -> result, arguments; a result of c.c_int is a status
_FUNCTIONS = {
    "version": (_text,),
    "status_text": (_text, c.c_int),
    "builder_create": (_ptr, _text),
    "builder_destroy": (None, _ptr),
    "builder_stream": (c.c_uint32, _ptr, _text),
    "builder_space_sized": (c.c_uint32, _ptr, c.POINTER(SpaceInfo), c.c_size_t),
    "builder_tensor_sized": (c.c_uint32, _ptr, c.POINTER(TensorInfo), c.c_size_t),
    "builder_alias": (c.c_uint32, _ptr, c.c_uint32, _text),
    "builder_op_sized": (c.c_uint32, _ptr, c.POINTER(OpInfo), c.c_size_t),
    "builder_control": (None, _ptr, c.c_uint32, c.c_uint32),
    "builder_after_readers": (None, _ptr, c.c_uint32),
    "builder_group": (None, _ptr, List),
    "builder_group_padded": (None, _ptr, List),
    "builder_finish": (c.c_int, _ptr, c.POINTER(_ptr), _err),
    "graph_load": (c.c_int, _text, c.POINTER(_ptr), _err),
    "graph_save": (c.c_int, _ptr, _text, _err),
    "graph_read": (c.c_int, c.POINTER(Reader), _ptr, c.POINTER(_ptr), _err),
    "graph_write": (c.c_int, _ptr, c.POINTER(Writer), _err),
    "graph_destroy": (None, _ptr),
    "graph_name": (_text, _ptr),
    "graph_streams_count": (c.c_uint32, _ptr),
    "graph_ops_count": (c.c_uint32, _ptr),
    "graph_tensors_count": (c.c_uint32, _ptr),
    "graph_stream_name": (_text, _ptr, c.c_uint32),
    "graph_op_sized": (c.c_bool, _ptr, c.c_uint32, c.POINTER(OpInfo), c.c_size_t),
    "graph_tensor_sized": (c.c_bool, _ptr, c.c_uint32, c.POINTER(TensorInfo), c.c_size_t),
    "graph_spaces_count": (c.c_uint32, _ptr),
    "graph_space_sized": (c.c_bool, _ptr, c.c_uint32, c.POINTER(SpaceInfo), c.c_size_t),
    "graph_root": (c.c_uint32, _ptr, c.c_uint32),
    "graph_groups_count": (c.c_uint32, _ptr),
    "graph_group": (List, _ptr, c.c_uint32),
    "graph_group_is_padded": (c.c_bool, _ptr, c.c_uint32),
    "graph_hash": (Hash, _ptr),
    "hash_format": (HashText, Hash),
    "graph_summarize_sized": (c.c_int, _ptr, c.POINTER(GraphSummary), c.c_size_t, _err),
    "graph_bound": (c.c_int, _ptr, c.POINTER(c.c_uint64), _err),
    "plan_create": (c.c_int, _ptr, c.POINTER(PlanOptions), c.POINTER(_ptr), _err),
    "plan_load": (c.c_int, _text, _ptr, c.c_int, c.POINTER(_ptr), _err),
    "plan_save": (c.c_int, _ptr, _text, _err),
    "plan_read": (c.c_int, c.POINTER(Reader), _ptr, c.c_int, c.POINTER(_ptr), _err),
    "plan_write": (c.c_int, _ptr, c.POINTER(Writer), _err),
    "plan_destroy": (None, _ptr),
    "plan_summarize_sized": (None, _ptr, c.POINTER(PlanSummary), c.c_size_t),
    "plan_space_sized": (c.c_bool, _ptr, c.c_uint32, c.POINTER(PlanSpaceSummary), c.c_size_t),
    "plan_graph": (_ptr, _ptr),
    "plan_offset": (_size, _ptr, c.c_uint32),
    "plan_workspace_offset": (_size, _ptr, c.c_uint32),
    "plan_launches": (List, _ptr, c.c_uint32),
    "plan_waits": (Waits, _ptr),
    "plan_boundary_waits": (Waits, _ptr),
    "plan_op_origin": (c.c_uint32, _ptr, c.c_uint32),
    "plan_tensor_origin": (c.c_uint32, _ptr, c.c_uint32),
    "plan_op_implementation": (c.c_uint32, _ptr, c.c_uint32),
    "plan_op_is_recomputed": (c.c_bool, _ptr, c.c_uint32),
    "plan_group": (c.c_int, _ptr, c.c_uint32, c.POINTER(_size), c.POINTER(_size)),
    "plan_identify": (PlanIdentity, _ptr),
    "plan_verify": (c.c_int, _ptr, _ptr, _ptr, _err),
    "device_host": (Device, c.POINTER(HostOptions)),
    "session_create": (c.c_int, _ptr, Device, c.POINTER(SessionOptions), c.POINTER(_ptr), _err),
    "session_destroy_within": (c.c_int, _ptr, c.c_uint64, _err),
    "session_bind": (c.c_int, _ptr, c.c_uint32, KERNEL, _ptr),
    "session_bind_default": (c.c_int, _ptr, KERNEL, _ptr),
    "session_bind_memory": (c.c_int, _ptr, c.c_uint32, _ptr, _err),
    "session_address": (_ptr, _ptr, c.c_uint32),
    "session_group": (c.c_int, _ptr, c.c_uint32, c.POINTER(_ptr), c.POINTER(_size), _err),
    "session_write": (c.c_int, _ptr, c.c_uint32, _ptr, _size, _err),
    "session_read": (c.c_int, _ptr, c.c_uint32, _ptr, _size, _err),
    "session_submit": (c.c_int, _ptr, c.c_uint64, c.POINTER(c.c_uint64), _err),
    "session_wait": (c.c_int, _ptr, c.c_uint64, c.c_uint64, _err),
    "session_cancel": (None, _ptr),
    "session_save_dump": (c.c_int, _ptr, _text, _text, _err),
    "session_save_trace": (c.c_int, _ptr, _text, _err),
    "session_check_sized": (c.c_int, _ptr, c.POINTER(CheckOptions), c.POINTER(CheckReport),
                            c.c_size_t, _err),
}


def _find():
    """TARN_LIBRARY, else the one in this package, else what the system's loader finds."""
    given = os.environ.get("TARN_LIBRARY")
    if given:
        return given
    own = Path(__file__).with_name("libtarn_python.so")
    return str(own) if own.exists() else ctypes.util.find_library("tarn") or "libtarn.so.0"


class _Functions:
    def __init__(self):
        path = _find()
        try:
            library = c.CDLL(path)
        except OSError as error:
            raise ImportError(f"tarn: the library cannot be loaded ({error}); install the package "
                              "with pip, or name libtarn.so in TARN_LIBRARY") from None
        for name, (result, *arguments) in _FUNCTIONS.items():
            function = getattr(library, "tarn_" + name)
            function.restype, function.argtypes = result, arguments
            setattr(self, name, function)

    if TYPE_CHECKING:
        def __getattr__(self, name: str) -> Any: ...


lib = _Functions()


def version():
    """The library's version, for example "0.1.0"."""
    return lib.version().decode()


def make(structure, **fields):
    """A struct of options, with its size as the library wants it."""
    return structure(struct_size=c.sizeof(structure), **fields)


def reader_of(data, name=""):
    """A struct tarn_reader of bytes."""
    return make(Reader, name=os.fsencode(name) or None, bytes=data, size=len(data))


def sized(structure):
    """A struct and its size, for the functions that take both."""
    return structure, c.sizeof(structure)


def list_of(ids):
    """A struct tarn_list, and what must stay alive as long as it is used."""
    array = (c.c_uint32 * len(ids))(*ids)
    return List(c.cast(array, Ids), len(ids)), array


def ids_of(native):
    """The ids of a struct tarn_list as a list."""
    return native.ids[:native.count]


def fields_of(native):
    """A struct's fields as a dict."""
    return {field[0]: getattr(native, field[0]) for field in native._fields_}


def words_of(words):
    """An array of C strings."""
    return (c.c_char_p * len(words))(*(word.encode() for word in words))
