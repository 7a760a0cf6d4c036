"""What an operator that is an attention by itself says, in one form for all of them.

A reader (standard_attention.py, contrib_attention.py, group_query_attention.py) turns a node into a `Reading`;
attention_op.py decides on it. A reader whose node packs several things into one input names stand-ins for them: values of
no graph, whose shape and type are known in every run, and `Reading.prelude` puts real ones in their place when the site
is rewritten.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import onnx_ir as ir

from .build import Builder
from .facts import Fact, Shape
from .masks import FULL, KeyMask, Structure
from .probes import Probe
from .scenarios import ProbeSet
from .sites import Step

# Makes the stand-ins' values before the given node: prelude(before, builder, scope).
Prelude = Callable[[ir.Node, Builder, str], None]
# Batch, queries and new keys of a run.
Sizes = Callable[[Probe], tuple[int, int, int] | None]
ShapeOf = Callable[[Probe], Shape | None]
# What a present output becomes: finish(present, before, builder, scope) -> value of the original's shape.
Finish = Callable[[ir.Value, ir.Node, Builder, str], ir.Value]


@dataclass(frozen=True)
class Reading:
    """One attention node.

    query, key, value  (B,S,heads*D) or (B,heads,S,D); the past is not in them
    masks              what is added to the scores (B, heads, S, keys)
    structure          what the node's attributes say about positions
    scale, softcap     None: 1/sqrt(head_dim); 0: no cap
    presents           the node's own outputs past + new, if it has them
    finish             what has to be done to presents, where they are not simply past + new
    """

    query: ir.Value
    key: ir.Value
    value: ir.Value
    heads: int
    kv_heads: int
    sizes: Sizes
    masks: tuple[Step, ...] = ()
    structure: Structure = FULL
    key_masks: tuple[KeyMask, ...] = ()
    scale: float | None = None
    softcap: float = 0.0
    sinks: ir.Value | None = None
    past: tuple[ir.Value, ir.Value] | None = None
    presents: tuple[ir.Value, ...] = ()
    notes: tuple[str, ...] = ()
    prelude: Prelude | None = None
    finish: Finish | None = None


def stand_in(name: str, dtype: ir.DataType | None, shape_of: ShapeOf, probes: ProbeSet) -> ir.Value:
    """A value of no graph with a shape in every run."""
    value = ir.Value(name=name)
    for probe in probes.probes:
        probe.facts[value] = Fact(shape_of(probe), dtype)
    return value


def same_shape(value: ir.Value) -> ShapeOf:
    """The shape of another value."""
    return lambda probe: probe.shape(value)


def packed(sizes: Sizes, width: int) -> ShapeOf:
    """(B, S, width)"""

    def shape(probe: Probe) -> Shape | None:
        found = sizes(probe)
        return None if found is None else (found[0], found[1], width)

    return shape


def read_outputs(outputs: Sequence[ir.Value]) -> bool:
    """Whether anybody reads one of the outputs."""
    return any(one.is_graph_output() or next(iter(one.uses()), None) is not None for one in outputs)
