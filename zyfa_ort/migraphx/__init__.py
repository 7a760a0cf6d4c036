"""Programs of MIGraphX with our kernels inside, without ONNX Runtime (docs/migraphx.md).

A fused model is cut at its nodes of the domain ``ai.zyfa``; what lies between them is compiled by MIGraphX, and segments and
kernels run alternately on one stream. ``import`` loads no library; the first program does.
"""

from zyfa_ort.migraphx.archive import load
from zyfa_ort.migraphx.compiling import compile
from zyfa_ort.migraphx.device_array import DeviceArray
from zyfa_ort.migraphx.program import Program
from zyfa_ort.migraphx.tensor_type import TensorType

__all__ = ["DeviceArray", "Program", "TensorType", "compile", "load"]
