"""What fully_shard (FSDP2) has made of a model, and the model as it would be without it: parameters
of their whole size that have no bytes, modules of their own classes, no hooks that gather."""
from __future__ import annotations

import contextlib
from typing import Any, Iterator, NamedTuple, Optional

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..tensors import dtensor, local


class Refused(Exception):
    """What planned steps cannot do yet; the step runs as FSDP2 does."""


def cast(dtype: Any, values: Any) -> Any:
    """As FSDP2 casts what goes into a module and comes out of it."""
    return pytree.tree_map_only(
        torch.Tensor, lambda t: t.to(dtype) if t.is_floating_point() and t.dtype != dtype else t,
        values)


class Shard:
    """A parameter of which this rank has a part."""

    def __init__(self, found: Any) -> None:
        """found: the FSDPParam."""
        self._found = found
        mesh, place = found.mesh_info, found.fsdp_placement
        self.world = mesh.shard_mesh_size
        if found.offload_to_cpu:
            raise Refused("parameters are offloaded to the host")
        if hasattr(local(found.sharded_param), "fsdp_pre_all_gather"):
            raise Refused("a parameter is gathered by an extension (fsdp_pre_all_gather)")
        if getattr(found, "_has_sharded_grad_dtype_override", False):
            raise Refused("a parameter has a grad_dtype of its own")
        self.dimension = place.dim
        self.size = found._orig_size
        self.dtype = found.param_dtype or found.orig_dtype  # as it computes
        self.part = found.padded_sharded_param_size.numel()  # of each rank, padded
        self.own_size = found.sharded_size
        whole = _without_bytes(self.size, self.dtype, found.device)
        self.inner = _inner_spec(found) if getattr(found, "is_dtensor", False) else None
        self.stand_in = nn.Parameter(dtensor(whole, self.inner) if self.inner else whole,
                                     requires_grad=self.parameter.requires_grad)

    @property
    def parameter(self) -> Any:
        """The DTensor that the optimizer has."""
        return self._found.sharded_param

    @property
    def data(self) -> Any:
        """The bytes of this rank's part, padded, in one dimension."""
        return self._found._sharded_param_data

    @property
    def grad_dtype(self) -> Any:
        """The type in which FSDP2 reduces the gradient since PyTorch 2.15; None: before that."""
        return getattr(self._found, "unsharded_grad_dtype", None)

    def is_in(self, others: Any) -> bool:
        """Is it one of these FSDPParams?"""
        return any(other is self._found for other in others)

    @property
    def name(self) -> str:
        return str(self._found._param_fqn or self._found._module_info.param_name)

    def holders(self) -> Iterator[tuple[Any, str]]:
        """The modules that have it, and its names there."""
        info = self._found._module_info
        yield info.module, info.param_name
        yield from zip(info.shared_modules, info.shared_param_names)


def _inner_spec(found: Any) -> Any:
    """How a parameter lies that is a DTensor of another mesh (tensor parallelism), too, when FSDP2
    has gathered it."""
    spec = getattr(found, "_unsharded_dtensor_spec", None) or getattr(found, "_tp_spec", None)
    if spec is None:
        raise Refused("a parameter is a DTensor of another mesh beside FSDP's")
    meta = spec.tensor_meta
    dtype = found.param_dtype or found.orig_dtype
    return type(spec)(spec.mesh, spec.placements, tensor_meta=type(meta)(
        meta.shape, meta.stride, dtype))


def _without_bytes(size: Any, dtype: Any, device: Any) -> Any:
    tensor = torch.empty(size, dtype=dtype, device=device)
    tensor.untyped_storage().resize_(0)
    return tensor


class Reduction(NamedTuple):
    """How FSDP2 makes the mean of a unit's gradients: divided before, reduced by an op, over the
    group of shards and then over that of replicas, divided after."""
    dtype: Any  # None: as the gradients are
    before: Optional[float]
    op: str
    after: Optional[float]


