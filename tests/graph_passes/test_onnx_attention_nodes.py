"""The onnx package's node tests of `Attention` through the pass: fused and with the outputs onnx ships, or declined.

The cases exist twice, as one Attention node and written out in other operators. What is declined is listed here, so that
nothing more is declined unnoticed.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.onnx_nodes import EXPANDED, ROUNDING, node_cases

import zyfa_ort
from graph_passes.running import fuse, fused_session

SCORES = "its fourth output, the scores, is used"
EXTERNAL = "nonpad_kv_seqlen moves its causal rule or window by another length in each batch row"
SHORT = "a mask of shape [2, 3, 4, 4] does not broadcast to (batch, heads, queries, keys)"
# Case -> reason; those that ask for the scores have it in their name.
DECLINED = {
    "test_attention_4d_diff_heads_mask4d_padded_kv": SHORT,
    "test_attention_4d_padded_kv_bf16": SHORT,
    "test_attention_bidirectional_window": "right_window_size 2: a window to the right is not an attribute of ours",
    "test_attention_local_window_with_past": (
        "with a past its causal rule or window needs as many new keys as queries"
    ),
}
EXTERNAL_CACHES = ("causal_padded_kv", "causal_nonpad", "ext_cache")
ASKS = ("qk_matmul", "gqa_rank4_mask")
# Nobody runs a bfloat16 Add on a CPU: neither the original nor the fused model.
NO_KERNEL = (
    "test_attention_4d_padded_kv_bf16_expanded",
    "test_attention_4d_causal_padded_kv_bf16_expanded",
    "test_attention_4d_attn_mask_causal_bf16_expanded",
)
NODES = {case.name: case for case in node_cases()}
WRITTEN_OUT = {case.name: case for case in node_cases(expanded=True)}


def reason_of(name: str) -> str | None:
    if any(word in name for word in ASKS):
        return SCORES
    return EXTERNAL if any(word in name for word in EXTERNAL_CACHES) else DECLINED.get(name)


def check_outputs(case: Any, fused: onnx.ModelProto) -> None:
    values, wanted = case.data_sets[0]
    feeds = dict(zip([value.name for value in case.model.graph.input], values, strict=True))
    outputs = zyfa_ort.run(fused_session(fused), feeds)
    for value, expected in zip(case.model.graph.output, wanted, strict=True):
        actual = outputs[value.name]
        assert actual.dtype == expected.dtype
        bound = ROUNDING[expected.dtype]
        np.testing.assert_allclose(
            actual.astype(np.float64), expected.astype(np.float64), rtol=bound, atol=bound
        )


@pytest.mark.parametrize("name", NODES)
def test_node(name: str) -> None:
    fused, report = fuse(NODES[name].model)
    (site,) = report.sites
    assert site.reason == (reason_of(name) or "")
    if site.status == "fused":
        check_outputs(NODES[name], fused)


@pytest.mark.parametrize("name", WRITTEN_OUT)
def test_written_out(name: str) -> None:
    """The guard that zeroes rows without a visible key goes; scores that are an output keep the site as it is."""
    fused, report = fuse(WRITTEN_OUT[name].model)
    (site,) = report.sites
    if any(word in name for word in ASKS):
        assert site.status == "declined" and "qk_matmul_output" in site.reason
        return
    assert site.status == "fused", site.reason
    if name not in NO_KERNEL:
        check_outputs(WRITTEN_OUT[name], fused)


def test_most_cases_are_ours() -> None:
    fused = [name for name in NODES if reason_of(name) is None]
    assert len(fused) >= 60 and len(WRITTEN_OUT) >= len(NODES)
    assert all(f"{name}{EXPANDED}" in WRITTEN_OUT for name in NODES)
