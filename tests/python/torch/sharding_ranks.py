"""One rank of sharding_test.py: models of fully_shard by planned steps, compared with FSDP2 by bits.

    sharding_ranks.py WORLD STORE CASES..."""
import copy
import functools
import os
import shutil
import sys
import tempfile
import time
import warnings

import torch
import torch._inductor.compile_fx  # what a step would import when it is traced: once, before ranks.py forks
import torch.distributed as dist
import torch.nn.functional as F
from networks import Transformer, eager_step, loss_of
from ranks import IS_LONG
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint

import tarn
import tarn.torch.stepping

MIXED = MixedPrecisionPolicy(torch.bfloat16, torch.float32)


def adam(parameters):
    return torch.optim.AdamW(parameters, lr=1e-3, foreach=False)


class Odd(nn.Module):
    """Sizes that no number of ranks divides, a part that some ranks have nothing of, a parameter that is
    read twice, one that is frozen and one that is not read, and buffers."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.Linear(13, 27), nn.GELU(), nn.BatchNorm1d(27), nn.Linear(27, 13)) for _ in range(3))
        self.scale, self.unread = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(5))
        self.blocks[1][0].weight.requires_grad_(False)
        self.out = nn.Linear(13, 3)

    def forward(self, x):
        for block in self.blocks:
            x = x + self.scale * block(x)
        return self.out(F.dropout(x, 0.1))


def transformer():
    torch.manual_seed(0)
    return Transformer(51, 32, 3, 4, 8), lambda: (torch.randint(0, 51, (2, 8)), torch.randint(0, 51, (2, 8)))


def odd():
    torch.manual_seed(0)
    return Odd(), lambda: (torch.randn(6, 13), torch.randint(0, 3, (6,)))


def wrapped(model, **options):
    for block in model.blocks:
        fully_shard(block, **options)
    fully_shard(model, **options)
    return model


def parts(model, optimizer):
    states = [value for p in model.parameters() for value in optimizer.state.get(p, {}).values()]
    return [getattr(t, "_local_tensor", t).detach().clone() for t in (*model.parameters(), *model.buffers(), *states)]


def same(one, two):
    return len(one) == len(two) and all(map(torch.equal, one, two))


def clip_norm(parameters):
    torch.nn.utils.clip_grad_norm_(parameters, 0.1)


def compared(network, wrap=wrapped, optimizer=adam, steps=4, change=None, batches=None, more=(), **options):
    """Trains by FSDP2 and by planned steps. Returns the planned step and model."""
    base, batch = network()
    one = wrap(copy.deepcopy(base), **dict(more))
    two = wrap(copy.deepcopy(base), **dict(more))
    theirs, ours = optimizer(one.parameters()), optimizer(two.parameters())
    torch.manual_seed(100 + dist.get_rank())
    data = [batch() for _ in range(steps)]
    if batches:
        data = batches(data)
    step = tarn.torch.fsdp(two, ours, loss_of, data[0], **options)
    for number, own in enumerate(data):
        if change:
            for model, used in ((one, theirs), (two, ours)):
                change(model, used, number)
        torch.manual_seed(number)
        expected = eager_step(one, theirs, *own, clip=options.get("clip"))
        torch.manual_seed(number)
        loss = step(*own)
        assert torch.equal(loss, expected), f"the losses of step {number} differ: {loss}, {expected} ({step.reason})"
        assert same(parts(one, theirs), parts(two, ours)), f"step {number} differs ({step.reason})"
    return step, two, ours


def plain():
    step, model, optimizer = compared(transformer)
    assert step.reason is None and not step.report().copied, step.reason
    assert step.report().gathers == 4 and not step.report().gathered_again and step.report().received > 0
    text = str(step.report())
    assert "4 gathers, 0 of them again" in text, text
    # as before: a state_dict of DTensors, which another model of FSDP2 takes
    other = wrapped(transformer()[0])
    other.load_state_dict(model.state_dict())
    again = adam(other.parameters())
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    assert same(parts(model, optimizer), parts(other, again))
    batch = transformer()[1]()
    loss = step(*batch)
    assert torch.equal(loss, eager_step(other, again, *batch)) and same(parts(model, optimizer), parts(other, again))


def within_a_budget():
    for streams, budget in ((3, 0.65), (1, 0.65))[:None if IS_LONG else 1]:
        step, *_ = compared(transformer, budget=budget, streams=streams, effort=1, steps=3)
        report = step.report()
        assert step.reason is None and report.recomputed and step.plan.footprint <= step.budget, report
        homes = {op.stream for op in step.plan.graph.ops if op.op_class == "collective"}
        assert len(homes) == 1 and len(step.plan.graph.streams) == streams


def mixed_precision_and_clipping():
    options = {"budget": 0.8, "effort": 1} if IS_LONG else {"steps": 3}
    step, *_ = compared(transformer, more={"mp_policy": MIXED}, clip=clip_norm, **options)
    assert step.reason is None, step.reason
    if not IS_LONG:
        return
    step, *_ = compared(transformer, more={"mp_policy": MixedPrecisionPolicy(reduce_dtype=torch.float16, output_dtype=torch.float32)})
    assert step.reason is None, step.reason


class Uses(nn.Module):
    """A weight that is read several times."""

    def __init__(self):
        super().__init__()
        self.scale, self.out = nn.Parameter(torch.ones(32)), nn.Linear(32, 3)

    def forward(self, x):
        for _ in range(4):
            x = F.silu(self.scale * x)
        return self.out(x)


def alone(model, **options):
    return fully_shard(model, **options)


def several_uses():
    """The types in which gradients are summed up on a rank, and in which ranks reduce them. Nothing is run eagerly
    first: sums in other types may agree by chance in two steps."""
    bf16, half = torch.bfloat16, torch.float16
    policies = ((None, bf16), (bf16, None), (bf16, torch.float32), (bf16, half), (None, half), (half, bf16))

    def make():
        torch.manual_seed(0)
        return Uses(), lambda: (torch.randn(6, 32), torch.randint(0, 3, (6,)))

    for param, reduce in policies if IS_LONG else policies[:2]:
        policy = MixedPrecisionPolicy(param_dtype=param, reduce_dtype=reduce, output_dtype=torch.float32)
        step, *_ = compared(make, wrap=alone, steps=2, more={"mp_policy": policy}, compare=False)
        assert step.reason is None, (policy, step.reason)


def odd_sizes():
    step, *_ = compared(odd, optimizer=lambda ps: torch.optim.SGD([p for p in ps if p.requires_grad], 0.1, momentum=0.9))
    assert step.reason is None, step.reason
    step, *_ = compared(odd, optimizer=adam, clip=clip_norm, streams=1)
    assert step.reason is None, step.reason


def uneven_within_a_budget():
    """Ranks whose parts differ in size choose the same gathers, because what they plan has the same sizes."""
    kinds = ((NETWORKS["uneven"], 0.7), (odd, 0.6), (odd, 0.8))
    for model, budget in kinds if IS_LONG else kinds[:1]:
        step, *_ = compared(model, budget=budget, effort=1, steps=3)
        assert step.reason is None and step.report().gathered_again, (step.reason, budget)


def symmetric():
    """What collectives touch lies at one offset on all ranks, whose graphs differ where parts are uneven."""
    kinds = ((odd, {"streams": 2}), (transformer, {}), (transformer, {"budget": 0.8, "effort": 1}))
    for model, options in kinds if IS_LONG else kinds[:1]:
        step, *_ = compared(model, symmetric=True, steps=3, **options)
        assert step.reason is None, step.reason
        graph, window = step.plan.graph, step.window
        mine = {graph.group_symmetric(g): step.plan.group(g) for g, _ in enumerate(graph.groups) if graph.group_symmetric(g)}
        assert mine and all(window.offset <= at and at + size <= window.offset + window.size for at, size in mine.values())
        told = [None] * dist.get_world_size()
        dist.all_gather_object(told, (window, {name: at for name, (at, _) in mine.items()}, step._arena.size))
        assert all(theirs[0] == window and theirs[2] == told[0][2] for theirs in told), told
        for _, offsets, _ in told:
            assert all(told[0][1].get(name, at) == at for name, at in offsets.items()), told


def later_dimensions():
    from torch.distributed.tensor import Shard
    step, *_ = compared(transformer, more={"shard_placement_fn": lambda p: Shard(p.ndim - 1) if p.ndim == 2 and p.shape[-1] % 4 == 0 else None})
    assert step.reason is None, step.reason


def wrapped_here():
    base, batch = transformer()
    one, two = wrapped(copy.deepcopy(base)), copy.deepcopy(base)
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    step = tarn.torch.fsdp(two, ours, loss_of, batch(), units=["blocks.0", two.blocks[1], "blocks.2"])
    for number in range(3):
        torch.manual_seed(number)
        own = batch()
        assert torch.equal(step(*own), eager_step(one, theirs, *own)) and same(parts(one, theirs), parts(two, ours))
    assert step.reason is None, step.reason
    for wrong in ({"units": ["blocks.7"]}, {"wrap": {"mesh": None}}, {"streams": 4}, {"fuse": True}, {"seconds": 1}):
        try:
            tarn.torch.fsdp(copy.deepcopy(base), ours, loss_of, batch(), **wrong)
            raise SystemExit(f"{wrong} was taken")
        except (ValueError, AttributeError):
            pass


def replicas():
    """HSDP: two replicas of two shards."""
    step, *_ = compared(transformer, more=replicated())
    assert step.reason is None, step.reason


# ---- Checkpoints ----

class Trained:
    """A model of fully_shard and its optimizer, with what DCP saves and loads of them."""

    def __init__(self, network, group=None, **wrapping):
        base, self.batch = network()
        self.model, self.group = wrapped(base, **wrapping), group
        self.optimizer = adam(self.model.parameters())
        self.step = None

    def plan(self, **options):
        self.step = tarn.torch.fsdp(self.model, self.optimizer, loss_of, self.batch(), process_group=self.group, **options)
        return self

    def state(self):
        from torch.distributed.checkpoint.state_dict import get_state_dict
        return dict(zip(("model", "optimizer"), get_state_dict(self.model, self.optimizer)))

    def load(self, folder):
        import torch.distributed.checkpoint as dcp
        from torch.distributed.checkpoint.state_dict import set_state_dict
        state = self.state()
        dcp.load(state, checkpoint_id=folder, process_group=self.group)
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        return self

    def train(self, steps):
        """The steps of these numbers; what each has made."""
        made = []
        for number in steps:
            torch.manual_seed(number + 100 * dist.get_rank())
            own = self.batch()
            loss = self.step(*own) if self.step else eager_step(self.model, self.optimizer, *own)
            assert not self.step or self.step.reason is None, self.step.reason
            made.append([loss, *parts(self.model, self.optimizer)])
        return made


def agreed(value):
    """The first rank's."""
    values = [value]
    dist.broadcast_object_list(values, 0)
    return values[0]


