"""tarn.torch.step in training scripts that change something between steps or within them: each runs
eagerly and planned, and all that it returns and leaves is compared bit by bit. TAP on stdout.

    tests/with_torch.sh tests/python/torch/scripts_test.py [fuse] [NAMES...]

fuse: with fused kernels, which round otherwise: results differ by rounding only, and who runs eagerly or unfused says why."""
import collections
import copy
import functools
import logging
import sys
import types
import warnings

import torch
import torch.nn.functional as F
from cases import run
from networks import OLDER
from torch import nn
from torch.utils.checkpoint import checkpoint

import tarn.torch
from tarn.torch import stepping
from tarn.torch.variant import COMPARED

STEPS, FUSES = 6, "fuse" in sys.argv
torch.set_num_threads(1)
LOG = logging.getLogger("tarn.test")
LOG.propagate = False
Pair = collections.namedtuple("Pair", "x y")


class Eager:
    """What tarn.torch.step says that it does."""

    def __init__(self, model, optimizer, loss_fn, _batch, clip=None):
        self.model, self.optimizer, self.loss_fn, self.clip = model, optimizer, loss_fn, clip

    def __call__(self, *batch):
        result = self.loss_fn(self.model, *batch)
        loss = result["loss"] if isinstance(result, dict) else result
        loss.backward()
        if self.clip:
            self.clip([p for p in self.model.parameters() if p.grad is not None])
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach().clone()


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def rows():
    return torch.randn(8, 20), torch.randint(0, 3, (8,))


def images():
    return torch.randn(4, 3, 16, 16), torch.randint(0, 3, (4,))


def mlp():
    return nn.Sequential(nn.Linear(20, 50), nn.GELU(), nn.Dropout(0.2), nn.Linear(50, 3))


def cnn():
    return nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 3))


def state_of(model, optimizer):
    trained = [p for group in optimizer.param_groups for p in group["params"]]
    kept = [v for p in trained for v in optimizer.state[p].values() if torch.is_tensor(v)]
    return [t.detach().clone() for t in [*model.parameters(), *model.buffers(), *trained, *kept]]


class Script:
    """A training script. `before(script, i)` is called before each step, `after(script, i)` behind it; `extra` are tensors
    that are compared, too."""

    def __init__(self, model=mlp, loss=loss_of, batch=rows, optimizer=torch.optim.AdamW, before=None, after=None, prepare=None,
                 clip=None, extra=lambda script: []):
        self.make, self.loss, self.batch, self.before, self.after = model, loss, batch, before, after
        self.make_optimizer, self.prepare, self.clip, self.extra = optimizer, prepare, clip, extra

    def run(self, make_step):
        torch.manual_seed(0)
        self.model, self.beta, self.others = self.make(), 0.0, {}
        self.optimizer = self.make_optimizer(self.model.parameters(), lr=0.1)
        if self.prepare:
            self.prepare(self)
        loss = self.loss.__get__(self) if self.loss.__code__.co_varnames[0] == "self" else self.loss
        self.step = make_step(self.model, self.optimizer, loss, self.batch(), clip=self.clip)
        losses, self.reasons = [], {getattr(self.step, "reason", None)}
        for i in range(STEPS):
            torch.manual_seed(i)
            if self.before:
                self.before(self, i)
            loss = self.step(*self.batch())
            losses.append(loss["loss"] if isinstance(loss, dict) else loss)
            self.reasons.add(getattr(self.step, "reason", None))
            if self.after:
                self.after(self, i)
        return losses + state_of(self.model, self.optimizer) + [t.detach().clone() for t in self.extra(self)]


def compare(captures, why=None, **script):
    """captures: how many are expected; why: what the reason says if it runs eagerly."""
    script = Script(**script)
    expected = script.run(Eager)
    if FUSES:
        return compare_fused(script, expected, why)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = script.run(tarn.torch.step)
    variants, reasons = script.step.variants, " ".join(filter(None, script.reasons))
    assert len(expected) == len(found) and all(map(torch.equal, expected, found)), reasons
    assert len(variants) == captures, (captures, variants, reasons)
    assert (why is None) == (not reasons) and (why or "") in reasons, reasons
    return [str(w.message) for w in told]


