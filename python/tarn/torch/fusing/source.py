"""Inductor's generated source, statement by statement. Its function `call` is a straight line:

    x = empty_strided_DEVICE(...)                  a buffer; `x.zero_()` may follow
    x = reinterpret_tensor(y, ...), y, y[0]        another name for (a part of) y
    kernel.run(x, y, ..., stream=s)                a kernel of Triton
    cpp_fused_name(x, y, ...)                      a kernel in C++
    extern_kernels.name(..., out=x)                a library
    x = torch.ops.namespace.name.overload(...)     an operator of PyTorch
    x = y[a:b].view(...).sum(dim=0)                sums of what a kernel has left
    del x; return (x, ...)

Whatever else there is, is refused: it might write to anything."""
from __future__ import annotations

import ast
import hashlib
import re
from typing import Any, NamedTuple, Optional, Sequence

import torch

from ..capture import draws
from ..lowering import HIDDEN_WRITES


class Refused(ValueError):
    """The step cannot be fused; the text says why."""


# Libraries that write to `out` and nothing else, or return what they make.
LIBRARIES = {"mm", "bmm", "addmm", "baddbmm", "bias_addmm", "_int_mm", "convolution", "addmv", "mv",
             "dot"}
# Parameters of kernels of Triton, by what Inductor calls them.
READ = re.compile(r"(in_ptr\d+|arg_[A-Z]\w*|load_seed_offset\d*|seed_offset|ks\d+|[xyzr]\d*_?numel"
                  r"|[xyzr]\d+_numel|[A-Z]\w*|_?\w*BLOCK|rsplit_size|num_\w+)$")
WRITTEN = re.compile(r"(out_ptr\d+|in_out_ptr\d+|ws_ptr\w*|sem_ptr\w*)$")
ALIASES = {"aten": "torch.ops.aten", "inductor_ops": "torch.ops.inductor",
           "_quantized": "torch.ops._quantized"}
NOTHING = ("assert_size_stride", "assert_alignment", "args.clear", "torch.cuda.set_device")
DRAWN = "drawn"  # of torch.ops.tarn: see random_numbers.py
WHOLE = object()  # an argument that is no literal


class Buffer(NamedTuple):
    """Allocated, and filled before it is used."""
    name: str
    value: ast.expr
    fills: list[ast.stmt]


class Alias(NamedTuple):
    """name: another one for a part of `of`, or for one of several results (`item`)."""
    name: str
    value: ast.expr
    of: str
    item: Optional[int]


class Call(NamedTuple):
    """What computes. target: the name for what it returns; reads: names of all arguments; writes:
    those that it writes to, be they new or not; stream: the name of the stream that it needs; number:
    of the random op of eager execution that it is, from 1 (0: not told)."""
    kind: str
    statement: ast.stmt
    target: Optional[str]
    reads: list[str]
    writes: set[str]
    is_random: bool
    streams: list[str]
    key: str
    number: int = 0


class Ended(NamedTuple):
    """Names that are deleted."""
    names: list[str]


class KernelSource(NamedTuple):
    """written: positions of the arguments that it writes; text: of its code."""
    written: list[int]
    parameters: int
    text: str


class Source(NamedTuple):
    inputs: list[str]
    steps: list[Any]  # Buffer, Alias, Call, Ended
    outputs: Sequence[ast.expr]
    kernels: dict[str, KernelSource]
    streams: dict[str, ast.stmt]


def text(node: ast.AST) -> str:
    return ast.unparse(node)


def names_in(node: ast.AST) -> list[str]:
    return list(dict.fromkeys(n.id for n in ast.walk(node) if isinstance(n, ast.Name)))


def called(node: Any) -> str:
    """What an expression calls, or nothing."""
    return text(node.func) if isinstance(node, ast.Call) else ""


def parsed(source: str) -> Source:
    """Raises Refused."""
    tree = ast.parse(source)
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef) and n.name == "call"]
    if len(functions) != 1:
        raise Refused(f"Inductor's source has {len(functions)} functions `call`")
    return _Reader(_kernels(tree)).read(functions[0].body)


def _kernels(tree: ast.Module) -> dict[str, KernelSource]:
    """name = async_compile.triton(...) or cpp_pybinding(...)"""
    kernels: dict[str, KernelSource] = {}
    for s in tree.body:
        if not isinstance(s, ast.Assign) or not called(s.value).startswith("async_compile."):
            continue
        kind, arguments = called(s.value).split(".", 1)[1], s.value.args  # type: ignore[attr-defined]
        name = s.targets[0].id  # type: ignore[attr-defined]
        if kind == "cpp_pybinding":
            types = ast.literal_eval(arguments[0])
            kernels[name] = KernelSource(
                [i for i, t in enumerate(types) if "*" in t and not t.startswith("const ")],
                len(types), arguments[1].value)
        elif kind == "triton":
            kernels[name] = _of_triton(ast.literal_eval(arguments[0]), arguments[1].value)
        else:
            raise Refused(f"{name} is a kernel of {kind}")
    return kernels


