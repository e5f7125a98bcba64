"""What a step of torch.compile has alive at once, and a guess of its time, on a GPU that is not there.
Inductor's source of the forward and of the backward pass is made as torch.compile makes it (with its min-cut partition, or
within an `activation_memory_budget`), and run on fake tensors: kernels do nothing, allocations and `del` are real. What is
saved between the passes counts, and gradients stay until both passes have ended, as the optimizer needs them. Parameters,
batch and workspaces do not count."""
import ast
import re
from types import SimpleNamespace
from typing import NamedTuple
from unittest import mock

import torch
from guessed_costs import seconds, updating
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode

from tarn.torch.tensors import tensors_of

MIB = 1 << 20


class Compiled(NamedTuple):
    """Bytes, but for `seconds` of both passes and the number of launches."""
    peak: int
    saved: int
    gradients: int
    seconds: float
    launches: int


class _Stop(Exception):
    """The sources are there."""


class _Pass(NamedTuple):
    source: str
    placeholders: list  # (name, fake tensor)
    outputs: list  # names, or None


def _sources(call, batch, share):
    """Of the forward and of the backward pass."""
    from torch._functorch import config as functorch
    from torch._inductor import compile_fx, config
    from torch._inductor.graph import GraphLowering
    passes = []

    def keep(source):
        passes.append(source)
        raise _Stop

    def inner(module, inputs, **options):
        outputs = [getattr(n, "name", None) for n in module.graph.output_node().args[0]]
        places = [(n.name, n.meta["val"]) for n in module.graph.find_nodes(op="placeholder")]
        try:
            with mock.patch.object(GraphLowering, "save_output_code", staticmethod(keep)):
                compile_fx.compile_fx_inner(module, inputs, **options)
        except Exception:  # pylint: disable=broad-except
            if not passes or not isinstance(passes[-1], str):
                raise
        passes[-1] = _Pass(passes[-1], places, outputs)
        if options.get("is_backward"):
            raise _Stop
        return lambda *_: None

    torch._dynamo.reset()
    settings = {"graph_partition": False, "fx_graph_cache": False, "size_asserts": False, "alignment_asserts": False}
    with config.patch(settings), functorch.patch(
            activation_memory_budget=share, enable_autograd_cache=False, force_non_lazy_backward_lowering=True):
        try:
            torch.compile(call, backend=lambda module, inputs: compile_fx.compile_fx(module, inputs, inner_compile=inner))(*batch)
        except Exception:  # pylint: disable=broad-except
            if len(passes) != 2:
                raise
    return passes


class _Meter(TorchDispatchMode):
    """Notes which storages have been made and are still there."""

    def __init__(self):
        super().__init__()
        self.most, self.seconds, self.launches = 0, 0.0, 0
        self._known = {}

    def alive(self):
        self._known = {key: pair for key, pair in self._known.items() if not pair[0].expired()}
        return sum(size for _, size in self._known.values())

    def note(self, value):
        for tensor in tensors_of(value):
            reference = StorageWeakRef(tensor.untyped_storage())
            self._known.setdefault(reference.cdata, (reference, -tensor.untyped_storage().nbytes() // 512 * -512))
        self.most = max(self.most, self.alive())

    def launch(self, kind, read, made):
        self.launches += 1
        self.seconds += seconds(kind, read, made)

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        known = {t.untyped_storage()._cdata for t in tensors_of((args, kwargs))}
        if [t for t in tensors_of(result) if t.untyped_storage()._cdata not in known]:
            if "empty" not in func._schema.name:
                self.launch(func._schema.name.replace("::", "."), tensors_of((args, kwargs)), tensors_of(result))
            self.note(result)
        return result


class _Libraries:
    def __init__(self, meter):
        self._meter = meter

    def __getattr__(self, name):
        from torch._inductor.select_algorithm import extern_kernels

        def call(*arguments, **options):
            if "out" not in options:
                return getattr(extern_kernels, name)(*arguments, **options)
            self._meter.launch(name, tensors_of(arguments), [options["out"]])
            return options["out"]
        return call


def _function(source, meter):
    """`call` of a source, in which kernels do nothing."""
    from tarn.torch.fusing import calls
    kernels = re.findall(r"^(\w+) = async_compile\.", source, re.M)
    space = {**calls._fake_space(SimpleNamespace(kernels=[])), "extern_kernels": _Libraries(meter)}

    class Kernel:
        @staticmethod
        def run(*arguments, stream=None):
            del stream
            meter.launch("triton", tensors_of(arguments), [])

    space.update(dict.fromkeys(kernels, Kernel), assert_size_stride=lambda *_: None, assert_alignment=lambda *_: None,
                 copy_if_misaligned=lambda tensor: tensor)
    (found,) = [n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef) and n.name == "call"]
    found.args.args, found.decorator_list = found.args.args[-1:], []
    exec(compile(ast.Module([found], []), "<call>", "exec"), space)  # pylint: disable=exec-used
    return space["call"]


def compiled(call, batch, share=1.0):
    """share: of the `activation_memory_budget`."""
    forward, backward = _sources(call, batch, share)
    meter = _Meter()
    mode = FakeTensorMode(allow_non_fake_inputs=True)

    def fake(value):
        with mode:
            return torch.empty_strided(value.shape, value.stride(), dtype=value.dtype, device=value.device) \
                if isinstance(value, torch.Tensor) else value

    given = {name: fake(value) for name, value in forward.placeholders}  # they persist
    run = _function(forward.source, meter)
    with torch.no_grad(), mode, meter:
        made = dict(zip(forward.outputs, run([given[name] for name, _ in forward.placeholders])))
    wanted = [name for name, _ in backward.placeholders]
    arguments = [made.get(name, given.get(name)) for name in wanted]
    # what is neither is a tangent
    arguments = [fake(value) if argument is None else argument for argument, (_, value) in zip(arguments, backward.placeholders)]
    results = [value for name, value in made.items() if name not in wanted]
    made = {}  # of what was saved, `del` in the source decides
    saved = meter.alive()
    run = _function(backward.source, meter)
    with torch.no_grad(), mode, meter:
        gradients = run(arguments)
    del results
    total = sum(t.nbytes for t in tensors_of(gradients))
    meter.seconds += updating(total)
    return Compiled(meter.most, saved, total, meter.seconds, meter.launches)
