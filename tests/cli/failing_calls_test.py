"""The command where single calls fail: allocations, work on files and new threads, each in turn, in every verb; and
where it is killed at each piece of work on a file. What holds then:

  - the exit code is a documented one, and standard error says truly what was in the way;
  - exit code 0 means that all output is there, as without trouble;
  - an output file is the old one or the new one, whole; only a killed command leaves a temporary file.

    failing_calls_test.py SOURCE TARN FAILING_CALLS.so

Of many calls some are tried, at equal distances. With TARN_CAMPAIGN=MINUTES all, as far as the time goes."""
import concurrent.futures
import os
import random
import sys
import tempfile
import threading
import time

import cases
import command_cases

OLD = b"what was there before\n"
SYSTEM = 8
KILLED = -9


class Attempt:
    """One run of a case with one call that fails."""

    def __init__(self, case, kind, way, number):
        self.case, self.kind, self.way, self.number = case, kind, way, number
        self.has_old = number % 2 == 0  # output files are there before
        self.failed = None  # name and path of the call

    def __str__(self):
        return f"{self.case}: {self.kind} {self.way} {self.number} ({' '.join(self.failed or ['none'])})"

    def find_fault(self, tester, folder):
        """None, or what does not hold."""
        for name in os.listdir(folder):
            if name != "in":
                os.remove(os.path.join(folder, name))
        for path in self.case.outputs if self.has_old else ():
            with open(os.path.join(folder, path), "wb") as file:
                file.write(OLD)
        done = tester.run(self.case, folder, f"{self.kind} {self.way} {self.number}")
        self.failed = done.failed
        return self.find_fault_of_files(folder, done) or self.find_fault_of_answer(done)

    def find_fault_of_files(self, folder, done):
        left = set(os.listdir(folder)) - {"in", *self.case.outputs}
        if done.returncode == KILLED:
            left = {name for name in left if not (name.startswith("tarn-") and name.endswith(".tmp"))}
        if left:
            return f"leaves {left}"
        for path in self.case.outputs:
            old, content = OLD if self.has_old else None, None
            if os.path.exists(os.path.join(folder, path)):
                with open(os.path.join(folder, path), "rb") as file:
                    content = command_cases.settled_file(path, file.read())
            if content != self.case.files[path] and (content != old or done.returncode == self.case.code):
                return f"{path} is neither the old file nor the new one: {content and content[:80]}"
        return None

    def find_fault_of_answer(self, done):
        code, case = done.returncode, self.case
        if self.way == "kill" and self.failed:
            return None if code == KILLED else f"not killed, exit code {code}"
        if code == case.code:
            is_told = code != 0 and b"standard output: " in done.stderr
            if command_cases.settled(done.stdout) != case.stdout and not is_told:
                return f"standard output differs: {done.stdout}"
            return None
        if code != SYSTEM or not self.failed or self.way in ("again", "part"):
            return f"exit code {code}: {done.stderr}"
        return None if self.tells_truth(done.stderr.decode()) else f"says '{done.stderr.decode()}'"

    def tells_truth(self, text):
        if not text.startswith("tarn: ") and "\ntarn: " not in text:
            return False
        if self.kind == "memory":
            return "out of memory" in text or "no thread" in text
        if self.kind == "threads":
            return "thread" in text
        path = self.failed[1] if len(self.failed) > 1 else ""
        names = [os.path.basename(path)]
        if names[0].startswith("tarn-"):
            names = list(self.case.outputs)
        if "pipe:" in path or path == os.devnull:
            names.append("standard output")
        if path.endswith(self.case.stdin):
            names.append("standard input")
        return any(name and name in text for name in names)


