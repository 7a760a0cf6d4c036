"""Sites in the words of the report: those that can be fused, those that are declined, and the nodes of earlier runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final, get_args

import onnx_ir as ir

from .fuse_attention import Format
from .fusion import Fusion
from .report import SiteReport
from .scenarios import ProbeSet
from .schema import ATTRIBUTES, DOMAIN, INPUTS, PREFILL_ATTENTION, Fp8Edges, Precision
from .sites import Declined, bodies
from .values import attribute_float, attribute_int, attribute_string, label, operand

PRECISIONS: Final[dict[str, Precision]] = {word: word for word in get_args(Precision)}
EDGES: Final[dict[str, Fp8Edges]] = {word: word for word in get_args(Fp8Edges)}
PRECISION_OF_TYPE: Final[dict[ir.DataType | None, Precision]] = {
    ir.DataType.FLOAT: "fp32",
    ir.DataType.FLOAT16: "fp32",
    ir.DataType.BFLOAT16: "bf16",
    ir.DataType.FLOAT8E4M3FN: "fp8",
}
KEY_MASK, ATTN_BIAS, SINKS, PAST_KEY = (
    INPUTS.index(name) for name in ("key_mask", "attn_bias", "sinks", "past_key")
)


def mask_words(
    is_causal: bool, top_left: bool, window: bool, key_mask: bool, bias: bool, sinks: bool
) -> tuple[str, ...]:
    """The mask in words, as `SiteReport.mask` lists them."""
    words = ("causal (top left)" if top_left else "causal", "window", "key mask", "bias", "sinks")
    given = (is_causal, window, key_mask, bias, sinks)
    return tuple(word for word, there in zip(words, given, strict=True) if there) or ("full",)


def declined(one: Declined) -> SiteReport:
    """A site that stays as it is, with the reason."""
    return SiteReport(
        "declined",
        label(one.node),
        one.node.op_type,
        graph=one.where,
        at=label(one.at),
        reason=one.reason,
    )


def fusible(fusion: Fusion, fmt: Format, notes: tuple[str, ...], name: str) -> SiteReport:
    """A site that can be fused, under the name of its new node."""
    structure, masking = fusion.masking.structure, fusion.masking
    return SiteReport(
        "fusible",
        name,
        fusion.head.op_type,
        graph=fusion.where,
        num_heads=fusion.query.heads,
        kv_num_heads=fusion.kv_heads,
        head_dim=fusion.query.head_dim,
        v_head_dim=fusion.operands.value.new.head_dim,
        mask=mask_words(
            structure.is_causal,
            structure.alignment == "top_left",
            structure.window_left >= 0,
            bool(masking.key_masks),
            bool(masking.biases),
            fusion.sinks is not None,
        ),
        is_causal=structure.is_causal,
        causal_alignment=structure.alignment,
        window_left=structure.window_left,
        scale=fusion.scale,
        softcap=fusion.softcap,
        layout=fusion.query.form.layout,
        precision=fmt.precision,
        rotation=fmt.rotation,
        fp8_edges=fmt.fp8_edges if fmt.precision == "fp8" else None,
        past=fusion.has_past,
        notes=(*masking.notes, *notes),
    )


def fused_nodes(model: ir.Model) -> Iterator[tuple[ir.Node, str]]:
    """Attention nodes of ours, with the path to the body or function that each is in."""
    yield from _ours(model.graph, "")
    for function in model.functions.values():
        yield from _ours(function, f"function {function.domain}::{function.name}/")


def _ours(nodes: Iterable[ir.Node], where: str) -> Iterator[tuple[ir.Node, str]]:
    for node in nodes:
        for attribute in node.attributes.values():
            for body in bodies(attribute):
                yield from _ours(body, f"{where}{label(node)}/{attribute.name}/")
        if node.domain == DOMAIN and node.op_type == PREFILL_ATTENTION:
            yield node, where


def already_fused(node: ir.Node, where: str, probes: ProbeSet) -> SiteReport:
    """What can be read off a node of ours: its attributes, and head counts and dims where shapes are known."""

    def number(name: str) -> int:
        return attribute_int(node, name, int(ATTRIBUTES[name].default or 0))

    def word(name: str) -> str:
        return attribute_string(node, name, str(ATTRIBUTES[name].default or ""))

    heads, head_dim = _heads(node, 0, number("num_heads"), word("layout"), probes)
    kv_heads, v_head_dim = _heads(node, 2, number("kv_num_heads"), word("layout"), probes)
    top_left = word("causal_alignment") == "top_left"
    by_type = PRECISION_OF_TYPE.get(probes.first.dtype(operand(node, 0)))
    precision = PRECISIONS.get(word("precision"), by_type)
    scale = node.attributes.get("scale")
    return SiteReport(
        "already fused",
        label(node),
        node.op_type,
        graph=where,
        num_heads=heads,
        kv_num_heads=kv_heads,
        head_dim=head_dim,
        v_head_dim=v_head_dim,
        mask=mask_words(
            bool(number("is_causal")),
            top_left,
            number("window_left") >= 0,
            *(operand(node, at) is not None for at in (KEY_MASK, ATTN_BIAS, SINKS)),
        ),
        is_causal=bool(number("is_causal")),
        causal_alignment="top_left" if top_left else "bottom_right",
        window_left=number("window_left"),
        scale=None if scale is None else attribute_float(node, "scale", 0.0),
        softcap=attribute_float(node, "softcap", 0.0),
        layout="BHSD" if word("layout") == "BHSD" else "BSHD",
        precision=precision,
        rotation="hadamard" if word("rotation") == "hadamard" else "none",
        fp8_edges=EDGES.get(word("fp8_edges")) if precision == "fp8" else None,
        past=operand(node, PAST_KEY) is not None,
    )


def _heads(
    node: ir.Node, at: int, heads: int, layout: str, probes: ProbeSet
) -> tuple[int | None, int | None]:
    """Number and dim of the heads of input `at`; None where neither attribute nor shape says."""
    shapes = [shape for one in probes.probes if (shape := one.shape(operand(node, at))) is not None]
    if not shapes:
        return heads or None, None
    fixed = [lengths[0] if len(set(lengths)) == 1 else None for lengths in zip(*shapes, strict=True)]
    width = fixed[-1]
    if len(fixed) == 4:
        return heads or fixed[1 if layout == "BHSD" else 2], width
    return heads or None, None if width is None or not heads else width // heads
