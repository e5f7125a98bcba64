"""What PyTorch asked for, without PyTorch: captured steps (tests/data/torch/*.json.gz), recorded
iterations (*.csv) and memory snapshots are planned, verified, and replayed against byte patterns.
TAP on stdout.

    recording_test.py SOURCE     with PYTHONPATH and TARN_LIBRARY set"""
import pickle
import random
import sys
import tempfile
from pathlib import Path

from cases import raises, run

import tarn
from tarn.torch import recording, snapshot
from tarn.torch.recording import RECORD, RELEASE, REQUEST, USE, WAIT, Event

DATA = Path(sys.argv[1], "tests/data/torch")
NAMES = ("small_gpt", "small_resnet")


def pattern(block, size):
    return (bytes(range(251)) * (size // 251 + 2))[block % 251:][:size]


def replay(events, plan, tensors):
    """Every block is filled when it is requested, and must be as it was when it is released."""
    arena, sizes = bytearray(plan.footprint), {}
    for event in events:
        if event.action == REQUEST:
            sizes[event.block] = event.size
        if event.action in (REQUEST, RELEASE):
            at, size = plan.offset(tensors[event.block]), sizes[event.block]
            if event.action == REQUEST:
                arena[at:at + size] = pattern(event.block, size)
            assert arena[at:at + size] == pattern(event.block, size), event


def peak_of(events):
    live = most = 0
    sizes = {e.block: e.size for e in events if e.action == REQUEST}
    for e in events:
        change = (sizes[e.block] + 63) // 64 * 64
        live += {REQUEST: change, RELEASE: -change}.get(e.action, 0)
        most = max(most, live)
    return most


# ---- Captured steps ----

def captured_steps_are_planned_and_checked():
    for name in NAMES:
        graph = tarn.Graph.load(DATA / f"{name}.json.gz")
        plain = tarn.plan(graph, alignment=64)
        assert plain.optimal and {t.kind for t in graph.tensors} >= {"parameter", "input", "output"}
        smaller = tarn.plan(graph, alignment=64, reorder=True, budget=plain.footprint * 8 // 10)
        for plan in (plain, smaller, tarn.plan(graph, alignment=64, assign=2, couple=True)):
            plan.verify()
            with tarn.Session(plan) as session:
                assert session.check(2)["bytes_read"] > plan.footprint


def random_ops_of_captured_steps_keep_their_order():
    graph = tarn.Graph.load(DATA / "small_gpt.json.gz")
    drops = [op for op in graph.ops if "dropout" in op.kind or "bernoulli" in op.kind]
    assert len(drops) >= 4
    assert all(op.control == (before.id,) for before, op in zip(drops, drops[1:]))
    plan = tarn.plan(graph, alignment=64, reorder=True, budget=graph.bound() * 8 // 10)
    assert not any(plan.is_recomputed(op.id) and op.kind == drops[0].kind for op in plan.graph.ops)


# ---- Recorded iterations ----

def recorded_iterations_keep_every_byte():
    for name in NAMES:
        rows = (DATA / f"{name}.csv").read_text().splitlines()[1:]
        events = [Event(recording.ACTIONS.index(action), *map(int, rest))
                  for action, *rest in (row.split(",") for row in rows)]
        graph, tensors = recording.graph(events, name)
        plan = tarn.plan(graph, alignment=64)
        assert plan.optimal and plan.footprint == peak_of(events)
        replay(events, plan, tensors)


def overlap(plan, tensors, first, second, size=1024):
    a, b = plan.offset(tensors[first]), plan.offset(tensors[second])
    return a < b + size and b < a + size


def streams(*between):
    """Block 0 on stream 1 is released; then comes `between`; then block 1 on stream 2."""
    return [Event(REQUEST, 0, 1024, 1), Event(RELEASE, 0, 0, 1), *between,
            Event(REQUEST, 1, 1024, 2), Event(RELEASE, 1, 0, 2)]


def plan_of(events, **options):
    graph, tensors = recording.graph(events, **options)
    plan = tarn.plan(graph)
    plan.verify()
    return plan, tensors


def streams_without_an_event_share_nothing():
    plan, tensors = plan_of(streams())
    assert plan.footprint == 2048 and not overlap(plan, tensors, 0, 1)
    plan, tensors = plan_of(streams(), one_stream=True)
    assert plan.footprint == 1024 and overlap(plan, tensors, 0, 1)


def an_event_between_streams_lets_them_share():
    plan, tensors = plan_of(streams(Event(RECORD, 7, 0, 1), Event(WAIT, 7, 0, 2)))
    assert plan.footprint == 1024 and overlap(plan, tensors, 0, 1)
    late = [Event(REQUEST, 0, 1024, 1), Event(RECORD, 7, 0, 1), Event(RELEASE, 0, 0, 1),
            Event(WAIT, 7, 0, 2), Event(REQUEST, 1, 1024, 2), Event(RELEASE, 1, 0, 2)]
    assert plan_of(late)[0].footprint == 2048


def a_block_that_another_stream_uses_lives_until_that_one_is_done():
    events = [Event(REQUEST, 0, 1024, 1), Event(USE, 0, 0, 2), Event(RELEASE, 0, 0, 1),
              Event(REQUEST, 1, 1024, 1), Event(RELEASE, 1, 0, 1)]
    assert plan_of(events)[0].footprint == 2048
    alone = [e for e in events if e.action != USE]
    assert plan_of(alone)[0].footprint == 1024


def blocks_that_stay_are_nobody_elses():
    events = [Event(REQUEST, 0, 1024, 0), Event(REQUEST, 1, 1024, 0), Event(RELEASE, 1, 0, 0),
              Event(REQUEST, 2, 1024, 0), Event(RELEASE, 2, 0, 0)]
    plan, tensors = plan_of(events)
    assert plan.footprint == 2048 and not overlap(plan, tensors, 0, 2)


# ---- Snapshots ----

def entry(action, address, size, stream=0):
    return {"action": action, "addr": address, "size": size, "stream": stream, "frames": []}


def snapshot_of(trace, blocks=(), total=4096):
    segment = {"device": 0, "address": 0x1000, "total_size": total, "stream": 0,
               "blocks": [{"address": a, "size": s, "state": state} for a, s, state in blocks]}
    return {"segments": [segment], "device_traces": [trace]}


def load(contents):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "snapshot.pickle")
        path.write_bytes(pickle.dumps(contents))
        return snapshot.load(path)


def snapshots_say_what_would_have_been_needed():
    trace = [entry("segment_alloc", 0x1000, 4096),
             entry("free_requested", 0x1c00, 512), entry("free_completed", 0x1c00, 512),
             entry("alloc", 0x1000, 1024, 1), entry("free_requested", 0x1000, 1024, 1),
             entry("free_completed", 0x1000, 1024, 1),
             entry("alloc", 0x1400, 1024, 2), entry("free_requested", 0x1400, 1024, 2),
             entry("free_completed", 0x1400, 1024, 2), entry("alloc", 0x1800, 512)]
    blocks = [(0x1000, 1024, "inactive"), (0x1400, 1024, "inactive"),
              (0x1800, 512, "active_allocated"), (0x1a00, 512, "active_allocated")]
    found = load(snapshot_of(trace, blocks))
    assert found.needs() == {"ordered": 1024, "unordered": 2 * 1024 + 512, "peak": 1024,
                             "reserved": 4096, "kept": 512}, found.needs()
    assert len(found.graph().streams) == 3 and len(found.graph(one_stream=True).streams) == 1
    with tempfile.TemporaryDirectory() as folder:
        found.graph(one_stream=True).save(Path(folder, "instance.json"))


def a_block_lives_until_its_release_is_completed():
    trace = [entry("alloc", 0x1000, 1024), entry("free_requested", 0x1000, 1024),
             entry("alloc", 0x1400, 1024), entry("free_completed", 0x1000, 1024),
             entry("free_requested", 0x1400, 1024), entry("free_completed", 0x1400, 1024)]
    assert load(snapshot_of(trace)).needs()["ordered"] == 2048


def snapshots_may_not_bring_code():
    class Code:
        def __reduce__(self):
            return print, ("executed",)

    assert "plain values" in str(raises(tarn.BadInput, load, Code()))
    assert raises(tarn.BadInput, load, [1, 2]) and raises(tarn.BadInput, load, {"device_traces": 3})
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "x").write_bytes(b"no pickle")
        raises(tarn.BadInput, snapshot.load, Path(folder, "x"))


def snapshots_without_a_trace_say_so():
    trace = [entry("alloc", 0x1000, 1024)]
    old = snapshot_of(trace)["segments"]  # what PyTorch wrote before there were traces
    for contents in (old, {"a": 1}, {"segments": old}, {"segments": old, "device_traces": [[]]}):
        error = str(raises(tarn.BadInput, load, contents))
        assert "holds no trace of device 0 (devices: [])" in error and "pickle" in error, error
    for device in (1, 7, -1):
        error = str(raises(tarn.BadInput, snapshot.Snapshot, snapshot_of(trace), device))
        assert f"device {device} (devices: [0]): call torch.cuda.memory._record" in error, error


def damaged_snapshots_are_bad_input():
    whole = pickle.dumps(snapshot_of([entry("alloc", 0x1000, 1024),
                                      entry("free_completed", 0x1000, 1024)]))
    draw = random.Random(1)
    with tempfile.TemporaryDirectory() as folder:
        path, refused = Path(folder, "snapshot.pickle"), 0
        for _ in range(200):
            damaged = bytearray(whole)
            for _ in range(draw.randrange(1, 4)):
                damaged[draw.randrange(12, len(damaged))] = draw.randrange(256)
            path.write_bytes(damaged)
            try:
                snapshot.load(path).needs()
            except tarn.BadInput as error:
                refused += 1
                assert str(path) in str(error), error
        assert refused > 100
        for huge in (b"\x80\x05\x8e" + (1 << 40).to_bytes(8, "little"), b"\x80\x02]r\xff\xff\xff\x7f."):
            path.write_bytes(huge)
            raises(tarn.BadInput, snapshot.load, path)
    for wrong in ({"size": -5}, {"size": 1.5}, {"size": 1 << 60}, {"size": 0}, {"stream": None}):
        raises(tarn.BadInput, load, snapshot_of([{**entry("alloc", 0x1000, 512), **wrong}]))


def nothing_here_has_imported_torch():
    assert "torch" not in sys.modules


HELPERS = ("pattern", "replay", "peak_of", "overlap", "streams", "plan_of", "entry", "snapshot_of",
           "load")
if __name__ == "__main__":
    run([value for name, value in list(vars().items())
         if getattr(value, "__module__", None) == "__main__" and callable(value)
         and name not in HELPERS])
