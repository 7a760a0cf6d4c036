"""From a fused ONNX model to a program: settle shapes, cut, import and compile the segments, make our nodes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from numpy.typing import NDArray

from zyfa_ort.errors import InputError, MigraphxError
from zyfa_ort.gpu import known_byte_rounding
from zyfa_ort.graph_passes import model_file, schema
from zyfa_ort.graph_passes.facts import Fact
from zyfa_ort.graph_passes.values import label
from zyfa_ort.migraphx import cut, gpu, segment
from zyfa_ort.migraphx.direct import CPU, Gpu, Node
from zyfa_ort.migraphx.own_nodes import Attributes, attributes
from zyfa_ort.migraphx.program import Program
from zyfa_ort.migraphx.segment import Target, create_target
from zyfa_ort.migraphx.settled import Settled, settle
from zyfa_ort.migraphx.steps import NodeStep, SegmentStep, Signature, Step
from zyfa_ort.migraphx.tensor_type import TensorType

_TARGETS = ("gpu", "ref")


@dataclass(frozen=True)
class _Options:
    target: Target
    gpu: Gpu | None
    precision: schema.Precision | None
    fast_math: bool
    exhaustive_tune: bool


@dataclass
class _Made:
    """What grows while a model is compiled step by step."""

    values: dict[str, TensorType] = field(default_factory=dict)
    constants: dict[str, NDArray[Any]] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)


def compile(
    path: str | os.PathLike[str],
    *,
    target: Target = "gpu",
    dims: Mapping[str, int] | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    precision: schema.Precision | None = None,
    fast_math: bool = False,
    exhaustive_tune: bool = False,
) -> Program:
    """Compiles a fused (or any) ONNX model with MIGraphX; nodes of ``ai.zyfa`` are computed by our kernels.

    Args:
        path: ONNX file.
        target: "gpu", or "ref", MIGraphX's reference implementation on the CPU.
        dims: numbers for the free dimensions of the inputs, by their names in the model.
        shapes: whole shapes of inputs, by input name, where dimensions have no names.
        precision: of every attention whose inputs are not quantised, instead of the node's own.
        fast_math, exhaustive_tune: options of MIGraphX's compiler.

    Raises:
        ModelFileError: the file cannot be read.
        InputError: a dimension of an input has no number, or an option is unknown.
        MigraphxError: no MIGraphX, no GPU, or a node that MIGraphX or our kernels refuse; it is named.
    """
    if target not in _TARGETS:
        raise InputError(f"target: expected 'gpu' or 'ref', got {target!r}")
    if precision is not None and precision not in schema.ATTRIBUTES["precision"].allowed:
        raise InputError(
            f"precision: expected one of {', '.join(schema.ATTRIBUTES['precision'].allowed)}, got {precision!r}"
        )
    settled = settle(model_file.load(path), dims or {}, shapes or {})
    plan = cut.steps(settled)
    opened = gpu.open_gpu() if target == "gpu" else None
    if opened is None:
        create_target(target)
    options = _Options(target, opened, precision, fast_math, exhaustive_tune)
    made = _Made()
    for value in settled.inputs:
        made.values[value.name or ""] = _type_of(settled, value)
    for step in plan:
        if isinstance(step, cut.SegmentPlan):
            _add_segment(settled, step, options, made)
        else:
            _add_node(settled, step, options, made)
    return _program(settled, options, made)


def make_node(
    op: str,
    name: str,
    given: Attributes,
    inputs: Sequence[str | None],
    outputs: Sequence[str | None],
    signature: Signature,
    opened: Gpu | None,
) -> NodeStep:
    """Raises MigraphxError for what the operator or the GPU's kernels refuse."""
    number = CPU if opened is None else opened.number
    rounding = "unknown" if opened is None else known_byte_rounding(opened.emulated)
    types = signature.types(inputs), signature.types(outputs)
    return NodeStep(
        op, name, given, tuple(inputs), tuple(outputs), Node(op, name, given, *types, number, rounding)
    )


def _program(settled: Settled, options: _Options, made: _Made) -> Program:
    outputs = []
    for value in settled.model.graph.outputs:
        outputs.append(value.name or "")
        if value in settled.constants:
            _keep_constant(settled, value, made)
    inputs = tuple(value.name or "" for value in settled.inputs)
    signature = Signature(inputs, tuple(outputs), made.values)
    return Program(options.target, options.gpu, made.steps, signature, made.constants)


def _type_of(settled: Settled, value: ir.Value) -> TensorType:
    fact = settled.fact(value)
    if fact.shape is None or fact.dtype is None:
        raise MigraphxError(f"tensor {value.name}: its shape is not known")
    return TensorType(np.dtype(fact.dtype.numpy()), fact.shape)


