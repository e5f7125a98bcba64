"""tarn.torch and tarn.executorch against PyTorch and ExecuTorch. Everything is compared bit by bit.
TAP on stdout.

    tests/with_torch.sh tests/python/torch/torch_test.py SOURCE [-v] [NAMES...]"""
import contextlib
import copy
import ctypes
import functools
import gc
import io
import itertools
import json
import os
import pickle
import random
import re
import socket
import subprocess
import sys
import tempfile
import textwrap
import threading
import types
import warnings
import weakref
from pathlib import Path
from unittest import mock

import torch
from cases import raises, run
from networks import OLDER, Residual, Transformer, eager_step, loss_of, make, make_exported
from torch.torch_version import TorchVersion
from torch.utils.checkpoint import checkpoint

import tarn
import tarn.torch
from tarn.torch import lowering, merging, program, stepping, updates

SOURCE = Path(sys.argv[1])
torch.set_num_threads(1)


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


def sgd(parameters):
    return torch.optim.SGD(parameters, lr=1e-2, momentum=0.9)


def tensors_of(model, optimizer):
    states = [optimizer.state[p] for p in model.parameters()]
    return [*model.parameters(), *model.buffers(),
            *(value for state in states for value in state.values() if torch.is_tensor(value))]


def same(first, second):
    return len(first) == len(second) and all(map(torch.equal, first, second))


def compare(name, steps=20, optimizer=adam, **options):
    """Runs a network eagerly and planned; returns the Step."""
    (one, batch), (two, _) = make(name), make(name)
    eager, planned = optimizer(one.parameters()), optimizer(two.parameters())
    torch.manual_seed(1)
    data = [batch() for _ in range(steps)]
    step = tarn.torch.step(two, planned, loss_of, data[0], **options)
    torch.manual_seed(2)
    expected = [eager_step(one, eager, *b) for b in data]
    torch.manual_seed(2)
    assert same([step(*b) for b in data], expected) and step.reason is None, step.reason
    assert same(tensors_of(two, planned), tensors_of(one, eager))
    return step


# ---- Steps ----

def planned_steps_are_bit_equal_with_eager_ones():
    for name in ("small_gpt", "small_resnet"):
        step = compare(name)
        report = step.report()
        assert report.arena == step.plan.footprint <= report.eager * 1.01, str(report)
        assert not report.copied and step.plan.optimal


