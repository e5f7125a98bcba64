"""Every field that a verb prints with --json is in the tables of docs/formats.md, and every field of the tables is printed. TAP on
standard output.

    answers_test.py SOURCE TARN"""
import json
import os
import re
import subprocess
import sys
import tempfile

from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
folder_that_ends = tempfile.TemporaryDirectory()
os.chdir(folder_that_ends.name)

# Words of the table that stand for the members that name an op or a storage.
STANDS_FOR = {"OP": ("op", "op_id", "stream"), "STORAGE": ("tensor", "tensor_id", "workspace_of", "op_id", "space")}
# No answer of these tests has them.
NEEDS_MORE = {("run", "captured_iterations"),  # a CUDA device
              ("assign", "offload_time.moves_no_less_than_ns"),  # one stream
              ("explain", "planned_with[].failed")}  # a plan that cannot be made


def graph(name):
    return os.path.join(source, "examples/graphs", name)


FIGURE2, FIGURE7, OFFLOAD, ALEXNET = (graph(name + ".json") for name in ("figure2", "figure7", "offload", "alexnet_b1_adam.ddp"))
SYMMETRIC = os.path.join(source, "tests/data/valid/symmetric.json")
GOOGLENET = graph("googlenet_b1_adam.ddp_branch4.json.gz")
ALL = ["--assign", "--reorder", "--couple", "--in-place", "--budget", "95%"]


def spread(path):
    """The paths that a field of the tables stands for."""
    head, dot, last = path.rpartition(".")
    return [head + dot + word for word in STANDS_FOR.get(last, (last,))]


def documented():
    """{verb: {path: is it one that a word stands for?}}, and rows without a meaning."""
    with open(os.path.join(source, "docs/formats.md"), encoding="utf-8") as file:
        text = file.read()
    text = text[text.index("\n## Answers"):]
    fields, verbs = {}, []
    for line in text.splitlines():
        row = re.match(r"\| (.*?) \| (.*?)\|? ?(.*) \|$", line)
        if not row or line.startswith("|---"):
            continue
        words = re.findall(r"`([^`]+)`", row[1])
        if "| unit | meaning |" in line:
            verbs = ["every"] if "every verb" in row[1] else words
            continue
        assert words and row[3].split("|")[-1].strip(), line
        for verb in verbs:
            for word in words:
                for path in spread(word):
                    fields.setdefault(verb, {})[path] = spread(word) != [word] or fields.get(verb, {}).get(path, False)
    return fields


def paths_of(value, path=""):
    if isinstance(value, dict):
        for key, member in value.items():
            name = f"{path}.{key}" if path else key
            yield name
            yield from paths_of(member, name)
    elif isinstance(value, list):
        for member in value:
            yield from paths_of(member, path + "[]")


def broken(plan, path):
    with open(plan, encoding="utf-8") as file:
        made = json.load(file)
    made["boundary_waits"] = []
    with open(path, "w", encoding="utf-8") as file:
        json.dump(made, file)
    return path