def alike(one, two):
    return len(one) == len(two) and all(map(same, one, two))


def saved_and_loaded():
    """By DCP after three planned steps, at once and while the next ones run; loaded into models that go on eagerly, by a plan
    made then, and by one that has run before."""
    import torch.distributed.checkpoint as dcp
    writer = dist.new_group()  # what is saved meanwhile communicates beside the steps
    several = ((transformer, {"budget": 0.7, "effort": 1}), (NETWORKS["uneven"], {"symmetric": True}), (NETWORKS["groups"], {"streams": 2}))
    for network, options in several if IS_LONG else several[1:2]:
        folder = agreed(tempfile.mkdtemp() if dist.get_rank() == 0 else None)
        trained = Trained(network).plan(**options)
        eager = Trained(network)
        assert alike(trained.train(range(3)), eager.train(range(3)))
        dcp.save(trained.state(), checkpoint_id=f"{folder}/one")
        writing = dcp.async_save(trained.state(), checkpoint_id=f"{folder}/two", process_group=writer)
        expected = trained.train(range(3, 6))
        writing.result()
        assert alike(eager.train(range(3, 6)), expected)
        for name in ("one", "two"):
            assert alike(Trained(network).load(f"{folder}/{name}").train(range(3, 6)), expected), name
            assert alike(Trained(network).load(f"{folder}/{name}").plan(**options).train(range(3, 6)), expected), name
        used = Trained(network).plan(**options)
        used.train(range(7, 11))
        assert alike(used.load(f"{folder}/two").train(range(3, 6)), expected)
        assert alike(used.load(f"{folder}/one").train(range(3, 6)), expected)
        dist.barrier()
        if dist.get_rank() == 0:
            shutil.rmtree(folder)


