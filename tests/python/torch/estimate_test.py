"""tarn.torch.estimate: against what tarn.torch.step plans on the CPU, autograd's own backward pass, and PyTorch's rules for
GPUs. No GPU is needed. TAP on stdout.

    tests/with_torch.sh tests/python/torch/estimate_test.py [NAMES...]"""
import contextlib
import io
import json
import os
import random
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from pathlib import Path
from unittest import mock

import torch
import torch.nn.functional as F
from cases import raises, run
from networks import loss_of, make
from stand_in import run_without_a_gpu
from torch import nn
from torch.utils.checkpoint import checkpoint

import tarn
import tarn.torch
from tarn.torch.estimating import fakes
from tarn.torch.estimating.backward import Hooks, gradients
from tarn.torch.estimating.caching import Caching
from tarn.torch.estimating.command import main
from tarn.torch.timing import makespan, peak

torch.set_num_threads(1)
warnings.simplefilter("ignore")
MIB = 1 << 20
STANDS_FOR_COMMAND = bool(os.environ.get("TARN_COMMAND"))


def adam(model):
    return torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)


def estimate(model, loss, *batch, device="H100", **options):
    return tarn.torch.estimate(model, options.pop("optimizer", None) or adam(model), loss, batch, device, **options)


def kinds(found):
    return {op.kind for op in found.graph.ops}


def linear(width=256, depth=2):
    with torch.device("meta"):
        return nn.Sequential(*(nn.Linear(width, width) for _ in range(depth)))


def summed(model, x):
    return model(x).square().mean()


def rows(count=64, width=256):
    return torch.zeros(count, width, device="meta")


# ---- Against steps ----

def estimates_for_the_cpu_are_what_a_step_plans():
    for name in ("small_gpt", "small_resnet"):
        (model, batch), options = make(name), {"reorder": name == "small_gpt"}
        optimizer, example = adam(model), batch()
        step = tarn.torch.step(model, optimizer, loss_of, example, **options)
        found = tarn.torch.estimate(model, optimizer, loss_of, example, "cpu", **options)
        # by modelled workspaces other updates may run as one
        kinds = [[op.kind for op in graph.ops if not op.kind.startswith("optimizer.")] for graph in (found.graph, step.graph)]
        assert kinds[0] == kinds[1]
        assert abs(found.arena / step.plan.footprint - 1) < 0.02, (name, found.arena, step.plan.footprint)


def a_profile_of_a_step_gives_its_plan():
    for name in ("small_gpt", "small_resnet"):
        model, batch = make(name)
        optimizer, example = adam(model), batch()
        step = tarn.torch.step(model, optimizer, loss_of, example)
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "profile.json")
            step.profile.save(path)
            assert tarn.torch.Profile.load(path).entries == step.profile.entries
            for profile in (path, str(path), step, step.profile):
                found = tarn.torch.estimate(model, optimizer, loss_of, example, "cpu", profile=profile)
                assert found.arena == step.plan.footprint
                alone = sum(entry.times for entry in step.profile.entries.values())  # updates, too
                assert len(found.graph.ops) <= alone and f"{alone} ops have costs" in found.notes[-1], found.notes
                assert " 0 are modelled" in found.notes[-1], found.notes
        mean = sum(op.cost for op in step.graph.ops) / 1e9
        assert abs(sum(op.cost for op in found.graph.ops) / 1e9 / mean - 1) < 1e-3
        larger = tarn.torch.estimate(model, optimizer, loss_of, [torch.cat([t, t]) for t in example], "cpu", profile=step)
        assert " 0 are modelled" not in larger.notes[-1]


