"""Forward and backward of one step as an fx graph of ATen calls, traced on fake tensors."""
import random
import sys
from contextlib import contextmanager
from typing import Any, Callable, List, NamedTuple, Optional

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils import stateless
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from .guards import Guards
from .lowering import tensors_of


class Captured(NamedTuple):
    """module returns (losses..., gradients...); its placeholders are parameters, buffers, batch."""
    module: torch.fx.GraphModule
    kinds: List[str]  # of the placeholders, as Tarn calls them
    names: List[str]
    results: pytree.TreeSpec  # of what loss_fn returns
    results_count: int
    trained: List[str]  # parameters that have a gradient, in the order of the gradients
    guards: Guards


def first_tensor(value):
    """What backward starts from: the loss, or the first tensor of what loss_fn returns."""
    tensors = tensors_of(value)
    if not tensors:
        raise TypeError("loss_fn returned no tensor")
    return tensors[0]


def capture(model: torch.nn.Module, loss_fn: Callable, batch: Any,
            clip: Optional[Callable] = None, contiguous: bool = False) -> Captured:
    """Traces loss_fn(model, *batch) and its backward pass. batch: a tuple of anything, of which the
    tensors may change from step to step. contiguous: gradients get storages of their own."""
    parameters, buffers = dict(model.named_parameters()), dict(model.named_buffers())
    guards, outside, found = Guards(model, (loss_fn, clip)), _Outside(), {}

    def step(*tensors):
        values = iter(tensors)
        own = {name: next(values).detach().requires_grad_(p.requires_grad)
               for name, p in parameters.items()}
        state = {**own, **{name: next(values) for name in buffers}}
        twins = {id(state[name]): real for name, real in {**parameters, **buffers}.items()}
        given = pytree.tree_map_only(torch.Tensor, lambda _real: next(values), batch)
        with (stateless._reparametrize_module(model, state, tie_weights=True), torch.enable_grad(),
              guards.watch(twins), outside):
            result = loss_fn(model, *given)
            for name in buffers:
                if model.get_buffer(name) is not state[name]:
                    raise ValueError(f"the buffer {name} is replaced, not written in place")
            flat, found["results"] = pytree.tree_flatten(result)
            trained = _gradients(first_tensor(result), own, parameters, clip)
        found["trained"], found["count"] = list(trained), len(flat)
        made = _as_owned(trained.values()) if contiguous else list(trained.values())
        return pytree.tree_map_only(torch.Tensor, torch.Tensor.detach, flat) + made

    inputs = tensors_of(batch)
    tensors = [*parameters.values(), *buffers.values(), *inputs]
    with _random_numbers_are_ours() as seeds, FakeTensorMode(allow_non_fake_inputs=True) as mode:
        fake = [mode.from_tensor(t.detach()) for t in tensors]
        try:
            module = make_fx(step, tracing_mode="real")(*fake)
        finally:
            with _disable_current_modes():
                outside.undo()
        for node in module.graph.find_nodes(op="get_attr"):
            constant = getattr(module, node.target)
            if isinstance(constant, torch.Tensor):  # one fake tensor for all its nodes
                node.meta["val"] = mode.from_tensor(constant)
    _tidy(module)
    _check_random_numbers(module, seeds)
    kinds = ["parameter"] * (len(parameters) + len(buffers)) + ["input"] * len(inputs)
    names = list(parameters) + list(buffers) + [f"batch{i}" for i in range(len(inputs))]
    return Captured(module, kinds, names, found["results"], found["count"], found["trained"], guards)


def _gradients(loss, own, parameters, clip):
    """By name, after all hooks and `clip`. own: what stands for the parameters."""
    own = {name: p for name, p in own.items() if p.requires_grad}
    for name, parameter in own.items():
        for hook in (parameters[name]._backward_hooks or {}).values():
            parameter.register_hook(hook)
    made = torch.autograd.grad(loss, list(own.values()), allow_unused=True)
    trained = [(name, own[name], g) for name, g in zip(own, made) if g is not None]
    with torch.no_grad():
        for name, parameter, gradient in trained:
            parameter.grad = gradient
            for hook in (parameters[name]._post_accumulate_grad_hooks or {}).values():
                hook(parameter)
        if clip:
            clip([parameter for _, parameter, _ in trained])
    return {name: parameter.grad for name, parameter, _ in trained}


def _check_random_numbers(module, seeds):
    if any(isinstance(getattr(module, node.target), torch.Generator)
           for node in module.graph.find_nodes(op="get_attr")):
        raise ValueError("random numbers come from a generator of their own")
    draws = [node for node in module.graph.nodes
             if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ())]
    if seeds and draws:
        raise ValueError(f"{draws[0].target} draws, and the step calls torch.{seeds[0]} (a checkpoint "
                         "does not with preserve_rng_state=False)")


class _Outside(TorchDispatchMode):
    """Tensors that are no part of the trace, but of the program around it: their values would stay
    in it as they were, and what writes to them writes while it is traced, too."""

    def __init__(self):
        super().__init__()
        self._saved = {}

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        real = [t for t in tensors_of((args, kwargs)) if not isinstance(t, FakeTensor)]
        if real and func is torch.ops.aten._local_scalar_dense.default:
            raise ValueError("the value of a tensor is needed on the host (.item())")
        if real and func._schema.is_mutable:
            with _disable_current_modes():
                self._saved.update((id(t), (t, t.detach().clone())) for t in real
                                   if id(t) not in self._saved)
        return func(*args, **kwargs or {})

    def undo(self):
        with torch.no_grad():
            for tensor, value in self._saved.values():
                tensor.copy_(value)


@contextmanager
def _random_numbers_are_ours():
    """Yields a list of calls that seed PyTorch's random numbers; others must not be drawn."""
    states, seeds = _random_states(), []
    originals = torch.set_rng_state, torch.manual_seed

    def noted(function):
        def seed(*arguments):
            seeds.append(function.__name__)
            return function(*arguments)
        return seed

    torch.set_rng_state, torch.manual_seed = map(noted, originals)
    try:
        yield seeds
    finally:
        torch.set_rng_state, torch.manual_seed = originals
        drawn = states != _random_states()
        random.setstate(states[0])
    if drawn:
        raise ValueError("it draws random numbers of Python or NumPy")


def _random_states():
    numpy = sys.modules.get("numpy")
    return random.getstate(), numpy and repr(numpy.random.get_state())


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
