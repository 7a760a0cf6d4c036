"""Forward data-flow over a program: the state before every item, joined over all ways to reach it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from zyfa_ort.kernels.asm.program import Instruction, Item, Label

State = TypeVar("State")


def branch_target(item: Item) -> str | None:
    if isinstance(item, Instruction) and item.row.unit == "branch":
        return str(item.sources[0])
    return None


def states_before(
    items: list[Item],
    start: State,
    step: Callable[[State, Item], State],
    join: Callable[[State, State], State],
) -> list[State | None]:
    """The fixed point. `step` and `join` return new states; None marks items that are never reached."""
    labels = {item.name: index for index, item in enumerate(items) if isinstance(item, Label)}
    before: list[State | None] = [None] * (len(items) + 1)
    before[0] = start
    work = {0}
    while work:
        index = min(work)
        work.discard(index)
        while index < len(items):
            item, state = items[index], before[index]
            assert state is not None
            after = step(state, item)
            target = branch_target(item)
            if target is not None:
                if target not in labels:
                    raise ValueError(f"branch to {target!r}, which is no label")
                if _flow(before, labels[target], after, join):
                    work.add(labels[target])
            ends = isinstance(item, Instruction) and item.row.name in ("s_branch", "s_endpgm")
            if ends or not _flow(before, index + 1, after, join):
                break
            index += 1
    return before[: len(items)]


def _flow(
    before: list[State | None], index: int, state: State, join: Callable[[State, State], State]
) -> bool:
    old = before[index]
    new = state if old is None else join(old, state)
    before[index] = new
    return old is None or new != old
