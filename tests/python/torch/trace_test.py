"""tarn.torch.step where a trace on fake tensors is not what PyTorch does: real strides and types,
batches that are parts of other tensors, layouts that change; and steps that no trace holds, which
have to run eagerly and say why. Everything is compared bit by bit. TAP on stdout.

    tests/with_torch.sh tests/python/torch/trace_test.py [NAMES...]"""
import contextvars
import random
import sys
import warnings

import numpy
import torch
import torch.nn.functional as F
from cases import run
from networks import OLDER, eager_step
from torch import nn
from torch.utils.checkpoint import checkpoint

import tarn.torch
from tarn.torch import masks
from tarn.torch.masks import drop_idle_masks
from tarn.torch.tensors import flat, flattener

STEPS = 5
torch.set_num_threads(1)


def loss_of(model, x, y):
    return F.cross_entropy(model(x), y)


def rows():
    return torch.randn(8, 20), torch.randint(0, 3, (8,))


def images():
    return torch.randn(4, 3, 16, 16), torch.randint(0, 3, (4,))


def larger_images():  # no op's workspace is near the peak
    return torch.randn(8, 3, 32, 32), torch.randint(0, 3, (8,))


def mlp():
    return nn.Sequential(nn.Linear(20, 50), nn.GELU(), nn.Dropout(0.2), nn.Linear(50, 3))


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    numpy.random.seed(number)


def tensors_of(model, optimizer):
    states = [optimizer.state[p].values() for p in model.parameters()]
    return [*model.parameters(), *model.buffers(), *(v for s in states for v in s)]


def compare(make, loss=loss_of, batch=rows, around=None, **options):
    """Runs a network eagerly and planned; returns the step."""
    sides = []
    for _ in range(2):
        seed(0)
        model = make()
        sides.append((model, torch.optim.AdamW(model.parameters())))
    seed(1)
    data = [batch() for _ in range(STEPS)]
    around = around or (lambda function, *arguments: function(*arguments))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step = around(lambda: tarn.torch.step(*sides[1], loss, data[0], **options))
    seed(2)
    found = [around(step, *b) for b in data]
    seed(2)
    (model, optimizer), expected = sides[0], []
    for b in data:
        value = around(loss, model, *b)
        value.backward()
        optimizer.step()
        optimizer.zero_grad()
        expected.append(value.detach())
    assert all(map(torch.equal, found, expected)), (step.reason, found, expected)
    assert all(map(torch.equal, *(tensors_of(*side) for side in sides)))
    return step


def runs_eagerly(why, make, loss=loss_of, batch=rows):
    step = compare(make, loss, batch)
    assert step.graph is None and why in step.reason, step.reason
    return step


# ---- Strides, types, layouts ----

class Experts(nn.Module):
    """The weights of a row's two best experts are gathered; dimensions of one element abound."""

    def __init__(self):
        super().__init__()
        self.gate, self.out = nn.Linear(20, 4), nn.Linear(20, 3)
        self.up = nn.Parameter(torch.randn(4, 20, 40) * 0.1)
        self.down = nn.Parameter(torch.randn(4, 40, 20) * 0.1)

    def forward(self, x):
        share, best = self.gate(x).softmax(-1).topk(2, -1)
        hidden = torch.einsum("bd,bkdh->bkh", x, self.up[best]).relu()
        y = torch.einsum("bkh,bkhd->bkd", hidden, self.down[best])
        return self.out((y * share.unsqueeze(-1)).sum(1))