def damaged_profiles_name_the_place():
    good = {"format": "tarn.profile", "version": 1, "ops": {"aten.mm.default()": {"seconds": 1.0, "workspace": 0, "times": 1}}}
    faults = [("{", "no JSON"), ("[]", "/format"), (json.dumps({**good, "format": "tarn.plan"}), "/format"), (json.dumps({**good, "version": 2}), "/version"),
              (json.dumps({**good, "ops": []}), "/ops"), (json.dumps({**good, "ops": {"x": 3}}), "/ops/x/seconds")]
    for name, value in (("seconds", -1), ("seconds", "1"), ("seconds", True), ("workspace", 1.5), ("workspace", -1), ("times", None), ("times", 1 << 60)):
        entry = {"seconds": 1.0, "workspace": 0, "times": 1, name: value}
        faults.append((json.dumps({**good, "ops": {"x": entry}}), f"/ops/x/{name}"))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "profile.json")
        for text, place in faults:
            path.write_text(text, encoding="utf-8")
            assert place in str(raises(tarn.BadInput, tarn.torch.Profile.load, path)), text
        raises(FileNotFoundError, estimate, linear(), summed, rows(), profile=Path(folder, "other.json"))


# ---- The backward pass ----

class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(x, y)
        return x * y, x + y

    @staticmethod
    def backward(ctx, first, second):
        x, y = ctx.saved_tensors
        return first * y + second, first * x + second


def _random_loss(draw, leaves):
    """Of random ops; some tensors are used several times, some never, some by views."""
    known = list(leaves)
    for _ in range(draw.randint(1, 14)):
        one, other = draw.choice(known), draw.choice(known)
        made = draw.choice((lambda a, b: a * b, lambda a, b: a + b.t(), lambda a, b: a @ b, lambda a, b: Twice.apply(a, b)[draw.randint(0, 1)],
                            lambda a, b: torch.cat([a[:2], b[2:]]), lambda a, b: checkpoint(lambda x: x.sin() * b, a, use_reentrant=False),
                            lambda a, b: a.unbind()[0] + b, lambda a, b: torch.where(a > b, a, b.detach()), lambda a, b: F.softmax(a, -1)))(one, other)
        if draw.random() < 0.3 and made.requires_grad:
            made.register_hook(lambda g: g * 2 if draw is not None else g)
        known.append(made)
    return sum(t.sum() for t in known[-2:])


def gradients_are_those_of_autograd():
    for seed in range(150):
        results = []
        for ours in (False, True):
            draw = random.Random(seed)
            torch.manual_seed(seed)
            leaves = [torch.randn(4, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
            leaves[0].register_hook(lambda g: g + 1)
            hooks = Hooks()
            if not ours:
                loss = _random_loss(draw, leaves)
                results.append(torch.autograd.grad(loss, leaves, allow_unused=True) if loss.requires_grad else [None] * 3)
                continue
            leaves = [t.detach().requires_grad_() for t in leaves]
            with hooks.recorded():
                leaves[0].register_hook(lambda g: g + 1)
                loss = _random_loss(draw, leaves)
            with torch.autograd.set_multithreading_enabled(False), _in_a_graph_task():
                results.append(gradients(loss, leaves, hooks))
        for expected, found in zip(*results):
            assert (expected is None) == (found is None), seed
            assert expected is None or torch.allclose(expected, found, rtol=1e-12), seed


def _in_a_graph_task():
    return mock.patch("torch._C._current_graph_task_id", lambda: 1)


# ---- What a GPU would choose ----

def _attended(width=64, dtype=torch.bfloat16, heads=4, others=None, mask=None, causal=True, device="H100", words=128):
    """The kinds of ops of attention."""
    q = torch.zeros(2, heads, words, width, dtype=dtype, device="meta")
    k = torch.zeros(2, others or heads, words, width, dtype=dtype, device="meta")

    def loss(model, q, k):
        made = F.scaled_dot_product_attention(model(q), k, k, attn_mask=None if mask is None else mask(q), is_causal=causal and mask is None,
                                              enable_gqa=others is not None)
        return made.square().mean()

    with torch.device("meta"):
        model = nn.Linear(width, width).to(dtype)
    found = kinds(estimate(model, loss, q, k, device=device))
    return {kind for kind in ("cudnn", "flash", "efficient") if f"aten._scaled_dot_product_{kind}_attention" in found} or {"math"}


def attention_is_computed_by_the_kernel_of_the_gpu():
    full = lambda q: torch.zeros(q.shape[-2], q.shape[-2], dtype=q.dtype, device=q.device)
    for expected, given in [("cudnn", {}), ("cudnn", {"device": "B200"}), ("flash", {"device": "A100"}), ("flash", {"device": "mi300x"}),
                            ("efficient", {"dtype": torch.float32}), ("math", {"dtype": torch.float64}), ("flash", {"width": 160}),
                            ("cudnn", {"others": 2}), ("math", {"others": 2, "dtype": torch.float32}), ("cudnn", {"mask": full}),
                            ("efficient", {"mask": full, "device": "A100"}), ("flash", {"width": 20, "device": "A100"}), ("math", {"width": 257}),
                            ("cudnn", {"dtype": torch.float16}), ("efficient", {"width": 288}), ("math", {"width": 18, "dtype": torch.float32})]:
        assert _attended(**given) == {expected}, (expected, given, _attended(**given))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        assert _attended() == {"math"}
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.EFFICIENT_ATTENTION):
        assert _attended() == {"efficient"}


def autocast_and_batch_norm_are_those_of_a_gpu():
    def loss(model, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            made = model(x)
        assert made.dtype == torch.bfloat16
        return made.float().mean()

    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
        with_norm = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8))
    assert "aten._to_copy" in kinds(estimate(model, loss, torch.zeros(2, 3, 8, 8)))
    if torch.version.cuda:
        found = estimate(with_norm, lambda model, x: model(x).mean(), torch.zeros(2, 3, 8, 8))
        assert "aten.cudnn_batch_norm" in kinds(found), kinds(found)


