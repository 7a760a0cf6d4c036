"""Every environment variable the project reads. Names and meanings live here and nowhere else in Python."""

from __future__ import annotations

import os
from dataclasses import dataclass


@dataclass(frozen=True)
class Variable:
    """An environment variable: its name and what it changes."""

    name: str
    meaning: str

    def get(self) -> str | None:
        """The value, None when unset or empty."""
        return os.environ.get(self.name) or None


LIBRARY = Variable("ZYFA_LIBRARY", "path of libzyfa_ort_ops.so, instead of the installed one")
CPU_ISA = Variable(
    "ZYFA_CPU_ISA",
    "instruction set of the CPU kernel: baseline (neon), avx2, avx512, avx512_bf16 or amx_bf16, instead of the best one",
)
ORT_INCLUDE_DIR = Variable("ZYFA_ORT_INCLUDE_DIR", "build time: folder that holds onnxruntime_c_api.h")
HIP_LIBRARY = Variable(
    "ZYFA_HIP_LIBRARY", "path of the HIP library, instead of ROCm's; the emulated device is one, too"
)
CODE_OBJECTS = Variable(
    "ZYFA_CODE_OBJECTS",
    "folders with the GPU kernels' code objects, colons between them, instead of the installed one",
)
MIGRAPHX_LIBRARY = Variable("ZYFA_MIGRAPHX_LIBRARY", "path of libmigraphx_c.so.3, instead of the system's")
PROBE_FILE = Variable(
    "ZYFA_PROBE_FILE", "where the answers of 'zyfa-ort doctor --probe' are kept, instead of the cache folder"
)
EMULATED_BYTE_ROUNDING = Variable(
    "ZYFA_EMULATED_BYTE_ROUNDING",
    "how v_cvt_pk_u8_f32 of the emulated HIP device rounds: nearest_even or truncate",
)
EMULATED_FAULT = Variable(
    "ZYFA_EMULATED_FAULT", "calls of the emulated HIP device that fail on purpose, such as malloc:3"
)

VARIABLES = (
    LIBRARY,
    CPU_ISA,
    HIP_LIBRARY,
    CODE_OBJECTS,
    MIGRAPHX_LIBRARY,
    PROBE_FILE,
    EMULATED_FAULT,
    EMULATED_BYTE_ROUNDING,
    ORT_INCLUDE_DIR,
)
