"""Makes the pictures of the documents anew: make.py TARN. Needs Chromium (tests/setup.sh browser)."""
import json
import os
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
SOURCE = os.path.dirname(os.path.dirname(HERE))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(SOURCE, "tests/show"))
from chromium import Chromium  # noqa: E402

GOOGLENET = os.path.join(SOURCE, "examples/graphs", "googlenet_b1_adam.ddp_branch4.json.gz")


def lose_a_wait(tarn, path, target):
    """The one without which the largest storages are no longer apart; returns which violation says so."""
    with open(path, encoding="utf-8") as file:
        plan = json.load(file)
    sizes, waits, best = {root: size for root, _, size in plan["storages"]}, plan["waits"], (0, 0, 0)
    for turn in range(len(waits) + 1):
        without = turn if turn < len(waits) else best[1]
        with open(target, "w", encoding="utf-8") as file:
            json.dump({**plan, "waits": waits[:without] + waits[without + 1:]}, file)
        said = subprocess.run([tarn, "verify", GOOGLENET, target, "--json"], capture_output=True, text=True, check=False).stdout
        for i, violation in enumerate(json.loads(said)["violations"]):
            least = min(sizes.get(violation["tensor"], 0), sizes.get(violation["other_tensor"], 0))
            if violation["kind"] == "unordered overlap":
                best = max(best, (least, without, i))
    return best[2]


def make(tarn, folder):
    at = lambda name: os.path.join(folder, name)  # noqa: E731
    run = lambda *words: subprocess.run([tarn, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # noqa: E731
    run("plan", GOOGLENET, "-o", at("googlenet.plan"))
    run("show", GOOGLENET, at("googlenet.plan"), "-o", at("googlenet.html"))
    run("show", GOOGLENET, at("googlenet.plan"), "-o", os.path.join(HERE, "googlenet.svg"))
    violation = lose_a_wait(tarn, at("googlenet.plan"), at("refused.plan"))
    run("show", GOOGLENET, at("refused.plan"), "-o", at("refused.html"))
    with Chromium() as browser:
        for page, picture, fragment in (
                ("googlenet", "page", "#theme=light"),
                ("googlenet", "why", "#theme=dark&axis=time&zoom=0.1,0.35&holder=mm_9"),
                ("refused", "refused", f"#theme=light&violation={violation}")):
            browser.open(at(page + ".html"), 1280, 800, fragment).screenshot(os.path.join(HERE, picture + ".png"))


with tempfile.TemporaryDirectory() as work:
    make(os.path.abspath(sys.argv[1]), work)
