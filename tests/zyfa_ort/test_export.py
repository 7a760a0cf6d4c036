"""torch's scaled_dot_product_attention exported straight to our operator."""

from __future__ import annotations

import logging

import numpy as np
import onnx
import pytest
from zyfa_ort.graph_passes import schema

import zyfa_ort
from zyfa_ort import numerics
from zyfa_ort.errors import InputError
from zyfa_ort.export import translation_table

torch = pytest.importorskip("torch")

QUERIES, KEYS = 6, 9
CASES = {
    "causal": {"is_causal": True},
    "grouped": {"is_causal": True, "enable_gqa": True},
    "scaled": {"scale": 0.3},
    "boolean mask": {"mask": torch.bool},
    "float mask": {"mask": torch.float32},
}


class Attention(torch.nn.Module):
    def __init__(self, **options):
        super().__init__()
        self.options = options

    def forward(self, query, key, value, mask=None):
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, **self.options
        )


def export(case, path, **table):
    options = dict(CASES[case])
    mask_type = options.pop("mask", None)
    torch.manual_seed(0)
    kv_heads = 2 if options.get("enable_gqa") else 4
    args = [
        torch.randn(1, heads, rows, 16) for heads, rows in ((4, QUERIES), (kv_heads, KEYS), (kv_heads, KEYS))
    ]
    if mask_type is not None:
        mask = torch.randn(QUERIES, KEYS)
        args.append(mask if mask_type == torch.float32 else mask > -0.5)
    module = Attention(**options).eval()
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)
    program = torch.onnx.export(
        module,
        tuple(args),
        dynamo=True,
        opset_version=18,
        custom_translation_table=translation_table(**table),
        verbose=False,
    )
    program.save(path)
    return args, module(*args).numpy()


def attention_node(path):
    (node,) = (node for node in onnx.load(path).graph.node if node.domain == schema.DOMAIN)
    return node, {held.name: onnx.helper.get_attribute_value(held) for held in node.attribute}


@pytest.mark.parametrize("case", CASES)
def test_one_node_with_the_same_answer(case, tmp_path):
    path = tmp_path / "model.onnx"
    args, expected = export(case, path, precision="fp32")
    node, attributes = attention_node(path)
    assert attributes["is_causal"] == CASES[case].get("is_causal", False)
    assert attributes["kv_num_heads"] == (2 if case == "grouped" else 4)
    session = zyfa_ort.session(path)
    inputs = {value.name: arg.numpy() for value, arg in zip(session.get_inputs(), args, strict=True)}
    (actual,) = zyfa_ort.run(session, inputs).values()
    assert not numerics.TOLERANCES["fp32"].violations(actual, expected)
    assert len(node.input) == (7 if "mask" in CASES[case] else 3)


def test_fp8_is_left_out_where_a_mask_is_a_tensor(tmp_path):
    for case, wanted in (("causal", b"fp8"), ("float mask", b"bf16")):
        path = tmp_path / f"{case}.onnx"
        args, expected = export(case, path, precision="fp8", rotation="hadamard", fp8_edges="bf16")
        _, attributes = attention_node(path)
        assert attributes["precision"] == wanted
        assert attributes.get("rotation", b"none") == (b"hadamard" if wanted == b"fp8" else b"none")
        session = zyfa_ort.session(path)
        inputs = {value.name: arg.numpy() for value, arg in zip(session.get_inputs(), args, strict=True)}
        (actual,) = zyfa_ort.run(session, inputs).values()
        assert numerics.relative_error(actual, expected) < numerics.TOLERANCES["fp8_from_float"].relative


def test_unknown_words_are_refused():
    with pytest.raises(InputError, match="precision: expected one of fp32, bf16, fp8, got fp16"):
        translation_table(precision="fp16")


def test_the_plain_operator_is_what_it_replaces():
    """The causal rule of torch starts at the first key when there are more keys than queries."""
    query, key = torch.zeros(1, 1, 2, 4), torch.zeros(1, 1, 5, 4)
    value = torch.arange(5.0).reshape(1, 1, 5, 1)
    ours = zyfa_ort.flash_attn_func(query, key, value, layout="BHSD", causal_alignment="top_left")
    theirs = torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True).numpy()
    assert np.allclose(ours, theirs)


def test_dropout_is_refused(tmp_path, monkeypatch):
    monkeypatch.setitem(CASES, "dropout", {"dropout_p": 0.1})
    with pytest.raises(
        torch.onnx.errors.OnnxExporterError, match=r"expected dropout_p 0, got 0\.1; export model\.eval"
    ):
        export("dropout", tmp_path / "model.onnx")
