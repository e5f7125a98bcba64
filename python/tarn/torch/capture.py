"""Forward and backward of one step as an fx graph of ATen calls, traced on fake tensors."""
from __future__ import annotations

import contextlib
from types import MappingProxyType
from typing import Any, Container, Dict, List, Mapping, NamedTuple, Sequence, Tuple
from unittest import mock

import torch
from torch.fx.experimental.proxy_tensor import make_fx
from torch.utils.checkpoint import checkpoint

from .kernel import Kernel
from .strides import Fakes, Strides
from .tensors import as_part, empty_as, local, untraced_shapes

aten = torch.ops.aten
CHECKPOINT = torch.ops.higher_order.tag_activation_checkpoint
# PyTorch 2.9 traces simpler ops in their place, which round more often than their kernels.
WHOLE = (aten.silu_backward.default, aten.mish_backward.default,
         aten.native_channel_shuffle.default)


class Captured(NamedTuple):
    """module takes the inputs, and returns (results..., gradients...). Of a DTensor it takes, or returns,
    the part on this rank."""
    module: torch.fx.GraphModule
    inputs: List[Tuple[str, str]]  # name, and kind as Tarn calls it
    results_count: int
    trained: List[int]  # the inputs that have a gradient, in the order of the gradients
    specs: Sequence[Any] = ()  # of results that are DTensors; None for the others
    lying: Sequence[Any] = ()  # of gradients that lie otherwise than their parameters, in that order


def capture(loss: torch.fx.GraphModule, inputs: Sequence[torch.Tensor], names: Dict[int, str],
            joint: Container[int] = (), as_they_lie: bool = False,
            grad_dtypes: Mapping[int, Any] = MappingProxyType({}),
            strides: Strides = MappingProxyType({})) -> Captured:
    """Traces loss(*inputs) and the backward pass of its first result. loss: as Dynamo has traced
    it, with detached results. names: of the inputs that belong to the model, by id; the others are
    called as in the trace. joint: inputs that share storages; all others have one each. Inputs may be
    DTensors: what these communicate is a part of the trace. as_they_lie: sums that a DTensor has left
    to who reads a gradient are left to them; else they are made here. grad_dtypes: by the id of the
    input, the type to which the gradient of each of its uses is cast before these are summed up; None:
    as they are. strides: as found when another trace of this step ran."""
    again = [node for part in loss.modules() if isinstance(part, torch.fx.GraphModule)
             for node in part.graph.find_nodes(op="call_function", target=CHECKPOINT)]
    if any(node.kwargs.get("use_reentrant") is not False for node in again):
        raise ValueError("checkpoint with use_reentrant=True trains otherwise than its trace: pass "
                         "use_reentrant=False")
    for tensor in inputs:
        if (tensor.requires_grad and tensor.is_leaf
                and getattr(tensor, "grad_dtype", tensor.dtype) != tensor.dtype):
            raise ValueError(f"{names.get(id(tensor), 'an input')} has a grad_dtype of its own")
    _keep_history(loss)
    traces = []
    for function in (_once, _twice) if again else (None,):
        for node in again:
            node.target = function
            node.graph.owning_module.recompile()
        traces.append(_trace(loss, inputs, joint, as_they_lie, grad_dtypes, strides))
    if len({sum(map(is_random, trace[0].graph.nodes)) for trace in traces}) > 1:
        traces.pop()  # random numbers would be drawn again
    module, trained, specs, lying = traces[-1]
    placeholders = loss.graph.find_nodes(op="placeholder")
    known = [(names[id(t)], "parameter") if id(t) in names else (node.name, "input")
             for t, node in zip(inputs, placeholders)]
    return Captured(module, known, len(loss.graph.output_node().args[0]), trained, specs,
                    lying)


def mode_of(nodes: Any) -> Any:
    """The FakeTensorMode of what nodes of a graph make, or None."""
    values = (node.meta.get("val") for node in nodes)
    return next((value.fake_mode for value in values if hasattr(value, "fake_mode")), None)


def is_random(node: Any) -> Any:
    """Does the call draw random numbers?"""
    if isinstance(node.target, Kernel):
        return node.target.is_random
    return (torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())
            and draws(node.target, node.args, node.kwargs))


def draws(target: Any, args: Any, kwargs: Any) -> bool:
    """Does an operator that can draw random numbers do so with these arguments? Attention without
    dropout does not, whatever its tags."""
    given = {argument.name: argument.default_value for argument in target._schema.arguments}
    given.update(zip(given, args), **kwargs)
    return bool(given.get("dropout_p") != 0)


def _twice(body: Any, *args: Any, **_options: Any) -> Any:
    return checkpoint(body, *args, use_reentrant=False, preserve_rng_state=False)


