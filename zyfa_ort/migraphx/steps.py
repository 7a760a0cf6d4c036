"""What a compiled program consists of: segments of MIGraphX and nodes of ours, in the order in which they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from zyfa_ort.migraphx.c_api import Shape
from zyfa_ort.migraphx.direct import Node
from zyfa_ort.migraphx.own_nodes import Attributes
from zyfa_ort.migraphx.segment import Program
from zyfa_ort.migraphx.tensor_type import TensorType

Names = tuple[str, ...]


@dataclass(frozen=True)
class SegmentStep:
    """A program of MIGraphX; `inputs` and `outputs` are names of values, outputs in the program's order.

    parameters: of the compiled program, which may have fewer than `inputs`, and on the gpu target has its outputs too.
    """

    name: str
    inputs: Names
    outputs: Names
    program: Program
    parameters: dict[str, Shape]


@dataclass(frozen=True)
class NodeStep:
    """A node of ours; None stands for an absent optional input or output."""

    op: str
    name: str
    attributes: Attributes
    inputs: tuple[str | None, ...]
    outputs: tuple[str | None, ...]
    node: Node


Step = SegmentStep | NodeStep


@dataclass(frozen=True)
class Signature:
    """Values by name: what callers give and get, and every value that passes between steps."""

    inputs: Names
    outputs: Names
    values: dict[str, TensorType]

    def types(self, names: Sequence[str | None]) -> list[TensorType | None]:
        return [None if name is None else self.values[name] for name in names]


def last_uses(steps: Sequence[Step], outputs: Names) -> list[Names]:
    """For each step the values that nobody needs behind it."""
    last: dict[str, int] = {}
    for at, step in enumerate(steps):
        for name in (*step.inputs, *step.outputs):
            if name is not None:
                last[name] = at
    dead: list[list[str]] = [[] for _ in steps]
    for name, at in last.items():
        if name not in outputs:
            dead[at].append(name)
    return [tuple(names) for names in dead]


def described(step: Step) -> dict[str, Any]:
    """As the manifest has it."""
    common: dict[str, Any] = {"name": step.name, "inputs": list(step.inputs), "outputs": list(step.outputs)}
    if isinstance(step, SegmentStep):
        return {"kind": "segment", **common}
    return {"kind": "node", "op": step.op, "attributes": step.attributes, **common}
