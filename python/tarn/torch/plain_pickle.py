"""Reads pickles of plain values: numbers, text, bytes, lists, tuples, dicts. Nothing else is made, no
name is looked up, so that nothing of a pickle is executed.

A pickle is a program for a machine with a stack and a memo. The one of the standard library trusts
its numbers: ten bytes make it take gigabytes (a large number of a memo), and a value that has itself
many times over takes for ever as a key. So this is a machine of our own. What it makes grows with
the bytes that it has read, up to some hundred bytes for each: every instruction makes one object at
most, no length is beyond the end of the data, the memo is a dict, and keys are numbers or text."""
from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import tarn

DIGITS = 400  # of a number that is written as text
NEWEST = 5  # protocol


class Refused(tarn.BadInput):
    """What a pickle has that no plain one has."""


class _Data:
    """The bytes, and how far they were read."""

    def __init__(self, data: bytes) -> None:
        self.bytes, self.at = data, 0

    def take(self, count: int) -> bytes:
        end = self.at + count
        if end > len(self.bytes):
            raise Refused(f"it is cut short, or damaged: {count} bytes should follow byte {self.at}, "
                          f"of {len(self.bytes)}")
        part, self.at = self.bytes[self.at:end], end
        return part

    def byte(self) -> int:
        at = self.at
        if at == len(self.bytes):
            raise Refused(f"it is cut short, or damaged: it has no end, after {at} bytes")
        self.at = at + 1
        return self.bytes[at]

    def number(self, size: int, signed: bool = False) -> int:
        return int.from_bytes(self.take(size), "little", signed=signed)

    def counted(self, size: int) -> bytes:
        """What comes behind its own length, which has `size` bytes."""
        return self.take(self.byte() if size == 1 else self.number(size))

    def line(self, longest: int = DIGITS) -> bytes:
        end = self.bytes.find(b"\n", self.at)
        if end < 0 or end - self.at > longest:
            raise Refused(f"it is damaged: a line is too long, or has no end, at byte {self.at}")
        return self.take(end + 1 - self.at)[:-1]


def _whole(data: _Data) -> Any:
    line = data.line()
    return line == b"01" if line in (b"00", b"01") else int(line)


# What pushes a value: opcode -> how it is read.
_VALUES: dict[int, Callable[[_Data], Any]] = {
    ord("N"): lambda data: None,
    0x88: lambda data: True,
    0x89: lambda data: False,
    ord("J"): lambda data: data.number(4, signed=True),
    ord("K"): _Data.byte,
    ord("M"): lambda data: data.number(2),
    0x8a: lambda data: int.from_bytes(data.counted(1), "little", signed=True),
    0x8b: lambda data: int.from_bytes(data.counted(4), "little", signed=True),
    ord("I"): _whole,
    ord("L"): lambda data: int(data.line().rstrip(b"L")),
    ord("F"): lambda data: float(data.line()),
    ord("G"): lambda data: struct.unpack(">d", data.take(8))[0],
    ord("V"): lambda data: data.line(1 << 30).decode("raw-unicode-escape"),
    ord("X"): lambda data: data.counted(4).decode("utf-8", "surrogatepass"),
    0x8c: lambda data: data.counted(1).decode("utf-8", "surrogatepass"),
    0x8d: lambda data: data.counted(8).decode("utf-8", "surrogatepass"),
    ord("T"): lambda data: data.counted(4).decode("ascii"),
    ord("U"): lambda data: data.counted(1).decode("ascii"),
    ord("B"): lambda data: data.counted(4),
    ord("C"): lambda data: data.counted(1),
    0x8e: lambda data: data.counted(8),
    ord("]"): lambda data: [],
    ord("}"): lambda data: {},
    ord(")"): lambda data: (),
}
# A number of the memo, besides BINGET: opcode -> how it is read.
_GETS: dict[int, Callable[[_Data], int]] = {
    ord("j"): lambda data: data.number(4), ord("g"): lambda data: int(data.line())}
_PUTS: dict[int, Callable[[_Data], int]] = {
    ord("q"): _Data.byte, ord("r"): lambda data: data.number(4),
    ord("p"): lambda data: int(data.line())}
_TUPLES = {0x85: 1, 0x86: 2, 0x87: 3}
_FOREIGN = {**dict.fromkeys(b"ci\x93", "a name"), **dict.fromkeys(b"Rob\x81\x92", "a call"),
            **dict.fromkeys(b"PQ", "what lies outside"),
            **dict.fromkeys(b"\x82\x83\x84", "an extension"),
            **dict.fromkeys(b"\x96\x97\x98", "a buffer"),
            **dict.fromkeys(b"\x8f\x90\x91", "a set")}


