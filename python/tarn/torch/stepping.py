"""tarn.torch.step: a training step at planned addresses."""
from __future__ import annotations

import inspect
import math
import os
import time
import warnings
import weakref
from collections import Counter
from functools import partial
from numbers import Integral
from typing import Any, Callable, Mapping, Optional, Sequence, Union

import torch
from torch.nn.modules.module import _has_any_global_hook
from torch.utils import _pytree as pytree

import tarn

from ..errors import index_of
from . import graphs
from .capture import capture
from .comparing import agree, bits, distances
from .collectives import divide, meeting
from .memory import ALIGNMENT, Arena, allocator
from .merging import keeps_order
from .costs import Costs
from .moving import Homes, Host, host_size
from .program import Program, away
from .drawing import seeds_size
from .replayed import difference
from .report import Report
from .tensors import distance, local, tensors_of
from .timing import WAIT, makespan
from .tracing import NotRun, Traced, detached, loss_in, reason
from .updates import (hooked, is_one_by_one, of_optimizer, seen_by_updates, unchanged,
                      updated_together)
from .variant import Variant

CAPTURES = 16  # for batches of one shape; then the step runs eagerly
SAMPLED = 2  # rows of a batch that are compared
MISSES = 2  # fused steps that may differ beside those: a rounding may decide a ReLU
MORE = 1 / 20  # bytes that a second stream may take, as a share
OPTIONS = tuple(inspect.signature(tarn.plan).parameters)[1:]  # all but the graph


def _kind_of(leaf: Any) -> Any:
    if not torch.is_tensor(leaf) or leaf.layout != torch.strided or leaf.is_nested:
        return type(leaf)
    return leaf.shape, leaf.dtype, leaf.stride(), getattr(leaf, "_spec", None)


def sampled(batch: Any, rows: int) -> Any:
    """(batch with the first rows of all tensors that have as many as the first one, how many these
    are, how many there were)"""
    leaves = [leaf for leaf in tensors_of(batch) if leaf.dim()]
    if not leaves:
        raise ValueError("no tensor of the batch has rows of which some could be compared")
    whole = leaves[0].shape[0]
    some = pytree.tree_map_only(
        torch.Tensor, lambda t: t[:rows].clone() if t.dim() and t.shape[0] == whole else t, batch)
    return some, min(rows, whole), whole


def kind_of(batch: Any) -> Any:
    """What is equal for batches of the same containers, shapes and types."""
    leaves, spec = pytree.tree_flatten(batch)
    return (spec, *map(_kind_of, leaves))


def _round_otherwise(parameters: Any, share: float) -> None:
    """Each number changes by up to a share of itself. Draws no numbers of the program's."""
    with torch.no_grad():
        for parameter in parameters:
            if parameter.is_floating_point():
                own = torch.Generator(parameter.device).manual_seed(0)
                noise = torch.rand(parameter.shape, generator=own, device=parameter.device)
                parameter.mul_((1 + share * (2 * noise - 1)).to(parameter.dtype))


def divided(streams: int, device: Any) -> dict[str, int]:
    """What `assign` of tarn.plan takes. A wait costs a change of threads, or is an arc of a CUDA
    graph."""
    return {"streams": streams, "wait_ns": WAIT if device.type == "cuda" else 20000}


def is_compiled(model: Any, loss_fn: Any) -> bool:
    """Whether the program compiles loss_fn or modules of the model by torch.compile, with Inductor."""
    functions = [loss_fn, *(vars(module).get(name) for module in model.modules()
                            for name in ("forward", "_compiled_call_impl"))]
    return any(hasattr(function, "_torchdynamo_orig_callable")
               and function.get_compiler_config() is not None for function in functions)


