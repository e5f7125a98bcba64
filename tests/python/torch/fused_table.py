"""Networks at the sizes of their papers on a GPU that is not there: what fused steps need, beside torch.compile. Prints rows
of Markdown; docs/measured/fused.md keeps them. Needs the libraries of models (tests/setup.sh torch-models).

    TARN_REQUIRE=torch-models TARN_LIBRARY=build/libtarn.so tests/with_torch.sh --models \\
        tests/python/torch/fused_table.py NETWORK [WAYS...]

WAYS, by default all of WAYS: `compile-SHARE`, torch.compile within a share of its `activation_memory_budget`, whose bytes are
then budgets of fused steps; `unfused`; `fused`, as steps are without a budget; `whole` and `chunks` with a number, as they are
with one, the loss as a whole or in so many chunks. Kernels are generated for an H100 and neither compiled nor run; costs are
guessed (guessed_costs.py). With `graphs=FOLDER` the graphs of steps are kept there, for the command `tarn`. MiB beyond what
stays."""
import os
import re
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import torch
from compiled_peak import MIB, compiled
from gpu_networks import make
from guessed_costs import seconds, updating
from stand_in import NoGpu, run_without_a_gpu

WAYS = [*(f"compile-{share}" for share in (1.0, 0.9, 0.7, 0.5, 0.3, 0.1)), "fused", "chunks8"]
CHECKPOINTS = {"GPT-2": 5110, "GPT-2 TF32": 5054, "BERT": 3280, "MoE": 3275, "ViT": 618, "ResNet-50": 1145, "MobileNetV2": 836,
               "U-Net": 896}  # MiB, measured: docs/measured/gpu.md


def guess(lowered, _tensors, _queues):
    """In the place of measured costs."""
    from tarn.torch.tensors import tensors_of
    for op in lowered.ops:
        if op.node is None:
            gradients = {lowered.storages[s].root for s in op.inputs} - lowered.persistent.keys()
            op.cost = int(1e9 * updating(sum(lowered.storages[s].size for s in gradients))) + 2000
        else:
            read = [t for n in op.node.all_input_nodes for t in tensors_of(n.meta["val"])]
            op.cost = int(1e9 * seconds(op.kind, read, tensors_of(op.node.meta["val"])))


def cell(graph, budget):
    """What a plan within so many MiB needs."""
    import tarn
    try:
        plan = tarn.plan(graph, alignment=512, reorder=True, budget=int(budget * MIB))
    except tarn.DoesNotFit as error:
        return f"no: {error.least / MIB:.0f}"
    again = [graph.ops[plan.origin(op.id)].cost for op in plan.graph.ops if plan.is_recomputed(op.id)]
    return f"{plan.footprint / MIB:.0f}, +{100 * sum(again) / sum(op.cost for op in graph.ops):.1f} %, {len(again)} ops"


def of_compile(name, shares):
    """Returns the MiB of each share."""
    print("| network | way | launches | guessed ms | alive at once | saved | gradients | made in s |\n|---|---|---:|---:|---:|---:|---:|---:|", flush=True)
    peaks = {}
    for share in shares:
        model, loss, data, _ = make(name)
        begin = time.process_time()
        try:
            found = compiled(lambda *batch, model=model, loss=loss: loss(model, *batch), data, share)
        except Exception as error:  # pylint: disable=broad-except
            print(f"| {name} | torch.compile, {share} | failed: {str(error)[:300]!r} |", flush=True)
            continue
        peaks[share] = found.peak / MIB
        print(f"| {name} | torch.compile, {share} | {found.launches} | {1e3 * found.seconds:.1f} | {found.peak / MIB:.0f} | {found.saved / MIB:.0f} | "
              f"{found.gradients / MIB:.0f} | {time.process_time() - begin:.0f} |", flush=True)
    return peaks


def of_tarn(name, way, budgets, folder):
    import tarn
    import tarn.torch
    from tarn.torch import variant
    from tarn.torch.fusing import calls
    model, loss, data, _ = make(name)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    begin = time.process_time()
    kind, number = re.match(r"([a-z]+)(\d*)$", way).groups()
    budget = None if kind in ("unfused", "fused") else 1.0
    with mock.patch.object(variant, "profile", guess), mock.patch.object(variant, "unchanged", contextmanager(lambda *_, **__: (yield))), \
            mock.patch.object(variant, "add_state", lambda *_: None), \
            mock.patch.object(calls.Calls, "bind", lambda *_: None), mock.patch("tarn.torch.fusing.loaded", lambda _: {}):
        step = tarn.torch.step(model, optimizer, loss, data, compare=False, budget=budget, streams=1,
                               fuse=kind != "unfused" and {"chunks": int(number or 1)})
    graph, fused = step.graph, step._first and step._first.fused
    if graph is None or step.reason:
        print(f"| {name} | {way} | {step.reason}", flush=True)
        return
    if folder:
        graph.save(f"{folder}/{name}-{way}.json.gz")
    plan = step.plan if budget is None else tarn.plan(graph, alignment=512)
    cells = [cell(graph, budget) for budget in budgets] if kind != "fused" else []
    cost = sum(op.cost for op in graph.ops) / 1e6
    print(f"| {name} | {way} | {len(graph.ops)} | {fused.kernels if fused else ''} | {cost:.1f} | {plan.footprint / MIB:.0f} | {plan.bound / MIB:.0f} | "
          f"{f'{fused.own_peak / MIB:.0f}' if fused else ''} | {' | '.join(cells)} | {time.process_time() - begin:.0f} |", flush=True)


def main(name, words):
    import tarn.torch
    from triton.runtime import driver
    driver.set_active(NoGpu())
    tarn.torch.install("cuda")
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    folders = [Path(word[7:]) for word in words if word.startswith("graphs=")]
    ways = [word for word in words if not word.startswith("graphs=")] or WAYS
    shares = [float(way[8:]) for way in ways if way.startswith("compile-")]
    budgets = {f"in the bytes of {share}": peak for share, peak in of_compile(name, shares).items()} if shares else {}
    if budgets:
        rival = next(iter(budgets.values()))
        budgets.update({"half of the first": rival / 2, "checkpoints": CHECKPOINTS.get(name, rival / 4), "least": 1 / MIB})
    ways = [way for way in ways if not way.startswith("compile-")]
    if not ways:
        return
    print(f"| network | way | ops | kernels | guessed ms | arena | bound | Inductor's own | {' | '.join([*budgets, 'made in s'])} |\n"
          f"|---|---|---:|---:|---:|---:|---:|---:|{'---|' * len(budgets)}---:|", flush=True)
    for way in ways:
        of_tarn(name, way, budgets.values(), folders[0] if folders else None)


if __name__ == "__main__":
    if not torch.cuda.is_available() and "NO_GPU_LOG" not in os.environ:
        sys.exit(run_without_a_gpu(sys.argv, "/dev/null"))
    main(sys.argv[1], sys.argv[2:])
