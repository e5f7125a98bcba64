"""Graphs: ops in streams, tensors, storages in memory spaces."""
from __future__ import annotations

import ctypes as c
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Optional, Union

from . import _native as n
from ._native import call, result
from .errors import index_of

KINDS = ("intermediate", "gradient", "output", "parameter", "optimizer_state", "input")
SPACE_KINDS = ("device", "pinned", "scratch")
CLASSES = ("pure", "random", "collective", "copy", "optimizer")
PathLike = Union[str, "os.PathLike[str]"]


class Space(NamedTuple):
    """A memory apart from all others. kind: one of tarn.graph.SPACE_KINDS. alignment: in the place
    of the plan's; 0: the plan's. capacity: bytes; 0: no limit."""
    id: int
    name: str
    kind: str
    alignment: int
    capacity: int


class Tensor(NamedTuple):
    """root: the tensor whose storage it shares, its own id where it has a storage of its own.
    space: the id of the memory space that it lies in."""
    id: int
    name: str
    size: int
    kind: str
    alignment: int
    root: int
    space: int = 0

    @property
    def is_persistent(self) -> bool:
        return KINDS.index(self.kind) >= KINDS.index("parameter")


class Implementation(NamedTuple):
    """Another way of carrying out an op, which a budget may choose. inputs: tensors that it reads
    instead of the op's; outputs: the part of the op's outputs that it makes; empty: as the op.
    cost: in nanoseconds."""
    name: str
    cost: int = 0
    workspace: int = 0
    inputs: tuple[int, ...] = ()
    outputs: tuple[int, ...] = ()
    workspace_first: bool = False


class Op(NamedTuple):
    """inputs and outputs are ids of tensors, control ids of ops, workspace_space that of a memory
    space. cost: in nanoseconds. op_class: one of tarn.graph.CLASSES, as the graph says it or else
    as its kind does; None: the kind is not known."""
    id: int
    name: str
    kind: str
    stream: int
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    control: tuple[int, ...]
    workspace: int
    cost: int
    flops: int
    view: bool
    workspace_first: bool
    implementations: tuple[Implementation, ...]
    workspace_space: int = 0
    op_class: Optional[str] = None


class _Records(Sequence):
    """A sequence that asks the library for each of its members."""

    def __init__(self, count, get):
        self._count, self._get = count, get

    def __len__(self):
        return self._count

    def __getitem__(self, index):
        where = range(self._count)[index]
        return [self._get(i) for i in where] if isinstance(index, slice) else self._get(where)


class File:
    """What graphs and plans have in common."""

    _kind = _key = ""  # what their functions' names begin with; the property that tells equals

    def __init__(self, handle, owner=None):
        """For the package only. owner: what keeps the handle alive; None: this object does."""
        self._handle, self._owner = handle, owner

    def __del__(self):
        if getattr(self, "_handle", None) and self._owner is None:
            getattr(n.lib, self._kind + "_destroy")(self._handle)

    def __eq__(self, other):
        return type(other) is type(self) and getattr(self, self._key) == getattr(other, self._key)

    def __hash__(self):
        return hash(getattr(self, self._key))

    def save(self, path: PathLike) -> None:
        """Writes the file as a whole or not at all; ".gz" compresses."""
        call(getattr(n.lib, self._kind + "_save"), self._handle, os.fsencode(path))

    def to_bytes(self, name: str = "") -> bytes:
        """What save would write to a file of this name."""
        parts: list[bytes] = []

        def take(_user, data, size):
            parts.append(c.string_at(data, size))
            return 0

        writer = n.make(n.Writer, name=os.fsencode(name) or None, write=n.WRITE(take))
        call(getattr(n.lib, self._kind + "_write"), self._handle, writer)
        return b"".join(parts)


