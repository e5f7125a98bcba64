#!/usr/bin/env python3
"""Compares two builds of the command on budgets with moves: modelled time and processor time, one after the other on each case.

    offload_paired.py [--count N] [--seed S] [--case GRAPH:PERCENT:RATE]... FIRST SECOND [GRAPH...]

FIRST and SECOND are commands. GRAPH:PERCENT:RATE is a case by name: a budget in percent of the footprint without one, and GB/s each
way; N more cases are drawn from the graphs. Times are modelled time above keeping everything, in percent; `user` is processor time
in seconds. A budget that is refused has the least footprint that the refusal names instead, in MB."""
import argparse
import json
import os
import random
import re
import subprocess


def plan(command, graph, percent, rate):
    with subprocess.Popen([command, "plan", graph, "--budget", f"{percent}%", "--offload", f"{rate}GB/s", "--json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        out, err = process.communicate()
    user = os.times().children_user
    if process.returncode == 0:
        time = json.loads(out)["budget_time"]
        return 100 * (time["critical_path_ns"] / time["critical_path_before_ns"] - 1), None, user
    least = re.search(r"least footprint found is (\d+)", out + err)
    assert process.returncode == 1, err
    return None, int(least[1]) / 1e6 if least else float("nan"), user


def told(result):
    return f"{result[0]:.2f} %" if result[0] is not None else f"refused, {result[1]:.1f} MB"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("commands", nargs=2, metavar="COMMAND")
    parser.add_argument("graphs", nargs="*", metavar="GRAPH")
    words = parser.parse_args()
    draws, cases = random.Random(words.seed), [case.rsplit(":", 2) for case in words.case]
    for _ in range(words.count):
        cases.append([draws.choice(words.graphs), draws.randrange(35, 76), draws.choice([12, 25, 50, 100, 200])])
    print("| graph | % | GB/s | first | user, s | second | user, s |\n|---|---:|---:|---:|---:|---:|---:|")
    for graph, percent, rate in cases:
        name, cells, before = os.path.basename(graph).split(".json")[0], [], os.times().children_user
        for command in words.commands:
            result = plan(command, graph, percent, rate)
            cells += [told(result), f"{result[2] - before:.1f}"]
            before = result[2]
        print(f"| {name} | {percent} | {rate} | {' | '.join(cells)} |", flush=True)


main()
