"""`tarn compare` against plans read by Python: what moved, grew, is new or gone, and which plan is worse. TAP on standard output.

    compare_test.py SOURCE TARN"""
import collections
import json
import os
import subprocess
import sys
import tempfile

from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
folder = tempfile.TemporaryDirectory()
graphs = os.path.join(source, "examples/graphs")


def run(*words):
    return subprocess.run([tarn, *words], cwd=folder.name, capture_output=True, text=True, check=False)


def read(name):
    with open(os.path.join(folder.name, name), encoding="utf-8") as file:
        return json.load(file)


def write(name, content):
    with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
        json.dump(content, file)
    return name


def plan(graph, name, *words):
    done = run("plan", graph, "-o", name, *words)
    assert done.returncode == 0, done.stderr
    return read(name)


def compare(*words):
    done = run("compare", *words, "--json", "--changes")
    return done.returncode, json.loads(done.stdout)


def badness(document):
    return document["footprint_bytes"], len(document["waits"]) + len(document["boundary_waits"])


def expected_changes(a, b, name_a, name_b):
    """How often each change, by names: independent of the command's way to match."""
    counts = collections.Counter()
    for kind, key in (("storages", "tensor"), ("workspaces", "op")):
        rows_a = {name_a(key, row[0]): row for row in a[kind]}
        rows_b = {name_b(key, row[0]): row for row in b[kind]}
        for name in rows_a.keys() | rows_b.keys():
            before, after = rows_a.get(name), rows_b.get(name)
            if not before or not after:
                counts["gone" if before else "new"] += 1
            elif before[2] != after[2]:
                counts["grew" if after[2] > before[2] else "shrank"] += 1
            elif before[1] != after[1]:
                counts["moved"] += 1
    return {fate: counts[fate] for fate in ("moved", "grew", "shrank", "new", "gone")}


def by_id(kind, number):
    return kind, number


def namer(graph):
    return lambda kind, number: (kind, graph["tensors" if kind == "tensor" else "ops"][number]["name"])


@test
def two_plans_of_one_graph_are_matched_by_id():
    for graph in ("figure2.json", "alexnet_b1_adam.ddp.json", "googlenet_b1_adam.ddp_branch4.json.gz"):
        path = os.path.join(graphs, graph)
        a, b = plan(path, "a", "--method", "many-objects:size:first-fit"), plan(path, "b", "--alignment", "64")
        code, told = compare("a", "b")
        assert told["same_graph"] and told["first"]["footprint_bytes"] == a["footprint_bytes"]
        assert told["second"]["footprint_bytes"] == b["footprint_bytes"] and told["second"]["waits"] == len(b["waits"])
        counts = dict(told["storages"])
        assert counts.pop("common") == len(a["storages"]) + len(a["workspaces"])
        assert counts == expected_changes(a, b, by_id, by_id), (graph, counts)
        assert len(told["changes"]) == sum(counts.values())
        assert code == (1 if badness(b) > badness(a) else 0)


@test
def the_second_is_worse_by_a_byte_or_by_a_wait():
    a = plan(os.path.join(graphs, "figure2.json"), "a")
    assert compare("a", "a") == (0, compare("a", "a")[1]) and compare("a", "a")[1]["verdict"] == "equal"
    larger = write("larger", {**a, "footprint_bytes": a["footprint_bytes"] + 512})
    wait = [a["streams"][1][-1], a["streams"][0][0]]
    waiting = write("waiting", {**a, "waits": a["waits"] + [wait]})
    smaller = write("smaller", {**a, "footprint_bytes": a["footprint_bytes"] - 512, "waits": a["waits"] + [wait]})
    for name, verdict in ((larger, "worse"), (waiting, "worse"), (smaller, "better")):
        code, told = compare("a", name)
        assert (code, told["verdict"]) == (1 if verdict == "worse" else 0, verdict), (name, told["verdict"])
        code, told = compare(name, "a")
        assert told["verdict"] == {"worse": "better", "better": "worse"}[verdict], name


