"""StableHLO modules, text or portable bytecode, with jaxlib's MLIR (the package jaxlib).

Ops run in the text's order, functions that are called are inlined. What a compiler does to a module
is not done: compile it and read the HLO text (hlo_text.py) for the memory that really is needed."""
from __future__ import annotations

import os
import re
from typing import Any

import tarn

from .hlo_text import ELEMENTWISE, UPDATES
from .network import Network, Reading, counted, listed, needs, size_of

_CONTROL_FLOW = frozenset(("stablehlo.while", "stablehlo.if", "stablehlo.case", "scf.for", "scf.if",
                           "scf.while", "mhlo.while", "mhlo.if", "mhlo.case"))
_VIEWS = frozenset(("stablehlo.reshape", "stablehlo.bitcast_convert", "mhlo.reshape", "mhlo.bitcast"))
_PASSES = frozenset(("stablehlo.optimization_barrier", "sdy.sharding_constraint", "mhlo.copy_noop"))
_PASSING_CALLS = frozenset(("Sharding", "SPMDFullToShardShape", "SPMDShardToFullShape",
                            "annotate_device_placement"))


def _bits(kind: str, what: str) -> int:
    """Of an element, from its type's text."""
    if kind == "i1" or kind.startswith("f8"):
        return 8
    pair = re.fullmatch(r"complex<f(\d+)>", kind)
    if pair:
        return 2 * int(pair[1])
    quantized = re.match(r"!quant\.uniform<[a-z]+(\d+)", kind)
    plain = quantized or re.match(r"(?:f|bf|i|si|ui|tf)(\d+)", kind)
    if not plain:
        raise tarn.BadInput(f"{what} has elements of type {kind}, which have no known size")
    return int(plain[1])


class _Writer:
    def __init__(self, module: Any, ir: Any, net: Network, name: str):
        self.ir, self.net, self.name = ir, net, name
        self.functions = {}
        for function in module.body.operations:
            op = function.operation
            if op.name in ("func.func", "sdy.mesh") and "sym_name" in op.attributes:
                self.functions[ir.StringAttr(op.attributes["sym_name"]).value] = op
        self.stream = net.stream("compute")
        self.count = 0

    def size(self, kind: Any, what: str) -> int:
        text = str(kind)
        if text in ("!stablehlo.token", "!mhlo.token"):
            return 0
        if not text.startswith("tensor<"):
            raise tarn.BadInput(f"{self.name}: {what} is no tensor, but {text}")
        ranked = self.ir.RankedTensorType(kind)
        dims = []
        for place in range(ranked.rank):
            if ranked.is_dynamic_dim(place):
                raise tarn.BadInput(f"{self.name}: dimension {place} of {what} ({text}) is dynamic: "
                                    "export the module with a number for it")
            dims.append(ranked.get_dim_size(place))
        return size_of(dims, _bits(str(ranked.element_type), what), f"{what} of {self.name}")

    def run(self, function: Any, arguments: list[int], prefix: str, depth: int) -> list[int]:
        """The results of a function."""
        if depth > 64:
            raise tarn.BadInput(f"{self.name}: functions call each other more than 64 deep")
        block = function.regions[0].blocks[0]
        values = {argument.get_name(): tensor
                  for argument, tensor in zip(block.arguments, arguments)}
        for operation in block.operations:
            op = operation.operation
            reads = [values[operand.get_name()] for operand in op.operands]
            if op.name in ("func.return", "stablehlo.return"):
                return reads
            for result, tensor in zip(op.results, self._results(op, reads, prefix, depth)):
                values[result.get_name()] = tensor
        return []

    def _results(self, op: Any, reads: list[int], prefix: str, depth: int) -> list[int]:
        if op.name in _CONTROL_FLOW:
            raise tarn.BadInput(f"{self.name} has control flow, whose memory StableHLO does not show: "
                                f"{op.name} at {op.location}; compile it, and read the HLO text")
        if op.name in ("func.call", "call"):
            callee = self.ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            if callee not in self.functions:
                raise tarn.BadInput(f"{self.name} calls {callee}, which is not there")
            return self.run(self.functions[callee], reads, f"{prefix}{callee}/", depth + 1)
        if op.name in _PASSES or self._passes(op):
            return reads
        word = op.name.rpartition(".")[2]
        self.count += 1
        label = f"{prefix}{word} {self.count}"
        if word == "constant":
            return [self.net.tensor(label, self.size(result.type, label), "parameter")
                    for result in op.results]
        if op.name in _VIEWS and self.net.size(reads[0]) == self.size(op.results[0].type, label):
            made = self.net.alias(label, reads[0])
            self.net.op(label, word, reads[:1], [made], self.stream, view=True)
            return [made]
        tensors = [self.net.tensor(label if len(op.results) == 1 else f"{label}#{place}",
                                   self.size(result.type, label))
                   for place, result in enumerate(op.results)]
        opcode = word.replace("_", "-")
        allowed = reads if opcode in ELEMENTWISE else reads[:1] if opcode in UPDATES else []
        self.net.op(label, word, reads, tensors, self.stream,
                    inplace=[[read, tensors[0]] for read in allowed if tensors])
        return tensors

    def _passes(self, op: Any) -> bool:
        """Is it a call that says something of its operand alone?"""
        if not op.name.endswith("custom_call") or "call_target_name" not in op.attributes:
            return False
        return self.ir.StringAttr(op.attributes["call_target_name"]).value in _PASSING_CALLS


