"""The loss of a language model block by block. Logits and their gradient, rows × words, are often
the most that a step has alive at once, and every row of them depends on its own row of the layer
before: so that what lies between the last product and the products that read the gradient can be
computed for a few rows at a time.

A region is found by structure: it begins at a product that makes much of little, and has all nodes
that treat rows apart, up to those that read large ones. What of it is read elsewhere is put
together from its blocks, or, if it is a sum over rows (the loss, the weight's gradient), added up,
in float32 where types have 16 bits.

Inductor must not undo this by making one kernel of several blocks: nodes tell their block
(`BLOCK`), and what blocks add up or hand on is marked to be made at once (`AT_ONCE`).

The idea is that of Inductor's auto_chunker, which takes graphs with tangents for inputs only."""
from __future__ import annotations

from typing import Any, Callable, Optional

import torch

aten = torch.ops.aten
prims = torch.ops.prims

LARGE = 64 << 20  # bytes of a product's result that are worth it
AMPLIFIES = 4  # how many times larger the result has to be than each operand
PRODUCTS = (aten.mm.default, aten.addmm.default)
SAME = (aten.clone.default, aten.alias.default, aten.detach.default, aten._to_copy.default,
        prims.convert_element_type.default)
REDUCTIONS = (aten.sum.dim_IntList, aten.amax.default, aten.amin.default, aten.mean.dim,
              aten.argmax.default, aten.argmin.default, aten.any.dim, aten.prod.dim_int)
VIEWS = (aten.view.default, aten.reshape.default, aten._unsafe_view.default)
HALF = (torch.bfloat16, torch.float16)
BLOCK = "tarn_block"  # in a node's meta: the number of its block
BLOCKS = "tarn_blocks"  # in a graph's meta: the number of blocks of the loss, and the largest possible one
AT_ONCE = "inductor_realize_to_strides"  # likewise: Inductor makes a buffer of it

Node = torch.fx.Node
Rows = dict[Any, Optional[int]]  # for each tensor that is read: the dimension of its rows; None: all of it


def _shape(node: Any) -> Any:
    return node.meta["val"].shape


def _is_tensor(node: Any) -> bool:
    return isinstance(node, Node) and isinstance(node.meta.get("val"), torch.Tensor)


def _dims(value: Any, rank: int) -> set[int]:
    dims = range(rank) if value is None or value == [] else [value] if isinstance(value, int) else value
    return {d % max(rank, 1) for d in dims}


# ---- What an op does with rows ----

def _of_pointwise(node: Any, rows: int) -> Rows:
    rank, found = len(_shape(node)), {}
    for argument in node.all_input_nodes:
        shape = _shape(argument)
        at = rows - (rank - len(shape))
        found[argument] = at if at >= 0 and shape[at] == _shape(node)[rows] else None
    return found


def _of_reduction(node: Any, rows: int) -> Optional[Rows]:
    source = node.args[0]
    rank = len(_shape(source))
    dims = _dims(node.args[1] if len(node.args) > 1 else node.kwargs.get("dim"), rank)
    keeps = len(_shape(node)) == rank
    at = rows if keeps else [d for d in range(rank) if d not in dims][rows]
    return None if at in dims else {source: at}


def _of_product(node: Any, rows: int) -> Optional[Rows]:
    left, right = node.args[-2:]
    if left is right:
        return None
    found: Rows = {left: 0 if rows == 0 else None, right: 1 if rows == 1 else None}
    if node.target is aten.addmm.default:
        if node.args[0] in found:
            return None
        found.update(_of_pointwise_argument(node, node.args[0], rows))
    return found


def _of_pointwise_argument(node: Any, argument: Any, rows: int) -> Rows:
    at = rows - (len(_shape(node)) - len(_shape(argument)))
    return {argument: at if at >= 0 and _shape(argument)[at] == _shape(node)[rows] else None}


