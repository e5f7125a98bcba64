"""Ways to run a training step of a network on a GPU, side by side: milliseconds of a step, and MiB beyond what stays
(parameters, states of the optimizer, batch). Prints rows of Markdown; docs/measured/gpu.md keeps them.

    tests/python/torch/gpu_table.py NETWORK[,NETWORK...] [WAYS...]     TARN_LIBRARY, and PYTHONPATH=python:tests

Each way is a process of its own. They are made side by side, but work on the GPU one at a time; then those of a network take
turns, ROUNDS times, STEPS steps each, alone on the GPU; a row has the medians. WAYS (by default those of WAYS):

    eager, checkpoint (each block again), compile, compile-graphs (mode="reduce-overhead")
    compile-SHARE, compile-graphs-SHARE (activation_memory_budget)
    planned, planned-direct (no CUDA graph), planned-SHARE (a budget, a share of the plan)
    fused, fused-chunks (the loss in eight), fused-SHARE, fused-least, fused-MIBm (a budget of so many MiB)
    fused+whole-SHARE and its like: a budget, and the loss as a whole
    planned+one, fused+one-SHARE and its like: all on one stream; planned+two and its like: divided among two
    moved, moved-SHARE, moved-MIBm (planned, what idles waits in the host's memory), fused+moved-SHARE and its like;
    moved+states-SHARE: the optimizer's states live there, too

RATE ("50GB/s") is what copies are planned with, MAKING_SECONDS (110) the limit of a way's making. PROFILES: a folder for the times of kernels
of three steps of each way.
Without a GPU all of it runs on a stand-in that computes nothing, with small networks: it shows that the table can be made."""
import contextlib
import fcntl
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from unittest import mock

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
MIB = 1 << 20
ROUNDS, STEPS = 3, 10
WAYS = ["eager", "checkpoint", "compile", "planned", "fused", "fused-chunks", "fused-0.75", "fused-0.5", "fused-least"]
RATE = os.environ.get("RATE", "50GB/s")
SECONDS = float(os.environ.get("MAKING_SECONDS", 110))
LOG = os.environ.get("NO_GPU_LOG")


_inside = 0  # of `alone`


@contextlib.contextmanager
def alone():
    """On the GPU."""
    global _inside  # pylint: disable=global-statement
    with open(os.environ["GPU_TABLE_LOCK"], "w", encoding="ascii") as file:
        if not _inside:
            fcntl.flock(file, fcntl.LOCK_EX)
        _inside += 1
        try:
            yield
        finally:
            _inside -= 1


def choose_alone():
    """Inductor chooses by time among the forms of a kernel: without others on the GPU."""
    from torch._inductor.runtime.triton_heuristics import CachingAutotuner
    own = CachingAutotuner.benchmark_all_configs

    def choose(self, *arguments, **options):
        with alone():
            return own(self, *arguments, **options)

    CachingAutotuner.benchmark_all_configs = choose


# ---- Ways: each returns (a step, a function that tells its bytes after some steps, words about it) ----

def optimizer_of(model):
    import torch
    return torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)


def checkpointed(model, names):
    from torch.utils.checkpoint import checkpoint
    for module in model.modules():
        if type(module).__name__ in names:
            forward = module.forward
            module.forward = lambda *args, _forward=forward, **kwargs: checkpoint(_forward, *args, use_reentrant=False, **kwargs)


def by_pytorch(name, kind, share):
    import torch
    from gpu_networks import make
    model, loss, batch, blocks = make(name, bool(LOG))
    optimizer = optimizer_of(model)
    has_graphs = share.startswith("graphs")

    def call(*batch):
        return loss(model, *batch)

    if kind == "checkpoint":
        checkpointed(model, blocks)
    elif kind == "compile":
        if budget := share.removeprefix("graphs").removeprefix("-"):
            import torch._functorch.config as config
            config.activation_memory_budget = float(budget)
        call = torch.compile(call, mode="reduce-overhead" if has_graphs else None)

    def step():
        result = call(*batch)
        result.backward()
        optimizer.step()
        optimizer.zero_grad()
        return result.detach()

    def size():
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        before = torch.cuda.memory_allocated()
        if has_graphs:  # their pools stay, and nothing is allocated when they run
            return {"MiB": (torch.cuda.memory_reserved() - before) / MIB}
        torch.cuda.reset_peak_memory_stats()
        step()
        torch.cuda.synchronize()
        return {"MiB": (torch.cuda.max_memory_allocated() - before) / MIB,
                "reserved": (torch.cuda.max_memory_reserved() - before) / MIB}

    begin = time.monotonic()
    if kind == "compile":
        step()
        torch.cuda.empty_cache()
    return step, size, begin