class Step:
    """tarn.torch.step: a callable that does what this does in one planned arena, bit for bit unless
    its kernels are fused:

        loss = loss_fn(model, *batch); loss.backward(); optimizer.step(); optimizer.zero_grad()

        step = tarn.torch.step(model, optimizer, loss_fn, (x, y), reorder=True)
        for x, y in loader:
            loss = step(x, y)

    streams   more than 1: ops are divided among threads, or streams of the GPU. None: one; two for
              CUDA graphs where bytes are not asked for and that takes a twentieth more at most
    budget    bytes, or a share of the plan without one (0.75): ops run again until it fits
    offload   "50GB/s", or as tarn.plan takes it: what idles waits in the host's memory, pinned on a
              GPU, where that keeps to the budget in less time; without a budget where no op waits
    clip      called with the parameters when their gradients are there, before the optimizer
    compare   whether the first two steps of each capture are run eagerly, too, and compared;
              "sample": two rows of each new kind of batch are, and the step is made op by op, for
              steps that eager execution has no memory for
    costs     a file with costs of ops; those that it has are not those that are measured, others
              are added to it: plans are the same from run to run, and no op is measured twice
    graph     on a GPU: False: not as one CUDA graph, as steps run when the first ones have agreed
    fuse      True, or settings of Inductor by name: its kernels are the ops, fewer and faster ones,
              which round otherwise than eager execution; "chunks" among them: of a large loss. None:
              where loss_fn or a module of the model is compiled by torch.compile, on one rank
    process_group, timeout, network  where the loss communicates: the ranks that have to agree (those
              of the model's DTensors need not be given), and see tarn.torch.fsdp
    options   of tarn.plan, as reorder=True: less is alive at once

    Every shape of batch is captured and planned once, when it is first seen; all share one arena.
    Where that fails the step runs eagerly, with a warning that says why; `reason` tells why the
    last step did, or ran without what was asked for, or is None. `graph` and `plan` are those of the first capture: of the example."""

    streams: tuple[str, ...] = ("compute",)
    reduction: Any = None  # given a name and gradients, returns what to call for their mean over ranks
    clips_over: Sequence[str] = ()  # communicators that `clip` and hooks may use beside the loss's
    updates_over: Sequence[str] = ()  # the same, if the optimizer may use them, too
    wire: Any = None  # a collectives.Wire
    on_one_rank = True  # it does not have to agree with steps of other ranks

    def __new__(cls, model: torch.nn.Module, *_arguments: Any, process_group: Any = None,
                **_options: Any) -> Step:
        if cls is Step and (process_group is not None or any(
                local(t) is not t for t in (*model.parameters(), *model.buffers()))):
            from .sharding import communicating  # pylint: disable=import-outside-toplevel
            cls = communicating.CommunicatingStep
        return super().__new__(cls)

    def __init__(self, model: torch.nn.Module, optimizer: torch.optim.Optimizer,
                 loss_fn: Callable[..., Any], example_batch: Any, *, streams: Optional[int] = None,
                 budget: Union[int, float, None] = None,
                 offload: Union[int, float, str, Mapping[str, Any], None] = None,
                 clip: Optional[Callable[[Any], Any]] = None, compare: Union[bool, str] = True,
                 costs: Union[str, os.PathLike[str], None] = None,
                 fuse: Union[bool, Mapping[str, Any], None] = None, graph: bool = True,
                 name: Optional[str] = None, **options: Any) -> None:
        self.model, self.optimizer, self.loss_fn, self.clip = model, optimizer, loss_fn, clip
        self.name, self.compares = name or type(model).__name__, compare
        if compare not in (True, False, "sample"):
            raise ValueError(f'compare has to be True, False or "sample", not {compare!r}')
        self.samples = compare == "sample"
        self.costs = Costs(costs)
        self.reason: Optional[str] = None
        self.strides: dict[Any, Any] = {}  # of results, where fake tensors have others
        self.device = next(p.device for group in optimizer.param_groups for p in group["params"])
        if fuse is None:
            fuse = self.on_one_rank and is_compiled(model, loss_fn)
        self.fuses = None if fuse is False else {} if fuse is True else dict(fuse)
        self.budget, self.offload = budget, offload
        # ranks would have to agree on plans that are made once more
        self.bytes = int(budget) if self.on_one_rank and isinstance(budget, Integral) else None
        for option in ("process_group", "timeout", "network"):  # of steps that communicate
            options.pop(option, None)
        for option in options:
            index_of(OPTIONS, "option", option)
        self._streams = streams or 1
        self._records = graph and self.device.type == "cuda" and self.reduction is None
        in_order = keeps_order({**options, "budget": budget, "offload": offload})
        self._tries_two = self._records and streams is None and in_order
        self.merges = (in_order and self._streams == 1 and self.device.type == "cpu"
                       and self.on_one_rank)  # updates, where that takes no bytes
        self._given = options
        self._options = {"alignment": ALIGNMENT[self.device.type], **options}
        self.queues = max(self._streams, len(self.streams), 2 if self._tries_two else 1)
        if self._streams > 1:
            self._options["assign"] = divided(self._streams, self.device)
        self._arena: Optional[Arena] = None
        self._sampled: dict[Any, str] = {}  # by kinds of batch: what was compared
        self._seen: Optional[dict[int, Any]] = None  # gradients of an eager step that is compared
        self._rehearsed: Any = None
        self._gradients: dict[int, Any] = {}  # of the eager step that is compared
        self.variants: dict[Any, Variant] = {}
        self._captures: Counter[Any] = Counter()  # by shapes
        self._refused: dict[Any, str] = {}  # kinds of batch, and keys of variants: why
        alone = not isinstance(example_batch, (tuple, list))
        self.example = (example_batch,) if alone else tuple(example_batch)
        self._traced = self.tracing()
        self._is_example = True
        self._call(self.example)
        self._is_example = False

    def __del__(self) -> None:
        self._end()

    def _end(self) -> None:
        for variant in getattr(self, "variants", {}).values():
            variant.close()
        self._arena = None

    @property
    def _first(self) -> Optional[Variant]:
        return next(iter(self.variants.values()), None)

    @property
    def graph(self) -> Optional[tarn.Graph]:
        return self._first.graph if self._first else None

    @property
    def plan(self) -> Optional[tarn.Plan]:
        return self._first.plan if self._first else None

    @property
    def profile(self) -> Optional[Any]:
        """What the example's ops have cost, as a tarn.torch.Profile: `save` writes it to a file, and
        tarn.torch.estimate(profile=...) takes it."""
        from .estimating.profiles import Profile  # pylint: disable=import-outside-toplevel
        return Profile.of(self._first.lowered, self.device) if self._first else None

    def __call__(self, *batch: Any) -> Any:
        """One step; returns what loss_fn returns, detached."""
        if any(p.grad is not None for p in of_optimizer(self.optimizer)):
            self.reason = "there were gradients before the step"
            return self.eager(*batch)
        if torch.is_anomaly_enabled() or _has_any_global_hook():
            self.reason = "anomalies are to be detected, or there are hooks for all modules"
            return self.eager(*batch)
        return self._call(batch)

    def eager(self, *batch: Any) -> Any:
        """The same step as PyTorch runs it. Gradients of other parameters stay as they were."""
        own = set(map(id, of_optimizer(self.optimizer)))
        others = [(p, p.grad) for p in self.model.parameters() if id(p) not in own]
        for parameter, _ in others:
            parameter.grad = None
        with torch.enable_grad():
            results = self.loss_fn(self.model, *batch)
            loss_in(results).backward()
        self.reduce()
        if self.clip:
            self.clip([p for p in self.model.parameters() if p.grad is not None])
        if self._seen is not None:
            self._seen.update((id(p), p.grad.detach().clone())
                              for p in of_optimizer(self.optimizer) if p.grad is not None)
        if self._rehearsed and self._rehearsed[0].fused:
            self._gradients = {id(p): p.grad.detach().clone() for p in of_optimizer(self.optimizer)
                               if p.grad is not None}
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        for parameter, gradient in others:
            parameter.grad = gradient
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, detached(results))

    def uncompiled(self, *batch: Any) -> Any:
        """As `eager`, without what the program compiles by torch.compile, which a capture looks
        through: what a planned step has to agree with."""
        with torch.compiler.set_stance("force_eager"):
            return self.eager(*batch)

    def report(self) -> Report:
        """What the plan needs and what eager execution would need, as a Report. Runs the step
        eagerly, and undoes it."""
        memory = allocator(self.device.type)
        written = self._first.written if self._first else ()
        eager: Optional[int] = None
        if not self.samples:  # there may be no memory for it
            with unchanged(self.optimizer,
                           [*self.model.parameters(), *self.model.buffers(), *written]):
                self.eager(*self.example)
                before = memory.tarn_live()
                memory.tarn_reset_peak()
                self.eager(*self.example)
                eager = memory.tarn_peak() - before
        compared = ("" if not self.compares else ", ".join(dict.fromkeys(self._sampled.values()))
                    if self.samples else "all")
        if self._first is None:
            return Report(eager, reason=self.reason)
        plan, program, recorded = self._first.plan, self._first.program, self._first.recorded
        moves = [op for op in plan.graph.ops if op.move]
        moved = sum(plan.graph.tensors[op.inputs[0]].size for op in moves)
        again = [op.name for op in plan.graph.ops if plan.is_recomputed(op.id)]
        return Report(eager, plan.spaces[0].footprint, plan.spaces[0].bound, again,
                      program.copied if program else {}, self.reason,
                      recorded.graphs if recorded else 0, recorded.left_out if recorded else {},
                      compared, self._first.noise, not_captured=self._why_not_captured(),
                      moves=len(moves), moved=moved,
                      host=host_size(plan) + sum(space.persistent for space in plan.spaces[1:]))

    def _why_not_captured(self) -> str:
        if self.device.type != "cuda" or self._records and not (self._first and self._first.meets):
            return ""
        communicates = self.reduction is not None or self._first and self._first.meets
        return "its ranks communicate" if communicates else "graph=False"

    # ---- Captures ----

    def _call(self, batch: Any) -> Any:
        kind = self._tried = kind_of(batch)
        self._rehearsed = None
        self._ran, self._count = False, 0
        self._warning: Optional[str] = None
        self.batch, self.reason = set(map(id, map(local, tensors_of(batch)))), None
        failure: Optional[Exception] = None
        try:
            if kind in self._refused:
                raise NotRun(self._refused[kind])
            if self.samples and kind not in self._sampled:
                self._sampled[kind] = self._sample(batch)
            results = self._traced(*batch)
            self.optimizer._opt_called = True  # for schedulers
        except NotRun as error:
            self.reason = str(error) or self.reason
        except Exception as error:  # pylint: disable=broad-except
            if (self._ran or isinstance(error, tarn.Rejected)
                    or self._is_example and isinstance(error, tarn.TarnError)):
                raise
            failure = error
        if not self._ran:
            run = self.uncompiled if self._rehearsed else self.eager
            results = None if self._is_example else run(*batch)
        differs = self._differs(local(loss_in(results)), batch) if self._rehearsed else ""
        if differs:
            failure = ValueError(f"planned and eager step have given different {differs}")
        if failure:
            self.reason = self._refused[self._tried] = reason(failure)
            warnings.warn(f"tarn.torch.step runs eagerly: {self.reason}", RuntimeWarning, 3)
        if self._warning:
            warnings.warn(f"tarn.torch.step: {self._warning}", RuntimeWarning, 3)
        if self._count == 3:
            warnings.warn("tarn.torch.step captures a batch of the same shape for the third time: "
                          "make numbers that change from step to step tensors, in the batch or "
                          "as buffers", RuntimeWarning, 3)
        return results

    def _sample(self, batch: Any) -> str:
        """Compares a planned with an eager step on a few rows of a batch; both are undone. Returns
        what was compared. Raises ValueError where they differ."""
        some, rows, whole = sampled(batch, SAMPLED)
        share = self.budget
        if isinstance(self.budget, int):  # about as much runs again
            share = 0.75
        inner = Step(self.model, self.optimizer, self.loss_fn, some, streams=self._streams,
                     budget=share, offload=self.offload, clip=self.clip, compare=False,
                     fuse=False if self.fuses is None else self.fuses, graph=False,
                     name=self.name, **self._given)
        first: Any = inner._first
        if first is None:
            raise ValueError(f"of its sample {inner.reason}")
        written = [*self.model.parameters(), *self.model.buffers(), *first.written]
        made: list[Any] = []
        for run in (inner, inner.uncompiled):
            inner._seen = {}
            with unchanged(self.optimizer, written, kept_on_host=True), \
                    seen_by_updates(first.fused and run is inner) as seen:
                loss = loss_in(run(*some))
                if run is inner and inner.reason and inner.reason != first.reason:
                    raise ValueError(f"its sample runs eagerly: {inner.reason}")
                made.append(inner._values(loss, first.written, seen or inner._seen)
                            if first.fused else inner._bits(loss, first.written)
                            if self.is_exact() else loss)
            inner._seen = None
        differs = inner._differ(first, made[0], made[1], some)
        inner._end()
        if differs:
            raise ValueError(f"planned and eager step have given different {differs} for "
                             f"{rows} of {whole} rows")
        return f"{rows} of {whole} rows"

    def _rehearse(self, variant: Any) -> None:
        """Runs a new variant, undoes that, and leaves the step to eager execution."""
        program = variant.program
        written = [program.tensors[i] for i in variant.fixed]
        with unchanged(self.optimizer, written):
            with seen_by_updates(variant.fused is not None) as gradients:
                self._run(variant)
            loss = program.results[0]
            made = (self._values(loss, written, gradients) if variant.fused else
                    self.is_exact() and self._bits(loss, written))
            self._rehearsed = (variant, written, loss.clone(), made)
        raise NotRun

    def _differs(self, loss: Any, batch: Any) -> str:
        """In what eager execution has made something else than the rehearsal, or "". On a GPU the bits
        of some ops differ from run to run, unless PyTorch is told to use no such ones. Fused kernels
        round otherwise."""
        variant, written, planned, made = self._rehearsed
        variant.to_compare -= 1
        self._rehearsed = None
        own, self._gradients = self._gradients, {}
        if variant.fused:
            values = self._values(loss, written, own, as_they_are=True)
            differs = self._differ(variant, made, values, batch)
            if differs and variant.misses < MISSES:
                variant.misses += 1
                variant.to_compare += 1
                return ""
            return differs
        if made:
            return self._differ(variant, made, self._bits(loss, written), batch)
        return self._differ(variant, planned, loss, batch)

    def _differ(self, variant: Any, one: Any, two: Any, batch: Any) -> str:
        """In what two results of _values, of _bits, or losses, of that batch differ. Where fused kernels
        differ by more than their tolerance it is measured what rounding does to eager execution
        itself: gradients of deep networks in 16 bits may be all rounding."""
        if variant.fused:
            differs = agree(one, two, variant.fused.tolerance, variant.noise)
            if differs:
                for name, share in self._noise(variant, batch).items():
                    variant.noise[name] = max(share, variant.noise.get(name, 0.0))
            return differs and agree(one, two, variant.fused.tolerance, variant.noise)
        if isinstance(one, list):
            return "" if one == two else "bits"
        return "" if torch.allclose(one, two, rtol=0.01, equal_nan=True) else "losses"

    def _noise(self, variant: Any, batch: Any) -> dict[str, float]:
        """By how much of their norms an eager step makes something else if its parameters are rounded
        otherwise. Runs two, and undoes them."""
        written = [*self.model.parameters(), *self.model.buffers(), *variant.written]
        made, before = [], self._seen
        for share in (0.0, variant.fused.rounding):
            with unchanged(self.optimizer, written, kept_on_host=self.samples):
                self._seen = {}
                if share:
                    _round_otherwise(of_optimizer(self.optimizer), share)
                loss = loss_in(self.uncompiled(*batch))
                made.append(self._values(loss, variant.written, self._seen))
        self._seen = before
        return distances(made[1], made[0])

    def is_exact(self) -> Any:
        """Do equal runs give equal bits?"""
        return self.device.type == "cpu" or torch.get_deterministic_debug_mode() == 2

    def _run(self, variant: Any) -> None:
        variant.run(self._records and variant.to_compare <= 0,
                    partial(difference, self, variant) if self.compares else None)
        if variant.not_recorded and variant.reason is None:
            self._warning = self.reason = variant.reason = variant.not_recorded
        if variant.program.arena is not self._arena:  # it was left to a library
            self._arena = variant.program.arena
            for other in self.variants.values():
                if other is not variant:
                    other.close()

    def _bits(self, loss: Any, written: Any) -> Any:
        trained = of_optimizer(self.optimizer)
        states = tensors_of([self.optimizer.state.get(p) for p in trained])
        tensors = {id(t): t.detach() for t in map(local, (loss, *written, *trained, *states))}
        return list(map(bits, tensors.values()))

    def _values(self, loss: Any, written: Any, gradients: Any, as_they_are: bool = False) -> Any:
        """What a step has made and changed, by names; copies of it."""
        trained = of_optimizer(self.optimizer)
        ids = set(map(id, trained))
        found = {"losses": [loss], "buffers": [t for t in written if id(t) not in ids],
                 "gradients": [gradients[i] for i in sorted(ids & gradients.keys())],
                 "parameters": trained}
        return {name: [t.detach() if as_they_are else t.detach().clone() for t in those]
                for name, those in found.items()}

    def planned(self, loss: Any, inputs: Any) -> Any:
        """What Dynamo calls instead of a loss that it has traced."""
        if any(not torch.is_tensor(t) or local(t) is not t for t in inputs):
            raise ValueError("the loss takes DTensors or a mesh: pass process_group= to "
                             "tarn.torch.step, so that all ranks agree that it is planned")
        places: dict[int, int] = {}
        cuda = torch.backends.cuda
        first = [places.setdefault(t.untyped_storage()._cdata, i) for i, t in enumerate(inputs)]
        key = (loss, tuple((f, distance(t, inputs[f])) for t, f in zip(inputs, first)),
               tuple(map(_kind_of, inputs)),  # PyTorch 2.11 does not guard layouts of parameters
               self.marks(inputs),
               tuple(tuple(map(id, group["params"])) for group in self.optimizer.param_groups),
               is_one_by_one(self.optimizer), torch.backends.mkldnn.enabled,
               cuda.math_sdp_enabled(), cuda.flash_sdp_enabled(), cuda.cudnn_sdp_enabled(),
               cuda.mem_efficient_sdp_enabled())  # Dynamo does not look at them
        self.meet(key)
        if key in self._refused:
            raise NotRun(self._refused[key])
        if key not in self.variants:
            shapes = tuple(t.shape for t in inputs)
            self._captures[shapes] += 1
            self._count = self._captures[shapes]
            if self._count <= CAPTURES:  # else others of this kind are not even traced
                self._tried = key
            self.variants[key] = self._capture(loss, inputs)
        variant, self._tried = self.variants[key], key
        self.reason = variant.reason
        if self._is_example:
            raise NotRun
        program = self._program(variant, inputs)
        if self.rehearses(variant):
            self._rehearse(variant)
        self._ran = True
        self._run(variant)
        return self.returned(variant, [result.clone() if torch.is_tensor(result) else result
                                       for result in program.results[:variant.results_count]])

    def footprint(self, graph: Any) -> int:
        """Of the plan without a budget, and without moves."""
        return tarn.plan(graph, **self._options).footprint

    def _capture(self, loss: Any, inputs: Any) -> Any:
        if self._count > CAPTURES:  # in here, where all ranks hear of it
            raise ValueError(f"batches of this shape have been captured {CAPTURES} times, each "
                             "time with other numbers")
        variant = Variant(self, loss, inputs, self.fuses)
        try:
            self.plan_of(variant)
        except (tarn.DoesNotFit, tarn.DeadlineExceeded):
            if variant.fused is None or variant.fused.finer is None:
                raise
            variant = Variant(self, loss, inputs, variant.fused.finer)
            self.plan_of(variant)
        self._warning = variant.reason and f"{variant.reason}; it runs unfused"
        return variant

    def plan_of(self, variant: Any) -> None:
        """Makes the plan of a variant's graph."""
        if isinstance(self.budget, float):  # a share of the first plan without a budget
            self.budget = math.ceil(self.budget * self.footprint(variant.graph))
        since = time.monotonic()
        variant.plan = tarn.plan(variant.graph, budget=self.budget, offload=self.offload,
                                 **self._options)
        if self._tries_two and not any(op.group or graphs.hindrance(op) for op in variant.lowered.ops):
            two = tarn.plan(variant.graph, **{"couple": True, **self._left(since),
                                              "assign": divided(2, self.device)})
            if (two.footprint <= (1 + MORE) * variant.plan.footprint
                    and makespan(two) < makespan(variant.plan)):
                variant.plan = two
        variant.check_moves()

    def _left(self, since: float) -> dict[str, Any]:
        """Options of a second plan, which has what the first one has left of the limit `seconds`,
        from that time on. If that is nothing, it is not searched for; 0 would be no limit."""
        limit = self._options.get("seconds")
        left = {"seconds": max(limit - (time.monotonic() - since), 1e-3)} if limit else {}
        return {**self._options, **left}

    def _program(self, variant: Any, inputs: Any) -> Any:
        """Bound to the arena that all variants share, and to where the model lies now."""
        if variant.program is None:  # before the arena, for which there may be no memory yet
            homes = Homes(variant.lowered, variant.tensors(inputs))
            moved = away(variant.lowered, variant.plan)
            homes.bring(moved)
            if not any(other.program for other in self.variants.values()):  # which may move them
                homes.fetch(variant.lowered.persistent.keys() - moved.keys())
        tensors = variant.tensors(inputs)
        size, beside = self.room(variant), variant.sizes[1]
        had = self._arena
        if (had is None or had.is_lost or had.size < size
                or (had.host.size if had.host else 0) < beside):
            for other in self.variants.values():
                other.close()
            if had:
                size, beside = max(size, had.size), max(beside, had.host.size if had.host else 0)
            self._arena = had = None  # frees it
            self._arena = self.arena_of(size, Host(beside, self.device) if beside else None)
        if not (variant.program and variant.program.addresses == [t.data_ptr() for t in tensors]):
            variant.close()
            if variant.fused:
                variant.fused.check(tensors)
            variant.program = Program(variant.lowered, variant.plan, self._arena, tensors)
        return variant.program

    def room(self, variant: Any) -> int:
        """Bytes of arena that a variant takes."""
        footprint: int = variant.sizes[0]
        return footprint + seeds_size(variant.lowered, footprint) if self._records else footprint

    def arena_of(self, size: int, host: Any) -> Arena:
        """Of that many bytes."""
        return Arena(size, self.device, host)

    # ---- What the model has ----

    def names(self) -> dict[int, str]:
        """Of the model's tensors, by id, as they are among the inputs of what is traced."""
        held = [*self.model.named_parameters(), *self.model.named_buffers()]
        return {id(local(t)): n for n, t in held}

    def parameters(self) -> Any:
        """As the optimizer knows them."""
        return list(self.model.parameters())

    def parameter(self, tensor: Any) -> Any:
        """The parameter that is this input."""
        return tensor

    def tracing(self) -> Any:
        """What calls the loss, with `planned` in the place of what was traced."""
        return Traced(self.model, self.loss_fn, weakref.WeakMethod(self.planned))

    def captured(self, loss: Any, inputs: Any, names: Any, joint: Any) -> Any:
        """Forward and backward of a loss, as a Captured."""
        return capture(loss, inputs, names, joint, strides=self.strides)

    def returned(self, _variant: Any, results: Any) -> Any:
        """What the traced loss returns."""
        return results

    def marks(self, inputs: Any) -> Any:
        """What else a capture holds for."""
        return tuple((id(t), hooked(t)) for t in inputs if t.requires_grad and t.is_leaf)

    # ---- Where there are other ranks ----

    @property
    def agrees(self) -> bool:
        """Do the ranks agree on what the loss, hooks and the optimizer communicate?"""
        return self.wire is not None and self.reduction is None

    def meet(self, key: Any) -> None:
        """Before a variant runs, or is captured. Raises NotRun where other ranks run eagerly."""

    def divide(self, lowered: Any) -> Sequence[str]:
        """Gives ops their streams; returns the streams. (Those of several threads are given by
        tarn.plan.)"""
        return self.streams if self._streams > 1 else divide(lowered, self.streams)

    def check(self, lowered: Any) -> None:
        """Raises ValueError where it communicates and the ranks do not agree on that."""
        name = "" if self.agrees else meeting(lowered)
        if name:
            raise ValueError(self.disagreement(name))

    def disagreement(self, name: str) -> str:
        """What is said where the loss, a hook, clip or the optimizer communicates by an op of that name,
        and the ranks do not agree before each step."""
        if self.reduction:
            return (f"it communicates ({name}) beside the reductions of tarn.torch.ddp: use "
                    "tarn.torch.step with process_group=, and reduce gradients in the loss or in hooks")
        return (f"it communicates ({name}), and its ranks have to agree that it is planned: pass "
                "process_group=, with all of them")

    def agree(self, lowered: Any) -> None:
        """On what was measured."""

    def reduce(self) -> None:
        """The gradients of an eager step."""

    def rehearses(self, variant: Any) -> Any:
        """Is the variant still to be compared with eager execution?"""
        return variant.to_compare > 0

    def buckets(self, parameters: Any) -> Any:
        """Those that are updated by one op."""
        return updated_together(parameters, self.device.type == "cuda", self.budget is not None)
