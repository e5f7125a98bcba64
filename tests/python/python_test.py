"""The Python package against the library: what it says of graphs and plans, sessions with kernels in
Python, errors, copies through pickle. TAP on stdout.

    python_test.py SOURCE     with PYTHONPATH and TARN_LIBRARY set"""
import base64
import contextlib
import ctypes
import gc
import io
import json
import mmap
import os
import pickle
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from unittest import mock

from cases import raises, run

import tarn
from tarn import _native

SOURCE = Path(sys.argv[1])
INCLUDE = str(SOURCE / "include")
ALEXNET = SOURCE / "examples/graphs/alexnet_b1_adam.ddp.json"
OFFLOAD = SOURCE / "examples/graphs/offload.json"
COMMAND = os.environ.get("TARN_COMMAND")  # of this build; "": it has none


def chain(length=6, size=1000, streams=2):
    """A forward chain whose ops alternate between streams; every op adds 1 to what it reads."""
    b = tarn.Builder("chain")
    names = [b.stream(f"s{i}") for i in range(streams)]
    tensors = [b.tensor("x", size, kind="input")]
    for i in range(length):
        kind = "output" if i == length - 1 else "intermediate"
        tensors.append(b.tensor(f"t{i}", size, kind=kind))
        b.op(f"add{i}", names[i % streams], [tensors[-2]], [tensors[-1]], cost=1000,
             workspace=64 if i % 2 else 0)
    return b.finish()


def offloading(layers=5, size=1000):
    """Every layer's result is copied to the host, and fetched again in the opposite order."""
    b = tarn.Builder("offloading")
    device, host = b.space("device"), b.space("host", "pinned", alignment=4096, capacity=1 << 20)
    compute, copy = b.stream("compute"), b.stream("copy")
    last, kept = b.tensor("x", size, "input"), []
    state = b.tensor("state", size, "optimizer_state", space=host)
    for layer in range(layers):
        made, away = b.tensor(f"y{layer}", size), b.tensor(f"h{layer}", size, space=host)
        b.op(f"forward{layer}", compute, [last], [made], workspace=64, cost=1000)
        b.op(f"away{layer}", copy, [made], [away], cost=1000)
        kept, last = kept + [away], made
    for layer in reversed(range(layers)):
        again = b.tensor(f"z{layer}", size)
        made = b.tensor(f"g{layer}", size, "intermediate" if layer else "output")
        b.op(f"back{layer}", copy, [kept[layer]], [again], cost=1000)
        b.op(f"backward{layer}", compute, [again, last], [made], workspace=128, cost=1000,
             workspace_space=host if layer == 1 else device)
        last = made
    b.op("update", copy, [last, state], [b.alias(state)], cost=1000)
    return b.finish(), state, last


def training(layers=8, seed=1):
    """Forward, backward, and a backward op that needs its forward result."""
    source = random.Random(seed)
    b = tarn.Builder("training")
    stream = b.stream("compute")
    x = b.tensor("x", 512, kind="input")
    forward = [x]
    for i in range(layers):
        forward.append(b.tensor(f"f{i}", 512 * source.randint(1, 8)))
        b.op(f"fw{i}", stream, [forward[-2]], [forward[-1]], kind="relu", cost=1000)
    gradient = b.tensor("g", 512, kind="gradient")
    b.op("loss", stream, [forward[-1]], [gradient], kind="loss_backward", cost=1000)
    for i in reversed(range(layers)):
        new = b.tensor(f"g{i}", 512 * source.randint(1, 8), kind="output" if i == 0 else "gradient")
        b.op(f"bw{i}", stream, [gradient, forward[i]], [new], kind="relu_backward", cost=1000)
        gradient = new
    return b.finish()


# ---- Tests ----

def every_struct_has_the_layout_of_the_headers():
    lines = ["#include <stddef.h>", "#include <tarn.h>"]
    for name, structure in vars(_native).items():
        if not isinstance(structure, type) or not issubclass(structure, ctypes.Structure):
            continue
        native = "struct tarn" + re.sub("([A-Z])", r"_\1", name).lower()
        tells_its_size = hasattr(structure, "struct_size") or name == "PlanSpaceSummary"
        relation = ">=" if tells_its_size else "=="
        lines.append(f'_Static_assert(sizeof({native}) {relation} {ctypes.sizeof(structure)}, "");')
        lines += [f'_Static_assert(offsetof({native}, {field}) == '
                  f'{getattr(structure, field).offset}, "");' for field, _ in structure._fields_]
    assert len(lines) > 100
    compiler = os.environ.get("CC", "cc").split()
    subprocess.run(compiler + ["-fsyntax-only", "-I", INCLUDE, "-x", "c", "-"], check=True,
                   input="\n".join(lines), text=True)


def a_graph_that_was_built_is_told_back():
    graph = chain(4)
    assert graph.name == "chain" and graph.streams == ["s0", "s1"]
    assert [op.name for op in graph.ops] == ["add0", "add1", "add2", "add3"]
    assert graph.ops[-1].inputs == (3,) and graph.ops[1].workspace == 64
    assert graph.tensors[0].is_persistent and graph.tensors[4].kind == "output"
    assert len(graph.ops[1:3]) == 2 and raises(IndexError, lambda: graph.ops[4])
    assert graph.summary()["ops"] == 4 and graph.bound() >= 1000
    assert isinstance(tarn.Graph.build("chain"), tarn.Builder)


def a_budget_chooses_an_implementation_that_was_built_in():
    b = tarn.Builder()
    stream = b.stream()
    x, y = b.tensor("x", 512, kind="input"), b.tensor("y", 512, kind="output")
    lean = tarn.Implementation("lean", cost=200, workspace=512, inputs=(x,), workspace_first=True)
    b.op("f", stream, [x], [y], cost=100, workspace=4096, implementations=[lean])
    graph = b.finish()
    assert graph.ops[0].implementations == (lean,)
    plan = tarn.plan(graph, budget=1024)
    assert plan.footprint <= 1024 and plan.implementation(0) == 0
    assert tarn.plan(graph).implementation(0) is None


def writers_wait_for_readers_of_other_streams():
    b = tarn.Builder()
    compute, update = b.stream(), b.stream()
    weight, y = b.tensor("w", 64, kind="parameter"), b.tensor("y", 64, kind="output")
    reader = b.op("read", compute, [weight], [y])
    writer = b.op("write", update, [weight], [b.alias(weight)])
    b.after_readers(writer)
    assert tarn.plan(b.finish()).waits() == [(writer, reader)]


def files_and_pickles_keep_graphs_and_plans():
    graph = tarn.Graph.load(ALEXNET)
    with tempfile.TemporaryDirectory() as folder:
        graph.save(Path(folder, "g.json"))
        again = tarn.Graph.load(Path(folder, "g.json"))
        assert again == graph and hash(again) == hash(graph) and len(graph.hash) == 32
        plan = tarn.plan(again)
        plan.save(Path(folder, "p.json.gz"))
        loaded = tarn.Plan.load(Path(folder, "p.json.gz"), graph)
    assert loaded.identity == plan.identity and plan.compare(loaded) == {}
    assert tarn.Graph.from_bytes(graph.to_bytes("g.json.gz"), "g.json.gz") == graph
    text = plan.to_bytes()
    assert tarn.Plan.from_bytes(text, graph).identity == plan.identity
    error = raises(tarn.BadInput, tarn.Plan.from_bytes, text[:-9], graph, name="a letter.json")
    assert "a letter.json" in str(error) and error.line > 0
    copy = pickle.loads(pickle.dumps(plan))
    assert copy.identity == plan.identity and copy.source == graph


def a_plan_tells_all_that_a_runtime_needs():
    graph = tarn.Graph.load(ALEXNET)
    plan = tarn.plan(str(ALEXNET))
    assert plan.footprint >= plan.bound > 0 and plan.optimal == (plan.footprint == plan.bound)
    launched = sorted(op for s in range(len(graph.streams)) for op in plan.launches(s))
    assert launched == [op.id for op in graph.ops if not op.view]
    for op, on in plan.waits() + plan.boundary_waits():
        assert graph.ops[op].stream != graph.ops[on].stream
    ends = [offset + graph.tensors[t].size for t, offset in plan.offsets()]
    ends += [plan.workspace(op.id) + op.workspace for op in graph.ops if op.workspace]
    assert max(ends) <= plan.footprint < max(ends) + plan.alignment
    for index, group in enumerate(graph.groups):
        offset, size = plan.group(index)
        assert plan.offset(group[0]) == offset
        assert sum(graph.tensors[t].size for t in group) == size
    assert plan.origin(3) == 3 and raises(IndexError, plan.origin, 10**6)
    assert raises(IndexError, plan.group, 10**6) and raises(IndexError, plan.offset, 10**6)
    assert plan.method and plan.milliseconds["place"] >= 0 and "footprint" in repr(plan)
    plan.verify()


