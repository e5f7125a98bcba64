"""tarn.read on small files: what each format becomes, what is assumed, what is refused and how.
Files of real producers are read by read_producers_test.py (tests/run.sh --with read). TAP on stdout.

    read_test.py SOURCE     with PYTHONPATH and TARN_LIBRARY set"""
import contextlib
import gzip
import io
import json
import os
import pickle
import random
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile

import flat_writer
from cases import raises, run, test

import tarn
import tarn.read
from tarn import command as tool
from tarn.read import __main__ as command

SOURCE = os.path.abspath(sys.argv[1])
FOLDER = tempfile.TemporaryDirectory()
COMMAND = os.environ.get("TARN_COMMAND")  # of this build; "": it has none
ROUNDS = 100


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
    assert not COMMAND or tool.run("run", reading.graph, plan, ["--check"])
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


@test
def lifelong_unions_and_workspaces_of_somas_are_what_they_say():
    text = """All Parameters:

index:	size:	source node name:	node out index:
%0P	#4096S	weight	0


All Tensors:

index:	aligned_size:	original_size:	offset:	type:	lifelong:	life_start:	life_end:	source node name:
%0T	#1024S	#1000S	&0	Common	LifeLongNone	0	1	Conv2D-op1
%1T	#1024S	#1000S	&0	Union	LifeLongNone	1	2	ReLU-op2
%2T	#512S	#100S	&1024	Workspace	LifeLongNone	1	1	ReLU-op2
%3T	#2048S	#2000S	&2048	GraphOutput	LifeLongGraphAll	2	2	AllReduce-op3
%0CT	#0S	#0S	&0	Control	LifeLongNone	0	2	Conv2D-op1


All Nodes:

$0	Conv2D-op1	0	inputs[%0P, ]	outputs[%0T, ]	workspace[]	ctrl_inputs[]	ctrl_outputs[%0CT, ]	streamID[@3]
$1	ReLU-op2	0	inputs[%0T, ]	outputs[%1T, ]	workspace[%2T, ]	ctrl_inputs[]	ctrl_outputs[]	streamID[@3]
$2	AllReduce-op3	1	inputs[%1T, ]	outputs[%3T, ]	workspace[]	ctrl_inputs[%0CT, ]	ctrl_outputs[]	streamID[@8]


All Union Tensors Info:

union tensors: [%0T %1T ]

Total Memory Size after reused:4096"""
    reading = tarn.read.somas(written("one.ir", text))
    graph = reading.graph
    assert graph.streams == ["stream 3", "stream 8"]
    assert [op.name for op in graph.ops] == ["lifelong", "Conv2D-op1 $0", "ReLU-op2 $1", "AllReduce-op3 $2"]
    relu, reduce = graph.ops[2], graph.ops[3]
    assert relu.workspace == 512 and graph.tensors[relu.outputs[0]].root == graph.ops[1].outputs[0]
    assert reduce.op_class == "collective" and graph.tensors[graph.ops[0].outputs[0]].kind == "output"
    assert graph.tensors["weight"].kind == "parameter"
    assert reading.refused is None and reading.plan.footprint == 4096
    assert judged(reading).footprint == 3584
    before = tarn.read.somas(written("two.ir", text.replace("reused:4096", "reused:0").replace("&1024", "&0")
                                     .replace("&2048", "&0")))
    assert before.plan is None and before.graph == graph
    error = raises(tarn.BadInput, tarn.read.somas, written("three.ir", text.replace("#2048S", "#20x8S")))
    assert "line 13" in str(error), error
    error = raises(tarn.BadInput, tarn.read.somas, written("four.ir", text.replace("inputs[%1T", "inputs[%9T")))
    assert "node $2" in str(error) and "%9T" in str(error)


# ---- XLA ----

ASYNC = """HloModule async, is_scheduled=true, input_output_alias={ {0}: (0, {}, may-alias) }

%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}

%twice (x: f32[1024]) -> f32[1024] {
  %x = f32[1024]{0} parameter(0)
  %t = f32[1024]{0} tanh(f32[1024]{0} %x)
  ROOT %n = f32[1024]{0} negate(%t)
}

ENTRY %main (p: f32[1024], q: f32[1024]) -> (f32[1024], f32[1024]) {
  %p = f32[1024]{0} parameter(0)
  %q = f32[1024]{0} parameter(1)
  %g = f32[1024]{0} multiply(%q, %q)
  %s = f32[1024]{0} all-reduce-start(%g), replica_groups={{0,1}}, to_apply=%sum
  %h = f32[1024]{0} exponential(%q)
  %d = f32[1024]{0} all-reduce-done(%s)
  %u = f32[1024]{0} add(%p, %d)
  %away = (f32[1024]{0:S(5)}, f32[1024]{0}, u32[]) copy-start(%h)
  %there = f32[1024]{0:S(5)} copy-done(%away)
  %back = (f32[1024]{0}, f32[1024]{0:S(5)}, /*index=2*/u32[]) copy-start(%there)
  %again = f32[1024]{0} copy-done(%back)
  %r = f32[1024]{0} call(%again), to_apply=%twice
  ROOT %t = (f32[1024]{0}, f32[1024]{0}) tuple(%u, %r)
}
"""


