"""The report says what happened, all of it, the same every time; and what a rewrite keeps of a model's decoration."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from custom_ops.problems import Sizes
from onnx import helper
from zyfa_ort.graph_passes.errors import GraphPassError
from zyfa_ort.graph_passes.fold_rotation import FOLDED
from zyfa_ort.graph_passes.pipeline import fuse_model, inspect_model
from zyfa_ort.graph_passes.report import FuseOptions, FuseReport, SiteOptions, SiteReport
from zyfa_ort.graph_passes.schema import DOMAIN, VERSION

import zyfa_ort
from graph_passes import mask_builders as masks
from graph_passes.decomposed import Style, layers, one_attention
from graph_passes.graph import Graph
from graph_passes.on_disk import write
from graph_passes.running import FP32, assert_untouched, attention_nodes, fuse
from zyfa_ort import schemas

SIZES = Sizes(batch=2, heads=4, kv_heads=2, q_len=9, kv_len=9)
ODD = Style(mask=lambda graph, scores: graph.op("Erf", scores, name=graph.fresh("odd")))
FP8 = FuseOptions("fp8", "hadamard", "bf16")


def model(*styles: Style) -> onnx.ModelProto:
    return layers(Graph(), SIZES, styles).model()


def causal(**more: Any) -> Style:
    return Style(mask=masks.causal(), **more)


# --- the report -----------------------------------------------------------------------------------------------------------

FUSED = {
    "status": "fused",
    "node": "ZyfaPrefillAttention",
    "op_type": "Softmax",
    "graph": "",
    "at": "",
    "reason": "",
    "num_heads": 4,
    "kv_num_heads": 2,
    "head_dim": 16,
    "v_head_dim": 16,
    "mask": ["causal"],
    "is_causal": True,
    "causal_alignment": "bottom_right",
    "window_left": -1,
    "scale": 0.5,
    "softcap": 0.0,
    "layout": "BSHD",
    "precision": "fp8",
    "rotation": "hadamard",
    "fp8_edges": "bf16",
    "past": False,
    "notes": [FOLDED],
}
DECLINED = {
    **FUSED,
    "status": "declined",
    "node": "softmax_1",
    "at": "odd_0",
    "reason": "Erf between the product and the Softmax is not understood",
    **dict.fromkeys(("num_heads", "kv_num_heads", "head_dim", "v_head_dim", "scale", "layout")),
    **dict.fromkeys(("precision", "fp8_edges")),
    "mask": [],
    "is_causal": False,
    "rotation": "none",
    "notes": [],
}


def test_json_holds_everything() -> None:
    """Key for key; these names are what scripts read."""
    _, report = fuse(model(causal(scale=0.5), ODD), FP8)
    assert json.loads(report.to_json()) == {
        "summary": "1 of 2 attention sites fused, 1 found but declined",
        "modified": True,
        "fused": 1,
        "already_fused": 0,
        "declined": 1,
        "sites": [FUSED, DECLINED],
    }
    assert [*FUSED] == [field.name for field in dataclasses.fields(SiteReport)]


def back(data: Mapping[str, Any]) -> FuseReport:
    """The report that `data` was made from."""
    tuples = ("mask", "notes")
    sites = [{key: tuple(v) if key in tuples else v for key, v in one.items()} for one in data["sites"]]
    return FuseReport(tuple(SiteReport(**one) for one in sites), data["modified"])


def test_json_loses_nothing() -> None:
    sinks = masks.bias("bias", ["batch", 4, "tokens", "tokens"])
    _, report = fuse(one_attention(SIZES, Style(mask=sinks)).model(), FP8)
    (site,) = report.sites
    assert (site.precision, site.mask) == ("bf16", ("bias",)) and len(site.notes) == 3
    assert back(json.loads(report.to_json())) == report


RUN = """
import sys, zyfa_ort
print(zyfa_ort.fuse(sys.argv[1], sys.argv[2], precision="fp8").to_json())
"""


def test_the_same_every_time(tmp_path: Path) -> None:
    """Whatever order Python's sets have: the same text, the same bytes."""
    source, target = write(tmp_path / "m.onnx"), tmp_path / "out.onnx"
    results = set()
    for seed in ("1", "2", "3"):
        done = subprocess.run(
            [sys.executable, "-c", RUN, source, target],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        )
        results.add((done.stdout, target.read_bytes()))
    assert len(results) == 1


