"""FP8 codes made by nodes of their own instead of inside the attention operator (`--quantize-nodes explicit`).

Before                                       After
  ZyfaPrefillAttention(query, key, value)      query, key -> [ZyfaHadamard] -> ZyfaQuantizeFp8 -> codes, scale
                                               value -> ZyfaQuantizeFp8 -> codes, scale
                                               ZyfaPrefillAttention(codes and scales) in the layout of 4-D tensors

The same scale per batch row and head, so the same bits; only that keys hidden by a key mask count in the scales here. The
rotation is a node of its own only in float32: rounding what it makes to a narrower type would change codes, so there it is
an attribute of ZyfaQuantizeFp8.
"""

from __future__ import annotations

import onnx_ir as ir

from .build import Builder
from .layouts import Form
from .schema import DOMAIN, HADAMARD, QUANTIZE_FP8, Rotation

Inputs = dict[str, ir.Value | None]


def quantised(
    inputs: Inputs,
    heads: dict[str, int],
    form: Form,
    dtype: ir.DataType,
    rotation: Rotation,
    before: ir.Node,
    builder: Builder,
    scope: str,
) -> Inputs:
    """`inputs` with codes for query, key and value, and their scales. heads: of each of the three."""
    found = dict(inputs)
    for name, count in heads.items():
        value = inputs[name]
        assert value is not None
        if form.packed:
            value = builder.reshape(before, value, (0, 0, count, -1), scope)
        rotates = rotation == "hadamard" and name != "value"
        own_node = rotates and dtype == ir.DataType.FLOAT
        if own_node:
            value = builder.node(before, HADAMARD, [value], dtype, scope, DOMAIN)
        found[name], found[f"{name[0]}_scale"] = builder.nodes(
            before,
            QUANTIZE_FP8,
            [value],
            (ir.DataType.FLOAT8E4M3FN, ir.DataType.FLOAT),
            scope,
            DOMAIN,
            layout=form.layout,
            rotation="hadamard" if rotates and not own_node else "none",
        )
    return found
