"""The loss of a fused step in chunks (fusing/chunks.py): what a graph makes stays the same, and large tensors are made block
by block only. TAP on stdout.

    tests/with_torch.sh tests/python/torch/chunks_test.py"""
import random
from unittest import mock

import torch
import torch.nn.functional as F
from cases import run
from torch.fx.experimental.proxy_tensor import make_fx

from tarn.torch.fusing import chunks
from tarn.torch.fusing.inductor import decompositions

WORDS, ROWS = 64, (4, 8)


class Net(torch.nn.Module):
    def __init__(self, bias, is_tied):
        super().__init__()
        self.embedding, self.norm, self.up = torch.nn.Embedding(WORDS, 8), torch.nn.LayerNorm(8), torch.nn.Linear(8, 8)
        self.out = torch.nn.Linear(8, WORDS, bias=bias)
        if is_tied:
            self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(self.norm(F.gelu(self.up(self.embedding(x)))))


def entropy(logits, labels, **options):
    return F.cross_entropy(logits.flatten(0, 1).float(), labels.flatten(), **options)


LOSSES = {
    "mean": entropy,
    "sum": lambda o, y: entropy(o, y, reduction="sum"),
    "ignored": lambda o, y: entropy(o, torch.where(y % 3 == 0, -100, y)),
    "smooth": lambda o, y: entropy(o, y, label_smoothing=0.1),
    "shifted": lambda o, y: entropy(o[:, :-1], y[:, 1:]),
    "weights": lambda o, y: entropy(o, y, weight=torch.linspace(0.5, 1, WORDS)),
    "with log Z": lambda o, y: entropy(o, y) + 1e-2 * o.float().logsumexp(-1).square().mean(),
    "capped": lambda o, y: entropy(15 * torch.tanh(o / 15), y),
    "binary": lambda o, y: F.binary_cross_entropy_with_logits(o.float(), F.one_hot(y, WORDS).float()),
    "squares": lambda o, y: (o.float() - 1).square().mean() + 0 * y.sum(),
    "divergence": lambda o, y: F.kl_div(F.log_softmax(o.float(), -1), F.softmax(torch.ones_like(o), -1), reduction="batchmean") + 0 * y.sum(),
}
WHOLE = {  # rows depend on each other
    "softmax over rows": lambda o, y: o.float().softmax(0).square().sum() + 0 * y.sum(),
    "less the largest": lambda o, y: entropy(o - o.max(), y),
    "sorted": lambda o, y: entropy(o.sort(0).values, y),
}


def graph_of(function, arguments):
    """Functional, decomposed, with fake tensors, as fusing/functional.py has it."""
    traced = make_fx(function, tracing_mode="fake")(*arguments)
    with torch.no_grad():
        traced = make_fx(torch.func.functionalize(torch.fx.Interpreter(traced).run, remove="mutations"), tracing_mode="fake")(*arguments)
        return make_fx(torch.fx.Interpreter(traced).run, decomposition_table=decompositions(), tracing_mode="fake")(*arguments)


def joint(model, loss, amp):
    """Loss and gradients as a graph of the parameters and the batch."""
    names, values = zip(*model.named_parameters())
    batch = [torch.randint(0, WORDS, ROWS) for _ in range(2)]

    def function(*inputs):
        own, (x, y) = [p.detach().requires_grad_() for p in inputs[:len(values)]], inputs[len(values):]
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=amp):
            logits = torch.func.functional_call(model, dict(zip(names, own)), (x,))
        result = loss(logits, y)
        return [result.detach(), *torch.autograd.grad(result, own)]

    arguments = [*(v.detach() for v in values), *batch]
    return graph_of(function, arguments), arguments


def in_blocks(module, most=4):
    with mock.patch.object(chunks, "LARGE", 0), mock.patch.object(chunks, "AMPLIFIES", 1):
        return chunks.chunked(module, most)


def results(module, arguments):
    with torch.no_grad():
        return torch.fx.Interpreter(module).run(*[a.clone() for a in arguments])


def close(one, two, tolerance):
    for a, b in zip(one, two):
        assert (a.double() - b.double()).norm() <= tolerance * (b.double().norm() + 1e-3), (a, b)


def losses_in_chunks_are_those_of_the_whole():
    for name, loss in LOSSES.items():
        for bias, is_tied, amp in [(b, t, a) for b in (False, True) for t in (False, True) for a in (False, True)]:
            torch.manual_seed(0)
            module, arguments = joint(Net(bias, is_tied), loss, amp)
            made = in_blocks(module)
            assert made is not None, name
            close(results(made, arguments), results(module, arguments), 1e-2 if amp else 1e-5)
            logits = [n for n in made.graph.nodes if n.target in chunks.PRODUCTS]
            assert len(logits) > 8 + 4, name  # the product, and those of both its gradients, four times