def no_attention() -> onnx.ModelProto:
    graph = Graph()
    graph.op("Softmax", graph.input("x", np.float32, ["n", 4]), name="y")
    graph.output("y", np.float32, ["n", 4])
    return graph.model()


def test_modified_is_the_truth() -> None:
    """For every kind of model, by comparing bytes."""
    fused, _ = fuse(model(causal()))
    cases = {
        "fused": (model(causal()), True, "1 of 1 attention sites fused"),
        "half": (model(ODD, causal()), True, "1 of 2 attention sites fused, 1 found but declined"),
        "declined": (model(ODD, ODD), False, "0 of 2 attention sites fused, 2 found but declined"),
        "again": (fused, False, "0 of 1 attention sites fused, 1 already fused"),
        "none": (
            no_attention(),
            False,
            "no attention found: the model has no Softmax between two products and no attention node",
        ),
    }
    for before, modified, summary in cases.values():
        after, report = fuse(before)
        assert (report.modified, report.summary()) == (modified, summary)
        if modified:
            assert after.SerializeToString() != before.SerializeToString()
        else:
            assert_untouched(after, before)


def test_inspect_changes_nothing() -> None:
    """And says of each site what fusing would."""
    held = ir.serde.deserialize_model(model(causal(), ODD))
    before = ir.serde.serialize_model(held).SerializeToString(deterministic=True)
    report = inspect_model(held, FP8)
    assert ir.serde.serialize_model(held).SerializeToString(deterministic=True) == before
    assert not report.modified
    assert report.summary() == "1 of 2 attention sites can be fused, 1 found but declined"
    _, fused = fuse(model(causal(), ODD), FP8)
    expected = [one.with_status("fusible") if one.status == "fused" else one for one in fused.sites]
    assert list(report.sites) == expected


STYLES = {
    "causal": causal(),
    "scale": causal(scale=0.3),
    "window": Style(mask=masks.causal(window=4)),
    "key mask": Style(mask=masks.causal_and_padding()),
    "bias": Style(mask=masks.bias("bias", ["batch", 4, "tokens", "tokens"])),
}


@pytest.mark.parametrize("options", [FP32, FP8, FuseOptions("bf16")], ids=lambda one: one.precision)
@pytest.mark.parametrize("style", STYLES)
def test_the_second_run_finds_the_first(style: str, options: FuseOptions, tmp_path: Path) -> None:
    """It reports the same site from the node alone, and writes the same bytes."""
    paths = [tmp_path / f"{number}.onnx" for number in range(3)]
    onnx.save(one_attention(SIZES, STYLES[style]).model(), paths[0])
    words = {name: getattr(options, name) for name in ("precision", "rotate", "fp8_edges")}
    first, second = (zyfa_ort.fuse(paths[at], paths[at + 1], **words) for at in range(2))
    assert (second.modified, second.fused, second.already_fused) == (False, 0, 1)
    assert paths[2].read_bytes() == paths[1].read_bytes()
    expected = dataclasses.replace(
        first.sites[0], status="already fused", op_type="ZyfaPrefillAttention", notes=()
    )
    if expected.scale is not None:
        expected = dataclasses.replace(expected, scale=float(np.float32(expected.scale)))
    assert second.sites == (expected,)


