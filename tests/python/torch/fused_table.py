"""Networks at the sizes of their papers on a GPU that is not there: for each way to run a step how many ops and kernels
there are, what its plans need and what Inductor itself would have alive at once. Prints rows of Markdown; needs the
libraries of models (tests/setup.sh torch-models). Kernels are generated for an H100 and neither compiled nor run; costs,
by which a budget chooses what runs again, are guessed from bytes (2.5 TB/s) and products (400 Tflop/s).

    TARN_REQUIRE=torch-models TARN_LIBRARY=build/libtarn.so tests/with_torch.sh --models tests/python/torch/fused_table.py GPT-2 [WAYS...]"""
import os
import re
import sys
import time
from contextlib import contextmanager
from unittest import mock

import torch
from gpu_networks import make
from stand_in import NoGpu, run_without_a_gpu

MIB = 1 << 20
WAYS = {"unfused": False, "fused": {"chunks": 1}, "chunks": {"chunks": 8}}


def main():
    import tarn
    import tarn.torch
    from tarn.torch import stepping
    from tarn.torch.fusing import calls
    from tarn.torch.tensors import tensors_of
    from triton.runtime import driver

    def guess(lowered, _tensors, _queues):
        for op in lowered.ops:
            if op.node is None:
                continue
            read = [t for n in op.node.all_input_nodes for t in tensors_of(n.meta["val"])]
            seconds = sum(t.nbytes for t in {id(t): t for t in read + tensors_of(op.node.meta["val"])}.values()) / 2.5e12
            if re.search(r"\.(b|add|badd)?b?mm(\.|$)", op.kind + "."):
                one, two = read[-2:]
                seconds = max(seconds, 2 * one.numel() * two.shape[-1] / 4e14)
            if "attention" in op.kind:
                batch, heads, length, width = next(t for t in read if t.dim() == 4).shape
                seconds = max(seconds, (5 if "backward" in op.kind else 2) * batch * heads * length * length * width / 3e14)
            op.cost = int(1e9 * seconds) + 2000

    driver.set_active(NoGpu())
    tarn.torch.install("cuda")
    torch.backends.cudnn.enabled = False
    torch.backends.cuda.enable_cudnn_sdp(False)
    name = sys.argv[1]
    print("| network | way | ops | kernels | guessed ms | arena MiB | bound | Inductor's own | 75 % | 50 % | least | made in s |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|", flush=True)
    for way in sys.argv[2:] or WAYS:
        model, loss, data, _ = make(name)
        optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
        begin = time.monotonic()
        with mock.patch.object(stepping, "profile", guess), mock.patch.object(stepping, "unchanged", contextmanager(lambda *_: (yield))), \
                mock.patch.object(stepping, "add_state", lambda *_: None), \
                mock.patch.object(calls.Calls, "bind", lambda *_: None), mock.patch("tarn.torch.fusing.loaded", lambda _: {}):
            step = tarn.torch.step(model, optimizer, loss, data, fuse=WAYS[way], compare=False, budget=None if way == "unfused" else 1.0)
        made, graph, fused = time.monotonic() - begin, step.graph, step._first and step._first.fused
        if graph is None or step.reason:
            print(f"| {name} | {way} | {step.reason}")
            continue
        whole, cells = step.plan.footprint, []
        for share in (0.75, 0.5, 0.0):
            try:
                plan = tarn.plan(graph, alignment=512, reorder=True, budget=int(share * whole) or 1)
                again = [graph.ops[plan.origin(op.id)].cost for op in plan.graph.ops if plan.is_recomputed(op.id)]
                cells.append(f"{plan.footprint / MIB:.0f} (+{sum(again) / 1e6:.1f} ms, {len(again)} ops)")
            except tarn.DoesNotFit as error:
                cells.append(f"{error.least / MIB:.0f}" if share == 0 else "no")
        cost = sum(op.cost for op in graph.ops) / 1e6
        print(f"| {name} | {way} | {len(graph.ops)} | {fused.kernels if fused else ''} | {cost:.1f} | {whole / MIB:.0f} | {step.plan.bound / MIB:.0f} | "
              f"{f'{fused.own_peak / MIB:.0f}' if fused else ''} | {' | '.join(cells)} | {made:.0f} |", flush=True)


if __name__ == "__main__":
    if not torch.cuda.is_available() and "NO_GPU_LOG" not in os.environ:
        sys.exit(run_without_a_gpu(sys.argv, "/dev/null"))
    main()