def _once(body: Any, *args: Any, **_options: Any) -> Any:
    return body(*args)


def _keep_history(loss: Any) -> None:
    """Undoes the detaching of the first result."""
    results = loss.graph.output_node().args[0]
    if getattr(results[0], "target", None) == "detach":
        loss.graph.output_node().args = ((results[0].args[0], *results[1:]),)
        loss.recompile()


def _is_plain(tensor: Any) -> Any:
    return (type(tensor) in (torch.Tensor, torch.nn.Parameter) and tensor.layout == torch.strided
            and not (tensor.is_conj() or tensor.is_neg()))


def _trace(loss: Any, inputs: Any, joint: Any, as_they_lie: bool, grad_dtypes: Any,
           strides: Strides) -> Any:
    trained: list[int] = []
    lying: list[Any] = []
    specs: list[Any] = []

    def step(*tensors: Any) -> Any:
        first: dict[int, int] = {}  # of the inputs that are one tensor
        own = [as_part(tensors[first.setdefault(id(t), i)].detach(), t).requires_grad_(t.requires_grad)
               for i, t in enumerate(inputs)]
        for i in first.values():
            if inputs[i].requires_grad and id(inputs[i]) in grad_dtypes:
                own[i].grad_dtype = grad_dtypes[id(inputs[i])]
        with torch.enable_grad():
            results = torch.fx.Interpreter(loss).run(*(own[first[id(t)]] for t in inputs))
            leaves = [i for i in first.values() if inputs[i].requires_grad]
            made = torch.autograd.grad(results[0], [own[i] for i in leaves], allow_unused=True)
        found = {i: gradient if as_they_lie else _as_parameter(gradient, inputs[i])
                 for i, gradient in zip(leaves, made) if gradient is not None}
        gradients = {i: local(gradient) for i, gradient in found.items()}
        trained.extend(gradients)
        lying.extend(_lying(gradient, inputs[i]) for i, gradient in found.items())
        specs.extend(getattr(r, "_spec", None) for r in results)
        results = [local(r.detach()) for r in results]
        return results + accumulated(gradients, tensors, results)

    with Fakes(strides, allow_non_fake_inputs=True) as mode:
        fakes = [empty_as(t) if i not in joint and _is_plain(t) else mode.from_tensor(t.detach())
                 for i, t in enumerate(map(local, inputs))]
        module = as_calls(step, fakes, mode)
    return module, trained, specs, lying


def _lying(gradient: Any, parameter: Any) -> Any:
    """How a gradient lies, if not as its parameter does."""
    if local(gradient) is gradient or gradient.placements == parameter.placements:
        return None
    return gradient._spec


def _as_parameter(gradient: Any, parameter: Any) -> Any:
    """A gradient that lies as its parameter does. (Sums that DTensor has left to whoever reads the
    gradient, which is the optimizer, are made here.)"""
    if _lying(gradient, parameter) is None:
        return gradient
    return gradient.redistribute(placements=parameter.placements)


def as_calls(step: Any, fakes: Any, mode: Any) -> torch.fx.GraphModule:
    """The calls of ATen that step(*fakes) makes, fake tensors of `mode`."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(untraced_shapes())
        for op in WHOLE:
            stack.enter_context(mock.patch.object(op, "decompose", lambda *_, **__: NotImplemented))
        module: torch.fx.GraphModule = make_fx(step, tracing_mode="real")(*fakes)
    for node in module.graph.find_nodes(op="get_attr"):
        constant = getattr(module, node.target)
        if isinstance(constant, torch.Tensor):  # copies were made of its fake tensor
            node.meta["val"] = mode.from_tensor(constant.clone())
    for node in list(module.graph.nodes):  # what serves the profiler only
        if node.op == "call_function" and getattr(node.target, "namespace", "") == "profiler":
            node.replace_all_uses_with(None)  # type: ignore[arg-type, unused-ignore]
            module.graph.erase_node(node)
    return module


def accumulated(gradients: Any, tensors: Any, results: Any) -> Any:
    """Gradients as autograd leaves them in `.grad`: laid out as their parameters among the tensors,
    in storages of their own."""
    seen, owned = {t.untyped_storage()._cdata for t in (*tensors, *results)}, []
    for i, gradient in gradients.items():
        storage = gradient.untyped_storage()
        if (storage._cdata in seen or storage.nbytes() != gradient.nbytes
                or gradient.stride() != tensors[i].stride()):
            gradient = torch.empty_like(tensors[i], dtype=gradient.dtype).copy_(gradient)
        seen.add(gradient.untyped_storage()._cdata)
        owned.append(gradient)
    return owned
