"""The optimizer in a captured step: ops that call the user's own, each on a few parameters."""
from __future__ import annotations

import copy
import itertools
from collections import defaultdict
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any, NamedTuple, Optional
from collections.abc import Iterator

import torch
from torch.optim import optimizer as hooks

from .collectives import Refusing, may_communicate
from .lowering import Op
from .moving import Placed, lying, on_host
from .tensors import as_gradient, as_part, local, tensors_of

ALONE = {"Adadelta", "Adagrad", "Adam", "Adamax", "AdamW", "ASGD", "NAdam", "RAdam", "RMSprop",
         "Rprop", "SGD"}  # optimizers of PyTorch's that look at each number alone


UPDATED = 64 << 20  # ResNet-50 on an H100: 35 updates take 1.2 ms, 5 take 0.3 ms


def of_optimizer(optimizer: Any) -> Any:
    """The parameters that it updates."""
    return [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]


@contextmanager
def unchanged(optimizer: Any, tensors: Any, kept_on_host: bool = False,
              in_place: bool = False) -> Iterator[Any]:
    """Whatever happens inside to the optimizer, its parameters, their gradients, these tensors and
    random numbers is undone: inside the optimizer has copies of all that it has, but parameters.
    kept_on_host: what tensors and parameters were, and the copies. in_place: what its state has are
    the same tensors inside, whose content is put back, as that of parameters is."""
    own = dict(vars(optimizer))
    parameters = tensors_of([group["params"] for group in optimizer.param_groups])
    states = tensors_of([optimizer.state.get(p) for p in parameters]) if in_place else []
    tensors = [*tensors, *states]
    saved = [(t, t.detach().to("cpu", copy=True) if kept_on_host else t.detach().clone())
             for t in {id(t): t for t in map(local, [*tensors, *parameters])}.values()]
    gradients = [(p, p.grad) for p in parameters]
    kept = {id(kept): kept for kept in [optimizer, *parameters, *states]}
    with on_host(parameters[0].device) if kept_on_host and parameters else nullcontext():
        vars(optimizer).update(copy.deepcopy(own, kept))
    for parameter in parameters:
        parameter.grad = None
    try:
        with torch.random.fork_rng({t.device for t in tensors if t.is_cuda}):
            yield
    finally:
        if any(t.is_cuda for t in tensors):  # also streams that wait for nobody, after an error
            torch.cuda.synchronize()
        vars(optimizer).clear()
        vars(optimizer).update(own)
        with torch.no_grad():
            for tensor, value in saved:
                tensor.copy_(value)
        for parameter, gradient in gradients:
            parameter.grad = gradient


@contextmanager
def restored(optimizer: Any, parameters: Any) -> Iterator[None]:
    """As `unchanged`, for some parameters of an optimizer that treats them one by one, and what it
    keeps of these."""
    state = optimizer.state
    saved = [(p, p.detach().clone(), p.grad, state.get(p)) for p in parameters]
    for parameter, _, _, kept in saved:
        if kept is not None:
            state[parameter] = copy.deepcopy(kept)
    try:
        yield
    finally:
        with torch.no_grad():
            for parameter, value, gradient, kept in saved:
                parameter.copy_(value)
                parameter.grad = gradient
                state.pop(parameter, None)
                if kept is not None:
                    state[parameter] = kept


def is_one_by_one(optimizer: Any) -> Any:
    """Does it treat parameters one by one, and may its step be divided? PyTorch's own do, unless
    somebody watches them or has replaced their step; a scheduler may have wrapped it."""
    kind, step = type(optimizer), vars(optimizer).get("step")
    if not kind.__module__.startswith("torch.optim.") or kind is torch.optim.LBFGS:
        return False
    return not any((optimizer._optimizer_step_pre_hooks, optimizer._optimizer_step_post_hooks,
                    hooks._global_optimizer_pre_hooks, hooks._global_optimizer_post_hooks,
                    step and not hasattr(step, "_wrapped_by_lr_sched")))


def looks_at_several(optimizer: Any) -> bool:
    """Does the optimizer look at more than one number at a time, and so communicate on DTensors?"""
    return type(optimizer).__name__ not in ALONE or not is_one_by_one(optimizer)


_seen: Optional[dict[int, Any]] = None


@contextmanager
def seen_by_updates(wanted: bool) -> Iterator[dict[int, Any]]:
    """The gradients that updates get inside, by the ids of their parameters, if that is wanted."""
    global _seen  # pylint: disable=global-statement
    seen: dict[int, Any] = {}
    _seen = seen if wanted else None
    try:
        yield seen
    finally:
        _seen = None


