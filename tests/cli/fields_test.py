"""Every field of a graph is kept, and is in its hash. The fields come from the schema, so a new one is tested as soon as it is there: in a
graph that has every kind of record each field of each record gets other values, odd ones among them (zeros, defaults, empty and absent
ones). What the loader accepts must come back from reading and writing as it was, and graphs that differ have different hashes. TAP on
standard output.

    fields_test.py SOURCE TARN"""
import copy
import json
import os
import subprocess
import sys
import tempfile

from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
folder = tempfile.TemporaryDirectory()
with open(os.path.join(source, "docs/schemas/tarn.graph.schema.json"), encoding="utf-8") as opened:
    schema = json.load(opened)

ABSENT = object()
MEANS_NOTHING = {"name", "meta", "format", "version"}  # of the graph itself: not in the hash, but kept
GRAPH = {
    "format": "tarn.graph", "version": 1, "name": "every field", "meta": {"by": [1, {"x": None}], "é": 0.5},
    "spaces": [{"id": 0, "name": "hbm", "kind": "device", "alignment": 64, "capacity": 1 << 30},
               {"id": 1, "name": "sram", "kind": "scratch", "alignment": 16, "capacity": 4096}, {"id": 2, "name": "host", "kind": "pinned"}],
    "streams": [{"id": 0, "name": "compute"}, {"id": 1, "name": "copy"}, {"id": 2, "name": ""}],
    "ops": [
        {"id": 0, "name": "make", "kind": "k", "stream": 0, "inputs": [0], "outputs": [1, 2], "workspace": 100, "workspace_first": True,
         "workspace_space": 1, "cost": 10, "flops": 20, "recomputable": True,
         "implementations": [{"name": "fast", "cost": 5, "workspace": 512, "workspace_first": True, "outputs": [1]}, {"name": "slow", "cost": 50}]},
        {"id": 1, "name": "view", "kind": "reshape", "stream": 0, "inputs": [1], "outputs": [3], "view": True},
        {"id": 2, "name": "use", "kind": "relu", "class": "collective", "stream": 0, "inputs": [3, 2], "outputs": [4], "inplace": [[2, 4]], "control": [0],
         "recomputable": False, "implementations": [{"name": "other", "cost": 1, "workspace": 64, "inputs": [2, 1]}]},
        {"id": 3, "name": "again", "kind": "k", "stream": 0, "inputs": [0], "outputs": [5], "origin": 0, "implementation": 0, "common": [0],
         "control": [2]},
        {"id": 4, "name": "quick", "kind": "k", "stream": 0, "inputs": [5, 4], "outputs": [6, 7], "common": []},
        {"id": 5, "name": "", "kind": "", "stream": 1, "inputs": [6], "outputs": [8], "control": [4]},
        {"id": 6, "name": "move", "kind": "move", "stream": 1, "inputs": [6], "outputs": [11], "move": True}],
    "tensors": [
        {"id": 0, "name": "x", "size": 1000, "kind": "input", "space": 2}, {"id": 1, "name": "a", "size": 1000, "kind": "intermediate"},
        {"id": 2, "name": "b", "size": 1000, "kind": "intermediate", "alignment": 256}, {"id": 3, "name": "a, flat", "size": 992, "kind": "intermediate", "alias_of": 1},
        {"id": 4, "name": "c", "size": 1000, "kind": "gradient"}, {"id": 5, "name": "a again", "size": 1000, "kind": "intermediate", "origin": 1},
        {"id": 6, "name": "d", "size": 300, "kind": "intermediate"}, {"id": 7, "name": "e", "size": 300, "kind": "output"},
        {"id": 8, "name": "f", "size": 1, "kind": "output", "space": 2},
        {"id": 9, "name": "p", "size": 8, "kind": "parameter"}, {"id": 10, "name": "q", "size": 8, "kind": "optimizer_state"},
        {"id": 11, "name": "d, host", "size": 300, "kind": "intermediate", "space": 2}],
    "contiguous": [[6, 7], {"tensors": [2, 1], "padded": True}, {"tensors": [9], "padded": False}, [10],
                   {"tensors": [8, 11], "offsets": [0, 512]}, {"tensors": [4], "symmetric": "c"}]}
