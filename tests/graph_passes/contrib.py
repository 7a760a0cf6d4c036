"""Models of one attention node of ONNX Runtime (com.microsoft) and inputs for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from graph_passes.graph import onnx_type

Array = NDArray[Any]
Dims = Sequence[int | str | None]


def one_node(
    op_type: str,
    inputs: Mapping[str, tuple[Any, Dims] | None],
    outputs: Mapping[str, Dims | None],
    constants: Mapping[str, Array] | None = None,
    dtype: Any = np.float32,
    **attributes: Any,
) -> onnx.ModelProto:
    """A model of one node.

    inputs: by name in the node's order, type and dimensions; None leaves an input out. outputs: None leaves one out.
    constants: inputs that are initializers (they are in `inputs` too, for the order).
    """
    held = dict(constants or {})
    wires = [name if spec is not None else "" for name, spec in inputs.items()]
    results = [name if dims is not None else "" for name, dims in outputs.items()]
    node = helper.make_node(op_type, wires, results, name="attention", domain="com.microsoft", **attributes)
    graph = helper.make_graph(
        [node],
        "graph",
        [
            helper.make_tensor_value_info(name, onnx_type(spec[0]), spec[1])
            for name, spec in inputs.items()
            if spec is not None and name not in held
        ],
        [
            helper.make_tensor_value_info(name, onnx_type(dtype), dims)
            for name, dims in outputs.items()
            if dims is not None
        ],
        [onnx.numpy_helper.from_array(array, name) for name, array in held.items()],
    )
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, ir_version=9, opset_imports=opsets)


def random_inputs(
    model: onnx.ModelProto, lengths: Mapping[str, int], seed: int = 0, **given: Array
) -> dict[str, Array]:
    """Gaussian numbers with an outlier channel for the model's float inputs; the others come as `given`."""
    rng = np.random.default_rng(seed)
    feeds: dict[str, Array] = {}
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        shape = [dim.dim_value if dim.HasField("dim_value") else lengths[dim.dim_param] for dim in dims]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = rng.standard_normal(shape)
        if array.ndim > 2 and array.size and shape[-1] > 1:
            array[..., 1] *= 6
        feeds[value.name] = given[value.name] if value.name in given else array.astype(dtype)
    return feeds