@test
def hlo_that_runs_beside_has_streams_and_spaces_and_donations_lie_in_their_parameter():
    reading = tarn.read.hlo(written("async.hlo", ASYNC))
    graph = reading.graph
    assert graph.streams == ["compute", "communication", "copy"]
    assert [space.kind for space in graph.spaces] == ["device", "pinned"]
    launched = [op.name for op in graph.ops if not op.view]
    assert launched == ["g", "s", "h", "u", "away", "back", "r/t", "r/n"], launched
    assert graph.tensors["u"].root == graph.tensors["p"].id
    assert graph.tensors["away{0}"].space == 1 and graph.tensors["back{0}"].space == 0
    assert graph.tensors["r/n"].kind == "output"
    plan = judged(reading)
    assert plan.offset("g") != plan.offset("h") != plan.offset("s") != plan.offset("g")  # side by side
    assert plan.spaces[1].footprint == 4096


@test
def loops_and_conditionals_of_hlo_have_their_memory_as_workspace():
    reading = tarn.read.hlo(data("scan.hlo"))
    loop = reading.graph.ops["while.6"]
    assert 2 * 65536 <= loop.workspace <= 2 * 65536 + 4096, loop.workspace
    assert any("whiles" in text for text in reading.assumed)
    plan = judged(reading, in_place=True)
    assert plan.footprint <= 65536 * 3 + 4096
    conditional = """HloModule c
%big (x: f32[256]) -> f32[256] {
  %x = f32[256]{0} parameter(0)
  %w = f32[64,256]{1,0} broadcast(%x), dimensions={1}
  %z = f32[] constant(0)
  ROOT %s = f32[256]{0} reduce(%w, %z), dimensions={0}, to_apply=%sum
}
%small (y: f32[256]) -> f32[256] {
  ROOT %y = f32[256]{0} parameter(0)
}
%sum (a: f32[], b: f32[]) -> f32[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  ROOT %c = f32[] add(%a, %b)
}
ENTRY %main (i: pred[], x: f32[256]) -> f32[256] {
  %i = pred[] parameter(0)
  %x = f32[256]{0} parameter(1)
  ROOT %o = f32[256]{0} conditional(%i, %x, %x), true_computation=%big, false_computation=%small
}
"""
    reading = tarn.read.hlo(written("c.hlo", conditional))
    assert reading.graph.ops["o"].workspace == 65536  # its result is the conditional's
    assert any("not scheduled" in text for text in reading.assumed)


@test
def what_xla_may_write_in_place_may_be_written_in_place():
    text = """HloModule s, is_scheduled=true
%less (a: f32[], b: f32[], c: s32[], d: s32[]) -> pred[] {
  %a = f32[] parameter(0)
  %b = f32[] parameter(1)
  %c = s32[] parameter(2)
  %d = s32[] parameter(3)
  ROOT %l = pred[] compare(%a, %b), direction=LT
}
%fused (p: f32[1024], q: f32[]) -> f32[1024] {
  %p = f32[1024]{0} parameter(0)
  %q = f32[] parameter(1)
  %w = f32[1024]{0} broadcast(%q), dimensions={}
  ROOT %m = f32[1024]{0} multiply(%p, %w)
}
%turned (t: f32[1024]) -> f32[1024] {
  %t = f32[1024]{0} parameter(0)
  ROOT %v = f32[1024]{0} reverse(%t), dimensions={0}
}
ENTRY %main (x: f32[1024], y: f32[]) -> (f32[1024], s32[1024]) {
  %x = f32[1024]{0} parameter(0)
  %y = f32[] parameter(1)
  %k = f32[1024]{0} copy(%x)
  %f = f32[1024]{0} fusion(%k, %y), kind=kLoop, calls=%fused
  %i = s32[1024]{0} iota(), iota_dimension=0
  %s = (f32[1024]{0}, s32[1024]{0}) sort(%f, %i), dimensions={0}, to_apply=%less
  %g = f32[1024]{0} get-tuple-element(%s), index=0
  %h = s32[1024]{0} get-tuple-element(%s), index=1
  %r = f32[1024]{0} fusion(%g), kind=kLoop, calls=%turned
  ROOT %o = (f32[1024]{0}, s32[1024]{0}) tuple(%r, %h)
}
"""
    reading = tarn.read.hlo(written("s.hlo", text))
    assert judged(reading, in_place=True).footprint == 3 * 4096  # k, f, s{0} are one; i, s{1}; r
    assert judged(reading).footprint == 4 * 4096


