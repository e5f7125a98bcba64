"""The command in every verb under signals at random times, and where its output has no place to go. What holds then:

  - SIGINT and SIGTERM end it with exit code 130, unless it had ended before;
  - SIGKILL leaves every file as it was, or new and whole; the next run is not in the way of what the killed one left;
  - a search that is interrupted writes the best plan so far, which verifies, or says that there is none;
  - other signals leave no temporary file; a pipe without a reader, a file-size limit and a full disk exit 8.

    signals_test.py SOURCE TARN

With TARN_CAMPAIGN=MINUTES for as long as that."""
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

import cases
import command_cases
from command_cases import Case

OLD = b"what was there before\n"
INTERRUPTED, SYSTEM = 130, 8
BUDGET = 700_000
PATIENCE = 120  # seconds until a command that was told to end counts as one that hangs
ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)


def long_cases(folder):
    """Commands that take a while: some to be interrupted while they search, some wherever they are."""
    for name, graph in (("hard", command_cases.hard_graph()), ("deep", command_cases.training(400, 2))):
        with open(os.path.join(folder, f"in/{name}.json"), "w", encoding="utf-8") as file:
            json.dump(graph, file)
    search = "plan in/hard.json -o out.json --seconds"
    commands = [(Case(words.split(), ["out.json"] if "out.json" in words else []), seconds) for words, seconds in (
        (search + " 600", 0.4), (search + " 600 --threads 1 --method exact", 0.4),
        (search + " 600 --reorder --couple --in-place", 0.4),
        (f"plan in/deep.json -o out.json --budget {BUDGET} --reorder", 0.3),
        (f"plan in/deep.json -o out.json --budget {BUDGET}", 0.3),
        ("plan in/deep.json -o out.json --budget-curve 64", 0.5),
        (f"transform in/deep.json -o out.json --budget {BUDGET}", 0.3),
        ("transform in/deep.json -o out.json --reorder --couple --in-place", 0.1),
        ("assign in/deep.json -o out.json --streams 4", 0.02), ("convert in/deep.json out.json", 0.02),
        ("convert in/deep.json out.json --json", 0.02), ("info in/deep.json", 0.03), ("pairs in/deep.json", 0.03),
        ("run in/g.json --kernel spin:100000 --iterations 100000 --trace trace.json --flight flight", 0.2),
        ("run in/g.json --iterations 100000", 0.2))]
    return commands + [(Case("verify in/g.json in/unsafe.json --witness out.json".split(), ["out.json"], code=6), 0.01)]


def wait_until_begun(process):
    """Until the command has a handler for SIGINT, or has ended."""
    while process.poll() is None:
        with open(f"/proc/{process.pid}/status", encoding="ascii") as file:
            caught = [int(line.split()[1], 16) for line in file if line.startswith("SigCgt:")]
        if caught and caught[0] >> (signal.SIGINT - 1) & 1:
            return
        time.sleep(0.001)


