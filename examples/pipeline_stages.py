#!/usr/bin/env python3
"""Writes graphs of what one device of a pipeline does in a training step, and prints their paths.

    examples/pipeline_stages.py FOLDER [--stages 2,4] [--microbatches 4,8] [--schedules 1f1b,interleaved,zero-bubble]
                                [--tensor-parallel 1,2] [--hidden 2048] [--length 2048] [--layers 8] [--symmetric] > LIST

Every combination gives one graph for each stage: the layers of a transformer that the device holds, forward and backward for
each microbatch in the order of the schedule, on the streams compute, send, receive and (tensor-parallel) reduce. Sizes are
those of bf16 training without dropout: 8 + 24 / t bytes for each layer, token and feature are kept for the backward pass.

With --symmetric what one stage sends and the next one receives has one name in both graphs, as a symmetric group, and so has
what tensor-parallel devices sum: planned as a family (tarn_family_plan), they lie at one offset on all devices.

Schedules: 1F1B (D. Narayanan et al., "PipeDream", 2019); interleaved with two chunks of layers for each device (D. Narayanan et
al., "Efficient large-scale language model training on GPU clusters", 2021); zero-bubble, in which gradients of weights are ops of
their own, which a later stage delays for longer, up to about the memory of the first (after P. Qi et al., "Zero bubble pipeline parallelism", 2024, ZB-H1).
"""
import argparse
import itertools
import json
import os

CHUNKS = {"1f1b": 1, "interleaved": 2, "zero-bubble": 1}
FLOPS_PER_NS = 200_000  # of a device


class Graph:
    """A tarn.graph as one builds it."""

    def __init__(self, name):
        self.name, self.streams, self.ops, self.tensors, self.groups = name, [], [], [], {}

    def stream(self, name):
        self.streams.append({"id": len(self.streams), "name": name})
        return len(self.streams) - 1

    def tensor(self, name, size, kind="intermediate", alias_of=None):
        tensor = {"id": len(self.tensors), "name": name, "size": size, "kind": kind}
        if alias_of is not None:
            tensor["alias_of"] = alias_of
        self.tensors.append(tensor)
        return tensor["id"]

    def again(self, tensor):
        """A further name for the bytes of a tensor, for an op that writes them in place."""
        root = self.tensors[tensor].get("alias_of", tensor)
        of = self.tensors[root]
        return self.tensor(of["name"] + "'", of["size"], of["kind"], root)

    def op(self, name, kind, stream, inputs, outputs, workspace=0, cost=0):
        op = {"id": len(self.ops), "name": name, "kind": kind, "stream": stream, "inputs": inputs, "outputs": outputs,
              "cost": cost}
        if workspace:
            op["workspace"] = workspace
        self.ops.append(op)

    def symmetric(self, tensor, name):
        """A tensor that lies at one offset on all devices; it keeps the first name that it gets."""
        self.groups.setdefault(self.tensors[tensor].get("alias_of", tensor), name)

    def save(self, path):
        groups = [{"tensors": [tensor], "symmetric": name} for tensor, name in self.groups.items()]
        with open(path, "w") as file:
            json.dump({"format": "tarn.graph", "version": 1, "name": self.name, "streams": self.streams, "ops": self.ops,
                       "tensors": self.tensors, "contiguous": groups}, file)


# ---- Schedules: (pass, chunk, microbatch) in the order of one device ----

def one_forward_one_backward(stage, stages, microbatches):
    warmup = min(stages - stage - 1, microbatches)
    order = [("F", 0, k) for k in range(warmup)]
    for k in range(microbatches - warmup):
        order += [("F", 0, warmup + k), ("B", 0, k)]
    return order + [("B", 0, k) for k in range(microbatches - warmup, microbatches)]


def interleaved(stage, stages, microbatches):
    chunks = CHUNKS["interleaved"]
    total = microbatches * chunks

    def place(i, backward):  # the i-th pass: groups of `stages` microbatches go through all chunks
        group, inside = divmod(i, stages * chunks)
        chunk = inside // stages
        return (chunks - 1 - chunk if backward else chunk), group * stages + inside % stages

    warmup = min((stages - stage - 1) * 2 + (chunks - 1) * stages, total)
    order = [("F", *place(i, False)) for i in range(warmup)]
    for i in range(total - warmup):
        order += [("F", *place(warmup + i, False)), ("B", *place(i, True))]
    return order + [("B", *place(i, True)) for i in range(total - warmup, total)]


