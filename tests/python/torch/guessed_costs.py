"""Guessed seconds of a launch on an H100: its bytes at 2.5 TB/s, products at 400 Tflop/s (attention 300), 2 us for the launch."""
import math
import re

BYTES, FLOPS, ATTENTION, LAUNCH = 2.5e12, 4e14, 3e14, 2e-6


def updating(size):
    """Seconds of Adam, without its launch, for gradients of so many bytes: it reads four tensors of that size, and writes three."""
    return 7 * size / BYTES


def seconds(kind, read, made):
    """kind: the name of an operator or a kernel; read, made: tensors."""
    least = sum(t.nbytes for t in {id(t): t for t in [*read, *made]}.values()) / BYTES
    half = 1 if all(t.element_size() == 2 for t in read[:2]) else 2  # TF32
    if re.search(r"(^|\.)(b|add|badd|bias_add)?b?mm(\.|$)", kind):
        one, two = read[-2:]
        least = max(least, half * 2 * one.numel() * two.shape[-1] / FLOPS)
    if "attention" in kind:
        batch, heads, length, width = next(t for t in read if t.dim() == 4).shape
        least = max(least, (5 if "backward" in kind else 2) * half * batch * heads * length * length * width / ATTENTION)
    if "convolution" in kind:
        weights = [t for t in read if t.dim() == 4]
        if "backward" in kind and len(weights) > 2:  # the gradient of what it made, what it read, its weight
            flops = 4 * weights[0].numel() * math.prod(weights[2].shape[1:])
        else:
            flops = 2 * made[0].numel() * math.prod(weights[1].shape[1:])
        least = max(least, half * flops / FLOPS)
    return least + LAUNCH
