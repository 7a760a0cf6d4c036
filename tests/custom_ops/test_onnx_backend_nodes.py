"""The onnx package's own node tests of `Attention`, with their inputs and expected outputs, on our operator.

`to_operator` restates a node in ZyfaPrefillAttention's inputs and attributes, all but those nodes that ask
for their scores. The way through the graph pass is in tests/graph_passes/test_onnx_attention_nodes.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.onnx_nodes import ROUNDING, node_cases
from custom_ops.op_session import Array, run_attention
from numpy.typing import NDArray

INPUTS = ("Q", "K", "V", "attn_mask", "past_key", "past_value", "nonpad_kv_seqlen")
OUTPUTS = ("Y", "present_key", "present_value", "qk_matmul_output")
DEFAULTS: dict[str, Any] = {
    "is_causal": 0,
    "kv_num_heads": None,
    "left_window_size": -1,
    "q_num_heads": None,
    "qk_matmul_output_mode": 0,
    "right_window_size": -1,
    "scale": None,
    "softcap": 0.0,
    "softmax_precision": None,
}


class NotOurs(Exception):
    """The node asks for its scores or probabilities, which a fused attention never has in full."""


@dataclass(frozen=True)
class Restated:
    """Inputs, attributes and wanted outputs of our operator for one node test."""

    inputs: dict[str, Array]
    attributes: dict[str, Any]
    outputs: dict[str, Array]


CASES = {case.name: case for case in node_cases()}


def to_operator(node: onnx.NodeProto, inputs: dict[str, Array], outputs: dict[str, Array]) -> Restated:
    """The same attention in the operator's words; raises NotOurs with the reason."""
    given = {attribute.name: onnx.helper.get_attribute_value(attribute) for attribute in node.attribute}
    assert set(given) <= set(DEFAULTS), f"new attribute: {sorted(set(given) - set(DEFAULTS))}"
    if "qk_matmul_output" in outputs:
        raise NotOurs("asks for the scores or probabilities")
    meaning = DEFAULTS | given
    ours = {"query": inputs["Q"], "key": inputs["K"], "value": inputs["V"]}
    ours |= {name: inputs[name] for name in ("past_key", "past_value") if name in inputs}
    attributes: dict[str, Any] = {
        "layout": "BHSD" if inputs["Q"].ndim == 4 else "BSHD",
        "num_heads": meaning["q_num_heads"],
        "kv_num_heads": meaning["kv_num_heads"],
        "scale": meaning["scale"],
        "softcap": meaning["softcap"],
        "precision": "fp32",
    }
    bias = _mask_as_bias(inputs)
    rows, past, keys = _lengths(inputs)
    own_positions = (
        past == 0 or rows == keys - past
    )  # ONNX: row i stands at past + i, however many keys follow
    if "nonpad_kv_seqlen" in inputs or meaning["right_window_size"] >= 0 or not own_positions:
        bias = bias + np.where(_visible(inputs, meaning), 0, -np.inf)
        attributes["is_causal"] = 0
    else:
        attributes |= {
            "is_causal": meaning["is_causal"],
            "causal_alignment": "bottom_right" if "past_key" in inputs else "top_left",
            "window_left": meaning["left_window_size"],
        }
    if bias.any():
        ours["attn_bias"] = bias.astype(inputs["Q"].dtype)
    names = {"Y": "output", "present_key": "present_key", "present_value": "present_value"}
    return Restated(
        inputs=ours,
        attributes={name: value for name, value in attributes.items() if value is not None},
        outputs={names[name]: array for name, array in outputs.items()},
    )


def _lengths(inputs: dict[str, Array]) -> tuple[int, int, int]:
    """Query rows, past keys, all keys."""
    axis = 2 if inputs["Q"].ndim == 4 else 1
    past = inputs["past_key"].shape[2] if "past_key" in inputs else 0
    return inputs["Q"].shape[axis], past, past + inputs["K"].shape[axis]


def _mask_as_bias(inputs: dict[str, Array]) -> NDArray[np.float64]:
    """attn_mask as additive bias over all keys; keys beyond a short mask are hidden."""
    mask = inputs.get("attn_mask")
    if mask is None:
        return np.zeros(1)
    bias = np.where(mask, 0, -np.inf) if mask.dtype == np.bool_ else mask.astype(np.float64)
    missing = _lengths(inputs)[2] - mask.shape[-1]
    return np.pad(bias, [(0, 0)] * (mask.ndim - 1) + [(0, missing)], constant_values=-np.inf)


def _visible(inputs: dict[str, Array], meaning: dict[str, Any]) -> NDArray[np.bool_]:
    """(B, 1, Sq, keys): causal and window range around positions that nonpad_kv_seqlen may shift."""
    rows, past, keys = _lengths(inputs)
    batch = inputs["Q"].shape[0]
    valid = inputs.get("nonpad_kv_seqlen", np.full(batch, keys)).reshape(-1, 1, 1, 1)
    offset = valid - rows if "nonpad_kv_seqlen" in inputs else past
    position, key = np.arange(rows)[:, None] + offset, np.arange(keys)
    seen = np.broadcast_to(key < valid, (batch, 1, rows, keys)).copy()
    if meaning["is_causal"]:
        seen &= key <= position
    if meaning["left_window_size"] >= 0:
        seen &= key >= position - meaning["left_window_size"]
    if meaning["right_window_size"] >= 0:
        seen &= key <= position + meaning["right_window_size"]
    return seen


def data_of(case: Any) -> tuple[dict[str, Array], dict[str, Array]]:
    """Inputs and outputs of a case by the names of the operator's signature."""
    node = case.model.graph.node[0]
    values, wanted = case.data_sets[0]
    by_name = dict(zip([value.name for value in case.model.graph.input], values, strict=True))
    out = dict(zip([value.name for value in case.model.graph.output], wanted, strict=True))
    inputs = {slot: by_name[name] for slot, name in zip(INPUTS, node.input, strict=False) if name}
    outputs = {slot: out[name] for slot, name in zip(OUTPUTS, node.output, strict=False) if name}
    return inputs, outputs


@pytest.mark.parametrize("name", CASES)
def test_node(name: str) -> None:
    try:
        restated = to_operator(CASES[name].model.graph.node[0], *data_of(CASES[name]))
    except NotOurs as reason:
        pytest.skip(str(reason))
    actual = run_attention(restated.inputs, tuple(restated.outputs), **restated.attributes)
    for output, wanted in restated.outputs.items():
        assert actual[output].dtype == wanted.dtype
        bound = ROUNDING[wanted.dtype]
        np.testing.assert_allclose(
            actual[output].astype(np.float64), wanted.astype(np.float64), rtol=bound, atol=bound
        )


def test_all_but_the_nodes_that_ask_for_scores_are_ours() -> None:
    asked = [name for name, case in CASES.items() if len(case.model.graph.node[0].output) == 4]
    assert len(CASES) - len(asked) >= 60
