"""One rank of communicating_test.py: models that communicate by themselves (tensor parallelism, parameters that are
gathered where they are used, functional collectives) by tarn.torch.step, compared with eager execution by bits.

    communicating_ranks.py RANK WORLD STORE CASES..."""
import copy
import functools
import gc
import re
import textwrap
import warnings
import weakref
from pathlib import Path
from unittest import mock

import torch
import torch.distributed as dist
import torch.distributed._functional_collectives as functional
import torch.nn.functional as F
from networks import OLDER, eager_step, loss_of
from ranks import IS_LONG
from sharding_ranks import adam, left, main, parts, same
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel, RowwiseParallel, SequenceParallel, loss_parallel, parallelize_module)
from torch.nn.utils import parametrize
from torch.utils.checkpoint import checkpoint

import tarn
import tarn.torch
from tarn.torch import stepping
from tarn.torch.agreement import Council
from tarn.torch.collectives import Wire, bound
from tarn.torch.sharding.communicating import members
from tarn.torch.tensors import local


class Block(nn.Module):
    """Attention whose heads, and a network whose middle, may be divided."""

    def __init__(self, width, heads):
        super().__init__()
        self.head = width // heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x):
        batch = x.shape[0]
        y = self.norm1(x)
        q, k, v = (part(y).view(batch, y.shape[1], -1, self.head).transpose(1, 2) for part in (self.q, self.k, self.v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2)
        x = x + self.o(y)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Network(nn.Module):
    def __init__(self, words=24, width=16, blocks=2, heads=4):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(blocks))
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x):
        x = self.word(x)
        for block in self.blocks:
            x = block(x)
        return self.out(self.norm(x))


class Plain(nn.Module):
    """Sizes that no number of ranks divides."""

    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(13, 27), nn.GELU(), nn.Linear(27, 13)) for _ in range(2))
        self.out = nn.Linear(13, 3)

    def forward(self, x):
        for block in self.blocks:
            x = x + block(x)
        return self.out(x)


def network(**sizes):
    torch.manual_seed(0)
    return Network(**sizes), lambda: (torch.randint(0, 24, (4, 8)), torch.randint(0, 24, (4, 8)))


def plain():
    torch.manual_seed(0)
    return Plain(), lambda: (torch.randn(6, 13), torch.randint(0, 3, (6,)))


def compared(network, wrap, optimizer=adam, steps=4, loss_fn=loss_of, same_data=True, clip=None, make=tarn.torch.step, change=None, **options):
    """Trains eagerly and by planned steps. Returns the planned step, its model and its optimizer."""
    base, batch = network()
    one, two = wrap(copy.deepcopy(base)), wrap(copy.deepcopy(base))
    theirs, ours = optimizer(one.parameters()), optimizer(two.parameters())
    if change:
        change(model=one)
    torch.manual_seed(100 if same_data else 100 + dist.get_rank())
    data = [batch() for _ in range(steps)]
    step = make(two, ours, loss_fn, data[0], clip=clip, **options)
    for number, own in enumerate(data):
        torch.manual_seed(number)
        expected = eager_step(one, theirs, *own, clip=clip, loss_fn=loss_fn)
        torch.manual_seed(number)
        loss = step(*own)
        assert type(loss) is type(expected) and torch.equal(loss, expected), (
            f"the losses of step {number} differ: {loss}, {expected} ({step.reason})")
        assert same(parts(one, theirs), parts(two, ours)), f"step {number} differs ({step.reason})"
    return step, two, ours


def collectives(step):
    return [op for op in step.plan.graph.ops if op.op_class == "collective"]


def one_stream_each(step, communicators=1):
    streams = {op.stream for op in collectives(step)}
    assert streams == set(range(1, 1 + communicators)), (streams, step.plan.graph.streams)


# ---- Tensor parallelism ----

MIDDLE = {"up": ColwiseParallel(), "down": RowwiseParallel(), "q": ColwiseParallel(), "k": ColwiseParallel(),
          "v": ColwiseParallel(), "o": RowwiseParallel()}


def in_columns_and_rows(model, mesh=None):
    mesh = mesh or init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        parallelize_module(block, mesh, dict(MIDDLE))
    return model


def with_sequences(model, mesh=None):
    """As Megatron and torchtitan have it: norms on parts of the sequence, words and losses divided, too."""
    mesh = mesh or init_device_mesh("cpu", (dist.get_world_size(),))
    parallelize_module(model, mesh, {
        "word": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1)), "norm": SequenceParallel(),
        "out": ColwiseParallel(input_layouts=Shard(1), output_layouts=Replicate())})
    for block in model.blocks:
        parallelize_module(block, mesh, {
            "norm1": SequenceParallel(), "norm2": SequenceParallel(use_local_output=True),
            **{name: ColwiseParallel(input_layouts=Shard(1)) for name in ("q", "k", "v", "up")},
            **{name: RowwiseParallel(output_layouts=Shard(1)) for name in ("o", "down")}})
    return model


