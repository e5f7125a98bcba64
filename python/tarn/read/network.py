"""What the readers have in common: a network under construction, and what a reader hands back."""
from __future__ import annotations

import gzip
import json
import math
import os
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import tarn

PERSISTENT = ("parameter", "optimizer_state", "input")
LARGEST = (1 << 53) - 1


class Reading(NamedTuple):
    """A graph, what the reader had to assume, and, if the file says where its producer placed each
    storage, that placement as a plan. refused: why the verifier refuses that plan; None: it does
    not, or there is no plan."""
    graph: tarn.Graph
    assumed: tuple[str, ...] = ()
    plan: Optional[tarn.Plan] = None
    refused: Optional[str] = None


def needs(library: str, extra: str, error: ImportError) -> tarn.UsageError:
    """The error if a reader's library is not installed."""
    return tarn.UsageError(f"this file is read with the package {library}, which cannot be imported "
                           f"({error}): pip install 'tarn[{extra}]'")


def counted(number: int, what: str) -> str:
    """"1 op", "2 ops"."""
    return f"{number} {what}{'' if number == 1 else 's'}"


def listed(names: Iterable[object], most: int = 5) -> str:
    """Some names, for a message."""
    found = [str(name) for name in names]
    more = len(found) - most
    return ", ".join(found[:most]) + (f" and {more} more" if more > 0 else "")


def size_of(shape: Sequence[Any], bits: int, what: str) -> int:
    """Bytes of a dense tensor whose elements have so many bits."""
    for place, dim in enumerate(shape):
        if not isinstance(dim, int) or dim < 0:
            raise tarn.BadInput(f"dimension {place} of {what} is not known")
    size: int = (math.prod(shape) * bits + 7) // 8
    if size > LARGEST:
        raise tarn.BadInput(f"{what} has {size} bytes, more than a graph can say")
    return size


class _Tensor:
    def __init__(self, name: str, size: int, kind: str, space: int, alignment: int):
        self.name, self.size, self.kind, self.space = name, size, kind, space
        self.alignment, self.root = alignment, -1
        self.maker: Optional[int] = None  # op, of a tensor without bytes


