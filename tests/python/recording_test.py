"""What PyTorch asked for, without PyTorch: captured steps (tests/data/torch/*.json.gz), recorded
iterations (*.csv) and memory snapshots are planned, verified, and replayed against byte patterns.
TAP on stdout.

    recording_test.py SOURCE     with PYTHONPATH and TARN_LIBRARY set"""
import pickle
import random
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

from cases import raises, run

import tarn
from tarn.torch import plain_pickle, recording, snapshot
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


def a_request_ends_what_lay_there():
    """Traces that do not say when releases are completed: 5 steps of 4 blocks are not 20 at once."""
    block = 16 << 20
    places = [0x7f0000000000 + i * block for i in range(4)]
    free = [entry("free_requested", a, block) for a in places]
    trace = [e for _ in range(5) for e in [entry("alloc", a, block) for a in places] + free]
    blocks = [(places[0], 4 * block, "inactive")]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        needs = load(snapshot_of(trace, blocks, 4 * block)).needs()
    assert needs["ordered"] == needs["peak"] == 4 * block and needs["unordered"] == 4 * block, needs
    # Cut otherwise: a large one over two small ones and into a third, and a small one inside it.
    trace = [entry("alloc", 0x1000, 512), entry("alloc", 0x1200, 512), entry("alloc", 0x1400, 1024),
             entry("alloc", 0x1000, 2048), entry("alloc", 0x1600, 512)]
    found = load(snapshot_of(trace))
    assert found.peak == 2048 and found.events[-1].size == 512, found.events
    released = [e.size for e in found.events if e.action == RELEASE]
    assert released == [512, 512, 1024, 2048], released
    neighbours = [entry("alloc", 0x1000 + i * 512, 512) for i in range(8)]
    assert load(snapshot_of(neighbours)).peak == 8 * 512
    gone = [entry("alloc", 0x1000, 512), entry("segment_free", 0x1000, 4096), entry("alloc", 0x9000, 512)]
    assert load(snapshot_of(gone)).peak == 512
    again = [entry("alloc", 0x1000, 512), entry("alloc", 0x1000, 512), entry("free_completed", 0x1000, 512)]
    assert load(snapshot_of(again)).needs()["ordered"] == 512


def random_traces_without_completions_never_need_more_than_was_held():
    """Against bytes: an allocator that gives addresses, of whose trace some releases are dropped."""
    draw = random.Random(2)
    for _ in range(60):
        arena, live, trace, most = 64, {}, [], 0
        for _ in range(200):
            if live and draw.random() < 0.5:
                address = draw.choice(sorted(live))
                size = live.pop(address)
                trace.append(entry("free_requested", address, size))
                if draw.random() < 0.5:
                    trace.append(entry("free_completed", address, size))
                continue
            size, taken = 512 * draw.randrange(1, 9), [(a, a + s) for a, s in live.items()]
            spots = [a for a in range(0, (arena << 9) - size, 512)
                     if all(a >= end or a + size <= begin for begin, end in taken)]
            if spots:
                live[draw.choice(spots)] = size
                trace.append(entry("alloc", *list(live.items())[-1]))
            most = max(most, sum(live.values()))
        found = load(snapshot_of(trace, total=arena << 9))
        assert most <= found.peak <= arena << 9, (most, found.peak)


def a_peak_above_what_was_held_warns():
    trace = [entry("alloc", 0x1000 + 512 * i, 512) for i in range(16)]
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        load(snapshot_of(trace, total=4096))
    assert len(told) == 1 and "8192 bytes at once" in str(told[0].message), told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(snapshot_of(trace, total=8192))
        load(snapshot_of([entry("segment_alloc", 0x1000, 8192)] + trace + [entry("segment_free", 0x1000, 8192)], total=512))


def the_only_device_with_a_trace_is_taken():
    whole = snapshot_of([entry("alloc", 0x1000, 1024)])
    of_rank_1 = {"segments": [{**whole["segments"][0], "device": 1}], "device_traces": [[], *whole["device_traces"]]}
    found = load(of_rank_1)
    assert found.device == 1 and found.peak == 1024 and found.reserved == 4096
    error = str(raises(tarn.BadInput, snapshot.Snapshot, of_rank_1, 0))
    assert "device=1" in error and "devices: [1]" in error, error
    both = {**of_rank_1, "device_traces": [[], *2 * whole["device_traces"]]}
    assert "device=1" in str(raises(tarn.BadInput, load, both))
    assert snapshot.Snapshot(both, 2).device == 2 and load({**both, "device_traces": 2 * whole["device_traces"]}).device == 0


LIMITED = """
import resource, sys, time
import tarn
from tarn.torch import snapshot
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
for path in sys.argv[1:]:
    begin = time.process_time()
    try:
        snapshot.load(path).needs()
        print(path, "was read")
    except tarn.BadInput as error:
        if len(str(error)) > 1000 or "MemoryError" in str(error):
            print(path, str(error)[:200])
    except BaseException as error:
        print(path, type(error).__name__, str(error)[:200])
"""


