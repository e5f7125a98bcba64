"""Makes the pictures of the documents anew: make.py TARN. Needs Chromium (tests/setup.sh browser).
make.py TARN FOLDER: only the figures of docs/how-it-works.md, which `tarn show` draws, into a folder."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests/cli/show"))
from chromium import Chromium  # noqa: E402
from subjects import write_graph  # noqa: E402

GRAPHS = os.path.join(SOURCE, "examples/graphs")
GOOGLENET = os.path.join(GRAPHS, "googlenet_b1_adam.ddp_branch4.json.gz")


def bucket_graph(path):
    """Three layers forward and backward; their gradients are one contiguous group, which another stream reduces."""
    tensors = [{"name": name, "size": size << 10, "kind": kind} for name, size, kind in (
        ("a0", 3, "intermediate"), ("a1", 4, "intermediate"), ("a2", 2, "intermediate"), ("g2", 2, "gradient"), ("d2", 3, "intermediate"),
        ("g1", 3, "gradient"), ("d1", 2, "intermediate"), ("g0", 1, "gradient"), ("sum", 1, "output"))]
    ops = [{"name": name, "kind": "op", "stream": stream, "inputs": inputs, "outputs": outputs} for name, stream, inputs, outputs in (
        ("f0", 0, [], [0]), ("f1", 0, [0], [1]), ("f2", 0, [1], [2]), ("b2", 0, [2, 1], [3, 4]), ("b1", 0, [4, 0], [5, 6]),
        ("b0", 0, [6], [7]), ("reduce", 1, [3, 5, 7], [8]))]
    return write_graph(path, "bucket", ["compute", "comm"], ops, tensors, [[3, 5, 7]])


def draw_figures(tarn, work, folder):
    """Small graphs; nothing in them depends on a clock or on threads."""
    figure2, plan = os.path.join(GRAPHS, "figure2.json"), os.path.join(work, "figure2.plan")

    def draw(name, graph, options=(), axis="order", code=0, change=None):
        subprocess.run([tarn, "plan", graph, "-o", plan, "--effort", "1000", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        if change:
            with open(plan, encoding="utf-8") as file:
                made = change(json.load(file))
            with open(plan, "w", encoding="utf-8") as file:
                json.dump(made, file)
        done = subprocess.run([tarn, "show", graph, plan, "--axis", axis, "-o", os.path.join(folder, name + ".svg")], stderr=subprocess.DEVNULL, check=False)
        assert done.returncode == code, (name, done.returncode)

    draw("order", figure2)
    draw("held", figure2, axis="time")
    draw("cut", figure2, axis="cut")
    draw("coupled", figure2, ["--couple"], axis="cut")
    draw("group", bucket_graph(os.path.join(work, "bucket.json")), axis="cut")
    draw("spaces", os.path.join(GRAPHS, "offload.json"), axis="time")
    draw("wrong", figure2, axis="wrong", code=6, change=lambda made: {**made, "waits": [wait for wait in made["waits"] if wait != [5, 2]]})


def lose_a_wait(tarn, path, target):
    """The one without which the largest storage is read wrong; returns which violation says so, and is the one that its order shows."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    sizes, waits, best = {root: size for root, _, size in plan["storages"]}, plan["waits"], (0, 0, 0)
    for turn in range(len(waits) + 1):
        without = turn if turn < len(waits) else best[1]
        with open(target, "w", encoding="utf-8") as file:
            json.dump({**plan, "waits": waits[:without] + waits[without + 1:]}, file)
        said = subprocess.run([tarn, "verify", GOOGLENET, target, "--json"], capture_output=True, text=True, check=False).stdout
        for i, violation in enumerate(json.loads(said)["violations"]):
            if violation["witness"] and violation["witness"][-1][0] in (violation["op"], violation["other_op"]):
                best = max(best, (sizes.get(violation["tensor"], 0), without, i))
    return best[2]


def make(tarn, folder):
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    run = lambda *words: subprocess.run([tarn, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: E731
    run("plan", GOOGLENET, "-o", at("googlenet.plan"))
    run("show", GOOGLENET, at("googlenet.plan"), "-o", at("googlenet.html"))
    run("show", GOOGLENET, at("googlenet.plan"), "-o", os.path.join(HERE, "googlenet.svg"))
    draw_figures(tarn, folder, os.path.join(HERE, "how"))
    violation = lose_a_wait(tarn, at("googlenet.plan"), at("refused.plan"))
    run("show", GOOGLENET, at("refused.plan"), "-o", at("refused.html"))
    with Chromium() as browser:
        for page, picture, fragment in (
                ("googlenet", "page", "#theme=light"),
                ("googlenet", "why", "#theme=dark&axis=time&zoom=0.1,0.35&holder=mm_9"),
                ("refused", "refused", f"#theme=light&violation={violation}")):
            browser.open(at(page + ".html"), 1280, 800, fragment).screenshot(os.path.join(HERE, picture + ".png"))


with tempfile.TemporaryDirectory() as work:
    if len(sys.argv) > 2:
        draw_figures(os.path.abspath(sys.argv[1]), work, os.path.abspath(sys.argv[2]))
    else:
        make(os.path.abspath(sys.argv[1]), work)
