"""Values that follow from shapes alone, as positions and masks made by arange: they are computed
beside their fake tensors, so that a program that looks at them goes on as it would on a device.
Values of parameters, batches and random numbers are not known."""
from __future__ import annotations

import functools
from typing import Any, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from ..capture import draws
from ..tensors import tensors_of

LARGEST = 1 << 16  # elements of a tensor whose values are computed
MAKERS = ("arange", "zeros", "ones", "full", "eye", "linspace", "scalar_tensor", "tril_indices",
          "triu_indices", "zeros_like", "ones_like", "full_like", "new_zeros", "new_ones",
          "new_full")


class Unknown(ValueError):
    """The program needs a value that only the device would have."""


@functools.lru_cache(maxsize=None)
def _makes_tensors(func: Any) -> bool:
    returns = func._schema.returns
    return not returns or any("Tensor" in str(one.type) for one in returns)


class Known(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Computes what is known, for all tensors that are made inside."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn = 0  # ops that have drawn random numbers
        self._values: dict[int, Any] = {}  # by storages of fake tensors
        self._storages: list[Any] = []  # keeps them: a number stands for one storage

    def value_of(self, tensor: Any) -> Optional[Any]:
        """A tensor with the value of a fake one, or None."""
        storage = self._values.get(tensor.untyped_storage()._cdata)
        if storage is None:
            return None
        return torch.empty(0, dtype=tensor.dtype).set_(storage, tensor.storage_offset(),
                                                       tensor.shape, tensor.stride())

    def knows(self, tensor: Any) -> bool:
        return tensor.untyped_storage()._cdata in self._values

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = tensors_of((args, kwargs))
        literal = func is torch.ops.aten.lift_fresh.default or \
            func is torch.ops.aten.lift_fresh_copy.default
        known = literal or all(map(self.knows, given)) and (
            bool(given) or func._schema.name.split("::")[1] in MAKERS)
        if given and not _makes_tensors(func):
            if known:
                return self._computed(func, args, kwargs)
            if func in (torch.ops.aten._local_scalar_dense.default, torch.ops.aten.equal.default,
                        torch.ops.aten.is_nonzero.default):
                raise Unknown("the value of a tensor is needed on the host (.item(), or control "
                              "flow that depends on it)")
        result = func(*args, **kwargs)
        random = torch.Tag.nondeterministic_seeded in func.tags
        self.drawn += random and draws(func, args, kwargs)
        if known and not random:
            self._learn(func, args, kwargs, result, literal)
        elif func._schema.is_mutable:
            for tensor in given:  # nearly always one: the others are forgotten for nothing
                self._values.pop(tensor.untyped_storage()._cdata, None)
        return result

    def _learn(self, func: Any, args: Any, kwargs: Any, result: Any, literal: bool) -> None:
        made = tensors_of(result)
        new = [t for t in made if not self.knows(t)]
        if func.is_view and not literal or any(t.numel() > LARGEST for t in made):
            return
        if not new and not func._schema.is_mutable:
            return
        try:
            if literal:
                with _disable_current_modes():
                    values = [t.detach().clone() for t in tensors_of(args)
                              if not isinstance(t, FakeTensor)]
            else:
                values = tensors_of(self._computed(func, args, kwargs))
        except Exception:  # pylint: disable=broad-except
            values = []  # an op that the host cannot compute
        for fake, value in zip(made, values):
            if fake.stride() == value.stride() and fake.dtype == value.dtype and \
                    fake.untyped_storage().nbytes() == value.untyped_storage().nbytes():
                storage = fake.untyped_storage()
                self._storages.append(storage)
                self._values[storage._cdata] = value.untyped_storage()

    def _computed(self, func: Any, args: Any, kwargs: Any) -> Any:
        def real(value: Any) -> Any:
            if isinstance(value, torch.Tensor):
                return self.value_of(value)
            return torch.device("cpu") if isinstance(value, torch.device) else value

        with _disable_current_modes():
            args, kwargs = pytree.tree_map(real, (args, kwargs))
            return func(*args, **kwargs)
