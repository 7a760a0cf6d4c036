"""Device memory of others as inputs, and ours for others."""

from __future__ import annotations

from types import SimpleNamespace

import ml_dtypes
import numpy as np
import pytest

from zyfa_ort.errors import InputError
from zyfa_ort.migraphx import DeviceArray, TensorType
from zyfa_ort.migraphx.device_array import device_array

F32, BF16 = np.dtype(np.float32), np.dtype(ml_dtypes.bfloat16)


def foreign(typestr: str, shape: tuple[int, ...], strides: tuple[int, ...] | None = None) -> SimpleNamespace:
    described = {"typestr": typestr, "shape": shape, "strides": strides, "data": (4096, False), "version": 3}
    return SimpleNamespace(__cuda_array_interface__=described)


@pytest.mark.parametrize("strides", [None, (12, 4)])
def test_an_array_of_another_library(strides):
    given = foreign("<f4", (2, 3), strides)
    found = device_array("x", given, TensorType(F32, (2, 3)))
    assert (found.pointer, found.shape, found.dtype, found.owner) == (4096, (2, 3), F32, given)


def test_bfloat16_goes_under_an_integer_type():
    """The interface has no name for it."""
    found = device_array("x", foreign("<u2", (2, 3)), TensorType(BF16, (2, 3)))
    assert found.dtype == BF16
    again = device_array(
        "x",
        SimpleNamespace(__cuda_array_interface__=found.__cuda_array_interface__),
        TensorType(BF16, (2, 3)),
    )
    assert again.dtype == BF16
    assert DeviceArray(1, (2,), BF16).__cuda_array_interface__["typestr"] == "<u2"
    assert DeviceArray(1, (2,), F32).__cuda_array_interface__["typestr"] == "<f4"


@pytest.mark.parametrize(
    ("given", "text"),
    [
        (foreign("<f4", (2, 4)), "expected float32 2x3, got float32 2x4"),
        (foreign("<u4", (2, 3)), "expected float32 2x3, got uint32 2x3"),
        (foreign("<f4", (2, 3), (4, 8)), "expected a contiguous array, got strides (4, 8)"),
        (
            np.zeros((2, 3), np.float32),
            "expected a DeviceArray or an object with __cuda_array_interface__, got ndarray; run() takes arrays of the host",
        ),
    ],
)
def test_refusals(given, text):
    with pytest.raises(InputError) as refused:
        device_array("x", given, TensorType(F32, (2, 3)))
    assert str(refused.value) == f"input x: {text}"