def ops_with_kernels_of_their_own_are_traced_as_one():
    class Gates(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.scale, self.out = torch.nn.Parameter(torch.ones(8, 1, 1)), torch.nn.Linear(8, 5)

        def forward(self, x):
            for gate in (torch.nn.functional.silu, torch.nn.functional.mish) * 2:
                x = torch.nn.functional.channel_shuffle(gate(x * self.scale), 2)
            return self.out(x.mean((2, 3))).float()

    data = [(torch.randn(4, 8, 6, 6, dtype=torch.bfloat16), torch.randint(0, 5, (4,))) for _ in range(4)]
    torch.manual_seed(0)
    one = Gates().bfloat16()
    two = copy.deepcopy(one)
    eager, planned = sgd(one.parameters()), sgd(two.parameters())
    step = tarn.torch.step(two, planned, loss_of, data[0], compare=False)
    assert same([step(*b) for b in data], [eager_step(one, eager, *b) for b in data]) and step.reason is None, step.reason
    assert same(tensors_of(two, planned), tensors_of(one, eager))
    kinds = [op.kind for op in step.graph.ops]
    assert sum("silu_backward" in kind for kind in kinds) == sum("mish_backward" in kind for kind in kinds) == 2, kinds


def reordered_and_recomputed_steps_are_bit_equal_too():
    for name in ("small_gpt", "small_resnet"):
        most = compare(name, 3, reorder=True, effort=20).plan.footprint
        step = compare(name, reorder=True, budget=0.8, effort=20)
        assert step.plan.footprint <= 0.8 * most + 1 and step.report().recomputed
        assert "run again" in str(step.report())


def least(graph):
    """Bytes of the least plan of a graph that is found."""
    return raises(tarn.DoesNotFit, tarn.plan, graph, alignment=64, reorder=True, budget=1).least


def eager_peak(model, optimizer, batch):
    memory = tarn.torch.install("cpu")
    eager_step(model, optimizer, *batch)
    before = memory.tarn_live()
    memory.tarn_reset_peak()
    eager_step(model, optimizer, *batch)
    return memory.tarn_peak() - before


def a_budget_makes_again_what_checkpoints_make_again():
    """Random numbers included: they are drawn again from where the generator was."""
    for name in ("small_gpt", "small_resnet"):
        step = compare(name, 2, reorder=True, budget=1.0)
        bytes_ = least(step.graph)
        bytes_ = bytes_ * 23 // 20  # costs differ from run to run
        step = compare(name, 4, reorder=True, budget=bytes_)
        again = {step.plan.origin(op.id) for op in step.plan.graph.ops if step.plan.is_recomputed(op.id)}
        drawn = [i for i in again if step._first.lowered.ops[i].is_random]
        assert bool(drawn) == (name == "small_gpt"), step.report().recomputed
        model, batch = make(name)
        torch.manual_seed(1)
        for block in model.blocks if name == "small_gpt" else [c for c in model if isinstance(c, Residual)]:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        assert bytes_ <= eager_peak(model, adam(model.parameters()), batch()), name


def threads_do_not_draw_again():
    step = compare("small_gpt", 2, streams=2, budget=1.0)
    assert not any(op.redraws for op in step._first.lowered.ops)


# ---- Moves ----

def moving(kinds="activations", **more):
    """With a budget, even a large one, all that persists moves; without one what nobody waits for."""
    return {"offload": {"rate": "50GB/s", "latency_ns": 100, "bytes_min": 4096, "kinds": kinds}, "effort": 20, **more}


def what_moves_keeps_its_bits():
    for name in ("small_gpt", "small_resnet"):
        plain = compare(name, 2, reorder=True).plan.footprint
        for more in ({}, {"reorder": True, "budget": 0.75}, {"streams": 2}):
            report = compare(name, 5, **moving(**more)).report()
            assert report.moves and 0 < report.host <= report.moved, str(report)
            assert f"{report.moves} copies to the host's memory and back, {report.moved} bytes" in str(report)
            assert report.arena < plain or "streams" in more, (str(report), plain)
            assert "budget" not in more or report.arena <= 0.75 * plain + 1


def what_persists_moves_and_keeps_its_bits():
    """Updates run on bytes of the arena, and the optimizer is as ever."""
    for kinds in ("states", "parameters", ["activations", "states", "parameters"]):
        for optimizer in (adam, functools.partial(torch.optim.NAdam, lr=1e-3)):
            for more in ({}, {"streams": 2}) if optimizer is adam else ({},):
                step = compare("small_gpt", 4, optimizer, **moving(kinds, budget=1 << 40, **more))
                plain = sum(t.size for t in step.graph.tensors if t.is_persistent and t.root == t.id)
                spaces = step.plan.spaces
                assert spaces[0].persistent < plain and spaces[1].persistent and step.report().moves
        step = compare("small_resnet", 5, sgd, **moving(kinds, budget=1 << 40))
        assert step.plan.spaces[1].persistent
        compare("small_gpt", 4, **moving(kinds))


def poisoned(step):
    """What is in the arena and beside it between two steps is nobody's."""
    for memory, size in ((step._arena.bytes(0, step._arena.size), step._arena.size), (step._arena.host._bytes, step._arena.host.size)):
        assert memory.numel() >= size
        memory.fill_(0xFF)


def garbage_instead_of(program, i):
    """Called for a move. Were nothing copied, the right bytes might lie there still, if no op has taken them meanwhile. What
    persists stays as it was before the step."""
    target = program.ops[i].outputs[0]
    told, arena = program.held[target], program.arena
    if told.is_persistent:
        return lambda: None
    address = (arena.host.base if told.space else arena.base) + program.plan.offset(target)
    return lambda: ctypes.memset(address, 0xFF, told.size)


def every_copy_is_needed():
    """With garbage instead of one of them a step gives something else."""
    kinds = ["activations", "states", "parameters"]
    model, batch = make("small_gpt")
    torch.manual_seed(1)
    data = [batch() for _ in range(3)]
    optimizer = adam(model.parameters())
    step = tarn.torch.step(model, optimizer, loss_of, data[0], **moving(kinds, budget=0.9))
    for b in data[:2]:
        step(*b)
    step(*data[0])
    program = step._first.program
    before = copy.deepcopy((model.state_dict(), optimizer.state_dict()))

    def run_two():
        with torch.no_grad():
            for value, old in zip(model.state_dict().values(), before[0].values()):
                value.copy_(old)
            for p, state in zip(model.parameters(), before[1]["state"].values()):
                for key, value in state.items():
                    optimizer.state[p][key].copy_(value)
        torch.manual_seed(3)
        found = []
        for b in data[:2]:
            poisoned(step)
            found.append(step(*b).clone())
        return found + [p.detach().clone() for p in tensors_of(model, optimizer)]

    expected = run_two()
    assert same(run_two(), expected) and step.reason is None
    moves = [i for i, op in enumerate(program.ops) if op.move]
    for i in moves[::max(1, len(moves) // 40)]:
        call = program.calls[i]
        program.calls[i] = garbage_instead_of(program, i)
        assert not same(run_two(), expected), program.ops[i].name
        program.calls[i] = call
    assert same(run_two(), expected)


def packed(told):
    """A state_dict whose states are parts of one tensor for each name."""
    for name in ("exp_avg", "exp_avg_sq"):
        states = list(told["state"].values())
        parts = torch.cat([s[name].flatten() for s in states]).split([s[name].numel() for s in states])
        for state, part in zip(states, parts):
            state[name] = part.view_as(state[name])
    return told


def what_moves_may_be_loaded_and_change_its_shape():
    (one, batch), (two, _) = make("small_gpt"), make("small_gpt")
    eager, planned = adam(one.parameters()), adam(two.parameters())
    torch.manual_seed(1)
    data = [batch() for _ in range(4)]
    step = tarn.torch.step(two, planned, loss_of, data[0], **moving("states,parameters", budget=1 << 40))
    for number, b in enumerate([*data, *([t[:2] for t in b] for b in data), *data]):
        if number % 5 == 4:
            for optimizer in (eager, planned):
                told = copy.deepcopy(optimizer.state_dict())
                optimizer.load_state_dict(packed(told) if number > 4 else told)
        torch.manual_seed(number)
        expected = eager_step(one, eager, *b)
        torch.manual_seed(number)
        assert torch.equal(step(*b), expected) and step.reason is None, (number, step.reason)
    assert same(tensors_of(two, planned), tensors_of(one, eager)) and len(step.variants) == 2


def what_cannot_move_is_told():
    class Own(torch.optim.Adam):
        __module__ = "own"

    model, batch = make("small_gpt")
    torch.manual_seed(1)
    one = batch()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(model, Own(model.parameters()), loss_of, one, **moving("states", budget=1 << 40))
    assert "PyTorch's own optimizers only" in step.reason, step.reason
    step = tarn.torch.step(model, Own(model.parameters()), loss_of, one, **moving())
    assert step.reason is None and step.report().moves
    for wrong in ({"rate": "50"}, {"rate": "1GB/s", "kinds": "gradients"}, {"kind": 1, "rate": "1GB/s"}):
        raises(tarn.UsageError, tarn.torch.step, model, adam(model.parameters()), loss_of, one, offload=wrong)


# ---- Without the memory of an eager step ----

def a_step_can_be_made_that_eager_execution_has_no_memory_for():
    memory = tarn.torch.install("cpu")

    def sides():
        torch.manual_seed(0)
        model = Transformer(500, 64, 2, 4, 32, 0.1)
        return model, adam(model.parameters())

    torch.manual_seed(1)
    data = [[torch.randint(0, 500, (64, 32)) for _ in range(2)] for _ in range(3)]
    one, eager = sides()
    eagers = eager_peak(*sides(), data[0])
    two, planned = sides()
    before = memory.tarn_live()
    memory.tarn_reset_peak()
    step = tarn.torch.step(two, planned, loss_of, data[0], compare="sample", reorder=True, budget=0.5)
    assert memory.tarn_peak() - before < eagers / 3 and not planned.state
    assert same(list(two.parameters()), list(one.parameters()))
    torch.manual_seed(2)
    expected = [eager_step(one, eager, *batch) for batch in data]
    torch.manual_seed(2)
    memory.tarn_reset_peak()
    assert same([step(*batch) for batch in data], expected) and step.reason is None, step.reason
    assert memory.tarn_peak() - before < 0.6 * eagers
    assert same(tensors_of(two, planned), tensors_of(one, eager))
    report = step.report()
    assert report.eager is None and report.compared == "2 of 64 rows" and "2 of 64 rows" in str(report)


def ops_alone_are_profiled_as_in_the_step():
    for name in ("small_gpt", "small_resnet"):
        found = []
        for options in ({}, {"compare": "sample"}):
            with mock.patch.object(merging, "MERGED", 0):  # updates are one by one in both
                step = compare(name, 2, **options)
            found.append([(op.name, op.workspace, op.ordinals, op.on_heap, [step._first.lowered.storages[s] for s in op.outputs])
                          for op in step._first.lowered.ops])
        assert found[0] == found[1], [pair for pair in zip(*found) if pair[0] != pair[1]][:3]


def a_sample_that_differs_is_told():
    (model, batch) = make("small_gpt")
    for patch, text in ((mock.patch.object(stepping.Step, "_differ", return_value="bits"), "different bits for 2 of 4 rows"),
                        (mock.patch.object(stepping, "sampled", side_effect=ValueError("no rows")), "no rows")):
        with warnings.catch_warnings(), patch:
            warnings.simplefilter("ignore", RuntimeWarning)
            step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), compare="sample")
        assert text in step.reason and step.plan is None, step.reason
    raises(ValueError, stepping.sampled, (torch.tensor(1.0), 3), 2)
    some, rows, whole = stepping.sampled(({"a": torch.arange(6).view(3, 2)}, torch.ones(5), torch.ones(3), 7), 2)
    assert (rows, whole) == (2, 3) and some[0]["a"].tolist() == [[0, 1], [2, 3]] and len(some[1]) == 5 and len(some[2]) == 2
    raises(ValueError, tarn.torch.step, model, adam(model.parameters()), loss_of, batch(), compare="some")


def costs_of_a_file_hold():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "costs.json")
        costs = [[op.cost for op in compare("small_gpt", 2, costs=path).graph.ops] for _ in range(2)]
        assert costs[0] == costs[1]
        told = json.loads(path.read_text(encoding="utf-8"))
        count = len(told["ops"])
        compare("small_resnet", 2, costs=path)  # adds its own
        assert len(json.loads(path.read_text(encoding="utf-8"))["ops"]) > count and len(os.listdir(folder)) == 1
        path.write_text(json.dumps({**told, "torch": "1.0"}), encoding="utf-8")
        compare("small_gpt", 2, costs=path)
        assert json.loads(path.read_text(encoding="utf-8"))["torch"] == torch.__version__
        path.write_text("{}", encoding="utf-8")
        raises(tarn.BadInput, compare, "small_gpt", 2, costs=path)


