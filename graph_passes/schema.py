"""The contract with custom_ops/: domain, operator, input and output order, attributes and their defaults.

Nothing here computes; a change on this page is a change of the operator.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

DOMAIN: Final = "ai.zyfa"
VERSION: Final = 1

PREFILL_ATTENTION: Final = "ZyfaPrefillAttention"
QUANTIZE_FP8: Final = "ZyfaQuantizeFp8"
HADAMARD: Final = "ZyfaHadamard"

Precision = Literal["fp32", "bf16", "fp8"]
Fp8Edges = Literal["hilo", "bf16", "none"]
Rotation = Literal["none", "hadamard"]
Layout = Literal["BSHD", "BHSD"]
Alignment = Literal["bottom_right", "top_left"]

INPUTS: Final = (
    "query",
    "key",
    "value",
    "past_key",
    "past_value",
    "key_mask",
    "attn_bias",
    "q_scale",
    "k_scale",
    "v_scale",
    "sinks",
)
OUTPUTS: Final = ("output", "present_key", "present_value", "lse")


@dataclass(frozen=True)
class AttributeSpec:
    """One operator attribute: its value when absent (None: derived from the inputs) and its allowed words."""

    kind: Literal["int", "float", "string"]
    default: int | float | str | None
    allowed: tuple[str, ...] = ()


ATTRIBUTES: Final[dict[str, AttributeSpec]] = {
    "num_heads": AttributeSpec("int", None),
    "kv_num_heads": AttributeSpec("int", None),
    "scale": AttributeSpec("float", None),  # absent: 1/sqrt(query head dim)
    "is_causal": AttributeSpec("int", 1),
    "causal_alignment": AttributeSpec("string", "bottom_right", ("bottom_right", "top_left")),
    "window_left": AttributeSpec("int", -1),
    "softcap": AttributeSpec("float", 0.0),
    "layout": AttributeSpec("string", "BSHD", ("BSHD", "BHSD")),
    "precision": AttributeSpec("string", None, ("fp32", "bf16", "fp8")),  # absent: by input type
    "fp8_edges": AttributeSpec("string", "hilo", ("hilo", "bf16", "none")),
    "rotation": AttributeSpec("string", "none", ("none", "hadamard")),
    "out_dtype": AttributeSpec("int", None),
}

ATTRIBUTES_OF: Final[dict[str, dict[str, AttributeSpec]]] = {
    PREFILL_ATTENTION: ATTRIBUTES,
    QUANTIZE_FP8: {
        "granularity": AttributeSpec("string", "batch_head", ("tensor", "head", "batch_head")),
        "rotation": ATTRIBUTES["rotation"],
        "layout": ATTRIBUTES["layout"],
    },
    HADAMARD: {},
}

# The operator refuses these attributes unless `precision` is "fp8", so the rewrite leaves them out elsewhere.
FP8_ONLY_ATTRIBUTES: Final = ("fp8_edges", "rotation")


def rotatable(head_dim: int) -> bool:
    """True when the Hadamard rotation exists for `head_dim`: a power of two, or 192 (three blocks of 64)."""
    return head_dim == 192 or (head_dim > 0 and head_dim & (head_dim - 1) == 0)
