"""Every refusal: one line with attribute, expectation, finding and advice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from zyfa_ort.kernels.select import REFUSALS, NoKernelError, make_problem, select
from zyfa_ort.kernels.select import plan as plan_module
from zyfa_ort.kernels.select.__main__ import main
from zyfa_ort.kernels.select.problem import Strides

FP8 = {"precision": "fp8", "q_len": 64}
CPU = "or run this node on the CPU"
CASES: list[tuple[str, dict[str, Any], str]] = [
    (
        "architecture", {"arch": "gfx942:sramecc+"},
        "architecture: expected gfx950, got gfx942:sramecc+; the kernels are compiled for it alone, run this node on the CPU",
    ),
    (
        "precision", {"dtype": "float"},
        f"precision: expected bf16 or fp8, got fp32; no GPU kernel computes in fp32: set precision, {CPU}",
    ),
    (
        "quantised_prefill", {"dtype": "float8e4m3fn", "precision": "bf16", "q_len": 17},
        "precision: expected fp8 with float8e4m3fn inputs and more than 16 query rows, got bf16; "
        f"set precision to fp8, {CPU}",
    ),
    (
        "fp8_edges", FP8 | {"fp8_edges": "bf16"},
        f"fp8_edges: expected hilo or none, got bf16; bf16 edge tiles have no GPU kernel: use hilo or none, {CPU}",
    ),
    (
        "softcap", FP8 | {"softcap": 30.0},
        "softcap: expected 0 unless precision is bf16, got 30; "
        f"use inputs that are not quantised and precision bf16, {CPU}",
    ),
    (
        "bias", FP8 | {"bias": (1, 1, 64, 64)},
        "attn_bias: expected none unless precision is bf16, got a bias; "
        f"use inputs that are not quantised and precision bf16, {CPU}",
    ),
    (
        "head_dims", FP8 | {"qk_dim": 80},
        "head_dim/v_head_dim: expected one of 64/64, 128/128, 192/128 (fp8_prefill), got 80/80; "
        f"pad the head dims, choose another precision, {CPU}",
    ),
    (
        "head_dims", {"qk_dim": 128, "v_dim": 64, "q_len": 64},
        "head_dim/v_head_dim: expected one of 64/64, 128/128, 192/128, 256/256 (bf16_prefill), got 128/64; "
        f"pad the head dims, choose another precision, {CPU}",
    ),
    (
        "mask_holes", FP8 | {"key_mask": "holes"},
        "key_mask: expected one run of visible keys per batch entry with precision fp8 and more than 16 query rows, "
        f"got a mask with holes; use inputs that are not quantised and precision bf16, {CPU}",
    ),
    (
        "length", {"new_len": 2**31},
        "keys: expected at most 2147483647, got 2147483648; split the batch or the sequence",
    ),
    (
        "quantized_rows", FP8 | {"new_len": 2**26 + 1},
        "keys: expected at most 67108864 to quantise, got 67108865; split the sequence",
    ),
    (
        "grid", {"batch": 65536, "q_len": 64},
        "grid of bf16_prefill_d128: expected at most 8388607x65535x65535 workgroups, got 1x1x65536; "
        "split the batch or the heads",
    ),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "problem", "message"), CASES, ids=[f"{n}-{i}" for i, (n, *_) in enumerate(CASES)]
)
def test_refusals(name: str, problem: dict[str, Any], message: str) -> None:
    with pytest.raises(NoKernelError) as refusal:
        select(make_problem(**problem))
    assert str(refusal.value) == message


def test_strides() -> None:
    whole = make_problem(q_len=64)
    wide = make_problem(q_len=64, dtype="float8e4m3fn")
    for p, message in (
        (
            replace(whole, key=Strides(2**24, 128, 2**24)),
            "key row stride: expected at most 33554431 bytes, got 33554432; copy it into a contiguous tensor",
        ),
        (
            replace(wide, query=Strides(2**26, 128, 2**25 + 16)),
            "query row stride: expected at most 33554432 bytes, got 33554448; copy it into a contiguous tensor",
        ),
        (
            replace(whole, value=Strides(8200, 132, 128)),
            "value stride: expected multiples of 16 bytes, got 264; copy it into a contiguous tensor",
        ),
        (
            replace(whole, bias=Strides(0, 0, 2**25)),
            "attn_bias row stride: expected at most 67108863 bytes, got 67108864; copy it into a contiguous tensor",
        ),
        (
            replace(make_problem(), query=Strides(2**33, 2**31, 128)),
            "query head stride: expected at most 4294967295 bytes, got 4294967296; copy it into a contiguous tensor",
        ),
    ):
        with pytest.raises(NoKernelError) as refusal:
            select(p)
        assert str(refusal.value) == message
    at_the_limit = replace(wide, query=Strides(2**26, 128, 2**25), key=Strides(2**26, 128, 2**25))
    assert select(at_the_limit).launches


def test_rounding_without_a_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    from zyfa_ort.kernels.select import checks

    nearest = tuple(row for row in checks.KERNELS if row.rounding != "truncate")
    monkeypatch.setattr(checks, "KERNELS", nearest)
    with pytest.raises(
        NoKernelError, match=r"^byte_rounding: expected nearest, got truncate; no FP8 kernel here"
    ):
        plan_module.select(make_problem(**FP8, byte_rounding="truncate"))
    with pytest.raises(NoKernelError, match=r"^byte_rounding: expected nearest, got other;"):
        plan_module.select(make_problem(**FP8, byte_rounding="other"))
    assert plan_module.select(make_problem(**FP8, byte_rounding="unknown")).launches


def test_every_refusal_is_tested() -> None:
    tested = {name for name, *_ in CASES} | {"row_stride", "alignment", "byte_rounding", "tensor_dims"}
    assert tested == set(REFUSALS)


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        ({"precision": "int4"}, "precision: expected one of fp32, bf16, fp8, got 'int4'"),
        ({"layout": "SBHD"}, "layout: expected one of BSHD, BHSD, got 'SBHD'"),
        ({"q_heads": 3, "kv_heads": 2}, "kv_heads: expected a divisor of q_heads 3, got 2"),
        ({"scales": "head"}, "scales: expected tensor, head, batch_head with float8e4m3fn and none without, got 'head'"),
    ],
)  # fmt: skip
def test_problems_that_are_none(problem: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as refusal:
        make_problem(**problem)
    assert str(refusal.value) == message


def test_command_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["q_len=4096", "q_heads=32", "kv_heads=8", "precision=fp8", "rotation=hadamard"]
    assert main(["--problem", *words]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith("precision fp8: FP8 prefill")
    assert (
        "fp8_prefill_d128_hilo_bf16 of fp8_prefill_d128_hilo_bf16.co: grid 32 x 16 x 1, 512 work-items"
        in printed
    )
    assert main(["--problem", "q_len=64", "bias=1x1x64x64", "softcap=0.5", "past_len=3"]) == 0
    assert "copy_rows_16 of convert.co" in capsys.readouterr().out
    assert main(["--problem", "arch=gfx90a"]) == 1
    assert capsys.readouterr().err.startswith("error: architecture: expected gfx950, got gfx90a")
    assert main(["--problem", "rows=3"]) == 1
    assert capsys.readouterr().err.startswith(
        "error: problem: expected NAME=VALUE with one of batch, q_heads"
    )
