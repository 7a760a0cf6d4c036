"""Python and C++ choose the same, to the byte of the arguments and of the refusals, and the choice is what its page says."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
from kernels.select.cpp_select import cpp_choice
from kernels.select.random_problems import python_choice, random_problem
from zyfa_ort.kernels.select import REFUSALS, make_problem, select
from zyfa_ort.kernels.select.checks import needs_general
from zyfa_ort.kernels.select.plan import decode_splits
from zyfa_ort.kernels.select.steps import quantize_blocks
from zyfa_ort.kernels.select.table import KERNELS, markdown

DOCS = Path(__file__).parents[3] / "docs"
SEEDS, SLOW_SEEDS = 6000, 200_000


def compare(first: int, count: int) -> Counter[str]:
    """How often each kernel and each refusal came out."""
    seen: Counter[str] = Counter()
    for seed in range(first, first + count):
        p = random_problem(seed)
        chosen = python_choice(p)
        assert cpp_choice(p) == chosen, f"seed {seed}: {p}"
        kernels = [line.split()[2] for line in chosen.splitlines() if line.startswith("launch")]
        seen.update(kernels or [chosen])
    return seen


def test_random_problems() -> None:
    """They reach every row that attention can need and every refusal."""
    seen = compare(0, SEEDS)
    wanted = {r.kernel for r in KERNELS if r.family != "hadamard" and r.rounding != "truncate"}
    assert wanted <= set(seen)
    for name, refusal in REFUSALS.items():
        if name == "tensor_dims":
            continue
        parts = (refusal.what.split("{}")[0], refusal.expected.split("{")[0], f"; {refusal.advice}")
        assert any(all(part in text for part in parts) for text in seen), refusal


@pytest.mark.slow
def test_many_random_problems() -> None:
    compare(SEEDS, SLOW_SEEDS)


@pytest.mark.parametrize(
    ("visible", "tiles", "batch_heads", "splits"),
    [(4096, 1, 8, 32), (32768, 1, 8, 64), (0, 1, 1, 1), (128, 1, 1, 1), (129, 1, 1, 2), (10**9, 4, 1000, 1)],
)
def test_splits_of_decode(visible: int, tiles: int, batch_heads: int, splits: int) -> None:
    assert decode_splits(visible, tiles, batch_heads) == splits


def test_splits_follow_the_window_and_not_the_values() -> None:
    """Their number is part of the result's bits."""

    def grid(**rest: int) -> int:
        return select(make_problem(q_len=1, new_len=32768, **rest)).launches[0].grid[0]  # type: ignore[arg-type]

    assert grid() == 256
    assert grid(window_left=1000) == 8
    assert grid(window_left=1000, batch=3) == 8


def test_blocks_of_quantise() -> None:
    assert quantize_blocks(8, 4096 * 128) == 128
    assert quantize_blocks(1, 64) == 1
    assert quantize_blocks(2000, 10**8) == 1
    assert quantize_blocks(8, 0) == 1
    assert quantize_blocks(0, 0) == 1


@pytest.mark.parametrize(
    ("scale", "general"),
    [
        (0.69, False),
        (0.6900001, True),
        (1e-37, False),
        (9e-38, True),
        (0.0, True),
        (-0.1, True),
        (0.125, False),
    ],
)
def test_scales_of_the_general_kernel(scale: float, general: bool) -> None:
    assert needs_general(make_problem(q_len=64, scale=scale)) == general


def test_the_sixteenth_row_is_the_last_that_is_decoded() -> None:
    for rows, family in ((16, "decode"), (17, "bf16_prefill")):
        assert select(make_problem(q_len=rows)).launches[0].row.family == family
    assert select(make_problem(q_len=16, softcap=1.0)).launches[0].row.family == "bf16_prefill_general"


def test_the_docs_have_the_table() -> None:
    assert markdown() in (DOCS / "kernels.md").read_text(encoding="utf-8")


def test_why_of_decode_says_that_it_is_not_the_scheme_of_fp8() -> None:
    why = select(make_problem(q_len=1, dtype="float8e4m3fn")).why
    assert "exact softmax of the FP8 inputs" in why
    assert "exact softmax of the FP8 inputs" in (DOCS / "numerics.md").read_text(encoding="utf-8")
