"""Every kernel of the table at least once on the emulated device, launched as its choice says, against the CPU operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.op_session import Array
from kernels.select.cases import check, decoded_codes, tensors
from kernels.select.emulated_host import DTYPES, NAMES, Ran, run
from ml_dtypes import bfloat16, float8_e4m3fn
from zyfa_ort.kernels.select import KERNELS, KernelRow


def rows_of(family: str) -> list[KernelRow]:
    return [row for row in KERNELS if row.family == family]


def named(row: KernelRow) -> str:
    return row.kernel


def launched(ran: Ran) -> list[str]:
    return [launch.row.kernel for launch in ran.choice.launches]


@pytest.mark.parametrize("row", rows_of("fp8_prefill"), ids=named)
def test_fp8_prefill(row: KernelRow) -> None:
    inputs = tensors(70, 140, (row.qk_dim, row.v_dim), float8_e4m3fn)
    ran = check(inputs, out=row.writes, fp8_edges=row.edges, byte_rounding=row.rounding)
    assert launched(ran) == [row.kernel]


@pytest.mark.parametrize("row", rows_of("bf16_prefill"), ids=named)
def test_bf16_prefill(row: KernelRow) -> None:
    ran = check(tensors(17, 90, (row.qk_dim, row.v_dim), layout="BHSD"), layout="BHSD")
    assert launched(ran) == [row.kernel]


@pytest.mark.parametrize("row", rows_of("bf16_prefill_general"), ids=named)
def test_bf16_prefill_general(row: KernelRow) -> None:
    inputs = tensors(3, 90, (row.qk_dim, row.v_dim))
    bias = np.random.default_rng(0).standard_normal((2, 1, 90)).astype(bfloat16)
    ran = check(inputs | {"attn_bias": bias}, softcap=4.0)
    assert launched(ran) == [row.kernel]


@pytest.mark.parametrize("row", rows_of("decode"), ids=named)
def test_decode(row: KernelRow) -> None:
    heads = (2, 1) if row.rows == 16 else (9, 1)
    inputs = tensors(2, 200, (row.qk_dim, row.v_dim), DTYPES[row.reads], heads=heads)
    ran = check(inputs, out="float" if row.reads == "float8e4m3fn" else None)
    assert launched(ran) == [row.kernel, "decode_combine"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
def test_quantised_on_the_way(dtype: Any, rotation: str) -> None:
    ran = check(tensors(40, 90, (192, 128), dtype), precision="fp8", rotation=rotation)
    short = {"float": "f32", "float16": "f16", "bfloat16": "bf16"}[NAMES[np.dtype(dtype)]]
    passes = [f"quantize_{stage}_{short}" for stage in ("amax", "convert")]
    assert launched(ran) == [*passes * 3, f"fp8_prefill_d192_v128_hilo_{short}"]


@pytest.mark.parametrize("rotation", ["none", "hadamard"])
@pytest.mark.parametrize("dtype", [np.float32, np.float16, bfloat16])
def test_heads_of_64_are_padded_for_fp8_prefill(dtype: Any, rotation: str) -> None:
    inputs = tensors(40, 90, (64, 64), dtype, heads=(9, 3), batch=2, past=50)
    inputs["key_mask"] = np.arange(90) >= np.array([[0], [7]])
    ran = check(inputs, precision="fp8", rotation=rotation, key_mask="unread")
    short = {"float": "f32", "float16": "f16", "bfloat16": "bf16"}[NAMES[np.dtype(dtype)]]
    passes = [f"quantize_{stage}_{short}" for stage in ("amax", "convert")]
    attention = ["key_range", f"fp8_prefill_d128_hilo_{short}", "copy_rows_16"]
    assert launched(ran) == ["copy_rows_16"] * 4 + ["zero_rows_16", *passes * 3, *attention]
    assert "; head dims 64/64 are padded to 128/128 with zeros" in ran.choice.why


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("out", ["float", "float16", "bfloat16"])
def test_codes_of_64_are_padded(out: str, layout: str) -> None:
    inputs = tensors(300, 310, (64, 64), float8_e4m3fn, heads=(4, 2), layout=layout)
    inputs["sinks"] = np.linspace(-2, 2, 4, dtype=np.float32)
    ran = check(inputs, layout, out=out, window_left=100)
    short = {"float": "f32", "float16": "f16", "bfloat16": "bf16"}[out]
    copies = ["copy_rows_16"] * 3
    assert launched(ran) == ["zero_rows_16", *copies, f"fp8_prefill_d128_hilo_{short}", "copy_rows_16"]


def test_not_a_number_in_a_padded_head_stays_in_its_row() -> None:
    inputs = tensors(40, 90, (64, 64), float8_e4m3fn)
    inputs["query"][0, 3, 0, 5] = np.nan
    output = check(inputs, out="float")["output"]
    assert np.isnan(output[0, 3, 0]).all()
    assert np.isnan(output).sum() == 64


def test_every_kernel_is_launched() -> None:
    """By the tests above, by test_conversions.py and by test_tensor_ops.py."""
    families = {row.family for row in KERNELS}
    tested = {"fp8_prefill", "bf16_prefill", "bf16_prefill_general", "decode", "combine"}
    converted = {"copy_16", "copy_1", "zero_16", "cast", "widen", "mask_bytes", "key_range"}
    assert families == tested | converted | {"quantize_amax", "quantize_convert", "hadamard"}


@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize(("q_len", "kept"), [(2, True), (2, False), (20, True), (20, False)])
def test_past_and_new_are_put_together(layout: str, q_len: int, kept: bool) -> None:
    inputs = tensors(q_len, 70, (64, 64), past=70 - q_len, layout=layout, batch=2, heads=(4, 2))
    ran = check(inputs, layout)
    if kept:
        again = run(inputs, layout, lse=True, present_key=True, present_value=True)
        assert again["output"].tobytes() == ran["output"].tobytes()
        for name in ("key", "value"):
            new = inputs[name] if layout == "BHSD" else inputs[name].swapaxes(1, 2)
            whole = np.concatenate([inputs[f"past_{name}"], new], axis=2)
            assert again[f"present_{name}"].tobytes() == whole.tobytes()


def ragged(dtype: Any) -> Array:
    at = np.arange(70)
    return ((at >= np.array([[0], [7], [0]])) & (at < np.array([[70], [50], [0]]))).astype(dtype)


@pytest.mark.parametrize("dtype", [bool, np.int32, np.int64])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_ragged_prefill(precision: str, dtype: Any) -> None:
    inputs = tensors(30, 70, (128, 128), batch=3) | {"key_mask": ragged(dtype)}
    ran = check(inputs, precision=precision)
    assert not ran["output"][2].any()


@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
def test_decode_of_inputs_that_are_quantised_on_the_way(rotation: str, holes: bool) -> None:
    """Scales come from visible keys alone."""
    mask = ragged(bool)
    mask[:, 20:30] &= not holes
    inputs = tensors(3, 70, (128, 128), batch=3) | {"key_mask": mask}
    inputs["key"][1, 60:] = np.nan
    inputs["value"][1, 60:] = 1000
    ran = check(inputs, is_causal=0, precision="fp8", rotation=rotation)
    amax = np.abs(inputs["value"][1, mask[1]].astype(np.float32)).max()
    assert decoded_codes(ran)["v_scale"][1, 0] == np.float32(amax / np.float32(448))


@pytest.mark.parametrize("q_len", [3, 20])
def test_masks_with_holes(q_len: int) -> None:
    inputs = tensors(q_len, 70, (128, 128), batch=2)
    mask = np.random.default_rng(3).random((2, 70)) < 0.5
    check(inputs | {"key_mask": mask})


@pytest.mark.parametrize("precision", ["bf16", "fp8"])
@pytest.mark.parametrize(("q_len", "kv_len"), [(20, 0), (3, 0), (20, 5), (40, 300)])
def test_lengths(precision: str, q_len: int, kv_len: int) -> None:
    check(tensors(q_len, kv_len, (128, 128)), precision=precision)


def test_no_rows_launch_nothing() -> None:
    for q_len, batch in ((0, 1), (20, 0)):
        assert not run(tensors(q_len, 70, (128, 128), batch=batch)).choice.launches


SEEN = [
    {"is_causal": 0},
    {"window_left": 0},
    {"window_left": 5, "is_causal": 0},
    {"window_left": 2**40},
    {"causal_alignment": "top_left"},
    {"scale": -0.3},
    {"scale": 0.0},
    {"scale": 0.7},
]


@pytest.mark.parametrize("options", SEEN, ids=str)
@pytest.mark.parametrize("q_len", [5, 20])
def test_attributes(q_len: int, options: dict[str, Any]) -> None:
    for dtype in (bfloat16, float8_e4m3fn):
        inputs = tensors(q_len, 100, (128, 128), dtype, heads=(6, 2), batch=2)
        inputs["sinks"] = np.linspace(-2, 2, 6, dtype=np.float32)
        check(inputs, out="float" if dtype == float8_e4m3fn else None, **options)


@pytest.mark.parametrize("q_len", [2, 20])
def test_granularity_of_scales(q_len: int) -> None:
    inputs = tensors(q_len, 80, (128, 128), float8_e4m3fn, heads=(4, 2), batch=2)
    for cut in (np.s_[0, :1], np.s_[0]):
        coarse = {name: inputs[name][cut].copy() for name in ("q_scale", "k_scale", "v_scale")}
        check(inputs | coarse, out="float16")


@pytest.mark.parametrize("shape", [(70,), (20, 1), (2, 1, 1, 70), (2, 4, 20, 70)])
def test_shapes_of_bias(shape: tuple[int, ...]) -> None:
    bias = np.random.default_rng(4).standard_normal(shape).astype(bfloat16)
    check(tensors(20, 70, (64, 64), heads=(4, 2), batch=2) | {"attn_bias": bias})


@pytest.mark.parametrize(
    ("q_len", "dtype", "dims", "grid"),
    [
        (300, bfloat16, (128, 128), (2, 4, 2)),
        (300, bfloat16, (256, 256), (3, 4, 2)),
        (300, float8_e4m3fn, (192, 128), (4, 2, 2)),
        (16, bfloat16, (64, 64), (3, 1, 4)),
        (16, float8_e4m3fn, (64, 64), (3, 1, 4)),
    ],
)
def test_more_than_one_workgroup_along_every_axis(
    q_len: int, dtype: Any, dims: tuple[int, int], grid: tuple[int, int, int]
) -> None:
    inputs = tensors(q_len, 310, dims, dtype, heads=(4, 2), batch=2)
    ran = check(inputs, out="float" if dtype == float8_e4m3fn else None)
    assert ran.choice.launches[0].grid == grid
