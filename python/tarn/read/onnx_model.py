"""ONNX models (the package onnx; no weights are read where they lie in files of their own).

Shapes come from onnx.shape_inference once every symbolic dimension has a number. What ONNX Runtime's
basic optimisations do anyway is done here: constants are folded, ops that nobody reads and
dropout in inference are removed. Control flow, sequences and strings are refused by name."""
from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Optional

import tarn

from .network import Network, Reading, counted, listed, needs, size_of

# Ops whose output may lie over an input, as ONNX Runtime's CPU kernels declare it (KernelDefBuilder
# in onnxruntime/core/providers/cpu: MayInplace). Binary ops (Add, Mul) declare nothing there.
MAY_INPLACE = {
    "Clip": (0, 0), "Elu": (0, 0), "HardSigmoid": (0, 0), "LeakyRelu": (0, 0), "Relu": (0, 0),
    "Scatter": (0, 0), "Selu": (0, 0), "Sigmoid": (0, 0), "Softmax": (0, 0), "Softplus": (0, 0),
    "Softsign": (0, 0), "Tanh": (0, 0), "ThresholdedRelu": (0, 0)}
# Ops that are another name for their first input (KernelDefBuilder: Alias).
ALIAS = frozenset(("Flatten", "Identity", "Reshape", "Squeeze", "Unsqueeze"))
_SMALL = 1 << 12  # elements of a constant that is computed
_GROWING = frozenset(("ConstantOfShape", "Expand", "EyeLike", "OneHot", "Pad", "Range", "Resize", "Tile",
                      "Upsample"))  # make much of little
_DATA = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")
CONTROL_FLOW = frozenset(("If", "Loop", "Scan", "SequenceMap"))
RANDOM = frozenset(("Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform",
                    "RandomUniformLike"))
_BITS = {"FLOAT": 32, "UINT8": 8, "INT8": 8, "UINT16": 16, "INT16": 16, "INT32": 32, "INT64": 64,
         "BOOL": 8, "FLOAT16": 16, "DOUBLE": 64, "UINT32": 32, "UINT64": 64, "COMPLEX64": 64,
         "COMPLEX128": 128, "BFLOAT16": 16, "FLOAT8E4M3FN": 8, "FLOAT8E4M3FNUZ": 8, "FLOAT8E5M2": 8,
         "FLOAT8E5M2FNUZ": 8, "FLOAT8E8M0": 8, "UINT4": 4, "INT4": 4, "FLOAT4E2M1": 4, "UINT2": 2,
         "INT2": 2}


def _operands(node: Any) -> list[str]:
    return [name for name in node.input if name]


def _label(node: Any) -> str:
    return str(node.name or next((name for name in node.output if name), node.op_type))


def _kind(node: Any) -> str:
    plain = node.domain in ("", "ai.onnx")
    return str(node.op_type if plain else f"{node.domain}.{node.op_type}")


