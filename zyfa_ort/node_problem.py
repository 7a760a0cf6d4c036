"""A ZyfaPrefillAttention node as a problem for ``zyfa_ort.kernels.select``: attributes, types and shapes of inputs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import onnx_ir as ir

from zyfa_ort.graph_passes import schema
from zyfa_ort.graph_passes.values import attribute_float, attribute_int, attribute_string, operand

DTYPES = {
    ir.DataType.FLOAT: "float",
    ir.DataType.FLOAT16: "float16",
    ir.DataType.BFLOAT16: "bfloat16",
    ir.DataType.FLOAT8E4M3FN: "float8e4m3fn",
    ir.DataType.BOOL: "bool",
    ir.DataType.INT32: "int32",
    ir.DataType.INT64: "int64",
}
_WORDS = ("layout", "causal_alignment")


@dataclass(frozen=True)
class Tensor:
    """Type in the words of ``zyfa_ort.kernels.select``, and lengths, None where they are not known."""

    dtype: str
    shape: tuple[int | None, ...]


@dataclass(frozen=True)
class _Part:
    batch: int | None
    heads: int | None
    rows: int | None
    dim: int | None


def arguments(
    node: ir.Node, tensors: Mapping[str, Tensor], options: Mapping[str, str], some_length: int
) -> dict[str, Any] | None:
    """Arguments of ``make_problem``; None when the head dims or heads are not known.

    Args:
        node: the node.
        tensors: its inputs by name, those whose type and rank are known.
        options: the provider options that the node runs with; empty outside the plugin provider.
        some_length: stands for lengths of keys and biases that are not known. ``q_len`` stays None.
    """
    text = {name: attribute_string(node, name, str(schema.ATTRIBUTES[name].default)) for name in _WORDS}
    parts = []
    for name, heads in (("query", "num_heads"), ("key", "kv_num_heads"), ("value", "kv_num_heads")):
        part = _part(tensors.get(name), text["layout"], attribute_int(node, heads, 0))
        if part is None or part.dim is None or part.heads is None:
            return None
        parts.append(part)
    query, key, value = parts
    dtype = tensors["query"].dtype
    scale = attribute_float(node, "scale", 0.0) if "scale" in node.attributes else None
    return {
        **text,
        **_precision(node, dtype, options),
        **_optional_inputs(node, tensors, some_length),
        **_outputs(node),
        "batch": 1 if query.batch is None else query.batch,
        "q_heads": query.heads,
        "q_len": query.rows,
        "qk_dim": query.dim,
        "kv_heads": key.heads,
        "new_len": some_length if key.rows is None else key.rows,
        "v_dim": value.dim,
        "dtype": dtype,
        "out_dtype": _out_dtype(node),
        "scale": scale,
        "softcap": attribute_float(node, "softcap", 0.0),
        "is_causal": bool(attribute_int(node, "is_causal", 1)),
        "window_left": attribute_int(node, "window_left", -1),
        "byte_rounding": options.get("byte_rounding", "unknown"),
    }


def _part(tensor: Tensor | None, layout: str, heads: int) -> _Part | None:
    if tensor is None:
        return None
    shape = tensor.shape
    if len(shape) == 3 and heads:
        return _Part(shape[0], heads, shape[1], None if shape[2] is None else shape[2] // heads)
    if len(shape) != 4:
        return None
    heads_at, rows_at = (1, 2) if layout == "BHSD" else (2, 1)
    counted = shape[heads_at]
    return _Part(shape[0], heads or None if counted is None else counted, shape[rows_at], shape[3])


def _precision(node: ir.Node, dtype: str, options: Mapping[str, str]) -> dict[str, Any]:
    """The node's, or the provider option's in its place."""
    chosen = options.get("precision", "node")
    replaced = chosen != "node" and dtype != "float8e4m3fn"
    defaults = {name: str(schema.ATTRIBUTES[name].default) for name in schema.FP8_ONLY_ATTRIBUTES}
    made: dict[str, Any] = {name: attribute_string(node, name, word) for name, word in defaults.items()}
    made["precision"] = chosen if replaced else attribute_string(node, "precision", "") or None
    return made | defaults if replaced and chosen != "fp8" else made


def _optional_inputs(node: ir.Node, tensors: Mapping[str, Tensor], some_length: int) -> dict[str, Any]:
    def given(name: str) -> bool:
        return operand(node, schema.INPUTS.index(name)) is not None

    made: dict[str, Any] = {"sinks": given("sinks"), "past_len": 0}
    if given("past_key"):
        past = tensors.get("past_key")
        length = past.shape[2] if past is not None and len(past.shape) == 4 else None
        made["past_len"] = some_length if length is None else length
    if given("key_mask"):
        mask = tensors.get("key_mask")
        made |= {"key_mask": "unread", "mask_dtype": "bool" if mask is None else mask.dtype}
    if given("attn_bias"):
        bias = tensors.get("attn_bias")
        shape = (None, None) if bias is None else bias.shape
        lengths = [some_length if length is None else length for length in shape]
        made["bias"] = (*(1,) * (4 - len(lengths)), *lengths)
    scale = tensors.get("q_scale")
    if scale is not None and given("q_scale"):
        made["scales"] = (
            "batch_head" if len(scale.shape) == 2 else "tensor" if scale.shape[0] == 1 else "head"
        )
    return made


def _outputs(node: ir.Node) -> dict[str, bool]:
    made = [bool(value is not None and value.name) for value in node.outputs]
    names = schema.OUTPUTS[1:]
    return dict(zip(names, made[1:] + [False] * len(names), strict=False))


def _out_dtype(node: ir.Node) -> str | None:
    out = node.attributes.get("out_dtype")
    return None if out is None else DTYPES.get(ir.DataType(out.as_int()))
