"""Many plans at a time, on whatever executor the user has."""
from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Optional, Union

from .graph import Graph, PathLike
from .planning import Plan, plan

Source = Union[Graph, PathLike]


def _one(job):
    graph, options = job
    return plan(graph, **options)


def plan_many(jobs: Iterable[Union[Source, tuple[Source, dict[str, Any]]]],
              executor: Optional[Executor] = None, **options: Any) -> Iterator[Plan]:
    """Plans many graphs, and yields the plans in the order of the jobs.

    A job is a graph (tarn.Graph or a path), or a pair (graph, options of its own). executor: any of
    concurrent.futures (processes, mpi4py.futures, Dask's client.get_executor()), graphs and plans
    travel as files do; None: threads of this process, one for each core. Options are those of
    tarn.plan and hold for all; each plan uses one thread unless they say otherwise.

        shapes = [("step.json", {"budget": gib << 30}) for gib in range(2, 9)]
        for plan in tarn.plan_many(shapes, reorder=True): ...
    """
    options.setdefault("threads", 1)
    pairs = [(job[0], {**options, **job[1]}) if isinstance(job, tuple) else (job, options)
             for job in jobs]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with nullcontext(executor) if executor else ThreadPoolExecutor(cores) as workers:
        yield from workers.map(_one, pairs)
