"""tarn.torch.step: a training step at planned addresses."""
import contextlib
import math
import traceback
import warnings
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

import tarn

from .capture import capture, first_tensor
from .lowering import Lowered, Op
from .memory import ALIGNMENT, Arena, allocator
from .program import Program, profile


@contextlib.contextmanager
def unchanged(model, optimizer):
    """Whatever happens inside to parameters, buffers, optimizer and random numbers is undone."""
    tensors = [*model.parameters(), *model.buffers()]
    state = optimizer.state
    known = {p: dict(state[p]) for p in state}
    tensors += [v for values in known.values() for v in values.values()
                if isinstance(v, torch.Tensor)]
    saved = [(t, t.detach().clone()) for t in tensors]
    random = torch.get_rng_state()
    try:
        yield
    finally:
        with torch.no_grad():
            for tensor, value in saved:
                tensor.copy_(value)
        state.clear()
        state.update(known)
        torch.set_rng_state(random)


class Update:
    """The optimizer at work on some of its parameters: an optimizer of the same class that shares
    state and hyperparameters, so that schedulers and state_dict work as ever."""

    is_local = True

    def __init__(self, optimizer, parameters):
        self.optimizer, self.parameters = optimizer, parameters
        self._own, self._last = object.__new__(type(optimizer)), None
        self._own.__dict__.update(optimizer.__dict__)
        self._own.__dict__.pop("step", None)  # of a scheduler
        members = [[p for p in group["params"] if any(p is q for q in parameters)]
                   for group in optimizer.param_groups]
        self._groups = [i for i, mine in enumerate(members) if mine]
        self._own.param_groups = [{"params": members[i]} for i in self._groups]

    def __call__(self, *gradients):
        def run():
            for i, mine in zip(self._groups, self._own.param_groups):
                live = self.optimizer.param_groups[i].items()
                mine.update((k, v) for k, v in live if k != "params")
            self._own.state = self.optimizer.state
            for parameter, gradient in zip(self.parameters, gradients):
                parameter.grad = gradient
            self._own.step()
            for parameter in self.parameters:
                parameter.grad = None
            self._last = self._entries()

        return run

    def _entries(self):
        state = self.optimizer.state
        return [id(state), *(len(state.get(p, ())) for p in self.parameters)]

    def ready(self):
        """Has the optimizer made the state that it keeps? What it allocates then is temporary."""
        return self._last == self._entries()

    def state(self):
        return [value for p in self.parameters for value in self.optimizer.state[p].values()
                if isinstance(value, torch.Tensor) and value.numel()]


def _is_tensor(value):
    return isinstance(value, torch.Tensor)


def _own_copy(value):
    if not _is_tensor(value):
        return value
    made = torch.empty_strided(value.shape, value.stride(), dtype=value.dtype)
    _once(made).copy_(_once(value))
    return made


def _once(tensor):
    """Without the repetitions of an expanded tensor."""
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(dimension, 0, min(1, tensor.shape[dimension]))
    return tensor


def _layout(tensor):
    """Kernels are chosen by it. Its place in its storage is the last member."""
    own = (tensor.stride(), tensor.storage_offset()) if tensor.layout is torch.strided else ()
    return (tensor.shape, tensor.dtype, tensor.requires_grad, tensor.layout, *own)


