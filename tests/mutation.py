#!/usr/bin/env python3
"""Mutation of the code that plans depend on: graphs, safety, verifier, bound, placement, events. Each mutant (see
mutants.py) is compiled in a scratch copy of the tree, and tests run until one fails.

  tests/mutation.py [--mutants N] [--skip N] [--minutes M] [--folder FOLDER] [--again] [--only TEXT] [--trees N] [--rounds N] [--report]

  --mutants   how many are drawn, spread over the files (250)
  --skip      draws those that a sample of so many leaves (0)
  --minutes   begins no mutant after that time (TARN_CAMPAIGN, or until done); the next call goes on
  --folder    of the scratch trees and of what is known so far (build-mutation)
  --again     tests the survivors anew, with the tests of now
  --only      only files whose name has TEXT in it, or one of several texts with commas between them
  --trees     copies in which mutants are tested at a time (2)
  --rounds    of three: a 32nd of the random graphs, all of them, the sanitizers (3)
  --report    tests nothing, prints what is known

A mutant whose object file is the original's is no mutant. At first tests draw a 32nd of their random graphs; who
survives these meets all, then the sanitizers. The suites of SUITES for its file run, those first that have killed
most of its code in the least time, and under the sanitizers the quick ones of all others. A test that takes several times the processor time of
the original's is stopped, and counts as failed. Survivors that docs/trust.md lists with a reason are named so.
Exits 1 when fewer than 90 % are killed. Cost: some seconds a mutant, a minute a survivor.
"""
import argparse
import collections
import concurrent.futures
import fnmatch
import hashlib
import json
import os
import queue
import re
import resource
import shutil
import signal
import subprocess
import sys
import threading
import time

import mutants

SOURCE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
AIM = 0.9           # of the mutants, to be killed
MEMORY = 8 << 30    # bytes a test may map
LINKING = 0.5       # seconds before a test can begin
SKIPPED = 77        # exit status of a test that cannot run here
HALTING = {"UBSAN_OPTIONS": "halt_on_error=1", "ASAN_OPTIONS": "halt_on_error=1:detect_leaks=1"}

# about, most: seconds of processor time that a test takes at most which is about the file, and one that is not.
Round = collections.namedtuple("Round", "name about most options")
ROUNDS = [
    Round("few", 4, 0, ["-Dc_args=-DFEW_DRAWS"]),
    Round("all", 60, 0, []),
    Round("sanitized", 4, 0.3, ["-Doptimization=1", "-Db_sanitize=address,undefined", "-Db_lundef=false"]),
]
UNDECIDED = ["survived " + kind.name for kind in ROUNDS[:-1]]
SURVIVED = "survived " + ROUNDS[-1].name