class Network:
    """Builds a graph. Tensors without bytes may be made and read: they are left out at the end, and
    whoever reads one comes after its maker by a control arc."""

    def __init__(self, name: str, source: str):
        self._name, self._source = name, source
        self.assumed: list[str] = []
        self._streams: list[str] = []
        self._spaces: list[dict[str, Any]] = []
        self._tensors: list[_Tensor] = []
        self._ops: list[dict[str, Any]] = []
        self._groups: list[list[int]] = []
        self._ids: dict[int, int] = {}

    def assume(self, text: str) -> None:
        """Notes an assumption, once."""
        if text not in self.assumed:
            self.assumed.append(text)

    def stream(self, name: str) -> int:
        """The stream of this name, made where it is new."""
        if name not in self._streams:
            self._streams.append(name)
        return self._streams.index(name)

    def space(self, name: str, kind: str = "device", alignment: int = 0) -> int:
        """A memory space."""
        self._spaces.append({"name": name, "kind": kind, "alignment": alignment})
        return len(self._spaces) - 1

    def tensor(self, name: str, size: int, kind: str = "intermediate", space: int = 0,
               alignment: int = 0) -> int:
        """A tensor with a storage of its own."""
        self._tensors.append(_Tensor(name, size, kind, space, alignment))
        return len(self._tensors) - 1

    def alias(self, name: str, of: int) -> int:
        """Another name for a tensor's storage: a view, or what is written in place."""
        root = self.root(of)
        made = self.tensor(name, self._tensors[root].size, "", self._tensors[root].space)
        self._tensors[made].root = root
        return made

    def root(self, tensor: int) -> int:
        """The tensor that owns the storage."""
        root = self._tensors[tensor].root
        return tensor if root < 0 else root

    def size(self, tensor: int) -> int:
        """Bytes of its storage."""
        return self._tensors[self.root(tensor)].size

    def name(self, tensor: int) -> str:
        """Its name."""
        return self._tensors[tensor].name

    def rebind(self, root: int, other: int) -> None:
        """A tensor that had a storage of its own, and all that share it, lie in that of another tensor
        from now on."""
        target = self.root(other)
        for number, tensor in enumerate(self._tensors):
            if number == root or tensor.root == root:
                tensor.root = target
                tensor.space = self._tensors[target].space

    def is_persistent(self, tensor: int) -> bool:
        """Is its storage outside the arena?"""
        return self._tensors[self.root(tensor)].kind in PERSISTENT

    def keep(self, tensor: int) -> None:
        """Makes it an output of the network, which stays until the end."""
        if not self.is_persistent(tensor):
            self._tensors[self.root(tensor)].kind = "output"

    def op(self, name: str, kind: str, inputs: Iterable[int], outputs: Iterable[int],
           stream: int = 0, **more: Any) -> int:
        """An op. more: what formats.md says of ops (view, control, workspace, cost, class)."""
        number = len(self._ops)
        control = list(more.pop("control", ()))
        read, made = [], []
        for tensor in dict.fromkeys(inputs):
            maker = self._tensors[self.root(tensor)].maker
            if self.size(tensor):
                read.append(tensor)
            elif maker is not None and maker != number:
                control.append(maker)
        for tensor in dict.fromkeys(outputs):
            if self.size(tensor):
                made.append(tensor)
            elif self._tensors[self.root(tensor)].maker is None:
                self._tensors[self.root(tensor)].maker = number
        sizes = self.size
        pairs = [pair for pair in more.pop("inplace", ())
                 if pair[0] in read and pair[1] in made and sizes(pair[0]) == sizes(pair[1])
                 and not self.is_persistent(pair[0]) and not self.is_persistent(pair[1])]
        if more.get("view") and not made:  # a view that makes nothing only orders ops
            more.pop("view")
        record = {"name": name, "kind": kind, "stream": stream, "inputs": read, "outputs": made,
                  **{field: value for field, value in more.items() if value}}
        if pairs:
            record["inplace"] = pairs
        if control:
            record["control"] = sorted(set(control))
        self._ops.append(record)
        return number

    def group(self, tensors: Sequence[int]) -> None:
        """Storages that lie back to back."""
        self._groups.append([t for t in tensors if self.size(t)])

    def finish(self) -> tarn.Graph:
        """The graph, checked by the library."""
        empty = [t for number, t in enumerate(self._tensors) if not self.size(number)]
        if empty:
            self.assume(f"{counted(len(empty), 'tensor')} of no bytes left out "
                        f"({listed(t.name for t in empty)}); the orders that they carry are kept")
        self._ids = {}
        ids = self._ids
        for number in range(len(self._tensors)):
            if self.size(number):
                ids[number] = len(ids)
        tensors = []
        for number, tensor in enumerate(self._tensors):
            if number not in ids:
                continue
            root = self.root(number)
            record = {"id": ids[number], "name": tensor.name, "size": self.size(number),
                      "kind": self._tensors[root].kind}
            for field, value in (("alias_of", ids[root] if root != number else None),
                                 ("alignment", tensor.alignment or None),
                                 ("space", tensor.space or None)):
                if value is not None:
                    record[field] = value
            tensors.append(record)
        ops = []
        for number, op in enumerate(self._ops):
            op = {"id": number, **op, "inputs": [ids[t] for t in op["inputs"]],
                  "outputs": [ids[t] for t in op["outputs"]]}
            if "inplace" in op:
                op["inplace"] = [[ids[a], ids[b]] for a, b in op["inplace"]]
            ops.append(op)
        text: dict[str, Any] = {
            "format": "tarn.graph", "version": 1, "name": self._name,
            "meta": {"read_from": self._source, "assumed": self.assumed},
            "streams": [{"id": i, "name": name} for i, name in enumerate(self._streams or ["0"])],
            "ops": ops, "tensors": tensors}
        if self._spaces:
            text["spaces"] = [{"id": i, **{k: v for k, v in space.items() if v}}
                              for i, space in enumerate(self._spaces)]
        groups = [group for group in self._groups if group]
        if groups:
            text["contiguous"] = [[ids[t] for t in group] for group in groups]
        return tarn.Graph.from_bytes(json.dumps(text).encode(errors="replace"),
                                     self._source + ".json")

    def id(self, tensor: int) -> Optional[int]:
        """After finish: the graph's id; None: it has no bytes."""
        return self._ids.get(tensor)


def placed(graph: tarn.Graph, method: str, alignment: int, offsets: Mapping[int, int],
           workspaces: Mapping[int, int]) -> tuple[tarn.Plan, Optional[str]]:
    """A plan of these offsets: of root tensors, and of ops with a workspace. Waits are those of the
    graph, and iterations do not overlap, whatever the offsets. The second result: why the verifier
    refuses it, or None."""
    plan = tarn.plan(graph, alignment=alignment, effort=0, boundary="simple")
    text = json.loads(plan.to_bytes())
    ends = [0] * max(1, len(graph.spaces))
    for part, known, records in (("storages", offsets, graph.tensors),
                                 ("workspaces", workspaces, graph.ops)):
        for row in text[part]:
            record: Any = records[row[0]]
            if row[0] not in known:
                raise tarn.BadInput(f"the file has no offset of {record.name!r}")
            row[1] = known[row[0]]
            space = record.space if part == "storages" else record.workspace_space
            ends[space] = max(ends[space], -(-(row[1] + row[2]) // alignment) * alignment)
    text.update(method=method, bound_bytes=None, certificate=None, footprint_bytes=sum(ends))
    for space, end in zip(text.get("spaces", ()), ends):
        space.update(method=method, bound_bytes=None, certificate=None, footprint_bytes=end)
    text.pop("asked", None)
    data = json.dumps(text).encode()
    try:
        return tarn.Plan.from_bytes(data, graph), None
    except tarn.Rejected as error:
        return tarn.Plan.from_bytes(data, graph, verify=False), str(error)


def text_of(path: Any) -> str:
    """The text of a file, plain or gzip; what is no UTF-8 is replaced."""
    with open(path, "rb") as file:
        data = file.read()
    try:
        data = gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data
    except (EOFError, OSError, zlib.error) as error:
        raise tarn.BadInput(f"{os.fspath(path)!s} is damaged: {error}") from None
    return data.decode("utf-8", "replace")