def loaded_by_fewer_ranks():
    """Saved by four ranks, loaded by two of them."""
    import torch.distributed.checkpoint as dcp
    from torch.distributed.device_mesh import DeviceMesh
    folder, pair = agreed(tempfile.mkdtemp() if dist.get_rank() == 0 else None), dist.new_group([0, 1])
    trained = Trained(transformer).plan()
    trained.train(range(3))
    dcp.save(trained.state(), checkpoint_id=folder)
    whole = [p.full_tensor() for p in trained.model.parameters()]
    if dist.get_rank() < 2:
        def fresh():
            return Trained(transformer, pair, mesh=DeviceMesh.from_group(pair, "cpu")).load(folder)
        one, two = fresh(), fresh()
        assert same(whole, [p.full_tensor() for p in two.model.parameters()])
        assert alike(one.train(range(3, 6)), two.plan().train(range(3, 6)))
        assert two.step.report().gathers == 4
    dist.barrier()
    if dist.get_rank() == 0:
        shutil.rmtree(folder)


# ---- Models and options ----

class Blocks(nn.Module):
    """Blocks between a first and a last module. tied: those two have one weight."""

    def __init__(self, first, blocks, last, tied=False):
        super().__init__()
        self.first, self.blocks, self.out = first, nn.ModuleList(blocks), last
        if tied:
            self.out.weight = self.first.weight

    def forward(self, x):
        x = self.first(x)
        for block in self.blocks:
            x = x + block(x)
        return self.out(x)