class Update:
    """The optimizer at work on some of its parameters: an optimizer of the same class that shares
    state and hyperparameters, so that schedulers and state_dict work as ever; or itself, on all."""

    def __init__(self, optimizer: Any, parameters: Any, dropped: Any, specs: Any = {}) -> None:
        """dropped: ids of parameters whose gradients were taken away in this step. specs: by ids of
        parameters, how gradients lie that are DTensors and lie otherwise."""
        self.optimizer, self.parameters, self._dropped = optimizer, parameters, dropped
        self._specs = specs
        self.refuses: Any = nullcontext  # around what the program does: an op that communicates fails
        self.own, self._last, self._members = optimizer, None, {}  # the members by group
        if is_one_by_one(optimizer):
            self.own = object.__new__(type(optimizer))
            self.own.__dict__.update(optimizer.__dict__)
            self.own.__dict__.pop("step", None)  # of a scheduler
            self._let_go()
            mine = set(map(id, parameters))
            members = {i: [p for p in group["params"] if id(p) in mine]
                       for i, group in enumerate(optimizer.param_groups)}
            self._members = {i: those for i, those in members.items() if those}

    def _let_go(self) -> None:
        """Of states and groups, which are the user's, or a copy that ends, outside of a call."""
        self.own.state, self.own.param_groups = {}, []

    def joined(self, updates: Any) -> Update:
        """One that does what these do, of which this is the first."""
        made = Update(self.optimizer, [p for update in updates for p in update.parameters],
                      self._dropped, self._specs)
        made.refuses = self.refuses
        return made

    def __call__(self, *gradients: Any, placed: Optional[Placed] = None) -> Any:
        """placed: where parameters and states lie that move."""
        def run() -> None:
            if self._members:
                self.own.param_groups = [{**self.optimizer.param_groups[i], "params": those,
                                           **(_recorded.of(i) if _recorded else {})}
                                          for i, those in self._members.items()]
                self.own.state = self.optimizer.state
            for parameter, gradient in zip(self.parameters, gradients):
                parameter.grad = (None if id(parameter) in self._dropped else as_gradient(
                    parameter, gradient, self._specs.get(id(parameter))))
            if _seen is not None:
                _seen.update((id(p), p.grad.clone()) for p in self.parameters if p.grad is not None)
            try:
                with lying(placed, self) if placed else self._in_parts(gradients), \
                        nullcontext() if self._members else self.refuses():
                    self.own.step()
            finally:
                if self._members:
                    self._let_go()
            for parameter in self.parameters:
                parameter.grad = None
            self._last = self._entries()
            self._dropped.difference_update(map(id, self.parameters))

        return run

    @contextmanager
    def _in_parts(self, gradients: Any) -> Iterator[None]:
        """Inside the optimizer works on this rank's parts of DTensors, where it looks at each number
        alone: the ops of DTensors take longer, and threads that Python did not make have to find
        out anew each time how they run."""
        state, kind = self.optimizer.state, type(self.optimizer)
        if (not self._members or kind.__name__ not in ALONE
                or all(local(p) is p for p in self.parameters)
                or any(id(p) in self._specs for p in self.parameters)
                or kind is not torch.optim.SGD and not all(state.get(p) for p in self.parameters)):
            yield  # what the first step makes are DTensors
            return
        parts, own = {id(p): local(p).detach() for p in self.parameters}, self.own
        for parameter, gradient in zip(self.parameters, gradients):
            parts[id(parameter)].grad = gradient if parameter.grad is not None else None
        own.param_groups = [{**group, "params": [parts[id(p)] for p in group["params"]]}
                            for group in own.param_groups]
        own.state = defaultdict(dict)
        for parameter in self.parameters:
            own.state[parts[id(parameter)]] = {
                name: local(value) for name, value in state.get(parameter, {}).items()}
        try:
            yield
            for parameter in self.parameters:
                for name, value in own.state.get(parts[id(parameter)], {}).items():
                    before = state.get(parameter, {}).get(name)
                    if local(before) is value:
                        continue
                    if isinstance(value, torch.Tensor) and (before is None or local(before) is not before):
                        value = as_part(value, parameter if before is None else before)
                    state[parameter][name] = value
        finally:
            own.state = state

    def _entries(self) -> Any:
        """What the optimizer keeps, and what may make it keep more."""
        state, groups = self.optimizer.state, self.optimizer.param_groups
        kept = [(len(state.get(p, ())), id(p) in self._dropped) for p in self.parameters]
        return [id(state), kept,
                [torch.is_tensor(v) or bool(v) for group in groups for v in group.values()]]

    def ready(self) -> Any:
        """Has the optimizer made the state that it keeps? What it allocates then is temporary."""
        return self._last == self._entries()

    def hindrance(self) -> str:
        """Why it cannot be part of a CUDA graph, or ""."""
        kind = type(self.optimizer)
        if not self._members:
            return f"{kind.__name__} is not PyTorch's own, or has hooks"
        if kind is torch.optim.SGD or all(group.get("capturable") or (
                kind in TENSOR_RATES and group.get("fused")) for group in self.optimizer.param_groups):
            return ""
        return f"{kind.__name__} computes on the host: make it with fused=True or capturable=True"

    def state(self) -> list[tuple[tuple[int, str], Any]]:
        """Tensors that the optimizer keeps, each with where it is found: the parameter's number, and
        the name."""
        found = (((number, name), local(value)) for number, p in enumerate(self.parameters)
                 for name, value in self.optimizer.state.get(p, {}).items())
        return [(place, value) for place, value in found
                if isinstance(value, torch.Tensor) and value.numel()]

    def value(self, number: int, name: str) -> Any:
        """One of them, or None."""
        value = local(self.optimizer.state.get(self.parameters[number], {}).get(name))
        return value if isinstance(value, torch.Tensor) else None

    @property
    def may_move(self) -> bool:
        """Can it work on parameters and states at other places?"""
        return bool(self._members)


