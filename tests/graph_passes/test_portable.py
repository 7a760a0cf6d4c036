"""Function bodies: what the operator computes, for runtimes without the library."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from custom_ops.op_session import Array, one_node_model
from custom_ops.problems import Sizes, gaussian
from ml_dtypes import bfloat16
from zyfa_ort.graph_passes.errors import GraphPassError
from zyfa_ort.graph_passes.layouts import BHSD, BSHD, PACKED
from zyfa_ort.graph_passes.portable import OTHER_KIND, Kind, function
from zyfa_ort.graph_passes.report import FuseOptions
from zyfa_ort.graph_passes.schema import DOMAIN

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, attention, feeds, inputs, one_attention
from graph_passes.graph import Graph
from graph_passes.running import (
    assert_same_numbers,
    attention_nodes,
    attribute,
    fuse,
    fused_session,
    original_session,
)

PORTABLE = FuseOptions("fp32", portable=True)
SIZES = Sizes(q_len=9, kv_len=9)
TYPES = {np.float32: ir.DataType.FLOAT, np.float16: ir.DataType.FLOAT16, bfloat16: ir.DataType.BFLOAT16}
FORMS = {"packed": PACKED, "BSHD": BSHD, "BHSD": BHSD}


def body_and_kernel(
    given: dict[str, Array],
    form: str = "BSHD",
    sizes: Sizes = SIZES,
    opset: int = 18,
    outputs: tuple[str, ...] = ("output", "present_key", "present_value"),
    **attributes: Any,
) -> tuple[dict[str, Array], dict[str, Array]]:
    """Outputs of one node by its function body and by the library."""
    dtype = given["query"].dtype.type
    said = {
        "num_heads": sizes.heads,
        "kv_num_heads": sizes.kv_heads,
        "scale": 0.25,
        "softcap": 0.0,
        "window_left": -1,
        "is_causal": 1,
        "layout": FORMS[form].layout,
        "precision": "fp32",
    } | attributes
    model = one_node_model("ZyfaPrefillAttention", given, dict.fromkeys(outputs, dtype), said)
    model.opset_import[0].version = opset
    kind = Kind(
        FORMS[form],
        TYPES[dtype],
        sizes.heads,
        sizes.kv_heads,
        said.get("causal_alignment", "bottom_right"),
        frozenset(given),
        len(outputs),
    )
    model.functions.append(ir.serde.serialize_function(function(kind, opset)))
    by_body, by_kernel = original_session(model), fused_session(model)
    return zyfa_ort.run(by_body, given), zyfa_ort.run(by_kernel, given)


def problem(sizes: Sizes, form: str, dtype: Any = np.float32) -> dict[str, Array]:
    layout, rank = ("BHSD", 4) if form == "BHSD" else ("BSHD", 3 if form == "packed" else 4)
    return gaussian(sizes, dtype, layout=layout, rank=rank)


def extras(sizes: Sizes, *names: str) -> dict[str, Array]:
    rng, keys = np.random.default_rng(2), sizes.past + sizes.kv_len
    mask = rng.random((sizes.batch, keys)) > 0.3
    mask[:1] = False  # a batch row without any key
    bias = rng.standard_normal((sizes.batch, 1, sizes.q_len, keys)).astype(np.float32)
    bias[..., :1, :] = -np.inf
    all_of_them = {
        "key_mask": mask,
        "attn_bias": bias,
        "sinks": rng.standard_normal(sizes.heads).astype(np.float32),
    }
    return {name: all_of_them[name] for name in names}


CASES: dict[str, tuple[Sizes, tuple[str, ...], dict[str, Any]]] = {
    "causal": (SIZES, (), {}),
    "full": (SIZES, (), {"is_causal": 0}),
    "window": (SIZES, (), {"window_left": 2}),
    "window without causal": (SIZES, (), {"window_left": 2, "is_causal": 0}),
    "softcap": (SIZES, (), {"softcap": 0.7}),
    "negative scale": (SIZES, (), {"scale": -0.5}),
    "top left": (replace(SIZES, kv_len=12), (), {"causal_alignment": "top_left"}),
    "more queries than keys": (replace(SIZES, kv_len=4), (), {}),
    "past": (replace(SIZES, past=5), (), {}),
    "key mask": (SIZES, ("key_mask",), {}),
    "bias": (SIZES, ("attn_bias",), {}),
    "sinks": (SIZES, ("sinks",), {}),
    "everything": (
        replace(SIZES, past=5, v_head_dim=24),
        ("key_mask", "attn_bias", "sinks"),
        {"softcap": 2.0, "window_left": 6},
    ),
    "no keys": (replace(SIZES, kv_len=0), (), {}),
    "no queries": (replace(SIZES, q_len=0), (), {}),
    "no batch": (replace(SIZES, batch=0), (), {}),
}


@pytest.mark.parametrize(("name", "form"), itertools.product(CASES, FORMS))
def test_the_body_is_the_operator(name: str, form: str) -> None:
    sizes, more, attributes = CASES[name]
    given = problem(sizes, form) | extras(sizes, *more)
    by_body, by_kernel = body_and_kernel(given, form, sizes, **attributes)
    for output, wanted in by_kernel.items():
        assert_same_numbers(by_body[output], wanted, what=output)


@pytest.mark.parametrize("opset", [12, 13, 17, 18, 23])
def test_every_opset(opset: int) -> None:
    sizes, more, attributes = CASES["everything"]
    given = problem(sizes, "packed") | extras(sizes, *more)
    by_body, by_kernel = body_and_kernel(given, "packed", sizes, opset, **attributes)
    assert_same_numbers(by_body["output"], by_kernel["output"])


def test_half_precision() -> None:
    given = problem(SIZES, "BSHD", np.float16)
    by_body, by_kernel = body_and_kernel(given)
    assert_same_numbers(by_body["output"], by_kernel["output"], "fp32_float16")


@pytest.mark.parametrize("odd", [np.nan, np.inf])
def test_what_a_row_does_not_see_does_not_matter_to_it(odd: float) -> None:
    given = problem(SIZES, "BSHD")
    given["key"][0, 4], given["value"][1, 6] = odd, odd
    given["key_mask"] = np.ones((2, 9), np.bool_)
    given["key_mask"][0, 4] = False
    by_body, by_kernel = body_and_kernel(given)
    assert np.isfinite(by_kernel["output"][0]).all() and np.isfinite(by_kernel["output"][1, :6]).all()
    assert np.isfinite(by_body["output"][0]).all()
    assert_same_numbers(by_body["output"][0], by_kernel["output"][0])
    assert_same_numbers(by_body["output"][1, :6], by_kernel["output"][1, :6])
    assert not np.isfinite(by_body["output"][1, 6:]).any()


def test_a_fused_model_runs_without_the_library_and_with_it() -> None:
    model = one_attention(SIZES, Style(mask=masks.causal_and_padding())).model()
    after, report = fuse(model, PORTABLE)
    assert report.fused == 1 and [body.domain for body in after.functions] == [DOMAIN]
    assert attribute(attention_nodes(after)[0], "scale") == pytest.approx(0.25)
    given = feeds(SIZES) | {"attention_mask": np.array([[0, 0] + [1] * 7, [1] * 9])}
    wanted = zyfa_ort.run(original_session(model), given)["output"]
    for session in (original_session(after), fused_session(after)):
        got = zyfa_ort.run(session, given)["output"]
        assert_same_numbers(got[0, 2:], wanted[0, 2:])
        assert_same_numbers(got[1], wanted[1])


def test_shapes_are_inferred_through_the_body() -> None:
    after, _ = fuse(one_attention(SIZES, Style(mask=masks.causal())).model(), PORTABLE)
    del after.graph.value_info[:]
    inferred = onnx.shape_inference.infer_shapes(after, strict_mode=True)
    assert inferred.graph.output[0].type.tensor_type.shape.dim[2].dim_value == 64


def test_sites_of_another_kind_stay_as_they_are() -> None:
    """Two with a causal mask, one with a bias: one body cannot serve both."""
    graph = Graph()
    q, k, v = inputs(graph, SIZES)
    for at, mask in enumerate((masks.causal(), masks.bias("bias", ["tokens", "tokens"]), masks.causal())):
        graph.op("Identity", attention(graph, q, k, v, SIZES, Style(mask=mask)), name=f"output_{at}")
        graph.output(f"output_{at}", np.float32, ["batch", "tokens", 64])
    after, report = fuse(graph.model(), PORTABLE)
    assert [site.status for site in report.sites] == ["fused", "declined", "fused"]
    assert report.sites[1].reason == OTHER_KIND and len(after.functions) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"opset_import": 10},
            "--portable: expected a model of opset 12 or later, got 10; convert the model",
        ),
        (
            {"ir_version": 7},
            "--portable: expected a model of IR version 8 or later, which can hold functions, got 7",
        ),
    ],
)
def test_models_that_cannot_carry_a_body(change: dict[str, int], message: str) -> None:
    graph = Graph(change.get("opset_import", 13), change.get("ir_version", 8))
    with pytest.raises(GraphPassError) as error:
        fuse(one_attention(SIZES, Style(), graph=graph).model(), PORTABLE)
    assert str(error.value) == message


def test_fused_models_are_not_made_portable_later() -> None:
    after, _ = fuse(one_attention(SIZES, Style()).model())
    with pytest.raises(GraphPassError, match=r"already holds operators of ai\.zyfa; fuse the original"):
        fuse(after, PORTABLE)
