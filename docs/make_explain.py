#!/usr/bin/env python3
"""Prints docs/measured/explain.md: the answers of `tarn explain` and `tarn compare` for four example graphs, or for the named ones.

    docs/make_explain.py build/tarn [NAME...] > docs/measured/explain.md"""
import json
import os
import subprocess
import sys
import tempfile

tarn = os.path.abspath(sys.argv[1])
os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
GRAPHS = ("alexnet_b1_adam.ddp.json", "resnet50_b1_adam.ddp.json.gz", "bert_base_b1_adam.ddp.json.gz",
          "googlenet_b1_adam.ddp_branch4.json.gz")
WIDTH = 160
wanted = sys.argv[2:]


def run(*words):
    return subprocess.run([tarn, *words], capture_output=True, text=True, check=False).stdout


def show(folder, *words):
    """Prints the command as a user types it, and its answer."""
    text = run(*[word.replace("$", folder + "/") if word.startswith("$") else word for word in words])
    shown = " ".join(word[1:] if word.startswith("$") else word for word in words)
    print(f"    $ tarn {shown}")
    for line in text.splitlines():
        print("    " + (line if len(line) <= WIDTH else line[:WIDTH - 3] + "..."))
    print()


print("""# Questions about a plan

Made by `docs/make_explain.py build/tarn > docs/measured/explain.md`. Long lines are cut here;
`--json` prints all of them. `tarn plan GRAPH -o NAME.plan --effort 1000` makes the plans, so that
no clock affects them. `tarn explain --help-all` defines each word.
""")
with tempfile.TemporaryDirectory() as folder:
    for name in GRAPHS:
        graph, short = "examples/graphs/" + name, name.split("_")[0]
        if wanted and short not in wanted:
            continue
        plan = f"{folder}/{short}.plan"
        run("plan", graph, "-o", plan, "--effort", "1000")
        run("plan", graph, "-o", f"{folder}/{short}_paper.plan", "--method", "many-objects:size:first-fit")
        largest = [f"tensor:{row['tensor_id']}" for row in json.loads(run("explain", graph, plan, "--quick", "--json"))["largest"]
                   if "tensor_id" in row]
        after = next((f"tensor:{row['tensor_id']}" for row in json.loads(run("explain", graph, plan, largest[0], "--json"))["bytes_after"]
                      if "tensor_id" in row and not row["other_iteration"]), None)
        print(f"## {short}\n\nWhy is the arena this large, and which options make it smaller?\n")
        show(folder, "explain", graph, f"${short}.plan")
        print("Which ops use the largest storage of the certificate, and which storages have its bytes before and\nafter it?\n")
        show(folder, "explain", graph, f"${short}.plan", largest[0])
        if after:
            print("Why may the next storage have these bytes?\n")
            show(folder, "explain", graph, f"${short}.plan", largest[0], after)
        print("Why may the two largest storages of the certificate not share bytes?\n")
        show(folder, "explain", graph, f"${short}.plan", largest[0], largest[1])
        print("Is a plan by the paper's method worse?\n")
        show(folder, "compare", f"${short}.plan", f"${short}_paper.plan")
