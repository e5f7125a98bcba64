"""What the Python suites share: running every function of a module as a test, TAP on stdout."""
import os
import sys
import time
import traceback


def raises(error_type, function, *arguments, **named):
    try:
        function(*arguments, **named)
    except error_type as error:
        return error
    raise AssertionError(f"{error_type.__name__} was not raised")


_marked = []


def test(function):
    """Marks a function as one that run() runs when it is given no list."""
    _marked.append(function)
    return function


CAMPAIGN = float(os.environ.get("TARN_CAMPAIGN", "0")) * 60  # seconds that the long version may take; 0: the short one


def judge(found, what, runs, begin):
    """Fails if faults were found. Prints the campaign's line of so many runs since `begin`."""
    if CAMPAIGN:
        print(f"# campaign | {what} | {runs} | {time.monotonic() - begin:.0f} | {len(found)}", flush=True)
    assert not found, "\n".join(found[:20])


def run(tests=None):
    tests = _marked if tests is None else tests
    print(f"1..{len(tests)}")
    failed = False
    for number, function in enumerate(tests, 1):
        begin = time.monotonic()
        try:
            function()
            print(f"ok {number} - {function.__name__}", flush=True)
        except BaseException:  # pylint: disable=broad-except
            failed = True
            print(f"not ok {number} - {function.__name__}")
            print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), end="")
        if "-v" in sys.argv:
            print(f"# {time.monotonic() - begin:.2f} s", flush=True)
    sys.exit(failed)