def steps_on_two_streams_are_bit_equal_too():
    for name in ("small_gpt", "small_resnet"):
        step = compare(name, streams=2, couple=True)
        assert len(step.plan.graph.streams) == 2 and step.plan.waits()


def two_shapes_on_two_streams_take_turns_in_one_arena():
    """Whichever shape comes has the session on the arena, which closes that of the other one."""
    (one, eager, _), (two, planned, _), step = small_pair(streams=2)
    source = torch.Generator().manual_seed(5)
    for count in (8, 13, 13, 8, 13, 8, 8, 13):
        batch = (torch.randn(count, 20, generator=source),
                 torch.randint(0, 3, (count,), generator=source))
        losses = []
        for run in (lambda: eager_step(one, eager, *batch), lambda: step(*batch)):
            torch.manual_seed(count)
            losses.append(run())
        assert same(losses[:1], losses[1:])
    assert same(tensors_of(two, planned), tensors_of(one, eager))
    assert step.reason is None and len(step.variants) == 2, step.reason
    programs = [variant.program for variant in step.variants.values()]
    assert len({id(program.arena) for program in programs}) == 1
    assert len({len(program.plan.graph.streams) for program in programs}) == 1
    owners = [program for program in programs if program._own is program.arena.session]
    assert len(owners) == 1 and owners[0]._own is not None


