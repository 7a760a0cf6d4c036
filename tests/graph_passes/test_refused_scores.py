"""Steps between the product and the Softmax that are not those of an attention."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, one_attention
from graph_passes.graph import Graph
from graph_passes.refusing import (
    SIZES,
    Scores,
    check_declined,
    columns,
    constant,
    many,
    sink,
    then,
    unary,
    with_constant,
    with_input,
)


def where_small(graph: Graph, scores: str) -> str:
    condition = masks.hidden_by_position(graph, scores)
    return graph.op("Where", condition, constant(graph, -10), scores, name="odd")


def two_columns(graph: Graph, scores: str) -> str:
    return columns(graph, scores, 2)


def capped(number: float, name: str) -> Scores:
    return lambda graph, scores: graph.op(
        "Mul",
        graph.op("Tanh", graph.op("Div", scores, constant(graph, number)), name=name),
        constant(graph, number),
    )


def scaled(number: float, name: str = "") -> Scores:
    return lambda graph, scores: graph.op("Mul", scores, constant(graph, number), name=name)


def scores_through(change: Scores) -> onnx.ModelProto:
    """One attention whose scaled scores pass through `change`."""
    return one_attention(SIZES, Style(mask=change)).model()


def times_heads(graph: Graph, scores: str) -> str:
    return graph.op("Mul", scores, constant(graph, np.ones((4, 1, 1))), name="odd")


def clip_above(graph: Graph, scores: str) -> str:
    return graph.op("Clip", scores, constant(graph, masks.LOWEST), constant(graph, 5), name="odd")


def minus_two_tanh(graph: Graph, scores: str) -> str:
    return graph.op("Mul", graph.op("Tanh", scores, name="cap"), constant(graph, -2))


def minus_maximum_of_keys(graph: Graph, scores: str) -> str:
    """Another number for each key: not what a Softmax leaves out."""
    largest = graph.op("ReduceMax", scores, graph.integers(-2), name="largest", keepdims=1)
    return graph.op("Sub", scores, largest)


def runtime_bias(graph: Graph, scores: str) -> str:
    return masks.bias("bias", ["tokens", "tokens"])(graph, scores)


# The steps, the node in the way, the reason.
SCORES: dict[str, tuple[Scores, str, str]] = {
    "unknown operator": (
        unary("Erf"),
        "odd",
        "Erf between the product and the Softmax is not understood",
    ),
    "run-time scale": (
        with_input("Mul", []),
        "odd",
        "the scale of the scores is computed at run time",
    ),
    "run-time divisor": (
        with_input("Div", [1]),
        "odd",
        "the scale of the scores is computed at run time",
    ),
    "one scale per head": (
        times_heads,
        "odd",
        "Mul of the scores with a tensor is not a scale",
    ),
    "where that does not hide": (
        where_small,
        "odd",
        "Where on the scores does not fill in a large negative number",
    ),
    "max that counts": (
        with_constant("Max", 0.0),
        "odd",
        "Max changes scores of visible keys",
    ),
    "clip from above": (
        clip_above,
        "odd",
        "Clip changes scores of visible keys",
    ),
    "two sink columns": (
        two_columns,
        "odd",
        "Concat on the scores does not append one sink column",
    ),
    "sink before the mask": (
        then(sink, with_constant("Add", [0.0])),
        "odd",
        "the sink column is not the last thing that is done to the scores",
    ),
    "sink that stays": (
        sink,
        "attended_0",
        "the sink column is not cut off before the product with V",
    ),
    "softcap after the mask": (
        then(masks.causal(), capped(2.0, "cap")),
        "cap",
        "the softcap comes after a mask, so hidden keys would count",
    ),
    "two softcaps": (
        then(capped(2.0, "cap"), capped(3.0, "cap again")),
        "cap again",
        "a second Tanh on the scores is not understood",
    ),
    "negative softcap": (
        minus_two_tanh,
        "cap",
        "a softcap of -2 is not positive",
    ),
    "mask times minus one": (
        then(masks.causal(), scaled(-1, "odd")),
        "odd",
        "masked scores are multiplied by -1",
    ),
    "mask times nothing": (
        then(masks.causal(), scaled(0, "odd")),
        "odd",
        "masked scores are multiplied by 0",
    ),
    "bias, then a scale": (
        then(runtime_bias, scaled(0.5, "odd")),
        "odd",
        "the scores are scaled after a bias was added",
    ),
    "a scale that brings hidden keys back": (
        then(masks.causal(-1e4), scaled(1e-3, "odd")),
        "odd",
        "the scores are scaled after a bias was added",
    ),
    "a scale that brings the floor back": (
        then(masks.causal(), with_constant("Max", -1e4), scaled(1e-3, "shrunk")),
        "shrunk",
        "masked scores come to -10, where they still count",
    ),
    "the maximum of other rows": (
        minus_maximum_of_keys,
        "largest",
        "the intermediate value Mul_0 is also read by largest",
    ),
    "too many nodes": (
        many,
        "step_6",
        "no product within 24 nodes before the Softmax",
    ),
}


@pytest.mark.parametrize("name", SCORES)
def test_steps_on_the_scores(name: str) -> None:
    change, at, reason = SCORES[name]
    check_declined(scores_through(change), at, reason)
