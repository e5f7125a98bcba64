"""What the optimizer, clipping and hooks of parameters take: they run on fake tensors, with copies
of the optimizer's own objects."""
from __future__ import annotations

import copy
import weakref
from typing import Any, NamedTuple

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from ..memory import rounded
from ..tensors import tensors_of


class Took(NamedTuple):
    """Bytes: the most that was alive at once beyond what was there, what was read and written, and
    the sizes of the storages that are kept from then on."""
    workspace: int
    moved: int
    kept: list[int]


class _Alive(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Counts the results of operators. Values that are needed on the host are
    0.5, or 1 if they are whole numbers."""

    def __init__(self, known: Any, device: torch.device, alignment: int) -> None:
        super().__init__()
        self._seen = {t.untyped_storage()._cdata for t in known}
        self._device, self._alignment = device, alignment
        self.alive = self.most = self.moved = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func is torch.ops.aten._local_scalar_dense.default:
            kind = args[0].dtype
            return True if kind == torch.bool else 0.5 if kind.is_floating_point else 1
        result = func(*args, **kwargs or {})
        made = tensors_of(result)
        if made and func.is_view:
            return result
        touched = {id(t): t.nbytes for t in [*tensors_of((args, kwargs)), *made]}
        self.moved += sum(touched.values())
        for tensor in made:
            storage = tensor.untyped_storage()
            if tensor.device == self._device and storage._cdata not in self._seen:
                self._seen.add(storage._cdata)
                size = rounded(storage.nbytes(), self._alignment)
                self._count(storage._cdata, size)
                weakref.finalize(storage, self._count, storage._cdata, -size)
        return result

    def _count(self, key: int, size: int) -> None:
        if size < 0:
            self._seen.discard(key)
        self.alive += size
        self.most = max(self.most, self.alive)


class Optimizer:
    """The user's optimizer, for questions about it: what it and the program's functions take."""

    def __init__(self, optimizer: Any, mode: Any, device: torch.device, alignment: int) -> None:
        self.optimizer, self._mode, self._device = optimizer, mode, device
        self._alignment = alignment

    def step(self, parameters: Any) -> Took:
        """One on some of its parameters; one before it has made what the optimizer keeps."""
        with self._mode, torch.no_grad():
            own = {id(p): self._parameter(p) for p in parameters}
            fake = self._copy(own)
            for _ in range(2):
                for p in own.values():
                    p.grad = torch.empty_like(p)
                kept = [fake.state.get(p) for p in own.values()]
                alive = self._alive([*own.values(), *(p.grad for p in own.values()),
                                     *tensors_of(kept)])
                with alive:
                    fake.step()
            states = tensors_of([fake.state.get(p) for p in own.values()])
        sizes = [t.untyped_storage().nbytes() for t in states
                 if t.numel() and t.device == self._device]
        return Took(alive.most, alive.moved, sizes)

    def edit(self, function: Any, parameters: Any) -> Took:
        """What the program does to gradients: function(parameters)."""
        with self._mode:
            own = [self._parameter(p) for p in parameters]
            for p, given in zip(own, parameters):
                p.grad = torch.empty_like(p)
                p._backward_hooks = given._backward_hooks
                if given._post_accumulate_grad_hooks:
                    p._post_accumulate_grad_hooks = given._post_accumulate_grad_hooks
            alive = self._alive([*own, *(p.grad for p in own)])
            with alive:
                function(own)
        return Took(alive.most, alive.moved, [])

    def _alive(self, known: Any) -> _Alive:
        return _Alive(known, self._device, self._alignment)

    def _parameter(self, like: Any) -> Any:
        return torch.nn.Parameter(torch.empty_strided(
            like.shape, like.stride(), dtype=like.dtype, device=self._device), like.requires_grad)

    def _copy(self, own: dict[int, Any]) -> Any:
        """With those parameters in the place of the user's. What else the optimizer holds is
        copied, tensors as fake ones; so is the state that it has already (some make it from the
        start)."""
        fake = object.__new__(type(self.optimizer))
        held = {name: value for name, value in vars(self.optimizer).items()
                if name not in ("state", "param_groups", "step")}  # step: of a scheduler
        fake.__dict__.update({name: self._copied(value) for name, value in held.items()})
        fake.state = type(self.optimizer.state)(dict)
        for group in self.optimizer.param_groups:
            numbers = self._device if group.get("fused") or group.get("capturable") else "cpu"
            for p in group["params"]:
                if id(p) in own and self.optimizer.state.get(p):
                    fake.state[own[id(p)]] = self._copied(self.optimizer.state[p], numbers)
        groups = [{**{name: self._copied(value) for name, value in group.items()
                      if name != "params"},
                   "params": [own[id(p)] for p in group["params"] if id(p) in own]}
                  for group in self.optimizer.param_groups]
        fake.param_groups = [group for group in groups if group["params"]]
        return fake

    def _copied(self, value: Any, numbers: Any = "cpu") -> Any:
        """numbers: where tensors of one number lie."""
        if isinstance(value, FakeTensor):
            return value
        if isinstance(value, torch.Tensor):
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype,
                                       device=self._device if value.dim() else numbers)
        if isinstance(value, dict) and type(value) is dict:
            return {key: self._copied(one, numbers) for key, one in value.items()}
        if isinstance(value, (list, tuple)) and not pytree.tree_any(callable, value):
            return pytree.tree_map_only(torch.Tensor, self._copied, value)
        return copy.copy(value) if isinstance(value, (set, list)) else value