def most_alive(lowered, ops):
    """Bytes that are alive at once at most if these ops run in this order."""
    touched = [{lowered.storages[s].root for s in op.inputs + op.outputs} - lowered.persistent.keys() for op in ops]
    sizes = {root: -(-lowered.storages[root].size // 64) * 64 for root in set().union(*touched)}

    def alive(root, i):
        end = len(ops) if lowered.storages[root].kind == "output" else max(k for k, t in enumerate(touched) if root in t)
        return min(k for k, t in enumerate(touched) if root in t) <= i <= end

    return max(sum(size for root, size in sizes.items() if alive(root, i)) + -(-op.workspace // 64) * 64 for i, op in enumerate(ops))


def step_with_updates(chance, workspaces):
    """A lowered step of few ops of random sizes, with up to three updates."""
    lowered = types.SimpleNamespace(storages=[], persistent={}, ops=[])

    def storage(size, kind="intermediate", root=None):
        lowered.storages.append(lowering.Storage("", size, kind, len(lowered.storages) if root is None else root))
        return len(lowered.storages) - 1

    parameters = [torch.nn.Parameter(torch.zeros(chance.randrange(1, 40))) for _ in range(chance.randrange(1, 4))]
    optimizer = torch.optim.SGD(parameters)
    made = []
    for i in range(chance.randrange(3, 7)):
        made.append(storage(chance.randrange(1, 400), chance.choice(["intermediate", "output"])))
        read = chance.sample(made, chance.randrange(min(3, len(made))))
        lowered.ops.append(lowering.Op(f"op{i}", "op", read, made[-1:], workspace=chance.choice([0, chance.randrange(400)])))
    for parameter in parameters:
        root, gradient = storage(parameter.nbytes, "parameter"), storage(parameter.nbytes, "gradient")
        lowered.persistent[root] = None
        at = chance.randrange(len(lowered.ops))
        while isinstance(lowered.ops[at].run, updates.Update):
            at -= 1
        lowered.ops[at].outputs.append(gradient)
        update = updates.Update(optimizer, [parameter], set())
        lowered.ops.insert(at + 1, lowering.Op("update", "update", [gradient, root], [storage(parameter.nbytes, "parameter", root)], run=update,
                                               workspace=chance.randrange(100) if workspaces else 0))
    return lowered


def fewest_updates(lowered, most):
    """How few updates do with so many bytes, whatever they wait for: all ways are tried."""
    rest = [op for op in lowered.ops if not op.run]
    single = [op for op in lowered.ops if op.run]
    ready = [sum(not op.run for op in lowered.ops[:lowered.ops.index(op)]) for op in single]
    for count in range(1, len(single) + 1):
        for cuts in itertools.combinations(range(1, len(single)), count - 1):
            groups = [range(a, b) for a, b in zip((0, *cuts), (*cuts, len(single)))]
            for places in itertools.product(*(range(ready[group[-1]], len(rest) + 1) for group in groups)):
                ops = list(rest)
                for group, place in sorted(zip(groups, places), key=lambda pair: -pair[1]):
                    ops.insert(place, lowering.Op("", "", [s for i in group for s in single[i].inputs], []))
                if most_alive(lowered, ops) <= most:
                    return count
    return None


def updates_wait_for_each_other_where_that_takes_no_bytes():
    fewer = 0
    for seed in range(80):
        workspaces = seed % 2 == 1
        lowered = step_with_updates(random.Random(seed), workspaces)
        before, ops = most_alive(lowered, lowered.ops), lowered.ops
        fewest = 0 if workspaces else fewest_updates(lowered, before)
        order = [p for op in ops if op.run for p in op.run.parameters]
        left = merging.merge(lowered, 64)
        assert left == [op for op in lowered.ops if op.run] and most_alive(lowered, lowered.ops) == before
        assert [op for op in lowered.ops if not op.run] == [op for op in ops if not op.run]
        assert list(map(id, order)) == [id(p) for op in left for p in op.run.parameters]
        for op in left:  # behind what makes its gradients, which it reads
            made = [s for one in lowered.ops[:lowered.ops.index(op)] for s in one.outputs]
            assert {s for s in op.inputs if lowered.storages[s].kind == "gradient"} <= set(made) and len(op.inputs) == 2 * len(op.run.parameters)
        assert workspaces or len(left) == fewest, (seed, len(left), fewest)
        fewer += len(left) < len(order)
    assert fewer > 20, fewer
    with mock.patch.object(merging, "MERGED", 1):
        lowered = step_with_updates(random.Random(3), False)
        ops = list(lowered.ops)
        assert merging.merge(lowered, 64) and lowered.ops == ops


def steps_of_few_updates_take_no_more_bytes():
    for name in ("small_gpt", "small_resnet"):
        few = compare(name, 5, effort=20)
        with mock.patch.object(merging, "MERGED", 0):
            many = compare(name, 5, effort=20)
        counts = [sum(isinstance(op.run, updates.Update) for op in step._first.lowered.ops) for step in (few, many)]
        assert counts[0] <= counts[1] / 2 and few.plan.footprint == many.plan.footprint, (counts, few.plan, many.plan)


def every_optimizer_goes_on_as_ever():
    optimizers = [lambda p: torch.optim.SGD(p, lr=0.1), lambda p: torch.optim.AdamW(p, lr=0.01),
                  lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9, weight_decay=1e-3),
                  torch.optim.Adagrad, torch.optim.NAdam, torch.optim.Rprop, torch.optim.ASGD,
                  lambda p: torch.optim.RMSprop(p, foreach=True)]
    for optimizer in optimizers:
        compare("small_gpt", 4, optimizer)


def small_pair(optimizer=adam, **options):
    """Two equal networks with optimizers and schedules; the second one is planned."""
    found = []
    for _ in range(2):
        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(20, 50), torch.nn.ReLU(), torch.nn.Dropout(0.2),
                                    torch.nn.Linear(50, 3))
        opt = optimizer(model.parameters())
        found.append((model, opt, torch.optim.lr_scheduler.StepLR(opt, 3, 0.5)))
    batch = (torch.randn(8, 20), torch.randint(0, 3, (8,)))
    return found[0], found[1], tarn.torch.step(found[1][0], found[1][1], loss_of, batch, **options)


def misspelt_options_are_errors():
    """And no reason to run eagerly."""
    model = torch.nn.Linear(4, 3)
    arguments = (model, adam(model.parameters()), loss_of, (torch.randn(2, 4), torch.randint(0, 3, (2,))))
    for wrong, word in (({"reordr": True}, "reordr"), ({"reorder": True, "budgets": 0.5}, "budgets"), ({"method": "lowset"}, "lowset"),
                        ({"offload": {"rat": "50GB/s"}}, "rat")):
        error = raises(tarn.UsageError, tarn.torch.step, *arguments, **wrong)
        assert repr(word) in str(error) or f'"{word}"' in str(error) or f" {word} " in str(error), error


def schedules_states_shapes_and_clipping_are_the_users():
    def clip(parameters):
        torch.nn.utils.clip_grad_norm_(parameters, 0.5)

    (one, eager, plan1), (two, planned, plan2), step = small_pair(clip=clip)
    source = torch.Generator().manual_seed(3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(12):
            count = 8 if i % 3 else 13
            batch = (torch.randn(count, 20, generator=source),
                     torch.randint(0, 3, (count,), generator=source))
            if i == 6:  # as from a checkpoint
                eager.load_state_dict(copy.deepcopy(eager.state_dict()))
                planned.load_state_dict(copy.deepcopy(planned.state_dict()))
            if i == 8:  # elsewhere
                for p in two.parameters():
                    p.data = p.data.clone()
            torch.manual_seed(i)
            expected = eager_step(one, eager, *batch, clip=clip)
            torch.manual_seed(i)
            assert torch.equal(step(*batch), expected), i
            assert same(tensors_of(two, planned), tensors_of(one, eager)), i
            plan1.step()
            plan2.step()
    assert step.reason is None and len(step.variants) == 2
    two.eval(), one.eval()
    torch.manual_seed(1)
    assert torch.equal(step(*batch), eager_step(one, eager, *batch, clip=clip))


def what_cannot_be_captured_runs_eagerly_and_says_why():
    def depends_on_data(model, *batch):
        loss = loss_of(model, *batch)
        return loss * 2 if loss.item() > 1 else loss

    (one, eager, _), (two, planned, _), _ = small_pair()
    batch = (torch.randn(8, 20), torch.randint(0, 3, (8,)))
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        step = tarn.torch.step(two, planned, depends_on_data, batch)
    assert "Could not guard" in str(told[0].message) and "eagerly" in str(told[0].message)
    assert told[0].filename == __file__  # the line of the caller
    torch.manual_seed(1)
    expected = depends_on_data(one, *batch)
    expected.backward()
    eager.step()
    torch.manual_seed(1)
    assert torch.equal(step(*batch), expected) and "captured" in step.reason
    assert step.graph is None and "captured" in str(step.report())
    assert same(list(one.parameters()), list(two.parameters()))
    if hasattr(batch[0], "grad_dtype"):
        (_, _, _), (two, planned, _), _ = small_pair()
        next(two.parameters()).grad_dtype = torch.bfloat16
        step = tarn.torch.step(two, planned, loss_of, batch)
        assert "grad_dtype of its own" in step.reason, step.reason


def an_older_pytorch_is_told_plainly():
    with mock.patch.object(torch, "__version__", TorchVersion("2.8.1")):
        error = raises(ImportError, lambda: tarn.torch.step)
        assert str(error) == "tarn.torch needs PyTorch 2.9 or later, and this is 2.8.1"
        assert tarn.torch.snapshot.load
    for version in ("2.9.0.dev20250801+cpu", "2.9.0a0+of.a.distributor"):
        with mock.patch.object(torch, "__version__", TorchVersion(version)):
            assert tarn.torch.step


def shapes_keep_no_copies_of_states():
    """Each is profiled and compared with a copy of the optimizer's."""
    model = torch.nn.Linear(61, 67)
    optimizer = adam(model.parameters())

    def live():
        gc.collect()
        tensors = [o for o in gc.get_objects() if type(o) in (torch.Tensor, torch.nn.Parameter) and o.shape == (67, 61)]
        return len({t.untyped_storage().data_ptr() for t in tensors if t.device.type == "cpu"})

    step = tarn.torch.step(model, optimizer, lambda model, x: model(x).square().sum(), (torch.randn(4, 61),))
    for _ in range(4):
        step(torch.randn(4, 61))
    before = live()
    for rows in range(5, 9):
        step(torch.randn(rows, 61))
    assert step.reason is None and len(step.variants) == 5 and live() == before, (before, live())


def making_a_step_and_its_report_changes_nothing():
    model, batch = make("small_resnet")
    optimizer = adam(model.parameters())
    before = [t.clone() for t in tensors_of(model, optimizer)]
    random = torch.get_rng_state()
    example = batch()
    torch.set_rng_state(random)
    step = tarn.torch.step(model, optimizer, loss_of, example)
    step.report()
    assert same(tensors_of(model, optimizer), before) and not any(optimizer.state.values())
    assert torch.equal(torch.get_rng_state(), random)
    assert all(p.grad is None for p in model.parameters())


def reshapes_of_what_does_not_lie_as_pytorch_says_are_planned():
    """On the CPU batch norm and the gradients of losses are contiguous whatever they are made of, and not as PyTorch traces them."""
    class Turned(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.norm, self.down = torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 6)

        def forward(self, x):
            y = self.norm(self.up(x).transpose(1, 2)).transpose(1, 2)
            return self.down(y.reshape(-1, 8)).view(len(x), 5, 6).transpose(1, 2)

    def loss(model, x):
        return torch.nn.functional.mse_loss(model(x), x[..., :6].transpose(1, 2))

    for options in ({}, {"compare": "sample"}):
        one = Turned()
        two = copy.deepcopy(one)
        eager, planned = adam(one.parameters()), adam(two.parameters())
        step = tarn.torch.step(two, planned, loss, (torch.randn(4, 5, 8),), **options)
        for _ in range(4):
            x = torch.randn(4, 5, 8)
            expected = loss(one, x)
            expected.backward()
            eager.step()
            eager.zero_grad()
            assert torch.equal(step(x), expected) and step.reason is None, step.reason
        assert step.strides and same(tensors_of(one, eager), tensors_of(two, planned))


def a_captured_graph_is_one_for_the_command_line():
    step = compare("small_gpt", 2)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "step.json.gz")
        step.graph.save(path)
        graph = tarn.Graph.load(path)
    plan = tarn.plan(graph, alignment=64)
    assert plan.footprint == step.plan.footprint
    with tarn.Session(plan) as session:
        assert session.check(2)["bytes_read"] > 0
    kinds = {t.kind for t in graph.tensors}
    assert {"parameter", "optimizer_state", "input", "gradient", "output"} <= kinds
    raises(tarn.DoesNotFit, compare, "small_gpt", 1, budget=1000)


def results_may_be_kept():
    _, _, step = small_pair()
    batch = (torch.randn(8, 20), torch.randint(0, 3, (8,)))
    losses = [step(*batch) for _ in range(3)]
    assert len({loss.item() for loss in losses}) == 3


# ---- Allocator ----

def marked_iterations_are_served_and_bit_equal():
    for name in ("small_gpt", "small_resnet"):
        (one, batch), (two, _) = make(name), make(name)
        eager, planned = adam(one.parameters()), adam(two.parameters())
        data = [batch() for _ in range(20)]
        torch.manual_seed(2)
        expected = [eager_step(one, eager, *b) for b in data]
        torch.manual_seed(2)
        found, memory = [], tarn.torch.allocator.Allocator()
        for b in data:
            with memory.iteration():
                loss = eager_step(two, planned, *b).clone()
            found.append(loss.clone())
            del loss
        assert same(found, expected)
        assert same(tensors_of(two, planned), tensors_of(one, eager))
        report = memory.report()
        assert report["served"] >= 0.99 * 18 * (report["requests"] - 2), report
        assert report["arena"] > 0 and report["unknown"] == report["occupied"] == 0, report


def tensors_that_outlive_the_iteration_keep_their_bytes():
    memory, kept = tarn.torch.allocator.Allocator(), []
    for i in range(8):
        with memory.iteration():
            first = torch.full((1000,), float(i))
            second = first + 1
            if i < 3:
                del first  # recorded as short-lived: its bytes may be given to the third
            third = second * 2
            if i >= 3:
                kept.append((i, first))
            del second, third
    assert all(torch.equal(t, torch.full((1000,), float(i))) for i, t in kept)
    assert memory.report()["occupied"] > 0, memory.report()


def other_requests_come_from_the_heap_and_are_counted():
    memory = tarn.torch.allocator.Allocator()
    for size in (100, 100, 100, 777, 777, 777, 777):
        with memory.iteration():
            assert (torch.ones(size) * 2).sum() == 2 * size
    report = memory.report()
    assert report["unknown"] > 0 and report["served"] > 0, report  # served after a new recording


def bytes_that_are_kept_outlive_a_step_that_fails():
    """What an op has kept of its workspace is in nobody's way, and is no part of memory that is freed: a step has failed where
    there is no memory for another arena, or because of the op itself."""
    step_of = torch.optim.Adam.step

    def fails(optimizer):
        step_of(optimizer)
        raise RuntimeError("no memory")

    for where in (mock.patch.object(program, "Arena", side_effect=RuntimeError("no memory")), mock.patch.object(torch.optim.Adam, "step", fails)):
        model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Tanh(), torch.nn.Linear(32, 32))
        step = tarn.torch.step(model, torch.optim.Adam(model.parameters()), loss_of, (torch.randn(8, 32), torch.randn(8, 32)), compare=False)
        batches = [(torch.randn(8, 32), torch.randn(8, 32)) for _ in range(4)]
        for batch in batches:
            step(*batch)
        arena, before = step._arena, len(program.LOST)
        with updates.seen_by_updates(True) as seen, where:
            raises(RuntimeError, step, *batches[0])
        assert len(program.LOST) == before + 1 and program.LOST[-1] is arena
        kept = {key: value.clone() for key, value in seen.items()}
        assert any(arena.base <= value.data_ptr() < arena.base + arena.size for value in seen.values())
        model.zero_grad()
        for batch in batches:
            step(*batch)
        assert step.reason is None and step._arena is not arena and all(torch.equal(kept[key], value) for key, value in seen.items())
        del step
        gc.collect()
        seen.clear()


def arenas_stay_few_whatever_is_kept():
    from tarn.torch.memory import allocator
    gc.collect()
    memory, kept, before = tarn.torch.allocator.Allocator(), [], allocator().tarn_tape_arenas()
    for i in range(200):  # twice as large in the end
        size = 1000 + 10 * i
        for j in range(4):
            with memory.iteration():
                first = torch.full((size,), float(i))
                second = first + j
                if j == 3:
                    kept.append((first, second[:1].clone()))
                third = second * 2
                del first, second, third
    arenas = allocator().tarn_tape_arenas() - before
    assert arenas <= 4 and memory.report()["served"] > 1000, (arenas, memory.report())
    assert all((first == i).all() and second == i + 3 for i, (first, second) in enumerate(kept))
    del memory
    gc.collect()
    assert allocator().tarn_tape_arenas() > before  # of tensors that are kept
    del kept
    gc.collect()
    assert allocator().tarn_tape_arenas() == before


def iterations_of_other_threads_and_nested_ones_are_left_alone():
    pairs = []
    for _ in range(4):
        torch.manual_seed(1)
        model = torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.GELU(), torch.nn.Linear(64, 3))
        pairs.append((model, adam(model.parameters())))
    data = [(torch.randn(16, 20), torch.randint(0, 3, (16,))) for _ in range(100)]
    expected, found = [eager_step(*pairs[3], *b) for b in data], {}
    memories = [tarn.torch.allocator.Allocator() for _ in range(3)]

    def train(i):
        found[i] = []
        for b in data:
            with memories[i].iteration(), memories[i].iteration():
                found[i].append(eager_step(*pairs[i], *b))

    threads = [threading.Thread(target=train, args=(i,)) for i in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(same(found[i], expected) for i in range(3))
    reports = [memory.report() for memory in memories]
    assert sum(r["served"] for r in reports) > 0 and all(r["skipped"] >= 100 for r in reports), reports


def loops_in_turn_keep_their_plans():
    memories = [tarn.torch.allocator.Allocator() for _ in range(2)]
    for _ in range(10):
        for size, memory in zip((100, 999), memories):
            with memory.iteration():
                assert (torch.ones(size) * 2).sum() == 2 * size
    reports = [memory.report() for memory in memories]
    assert all(r["served"] == 8 * r["requests"] and not r["unknown"] for r in reports), reports
    before = tarn.torch.allocator.report()
    for _ in range(10):
        with tarn.torch.iteration():
            assert (torch.ones(100) * 2).sum() == 200
        with tarn.torch.iteration():
            assert (torch.ones(999) * 3).sum() == 2997
    served, unknown = (tarn.torch.allocator.report()[name] - before[name]
                       for name in ("served", "unknown"))
    assert served == 2 * reports[0]["served"] and unknown == 0, (served, unknown)


def what_cannot_be_planned_comes_from_the_heap():
    make_one = tarn.torch.allocator.Allocator
    assert "'nonsense'" in str(raises(tarn.UsageError, make_one, nonsense=1))
    assert "'reorder'" in str(raises(tarn.UsageError, make_one, reorder=True))
    assert "'meta'" in str(raises(tarn.UsageError, make_one, device="meta"))
    memory = make_one(device="cpu:0", capacity=1)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(8):
            with memory.iteration():
                assert (torch.ones(100) * 2).sum() == 200
    assert len(told) == 3 and "no plan fits 1 byte," in str(told[0].message), told
    assert memory.report()["served"] == 0 and memory.report()["skipped"] == 5, memory.report()


def the_allocator_for_cuda_compiles_and_is_taken():
    if torch.version.cuda is None:
        return
    from tarn.torch import memory
    functions = memory.library("cuda")[1]
    streams = [functions.tarn_cuda_stream(address) for address in (8, 16, 8)]
    assert streams[0] == streams[2] != streams[1]
    functions.tarn_cuda_install.restype = ctypes.c_char_p
    assert functions.tarn_cuda_install() is None


def batches_do_not_outlive_their_steps():
    for name, options in (("small_gpt", {}), ("small_gpt", {"streams": 2}), ("small_resnet", {"budget": 0.9})):
        model, batch = make(name)
        step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), **options)
        for number in range(4):
            own = batch()
            seen = [weakref.ref(t) for t in own]
            step(*own)
            del own
            gc.collect()
            assert number < 3 or step.reason is None and not any(s() is not None for s in seen), (name, options, step.reason)


