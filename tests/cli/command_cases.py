"""Every verb on small graphs, for tests that get in the way of the command: how to call it, what it writes,
and what it leaves when nothing is in the way."""
import dataclasses
import json
import os
import random
import re
import shutil
import subprocess


@dataclasses.dataclass
class Case:
    words: list  # of the command line; files that are read begin with "in/", all others are written
    outputs: list = dataclasses.field(default_factory=list)
    code: int = 0
    stdin: str = os.devnull
    # what a run without trouble leaves
    stdout: bytes = b""
    files: dict = dataclasses.field(default_factory=dict)

    def __str__(self):
        return "tarn " + " ".join(self.words)


def hard_graph():
    """A graph of several streams whose search goes on for as long as it may."""
    source = random.Random(3)
    ops, tensors = [], []
    for i in range(600):
        inputs = sorted({source.randrange(max(0, i - 40), i) for _ in range(2)}) if i else []
        tensors.append({"id": i, "name": f"t{i}", "size": source.randrange(1, 1 << 20), "kind": "intermediate"})
        ops.append({"id": i, "name": f"o{i}", "kind": "work", "stream": source.randrange(6), "cost": 1000,
                    "inputs": inputs, "outputs": [i]})
    return {"format": "tarn.graph", "version": 1, "name": "hard", "meta": {},
            "streams": [{"id": i, "name": f"s{i}"} for i in range(6)], "ops": ops, "tensors": tensors, "contiguous": []}


def training(layers, streams):
    """A training step: each layer's output is kept for its backward op, or made again. The chain changes streams."""
    tensors, ops = [], []

    def tensor(kind):
        tensors.append({"id": len(tensors), "name": f"t{len(tensors)}", "size": 4096, "kind": kind})
        return len(tensors) - 1

    def op(kind, inputs, output):
        ops.append({"id": len(ops), "name": f"o{len(ops)}", "kind": kind, "stream": len(ops) // 3 % streams,
                    "cost": 1000, "inputs": inputs, "outputs": [output]})
        return output

    values = [tensor("input")]
    for _ in range(layers):
        values.append(op("gelu", [values[-1]], tensor("intermediate")))
    gradient = op("mse_loss_backward", [values[-1]], tensor("gradient"))
    for i in range(layers, 0, -1):
        gradient = op("gelu_backward", [gradient, values[i]], tensor("gradient"))
    return {"format": "tarn.graph", "version": 1, "name": "training", "meta": {},
            "streams": [{"id": i, "name": f"s{i}"} for i in range(streams)], "ops": ops, "tensors": tensors,
            "contiguous": []}


def call(tarn, case, folder, env=None, prefix=()):
    """Runs the command in a folder that has `in`."""
    with open(os.path.join(folder, case.stdin), "rb") as stdin:
        return subprocess.run([*prefix, tarn, *case.words], cwd=folder, stdin=stdin, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=env, close_fds=False, check=False)


def settled(text):
    """Output without times."""
    return re.sub(rb"\d+\.\d+", b"F", text)


def settled_file(path, content):
    """Traces have times as well, and the flight recorder tells how far a run came that failed."""
    if path == "flight":
        return content.split(b":")[0] if content.endswith(b"\n") else content
    return re.sub(rb'"(ts|dur)": ?[\d.]+', b"", content) if path == "trace.json" else content