class Graph(File):
    """An immutable graph. Made by Graph.load, Graph.build or a plan's transforms."""

    _kind, _key = "graph", "hash"

    @staticmethod
    def build(name: str = "") -> Builder:
        """Begins a graph; see Builder."""
        return Builder(name)

    @classmethod
    def load(cls, path: PathLike) -> Graph:
        """Reads tarn.graph (JSON) or a packing instance (CSV), plain or gzip."""
        return cls(result(n.graph, n.lib.graph_load, os.fsencode(path)))

    @classmethod
    def from_bytes(cls, data: Any, name: str = "") -> Graph:
        """Reads what a file would hold, from anything with a contiguous buffer; name: in messages,
        and its ending says the format."""
        return cls(result(n.graph, n.lib.graph_read, n.reader_of(data, name), None))

    @property
    def name(self) -> str:
        return n.decoded(n.lib.graph_name(self._handle))

    @property
    def hash(self) -> str:
        """32 hexadecimal digits, equal for equal graphs on every machine."""
        return n.lib.hash_format(n.lib.graph_hash(self._handle)).text.decode()

    @property
    def streams(self) -> list[str]:
        """The streams' names."""
        count = n.lib.graph_streams_count(self._handle)
        return [n.decoded(n.lib.graph_stream_name(self._handle, s)) for s in range(count)]

    @property
    def spaces(self) -> Sequence[Space]:
        """A sequence of Space, by id: one that has no name where the graph declares none."""
        return _Records(n.lib.graph_spaces_count(self._handle), self._space)

    @property
    def tensors(self) -> Sequence[Tensor]:
        """A sequence of Tensor, by id."""
        return _Records(n.lib.graph_tensors_count(self._handle), self._tensor)

    @property
    def ops(self) -> Sequence[Op]:
        """A sequence of Op, by id."""
        return _Records(n.lib.graph_ops_count(self._handle), self._op)

    @property
    def groups(self) -> list[list[int]]:
        """Contiguous groups, each a list of tensors' ids in the order of their addresses."""
        count = n.lib.graph_groups_count(self._handle)
        return [n.ids_of(n.lib.graph_group(self._handle, g)) for g in range(count)]

    def group_is_padded(self, group: int) -> bool:
        """Is every member of the group padded to the plan's alignment, not only the whole?"""
        return n.lib.graph_group_is_padded(self._handle, self._known("group", group))

    def _known(self, what, number):
        """The id of an op, a tensor, a stream or a group."""
        if not 0 <= number < getattr(n.lib, f"graph_{what}s_count")(self._handle):
            raise IndexError(f"{what} {number} does not exist")
        return number

    def _space(self, s):
        info = n.filled(n.SpaceInfo, n.lib.graph_space_sized, self._handle, s)
        return n.record_of(Space, info, id=s, kind=SPACE_KINDS[info.kind])

    def _tensor(self, t):
        info = n.filled(n.TensorInfo, n.lib.graph_tensor_sized, self._handle, t)
        return n.record_of(Tensor, info, id=t, kind=KINDS[info.kind],
                           root=n.lib.graph_root(self._handle, t))

    def _op(self, v):
        info = n.filled(n.OpInfo, n.lib.graph_op_sized, self._handle, v)
        ways = info.implementations[:info.implementations_count]
        number = n.lib.graph_op_class(self._handle, v)
        return n.record_of(Op, info, id=v, op_class=CLASSES[number - 1] if number else None,
                           implementations=tuple(n.record_of(Implementation, w) for w in ways))

    def summary(self) -> dict[str, int]:
        """Counts and sums, as a dict; see struct tarn_graph_summary."""
        return n.fields_of(n.filled(n.GraphSummary, call, n.lib.graph_summarize_sized,
                                    self._handle))

    def bound(self) -> int:
        """Bytes below which no safe plan can be, at any alignment."""
        return result(c.c_uint64, n.lib.graph_bound, self._handle).value

    def __repr__(self):
        return (f"<tarn.Graph {self.name!r}: {len(self.ops)} ops in {len(self.streams)} streams, "
                f"{len(self.tensors)} tensors>")

    def __reduce__(self):
        return Graph.from_bytes, (self.to_bytes("pickled graph.json.gz"),)


