"""Graphs and plans to draw, and what a page of one is made of."""
import base64
import gzip
import json
import random
import re
import subprocess

HOSTILE = ['</script><script>window.hacked = 1</script>', '<img src=x onerror="window.hacked = 1">', '"\'`&<>;--></style>',
           '\u202egnp.exe', 'tab\tand\nline\x1b[31m', '@DATA@ @TITLE@', '\U0001f600\u4e2d\u6587 é', '</text></svg>', 'x' * 3000, '']


class Tarn:
    def __init__(self, program):
        self.program = program

    def __call__(self, *words, code=0):
        """Runs it; what it said."""
        done = subprocess.run([self.program, *map(str, words)], capture_output=True, text=True)
        assert done.returncode == code, f"tarn {' '.join(map(str, words))}: exit {done.returncode}\n{done.stderr}"
        return done.stdout

    def json(self, *words):
        return json.loads(self(*words, "--json"))


def columns_of(path):
    """The data of a page, as its script unpacks them."""
    with open(path, encoding="utf-8") as file:
        letters = re.search(r'<script id="data"[^>]*>([^<]*)</script>', file.read()).group(1)
    return json.loads(gzip.decompress(base64.b64decode(letters, validate=True)))


def running_sums(differences):
    total = 0
    for difference in differences:
        total += difference
        yield total


def unpacked(names):
    number = 0
    for name in names:
        stem, tab, difference = name.partition("\t")
        number += int(difference) if tab else 0
        yield stem + str(number) if tab else stem


def write_graph(path, name, streams, ops, tensors, contiguous=()):
    for i, op in enumerate(ops):
        op["id"] = i
    for i, tensor in enumerate(tensors):
        tensor["id"] = i
    graph = {"format": "tarn.graph", "version": 1, "name": name, "meta": {}, "ops": ops, "tensors": tensors,
             "streams": [{"id": i, "name": s} for i, s in enumerate(streams)], "contiguous": list(contiguous)}
    with open(path, "w", encoding="utf-8") as file:
        json.dump(graph, file)
    return path


def hostile_graph(path):
    """Every name is one that a page, a picture or a terminal would obey."""
    ops, tensors = [], []
    for i, name in enumerate(HOSTILE):
        ops.append({"name": name, "kind": HOSTILE[-2 - i % 8], "stream": i % 3, "inputs": [i - 1] if i else [], "outputs": [i], "cost": 1000})
        tensors.append({"name": name, "size": 5000 + 700 * i, "kind": "intermediate"})
    return write_graph(path, HOSTILE[0], HOSTILE[:3], ops, tensors)


def large_graph(path, storages, streams, seed=1):
    """Layers of ops that read some of the last results, each stream its own and sometimes another's; two
    results are kept for a mirrored pass, as in training."""
    draw = random.Random(seed)
    ops, tensors, kept = [], [], []
    half = storages // 2
    for i in range(storages):
        stream = draw.randrange(streams) if i % 50 == 0 else ops[-1]["stream"]
        inputs = {draw.randrange(max(0, i - 40), i)} if i else set()
        if i and draw.random() < 0.3:
            inputs.add(i - 1)
        if i < half and draw.random() < 0.5:
            kept.append(i)
        if i >= half and kept:
            inputs.add(kept.pop())
        ops.append({"name": f"op_{i}", "kind": f"kind_{i % 17}", "stream": stream, "inputs": sorted(inputs), "outputs": [i], "cost": draw.randrange(500, 20000)})
        tensors.append({"name": f"tensor_{i}", "size": draw.randrange(1, 64) * 1024, "kind": "gradient" if i >= half and i % 3 == 0 else "intermediate"})
    return write_graph(path, f"large {storages}", [f"stream {s}" for s in range(streams)], ops, tensors)


def break_plan(path, target):
    """Without its waits a plan of several streams is not safe."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    plan["waits"] = []
    with open(target, "w", encoding="utf-8") as file:
        json.dump(plan, file)
    return target