@test
def hlo_that_is_damaged_is_refused_with_its_line():
    for old, new, said in (("multiply(%q, %q)", "multiply(%q, %lost)", "line 18: g reads lost"),
                           ("f32[1024]{0} multiply", "f32[?]{0} multiply", "line 18: dimension '?'"),
                           ("ENTRY ", "", "no ENTRY"), ("HloModule", "Module", "no HLO text"),
                           ("call(%again), to_apply=%twice", "call(%again), to_apply=%none", "calls none"),
                           ("f32[1024]{0} multiply", "q32x[1024]{0} multiply", "q32x")):
        assert old in ASYNC
        error = raises(tarn.BadInput, tarn.read.hlo, written("bad.hlo", ASYNC.replace(old, new, 1)))
        assert said in str(error), (said, error)


@test
def placements_of_xla_are_safe_and_tarn_needs_no_more():
    for name, bytes_of_xla in (("scan", 131456), ("step", 532096)):
        reading = tarn.read.xla(data(name + "-buffer-assignment.txt"))
        assert reading.refused is None, reading.refused
        assert reading.plan.footprint == bytes_of_xla, reading.plan
        plan = judged(reading, alignment=64)
        assert plan.optimal and plan.footprint <= bytes_of_xla
    assert plan.footprint < bytes_of_xla
    with open(data("step-buffer-assignment.txt"), encoding="utf-8") as file:
        text = file.read()
    alone = written("alone.txt", text)
    assert "live-range" in str(raises(tarn.BadInput, tarn.read.xla, alone))
    given = tarn.read.xla(alone, live_ranges=data("step-live-range.txt"))
    assert given.plan.footprint == bytes_of_xla
    with open(data("step-live-range.txt"), encoding="utf-8") as file:
        both = written("both.txt", text + file.read())
    assert tarn.read.xla(both).graph.hash == given.graph.hash
    colored = tarn.read.xla(written("colored.txt", text.replace("262144, maybe", "262144, color 1, maybe", 1)),
                            live_ranges=data("step-live-range.txt"))
    assert colored.refused is None and [space.kind for space in colored.graph.spaces] == ["device", "scratch"]
    judged(colored, alignment=64)


# ---- FlatBuffers ----

def tflite(operators, tensors, inputs, outputs, codes):
    """A model of one subgraph. tensors: (name, shape, type, constant bytes); codes: operators' numbers."""
    buffers = [{}] + [{0: bytes(size)} for _, _, _, size in tensors if size]
    numbers = iter(range(1, len(buffers)))
    records = [{0: shape, 1: ("b", kind), 2: ("I", next(numbers) if size else 0), 3: name}
               for name, shape, kind, size in tensors]
    return flat_writer.written(
        {0: ("I", 3), 1: [{3: ("i", code), 0: ("b", min(code, 127))} for code in codes],
         2: [{0: records, 1: inputs, 2: outputs,
              3: [{0: ("I", code), 1: read, 2: made} for code, read, made in operators]}],
         4: buffers}, b"TFL3")


TFLITE = tflite([(0, [0, 1], [2]), (1, [2, 2], [3]), (2, [3], [4])],
                [("x", [1, 64], 0, 0), ("w", [32, 64], 0, 8192), ("y", [1, 32], 0, 0), ("z", [1, 32], 0, 0),
                 ("v", [32], 0, 0)], [0], [4], [9, 0, 22])  # fully connected, add, reshape


@test
def tflite_models_are_read_with_weights_that_persist():
    reading = tarn.read.tflite(written("m.tflite", TFLITE))
    graph = reading.graph
    assert [op.kind for op in graph.ops] == ["FULLY_CONNECTED", "ADD", "RESHAPE"]
    assert {t.name: (t.size, t.kind) for t in graph.tensors} == {
        "x": (256, "input"), "w": (8192, "parameter"), "y": (128, "intermediate"), "z": (128, "intermediate"),
        "v": (128, "output")}
    assert judged(reading, alignment=64, in_place=True).footprint == 128
    assert judged(reading, alignment=64).footprint == 256
    loop = tflite([(0, [0], [1])], [("x", [1], 0, 0), ("y", [1], 0, 0)], [0], [1], [119])
    assert "WHILE" in str(raises(tarn.BadInput, tarn.read.tflite, written("l.tflite", loop)))
    text = tflite([(0, [0], [1])], [("x", [1], 0, 0), ("y", [1], 5, 0)], [0], [1], [0])
    assert "'y'" in str(raises(tarn.BadInput, tarn.read.tflite, written("t.tflite", text)))


