"""The host's time of a planned step that is no CUDA graph, as Markdown: microseconds of an op beside the calls of ATen.

    TARN_LIBRARY=build/libtarn.so tests/with_torch.sh tests/python/torch/host_table.py [cpu | stand-in] [NETWORKS...]

stand-in: the GPU of no_gpu.c, whose kernels do nothing. Each op is timed in its place in the step, with a clock around it and
one around what it calls of ATen (or of Inductor). REPEATED passes over the step are made, and each figure is what a tenth of
its values is below, because other programs may run. KINDS=1 prints lines of kinds of ops before. Columns, in microseconds:

ops        how many; of these, updates
eager      a step of eager execution, with one update
call       the same step, planned: step(*batch)
run        the ops of it
ATen       ATen's calls with their arguments, without those of updates
bare/ATen  the same calls with the same arguments from a list, each as it is or with `out=`, whichever is faster: a share of ATen
op         an op that is no update, beside ATen's call
updates    all updates; one step of the optimizer on all parameters, in eager execution
all        an op, beside ATen's calls and that one step of the optimizer
guards     call without run: TorchDynamo's guards, and what is looked at before and after the ops"""
import os
import sys
import time
from unittest import mock

import torch
from networks import loss_of, make
from torch import nn

import tarn.torch
from tarn.torch import program
from tarn.torch.tensors import flat
from tarn.torch.updates import Update

REPEATED = 60
LOG = os.environ.get("NO_GPU_LOG")


class Chain(nn.Module):
    """Ops that compute next to nothing."""

    def __init__(self, length=100):
        super().__init__()
        self.length, self.weight = length, nn.Parameter(torch.ones(16))

    def forward(self, x):
        for _ in range(self.length):
            x = torch.tanh(x * self.weight + 1)
        return x


def network(name):
    if name == "chain":
        return Chain(), lambda: (torch.randn(4, 16), torch.randn(4, 16))
    return make(name)


