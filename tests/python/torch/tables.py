"""The tables of docs/pytorch.md, as Markdown.

    TARN_LIBRARY=build/libtarn.so tests/with_torch.sh tests/python/torch/tables.py steps [NETWORKS...]
    TARN_LIBRARY=build/libtarn.so tests/with_torch.sh tests/python/torch/tables.py exported [NETWORKS...]
    TARN_LIBRARY=build/libtarn.so tests/with_torch.sh tests/python/torch/tables.py fused [NETWORKS...]

steps: each network is trained for 5 steps eagerly and by each plan; losses, parameters, buffers and
optimizer states have to be equal bit by bit. Times are those of this thread's processor, medians of
pairs that take turns. fused: with Inductor's kernels, and torch.compile. exported: what ExecuTorch's greedy algorithm and Tarn need."""
import statistics
import sys
import time
import warnings

import torch
from networks import EXPORTED, NETWORKS, eager_step, loss_of, make, make_exported

import tarn
import tarn.torch

STEPS, PAIRS = 5, 3
PLANS = {"plain": {}, "reorder": {"reorder": True}, "75 %": {"reorder": True, "budget": 0.75},
         "50 %": {"reorder": True, "budget": 0.5}, "two streams": {"streams": 2, "couple": True},
         "two, reordered": {"streams": 2, "couple": True, "reorder": True}}


def mib(size):
    return f"{size / (1 << 20):.1f}"


def adam(model):
    return torch.optim.Adam(model.parameters(), lr=1e-4, fused=True)


def train(step, model, optimizer, data):
    torch.manual_seed(1)
    losses = [step(batch) for batch in data]
    states = [v for p in model.parameters() for v in optimizer.state[p].values()]
    return [t.clone() for t in [*losses, *model.parameters(), *model.buffers(), *states]]


def seconds(step, batch):
    begin = time.thread_time()
    step(batch)
    return time.thread_time() - begin


def step_row(name):
    model, make_batch = make(name)
    optimizer = adam(model)
    torch.manual_seed(2)
    data = [make_batch() for _ in range(STEPS)]
    expected = train(lambda batch: eager_step(model, optimizer, *batch), model, optimizer, data)
    cells, equal, eager, ratio = [], True, None, None
    for options in PLANS.values():
        other, _ = make(name)
        theirs = adam(other)
        try:
            step = tarn.torch.step(other, theirs, loss_of, data[0], **options)
        except tarn.DoesNotFit:
            cells.append("—")
            continue
        assert step.reason is None, step.reason
        found = train(lambda batch: step(*batch), other, theirs, data)
        equal &= all(map(torch.equal, expected, found))
        if eager is None:
            report = step.report()
            eager = report.eager
            pairs = [(seconds(lambda b: step(*b), data[0]),
                      seconds(lambda b: eager_step(model, optimizer, *b), data[0]))
                     for _ in range(PAIRS + 1)][1:]
            ratio = statistics.median(a / b for a, b in pairs)
        cells.append(f"{mib(step.plan.footprint)} ({step.plan.footprint / eager - 1:+.0%})")
        del step, found, other, theirs
    return [name, mib(eager), *cells, "yes" if equal else "NO", f"{ratio:.2f}"]


def fused_row(name):
    """Kernels of Inductor as ops, with PyTorch's own way to use them."""
    torch.manual_seed(2)
    model, make_batch = make(name)
    data = [make_batch() for _ in range(STEPS)]
    optimizer, cells, times = adam(model), [], {}
    expected = train(lambda batch: eager_step(model, optimizer, *batch), model, optimizer, data)
    times["eager"] = lambda: eager_step(model, optimizer, *data[0])
    compiled, its = make(name)[0], None
    its = adam(compiled)
    loss = torch.compile(lambda *batch: loss_of(compiled, *batch))

    def compiled_step():
        loss(*data[0]).backward()
        its.step()
        its.zero_grad()

    memory = tarn.torch.install("cpu")
    compiled_step()
    compiled_step()
    before = memory.tarn_live()
    memory.tarn_reset_peak()
    compiled_step()
    own = memory.tarn_peak() - before
    steps = {}
    for way, options in {"planned": {}, "fused": {"fuse": True}, "75 %": {"fuse": True, "reorder": True, "budget": 0.75},
                         "50 %": {"fuse": True, "reorder": True, "budget": 0.5}}.items():
        other, _ = make(name)
        theirs = adam(other)
        try:
            step = tarn.torch.step(other, theirs, loss_of, data[0], **options)
        except tarn.DoesNotFit:
            cells.append("—")
            continue
        found = train(lambda batch: step(*batch), other, theirs, data)
        assert step.reason is None, step.reason
        steps[way] = step
        cells.append(mib(step.plan.footprint))
        times[way] = lambda step=step: step(*data[0])
        if way == "fused":
            one, two = (torch.stack(t[:STEPS]).double() for t in (found, expected))
            differs = float((one - two).norm() / two.norm())
    times["compile"] = compiled_step
    taken = {way: [] for way in times}
    for _ in range(PAIRS + 1):  # taking turns
        for way, call in times.items():
            begin = time.thread_time()
            call()
            taken[way].append(time.thread_time() - begin)
    ms = {way: 1e3 * statistics.median(those[1:]) for way, those in taken.items()}
    fused = steps["fused"]
    return [name, str(len(steps["planned"].graph.ops)), f"{len(fused.graph.ops)} ({fused._first.fused.kernels})", mib(steps["planned"].report().eager),
            *cells[:1], mib(own), *cells[1:], *(f"{ms[way]:.1f}" if way in ms else "—" for way in ("eager", "planned", "compile", "fused", "75 %", "50 %")),
            f"{differs:.0e}"]


def exported_row(name):
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
    from executorch.exir.passes.memory_planning_pass import MemoryPlanningPass
    from tarn.executorch import planner
    sizes = []
    for algorithm in (greedy, planner):
        model, inputs = make_exported(name)
        with torch.no_grad():
            edge = to_edge(torch.export.export(model, inputs, strict=False))
        suite = MemoryPlanningAlgorithmSuite([algorithm])
        program = edge.to_executorch(ExecutorchBackendConfig(memory_planning_pass=MemoryPlanningPass(
            memory_planning_algo=suite, alignment=16))).executorch_program
        sizes.append(sum(program.execution_plan[0].non_const_buffer_sizes))
    return [name, *map(str, sizes), f"{sizes[1] / sizes[0] - 1:+.1%}"]


def main():
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    what, names = sys.argv[1], sys.argv[2:]
    if what == "steps":
        head = ["network", "eager", *PLANS, "bit-equal", "time"]
        rows, row = [n for n in NETWORKS if not n.startswith("small")], step_row
    elif what == "fused":
        head = ["network", "ops", "fused (kernels)", "eager", "planned", "torch.compile", "fused", "75 %", "50 %",
                *(f"ms {way}" for way in ("eager", "planned", "torch.compile", "fused", "75 %", "50 %")), "losses differ by"]
        rows, row = [n for n in NETWORKS if not n.startswith("small")], fused_row
    else:
        head = ["program", "greedy", "Tarn", "less"]
        rows, row = [n for n in EXPORTED if not n.startswith("tiny")], exported_row
    print("|", " | ".join(head), "|")
    print("|" + "---|" * len(head), flush=True)
    for name in names or rows:
        print("|", " | ".join(row(name)), "|", flush=True)


if __name__ == "__main__":
    main()
