#!/usr/bin/env python3
"""Writes docs/training.md: bytes, step times, overlap and budgets of the trainer, measured here.

    examples/train/measure.py build/examples/train > docs/training.md

Runs that are compared take turns; a time is the median of the rounds. About five minutes; the machine
should have nothing else to do.
"""
import glob
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import tempfile
import textwrap

PROGRAM = sys.argv[1] if len(sys.argv) > 1 else "build/examples/train"
ROUNDS = 4
STEPS = {"digits": 60, "text": 30}
LARGE = {"digits": "64", "text": "32"}  # samples in the shard of the overlap table
# Budgets are tried on one forward and backward pass, and on four in a row.
SHARDS = {"digits": {"one shard of 64": ["--shards", "1", "--batch", "64"], "four of 16": []},
          "text": {"one shard of 32": ["--shards", "1", "--batch", "32"], "four of 8": []}}
ENVIRONMENT = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                   OMPI_MCA_mpi_yield_when_idle="1", OMP_NUM_THREADS="1")


def train(network, *options, ranks=1, steps=None):
    """Runs the trainer; returns what it printed."""
    command = ["mpirun", "-n", str(ranks), "--oversubscribe", "--bind-to", "none", PROGRAM, "--network", network,
               "--steps", str(steps or STEPS[network]), *options]
    run = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True)
    if run.returncode:
        sys.exit(f"measure: {' '.join(command)}: {run.stdout}{run.stderr}")
    return run.stdout


def number(text, pattern):
    return float(re.search(pattern, text, re.M).group(1))


def step_ms(text):
    return number(text, r"([0-9.]+) ms a step$")


def used(text):
    return number(text, r"^(?:arena|malloc|free-at-last-use): ([0-9]+) bytes")


def in_turns(variants, rounds=ROUNDS):
    """variants: name -> function that runs once; returns name -> list of outputs."""
    outputs = {name: [] for name in variants}
    for _ in range(rounds):
        for name, run in variants.items():
            outputs[name].append(run())
    return outputs


def kb(value):
    return f"{value / 1000:,.0f}"


def table(head, rows):
    print("| " + " | ".join(head) + " |")
    print("|" + "---|" + "---:|" * (len(head) - 1))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


# ---- The tables ----

def bytes_table():
    print("## Bytes\n")
    print("Of an iteration's tensors and workspaces, in thousands; one rank, four shards. `malloc` frees nothing; the arena "
          "serves streams that run\nside by side, the other two run one op after another, and reduce every gradient by itself. In an arena "
          "every tensor begins at a\nmultiple of 512 bytes.\n")
    transforms = [("as built", []), ("in place", ["--in-place"]),
                  ("reordered, coupled, in place", ["--reorder", "--couple", "--in-place"])]
    rows = []
    for network in STEPS:
        for name, options in transforms:
            row = [used(train(network, "--memory", memory, *options, steps=2))
                   for memory in ("malloc", "free-at-last-use", "arena")]
            plan = train(network, *options, steps=2)
            rows.append([f"{network}, {name}", *map(kb, row), kb(number(plan, r"bound ([0-9]+)"))])
    table(["graph", "malloc", "free at last use", "arena", "lower bound of any arena"], rows)


def time_table():
    print("## Step time\n")
    print(f"Milliseconds a step; median (and fastest) of {ROUNDS} rounds in which the three take turns. One rank, four shards; the "
          "arena's\nstreams have two cores, malloc's ops run one after another on one.\n")
    rows = []
    for network in STEPS:
        outputs = in_turns({memory: lambda memory=memory: train(network, "--memory", memory)
                            for memory in ("malloc", "free-at-last-use", "arena")})
        times = {memory: [step_ms(text) for text in texts] for memory, texts in outputs.items()}
        ratios = [a / b for a, b in zip(times["arena"], times["free-at-last-use"])]
        fastest = min(times["arena"]) / min(times["free-at-last-use"])
        rows.append([network, *(f"{statistics.median(t):.2f} ({min(t):.2f})" for t in times.values()), f"{statistics.median(ratios):.2f} ({fastest:.2f})"])
    table(["network", "malloc", "free at last use", "arena", "arena / free at last use"], rows)


def merged(spans):
    """Spans as a list of disjoint ones."""
    result = []
    for begin, end in sorted(spans):
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


def shared(a, b):
    """Time that is in both lists of disjoint spans."""
    return sum(max(0, min(x[1], y[1]) - max(x[0], y[0])) for x in a for y in b)


def overlap(path):
    """Of a trace: time of communication, and the share of it during which compute runs."""
    with open(path) as file:
        events = json.load(file)["traceEvents"]
    names = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
    spans = {name: merged((e["ts"], e["ts"] + e["dur"]) for e in events if e["ph"] == "X" and names.get(e["tid"]) == name)
             for name in ("compute", "communication")}
    total = sum(end - begin for begin, end in spans["communication"])
    return total / 1e3, shared(spans["communication"], spans["compute"]) / total


