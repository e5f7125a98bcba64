"""The wheel that `pip install .` makes: it carries the library and all files of the package, and works
without anything else, where neither the repository nor torch can be imported. TAP on stdout.

    tests/with_torch.sh tests/torch/wheel_test.py SOURCE"""
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from cases import run

SOURCE = Path(sys.argv[1])
PROGRAM = """
import sys, tarn, tarn.torch
assert tarn.__file__.startswith(sys.argv[1]), tarn.__file__
plan = tarn.plan(sys.argv[2], reorder=True)
plan.verify()
assert plan.footprint >= plan.bound > 0 and tarn.torch.snapshot.load
assert "torch" not in sys.modules
"""


def a_wheel_works_by_itself():
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps",
                        "-w", folder, SOURCE], check=True)
        wheel, = Path(folder).glob("tarn-*.whl")
        with zipfile.ZipFile(wheel) as archive:
            names = set(archive.namelist())
            archive.extractall(Path(folder, "there"))
        files = [str(path.relative_to(SOURCE / "python")) for path in SOURCE.glob("python/tarn/**/*")
                 if path.is_file() and path.suffix != ".pyc"]
        assert {*files, "tarn/libtarn_python.so"} <= names, sorted({*files} - names)
        clean = {name: value for name, value in os.environ.items() if name != "TARN_LIBRARY"}
        there = str(Path(folder, "there"))
        subprocess.run([sys.executable, "-S", "-c", PROGRAM, there,
                        SOURCE / "examples/graphs/alexnet_b1_adam.ddp.json"],
                       check=True, cwd=folder, env={**clean, "PYTHONPATH": there})


if __name__ == "__main__":
    run([a_wheel_works_by_itself])
