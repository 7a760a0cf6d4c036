"""Fused FP8 and BF16 prefill attention for ONNX Runtime and MIGraphX on AMD Instinct MI355X, and on any CPU.

Names are looked up on first use, so that importing the package costs neither NumPy nor onnx.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zyfa_ort.api import flash_attn_func, fuse, inspect, run, session
    from zyfa_ort.compare import compare_models
    from zyfa_ort.library import library_path, register
    from zyfa_ort.tensors import from_ortvalue, to_ortvalue

__all__ = [
    "attention_kernels",
    "compare_models",
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

_HOMES = {
    "attention_kernels": "zyfa_ort.kernel_facts",
    "compare_models": "zyfa_ort.compare",
    "flash_attn_func": "zyfa_ort.api",
    "from_ortvalue": "zyfa_ort.tensors",
    "fuse": "zyfa_ort.api",
    "inspect": "zyfa_ort.api",
    "library_path": "zyfa_ort.library",
    "register": "zyfa_ort.library",
    "run": "zyfa_ort.api",
    "session": "zyfa_ort.api",
    "to_ortvalue": "zyfa_ort.tensors",
}
_MODULES = ("errors", "export", "migraphx", "numerics", "schemas", "symbolic_shapes")


def __getattr__(name: str) -> object:
    if name in _MODULES:
        return importlib.import_module(f"zyfa_ort.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_MODULES})
