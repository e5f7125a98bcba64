"""Forward and backward of one step as an fx graph of ATen calls, traced on fake tensors."""
import random
import sys
from contextlib import contextmanager
from typing import Any, Callable, List, NamedTuple, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import stateless
from torch.utils import _pytree as pytree


class Captured(NamedTuple):
    """module returns (losses..., gradients...); its placeholders are parameters, buffers, batch."""
    module: torch.fx.GraphModule
    kinds: List[str]  # of the placeholders, as Tarn calls them
    names: List[str]
    results: pytree.TreeSpec  # of what loss_fn returns
    results_count: int
    trained: List[str]  # parameters that have a gradient, in the order of the gradients


def first_tensor(value):
    """What backward starts from: the loss, or the first tensor of what loss_fn returns."""
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            return leaf
    raise TypeError("loss_fn returned no tensor")


def capture(model: torch.nn.Module, loss_fn: Callable, batch: Any,
            clip: Optional[Callable] = None, contiguous: bool = False) -> Captured:
    """Traces loss_fn(model, *batch) and its backward pass. batch: a tuple of anything, of which the
    tensors may change from step to step. contiguous: gradients get storages of their own."""
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    leaves, spec = pytree.tree_flatten(batch)
    where = [i for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)]
    found = {}

    def step(*tensors):
        values = iter(tensors)
        own = {name: next(values).detach().requires_grad_(p.requires_grad)
               for name, p in parameters.items()}
        state = {**own, **{name: next(values) for name in buffers}}
        given = list(leaves)
        for i in where:
            given[i] = next(values)
        with stateless._reparametrize_module(model, state, tie_weights=True), torch.enable_grad():
            result = loss_fn(model, *pytree.tree_unflatten(given, spec))
            for name in buffers:
                if model.get_buffer(name) is not state[name]:
                    raise ValueError(f"the buffer {name} is replaced, not written in place")
            flat, found["results"] = pytree.tree_flatten(result)
            trained = {name: p for name, p in own.items() if p.requires_grad}
            gradients = torch.autograd.grad(first_tensor(result), list(trained.values()),
                                            allow_unused=True)
        pairs = [(name, g) for name, g in zip(trained, gradients) if g is not None]
        found["trained"] = [name for name, _ in pairs]
        if clip:
            for name, gradient in pairs:
                own[name].grad = gradient
            with torch.no_grad():
                clip([own[name] for name, _ in pairs])
            pairs = [(name, own[name].grad) for name, _ in pairs]
        found["count"] = len(flat)
        made = [g for _, g in pairs]
        if contiguous:
            made = _as_owned(made)
        return [f.detach() if isinstance(f, torch.Tensor) else f for f in flat] + made

    tensors = list(parameters.values()) + list(buffers.values()) + [leaves[i] for i in where]
    with _nothing_else_changes(model) as seeds, FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(t.detach()) for t in tensors]
        module = make_fx(step, tracing_mode="real")(*fake)
    _tidy(module)
    draws = [n for n in module.graph.nodes
             if torch.Tag.nondeterministic_seeded in getattr(n.target, "tags", ())]
    if seeds and draws:
        raise ValueError(f"{draws[0].target} draws, and the step calls torch.{seeds[0]} (a checkpoint "
                         "does not with preserve_rng_state=False)")
    if any(isinstance(getattr(module, n.target), torch.Generator)
           for n in module.graph.find_nodes(op="get_attr")):
        raise ValueError("random numbers come from a generator of their own")
    kinds = (["parameter"] * (len(parameters) + len(buffers)) + ["input"] * len(where))
    names = list(parameters) + list(buffers) + [f"batch{i}" for i in range(len(where))]
    return Captured(module, kinds, names, found["results"], found["count"], found["trained"])


@contextmanager
def _nothing_else_changes(model):
    """A trace sees tensors only; what else a step changes would change once and never again. So
    that is undone, and an error. Yields a list of calls that seed PyTorch's random numbers."""
    before = [(module, dict(vars(module))) for module in model.modules()]
    states, seeds, changed = _random_states(), [], []
    originals = torch.set_rng_state, torch.manual_seed

    def noted(function):
        return lambda *arguments: (seeds.append(function.__name__), function(*arguments))[1]

    torch.set_rng_state, torch.manual_seed = map(noted, originals)
    try:
        yield seeds
    finally:
        torch.set_rng_state, torch.manual_seed = originals
        for module, own in before:
            now = dict(vars(module))
            vars(module).clear()
            vars(module).update(own)
            changed += [f"{type(module).__name__}.{name}" for name in {**own, **now}
                        if _differ(own.get(name), now.get(name))]
        drawn = states != _random_states()
        random.setstate(states[0])
    if changed:
        raise ValueError(f"{changed[0]} changes, and is neither parameter nor buffer (what is made "
                         "once and kept is there after the model has run once)")
    if drawn:
        raise ValueError("it draws random numbers of Python or NumPy")


def _random_states():
    numpy = sys.modules.get("numpy")
    return random.getstate(), numpy and repr(numpy.random.get_state())


def _differ(old, new):
    if isinstance(old, torch.Tensor) or isinstance(new, torch.Tensor):
        return old is not new
    return (isinstance(old, (int, float)) or isinstance(new, (int, float))) and old != new


def _as_owned(gradients):
    """Each contiguous, and the only tensor of its storage."""
    seen, owned = set(), []
    for gradient in gradients:
        storage = gradient.untyped_storage()
        whole = storage.nbytes() == gradient.numel() * gradient.element_size()
        if not whole or not gradient.is_contiguous() or storage._cdata in seen:
            gradient = gradient.clone(memory_format=torch.contiguous_format)
        seen.add(gradient.untyped_storage()._cdata)
        owned.append(gradient)
    return owned


def _tidy(module):
    """Drops what serves the profiler only."""
    for node in list(module.graph.nodes):
        if node.op == "call_function" and getattr(node.target, "namespace", "") == "profiler":
            node.replace_all_uses_with(None)
            module.graph.erase_node(node)
