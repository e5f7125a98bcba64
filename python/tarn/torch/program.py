"""A planned step at work: ops are bound to addresses once, then called in the plan's order."""
import ctypes as c
import time
from collections import Counter

import torch
from torch.utils._pytree import tree_map

import tarn

from .cuda import Streams, streams
from .lowering import HIDDEN_WRITES
from .memory import allocator, summarize
from .tensors import distance, empty_as, flat, has_bytes, view_of
from .updates import Edit, Update


# ---- Profile ----

def profile(lowered, tensors, queues):
    """Runs the step once on the heap, and notes what each op costs and asks for. What the step
    changes is changed. tensors: for the placeholders. queues: how many the plan will have."""
    with torch.no_grad(), torch.autocast(lowered.device.type, enabled=False):
        if lowered.device.type == "cuda":  # libraries take what they keep for each stream
            for stream in (torch.cuda.current_stream(), *streams(queues)):
                with torch.cuda.stream(stream):
                    torch.fx.Interpreter(lowered.module).run(*tensors)
                torch.cuda.synchronize()
        _Profiler(lowered).run(*tensors)


class _Profiler(torch.fx.Interpreter):
    """Frees values after their last use."""

    def __init__(self, lowered):
        super().__init__(lowered.module)
        self._lowered, self._op = lowered, None
        self._functions = allocator(lowered.device.type)
        self._ops = {op.node: op for op in lowered.ops if op.node is not None}

    def run_node(self, n):
        op = self._op = self._ops.get(n)
        result = super().run_node(n)
        if n.op != "output":
            self._lowered.adopt(n, result)
        if op is not None:
            results = flat(self._lowered.value[n])
            op.made = {i: results[i] for i in op.made}
        return result

    def call_function(self, target, args, kwargs):
        if self._op is None:
            return target(*args, **kwargs)
        return self._measure(self._op, lambda: target(*args, **kwargs))

    def output(self, target, args, kwargs):
        """All gradients are there: the optimizer."""
        for op in self._lowered.ops:
            if isinstance(op.run, (Update, Edit)):
                call = op.run(*(self.env[node] for node in op.arguments))
                if isinstance(op.run, Update):
                    call()  # makes what it keeps
                self._measure(op, call)

    def _measure(self, op, call):
        begin = self._now()
        try:
            self._functions.tarn_frame_trace()
            result = call()
        finally:
            self._functions.tarn_frame_end()
        op.cost = self._now() - begin
        results = flat(result)
        op.made = {i: t for i, t in op.made.items() if results[i] is not None}
        op.workspace, ordinals, alive = summarize(self._functions, [results[i] for i in op.made])
        op.ordinals = dict(zip(op.made, ordinals))
        if alive > 0 or op.on_heap:
            op.on_heap, op.workspace = True, 0
        return result

    def _now(self):
        if self._lowered.device.type == "cuda":
            torch.cuda.synchronize()
        return time.perf_counter_ns()


# ---- Run ----

