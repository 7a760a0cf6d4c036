"""The Hadamard rotation of queries and keys moved into the weights that make them.

Before                                             After
  MatMul(x, W) + b -> query, rotation "hadamard"     MatMul(x, W R) + b R -> query, rotation "none"

R is the rotation of each head, block by block. W R is written as nodes on the constant W, which a runtime computes once when
it opens the model: the weights in the file stay as they are, external ones unread. That works where a head is made by
weights alone: no rotary embedding and no norm in between, and no cache, which would hold rotated keys.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import onnx_ir as ir

from .build import Builder
from .layouts import PACKED, Candidate
from .scenarios import ProbeSet
from .values import Array, is_op, source

FOLDED: Final = "the rotation is part of the weights of query and key"
BLOCK: Final = 64  # 192 is rotated in three blocks


@dataclass(frozen=True)
class Projection:
    """x W + b with constant W (in, heads * head_dim) and b (heads * head_dim) or None."""

    source: ir.Value
    weights: ir.Value
    bias: ir.Value | None


def projection(one: Candidate, probes: ProbeSet) -> Projection | None:
    """How a (B, S, heads * head_dim) tensor is made by weights alone; None if it is not."""
    node, bias = source(one.value), None
    if one.form != PACKED or one.prepare is not None:
        return None
    if is_op(node, "Add") and node is not None:
        left, right = node.inputs[0], node.inputs[1]
        if left is None or right is None:
            return None
        bias, made = (left, right) if probes.is_weight(left) else (right, left)
        if not _is_row(bias, one, probes):
            return None
        node = source(made)
    if node is None or not is_op(node, "MatMul") or node.inputs[0] is None or node.inputs[1] is None:
        return None
    weights = node.inputs[1]
    shape = probes.first_shape(weights)
    width = one.heads * one.head_dim
    if not probes.is_weight(weights) or shape is None or len(shape) != 2 or shape[1] != width:
        return None
    return Projection(node.inputs[0], weights, bias)


def _is_row(value: ir.Value, one: Candidate, probes: ProbeSet) -> bool:
    return probes.is_weight(value) and probes.first_shape(value) == (one.heads * one.head_dim,)


def rotation_matrix(head_dim: int) -> Array:
    """(head_dim, head_dim) float32, orthonormal: Sylvester's, in blocks of 64 for 192."""
    size = BLOCK if head_dim == 3 * BLOCK else head_dim
    matrix = np.ones((1, 1))
    while matrix.shape[0] < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    whole = np.kron(np.eye(head_dim // size), matrix / np.sqrt(size))
    return whole.astype(np.float32)


def rotated(one: Candidate, made: Projection, before: ir.Node, builder: Builder, scope: str) -> ir.Value:
    """The projection with rotated weights."""
    rotation = builder.shared(
        ("rotation", before.graph, one.head_dim, one.dtype),
        lambda: builder.constant(before, rotation_matrix(one.head_dim).astype(one.dtype.numpy()), scope),
    )

    def turned(value: ir.Value, shape: tuple[int, ...]) -> ir.Value:
        heads = builder.reshape(before, builder.now(value), (-1, one.head_dim), scope)
        product = builder.node(before, "MatMul", [heads, rotation], one.dtype, scope)
        return builder.reshape(before, product, shape, scope)

    weights = turned(made.weights, (-1, one.heads * one.head_dim))
    result = builder.node(before, "MatMul", [builder.now(made.source), weights], one.dtype, scope)
    if made.bias is None:
        return result
    return builder.node(before, "Add", [result, turned(made.bias, (-1,))], one.dtype, scope)
