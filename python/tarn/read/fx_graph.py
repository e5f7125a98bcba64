"""Graphs of torch.fx with ATen ops: torch.export programs (.pt2) and joint graphs of AOTAutograd.

Schemas say which op is a view and what is written. Functional collectives run on a stream of their
own until wait_tensor, ao.offload and ao.reload on one for copies. Control flow is refused by name."""
from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, Optional

import tarn

from .network import Network, Reading, counted, listed, needs

# Views by their schemas that copy unless their input has the right layout already.
_MAYBE = {"reshape", "contiguous", "to", "flatten", "_reshape_alias_copy", "ravel", "reshape_as"}
_WAITS = {"_c10d_functional::wait_tensor", "_c10d_functional::wait_tensors", "ao::wait_tensor"}
_OFFLOADS = {"ao::offload"}
_COPIES = {"ao::offload", "ao::reload"}
Value = Any  # a tensor's id, a list of them, None: no tensor


def _flat(value: Any) -> Iterator[int]:
    if isinstance(value, int) and not isinstance(value, bool):
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from _flat(part)


class _Writer:
    def __init__(self, torch: Any, net: Network, name: str, dims: Mapping[str, int]):
        self.torch, self.net, self.name, self.dims = torch, net, name, dict(dims)
        self.compute = net.stream("compute")
        self.pinned: Optional[int] = None
        self.values: dict[Any, Value] = {}
        self.used: set[str] = set()
        self.copies = False

    # ---- Sizes ----

    def dim(self, dim: Any, what: str) -> int:
        """A number for a dimension."""
        if isinstance(dim, int):
            return dim
        expression = dim.node.expr
        symbols = sorted(map(str, expression.free_symbols))
        missing = [s for s in symbols if s not in self.dims]
        if missing:
            raise tarn.BadInput(f"{self.name}: dimension {missing[0]!r} of {what} is not known: give "
                                f"it, as {missing[0]}=32, or --dim {missing[0]}=32")
        self.used.update(symbols)
        return int(expression.subs({s: self.dims[str(s)] for s in expression.free_symbols}))

    def size(self, fake: Any, what: str) -> int:
        """Bytes from the first to the last element."""
        shape = [self.dim(d, what) for d in fake.shape]
        if 0 in shape:
            return 0
        if fake.layout is not self.torch.strided:
            raise tarn.BadInput(f"{self.name}: {what} is {fake.layout}, whose size is not known")
        strides = [self.dim(s, what) for s in fake.stride()]
        last = sum((d - 1) * s for d, s in zip(shape, strides))
        return int((last + 1) * fake.element_size())

    def fresh(self, value: Any, name: str, space: int = 0) -> Value:
        """Tensors for a node's value."""
        if isinstance(value, self.torch.Tensor):
            return self.net.tensor(name, self.size(value, repr(name)), space=space)
        if isinstance(value, (list, tuple)):
            return [self.fresh(part, f"{name}.{place}", space) for place, part in enumerate(value)]
        return None

    # ---- Nodes ----

    def run(self, graph: Any, kinds: Mapping[str, str]) -> list[int]:
        """The tensors that the graph returns."""
        for node in graph.nodes:
            if node.op == "placeholder":
                fake = node.meta.get("val")
                if isinstance(fake, self.torch.Tensor):
                    self.values[node] = self.net.tensor(
                        node.name, self.size(fake, repr(node.name)), kinds.get(node.name, "input"))
            elif node.op == "get_attr":
                fake = node.meta.get("val")
                if isinstance(fake, self.torch.Tensor):
                    self.values[node] = self.net.tensor(
                        node.name, self.size(fake, repr(node.name)), "parameter")
            elif node.op == "output":
                return list(_flat(self._known(node.args)))
            elif node.op == "call_function":
                self.values[node] = self._call(node)
            else:
                raise tarn.BadInput(f"{self.name}: node {node.name} is a {node.op}, not an ATen op: "
                                    "export the model, or trace it with make_fx")
        return []

    def _known(self, argument: Any) -> Value:
        if isinstance(argument, self.torch.fx.Node):
            return self.values.get(argument)
        if isinstance(argument, (list, tuple)):
            return [self._known(part) for part in argument]
        if isinstance(argument, dict):
            return [self._known(part) for part in argument.values()]
        return None

    def _call(self, node: Any) -> Value:
        target = node.target
        if getattr(target, "__name__", "") == "getitem" and not hasattr(target, "_schema"):
            value = self._known(node.args[0])
            return value[node.args[1]] if isinstance(value, list) else None
        schema = getattr(target, "_schema", None)
        if schema is None:
            if isinstance(node.meta.get("val"), self.torch.Tensor) or any(
                    isinstance(self._submodule(a), self.torch.fx.GraphModule) for a in node.args):
                raise tarn.BadInput(f"{self.name}: node {node.name} calls {target}, which is no ATen "
                                    "op but control flow or a wrapper: trace or export the model "
                                    "without it (program.run_decompositions() removes wrappers)")
            return None  # arithmetic of dimensions
        reads = list(dict.fromkeys(_flat([self._known(node.args), self._known(node.kwargs)])))
        if schema.name in _WAITS:
            return self._wait(node, schema, reads)
        stream = self._stream(schema)
        value = node.meta.get("val", node.meta.get("tensor_meta"))
        written = self._written(node, schema)
        if written:
            return self._write(node, schema, reads, written, stream)
        viewed = self._viewed(node, schema, value)
        if viewed is not None:
            return self._view(node, viewed, value, schema)
        made = self.fresh(value, node.name, self._space(schema))
        outputs = list(_flat(made if made is not None else []))
        if not outputs and not reads:
            return None
        pointwise = self.torch.Tag.pointwise in getattr(target, "tags", ())
        pairs = [[r, outputs[0]] for r in reads] if pointwise and len(outputs) == 1 else []
        more = {"class": "copy"} if schema.name in _COPIES else {}
        self.net.op(node.name, str(target), reads, outputs, stream, inplace=pairs, **more)
        return made

    def _submodule(self, argument: Any) -> Any:
        is_attribute = isinstance(argument, self.torch.fx.Node) and argument.op == "get_attr"
        return getattr(argument.graph.owning_module, str(argument.target), None) if is_attribute \
            else None

    def _stream(self, schema: Any) -> int:
        if schema.name.startswith("_c10d_functional::"):
            return self.net.stream("communication")
        return self.net.stream("copy") if schema.name in _COPIES else self.compute

    def _space(self, schema: Any) -> int:
        if schema.name not in _OFFLOADS:
            return 0
        if self.pinned is None:
            self.net.space("device")
            self.pinned = self.net.space("host", "pinned")
        return self.pinned

    def _wait(self, node: Any, schema: Any, reads: list[int]) -> Value:
        """An op of the stream that waits; its result is what it waits for."""
        kind = "copy" if schema.name.startswith("ao::") else "collective"
        self.net.op(node.name, str(node.target), reads, [], self.compute, **{"class": kind})
        return self._known(node.args[0])

    def _arguments(self, node: Any, schema: Any) -> Iterator[tuple[Any, Any]]:
        """(schema's argument, what the node gives for it)"""
        for place, argument in enumerate(schema.arguments):
            if argument.name in node.kwargs:
                yield argument, node.kwargs[argument.name]
            elif place < len(node.args):
                yield argument, node.args[place]

    def _written(self, node: Any, schema: Any) -> list[int]:
        return [t for argument, given in self._arguments(node, schema)
                if argument.alias_info is not None and argument.alias_info.is_write
                for t in _flat(self._known(given))]

    def _write(self, node: Any, schema: Any, reads: list[int], written: list[int],
               stream: int) -> Value:
        """In place: a new name for each storage that is written, which stands for all later reads."""
        names = {t: self.net.alias(f"{node.name} in {self.net.name(t)}", t) for t in written}
        self.net.op(node.name, str(node.target), reads, list(names.values()), stream)
        for known, value in self.values.items():
            if isinstance(value, int) and value in names:
                self.values[known] = names[value]
        return names[written[0]] if len(written) == 1 else [names[t] for t in written]

    def _viewed(self, node: Any, schema: Any, value: Any) -> Optional[int]:
        """The tensor that it is a view of."""
        returned = {s for r in schema.returns if r.alias_info is not None
                    for s in r.alias_info.before_set}
        for argument, given in self._arguments(node, schema):
            info = argument.alias_info
            if info is None or info.is_write or not set(info.before_set) & returned:
                continue
            of = self._known(given)
            if not isinstance(of, int):
                return None
            if schema.name.partition("::")[2] in _MAYBE and not self._stays(given, value):
                return None
            return of
        return None

    def _stays(self, given: Any, value: Any) -> bool:
        """Can the result be the same bytes?"""
        fake = given.meta.get("val")
        if fake is None or fake.dtype != value.dtype or fake.device != value.device:
            return False
        if tuple(fake.shape) == tuple(value.shape):
            return tuple(fake.stride()) == tuple(value.stride())
        return bool(fake.is_contiguous() and value.is_contiguous())

    def _view(self, node: Any, of: int, value: Any, schema: Any) -> Value:
        many = isinstance(value, (list, tuple))
        names = [self.net.alias(f"{node.name}.{place}" if many else node.name, of)
                 for place in range(len(value) if many else 1)]
        self.net.op(node.name, str(node.target), [of], names, self.compute, view=True)
        return names if many else names[0]


