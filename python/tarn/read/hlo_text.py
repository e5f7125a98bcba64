"""XLA's HLO as text (compiled.as_text() of JAX, *.cpu_after_optimizations.txt of --xla_dump_to).

A scheduled module's instructions run in the text's order. Tuples, get-tuple-element and bitcast are
names of bytes, not bytes. Async pairs (NAME-start, NAME-done) run beside the others, on a stream for
communication or copies. A call is inlined; a loop's or a conditional's own memory is planned apart
and becomes the op's workspace. Needs no library."""
from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from typing import Any, NamedTuple, Optional, Union

import tarn

from .network import Network, Reading, counted, listed, text_of

_BITS = {"pred": 8, "bf16": 16, "c64": 64, "c128": 128, "token": 0, "opaque": 0}
_SHAPE = re.compile(r"([a-z]\w*)\[([^\]]*)\](\{[^}]*\})?")
_COMPUTATION = re.compile(r"(ENTRY\s+)?%?([\w.\-]+)\s*(?:\(.*\)\s*->.*)?\{\s*$")
_INSTRUCTION = re.compile(r"\s*(ROOT\s+)?%?([\w.\-]+)\s*=\s*(.*)$")
_CALLED = re.compile(r"\b(to_apply|body|condition|calls|called_computation|true_computation|"
                     r"false_computation)=%?([\w.\-]+)")
_BRANCHES = re.compile(r"branch_computations=\{([^}]*)\}")
ELEMENTWISE = frozenset("""abs add and atan2 cbrt ceil clamp compare complex convert cosine divide erf
    exponential exponential-minus-one floor imag is-finite log log-plus-one logistic maximum minimum
    multiply negate not or popcnt power real reduce-precision remainder round-nearest-afz
    round-nearest-even rsqrt select shift-left shift-right-arithmetic shift-right-logical sign sine
    sqrt subtract tan tanh xor copy""".split())
# Also may write over their first operand.
UPDATES = frozenset(("dynamic-update-slice", "scatter"))
COMMUNICATION = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective", "send",
                 "recv", "ragged-all-to-all")
PASSES = frozenset(("opt-barrier", "optimization-barrier", "domain", "add-dependency"))
_OPERANDS = frozenset(("get-tuple-element", "while", "conditional", "async-update"))  # which need one
NOTHING = frozenset(("after-all", "partition-id", "replica-id"))
Leaf = tuple[tuple[int, ...], Optional[int]]  # index in a tuple; tensor, None: no bytes


class Array(NamedTuple):
    dtype: str
    dims: tuple[int, ...]
    space: int

    def size(self) -> int:
        """Bytes, dense."""
        found = re.fullmatch(r"[sufc]?\w*?(\d+)(e\d\w*)?", self.dtype)
        if self.dtype.startswith("f8"):
            bits = 8
        elif self.dtype in _BITS:
            bits = _BITS[self.dtype]
        elif found:
            bits = int(found[1])
        else:
            raise tarn.BadInput(f"elements of type {self.dtype!r} have no known size")
        return (math.prod(self.dims) * bits + 7) // 8


Shape = Union[Array, tuple["Shape", ...]]


class Instruction(NamedTuple):
    name: str
    shape: Any
    opcode: str
    operands: tuple[str, ...]
    raw: str        # what stands between the parentheses
    attributes: str
    is_root: bool
    line: int


def _balanced(text: str, place: int) -> int:
    """The end of the parentheses that open at a place."""
    depth = 0
    for here in range(place, len(text)):
        depth += (text[here] in "({[") - (text[here] in ")}]")
        if depth == 0:
            return here + 1
    return len(text)


def _split(text: str) -> list[str]:
    """At commas outside of parentheses."""
    parts, depth, begin = [], 0, 0
    for place, letter in enumerate(text):
        depth += (letter in "({[") - (letter in ")}]")
        if letter == "," and depth == 0:
            parts.append(text[begin:place].strip())
            begin = place + 1
    parts.append(text[begin:].strip())
    return [part for part in parts if part]


