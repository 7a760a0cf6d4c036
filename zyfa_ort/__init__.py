"""Fused FP8 and BF16 prefill attention for ONNX Runtime and MIGraphX on AMD Instinct MI355X, and on any CPU."""

from __future__ import annotations

from zyfa_ort.library import library_path, register

__all__ = ["library_path", "register"]