# ---- Several ranks ----

def clip_norm(parameters):
    torch.nn.utils.clip_grad_norm_(parameters, 0.1)  # of the means over all ranks


def asking_the_host(model, *batch):
    loss = loss_of(model, *batch)
    return loss if loss.item() < 1e9 else 2 * loss


def rank(number, port):
    """One of two ranks, compared with DistributedDataParallel."""
    import torch.distributed as dist
    from torch.nn.parallel import DistributedDataParallel
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=port)
    dist.init_process_group("gloo", rank=number, world_size=2)
    for name, clip, loss in (("small_gpt", clip_norm, loss_of), ("small_resnet", None, loss_of),
                             ("small_resnet", clip_norm, asking_the_host)):
        (one, batch), (two, _) = make(name), make(name)
        eager, planned = adam(one.parameters()), adam(two.parameters())
        theirs = DistributedDataParallel(one)
        torch.manual_seed(100 + number)
        data = [batch() for _ in range(10)]
        if number == 1:  # shapes may differ from rank to rank
            data[5], data[8] = ([t[:-1] for t in data[i]] for i in (5, 8))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step = tarn.torch.ddp(two, planned, loss, data[0], bucket_mb=0.05, reorder=True,
                                  couple=True, clip=clip)
        torch.manual_seed(number)
        expected = [eager_step(theirs, eager, *b, clip=clip) for b in data]
        torch.manual_seed(number)
        assert same([step(*b) for b in data], expected)
        assert same(tensors_of(two, planned), tensors_of(one, eager))
        assert (step.reason is None) == (loss is loss_of), step.reason
        if loss is not loss_of:
            assert "data-dependent" in step.reason and step.graph is None, step.reason
            continue
        reductions = [op for op in step.graph.ops if op.kind == "comm.all_reduce"]
        assert len(reductions) == len(step.graph.groups) > 1
        for index, group in enumerate(step.graph.groups):
            sizes = sum(step.graph.tensors[t].size for t in group)
            assert step.plan.group(index)[1] == sizes
    other = torch.nn.Linear(3, 3 + number)
    raises(tarn.Rejected, tarn.torch.ddp, other, adam(other.parameters()), loss_of, torch.ones(3))
    raises(ValueError, tarn.torch.ddp, other, adam(other.parameters()), loss_of, torch.ones(3), seconds=1)
    hooks_that_communicate(dist, number)
    dist.destroy_process_group()


