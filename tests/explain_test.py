"""`tarn explain` against an oracle in Python, which reads graph and plan itself: order by closure of stream lists and waits, uses of
storages, and the interleavings that the command gives, which are run. TAP on standard output.

    explain_test.py SOURCE TARN"""
import gzip
import itertools
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from cases import run as run_tests, test

source, tarn = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
folder = tempfile.TemporaryDirectory()
graphs = os.path.join(source, "examples/graphs")


def run(*words):
    return subprocess.run([tarn, *words], cwd=folder.name, capture_output=True, text=True, check=False)


def answer(*words):
    done = run("explain", *words, "--json")
    assert done.returncode == 0, (words, done.stderr)
    return json.loads(done.stdout)


class World:
    """A graph and a plan of it, without transforms."""

    def __init__(self, path, *words):
        self.path, self.plan_path = path, "plan"
        done = run("plan", path, "-o", "plan", *words)
        assert done.returncode == 0, done.stderr
        opened = gzip.open if path.endswith(".gz") else open
        with opened(os.path.join(folder.name, path), "rt", encoding="utf-8") as file:
            self.graph = json.load(file)
        with open(os.path.join(folder.name, "plan"), encoding="utf-8") as file:
            self.plan = json.load(file)
        self.stream = {op: s for s, ops in enumerate(self.plan["streams"]) for op in ops}
        self.before = {}  # op -> all that must have ended when it begins
        direct = {op: set() for op in self.stream}
        for ops in self.plan["streams"]:
            for earlier, later in zip(ops, ops[1:]):
                direct[later].add(earlier)
        for op, on in self.plan["waits"]:
            direct[op].add(on)
        self.direct = direct
        todo = list(direct)
        while todo:
            rest = []
            for op in todo:
                if all(on in self.before for on in direct[op]):
                    self.before[op] = set(direct[op]).union(*(self.before[on] for on in direct[op]))
                else:
                    rest.append(op)
            assert len(rest) < len(todo)
            todo = rest
        roots = {tensor["id"]: tensor.get("alias_of", tensor["id"]) for tensor in self.graph["tensors"]}
        for tensor in roots:
            while roots[roots[tensor]] != roots[tensor]:
                roots[tensor] = roots[roots[tensor]]
        self.uses = {}
        planned = {row[0] for row in self.plan["storages"]}
        for op in self.graph["ops"]:
            if op["id"] in self.stream:
                for tensor in op["inputs"] + op["outputs"]:
                    if roots[tensor] in planned:
                        self.uses.setdefault(roots[tensor], set()).add(op["id"])
        self.pinned = {tensor["id"] for tensor in self.graph["tensors"] if tensor["kind"] == "output"}
        self.writer = {root: next(op for op in ops if not self.before[op] & ops) for root, ops in self.uses.items()}

    def ends_before(self, a, b):
        return a not in self.pinned and all(use in self.before[self.writer[b]] for use in self.uses[a])

    def is_way(self, steps):
        for one, two in zip(steps, steps[1:]):
            a, b = one["op_id"], two["op_id"]
            in_stream = self.stream[a] == self.stream[b]
            assert two["by"] == ("then in its stream" if in_stream else "waited for by"), two
            if not (a in self.before[b] if in_stream else [b, a] in self.plan["waits"]):
                return False
        return True


def small_graph(seed):
    draw = random.Random(seed)
    ops, tensors = [], []
    for i in range(24):
        inputs = sorted({draw.randrange(max(0, i - 8), i) for _ in range(2)}) if i else []
        kind = "output" if i == 23 else "intermediate"
        tensors.append({"id": i, "name": f"t{i}", "size": draw.randrange(1, 4096), "kind": kind})
        ops.append({"id": i, "name": f"o{i}", "kind": draw.choice(["mm", "add"]), "stream": draw.randrange(3), "cost": 1000,
                    "inputs": inputs, "outputs": [i]})
    name = f"small{seed}.json"
    with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": name, "meta": {},
                   "streams": [{"id": s, "name": f"s{s}"} for s in range(3)], "tensors": tensors, "ops": ops}, file)
    return name


