#!/usr/bin/env python3
"""Plans lists of graphs with tarn.plan_many on 1 and 2 processes, and prints the table of docs/distributed.md.

    examples/plan_many.py LIST...

A list has a path in each line, as examples/pipeline_stages.py prints them. Seconds include the start of the processes. The plans
are those of one process, which is checked.
"""
import os
import sys
import time
from concurrent.futures import ProcessPoolExecutor

import tarn


def plans_of(paths, processes):
    """Returns seconds, and what each plan comes to."""
    begin = time.monotonic()
    with ProcessPoolExecutor(processes) as executor:
        plans = list(tarn.plan_many(paths, executor=executor))
    return time.monotonic() - begin, [(plan.footprint, plan.bound) for plan in plans]


def main():
    print("| list | graphs | processes | seconds | plans a second |")
    print("|---|---:|---:|---:|---:|")
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            paths = file.read().split()
        name = os.path.splitext(os.path.basename(path))[0]
        expected = None
        for processes in (1, 2):
            seconds, plans = plans_of(paths, processes)
            if expected not in (None, plans):
                sys.exit(f"plan_many: {name}: {processes} processes make other plans")
            expected = plans
            print(f"| {name} | {len(paths)} | {processes} | {seconds:.1f} | {len(paths) / seconds:.0f} |", flush=True)


if __name__ == "__main__":
    main()