def overlap_table(folder):
    print("## Overlap\n")
    print("From rank 0's trace of two ranks with one shard each, buckets of 16 KiB. *Wire* is a sleep in each reduction, which stands "
          "for a\nnetwork. *Hidden*: the share of communication during which the compute stream runs.\n")
    rows = []
    for network in STEPS:
        for wire in (0, 300, 1000):
            path = os.path.join(folder, "trace.json")
            text = train(network, "--batch", LARGE[network], "--shards", "2", "--wire", str(wire), "--trace", path, ranks=2, steps=20)
            total, hidden = overlap(path)
            rows.append([f"{network}, {wire} us", f"{step_ms(text):.2f}", f"{total / 20:.2f}", f"{100 * hidden:.0f} %"])
    table(["network, wire", "ms a step", "ms of communication a step", "hidden"], rows)


def budget_rows(title, network, options, graph):
    """A row for each budget; all of them take turns, but for those that are refused."""
    train(network, *options, "--save-graph", graph, steps=2)
    names = ["none", "90 %", "80 %", "70 %", "60 %", "50 %"]
    outputs = {}
    variants = {name: lambda name=name: train(network, *options, "--graph", graph,
                                              *([] if name == "none" else ["--budget", name.replace(" ", "")]))
                for name in names}
    for name in names:  # a budget that cannot be met is said to be so
        try:
            variants[name]()
        except SystemExit as refusal:
            outputs[name] = str(refusal)
            del variants[name]
    outputs.update(in_turns(variants))
    base = [step_ms(text) for text in outputs["none"]]
    for name in names:
        if isinstance(outputs[name], str):
            least = number(outputs[name], r"least footprint found is ([0-9]+)")
            yield [f"{title}, {name}", f"refused: at least {kb(least)}", "", "", ""]
            return  # so are those below it
        text, times = outputs[name][0], [step_ms(t) for t in outputs[name]]
        real = f"{statistics.median(t / b for t, b in zip(times, base)):.2f} ({min(times) / min(base):.2f})"
        predicted, again = 1.0, "0"
        if name != "none":
            modelled = re.search(r"modelled ([0-9.]+) ms, before ([0-9.]+) ms", text)
            predicted = float(modelled.group(1)) / float(modelled.group(2))
            again = re.search(r"; ([0-9]+) ops again", text).group(1)
        yield [f"{title}, {name}", kb(used(text)), again, f"{predicted:.2f}", real]


def budget_table(folder):
    print("## Budgets: predicted and real\n")
    print("One rank. Costs are measured once, by the trainer; the plan for each budget is made from the same costs. A "
          "budget is a\nshare of the graph's lower bound. *Predicted*: the model's "
          "critical\npath against that without a budget. *Real*: the median ratio of step times over "
          f"{ROUNDS} rounds in which all budgets take turns (and the\nratio of the fastest rounds).\n")
    table(["network, shards, budget", "arena, KB", "ops run again", "predicted", "real"],
          [row for network in STEPS for shards, options in SHARDS[network].items()
           for row in budget_rows(f"{network}, {shards}", network, options, os.path.join(folder, "graph.json"))])


def say(text):
    print(textwrap.fill(text, 100, break_long_words=False, break_on_hyphens=False) + "\n")


def main():
    load = os.getloadavg()[0]
    lines = [line for path in glob.glob(os.path.join(os.path.dirname(__file__), "*.[ch]")) for line in open(path)]
    print("# Training with Tarn, measured\n")
    say("`examples/train/` trains a convolutional net on digits and a transformer on a text ([its README](../examples/train/README.md)). "
        "Losses and parameters have the same bits in every row of these tables that has the same shards; `tests/project/train_test.sh` "
        f"holds that for 1, 2 and 4 ranks. It has {len(lines):,} lines of C, of which "
        f"{sum(bool(re.search('tarn_|TARN', line)) for line in lines)} name Tarn.")
    say(f"Made by `examples/train/measure.py build/examples/train > docs/training.md` on {os.cpu_count()} cores ({platform.machine()}, "
        f"virtual machine), load at the start {load:.1f}. Bytes are the same in every run. Times are not: with a load above 1 other "
        "programs take part of the cores, and a row says no more than its fastest round.")
    with tempfile.TemporaryDirectory() as folder:
        bytes_table()
        time_table()
        overlap_table(folder)
        budget_table(folder)
    print("""## What it says

* The arena needs what freeing at the last use needs, although its streams run side by side, and no
  allocator is called in a step.
* A budget works on one forward and backward pass and on several in a row: each shard's forward
  results are dropped and computed again in its own backward pass. No budget can drop the sums of
  gradients.
* Communication hides behind the backward pass as far as gradients are ready early: the last bucket,
  of the first layers, never does.""")


if __name__ == "__main__":
    main()
