"""Past keys and values.

Before                                     After
  key = Concat(past_key, new, axis=2)        past_key and new are inputs of the operator,
  key -> attention; key is a model output    present_key is its output and keeps the model output's name

Lengths are not compared by name: exporters give the past of every layer, and its keys and values, names of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from .facts import Shape
from .layouts import BHSD, Candidate, candidates, placed_by
from .probes import Probe
from .scenarios import ProbeSet
from .values import attribute_int, is_op, operand, source


@dataclass(frozen=True)
class Cache:
    """One side (keys or values) of a cache.

    past     (B, Hkv, Sp, D)
    new      values that can be handed over as the new part, among them (B, Hkv, Sk, D)
    present  past and new, (B, Hkv, Sp + Sk, D); often a model output
    """

    past: ir.Value
    new: tuple[Candidate, ...]
    present: ir.Value


def cache_of(whole: Candidate, probes: ProbeSet) -> Cache | None:
    """The cache behind a (B, Hkv, S, D) candidate, if it is past keys from outside joined with new ones."""
    node = source(whole.value)
    if whole.form != BHSD or not is_op(node, "Concat") or node is None or len(node.inputs) != 2:
        return None
    past, new = _uncopied(node.inputs[0]), node.inputs[1]
    if (
        past is None
        or new is None
        or attribute_int(node, "axis", 0) not in (2, -2)
        or not _from_outside(past)
    ):
        return None
    if probes.first.dtype(past) != whole.dtype:
        return None

    def lead_of(probe: Probe) -> Shape | None:
        shape = probe.shape(new)
        return None if shape is None else shape[:2]

    found = candidates(new, placed_by((0, 1, 2, 3)), lead_of, probes, scales=False)
    same = [
        one
        for one in found
        if (one.heads, one.head_dim, one.dtype) == (whole.heads, whole.head_dim, whole.dtype)
    ]
    if not any(one.form == BHSD for one in same):
        return None
    return Cache(past, tuple(same), whole.value)


def _copies(node: ir.Node | None) -> bool:
    """Identity; and the Concat of one tensor that torch's tracer leaves of an empty cache."""
    return is_op(node, "Identity") or (is_op(node, "Concat") and node is not None and len(node.inputs) == 1)


def _uncopied(value: ir.Value | None) -> ir.Value | None:
    """The value that `value` is a plain copy of."""
    while value is not None and (node := source(value)) is not None and _copies(node):
        value = node.inputs[0]
    return value


def _from_outside(value: ir.Value) -> bool:
    """True when `value` is an input of the model, possibly cast or reordered over the batch (beam search)."""
    for _ in range(4):
        node = source(value)
        if node is None:
            return value.is_graph_input() and not value.is_initializer()
        first = operand(node, 0)
        if first is None or not (_copies(node) or is_op(node, "Cast", "Gather")):
            return False
        value = first
    return False
