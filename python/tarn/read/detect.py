"""What a file seems to be, from its first bytes. The same table is in streams/file/foreign.c, which
tells the command's users."""
from __future__ import annotations

import gzip
import os
import re
from typing import Any, Optional

# Format: what it is.
FORMATS = {
    "onnx": "an ONNX model",
    "somas": "a dump of MindSpore's SOMAS",
    "tflite": "a TensorFlow Lite model",
    "executorch": "an ExecuTorch program",
    "hlo": "HLO text of XLA",
    "xla": "a buffer assignment of XLA",
    "stablehlo": "a StableHLO module",
    "exported": "a program of torch.export",
    "snapshot": "a memory snapshot of PyTorch",
}
TRACE = "trace"  # which has costs for a graph that is there
_MODEL = "it has no graph; read the model that it belongs to"
_EXPORT = "write the model with torch.export.save, or as ONNX, and read that"
_PROTOBUF = "write the model as ONNX, TensorFlow Lite, StableHLO or HLO text, and read that"
_OF_TARN = "it needs no conversion; `tarn` and tarn.Graph.load read graphs, tarn.Plan.load plans"
_LOOKED_AT = 1 << 16
_MAGIC = {b"TFL3": "tflite", b"ET12": "executorch"}


def _varint(data: bytes, place: int) -> tuple[Optional[int], int]:
    value = shift = 0
    while place < len(data) and shift < 64:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value, place
    return None, place


def _is_readable(text: bytes) -> bool:
    return all(byte >= 32 for byte in text)


def _field(data: bytes, place: int, field: int) -> tuple[Optional[int], int]:
    """The length of a message or text that is this field, and where it begins."""
    key, place = _varint(data, place)
    return _varint(data, place) if key == field << 3 | 2 else (None, place)


def _is_tensor_flow(data: bytes) -> bool:
    """SavedModel: version 1, then a MetaGraphDef, which begins with a message. GraphDef and
    HloProto: a message that begins with two texts."""
    size, place = _field(data, 2, 2)
    if data.startswith(b"\x08\x01") and size is not None:
        inner, _ = _field(data, place, 1)
        if inner is not None:
            return inner < size
    size, place = _field(data, 0, 1)
    for field in (1, 2):
        inner, place = _field(data, place, field) if size is not None else (None, place)
        if not inner or size is None or inner >= size or not _is_readable(data[place:place + inner]):
            return False
        place += inner
    return True


def _is_onnx(data: bytes) -> bool:
    """ModelProto: fields 1 (ir_version) and 5 are varints, the others texts and messages."""
    place = 0
    seen: set[int] = set()
    while place < len(data) and not (1 in seen and len(seen) > 1):
        key, place = _varint(data, place)
        if key is None or key >> 3 not in (1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26) or \
                key & 7 != (0 if key >> 3 in (1, 5) else 2):
            return False
        value, place = _varint(data, place)
        if value is None or key >> 3 == 1 and not 1 <= value <= 100:
            return False
        if key >> 3 in (2, 3, 4) and not _is_readable(data[place:place + value]):
            return False
        seen.add(key >> 3)
        place += value if key & 7 == 2 else 0
    return 1 in seen and len(seen) > 1


def _of_text(text: str) -> Optional[str]:
    if re.search(r"^HloModule [\w.\-]+", text, re.M):
        return "hlo"
    if re.search(r"^BufferAssignment:\s*$", text, re.M):
        return "xla"
    if re.search(r"^All (Parameters|Tensors|Nodes):\s*$", text, re.M) and "index:" in text:
        return "somas"
    if re.search(r"^\s*(module|func\.func)\b", text, re.M) and \
            ("stablehlo." in text or "func.func" in text):
        return "stablehlo"
    if text.lstrip()[:1] in ("{", "[") and \
            re.search(r'"traceEvents"|"deviceProperties"|chakra|"ph"\s*:', text):
        return TRACE
    return None


def _first_bytes(path: Any) -> bytes:
    with open(path, "rb") as file:
        data = file.read(_LOOKED_AT)
        if data[:2] == b"\x1f\x8b":
            file.seek(0)
            with gzip.open(file) as unpacked:
                data = unpacked.read(_LOOKED_AT)
    return data


def _unreadable(data: bytes) -> Optional[tuple[str, str]]:
    """What a file is that has nothing to read, and what to do."""
    first = data[30:30 + int.from_bytes(data[26:28], "little")] if data[:4] == b"PK\3\4" else b""
    if first.endswith(b".npy") or data.startswith(b"\x93NUMPY"):
        return "an array of NumPy", _MODEL
    if first.endswith(b"/data.pkl") or data[1:].startswith(b"\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19"):
        return "tensors that torch.save wrote", _MODEL
    if first and b"/code/__torch__" in data:
        return "a program of TorchScript", _EXPORT
    if data[8:10] == b'{"' and data[5:8] == bytes(3):
        return "weights in the format of safetensors", _MODEL
    if data.startswith(b"GGUF"):
        return "weights in GGUF", _MODEL
    if data.startswith(b"\x89HDF\r\n"):
        return "an HDF5 file, as Keras writes weights", _MODEL
    of_tarn = re.match(rb'\s*\{\s*"format"\s*:\s*"tarn\.(\w+)"', data)
    if of_tarn:
        return f"a file of Tarn (tarn.{of_tarn[1].decode('ascii', 'replace')})", _OF_TARN
    if _is_tensor_flow(data):
        return "a protobuf of TensorFlow or XLA", _PROTOBUF
    return None


def unreadable(path: Any) -> Optional[tuple[str, str]]:
    """What a file without a format of FORMATS seems to be, and what to do instead; None: nothing
    known."""
    return _unreadable(_first_bytes(path))


def detect(path: Any) -> Optional[str]:
    """The name of the format, one of FORMATS, or TRACE; None: not known."""
    data = _first_bytes(path)
    if data[4:8] in _MAGIC:
        return _MAGIC[data[4:8]]
    if _unreadable(data):
        return None
    if data.startswith(b"PK\x03\x04"):
        return "exported"
    if len(data) > 2 and data[0] == 0x80 and 2 <= data[1] <= 5:
        return "snapshot"
    if data.startswith(b"ML\xefR"):
        return "stablehlo"
    found = _of_text(data.decode("utf-8", "replace"))
    if found is None and _is_onnx(data):
        return "onnx"
    if found is None and os.fspath(path).endswith(".et"):
        return TRACE
    return found