class Module:
    """Computations by name. Errors name the line."""

    def __init__(self, text: str, name: str):
        self.name, self.bounded = name, False
        self.tiled = False
        self.computations: dict[str, list[Instruction]] = {}
        self.entry = ""
        self.header = ""
        current: Optional[list[Instruction]] = None
        self._line = 0
        for self._line, line in enumerate(text.splitlines(), 1):
            line = re.sub(r"/\*.*?\*/", "", line).rstrip()
            if line.startswith("HloModule"):
                if self.header:
                    raise self.bad("a second module begins here; give one module a file")
                self.header = line
            elif current is None and line.endswith("{") and not line.startswith(" "):
                found = _COMPUTATION.match(line)
                if found:
                    current = self.computations.setdefault(found[2], [])
                    self.entry = found[2] if found[1] else self.entry
            elif line.strip() == "}" or line.startswith("}"):
                current = None
            elif current is not None and line.strip():
                current.append(self._instruction(line))
        if not self.header:
            raise tarn.BadInput(f"{name} is no HLO text: it has no line that begins with HloModule")
        if not self.entry:
            raise tarn.BadInput(f"{name} has no ENTRY computation")

    def bad(self, what: str, line: int = 0) -> tarn.BadInput:
        """An error that names the line."""
        return tarn.BadInput(f"{self.name}, line {line or self._line}: {what}")

    def _instruction(self, line: str) -> Instruction:
        found = _INSTRUCTION.match(line)
        if not found:
            raise self.bad("this is no instruction: NAME = SHAPE OPCODE(OPERANDS)")
        rest = found[3]
        end = _balanced(rest, 0) if rest.startswith("(") else self._shape_end(rest)
        shape = self._shape(rest[:end].strip())
        call = re.match(r"\s*([\w\-]+)\(", rest[end:])
        if not call:
            raise self.bad("an opcode with its operands was expected behind the shape")
        begin = end + call.end() - 1
        close = _balanced(rest, begin)
        raw = rest[begin + 1:close - 1]
        operands: tuple[str, ...] = ()
        if call[1] not in ("constant", "parameter", "iota"):
            operands = tuple(part.split()[-1].lstrip("%") for part in _split(raw))
        return Instruction(found[2], shape, call[1], operands, raw, rest[close:],
                           bool(found[1]), self._line)

    def _shape_end(self, text: str) -> int:
        found = _SHAPE.match(text)
        if not found:
            raise self.bad(f"{text[:30]!r} is no shape")
        end = found.end(2) + 1
        return _balanced(text, end) if text[end:end + 1] == "{" else end

    def _shape(self, text: str) -> Any:
        if text.startswith("("):
            return tuple(self._shape(part) for part in _split(text[1:-1]))
        found = _SHAPE.match(text)
        if not found:
            raise self.bad(f"{text[:30]!r} is no shape")
        dims = []
        for dim in found[2].split(","):
            if not dim.strip():
                continue
            bounded = dim.strip().startswith("<=")
            self.bounded |= bounded
            number = dim.strip()[2 * bounded:]
            if not number.isdigit():
                raise self.bad(f"dimension {dim.strip()!r} has no bound: its size is not known")
            dims.append(int(number))
        layout = text[found.end(2) + 1:]
        self.tiled |= "T(" in layout
        space = re.search(r"S\((\d+)\)", layout)
        return Array(found[1], tuple(dims), int(space[1]) if space else 0)

    def called(self, instruction: Instruction) -> dict[str, list[str]]:
        """Computations that an instruction names, by attribute."""
        result: dict[str, list[str]] = {}
        for attribute, name in _CALLED.findall(instruction.attributes):
            result.setdefault(attribute, []).append(name)
        branches = _BRANCHES.search(instruction.attributes)
        if branches:
            result["branches"] = [b.strip().lstrip("%") for b in branches[1].split(",")]
        for names in result.values():
            for name in names:
                if name not in self.computations:
                    raise self.bad(f"{instruction.name} calls {name}, which is not there",
                                   instruction.line)
        return result

    def donated(self) -> list[tuple[tuple[int, ...], int, tuple[int, ...]]]:
        """(index in the result, parameter, index in it) of what shares bytes."""
        begin = self.header.find("input_output_alias={")
        if begin < 0:
            return []
        begin += len("input_output_alias=")
        inside = self.header[begin:_balanced(self.header, begin)]
        pattern = r"\{([\d, ]*)\}:\s*\((\d+),\s*\{([\d, ]*)\}"
        return [(_index(a), int(p), _index(b)) for a, p, b in re.findall(pattern, inside)]