class Again(nn.Module):
    """A block that is computed again for the backward pass."""

    def __init__(self, block):
        super().__init__()
        self.block = block

    def forward(self, x):
        return checkpoint(self.block, x, use_reentrant=False)


class Experts(nn.Module):
    """All of them, weighted: parameters of three dimensions."""

    def __init__(self, width, count):
        super().__init__()
        self.gate, self.up = nn.Linear(width, count, bias=False), nn.Parameter(torch.randn(count, width, 2 * width) / width)
        self.down = nn.Parameter(torch.randn(count, 2 * width, width) / width)

    def forward(self, x):
        y = F.silu(torch.einsum("...i,eij->...ej", x, self.up))
        return torch.einsum("...ej,eji,...e->...i", y, self.down, self.gate(x).softmax(-1))


def of_words(block, width=16, tied=False):
    def make():
        torch.manual_seed(0)
        return (Blocks(nn.Embedding(40, width), [block(width) for _ in range(2)], nn.Linear(width, 40, bias=False), tied),
                lambda: (torch.randint(0, 40, (2, 6)), torch.randint(0, 40, (2, 6))))
    return make


def of_pictures(norm):
    def make():
        torch.manual_seed(0)
        blocks = [nn.Sequential(nn.Conv2d(6, 6, 3, padding=1, bias=False), norm(6), nn.ReLU()) for _ in range(2)]
        return (Blocks(nn.Conv2d(3, 6, 3), blocks, nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 5))),
                lambda: (torch.randn(4, 3, 8, 8), torch.randint(0, 5, (4,))))
    return make


def network(width):
    return nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 3 * width + 1), nn.GELU(), nn.Linear(3 * width + 1, width))


NETWORKS = {
    "transformer": transformer, "odd sizes, buffers, frozen": odd, "network": of_words(network), "uneven": of_words(network, 11),
    "tied": of_words(network, tied=True), "experts": of_words(lambda width: Experts(width, 3)),
    "checkpoints": of_words(lambda width: Again(network(width))), "dropout": of_words(lambda width: nn.Sequential(network(width), nn.Dropout(0.2))),
    "attention": of_words(lambda width: nn.TransformerEncoderLayer(width, 2, 24, 0.0, batch_first=True)),
    "pictures": of_pictures(nn.BatchNorm2d), "groups": of_pictures(lambda n: nn.GroupNorm(2, n))}


def sgd(parameters):
    return torch.optim.SGD([p for p in parameters if p.requires_grad], 0.1, momentum=0.9)


