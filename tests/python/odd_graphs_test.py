"""Budgets on small random graphs of what few graphs have: conditionals, empty tensors, outputs written
over larger inputs, a second memory space, groups, implementations, fixed offsets. The verifier proves
every plan as it is made. A refusal names two numbers. The one that no choice can come below is at most
what any plan takes, and at least where the last fixed tensor ends. The smallest footprint that was
found is at most what a plan takes without a budget, and a budget of as many bytes is met."""
import json
import random
import re
import time

import cases
import tarn
from cases import test

GRAPHS = 100
OPTIONS = [{}, {"in_place": True}, {"couple": True}, {"reorder": True}, {"in_place": True, "reorder": True}]


def features(draw):
    return {name for name in ("alias", "empty", "view", "arms", "space", "group", "in place", "workspace", "output", "implementations",
                              "cost", "fixed") if draw.random() < 0.4}


class Drawn:
    """A graph as its file has it, drawn op by op."""

    def __init__(self, seed):
        self.draw = random.Random(seed)
        self.has = features(self.draw)
        self.ops, self.tensors = [], []
        self.largest = self.draw.choice([1, 3, 8])
        streams = self.draw.randint(1, 3)
        for number in range(self.draw.randint(3, 8)):
            self.add_op(number, streams)
        spaces = [{"id": 0, "name": "device", "kind": "device"}, {"id": 1, "name": "host", "kind": "pinned"}]
        self.record = {"format": "tarn.graph", "version": 1, "name": f"odd {seed}", "meta": {},
                       "streams": [{"id": stream, "name": f"s{stream}"} for stream in range(streams)],
                       "ops": self.ops, "tensors": self.tensors, "contiguous": self.groups(),
                       **({"spaces": spaces} if "space" in self.has else {})}

    def add_tensor(self, size, **more):
        kind = "output" if "output" in self.has and not more and self.draw.random() < 0.1 else "intermediate"
        if "space" in self.has and not more and self.draw.random() < 0.15:
            more["space"] = 1
        if "fixed" in self.has and kind == "intermediate" and "alias_of" not in more and size and self.draw.random() < 0.15:
            more["fixed_offset"] = self.draw.randint(0, 3 * self.largest)
        self.tensors.append({"id": len(self.tensors), "name": f"t{len(self.tensors)}", "size": size, "kind": kind, **more})
        return len(self.tensors) - 1

    def add_alias(self, of):
        root = self.tensors[of].get("alias_of", of)
        made = self.add_tensor(self.tensors[root]["size"], alias_of=root)
        self.tensors[made]["kind"] = self.tensors[root]["kind"]
        if "space" in self.tensors[root]:
            self.tensors[made]["space"] = self.tensors[root]["space"]
        return made

    def size(self):
        return 0 if "empty" in self.has and self.draw.random() < 0.25 else self.draw.randint(1, self.largest)

    def add_op(self, number, streams):
        draw, has = self.draw, self.has
        known = range(len(self.tensors))
        read = draw.sample(known, min(draw.randint(0, 3), len(known)))
        overwritten = [t["alias_of"] for t in self.tensors if "alias_of" in t]
        if overwritten and draw.random() < 0.4:  # by its old name, perhaps in another arm
            read = [*{*read, draw.choice(overwritten)}]
        op = {"id": number, "name": f"o{number}", "kind": "matmul", "stream": draw.randrange(streams), "inputs": read, "outputs": []}
        self.ops.append(op)
        if "view" in has and read and draw.random() < 0.12:
            op.update(view=True, inputs=read[:1], outputs=[self.add_alias(read[0])])
            return
        if "alias" in has and read and draw.random() < 0.25:
            op["outputs"].append(self.add_alias(read[0]))
        elif "empty" in has and draw.random() < 0.2:  # an empty storage may be written by ops that do not read it
            op["outputs"] += [self.add_alias(t) for t in [t["id"] for t in self.tensors if t["size"] == 0][:1]]
        op["outputs"] += [self.add_tensor(self.size()) for _ in range(draw.choice([0, 1, 1, 1, 2]) if op["outputs"] else
                                                                      draw.choice([1, 1, 2, 3]))]
        if "workspace" in has and draw.random() < 0.4:
            op["workspace"] = draw.randint(1, self.largest)
        if "in place" in has:
            pairs = [[a, b] for a in read for b in op["outputs"] if not {"alias_of"} & {*self.tensors[a], *self.tensors[b]}
                     and self.tensors[b]["size"] <= self.tensors[a]["size"]]
            if pairs and draw.random() < 0.6:
                op["inplace"] = pairs[:1]
        if "arms" in has and draw.random() < 0.4:
            op["branch"] = [[0, draw.randrange(2)]]
        if "cost" in has:
            op["cost"] = draw.choice([0, 1000, 5000, 20000])
        if "implementations" in has and draw.random() < 0.3:
            other = {"name": "other", "cost": draw.choice([0, 1000, 9000]), "workspace": draw.randint(0, self.largest)}
            if known and draw.random() < 0.6:  # of any stream, whose op may come later in another order
                old_and_new = [[t["alias_of"], t["id"]] for t in self.tensors if "alias_of" in t]
                other["inputs"] = draw.choice([draw.sample(known, min(2, len(known))), *old_and_new])
            op["implementations"] = [other]

    def groups(self):
        roots = [t["id"] for t in self.tensors if "alias_of" not in t and "space" not in t]
        wants = "group" in self.has and len(roots) > 1
        return [self.draw.sample(roots, 2)] if wants else []


