"""docs/schemas against the files that Tarn reads and writes, and against the loader's own tables of fields. TAP on standard output.

    schema_test.py SOURCE TARN"""
import glob
import gzip
import json
import os
import re
import subprocess
import sys
import tempfile

import json_schema
from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
folder = tempfile.TemporaryDirectory()
schemas = {name: json_schema.Schema(os.path.join(source, f"docs/schemas/tarn.{name}.schema.json")) for name in ("graph", "plan", "order")}
examples = glob.glob(os.path.join(source, "examples/graphs/*.json*"))

# What the loader says of a file whose shape is wrong; other messages are about meaning.
SHAPE = re.compile(
    r"must be (an? |\[|true or false|\"exact\")|\bnot -\d|32 lower-case|\bis missing|unknown( field| kind| class|$)|is not supported|"
    r"this is a \"|not a \"tarn|the document must be|has no members|is longer than|above 2\^30|a bound needs its proof|must have some|"
    r"^power of two|a number is too large", re.M)
# A number that is written with a fraction or an exponent is an integer to JSON Schema where its value is one, and no
# keyword says that a number is a power of two.
BEYOND = {"alignment_not_a_power_of_two", "footprint_fraction", "tensor_size_real", "tensor_size_with_exponent", "top_version_real"}


def path(name):
    return os.path.join(folder.name, name)


def refuse(constant):
    raise ValueError(constant)


def once(pairs):
    if len(dict(pairs)) != len(pairs):
        raise ValueError("the object has this key twice")
    return dict(pairs)


def read(name):
    with open(name, "rb") as file:
        text = file.read()
    if name.endswith(".gz"):
        text = gzip.decompress(text)
    return json.loads(text.decode("utf-8"), parse_constant=refuse, object_pairs_hook=once)


