"""python -m tarn.read FILE -o GRAPH: see docs/reading.md."""
from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from typing import Any, Optional

import tarn

from . import FORMATS, detect, read


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


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tarn.read", description="Makes a Tarn graph of another program's file.",
        epilog="formats: " + "; ".join(f"{name}: {what}" for name, what in FORMATS.items()))
    parser.add_argument("file", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="GRAPH", help="where the graph goes (.json, .gz)")
    parser.add_argument("--format", choices=list(FORMATS), help="in place of what FILE looks like")
    parser.add_argument("--dim", type=_dim, action="append", default=[], metavar="NAME=NUMBER",
                        help="a symbolic dimension (onnx)")
    parser.add_argument("--shape", type=_shape, action="append", default=[],
                        metavar="TENSOR=NUMBER,...", help="the shape of a tensor (onnx)")
    parser.add_argument("--plan", metavar="PLAN",
                        help="where the plan goes that the file's producer made (somas, xla)")
    return parser


def _options(arguments: Any, name: str) -> dict[str, Any]:
    """What was given, for the format that takes it."""
    given: dict[str, Any] = {"dims": dict(arguments.dim), "shapes": dict(arguments.shape)}
    takes = {"onnx": ("dims", "shapes")}.get(name, ())
    words = {"dims": "--dim", "shapes": "--shape"}
    for option, value in given.items():
        if value and option not in takes:
            raise tarn.UsageError(f"{words[option]} says nothing to the format {name}")
    return {option: value for option, value in given.items() if value}


def run(words: Optional[Sequence[str]] = None) -> int:
    """The command; returns its exit code."""
    arguments = _parser().parse_args(words)
    try:
        name = arguments.format or detect(arguments.file)
        reading = read(arguments.file, name, **(_options(arguments, name) if name else {}))
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
        print(f"tarn.read: {error}", file=sys.stderr)
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