def _of_triton(name: str, code: str) -> KernelSource:
    found = re.search(rf"\ndef {re.escape(name)}\((.*?)\):", code, re.S)  # behind its helpers
    if not found:
        raise Refused(f"{name} has no function")
    parameters = [p.split(":")[0].strip() for p in found.group(1).replace("\n", " ").split(",")
                  if "constexpr" not in p]
    told = re.search(r"'mutated_arg_names': (\[.*?\])", code)
    mutated = set(ast.literal_eval(told.group(1))) if told else set()
    for parameter in parameters:
        if not (parameter in mutated or READ.match(parameter) or WRITTEN.match(parameter)):
            raise Refused(f"{name} has a parameter {parameter}, as kernels of the program have: "
                          "whether it is written to is not known")
    if "'atomic_add_found': True" in code or "tl.atomic" in code and "sem_ptr" not in code:
        raise Refused(f"{name} adds atomically, in another order each time")
    return KernelSource([i for i, p in enumerate(parameters) if p in mutated or WRITTEN.match(p)],
                        len(parameters), code)


class _Reader:
    def __init__(self, kernels: dict[str, KernelSource]) -> None:
        self._kernels = kernels
        self._inputs: list[str] = []
        self._steps: list[Any] = []
        self._outputs: Optional[Sequence[ast.expr]] = None
        self._streams: dict[str, ast.stmt] = {}
        self._tensors: set[str] = set()  # names for tensors, or for several
        self._unused: dict[str, Buffer] = {}

    def read(self, body: list[ast.stmt]) -> Source:
        self._body(body)
        if self._outputs is None:
            raise Refused("Inductor's function returns nothing")
        return Source(self._inputs, self._steps, self._outputs, self._kernels, self._streams)

    def _body(self, body: list[ast.stmt]) -> None:
        for s in body:
            if isinstance(s, ast.With):
                if [called(item.context_expr) for item in s.items] != ["torch.cuda._DeviceGuard"]:
                    raise Refused(f"not understood: {text(s).splitlines()[0]}")
                self._body(s.body)
            elif isinstance(s, ast.Return) and isinstance(s.value, ast.Tuple):
                self._outputs = s.value.elts
            elif isinstance(s, ast.Delete) and all(isinstance(t, ast.Name) for t in s.targets):
                self._steps.append(Ended([text(t) for t in s.targets]))
            elif isinstance(s, ast.Assign) and len(s.targets) == 1:
                self._assignment(s, s.targets[0])
            elif isinstance(s, ast.Expr):
                self._expression(s)
            elif not isinstance(s, ast.Pass):
                raise Refused(f"not understood: {text(s).splitlines()[0]}")

    def _assignment(self, s: ast.Assign, target: ast.expr) -> None:
        if isinstance(s.value, ast.Name) and s.value.id == "args":
            several = target.elts if isinstance(target, (ast.Tuple, ast.List)) else [target]
            self._inputs = [text(t) for t in several]
            self._tensors.update(self._inputs)
            return
        if not isinstance(target, ast.Name):
            raise Refused(f"not understood: {text(s)}")
        name, value, call = target.id, s.value, called(s.value)
        tensors = [n for n in names_in(value) if n in self._tensors]
        if call == "get_raw_stream":
            self._streams[name] = s
            return
        if call.startswith("empty_strided_") and not tensors:
            self._unused[name] = Buffer(name, value, [])
            self._steps.append(self._unused[name])
        elif call == f"torch.ops.tarn.{DRAWN}.default":
            self._draw(name, value.args)  # type: ignore[attr-defined]
        elif isinstance(value, ast.Name) and tensors:
            self._steps.append(Alias(name, value, value.id, None))
        elif isinstance(value, ast.Subscript) and isinstance(value.value, ast.Name) and tensors and (
                isinstance(value.slice, ast.Constant) and isinstance(value.slice.value, int)):
            self._steps.append(Alias(name, value, value.value.id, value.slice.value))
        elif call == "reinterpret_tensor" and len(tensors) == 1:
            self._steps.append(Alias(name, value, tensors[0], None))
        else:
            self._call(s, value, name)
        self._tensors.add(name)

    def _draw(self, name: str, arguments: list[ast.expr]) -> None:
        """An empty tensor, and an operator that fills it."""
        operator, number, size, stride, dtype, device, numbers, shares = map(text, arguments)
        given = [name, numbers[1:-1], "" if shares == "None" else shares]
        empty = f"torch.empty_strided({size}, {stride}, dtype={dtype}, device={device})"
        fill = f"torch.ops.aten.{ast.literal_eval(operator)}({', '.join(filter(None, given))})"
        self._steps.append(Buffer(name, ast.parse(empty, mode="eval").body, []))
        self._tensors.add(name)
        self._expression(ast.parse(fill).body[0])  # type: ignore[arg-type]
        self._steps.append(self._steps.pop()._replace(number=int(number)))

    def _expression(self, s: ast.Expr) -> None:
        call = called(s.value)
        if call.startswith(NOTHING) or isinstance(s.value, ast.Constant):
            return
        owner, _, method = call.rpartition(".")
        if owner in self._unused and method in ("zero_", "fill_") and not names_in(s.value)[1:]:
            self._unused[owner].fills.append(s)
            return
        if owner in self._tensors and method == "copy_":  # what no kernel copies, as complex numbers
            given = map(text, (*s.value.args, *s.value.keywords))  # type: ignore[attr-defined]
            copy = f"torch.ops.aten.copy_.default({', '.join([owner, *given])})"
            s = ast.parse(copy).body[0]  # type: ignore[assignment]
        self._call(s, s.value, None)

    def _call(self, s: ast.stmt, value: ast.expr, target: Optional[str]) -> None:
        if not isinstance(value, ast.Call):
            raise Refused(f"not understood: {text(s)}")
        reads = [n for n in names_in(value) if n in self._tensors]
        for name in reads:
            self._unused.pop(name, None)
        kind = called(value).removesuffix(".run")
        is_random, key = False, kind
        if kind in self._kernels:
            kernel = self._kernels[kind]
            if len(value.args) > kernel.parameters or target or any(
                    isinstance(a, ast.Starred) for a in value.args):
                raise Refused(f"not understood: {text(s)}")
            written: list[ast.expr] = [value.args[i] for i in kernel.written if i < len(value.args)]
            key = f"{kind}.{hashlib.sha256(kernel.text.encode()).hexdigest()[:12]}"
        elif kind.startswith("extern_kernels."):
            kind = kind.split(".", 1)[1]
            if kind not in LIBRARIES:
                raise Refused(f"what extern_kernels.{kind} writes to is not known")
            written = [k.value for k in value.keywords if k.arg == "out"]
            if not written and target is None:
                raise Refused(f"not understood: {text(s)}")
        elif target and len(reads) == 1 and _is_pure(value):
            kind, key, written = "sum", text(value), []
        else:
            overloads = _overloads(kind, s)
            found = [_written(overload, value) for overload in overloads]
            written, is_random = [w for those, _ in found for w in those], any(r for _, r in found)
            kind, key = overloads[0]._schema.name.replace("::", "."), kind
        streams = [n for n in names_in(value) if n in self._streams]
        self._steps.append(Call(kind, s, target, reads, {n for w in written for n in names_in(w)},
                                is_random, streams, key))


