"""Functional collectives (torch.ops._c10d_functional) of a captured step: which calls they are, and
how they run from and to planned places. They are called through the process group, and waited for in
the op: what is alive is what the plan says."""
from __future__ import annotations

import re
from typing import Any, Optional

import torch
import torch.distributed as dist
from torch.utils._python_dispatch import TorchDispatchMode

from .kernel import Kernel

try:  # PyTorch without collectives has none of them
    from torch.distributed import _functional_collectives as _meta  # noqa: F401 pylint: disable=unused-import
    from torch.distributed.distributed_c10d import (
        AllgatherOptions, AllreduceCoalescedOptions, AllreduceOptions, AllToAllOptions,
        BroadcastOptions, ReduceScatterOptions, _resolve_process_group)
    WAIT: Any = torch.ops._c10d_functional.wait_tensor.default
except (ImportError, AttributeError):
    WAIT = None

SPACES = ("_c10d_functional", "_dtensor")
OTHERS = ("c10d", "c10d_functional", "symm_mem")  # what communicates and is not planned
PLANNED = ("all_gather_into_tensor", "all_gather_into_tensor_coalesced", "reduce_scatter_tensor",
           "reduce_scatter_tensor_coalesced", "all_reduce", "all_reduce_coalesced", "broadcast",
           "all_to_all_single", "shard_dim_alltoall")


def is_wait(target: Any) -> bool:
    """Its result is what it is given, once that is there."""
    return WAIT is not None and target is WAIT


class Collective(Kernel):
    """A collective of tensors of one device, which is no call of PyTorch's."""

    def __init__(self, name: str, group: str) -> None:
        super().__init__(name)
        self._schema.name, self.group_name = f"c10d::{name}", group
        self.call = self.alone

    def alone(self, *given: Any) -> Any:
        """Results as of a collective, made of what this rank has."""
        raise NotImplementedError

    def start(self, group: Any, given: Any, outs: Any) -> Any:
        """From and to where tensors lie: (work, what is left to do then or None)."""
        raise NotImplementedError

    def received(self, ranks: int, given: int, made: int) -> int:
        """Bytes from other ranks, of those that it reads and those that it makes."""
        raise NotImplementedError


def is_collective(target: Any) -> bool:
    if isinstance(target, Collective):
        return True
    return getattr(target, "namespace", "") in SPACES and not is_wait(target)


def _name(target: Any) -> str:
    return str(target._schema.name).split("::")[-1]


def refusal(target: Any) -> str:
    """Why a step that makes this call is not planned, or "". A receive of _c10d_functional writes
    what it is given, which its schema does not say, and a send makes nothing; and a rank that waits
    for a send before it receives may wait for ever."""
    space = getattr(target, "namespace", "")
    if space in OTHERS:
        return f"it communicates by {target}, which is no functional collective"
    name = re.sub("_(out)?$", "", _name(target)) if space in SPACES else ""
    if not name or name in PLANNED or is_wait(target) or name.startswith("_wrap"):
        return ""
    return f"it communicates by {target}: sends and receives of single ranks are not planned"


def group_of(target: Any, args: Any, kwargs: Any) -> str:
    """The name of the communicator."""
    if isinstance(target, Collective):
        return target.group_name
    for position, argument in enumerate(target._schema.arguments):
        if argument.name == "group_name":
            given = args[position] if position < len(args) else kwargs.get(argument.name)
            return str(given)
    return ""


def may_communicate() -> Any:
    """Has the program a process group of several ranks?"""
    return dist.is_available() and dist.is_initialized() and dist.get_world_size() > 1


class Refusing(TorchDispatchMode):  # type: ignore[misc, unused-ignore]
    """Inside what communicates raises ValueError: the ranks of a step do not agree on it. why: given
    a name, what to say."""

    def __init__(self, why: Any) -> None:
        super().__init__()
        self._why = why

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if any(hasattr(kind, "_local_tensor") or kind.__name__ == "DTensor" for kind in types):
            return NotImplemented  # a DTensor's own ops come next
        if getattr(func, "namespace", "") in (*OTHERS, *SPACES) and not is_wait(func):
            raise ValueError(self._why(_name(func)))
        return func(*args, **(kwargs or {}))