def check_pair(world, a, b):
    """Ways that are ways, or an order that is legal and reaches a moment with both in use."""
    told = answer(world.path, "plan", f"tensor:{a}", f"tensor:{b}")
    may = world.ends_before(a, b) or world.ends_before(b, a)
    assert told["may_share_bytes"] == may, (a, b, told)
    if may:
        first, then = told["ends_before"]["tensor_id"], told["begins_after"]["tensor_id"]
        assert {first, then} == {a, b} and world.ends_before(first, then)
        reached = set()
        for reason in told["because"]:
            way = reason["way"]
            assert way[-1]["op_id"] == world.writer[then] and world.is_way(way), way
            reached.add(way[0]["op_id"])
        assert all(use in reached or any(use in world.before[op] for op in reached) for use in world.uses[first])
        return
    done = run("explain", world.path, "plan", f"tensor:{a}", f"tensor:{b}", "-o", "order.json")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(folder.name, "order.json"), encoding="utf-8") as file:
        order = [step[0] for step in json.load(file)["order"]]
    assert sorted(order) == sorted(world.stream)
    for i, op in enumerate(order):
        assert world.before[op] <= set(order[:i]), "the order is not legal"
    started = set(order[:told["launches_until_then"]])
    for tensor in (a, b):
        open_uses = world.uses[tensor] - set().union(*(world.before[op] for op in started))
        assert world.writer[tensor] in started and (open_uses or tensor in world.pinned), (tensor, told, order)
    done = run("run", world.path, "plan", "--order", "order.json")
    assert done.returncode == 0, done.stderr
    check_sharing(world, a, b, order)


