"""How near is the choice of when units are gathered, and which of them again, to the best one? Of small models every choice is
planned: each unit is kept for the backward pass, or gathered again 0 to 3 units ahead of it (5^6 plans); in the forward pass
units are gathered as early as can be. The fastest that fits is compared with what tarn.torch.fsdp takes within the same bytes;
nothing else runs again (docs/measured/sharding.md).

    tests/with_torch.sh tests/python/torch/prefetch_table.py MODEL RANKS"""
import bisect
import dataclasses
import itertools
import sys
import time
import warnings

import torch.distributed as dist
import torch.nn.functional as F
from sharding_table import ALIGNMENT, MODELS, STREAMS, lowered_of, of_words
from torch import nn
from torch.testing._internal.distributed.fake_pg import FakeStore

import tarn
from tarn.torch.lowering import Op
from tarn.torch.sharding import schedules
from tarn.torch.timing import WAIT, makespan

FARTHEST = 3


class Layer(nn.Module):
    def __init__(self, width, wide):
        super().__init__()
        self.up, self.down = nn.Linear(width, wide, bias=False), nn.Linear(wide, width, bias=False)

    def forward(self, x):
        return x + self.down(F.relu(self.up(x)))


class Layers(nn.Module):
    """Blocks of these widths inside."""

    def __init__(self, wides, width):
        super().__init__()
        self.blocks = nn.ModuleList(Layer(width, wide) for wide in wides)
        self.word, self.head = nn.Embedding(64, width), nn.Linear(width, 64, bias=False)

    def forward(self, x, _again):
        x = self.word(x)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


# The first and the last of the eight units are small: words, and the head.
SMALL = {"even": ([8192] * 6, 4096, 2048), "uneven": ([2048, 16384, 4096, 12288, 1024, 8192], 4096, 2048)}


def without(lowered, ops, names):
    """Ops of `gathered_twice` without the second gathers of these names, and the casts for them."""
    back = {root: lowered.twins[root] for op in ops if op.name in names
            for root in schedules._roots(lowered, op.outputs)}
    made = [dataclasses.replace(op, inputs=[back.get(root, s) for s, root in zip(
        op.inputs, schedules._roots(lowered, op.inputs))]) for op in ops if op.name not in names]
    kept: list = []
    read: set = set()
    for op in reversed(made):  # what a cast reads counts only if the cast is kept
        if not (op.prepares and op.name.endswith("'")) or read.intersection(
                schedules._roots(lowered, op.outputs)):
            kept.append(op)
            read.update(schedules._roots(lowered, op.inputs))
    return kept[::-1]


def every(lowered):
    """(bytes, nanoseconds, what is gathered again, and how far ahead) of all choices."""
    source = list(lowered.ops)
    twice = schedules.gathered_twice(lowered, source)
    again = [op.name for op in twice if op.name.endswith("'") and op.gathers]
    for ways in itertools.product(range(-1, FARTHEST + 1), repeat=len(again)):
        ops = without(lowered, twice, {name for name, way in zip(again, ways) if way < 0})
        distances = {name: way for name, way in zip(again, ways) if way >= 0}
        gathers = schedules.chains(lowered, ops)
        schedule = schedules.begun(lowered, ops, gathers, [distances.get(ops[chain[-1]].name, len(source)) for _, chain in gathers])
        lowered.ops = schedule.ops
        plan = tarn.plan(lowered.graph("step", STREAMS, (), schedule.control), alignment=ALIGNMENT)
        yield plan.footprint, makespan(plan, WAIT), ways
    lowered.ops = source


def main(model, ranks):
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    wides, width, length = SMALL[model]
    MODELS[model] = (lambda: Layers(wides, width), of_words(length))
    lowered = lowered_of(model, ranks)
    Op.may_repeat = property(lambda op: op.gathers or op.prepares)
    source = list(lowered.ops)
    begin = time.monotonic()
    found = sorted(every(lowered))
    seconds = time.monotonic() - begin
    lowered.ops = source
    best, sizes = [], [size for size, *_ in found]
    for size, nanoseconds, ways in found:
        best.append(min(best[-1], (nanoseconds, size, ways)) if best else (nanoseconds, size, ways))
    low, high = sizes[0], max(sizes)
    print(f"# {model}, {ranks} ranks: {len(found)} plans in {seconds:.0f} s, {low / 2**20:.0f} to {high / 2**20:.0f} MiB, "
          f"{len(source)} ops")
    for share in (0, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1):
        budget = int(low + share * (high - low))
        nanoseconds, size, ways = best[bisect.bisect_right(sizes, budget) - 1]
        lowered.ops = list(source)
        begin = time.monotonic()
        try:
            plan, *_ = schedules.fastest(lowered, budget, lambda waits: lowered.graph("step", STREAMS, (), waits), {"alignment": ALIGNMENT})
            own, its = makespan(plan, WAIT), plan.footprint
        except tarn.DoesNotFit as error:
            own, its = float("nan"), 0
            print(f"# {error}")
        lowered.ops = list(source)
        print(f"| {model}, {ranks} | {budget / 2**20:.0f} | {nanoseconds / 1e6:.3f} | {' '.join('k' if way < 0 else str(way) for way in ways)} | "
              f"{own / 1e6:.3f} | {its / 2**20:.0f} | {100 * (own / nanoseconds - 1):+.2f} | {time.monotonic() - begin:.1f} s |", flush=True)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], int(sys.argv[2]))
