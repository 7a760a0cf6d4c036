"""Mutants: a base plan, rewritten and edited at random places. A mutant is made again from its number, or from the names
of its mutations (`of_names`).

REWRITES keep the meaning of a plan, HOSTILE ones change it; EDITS and WRAPS (mutant_edits) keep it too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.random import Generator

from graph_passes import mutant_masks as masks
from graph_passes.graph import Graph
from graph_passes.mutant_edits import EDITS, KEEPING, Editor
from graph_passes.mutant_masks import Mask
from graph_passes.mutant_operands import OTHER_PRODUCTS, PRODUCTS, REPEATS, SOURCES
from graph_passes.mutant_plans import SCALES, Plan
from graph_passes.mutant_twists import TWISTS
from graph_passes.mutant_wraps import WRAPS
from graph_passes.mutant_writing import write

PADDED: Final = Mask(padding=True)
BASES: Final[dict[str, Plan]] = {
    "eager causal": Plan(),
    "sdpa causal": Plan(scale_at="both", guard=0.0, mask=Mask(number=-np.inf)),
    "no mask": Plan(mask=None),
    "grouped": Plan(kv_heads=2),
    "one key head": Plan(kv_heads=1),
    "padded": Plan(mask=PADDED),
    "padded, not causal": Plan(mask=Mask("none", padding=True, number=-1e9), scale_at="div"),
    "sdpa padded grouped": Plan(
        scale_at="both", guard=0.0, kv_heads=2, mask=replace(PADDED, number=-np.inf, apply="add visible")
    ),
    "window": Plan(mask=Mask("window")),
    "window beyond the usual runs": Plan(mask=Mask("window", window=30)),
    "window with padding": Plan(mask=Mask("window", padding=True), kv_heads=2),
    "window to both sides": Plan(mask=Mask("local", window=4)),
    "past": Plan(past=True),
    "past, grouped, padded": Plan(past=True, kv_heads=2, mask=PADDED),
    "sdpa past window": Plan(
        past=True, scale_at="both", guard=0.0, mask=Mask("window", window=6, number=-np.inf)
    ),
    "softcap": Plan(softcap=5.0),
    "softcap, window, past": Plan(softcap=5.0, past=True, kv_heads=2, mask=Mask("window")),
    "sinks": Plan(sinks=True),
    "sinks after the maximum": Plan(sinks=True, subtract_max="keys", kv_heads=2, mask=PADDED),
    "bias": Plan(bias="whole", mask=None),
    "bias of heads and a triangle": Plan(bias="heads"),
    "alibi": Plan(bias="alibi", kv_heads=2),
    "two sites": Plan(sites=2, mask=replace(PADDED, apply="add visible")),
    "cross": Plan(cross=True, mask=None, kv_heads=2),
    "cross, padded": Plan(cross=True, mask=Mask("none", padding=True)),
    "torchscript": Plan(
        scale_at="root", guard=0.0, kv_heads=2, opset=17, constants_as_nodes=True, mask=PADDED
    ),
    "dynamo": Plan(
        scale_at="both", guard=0.0, product="two", kv_heads=2, mask=replace(PADDED, number=-np.inf)
    ),
    "packed": Plan(source="split", scale_at="query", mask=Mask(apply="where")),
    "gpt": Plan(source="gemm", mask=Mask(after="trilu", apply="where visible", padding=True), meet="steps"),
}

Rewrite = Callable[[Plan, Generator], Plan]


def _one_of(rng: Generator, names: Iterable[Any]) -> Any:
    found = list(names)
    return found[int(rng.integers(len(found)))]


def _pick(field: str, names: Iterable[Any]) -> Rewrite:
    """Another entry for one field of the plan."""
    return lambda plan, rng: replace(plan, **{field: _one_of(rng, names)})


def _pick_mask(field: str, names: Iterable[Any]) -> Rewrite:
    """Another entry for one field of the plan's mask; a plan without a mask stays as it is."""

    def rewrite(plan: Plan, rng: Generator) -> Plan:
        return _with_mask(plan, **{field: _one_of(rng, names)})

    return rewrite


