"""Runs the rules of a test program: its functions whose names are sentences, in a folder of their own. TAP on stdout."""
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import cases


def run(names, home):
    rules = [value for name, value in names.items() if name.count("_") >= 3 and getattr(value, "__module__", "") == "__main__"]
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            cases.run(rules)
        finally:
            os.chdir(home)