def hooks_that_communicate(dist, number):
    """Beside reductions they would use one process group in two threads: such steps run eagerly, and without other
    ranks that agree, too; a hook that begins to communicate later ends the step."""
    def add(parameter):
        dist.all_reduce(parameter.grad)

    def late(_parameter):
        if armed:
            dist.barrier()

    for make_step, hook, word in ((tarn.torch.ddp, add, "allreduce_) beside the reductions of tarn.torch.ddp"),
                                  (tarn.torch.step, add, "pass process_group="), (tarn.torch.ddp, late, None)):
        one, batch = make("small_resnet")
        armed = []
        two = copy.deepcopy(one)
        for parameter in [*one.parameters(), *two.parameters()]:
            parameter.register_post_accumulate_grad_hook(hook)
        eager, planned = adam(one.parameters()), adam(two.parameters())
        torch.manual_seed(100 + number)
        data = [batch() for _ in range(8)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step = make_step(two, planned, loss_of, data[0], **{"bucket_mb": 0.05} if make_step is tarn.torch.ddp else {})

        def mean(parameters):
            for parameter in parameters if make_step is tarn.torch.ddp else ():  # pylint: disable=cell-var-from-loop
                dist.all_reduce(parameter.grad.div_(2))

        for b in data:
            for buffer in one.buffers() if make_step is tarn.torch.ddp else ():
                dist.broadcast(buffer, 0)
            assert torch.equal(step(*b), eager_step(one, eager, *b, clip=mean)), step.reason
            assert same(tensors_of(two, planned), tensors_of(one, eager)), step.reason
        assert (step.reason is None) == (word is None) and (word or "") in (step.reason or ""), step.reason
    armed.append(True)
    assert "barrier" in str(raises(ValueError, step, *data[0]))


def two_ranks_are_bit_equal_with_distributed_data_parallel():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    ranks = [subprocess.Popen([sys.executable, __file__, str(SOURCE), "rank", str(i), port],
                              stderr=subprocess.PIPE, text=True) for i in range(2)]
    errors = [process.communicate(timeout=600)[1] for process in ranks]
    assert not any(process.returncode for process in ranks), "\n".join(errors)


# ---- ExecuTorch ----

def exported_programs_run_and_give_the_same():
    from executorch.exir import ExecutorchBackendConfig, to_edge
    from executorch.exir.memory_planning import MemoryPlanningAlgorithmSuite, greedy
    from executorch.exir.passes.memory_planning_pass import MemoryPlanningPass
    from executorch.runtime import Runtime
    from tarn.executorch import planner
    for name in ("MLP", "tiny GoogLeNet", "tiny GPT"):
        model, inputs = make_exported(name)
        with torch.no_grad():
            expected = model(*inputs)
            edge = to_edge(torch.export.export(model, inputs, strict=False))
        sizes, outputs = [], []
        for algorithm in (greedy, planner):
            suite = MemoryPlanningAlgorithmSuite([algorithm])
            program = copy.deepcopy(edge).to_executorch(ExecutorchBackendConfig(
                memory_planning_pass=MemoryPlanningPass(memory_planning_algo=suite, alignment=16)))
            sizes.append(program.executorch_program.execution_plan[0].non_const_buffer_sizes)
            method = Runtime.get().load_program(program.buffer).load_method("forward")
            outputs.append(method.execute([*inputs])[0].clone())
        assert torch.equal(*outputs) and torch.allclose(outputs[1], expected, atol=1e-4)
        assert sum(sizes[1]) <= sum(sizes[0]) and len(sizes[0]) == len(sizes[1]), (name, sizes)


def memories_and_shared_storages_are_kept_apart():
    from executorch.exir.tensor import TensorSpec
    from tarn.executorch import planner
    module = torch.fx.GraphModule({}, torch.fx.Graph())
    module.input_mem_buffer_sizes = [0, 64]

    def spec(count, first, last, space=None, base=None, offset=0):
        made = TensorSpec(torch.uint8, [count])
        made.lifetime, made.mem_id = [first, last], space
        made.storage_base, made.storage_base_offset = base, offset
        return made

    whole = spec(256, 0, 1)
    specs = [whole, spec(128, 4, 5, base=whole, offset=128), spec(256, 2, 3), spec(64, 6, 7),
             spec(100, 0, 9, space=3), spec(0, 1, 2)]
    result = planner(16, specs, module, None, 32)
    places = [result.spec_dict[s] for s in specs]
    assert result.bufsizes == [0, 64 + 512 + 32, 0, 112 + 32], result.bufsizes
    assert places[1].mem_offset == places[0].mem_offset + 128
    assert abs(places[2].mem_offset - places[0].mem_offset) == 256  # lives inside the whole's life
    assert places[4].mem_id == 3 and places[4].mem_offset == 0
    assert all(place.mem_offset >= 64 for place in places[:4])


# ---- Documents ----

def executorch_edge(model, inputs):
    from executorch.exir import to_edge
    return to_edge(torch.export.export(model, inputs, strict=False))


def what_the_documents_show_works():
    """All blocks of code (indented lines after an empty one: others are text of a list), one after the other, beside a program to export and a
    memory snapshot."""
    model, inputs = make_exported("tiny GPT")
    with torch.no_grad():
        edge = executorch_edge(model, inputs)
    for document, heading in (("README.md", "### In PyTorch\n"), ("docs/pytorch.md", "# PyTorch\n")):
        section = (SOURCE / document).read_text().split(heading)[1].split("\n## Layout")[0]
        names, told = {"edge": edge}, io.StringIO()
        torch.manual_seed(0)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder), contextlib.redirect_stdout(told):
            entry = {"action": "alloc", "addr": 4096, "size": 512, "stream": 0, "frames": []}
            Path("snapshot.pickle").write_bytes(pickle.dumps({"segments": [], "device_traces": [[entry]]}))
            for block in re.findall(r"(?<=\n\n)(?:    .*\n|\n(?=    ))+", section):
                block = textwrap.dedent(block).strip("\n").removeprefix("$ python\n")
                if not block.startswith("$") and not re.search("transformers|accelerator", block):  # those have tests of their own
                    exec(block, names)  # pylint: disable=exec-used
            assert document == "README.md" or names["program"].executorch_program and Path("snapshot.json.gz").exists()
        assert "arena" in told.getvalue(), document


