"""The command: estimates the step that a function in a file describes."""
from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import re
import sys
import traceback
from pathlib import Path
from typing import Any, Optional, Union

import torch

import tarn

from . import devices, estimate
from .answer import Estimate

USAGE = """MODEL.py:build names a function without arguments that returns
(model, optimizer, loss_fn, batch), as tarn.torch.step takes them; package.module:build works, too.
It is called inside `with torch.device("meta")`, so that nothing of the model's size is allocated."""
CODES = """exit codes: 0 fits (barely, too), 1 does not fit, 2 usage, 3 the step cannot be estimated,
8 a file cannot be read or written"""
FITS, DOES_NOT_FIT, USED_WRONGLY, BAD_INPUT, SYSTEM = 0, 1, 2, 3, 8
UNITS = {"": 1, "B": 1, "KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40,
         "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


class _Wrong(Exception):
    """How it was called."""


def _bytes(text: str) -> int:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) *([A-Za-z]*)", text)
    if not found or found[2].upper() not in UNITS:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: use for example 40GiB")
    size = int(float(found[1]) * UNITS[found[2].upper()])
    if not 0 < size < 1 << 62:
        raise argparse.ArgumentTypeError(f"{text!r} is out of range")
    return size


def _budget(text: str) -> Union[int, float, str]:
    if text == "fit":
        return text
    if text.endswith("%"):
        try:
            share = float(text[:-1]) / 100
        except ValueError:
            share = 0.0
    elif re.fullmatch(r"0?\.[0-9]+", text):
        share = float(text)
    else:
        return _bytes(text)
    if not 0 < share <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no share above 0 and up to 100%")
    return share


def _count(text: str) -> int:
    if not re.fullmatch("[0-9]{1,6}", text) or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 on")
    return int(text)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m tarn.torch.estimate", epilog=CODES, allow_abbrev=False,
        description="Will a training step fit, before there is a device. " + USAGE)
    parser.add_argument("build", metavar="MODEL.py:build", help="the function")
    parser.add_argument("--gpu", "--device", default="H100", metavar="NAME",
                        help=f"one of {', '.join(sorted(devices.DEVICES))} (H100)")
    parser.add_argument("--memory", type=_bytes, metavar="SIZE",
                        help="what is usable, instead of the device's memory: 40GiB")
    parser.add_argument("--budget", type=_budget, metavar="BUDGET",
                        help="fit, a share of the plan without one (75%%), or a size")
    parser.add_argument("--reorder", action="store_true", help="another order of the ops")
    parser.add_argument("--streams", type=_count, default=1, metavar="N",
                        help="divide the ops among streams")
    parser.add_argument("--ranks", type=_count, default=1, metavar="N",
                        help="a data-parallel step on one of N devices")
    parser.add_argument("--profile", metavar="FILE", help="costs that step.profile.save() wrote")
    parser.add_argument("--effort", type=_count, metavar="N", help="steps of search (1000)")
    parser.add_argument("--seconds", type=float, default=0.0, metavar="S",
                        help="of search at most; the plan then depends on the machine")
    parser.add_argument("--real", action="store_true",
                        help="call the function outside of torch.device(\"meta\")")
    parser.add_argument("--json", action="store_true", help="print an object instead of a table")
    parser.add_argument("--show", metavar="PAGE.html", help="write the plan as tarn show draws it")
    parser.add_argument("--save", metavar="GRAPH.json.gz", help="write the graph for tarn plan")
    return parser


def _function(text: str) -> Any:
    """What MODEL.py:build names."""
    place, colon, name = text.rpartition(":")
    if not colon or not place or not name.isidentifier():
        raise _Wrong(f"{text!r} names no function: use MODEL.py:build")
    if place.endswith(".py") or "/" in place:
        path = Path(place)
        if not path.is_file():
            raise FileNotFoundError(f"{place} is not there")
        sys.path.insert(0, str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        if spec is None or spec.loader is None:
            raise _Wrong(f"{place} is no Python file")
        module = importlib.util.module_from_spec(spec)
        sys.modules[path.stem] = module
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(place)
    if not callable(getattr(module, name, None)):
        raise _Wrong(f"{place} has no function {name}")
    return getattr(module, name)


def _built(function: Any, real: bool) -> Any:
    if real:
        made = function()
    else:
        try:
            with torch.device("meta"):
                made = function()
        except (NotImplementedError, RuntimeError) as error:
            if re.search("(CUDA|NVIDIA) driver|not compiled with CUDA", str(error)):
                raise _Wrong(f"{function.__name__} moves tensors to a GPU, which is not needed: "
                             "leave out .cuda() and .to(\"cuda\")") from error
            if "meta" not in str(error):
                raise
            raise _Wrong(f"{function.__name__} reads values of tensors, which \"meta\" does not "
                         f"have ({str(error).splitlines()[0]}): --real calls it without, and "
                         "allocates the model") from error
    if not isinstance(made, (tuple, list)) or len(made) != 4:
        raise _Wrong(f"{function.__name__} has to return (model, optimizer, loss_fn, batch)")
    model, optimizer, loss_fn, _ = made
    if not isinstance(model, torch.nn.Module) or not isinstance(optimizer, torch.optim.Optimizer) \
            or not callable(loss_fn):
        raise _Wrong(f"{function.__name__} has to return (model, optimizer, loss_fn, batch), not "
                     f"({', '.join(type(one).__name__ for one in made)})")
    return made


def _run(given: Any) -> Estimate:
    options: dict[str, Any] = {"reorder": given.reorder, "seconds": given.seconds}
    if given.effort:
        options["effort"] = given.effort
    model, optimizer, loss_fn, batch = _built(_function(given.build), given.real)
    found = estimate(model, optimizer, loss_fn, batch, given.gpu, memory=given.memory,
                     streams=given.streams, ranks=given.ranks, budget=given.budget,
                     profile=given.profile, **options)
    if given.save:
        found.graph.save(given.save)
    if given.show:
        found.show(given.show)
    return found


def _fail(code: int, text: Any) -> int:
    print(f"estimate: {text}", file=sys.stderr)
    return code


def main(words: Optional[list[str]] = None) -> int:
    given = _parser().parse_args(words)
    try:
        found = _run(given)
        print(json.dumps(found.as_dict(), indent=1) if given.json else found)
    except (_Wrong, tarn.UsageError) as error:
        return _fail(USED_WRONGLY, error)
    except tarn.DoesNotFit as error:
        return _fail(DOES_NOT_FIT, error)
    except tarn.BadInput as error:
        return _fail(BAD_INPUT, error)
    except OSError as error:
        return _fail(SYSTEM, error)
    except Exception as error:  # pylint: disable=broad-except
        traceback.print_exc()  # of the file, while it builds
        return _fail(BAD_INPUT, f"{given.build} fails: {type(error).__name__}: {error}")
    return FITS if found.fits else DOES_NOT_FIT