# (what, files, suites that are about them)
SUITES = [
    ("safety", "streams/graph/races.c", "graph order exhaustive worlds bounds property"),
    ("safety", "streams/graph/clocks.c", "order pairs exhaustive verify worlds property"),
    ("safety", "streams/graph/builder_records.c", "graph order exhaustive worlds file property"),
    ("safety", "streams/graph/storages.c", "graph order exhaustive worlds place groups workspace property"),
    ("safety", "streams/order/view.c", "order couple reorder bounds gap_bound pairs worlds property"),
    ("safety", "streams/order/reuse.c", "order pairs exhaustive verify worlds property"),
    ("safety", "planner/papers/ancestors.c", "pairs order worlds property"),
    ("safety", "planner/papers/pair_matrix.c", "pairs order worlds property"),
    ("safety", "planner/papers/pairs.c", "pairs order worlds property"),
    ("safety", "planner/papers/stream_graph.c", "pairs order worlds property"),
    ("bound", "streams/order/antichain.c", "antichain bounds worlds figures certificate property plan_memory"),
    ("bound", "streams/order/events/cells.c", "antichain bounds order worlds figures certificate property plan_memory"),
    ("bound", "streams/order/gap*.c", "gap_bound bounds antichain worlds figures certificate property plan_memory"),
    ("bound", "streams/order/reserved.c", "groups order place bounds worlds figures certificate property plan_memory"),
    ("bound", "streams/order/worst.c", "bounds antichain summary order worlds figures certificate property plan_memory"),
    ("bound", "streams/order/peak.c", "summary bounds order worlds figures certificate property plan_memory"),
    ("bound", "streams/order/summary.c", "summary worlds figures certificate property plan_memory"),
    ("bound", "streams/verify/bound*.c", "verify bounds plan_file damage worlds certificate property plan_memory"),
    ("events", "streams/order/events/events.c", "order boundary simulator property plan_memory"),
    ("events", "streams/order/events/boundary.c", "boundary boundary_run order property plan_memory"),
    ("events", "streams/plan/switch*.c", "switch arena adopt family"),
    ("events", "streams/plan/sweep.c", "switch arena adopt"),
    ("events", "streams/order/simulator.c", "simulator property plan_memory"),
    ("events", "streams/plan/program.c", "verify boundary simulator executor property plan_memory"),
    ("verifier", "streams/verify/refine*.c", "refine verify transform reorder damage property verify_memory"),
    ("verifier", "streams/verify/switch/*.c", "switch arena adopt"),
    ("verifier", "streams/verify/form.c", "verify plan_file damage property verify_memory"),
    ("verifier", "streams/verify/verdict.c", "verify damage property verify_memory"),
    ("verifier", "streams/verify/verify.c", "verify damage property verify_memory"),
    ("verifier", "streams/verify/replay*.c", "verify damage property verify_memory"),
    ("verifier", "streams/verify/byte_map.c", "verify damage property verify_memory"),
    ("verifier", "streams/verify/past.c", "verify damage exhaustive boundary property verify_memory"),
    ("verifier", "streams/verify/witness.c", "verify damage property verify_memory"),
    ("verifier", "streams/verify/control.c", "verify damage property verify_memory"),
    ("placement", "planner/place/exact/*.c", "exact limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/wi*.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/cuts.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/split.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/periods.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/bundle*.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/span_tree.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/targets.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/windows/field.c", "windows limits place quality figures property plan_memory"),
    ("placement", "planner/place/problem/part.c", "windows limits place exact quality figures property plan_memory"),
    ("placement", "planner/place/problem/problem.c", "place order exact limits quality figures property plan_memory"),
    ("placement", "planner/place/somas/*.c", "place quality anytime figures property plan_memory"),
    ("placement", "planner/plan_graph/plan_graph.c", "place groups limits anytime plan_contents bounds figures property plan_memory"),
    ("placement", "planner/plan_graph/spaces.c", "spaces place plan_contents property plan_memory"),
    ("placement", "planner/transform/pad_groups.c", "groups property"),
    ("placement", "planner/place/problem/block.c", "place order exact limits quality figures property plan_memory"),
    ("placement", "planner/place/problem/conflict.c", "place order limits lowest quality figures property plan_memory"),
    ("placement", "planner/place/problem/lifetimes.c", "windows place limits quality figures property plan_memory"),
    ("placement", "planner/place/core.c", "limits place exact quality figures property plan_memory"),
    ("placement", "planner/place/place.c", "place limits anytime quality figures property plan_memory"),
    ("placement", "planner/place/stages.c", "place limits anytime exact quality figures property plan_memory"),
    ("placement", "planner/place/search.c", "lowest limits place anytime quality figures property plan_memory"),
    ("placement", "planner/place/local_search.c", "lowest limits place anytime quality figures property plan_memory"),
    ("placement", "planner/place/pass.c", "place limits anytime quality figures property plan_memory"),
    ("placement", "planner/place/effort/work.c", "place limits quality figures property plan_memory"),
    ("placement", "planner/place/problem/slot_set.c", "windows quality figures property plan_memory"),
    ("placement", "planner/place/lowest/replay.c", "lowest limits place quality figures property plan_memory"),
    ("placement", "planner/place/lowest/moves.c", "lowest limits place quality figures property plan_memory"),
    ("placement", "planner/place/improve.c", "limits place anytime quality figures property plan_memory"),
    ("placement", "streams/base/radix.c", "windows figures place quality property plan_memory"),
    ("placement", "planner/place/lowest/*.c", "lowest limits place quality figures property plan_memory"),
    ("placement", "planner/place/fold.c", "fold place limits quality figures property plan_memory"),
    ("transforms", "planner/budget/target.c", "budget budget_search budget_order capacity joint recompute_oracle property transform_memory"),
    ("transforms", "planner/pipeline.c", "transform budget capacity joint spaces recompute_oracle property transform_memory"),
    ("graph", "streams/graph/*.c", "graph bounds order repeat recompute spaces json file summary assign worlds property graph_memory"),
]
APART = ("planner/papers/llfb.c", "planner/papers/roam*.c", "planner/papers/*_tree.c")   # methods of papers, run only when asked for
NOT_RUN = ("cuda*", "device_*", "fake_cudart", "embed_*", "steady*", "executor_starpu", "fuzz*", "train*")  # nor scripts


