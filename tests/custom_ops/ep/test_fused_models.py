"""Two layers of a fused model through the session: attention on the GPU, everything else on the CPU."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from custom_ops.gpu_session import gpu_session, placement
from custom_ops.op_session import Array
from reference.toy_model import VOCABULARY, write_toy
from zyfa_ort.graph_passes.report import PrecisionChoice

import zyfa_ort
from zyfa_ort.numerics import MODEL_BOUNDS, TOLERANCES, relative_error

LAYERS, HEAD_DIM = 2, 128
ATTENTION = ("ZyfaExecutionProvider", "ZyfaPrefillAttention")
# Two layers of tolerances of the same arithmetic on both sides: sums in another order, and what a code that
# flips makes of them.
BOUNDS = {
    name: LAYERS * TOLERANCES[key].relative for name, key in (("bf16", "bf16"), ("fp8", "fp8_model_bfloat16"))
}


def model_inputs(rows: int, padding: tuple[int, ...] = (0, 7)) -> dict[str, Array]:
    ids = np.random.default_rng(rows).integers(0, VOCABULARY, (len(padding), rows))
    mask = np.ones_like(ids)
    for entry, count in enumerate(padding):
        mask[entry, : min(count, rows)] = 0
    return {"input_ids": ids, "attention_mask": mask}


def fused(folder: Path, precision: PrecisionChoice, **options: Any) -> Path:
    toy = write_toy(folder / "toy.onnx", layers=LAYERS, head_dim=HEAD_DIM)
    report = zyfa_ort.fuse(toy, folder / "fused.onnx", precision=precision, **options)
    assert len(report.sites) == LAYERS
    return folder / "fused.onnx"


@pytest.mark.parametrize("rotate", ["none", "hadamard"])
@pytest.mark.parametrize("precision", ["bf16", "fp8"])
def test_two_layers(tmp_path: Path, precision: PrecisionChoice, rotate: Any) -> None:
    path = fused(tmp_path, precision, rotate=rotate)
    session = gpu_session(path)
    counts = placement(session)
    assert counts[ATTENTION] == LAYERS
    assert {provider for provider, op in counts if op == "MatMul"} == {"CPUExecutionProvider"}
    on_cpu = zyfa_ort.session(path, "cpu")
    for rows in (40, 3, 40, 130):
        inputs = model_inputs(rows)
        got, wanted = (zyfa_ort.run(s, inputs)["logits"] for s in (session, on_cpu))
        # At most 16 rows are decoded, as the exact softmax of the FP8 inputs.
        bound = MODEL_BOUNDS["fp8"].relative if rows <= 16 and precision == "fp8" else BOUNDS[precision]
        assert relative_error(got, wanted) < bound
        assert np.isfinite(got).all()


def test_the_helper_makes_the_same_session(tmp_path: Path) -> None:
    path = fused(tmp_path, "fp8")
    inputs = model_inputs(40)
    wanted = zyfa_ort.run(gpu_session(path), inputs)["logits"]
    session = zyfa_ort.session(path, "gpu")
    assert zyfa_ort.run(session, inputs)["logits"].tobytes() == wanted.tobytes()


def test_explicit_quantise_nodes_are_on_the_gpu_too(tmp_path: Path) -> None:
    path = fused(tmp_path, "fp8", rotate="hadamard", quantize_nodes="explicit")
    session = gpu_session(path)
    counts = placement(session)
    on_gpu = {op: count for (provider, op), count in counts.items() if provider == "ZyfaExecutionProvider"}
    assert on_gpu == {"ZyfaPrefillAttention": LAYERS, "ZyfaQuantizeFp8": 3 * LAYERS}
    inputs = model_inputs(40, (0, 0))
    folded = gpu_session(fused(tmp_path, "fp8", rotate="hadamard"))
    assert (
        zyfa_ort.run(session, inputs)["logits"].tobytes() == zyfa_ort.run(folded, inputs)["logits"].tobytes()
    )


def test_a_float_model_that_was_fused_for_nothing_special(tmp_path: Path) -> None:
    """An fp32 node is refused; the option precision makes it one that the GPU computes."""
    toy = write_toy(tmp_path / "toy.onnx", layers=LAYERS, head_dim=HEAD_DIM)
    zyfa_ort.fuse(toy, tmp_path / "fused.onnx", precision="fp32")
    with pytest.raises(Exception, match="no GPU kernel computes in fp32"):
        zyfa_ort.session(tmp_path / "fused.onnx", "gpu")
    session = zyfa_ort.session(tmp_path / "fused.onnx", "gpu", provider_options={"precision": "bf16"})
    inputs = model_inputs(40)
    wanted = zyfa_ort.run(zyfa_ort.session(tmp_path / "fused.onnx", "cpu"), inputs)["logits"]
    assert relative_error(zyfa_ort.run(session, inputs)["logits"], wanted) < MODEL_BOUNDS["bf16"].relative