def _keep_constant(settled: Settled, value: ir.Value, made: _Made) -> None:
    name = value.name or ""
    if name not in made.constants:
        held = settled.constants[value]
        made.values[name] = _type_of(settled, value)
        kind = made.values[name]
        made.constants[name] = np.frombuffer(cut.raw_bytes(held), kind.dtype).reshape(kind.shape).copy()


def _add_segment(settled: Settled, plan: cut.SegmentPlan, options: _Options, made: _Made) -> None:
    name = f"segment {plan.number}"
    for value in plan.inputs:
        if 0 in (settled.fact(value).shape or ()):
            raise MigraphxError(f"{name}: {value.name} has no elements, which MIGraphX has no tensors for")
    if options.target == "ref":
        cut.refuse_on_ref(plan)
    program = _parsed(settled, plan)
    for value, shape in zip(plan.outputs, program.outputs(), strict=True):
        _learn(settled, name, value, TensorType(shape.dtype, shape.lengths))
        made.values[value.name or ""] = _type_of(settled, value)
    program.compile(
        options.target, fast_math=options.fast_math, exhaustive_tune=options.exhaustive_tune, what=name
    )
    names = [tuple(value.name or "" for value in values) for values in (plan.inputs, plan.outputs)]
    made.steps.append(SegmentStep(name, names[0], names[1], program, program.parameters()))


def _learn(settled: Settled, segment_name: str, value: ir.Value, found: TensorType) -> None:
    """What MIGraphX says about an output; it must agree with what ONNX says."""
    fact = settled.fact(value)
    if fact.shape is not None and fact.dtype is not None and _type_of(settled, value) != found:
        raise MigraphxError(
            f"{segment_name}: MIGraphX makes {value.name} of {found}, ONNX says {_type_of(settled, value)}"
        )
    settled.facts[value] = Fact(found.shape, ir.DataType.from_numpy(found.dtype))


def _parsed(settled: Settled, plan: cut.SegmentPlan) -> segment.Program:
    try:
        return segment.Program.parse(cut.onnx_model(settled, plan))
    except MigraphxError as error:
        node = _refused_node(settled, plan)
        if node is None:
            raise
        raise MigraphxError(
            f"{node.op_type} '{label(node)}': MIGraphX cannot import this node: {str(error).split(': ', 1)[-1]}"
        ) from error


def _refused_node(settled: Settled, plan: cut.SegmentPlan) -> ir.Node | None:
    """The last node of the shortest beginning of the segment that MIGraphX does not import."""
    good, bad = 0, len(plan.nodes)
    while bad - good > 1:
        middle = (good + bad) // 2
        if _imports(settled, cut.beginning(settled, plan, middle)):
            good = middle
        else:
            bad = middle
    return plan.nodes[bad - 1] if not _imports(settled, cut.beginning(settled, plan, bad)) else None


def _imports(settled: Settled, plan: cut.SegmentPlan) -> bool:
    try:
        segment.Program.parse(cut.onnx_model(settled, plan))
    except MigraphxError:
        return False
    return True


def _add_node(settled: Settled, node: ir.Node, options: _Options, made: _Made) -> None:
    settled.learn(node)
    for value in node.inputs:
        if value is not None and value in settled.constants:
            _keep_constant(settled, value, made)
    inputs = [None if value is None else value.name for value in node.inputs]
    outputs = [
        value.name if at == 0 or _is_wanted(node, value) else None for at, value in enumerate(node.outputs)
    ]
    for value, name in zip(node.outputs, outputs, strict=True):
        if name is not None:
            made.values[name] = _type_of(settled, value)
    signature = Signature((), (), made.values)
    given = _with_precision(settled, node, options.precision)
    made.steps.append(make_node(node.op_type, label(node), given, inputs, outputs, signature, options.gpu))


def _is_wanted(node: ir.Node, value: ir.Value) -> bool:
    """Outputs that nobody reads are not made, except the scale beside codes."""
    if not value.name:
        return False
    used = value.is_graph_output() or next(iter(value.uses()), None) is not None
    return used or node.op_type == schema.QUANTIZE_FP8


def _with_precision(settled: Settled, node: ir.Node, precision: schema.Precision | None) -> Attributes:
    given = attributes(node)
    quantised = settled.fact(node.inputs[0]).dtype == ir.DataType.FLOAT8E4M3FN
    if precision is None or node.op_type != schema.PREFILL_ATTENTION or quantised:
        return given
    if precision != "fp8":
        given = {name: value for name, value in given.items() if name not in schema.FP8_ONLY_ATTRIBUTES}
    return {**given, "precision": precision}
