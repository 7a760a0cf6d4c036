"""What others make of a graph: ONNX Runtime's transformer optimizer, its session, and onnxscript's fusions."""

from __future__ import annotations

import tempfile
from pathlib import Path

import onnx


def ort_optimizer(
    model: onnx.ModelProto, model_type: str, heads: int = 0, hidden: int = 0
) -> onnx.ModelProto:
    """onnxruntime.transformers.optimizer for one of its model types, without the session's own optimisations.

    heads, hidden: 0 lets the optimizer read them off the graph.
    """
    from onnxruntime.transformers.optimizer import optimize_model

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "model.onnx"
        onnx.save(model, source)
        made = optimize_model(
            str(source), model_type=model_type, num_heads=heads, hidden_size=hidden, opt_level=0
        )
    return made.model


def ort_session(model: onnx.ModelProto) -> onnx.ModelProto:
    """What a session with all optimisations runs."""
    import onnxruntime as ort

    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "optimized.onnx"
        options = ort.SessionOptions()
        options.log_severity_level = 4
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.optimized_model_filepath = str(target)
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(target)


def onnxscript_fusions(model: onnx.ModelProto) -> onnx.ModelProto:
    """onnxscript.rewriter.ort_fusions on a copy of the model: it renames initializers, and onnx_ir shares them."""
    import onnx_ir as ir
    from onnxscript.rewriter.ort_fusions import optimize_for_ort

    copy = onnx.ModelProto.FromString(model.SerializeToString())
    held = ir.serde.deserialize_model(copy)
    result = optimize_for_ort(held)
    made = result[0] if isinstance(result, tuple) else result
    return ir.serde.serialize_model(made)