def _reduction(group: Any, ranks: int) -> Reduction:
    """As _get_gradient_divide_factors of FSDP2 has it."""
    if group.gradient_divide_factor is not None:
        raise Refused("set_gradient_divide_factor is in use")
    first = next((p for p in group.fsdp_params if p.sharded_param.requires_grad),
                 group.fsdp_params[0])
    dtype = group._reduce_dtype or getattr(first, "unsharded_grad_dtype", None)
    given = dtype or first.param_dtype or first.orig_dtype
    narrow = given not in (torch.float32, torch.bfloat16)
    if not narrow and not group.force_sum_reduction_for_comms:
        return Reduction(dtype, None, "avg" if ranks > 1 else "sum", None)
    if not narrow:
        return Reduction(dtype, None, "sum", float(ranks))
    before = 1
    while ranks % before == 0 and ranks / before > before:
        before *= 2
    return Reduction(dtype, float(before), "sum", ranks / before)


class Unit:
    """What FSDP2 gathers as one, and reduces as one."""

    def __init__(self, name: str, group: Any) -> None:
        mesh = group.mesh_info
        self.name, self._group = name, group
        shards = getattr(mesh, "shard_process_group", None)
        if shards is None:
            raise Refused("the mesh replicates and does not shard")
        self.ranks, self.process_group = shards.size(), shards
        replicas = getattr(mesh, "replicate_process_group", None)
        self.replicas = replicas if replicas is not None and replicas.size() > 1 else None
        ranks = self.ranks * (self.replicas.size() if self.replicas else 1)
        if group._all_reduce_hook is not None:
            raise Refused("there is an all-reduce hook")
        if type(group._all_gather_comm).__name__ not in ("DefaultAllGather",) or type(
                group._reduce_scatter_comm).__name__ not in ("DefaultReduceScatter",):
            raise Refused("the model communicates by a collective of its own")
        self.shards = [Shard(found) for found in group.fsdp_params]
        self.reduction = _reduction(group, ranks)

    def check(self) -> None:
        """Raises Refused where FSDP2 would do something else this time."""
        if not (self._group.reduce_grads and self._group.all_reduce_grads
                and self._group.reshard_after_backward):
            raise Refused("gradients are not reduced in this step")
        if self._group._partial_reduce_output is not None:
            raise Refused("gradients of another backward pass wait for their reduction")

    def grad_dtypes(self) -> dict[int, Any]:
        """By the id of a stand-in, the type to which FSDP2 has the gradient of each use cast before they
        are summed up: that of the reduction, since PyTorch 2.15, unless it is a wider one, to which
        the sum is cast (None)."""
        wider = getattr(self._group, "_fsdp_params_with_wider_grad_dtype", ())
        return {id(shard.stand_in): None if shard.is_in(wider) else shard.grad_dtype
                for shard in self.shards if shard.grad_dtype is not None}

    def reshard(self) -> None:
        """Where an evaluation has left it gathered."""
        if not self._group.is_sharded:
            self._group._to_sharded()


