"""tarn.read on small files: what each format becomes, what is assumed, what is refused and how.
Files of real producers are read by read_producers_test.py (tests/run.sh --with read). TAP on stdout.

    read_test.py SOURCE     with PYTHONPATH and TARN_LIBRARY set"""
import contextlib
import io
import json
import os
import random
import sys
import tempfile

from cases import raises, run, test

import tarn
import tarn.read
from tarn.read import __main__ as command

SOURCE = os.path.abspath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory()
ROUNDS = 150


def data(name):
    return os.path.join(SOURCE, "tests/data/read", name)


def written(name, contents):
    path = os.path.join(FOLDER.name, name)
    with open(path, "wb") as file:
        file.write(contents if isinstance(contents, bytes) else contents.encode())
    return path


def called(*words):
    """(exit code, standard output, standard error) of python -m tarn.read."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = command.run([str(word) for word in words])
        except SystemExit as error:
            code = error.code
    return code, out.getvalue(), err.getvalue()


def judged(reading, **options):
    """The plan that is made of it, verified."""
    plan = tarn.plan(reading.graph, **options)
    plan.verify()
    assert plan.footprint >= plan.bound
    return plan


# ---- SOMAS ----

class Somas:
    """A world as MindSpore's SOMAS has it: nodes in launch order, tensors, conflicts by its rules
    (Somas::ComputeOneTensorConflicts, ProcessSemiLifeLongTensor), placed first-fit, and dumped in
    the format of Somas::SomasInfo."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.gap = self.random.choice((0, 0, 512))
        self.streams = self.random.randint(1, 3)
        self.nodes, self.tensors, self.unions, self.lists, self.arcs = [], [], [], [], []
        for number in range(self.random.randint(3, 9)):
            self._node(number)
        self._arcs()
        self._lists()

    def _tensor(self, node, kind, size=None):
        size = 512 * self.random.randint(1, 4) if size is None else size
        life = self.random.choice(("None",) * 9 + ("GraphAll", "GraphStart", "GraphEnd"))
        if kind == "Workspace":
            life = "None"
        self.tensors.append({"size": size, "source": node, "kind": kind, "uses": set(), "offset": 0,
                             "life": "LifeLong" + life})
        return len(self.tensors) - 1

    def _node(self, number):
        node = {"stream": self.random.randrange(self.streams), "inputs": [], "outputs": [],
                "workspaces": [], "parameters": []}
        made = [i for i, t in enumerate(self.tensors) if t["kind"] != "Workspace"]
        for i in self.random.sample(made, min(len(made), self.random.randint(0, 3))):
            node["inputs"].append(i)
            self.tensors[i]["uses"].add(number)
        if self.random.random() < 0.3:
            node["parameters"].append(number % 2)
        for _ in range(self.random.randint(0, 2)):
            node["outputs"].append(self._tensor(number, "Common"))
        for _ in range(self.random.choice((0, 0, 1, 2))):
            node["workspaces"].append(self._tensor(number, "Workspace"))
        last = node["inputs"][:1]
        if last and self.random.random() < 0.2 and not self.tensors[last[0]]["uses"] - {number} and \
                not any(last[0] in union for union in self.unions) and \
                self.tensors[last[0]]["life"] == "LifeLongNone":
            over = self._tensor(number, "Union", self.tensors[last[0]]["size"])
            self.tensors[over]["life"] = "LifeLongNone"
            self.tensors[last[0]]["closed"] = True
            node["outputs"].append(over)
            self.unions.append([last[0], over])
        self.nodes.append(node)

    def _arcs(self):
        for union in self.unions:  # who reads what is overwritten has done so before
            writer = self.tensors[union[1]]["source"]
            late = {n for n in self.tensors[union[0]]["uses"] if n > writer}
            for n in late:
                self.nodes[n]["inputs"].remove(union[0])
                self.tensors[union[0]]["uses"].discard(n)
        for stream in range(self.streams):
            own = [n for n, node in enumerate(self.nodes) if node["stream"] == stream]
            self.arcs += zip(own, own[1:])
        for _ in range(self.random.randint(0, 3)):
            a, b = sorted(self.random.sample(range(len(self.nodes)), 2))
            self.arcs.append((a, b))

    def _lists(self):
        free = [i for i, t in enumerate(self.tensors)
                if t["kind"] == "Common" and not any(i in union for union in self.unions)]
        self.random.shuffle(free)
        if len(free) > 3 and self.random.random() < 0.6:
            self.lists.append(free[:self.random.randint(2, 3)])
        for ids in self.lists:
            self.tensors[ids[0]]["size"] += self.gap
            self.tensors[ids[-1]]["size"] += self.gap

    def _before(self):
        """For each node the nodes that have ended when it starts."""
        past = [set() for _ in self.nodes]
        direct = [set() for _ in self.nodes]
        for a, b in self.arcs:
            direct[b].add(a)
        for i in self.tensors:
            for n in i["uses"]:
                direct[n].add(i["source"])
        for n in range(len(self.nodes)):
            for a in direct[n] - {n}:
                past[n] |= {a} | past[a]
        return past

    def conflicts(self):
        past, count = self._before(), len(self.tensors)

        def ends(a, b):
            uses = self.tensors[a]["uses"] or {self.tensors[a]["source"]}
            source = self.tensors[b]["source"]
            return all(use in past[source] and use != source for use in uses)

        reuse = [[a != b and self.tensors[a]["source"] != self.tensors[b]["source"]
                  and (ends(a, b) or ends(b, a)) for b in range(count)] for a in range(count)]
        for a, tensor in enumerate(self.tensors):
            for b in range(count):
                if tensor["life"] == "LifeLongGraphAll" or \
                        tensor["life"] == "LifeLongGraphStart" and b < a or \
                        tensor["life"] == "LifeLongGraphEnd" and b > a:
                    reuse[a][b] = reuse[b][a] = False
        for first, *rest in self.unions:
            for b in range(count):
                if any(not reuse[i][b] for i in rest):
                    reuse[first][b] = reuse[b][first] = False
        return reuse

    def place(self):
        reuse = self.conflicts()
        over = {i for union in self.unions for i in union[1:]}
        blocks = [ids for ids in self.lists]
        grouped = {i for ids in self.lists for i in ids}
        blocks += [[i] for i in range(len(self.tensors)) if i not in over and i not in grouped]
        done, self.total = [], 0
        for block in sorted(blocks, key=lambda ids: -sum(self.tensors[i]["size"] for i in ids)):
            offset, moved = 0, True
            while moved:
                moved, inside = False, offset
                for i in block:
                    for j in done:
                        other = self.tensors[j]
                        if not reuse[i][j] and inside < other["offset"] + other["size"] and \
                                other["offset"] < inside + self.tensors[i]["size"]:
                            offset += other["offset"] + other["size"] - inside
                            moved = True
                            break
                    if moved:
                        break
                    inside += self.tensors[i]["size"]
            for i in block:
                self.tensors[i]["offset"] = offset
                offset += self.tensors[i]["size"]
                self.total = max(self.total, offset)
                done.append(i)
        for first, *rest in self.unions:
            for i in rest:
                self.tensors[i]["offset"] = self.tensors[first]["offset"]
        for ids in self.lists:
            self.tensors[ids[0]]["offset"] += self.gap

    def dump(self):
        def ids(numbers, what):
            return "".join(f"%{i}{what}, " for i in numbers)

        lines = ["All Parameters:\n", "index:\tsize:\tsource node name:\tnode out index:"]
        lines += [f"%{i}P\t#{4096 * (i + 1)}S\tw{i}\t0" for i in range(2)]
        lines += ["\n\nAll Tensors:\n", "index:\taligned_size:\toriginal_size:\toffset:\ttype:\t"
                  "lifelong:\tlife_start:\tlife_end:\tsource node name:"]
        for i, t in enumerate(self.tensors):
            lines.append(f"%{i}T\t#{t['size']}S\t#{t['size'] - 31}S\t&{t['offset']}\t{t['kind']}\t"
                         f"{t['life']}\t{t['source']}\t{max(t['uses'] | {t['source']})}\tnode{t['source']}")
        lines += [f"%{i}CT\t#0S\t#0S\t&0\tControl\tLifeLongNone\t{a}\t{b}\tnode{a}"
                  for i, (a, b) in enumerate(self.arcs)]
        lines.append("\n\nAll Nodes:\n")
        for n, node in enumerate(self.nodes):
            after = [i for i, arc in enumerate(self.arcs) if arc[0] == n]
            before = [i for i, arc in enumerate(self.arcs) if arc[1] == n]
            lines.append(
                f"${n}\tMatMul-op{n}\t{n % 2}\tinputs[{ids(node['parameters'], 'P')}"
                f"{ids(node['inputs'], 'T')}]\toutputs[{ids(node['outputs'], 'T')}]\tworkspace["
                f"{ids(node['workspaces'], 'T')}]\tctrl_inputs[{ids(before, 'CT')}]\tctrl_outputs["
                f"{ids(after, 'CT')}]\tstreamID[@{node['stream']}]")
        lines.append("\n\nAll Union Tensors Info:\n")
        lines += ["union tensors: [" + "".join(f"%{i}T " for i in u) + "]" for u in self.unions]
        for title in ("Original", "Processed"):
            lines.append(f"\n\nAll {title} Contiguous Tensors Info:\n")
            lines += ["contiguous tensors: [" + "".join(f"%{i}T " for i in g) + "]" for g in self.lists]
        lines += ["\n\nAll Stream Groups:\n", "\n\nAll Merged Blocks:\n", "start_offset:\tsize:",
                  f"0\t{self.total}", f"\nTotal Memory Size after reused:{self.total}"]
        return "\n".join(lines)