NUMBERS = (0, 1, 2, 3, 4, 7, 8, 64, 100, 512, 1 << 20, (1 << 30), (1 << 53) - 1)


def resolve(part):
    return schema["$defs"][part["$ref"].rsplit("/", 1)[1]] if "$ref" in part else part


def values_of(part, now):
    """Other values for a field of this schema, whether or not the rules of graphs allow them."""
    part = resolve(part)
    yield ABSENT
    if "enum" in part:
        yield from part["enum"]
    elif part.get("type") == "integer":
        yield from NUMBERS
        if isinstance(now, int):
            yield now + 1
    elif part.get("type") == "boolean":
        yield from (True, False)
    elif part.get("type") == "string":
        yield from ("", "other", "é \u2028 \"quoted\" \\ \t", "x" * 4096)
    elif part.get("type") == "array":
        now = now or []
        yield []
        yield now[::-1]
        yield now[1:]
        yield now + now[-1:]
        if resolve(part["items"]).get("type") == "integer":
            for more in range(11):
                yield now + [more]
        if resolve(part["items"]).get("type") == "array":
            yield now + [[0, 1]]
            yield now + [[1, 4]]
        if resolve(part["items"]).get("type") == "object":
            yield now + [{"name": "more", "cost": 0}]
    elif part.get("type") == "object":
        yield {}
        yield {"a": {"b": [1.5, "x", None, True]}}


def records(document, part, where=()):
    """(path, properties) of every object of the document."""
    part = resolve(part)
    if isinstance(document, list):
        for i, item in enumerate(document if "items" in part else []):  # a group may be a list
            yield from records(item, part["items"], (*where, i))
    elif isinstance(document, dict) and "if" in part:
        yield from records(document, part["then"], where)
    elif isinstance(document, dict) and "properties" in part:
        yield where, part["properties"]
        for field, value in document.items():
            yield from records(value, part["properties"][field], (*where, field))


def changed(where, field, value):
    document = copy.deepcopy(GRAPH)
    record = document
    for step in where:
        record = record[step]
    if value is ABSENT:
        record.pop(field, None)
    else:
        record[field] = value
    return document


def said(record, **usual):
    return {key: value for key, value in record.items() if key not in usual or usual[key] != value}


def meaning(document):
    """The document without what says nothing: absent fields and their defaults are the same."""
    document = {"meta": {}, "contiguous": [], "spaces": [], **copy.deepcopy(document)}
    document["spaces"] = [said(s, kind="device", alignment=0, capacity=0) for s in document["spaces"]]
    document["contiguous"] = [(g["tensors"], g.get("padded", False), g.get("offsets"), g.get("symmetric")) if isinstance(g, dict) else
                              (g, False, None, None)
                              for g in document["contiguous"]]
    document["tensors"] = [said(t, alignment=0, space=0, offset=0, origin=t["id"]) for t in document["tensors"]]
    ops = document["ops"]
    for op in ops:
        ways = []
        for way in op.get("implementations", []):
            if not way.get("workspace"):
                way.pop("workspace_first", None)  # nothing ends first
            ways.append(said(way, workspace=0, workspace_first=False, inputs=[], outputs=[]))
        op["implementations"] = ways
    document["ops"] = [said(op, control=[], workspace=0, workspace_first=False, workspace_space=0, cost=0, flops=0, view=False, move=False, inplace=[],
                            implementations=[], branch=[], **({} if op.get("move") else {"origin": op["id"]})) for op in ops]
    return document


