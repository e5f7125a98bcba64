"""Kernels of the CPU compiled together. Inductor makes a library of each, and the headers that it
reads for each take longer than the kernel: here one library has many."""
from __future__ import annotations

import ast
from typing import NamedTuple, Optional, Sequence

MOST = 32  # kernels of a library: more than one can be compiled at a time


class Library(NamedTuple):
    """names: of kernels, in the order of their numbers; code: theirs, each in its namespace;
    bindings: for Python, which `kernel(number)` gives."""
    names: list[str]
    code: str
    bindings: str


# The address of a tensor is what Inductor's own bindings ask for it.
BINDINGS = """
#include <utility>

template <auto kernel> struct Bound;
template <typename... T, void (*function)(T...)> struct Bound<function> {
    template <size_t... I>
    static void run(PyObject* const* tensors, std::index_sequence<I...>) {
        function(static_cast<T>(_torchinductor_pyobject_tensor_data_ptr(tensors[I]))...);
    }

    static PyObject* call(PyObject*, PyObject* const* tensors, Py_ssize_t count) {
        if (count != sizeof...(T)) {
            PyErr_Format(PyExc_TypeError, "it takes %%zu tensors, not %%zd", sizeof...(T), count);
            return nullptr;
        }
        try {
            run(tensors, std::index_sequence_for<T...>());
        } catch (std::exception const& e) {
            PyErr_SetString(PyExc_RuntimeError, e.what());
            return nullptr;
        }
        Py_RETURN_NONE;
    }
};

static PyMethodDef bound[] = {
%s};

static PyObject* kernel(int64_t number) { return PyCFunction_New(&bound[number], nullptr); }
"""
BOUND = """    {"%s", reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(Bound<&%s::kernel>::call)),
     METH_FASTCALL, ""},
"""


def libraries(source: str, at_once: int) -> tuple[str, list[Library]]:
    """Inductor's source without those of its kernels that can be compiled together, and libraries of
    them. at_once: so many compilers run at once."""
    lines, found = source.splitlines(keepends=True), []
    for s in ast.parse(source).body:
        kernel = _kernel(s)
        if kernel:
            found.append(kernel)
            first, last = s.lineno - 1, s.end_lineno or s.lineno
            lines[first:last] = [f"{kernel[0]} = None\n"] + ["\n"] * (last - first - 1)
    count = max(min(at_once, len(found)), -(-len(found) // MOST))
    return "".join(lines), [_library(found[i::count]) for i in range(count)]


def _kernel(s: ast.stmt) -> Optional[tuple[str, list[str], str]]:
    """Its name, the headers that it includes and its function, if `s` is a kernel all of whose
    arguments are tensors, and whose code has only these two."""
    if not (isinstance(s, ast.Assign) and isinstance(s.value, ast.Call)
            and ast.unparse(s.value.func) == "async_compile.cpp_pybinding"):
        return None
    types, code = map(ast.literal_eval, s.value.args)
    head, extern, function = code.partition('extern "C"')
    headers = [line.strip() for line in head.splitlines() if line.strip()]
    directives = [line.split() for line in function.splitlines() if line.lstrip().startswith("#")]
    if (all("*" in t for t in types) and extern and extern not in function
            and all(line.startswith("#include") for line in headers)
            and all(words[0] == "#pragma" for words in directives)):
        return s.targets[0].id, headers, function  # type: ignore[attr-defined]
    return None


def _library(kernels: Sequence[tuple[str, list[str], str]]) -> Library:
    names = [name for name, _, _ in kernels]
    headers = dict.fromkeys(line for _, those, _ in kernels for line in those)
    code = [f"namespace {name} {{\nstatic {function}\n}}\n" for name, _, function in kernels]
    bindings = BINDINGS % "".join(BOUND % (name, name) for name in names)
    return Library(names, "\n".join([*headers, *code]), bindings)
