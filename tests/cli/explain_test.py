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

from cases import CAMPAIGN, run as run_tests, test

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
        self.roots, self.uses = roots, {}
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
    check_order(world, told, [f"tensor:{a}", f"tensor:{b}"])
    assert (told["one"]["tensor_id"], told["other"]["tensor_id"]) == (a, b), told  # as they were asked for
    check_needs(world, told, (a, b))
    if not told["an_order_shows_it"]:
        assert all(world.uses[tensor] == {world.writer[tensor]} and tensor not in world.pinned for tensor in (a, b)), told
        return
    started = set(world.order[:told["launches_until_then"]])
    for tensor in (a, b):
        open_uses = world.uses[tensor] - set().union(*(world.before[op] for op in started))
        assert world.writer[tensor] in started and (open_uses or tensor in world.pinned), (tensor, told, world.order)


def check_needs(world, told, tensors):
    """The last use is one, and is called what it is: JSON and the text for people."""
    text = run("explain", world.path, "plan", *(f"tensor:{tensor}" for tensor in tensors)).stdout
    shown = re.findall(r"^still needs +.*\(tensor:(\d+)\), (to be \w+ by|an output of) .*\(op:(\d+), ", text, re.M)
    words = {"reads": "to be read by", "writes": "to be written by", "output": "an output of"}
    moment = told.get("launches_until_then", 0)
    assert (f"\nlaunches until both are in use {moment}\n" in text) == told["an_order_shows_it"], text
    assert len(told["still_needs"]) == len(shown) == 2, text
    for tensor, need, line in zip(tensors, told["still_needs"], shown):
        op, use = need["for"]["op_id"], need["use"]
        assert need["tensor_id"] == tensor and line == (str(tensor), words[use], str(op)), (need, line)
        assert op in world.uses[tensor], need
        assert (use in ("writes", "output")) == (tensor in (world.roots[t] for t in world.graph["ops"][op]["outputs"])), need
        if use == "output":
            assert tensor in world.pinned and world.uses[tensor] <= set(world.order[:moment]), need
        elif told["an_order_shows_it"]:
            assert op not in world.order[:moment - 1], (need, world.order, moment)
        uses_seen.add(use)


uses_seen = set()


def check_order(world, told, names):
    """The order is legal, and run over a plan that gives the two the same bytes and moves nothing else it reads a wrong one."""
    done = run("explain", world.path, "plan", *names, "-o", "order.json")
    assert done.returncode == 0, done.stderr
    if not told["an_order_shows_it"]:
        assert "no order shows it" in done.stderr and "launches_until_then" not in told
        orders.append(False)
        return
    with open(os.path.join(folder.name, "order.json"), encoding="utf-8") as file:
        world.order = [step[0] for step in json.load(file)["order"]]
    assert sorted(world.order) == sorted(world.stream)
    for i, op in enumerate(world.order):
        assert world.before[op] <= set(world.order[:i]), "the order is not legal"
    done = run("run", world.path, "plan", "--check", "--order", "order.json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(json.dumps(world.plan))
    rows = {("tensor_id", row[0]): row for row in plan["storages"]} | {("op_id", row[0]): row for row in plan["workspaces"]}
    moved = [rows[key, part[key]] for part in (told["one"], told["other"]) for key in ("tensor_id", "op_id") if key in part]
    assert len(moved) == 2
    for row in moved:
        row[1] = world.plan["footprint_bytes"]
    plan["footprint_bytes"] += -(-max(row[2] for row in moved) // 512) * 512
    with open(os.path.join(folder.name, "shared"), "w", encoding="utf-8") as file:
        json.dump(plan, file)
    done = run("run", world.path, "shared", "--no-verify", "--check", "--order", "order.json")
    assert done.returncode == 7, (names, told, world.order, done.stderr)
    orders.append(True)


orders = []


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
    assert min(counts.values()) > 5 and sum(orders) > 50, (counts, orders)
    assert uses_seen == {"reads", "writes", "output"}, uses_seen


def wild_graph(seed):
    """With storages that nobody reads, ops that write several or none, workspaces (some of which end first), writes in place, views and
    outputs, on one to four streams."""
    draw = random.Random(seed)
    streams, ops, tensors = draw.randrange(1, 5), [], []
    newest = {}  # root -> the name of its last write, and the ops that read it since
    dead = draw.choice([0.1, 0.5, 0.9])

    def tensor(**fields):
        tensors.append({"id": len(tensors), "name": f"t{len(tensors)}", "kind": "intermediate", "size": draw.randrange(1, 4096), **fields})
        return len(tensors) - 1

    for i in range(draw.randrange(4, 14)):
        inputs = draw.sample(sorted(newest), min(len(newest), draw.randrange(3))) if draw.random() > dead or i == 0 else []
        op = {"id": i, "name": f"o{i}", "kind": "k", "stream": draw.randrange(streams), "inputs": [newest[root][0] for root in inputs],
              "outputs": [], "control": []}
        if draw.random() < 0.1 and inputs:
            root = inputs[0]
            op.update(view=True, inputs=[newest[root][0]], outputs=[tensor(alias_of=root, size=tensors[root]["size"], kind=tensors[root]["kind"])])
            inputs = [root]
        else:
            for _ in range(draw.choice([0, 1, 1, 1, 2])):
                op["outputs"].append(tensor(kind=draw.choice(["intermediate", "intermediate", "gradient", "output"])))
            if draw.random() < 0.3:
                op["workspace"], op["workspace_first"] = draw.randrange(1, 4096), draw.random() < 0.5
            for root in inputs:
                if draw.random() < 0.2 and not any(tensors[t].get("alias_of") == root for t in op["outputs"]):
                    op["outputs"].append(tensor(alias_of=root, size=tensors[root]["size"], kind=tensors[root]["kind"]))
                    op["control"] += newest[root][1]
        ops.append(op)
        for root in inputs:
            newest[root][1].append(i)
        for made in op["outputs"]:
            if op.get("view"):
                continue
            newest[tensors[made].get("alias_of", made)] = (made, [i])
    for op in ops:
        op["control"] = sorted(set(op["control"]) - {op["id"]})
    name = f"wild{seed}.json"
    with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": name, "meta": {},
                   "streams": [{"id": s, "name": f"s{s}"} for s in range(streams)], "tensors": tensors, "ops": ops}, file)
    return name


