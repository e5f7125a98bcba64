"""tarn.torch.step where tensors lie elsewhere than before, where something fails in the middle, and where optimizers are
not PyTorch's own. As scripts_test.py, with the same comparison. TAP on stdout.

    tests/with_torch.sh tests/python/torch/faults_test.py [NAMES...]"""
import contextvars
import dataclasses
import gc
import itertools
import sys
import warnings

import torch
import torch.nn.functional as F
from cases import raises, run
from networks import OLDER
from odd_ops import KEPT, Custom, keeping, reserving
from scripts_test import STEPS, compare, loss_of, mlp, rows
from torch import nn

import tarn
import tarn.torch


@dataclasses.dataclass
class Batch:  # no pytree: what is in it is read as any tensor of the program
    x: torch.Tensor
    y: torch.Tensor


def of_batch(model, batch):
    return loss_of(model, batch.x, batch.y)


def with_parts(model, x, y, *, parts):
    first, second = parts[0]
    return loss_of(model, x, y) * first.sum() - second.mean()


def parts_of_tensors_are_found_where_they_lie():
    data, labels, numbers = torch.randn(64, 20), torch.randint(0, 3, (64,)), itertools.count()

    def sliced():
        at = 8 * (next(numbers) % 7)
        return (Batch(data[at:at + 8], labels[at:at + 8]),)

    compare(1, loss=of_batch, batch=sliced)
    table, parts = torch.rand(40) + 1, [None]

    def chunks(_script, i):
        parts[0] = table[:20].chunk(2) if i % 2 else table[20:].chunk(2)

    def loss(model, x, y):
        return with_parts(model, x, y, parts=parts)

    chunks(None, 0)
    compare(1, loss=loss, before=chunks)

    def turned(_script, i):
        parts[0] = table.chunk(2)[::1 if i % 2 else -1]

    turned(None, 0)
    compare(2, loss=loss, before=turned)


def batches_may_be_views_of_one_tensor():
    def tokens():
        both = torch.randint(0, 50, (8, 9))
        return both[:, :-1], both[:, 1:]

    compare(1, batch=tokens, model=lambda: nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50)),
            loss=lambda model, x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))


class Rows(nn.Module):
    """Counts in a row of a table, which is another one at each step."""

    def __init__(self):
        super().__init__()
        self.body, self.table = mlp(), torch.zeros(STEPS, 3)
        self.register_buffer("row", self.table[0])

    def forward(self, x):
        y = self.body(x)
        self.row += y.detach().mean(0)
        return y + self.row


def rows_that_are_written_to_may_change():
    def other_row(script, i):
        script.model.row = script.model.table[i]

    compare(1, model=Rows, before=other_row, extra=lambda script: [script.model.table])


def constants_of_the_loss_are_no_inputs():
    compare(1, loss=lambda model, x, y: F.cross_entropy(model((x - torch.tensor([0.5])) / torch.tensor([2.0])), y,
                                                        torch.tensor([1.0, 2.0, 3.0])))
    compare(1, loss=lambda model, x, y: loss_of(model, x[[0, 1, 2]], y[[0, 1, 2]]))


def norms_whose_input_needs_no_gradient_are_planned():
    compare(1, model=lambda: nn.Sequential(nn.BatchNorm1d(20), mlp()))


def a_step_goes_on_after_an_error():
    def train(make_step, streams):
        torch.manual_seed(0)
        model = mlp()
        optimizer = torch.optim.Adam(model.parameters())
        step = make_step(model, optimizer, loss_of, rows(), **streams)
        for i in range(8):
            torch.manual_seed(i)
            x, y = rows()
            if i in (1, 5):
                y[3] = 99
                raises(IndexError, step, x, y)
                optimizer.zero_grad()
            else:
                step(x, y)
        assert getattr(step, "reason", None) is None, step.reason
        return [p.detach().clone() for p in model.parameters()]

    def eager(model, optimizer, loss, _batch):
        def step(*batch):
            loss(model, *batch).backward()
            optimizer.step()
            optimizer.zero_grad()
        return step

    expected = train(eager, {})
    for streams in ({}, {"streams": 2}):
        assert all(map(torch.equal, expected, train(tarn.torch.step, streams))), streams


def hyperparameters_may_ask_for_more_state():
    def momentum(script, i):
        script.optimizer.param_groups[0]["momentum"] = 0.9 if i > 3 else 0.0

    compare(1, optimizer=lambda p, lr: torch.optim.SGD(p, lr, weight_decay=0.1), before=momentum)


def clipping_may_leave_parameters_out():
    def clip(parameters):
        for parameter in parameters[::2]:
            if parameter.grad.sum() > 0:
                parameter.grad = None

    compare(1, clip=clip)


def a_share_of_a_budget_is_that_of_the_first_batch():
    model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.GELU()) for _ in range(6)), nn.Linear(64, 3))
    step = tarn.torch.step(model, torch.optim.SGD(model.parameters(), 0.1), loss_of,
                           (torch.randn(512, 64), torch.randint(0, 3, (512,))), budget=0.75)
    most = step.plan.footprint
    for count in (512, 3, 512):
        step(torch.randn(count, 64), torch.randint(0, 3, (count,)))
    assert step.reason is None and len(step.variants) == 2
    assert all(variant.plan.footprint <= most for variant in step.variants.values())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        step(torch.randn(4096, 64), torch.randint(0, 3, (4096,)))
    assert "DoesNotFit" in step.reason and "DoesNotFit" in str(told[-1].message)