def notebooks_show_what_the_command_draws():
    graph = chain(4)
    overlapping = tarn.plan(graph).to_bytes().replace(b"[2,1024,1000]", b"[2,0,1000]")
    refused = tarn.Plan.from_bytes(overlapping, graph, verify=False)
    for plan in (tarn.plan(graph), tarn.plan(OFFLOAD), refused, tarn.plan(chain(20000))):
        with tempfile.TemporaryDirectory() as folder:
            files = [Path(folder, "graph.json"), Path(folder, "plan.json")]
            plan.source.save(files[0])
            plan.save(files[1])
            drawn = subprocess.run([COMMAND, "show", *files, "--of", "svg"], check=plan is not refused,
                                   capture_output=True, text=True).stdout
        shown = plan._repr_svg_()
        assert shown == drawn and shown.endswith("</svg>\n") and len(shown) < 300000
        assert base64.b64encode(drawn.encode()).decode() in plan._repr_html_()
        assert ("REFUSED" in shown) == (plan is refused)


def without_the_command_notebooks_show_text():
    plan = tarn.plan(chain(4))
    for other in ("/no/such/command", "true", "false"):
        with mock.patch.dict(os.environ, TARN_COMMAND=other):
            assert plan._repr_svg_() is None
            assert re.fullmatch("<p>&lt;tarn.Plan of .*&gt;</p>", plan._repr_html_())


def a_plan_knows_what_it_was_asked_for():
    graph = chain()
    plan = tarn.plan(graph, reorder=True, in_place=["relu"], effort=10)
    assert plan.asked == {"alignment": 512, "effort": 10, "reorder": {}, "in_place": {"kinds": ["relu"]}}
    again = tarn.Plan.from_bytes(plan.to_bytes(), graph)
    assert again.asked == plan.asked and again.answers(reorder=True, in_place=["relu"], effort=10, threads=3)
    assert not again.answers() and not again.answers(reorder=True, in_place=["relu"], effort=10, capacity=1)
    raises(tarn.UsageError, plan.answers, alignment=3)
    raises(TypeError, plan.answers, capacities=1)
    told = json.loads(plan.to_bytes())
    del told["asked"]
    silent = tarn.Plan.from_bytes(json.dumps(told).encode(), graph)
    assert silent.asked is None and not silent.answers(reorder=True, in_place=["relu"], effort=10)


def memory_spaces_are_built_planned_and_told_apart():
    graph, state, _ = offloading()
    assert graph == tarn.Graph.from_bytes(graph.to_bytes())
    assert list(graph.spaces) == [(0, "device", "device", 0, 0), (1, "host", "pinned", 4096, 1 << 20)]
    assert {t.space for t in graph.tensors if t.name.startswith("h")} == {graph.tensors[state].space} == {1}
    assert [op.name for op in graph.ops if op.workspace_space] == ["backward1"]
    assert [(s.name, s.kind) for s in chain().spaces] == [("", "device")]
    plan = tarn.plan(graph)
    assert [(s.name, s.persistent) for s in plan.spaces] == [("device", 1024), ("host", 4096)]
    for name in ("footprint", "persistent", "bound"):
        assert sum(getattr(s, name) for s in plan.spaces) == getattr(plan, name)
    assert all(s.footprint >= s.bound > 0 and s.method for s in plan.spaces)
    for space in plan.spaces:
        assert space.optimal == (space.footprint == space.bound)
    assert sorted([*plan.offsets(0), *plan.offsets(1)]) == list(plan.offsets())
    for space, alignment in ((0, 512), (1, 4096)):
        ends = [offset + graph.tensors[t].size for t, offset in plan.offsets(space)]
        ends += [plan.workspace(op.id) + op.workspace for op in graph.ops
                 if op.workspace and op.workspace_space == space]
        assert max(ends) <= plan.spaces[space].footprint < max(ends) + alignment
    wider = tarn.plan(graph, alignment=2048)
    assert plan.compare(wider)["spaces"] == (plan.spaces, wider.spaces)
    assert plan.compare(pickle.loads(pickle.dumps(plan))) == {}
    assert "spaces" not in tarn.plan(chain()).compare(tarn.plan(chain(7)))
    b = tarn.Builder()
    assert "pinned" in str(raises(tarn.UsageError, b.space, "host", "pined"))
    b.space("small", capacity=100)
    b.op("make", b.stream(), [], [b.tensor("large", 101)])
    assert "small" in str(raises(tarn.DoesNotFit, tarn.plan, b.finish()))


def transforms_make_smaller_plans_and_keep_origins():
    graph = training()
    before = tarn.plan(graph)
    budget = before.footprint * 9 // 10
    after = tarn.plan(graph, budget=budget)
    assert after.footprint <= budget and len(after.graph.ops) > len(graph.ops)
    again = [op.id for op in after.graph.ops if after.is_recomputed(op.id)]
    assert again and all(graph.ops[after.origin(v)].name == after.graph.ops[v].name for v in again)
    different = before.compare(after)
    assert different["footprint"] == (before.footprint, after.footprint) and different["offsets"]
    for share in (0.9, "90%", " 90.0% "):
        shared = tarn.plan(graph, budget=share)
        assert shared.footprint == after.footprint and len(shared.graph.ops) == len(after.graph.ops)
    assert tarn.plan(graph, budget={"share": 0.9}).footprint == after.footprint
    assert tarn.plan(graph, budget=float(budget)).footprint == after.footprint
    for wrong in ("70", "0%", "101%", "x%", "70%!", 0.0, -0.5, 1.5, float("nan"), {"share": 2.0}):
        raises(ValueError, tarn.plan, graph, budget=wrong)
    error = raises(tarn.DoesNotFit, tarn.plan, graph, budget=1)
    assert "least" in str(error)
    assert tarn.plan(graph, reorder={"effort": 5}, couple=0.5, in_place=["relu"]).footprint > 0
    assert "no option 'efort'" in str(raises(ValueError, tarn.plan, graph, reorder={"efort": 5}))
    assert len(tarn.plan(graph, assign=2).graph.streams) >= 2


def errors_carry_the_librarys_text_and_place():
    error = raises(tarn.BadInput, tarn.Graph.load, __file__)
    assert error.line > 0 and Path(__file__).name in str(error)
    assert isinstance(raises(tarn.OutOfResources, tarn.Graph.load, "/no/such"), OSError)
    b = tarn.Builder()
    raises(tarn.UsageError, b.tensor, "x", 1, kind="weight")
    b.stream("s")
    b.op("f", 7)
    assert raises(tarn.BadInput, b.finish).op == 0
    graph = chain()
    raises(tarn.DoesNotFit, tarn.plan, graph, capacity=1)
    raises(tarn.UsageError, tarn.plan, graph, method="none of these")
    raises(tarn.UsageError, tarn.plan, graph, boundary="none of these")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "p.json")
        tarn.plan(graph).save(path)
        raises(tarn.Rejected, tarn.Plan.load, path, chain(7))


def kernels_in_python_compute_in_the_arena():
    size = 1000

    def add_one(call):
        assert call.workspace is None or len(call.workspace) == 64
        call.outputs[0][:] = bytes((byte + 1) % 256 for byte in call.inputs[0])

    plan = tarn.plan(chain(6, size))
    with tarn.Session(plan, add_one) as session:
        session.write(0, bytes(range(250)) * 4)
        session.run(3)
        expected = bytes((byte + 6) % 256 for byte in bytes(range(250)) * 4)
        assert session.read(6) == expected and bytes(session.view(6)) == expected
        session.view(0)[:] = bytes(size)
        session.run()
        assert session.read(6) == bytes([6]) * size
    raises(tarn.UsageError, session.run)


def workers_are_bound_as_asked():
    plan, own = tarn.plan(chain(3)), os.sched_getaffinity(0)
    assert 1 <= tarn.host_cores() <= len(own)
    for bind in ("auto", "none", "node", "cache", "core"):
        seen = []
        with tarn.Session(plan, lambda _, seen=seen: seen.append(os.sched_getaffinity(0)), workers=1,
                          bind=bind) as session:
            session.run(2)
        assert seen and all(mask == own if bind == "none" else mask <= own for mask in seen)
        with tarn.Arena([plan], bind=bind) as arena, tarn.Session(plan, arena=arena):
            pass
    with tarn.Arena([plan]) as arena:
        raises(tarn.UsageError, tarn.Session, plan, arena=arena, bind="core")


