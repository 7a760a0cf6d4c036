"""Which GPU kernels would run the nodes of ai.zyfa in a model, as far as its shapes say (docs/kernels.md).

The rule is that of ``zyfa_ort.kernels.select``, which the operator library asks in every run with the true shapes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import onnx_ir as ir

from zyfa_ort.graph_passes import model_file, schema
from zyfa_ort.graph_passes.values import attribute_float, attribute_int, attribute_string, operand
from zyfa_ort.kernels.select import (
    Choice,
    NoKernelError,
    make_problem,
    select,
    select_hadamard,
    select_quantize,
)

# Lengths that are not known are tried as a prefill of this many rows, and as a decode of one.
SOME_LENGTH = 1024
_DTYPES = {
    ir.DataType.FLOAT: "float",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BFLOAT16: "bfloat16",
    ir.DataType.FLOAT8E4M3FN: "float8e4m3fn",
    ir.DataType.BOOL: "bool",
    ir.DataType.INT32: "int32",
    ir.DataType.INT64: "int64",
}
_UNKNOWN = "known when the model runs: its shapes do not say the head dim"


@dataclass(frozen=True)
class NodeKernels:
    """`kernels` in words; `refusal` is why there are none, empty when there are."""

    name: str
    op: str
    kernels: str
    refusal: str = ""


def is_ours(node: ir.Node) -> bool:
    return node.domain == schema.DOMAIN and node.op_type in schema.ATTRIBUTES_OF


def node_kernels(model: ir.Model, provider_options: Mapping[str, str]) -> list[NodeKernels]:
    """Of every node of ours, bodies included, in graph order."""
    made = []
    for node in model.graph.all_nodes():
        if not is_ours(node):
            continue
        try:
            made.append(NodeKernels(node.name or "", node.op_type, _kernels(node, provider_options)))
        except (NoKernelError, ValueError) as error:
            made.append(NodeKernels(node.name or "", node.op_type, "", str(error)))
    return made


def with_shapes(path: Path) -> ir.Model:
    """The model with the shapes that the onnx package can infer. Raises ModelFileError."""
    from onnx_ir.passes.common import ShapeInferencePass

    from zyfa_ort import schemas

    model = model_file.load(path)
    schemas.register()
    # A model that the onnx package cannot infer keeps the shapes that are written in it; the pass logs a traceback.
    log = logging.getLogger(ShapeInferencePass.__module__)
    was, log.disabled = log.disabled, True
    try:
        return ShapeInferencePass()(model).model
    except Exception:
        return model
    finally:
        log.disabled = was


def _kernels(node: ir.Node, options: Mapping[str, str]) -> str:
    if node.op_type != schema.PREFILL_ATTENTION:
        return _tensor_op(node)
    problem = _problem(node, options)
    if problem is None:
        return _UNKNOWN
    rows = problem.pop("rows")
    if rows is not None:
        return _names(select(make_problem(q_len=rows, **problem)))
    prefill = _names(select(make_problem(q_len=SOME_LENGTH, **problem)))
    if problem["past_len"]:
        problem["new_len"] = 1
    decode = _names(select(make_problem(q_len=1, **problem)))
    return f"prefill: {prefill}; one query: {decode}"


def _names(choice: Choice) -> str:
    return ", ".join(dict.fromkeys(step.row.kernel for step in choice.launches)) or "nothing to compute"


def _tensor_op(node: ir.Node) -> str:
    shape, dtype = _shape(node, 0), _dtype(node, 0)
    if shape is None or shape[-1] is None or dtype is None:
        return _UNKNOWN
    if node.op_type == schema.HADAMARD:
        return _names(select_hadamard(shape[-1], shape[-1], dtype))
    sizes = [1 if size is None else size for size in shape]
    if len(sizes) != 4:
        raise ValueError(f"x: expected 4 dimensions, got {len(sizes)}")
    words = {name: attribute_string(node, name, default) for name, default in _words(node.op_type)}
    return _names(select_quantize((sizes[0], sizes[1], sizes[2], sizes[3]), dtype, **words))


def _words(op_type: str) -> Iterable[tuple[str, str]]:
    return [(name, str(spec.default)) for name, spec in schema.ATTRIBUTES_OF[op_type].items()]


def _problem(node: ir.Node, options: Mapping[str, str]) -> dict[str, Any] | None:
    """Arguments of make_problem, with `rows` None when the number of queries is not known."""
    layout = attribute_string(node, "layout", "BSHD")
    query, key, value = (
        _part(node, at, layout, heads)
        for at, heads in enumerate(("num_heads", "kv_num_heads", "kv_num_heads"))
    )
    dtype = _dtype(node, 0)
    if query is None or key is None or value is None or dtype is None:
        return None
    past = _shape(node, schema.INPUTS.index("past_key"))
    mask = _dtype(node, schema.INPUTS.index("key_mask"))
    out = node.attributes.get("out_dtype")
    known_out = None if out is None else _DTYPES.get(ir.DataType(out.as_int()))
    scale = attribute_float(node, "scale", 0.0) if "scale" in node.attributes else None
    return {
        "rows": query.rows,
        "batch": query.batch or 1,
        "q_heads": query.heads,
        "kv_heads": key.heads,
        "new_len": key.rows or SOME_LENGTH,
        "past_len": 0 if past is None else past[2] or SOME_LENGTH,
        "qk_dim": query.dim,
        "v_dim": value.dim,
        "dtype": dtype,
        "out_dtype": known_out,
        "layout": layout,
        "scale": scale,
        "softcap": attribute_float(node, "softcap", 0.0),
        "is_causal": bool(attribute_int(node, "is_causal", 1)),
        "causal_alignment": attribute_string(node, "causal_alignment", "bottom_right"),
        "window_left": attribute_int(node, "window_left", -1),
        "mask_dtype": mask or "bool",
        "key_mask": "none" if mask is None else "unread",
        "bias": _bias(node),
        "sinks": operand(node, schema.INPUTS.index("sinks")) is not None,
        "byte_rounding": options.get("byte_rounding", "unknown"),
        **_precision(node, dtype, options),
    }


def _precision(node: ir.Node, dtype: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The node's, or the provider option's in its place."""
    own = attribute_string(node, "precision", "") or None
    chosen = options.get("precision", "node")
    replaced = chosen != "node" and dtype != "float8e4m3fn"
    made = {
        "precision": chosen if replaced else own,
        "fp8_edges": attribute_string(node, "fp8_edges", "hilo"),
        "rotation": attribute_string(node, "rotation", "none"),
    }
    if replaced and chosen != "fp8":
        made |= {"fp8_edges": "hilo", "rotation": "none"}
    return made


