"""The five ways in which the demo fuses the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from zyfa_ort.graph_passes.report import PrecisionChoice, RotateChoice
    from zyfa_ort.graph_passes.schema import Fp8Edges


@dataclass(frozen=True)
class Variant:
    """Options of one fused model, and its name in the table and on disk."""

    title: str
    file: str
    precision: PrecisionChoice
    rotate: RotateChoice = "none"
    fp8_edges: Fp8Edges = "hilo"


VARIANTS = (
    Variant("fp32", "fp32.onnx", "fp32"),
    Variant("bf16", "bf16.onnx", "bf16"),
    Variant("fp8", "fp8.onnx", "fp8"),
    Variant("fp8 + hadamard", "fp8-hadamard.onnx", "fp8", "hadamard"),
    Variant("fp8 + hadamard + bf16 edges", "fp8-hadamard-bf16.onnx", "fp8", "hadamard", "bf16"),
)
