"""Graphs: ops in streams, tensors, storages in memory spaces."""
from __future__ import annotations

import ctypes as c
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Generic, NamedTuple, Optional, TypeVar, Union, overload

from . import _native as n
from . import command
from ._native import call, result
from .errors import UsageError, index_of
from .ids import (GroupId, OpId, OpRef, SpaceId, SpaceRef, StreamId, StreamRef, TensorId, TensorRef)

KINDS = ("intermediate", "gradient", "output", "parameter", "optimizer_state", "input")
SPACE_KINDS = ("device", "pinned", "scratch")
CLASSES = ("pure", "random", "collective", "copy", "optimizer")
PathLike = Union[str, "os.PathLike[str]"]
T = TypeVar("T")


class Space(NamedTuple):
    """A memory apart from all others. kind: one of tarn.graph.SPACE_KINDS. alignment: in the place
    of the plan's; 0: the plan's. capacity: bytes; 0: no limit."""
    id: SpaceId
    name: str
    kind: str
    alignment: int
    capacity: int


OFFSET_RULES = ("free", "fixed", "preferred")


class Tensor(NamedTuple):
    """root: the tensor whose storage it shares, its own id where it has a storage of its own.
    space: the id of the memory space that it lies in. offset: of a slice, where it begins in its
    root's storage."""
    id: TensorId
    name: str
    size: int
    kind: str
    alignment: int
    root: TensorId
    space: SpaceId = SpaceId(0)
    offset: int = 0
    offset_rule: str = "free"
    wanted_offset: int = 0

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
    inputs: tuple[TensorId, ...] = ()
    outputs: tuple[TensorId, ...] = ()
    workspace_first: bool = False


class Op(NamedTuple):
    """inputs and outputs are ids of tensors, control ids of ops, workspace_space that of a memory
    space. move: it copies its input to its output. cost: in nanoseconds. op_class: one of tarn.graph.CLASSES, as the graph says it or else
    as its kind does; None: the kind is not known."""
    id: OpId
    name: str
    kind: str
    stream: StreamId
    inputs: tuple[TensorId, ...]
    outputs: tuple[TensorId, ...]
    control: tuple[OpId, ...]
    workspace: int
    cost: int
    flops: int
    view: bool
    workspace_first: bool
    implementations: tuple[Implementation, ...]
    workspace_space: SpaceId = SpaceId(0)
    op_class: Optional[str] = None
    branch: tuple[tuple[int, int], ...] = ()
    move: bool = False


class Records(Sequence[T], Generic[T]):
    """A sequence that asks the library for each of its members; a name may stand for an index."""

    def __init__(self, what: str, count: int, get: Callable[[int], T], find: Callable[[str], int]):
        self._what, self._count, self._get, self._find = what, count, get, find

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: Union[int, str]) -> T: ...

    @overload
    def __getitem__(self, index: slice) -> list[T]: ...

    def __getitem__(self, index: Union[int, str, slice]) -> Union[T, list[T]]:
        if isinstance(index, slice):
            return [self._get(i) for i in range(self._count)[index]]
        where = self._find(index) if isinstance(index, str) else index
        try:
            return self._get(range(self._count)[where])
        except IndexError:
            raise IndexError(f"{self._what} {where} does not exist: there are {self._count}") from None


class Names:
    """The ids of what has been given names, by name; several may have one."""

    def __init__(self) -> None:
        self._ids: dict[str, list[int]] = {}
        self._names: dict[int, str] = {}

    def add(self, name: str, number: int) -> int:
        self._ids.setdefault(name, []).append(number)
        self._names[number] = name
        return number

    def name_of(self, number: int) -> Optional[str]:
        return self._names.get(number)

    def find(self, what: str, name: str) -> int:
        ids = self._ids.get(name, [])
        if len(ids) > 1:
            raise UsageError(f"{len(ids)} {what}s are called {name!r}: give an id, one of "
                             f"{', '.join(map(str, ids[:5]))}{'' if len(ids) < 6 else ', ...'}")
        if not ids:
            raise KeyError(f"no {what} is called {name!r}")
        return ids[0]


RECORDS: dict[str, type] = {"tensor": Tensor, "op": Op, "space": Space}


def number_of(what: str, given: Any, names: Callable[[], Names],
              name_of: Callable[[int], Optional[str]]) -> Any:
    """The id that was given as such, as a name, or as a record, which must be of this graph."""
    if isinstance(given, str):
        return names().find(what, given)
    if not isinstance(given, tuple):
        return given
    if not isinstance(given, RECORDS.get(what, ())):
        raise UsageError(f"{given!r} is no {what}")
    number: int = getattr(given, "id")
    if name_of(number) != getattr(given, "name"):
        raise UsageError(f"{what} {number} is called {name_of(number)!r} here, and not "
                         f"{getattr(given, 'name')!r}: it is of another graph")
    return number


