"""Sharded training of models and numbers of ranks that are not here: bytes and modelled time of ZeRO-2, ZeRO-3, ZeRO-3
with checkpointed blocks, and of Tarn's plans within the bytes of each (docs/measured/sharding.md). Fake tensors, a fake
process group; costs by products, bytes and a model of the network.

    tests/with_torch.sh tests/python/torch/sharding_table.py MODEL RANKS [TARGETS...]

Parameters are shared by 8 or 256 ranks; other numbers of ranks are replicas of 8 (HSDP)."""
import sys
import time
import warnings
from types import SimpleNamespace

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.device_mesh import init_device_mesh
from torch.fx.experimental.proxy_tensor import make_fx
from torch.nn.utils.stateless import _reparametrize_module
from torch.testing._internal.distributed.fake_pg import FakeStore
from torch.utils.checkpoint import checkpoint
from torch.utils.flop_counter import flop_registry

import tarn
from tarn.torch import collectives
from tarn.torch.capture import Captured
from tarn.torch.kernel import Kernel
from tarn.torch.lowering import Lowered, Op
from tarn.torch.sharding import gathering
from tarn.torch.sharding.schedules import ahead, fastest, gathered_twice
from tarn.torch.sharding.step import STREAMS, ShardedStep
from tarn.torch.sharding.units import Reduction
from tarn.torch.timing import WAIT, makespan

FLOPS, MEMORY, LAUNCH = 400e12, 2.5e12, 2000  # of an H100, what is reached; ns
NETWORKS = {8: (20e-6, 300e9), 256: (200e-6, 45e9)}  # NVLink within a node; a card of 400 Gb/s for each GPU
ALIGNMENT = 512


# ---- Models ----

class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.proj = nn.Linear(width, 3 * width, bias=False), nn.Linear(width, width, bias=False)

    def forward(self, x):
        b, n, w = x.shape
        q, k, v = self.qkv(x).view(b, n, 3, self.heads, w // self.heads).permute(2, 0, 3, 1, 4)
        return self.proj(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, n, w))


class GPTBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        inner = 11008 * width // 4096
        self.norm1, self.norm2, self.attention = nn.RMSNorm(width), nn.RMSNorm(width), Attention(width, heads)
        self.gate, self.up = nn.Linear(width, inner, bias=False), nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Words(nn.Module):
    def __init__(self, block, words, width, layers, heads):
        super().__init__()
        self.word = nn.Embedding(words, width)
        self.blocks = nn.ModuleList(block(width, heads) for _ in range(layers))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, x, again):
        x = self.word(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False) if again else block(x)
        return self.head(self.norm(x))