@test
def storages_of_different_graphs_are_matched_by_name():
    with open(os.path.join(graphs, "alexnet_b1_adam.ddp.json"), encoding="utf-8") as file:
        old = json.load(file)
    new = json.loads(json.dumps(old))
    shared = {tensor.get("alias_of") for tensor in new["tensors"]}
    grown = [tensor for tensor in new["tensors"]
             if tensor["kind"] == "intermediate" and "alias_of" not in tensor and tensor["id"] not in shared][:3]
    for tensor in grown:
        tensor["size"] += 4096
    renamed = [tensor for tensor in new["tensors"] if tensor["kind"] == "gradient"][:1]
    for tensor in renamed:
        tensor["name"] += "_renamed"
    write("old.json", old)
    write("new.json", new)
    a, b = plan("old.json", "a"), plan("new.json", "b")
    code, told = compare("a", "b")
    assert told["same_graph"] is False and told["storages"] is None
    code, told = compare("a", "b", "old.json", "new.json")
    counts = dict(told["storages"])
    counts.pop("common")
    assert counts == expected_changes(a, b, namer(old), namer(new)), counts
    assert counts["grew"] == 3 and counts["new"] == counts["gone"] == 1, counts
    assert {change["tensor"] for change in told["changes"] if change["change"] == "grew"} == {t["name"] for t in grown}
    assert code == (1 if b["footprint_bytes"] > a["footprint_bytes"] else 0)
    assert run("compare", "a", "b", "new.json").returncode == 3


@test
def a_transformed_plan_has_the_names_of_its_own_graph():
    path = os.path.join(graphs, "alexnet_b1_adam.ddp.json")
    plan(path, "a")
    b = plan(path, "b", "--reorder")
    assert b["graph"] is not None
    code, told = compare("a", "b", path)
    assert told["same_graph"] is False and told["storages"]["common"] > 0 and code in (0, 1), told["storages"]


@test
def every_memory_space_is_told():
    path = os.path.join(graphs, "offload.json")
    a, b = plan(path, "a"), plan(path, "b", "--alignment", "65536")
    told = compare("a", "b", path)[1]
    assert [space["name"] for space in told["spaces"]] == ["device", "host"]
    for side, file in (("first", a), ("second", b)):
        for space, own in zip(told["spaces"], file["spaces"]):
            assert space[side] == {key: own[key] for key in ("footprint_bytes", "bound_bytes", "persistent_bytes")}
    spaces = {t["id"]: t.get("space", 0) for t in json.load(open(path))["tensors"]}
    write("moved", {**a, "storages": [[t, offset + 512, size] for t, offset, size in a["storages"]]})
    changes = compare("a", "moved", path)[1]["changes"]
    assert len(changes) == len(a["storages"])
    for change in changes:
        assert change["space"] == ["device", "host"][spaces[change["tensor_id"]]], change
    assert {change["space"] for change in changes} == {"device", "host"}
    assert "spaces" not in compare(*[plan(os.path.join(graphs, "figure2.json"), "c") and "c"] * 2)[1]
    for bad in ("x", [1], [{}], [{"footprint_bytes": 1}], [{**a["spaces"][0], "bound_bytes": "x"}]):
        write("bad", {**a, "spaces": bad})
        assert run("compare", "a", "bad").returncode == 3, bad


@test
def a_graphs_information_has_each_memory_space():
    told = json.loads(run("info", os.path.join(graphs, "offload.json"), "--json").stdout)
    assert [space["name"] for space in told["spaces"]] == ["device", "host"]
    for key in ("storages", "persistent_bytes", "sum_bytes"):
        assert sum(space[key] for space in told["spaces"]) == told[key], key
    for key in ("serial_peak_bytes", "bound_bytes"):
        assert told["spaces"][0][key] == told[key], key
    host = told["spaces"][1]  # three activations, and what Adam reads and makes
    assert host["bound_bytes"] == 24 << 20 and 24 << 20 <= host["serial_peak_bytes"] < 32 << 20, host
    assert host["capacity_bytes"] == 64 << 20


@test
def files_that_are_no_plans_exit_3():
    a = plan(os.path.join(graphs, "figure2.json"), "a")
    for field in ("footprint_bytes", "storages", "waits", "source_hash", "streams"):
        for value in ("x", None, -1, [[1]], {}):
            write("bad", {**a, field: value})
            code = run("compare", "a", "bad").returncode
            assert code == 3 or (field in ("streams", "waits") and value == [[1]]), (field, value, code)
        write("bad", {key: value for key, value in a.items() if key != field})
        done = run("compare", "bad", "a")
        assert done.returncode == 3 and field in done.stderr, (field, done.stderr)
    assert run("compare", os.path.join(graphs, "figure2.json"), "a").returncode == 3
    assert run("compare", "absent", "a").returncode == 8
    assert run("compare", "a").returncode == 2


run_tests()