def a_session_computes_in_several_memory_spaces():
    size = 1000
    graph, state, last = offloading(5, size)

    def kernel(call):
        """Copies carry bytes; what computes adds all its inputs, and 1, and spoils its workspace."""
        if call.workspace is not None:
            call.workspace[:] = bytes([255]) * len(call.workspace)
        one = 0 if graph.ops[call.origin].name[:4] in ("away", "back0") else 1
        rows = [bytes(row) for row in call.inputs]
        call.outputs[0][:] = bytes((sum(row) + one) % 256 for row in zip(*rows))

    def expected(data, iterations):
        """The same in the order of the list, without a plan."""
        values, before = {0: data, state: bytes(size)}, bytes(size)
        for _ in range(iterations):
            values[state] = before
            for op in graph.ops:
                one = 0 if op.name[:4] in ("away", "back0") else 1
                made = bytes((sum(row) + one) % 256 for row in zip(*(values[t] for t in op.inputs)))
                values[op.outputs[0]] = made
            before = made
        return values[last], before

    data = bytes(random.Random(1).randrange(256) for _ in range(size))
    for plan in (tarn.plan(graph), tarn.plan(graph, reorder=True)):
        with tarn.Session(plan, kernel) as session:
            session.write(0, data)
            session.run(3)
            assert (session.read(last), session.read(state)) == expected(data, 3)
        with tarn.Session(plan) as session:
            assert session.check(2)["bytes_read"] > 2 * 20 * size

    plan, page = tarn.plan(graph), 4096
    own = [memoryview(mmap.mmap(-1, s.footprint)) for s in plan.spaces]
    kept = mmap.mmap(-1, 2 * page)
    memory = [(ctypes.addressof(ctypes.c_char.from_buffer(m)), len(m)) for m in own]
    with tarn.Session(plan, kernel, memory=memory) as session:
        for index, tensor in enumerate((0, state)):
            session.bind_memory(tensor, ctypes.addressof(ctypes.c_char.from_buffer(kept, index * page)))
        session.write(0, data)
        session.run()
        assert (session.read(last), session.read(state)) == expected(data, 1)
        offset = plan.offset(last)
        assert own[0][offset:offset + size] == session.read(last) and any(own[1])


def what_a_kernel_raises_ends_the_session_and_is_raised():
    def fail(call):
        if call.iteration == 2:
            raise ZeroDivisionError("in the kernel")

    session = tarn.Session(tarn.plan(chain()), fail)
    session.run(2)
    assert "in the kernel" in str(raises(ZeroDivisionError, session.run))
    raises(tarn.UsageError, session.run)
    with tempfile.TemporaryDirectory() as folder:
        session.save_dump(Path(folder, "dump.txt"), why="a kernel failed")
        assert "a kernel failed" in Path(folder, "dump.txt").read_text().splitlines()[0]
    session.close()


