"""TensorFlow Lite models (FlatBuffers, identifier TFL3). Needs no library."""
from __future__ import annotations

import os
from typing import Any

import tarn

from .flat import Damaged, Table
from .network import Network, Reading, counted, listed, size_of

_BITS = {0: 32, 1: 16, 2: 32, 3: 8, 4: 64, 6: 8, 7: 16, 8: 64, 9: 8, 10: 64, 11: 128, 12: 64, 15: 32,
         16: 16, 17: 4, 18: 16}
_WORDS = {5: "strings", 13: "a resource", 14: "a variant"}
# The numbers of operators in TensorFlow Lite's schema (BuiltinOperator) that matter here.
_NAMES = {number: name for number, name in enumerate(
    """ADD AVERAGE_POOL_2D CONCATENATION CONV_2D DEPTHWISE_CONV_2D DEPTH_TO_SPACE DEQUANTIZE
    EMBEDDING_LOOKUP FLOOR FULLY_CONNECTED HASHTABLE_LOOKUP L2_NORMALIZATION L2_POOL_2D
    LOCAL_RESPONSE_NORMALIZATION LOGISTIC LSH_PROJECTION LSTM MAX_POOL_2D MUL RELU RELU_N1_TO_1 RELU6
    RESHAPE RESIZE_BILINEAR RNN SOFTMAX SPACE_TO_DEPTH SVDF TANH CONCAT_EMBEDDINGS SKIP_GRAM CALL
    CUSTOM EMBEDDING_LOOKUP_SPARSE PAD UNIDIRECTIONAL_SEQUENCE_RNN GATHER BATCH_TO_SPACE_ND
    SPACE_TO_BATCH_ND TRANSPOSE MEAN SUB DIV SQUEEZE UNIDIRECTIONAL_SEQUENCE_LSTM STRIDED_SLICE
    BIDIRECTIONAL_SEQUENCE_RNN EXP TOPK_V2 SPLIT LOG_SOFTMAX DELEGATE BIDIRECTIONAL_SEQUENCE_LSTM CAST
    PRELU MAXIMUM ARG_MAX MINIMUM LESS NEG PADV2 GREATER GREATER_EQUAL LESS_EQUAL SELECT SLICE SIN
    TRANSPOSE_CONV SPARSE_TO_DENSE TILE EXPAND_DIMS EQUAL NOT_EQUAL LOG SUM SQRT RSQRT SHAPE POW
    ARG_MIN FAKE_QUANT REDUCE_PROD REDUCE_MAX PACK LOGICAL_OR ONE_HOT LOGICAL_AND LOGICAL_NOT UNPACK
    REDUCE_MIN FLOOR_DIV REDUCE_ANY SQUARE ZEROS_LIKE FILL FLOOR_MOD RANGE RESIZE_NEAREST_NEIGHBOR
    LEAKY_RELU SQUARED_DIFFERENCE MIRROR_PAD ABS SPLIT_V UNIQUE CEIL REVERSE_V2 ADD_N GATHER_ND COS
    WHERE RANK ELU REVERSE_SEQUENCE MATRIX_DIAG QUANTIZE MATRIX_SET_DIAG ROUND HARD_SWISH IF WHILE
    NON_MAX_SUPPRESSION_V4 NON_MAX_SUPPRESSION_V5 SCATTER_ND SELECT_V2 DENSIFY SEGMENT_SUM
    BATCH_MATMUL PLACEHOLDER_FOR_GREATER_OP_CODES CUMSUM CALL_ONCE BROADCAST_TO RFFT2D CONV_3D IMAG
    REAL COMPLEX_ABS HASHTABLE HASHTABLE_FIND HASHTABLE_IMPORT HASHTABLE_SIZE REDUCE_ALL
    CONV_3D_TRANSPOSE VAR_HANDLE READ_VARIABLE ASSIGN_VARIABLE BROADCAST_ARGS RANDOM_STANDARD_NORMAL
    BUCKETIZE RANDOM_UNIFORM MULTINOMIAL GELU DYNAMIC_UPDATE_SLICE RELU_0_TO_1
    UNSORTED_SEGMENT_PROD UNSORTED_SEGMENT_MAX UNSORTED_SEGMENT_SUM ATAN2 UNSORTED_SEGMENT_MIN SIGN
    BITCAST BITWISE_XOR RIGHT_SHIFT""".split())}
_CONTROL_FLOW = frozenset(("CALL", "CALL_ONCE", "IF", "WHILE"))
_FOLDED = frozenset(("DENSIFY", "DEQUANTIZE"))
# Inputs that an op's output may lie over: kTfLiteInplaceOp*Shared of TensorFlow Lite's kernels.
IN_PLACE = {"ADD": (0, 1), "SUB": (0, 1), "MUL": (0, 1), "DIV": (0, 1), "SOFTMAX": (0,),
            "DYNAMIC_UPDATE_SLICE": (0,), "RESHAPE": (0,), "EXPAND_DIMS": (0,), "SQUEEZE": (0,),
            "BITCAST": (0,)}


