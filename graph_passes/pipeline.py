"""The passes in order, and the report.

`fuse_model` runs READING and WRITING on a model in place; `inspect_model` runs READING only and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Final, Literal

import onnx
import onnx_ir as ir

from .attention_op import decide_attention
from .build import Builder, Names
from .describe import already_fused, declined, fused_nodes, fusible
from .errors import GraphPassError
from .fuse_attention import Format, node_name, rewrite
from .fusion import Fusion, decide
from .inside import hidden_candidates
from .number_format import number_format
from .portable import OTHER_KIND, Kind, common_kind, function, kind_of
from .portable import check as check_portable
from .report import FuseOptions, FuseReport, SiteOptions, SiteReport
from .scenarios import ProbeSet, make_probes
from .schema import DOMAIN, VERSION
from .sites import AttentionNode, Declined, Found, Site, find_sites
from .sweep import in_order
from .values import label

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


def probe(run: Run) -> None:
    """Run the graph on small shapes; later passes decide on what they see."""
    run.probes = make_probes(run.model.graph, run.opset)
    run.names = Names(run.model)


def find_fused(run: Run) -> None:
    """Report the nodes of earlier runs."""
    assert run.probes is not None
    for node, where in fused_nodes(run.model):
        run.sites.append(already_fused(node, where, run.probes))


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
            run.formats[at] = number_format(
                decision, run.options.for_site(name), run.options.quantize_nodes, run.probes
            )
    _check_exceptions(run)


def _check_exceptions(run: Run) -> None:
    """Refuse options for a site that is not there: its format would silently be the one of all others."""
    declined_sites = (label(one.node) for one in run.decided if isinstance(one, Declined))
    names = [*run.node_names.values(), *declined_sites, *(site.node for site in run.sites)]
    for name in run.options.per_site:
        if name not in names:
            close = get_close_matches(name, names, n=1, cutoff=0.0) or ["none, there is no attention"]
            raise GraphPassError(f"options per site: expected a site's name such as {close[0]}, got {name}")


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
    for graph in run.model.graphs():
        if run.modified and not in_order(
            graph
        ):  # two sites share a mask, and the second one's node comes first
            graph.sort()


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
    probe,  # before finding: what is a scale, a mask or a weight is asked of the runs
    find_fused,  # before the search, so that a second run sees its own work and says so
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

    Raises GraphPassError, before any change, for an opset that is not known and for options of a site that is not there.
    """
    run = Run(model, options or FuseOptions())
    for one in (*READING, *WRITING):
        one(run)
    return FuseReport(_report(run, "fused"), run.modified)


def inspect_model(model: ir.Model, options: FuseOptions | None = None) -> FuseReport:
    """What `fuse_model` would do; the model stays as it is. Raises GraphPassError like `fuse_model`."""
    run = Run(model, options or FuseOptions())
    for one in READING:
        one(run)
    return FuseReport(_report(run, "fusible"), False)


def _report(run: Run, status: Literal["fused", "fusible"]) -> tuple[SiteReport, ...]:
    sites = list(run.sites)
    for at, decision in enumerate(run.decided):
        if isinstance(decision, Declined):
            sites.append(declined(decision))
        else:
            sites.append(fusible(decision, *run.formats[at], run.node_names[at]).with_status(status))
    return tuple(sites)