class _Together(torch.autograd.Function):  # type: ignore[misc, unused-ignore]
    """What goes into a module, as one node: the gradient of each is summed up inside before it is
    added to others, as FSDP2's hook has it."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:  # pylint: disable=arguments-differ,unused-argument
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:  # pylint: disable=arguments-differ,unused-argument
        return gradients


class _Entering:
    """A module's hook in the place of FSDP2's: casts what goes in, if there is a type for that."""

    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, _module: Any, args: Any, kwargs: Any) -> Any:
        if self.dtype is not None:
            args, kwargs = cast(self.dtype, args), cast(self.dtype, kwargs)
        leaves, spec = pytree.tree_flatten((args, kwargs))
        places = [i for i, t in enumerate(leaves) if isinstance(t, torch.Tensor) and t.requires_grad]
        if not places or not torch.is_grad_enabled():
            return args, kwargs
        for place, made in zip(places, _Together.apply(*[leaves[i] for i in places])):
            leaves[place] = made
        return pytree.tree_unflatten(leaves, spec)


class _CastingOut:
    def __init__(self, dtype: Any) -> None:
        self.dtype = dtype

    def __call__(self, _module: Any, _args: Any, output: Any) -> Any:
        return cast(self.dtype, output)


MARKS = ("_is_fsdp_managed_module", "_fsdp_use_orig_params")  # for Dynamo


class Whole:
    """The units of a model, and the way from its form as FSDP2 has it to the one without it, and
    back."""

    def __init__(self, model: nn.Module) -> None:
        self.model = model
        self.units: list[Unit] = []
        self._states: list[tuple[nn.Module, Any, Any, Any]] = []  # and hooks in the place of its own
        self._is_whole = False
        for module in model.modules():
            state = _state_of(module)
            if state is not None and state._is_root is None:
                state._lazy_init()
        names = {module: name for name, module in model.named_modules()}
        for module, name in names.items():
            state = _state_of(module)
            if state is None:
                continue
            if len(getattr(state, "_modules", (module,))) > 1:
                raise Refused("a unit is made of several modules")
            self.units += [Unit(name, group) for group in _groups_of(state)]
            policy = state._mp_policy
            self._states.append((
                module, state,
                _Entering(policy.param_dtype if policy.cast_forward_inputs else None),
                _CastingOut(policy.output_dtype) if policy.output_dtype else None))
        if not self.units:
            raise Refused("fully_shard has wrapped no module of the model")
        self.shards = [shard for unit in self.units for shard in unit.shards]
        self._stand_ins = {id(shard.stand_in): shard for shard in self.shards}

    def shard(self, tensor: Any) -> Optional[Shard]:
        """Whose stand-in it is."""
        return self._stand_ins.get(id(tensor))

    def check(self) -> None:
        for unit in self.units:
            unit.check()

    @contextlib.contextmanager
    def whole(self) -> Iterator[None]:
        """Inside the model is as without FSDP2."""
        if self._is_whole:
            yield
            return
        for unit in self.units:
            unit.reshard()
        saved = [self._leave(*state) for state in self._states]
        marked = [(vars(module), mark, vars(module).pop(mark)) for module in self.model.modules()
                  for mark in MARKS if mark in vars(module)]
        held = []
        for shard in self.shards:
            wanted = shard.parameter.requires_grad
            if shard.stand_in.requires_grad != wanted:
                shard.stand_in.requires_grad_(wanted)
            for module, name in shard.holders():
                held.append((module._parameters, name, module._parameters[name]))
                module._parameters[name] = shard.stand_in
        self._is_whole = True
        try:
            yield
        finally:
            self._is_whole = False
            for where, name, value in held:
                where[name] = value
            for where, mark, value in marked:
                where[mark] = value
            for module, own, hooks in saved:
                module.__class__ = own
                for where, entries in hooks:
                    where.clear()
                    where.update(entries)

    def _leave(self, module: nn.Module, state: Any, entering: Any, casting_out: Any) -> Any:
        before, after = state._pre_forward_hook_handle.id, state._post_forward_hook_handle.id
        dicts = (module._forward_pre_hooks, module._forward_pre_hooks_with_kwargs,
                 module._forward_hooks, module._forward_hooks_with_kwargs,
                 module._forward_hooks_always_called)
        hooks = [(where, dict(where)) for where in dicts]
        for where, entries in hooks:
            where.clear()
            for key, value in entries.items():
                if key == before and where is module._forward_pre_hooks:
                    where[key] = entering
                elif key == after and where is module._forward_hooks:
                    if casting_out:
                        where[key] = casting_out
                else:
                    where[key] = value
        own = type(module)
        module.__class__ = own.__mro__[2]  # before fully_shard: (FSDPX, FSDPModule, X)
        return module, own, hooks


def _state_of(module: nn.Module) -> Any:
    get = getattr(module, "_get_fsdp_state", None)
    return get() if get else None


def _groups_of(state: Any) -> Any:
    groups = getattr(state, "_fsdp_param_groups", None)
    if groups is None:
        groups = [state._fsdp_param_group] if state._fsdp_param_group else []
    return groups