class _Model:
    def __init__(self, data: bytes, name: str):
        self.name = name
        root = Table.root(data)
        self.codes = [self._code(code) for code in root.tables(1)]
        graphs = root.tables(2)
        if not graphs:
            raise tarn.BadInput(f"{name} has no subgraph")
        self.graph, self.others = graphs[0], len(graphs) - 1
        self.buffers = [max(b.length(0), b.number(2, "Q")) for b in root.tables(4)]
        self.tensors = self.graph.tables(0)

    @staticmethod
    def _code(code: Table) -> str:
        number = max(code.number(3), code.number(0, "b"))
        return code.string(1) or "CUSTOM" if number == 32 else _NAMES.get(number, f"OP_{number}")

    def tensor(self, number: int) -> Table:
        if not 0 <= number < len(self.tensors):
            raise tarn.BadInput(f"{self.name} names tensor {number}, and has {len(self.tensors)}")
        return self.tensors[number]

    def label(self, number: int) -> str:
        return self.tensor(number).string(3) or f"tensor {number}"

    def is_constant(self, number: int) -> bool:
        buffer = self.tensor(number).number(2, "I")
        return buffer < len(self.buffers) and self.buffers[buffer] > 0

    def size(self, number: int) -> int:
        tensor = self.tensor(number)
        kind = tensor.number(1, "b")
        what = f"{self.label(number)!r} of {self.name}"
        if kind not in _BITS:
            raise tarn.BadInput(f"{what} holds {_WORDS.get(kind, f'elements of type {kind}')}, whose "
                                "size is not known before it runs")
        if self.is_constant(number) and tensor.table(6) is not None:  # sparse
            return self.buffers[tensor.number(2, "I")]
        return size_of(tensor.numbers(0), _BITS[kind], what)


def _check(model: _Model, net: Network) -> list[tuple[str, list[int], list[int]]]:
    """Operators as (name, inputs, outputs)."""
    found = []
    for operator in model.graph.tables(3):
        code = operator.number(0, "I")
        if code >= len(model.codes):
            raise tarn.BadInput(f"{model.name}: an operator has code {code}, of {len(model.codes)}")
        found.append((model.codes[code], [i for i in operator.numbers(1) if i >= 0],
                      [i for i in operator.numbers(2) if i >= 0]))
    flow = [name for name, _, _ in found if name in _CONTROL_FLOW]
    if flow:
        raise tarn.BadInput(f"{model.name} has control flow, whose memory is not known before it runs: "
                            f"{listed(flow)}")
    if model.others:
        net.assume(f"the first of {model.others + 1} subgraphs is read")
    dynamic = [model.label(i) for i in range(len(model.tensors))
               if -1 in model.tensors[i].numbers(7)]
    if dynamic:
        net.assume(f"{counted(len(dynamic), 'tensor')} with dynamic dimensions in the shape that the "
                   f"file has ({listed(dynamic)}); resize the model and save it for other shapes")
    return found


def _build(model: _Model, net: Network, operators: Any) -> None:
    tensors: dict[int, int] = {}
    outputs = set(model.graph.numbers(2))
    constants: set[int] = set()
    stream = net.stream("compute")
    for i in model.graph.numbers(1):
        tensors[i] = net.tensor(model.label(i), model.size(i), "input")

    def known(i: int) -> int:
        if i not in tensors:
            state = model.tensor(i).number(5, "b")
            if not (state or model.is_constant(i) or i in constants):
                raise tarn.BadInput(f"{model.name}: {model.label(i)!r} is read before an operator "
                                    "makes it")
            tensors[i] = net.tensor(model.label(i), model.size(i),
                                    "optimizer_state" if state else "parameter")
        return tensors[i]

    folded = 0
    for name, inputs, made in operators:
        if name in _FOLDED and all(model.is_constant(i) or i in constants for i in inputs):
            constants.update(made)  # which the runtime keeps from the first run on
            folded += 1
            continue
        read = [known(i) for i in inputs]
        for i in made:
            if i not in tensors:
                tensors[i] = net.tensor(model.label(i), model.size(i),
                                        "output" if i in outputs else "intermediate")
        pairs = [[known(inputs[place]), tensors[made[0]]] for place in IN_PLACE.get(name, ())
                 if place < len(inputs) and made]
        label = model.label(made[0]) if made else name
        net.op(label, name, read, [tensors[i] for i in made], stream, inplace=pairs)
    if folded:
        net.assume(f"{counted(folded, 'operator')} that unpack constants folded: what they make is a "
                   "parameter")
    missing = [model.label(i) for i in sorted(outputs) if i not in tensors]
    if missing:
        net.assume(f"{counted(len(missing), 'output')} that no operator makes left out "
                   f"({listed(missing)})")


def read(path: Any) -> Reading:
    """See tarn.read.tflite."""
    name = os.fspath(path)
    with open(path, "rb") as file:
        data = file.read()
    if data[4:8] != b"TFL3":
        raise tarn.BadInput(f"{name} is no TensorFlow Lite model: it has no identifier TFL3")
    net = Network(os.path.basename(str(name)), "TensorFlow Lite")
    try:
        model = _Model(data, str(name))
        net.assume("operators run in the file's order, in one stream, and cost no time; temporaries of "
                   "kernels are not in the file")
        net.assume("ops write in place where TensorFlow Lite's kernels may (with --in-place)")
        _build(model, net, _check(model, net))
    except Damaged as error:
        raise tarn.BadInput(f"{name}: {error}") from None
    return Reading(net.finish(), tuple(net.assumed))