def clip_norm(parameters):
    torch.nn.utils.clip_grad_norm_(parameters, 0.1)


def tensor_parallel():
    step, model, _ = compared(network, in_columns_and_rows)
    assert step.reason is None, step.reason
    one_stream_each(step)
    report = step.report()
    # two reductions a block forwards (o, down), and four backwards (q, k, v, up)
    assert report.collectives == 12 and not report.copied and report.received == 12 * 4 * 8 * 16 * 4, report
    assert "12 collectives; " in str(report) and "gathers" not in str(report), str(report)


def sequence_parallel():
    step, *_ = compared(network, with_sequences)
    assert step.reason is None, step.reason
    one_stream_each(step)


def clipped():
    step, *_ = compared(network, with_sequences, clip=clip_norm)
    assert step.reason is None, step.reason


def two_dimensions():
    """Tensor parallelism inside of parameters that are gathered, or averaged, over the other dimension."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))
    for mode in (Shard(0), Replicate()):
        step, *_ = compared(network, lambda model, mode=mode: gathered_where_used(
            in_columns_and_rows(model, mesh["tensor"]), mesh["data"], mode), same_data=False)
        assert step.reason is None, step.reason
        one_stream_each(step, 2)


def documented():
    """The example of docs/sharding.md."""
    text = Path(__file__).parents[3].joinpath("docs/sharding.md").read_text(encoding="utf-8")
    block = text.split("## Models that communicate by themselves")[1].split("$ python\n")[1].split("\n\n*")[0]
    code = textwrap.dedent(re.split(r"\n(?=\S)", block)[0])
    model, batch = network()
    x, y = batch()
    names = {"model": model, "x": x, "y": y, "loader": [batch() for _ in range(4)], "loss_fn": loss_of, "torch": torch, "tarn": tarn}
    exec(code, names)  # pylint: disable=exec-used
    assert names["step"].reason is None and "4 collectives; 8192" in str(names["step"].report()), names["step"].report()


# ---- Parameters that are gathered where they are used ----

class Redistributed(nn.Module):
    """As SimpleFSDP's parametrization. inner: the mesh and the placement of tensor parallelism, inside."""

    def __init__(self, mesh, mode, inner, dtype):
        super().__init__()
        self.mesh, self.mode, self.inner, self.dtype = mesh, mode, inner, dtype

    def forward(self, x):
        if self.inner:
            x = DTensor.from_local(x.to_local(), self.mesh, [self.mode], run_check=False)
        if self.dtype:
            x = x.to(self.dtype)
        x = x.redistribute(placements=[Replicate()]).to_local(grad_placements=[Partial("avg")])
        return DTensor.from_local(x, *self.inner, run_check=False) if self.inner else x


def gathered_where_used(model, mesh=None, mode=Shard(0), dtype=None):
    mesh = mesh or init_device_mesh("cpu", (dist.get_world_size(),))
    for module in list(model.modules()):
        for name, parameter in list(module.named_parameters(recurse=False)):
            inner = None
            if isinstance(parameter, DTensor):
                inner = parameter.device_mesh, parameter.placements
                part = distribute_tensor(parameter.to_local().detach(), mesh, [mode]).to_local()
                made = DTensor.from_local(part, mesh._get_root_mesh(), [mode, *parameter.placements], run_check=False)
            else:
                made = distribute_tensor(parameter.detach(), mesh, [mode])
            module.register_parameter(name, nn.Parameter(made))
            parametrize.register_parametrization(module, name, Redistributed(mesh, mode, inner, dtype), unsafe=True)
    return model


def gathered():
    step, model, optimizer = compared(network, gathered_where_used, same_data=False)
    assert step.reason is None, step.reason
    one_stream_each(step)
    names = [op.name for op in collectives(step)]
    assert names[:5] == ["gather_word", "gather_blocks_0", "gather_blocks_1", "gather_norm", "gather_out"], names
    assert "scatter_blocks_1" in names and "scatter_blocks_0" in names and len(names) == 10, names
    report = step.report()
    whole = sum(p.numel() for p in model.parameters()) * 4
    assert (report.collectives, report.gathers, report.gathered_again) == (10, 5, []) and not report.copied, report
    assert whole <= report.received <= 1.05 * whole, (report.received, whole)  # half of it, twice
    assert "10 collectives, 5 gathers, 0 of them again; " in str(report), report
    # a state_dict of DTensors, as before
    other = gathered_where_used(network()[0])
    other.load_state_dict(model.state_dict())
    again = adam(other.parameters())
    again.load_state_dict(copy.deepcopy(optimizer.state_dict()))
    batch = network()[1]()
    assert torch.equal(step(*batch), eager_step(other, again, *batch)) and same(parts(model, optimizer), parts(other, again))


