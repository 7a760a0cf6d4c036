"""What the emulator holds against a kernel, and what a launch did."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass(frozen=True)
class Finding:
    """Something the emulator holds against a kernel: a broken hazard rule, late data, a race.

    `offset` is in bytes from the kernel's first instruction; `missing` in wait states, 0 where the rule counts none;
    `workgroup`, `wave` and `message` are those of the first time, `times` counts all.
    """

    rule: str
    severity: str
    meaning: str
    kernel: str
    workgroup: tuple[int, int, int]
    wave: int
    offset: int
    instruction: str
    message: str
    missing: int
    times: int

    def __str__(self) -> str:
        missing = f", {self.missing} wait states missing" if self.missing else ""
        times = f" ({self.times} times)" if self.times > 1 else ""
        return (
            f"{self.severity} {self.rule}: {self.kernel} wave {self.wave} +{self.offset:#x} '{self.instruction}': "
            f"{self.message}{missing}{times}"
        )


@dataclass(frozen=True)
class Result:
    """What a launch did: findings, and how many instructions and workgroups ran.

    `instructions` counts those of all waves. `findings` has one entry per rule and instruction, errors first.
    """

    findings: tuple[Finding, ...]
    instructions: int
    workgroups: int
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def errors(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "error")

    @property
    def warnings(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.severity == "warning")

    def by_rule(self) -> dict[str, list[Finding]]:
        """The findings grouped by rule, errors first."""
        groups: dict[str, list[Finding]] = {}
        for finding in self.findings:
            groups.setdefault(finding.rule, []).append(finding)
        return groups

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON."""
        return {
            "workgroups": self.workgroups,
            "instructions": self.instructions,
            "errors": len(self.errors),
            "warnings": len(self.warnings),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=2)

    def summary(self) -> str:
        """One line: what ran and what was found."""
        ran = f"{self.workgroups} {_plural('workgroup', self.workgroups)}, {self.instructions} instructions"
        if not self.findings:
            return f"{ran}; nothing found wrong"
        counts = [
            f"{len(some)} {_plural(what, len(some))}"
            for what, some in (("error", self.errors), ("warning", self.warnings))
            if some
        ]
        return f"{ran}; {', '.join(counts)}"

    def table(self, most: int = 5) -> str:
        """A text to print: the summary, then the findings grouped by rule, at most `most` places of each."""
        lines = [self.summary()]
        for rule, group in self.by_rule().items():
            lines += ["", f"{group[0].severity} {rule}: {group[0].meaning}"]
            for finding in group[:most]:
                missing = f", {finding.missing} wait states missing" if finding.missing else ""
                lines.append(
                    f"  +{finding.offset:#06x}  {finding.instruction}\n"
                    f"           {finding.message}{missing}; first in workgroup {finding.workgroup} wave {finding.wave}, "
                    f"{finding.times} {_plural('time', finding.times)}"
                )
            if len(group) > most:
                lines.append(f"  and {len(group) - most} more {_plural('place', len(group) - most)}")
        return "\n".join(lines)


def _plural(word: str, count: int) -> str:
    return word if count == 1 else f"{word}s"
