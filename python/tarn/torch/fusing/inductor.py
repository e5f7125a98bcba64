"""What is private in Inductor, and used here: `compile_fx_inner`, `GraphLowering.save_output_code`,
`PyCodeCache.load`, `CppPythonBindingsCodeCache.load_pybinding_async` with what it asks its class for,
`AsyncCompile.submit`, `get_compile_threads`, `InductorChoices.can_fuse` with
`V.set_choices_handler`, `BaseSchedulerNode.get_outputs`, `SchedulerBuffer.get_mutations`,
`joint_graph_passes`, `select_decomp_table`, `fx_graph_cse`, `CppScheduling.ready_to_flush`,
`SchedulerNode.recompute_size_and_body`, `FxGraphCache.prepare_key`, `pick_vec_isa`, `cache_dir` and
names of settings. `source.py` and `together.py` have the form of what it generates.
Tried with PyTorch 2.9, 2.11 and 2.15.

Nothing is compiled until a source is loaded; its kernels are then compiled, or found in Inductor's
caches of kernels. Sources are kept beside those, in files that are named by Inductor's key for the
graph and the choices made here, which that key does not know; `fx_graph_cache` turns it off."""
from __future__ import annotations

import contextlib
import hashlib
import importlib
import os
import tempfile
from collections.abc import Iterator
from functools import partial
from typing import Any, Mapping, Optional
from unittest import mock

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.passes.fake_tensor_prop import FakeTensorProp

from ..capture import is_random
from ..tensors import tensors_of
from .chunks import BLOCK
from .embedding import deterministic, embedding_backward
from .row_sums import index_put
from .source import Refused
from .together import libraries

SETTINGS = {
    "triton.cudagraphs": False, "triton.cudagraph_trees": False, "graph_partition": False,
    "cpp_wrapper": False, "fx_wrapper": False, "fx_graph_cache": False,
    "allow_buffer_reuse": False, "memory_planning": False, "reorder_for_peak_memory": False,
    "fallback_random": True,  # the numbers of eager execution
    "keep_output_stride": True, "size_asserts": False, "alignment_asserts": False,
    "scalar_asserts": False, "nan_asserts": False, "benchmark_harness": False,
    "profile_bandwidth": False, "triton.autotune_at_compile_time": False, "comment_origin": False,
    "layout_optimization": False,  # on the CPU copies to channels_last take more than they bring
    "triton.multi_kernel": 0, "benchmark_kernel": False, "combo_kernels": False}
ONE_WAY = "write_are_deterministic_algorithms_enabled"  # to add up for all sizes, where it is told


class _Stop(Exception):
    """The source is there."""


@contextlib.contextmanager
def _known(what: str) -> Iterator[None]:
    """Another version of PyTorch may have changed what is used here."""
    try:
        yield
    except (ImportError, AttributeError, TypeError) as error:
        raise Refused(f"PyTorch {torch.__version__} has another {what} than tarn.torch knows "
                      f"({type(error).__name__}: {error})") from error


def decompositions() -> dict[Any, Any]:
    """Inductor's, but of random operators, which draw the numbers of eager execution, of embeddings,
    and of sums of rows."""
    with _known("table of decompositions"):
        from torch._inductor.decomposition import select_decomp_table
        importlib.import_module("torch._inductor.lowering")  # which decompositions ask
        found = {op: function for op, function in select_decomp_table().items()
                 if not (isinstance(op, torch._ops.OpOverload)
                         and torch.Tag.nondeterministic_seeded in op.tags)}
        backward = torch.ops.aten.embedding_dense_backward.default
        return {**found, backward: partial(embedding_backward, found[backward]),
                torch.ops.aten.index_put.default: index_put}


def joint_passes(module: torch.fx.GraphModule, mode: Any, settings: Mapping[str, Any]) -> None:
    """Inductor's passes on graphs of both passes, but those for random numbers. What blocks of a loss
    pad alike is padded once. Types and strides are told anew."""
    with _known("joint_graph_passes"):
        from torch._inductor import config
        from torch._inductor.fx_passes.joint_graph import joint_graph_passes
        from torch._functorch.compile_utils import fx_graph_cse
        with mode, config.patch({"fallback_random": True, **settings}), _tracing(mode):
            joint_graph_passes(module)
            if has_blocks(module):
                module.graph = fx_graph_cse(module.graph)
            module.graph.eliminate_dead_code()
            propagate(module, mode)


def propagate(module: torch.fx.GraphModule, mode: Any) -> None:
    """Tells fake tensors of all nodes anew."""
    fakes = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    with mode:
        _Propagate(module, mode).propagate_dont_convert_inputs(*fakes)


