"""An fx graph of ATen calls as a tarn.Graph: which storages there are, which op makes, reads and
writes which of them. A storage that is written in place gets an alias for each version."""
from __future__ import annotations

import itertools
import operator
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Set

import torch
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

import tarn

from .capture import is_random
from .collectives import group_of, is_collective, is_wait, refusal
from .tensors import flat, has_bytes, tensors_of, view_of

# What their schemas do not say: the positions of arguments that are written if the argument at the
# last position is true.
HIDDEN_WRITES = {"aten::native_batch_norm": ((3, 4), 5), "aten::cudnn_batch_norm": ((3, 4), 5),
                 "aten::miopen_batch_norm": ((3, 4), 5)}


@dataclass
class Storage:
    """A root, or a version of one: `root` is the id of its root."""
    name: str
    size: int
    kind: str
    root: int


@dataclass
class Op:
    """A call of ATen (`node`), or anything else that runs in the order of the step (`run`)."""
    name: str
    kind: str
    inputs: List[int]
    outputs: List[int]
    node: Optional[torch.fx.Node] = None
    made: Dict[int, torch.Tensor] = field(default_factory=dict)  # results that are fresh
    ordinals: Dict[int, int] = field(default_factory=dict)  # the requests that became them
    workspace: int = 0
    cost: int = 0
    stream: int = 0
    is_random: bool = False
    redraws: bool = False  # if it runs again it gets the numbers that it had
    on_heap: bool = False  # keeps what it asks for
    run: Optional[Callable[..., Any]] = None  # given the tensors of `arguments`, returns what to call
    calls_program: bool = False  # which may look at what it has done in such ops before
    arguments: List[torch.fx.Node] = field(default_factory=list)
    group: str = ""  # the communicator of a collective
    others: Sequence[str] = ()  # further communicators of an op that uses several
    gathers: bool = False  # parameters from all ranks: it may run again, as long as all ranks do
    meets_again: bool = False  # another collective that may
    prepares: bool = False  # something for gathers alone, from parameters
    parts: List[Op] = field(default_factory=list)  # updates that run as this one

    @property
    def may_repeat(self) -> Any:
        """Batch-norm with its statistics may, where it can be called without: HIDDEN_WRITES."""
        moves = "batch_norm" in self.kind and "backward" not in self.kind
        known = not moves or self.kind in ("aten.native_batch_norm", "aten.cudnn_batch_norm")
        draws = self.is_random and not self.redraws
        meets = self.group and not (self.gathers or self.meets_again)  # other ranks
        return known and not (draws or meets or self.run or self.on_heap)


