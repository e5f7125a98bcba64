"""Steps on CUDA: tensors lie in the arena, streams wait for each other as the plan says, and on a GPU all is bit-equal
with eager execution. Without a GPU PyTorch runs on no_gpu.c, which computes nothing: then the calls are tested, and no
results. TAP on stdout.

    tests/with_torch.sh tests/python/torch/gpu_test.py [gpu] [-v]     gpu: there has to be one (tests/gpu.sh); -v: with times"""
import contextlib
import copy
import functools
import gc
import itertools
import os
import random
import sys
import tempfile
import threading
import types
import warnings
from collections import Counter, defaultdict
from pathlib import Path
from unittest import mock

LOG = os.environ.get("NO_GPU_LOG")
os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":16:8"  # 128 KiB; by default 32 MiB, more than the networks
os.environ["CUBLASLT_WORKSPACE_SIZE"] = "128"

import torch  # pylint: disable=wrong-import-position
import torch.distributed as dist  # pylint: disable=wrong-import-position
import gpu_networks  # pylint: disable=wrong-import-position
from cases import raises, run  # pylint: disable=wrong-import-position
from networks import eager_step, loss_of, make  # pylint: disable=wrong-import-position
from odd_ops import (HOST, KEPT, Custom, DroppingAttention, Seeing, counting, keeping, reading,  # pylint: disable=wrong-import-position
                     reserving, seeded_copy, telling, waiting)  # pylint: disable=wrong-import-position
from stand_in import NoGpu, run_without_a_gpu  # pylint: disable=wrong-import-position

import tarn.torch  # pylint: disable=wrong-import-position
from tarn.torch import comparing, cuda_graph, drawing, fusing, graphs, program, replayed, stepping  # pylint: disable=wrong-import-position
from tarn.torch.cuda import Streams  # pylint: disable=wrong-import-position
from tarn.torch.fusing import calls, row_sums_kernel  # pylint: disable=wrong-import-position
from tarn.torch.fusing.source import parsed  # pylint: disable=wrong-import-position
from tarn.torch.memory import Arena  # pylint: disable=wrong-import-position


def pair(name):
    """Two equal networks on the GPU with optimizers, and batches."""
    sides = []
    for _ in range(2):
        model, batch = make(name)
        model.to("cuda")
        sides.append((model, torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)))
    torch.manual_seed(1)
    return sides, [[t.to("cuda") for t in batch()] for _ in range(4)]


def same(first, second):
    return LOG or all(map(torch.equal, first, second))


def compare(name, make_step=tarn.torch.step, **options):
    (one, two), data = pair(name)
    step = make_step(*two, loss_of, data[0], compare=not LOG, **options)  # nothing is computed there
    assert step.reason is None, step.reason
    data = [*data, data[0]]
    torch.manual_seed(2)
    expected = [eager_step(*one, *batch) for batch in data]
    torch.manual_seed(2)
    memory = tarn.torch.install("cuda")
    found = [step(*batch) for batch in data[:-1]]  # the last of which is captured
    before = memory.tarn_live()
    memory.tarn_reset_peak()
    found.append(step(*data[-1]))
    assert memory.tarn_peak() - before <= 512, memory.tarn_peak() - before  # the loss
    assert same(found, expected) and same(one[0].parameters(), two[0].parameters())
    assert not step._first.program.copied, step._first.program.copied
    return step


def networks():
    return ["small_gpt"] if LOG else ["small_gpt", "small_resnet"]  # there is no stand-in for cuDNN


def steps_lie_in_the_arena():
    for name in networks():
        compare(name)
        least = compare(name, reorder=True).plan
        assert compare(name, reorder=True, budget=0.9).plan.footprint < least.footprint


def logged():
    """What was done since the last call, by stream: (launches, waits)"""
    lines = [line.split() for line in Path(LOG).read_text(encoding="ascii").splitlines()]
    lines, logged.seen = lines[logged.seen:], len(lines)
    events, launched, waits = {}, Counter(), defaultdict(list)
    for what, stream, *event in lines:
        if what == "launch":
            launched[stream] += 1
        elif what == "record":
            events[event[0]] = stream
        elif what == "wait":
            waits[stream].append(events.get(event[0]))
    return launched, waits


logged.seen = 0


def streams_wait_as_the_plan_says():
    for name in networks():
        step = compare(name, streams=2, couple=True)
        if not LOG:
            continue
        (_, two), data = pair(name)
        step = tarn.torch.step(*two, loss_of, data[0], streams=2, compare=False, graph=False)
        step(*data[0])
        logged()
        step(*data[0])
        launched, waits = logged()
        ops = [len(step.plan.launches(stream)) for stream in (0, 1)]
        assert sorted(launched) == sorted(waits) and len(launched) == 2 and min(ops) > 0, (launched, waits)
        told = sum(map(len, waits.values()))
        assert told == len(step.plan.waits()) + 2  # at the begin and at the end
        assert all(on not in (None, stream) for stream, those in waits.items() for on in those)


def random_plan(draw):
    """Of a graph whose ops read what earlier ones have made, on three streams."""
    builder = tarn.Builder("random")
    streams = [builder.stream(f"stream {i}") for i in range(3)]
    made = []
    for i in range(30):
        read = sorted(draw.sample(range(len(made)), min(len(made), draw.randrange(3))))
        made.append(builder.tensor(f"t{i}", 512 * draw.randrange(1, 9)))
        builder.op(f"op{i}", draw.choice(streams), [made[r] for r in read], [made[i]])
    return tarn.plan(builder.finish())


def happened(lines):
    """For each op in the order of the log: those that have ended before it begins, whatever streams do."""
    known, events, before = defaultdict(set), {}, []
    for line in lines:
        what, stream, *rest = line.split()
        if what == "op":
            before.append((int(rest[0]), set(known[stream])))
            known[stream].add(len(before) - 1)
        elif what == "record":
            events[rest[0]] = set(known[stream])
        elif what == "wait":
            known[stream] |= events[rest[0]]
    return before


def streams_order_what_a_plan_orders():
    draw = random.Random(5)
    for _ in range(20 if LOG else 0):
        plan = random_plan(draw)

        def note(op):
            with open(LOG, "a", encoding="ascii") as file:
                file.write(f"op {torch.cuda.current_stream().cuda_stream:x} {op}\n")

        ops = [op.id for op in plan.graph.ops]
        made = Streams(plan, {op: functools.partial(note, op) for op in ops})
        done = len(Path(LOG).read_text(encoding="ascii").splitlines())
        made.run()
        made.run()
        before = happened(Path(LOG).read_text(encoding="ascii").splitlines()[done:])
        assert sorted(op for op, _ in before) == sorted(2 * ops)
        first, second = before[:len(ops)], before[len(ops):]
        ended = {op: {first[i][0] for i in those} for op, those in first}
        for stream in range(3):
            launches = plan.launches(stream)
            assert all(one in ended[two] for one, two in zip(launches, launches[1:]))
        assert all(on in ended[op] for op, on in plan.waits())
        assert all(set(range(len(ops))) <= those for _, those in second)  # the whole step before


# ---- Moves ----

KINDS = ("activations", "states", "parameters", "activations,states,parameters")


def moving(kinds="activations", **more):
    return {"offload": {"rate": "50GB/s,40GB/s", "latency_ns": 100, "bytes_min": 4096, "kinds": kinds}, **more}