# ---- As part of a CUDA graph ----

TENSOR_RATES = (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD)  # if they are fused
_recorded: Optional[Rates] = None


class Rates:
    """Numbers that an optimizer passes to its kernels. They are part of a capture; learning rates
    may lie on the GPU instead, as float32, and are filled before each step."""

    def __init__(self, optimizer: Any) -> None:
        self._optimizer = optimizer
        self._tensors: dict[int, Any] = {}  # rates, by the number of the group
        self._values: dict[int, float] = {}  # in them

    def given(self) -> Any:
        """Inside updates get what a capture gives them: rates as float32."""
        return recorded_updates(self) if self._tensors else nullcontext()

    def numbers(self) -> tuple[Any, ...]:
        """What a capture holds for."""
        return tuple((name, value.data_ptr() if torch.is_tensor(value) else value)
                     for number, group in enumerate(self._optimizer.param_groups)
                     for name, value in group.items()
                     if name != "params" and not (name == "lr" and number in self._tensors))

    def become_tensors(self) -> bool:
        """Makes learning rates tensors; False: they are, or the optimizer does not take them."""
        groups = self._optimizer.param_groups
        if self._tensors or type(self._optimizer) not in TENSOR_RATES or not all(
                group.get("fused") for group in groups):
            return False
        for number, group in enumerate(groups):
            if not torch.is_tensor(group["lr"]) and group["params"]:
                self._tensors[number] = torch.zeros((), device=group["params"][0].device)
        self.fill()
        return bool(self._tensors)

    def fill(self) -> None:
        for number, tensor in self._tensors.items():
            value = float(self._optimizer.param_groups[number]["lr"])
            if self._values.get(number) != value:
                tensor.fill_(value)
                self._values[number] = value

    def of(self, number: int) -> dict[str, Any]:
        """What a group has in the place of its own values in a capture."""
        made: dict[str, Any] = {}
        if "capturable" in self._optimizer.param_groups[number]:
            made["capturable"] = True
        if number in self._tensors:
            made["lr"] = self._tensors[number]
        return made


@contextmanager
def recorded_updates(rates: Rates) -> Iterator[None]:
    """Inside updates are captured."""
    global _recorded  # pylint: disable=global-statement
    _recorded = rates
    try:
        yield
    finally:
        _recorded = None


