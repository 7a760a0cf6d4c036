"""The operator as a function of arrays."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from zyfa_ort import flash_attn_func
from zyfa_ort.errors import InputError


def uniform(rows: int, keys: int, dtype=np.float32) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Equal scores, value row j = j: an output row is the mean of the positions that it sees."""
    zeros = np.zeros((1, rows, 1, 4), dtype), np.zeros((1, keys, 1, 4), dtype)
    return *zeros, np.arange(keys).astype(dtype).reshape(1, keys, 1, 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16])
def test_output_has_the_type_and_layout_of_query(dtype):
    output = flash_attn_func(*uniform(3, 3, dtype))
    assert output.dtype == dtype
    assert output.shape == (1, 3, 1, 1)
    assert output.ravel().tolist() == [0.0, 0.5, 1.0]


def test_arguments_reach_the_operator():
    q, k, v = uniform(2, 5)
    assert flash_attn_func(q, k, v).ravel().tolist() == [1.5, 2.0]
    assert flash_attn_func(q, k, v, causal_alignment="top_left").ravel().tolist() == [0.0, 0.5]
    assert flash_attn_func(q, k, v, causal=False).ravel().tolist() == [2.0, 2.0]
    assert flash_attn_func(q, k, v, window_left=1).ravel().tolist() == [2.5, 3.5]
    mask = np.array([[1, 1, 0, 1, 1]])
    assert np.allclose(flash_attn_func(q, k, v, key_mask=mask).ravel(), [4 / 3, 2.0])
    sinks = np.zeros(1, np.float32)
    assert np.allclose(flash_attn_func(q, k, v, sinks=sinks).ravel(), [6 / 5, 10 / 6])


def test_lse_is_the_log_of_the_number_of_equal_keys():
    _, lse = flash_attn_func(*uniform(3, 3), return_lse=True)
    assert lse.dtype == np.float32
    assert np.allclose(lse.ravel(), np.log([1, 2, 3]))


def test_fp8_arrays_need_scales_and_an_output_type():
    q, k, v = uniform(3, 3, ml_dtypes.float8_e4m3fn)
    one = np.ones(1, np.float32)
    scales = {"q_scale": one, "k_scale": one, "v_scale": 2 * one}
    output = flash_attn_func(q, k, v, **scales, out_dtype=ml_dtypes.bfloat16)
    assert output.dtype == ml_dtypes.bfloat16
    assert output.ravel().tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(Exception, match="out_dtype: required when query is float8e4m3fn"):
        flash_attn_func(q, k, v, **scales)
    with pytest.raises(Exception, match="q_scale: required when query is float8e4m3fn"):
        flash_attn_func(q, k, v, out_dtype=np.float32)


def test_torch_tensors_come_in_by_dlpack():
    torch = pytest.importorskip("torch")
    for torch_type, dtype in ((torch.float32, np.float32), (torch.bfloat16, ml_dtypes.bfloat16)):
        tensors = [torch.from_numpy(x.copy()).to(torch_type) for x in uniform(3, 3)]
        output = flash_attn_func(*tensors)
        assert output.dtype == dtype
        assert output.ravel().tolist() == [0.0, 0.5, 1.0]


def test_types_that_the_operator_does_not_take_are_named():
    q, k, v = uniform(3, 3)
    with pytest.raises(InputError, match=r"query: expected one of float32, .* got float64"):
        flash_attn_func(q.astype(np.float64), k, v)
    with pytest.raises(InputError, match=r"out_dtype: expected float32, float16 or bfloat16, got int16"):
        flash_attn_func(q, k, v, out_dtype=np.int16)


def test_refusals_are_one_line_and_name_the_attribute():
    q, k, v = uniform(3, 3)
    with pytest.raises(Exception, match=r'rotation: "hadamard" is only taken with precision "fp8"') as caught:
        flash_attn_func(q, k, v, rotation="hadamard")
    assert "\n" not in str(caught.value)
