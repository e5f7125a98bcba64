"""One rank of ddp_test.py: steps of tarn.torch.ddp against DistributedDataParallel, and ranks that differ, fail, hang or are gone.

    ddp_ranks.py RANK WORLD STORE CASES..."""
import contextlib
import copy
import os
import time

import torch
import torch.distributed as dist
from networks import eager_step, loss_of
from sharding_ranks import Failing, adam, left, main, parts, same
from torch import nn
from torch.nn.parallel import DistributedDataParallel

import tarn
import tarn.torch

LAST = "all_reduce"


def network():
    torch.manual_seed(0)
    return (nn.Sequential(nn.Linear(12, 40), nn.BatchNorm1d(40), nn.GELU(), nn.Linear(40, 40), nn.GELU(), nn.Linear(40, 5)),
            lambda rows=8: (torch.randn(rows, 12), torch.randint(0, 5, (rows,))))


def untraced(model, *batch):
    """A loss that is not captured."""
    loss = loss_of(model, *batch)
    return loss if loss.item() < 1e9 else 2 * loss


class Pair:
    """A step of tarn.torch.ddp, and what does the same eagerly: DistributedDataParallel on two ranks; on more its sums are
    others, because its buckets are, and an eager step of tarn.torch.ddp is what to compare with."""

    def __init__(self, loss=loss_of, timeout=60, **options):
        base, self.batch = network()
        self.one, self.two = copy.deepcopy(base), copy.deepcopy(base)
        self.theirs, self.ours = adam(self.one.parameters()), adam(self.two.parameters())
        torch.manual_seed(100 + dist.get_rank())
        data = self.batch()
        if dist.get_world_size() == 2:
            model = DistributedDataParallel(self.one)
            self.eager = lambda *batch: eager_step(model, self.theirs, *batch)
        else:
            self.eager = tarn.torch.ddp(self.one, self.theirs, untraced, data, bucket_mb=0.002)
            assert "data-dependent" in self.eager.reason
        self.step = tarn.torch.ddp(self.two, self.ours, loss, data, bucket_mb=0.002, timeout=timeout, **options)

    def train(self, rows=8, planned=True):
        own = self.batch(rows)
        assert torch.equal(self.step(*own), self.eager(*own)), self.step.reason
        self.check()
        assert (self.step.reason is None) == planned, self.step.reason

    def check(self):
        assert same(parts(self.two, self.ours), parts(self.one, self.theirs)), self.step.reason


def is_first():
    return dist.get_rank() == 1


@contextlib.contextmanager
def raises(kind, *words, mine=None):
    """mine: what rank 1 raises."""
    try:
        yield
    except (mine or kind if is_first() else kind) as error:
        assert all(word in str(error) for word in words), error
    else:
        raise SystemExit(f"nothing was raised, for {words}")


def bits():
    """Also of ranks that have batches of other shapes, each with a plan of its own."""
    pair = Pair()
    for number in range(7):
        pair.train(5 if is_first() and number in (3, 5) or number == 6 else 8)
    assert len(pair.step.variants) == 2 and len(pair.step.plan.graph.groups) > 1
    report = pair.step.report()
    assert report.eager and report.arena
    pair.train()


def losses_that_raise():
    """In a step that is run eagerly for that, before anything is reduced: nothing has changed, and the ranks can go on."""
    armed = []

    def loss(model, *batch):
        if armed:
            raise Failing("no more")
        return loss_of(model, *batch)

    pair = Pair(loss)
    for _ in range(4):
        pair.train()
    for _ in range(2):
        if is_first():
            armed.append(True)
        before = parts(pair.two, pair.ours)[:6]
        with raises(tarn.Rejected, "Failing: no more" if not is_first() else "no more", "" if is_first() else "rank 1 has failed", mine=Failing):
            pair.step(*pair.batch())
        assert all(torch.equal(a, b) for a, b in zip(before, parts(pair.two, pair.ours)) if a.dim() == 2)
        for module in (pair.one, pair.two):  # statistics of the batch that was lost
            module[1].reset_running_stats()
        armed.clear()
        for _ in range(2):
            pair.train()


def too_large():
    """A batch on one rank whose plan does not fit: an eager step on all. Of the example: all raise."""
    budget = Pair(compare=False).step.plan.footprint
    pair = Pair(budget=budget)
    for number in range(6):
        large = number in (3, 4)
        pair.train(64 if is_first() and large else 8, planned=not large)
        if large:
            assert ("DoesNotFit" if is_first() else "ranks [1] run eagerly") in pair.step.reason, pair.step.reason
    base, batch = network()
    with raises(tarn.DoesNotFit):
        tarn.torch.ddp(base, adam(base.parameters()), loss_of, batch(64 if is_first() else 8), budget=budget)
    with raises(tarn.Rejected, "" if is_first() else "on rank 1", mine=tarn.UsageError):
        tarn.torch.ddp(base, adam(base.parameters()), loss_of, batch(), **{"reordr" if is_first() else "reorder": True})