def gathered_again():
    step, *_ = compared(network, gathered_where_used, same_data=False, budget=0.7, effort=1, steps=3)
    report = step.report()
    assert step.reason is None and report.arena <= step.budget and report.gathered_again, (step.reason, report)
    gathers = {op.name for op in collectives(step)}  # which of them depends on what ops take here
    assert set(report.gathered_again) <= gathers & {"gather_word", "gather_blocks_0", "gather_blocks_1", "gather_norm", "gather_out"}, report
    one_stream_each(step)


def gathered_in_sixteen_bits():
    step, *_ = compared(network, lambda model: gathered_where_used(model, dtype=torch.bfloat16), same_data=False, clip=clip_norm)
    assert step.reason is None, step.reason
    assert sum(op.name.startswith("gather") for op in collectives(step)) == 5


def averaged():
    """All parameters on all ranks: data parallelism by DTensors."""
    step, *_ = compared(network, lambda model: gathered_where_used(model, mode=Replicate()), same_data=False,
                        optimizer=lambda ps: torch.optim.SGD(ps, 0.1, momentum=0.9))
    assert step.reason is None, step.reason
    names = [op.name for op in collectives(step)]
    assert "reduce_blocks_0" in names and len(names) == 5, names


def checkpoints():
    """Blocks are computed, and so gathered, again for the backward pass."""
    def wrap(model):
        model = gathered_where_used(model)
        for block in model.blocks:
            block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
        return model

    step, *_ = compared(network, wrap, same_data=False)
    assert step.reason is None, step.reason
    names = [op.name for op in collectives(step)]
    assert sum(name.startswith("gather_blocks_") for name in names) == 4, names


def uneven():
    step, *_ = compared(plain, gathered_where_used, same_data=False)
    assert step.reason is None, step.reason


def optimizers():
    """They work on parts, and leave the states that they leave eagerly, of the same kinds."""
    def kinds(model, optimizer):
        return [(name, getattr(value, "placements", None), type(value)) for p in model.parameters()
                for name, value in optimizer.state.get(p, {}).items()]

    made = {}

    def make(kind, options, parameters):
        optimizer = getattr(torch.optim, kind)(parameters, **options)
        made.setdefault(kind + str(options), []).append(optimizer)
        return optimizer

    for kind, options in (("SGD", {"lr": 0.1}), ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}), ("Adagrad", {}),
                          ("NAdam", {}), ("RAdam", {}), ("RMSprop", {"centered": True, "momentum": 0.5}), ("Adadelta", {}),
                          ("Adamax", {}), ("Adam", {"amsgrad": True}), ("Rprop", {}), ("ASGD", {}), ("AdamW", {"foreach": True}))[:None if IS_LONG else 2]:
        options = {"foreach": False, **options}
        one = {}
        step, model, ours = compared(plain, gathered_where_used, same_data=False, steps=5,
                                     optimizer=functools.partial(make, kind, options), change=one.update)
        theirs, _ = made[kind + str(options)]
        assert step.reason is None and kinds(one["model"], theirs) == kinds(model, ours), (kind, step.reason)


def under_fully_shard():
    """FSDP2 around tensor parallelism, by tarn.torch.fsdp."""
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("data", "tensor"))

    def wrapped(model, how, **policy):
        how(model, mesh["tensor"])
        for block in model.blocks:
            fully_shard(block, mesh=mesh["data"], **policy)
        return fully_shard(model, mesh=mesh["data"], **policy)

    mixed = {"mp_policy": MixedPrecisionPolicy(torch.bfloat16, torch.float32)}
    for how, policy, options in ((in_columns_and_rows, {}, {}), (with_sequences, {}, {"budget": 0.7, "effort": 1}), (with_sequences, mixed, {})):
        step, *_ = compared(network, functools.partial(wrapped, how=how, **policy), same_data=False, make=tarn.torch.fsdp, steps=3, **options)
        assert step.reason is None, step.reason
        assert {op.stream for op in collectives(step)} == {1, 3}, step.plan.graph.streams


# ---- Other DTensors ----

def spread():
    """Batches that are DTensors, and so losses and results."""
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def batch():
        return tuple(distribute_tensor(t, mesh, [Shard(0)]) for t in (torch.randn(4, 6, 16), torch.randn(4, 6, 5)))

    def loss(model, x, y):
        out = model(x)
        return F.mse_loss(out, y), out

    def model():
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 5)), batch

    base, _ = model()
    one, two = (distribute_module(copy.deepcopy(base), mesh) for _ in range(2))
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    torch.manual_seed(1)
    data = [batch() for _ in range(4)]
    step = tarn.torch.step(two, ours, loss, data[0])
    for own in data:
        value, out = loss(one, *own)
        value.backward()
        theirs.step()
        theirs.zero_grad()
        made, result = step(*own)
        assert isinstance(made, DTensor) and made.placements == value.placements and result.placements == out.placements
        assert torch.equal(made.to_local(), value.detach().to_local()) and torch.equal(result.to_local(), out.detach().to_local())
        assert same(parts(one, theirs), parts(two, ours)), step.reason
    assert step.reason is None, step.reason


