#!/usr/bin/env python3
"""What the symbols of the library's objects say about its house.

    symbols.py SOURCE BUILD

Prints a line for each circle among files or folders, and for each global name that no other file
uses; the exit status is 1 where there is a line.

A file has an arrow to each file that defines a symbol that it uses (nm -g over the objects of the
build), and to each header that it includes. Circles are the strongly connected parts of more than
one file (R. Tarjan, 1972). Tests and examples are looked through as text: their objects need not be
there."""
import collections
import os
import re
import subprocess
import sys

LIBRARY = ("streams", "planner", "runtime", "cli")


def sources(root, rooms, endings=(".c", ".h")):
    for room in rooms:
        for base, _, names in os.walk(os.path.join(root, room)):
            for name in names:
                if name.endswith(endings):
                    yield os.path.relpath(os.path.join(base, name), root)


def texts(root, names):
    for name in names:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            yield name, file.read()


def objects(build, files):
    """Object -> source. Meson names an object after its source, seen from the folder of the target."""
    of_name = {name.replace("/", "_") + ".o": name for name in files if name.endswith(".c")}
    for room in ("",) + tuple({os.path.dirname(name) for name in files}):
        folder = os.path.join(build, room)
        for target in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
            if not target.endswith(".p"):
                continue
            for name in os.listdir(os.path.join(folder, target)):
                source = of_name.get((room.replace("/", "_") + "_" if room else "") + name)
                if source:
                    yield os.path.join(folder, target, name), source


def read_symbols(build, files):
    """Symbol -> source that defines it; source -> symbols that it uses."""
    of_object = dict(objects(build, files))
    rooms = {name.split("/")[0] for name in of_object.values()}  # a build may have no command
    missing = [name for name in sorted(files - set(of_object.values()))
               if name.endswith(".c") and name.split("/")[0] in rooms and not name.startswith("planner/papers/")]
    defined, wanted = {}, collections.defaultdict(set)
    for line in subprocess.check_output(["nm", "-gA", *of_object], text=True).splitlines():
        path, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            wanted[of_object[path]].add(symbol)
        else:
            defined[symbol] = of_object[path]
    return defined, wanted, missing


def include_arrows(files, text_of):
    for name in files:
        for header in re.findall(r'^#include "([^"]+)"', text_of[name], re.M):
            beside = os.path.normpath(os.path.join(os.path.dirname(name), header))
            target = beside if beside in files else header
            if target in files:
                yield name, target


def circles(arrows):
    index, low, stack, found = {}, {}, [], []

    def visit(node):
        index[node] = low[node] = len(index)
        stack.append(node)
        for other in arrows.get(node, ()):
            if other not in index:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], index[other])
        if low[node] == index[node]:
            part = []
            while not part or part[-1] != node:
                part.append(stack.pop())
            if len(part) > 1:
                found.append(sorted(part))

    sys.setrecursionlimit(100000)
    for node in list(arrows):
        if node not in index:
            visit(node)
    return found


def unused(defined, wanted, words, text_of):
    """Names that no other file uses, and no test: they could be static, but for what only an assert
    calls: static it would be unused in a build with NDEBUG. A call that this build leaves out, as
    one of kernels without their compiler, counts too."""
    users = collections.defaultdict(set)
    for source, symbols in wanted.items():
        for symbol in symbols:
            users[symbol].add(source)
    found = [symbol for symbol, source in defined.items()
             if symbol != "main" and not symbol.endswith("_valid") and symbol not in words and users[symbol] <= {source}]
    return sorted(symbol for symbol in found
                  if not any(f"{symbol}(" in text for name, text in text_of.items()
                             if name.endswith(".c") and name != defined[symbol]))


def main(root, build):
    files = set(sources(root, LIBRARY))
    text_of = dict(texts(root, files))
    defined, wanted, missing = read_symbols(build, files)
    by_file, by_folder = collections.defaultdict(set), collections.defaultdict(set)
    uses = [(source, defined[symbol]) for source, symbols in wanted.items() for symbol in symbols & defined.keys()]
    for a, b in uses + list(include_arrows(files, text_of)):
        if a != b:
            by_file[a].add(b)
        if os.path.dirname(a) != os.path.dirname(b):
            by_folder[os.path.dirname(a)].add(os.path.dirname(b))
    lines = ["circle: " + " ".join(circle) for circle in circles(by_file) + circles(by_folder)]
    outside = texts(root, sources(root, ("include", "tests", "examples"), (".c", ".cpp", ".h", ".hpp")))
    words = set(re.findall(r"\btarn_\w+", "".join(text for _, text in outside)))
    lines += [f"unused: {defined[symbol]}: {symbol}" for symbol in unused(defined, wanted, words, text_of)]
    lines += [f"not looked at: {name}" for name in missing]
    print("\n".join(lines), end="\n" if lines else "")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