class _Propagate(FakeTensorProp):  # type: ignore[misc, unused-ignore]
    """Keeps numbers among results: their positions count."""

    def run_node(self, n: Any) -> Any:
        result = super().run_node(n)
        if n.op in ("call_function", "get_attr"):
            n.meta["val"] = result
        return result

    def get_attr(self, target: Any, args: Any, kwargs: Any) -> Any:
        return self._mode.from_tensor(super().get_attr(target, args, kwargs).clone())


def _tracing(mode: Any) -> Any:
    return torch._guards.tracing(torch._guards.TracingContext(mode))


def generated(module: torch.fx.GraphModule, mode: Any, in_place: bool,
              settings: Mapping[str, Any]) -> str:
    """Inductor's source for a graph."""
    sources: list[str] = []
    file: Optional[str] = None

    def keep(source: str) -> None:
        sources.append(source)
        raise _Stop

    module = _copy(module)
    fakes = [node.meta["val"] for node in module.graph.find_nodes(op="placeholder")]
    results = module.graph.output_node().args[0]
    module.graph.output_node().meta.update(
        user_visible_output_idxs=list(range(len(results))),
        original_output_strides=[r.meta["val"].stride() if isinstance(r, torch.fx.Node) and isinstance(
            r.meta["val"], torch.Tensor) else None for r in results])
    try:
        with _known("compiler"):
            from torch._inductor import config
            from torch._inductor.choices import InductorChoices
            from torch._inductor.codegen.cpp import CppScheduling
            from torch._inductor.compile_fx import compile_fx_inner
            from torch._inductor.graph import GraphLowering
            from torch._inductor.scheduler import SchedulerNode
            from torch._inductor.virtualized import V
            ours = {**SETTINGS, ONE_WAY: torch.are_deterministic_algorithms_enabled()}
            ours = {name: value for name, value in ours.items() if _is_setting(config, name)}
            if any(fake.is_cuda for fake in fakes):
                del ours["layout_optimization"]
            if has_blocks(module) or any(is_random(node) for node in module.graph.nodes):
                ours["reorder_for_locality"] = False  # one block, and one draw, after the other
            choices = _choices(InductorChoices, not in_place)()
            keeps = (settings.get("fx_graph_cache", config.fx_graph_cache)
                     and not config.force_disable_caches)
            with config.patch({**ours, "inplace_buffers": in_place, **settings}), _tracing(mode), \
                    torch.no_grad(), deterministic(), V.set_choices_handler(choices), \
                    mock.patch.object(GraphLowering, "save_output_code", staticmethod(keep)), \
                    mock.patch.object(SchedulerNode, "recompute_size_and_body",
                                      _ordered(SchedulerNode.recompute_size_and_body)), \
                    mock.patch.object(CppScheduling, "ready_to_flush", lambda _: True):
                # else all kernels between two calls of libraries are one function on the CPU
                file = _file_for(module, fakes, in_place) if keeps else None
                if file:
                    with contextlib.suppress(OSError), open(file, encoding="utf-8") as kept:
                        return kept.read()
                compile_fx_inner(module, fakes, is_inference=True,
                                 static_input_idxs=range(len(fakes)))  # they are aligned: see Fused
    except Exception as error:  # pylint: disable=broad-except
        if not sources:
            raise
        del error
    if not sources:
        raise Refused(f"Inductor of PyTorch {torch.__version__} has generated no source")
    if file:
        _keep(sources[-1], file)
    return sources[-1]


def _file_for(module: torch.fx.GraphModule, fakes: Any, in_place: bool) -> Optional[str]:
    """Where its source is kept from process to process, or None: something in it has no key."""
    from torch._inductor.codecache import FxGraphCache
    from torch._inductor.cpu_vec_isa import pick_vec_isa
    from torch._inductor.runtime.cache_dir_utils import cache_dir
    from torch.fx.experimental.symbolic_shapes import ShapeEnv
    with _tracing(FakeTensorMode(shape_env=ShapeEnv())):  # it asks for one, if only for symbols
        found, _ = FxGraphCache.prepare_key(module, fakes, {"is_inference": True},
                                            range(len(fakes)), False)
    if found is None:
        return None
    with open(__file__, "rb") as file:
        words = [found[0], in_place, file.read(), module.graph.output_node().meta]
    if not all(fake.is_cuda for fake in fakes):  # widths of vectors are in the source, and threads
        words += [torch.backends.cpu.get_cpu_capability(), torch.get_num_threads(),
                  str(pick_vec_isa())]
    for node in module.graph.nodes:
        tensors = tensors_of(node.meta.get("val"))
        words += [node.name, node.meta.get("partitioner_tag"), node.meta.get(BLOCK),
                  *((t.shape, t.stride(), t.dtype, t.device) for t in tensors)]
    key = hashlib.sha256("\n".join(map(repr, words)).encode()).hexdigest()
    return os.path.join(cache_dir(), "tarn", f"{key}.py")