def parallel_loss():
    """Logits stay divided."""
    def wrap(model):
        mesh = init_device_mesh("cpu", (dist.get_world_size(),))
        parallelize_module(model, mesh, {"out": ColwiseParallel(output_layouts=Shard(-1), use_local_output=False)})
        return in_columns_and_rows(model, mesh)

    with loss_parallel():
        step, *_ = compared(network, wrap, loss_fn=lambda model, x, y: F.cross_entropy(model(x).flatten(0, 1), y.flatten()))
    assert step.reason is None or OLDER, step.reason


def hooks():
    seen = []

    def wrap(model):
        model = with_sequences(model)
        model.norm.weight.register_post_accumulate_grad_hook(lambda p: seen.append(p.grad.placements))
        model.out.weight.register_hook(lambda gradient: gradient * 2)
        return model

    step, *_ = compared(network, wrap)
    assert step.reason is None and len({*seen}) == 1 and len(seen) >= 8, (step.reason, seen)


def hooks_that_communicate():
    """They take turns with all that the step communicates, and so does clip."""
    def add(parameter):
        dist.all_reduce(parameter.grad)

    def wrap(model):
        for parameter in model.parameters():
            parameter.register_post_accumulate_grad_hook(add)
        return model

    def clip(parameters):
        for parameter in parameters:
            add(parameter)

    step, *_ = compared(split, wrap, same_data=False, loss_fn=summed, clip=clip, process_group=dist.group.WORLD, steps=20)
    assert step.reason is None, step.reason
    assert [op.kind for op in collectives(step)].count("hooks") == 4 and "clip" in {op.kind for op in collectives(step)}
    assert len({op.stream for op in collectives(step)}) == 1


def hooks_that_keep():
    """What hooks keep of gradients, whole or as they are, are eager execution's values, and stay so."""
    def kept(wrap, attach, keep):
        seen = {}

        def hooked(model):
            mine = seen.setdefault(len(seen), {})
            model = wrap(model)
            for name, parameter in model.named_parameters():
                attach(parameter, functools.partial(lambda value, name: mine.setdefault(name, []).append(keep(value)), name=name))
            return model

        step, *_ = compared(network, hooked, same_data=wrap is not gathered_where_used, steps=5, timeout=60)
        assert step.reason is None and "hooks" in {op.kind for op in collectives(step)}, step.reason
        one_stream_each(step)
        for name, values in seen[0].items():  # the first steps' are kept in rehearsals, too
            for expected, value in zip(values[-3:], seen[1][name][-3:]):
                assert torch.equal(local(expected), local(value)), name

    def of_parameter(parameter, function):
        parameter.register_post_accumulate_grad_hook(lambda p: function(p.grad))

    kept(in_columns_and_rows, of_parameter, lambda gradient: gradient.full_tensor() if isinstance(gradient, DTensor) else gradient)
    if IS_LONG:
        kept(with_sequences, lambda p, f: p.register_hook(lambda g: f(g)), lambda g: g.full_tensor() if isinstance(g, DTensor) else g)
        kept(gathered_where_used, of_parameter, lambda gradient: gradient)
        kept(gathered_where_used, of_parameter, lambda gradient: gradient.full_tensor())


# ---- Collectives in a loss ----

class Split(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 3)

    def forward(self, x):
        whole = functional.all_gather_tensor_autograd(self.up(x), 0, dist.group.WORLD)
        return self.down(F.gelu(whole).chunk(2)[0])


def split():
    torch.manual_seed(0)
    return Split(), lambda: (torch.randn(4, 8), torch.randint(0, 3, (4,)))


def summed(model, x, y):
    value = F.cross_entropy(model(x), y)
    moved = functional.all_to_all_single(value.detach().expand(2).contiguous(), [1, 1], [1, 1], dist.group.WORLD).sum()
    return functional.all_reduce(moved, "sum", dist.group.WORLD) * 0 + value


def functional_collectives():
    step, *_ = compared(split, lambda model: model, same_data=False, loss_fn=summed, process_group=dist.group.WORLD)
    assert step.reason is None, step.reason
    one_stream_each(step)
    assert len(collectives(step)) >= 4 and "communication1" in str(step.plan.graph.streams)
    # beside other reductions, and where ranks have not been told to agree, it runs eagerly
    model, batch = split()
    step = tarn.torch.ddp(model, adam(model.parameters()), summed, batch(), compare=False)
    assert "tarn.torch.ddp" in step.reason and step(*batch()).isfinite() and step.plan is None, step.reason
    step, *_ = compared(split, lambda model: model, same_data=False, loss_fn=summed)
    assert "all_gather_into_tensor" in step.reason and "process_group=" in step.reason, step.reason


