"""MindSpore's SOMAS: the graph that it planned, and where it placed every tensor.

MindSpore writes the dumps with save_graphs=True: NAME_somas_pre_processed_info_N.ir before it
places, NAME_somas_tensor_offset_N.ir afterwards; both have one format (Somas::SomasInfo in
mindspore/ccsrc/backend/common/somas/somas.cc). Sections: parameters, tensors (aligned size, original
size, offset, type, lifelong), nodes in launch order (inputs, outputs, workspaces, control arcs,
stream), tensors that share a storage (unions; "ref nodes" in older versions), contiguous lists,
stream groups. Only the dump behind the placement has offsets. Needs no library."""
from __future__ import annotations

import os
import re
from typing import Any, NamedTuple, Optional

import tarn

from .network import Network, Reading, counted, listed, placed, text_of

ALIGNMENT = 512
_TENSOR = re.compile(r"%(\d+)(T|CT)\s+#(\d+)S\s+#(\d+)S\s+&(\d+)\s+(\S+)\s+(\S+)\s+(\d+)\s+(\d+)")
_PARAMETER = re.compile(r"%(\d+)P\s+#(\d+)S\s+(\S*)\s*(\d+)?")
_NODE = re.compile(r"\$(\d+)\s+(.*?)\s+(\d+)\s+inputs\[")
_LIST = re.compile(r"(inputs|outputs|workspace|ctrl_inputs|ctrl_outputs|streamID)\[([^\]]*)\]")
_ID = re.compile(r"%(\d+)(CT|T|P)\b")


class _Tensor(NamedTuple):
    size: int  # as SOMAS reserves it
    offset: int
    lifelong: str


class _Node(NamedTuple):
    number: int
    name: str
    is_communication: bool
    inputs: list[tuple[int, str]]
    outputs: list[int]
    workspaces: list[int]
    control_inputs: list[int]
    control_outputs: list[int]
    stream: int


class _Dump:
    """A dump's sections as records. Errors name the line."""

    def __init__(self, text: str, name: str):
        self.name = name
        self.tensors: dict[int, _Tensor] = {}
        self.parameters: dict[int, tuple[int, str]] = {}
        self.nodes: list[_Node] = []
        self.unions: list[list[int]] = []
        self.contiguous: list[list[int]] = []
        self.processed: list[list[int]] = []
        self.groups: list[list[int]] = []
        self.total: Optional[int] = None
        section, self.line = "", 0
        for self.line, line in enumerate(text.splitlines(), 1):
            line = line.strip()
            if line.startswith("Total Memory Size after reused:"):
                self.total = self._number(line.rpartition(":")[2])
            elif line.startswith("All ") and line.endswith(":"):
                section = line[4:-1].lower()
            elif line:
                self._read(section, line)
        if not self.tensors or not self.nodes:
            raise tarn.BadInput(f"{name} has no tensors and nodes: it is no dump of SOMAS "
                                "(*_somas_pre_processed_info_*.ir, *_somas_tensor_offset_*.ir)")
        self._check()

    def _bad(self, what: str) -> tarn.BadInput:
        return tarn.BadInput(f"{self.name}, line {self.line}: {what}")

    def _number(self, text: str) -> int:
        if not re.fullmatch(r"\s*\d{1,16}\s*", text):
            raise self._bad(f"{text[:40]!r} is no number")
        return int(text)

    def _read(self, section: str, line: str) -> None:
        if section == "parameters" and line.startswith("%"):
            found = self._match(_PARAMETER, line, "a parameter: %ID P, #SIZE S, node, output")
            self.parameters[int(found[1])] = (self._number(found[2]), found[3])
        elif section == "tensors" and line.startswith("%"):
            found = self._match(_TENSOR, line, "a tensor: %ID T, #ALIGNED S, #SIZE S, &OFFSET, type, "
                                               "lifelong, begin, end")
            if found[2] == "T":
                if int(found[1]) in self.tensors:
                    raise self._bad(f"tensor %{found[1]}T is there twice")
                self.tensors[int(found[1])] = _Tensor(self._number(found[3]),
                                                      self._number(found[5]), found[7])
        elif section == "nodes" and line.startswith("$"):
            self._node(line)
        elif "ref node" in section or "union" in section:
            self._list(self.unions, line)
        elif "processed contiguous" in section:
            self._list(self.processed, line)
        elif "contiguous" in section:
            self._list(self.contiguous, line)
        elif section == "stream groups":
            self.groups.append([int(i) for i in re.findall(r"stm(\d+)", line)])

    @staticmethod
    def _list(lists: list[list[int]], line: str) -> None:
        ids = [int(i) for i, _ in _ID.findall(line)]
        if ids:
            lists.append(ids)

    def _match(self, pattern: re.Pattern[str], line: str, what: str) -> re.Match[str]:
        found = pattern.match(line)
        if not found:
            raise self._bad(f"this is not {what}")
        return found

    def _node(self, line: str) -> None:
        found = self._match(_NODE, line, "a node: $ID, name, type, inputs[...], outputs[...], "
                                         "workspace[...], streamID[@N]")
        lists: dict[str, list[tuple[int, str]]] = {}
        stream = re.search(r"streamID\[@(\d+)\]", line)
        if not stream:
            raise self._bad("the node has no streamID[@N]")
        for name, inside in _LIST.findall(line):
            lists[name] = [(int(i), kind) for i, kind in _ID.findall(inside)]
        plain = {name: [i for i, _ in ids] for name, ids in lists.items()}
        self.nodes.append(_Node(
            int(found[1]), found[2], found[3] == "1", lists.get("inputs", []),
            plain.get("outputs", []), plain.get("workspace", []), plain.get("ctrl_inputs", []),
            plain.get("ctrl_outputs", []), int(stream[1])))

    def _check(self) -> None:
        """Every tensor that is named is there."""
        self.nodes.sort(key=lambda node: node.number)
        named = [(f"node ${n.number}", i) for n in self.nodes
                 for i in [*n.outputs, *n.workspaces, *(i for i, kind in n.inputs if kind == "T")]]
        for what, lists in (("a union", self.unions), ("a contiguous list", self.contiguous),
                            ("a contiguous list", self.processed)):
            named += [(what, i) for ids in lists for i in ids]
        for what, i in named:
            if i not in self.tensors:
                raise tarn.BadInput(f"{self.name}: {what} names tensor %{i}T, which is not in the "
                                    "list of tensors")


