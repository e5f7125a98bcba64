"""Writes FlatBuffers, for tests of readers: a table is a dict {field: value}. A value is a pair
(struct's letter, number), a str, bytes, a list of numbers ("i") or of tables, a pair (letter, list),
or a table."""
import struct


def _parts(value):
    """(how it is placed, its bytes or a list of what it leads to)"""
    if isinstance(value, dict):
        return "table", value
    if isinstance(value, str):
        return "vector", value.encode()
    if isinstance(value, bytes):
        return "vector", value
    if isinstance(value, tuple) and isinstance(value[1], list):
        return "numbers", value
    if isinstance(value, tuple):
        return "scalar", struct.pack("<" + value[0], value[1])
    if value and isinstance(value[0], (dict, str)):
        return "tables", value
    return "numbers", ("i", value)


class Writer:
    def __init__(self, root, identifier):
        self.data = bytearray(struct.pack("<I4s", 0, identifier))
        struct.pack_into("<I", self.data, 0, self._table(root))

    def _pad(self, size):
        self.data += bytes(-len(self.data) % size)

    def _table(self, fields):
        """Where the table lies: layout, then fields of 8 bytes each, what they lead to behind."""
        count = max(fields, default=-1) + 1
        self._pad(8)
        layout = len(self.data)
        places = {field: 4 + 4 + 8 * i for i, field in enumerate(sorted(fields))}
        self.data += struct.pack(f"<HH{count}H", 4 + 2 * count, 8 + 8 * len(fields),
                                 *(places.get(f, 0) for f in range(count)))
        self._pad(8)
        table = len(self.data)
        self.data += struct.pack("<ii", table - layout, 0) + bytes(8 * len(fields))
        for field, at in places.items():
            how, value = _parts(fields[field])
            if how == "scalar":
                self.data[table + at:table + at + len(value)] = value
            else:
                there = self._value(how, value)
                struct.pack_into("<I", self.data, table + at, there - (table + at))
        return table

    def _value(self, how, value):
        if how == "table":
            return self._table(value)
        self._pad(8)
        self.data += bytes(4 if how == "numbers" and struct.calcsize(value[0]) == 8 else 0)
        begin = len(self.data)
        if how == "vector":
            self.data += struct.pack("<I", len(value)) + value + b"\0"
        elif how == "numbers":
            letter, numbers = value
            self.data += struct.pack(f"<I{len(numbers)}{letter}", len(numbers), *numbers)
        else:
            self.data += struct.pack("<I", len(value)) + bytes(4 * len(value))
            for i, part in enumerate(value):
                at = begin + 4 + 4 * i
                how_part, inside = _parts(part)
                struct.pack_into("<I", self.data, at, self._value(how_part, inside) - at)
        return begin


def written(root, identifier):
    return bytes(Writer(root, identifier).data)
