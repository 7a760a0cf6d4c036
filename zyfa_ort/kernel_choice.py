"""Which GPU kernels would run the nodes of ai.zyfa in a model, as far as its shapes say (docs/kernels.md).

The rule is that of ``zyfa_ort.kernels.select``, which the operator library asks in every run with the true shapes.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import onnx_ir as ir

from zyfa_ort import node_problem
from zyfa_ort.graph_passes import model_file, schema
from zyfa_ort.graph_passes.values import attribute_string, operand
from zyfa_ort.kernels.select import (
    Choice,
    NoKernelError,
    make_problem,
    select,
    select_hadamard,
    select_quantize,
)
from zyfa_ort.node_problem import Tensor

# Lengths that are not known are tried as a prefill of this many rows, and as a decode of one.
SOME_LENGTH = 1024
_UNKNOWN = "known when the model runs: its shapes do not say the head dim"


@dataclass(frozen=True)
class NodeKernels:
    """`kernels` in words; `refusal` is why there are none, empty when there are."""

    name: str
    op: str
    kernels: str
    refusal: str = ""


def is_ours(node: ir.Node) -> bool:
    return node.domain == schema.DOMAIN and node.op_type in schema.ATTRIBUTES_OF


def node_kernels(model: ir.Model, provider_options: Mapping[str, str]) -> list[NodeKernels]:
    """Of every node of ours, bodies included, in graph order."""
    made = []
    for node in model.graph.all_nodes():
        if not is_ours(node):
            continue
        try:
            made.append(NodeKernels(node.name or "", node.op_type, _kernels(node, provider_options)))
        except (NoKernelError, ValueError) as error:
            made.append(NodeKernels(node.name or "", node.op_type, "", str(error)))
    return made


def with_shapes(path: Path) -> ir.Model:
    """The model with the shapes that the onnx package can infer. Raises ModelFileError."""
    from onnx_ir.passes.common import ShapeInferencePass

    from zyfa_ort import schemas

    model = model_file.load(path)
    schemas.register()
    # A model that the onnx package cannot infer keeps the shapes that are written in it; the pass logs a traceback.
    log = logging.getLogger(ShapeInferencePass.__module__)
    was, log.disabled = log.disabled, True
    try:
        return ShapeInferencePass()(model).model
    except Exception:
        return model
    finally:
        log.disabled = was


def _kernels(node: ir.Node, options: Mapping[str, str]) -> str:
    if node.op_type != schema.PREFILL_ATTENTION:
        return _tensor_op(node)
    problem = node_problem.arguments(node, _tensors(node), options, SOME_LENGTH)
    if problem is None:
        return _UNKNOWN
    if problem["q_len"] is not None:
        return _names(select(make_problem(**problem)))
    prefill = _names(select(make_problem(**problem | {"q_len": SOME_LENGTH})))
    one_query = {"q_len": 1} | ({"new_len": 1} if problem["past_len"] else {})
    return f"prefill: {prefill}; one query: {_names(select(make_problem(**problem | one_query)))}"


def _tensors(node: ir.Node) -> dict[str, Tensor]:
    """Inputs whose type and rank the model says."""
    found = {at: _tensor(node, at) for at in range(len(schema.INPUTS))}
    return {schema.INPUTS[at]: tensor for at, tensor in found.items() if tensor is not None}


def _names(choice: Choice) -> str:
    return ", ".join(dict.fromkeys(step.row.kernel for step in choice.launches)) or "nothing to compute"


def _tensor_op(node: ir.Node) -> str:
    x = _tensor(node, 0)
    if x is None or not x.shape or x.shape[-1] is None:
        return _UNKNOWN
    if node.op_type == schema.HADAMARD:
        return _names(select_hadamard(x.shape[-1], x.shape[-1], x.dtype))
    sizes = [1 if size is None else size for size in x.shape]
    if len(sizes) != 4:
        raise ValueError(f"x: expected 4 dimensions, got {len(sizes)}")
    words = {name: attribute_string(node, name, default) for name, default in _words(node.op_type)}
    return _names(select_quantize((sizes[0], sizes[1], sizes[2], sizes[3]), x.dtype, **words))


def _words(op_type: str) -> Iterable[tuple[str, str]]:
    return [(name, str(spec.default)) for name, spec in schema.ATTRIBUTES_OF[op_type].items()]


def _tensor(node: ir.Node, at: int) -> Tensor | None:
    value = operand(node, at)
    if value is None or value.shape is None or value.dtype not in node_problem.DTYPES:
        return None
    shape = tuple(size if isinstance(size, int) else None for size in value.shape)
    return Tensor(node_problem.DTYPES[value.dtype], shape)