def other_options():
    """Plans that differ, because rank 1 has been given something else: it is said what."""
    def made(budget=1.0, **options):
        base, batch = network()
        return tarn.torch.ddp(base, adam(base.parameters()), loss_of, batch(64), compare=False, budget=budget, **options)

    footprint = made().plan.footprint
    for fuse, option, one, other in ((False, "budget", footprint, footprint - 1000), (True, "budget", 1.0, 0.9),
                                     (False, "fuse", True, False)):
        with raises(tarn.Rejected, f"plans differ: {option} is {one} on rank 0, {other} on rank 1"):
            made(**{"fuse": fuse, option: other if is_first() else one})
    with raises(tarn.Rejected, "plans differ: clip is a function on rank 0, not given on rank 1"):
        made(**({} if is_first() else {"clip": lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 1)}))


def refused():
    """A capture, on one rank: of the example, and later."""
    pair = Pair(lambda model, *batch: (untraced if is_first() else loss_of)(model, *batch))
    for _ in range(3):
        pair.train(planned=False)
        assert "data-dependent" in pair.step.reason and ("on rank 1" in pair.step.reason) != is_first(), pair.step.reason
    armed = []
    pair = Pair(lambda model, *batch: (untraced if armed else loss_of)(model, *batch))
    for number in range(6):
        if is_first():
            armed[:] = [True] * (number == 4)
        pair.train(planned=number < 4)  # what was refused is not tried again
        assert number < 4 or ("data-dependent" if is_first() else "ranks [1] run") in pair.step.reason, pair.step.reason
    pair.train(6)  # of another kind
    assert len(pair.step.variants) == 2


def other_gradients():
    pair = Pair()
    for _ in range(3):
        pair.train()
    for parameter in pair.two[3].parameters() if is_first() else ():
        parameter.requires_grad_(False)
    with raises(tarn.Rejected, "rank 1 has none of 3.weight"):
        pair.step(*pair.batch())
    for parameter in pair.two[3].parameters():
        parameter.requires_grad_(True)
    assert pair.step(*pair.batch()).isfinite() and pair.step.reason is None


def in_a_hook(call, timeout=60):
    """What rank 1 does in the middle of its fourth step. A rank may be done with its own before that: the next one tells."""
    armed = []
    base, batch = network()
    base[0].weight.register_post_accumulate_grad_hook(lambda _parameter: call() if armed and is_first() else None)
    step = tarn.torch.ddp(base, adam(base.parameters()), loss_of, batch(), bucket_mb=0.002, timeout=timeout)
    for _ in range(4):
        step(*batch())
    assert step.reason is None, step.reason
    armed.append(True)
    begin = time.monotonic()
    try:
        for _ in range(2):
            step(*batch())
    except Exception as error:  # pylint: disable=broad-except
        return error, time.monotonic() - begin
    raise SystemExit("the step went on")


def failing():
    def fail():
        raise Failing("no more")
    error, _ = in_a_hook(fail)
    assert isinstance(error, Failing if is_first() else tarn.Rejected), repr(error)
    assert is_first() or "rank 1 has failed: Failing: no more" in str(error) and LAST in str(error), error
    left()


def hanging():
    error, _ = in_a_hook(lambda: time.sleep(12), 3)
    assert isinstance(error, tarn.Rejected), repr(error)
    if not is_first():
        assert "[1] have not come to it" in str(error) or "rank 1 waits in" in str(error) or "has failed" in str(error), error
        assert LAST in str(error), error
    left()


def dying():
    error, _ = in_a_hook(lambda: os._exit(0))
    assert isinstance(error, tarn.Rejected) and LAST in str(error), repr(error)
    assert "ranks [1] have not come to it" in str(error) or "has failed" in str(error), error
    left()


def between_steps():
    """A rank is gone between two steps."""
    pair = Pair(timeout=20)
    for _ in range(3):
        pair.train()
    if is_first():
        os._exit(0)
    with raises(tarn.Rejected):
        pair.step(*pair.batch())
    left()


CASES = {function.__name__: function for function in (
    bits, losses_that_raise, too_large, other_options, refused, other_gradients, failing, hanging, dying, between_steps)}

if __name__ == "__main__":
    main(CASES)