def content(document):
    """What the hash is of: no plan depends on where a workspace of 0 bytes lies and when it ends."""
    document = {key: value for key, value in meaning(document).items() if key not in MEANS_NOTHING}
    for op in document["ops"]:
        if not op.get("workspace"):
            op.pop("workspace_first", None)
            if not any(way.get("workspace") for way in op.get("implementations", [])):
                op.pop("workspace_space", None)
    return json.dumps(document, sort_keys=True)


def path(name):
    return os.path.join(folder.name, name)


def read_back(document):
    """(hash, the document as Tarn writes it), or None where a rule of graphs refuses it."""
    with open(path("in.json"), "w", encoding="utf-8") as file:
        json.dump(document, file)
    info = subprocess.run([tarn, "info", path("in.json"), "--json"], capture_output=True, text=True, check=False)
    if info.returncode != 0:
        assert info.returncode == 3, info.stderr
        return None
    subprocess.run([tarn, "transform", path("in.json"), "-o", path("out.json")], capture_output=True, check=True)
    with open(path("out.json"), encoding="utf-8") as file:
        return json.loads(info.stdout)["hash"], json.load(file)


def check(document, hashes, what):
    """False: it is refused."""
    back = read_back(document)
    if not back:
        return False
    assert meaning(back[1]) == meaning(document), f"{what}: came back as another graph"
    assert read_back(back[1]) == back, f"{what}: changes when it is read and written again"
    other = hashes.setdefault(back[0], (content(document), what))
    assert other[0] == content(document), f"{what}: has the hash of {other[1]}, another graph"
    return True


@test
def every_field_of_every_record_is_kept_and_hashed():
    hashes = {}
    assert check(GRAPH, hashes, "the graph")
    told = set()
    for where, properties in records(GRAPH, schema):
        kind = "/".join(step for step in where if isinstance(step, str))
        for field, part in properties.items():
            record = GRAPH
            for step in where:
                record = record[step]
            for value in values_of(part, record.get(field)):
                document = changed(where, field, value)
                what = f"{'/'.join(map(str, where))}/{field} = {'absent' if value is ABSENT else repr(value)[:60]}"
                if check(document, hashes, what) and content(document) != content(GRAPH):
                    told.add((kind, field))
    silent = {(kind, field) for where, properties in records(GRAPH, schema) for field in properties
              for kind in ["/".join(step for step in where if isinstance(step, str))]} - told
    # What numbers or names a record cannot be changed alone, and these are not of the content.
    assert silent <= {("", "format"), ("", "version"), ("", "name"), ("", "meta"), ("spaces", "id"), ("streams", "id"), ("ops", "id"),
                      ("tensors", "id"), ("", "streams"), ("", "ops"), ("", "tensors"), ("", "spaces")}, silent
    assert len(hashes) > 200, len(hashes)


@test
def a_space_without_a_workspace_is_kept_for_what_comes_later():
    """Implementations bring a workspace, and their space is in the hash; or costs do, which come to another graph."""
    plain = {"id": 1, "name": "q", "size": 64, "kind": "output"}
    for count, fields in ((2, {"implementations": [{"name": "fast", "cost": 1, "workspace": 512}]}), (1, {})):
        graphs = []
        for space in (0, 1):
            for first in (False, True):
                op = {"id": 0, "name": "conv", "kind": "conv", "stream": 0, "inputs": [0], "outputs": [1], "cost": 100, "workspace_space": space,
                      "workspace_first": first, **fields}
                graphs.append({"format": "tarn.graph", "version": 1, "name": "w", "spaces": [{"id": 0, "name": "hbm"}, {"id": 1, "name": "sram"}],
                               "streams": [{"id": 0, "name": "s"}], "ops": [op], "tensors": [{"id": 0, "name": "p", "size": 64, "kind": "input"}, plain]})
        hashes = {}
        for i, graph in enumerate(graphs):
            assert check(graph, hashes, str(i))
        assert len(hashes) == count


run_tests()