class Tester:
    def __init__(self, source, tarn, folder):
        self.tarn, self.folder = tarn, folder
        self.cases = command_cases.prepare(source, tarn, folder)
        names = {word for case in self.cases for word in case.words}  # a build without methods of papers has no pairs
        self.long_cases = [(case, seconds) for case, seconds in long_cases(folder) if case.words[0] in names]

    def path(self, name):
        return os.path.join(self.folder, name)

    def clear(self):
        for name in os.listdir(self.folder):
            if name != "in":
                os.remove(self.path(name))

    def read(self, name):
        if not os.path.exists(self.path(name)):
            return None
        with open(self.path(name), "rb") as file:
            return file.read()

    # ---- Signals ----

    def interrupt(self, case, seconds, endings):
        """Sends the signals, one so many seconds after the other."""
        with subprocess.Popen([self.tarn, *case.words], cwd=self.folder, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
            wait_until_begun(process)
            for wait, ending in zip(seconds, endings):
                try:
                    process.wait(wait)
                except subprocess.TimeoutExpired:
                    process.send_signal(ending)
            try:
                _, text = process.communicate(timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                _, text = process.communicate()
                text = b"it went on for ever; " + text
        return process.returncode, text.decode()

    def is_whole(self, case, path, content):
        """Is it a file that the command can have meant?"""
        if path == "out.json" and content.startswith(b"budget_bytes,"):
            return content.endswith(b"\n")
        if path == "flight":
            return content.startswith(b"session of") and content.endswith(b"\n")
        try:
            whole = json.loads(content)
        except ValueError:
            return False
        if whole.get("format") == "tarn.plan":
            if "--budget" in case.words and whole["footprint_bytes"] > BUDGET:
                return False
            return command_cases.call(self.tarn, Case(["verify", case.words[1], path]), self.folder).returncode == 0
        if whole.get("format") == "tarn.graph":
            return command_cases.call(self.tarn, Case(["info", path]), self.folder).returncode == 0
        return True

    def find_fault(self, case, endings, code, text):
        """After one command that was interrupted."""
        killed = -signal.SIGKILL if signal.SIGKILL in endings else INTERRUPTED
        if code not in (case.code, INTERRUPTED, killed) or "for ever" in text:
            return f"exit code {code}: {text}"
        if code == INTERRUPTED and "interrupted" not in text:
            return f"says '{text}'"
        left = set(os.listdir(self.folder)) - {"in", "out.json", "trace.json", "flight"}
        if left and code != -signal.SIGKILL:
            return f"exit code {code}, leaves {left}"
        for path in ("out.json", "trace.json", "flight"):
            content = self.read(path)
            if content not in (None, OLD) and not self.is_whole(case, path, content):
                return f"{path} is not whole: {content[:100]}"
        is_search = case.words[0] == "plan" and "--budget" not in case.words and "--budget-curve" not in case.words
        has_plan = self.read("out.json") not in (None, OLD)
        if is_search and code == INTERRUPTED and len(endings) == 1 and not has_plan:
            return f"no plan was saved: {text}"
        return None

    def try_signals(self, name, endings_of, times):
        source, begin, runs, found = random.Random(2), time.monotonic(), 0, []
        while runs < times or time.monotonic() - begin < cases.CAMPAIGN / 3:
            case, seconds = self.long_cases[runs % len(self.long_cases)]
            endings = endings_of(source)
            waits = [source.random() * seconds] + [source.random() * 0.02 for _ in endings[1:]]
            self.clear()
            has_old = source.random() < 0.5
            for path in case.outputs if has_old else ():
                with open(self.path(path), "wb") as file:
                    file.write(OLD)
            code, text = self.interrupt(case, waits, endings)
            fault = self.find_fault(case, endings, code, text)
            if not fault and has_old and case.outputs and self.read(case.outputs[0]) is None:
                fault = "the old file is lost"
            if fault:
                found.append(f"{case} after {waits} s of {endings}: {fault}")
            runs += 1
        cases.judge(found, f"command: {name}", runs, begin)

    def a_signal_ends_every_verb_and_leaves_whole_files(self):
        self.try_signals("one signal", lambda source: [source.choice(ENDINGS)], 48)

    def two_signals_end_a_search_at_once(self):
        self.try_signals("two signals", lambda source: [source.choice(ENDINGS[:2]), source.choice(ENDINGS)], 32)

    # ---- Output that has no place to go ----

    def try_no_place(self, name, prefix, stdout, says, only_files):
        begin, runs, found = time.monotonic(), 0, []
        for case in self.cases:
            if only_files and not case.outputs:
                continue
            self.clear()
            for path in case.outputs:
                with open(self.path(path), "wb") as file:
                    file.write(OLD)
            with open(self.path(case.stdin), "rb") as stdin, stdout() as out:
                done = subprocess.run([*prefix, self.tarn, *case.words], cwd=self.folder, stdin=stdin, stdout=out,
                                      stderr=subprocess.PIPE, check=False)
            runs += 1
            # what a verdict says stays
            if done.returncode != (case.code or SYSTEM) and done.returncode != SYSTEM:
                found.append(f"{case}: exit code {done.returncode}: {done.stderr}")
            elif says.encode() not in done.stderr and not (case.code and not only_files):
                found.append(f"{case}: says {done.stderr}")
            elif only_files and self.read(case.outputs[0]) != OLD:
                found.append(f"{case}: {case.outputs[0]} has changed")
            elif set(os.listdir(self.folder)) - {"in", *case.outputs}:
                found.append(f"{case}: leaves {os.listdir(self.folder)}")
        cases.judge(found, f"command: {name}", runs, begin)

    def a_pipe_that_nobody_reads_exits_8(self):
        def closed_pipe():
            reader, writer = os.pipe()
            os.close(reader)
            return os.fdopen(writer, "wb")

        self.try_no_place("closed pipe", [], closed_pipe, "standard output: ", False)

    def a_full_disk_exits_8(self):
        if os.path.exists("/dev/full"):
            self.try_no_place("full disk", [], lambda: open("/dev/full", "wb"), "standard output: ", False)

    def a_file_size_limit_exits_8_and_keeps_the_old_file(self):
        self.try_no_place("file-size limit", ["sh", "-c", 'ulimit -f 0 && exec "$0" "$@"'], lambda: open(os.devnull, "wb"),
                          "File too large", True)


def main(source, tarn):
    with tempfile.TemporaryDirectory() as folder:
        tester = Tester(source, os.path.realpath(tarn), folder)
        cases.run([tester.a_signal_ends_every_verb_and_leaves_whole_files, tester.two_signals_end_a_search_at_once,
                   tester.a_pipe_that_nobody_reads_exits_8, tester.a_full_disk_exits_8,
                   tester.a_file_size_limit_exits_8_and_keeps_the_old_file])


if __name__ == "__main__":
    main(*sys.argv[1:])