def compare_fused(script, expected, why):
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        found = script.run(functools.partial(tarn.torch.step, fuse=True))
    reasons = " ".join(filter(None, script.reasons))
    differences = stepping.distances({"": found}, {"": expected})[""]
    print(f"# {differences:.1e} of the norm, {len(script.step.variants)} captures, {reasons or 'fused'}")
    assert differences <= 1e-2 and bool(reasons) >= bool(why), (differences, reasons)
    return [str(w.message) for w in told]


def thirds(i):
    return i // 2 / 3


# ---- Between steps ----

def what_belongs_to_the_optimizer_is_read_anew():
    def one_cycle(script):
        script.others["schedule"] = torch.optim.lr_scheduler.OneCycleLR(script.optimizer, 0.1, total_steps=10)

    compare(1, prepare=one_cycle, after=lambda script, i: script.others["schedule"].step())

    def add_group(script, i):
        if i == 2:
            script.optimizer.add_param_group({"params": list(script.model[0].parameters()), "lr": 0.01})

    def forget(script, _):
        script.model.zero_grad()

    def last_layer(script):
        script.optimizer.param_groups[0]["params"] = list(script.model[3].parameters())

    compare(2, prepare=last_layer, before=add_group, after=forget)

    def other_layer(script, i):
        script.optimizer.param_groups[0]["params"] = list(script.model[3 if i < 3 else 0].parameters())

    compare(2, optimizer=torch.optim.SGD, prepare=last_layer, before=other_layer, after=forget)


