"""What lies between a model's tensors and the attention kernels: casts, masks that nobody has read, copies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close
from custom_ops.op_session import Array
from kernels.select.cases import check, cpu, tensors
from kernels.select.emulated_host import Ran, kind_of, run
from ml_dtypes import bfloat16, float8_e4m3fn

FLOATS = (np.float32, np.float16)


def launched(ran: Ran) -> list[str]:
    return [launch.row.kernel for launch in ran.choice.launches]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("q_len", [3, 40])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_floats_are_cast_to_bfloat16(layout: str, q_len: int, dtype: Any) -> None:
    inputs = tensors(q_len, 90, (192, 128), dtype, heads=(4, 2), batch=2, layout=layout, past=90 - q_len)
    inputs["key"][0, 0] *= 1000  # beyond what float16 could hold of a product
    ran = check(inputs, layout, precision="bf16")
    assert launched(ran)[4:7] == [f"cast_{'f32' if dtype is np.float32 else 'f16'}_bf16"] * 3
    assert ran["output"].dtype == dtype


def test_cast_rounds_to_even_and_keeps_what_is_not_finite() -> None:
    """One key per row of the batch, so that the output is its value rounded to bfloat16."""
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, (64, 1, 1, 128), np.uint32)
    bits[0, 0, 0, :6] = 0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x80000001, 0x7F800000, 0xFFC00000
    value = bits.view(np.float32)
    value[1:][~np.isfinite(value[1:])] = 0
    inputs = {name: np.zeros_like(value) for name in ("query", "key")} | {"value": value}
    output = run(inputs, precision="bf16")["output"]
    with np.errstate(invalid="ignore", over="ignore"):
        wanted = value.astype(bfloat16).astype(np.float32)
    small = np.abs(wanted) < np.finfo(np.float32).tiny  # matrix instructions flush bfloat16 denormals
    np.testing.assert_array_equal(np.where(small, 0, output), np.where(small, 0, wanted))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(70,), (20, 1), (2, 1, 1, 70), (2, 4, 20, 70), (1,)])
def test_bias_of_floats(shape: tuple[int, ...], dtype: Any) -> None:
    """A float bias is read as it is, one of float16 is widened: neither is rounded to bfloat16."""
    bias = (np.random.default_rng(4).standard_normal(shape) * 4).astype(dtype)
    inputs = tensors(20, 70, (64, 64), dtype, heads=(4, 2), batch=2)
    ran = check(inputs | {"attn_bias": bias}, precision="bf16", softcap=20.0)
    assert ("widen_f16_f32" in launched(ran)) == (dtype is np.float16)


def test_a_bias_without_keys() -> None:
    inputs = tensors(20, 0, (64, 64), np.float16) | {"attn_bias": np.zeros((1, 1, 20, 0), np.float16)}
    assert not check(inputs, precision="bf16")["output"].any()


def masks(dtype: Any, keys: int = 140) -> Array:
    """Padded left, right, on both sides, not at all, wholly."""
    at, first, end = (
        np.arange(keys),
        np.array([[30], [0], [7], [0], [0]]),
        np.array([[keys], [77], [100], [keys], [0]]),
    )
    return ((at >= first) & (at < end)).astype(dtype)  # fmt: skip


@pytest.mark.parametrize("mask_dtype", [bool, np.int32, np.int64])
@pytest.mark.parametrize("dtype", [np.float32, float8_e4m3fn])
def test_ranges_that_only_the_device_sees(dtype: Any, mask_dtype: Any) -> None:
    """The bits are those of a range that the host gave."""
    inputs = tensors(30, 140, (128, 128), dtype, batch=5, heads=(4, 2)) | {"key_mask": masks(mask_dtype)}
    rest: dict[str, Any] = {"out_dtype": "float", "precision": "fp8", "lse": True}
    unread, told = (run(inputs, key_mask=kind, **rest) for kind in ("unread", "range"))
    assert "key_range" in launched(unread)
    assert unread["output"].tobytes() == told["output"].tobytes()
    assert unread["lse"].tobytes() == told["lse"].tobytes()
    assert unread["status"][0] == 0
    assert not unread["output"][4].any()


@pytest.mark.parametrize("granularity", ["tensor", "head", "batch_head"])
@pytest.mark.parametrize("mask_dtype", [bool, np.int64])
def test_holes_make_their_batch_entry_nan_and_are_reported(mask_dtype: Any, granularity: str) -> None:
    """FP8 prefill takes ranges alone: no number where there is no right one, and every other entry is right."""
    mask = masks(mask_dtype)
    mask[1, 50], mask[3, 1] = 0, 0
    inputs = tensors(300, 140, (128, 128), float8_e4m3fn, batch=5, heads=(4, 2)) | {"key_mask": mask}
    cut = {"tensor": np.s_[0, :1], "head": np.s_[0], "batch_head": np.s_[:]}[granularity]
    inputs |= {name: inputs[name][cut].copy() for name in ("q_scale", "k_scale", "v_scale")}
    ran = run(inputs, key_mask="unread", out_dtype="float", lse=True, is_causal=0)
    assert ran["status"][0] == 1
    wanted = cpu(inputs, is_causal=0)
    for entry in range(5):
        if entry in (1, 3):
            assert np.isnan(ran["output"][entry]).all()
            assert np.isnan(ran["lse"][entry]).all()
        else:
            assert_close(ran["output"][entry], wanted["output"][entry], "fp8_model")


@pytest.mark.parametrize("mask_dtype", [bool, np.int32, np.int64])
@pytest.mark.parametrize(("q_len", "precision"), [(3, "bf16"), (3, "fp8"), (20, "bf16")])
def test_kernels_that_take_holes(q_len: int, precision: str, mask_dtype: Any) -> None:
    mask = np.random.default_rng(3).integers(0, 2, (2, 70)).astype(mask_dtype)
    if mask_dtype is np.int64:
        mask <<= 33  # no bit in the lower half
    inputs = tensors(q_len, 70, (128, 128), np.float32, batch=2) | {"key_mask": mask}
    assert kind_of(mask) == "holes"
    ran = check(inputs, precision=precision, key_mask="unread")
    assert (f"mask_bytes_{'i32' if mask_dtype is np.int32 else 'i64'}" in launched(ran)) == (
        mask_dtype is not bool
    )


@pytest.mark.parametrize("dims", [(3, 5), (7, 64), (64, 64)])
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
def test_present_without_queries(layout: str, dims: tuple[int, int]) -> None:
    """Rows of any number of bytes are copied, whether or not there is something to compute."""
    inputs = tensors(0, 13, dims, past=4, batch=2, heads=(6, 3), layout=layout)
    ran = run(inputs, layout, present_key=True, present_value=True)
    unit = 16 if dims == (64, 64) else 1
    assert f"copy_rows_{unit}" in launched(ran)
    for name in ("key", "value"):
        new = inputs[name] if layout == "BHSD" else inputs[name].swapaxes(1, 2)
        whole = np.concatenate([inputs[f"past_{name}"], new], axis=2)
        assert ran[f"present_{name}"].tobytes() == whole.tobytes()
