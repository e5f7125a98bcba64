"""Which kernel of attention PyTorch chooses on a GPU, by types, shapes, masks and the flags of
torch.backends.cuda: the rules of ATen's sdp_utils.cpp, which asks a device that is not there."""
from __future__ import annotations

from typing import Any, Optional

import torch

from .costs import HALF
from .devices import Device

aten = torch.ops.aten
_pad = torch.nn.functional.pad


def _half(tensor: torch.Tensor) -> bool:
    return tensor.dtype in HALF


def _cudnn(device: Device, q: Any, k: Any, v: Any, mask: Any, causal: bool) -> bool:
    return (device.cudnn_attention and torch.backends.cuda.cudnn_sdp_enabled() and _half(q)
            and q.shape[-1] <= 128 and v.shape[-1] <= 128
            and q.shape[-1] % 8 == v.shape[-1] % 8 == 0
            and q.shape[-2] > 1 and k.shape[-2] > 1 and not (causal and q.shape[-2] > k.shape[-2])
            and (mask is None or not mask.requires_grad))


def _flash(_device: Device, q: Any, k: Any, v: Any, mask: Any, causal: bool) -> bool:
    return (torch.backends.cuda.flash_sdp_enabled() and _half(q) and mask is None
            and q.shape[-1] <= 256 and q.shape[-1] == v.shape[-1]
            and not (causal and q.shape[-2] != k.shape[-2]))


def _efficient(_device: Device, q: Any, k: Any, v: Any, _mask: Any, _causal: bool) -> bool:
    align = 8 if _half(q) else 4
    return (torch.backends.cuda.mem_efficient_sdp_enabled()
            and q.dtype in (torch.float32, *HALF)
            and q.shape[-1] % align == v.shape[-1] % align == 0
            and q.shape[-3] == k.shape[-3] == v.shape[-3])


def _call_flash(q: Any, k: Any, v: Any, dropout: float, causal: bool, scale: Any) -> Any:
    width = q.shape[-1]
    if width % 8:
        scale = width ** -0.5 if scale is None else scale
        q, k, v = (_pad(t, (0, 8 - width % 8)) for t in (q, k, v))
    made = aten._scaled_dot_product_flash_attention(q, k, v, dropout, causal, False, scale=scale)[0]
    return made[..., :width] if width % 8 else made


def _call_efficient(q: Any, k: Any, v: Any, mask: Any, keeps: bool, dropout: float, causal: bool,
                    scale: Any) -> Any:
    if mask is not None:
        mask = mask.expand(*q.shape[:-1], k.shape[-2])
        if mask.shape[-1] % 16:  # the kernel wants rows of 16 bytes
            mask = _pad(mask, (0, 16 - mask.shape[-1] % 16))[..., :mask.shape[-1]]
    return aten._scaled_dot_product_efficient_attention(q, k, v, mask, keeps, dropout, causal,
                                                        scale=scale)[0]


def attention_of(device: Device) -> Any:
    """What stands for aten::scaled_dot_product_attention on the device."""

    def attention(q: Any, k: Any, v: Any, mask: Optional[Any] = None, dropout: float = 0.0,
                  causal: bool = False, *, scale: Optional[float] = None,
                  enable_gqa: bool = False) -> Any:
        if mask is not None and mask.dtype == torch.bool:
            mask = torch.where(mask, 0.0, float("-inf")).to(q.dtype)
        keeps = torch.is_grad_enabled() and any(t.requires_grad for t in (q, k, v))
        fused = q.dim() == k.dim() == v.dim() == 4 and (
            enable_gqa or q.shape[-3] == k.shape[-3] == v.shape[-3])
        given = (device, q, k, v, mask, causal)
        if fused and _cudnn(*given):
            return aten._scaled_dot_product_cudnn_attention(q, k, v, mask, keeps, dropout, causal,
                                                            False, scale=scale)[0]
        if fused and _flash(*given):
            return _call_flash(q, k, v, dropout, causal, scale)
        if fused and _efficient(*given):
            return _call_efficient(q, k, v, mask, keeps, dropout, causal, scale)
        return aten._scaled_dot_product_attention_math(q, k, v, mask, dropout, causal, None,
                                                       scale=scale, enable_gqa=enable_gqa)[0]

    return attention
