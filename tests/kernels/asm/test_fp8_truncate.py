"""FP8 prefill for devices whose v_cvt_pk_u8_f32 truncates: the same results there, worse ones on the other device."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close, assert_lse_close
from kernels.asm.fp8_problems import TOLERANCES as TOLERANCES_OF
from kernels.asm.fp8_problems import Array, Problem, cpu_answer, make_problem
from kernels.asm.test_fp8_bytes import compare, kernel_trace, small_integers
from reference.inputs import FAMILIES
from zyfa_ort.kernels.asm.fp8_config import ANCHOR_CODE, CODE_SHIFT, MOST_IN_RANGE, Fp8Config
from zyfa_ort.kernels.asm.fp8_prefill import generate

from kernels.asm import fp8_launch
from zyfa_ort.numerics import FP8_ROWS_WITH_TIES, LSE_TOLERANCES, TOLERANCES, relative_error

TRUNCATE = {"byte_rounding": "truncate"}


def config(**fields: Any) -> Fp8Config:
    return Fp8Config(conversion="truncate", **fields)


def error(problem: Problem, kernel: Fp8Config, rounding: str) -> float:
    """Relative to the CPU operator; NaN when an output is."""
    output, _, result = fp8_launch.run(
        kernel, *problem.tensors(), options={"byte_rounding": rounding}, **problem.launch_options()
    )
    assert result is not None and not result.findings
    return relative_error(output, cpu_answer(problem, kernel.edges)["output"])


def check(problem: Problem, kernel: Fp8Config) -> Array:
    """On a truncating device, against the CPU operator; the output."""
    output, lse, result = fp8_launch.run(
        kernel, *problem.tensors(), options=TRUNCATE, **problem.launch_options()
    )
    assert result is not None and not result.findings, result.table()
    wanted = cpu_answer(problem, kernel.edges)
    assert_close(output, wanted["output"], TOLERANCES_OF[kernel.output])
    assert lse is not None
    close = np.isclose(lse, wanted["lse"], rtol=1e-6, atol=LSE_TOLERANCES["fp8_model"])
    assert np.mean(close) >= 1 - FP8_ROWS_WITH_TIES
    assert_lse_close(lse, wanted["lse"], "fp8")
    return output


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["hilo", "none"])
def test_the_same_tolerances_on_its_device(family: str, edges: str) -> None:
    head_dim = 128 if edges == "hilo" else 192
    problem = make_problem(400, family=family, heads=2, head_dim=head_dim)
    check(problem, config(head_dim=head_dim, edges=edges, output="f32"))


@pytest.mark.parametrize("length", [1, 63, 64, 65, 255, 257])
def test_lengths(length: int) -> None:
    check(make_problem(length, 300, family="outlier"), config(edges="none"))


@pytest.mark.parametrize("scale", [-0.09, 0.0, 1.0, 300.0])
def test_softmax_scale(scale: float) -> None:
    check(make_problem(300, scale=scale), config(edges="none"))


def test_masks_sinks_and_windows() -> None:
    check(make_problem(300, 400, key_range=[[70, 290]], sinks=[0.5], window_left=100), config())


@pytest.mark.parametrize("edges", ["hilo", "none"])
def test_bytes_are_those_of_rounding_to_nearest(edges: str) -> None:
    """Exact scores that make no ties."""
    problem = small_integers(make_problem(330, heads=2, scale=0.05))
    compare(problem, config(edges=edges, trace=True), **TRUNCATE)


def test_ties_are_one_code_higher_at_most() -> None:
    """Codes at exact ties, and nothing else."""
    problem = make_problem(600, family="outlier", heads=2)
    codes = [
        kernel_trace(problem, Fp8Config(edges="none", trace=True, conversion=conversion), options)[3].astype(
            int
        )
        for conversion, options in (("nearest", {}), ("truncate", TRUNCATE))
    ]
    differ = codes[1] - codes[0]
    assert set(np.unique(differ)) <= {0, 1}
    assert np.count_nonzero(differ) <= 1e-5 * differ.size


@pytest.mark.parametrize("scale", [7.0, 1e5, 1e6])
def test_codes_never_pass_the_largest(scale: float) -> None:
    """Anchors so large that 8e is off by several codes: 127 would be NaN."""
    problem = small_integers(make_problem(300, scale=scale))
    output = check(problem, config(edges="none"))
    assert np.isfinite(output.astype(np.float32)).all()


@pytest.mark.parametrize("family", ["gauss", "outlier"])
def test_each_kernel_is_wrong_on_the_other_device(family: str) -> None:
    """Why the device has to be asked. Nearest on a truncating one: some percent off; the other way round: codes of 127."""
    problem = make_problem(600, family=family)
    nearest, truncate = Fp8Config(edges="none", output="f32"), config(edges="none", output="f32")
    bound = TOLERANCES["fp8_model"].relative
    assert error(problem, nearest, "nearest_even") < bound and error(problem, truncate, "truncate") < bound
    assert error(problem, nearest, "truncate") > 10 * bound
    assert np.isnan(error(problem, truncate, "nearest_even"))


def test_two_constants_differ_from_the_other_kernel() -> None:
    names = (Fp8Config().name, config().name)
    first, second = (
        generate(c).replace(name, "kernel").splitlines()
        for c, name in zip((Fp8Config(), config()), names, strict=True)
    )
    assert len(first) == len(second)
    changed = {(a.split(", ")[1], b.split(", ")[1]) for a, b in zip(first, second, strict=True) if a != b}
    largest = [MOST_IN_RANGE[one] for one in ("nearest", "truncate")]
    assert changed == {
        tuple(f"0x{np.float32(value).view(np.uint32):08x}" for value in pair)
        for pair in ([ANCHOR_CODE, ANCHOR_CODE + CODE_SHIFT["truncate"]], largest)
    }
    assert np.nextafter(np.float32(largest[1]), np.float32(200)) == 127


def test_refusal() -> None:
    with pytest.raises(ValueError, match=r"conversion must be one of \('nearest', 'truncate'\), got 'up'"):
        Fp8Config(conversion="up")
