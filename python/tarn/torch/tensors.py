"""Tensors and what they lie in."""
from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from unittest import mock

import torch
from torch.fx.experimental.proxy_tensor import disable_proxy_modes_tracing
from torch.utils._pytree import keystr, tree_flatten_with_path, tree_leaves


def tensors_of(value: Any) -> Any:
    return [t for t in tree_leaves(value) if isinstance(t, torch.Tensor)]


def local(tensor: Any) -> Any:
    """This rank's part of a DTensor; any other tensor itself."""
    return getattr(tensor, "_local_tensor", tensor)


def as_part(part: Any, like: Any) -> Any:
    """A DTensor whose part on this rank is `part`, laid out as the DTensor `like`; for any other
    tensor `part` itself."""
    return part if local(like) is like else dtensor(part, like._spec)


def dtensor(part: Any, spec: Any) -> Any:
    """The DTensor whose part on this rank is `part`."""
    from torch.distributed.tensor import DTensor  # pylint: disable=import-outside-toplevel
    return DTensor(part, spec, requires_grad=False)


def as_gradient(parameter: Any, gradient: Any, spec: Any = None) -> Any:
    """What a parameter takes as `.grad`: a DTensor if it is one, whose part on this rank is given.
    spec: how it lies, if not as the parameter does."""
    return as_part(gradient, parameter) if spec is None else dtensor(gradient, spec)


def flat(results: Any) -> Any:
    """Tensors and None of what a call has returned."""
    results = results if isinstance(results, (tuple, list)) else (results,)
    if all(t is None or isinstance(t, torch.Tensor) for t in results):
        return results
    return [t for t in tree_leaves(results) if t is None or isinstance(t, torch.Tensor)]


def flattener(like: Any) -> Callable[[Any], Sequence[Any]]:
    """What returns `flat(results)` for results that are nested as `like` is, without a look at their
    types, which takes a hundredth of a millisecond."""
    paths = [keystr(path) for path, leaf in tree_flatten_with_path(like)[0]
             if leaf is None or isinstance(leaf, torch.Tensor)]
    found: Callable[[Any], Sequence[Any]] = eval(  # pylint: disable=eval-used
        f"lambda results: ({''.join(f'results{path}, ' for path in paths)})")
    return found


def has_bytes(tensor: Any) -> Any:
    return tensor.untyped_storage().nbytes() > 0


def empty_as(tensor: Any, device: Any = None) -> Any:
    """Of its type, shape and strides."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype,
                               device=device or tensor.device)


def view_of(storage: Any, like: Any, start: Any) -> Any:
    """A tensor on a storage, with type, shape, strides and conjugation of another one."""
    made = torch.empty(0, dtype=like.dtype, device=storage.device).set_(
        storage, start + like.storage_offset(), like.shape, like.stride())
    made = made.conj() if like.is_conj() else made
    return made._neg_view() if like.is_neg() else made


def distance(one: Any, other: Any) -> Any:
    """How many bytes the first one begins later than the other one in its storage."""
    return (one.storage_offset() * one.element_size()
            - other.storage_offset() * other.element_size())


@contextlib.contextmanager
def untraced_shapes() -> Iterator[None]:
    """Inside, the calls by which a DTensor learns the shapes of its results are not traced. (PyTorch
    2.15 does this itself.)"""
    module = sys.modules.get("torch.distributed.tensor._sharding_prop")
    propagator: Any = getattr(module, "ShardingPropagator", None)
    own = getattr(propagator, "_propagate_tensor_meta_non_cached", None)
    if own is None:
        yield
        return

    def asked(self: Any, schema: Any) -> Any:
        with disable_proxy_modes_tracing():
            return own(self, schema)

    with mock.patch.object(propagator, "_propagate_tensor_meta_non_cached", asked):
        yield
