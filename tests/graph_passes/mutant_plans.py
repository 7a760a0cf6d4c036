"""How one mutant is written: a `Plan`.

Its defaults are the plainest causal attention; every field names one of several ways to write the same, or (the
fields under "other meaning") something that looks alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from graph_passes.mutant_masks import Mask

HEAD_DIM: Final = 8
SCALES: Final = ("mul", "div", "query", "key", "both", "twice", "weights", "late", "before heads", "root")


CAUSAL: Final = Mask()


@dataclass(frozen=True)
class Plan:
    """source   what query, key and value are made of: a key of SOURCES (mutant_operands)
    product  how Q x K^T is written: a key of PRODUCTS
    scale    None: 1/sqrt(head_dim); `scale_at` where it is applied, one of SCALES
    repeat   how key heads become query heads: a key of REPEATS, for keys and for values
    mask, meet   see mutant_masks
    softcap  0: none
    sinks    a column of one number per head
    bias     a float input added to the scores, or "alibi", computed from positions
    past     (B, Hkv, past, D) inputs before the keys and values
    guard    NaN guard after the Softmax, with what it fills in
    sites    two attentions on the same inputs that share a mask, or have one each with `copies`
    """

    source: str = "inputs"
    product: str = "0132"
    heads: int = 4
    kv_heads: int = 4
    scale: float | None = None
    scale_at: str = "mul"
    repeat: str = "expand"
    repeat_values: str = ""
    mask: Mask | None = CAUSAL
    meet: str = "bool"
    softcap: float = 0.0
    sinks: bool = False
    bias: str = ""
    past: bool = False
    guard: float | None = None
    sites: int = 1
    copies: bool = False
    merge: bool = True
    cross: bool = False
    opset: int = 18
    constants_as_nodes: bool = False
    subtract_max: str = ""
    # other meaning
    probabilities: str = ""
    values: str = ""
    keys: str = ""
    past_order: str = ""
    train: str = ""
    axis: int = -1
    clip: float = 0.0
    long_scale: int = 0

    @property
    def factor(self) -> float:
        return 1 / math.sqrt(HEAD_DIM) if self.scale is None else self.scale
