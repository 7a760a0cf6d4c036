"""Straight from torch: ``scaled_dot_product_attention`` becomes one ``ZyfaPrefillAttention`` while exporting.

    torch.onnx.export(model, args, "model.onnx", dynamo=True, custom_translation_table=zyfa_ort.export.translation_table())

The causal and GQA flags arrive as attributes, nothing has to be found again. Models that hand a materialised mask to torch
(transformers does, while exporting) keep it as ``attn_bias``; ``zyfa_ort.fuse`` recovers its meaning from an ordinary export.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from zyfa_ort import schemas
from zyfa_ort.errors import InputError
from zyfa_ort.graph_passes import schema

if TYPE_CHECKING:
    from zyfa_ort.graph_passes.schema import Fp8Edges, Precision, Rotation


def translation_table(
    precision: Precision = "bf16", rotation: Rotation = "none", fp8_edges: Fp8Edges = "hilo"
) -> dict[Callable[..., Any], Callable[..., Any]]:
    """For ``torch.onnx.export(..., dynamo=True, custom_translation_table=...)``.

    Args:
        precision, rotation, fp8_edges: attributes of every node; with a mask tensor "fp8" becomes "bf16", as in ``fuse``.

    Raises:
        InputError: an argument is not one of the operator's words.
        ImportError: torch or onnxscript is not installed.
    """
    import torch

    for name, word in (("precision", precision), ("rotation", rotation), ("fp8_edges", fp8_edges)):
        allowed = schema.ATTRIBUTES[name].allowed
        if word not in allowed:
            raise InputError(f"{name}: expected one of {', '.join(allowed)}, got {word}")
    schemas.register()

    def format_of(has_mask: bool) -> dict[str, str]:
        if precision != "fp8" or has_mask:
            return {"precision": "bf16" if precision == "fp8" else precision}
        return {"precision": precision, "rotation": rotation, "fp8_edges": fp8_edges}

    return {torch.ops.aten.scaled_dot_product_attention.default: _translation(format_of)}


def _translation(format_of: Callable[[bool], dict[str, str]]) -> Callable[..., Any]:
    from onnxscript import opset18, values

    domain = values.Opset(schema.DOMAIN, schema.VERSION)
    attention = values.Op(domain, schema.PREFILL_ATTENTION, schemas.attention_schema(outputs=1))

    def scaled_dot_product_attention(
        query: Any,
        key: Any,
        value: Any,
        attn_mask: Any = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Any:
        """torch's operator; its causal rule starts at the first key whatever the lengths."""
        if dropout_p != 0.0:
            raise InputError(
                f"scaled_dot_product_attention: expected dropout_p 0, got {dropout_p}; export model.eval()"
            )
        attributes: dict[str, Any] = {
            "is_causal": int(is_causal),
            "causal_alignment": "top_left",
            "layout": "BHSD",
            **format_of(attn_mask is not None),
        }
        if scale is not None:
            attributes["scale"] = float(scale)
        for name, tensor in (("num_heads", query), ("kv_num_heads", key)):
            if tensor.shape is not None and isinstance(tensor.shape[1], int):
                attributes[name] = tensor.shape[1]
        bias = None
        if attn_mask is not None:
            bias = _as_bias(opset18, attn_mask, query)
        return attention(query, key, value, None, None, None, bias, **attributes)

    return scaled_dot_product_attention


def _as_bias(opset: Any, mask: Any, query: Any) -> Any:
    """torch's boolean mask is True where visible; a number is added to the scores, in the type of the queries."""
    import onnx_ir as ir

    if mask.dtype != ir.DataType.BOOL:
        return mask
    zero = opset.CastLike(opset.Constant(value_float=0.0), query)
    hidden = opset.CastLike(opset.Constant(value_float=float("-inf")), query)
    return opset.Where(mask, zero, hidden)