def _kinds(program: Any, torch: Any) -> dict[str, str]:
    """Placeholders that persist, by name."""
    kind = torch.export.graph_signature.InputKind
    known = {kind.PARAMETER: "parameter", kind.BUFFER: "optimizer_state",
             kind.CONSTANT_TENSOR: "parameter"}
    return {spec.arg.name: known[spec.kind] for spec in program.graph_signature.input_specs
            if spec.kind in known}


def read(source: Any, dims: Optional[Mapping[str, int]] = None,
         kinds: Optional[Mapping[str, str]] = None) -> Reading:
    """See tarn.read.exported."""
    try:
        import torch
        import torch.export
    except ImportError as error:
        raise needs("torch", "torch", error) from None
    name = str(os.fspath(source)) if isinstance(source, (str, os.PathLike)) else "the graph"
    if isinstance(source, (str, os.PathLike)):
        try:
            source = torch.export.load(source)
        except OSError:
            raise
        except Exception as error:  # pylint: disable=broad-except
            raise tarn.BadInput(f"{name} is no program of torch.export: {str(error)[:300]}") from None
    net = Network(os.path.basename(name), "torch.fx graph")
    writer = _Writer(torch, net, name, dims or {})
    persistent: dict[str, str] = {}
    if isinstance(source, torch.export.ExportedProgram):
        persistent = _kinds(source, torch)
        changed = len(source.graph_signature.buffers_to_mutate)
        if changed:
            net.assume(f"{counted(changed, 'buffer')} that the graph returns anew is an output; who "
                       "runs it copies it back")
    results = writer.run(source.graph, {**persistent, **(kinds or {})})
    for tensor in results:
        net.keep(tensor)
    spare = [dim for dim in writer.dims if dim not in writer.used]
    if spare:
        raise tarn.UsageError(f"{name} has no dimension {spare[0]!r}; it has {listed(writer.used)}")
    for dim in sorted(writer.used):
        net.assume(f"dimension {dim} is {writer.dims[dim]}")
    net.assume("nodes run in the graph's order and cost no time; pointwise ops may write over an input "
               "(with --in-place)")
    return Reading(net.finish(), tuple(net.assumed))