class Experts(nn.Module):
    """Each expert takes the tokens that want it most, as many as every other one."""

    def __init__(self, width, inner, count):
        super().__init__()
        self.gate = nn.Linear(width, count, bias=False)
        self.up, self.down = nn.Parameter(torch.empty(count, width, inner)), nn.Parameter(torch.empty(count, inner, width))

    def forward(self, x):
        tokens = x.flatten(0, 1)
        count = self.up.shape[0]
        weights, chosen = self.gate(tokens).float().softmax(1).topk(2 * len(tokens) // count, dim=0)
        chosen = chosen.t().flatten()
        made = F.silu(tokens[chosen].view(count, -1, tokens.shape[1]) @ self.up) @ self.down
        made = made.flatten(0, 1) * weights.t().flatten().unsqueeze(1).to(x.dtype)
        return torch.zeros_like(tokens).index_add(0, chosen, made).view(x.shape)


class SparseBlock(nn.Module):
    """Of 0 experts: dense."""

    def __init__(self, width, heads, count):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.RMSNorm(width), nn.RMSNorm(width), Attention(width, heads)
        self.experts = Experts(width, width, count) if count else nn.Sequential(
            nn.Linear(width, 4 * width, bias=False), nn.SiLU(), nn.Linear(4 * width, width, bias=False))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.experts(self.norm2(x))


class Sparse(Words):
    """Units of different sizes: blocks of so many experts."""

    def __init__(self, counts, words, width, heads):
        super().__init__(GPTBlock, words, width, 0, heads)
        self.blocks = nn.ModuleList(SparseBlock(width, heads, count) for count in counts)


class Bottleneck(nn.Module):
    def __init__(self, inside, width, out, stride):
        super().__init__()
        self.convs = nn.ModuleList((nn.Conv2d(inside, width, 1, bias=False), nn.Conv2d(width, width, 3, stride, 1, bias=False),
                                    nn.Conv2d(width, out, 1, bias=False)))
        self.norms = nn.ModuleList(nn.GroupNorm(32, n) for n in (width, width, out))
        self.short = nn.Conv2d(inside, out, 1, stride, bias=False) if inside != out else nn.Identity()

    def forward(self, x):
        y = x
        for place, (conv, norm) in enumerate(zip(self.convs, self.norms)):
            y = norm(conv(y))
            y = F.relu(y) if place < 2 else y
        return F.relu(y + self.short(x))


class Pictures(nn.Module):
    """As ResNet-50, of other widths: units that grow as pictures shrink."""

    def __init__(self, width, depths):
        super().__init__()
        self.word = nn.Conv2d(3, width, 7, 2, 3, bias=False)
        blocks, inside = [], width
        for stage, depth in enumerate(depths):
            for number in range(depth):
                blocks.append(Bottleneck(inside, width << stage, 4 * width << stage, 2 if stage and number == 0 else 1))
                inside = 4 * width << stage
        self.blocks, self.head = nn.ModuleList(blocks), nn.Linear(inside, 1000)

    def forward(self, x, again):
        x = F.max_pool2d(self.word(x), 2)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False, preserve_rng_state=False) if again else block(x)
        return self.head(x.mean((2, 3))).unsqueeze(1)


class Crossed(GPTBlock):
    """A block of a decoder: it reads what the encoder has made."""

    def __init__(self, width, heads):
        super().__init__(width, heads)
        self.norm3, self.query = nn.LayerNorm(width), nn.Linear(width, width, bias=False)
        self.both, self.back, self.heads = nn.Linear(width, 2 * width, bias=False), nn.Linear(width, width, bias=False), heads

    def forward(self, x, memory):
        x = x + self.attention(self.norm1(x))
        (b, n, w), m = x.shape, memory.shape[1]
        q = self.query(self.norm3(x)).view(b, n, self.heads, -1).transpose(1, 2)
        k, v = self.both(memory).view(b, m, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.back(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, n, w))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Tied(nn.Module):
    """An encoder and a decoder; the words of both, and the head, are one parameter."""

    def __init__(self, words, width, layers, heads):
        super().__init__()
        self.word, self.norm, self.layers = nn.Embedding(words, width), nn.LayerNorm(width), layers
        self.blocks = nn.ModuleList([*(GPTBlock(width, heads) for _ in range(layers)), *(Crossed(width, heads) for _ in range(layers))])

    def forward(self, x, again):
        run = (lambda block, *x: checkpoint(block, *x, use_reentrant=False, preserve_rng_state=False)) if again else (lambda block, *x: block(*x))
        memory, made = self.word(x), self.word(x.flip(1))
        for block in self.blocks[:self.layers]:
            memory = run(block, memory)
        for block in self.blocks[self.layers:]:
            made = run(block, made, memory)
        return F.linear(self.norm(made), self.word.weight)


def of_words(length):
    return lambda: (torch.zeros(1, length, dtype=torch.long), torch.zeros(1, length, dtype=torch.long))