def optimizers_take_what_they_take_on_a_gpu():
    """By hand: of n bytes of parameters, Adam keeps 2 n; for many tensors at once PyTorch alone takes n beside, one by one less."""
    size = 8 * (1024 * 1024 + 1024) * 4
    for options, least, most in (({"fused": True}, 0, 0), ({"foreach": True}, size, 2 * size), ({"foreach": False}, 4 << 20, 24 << 20), ({}, size, 2 * size)):
        model = linear(1024, 8)
        found = estimate(model, summed, torch.zeros(1, 1024), optimizer=torch.optim.AdamW(model.parameters(), **options))
        assert found.persistent["parameter"] == size and 2 * size <= found.persistent["optimizer_state"] <= 2 * size + 16 * 512
        beside = found.eager.alive - size
        assert least <= beside <= most + MIB, (options, beside, least, most)
    for kind in ("Adagrad", "Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop", "Adafactor"):
        model = linear(64, 2)
        assert estimate(model, summed, torch.zeros(1, 64), optimizer=getattr(torch.optim, kind)(model.parameters(), lr=0.1)).persistent["optimizer_state"]
    for fused in (False, True):  # with the state that it has already
        model = nn.Linear(64, 64)
        used = torch.optim.AdamW(model.parameters(), fused=fused)
        fresh = estimate(model, summed, torch.zeros(1, 64), optimizer=used).persistent
        summed(model, torch.ones(1, 64)).backward()
        used.step()
        assert estimate(model, summed, torch.zeros(1, 64), optimizer=used).persistent == fresh
    for layers in (8, 40):  # an update is of 64 MiB at least, and gradients of one are alive at once
        model = linear(1024, layers)
        found = estimate(model, summed, torch.zeros(1, 1024), optimizer=torch.optim.SGD(model.parameters(), 0.1))
        assert "optimizer_state" not in found.persistent and (found.arena < layers * size // 8) == (layers == 40), found


class Halving(torch.optim.Optimizer):
    """Not PyTorch's own, and with temporaries."""
    def __init__(self, parameters):
        super().__init__(parameters, {})

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for p in group["params"]:
                self.state[p].setdefault("mean", torch.zeros_like(p)).lerp_(p.grad, 0.5)
                p.sub_(self.state[p]["mean"] * 0.5)


def optimizers_of_users_and_clipping_take_memory_beside_the_arena():
    size, model = (1024 * 1024 + 1024) * 4, linear(1024, 1)
    found = estimate(model, summed, rows(1, 1024), optimizer=Halving(model.parameters()))
    assert found.persistent["optimizer_state"] == size and 4 * MIB <= found.heap <= 5 * MIB
    assert found.total == found.stays + found.heap + found.arena
    model = linear(64, 2)
    clipped = estimate(model, summed, rows(1, 64), clip=lambda ps: nn.utils.clip_grad_norm_(ps, 1.0))
    assert 0 < clipped.heap < 1 << 17 and "clip" in kinds(clipped)
    model[0].weight.register_post_accumulate_grad_hook(lambda p: p.grad.mul_(torch.ones_like(p.grad)))
    assert estimate(model, summed, rows(1, 64)).heap == 64 * 64 * 4


# ---- Programs ----

def values_that_follow_from_shapes_may_be_looked_at():
    def loss(model, x):
        places = torch.arange(x.shape[0], device=x.device)
        mask = torch.ones(4, 4, dtype=torch.bool, device=x.device).tril()
        places += 1
        assert places.max().item() == x.shape[0] and places.tolist()[0] == 1 and not mask.all() and mask[0, 0]
        assert torch.tensor([1.5, 2.5], device=x.device).sum() == 4 and torch.equal(places, places.clone())
        assert not isinstance(places, torch._subclasses.FakeTensor) and isinstance(x, torch._subclasses.FakeTensor)
        places.copy_(x[:, 0].long())
        assert isinstance(places, torch._subclasses.FakeTensor)
        return model(x).mean() + torch.zeros([], device=x.device)

    assert estimate(linear(), loss, rows()).arena


REFUSED = [
    ("the value of a tensor", lambda model, x: summed(model, x) * (2 if x.sum() > 0 else 3)),
    ("the value of a tensor", lambda model, x: summed(model, x) / x.sum().item()),
    ("the value of a tensor", lambda model, x: summed(model, x) * (1.0 if torch.equal(x, x + 1) else 2.0)),
    ("the value of a tensor", lambda model, x: summed(model, x) * (1.0 if torch.zeros(3, device=x.device).copy_(x[0, :3]).any() else 2.0)),
    ("a shape depends on data", lambda model, x: model(x)[x > 0].sum()),
    ("backward pass itself", lambda model, x: torch.autograd.grad(summed(model, x), list(model.parameters()), create_graph=True)[0].sum()),
    ("backward pass itself", lambda model, x: (summed(model, x).backward(), summed(model, x))[1]),
    ("fails on fake tensors: RuntimeError", lambda model, x: torch.as_tensor(model(x).detach().numpy()).sum()),
    ("returned no tensor", lambda model, x: None),
    ("use_reentrant=False", lambda model, x: checkpoint(model, x, use_reentrant=True).sum()),
    ("not a scalar", lambda model, x: model(x)),
    ("requires a gradient", lambda model, x: summed(model, x * LOOSE)),
]
LOOSE = torch.ones(256, requires_grad=True)


def what_cannot_be_captured_is_refused_with_the_reason_and_the_place():
    for why, loss in REFUSED:
        told = str(raises(tarn.BadInput, estimate, linear(), loss, rows()))
        assert why in told and ("estimate_test.py, line" in told or why in ("not a scalar", "returned no tensor")), (why, told)
    model = linear()
    model[0].register_full_backward_hook(lambda *_: None)
    assert "module 0 has backward hooks" in str(raises(tarn.BadInput, estimate, model, summed, rows()))
    model = linear()
    assert "LBFGS" in str(raises(tarn.BadInput, estimate, model, summed, rows(), optimizer=torch.optim.LBFGS(model.parameters())))
    if not torch.cuda.is_available():
        with torch.device("meta"):
            model = nn.LSTM(8, 8)
        assert "asks the GPU itself" in str(raises(tarn.BadInput, estimate, model, lambda m, x: m(x)[0].sum(), torch.zeros(4, 2, 8)))


def an_old_pytorch_needs_a_gpu():
    with mock.patch.object(fakes, "NEEDS_A_GPU", True), mock.patch("torch.cuda.is_available", lambda: False):
        error = raises(tarn.BadInput, estimate, linear(), summed, rows())
        assert f"PyTorch {torch.__version__} can trace steps of a GPU only where there is one" in str(error)
        assert estimate(linear(), summed, rows(), device="cpu").arena > 0


def compiled_models_are_the_same_steps():
    model = linear()
    assert estimate(torch.compile(model), summed, rows(), optimizer=adam(model)).arena == estimate(model, summed, rows()).arena


def a_program_is_left_as_it_was():
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    optimizer, before = adam(model), {name: t.clone() for name, t in model.state_dict().items()}

    def loss(model, x):
        model.seen = model(x)
        return model.seen.sum(), {"seen": model.seen}

    x = torch.randn(4, 8)
    torch.manual_seed(3)
    drawn = torch.rand(3)
    torch.manual_seed(3)
    for device in ("H100", "cpu"):
        tarn.torch.estimate(model, optimizer, loss, x, device)
    assert torch.equal(torch.rand(3), drawn)
    assert not hasattr(model, "seen") and not optimizer.state and all(p.grad is None for p in model.parameters())
    assert all(torch.equal(t, before[name]) and t.device.type == "cpu" for name, t in model.state_dict().items())
    assert type(torch.empty(1)) is torch.Tensor and F.scaled_dot_product_attention(*[torch.ones(1, 1, 4, 4)] * 3).shape == (1, 1, 4, 4)


def tensors_from_anywhere_stand_on_the_device():
    table, criterion = torch.ones(256), nn.CrossEntropyLoss(weight=torch.ones(256))
    heat = nn.Parameter(torch.ones(()))
    model = linear()
    optimizer = torch.optim.AdamW([*model.parameters(), heat])

    def loss(model, x, y):
        return criterion(model(x * table) * heat.exp(), y) + 0 * heat

    batch = (torch.zeros(64, 256), torch.zeros(64, dtype=torch.long))
    for device in ("H100", "cpu"):
        with torch.device("meta"):
            found = tarn.torch.estimate(model, optimizer, loss, batch, device)
        assert found.persistent["parameter"] >= 2 * (256 * 256 + 256) * 4 + 4 and found.persistent["input"] >= 64 * 256 * 4 + 2 * 1024


def tied_and_shared_tensors_count_once():
    with torch.device("meta"):
        model = nn.ModuleDict({"words": nn.Embedding(1000, 64), "head": nn.Linear(64, 1000, bias=False)})
    model["head"].weight = model["words"].weight
    loss = lambda model, x: F.cross_entropy(model["head"](model["words"](x)).flatten(0, 1), x.flatten())
    assert estimate(model, loss, torch.zeros(4, 16, dtype=torch.long)).persistent["parameter"] == 1000 * 64 * 4
    whole = torch.zeros(128, 256, device="meta")
    halves = estimate(linear(), lambda model, x, y: summed(model, x) + summed(model, y), whole[:64], whole[64:])
    assert halves.persistent["input"] == whole.nbytes


def checkpoints_are_computed_again():
    def checked(model, x):
        for part in model:
            x = checkpoint(part, x, use_reentrant=False)
        return x.sum()

    with torch.device("meta"):
        model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 1024), nn.GELU(), nn.Linear(1024, 64)) for _ in range(6)))
    plain, again = (estimate(model, loss, rows(512, 64)) for loss in (lambda m, x: m(x).sum(), checked))
    assert again.arena < 0.5 * plain.arena and len(again.graph.ops) > len(plain.graph.ops) and not again.notes
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Dropout(0.1)) for _ in range(2)))
    assert "draws random numbers again" in " ".join(estimate(model, checked, rows(512, 64)).notes)