class ConvNeXt(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.stem, self.deep = nn.Conv2d(3, width, 4, 4), nn.Conv2d(width, width, 7, 1, 3, groups=width)
        self.norm, self.batch = nn.LayerNorm(width), nn.BatchNorm2d(width)
        self.up, self.down = nn.Linear(width, 64), nn.Linear(64, width)
        self.head = nn.Linear(width, 3)

    def forward(self, x):
        x = self.stem(x)
        y = self.norm(self.deep(x).permute(0, 2, 3, 1))
        x = x + self.down(F.gelu(self.up(y))).permute(0, 3, 1, 2)
        return self.head(self.batch(x).mean((2, 3)))


def in_bfloat16(function, *arguments):
    with torch.autocast("cpu", torch.bfloat16):
        return function(*arguments)


def real_strides_and_types_are_bound():
    for options in ({}, {"reorder": True, "budget": 0.95}, {"streams": 2, "couple": True}):
        assert compare(Experts, **{**options, "budget": None}).reason is None
        step = compare(ConvNeXt, lambda *a: in_bfloat16(loss_of, *a).float(), larger_images, **options)
        assert step.reason is None and not step.report().copied
    step = compare(lambda: ConvNeXt().to(memory_format=torch.channels_last), batch=images)
    assert step.reason is None and not step.report().copied


def autocast_around_a_step_is_that_of_the_moment():
    step = compare(ConvNeXt, batch=images, around=in_bfloat16)
    assert step.reason is None
    step(*images())
    assert len(step.variants) == 2


def a_batch_may_be_a_part_of_another_tensor():
    whole, labels = torch.randn(200, 40), torch.randint(0, 3, (8,))

    def part(view):
        places = iter(range(0, 200, 8))
        return lambda: (view(whole[next(places):][:8]), labels)

    views = (lambda x: x[:, :20], lambda x: x[:, 20:], lambda x: x[:, ::2], lambda x: x[:1, :20].expand(8, 20),
             lambda x: x.t()[:20].contiguous().t())
    for view in views:
        step = compare(mlp, batch=part(view))
        assert step.reason is None and len(step.variants) == 1


class Complex(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale, self.out = nn.Parameter(torch.randn(11, dtype=torch.cfloat)), nn.Linear(20, 3)

    def forward(self, x):
        y = torch.fft.fft(x)
        return self.out(torch.fft.irfft(torch.fft.rfft(x) * self.scale, n=20) + (y.conj() * y).real)


class Parts(nn.Module):
    """Parameters without elements, and in one storage."""

    def __init__(self):
        super().__init__()
        flat = torch.randn(63) * 0.1
        self.none = nn.Parameter(torch.empty(0))
        self.weight, self.bias = nn.Parameter(flat[:60].view(3, 20)), nn.Parameter(flat[60:])
        self.factor = nn.Parameter(torch.randn(3))

    def forward(self, x):
        return F.linear(x, self.weight, self.bias) * self.factor + self.none.sum()


def parameters_may_be_complex_empty_and_parts_of_a_storage():
    for make in (Complex, Parts):
        assert compare(make).reason is None
        assert compare(make, reorder=True).reason is None


def parameters_that_join_the_training_are_trained():
    model = mlp()
    optimizer = torch.optim.SGD(model[3].parameters(), 0.1)
    step = tarn.torch.step(model, optimizer, loss_of, rows())
    before = model[0].weight.detach().clone()
    step(*rows())
    assert torch.equal(before, model[0].weight)
    optimizer.add_param_group({"params": list(model[0].parameters())})
    step(*rows())
    assert not torch.equal(before, model[0].weight) and step.reason is None


# ---- What no trace holds ----

class Around(nn.Module):
    """What `change` does to the module and its result."""

    def __init__(self, change):
        super().__init__()
        self.body, self.change = mlp(), change
        self.register_buffer("mean", torch.zeros(3))
        self.last, self.count = torch.zeros(3), 0

    def forward(self, x):
        return self.change(self, self.body(x))


def replaces_a_buffer(module, y):
    module.mean = 0.9 * module.mean + 0.1 * y.detach().mean(0)
    return y - module.mean


def keeps_a_tensor(module, y):
    y, module.last = y + module.last, y.detach().mean(0)
    return y


def counts(module, y):
    module.count += 1
    return y * module.count


def seeds(_module, y):
    torch.manual_seed(4)
    return y + torch.rand(3)


def steps_may_change_more_than_tensors():
    for change, captures in ((replaces_a_buffer, 1), (keeps_a_tensor, 1), (counts, STEPS)):
        step = compare(lambda change=change: Around(change))
        assert step.reason is None and len(step.variants) == captures
        assert step.model.count == (STEPS if change is counts else 0)


def checkpoints_are_kept_unless_they_draw_random_numbers():
    def smooth(y):
        return F.gelu(y).tanh()

    for function in (smooth, F.dropout):
        step = compare(lambda: Around(lambda _, y: checkpoint(function, y, use_reentrant=False)))  # pylint: disable=cell-var-from-loop
        assert step.reason is None
        kinds = [op.kind for op in step.graph.ops]
        assert kinds.count("aten.gelu") == (3 if function is smooth else 1)


class Attending(nn.Module):
    """Looks at a mask where it may: a compiler gets one that masks nothing, and eager execution none."""

    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(20, 60), nn.Linear(20, 3)

    def forward(self, x):
        mask = None
        if torch.compiler.is_compiling():
            mask = (torch.arange(8) >= 0)[None, None, :, None].expand(1, 1, 8, 8)
        else:
            HELD.set(1)  # which Dynamo cannot trace
        q, k, v = (t.reshape(1, 8, 2, 10).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v, mask).transpose(1, 2).reshape(8, 20))


HELD = contextvars.ContextVar("held")


def masks_of_a_compiler_that_mask_nothing_are_dropped():
    step = compare(Attending)
    attention = [op for op in step.graph.ops if "scaled_dot_product" in op.kind and "backward" not in op.kind]
    assert step.reason is None and len(attention) == 1
    assert not [op.kind for op in step.graph.ops if "arange" in op.kind]


def as_traced(function, x):
    graphs = []
    torch._dynamo.reset()
    torch.compile(function, backend=lambda graph, _: graphs.append(graph) or graph.forward, fullgraph=True)(x)
    return graphs[0]


def masks_that_may_mask_are_kept():
    attention = F.scaled_dot_product_attention

    def all_through(x):
        return attention(x, x, x, torch.ones(8, 8, dtype=torch.bool))

    def added_zeros(x):
        return attention(x, x, x, attn_mask=torch.zeros(2, 1, 1, 8).expand(2, 1, 8, 8))

    def shared(x):
        mask = torch.ones(8, 8, dtype=torch.bool)
        return attention(x, x, x, mask) + attention(x, x, x, mask)

    def triangle(x):
        return attention(x, x, x, torch.ones(8, 8, dtype=torch.bool).tril())

    def drawn(x):
        return attention(x, x, x, torch.rand(8, 8) < 2)

    def of_the_batch(x):
        return attention(x, x, x, x[0, 0, :, :8] < 1e9)

    def written(x):
        mask = torch.ones(8, 8, dtype=torch.bool)
        mask[:, 0] = False
        return attention(x, x, x, mask)

    def written_by_the_batch(x):
        mask = torch.ones(8, 8, dtype=torch.bool)
        mask.logical_and_(x[0, 0, :, :8] < 0)
        return attention(x, x, x, mask)

    def used_otherwise(x):
        mask = torch.ones(8, 8, dtype=torch.bool)
        return attention(x, x, x, mask) + mask.sum()

    def larger_batch(x):
        return attention(x[:1], x, x, torch.ones(2, 4, 8, 8, dtype=torch.bool))

    x = torch.randn(2, 4, 8, 16)
    for function, dropped in ((all_through, True), (added_zeros, True), (shared, True), (triangle, False), (drawn, False),
                              (of_the_batch, False), (written, False), (written_by_the_batch, False), (used_otherwise, False),
                              (larger_batch, False)):
        graph = as_traced(function, x)
        drop_idle_masks(graph)
        calls = [node for node in graph.graph.nodes if node.target in masks.ATTENTION]
        given = [node.kwargs.get("attn_mask", node.args[3] if len(node.args) > 3 else None) is not None for node in calls]
        assert calls and all(given) == any(given) == (not dropped), (function.__name__, given)
        torch.testing.assert_close(graph(x)[0], function(x))


def other_reasons_are_told():
    source = torch.Generator()

    def with_own_numbers(model, x, y):
        source.manual_seed(len(x))
        return loss_of(model, x + torch.randn(x.shape, generator=source), y)

    runs_eagerly("Generator", mlp, with_own_numbers)
    for why, change in (("manual_seed", seeds), ("Random.random" if OLDER else "numbers of Python", lambda _, y: y * random.random()), ("numpy", lambda _, y: y * numpy.random.rand())):
        runs_eagerly(why, lambda change=change: Around(change))
    step = runs_eagerly("trace_test.py, line", mlp, lambda model, x, y: loss_of(model, x[x[:, 0] > 0], y[x[:, 0] > 0]))
    assert "a shape or a branch depends on the values of tensors" in step.reason, step.reason
    runs_eagerly("a shape or a branch depends on the values of tensors", mlp,
                 lambda model, x, y: loss_of(model, x, y) * (2.0 if model(x).sum().item() > 0 else 1.0))
    sparse = nn.Sequential(nn.Embedding(50, 3, sparse=True), nn.Flatten())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(sparse, torch.optim.SGD(sparse.parameters(), 0.1), loss_of,
                               (torch.randint(0, 50, (8, 1)), torch.randint(0, 3, (8,))))
    assert step.graph is None and "sparse=False" in step.reason and "Sparse" in step.reason, step.reason


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.cells, self.out = nn.LSTM(8, 8, batch_first=True), nn.Linear(8, 3)

    def forward(self, x):
        return self.out(self.cells(x)[0][:, -1])


def an_lstm_of_onednn_says_what_to_do():
    """Where PyTorch has oneDNN; without it the LSTM is planned."""
    def made():
        torch.manual_seed(0)
        model = Recurrent()
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        return model, optimizer, tarn.torch.step(model, optimizer, loss_of, batch)

    batch = torch.randn(4, 5, 8), torch.randint(0, 3, (4,))
    if torch.backends.mkldnn.is_available():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step = made()[2]
        assert step.plan is None and "mkldnn.flags(enabled=False)" in step.reason, step.reason
    with torch.backends.mkldnn.flags(enabled=False):
        (one, eager, _), (two, _, step) = made(), made()
        for _ in range(4):
            assert torch.equal(step(*batch), eager_step(one, eager, *batch)) and step.reason is None, step.reason
        assert all(torch.equal(a, b) for a, b in zip(one.parameters(), two.parameters()))


def nested_results_are_flattened_as_their_examples():
    """As what a kernel of Inductor's and a call of a library return."""
    a, b, c = (torch.ones(n) for n in (1, 2, 3))
    for like, results in (((a, b), (b, c)), ((a, (None, b)), (c, (None, a))), ([a, 7, [b, {"mean": c}]], [c, 8, [a, {"mean": b}]]),
                          (torch.max(torch.ones(2, 2), 0), torch.max(torch.zeros(2, 2), 0)), (((a,),), ((b,),))):
        found, expected = flattener(like)(results), flat(results)
        assert len(found) == len(expected) and all(one is other for one, other in zip(found, expected)), (found, expected)


TESTS = [nested_results_are_flattened_as_their_examples, real_strides_and_types_are_bound, autocast_around_a_step_is_that_of_the_moment,
         a_batch_may_be_a_part_of_another_tensor, parameters_may_be_complex_empty_and_parts_of_a_storage,
         parameters_that_join_the_training_are_trained, steps_may_change_more_than_tensors,
         checkpoints_are_kept_unless_they_draw_random_numbers,
         masks_of_a_compiler_that_mask_nothing_are_dropped, masks_that_may_mask_are_kept, other_reasons_are_told,
         an_lstm_of_onednn_says_what_to_do]

if __name__ == "__main__":
    run([test for test in TESTS if len(sys.argv) < 2 or test.__name__ in sys.argv[1:]])
