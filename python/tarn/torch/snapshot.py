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
        raise tarn.BadInput(f"the snapshot asks for {module}.{name}: only plain values are read")


class Snapshot:
    """The requests of one device. A block lives until its release has been completed, which is when
    all streams that used it had come that far. `kept`: bytes that were there all the time;
    `reserved`: what PyTorch holds at the end; `peak`: the most that was requested at once."""

    def __init__(self, contents, device=0):
        traces = contents.get("device_traces", [])
        self.events, alive, before, numbers = [], {}, [], itertools.count()
        for entry in traces[device] if device < len(traces) else []:
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
    """A snapshot file."""
    with open(path, "rb") as file:
        try:
            contents = _PlainUnpickler(file).load()
            return Snapshot(contents, device)
        except (pickle.UnpicklingError, EOFError, KeyError, AttributeError, IndexError,
                TypeError, ValueError) as error:
            raise tarn.BadInput(f"{path} is no memory snapshot of PyTorch: {error}") from None