def _index(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(",") if part.strip())


def leaves(shape: Any, index: tuple[int, ...] = ()) -> Iterator[tuple[tuple[int, ...], Array]]:
    """The arrays in a shape."""
    if isinstance(shape, Array):
        yield index, shape
    else:
        for place, part in enumerate(shape):
            yield from leaves(part, (*index, place))


def _below(value: list[Leaf], *index: int) -> list[Leaf]:
    """The part of a tuple."""
    return [(at[len(index):], t) for at, t in value if at[:len(index)] == index]


class _Writer:
    """Instructions of one computation, and of those that it calls, into a network."""

    def __init__(self, module: Module, net: Network, memory: dict[str, int]):
        self.module, self.net, self.memory = module, net, memory
        self.compute = net.stream("compute")
        self.spaces = {0: 0}
        self.reads: dict[int, int] = {}   # root tensor: last op that reads it
        self.makers: dict[int, int] = {}  # root tensor: op
        self.pairs: set[tuple[int, int]] = set()
        self.touched: dict[int, set[int]] = {}

    def declare(self, instructions: list[Instruction]) -> None:
        """Memory spaces, where layouts name some."""
        used = {array.space for i in instructions for _, array in leaves(i.shape)}
        if used - {0}:
            self.net.space("memory space 0")
            for number in sorted(used - {0}):
                kind = "pinned" if number == 5 else "scratch"  # XLA's host memory
                self.spaces[number] = self.net.space(f"memory space {number}", kind)

    def _tensor(self, name: str, array: Array, kind: str) -> Optional[int]:
        size = array.size()
        if array.dtype in ("token", "opaque"):
            return None
        return self.net.tensor(name, size, kind, self.spaces.get(array.space, 0))

    def fresh(self, instruction: Instruction, kind: str = "intermediate",
              prefix: str = "") -> list[Leaf]:
        """Tensors for an instruction's result."""
        value = []
        for index, array in leaves(instruction.shape):
            name = prefix + instruction.name + (f"{{{','.join(map(str, index))}}}" if index else "")
            value.append((index, self._tensor(name, array, kind)))
        return value

    def op(self, instruction: Instruction, prefix: str, reads: list[int], made: list[int],
           stream: int, **more: Any) -> int:
        number = self.net.op(prefix + instruction.name, instruction.opcode, reads, made, stream,
                             **more)
        self.pairs.update((a, b) for a, b in more.get("inplace", ()))
        if not more.get("view"):
            self.touched[number] = {self.net.root(t) for t in [*reads, *made]}
        for tensor in reads:
            if not more.get("view"):
                self.reads[self.net.root(tensor)] = number
        for tensor in made:
            self.makers.setdefault(self.net.root(tensor), number)
        return number

    # ---- Instructions ----

    def run(self, name: str, arguments: Optional[list[list[Leaf]]], prefix: str = "") -> list[Leaf]:
        """The result of a computation. arguments: None: its parameters are the network's inputs."""
        if prefix.count("/") > 64:
            raise self.module.bad(f"calls of {name} are more than 64 deep")
        values: dict[str, list[Leaf]] = {}
        result: list[Leaf] = []
        instructions = self.module.computations[name]
        for i in instructions:
            operands = []
            for operand in i.operands:
                if operand not in values:
                    raise self.module.bad(f"{i.name} reads {operand}, which nothing before it makes",
                                          i.line)
                operands.append(values[operand])
            if i.opcode == "parameter":
                number = int(i.raw) if i.raw.strip().isdigit() else -1
                if arguments is None:
                    values[i.name] = self.fresh(i, "input", prefix)
                    self.parameters[number] = values[i.name]
                elif 0 <= number < len(arguments):
                    values[i.name] = arguments[number]
                else:
                    raise self.module.bad(f"parameter {i.raw} has no argument", i.line)
            elif not operands and i.opcode in _OPERANDS | PASSES or \
                    not operands and i.opcode.endswith("-done"):
                raise self.module.bad(f"{i.name} ({i.opcode}) has no operand", i.line)
            else:
                values[i.name] = self._value(i, operands, prefix)
            if i.is_root or i is instructions[-1] and not result:
                result = values[i.name]
        return result

    parameters: dict[int, list[Leaf]]

    def _value(self, i: Instruction, operands: list[list[Leaf]], prefix: str) -> list[Leaf]:
        code = i.opcode
        if code == "constant":
            return self.fresh(i, "parameter", prefix)
        if code == "tuple":
            return [((place, *at), t) for place, value in enumerate(operands) for at, t in value]
        if code == "get-tuple-element":
            index = re.search(r"\bindex=(\d+)", i.attributes)
            if not index:
                raise self.module.bad("get-tuple-element without index=", i.line)
            return _below(operands[0], int(index[1]))
        if code in PASSES:
            return operands[0]
        if code in NOTHING:
            return [(at, None) for at, _ in leaves(i.shape)]
        if code.endswith("-done") or code in ("async-update",):
            return self._done(i, operands[0], prefix)
        reads = [t for value in operands for _, t in value if t is not None]
        if code == "bitcast" and len(reads) == 1:
            return self._view(i, reads[0], prefix)
        if code.endswith("-start") or code in ("send", "recv"):
            return self._start(i, operands, reads, prefix)
        called = self.module.called(i)
        if code == "call":
            if "to_apply" not in called:
                raise self.module.bad(f"{i.name} is a call without to_apply=", i.line)
            return self.run(called["to_apply"][0], operands, f"{prefix}{i.name}/")
        value = self.fresh(i, "intermediate", prefix)
        made = [t for _, t in value if t is not None]
        self.op(i, prefix, reads, made, self.compute, inplace=self._in_place(i, operands, value),
                workspace=self._workspace(i, called))
        return value

    def _view(self, i: Instruction, tensor: int, prefix: str) -> list[Leaf]:
        made = self.net.alias(prefix + i.name, tensor)
        self.op(i, prefix, [tensor], [made], self.compute, view=True)
        return [((), made)]

    def _stream(self, i: Instruction) -> int:
        if i.opcode.startswith(COMMUNICATION) or any(word in i.attributes.split("metadata")[0]
                                                     for word in COMMUNICATION[:4]):
            return self.net.stream("communication")
        return self.net.stream("copy" if i.opcode.startswith("copy") else "async")

    def _start(self, i: Instruction, operands: list[list[Leaf]], reads: list[int],
               prefix: str) -> list[Leaf]:
        """Its result has the operands' bytes, where its shape has them, and the results."""
        value: list[Leaf] = []
        first = operands[0] if len(operands) == 1 else \
            [((place, *at), t) for place, v in enumerate(operands) for at, t in v]
        known = dict(first)
        old = 1 if i.opcode == "copy-start" else 0
        has_old = not isinstance(i.shape, Array) and i.opcode not in ("all-reduce-start", "recv")
        for at, t in self.fresh_some(i, prefix, old if has_old else None):
            if has_old and at[0] == old:
                value.append((at, known.get(at[1:])))
            elif has_old and at[0] > 1:
                value.append((at, None))  # contexts
            else:
                value.append((at, t))
        made = [t for at, t in value if t is not None and not (has_old and at[0] == old)]
        self.op(i, prefix, reads, made, self._stream(i))
        return value

    def fresh_some(self, i: Instruction, prefix: str, old: Optional[int]) -> list[Leaf]:
        """Tensors for the results alone."""
        value: list[Leaf] = []
        for at, array in leaves(i.shape):
            skip = old is not None and (at[0] == old or at[0] > 1)
            name = prefix + i.name + (f"{{{','.join(map(str, at))}}}" if at else "")
            value.append((at, None if skip else self._tensor(name, array, "intermediate")))
        return value

    def _done(self, i: Instruction, start: list[Leaf], prefix: str) -> list[Leaf]:
        shape = [at for at, _ in leaves(i.shape)]
        for part in (start, _below(start, 0), _below(start, 1)):
            if [at for at, _ in part] == shape and all(t is not None for _, t in part) and \
                    (part is not start or i.opcode not in ("copy-done",)):
                if i.opcode in ("all-gather-done", "collective-permute-done", "async-done",
                                "reduce-scatter-done", "all-to-all-done") and part is not start:
                    part = _below(start, 1)
                value: list[Leaf] = []
                for at, t in part:
                    assert t is not None
                    made = self.net.alias(prefix + i.name, t)
                    self.op(i, prefix, [t], [made], self.compute, view=True)
                    value.append((at, made))
                return value
        return [(at, None) for at in shape]

    # ---- Memory ----

    def _in_place(self, i: Instruction, operands: list[list[Leaf]],
                  value: list[Leaf]) -> list[list[int]]:
        """Pairs that XLA's buffer assignment may give the same bytes."""
        if i.opcode in ("while", "sort"):  # each result over its operand
            given = operands[0] if i.opcode == "while" else [leaf for o in operands for leaf in o]
            return [[a, b] for (_, a), (_, b) in zip(given, value) if a is not None and b is not None]
        if len(value) != 1 or value[0][1] is None:
            return []
        out, shape = value[0][1], i.shape
        allowed: list[int] = []
        if i.opcode in ELEMENTWISE:
            allowed = list(range(len(operands)))
        elif i.opcode in UPDATES:
            allowed = [0]
        elif i.opcode == "fusion":
            allowed = self._fused(i)
        pairs = []
        for place in allowed:
            if place < len(operands) and len(operands[place]) == 1:
                read = operands[place][0][1]
                if read is not None and self.net.size(read) == self.net.size(out) and \
                        isinstance(shape, Array):
                    pairs.append([read, out])
        return pairs

    def _fused(self, i: Instruction) -> list[int]:
        """Operands of a fusion that only elementwise instructions read, in the result's shape."""
        inner = self.module.computations.get(self.module.called(i).get("calls", [""])[0], [])
        known = {instruction.name: instruction for instruction in inner}
        if not isinstance(i.shape, Array) or not all(isinstance(x.shape, Array) for x in inner):
            return []
        result = []
        for parameter in inner:
            if parameter.opcode != "parameter" or parameter.shape.dims != i.shape.dims:
                continue
            reached, good = {parameter.name}, True
            for x in inner:
                if reached & set(x.operands):
                    good &= x.opcode in ELEMENTWISE and x.shape.dims == i.shape.dims
                    reached.add(x.name)
            if good and known and parameter.raw.isdigit():
                result.append(int(parameter.raw))
        return result

    def _workspace(self, i: Instruction, called: dict[str, list[str]]) -> int:
        """The most that a loop or one branch of a conditional needs of its own."""
        names = [*called.get("body", []), *called.get("condition", []), *called.get("branches", []),
                 *called.get("true_computation", []), *called.get("false_computation", [])]
        if i.opcode not in ("while", "conditional"):
            return 0
        most = 0
        for name in names:
            if name not in self.memory:
                self.memory[name] = 0  # of a computation that calls itself nothing is known
                self.memory[name] = _own_memory(self.module, name, i.opcode, called, self.memory)
            most = max(most, self.memory[name])
        self.net.assume(f"memory of the computations that {i.opcode}s call is planned apart, and is a "
                        "workspace of the op")
        return most

    def donate(self, result: list[Leaf], pairs: list[tuple[int, int]]) -> int:
        """Results that lie in the bytes of a parameter: where nobody reads it later. Returns how
        many do not."""
        left = 0
        for made, parameter in pairs:
            root = self.net.root(made)
            if root == parameter:
                continue
            maker = self.makers.get(root)
            readers = [op for op, touched in self.touched.items()
                       if parameter in touched and maker is not None and
                       (op > maker or op == maker and (parameter, root) not in self.pairs)]
            if maker is None or readers or self.net.size(root) != self.net.size(parameter) or \
                    self.net.is_persistent(root):
                left += 1
            else:
                self.net.rebind(root, parameter)
        return left


