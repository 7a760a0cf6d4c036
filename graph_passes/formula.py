"""From the steps between the products to the operator's formula: softmax(mask(bias + softcap(scale * q.k)))."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from .guards import STILL_HIDDEN
from .sites import Obstacle, Scores, Step


@dataclass(frozen=True)
class Formula:
    """scale   factor on q.k, without factors that sit on Q or K themselves; exact up to `slack` (relative)
    softcap  0 without one
    masks    additions and fills, in graph order, all after scale and softcap
    """

    scale: float
    slack: float
    softcap: float
    masks: tuple[Step, ...]
    late_scale: Step | None = None


def formula_of(scores: Scores) -> Formula | Obstacle:
    """Bring the steps into the operator's order, or name the step that does not fit it."""
    scale, slack, cap = 1.0, 0.0, 1.0
    capped: Step | None = None
    masks: list[Step] = []
    floor = -math.inf  # below which no masked score is left
    late: Step | None = None
    for step in scores.steps:
        if step.kind == "tanh":
            if masks:
                return Obstacle(step.node, "the softcap comes after a mask, so hidden keys would count")
            if capped:
                return Obstacle(step.node, "a second Tanh on the scores is not understood")
            capped = step
        elif step.kind == "scale":
            if masks and step.number <= 0:
                return Obstacle(step.node, f"masked scores are multiplied by {step.number:g}")
            late = step if masks else late
            masks = [replace(mask, later=mask.later * step.number) for mask in masks]
            floor *= step.number if masks else 1.0
            slack += step.slack
            if capped:
                cap *= step.number
            else:
                scale *= step.number
        elif step.kind == "floor":
            floor = max(floor, step.number) if masks else floor
        else:
            masks.append(step)
        if floor > STILL_HIDDEN:
            return Obstacle(step.node, f"masked scores come to {floor:g}, where they still count")
    if not capped:
        return Formula(scale, slack, 0.0, tuple(masks), late)
    if cap <= 0:
        return Obstacle(capped.node, f"a softcap of {cap:g} is not positive")
    # cap * tanh(scale * s) = cap * tanh((scale * cap * s) / cap)
    return Formula(scale * cap, slack, cap, tuple(masks), late)
