"""Runs in a process of its own under ZYFA_CPU_ISA: attention of every precision against what is expected.

Prints the instruction set that was taken.
"""

from __future__ import annotations

import ctypes

import ml_dtypes
import numpy as np
from custom_ops.expected import check_attention
from custom_ops.problems import Sizes, gaussian
from custom_ops.trace_library import library_path
from onnx import TensorProto

E4M3 = ml_dtypes.float8_e4m3fn
PRECISIONS = (
    (np.float32, {"precision": "fp32"}),
    (np.float16, {"precision": "fp32"}),
    (ml_dtypes.bfloat16, {"precision": "bf16"}),
    (np.float32, {"precision": "bf16"}),
    (np.float32, {"precision": "fp8", "rotation": "hadamard"}),
    (np.float32, {"precision": "fp8", "fp8_edges": "bf16"}),
    (E4M3, {"precision": "fp8", "out_dtype": TensorProto.FLOAT}),
    (E4M3, {"precision": "fp8", "out_dtype": TensorProto.BFLOAT16, "fp8_edges": "none"}),
)
# One lane block and more, all panel widths, rows of one and of two heads in a panel; dims with and without padding.
SIZES = (
    Sizes(q_len=1, kv_len=2100, head_dim=64),
    Sizes(q_len=5, kv_len=77, head_dim=32, v_head_dim=16),
    Sizes(q_len=33, kv_len=33, head_dim=128),
    Sizes(q_len=300, kv_len=300, head_dim=64),
    Sizes(heads=3, kv_heads=1, q_len=130, kv_len=190, head_dim=192, v_head_dim=128),
)


def main() -> None:
    for dtype, attributes in PRECISIONS:
        for sizes in SIZES:
            inputs = gaussian(sizes, dtype)
            check_attention(inputs, **attributes)
            mask = np.random.default_rng(1).random((sizes.batch, sizes.kv_len)) < 0.7
            check_attention({**inputs, "key_mask": mask}, window_left=60, **attributes)
    trace = ctypes.CDLL(str(library_path()))
    trace.zyfa_trace_isa.restype = ctypes.c_char_p
    print(trace.zyfa_trace_isa().decode())


if __name__ == "__main__":
    main()