def _own_memory(module: Module, name: str, opcode: str, called: dict[str, list[str]],
                memory: dict[str, int]) -> int:
    """Bytes of a computation's arena. A loop's body hands its state on where its parameter lies, where
    nobody reads that any more. A branch makes its result where the conditional's lies."""
    net = Network(name, "HLO")
    writer = _Writer(module, net, memory)
    writer.parameters = {}
    result = writer.run(name, None)
    if opcode == "conditional":
        roots = {net.root(t) for _, t in result if t is not None and not net.is_persistent(t)}
        for root in roots:
            net.rebind(root, net.tensor("result", net.size(root), "parameter"))
    elif name in called.get("body", []):
        state = dict(writer.parameters.get(0, []))
        pairs = [(t, state[at]) for at, t in result
                 if t is not None and state.get(at) is not None]
        writer.donate(result, [(a, b) for a, b in pairs if b is not None])
    for _, tensor in result:
        if tensor is not None:
            net.keep(tensor)
    graph = net.finish()
    if not len(graph.ops):
        return 0
    return tarn.plan(graph, in_place=True, effort=100).footprint


def read(path: Any) -> Reading:
    """See tarn.read.hlo."""
    name = os.fspath(path)
    module = Module(text_of(path), name)
    title = re.match(r"HloModule\s+([\w.\-]+)", module.header)
    net = Network(title[1] if title else os.path.basename(name), "HLO text")
    writer = _Writer(module, net, {})
    writer.parameters = {}
    writer.declare(module.computations[module.entry])
    if "is_scheduled=true" not in module.header:
        net.assume("the module is not scheduled: ops run in the text's order")
    net.assume("ops cost no time; ops write in place where XLA's elementwise ops, fusions and updates "
               "may (with --in-place)")
    result = writer.run(module.entry, None)
    at = dict(result)
    pairs = []
    for out, parameter, inside in module.donated():
        lies = dict(writer.parameters.get(parameter, [])).get(inside)
        made = at.get(out)
        if lies is not None and made is not None:
            pairs.append((made, lies))
    left = writer.donate(result, pairs)
    if pairs:
        net.assume(f"{counted(len(pairs) - left, 'result')} of {len(pairs)} in the bytes of the "
                   "parameter that is donated; of the others something still reads the parameter, or "
                   "they are the parameter")
    for _, tensor in result:
        if tensor is not None:
            net.keep(tensor)
    if module.bounded:
        net.assume("dynamic dimensions have the size of their bound")
    if module.tiled:
        net.assume("tiled layouts without padding")
    custom = [i.name for i in module.computations[module.entry] if i.opcode == "custom-call"]
    if custom:
        net.assume(f"{counted(len(custom), 'custom call')} without a workspace beyond what the text "
                   f"shows ({listed(custom)})")
    return Reading(net.finish(), tuple(net.assumed))