@test
def damaged_flatbuffers_are_bad_input_and_nothing_else():
    draw = random.Random(1)
    readers = ((tarn.read.tflite, TFLITE), (tarn.read.executorch, executorch()))
    for reader, contents in readers:
        for cut in range(8, len(contents), 7):
            path = written("cut.bin", contents[:cut])
            with contextlib.suppress(tarn.BadInput, tarn.UsageError):
                reader(path)
        for _ in range(300):
            damaged = bytearray(contents)
            for _ in range(draw.randint(1, 4)):
                damaged[draw.randrange(8, len(damaged))] = draw.randrange(256)
            with contextlib.suppress(tarn.BadInput, tarn.UsageError):
                reader(written("damaged.bin", bytes(damaged)))


def executorch(offsets=(0, 256, 512, 0), jump=False):
    """x (input) -> a -> b -> out; two memories where the third offset is a pair."""
    def tensor(size, offset):
        memory, offset = offset if isinstance(offset, tuple) else (1, offset)
        return {0: ("B", 5), 1: {0: ("b", 6), 2: [size], 6: {0: ("I", memory), 1: ("I", offset)}}}

    values = [tensor(64, offset) for offset in offsets] + [{0: ("B", 5), 1: {0: ("b", 6), 2: [1000], 5: ("I", 1)}}]
    calls = [{0: ("B", 1), 1: {0: ("i", i), 1: args}} for i, args in enumerate(([0, 4, 1], [1, 2], [2, 3, 3]))]
    if jump:
        calls.insert(1, {0: ("B", 4), 1: {0: ("i", 0), 1: ("i", 0)}})
    return flat_writer.written(
        {0: ("I", 0), 1: [{0: "forward", 2: values, 3: [0], 4: [3], 5: [{2: calls}],
                           6: [{0: "aten::mm", 1: "out"}, {0: "aten::relu", 1: "out"}, {0: "aten::exp", 1: "out"}]}]},
        b"ET12")


@test
def executorch_programs_are_read_with_their_own_placement():
    reading = tarn.read.executorch(written("p.pte", executorch()))
    assert [op.kind for op in reading.graph.ops] == ["inputs", "aten::mm.out", "aten::relu.out", "aten::exp.out"]
    assert reading.refused is None and reading.plan.footprint == 768
    assert judged(reading, alignment=16).footprint == 512
    assert any("1 tensor without a planned place" in text for text in reading.assumed)
    spaces = tarn.read.executorch(written("s.pte", executorch((0, 256, (2, 0), 0))))
    assert [space.name for space in spaces.graph.spaces] == ["mem_id 1", "mem_id 2"]
    assert spaces.refused is None and spaces.plan.spaces[1].footprint == 256
    jumps = raises(tarn.BadInput, tarn.read.executorch, written("j.pte", executorch(jump=True)))
    assert "control flow" in str(jumps)
    assert "forward" in str(raises(tarn.UsageError, tarn.read.executorch, written("p.pte", executorch()),
                                   method="backward"))


# ---- ONNX ----

def message(*fields):
    """A protobuf message of (number, int, text, bytes or a list of ints, packed)."""
    result = b""
    for number, value in fields:
        if isinstance(value, int):
            result += varint(number << 3) + varint(value)
            continue
        value = value.encode() if isinstance(value, str) else value
        value = b"".join(map(varint, value)) if isinstance(value, list) else value
        result += varint(number << 3 | 2) + varint(len(value)) + value
    return result


def varint(value):
    result = b""
    while value > 127:
        result, value = result + bytes([value & 127 | 128]), value >> 7
    return result + bytes([value])


def onnx_info(name, *dims):
    dims = [message((1, message((1, d) if isinstance(d, int) else (2, d)))) for d in dims]
    shape = message(*((1, d[2:]) for d in dims))
    return message((1, name), (2, message((1, message((1, 1), (2, shape))))))


def onnx_node(kind, inputs, outputs, *attributes):
    return message(*((1, i) for i in inputs), *((2, o) for o in outputs), (3, outputs[0]), (4, kind),
                   *((5, a) for a in attributes))


def onnx_weight(name, *dims, kind=1, size=4):
    count = 1
    for dim in dims:
        count *= dim
    return message(*((1, d) for d in dims), (2, kind), (8, name), (9, bytes(count * size)))


def onnx_model(nodes, inputs, outputs, weights=()):
    graph = message(*((1, n) for n in nodes), (2, "made by hand"), *((5, w) for w in weights),
                    *((11, i) for i in inputs), *((12, o) for o in outputs))
    return message((1, 8), (2, "tarn"), (7, graph), (8, message((1, ""), (2, 17))))


ONNX = onnx_model(
    [onnx_node("MatMul", ["x", "w"], ["y"]), onnx_node("Relu", ["y"], ["z"]),
     onnx_node("Shape", ["x"], ["s"]), onnx_node("Transpose", ["w"], ["wt"]),
     onnx_node("Flatten", ["z"], ["f"]), onnx_node("MatMul", ["f", "wt"], ["o"]), onnx_node("Exp", ["z"], ["dead"])],
    [onnx_info("x", "batch", 64)], [onnx_info("o", "batch", 64)], [onnx_weight("w", 64, 256)])