class Variant:
    """The step for batches of one shape: captured, lowered, profiled, planned."""

    def __init__(self, step, batch):
        batch = pytree.tree_map(_own_copy, batch)
        self.batch = list(filter(_is_tensor, pytree.tree_leaves(batch)))
        self.captured = capture(step.model, step.loss_fn, batch, step.clip, step.reduces)
        self.lowered = Lowered(self.captured)
        self.program = None
        for result in self.lowered.results[:self.captured.results_count]:
            self._mark(result, "output")
        updates, groups = self._add_updates(step)
        self.lowered.drop_dead()
        with unchanged(step.model, step.optimizer):
            profile(self.lowered, self.tensors(step.model))
            for op in updates:
                self._add_state(op)
        step.agree(self.lowered)
        self.graph = self.lowered.graph(step.name, step.streams, groups)

    def tensors(self, model):
        """For the placeholders."""
        return [*model.parameters(), *model.buffers(), *self.batch]

    def _mark(self, result, kind):
        """The root under a result, which becomes one of that kind."""
        if not isinstance(result, torch.fx.Node):
            return None
        root = self.lowered.root(self.lowered.value[result])
        if root is not None and root not in self.lowered.persistent:
            self.lowered.storages[root].kind = kind
        return root

    def _add_updates(self, step):
        """Ops of the optimizer, each as early as the gradients are there and nobody needs the
        parameters any more; before them, reductions over all ranks. Returns the updates, and the
        groups of gradients that are reduced as one."""
        lowered, last = self.lowered, {}
        for index, op in enumerate(lowered.ops):
            last.update((lowered.storages[s].root, index) for s in op.inputs + op.outputs)
        gradients = lowered.results[self.captured.results_count:]
        placeholders = [lowered.value[n] for n in lowered.module.graph.find_nodes(op="placeholder")]
        roots = dict(zip(self.captured.names, map(lowered.root, placeholders)))
        parameters, ready = dict(step.model.named_parameters()), []
        for name, node in zip(self.captured.trained, gradients):
            gradient = self._mark(node, "gradient")
            ready.append((last.get(gradient, -1), roots[name], gradient, parameters[name], node))
        updates, groups, added = [], [], {}
        for bucket in step.buckets(sorted(ready, key=lambda item: item[0])):
            positions, roots, gradients, own, nodes = map(list, zip(*bucket))
            if step.reduces:
                made = [lowered.latest[g] for g in gradients]
                reduction = step.reduction(lowered, len(groups), made,
                                           [lowered.write(g, "reduced") for g in gradients], nodes)
                added.setdefault(max(positions), []).append(reduction)
                groups.append(gradients)
            op = Op(f"update{len(updates)}", f"optimizer.{type(step.optimizer).__name__}",
                    [lowered.latest[r] for r in dict.fromkeys(gradients + roots) if r is not None],
                    [lowered.write(r, "updated") for r in dict.fromkeys(roots) if r is not None],
                    run=Update(step.optimizer, own), arguments=nodes)
            updates.append(op)
            added.setdefault(max(positions + [last.get(r, -1) for r in roots]), []).append(op)
        ops = added.get(-1, [])
        for index, op in enumerate(lowered.ops):
            ops += [op] + added.get(index, [])
        lowered.ops = ops
        return updates, groups

    def _add_state(self, op):
        """What the optimizer has made for these parameters persists, wherever it lies."""
        for i, value in enumerate(op.run.state()):
            root = self.lowered.storage(f"{op.name}.state{i}", value.untyped_storage().nbytes(),
                                        "optimizer_state")
            self.lowered.persistent[root] = None
            op.inputs.append(root)
            op.outputs.append(self.lowered.write(root, op.name))