class _Reader:
    def __init__(self, dump: _Dump, network: Network):
        self.dump, self.net = dump, network
        self.makers: dict[int, int] = {}  # tensor: node that makes it first
        self.users: dict[int, set[int]] = {}
        for place, node in enumerate(dump.nodes):
            for i in [*node.outputs, *node.workspaces]:
                self.makers.setdefault(i, place)
                self.users.setdefault(i, set()).add(place)
            for i, kind in node.inputs:
                if kind == "T":
                    self.users.setdefault(i, set()).add(place)
        self.lists = self._contiguous()
        self.owners = self._owners()
        self.roots: dict[int, int] = {}     # owner: tensor of the network
        self.latest: dict[int, int] = {}    # owner: tensor that has its newest contents
        self.workspaces: dict[int, int] = {}  # place of a node: tensor of SOMAS's
        self.op_ids: dict[int, int] = {}      # place of a node: op
        self.early: list[int] = []
        self.gap = 0

    def _contiguous(self) -> list[list[int]]:
        return self.dump.processed or self.dump.contiguous

    def _owners(self) -> dict[int, int]:
        """Tensor: the one whose storage it shares, the first one made of its union."""
        parents: dict[int, int] = {}

        def find(i: int) -> int:
            while parents.get(i, i) != i:
                i = parents[i]
            return i

        for union in self.dump.unions:
            for i in union:
                parents[find(i)] = find(union[0])
        classes: dict[int, list[int]] = {}
        for i in self.dump.tensors:
            classes.setdefault(find(i), []).append(i)
        return {i: min(members, key=lambda m: (self.makers.get(m, 1 << 60), m))
                for members in classes.values() for i in members}

    def storages(self) -> None:
        sizes: dict[int, int] = {}
        whole: set[int] = set()
        early: list[int] = []
        counts: dict[int, int] = {}
        for i, tensor in self.dump.tensors.items():
            owner = self.owners[i]
            sizes[owner] = max(sizes.get(owner, 0), tensor.size)
            counts[owner] = counts.get(owner, 0) + 1
            if tensor.lifelong in ("LifeLongGraphAll", "LifeLongGraphEnd"):
                whole.add(owner)
            if tensor.lifelong in ("LifeLongGraphAll", "LifeLongGraphStart"):
                early.append(owner)
        grouped = {i for ids in self.lists for i in ids}
        lonely = set()
        for place, node in enumerate(self.dump.nodes):
            if len(node.workspaces) == 1:
                i = node.workspaces[0]
                if (counts[self.owners[i]] == 1 and i not in grouped and self.users[i] == {place}
                        and self.dump.tensors[i].lifelong == "LifeLongNone"):
                    lonely.add(i)
                    self.workspaces[place] = i
        for owner, size in sizes.items():
            if owner not in lonely and self.makers.get(owner) is not None:
                kind = "output" if owner in whole else "intermediate"
                self.roots[owner] = self.net.tensor(f"%{owner}T", size, kind)
        unmade = [i for i in self.dump.tensors if i not in self.makers]
        if unmade:
            self.net.assume(f"{counted(len(unmade), 'tensor')} that no node makes left out "
                            f"({listed(f'%{i}T' for i in unmade)})")
        self.early = [i for i in dict.fromkeys(early) if i in self.roots]

    def ops(self) -> None:
        net, ids = self.net, self.op_ids
        streams = {s: net.stream(f"stream {s}") for s in sorted({n.stream for n in self.dump.nodes})}
        parameters = {i: net.tensor(name or f"%{i}P", size, "parameter")
                      for i, (size, name) in self.dump.parameters.items()}
        begin, begun = self._begin(streams), set()
        control = {i: node for node in range(len(self.dump.nodes))
                   for i in self.dump.nodes[node].control_outputs}
        last: dict[int, int] = {}
        skipped = []
        follows = self._follows()
        for place, node in enumerate(self.dump.nodes):
            read = []
            for i, kind in node.inputs:
                if kind == "P":
                    if i in parameters:
                        read.append(parameters[i])
                elif self.makers.get(i, 1 << 60) > place:
                    skipped.append(f"%{i}T of ${node.number}")
                elif self.owners[i] in self.roots and i not in self.workspaces.values():
                    read.append(self.latest.get(self.owners[i], self.roots[self.owners[i]]))
            made = [self._made(i) for i in [*node.outputs, *node.workspaces]
                    if self.owners[i] in self.roots]
            arcs = [ids[control[i]] for i in node.control_inputs
                    if control.get(i, place) < place]
            if place in follows:
                arcs.append(ids[follows[place]])
            if begin is not None and node.stream not in begun:
                arcs.append(begin)
            begun.add(node.stream)
            if node.stream in last:  # what list order says anyway
                arcs = [arc for arc in arcs if arc != last[node.stream]]
            workspace = self.workspaces.get(place)
            size = self.dump.tensors[workspace].size if workspace is not None else 0
            ids[place] = net.op(f"{node.name} ${node.number}", _kind(node.name), read, made,
                                streams[node.stream], control=arcs, workspace=size,
                                **({"class": "collective"} if node.is_communication else {}))
            last[node.stream] = ids[place]
        if skipped:
            net.assume(f"{counted(len(skipped), 'input')} that a later node makes not counted, as "
                       f"SOMAS does not ({listed(skipped)}): its op clears them")
        self._groups()

    def _follows(self) -> dict[int, int]:
        """Older dumps have no control arcs, but groups of streams that run one after another: first
        node of a stream: last one of the stream before it."""
        if any(node.control_outputs for node in self.dump.nodes):
            return {}
        first: dict[int, int] = {}
        last: dict[int, int] = {}
        for place, node in enumerate(self.dump.nodes):
            first.setdefault(node.stream, place)
            last[node.stream] = place
        pairs = ((first.get(after), last.get(before)) for group in self.dump.groups
                 for before, after in zip(group, group[1:]))
        return {a: b for a, b in pairs if a is not None and b is not None and b < a}

    def _begin(self, streams: dict[int, int]) -> Optional[int]:
        """The op that begins what SOMAS keeps from the start of the graph on."""
        if not self.early:
            return None
        self.net.assume(f"{counted(len(self.early), 'storage')} of LifeLongGraphAll or "
                        "LifeLongGraphStart begun by an op in front of all others, named "
                        "'lifelong'")
        made = [self.roots[i] for i in self.early]
        for i in self.early:
            self.latest[i] = self.roots[i]
        return self.net.op("lifelong", "begin", [], made, next(iter(streams.values())))

    def _made(self, tensor: int) -> int:
        """What a node that makes the tensor writes: its storage, or the same again in place."""
        owner = self.owners[tensor]
        if owner in self.latest:
            self.latest[owner] = self.net.alias(f"%{tensor}T" if tensor != owner
                                                else f"%{tensor}T again", self.roots[owner])
        else:
            self.latest[owner] = self.roots[owner]
        return self.latest[owner]

    def _groups(self) -> None:
        """Contiguous lists; of lists over the same storages one."""
        known: dict[int, tuple[int, ...]] = {}
        for members in self.lists:
            group = tuple(dict.fromkeys(self.owners[i] for i in members
                                        if self.owners[i] in self.roots
                                        and self.net.size(self.roots[self.owners[i]])))
            if not group or all(known.get(i) == group for i in group):
                continue
            twice = [i for i in group if i in known]
            if twice:
                raise tarn.BadInput(f"{self.dump.name}: tensor %{twice[0]}T is in two contiguous "
                                    "lists, which a graph cannot say")
            known.update(dict.fromkeys(group, group))
            self.net.group([self.roots[i] for i in group])

    def offsets(self) -> tuple[dict[int, int], dict[int, int]]:
        """Of the graph's tensors and of its ops' workspaces, as SOMAS placed them."""
        places = {i: tensor.offset for i, tensor in self.dump.tensors.items()}
        for members in self.dump.contiguous or self.lists:
            places[self.owners[members[0]]] = self.dump.tensors[members[0]].offset - self.gap
        tensors = {}
        for owner, tensor in self.roots.items():
            number = self.net.id(tensor)
            if number is not None:
                tensors[number] = places[owner]
        works = {self.op_ids[place]: places[i] for place, i in self.workspaces.items()}
        return tensors, works

    def find_gap(self) -> int:
        """By how much MindSpore moved the first tensor of contiguous lists behind its place."""
        for members in self.dump.contiguous or self.lists:
            tensors = [self.dump.tensors[i] for i in members]
            if len(tensors) > 1 and tensors[0].size:
                over = tensors[0].offset + tensors[0].size - tensors[1].offset
                if over > 0:
                    self.net.assume(f"sizes at the ends of contiguous lists hold a gap of {over} "
                                    "bytes each (MindSpore's for communication); a list begins so "
                                    "many bytes before its first tensor's offset")
                    return over
        return 0