def prepare(source, tarn, folder):
    """Writes what the cases read into folder/in; returns the cases, each with what it leaves."""
    inputs = os.path.join(folder, "in")
    os.mkdir(inputs)
    for name, graph in (("g.json", "figure2.json"), ("one.json", "figure7.json"), ("pack.csv", "twelve.csv")):
        shutil.copy(os.path.join(source, "examples/graphs", graph), os.path.join(inputs, name))
    shutil.copy(os.path.join(source, "examples/costs.csv"), inputs)
    for name, streams in (("train.json", 1), ("train2.json", 2)):
        with open(os.path.join(inputs, name), "w", encoding="utf-8") as file:
            json.dump(training(6, streams), file)
    for case in (Case("plan in/g.json -o in/plan.json".split()), Case("plan in/pack.csv -o in/pack.plan".split()),
                 Case("convert in/g.json in/g.json.gz".split())):
        assert call(tarn, case, folder).returncode == 0
    with open(os.path.join(inputs, "plan.json"), encoding="utf-8") as file:
        plan = json.load(file)
    plan["storages"] = [[t, 0, *rest] for t, _, *rest in plan["storages"]]
    with open(os.path.join(inputs, "unsafe.json"), "w", encoding="utf-8") as file:
        json.dump(plan, file)
    assert call(tarn, Case("verify in/g.json in/unsafe.json --witness in/order.json".split()), folder).returncode == 6
    cases = list_cases()
    if call(tarn, Case("pairs in/g.json".split()), folder).returncode == 2:  # a build without methods of papers
        cases = [case for case in cases if not {"pairs", "roam-tree", "llfb"} & set(case.words)]
    for case in cases:
        done = call(tarn, case, folder)
        assert done.returncode == case.code, (str(case), done.returncode, done.stderr)
        case.stdout = settled(done.stdout)
        for path in case.outputs:
            with open(os.path.join(folder, path), "rb") as file:
                case.files[path] = settled_file(path, file.read())
            os.remove(os.path.join(folder, path))
    return cases


def list_cases():
    """All verbs; options that lead to code of their own."""
    cases = [Case(words.split()) for words in (
        "info in/g.json", "info in/g.json.gz --json", "info in/pack.csv", "--help", "plan --help",
        "pairs in/g.json", "pairs in/g.json --method ancestors", "pairs in/g.json --method ancestors-opt",
        "pairs in/g.json --method stream-graph", "plan in/one.json --threads 1 --method all",
        "plan in/g.json --threads 1 --method exact", "plan in/g.json --threads 1 --method roam-tree",
        "plan in/g.json --threads 1 --method llfb", "plan in/g.json --threads 4 --method baseline",
        "verify in/g.json in/plan.json", "verify in/pack.csv in/pack.plan --json", "run in/g.json --check",
        "run in/g.json in/plan.json --iterations 3 --json", "run in/g.json in/plan.json --order seed:1",
        "run in/g.json in/plan.json --kernel empty --iterations 5 --workers 3 --bind core")]
    cases += [Case(words.split() + ["-o", "out.json"], ["out.json"]) for words in (
        "plan in/g.json --threads 1", "plan in/g.json.gz --threads 1 --json", "plan in/g.json --threads 1 --assign",
        "plan in/train2.json --threads 1 --reorder --couple --in-place", "plan in/train.json --threads 1 --budget 28KB",
        "plan in/train2.json --threads 1 --budget 60KB --reorder --in-place --couple", "transform in/g.json --reorder",
        "transform in/train2.json --couple --in-place --changes", "transform in/train.json --budget 28KB",
        "transform in/train.json --implementations in/costs.csv --split-backward", "assign in/one.json --streams 2")]
    for words, outputs in (
            ("plan in/pack.csv --threads 1 -o out.csv", ["out.csv"]),
            ("plan in/train.json --budget-curve 2 -o out.csv", ["out.csv"]),
            ("plan in/train.json --budget-curve 2 -o out.svg", ["out.svg"]),
            ("convert in/pack.csv out.json.gz", ["out.json.gz"]), ("convert in/pack.csv out.csv.gz", ["out.csv.gz"]),
            ("convert in/pack.csv out.csv --plan in/pack.plan", ["out.csv"]),
            ("run in/g.json in/plan.json --order seed:1 --trace trace.json --flight flight", ["trace.json", "flight"])):
        cases.append(Case(words.split(), outputs))
    cases += [Case("plan - -o -".split(), stdin="in/g.json"), Case("convert - -".split(), stdin="in/g.json.gz"),
              Case("info in/unsafe.json".split(), code=3), Case("plan in/one.json --capacity 2047".split(), code=1),
              Case("verify in/g.json in/unsafe.json --witness out.json".split(), ["out.json"], code=6),
              Case("run in/g.json in/unsafe.json --no-verify --order in/order.json".split(), code=7)]
    return cases
