"""Fused FP8 and BF16 prefill attention for ONNX Runtime and MIGraphX on AMD Instinct MI355X, and on any CPU."""

from __future__ import annotations

from zyfa_ort.api import flash_attn_func, fuse, inspect, run, session
from zyfa_ort.library import library_path, register
from zyfa_ort.tensors import from_ortvalue, to_ortvalue

__all__ = [
    "compare",
    "flash_attn_func",
    "from_ortvalue",
    "fuse",
    "inspect",
    "library_path",
    "register",
    "run",
    "session",
    "to_ortvalue",
]
