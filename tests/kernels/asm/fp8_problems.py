"""Inputs of the FP8 prefill kernel, and the answer of the CPU operator to the same codes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from custom_ops.expected import assert_close, assert_lse_close
from custom_ops.op_session import run_attention
from ml_dtypes import float8_e4m3fn
from numpy.typing import NDArray
from onnx import TensorProto
from reference.attention import from_bhsd
from reference.fp8_quantise import quantise
from reference.inputs import Shape, make
from zyfa_ort.kernels.asm.fp8_config import VALUE_DIM, Fp8Config

from kernels.asm import fp8_launch

Array = NDArray[Any]

TOLERANCES = {"bf16": "fp8_model_bfloat16", "f16": "fp8_model_bfloat16", "f32": "fp8_model"}
OP_OPTIONS = ("scale", "is_causal", "causal_alignment", "window_left", "layout")


@dataclass(frozen=True)
class Problem:
    """Codes in BHSD with their scales, and the options of the operator."""

    query: Array
    key: Array
    value: Array
    scales: dict[str, Array]
    options: dict[str, Any] = field(default_factory=dict)
    sinks: Array | None = None
    key_range: Array | None = None  # (B, 2)

    def tensors(self) -> list[Array]:
        layout = self.options.get("layout", "BHSD")
        return [np.ascontiguousarray(from_bhsd(t, layout, 4)) for t in (self.query, self.key, self.value)]

    def op_inputs(self) -> dict[str, Array]:
        inputs = dict(zip(("query", "key", "value"), self.tensors(), strict=True)) | self.scales
        if self.key_range is not None:
            at = np.arange(self.key.shape[2])
            inputs["key_mask"] = (at >= self.key_range[:, :1]) & (at < self.key_range[:, 1:])
        return inputs if self.sinks is None else inputs | {"sinks": self.sinks}

    def launch_options(self) -> dict[str, Any]:
        return {"layout": "BHSD"} | self.options | self.scales | {
            "sinks": self.sinks, "key_range": self.key_range}  # fmt: skip


def make_problem(
    q_len: int,
    kv_len: int = -1,
    *,
    family: str = "gauss",
    heads: int = 1,
    kv_heads: int = 1,
    batch: int = 1,
    head_dim: int = 128,
    sinks: Array | None = None,
    key_range: Array | list[list[int]] | None = None,
    scales: str = "batch_head",
    seed: int = 0,
    **options: Any,
) -> Problem:
    """A family of tests/reference/inputs.py quantised per (B, H); `scales` "tensor" or "head" coarsen them afterwards."""
    kv_len = q_len if kv_len < 0 else kv_len
    shape = Shape(batch, heads, kv_heads, max(q_len, kv_len, 1), head_dim, VALUE_DIM)
    q, k, v = make(family, shape, seed)
    coded = [quantise(t) for t in (q[:, :, :q_len], k[:, :, :kv_len], v[:, :, :kv_len])]
    cut = {"batch_head": np.s_[:], "head": np.s_[0], "tensor": np.s_[0, :1]}[scales]
    return Problem(
        *(np.array(t.codes.view(float8_e4m3fn)) for t in coded),
        scales={f"{name}_scale": np.array(t.scale[cut]) for name, t in zip("qkv", coded, strict=True)},
        options=options,
        sinks=None if sinks is None else np.asarray(sinks, np.float32),
        key_range=None if key_range is None else np.asarray(key_range, np.int32),
    )


def cpu_answer(problem: Problem, edges: str) -> dict[str, Array]:
    """output (float32) and lse of the operator on the CPU."""
    options = {"layout": "BHSD"} | {k: v for k, v in problem.options.items() if k in OP_OPTIONS}
    return run_attention(
        problem.op_inputs(), ("output", "lse"), fp8_edges=edges, out_dtype=TensorProto.FLOAT, **options
    )


def check(problem: Problem, config: Fp8Config, **launch: Any) -> tuple[Array, Array]:
    """The kernel against the CPU operator: output, lse, and nothing found wrong by the emulator."""
    output, lse, result = fp8_launch.run(
        config, *problem.tensors(), options=launch, **problem.launch_options()
    )
    assert result is None or not result.findings, result.table()
    wanted = cpu_answer(problem, config.edges)
    assert_close(output, wanted["output"], TOLERANCES[config.output])
    assert lse is not None
    assert_lse_close(lse, wanted["lse"], "fp8_model")
    return output, lse