def nothing_of_the_size_of_a_model_is_allocated():
    program = """
        import resource, torch, tarn.torch
        with torch.device("meta"):
            model = torch.nn.Sequential(*(torch.nn.Linear(60000, 60000, bias=False) for _ in range(8)))
            x = torch.zeros(4096, 60000)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        found = tarn.torch.estimate(model, torch.optim.AdamW(model.parameters(), fused=True), lambda m, x: m(x).mean(), x)
        assert found.persistent["parameter"] == 8 * 60000**2 * 4 and not found.fits and found.fitting is None
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 600 << 10
        assert "devices hold it" in str(found), found"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True)


# ---- The answer ----

def wide(rows_count=8192):
    """Most of its memory is activations that are cheap to compute again."""
    with torch.device("meta"):
        model = nn.Sequential(*(nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 256)) for _ in range(6)))
    return model, summed, torch.zeros(rows_count, 256, device="meta")


def answers_say_how_near_a_step_is_to_the_memory():
    model, loss, x = wide()
    whole = estimate(model, loss, x)
    kept = whole.total
    for memory, expected in ((kept, "fits barely"), (kept - 1, "does not fit"), (int(kept / 0.9701), "fits barely"), (int(kept / 0.9698), "fits")):
        found = estimate(model, loss, x, memory=memory)
        assert found.verdict == expected and found.fits == (expected != "does not fit"), (memory, found.verdict)
    tight = whole.stays + whole.arena // 2
    found = estimate(model, loss, x, memory=tight)
    assert not found.fits and found.fitting.footprint <= whole.arena // 2 and found.overhead(found.fitting) > 0
    assert "budget that fits" in str(found) and found.as_dict()["fitting"]["total_bytes"] <= tight
    fit = estimate(model, loss, x, memory=tight, budget="fit")
    assert fit.fits and fit.arena <= whole.arena // 2 and fit.as_dict()["recomputed_ops"] > 0 and fit.overhead() > 0
    hopeless = estimate(model, loss, x, memory=whole.stays + MIB, budget="fit")
    assert not hopeless.fits and hopeless.fitting is None and hopeless.arena == whole.least.footprint and "smallest arena found" in str(hopeless)
    assert estimate(model, loss, x, memory=whole.stays // 2, budget="fit").verdict == "does not fit"


def budgets_are_those_of_a_step():
    model, loss, x = wide()
    whole = estimate(model, loss, x, reorder=True)
    half = estimate(model, loss, x, reorder=True, budget=0.5)
    assert half.arena <= 0.5 * whole.arena + 1 and half.plan.identity == whole.planned(0.5).identity == whole.planned("50%").identity
    assert estimate(model, loss, x, budget=half.arena, reorder=True).arena <= half.arena
    least = whole.least
    assert least.footprint < half.arena
    raises(tarn.DoesNotFit, estimate, model, loss, x, budget=1000, reorder=True)
    assert 0 < whole.overhead(half.plan) < whole.overhead(least)


def streams_and_ranks_are_options():
    model, loss, x = wide(512)
    one, two = (estimate(model, loss, x, streams=n) for n in (1, 2))
    assert len(two.plan.graph.streams) == 2 and makespan(two.plan) <= makespan(one.plan)
    ranks = estimate(model, loss, x, ranks=8, bucket_mb=1)
    reductions = [op for op in ranks.graph.ops if op.kind == "comm.all_reduce"]
    size = sum(p.nbytes for p in model.parameters())
    assert ranks.graph.streams == ["compute", "communication"] and len(reductions) > 2 and ranks.graph.groups
    link = tarn.torch.estimate(model, adam(model), loss, x, "H100").device.link
    assert abs(sum(op.cost for op in reductions) / 1e9 - (2 * size * 7 / 8 / link + len(reductions) * 4e-6)) < 1e-6
    assert ranks.eager.held > one.eager.held and makespan(ranks.plan) > 0
    raises(tarn.UsageError, estimate, model, loss, x, ranks=2, streams=2)


def a_makespan_is_the_longest_path():
    b = tarn.Builder("three")
    first, second = b.stream("a"), b.stream("b")
    x, y, z = (b.tensor(name, 64) for name in "xyz")
    b.op("p", first, [], [x], cost=5)
    b.op("q", second, [], [y], cost=7)
    b.op("r", first, [], [z], cost=20)
    b.op("s", second, [x, y], [], cost=1)
    b.op("t", first, [z, y], [], cost=2)
    graph = b.finish()
    assert makespan(tarn.plan(graph)) == 27
    found = peak(graph)
    assert found.size == 192 and found.op == "r" and set(found.makers) == {("p", 1, 64), ("q", 1, 64), ("r", 1, 64)}


def devices_are_found_by_name_or_given():
    model, loss, x = linear(), summed, rows()
    for name in ("h100", "H200", "b200", "a100", "A100-80GB", "a100_40gb", "mi300x", "cpu"):
        assert estimate(model, loss, x, device=name).device.name.upper().startswith(name.upper()[:4].split("_")[0])
    told = raises(tarn.UsageError, estimate, model, loss, x, device="H9000")
    assert "H100" in str(told) and "H9000" in str(told)
    raises(tarn.UsageError, estimate, model, loss, x, memory=0)
    own = tarn.torch.Device("Mine", 4 << 30, 1e9, {"fp32": 1e12}, context=0, libraries=(), call=0, efficiency={"memory": 1.0})
    found = estimate(model, loss, x, device=own)
    assert found.device.usable == 4 << 30 and found.stays == sum(found.persistent.values()) and "Mine" in str(found)
    moved = [op for op in found.graph.ops if op.kind == "aten.pow"][0]
    assert abs(moved.cost - 2 * 64 * 256 * 4) <= 1 or moved.cost == 131072, moved.cost
    assert own.rate("half") == 1e12 and own.rate("fp64") == 0.5e12


def workspaces_may_be_given_by_a_table():
    model, loss, x = linear(), summed, rows()
    plain = estimate(model, loss, x)
    found = estimate(model, loss, x, workspace={"aten::addmm": 64 * MIB, "aten::mm": lambda given: given["self"].numel()})
    assert {op.workspace for op in found.graph.ops if op.kind == "aten.addmm"} == {64 * MIB} and found.arena > plain.arena + 60 * MIB
    assert any(op.workspace == 64 * 256 for op in found.graph.ops if op.kind == "aten.mm")


def the_allocator_of_pytorch_keeps_its_rules():
    memory = Caching()
    block = memory.take(100)
    assert memory.reserved == 2 * MIB and block.size == 512
    memory.take(MIB + 1)
    assert memory.reserved == 22 * MIB
    big = memory.take(29 * MIB + 1)
    assert memory.reserved == 52 * MIB and big.size == 30 * MIB  # less than 1 MiB would be left
    memory.give(big)
    assert memory.take(30 * MIB) is big and memory.reserved == 52 * MIB
    assert memory.take(18 * MIB) and memory.reserved == 52 * MIB  # of what was left of 20 MiB
    for seed in range(30):
        draw, memory, alive = random.Random(seed), Caching(), []
        for _ in range(300):
            if alive and draw.random() < 0.5:
                memory.give(alive.pop(draw.randrange(len(alive))))
            else:
                alive.append(memory.take(int(2 ** draw.uniform(6, 26))))
            ends = sorted((b.address, b.address + b.size) for b in [*alive, *(b for free in memory._free.values() for *_, b in free)])
            assert all(end <= begin for (_, end), (begin, _) in zip(ends, ends[1:])), seed
            assert sum(end - begin for begin, end in ends) == memory.reserved, seed


# ---- The command ----

MODEL = """
    import torch
    def build():
        model = torch.nn.Sequential(*(torch.nn.Linear(512, 512) for _ in range(4)))
        return model, torch.optim.AdamW(model.parameters()), lambda m, x: m(x).mean(), torch.zeros(4096, 512)
    def control():
        model, optimizer, _, x = build()
        return model, optimizer, lambda m, x: m(x).mean() if x.any() else m(x).sum(), x
    def reads():
        rates = [rate.item() for rate in torch.linspace(0, 1, 4)]
        return build()
    def wrong():
        return build()[:2]
    def odd():
        return 1, 2, 3, 4
    def breaks():
        model, optimizer, _, x = build()
        return model, optimizer, lambda m, x: m(x[:, :7]).mean(), x
    def raises():
        return {}["x"]
    def moves():
        torch.zeros(1).cuda()