def ranks_of(op: Any) -> set[int]:
    """Those that a collective meets."""
    if not op.group:
        return set()
    return set(dist.get_process_group_ranks(_resolve_process_group(op.group)))


def meeting(lowered: Any) -> str:
    """The name of an op that waits for other ranks, or ""."""
    return next((op.kind for op in lowered.ops
                 if op.group and op.node and _resolve_process_group(op.group).size() > 1), "")


def divide(lowered: Any, streams: Any) -> Any:
    """Gives collectives streams of their own, one for each communicator; returns all streams."""
    streams, numbers = list(streams), {}
    for op in lowered.ops:
        if op.group and op.stream == 0:
            if op.group not in numbers:
                numbers[op.group] = len(streams)
                streams.append(f"communication{len(numbers)}")
            op.stream = numbers[op.group]
    lowered.communication = [*lowered.communication, *numbers.values()]
    return streams


class Wire:
    """What a step's collectives do beside communicating; a step of several ranks that agree has one
    of its own (agreement.py)."""

    def wait(self, work: Any, op: str) -> None:
        """Until `work`, of the op of that name, is done."""
        work.wait()

    def failed(self, error: BaseException) -> None:
        """This rank has left a step in the middle: the others need not wait for it."""

    def unwatched(self) -> None:
        """A collective has begun whose end the host does not wait for."""

    def goes_on(self) -> None:
        """This rank begins something new, though the last step may have failed."""


