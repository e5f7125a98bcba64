#!/usr/bin/env python3
"""Measures budgets by computing again, by moves, and by both, and prints the table of docs/measured/offload.md.

    offload_table.py measure RESULTS.jsonl GRAPH...    appends a line for each plan; what is there already is left out
    offload_table.py table RESULTS.jsonl [FILE]        the table, after the text of a file

TARN names the command, BUDGETS and RATES what is tried (percent of the footprint without a budget; GB/s each way)."""
import json
import os
import subprocess
import sys
import time

TARN = os.environ.get("TARN", "build/tarn")
BUDGETS = [int(x) for x in os.environ.get("BUDGETS", "75,60,50,40").split(",")]
RATES = [int(x) for x in os.environ.get("RATES", "25,50,200,450").split(",")]
WAYS = ("rec", "off", "joint")


def tarn(*words):
    done = subprocess.run([TARN, *words, "--json"], capture_output=True, text=True, check=False)
    return json.loads(done.stdout) if done.returncode == 0 else None


def lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def measure(path, graphs):
    """Each plan has been verified by the command; "over" is modelled time above keeping everything, in percent."""
    known = {(row["graph"], row["mode"], row["budget"], row["rate"]) for row in lines(path)}
    for graph in graphs:
        name = os.path.basename(graph).split(".json")[0]
        whole = tarn("plan", graph)["footprint_bytes"]
        for budget in BUDGETS:
            for way in WAYS:
                for rate in map(str, RATES if way != "rec" else RATES[:1]):
                    if (name, way, budget, rate) in known:
                        continue
                    words = ["plan", graph, "--budget", str(whole * budget // 100)]
                    if way != "rec":
                        words += ["--offload", rate + "GB/s"]
                    if way == "off":
                        words += ["--budget-method", "offload"]
                    begin = time.time()
                    plan = tarn(*words)
                    row = {"graph": name, "mode": way, "budget": budget, "rate": rate, "sec": round(time.time() - begin, 1)}
                    if plan:
                        before = plan["budget_time"]["critical_path_before_ns"]
                        device = plan["spaces"][0] if "spaces" in plan else plan
                        assert device["footprint_bytes"] <= whole * budget // 100
                        row["over"] = round(100 * (plan["budget_time"]["critical_path_ns"] / before - 1), 2)
                        moved = plan.get("offload_time", {})
                        if moved:
                            row["slower"] = round(100 * (moved["slower_copies_ns"] / before - 1), 2)
                        for key, told in ("noless", "moves_no_less_than_ns"), ("least", "no_less_than_ns"):
                            if told in moved:
                                row[key] = round(100 * (moved[told] / before - 1), 2)
                    with open(path, "a", encoding="utf-8") as file:
                        file.write(json.dumps(row) + "\n")


def table(path):
    rows = lines(path)
    found = {(row["graph"], row["mode"], row["budget"], row["rate"]): row for row in rows}
    keys = list(dict.fromkeys((row["graph"], row["budget"]) for row in sorted(rows, key=lambda row: -row["budget"])))
    order = list(dict.fromkeys(row["graph"] for row in rows))
    rates = sorted({row["rate"] for row in rows}, key=int)

    def over(*key):
        row = found.get(key)
        return "?" if row is None else f"{row['over']:.1f}" if "over" in row else "–"

    print("| graph | % | again |" + "".join(f" moves {rate} | both {rate} |" for rate in rates))
    print("|---|---:|---:|" + "---:|---:|" * len(rates))
    for graph, budget in sorted(keys, key=lambda key: (order.index(key[0]), -key[1])):
        again = next((over(graph, "rec", budget, rate) for rate in rates if (graph, "rec", budget, rate) in found), "?")
        cells = [f" {over(graph, 'off', budget, rate)} | {over(graph, 'joint', budget, rate)} |" for rate in rates]
        print(f"| {graph.split('.m8')[0]} | {budget} | {again} |" + "".join(cells))
    compare(found)
    bounds(rows, order)


def bounds(rows, order):
    """Times that no moves, and no mix of all ways, can be below."""
    told = {}
    for row in rows:
        for key in "noless", "least":
            if key in row:
                told[row["graph"], row["budget"], row["rate"], key] = f"{row[key]:.1f}"
    rates = sorted({row["rate"] for row in rows}, key=int)
    print("\n| graph | % |" + "".join(f" moves {rate} | any {rate} |" for rate in rates))
    print("|---|---:|" + "---:|---:|" * len(rates))
    for graph in order:
        for budget in sorted({row["budget"] for row in rows}, reverse=True):
            cells = [told.get((graph, budget, rate, key), "–") for rate in rates for key in ("noless", "least")]
            print(f"| {graph.split('.m8')[0]} | {budget} | " + " | ".join(cells) + " |")


def compare(found):
    """In how many cells both ways together are faster than the better of the two, or slower."""
    faster = slower = cells = 0
    neither = 0
    for (graph, way, budget, rate), row in found.items():
        if way != "joint":
            continue
        again = [r for (g, w, b, _), r in found.items() if (g, w, b) == (graph, "rec", budget)]
        single = [r["over"] for r in again + [found.get((graph, "off", budget, rate), {})] if "over" in r]
        if "over" not in row and not single:
            continue
        cells += 1
        best, both = min(single, default=float("inf")), row.get("over", float("inf"))
        faster += both < best - 0.05
        slower += both > best + 0.05
        neither += min(best, both) > 0.05
    print(f"\n{cells} cells are met by some way. Both together are faster than the better single way in {faster} of them and\n"
          f"slower in {slower}. In {neither} cells no way is free.")


if sys.argv[1] == "measure":
    measure(sys.argv[2], sys.argv[3:])
else:
    if len(sys.argv) > 3:
        with open(sys.argv[3], encoding="utf-8") as opened:
            print(opened.read())
    table(sys.argv[2])
