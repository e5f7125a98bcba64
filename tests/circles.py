#!/usr/bin/env python3
"""Circles among the library's files and folders, by symbols and by includes.

    circles.py SOURCE BUILD     prints each circle; the exit status is 1 where there is one

A file has an arrow to each file that defines a symbol that it uses (nm -g over the objects of the
build), and to each header that it includes.
Circles are the strongly connected parts of more than one file (R. Tarjan, 1972)."""
import collections
import os
import re
import subprocess
import sys

LIBRARY = ("streams", "planner", "runtime", "cli")


def sources(root):
    for room in LIBRARY:
        for base, _, names in os.walk(os.path.join(root, room)):
            for name in names:
                if name.endswith((".c", ".h")):
                    yield os.path.relpath(os.path.join(base, name), root)


def symbol_arrows(build, files):
    of_object = {name.replace("/", "_") + ".o": name for name in files if name.endswith(".c")}
    defined, wanted = {}, {}
    for folder in sorted(os.listdir(build)):
        if not folder.endswith(".p") or not os.path.isdir(os.path.join(build, folder)):
            continue
        for name in os.listdir(os.path.join(build, folder)):
            source = of_object.get(name)
            if not source:
                continue
            wanted[source] = set()
            path = os.path.join(build, folder, name)
            for line in subprocess.check_output(["nm", "-g", path], text=True).splitlines():
                kind, symbol = line.split()[-2:]
                if kind == "U":
                    wanted[source].add(symbol)
                elif symbol.startswith("tarn_"):
                    defined[symbol] = source
    for source, symbols in wanted.items():
        for symbol in symbols:
            if symbol in defined:
                yield source, defined[symbol]


def include_arrows(root, files):
    for name in files:
        with open(os.path.join(root, name), encoding="utf-8") as file:
            for header in re.findall(r'^#include "([^"]+)"', file.read(), re.M):
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


def main(root, build):
    files = set(sources(root))
    by_file, by_folder = collections.defaultdict(set), collections.defaultdict(set)
    for a, b in list(symbol_arrows(build, files)) + list(include_arrows(root, files)):
        if a != b:
            by_file[a].add(b)
        if os.path.dirname(a) != os.path.dirname(b):
            by_folder[os.path.dirname(a)].add(os.path.dirname(b))
    found = circles(by_file) + circles(by_folder)
    for circle in found:
        print("circle:", " ".join(circle))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