def stand_in(target: Any, args: Any, kwargs: Any, value: Any) -> Any:
    """What a rank alone makes in the place of a collective, to go on with: results of the same
    types and sizes, from what it has itself. value: fake results."""
    if isinstance(target, Collective):
        return target(*args)
    name, given = _name(target), args[0]

    def one(tensor: Any, fake: Any) -> Any:
        flat = tensor.detach().reshape(-1)
        if fake.numel() > flat.numel() and flat.numel():
            flat = flat.repeat(-(-fake.numel() // flat.numel()))
        elif fake.numel() and not flat.numel():
            flat = flat.new_ones(fake.numel())
        return flat[:fake.numel()].clone().view(fake.shape)

    if name.endswith("_") or target._schema.arguments[0].alias_info is not None:
        return given
    if isinstance(value, (list, tuple)):
        return [one(tensor, fake) for tensor, fake in zip(given, value)]
    return one(given, value)


_OPS = {"sum": "SUM", "avg": "AVG", "max": "MAX", "min": "MIN", "product": "PRODUCT",
        "band": "BAND", "bor": "BOR", "bxor": "BXOR"}


def _reduction(text: str, options: Any) -> Any:
    options.reduceOp = getattr(dist.ReduceOp, _OPS[text.lower()])
    return options


def _is_gloo(group: Any, device: Any) -> bool:
    try:
        return "gloo" in type(group._get_backend(device)).__name__.lower()
    except RuntimeError:
        return False


def reduced(group: Any, outs: Any, given: Any, text: str, scattered: bool = True) -> Any:
    """Starts the reduction of several tensors, each from and to its place. As FSDP2 does it, gloo does
    it by one buffer in which each rank's part lies back to back: it sums in an order that depends on
    where a number lies, and all of it on every rank. (Gloo's own reduction that scatters does the
    same, and waits without looking at the time.)"""
    outs = list(outs)
    if not _is_gloo(group, outs[0].device):
        if scattered:
            options = _reduction(text, ReduceScatterOptions())
            flat = [tensor.reshape(-1) for tensor in given]
            return group.reduce_scatter_tensor_coalesced(outs, flat, options), None
        for out, tensor in zip(outs, given):
            out.copy_(tensor)
        return group.allreduce_coalesced(outs, _reduction(text, AllreduceCoalescedOptions())), None
    world = group.size() if scattered else 1
    whole = torch.cat([tensor.reshape(world, -1) for tensor in given], 1)
    work = group.allreduce([whole], _reduction(text, AllreduceOptions()))

    def done() -> None:
        mine = whole[group.rank() if scattered else 0]
        for out, part in zip(outs, mine.split([out.numel() for out in outs])):
            out.copy_(part.view(out.shape))

    return work, done


def _start(name: str, group: Any, args: Any, outs: Any) -> Any:
    """(work, what is left to do then or None) of a collective. outs: the places of its fresh results."""
    given = args[0]
    several = isinstance(given, (list, tuple))
    if name.endswith("_out"):
        return _into(args[-1], outs, _start(name[:-len("_out")], group, args, [args[-1]]))
    if name.endswith("_"):
        name, outs = name[:-1], given if several else [given]
    if name == "all_gather_into_tensor_coalesced":
        return group.allgather_into_tensor_coalesced(outs, list(given)), None
    if name == "all_gather_into_tensor":
        if given.is_complex():
            given, outs = torch.view_as_real(given.resolve_conj()), [torch.view_as_real(outs[0])]
        return group._allgather_base(outs[0], given, AllgatherOptions()), None
    if name.startswith("reduce_scatter_tensor"):
        return reduced(group, outs, given if several else [given], args[1])
    if name == "all_reduce_coalesced":
        return reduced(group, outs, given, args[1], scattered=False)
    if name in ("all_reduce", "broadcast"):
        if outs[0] is not given:
            outs[0].copy_(given)
        if name == "all_reduce":
            return group.allreduce(list(outs), _reduction(args[1], AllreduceOptions())), None
        options = BroadcastOptions()
        options.rootRank = args[1]
        return group.broadcast(list(outs), options), None
    if name == "all_to_all_single":
        return group.alltoall_base(outs[0], given, list(args[1]), list(args[2]),
                                   AllToAllOptions()), None
    return _divided_otherwise(group, given, args[1], args[2], outs[0])


def _divided_otherwise(group: Any, given: Any, whole: int, divided: int, out: Any) -> Any:
    """As `_start`, of dimensions of a tensor: the first one is whole then, the second one divided."""
    sent = given.unflatten(divided, (group.size(), -1)).movedim(divided, 0).contiguous()
    got = torch.empty_like(sent)

    def done() -> None:
        out.copy_(got.movedim(0, whole).reshape(out.shape))

    return group.alltoall_base(got, sent, [], [], AllToAllOptions()), done


def _into(out: Any, results: Any, started: Any) -> Any:
    """As `started`, of a collective into the tensor `out`. In a trace what it returns is another
    tensor, which has a place of its own: it becomes equal."""
    if not results:
        return started
    work, done = started

    def copied() -> None:
        if done:
            done()
        results[0].copy_(out)

    return work, copied


def received(lowered: Any, op: Any) -> int:
    """Bytes of a collective that come from other ranks."""
    if op.node is None:
        return 0
    name, world = _name(op.node.target), _resolve_process_group(op.group).size()
    given, made = (sum(lowered.storages[s].size for s in ids) for ids in (op.inputs, op.outputs))
    if isinstance(op.node.target, Collective):
        return op.node.target.received(world, given, made)
    size = given if "reduce" in name else made
    return int(size * (world - 1) // world) * (2 if name.startswith("all_reduce") else 1)


def bound(op: str, target: Any, args: Any, kwargs: Any, outs: Any, wire: Optional[Wire]) -> Any:
    """What to call for a collective, the op of that name, whose fresh results have the places `outs`."""
    group = _resolve_process_group(group_of(target, args, kwargs))
    wire, outs = wire or Wire(), list(outs)
    if isinstance(target, Collective):
        def start() -> Any:
            return target.start(group, args, outs)
    else:
        name, values = _name(target), list(args)
        values += [kwargs[argument.name] for argument in target._schema.arguments[len(values):]
                   if argument.name in kwargs]

        def start() -> Any:
            return _start(name, group, values, outs)
    first = args[0][0] if isinstance(args[0], (list, tuple)) else args[0]
    on_host = first.device.type == "cpu"  # elsewhere `wait` orders streams only

    def call() -> None:
        work, done = start()
        if on_host:
            wire.wait(work, op)
        else:
            wire.unwatched()
            work.wait()
        if done:
            done()

    return call