def test_nodes_of_earlier_runs_in_bodies_and_functions() -> None:
    """Written by hand: types and attributes that our rewrite does not choose."""

    def node(output: str, **attributes: Any) -> onnx.NodeProto:
        return helper.make_node(
            "ZyfaPrefillAttention", ["q", "q", "q"], [output], domain=DOMAIN, **attributes
        )

    def body(output: str, **attributes: Any) -> onnx.GraphProto:
        made = node(output, name=output, causal_alignment="top_left", **attributes)
        return helper.make_graph([made], "body", [], [onnx.ValueInfoProto(name=output)])

    graph = Graph()
    graph.input("q", np.float16, ["batch", 4, "tokens", 16])
    graph.input("c", np.bool_, [])
    graph.op("If", "c", name="if", then_branch=body("a", layout="BHSD"), else_branch=body("b"))
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, VERSION)]
    function = helper.make_function(
        "local", "F", ["q"], ["o"], [node("o", name="deep", is_causal=0, num_heads=8)], opsets
    )
    graph.functions.append(function)
    graph.nodes.append(helper.make_node("F", ["q"], ["y"], name="call", domain="local"))
    graph.output("y", np.float16)
    made = helper.make_model(
        graph.graph(),
        opset_imports=[*opsets, helper.make_opsetid("local", 1)],
        functions=graph.functions,
        ir_version=9,
    )
    report = inspect_model(ir.serde.deserialize_model(made))
    then, other, deep = (next(s for s in report.sites if s.node == name) for name in ("a", "b", "deep"))
    assert (then.graph, other.graph) == ("if/then_branch/", "if/else_branch/")
    assert (then.num_heads, then.kv_num_heads, then.head_dim, then.v_head_dim) == (4, 4, 16, 16)
    assert (other.layout, other.num_heads, other.head_dim) == (
        "BSHD",
        None,
        16,
    )  # no number of heads in the file
    assert (then.mask, then.precision, then.causal_alignment) == (("causal (top left)",), "fp32", "top_left")
    assert (deep.graph, deep.node) == ("function local::F/", "deep")
    assert (deep.num_heads, deep.head_dim, deep.precision, deep.mask) == (8, None, None, ("full",))


# --- exceptions per site --------------------------------------------------------------------------------------------------


def test_exceptions_per_site() -> None:
    """By the name that the report gives."""
    made = model(causal(), causal(), causal())
    names = [site.node for site in inspect_model(ir.serde.deserialize_model(made)).sites]
    options = FuseOptions("fp32", per_site={names[1]: SiteOptions("fp8", "auto", "none")})
    _, report = fuse(made, options)
    assert [site.node for site in report.sites] == names
    formats = [(site.precision, site.rotation, site.fp8_edges) for site in report.sites]
    assert formats == [("fp32", "none", None), ("fp8", "hadamard", "none"), ("fp32", "none", None)]


def test_an_exception_for_a_site_that_is_not_there() -> None:
    """Else a typing error would leave the site in the format of all others. Declined and fused sites are there."""
    made = model(causal(), ODD)
    wanted = (
        r"^options per site: expected a site's name such as ZyfaPrefillAttention, got ZyfaPrefilAttention$"
    )
    held = ir.serde.deserialize_model(made)
    for run in (inspect_model, fuse_model):
        with pytest.raises(GraphPassError, match=wanted):
            run(held, FuseOptions(per_site={"ZyfaPrefilAttention": SiteOptions()}))
    assert_untouched(ir.serde.serialize_model(held), made)
    none = r"^options per site: expected a site's name such as none, there is no attention, got x$"
    with pytest.raises(GraphPassError, match=none):
        fuse(no_attention(), FuseOptions(per_site={"x": SiteOptions()}))
    known = FuseOptions(per_site={"softmax_1": SiteOptions("fp32"), "ZyfaPrefillAttention": SiteOptions()})
    after, _ = fuse(made, known)
    assert not fuse(after, known)[1].modified


@pytest.mark.parametrize(
    ("name", "got", "words"),
    [
        ("precision", "int8", "'auto', 'fp8', 'bf16', 'fp32'"),
        ("rotate", "yes", "'none', 'hadamard', 'auto'"),
        ("fp8_edges", "fp8", "'hilo', 'bf16', 'none'"),
    ],
)
def test_words_that_no_option_has(name: str, got: str, words: str) -> None:
    with pytest.raises(GraphPassError, match=f"^{name}: expected one of {words}, got '{got}'$"):
        FuseOptions(**{name: got})


