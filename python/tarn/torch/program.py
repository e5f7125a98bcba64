"""A planned step at work: ops are bound to addresses once, then called in the plan's order."""
from __future__ import annotations

import ctypes as c
import time
from collections import Counter
from functools import partial
from typing import Any, Optional

import torch
from torch.utils._pytree import tree_map

import tarn

from . import collectives
from .cuda import Streams, in_order, streams
from .drawing import Captured, Draws
from .lowering import HIDDEN_WRITES
from .memory import Arena, Frame, allocator, frames, summarize
from .moving import Homes, Mover, placed
from .strides import Watching
from .tensors import distance, empty_as, flat, flattener, has_bytes, view_of
from .updates import Edit, Update, add_state, is_one_by_one, restored, unchanged


# ---- Profile ----

def profile(lowered: Any, tensors: Any, queues: Any) -> None:
    """Runs the step once on the heap, and notes what each op costs and asks for. What the step
    changes is changed. tensors: for the placeholders. queues: how many the plan will have."""
    with torch.no_grad(), torch.autocast(lowered.device.type, enabled=False):
        if lowered.device.type == "cuda":  # libraries take what they keep for each stream
            for stream in (torch.cuda.current_stream(), *streams(queues)):
                with torch.cuda.stream(stream):
                    Watching(lowered.module).run(*tensors)
                torch.cuda.synchronize()
        _Profiler(lowered).run(*tensors)
        if lowered.device.type == "cuda":
            allocator("cuda").tarn_cuda_trim()


BUSY_CYCLES, BUSY_NS = 2_000_000, 700_000  # of a GPU's clock, and less than any GPU takes for them


def _timed(call: Any) -> tuple[Any, int]:
    """(what it returns, nanoseconds)"""
    begin = time.perf_counter_ns()
    return call(), time.perf_counter_ns() - begin


