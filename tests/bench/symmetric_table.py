"""What symmetric groups cost: the families of examples/pipeline_stages.py, each stage planned by itself, all stages of a
pipeline together (tarn.plan_family), and with a heap of their own for what is symmetric, which lends nothing. A table in
Markdown on standard output.

    TARN_LIBRARY=build/libtarn.so PYTHONPATH=python python3 tests/bench/symmetric_table.py [--stages 4] [--microbatches 8] ..."""
import json
import os
import subprocess
import sys
import tempfile

import tarn

SOURCE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
MIB = 1 << 20


def families(folder, arguments):
    """{name of the pipeline: documents of its stages}"""
    listed = subprocess.run([sys.executable, os.path.join(SOURCE, "examples/pipeline_stages.py"), folder, "--symmetric", *arguments],
                            capture_output=True, text=True, check=True).stdout.split()
    found = {}
    for path in listed:
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        schedule, shape, microbatches, parallel, *_ = document["name"].split(".")
        found.setdefault((schedule, shape.split("s")[0][1:], microbatches[1:], parallel[1:]), []).append(document)
    return found


def graph_of(document):
    return tarn.Graph.from_bytes(json.dumps(document).encode())


def without_bytes(document, is_kept):
    """The same graph in which only some planned tensors have bytes; nothing is symmetric or grouped but what has."""
    symmetric = {tensor for group in document["contiguous"] for tensor in group["tensors"]}
    kept = {t["id"] for t in document["tensors"] if is_kept(t.get("alias_of", t["id"]) in symmetric) or t["kind"] in ("parameter", "input")}
    tensors = [t if t["id"] in kept else {**t, "size": 0} for t in document["tensors"]]
    ops = [op if is_kept(False) else {key: value for key, value in op.items() if key != "workspace"} for op in document["ops"]]
    groups = [group for group in document["contiguous"] if set(group["tensors"]) <= kept]
    return {**document, "tensors": tensors, "ops": ops, "contiguous": groups}


def main():
    options = {"threads": 1, "effort": 1000}
    print("| schedule | stages | microbatches | tensor-parallel | window MiB | apart, MiB | family, MiB | largest, % | a heap of its own, MiB |")
    print("|---|---:|---:|---:|---:|---|---|---:|---|")
    with tempfile.TemporaryDirectory() as folder:
        for key, documents in families(folder, sys.argv[1:]).items():
            graphs = [graph_of(document) for document in documents]
            apart = [tarn.plan(graph, **options).footprint for graph in graphs]
            plans = tarn.plan_family(graphs, ranks=True, **options)
            for plan in plans:
                plan.verify()
            tarn.verify_family(plans)
            together = [plan.footprint for plan in plans]
            heap = max(plan.footprint for plan in tarn.plan_family(
                [graph_of(without_bytes(document, lambda symmetric: symmetric)) for document in documents], ranks=True, **options))
            rest = [tarn.plan(graph_of(without_bytes(document, lambda symmetric: not symmetric)), **options).footprint
                    for document in documents]
            sizes = [" ".join(f"{size / MIB:.0f}" for size in row) for row in (apart, together, [heap + size for size in rest])]
            print(f"| {' | '.join(key)} | {plans[0].window.size / MIB:.0f} | {sizes[0]} | {sizes[1]} | "
                  f"{100 * (max(together) / max(apart) - 1):.2f} | {sizes[2]} |", flush=True)


main()