def copies(step, done):
    """(stream, to, from, size) of the moves in lines of the log"""
    told = [line.split()[1:] for line in done if line.startswith("copy ")]
    return [(stream, int(to, 16), int(start, 16), int(size, 16)) for stream, to, start, size in told]


def what_idles_waits_in_pinned_memory():
    for name in networks():
        for more in ({}, {"reorder": True, "budget": 0.7}, {"streams": 2, "couple": True}):
            step = compare(name, **moving(**more))
            report = step.report()
            assert report.moves and report.host and f"{report.moves} copies" in str(report)
            assert_captured(step)
            if more.get("budget"):
                assert report.arena <= 0.7 * compare(name, reorder=True).plan.footprint + 1


def copies_run_on_streams_of_their_own_as_the_plan_says():
    for more in ({}, {"streams": 2, "couple": True}) if LOG else ():
        (_, two), data = pair("small_gpt")
        step = tarn.torch.step(*two, loss_of, data[0], compare=False, graph=False, **moving(**more))
        step(*data[0])
        logged()
        begin = len(lines())
        step(*data[0])
        launched, waits = logged()
        plan, arena = step.plan, step._arena
        moves = [op for op in plan.graph.ops if op.move]
        told = copies(step, lines()[begin:])
        assert len(told) == len(moves) > 4
        others = len(plan.graph.streams) - 1
        assert sum(map(len, waits.values())) == len(plan.waits()) + 2 * others
        streams = defaultdict(list)
        for op in moves:
            streams[op.stream].append(op)
        found = defaultdict(list)
        for stream, *rest in told:
            found[stream].append(rest)
        assert len(found) == 2 and sorted(map(len, found.values())) == sorted(len(plan.launches(s)) for s in streams)
        assert all(launched[stream] == len(those) for stream, those in found.items())  # nothing else is there
        for stream, ops in streams.items():
            expected = [[(arena.host.base if plan.graph.tensors[t].space else arena.base) + plan.offset(t)
                         for t in (op.outputs[0], op.inputs[0])] + [plan.graph.tensors[op.inputs[0]].size] for op in ops]
            assert expected in found.values(), stream


def what_persists_lives_in_pinned_memory():
    functions = tarn.torch.install("cuda")

    def is_away(tensor):
        return bool(functions.tarn_cuda_is_on_host(tensor.untyped_storage().data_ptr()))

    for kinds in KINDS[1:]:
        (one, two), data = pair("small_gpt")
        torch.manual_seed(2)
        expected = [eager_step(*one, *batch) for batch in [*data, data[0], data[1]]]
        step = tarn.torch.step(*two, loss_of, data[0], compare=not LOG, budget=1 << 40, **moving(kinds))
        torch.manual_seed(2)
        found = [step(*batch) for batch in data]
        two[1].load_state_dict(copy.deepcopy(two[1].state_dict()))  # on the GPU
        found += [step(*batch) for batch in data[:2]]  # what is loaded is no part of a graph at first
        assert step.reason is None and same(found, expected) and same(one[0].parameters(), two[0].parameters())
        large = [p for p in two[0].parameters() if p.nbytes >= 4096]
        assert large and all(is_away(p) == ("parameters" in kinds) for p in large)
        states = [s for p in large for s in two[1].state[p].values() if s.nbytes >= 4096]
        assert len(states) == 2 * len(large) and all(is_away(s) == ("states" in kinds) for s in states)
        assert not any(is_away(p) for p in two[0].parameters() if p.nbytes < 4096)
        assert_captured(step)
        torch.manual_seed(3)
        step.eager(*data[0])  # reads and writes them where they are
        if not LOG:
            torch.manual_seed(3)
            eager_step(*one, *data[0])
            assert same(one[0].parameters(), two[0].parameters())
            saved = [t.cpu() for t in two[0].parameters()]
            assert all(torch.equal(a.cpu(), b) for a, b in zip(one[0].parameters(), saved))
        pinned = lines().count("free pinned")
        still = tarn.torch.step(*two, loss_of, data[0], compare=False)
        still(*data[0])  # without moves: all is on the GPU again
        assert still.reason is None and not any(map(is_away, [*two[0].parameters(), *states]))
        del step, still, two, large, states
        gc.collect()
        assert not LOG or lines().count("free pinned") > pinned


# ---- As one CUDA graph ----

def events(kind):
    """Lines of the log of that kind since the last call."""
    found = lines()[events.seen:]
    events.seen += len(found)
    return [line.split() for line in found if line.split()[0] == kind]


events.seen = 0


def assert_captured(step):
    """As one graph."""
    recorded = step._first.recorded
    assert not recorded.left_out and recorded.graphs == 1, recorded.left_out


def a_step_is_one_graph_once_its_first_steps_have_agreed():
    for options in ({}, {"streams": 2}, {"reorder": True, "budget": 0.9}):
        step = compare("small_gpt", **options)
        assert_captured(step)
        assert len(step._first.recordings._known) == 1
        assert not events("forbidden")
    step = compare("small_gpt", graph=False)
    assert step._first.recorded is None and not events("capture")


def replays_launch_one_graph_and_nothing_else():
    (_, two), data = pair("small_gpt")
    step = tarn.torch.step(*two, loss_of, data[0], compare=False)
    for batch in data:
        step(*batch)
    events("launch")
    step(*data[0])
    if LOG:
        done = lines()
        step(*data[1])
        done = [line.split()[0] for line in lines()[len(done):]]
        assert done.count("replay") == 1 and done.count("launch") <= 8, done  # the batch, the generator, and copies of the loss
        assert "malloc" not in done and "capture" not in done, done


def what_calls_the_program_runs_between_parts():
    calls = []

    def clip(parameters):
        calls.append(len(parameters))
        torch.nn.utils.clip_grad_norm_(parameters, 0.1)

    (_, two), data = pair("small_gpt")
    step = tarn.torch.step(*two, loss_of, data[0], compare=False, clip=clip)
    for batch in data:
        step(*batch)
    recorded = step._first.recorded
    assert recorded.graphs == 2 and list(recorded.left_out) == ["clip"], recorded.left_out
    assert len(calls) == 5 and step.reason is None  # once in the profile
    assert "2 CUDA graphs; clip beside them" in str(step.report())


