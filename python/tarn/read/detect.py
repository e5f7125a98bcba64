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


def detect(path: Any) -> Optional[str]:
    """The name of the format, one of FORMATS, or TRACE; None: not known."""
    with open(path, "rb") as file:
        data = file.read(_LOOKED_AT)
        if data[:2] == b"\x1f\x8b":
            file.seek(0)
            with gzip.open(file) as unpacked:
                data = unpacked.read(_LOOKED_AT)
    if data[4:8] in _MAGIC:
        return _MAGIC[data[4:8]]
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
