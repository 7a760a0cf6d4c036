"""NumPy arrays in and out of ``OrtValue``, the types NumPy lacks included.

ONNX Runtime's Python API takes no ml_dtypes arrays and hands none back. They go through the same bytes under an integer type.
"""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from onnx import TensorProto

from zyfa_ort.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from onnxruntime import OrtValue

# ml_dtypes type -> (carrier of the same width, ONNX element type, ONNX Runtime's name)
_CARRIED: dict[np.dtype[Any], tuple[type[np.generic], int, str]] = {
    np.dtype(ml_dtypes.bfloat16): (np.uint16, TensorProto.BFLOAT16, "tensor(bfloat16)"),
    np.dtype(ml_dtypes.float8_e4m3fn): (np.uint8, TensorProto.FLOAT8E4M3FN, "tensor(float8e4m3fn)"),
}

_BY_NAME: dict[str, np.dtype[Any]] = {
    **{name: dtype for dtype, (_, _, name) in _CARRIED.items()},
    "tensor(float)": np.dtype(np.float32),
    "tensor(double)": np.dtype(np.float64),
    "tensor(float16)": np.dtype(np.float16),
    "tensor(int64)": np.dtype(np.int64),
    "tensor(int32)": np.dtype(np.int32),
    "tensor(bool)": np.dtype(np.bool_),
    "tensor(uint8)": np.dtype(np.uint8),
    "tensor(int8)": np.dtype(np.int8),
}


def numpy_dtype(type_name: str) -> np.dtype[Any]:
    """The NumPy (or ml_dtypes) type of an ONNX Runtime type such as ``"tensor(bfloat16)"``.

    Raises:
        InputError: a type that no model input of this project has.
    """
    if type_name not in _BY_NAME:
        raise InputError(f"type {type_name}: expected one of {', '.join(sorted(_BY_NAME))}")
    return _BY_NAME[type_name]


def to_ortvalue(array: NDArray[Any]) -> OrtValue:
    """A CPU ``OrtValue`` with the array's values; bfloat16 and float8_e4m3fn arrays of ml_dtypes are welcome."""
    import onnxruntime as ort

    array = np.ascontiguousarray(array).reshape(array.shape)  # ascontiguousarray turns scalars into vectors
    carried = _CARRIED.get(array.dtype)
    if carried is None:
        return ort.OrtValue.ortvalue_from_numpy(array)
    carrier, onnx_type, _ = carried
    return ort.OrtValue.ortvalue_from_numpy_with_onnx_type(array.view(carrier), onnx_type)


def from_ortvalue(value: OrtValue) -> NDArray[Any]:
    """A copy of a CPU ``OrtValue`` as an array; bfloat16 and float8e4m3fn come back as ml_dtypes arrays."""
    dtype = numpy_dtype(value.data_type())
    if dtype not in _CARRIED:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    data = ctypes.string_at(value.data_ptr(), size) if size else b""
    return np.frombuffer(data, dtype=dtype).reshape(shape).copy()