def plan(graph, **options):
    """The footprint of the first memory space, or None and the refusal."""
    try:
        return tarn.plan(graph, alignment=1, threads=1, **options).spaces[0].footprint, None
    except tarn.DoesNotFit as error:
        return None, error


def fixed_end(record):
    """Where the last tensor of the first memory space ends that has a fixed offset."""
    return max((t["fixed_offset"] + t["size"] for t in record["tensors"] if "fixed_offset" in t and not t.get("space")), default=0)


def floor_of(refusal):
    return int(re.search(r"come below (\d+) bytes?", str(refusal)).group(1))


def check(graph, options, seed, end):
    whole, _ = plan(graph, **options)
    if not whole:
        return 0
    what = f"graph {seed} with {options}: "
    same, refused = plan(graph, budget=whole, **options)
    assert same is not None and same <= whole, f"{what}{whole} bytes without a budget; {refused}"
    roomy, _ = plan(graph, budget=3 * whole, **options)  # room for copies and for implementations that need more
    assert roomy is not None and roomy <= 3 * whole, f"{what}{roomy} bytes within a budget of {3 * whole}"
    half, _ = plan(graph, budget=max(1, whole // 2), **options)
    assert half is None or half <= max(1, whole // 2), f"{what}{half} bytes within a budget of {whole // 2}"
    met, error = plan(graph, budget=1, **options)
    if error is None:
        return 0
    floor = floor_of(error)
    assert end <= floor <= error.least <= whole, f"{what}{whole} bytes without a budget; {error}"
    again, refused = plan(graph, budget=error.least, **options)
    assert again is not None and again <= error.least, f"{what}{refused}"
    return 1


@test
def refusals_of_odd_graphs_are_true():
    begin, made, refusals, seed = time.monotonic(), 0, 0, 0
    while made < GRAPHS or time.monotonic() - begin < cases.CAMPAIGN:
        seed += 1
        try:
            record = Drawn(seed).record
            graph = tarn.Graph.from_bytes(json.dumps(record).encode(), "odd")
        except tarn.BadInput:
            continue  # arms and aliases are drawn at random, and some may not be
        made += 1
        end = fixed_end(record)
        try:
            plan(graph)
        except tarn.BadInput as error:  # two tensors are fixed in the same bytes, or apart in a group
            assert end and re.search("both are in use at once|contiguous group", str(error)), f"graph {seed}: {error}"
            continue
        for options in OPTIONS:
            refusals += check(graph, options, seed, end)
    print(f"# {made} graphs of {seed} drawn, {refusals} refusals", flush=True)
    assert refusals > made


def by_hand(ops, sizes, fixed=(), aliases=(), groups=(), persistent=(), slices=()):
    """ops: inputs, outputs, and more fields; fixed: tensor -> offset; aliases: tensor -> the one whose storage it has;
    slices: alias -> its offset there."""
    streams = 1 + max(more.get("stream", 0) for _, _, more in ops)
    return tarn.Graph.from_bytes(json.dumps({
        "format": "tarn.graph", "version": 1, "name": "by hand", "meta": {}, "contiguous": list(groups), "streams": [{"id": s, "name": f"s{s}"} for s in range(streams)],
        "ops": [{"id": i, "name": f"o{i}", "stream": 0, "kind": "matmul", "inputs": inputs, "outputs": outputs, **more}
                for i, (inputs, outputs, more) in enumerate(ops)],
        "tensors": [{"id": i, "name": f"t{i}", "kind": "parameter" if i in persistent else "intermediate", "size": size, **({"fixed_offset": fixed[i]} if i in fixed else {}),
                     **({"alias_of": aliases[i]} if i in aliases else {}), **({"offset": slices[i]} if i in slices else {})}
                    for i, size in enumerate(sizes)]}).encode(), "by hand")


@test
def choices_in_which_two_fixed_storages_meet_are_left_out():
    """t0 and t3 have the same bytes one after the other. To make t1 again takes t0, while t3 is there."""
    graph = by_hand([([], [0], {"cost": 5000}), ([0], [1], {"cost": 1000}), ([1], [2], {"cost": 1000}),
                     ([2], [3], {"workspace": 6, "cost": 1000}), ([3, 1], [4], {"cost": 1000})], [1, 4, 1, 1, 1], {0: 0, 3: 0})
    assert plan(graph)[0] == 12
    for budget in range(8, 12):
        assert plan(graph, budget=budget)[0] <= budget
    assert plan(graph, budget=7)[1].least == 8
    graph = by_hand([([], [0], {}), ([0], [1], {"inplace": [[0, 1]]}), ([], [2], {}), ([1, 2], [3], {})], [1, 1, 1, 1], {0: 0, 2: 0})
    assert plan(graph, in_place=True) == plan(graph) == (3, None)


@test
def orders_in_which_a_group_meets_a_fixed_storage_are_left_out():
    """t3 ends where t4 begins, and would share bytes with t0 if it were made before o2 has read that."""
    graph = by_hand([([], [0], {}), ([0], [1, 5], {}), ([0, 1], [2], {}), ([5], [3], {}), ([], [4], {})], [2, 6, 6, 5, 3, 8],
                    {0: 12, 4: 16}, groups=[[3, 4]])
    whole = plan(graph)[0]
    assert plan(graph, reorder=True)[0] <= whole and plan(graph, reorder=True, budget=whole)[0] <= whole


@test
def an_implementation_that_reads_what_it_would_lose_is_not_chosen():
    """t1, which is in a group, is written over as t2, and t2 as t4. By its other implementation o3 reads t1 and t2."""
    graph = by_hand([([], [0, 1], {}), ([1], [2, 3], {}), ([], [4, 5], {}),
                     ([], [6], {"implementations": other([1, 2], cost=0, workspace=3)}), ([], [7, 8], {}), ([], [9, 10, 11], {})],
                    [1] * 12, aliases={2: 1, 4: 1}, groups=[[3, 1]])
    met, refused = plan(graph, budget=1)
    assert met is None and plan(graph, budget=refused.least)[0] == refused.least <= plan(graph)[0]


@test
def a_refusal_has_a_least_where_the_fastest_choice_is_none():
    """The faster implementation of o2 reads t0, whose offset is that of what o2 makes."""
    graph = by_hand([([], [0, 1], {}), ([1], [2], {}), ([2], [3, 4], {"cost": 1000, "workspace": 1, "implementations": [
        {"name": "other", "cost": 10, "workspace": 0, "inputs": [0]}]})], [1] * 5, {0: 2, 3: 2})
    met, refused = plan(graph, budget=1)
    assert met is None and refused.least == plan(graph, budget=refused.least)[0] <= plan(graph)[0], (met, refused, refused.least)


def other(inputs, **more):
    return [{"name": "other", "cost": 1000, "workspace": 1, "inputs": inputs, **more}]


@test
def what_is_in_place_without_a_budget_may_be_with_one():
    """By its other implementation an op does not read what it may write over, or reads it by another name, too. Either the op
    writes over it, or the implementation may be chosen."""
    made_in_two_streams = by_hand([([], [0, 1], {"stream": 2}), ([1], [2], {"stream": 1}),
                                   ([1, 0, 2], [3, 4, 5], {"stream": 1, "inplace": [[1, 3]], "implementations": other([2, 0])})], [1] * 6)
    not_read = by_hand([([], [0], {}), ([0], [1], {"workspace": 3}), ([0, 1], [2], {"inplace": [[0, 2]], "implementations": other([1])})],
                       [4, 1, 4])
    two_names = by_hand([([], [0], {"stream": 1, "workspace": 8, "cost": 0}), ([0], [1, 2, 3], {"workspace": 2, "inplace": [[0, 2]]}),
                         ([0, 1, 2], [4], {"stream": 1, "workspace": 2}),
                         ([0, 2], [5, 6], {"stream": 1, "inplace": [[0, 5]], "implementations": other([0, 1], cost=0, workspace=4)})],
                        [1, 1, 0, 4, 4, 1, 0], aliases={1: 0})
    for graph in made_in_two_streams, not_read, two_names:
        whole = plan(graph, in_place=True)[0]
        for budget in range(1, 2 * whole + 2):
            met, refused = plan(graph, in_place=True, budget=budget)
            assert met is not None and met <= budget if budget >= whole else met is None or met <= budget, (whole, budget, met, refused)


@test
def an_implementation_reads_what_persists_as_its_producer_left_it():
    """By its other implementation o1 needs no workspace. It reads t0, which o0 may have written over as t3, or t3 itself."""
    def least(read, writer_first):
        writer, reader = ([0], [3], {}), ([], [1], {"workspace": 5, "implementations": other([read], cost=0, workspace=0)})
        ops = [writer, reader] if writer_first else [reader, writer]
        graph = by_hand([*ops, ([1], [2], {})], [1] * 4, aliases={3: 0}, persistent=[0, 3])
        return plan(graph, budget=1)[1].least
    assert least(3, True) == 2 and least(0, False) == 2
    assert least(0, True) == 6 and least(3, False) == 6


@test
def a_part_of_a_storage_is_not_written_elsewhere_if_the_rest_is_named_later():
    """o1 writes a part of t0. By its other implementation o2 reads t0 as o0 left it, so o1 would have to write elsewhere."""
    def least(offset, rest):
        ops = [([], [0], {"cost": 100000}), ([0], [1], {}), ([1], [2], {"cost": 20000, "implementations": other([0], cost=0, workspace=0)})]
        ops += [([0], [4], {"view": True}), ([4, 2], [3], {})] if rest else [([2], [3], {})]
        graph = by_hand(ops, [7, 1, 2, 1, 7][:5 if rest else 4], aliases={1: 0, 4: 0}, slices={1: offset, 4: 0})
        found = plan(graph, budget=1)[1].least
        for budget in range(found, 20):
            assert plan(graph, budget=budget)[0] <= budget
        return found
    assert least(0, False) == least(6, False) == 9
    assert least(0, True) == least(6, True) == 10


@test
def a_storage_that_was_written_in_part_is_read_by_its_own_name():
    """o1 writes a part of t0, and o3 reads all of t0. A budget chooses o2's other implementation, which needs no workspace."""
    for offset, read in (0, [0]), (12, [0]), (12, []):
        graph = by_hand([([], [0], {}), (read, [1], {}), ([], [2], {"workspace": 13, "implementations": other([], workspace=0)}), ([0, 2], [3], {})],
                        [13, 1, 1, 1], aliases={1: 0}, slices={1: offset})
        found = plan(graph, budget=1)[1].least
        assert found == 15
        for budget in range(found, 2 * found):
            assert plan(graph, budget=budget)[0] <= budget


@test
def what_is_found_in_place_is_found_if_streams_may_be_coupled_too():
    """Coupled, outputs may take other inputs over. A floor is that of all choices."""
    graph = by_hand([([], [0], {"stream": 1, "branch": [[0, 1]]}), ([0], [1, 2, 3], {"stream": 2}), ([1, 2], [4], {"inplace": [[2, 4]]}),
                     ([], [5], {"stream": 2}), ([3], [6, 7], {"stream": 1, "inplace": [[3, 6]]})], [3, 1, 8, 7, 7, 6, 7, 6], groups=[[1, 7]])
    least = plan(graph, budget=1, in_place=True)[1].least
    assert plan(graph, budget=least, in_place=True)[0] <= least
    refused = plan(graph, budget=1, in_place=True, couple=True)[1]
    assert floor_of(refused) <= refused.least <= least


@test
def a_view_that_nobody_reads_may_come_after_its_storage_is_written_over():
    graph = by_hand([([], [0], {"implementations": other([], cost=0, workspace=3), "workspace": 3, "cost": 5000}),
                     ([0], [1], {"inplace": [[0, 1]], "workspace": 3}), ([0], [2], {"stream": 1, "view": True})],
                    [3, 1, 3], aliases={2: 0})
    whole = plan(graph, in_place=True)[0]
    assert plan(graph, in_place=True, budget=whole)[0] <= whole


@test
def what_is_enough_without_a_budget_is_enough_as_one():
    """It takes more steps to place this graph than the search for a budget gives each choice."""
    graph = by_hand([([], [0, 1, 2], {"branch": [[0, 0]], "cost": 20000}), ([], [3], {"cost": 1000}), ([3, 1, 0], [4], {"workspace": 1, "cost": 0}),
                     ([], [5, 6, 7], {"cost": 20000}), ([3, 5, 2], [8], {"workspace": 3, "cost": 1000}),
                     ([5, 8, 3], [9], {"workspace": 2, "branch": [[0, 1]], "cost": 20000})], [2, 3, 1, 1, 1, 3, 3, 2, 1, 3], {6: 1})
    whole, _ = plan(graph)
    assert whole == 10 and plan(graph, budget=whole)[0] == whole


if __name__ == "__main__":
    cases.run()