class Lowered:
    """Storages and ops of a captured step. `persistent` maps roots to positions among placeholders
    and, behind them, `constants`, `holders` to the nodes of these; `value` maps fx nodes to what
    stands for their tensors: fake ones, and from `adopt` on ones on the device "meta" that are laid
    out as the real ones."""

    def __init__(self, captured: Any, device: Any) -> None:
        self.module, self.device = captured.module, device
        self.storages: List[Storage] = []
        self.ops: List[Op] = []
        self.persistent: Dict[int, Any] = {}
        self.holders: Dict[int, Any] = {}
        self.value: Dict[Any, Any] = {}
        self.constants: List[Any] = []  # tensors that are no placeholders
        self.communication: List[Any] = []  # streams that block
        self.wire: Any = None  # a collectives.Wire
        self.twins: Dict[int, int] = {}  # roots of what ops that are there twice make again: of what
        self.dropped: Set[int] = set()  # ids of parameters whose gradients a hook has taken away in this step
        self.elsewhere: Dict[Any, Any] = {}  # by root: what ops on a GPU make on the host, as seeds
        self.states: Dict[int, Any] = {}  # by root: the Update, and which of its values lie there
        self._root: Dict[int, int] = {}  # by storage of fake tensors
        self._real: Dict[int, Any] = {}  # by root: where it was, and a storage without bytes of its size
        self.latest: Dict[int, int] = {}  # version of each root
        placeholders: Iterator[Any] = iter(captured.inputs)
        positions = itertools.count()
        for node in self.module.graph.nodes:
            if node.op == "placeholder":
                name, kind = next(placeholders)
                self._persist(node, name, kind, next(positions))
            elif node.op == "get_attr":
                self.constants.append(getattr(self.module, node.target))
                self._persist(node, node.name, "input", next(positions))
            elif node.op == "output":
                self.results = list(node.args[0])
            elif node.target is operator.getitem:
                self.value[node] = self.value[node.args[0]][node.args[1]]
            elif is_wait(node.target):  # traced into a storage of its own
                self.value[node] = self.value[node.args[0]]
                self._root[node.meta["val"].untyped_storage()._cdata] = self.root(self.value[node])
            else:
                self._call(node)
                if "stands_for" in node.meta:  # a fake tensor that others were traced as views of
                    self._root[node.meta["stands_for"].untyped_storage()._cdata] = self.root(
                        self.value[node])

    def root(self, tensor: Any) -> Any:
        """The root under a fake tensor; None: it has no bytes."""
        return None if tensor is None else self._root.get(tensor.untyped_storage()._cdata)

    def become(self, result: Any, kind: Any) -> Any:
        """The root under a result, which becomes one of that kind unless it persists."""
        root = self.root(self.value[result]) if isinstance(result, torch.fx.Node) else None
        if root is not None and root not in self.persistent:
            self.storages[root].kind = kind
        return root

    def storage(self, name: Any, size: Any, kind: Any) -> Any:
        """A new root."""
        root = len(self.storages)
        self.storages.append(Storage(name, size, kind, root))
        self.latest[root] = root
        return root

    def write(self, root: Any, name: Any) -> Any:
        """A new version of a storage, which the next op has to output."""
        old = self.storages[root]
        self.latest[root] = len(self.storages)
        self.storages.append(Storage(name, old.size, old.kind, root))
        return self.latest[root]

    def _new(self, tensor: Any, name: Any, kind: Any = "intermediate") -> Any:
        key = tensor.untyped_storage()._cdata
        if tensor.device != self.device:
            raise ValueError(f"{name} is on {tensor.device}, the model on {self.device}")
        if key not in self._root:
            self._root[key] = self.storage(name, tensor.untyped_storage().nbytes(), kind)
        return self._root[key]

    def _persist(self, node: Any, name: Any, kind: Any, position: Any) -> None:
        tensor = self.value[node] = node.meta["val"]
        if has_bytes(tensor):
            root = self._new(tensor, name, kind)
            self.persistent.setdefault(root, position)
            self.holders.setdefault(root, node)

    def writes(self, op: Any) -> bool:
        """Does an op write in place?"""
        return any(self.storages[s].root != s for s in op.outputs)

    def written(self) -> Any:
        """Positions, as in `persistent`, of what the step writes in place."""
        return [self.persistent[root] for root, latest in self.latest.items()
                if latest != root and root in self.persistent]

    def drawn(self) -> Set[Any]:
        """The roots of what ops make that draw random numbers."""
        return {self.root(t) for op in self.ops if op.is_random for t in op.made.values()}

    def _written(self, node: Any) -> Any:
        """The roots that a call writes in place."""
        schema = node.target._schema
        written: List[Any] = [node.args[i] for i in getattr(node.target, "writes", ())]
        for position, argument in enumerate(schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                value = (node.args[position] if position < len(node.args)
                         else node.kwargs.get(argument.name))
                written += value if isinstance(value, (list, tuple)) else [value]
        positions, flag = HIDDEN_WRITES.get(schema.name, ((), None))
        if positions and node.args[flag]:
            written += [node.args[p] for p in positions]
        roots = dict.fromkeys(self.root(self.value[n]) for n in written if n is not None)
        return [root for root in roots if root is not None]

    def _call(self, node: Any) -> None:
        if why := refusal(node.target):
            raise ValueError(why)
        value = self.value[node] = node.meta.get("val")
        read = dict.fromkeys(self.root(t) for n in node.all_input_nodes
                             for t in tensors_of(self.value[n]))
        made = {i: t for i, t in enumerate(flat(value))
                if t is not None and has_bytes(t) and self.root(t) is None}
        written = self._written(node)
        if not written and not made:
            return  # a view, or nothing to do
        inputs = [self.latest[root] for root in read if root is not None]
        outputs = dict.fromkeys(self._new(t, node.name) for t in made.values())
        outputs.update((self.write(root, node.name), None) for root in written)
        meets = is_collective(node.target)
        self.ops.append(Op(node.name, node.target._schema.name.replace("::", "."), inputs,
                           list(outputs), node, made, is_random=is_random(node),
                           group=group_of(node.target, node.args, node.kwargs) if meets else ""))

    # ---- As it is in reality ----

    def found(self, op: Any, results: Any) -> None:
        """Results that were traced without bytes and have some, as what cuDNN's batch-norm keeps
        for its backward pass."""
        for i, (fake, real) in enumerate(zip(flat(self.value[op.node]), results)):
            if fake is None or real is None or has_bytes(fake) or not has_bytes(real):
                continue
            root = self.storage(f"{op.name}.{i}", real.untyped_storage().nbytes(), "intermediate")
            self._root[fake.untyped_storage()._cdata], op.made[i] = root, fake
            op.outputs.append(root)
            for other in self.ops:
                read = other.node.all_input_nodes if other.node is not None else ()
                if root in {self.root(t) for n in read for t in tensors_of(self.value[n])}:
                    other.inputs.append(root)

    def adopt(self, node: Any, result: Any, apart: bool = False) -> None:
        """What a node has made: its types and strides may be others than those that were traced.
        apart: each op has run on storages of its own."""
        fakes, spec = tree_flatten(self.value[node])
        pairs = zip(fakes, tree_leaves(result))
        self.value[node] = tree_unflatten([self._as_made(*pair, apart) for pair in pairs], spec)

    def _as_made(self, fake: Any, real: Any, apart: bool) -> Any:
        root = self.root(fake) if isinstance(fake, torch.Tensor) else None
        if root is None or real is None:
            return fake
        storage = real.untyped_storage()
        if root not in self._real:
            empty = torch.UntypedStorage(storage.nbytes(), device="meta")
            self._real[root], self._root[empty._cdata] = (storage.data_ptr(), empty), root
            self.storages[root].size = storage.nbytes()
            if real.device.type != self.device.type:
                self.elsewhere[root] = real.clone()
        address, empty = self._real[root]
        if address != storage.data_ptr() and not apart:
            raise ValueError(f"{self.storages[root].name} was traced as a view, and is none")
        return view_of(empty, real, 0)

    # ---- To Tarn ----

    def graph(self, name: Any, streams: Any = ("compute",), groups: Any = (), waits: Any = (),
              symmetric: bool = False) -> Any:
        """The tarn.Graph, op for op; `self.ids` maps storages to its tensors. waits: pairs of ops'
        numbers (later, earlier). symmetric: what collectives read and write lies at one offset in
        a family of graphs."""
        builder = tarn.Builder(name)
        for stream in streams:
            builder.stream(stream)
        used = {s for op in self.ops for s in op.inputs + op.outputs}
        self.ids = {}
        for s in sorted(used | {self.storages[s].root for s in used}):
            storage = self.storages[s]
            if storage.root == s:
                self.ids[s] = builder.tensor(storage.name, storage.size, storage.kind)
            else:
                self.ids[s] = builder.alias(self.ids[storage.root], storage.name)
        last: Dict[Any, Any] = {}  # what draws, communicates or calls the program keeps its order
        for index, op in enumerate(self.ops):
            lines = ["random"] if op.is_random else [op.group or op.stream, *op.others]
            lines += ["program"] if op.calls_program else []
            control = dict.fromkeys(last[line] for line in lines if line and line in last)
            last.update((line, index) for line in lines)
            builder.op(op.name, tarn.StreamId(op.stream), [self.ids[s] for s in op.inputs],
                       [self.ids[s] for s in op.outputs], kind=op.kind, control=list(control),
                       workspace=op.workspace, cost=op.cost,
                       op_class=("random" if op.is_random else "pure" if not op.group else
                                 "collective") if op.node or op.group else None,
                       recomputable=False if not op.may_repeat else
                       True if op.is_random or op.gathers or op.meets_again else None)
        for later, earlier in waits:
            builder.control(later, earlier)
        for group in groups:
            builder.group([self.ids[s] for s in group])
        for root, name in self._communicated().items() if symmetric else ():
            builder.group([self.ids[root]], symmetric=name)
        return builder.finish()

    def _communicated(self) -> Dict[Any, str]:
        """Planned storages with bytes that collectives touch: names that do not depend on the order
        of the ops."""
        names: Dict[Any, str] = {}
        for op in self.ops:
            for place, s in enumerate(op.inputs + op.outputs if op.group else ()):
                root = self.storages[s].root
                if root not in self.persistent and self.storages[root].size > 0:
                    name = f"{op.name}.{place}"
                    names[root] = min(name, names.get(root, name))
        return names
