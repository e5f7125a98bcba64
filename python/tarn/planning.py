"""Plans: where every storage lives, which waits are needed."""
from __future__ import annotations

import ctypes as c
import inspect
import json
import os
import re
import subprocess
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import lru_cache, partial
from html import escape
from typing import Any, NamedTuple, Optional, TypeVar, Union

from . import _native as n
from . import command
from ._native import call, result
from .errors import Rejected, TarnError, UsageError, index_of
from .graph import File, Graph, Op, PathLike, Tensor
from .ids import GroupId, OpId, OpRef, SpaceId, SpaceRef, StreamRef, TensorId, TensorRef

BOUNDARIES = ("refined", "simple")
PADDINGS = ("graph", "exact", "padded", "auto")
STOPS = (None, "request", "deadline", "work")
ENDS = (None, "bound", "method", "capacity", "effort", "stopped")
Fields = dict[str, Any]  # of a struct of options
Wait = tuple[OpId, OpId]
T = TypeVar("T")


# ---- Planning ----

def _kinds(in_place: Union[str, Sequence[str], None]) -> tuple[str, ...]:
    return (in_place,) if isinstance(in_place, str) else tuple(in_place or ())


def _words(kinds: Sequence[str]) -> Any:
    return (c.c_char_p * len(kinds))(*map(n.encoded, kinds))


def _allowed(kinds: Sequence[str]) -> Any:
    return n.make(n.VerifyOptions, in_place_kinds=_words(kinds), in_place_kinds_count=len(kinds))


