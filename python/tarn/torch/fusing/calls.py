"""What Inductor has generated as an fx graph: a node for each launch and each call of a library, a
Kernel that makes its own outputs of the tensors that it reads."""
from __future__ import annotations

import ast
import operator
import re
from typing import Any, NamedTuple, Optional, Sequence
from unittest import mock

import torch

from ..kernel import Kernel
from ..tensors import tensors_of
from .random_numbers import Draw, layout
from .source import Alias, Buffer, Call, Ended, Refused, Source, called, names_in, text


class _Function(NamedTuple):
    """The source of a Kernel. code: a module that defines `call`, and `into` where all that it makes
    are buffers."""
    kernel: Kernel
    code: Any
    has_into: bool


class Calls:
    """`module`: the graph; `own_peak`: see Fused; after `bind` its kernels may be called."""

    def __init__(self, source: Source, inputs: Sequence[tuple[str, Any]],
                 constants: dict[str, Any], mode: Any, drawn: Sequence[Draw]) -> None:
        """inputs: names of the graph's inputs and fake tensors, as Inductor was given them; the last
        ones are constants. drawn: eager execution's random ops (random_numbers.draws_of)."""
        if len(inputs) != len(source.inputs):
            raise Refused(f"Inductor's function takes {len(source.inputs)} tensors, not {len(inputs)}")
        self.source, self._mode, self._fakes = source, mode, _fake_space(source)
        self._functions: list[_Function] = []
        self._graph, root = torch.fx.Graph(), torch.nn.Module()
        self._env: dict[str, Any] = {}  # nodes by name
        self._new: dict[str, Buffer] = {}  # that nothing has written to
        self._last_random, self._drawn, self._drawn_count = 0, drawn, 0
        for own, (name, fake) in zip(source.inputs, inputs):
            if name in constants:
                setattr(root, name, constants[name])
            self._env[own] = (self._graph.get_attr(name) if name in constants
                              else self._graph.placeholder(name))
            self._env[own].meta["val"] = fake
        peak = _Peak(self._env)
        for step in source.steps:
            if isinstance(step, Buffer):
                self._new[step.name] = step
            elif isinstance(step, Alias):
                self._alias(step)
            elif isinstance(step, Call):
                self._call(step)
            peak.note(step)
        if self._drawn_count < len(drawn):
            raise Refused("random numbers would be drawn fewer times than by eager execution")
        self._graph.output([self._result(expression) for expression in source.outputs])
        self.own_peak: int = peak.most
        self.module = torch.fx.GraphModule(root, self._graph)

    def bind(self, namespace: dict[str, Any]) -> None:
        """namespace: of the loaded source."""
        for function in self._functions:
            scope: dict[str, Any] = {}
            exec(function.code, namespace, scope)  # pylint: disable=exec-used
            function.kernel.call = scope["call"]
            function.kernel.into = scope["into"] if function.has_into else None

    # ---- Statements ----

    def _node(self, name: str) -> Any:
        if name in self._new:
            self._make(name)
        if name not in self._env:
            raise Refused(f"{name} is not known")
        return self._env[name]

    def _make(self, name: str) -> None:
        """A buffer that others write part by part."""
        buffer = self._new.pop(name)
        node = self._emit("empty", [], [], [buffer], None)
        self._env[name] = self._item(node, 0)

    def _alias(self, alias: Alias) -> None:
        of = self._node(alias.of)
        if isinstance(alias.value, ast.Name):
            self._env[alias.name] = of
        elif alias.item is not None:
            self._env[alias.name] = self._item(of, alias.item)
        else:
            self._env[alias.name] = self._view(alias.value, alias.of)

    def _view(self, expression: ast.expr, of: str) -> Any:
        """reinterpret_tensor(...): a view of a tensor."""
        source, node = self._node(of), None
        arguments = [ast.literal_eval(a) for a in expression.args[1:]]  # type: ignore[attr-defined]
        with self._mode, torch.no_grad():
            value = self._fakes["reinterpret_tensor"](source.meta["val"], *arguments)
        node = self._graph.call_function(
            torch.ops.aten.as_strided.default,
            (source, tuple(value.shape), tuple(value.stride()), value.storage_offset()))
        node.meta["val"] = value
        return node

    def _call(self, call: Call) -> None:
        statement, reads = self._with_views(call)
        new = [n for n in reads if n in self._new]
        unwritten = [n for n in new if n not in call.writes and not self._new[n].fills]
        if unwritten:
            raise Refused(f"{unwritten[0]} is read before it is written: {text(call.statement)[:120]}")
        inputs = [n for n in reads if n not in self._new]
        if call.is_random:
            self._as_eager(call, [layout(self._env[n].meta["val"]) for n in inputs])
        made = [self._new.pop(n) for n in new]
        before = [self.source.streams[s] for s in call.streams]
        node = self._emit(call.kind.rpartition(".")[2] if "." in call.kind else call.kind,
                          [*before, statement], inputs, made, call.target,
                          [n for n in inputs if n in call.writes], call.is_random, call.key)
        for i, buffer in enumerate(made):
            self._env[buffer.name] = self._item(node, i)
        if call.target:
            self._env[call.target] = self._item(node, len(made))

    def _as_eager(self, call: Call, read: list[Any]) -> None:
        """Is the next random op of eager execution this one? Buffers are numbered in its order. read:
        layouts."""
        if self._drawn_count == len(self._drawn):
            raise Refused("random numbers would be drawn more times than by eager execution")
        names = [call.target] if call.target else sorted(call.writes)
        number = int(names[0][3:]) if len(names) == 1 and re.match(r"buf\d+$", names[0]) else -1
        expected, self._drawn_count = self._drawn[self._drawn_count], self._drawn_count + 1
        is_next = call.number == self._drawn_count or (
            not call.number and call.kind == expected.operator)
        if number < self._last_random or not is_next:
            raise Refused("random numbers would be drawn in another order than by eager execution")
        if expected.read not in (None, read):
            raise Refused(f"{call.kind} would draw random numbers for tensors that lie otherwise than "
                          "in eager execution")
        self._last_random = number

    def _with_views(self, call: Call) -> tuple[ast.stmt, list[str]]:
        """The statement with names for views of what is there, which are made once, and the names that
        it then reads."""
        views: dict[str, Any] = {}
        calls = self

        class Hoist(ast.NodeTransformer):
            def visit_Call(self, node: ast.Call) -> Any:
                if called(node) != "reinterpret_tensor":
                    return self.generic_visit(node)
                (of,) = [n for n in names_in(node) if n in calls._env or n in calls._new] or [""]
                if of in calls._new or not isinstance(node.args[0], ast.Name):
                    return node
                key = text(node)
                if key not in views:
                    views[key] = f"{of}_view{len(calls._env)}"
                    calls._env[views[key]] = calls._view(node, of)
                    if of in call.writes:
                        call.writes.add(views[key])
                return ast.Name(views[key], ast.Load())

        statement = ast.fix_missing_locations(Hoist().visit(_copied(call.statement)))
        value = statement.value
        return statement, [n for n in names_in(value) if n in self._env or n in self._new]

    def _result(self, expression: ast.expr) -> Any:
        if isinstance(expression, ast.Name):
            return self._node(expression.id)
        if called(expression) == "reinterpret_tensor":
            (of,) = [n for n in names_in(expression) if n in self._env or n in self._new]
            return self._view(expression, of)
        return ast.literal_eval(expression)

    # ---- Nodes ----

    def _item(self, node: Any, index: int) -> Any:
        item = self._graph.call_function(operator.getitem, (node, index))
        item.meta["val"] = node.meta["val"][index]
        return item

    def _emit(self, name: str, body: list[ast.stmt], inputs: list[str], made: list[Buffer],
              target: Optional[str], writes: Sequence[str] = (), is_random: bool = False,
              key: str = "") -> Any:
        """A node that runs `body` after having made buffers, and returns these and the target."""
        fills = [s for buffer in made for s in buffer.fills]
        new = [ast.Assign([ast.Name(b.name, ast.Store())], b.value) for b in made]
        names = [b.name for b in made]
        results = ast.Return(ast.Tuple([ast.Name(n, ast.Load()) for n in
                                        [*names, *([target] if target else [])]], ast.Load()))
        tree = ast.parse(f"def call({', '.join(inputs)}): pass\n"
                         f"def into({', '.join([*inputs, *names])}): pass")
        tree.body[0].body = [*new, *fills, *body, results]  # type: ignore[attr-defined]
        tree.body[1].body = [*fills, *body, ast.Pass()]  # type: ignore[attr-defined]
        code = compile(ast.fix_missing_locations(tree), f"<{name}>", "exec")
        kernel = Kernel(name, [inputs.index(n) for n in writes], is_random, key)
        self._functions.append(_Function(kernel, code, target is None))
        node = self._graph.call_function(kernel, tuple(self._env[n] for n in inputs))
        scope: dict[str, Any] = {}
        try:
            exec(code, self._fakes, scope)  # pylint: disable=exec-used
            with self._mode, torch.no_grad():
                node.meta["val"] = scope["call"](*(self._env[n].meta["val"] for n in inputs))
        except NameError as error:
            raise Refused(f"not understood: {error}") from error
        return node


