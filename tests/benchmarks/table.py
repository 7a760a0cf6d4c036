"""Results as Markdown, one table per precision, and as CSV, one line per shape and contender."""

from __future__ import annotations

import csv
import io
import string
from collections.abc import Sequence

from benchmarks.contenders import CONTENDERS, Contender
from benchmarks.peak import best_units
from benchmarks.results import Result

CSV_COLUMNS = (
    "qk_dim", "v_dim", "heads", "kv_heads", "batch", "rows", "keys", "contender", "precision", "median_ms",
    "gflops", "over_zyfa_fp32", "over_zyfa_bf16", "over_zyfa_fp8", "missing",
)  # fmt: skip


def markdown_row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def milliseconds(seconds: float) -> str:
    """Three significant digits."""
    ms = seconds * 1e3
    return f"{ms:,.0f}" if ms >= 100 else f"{ms:.3g}"


class Footnotes:
    """Reasons under a table, each with a letter, the same reason once."""

    def __init__(self) -> None:
        self.reasons: list[str] = []

    def mark(self, reason: str) -> str:
        if reason not in self.reasons:
            self.reasons.append(reason)
        return f"({self._letter(self.reasons.index(reason))})"

    @staticmethod
    def _letter(index: int) -> str:
        letters = string.ascii_lowercase
        return letters[index] if index < 26 else letters[index // 26 - 1] + letters[index % 26]

    def lines(self) -> list[str]:
        return [f"({self._letter(i)}) {reason}  " for i, reason in enumerate(self.reasons)]


def markdown(results: Sequence[Result], precisions: Sequence[str]) -> str:
    """Milliseconds, and in brackets their time over ours, paired by round."""
    return "\n\n".join(_precision_table(results, precision) for precision in precisions)


def _precision_table(results: Sequence[Result], precision: str) -> str:
    contenders = [c for c in CONTENDERS if precision in c.precisions]
    ours = next(c for c in contenders if c.ours)
    peers = [c for c in contenders if not c.ours]
    units = best_units(precision, {unit for result in results for unit in result.rounds[0].gauges})
    heads = ["shape", f"{ours.name}, ms", "GF/s", *(f"of {u}" for u in units), *(c.name for c in peers)]
    notes = Footnotes()
    lines = [markdown_row(heads), markdown_row(["---", *["---:"] * (len(heads) - 1)])]
    for result in results:
        shares = (result.share_of_peak(ours.name, unit) for unit in units)
        lines.append(
            markdown_row(
                [
                    str(result.shape),
                    _time(result, ours, notes),
                    _number(result.gflops(ours.name), ",.0f"),
                    *(_number(share, ".0%") for share in shares),
                    *(_time(result, peer, notes, ours) for peer in peers),
                ]
            )
        )
    footnotes = notes.lines()
    return "\n".join([*lines, *(["", *footnotes] if footnotes else [])])


def _time(result: Result, contender: Contender, notes: Footnotes, ours: Contender | None = None) -> str:
    seconds = result.seconds(contender.name)
    if seconds is None:
        return notes.mark(f"{contender.name} {result.missing.get(contender.name, 'was not asked for')}")
    ratio = result.ratio(contender.name, ours.name) if ours else None
    return milliseconds(seconds) + (f" ({ratio:.2f})" if ratio is not None else "")


def _number(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def as_csv(results: Sequence[Result], contenders: Sequence[Contender]) -> str:
    """Every contender that was asked for, the missing ones with their reason, and the peaks."""
    text = io.StringIO()
    writer = csv.DictWriter(text, CSV_COLUMNS, lineterminator="\n")
    writer.writeheader()
    for result in results:
        s = result.shape
        shape = {
            "qk_dim": s.qk_dim, "v_dim": s.v_dim, "heads": s.heads, "kv_heads": s.kv_heads, "batch": s.batch,
            "rows": s.rows, "keys": s.keys,
        }  # fmt: skip
        for unit in result.rounds[0].gauges:
            rate = result.peak(unit) / 1e9
            writer.writerow({**shape, "contender": f"peak {unit}", "gflops": f"{rate:.1f}"})
        for contender in contenders:
            writer.writerow({**shape, **_csv_cells(result, contender)})
    return text.getvalue()


def _csv_cells(result: Result, contender: Contender) -> dict[str, str]:
    cells = {"contender": contender.name, "precision": contender.precision}
    seconds, gflops = result.seconds(contender.name), result.gflops(contender.name)
    if seconds is None or gflops is None:
        return {**cells, "missing": result.missing[contender.name]}
    ratios = {
        f"over_zyfa_{precision}": result.ratio(contender.name, f"zyfa {precision}")
        for precision in ("fp32", "bf16", "fp8")
    }
    written = {name: f"{ratio:.4f}" for name, ratio in ratios.items() if ratio is not None}
    return {**cells, "median_ms": f"{seconds * 1e3:.4f}", "gflops": f"{gflops:.2f}", **written}
