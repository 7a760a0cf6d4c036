"""The passes in order, and the report.

`fuse_model` runs PASSES on a model in place; `inspect_model` runs the same list up to the rewrite and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import onnx
import onnx_ir as ir

from .attention_op import decide_attention
from .build import Builder, Names
from .errors import GraphPassError
from .fuse_attention import Format, node_name, rewrite
from .fusion import Fusion, decide
from .inside import hidden_candidates
from .portable import OTHER_KIND, Kind, common_kind, function, kind_of
from .portable import check as check_portable
from .report import FuseOptions, FuseReport, SiteOptions, SiteReport
from .scenarios import ProbeSet, make_probes
from .schema import ATTRIBUTES, DOMAIN, PREFILL_ATTENTION, VERSION, Precision, rotatable
from .sites import AttentionNode, Declined, Found, Site, find_sites
from .values import attribute_float, attribute_int, attribute_string, label

__all__ = ["FuseOptions", "FuseReport", "SiteOptions", "SiteReport", "fuse_model", "inspect_model"]

OLDEST_OPSET: Final = 7


@dataclass
class Run:
    """What one run of the pipeline has found so far."""

    model: ir.Model
    options: FuseOptions
    names: Names | None = None
    probes: ProbeSet | None = None
    found: list[Found] = field(default_factory=list)
    decided: list[Fusion | Declined] = field(default_factory=list)
    formats: dict[int, tuple[Format, tuple[str, ...]]] = field(default_factory=dict)
    node_names: dict[int, str] = field(default_factory=dict)
    sites: list[SiteReport] = field(default_factory=list)
    kind: Kind | None = None
    modified: bool = False

    @property
    def opset(self) -> int:
        return self.model.opset_imports.get("", 0)


def check_versions(run: Run) -> None:
    """Refuse a model whose operators we may misread."""
    newest = onnx.defs.onnx_opset_version()
    if not OLDEST_OPSET <= run.opset <= newest:
        raise GraphPassError(
            f"opset of the model: expected {OLDEST_OPSET} to {newest} (what onnx {onnx.__version__} knows), "
            f"got {run.opset}; convert the model or install a newer onnx"
        )
    if run.options.portable:
        check_portable(run.model)


def find_fused(run: Run) -> None:
    """Report the nodes of earlier runs."""
    for graph in run.model.graphs():
        for node in graph:
            if node.domain == DOMAIN and node.op_type == PREFILL_ATTENTION:
                run.sites.append(_fused_already(node))


def probe(run: Run) -> None:
    """Run the graph on small shapes; later passes decide on what they see."""
    run.probes = make_probes(run.model.graph, run.opset)
    run.names = Names(run.model)


def find(run: Run) -> None:
    """Find candidates."""
    assert run.probes is not None
    run.found.extend(find_sites(run.model.graph, run.probes))
    run.found.extend(hidden_candidates(run.model, run.found, run.probes))


def judge(run: Run) -> None:
    """Decide each candidate; its number format and its name come along."""
    assert run.probes is not None and run.names is not None
    run.decided = [_decision(candidate, run.probes) for candidate in run.found]
    if run.options.portable:
        run.kind = common_kind([one for one in run.decided if isinstance(one, Fusion)])
        run.decided = [_of_kind(one, run.kind) for one in run.decided]
    for at, decision in enumerate(run.decided):
        if isinstance(decision, Fusion):
            name = run.names.new(node_name(decision))
            run.node_names[at] = name
            run.formats[at] = number_format(decision, run.options.for_site(name))


def _of_kind(decision: Fusion | Declined, kind: Kind | None) -> Fusion | Declined:
    if isinstance(decision, Declined) or kind_of(decision) == kind:
        return decision
    return Declined(decision.head, decision.head, OTHER_KIND, decision.where)


def _decision(candidate: Found, probes: ProbeSet) -> Fusion | Declined:
    if isinstance(candidate, Site):
        return decide(candidate, probes)
    if isinstance(candidate, AttentionNode):
        return decide_attention(candidate.node, candidate.where, probes)
    return candidate


def fuse(run: Run) -> None:
    """Rewrite every site that was decided for."""
    assert run.probes is not None and run.names is not None
    builder = Builder(run.names, run.opset)
    for at, decision in enumerate(run.decided):
        if isinstance(decision, Fusion):
            name, fmt = run.node_names[at], run.formats[at][0]
            rewrite(decision, fmt, name, builder, run.probes, explicit_scale=run.options.portable)
            run.modified = True


def import_domain(run: Run) -> None:
    """Declare our domain, once; other imports and the IR version stay as they are."""
    if run.modified and run.model.opset_imports.get(DOMAIN) != VERSION:
        run.model.opset_imports[DOMAIN] = VERSION


def carry_body(run: Run) -> None:
    """Write what the operator computes into the model, if asked to."""
    if run.modified and run.kind is not None:
        body = function(run.kind, run.opset)
        run.model.functions[body.identifier()] = body


Pass = Callable[[Run], None]

READING: Final[tuple[Pass, ...]] = (
    check_versions,  # first: nothing may be touched or even guessed about operators we do not know
    find_fused,  # before the search, so that a second run sees its own work and says so
    probe,  # before finding: what is a scale, a mask or a weight is asked of the runs
    find,  # all candidates before any rewrite, so that decisions see the original graph
    judge,  # all decisions before any rewrite: a mask shared by two sites is still there for the second
)
WRITING: Final[tuple[Pass, ...]] = (
    fuse,  # removes only what it made dead, so no separate clean-up follows
    carry_body,
    import_domain,  # last: only a model that really holds our operator imports its domain
)


def fuse_model(model: ir.Model, options: FuseOptions | None = None) -> FuseReport:
    """Fuse the attention of `model` in place.

    Raises GraphPassError, before any change, for an opset that is not known.
    """
    run = Run(model, options or FuseOptions())
    for one in (*READING, *WRITING):
        one(run)
    return FuseReport(tuple(run.sites + _report(run, "fused")), run.modified)


def inspect_model(model: ir.Model, options: FuseOptions | None = None) -> FuseReport:
    """What `fuse_model` would do; the model stays as it is. Raises GraphPassError like `fuse_model`."""
    run = Run(model, options or FuseOptions())
    for one in READING:
        one(run)
    return FuseReport(tuple(run.sites + _report(run, "fusible")), False)


def number_format(fusion: Fusion, options: SiteOptions) -> tuple[Format, tuple[str, ...]]:
    """Precision and rotation of one site, with a note where the options cannot be followed."""
    notes: list[str] = []
    precision: Precision = "bf16" if options.precision == "auto" else options.precision
    if precision == "fp8" and (fusion.softcap or fusion.masking.biases):
        why = "a softcap" if fusion.softcap else "an attn_bias"
        notes.append(f"bf16 instead of fp8: the FP8 kernels take no site with {why}")
        precision = "bf16"
    if precision != "fp8":
        if options.rotate == "hadamard":
            notes.append("not rotated: rotation belongs to fp8")
        return Format(precision, "none", options.fp8_edges), tuple(notes)
    head_dim = fusion.query.head_dim
    if options.rotate == "none":
        return Format(precision, "none", options.fp8_edges), tuple(notes)
    if not rotatable(head_dim):
        notes.append(f"not rotated: head_dim {head_dim} is neither a power of two nor 192")
        return Format(precision, "none", options.fp8_edges), tuple(notes)
    return Format(precision, "hadamard", options.fp8_edges), tuple(notes)


def _report(run: Run, status: str) -> list[SiteReport]:
    sites: list[SiteReport] = []
    for at, decision in enumerate(run.decided):
        if isinstance(decision, Declined):
            sites.append(
                SiteReport(
                    "declined",
                    label(decision.node),
                    decision.node.op_type,
                    graph=decision.where,
                    at=label(decision.at),
                    reason=decision.reason,
                )
            )
        else:
            site = _described(decision, *run.formats[at], run.node_names[at])
            sites.append(site.with_status("fused" if status == "fused" else "fusible"))
    return sites


def mask_words(fusion: Fusion) -> tuple[str, ...]:
    """The mask in words, as `SiteReport.mask` lists them."""
    structure, words = fusion.masking.structure, list[str]()
    if structure.is_causal:
        words.append("causal" if structure.alignment == "bottom_right" else "causal (top left)")
    if structure.window_left >= 0:
        words.append("window")
    if fusion.masking.key_masks:
        words.append("key mask")
    if fusion.masking.biases:
        words.append("bias")
    if fusion.sinks is not None:
        words.append("sinks")
    return tuple(words) or ("full",)


def _described(fusion: Fusion, fmt: Format, notes: tuple[str, ...], name: str) -> SiteReport:
    structure = fusion.masking.structure
    return SiteReport(
        "fusible",
        name,
        fusion.head.op_type,
        graph=fusion.where,
        num_heads=fusion.query.heads,
        kv_num_heads=fusion.kv_heads,
        head_dim=fusion.query.head_dim,
        v_head_dim=fusion.operands.value.new.head_dim,
        mask=mask_words(fusion),
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
        notes=(*fusion.masking.notes, *notes),
    )


def _fused_already(node: ir.Node) -> SiteReport:
    """What can be read off a node of ours."""

    def number(name: str) -> int:
        return attribute_int(node, name, int(ATTRIBUTES[name].default or 0))

    def word(name: str) -> str:
        return attribute_string(node, name, str(ATTRIBUTES[name].default))

    inputs = list(node.inputs) + [None] * 11
    words = ["causal" if word("causal_alignment") == "bottom_right" else "causal (top left)"] * number(
        "is_causal"
    )
    words += ["window"] * (number("window_left") >= 0) + ["key mask"] * (inputs[5] is not None)
    words += ["bias"] * (inputs[6] is not None) + ["sinks"] * (inputs[10] is not None)
    scale = node.attributes.get("scale")
    return SiteReport(
        "already fused",
        label(node),
        node.op_type,
        num_heads=number("num_heads") or None,
        kv_num_heads=number("kv_num_heads") or None,
        mask=tuple(words) or ("full",),
        is_causal=bool(number("is_causal")),
        causal_alignment="top_left" if word("causal_alignment") == "top_left" else "bottom_right",
        window_left=number("window_left"),
        scale=None if scale is None else attribute_float(node, "scale", 0.0),
        softcap=attribute_float(node, "softcap", 0.0),
        layout="BHSD" if word("layout") == "BHSD" else "BSHD",
        past=inputs[3] is not None,
        rotation="hadamard" if word("rotation") == "hadamard" else "none",
    )
