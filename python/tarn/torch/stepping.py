"""tarn.torch.step: a training step at planned addresses."""
import itertools
import math
import traceback
import warnings
from pathlib import Path

import torch
from torch.utils import _pytree as pytree

import tarn

from .capture import capture, first_tensor
from .guards import PLAIN, layout, mark
from .lowering import Lowered, tensors_of
from .memory import ALIGNMENT, Arena, allocator
from .program import Program, profile
from .updates import add_updates, add_state, divided, is_one_by_one, unchanged

CAPTURES = 16  # for batches of one shape; then the step runs eagerly


def _own_copy(tensor):
    made = torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype)
    _once(made).copy_(_once(tensor))
    return made


def _once(tensor):
    """Without the repetitions of an expanded tensor."""
    for dimension, stride in enumerate(tensor.stride()):
        if stride == 0:
            tensor = tensor.narrow(dimension, 0, min(1, tensor.shape[dimension]))
    return tensor


def _switches():
    """Of PyTorch: they choose what is called."""
    cuda = torch.backends.cuda
    return (torch.is_autocast_enabled("cpu"), torch.get_autocast_dtype("cpu"),
            torch.get_default_dtype(), torch.are_deterministic_algorithms_enabled(),
            torch.backends.mkldnn.enabled, cuda.math_sdp_enabled(), cuda.flash_sdp_enabled())


class Variant:
    """The step for batches of one shape: captured, lowered, profiled, planned."""

    def __init__(self, step, batch):
        leaves = pytree.tree_leaves(batch)
        _check(step, leaves)
        batch = pytree.tree_map_only(torch.Tensor, _own_copy, batch)
        self.batch = tensors_of(batch)
        self.captured = capture(step.model, step.loss_fn, batch, step.clip, step.reduces)
        self.lowered = Lowered(self.captured)
        self._guard(step, leaves)
        self.program = self.plan = None
        for result in self.lowered.results[:self.captured.results_count]:
            self.lowered.become(result, "output")
        updates, groups = add_updates(self.lowered, self.captured, step)
        self.lowered.drop_dead()
        with unchanged(step.model, step.optimizer, self.written):
            profile(self.lowered, self.tensors(step.model))
            for op in updates:
                add_state(self.lowered, op)
        step.agree(self.lowered)
        self.graph = self.lowered.graph(step.name, step.streams, groups)

    def _guard(self, step, leaves):
        """Notes what has to stay. Tensors of the program around the step are looked up again."""
        self.constants = self.lowered.constants
        kinds = self.captured.kinds
        written = self.lowered.written()
        if any(i < len(kinds) and kinds[i] == "input" for i in written):
            raise ValueError("the loss writes to the batch")
        self.written = [self.constants[i - len(kinds)] for i in written if i >= len(kinds)]
        self._numbers = _numbers(leaves)
        self._marks, tensors = self.captured.guards.values()
        where = {id(tensor): i for i, tensor in enumerate(tensors)}
        self._where = [where.get(id(constant)) for constant in self.constants]
        trained = {p.untyped_storage()._cdata for p in [*step.model.parameters(),
                                                        *_of_optimizer(step.optimizer)]}
        if any(c.untyped_storage()._cdata in trained for c in self.constants):
            raise ValueError("the loss uses parameters otherwise than as those of the model that "
                             "loss_fn is given")

    def holds(self, leaves):
        """Is everything as it was when this was captured, but for contents of tensors?"""
        if self._numbers != _numbers(leaves):
            return False
        marks, tensors = self.captured.guards.values()
        if marks != self._marks:
            return False
        self.constants = [constant if i is None else tensors[i]
                          for constant, i in zip(self.constants, self._where)]
        return True

    def tensors(self, model):
        """For the placeholders, and the constants."""
        return [*model.parameters(), *model.buffers(), *self.batch, *self.constants]


def _numbers(leaves):
    return [mark(leaf) for leaf in leaves if not torch.is_tensor(leaf)]


def _check(step, leaves):
    """Refuses what a trace would take for something else."""
    for leaf in leaves:
        if not isinstance(leaf, (torch.Tensor, *PLAIN)):
            raise ValueError(f"the batch holds a {type(leaf).__name__}, which is no container that "
                             "torch.utils._pytree knows: pass its tensors")
        if torch.is_tensor(leaf) and leaf.requires_grad:
            raise ValueError("a tensor of the batch requires a gradient")
    if any(t.device.type != "cpu" for t in [*step.model.parameters(), *step.model.buffers()]):
        raise ValueError("only tensors on the CPU are planned")


