"""The devices that an estimate can be for: memory, and what a roofline needs to know."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Optional, Union

import tarn

MIB, GIB = 1 << 20, 1 << 30


@dataclass(frozen=True)
class Device:
    """One accelerator. Bytes, bytes/s, FLOP/s, seconds.

    usable      bytes that programs can allocate before anything is there
    context     bytes of `usable` that the driver and the modules of kernels take
    libraries   blocks that libraries take from PyTorch's allocator and keep (cuBLAS's workspaces)
    bandwidth   of a copy, reading and writing together
    rates       FLOP/s of dense matrix products by type: "fp8", "half" (fp16 and bf16), "tf32",
                "fp32", "fp64"; a type that is missing has half the rate of the next smaller one
    link        bytes/s between two devices, for data-parallel steps
    launch      the shortest time of a kernel
    call        time of the host for one call of PyTorch
    type        as PyTorch calls it: "cuda" (AMD's, too) or "cpu"
    capability  as torch.cuda.get_device_capability() returns it
    cudnn_attention   whether PyTorch prefers cuDNN's attention on it
    efficiency  share of a rate that kernels reach, by kind of op: "product", "convolution",
                "attention", "attention_fp32", "unaligned_half", "unaligned", "memory\""""
    name: str
    usable: int
    bandwidth: float
    rates: Mapping[str, float]
    context: int = 600 * MIB
    libraries: tuple[int, ...] = (32 * MIB, 32 * MIB, MIB)
    link: float = 300e9
    launch: float = 4e-6
    call: float = 28e-6
    type: str = "cuda"
    capability: tuple[int, int] = (9, 0)
    cudnn_attention: bool = False
    efficiency: Mapping[str, float] = field(default_factory=dict)

    @property
    def kept(self) -> int:
        """Bytes that CUDA and its libraries keep."""
        return self.context + sum(self.libraries)

    @property
    def alignment(self) -> int:
        """Of the blocks of PyTorch's allocator."""
        return 512 if self.type == "cuda" else 64

    def share(self, kind: str) -> float:
        return self.efficiency.get(kind, EFFICIENCY[kind])

    def rate(self, kind: str) -> float:
        order = ("fp8", "half", "tf32", "fp32", "fp64")
        for steps, name in enumerate(reversed(order[:order.index(kind) + 1])):
            if name in self.rates:
                return self.rates[name] / float(1 << steps)
        return max(self.rates.values())


# Products whose rows do not begin at multiples of 16 bytes (a vocabulary of 50257, say) take slower
# kernels. Attention in fp32 is made of three products in TF32 each.
EFFICIENCY = {"product": 0.6, "unaligned_half": 0.12, "unaligned": 0.2, "convolution": 0.6,
              "attention": 0.45, "attention_fp32": 0.06, "memory": 0.85}

_HOPPER = {"fp8": 1979e12, "half": 989e12, "tf32": 495e12, "fp32": 67e12, "fp64": 67e12}
_AMPERE = {"half": 312e12, "tf32": 156e12, "fp32": 19.5e12, "fp64": 19.5e12}
_AMPERE_LIBRARIES = (8 * MIB, 8 * MIB, MIB)

H100 = Device("H100", 79 * GIB, 3.0e12, _HOPPER, link=450e9, cudnn_attention=True)
H200 = replace(H100, name="H200", usable=139 * GIB, bandwidth=4.3e12)
B200 = Device("B200", 178 * GIB, 7.1e12,
              {"fp8": 4500e12, "half": 2250e12, "tf32": 1125e12, "fp32": 75e12, "fp64": 37e12},
              link=900e9, capability=(10, 0), cudnn_attention=True)
A100 = Device("A100-80GB", 79 * GIB, 1.7e12, _AMPERE, context=500 * MIB,
              libraries=_AMPERE_LIBRARIES, capability=(8, 0))
A100_40 = replace(A100, name="A100-40GB", usable=39 * GIB, bandwidth=1.35e12)
MI300X = Device("MI300X", 191 * GIB, 4.3e12,
                {"fp8": 2614e12, "half": 1307e12, "tf32": 654e12, "fp32": 163e12, "fp64": 163e12},
                link=448e9, capability=(9, 4), efficiency={"product": 0.45, "attention": 0.35})
CPU = Device("CPU", 16 * GIB, 20e9, {"half": 200e9, "tf32": 100e9, "fp32": 100e9, "fp64": 50e9},
             context=0, libraries=(), link=1e9, launch=1e-6, call=4e-6, type="cpu",
             efficiency={"attention_fp32": 0.4, "unaligned": 0.6, "unaligned_half": 0.3})

DEVICES = {device.name.upper(): device for device in (H100, H200, B200, A100, A100_40, MI300X, CPU)}
DEVICES["A100"] = A100


def find(device: Union[str, Device], memory: Optional[int] = None) -> Device:
    """A Device by its name, in whatever case. memory: bytes that are usable instead of its own."""
    if not isinstance(device, Device):
        known = DEVICES.get(str(device).upper().replace("_", "-"))
        if known is None:
            raise tarn.UsageError(f"device {str(device)!r} is not known: use one of "
                                  f"{', '.join(sorted(DEVICES))}, or a tarn.torch.Device of your "
                                  "own")
        device = known
    if memory is not None:
        if memory <= 0:
            raise tarn.UsageError(f"memory is a number of bytes above 0, not {memory}")
        device = replace(device, usable=int(memory))
    return device
