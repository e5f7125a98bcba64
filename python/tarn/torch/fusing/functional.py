"""A captured step as functions: no call writes to what another one has made, writes to inputs come
last, and calls are those that Inductor knows."""
from __future__ import annotations

from typing import Any, Mapping

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from ..capture import Captured, mode_of
from .chunks import chunked
from .inductor import decompositions, joint_passes, propagate
from .random_numbers import Drawing
from .row_sums import simplify

aten = torch.ops.aten


def functional(captured: Captured, chunks: int, room: int, settings: Mapping[str, Any]
               ) -> tuple[torch.fx.GraphModule, FakeTensorMode]:
    """The step for Inductor; nodes of the backward pass are marked. chunks, room: of the loss
    (chunks.chunked); settings: of Inductor."""
    module = captured.module
    fakes = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    mode = mode_of(module.graph.nodes)

    def traced(function: Any, table: Any) -> torch.fx.GraphModule:
        with mode, torch.no_grad():
            made: torch.fx.GraphModule = make_fx(
                function, tracing_mode="real", _allow_non_fake_inputs=True,
                decomposition_table=table)(*fakes)
        return made

    made = traced(torch.func.functionalize(Drawing(module).run, remove="mutations"), {})
    for node in made.graph.find_nodes(op="call_function", target=aten.view.default):
        node.target = aten.reshape.default  # simpler ops may lay out otherwise what is viewed
    made = traced(torch.fx.Interpreter(made).run, decompositions())
    for node, old in zip(made.graph.find_nodes(op="placeholder"),
                         module.graph.find_nodes(op="placeholder")):
        node.target = node.name = old.target
    for node in list(made.graph.nodes):  # what detaches only
        if node.target in (aten.detach.default, aten.alias.default):
            node.replace_all_uses_with(node.args[0])
            made.graph.erase_node(node)
    simplify(made.graph)
    made.graph.eliminate_dead_code()
    made = _in_chunks(made, mode, chunks, room)
    joint_passes(made, mode, settings)
    made.recompile()
    _mark(made, captured.results_count)
    return made, mode


def _in_chunks(module: torch.fx.GraphModule, mode: FakeTensorMode,
               chunks: int, room: int) -> torch.fx.GraphModule:
    made = chunked(module, chunks, room) if chunks > 1 else None
    if made is None:
        return module
    propagate(made, mode)
    return made


def _mark(module: torch.fx.GraphModule, results: int) -> None:
    """What neither the results nor the writes to inputs need is the backward pass."""
    left = [n for n in module.graph.output_node().args[0][:results] if isinstance(n, torch.fx.Node)]
    left += module.graph.find_nodes(op="call_function", target=aten.copy_.default)
    forward = set()
    while left:
        node = left.pop()
        if node not in forward:
            forward.add(node)
            left += node.all_input_nodes
    for node in module.graph.nodes:
        node.meta["partitioner_tag"] = "is_forward" if node in forward else "is_backward"


def lifted(module: torch.fx.GraphModule) -> tuple[list[Any], dict[str, Any]]:
    """Makes the constants of a module inputs, the last ones. Returns [(name, fake tensor)] of all
    inputs, and the constants by name."""
    constants: dict[str, Any] = {}
    after = module.graph.find_nodes(op="placeholder")[-1]
    for node in module.graph.find_nodes(op="get_attr"):
        name, value = f"constant{len(constants)}", getattr(module, node.target)
        constants[name] = value
        with module.graph.inserting_after(after):
            after = module.graph.placeholder(name)
        after.meta = {**node.meta, "val": mode_of(module.graph.nodes).from_tensor(value.clone())}
        node.replace_all_uses_with(after)
        module.graph.erase_node(node)
    module.recompile()
    return [(node.target, node.meta["val"])
            for node in module.graph.find_nodes(op="placeholder")], constants


def own_gradients(module: torch.fx.GraphModule, captured: Captured,
                  mode: FakeTensorMode) -> torch.fx.GraphModule:
    """Gradients lie as autograd leaves them, as capture.accumulated does it: Inductor may give two
    of them one buffer, or other strides."""
    output = module.graph.output_node()
    results = list(output.args[0])
    places = module.graph.find_nodes(op="placeholder")

    def storage(node: Any) -> Any:
        return node.meta["val"].untyped_storage()

    seen = {storage(n)._cdata for n in (*places, *results[:captured.results_count])
            if isinstance(n, torch.fx.Node)}
    for i, trained in enumerate(captured.trained, captured.results_count):
        node, like = results[i], places[trained]
        if not isinstance(node, torch.fx.Node):
            raise ValueError(f"Inductor has no gradient of {captured.inputs[trained][0]}")
        value, wanted = node.meta["val"], like.meta["val"]
        if (storage(node)._cdata in seen or storage(node).nbytes() != value.nbytes
                or value.stride() != wanted.stride()):
            with module.graph.inserting_before(output), mode:
                empty = module.graph.call_function(aten.empty_like.default, (like,))
                empty.meta["val"] = torch.empty_like(wanted)
                results[i] = module.graph.call_function(aten.copy_.default, (empty, node))
                results[i].meta["val"] = empty.meta["val"]
        seen.add(storage(results[i])._cdata)
    output.args = (results,)
    module.recompile()
    return module