class Watching(Wire):
    """Counts what is waited for."""

    def __init__(self):
        self.seen = []

    def wait(self, work, op):
        work.wait()
        self.seen.append(op)

    def unwatched(self):
        self.seen.append("unwatched")


def watched_collectives():
    """Every functional collective runs from and to places, with the results of the call itself, and its wait is watched."""
    world, group = dist.get_world_size(), dist.group.WORLD.group_name
    one, two = torch.randn(2 * world, 3), torch.randn(world)
    half = [2] * world
    calls = {"all_gather_into_tensor": (one, world, group), "all_gather_into_tensor_coalesced": ([one, two], world, group),
             "all_gather_into_tensor_out": (one, world, group), "reduce_scatter_tensor": (one, "sum", world, group),
             "reduce_scatter_tensor_coalesced": ([one, two], "sum", world, group), "reduce_scatter_tensor_out": (one, "avg", world, group),
             "all_reduce": (one, "max", group), "all_reduce_": (one, "sum", group), "all_reduce_coalesced": ([one, two], "sum", group),
             "all_reduce_coalesced_": ([one, two], "sum", group), "broadcast": (one, 1, group), "broadcast_": (one, 1, group),
             "all_to_all_single": (one, half, half, group), "shard_dim_alltoall": (one, 1, 0, group)}
    known = {name.split("::")[1].split(".")[0] for name in torch._C._dispatch_get_all_op_names() if name.startswith("_c10d_functional::")}
    others = known - calls.keys()  # waits, what autograd wraps, and sends to one rank, which are refused
    assert all(re.match("wait_|_wrap_|isend|irecv|batch_p2p", name) for name in others), others
    for name in sorted(calls.keys() & known | {"shard_dim_alltoall"}):
        space = torch.ops._c10d_functional if name in known else torch.ops._dtensor
        target, results = getattr(space, name).default, []
        for is_ours in (False, True):
            given, *more = copy.deepcopy(calls[name])
            kwargs = {"out": given.new_empty(expected_size(name, given, world))} if name.endswith("_out") else {}
            if not is_ours:
                made = target(given, *more, **kwargs)
                made = made if isinstance(made, (list, tuple)) else [made]
                results.append([torch.ops._c10d_functional.wait_tensor(t).clone() for t in made])
                continue
            in_place = given if isinstance(given, list) else [given]
            outs = [] if name.endswith("_") else [torch.full_like(t, 7) for t in results[0]]
            wire = Watching()
            bound(name, target, (given, *more), kwargs, outs, wire)()
            assert wire.seen == [name], (name, wire.seen)
            assert not kwargs or same([kwargs["out"]], outs), name
            results.append(outs or in_place)
        assert same(*results), (name, results)


def read_collectives():
    """A loss may read what a collective into a given tensor returns, or the tensor itself, gather complex numbers, and reduce
    a list where it lies."""
    world, group, ops = dist.get_world_size(), dist.group.WORLD.group_name, torch.ops._c10d_functional

    def gathered_into(logits):
        out = logits.new_empty(expected_size("gather", logits, world))
        return ops.all_gather_into_tensor_out(logits, world, group, out=out), out

    def scattered_into(logits):
        out = logits.new_empty(expected_size("scatter", logits, world))
        return ops.reduce_scatter_tensor_out(logits, "sum", world, group, out=out), out

    def complex_gathered(logits):
        made = ops.wait_tensor(ops.all_gather_into_tensor(torch.complex(logits, 2 * logits), world, group))
        return made.real, made.imag

    def reduced_in_place(logits):
        own = [logits.clone(), 2 * logits]
        return ops.all_reduce_coalesced_(own, "sum", group)[0], own[1]

    has = hasattr(ops, "reduce_scatter_tensor_out")  # PyTorch 2.9 has no such op
    for way in (gathered_into, *([scattered_into] if has else []), complex_gathered, reduced_in_place):
        for which in (0, 1):
            def loss(model, x, y, way=way, which=which):
                logits = model(x)
                read = way(logits.detach())
                waited = [t if way is complex_gathered else ops.wait_tensor(t) for t in read]
                return F.cross_entropy(logits, y) * (1 + waited[which].square().mean())

            step, *_ = compared(plain, lambda model: model, same_data=False, loss_fn=loss, process_group=dist.group.WORLD)
            assert step.reason is None and len(collectives(step)) >= 1, (way.__name__, which, step.reason)


