"""The wheel that `pip install .` makes: it carries the library, the command and all files of the package,
and works without anything else, where neither the repository nor torch can be imported. TAP on stdout.

    tests/with_torch.sh tests/python/torch/wheel_test.py SOURCE"""
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
assert plan._repr_svg_().startswith("<svg")
assert "torch" not in sys.modules
"""


def a_wheel_works_by_itself():
    with tempfile.TemporaryDirectory() as folder:
        quick = "--config-settings=setup-args=-Doptimization=1"  # what is in a wheel does not depend on it
        subprocess.run([sys.executable, "-m", "pip", "wheel", "-q", "--no-build-isolation", "--no-deps", quick,
                        "-w", folder, SOURCE], check=True)
        wheel, = Path(folder).glob("tarn-*.whl")
        assert "-py3-none-" in wheel.name and not wheel.name.endswith("-any.whl"), wheel.name
        names = {name.split(".data/purelib/")[-1] for name in zipfile.ZipFile(wheel).namelist()}
        files = [str(path.relative_to(SOURCE / "python")) for path in SOURCE.glob("python/tarn/**/*")
                 if path.is_file() and path.suffix != ".pyc"]
        assert {*files, "tarn/libtarn_python.so"} <= names, sorted({*files} - names)
        there = Path(folder, "there")
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", there], check=True)
        subprocess.run([sys.executable, "-m", "pip", "--python", there / "bin/python", "install", "-q",
                        "--no-index", "--no-deps", wheel], check=True)
        clean = {name: value for name, value in os.environ.items()
                 if name not in ("TARN_LIBRARY", "TARN_COMMAND", "PYTHONPATH")}
        told = subprocess.run([there / "bin/tarn", "--version"], check=True, env=clean,
                              capture_output=True, text=True).stdout
        assert told == f"tarn {wheel.name.split('-')[1]}\n", told
        subprocess.run([there / "bin/python", "-c", PROGRAM, there,
                        SOURCE / "examples/graphs/alexnet_b1_adam.ddp.json"],
                       check=True, cwd=folder, env=clean)


if __name__ == "__main__":
    run([a_wheel_works_by_itself])