def _with_mask(plan: Plan, **fields: Any) -> Plan:
    return plan if plan.mask is None else replace(plan, mask=replace(plan.mask, **fields))


def _sources(plan: Plan, rng: Generator) -> Plan:
    return replace(plan, source=_one_of(rng, SOURCES))


def _scale_of_weights(plan: Plan, rng: Generator) -> Plan:
    return replace(plan, source=_one_of(rng, ("projected", "gemm")), scale_at="weights")


def _late_scale(plan: Plan, rng: Generator) -> Plan:
    """After the mask; with a bias or softcap that would be another meaning."""
    return plan if plan.bias or plan.softcap else replace(plan, scale_at="late")


def _guard(plan: Plan, rng: Generator) -> Plan:
    return replace(plan, guard=0.0)


BEFORE_MASK: Final = tuple(one for one in SCALES if one not in ("weights", "late"))
BLOCKS: Final = tuple(one for one in REPEATS if not one.startswith(("in turn", "backwards")))
REWRITES: Final[dict[str, Rewrite]] = {
    "scale elsewhere": _pick("scale_at", BEFORE_MASK),
    "scale in a weight": _scale_of_weights,
    "scale after the mask": _late_scale,
    "another scale": _pick("scale", (0.1, 1.0, -0.2)),
    "another K^T": _pick("product", (*PRODUCTS, *OTHER_PRODUCTS)),
    "another source": _sources,
    "another repeat": _pick("repeat", BLOCKS),
    "another repeat of the values": _pick("repeat_values", BLOCKS),
    "another count of positions": _pick_mask("count", masks.COUNT),
    "another triangle": _pick_mask("after", masks.AFTER),
    "another window": _pick_mask("early", masks.EARLY),
    "another join": _pick_mask("join", masks.JOIN),
    "another existence": _pick_mask("exists", masks.EXISTS),
    "another way to apply": _pick_mask("apply", masks.APPLY),
    "another number": _pick_mask("number", (-1e4, -1e9, masks.mask_builders.LOWEST, -np.inf)),
    "positions of another type": _pick_mask("dtype", (np.int32, np.float32)),
    "a mask of another type": _pick_mask("mask_dtype", (np.int32, np.float32)),
    "masks meet elsewhere": _pick("meet", masks.MEET),
    "guarded": _guard,
    "maximum subtracted": _pick("subtract_max", ("keys", "heads and keys")),
    "heads apart": _pick("merge", (False,)),
    "another opset": _pick("opset", (13, 14, 17, 19, 20, 21, 22, 23)),
    "constants as nodes": _pick("constants_as_nodes", (True,)),
    "a second site": _pick("sites", (2,)),
    "a second site with a mask of its own": lambda plan, rng: replace(plan, sites=2, copies=True),
}


def _set(**fields: Any) -> Rewrite:
    return lambda plan, rng: replace(plan, **fields)


def _masks(**fields: Any) -> Rewrite:
    return lambda plan, rng: replace(plan, mask=replace(plan.mask or Mask(), **fields))


def _twisted(name: str) -> Rewrite:
    rule = "twist" if TWISTS[name].alone else "causal"
    return lambda plan, rng: replace(
        plan, mask=replace(plan.mask or Mask(), rule=rule, twist=name), cross=False
    )


def _scale_off(plan: Plan, rng: Generator) -> Plan:
    return replace(plan, scale=plan.factor * _one_of(rng, (1.01, 0.99)))


def _other_repeat(field: str, name: str) -> Rewrite:
    return lambda plan, rng: replace(
        plan, kv_heads=2, **{field: name, "repeat_values": "expand"} if field == "repeat" else {field: name}
    )


def _past(order: str) -> Rewrite:
    return lambda plan, rng: replace(plan, past=True, past_order=order, cross=False, source="inputs")


def _shrunken(plan: Plan, rng: Generator) -> Plan:
    """-1e4 times a small factor hides nothing."""
    return replace(plan, mask=Mask(number=-1e4), scale=1e-4, scale_at="late", bias="", softcap=0.0)