def bombs():
    """Small pickles that would grow: by a number of the memo, lengths, nesting, copies."""
    def number(size, value):
        return value.to_bytes(size, "little")

    yield "memo put", b"\x80\x02K\x01r" + number(4, 1 << 29) + b"."
    yield "memo put, text", b"\x80\x02K\x01p" + b"9" * 300 + b"\n."
    yield "memo get", b"\x80\x02j" + number(4, 1 << 31) + b"."
    for code, size in ((b"X", 4), (b"B", 4), (b"T", 4), (b"\x8b", 4), (b"\x8d", 8), (b"\x8e", 8), (b"\x96", 8)):
        for length in (1 << 31, (1 << 31) - 1, (1 << 62) if size == 8 else (1 << 32) - 1):
            yield f"length {code!r} {length}", b"\x80\x05" + code + number(size, length) + b"x."
    yield "frame", b"\x80\x04\x95" + number(8, 1 << 40) + b"N."
    yield "digits", b"L" + b"7" * 1000000 + b"L\n."
    yield "nested lists", b"]" * 1000000 + b"a" * 999999 + b"."
    yield "nested marks", b"(" * 1000000 + b"."
    yield "nested tuples", b")" + b"\x85" * 1000000 + b"."
    laughs = b"".join(b"\x94h" + bytes([i]) + b"h" + bytes([i]) + b"\x86" for i in range(200))
    yield "laughing tuples", b"\x80\x04)" + laughs + b"."
    yield "a laughing key", b"\x80\x04})" + laughs + b"K\x01s."
    value = ()
    for _ in range(100):
        value = (value, value)
    for field in ("size", "addr", "stream", "time_us", "action", "frames"):
        for odd in (value, 1 << 20000, -1 << 200, 1 << 64, -1, 1e300, float("nan"), "9" * 100000, None, [], {}, True):
            yield f"{field} {type(odd).__name__}", pickle.dumps(snapshot_of([{**entry("alloc", 0x1000, 512), field: odd}]), 4)
    for field in ("device", "address", "total_size", "blocks"):
        for odd in (value, 1 << 20000, -1 << 200, "x", None, [3], {}):
            whole = snapshot_of([entry("alloc", 0x1000, 512)])
            whole["segments"][0][field] = odd
            yield f"segment {field} {type(odd).__name__}", pickle.dumps(whole, 4)
    for field in ("segments", "device_traces"):
        for odd in (value, 1 << 20000, "x", None, [3], {}, [[3]], [value]):
            yield f"{field} {type(odd).__name__}", pickle.dumps({**snapshot_of([entry("alloc", 0x1000, 512)]), field: odd}, 4)
    yield "copies", b"\x80\x04]" + b"2" * 100000 + b"a" * 100000 + b"."
    yield "set", b"\x80\x04\x8f(K\x01\x90."
    yield "array", b"\x80\x05\x96" + number(8, 3) + b"abc."


def hostile_pickles_are_refused_in_little_memory():
    """Each in 1 GiB of address space, in seconds; what is no snapshot is tarn.BadInput and nothing else."""
    with tempfile.TemporaryDirectory() as folder:
        names = []
        for i, (name, data) in enumerate(bombs()):
            names.append(Path(folder, f"{i} {name}".replace("/", "")))
            names[-1].write_bytes(data)
        done = subprocess.run([sys.executable, "-c", LIMITED, *names], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    fine = [line for line in done.stdout.splitlines() if line.endswith("was read")]
    wrong = [line for line in done.stdout.splitlines() if not line.endswith("was read")]
    assert not wrong and len(names) > 140, (len(names), wrong)
    # A field on which nothing depends may hold anything.
    allowed = (" frames ", " action ", "time_us int", "time_us float", "time_us bool", "stream int", "segments list", "segments dict", "segment blocks list")
    assert not [line for line in fine if not any(word in line for word in allowed)], fine


def some_value(draw, depth):
    some = range(draw.randrange(4))
    kinds = [lambda: None, lambda: draw.random() < 0.5, lambda: draw.randrange(-1 << 70, 1 << 70) >> draw.randrange(70), draw.random,
             lambda: "é\n\u2028" * draw.randrange(200), lambda: "x" * draw.randrange(300)]
    if depth:
        kinds += [lambda: [some_value(draw, depth - 1) for _ in some], lambda: tuple(some_value(draw, depth - 1) for _ in some),
                  lambda: {draw.choice(["a", "b", 7, -1]): some_value(draw, depth - 1) for _ in some}, lambda: [some_value(draw, depth - 1)] * 3]
    return draw.choice(kinds)()


def plain_pickles_are_read_as_the_standard_library_reads_them():
    draw = random.Random(3)
    for _ in range(500):
        made = some_value(draw, 4)
        for protocol in range(6):
            assert plain_pickle.loads(pickle.dumps(made, protocol)) == made, (protocol, made)
    made = [b"", b"x" * 300, (1, 2, 3, 4)]
    assert plain_pickle.loads(pickle.dumps(made, 4)) == made


def nothing_here_has_imported_torch():
    assert "torch" not in sys.modules


HELPERS = ("pattern", "replay", "peak_of", "overlap", "streams", "plan_of", "entry", "snapshot_of",
           "load", "bombs", "some_value")
if __name__ == "__main__":
    run([value for name, value in list(vars().items())
         if getattr(value, "__module__", None) == "__main__" and callable(value)
         and name not in HELPERS])
