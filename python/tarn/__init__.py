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
from .errors import (BadInput, CheckFailed, DeadlineExceeded, DeviceError, DoesNotFit, Interrupted,
                     OutOfResources, Rejected, TarnError, UsageError)
from .graph import Builder, Graph, Implementation, Op, Space, Tensor
from .many import plan_many
from .planning import Plan, PlanSpace, plan
from .session import Call, Session

__version__ = version()
__all__ = [
    "BadInput", "Builder", "Call", "CheckFailed", "DeadlineExceeded", "DeviceError", "DoesNotFit",
    "Graph", "Implementation", "Interrupted", "Op", "OutOfResources", "Plan", "PlanSpace",
    "Rejected", "Session", "Space", "TarnError", "Tensor", "UsageError", "plan", "plan_many",
    "version",
]
