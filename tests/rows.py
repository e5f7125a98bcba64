"""Tests in Python as TAP: functions marked with @test run in order, and one that raises has failed."""
import sys

_tests = []


def test(function):
    _tests.append(function)
    return function


def main():
    failed = 0
    print(f"1..{len(_tests)}")
    for number, function in enumerate(_tests, 1):
        try:
            function()
            print(f"ok {number} - {function.__name__}", flush=True)
        except Exception as error:  # pylint: disable=broad-except
            failed = 1
            print(f"not ok {number} - {function.__name__}")
            print("# " + f"{type(error).__name__}: {error}"[:1500].replace("\n", "\n# "), flush=True)
    sys.exit(failed)
