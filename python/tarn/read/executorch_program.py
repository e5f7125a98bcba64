"""ExecuTorch programs (.pte: FlatBuffers, identifier ET12): tensors with their lifetimes, arenas by
mem_id, and the offsets that the program has, as a plan. Needs no library."""
from __future__ import annotations

import os
from typing import Any, Optional

import tarn

from .flat import Damaged, Table
from .intervals import Value, reading
from .network import Network, Reading, counted, listed, size_of

ALIGNMENT = 16  # of ExecuTorch's memory planning
_BITS = {0: 8, 1: 8, 2: 16, 3: 32, 4: 64, 5: 16, 6: 32, 7: 64, 8: 32, 9: 64, 10: 128, 11: 8, 12: 8,
         13: 8, 14: 32, 15: 16, 16: 4, 17: 2, 22: 8, 24: 8, 25: 8, 26: 8, 27: 16, 28: 32, 29: 64}
_TENSOR, _TENSOR_LIST, _OPTIONAL_LIST = 5, 10, 11
_KERNEL, _DELEGATE, _MOVE, _JUMP, _FREE = 1, 2, 3, 4, 5


class _Method:
    """One execution plan of a program."""

    def __init__(self, plan: Table, name: str):
        self.name = name
        self.values = plan.tables(2)
        self.inputs, self.outputs = plan.numbers(3), plan.numbers(4)
        self.chains = plan.tables(5)
        self.operators = [".".join(filter(None, (o.string(0), o.string(1)))) or "operator"
                          for o in plan.tables(6)]
        self.delegates = [d.string(0) for d in plan.tables(7)]
        self.spaces: dict[int, int] = {}

    def value(self, number: int) -> Table:
        if not 0 <= number < len(self.values):
            raise tarn.BadInput(f"{self.name} names value {number}, and has {len(self.values)}")
        return self.values[number]

    def tensors(self, number: int, depth: int = 0) -> list[int]:
        """The tensors that a value is or lists."""
        value = self.value(number)
        kind, inside = value.number(0, "B"), value.table(1)
        if kind == _TENSOR:
            return [number]
        if kind in (_TENSOR_LIST, _OPTIONAL_LIST) and inside is not None and depth < 2:
            return [t for i in inside.numbers(0) if i >= 0 for t in self.tensors(i, depth + 1)]
        return []

    def placed(self, number: int) -> Optional[tuple[int, int, int]]:
        """(memory, offset, size) of a tensor that is planned."""
        tensor = self.value(number).table(1)
        where = tensor.table(6) if tensor is not None else None
        if tensor is None or where is None:
            return None
        kind = tensor.number(0, "b")
        if kind not in _BITS:
            raise tarn.BadInput(f"{self.name}: value {number} has elements of type {kind}, which have "
                                "no known size")
        size = size_of(tensor.numbers(2), _BITS[kind], f"value {number} of {self.name}")
        offset = where.number(1, "I") | where.number(2, "I") << 32
        return where.number(0, "I"), offset, size

    def steps(self) -> list[tuple[str, str, list[int]]]:
        """(name, kind, tensors touched) of each instruction."""
        found: list[tuple[str, str, list[int]]] = []
        for chain in self.chains:
            for place, instruction in enumerate(chain.tables(2)):
                kind, call = instruction.number(0, "B"), instruction.table(1)
                if call is None or kind == _FREE:
                    continue
                if kind == _JUMP:
                    raise tarn.BadInput(f"{self.name} has control flow, whose memory is not known "
                                        f"before it runs: instruction {place} jumps")
                if kind == _MOVE:
                    word, touched = "move", [call.number(0), call.number(1)]
                else:
                    names = self.operators if kind == _KERNEL else self.delegates
                    index = call.number(0)
                    if not 0 <= index < len(names):
                        raise tarn.BadInput(f"{self.name}: instruction {place} calls operator {index} "
                                            f"of {len(names)}")
                    word, touched = names[index], call.numbers(1)
                tensors = [t for i in touched for t in self.tensors(i)]
                found.append((f"{word} {len(found)}", word, tensors))
        return found


def _values(method: _Method, steps: list[tuple[str, str, list[int]]],
            net: Network) -> list[Value]:
    ranges: dict[int, tuple[int, int]] = {}
    last = len(steps) - 1
    for place, (_, _, tensors) in enumerate(steps):
        for tensor in tensors:
            begin, end = ranges.get(tensor, (place, place))
            ranges[tensor] = min(begin, place), max(end, place)
    for inputs, end in ((method.inputs, 0), (method.outputs, last + 1)):
        for i in inputs:
            for tensor in method.tensors(i):
                begin, old = ranges.get(tensor, (0, 0))
                ranges[tensor] = (0 if not end else begin), max(old, end)
    found, fixed = [], 0
    memories: set[int] = set()
    for tensor, (begin, end) in sorted(ranges.items()):
        where = method.placed(tensor)
        if where is None:
            fixed += 1
            continue
        memory, offset, size = where
        memories.add(memory)
        found.append(Value(f"value {tensor}", begin, end, size, offset, memory))
    if fixed:
        net.assume(f"{counted(fixed, 'tensor')} without a planned place (weights, or memory of the "
                   "caller) left out")
    if len(memories) > 1:
        spaces = {memory: net.space(f"mem_id {memory}", "scratch" if memory > 1 else "device")
                  for memory in sorted(memories)}
        return [value._replace(space=spaces[value.space]) for value in found]
    return [value._replace(space=0) for value in found]


def read(path: Any, method: Optional[str] = None) -> Reading:
    """See tarn.read.executorch."""
    name = str(os.fspath(path))
    with open(path, "rb") as file:
        data = file.read()
    if data[4:8] != b"ET12":
        raise tarn.BadInput(f"{name} is no ExecuTorch program: it has no identifier ET12")
    try:
        plans = {plan.string(0): plan for plan in Table.root(data).tables(1)}
        if method is None:
            method = "forward" if "forward" in plans else next(iter(plans), "")
        if method not in plans:
            raise tarn.UsageError(f"{name} has no method {method!r}; it has {listed(plans)}")
        net = Network(f"{os.path.basename(name)} {method}", "ExecuTorch program")
        if len(plans) > 1:
            net.assume(f"the method {method} of {listed(plans)}")
        net.assume("a tensor lives from the first to the last instruction that has it as an argument; "
                   "inputs from the start on; one stream; no costs")
        known = _Method(plans[method], name)
        steps = [("set inputs", "inputs", []), *known.steps()]
        if known.delegates:
            net.assume(f"memory inside of {counted(len(known.delegates), 'delegate')} "
                       f"({listed(dict.fromkeys(known.delegates))}) is not in the program's plan")
        values = _values(known, steps, net)
        return reading(net, [step[:2] for step in steps], values, "executorch", ALIGNMENT)
    except Damaged as error:
        raise tarn.BadInput(f"{name}: {error}") from None