def printed():
    """{verb: paths}."""
    found = {}

    def ask(*words):
        done = subprocess.run([tarn, *words, "--json"], capture_output=True, text=True)
        found.setdefault(words[0], set()).update(paths_of(json.loads(done.stdout)))

    with open("list", "w", encoding="utf-8") as file:
        file.write(f"{FIGURE2}\n{FIGURE7}\n{FIGURE2}\nabsent.json\n")
    with open("unknown.json", "w", encoding="utf-8") as file:
        with open(FIGURE7, encoding="utf-8") as known:
            made = json.load(known)
        made["ops"][0]["kind"] = "some_kind_of_ones_own"
        json.dump(made, file)
    tensors = [{"id": i, "name": f"t{i}", "size": 4096, "kind": kind} for i, kind in enumerate(["input", "intermediate", "intermediate", "output"])]
    ops = [{"id": i, "name": f"o{i}", "kind": "relu", "stream": 0, "cost": 1, "inputs": [i], "outputs": [i + 1]} for i in range(3)]
    with open("chain.json", "w", encoding="utf-8") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": "chain", "meta": {}, "streams": [{"id": 0, "name": "s"}], "ops": ops, "tensors": tensors,
                   "contiguous": []}, file)
    tensors = [{"id": i, "name": f"t{i}", "size": (2 if i in (3, 4) else 1) << 20, "kind": "intermediate"} for i in range(8)]
    ops = [{"id": i, "name": f"o{i}", "kind": "matmul", "stream": 0, "cost": 1000000, "recomputable": False, "inputs": [i - 1] if i else [],
            "outputs": [i]} for i in range(8)]
    ops[7]["inputs"].append(0)
    with open("away.json", "w", encoding="utf-8") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": "away", "meta": {}, "streams": [{"id": 0, "name": "s"}], "ops": ops, "tensors": tensors,
                   "contiguous": []}, file)
    words = [{"id": i, "name": name, "size": size, "kind": "intermediate", **more} for i, (name, size, more) in enumerate(
        [("a", 512, {"fixed_offset": 0}), ("b", 512, {}), ("left", 256, {"alias_of": 0, "offset": 0}), ("c", 512, {"preferred_offset": 512})])]
    arms = [{"id": i, "name": f"arm{i}", "kind": "relu", "stream": 0, "inputs": [], "outputs": [i], "branch": [[0, i]]} for i in range(2)]
    arms[0]["outputs"].append(2)
    arms.append({"id": 2, "name": "join", "kind": "add", "stream": 0, "inputs": [0, 1, 2], "outputs": [3]})
    with open("words.json", "w", encoding="utf-8") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": "words", "meta": {}, "streams": [{"id": 0, "name": "s"}], "ops": arms, "tensors": words,
                   "contiguous": []}, file)
    ask("plan", "words.json", "-o", "w.plan")
    for names in (["a"], ["c"], ["a", "b"], ["op:0"]):
        ask("explain", "words.json", "w.plan", *names)
    for name in (FIGURE2, OFFLOAD, GOOGLENET, "unknown.json"):
        ask("info", name)
    for name, plan, *more in ((FIGURE2, "f.plan"), (OFFLOAD, "o.plan"), (GOOGLENET, "g.plan"), (FIGURE7, "7.plan"), (FIGURE7, "7b.plan", "--alignment", "64"),
                              (OFFLOAD, "o2.plan", "--method", "many-objects:lifetime:first-fit"), (ALEXNET, "a.plan"), (ALEXNET, "a2.plan", "--reorder")):
        ask("plan", name, "-o", plan, *more)
    ask("plan", ALEXNET, *ALL[:-1], "100%", "--pad-groups", "exact")
    ask("plan", FIGURE2, "--keep", "f.plan")
    ask("plan", FIGURE2, "--budget-curve", "2")
    ask("plan", FIGURE2, "--reorder-curve", "3")
    ask("plan", "--batch", "list", "-o", "plans")
    with open("family.list", "w", encoding="utf-8") as file:
        file.write(SYMMETRIC + "\n")
    ask("plan", "--batch", "family.list", "--family", "-o", "family")
    ask("verify", "family.list", "family", "--family")
    for name in os.listdir("family"):
        broken(os.path.join("family", name), os.path.join("family", name))
    ask("verify", "family.list", "family", "--family")
    ask("plan", "away.json", "--offload", "50GB/s", "--budget", "85%", "--alignment", "1")
    ask("plan", "absent.json")
    ask("verify", FIGURE2, broken("f.plan", "broken.plan"))
    for names in ([], ["a"], ["op:1"], ["a", "i"], ["a", "b"]):
        ask("explain", FIGURE2, "f.plan", *names)
    for names in ([], ["a1"], ["op:4"]):
        ask("explain", OFFLOAD, "o.plan", *names)
    ask("explain", GOOGLENET, "g.plan", "--quick")
    ask("explain", GOOGLENET, "g.plan", "mm_9")
    ask("compare", "f.plan", "f.plan")
    ask("compare", "7.plan", "7b.plan")
    ask("compare", "o.plan", "o2.plan", OFFLOAD, "--changes")
    ask("compare", "a.plan", "a2.plan")
    ask("run", FIGURE2)
    ask("run", FIGURE2, "--kernel", "empty")
    for verb in ("transform", "assign"):
        ask(verb, "chain.json", "--in-place-kinds", "relu", "--changes")
        ask(verb, "away.json", "--offload", "50GB/s", "--budget", "85%")
        ask(verb, ALEXNET, *ALL[:-1], "100%", "--changes", "--implementations", os.path.join(source, "examples/costs.csv"), "--split-backward")
    ask("convert", FIGURE7, "figure7.csv", "--plan", "7.plan")
    ask("convert", FIGURE7, "figure7.csv")
    ask("pairs", FIGURE2, "--method", "clocks")
    return found


fields, answers = documented(), printed()


@test
def fields_that_are_printed_are_in_the_tables():
    assert set(answers) | {"every"} == set(fields), set(answers) ^ set(fields)
    missing = [(verb, path) for verb in answers for path in sorted(answers[verb]) if path not in fields[verb] and path not in fields["every"]]
    assert not missing, missing


@test
def fields_of_the_tables_are_printed():
    for verb, paths in fields.items():
        told = set().union(*answers.values()) if verb == "every" else answers[verb]
        unprinted = [path for path, is_one_of in paths.items() if path not in told and not is_one_of and (verb, path) not in NEEDS_MORE]
        assert not unprinted, (verb, unprinted)


@test
def names_tell_their_units():
    for verb, paths in answers.items():
        for path in paths:
            last = path.split(".")[-1]
            assert re.fullmatch(r"[a-z][a-z_]*(\[\])*", last), (verb, path)


run_tests()