class Turned(torch.autograd.Function):
    """Rows of all ranks instead of columns, and back, as a DTensor does on a GPU; on the CPU it gathers all."""

    @staticmethod
    def forward(ctx, x):
        return torch.ops._dtensor.shard_dim_alltoall(x, 0, 2, dist.group.WORLD.group_name)

    @staticmethod
    def backward(ctx, gradient):
        return torch.ops._dtensor.shard_dim_alltoall(gradient.contiguous(), 2, 0, dist.group.WORLD.group_name)


def turned():
    """Parts along another dimension, forwards and backwards."""
    def loss(model, x, y):
        logits = model(x)
        rows = Turned.apply(logits.unsqueeze(-1).expand(-1, -1, dist.get_world_size()))
        return F.cross_entropy(logits + rows.flatten(1)[:len(y)], y)

    step, *_ = compared(plain, lambda model: model, same_data=False, loss_fn=loss, process_group=dist.group.WORLD)
    assert step.reason is None, step.reason
    assert [op.kind for op in collectives(step)] == ["_dtensor.shard_dim_alltoall"] * 2, [op.kind for op in collectives(step)]


def exchanged():
    """Sends and receives, which no schema says the truth of: steps that have them run eagerly, on all ranks, also if only one
    rank has them."""
    ops, group, me = torch.ops._c10d_functional, dist.group.WORLD.group_name, dist.get_rank()
    to, of = (me + 1) % dist.get_world_size(), (me - 1) % dist.get_world_size()

    def one_by_one(sent):
        got = torch.empty_like(sent)
        works = ops.isend(sent, to, 0, group), ops.irecv(got, of, 0, group)
        for work in works:
            ops.wait_tensor(work)
        return got

    def together(sent):
        made = ops.batch_p2p_ops(["isend", "irecv"], [to, of], [0, 0], [sent, torch.empty_like(sent)], group)
        return [ops.wait_tensor(t) for t in made][1]

    def by_hand(sent):
        got = torch.empty_like(sent)
        for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, sent, to), dist.P2POp(dist.irecv, got, of)]):
            work.wait()
        return got

    def to_the_next(sent):
        if me == 0:
            ops.wait_tensor(ops.isend(sent, 1, 0, group))
        elif me == 1:
            sent = torch.empty_like(sent)
            sent = ops.wait_tensor(ops.irecv(sent, 0, 0, group))
        return sent

    ways = [(way, p2p) for way in (one_by_one, together, by_hand, to_the_next) for p2p in (False, True)]
    for way, p2p in ways if hasattr(ops, "batch_p2p_ops") else [(by_hand, False)]:
        def loss(model, x, y, way=way):
            logits = model(x)
            return F.cross_entropy(logits, y) * (1 + way(logits.detach().contiguous()).square().mean())

        with torch._dynamo.config.patch(**{"enable_p2p_compilation": p2p} if hasattr(torch._dynamo.config, "enable_p2p_compilation") else {}):
            step, *_ = compared(plain, lambda model: model, same_data=False, loss_fn=loss, process_group=dist.group.WORLD, timeout=60)
        assert step.plan is None and ("sends and receives" in step.reason or way is by_hand or me > 1), (way.__name__, p2p, step.reason)