MODELS = {  # what makes it, and a batch
    "gpt": (lambda: Words(GPTBlock, 32000, 4096, 16, 32), of_words(4096)),
    "llama": (lambda: Words(LlamaBlock, 32000, 4096, 32, 32), of_words(4096)),
    "small": (lambda: Words(GPTBlock, 2000, 1024, 4, 8), of_words(512)),
    "experts": (lambda: Sparse((0, 8, 0, 32, 0, 16, 0, 64), 32000, 2048, 16), of_words(4096)),
    "pictures": (lambda: Pictures(256, (2, 3, 4, 2)), lambda: (torch.zeros(32, 3, 224, 224, dtype=torch.bfloat16), torch.zeros(32, 1, dtype=torch.long))),
    "tied": (lambda: Tied(32000, 2048, 6, 16), of_words(4096))}


# ---- Graphs ----

class Record(SimpleNamespace):
    __hash__, __eq__ = object.__hash__, object.__eq__


def shard_of(name, tensor, ranks):
    first = -(-tensor.shape[0] // ranks)
    size = torch.Size((first, *tensor.shape[1:]))
    data = SimpleNamespace(dtype=torch.float32, device=torch.device("cpu"))
    return Record(name=name, dimension=0, size=tensor.shape, dtype=torch.bfloat16, part=size.numel(), own_size=size,
                  parameter=SimpleNamespace(dtype=torch.float32), data=data)


def captured(model_name, ranks, shared, replicas, again):
    """The step of one rank: bf16 parameters gathered of float32 parts, gradients reduced as float32."""
    make, batch = MODELS[model_name]
    with FakeTensorMode(allow_non_fake_inputs=True):
        model = make()
        names, wholes = zip(*((n, p.detach().bfloat16()) for n, p in model.named_parameters()))
        x, y = batch()

        def step(x, y, *parameters):
            own = [p.detach().requires_grad_() for p in parameters]
            with torch.enable_grad(), _reparametrize_module(model, dict(zip(names, own))):  # in the backward pass, too
                out = model(x, again)
                loss = F.cross_entropy(out.flatten(0, 1).float(), y.flatten())
                gradients = torch.autograd.grad(loss, own)
            return [loss.detach(), *gradients]

        module = make_fx(step, tracing_mode="real")(x, y, *wholes)
    made = Captured(module, [("x", "input"), ("y", "input"), *((n, "parameter") for n in names)], 1,
                    list(range(2, 2 + len(names))))
    shards, units = {}, {}
    for name, whole in zip(names, wholes):
        shards[name] = shard_of(name, whole, ranks)
        unit = ".".join(name.split(".")[:2]) if name.startswith("blocks") else name.split(".")[0].replace("norm", "head")
        units.setdefault(unit, []).append(shards[name])
    units = [SimpleNamespace(name=name, ranks=ranks, process_group=shared, replicas=replicas, shards=own,
                             reduction=Reduction(torch.float32, None, "avg", None)) for name, own in units.items()]
    return gathering.sharded(made, units, [None, None, *shards.values()]), units


def flops(node):
    if isinstance(node.target, Kernel):
        return 0
    value = lambda n: n.meta["val"] if isinstance(n, torch.fx.Node) else n  # noqa: E731
    args = torch.utils._pytree.tree_map(value, node.args)
    packet, name = node.target._overloadpacket, node.target._schema.name
    if "flash_attention_for_cpu" in name:
        b, h, n, d = args[1 if "backward" in name else 0].shape
        return 4 * b * h * n * n * d // 2 * (5 if "backward" in name else 2) // 2
    return flop_registry[packet](*args, **node.kwargs, out_val=node.meta["val"]) if packet in flop_registry else 0


def lowered_of(model, ranks, again=False, replicas=1):
    """ranks: that share parameters; so many replicas of them, on other nodes."""
    mesh = init_device_mesh("cpu", (replicas, ranks), mesh_dim_names=("replicas", "ranks"))
    others = mesh.get_group("replicas") if replicas > 1 else None
    made, units = captured(model, ranks, mesh.get_group("ranks"), others, again)
    lowered = Lowered(made, torch.device("cpu"))
    lowered.become(lowered.results[0], "output")
    roots = [lowered.root(lowered.value[n]) for n in lowered.module.graph.find_nodes(op="placeholder")][2:]
    gradients = [lowered.become(n, "gradient") for n in lowered.results[1:]]
    names = [name for name, _ in made.inputs[2:]]
    last = {lowered.storages[s].root: i for i, op in enumerate(lowered.ops) for s in op.inputs + op.outputs}
    added = {}
    for unit in units:
        mine = [i for i, name in enumerate(names) if any(s.name == name for s in unit.shards)]
        at = max(last[r] for i in mine for r in (gradients[i], roots[i]))
        states = [lowered.storage(f"{names[i]}.{m}", lowered.storages[roots[i]].size, "optimizer_state") for i in mine for m in "mv"]
        lowered.persistent.update((s, None) for s in states)
        written = [roots[i] for i in mine] + states
        op = Op(f"update.{unit.name}", "optimizer.AdamW", [gradients[i] for i in mine] + written,
                [lowered.write(r, "updated") for r in written])
        op.run = True
        added.setdefault(at, []).append(op)
    lowered.ops = [o for i, op in enumerate(lowered.ops) for o in (op, *added.get(i, ()))]
    ShardedStep.divide(SimpleNamespace(streams=STREAMS), lowered)
    for op in lowered.ops:
        latency, bandwidth = NETWORKS[256 if others is not None and op.group == others.group_name else ranks]
        size = sum(lowered.storages[s].size for s in {*op.inputs, *op.outputs})
        op.cost = round(1e9 * (latency + collectives.received(lowered, op) / bandwidth)) if op.group else (
            round(1e9 * max((flops(op.node) if op.node is not None else 0) / FLOPS, size / MEMORY)) + LAUNCH)
    return lowered


# ---- Rows ----

def planned(lowered, schedule, budget=None):
    lowered.ops = schedule.ops
    return tarn.plan(lowered.graph("step", STREAMS, (), schedule.control), alignment=ALIGNMENT, budget=budget)


def row(name, plan, took=None):
    ops = list(plan.graph.ops)
    gathers = [op for op in ops if "all_gather" in op.kind]
    units = len({op.name.rstrip("'") for op in gathers})
    again = sum(op.cost for op in ops if (plan.is_recomputed(op.id) or op.name[-1] == "'") and op.stream == 0)
    print(f"| {name} | {plan.footprint / 2**30:.2f} | {makespan(plan, WAIT) / 1e6:.1f} | {len(gathers) - units} | {again / 1e6:.1f} |"
          + (f" {took:.0f} s |" if took is not None else " |"), flush=True)
    return plan


def main(model, ranks, targets):
    shared, replicas = (8, ranks // 8) if ranks not in NETWORKS else (ranks, 1)
    dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())
    own, again = (lowered_of(model, shared, again, replicas) for again in (False, True))
    source = list(own.ops)
    print(f"{model}, {ranks} ranks, {replicas} replicas, {len(source)} ops\n\n| way | GiB | ms | gathers again | computed again, ms | planned in |\n|---|---|---|---|---|---|")
    ways = {"ZeRO-2": (own, lambda: ahead(own, list(own.ops), 1)),
            "ZeRO-3": (own, lambda: ahead(own, gathered_twice(own, own.ops), 1)),
            "ZeRO-3, checkpoints": (again, lambda: ahead(again, gathered_twice(again, again.ops), 1))}
    for name, (lowered, way) in ways.items():
        if targets and name not in targets:
            continue
        own.ops = source
        size = row(name, planned(lowered, way())).footprint
        own.ops = source
        begin = time.process_time()
        plan, *_ = fastest(own, size, lambda waits: own.graph("step", STREAMS, (), waits), {"alignment": ALIGNMENT})
        row("Tarn, the same bytes", plan, time.process_time() - begin)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