HOSTILE: Final[dict[str, Rewrite]] = {
    "scale off by 1 %": _scale_off,
    "scale grows beyond 64": _set(long_scale=64),
    "mask off by one": _masks(shift=-1),
    "mask off by one to the other side": _masks(shift=1),
    "window off by one": _masks(rule="window", window=6),
    "window of one": _masks(rule="window", window=1),
    "additive mask of -50": _masks(rule="causal", number=-50.0, apply="add"),
    "additive mask of -9000": _masks(rule="causal", number=-9000.0, apply="add"),
    "mask shrinks with the scale": _shrunken,
    "keys in turn, values in blocks": _other_repeat("repeat", "in turn"),
    "values in turn": _other_repeat("repeat_values", "in turn"),
    "both in turn": lambda plan, rng: replace(plan, kv_heads=2, repeat="in turn", repeat_values="in turn"),
    "both in turn by expand": lambda plan, rng: replace(
        plan, kv_heads=2, repeat="in turn by expand", repeat_values="in turn by concat"
    ),
    "key heads backwards": _other_repeat("repeat", "backwards"),
    "softmax over rows": _set(axis=2),
    "softmax over heads": _set(axis=1),
    "maximum of rows subtracted": _set(subtract_max="rows", sinks=False),
    "probabilities transposed": lambda plan, rng: replace(
        plan, probabilities="transposed", cross=False, past=False, sinks=False
    ),
    "probabilities scaled": _set(probabilities="scaled"),
    "values backwards": _set(values="backwards"),
    "values rolled": _set(values="rolled"),
    "keys rolled": _set(keys="rolled"),
    "values of other heads": _set(values="other heads"),
    "guard fills in 1": lambda plan, rng: replace(plan, guard=1.0, mask=Mask(padding=True, number=-np.inf)),
    "scores clipped": _set(clip=2.0),
    "past after new": _past("after"),
    "past of keys after new": _past("key after"),
    "past of values after new": _past("value after"),
    "past of keys and values swapped": _past("swapped"),
    "past on the heads": lambda plan, rng: replace(
        plan, past=True, past_order="heads", kv_heads=2, cross=False, source="inputs"
    ),
    "bias backwards": _set(bias="whole backwards"),
    "bias rolled": _set(bias="heads rolled"),
    "bias of one key": _set(bias="whole of one key"),
    "training: probabilities": _set(train="probabilities"),
    "training: keys": _set(train="keys"),
    "training: output": _set(train="output"),
    **{
        f"exists: {name}": _masks(padding=True, exists=name, mask_dtype=np.int64)
        for name in masks.EXISTS_OTHERWISE
    },
    **{name: _twisted(name) for name in TWISTS},
}


@dataclass(frozen=True)
class Mutant:
    """plain    the graph before it was wrapped into bodies: the scores of its Softmax nodes can be looked at
    graph    the mutant itself
    recipe   names of the base and of the mutations, in order
    kept     a site must stay, because an intermediate value is wanted elsewhere
    wrapped  name of the wrap; empty without one
    fixed    all lengths are numbers
    """

    plan: Plan
    plain: Graph
    graph: Graph
    recipe: tuple[str, ...]
    hostile: tuple[str, ...] = ()
    kept: bool = False
    wrapped: str = ""
    fixed: bool = False


def of_names(names: Iterable[str], seed: int = 0) -> Mutant:
    """The mutant of a base and mutations, by name; places are chosen by `seed`."""
    recipe = tuple(names)
    rng = np.random.default_rng(seed)
    plan = BASES[recipe[0]]
    for name in recipe[1:]:
        rewrite = REWRITES.get(name) or HOSTILE.get(name)
        plan = plan if rewrite is None else rewrite(plan, rng)
    plan = _allowed(plan)
    graph = write(plan)
    editor = Editor(graph, rng)
    for name in recipe[1:]:
        edit = EDITS.get(name) or KEEPING.get(name)
        if edit is not None:
            edit(editor)
    plain = _copy(graph)
    wraps = [name for name in recipe if name in WRAPS]
    for name in wraps[:1]:
        WRAPS[name](graph, rng)
    return Mutant(
        plan,
        plain,
        graph,
        recipe,
        tuple(name for name in recipe if name in HOSTILE),
        any(name in KEEPING for name in recipe),
        wraps[0] if wraps else "",
        bool(editor.fixed),
    )