# --- what a rewrite keeps -------------------------------------------------------------------------------------------------


def decorated() -> onnx.ModelProto:
    """Two attentions with everything a protobuf can say beside the computation."""
    made = onnx.shape_inference.infer_shapes(model(causal(), Style(form="sdpa", mask=masks.causal())))
    made.producer_name, made.producer_version, made.domain, made.model_version = "maker", "1.2", "org", 7
    made.doc_string, made.graph.doc_string = "of the model", "of the graph"
    made.metadata_props.add(key="license", value="ours")
    made.graph.metadata_props.add(key="graph", value="1")
    for one in (*made.graph.node, *made.graph.value_info, *made.graph.input, *made.graph.output):
        one.doc_string = f"about {one.name}"
        one.metadata_props.add(key="key", value=one.name)
    for one in made.graph.node:
        one.ClearField("domain")  # helper writes the empty one down
    for at, one in enumerate(made.graph.initializer):
        one.doc_string = f"weight {at}"
    annotation = made.graph.quantization_annotation.add(tensor_name=made.graph.initializer[0].name)
    annotation.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="x")
    return made


def named(ones: Any) -> dict[str, Any]:
    return {one.name: one for one in ones}


def test_decoration_survives() -> None:
    before = decorated()
    after, report = fuse(before)
    assert report.fused == 2
    for field in ("ir_version", "producer_name", "producer_version", "domain", "model_version", "doc_string"):
        assert getattr(after, field) == getattr(before, field)
    assert list(after.metadata_props) == list(before.metadata_props)
    for field in ("name", "doc_string", "metadata_props", "input", "output", "quantization_annotation"):
        assert getattr(after.graph, field) == getattr(before.graph, field)
    for field in ("node", "initializer"):
        old, new = named(getattr(before.graph, field)), named(getattr(after.graph, field))
        kept = set(old) & set(new)
        assert kept and all(new[name] == old[name] for name in kept)
        assert set(new) - kept == ({site.node for site in report.sites} if field == "node" else set())


def test_value_info_survives_and_none_is_stale() -> None:
    before = decorated()
    after, _ = fuse(before)
    old, new = named(before.graph.value_info), named(after.graph.value_info)
    made = {name for node in after.graph.node for name in node.output} | set(named(after.graph.initializer))
    assert set(new) <= made
    kept = set(old) & made
    assert kept <= set(new) and all(new[name] == old[name] for name in kept)
    symbols = {dim.dim_param for one in new.values() for dim in one.type.tensor_type.shape.dim} - {""}
    assert {"batch", "tokens"} <= symbols
    for node in attention_nodes(after):
        assert new[node.output[0]] == old[node.output[0]]  # type, shape, words: of the value it replaces


def test_the_node_keeps_what_the_softmax_said() -> None:
    before = decorated()
    softmax = [node for node in before.graph.node if node.op_type == "Softmax"]
    after, _ = fuse(before)
    for node, old in zip(attention_nodes(after), softmax, strict=True):
        assert list(node.metadata_props) == list(old.metadata_props)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp8"])
def test_the_checker_takes_our_nodes(precision: Any) -> None:
    """With our schemas, attributes and types included; inferred shapes agree with the declared ones."""
    schemas.register()
    after, _ = fuse(decorated(), FuseOptions(precision, "auto"))
    onnx.checker.check_model(after, full_check=True)
    inferred = onnx.shape_inference.infer_shapes(after, strict_mode=True, check_type=True)
    for node in attention_nodes(after):
        assert node.output[0] in named(inferred.graph.value_info)
    attention_nodes(after)[0].attribute.add(name="causal", i=1, type=onnx.AttributeProto.INT)
    with pytest.raises(onnx.checker.ValidationError, match="Unrecognized attribute: causal"):
        onnx.checker.check_model(after)