def shorter(data):
    return [own if number not in (2, 3) else [t[:len(t) // 2] for t in own] for number, own in enumerate(data)]


OPTIONS = {
    "plain": {}, "mixed precision": {"more": {"mp_policy": MIXED}}, "clipped": {"clip": clip_norm},
    "mixed and clipped": {"more": {"mp_policy": MIXED}, "clip": clip_norm}, "a budget": {"budget": 0.85, "effort": 1},
    "one stream": {"streams": 1}, "two streams": {"streams": 2}, "kept": {"more": {"reshard_after_forward": False}},
    "SGD": {"optimizer": sgd}, "other shapes": {"batches": shorter, "steps": 6}, "symmetric": {"symmetric": True},
    "reduced in 16 bits": {"more": {"mp_policy": MixedPrecisionPolicy(reduce_dtype=torch.bfloat16)}}}
NO_PLAN = {}  # what runs eagerly, and a word of why


def models_and_options():
    """Each model with a few of the options, so that each of them meets several; TARN_CAMPAIGN: all with all."""
    every, names = "TARN_CAMPAIGN" in os.environ, list(OPTIONS)
    for place, (name, make) in enumerate(NETWORKS.items()):
        for option in names if every else [names[(2 * place + k * 5) % len(names)] for k in range(2)]:
            options = dict(OPTIONS[option])
            if name.startswith(("odd", "pictures")) and "mixed" in option:
                options["more"] = {"mp_policy": MixedPrecisionPolicy(reduce_dtype=torch.float32)}  # norms with buffers of 32 bits
            try:
                step, *_ = compared(make, **{"steps": 3, **options})
            except tarn.DoesNotFit:
                assert option == "a budget", (name, option)
                continue
            why = NO_PLAN.get((name, option), "")
            assert (step.reason or "") == why or why and why in step.reason, (name, option, step.reason)


def replicas_with_options():
    """HSDP with mixed precision and clipping, uneven parts, buffers."""
    for name, options in (("network", {"more": {"mp_policy": MIXED}, "clip": clip_norm}), ("uneven", {}), ("pictures", {"optimizer": sgd})):
        more = {**replicated(), **options.pop("more", {})}
        step, *_ = compared(NETWORKS[name], more=more, steps=3, **options)
        assert step.reason is None, (name, step.reason)


def accumulated():
    """Gradients of several batches: steps without reduction, and with gradients before them, run as FSDP2 does."""
    base, batch = NETWORKS["network"]()
    one, two = wrapped(copy.deepcopy(base)), wrapped(copy.deepcopy(base))
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    step = tarn.torch.fsdp(two, ours, loss_of, batch())
    for number in range(6):
        first, second = batch(), batch()
        for model in (one, two):
            if number % 2:
                loss_of(model, *first).backward()  # reduced, and left for the step
        expected = loss_of(one, *second)
        expected.backward()
        theirs.step()
        theirs.zero_grad()
        assert torch.equal(step(*second), expected.detach()) and same(parts(one, theirs), parts(two, ours)), step.reason
        assert ("gradients before" in (step.reason or "")) == bool(number % 2), step.reason


# ---- Worlds that are not here ----

def large_worlds():
    """Of a fake process group: what is received, and in which order."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    for world in (64,):
        dist.destroy_process_group()
        dist.init_process_group("fake", rank=0, world_size=world, store=FakeStore())
        base, batch = transformer()
        sizes = {name: p.numel() for name, p in base.named_parameters()}
        model = wrapped(base)
        step = tarn.torch.fsdp(model, adam(model.parameters()), loss_of, batch(), compare=False)
        assert torch.isfinite(step(*batch())) and step.reason is None, step.reason
        report = step.report()
        padded = sum(-(-p.shape[0] // world) * (sizes[n] // p.shape[0]) * world * 4 for n, p in model.named_parameters())
        # gathers bring in the whole but this rank's part, and so do reductions
        assert abs(report.received - 2 * padded * (world - 1) // world) <= 64 * world * len(sizes), (report.received, padded)
        names = [op.name for op in step.plan.graph.ops if op.op_class == "collective"]
        assert names == ["gather_root", *(f"gather_blocks_{i}" for i in range(3)), *(f"scatter_blocks_{i}" for i in (2, 1, 0)),
                         "scatter_root"], names
        smaller = tarn.torch.fsdp(model, adam(model.parameters()), loss_of, batch(), compare=False, budget=0.7, effort=1)
        again = smaller.report()
        assert again.arena <= 0.71 * report.arena and again.gathered_again and again.received > report.received


# ---- Ranks that differ ----

def asking(model, *batch):
    """A loss that cannot be traced on rank 1."""
    loss = loss_of(model, *batch)
    return loss if dist.get_rank() != 1 or loss.item() < 1e9 else 2 * loss


def eager_ranks():
    base, batch = transformer()
    one, two = wrapped(copy.deepcopy(base)), wrapped(copy.deepcopy(base))
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    step = tarn.torch.fsdp(two, ours, asking, batch())
    for number in range(2):
        torch.manual_seed(number)
        own = batch()
        assert torch.equal(step(*own), eager_step(one, theirs, *own)) and same(parts(one, theirs), parts(two, ours))
        assert step.reason and ("data-dependent" if dist.get_rank() == 1 else "ranks [1] run") in step.reason, step.reason


def other_shapes():
    """All ranks have another shape: another plan. One rank has: all run eagerly, once."""
    reasons = []

    def batches(data):
        data[3], data[5] = ([t[:1] for t in data[i]] for i in (3, 5))
        if dist.get_rank() == 1:
            data[4] = [t[:1] for t in data[4]]
        return data

    base, batch = transformer()
    one, two = wrapped(copy.deepcopy(base)), wrapped(copy.deepcopy(base))
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    data = batches([batch() for _ in range(7)])
    step = tarn.torch.fsdp(two, ours, loss_of, data[0])
    for number, own in enumerate(data):
        assert torch.equal(step(*own), eager_step(one, theirs, *own)) and same(parts(one, theirs), parts(two, ours))
        reasons.append(step.reason)
    assert [bool(r) for r in reasons] == [False] * 4 + [True] + [False] * 2, reasons
    assert "different kinds" in reasons[4] and len(step.variants) == 2, reasons
    # gradients are accumulated: as FSDP2 does it
    two.set_requires_gradient_sync(False)
    loss = step(*data[0])
    assert "not reduced" in step.reason, step.reason
    two.set_requires_gradient_sync(True)
    # an evaluation leaves the root gathered
    with torch.no_grad():
        two(data[0][0]), one(data[0][0])
    del loss


def with_unread(model, x, y, _unread):
    return loss_of(model, x, y)


def asking_of_one_row(model, x, y):
    return loss_of(model, x, y) if len(x) > 1 else asking(model, x, y)


def other_kinds():
    """Batches that differ from rank to rank are planned if the ops are the same. If they are not, these batches run eagerly
    together, captured once, and the ranks' other batches are planned all the same, in whatever order they come."""
    base, _ = transformer()

    def batch(number, length=8, rows=2, is_turned=False):
        torch.manual_seed(10 * number + dist.get_rank())
        own = [torch.randint(0, 51, (rows, length)) for _ in range(2)]
        return tuple(t.t().contiguous().t() if is_turned else t for t in own)

    def reasons(batches, loss_fn=loss_of):
        one, two = wrapped(copy.deepcopy(base)), wrapped(copy.deepcopy(base))
        theirs, ours = adam(one.parameters()), adam(two.parameters())
        step = tarn.torch.fsdp(two, ours, loss_fn, batches[0], timeout=100)
        found = [step.reason]
        for own in batches:
            expected = eager_step(one, theirs, *own, loss_fn=loss_fn)
            assert torch.equal(step(*own), expected) and same(parts(one, theirs), parts(two, ours)), (len(found), step.reason)
            found.append(step.reason)
        return found, step

    rank = dist.get_rank()
    found, _ = reasons([batch(number, 5 + rank) for number in range(4)])
    assert not any(found), found
    found, _ = reasons([(*batch(number), torch.zeros(3 + rank)) for number in range(4)], with_unread)
    assert not any(found), found
    turned = [{1}, {1}, set(), {0}, {0}, {1}, {0, 1}, set()]  # the ranks whose batch lies otherwise
    found, step = reasons([batch(number, is_turned=rank in those) for number, those in enumerate(turned)])
    assert [bool(reason) for reason in found] == [True, True, True, False, True, True, True, False, False], found
    assert "different ops" in found[0] and "different kinds" in found[1] and not step._refused, (found, step._refused)
    assert len(step.variants) == 2 and sorted(step._captures.values()) == [3], (step.variants, step._captures)
    # rank 1 fails with a kind of its own: rank 0's kind is planned with others
    found, step = reasons([batch(0), batch(1, rows=2 - rank), batch(2), batch(3, rows=1), batch(4, length=6, rows=2 - rank), batch(5, length=6)],
                          asking_of_one_row)
    assert [bool(reason) for reason in found] == [False, False, True, False, True, True, False], found
    assert ("ranks [1]" in found[2] or "different" in found[2]) if rank == 0 else found[2], found


def hooked_reduction(model):
    wrapped(model).set_all_reduce_hook(lambda tensor: None)


def divided(model):
    wrapped(model).set_gradient_divide_factor(3.0)
    model.set_force_sum_reduction_for_comms(True)  # gloo has no other one


def extended(model):
    """A parameter that is gathered as its type of tensor wants it."""
    part = wrapped(model).blocks[1].up.weight._local_tensor
    part.fsdp_pre_all_gather = lambda mesh: ((part,), None)
    part.fsdp_post_all_gather = lambda outputs, metadata, dtype, out=None: None if out is not None else (outputs[0], outputs)


def typed(model):
    """A parameter that says of which type its gradient is."""
    model.blocks[1].up.weight.grad_dtype = torch.float32
    wrapped(model)


def of_several_modules(model):
    fully_shard([model.blocks[0], model.blocks[1]])
    fully_shard(model)


REFUSED = {"there is an all-reduce hook": hooked_reduction, "set_gradient_divide_factor": divided, "gathered by an extension": extended,
           "a grad_dtype of its own": typed, "made of several modules": of_several_modules,
           "offloaded to the host": lambda model: wrapped(model, offload_policy=CPUOffloadPolicy(pin_memory=False)),
           "wrapped no module": lambda model: None}


def refused_alike(base, own, word, wrap):
    """What is not planned runs as FSDP2 does, and `reason` has this word."""
    one, two = copy.deepcopy(base), copy.deepcopy(base)
    wrap(one), wrap(two)
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    step = tarn.torch.fsdp(two, ours, loss_of, own)
    assert word in step.reason and step.plan is None and step.report().arena is None, step.reason
    assert torch.equal(step(*own), eager_step(one, theirs, *own)) and word in step.reason, step.reason
    assert same(parts(one, theirs), parts(two, ours)), word


def refused():
    """What is not planned yet runs as FSDP2 does, on all ranks."""
    base, batch = transformer()
    for word, wrap in REFUSED.items():
        if wrap is not typed or hasattr(torch.Tensor, "_has_grad_dtype_override"):  # not before PyTorch 2.15
            refused_alike(base, batch(), word, wrap)


def refused_replicas():
    """Meshes that replicate: without shards, and in steps that do not reduce over the replicas, or have to reduce what an
    earlier step has left. These steps run as FSDP2 does."""
    from torch.distributed._composable.replicate_with_fsdp import replicate
    from torch.distributed.fsdp._fully_shard import _fsdp_param_group
    base, batch = transformer()
    if hasattr(_fsdp_param_group, "DDPMeshInfo"):  # with PyTorch 2.9 it shards, among one rank each
        refused_alike(base, batch(), "replicates and does not shard", replicate)
    mesh = init_device_mesh("cpu", (2, dist.get_world_size() // 2), mesh_dim_names=("replicate", "shard"))
    one, two = (wrapped(copy.deepcopy(base), mesh=mesh) for _ in range(2))
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    step = tarn.torch.fsdp(two, ours, loss_of, batch())
    for reduces, word in ((True, None), (True, None), (True, None), (False, "are not reduced"), (True, "wait for their reduction"), (True, None)):
        for model in (one, two):
            model.set_requires_all_reduce(reduces)
        own = batch()
        assert torch.equal(step(*own), eager_step(one, theirs, *own)), step.reason
        assert same(parts(one, theirs), parts(two, ours)), word
        assert word in step.reason if word else step.reason is None, (word, step.reason)


class Failing(Exception):
    pass


def replicated():
    """Options of fully_shard for four ranks: two replicas of two shards."""
    return {"mesh": init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))} if dist.get_world_size() == 4 else {}


def in_a_hook(call, timeout):
    """Rank 1 does something in the middle of its fourth step, in which all waits for it (on several streams
    collectives may go on, and the next step tells). Returns what the step raised."""
    base, batch = transformer()
    model = wrapped(base, **replicated())
    calls = []

    def hook(_parameter):
        calls.append(None)
        if dist.get_rank() == 1 and armed:
            call()

    armed = []
    model.blocks[1].up.weight.register_post_accumulate_grad_hook(hook)
    step = tarn.torch.fsdp(model, adam(model.parameters()), loss_of, batch(), timeout=timeout, streams=1)
    for _ in range(3):
        step(*batch())
    assert step.reason is None and calls, step.reason
    armed.append(True)
    try:
        step(*batch())
    except Exception as error:  # pylint: disable=broad-except
        return error
    raise SystemExit(f"the step went on: {step.reason} {len(calls)} {armed}")


def left(code=0):
    """Without waiting for ranks that will not come."""
    sys.stdout.flush()
    os._exit(code)


def failing():
    def fail():
        raise Failing("no more")
    error = in_a_hook(fail, 60)
    assert isinstance(error, Failing if dist.get_rank() == 1 else tarn.Rejected), repr(error)
    if dist.get_rank() != 1:
        where = "scatter_" if dist.get_rank() == 0 else "reduce_"  # of its shards, or over the replicas
        assert "rank 1 has failed: Failing: no more" in str(error) and where in str(error), error
    left()


def raising_alike():
    """All ranks raise the same after the reductions, and go on; one of them comes late to the next step."""
    base, batch = transformer()
    model = wrapped(base, **replicated())
    bad = []

    def clip(parameters):
        if bad:
            bad.pop()
            raise Failing("not finite")
        return clip_norm(parameters)

    optimizer = adam(model.parameters())
    step = tarn.torch.fsdp(model, optimizer, loss_of, batch(), clip=clip)
    step(*batch()), step(*batch()), step(*batch())
    assert step.reason is None, step.reason
    for _ in range(2):
        bad.append(True)
        try:
            step(*batch())
            raise SystemExit("the step went on")
        except Failing:
            optimizer.zero_grad()
        if dist.get_rank() == 1:
            time.sleep(3)
        assert torch.isfinite(step(*batch())) and step.reason is None, step.reason


def rejected(call, *words):
    """This rank cannot go on, by an error with one of these words, and leaves."""
    try:
        call()
        raise SystemExit("it went on")
    except tarn.Rejected as error:
        assert any(word in str(error) for word in words), error
    left()


def rehearsed_apart():
    """Rank 1 alone fails where a planned step is compared, after its last collective: all raise, and none waits for ever."""
    base, batch = transformer()
    model = wrapped(base)

    def clip(parameters):
        if dist.get_rank() == 1 and any(p.grad is not None for p in parameters) and len(calls) == 1:
            raise Failing("no more")
        calls.append(None)

    def steps():
        step = tarn.torch.fsdp(model, adam(model.parameters()), loss_of, batch(), clip=clip, timeout=60)
        for _ in range(3):
            step(*batch())

    calls = [None]
    rejected(steps, "rank 1 has failed: Failing: no more")


def eager_apart():
    """Rank 1 alone fails at the end of an eager step, and goes on: its shard is of another step than rank 0's."""
    base, batch = transformer()
    model, bad = wrapped(base), []

    def clip(_):
        if bad:
            raise Failing(bad.pop())

    step = tarn.torch.fsdp(model, adam(model.parameters()), asking, batch(), clip=clip, timeout=60)
    step(*batch())
    assert step.reason
    bad.extend(["no more"] * (dist.get_rank() == 1))
    try:
        step(*batch())
        assert dist.get_rank() != 1
    except Failing:
        assert dist.get_rank() == 1
    rejected(lambda: step(*batch()), "ranks [1] have failed", "rank 1 has failed")


def reported_apart():
    """Rank 0 asks for a report while the others take a step."""
    base, batch = transformer()
    model = wrapped(base)
    step = tarn.torch.fsdp(model, adam(model.parameters()), loss_of, batch(), timeout=60)
    step(*batch())
    rejected(lambda: step.report() if dist.get_rank() == 0 else step(*batch()), "a report", "has come to")


def hanging():
    error = in_a_hook(lambda: time.sleep(12), 3)
    assert isinstance(error, tarn.Rejected), repr(error)
    if dist.get_rank() != 1:
        assert "ranks [1] have not come to it" in str(error) and "scatter_" in str(error), error
    else:
        assert "rank 0 has failed" in str(error) or "rank 1 ends" in str(error), error
    left()


def dying():
    error = in_a_hook(lambda: os._exit(0), 60)
    assert isinstance(error, tarn.Rejected) and "scatter_" in str(error), repr(error)
    left()


def at_once(when, place, how):
    """Rank 1 fails, hangs or differs when the step is made, in its first call, or in a later one with a batch of another shape;
    while it plans, or when the gradients are there. Nobody waits for ever, and who goes on has the same numbers."""
    base, batch = transformer()
    twin, model = wrapped(copy.deepcopy(base)), wrapped(base)
    theirs, ours = adam(twin.parameters()), adam(model.parameters())
    bad, make_plan = [], tarn.plan

    def act(where):
        if dist.get_rank() == 1 and where == place and bad:
            bad.clear()
            if how == "fails":
                raise Failing("no more")
            time.sleep(40)

    def planning(*arguments, **options):
        act("planning")
        return make_plan(*arguments, **options)

    def clip(_parameters):
        act("running")

    def data(number):
        torch.manual_seed(number)
        own = batch()
        if when == "later" and number == 4:
            own = [t[:1] for t in own]
        if how == "differs" and number == {"made": -1, "first": 0, "later": 4}[when] and dist.get_rank() == 1:
            own = [t[:, :5] for t in own]
        return own

    steps = []
    tarn.plan = planning
    try:
        bad.extend([True] * (when == "made"))
        step = tarn.torch.fsdp(model, ours, loss_of, data(-1), clip=clip, timeout=15 if how == "hangs" else 100)
        for number in range(6):
            expected = eager_step(twin, theirs, *data(number))
            bad.extend([True] * ({"first": 0, "later": 4}.get(when) == number))
            loss = step(*data(number))
            steps.append(step.reason)
            assert torch.equal(loss, expected) and same(parts(twin, theirs), parts(model, ours)), (number, steps)
        # the ranks have gone on, some steps eagerly, and agree
        assert how == "differs" or place == "planning" and how == "fails", steps
        odd = range(6) if (when, how) == ("made", "fails") else {"made": (), "first": (0,), "later": (4,)}[when]
        odd = () if (when, how) == ("later", "differs") else odd  # rows of other lengths, one each: the ops are the same
        assert [bool(reason) for reason in steps] == [number in odd for number in range(6)], steps
        assert how != "fails" or any("Failing: no more" in (reason or "") for reason in steps), steps
    except Failing:
        assert dist.get_rank() == 1 and place == "running" and how == "fails", steps
    except tarn.Rejected as error:
        assert place == "running" or how == "hangs", (steps, error)
        assert dist.get_rank() == 1 or "rank 1 has failed: Failing: no more" in str(error) or "ranks [1] have not come" in str(error), error
    finally:
        tarn.plan = make_plan


AT_ONCE = {f"{how}_{place}_{when}": functools.partial(at_once, when, place, how) for how in ("fails", "hangs", "differs")
           for when, place in (("made", "planning"), ("first", "running"), ("later", "planning"), ("later", "running"))}
CASES = {**AT_ONCE, **{function.__name__: function for function in (
    plain, several_uses, within_a_budget, mixed_precision_and_clipping, odd_sizes, symmetric, later_dimensions, wrapped_here, replicas, saved_and_loaded, loaded_by_fewer_ranks, models_and_options, replicas_with_options, accumulated, large_worlds,
    uneven_within_a_budget, eager_ranks, other_shapes, other_kinds, refused, refused_replicas, raising_alike, rehearsed_apart, eager_apart, reported_apart, failing, hanging, dying)}}


def main(cases):
    rank, world, store = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
    torch.set_num_threads(1)
    for case in sys.argv[4:]:
        dist.init_process_group("gloo", init_method=f"file://{store}.{case}", rank=rank, world_size=world)
        begin = time.monotonic()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            cases[case]()
        if rank == 0:
            print(f"{case}: {time.monotonic() - begin:.1f} s", flush=True)
        dist.destroy_process_group()


if __name__ == "__main__":
    main(CASES)
