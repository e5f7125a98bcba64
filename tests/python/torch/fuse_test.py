"""tarn.torch.step(fuse=True): Inductor's kernels as ops. All plans of one fused graph agree to the bit; with eager
execution they agree within the tolerances of the types. What is not understood is refused. TAP on stdout.

    tests/with_torch.sh tests/python/torch/fuse_test.py [all] [-v]     all: with larger networks, whose kernels take minutes"""
import ast
import functools
import itertools
import os
import sys
import tempfile
import threading
import warnings
from unittest import mock

import compiled_peak
import torch
import torch.nn.functional as F
from cases import raises, run
from networks import NETWORKS, Transformer, eager_step, loss_of, make, resnet

import tarn
import tarn.torch
from tarn.torch import fusing, stepping
from tarn.torch.fusing import chunks, embedding, inductor, source, together
from tarn.torch.kernel import Kernel

torch.set_num_threads(1)
NETWORKS.update({
    "tiny": (lambda: Transformer(50, 16, 1, 2, 8, 0.1),
             lambda: (torch.randint(0, 50, (2, 8)), torch.randint(0, 50, (2, 8)))),
    "tiny_resnet": (lambda: resnet((1,), False, 4, 5), lambda: (torch.randn(2, 3, 16, 16), torch.randint(0, 5, (2,))))})
IS_OLDEST = torch.__version__.startswith("2.9.")
LARGER = ["small_gpt", "small_resnet", "MobileNetV2", "U-Net", "GPT, 6 layers"] if "all" in sys.argv else []


def adam(parameters):
    return torch.optim.Adam(parameters, lr=1e-3, fused=True)


def train(model, optimizer, step, data):
    """Losses, and what the steps have left."""
    torch.manual_seed(2)
    losses = [step(*batch).clone() for batch in data]
    return losses, [*model.parameters(), *model.buffers()]


def eager(model, optimizer, loss=loss_of, clip=None):
    return functools.partial(eager_step, model, optimizer, clip=clip, loss_fn=loss)


def fused(model, optimizer, data, loss=loss_of, **options):
    step = tarn.torch.step(model, optimizer, loss, data[0], **{"fuse": True, **options})
    assert step.reason is None and step._first.fused, step.reason
    return step


def close(first, second, tolerance):
    one, two = [t.double().flatten() for t in first], [t.double().flatten() for t in second]
    difference = torch.cat(one) - torch.cat(two)
    return difference.norm() <= tolerance * torch.cat(two).norm()


def same(first, second):
    return len(first) == len(second) and all(map(torch.equal, first, second))


def sides(make_model, count, optimizer=adam):
    made = []
    for _ in range(count):
        torch.manual_seed(0)
        model = make_model()
        made.append((model, optimizer(model.parameters())))
    return made


def compare(make_model, data, loss=loss_of, tolerance=1e-4, ways=({},), optimizer=adam, **options):
    """A network eagerly and fused, in several ways that agree to the bit; returns the last Step."""
    (one, own), *others = sides(make_model, 1 + len(ways), optimizer)
    expected = train(one, own, eager(one, own, loss, options.get("clip")), data)
    first = step = None
    for (model, its), way in zip(others, ways):
        step = fused(model, its, data, loss, **options, **way)
        found = train(model, its, step, data)
        assert step.reason is None and step._first.to_compare == 0, step.reason
        assert close(found[0], expected[0], tolerance), (found[0], expected[0])
        assert close(found[1], expected[1], tolerance), "parameters"
        first = first or found
        assert same(first[0], found[0]) and same(first[1], found[1]), way
        assert not step._first.program.copied, step._first.program.copied
    return step


def batches(name, count=4):
    torch.manual_seed(1)
    return [NETWORKS[name][1]() for _ in range(count)]


def fused_steps_agree_with_eager_ones():
    for name in ["tiny", "tiny_resnet", *LARGER]:
        step = compare(NETWORKS[name][0], batches(name))
        kinds = [op.kind for op in step.graph.ops]
        assert sum("fused" in kind for kind in kinds) > 5 and step._first.fused.kernels > 5


def compiled_by_module():
    model = NETWORKS["tiny_resnet"][0]()
    for module in model.modules():
        if isinstance(module, torch.nn.Conv2d):
            module.compile()
            return model