PURE = ("view", "reshape", "sum")


def _is_pure(node: ast.expr) -> bool:
    """x[...].view(...).sum(...): how Inductor adds up what the programs of a kernel have left."""
    if isinstance(node, ast.Subscript):
        return _is_pure(node.value) and not names_in(node.slice)
    if isinstance(node, ast.Call):
        return (isinstance(node.func, ast.Attribute) and node.func.attr in PURE
                and _is_pure(node.func.value)
                and not any(map(names_in, [*node.args, *(k.value for k in node.keywords)])))
    return isinstance(node, ast.Name)


def _overloads(name: str, s: ast.stmt) -> list[Any]:
    """torch.ops....: one overload, or all those that a call may mean."""
    head, _, rest = name.partition(".")
    name = f"{ALIASES[head]}.{rest}" if head in ALIASES else name
    found: Any = torch.ops if name.startswith("torch.ops.") else None
    try:
        for part in name.split(".")[2:]:
            found = getattr(found, part)
    except AttributeError:
        found = None
    if isinstance(found, torch._ops.OpOverload):
        return [found]
    if isinstance(found, torch._ops.OpOverloadPacket):
        return [getattr(found, overload) for overload in found.overloads()]
    raise Refused(f"it is not known what this calls and writes to: {text(s)[:120]}")


def _value(node: ast.expr) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return WHOLE


def _written(operator: Any, call: ast.Call) -> tuple[list[ast.expr], bool]:
    """(arguments that a call writes to, whether it draws random numbers)"""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        raise Refused(f"not understood: {text(call)}")
    schema = operator._schema
    given = {a.name: value for a, value in zip(schema.arguments, call.args)}
    given.update({str(k.arg): k.value for k in call.keywords})
    written = [given[a.name] for a in schema.arguments if a.name in given
               and a.alias_info is not None and a.alias_info.is_write]
    positions, flag = HIDDEN_WRITES.get(schema.name, ((), None))
    if positions and _value(call.args[flag]):  # type: ignore[index]
        written += [call.args[p] for p in positions]
    is_random = torch.Tag.nondeterministic_seeded in operator.tags and draws(
        operator, [_value(a) for a in call.args], {k: _value(v) for k, v in given.items()})
    return written, is_random
