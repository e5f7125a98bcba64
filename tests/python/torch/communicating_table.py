"""Models that communicate by themselves on ranks of gloo: time, bytes and collectives of a step, eager, by torch.compile and
planned (docs/measured/sharding.md). The ways take turns; times are medians over all their steps on rank 0.

    tests/with_torch.sh tests/python/torch/communicating_table.py [MODEL RANKS]     all of them, or one"""
import re
import statistics
import subprocess
import sys
import tempfile
import time
import warnings

import torch
import torch.distributed as dist
from communicating_ranks import Network, gathered_where_used, with_sequences
from networks import eager_step, loss_of
from sharding_ranks import adam
from torch.utils._python_dispatch import TorchDispatchMode

import tarn.torch
from tarn.torch.memory import allocator

MODELS = {"tensor parallel": with_sequences, "gathered": gathered_where_used}
WORLDS = (2, 4)
ROUNDS, STEPS = 6, 4
SIZES = {"words": 1000, "width": 256, "blocks": 4, "heads": 8}
BATCH, LENGTH = 8, 64


class Collectives(TorchDispatchMode):
    """How many there are, and what they bring in from other ranks."""
    count = received = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if any(kind.__name__ == "DTensor" for kind in types):
            return NotImplemented
        if func.namespace == "_c10d_functional" and re.match("all_|reduce_|broadcast", func.__name__):
            made, world = func(*args, **(kwargs or {})), dist.get_world_size()
            self.count += 1
            size = (args[0] if "reduce" in func.__name__ else made).nbytes
            self.received += size * (world - 1) // world * (2 if func.__name__.startswith("all_reduce") else 1)
            return made
        return func(*args, **(kwargs or {}))


def sides(wrap, count):
    for _ in range(count):
        torch.manual_seed(0)
        model = wrap(Network(**SIZES))
        yield model, adam(model.parameters())


def rank(number, world, store, name):
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=number, world_size=world)
    torch.manual_seed(1 if name == "tensor parallel" else 1 + number)
    batch = [torch.randint(0, SIZES["words"], (BATCH, LENGTH)) for _ in range(2)]
    (model, optimizer), (compiled, theirs), (planned, ours), (smaller, least) = sides(MODELS[name], 4)
    tarn.torch.install("cpu")
    code = torch.compile(compiled)
    steps = {"eager": lambda: eager_step(model, optimizer, *batch), "torch.compile": lambda: eager_step(code, theirs, *batch)}
    made, reports = {}, {}
    for way in steps:
        begin = time.monotonic()
        steps[way]()
        made[way] = time.monotonic() - begin
    for way, pair, budget in (("planned", (planned, ours), None), ("planned, budget=0.7", (smaller, least), 0.7)):
        begin = time.monotonic()
        step = tarn.torch.step(*pair, loss_of, batch, budget=budget)
        for _ in range(3):  # two of them are compared with eager execution
            step(*batch)
        made[way], steps[way] = time.monotonic() - begin, lambda step=step: step(*batch)
        assert step.reason is None, step.reason
        reports[way] = step.report()
    counted = Collectives()
    with counted:
        steps["eager"]()
    memory, peaks, times = allocator("cpu"), {}, {way: [] for way in steps}
    for way in ("eager", "torch.compile"):
        steps[way]()
        before = memory.tarn_live()
        memory.tarn_reset_peak()
        steps[way]()
        peaks[way] = memory.tarn_peak() - before
    for _ in range(ROUNDS):
        for way, step in steps.items():
            for _ in range(STEPS):
                dist.barrier()
                begin = time.perf_counter()
                step()
                times[way].append(time.perf_counter() - begin)
    for way in steps if number == 0 else ():
        report = reports.get(way)
        count, received = (report.collectives, report.received) if report else (
            (counted.count, counted.received) if way == "eager" else ("", None))
        again = len(report.gathered_again) if report else ""
        print(f"| {name}, {world} | {way} | {(report.arena if report else peaks[way]) / 2**20:.2f} | {count} | {again} | "
              f"{'' if received is None else f'{received / 2**20:.2f}'} | {1e3 * statistics.median(times[way]):.1f} | "
              f"{1e3 * min(times[way]):.1f} | {made[way]:.0f} |", flush=True)
    dist.destroy_process_group()


def main(names, worlds):
    print("| model, ranks | way | MiB | collectives | gathers again | MiB received | ms | least ms | made in s |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for name in names:
        for world in worlds:
            with tempfile.TemporaryDirectory() as folder:
                ranks = [subprocess.Popen([sys.executable, __file__, "rank", str(number), str(world), f"{folder}/store", name])
                         for number in range(world)]
                assert not any([process.wait() for process in ranks])


if __name__ == "__main__":
    if sys.argv[1:2] == ["rank"]:
        rank(int(sys.argv[2]), int(sys.argv[3]), *sys.argv[4:])
    else:
        main(sys.argv[1:2] or MODELS, list(map(int, sys.argv[2:])) or WORLDS)