def has_onnx():
    try:
        import onnx  # noqa: F401
    except ImportError:
        return False
    return True


@test
def onnx_models_are_read_or_the_package_that_is_missing_is_named():
    path = written("m.onnx", ONNX)
    assert tarn.read.detect(path) == "onnx"
    if not has_onnx():
        assert "pip install 'tarn[onnx]'" in str(raises(tarn.UsageError, tarn.read.onnx, path, batch=8))
        return
    reading = tarn.read.onnx(path, batch=8)
    graph = reading.graph
    assert [op.kind for op in graph.ops] == ["MatMul", "Relu", "Flatten", "MatMul"], list(graph.ops)
    assert graph.ops[2].view and {t.name: (t.size, t.kind) for t in graph.tensors} == {
        "x": (2048, "input"), "w": (65536, "parameter"), "wt": (65536, "parameter"), "y": (8192, "intermediate"),
        "z": (8192, "intermediate"), "f": (8192, "intermediate"), "o": (2048, "output")}
    assert judged(reading, in_place=True).footprint == 10240
    assert judged(reading).footprint == 16384
    assert tarn.read.onnx(path, shapes={"x": (8, 64)}).graph.hash == graph.hash
    error = raises(tarn.BadInput, tarn.read.onnx, path)
    assert "'batch'" in str(error) and "batch=32" in str(error) and "'x'" in str(error)
    assert "'depth'" in str(raises(tarn.UsageError, tarn.read.onnx, path, batch=8, depth=3))
    assert "'q'" in str(raises(tarn.UsageError, tarn.read.onnx, path, shapes={"q": (1,)}))
    branch = onnx_model([onnx_node("If", ["c"], ["o"])], [onnx_info("c")], [onnx_info("o", 1)])
    assert "o (If)" in str(raises(tarn.BadInput, tarn.read.onnx, written("if.onnx", branch)))
    unknown = onnx_model([onnx_node("NonZero", ["x"], ["n"])], [onnx_info("x", 4)], [onnx_info("n", 1, "found")])
    assert "'n'" in str(raises(tarn.BadInput, tarn.read.onnx, written("nz.onnx", unknown)))
    damaged = written("cut.onnx", ONNX[:-40])
    assert "no ONNX model" in str(raises(tarn.BadInput, tarn.read.onnx, damaged))


# ---- Traces ----

def traced(*names, streams=()):
    """A graph whose ops have these kinds."""
    b = tarn.Builder("traced")
    stream, last = b.stream("0"), b.tensor("x", 64, "input")
    for i, name in enumerate(names):
        made = b.tensor(f"t{i}", 64, "output" if i == len(names) - 1 else "intermediate")
        b.op(f"op{i}", stream, [last], [made], kind=name)
        last = made
    return b.finish()


def kineto(*events):
    """(name, category, begin, microseconds, arguments)"""
    return json.dumps({"schemaVersion": 1, "traceEvents": [
        {"ph": "X", "name": name, "cat": kind, "ts": ts, "dur": dur, "pid": 1, "tid": kind, "args": args}
        for name, kind, ts, dur, args in events]})


@test
def costs_come_from_traces_by_name_and_by_kind_in_order():
    graph = traced("aten.addmm.default", "aten.gelu", "aten.addmm.default", "aten.relu")
    trace = kineto(("aten::linear", "cpu_op", 0, 10, {}), ("aten::addmm", "cpu_op", 1, 5, {}),
                   ("aten::addmm", "cpu_op", 20, 7, {}), ("aten::gelu", "cpu_op", 12, 2, {}),
                   ("aten::addmm", "cpu_op", 13, 1, {}), ("op3", "cpu_op", 30, 3.5, {}))
    reading = tarn.read.costs(written("t.json", trace), graph)
    assert [op.cost for op in reading.graph.ops] == [5000, 2000, 7000, 3500], list(reading.graph.ops)
    twice = json.loads(trace)["traceEvents"]
    twice += [{**e, "ts": e["ts"] + 100, "dur": e["dur"] + 2} for e in twice]
    again = tarn.read.costs(written("t2.json", json.dumps(twice)), graph)
    assert [op.cost for op in again.graph.ops] == [6000, 3000, 8000, 4500]
    messages = [message((1, "0.0.4")), message((1, 3), (2, "aten::gelu"), (6, 5), (7, 9))]
    chakra = written("t.et", b"".join(varint(len(m)) + m for m in messages))
    assert tarn.read.costs(chakra, graph).graph.ops[1].cost == 9000
    nodes = [{"id": 1, "name": "aten::relu", "inclusive_dur": 4, "ts": 1}]
    linked = written("l.json", json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}))
    assert tarn.read.costs(linked, graph).graph.ops[3].cost == 4000
    nodes[0].pop("inclusive_dur")
    linked = written("l.json", json.dumps({"schema": "1.1.1-chakra.0.0.4", "nodes": nodes}))
    assert "without times" in str(raises(tarn.BadInput, tarn.read.costs, linked, graph))
    assert "aten.gelu" in str(raises(tarn.BadInput, tarn.read.costs, written("o.json", kineto(
        ("other", "cpu_op", 0, 1, {}))), graph))


