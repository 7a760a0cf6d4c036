"""The choice of custom_ops/hip/select.cc, through the test-only library beside the operator library."""

from __future__ import annotations

import ctypes
import functools
from pathlib import Path
from typing import Any

from zyfa_ort.kernels.select import Problem, Strides
from zyfa_ort.kernels.select.arguments import GRANULARITIES
from zyfa_ort.kernels.select.problem import WORDS

import zyfa_ort

LIBRARY = "libzyfa_select.so"
COUNTS = (
    "batch", "q_heads", "kv_heads", "q_len", "new_len", "past_len", "qk_dim", "v_dim", "window_left",
)  # fmt: skip
VIEWS = ("query", "key", "value", "output", "bias")
SCALES = ("q_scale", "k_scale", "v_scale")
FLAGS = ("is_causal", "has_bias", "sinks", "lse", "present_key", "present_value")
NAMES = (
    "dtype", "out_dtype", "mask_dtype", "precision", "fp8_edges", "rotation", "causal_alignment", "key_mask",
    "byte_rounding",
)  # fmt: skip


class _Problem(ctypes.Structure):
    """custom_ops/hip/select_abi.h."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in COUNTS),
        *((name, ctypes.c_int64 * 4) for name in VIEWS),
        *((name, ctypes.c_int64 * 2) for name in SCALES),
        ("scale", ctypes.c_float),
        ("softcap", ctypes.c_float),
        *((name, ctypes.c_int32) for name in (*FLAGS, *NAMES)),
        ("architecture", ctypes.c_char_p),
    )


def c_problem(p: Problem) -> ctypes.Structure:
    """As the library takes it."""
    t = _Problem(scale=p.scale, softcap=p.softcap, architecture=p.arch.encode(), has_bias=p.bias is not None)
    for name in (*COUNTS, *(flag for flag in FLAGS if flag != "has_bias")):
        setattr(t, name, getattr(p, name))
    for name in VIEWS:
        s = getattr(p, name) or Strides()
        getattr(t, name)[:] = s.batch, s.head, s.row, s.column
    for name in SCALES:
        s = getattr(p, name)
        getattr(t, name)[:] = s.batch, s.head
    for name in NAMES:
        setattr(t, name, WORDS[name].index(getattr(p, name)))
    return t


def cpp_choice(p: Problem) -> str:
    """The text of the choice, or "refused: " and the message."""
    return _asked("zyfa_select", ctypes.byref(c_problem(p)))


def cpp_quantize(
    shape: tuple[int, int, int, int], dtype: str, granularity: str, rotation: str, layout: str, arch: str
) -> str:
    """The same for ZyfaQuantizeFp8."""
    batch, second, third, dim = shape
    heads, rows = (third, second) if layout == "BSHD" else (second, third)
    return _asked(
        "zyfa_select_quantize",
        *(ctypes.c_int64(size) for size in (batch, heads, rows, dim)),
        ctypes.c_int32(WORDS["dtype"].index(dtype)),
        ctypes.c_int32(layout == "BHSD"),
        ctypes.c_int32(GRANULARITIES[granularity]),
        ctypes.c_int32(WORDS["rotation"].index(rotation)),
        arch.encode(),
    )


def cpp_hadamard(count: int, dim: int, dtype: str, arch: str) -> str:
    """The same for ZyfaHadamard."""
    return _asked(
        "zyfa_select_hadamard",
        ctypes.c_int64(count),
        ctypes.c_int64(dim),
        ctypes.c_int32(WORDS["dtype"].index(dtype)),
        arch.encode(),
    )


def _asked(name: str, *arguments: Any) -> str:
    text = ctypes.create_string_buffer(1 << 16)
    function = getattr(_library(), name)
    function.restype = ctypes.c_int64
    length = function(*arguments, text, ctypes.c_int64(len(text)))
    assert abs(length) < len(text)
    return text.value.decode() if length >= 0 else f"refused: {text.value.decode()}"


@functools.cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(zyfa_ort.library_path()).with_name(LIBRARY)))