_UNITS = {"B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12,
          "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}


def _bytes(text: str) -> int:
    """A size as the command line takes it, "8GiB"; 0: it is none."""
    found = re.fullmatch(r"\s*([0-9]+)([A-Za-z]*)\s*", text)
    return int(found[1]) * _UNITS.get(found[2] or "B", 0) if found else 0


def _capacity(capacity: Any) -> Any:
    size = _bytes(capacity) if isinstance(capacity, str) else capacity
    if isinstance(capacity, str) and not size:
        raise UsageError(f'capacity is bytes above 0, as a number or as "512", "10MB" or "8GiB", '
                         f"not {capacity!r}")
    return size


def _budget(budget: Any) -> Any:
    """Bytes, also as "8GiB", or the fields that ask for a share: "70%" or 0.7."""
    if isinstance(budget, str):
        if _bytes(budget) and not budget.strip().isdecimal():  # "70" could mean a share
            return _bytes(budget)
        number, percent, rest = budget.strip().partition("%")
        try:
            share = float(number) / 100
        except ValueError:
            share = -1.0
        if not percent or rest or not 0 < share <= 1:
            raise UsageError('budget is bytes above 0, a number or as "8GiB", or a share such as '
                             f'"70%", up to "100%", not {budget!r}')
        return {"share": share}
    if isinstance(budget, float):
        if 0 < budget <= 1:
            return {"share": budget}
        if not budget.is_integer() or budget < 1:
            raise UsageError(f"budget is whole bytes, or a share above 0 and up to 1, not {budget}")
        return int(budget)
    return budget


KINDS_OF_MOVES = ("activations", "states", "parameters")

def _rate(rate: str) -> int:
    """Bytes per second: "50GB/s"."""
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([KMGT]?i?B)/s\s*", rate)
    if not found or found[2] not in _UNITS or float(found[1]) <= 0:
        raise UsageError(f'offload is a bandwidth such as "50GB/s", or one each way, "50GB/s,45GB/s", not {rate!r}')
    return int(float(found[1]) * _UNITS[found[2]])


def _offload(offload: Any) -> Any:
    """The fields that a bandwidth asks for: bytes per second, as a number or a text; out, then back."""
    if isinstance(offload, Mapping):
        fields = dict(offload)
        if "rate" in fields:
            fields.update(_offload(fields.pop("rate")))
        if isinstance(fields.get("kinds"), (str, list, tuple)):
            words = fields["kinds"].split(",") if isinstance(fields["kinds"], str) else fields["kinds"]
            fields["kinds"] = sum(1 << index_of(KINDS_OF_MOVES, "kinds", word.strip()) for word in set(words))
        return {**fields, **{name: n.encoded(fields[name]) for name in ("out_stream", "into_stream") if isinstance(fields.get(name), str)}}
    if isinstance(offload, str):
        rates = [_rate(rate) for rate in offload.split(",")]
        if len(rates) > 2:
            raise UsageError(f"offload is one bandwidth, or one each way, not {offload!r}")
        return {"out_bytes_per_second": rates[0], "into_bytes_per_second": rates[-1]}
    return None if offload is None else {"out_bytes_per_second": int(offload)}


class _Search:
    """A graph, struct tarn_plan_options, and all that it points to."""

    def __init__(self, *, graph: Union[Graph, PathLike], method: Optional[str],
                 effort: Optional[int], assign: Any, reorder: Any, couple: Any, in_place: Any,
                 budget: Any, offload: Any, boundary: str, pad_groups: str, keep: Any,
                 capacity: Union[int, str],
                 progress: Optional[Callable[[int, int, int], Optional[bool]]], **plain: Any):
        self._graph = graph if isinstance(graph, Graph) else Graph.load(graph)
        self.stop = c.c_bool(False)
        self._raised: Optional[BaseException] = None
        self._progress = progress
        self._options = n.make(
            n.PlanOptions, capacity=_capacity(capacity), method=n.encoded(method) if method else None,
            effort=0 if effort is None else effort or n.NO_EFFORT, stop=c.pointer(self.stop),
            boundary=index_of(BOUNDARIES, "boundary", boundary),
            pad_groups=index_of(PADDINGS, "pad_groups", pad_groups), **plain)
        if keep is not None:
            self._keep(keep)
        if progress:
            self._options.progress, self._options.heartbeat = n.PROGRESS(self._tell), n.HEARTBEAT(self._tell)
        self._kinds = () if in_place is True else _kinds(in_place)
        if self._kinds:
            kinds = _words(self._kinds)
            in_place = {"kinds": kinds, "kinds_count": len(kinds)}
        self._point("assign", n.AssignOptions, "streams", assign or None)
        self._point("reorder", n.ReorderOptions, "effort", reorder or None)
        self._point("couple", n.CoupleOptions, "keep", None if couple is False else couple)
        self._point("in_place", n.InPlaceOptions, None, in_place or None)
        self._point("budget", n.BudgetOptions, "budget", _budget(budget))
        self._point("offload", n.OffloadOptions, None, _offload(offload))

    def _keep(self, keep: Any) -> None:
        if isinstance(keep, Plan):
            names = [tensor.name for tensor in self._graph.tensors]
            old = {keep.graph.tensors[t].name: at for t, at in keep.offsets()}
            times = Counter(names)
            keep = {name: at for name, at in old.items() if times[name] == 1}
        placed = [n.Placed(self._graph.tensors[t].id, at, 0) for t, at in keep.items()]
        self._placed = (n.Placed * len(placed))(*placed)
        self._options.keep = n.Places(c.cast(self._placed, c.POINTER(n.Placed)), len(placed))

    @classmethod
    def of(cls, graph: Union[Graph, PathLike], options: Fields) -> _Search:
        """With the arguments of tarn.plan."""
        arguments = inspect.signature(plan).bind(graph, **options)
        arguments.apply_defaults()
        return cls(**arguments.arguments)

    def _point(self, name: str, structure: Any, main: Optional[str], value: Any) -> None:
        """value: True for defaults, a dict of the struct's fields, what `main` is to be, or None:
        not this transform."""
        if value is None:
            return
        fields: Fields = value if isinstance(value, dict) else {} if value is True else {
            str(main): value}
        names = {field for field, _ in structure._fields_} - {"struct_size"}
        if "alignment" in names:
            fields = {"alignment": self._options.alignment, **fields}
        unknown = set(fields) - names
        if unknown:
            raise UsageError(f"{name} has no option {sorted(unknown)[0]!r}")
        setattr(self._options, name, c.pointer(n.make(structure, **fields)))

    def _tell(self, _user: Any, progress: Any) -> bool:
        """Progress and heartbeat; returns whether the search has to end."""
        p = progress.contents
        try:
            told = self._progress
            if told and not self.stop.value and told(p.footprint, p.bound, p.steps) is False:
                self.stop.value = True
        except BaseException as error:  # pylint: disable=broad-except
            self._raised = error
            self.stop.value = True
        return bool(self.stop.value)

    def run(self) -> Plan:
        """The plan; or raises what the user's function has raised."""
        try:
            return Plan(result(n.plan, n.lib.plan_create, self._graph._handle, self._options),
                        self._graph, self._kinds)
        finally:
            if self._raised:
                raise self._raised

    def run_family(self, graphs: Sequence[Graph], ranks: bool) -> list[Plan]:
        """The same for graphs that will share an arena, or are of different ranks."""
        count = len(graphs)
        plans = (n.plan * count)()
        try:
            call(n.lib.ranks_plan if ranks else n.lib.family_plan, (n.graph * count)(*(g._handle for g in graphs)), count,
                 self._options, plans)
        finally:
            if self._raised:
                raise self._raised
        return [Plan(n.plan(handle.value), graph, self._kinds)
                for handle, graph in zip(plans, graphs)]

    def interrupt(self) -> None:
        self.stop.value = True


def plan(graph: Union[Graph, PathLike], *, capacity: Union[int, str] = 0, alignment: int = 0,
         method: Optional[str] = None, threads: int = 0, seed: int = 0,
         effort: Optional[int] = None, seconds: float = 0.0,
         assign: Union[int, Fields, None] = None, reorder: Union[bool, Fields] = False,
         couple: Union[bool, float, Fields, None] = None,
         in_place: Union[bool, Sequence[str]] = False, 
         budget: Union[int, float, str, Fields, None] = None,
         offload: Union[int, float, str, Mapping[str, Any], None] = None, boundary: str = "refined", pad_groups: str = "graph",
         keep: Union["Plan", Mapping[Union[str, int], int], None] = None,
         progress: Optional[Callable[[int, int, int], Optional[bool]]] = None) -> Plan:
    """Plans a graph (a tarn.Graph, or a path) and returns a verified Plan.

    capacity   bytes that the footprint must not exceed (a number, or "8GiB"); tarn.DoesNotFit
               otherwise; 0: no limit
    alignment  of every block; a power of two; 0: 512
    method     None or "all": everything until the bound is met; see tarn_plan_options
    threads    0: all cores; the plan does not depend on it
    effort     steps of search; None: 1000; 0: none
    seconds    of search at most; the plan then depends on the machine
    assign     streams for the graph: their number
    reorder    True: another order of the ops, in which less is alive at once
    couple     share of the excess over the serial peak that may stay, 0 to 1; True: 0
    in_place   True, or kinds of op that may write over their inputs
    budget     bytes (a number, or "8GiB"): recompute and choose implementations until the
               footprint is within it; "70%" or 0.7: that share of the footprint that the same call
               has without a budget, which is planned first
    offload    "50GB/s", "50GB/s,45GB/s" or bytes per second: storages that idle wait in the host's
               memory, copied there and back at that rate, where that keeps to the budget in less
               modelled time; without a budget where no op waits for it
    boundary   "refined": streams begin the next iteration where that does no harm; "simple"
    pad_groups "exact" or "padded": all contiguous groups, whatever the graph says; "auto": the one
               of the two whose plan is smaller
    keep       an earlier plan (tensors are the same if their names are), or {tensor: offset}: what
               lies where it did, as far as the footprint that is found without allows, or capacity
    progress   called with (footprint, bound, steps) of the best plan so far (0: there is none yet):
               at once, whenever it is better, and twice a second; False ends the search

    assign, reorder, couple, budget and offload also take a dict of fields of the C library's options;
    offload's may have "rate" ("50GB/s,45GB/s") and words of "kinds": "activations", "states",
    "parameters", as text or as a list.
    """
    search = _Search(**locals())  # all the arguments by their names
    return apart(search.run, stop=search.interrupt)


def plan_family(graphs: Iterable[Union[Graph, PathLike]], ranks: bool = False,
                **options: Any) -> list[Plan]:
    """Plans graphs that will share a tarn.Arena, for example of one model for several batch sizes;
    a plan for each, or none. Persistent tensors of one name are the same bytes: each needs a name
    of its own, and those of one name must be equally large; inputs alone may differ. ranks: each
    graph is of another rank instead, with an arena and persistent tensors of its own. In both cases
    symmetric groups of one name lie at one offset. options: of tarn.plan."""
    known = [graph if isinstance(graph, Graph) else Graph.load(graph) for graph in graphs]
    if not known:
        raise UsageError("a family needs at least one graph")
    search = _Search.of(known[0], options)
    return apart(search.run_family, known, ranks, stop=search.interrupt)


def verify_family(plans: Iterable["Plan"]) -> None:
    """Proves that plans, each of which is proved by itself, lie alike where other devices reach into
    them: one window, symmetric groups of one name at one offset; tarn.Rejected if not."""
    handles = [plan._handle for plan in plans]
    call(n.lib.family_verify, (n.plan * len(handles))(*handles), len(handles))


def apart(function: Callable[..., T], *arguments: Any, stop: Callable[[], Any]) -> T:
    """Calls a function on another thread: this one waits, so that it hears of Ctrl-C, and ends the
    call by calling `stop`."""
    future = _threads(os.getpid()).submit(function, *arguments)
    try:
        return future.result()
    except KeyboardInterrupt:
        stop()
        future.exception()  # waits for the call's end
        raise


@lru_cache(maxsize=1)
def _threads(_process: int) -> ThreadPoolExecutor:
    """As many as are needed at a time, kept; threads do not survive a fork."""
    return ThreadPoolExecutor(1 << 16, "tarn")


# ---- Plans ----

def _told(field: str, what: str, meaning: Callable[[Any], Any] = lambda value: value) -> Any:
    """A property that is a field of the plan's summary."""
    return property(lambda plan: meaning(getattr(plan._summary, field)), doc=what)


class PlanSpace(NamedTuple):
    """What a plan says of one memory space of its graph; see the properties of Plan."""
    name: str
    method: str
    footprint: int
    persistent: int
    bound: int
    optimal: bool


class Window(NamedTuple):
    """The range of a memory space's arena that has all symmetric groups; see tarn_plan_window."""
    space: SpaceId
    offset: int
    size: int


class Plan(File):
    """A verified plan. Ids are those of `graph`, which transforms may have made; `source` is the
    graph that was planned."""

    _kind, _key = "plan", "identity"
    footprint: int = _told("footprint", "Bytes of the arena, or of all memory spaces' arenas.")
    persistent: int = _told("persistent", "Bytes of the persistent part, padding included.")
    bound: int = _told("bound", "No safe plan is smaller; 0: unknown.")
    optimal: bool = _told("optimal", "footprint == bound, in every memory space")
    alignment: int = _told("alignment", "Of every block, unless its memory space has its own.")
    method: str = _told("method", "What placed it; see tarn.plan.", bytes.decode)
    pad_groups: str = _told("pad_groups", "Padding of groups, where the graph did not decide it.",
                            PADDINGS.__getitem__)
    stopped: Optional[str] = _told("stopped", "What ended the search early, or None.",
                                   STOPS.__getitem__)
    ended: Optional[str] = _told("ended", "What ended the search, in every case: \"bound\": no plan "
                                 "is smaller; \"effort\": more of it may find less; \"capacity\", "
                                 "\"method\"; \"stopped\": see there; None: it was loaded.",
                                 ENDS.__getitem__)

    def __init__(self, handle: Any, source: Graph, in_place: tuple[str, ...] = ()):
        """For the package only: takes the handle."""
        super().__init__(handle)
        self.in_place_kinds = in_place  # that were allowed beyond what the graph says
        self.source = source
        self.graph = Graph(n.lib.plan_graph(handle), owner=self)
        self._summary = n.filled(n.PlanSummary, n.lib.plan_summarize_sized, handle)

    @classmethod
    def load(cls, path: PathLike, graph: Graph, *, verify: bool = True,
             in_place: Union[str, Sequence[str]] = ()) -> Plan:
        """Reads a plan for a graph; tarn.Rejected where the verifier finds a violation.

        in_place: kinds of op that may write over their inputs whatever the graph says, as when it
        was planned. A plan cannot allow that itself."""
        kinds = _kinds(in_place)
        return cls(result(n.plan, n.lib.plan_load, os.fsencode(path), graph._handle,
                          not verify, _allowed(kinds)), graph, kinds)

    @classmethod
    def from_bytes(cls, data: Any, graph: Graph, *, verify: bool = True, name: str = "",
                   in_place: Union[str, Sequence[str]] = ()) -> Plan:
        """Reads what a file would hold, from anything with a contiguous buffer; name: in messages;
        in_place: see load."""
        kinds = _kinds(in_place)
        return cls(result(n.plan, n.lib.plan_read, n.reader_of(data, name), graph._handle,
                          not verify, _allowed(kinds)), graph, kinds)

    @property
    def asked(self) -> Optional[dict[str, Any]]:
        """What the plan was asked for: all options that its answer depends on, but those left at
        their defaults, as docs/formats.md says. None: its file does not say."""
        text = n.lib.plan_asked(self._handle)
        return None if text is None else dict(json.loads(text))

    def answers(self, **options: Any) -> bool:
        """May the plan stand for what tarn.plan would make of its source graph with these options?"""
        search = _Search.of(self.source, options)
        try:
            call(n.lib.plan_answers, self._handle, search._options)
        except Rejected:
            return False
        return True

    def verify(self) -> None:
        """Proves the plan once more; tarn.Rejected with the first violation."""
        call(n.lib.plan_verify, self._handle, self.source._handle, None, None)

    @property
    def spaces(self) -> list[PlanSpace]:
        """The same for each memory space of the graph, by id."""
        told = n.lib.plan_space_sized
        return [n.record_of(PlanSpace, n.filled(n.PlanSpaceSummary, told, self._handle, space.id),
                            name=space.name) for space in self.graph.spaces]

    @property
    def window(self) -> Optional[Window]:
        """Where symmetric groups lie, the same in all plans of a family; None: there are none."""
        window = n.Window()
        if not n.lib.plan_window(self._handle, window):
            return None
        return Window(SpaceId(window.space), window.offset, window.size)

    @property
    def milliseconds(self) -> dict[str, float]:
        """What planning took, by stage."""
        return {stage: getattr(self._summary, stage + "_ms")
                for stage in ("transform", "order", "place", "verify")}

    def offset(self, tensor: TensorRef) -> int:
        """Where a tensor lives: in the arena, or in the persistent part, of its memory space."""
        return int(n.lib.plan_offset(self._handle, self.graph._known("tensor", tensor)))

    def workspace(self, op: OpRef) -> Optional[int]:
        """Where the workspace of an op lives in its memory space; None where it has none."""
        offset = n.lib.plan_workspace_offset(self._handle, self.graph._known("op", op))
        return None if offset == n.NO_OFFSET else int(offset)

    def offsets(self, space: Optional[SpaceRef] = None) -> Iterator[tuple[TensorId, int]]:
        """(tensor, offset) for every planned storage, or those of one memory space; aliases and
        what persists are left out. Offsets count from the start of the tensor's space."""
        number = None if space is None else self.graph._known("space", space)
        for t in self.graph.tensors:
            if t.root == t.id and not t.is_persistent and number in (None, t.space):
                yield t.id, n.lib.plan_offset(self._handle, t.id)

    def launches(self, stream: StreamRef) -> list[OpId]:
        """The ops that a stream launches, in order."""
        return n.ids_of(n.lib.plan_launches(self._handle, self.graph._known("stream", stream)))

    def waits(self) -> list[Wait]:
        """(op, on): the op waits for the end of `on`, in the same iteration."""
        return _pairs(n.lib.plan_waits(self._handle))

    def boundary_waits(self) -> list[Wait]:
        """(op, on): the op waits for the end of `on` of the previous iteration."""
        return _pairs(n.lib.plan_boundary_waits(self._handle))

    def origin(self, op: OpRef) -> OpId:
        """The source graph's op that an op comes from."""
        return OpId(n.lib.plan_op_origin(self._handle, self.graph._known("op", op)))

    def tensor_origin(self, tensor: TensorRef) -> TensorId:
        """The source graph's tensor whose content a tensor holds."""
        return TensorId(n.lib.plan_tensor_origin(self._handle,
                                                 self.graph._known("tensor", tensor)))

    def implementation(self, op: OpRef) -> Optional[int]:
        """Which of its origin's implementations an op is; None: as written."""
        implementation = n.lib.plan_op_implementation(self._handle, self.graph._known("op", op))
        return None if implementation == n.NONE else int(implementation)

    def is_recomputed(self, op: OpRef) -> bool:
        """Does it make again what another op has made?"""
        return bool(n.lib.plan_op_is_recomputed(self._handle, self.graph._known("op", op)))

    def group(self, index: GroupId) -> tuple[int, int]:
        """(offset, size) of a contiguous group of `graph`."""
        offset, size = c.c_uint64(), c.c_uint64()
        n.lib.plan_group(self._handle, self.graph._known("group", index), offset, size)
        return offset.value, size.value

    def explain(self, *what: Union[str, Tensor, Op], quick: bool = False) -> str:
        """What `tarn explain` says: why the arena is so large and what would help (quick: without
        trying it); of a tensor or an op, why others may have its bytes; of two, why they may share
        them."""
        return command.run("explain", self.source, self, self._explained(what, quick),
                           self.in_place_kinds)

    def explanation(self, *what: Union[str, Tensor, Op], quick: bool = False) -> dict[str, Any]:
        """The same as the object that `tarn explain --json` prints."""
        words = [*self._explained(what, quick), "--json"]
        return dict(json.loads(command.run("explain", self.source, self, words,
                                           self.in_place_kinds)))

    def _explained(self, what: Sequence[Union[str, Tensor, Op]], quick: bool) -> list[str]:
        kinds = {Tensor: "tensor", Op: "op"}
        return [one if isinstance(one, str)
                else f"{kinds[type(one)]}:{self.graph._known(kinds[type(one)], one)}"
                for one in what] + ["--quick"] * quick

    def show(self, path: PathLike, **options: Any) -> None:
        """Writes what `tarn show` draws: the name's ending says which, .html (a page to explore),
        .svg, .txt, or .json for Perfetto. options: of the command, as of="svg" or axis="time"."""
        command.show(path, self.source, self, self.in_place_kinds, **options)

    @property
    def identity(self) -> str:
        """64 hexadecimal digits, equal for equal plans of equal graphs on every machine: the ranks
        of a distributed program compare them."""
        both = n.lib.plan_identify(self._handle)
        return "".join(n.lib.hash_format(part).text.decode() for part in (both.source, both.plan))

    def compare(self, other: Plan) -> dict[str, Any]:
        """What differs between two plans of one source graph, as a dict; empty: nothing. Values are
        pairs (of this one, of the other one); offsets go by tensors of the source graph."""
        names = ["footprint", "persistent", "bound", "alignment"]
        names += ["spaces"] if len(self.graph.spaces) > 1 else []
        different: dict[str, Any] = {name: (getattr(self, name), getattr(other, name))
                                     for name in names
                                     if getattr(self, name) != getattr(other, name)}
        mine, theirs = self._offsets_by_origin(), other._offsets_by_origin()
        moved = {t: (mine.get(t), theirs.get(t)) for t in sorted(mine.keys() | theirs.keys())
                 if mine.get(t) != theirs.get(t)}
        if moved:
            different["offsets"] = moved
        for name in ("waits", "boundary_waits"):
            ours, others = ({tuple(map(p.origin, pair)) for pair in getattr(p, name)()}
                            for p in (self, other))
            if ours != others:
                different[name] = (sorted(ours - others), sorted(others - ours))
        return different

    def _offsets_by_origin(self) -> dict[TensorId, list[int]]:
        by_origin: dict[TensorId, list[int]] = {}
        for tensor, offset in self.offsets():
            by_origin.setdefault(self.tensor_origin(tensor), []).append(offset)
        return by_origin

    def __repr__(self) -> str:
        near = "optimal" if self.optimal else f"bound {self.bound}" if self.bound else "no bound"
        return (f"<tarn.Plan of {self.source.name!r}: footprint {self.footprint}, {near}, "
                f"{self._summary.waits} waits>")

    def _repr_html_(self) -> str:
        svg = b64encode((self._repr_svg_() or "").encode()).decode()
        picture = f'<img src="data:image/svg+xml;base64,{svg}">' if svg else ""
        return f"<p>{escape(repr(self))}</p>{picture}"

    def _repr_svg_(self) -> Optional[str]:
        """What `tarn show` draws, for notebooks; None where the command is not there or fails."""
        with suppress(OSError, subprocess.SubprocessError, TarnError):
            shown = command.run("show", self.source, self, ["--of", "svg"], self.in_place_kinds,
                                timeout=20)
            return shown if shown.startswith("<svg") else None
        return None

    def __reduce__(self) -> tuple[Any, ...]:
        loads = partial(Plan.from_bytes, in_place=self.in_place_kinds)
        return loads, (self.to_bytes("pickled plan.json.gz"), self.source)


def _pairs(native: Any) -> list[Wait]:
    return [(wait.op, wait.on) for wait in native.waits[:native.count]]
