"""The ranks of a test: processes of gloo that have imported a program once, and run it in a child of their own as often as they are
asked, because importing takes seconds of processor time. Each has its own seed of hashes, as ranks of torchrun have, so that what
follows the order of a set differs among them."""
import atexit
import functools
import json
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading

# All cases with all their options: where models are asked for (tests/run.sh --with torch-models), or a long campaign.
IS_LONG = "torch-models" in os.environ.get("TARN_REQUIRE", "") or "TARN_CAMPAIGN" in os.environ


class Rank:
    """One rank of a program."""

    def __init__(self, program, number):
        self.is_ready, self.child = False, 0
        self.server = subprocess.Popen([sys.executable, __file__, str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       env={**os.environ, "PYTHONHASHSEED": str(number + 1)})

    def wait(self):
        """Until it has imported its program."""
        self.is_ready = self.is_ready or bool(self.server.stdout.readline())
        assert self.is_ready, "it cannot be imported"

    def start(self, arguments, errors):
        """errors: the file for what it writes to stderr."""
        print(json.dumps({"arguments": arguments, "errors": errors}), file=self.server.stdin, flush=True)
        self.child = int(self.server.stdout.readline())

    def end(self):
        """Its exit status."""
        status = int(self.server.stdout.readline())
        self.child = 0
        return status

    def kill(self):
        if self.child:
            os.kill(self.child, signal.SIGKILL)

    def close(self):
        self.server.stdin.close()
        self.server.wait()


@functools.cache
def rank(program, number):
    made = Rank(program, number)
    atexit.register(made.close)
    return made


def run(program, count, *cases, seconds=600):
    """Runs cases of a program on so many ranks: as its arguments, after the rank's number, their count and the file by which
    they meet. seconds: only what hangs takes them, however busy the machine is."""
    with tempfile.TemporaryDirectory() as folder:
        ranks = [rank(program, number) for number in range(count)]
        for each in ranks:
            each.wait()
        for number, each in enumerate(ranks):
            each.start([str(number), str(count), f"{folder}/store", *cases], f"{folder}/errors{number}")
        late = threading.Timer(seconds, lambda: [each.kill() for each in ranks])
        late.start()
        try:
            statuses = [each.end() for each in ranks]
        finally:
            late.cancel()
            for each in ranks:
                each.kill()  # where another one has no status
        errors = [open(f"{folder}/errors{number}", encoding="utf-8").read() for number in range(count)]
    assert not any(statuses), f"exit statuses {statuses}\n" + "\n".join(errors)


def named(name, program, count, *cases, **options):
    """A test that runs them."""
    function = functools.partial(run, program, count, *cases, **options)
    function.__name__ = name
    return function


def serve(program):
    """Imports and says so, then runs what each line of stdin asks for in a child, and prints its number and its exit status."""
    sys.argv = [program]
    runpy.run_path(program, run_name="imported")
    print("imported", flush=True)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            asked = json.loads(line)
            sys.argv = [program, *asked["arguments"]]
            for number, path, flags in ((0, os.devnull, os.O_RDONLY), (1, os.devnull, os.O_WRONLY),
                                        (2, asked["errors"], os.O_WRONLY | os.O_CREAT)):
                os.dup2(os.open(path, flags), number)
            runpy.run_path(program, run_name="__main__")
            return
        print(child, flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])