def one_ops_kernel_serves_its_recomputations():
    graph = training()
    plan = tarn.plan(graph, budget=tarn.plan(graph).footprint * 9 // 10)
    calls = []
    with tarn.Session(plan, lambda call: None) as session:
        for op in graph.ops:
            session.bind(op.id, lambda call, own=op.id: calls.append((own, call)))
        raises(tarn.UsageError, session.bind, 10**6, lambda call: None)
        session.run()
    assert all(own == call.origin for own, call in calls)
    assert any(call.recomputed for _, call in calls)
    assert len(calls) == len(plan.graph.ops)


def a_session_that_remembers_saves_a_trace():
    with tempfile.TemporaryDirectory() as folder, tarn.Session(tarn.plan(chain()), lambda call: None, flight=64) as session:
        session.run(2)
        session.save_trace(Path(folder, "trace.json"))
        assert "add3" in json.dumps(json.loads(Path(folder, "trace.json").read_text()))


def checked_execution_reads_every_byte():
    with tarn.Session(tarn.plan(chain(50, 100))) as session:
        report = session.check(2, seed=3)
        assert report["ops_run"] == 100 and report["bytes_read"] >= 10000


def a_group_is_one_buffer_of_a_session():
    b = tarn.Builder()
    stream = b.stream()
    first, second = b.tensor("a", 64, kind="gradient"), b.tensor("b", 32, kind="gradient")
    result = b.tensor("r", 96, kind="output")
    b.op("make", stream, [], [first, second])
    b.op("use", stream, [first, second], [result])
    b.group([first, second])
    graph = b.finish()

    def kernel(call):
        for index, output in enumerate(call.outputs):
            output[:] = bytes([call.op * 2 + index + 1]) * len(output)

    with tarn.Session(tarn.plan(graph), kernel) as session:
        session.run()
        assert len(session.group(0)) == 96 and graph.groups == [[first, second]]
        assert session.read(result) == bytes([3]) * 96


def progress_is_told_and_may_stop_the_search():
    told = []
    graph = tarn.Graph.load(ALEXNET)
    options = {"alignment": 1 << 16, "method": "lowest"}
    tarn.plan(graph, progress=lambda *numbers: told.append(numbers), **options)
    assert told and all(footprint >= bound for footprint, bound, _ in told if footprint)
    heartbeats = []  # also where nothing is searched for
    assert tarn.plan(chain(), progress=lambda *numbers: heartbeats.append(numbers)).stopped is None
    assert heartbeats

    def fail(*_numbers):
        raise KeyError("in progress")

    raises(KeyError, tarn.plan, graph, progress=fail, **options)
    stopped = tarn.plan(graph, progress=lambda *_numbers: False, **options)
    assert stopped.footprint > 0 and stopped.stopped == "request"


def an_interrupt_ends_a_long_search():
    graph = tarn.Graph.load(ALEXNET)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    raises(KeyboardInterrupt, lambda: [tarn.plan(graph, alignment=1 << 16, seconds=1000)
                                       for _ in range(10**6)])
    timer.join()


class Pickling(Executor):
    """Functions, jobs and results travel as pickles, as with mpi4py.futures and Dask."""

    def submit(self, fn, /, *args, **kwargs):
        future = Future()
        function, given, named = pickle.loads(pickle.dumps((fn, args, kwargs)))
        future.set_result(pickle.loads(pickle.dumps(function(*given, **named))))
        return future


def many_plans_are_made_on_any_executor():
    graph = training()
    most = tarn.plan(graph).footprint
    jobs = [(graph, {"budget": most * percent // 100}) for percent in (100, 95, 90)]
    alone = [plan.footprint for plan in tarn.plan_many(jobs)]
    with ProcessPoolExecutor(2) as processes:
        apart = list(tarn.plan_many(jobs, processes))
    assert [plan.footprint for plan in apart] == alone
    assert all(plan.footprint <= job[1]["budget"] for plan, job in zip(apart, jobs))
    for executor in (ThreadPoolExecutor(2), Pickling()):
        with executor:
            assert [plan.footprint for plan in tarn.plan_many(jobs, executor)] == alone
    assert [p.identity for p in tarn.plan_many([ALEXNET, graph])] == \
        [tarn.plan(ALEXNET).identity, tarn.plan(graph).identity]


def many_plans_end_with_the_first_error_and_with_an_interrupt():
    graph = chain()
    jobs = [graph, (graph, {"capacity": 1}), graph]
    with ProcessPoolExecutor(2) as processes:
        for executor in (None, processes):
            error = raises(tarn.DoesNotFit, lambda: list(tarn.plan_many(jobs, executor)))
            assert error.job == 1 and str(error).startswith("job 1: ")
    signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    begin = time.monotonic()
    long = {"alignment": 1 << 16, "method": "lowest", "effort": 10**9}
    raises(KeyboardInterrupt, lambda: list(tarn.plan_many([(ALEXNET, long)] * 100)))
    assert time.monotonic() - begin < 20
    timer.join()


def the_example_of_many_plans_prints_its_table():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "stages.txt")
        path.write_text(f"{ALEXNET}\n{OFFLOAD}\n", encoding="utf-8")
        table = subprocess.run([sys.executable, SOURCE / "examples/plan_many.py", path], check=True,
                               capture_output=True, text=True).stdout
    rows = [[cell.strip() for cell in line.split("|")[1:4]] for line in table.splitlines()[2:]]
    assert rows == [["stages", "2", "1"], ["stages", "2", "2"]], table


# ---- Moves ----

def what_idles_waits_in_another_memory():
    """The scratchpad of docs/offload.md: without moves it does not fit; and rates that are none."""
    b = tarn.Builder("on a chip")
    chip = b.space("chip", kind="scratch", capacity=512 << 10)
    b.space("dram")
    s = b.stream("engine")
    x, skips = b.tensor("x0", 128 << 10, space=chip), []
    b.op("load", s, [], [x], cost=4000)
    for i in range(1, 6):
        y = b.tensor(f"x{i}", 128 << 10, space=chip)
        b.op(f"down{i}", s, [x], [y], cost=20000)
        skips.append(x)
        x = y
    for i, skip in enumerate(reversed(skips)):
        y = b.tensor(f"y{i}", 128 << 10, space=chip)
        b.op(f"up{i}", s, [x, skip], [y], cost=20000)
        x = y
    graph = b.finish()
    raises(tarn.DoesNotFit, tarn.plan, graph)
    plan = tarn.plan(graph, offload={"out_bytes_per_second": 20 * 10**9, "space": 1, "bytes_min": 1})
    moves = [op for op in plan.graph.ops if op.move]
    assert moves and all(op.kind == "move" and op.op_class == "copy" for op in moves)
    assert plan.spaces[0].footprint <= 512 << 10 and plan.spaces[1].footprint > 0
    assert {plan.graph.streams[op.stream] for op in moves} == {"d2h", "h2d"}

    def kernel(call):
        assert not plan.graph.ops[call.op].move  # sessions run those
        call.outputs[0][:] = bytes([sum(each[0] for each in call.inputs) % 251 + 1]) * len(call.outputs[0])

    with tarn.Session(plan, kernel) as session:
        session.run(3)
    words = {"rate": "20GB/s", "kinds": "activations, states", "space": 1, "bytes_min": 1}
    same = {"out_bytes_per_second": 20 * 10**9, "kinds": 3, "space": 1, "bytes_min": 1}
    assert tarn.plan(graph, offload=words).identity == tarn.plan(graph, offload=same).identity
    assert tarn.plan(graph, offload={**words, "kinds": ["states", "activations"]}).identity == tarn.plan(graph, offload=same).identity
    for wrong in ("fast", "50GB", "1GB/s,2GB/s,3GB/s", "0GB/s", {"rate": "1GB/s", "kinds": "weights"}, {"rate": "1GB/s", "kind": 1}):
        raises(tarn.UsageError, tarn.plan, graph, offload=wrong)


def states_that_move_leave_room_for_recomputing():
    """Around their uses they take bytes of the arena, which moves alone cannot free here."""
    size, layers = 1 << 20, 6
    b = tarn.Builder("training")
    s, x, kept = b.stream("compute"), b.tensor("in", size, "input"), []
    weights = [b.tensor(f"p{i}", size, "parameter") for i in range(layers)]
    states = [b.tensor(f"s{i}", size, "optimizer_state") for i in range(layers)]
    for i in range(layers):
        y = b.tensor(f"y{i}", size)
        b.op(f"forward{i}", s, [x, weights[i]], [y], kind="matmul", cost=100000)
        kept.append(x)
        x = y
    for i in reversed(range(layers)):
        error, gradient = b.tensor(f"e{i}", size), b.tensor(f"g{i}", size, "gradient")
        b.op(f"backward{i}", s, [x, kept[i], weights[i]], [error], kind="matmul", cost=100000)
        b.op(f"weights{i}", s, [x, kept[i]], [gradient], kind="matmul", cost=100000)
        b.op(f"update{i}", s, [gradient, weights[i], states[i]],
             [b.alias(weights[i], f"p{i}'"), b.alias(states[i], f"s{i}'")], kind="adam", cost=50000)
        x = error
    graph = b.finish()
    offload = {"rate": "50GB/s", "kinds": "states"}
    raises(tarn.DoesNotFit, tarn.plan, graph, offload=offload, budget={"budget": 6 * size, "method": 5})
    plan = tarn.plan(graph, offload=offload, budget=6 * size)
    assert plan.spaces[0].footprint <= 6 * size and plan.spaces[1].persistent == layers * size
    assert any(plan.is_recomputed(op.id) for op in plan.graph.ops) and sum(op.move for op in plan.graph.ops) == 2 * layers
    error = raises(tarn.DoesNotFit, tarn.plan, graph, offload=offload, budget=2 * size)
    assert f"the least footprint found is {error.least} bytes" in str(error)
    plan = tarn.plan(graph, offload=offload, budget=error.least)
    assert plan.spaces[0].footprint <= error.least


def updating(draw):
    """A step whose updates come last, each with states: copies out of them run on when all else has ended."""
    layers, mib = draw.randrange(3, 9), 1 << 20
    b = tarn.Builder("updating")
    s, x, kept, gradients = b.stream("compute"), b.tensor("in", mib, "input"), [], []
    weights = [b.tensor(f"p{i}", draw.randrange(1, 4) * mib, "parameter") for i in range(layers)]
    states = [b.tensor(f"s{i}", 2 * draw.randrange(1, 4) * mib, "optimizer_state") for i in range(layers)]
    for i in range(layers):
        y = b.tensor(f"y{i}", draw.randrange(1, 6) * mib)
        b.op(f"forward{i}", s, [x, weights[i]], [y], cost=draw.randrange(50000, 200000))
        kept.append(x)
        x = y
    for i in reversed(range(layers)):
        error, gradient = b.tensor(f"e{i}", draw.randrange(1, 6) * mib), b.tensor(f"g{i}", mib, "gradient")
        b.op(f"backward{i}", s, [x, kept[i], weights[i]], [error, gradient], cost=draw.randrange(100000, 400000))
        gradients.append((i, gradient))
        x = error
    for i, gradient in gradients:
        b.op(f"update{i}", s, [gradient, weights[i], states[i]], [b.alias(weights[i], f"p{i}'"), b.alias(states[i], f"s{i}'")],
             cost=draw.randrange(10000, 50000))
    return b.finish()


def at_work(plan, iterations):
    """(begin, end) by op of some iterations that follow each other, by the plan's waits, each 3 us."""
    ops, inside, across = list(plan.graph.ops), {}, {}
    for op, on in plan.waits():
        inside.setdefault(op, []).append(on)
    for op, on in plan.boundary_waits():
        across.setdefault(op, []).append(on)
    free, told = [0] * len(plan.graph.streams), []
    for _ in range(iterations):
        times = {}
        for op in ops:  # in an order that may be run
            at = max([free[op.stream], *(times[on][1] + 3000 for on in inside.get(op.id, ())),
                      *(told[-1][on][1] + 3000 for on in across.get(op.id, ()) if told)])
            times[op.id], free[op.stream] = (at, at + op.cost), at + op.cost
        told.append(times)
    return told


def needed_period(plan):
    """From an iteration to the next one if each runs as the first one does: what shares bytes does not meet."""
    times, tensors, graph = at_work(plan, 1)[0], list(plan.graph.tensors), plan.graph
    used, longest = {}, 0
    for op in graph.ops:
        for t in (*op.inputs, *op.outputs):
            used.setdefault(tensors[t].root, []).append(op)
    for stream in range(len(graph.streams)):
        mine = [times[op.id] for op in graph.ops if op.stream == stream]
        longest = max(longest, mine[-1][1] - mine[0][0]) if mine else longest
    lives = [(min(times[o.id][0] for o in used[t.id]), max(times[o.id][1] for o in used[t.id]), t) for t in tensors if t.id in used]
    for t in (t for t in tensors if t.is_persistent and t.id in used):
        written = [times[o.id][1] for o in used[t.id] if any(tensors[x].root == t.id for x in o.outputs)]
        longest = max([longest, *(w - min(times[o.id][0] for o in used[t.id]) for w in written)])
    period = longest
    planned = [(begin, end, t.space, plan.offset(t.id), plan.offset(t.id) + t.size) for begin, end, t in lives if not t.is_persistent]
    for _, end, space, low, high in planned:
        for begin, _, other, first, last in planned:
            if space == other and low < last and first < high:
                period = max(period, end - begin + 3000)
    return period, longest


def copies_behind_the_last_op_do_not_stop_the_next_iteration():
    draw, before, after, met = random.Random(7), 0, 0, 0
    for number in range(24):
        graph = updating(draw)
        offload = {"rate": "80GB/s", "kinds": ["states", "activations"][: 1 + number % 2]}
        old = tarn.plan(graph, offload=offload, boundary="simple")
        new = tarn.plan(graph, offload=offload)
        assert new.footprint == old.footprint and new.bound == old.bound
        (was, least), (period, same) = needed_period(old), needed_period(new)
        assert period <= was and least == same, (number, period, was, least)
        ends = [max(end for _, end in times.values()) for times in at_work(new, 9)]
        assert (ends[-1] - ends[0]) / 8 <= period + 1, (number, ends, period)
        before, after, met = before + was - least, after + period - least, met + (was > least >= period)
        with tarn.Session(new, lambda call: None) as session:
            session.check(3, random_order=True)
    assert met > 3 and after < 0.75 * before, (met, before, after)


# ---- Wrong uses ----

def objects_of_the_wrong_kind_are_refused():
    graph = chain()
    plan = tarn.plan(graph)
    assert "tarn.Graph" in str(raises(tarn.UsageError, tarn.Session, graph))
    raises(tarn.UsageError, tarn.Plan.from_bytes, plan.to_bytes(), plan)
    with tempfile.TemporaryDirectory() as folder, tarn.Session(plan) as session:
        plan.save(Path(folder, "p.json"))
        for other in (plan, session):
            raises(tarn.UsageError, tarn.Plan.load, Path(folder, "p.json"), other)
    assert plan == pickle.loads(pickle.dumps(plan)) and plan != graph and plan != tarn.plan(chain(7))
    for way in (bytearray, memoryview):
        assert tarn.Graph.from_bytes(way(graph.to_bytes())) == graph
        assert tarn.Plan.from_bytes(way(plan.to_bytes()), graph) == plan


def numbers_that_do_not_fit_are_refused():
    graph, b = chain(), tarn.Builder()
    stream = b.stream()
    for options in ({"capacity": -1}, {"capacity": 2**64 + 1}, {"budget": -1}, {"threads": 2**32},
                    {"reorder": {"effort": -1}}):
        assert " is not from 0 to " in str(raises(tarn.UsageError, tarn.plan, graph, **options))
    assert "size: " in str(raises(tarn.UsageError, b.tensor, "t", 2**64 + 4))
    for name in ("inputs", "outputs", "control"):
        raises(tarn.UsageError, b.op, "f", stream, **{name: [2**32]})
    raises(tarn.UsageError, b.op, "f", stream, inplace=[(0, 2**32)])
    raises(tarn.UsageError, b.op, "f", stream, implementations=[tarn.Implementation("i", cost=-1)])
    raises(ValueError, b.op, "f", stream, inplace=[(1, 2, 3)])
    raises(ValueError, b.op, "f", stream, inplace=[(1,)])
    raises(tarn.UsageError, b.alias, 2**32)
    assert list(b.finish().ops) == []
    raises(tarn.UsageError, tarn.Session, tarn.plan(graph), workers=-1)
    raises(tarn.UsageError, tarn.Session, tarn.plan(graph), bind="cores")
    with tarn.Session(tarn.plan(graph)) as session:
        raises(tarn.UsageError, session.submit, -1)


def errors_of_arguments_name_them():
    graph = chain()
    for call in (lambda: tarn.Builder(3), lambda: tarn.Builder().tensor(b"t", 4), lambda: tarn.plan(graph, method=7)):
        assert "a name is a str, not " in str(raises(TypeError, call))
    for options in ({"capacity": [1]}, {"alignment": "512"}, {"budget": {"budget": "1"}}, {"seed": 1.5}):
        name = next(iter(options))
        assert f"{name}: " in str(raises(TypeError, tarn.plan, graph, **options)), name
    assert "size: " in str(raises(TypeError, tarn.Builder().tensor, "t", "4"))
    for records, what in ((graph.tensors, "tensor"), (graph.ops, "op"), (graph.spaces, "space")):
        count = len(records)
        for number in (count, 10**6, -count - 1):
            assert str(raises(IndexError, lambda: records[number])) == f"{what} {number} does not exist: there are {count}"
        assert records[-1].id == count - 1 and len(list(records)) == count


def sizes_are_those_of_the_command_line():
    graph = training()
    whole = tarn.plan(graph).footprint
    assert tarn.plan(graph, capacity=str(whole)) == tarn.plan(graph)
    for number, unit in ((whole, "B"), (1, "MB"), (3, "GiB"), (-(-whole // 1024), "KiB")):
        assert tarn.plan(graph, capacity=f"{number}{unit}") == tarn.plan(graph) == tarn.plan(graph, budget=f"{number}{unit}")
    for size, below in (("1KB", 1000), ("1KiB", 1024), ("12B", 12)):
        for name in ("capacity", "budget"):
            text = str(raises(tarn.DoesNotFit, tarn.plan, graph, **{name: size}))
            assert text == str(raises(tarn.DoesNotFit, tarn.plan, graph, **{name: below})) and str(below) in text
    for size in ("", "0", "0B", "1.5GiB", "1gib", "8G", "KiB", "-1", "1 KiB", "1iB", "many"):
        for name in ("capacity", "budget"):
            assert f"{name} is bytes above 0" in str(raises(tarn.UsageError, tarn.plan, graph, **{name: size})), size


def an_op_writes_in_place_where_its_pairs_say_so():
    b = tarn.Builder()
    stream = b.stream()
    x = b.tensor("x", 512, kind="input")
    y, z = b.tensor("y", 512), b.tensor("z", 512, kind="output")
    b.op("f", stream, [x], [y])
    b.op("g", stream, [y], [z], inplace=[(y, z)])
    graph = b.finish()
    assert tarn.plan(graph, in_place=True).footprint < tarn.plan(graph).footprint
    graph = training()
    assert tarn.plan(graph, in_place="relu") == tarn.plan(graph, in_place=["relu"])


def who_loads_a_plan_allows_what_its_graph_does_not():
    b = tarn.Builder()
    stream = b.stream()
    y, z = b.tensor("y", 512), b.tensor("z", 512, kind="output")
    b.op("f", stream, [], [y])
    b.op("g", stream, [y], [z], kind="scale")
    graph = b.finish()
    plan = tarn.plan(graph, in_place=["scale"])
    assert plan.footprint == 512 and plan.in_place_kinds == ("scale",)
    plan.verify()
    assert raises(tarn.Rejected, tarn.Plan.from_bytes, plan.to_bytes(), graph)
    assert tarn.Plan.from_bytes(plan.to_bytes(), graph, in_place="scale") == plan
    assert pickle.loads(pickle.dumps(plan)) == plan
    assert plan._repr_svg_() or not COMMAND
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "plan.json")
        plan.save(path)
        assert raises(tarn.Rejected, tarn.Plan.load, path, graph)
        tarn.Plan.load(path, graph, in_place=["relu", "scale"]).verify()


def what_does_not_exist_is_an_index_error():
    graph = chain()
    plan = tarn.plan(graph)
    for ask in (plan.offset, plan.workspace, plan.launches, plan.origin, plan.tensor_origin, plan.group,
                plan.implementation, plan.is_recomputed, graph.group_is_padded):
        for number in (-1, 10**6, 2**32, 2**32 + 1, 2**64):
            raises(IndexError, ask, number)
    with tarn.Session(plan) as session:
        for ask in (session.view, session.read):
            for number in (-1, 7, 2**32):
                raises(IndexError, ask, number)


def an_empty_path_is_shown():
    for function in (tarn.Graph.load, chain().save):
        error = raises(FileNotFoundError, function, "")
        assert str(error).startswith("'': cannot be ") and error.filename == "", error


def names_and_paths_with_a_nul_byte_are_refused():
    graph = chain()
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "g.json\0.bak"))
        for function in (graph.save, tarn.plan(graph).save, tarn.Graph.load, graph.to_bytes, tarn.Builder):
            assert "NUL" in str(raises(tarn.UsageError, function, path))
        assert os.listdir(folder) == []
    b = tarn.Builder()
    raises(tarn.UsageError, b.stream, "a\0b")
    raises(tarn.UsageError, b.tensor, "a\0b", 4)
    assert tarn.Graph.from_bytes(graph.to_bytes("g.json.gz")) == graph  # with such bytes


def what_is_used_up_is_refused():
    b = tarn.Builder()
    b.finish()
    for use in (b.finish, b.stream, lambda: b.tensor("t", 4), lambda: b.op("f", 0), lambda: b.alias(0),
                lambda: b.space("s"), lambda: b.control(0, 1), lambda: b.group([0])):
        assert "used up" in str(raises(tarn.UsageError, use))
    session = tarn.Session(tarn.plan(chain()), lambda call: None)
    session.close()
    for use in (session.run, lambda: session.view(0), lambda: session.read(0), session.check,
                lambda: session.bind(0, print), lambda: session.wait(1), lambda: session.save_trace("t")):
        raises(tarn.UsageError, use)
    session.close()


def an_interrupt_ends_a_sessions_work():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    plan = tarn.plan(chain())
    for work in (lambda session: session.run(10**6), lambda session: session.check(10**6)):
        begin = threading.Event()
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
        with tarn.Session(plan, lambda call: begin.wait(0.01)) as session:
            timer.start()
            raises(KeyboardInterrupt, work, session)
            raises(tarn.TarnError, session.run)
        timer.join()
    with tarn.Session(plan, lambda call: None) as session:
        for timeout in (1e30, float("inf")):
            session.run(1, timeout)
        raises(tarn.DeadlineExceeded, session.run, 10**6, 0.01)


def a_kernels_exception_is_raised_once_also_at_the_end():
    failed = threading.Event()

    def fail(_call):
        failed.set()
        raise ZeroDivisionError("in the kernel")

    def submit(other=None):
        with tarn.Session(tarn.plan(chain()), fail) as session:
            session.submit(3)
            failed.wait()
            if other:
                raise other

    raises(ZeroDivisionError, submit)
    raises(KeyError, submit, KeyError("mine"))
    session = tarn.Session(tarn.plan(chain()), fail)
    raises(ZeroDivisionError, session.run)
    session.close()


# ---- Memory and its views ----

def copying(size=4096):
    """One op that copies an input to an output; the plan, the ids of both, and a kernel."""
    b = tarn.Builder("copying")
    x, y = b.tensor("x", size, kind="input"), b.tensor("y", size, kind="output")
    b.op("copy", b.stream("s"), [x], [y], workspace=64)

    def kernel(call):
        call.outputs[0][:] = call.inputs[0]

    return tarn.plan(b.finish()), x, y, kernel


def crowd():
    """Memory that would be given where other memory was freed."""
    return [bytearray(b"\xaa" * size) for size in (1 << 12, 1 << 16, 1 << 20) for _ in range(20)]


def views_outlive_their_session():
    size = 1 << 20
    plan, x, y, kernel = copying(size)
    with tarn.Session(plan, kernel) as session:
        session.view(x)[:] = bytes([7]) * size
        session.run()
        views = [session.view(y), session.view(y)[100:200], memoryview(session.view(y)).cast("I")[25:50],
                 session.view(y).toreadonly()]
        copy = ctypes.c_char.from_buffer(session.view(y))  # what numpy.frombuffer does
        numpy = _numpy() and _numpy().frombuffer(session.view(y), dtype="<u4")[1:]
    raises(tarn.UsageError, session.view, y)
    del session
    gc.collect()
    keep = crowd()
    assert all(set(view.tobytes()) == {7} for view in views) and copy.value == b"\7" and keep
    assert numpy is None or set(numpy.tobytes()) == {7}
    views[0][:4] = b"abcd"
    assert bytes(views[0][:5]) == b"abcd\7"
    view = tarn.Session(plan, kernel).view(y)  # of a session that is gone at once
    gc.collect()
    keep = crowd()
    view[:] = bytes([5]) * size
    assert bytes(view[-3:]) == b"\5\5\5" and keep


def _numpy():
    try:
        import numpy  # pylint: disable=import-outside-toplevel
        return numpy
    except ImportError:
        return None


def what_a_kernel_keeps_is_no_danger():
    plan, x, _, _ = copying()
    kept = []

    def kernel(call):
        kept.append((call, call.inputs[0], call.outputs[0], call.workspace))
        assert call.inputs[0].readonly and not call.outputs[0].readonly and not call.workspace.readonly
        raises(TypeError, call.inputs[0].__setitem__, 0, 1)
        call.outputs[0][:] = call.inputs[0]

    with tarn.Session(plan, kernel) as session:
        session.write(x, bytes([9]) * 4096)
        session.run()
    (call, *views), = kept
    del session
    gc.collect()
    keep = crowd()
    assert [set(view.tobytes()) for view in views[:2]] == [{9}, {9}] and len(views[2]) == 64 and keep
    for name in ("inputs", "outputs", "workspace"):
        assert "returned" in str(raises(tarn.UsageError, getattr, call, name))
    assert call.op == call.origin == 0 and call.iteration == 0


def a_group_outlives_its_session():
    b = tarn.Builder()
    pair = [b.tensor(name, 512, kind="output") for name in "ab"]
    b.op("make", b.stream(), [], pair)
    b.group(pair)

    def kernel(call):
        for number, output in enumerate(call.outputs):
            output[:] = bytes([number + 1]) * 512

    with tarn.Session(tarn.plan(b.finish()), kernel) as session:
        session.run()
        group = session.group(0)
    keep = crowd()
    assert bytes(group) == bytes([1]) * 512 + bytes([2]) * 512 and keep
    raises(tarn.UsageError, session.group, 0)


def memory_of_the_callers_is_held_while_it_is_shown():
    plan, x, y, kernel = copying()
    own, inputs = mmap.mmap(-1, plan.footprint), bytearray(8192)
    with tarn.Session(plan, kernel, memory=own) as session:
        session.bind_memory(x, inputs)
        inputs[:4096] = bytes([3]) * 4096
        session.run()
        view, bound = session.view(y), session.view("x")
        raises(BufferError, own.close)
        raises(BufferError, inputs.extend, b"more")
        session.bind_memory(x, bytearray(4096))
        session.run()
        assert set(view) == {0}
    raises(BufferError, own.close)
    raises(BufferError, inputs.extend, b"more")
    assert len(bound) == 4096
    del view, bound, session
    own.close()
    inputs.extend(b"more")
    for wrong in (bytes(4096), "text", bytearray(4095)):
        with tarn.Session(plan, kernel) as session:
            raises(tarn.UsageError, session.bind_memory, x, wrong)
    own = mmap.mmap(-1, plan.footprint)
    with tarn.Session(plan, kernel, memory=own) as session:
        said = raises(tarn.UsageError, tarn.Session, plan, kernel, memory=own)
        assert "in use by another session or arena" in str(said) and "tarn_arena" in str(said)
    with tarn.Session(plan, kernel, memory=own) as session:
        session.bind_memory(x, bytearray(4096))
        session.run()
    raises(tarn.UsageError, tarn.Session, plan, memory=b"not writable")
    raises(tarn.UsageError, tarn.Session, plan, memory=bytearray(1))


def sessions_end_with_the_interpreter():
    """However a program leaves its sessions and views: no signal, no hang."""
    begin = ("import sys, tarn, threading\n"
             "b = tarn.Builder(); x, y = b.tensor('x', 4096, kind='input'), b.tensor('y', 4096, kind='output')\n"
             "b.op('f', b.stream(), [x], [y])\n"
             "plan = tarn.plan(b.finish())\n"
             "kept = []\n"
             "session = tarn.Session(plan, lambda call: kept.append((call.outputs[0], call)))\n"
             "view = session.view(y)\n")
    for rest in ("", "session.run(3)", "session.submit(10**7)", "session.submit(10**7); sys.exit(0)",
                 "session.submit(10**7); view = None; plan = None", "session.run(); session.close(); del session",
                 "sys.modules['__main__'].cycle = [session]; session.cycle = session; del session",
                 "del tarn", "class Late:\n    def __del__(self): view[:4] = b'late'\nlate = Late()",
                 "import gc\nsession.close()\nended, destroy = threading.Event(), tarn.Session._destroy\n"
                 "tarn.Session._destroy = lambda session, *left: (destroy(session, *left), ended.set())\n"
                 "session = tarn.Session(plan, lambda call: gc.collect())\nsession.me = session\nsession.submit(10**5)\n"
                 "del session\nassert ended.wait(50)",
                 "import os\nsession.submit(10**6)\nif not os.fork(): sys.exit(0)\nos.wait()"):
        done = subprocess.run([sys.executable, "-W", "ignore", "-c", begin + rest], check=False, timeout=60, capture_output=True,
                              text=True)
        assert done.returncode == 0 and not done.stderr, (rest, done)


# ---- Names, files, families ----

def a_name_or_a_record_stands_for_an_id():
    graph, state, last = offloading()
    plan, tensor = tarn.plan(graph), graph.tensors["state"]
    assert tensor == graph.tensors[state] and graph.ops["update"].id == len(graph.ops) - 1
    assert plan.offset("z1") == plan.offset(graph.tensors["z1"]) == plan.offset(graph.tensors["z1"].id)
    assert plan.workspace("backward1") == plan.workspace(graph.ops["backward1"]) is not None
    assert plan.launches("copy") == plan.launches(1)
    assert list(plan.offsets("host")) == list(plan.offsets(graph.spaces["host"])) == list(plan.offsets(1))
    assert plan.origin("away1") == plan.origin(graph.ops["away1"].id)
    with tarn.Session(plan, lambda call: None, blocking=["copy"]) as session:
        session.write("x", b"abc")
        assert session.read(graph.tensors["x"])[:4] == b"abc\0" and bytes(session.view("x")[:3]) == b"abc"
        seen = []
        session.bind("update", lambda call: seen.append(call.op))
        session.bind(graph.ops["away0"], lambda call: seen.append(call.op))
        session.run()
        assert sorted(seen) == sorted([graph.ops["update"].id, graph.ops["away0"].id])
        assert len(session.read(last)) == 1000
    for ask in (plan.offset, plan.workspace, plan.launches, graph.tensors.__getitem__, graph.ops.__getitem__):
        raises(KeyError, ask, "nobody")
    assert "another graph" in str(raises(tarn.UsageError, plan.offset, chain().tensors[1]))
    for ask, wrong in ((plan.offset, graph.ops[0]), (plan.origin, graph.tensors[0]), (plan.offset, (1, 2))):
        assert " is no " in str(raises(tarn.UsageError, ask, wrong))
    b = tarn.Builder()
    b.stream("s")
    b.tensor("x", 512, kind="input")
    b.tensor("y", 512, kind="output")
    b.op("f", "s", ["x"], ["y"])
    b.tensor("twice", 1, "input")
    b.tensor("twice", 1, "input")
    assert "give an id" in str(raises(tarn.UsageError, b.alias, "twice"))
    raises(KeyError, b.op, "g", "other")
    raises(KeyError, b.op, "g", "s", ["z"])
    built = b.finish()
    assert built.ops[0].inputs == (0,) and built.ops[0].outputs == (1,)
    assert "give an id" in str(raises(tarn.UsageError, built.tensors.__getitem__, "twice"))


def errors_of_files_are_those_of_python():
    plan = tarn.plan(chain())
    with tempfile.TemporaryDirectory() as folder:
        missing, closed = Path(folder, "missing.json"), Path(folder, "closed.json")
        file = Path(folder, "file.json")
        plan.source.save(file)
        for ask in (tarn.Graph.load, tarn.plan, lambda path: tarn.Plan.load(path, plan.source)):
            error = raises(FileNotFoundError, ask, missing)
            assert isinstance(error, tarn.OutOfResources) and error.filename == str(missing), error.filename
            assert error.errno == 2 and str(missing) in str(error) and "Errno" not in str(error)
            raises(IsADirectoryError, ask, folder)
            raises(NotADirectoryError, ask, file / "under.json")
        raises(FileNotFoundError, plan.save, Path(folder, "no", "plan.json"))
        copy = pickle.loads(pickle.dumps(error))
        assert type(copy) is type(error) and vars(copy) == vars(error)
        assert (str(copy), copy.errno, copy.filename) == (str(error), 2, str(missing))
        plan.source.save(closed)
        closed.chmod(0)
        if os.getuid():
            raises(PermissionError, tarn.Graph.load, closed)
        error = raises(tarn.AccessDenied, _native.check, 8, _native.Error(device_code=13), "p")
        assert isinstance(error, PermissionError) and error.filename == "p"
        with tarn.Session(plan, lambda call: None, flight=8) as session:
            session.run()
            for save in (session.save_dump, session.save_trace):
                raises(FileNotFoundError, save, Path(folder, "no", "file"))


def a_family_shares_one_arena():
    def model(batch):
        b = tarn.Builder(f"batch {batch}")
        s = b.stream("s")
        w, x = b.tensor("w", 1024, kind="parameter"), b.tensor("x", 512 * batch, kind="input")
        h, y = b.tensor("h", 512 * batch), b.tensor("y", 512 * batch, kind="output")
        b.op("hidden", s, [x, w], [h])
        b.op("out", s, [h], [y])
        b.op("train", s, [h, w], [b.alias(w, "w1")])
        return b.finish()

    def kernel(call):
        if len(call.inputs) == 2 and len(call.outputs[0]) == 1024:
            call.outputs[0][:] = bytes(byte + 1 for byte in call.inputs[1])
        else:
            call.outputs[0][:] = bytes(byte + 1 for byte in call.inputs[0])

    plans = tarn.plan_family([model(8), model(3)], alignment=512)
    assert plans[0].footprint > plans[1].footprint and plans[0].offset("w") == plans[1].offset("w")
    for memory in (None, "own"):
        given = memory and mmap.mmap(-1, 1 << 16)
        arena = tarn.Arena(plans, memory=given)
        with tarn.Session(plans[0], kernel, arena=arena) as large, tarn.Session(plans[1], kernel, arena=arena) as small:
            raises(tarn.UsageError, arena.close)
            large.run(2)
            small.run(3)
            assert set(large.read("w")) == set(small.read("w")) == {5}
            assert set(small.read("y")) == {2}
            views = [small.view("y"), large.view("w")]
            raises(tarn.UsageError, tarn.Session, plans[0], kernel, arena=arena, memory=(1, 2))
        arena.close()
        raises(tarn.UsageError, tarn.Session, plans[0], kernel, arena=arena)
        del arena, large, small
        gc.collect()
        keep = crowd()
        assert set(views[0]) == {2} and set(views[1]) == {5} and keep
        del views
        if given:
            given.close()
    raises(tarn.UsageError, tarn.plan_family, [])
    raises(TypeError, tarn.plan_family, [model(8)], alignmen=1)
    raises(tarn.DoesNotFit, tarn.plan_family, [model(8), model(3)], capacity=1)
    raises(tarn.UsageError, tarn.Arena, [])
    arena, cycle = tarn.Arena(plans), []
    cycle += [tarn.Session(plans[0], kernel, arena=arena), cycle, arena]
    del arena, cycle
    gc.collect()


def symmetric_groups_of_a_family_lie_at_one_offset():
    def stage(name, others):
        b = tarn.Builder(name)
        s = b.stream("s")
        x, y = b.tensor("x", others), b.tensor(name, 1024)
        b.op("compute", s, [], [x])
        b.op("use", s, [x], [])
        b.op("receive", s, [], [y], kind="recv")
        b.op("end", s, [y], [b.tensor("z", 64, kind="output")])
        b.group([x])
        b.group([y], symmetric="activation")
        return b.finish()

    graphs = [stage("first", 512), stage("second", 8192)]
    assert [graph.group_symmetric(g) for graph in graphs for g in (0, 1)] == [None, "activation"] * 2
    assert tarn.Graph.from_bytes(graphs[0].to_bytes()) == graphs[0]
    plans = tarn.plan_family(graphs)
    tarn.verify_family(plans)
    window = plans[0].window
    assert window == plans[1].window and plans[0].group(1)[0] == plans[1].group(1)[0]
    assert window.space == 0 and window.offset <= plans[0].group(1)[0] and window.size >= 1024
    assert tarn.Plan.from_bytes(plans[1].to_bytes(), graphs[1]).window == window
    apart = [tarn.plan(graphs[0]), tarn.plan(graphs[1], keep={1: 4096})]
    raises(tarn.Rejected, tarn.verify_family, apart)
    raises(tarn.UsageError, tarn.verify_family, [])
    assert tarn.plan(chain()).window is None
    b = tarn.Builder("alone")
    x = b.tensor("x", 64)
    b.op("compute", b.stream("s"), [], [x])
    b.group([x], symmetric="x")
    raises(tarn.BadInput, b.finish)


def explain_and_show_are_the_commands():
    plan = tarn.plan(OFFLOAD)
    one, two = (plan.graph.tensors[t] for t, _ in list(plan.offsets())[:2])
    with tempfile.TemporaryDirectory() as folder:
        files = [Path(folder, "g.json"), Path(folder, "p.json")]
        plan.source.save(files[0])
        plan.save(files[1])
        def told(*words):
            done = subprocess.run([COMMAND, "explain", *files, *words], check=True, capture_output=True, text=True)
            return done.stdout.replace(str(folder), "")

        assert plan.explain(quick=True).splitlines()[1:] == told("--quick").splitlines()[1:]
        assert plan.explain(one, two) == told(f"tensor:{one.id}", f"tensor:{two.id}")
        assert plan.explain(one.name) == plan.explain(one) == told(one.name)
        assert plan.explain(plan.graph.ops[0]) == told("op:0")
        assert plan.explanation(one) == json.loads(told(f"tensor:{one.id}", "--json"))
        for ending in ("html", "svg", "txt", "json"):
            plan.show(Path(folder, "drawn." + ending))
            assert Path(folder, "drawn." + ending).stat().st_size > 100
        plan.show(Path(folder, "page"), of="svg", axis="time")
        assert Path(folder, "page").read_text(encoding="utf-8").startswith("<svg")
        plan.graph.show(Path(folder, "graph.svg"))
        assert Path(folder, "graph.svg").read_text(encoding="utf-8").startswith("<svg")
        raises(tarn.UsageError, plan.show, Path(folder, "p.svg"), axis="none of these")
        raises(tarn.OutOfResources, plan.show, Path(folder, "no", "p.svg"))
    assert "nobody" in str(raises(tarn.UsageError, plan.explain, "nobody"))
    raises(tarn.UsageError, plan.explain, chain().tensors[1])
    with mock.patch.dict(os.environ, TARN_COMMAND="/no/such/command"):
        raises(FileNotFoundError, plan.explain)


IDS = """
import tarn
b = tarn.Builder()
stream, x = b.stream(), b.tensor("x", 4)
op = b.op("f", stream, [x])
plan = tarn.plan(b.finish())
fine = [plan.offset(x), plan.offset("x"), plan.offset(plan.graph.tensors[0]), plan.workspace(op), plan.launches(stream)]
html: str = plan._repr_html_()
step: object = tarn.torch.step
plan.offset(op)                         # error
plan.workspace(x)                       # error
plan.launches(op)                       # error
b.op("g", x)                            # error
b.op("g", stream, [op])                 # error
tarn.Session(plan).read(stream)         # error
tarn.Session(plan).bind(x, print)       # error
"""


def type_checkers_find_ids_that_are_mixed_up():
    own = {**os.environ, "PYTHONPATH": "", "MYPYPATH": str(SOURCE / "python"), "MYPY_CACHE_DIR": os.devnull}

    def checked(*words):
        return subprocess.run([*MYPY, "--strict", "--config-file", SOURCE / "pyproject.toml", *words], check=False,
                              capture_output=True, text=True, cwd=SOURCE, env=own).stdout

    assert checked(SOURCE / "python/tarn").startswith("Success"), checked(SOURCE / "python/tarn")
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "program.py")
        program.write_text(IDS.replace("import tarn\n", "import tarn, tarn.torch\n"), encoding="utf-8")
        found = checked(program)
    lines = {number for number, line in enumerate(IDS.splitlines(), 1) if line.endswith("# error")}
    assert {int(line.split(".py:")[1].split(":")[0]) for line in found.splitlines() if ": error:" in line} == lines, found


def _mypy():
    """How mypy is called here; nothing: it is not here."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")
    torch = os.environ.get("TARN_TORCH") or os.path.join(cache, "tarn/torch")  # tests/setup.sh torch
    for words in ([sys.executable, "-m", "mypy"], [os.path.join(torch, "bin/mypy")], ["mypy"]):
        with contextlib.suppress(OSError):
            if not subprocess.run([*words, "--version"], check=False, capture_output=True).returncode:
                return words
    return []


MYPY = _mypy()


def what_the_readme_shows_works():
    section = (SOURCE / "README.md").read_text().split("## Python\n")[1].split("\n##")[0]
    code = [line[4:] for line in section.splitlines() if line.startswith("    ") or not line]
    before, told = os.getcwd(), io.StringIO()
    os.chdir(SOURCE)
    try:
        with contextlib.redirect_stdout(told):
            exec("\n".join(code), {})  # pylint: disable=exec-used
    finally:
        os.chdir(before)
    assert told.getvalue().endswith("b'\\x02\\x04\\x06\\x08'\n"), told.getvalue()[-100:]


# ---- Words of graphs ----

def slices_of_one_storage_are_written_side_by_side():
    b = tarn.Builder("slices")
    first, second = b.stream("first"), b.stream("second")
    whole, out = b.tensor("whole", 8), b.tensor("out", 8, kind="output")
    begun = b.op("begin", first, [], [whole])
    left, right = b.slice(whole, 0, 4, "left"), b.slice(whole, 4, 4, "right")
    part = b.slice(right, 2, 2, "part")  # counted from its own begin
    written = b.op("left", first, [], [left])
    other = b.op("right", second, [], [right], control=[begun])
    last = b.op("part", second, [], [part])
    b.op("read", first, [whole, left, right, part], [out], control=[written, other, last])
    graph = b.finish()
    assert [(graph.tensors[t].root, graph.tensors[t].size) for t in (left, right, part)] == [
        (whole, 4), (whole, 4), (whole, 2)]
    plan = tarn.plan(graph, alignment=1)
    assert [plan.offset(t) - plan.offset(whole) for t in (whole, left, right, part)] == [0, 0, 4, 6]

    def kernel(call):
        if graph.ops[call.op].name == "read":
            call.outputs[0][:] = call.inputs[0]
        else:
            call.outputs[0][:] = bytes([call.op + 1]) * len(call.outputs[0])

    with tarn.Session(plan, kernel) as session:
        session.run()
        assert session.read(out) == bytes([2] * 4 + [3] * 2 + [4] * 2)
    for begin, size in ((0, 9), (8, 1)):
        b = tarn.Builder()
        t = b.tensor("t", 8)
        b.op("make", b.stream(), [], [t])
        b.slice(t, begin, size)
        raises(tarn.BadInput, b.finish)


def _conditional():
    b = tarn.Builder("conditional")
    stream = b.stream("compute")
    made = [b.tensor(name, 64) for name in ("then", "else")]
    out = b.tensor("out", 64, kind="output")
    arms = [b.op(f"arm {i}", stream, [], [t], branch=[(0, i)]) for i, t in enumerate(made)]
    join = b.op("join", stream, made, [out])
    return b.finish(), made, arms, join, out


def arms_share_bytes_and_a_session_takes_one_of_them():
    graph, made, arms, join, out = _conditional()
    assert graph.ops[arms[1]].branch == ((0, 1),) and graph.ops[join].branch == ()
    plan = tarn.plan(graph, alignment=64)
    assert plan.footprint == 128 and plan.offset(made[0]) == plan.offset(made[1])
    called = []

    def kernel(call):
        called.append(call.op)
        if call.op == join:
            call.outputs[0][:] = call.inputs[taken]
        else:
            call.outputs[0][:] = bytes([10 + call.op]) * 64

    with tarn.Session(plan, kernel) as session:
        for taken in (0, 1):
            session.take(0, taken)
            session.run()
            assert called == [arms[taken], join] and session.read(out) == bytes([10 + arms[taken]]) * 64
            called.clear()
        session.take(0, 2)  # an arm without ops
        taken = 0
        session.run()
        assert called == [join]
        raises(tarn.UsageError, session.take, 1, 0)
    assert tarn.plan(tarn.Graph.from_bytes(graph.to_bytes())).footprint == tarn.plan(graph).footprint
    b = tarn.Builder()
    t = b.tensor("t", 8)
    b.op("make", b.stream(), [], [t], branch=[(0, 0)])
    b.op("read", 0, [t], [], branch=[(0, 1)])
    assert "arm" in str(raises(tarn.BadInput, b.finish))


def _chain_of_sizes(sizes):
    b = tarn.Builder("sizes")
    stream, before = b.stream(), []
    for i, size in enumerate(sizes):
        t = b.tensor(f"t{i}", size)
        b.op(f"op{i}", stream, before, [t])
        before = [t]
    return b.finish()


def a_plan_anew_keeps_the_offsets_that_are_to_be_kept():
    sizes = [4096, 512, 2048, 1024, 4096, 512]
    graph = _chain_of_sizes(sizes)
    old = tarn.plan(graph)
    for keep in (old, {graph.tensors[t].name: at for t, at in old.offsets()}, dict(old.offsets())):
        assert list(tarn.plan(graph, seed=7, keep=keep).offsets()) == list(old.offsets())
    grown = _chain_of_sizes([*sizes[:2], 2560, *sizes[3:]])
    free, kept = tarn.plan(grown), tarn.plan(grown, keep=old)
    same = sum(a == b for a, b in zip(dict(kept.offsets()).items(), dict(old.offsets()).items()))
    assert kept.footprint <= free.footprint and same >= 4
    raises((KeyError, tarn.UsageError), tarn.plan, graph, keep={"nobody": 0})


def offsets_are_fixed_or_preferred():
    for word, at, there in (("fixed_offset", 8192, 8192), ("preferred_offset", 8192, None),
                            ("preferred_offset", 512, 512), ("fixed_offset", 0, 0)):
        b = tarn.Builder()
        x, y = b.tensor("x", 512, **{word: at}), b.tensor("y", 512)
        b.op("make", b.stream(), [], [x, y])
        plan = tarn.plan(b.finish())
        assert there is None or plan.offset(x) == there
        assert plan.footprint == (8704 if there == 8192 else 1024)
    raises(tarn.UsageError, tarn.Builder().tensor, "x", 1, fixed_offset=0, preferred_offset=0)


def members_of_a_group_lie_at_its_offsets():
    b = tarn.Builder("gap")
    stream = b.stream()
    early, other, late = b.tensor("a", 64), b.tensor("b", 64), b.tensor("a again", 64)
    for i, t in enumerate((early, other, late)):
        b.op(f"make {i}", stream, [], [t])
        b.op(f"read {i}", stream, [t], [])
    tail = b.tensor("tail", 16, kind="output")
    b.op("end", stream, [], [tail])
    b.group([late, early, tail], offsets=[0, 0, 64])
    graph = b.finish()
    assert graph.group_offsets(0) == [0, 0, 64] and not graph.group_is_padded(0)
    plan = tarn.plan(graph, alignment=16)
    assert plan.footprint == 80 and plan.group(0) == (0, 80)
    assert [plan.offset(t) for t in (early, other, late, tail)] == [0, 0, 0, 64]
    assert tarn.Graph.from_bytes(graph.to_bytes()).group_offsets(0) == [0, 0, 64]
    with tarn.Session(plan, lambda call: None) as session:
        session.run()
        assert len(session.group(0)) == 80
    b = tarn.Builder()
    pair = [b.tensor(name, 8) for name in "ab"]
    b.op("make", b.stream(), [], pair)
    raises(tarn.UsageError, b.group, pair, padded=True, offsets=[0, 8])
    for wrong in ([0], [0, -1], [0, 1 << 64]):
        raises(tarn.UsageError, b.group, pair, offsets=wrong)
    b.group(pair, offsets=[0, 4])
    assert "over bytes of" in str(raises(tarn.BadInput, b.finish))


def tables_with_gaps_are_planned_and_answered():
    table = b"id,lower,upper,size,gaps\na,0,9,64,3-5\nb,3,5,64,\n"
    graph = tarn.Graph.from_bytes(table, name="table.csv")
    plan = tarn.plan(graph, alignment=1)
    assert plan.footprint == 64 and plan.optimal
    assert plan.to_bytes("answer.csv") == (b"id,lower,upper,size,gaps,offset\na,0,9,64,3-5,0\n"
                                           b"b,3,5,64,,0\n")
    assert graph.to_bytes("table.csv") == table


TESTS = [value for name, value in list(vars().items())
         if getattr(value, "__module__", None) == "__main__" and callable(value)
         and not name.startswith("_")
         and name not in ("chain", "offloading", "training", "copying", "crowd", "Pickling", "updating", "at_work", "needed_period")
         and (COMMAND or name not in ("notebooks_show_what_the_command_draws", "explain_and_show_are_the_commands"))
         and (MYPY or name != "type_checkers_find_ids_that_are_mixed_up")]


if __name__ == "__main__":
    run(TESTS)