def what_needs_all_rows_stays_whole():
    for name, loss in WHOLE.items():
        torch.manual_seed(0)
        module, _ = joint(Net(False, False), loss, False)
        assert in_blocks(module) is None, name


def a_region_is_divided_as_its_rows_can_be():
    module, arguments = joint(Net(False, False), entropy, False)
    for most, found in ((8, 4), (4, 4), (3, 2), (2, 2), (1, None)):  # the first dimension has 4
        made = in_blocks(module, most)
        assert (made is None) == (found is None)
        if made is not None:
            close(results(made, arguments), results(module, arguments), 1e-5)
            plain = sum(n.target is torch.ops.aten.mm.default for n in module.graph.nodes)
            assert sum(n.target is torch.ops.aten.mm.default for n in made.graph.nodes) == plain + 3 * (found - 1)
    assert chunks.chunked(module, 4) is None  # it is small


def there_are_as_few_blocks_as_have_room():
    module, _ = joint(Net(False, False), entropy, False)
    with mock.patch.object(chunks, "LARGE", 0), mock.patch.object(chunks, "AMPLIFIES", 1):
        part = chunks.region(module.graph)
    logits = part.amplifier.meta["val"].nbytes
    assert logits == 4 * ROWS[0] * ROWS[1] * WORDS
    for most in range(1, 10):
        found = [k for k in range(2, most + 1) if ROWS[0] % k == 0]
        for room in (0, 1, logits // 4 - 1, logits // 4, logits // 2 - 1, logits // 2, logits, 2 * logits):
            fitting = [k for k in found if logits / k <= room]
            expected = min(fitting) if fitting else max(found, default=0)
            assert part.count(most, room) == expected, (most, room)


def random_function(draw):
    """A product, and ops behind it, some of which mix rows."""
    steps = [draw.choice(["tanh", "add row", "add column", "scale", "softmax", "softmax rows", "mask", "gather", "back", "view", "slice",
                          "sum row", "sum column", "mean", "center", "permute", "pad", "cat"]) for _ in range(draw.randrange(2, 8))]

    def function(h, w, row, column, index):
        x, out = h @ w, []
        for step in steps:
            if x.dim() != 2 or x.shape != (8, 40):
                x = (x.sum() + h @ w) * 0.5
            if step == "tanh":
                x = torch.tanh(x)
            elif step == "add row":
                x = x + row
            elif step == "add column":
                x = x * column.unsqueeze(1)
            elif step == "scale":
                x = x / (1 + h.square().sum())
            elif step in ("softmax", "softmax rows"):
                x = x.softmax(1 if step == "softmax" else 0)
            elif step == "mask":
                x = torch.where(torch.arange(40) == index.unsqueeze(1), x, 0.5 * x)
            elif step == "gather":
                out.append(x.gather(1, index.unsqueeze(1)).squeeze(1).sum())
            elif step == "back":
                out += [x.t() @ h, x @ w.t()]
            elif step == "view":
                x = x.view(4, 2, 40).sigmoid().reshape(8, 40)
            elif step == "slice":
                out.append(x.view(4, 2, 40)[:, :1].reshape(4, 40).sum(1))
            elif step == "sum row":
                out.append(x.sum(0))
            elif step == "sum column":
                out.append(x.sum(1, keepdim=draw.random() < 0.5))
            elif step == "mean":
                out.append(x.square().mean())
            elif step == "center":
                x = x - x.mean(draw.choice([0, 1]), keepdim=True)
            elif step == "permute":
                out.append((x.t().exp() @ h).sum(1))
            elif step == "pad":
                out.append(F.pad(x, (1, 2)).amax(1))
            elif step == "cat":
                out.append(torch.cat([x, x * 2]).sum(0))
        return [x.sum(), *out]

    return function


def random_graphs_in_blocks_make_the_same():
    draw, divided = random.Random(3), 0
    for _ in range(150):
        torch.manual_seed(draw.randrange(1000))
        arguments = [torch.randn(*shape, dtype=torch.float64) for shape in ((8, 5), (5, 40), (40,), (8,))] + [torch.randint(0, 40, (8,))]
        state = draw.getstate()

        def function(*inputs, state=state):
            draw.setstate(state)
            return random_function(draw)(*inputs)

        module = graph_of(function, arguments)
        made = in_blocks(module, draw.choice([2, 4, 8]))
        if made is not None:
            divided += 1
            close(results(made, arguments), results(module, arguments), 1e-9)
    assert divided > 50, divided


if __name__ == "__main__":
    run([losses_in_chunks_are_those_of_the_whole, what_needs_all_rows_stays_whole, a_region_is_divided_as_its_rows_can_be,
         there_are_as_few_blocks_as_have_room, random_graphs_in_blocks_make_the_same])
