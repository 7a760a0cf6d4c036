"""FP8 codes made by nodes in front of the attention: the same bits as made inside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from custom_ops.problems import Sizes
from zyfa_ort.graph_passes.errors import GraphPassError
from zyfa_ort.graph_passes.number_format import HIDDEN_COUNT
from zyfa_ort.graph_passes.report import FuseOptions

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, feeds, one_attention
from graph_passes.running import attention_nodes, attribute, fuse, fused_session, original_session
from zyfa_ort.numerics import TOLERANCES

FOLDED = FuseOptions("fp8", "hadamard")
EXPLICIT = replace(FOLDED, quantize_nodes="explicit")
SIZES = Sizes(batch=2, heads=4, kv_heads=2, q_len=150, kv_len=150, head_dim=64)
LATENT = replace(SIZES, head_dim=192, v_head_dim=128)


@pytest.mark.parametrize(
    ("sizes", "style", "dtype"),
    [
        (SIZES, Style(mask=masks.causal()), np.float32),
        (SIZES, Style(mask=masks.causal(dtype=np.float16)), np.float16),
        (LATENT, Style(mask=masks.causal()), np.float32),
        (SIZES, Style(mask=masks.causal(), merge=False), np.float32),
    ],
    ids=["float", "half", "192 and 128", "BHSD output"],
)
def test_the_same_bits(sizes: Sizes, style: Style, dtype: Any) -> None:
    model = one_attention(sizes, style, dtype).model()
    folded, _ = fuse(model, FOLDED)
    explicit, report = fuse(model, EXPLICIT)
    assert report.sites[0].notes == ()
    kinds = [node.op_type for node in explicit.graph.node]
    assert kinds.count("ZyfaQuantizeFp8") == 3
    assert kinds.count("ZyfaHadamard") == (2 if dtype == np.float32 else 0)
    (node,) = attention_nodes(explicit)
    assert attribute(node, "rotation") is None and attribute(node, "out_dtype") is not None
    given = feeds(sizes, dtype)
    wanted, got = (zyfa_ort.run(fused_session(one), given)["output"] for one in (folded, explicit))
    assert got.dtype == wanted.dtype and np.array_equal(got, wanted)


def test_hidden_keys_count_in_the_scales_and_the_report_says_so() -> None:
    model = one_attention(SIZES, Style(mask=masks.causal_and_padding())).model()
    mask = np.ones((2, 150), np.int64)
    mask[0, :40] = 0
    explicit, report = fuse(model, EXPLICIT)
    assert report.sites[0].notes == (HIDDEN_COUNT,)
    given = feeds(SIZES) | {"attention_mask": mask}
    wanted = zyfa_ort.run(original_session(model), given)["output"]
    got = zyfa_ort.run(fused_session(explicit), given)["output"]
    seen = mask.cumsum(axis=1) > 0
    assert not TOLERANCES["fp8_from_float"].violations(got[seen], wanted[seen])


@pytest.mark.parametrize(
    ("style", "options", "note"),
    [
        (
            Style(),
            replace(EXPLICIT, fp8_edges="bf16"),
            "no quantise nodes: fp8_edges bf16 needs the numbers before they are quantised",
        ),
    ],
)
def test_sites_that_quantise_inside(style: Style, options: FuseOptions, note: str) -> None:
    fused, report = fuse(one_attention(SIZES, style).model(), options)
    assert report.sites[0].notes == (note,)
    assert [node.op_type for node in fused.graph.node if node.domain == "ai.zyfa"] == ["ZyfaPrefillAttention"]


def test_half_precision_behind_lengths_that_are_not_known() -> None:
    """The attention takes its output type from the codes' rank, which has to be known although no length is."""
    model = one_attention(SIZES, Style(mask=masks.causal(dtype=np.float16)), np.float16).model()
    for name, width in (("query", 256), ("key", 128), ("value", 128)):
        for node in model.graph.node:
            node.input[:] = [f"{name}_again" if one == name else one for one in node.input]
        numbers = {"flat": [-1, width], "leads": [0, 1], "width": [width]}
        model.graph.initializer.extend(
            onnx.numpy_helper.from_array(np.array(given, np.int64), f"{name}_{part}")
            for part, given in numbers.items()
        )
        steps = [
            ("Reshape", [name, f"{name}_flat"], f"{name}_rows"),
            ("Shape", [name], f"{name}_shape"),
            ("Gather", [f"{name}_shape", f"{name}_leads"], f"{name}_lead"),
            ("Concat", [f"{name}_lead", f"{name}_width"], f"{name}_target"),
            ("Reshape", [f"{name}_rows", f"{name}_target"], f"{name}_again"),
        ]
        for at, (op_type, given, made) in enumerate(steps):
            axis = {"axis": 0} if op_type in ("Gather", "Concat") else {}
            model.graph.node.insert(at, onnx.helper.make_node(op_type, given, [made], name=made, **axis))
    fused, report = fuse(model, EXPLICIT)
    assert report.fused == 1
    assert zyfa_ort.run(fused_session(fused), feeds(SIZES, np.float16))["output"].dtype == np.float16


def test_other_precisions_have_no_codes() -> None:
    fused, _ = fuse(one_attention(SIZES, Style()).model(), replace(EXPLICIT, precision="bf16", rotate="none"))
    assert [node.op_type for node in fused.graph.node if node.domain == "ai.zyfa"] == ["ZyfaPrefillAttention"]


def test_options_that_do_not_go_together() -> None:
    with pytest.raises(GraphPassError, match="portable: expected folded quantize_nodes, got explicit"):
        replace(EXPLICIT, portable=True)
    with pytest.raises(
        GraphPassError, match="quantize_nodes: expected one of 'folded', 'explicit', got 'both'"
    ):
        replace(EXPLICIT, quantize_nodes="both")
