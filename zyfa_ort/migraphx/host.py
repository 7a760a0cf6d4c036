"""Running a program of the ``ref`` target: NumPy arrays all the way, our CPU kernel between the segments."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zyfa_ort.migraphx.direct import empty
from zyfa_ort.migraphx.segment import Parameters, Result
from zyfa_ort.migraphx.steps import NodeStep, SegmentStep, Signature, Step, last_uses

Arrays = dict[str, NDArray[Any]]


class HostRunner:
    """Runs steps on arrays."""

    def __init__(
        self, steps: Sequence[Step], signature: Signature, constants: Mapping[str, NDArray[Any]]
    ) -> None:
        self._steps, self._signature, self._constants = steps, signature, constants
        self._dead = last_uses(steps, signature.outputs)

    def run(self, inputs: Arrays) -> Arrays:
        """`inputs` are contiguous and of the right types."""
        values = {**self._constants, **inputs}
        for step, dead in zip(self._steps, self._dead, strict=True):
            if isinstance(step, SegmentStep):
                _run_segment(step, values)
            else:
                self._run_node(step, values)
            for name in dead:
                values.pop(name, None)
        return {name: values[name] for name in self._signature.outputs}

    def _run_node(self, step: NodeStep, values: Arrays) -> None:
        inputs = [None if name is None else values[name].ctypes.data for name in step.inputs]
        made = {name: empty(self._signature.values[name]) for name in step.outputs if name is not None}
        step.node.run(inputs, [None if name is None else made[name].ctypes.data for name in step.outputs])
        values.update(made)


def _run_segment(step: SegmentStep, values: Arrays) -> None:
    parameters = Parameters({name: values[name].ctypes.data for name in step.parameters}, step.parameters)
    results = step.program.run(parameters, None, step.name)
    for name, result in zip(step.outputs, results.outputs, strict=True):
        values[name] = _copied(result)


def _copied(result: Result) -> NDArray[Any]:
    """Of memory that goes away with the results, in whatever order its elements lie."""
    shape, itemsize = result.shape, result.shape.dtype.itemsize
    if 0 in shape.lengths:
        return np.empty(shape.lengths, shape.dtype)
    span = 1 + sum((length - 1) * stride for length, stride in zip(shape.lengths, shape.strides, strict=True))
    held = (ctypes.c_uint8 * (span * itemsize)).from_address(result.address)
    strides = tuple(stride * itemsize for stride in shape.strides)
    return np.ndarray(shape.lengths, shape.dtype, memoryview(held), 0, strides).copy()
