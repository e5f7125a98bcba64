"""A capture of the whole model becomes one of its shards: each unit is gathered before it is first
read, by one collective from and to where its tensors lie, and its gradients are reduced and scattered
by one as soon as all of them are there. Both are calls of ATen in the captured graph; the plan decides
where they run, and which gathers run again."""
from __future__ import annotations

import operator
from typing import Any

import torch

from ..capture import Captured, mode_of
from .kernels import Cast, Gather, Pack, Reduce, Scatter

ATEN = torch.ops.aten


class Writer:
    """Adds calls to a graph, with the fake tensors that they make."""

    def __init__(self, graph: Any, mode: Any) -> None:
        self.graph, self._mode = graph, mode

    def __call__(self, name: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        node = self.graph.create_node("call_function", target, args, kwargs, name)
        fakes = torch.fx.node.map_arg((args, kwargs), lambda n: n.meta["val"])
        with self._mode:
            node.meta["val"] = target(*fakes[0], **fakes[1])
        return node

    def each(self, name: Any, target: Any, nodes: Any) -> Any:
        """Nodes of the tensors that a kernel makes."""
        made, results = self(name, target, *nodes), []
        for index, fake in enumerate(made.meta["val"]):
            item = self.graph.create_node("call_function", operator.getitem, (made, index))
            item.meta["val"] = fake
            results.append(item)
        return results


def _gather(write: Writer, unit: Any, shards: Any, flats: Any, late: Any) -> Any:
    """Nodes of the whole parameters. late: whether the backward pass reads them."""
    made: dict[Any, Any] = {}
    for dtype in dict.fromkeys(shard.dtype for shard in shards):
        some = {s: flat for s, flat in zip(shards, flats) if s.dtype == dtype}
        which = [is_late for shard, is_late in zip(shards, late) if shard.dtype == dtype]
        name, given = _name("gather", unit), list(some.values())
        if any(flat.meta["val"].dtype != dtype for flat in given):
            given = write.each(f"{name}_cast", Cast(dtype), given)
        gather = Gather(unit.ranks, unit.process_group.group_name, which)
        gathered = write.each(name, gather, given)
        made.update(zip(some, gathered))
    return [_whole(write, shard, unit.ranks, made[shard]) for shard in shards]


def _whole(write: Writer, shard: Any, ranks: int, flat: Any) -> Any:
    size = list(shard.size)
    if shard.dimension:  # parts of later dimensions lie one behind the other
        parts = [ranks, *size]
        parts[1 + shard.dimension] //= ranks
        node = write(None, ATEN.view.default, flat, parts)
        order = list(range(1, len(parts)))
        order.insert(shard.dimension, 0)
        node = write(None, ATEN.permute.default, node, order)
        node = write(None, ATEN.clone.default, node, memory_format=torch.contiguous_format)
        return write(None, ATEN.view.default, node, size)
    count = torch.Size(size).numel()
    if count < shard.part * ranks:  # the last ranks' parts are padded
        flat = write(None, ATEN.slice.Tensor, flat, 0, 0, count)
    return write(None, ATEN.view.default, flat, size)


def _scatter(write: Writer, unit: Any, shards: Any, gradients: Any) -> Any:
    """Nodes of this rank's parts of the mean of the gradients."""
    name, how, group = _name("scatter", unit), unit.reduction, unit.process_group.group_name
    fakes = [gradient.meta["val"] for gradient in gradients]
    as_they_lie = not (how.before or how.after) and all(
        not shard.dimension and fake.numel() == shard.part * unit.ranks and fake.is_contiguous()
        and fake.dtype == (how.dtype or fake.dtype) == fakes[0].dtype == shard.parameter.dtype
        for shard, fake in zip(shards, fakes))
    scatter = Scatter(unit.ranks, group, how.op)
    if as_they_lie:
        parts = write.each(name, scatter, gradients)
        return [_own(write, shard, part) for shard, part in
                zip(shards, _of_replicas(write, unit, parts))]
    pack = Pack(unit.ranks, [(s.dimension, s.part) for s in shards], how.dtype, how.before)
    whole = write.each(f"{name}_pack", pack, gradients)
    flat, = _of_replicas(write, unit, write.each(name, scatter, whole))
    if how.after:
        flat = write(None, ATEN.div.Tensor, flat, how.after)
    if flat.meta["val"].dtype != shards[0].parameter.dtype:
        flat = write(None, ATEN._to_copy.default, flat, dtype=shards[0].parameter.dtype)
    owned, start = [], 0
    for shard in shards:
        part = write(None, ATEN.slice.Tensor, flat, 0, start, start + shard.part)
        owned.append(_own(write, shard, part))
        start += shard.part
    return owned


def _of_replicas(write: Writer, unit: Any, parts: Any) -> Any:
    if not unit.replicas:
        return parts
    reduce = Reduce(unit.replicas.group_name, unit.reduction.op)
    return write.each(_name("reduce", unit), reduce, parts)


def _own(write: Writer, shard: Any, part: Any) -> Any:
    count = torch.Size(shard.own_size).numel()
    if count < shard.part:
        part = write(None, ATEN.slice.Tensor, part, 0, 0, count)
    return write(None, ATEN.view.default, part, list(shard.own_size))


def _name(what: str, unit: Any) -> str:
    return "_".join([what, *filter(None, unit.name.split("."))]) if unit.name else f"{what}_root"


def sharded(captured: Captured, units: Any, owners: Any) -> Captured:
    """owners: for each input the shard that it is the whole of, or None."""
    graph = captured.module.graph
    trained = {i: place for place, i in enumerate(captured.trained)}
    results = list(graph.output_node().args[0])
    count = captured.results_count
    holders = graph.find_nodes(op="placeholder")
    mode = mode_of(holders)
    write = Writer(graph, mode)
    late = read_after(graph, results[0])
    places = {s: i for i, s in reversed([*enumerate(owners)]) if s is not None}
    for unit in units:
        mine = [shard for shard in unit.shards if shard in places]
        if not mine:
            continue
        flats = [_flat(graph, mode, holders[places[shard]], shard) for shard in mine]
        wholes = [holders[places[shard]] for shard in mine]
        made = _gathered(write, unit, mine, wholes, flats, late)
        results = [made.get(result, result) for result in results]
        mine = [shard for shard in mine if places[shard] in trained]
        if mine:
            positions = [count + trained[places[shard]] for shard in mine]
            _scattered(write, unit, mine, positions, results)
    graph.output_node().args = (tuple(results),)
    for place in places.values():
        graph.erase_node(holders[place])
    graph.lint()
    captured.module.recompile()
    return captured


def _flat(graph: Any, mode: Any, whole: Any, shard: Any) -> Any:
    """A placeholder of this rank's part in the place of that of the whole."""
    with graph.inserting_before(whole):
        node = graph.placeholder(f"{whole.name}_part")
    with mode:
        node.meta["val"] = torch.empty(shard.part, dtype=shard.data.dtype, device=shard.data.device)
    return node


def storage_of(node: Any) -> Any:
    value = node.meta.get("val")
    return value.untyped_storage()._cdata if isinstance(value, torch.Tensor) else None


def read_after(graph: Any, loss: Any) -> Any:
    """The storages of what is read behind the loss (whose result is a detached one)."""
    nodes, wanted = iter(graph.nodes), storage_of(loss)
    for node in nodes:
        if storage_of(node) == wanted:
            break
    return {storage_of(given) for node in nodes for given in node.all_input_nodes}


def _gathered(write: Writer, unit: Any, shards: Any, wholes: Any, flats: Any, late: Any) -> Any:
    """Returns what stands for the wholes."""
    readers = {user for whole in wholes for user in whole.users}
    first = next((node for node in write.graph.nodes if node in readers), None)
    if first is None:
        return {}
    with write.graph.inserting_before(first):
        read = [storage_of(whole) in late for whole in wholes]
        made = dict(zip(wholes, _gather(write, unit, shards, flats, read)))
    for whole, node in made.items():
        node.meta["stands_for"] = whole.meta["val"]
        whole.replace_all_uses_with(node)
    return made


def _last(graph: Any, nodes: Any) -> Any:
    wanted = set(nodes)
    return next(node for node in reversed(graph.nodes) if node in wanted)


def _scattered(write: Writer, unit: Any, shards: Any, positions: Any, results: Any) -> None:
    gradients = [results[p] for p in positions]
    with write.graph.inserting_before(_last(write.graph, gradients).next):
        for position, node in zip(positions, _scatter(write, unit, shards, gradients)):
            results[position] = node
