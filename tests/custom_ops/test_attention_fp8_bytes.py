"""The bytes of P, the anchors and the exponents of the CPU kernel against the NumPy model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from custom_ops.expected import assert_close, assert_lse_close
from custom_ops.trace_library import KernelTrace, library_path, trace_fp8
from reference.e4m3 import decode
from reference.fp8_model import Trace, fp8_attention
from reference.inputs import FAMILIES, Shape, make

pytestmark = pytest.mark.skipif(
    not library_path().exists(), reason="built without the trace library (ZYFA_BUILD_TESTS)"
)
SCALE = 0.125


# Scores are FP32 sums in an order of the kernel's own, and its exp2 is a few 1e-8 off: a byte turns where the model's
# score lies that close to a rounding threshold. Seen at 700 rows: up to 5e-5 of lean bytes, 1e-4 of residuals.
TURNED, TURNED_RESIDUALS = 1e-4, 3e-4
LAST_BITS = 1e-5  # of an anchor


def compare(kernel: KernelTrace, model: Trace, *, exact_scores: bool, codes: bool) -> None:
    """Where a row saw a key: the same edges, anchors, exponents and probabilities; elsewhere nothing.

    `codes`: all tiles multiply codes, so that probabilities can be compared. With `exact_scores` Lean P is equal bit for bit.
    """
    seen = model.visited
    where = np.repeat(seen, 64, axis=3)
    np.testing.assert_array_equal(kernel.visited & seen, seen, err_msg="tiles visited")
    np.testing.assert_array_equal(kernel.is_edge[seen], model.is_edge[seen], err_msg="edge tiles")
    assert not kernel.probability[~where].any()
    if not codes:
        np.testing.assert_allclose(kernel.m[seen], model.m[seen], rtol=1e-5, atol=1e-5)
        return
    tolerance = 0 if exact_scores else LAST_BITS
    np.testing.assert_allclose(
        kernel.m[seen], model.m[seen], rtol=tolerance, atol=tolerance, err_msg="anchors"
    )
    edge = np.repeat(model.is_edge, 64, axis=3)
    wanted = decode(model.hi) + decode(model.lo) / 16
    turned = kernel.probability != wanted
    lean_share = 0 if exact_scores else TURNED
    for name, wrong, share in (
        ("exponents d", kernel.d[seen] != model.d[seen], lean_share),
        ("lean probabilities", turned[where & ~edge], lean_share),
        ("two-term probabilities", turned[where & edge], TURNED_RESIDUALS),
    ):
        assert np.count_nonzero(wrong) <= share * wrong.size + (share > 0), (
            f"{name}: {np.count_nonzero(wrong)} of {wrong.size} differ"
        )


def check(
    tensors: tuple[Any, ...], *, exact_scores: bool = False, **options: Any
) -> tuple[KernelTrace, Trace]:
    """Run both on (B, H, S, D) floats and compare everything."""
    options = {"scale": SCALE, **options}
    kernel = trace_fp8(*tensors, **options)
    model = fp8_attention(*tensors, trace=True, **options)
    assert model.trace is not None
    compare(kernel, model.trace, exact_scores=exact_scores, codes=options.get("fp8_edges") != "bf16")
    assert_close(kernel.output, model.output, "fp8_model")
    assert_lse_close(kernel.lse, model.lse, "fp8_model")
    return kernel, model.trace


@pytest.mark.parametrize("edges", ["hilo", "none"])
@pytest.mark.parametrize("head_dim", [64, 192])
@pytest.mark.parametrize("is_causal", [0, 1])
def test_bytes_of_exact_scores(edges: str, head_dim: int, is_causal: int) -> None:
    """Signed powers of two: their products can be summed in any order without rounding."""
    rng = np.random.default_rng(3)
    q, k, v = make("gauss", Shape(heads=2, kv_heads=1, length=333, head_dim=head_dim))
    for tensor in (q, k):
        tensor[...] = rng.choice([-4, -2, -1, 0, 1, 2, 4], tensor.shape)
    check((q, k, v), fp8_edges=edges, is_causal=is_causal, scale=0.02, exact_scores=True)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("edges", ["hilo", "none", "bf16"])
def test_families(family: str, edges: str) -> None:
    check(make(family, Shape(heads=2, kv_heads=1, length=330, head_dim=64)), fp8_edges=edges)


def test_many_heads_and_batches() -> None:
    check(make("gauss", Shape(batch=2, heads=4, kv_heads=2, length=300, head_dim=64)))


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
def test_families_at_length_1024(family: str, rotation: str) -> None:
    shape = Shape(batch=2, heads=4, kv_heads=2, length=1024, head_dim=128)
    check(make(family, shape), rotation=rotation, scale=float(np.float32(128**-0.5)))


@pytest.mark.parametrize("head_dim", [16, 64, 128, 192])
def test_rotation(head_dim: int) -> None:
    check(make("outlier", Shape(length=200, head_dim=head_dim, v_head_dim=32)), rotation="hadamard")


@pytest.mark.parametrize("is_causal", [0, 1])
@pytest.mark.parametrize("window", [0, 30, 100, 400])
def test_windows(is_causal: int, window: int) -> None:
    check(make("s3", Shape(length=600, head_dim=32)), is_causal=is_causal, window_left=window)


@pytest.mark.parametrize("alignment", ["bottom_right", "top_left"])
@pytest.mark.parametrize(("q_len", "kv_len"), [(300, 600), (600, 300), (1, 500), (290, 33), (65, 64)])
def test_unequal_lengths(alignment: str, q_len: int, kv_len: int) -> None:
    q, _, _ = make("gauss", Shape(length=q_len, head_dim=32))
    _, k, v = make("s3", Shape(length=kv_len, head_dim=32))
    check((q, k, v), causal_alignment=alignment)


@pytest.mark.parametrize("is_causal", [0, 1])
def test_padding(is_causal: int) -> None:
    """Left, right, both, gaps, and an entry whose keys are all masked."""
    tensors = make("gauss", Shape(batch=5, length=400, head_dim=32))
    mask = np.zeros((5, 400), bool)
    mask[0, 130:] = True
    mask[1, :70] = True
    mask[2, 129:321] = True
    mask[3] = np.random.default_rng(0).random(400) < 0.3
    check(tensors, key_mask=mask, is_causal=is_causal)


@pytest.mark.parametrize("scale", [0.0, -0.125, 1.0, 1e-6])
def test_scales(scale: float) -> None:
    check(make("gauss", Shape(length=200, head_dim=32)), scale=scale)


def test_sinks() -> None:
    sinks = np.array([0.0, -3.0, 5.0, 60.0], np.float32)
    check(make("gauss", Shape(heads=4, kv_heads=2, length=200, head_dim=32)), sinks=sinks)


def test_rising_rows_move_their_anchors() -> None:
    """Steps of several octaves from tile to tile: anchors follow within one octave, codes stay below 127."""
    q, k, v = make("rising", Shape(length=700, head_dim=64))
    _, trace = check((q * 6, k, v), is_causal=0)
    anchors = trace.m[0, 0][trace.visited[0, 0]].reshape(700, -1)
    assert np.all(np.diff(anchors, axis=1) >= 0)
    assert np.count_nonzero(np.diff(anchors, axis=1)) > 700


def test_tiles_come_in_the_written_order() -> None:
    """Row 599 of 600: diagonal tile 9, then 8, 7 (T0 - 1), then 0 to 6."""
    kernel, _ = check(make("gauss", Shape(length=600, head_dim=16)))
    assert [tile for _, _, row, tile in kernel.order if row == 599] == [9, 8, 7, 0, 1, 2, 3, 4, 5, 6]


def test_hidden_keys_leave_no_byte() -> None:
    """NaN, infinity and huge numbers behind the mask change no byte of P, no anchor and no scale."""
    q, k, v = make("gauss", Shape(length=200, head_dim=32))
    mask = np.random.default_rng(0).random((1, 200)) < 0.6
    clean = trace_fp8(q, k, v, key_mask=mask, scale=SCALE)
    for poison in (np.nan, np.inf, 3e38):
        k[:, :, ~mask[0]] = poison
        v[:, :, ~mask[0]] = poison
        dirty, _ = check((q, k, v), key_mask=mask)
        np.testing.assert_array_equal(dirty.probability, clean.probability)
        np.testing.assert_array_equal(dirty.m, clean.m)