def low(found):
    """What a tenth is below: other programs on the machine do not count."""
    found = sorted(found)
    return found[len(found) // 10]


def spent(call, count=REPEATED):
    """Nanoseconds of this thread's processor."""
    found = []
    for _ in range(count):
        begin = time.thread_time_ns()
        call()
        found.append(time.thread_time_ns() - begin)
    return low(found)


class Clock:
    """How long a call takes, and how long what is `inside` of it: nanoseconds, without what reading the clock takes."""

    def __init__(self):
        self._spent = self._around = self._empty = 0
        nothing = self.inside(lambda: None)
        self._empty = low(self.of(lambda: None)[0] for _ in range(10000))
        self._around = low(self.of(nothing)[0] for _ in range(10000))

    def inside(self, call):
        def timed(*args, **kwargs):
            begin = time.perf_counter_ns()
            result = call(*args, **kwargs)
            self._spent = time.perf_counter_ns() - begin
            return result
        return timed

    def of(self, call):
        """(what it takes, what is inside of it)"""
        self._spent = 0
        begin = time.perf_counter_ns()
        call()
        whole, spent = time.perf_counter_ns() - begin - self._empty, self._spent
        return (whole, 0) if not spent else (whole - self._around, max(0, spent - self._empty))


def with_out(op, args, kwargs, targets):
    """The call with `out=`, or None."""
    packet = op.node.target.overloadpacket
    names = [n for n in packet.overloads() if "out" in n]
    for name in names:
        other = getattr(packet, name)
        outs = [a for a in other._schema.arguments if a.is_out]
        same = [a.name for a in other._schema.arguments if not a.is_out] == [a.name for a in op.node.target._schema.arguments]
        if same and len(outs) == len(targets):
            return lambda: other._op(*args, **kwargs, **{a.name: t for a, t in zip(outs, targets)})
    return None


def bare_calls(planned):
    """For each op that is no update: the ways to call it."""
    places = {}

    def kept(*arguments, **more):
        return arguments, more

    found = {}
    for op, final in ((planned.lowered.ops[planned.plan.origin(o.id)], o) for o in planned.ops if not o.move):
        if op.run or not isinstance(op.node.target, torch._ops.OpOverload):
            continue
        with mock.patch.object(program, "_direct", lambda _: kept), mock.patch.object(program.Program, "_framed", lambda _s, call, *_a: call):
            args, kwargs = planned.bind(final)()
        at = {planned.root_of(t): planned.plan.offset(t) for t in final.outputs if planned._is_in_arena(t)}
        targets = [planned._tensor(fake, at) for _, fake in sorted(op.made.items())]
        ways = [lambda target=op.node.target._op, args=args, kwargs=kwargs: target(*args, **kwargs)]
        if len(targets) == len(flat(planned.lowered.value[op.node])):
            ways += filter(None, [with_out(op, args, kwargs, targets)])
        found[final.id] = ways
    return found


def row(name, device, fuse):
    model, make_batch = network(name)
    model.to(device)
    optimizer = torch.optim.Adam(model.parameters(), fused=True)
    batch = [t.to(device) for t in make_batch()]
    step = tarn.torch.step(model, optimizer, loss_of, batch, compare=False, fuse=fuse, graph=False)
    assert step.reason is None, step.reason
    for _ in range(3):
        step(*batch)
        step.eager(*batch)
    planned, ops = step._first.program, step._first.program.ops
    updates = {o.id for o in ops if isinstance(planned.lowered.ops[planned.plan.origin(o.id)].run, Update)}
    clock, framed = Clock(), program.Program._framed

    def timed_inside(planned, call, workspace, op, *others):
        return framed(planned, call if op.run else clock.inside(call), workspace, op, *others)

    with mock.patch.object(program.Program, "_framed", timed_inside):
        timed = [planned.bind(op) for op in ops]

    def optimizer_step():
        """In its place in a step of eager execution, where what it reads is as far away."""
        loss_of(model, *batch).backward()
        return clock.of(lambda: (optimizer.step(), optimizer.zero_grad()))[0]

    bare = bare_calls(planned)
    whole, inside = {o.id: [] for o in ops}, {o.id: [] for o in ops}
    alone = {(i, way): [] for i, ways in bare.items() for way in range(len(ways))}
    with torch.no_grad(), torch.autocast(device, enabled=False):
        for _ in range(REPEATED):
            for op, call in zip(ops, timed):
                found = clock.of(call)
                whole[op.id].append(found[0])
                inside[op.id].append(found[1])
            for way in range(2):
                for op, call in zip(ops, planned.calls):
                    if way < len(bare.get(op.id, ())):
                        alone[op.id, way].append(clock.of(bare[op.id][way])[0])
                    call()  # so that the arguments of others are what they are in a step
    alone = {key: low(found) for key, found in alone.items()}
    beside = {i: low(a - b for a, b in zip(whole[i], inside[i])) for i in whole}
    inside = {i: low(found) for i, found in inside.items()}
    if os.environ.get("KINDS"):
        kinds = {}
        for op in ops:
            kinds.setdefault(planned.lowered.ops[planned.plan.origin(op.id)].kind, []).append((beside[op.id], inside[op.id]))
        for kind, those in sorted(kinds.items(), key=lambda item: -sum(a for a, _ in item[1])):
            print(f"{kind:50} {len(those):4} {sum(a for a, _ in those) / len(those) / 1e3:8.2f} {sum(b for _, b in those) / len(those) / 1e3:8.2f}")
    eager, call, run = (spent(f) for f in (lambda: step.eager(*batch), lambda: step(*batch), planned.run))
    once, count = low([optimizer_step() for _ in range(REPEATED)]), len(ops)
    aten, updated = sum(inside[i] for i in inside.keys() - updates), sum(beside[i] for i in updates)
    best = sum(min(alone[i, way] for way in range(len(ways))) for i, ways in bare.items())
    ours = sum(beside[i] for i in beside.keys() - updates)
    return [name, "fused" if fuse else "", f"{count}; {len(updates)}", *(f"{n / 1e3:.0f}" for n in (eager, call, run, aten)),
            f"{best / sum(inside[i] for i in bare):.2f}" if bare else "", f"{ours / (count - len(updates)) / 1e3:.2f}",
            f"{updated / 1e3:.0f}; {once / 1e3:.0f}", f"{(ours + updated - once) / count / 1e3:.2f}", f"{(call - run) / 1e3:.0f}"]


def main(device, names):
    if device == "cuda":
        from gpu_table import stand_in
        torch.backends.cudnn.enabled = False
        torch.backends.cuda.enable_cudnn_sdp(False)
        tarn.torch.install("cuda")
        stand_in()
    print("| network | | ops; updates | eager | call | run | ATen | bare/ATen | op | updates | all | guards |\n|" + "---|" * 12)
    for name in names:
        for fuse in (False, True):
            print("| " + " | ".join(row(name, device, fuse)) + " |", flush=True)


if __name__ == "__main__":
    kind, chosen = (sys.argv[1:2] or ["cpu"])[0], sys.argv[2:] or ["chain", "small_gpt", "small_resnet", "MobileNetV2"]
    if kind == "stand-in" and not LOG:
        from stand_in import run_without_a_gpu
        sys.exit(run_without_a_gpu(sys.argv, "/dev/null"))
    main("cpu" if kind == "cpu" else "cuda", chosen)