@test
def offsets_that_somas_chose_are_safe_in_the_graph_and_tarn_needs_no_more():
    gaps = lists = unions = 0
    for seed in range(ROUNDS):
        world = Somas(seed)
        if not world.tensors:
            continue
        world.place()
        reading = tarn.read.somas(written("Ascend_somas_tensor_offset_0.ir", world.dump()))
        assert reading.refused is None, (seed, reading.refused)
        assert reading.plan.footprint == world.total, (seed, reading.plan.footprint, world.total)
        assert judged(reading).footprint <= world.total, seed
        gaps += any("gap" in text for text in reading.assumed)
        lists += bool(reading.graph.groups)
        unions += bool(world.unions)
    assert gaps and lists and unions


@test
def offsets_of_somas_that_are_moved_onto_others_are_refused():
    refused = 0
    for seed in range(ROUNDS):
        world = Somas(seed)
        if len(world.tensors) < 2:
            continue
        world.place()
        world.gap = 0
        moved = {i for ids in world.lists for i in ids} | {i for u in world.unions for i in u}
        for i, tensor in enumerate(world.tensors):
            if i not in moved:
                tensor["offset"] = 0
        overlap = any(not ok for a, row in enumerate(world.conflicts()) for b, ok in enumerate(row)
                      if a != b and a not in moved and b not in moved)
        reading = tarn.read.somas(written("somas.ir", world.dump()))
        if overlap and reading.plan is not None:
            assert reading.refused, seed
            refused += 1
    assert refused


if __name__ == "__main__":
    run()
