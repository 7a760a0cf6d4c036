"""Decode of one query row is the last row of a prefill: two kernels, one answer."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from reference.attention import attention
from zyfa_ort.kernels.asm.fp8_config import Fp8Config
from zyfa_ort.kernels.emulator import Device

from kernels.asm import fp8_launch
from kernels.asm.fp8_problems import make_problem
from kernels.hip import prefill_launch
from kernels.hip.decode_launch import HEAD_DIMS, SOURCE, Decoding, Problem
from zyfa_ort.numerics import LSE_TOLERANCES, TOLERANCES

Array = NDArray[Any]
SPLITS = 3


def decoded(problem: Problem) -> tuple[Array, Array]:
    """Output (B, 1, H, Dv) and lse (B, H, 1), float32."""
    job, device = Decoding(problem, SPLITS, 16), Device()
    for kernel, grid, block in job.launches:
        result = device.launch(
            prefill_launch.code(SOURCE), kernel, grid, block, job.buffers(), kernarg=job.packed
        )
        assert not result.findings, result.table()
    return job.out, job.lse


@pytest.mark.parametrize("keys", [1, 33, 257, 500])
@pytest.mark.parametrize("dims", HEAD_DIMS)
def test_bf16_decode_is_the_last_row_of_bf16_prefill(dims: tuple[int, int], keys: int) -> None:
    """The two sum in other orders and round P against other maxima: the tolerance of BF16 against float64."""
    tensors = prefill_launch.gaussian((2, 8, 2), keys, keys, dims)
    output, lse, result = prefill_launch.run(tensors)
    assert not result.findings and lse is not None
    last = Problem(tensors["query"][:, -1:].copy(), tensors["key"], tensors["value"], out_dtype=np.float32)
    row, row_lse = decoded(last)
    assert not TOLERANCES["bf16"].violations(row, output[:, -1:])
    np.testing.assert_allclose(row_lse, lse[..., -1:], rtol=1e-6, atol=LSE_TOLERANCES["bf16"])


@pytest.mark.parametrize(("head_dim", "keys"), [(128, 33), (128, 700), (192, 257)])
def test_decode_of_an_e4m3_cache_beside_fp8_prefill(head_dim: int, keys: int) -> None:
    """Decode is the exact softmax of the codes, prefill adds the error of its rounded P, each within its own tolerance."""
    problem = make_problem(keys, heads=8, kv_heads=2, batch=2, head_dim=head_dim, layout="BSHD")
    query, key, value = problem.tensors()
    row, row_lse = decoded(Problem(query[:, -1:].copy(), key, value, **problem.scales, out_dtype=np.float32))
    exact = attention(**problem.op_inputs(), layout="BSHD", rows=[keys - 1])
    assert not TOLERANCES["bf16"].violations(row, exact.output[:, -1:])
    config = Fp8Config(head_dim=head_dim, output="f32")
    output, lse, result = fp8_launch.run(config, query, key, value, **problem.launch_options())
    assert result is not None and not result.findings and lse is not None
    assert not TOLERANCES["fp8"].violations(output[:, -1:], row)
    np.testing.assert_allclose(lse[..., -1:], row_lse, rtol=1e-6, atol=LSE_TOLERANCES["fp8"])