def what_the_program_compiles_is_looked_through():
    """By default such a step is fused; without that it has the bits of the program uncompiled."""
    data = batches("tiny_resnet")
    make_model = NETWORKS["tiny_resnet"][0]
    for make_compiled, loss in ((lambda: torch.compile(make_model()), loss_of), (compiled_by_module, loss_of), (make_model, torch.compile(loss_of))):
        (plain, own), (one, first), (two, second), (three, third) = sides(make_model, 1) + sides(make_compiled, 3)
        expected = train(plain, own, eager(plain, own), data)
        for model, optimizer, options in ((one, first, {"fuse": False}), (two, second, {}), (three, third, {"compare": "sample"})):
            step = tarn.torch.step(model, optimizer, loss, data[0], **options)
            found = train(model, optimizer, step, data)
            assert step.reason is None and (step._first.fused is None) == ("fuse" in options), step.reason
            for some, others in zip(found, expected):
                assert same(some, others) if "fuse" in options else close(some, others, 1e-4)
    for model in (torch.compile(make_model(), backend="eager"), make_model()):  # without Inductor
        step = tarn.torch.step(model, adam(model.parameters()), loss_of, data[0], compare=False)
        assert step.reason is None and step._first.fused is None


def plans_of_one_fused_graph_agree_to_the_bit():
    for name in ["tiny", *LARGER]:
        ways = [{}, {"reorder": True}, {"streams": 2}, {"reorder": True, "budget": 0.9}]
        step = compare(NETWORKS[name][0], batches(name), ways=ways)
        assert step.report().recomputed
        least = raises(tarn.DoesNotFit, tarn.plan, step.graph, alignment=64, reorder=True, budget=1).least
        compare(NETWORKS[name][0], batches(name), ways=[{}, {"reorder": True, "budget": least * 11 // 10}])  # costs differ from run to run


def with_a_budget_no_kernel_writes_over_what_it_reads():
    """All may run again then, but what writes to inputs, as batch norm to its statistics."""
    for name, budget in (("tiny", None), ("tiny", 1.0), ("tiny_resnet", 1.0)):
        (model, optimizer), = sides(NETWORKS[name][0], 1)
        step = fused(model, optimizer, batches(name), compare=False, budget=budget)
        lowered = step._first.lowered
        writers = [op for op in lowered.ops if isinstance(getattr(op.node, "target", None), Kernel) and op.node.target.writes and "fused" in op.name]
        inside = [op.name for op in writers if not {lowered.storages[s].root for s in op.outputs} & lowered.persistent.keys()]
        assert bool(inside) == (budget is None), inside
        assert all(lowered.storages[s].size <= 64 for op in writers if budget for s in op.outputs)
        assert all(op.may_repeat for op in lowered.ops if op.node is not None and (budget or not op.is_random))


class Tables(torch.nn.Module):
    """Embeddings of few and of many rows; of a batch most words are one."""

    def __init__(self):
        super().__init__()
        self.few, self.many = torch.nn.Embedding(3, 24, padding_idx=1), torch.nn.Embedding(90, 24, padding_idx=0)
        self.by_frequency = torch.nn.Embedding(40, 24, scale_grad_by_freq=True)
        self.out = torch.nn.Linear(24, 5)

    def forward(self, x):
        return self.out((self.few(x % 3) + self.many(x) + self.by_frequency(x % 40)).tanh().mean(1))


def tables_of_embeddings_get_the_sums_of_their_rows():
    data = [(torch.randint(0, 90, (16, 30)) * (torch.rand(16, 30) < 0.3), torch.randint(0, 5, (16,))) for _ in range(4)]
    step = compare(Tables, data)
    kinds = [op.kind for op in step.graph.ops]
    assert sum("embedding_backward" in kind for kind in kinds) == 1, kinds  # the table of many rows
    embedding = sys.modules["tarn.torch.fusing.embedding"]
    for rows, padding, dtype in itertools.product((1, 3, embedding.FEW, 40), (-1, 0, 2), (torch.float64, torch.float32, torch.bfloat16)):
        gradient, indices = torch.randn(7, 50, 6).to(dtype), torch.randint(0, rows, (7, 50))
        wanted = torch.zeros(rows, 6, dtype=torch.float64).index_add(0, indices.flatten(), gradient.double().flatten(0, 1))
        if 0 <= padding < rows:
            wanted[padding] = 0
        made = embedding.embedding_backward(None, gradient, indices, rows, padding, False)
        assert made.dtype == dtype and made.shape == wanted.shape
        torch.testing.assert_close(made.double(), wanted, rtol=2e-2 if dtype == torch.bfloat16 else 1e-4, atol=0.3 if dtype == torch.bfloat16 else 1e-4)
    assert not torch.are_deterministic_algorithms_enabled() and torch.utils.deterministic.fill_uninitialized_memory


def sixteen_bits_agree_within_their_own_tolerance():
    def loss(model, *batch):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return loss_of(model, *batch)

    step = compare(NETWORKS["tiny"][0], batches("tiny"), loss, tolerance=2e-2)
    assert step._first.fused.tolerance == 2e-2


class Odd(torch.nn.Module):
    """Gradients that are one tensor, parts that are joined, a table, an attention."""

    def __init__(self):
        super().__init__()
        self.one, self.two = (torch.nn.Parameter(torch.randn(16, 16) / 4) for _ in range(2))
        self.three = torch.nn.Parameter(torch.randn(1, 16))
        self.table = torch.arange(16.0) / 16

    def forward(self, x):
        y = F.gelu(x @ (self.one + self.two)) + self.three * self.table
        y = torch.cat([y[:, :8].sigmoid(), y.tanh(), y[:, 8:].exp()], 1).view(4, 2, 2, 8).transpose(1, 2)
        y = F.scaled_dot_product_attention(y, y, y, is_causal=True)
        y = F.scaled_dot_product_attention(y, y, y, dropout_p=0.2)  # simpler ops lay out otherwise what it views
        return y.transpose(1, 2).reshape(4, 32)[:, :16] + torch.tensor([1.0, 2.0] * 8)


def odd_networks_agree_too():
    torch.manual_seed(1)
    data = [(torch.randn(4, 16), torch.randn(4, 16)) for _ in range(4)]
    compare(Odd, data, optimizer=lambda p: torch.optim.SGD(p, lr=0.1, momentum=0.9), ways=[{}, {"reorder": True}],
            clip=lambda parameters: torch.nn.utils.clip_grad_norm_(parameters, 0.1))


class Draws(torch.nn.Module):
    """Draws into tensors that lie in several ways."""

    def __init__(self, into):
        super().__init__()
        self.into, self.linear = into, torch.nn.Linear(8, 8)

    def forward(self, x):
        if not IS_OLDEST:  # there Inductor leaves out what nothing reads, and the step is refused
            torch.rand(3)
        return self.into(self.linear(x).view(4, 6, 5, 8)).sum((1, 2))


def dropout_of_layouts(x):
    attention = torch.dropout(x.transpose(1, 2), 0.5, True).transpose(1, 2)
    last = F.dropout(x.contiguous(memory_format=torch.channels_last), 0.5)
    return attention + last + F.feature_alpha_dropout(x, 0.5) + F.dropout(x[:, ::2], 0.5).repeat(1, 2, 1, 1)


def noise_of_layouts(x):
    lies = x.detach().permute(3, 1, 0, 2)
    noise = torch.rand_like(lies) + torch.randn_like(lies) + torch.randint_like(lies, 5) + torch.randint_like(lies, 2, 7)
    filled = torch.empty_like(lies).exponential_(2.0) + torch.empty_like(lies).log_normal_(0.1, 0.2) + torch.empty_like(lies).geometric_(0.3)
    part = torch.zeros(4, 6, 5, 16)
    part[..., ::2].uniform_(-1, 1)
    part[:, 1:].transpose(0, 1).normal_(std=2.0)
    return x * (noise + filled).permute(2, 1, 3, 0) + part[..., 5:13] + torch.bernoulli(x.detach().transpose(1, 2).sigmoid()).transpose(1, 2)


def drawn_late(x):
    """The number that is drawn first is used last."""
    noise, shares = torch.randn_like(x), torch.rand(4, 1, 1, 1)
    order = torch.randperm(8)
    kept = torch.dropout(torch.ones_like(x), 0.5, True)
    return (F.dropout(x * (1 - shares), 0.3)[..., order] * torch.randint(1, 4, (8,)) @ torch.rand(8, 8)) * kept - noise


def drawn_otherwise(x):
    """Fake tensors do not know how this lies."""
    return x + torch.poisson(x.detach().abs().transpose(0, 1)).transpose(0, 1)


class Weighted(torch.nn.Module):
    """Draws between the logits and the loss."""

    def __init__(self):
        super().__init__()
        self.body, self.head = torch.nn.Linear(8, 8), torch.nn.Linear(8, 512, bias=False)

    def forward(self, x):
        h = self.body(x)
        logits = self.head(h)
        weights = torch.rand(64)
        return F.dropout(logits, 0.5), (h.mean(1) * weights).sum()


def weighted_loss(model, x, y):
    logits, more = model(x)
    return F.cross_entropy(logits, y, reduction="none").sum() / 64 + more


def a_loss_in_chunks_draws_as_eager_execution_or_is_refused():
    torch.manual_seed(1)
    data = [(torch.randn(64, 8), torch.randint(0, 512, (64,))) for _ in range(4)]
    (one, own), (two, its) = sides(Weighted, 2)
    expected = train(one, own, eager(one, own, weighted_loss), data)
    with mock.patch.object(chunks, "LARGE", 1), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(two, its, weighted_loss, data[0], fuse={"chunks": 4}, compare=False)
    assert "random numbers would be drawn in another order" in step.reason, step.reason
    found = train(two, its, step, data)
    assert close(found[0], expected[0], 1e-6), (found[0], expected[0])


def random_numbers_have_the_layouts_of_eager_execution():
    torch.manual_seed(1)
    data = [(torch.randn(120, 8), torch.randn(4, 8)) for _ in range(4)]
    for into in (dropout_of_layouts, noise_of_layouts, drawn_late):
        compare(functools.partial(Draws, into), data, ways=[{}, {"reorder": True, "budget": 1.0}], compare=False)
    for word, into in ("rrelu", lambda x: F.rrelu(x, training=True)), ("poisson", drawn_otherwise):  # rrelu: one for each number below 0
        (model, optimizer), = sides(functools.partial(Draws, into), 1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            step = tarn.torch.step(model, optimizer, loss_of, data[0], fuse=True)
        assert "could not be fused" in step.reason and word in step.reason, step.reason


class Spectrum(torch.nn.Module):
    """Kernels do not copy complex numbers: the gradient of a real part is a copy into one."""

    def __init__(self):
        super().__init__()
        self.one, self.two = torch.nn.Linear(16, 16), torch.nn.Linear(16, 5)

    def forward(self, x):
        y = self.one(x)
        return self.two((y + torch.fft.fftn(y, dim=(1, 2)).real).tanh().mean(1))


def complex_numbers_are_copied():
    torch.manual_seed(1)
    data = [(torch.randn(4, 6, 16), torch.randint(0, 5, (4,))) for _ in range(4)]
    step = compare(Spectrum, data, ways=[{}, {"reorder": True, "budget": 1.0}])
    assert any("copy_" in op.name for op in step._first.lowered.ops), [op.name for op in step._first.lowered.ops]


def every_shape_is_fused():
    (one, own), (two, its) = sides(NETWORKS["tiny"][0], 2)
    data = batches("tiny", 2) + [tuple(t[:1] for t in batch) for batch in batches("tiny", 2)] + batches("tiny", 2)
    step = fused(two, its, data)
    found, expected = train(two, its, step, data), train(one, own, eager(one, own), data)
    assert len(step.variants) == 2 and all(v.fused for v in step.variants.values())
    assert close(found[0], expected[0], 1e-4) and close(found[1], expected[1], 1e-4)


# ---- What is not understood ----

def runs_unfused(what, error_text):
    (one, own), (two, its) = sides(NETWORKS["tiny"][0], 2)
    data = batches("tiny")
    with warnings.catch_warnings(record=True) as told, what:
        warnings.simplefilter("always")
        step = tarn.torch.step(two, its, loss_of, data[0], fuse=True)
    assert any("runs unfused" in str(w.message) for w in told), told
    assert error_text in step.reason and step._first.fused is None, step.reason
    expected, found = train(one, own, eager(one, own), data), train(two, its, step, data)
    assert same(found[0], expected[0]) and same(found[1], expected[1]) and error_text in step.reason


def what_cannot_be_fused_runs_unfused_with_a_reason():
    own = fusing.generated

    def other(*arguments, **options):
        return own(*arguments, **options).replace("    return (", "    somewhere.else_(buf0)\n    return (", 1)

    runs_unfused(mock.patch.object(fusing, "generated", other), "somewhere.else_(buf0)")


def another_inductor_is_told_plainly():
    def choices(*_arguments):
        raise AttributeError("no attribute 'can_fuse'")

    runs_unfused(mock.patch.object(inductor, "_choices", choices),
                 f"PyTorch {torch.__version__} has another compiler than tarn.torch knows")


def a_source_is_generated_once():
    """It is found by the next process; not under other settings, for another graph, or where Inductor's own cache is off."""
    from torch._inductor import compile_fx, config
    data, made = batches("tiny"), []
    inner = compile_fx.compile_fx_inner

    def counted(*arguments, **options):
        made.append(arguments)
        return inner(*arguments, **options)

    def generations(name="tiny", **options):
        (model, optimizer), = sides(NETWORKS[name][0], 1)
        before = len(made)
        step = fused(model, optimizer, batches(name)[0:1], compare=False, **options)
        return len(made) - before, train(model, optimizer, step, data if name == "tiny" else [])

    with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, TORCHINDUCTOR_CACHE_DIR=folder), \
            mock.patch.object(compile_fx, "compile_fx_inner", counted):
        first, found = generations()
        again, found_again = generations()
        assert (first > 0, again) == (True, 0) and same(found[0], found_again[0]) and same(found[1], found_again[1])
        assert generations(fuse={"epilogue_fusion": False})[0] and generations(budget=1.0)[0] and generations("tiny_resnet")[0]
        with config.patch(fx_graph_cache=False):
            assert generations()[0] == first


def a_kernel_that_is_wrong_is_found_before_it_is_used():
    (one, own), (two, its) = sides(NETWORKS["tiny"][0], 2)
    data = batches("tiny")
    step = fused(two, its, data)
    ops = [op for op in step._first.lowered.ops if op.node is not None and isinstance(op.node.target, Kernel) and op.node.target.into and "fused" in op.name
           and op.made and all(t.is_floating_point() for t in op.made.values())]
    kernel, writes = ops[-1].node.target, ops[-1].node.target.into

    def wrong(*tensors):
        writes(*tensors)
        tensors[-1].mul_(1.05)

    kernel.into = wrong
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        found = train(two, its, step, data)
    assert "planned and eager step have given different" in step.reason, step.reason
    assert same(found[0], train(one, own, eager(one, own), data)[0])


def a_rounding_that_decides_much_is_no_fault():
    (model, optimizer), = sides(NETWORKS["tiny"][0], 1)
    data = batches("tiny")
    step = fused(model, optimizer, data)
    with mock.patch.object(stepping, "agree", side_effect=["gradients", "gradients", "", "gradients", "gradients", ""]) as asked:
        for batch in data + data:
            step(*batch)
    assert asked.call_count == 6 and step.reason is None and step._first.to_compare == 0


def gradients_that_are_all_rounding_are_no_fault():
    """Of a deep network in 16 bits eager execution has other gradients wherever a number is rounded otherwise."""
    name = "chaos"
    NETWORKS[name] = (lambda: Chaos(8), lambda: (torch.randn(16, 24), torch.randint(0, 10, (16,))))

    def loss(model, x, y):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return F.cross_entropy(model(x).float(), y)

    (model, optimizer), = sides(NETWORKS[name][0], 1)
    data = batches(name)
    step = fused(model, optimizer, data, loss)
    before = [p.detach().clone() for p in model.parameters()]
    step(*data[0])
    noise = step._noise(step._first, data[0])
    assert noise["gradients"] > 0.04, noise  # twice their tolerance
    assert step.reason is None, step.reason
    for batch in data[1:]:
        step(*batch)
    assert step.reason is None and step._first.to_compare == 0 and not same(before, list(model.parameters()))
    if step._first.noise:
        assert "rounding changes gradients of eager execution by" in str(step.report())
    assert stepping.agree({"gradients": [torch.ones(4)]}, {"gradients": [torch.zeros(4) + 0.5]}, 1e-2, {"gradients": 0.4})
    assert stepping.agree({"gradients": [torch.ones(4)]}, {"gradients": [torch.zeros(4) + 0.5]}, 1e-2, {"gradients": 0.6}) == ""


class Chaos(torch.nn.Module):
    """Layers that double differences."""

    def __init__(self, depth):
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(24, 24) for _ in range(depth))
        self.norms = torch.nn.ModuleList(torch.nn.LayerNorm(24) for _ in range(depth))
        self.out = torch.nn.Linear(24, 10)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms):
            x = torch.sin(3 * norm(layer(x)))
        return self.out(x)


def a_loss_in_chunks_agrees_too():
    for name in ["tiny", *LARGER[:1]]:
        with mock.patch.object(chunks, "LARGE", 0), mock.patch.object(chunks, "AMPLIFIES", 1):
            ways = [{"fuse": {"chunks": 2}}, {"fuse": {"chunks": 2}, "reorder": True}, {"reorder": True, "budget": 0.9, "fuse": {"chunks": 2}}]
            step = compare(NETWORKS[name][0], batches(name), ways=ways)
        source = step._first.fused.source
        (model, optimizer), = sides(NETWORKS[name][0], 1)
        whole = fused(model, optimizer, batches(name), compare=False)._first.fused.source
        assert source.count("extern_kernels.mm(") >= whole.count("extern_kernels.mm(") + 2, source


def a_budget_in_bytes_has_as_few_chunks_as_fit():
    """With few the logits of each are small beside it; if it needs more than they allow, there are more. A share is one of
    bytes that are not known yet."""
    data = [torch.randint(0, 2000, (8, 8)) for _ in range(2)]

    def made(budget, fuse):
        (model, optimizer), = sides(lambda: Transformer(2000, 16, 1, 2, 8, 0.1), 1)
        return fused(model, optimizer, [data], compare=False, budget=budget, fuse=fuse)

    def least(number):
        try:
            return made(1, {"chunks": number})
        except tarn.DoesNotFit as error:
            return error.least

    with mock.patch.object(chunks, "LARGE", 0), mock.patch.object(chunks, "AMPLIFIES", 1):
        few, many = (made(1 << 30, {"chunks": number})._first.fused.source for number in (2, 8))
        assert few != many
        assert made(1 << 30, True)._first.fused.source == few and made(1.0, True)._first.fused.source == many
        between = (least(2) + least(8)) // 2
        assert least(8) < between < least(2)
        with mock.patch.object(fusing, "SHARE", 1):
            step = made(between, True)
        assert step._first.fused.source == many and step.plan.footprint <= between


HEAD = """
async_compile = AsyncCompile()
cpp_fused_0 = async_compile.cpp_pybinding(['const float*', 'float*'], '''code''')
triton_0 = async_compile.triton('triton_0', '''
def _triton_helper_fn_add0(arg0_0, arg1_0):
    return arg0_0 + arg1_0
def triton_0(in_ptr0, out_ptr0, in_out_ptr1, xnumel, XBLOCK : tl.constexpr):
    pass
''', device_str='cuda')
def call(args):
    arg0, arg1 = args
    args.clear()
    buf0 = empty_strided_cpu((2, ), (1, ), torch.float32)
"""


def read(*lines, head=HEAD):
    return source.parsed(head + "".join(f"    {line}\n" for line in (*lines, "return (buf0, )")))


def calls(*lines, head=HEAD):
    return [step for step in read(*lines, head=head).steps if isinstance(step, source.Call)]


def what_calls_write_is_read_from_signatures_and_schemas():
    for line, writes, reads in (
            ("cpp_fused_0(arg0, buf0)", {"buf0"}, ["arg0", "buf0"]),
            ("triton_0.run(arg0, buf0, arg1, 2, stream=stream0)", {"buf0", "arg1"}, ["arg0", "buf0", "arg1"]),
            ("extern_kernels.mm(arg0, reinterpret_tensor(arg1, (2, ), (1, ), 0), out=buf0)", {"buf0"}, ["arg0", "arg1", "buf0"]),
            ("aten.index_put_(buf0, [arg0], arg1, True)", {"buf0"}, ["buf0", "arg0", "arg1"]),
            ("buf0.copy_(arg0, non_blocking=False)", {"buf0"}, ["buf0", "arg0"]),
            ("buf1 = arg0[0 * 2 * 3:(0 + 1) * 2 * 3].view(2, 3).sum(dim=0).view([3])", set(), ["arg0"]),
            ("buf1 = torch.ops.aten.native_batch_norm.default(buf0, None, None, arg0, arg1, True, 0.1, 1e-05)", {"arg0", "arg1"}, None),
            ("buf1 = torch.ops.aten.native_batch_norm.default(buf0, None, None, arg0, arg1, False, 0.1, 1e-05)", set(), None)):
        call, = calls(line)
        assert call.writes == writes and (reads is None or sorted(call.reads) == sorted(reads)), (line, call)
    attention = "buf1 = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu.default(arg0, arg0, arg1, {})"
    assert [calls(attention.format(p))[0].is_random for p in ("0.0, True", "0.1, True")] == [False, True]


def unknown_statements_are_refused():
    for line in ("unknown(buf0)", "buf0.unknown_(arg0)", "copy_(buf0, arg0)", "torch.copy_(buf0, arg0)", "buf1 = buf0 + arg0", "extern_kernels.unknown(arg0, out=buf0)", "torch.foo(buf0)",
                 "buf1 = torch.ops.nowhere.unknown.default(buf0)", "cpp_fused_0(arg0, buf0, arg1)", "cpp_fused_0(*arg0)", "if arg0:\n        pass",
                 "while True:\n        cpp_fused_0(arg0, buf0)", "with open('x'):\n        cpp_fused_0(arg0, buf0)", "buf0[0] = arg0",
                 "aten.index_put_(*arg0)", "for _ in range(2):\n        cpp_fused_0(arg0, buf0)", "global buf0", "buf1, buf2 = foo(arg0)",
                 "stream0.wait_stream(buf0)", "del buf0[0]", "assert buf0.sum()", "exec('x')",
                 "buf1 = arg0.view(2).add_(1)", "buf1 = arg0[arg1].sum()", "buf1 = arg0.sum(out=buf0)", "arg0.view(2).sum()"):
        raises(source.Refused, read, line)
    for old, new in (("in_out_ptr1", "mine"), ("async_compile.triton(", "async_compile.multi("), ("    pass", "    tl.atomic_add(out_ptr0, 1)"),
                     ("def call(args)", "def other(args)")):
        raises(source.Refused, read, "cpp_fused_0(arg0, buf0)", head=HEAD.replace(old, new))


KERNEL = """cpp_fused_{0} = async_compile.cpp_pybinding(['const float*', '{1}'], r'''
#include <torch/csrc/inductor/cpp_prefix.h>
{2}
extern "C"  void  kernel(const float* in_ptr0,
                       {1} out_ptr0)
{{
    #pragma GCC ivdep
    {3}
}}
''')
"""


def kernels_are_compiled_together_where_that_changes_nothing():
    plain = [("float*", "", "out_ptr0[0] = in_ptr0[0];")] * 70
    odd = [("int64_t", "", ""), ("float*", "#define ODD", ""), ("float*", "", "#ifdef ODD"), ("float*", "static int x;", ""), ("float*", "", 'extern "C"')]
    text = "import torch\n" + "".join(KERNEL.format(i, *kernel) for i, kernel in enumerate(plain[:30] + odd + plain[30:])) + "last = 1\n"
    for at_once, count in ((1, 3), (2, 3), (8, 8), (100, 70)):
        rest, made = together.libraries(text, at_once)
        assert len(made) == count and len(rest.splitlines()) == len(text.splitlines())
        assert sorted(name for library in made for name in library.names) == sorted(f"cpp_fused_{i}" for i in range(75) if not 30 <= i < 35)
        assert max(len(library.names) for library in made) - min(len(library.names) for library in made) <= 1
        assert [line.split(" = ")[0] for line in rest.splitlines() if "cpp_pybinding" in line] == [f"cpp_fused_{i}" for i in range(30, 35)]
    assert together.libraries("x = 1\n", 2) == ("x = 1\n", [])


def kernels_that_are_compiled_together_give_the_bits_of_others():
    from torch._inductor.codecache import CppPythonBindingsCodeCache
    load, data, found = CppPythonBindingsCodeCache.load_async.__func__, batches("tiny"), []
    for change in ({}, {"side_effect": ValueError}):  # then Inductor compiles each
        (model, optimizer), = sides(NETWORKS["tiny"][0], 1)
        made = []

        def counted(cls, *arguments, made=made, **options):
            made.append(cls)
            return load(cls, *arguments, **options)

        with mock.patch.object(inductor, "libraries", wraps=inductor.libraries, **change), \
                mock.patch.object(CppPythonBindingsCodeCache, "load_async", classmethod(counted)):
            step = fused(model, optimizer, data, compare=False)
        assert len(made) == step._first.fused.kernels if change else 0 < len(made) < 10 < step._first.fused.kernels, made
        found.append(train(model, optimizer, step, data))
    assert same(found[0][0], found[1][0]) and same(found[0][1], found[1][1])


def a_buffer_that_is_filled_before_its_kernel_belongs_to_it():
    step, *_ = [s for s in read("buf0.zero_()", "cpp_fused_0(arg0, buf0)").steps if isinstance(s, source.Buffer)]
    assert [ast.unparse(fill) for fill in step.fills] == ["buf0.zero_()"]
    raises(source.Refused, read, "cpp_fused_0(arg0, buf0)", "buf0.zero_()")


def random_numbers_in_another_order_are_refused():
    """Tensors are numbered in the order of eager execution."""
    (model, optimizer), = sides(NETWORKS["tiny"][0], 1)
    own = fusing.generated

    def other(*arguments, **options):
        made = own(*arguments, **options)
        lines = [line for line in made.splitlines() if "tarn.drawn" in line]
        assert len(lines) == 2
        names = [ast.parse(line.strip()).body[0].targets[0].id for line in lines]
        swap = {names[0]: "buf999", "buf999": names[0]}
        return "\n".join(line.replace(names[0], swap[names[0]]) for line in made.splitlines())

    with warnings.catch_warnings(), mock.patch.object(fusing, "generated", other):
        warnings.simplefilter("ignore", RuntimeWarning)
        step = tarn.torch.step(model, optimizer, loss_of, batches("tiny")[0], fuse=True)
    assert "random numbers would be drawn in another order" in step.reason, step.reason


def tensors_differ_by_a_share_of_all_of_their_name():
    one = {"losses": [torch.tensor(1.0)], "gradients": [torch.ones(100), torch.tensor([1e-9])]}
    other = {"losses": [torch.tensor(1.0)], "gradients": [torch.ones(100), torch.tensor([-1e-9])]}
    assert stepping.agree(one, other, 1e-6) == ""
    other["gradients"][0] = torch.full((100,), 1.001)
    assert stepping.agree(one, other, 1e-2) == "" and "gradients" in stepping.agree(one, other, 1e-4)
    assert stepping.agree(one, {**other, "gradients": [torch.full((100,), float("nan")), torch.ones(1)]}, 1.0)
    assert stepping.agree(one, {**other, "gradients": []}, 1.0)


def graphs_of_kernels_can_be_saved():
    (model, optimizer), = sides(NETWORKS["tiny"][0], 1)
    step = fused(model, optimizer, batches("tiny"), compare=False)
    assert step.graph.verify if hasattr(step.graph, "verify") else step.graph
    assert all("inductor" in key for key in step.profile.entries if "fused" in key)
    assert tarn.plan(step.graph, alignment=64).footprint == step.plan.footprint
    assert make("tiny")


def threads_that_sum_in_order_leave_the_mode_as_it_was():
    """Whichever of two is done first: the mode is PyTorch's, and one for all threads."""
    def mode():
        return torch.get_deterministic_debug_mode(), torch.utils.deterministic.fill_uninitialized_memory

    for before in (0, 2):
        torch.set_deterministic_debug_mode(before)
        inside, first = (before or 1, bool(before)), threading.Event()
        entered, told = threading.Event(), []

        def other(inside=first, entered=entered, told=told):
            with embedding.deterministic():
                entered.set()
                inside.wait(30)
                told.append(mode())

        thread = threading.Thread(target=other)
        with embedding.deterministic():
            thread.start()
            assert entered.wait(30) and mode() == inside
        assert mode() == inside  # the other one has not done yet
        first.set()
        thread.join()
        assert told == [inside] and mode() == (before, True), (told, mode())
    torch.set_deterministic_debug_mode(0)


FORWARD = """
kernel = async_compile.triton('kernel', '')

def call(args):
    x, w = args
    args.clear()
    a = empty_strided_cpu((2, 128), (128, 1), torch.float32)
    kernel.run(x, w, a, stream=0)
    b = empty_strided_cpu((3, 128), (128, 1), torch.float32)
    kernel.run(a, b, stream=0)
    view = reinterpret_tensor(b, (3, 64), (128, 1), 64)
    del b
    loss = empty_strided_cpu((), (), torch.float32)
    del a
    large = empty_strided_cpu((LARGE, 128), (128, 1), torch.float32)
    del view
    del large
    saved = empty_strided_cpu((4, 128), (128, 1), torch.float32)
    also = empty_strided_cpu((2, 128), (128, 1), torch.float32)
    extern_kernels.mm(x, w, out=also)
    return (loss, saved, reinterpret_tensor(also, (256,), (1,), 0), w)
"""
BACKWARD = """
kernel = async_compile.triton('kernel', '')

def call(args):
    saved, also, w, tangent = args
    args.clear()
    g = torch.ops.aten.mul.Tensor(reinterpret_tensor(saved, (3, 128), (128, 1), 0), tangent)
    del saved
    h = empty_strided_cpu((5, 128), (128, 1), torch.float32)
    kernel.run(g, h, stream=0)
    del also
    k = empty_strided_cpu((100,), (1,), torch.float32)
    return (g, None, k)
"""


def the_estimate_of_torch_compile_counts_what_is_alive():
    """compiled_peak.py on sources written by hand. Of 512 bytes each, as sizes are rounded up, the forward pass has alive, at its
    most, `view` (the 3 of b), 1 of the loss and `large`; it leaves 1 + 4 + 2. The backward pass then adds the 3 of g, takes the
    4 of `saved` away, and adds 5: 1 + 2 + 3 + 5. The weight w, the batch and the tangent do not count."""
    x, w, tangent = torch.ones(2, 4), torch.ones(4, 128), torch.ones(())
    saved, also = torch.ones(4, 128), torch.ones(256)
    for large, most in ((4, 11), (7, 11), (8, 12), (90, 94)):
        passes = [compiled_peak._Pass(FORWARD.replace("LARGE", str(large)), [("x", x), ("w", w)], ["loss", "saved", "also", "w"]),
                  compiled_peak._Pass(BACKWARD, [("saved", saved), ("also", also), ("w", w), ("tangent", tangent)], ["g", None, "k"])]
        with mock.patch.object(compiled_peak, "_sources", lambda *_, passes=passes: passes):
            found = compiled_peak.compiled(None, ())
        assert (found.peak, found.saved) == (512 * most, 512 * 7), (large, found)
        assert (found.gradients, found.launches) == (3 * 512 + 400, 5), (large, found)


if __name__ == "__main__":
    wanted = [name for name in sys.argv[1:] if name.isidentifier() and name != "all"]
    run([globals()[name] for name in wanted] or [what_calls_write_is_read_from_signatures_and_schemas, unknown_statements_are_refused,
         a_buffer_that_is_filled_before_its_kernel_belongs_to_it, tensors_differ_by_a_share_of_all_of_their_name,
         fused_steps_agree_with_eager_ones, what_the_program_compiles_is_looked_through, plans_of_one_fused_graph_agree_to_the_bit,
         with_a_budget_no_kernel_writes_over_what_it_reads, sixteen_bits_agree_within_their_own_tolerance,
         odd_networks_agree_too, complex_numbers_are_copied, every_shape_is_fused, what_cannot_be_fused_runs_unfused_with_a_reason,
         another_inductor_is_told_plainly, a_source_is_generated_once, a_kernel_that_is_wrong_is_found_before_it_is_used,
         a_rounding_that_decides_much_is_no_fault, gradients_that_are_all_rounding_are_no_fault, a_loss_in_chunks_agrees_too,
         a_budget_in_bytes_has_as_few_chunks_as_fit,
         tables_of_embeddings_get_the_sums_of_their_rows, threads_that_sum_in_order_leave_the_mode_as_it_was,
         the_estimate_of_torch_compile_counts_what_is_alive, random_numbers_in_another_order_are_refused,
         kernels_are_compiled_together_where_that_changes_nothing, kernels_that_are_compiled_together_give_the_bits_of_others,
         random_numbers_have_the_layouts_of_eager_execution, a_loss_in_chunks_draws_as_eager_execution_or_is_refused, graphs_of_kernels_can_be_saved])