def _kind(name: str) -> str:
    """MindSpore's "MatMul-op12" is a MatMul."""
    return re.sub(r"-op\d+$", "", name) or "node"


def read(path: Any) -> Reading:
    """See tarn.read.somas."""
    name = os.fspath(path)
    dump = _Dump(text_of(path), name)
    net = Network(os.path.basename(name), "MindSpore SOMAS dump")
    net.assume(f"sizes are SOMAS's aligned ones, of {ALIGNMENT} bytes")
    reader = _Reader(dump, net)
    reader.storages()
    reader.ops()
    if not any(node.control_outputs for node in dump.nodes):
        net.assume("no control arcs in the file: streams are ordered by tensors alone")
    if not dump.total and not any(tensor.offset for tensor in dump.tensors.values()):
        net.assume("no offsets in the file (it was written before SOMAS placed): no plan; "
                   "*_somas_tensor_offset_*.ir has them")
        return Reading(net.finish(), tuple(net.assumed))
    reader.gap = reader.find_gap()
    graph = net.finish()
    plan, refused = placed(graph, "somas:mindspore", ALIGNMENT, *reader.offsets())
    if dump.total is not None and dump.total != plan.footprint:
        net.assume(f"the file says {dump.total} bytes in all, its offsets end at {plan.footprint}")
    return Reading(graph, tuple(net.assumed), plan, refused)
