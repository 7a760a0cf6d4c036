"""A language model of one layer, written node by node: token ids and a padding mask in, logits out."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

VOCABULARY, HEADS, HEAD_DIM = 50, 2, 16
_TYPES = {"float": (np.float32, TensorProto.FLOAT), "bfloat16": (ml_dtypes.bfloat16, TensorProto.BFLOAT16)}


def write_toy(
    path: Path,
    dtype: str = "float",
    scale: float = HEAD_DIM**-0.5,
    layers: int = 1,
    head_dim: int = HEAD_DIM,
) -> Path:
    """Writes the model and returns its path. `scale` multiplies the scores; the hidden width follows `head_dim`."""
    numpy_type, onnx_type = _TYPES[dtype]
    hidden_width = HEADS * head_dim
    rng = np.random.default_rng(0)
    nodes: list[onnx.NodeProto] = []
    initializers: list[onnx.TensorProto] = []

    def weight(name: str, *shape: int, fan_in: int = 0) -> str:
        values = rng.standard_normal(shape).astype(np.float32) / np.sqrt(fan_in or shape[0])
        return constant(name, values.astype(numpy_type))

    def constant(name: str, values: np.ndarray) -> str:
        if values.dtype == ml_dtypes.bfloat16:
            tensor = helper.make_tensor(name, onnx_type, values.shape, values.tobytes(), raw=True)
        else:
            tensor = numpy_helper.from_array(values, name)
        initializers.append(tensor)
        return name

    def node(op: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op, inputs, [output], name=f"/{output}/{op}", **attributes))
        return output

    def integers(name: str, *values: int) -> str:
        return constant(name, np.array(values, np.int64))

    # visible = causal and not padding, as (B, 1, S, S)
    shape = node("Shape", ["input_ids"], "ids_shape")
    rows = node("Gather", [shape, constant("one", np.array(1, np.int64))], "rows")
    positions = node("Range", [constant("zero", np.array(0, np.int64)), rows, "one"], "positions")
    queries = node("Unsqueeze", [positions, integers("last", -1)], "queries")
    causal = node("LessOrEqual", [positions, queries], "causal")
    existing = node("Cast", ["attention_mask"], "existing", to=TensorProto.BOOL)
    keys = node("Unsqueeze", [existing, integers("middle", 1, 2)], "keys")
    visible = node("And", [causal, keys], "visible")
    hidden_score = constant("hidden_score", np.array(np.finfo(np.float32).min).astype(numpy_type))
    mask = node("Where", [visible, constant("nothing", np.array(0, numpy_type)), hidden_score], "mask")

    hidden = node(
        "Gather", [weight("embedding", VOCABULARY, hidden_width, fan_in=1), "input_ids"], "hidden_0"
    )
    split = integers("split", 0, 0, HEADS, head_dim)
    joined = integers("joined", 0, 0, hidden_width)
    for layer in range(layers):
        at = f"layers.{layer}/attention"

        def heads(kind: str, perm: list[int], at: str = at, hidden: str = hidden) -> str:
            projected = node(
                "MatMul", [hidden, weight(f"{at}/{kind}_weight", hidden_width, hidden_width)], f"{at}/{kind}"
            )
            parts = node("Reshape", [projected, split], f"{at}/{kind}_heads")
            return node("Transpose", [parts], f"{at}/{kind}_ready", perm=perm)

        query, key, value = heads("q", [0, 2, 1, 3]), heads("k", [0, 2, 3, 1]), heads("v", [0, 2, 1, 3])
        scores = node("MatMul", [query, key], f"{at}/scores")
        scaled = node("Mul", [scores, constant(f"{at}/scale", np.array(scale, numpy_type))], f"{at}/scaled")
        masked = node("Add", [scaled, mask], f"{at}/masked")
        weights = node("Softmax", [masked], f"{at}/weights", axis=-1)
        output = node("MatMul", [weights, value], f"{at}/output")
        back = node("Transpose", [output], f"{at}/back", perm=[0, 2, 1, 3])
        flat = node("Reshape", [back, joined], f"{at}/flat")
        hidden = node("Add", [hidden, flat], f"hidden_{layer + 1}")
    node("MatMul", [hidden, weight("head", hidden_width, VOCABULARY)], "logits")

    graph = helper.make_graph(
        nodes,
        "toy",
        [
            helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"])
            for name in ("input_ids", "attention_mask")
        ],
        [helper.make_tensor_value_info("logits", onnx_type, ["batch", "sequence", VOCABULARY])],
        initializers,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9)
    onnx.checker.check_model(model, full_check=True)
    onnx.save(model, path)
    return path
