"""Ops that do at work what they are not traced to do, as some of PyTorch's do on a GPU."""
import torch

KEPT = []  # by `keeping`; whoever clears it makes it keep memory again


def like(x):
    return torch.empty_like(x)


@torch.library.custom_op("tarn_test::with_seed", mutates_args=())
def with_seed(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As attention: a number on the host."""
    return x.clone(), torch.tensor([7, 9])


@with_seed.register_fake
def _(x):
    return torch.empty_like(x), torch.empty(2, dtype=torch.int64, device=x.device)


@torch.library.custom_op("tarn_test::seeded", mutates_args=())
def seeded(x: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
    assert seed.device.type == "cpu" and seed.tolist() == [7, 9], seed
    return x * int(seed[0])


seeded.register_fake(lambda x, seed: like(x))
with_seed.register_autograd(lambda ctx, one, _: seeded(one, ctx.saved_tensors[0]),
                            setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]))


def seeded_copy(x):
    return with_seed(x)[0]


@torch.library.custom_op("tarn_test::with_reserve", mutates_args=())
def with_reserve(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """As cuDNN's batch-norm: how much it keeps for its backward pass shows when it runs."""
    return x.clone(), x * 3


@with_reserve.register_fake
def _(x):
    return like(x), x.new_empty(0)


@torch.library.custom_op("tarn_test::reserved", mutates_args=())
def reserved(x: torch.Tensor, reserve: torch.Tensor) -> torch.Tensor:
    assert reserve.shape == x.shape, reserve.shape
    return x * reserve


reserved.register_fake(lambda x, reserve: like(x))
with_reserve.register_autograd(lambda ctx, one, _: reserved(one, ctx.saved_tensors[0]),
                               setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]))


def reserving(x):
    return with_reserve(x)[0]


@torch.library.custom_op("tarn_test::keeping", mutates_args=())
def keeping(x: torch.Tensor) -> torch.Tensor:
    """As a library that takes a workspace when it is first called, and keeps it."""
    result = x * torch.ones_like(x)
    if not KEPT:
        KEPT.append(torch.full((64,), 5.0, device=x.device))  # where the ones were
    return result


keeping.register_fake(like)
keeping.register_autograd(lambda ctx, grad: grad * 1, setup_context=lambda ctx, inputs, output: None)


class Custom(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.first, self.last, self.function = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32), function

    def forward(self, x):
        return self.last(self.function(self.first(x)))


HOST = [0]  # what `counting` reads; where `reading` reads


@torch.library.custom_op("tarn_test::counting", mutates_args=())
def counting(x: torch.Tensor) -> torch.Tensor:
    """Reads a number of the host's, which a capture keeps."""
    return torch.full((4,), HOST[0], dtype=torch.int64, device=x.device)


@torch.library.custom_op("tarn_test::reading", mutates_args=())
def reading(x: torch.Tensor) -> torch.Tensor:
    """Reads a tensor of somebody else's, whose address a capture keeps."""
    return HOST[0].clone()


for _op in (counting, reading):
    _op.register_fake(lambda x: x.new_empty(4, dtype=torch.int64))


@torch.library.custom_op("tarn_test::waiting", mutates_args=())
def waiting(x: torch.Tensor) -> torch.Tensor:
    """Asks the GPU for a number, which a capture forbids."""
    return x + float(x.sum().item() * 0)


waiting.register_fake(like)
waiting.register_autograd(lambda ctx, grad: grad * 1, setup_context=lambda ctx, inputs, output: None)


@torch.library.custom_op("tarn_test::telling", mutates_args=(), tags=(torch.Tag.nondeterministic_seeded,))
def telling(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Draws, and tells where on the host in captures, too."""
    return x + torch.rand_like(x), torch.tensor([1, 2])


telling.register_fake(lambda x: (like(x), torch.empty(2, dtype=torch.int64, device=x.device)))
telling.register_autograd(lambda ctx, one, _: seed_sum(one, ctx.saved_tensors[0]),
                          setup_context=lambda ctx, inputs, output: ctx.save_for_backward(output[1]))


@torch.library.custom_op("tarn_test::seed_sum", mutates_args=())
def seed_sum(x: torch.Tensor, seed: torch.Tensor) -> torch.Tensor:
    return x * int(seed.sum())


seed_sum.register_fake(lambda x, seed: like(x))


class Seeing(torch.nn.Module):
    """Keeps in a buffer what a function has made of its input."""

    def __init__(self, function):
        super().__init__()
        self.first, self.last, self.function = torch.nn.Linear(32, 32), torch.nn.Linear(32, 32), function
        self.register_buffer("seen", torch.zeros(4, dtype=torch.int64))

    def forward(self, x):
        self.seen.copy_(self.function(x.detach()))
        return self.last(self.first(x))


class DroppingAttention(torch.nn.Module):
    """Tells where it has drawn: on the host, and in a capture on the GPU."""

    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.dropout = heads, dropout
        self.project, self.out = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (self.heads, -1)).transpose(1, 2) for t in self.project(x).chunk(3, -1))
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, dropout_p=self.dropout)
        return x + torch.nn.functional.dropout(self.out(y.transpose(1, 2).flatten(2)), self.dropout)