def files():
    """file -> (what, its suites), of all files to mutate."""
    known = {}
    tracked = subprocess.run(["git", "ls-files", "*.c"], cwd=SOURCE, capture_output=True, text=True, check=True)
    for what, pattern, suites in SUITES:
        names = fnmatch.filter(tracked.stdout.split(), pattern)
        if not names:
            sys.exit("mutation: no file is called %s: mend SUITES" % pattern)
        for name in names:
            if not any(fnmatch.fnmatch(name, apart) for apart in APART):
                known.setdefault(name, (what, suites.split()))
    return known


def draw(count, skipped, only):
    """A fixed sample: from each file its share, and one mutant at least where that many are asked for, behind the
    share of a sample of those skipped."""
    pools = {}
    for name in sorted(files()):
        with open(os.path.join(SOURCE, name)) as source:
            pools[name] = mutants.mutants_of(name, source.read())
    total, before, drawn = sum(len(pool) for pool in pools.values()), 0, {}
    for name, pool in pools.items():
        after = before + len(pool)
        first, number = (max(of >= len(pools), of * after // total - of * before // total) for of in (skipped, count))
        drawn.update((mutant.key, mutant) for mutant in pool[first:][:number]
                     if any(text in name for text in only.split(",")))
        before = after
    return list(drawn.values())


class Tree:
    """A scratch copy of the project with a build of its own, for one round."""

    def __init__(self, folder, number, kind):
        self.round = kind
        self.source = os.path.join(folder, "%s-%d" % (kind.name, number))
        self.build = os.path.join(self.source, "build")

    def update(self):
        """Copies what has changed, and builds it."""
        tracked = subprocess.run(["git", "ls-files", "-z", "-co", "--exclude-standard"], cwd=SOURCE,
                                 capture_output=True, text=True, check=True)
        for name in filter(None, tracked.stdout.split("\0")):
            origin, copy = os.path.join(SOURCE, name), os.path.join(self.source, name)
            if not os.path.isfile(origin):
                continue
            os.makedirs(os.path.dirname(copy), exist_ok=True)
            if not os.path.exists(copy) or read(origin) != read(copy):
                shutil.copyfile(origin, copy)
                shutil.copymode(origin, copy)
        if not os.path.exists(os.path.join(self.build, "build.ninja")):
            linker = ["-Dc_link_args=-fuse-ld=lld", "-Dcpp_link_args=-fuse-ld=lld"] if shutil.which("ld.lld") else []
            run(["meson", "setup", self.build, self.source, "--buildtype=release", "-Ddebug=false",
                 "-Dtests=enabled", "-Dcuda=disabled", *self.round.options, *linker])
        with open(os.path.join(self.build, "meson-info", "intro-tests.json")) as listed:
            self.tests = {test["name"]: test for test in json.load(listed)
                          if not any(fnmatch.fnmatch(test["name"], name) for name in NOT_RUN)
                          and not (self.is_sanitized() and "tarn:release" in test["suite"])}
        self.tests = {name: test for name, test in self.tests.items() if self.program(name)}
        self.ninja(*sorted({self.program(name) for name in self.tests}))

    def is_sanitized(self):
        return any("sanitize" in option for option in self.round.options)

    def ninja(self, *targets):
        return subprocess.run(["ninja", "-C", self.build, *targets], stdout=subprocess.DEVNULL,
                              stderr=subprocess.DEVNULL, check=False).returncode == 0

    def object_of(self, name):
        """The path of a source file's object in the build folder."""
        with open(os.path.join(self.build, "compile_commands.json")) as commands:
            for entry in json.load(commands):
                path = os.path.normpath(os.path.join(entry["directory"], entry["file"]))
                if path == os.path.join(self.source, name):
                    return entry["output"]
        sys.exit("mutation: %s is not compiled" % name)

    def put(self, name, text):
        with open(os.path.join(self.source, name), "w") as file:
            file.write(text)

    def program(self, name):
        """What a test runs, relative to the build folder; None for a script."""
        path = os.path.relpath(os.path.join(self.build, self.command(name)[0]), self.build)
        return None if path.startswith("..") else path

    def command(self, name):
        """A test's command, without the wrapper that translates its report."""
        command = self.tests[name]["cmd"]
        return command[2:] if len(command) > 2 and command[1].endswith("tap.py") else command

    def test(self, name, seconds):
        """(passed, processor time). Ends with the first failure. The limit is one of processor time; to
        wait is allowed for longer, as the machine may be busy."""
        test = self.tests[name]
        process = subprocess.Popen(
            self.command(name), cwd=test["workdir"] or self.build, env={**os.environ, **HALTING, **test["env"]},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors="replace",
            start_new_session=True, preexec_fn=lambda: limit(seconds, 0 if self.is_sanitized() else MEMORY))
        patience = threading.Timer(60 + 20 * seconds, kill_all, [process.pid])
        patience.start()
        failed = any(re.match(r"not ok(?!.*# *SKIP)", line) for line in process.stdout)
        if failed:
            kill_all(process.pid)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        patience.cancel()
        kill_all(process.pid)  # what it has left
        process.stdout.close()
        return not failed and status in (0, SKIPPED << 8), used.ru_utime + used.ru_stime


def kill_all(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def limit(seconds, memory):
    resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
    if memory:  # sanitizers map more than there is
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 30, 1 << 30))


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(command):
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit("mutation: %s\n%s%s" % (" ".join(command), done.stdout, done.stderr))


class Campaign:
    """What is known: the original's processor time of every test, and each mutant's fate."""

    def __init__(self, folder, trees):
        self.trees = trees
        self.kills = collections.Counter()  # (folder of the source, suite) -> mutants
        self.path = os.path.join(folder, "state.json")
        self.state = {"times": {kind.name: {} for kind in ROUNDS}, "fates": {}, "seconds": 0}
        self.lock = threading.Lock()
        if os.path.exists(self.path):
            with open(self.path) as file:
                self.state = json.load(file)
        self.fates = self.state["fates"]

    def note(self, mutant, fate):
        self.fates[mutant.key] = fate
        self.kills[os.path.dirname(mutant.file), fate] += 1

    def save(self):
        with self.lock:
            with open(self.path + ".new", "w") as file:
                json.dump(self.state, file, indent=0)
            os.replace(self.path + ".new", self.path)

    def times(self, tree):
        return self.state["times"].setdefault(tree.round.name, {})

    def measure(self, tree, end):
        """The original's times. A test that fails without a mutant, or takes too long, tests no mutant."""
        times = self.times(tree)
        longest = max(tree.round.about, tree.round.most)
        named = {name for _, suites in files().values() for name in suites}

        def one(name):
            version = hashlib.sha1(read(os.path.join(tree.build, tree.program(name)))).hexdigest()
            if name in times and times[name]["version"] == version or time.monotonic() > end:
                return
            passed, seconds = tree.test(name, longest + 1)
            if not passed and seconds < longest:
                print("mutation: %s fails without a mutant, in round %s" % (name, tree.round.name))
            times[name] = {"version": version, "seconds": round(seconds, 2), "passed": passed}
            self.save()

        with concurrent.futures.ThreadPoolExecutor(self.trees) as pool:
            list(pool.map(one, sorted(name for name in tree.tests if name in named or tree.round.most)))

    def order(self, tree, file, about):
        """The tests to run: those about the file, then others; of each first what has killed most for its time."""
        def cost(name):
            kills = self.kills[os.path.dirname(file), name]
            return name not in about, (LINKING + self.times(tree)[name]["seconds"]) / (1 + kills), name

        return sorted((name for name, known in self.times(tree).items() if known["passed"] and name in tree.tests
                       and known["seconds"] <= (tree.round.about if name in about else tree.round.most)), key=cost)

    def fate(self, tree, mutant, about):
        """The suite that kills it; "equivalent", "refused" by the compiler, or the round that it survived."""
        output = tree.object_of(mutant.file)
        original = read(os.path.join(SOURCE, mutant.file)).decode()
        tree.put(mutant.file, original)
        if not tree.ninja(output):
            sys.exit("mutation: %s does not compile" % mutant.file)
        before = read(os.path.join(tree.build, output))
        tree.put(mutant.file, mutant.text)
        try:
            if not tree.ninja(output):
                return "refused"
            if read(os.path.join(tree.build, output)) == before:
                return "equivalent"
            for name in self.order(tree, mutant.file, about):
                if not tree.ninja(tree.program(name)):
                    return "refused"
                if not tree.test(name, 4 + 4 * self.times(tree)[name]["seconds"])[0]:
                    return name
            return "survived " + tree.round.name
        finally:
            tree.put(mutant.file, original)


def test_all(campaign, sample, kind, folder, end):
    known, trees = files(), queue.Queue()
    if not sample or time.monotonic() > end:
        return
    for number in range(campaign.trees):
        tree = Tree(folder, number, kind)
        tree.update()
        trees.put(tree)
    campaign.measure(tree, end)

    def one(mutant):
        if time.monotonic() > end:
            return
        tree, began = trees.get(), time.monotonic()
        fate = campaign.fate(tree, mutant, known[mutant.file][1])
        trees.put(tree)
        campaign.note(mutant, fate)
        campaign.save()
        print("%s:%d: %s (%.0f s): %s -> %s" % (mutant.file, mutant.line, fate, time.monotonic() - began,
                                               *mutant.shown), flush=True)

    with concurrent.futures.ThreadPoolExecutor(campaign.trees) as pool:
        for done in [pool.submit(one, mutant) for mutant in sample]:
            done.result()


def report(campaign, sample, seconds):
    """Tables of what was killed by which suite and of the survivors; True when the aim is met."""
    known = files()
    counts, killers = collections.Counter(), collections.defaultdict(collections.Counter)
    survivors = []
    for mutant in sample:
        fate = campaign.fates.get(mutant.key)
        what = known[mutant.file][0]
        if fate in (None, "refused", "equivalent"):
            counts[fate] += 1
            continue
        counts["tested"] += 1
        counts["undecided"] += fate in UNDECIDED
        fate = SURVIVED if fate in UNDECIDED else fate
        killers[what][fate] += 1
        if fate == SURVIVED:
            survivors.append(mutant)
    print("| code | mutants | killed | by |\n|---|--:|--:|---|")
    for what, by in killers.items():
        tested, killed = sum(by.values()), sum(by.values()) - by[SURVIVED]
        names = ", ".join("%s %d" % (name, n) for name, n in by.most_common() if name != SURVIVED)
        print("| %s | %d | %d | %s |" % (what, tested, killed, names))
    trust = os.path.join(SOURCE, "docs", "trust.md")
    listed = read(trust).decode() if os.path.exists(trust) else ""
    for mutant in survivors:
        place = "%s:%d" % (mutant.file, mutant.line)
        print("survived%s: %s: %s -> %s" % (" (listed)" if mutant.key in listed else "", place, *mutant.shown),
              "[%s]" % mutant.key)
    killed = counts["tested"] - len(survivors)
    print("%d tested, %d killed (%.1f %%), %d survived (%d have rounds to go); %d with the original's code, %d do not compile, %d not tested yet" %
          (counts["tested"], killed, 100 * killed / max(1, counts["tested"]), len(survivors), counts["undecided"], counts["equivalent"],
           counts["refused"], counts[None]))
    new = [mutant for mutant in survivors if mutant.key not in listed]
    print("# campaign | one-token mutants of safety, verifier, bound, placement, events | %d | %d | %s" %
          (counts["tested"], seconds, "%d survivors, %d of them listed" % (len(survivors), len(survivors) - len(new))
           if survivors else "0"))
    return killed >= AIM * counts["tested"]


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--mutants", type=int, default=250)
    parser.add_argument("--skip", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=float(os.environ.get("TARN_CAMPAIGN") or 1e6))
    parser.add_argument("--folder", default=os.path.join(SOURCE, "build-mutation"))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--trees", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=len(ROUNDS))
    parser.add_argument("--report", action="store_true")
    asked = parser.parse_args()
    began = time.monotonic()
    end = began + 60 * asked.minutes
    os.makedirs(asked.folder, exist_ok=True)
    campaign = Campaign(os.path.abspath(asked.folder), asked.trees)
    sample = draw(asked.mutants, asked.skip, asked.only)
    for mutant in sample:
        campaign.note(mutant, campaign.fates.get(mutant.key))
    if not asked.report:
        if asked.again:
            for key in [key for key, fate in campaign.fates.items() if fate == SURVIVED]:
                campaign.fates[key] = None
        listed = read(os.path.join(SOURCE, "docs", "trust.md")).decode()
        sample.sort(key=lambda mutant: (mutant.key in listed, mutant.key))
        for kind, fate in list(zip(ROUNDS, [None, *UNDECIDED]))[:asked.rounds]:
            left = [mutant for mutant in sample if campaign.fates.get(mutant.key) == fate]
            test_all(campaign, left, kind, os.path.abspath(asked.folder), end)
    campaign.state["seconds"] += int(time.monotonic() - began)
    campaign.save()
    sys.exit(0 if report(campaign, sample, campaign.state["seconds"]) else 1)


if __name__ == "__main__":
    main()
