"""Collectives of parameters in a captured step, one for each unit: what one block of a model gathers is
gathered by one op, and its gradients are reduced by one, as far as bits stay as they are. A unit is an
entry of a model's outermost list of modules, or else a module."""
from __future__ import annotations

import operator
from collections import Counter
from typing import Any, NamedTuple, Optional

import torch
from torch.distributed.distributed_c10d import _resolve_process_group

from ..capture import Captured, is_random, mode_of
from ..collectives import is_collective, is_wait
from .gathering import Writer, read_after, storage_of
from .kernels import Gather, Reduce, Scatter

ATEN = torch.ops.aten


PARAMETRIZED = "parametrizations"  # blocks.0.up.parametrizations.weight.original
WRAPPERS = ("_orig_mod", "_checkpoint_wrapped_module", "module")


def unit_of(name: str) -> str:
    """blocks.0.up.weight -> blocks.0; norm.weight -> norm"""
    path = [part for part in name.split(".")[:-1] if part not in WRAPPERS]
    path = path[:path.index(PARAMETRIZED)] if PARAMETRIZED in path else path
    numbers = [i for i, part in enumerate(path) if part.isdigit()]
    path = path[:numbers[0] + 1] if numbers else path
    return ".".join(path)


class _Member(NamedTuple):
    """A collective of one tensor, and what waits for it."""
    call: Any
    wait: Any
    chain: list[Any]  # gathers: what makes its input, of parameters; reductions: what follows


def _is_pure(node: Any) -> bool:
    """Does a call nothing but compute its results, in this process?"""
    return (node.op == "call_function" and not is_collective(node.target) and not is_wait(node.target)
            and not is_random(node)
            and (node.target is operator.getitem or hasattr(node.target, "_schema")
                 and not node.target._schema.is_mutable))


def _written(graph: Any) -> set[Any]:
    """Storages that calls write to."""
    found: set[Any] = set()
    for node in graph.nodes:
        schema = getattr(node.target, "_schema", None)
        if node.op == "call_function" and schema is not None and schema.is_mutable:
            found.update(map(storage_of, node.all_input_nodes))
    return found


def _early(graph: Any, parameters: dict[Any, str]) -> dict[Any, tuple[str, list[Any]]]:
    """By node: the parameter that it depends on, and on nothing else, and the calls that make it."""
    written = _written(graph)
    early: dict[Any, tuple[str, list[Any]]] = {
        node: (name, []) for node, name in parameters.items() if storage_of(node) not in written}
    for node in graph.nodes:
        given = node.all_input_nodes
        if len(given) == 1 and given[0] in early and _is_pure(node) and storage_of(node) not in written:
            name, chain = early[given[0]]
            early[node] = name, [*chain, node]
    return early


def _waited(node: Any) -> Optional[Any]:
    """What waits for a collective, if nothing else reads it."""
    users = list(node.users)
    return users[0] if len(users) == 1 and is_wait(users[0].target) else None


def _contiguous(node: Any) -> bool:
    return bool(node.meta["val"].is_contiguous())


def _gathers(graph: Any, parameters: dict[Any, str]) -> dict[Any, list[_Member]]:
    found: dict[Any, list[_Member]] = {}
    early, times = _early(graph, parameters), Counter[str]()
    for node in graph.nodes:
        if node.op != "call_function" or str(getattr(node.target, "_schema", node).name) != (
                "_c10d_functional::all_gather_into_tensor"):
            continue
        given, wait = node.args[0], _waited(node)
        if given not in early or wait is None or not _contiguous(given):
            continue
        name, chain = early[given]
        times[name] += 1  # gathered again by the program
        key = (unit_of(name), times[name], str(node.args[2]), given.meta["val"].dtype)
        found.setdefault(key, []).append(_Member(node, wait, chain))
    return found


def _is_copied(node: Any) -> bool:
    """Is it a copy to a new tensor, as `accumulated` of capture.py makes gradients?"""
    return (node.target is ATEN.copy_.default and len(node.args) == 2
            and node.args[0].target is ATEN.empty_like.default and len(node.args[0].users) == 1)


REDUCTIONS = {"_c10d_functional::reduce_scatter_tensor": 3, "_c10d_functional::all_reduce": 2}