def check_sharing(world, a, b, order):
    """The order, run over a plan that gives the two the same bytes and moves nothing else: what was written first is read when
    it is no longer there. An output counts as read."""
    first, second = sorted((a, b), key=lambda tensor: order.index(world.writer[tensor]))
    behind = order[order.index(world.writer[second]) + 1:]
    is_read = first in world.pinned or bool(world.uses[first] & {*behind, world.writer[second]})
    plan = json.loads(json.dumps(world.plan))
    rows = {row[0]: row for row in plan["storages"]}
    for tensor in (a, b):
        rows[tensor][1] = world.plan["footprint_bytes"]
    plan["footprint_bytes"] += -(-max(rows[a][2], rows[b][2]) // 512) * 512
    with open(os.path.join(folder.name, "shared"), "w", encoding="utf-8") as file:
        json.dump(plan, file)
    done = run("run", world.path, "shared", "--no-verify", "--check", "--order", "order.json")
    assert done.returncode == (7 if is_read else 0), (a, b, is_read, done.stderr)
    corrupted.append(is_read)


corrupted = []


@test
def two_storages_may_share_bytes_as_the_closure_says():
    for path in [os.path.join(graphs, "figure2.json"), os.path.join(graphs, "figure7.json")]:
        world = World(path)
        for a, b in itertools.combinations(sorted(world.uses), 2):
            check_pair(world, a, b)
    counts = {True: 0, False: 0}
    for seed in range(4):
        world = World(small_graph(seed))
        pairs = list(itertools.combinations(sorted(world.uses), 2))
        for a, b in random.Random(seed).sample(pairs, 25):
            check_pair(world, a, b)
            counts[world.ends_before(a, b) or world.ends_before(b, a)] += 1
    assert min(counts.values()) > 5 and sum(corrupted) > 50, (counts, corrupted)


@test
def the_certificates_storages_add_up_to_the_bound_in_every_column():
    for graph in ("figure2.json", "alexnet_b1_adam.ddp.json", "bert_base_b1_adam.ddp.json.gz"):
        world = World(os.path.join(graphs, graph))
        told = answer(world.path, "plan", "--quick")
        assert told["footprint_bytes"] == world.plan["footprint_bytes"] and told["bound_bytes"] == world.plan["bound_bytes"]
        reserved = told["certificate"]["reserved_bytes"]
        for key in ("by_kind", "by_stream"):
            assert sum(row["bytes"] for row in told[key]) == reserved, (graph, key)
            assert sum(row["storages"] for row in told[key]) == told["certificate"]["storages"]
        gaps = world.plan["certificate"]["gaps"]
        assert reserved <= told["bound_bytes"] and (gaps or told["bound_bytes"] - reserved < 512), (graph, reserved)
        assert told["holes"]["free_bytes"] <= told["footprint_bytes"] - reserved + 512 * len(world.plan["storages"])
        sizes = [row["size_bytes"] for row in told["largest"]]
        assert sizes == sorted(sizes, reverse=True) and "planned_with" not in told


@test
def a_change_brings_what_planning_with_it_gives():
    tried, helped, added = set(), set(), []
    for path in (os.path.join(graphs, "resnet50_b1_adam.ddp.json.gz"), os.path.join(graphs, "figure2.json"), small_graph(2)):
        world = World(path)
        told = answer(world.path, "plan")["planned_with"]
        for row in told:
            words = row["options"].split() if row["options"].startswith("--") else []
            done = run("plan", world.path, "--json", "--effort", "1000", *words)
            assert done.returncode == 0, done.stderr
            made = json.loads(done.stdout)
            assert made["footprint_bytes"] == row["footprint_bytes"], row
            assert made["events"]["kept"] + made["events"]["boundary"] == row["waits"], (row, made["events"])
            assert ("added_waits" in row) == (words == ["--couple"])
            if "added_waits" in row:
                assert run("transform", world.path, "--couple", "-o", "coupled.json").returncode == 0
                with open(os.path.join(folder.name, "coupled.json"), encoding="utf-8") as file:
                    coupled = json.load(file)["ops"]
                old, new = ({(op["name"], ops[on]["name"]) for op in ops for on in op.get("control", [])} for ops in (world.graph["ops"], coupled))
                new -= old
                assert {(wait["op"], wait["waits_for"]["op"]) for wait in row["added_waits"]} == new, (row, new)
                assert all(world.graph["ops"][wait["op_id"]]["name"] == wait["op"] for wait in row["added_waits"])
                added.append(len(new))
            tried.add(words[0] if words else "")
            helped |= {words[0]} if words and row["footprint_percent"] < 0 else set()
        footprints = [row["footprint_bytes"] for row in told]
        assert footprints == sorted(footprints)
    assert tried == {"", "--reorder", "--in-place", "--couple", "--pad-groups", "--alignment", "--budget"}, tried
    assert {"--reorder", "--couple", "--alignment", "--budget"} <= helped and max(added) > 0, (helped, added)


@test
def people_read_names_as_they_are_given_and_ways_as_one_line():
    world = World(os.path.join(graphs, "figure2.json"))
    told = answer(world.path, "plan", "i")
    text = run("explain", world.path, "plan", "i").stdout
    rows = [line for line in text.splitlines() if line.startswith("safe by")]
    ways = [way["way"] for key in ("bytes_before", "bytes_after") for row in told[key] for way in row["ways"]]
    assert len(rows) == len(ways) > 0, text
    for row, way in zip(rows, ways):
        steps = re.findall(r"\(op:(\d+), \S+\)", row)
        assert steps == [str(step["op_id"]) for step in way], (row, way)
        assert row.count("wait") == sum(step["by"].startswith("waited for") for step in way), (row, way)
        assert row.count("next iteration") == sum("next iteration" in step["by"] for step in way), (row, way)
    for word in re.findall(r"\((tensor:\d+|op:\d+)[,)]", text):
        assert run("explain", world.path, "plan", word).returncode == 0, word


@test
def who_has_the_bytes_before_and_after_is_told_with_ways():
    world = World(small_graph(9), "--alignment", "1")
    place = {row[0]: (row[1], row[1] + row[2]) for row in world.plan["storages"]}
    for tensor in world.uses:
        told = answer(world.path, "plan", f"tensor:{tensor}")
        assert told["offset_bytes"] == place[tensor][0] and {use["op_id"] for use in told["uses"]} == world.uses[tensor]
        for key in ("bytes_before", "bytes_after"):
            for row in told[key]:
                other = row["tensor_id"]
                assert place[other][0] < place[tensor][1] and place[tensor][0] < place[other][1] and row["shared_bytes"] > 0
                if not row["other_iteration"]:
                    first, then = (other, tensor) if key == "bytes_before" else (tensor, other)
                    assert world.ends_before(first, then)
                    for way in row["ways"]:
                        assert way["way"][-1]["op_id"] == world.writer[then] and world.is_way(way["way"])
        free = {op for op in world.stream if op not in world.before[world.writer[tensor]] and op != world.writer[tensor]}
        after = {op for op in free if world.uses[tensor] <= world.before[op]}
        assert sum(row["launches"] for row in told["meanwhile"]) <= len(free - after) + len(world.uses[tensor])


@test
def an_op_is_told_with_its_waits_and_uses():
    world = World(small_graph(3))
    for op in world.stream:
        told = answer(world.path, "plan", f"op:{op}")
        assert sorted([op, row["op_id"]] for row in told["waits_for"]) == sorted(w for w in world.plan["waits"] if w[0] == op)
        assert {row["tensor_id"] for row in told["uses"]} == {root for root, uses in world.uses.items() if op in uses}


@test
def names_that_are_not_there_are_refused_with_a_suggestion():
    world = World(small_graph(1))
    assert answer(world.path, "plan", "t5")["tensor_id"] == 5 and answer(world.path, "plan", "o5")["op_id"] == 5
    done = run("explain", world.path, "plan", "tt5")
    assert done.returncode == 2 and "did you mean 't5'" in done.stderr, done.stderr
    for words in (["t5", "t5"], ["tensor:99"], ["op:99"], ["t5", "t6", "t7"], ["t5", "--order", "x"]):
        assert run("explain", world.path, "plan", *words).returncode == 2, words
    world.plan["storages"][0][1] += 1 << 20
    with open(os.path.join(folder.name, "moved"), "w", encoding="utf-8") as file:
        json.dump(world.plan, file)
    assert run("explain", world.path, "moved").returncode == 6


run_tests()
