"""A loss as TorchDynamo traces it: graphs of PyTorch's calls, each used as long as its guards hold.
Messages (logging, warnings) are not part of a trace. torch.compiler.is_compiling() is False for the
program, as in eager execution; if it cannot be traced so, True. torch.compiler.is_exporting() stays
False then: with Dynamo's True the mask makers of transformers take another way than eagerly."""
from __future__ import annotations

import contextlib
import logging
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest import mock
from typing import Any

import torch
from torch._dynamo import config
from torch._dynamo.exc import TorchDynamoException
from torch._dynamo.source import RandomValueSource
from torch._dynamo.variables.constant import ConstantVariable
from torch._dynamo.variables.misc import DebuggingVariable
from torch._dynamo.variables.torch import tracing_state_functions
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.utils import _pytree as pytree

from .masks import drop_idle_masks
from .tensors import tensors_of

SETTINGS = {  # of Dynamo: every trace is kept, hooks of modules count, bits are as in eager runs
    name: value for name, value in {
        "recompile_limit": 1 << 20, "accumulated_recompile_limit": 1 << 20, "allow_rnn": True,
        "skip_nnmodule_hook_guards": False, "trace_autograd_ops": True, "trace_numpy": False,
        "specialize_float": True, "capture_scalar_outputs": True,
        "capture_dynamic_output_shape_ops": True}.items() if hasattr(config, name)}
NAMES: list[tuple[str, ...]] = [("is_compiling", "is_dynamo_compiling", "is_exporting"),
                                ("is_exporting",), ()]
ANSWERS = [{function: False for function in tracing_state_functions() if function.__name__ in names}
           for names in NAMES]
IGNORES = hasattr(config, "ignore_logging_functions")
BY_VALUE = ("DynamicOutputShapeException", "dynamic output shapes", "guard on data-dependent",
            "Could not extract specialized", "Data-dependent branching", "Data dependent operator")
CAUSES = {  # of errors of PyTorch, by a part of their text
    "SparseTensorImpl": "a gradient or a tensor is sparse, and only dense ones have a place in an "
                        "arena: make them dense (as nn.Embedding does with sparse=False)",
    "Expected a proper Tensor but got None":
        "PyTorch cannot trace the backward pass of one of its operators; oneDNN's LSTM on the CPU is "
        "one, and with torch.backends.mkldnn.flags(enabled=False) around all steps it is not used"}
LEVELS = ("debug", "info", "warning", "error", "critical", "exception", "log")


class NotRun(Exception):
    """Leaves what Dynamo has compiled, before anything was changed. Its text: why; none: the step
    only has to run eagerly this time."""


@contextlib.contextmanager
def _mended() -> Iterator[None]:
    """PyTorch before 2.12 fails where it writes SETTINGS, with a set of functions, to its log of
    compilations. Before 2.11 it calls functions, as those of `logging`, behind what is traced: they
    would speak in each step."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(
            torch._dynamo.utils, "_get_dynamo_config_for_logging", lambda: None, create=True))
        if not IGNORES:
            stack.enter_context(mock.patch.object(DebuggingVariable, "call_function",
                                                  lambda *_: ConstantVariable.create(None)))
        yield


def _without_messages() -> dict[str, Any]:
    """Settings of Dynamo."""
    methods, functions = ({function for name, function in vars(kind).items()
                           if name.split("_")[0] in LEVELS} for kind in (logging.Logger, logging))
    functions.add(warnings.warn)
    if IGNORES:
        return {"ignore_logging_functions": methods | functions}
    return {"ignore_logger_methods": methods, "reorderable_logging_functions": functions}


def detached(results: Any) -> Any:
    return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, results)


def loss_in(results: Any) -> Any:
    """What backward starts from: the loss, or the first tensor of what loss_fn returns."""
    tensors = tensors_of(results)
    if not tensors:
        raise TypeError("loss_fn returned no tensor")
    return tensors[0]


@torch.compiler.assume_constant_result  # type: ignore[untyped-decorator, unused-ignore]
def _is_traced() -> Any:
    """torch.compiler.is_compiling() is false in here before PyTorch 2.12."""
    return torch._guards.CompileContext.try_get() is not None


class Traced:
    """Calls loss_fn(model, *batch), with `planned(graph, inputs)` in the place of what was traced:
    an fx.GraphModule whose first result is the detached loss, and the tensors that it takes."""

    def __init__(self, model: Any, loss_fn: Any, planned: Any) -> None:
        """planned: a weak reference to a method."""
        is_told = [False]  # that it is compiled; the step must not be kept by what Dynamo keeps

        def forward(*batch: Any) -> Any:
            if not _is_traced():
                raise NotRun("TorchDynamo is switched off")
            results = loss_fn(model, *batch)
            return loss_in(results).detach(), detached(results)

        def backend(graph: Any, _inputs: Any) -> Any:
            sources = (n.meta["grapharg"].source for n in graph.graph.find_nodes(op="placeholder"))
            if any(isinstance(source, RandomValueSource) for source in sources):
                raise ValueError("it draws random numbers of Python")
            if is_told[0]:
                drop_idle_masks(graph)
            return lambda *inputs: planned()(graph, inputs)

        forward.__code__ = forward.__code__.replace()  # Dynamo keeps what it compiles with the code
        self._call = torch.compile(forward, backend=backend, fullgraph=True, dynamic=False)
        self._settings = config.patch({**SETTINGS, **_without_messages()})
        self._answers, self._is_told = ANSWERS, is_told

    def __call__(self, *batch: Any) -> Any:
        with torch.enable_grad(), self._settings, _mended():
            left = self._answers
            for number, answers in enumerate(left):
                self._answers = left[number:]  # what can be traced is traced so again
                self._is_told[0] = len(self._answers) < len(ANSWERS)
                try:
                    with mock.patch.dict(tracing_state_functions(), answers):
                        return self._call(*batch)[1]
                except TorchDynamoException:
                    if number == len(left) - 1:
                        self._answers = left
                        raise


def reason(error: Any, what: str = "captured") -> Any:
    """Why a step is not captured: a line, with the place in the program where there is one."""
    error = getattr(error, "inner_exception", error)
    ours, told = str(Path(torch.__file__).parent), str(error).strip() or "no text"
    text = " ".join(line.strip() for line in told.splitlines()[:2])
    if isinstance(error, DataDependentOutputException):
        text = "the value of a tensor is needed on the host (.item())"
    cause = next((cause + ": " for part, cause in CAUSES.items() if part in told), "")
    if type(error).__module__.startswith("torch.") and any(
            part in f"{type(error).__name__}: {told}" for part in BY_VALUE):
        cause = "a shape or a branch depends on the values of tensors: "
    places = re.findall(r'File "(.+)", line (\d+)', told)
    users = [f" ({file}, line {line})" for file, line in places if not file.startswith(ours)]
    return (f"the step could not be {what}: {cause}{type(error).__name__}: {text}"
            + "".join(users[-1:]))