def by_tarn(name, kind, share):
    import torch
    from gpu_networks import make

    import tarn
    import tarn.torch
    from tarn.torch import variant
    from tarn.torch.memory import ALIGNMENT
    memory = tarn.torch.install("cuda")
    model, loss, batch, _ = make(name, bool(LOG))
    profile = variant.profile

    def profiled(*arguments):
        with alone():
            profile(*arguments)

    words = kind.split("+")
    options = {"fuse": {"chunks": 1} if "whole" in words else "fused" in words}
    if "moved" in words:
        options["offload"] = {"rate": RATE, "kinds": "activations,states" if "states" in words else "activations"}
        if LOG:  # networks are small there
            options["offload"].update(bytes_min=4096, latency_ns=100)
    if "one" in words:
        options["streams"] = 1
    elif "two" in words:
        options.update(streams=2, couple=True)
    if share == "direct":
        options["graph"] = False
    elif share == "chunks":
        options["fuse"] = {"chunks": 8}
    elif share.endswith("m"):
        options.update(reorder=True, budget=int(share[:-1]) * MIB)
    elif share:
        options.update(reorder=True, budget=1.0 if share == "least" else float(share))
    begin = time.monotonic()
    with mock.patch.object(variant, "profile", profiled):
        made = tarn.torch.step(model, optimizer_of(model), loss, batch, compare=not LOG, **options)
    if made.reason:
        raise RuntimeError(made.reason)
    if share == "least":
        try:
            tarn.plan(made.graph, alignment=ALIGNMENT["cuda"], reorder=True, budget=1)
        except tarn.DoesNotFit as error:
            least = error.least
        made._first.plan = tarn.plan(made.graph, alignment=ALIGNMENT["cuda"], reorder=True, budget=least)

    def step():
        return made(*batch)

    def size():
        torch.cuda.synchronize()
        before = memory.tarn_live()
        memory.tarn_reset_peak()
        step()
        torch.cuda.synchronize()
        first, plan = made._first, made.plan
        own = first.recorded.bytes if first.recorded else 0
        again = sum(plan.is_recomputed(op.id) for op in plan.graph.ops)
        arena = plan.spaces[0]
        moves = [plan.graph.tensors[op.inputs[0]].size for op in plan.graph.ops if op.move]
        moved = {"moves": len(moves), "moved": sum(moves) / MIB,
                 "host": sum(space.footprint + space.persistent for space in plan.spaces[1:]) / MIB} if made.offload else {}
        return {**moved, "MiB": (arena.footprint + own + memory.tarn_peak() - before) / MIB, "arena": arena.footprint / MIB,
                "bound": arena.bound / MIB, "costs": sum(op.cost for op in plan.graph.ops if not op.move) / 1e6, "persistent": arena.persistent / MIB,
                "ops": len(plan.graph.ops), "again": again, "graphs": first.recorded.graphs if first.recorded else 0,
                "copied": sum(first.program.copied.values()), "reason": made.reason}

    return step, size, begin


def stand_in():
    """Kernels are generated for a GPU that is not there, and do nothing."""
    from gpu_test import no_kernels
    from stand_in import NoGpu
    from triton.runtime import driver

    from tarn.torch import fusing
    from tarn.torch.fusing import row_sums_kernel
    driver.set_active(NoGpu())
    fusing.loaded = no_kernels
    row_sums_kernel.sum_of_rows = lambda *_: None