class Edit:
    """What the program does to gradients before the optimizer sees them: hooks, clipping. copies: it
    gets copies, which it may keep: a hook may, and full_tensor() of what all ranks have is no copy."""

    def __init__(self, function: Any, parameters: Any, dropped: Any, specs: Any = {},
                 copies: bool = False) -> None:
        self._function, self.parameters, self._dropped = function, parameters, dropped
        self._specs, self._copies = specs, copies
        self.refuses: Any = nullcontext  # see Update

    def __call__(self, *gradients: Any) -> Any:
        def run() -> None:
            versions = [p._version for p in self.parameters]
            for parameter, gradient in zip(self.parameters, gradients):
                parameter.grad = (None if id(parameter) in self._dropped else as_gradient(
                    parameter, gradient.clone() if self._copies else gradient,
                    self._specs.get(id(parameter))))
            with self.refuses():
                self._function(self.parameters)
            for parameter, gradient in zip(self.parameters, gradients):
                if parameter.grad is None:
                    self._dropped.add(id(parameter))
                elif local(parameter.grad) is not gradient:
                    if not _lies_so(parameter, self._specs.get(id(parameter))):
                        raise ValueError("a hook of a parameter, or clip, changes the placements of a "
                                         "gradient")
                    gradient.copy_(local(parameter.grad))
                parameter.grad = None
            if versions != [p._version for p in self.parameters]:
                raise ValueError("a hook of a parameter, or clip, writes to parameters")

        return run


def _lies_so(parameter: Any, spec: Any) -> bool:
    """Lies its gradient as it does, or as `spec` says?"""
    if local(parameter) is parameter:
        return True
    return bool(parameter.grad.placements == (spec or parameter).placements)


def hooked(parameter: Any) -> Any:
    """Has it hooks that get its gradient?"""
    return bool(parameter._backward_hooks or parameter._post_accumulate_grad_hooks)


def _call_hooks(parameters: Any) -> None:
    for parameter in parameters:
        for hook in (parameter._backward_hooks or {}).values():
            changed = hook(parameter.grad)
            parameter.grad = parameter.grad if changed is None else changed
        for hook in (parameter._post_accumulate_grad_hooks or {}).values():
            hook(parameter)


def divided(parameters: Any, limit: Any, others: Any) -> Iterator[Any]:
    """Buckets of neighbours of one type on one device: the first of `limit` bytes at least, and those behind it
    of `others`."""
    bucket: list[Any] = []
    size = 0
    for parameter in parameters:
        if bucket and (size >= limit or bucket[-1].dtype != parameter.dtype
                       or bucket[-1].device != parameter.device):
            yield bucket
            bucket, size, limit = [], 0, others
        bucket.append(parameter)
        size += parameter.nbytes
    if bucket:
        yield bucket


def updated_together(parameters: Any, on_gpu: bool, has_budget: bool) -> Iterator[Any]:
    """Those that are updated by one op: neighbours, a hundredth of all bytes at least, and on a GPU as
    many as an update needs to take longer than its launches; with a budget at most an eighth of all
    bytes, where that is less, because the gradients of one are alive at once."""
    total = sum(p.nbytes for p in parameters)
    share = total / 100
    if on_gpu:
        share = max(share, min(UPDATED, total / 8) if has_budget else UPDATED)
    return divided(parameters, share, share)


def as_they_come(parameters: Any, known: Any, limit: int) -> Iterator[Any]:
    """Buckets for reductions: the last parameters first, as their gradients mostly come; the first
    bucket is small, so that communication begins early. known: all parameters, in order."""
    places = {id(p): place for place, p in enumerate(known)}
    return divided(sorted(parameters, key=lambda p: -places[id(p)]), min(limit, 1 << 20), limit)


class Trained(NamedTuple):
    """A parameter with a gradient, which is there after the op at `position`."""
    position: int
    root: Optional[int]
    gradient: Optional[int]
    parameter: torch.nn.Parameter
    node: torch.fx.Node


def _last_uses(lowered: Any) -> Any:
    """By root: the last op that touches it."""
    return {lowered.storages[s].root: index for index, op in enumerate(lowered.ops)
            for s in op.inputs + op.outputs}


def _trained(lowered: Any, captured: Any, step: Any, inputs: Any) -> Iterator[Any]:
    gradients = lowered.results[captured.results_count:]
    roots = [lowered.root(lowered.value[node])
             for node in lowered.module.graph.find_nodes(op="placeholder")]
    last = _last_uses(lowered)
    for i, node in zip(captured.trained, gradients):
        gradient = lowered.become(node, "gradient")
        yield Trained(last.get(gradient, -1), roots[i], gradient, step.parameter(inputs[i]), node)


def _meeting(communicators: Any) -> dict[str, Any]:
    """Of an op that uses these."""
    return {"group": communicators[0], "others": communicators[1:]} if communicators else {}


