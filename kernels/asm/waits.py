"""Derives every s_waitcnt: how many memory operations may still be outstanding when a value is needed."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from zyfa_ort.kernels.asm.flow import states_before
from zyfa_ort.kernels.asm.isa import TABLE
from zyfa_ort.kernels.asm.program import Instruction, Item, Rename, Require

COUNTER = {"vmem": "vm", "dma": "vm", "lds": "lgkm", "smem": "lgkm"}
LIMIT = {"vm": 63, "lgkm": 15}


@dataclass(frozen=True)
class Pending:
    """What is on its way: resource (a register or an LDS token) -> (counter, younger operations, may overtake)."""

    entries: dict[Any, tuple[str, int, bool]] = field(default_factory=dict)

    def needed(self, resources: set[Any]) -> dict[str, int]:
        """The largest counts that still cover the resources."""
        counts: dict[str, int] = {}
        for resource in resources & self.entries.keys():
            counter, younger, overtakes = self.entries[resource]
            allowed = 0 if overtakes else min(younger, LIMIT[counter])
            counts[counter] = min(counts.get(counter, allowed), allowed)
        return counts

    def after_wait(self, counts: dict[str, int]) -> Pending:
        def done(counter: str, younger: int, overtakes: bool) -> bool:
            return counter in counts and (
                younger >= counts[counter] if not overtakes else counts[counter] == 0
            )

        return Pending({r: e for r, e in self.entries.items() if not done(*e)})

    def after_issue(self, counter: str, resources: set[Any], overtakes: bool) -> Pending:
        aged = {
            r: (c, min(younger + (c == counter), LIMIT[c]), o) for r, (c, younger, o) in self.entries.items()
        }
        if (
            overtakes
        ):  # scalar loads return in any order: they spoil the count of everything behind the counter
            aged = {r: (c, y, o or c == counter) for r, (c, y, o) in aged.items()}
        spoiled = overtakes or any(o and c == counter for c, _, o in aged.values())
        aged.update({r: (counter, 0, spoiled) for r in resources})
        return Pending(aged)


def _join(one: Pending, other: Pending) -> Pending:
    merged = dict(one.entries)
    for resource, (counter, younger, overtakes) in other.entries.items():
        if resource in merged:
            _, old, old_overtakes = merged[resource]
            merged[resource] = (counter, min(old, younger), overtakes or old_overtakes)
        else:
            merged[resource] = (counter, younger, overtakes)
    return Pending(merged)


def _resources(item: Item) -> set[Any]:
    if isinstance(item, Require):
        return set(item.tokens)
    if isinstance(item, Instruction):
        return item.reads() | item.writes()
    return set()


def _step(state: Pending, item: Item) -> Pending:
    if isinstance(item, Rename):
        return Pending({item.names.get(r, r): e for r, e in state.entries.items()})
    state = state.after_wait(state.needed(_resources(item)))
    if isinstance(item, Instruction) and item.row.unit in COUNTER:
        landing: set[Any] = item.writes() | ({item.produces} if item.produces else set())
        state = state.after_issue(COUNTER[item.row.unit], landing, item.row.unit == "smem")
    return state


def with_waits(items: list[Item]) -> list[Item]:
    """The program with an s_waitcnt before every item that needs one; Require items are gone."""
    made: list[Item] = []
    before = states_before(items, Pending(), _step, _join)
    for item, state in zip(items, before, strict=True):
        counts = state.needed(_resources(item)) if state is not None else {}
        if counts:
            assert isinstance(item, Instruction | Require)
            made.append(wait(counts, item.place))
        if not isinstance(item, Require | Rename):
            made.append(item)
    return made


def wait(counts: dict[str, int], place: tuple[str, str] = ("", "")) -> Instruction:
    text = " ".join(f"{counter}cnt({counts[counter]})" for counter in ("vm", "lgkm") if counter in counts)
    return Instruction(TABLE["s_waitcnt"], (), (text,), origin="waits.py", place=place)
