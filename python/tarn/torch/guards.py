"""What a step has read, while it was captured, of the program around it: attributes of modules,
closures, globals, hooks. A trace keeps numbers as they were, so that it holds as long as they stay;
a tensor may be replaced by another one of the same layout. And what a step changes besides tensors
would change once and never again: that is undone, and an error."""
import collections
import copy
import functools
import inspect
import operator
import sysconfig
import types
import weakref
from contextlib import contextmanager
from pathlib import Path
from typing import Any, List, NamedTuple

import torch
from torch import nn

PLAIN = (bool, int, float, complex, str, bytes, type(None), torch.dtype, torch.device,
         torch.memory_format, slice)
CONTAINERS = (dict, list, tuple, collections.deque)
LARGE = 1000  # members from which on a container counts as one object
LIBRARIES = (*(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")),
             str(Path(torch.__file__).parents[1]))  # wherever PyTorch is
MEMBERS = ("_parameters", "_buffers", "_modules")
NONE = object()


def layout(tensor, storages):
    """Kernels are chosen by it. storages: the tensors' storages so far, by which is seen who shares
    one."""
    own = ()
    if tensor.layout is torch.strided:
        storage = storages.setdefault(tensor.untyped_storage()._cdata, len(storages))
        own = (tensor.stride(), tensor.storage_offset(), storage)
    return (tensor.shape, tensor.dtype, tensor.requires_grad, tensor.layout, *own)


def mark(value):
    """Equal as long as a value that is no tensor stays. It keeps the value, so that its id does not
    come again."""
    if isinstance(value, weakref.ref):
        return None
    return (type(value), value) if isinstance(value, PLAIN) else (id(value), value)


def _flatten(value, leaves, copies=None):
    """Appends what a container holds to `leaves`, and returns how it is built. copies: gets the
    containers that can be changed, each with a copy."""
    if not isinstance(value, CONTAINERS) or len(value) > LARGE:
        leaves.append(value)
        return len(value) if isinstance(value, CONTAINERS) else None
    if copies is not None and not isinstance(value, tuple):
        copies.append((value, copy.copy(value)))
    is_dict = isinstance(value, dict)
    members = [_flatten(m, leaves, copies) for m in (value.values() if is_dict else value)]
    return type(value), members, [mark(key) for key in value] if is_dict else None


class Place(NamedTuple):
    """Something with a name, and what was there at first."""
    owner: Any
    name: str
    label: str
    value: Any
    structure: Any
    leaves: List[Any]
    containers: List[Any]

    def get(self):
        return _get(self.owner, self.name)

    def restore(self):
        if self.get() is not self.value:
            if not isinstance(self.owner, dict):
                setattr(self.owner, self.name, self.value)
            elif self.value is NONE:
                del self.owner[self.name]
            else:
                self.owner[self.name] = self.value
        for container, contents in self.containers:
            container.clear()
            (container.update if isinstance(container, dict) else container.extend)(contents)


def _get(owner, name):
    if isinstance(owner, dict):
        return owner.get(name, NONE)
    try:
        return getattr(owner, name, NONE)
    except ValueError:  # of an empty cell
        return NONE


def _names(code):
    """All names in a function's code and in those within it."""
    inner = [_names(const) for const in code.co_consts if isinstance(const, types.CodeType)]
    return frozenset(code.co_names).union(*inner)


@functools.lru_cache(maxsize=None)
def _names_of_methods(kind):
    functions = [f for base in kind.__mro__ if base.__module__ != nn.Module.__module__
                 for f in vars(base).values() if isinstance(f, types.FunctionType)]
    return frozenset().union(*(_names(f.__code__) for f in functions))


class Guards:
    """The places that a step reads. functions: that it calls."""

    def __init__(self, model, functions):
        self._places, self._followed = {}, set()
        self._own = {id(module): module for module in model.modules()}
        for parameter in model.parameters():
            self._add(parameter, "_backward_hooks")
            self._add(parameter, "_post_accumulate_grad_hooks")
        for function in (*functions, *(module.forward for module in model.modules())):
            self._follow(function)

    def values(self):
        """(what has to stay, the tensors that may be replaced by such ones)"""
        marks, tensors, storages = [], [], {}
        for place in self._places.values():
            value = place.get()
            if type(value) in (bool, int, float, str, type(None)):
                marks.append((type(value), value))
                continue
            leaves = []
            marks.append(_flatten(value, leaves))
            for leaf in leaves:
                if isinstance(leaf, torch.Tensor):
                    tensors.append(leaf)
                marks.append(layout(leaf, storages) if isinstance(leaf, torch.Tensor) else mark(leaf))
        return marks, tensors

    # ---- By the names in code ----

    def _add(self, owner, name, names=frozenset(), label=None):
        key = id(owner), name
        if key not in self._places:
            value, leaves, copies = _get(owner, name), [], []
            self._places[key] = Place(owner, name, label or f"{type(owner).__name__}.{name}", value,
                                      _flatten(value, leaves, copies), leaves, copies)
        for leaf in self._places[key].leaves:
            self._follow(leaf, names)

    def _follow(self, value, names=frozenset()):
        """What else is read where code with these names uses a value."""
        if isinstance(value, functools.partial):
            names |= {"args", "keywords"}
            self._follow(value.func, names)
        if isinstance(value, types.MethodType):
            self._follow_function(value.__func__, value.__self__)
        elif isinstance(value, types.FunctionType):
            self._follow_function(value, None)
        elif not (isinstance(value, (torch.Tensor, *PLAIN, *CONTAINERS))
                  or isinstance(value, types.ModuleType) and value.__name__.startswith("torch")
                  or (id(value), names) in self._followed):
            self._followed.add((id(value), names))
            for name in (*names, "__call__"):
                self._follow_attribute(value, name, names)

    def _follow_attribute(self, value, name, names):
        found = inspect.getattr_static(value, name, NONE)
        is_own = name in getattr(value, "__dict__", ())
        if isinstance(found, (types.FunctionType, property)) and not is_own:
            self._follow_function(getattr(found, "fget", found), value)
        elif found is not NONE and not isinstance(value, nn.Module) and (
                is_own or isinstance(found, types.MemberDescriptorType)
                or not hasattr(type(found), "__get__")):
            self._add(value, name, names)

    def _follow_function(self, function, owner):
        code = getattr(function, "__code__", None)
        if (code is None or code.co_filename.startswith(LIBRARIES)
                or (function, id(owner)) in self._followed):
            return
        self._followed.add((function, id(owner)))
        names = _names(code)
        self._add(function, "__defaults__", names)
        self._add(function, "__kwdefaults__", names)
        for name, cell in zip(code.co_freevars, function.__closure__ or ()):
            self._add(cell, "cell_contents", names, name)
        for name in names & function.__globals__.keys():
            self._add(function.__globals__, name, names, name)
        if owner is not None:
            self._follow(owner, names)

    # ---- By what modules do ----

    @contextmanager
    def watch(self, twins):
        """Notes which attributes of modules are read and written, and finds what has changed.
        twins: real tensors, by the ids of those that stand for them."""
        own, put = self._own, nn.Module.__setattr__

        def note(module, name):
            kind, attributes = type(module), object.__getattribute__(module, "__dict__")
            if kind is nn.Module:  # the tracer's
                return
            for each in (name,) if id(module) in own else (name, *MEMBERS):
                if (id(attributes), each) not in self._places:
                    self._add(attributes, each, _names_of_methods(kind), f"{kind.__name__}.{each}")

        def get(module, name):
            value = object.__getattribute__(module, name)
            if id(module) not in own or (name not in MEMBERS and
                                         name in object.__getattribute__(module, "__dict__")):
                note(module, name)
            return value

        def set_(module, name, value):
            note(module, name)
            put(module, name, value)

        nn.Module.__getattribute__, nn.Module.__setattr__ = get, set_
        try:
            yield
        finally:
            del nn.Module.__getattribute__
            nn.Module.__setattr__ = put
            changed = self._undo(twins)
        if changed:
            raise ValueError(f"{changed[0].label} changes, and is neither parameter nor buffer (what is "
                             "made once and kept is there after the model has run once)")

    def _undo(self, twins):
        changed = []
        for place in self._places.values():
            leaves = []
            structure = _flatten(place.get(), leaves)
            if structure == place.structure and all(map(operator.is_, leaves, place.leaves)):
                continue
            if structure != place.structure or any(
                    mark(twins.get(id(a), a)) != mark(twins.get(id(b), b))
                    for a, b in zip(leaves, place.leaves)):
                changed.append(place)
            place.restore()
        self._places = {key: place._replace(value=None, leaves=[], containers=[])  # frees tensors
                        for key, place in self._places.items()}
        return changed
