"""ZyfaQuantizeFp8 and ZyfaHadamard as chosen on the emulated device: the bits of the CPU operators."""

from __future__ import annotations

import itertools
import random
from typing import Any

import numpy as np
import pytest
from custom_ops.op_session import Array, run_op
from kernels.select.cpp_select import cpp_hadamard, cpp_quantize
from kernels.select.emulated_host import NAMES, execute
from ml_dtypes import bfloat16, float8_e4m3fn
from zyfa_ort.kernels.select import NoKernelError, select_hadamard, select_quantize
from zyfa_ort.kernels.select.table import TENSOR_DIMS

DTYPES = [np.float32, np.float16, bfloat16]
GRANULARITIES = ["tensor", "head", "batch_head"]


def quantised(x: Array, granularity: str, rotation: str, layout: str) -> tuple[Array, Array]:
    """Codes and scales from the emulated device."""
    options = {"granularity": granularity, "rotation": rotation, "layout": layout}
    choice = select_quantize(x.shape, NAMES[x.dtype], **options)  # type: ignore[arg-type]
    heads = x.shape[2 if layout == "BSHD" else 1]
    shape = {"tensor": (1,), "head": (heads,), "batch_head": (x.shape[0], heads)}[granularity]
    made = {"x": x, "y": np.full(x.shape, 0xCD, np.uint8), "scale": np.full(shape, np.nan, np.float32)}
    execute(choice, made)
    return made["y"].view(float8_e4m3fn), made["scale"]


def check_quantised(x: Array, granularity: str, rotation: str, layout: str) -> None:
    y, scale = quantised(x, granularity, rotation, layout)
    attributes = {"granularity": granularity, "rotation": rotation, "layout": layout}
    wanted = run_op("ZyfaQuantizeFp8", {"x": x}, {"y": float8_e4m3fn, "scale": np.float32}, attributes)
    assert y.tobytes() == wanted["y"].tobytes()
    assert scale.tobytes() == wanted["scale"].tobytes()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", TENSOR_DIMS)
@pytest.mark.parametrize("rotation", ["none", "hadamard"])
def test_quantise(dtype: Any, dim: int, rotation: str) -> None:
    rng = np.random.default_rng(dim)
    x = rng.standard_normal((2, 5, 3, dim)).astype(dtype)
    for granularity, layout in itertools.product(GRANULARITIES, ("BSHD", "BHSD")):
        check_quantised(x, granularity, rotation, layout)


@pytest.mark.parametrize("granularity", GRANULARITIES)
@pytest.mark.parametrize("layout", ["BSHD", "BHSD"])
@pytest.mark.parametrize("shape", [(2, 0, 3, 64), (2, 3, 0, 64), (0, 3, 2, 64), (0, 0, 0, 64)])
def test_scales_of_nothing_are_one(shape: tuple[int, ...], layout: str, granularity: str) -> None:
    check_quantised(np.zeros(shape, bfloat16), granularity, "none", layout)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("dim", TENSOR_DIMS)
@pytest.mark.parametrize("rows", [0, 1, 37])
def test_hadamard(dtype: Any, dim: int, rows: int) -> None:
    x = np.random.default_rng(rows).standard_normal((rows, dim)).astype(dtype)
    made = {"x": x, "y": np.full(x.shape, np.nan, dtype)}
    choice = select_hadamard(x.size, dim, NAMES[x.dtype])
    assert len(choice.launches) == (rows > 0)
    execute(choice, made)
    wanted = run_op("ZyfaHadamard", {"x": x}, {"y": dtype}, {})["y"]
    assert made["y"].tobytes() == wanted.tobytes()


def test_refusals() -> None:
    for choose in (
        lambda **rest: select_quantize((1, 2, 3, rest.pop("dim", 64)), "float", **rest),
        lambda **rest: select_hadamard(640, rest.pop("dim", 64), "float", **rest),
    ):
        with pytest.raises(NoKernelError) as refusal:
            choose(dim=32)
        assert (
            str(refusal.value)
            == "last dimension of x: expected one of 64, 128, 192, 256, got 32; run this node on the CPU"
        )
        with pytest.raises(NoKernelError, match=r"^architecture: expected gfx950, got gfx1100;"):
            choose(arch="gfx1100")
    with pytest.raises(NoKernelError, match=r"^x rows: expected at most 67108864 to quantise, got 67108865;"):
        select_quantize((1, 2**26 + 1, 1, 64), "float")
    with pytest.raises(
        ValueError, match=r"^granularity: expected one of tensor, head, batch_head, got 'row'"
    ):
        select_quantize((1, 1, 1, 64), "float", granularity="row")


def test_both_languages() -> None:
    rng = random.Random(0)

    def answer(choose: Any, *args: Any, **options: Any) -> str:
        try:
            return str(choose(*args, **options))
        except NoKernelError as refusal:
            return f"refused: {refusal}"

    for _ in range(3000):
        dim = rng.choice([*TENSOR_DIMS, *TENSOR_DIMS, 0, 32, 512])
        sizes = [rng.choice([0, 1, 2, 7, 63, 4096]) for _ in range(3)]
        if rng.random() < 0.1:
            sizes[rng.randrange(3)] = rng.choice([70000, 2**26, 2**26 + 1])
        dtype = rng.choice(["float", "float16", "bfloat16"])
        arch = rng.choice(["gfx950", "gfx950:xnack-", "gfx90a"])
        shape = (sizes[0], sizes[1], sizes[2], dim)
        words = rng.choice(GRANULARITIES), rng.choice(["none", "hadamard"]), rng.choice(["BSHD", "BHSD"])
        options = dict(zip(("granularity", "rotation", "layout"), words, strict=True), arch=arch)
        assert answer(select_quantize, shape, dtype, **options) == cpp_quantize(shape, dtype, *words, arch)
        count = sizes[0] * sizes[1] * dim
        assert answer(select_hadamard, count, dim, dtype, arch=arch) == cpp_hadamard(count, dim, dtype, arch)