def expected_size(name, given, world):
    return [given.shape[0] * world if "gather" in name else given.shape[0] // world, *given.shape[1:]]


def asking(model, *batch):
    """A loss that cannot be traced on rank 1."""
    loss = loss_of(model, *batch)
    return loss if dist.get_rank() != 1 or loss.item() < 1e9 else 2 * loss


def told(call, *arguments):
    """What a call returns, and what it warns of."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        made = call(*arguments)
    return made, [str(warning.message) for warning in seen if "tarn.torch.step" in str(warning.message)]


def differing():
    """One rank cannot capture, or has another batch: all run eagerly."""
    step, *_ = compared(network, in_columns_and_rows, loss_fn=asking)
    assert step.reason and ("data-dependent" if dist.get_rank() == 1 else "ranks [1] run") in step.reason, step.reason
    base, batch = split()
    one, two = base, copy.deepcopy(base)
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    step = tarn.torch.step(two, ours, loss_of, batch(), process_group=dist.group.WORLD)
    reasons, warned = [], []
    for number in range(7):
        own = batch()
        if number in (4, 6):
            own = (own[0].t().contiguous().t() if dist.get_rank() else own[0]), own[1]
        expected = eager_step(one, theirs, *own)
        loss, warnings_ = told(step, *own)
        assert torch.equal(loss, expected) and same(parts(one, theirs), parts(two, ours))
        reasons.append(step.reason)
        warned.append(warnings_)
    assert [bool(r) for r in reasons] == [False] * 4 + [True, False, True] and "different kinds" in reasons[4], reasons
    assert [len(w) for w in warned] == [0] * 4 + [1, 0, 0] and "different kinds" in warned[4][0], warned


def scaled(model, x, y, factor):
    """The number is a part of a capture; sums over the ranks are as long whatever a batch has."""
    loss = F.cross_entropy(model(x), y) * factor
    return functional.all_reduce(loss.detach(), "sum", dist.group.WORLD) * 0 + loss


def captured_too_often():
    """The limit of captures is met by ranks at different calls, as shapes come in turn: all go on, eagerly."""
    def batch():
        return torch.randn(4, 13), torch.randint(0, 3, (4,))

    base, _ = plain()
    one, two = base, copy.deepcopy(base)
    theirs, ours = adam(one.parameters()), adam(two.parameters())
    torch.manual_seed(1)
    with mock.patch.object(stepping, "CAPTURES", 3), torch._dynamo.config.patch(  # pylint: disable=protected-access
            specialize_float=True, automatic_dynamic_shapes=False, recompile_limit=64):
        step = tarn.torch.step(two, ours, scaled, (*batch(), 1.0), process_group=dist.group.WORLD)
        reasons = []
        for number in range(12):
            x, y = batch()
            if dist.get_rank() and number % 2:
                x, y = x[:3], y[:3]
            own = x, y, 1.0 + number / 8
            assert torch.equal(step(*own), eager_step(one, theirs, *own, loss_fn=scaled)), (number, step.reason)
            assert same(parts(one, theirs), parts(two, ours)), (number, step.reason)
            reasons.append(step.reason or "")
    everybodys = [None, None]
    dist.all_gather_object(everybodys, [("captured" in r or "batches of this shape" in r, r) for r in reasons])
    assert any("have been captured 3 times" in r for _, r in everybodys[0]), everybodys
    assert all(bool(a) == bool(b) for (_, a), (_, b) in zip(*everybodys)), everybodys


def too_large():
    """The budget of one rank is too small: both raise, when the step is made."""
    for wrap, make in ((in_columns_and_rows, tarn.torch.step), (gathered_where_used, tarn.torch.step), (sharded, tarn.torch.fsdp)):
        model, batch = network()
        wrap(model)
        try:
            make(model, adam(model.parameters()), loss_of, batch(), budget=1000 if dist.get_rank() else 1 << 30, effort=1)
            raise SystemExit("the step was made")
        except tarn.DoesNotFit as error:
            assert dist.get_rank() or "on rank 1" in str(error), error
        dist.barrier()  # nothing is left of that on the wire


def sharded(model):
    for block in model.blocks:
        fully_shard(block)
    return fully_shard(model)


def given_up():
    """A batch does not outlive its step."""
    for wrap, make in ((in_columns_and_rows, tarn.torch.step), (gathered_where_used, tarn.torch.step), (sharded, tarn.torch.fsdp)):
        model, batch = network()
        wrap(model)
        step = make(model, adam(model.parameters()), loss_of, batch())
        for number in range(4):
            own = batch()
            seen = [weakref.ref(t) for t in own]
            step(*own)
            del own
            gc.collect()
            assert number < 3 or step.reason is None and [s() for s in seen] == [None, None], (number, step.reason)


def refused():
    model, batch = network()
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    for block in model.blocks:
        fully_shard(block, mesh=mesh)
    fully_shard(model, mesh=mesh)
    step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch())
    assert "tarn.torch.fsdp" in step.reason and step(*batch()).isfinite(), step.reason

    # DTensors of another mesh inside of fully_shard, of which FSDP2 does not say how they lie when it has gathered them
    model, batch = network()
    data = init_device_mesh("cpu", (dist.get_world_size(), 1), mesh_dim_names=("data", "tensor"))
    fully_shard(in_columns_and_rows(model, data["tensor"]), mesh=data["data"])
    for found in model._get_fsdp_state()._fsdp_param_group.fsdp_params:
        found._unsharded_dtensor_spec = found._tp_spec = None
    step = tarn.torch.fsdp(model, adam(model.parameters()), loss_of, batch())
    assert step.plan is None and "a DTensor of another mesh" in step.reason, step.reason

    def broadcasting(model, *batch):
        loss = loss_of(model, *batch)
        value = loss.detach().clone()
        dist.broadcast(value, 0)
        return loss + 0 * value

    model, batch = network()
    step = tarn.torch.step(model, adam(model.parameters()), broadcasting, batch(), process_group=dist.group.WORLD)
    assert "could not be captured" in step.reason and "communicating_ranks.py, line" in step.reason, step.reason
    for wrong in ({"streams": 2}, {"fuse": True}, {"compare": "sample"}, {"seconds": 1}):
        model = in_columns_and_rows(network()[0])
        try:
            tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), **wrong)
            raise SystemExit(f"{wrong} was taken")
        except ValueError:
            pass


def worlds_that_are_not_here():
    """Of a fake process group: who has to agree, and a step of sixteen ranks."""
    from torch.testing._internal.distributed.fake_pg import FakeStore  # pylint: disable=import-outside-toplevel
    dist.destroy_process_group()
    dist.init_process_group("fake", rank=5, world_size=16, store=FakeStore())
    mesh = init_device_mesh("cpu", (2, 2, 4), mesh_dim_names=("stage", "data", "tensor"))
    on = {names: distribute_tensor(torch.zeros(4), mesh[names], [Replicate()] * len(names))
          for names in (("tensor",), ("data",), ("data", "tensor"))}
    tensor, data, both = on.values()
    assert members(None, [tensor, tensor]) == [4, 5, 6, 7] and members(None, [data]) == [1, 5]
    assert members(None, [both]) == members(None, [tensor, data]) == members(None, [data, both]) == list(range(8))
    other = distribute_tensor(torch.zeros(4), init_device_mesh("cpu", (16,)), [Replicate()])
    try:
        members(None, [tensor, other])
        raise SystemExit("meshes that are no parts of one were taken")
    except ValueError as error:
        assert "process_group=" in str(error) and members(dist.group.WORLD, [tensor, other]) == list(range(16))
    model, batch = network()
    in_columns_and_rows(model, mesh["tensor"])
    parallelize_module(model.out, init_device_mesh("cpu", (16,)), RowwiseParallel(input_layouts=Replicate()))
    try:
        tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), compare=False)
        raise SystemExit("a step of meshes that are no parts of one was made")
    except ValueError as error:
        assert "several meshes" in str(error) and "process_group=" in str(error), error
    step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), compare=False, process_group=dist.group.WORLD)
    step(*batch())
    assert step.reason is None, step.reason
    one_stream_each(step, 2)
    model, batch = network()
    in_columns_and_rows(model, mesh["tensor"])
    step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), compare=False)
    step(*batch())  # of whatever the parts are filled with: nobody has sent them
    assert step.reason is None, step.reason
    assert step.report().received == 12 * 2 * (4 * 8 * 16 * 4) * 3 // 4

    def beyond(model, *batch):
        loss = loss_of(model, *batch)
        return loss, functional.all_reduce(loss.detach(), "sum", mesh["data"].get_group())

    step = tarn.torch.step(model, adam(model.parameters()), beyond, batch(), compare=False)
    assert step.plan is None and "with ranks [1]," in step.reason and "process_group=" in step.reason, step.reason
    step = tarn.torch.step(model, adam(model.parameters()), beyond, batch(), compare=False, process_group=dist.group.WORLD)
    assert step.reason is None, step.reason


def groups_of_the_program():
    """Of three ranks two make a step; all make groups behind it, and two councils know which rank failed."""
    pair = dist.new_group([0, 1])
    if dist.get_rank() < 2:
        model, batch = plain()
        step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), process_group=pair)
        assert step.reason is None, step.reason
    one = torch.ones(1)
    dist.all_reduce(one, group=dist.new_group([0, 1, 2]))
    assert one.item() == 3
    council = Council([0, 1, 2], 30)
    assert council.told(dist.get_rank()) == [0, 1, 2]
    if dist.get_rank() == 0:
        council.failed(ValueError("not here"))
    try:
        council.told(dist.get_rank())
        raise SystemExit("the failure was not told")
    except tarn.Rejected as error:
        assert "rank 0 has failed: ValueError: not here" in str(error), error
    dist.barrier()


class Failing(Exception):
    pass


def failing():
    """Rank 1 fails in the middle of a planned step."""
    armed = []

    def fail(_parameter):
        if armed and dist.get_rank() == 1:
            raise Failing("no more")

    model, batch = network()
    gathered_where_used(model)
    model.blocks[1].up.parametrizations.weight.original.register_post_accumulate_grad_hook(fail)
    step = tarn.torch.step(model, adam(model.parameters()), loss_of, batch(), timeout=60)
    for _ in range(3):
        step(*batch())
    assert step.reason is None, step.reason
    armed.append(True)
    try:
        for _ in range(2):  # a rank may be done with the step before the other one fails
            step(*batch())
        raise SystemExit("the step went on")
    except Exception as error:  # pylint: disable=broad-except
        assert isinstance(error, Failing if dist.get_rank() == 1 else tarn.Rejected), repr(error)
        assert "no more" in str(error), error
    left()


CASES = {function.__name__: function for function in (
    tensor_parallel, sequence_parallel, clipped, documented, two_dimensions, under_fully_shard, gathered, gathered_again, gathered_in_sixteen_bits, averaged, uneven, spread,
    parallel_loss, hooks, optimizers, hooks_that_communicate, hooks_that_keep, checkpoints, functional_collectives, watched_collectives, read_collectives, turned, exchanged, differing, captured_too_often, too_large, given_up, refused, worlds_that_are_not_here,
    groups_of_the_program, failing)}

if __name__ == "__main__":
    main(CASES)
