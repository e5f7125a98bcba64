"""Tarn as a memory planning algorithm of ExecuTorch.

    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from tarn.executorch import planner

    MemoryPlanningPass(memory_planning_algo=MemoryPlanningAlgorithmSuite([planner]))
"""
from collections import defaultdict

from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult, greedy

import tarn


def planner(alignment, specs, graph_module, graph_signature, extra_padding=0):
    """Plans each memory (mem_id) on its own; what shares the storage of another tensor lies in it.
    Never larger than `greedy`."""
    specs = list(specs)
    spaces, result = defaultdict(list), MemoryAlgoResult({}, [])
    roots = {spec: _root(spec) for spec in specs}
    for spec in specs:
        spec.realign(alignment)
        spaces[roots[spec][0].mem_id or 1].append(spec)
    reserved = getattr(graph_module, "input_mem_buffer_sizes", None) or []
    result.bufsizes = [0] * max(2, *(space + 1 for space in spaces)) if spaces else [0, 0]
    optimal = True
    for space, members in spaces.items():
        base = reserved[space] if space < len(reserved) else 0
        lifetimes = {}
        for spec in members:
            root = roots[spec][0]
            first, last = lifetimes.get(root, spec.lifetime)
            lifetimes[root] = (min(first, spec.lifetime[0]), max(last, spec.lifetime[1]))
        offsets, footprint, best = _plan(lifetimes, alignment)
        optimal &= best
        for number, spec in enumerate(members):
            root, inside = roots[spec]
            result.spec_dict[spec] = SpecAllocResult(space, number, base + offsets[root] + inside)
        result.bufsizes[space] = base + footprint + extra_padding
    if not optimal:
        other = greedy(alignment, specs, graph_module, graph_signature, extra_padding)
        if sum(other.bufsizes) < sum(result.bufsizes):
            return other
    return result


def _root(spec):
    """(the tensor whose storage this one is in, where in it)"""
    offset = 0
    while spec.storage_base is not None:
        offset += spec.storage_base_offset
        spec = spec.storage_base
    return spec, offset


def _plan(lifetimes, alignment):
    """(offset of each, bytes, whether they are the fewest). A lifetime is its first and last step;
    each step is an op."""
    builder = tarn.Builder("executorch")
    stream = builder.stream()
    planned = {spec: builder.tensor("", spec.allocated_memory) for spec in lifetimes
               if spec.allocated_memory > 0}
    begins, ends = defaultdict(list), defaultdict(list)
    for spec, tensor in planned.items():
        first, last = lifetimes[spec]
        begins[first].append(tensor)
        if last > first:
            ends[last].append(tensor)
    for step in sorted(begins.keys() | ends.keys()):
        builder.op(str(step), stream, inputs=ends[step], outputs=begins[step])
    if not planned:
        return dict.fromkeys(lifetimes, 0), 0, True
    plan = tarn.plan(builder.finish(), alignment=alignment)
    offsets = {spec: plan.offset(planned[spec]) if spec in planned else 0 for spec in lifetimes}
    size = max(offsets[spec] + spec.allocated_memory for spec in planned)
    return offsets, size, plan.optimal
