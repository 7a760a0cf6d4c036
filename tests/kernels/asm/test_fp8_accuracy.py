"""The FP8 kernels' error against float64 attention of the same codes, beside the errors of models of other kernels."""

from __future__ import annotations

import numpy as np
import pytest
from kernels.asm.accuracy import (
    FP8_WITNESSES,
    WITNESSES,
    Measured,
    exact,
    kernel,
    mean_ratio,
    measure,
    model_problem,
    pooled,
)
from kernels.asm.accuracy_families import FAMILIES, make_family, quantised
from reference.attention import attention
from reference.fp8_model import run

from kernels.asm import smollm2_capture
from zyfa_ort.numerics import (
    FP8_CAPTURE_OVER_AITER,
    FP8_CAPTURE_OVER_LEAN,
    FP8_OVER_MODELLED,
    TOLERANCES,
    relative_error,
)

AITER, Z_RUN, NONE, HILO = FP8_WITNESSES


def test_exact_is_attention_one_row_at_a_time() -> None:
    rng = np.random.default_rng(0)
    q, k, v = (rng.standard_normal((2, heads, 90, 128)) for heads in (4, 2, 2))
    problem = quantised(q[:, :, 40:], k, v, scale=0.2)
    naive = attention(**problem.op_inputs(), layout="BHSD", scale=0.2).output
    np.testing.assert_allclose(exact(problem), naive, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("name", FAMILIES)
def test_error_over_that_of_aiter(name: str) -> None:
    """At most 1.10 of the ratio that the scheme was chosen for, on inputs where AITER's model has the error it had then."""
    family, problem = FAMILIES[name], make_family(name)
    expected = exact(problem)
    error = {who: relative_error(WITNESSES[who](problem), expected) for who in (AITER, Z_RUN, NONE, HILO)}
    assert error[AITER] == pytest.approx(family.aiter, rel=0.15)
    # Flat rows: 1.06 was drawn with the maximum at a lucky place of the grid of codes; Z-run has that grid too.
    lean = error[Z_RUN] if name == "flat" else family.none * error[AITER]
    assert error[HILO] <= FP8_OVER_MODELLED * family.hilo * error[AITER]
    assert error[NONE] <= FP8_OVER_MODELLED * lean
    assert error[HILO] < error[NONE]


@pytest.mark.parametrize("name", ["s8", "local"])
@pytest.mark.parametrize("edges", ["hilo", "none"])
def test_the_kernel_s_error_is_the_scheme_s(name: str, edges: str) -> None:
    """Not one part in a thousand comes from the kernel's own sums."""
    problem = make_family(name)
    scheme = run(model_problem(problem, edges)).output
    expected = exact(problem)
    by_kernel = relative_error(kernel(problem, edges), expected)
    assert by_kernel == pytest.approx(relative_error(scheme, expected), rel=1e-2)


def assert_bounds_of_captures(measured: dict[str, Measured]) -> None:
    hilo, aiter, lean = (pooled(measured[who].sums) for who in (HILO, AITER, Z_RUN))
    assert hilo <= FP8_CAPTURE_OVER_AITER * aiter
    assert hilo <= FP8_CAPTURE_OVER_LEAN * lean
    assert hilo <= TOLERANCES["fp8_capture"].relative
    assert measured[HILO].worst_row <= TOLERANCES["fp8_capture"].worst_row
    assert np.all(measured[HILO].heads < measured[AITER].heads)


def test_captured_heads() -> None:
    """4 heads of SmolLM2 at 2,048 tokens."""
    sample = smollm2_capture.load_sample()
    assert sample.codes["q"].shape == (1, len(smollm2_capture.SAMPLE), smollm2_capture.TOKENS, 64)
    assert_bounds_of_captures(measure([sample.problem()]))


@pytest.fixture(scope="module")
def whole_model() -> list[smollm2_capture.Capture]:
    return smollm2_capture.capture_model()


@pytest.mark.demo
@pytest.mark.slow
def test_the_kept_heads_are_those_of_the_model(whole_model: list[smollm2_capture.Capture]) -> None:
    """All but a few codes: torch's sums depend on the processor."""
    sample = smollm2_capture.load_sample()
    for at, (layer, head) in enumerate(smollm2_capture.SAMPLE):
        for name, here in (
            ("q", head),
            ("k", head // smollm2_capture.GROUP),
            ("v", head // smollm2_capture.GROUP),
        ):
            ours, kept = whole_model[layer].codes[name][0, here], sample.codes[name][0, at]
            assert np.mean(ours != kept) < 1e-2


# Modelled before the kernels existed, on 64 rows of each of 270 heads: pooled error, geometric mean over heads and worst row,
# each over AITER v3's.
MODELLED = {HILO: (0.092, 0.085, 0.041 / 0.48), NONE: (0.248, 0.390, 0.055 / 0.48)}


@pytest.mark.demo
@pytest.mark.slow
def test_all_heads_of_the_model(whole_model: list[smollm2_capture.Capture]) -> None:
    """30 layers of 9 heads at 2,048 tokens, every row."""
    measured = measure(layer.problem() for layer in whole_model)
    assert len(measured[HILO].sums) == 270
    assert_bounds_of_captures(measured)
    base = measured[AITER]
    for who, (pooled_ratio, mean, worst) in MODELLED.items():
        got = measured[who]
        assert pooled(got.sums) <= FP8_OVER_MODELLED * pooled_ratio * pooled(base.sums)
        assert mean_ratio(got, base) <= FP8_OVER_MODELLED * mean
        assert got.worst_row <= FP8_OVER_MODELLED * worst * base.worst_row