def timed_on_gpu(call: Any) -> tuple[Any, int]:
    """The same between two events of the GPU, which is kept busy meanwhile, so that it does not wait
    for the host between them. Where the host takes longer than that, in cudaMalloc for example, the
    GPU may have waited for the rest, which is taken off: up to a half, because the host may as well
    have waited for the GPU."""
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    torch.cuda.synchronize()
    torch.cuda._sleep(BUSY_CYCLES)
    begin.record()
    result, host = _timed(call)
    end.record()
    torch.cuda.synchronize()
    elapsed = int(1e6 * begin.elapsed_time(end))
    return result, max(1, elapsed // 2, elapsed - max(0, host - BUSY_NS))


class _Profiler(Watching):
    """Frees values after their last use."""

    def __init__(self, lowered: Any) -> None:
        super().__init__(lowered.module)
        self._lowered = lowered
        self._op: Any = None
        self._functions, self._on_gpu = allocator(lowered.device.type), lowered.device.type == "cuda"
        self._ops = {op.node: op for op in lowered.ops if op.node is not None}

    def run_node(self, n: Any) -> Any:
        op = self._op = self._ops.get(n)
        result = super().run_node(n)
        if n.op != "output":
            self._lowered.adopt(n, result)
        if op is not None:
            results = flat(self._lowered.value[n])
            op.made = {i: results[i] for i in op.made}
        return result

    def call_function(self, target: Any, args: Any, kwargs: Any) -> Any:
        if self._op is None:
            return args[0] if collectives.is_wait(target) else target(*args, **kwargs)
        if self._op.group:  # other ranks may not profile, or another step
            fake = self._op.node.meta["val"]
            return self._measure(self._op, lambda: collectives.stand_in(target, args, kwargs, fake))
        return self._measure(self._op, lambda: target(*args, **kwargs))

    def output(self, target: Any, args: Any, kwargs: Any) -> None:
        """All gradients are there: the optimizer."""
        for op in self._lowered.ops:
            if isinstance(op.run, (Update, Edit)):
                if op.group:  # other ranks may not profile
                    op.on_heap = True
                    continue
                call = op.run(*(self.env[node] for node in op.arguments))
                if isinstance(op.run, Update):
                    call()  # makes what it keeps
                self._measure(op, call)

    def _measure(self, op: Any, call: Any) -> Any:
        def traced() -> Any:
            try:
                self._functions.tarn_frame_trace()
                return call()
            finally:
                self._functions.tarn_frame_end()

        result, op.cost = (timed_on_gpu if self._on_gpu else _timed)(traced)
        results = flat(result)
        if op.node is not None:
            self._lowered.found(op, results)
        op.made = {i: t for i, t in op.made.items() if results[i] is not None}
        op.workspace, ordinals, alive = summarize(self._functions, [results[i] for i in op.made])
        op.ordinals = dict(zip(op.made, ordinals))
        if alive > 0 or op.on_heap:
            op.on_heap, op.workspace = True, 0
        return result


class _Apart(_Profiler):
    """Runs each op alone, on bytes that it has for that time only."""

    def __init__(self, lowered: Any, tensors: Any, optimizer: Any) -> None:
        super().__init__(lowered)
        self._tensors, self._optimizer = tensors, optimizer

    def profile(self) -> None:
        persistent = iter(self._tensors)
        for node in self._lowered.module.graph.nodes:
            if node.op in ("placeholder", "get_attr"):
                self._lowered.adopt(node, next(persistent))
            elif node in self._ops:
                op = self._op = self._ops[node]
                made = self.watched(node, self._lowered.value.__getitem__, partial(self._alone, node))
                self._lowered.adopt(node, made, apart=True)
                results = flat(self._lowered.value[node])
                op.made = {i: results[i] for i in op.made}
            elif node.op != "output":  # a view: of what stands for its argument
                self._lowered.value[node] = self.watched(
                    node, self._lowered.value.__getitem__, partial(self._viewed, node))
        for op in self._lowered.ops:
            if isinstance(op.run, (Update, Edit)):
                self._update(op)

    def _viewed(self, node: Any) -> Any:
        value = self._lowered.value
        args, kwargs = torch.fx.node.map_arg((node.args, node.kwargs), value.__getitem__)
        return args[0] if collectives.is_wait(node.target) else node.target(*args, **kwargs)

    def _alone(self, node: Any) -> Any:
        written = set(self._lowered._written(node))
        storages: dict[Any, Any] = {}
        args, kwargs = torch.fx.node.map_arg(
            (node.args, node.kwargs), lambda n: tree_map(
                lambda fake: self._filled(fake, storages, written), self._lowered.value[n]))

        def call() -> Any:
            if self._op.group:
                return collectives.stand_in(node.target, args, kwargs, node.meta["val"])
            return node.target(*args, **kwargs)

        if self._lowered.device.type == "cuda":
            call()  # what is made once
        return self._measure(self._op, call)

    def _filled(self, fake: Any, storages: Any, written: Any = ()) -> Any:
        """A tensor like a fake one: the step's own if it stays as it is, else ones; or zeros where it
        may be an index."""
        lowered = self._lowered
        if not isinstance(fake, torch.Tensor):
            return fake
        root = lowered.root(fake)
        if root is None:
            return empty_as(fake, lowered.device)
        if root in lowered.elsewhere:
            return view_of(lowered.elsewhere[root].untyped_storage(), fake, 0)
        position = lowered.persistent.get(root)
        if position is not None and root not in written:
            real = self._tensors[position]
            moved = distance(real, lowered.value[lowered.holders[root]])
            return view_of(real.untyped_storage(), fake, moved // fake.element_size())
        if root not in storages:
            storages[root] = torch.UntypedStorage(lowered.storages[root].size,
                                                  device=lowered.device)
            floats = fake.is_floating_point() or fake.is_complex()
            torch.empty(0, dtype=fake.dtype, device=lowered.device).set_(storages[root]).fill_(
                1 if floats else 0)
        return view_of(storages[root], fake, 0)

    def _update(self, op: Any) -> None:
        storages: dict[Any, Any] = {}
        gradients = [self._filled(self._lowered.value[n], storages) for n in op.arguments]
        undone = restored if is_one_by_one(self._optimizer) else unchanged
        with undone(self._optimizer, op.run.parameters):
            call = op.run(*gradients)
            if isinstance(op.run, Update):
                call()
            self._measure(op, call)
            if isinstance(op.run, Update):
                add_state(self._lowered, op)


def profile_apart(lowered: Any, tensors: Any, optimizer: Any) -> None:
    """As `profile`, each op for itself: needs no more memory than one op does, and nothing is changed.
    With the state of the optimizer."""
    with torch.no_grad(), torch.autocast(lowered.device.type, enabled=False), \
            torch.random.fork_rng([lowered.device] if lowered.device.type == "cuda" else []):
        _Apart(lowered, tensors, optimizer).profile()
        if lowered.device.type == "cuda":
            allocator("cuda").tarn_cuda_trim()


# ---- Run ----

LOST: list[Any] = []  # arenas of whose bytes a library keeps some


def away(lowered: Any, plan: Any) -> dict[Any, Any]:
    """Of what persists and moves, as it lives in another memory than the arena's: by root, the tensor
    of the plan's graph."""
    root_of = {tensor: lowered.storages[s].root for s, tensor in lowered.ids.items()}
    return {root_of[plan.tensor_origin(t.id)]: t.id for t in plan.graph.tensors
            if t.is_persistent and t.root == t.id and t.space}


class Program:
    """The ops of a plan, bound to an arena and to the tensors of the placeholders."""

    def __init__(self, lowered: Any, plan: Any, arena: Any, tensors: Any) -> None:
        self.lowered, self.plan, self.tensors = lowered, plan, tensors
        self.addresses = [t.data_ptr() for t in tensors]
        self.copied: Counter[str] = Counter()  # outputs that were not made where they belong, by op
        self.keepers: list[str] = []  # ops that have kept memory which was their workspace
        self.has_run = False
        roots = ((tensor, lowered.storages[s].root) for s, tensor in lowered.ids.items())
        self._root = {tensor: lowered.twins.get(root, root) for tensor, root in roots}
        self.ops, self.held = list(plan.graph.ops), list(plan.graph.tensors)
        self.homes = Homes(lowered, tensors)
        self._away = away(lowered, plan)
        self._again = {plan.origin(op.id) for op in self.ops if plan.is_recomputed(op.id)}
        self._draws = Draws(lowered.device)
        self._queues = {op.stream for op in self.ops}
        self._kernels = {op.stream for op in self.ops if not op.move}  # streams of more than copies
        self._on_gpu = lowered.device.type == "cuda"
        self._streams: Any = None  # of a GPU
        self._own: Optional[tarn.Session] = None  # of several streams on the CPU
        self._bind_to(arena)

    def _bind_to(self, arena: Any) -> None:
        self.arena = arena
        mover = Mover(self)
        self.calls = [mover.bind(op) if op.move else self.bind(op) for op in self.ops]
        if len(self._queues) > 1 and self._on_gpu:
            self._streams = Streams(self.plan, self.calls)
        places = {s: self.plan.offset(tensor) for s, tensor in self.lowered.ids.items()
                  if self._is_in_arena(tensor)}
        self.results = [self._tensor(self.lowered.value.get(r, r), places)
                        for r in self.lowered.results]

    def root_of(self, tensor: Any) -> Any:
        """The root in `lowered` whose content a tensor of the plan's graph holds."""
        return self._root[self.plan.tensor_origin(tensor)]

    def _is_in_arena(self, tensor: Any) -> bool:
        told = self.held[tensor]
        return not told.is_persistent and told.space == 0

    def run(self) -> None:
        with torch.no_grad(), torch.autocast(self.lowered.device.type, enabled=False):
            if self._on_gpu:  # cuBLAS takes its workspace for each thread and stream: here
                all_streams = [torch.cuda.current_stream(), *streams(len(self._queues))]
                for number in sorted(self._kernels):
                    with torch.cuda.stream(all_streams[number]):
                        torch.cuda.current_blas_handle()
            done = self._run_from(0)
            while done < len(self.calls):
                self.move()
                done = self._run_from(done)
            if self.keepers:
                self.move()
        self.has_run = True

    def bring_home(self) -> None:
        """What moves and persists lies in the host's memory then, wherever it was put meanwhile."""
        self.homes.bring(self._away)

    def run_part(self, first: int, last: int, calls: Any = None) -> None:
        """Some ops, on a GPU, after those before them. calls: in their place. Where a library has kept
        memory, the program lies in another arena afterwards."""
        own = self.calls[first:last] if calls is None else calls
        if self._streams:
            self._streams.run_part(first, last, own)
        else:
            for call in own:
                call()
        if self.keepers and calls is None:
            self.move()

    def _run_from(self, start: Any) -> Any:
        """Returns how many ops have been called: all, or up to one that has kept memory."""
        if len(self._kernels) > 1 and not self._on_gpu and all(map(self.homes.of, self._away)):
            self._session().run()
            return len(self.calls)
        run = self._streams.run if self._streams else in_order(self.calls)
        return run(start, self.keepers)

    def move(self) -> None:
        """A library has kept bytes of the arena, as cuBLAS does where a thread or a stream is new to
        it: the arena is left to it, and the step goes on in another one."""
        if self._on_gpu:
            torch.cuda.synchronize()
        old = self.arena
        if old.is_registered:
            raise RuntimeError("a library keeps bytes of the arena that is registered with the other "
                               "ranks: run a step of the same kind before, so that it has its own")
        self._leave()  # also if there is no memory for the other one
        new = Arena(old.size, self.lowered.device, old.host)
        new.bytes(0, old.size).copy_(old.bytes(0, old.size))
        self._bind_to(new)

    def _leave(self) -> None:
        self.arena.is_lost = True
        LOST.append(self.arena)
        self.keepers.clear()

    def close(self) -> None:
        if self.keepers and not self.arena.is_registered:  # an op has failed, and keeps bytes
            self._leave()
        if self._streams:
            self._streams.close()
        if self._own and self.arena.session is self._own:
            self.arena.lend(None)

    def _session(self) -> tarn.Session:
        """That of this program. The arena has one session at a time: that of another program, which
        ran last, is closed."""
        if not self._own or self.arena.session is not self._own:
            self.arena.lend(None)
            self._own = self._open()
            self.arena.lend(self._own)
        for root, tensor in self._away.items():
            storage, begin = self.homes.of(root)
            self._own.bind_memory(tensor, storage.data_ptr() + begin)
        return self._own

    def _open(self) -> tarn.Session:
        calls, keepers, wire = self.calls, self.keepers, self.lowered.wire

        def kernel(call: tarn.Call) -> None:
            try:
                with torch.no_grad():  # of each thread
                    calls[call.op]()
                if keepers:
                    raise RuntimeError(f"{keepers[0]} has kept memory that was its workspace")
            except BaseException as error:
                if wire:  # a thread of this rank may wait for the others, who do not come
                    wire.failed(error)
                raise

        host = self.arena.host
        memory = [(self.arena.base, self.arena.size), *([(host.base, host.size)] if host else [])]
        memory = memory[:len(self.plan.graph.spaces)]
        others = collectives.may_communicate()  # each would have its first thread on the same core
        session = tarn.Session(self.plan, kernel, memory=memory, bind="none" if others else "auto",
                               blocking=self.lowered.communication)
        for tensor in self.plan.graph.tensors:
            if tensor.is_persistent and tensor.root == tensor.id:  # any address: ops have their own
                session.bind_memory(tensor.id, self.arena.base)
        return session

    def _tensor(self, fake: Any, places: Any, captured: Optional[Captured] = None) -> Any:
        """The tensor at its place for a fake one. captured: for a capture."""
        if not isinstance(fake, torch.Tensor):
            return fake
        if not has_bytes(fake):
            return empty_as(fake, self.lowered.device)
        root = self.lowered.root(fake)
        if root in self.lowered.elsewhere:
            if captured:
                return captured.tensor(root, fake)
            return view_of(self.lowered.elsewhere[root].untyped_storage(), fake, 0)
        if root in places or root not in self.lowered.persistent:
            return self.arena.tensor(places[root], fake)
        real = self.tensors[self.lowered.persistent[root]]
        moved = distance(real, self.lowered.value[self.lowered.holders[root]])  # since the profile
        assert moved % fake.element_size() == 0
        return view_of(real.untyped_storage(), fake, moved // fake.element_size())

    def bind(self, final: Any, captured: Optional[Captured] = None) -> Any:
        """What to call for an op of the plan's graph. captured: for a capture, where it draws
        otherwise."""
        op = self.lowered.ops[self.plan.origin(final.id)]
        before, places = ({self.root_of(t): self.plan.offset(t) for t in ids if self._is_in_arena(t)}
                          for ids in (final.inputs, final.outputs))
        # What writes in place may have to write elsewhere when it runs again.
        moves = [[self.arena.bytes(at[root], self.lowered.storages[root].size)
                  for at in (places, before)] for root in before.keys() & places.keys()
                 if before[root] != places[root]]
        call = self._bind_at(final.id, op, {**before, **places}, captured)
        if self.draws_again(final):
            draws, key = captured or self._draws, self.plan.origin(final.id)
            call = (draws.again(final.id, key, call) if self.plan.is_recomputed(final.id)
                    else draws.first(key, call))

        def moved() -> None:
            for new, old in moves:
                new.copy_(old)
            call()

        return moved if moves else call

    def draws_again(self, final: Any) -> bool:
        """Does an op draw numbers that one of the same kind has drawn, or will?"""
        if final.move:
            return False
        origin = self.plan.origin(final.id)
        return self.lowered.ops[origin].redraws and origin in self._again

    def _bind_at(self, index: Any, op: Any, places: Any, captured: Optional[Captured]) -> Any:

        def value(node: Any) -> Any:
            return tree_map(lambda fake: self._tensor(fake, places, captured), self.lowered.value[node])

        place = self.plan.workspace(index)
        workspace = (None, 0) if place is None else (self.arena.base + place, op.workspace)
        if op.run:
            if not isinstance(op.run, Update):
                return self._framed(op.run(*map(value, op.arguments)), workspace, op, {})
            call = op.run(*map(value, op.arguments), placed=placed(self, op.run, places))
            ready = op.run.ready
            return self._framed(call, workspace, op, {}, ready)
        function = op.node.target
        args, kwargs = torch.fx.node.map_arg((op.node.args, op.node.kwargs), value)
        if self.plan.implementation(index) is not None:  # batch-norm makes its result again
            statistics = HIDDEN_WRITES[function._schema.name][0]
            args = [None if i in statistics else value for i, value in enumerate(args)]
        roots = {i: self.lowered.root(fake) for i, fake in op.made.items()}
        if captured and self.lowered.elsewhere.keys() & roots.values():
            op = captured.traced(op, lambda: function(*args, **kwargs), roots)
        targets = {i: self._tensor(fake, places, captured) for i, fake in op.made.items()
                   if roots[i] in places}
        if captured:
            targets = {i: t for i, t in targets.items() if t.device.type == self.lowered.device.type}
        if op.group:  # without a frame: its threads free what they have asked for at any time
            return collectives.bound(op.name, function, args, kwargs,
                                     [targets[i] for i in sorted(targets)], self.lowered.wire)
        into = getattr(function, "into", None)
        if into and len(targets) == len(flat(self.lowered.value[op.node])):  # asks for nothing
            function, args, targets = into, [*args, *(targets[i] for i in sorted(targets))], {}
        return self._framed(partial(_direct(function), *args, **kwargs), workspace, op, targets)

    def _framed(self, call: Any, workspace: Any, op: Any, targets: Any, ready: Any = None) -> Any:
        """A call whose results are made at their places, or copied there; its temporaries lie in
        the workspace as soon as it is ready."""
        if not targets and not workspace[1]:
            return call
        slots = []
        for i, target in targets.items():
            start = target.data_ptr() - op.made[i].storage_offset() * target.element_size()
            slots += [op.ordinals[i], op.made[i].untyped_storage().nbytes(), start]
        opened = Frame(slots, workspace)
        begin, end = frames(self.lowered.device.type)
        at, name, keepers = c.addressof(opened), op.name, self.keepers
        # And not self: programs end with their last reference.
        copied, device = self.copied, self.lowered.device.type
        like = self.lowered.value[op.node] if targets else None
        are_flat, flattened = targets and flat(like) is like, flattener(like)
        places = [(i, target, target.data_ptr()) for i, target in targets.items()]
        place, address = places[0][1:] if isinstance(like, torch.Tensor) else (None, 0)

        def copy(target: Any, result: Any) -> None:
            target.copy_(result)
            if target.device.type == device:
                copied[name] += 1

        def framed() -> None:
            try:
                begin(at)
                results = call()
            finally:
                if end():
                    keepers.append(name)
            if address:  # most ops have one result
                if results.data_ptr() != address:
                    copy(place, results)
            elif places:
                results = results if are_flat else flattened(results)
                for i, target, start in places:
                    if results[i].data_ptr() != start:
                        copy(target, results[i])

        framed.opened = opened  # type: ignore[attr-defined]  # lies at `at`
        return framed if ready is None else lambda: framed() if ready() else call()


def _direct(function: Any) -> Any:
    """An operator of ATen without what it looks at for tensors of the program's own classes."""
    return function._op if type(function) is torch._ops.OpOverload else function