def _used(lowered: Any, step: Any) -> tuple[str, ...]:
    """The communicators that hooks, and clip, may use: all that the step has. Two threads must not
    use one at once."""
    if not step.clips_over:
        return ()
    return tuple(dict.fromkeys([*step.clips_over, *(op.group for op in lowered.ops if op.group)]))


def add_updates(lowered: Any, captured: Any, step: Any, inputs: Any) -> Any:
    """Ops of the optimizer, each as early as the gradients are there and nobody needs the
    parameters any more; before them hooks, reductions over all ranks and clipping. Returns the
    updates, and the groups of gradients that are reduced as one."""
    last, added, dropped = _last_uses(lowered), defaultdict(list), lowered.dropped
    ready = sorted(_trained(lowered, captured, step, inputs), key=lambda item: item.position)
    end = max((item.position for item in ready), default=-1)
    given, one_by_one = {id(i.parameter): i for i in ready}, is_one_by_one(step.optimizer)
    specs = {id(step.parameter(inputs[i])): spec
             for i, spec in zip(captured.trained, captured.lying) if spec is not None}
    used = _used(lowered, step)
    buckets = [[given[id(p)] for p in bucket]
               for bucket in step.buckets([item.parameter for item in ready])]

    def add(name: Any, kind: Any, run: Any, items: Any, at: Any, parameters: Any = None,
            **more: Any) -> Any:
        """It writes the parameters that are given by their roots, or else the gradients."""
        gradients = dict.fromkeys(item.gradient for item in items if item.gradient is not None)
        written = gradients if parameters is None else parameters
        op = Op(name, kind, [lowered.latest[r] for r in gradients | written],
                [lowered.write(r, name) for r in written], run=run,
                calls_program=isinstance(run, Edit) or isinstance(run, Update) and not run.may_move,
                arguments=[item.node for item in items], **more)
        if isinstance(run, (Edit, Update)) and not step.agrees and may_communicate():
            run.refuses = partial(Refusing, step.disagreement)
        added[at].append(op)
        return op

    for i, item in enumerate(ready):
        if hooked(item.parameter):
            edit = Edit(_call_hooks, [item.parameter], dropped, specs, copies=True)
            add(f"hooks{i}", "hooks", edit, [item], item.position, on_heap=True, **_meeting(used))
    available = [max(item.position for item in bucket) for bucket in buckets]
    if step.reduction:
        lowered.communication, available = [1], list(itertools.accumulate(available, max))
        for i, (bucket, at) in enumerate(zip(buckets, available)):
            name = f"all_reduce{i}"
            add(name, "comm.all_reduce", partial(step.reduction, name), bucket, at, stream=1,
                cost=sum(item.parameter.nbytes for item in bucket))
    if step.clip and ready:
        items = [given[id(p)] for p in step.parameters() if id(p) in given]
        edit = Edit(step.clip, [item.parameter for item in items], dropped, specs)
        add("clip", "clip", edit, items, end, on_heap=True, **_meeting(used))
    updates: list[Any] = []
    for bucket, at in zip(buckets, available) if one_by_one else [(ready, end)]:
        roots = dict.fromkeys(item.root for item in bucket if item.root is not None)
        at = max([end if step.clip else at, *(last.get(r, -1) for r in roots)])
        run = Update(step.optimizer, [item.parameter for item in bucket], dropped, specs)
        sums = any(id(item.parameter) in specs for item in bucket)  # over ranks
        meeting = _meeting(used if sums or step.updates_over else ())
        kind = f"optimizer.{type(step.optimizer).__name__}"
        updates.append(add(f"update{len(updates)}", kind, run, bucket, at, roots,
                           on_heap=not one_by_one or sums, **meeting))
    lowered.ops = added[-1] + [new for index, op in enumerate(lowered.ops)
                               for new in (op, *added[index])]
    groups = [[item.gradient for item in bucket] for bucket in buckets] if step.reduction else []
    return updates, groups


def add_state(lowered: Any, op: Any) -> None:
    """What the optimizer has made for these parameters persists, wherever it lies."""
    storages: dict[Any, Any] = {}
    for place, value in op.run.state():
        storages.setdefault(value.untyped_storage()._cdata, (value, []))[1].append(place)
    for i, (value, places) in enumerate(storages.values()):
        root = lowered.storage(f"{op.name}.state{i}", value.untyped_storage().nbytes(),
                               "optimizer_state")
        lowered.persistent[root] = None
        lowered.states[root] = op.run, places
        op.inputs.append(root)
        op.outputs.append(lowered.write(root, op.name))