def _copied(statement: ast.stmt) -> Any:
    return ast.parse(text(statement)).body[0]


class _Peak:
    """What Inductor has alive at once, name by name, as its `del` statements tell."""

    def __init__(self, env: dict[str, Any]) -> None:
        self._env, self._given, self.most = env, set(env), 0
        self._alive: dict[str, dict[int, int]] = {}

    def note(self, step: Any) -> None:
        if isinstance(step, Ended):
            for name in step.names:
                self._alive.pop(name, None)
            return
        names = [step.name] if isinstance(step, (Alias, Buffer)) else [step.target, *step.reads]
        given = {t.untyped_storage()._cdata for n in self._given
                 for t in tensors_of(self._env[n].meta["val"])}
        for name in names:
            if name in self._env and name not in self._given:
                self._alive[name] = {t.untyped_storage()._cdata: t.untyped_storage().nbytes()
                                     for t in tensors_of(self._env[name].meta["val"])}
        alive: dict[int, int] = {}
        for those in self._alive.values():
            alive.update(those)
        self.most = max(self.most, sum(size for key, size in alive.items() if key not in given))


# ---- Without a device ----

def _fake_space(source: Source) -> dict[str, Any]:
    """In which the statements run on fake tensors: kernels do nothing."""
    def reinterpret(tensor: Any, size: Any, stride: Any, offset: int = 0) -> Any:
        return torch.as_strided(tensor, size, stride, tensor.storage_offset() + offset)

    space: dict[str, Any] = {
        "torch": torch, "aten": torch.ops.aten, "inductor_ops": torch.ops.inductor,
        "device": torch.device, "inf": float("inf"), "nan": float("nan"),
        "extern_kernels": _Libraries(), "reinterpret_tensor": reinterpret,
        "get_raw_stream": lambda _: 0}
    for device in ("cpu", "cuda"):
        space[f"empty_strided_{device}"] = _empty_on(device)
    space["empty_strided_cpu_pinned"] = _empty_on("cpu")
    space.update({name: mock.Mock(return_value=None) for name in source.kernels})
    return space


def _empty_on(device: str) -> Any:
    return lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device=device)


class _Libraries:
    """extern_kernels on fake tensors."""

    def __getattr__(self, name: str) -> Any:
        from torch._inductor.select_algorithm import extern_kernels

        def call(*arguments: Any, **options: Any) -> Any:
            if "out" in options:
                return options["out"]
            return getattr(extern_kernels, name)(*arguments, **options)

        return call