def parts_of_few_ops_are_no_graphs():
    """Three parts: they are graphs if there may be as many, or if they have enough ops in the mean."""
    count = None
    for parts, ops, is_captured in ((3, 1000, True), (2, 1000, False), (2, lambda: count // 3, True), (2, lambda: count // 3 + 1, False)):
        (_, two), data = pair("small_gpt")
        clip = functools.partial(torch.nn.utils.clip_grad_norm_, max_norm=0.1)
        with mock.patch.multiple(graphs, PARTS=parts, OPS=ops() if callable(ops) else ops), warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step = tarn.torch.step(*two, loss_of, data[0], compare=False, clip=clip, streams=1)
            for batch in data:
                step(*batch)
        assert count in (None, len(step._first.program.ops))
        count = len(step._first.program.ops)
        assert (step._first.recorded is not None) == is_captured == (step.reason is None), (ops, step.reason)
        if not is_captured:
            assert step.reason == "no CUDA graph: 1 ops cannot be captured: hooks of parameters and clip are the program's own", step.reason


class Foreign(torch.optim.SGD):
    """Is none of PyTorch's own."""


def what_is_no_part_of_a_graph_is_named():
    """With why, in the report."""
    def told(function=torch.nn.functional.gelu, optimizer=functools.partial(torch.optim.Adam, fused=True), hook=None, loss=loss_of, **options):
        torch.manual_seed(3)
        model = Custom(function).to("cuda")
        if hook:
            model.last.bias.register_hook(hook)
        batch = [torch.randn(8, 32, device="cuda") for _ in range(2)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step = tarn.torch.step(model, optimizer(model.parameters(), lr=1e-2), loss, batch, compare=False, **options)
            for _ in range(3):
                step(*batch)
        return str(step.report()), step

    own = "hooks of parameters and clip are the program's own"
    for options, name, why in (
            ({"clip": lambda parameters: parameters[0].grad.norm().item()}, "clip", own),
            ({"hook": lambda gradient: gradient * 2}, "hooks1", own),
            ({"optimizer": Foreign}, "update0", "Foreign is not PyTorch's own, or has hooks"),
            ({"optimizer": torch.optim.Adam}, "update0", "Adam computes on the host: make it with fused=True or capturable=True"),
            ({"function": waiting}, "waiting", "Error: "),
            ({"function": lambda x: telling(x)[0]}, "telling", "it draws random numbers and tells on the host where"),
            ({"function": lambda x: telling(x)[0]}, "seed_sum", "it draws random numbers and tells on the host where")):
        text, step = told(**options)
        recorded = step._first.recorded
        assert step.reason is None and recorded.graphs >= 1, (name, step.reason)
        left = [other for other in recorded.left_out if other.endswith(name)]
        assert left and why in recorded.left_out[left[0]], (name, recorded.left_out)
        assert all(f"{other} beside them: {reason}" in text for other, reason in recorded.left_out.items()), text
    text, step = told(loss=lambda model, x, y: loss_of(model, x, y) * (1 + 0 * model(x).sum().item()))
    assert step._first is None and step.reason and step.reason in text, text  # it depends on data
    text, step = told(graph=False)
    assert "no CUDA graph: graph=False" in text and step.reason is None, text
    text, _ = told()
    assert text.endswith("; one CUDA graph"), text


def streams_are_two_where_bytes_are_not_asked_for():
    (_, two), data = pair("small_gpt")
    for more, options, streams in ((9.0, {}, 2), (9.0, {"streams": 1}, 1), (9.0, {"reorder": True}, 1), (9.0, {"budget": 0.9}, 1),
                                   (9.0, {"capacity": 1 << 30}, 1), (9.0, {"offload": "50GB/s"}, 1), (9.0, {"graph": False}, 1), (-1.0, {}, 1)):
        with mock.patch.multiple(stepping, MORE=more, makespan=lambda plan: -len(plan.graph.streams)):
            step = tarn.torch.step(*two, loss_of, data[0], compare=False, **options)
        used = {op.stream for op in step.plan.graph.ops if not op.move}
        assert len(used) == streams, (more, options, step.plan.graph.streams)
    with mock.patch.multiple(stepping, MORE=9.0, makespan=lambda plan: len(plan.graph.streams)):  # takes longer
        step = tarn.torch.step(*two, loss_of, data[0], compare=False)
    assert len(step.plan.graph.streams) == 1
    given, clock, real = [], [0.0], tarn.plan

    def plan(*arguments, **more):
        given.append(more.get("seconds"))
        clock[0] += 4
        return real(*arguments, **{**more, "seconds": 0.0})

    with mock.patch.object(tarn, "plan", plan), mock.patch.object(stepping, "time", types.SimpleNamespace(monotonic=lambda: clock[0])):
        for limit, expected in ((10, [10, 6]), (3, [3, 1e-3]), (None, [None, None])):
            given.clear()
            tarn.torch.step(*two, loss_of, data[0], compare=False, **({"seconds": limit} if limit else {}))
            assert given == expected, given


def what_calls_the_program_keeps_its_order():
    """With several streams, and one where there is no graph."""
    (_, two), data = pair("small_gpt")
    hooks = [p.register_post_accumulate_grad_hook(lambda p: None) for p in two[0].parameters()]
    with mock.patch.multiple(stepping, MORE=9.0, makespan=lambda plan: -len(plan.graph.streams)), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        assert len(tarn.torch.step(*two, loss_of, data[0], compare=False).plan.graph.streams) == 1
        step = tarn.torch.step(*two, loss_of, data[0], compare=False, streams=2, couple=True)
    called = [op for op in step.plan.graph.ops if op.name.startswith("hooks")]
    before = ordered_before(step.plan)
    assert len(called) == len(hooks) and len({op.stream for op in called}) == 2, called
    assert all(one.id in before[two.id] for one, two in zip(called, called[1:]))
    for hook in hooks:
        hook.remove()


def ordered_before(plan):
    """For each op: those that have ended before it starts, in every order in which the streams may run."""
    waits, last, before = defaultdict(list), {}, {}
    for later, earlier in plan.waits():
        waits[later].append(earlier)
    for op in plan.graph.ops:  # in an order that may be run
        on = [*waits[op.id], *([last[op.stream]] if op.stream in last else [])]
        before[op.id] = set(on).union(*(before[o] for o in on))
        last[op.stream] = op.id
    return before


def a_gradient_that_a_hook_takes_away_leaves_the_step_right():
    (one, two), data = pair("small_gpt")
    taken = [False]

    def clip(parameters):
        if taken[0]:
            parameters[3].grad = None

    step = tarn.torch.step(*two, loss_of, data[0], compare=False, clip=clip)
    torch.manual_seed(2)
    for number, batch in enumerate(data):
        taken[0] = number == 2
        before = [p.detach().clone() for p in two[0].parameters()]
        step(*batch)
        if not LOG:
            moved = [not torch.equal(p, b) for p, b in zip(two[0].parameters(), before)]
            assert moved[3] != taken[0], (number, moved)
    assert step._first.recorded and not step._first.lowered.dropped and one


def other_numbers_are_captured_and_kept():
    (_, two), data = pair("small_gpt")
    step = tarn.torch.step(*two, loss_of, data[0], compare=False)
    group = two[1].param_groups[0]
    for rate in (1e-3, 1e-3, 2e-3, 1e-3, 2e-3):
        group["lr"] = rate
        step(*data[0])
    assert len(step._first.recordings._known) == 2
    events("capture")
    for number in range(8):  # a schedule: rates lie on the GPU from then on
        group["lr"] = 1e-3 / (number + 1)
        step(*data[0])
    assert step.reason is None and step._first.recorded and (not LOG or len(events("capture")) == 2 * 3)
    for number in range(8):
        group["betas"] = (0.8 + number / 100, 0.9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step(*data[0])
    assert "no CUDA graph: the optimizer's numbers change" in step.reason, step.reason


def rates_on_the_gpu_are_those_of_the_optimizer():
    (one, two), data = pair("small_gpt")
    step = tarn.torch.step(*two, loss_of, data[0], compare=False)
    torch.manual_seed(2)
    found, expected = [], []
    for number in range(12):
        two[1].param_groups[0]["lr"] = 1e-3 / (number + 1)
        found.append(step(*data[number % 4]))
    torch.manual_seed(2)
    for number in range(12):
        one[1].param_groups[0]["lr"] = 1e-3 / (number + 1)
        expected.append(eager_step(*one, *data[number % 4]))
    assert two[1].param_groups[0]["lr"] == 1e-3 / 12 and not two[1].param_groups[0]["capturable"]
    if not LOG:  # they are rounded to float32
        torch.testing.assert_close(torch.stack(found), torch.stack(expected), rtol=1e-5, atol=0)


def an_optimizer_of_the_host_is_told_what_it_lacks():
    (_, two), data = pair("small_gpt")
    optimizer = torch.optim.Adam(two[0].parameters(), lr=1e-3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        step = tarn.torch.step(two[0], optimizer, loss_of, data[0], compare=False)
        for batch in data:
            step(*batch)
    left = step._first.recorded.left_out if step._first.recorded else {}
    text = step.reason or next(iter(left.values()))
    assert "make it with fused=True or capturable=True" in text, (text, told)
    others = torch.optim.Adam(two[0].parameters(), lr=1e-3, capturable=True)
    step = tarn.torch.step(two[0], others, loss_of, data[0], compare=False)
    for batch in data:
        step(*batch)
    assert step._first.recorded.graphs == 1 and step.reason is None, step._first.recorded.left_out


def state_that_is_loaded_is_captured_again():
    (_, two), data = pair("small_gpt")
    step = tarn.torch.step(*two, loss_of, data[0], compare=False)
    for batch in data:
        step(*batch)
    two[1].load_state_dict(copy.deepcopy(two[1].state_dict()))
    step(*data[0])
    step(*data[0])
    assert step._first.recorded and len(step._first.recordings._known) == 2
    two[1].state.clear()  # what updates make is no part of a graph
    step(*data[0])
    assert step._first.recorded is None and step.reason is None
    step(*data[0])
    assert step._first.recorded is not None


def shapes_that_take_turns_keep_their_graphs():
    (_, two), data = pair("small_gpt")
    step = tarn.torch.step(*two, loss_of, data[0], compare=False)
    shorter = [[t[:2] for t in batch] for batch in data]
    for batch, other in zip(data, shorter):
        step(*batch)
        step(*other)
    events("capture")
    for batch, other in zip(data, shorter):
        step(*batch)
        step(*other)
    assert len(step.variants) == 2 and all(v.recorded.graphs == 1 for v in step.variants.values())
    assert not events("capture")


def no_kernels(source):
    """In the place of what is compiled."""
    return calls._fake_space(parsed(source))


def stood_in(options):
    """Inside Inductor's kernels are made, and not compiled, where no GPU is."""
    if not LOG or "fuse" not in options:
        return contextlib.nullcontext()
    from triton.runtime import driver
    driver.set_active(NoGpu())
    return mock.patch.object(fusing, "loaded", no_kernels)


def fused_steps_are_one_graph_too():
    (one, two), data = pair("small_gpt")
    for options in ({}, {"reorder": True, "budget": 0.9}, {"streams": 2}):
        with stood_in({"fuse": True}):
            step = tarn.torch.step(*two, loss_of, data[0], fuse=True, compare=False, **options)
        found = [step(*batch) for batch in data]
        assert step.reason is None and step._first.fused, (step.reason, options)
        assert_captured(step)
        assert not step._first.program.copied and sum("triton" in op.kind for op in step.graph.ops) > 20
        assert not events("forbidden") and len(found) == len(data)
    if not LOG:
        step = tarn.torch.step(*two, loss_of, data[0], fuse=True)
        for batch in data:
            step(*batch)
        assert step.reason is None and step._first.to_compare == 0 and one, step.reason


def experts_add_up_rows_in_one_order():
    """Fused, a layer of experts orders its index once, and adds up without atomic operations: the same bits each time."""
    if LOG:
        from triton.runtime import driver
        driver.set_active(NoGpu())
    model, loss, batch, _ = gpu_networks.make("MoE", True)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    with (mock.patch.object(fusing, "loaded", no_kernels) if LOG else contextlib.nullcontext(),
          mock.patch.object(row_sums_kernel, "sum_of_rows", lambda *_: None) if LOG else contextlib.nullcontext()):
        step = tarn.torch.step(model, optimizer, loss, batch, fuse=True, compare=not LOG)
        for _ in range(4):
            step(*batch)
    assert step.reason is None and step._first.fused, step.reason
    kinds = Counter(op.kind.rpartition(".")[2] for op in step.graph.ops)
    layers = len(model.blocks)
    assert kinds["rows_in_order"] == layers and kinds["sum_of_rows"] == 2 * layers and not kinds["index_put"], kinds
    assert_captured(step)


def sums_of_rows_are_those_of_index_put():
    if LOG:
        return
    torch.manual_seed(0)
    for dtype, tolerance in ((torch.float64, 1e-12), (torch.float32, 1e-5), (torch.float16, 1e-2), (torch.bfloat16, 5e-2)):
        for rows, count, width in ((1, 1, 32), (7, 500, 33), (8192, 16384, 768), (50, 20000, 2100)):
            index = torch.randint(-rows, rows, (count,), device="cuda")
            values, base = torch.randn(count, width, device="cuda").to(dtype), torch.randn(rows, width, device="cuda").to(dtype)
            found = [torch.ops.tarn.sum_of_rows(base, values, *torch.ops.tarn.rows_in_order(index, rows), rows) for _ in range(2)]
            wanted = base.double().index_put((index,), values.double(), accumulate=True)
            assert torch.equal(*found) and (found[0].double() - wanted).abs().max() <= tolerance * max(1, wanted.abs().max())


def inputs_that_are_not_aligned_run_unfused():
    (_, two), data = pair("small_gpt")
    with torch.no_grad():
        for parameter in two[0].parameters():
            if parameter.dim() == 1:
                parameter.data = torch.zeros(parameter.numel() + 1, device="cuda")[1:]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(*two, loss_of, data[0], fuse=True, compare=False)
    assert "multiple of 16 bytes" in step.reason and not step._first.fused, step.reason


SEED = 0x5EED5EED5EED  # by which no_gpu.c finds the arguments of attention


def attention(kind=torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
    """A loss of three layers of attention with dropout, on one side twice: models, optimizers; and batches."""
    def loss_of_attention(model, x):
        with torch.nn.attention.sdpa_kernel(kind):
            return model(x).square().mean()

    sides = []
    for _ in range(2):
        torch.manual_seed(0)
        model = torch.nn.Sequential(*(DroppingAttention(64, 4, 0.1) for _ in range(3))).to("cuda")
        sides.append((model, torch.optim.Adam(model.parameters(), lr=1e-3, fused=True)))
    return sides, loss_of_attention, [[torch.randn(4, 32, 64, device="cuda")] for _ in range(5)]


def drawn(call):
    """Seeds and offsets that kernels draw from, and where the generator is behind that. (Without numbers on a GPU.)"""
    torch.manual_seed(SEED)
    begin = len(lines())
    call()
    return [tuple(line.split()[1:]) for line in lines()[begin:] if line.startswith("draw ")], torch.cuda.default_generators[0].get_offset()


def attention_with_dropout_is_part_of_the_graph():
    """A replay draws what eager execution draws, the backward pass reads where on the GPU, and what runs again draws it again."""
    for options in ({}, {"streams": 2}, {"budget": 1}, {"fuse": True}, {"budget": 1, "fuse": True}):
        (one, two), loss, data = attention()
        with stood_in(options):
            if "budget" in options:  # with equal costs, on which the least depends
                options = {**options, "reorder": True, "costs": os.path.join(tempfile.mkdtemp(), "costs.json")}
                least = raises(tarn.DoesNotFit, tarn.torch.step, *two, loss, data[0], **options).least
                options["budget"] = least + least // 50
            step = tarn.torch.step(*two, loss, data[0], compare=False, **options)
        for batch in data[:2]:
            step(*batch)
        assert step.reason is None, (options, step.reason)
        assert_captured(step)
        assert len(step._first.recorded._drawn.seeds) == 6  # two numbers of each layer
        arena = step._arena  # in which they lie: arenas are few
        assert all(0 <= t.data_ptr() - arena.base - step.plan.spaces[0].footprint < arena.size for t in step._first.recorded._drawn.seeds.values())
        eager, replayed = (drawn(functools.partial(run, *data[2])) for run in (step.eager, step))
        assert eager[1] == replayed[1] > 0, (options, eager[1], replayed[1])
        again = sum(step.plan.is_recomputed(op.id) and step._first.program.draws_again(op) for op in step.plan.graph.ops)
        assert ("budget" in options) == (again > 0), (options, again)
        if LOG:  # forward, dropout and backward of three layers
            assert len(set(eager[0])) == 6 and len(eager[0]) == 9, eager
            assert set(eager[0]) == set(replayed[0]) and len(replayed[0]) == 9 + again, (options, eager, replayed)
        elif "fuse" not in options:
            (one, two), loss, data = attention()
            step = tarn.torch.step(*two, loss, data[0], compare=False, **options)
            torch.manual_seed(1)
            expected = [eager_step(*one, *batch, loss_fn=loss) for batch in data]
            torch.manual_seed(1)
            assert same([step(*batch) for batch in data], expected) and same(one[0].parameters(), two[0].parameters())


def seeds_go_where_the_step_goes_on():
    """Where a part of a step runs op by op between others that are graphs, its attention reads the seeds that these have drawn."""
    if not LOG:
        return
    (_, two), loss, data = attention()
    taken, hook = [False], next(two[0][2].parameters())  # of the last layer, whose backward pass is the first
    hook.register_post_accumulate_grad_hook(lambda p: setattr(p, "grad", None) if taken[0] else None)
    step = tarn.torch.step(*two, loss, data[0], compare=False)
    for batch in data[:3]:
        step(*batch)
    assert step._first.recorded.graphs == 2 and len(step._first.recorded._drawn.seeds) == 6, step._first.recorded.left_out
    eager = drawn(functools.partial(step.eager, *data[3]))
    taken[0] = True
    found = drawn(functools.partial(step, *data[3]))  # no replay of what follows the hook
    assert sorted(found[0]) == sorted(eager[0]) and found[1] == eager[1], (eager, found)
    taken[0] = False
    assert drawn(functools.partial(step, *data[3])) == eager


def what_shares_random_numbers_is_together_in_graphs_or_beside_them():
    draw = random.Random(3)
    for _ in range(300):
        count = draw.randrange(1, 9)
        groups = [(sorted(draw.sample(range(count), draw.randrange(1, min(count, 3) + 1))), draw.random() < 0.5)
                  for _ in range(draw.randrange(4))]
        start = {i: "why" for i in range(count) if draw.random() < 0.2}
        found = graphs._together(start, groups, count)

        def fits(left):
            part = {i: n for n, (a, b) in enumerate(graphs._parts(left, count)) for i in range(a, b)}
            return set(start) <= set(left) and all(
                set(those) <= set(left) or not set(those) & set(left) and (not in_one or len({part[i] for i in those}) == 1)
                for those, in_one in groups)

        assert fits(found) and start.items() <= found.items()
        least = min((sum(1 << i for i in s) for n in range(count + 1) for s in itertools.combinations(range(count), n)
                     if fits(dict.fromkeys(s, ""))), key=lambda bits: (bits.bit_count(), bits))
        assert len(found) == least.bit_count(), (start, groups, found)  # and no op more


def copies_of_the_generator_are_as_few_as_can_be():
    for count in range(7):
        for numbers in itertools.product(range(3), repeat=count):
            found = drawing.chains(numbers)
            for chain in set(found):
                those = [n for n, c in zip(numbers, found) if c == chain]
                assert all(one < two for one, two in zip(those, those[1:]))
            falling = max((len(s) for k in range(count + 1) for s in itertools.combinations(numbers, k)
                           if all(one >= two for one, two in zip(s, s[1:]))), default=0)
            assert len(set(found)) == falling  # each of these needs its own


@contextlib.contextmanager
def compared(mode):
    """Inside two steps agree with eager ones where nothing is computed, and the bits of replays are compared on the host there."""
    torch.set_deterministic_debug_mode(mode)

    def norm(tensors):
        return sum(float(t.cpu().double().norm()) ** 2 for t in tensors) ** 0.5

    with contextlib.ExitStack() as stack:
        if LOG:
            stack.enter_context(mock.patch.object(stepping.Step, "_differ", return_value=""))
            stack.enter_context(mock.patch.object(replayed, "bits", lambda t: t.cpu().flatten().view(torch.uint8).tolist()))
            stack.enter_context(mock.patch.object(replayed, "_norm", lambda t: norm([t])))
            stack.enter_context(mock.patch.object(replayed, "_apart", lambda a, b: norm([a.cpu().double() - b.cpu().double()])))
        yield
    torch.set_deterministic_debug_mode(1)


def seeing(function, **options):
    """Its buffer, an iterator of steps, and the step."""
    torch.manual_seed(3)
    model = Seeing(function).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    batch = [torch.randn(8, 32, device="cuda") for _ in range(2)]
    step = tarn.torch.step(model, optimizer, loss_of, batch, **options)
    assert step.reason is None, step.reason
    return model.seen, functools.partial(step, *batch), step


def a_replay_is_compared_before_it_is_trusted():
    """A capture keeps a number of the host's, or an address that is freed: the next step finds it, and is right."""
    clip = functools.partial(torch.nn.utils.clip_grad_norm_, max_norm=0.1)
    for mode, options in itertools.product((1, 2), ({}, {"clip": clip}, {"compare": "sample"})):
        parts = "part 1 of 3" if "clip" in options else "part 1 of 1"
        with compared(mode):
            for function in (counting, reading):
                HOST[0] = 5 if function is counting else torch.full((4,), 5, device="cuda")
                seen, run_step, step = seeing(function, **options)
                runs = 1 if "compare" in options else 3
                for _ in range(runs):
                    run_step()
                run_step()  # is captured
                assert step._first.recorded is None and len(step._first.recordings._known) == 1 and step.reason is None, step.reason
                others = []
                if function is counting:
                    HOST[0] = 6
                else:
                    HOST[0] = torch.full((4,), 6, device="cuda")
                    others = [torch.full((4,), 9, device="cuda") for _ in range(20)]  # where the first one was
                with warnings.catch_warnings(record=True) as told:
                    warnings.simplefilter("always", RuntimeWarning)
                    run_step()
                assert seen.tolist() == [6] * 4
                del others
                assert "no CUDA graph: its first replay has given other values of seen" in step.reason and parts in step.reason, step.reason
                assert any("seen" in str(w.message) for w in told), told
                HOST[0] = 7 if function is counting else torch.full((4,), 7, device="cuda")
                run_step()
                assert seen.tolist() == [7] * 4 and step._first.recorded is None
            HOST[0] = 8
            seen, run_step, step = seeing(counting, **options)
            for _ in range(runs + 2):
                run_step()
            assert step._first.recorded is None and step.reason is None, step.reason
            run_step()  # trusted
            assert step._first.recorded.is_trusted and step.reason is None and seen.tolist() == [8] * 4


def told(step, number):
    """What the step returns for a batch of that number: the same, which a replay of what was left would not have."""
    return step(*(torch.randn(8, 32, device="cuda") for _ in range(2)), torch.full((4,), number, dtype=torch.int64, device="cuda"))[1].tolist()


def graphs_of_an_arena_that_was_left_are_not_replayed():
    """A library keeps bytes in the capture with another rate, or in the step that compares: the program goes on elsewhere."""
    def loss(model, x, y, number):
        return loss_of(model, x, y), number.clone()

    def made(op, **options):
        torch.manual_seed(3)
        model = Custom(op).to("cuda")
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
        batch = [*(torch.randn(8, 32, device="cuda") for _ in range(2)), torch.zeros(4, dtype=torch.int64, device="cuda")]
        return tarn.torch.step(model, optimizer, loss, batch, **options)

    KEPT.clear()
    step = made(keeping, compare=False)
    for number, rate in enumerate((1e-2, 1e-2, 1e-2, 1e-3, 1e-2, 1e-2)):
        if rate == 1e-3:
            KEPT.clear()
        step.optimizer.param_groups[0]["lr"] = rate
        assert told(step, number) == [number] * 4 and step.reason is None, (number, step.reason)
    KEPT.clear()
    for mode in (1, 2):
        keeps, steps = [], []

        def clip(_parameters, keeps=keeps, steps=steps):
            if keeps:
                steps[0]._first.program.keepers.append(keeps.pop())

        with compared(mode):
            step = made(torch.nn.functional.gelu, clip=clip)
            steps.append(step)
            for number in range(8):
                if number == 4:  # is compared
                    assert step._first.recordings and not step._first.recorded
                    keeps.append("clip")
                assert told(step, number) == [number] * 4 and step.reason is None, (number, step.reason)
            assert not keeps and step._first.recorded and step._first.recorded.arena is step._arena


def a_comparison_without_room_does_without():
    """Copies are on the host where the GPU has no room; where that has none either there is no graph."""
    own, asked = replayed.unchanged, []

    def short(optimizer, written, on_host, **options):
        asked.append(on_host)
        if not on_host or len(rooms) == 1:
            raise torch.OutOfMemoryError("no room for copies")
        return own(optimizer, written, on_host, **options)

    for rooms in (("gpu", "host"), ("gpu",)):
        (_, two), data = pair("small_gpt")
        with compared(2), mock.patch.object(replayed, "unchanged", short):
            step = tarn.torch.step(*two, loss_of, data[0])
            for batch in data[:4] * 2:
                step(*batch)
        if len(rooms) == 2:
            assert step.reason is None and step._first.recorded.is_trusted
        else:
            assert "no memory to compare" in step.reason, step.reason
    assert asked[:2] == [False, True], asked


def replays_run_ops_beside_graphs_as_the_plan_does():
    """Autocast and gradients outside are not theirs."""
    modes = []

    def watching(_parameters):
        modes.append((torch.is_autocast_enabled("cuda"), torch.is_grad_enabled()))

    torch.manual_seed(3)
    model = Custom(torch.nn.functional.gelu).to("cuda")
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)
    batch = [torch.randn(8, 32, device="cuda") for _ in range(2)]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        step = tarn.torch.step(model, optimizer, loss_of, batch, compare=False, clip=watching)
        for _ in range(3):
            modes.clear()
            step(*batch)
            assert set(modes) == {(False, False)}, modes
    assert step._first.recorded.graphs == 2


def parts_that_were_captured_are_given_back_where_a_later_one_fails():
    own, opened, dropped = graphs.captured, [], []

    def failing(call, generators=()):
        found = own(call, generators)
        opened.append(found[1])
        if len(opened) == 2:
            functions.tarn_cuda_pool_drop(opened.pop())
            raise RuntimeError("cudaStreamEndCapture")
        return found

    functions = tarn.torch.install("cuda")
    watched = mock.Mock(wraps=functions)
    watched.tarn_cuda_pool_drop.side_effect = lambda pool: (dropped.append(pool), functions.tarn_cuda_pool_drop(pool))
    (_, two), data = pair("small_gpt")
    with warnings.catch_warnings(), mock.patch.object(graphs, "captured", failing), mock.patch.object(graphs, "allocator", lambda _: watched):
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(*two, loss_of, data[0], clip=lambda _: None, compare=False)
        for batch in data[:4]:
            step(*batch)
    assert "cudaStreamEndCapture" in step.reason and opened == dropped and len(opened) == 1, (step.reason, opened, dropped)


def what_replays_may_differ_by():
    """On numbers by hand: what is no number or infinite in both is equal, and noise of a large tensor allows nothing to a small one."""
    inf, nan = float("inf"), float("nan")
    for one, two, apart in (([1.0, inf, nan], [1.0, inf, nan], 0), ([1.0, -inf], [3.0, -inf], 2), ([inf], [1.0], inf), ([1 + 1j], [1 + 3j], 2), ([], [], 0)):
        assert replayed._apart(torch.tensor(one), torch.tensor(two)) == apart, (one, two)
    assert not replayed._apart(torch.tensor([nan]), torch.tensor([1.0])) <= inf
    assert replayed._norm(torch.tensor([3.0, inf, nan, 4.0])) == 5 and replayed._norm(torch.tensor([3, 4])) == 5
    large, small, other = ("parameter", "embedding"), ("parameter", "bias"), ("exp_avg", "bias")
    norms, noise = {large: 1e3, small: 1e-3, other: 0.0}, {large: 1e-3, small: 0.0, other: 0.0}
    assert replayed._noise(small, noise, norms) == 1e-9 and replayed._noise(large, noise, norms) == 1e-3
    assert replayed._noise(other, noise, norms) == 0
    noise[other] = 1e-8  # its norm is all noise
    assert replayed._noise(other, noise, norms) == 1e-8


def a_replay_may_differ_as_two_planned_steps_do():
    """Where equal runs give other bits: twice as much. What each run makes, replay, planned, replay, planned, planned:"""
    for values, is_trusted in (((0.0, 1.0, 0.5, 1.0, 2.0), True), ((0.0, 1.0, -0.5, 1.0, 2.0), False),
                               ((0.0, 1.0, float("nan"), 1.0, 2.0), False), ((3.0, 3.0), True)):
        runs = []

        def made(*_, runs=runs, values=values):
            return {("parameter", "w"): replayed._Made(torch.full((4,), values[min(len(runs), len(values)) - 1]), None)}

        variant = mock.Mock(fixed=[], program=mock.Mock(ops=[], run=lambda runs=runs: runs.append("planned")))
        variant.recordings.rates.given = contextlib.nullcontext
        step = mock.Mock(is_exact=lambda: False, samples=False, model=torch.nn.Linear(1, 1))
        with mock.patch.multiple(replayed, _made=made, _writers=lambda variant: {}, unchanged=lambda *_, **__: contextlib.nullcontext()):
            told = replayed.difference(step, variant, mock.Mock(replay=lambda runs=runs: runs.append("replay"), part_of=lambda _: ""))
        assert (told == "") == is_trusted and (told == "" or "values of w" in told), (values, told)
        assert runs == (["replay", "planned", "replay", "planned", "planned"] if len(values) > 2 else ["replay", "planned", "planned"]), runs


def a_step_is_made_op_by_op():
    (one, two), data = pair("small_gpt")
    with mock.patch.object(stepping.Step, "_differ", return_value="") if LOG else contextlib.nullcontext():
        step = tarn.torch.step(*two, loss_of, data[0], compare="sample", reorder=True, budget=0.9)
    for batch in data:
        step(*batch)
    assert step.reason is None and step._first.recorded.graphs >= 1 and not step._first.program.copied and one
    assert step.report().eager is None and step.report().compared == "2 of 4 rows"


def what_a_capture_takes_of_the_heap_is_given_back():
    functions = tarn.torch.install("cuda")
    stream = torch.cuda.Stream()
    torch.cuda.empty_cache()
    before = functions.tarn_live()
    with torch.cuda.stream(stream):
        x = torch.ones(1000, device="cuda")
        outside = [torch.empty(1 << 28, dtype=torch.uint8, device="cuda")]

        def call():
            kept.append(x + 1)
            outside.clear()  # a block of the heap, which cannot be freed here
            assert (x + 2).data_ptr() == (x + 3).data_ptr() != kept[0].data_ptr()

        kept = []
        graph, pool, size = cuda_graph.captured(call)
        address = kept[0].data_ptr()
        assert size - 2 * 4096 in (0, 2 * 512) and not events("forbidden"), size  # a generator may be told to the graph there
        graph.replay()
        torch.cuda.synchronize()
        assert LOG or kept[0].tolist() == [2.0] * 1000
        kept.clear()
        assert all(torch.empty(1000, device="cuda").data_ptr() != address for _ in range(4))  # the graph's
        graph.reset()
        functions.tarn_cuda_pool_drop(pool)
        raises(ZeroDivisionError, cuda_graph.captured, lambda: 1 // 0)
        raises(Exception, cuda_graph.captured, torch.cuda.synchronize)
        torch.cuda.synchronize()
        del x
    assert functions.tarn_live() - before in (0, 16)  # of a generator, as long as there are graphs


def gradients_are_reduced_in_the_arena():
    with tempfile.TemporaryDirectory() as folder:
        dist.init_process_group("gloo" if LOG else "nccl", init_method=f"file://{folder}/store", rank=0, world_size=1)
        step = compare("small_gpt", tarn.torch.ddp, bucket_mb=0.05)
        kinds = [op.kind for op in step.graph.ops]
        assert kinds.count("comm.all_reduce") > 2 and "no CUDA graph: its ranks communicate" in str(step.report())
        dist.destroy_process_group()


def what_lies_elsewhere_runs_eagerly():
    (one, _), data = pair("small_gpt")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(*one, lambda model, *batch: loss_of(model, *batch) + torch.rand(2).sum().to("cuda"), data[0])
    assert "on cpu" in step.reason, step.reason


# ---- What PyTorch's own allocator does, too ----

def lines():
    return Path(LOG).read_text(encoding="ascii").splitlines() if LOG else []


def out_of_memory_is_pytorchs_error_and_is_over():
    error = raises(torch.OutOfMemoryError, torch.empty, 1 << 44, dtype=torch.uint8, device="cuda")
    assert "out of memory" in str(error)
    torch.ones(1000, device="cuda").mul_(2)  # looks for errors behind its launch
    torch.cuda.synchronize()
    raises(torch.OutOfMemoryError, Arena, 1 << 44, torch.device("cuda"))


def empty_cache_gives_memory_back():
    kept = [torch.empty((1 << 25) + 512 * i, dtype=torch.uint8, device="cuda") for i in range(8)]
    del kept
    before = torch.cuda.mem_get_info()[0], lines().count("free 0")
    torch.cuda.empty_cache()
    assert lines().count("free 0") - before[1] >= 8 if LOG else torch.cuda.mem_get_info()[0] - before[0] >= 8 << 25


def statistics_are_told_as_by_pytorchs_own_allocator():
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    kept, other = (torch.empty(1 << 20, dtype=torch.uint8, device="cuda") for _ in range(2))
    del other
    assert torch.cuda.memory_allocated() - before == 1 << 20 == len(kept) and torch.cuda.max_memory_allocated() - before == 2 << 20
    assert torch.cuda.memory_reserved() - torch.cuda.memory_allocated() >= 1 << 20
    torch.cuda.empty_cache()
    assert torch.cuda.memory_reserved() == torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    stats = torch.cuda.memory_stats()
    assert stats["allocated_bytes.all.peak"] == stats["allocated_bytes.all.current"] == torch.cuda.memory_allocated()
    assert "Allocated memory" in torch.cuda.memory_summary()


def an_arena_does_not_begin_where_its_allocation_does():
    for size in (1, 4096, 1 << 20):
        whole, arena = torch.empty(size + 4096, dtype=torch.uint8, device="cuda"), Arena(size, torch.device("cuda"))
        assert arena.base % 4096 == 0 and arena.base != arena._bytes.data_ptr() and (not LOG or whole.data_ptr() % 4096 == 0)


def costs_are_times_of_the_gpu():
    """It is busy until the op is launched; for what the host takes longer than that, the GPU has waited."""
    def cost(elapsed, host):
        told, now = [], iter([0, host])
        events = [mock.Mock(record=lambda: told.append("begin"), elapsed_time=lambda _: elapsed / 1e6),
                  mock.Mock(record=lambda: told.append("end"))]
        with mock.patch.object(torch.cuda, "Event", side_effect=events), mock.patch.object(program.time, "perf_counter_ns", lambda: next(now)), \
                mock.patch.object(torch.cuda, "_sleep", lambda _: told.append("busy")):
            found = program.timed_on_gpu(lambda: told.append("call"))[1]
        assert told == ["busy", "begin", "call", "end"]
        return found

    assert cost(1000, 300) == 1000 and cost(1000000, program.BUSY_NS + 400000) == 600000 and cost(1000, 10 * program.BUSY_NS) == 500
    if not LOG:
        one, other = torch.randn(4096, 4096, device="cuda"), torch.randn(64, 64, device="cuda")
        torch.mm(one, one), torch.mm(other, other)
        times = [min(program.timed_on_gpu(lambda m=m: torch.mm(m, m))[1] for _ in range(5)) for m in (one, other)]
        assert times[0] > 5 * times[1] > 0 and times[1] < 100000, times


def steps_are_compared_on_the_device():
    (_, two), data = pair("small_gpt")
    torch.set_deterministic_debug_mode(2)
    try:
        with mock.patch.object(comparing.hashlib, "sha256", side_effect=AssertionError("on the host")):
            step = tarn.torch.step(*two, loss_of, data[0])
            for batch in data[:3]:
                step(*batch)
    finally:
        torch.set_deterministic_debug_mode(1)
    if LOG:  # where nothing is computed, bits may differ
        assert "host" not in (step.reason or ""), step.reason
    else:
        assert step.reason is None and step._first.to_compare == 0, step.reason
        for size in (1, 8, 1000, (1 << 23) + 3):
            one = torch.randint(0, 256, (size,), dtype=torch.uint8, device="cuda")
            for at in (0, size // 2, size - 1):
                other = one.clone()
                other[at] ^= 1 << (at % 8)
                assert comparing.digest(one) == comparing.digest(one.clone()) != comparing.digest(other)


# ---- Ops that do on a GPU what they are not traced to do ----

def train(function, **options):
    """A step with a function in the middle, and one that runs eagerly, on equal models and batches."""
    sides, steps = [], []
    for _ in range(2):
        torch.manual_seed(3)
        model = Custom(function).to("cuda")
        sides.append((model, torch.optim.Adam(model.parameters(), lr=1e-2, fused=True)))
    data = [[torch.randn(8, 32, device="cuda") for _ in range(2)] for _ in range(3)]
    step = tarn.torch.step(*sides[1], loss_of, data[0], compare=False, **options)
    assert step.reason is None, step.reason
    for number, batch in enumerate(data):
        torch.manual_seed(number)
        expected = eager_step(*sides[0], *batch)
        torch.manual_seed(number)
        steps.append((expected, step(*batch)))
    assert LOG or all(torch.equal(*losses) for losses in steps)
    assert same(sides[0][0].parameters(), sides[1][0].parameters())
    return step, data


def what_ops_make_on_the_host_stays_there():
    step, _ = train(seeded_copy)
    assert not step._first.program.copied
    if LOG:
        return
    shape = (8, 4, 8, 1)  # of attention's own seeds
    for kind in (torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION, torch.nn.attention.SDPBackend.FLASH_ATTENTION):
        def attend(x, kind=kind, dropout=0.0):
            q = x.view(shape[0], shape[1], 1, shape[2]).to(torch.float16)
            with torch.nn.attention.sdpa_kernel(kind):
                return torch.nn.functional.scaled_dot_product_attention(q, q, q, dropout_p=dropout).to(x.dtype).view(x.shape)

        for options in ({}, {"reorder": True}):
            train(attend, **options)
            train(functools.partial(attend, dropout=0.2), **options)
        train(functools.partial(attend, dropout=0.2), reorder=True, budget=1.0)


def memory_that_a_library_keeps_in_mid_step_is_its_own():
    for options in ({}, {"streams": 2}):
        KEPT.clear()
        step, data = train(keeping, graph=False, **options)
        for _ in range(2):
            KEPT.clear()
            arena = step._arena
            step(*data[0])
            assert step.reason is None and step._arena is not arena
            step(*data[1])
            assert LOG or KEPT[0].tolist() == [5.0] * 64
        assert len(program.LOST) >= 2
        KEPT.clear()  # which lies in them
        program.LOST.clear()


def memory_that_a_library_keeps_is_no_part_of_a_graph():
    KEPT.clear()
    step, data = train(keeping)
    assert not step._first.recorded.left_out
    KEPT.clear()
    step.optimizer.param_groups[0]["lr"] = 1e-3  # captured once more
    step(*data[0])
    step(*data[1])
    assert step.reason is None and not step._first.recorded.left_out and step._arena is step._first.program.arena
    assert len(program.LOST) == 1 and step._arena is not program.LOST[0]
    KEPT.clear()
    program.LOST.clear()


def blas_workspaces_are_taken_outside_of_frames():
    step, data = train(torch.nn.functional.gelu)
    arena = step._arena
    torch._C._cuda_clearCublasWorkspaces()
    step(*data[0])
    with torch.cuda.stream(torch.cuda.Stream()):
        step(*data[0])
    other = threading.Thread(target=step, args=data[0])
    other.start()
    other.join()
    step(*data[0])
    assert step.reason is None and (step._arena is arena or not LOG), step.reason  # cuBLASLt has its own


def results_that_were_traced_without_bytes_are_planned():
    step, _ = train(reserving)
    assert not step._first.program.copied
    for name in networks()[1:]:  # what cuDNN's batch-norm reserves
        step = compare(name, reorder=True, budget=0.8)
        norms = [op for op in step._first.lowered.ops if op.kind == "aten.cudnn_batch_norm"]
        again = [op.name for op in step.plan.graph.ops if step.plan.is_recomputed(op.id)]
        print("#", len(norms), "of cuDNN's batch-norms,", sum(3 in op.made for op in norms), "reserve bytes; run again:", *again)
        assert all(op.may_repeat for op in norms)


def convolutions_may_be_benchmarked():
    if LOG:
        return  # there is no stand-in for cuDNN
    with torch.backends.cudnn.flags(enabled=True, benchmark=True, deterministic=False):
        layer, x = torch.nn.Conv2d(3, 8, 3).to("cuda"), torch.randn(2, 3, 32, 32, device="cuda")
        layer(x).sum().backward()
        torch.cuda.synchronize()


if __name__ == "__main__":
    if torch.version.cuda is None:
        print("1..0 # SKIP this PyTorch knows no CUDA")
    elif not torch.cuda.is_available() and not LOG:
        sys.exit(run_without_a_gpu([__file__]) if "gpu" not in sys.argv else "there is no GPU")
    else:
        tarn.torch.install("cuda")
        if LOG:  # there is no stand-in for cuDNN
            torch.backends.cudnn.enabled = False
            torch.backends.cuda.enable_cudnn_sdp(False)
        torch.use_deterministic_algorithms(True, warn_only=True)
        run([out_of_memory_is_pytorchs_error_and_is_over, empty_cache_gives_memory_back,
             statistics_are_told_as_by_pytorchs_own_allocator,
             an_arena_does_not_begin_where_its_allocation_does, costs_are_times_of_the_gpu, steps_are_compared_on_the_device,
             what_ops_make_on_the_host_stays_there, memory_that_a_library_keeps_in_mid_step_is_its_own,
             memory_that_a_library_keeps_is_no_part_of_a_graph,
             blas_workspaces_are_taken_outside_of_frames,
             convolutions_may_be_benchmarked, results_that_were_traced_without_bytes_are_planned,
             a_step_is_one_graph_once_its_first_steps_have_agreed, replays_launch_one_graph_and_nothing_else,
             what_calls_the_program_runs_between_parts, parts_of_few_ops_are_no_graphs, what_is_no_part_of_a_graph_is_named, what_calls_the_program_keeps_its_order,
             streams_are_two_where_bytes_are_not_asked_for,
             a_gradient_that_a_hook_takes_away_leaves_the_step_right,
             other_numbers_are_captured_and_kept, rates_on_the_gpu_are_those_of_the_optimizer,
             an_optimizer_of_the_host_is_told_what_it_lacks, state_that_is_loaded_is_captured_again,
             shapes_that_take_turns_keep_their_graphs, attention_with_dropout_is_part_of_the_graph,
             seeds_go_where_the_step_goes_on, what_shares_random_numbers_is_together_in_graphs_or_beside_them,
             copies_of_the_generator_are_as_few_as_can_be, a_replay_is_compared_before_it_is_trusted,
             a_replay_may_differ_as_two_planned_steps_do, graphs_of_an_arena_that_was_left_are_not_replayed,
             a_comparison_without_room_does_without, replays_run_ops_beside_graphs_as_the_plan_does,
             parts_that_were_captured_are_given_back_where_a_later_one_fails, what_replays_may_differ_by, a_step_is_made_op_by_op, fused_steps_are_one_graph_too,
             experts_add_up_rows_in_one_order, sums_of_rows_are_those_of_index_put,
             inputs_that_are_not_aligned_run_unfused, what_a_capture_takes_of_the_heap_is_given_back,
             steps_lie_in_the_arena, streams_wait_as_the_plan_says, streams_order_what_a_plan_orders,
             what_idles_waits_in_pinned_memory, copies_run_on_streams_of_their_own_as_the_plan_says,
             what_persists_lives_in_pinned_memory,
             gradients_are_reduced_in_the_arena, what_lies_elsewhere_runs_eagerly])
