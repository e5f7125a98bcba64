"""What would Tarn have needed? Reads PyTorch's memory snapshots (torch.cuda.memory._dump_snapshot).

    snapshot = tarn.torch.snapshot.load("snapshot.pickle")
    print(snapshot.needs())
    snapshot.graph().save("step.json")          # for the command line

Needs no torch, and executes nothing of the pickle: it may hold plain values only."""
import itertools
import pickle

import tarn

from .recording import RELEASE, REQUEST, Event, graph

ALIGNMENT = 512  # of PyTorch's CUDA allocator


class _PlainUnpickler(pickle.Unpickler):
    def find_class(self, module, name):
        raise tarn.BadInput(f"it asks for {module}.{name}: only plain values are read")


class Snapshot:
    """The requests of one device. A block lives until its release has been completed, which is when
    all streams that used it had come that far. `kept`: bytes that were there all the time;
    `reserved`: what PyTorch holds at the end; `peak`: the most that was requested at once."""

    def __init__(self, contents, device=0):
        traces = contents.get("device_traces", []) if isinstance(contents, dict) else []
        devices = [number for number, trace in enumerate(traces) if trace]
        if device not in devices:
            raise tarn.BadInput(f"it holds no trace of device {device!r} (devices: {devices}): "
                                "call torch.cuda.memory._record_memory_history first")
        self.events, alive, before, numbers = [], {}, [], itertools.count()
        for entry in traces[device]:
            action, address = entry["action"], entry.get("addr")
            if action == "alloc":
                alive[address] = next(numbers)
                self.events.append(Event(REQUEST, alive[address], entry["size"], entry["stream"]))
            elif action == "free_completed":
                block = alive.pop(address, None)
                if block is None:  # from before the trace
                    block = next(numbers)
                    before.append(Event(REQUEST, block, entry["size"], entry["stream"]))
                self.events.append(Event(RELEASE, block, entry["size"], entry["stream"]))
        self.events = before + self.events
        for e in self.events:
            if not (isinstance(e.size, int) and isinstance(e.stream, int) and 0 < e.size < 1 << 53):
                raise tarn.BadInput(f"it has a block of {e.size!r} bytes on stream {e.stream!r}")
        changes = (e.size if e.action == REQUEST else -e.size for e in self.events)
        self.peak = max(itertools.accumulate(changes, initial=0))
        segments = [s for s in contents.get("segments", []) if s.get("device", 0) == device]
        self.reserved = sum(s["total_size"] for s in segments)
        self.kept = 0
        for segment in segments:
            address = segment["address"]
            for block in segment["blocks"]:
                address = block.get("address", address)
                if block["state"] == "active_allocated" and address not in alive:
                    self.kept += block["size"]
                address += block["size"]

    def graph(self, name="snapshot", one_stream=False):
        """A tarn.Graph with the streams of the snapshot, which says nothing of how they were
        ordered: so they are unordered. one_stream: ordered as the host called, a packing instance
        that can be saved as CSV, too."""
        return graph(self.events, name, one_stream)[0]

    def needs(self, **options):
        """Bytes: of one arena if all streams were ordered as the host called, of one for unordered
        streams, and what PyTorch requested and reserved."""
        options = {"alignment": ALIGNMENT, **options}
        return {"ordered": tarn.plan(self.graph(one_stream=True), **options).footprint,
                "unordered": tarn.plan(self.graph(), **options).footprint,
                "peak": self.peak, "reserved": self.reserved, "kept": self.kept}


def load(path, device=0):
    """A snapshot file; tarn.BadInput where it is none, is damaged, or lacks the device's trace."""
    with open(path, "rb") as file:
        try:
            return Snapshot(_PlainUnpickler(file).load(), device)
        except Exception as error:  # pylint: disable=broad-except
            raise tarn.BadInput(f"{path} is no memory snapshot of PyTorch that can be planned: "
                                f"{str(error) or type(error).__name__}") from None
