"""Reading values of a graph: constants (small ones only), producers, uses. Nothing here changes a graph."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

Array = npt.NDArray[np.generic]

# Shape vectors, scales and masks of single rows fit; a weight matrix does not. A 32-layer 8 GB model then costs
# no reads from its data file.
SMALL_BYTES: Final = 4096
# A causal mask buffer of 4096 x 4096 float32 (what nanoGPT-like models carry) is just allowed.
BUFFER_BYTES: Final = 64 << 20

# Operators with learned weights or activations inside: what comes out of them is data, never a mask or a shape.
LEARNED_OPS: Final = frozenset({"MatMul", "Gemm", "Conv", "Einsum", "FusedMatMul", "MatMulNBits", "Softmax"})


def standard(node: ir.Node) -> bool:
    """True for operators of the ONNX standard itself."""
    return node.domain in ("", "ai.onnx")


def is_op(node: ir.Node | None, *op_types: str) -> bool:
    """True when `node` is one of the standard operators `op_types`."""
    return node is not None and standard(node) and node.op_type in op_types


def source(value: ir.Value | None) -> ir.Node | None:
    return None if value is None else value.producer()


def operand(node: ir.Node, index: int) -> ir.Value | None:
    """Input `index`, or None when the node has fewer inputs or the optional input is left empty."""
    return node.inputs[index] if index < len(node.inputs) else None


def tensor(value: ir.Value | None) -> ir.TensorProtocol | None:
    """The tensor behind an initializer or a Constant node. An initializer that callers may override is none."""
    if value is None or (value.is_graph_input() and value.is_initializer()):
        return None
    if value.const_value is None and not is_op(value.producer(), "Constant"):
        return None
    try:
        return ir.convenience.get_const_tensor(value)
    except ValueError:  # a Constant node with several attributes, which the checker refuses too
        return None


def constant(value: ir.Value | None, limit: int = SMALL_BYTES) -> Array | None:
    """The data of a constant of at most `limit` bytes, else None. Larger tensors are not touched on disk."""
    held = tensor(value)
    if held is None or held.dtype == ir.DataType.STRING or held.nbytes > limit:
        return None
    return _read(held) if isinstance(held, ir.ExternalTensor) else np.asarray(held.numpy())


def _read(held: ir.ExternalTensor) -> Array | None:
    """Data of an external tensor. onnx_ir refuses data files that are links, which model caches are made of; nothing
    is executed or written here, so a link does no harm."""
    if held.dtype.bitwidth < 8:
        return None
    with Path(held.path).open("rb") as stream:
        stream.seek(held.offset or 0)
        content = stream.read(held.nbytes)
    shape = tuple(int(length) for length in held.shape.numpy())
    return np.frombuffer(content, held.dtype.numpy()).reshape(shape)


def passes_all(node: ir.Node | None) -> bool:
    """A Dropout that drops nothing, and whose mask nobody wants."""
    if node is None or not is_op(node, "Dropout"):
        return False
    mode = operand(node, 2)
    off = constant(mode)
    idle = mode is None or (off is not None and not off.any())
    return idle and not any(list(one.uses()) or one.is_graph_output() for one in node.outputs[1:])


CONTRIB_DOMAIN: Final = "com.microsoft"  # ONNX Runtime's own operators


def attribute_int(node: ir.Node, name: str, default: int) -> int:
    attribute = node.attributes.get(name)
    return default if attribute is None or attribute.is_ref() else attribute.as_int()


def attribute_float(node: ir.Node, name: str, default: float) -> float:
    attribute = node.attributes.get(name)
    return default if attribute is None or attribute.is_ref() else attribute.as_float()


def attribute_string(node: ir.Node, name: str, default: str) -> str:
    attribute = node.attributes.get(name)
    return default if attribute is None or attribute.is_ref() else attribute.as_string()


def single_use(value: ir.Value) -> ir.Node | None:
    """The only node that reads `value`; None when there are several, none, or `value` is a graph output."""
    uses = list(value.uses())
    if len(uses) != 1 or value.is_graph_output():
        return None
    return uses[0].node


def label(node: ir.Node) -> str:
    """How messages name a node: its name, or its operator and first output when it has none."""
    if node.name:
        return node.name
    output = node.outputs[0].name if node.outputs else ""
    return f"{node.op_type} -> {output or '?'}"
