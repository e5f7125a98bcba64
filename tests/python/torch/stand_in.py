"""Runs a program once more on no_gpu.c, a CUDA runtime that has memory, streams and events and computes nothing."""
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import torch


class NoGpu:
    """Triton's driver of an H100 that is not there: enough to generate code."""
    get_current_device = staticmethod(lambda: 0)
    get_device_interface = staticmethod(lambda: torch.cuda)
    is_active = staticmethod(lambda: True)
    utils = SimpleNamespace(get_device_properties=lambda _: {"max_shared_mem": 232448, "multiprocessor_count": 132})

    @staticmethod
    def get_current_target():
        from triton.backends.compiler import GPUTarget
        return GPUTarget("cuda", 90, 32)


def run_without_a_gpu(words, log=None):
    """words: the program and its arguments. log: a file for the calls; None: one that ends with the run. Returns the exit status."""
    include = next(Path(torch.__file__).parents[1].glob("nvidia/*/include/driver_types.h")).parent
    random = (Path(torch.__file__).parent / "include/ATen/cuda/detail/PhiloxCudaStateRaw.cuh").read_text(encoding="utf-8")
    intragraph = re.search(r"(\w+) offset_intragraph_ =", random).group(1)  # 32 bits in PyTorch 2.9
    with tempfile.TemporaryDirectory() as folder:
        for name in ("libno_gpu.so", "libcuda.so.1"):
            subprocess.run(["cc", "-O1", "-shared", "-fPIC", f"-DINTRAGRAPH={intragraph}", "-I", include, "-o", f"{folder}/{name}",
                            Path(__file__).with_name("no_gpu.c")], check=True)
        return subprocess.run([sys.executable, *words], check=False, env={
            **os.environ, "NO_GPU_LOG": log or f"{folder}/log", "LD_LIBRARY_PATH": folder,
            "LD_PRELOAD": f"{folder}/libno_gpu.so"}).returncode