@test
def every_order_of_two_storages_is_a_witness():
    """All unsafe pairs of random graphs, workspaces among them: in the order, a plan that gives the two the same bytes is wrong."""
    del orders[:]
    seed = pairs = 0
    while pairs < (6000 if CAMPAIGN else 600):
        seed += 1
        world = World(wild_graph(seed))
        names = [f"tensor:{row[0]}" for row in world.plan["storages"]] + [f"op:{row[0]}" for row in world.plan["workspaces"]]
        seen = set()
        for one, other in itertools.combinations(names, 2):
            done = run("explain", world.path, "plan", one, other, "--json")
            if done.returncode == 2 and "are not two storages" in done.stderr:  # the op stands for the tensor that it writes
                continue
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            if told["may_share_bytes"] or json.dumps((told["one"], told["other"])) in seen:
                continue
            seen.add(json.dumps((told["one"], told["other"])))
            check_order(world, told, [one, other])
            pairs += 1
    assert orders.count(True) > 300 and orders.count(False) > 10, (orders.count(True), orders.count(False))


@test
def storages_of_different_memory_spaces_share_no_bytes():
    world = World(os.path.join(graphs, "offload.json"))
    space = {tensor["id"]: tensor.get("space", 0) for tensor in world.graph["tensors"]}
    one, other = next((a, b) for a, b in itertools.combinations(sorted(world.uses), 2) if space[a] != space[b])
    told = answer(world.path, "plan", f"tensor:{one}", f"tensor:{other}")
    assert told["may_share_bytes"] is False and told["an_order_shows_it"] is False
    done = run("explain", world.path, "plan", f"tensor:{one}", f"tensor:{other}", "-o", "none.json")
    assert done.returncode == 0 and "different memory spaces" in done.stderr and not os.path.exists(os.path.join(folder.name, "none.json"))


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


def words_graph(name, ops, tensors):
    with open(os.path.join(folder.name, name), "w", encoding="utf-8") as file:
        json.dump({"format": "tarn.graph", "version": 1, "name": name, "meta": {}, "streams": [{"id": s, "name": f"s{s}"} for s in range(2)],
                   "ops": [{"id": i, "kind": "k", "name": f"o{i}", "inputs": [], **op} for i, op in enumerate(ops)],
                   "tensors": [{"id": i, "name": f"t{i}", "kind": "intermediate", **tensor} for i, tensor in enumerate(tensors)]}, file)
    return name


