"""Which number format each fused node gets, and why it is not the one asked for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from .fold_rotation import FOLDED, Projection, projection
from .fuse_attention import Format, used_presents
from .fusion import Fusion
from .report import QuantizeNodes, SiteOptions
from .scenarios import ProbeSet
from .schema import Precision, rotatable

HIDDEN_COUNT: Final = "keys hidden by the key mask count in the scales of the codes"


def number_format(
    fusion: Fusion, options: SiteOptions, quantize_nodes: QuantizeNodes, probes: ProbeSet
) -> tuple[Format, tuple[str, ...]]:
    """Precision and rotation of one site, with a note where the options cannot be followed."""
    notes: list[str] = []
    precision: Precision = "bf16" if options.precision == "auto" else options.precision
    if precision == "fp8" and (fusion.softcap or fusion.masking.biases):
        why = "a softcap" if fusion.softcap else "an attn_bias"
        notes.append(f"bf16 instead of fp8: the FP8 kernels take no site with {why}")
        precision = "bf16"
    fmt = Format(precision, "none", options.fp8_edges)
    if precision != "fp8":
        if options.rotate == "hadamard":
            notes.append("not rotated: rotation belongs to fp8")
        return fmt, tuple(notes)
    head_dim = fusion.query.head_dim
    if options.rotate != "none" and rotatable(head_dim):
        fmt = replace(fmt, rotation="hadamard", folded=_projections(fusion, probes))
        notes += [FOLDED] if fmt.folded is not None else []
    elif options.rotate != "none":
        notes.append(f"not rotated: head_dim {head_dim} is neither a power of two nor 192")
    if quantize_nodes == "explicit":
        why_not = _why_folded(fusion, fmt)
        fmt = replace(fmt, explicit=not why_not)
        if why_not:
            notes.append(f"no quantise nodes: {why_not}")
        elif fusion.masking.key_masks:
            notes.append(HIDDEN_COUNT)
    return fmt, tuple(notes)


def _projections(fusion: Fusion, probes: ProbeSet) -> tuple[Projection, Projection] | None:
    """How query and key are made, if the rotation can be part of it; a cache would hold rotated keys."""
    if fusion.has_past or used_presents(fusion):
        return None
    query = projection(fusion.operands.query, probes)
    key = projection(fusion.operands.key.new, probes)
    return None if query is None or key is None else (query, key)


def _why_folded(fusion: Fusion, fmt: Format) -> str:
    """Why a site cannot read codes that other nodes made."""
    if fusion.has_past or used_presents(fusion):
        return "past and present keys keep the type of the new ones"
    if fmt.fp8_edges == "bf16":
        return "fp8_edges bf16 needs the numbers before they are quantised"
    return ""
