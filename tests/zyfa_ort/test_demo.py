"""The main job on the real SmolLM2-135M: every site fused, the precisions in their order, and it talks."""

from __future__ import annotations

from pathlib import Path

import pytest

from zyfa_ort import numerics
from zyfa_ort.demo.main_job import Demo, Row, run_demo
from zyfa_ort.demo.variants import VARIANTS

pytestmark = pytest.mark.demo

# Shared with `make demo`: exporting takes half a minute or more.
CACHE = Path(__file__).parents[2] / ".cache" / "demo"


@pytest.fixture(scope="module")
def demo() -> Demo:
    return run_demo(CACHE, print, rounds=1)


@pytest.fixture(scope="module")
def rows(demo) -> dict[str, Row]:
    return {row.title: row for row in demo.rows}


def test_every_site_is_fused_in_every_variant(demo):
    assert [row.title for row in demo.rows] == [variant.title for variant in VARIANTS]
    assert {(row.fused, row.sites) for row in demo.rows} == {(30, 30)}


def test_fp32_is_the_same_model(rows):
    assert rows["fp32"].relative <= numerics.MODEL_BOUNDS["fp32"].relative
    assert rows["fp32"].top1 == 1.0


def test_bf16_is_close(rows):
    assert rows["bf16"].kl < numerics.MODEL_BOUNDS["bf16"].kl


def test_fp8_rows_come_in_the_order_that_was_measured_before(rows):
    """Plain 1.12e-2, rotated 6.2e-3, rotated with BF16 edges 7.1e-4 on another text of 1,024 tokens."""
    plain, rotated, edges = (
        rows[title].kl for title in ("fp8", "fp8 + hadamard", "fp8 + hadamard + bf16 edges")
    )
    assert plain > rotated > edges
    assert plain <= numerics.MODEL_BOUNDS["fp8"].kl
    assert edges <= numerics.MODEL_BOUNDS["fp8, bf16 edges"].kl


def test_the_fused_model_talks(demo):
    assert "red" in demo.answer.lower()