class Step:
    """See tarn.torch.step. `graph` and `plan` are those of the example batch; `reason` says why a
    batch had to run eagerly, else it is None."""

    reduces = False
    streams = ("compute",)

    def __init__(self, model, optimizer, loss_fn, example_batch, *, streams=1, budget=None,
                 clip=None, name=None, **options):
        self.model, self.optimizer, self.loss_fn, self.clip = model, optimizer, loss_fn, clip
        self.name = name or type(model).__name__
        self.reason = None
        self._budget, self._options = budget, {"alignment": ALIGNMENT, **options}
        if streams > 1:  # a wait costs a change of threads
            self._options["assign"] = {"streams": streams, "wait_ns": 20000}
        self._arena, self._variants = None, {}
        self.example = example_batch
        self._first = self._variant(example_batch)

    graph = property(lambda self: self._first and self._first.graph)
    plan = property(lambda self: self._first and self._first.plan)

    def __call__(self, *batch):
        """One step; returns what loss_fn returns, detached."""
        variant = self._variant(batch)
        if variant is None:
            return self.eager(*batch)
        program = self._program(variant)
        for own, given in zip(variant.batch, filter(_is_tensor, pytree.tree_leaves(batch))):
            _once(own).copy_(_once(given))
        program.run()
        self.optimizer._opt_called = True  # for schedulers
        count = variant.captured.results_count
        results = [r.clone() if _is_tensor(r) else r for r in program.results[:count]]
        return pytree.tree_unflatten(results, variant.captured.results)

    def eager(self, *batch):
        """The same step as PyTorch runs it."""
        with torch.enable_grad():
            result = self.loss_fn(self.model, *batch)
            first_tensor(result).backward()
        if self.clip:
            self.clip([p for p in self.model.parameters() if p.grad is not None])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return pytree.tree_map(lambda r: r.detach() if _is_tensor(r) else r, result)

    def report(self):
        """What the plan needs and what eager execution would need, as a Report. Runs the step
        eagerly, and undoes it."""
        memory = allocator()
        with unchanged(self.model, self.optimizer):
            self.eager(*self.example)
            before = memory.tarn_live()
            memory.tarn_reset_peak()
            self.eager(*self.example)
            eager = memory.tarn_peak() - before
        if self._first is None:
            return Report(eager, reason=self.reason)
        plan, copied = self.plan, {}
        if self._first.program:
            copied = dict(self._first.program.copied)
        again = [plan.graph.ops[v.id].name for v in plan.graph.ops if plan.is_recomputed(v.id)]
        return Report(eager, plan.footprint, plan.bound, again, copied, self.reason)

    # ---- Shapes ----

    def _key(self, batch):
        leaves, spec = pytree.tree_flatten(batch)
        given = tuple(_layout(t)[:5] if _is_tensor(t) else (type(t), repr(t)) for t in leaves)
        kept = tuple(map(_layout, [*self.model.parameters(), *self.model.buffers()]))
        return (given, spec, kept, tuple(m.training for m in self.model.modules()),
                tuple(len(group["params"]) for group in self.optimizer.param_groups),
                torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"))

    def _variant(self, batch):
        """None: it has to run eagerly."""
        key = self._key(batch)
        if key not in self._variants:
            self._variants[key] = self._capture(batch)
        return self._variants[key]

    def _capture(self, batch):
        try:
            tensors = [*self.model.parameters(), *self.model.buffers()]
            if any(t.device.type != "cpu" for t in tensors):
                raise ValueError("only tensors on the CPU are planned")
            variant = Variant(self, batch)
        except Exception as error:  # pylint: disable=broad-except
            text = (str(error).strip() or "no text").splitlines()[0]
            self.reason = f"the step could not be captured: {type(error).__name__}: {text}"
            ours = (str(Path(__file__).parent), str(Path(torch.__file__).parent))
            users = [frame for frame in traceback.extract_tb(error.__traceback__)
                     if not frame.filename.startswith(ours)]
            if users:
                self.reason += f" ({users[-1].filename}, line {users[-1].lineno})"
            warnings.warn(f"tarn.torch.step runs eagerly: {self.reason}", RuntimeWarning, 5)
            return None
        options, budget = self._options, self._budget
        if isinstance(budget, float):  # a share of the plan without a budget
            budget = math.ceil(budget * tarn.plan(variant.graph, **options).footprint)
        variant.plan = tarn.plan(variant.graph, budget=budget, **options)
        return variant

    def _program(self, variant):
        """Bound to the arena that all variants share, and to where the model lies now."""
        tensors = variant.tensors(self.model)
        if self._arena is None or self._arena.size < variant.plan.footprint:
            for other in self._variants.values():
                if other and other.program:
                    other.program.close()
                    other.program = None
            self._arena = None
            self._arena = Arena(variant.plan.footprint)
        addresses = [t.data_ptr() for t in tensors]
        if variant.program is None or variant.program.addresses != addresses:
            if variant.program:
                variant.program.close()
            variant.program = Program(variant.lowered, variant.plan, self._arena, tensors)
            variant.program.addresses = addresses
        return variant.program

    # ---- Updates ----

    def agree(self, lowered):
        """With other ranks; here there are none."""

    def buckets(self, ready):
        """Parameters that are updated by one op: neighbours, a hundredth of all at least."""
        share = sum(item[3].nbytes for item in ready) / 100
        return divided(ready, share, share, lambda before, item: False)


def divided(ready, limit, others, parts):
    """Buckets of neighbours: the first of `limit` bytes at least, and those behind it of `others`,
    unless `parts` keeps two neighbours apart."""
    bucket, size = [], 0
    for item in ready:
        if bucket and (size >= limit or parts(bucket[-1], item)):
            yield bucket
            bucket, size, limit = [], 0, others
        bucket.append(item)
        size += item[3].nbytes
    if bucket:
        yield bucket


class Report:
    """Bytes and names. `eager`: the most that eager execution has alive at once beyond what stays;
    `arena`: what the plan needs in its place, `bound`: what every plan of this order needs."""

    def __init__(self, eager, arena=None, bound=None, recomputed=(), copied=None, reason=None):
        self.eager, self.arena, self.bound = eager, arena, bound
        self.recomputed, self.copied, self.reason = list(recomputed), copied or {}, reason

    def __str__(self):
        if self.arena is None:
            return f"eager: {self.eager} bytes; {self.reason}"
        text = (f"arena {self.arena} bytes ({self.arena / self.eager - 1:+.1%} against eager's "
                f"{self.eager}), bound {self.bound}")
        if self.recomputed:
            text += f"; {len(self.recomputed)} ops run again: {', '.join(self.recomputed[:8])}"
            text += " ..." if len(self.recomputed) > 8 else ""
        return text


def step(model, optimizer, loss_fn, example_batch, *, streams=1, reorder=False, budget=None,
         clip=None, name=None, **options):
    """A callable that does what this does, in one planned arena, with the same bits:

        loss = loss_fn(model, *batch); loss.backward(); optimizer.step(); optimizer.zero_grad()

        step = tarn.torch.step(model, optimizer, loss_fn, (x, y), reorder=True)
        for x, y in loader:
            loss = step(x, y)

    streams   more than 1: ops are divided among threads
    reorder   another order of the ops, in which less is alive at once
    budget    bytes, or a share of the plan without one (0.75): ops run again until it fits
    clip      called with the parameters when their gradients are there, before the optimizer
    options   further ones of tarn.plan

    Every shape of batch is captured and planned once, when it is first seen; all share one arena.
    Where that fails the step runs eagerly, with a warning that says why, and `reason` does, too.
    """
    return Step(model, optimizer, loss_fn, example_batch, streams=streams, reorder=reorder,
                budget=budget, clip=clip, name=name, **options)