def the_commands_of_the_documents_run():
    """Those of the tables, on the smallest network of each."""
    commands = re.findall(r"^    \$ TARN_LIBRARY=\S+ (.*tables\.py (\w+))$", (SOURCE / "docs/pytorch.md").read_text(), re.MULTILINE)
    assert [what for _, what in commands] == ["steps", "exported"], commands
    for command, what in commands:
        network = {"steps": "small_resnet", "exported": "tiny GPT"}[what]
        done = subprocess.run([*command.split(), network], cwd=SOURCE, capture_output=True, text=True, check=False)
        assert done.returncode == 0 and f"| {network} |" in done.stdout and "NO" not in done.stdout, (done.stdout, done.stderr[-2000:])


NEEDS_EXECUTORCH = ("exported_programs_run_and_give_the_same", "memories_and_shared_storages_are_kept_apart",
                    "what_the_documents_show_works", "the_commands_of_the_documents_run")
TESTS = [value for name, value in list(vars().items())
         if not (OLDER and name in NEEDS_EXECUTORCH) and getattr(value, "__module__", None) == "__main__" and callable(value)
         and name not in ("adam", "sgd", "moving", "poisoned", "executorch_edge", "eager_step", "tensors_of", "same", "compare", "small_pair",
                          "most_alive", "step_with_updates", "fewest_updates", "rank", "hooks_that_communicate", "clip_norm", "asking_the_host", "least", "eager_peak", "packed",
                          "garbage_instead_of")]

if __name__ == "__main__":
    only = [a for a in sys.argv[2:] if a != "-v"]
    if "rank" in sys.argv:
        rank(int(sys.argv[3]), sys.argv[4])
    else:
        gc.collect()
        run([test for test in TESTS if not only or test.__name__ in only])