def _reductions(gradients: dict[str, Any]) -> dict[Any, list[_Member]]:
    """gradients: by the names of their parameters."""
    found: dict[Any, list[_Member]] = {}
    for name, node in gradients.items():
        chain: list[Any] = []
        while len(node.users) == 1 and (_is_pure(node) and len(node.all_input_nodes) == 1
                                        or _is_copied(node)):
            if _is_copied(node):
                chain += [node, node.args[0]]
            else:
                chain.append(node)
            node = node.all_input_nodes[-1]
        if node.op != "call_function" or not is_wait(node.target) or len(node.users) != 1:
            continue
        call = node.args[0]
        kind = str(call.target._schema.name) if is_collective(call.target) else ""
        if kind in REDUCTIONS and _waited(call) is node and _contiguous(call.args[0]):
            key = (unit_of(name), kind, call.args[1], str(call.args[REDUCTIONS[kind]]),
                   call.args[0].meta["val"].dtype)
            found.setdefault(key, []).append(_Member(call, node, chain[::-1]))
    return found


def _replaced(write: Writer, member: _Member, made: Any) -> None:
    """made: the node of what the collective has made, in one dimension."""
    view = write(None, ATEN.view.default, made, list(member.wait.meta["val"].shape))
    view.meta["stands_for"] = member.wait.meta["val"]
    member.wait.replace_all_uses_with(view)
    for node in (member.wait, member.call):
        write.graph.erase_node(node)


def _flat(write: Writer, node: Any) -> Any:
    return write(None, ATEN.view.default, node, [-1])


def _in_order(graph: Any, members: list[_Member]) -> list[_Member]:
    places = {node: place for place, node in enumerate(graph.nodes)}
    return sorted(members, key=lambda member: places[member.call])


def _named(what: str, unit: str) -> str:
    return "_".join([what, *filter(None, unit.split("."))]) if unit else f"{what}_root"


def _gather(write: Writer, unit: str, members: list[_Member], late: Any) -> None:
    members = _in_order(write.graph, members)
    first = members[0].call
    before = set()
    for node in write.graph.nodes:
        if node is first:
            break
        before.add(node)
    for node in (node for member in members for node in member.chain):
        if node not in before:
            first.prepend(node)
            before.add(node)
    name = str(first.args[2])
    with write.graph.inserting_before(first):
        flats = [_flat(write, member.call.args[0]) for member in members]
        gather = Gather(int(first.args[1]), name,
                        [storage_of(member.wait) in late for member in members])
        made = write.each(_named("gather", unit), gather, flats)
        for member, flat in zip(members, made):
            _replaced(write, member, flat)


def _reduce(write: Writer, unit: str, kind: str, members: list[_Member]) -> None:
    members = _in_order(write.graph, members)
    last = members[-1].call
    how, group = str(last.args[1]), str(last.args[REDUCTIONS[kind]])
    with write.graph.inserting_after(last):  # in the order of the graph: each behind the one before
        anchor = write.graph.create_node("call_function", operator.getitem, (last, 0))
    with write.graph.inserting_before(anchor):
        flats = [_flat(write, member.call.args[0]) for member in members]
        if kind.endswith("all_reduce"):
            made = write.each(_named("reduce", unit), Reduce(group, how), flats)
        else:
            made = write.each(_named("scatter", unit), Scatter(int(last.args[2]), group, how), flats)
        write.graph.erase_node(anchor)
    with write.graph.inserting_after(made[-1]):
        anchor = write.graph.create_node("call_function", operator.getitem, (made[-1], 0))
    with write.graph.inserting_before(anchor):
        for member, flat in zip(members, made):
            _replaced(write, member, flat)
    for node in (node for member in members for node in member.chain):
        anchor.prepend(node)
    write.graph.erase_node(anchor)


def coalesced(captured: Captured, is_exact: bool) -> Captured:
    """is_exact: bits have to be those of one reduction for each gradient: a ring of more than two
    ranks sums in an order that depends on where a number lies."""
    graph = captured.module.graph
    holders = graph.find_nodes(op="placeholder")
    parameters = {node: name for node, (name, kind) in zip(holders, captured.inputs)
                  if kind == "parameter"}
    results = list(graph.output_node().args[0])
    names = [captured.inputs[i][0] for i in captured.trained]
    mode = mode_of(holders)
    if mode is None:
        return captured
    write, late = Writer(graph, mode), read_after(graph, results[0])
    for (unit, *_), members in _gathers(graph, parameters).items():
        _gather(write, unit, members, late)
    gradients = dict(zip(names, results[captured.results_count:]))
    for (unit, kind, _, group, _), members in _reductions(gradients).items():
        if len(members) > 1 and (not is_exact or _resolve_process_group(group).size() <= 2):
            _reduce(write, unit, kind, members)
    graph.lint()
    captured.module.recompile()
    return captured
