import math

import numpy as np
import pytest

from zyfa_ort import numerics
from zyfa_ort.numerics import LSE_TOLERANCES, TOLERANCES, Tolerance


def test_relative_error() -> None:
    assert numerics.relative_error(np.array([3.0, 4.0]), np.array([0.0, 4.0])) == pytest.approx(0.75)
    assert numerics.relative_error(np.zeros(3), np.zeros(3)) == 0
    assert numerics.relative_error(np.ones(3), np.zeros(3)) == math.inf
    assert math.isnan(numerics.relative_error(np.array([np.nan]), np.zeros(1)))


def test_worst_row_error_is_that_of_the_worst_row() -> None:
    expected = np.array([[10.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    actual = np.array([[10.0, 0.1], [1.0, 0.5], [0.0, 0.0]])
    assert numerics.worst_row_error(actual, expected) == pytest.approx(0.5)
    assert numerics.worst_row_error(np.zeros((0, 4)), np.zeros((0, 4))) == 0
    assert numerics.worst_row_error(np.zeros((3, 0)), np.zeros((3, 0))) == 0


def test_cosine_distance() -> None:
    assert numerics.cosine_distance(np.array([1.0, 0.0]), np.array([0.0, 2.0])) == pytest.approx(1)
    assert numerics.cosine_distance(np.array([1.0, 1.0]), np.array([2.0, 2.0])) == pytest.approx(0, abs=1e-15)
    assert numerics.cosine_distance(np.zeros(2), np.zeros(2)) == 0
    assert numerics.cosine_distance(np.zeros(2), np.ones(2)) == 1


def test_max_abs_error() -> None:
    assert numerics.max_abs_error(np.array([1.0, -2.0]), np.array([1.5, 2.0])) == 4
    assert numerics.max_abs_error(np.zeros(0), np.zeros(0)) == 0


def test_kl_divergence_by_hand() -> None:
    """(1/2, 1/2) against (1/4, 3/4): ln(2)/2 + ln(2/3)/2 = ln(4/3)/2; large offsets change nothing."""
    reference, other = np.zeros((1, 2)), np.log(np.array([[1.0, 3.0]]))
    assert numerics.kl_divergence(reference, other) == pytest.approx([math.log(4 / 3) / 2])
    assert numerics.kl_divergence(reference + 1e4, other - 1e4) == pytest.approx([math.log(4 / 3) / 2])
    assert numerics.kl_divergence(reference, reference) == pytest.approx([0])


def test_top1_agreement() -> None:
    reference = np.array([[0.0, 1.0], [1.0, 0.0]])
    assert numerics.top1_agreement(reference, np.array([[0.0, 2.0], [0.0, 2.0]])) == 0.5
    assert numerics.top1_agreement(np.zeros((0, 2)), np.zeros((0, 2))) == 1


def test_shapes_must_match() -> None:
    with pytest.raises(ValueError, match=r"shapes to compare: expected \(3,\), got \(2,\)"):
        numerics.relative_error(np.zeros(2), np.zeros(3))


def test_violations_name_metric_bound_and_value() -> None:
    tolerance = Tolerance(relative=1e-3, worst_row=1.0, derivation="by hand")
    assert tolerance.violations(np.array([1.0]), np.array([1.0])) == []
    assert tolerance.violations(np.array([3.0]), np.array([1.0])) == [
        "relative error: expected <= 1, got 2",
        "worst row error: expected <= 1, got 2",
    ]
    many = np.ones((64, 1))
    assert tolerance.violations(1.5 * many, many) == ["relative error: expected <= 0.001, got 0.5"]


def test_nan_never_passes() -> None:
    for tolerance in TOLERANCES.values():
        assert tolerance.violations(np.array([np.nan]), np.array([1.0]))


def test_every_tolerance_says_where_it_comes_from() -> None:
    for name, tolerance in TOLERANCES.items():
        assert tolerance.derivation, name
        assert 0 < tolerance.relative <= tolerance.worst_row, name
    assert all(bound > 0 for bound in LSE_TOLERANCES.values())
