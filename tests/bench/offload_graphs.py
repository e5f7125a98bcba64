#!/usr/bin/env python3
"""Writes two graphs for the table of docs/measured/offload.md, and prints their paths.

    offload_graphs.py FOLDER

random       a training step of 60 layers that are connected at random, of random sizes and times: forward, backward, one stream.
long         a training step on a long context: a sequence of eight chunks of 8,192 tokens through four layers of a transformer
             (hidden size 4,096, keys and values a quarter of it, bf16). A chunk's attention reads the keys and values of all
             chunks before it, and its backward pass adds to their gradients in place (as in J. Yao et al., "Training
             ultra-long context language models with fully pipelined distributed transformer", 2024)."""
import json
import os
import random
import sys

MIB = 1 << 20


class Graph:
    """One stream; costs in nanoseconds."""

    def __init__(self, name):
        self.name, self.ops, self.tensors = name, [], []

    def tensor(self, size, kind="intermediate", alias_of=None):
        number = len(self.tensors)
        tensor = {"id": number, "name": f"t{number}", "size": size, "kind": kind}
        if alias_of is not None:
            tensor["alias_of"] = alias_of
        self.tensors.append(tensor)
        return number

    def op(self, kind, inputs, outputs, cost):
        self.ops.append({"id": len(self.ops), "name": f"{kind}.{len(self.ops)}", "kind": kind, "stream": 0, "inputs": inputs,
                         "outputs": outputs, "cost": int(cost)})

    def write(self, folder):
        path = os.path.join(folder, self.name + ".json")
        graph = {"format": "tarn.graph", "version": 1, "name": self.name, "meta": {}, "streams": [{"id": 0, "name": "compute"}],
                 "ops": self.ops, "tensors": self.tensors}
        with open(path, "w", encoding="utf-8") as file:
            json.dump(graph, file)
        print(path)


def random_step(layers=60, seed=1):
    draws, graph = random.Random(seed), Graph("random")

    def draw_size():
        return draws.randrange(4, 256) * MIB

    kept, gradients = [graph.tensor(draw_size(), "input")], {}
    inputs, costs = [], []
    for i in range(layers):
        chosen = sorted({i, *(draws.randrange(max(0, i - 12), i + 1) for _ in range(draws.randrange(0, 3)))})
        made = graph.tensor(draw_size())
        costs.append(draws.lognormvariate(14.3, 0.9))
        graph.op("matmul" if draws.random() < 0.6 else "relu", [kept[k] for k in chosen], [made], costs[-1])
        kept.append(made)
        inputs.append(chosen)
    size = [tensor["size"] for tensor in graph.tensors]
    for i in reversed(range(layers)):
        read = [gradients[i + 1]] if i + 1 in gradients else []
        outputs = []
        for k in inputs[i]:
            if k in gradients:  # adds to it in place
                outputs.append(graph.tensor(size[kept[k]], "intermediate", gradients[k]))
                read.append(gradients[k])
            else:
                gradients[k] = graph.tensor(size[kept[k]])
                outputs.append(gradients[k])
        graph.op("backward", [*read, *(kept[k] for k in inputs[i])], outputs, 2 * costs[i])
    return graph


def long_context(chunks=8, layers=4, tokens=8192, hidden=4096, share=4):
    graph, flops_per_ns = Graph("long"), 400_000
    wide, narrow = tokens * hidden * 2, tokens * hidden * 2 // share
    project = 2 * tokens * hidden * hidden * (1 + 2 / share) / flops_per_ns
    attend, rest = 4 * tokens * tokens * hidden / flops_per_ns, 2 * tokens * hidden * hidden * 13 / flops_per_ns
    states = [graph.tensor(wide, "input") for _ in range(chunks)]
    held = []
    for _ in range(layers):
        keys, values, layer = [], [], []
        for c in range(chunks):
            q, k, v = graph.tensor(wide), graph.tensor(narrow), graph.tensor(narrow)
            graph.op("matmul", [states[c]], [q, k, v], project)
            keys.append(k)
            values.append(v)
            o, after = graph.tensor(wide), graph.tensor(wide)
            graph.op("attention", [q, *keys, *values], [o], attend * (c + 0.5))
            graph.op("matmul", [states[c], o], [after], rest)
            layer.append((states[c], q, o))
            states[c] = after
        held.append((keys, values, layer))
    gradients = []
    for state in states:
        gradients.append(graph.tensor(wide))
        graph.op("backward", [state], [gradients[-1]], rest / 2)
    for keys, values, layer in reversed(held):
        of_keys, of_values = [None] * chunks, [None] * chunks
        for c in reversed(range(chunks)):
            x, q, o = layer[c]
            of_o, of_x, of_q = graph.tensor(wide), graph.tensor(wide), graph.tensor(wide)
            graph.op("backward", [gradients[c], x, o], [of_o, of_x], 2 * rest)
            read, made = [of_o, q, o, *keys[:c + 1], *values[:c + 1]], [of_q]
            for sums in (of_keys, of_values):
                for j in range(c + 1):
                    if sums[j] is None:
                        sums[j] = graph.tensor(narrow)
                        made.append(sums[j])
                    else:
                        read.append(sums[j])
                        made.append(graph.tensor(narrow, "intermediate", sums[j]))
            graph.op("backward", read, made, 2.5 * attend * (c + 0.5))
            gradients[c] = graph.tensor(wide)
            graph.op("backward", [of_x, of_q, of_keys[c], of_values[c], x], [gradients[c]], 2 * project)
    return graph


os.makedirs(sys.argv[1], exist_ok=True)
for made in (random_step(), long_context()):
    made.write(sys.argv[1])