def zero_bubble(stage, stages, microbatches):
    order, waiting = [], []
    for step in one_forward_one_backward(stage, stages, microbatches):
        order.append(step)
        if step[0] == "B":
            waiting.append(("W", *step[1:]))
        if len(waiting) > stage:  # a later stage has its bubble later
            order.append(waiting.pop(0))
    return order + waiting


SCHEDULES = {"1f1b": one_forward_one_backward, "interleaved": interleaved, "zero-bubble": zero_bubble}


# ---- A device's graph ----

class Device:
    def __init__(self, schedule, stage, o):
        self.schedule, self.stage, self.o = schedule, stage, o
        self.graph = g = Graph(f"{schedule}.p{o.stages}s{stage}.m{o.microbatches}.t{o.tensor_parallel}.h{o.hidden}.l{o.length}")
        self.compute, self.send, self.receive = g.stream("compute"), g.stream("send"), g.stream("receive")
        self.reduce = g.stream("reduce") if o.tensor_parallel > 1 else None
        self.unit = 2 * o.length * o.hidden  # bytes of an activation
        self.layers = max(1, o.layers // (o.stages * CHUNKS[schedule]))
        weight = 12 * o.hidden * o.hidden // o.tensor_parallel
        count = CHUNKS[schedule] * self.layers
        self.weights = [g.tensor(f"w{i}", 2 * weight, "parameter") for i in range(count)]
        self.gradients = [None] * count  # the latest name of each sum
        self.weight = weight
        self.summed = []
        self.saved = {}  # (chunk, microbatch) -> what the backward pass reads
        self.cost = 24 * o.length * o.hidden * o.hidden // o.tensor_parallel // FLOPS_PER_NS // 2  # of half a layer's forward

    def first(self, chunk):
        return self.stage == 0 and chunk == 0

    def last(self, chunk):
        return self.stage == self.o.stages - 1 and chunk == CHUNKS[self.schedule] - 1

    def place(self, chunk):
        """Which of the parts of the model, in the order in which a microbatch goes through them."""
        return chunk * self.o.stages + self.stage

    def arrive(self, name, transfer):
        tensor = self.graph.tensor(name, self.unit)
        self.graph.op(f"receive.{name}", "recv", self.receive, [], [tensor], cost=self.unit // 50)
        if self.o.symmetric:
            self.graph.symmetric(tensor, transfer)
        return tensor

    def leave(self, tensor, name, transfer):
        self.graph.op(f"send.{name}", "send", self.send, [tensor], [], cost=self.unit // 50)
        if self.o.symmetric:
            self.graph.symmetric(tensor, transfer)

    def reduced(self, tensor):
        """Summed over the devices that share the layers."""
        if self.reduce is None:
            return tensor
        result = self.graph.again(tensor)
        self.graph.op("all_reduce", "all_reduce", self.reduce, [tensor], [result], cost=self.unit // 200)
        self.summed.append(tensor)
        return result

    def half(self, name, kind, x, w, wide):
        """Attention or feed-forward: saves a norm and what is `wide`; returns the result and what was saved."""
        g, unit, t = self.graph, self.unit, self.o.tensor_parallel
        saved = [g.tensor(f"{name}.norm", unit)] + [g.tensor(f"{name}.{i}", width * unit // t) for i, width in enumerate(wide)]
        y = g.tensor(f"{name}.y", unit)
        g.op(name, kind, self.compute, [x, w], [*saved, y], cost=self.cost)
        return self.reduced(y), saved

    def forward(self, chunk, k):
        g = self.graph
        x = (g.tensor(f"tokens{k}", self.unit, "input") if self.first(chunk) else self.arrive(f"x{chunk}.{k}", f"forward{self.place(chunk)}.{k}"))
        kept = []
        for i in range(self.layers):
            w = self.weights[chunk * self.layers + i]
            name = f"c{chunk}.l{i}.m{k}"
            a, of_attention = self.half(f"{name}.attention", "attention", x, w, (3, 1))
            y, of_feed = self.half(f"{name}.feed", "feed_forward", a, w, (4, 4))
            kept.append((x, a, of_attention, of_feed))
            x = y
        self.saved[chunk, k] = [kept, x]
        if not self.last(chunk):
            self.leave(x, f"y{chunk}.{k}", f"forward{self.place(chunk) + 1}.{k}")

    def add_to_gradient(self, layer):
        """The names of a gradient's sum before and after something is added to it."""
        before = self.gradients[layer]
        after = (self.graph.tensor(f"w{layer}.gradient", 4 * self.weight, "gradient") if before is None
                 else self.graph.again(before))
        self.gradients[layer] = after
        return ([] if before is None else [before]), [after]

    def half_back(self, name, kind, dy, x, w, saved, wide, layer):
        g, inner = self.graph, wide * self.unit // self.o.tensor_parallel
        dx = g.tensor(f"{name}.dx", self.unit)
        if self.schedule != "zero-bubble":
            before, after = self.add_to_gradient(layer)
            g.op(name, kind, self.compute, [dy, x, w, *saved, *before], [dx, *after], workspace=inner, cost=2 * self.cost)
            return self.reduced(dx), None
        di = g.tensor(f"{name}.inner", inner)
        g.op(name, kind, self.compute, [dy, x, w, *saved], [dx, di], cost=self.cost)
        return self.reduced(dx), (name, layer, [dy, saved[0], saved[-1], di])

    def backward(self, chunk, k):
        kept, y = self.saved[chunk, k]
        if self.last(chunk):
            dy = self.graph.tensor(f"loss{k}.gradient", self.unit)
            self.graph.op(f"loss{k}", "loss_backward", self.compute, [y], [dy], cost=self.cost)
        else:
            dy = self.arrive(f"dy{chunk}.{k}", f"backward{self.place(chunk)}.{k}")
        later = []
        for i in reversed(range(self.layers)):
            x, a, of_attention, of_feed = kept[i]
            layer = chunk * self.layers + i
            name = f"c{chunk}.l{i}.m{k}"
            da, w1 = self.half_back(f"{name}.feed.backward", "feed_forward_backward", dy, a, self.weights[layer], of_feed, 4, layer)
            dy, w2 = self.half_back(f"{name}.attention.backward", "attention_backward", da, x, self.weights[layer], of_attention, 3,
                                    layer)
            later += [w1, w2]
        self.saved[chunk, k] = later
        if not self.first(chunk):
            self.leave(dy, f"dx{chunk}.{k}", f"backward{self.place(chunk) - 1}.{k}")

    def backward_weights(self, chunk, k):
        for name, layer, reads in self.saved[chunk, k]:
            before, after = self.add_to_gradient(layer)
            self.graph.op(f"{name}.weights", "weights_backward", self.compute, [*reads, *before], after, cost=self.cost)

    def build(self):
        passes = {"F": self.forward, "B": self.backward, "W": self.backward_weights}
        for kind, chunk, k in SCHEDULES[self.schedule](self.stage, self.o.stages, self.o.microbatches):
            passes[kind](chunk, k)
        for layer, gradient in enumerate(self.gradients):
            w = self.weights[layer]
            self.graph.op(f"w{layer}.update", "sgd", self.compute, [w, gradient], [self.graph.again(w)])
        for i, tensor in enumerate(self.summed if self.o.symmetric else []):
            self.graph.symmetric(tensor, f"stage{self.stage}.sum{i}")
        return self.graph


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--schedules", default="1f1b,interleaved,zero-bubble", type=lambda text: text.split(","))
    parser.add_argument("--stages", default=[2, 4], type=numbers)
    parser.add_argument("--microbatches", default=[4, 8], type=numbers)
    parser.add_argument("--tensor-parallel", default=[1, 2], type=numbers)
    parser.add_argument("--hidden", default=[2048], type=numbers)
    parser.add_argument("--length", default=[2048], type=numbers)
    parser.add_argument("--layers", default=8, type=int)
    parser.add_argument("--symmetric", action="store_true")
    o = parser.parse_args()
    os.makedirs(o.folder, exist_ok=True)
    for schedule, stages, microbatches, t, hidden, length in itertools.product(
            o.schedules, o.stages, o.microbatches, o.tensor_parallel, o.hidden, o.length):
        if schedule == "interleaved" and microbatches % stages:
            continue  # its groups of microbatches must be whole
        shape = argparse.Namespace(stages=stages, microbatches=microbatches, tensor_parallel=t, hidden=hidden, length=length,
                                   layers=o.layers, symmetric=o.symmetric)
        for stage in range(stages):
            graph = Device(schedule, stage, shape).build()
            path = os.path.join(o.folder, graph.name + ".json")
            graph.save(path)
            print(path)


if __name__ == "__main__":
    main()
