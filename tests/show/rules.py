"""Runs the rules of a test program: its functions whose names are sentences, in a folder of their own. TAP on stdout."""
import os
import tempfile
import traceback


def run(names, home):
    rules = [value for name, value in names.items() if name.count("_") >= 3 and getattr(value, "__module__", "") == "__main__"]
    failures = 0
    print(f"1..{len(rules)}", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        for number, rule in enumerate(rules, 1):
            try:
                rule()
                print(f"ok {number} - {rule.__name__}", flush=True)
            except Exception:  # whatever it is, the others are asked too
                failures += 1
                print(f"not ok {number} - {rule.__name__}", "# " + traceback.format_exc().replace("\n", "\n# "), sep="\n", flush=True)
        os.chdir(home)
    raise SystemExit(failures > 0)
