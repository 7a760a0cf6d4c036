"""What a caller asks of the passes, and what the passes answer: options in, one line per attention site out."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal, get_args

from .errors import GraphPassError
from .schema import Alignment, Fp8Edges, Layout, Precision, Rotation

PrecisionChoice = Literal["auto", "fp8", "bf16", "fp32"]
RotateChoice = Literal["none", "hadamard", "auto"]
QuantizeNodes = Literal["folded", "explicit"]
Status = Literal["fused", "fusible", "declined", "already fused"]


def _check(option: str, got: object, allowed: tuple[str, ...]) -> None:
    if got not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        raise GraphPassError(f"{option}: expected one of {words}, got {got!r}")


@dataclass(frozen=True)
class SiteOptions:
    """Number format of one site.

    precision: "auto" means "bf16". rotate: "auto" means Hadamard for fp8 where the head dim allows it.
    Raises GraphPassError for any other word.
    """

    precision: PrecisionChoice = "auto"
    rotate: RotateChoice = "none"
    fp8_edges: Fp8Edges = "hilo"

    def __post_init__(self) -> None:
        _check("precision", self.precision, get_args(PrecisionChoice))
        _check("rotate", self.rotate, get_args(RotateChoice))
        _check("fp8_edges", self.fp8_edges, get_args(Fp8Edges))


@dataclass(frozen=True)
class FuseOptions(SiteOptions):
    """Number format of all sites, and `per_site` exceptions keyed by `SiteReport.node` (as `inspect_model` reports it).

    portable: also write what the operator computes into the model as a function, for runtimes without the library.
    quantize_nodes: with "explicit" FP8 codes are made by nodes of their own where that is possible.
    """

    per_site: Mapping[str, SiteOptions] = field(default_factory=dict)
    portable: bool = False
    quantize_nodes: QuantizeNodes = "folded"

    def __post_init__(self) -> None:
        super().__post_init__()
        _check("quantize_nodes", self.quantize_nodes, get_args(QuantizeNodes))
        if self.portable and self.quantize_nodes == "explicit":
            raise GraphPassError(
                "portable: expected folded quantize_nodes, got explicit; a function body covers the attention alone"
            )

    def for_site(self, node: str) -> SiteOptions:
        return self.per_site.get(node, self)


@dataclass(frozen=True)
class SiteReport:
    """One attention site.

    status      "fused" (rewritten), "fusible" (would be rewritten: `inspect_model`), "declined", "already fused"
    node        the fused node's name; for a declined site the name of its Softmax or attention node
    at          for a declined site the node that stands in the way
    op_type     what was found: "Softmax", "Attention", ...
    graph       "" for the main graph, else the path to the If/Loop body or function
    reason      one sentence; empty unless declined
    mask        words: "causal", "causal (top left)", "window", "key mask", "bias", "sinks", "full"
    scale       factor on the scores; None: 1/sqrt(head_dim)
    notes       what a reader should know about a fused site, e.g. why fp8 was not possible
    """

    status: Status
    node: str
    op_type: str
    graph: str = ""
    at: str = ""
    reason: str = ""
    num_heads: int | None = None
    kv_num_heads: int | None = None
    head_dim: int | None = None
    v_head_dim: int | None = None
    mask: tuple[str, ...] = ()
    is_causal: bool = False
    causal_alignment: Alignment = "bottom_right"
    window_left: int = -1
    scale: float | None = None
    softcap: float = 0.0
    layout: Layout | None = None
    precision: Precision | None = None
    rotation: Rotation = "none"
    fp8_edges: Fp8Edges | None = None
    past: bool = False
    notes: tuple[str, ...] = ()

    def with_status(self, status: Status) -> SiteReport:
        return replace(self, status=status)


@dataclass(frozen=True)
class FuseReport:
    """All sites of a model: nodes of earlier runs, then the rest in graph order. `modified` is true exactly when the model was
    changed."""

    sites: tuple[SiteReport, ...]
    modified: bool

    def _count(self, *statuses: Status) -> int:
        return sum(site.status in statuses for site in self.sites)

    @property
    def fused(self) -> int:
        """Sites rewritten in this run (for `inspect_model`: that would be)."""
        return self._count("fused", "fusible")

    @property
    def already_fused(self) -> int:
        return self._count("already fused")

    @property
    def declined(self) -> int:
        return self._count("declined")

    def summary(self) -> str:
        """One line for people. No candidates, and candidates that were all declined, read differently."""
        if not self.sites:
            return "no attention found: the model has no Softmax between two products and no attention node"
        parts = [f"{self.fused} of {len(self.sites)} attention sites fused"]
        if any(site.status == "fusible" for site in self.sites):
            parts = [f"{self.fused} of {len(self.sites)} attention sites can be fused"]
        if self.already_fused:
            parts.append(f"{self.already_fused} already fused")
        if self.declined:
            parts.append(f"{self.declined} found but declined")
        return ", ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        return {
            "summary": self.summary(),
            "modified": self.modified,
            "fused": self.fused,
            "already_fused": self.already_fused,
            "declined": self.declined,
            "sites": [asdict(site) for site in self.sites],
        }

    def to_json(self) -> str:
        """The whole report as JSON text; keys as in the dataclasses, tuples as lists."""
        return json.dumps(self.to_dict(), indent=2)