class File:
    """What graphs and plans have in common."""

    _kind = _key = ""  # what their functions' names begin with; the property that tells equals

    def __init__(self, handle: Any, owner: Any = None):
        """For the package only. owner: what keeps the handle alive; None: this object does."""
        self._handle, self._owner = handle, owner

    def __del__(self) -> None:
        if getattr(self, "_handle", None) and self._owner is None:
            getattr(n.lib, self._kind + "_destroy")(self._handle)

    def __eq__(self, other: object) -> bool:
        return bool(type(other) is type(self)
                    and getattr(self, self._key) == getattr(other, self._key))

    def __hash__(self) -> int:
        return hash(getattr(self, self._key))

    def save(self, path: PathLike) -> None:
        """Writes the file as a whole or not at all; ".gz" compresses."""
        call(getattr(n.lib, self._kind + "_save"), self._handle, os.fsencode(path))

    def to_bytes(self, name: str = "") -> bytes:
        """What save would write to a file of this name."""
        parts: list[bytes] = []

        def take(_user: Any, data: int, size: int) -> int:
            parts.append(c.string_at(data, size))
            return 0

        writer = n.make(n.Writer, name=os.fsencode(name) or None, write=n.WRITE(take))
        call(getattr(n.lib, self._kind + "_write"), self._handle, writer)
        return b"".join(parts)