def make(name, *words, code=0):
    """Runs the command that writes the file, and reads it."""
    done = subprocess.run([tarn, *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stderr
    return read(path(name))


def write(name, content):
    with open(path(name), "w", encoding="utf-8") as file:
        json.dump(content, file)
    return path(name)


def holds(kind, value, what):
    faults = schemas[kind].faults(value)
    assert not faults, f"{what}: tarn.{kind} does not allow {faults[:5]}"


def with_spaces():
    """Every newer field: spaces, a padded group, a workspace that ends first."""
    tensor = {"kind": "intermediate"}
    return {
        "format": "tarn.graph", "version": 1, "name": "spaces",
        "spaces": [{"id": 0, "name": "device"}, {"id": 1, "name": "chip", "kind": "scratch", "alignment": 16, "capacity": 4096}],
        "streams": [{"id": 0, "name": "s"}],
        "ops": [
            {"id": 0, "name": "make", "kind": "k", "stream": 0, "inputs": [], "outputs": [0, 1], "workspace": 100, "workspace_first": True},
            {"id": 1, "name": "use", "kind": "k", "stream": 0, "inputs": [0, 1], "outputs": [2], "workspace": 40, "workspace_space": 1},
            {"id": 2, "name": "move", "kind": "move", "stream": 0, "inputs": [1], "outputs": [3], "move": True}],
        "tensors": [
            {"id": 0, "name": "x", "size": 1000, **tensor}, {"id": 1, "name": "y", "size": 1000, **tensor},
            {"id": 2, "name": "z", "size": 100, "space": 1, **tensor}, {"id": 3, "name": "w", "size": 1000, "space": 1, **tensor}],
        "contiguous": [{"tensors": [0, 1], "padded": True}]}


def check_refusals(kind, pattern):
    """The schema refuses, at the loader's place, those files whose shape is wrong, and no others."""
    refused = 0
    for name in sorted(glob.glob(os.path.join(source, pattern))):
        expected, stem = os.path.splitext(name)[0] + ".expected", os.path.basename(name)[:-5]
        try:
            value = read(name)
        except (ValueError, RecursionError):
            continue
        if not os.path.exists(expected) or stem in BEYOND:
            continue
        with open(expected, encoding="utf-8") as file:
            message = file.read()
        faults = schemas[kind].faults(value)
        assert bool(faults) == bool(SHAPE.search(message)), f"{stem}: {message}: {faults[:5]}"
        if faults:
            refused += 1
            place = next((line for line in message.splitlines() if line.startswith("/")), "")
            assert not place or place in faults, f"{stem}: {message}: {faults[:5]}"
    return refused


@test
def graphs_are_as_their_schema_says():
    for name in examples + glob.glob(os.path.join(source, "tests/data/valid/*.json*")):
        holds("graph", read(name), name)
    graph = with_spaces()
    holds("graph", graph, "a graph with spaces")
    holds("graph", make("again.json", "transform", write("spaces.json", graph), "-o", path("again.json")), "what Tarn writes of it")


@test
def plans_are_as_their_schema_says():
    for name in examples:
        if name.endswith(".gz"):  # take longer to plan
            continue
        for words in ([], ["--reorder"], ["--pad-groups", "padded"], ["--method", "many-objects:size:first-fit"]):
            plan = make("p.json", "plan", name, "-o", path("p.json"), *words)
            holds("plan", plan, [name, *words])
    plan = make("p.json", "plan", write("spaces.json", with_spaces()), "-o", path("p.json"))
    assert len(plan["spaces"]) == 2 and plan["bound_bytes"] is None
    holds("plan", plan, "a plan of spaces")
    for name in glob.glob(os.path.join(source, "tests/data/unsafe_plans/*.plan.json")):
        holds("plan", read(name), name)


@test
def orders_are_as_their_schema_says():
    unsafe = [os.path.join(source, "tests/data/invalid_plans", name) for name in ("graph.json", "wait_dropped.json")]
    order = make("o.json", "verify", *unsafe, "--witness", path("o.json"), code=6)
    assert order["order"]
    holds("order", order, "a witness")
    holds("order", [2, 0, 1], "a bare array")
    for change, place in (
            ({"order": [[0]]}, "/order/0"), ({"order": [[0, -1]]}, "/order/0/1"), ({"order": [[0, 0, 0]]}, "/order/0"),
            ({"order": 1}, "/order"), ({"order": [0]}, "/order/0"), ({"version": 2}, "/version"), ({"more": 1}, "/more")):
        assert place in schemas["order"].faults({**order, **change}), change
    assert schemas["order"].faults([[0, 0]]) and schemas["order"].faults({})


@test
def graphs_of_a_wrong_shape_are_refused_at_their_place():
    assert check_refusals("graph", "tests/data/invalid/*.json") > 60


@test
def plans_of_a_wrong_shape_are_refused_at_their_place():
    assert check_refusals("plan", "tests/data/invalid_plans/*.json") > 40


@test
def schemas_end_where_the_loader_ends():
    def spaces(count):
        return [{"id": i, "name": ""} for i in range(count)]

    def tensor(**fields):
        return {"tensors": [{**with_spaces()["tensors"][0], **fields}, *with_spaces()["tensors"][1:]]}

    def op(**fields):
        return {"ops": [{**with_spaces()["ops"][0], **fields}, *with_spaces()["ops"][1:]]}

    long = "x" * 4096
    edges = [
        ({"name": long}, {}), ({"spaces": spaces(16)}, {"spaces": spaces(17)}), (op(kind=long), op(kind=long + "x")),
        (tensor(name=long), tensor(name=long + "x")), (tensor(size=0), tensor(size=-1)),
        (tensor(alignment=2 ** 30), tensor(alignment=2 ** 31)), (tensor(alignment=0), tensor(alignment=-1)),
        (op(cost=2 ** 53 - 1), op(cost=2 ** 53)), (op(workspace=0), op(workspace=-1)), (op(recomputable=True), op(recomputable=1)),
        (op(**{"class": "copy"}), op(**{"class": "unknown"})),
        (op(implementations=[{"name": long, "cost": 0}]), op(implementations=[{"name": long + "x", "cost": 0}])),
        ({"contiguous": []}, {"contiguous": [{"tensors": []}]}), ({"contiguous": [[0, 1]]}, {"contiguous": [0, 1]}), ({"meta": {}}, {"meta": []})]
    for inside, outside in edges:
        holds("graph", read(write("g.json", {**with_spaces(), **inside})), inside)
        make("g.json", "info", path("g.json"))
        if outside:
            assert schemas["graph"].faults(read(write("g.json", {**with_spaces(), **outside}))), outside
            make("g.json", "info", path("g.json"), code=3)


def tables():
    """The loader's tables: for each kind of object its fields, and whether they are required."""
    for name in ("graph_read", "plan_read", "order_read"):
        with open(os.path.join(source, f"streams/file/{name}.c"), encoding="utf-8") as file:
            for body in re.findall(r"struct tarn_json_field \w+\[\w*\] = \{(.*?)\};", file.read(), re.S):
                yield frozenset((field, word == "true") for field, word in re.findall(r'\{"(\w+)", (true|false)\}', body))


def objects(schema):
    """The same of a schema."""
    if isinstance(schema, dict):
        if "additionalProperties" in schema:
            yield frozenset((field, field in schema["required"]) for field in schema["properties"])
        for part in schema.values():
            yield from objects(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from objects(part)


@test
def schemas_have_the_fields_that_the_loader_knows():
    ours, theirs = {fields for schema in schemas.values() for fields in objects(schema.root)}, set(tables())
    assert len(ours) >= 9 and ours == theirs, [sorted(fields) for fields in ours ^ theirs]


@test
def every_field_of_a_schema_is_described():
    with open(os.path.join(source, "docs/formats.md"), encoding="utf-8") as file:
        text = file.read()
    absent = {field for schema in schemas.values() for fields in objects(schema.root) for field, _ in fields if not re.search(rf"\b{field}\b", text)}
    assert not absent, absent


run_tests()