@test
def streams_come_from_kernels_and_keep_what_was_in_order():
    b = tarn.Builder("in place")
    s = b.stream("0")
    x, y, z = b.tensor("x", 64, "parameter"), b.tensor("y", 64), b.tensor("z", 64, "output")
    b.op("a", s, [x], [y], kind="aten.mul")
    b.op("b", s, [x], [z], kind="aten.exp")
    b.op("c", s, [y], [b.alias(x, "x again")], kind="aten.add_")  # writes what b has read
    graph = b.finish()
    trace = kineto(("aten::mul", "cpu_op", 0, 5, {"External id": 1}), ("aten::exp", "cpu_op", 6, 5, {"External id": 2}),
                   ("aten::add_", "cpu_op", 12, 5, {"External id": 3}),
                   ("k1", "kernel", 100, 40, {"External id": 1, "stream": 7}),
                   ("k2", "kernel", 100, 60, {"External id": 2, "stream": 9}),
                   ("k3", "kernel", 200, 30, {"External id": 3, "stream": 7}))
    reading = tarn.read.costs(written("s.json", trace), graph, streams=True)
    made = reading.graph
    assert made.streams == ["stream 7", "stream 9"] and [op.stream for op in made.ops] == [0, 1, 0]
    assert [op.cost for op in made.ops] == [40000, 60000, 30000]
    assert made.ops[2].control == (1,)
    judged(reading)


@test
def damaged_texts_are_bad_input_and_nothing_else():
    def read(name):
        with open(data(name), "rb") as file:
            return file.read()

    graph = traced("aten.addmm.default", "aten.gelu")
    trace = kineto(("aten::addmm", "cpu_op", 1, 5, {"External id": 1}), ("k", "kernel", 1, 2, {"External id": 1, "stream": 3}))
    ranges = data("step-live-range.txt")
    readers = (
        (tarn.read.somas, read("somas_tensor_offset.ir")), (tarn.read.hlo, ASYNC.encode()), (tarn.read.hlo, read("scan.hlo")),
        (lambda path: tarn.read.xla(path, live_ranges=ranges), read("step-buffer-assignment.txt")),
        (lambda path: tarn.read.xla(data("step-buffer-assignment.txt"), live_ranges=path), read("step-live-range.txt")),
        (lambda path: tarn.read.costs(path, graph), trace.encode()))
    pieces = (b"0", b"9", b"99999999999", b"-1", b"{", b"}", b"(", b")", b"%", b",", b" ", b"[", b"]", b"\n", b"\xff", b"")
    draw = random.Random(7)
    for reader, contents in readers:
        for _ in range(150):
            damaged = bytearray(contents)
            for _ in range(draw.randint(1, 4)):
                place = draw.randrange(len(damaged))
                if draw.random() < 0.3:
                    del damaged[place:place + draw.randint(1, 20)]
                else:
                    damaged[place:place + 1] = draw.choice(pieces)
            path = written("damaged.txt", bytes(damaged))
            with contextlib.suppress(tarn.BadInput, tarn.UsageError):
                reader(path)
    for old, new in (("call(%again), to_apply=%twice", "call(%again)"), ("all-reduce-done(%s)", "all-reduce-done()"),
                     ("ROOT %n = f32[1024]{0} negate(%t)", "ROOT %n = f32[1024]{0} call(%t), to_apply=%twice")):
        assert old in ASYNC
        raises(tarn.BadInput, tarn.read.hlo, written("call.hlo", ASYNC.replace(old, new)))
    raises(tarn.BadInput, tarn.read.costs, written("deep.json", "[" * 100000), graph)


# ---- The command ----

@test
def snapshots_of_pytorch_are_read_from_the_command_line():
    trace = [{"action": "alloc", "addr": 512, "size": 1024, "stream": 0},
             {"action": "alloc", "addr": 4096, "size": 512, "stream": 0},
             {"action": "free_completed", "addr": 512, "size": 1024, "stream": 0},
             {"action": "free_completed", "addr": 4096, "size": 512, "stream": 0}]
    path = written("s.pickle", pickle.dumps({"device_traces": [trace], "segments": []}, protocol=4))
    goal = os.path.join(FOLDER.name, "snapshot.json")
    code, out, err = called(path, "-o", goal, "--one-stream")
    assert code == 0 and "4 ops" in out and "assumed: " in err, (code, out, err)
    assert tarn.plan(goal).footprint == 1536