def rows_of_arguments(node: Any, rows: int) -> Optional[Rows]:
    """If block i of a node's result, cut along dimension `rows`, needs block i of some of what it reads and all of the
    rest: along which dimension of each. None: it needs more, or that is not known."""
    target = node.target
    if node.op != "call_function" or not _is_tensor(node) or not all(map(_is_tensor, node.all_input_nodes)):
        return None
    first = node.args[0] if node.args else None
    if torch.Tag.pointwise in getattr(target, "tags", ()):
        return _of_pointwise(node, rows)
    if target in SAME:
        return {first: rows}
    if target in REDUCTIONS:
        return _of_reduction(node, rows)
    if target in PRODUCTS:
        return _of_product(node, rows)
    if target in VIEWS:
        return {first: 0} if rows == 0 and _shape(first) else None
    if target is aten.permute.default:
        return {first: node.args[1][rows] % len(_shape(first))}
    if target is aten.expand.default:
        return _of_pointwise_argument(node, first, rows)
    if target is aten.full.default:
        return {}
    if target is aten.unsqueeze.default:
        at = node.args[1] % len(_shape(node))
        return None if at == rows else {first: rows - (rows > at)}
    if target is aten.squeeze.dims:
        left = [d for d in range(len(_shape(first))) if d not in _dims(node.args[1], len(_shape(first)))
                or _shape(first)[d] != 1]
        return {first: left[rows]}
    if target in (aten.gather.default, aten.scatter.value, aten.scatter.src):
        rank = len(_shape(node))
        if rank == 0 or node.args[1] % rank == rows:
            return None
        tensors = [a for a in (first, *node.args[2:4]) if isinstance(a, Node)]
        sizes = {_shape(a)[rows] for a in tensors}
        return dict.fromkeys(tensors, rows) if len(sizes) == 1 else None
    if target is aten.slice.Tensor:
        return None if node.args[1] % len(_shape(node)) == rows else {first: rows}
    if target is aten.slice_scatter.default:
        at = node.args[2] if len(node.args) > 2 else 0
        return None if at % len(_shape(node)) == rows else dict.fromkeys(node.args[:2], rows)
    if target is aten.constant_pad_nd.default:
        padded = 2 * (len(_shape(node)) - 1 - rows)
        return None if any(node.args[1][padded:padded + 2]) else {first: rows}
    return None


def _for_block(node: Any, rows: int, count: int) -> Any:
    """The arguments of a node for one of `count` blocks, where they have sizes."""
    args = list(node.args)
    if node.target in (*VIEWS, aten.expand.default, aten.full.default):
        at = 0 if node.target is aten.full.default else 1
        sizes = list(_shape(node))
        sizes[rows] //= count
        args[at] = sizes
    return tuple(args)


SUMS = (aten.sum.dim_IntList, aten.sum.default)
MEANS = (aten.mean.dim, aten.mean.default)


def _totals(node: Any, rows: dict[Any, int]) -> Optional[Rows]:
    """As rows_of_arguments, for a result that is the sum of its blocks' results, or their mean."""
    if node.target is aten.mm.default and node.args[0] is not node.args[1]:
        found: Rows = {node.args[0]: 1, node.args[1]: 0}
        return found if all(found[a] == rows[a] for a in found if a in rows) else None
    if node.target in (*SUMS, *MEANS) and node.args[0] in rows:
        source = node.args[0]
        dims = _dims(node.args[1] if len(node.args) > 1 else None, len(_shape(source)))
        return {source: rows[source]} if rows[source] in dims else None
    return None


# ---- A region ----