def _keep(source: str, file: str) -> None:
    """Whole or not at all; another process may do the same. A full disk costs the next one time."""
    with contextlib.suppress(OSError):
        os.makedirs(os.path.dirname(file), exist_ok=True)
        with tempfile.TemporaryDirectory(dir=os.path.dirname(file)) as folder:
            with open(os.path.join(folder, "new"), "w", encoding="utf-8") as new:
                new.write(source)
            os.replace(new.name, file)


def _copy(module: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """Inductor changes what it is given."""
    graph = torch.fx.Graph()
    copies: dict[Any, Any] = {}
    graph.output(graph.graph_copy(module.graph, copies))
    for old, new in copies.items():
        new.meta = dict(old.meta)
    made = torch.fx.GraphModule(torch.nn.Module(), graph)
    made.meta = dict(module.meta)
    return made


def _is_setting(config: Any, name: str) -> bool:
    try:
        config.patch({name: getattr(config, name) if "." not in name else _inner(config, name)})
        return True
    except AttributeError:
        return False


def _inner(config: Any, name: str) -> Any:
    for part in name.split("."):
        config = getattr(config, part)
    return config


def _is_backward(node: Any) -> bool:
    return any(getattr(origin, "meta", {}).get("partitioner_tag") == "is_backward"
               for part in node.get_nodes() for origin in getattr(part.node, "origins", None) or ())


def has_blocks(module: torch.fx.GraphModule) -> bool:
    """Is the loss in chunks?"""
    return any(BLOCK in node.meta for node in module.graph.nodes)


def _blocks(node: Any) -> set[int]:
    """In which blocks of the loss it works (chunks.py)."""
    return {origin.meta[BLOCK] for part in node.get_nodes()
            for origin in getattr(part.node, "origins", None) or () if BLOCK in getattr(origin, "meta", {})}


def _writes(node: Any) -> bool:
    return any(output.get_mutations() for output in node.get_outputs())


def _ordered(recompute: Any) -> Any:
    """Where loops are changed to fuse them on the CPU, PyTorch 2.11 forgets that a kernel has to run
    after a call that writes to what it reads: dropout was read before its numbers were drawn."""
    def ordered(node: Any, *arguments: Any, **options: Any) -> None:
        from torch._inductor.dependencies import StarDep, WeakDep
        from torch.utils._ordered_set import OrderedSet
        added = OrderedSet(d for d in node.read_writes.reads if isinstance(d, (StarDep, WeakDep)))
        recompute(node, *arguments, **options)
        node.set_read_writes(node.read_writes.with_read(added).rename(node.mutation_renames))

    return ordered


def _choices(choices: Any, is_again: bool) -> Any:
    class Choices(choices):  # type: ignore[misc, unused-ignore]
        """No kernel does work of both passes: what it makes for the backward pass only would be kept
        from the forward pass on (ResNet-50: 3,987 MiB instead of 2,728). But in a block of a loss
        they follow each other (GPT-2: 3,871 MiB if kept apart); blocks stay apart. is_again: what
        writes to inputs, as batch norm to its statistics, is a kernel of its own, so that others
        may run again."""

        @staticmethod
        def can_fuse(scheduler: Any, node1: Any, node2: Any, shared_data_score: Any) -> Any:
            one, two = _blocks(node1), _blocks(node2)
            apart = (one != two or not one and _is_backward(node1) != _is_backward(node2)
                     or is_again and _writes(node1) != _writes(node2))
            return not apart and choices.can_fuse(scheduler, node1, node2, shared_data_score)

    return Choices


def loaded(source: str) -> dict[str, Any]:
    """What a source defines, its kernels compiled: many at once, or, where that fails, one by one, as
    Inductor does it."""
    with contextlib.suppress(Exception):
        return _together(source)
    with _known("PyCodeCache"):
        from torch._inductor.codecache import PyCodeCache
        return dict(vars(PyCodeCache.load(source)))


def _together(source: str) -> dict[str, Any]:
    from torch._inductor.async_compile import AsyncCompile, get_compile_threads
    from torch._inductor.codecache import CppPythonBindingsCodeCache, PyCodeCache
    at_once = get_compile_threads()
    rest, made = libraries(source, at_once)
    pending = []
    for library in made:
        cache: Any = type("Cache", (CppPythonBindingsCodeCache,), {
            "cache": {}, "call_entry_function": "return kernel({});",
            "extra_parse_arg": library.bindings.replace("{", "{{").replace("}", "}}")})
        pending.append(cache.load_pybinding_async(
            ["int64_t"], library.code, submit_fn=AsyncCompile.submit if at_once > 1 else None))
    found = dict(vars(PyCodeCache.load(rest)))
    for library, ready in zip(made, pending):
        kernel = ready()
        found.update((name, kernel(number)) for number, name in enumerate(library.names))
    return found
