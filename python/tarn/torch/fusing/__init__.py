"""A captured step whose ops are Inductor's kernels: `fuse=True` of tarn.torch.step.

Forward and backward pass are one graph for Inductor, which fuses and schedules it. What it has
generated, a Python function that allocates buffers, launches kernels and calls libraries, is read
statement by statement and becomes an fx graph again, in which each launch and each call of a library
is one node that makes its own outputs. So profile, lowering, plan and program treat it as any other
op; order, places, recomputation and streams are Tarn's.

    functional.py   calls of ATen without writes, and of simpler ops
    chunks.py       the loss of a language model block by block
    random_numbers.py  numbers and layouts of eager execution
    embedding.py    the gradient of an embedding's table
    row_sums.py     rows that an index adds up
    inductor.py     Inductor's source for them: what is private in Inductor is used here alone
    together.py     kernels of the CPU in few libraries
    source.py       that source, statement by statement: what each reads, makes and writes
    calls.py        an fx graph of them

What is not understood is refused, and the step runs unfused, with a reason."""
from __future__ import annotations

from typing import Any, Mapping, Optional

import torch

from ..capture import Captured
from ..tensors import tensors_of
from .calls import Calls
from .chunks import BLOCKS
from .functional import functional, lifted, own_gradients
from .inductor import generated, loaded
from .random_numbers import draws_of
from .source import Refused, parsed

_TOLERANCES = {torch.float64: 1e-10, torch.float32: 1e-4, torch.float16: 5e-3,
               torch.bfloat16: 2e-2}
_ROUNDINGS = {torch.float64: 2.0**-53, torch.float32: 2.0**-24, torch.float16: 2.0**-11,
              torch.bfloat16: 2.0**-8}
_TF32, _TF32_ROUNDING = 1e-3, 2.0**-11
ALIGNED = 16
CHUNKS = 8  # the largest number of chunks of the loss, used with a budget
SHARE = 8  # of a budget in bytes, that a chunk's logits may have

__all__ = ["Fused", "Refused", "fused"]


def _has_tf32() -> bool:
    return bool(torch.backends.cuda.matmul.allow_tf32 or torch.backends.cudnn.allow_tf32)


class Fused:
    """A fused step. `captured` has the kernels as ops; they can be called after `load`. finer:
    settings for more chunks of the loss, which may fit where these do not, or None."""

    def __init__(self, captured: Captured, calls: Calls, source: str,
                 finer: Optional[Mapping[str, Any]]) -> None:
        self.captured, self.source, self._calls, self.finer = captured, source, calls, finer

    @property
    def kernels(self) -> int:
        """How many functions are compiled."""
        return len(self._calls.source.kernels)

    @property
    def tolerance(self) -> float:
        """By how much of its norm what the kernels make may differ from eager execution."""
        return self._largest(_TOLERANCES, _TF32)

    @property
    def rounding(self) -> float:
        """By how much of itself a number changes where it is rounded to the coarsest type."""
        return self._largest(_ROUNDINGS, _TF32_ROUNDING)

    def _largest(self, by_type: Mapping[Any, float], of_tf32: float) -> float:
        values = [t for node in self.captured.module.graph.nodes
                  for t in tensors_of(node.meta.get("val"))]
        found = [by_type[t.dtype] for t in values if t.dtype in by_type]
        rounds = any(t.device.type == "cuda" for t in values) and _has_tf32()
        return max(found + ([of_tf32] if rounds else []), default=by_type[torch.float32])

    @property
    def own_peak(self) -> int:
        """Bytes that Inductor itself has alive at once in this order, beside what it is given."""
        return self._calls.own_peak

    @staticmethod
    def check(tensors: Any) -> None:
        """Raises Refused if kernels of Triton cannot take the step's inputs where they lie."""
        if any(t.is_cuda and t.data_ptr() % ALIGNED for t in tensors):
            raise Refused(f"a parameter or an input does not begin at a multiple of {ALIGNED} bytes, "
                          "as Inductor's kernels need it")

    def load(self) -> None:
        """Compiles what has not been compiled before."""
        self._calls.bind(loaded(self.source))


def fused(captured: Captured, in_place: bool, budget: Optional[int],
          settings: Mapping[str, Any]) -> Fused:
    """Fuses a captured step. in_place: without a budget kernels may write over what they are the last
    to read, and then cannot run again. settings: of Inductor, and `chunks`, the number of chunks in
    which a large loss is computed. By default it is whole in_place; else there are CHUNKS, or, with
    a budget in bytes, two to CHUNKS: as few as make the logits of each small beside it, because each
    chunk adds up the gradient of the last product's weight once more. Raises Refused."""
    settings = dict(settings)
    chunks, room = settings.pop("chunks", None), 0
    if chunks is None:
        chunks, room = 1 if in_place else CHUNKS, (budget or 0) // SHARE
    module, mode = functional(captured, chunks, room, settings)
    few, many = module.meta.get(BLOCKS, (1, 1))
    inputs, constants = lifted(module)
    source = generated(module, mode, in_place=in_place, settings=settings)
    calls = Calls(parsed(source), inputs, constants, mode, draws_of(captured.module))
    made = captured._replace(module=own_gradients(calls.module, captured, mode))
    return Fused(made, calls, source, {**settings, "chunks": CHUNKS} if few < many else None)
