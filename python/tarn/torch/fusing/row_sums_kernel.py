"""The kernel of row_sums.py, in Triton. One program makes a part of one row of the result; what it
adds up, it adds up in the same order each time."""
from __future__ import annotations

import math
from typing import Any

import torch
import triton  # type: ignore[import-untyped, import-not-found, unused-ignore]
import triton.language as tl  # type: ignore[import-untyped, import-not-found, unused-ignore]

WIDEST = 1024  # numbers of a row that one program makes
AT_ONCE = 4  # rows that it reads


@triton.jit(debug=True)  # type: ignore[misc, untyped-decorator, unused-ignore]
def _kernel(made, base, values, places, starts, rows, count, width,  # type: ignore[no-untyped-def]
            HAS_BASE: tl.constexpr, SUM: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < width
    tl.device_assert((tl.load(starts) == 0) & (tl.load(starts + 2 * rows) == count),
                     "an index is out of range")
    total = tl.zeros((BLOCK,), SUM)
    for side in tl.static_range(2):  # what counts from the end, and what does not
        first = tl.load(starts + row + side * rows)
        last = tl.load(starts + row + side * rows + 1)
        for begin in range(first, last, ROWS):
            at = begin + tl.arange(0, ROWS)
            place = tl.load(places + at, at < last, other=0)
            part = tl.load(values + place[:, None] * width + columns[None, :],
                           (at < last)[:, None] & inside[None, :], other=0.0)
            total += tl.sum(part.to(SUM), 0)
    own = row.to(tl.int64) * width + columns
    if HAS_BASE:
        total += tl.load(base + own, inside, other=0.0).to(SUM)
    tl.store(made + own, total.to(made.dtype.element_ty), inside)


def sum_of_rows(made: torch.Tensor, base: Any, values: torch.Tensor, places: torch.Tensor,
                starts: torch.Tensor) -> None:
    """made: rows × numbers; base: likewise, or None: zeros. All are contiguous."""
    rows, width = made.shape[0], math.prod(made.shape[1:])
    block = min(WIDEST, triton.next_power_of_2(width))
    kind = tl.float64 if made.dtype == torch.float64 else tl.float32
    _kernel[rows, triton.cdiv(width, block)](
        made, base if base is not None else made, values, places, starts, rows, places.numel(),
        width, base is not None, kind, block, AT_ONCE)