class Builder:
    """Builds a graph, in the order of the calls; ops of a stream run in the order in which they
    were added. The first rule that is broken is raised by finish().

        b = tarn.Graph.build("two ops")
        stream = b.stream("compute")
        x, y = b.tensor("x", 1024, kind="input"), b.tensor("y", 4096)
        b.op("relu", stream, inputs=[x], outputs=[y], cost=1000)
        graph = b.finish()
    """

    def __init__(self, name: str = ""):
        self._handle = n.lib.builder_create(n.encoded(name))

    def __del__(self):
        if getattr(self, "_handle", None):
            n.lib.builder_destroy(self._handle)

    def stream(self, name: str = "") -> int:
        return n.lib.builder_stream(self._handle, n.encoded(name))

    def space(self, name: str, kind: str = "device", alignment: int = 0, capacity: int = 0) -> int:
        """A memory space; see Space. A graph to which none is added has one."""
        number = index_of(SPACE_KINDS, "kind", kind)
        info = n.SpaceInfo(n.encoded(name), number, alignment, capacity)
        return n.lib.builder_space_sized(self._handle, *n.sized(info))

    def tensor(self, name: str, size: int, kind: str = "intermediate", alignment: int = 0,
               space: int = 0) -> int:
        """size: bytes. kind: one of tarn.graph.KINDS; the last three are persistent."""
        info = n.TensorInfo(n.encoded(name), size, index_of(KINDS, "kind", kind), alignment, space)
        return n.lib.builder_tensor_sized(self._handle, *n.sized(info))

    def alias(self, of: int, name: str = "") -> int:
        """A further name for the bytes of a tensor; an op that outputs it writes in place."""
        return n.lib.builder_alias(self._handle, of, n.encoded(name))

    def op(self, name: str, stream: int, inputs: Iterable[int] = (), outputs: Iterable[int] = (),
           *, kind: str = "", control: Iterable[int] = (), workspace: int = 0, cost: int = 0,
           flops: int = 0, view: bool = False, recomputable: Optional[bool] = None,
           inplace: Sequence[tuple[int, int]] = (), workspace_first: bool = False,
           implementations: Sequence[Implementation] = (), workspace_space: int = 0,
           op_class: Optional[str] = None) -> int:
        """control: ops that must finish first. inplace: pairs (input, output) that may share a
        storage. recomputable: None: by the op's class. op_class: one of tarn.graph.CLASSES; None:
        what the words of its kind say. workspace_first: the op is done with its
        workspace before it writes any byte of its outputs, so that they may share bytes.
        implementations: other ways of carrying it out, for a budget to choose from.
        workspace_space: where the workspace lies."""
        ways = (n.Implementation * len(implementations))(*(
            n.Implementation(n.encoded(way.name), way.cost, way.workspace, n.list_of(way.inputs),
                             n.list_of(way.outputs), way.workspace_first)
            for way in implementations))
        pairs = n.list_of(tensor for read, written in inplace for tensor in (read, written))
        info = n.OpInfo(name=n.encoded(name), kind=n.encoded(kind), stream=stream, view=view,
                        inputs=n.list_of(inputs), outputs=n.list_of(outputs),
                        control=n.list_of(control), workspace=workspace, cost=cost, flops=flops,
                        workspace_first=workspace_first, workspace_space=workspace_space,
                        recomputable={None: 0, True: 1, False: 2}[recomputable],
                        op_class=0 if op_class is None else 1 + index_of(CLASSES, "op_class",
                                                                         op_class),
                        inplace=c.cast(pairs.ids, c.POINTER(c.c_uint32 * 2)), implementations=ways,
                        inplace_count=len(inplace), implementations_count=len(ways))
        return n.lib.builder_op_sized(self._handle, *n.sized(info))

    def control(self, later: int, earlier: int) -> None:
        """`later` must not start before `earlier` has finished."""
        n.lib.builder_control(self._handle, later, earlier)

    def after_readers(self, writer: int) -> None:
        """`writer` must not start before all other ops so far that read what it writes have
        finished: for updates of parameters that other streams read."""
        n.lib.builder_after_readers(self._handle, writer)

    def group(self, tensors: Iterable[int], padded: bool = False) -> None:
        """These tensors lie back to back, in this order; padded: each begins at a multiple of the
        plan's alignment."""
        add = n.lib.builder_group_padded if padded else n.lib.builder_group
        add(self._handle, n.list_of(tensors))

    def finish(self) -> Graph:
        """The graph; the builder is used up."""
        builder, self._handle = self._handle, None
        return Graph(result(n.graph, n.lib.builder_finish, builder))