def child(name, way):
    """Answers a line of JSON when it is made, and one for each line that it is sent."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    kind, _, share = way.partition("-")
    import torch
    if LOG:
        torch.backends.cudnn.enabled = False
        torch.backends.cuda.enable_cudnn_sdp(False)
        stand_in()
    choose_alone()

    def answer(**words):
        answers.write(json.dumps(words, default=str) + "\n")
        answers.flush()

    step, size, begin = (by_pytorch if kind in ("eager", "checkpoint", "compile") else by_tarn)(name, kind, share)
    with alone():
        losses = [float(step()) for _ in range(8)]
        torch.cuda.synchronize()
        words = size()
        torch.cuda.empty_cache()
    if words.get("reason"):
        raise RuntimeError(words["reason"])
    answer(**words, made=time.monotonic() - begin, losses=losses)
    for _ in sys.stdin:
        with alone():
            step()
            torch.cuda.synchronize()
            first, hosts = time.perf_counter(), []
            for _ in range(STEPS):
                begin = time.perf_counter()
                step()
                hosts.append(time.perf_counter() - begin)
            torch.cuda.synchronize()
            elapsed = (time.perf_counter() - first) / STEPS
            alone_hosts = []
            for _ in range(3):  # nothing is before it, so that the host does not wait for the GPU
                begin = time.perf_counter()
                step()
                alone_hosts.append(time.perf_counter() - begin)
                torch.cuda.synchronize()
            torch.cuda.empty_cache()
        answer(ms=1e3 * elapsed, host=1e3 * statistics.median(hosts), idle=1e3 * statistics.median(alone_hosts))
    if os.environ.get("PROFILES"):
        from torch.profiler import ProfilerActivity, profile
        with alone(), profile(activities=[ProfilerActivity.CUDA]) as found:
            for _ in range(3):
                step()
            torch.cuda.synchronize()
        with open(f"{os.environ['PROFILES']}/{name}-{way}", "w", encoding="utf-8") as file:
            file.write(found.key_averages().table(sort_by="cuda_time_total", row_limit=60, max_name_column_width=90))


# ---- All of them ----

class Way:
    def __init__(self, network, name):
        self.network, self.name, self.words, self.times, self.hosts, self.idles = network, name, None, [], [], []
        self._errors = []
        self.process = subprocess.Popen([sys.executable, __file__, "--child", network, name], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=lambda: self._errors.extend(self.process.stderr), daemon=True)
        self._reader.start()
        self._killer = threading.Timer(SECONDS, self.process.kill)
        self._killer.start()
        self._made = threading.Thread(target=self._wait, daemon=True)
        self._made.start()

    def _wait(self):
        line = self.process.stdout.readline()
        self._killer.cancel()
        self.words = json.loads(line) if line else None

    def is_made(self):
        self._made.join()
        return self.words is not None

    def turn(self):
        if self.process.poll() is not None:
            return
        self.process.stdin.write("go\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if line:
            told = json.loads(line)
            self.times.append(told["ms"])
            self.hosts.append(told["host"])
            self.idles.append(told["idle"])

    def why(self):
        self.process.wait()
        self._reader.join()
        lines = [line.strip() for line in self._errors if line.strip()]
        print(self.name, *lines[-40:], sep="\n  ", file=sys.stderr)
        told = [line for line in lines if re.match(r"[\w.]*(Error|Exception|Refused|DoesNotFit)\b", line)] or lines[-1:] or ["killed"]
        return told[-1][:200]

    def end(self):
        self.process.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(30)
        self.process.kill()


def rows(ways):
    print("| network | way | ms | host ms | host ms, GPU idle | costs | MiB | arena | bound | ops | again | made in s | first and sixth loss |\n"
          "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---|")
    for way in ways:
        if not way.times:
            print(f"| {way.network} | {way.name} | failed: {way.why()} |")
            continue
        words = way.words
        cells = [f"{statistics.median(way.times):.2f}", f"{statistics.median(way.hosts):.2f}", f"{statistics.median(way.idles):.2f}",
                 f"{words['costs']:.2f}" if "costs" in words else "", f"{words['MiB']:.0f}"]
        cells += [f"{words[key]:.0f}" if key in words else "" for key in ("arena", "bound", "ops", "again")]
        cells += [f"{words['made']:.0f}", f"{words['losses'][0]:.4f} {words['losses'][5]:.4f}"]
        print(f"| {way.network} | {way.name} | {' | '.join(cells)} |", flush=True)
        if words.get("copied") or words.get("graphs", 1) != 1 or "moves" in words:
            print(f"  {words}")


def main(networks, names):
    import torch
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        os.environ.setdefault("GPU_TABLE_LOCK", f"{folder}/lock")
        os.environ.setdefault("TORCHINDUCTOR_COMPILE_THREADS", "4")
        import tarn.torch
        tarn.torch.install("cuda")  # compiled once
        ways = [Way(network, name) for network in networks for name in names]
        made = [way for way in ways if way.is_made()]
        prepared = time.monotonic() - begin
        for network in networks:
            for _ in range(ROUNDS):
                for way in made:
                    if way.network == network:
                        way.turn()
        print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}: made in {prepared:.0f} s, {time.monotonic() - begin:.0f} s in all\n")
        rows(ways)
        for way in ways:
            way.end()


if __name__ == "__main__":
    if "--child" in sys.argv:
        child(*sys.argv[2:4])
    else:
        import torch
        from stand_in import run_without_a_gpu
        if not torch.cuda.is_available() and not LOG:
            sys.exit(run_without_a_gpu(sys.argv, "/dev/null"))
        main(sys.argv[1].split(","), sys.argv[2:] or WAYS)