def _of_optimizer(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


class Step:
    """tarn.torch.step: a callable that does what this does, in one planned arena, with the same bits:

        loss = loss_fn(model, *batch); loss.backward(); optimizer.step(); optimizer.zero_grad()

        step = tarn.torch.step(model, optimizer, loss_fn, (x, y), reorder=True)
        for x, y in loader:
            loss = step(x, y)

    streams   more than 1: ops are divided among threads
    budget    bytes, or a share of the plan without one (0.75): ops run again until it fits
    clip      called with the parameters when their gradients are there, before the optimizer
    options   of tarn.plan, as reorder=True: less is alive at once

    Every shape of batch is captured and planned once, when it is first seen; all share one arena.
    Where that fails the step runs eagerly, with a warning that says why, and `reason` does, too;
    else it is None. `graph` and `plan` are those of the example batch."""

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
        alone = not isinstance(example_batch, (tuple, list))
        self.example = (example_batch,) if alone else tuple(example_batch)
        self._first = self._variant(self.example)

    graph = property(lambda self: self._first and self._first.graph)
    plan = property(lambda self: self._first and self._first.plan)

    def __call__(self, *batch):
        """One step; returns what loss_fn returns, detached."""
        variant = self._variant(batch)
        if variant and any(p.grad is not None for p in _of_optimizer(self.optimizer)):
            variant, self.reason = None, "there were gradients before the step"
        if variant is None:
            return self.eager(*batch)
        program = self._program(variant)
        for own, given in zip(variant.batch, tensors_of(batch)):
            _once(own).copy_(_once(given))
        program.run()
        self.optimizer._opt_called = True  # for schedulers
        captured = variant.captured
        results = pytree.tree_unflatten(program.results[:captured.results_count], captured.results)
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.clone, results)

    def eager(self, *batch):
        """The same step as PyTorch runs it."""
        with torch.enable_grad():
            result = self.loss_fn(self.model, *batch)
            first_tensor(result).backward()
        if self.clip:
            self.clip([p for p in self.model.parameters() if p.grad is not None])
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, result)

    def report(self):
        """What the plan needs and what eager execution would need, as a Report. Runs the step
        eagerly, and undoes it."""
        memory = allocator()
        with unchanged(self.model, self.optimizer, self._first.written if self._first else ()):
            self.eager(*self.example)
            before = memory.tarn_live()
            memory.tarn_reset_peak()
            self.eager(*self.example)
            eager = memory.tarn_peak() - before
        if self._first is None:
            return Report(eager, reason=self.reason)
        plan, program = self.plan, self._first.program
        again = [op.name for op in plan.graph.ops if plan.is_recomputed(op.id)]
        return Report(eager, plan.footprint, plan.bound, again,
                      program and dict(program.copied), self.reason)

    # ---- Shapes ----

    def _key(self, batch):
        """What is the same for all batches of one shape, while the training stays as it is."""
        leaves, spec = pytree.tree_flatten(batch)
        given = tuple(layout(t, {})[:5] if torch.is_tensor(t) else type(t) for t in leaves)
        storages, parameters = {}, list(self.model.parameters())
        kept = tuple(layout(t, storages) for t in [*parameters, *self.model.buffers()])
        groups = tuple(tuple(map(id, group["params"])) for group in self.optimizer.param_groups)
        modules = tuple((id(m), m.training) for m in self.model.modules())
        return (given, spec, kept, tuple(map(id, parameters)), groups, modules,
                is_one_by_one(self.optimizer), _switches())

    def _variant(self, batch):
        """None: it has to run eagerly."""
        variants = self._variants.setdefault(self._key(batch), [])
        leaves = pytree.tree_leaves(batch)
        for variant in variants:
            if variant is None or variant.holds(leaves):
                return variant
        variants.append(self._capture(batch, len(variants)))
        if len(variants) == 3:
            warnings.warn("tarn.torch.step captures a batch of the same shape for the third time: "
                          "make numbers that change from step to step tensors, in the batch or "
                          "as buffers", RuntimeWarning, 3)
        return variants[-1]

    def _capture(self, batch, before):
        try:
            if before == CAPTURES:
                raise ValueError(f"batches of this shape have been captured {before} times, each "
                                 "time with other numbers")
            variant = Variant(self, batch)
        except Exception as error:  # pylint: disable=broad-except
            text = (str(error).strip() or "no text").splitlines()[0]
            self.reason = f"the step could not be captured: {type(error).__name__}: {text}"
            ours = (str(Path(__file__).parent), str(Path(torch.__file__).parent))
            users = [frame for frame in traceback.extract_tb(error.__traceback__)
                     if not frame.filename.startswith(ours)]
            if users:
                self.reason += f" ({users[-1].filename}, line {users[-1].lineno})"
            warnings.warn(f"tarn.torch.step runs eagerly: {self.reason}", RuntimeWarning, 4)
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
            for other in itertools.chain(*self._variants.values()):
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
        share = sum(item.parameter.nbytes for item in ready) / 100
        return divided(ready, share, share)


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