"""


@contextlib.contextmanager
def _inside(folder):
    before = os.getcwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def the_command_answers_by_its_exit_code():
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "net.py").write_text(textwrap.dedent(MODEL), encoding="utf-8")
        page, graph = Path(folder, "page.html"), Path(folder, "graph.json.gz")

        def call(*words):
            out, err = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _inside(folder):
                try:
                    code = main(list(map(str, words)))
                except SystemExit as end:  # of argparse
                    code = end.code
            return code, out.getvalue(), err.getvalue()

        words = ["net.py:build", "--gpu", "h100", "--save", graph, *(["--show", page] if STANDS_FOR_COMMAND else [])]
        done = subprocess.run([sys.executable, "-m", "tarn.torch.estimate", *map(str, words)], cwd=folder, capture_output=True, text=True, check=False)
        code, out = done.returncode, done.stdout
        assert code == 0 and "PyTorch alone" in out and "fits" in out and tarn.Graph.load(graph).ops
        assert not STANDS_FOR_COMMAND or "<html" in page.read_text(encoding="utf-8")
        code, out, _ = call("net:build", "--gpu", "A100", "--json", "--reorder", "--budget", "90%")
        told = json.loads(out)
        assert code == 0 and told["format"] == "tarn.estimate" and told["device"] == "A100-80GB" and told["budget"] == 0.9
        assert told["total_bytes"] == told["stays_bytes"] + told["heap_bytes"] + told["arena_bytes"] and told["fits"] == "fits"
        assert call("net.py:build", "--memory", "600MiB")[0] == 1
        assert call("net.py:build", "--budget", "1KiB")[0] == 1
        assert call("net.py:reads", "--real")[0] == 0
        for words, code, why in [(["net.py:control"], 3, "control flow"), (["net.py:reads"], 2, "--real"), (["net.py:wrong"], 2, "has to return"),
                                 (["net.py:odd"], 2, "has to return"), (["net.py:nothing"], 2, "no function nothing"), (["net.py"], 2, "names no function"),
                                 (["other.py:build"], 8, "other.py"), (["net.py:build", "--gpu", "X"], 2, "not known"), (["net.py:build", "--budget", "0%"], 2, "share"),
                                 (["net.py:build", "--memory", "many"], 2, "no size"), (["net.py:build", "--ranks", "0"], 2, "no number"),
                                 (["net.py:build", "--profile", "net.py"], 3, "no JSON"), (["net.py:build", "--save", "no/such/graph.json"], 8, "no/such"),
                                 (["net.py:breaks"], 3, "fails on fake tensors: RuntimeError"), (["net.py:raises"], 3, "fails: KeyError"),
                                 (["net.py:moves"], 2, "--real" if torch.cuda.is_available() else "leave out .cuda()"), (["net.py:build", "--ranks", "2", "--streams", "2"], 2, "not both")]:
            found = call(*words)
            assert found[0] == code and why in found[2], (words, found)


def the_module_of_the_command_is_called_like_the_function():
    program = """
        import torch, tarn.torch, tarn.torch.estimate
        from tarn.torch import estimate
        model = torch.nn.Linear(4, 4)
        for function in (tarn.torch.estimate, estimate):
            assert function(model, torch.optim.SGD(model.parameters(), 0.1), lambda m, x: m(x).sum(), torch.zeros(2, 4)).fits"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", textwrap.dedent(program)], check=True)


