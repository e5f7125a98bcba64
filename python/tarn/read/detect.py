"""What a file seems to be, from its first bytes. The same table is in streams/file/foreign.c, which
tells the command's users."""
from __future__ import annotations

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
}
_LOOKED_AT = 1 << 16
_MAGIC = {b"TFL3": "tflite", b"ET12": "executorch"}


def _is_onnx(data: bytes) -> bool:
    """ModelProto begins with ir_version (field 1, varint), or with a field of bytes that has the
    length that it says; opset_import (field 8) or graph (field 7) follow."""
    place = 0
    seen: set[int] = set()
    while place < len(data) and len(seen) < 3:
        key, place = _varint(data, place)
        if key is None or key >> 3 not in (1, 2, 3, 4, 5, 6, 7, 8, 14, 20, 25, 26):
            return False
        number, wire = key >> 3, key & 7
        if wire != (0 if number in (1, 5) else 2):
            return False
        value, place = _varint(data, place)
        if value is None:
            return False
        if number == 1 and not 1 <= value <= 100:
            return False
        seen.add(number)
        if number == 7:
            return 1 in seen or 8 in seen
        place += value if wire == 2 else 0
    return 1 in seen and (7 in seen or 8 in seen or place > len(data))


def _varint(data: bytes, place: int) -> Any:
    value = shift = 0
    while place < len(data) and shift < 64:
        value |= (data[place] & 127) << shift
        place, shift = place + 1, shift + 7
        if data[place - 1] < 128:
            return value, place
    return None, place


def detect(path: Any) -> Optional[str]:
    """The name of the format, one of FORMATS; None: not known."""
    with open(path, "rb") as file:
        data = file.read(_LOOKED_AT)
    if data[4:8] in _MAGIC:
        return _MAGIC[data[4:8]]
    text = data.decode("utf-8", "replace")
    if re.search(r"^All (Parameters|Tensors|Nodes):\s*$", text, re.M) and "_size:" in text:
        return "somas"
    if re.search(r"^HloModule [\w.\-]+", text, re.M):
        return "hlo"
    if re.search(r"^BufferAssignment:\s*$", text, re.M):
        return "xla"
    if _is_onnx(data) or os.fspath(path).endswith(".onnx"):
        return "onnx"
    return None