class Region:
    """rows: the nodes that are computed block by block, with the dimension of their rows; totals: those that are sums
    over blocks, with what they read."""

    def __init__(self, amplifier: Any) -> None:
        self.amplifier = amplifier
        self.rows: dict[Any, int] = {amplifier: 0}
        self.totals: dict[Any, Rows] = {}
        self._large = _shape(amplifier).numel() // 2
        nodes = list(amplifier.graph.nodes)
        after = nodes[nodes.index(amplifier) + 1:]
        others: set[Any] = set()  # depend on the region, and do not belong to it
        for node in after:
            read = set(node.all_input_nodes)
            if not read & (self.rows.keys() | others):
                continue
            is_apart = not read & others and node.op == "call_function" and _is_tensor(node)
            rows = self._rows(node) if is_apart else None
            if rows is not None:
                self.rows[node] = rows
                continue
            others.add(node)
            total = _totals(node, self.rows) if is_apart else None
            if total:
                self.totals[node] = total
        self._keep(after)

    def _rows(self, node: Any) -> Optional[int]:
        for rows in range(len(_shape(node))):
            found = rows_of_arguments(node, rows)
            if found and all(found.get(a) == self.rows[a] for a in node.all_input_nodes if a in self.rows):
                return rows
        return None

    def _is_large(self, node: Any) -> bool:
        return _is_tensor(node) and bool(_shape(node).numel() >= self._large)

    def _keep(self, after: list[Any]) -> None:
        """Only what large nodes need, what reads them, and what else is between them and a sum over
        all rows, as the loss itself."""
        ends = {n for n, read in self.totals.items() if n.target not in PRODUCTS}
        behind: set[Any] = set()  # another product
        for node in after:
            if node.target in PRODUCTS or behind.intersection(node.all_input_nodes):
                behind.add(node)
        ends -= behind
        kept = {self.amplifier}
        for node in reversed(after):
            users = [user for user in node.users if user in self.rows]
            if node in self.rows and (
                    self._is_large(node) or any(map(self._is_large, node.all_input_nodes))
                    or any(user in kept for user in users)
                    or node not in behind and all(u in kept or u in ends for u in node.users)):
                kept.add(node)
        left = self.rows.keys() - kept
        self.rows = {node: rows for node, rows in self.rows.items() if node in kept}
        self.totals = {node: read for node, read in self.totals.items()
                       if not left & read.keys() and (node in ends or any(
                           a in self.rows and self._is_large(a) for a in read))}

    @property
    def made(self) -> list[Any]:
        """Nodes that others read, put together from blocks."""
        inside = self.rows.keys() | self.totals.keys()
        return [n for n in self.rows if any(user not in inside for user in n.users)]

    def is_worth_it(self) -> bool:
        return not any(map(self._is_large, self.made)) and len(self.rows) > 1

    def count(self, most: int, room: int = 0) -> int:
        """The largest number of blocks up to `most` that all rows can be divided into. room: bytes for the
        logits of a block; the smallest number for which they fit is taken, if there is one. 0: rows cannot
        be divided."""
        sizes = {_shape(node)[rows] for node, rows in self.rows.items()}
        for node, rows in self.rows.items():
            sizes |= {_shape(a)[d] for a, d in (rows_of_arguments(node, rows) or {}).items() if d is not None}
        for read in self.totals.values():
            sizes |= {_shape(a)[d] for a, d in read.items() if d is not None}
        found = [k for k in range(2, most + 1) if all(size % k == 0 for size in sizes)]
        logits = self.amplifier.meta["val"].nbytes
        return next((k for k in found if logits <= k * room), max(found, default=0))


def region(graph: torch.fx.Graph) -> Optional[Region]:
    """The one that begins at the largest product, of at least LARGE bytes."""
    def size(node: Any) -> int:
        return int(node.meta["val"].nbytes)

    products = [n for n in graph.nodes if n.op == "call_function" and n.target in PRODUCTS and _is_tensor(n)
                and size(n) >= LARGE
                and _shape(n).numel() >= AMPLIFIES * max(_shape(a).numel() for a in n.args[-2:])]
    for product in sorted(products, key=size, reverse=True):
        found = Region(product)
        if found.is_worth_it():
            return found
    return None


# ---- A graph with blocks ----