def modules_may_be_frozen_tied_replaced_and_set_to_other_modes():
    compare(2, before=lambda script, i: script.model[0].requires_grad_(i % 3 != 1))
    compare(2, model=cnn, batch=images, before=lambda script, i: script.model.train(i % 3 != 1))
    compare(2, model=cnn, batch=images, before=lambda script, i: i != 3 or script.model.to(memory_format=torch.channels_last))
    compare(3, before=lambda script, i: setattr(script.model[2], "p", 0.1 * (i // 2)))

    def square():
        return nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.Linear(20, 20), nn.Linear(20, 3))

    compare(2, model=square, before=lambda script, i: i != 2 or setattr(script.model[2], "weight", script.model[0].weight))

    def replaces(position, make):
        def before(script, i):
            if i == 2:
                script.model[position] = make()
                script.optimizer.param_groups[0]["params"] = list(script.model.parameters())
        return before

    compare(2, before=replaces(1, nn.Tanh))
    compare(2, before=replaces(3, lambda: nn.Linear(50, 3)))


def gradients_that_are_there_are_added_to():
    compare(1, "gradients before", before=lambda script, i: i % 2 or loss_of(script.model, *rows()).backward())


class Attributes(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.scale, self.unused = mlp(), 1.0, 0
        self.weights, self.options = [torch.ones(3), torch.arange(3.)], {"t": 1.0, "m": torch.ones(3)}

    def forward(self, x):
        return self.body(x) * self.scale * self.weights[0] + self.weights[1] / self.options["t"] * self.options["m"]


def attributes_of_modules_are_read_anew():
    def full(i):
        return torch.full((3,), 1. + i)

    for captures, change in ((3, lambda m, i: setattr(m, "scale", 1.0 + i // 2)),
                             (1, lambda m, i: setattr(m, "unused", i)),
                             (1, lambda m, i: setattr(m, "weights", [full(i), full(1)])),
                             (1, lambda m, i: m.weights.__setitem__(0, full(i))),
                             (1, lambda m, i: m.weights[1].add_(0.5)),
                             (2, lambda m, i: m.options.update(t=1. + i // 3)),
                             (1, lambda m, i: m.options.update(m=full(i))),
                             (2, lambda m, i: i != 2 or m.weights.append(full(1)))):
        compare(captures, model=Attributes, before=lambda script, i, change=change: change(script.model, i))


BETA = 0.0


def global_term(model, x):
    return BETA * model(x).square().mean()


def numbers_of_closures_globals_and_objects_are_read_anew():
    def loss_with(term):
        return lambda model, x, y: loss_of(model, x, y) + term(model, x)

    class Settings(dict):
        def __getattr__(self, name):
            return self[name]

    beta, settings, options = 0.0, Settings(loss=Settings(beta=0.0)), types.SimpleNamespace(beta=0.0, other=0)

    def change(_script, i):
        nonlocal beta
        global BETA  # pylint: disable=global-statement
        BETA = beta = settings["loss"]["beta"] = options.beta = thirds(i)
        options.other = i

    def own(self, model, x, y):  # self: the Script
        return loss_of(model, x, y) + self.beta * model(x).square().mean()

    for term in (lambda model, x: beta * model(x).square().mean(), lambda model, x: settings.loss.beta * model(x).square().mean(),
                 lambda model, x: options.beta * model(x).square().mean(), global_term):
        compare(3, loss=loss_with(term), before=change)
    compare(3, loss=own, before=lambda script, i: setattr(script, "beta", thirds(i)))
    compare(3, loss=lambda model, x, y: criterion(model(x), y), before=lambda _, i: setattr(criterion, "label_smoothing", thirds(i)))
    compare(1, clip=lambda parameters: nn.utils.clip_grad_norm_(parameters, 1 - beta), before=change)


criterion = nn.CrossEntropyLoss()


def tensors_of_the_program_are_read_anew():
    weight = torch.ones(3)

    def draw(_script, i):
        nonlocal weight
        weight = torch.rand(3, generator=torch.Generator().manual_seed(i))

    compare(1, loss=lambda model, x, y: F.cross_entropy(model(x), y, weight=weight), before=draw)

    def with_teacher(self, model, x, y):
        with torch.no_grad():
            told = self.teacher(x)
        return loss_of(model, x, y) + F.mse_loss(model(x), told)

    def hire(script, i=STEPS // 2):
        if i == STEPS // 2:
            script.teacher = copy.deepcopy(script.model)

    def follow(script, _):
        for mine, theirs in zip(script.teacher.parameters(), script.model.parameters()):
            mine.data = 0.9 * mine.data + 0.1 * theirs.data

    compare(1, loss=with_teacher, prepare=hire, after=follow)
    compare(2, loss=with_teacher, prepare=hire, after=hire)

    def followed(self, model, x, y):
        with torch.no_grad():
            for mine, theirs in zip(self.teacher.parameters(), model.parameters()):
                mine.mul_(0.9).add_(theirs, alpha=0.1)
        return loss_of(model, x, y) + F.mse_loss(model(x), self.teacher(x).detach())

    compare(1, OLDER and "different bits" or None, loss=followed, prepare=hire, extra=lambda script: list(script.teacher.parameters()))


def switches_of_pytorch_are_those_of_the_moment():
    def attend(model, x, y):
        q = model[0](x).view(1, 1, 8, 50)
        return F.cross_entropy(model[3](F.scaled_dot_product_attention(q, q, q).view(8, 50)), y)

    def switch(_script, i):
        torch.backends.cuda.enable_flash_sdp(i < 3)

    compare(2, loss=attend, before=switch)
    torch.backends.cuda.enable_flash_sdp(True)


# ---- Hooks ----

def hooks_are_called_and_may_come_and_go():
    def hooked(register):
        def before(script, i):
            if i == 2:
                script.others["hook"] = register(script.model)
            if i == 4:
                script.others["hook"].remove()
        return before

    compare(2, before=hooked(lambda model: model[1].register_forward_hook(lambda _m, _a, y: y * 2)))
    compare(1, "backwards hooks", before=hooked(lambda model: model[3].register_full_backward_hook(lambda _m, g, _o: (g[0] * 0.5,))))
    compare(2, before=hooked(lambda model: model[0].weight.register_hook(lambda g: g * 0.1)))
    compare(2, before=hooked(lambda model: model[0].weight.register_post_accumulate_grad_hook(halve)))
    compare(2, before=hooked(lambda model: model[0].weight.register_post_accumulate_grad_hook(drop)))
    compare(1, "writes to parameters", before=hooked(lambda model: model[0].weight.register_post_accumulate_grad_hook(shrink)))


def halve(parameter):
    parameter.grad.mul_(0.5)


def drop(parameter):
    parameter.grad = None


@torch.no_grad()
def shrink(parameter):
    parameter.mul_(0.9)


def clip(optimizer, _arguments, _named):
    nn.utils.clip_grad_norm_([p for group in optimizer.param_groups for p in group["params"]], 0.1)


class Normed(torch.optim.Optimizer):
    """Looks at all gradients, and counts in an attribute."""

    def __init__(self, parameters, lr):
        super().__init__(parameters, {"lr": lr})
        self.count = 0

    @torch.no_grad()
    def step(self, closure=None):
        self.count += 1
        own = [p for group in self.param_groups for p in group["params"] if p.grad is not None]
        norm = torch.stack([p.grad.square().sum() for p in own]).sum().sqrt()
        for p in own:
            p.sub_(p.grad / norm * self.param_groups[0]["lr"] / self.count)


def optimizers_that_look_at_all_parameters_are_called_once():
    compare(1, optimizer=Normed, extra=lambda script: [torch.tensor(script.optimizer.count)])
    compare(1, prepare=lambda script: script.optimizer.register_step_pre_hook(clip))
    compare(2, before=lambda script, i: i != 2 or script.optimizer.register_step_pre_hook(clip))


# ---- What else changes ----

class Changes(nn.Module):
    def __init__(self, change):
        super().__init__()
        self.body, self.change = mlp(), change
        self.kept, self.mean, self.count = [torch.zeros(3)], {"mean": torch.zeros(3)}, [0]

    def forward(self, x):
        y = self.body(x)
        return y + self.change(self, y)


def appends(module, y):
    module.kept.append(y.detach().mean(0))
    return module.kept[-2]


def averages(module, y):
    module.mean["mean"] = 0.9 * module.mean["mean"] + 0.1 * y.detach().mean(0)
    return module.mean["mean"]


def counts(module, _y):
    module.count[0] += 1
    return module.count[0]


def in_place(module, y):
    return module.kept[0].mul_(0.9).add_(y.detach().mean(0)).clone()


def what_steps_change_in_the_program_is_changed():
    def all_of(script):
        return [*script.model.kept, *script.model.mean.values(), torch.tensor(script.model.count)]

    for change, captures in ((appends, STEPS), (averages, 1), (counts, STEPS), (in_place, 1)):
        compare(captures, model=lambda change=change: Changes(change), extra=all_of)
    seen, count = [], 0

    def counting(model, x, y):
        nonlocal count
        count += 1
        return loss_of(model, x, y) * count

    def logging(model, x, y):
        seen.append(len(x))
        return loss_of(model, x, y)

    def begin(_script):
        nonlocal count
        count = 0

    compare(STEPS, loss=logging)
    assert seen == [8] * 2 * STEPS
    compare(STEPS, loss=counting, prepare=begin)


def parameters_may_be_elsewhere_than_in_the_model():
    def join(script):
        script.head = nn.Linear(3, 3)
        script.optimizer.add_param_group({"params": list(script.head.parameters())})

    def decayed(self, model, x, y):
        return loss_of(model, x, y) + sum(p.square().sum() for p in self.own)

    def alone(script):
        script.head = nn.Linear(3, 3)

    def headed(self, model, x, y):
        return F.cross_entropy(self.head(model(x)), y)

    compare(1, loss=headed, prepare=join)
    compare(0, "requires a gradient", loss=headed, prepare=alone)
    compare(1, "requires a gradient", loss=headed, prepare=alone, before=lambda script, i: script.head.requires_grad_(i < 2))
    compare(1, loss=decayed, prepare=lambda script: setattr(script, "own", list(script.model.parameters())))
    compare(0, "requires a gradient", batch=lambda: (rows()[0].requires_grad_(), rows()[1]))


def steps_that_write_to_the_batch_run_eagerly():
    kept = rows()
    compare(0, "writes to the batch", batch=lambda: kept, prepare=lambda _: kept[0].fill_(1),
            loss=lambda model, x, y: loss_of(model, x.mul_(0.5), y), extra=lambda _: [kept[0]])


def values_on_the_host_run_eagerly_and_unknown_containers_do_not():
    scale = torch.tensor(0.5)
    compare(0, "on the host", loss=lambda model, x, y: loss_of(model, x, y) * scale.item(), before=lambda _, i: scale.fill_(i + 1))
    compare(1, batch=lambda: (collections.UserDict(zip("xy", rows())),), loss=lambda model, b: loss_of(model, b["x"], b["y"]))


# ---- Batches and models of other kinds ----

def batches_are_any_container_and_results_too():
    def loss(model, batch):
        y = model(batch["in"].x)
        return {"loss": F.cross_entropy(y, batch["in"].y), "y": y, "weight": model[0].weight, "count": len(y)}

    compare(1, loss=loss, batch=lambda: ({"in": Pair(*rows())},))


def numbers_of_a_batch_are_told_of():
    numbers = iter(range(100))
    told = compare(STEPS + 1, batch=lambda: (*rows(), 1 + next(numbers) % (STEPS + 1) / 8), loss=lambda m, x, y, w: loss_of(m, x, y) * w)
    assert sum("third time" in text for text in told) == 1, told


class Symmetric(nn.Module):
    def forward(self, weight):
        return weight.triu() + weight.triu(1).t()


def parametrized():
    model = nn.Sequential(nn.Linear(20, 20), nn.Tanh(), nn.utils.parametrizations.spectral_norm(nn.Linear(20, 3)))
    nn.utils.parametrize.register_parametrization(model[0], "weight", Symmetric())
    return model


class Clamp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad * (ctx.saved_tensors[0].abs() < 2)


def clips_weights(model, x, y):
    with torch.no_grad():
        for p in model.parameters():
            p.view(-1)[::2].clamp_(-0.1, 0.1)
    return loss_of(model, x, y)


def with_penalty(model, x, y):
    x = x.clone().requires_grad_()
    result = model(x)
    gradient, = torch.autograd.grad(result.sum(), x, create_graph=True)
    return F.cross_entropy(result, y) + gradient.square().mean()


class Scale(nn.Module):
    """Its weight is read once more when its gradient is there."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(8, 50))

    def forward(self, y):
        return self.weight * y


def flattened():
    """Parameters in one storage."""
    model = nn.Sequential(nn.Linear(20, 50), Scale(), nn.Linear(50, 3))
    flat = nn.utils.parameters_to_vector(model.parameters()).detach()
    nn.utils.vector_to_parameters(flat, model.parameters())
    return model


def with_reentrant_checkpoint(model, x, y):
    return F.cross_entropy(model[3](checkpoint(model[:3], x, use_reentrant=True)), y)


def checkpoints_without_a_gradient_run_eagerly():
    compare(0, "use_reentrant", loss=with_reentrant_checkpoint)


def with_messages(model, x, y):
    LOG.warning("%d rows of %s", len(x), x.dtype)
    warnings.warn("a message", FutureWarning, stacklevel=2)
    return loss_of(model, x, y)


def messages_are_told_in_the_first_steps_of_a_capture():
    records = []
    handler = logging.Handler()
    handler.emit = records.append
    LOG.addHandler(handler)
    compare(1, loss=with_messages)
    LOG.removeHandler(handler)
    assert [record.getMessage() for record in records] == ["8 rows of torch.float32"] * (STEPS + COMPARED)


def doubled_where_compiled(model, x, y):
    return loss_of(model, x, y) * (2 if torch.compiler.is_compiling() else 1)


def asking_the_host_unless_compiled(model, x, y):
    return loss_of(model, x, y) if torch.compiler.is_compiling() or x.sum().item() > -1e9 else None


def other_bits_where_compiled(model, x, y):
    return loss_of(model, x, y) * (2 if torch.compiler.is_compiling() else 1 + (x.sum().item() > 1e9))


def asking_the_host_with_other_bits_where_exported(model, x, y):
    return asking_the_host_unless_compiled(model, x, y) * (2 if torch.compiler.is_exporting() else 1)


def programs_that_ask_whether_they_are_compiled_do_what_eager_ones_do():
    compare(1, loss=doubled_where_compiled)
    compare(1, loss=asking_the_host_unless_compiled)
    compare(1, loss=asking_the_host_with_other_bits_where_exported)
    compare(1, "different bits", loss=other_bits_where_compiled)


def parametrizations_functions_and_penalties_are_planned():
    compare(1, model=flattened)
    compare(1, model=parametrized)
    compare(1, loss=lambda model, x, y: F.cross_entropy(Clamp.apply(model(x)), y))
    compare(1, loss=clips_weights)
    compare(*(0, "requires_grad_") if OLDER else (1,), loss=with_penalty)


TESTS = [value for name, value in list(vars().items())
         if isinstance(value, types.FunctionType) and value.__module__ == "__main__" and "_" in name
         and not value.__code__.co_argcount and name not in ("state_of",)]

if __name__ == "__main__":
    wanted = [word for word in sys.argv[1:] if word != "fuse"]
    run([test for test in TESTS if not wanted or test.__name__ in wanted])
