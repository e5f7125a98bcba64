"""Many plans at a time, on whatever executor the user has."""
from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, Optional, Union

from .errors import TarnError
from .graph import Graph, PathLike
from .planning import Plan, plan

Source = Union[Graph, PathLike]


def _one(job: tuple[int, Source, dict[str, Any], Any]) -> Plan:
    number, graph, options, end = job
    if end:  # an event of this process
        told = options.get("progress") or (lambda *best: True)
        options = {**options, "progress": lambda *best: not end.is_set() and told(*best)}
    try:
        return plan(graph, **options)
    except TarnError as error:
        error.job, error.args = number, (f"job {number}: {error}",)
        raise


def plan_many(jobs: Iterable[Union[Source, tuple[Source, dict[str, Any]]]],
              executor: Optional[Executor] = None, **options: Any) -> Iterator[Plan]:
    """Plans many graphs, and yields the plans in the order of the jobs.

    A job is a graph (tarn.Graph or a path), or a pair (graph, options of its own). executor: any of
    concurrent.futures (processes, mpi4py.futures, Dask's client.get_executor()), graphs and plans
    travel as files do; None: threads of this process, one for each core. Options are those of
    tarn.plan and hold for all; each plan uses one thread unless they say otherwise. The
    first job without a plan ends all, so a sweep begins with what fits most easily; `job` of the
    tarn.TarnError is its number.

        shapes = [("step.json", {"budget": gib << 30}) for gib in range(8, 1, -1)]
        for plan in tarn.plan_many(shapes, reorder=True): ...  # up to tarn.DoesNotFit
    """
    options.setdefault("threads", 1)
    end = threading.Event()
    pairs = [job if isinstance(job, tuple) else (job, {}) for job in jobs]
    whole = [(number, graph, {**options, **own}, not executor and end)
             for number, (graph, own) in enumerate(pairs)]
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    with nullcontext(executor) if executor else ThreadPoolExecutor(cores) as workers:
        try:
            yield from workers.map(_one, whole)
        finally:  # also where nobody asks for the other plans
            end.set()