class _Model:
    """A model with every dimension known."""

    def __init__(self, model: Any, library: Any, name: str, dims: Mapping[str, int],
                 shapes: Mapping[str, Sequence[int]]):
        self.onnx, self.name, self.dims = library, name, dict(dims)
        self.types = {number: word for word, number in library.TensorProto.DataType.items()}
        self.refuse_control_flow(model)
        model = self._inlined(model)
        self.refuse_control_flow(model)
        self.bind(model.graph, shapes)
        self.folded = 0
        self.given = {name: tuple(shape) for name, shape in shapes.items()}
        self.graph = self._folded(model).graph
        self.initializers = {i.name: i for i in self.graph.initializer}
        self.infos = self._infos(self.graph)

    def refuse_control_flow(self, model: Any) -> None:
        found = [f"{_label(node)} ({node.op_type})" for node in model.graph.node
                 if node.op_type in CONTROL_FLOW and node.domain in ("", "ai.onnx")]
        if found:
            raise tarn.BadInput(f"{self.name} has control flow, whose memory is not known before it "
                                f"runs: {listed(found)}; export the model without it (traced, "
                                "unrolled), or one graph for each branch")

    def _inlined(self, model: Any) -> Any:
        if not model.functions:
            return model
        from onnx import inliner
        return inliner.inline_local_functions(model)

    def bind(self, graph: Any, shapes: Mapping[str, Sequence[int]]) -> None:
        """Puts numbers for names of dimensions, and the shapes that were given."""
        fixed = {i.name for i in graph.initializer}
        inputs = [i for i in graph.input if i.name not in fixed]
        names = {i.name for part in ("input", "value_info", "output") for i in getattr(graph, part)}
        made = {name for node in graph.node for name in node.output}
        unknown = [name for name in shapes if name not in names | made]
        if unknown:
            raise tarn.UsageError(f"{self.name} has no tensor {unknown[0]!r}; its inputs are "
                                  f"{listed(repr(i.name) for i in inputs)}")
        named = {dim.dim_param for part in ("input", "value_info", "output")
                 for i in getattr(graph, part) for dim in i.type.tensor_type.shape.dim
                 if dim.dim_param}
        spare = [name for name in self.dims if name not in named]
        for info in [*graph.input, *graph.value_info, *graph.output]:
            if not info.type.HasField("tensor_type"):
                continue
            shape = info.type.tensor_type.shape
            if info.name in shapes:
                if not info.type.tensor_type.HasField("shape") or \
                        len(shape.dim) != len(shapes[info.name]):
                    del shape.dim[:]
                    for _ in shapes[info.name]:
                        shape.dim.add()
                for dim, value in zip(shape.dim, shapes[info.name]):
                    if dim.dim_param and dim.dim_param not in self.dims:
                        self.dims[dim.dim_param] = value
                    dim.dim_value = value
            for dim in shape.dim:
                if dim.dim_param in self.dims:
                    dim.dim_value = self.dims[dim.dim_param]
        if spare:
            known = f"its dimensions are {listed(sorted(named))}" if named else "it has none"
            raise tarn.UsageError(f"{self.name} has no dimension {spare[0]!r}: {known}")
        for info in inputs:
            self._all_known(info)
        for info in [*graph.value_info, *graph.output]:  # "2*batch": inferred anew
            for dim in info.type.tensor_type.shape.dim:
                if dim.dim_param:
                    dim.ClearField("dim_param")

    def _all_known(self, info: Any) -> None:
        if not info.type.HasField("tensor_type"):
            raise tarn.BadInput(f"{self.name}: input {info.name!r} is no tensor, but a sequence, a "
                                "map or optional, whose memory is not known")
        if not info.type.tensor_type.HasField("shape"):
            raise tarn.BadInput(f"{self.name}: input {info.name!r} has no shape: give it, as "
                                f"shapes={{{info.name!r}: (1, 3, 224, 224)}}, or --shape "
                                f"{info.name}=1,3,224,224")
        for place, dim in enumerate(info.type.tensor_type.shape.dim):
            if dim.HasField("dim_value"):
                continue
            if dim.dim_param:
                raise tarn.BadInput(f"{self.name}: dimension {dim.dim_param!r} of input "
                                    f"{info.name!r} is not known: give it, as "
                                    f"{_argument(dim.dim_param)}, or --dim {dim.dim_param}=32")
            raise tarn.BadInput(f"{self.name}: dimension {place} of input {info.name!r} is not known "
                                f"and has no name: give the whole shape, as shapes={{{info.name!r}: "
                                f"(...)}}, or --shape {info.name}=...")

    def _inferred(self, model: Any) -> Any:
        try:
            return self.onnx.shape_inference.infer_shapes(model, data_prop=True)
        except Exception as error:  # pylint: disable=broad-except
            raise tarn.BadInput(f"{self.name}: onnx cannot infer shapes: {error}") from None

    @staticmethod
    def _infos(graph: Any) -> dict[str, Any]:
        return {i.name: i.type for part in ("input", "value_info", "output")
                for i in getattr(graph, part)}

    def _folded(self, model: Any) -> Any:
        """Shapes inferred, and small constants computed, until neither says more of the other: a shape
        may follow from one that is computed (x.shape[1] // 3)."""
        for tensor in model.graph.initializer:  # weights: their dimensions say all
            if math.prod(tensor.dims) > _SMALL:
                for field in _DATA:
                    tensor.ClearField(field)
        while True:
            model = self._inferred(model)
            if not self._compute(model):
                return model

    def _compute(self, model: Any) -> bool:
        """Replaces ops of small known values by what they make. Was there one?"""
        graph, helper = model.graph, self.onnx.numpy_helper
        infos = self._infos(graph)
        values = {t.name: helper.to_array(t) for t in graph.initializer
                  if math.prod(t.dims) <= _SMALL and not t.external_data and t.data_type != 8}
        kept, made = [], []
        for node in graph.node:
            results = self._evaluated(model, node, values, infos)
            if results is None:
                kept.append(node)
                continue
            self.folded += node.op_type != "Constant"
            for name, value in zip(node.output, results):
                if name:
                    values[name] = value
                    made.append(helper.from_array(value, name))
        if made:
            del graph.node[:]
            graph.node.extend(kept)
            graph.initializer.extend(made)
        return bool(made)

    def _evaluated(self, model: Any, node: Any, values: dict[str, Any],
                   infos: Mapping[str, Any]) -> Optional[list[Any]]:
        """The results of an op of known values; None: not known, or large."""
        if node.op_type in RANDOM or not any(node.output) or node.domain not in ("", "ai.onnx"):
            return None
        inputs = [self._stand_in(name, values, infos) if node.op_type in ("Shape", "Size")
                  else values.get(name) for name in _operands(node)]
        if any(value is None for value in inputs):
            return None
        if node.op_type == "Constant" and any(
                a.HasField("t") and math.prod(a.t.dims) > _SMALL or a.type in (3, 8)
                for a in node.attribute):
            return None
        if node.op_type in _GROWING and any(
                shape is None or math.prod(shape) > _SMALL for shape in (
                    self._shape_in(name, infos) for name in node.output if name)):
            return None
        from onnx import reference
        try:
            part = self.onnx.helper.make_graph(
                [node], "part", [self.onnx.helper.make_empty_tensor_value_info(name)
                                 for name in dict.fromkeys(_operands(node))],
                [self.onnx.helper.make_empty_tensor_value_info(name) for name in node.output if name])
            run = reference.ReferenceEvaluator(self.onnx.helper.make_model(
                part, opset_imports=model.opset_import, ir_version=min(model.ir_version, 10)))
            results = run.run(None, dict(zip(_operands(node), inputs)))
        except Exception:  # pylint: disable=broad-except
            return None  # which onnx cannot compute: it stays an op
        small = all(hasattr(r, "nbytes") and r.size <= _SMALL for r in results)
        return list(results) if small and len(results) == sum(map(bool, node.output)) else None

    def _stand_in(self, name: str, values: dict[str, Any], infos: Mapping[str, Any]) -> Any:
        """Something of a tensor's shape, without bytes of its own."""
        import numpy
        shape = values[name].shape if name in values else self._shape_in(name, infos)
        return None if shape is None else numpy.broadcast_to(numpy.zeros((), numpy.int8), shape)

    def shape(self, name: str) -> Optional[tuple[int, ...]]:
        """None: not known."""
        if name in self.initializers and name not in self.given:
            return tuple(self.initializers[name].dims)
        return self._shape_in(name, self.infos)

    def _shape_in(self, name: str, infos: Mapping[str, Any]) -> Optional[tuple[int, ...]]:
        if name in self.given:
            return self.given[name]
        kind = infos.get(name)
        if kind is None or not kind.HasField("tensor_type") or \
                not kind.tensor_type.HasField("shape"):
            return None
        dims = kind.tensor_type.shape.dim
        known = all(dim.HasField("dim_value") for dim in dims)
        return tuple(dim.dim_value for dim in dims) if known else None

    def size(self, name: str, node: Any = None) -> int:
        """Bytes of a tensor."""
        kind = self.infos.get(name)
        made_by = f", the output of {_label(node)} ({node.op_type})" if node is not None else ""
        if kind is not None and kind.WhichOneof("value") not in ("tensor_type", None):
            raise tarn.BadInput(f"{self.name}: {name!r}{made_by} is no tensor, but "
                                f"{str(kind.WhichOneof('value')).replace('_type', '')}: its memory "
                                "is not known before it runs")
        number = kind.tensor_type.elem_type if kind is not None else 0
        if name in self.initializers:
            number = self.initializers[name].data_type
        word = self.types.get(number, "UNDEFINED")
        shape = self.shape(name)
        if shape is None or word == "UNDEFINED":
            dims = [dim.dim_param for dim in kind.tensor_type.shape.dim] if kind is not None else []
            unknown = listed([d for d in dims if d])
            raise tarn.BadInput(f"{self.name}: the shape of {name!r}{made_by} is not known"
                                f"{f' ({unknown})' if unknown else ''}: it depends on data, or onnx "
                                "does not know the op; give the shape, as "
                                f"shapes={{{name!r}: (...)}}, or --shape {name}=...")
        if word not in _BITS:
            raise tarn.BadInput(f"{self.name}: {name!r}{made_by} holds {word.lower()}s, whose size "
                                "is not known before it runs")
        return size_of(shape, _BITS[word], f"{name!r} of {self.name}")