def _extend(target: Any, items: list[Any]) -> None:
    if type(target) is not list:
        raise Refused("it is damaged: something is appended to what is no list")
    target.extend(items)


def _fill(target: Any, items: list[Any]) -> None:
    if type(target) is not dict or len(items) % 2:
        raise Refused("it is damaged: something is set in what is no dict, or a key has no value")
    for key, value in zip(items[::2], items[1::2]):
        if type(key) is not str and type(key) is not int:
            raise Refused(f"a key is a {type(key).__name__}: only text and numbers are read there")
        target[key] = value


class _Machine:
    """The values above the last mark, those below it, mark by mark, and the memo."""

    def __init__(self, data: bytes) -> None:
        self.data = _Data(data)
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def to_mark(self) -> list[Any]:
        """The values above the last mark; the mark is gone."""
        items, self.stack = self.stack, self.below.pop()
        return items

    def last(self, count: int) -> list[Any]:
        """The last values, which are taken from the stack."""
        if len(self.stack) < count:
            raise IndexError
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def frame(self) -> None:
        size = self.data.number(8)
        if size > len(self.data.bytes) - self.data.at:
            raise Refused(f"it is cut short, or damaged: a frame of {size} bytes is longer than it")

    def version(self) -> None:
        version = self.data.number(1)
        if version > NEWEST:
            raise Refused(f"it is of protocol {version}: up to {NEWEST} are read")

    def container(self, code: int) -> bool:
        """Lists, dicts and tuples; false: it is none of their instructions."""
        if code == 0x75:  # SETITEMS
            items = self.to_mark()
            _fill(self.stack[-1], items)
        elif code == 0x65:  # APPENDS
            items = self.to_mark()
            _extend(self.stack[-1], items)
        elif code == 0x73:  # SETITEM
            items = self.last(2)
            _fill(self.stack[-1], items)
        elif code == 0x61:  # APPEND
            items = self.last(1)
            _extend(self.stack[-1], items)
        elif code in _TUPLES:
            self.stack.append(tuple(self.last(_TUPLES[code])))
        elif code == 0x74:  # TUPLE
            items = self.to_mark()
            self.stack.append(tuple(items))
        elif code == 0x6c:  # LIST
            items = self.to_mark()
            self.stack.append(items)
        elif code == 0x64:  # DICT
            items = self.to_mark()
            self.stack.append({})
            _fill(self.stack[-1], items)
        else:
            return False
        return True

    def other(self, code: int) -> None:
        """What stands in few pickles, or in each once."""
        if code == 0x95:
            self.frame()
        elif code == 0x80:
            self.version()
        elif code == 0x30:  # POP, also of a mark
            self.stack.pop() if self.stack else self.to_mark()
        elif code == 0x31:  # POP_MARK
            self.to_mark()
        elif code == 0x32:  # DUP
            self.stack.append(self.stack[-1])
        elif code in _FOREIGN:
            raise Refused(f"it asks for {_FOREIGN[code]}: only plain values are read")
        else:
            raise Refused(f"byte {self.data.at - 1} is damaged: 0x{code:02x} is no instruction")

    def run(self) -> Any:
        data, memo, values = self.data, self.memo, _VALUES
        while True:
            code = data.byte()
            if code == 0x68:  # BINGET: most of a snapshot's text comes again and again
                self.stack.append(memo[data.byte()])
            elif code in values:
                self.stack.append(values[code](data))
            elif code in _GETS:
                self.stack.append(memo[_GETS[code](data)])
            elif code == 0x94:  # MEMOIZE
                memo[len(memo)] = self.stack[-1]
            elif code in _PUTS:
                memo[_PUTS[code](data)] = self.stack[-1]
            elif code == 0x28:  # MARK
                self.below.append(self.stack)
                self.stack = []
            elif code == 0x2e:  # STOP
                return self.stack.pop()
            elif not self.container(code):
                self.other(code)


def loads(data: bytes) -> Any:
    """The value of a pickle; tarn.BadInput where it is damaged, or has more than plain values."""
    machine = _Machine(data)
    try:
        return machine.run()
    except (IndexError, KeyError):  # of the stack, of the memo
        raise Refused(f"byte {machine.data.at} is damaged: something is not there") from None
    except (ValueError, OverflowError) as error:
        if isinstance(error, Refused):
            raise
        raise Refused(f"byte {machine.data.at} is damaged: {type(error).__name__}") from None
