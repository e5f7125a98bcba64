"""A step as calls of ATen, without TorchDynamo and without the device: the program itself runs, on
fake tensors. (tarn.torch.step traces with TorchDynamo first, because it must know when a trace no
longer holds; the calls are the same.)"""
from __future__ import annotations

import contextlib
import re
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
import torch.utils.checkpoint
from torch._dynamo import config
from torch._subclasses.fake_tensor import (DataDependentOutputException,
                                           DynamicOutputShapeException, FakeTensor)
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.nn.utils import stateless
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

from ..capture import Captured, accumulated, as_calls
from ..tensors import tensors_of
from ..tracing import detached, loss_in
from ..updates import of_optimizer
from .backward import Hooks, gradients
from .known import Known, Unknown


AGAIN = ("the backward pass draws random numbers again, as checkpoints with dropout do; the plan "
         "has it so, but tarn.torch.step keeps what was drawn, so that its arena without a budget "
         "is that of a step without checkpoints")


class Refused(ValueError):
    """The step cannot be estimated; the text says why, and what to do."""


class Inputs:
    """The tensors that the step takes: `given` as they are, `fakes` for them on the device."""

    def __init__(self, model: Any, optimizer: Any, batch: Any, mode: Any, device: Any) -> None:
        self.names: dict[int, list[str]] = {}  # by id: a tensor may have several
        self.given: list[Any] = []
        self.kinds: list[tuple[str, str]] = []
        self.notes: list[str] = []  # what was seen in the capture
        named = [*model.named_parameters(remove_duplicate=False),
                 *model.named_buffers(remove_duplicate=False)]
        for name, tensor in named:
            if id(tensor) not in self.names:
                self._add(tensor, name, "parameter")
            self.names.setdefault(id(tensor), []).append(name)
        known = set(map(id, self.given))
        for number, tensor in enumerate(of_optimizer(optimizer)):
            if id(tensor) not in known:
                self._add(tensor, f"optimizer.{number}", "parameter")
                known.add(id(tensor))
        self.leaves, self.spec = pytree.tree_flatten(batch)
        for number, tensor in enumerate({id(t): t for t in tensors_of(batch)}.values()):
            if id(tensor) not in known:
                self._add(tensor, f"batch{number}", "input")
        for tensor, (name, _) in zip(self.given, self.kinds):
            if tensor.layout != torch.strided:
                raise Refused(f"{name} is {tensor.layout}: only strided tensors can be planned")
        self.fakes = self._placed(mode, device)

    def _add(self, tensor: Any, name: str, kind: str) -> None:
        self.given.append(tensor)
        self.kinds.append((name, kind))

    def _placed(self, mode: Any, device: Any) -> list[Any]:
        """Those that share a storage share one on the device."""
        users: dict[int, int] = {}
        for tensor in self.given:
            key = tensor.untyped_storage()._cdata
            users[key] = users.get(key, 0) + 1
        bases: dict[int, Any] = {}
        made = []
        with mode:
            for tensor in self.given:
                storage = tensor.untyped_storage()
                if users[storage._cdata] == 1:
                    made.append(torch.empty_strided(tensor.shape, tensor.stride(),
                                                    dtype=tensor.dtype, device=device))
                    continue
                if storage._cdata not in bases:
                    bases[storage._cdata] = torch.empty(storage.nbytes(), dtype=torch.uint8,
                                                        device=device)
                whole = bases[storage._cdata]
                whole = whole[:len(whole) // tensor.element_size() * tensor.element_size()]
                made.append(whole.view(tensor.dtype).as_strided(
                    tensor.shape, tensor.stride(), tensor.storage_offset()))
        return made


class _Placed(TorchFunctionMode):  # type: ignore[misc, unused-ignore]
    """Tensors that the program holds elsewhere (a table in a closure, a module that is not part of
    the model) stand on the device, too; so do the model's own ones where they are not replaced."""

    def __init__(self, fakes: dict[int, Any], mode: Any, device: Any) -> None:
        """fakes: by the ids of tensors."""
        super().__init__()
        self._fakes, self._mode, self._device = fakes, mode, device
        self._kept: list[Any] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        leaves = pytree.tree_leaves((args, kwargs))
        if any(isinstance(leaf, torch.Tensor) and not isinstance(leaf, FakeTensor)
               for leaf in leaves):
            args, kwargs = pytree.tree_map_only(torch.Tensor, self._placed, (args, kwargs))
        return func(*args, **kwargs)

    def _placed(self, tensor: Any) -> Any:
        if isinstance(tensor, FakeTensor):
            return tensor
        if id(tensor) not in self._fakes:
            if tensor.requires_grad and tensor.is_leaf:
                raise Refused("a tensor requires a gradient, and is no parameter of the model or "
                              "the optimizer: freeze it with requires_grad_(False)")
            with disable_proxy_modes_tracing(), self._mode:
                self._fakes[id(tensor)] = torch.empty_strided(
                    tensor.shape, tensor.stride(), dtype=tensor.dtype, device=self._device)
            self._kept.append(tensor)
        return self._fakes[id(tensor)]


# ---- What the program may not do ----

def _refuses(text: str) -> Any:
    def refuse(*_args: Any, **_kwargs: Any) -> Any:
        raise Refused(text)

    return refuse


class _Reentrant:
    apply = staticmethod(_refuses("checkpoint with use_reentrant=True runs a backward pass of its "
                                  "own: pass use_reentrant=False"))


@contextlib.contextmanager
def _refused(on_gpu: bool) -> Iterator[None]:
    own = ("the loss runs a backward pass itself (a gradient penalty, or accumulation): return the "
           "loss, for example the sum over the parts of a batch")
    names: dict[str, Any] = {"torch.Tensor.backward": _refuses(own),
                             "torch.autograd.backward": _refuses(own),
                             "torch.utils.checkpoint.CheckpointFunction": _Reentrant}
    if on_gpu:
        names["torch.autograd.grad"] = _refuses(own)
    with contextlib.ExitStack() as stack:
        for name, replaced in names.items():
            stack.enter_context(mock.patch(name, replaced))
        yield


def check(model: Any, optimizer: Any) -> None:
    """Raises Refused if the step needs what cannot be captured."""
    for name, module in model.named_modules():
        if module._backward_hooks or module._backward_pre_hooks:
            raise Refused(f"module {name or type(module).__name__} has backward hooks: remove them "
                          "or register hooks on tensors")
    if isinstance(optimizer, torch.optim.LBFGS):
        raise Refused("LBFGS calls the loss itself, several times in a step")


# ---- Capture ----

def _whether_fake(known: Known) -> Any:
    """What libraries ask before they look at the values of a tensor. Values that are known may be
    looked at."""
    class Meta(type):
        def __instancecheck__(cls, tensor: Any) -> bool:
            return isinstance(tensor, FakeTensor) and not known.knows(tensor)

    return mock.patch.object(torch._subclasses, "FakeTensor", Meta("FakeTensor", (), {}))


def _unpacked(tensor: Any) -> Any:
    """Tensor.__iter__ as TorchDynamo traces it; eager execution calls unbind."""
    return iter([tensor[i] for i in range(len(tensor))])


@contextlib.contextmanager
def _unchanged(model: Any) -> Iterator[None]:
    """What the program writes to attributes of modules is undone."""
    kept = [(module, dict(vars(module))) for module in model.modules()]
    try:
        yield
    finally:
        for module, attributes in kept:
            vars(module).clear()
            vars(module).update(attributes)


def capture(model: Any, loss_fn: Any, inputs: Inputs, mode: Any, device: torch.device) -> Captured:
    """Forward and backward pass. Raises Refused with a reason."""
    trained: list[int] = []
    counts: list[int] = []
    hooks, known = Hooks(), Known()
    on_gpu = device.type == "cuda"

    def step(*tensors: Any) -> Any:
        given = inputs.given
        own = [t.detach().requires_grad_(g.requires_grad) for t, g in zip(tensors, given)]
        fakes = {id(g): t for g, t in zip(given, own)}
        named = {name: fakes[id(g)] for g in given for name in inputs.names.get(id(g), ())}
        batch = [fakes[id(leaf)] if isinstance(leaf, torch.Tensor) else leaf
                 for leaf in inputs.leaves]
        with torch.enable_grad(), stateless._reparametrize_module(model, named), \
                _Placed(fakes, mode, device), known, _whether_fake(known), hooks.recorded(), \
                mock.patch.object(torch.Tensor, "__iter__", _unpacked):
            with _refused(on_gpu):
                results = loss_fn(model, *pytree.tree_unflatten(batch, inputs.spec))
                loss = loss_in(results)
                if loss.numel() != 1:
                    raise Refused(f"the loss has the shape {tuple(loss.shape)}: it is not a scalar")
                forward = known.drawn
                wanted = [i for i, t in enumerate(own) if t.requires_grad]
                leaves = [own[i] for i in wanted]
                if on_gpu:
                    made = gradients(loss, leaves, hooks)
            if not on_gpu:
                made = torch.autograd.grad(loss, leaves, allow_unused=True)
        if known.drawn > forward:
            inputs.notes.append(AGAIN)
        found = {i: gradient for i, gradient in zip(wanted, made) if gradient is not None}
        trained.extend(found)
        kept = loss.untyped_storage()._cdata
        others = [t for t in tensors_of(detached(results)) if t.untyped_storage()._cdata != kept]
        counts.append(1 + len(others))
        returned = [loss.detach(), *others]
        return returned + accumulated(found, tensors, returned)

    with mode, _unchanged(model), torch.compiler.set_stance("force_eager"), \
            config.patch(error_on_nested_fx_trace=False):  # models that are compiled run eagerly
        module = as_calls(step, inputs.fakes, mode)
    return Captured(module, inputs.kinds, counts[-1], trained)


def reason(error: BaseException) -> str:
    """Why a step cannot be estimated, and where in the program."""
    if isinstance(error, (Refused, Unknown)):
        text = str(error)
    elif isinstance(error, DataDependentOutputException):
        text = f"the value of a tensor is needed on the host, by {error.func}"
    elif isinstance(error, DynamicOutputShapeException):
        text = f"a shape depends on data: that of {error.func}"
    elif isinstance(error, RuntimeError) and re.search("(CUDA|NVIDIA) driver", str(error)):
        text = ("PyTorch asks the GPU itself here, which is not there (as for nn.LSTM, nn.GRU, "
                "ctc_loss and sparse gradients; device=\"cpu\" estimates the host's kernels)")
    else:
        text = f"the program fails on fake tensors: {type(error).__name__}: {error}"
    ours = (str(Path(torch.__file__).parent), str(Path(__file__).parents[1]))
    users = [frame for frame in traceback.extract_tb(error.__traceback__)
             if not frame.filename.startswith(ours) and Path(frame.filename).is_file()]
    place = f" ({users[-1].filename}, line {users[-1].lineno})" if users else ""
    return text + place