def _allowed(plan: Plan) -> Plan:
    """What does not go together: a scale after a bias or softcap, packed inputs with other lengths or head counts,
    operators that are younger than the opset."""
    if plan.cross or plan.past_order or (plan.mask and plan.mask.twist in ("activations",)):
        plan = replace(plan, source=plan.source if plan.source in ("projected", "gemm") else "inputs")
    if plan.source == "gather" and plan.heads != plan.kv_heads:
        plan = replace(plan, source="split")
    if plan.scale_at == "weights" and plan.source not in ("projected", "gemm"):
        plan = replace(plan, scale_at="mul")
    if plan.scale_at == "late" and (plan.bias or plan.softcap or plan.sites > 1):
        plan = replace(plan, scale_at="mul")
    if plan.scale is not None and plan.scale <= 0 and plan.scale_at in ("both", "late"):
        plan = replace(plan, scale_at="mul")
    if plan.cross and plan.mask is not None and plan.mask.rule != "none":
        plan = replace(plan, mask=replace(plan.mask, rule="none", padding=True))
    if plan.axis != -1:
        plan = replace(plan, sinks=False, subtract_max="")
    trilu = plan.mask is not None and "trilu" in (plan.mask.after + plan.mask.early)
    return replace(plan, opset=max(plan.opset, 14)) if trilu else plan


def _copy(graph: Graph) -> Graph:
    """Another graph of the same protobufs; wraps replace lists and change copies of nodes only."""
    copy = Graph(graph.opset, graph.ir_version, graph.constants_as_nodes)
    copy.nodes, copy.initializers = list(graph.nodes), list(graph.initializers)
    copy.inputs, copy.outputs = list(graph.inputs), list(graph.outputs)
    copy.value_info, copy.functions = list(graph.value_info), list(graph.functions)
    return copy


SAFE: Final = (*REWRITES, *REWRITES, *EDITS)  # rewrites twice as often: a mask has a dozen of them
SHARE_HOSTILE: Final = 0.45
SHARE_KEEPING: Final = 0.04
SHARE_WRAPPED: Final = 0.12


def of_number(number: int) -> Mutant:
    """Mutant `number`: one to four mutations of a random base."""
    rng = np.random.default_rng(number)
    names = [_one_of(rng, BASES)]
    count = 1 + int(rng.integers(4))
    if rng.random() < SHARE_HOSTILE:
        names.append(_one_of(rng, HOSTILE))
    while len(names) <= count:
        names.append(_one_of(rng, SAFE))
    if rng.random() < SHARE_KEEPING:
        names.append(_one_of(rng, KEEPING))
    if rng.random() < SHARE_WRAPPED:
        names.append(_one_of(rng, WRAPS))
    return of_names(names, number)


def tamed(mutant: Mutant) -> Mutant:
    """The same plan with the usual meaning, for a hostile mutant."""
    plan = mutant.plan
    usual: dict[str, Any] = {
        field: getattr(Plan(), field)
        for field in ("probabilities", "values", "keys", "past_order", "train", "axis", "clip", "long_scale")
    }
    usual["scale"] = None
    usual["bias"] = plan.bias.split()[0] if plan.bias else ""
    usual["guard"] = None if plan.guard is None else 0.0
    usual["subtract_max"] = "" if plan.subtract_max == "rows" else plan.subtract_max
    usual |= {field: "expand" for field in ("repeat", "repeat_values")}
    mask = plan.mask
    if mask is not None:
        exists = mask.exists if mask.exists in masks.EXISTS else "cast"
        rule = "causal" if mask.rule == "twist" else mask.rule
        mask = replace(
            mask, rule=rule, twist="", shift=0, exists=exists, window=5, number=masks.mask_builders.LOWEST
        )
    graph = write(replace(plan, **usual, mask=mask))
    return replace(mutant, plain=graph, graph=graph)
