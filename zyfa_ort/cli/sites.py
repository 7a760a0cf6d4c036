"""The table of attention sites that `fuse` and `inspect` print."""

from __future__ import annotations

from rich.markup import escape
from rich.table import Table

from zyfa_ort.cli.common import shown, table
from zyfa_ort.graph_passes.report import FuseReport, SiteReport

_COLUMNS = ("status", "node", "heads", "head dim", "mask", "layout", "precision", "cache", "remarks")
_COLOURS = {"fused": "green", "fusible": "green", "already fused": "cyan", "declined": "yellow"}


def sites_table(report: FuseReport) -> Table:
    """One line per site; runs of sites that differ in nothing but their names are folded into one line."""
    rows: list[tuple[str, ...]] = []
    for first, last, count in _runs(report.sites):
        name = shown(first.node) or "(unnamed)"
        if count > 1:
            name = f"{name} … {shown(last.node) or '(unnamed)'} ({count} sites)"
        colour = _COLOURS[first.status]
        cells = (escape(shown(cell)) for cell in _cells(first))
        rows.append((f"[{colour}]{first.status}[/]", escape(name), *cells))
    filled = [at for at in range(len(_COLUMNS)) if any(row[at] for row in rows)]
    made = table("Attention sites", *(_COLUMNS[at] for at in filled))
    for row in rows:
        made.add_row(*(row[at] for at in filled))
    return made


def _runs(sites: tuple[SiteReport, ...]) -> list[tuple[SiteReport, SiteReport, int]]:
    runs: list[tuple[SiteReport, SiteReport, int]] = []
    for site in sites:
        if runs and (runs[-1][0].status, _cells(runs[-1][0])) == (site.status, _cells(site)):
            runs[-1] = (runs[-1][0], site, runs[-1][2] + 1)
        else:
            runs.append((site, site, 1))
    return runs


def _pair(first: int | None, second: int | None) -> str:
    if first is None:
        return "?"
    return str(first) if second in (None, first) else f"{first}/{second}"


def _cells(site: SiteReport) -> tuple[str, ...]:
    if site.status == "declined":
        where = f" (at {site.at})" if site.at and site.at != site.node else ""
        inside = f" in {site.graph}" if site.graph else ""
        return ("", "", "", "", "", "", f"{site.reason}{where}{inside}")
    precision: str = site.precision or "?"
    if site.precision == "fp8":
        precision = f"fp8 ({site.fp8_edges} edges{', hadamard' if site.rotation == 'hadamard' else ''})"
    words = {"window": f"window ({site.window_left} to the left)"}
    mask = ", ".join(words.get(word, word) for word in site.mask)
    if site.softcap:
        mask += f", softcap {site.softcap:g}"
    return (
        _pair(site.num_heads, site.kv_num_heads),
        _pair(site.head_dim, site.v_head_dim),
        mask,
        site.layout or "?",
        precision,
        "past/present" if site.past else "",
        "; ".join(site.notes),
    )
