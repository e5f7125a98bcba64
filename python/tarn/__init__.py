"""Tarn: where every tensor of a multi-stream computation lives in one static arena.

    import tarn

    graph = tarn.Graph.load("step.json.gz")
    plan = tarn.plan(graph, reorder=True)
    print(plan)                      # <tarn.Plan footprint 627954176, bound 627954176, optimal>
    for tensor, offset in plan.offsets():
        print(graph.tensors[tensor].name, offset)
    plan.save("plan.json")

The package is a binding of the C library's public functions, by ctypes; what the words mean is in
the headers under include/tarn/. Sizes and offsets are bytes. Graphs and plans are immutable and may
be shared by threads; builders and sessions belong to one thread at a time.
"""
from ._native import version
from .errors import (AccessDenied, BadInput, CheckFailed, DeadlineExceeded, DeviceError, DoesNotFit,
                     FileMissing, Interrupted, IsDirectory, NoDirectory, OutOfResources, Rejected,
                     TarnError, UsageError)
from .graph import Builder, Graph, Implementation, Op, Space, Tensor
from .ids import GroupId, OpId, SpaceId, StreamId, TensorId
from .many import plan_many
from .planning import Plan, PlanSpace, Window, plan, plan_family, verify_family
from .session import Arena, Call, Session, host_cores

__version__ = version()
__all__ = [
    "AccessDenied", "Arena", "BadInput", "Builder", "Call", "CheckFailed", "DeadlineExceeded",
    "DeviceError", "DoesNotFit", "FileMissing", "Graph", "GroupId", "Implementation", "Interrupted",
    "IsDirectory", "NoDirectory", "Op", "OpId", "OutOfResources", "Plan", "PlanSpace", "Rejected",
    "Session", "Space", "SpaceId", "StreamId", "TarnError", "Tensor", "TensorId", "UsageError",
    "Window", "host_cores", "plan", "plan_family", "plan_many", "verify_family", "version",
]
