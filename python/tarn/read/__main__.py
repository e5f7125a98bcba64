"""python -m tarn.read FILE -o GRAPH: see docs/reading.md."""
from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import Any, Optional

import tarn

from . import FORMATS, Reading, costs, detect, read
from .detect import TRACE


def _dim(text: str) -> tuple[str, int]:
    name, equals, value = text.rpartition("=")
    if not equals or not value.isdigit():
        raise argparse.ArgumentTypeError(f"{text!r} is not NAME=NUMBER")
    return name, int(value)


def _shape(text: str) -> tuple[str, tuple[int, ...]]:
    name, equals, value = text.rpartition("=")
    words = value.split(",") if value else []
    if not equals or not all(word.strip().isdigit() for word in words):
        raise argparse.ArgumentTypeError(f"{text!r} is not TENSOR=NUMBER,NUMBER,...")
    return name, tuple(map(int, words))


def parser() -> argparse.ArgumentParser:
    """Of the command's arguments."""
    made = argparse.ArgumentParser(
        prog="python -m tarn.read", description="Makes a Tarn graph of another program's file.",
        epilog="formats: " + "; ".join(f"{name}: {what}" for name, what in FORMATS.items()))
    made.add_argument("file", metavar="FILE")
    made.add_argument("-o", "--output", metavar="GRAPH", help="where the graph goes (.json, .gz)")
    made.add_argument("--format", choices=list(FORMATS), help="in place of what FILE looks like")
    for option, meta, kind, text in _OPTIONS:
        if kind is None:
            made.add_argument(option, action="store_true", help=text)
        elif kind in (_dim, _shape):
            made.add_argument(option, type=kind, action="append", metavar=meta, help=text)
        else:
            made.add_argument(option, type=kind, metavar=meta, help=text)
    return made


# Option, what stands behind it, its type (None: nothing), help.
_OPTIONS: tuple[tuple[str, str, Any, str], ...] = (
    ("--plan", "PLAN", str, "where the plan goes that FILE's producer made (somas, xla, executorch)"),
    ("--dim", "NAME=NUMBER", _dim, "a symbolic dimension (onnx, exported)"),
    ("--shape", "TENSOR=NUMBER,...", _shape, "the shape of a tensor (onnx)"),
    ("--method", "NAME", str, "the method of a program (executorch)"),
    ("--function", "NAME", str, "the function of a module (stablehlo)"),
    ("--live-ranges", "FILE", str, "where they do not lie beside FILE (xla)"),
    ("--device", "NUMBER", int, "the device (snapshot)"),
    ("--one-stream", "", None, "streams in the order of the host's calls (snapshot)"),
    ("--costs-of", "GRAPH", str, "FILE is a trace: GRAPH with its times as costs"),
    ("--streams", "", None, "also on the trace's streams (with --costs-of)"),
)
# Of each option that is for some formats: the argument of their functions, and which.
_TAKEN = {"dim": ("dims", ("onnx", "exported")), "shape": ("shapes", ("onnx",)),
          "method": ("method", ("executorch",)), "function": ("function", ("stablehlo",)),
          "live_ranges": ("live_ranges", ("xla",)), "device": ("device", ("snapshot",)),
          "one_stream": ("one_stream", ("snapshot",)), "streams": ("streams", (TRACE,))}


def _options(arguments: Any, name: str) -> dict[str, Any]:
    """What was given, for the format that takes it."""
    result: dict[str, Any] = {}
    for option, (argument, formats) in _TAKEN.items():
        value = getattr(arguments, option)
        if value in (None, False):
            continue
        if name not in formats:
            raise tarn.UsageError(f"--{option.replace('_', '-')} says nothing to the format {name}")
        result[argument] = dict(value) if isinstance(value, list) else value
    return result


def _reading(arguments: Any) -> Reading:
    if arguments.costs_of:
        return costs(arguments.file, arguments.costs_of, **_options(arguments, TRACE))
    name = arguments.format or detect(arguments.file)
    return read(arguments.file, name, **(_options(arguments, name) if name else {}))


def _is_same_file(one: str, other: str) -> bool:
    """Is it one regular file, by links too? Of what does not exist yet: is it one path?"""
    if os.path.exists(one) and os.path.exists(other):
        return os.path.isfile(one) and os.path.samefile(one, other)
    return os.path.realpath(one) == os.path.realpath(other)


def _check_files(arguments: Any) -> None:
    """No file that is read is written, and none is written twice."""
    written = [path for path in (arguments.output, arguments.plan) if path]
    read_too = [path for path in (arguments.file, arguments.costs_of, arguments.live_ranges) if path]
    pairs = [(path, other, "read and written") for path in written for other in read_too]
    pairs += [(path, other, "written twice") for path, other in zip(written, written[1:])]
    for path, other, what in pairs:
        if _is_same_file(path, other):
            raise tarn.UsageError(f"'{path}' and '{other}' are one file, which would be {what}; "
                                  "write to another one")


def run(words: Optional[Sequence[str]] = None) -> int:
    """The command; returns its exit code."""
    arguments = parser().parse_args(words)
    try:
        _check_files(arguments)
        reading = _reading(arguments)
        if arguments.output:
            reading.graph.save(arguments.output)
        if arguments.plan:
            if reading.plan is None:
                raise tarn.UsageError(f"{arguments.file} holds no offsets, so there is no plan")
            reading.plan.save(arguments.plan)
    except tarn.TarnError as error:
        print(f"tarn.read: {error}", file=sys.stderr)
        return next((code for code, kind in tarn.errors.BY_STATUS.items()
                     if isinstance(error, kind)), 8)
    except OSError as error:
        said = f"{error.filename or repr('')}: {error.strerror}" if error.strerror else str(error)
        print(f"tarn.read: {said}", file=sys.stderr)
        return 8
    for text in reading.assumed:
        print(f"assumed: {text}", file=sys.stderr)
    graph = reading.graph
    print(f"{graph.name}: {len(graph.ops)} ops in {len(graph.streams)} streams, "
          f"{len(graph.tensors)} tensors")
    if reading.plan is not None:
        print(f"placed by the file's producer: {reading.plan.footprint} bytes")
    if reading.refused:
        print(f"tarn.read: the producer's placement is refused: {reading.refused}", file=sys.stderr)
        return 6 if arguments.plan else 0
    return 0


if __name__ == "__main__":
    sys.exit(run())