def what_the_page_shows_works():
    page = (Path(__file__).parents[3] / "docs/estimate.md").read_text(encoding="utf-8")
    blocks = [textwrap.dedent(block) for block in re.findall(r"(?<=\n\n)(?:    .*\n|\n(?=    ))+", page)]
    code, profile = blocks[0], [block for block in blocks if "step.profile.save" in block][0]
    told, names = io.StringIO(), {}
    with tempfile.TemporaryDirectory() as folder, _inside(folder), contextlib.redirect_stdout(told):
        exec(code, names)  # pylint: disable=exec-used
        assert Path("step.json.gz").exists() and "PyTorch alone" in told.getvalue() and names["found"].verdict == "fits"
        model, batch = make("small_gpt")
        names = {"tarn": tarn, "model": model, "larger": model, "optimizer": adam(model), "loss_fn": loss_of, "batch": batch()}
        exec(profile, names)  # pylint: disable=exec-used
        assert "costs of the profile of cpu" in names["found"].notes[-1]


TESTS = [value for name, value in list(vars().items()) if getattr(value, "__module__", None) == "__main__" and callable(value)
         and not name.startswith("_") and not isinstance(value, type)
         and name not in ("adam", "estimate", "kinds", "linear", "summed", "rows", "wide")]  # helpers

if __name__ == "__main__":
    if fakes.NEEDS_A_GPU and not torch.cuda.is_available():  # no_gpu.c is enough
        sys.exit(run_without_a_gpu([__file__, *sys.argv[1:]]))
    run([test for test in TESTS if set(sys.argv[1:]) <= {"-v"} or test.__name__ in sys.argv[1:]])