class _Blocks:
    def __init__(self, old: torch.fx.Graph, part: Region, count: int) -> None:
        self._part, self._count = part, count
        self.graph = torch.fx.Graph()
        self._env: dict[Any, Any] = {}
        self._number: Optional[int] = None  # of the block that is made
        self._cuts: dict[Any, Any] = {}  # (node, dimension, block) of what lies outside
        self._members = [n for n in old.nodes if n in part.rows or n in part.totals]
        for node in old.nodes:
            if node is part.amplifier:
                self._region()
            elif node not in self._members:
                self._whole(node)

    def _whole(self, node: Any) -> Any:
        """A node outside of the region, behind all that it reads."""
        if node not in self._env:
            for argument in node.all_input_nodes:
                self._whole(argument)
            self._env[node] = self.graph.node_copy(node, self._env.__getitem__)  # no part of a block
        return self._env[node]

    def _region(self) -> None:
        part, to_float = self._part, prims.convert_element_type.default
        made: list[dict[Any, Any]] = []
        totals: dict[Any, Any] = {}
        for block in range(self._count):
            self._number = block
            made.append({})
            for node in self._members:
                if node in part.rows:
                    made[block][node] = self._block(node, part.rows[node], block, made[block])
                    continue
                one = self._copy(node, node.args, self._cutter(part.totals[node], block, made[block]))
                if node.meta["val"].dtype in HALF:
                    one = self._call(to_float, one, torch.float32)
                totals[node] = one if block == 0 else self._call(aten.add.Tensor, totals[node], one)
                totals[node].meta[AT_ONCE] = True
            for node in part.made:
                made[block][node].meta[AT_ONCE] = True
        self._number = None
        for node in part.made:
            self._env[node] = self._call(aten.cat.default, [of[node] for of in made], part.rows[node])
        for node, total in totals.items():
            if node.target in MEANS:
                total = self._call(aten.div.Tensor, total, self._count)
            if node.meta["val"].dtype in HALF:
                total = self._call(to_float, total, node.meta["val"].dtype)
            self._env[node] = total

    def _call(self, target: Any, *args: Any, **kwargs: Any) -> Any:
        made = self.graph.call_function(target, args, kwargs)
        if self._number is not None:
            made.meta[BLOCK] = self._number
        return made

    def _copy(self, node: Any, args: Any, value: Callable[[Any], Any]) -> Any:
        made = self._call(node.target, *torch.fx.map_arg(args, value),
                          **torch.fx.map_arg(node.kwargs, value))
        made.meta.update({key: word for key, word in node.meta.items() if key != "val"})
        return made

    def _block(self, node: Any, rows: int, block: int, made: dict[Any, Any]) -> Any:
        read = rows_of_arguments(node, rows) or {}
        return self._copy(node, _for_block(node, rows, self._count),
                          self._cutter(read, block, made))

    def _cutter(self, read: Rows, block: int, made: dict[Any, Any]) -> Callable[[Any], Any]:
        return lambda node: self._cut(node, read[node], block, made)

    def _cut(self, node: Any, rows: Optional[int], block: int, made: dict[Any, Any]) -> Any:
        """A block of what is read. Of large nodes that are not in the region only the block is made, as of a mask
        that tells the labels."""
        if rows is None:
            return self._whole(node)
        if node in made:
            return made[node]
        key = node, rows, block
        if key not in self._cuts:
            read = rows_of_arguments(node, rows) if self._part._is_large(node) else None
            if read is not None and all(
                    d is None or _shape(a)[d] % self._count == 0 for a, d in read.items()):
                self._cuts[key] = self._block(node, rows, block, made)
            else:
                size = _shape(node)[rows] // self._count
                self._cuts[key] = self._call(
                    aten.slice.Tensor, self._whole(node), rows, block * size, (block + 1) * size)
        return self._cuts[key]


def chunked(module: torch.fx.GraphModule, most: int, room: int = 0) -> Optional[torch.fx.GraphModule]:
    """A functional graph in which the largest product, and the ops that treat its rows separately, are
    computed in up to `most` blocks; None if that gains nothing. room: see Region.count. The caller computes
    the fake tensors again."""
    part = region(module.graph)
    count = part.count(most, room) if part else 0
    if not part or not count:
        return None
    graph = _Blocks(module.graph, part, count).graph
    graph.eliminate_dead_code()
    graph.lint()
    made = torch.fx.GraphModule(module, graph)
    made.meta = {**module.meta, BLOCKS: (count, part.count(most))}
    return made
