"""The attention operator on plain arrays: a model of one node, one session per distinct node, kept."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

from zyfa_ort.errors import InputError
from zyfa_ort.graph_passes import schema
from zyfa_ort.library import register
from zyfa_ort.tensors import from_ortvalue, to_ortvalue

if TYPE_CHECKING:
    import onnxruntime
    from numpy.typing import NDArray

# Opset and IR version that every ONNX Runtime from 1.22 on reads.
_OPSET = 18
_IR_VERSION = 10

_ELEMENT_TYPES: dict[np.dtype[Any], int] = {
    np.dtype(np.float32): TensorProto.FLOAT,
    np.dtype(np.float16): TensorProto.FLOAT16,
    np.dtype(ml_dtypes.bfloat16): TensorProto.BFLOAT16,
    np.dtype(ml_dtypes.float8_e4m3fn): TensorProto.FLOAT8E4M3FN,
    np.dtype(np.bool_): TensorProto.BOOL,
    np.dtype(np.int32): TensorProto.INT32,
    np.dtype(np.int64): TensorProto.INT64,
}

Attributes = tuple[tuple[str, int | float | str], ...]
Types = tuple[tuple[str, int, int], ...]


def as_array(name: str, value: Any) -> NDArray[Any]:
    """`value` as a NumPy (or ml_dtypes) array; anything with DLPack on the CPU is taken without a copy.

    Raises:
        InputError: the type is none that the operator takes.
    """
    if isinstance(value, np.ndarray):
        array = value
    elif hasattr(value, "__dlpack__"):
        array = _from_dlpack(name, value)
    else:
        array = np.asarray(value)
    if array.dtype not in _ELEMENT_TYPES:
        raise InputError(f"{name}: expected one of {', '.join(map(str, _ELEMENT_TYPES))}, got {array.dtype}")
    return array


def run_attention(
    inputs: Mapping[str, Any],
    attributes: Mapping[str, int | float | str | None],
    out_dtype: Any | None,
    return_lse: bool,
) -> NDArray[Any] | tuple[NDArray[Any], NDArray[np.float32]]:
    """Runs one node; None among inputs and attributes means absent."""
    arrays = {name: as_array(name, value) for name, value in inputs.items() if value is not None}
    present = {name: value for name, value in attributes.items() if value is not None}
    if out_dtype is not None:
        present["out_dtype"] = _element_type("out_dtype", np.dtype(out_dtype))
    types = tuple((name, _ELEMENT_TYPES[array.dtype], array.ndim) for name, array in arrays.items())
    session = _session(tuple(sorted(present.items())), types, return_lse)
    names = ["output", "lse"] if return_lse else ["output"]
    values = session.run_with_ort_values(names, {name: to_ortvalue(array) for name, array in arrays.items()})
    results = [from_ortvalue(value) for value in values]
    return (results[0], results[1]) if return_lse else results[0]


@lru_cache(maxsize=64)
def _session(attributes: Attributes, types: Types, return_lse: bool) -> onnxruntime.InferenceSession:
    import onnxruntime as ort

    given = {name for name, _, _ in types}
    outputs = ["output", "", "", "lse"] if return_lse else ["output"]
    values: dict[str, Any] = dict(attributes)
    node = helper.make_node(
        schema.PREFILL_ATTENTION,
        [name if name in given else "" for name in schema.INPUTS],
        outputs,
        domain=schema.DOMAIN,
        name="flash_attn_func",
        **values,
    )
    output_type = int(dict(attributes).get("out_dtype", types[0][1]))
    graph = helper.make_graph(
        [node],
        "flash_attn_func",
        [helper.make_tensor_value_info(name, element, [None] * rank) for name, element, rank in types],
        [
            helper.make_tensor_value_info(name, TensorProto.FLOAT if name == "lse" else output_type, None)
            for name in outputs
            if name
        ],
    )
    opsets = [helper.make_opsetid("", _OPSET), helper.make_opsetid(schema.DOMAIN, schema.VERSION)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=_IR_VERSION)
    options = register(ort.SessionOptions())
    options.log_severity_level = (
        4  # errors arrive as exceptions; printing them too would say everything twice
    )
    return ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def _element_type(name: str, dtype: np.dtype[Any]) -> int:
    if dtype not in _ELEMENT_TYPES:
        raise InputError(f"{name}: expected float32, float16 or bfloat16, got {dtype}")
    return _ELEMENT_TYPES[dtype]


def _from_dlpack(name: str, value: Any) -> NDArray[Any]:
    try:
        return np.from_dlpack(value)
    except (BufferError, RuntimeError, TypeError) as error:
        narrow = _narrow_from_dlpack(value)
        if narrow is None:
            raise InputError(
                f"{name}: expected a CPU array with DLPack, got {type(value).__name__}: {error}"
            ) from error
        return narrow


def _narrow_from_dlpack(value: Any) -> NDArray[Any] | None:
    """bfloat16 and float8_e4m3fn tensors, which NumPy's DLPack refuses, by the same bytes under an integer type."""
    carriers = {
        "torch.bfloat16": ("int16", ml_dtypes.bfloat16),
        "torch.float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    }
    carrier, dtype = carriers.get(str(getattr(value, "dtype", "")), (None, None))
    if carrier is None:
        return None
    import sys

    torch = sys.modules["torch"]  # the value is a tensor of it
    return np.from_dlpack(value.view(getattr(torch, carrier))).view(dtype)
