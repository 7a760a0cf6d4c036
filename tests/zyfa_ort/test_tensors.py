"""Arrays in and out of OrtValue."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from zyfa_ort import from_ortvalue, to_ortvalue
from zyfa_ort.errors import InputError
from zyfa_ort.tensors import numpy_dtype

TYPES = [
    (np.float32, "tensor(float)"),
    (np.float16, "tensor(float16)"),
    (ml_dtypes.bfloat16, "tensor(bfloat16)"),
    (ml_dtypes.float8_e4m3fn, "tensor(float8e4m3fn)"),
    (np.int64, "tensor(int64)"),
    (np.int32, "tensor(int32)"),
    (np.bool_, "tensor(bool)"),
]


@pytest.mark.parametrize(("dtype", "name"), TYPES)
@pytest.mark.parametrize("shape", [(2, 3), (5,), (0, 4), ()])
def test_there_and_back(dtype, name, shape):
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    value = to_ortvalue(array)
    back = from_ortvalue(value)
    assert value.data_type() == name
    assert back.dtype == dtype
    assert back.shape == shape
    assert back.tobytes() == array.tobytes()


def test_strided_arrays_are_copied():
    array = np.arange(24, dtype=np.float32).reshape(4, 6)[::2, 1::2].astype(ml_dtypes.bfloat16).T
    assert np.array_equal(from_ortvalue(to_ortvalue(array)), array)


def test_result_outlives_the_ortvalue():
    array = np.arange(6).astype(ml_dtypes.bfloat16)
    back = from_ortvalue(to_ortvalue(array))
    assert np.array_equal(back, array)
    back[0] = 3  # writable


def test_unknown_type_is_refused():
    with pytest.raises(InputError, match=r"type tensor\(string\): expected one of .*tensor\(float\)"):
        numpy_dtype("tensor(string)")
