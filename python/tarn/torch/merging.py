"""Updates of a step that run as one: each call of an optimizer takes the host about 0.1 ms."""
from __future__ import annotations

import itertools
from typing import Any, Mapping

from .lowering import Op
from .memory import rounded
from .updates import Update

MERGED = 1 << 20  # bytes of parameters; an update of more takes a CPU much longer than the call


ASKING = "assign", "budget", "capacity", "offload", "reorder"


def keeps_order(options: Mapping[str, Any]) -> bool:
    """Do options of a plan leave the order of its ops, and ask for no bytes?"""
    return not any(map(options.get, ASKING))


def _joined(ops: Any) -> Any:
    """The op that does what these do."""
    if len(ops) == 1:
        return ops[0]
    run = ops[0].run.joined([op.run for op in ops])
    inputs, outputs, arguments = ([x for op in ops for x in getattr(op, name)]
                                  for name in ("inputs", "outputs", "arguments"))
    return Op(ops[0].name, ops[0].kind, inputs, outputs, run=run, arguments=arguments, parts=ops,
              workspace=sum(op.workspace for op in ops), cost=sum(op.cost for op in ops))


def merge(lowered: Any, alignment: int) -> Any:
    """Updates wait for later ones as long as at no time more bytes are alive than there are at most
    without that: in this order of the ops the bound stays what it was. To be called between the
    profile, which knows workspaces, and `add_state`. Returns the updates that are left."""
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for index, op in enumerate(lowered.ops):
        for root in (lowered.storages[s].root for s in (*op.inputs, *op.outputs)):
            first.setdefault(root, index)
            last[root] = index
    end = len(lowered.ops)
    changes, freed = [0] * (end + 1), [0] * end
    for root in first.keys() - lowered.persistent.keys():
        size, is_result = rounded(lowered.storages[root].size, alignment), (
            lowered.storages[root].kind == "output")
        changes[first[root]] += size
        changes[end if is_result else last[root] + 1] -= size
        freed[last[root]] += 0 if is_result else size
    alive = list(itertools.accumulate(changes))  # while an op runs, without its workspace
    spaces = [rounded(op.workspace, alignment) for op in lowered.ops]
    most = max(map(sum, zip(alive, spaces)), default=0)
    mergeable = {id(op) for op in lowered.ops
                 if isinstance(op.run, Update) and not op.on_heap and not op.group}
    ops: list[Any] = []
    waiting: list[int] = []  # numbers of updates

    def run() -> None:
        if waiting:
            ops.append(_joined([lowered.ops[i] for i in waiting]))
            waiting.clear()

    for index, op in enumerate(lowered.ops):
        own = [index] if id(op) in mergeable else []
        together = [lowered.ops[i] for i in waiting + own]
        space = sum(spaces[i] for i in waiting + own)
        roots = [lowered.storages[s].root for one in together for s in one.outputs]
        if (alive[index] + sum(freed[i] for i in waiting) + max(space, spaces[index]) > most
                or sum(lowered.storages[r].size for r in roots) > MERGED
                or len(set(roots)) < len(roots)):  # parameters in one storage
            run()
        waiting += own
        if not own:
            ops.append(op)
    run()
    lowered.ops = ops
    return [op for op in ops if isinstance(op.run, Update)]