def _parsed(data: bytes, name: str) -> Any:
    """(module, jaxlib's ir); the context lives as long as the module."""
    try:
        from jaxlib.mlir import ir
        from jaxlib.mlir._mlir_libs import _jax_mlir_ext
        from jaxlib.mlir.dialects import chlo, sdy, stablehlo
    except ImportError as error:
        raise needs("jaxlib", "jax", error) from None
    registry = ir.DialectRegistry()
    _jax_mlir_ext.register_dialects(registry)
    context = ir.Context()
    context.append_dialect_registry(registry)
    context.load_all_available_dialects()
    context.allow_unregistered_dialects = True
    for dialect in (stablehlo, chlo, sdy):
        dialect.register_dialect(context)
    try:
        if data.startswith(b"ML\xefR"):
            try:
                return stablehlo.deserialize_portable_artifact(context, data), ir
            except Exception:  # pylint: disable=broad-except
                return ir.Module.parse(data, context), ir
        return ir.Module.parse(data.decode("utf-8", "replace"), context), ir
    except Exception as error:  # pylint: disable=broad-except
        raise tarn.BadInput(f"{name} is no StableHLO module: {str(error)[:300]}") from None


def read(path: Any, function: str = "main") -> Reading:
    """See tarn.read.stablehlo."""
    name = str(os.fspath(path))
    with open(path, "rb") as file:
        module, ir = _parsed(file.read(), name)
    net = Network(os.path.basename(name), "StableHLO")
    writer = _Writer(module, ir, net, name)
    if function not in writer.functions:
        raise tarn.UsageError(f"{name} has no function {function!r}; it has "
                              f"{listed(writer.functions)}")
    main = writer.functions[function]
    arguments = []
    for place, argument in enumerate(main.regions[0].blocks[0].arguments):
        what = f"argument {place}"
        arguments.append(net.tensor(f"arg{place}", writer.size(argument.type, what), "input"))
    results = writer.run(main, arguments, "", 0)
    for tensor in results:
        net.keep(tensor)
    net.assume("ops run in the text's order, in one stream, cost no time and are not fused; constants "
               "are parameters; a reshape is a view")
    net.assume("elementwise ops may write over an operand (with --in-place)")
    persistent = sum(net.is_persistent(tensor) for tensor in results)
    if persistent:
        net.assume(f"{counted(persistent, 'result')} that is an argument or a constant stays there")
    return Reading(net.finish(), tuple(net.assumed))
