"""Reading FlatBuffers without a library: tables, vectors, strings, with every offset checked."""
from __future__ import annotations

import struct
from typing import Any, Optional

import tarn


class Damaged(tarn.BadInput):
    """An offset of the file leads out of it."""


class Table:
    """A table of a buffer; fields by their number in the schema."""

    def __init__(self, data: bytes, place: int):
        self._data, self._place = data, place
        self._layout = place - _number(data, place, "i")
        self._layout_size = _number(data, self._layout, "H")

    @classmethod
    def root(cls, data: bytes) -> Table:
        """The table that the buffer begins with."""
        return cls(data, _number(data, 0, "I"))

    def _field(self, field: int) -> Optional[int]:
        """Where a field lies; None: it is not there."""
        at = 4 + 2 * field
        if at + 2 > self._layout_size:
            return None
        offset = _number(self._data, self._layout + at, "H")
        return self._place + offset if offset else None

    def number(self, field: int, kind: str = "i", default: int = 0) -> int:
        """A scalar, by the letter that struct has for it."""
        place = self._field(field)
        return default if place is None else _number(self._data, place, kind)

    def table(self, field: int) -> Optional[Table]:
        """A table."""
        place = self._field(field)
        return None if place is None else Table(self._data, place + _number(self._data, place, "I"))

    def string(self, field: int) -> str:
        """A string; "" where it is not there."""
        place = self._field(field)
        if place is None:
            return ""
        begin, length = self._vector(place, 1)
        return self._data[begin:begin + length].decode("utf-8", "replace")

    def numbers(self, field: int, kind: str = "i") -> list[int]:
        """A vector of scalars."""
        place = self._field(field)
        if place is None:
            return []
        begin, length = self._vector(place, struct.calcsize(kind))
        return list(struct.unpack_from(f"<{length}{kind}", self._data, begin))

    def length(self, field: int) -> int:
        """Of a vector of bytes."""
        place = self._field(field)
        return 0 if place is None else self._vector(place, 1)[1]

    def tables(self, field: int) -> list[Table]:
        """A vector of tables."""
        place = self._field(field)
        if place is None:
            return []
        begin, length = self._vector(place, 4)
        return [Table(self._data, at + _number(self._data, at, "I"))
                for at in range(begin, begin + 4 * length, 4)]

    def _vector(self, place: int, size: int) -> tuple[int, int]:
        """(where it begins, how many)"""
        begin = place + _number(self._data, place, "I")
        length = _number(self._data, begin, "I")
        if begin + 4 + length * size > len(self._data):
            raise Damaged("a vector reaches behind the end of the file")
        return begin + 4, length


def _number(data: bytes, place: int, kind: str) -> Any:
    if place < 0 or place + struct.calcsize(kind) > len(data):
        raise Damaged("an offset leads out of the file: it is cut short or damaged")
    return struct.unpack_from("<" + kind, data, place)[0]