class Averaging(torch.optim.SGD):
    """Keeps lists, an inner optimizer and a number of its own in its groups."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, lr)
        self.inner = torch.optim.Adam(self.param_groups[0]["params"], lr / 10)
        self.averages = [p.detach().clone() for p in self.param_groups[0]["params"]]
        self.log = []

    @torch.no_grad()
    def step(self, closure=None):
        self.param_groups[0]["count"] = self.param_groups[0].get("count", 0) + 1
        self.inner.step()
        super().step()
        for average, parameter in zip(self.averages, self.param_groups[0]["params"]):
            average.lerp_(parameter, 1 / self.param_groups[0]["count"])
        self.log.append(len(self.log))


def other_optimizers_keep_what_is_theirs():
    compare(1, optimizer=Averaging, extra=lambda script: [*script.optimizer.averages, torch.tensor(script.optimizer.log)])


def steps_replaced_on_an_optimizer_are_called():
    def replace(script):
        own, script.calls = script.optimizer.step, 0

        def step():
            script.calls += 1
            own()
            with torch.no_grad():
                script.model[0].weight.mul_(0.9)

        script.optimizer.step = step

    compare(1, prepare=replace)


def what_optimizers_keep_later_is_theirs():
    def keeping(script):
        script.others["kept"], calls = [], itertools.count()

        def keep(*_):
            if next(calls) % 3 == 2:
                script.others["kept"].append(script.model[0].weight.detach().clone())

        script.optimizer.register_step_post_hook(keep)

    compare(1, prepare=keeping)
    left = itertools.count()

    def clip(parameters):
        if next(left) % 5:
            parameters[0].grad = None

    model = mlp()
    step = tarn.torch.step(model, torch.optim.Adam(model.parameters(), foreach=True), loss_of, rows(), clip=clip)
    for _ in range(16):
        step(*rows())
    assert step.reason is None


def hooks_of_all_modules_are_called():
    handles = []

    def before(_script, i):
        if i == 3:
            handles.append(nn.modules.module.register_module_forward_hook(lambda module, _input, output: output * 1.5))

    def end(_script, i):
        if i == STEPS - 1:
            handles.pop().remove()

    compare(1, "hooks for all modules", before=before, after=end)


def a_deleted_step_gives_its_memory_back():
    memory = tarn.torch.install("cpu")
    for options in ({}, {"streams": 2}):
        model = mlp()
        step = tarn.torch.step(model, torch.optim.SGD(model.parameters(), 0.1), loss_of, rows(), **options)
        for _ in range(4):
            step(*rows())
        gc.collect()
        gc.disable()
        before, size = memory.tarn_live(), step.plan.footprint
        del step
        assert memory.tarn_live() <= before - size, options
        gc.enable()


def ops_that_do_what_they_are_not_traced_to_do_are_bit_equal():
    def squares(model, x, y):
        return model(x).square().mean() + 0 * y.sum()

    def wide():
        return torch.randn(8, 32), torch.randn(8, 32)

    compare(1, model=lambda: Custom(reserving), loss=squares, batch=wide)
    compare(1, model=lambda: Custom(keeping), loss=squares, batch=wide)
    compare(1, model=lambda: Custom(keeping), loss=squares, batch=wide, before=lambda script, i: i % 2 or KEPT.clear())


def what_changes_without_a_guard_is_found():
    def counting():
        number = 0
        while True:
            number += 1
            yield float(number)

    def anew(script):
        script.model.numbers = counting()

    compare(*(0, "generator") if OLDER else (1, "different bits"), loss=lambda model, x, y: loss_of(model, x, y) * next(model.numbers), prepare=anew)


def a_step_leaves_nothing_behind():
    model = mlp()
    step = tarn.torch.step(model, torch.optim.SGD(model.parameters(), 0.1), loss_of, rows())
    for _ in range(4):
        step(*rows())
    before = len(contextvars.copy_context())
    for _ in range(20):
        step(*rows())
    assert len(contextvars.copy_context()) == before


TESTS = [ops_that_do_what_they_are_not_traced_to_do_are_bit_equal, parts_of_tensors_are_found_where_they_lie, batches_may_be_views_of_one_tensor, rows_that_are_written_to_may_change,
         constants_of_the_loss_are_no_inputs, norms_whose_input_needs_no_gradient_are_planned, a_step_goes_on_after_an_error,
         hyperparameters_may_ask_for_more_state, clipping_may_leave_parameters_out,
         a_share_of_a_budget_is_that_of_the_first_batch, other_optimizers_keep_what_is_theirs,
         steps_replaced_on_an_optimizer_are_called, what_optimizers_keep_later_is_theirs, hooks_of_all_modules_are_called,
         a_deleted_step_gives_its_memory_back, what_changes_without_a_guard_is_found, a_step_leaves_nothing_behind]

if __name__ == "__main__":
    run([test for test in TESTS if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]])