class Program:
    """The ops of a plan, bound to an arena and to the tensors of the placeholders."""

    def __init__(self, lowered, plan, arena, tensors):
        self.lowered, self.plan, self.arena, self.tensors = lowered, plan, arena, tensors
        self.addresses = [t.data_ptr() for t in tensors]
        self.copied = Counter()  # outputs that were not made where they belong, by op
        self._root = {tensor: lowered.storages[s].root for s, tensor in lowered.ids.items()}
        ops = list(plan.graph.ops)
        self._calls = [self._bind(op) for op in ops]
        self._streams = None
        if len({op.stream for op in ops}) > 1:
            on_gpu = lowered.device.type == "cuda"
            self._streams = Streams(plan, self._calls) if on_gpu else self._session()
        places = {s: plan.offset(tensor) for s, tensor in lowered.ids.items()}
        self.results = [self._tensor(lowered.value.get(r, r), places) for r in lowered.results]

    def run(self):
        with torch.no_grad(), torch.autocast(self.lowered.device.type, enabled=False):
            if self._streams:
                self._streams.run()
            else:
                for call in self._calls:
                    call()

    def close(self):
        if self._streams:
            self._streams.close()

    def _session(self):
        calls = self._calls
        kernel = torch.no_grad()(lambda call: calls[call.op]())  # of each thread
        session = tarn.Session(self.plan, kernel, memory=(self.arena.base, self.arena.size),
                               blocking=self.lowered.communication)
        for tensor in self.plan.graph.tensors:
            if tensor.is_persistent and tensor.root == tensor.id:  # any address: ops have their own
                session.bind_memory(tensor.id, self.arena.base)
        return session

    def _tensor(self, fake, places):
        """The tensor at its place for a fake one."""
        if not isinstance(fake, torch.Tensor):
            return fake
        if not has_bytes(fake):
            return empty_as(fake, self.lowered.device)
        root = self.lowered.root(fake)
        if root not in self.lowered.persistent:
            return self.arena.tensor(places[root], fake)
        real = self.tensors[self.lowered.persistent[root]]
        moved = distance(real, self.lowered.value[self.lowered.holders[root]])  # since the profile
        assert moved % fake.element_size() == 0
        return view_of(real.untyped_storage(), fake, moved // fake.element_size())

    def _bind(self, final):
        """What to call for an op of the plan's graph."""
        op = self.lowered.ops[self.plan.origin(final.id)]
        before, places = ({self._root[self.plan.tensor_origin(t)]: self.plan.offset(t) for t in ids}
                          for ids in (final.inputs, final.outputs))
        # What writes in place may have to write elsewhere when it runs again.
        moves = [[self.arena.bytes(at[root], self.lowered.storages[root].size)
                  for at in (places, before)] for root in before.keys() & places.keys()
                 if before[root] != places[root] and root not in self.lowered.persistent]
        call = self._bind_at(final.id, op, {**before, **places})

        def moved():
            for new, old in moves:
                new.copy_(old)
            call()

        return moved if moves else call

    def _bind_at(self, index, op, places):

        def value(node):
            return tree_map(lambda fake: self._tensor(fake, places), self.lowered.value[node])

        place = self.plan.workspace(index)
        workspace = (None, 0) if place is None else (self.arena.base + place, op.workspace)
        if op.run:
            call = op.run(*map(value, op.arguments))
            ready = op.run.ready if isinstance(op.run, Update) else None
            return self._framed(call, workspace, op, {}, ready)
        function = op.node.target
        args, kwargs = torch.fx.node.map_arg((op.node.args, op.node.kwargs), value)
        if self.plan.implementation(index) is not None:  # batch-norm makes its result again
            statistics = HIDDEN_WRITES[function._schema.name][0]
            args = [None if i in statistics else value for i, value in enumerate(args)]
        targets = {i: self._tensor(fake, places) for i, fake in op.made.items()
                   if self.lowered.root(fake) in places}
        return self._framed(lambda: function(*args, **kwargs), workspace, op, targets)

    def _framed(self, call, workspace, op, targets, ready=None):
        """A call whose results are made at their places, or copied there; its temporaries lie in
        the workspace as soon as it is ready."""
        if not targets and not workspace[1]:
            return call
        slots = []  # each is three numbers: struct Slot of tape.h
        for i, target in targets.items():
            start = target.data_ptr() - op.made[i].storage_offset() * target.element_size()
            slots += [op.ordinals[i], op.made[i].untyped_storage().nbytes(), start]
        native, count = (c.c_int64 * len(slots))(*slots), len(targets)
        functions = allocator(self.lowered.device.type)
        begin, end = functions.tarn_frame_begin, functions.tarn_frame_end
        copied = self.copied  # and not self: programs end with their last reference

        def run():
            if ready and not ready():
                return call()
            try:
                begin(native, count, *workspace)
                results = call()
            finally:
                left = end()
            if left:
                raise RuntimeError(f"{op.name} has kept memory that was its workspace")
            results = flat(results) if targets else ()
            for i, target in targets.items():
                if results[i].data_ptr() != target.data_ptr():
                    target.copy_(results[i])
                    copied[op.name] += 1

        return run