def _argument(dim: str) -> str:
    return f"{dim}=32" if dim.isidentifier() else f"dims={{{dim!r}: 32}}"


class _Reader:
    def __init__(self, model: _Model, net: Network):
        self.model, self.net = model, net
        self.outputs = [i.name for i in model.graph.output]
        self.nodes = self._live()
        self.constants = set(model.initializers)
        for sparse in model.graph.sparse_initializer:
            self.constants.add(sparse.values.name)
        self.tensors: dict[str, int] = {}
        self.folded = model.folded

    def _live(self) -> list[Any]:
        """The nodes whose results reach an output, in the file's order, each after what it reads."""
        makers = {name: node for node in self.model.graph.node for name in node.output if name}
        todo, needed = [name for name in self.outputs if name in makers], set()
        while todo:
            node = makers[todo.pop()]
            if id(node) not in needed:
                needed.add(id(node))
                todo += [name for name in _operands(node) if name in makers]
        nodes = [node for node in self.model.graph.node if id(node) in needed]
        dead = len(self.model.graph.node) - len(nodes)
        if dead:
            self.net.assume(f"{counted(dead, 'op')} that no output needs removed")
        return nodes

    def _is_folded(self, node: Any) -> bool:
        """Is it computed before the model runs? Shapes are known, so what reads them alone is, too."""
        if node.op_type in RANDOM or not any(node.output):
            return False
        if node.op_type in ("Constant", "Shape", "Size"):
            return True
        return all(name in self.constants for name in _operands(node))

    def _persistent(self, name: str) -> int:
        """A weight or a folded constant that an op reads."""
        if name not in self.tensors:
            self.tensors[name] = self.net.tensor(name, self.model.size(name), "parameter")
        return self.tensors[name]

    def _copies(self, node: Any) -> bool:
        """ONNX Runtime gives outputs of the model bytes of their own: an op that otherwise is a view
        copies there."""
        return any(name in self.outputs for name in node.output) or \
            node.input[0] in self.constants

    def _drops(self, node: Any) -> bool:
        """Dropout in inference: without training_mode, or with a constant false."""
        if node.op_type != "Dropout":
            return False
        if len(node.input) < 3 or not node.input[2]:
            return True
        mode = self.model.initializers.get(node.input[2])
        return mode is not None and not self.model.onnx.numpy_helper.to_array(mode).any()

    def run(self) -> None:
        inputs = [i for i in self.model.graph.input if i.name not in self.model.initializers]
        for info in inputs:
            self.tensors[info.name] = self.net.tensor(info.name, self.model.size(info.name), "input")
        stream = self.net.stream("compute")
        for node in self.nodes:
            if self._is_folded(node):
                self.constants.update(name for name in node.output if name)
                self.folded += node.op_type != "Constant"
                continue
            self._op(node, stream)
        self._finish_outputs(stream)
        if self.folded:
            self.net.assume(f"{counted(self.folded, 'op')} of constants and known shapes folded; "
                            "constants that an op reads are parameters")

    def _op(self, node: Any, stream: int) -> None:
        read = [self.tensors[name] if name in self.tensors else self._known(name, node)
                for name in _operands(node)]
        names = [name for name in node.output if name]
        drops = self._drops(node)
        if drops:
            names = names[:1]
            self.net.assume("dropout passes its input on, as in inference")
        if (node.op_type in ALIAS or drops) and not self._copies(node):
            self.tensors[names[0]] = self.net.alias(names[0], read[0])
            self.net.op(_label(node), _kind(node), read[:1], [self.tensors[names[0]]], stream,
                        view=True)
            return
        for name in names:
            kind = "output" if name in self.outputs else "intermediate"
            self.tensors[name] = self.net.tensor(name, self.model.size(name, node), kind)
        made = [self.tensors[name] for name in names]
        pairs = []
        if node.op_type in MAY_INPLACE and node.domain in ("", "ai.onnx"):
            place, result = MAY_INPLACE[node.op_type]
            if place < len(node.input) and node.input[place] and node.output[result]:
                pairs = [[self.tensors.get(node.input[place], -1), self.tensors[names[result]]]]
                pairs = [pair for pair in pairs if pair[0] >= 0]
        self.net.op(_label(node), _kind(node), read, made, stream, inplace=pairs)

    def _known(self, name: str, node: Any) -> int:
        if name in self.constants:
            return self._persistent(name)
        raise tarn.BadInput(f"{self.model.name}: {_label(node)} ({node.op_type}) reads {name!r}, "
                            "which no input, weight or op before it makes")

    def _finish_outputs(self, stream: int) -> None:
        """Outputs of the model that are an input, or constant, are copied there."""
        for name in dict.fromkeys(self.outputs):
            if name not in self.tensors and name in self.constants:
                self._persistent(name)
            if name not in self.tensors:
                raise tarn.BadInput(f"{self.model.name}: no op makes its output {name!r}")
            if not self.net.is_persistent(self.tensors[name]):
                self.net.keep(self.tensors[name])


