"""Tarn as a memory planning algorithm of ExecuTorch.

    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite
    from tarn.executorch import planner

    MemoryPlanningPass(memory_planning_algo=MemoryPlanningAlgorithmSuite([planner]))
"""
from collections import defaultdict

from executorch.exir.memory_planning import MemoryAlgoResult, SpecAllocResult, greedy

import tarn
from tarn.torch import recording
from tarn.torch.recording import RELEASE, REQUEST, Event


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
    what begins at a step is requested before what ends at it is released."""
    planned = [spec for spec in lifetimes if spec.allocated_memory > 0]
    if not planned:
        return dict.fromkeys(lifetimes, 0), 0, True
    steps = [(lifetimes[spec][action], action, block) for block, spec in enumerate(planned)
             for action in (REQUEST, RELEASE)]
    graph, tensors = recording.graph([Event(action, block, planned[block].allocated_memory, 0)
                                      for _step, action, block in sorted(steps)], "executorch")
    plan = tarn.plan(graph, alignment=alignment)
    offsets = dict.fromkeys(lifetimes, 0)
    offsets.update((spec, plan.offset(tensors[block])) for block, spec in enumerate(planned))
    size = max(offsets[spec] + spec.allocated_memory for spec in planned)
    return offsets, size, plan.optimal