def _zip(*names):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name in names:
            archive.writestr(name, b"contents")
    return packed.getvalue()


def a_graph_and_its_plan():
    b = tarn.Builder("g")
    b.op("f", b.stream(), [], [b.tensor("t", 4)])
    graph = b.finish()
    return graph.to_bytes(), tarn.plan(graph).to_bytes()


@test
def every_file_is_told_what_it_is_by_the_command_and_read_by_the_package():
    files = {"onnx": ("a.bin", ONNX), "tflite": ("b.bin", TFLITE), "executorch": ("c.bin", executorch()),
             "hlo": ("d.txt", ASYNC), "exported": ("e.pt2", b"PK\3\4" + bytes(60)),
             "stablehlo": ("f.mlir", "module @m {\n  func.func @main() {\n    return\n  }\n}\n"),
             "snapshot": ("g.pickle", pickle.dumps({"device_traces": []}, protocol=4)),
             "trace": ("h.json", kineto(("a", "cpu_op", 0, 1, {})))}
    world = Somas(3)
    world.place()
    files["somas"] = ("i.ir", world.dump())
    with open(data("scan-buffer-assignment.txt"), encoding="utf-8") as file:
        files["xla"] = ("j.txt", file.read())
    known = {"onnx": "an ONNX model", "tflite": "a TensorFlow Lite model", "executorch": "an ExecuTorch program",
             "hlo": "HLO text", "exported": "a zip archive", "stablehlo": "MLIR", "snapshot": "a pickle",
             "trace": "a trace", "somas": "SOMAS", "xla": "a buffer assignment of XLA"}
    assert set(files) == set(tarn.read.FORMATS) | {"trace"}
    for name, (file, contents) in files.items():
        path = written(file, contents)
        assert tarn.read.detect(path) == name, name
        for packed in (False, True):
            if packed:
                path = written(file + ".gz", gzip.compress(contents if isinstance(contents, bytes) else contents.encode()))
            error = raises(tarn.BadInput, tarn.Graph.load, path)
            assert f"seems to be {known[name]}" in str(error) or f"of MindSpore's {known[name]}" in str(error), error
            assert "python -m tarn.read" in str(error) and "no tarn.graph" in str(error)
    others = [("NumPy", _zip("x.npy")), ("NumPy", b"\x93NUMPY\1\0v\0{'descr'"), ("torch.save", _zip("archive/data.pkl")),
              ("torch.save", bytes.fromhex("80028a0a6cfc9c46f9206aa85019") + b".\x80\x02M"), ("TorchScript", _zip("m/data/0", "m/code/__torch__/m.py")),
              ("safetensors", (24).to_bytes(8, "little") + b'{"w":{"dtype":"F32"}}'), ("GGUF", b"GGUF\3\0\0\0" + bytes(16)),
              ("HDF5", b"\x89HDF\r\n\x1a\n" + bytes(8)), ("TensorFlow", b"\x08\x01\x12\x20\x0a\x10\x0a\x02ab" + bytes(40)),  # SavedModel
              ("TensorFlow", b"\x0a\x10\x0a\x01x\x12\x0bPlaceholder" + bytes(9)),  # GraphDef
              ("TensorFlow", b"\x0a\x14\x0a\x05jit_f\x12\x06main.4\x1a" + bytes(20))]  # HloProto
    for what, contents in others:
        path = written("other.bin", contents)
        assert tarn.read.detect(path) is None, (what, contents)
        for error in (raises(tarn.BadInput, tarn.Graph.load, path), raises(tarn.BadInput, tarn.read.read, path)):
            assert "seems to be" in str(error) and what in str(error), (what, error)
    graph, plan = a_graph_and_its_plan()
    for what, contents in (("tarn.graph", graph), ("tarn.graph", b' {"format": "tarn.graph"}'), ("tarn.plan", plan)):
        for packed in (contents, gzip.compress(contents)):
            path = written("other.json", packed)
            error = raises(tarn.BadInput, tarn.read.read, path)
            assert tarn.read.detect(path) is None and f"a file of Tarn ({what})" in str(error) and "tarn.Graph.load" in str(error), error
    for contents in (b"\x08\x08junk", b"\x08", b"{}", b"[1, 2]", b"hello", b"\0" * 100, b"\x89PNG\r\n"):
        path = written("other.bin", contents)
        assert tarn.read.detect(path) is None, contents
        assert "seems to be" not in str(raises(tarn.BadInput, tarn.Graph.load, path)), contents
    damaged = b'{"format":"tarn.graph","version":1,"name":"x","meta":{"traceEvents":[]},"streams":7}'
    assert "seems to be" not in str(raises(tarn.BadInput, tarn.Graph.load, written("g.json", damaged)))