def _loaded(source: Any, library: Any, name: str) -> Any:
    if isinstance(source, library.ModelProto):
        model = library.ModelProto()
        model.CopyFrom(source)
        return model
    try:
        model = library.load(os.fspath(source), load_external_data=False)
    except OSError:
        raise
    except Exception as error:  # pylint: disable=broad-except
        raise tarn.BadInput(f"{name} is no ONNX model: {error}") from None
    if not model.graph.node and not model.graph.output:
        raise tarn.BadInput(f"{name} is no ONNX model: it has no ops and no outputs")
    return model


def read(source: Any, dims: Optional[Mapping[str, int]] = None,
         shapes: Optional[Mapping[str, Iterable[int]]] = None) -> Reading:
    """See tarn.read.onnx."""
    try:
        import onnx
        import onnx.shape_inference
    except ImportError as error:
        raise needs("onnx", "onnx", error) from None
    name = os.fspath(source) if isinstance(source, (str, os.PathLike)) else "the model"
    model = _Model(_loaded(source, onnx, str(name)), onnx, str(name), dims or {},
                   {tensor: tuple(shape) for tensor, shape in (shapes or {}).items()})
    net = Network(model.graph.name or os.path.basename(str(name)), "ONNX")
    for dim, value in model.dims.items():
        net.assume(f"dimension {dim} is {value}")
    net.assume("ops run in the file's order, in one stream, and cost no time")
    net.assume("ops write in place where ONNX Runtime's CPU kernels may (with --in-place)")
    _Reader(model, net).run()
    return Reading(net.finish(), tuple(net.assumed))