def _bias(node: ir.Node) -> tuple[int, int, int, int] | None:
    if operand(node, schema.INPUTS.index("attn_bias")) is None:
        return None
    return 1, 1, SOME_LENGTH, SOME_LENGTH


@dataclass(frozen=True)
class _Part:
    batch: int | None
    heads: int
    rows: int | None
    dim: int


def _part(node: ir.Node, at: int, layout: str, heads_name: str) -> _Part | None:
    shape = _shape(node, at)
    heads = attribute_int(node, heads_name, 0)
    if shape is None:
        return None
    if len(shape) == 3 and heads and shape[2] is not None:
        return _Part(shape[0], heads, shape[1], shape[2] // heads)
    if len(shape) != 4 or shape[3] is None:
        return None
    heads_at, rows_at = (1, 2) if layout == "BHSD" else (2, 1)
    return _Part(shape[0], shape[heads_at] or heads or 1, shape[rows_at], shape[3])


def _shape(node: ir.Node, at: int) -> list[int | None] | None:
    value = operand(node, at)
    if value is None or value.shape is None:
        return None
    return [size if isinstance(size, int) else None for size in value.shape]


def _dtype(node: ir.Node, at: int) -> str | None:
    value = operand(node, at)
    return None if value is None or value.dtype is None else _DTYPES.get(value.dtype)