@test
def arms_of_conditionals_are_told_and_the_certificate_takes_one():
    for seed in range(12):
        draw = random.Random(seed)
        sizes = [draw.randrange(1, 8) * 512 for _ in range(8)]
        ops = [{"stream": draw.randrange(2), "outputs": [i], "branch": [[c, draw.randrange(2)] for c in range(2) if draw.random() < 0.6]} for i in range(7)]
        ops.append({"stream": 0, "inputs": list(range(7)), "outputs": [7]})
        path = words_graph(f"arms{seed}.json", ops, [{"size": size} for size in sizes])
        assert run("plan", path, "-o", "plan").returncode == 0
        told = answer(path, "plan", "--quick")
        assert told["certificate"]["reserved_bytes"] == told["bound_bytes"], told
        with open(os.path.join(folder.name, "plan"), encoding="utf-8") as file:
            place = {row[0]: (row[1], row[1] + row[2]) for row in json.load(file)["storages"]}
        arms = [dict(op.get("branch", [])) for op in ops]
        for a, b in itertools.combinations(range(8), 2):
            both = [c for c in arms[a] if arms[b].get(c, arms[a][c]) != arms[a][c]]
            told = answer(path, "plan", f"tensor:{a}", f"tensor:{b}")
            assert told["may_share_bytes"] == bool(both) and ("exclude_each_other" in told) == bool(both), (seed, a, b, told)
            if both:
                why = told["exclude_each_other"]
                c = why["conditional"]
                assert c in both and (why["one_takes_arm"], why["other_takes_arm"]) == (arms[a][c], arms[b][c])
            one = answer(path, "plan", f"tensor:{a}")
            assert {row["conditional"]: row["takes_arm"] for row in one["only_where"]} == arms[a]
            shared = min(place[a][1], place[b][1]) - max(place[a][0], place[b][0])
            instead = [row for row in one["bytes_instead"] if row["tensor_id"] == b]
            assert [row["shared_bytes"] for row in instead] == ([shared] if both and shared > 0 else [])
            assert all(arms[b][row["where_conditional"]] == row["takes_arm"] for row in instead)
            for key in ("bytes_before", "bytes_after"):
                assert not both or all(row["other_iteration"] for row in one[key] if row["tensor_id"] == b)


@test
def slices_and_offsets_that_the_graph_wants_are_told():
    ops = [{"stream": 0, "outputs": [0, 1]}, {"stream": 0, "outputs": [2]}, {"stream": 0, "inputs": [0, 1, 2]}]
    for op in ops:
        op.setdefault("outputs", [])
    path = words_graph("slices.json", ops, [{"size": 1024, "fixed_offset": 512}, {"size": 512, "preferred_offset": 0},
                                            {"size": 256, "alias_of": 0, "offset": 768}, {"size": 1024, "alias_of": 0}][:3])
    assert run("plan", path, "-o", "plan").returncode == 0
    told = answer(path, "plan", "t0")
    assert told["fixed_offset_bytes"] == told["offset_bytes"] == 512 and told["only_where"] == []
    assert told["slices"] == [{"tensor": "t2", "tensor_id": 2, "offset_bytes": 768, "size_bytes": 256}]
    told = answer(path, "plan", "t1")
    assert told["preferred_offset_bytes"] == told["offset_bytes"] == 0 and told["slices"] == []
    lines = run("explain", path, "plan", "t0").stdout
    assert "fixed offset     512 bytes" in lines and "slice            t2 (tensor:2), offset 768 bytes, size 256 bytes" in lines, lines


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


@test
def names_without_a_plan_are_told_of_the_default_plan():
    world = World(small_graph(1))
    for names in (["t5"], ["o5"], ["tensor:5", "t6"]):
        assert answer(world.path, *names) == answer(world.path, "plan", *names), names
    for words, code in ((["t5", "t6", "t7"], 2), (["tensor:99"], 8), (["nowhere", "t5"], 8)):
        assert run("explain", world.path, *words).returncode == code, words
    with open(os.path.join(folder.name, "t5"), "w", encoding="utf-8") as file:
        json.dump(world.plan, file)
    assert "tensor" not in answer(world.path, "t5", "--quick") and answer(world.path, "t5", "t5")["tensor_id"] == 5
    os.remove(os.path.join(folder.name, "t5"))


run_tests()
