"""The rotation of queries and keys as part of the weights that make them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
import pytest
from custom_ops.problems import Sizes
from ml_dtypes import bfloat16
from reference.fp8_quantise import hadamard
from zyfa_ort.graph_passes.fold_rotation import FOLDED, rotation_matrix
from zyfa_ort.graph_passes.report import FuseOptions

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, hidden_feeds, layers, one_attention
from graph_passes.graph import Graph
from graph_passes.running import attention_nodes, attribute, fuse, fused_session, original_session
from zyfa_ort.numerics import relative_error

ROTATED = FuseOptions("fp8", "hadamard")
SIZES = Sizes(batch=2, heads=4, kv_heads=2, head_dim=64)
STYLE = Style(mask=masks.causal())


def with_bias(model: onnx.ModelProto) -> onnx.ModelProto:
    """The same model with a bias behind every projection, the constant on either side of the Add."""
    rng, added = np.random.default_rng(4), list[onnx.NodeProto]()
    weights = {one.name: one.dims for one in model.graph.initializer if len(one.dims) == 2}
    for node in model.graph.node:
        added.append(node)
        if node.op_type == "MatMul" and node.input[1] in weights:
            name = f"{node.output[0]}_biased"
            bias = rng.standard_normal(weights[node.input[1]][1]).astype(np.float32)
            model.graph.initializer.append(onnx.numpy_helper.from_array(bias, f"{name}_b"))
            raw = f"{node.output[0]}_raw"
            operands = [raw, f"{name}_b"] if len(added) % 2 else [f"{name}_b", raw]
            added.append(onnx.helper.make_node("Add", operands, [node.output[0]], name=name))
            node.output[0] = raw
    del model.graph.node[:]
    model.graph.node.extend(added)
    onnx.checker.check_model(model)
    return model


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("sizes", [SIZES, replace(SIZES, head_dim=192, v_head_dim=128)], ids=["64", "192"])
def test_the_error_of_a_rotated_site(biased: bool, sizes: Sizes) -> None:
    """As good as rotating inside the operator."""
    model = layers(Graph(), sizes, [STYLE]).model()
    model = with_bias(model) if biased else model
    fused, report = fuse(model, ROTATED)
    (site,), (node,) = report.sites, attention_nodes(fused)
    assert site.rotation == "hadamard" and site.notes == (FOLDED,)
    assert attribute(node, "rotation") == "none"
    given = hidden_feeds(tokens=200)
    wanted = zyfa_ort.run(original_session(model), given)["output"]
    inside = onnx.ModelProto()
    inside.CopyFrom(fuse(model, FuseOptions("fp8"))[0])
    (plain,) = attention_nodes(inside)
    next(one for one in plain.attribute if one.name == "rotation").s = b"hadamard"
    rotated = relative_error(zyfa_ort.run(fused_session(inside), given)["output"], wanted)
    folded = relative_error(zyfa_ort.run(fused_session(fused), given)["output"], wanted)
    assert folded == pytest.approx(rotated, rel=0.1)


def test_a_runtime_rotates_the_weights_once(tmp_path: Path) -> None:
    """Opened with its usual optimisations, no node on constants is left; the weights in the file are the original's."""
    model = layers(Graph(), SIZES, [STYLE]).model()
    fused, _ = fuse(model, ROTATED)
    stored = {one.name: one.raw_data for one in model.graph.initializer}
    assert all(stored[one.name] == one.raw_data for one in fused.graph.initializer if one.name in stored)
    options = zyfa_ort.register(ort.SessionOptions())
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    options.log_severity_level = 4
    ort.InferenceSession(fused.SerializeToString(), options, providers=["CPUExecutionProvider"])
    optimised = onnx.load(tmp_path / "optimised.onnx")
    constants = {one.name for one in optimised.graph.initializer}
    assert not [node.name for node in optimised.graph.node if node.input and set(node.input) <= constants]


@pytest.mark.parametrize("dtype", [np.float16, bfloat16])
def test_weights_of_half_precision(dtype: Any) -> None:
    fused, report = fuse(
        layers(Graph(), SIZES, [Style(mask=masks.causal(dtype=dtype))], dtype).model(), ROTATED
    )
    assert report.sites[0].notes == (FOLDED,)
    if dtype == np.float16:
        given = hidden_feeds(tokens=40, dtype=dtype)
        assert np.isfinite(zyfa_ort.run(fused_session(fused), given)["output"].astype(np.float32)).all()


def test_queries_that_no_weights_make_are_rotated_inside() -> None:
    fused, report = fuse(one_attention(SIZES, STYLE).model(), ROTATED)
    assert report.sites[0].notes == ()
    assert attribute(attention_nodes(fused)[0], "rotation") == "hadamard"


@pytest.mark.parametrize("head_dim", [1, 2, 64, 128, 192])
def test_matrix(head_dim: int) -> None:
    identity = np.eye(head_dim, dtype=np.float32)
    assert np.allclose(rotation_matrix(head_dim), hadamard(identity), atol=1e-7)
