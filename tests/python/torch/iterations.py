"""Marked iterations on a GPU against the same ones without marks, bit by bit, with a second stream
that works beside the first one. TAP on stdout. tests/gpu.sh runs it; the tests run it on the CPU,
where there are no streams.

    tests/with_torch.sh tests/python/torch/iterations.py cuda|cpu"""
import contextlib
import sys

import torch
from cases import run
from networks import loss_of, make

from tarn.torch.allocator import Allocator

DEVICE, STEPS = sys.argv[1], 12
torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False
FIRST = Allocator(device=DEVICE)  # before anything is on the GPU


def beside(x):
    """A sum of x, made on another stream."""
    if DEVICE == "cpu":
        return (x * 2).sum()
    other, own = beside.stream, torch.cuda.current_stream()
    other.wait_stream(own)
    with torch.cuda.stream(other):
        total = (x * 2).sum()
    x.record_stream(other)
    own.wait_stream(other)
    return total.clone()


def train(name, mark):
    model, batch = make(name)
    model.to(DEVICE)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, foreach=True)
    torch.manual_seed(1)
    data = [[t.to(DEVICE) for t in batch()] for _ in range(STEPS)]
    torch.manual_seed(2)
    found = []
    for b in data:
        with mark():
            loss = loss_of(model, *b)
            loss.backward()
            grown = beside(torch.ones(1000, device=DEVICE) * loss.detach())
            optimizer.step()
            optimizer.zero_grad()
            both = loss.item(), grown.item()
            del loss, grown
        found.append(both)
    return found, [t.detach().cpu() for t in (*model.parameters(), *model.buffers())]


def compare(name, memory):
    if DEVICE == "cuda":
        beside.stream = torch.cuda.Stream()
    (expected, tensors), (found, others) = train(name, contextlib.nullcontext), train(name, memory.iteration)
    assert found == expected and all(map(torch.equal, tensors, others))
    report = memory.report()
    print("#", name, report)
    assert report["arena"] > 0 and report["served"] > 0, report


def a_transformer_is_bit_equal():
    compare("small_gpt", FIRST)


def a_convolutional_network_is_bit_equal():
    compare("small_resnet", Allocator(device=DEVICE))


if __name__ == "__main__":
    run([a_transformer_is_bit_equal, a_convolutional_network_is_bit_equal])