class Tester:
    def __init__(self, source, tarn, library, folder):
        self.tarn, self.library, self.folder = tarn, library, folder
        self.cases = command_cases.prepare(source, tarn, folder)
        self.workplaces = threading.local()

    def run(self, case, folder, setting=None):
        report = folder + ".report"
        env = dict(os.environ, LD_PRELOAD=self.library, FAILING_REPORT=report)
        if setting:
            env["FAILING_CALLS"] = setting
        if os.path.exists(report):
            os.remove(report)
        done = command_cases.call(self.tarn, case, folder, env)
        done.failed, done.calls = None, {}
        lines = open(report, encoding="utf-8").read().splitlines() if os.path.exists(report) else []
        for line in lines:
            key, *rest = line.split(" ", 2)
            if key == "failed":
                done.failed = done.failed or rest
            else:
                done.calls[key] = int(rest[0])
        return done

    def workplace(self):
        """A folder of this thread's own."""
        if not hasattr(self.workplaces, "folder"):
            self.workplaces.folder = tempfile.mkdtemp(dir=self.folder)
            os.symlink(os.path.join(self.folder, "in"), os.path.join(self.workplaces.folder, "in"))
        return self.workplaces.folder

    def count(self, kind):
        """For each case how many calls there are."""
        for case in self.cases:
            folder = self.workplace()
            done = self.run(case, folder)
            for path in case.outputs:
                os.remove(os.path.join(folder, path))
            if done.returncode != case.code:
                sys.exit(f"{case}: exit code {done.returncode} with calls counted: {done.stderr}")
            yield case, done.calls[kind]

    def attempts(self, kind, way, tries):
        for index, (case, calls) in enumerate(self.count(kind)):
            stride = 1 if cases.CAMPAIGN else max(1, calls // tries)
            for number in range(index % stride, calls, stride):
                yield Attempt(case, kind, way, number)

    def try_calls(self, kind, ways, tries, share):
        """tries: of each case and way; share: of the campaign's time."""
        begin = time.monotonic()
        attempts = [attempt for way in ways for attempt in self.attempts(kind, way, tries)]
        random.Random(1).shuffle(attempts)
        runs, found = 0, []

        def judge(attempt):
            if cases.CAMPAIGN and time.monotonic() - begin > cases.CAMPAIGN * share:
                return None
            fault = attempt.find_fault(self, self.workplace())
            return attempt, fault

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            for result in pool.map(judge, attempts):
                runs += result is not None
                if result and result[1]:
                    found.append(f"{result[0]}: {result[1]}")
        print(f"# {runs} runs in {time.monotonic() - begin:.1f} s, of {len(attempts)}")
        cases.judge(found, f"command: {kind} {'/'.join(ways)}", runs, begin)

    def an_allocation_that_fails_is_survived_or_told(self):
        self.try_calls("memory", ["fail"], 12, 0.4)

    def memory_that_has_run_out_is_told(self):
        self.try_calls("memory", ["all"], 5, 0.2)

    def work_on_a_file_that_fails_is_told(self):
        self.try_calls("files", ["fail"], 100, 0.1)

    def interrupted_and_partial_work_on_files_goes_on(self):
        self.try_calls("files", ["again", "part"], 12, 0.1)

    def threads_that_are_refused_are_done_without_or_told(self):
        self.try_calls("threads", ["fail", "all"], 100, 0.1)

    def a_killed_command_leaves_the_old_file_or_the_new_one(self):
        self.try_calls("files", ["kill"], 100, 0.1)


def main(source, tarn, library):
    with tempfile.TemporaryDirectory() as folder:
        tester = Tester(source, os.path.realpath(tarn), os.path.realpath(library), folder)
        cases.run([tester.an_allocation_that_fails_is_survived_or_told, tester.memory_that_has_run_out_is_told,
                   tester.work_on_a_file_that_fails_is_told, tester.interrupted_and_partial_work_on_files_goes_on,
                   tester.threads_that_are_refused_are_done_without_or_told,
                   tester.a_killed_command_leaves_the_old_file_or_the_new_one])


if __name__ == "__main__":
    main(*sys.argv[1:])
