"""Tarn as a memory planning algorithm of ExecuTorch.

    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from tarn.executorch import planner

    MemoryPlanningPass(memory_planning_algo=MemoryPlanningAlgorithmSuite([planner]))
"""
from __future__ import annotations

from collections import defaultdict
from typing import Any

from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult, greedy

import tarn


def planner(alignment: Any, specs: Any, graph_module: Any, graph_signature: Any,
            extra_padding: Any = 0) -> Any:
    """Plans each memory (mem_id) on its own; what shares the storage of another tensor lies in it.
    Never larger than `greedy`."""
    specs = list(specs)
    spaces, result = defaultdict(list), MemoryAlgoResult({}, [])
    roots = {spec: _root(spec) for spec in specs}
    for spec in specs:
        spec.realign(alignment)
        spaces[roots[spec][0].mem_id or 1].append(spec)
    reserved = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    result.bufsizes = [0] * (max([1, *spaces]) + 1)
    optimal = True
    for space, members in spaces.items():
        base = reserved[space] if space < len(reserved) else 0
        lifetimes: dict[Any, Any] = {}
        for spec in members:
            root = roots[spec][0]
            first, last = lifetimes.get(root, spec.lifetime)
            lifetimes[root] = (min(first, spec.lifetime[0]), max(last, spec.lifetime[1]))
        offsets, plan = _plan(lifetimes, alignment)
        optimal &= plan.optimal
        for number, spec in enumerate(members):
            root, inside = roots[spec]
            offset = base + offsets.get(root, 0) + inside
            result.spec_dict[spec] = SpecAllocResult(space, number, offset)
        result.bufsizes[space] = base + plan.footprint + extra_padding
    if optimal:
        return result
    other = greedy(alignment, specs, graph_module, graph_signature, extra_padding)
    return min(result, other, key=lambda planned: sum(planned.bufsizes))


def _root(spec: Any) -> Any:
    """(the tensor whose storage this one is in, where in it)"""
    offset = 0
    while spec.storage_base is not None:
        offset += spec.storage_base_offset
        spec = spec.storage_base
    return spec, offset


def _plan(lifetimes: Any, alignment: Any) -> Any:
    """(offset of each that has bytes, plan). A lifetime is its first and last step."""
    planned = [spec for spec in lifetimes if spec.allocated_memory > 0]
    rows = ["id,start,end,size", *("{},{},{},{}".format(i, *lifetimes[spec], spec.allocated_memory)
                                   for i, spec in enumerate(planned))]
    graph = tarn.Graph.from_bytes("\n".join(rows).encode(), "executorch.csv")
    plan = tarn.plan(graph, alignment=alignment)
    return {planned[tensor]: offset for tensor, offset in plan.offsets()}, plan
