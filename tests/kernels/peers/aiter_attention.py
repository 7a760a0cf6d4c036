"""Launches the BF16 prefill kernels that AMD ships for gfx950 on the emulated device."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

import ml_dtypes
import numpy as np
from zyfa_ort.kernels.emulator import Result, launch


@dataclass(frozen=True)
class ShippedKernel:
    """What AMD's host code knows about one of its code objects."""

    file: str
    symbol: str
    head_dim: int
    causal: bool
    query_tile: int
    block: int


HD128 = ShippedKernel("fwd_hd128_bf16.co", "_ZN5aiter19fmha_fwd_hd128_bf16E", 128, False, 256, 512)
HD128_CAUSAL = ShippedKernel(
    "fwd_hd128_bf16_causal.co", "_ZN5aiter26fmha_fwd_hd128_bf16_causalE", 128, True, 256, 512
)
HD192_CAUSAL = ShippedKernel(
    "fwd_hd192_hd128_bf16_causal.co", "_ZN5aiter32fmha_fwd_hd192_hd128_bf16_causalE", 192, True, 128, 256
)
VALUE_DIM = 128
KERNARG_BYTES = 512


def kernel_arguments(kernel: ShippedKernel, query, key, value, output, lse, scale, addresses) -> bytes:
    """The packed argument struct: one field per 16 bytes, strides in bytes."""
    queries, heads = query.shape[1:3]
    keys, kv_heads = key.shape[1:3]
    tuning = 3 if kernel.causal and (heads % 8 or queries > 16384) else 5
    fields = {
        0x50: np.float32(scale), 0x60: queries, 0x70: query.strides[1], 0x80: kernel.query_tile * query.strides[1],
        0x90: query.strides[2], 0xA0: query.strides[0], 0xB0: heads // kv_heads, 0xC0: key.strides[1],
        0xD0: key.strides[2], 0xE0: key.strides[0], 0xF0: tuning, 0x100: 1, 0x110: keys, 0x120: kernel.head_dim,
        0x130: VALUE_DIM, 0x140: heads, 0x150: value.strides[1], 0x160: value.strides[2], 0x170: value.strides[0],
        0x180: output.strides[1], 0x190: output.strides[2], 0x1A0: output.strides[0], 0x1D0: lse.strides[1],
    }  # fmt: skip
    packed = bytearray(KERNARG_BYTES)
    for offset, address in zip((0x00, 0x10, 0x20, 0x30, 0x40), addresses, strict=True):
        struct.pack_into("<Q", packed, offset, address)
    for offset, field in fields.items():
        struct.pack_into("<f" if isinstance(field, np.floating) else "<I", packed, offset, field)
    return bytes(packed)


def run(
    folder: Path, kernel: ShippedKernel, query, key, value, scale, **options
) -> tuple[np.ndarray, np.ndarray, Result]:
    """(output, lse, launch result) for bf16 (B, S, H, D) inputs; output (B, Sq, H, 128) bf16, lse (B, H, Sq) float32."""
    batch, queries, heads, _ = query.shape
    output = np.zeros((batch, queries, heads, VALUE_DIM), ml_dtypes.bfloat16)
    lse = np.zeros((batch, heads, queries), np.float32)
    buffers = {"output": output, "query": query, "key": key, "value": value, "lse": lse}
    tiles = -(-queries // kernel.query_tile)
    grid = (-(-tiles // 2) if kernel.causal else tiles, heads, batch)
    result = launch(
        (folder / "fmha_v3_fwd" / kernel.file).read_bytes(), kernel.symbol, grid, (kernel.block,), buffers,
        kernarg=lambda addresses: kernel_arguments(kernel, query, key, value, output, lse, scale, addresses),
        **options,
    )  # fmt: skip
    return output, lse, result


def reference(query, key, value, scale, causal) -> tuple[np.ndarray, np.ndarray]:
    """float64 attention, keys aligned at the end (bottom right): output (B, Sq, H, Dv), lse (B, H, Sq)."""
    q, k, v = (np.asarray(x, np.float64) for x in (query, key, value))
    group = q.shape[2] // k.shape[2]
    k, v = np.repeat(k, group, axis=2), np.repeat(v, group, axis=2)
    scores = np.einsum("bqhd,bkhd->bhqk", q, k) * scale
    if causal:
        rows, columns = np.indices(scores.shape[-2:])
        scores = np.where(columns <= rows + k.shape[1] - q.shape[1], scores, -np.inf)
    top = scores.max(-1, keepdims=True)
    p = np.exp(scores - top)
    total = p.sum(-1, keepdims=True)
    return np.einsum("bhqk,bkhd->bqhd", p / total, v), (top + np.log(total))[..., 0]