@test
def the_command_has_documented_exit_codes():
    goal, plan = os.path.join(FOLDER.name, "out.json"), os.path.join(FOLDER.name, "out.plan")
    step = data("step-buffer-assignment.txt")
    code, out, _ = called(step, "-o", goal, "--plan", plan)
    assert code == 0 and "532096 bytes" in out
    graph = tarn.Graph.load(goal)
    assert tarn.Plan.load(plan, graph).footprint == 532096
    assert json.loads(graph.to_bytes())["meta"]["assumed"]
    assert called(step, "--dim", "batch=3")[0] == 2
    assert called(written("x.hlo", ASYNC), "--plan", plan)[0] == 2
    assert called(written("x.hlo", "HloModule x"))[0] == 3
    assert called(written("x.json", "{}"))[0] == 3
    absent = os.path.join(FOLDER.name, "absent")
    assert called(absent) == (8, "", f"tarn.read: {absent}: No such file or directory\n")
    assert called("") == (8, "", "tarn.read: '': No such file or directory\n")
    assert called(step, "-o", os.path.join(FOLDER.name, "no/such/folder.json"))[0] == 8
    trace = written("k.json", kineto(("while.6", "cpu_op", 0, 1, {})))
    assert called(trace)[0] == 2
    code, _, err = called(trace, "--costs-of", goal, "-o", os.path.join(FOLDER.name, "timed.json"))
    assert code == 3 and "no event" in err
    world = Somas(8)
    world.place()
    for tensor in world.tensors:
        tensor["offset"] = 0
    code, _, err = called(written("w.ir", world.dump()), "-o", goal, "--plan", plan)
    assert code == 6 and "refused" in err, (code, err)


@test
def no_file_that_is_read_is_written_and_none_is_written_twice():
    program = written("kept.hlo", ASYNC)
    linked, hard, dangling = (os.path.join(FOLDER.name, name) for name in ("linked.hlo", "hard.hlo", "dangling"))
    new = os.path.join(FOLDER.name, "new.json")
    os.symlink("kept.hlo", linked)
    os.link(program, hard)
    os.symlink("new.json", dangling)
    world = Somas(8)
    world.place()
    dump, trace = written("kept.ir", world.dump()), written("kept.json", kineto(("while.6", "cpu_op", 0, 1, {})))
    buffers, ranges = (shutil.copy(data(name), FOLDER.name) for name in ("step-buffer-assignment.txt", "step-live-range.txt"))
    before = {path: os.stat(path) for path in (program, dump, trace, buffers, ranges)}
    for words in ((program, "-o", program), (program, "-o", linked), (program, "-o", hard), (linked, "-o", program),
                  (program, "-o", os.path.join(FOLDER.name, ".", "kept.hlo")), (dump, "--plan", dump),
                  (dump, "-o", new, "--plan", new), (dump, "-o", new, "--plan", dangling),
                  (trace, "--costs-of", program, "-o", program), (trace, "--costs-of", program, "-o", trace),
                  (buffers, "--live-ranges", ranges, "-o", ranges), (buffers, "--live-ranges", ranges, "--plan", buffers)):
        code, out, err = called(*words)
        assert code == 2 and not out and "are one file, which would be" in err, (words, code, err)
    assert not os.path.exists(new) and all(os.stat(path) == was for path, was in before.items())
    assert called(program, "-o", new)[0] == 0 == called(program, "-o", new)[0]  # a result may be replaced


@test
def commands_of_the_document_on_files_of_these_tests_work():
    with open(os.path.join(SOURCE, "docs/reading.md"), encoding="utf-8") as file:
        commands = re.findall(r"^    python (-m tarn\.read .*)$", re.sub(r" \\\n\s+", " ", file.read()), re.M)
    assert len(commands) >= 8
    here = [words for words in commands if "tests/data/read" in words]
    assert len(here) >= 3
    for words in set(commands) - set(here):
        command.parser().parse_args(shlex.split(words)[2:])
    if not COMMAND:
        return
    with tempfile.TemporaryDirectory() as folder:
        os.symlink(os.path.join(SOURCE, "tests"), os.path.join(folder, "tests"))
        os.symlink(COMMAND, os.path.join(folder, "tarn"))
        for words in here:
            done = subprocess.run(["bash", "-c", f"{shlex.quote(sys.executable)} {words}"], cwd=folder, check=False,
                                  capture_output=True, text=True, env={**os.environ, "PATH": folder + ":" + os.environ["PATH"]})
            assert done.returncode == 0, (words, done.stderr)
            assert "tarn compare" not in words or "verdict          better" in done.stdout, done.stdout


if __name__ == "__main__":
    run()
