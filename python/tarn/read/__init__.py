"""Graphs from the files of others: one function a format, and `python -m tarn.read FILE -o GRAPH`.

    reading = tarn.read.onnx("model.onnx", batch=32)
    print(*reading.assumed, sep="\\n")
    plan = tarn.plan(reading.graph, in_place=True)

Every function returns a Reading: `graph`, what was `assumed`, and where the file says where its
producer placed each storage, that `plan`. docs/reading.md has the formats. Libraries that a format
needs are imported when it is read, and named if they are not there."""
from __future__ import annotations

import importlib
import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Optional, Union

import tarn

from .detect import FORMATS, TRACE, detect, unreadable
from .network import Reading

__all__ = ["FORMATS", "Reading", "costs", "detect", "executorch", "exported", "hlo", "onnx", "read",
           "snapshot", "somas", "stablehlo", "tflite", "xla"]

Path = Union[str, "os.PathLike[str]"]


def _reader(module: str) -> Any:
    return importlib.import_module("." + module, __name__)


def read(path: Path, format: Optional[str] = None,  # pylint: disable=redefined-builtin
         **options: Any) -> Reading:
    """Reads a file with the function of its format, which is detected where it is not named."""
    name = format or detect(path)
    if name == TRACE:
        raise tarn.UsageError(f"{os.fspath(path)} is a trace, which has times but no graph: "
                              "tarn.read.costs(trace, graph), or --costs-of GRAPH")
    other = unreadable(path) if name is None else None
    if other:
        raise tarn.BadInput(f"{os.fspath(path)} seems to be {other[0]}: {other[1]}")
    if name is None:
        raise tarn.BadInput(f"{os.fspath(path)}: the format is not known; name it, one of "
                            f"{', '.join(FORMATS)}")
    if name not in FORMATS:
        raise tarn.UsageError(f"format {name!r} is none of {', '.join(FORMATS)}")
    reading: Reading = globals()[name](path, **options)
    return reading


def onnx(model: Any, *, dims: Optional[Mapping[str, int]] = None,
         shapes: Optional[Mapping[str, Iterable[int]]] = None, **named: int) -> Reading:
    """An ONNX model (a path or an onnx.ModelProto). Numbers of symbolic dimensions are given by
    name (batch=32), or in dims where the name is no word; shapes: of tensors, by name."""
    result: Reading = _reader("onnx_model").read(model, {**(dims or {}), **named}, shapes)
    return result


def somas(path: Path) -> Reading:
    """A dump of MindSpore's SOMAS (*_somas_pre_processed_info_*.ir, *_somas_tensor_offset_*.ir);
    the plan is SOMAS's own, in a dump that has its offsets."""
    result: Reading = _reader("somas_dump").read(path)
    return result


def hlo(path: Path) -> Reading:
    """HLO text of XLA: compiled.as_text() of JAX, or a module of --xla_dump_to."""
    result: Reading = _reader("hlo_text").read(path)
    return result


def xla(path: Path, *, live_ranges: Optional[Path] = None) -> Reading:
    """XLA's buffer assignment (*-buffer-assignment.txt); the plan is XLA's own. live_ranges:
    *-live-range.txt, where it does not lie beside it."""
    result: Reading = _reader("xla_buffers").read(path, live_ranges)
    return result


def tflite(path: Path) -> Reading:
    """A TensorFlow Lite model."""
    result: Reading = _reader("tflite_model").read(path)
    return result


def executorch(path: Path, *, method: Optional[str] = None) -> Reading:
    """An ExecuTorch program (.pte); the plan has the offsets that are in it. method: None: forward,
    or the first one."""
    result: Reading = _reader("executorch_program").read(path, method)
    return result


def stablehlo(path: Path, *, function: str = "main") -> Reading:
    """A StableHLO module, text or portable bytecode."""
    result: Reading = _reader("stablehlo_module").read(path, function)
    return result


def exported(program: Any, *, dims: Optional[Mapping[str, int]] = None,
             kinds: Optional[Mapping[str, str]] = None, **named: int) -> Reading:
    """A program of torch.export (the object, or a .pt2 file), or a torch.fx.GraphModule of ATen ops.
    Numbers of symbolic dimensions by name (s77=32); kinds: of placeholders, by name, where they are
    no inputs ("parameter", "optimizer_state")."""
    result: Reading = _reader("fx_graph").read(program, {**(dims or {}), **named}, kinds)
    return result


def snapshot(path: Path, *, device: Optional[int] = None, one_stream: bool = False) -> Reading:
    """A memory snapshot of PyTorch (torch.cuda.memory._dump_snapshot): an op for each request and
    release. one_stream: all streams in the order of the host's calls. See tarn.torch.snapshot, which
    also says what PyTorch held."""
    from ..torch import snapshot as snapshots
    found = snapshots.load(path, device)
    order = "the order of the host's calls" if one_stream else \
        "no order but that of each stream: the snapshot says of none other"
    assumed = (f"device {found.device}; {found.kept} bytes that were there all the time left out",
               f"streams in {order}")
    return Reading(found.graph(os.path.basename(os.fspath(path)), one_stream), assumed)


def costs(trace: Path, graph: Union[tarn.Graph, Path], *, streams: bool = False) -> Reading:
    """The graph with the times of a trace as costs of its ops: of PyTorch's profiler (Kineto), a
    Chakra trace (JSON with times, or .et), or any trace of Chrome's format. streams: also on the
    streams where the trace has them."""
    result: Reading = _reader("trace_costs").read(trace, graph, streams)
    return result
