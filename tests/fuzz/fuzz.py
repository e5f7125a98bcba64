"""Runs one fuzzer: first what was found before, then for some time from the seeds and from what earlier
runs have kept. TAP on stdout, and a line for the campaign's table.

fuzz.py TARGET PROGRAM SEEDS SOURCE BUILD

TARN_FUZZ_SECONDS says how long (60). BUILD gets corpus/TARGET, and found/TARGET-... where an input ends the
program.
"""
import os
import pathlib
import re
import subprocess
import sys

target, program = sys.argv[1], os.path.abspath(sys.argv[2])
seeds, source, build = (pathlib.Path(word) for word in sys.argv[3:])
seconds = int(os.environ.get("TARN_FUZZ_SECONDS", "60"))
DICTIONARIES = {"pair": ["graph", "plan"], "calls": []}
# To weigh inputs by how rare their features are takes longer than to run them, where there are many.
OPTIONS = {"calls": ["-max_len=400", "-entropic=0"]}


def dictionary():
    """The option that names one file with the entries of all that are for the target."""
    names = DICTIONARIES.get(target, [target])
    path = build / (target + ".dict")
    path.write_text("".join((source / "tests/fuzz" / (name + ".dict")).read_text() for name in names))
    return ["-dict=%s" % path] if names else []


def run(*arguments):
    options = ["-timeout=60", "-rss_limit_mb=3000", "-artifact_prefix=%s/%s-" % (found, target)]
    return subprocess.run([program, *options, *map(str, arguments)], text=True, errors="replace",
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)


def report(number, name, done):
    """The last lines of what ended the program, and how to see it again."""
    print("%sok %d - %s" % ("not " if done.returncode else "", number, name))
    if done.returncode == 0:
        return
    for line in done.stdout.splitlines()[-60:]:
        print("#", line)
    for path in re.findall(r"Test unit written to (\S+)", done.stdout):
        print("# repeat: %s %s" % (program, path))
        print("# smaller: %s -minimize_crash=1 -runs=10000 %s" % (program, path))


def last(pattern, text):
    matches = re.findall(pattern, text)
    return matches[-1] if matches else "0"


corpus, found = build / "corpus" / target, build / "found"
corpus.mkdir(parents=True, exist_ok=True)
found.mkdir(exist_ok=True)
print("1..2")
former = sorted((source / "tests/data/fuzz" / target).glob("*"))
before = run(*former) if former else subprocess.CompletedProcess([], 0, "", "")
report(1, target + "_keeps_its_promises_on_what_was_found_before", before)
after = run(corpus, seeds / target, *dictionary(), "-max_total_time=%d" % seconds,
            *OPTIONS.get(target, ["-max_len=20000"]), "-print_final_stats=1")
report(2, target + "_keeps_its_promises_on_new_inputs", after)
runs = last(r"number_of_executed_units: (\d+)", after.stdout)
edges, features = last(r"cov: (\d+)", after.stdout), last(r"ft: (\d+)", after.stdout)
ended = ", ".join(re.findall(r"Test unit written to (\S+)", before.stdout + after.stdout)) or "0"
print("# campaign | fuzzer %s: %s edges, %s features | %s | %d | %s" % (target, edges, features, runs, seconds, ended))
sys.exit(before.returncode != 0 or after.returncode != 0)