class Graph(File):
    """An immutable graph. Made by Graph.load, Graph.build or a plan's transforms."""

    _kind, _key = "graph", "hash"

    def __init__(self, handle: Any, owner: Any = None):
        super().__init__(handle, owner)
        self._names: dict[str, Names] = {}

    @staticmethod
    def build(name: str = "") -> Builder:
        """Begins a graph; see Builder."""
        return Builder(name)

    @classmethod
    def load(cls, path: PathLike) -> Graph:
        """Reads tarn.graph (JSON) or a packing instance (CSV), plain or gzip."""
        return cls(result(n.graph, n.lib.graph_load, os.fsencode(path), None))

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
        return str(n.lib.hash_format(n.lib.graph_hash(self._handle)).text.decode())

    @property
    def streams(self) -> list[str]:
        """The streams' names."""
        count = n.lib.graph_streams_count(self._handle)
        return [n.decoded(n.lib.graph_stream_name(self._handle, s)) for s in range(count)]

    @property
    def spaces(self) -> Records[Space]:
        """A sequence of Space, by id or name: one that has no name where the graph declares none."""
        return self._records("space", self._space)

    @property
    def tensors(self) -> Records[Tensor]:
        """A sequence of Tensor, by id or name."""
        return self._records("tensor", self._tensor)

    @property
    def ops(self) -> Records[Op]:
        """A sequence of Op, by id or name."""
        return self._records("op", self._op)

    @property
    def groups(self) -> list[list[TensorId]]:
        """Contiguous groups, each a list of tensors' ids in the order of their addresses."""
        return [n.ids_of(n.lib.graph_group(self._handle, g)) for g in range(self._count("group"))]

    def group_is_padded(self, group: GroupId) -> bool:
        """Is every member of the group padded to the plan's alignment, not only the whole?"""
        return bool(n.lib.graph_group_is_padded(self._handle, self._known("group", group)))

    def group_offsets(self, group: GroupId) -> Optional[list[int]]:
        """Where each member of the group begins, if it was given with offsets; else None."""
        index = self._known("group", group)
        offsets = n.lib.graph_group_offsets(self._handle, index)
        count = n.lib.graph_group(self._handle, index).count
        return list(offsets[:count]) if offsets else None

    def group_symmetric(self, group: GroupId) -> Optional[str]:
        """The name of a symmetric group, by which it lies at one offset in all plans of a family;
        None: it is not symmetric."""
        name = n.lib.graph_group_symmetric(self._handle, self._known("group", group))
        return None if name is None else n.decoded(name)

    def show(self, path: PathLike, **options: Any) -> None:
        """Writes what `tarn show` draws for the plan that it makes by default; see Plan.show."""
        command.show(path, self, None, (), **options)

    def _count(self, what: str) -> int:
        return int(getattr(n.lib, f"graph_{what}s_count")(self._handle))

    def _records(self, what: str, get: Callable[[int], T]) -> Records[T]:
        return Records(what, self._count(what), get, lambda name: self._known(what, name))

    def _name_of(self, what: str, number: int) -> str:
        if what == "stream":
            return n.decoded(n.lib.graph_stream_name(self._handle, number))
        return str(getattr(self, what + "s")[number].name)

    def _known(self, what: str, given: Any) -> Any:
        """The id of an op, a tensor, a stream, a memory space or a group that was given as its id,
        its name or its record."""
        def names() -> Names:
            if what not in self._names:
                known = Names()
                for i in range(self._count(what)):
                    known.add(self._name_of(what, i), i)
                self._names[what] = known
            return self._names[what]

        number = number_of(what, given, names, lambda i: self._name_of(what, i))
        if not 0 <= number < self._count(what):
            raise IndexError(f"{what} {number} does not exist")
        return number

    def _space(self, s: int) -> Space:
        info = n.filled(n.SpaceInfo, n.lib.graph_space_sized, self._handle, s)
        return n.record_of(Space, info, id=s, kind=SPACE_KINDS[info.kind])

    def _tensor(self, t: int) -> Tensor:
        info = n.filled(n.TensorInfo, n.lib.graph_tensor_sized, self._handle, t)
        return n.record_of(Tensor, info, id=t, kind=KINDS[info.kind],
                           offset_rule=OFFSET_RULES[info.offset_rule],
                           root=n.lib.graph_root(self._handle, t))

    def _op(self, v: int) -> Op:
        info = n.filled(n.OpInfo, n.lib.graph_op_sized, self._handle, v)
        ways = info.implementations[:info.implementations_count]
        number = n.lib.graph_op_class(self._handle, v)
        arms = tuple((arm[0], arm[1]) for arm in info.branch[:info.branch_count])
        return n.record_of(Op, info, id=v, branch=arms, op_class=CLASSES[number - 1] if number else None,
                           implementations=tuple(n.record_of(Implementation, w) for w in ways))

    def summary(self) -> dict[str, int]:
        """Counts and sums, as a dict; see struct tarn_graph_summary."""
        return n.fields_of(n.filled(n.GraphSummary, call, n.lib.graph_summarize_sized,
                                    self._handle))

    def bound(self) -> int:
        """Bytes below which no safe plan can be, at any alignment."""
        return int(result(c.c_uint64, n.lib.graph_bound, self._handle).value)

    def __repr__(self) -> str:
        return (f"<tarn.Graph {self.name!r}: {len(self.ops)} ops in {len(self.streams)} streams, "
                f"{len(self.tensors)} tensors>")

    def __reduce__(self) -> tuple[Any, ...]:
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
        self._names = {what: Names() for what in ("stream", "space", "tensor", "op")}
        self._groups = 0

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            n.lib.builder_destroy(self._handle)

    def _add(self, what: str, name: str, number: int) -> int:
        return self._names[what].add(name, number)

    def _id(self, what: str, given: Any) -> Any:
        names = self._names[what]
        return number_of(what, given, lambda: names, names.name_of)

    def _ids(self, what: str, given: Iterable[Any]) -> Any:
        return n.list_of(self._id(what, one) for one in given)

    def stream(self, name: str = "") -> StreamId:
        return StreamId(self._add("stream", name,
                                  n.lib.builder_stream(self._handle, n.encoded(name))))

    def space(self, name: str, kind: str = "device", alignment: int = 0,
              capacity: int = 0) -> SpaceId:
        """A memory space; see Space. A graph to which none is added has one."""
        number = index_of(SPACE_KINDS, "kind", kind)
        info = n.SpaceInfo(n.encoded(name), number, alignment, capacity)
        return SpaceId(self._add("space", name,
                                 n.lib.builder_space_sized(self._handle, *n.sized(info))))

    def tensor(self, name: str, size: int, kind: str = "intermediate", alignment: int = 0,
               space: SpaceRef = SpaceId(0), *, fixed_offset: Optional[int] = None,
               preferred_offset: Optional[int] = None) -> TensorId:
        """size: bytes. kind: one of tarn.graph.KINDS; the last three are persistent. fixed_offset:
        where a planned tensor must begin in its space's arena; preferred_offset: where it begins
        if that takes no larger one."""
        if fixed_offset is not None and preferred_offset is not None:
            raise UsageError("a tensor has one offset, fixed or preferred")
        rule = 1 if fixed_offset is not None else 2 if preferred_offset is not None else 0
        info = n.TensorInfo(n.encoded(name), size, index_of(KINDS, "kind", kind), alignment,
                            self._id("space", space), 0, rule,
                            fixed_offset or preferred_offset or 0)
        return TensorId(self._add("tensor", name,
                                  n.lib.builder_tensor_sized(self._handle, *n.sized(info))))

    def alias(self, of: TensorRef, name: str = "") -> TensorId:
        """A further name for the bytes of a tensor; an op that outputs it writes in place."""
        made = n.lib.builder_alias(self._handle, self._id("tensor", of), n.encoded(name))
        return TensorId(self._add("tensor", name, made))

    def slice(self, of: TensorRef, offset: int, size: int, name: str = "") -> TensorId:
        """A name for `size` bytes of a tensor from byte `offset` on. Ops that touch slices without
        a byte in common need no order among themselves."""
        made = n.lib.builder_slice(self._handle, self._id("tensor", of), offset, size,
                                   n.encoded(name))
        return TensorId(self._add("tensor", name, made))

    def op(self, name: str, stream: StreamRef, inputs: Iterable[TensorRef] = (),
           outputs: Iterable[TensorRef] = (), *, kind: str = "", control: Iterable[OpRef] = (),
           workspace: int = 0, cost: int = 0, flops: int = 0, view: bool = False,
           recomputable: Optional[bool] = None,
           inplace: Sequence[tuple[TensorRef, TensorRef]] = (), workspace_first: bool = False,
           implementations: Sequence[Implementation] = (), workspace_space: SpaceRef = SpaceId(0),
           op_class: Optional[str] = None, branch: Sequence[tuple[int, int]] = (),
           move: bool = False) -> OpId:
        """control: ops that must finish first. inplace: pairs (input, output) that may share a
        storage. recomputable: None: by the op's class. op_class: one of tarn.graph.CLASSES; None:
        what the words of its kind say. workspace_first: the op is done with its
        workspace before it writes any byte of its outputs, so that they may share bytes.
        implementations: other ways of carrying it out, for a budget to choose from.
        workspace_space: where the workspace lies. branch: pairs (conditional, arm): the op runs
        only where each of these conditionals takes that arm (Session.take).
        move: it copies its one input to its one output, mostly in another memory space, and does
        nothing else; sessions run it themselves."""
        ways = (n.Implementation * len(implementations))(*(
            n.Implementation(n.encoded(way.name), way.cost, way.workspace,
                             self._ids("tensor", way.inputs), self._ids("tensor", way.outputs),
                             way.workspace_first)
            for way in implementations))
        arms = ((c.c_uint32 * 2) * len(branch))(*((c.c_uint32 * 2)(*arm) for arm in branch))
        pairs = self._ids("tensor", (t for read, written in inplace for t in (read, written)))
        info = n.OpInfo(name=n.encoded(name), kind=n.encoded(kind),
                        stream=self._id("stream", stream), view=view,
                        inputs=self._ids("tensor", inputs), outputs=self._ids("tensor", outputs),
                        control=self._ids("op", control), workspace=workspace, cost=cost,
                        flops=flops, workspace_first=workspace_first,
                        workspace_space=self._id("space", workspace_space),
                        recomputable={None: 0, True: 1, False: 2}[recomputable],
                        move=move, op_class=0 if op_class is None else 1 + index_of(CLASSES, "op_class",
                                                                         op_class),
                        inplace=c.cast(pairs.ids, c.POINTER(c.c_uint32 * 2)), implementations=ways,
                        inplace_count=len(inplace), implementations_count=len(ways),
                        branch=arms, branch_count=len(branch))
        return OpId(self._add("op", name, n.lib.builder_op_sized(self._handle, *n.sized(info))))

    def control(self, later: OpRef, earlier: OpRef) -> None:
        """`later` must not start before `earlier` has finished."""
        n.lib.builder_control(self._handle, self._id("op", later), self._id("op", earlier))

    def after_readers(self, writer: OpRef) -> None:
        """`writer` must not start before all other ops so far that read what it writes have
        finished: for updates of parameters that other streams read."""
        n.lib.builder_after_readers(self._handle, self._id("op", writer))

    def group(self, tensors: Iterable[TensorRef], padded: bool = False,
              offsets: Optional[Iterable[int]] = None, symmetric: Optional[str] = None) -> None:
        """These tensors lie back to back, in this order; padded: each begins at a multiple of the
        plan's alignment. offsets: where each begins, from the start of the group, instead; tensors
        that overlap must never be in use at once. symmetric: a name; collectives of other devices
        reach these bytes, and groups of one name lie at one offset in all plans of a family."""
        self._add_group(self._ids("tensor", tensors), padded, offsets)
        if symmetric is not None:
            n.lib.builder_group_symmetric(self._handle, self._groups, n.encoded(symmetric))
        self._groups += 1

    def _add_group(self, members: Any, padded: bool, offsets: Optional[Iterable[int]]) -> None:
        if offsets is None:
            add = n.lib.builder_group_padded if padded else n.lib.builder_group
            add(self._handle, members)
            return
        given = [int(offset) for offset in offsets]
        if padded:
            raise UsageError("a group with offsets cannot be padded")
        if len(given) != members.count or any(offset < 0 or offset >= 1 << 64 for offset in given):
            raise UsageError(f"a group of {members.count} tensors has {len(given)} offsets, each of "
                             "which must be a number of bytes")
        n.lib.builder_group_offsets(self._handle, members, (n.u64 * (len(given) + 1))(*given))

    def finish(self) -> Graph:
        """The graph; the builder is used up."""
        builder, self._handle = self._handle, None
        return Graph(result(n.graph, n.lib.builder_finish, builder))
