"""Running a program of the ``gpu`` target: segments and our kernels on one stream, values in device memory.

MIGraphX and our library must use one HIP library: two do not know each other's memory and streams.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from zyfa_ort.errors import MigraphxError
from zyfa_ort.migraphx.device_array import DeviceArray
from zyfa_ort.migraphx.direct import Buffer, Gpu, Stream, empty
from zyfa_ort.migraphx.segment import Parameters, Result, create_target
from zyfa_ort.migraphx.steps import NodeStep, SegmentStep, Signature, Step, last_uses
from zyfa_ort.migraphx.tensor_type import TensorType

DEVICE: Final = 0  # the one that MIGraphX takes
_OUTPUT: Final = re.compile(r"main:#output_(\d+)")
Arrays = dict[str, NDArray[Any]]
DeviceArrays = dict[str, DeviceArray]


def open_gpu() -> Gpu:
    """The GPU that MIGraphX uses, seen by our library.

    Raises:
        MigraphxError: MIGraphX has no gpu target, there is no GPU, or HIP is loaded twice.
    """
    create_target("gpu")
    found = Gpu.open(DEVICE)
    loaded = _loaded_hip_libraries()
    if len(loaded) != 1:
        raise MigraphxError(
            f"HIP: expected one library for MIGraphX and zyfa_ort, got {', '.join(loaded) or 'none'}; MIGraphX takes the one"
            " it was built for"
        )
    return found


def _loaded_hip_libraries() -> list[str]:
    """Files mapped into this process that are HIP's runtime."""
    names = re.compile(r"(/\S*/(?:libamdhip64\.so\S*|libzyfa_emulated_hip\.so))$")
    mapped = Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()
    files = {str(Path(match[1]).resolve()) for line in mapped if (match := names.search(line))}
    return sorted(files)


class GpuRunner:
    """Runs steps on device memory. Not for two threads at once."""

    def __init__(
        self, gpu: Gpu, steps: Sequence[Step], signature: Signature, constants: Mapping[str, NDArray[Any]]
    ) -> None:
        self._gpu, self._steps, self._signature = gpu, steps, signature
        self._dead = last_uses(steps, signature.outputs)
        self._stream = Stream(gpu)
        self._constants = {
            name: self._uploaded(array, self._stream.handle) for name, array in constants.items()
        }
        self._stream.synchronize()

    def run(self, inputs: Arrays) -> Arrays:
        """From host arrays to host arrays, on a stream of ours."""
        stream = self._stream.handle
        try:
            results = self.launch(
                {name: self._uploaded(array, stream) for name, array in inputs.items()}, stream
            )
            made = {}
            for name, result in results.items():
                made[name] = empty(self._signature.values[name])
                _buffer(result).download(made[name])
        except BaseException:
            self._settle()
            raise
        self._stream.synchronize()
        return made

    def launch(self, inputs: DeviceArrays, stream: int) -> DeviceArrays:
        """Puts everything on a stream and waits for nothing. Inputs must stay until its work is done."""
        values = {**self._constants, **inputs}
        for step, dead in zip(self._steps, self._dead, strict=True):
            if isinstance(step, SegmentStep):
                self._run_segment(step, values, stream)
            else:
                self._run_node(step, values, stream)
            for name in dead:
                values.pop(name, None)
        return {name: self._own(name, values, stream) for name in self._signature.outputs}

    def _settle(self) -> None:
        """Behind a failure, whose error is the one to show: host arrays must outlive the copies from them."""
        try:
            self._stream.synchronize()
        except MigraphxError:
            return

    def _new(self, kind: TensorType, stream: int) -> DeviceArray:
        buffer = Buffer(self._gpu, kind.size, stream)
        return DeviceArray(buffer.address, kind.shape, kind.dtype, buffer)

    def _uploaded(self, array: NDArray[Any], stream: int) -> DeviceArray:
        made = self._new(TensorType(array.dtype, array.shape), stream)
        _buffer(made).upload(array)
        return made

    def _own(self, name: str, values: DeviceArrays, stream: int) -> DeviceArray:
        """An output with memory of its own: inputs and constants that are outputs as they are get copied."""
        found = values[name]
        if name not in self._signature.inputs and name not in self._constants:
            return found
        made = self._new(self._signature.values[name], stream)
        _buffer(made).copy_from(found.pointer)
        return made

    def _run_node(self, step: NodeStep, values: DeviceArrays, stream: int) -> None:
        made = {
            name: self._new(self._signature.values[name], stream) for name in step.outputs if name is not None
        }
        inputs = [None if name is None else values[name].pointer for name in step.inputs]
        outputs = [None if name is None else made[name].pointer for name in step.outputs]
        step.node.run(inputs, outputs, stream)
        values.update(made)

    def _run_segment(self, step: SegmentStep, values: DeviceArrays, stream: int) -> None:
        made = [self._new(self._signature.values[name], stream) for name in step.outputs]
        addresses = {}
        for name in step.parameters:
            output = _OUTPUT.fullmatch(name)
            addresses[name] = made[int(output[1])].pointer if output else values[name].pointer
        results = step.program.run(Parameters(addresses, step.parameters), stream, step.name)
        for name, array, result in zip(step.outputs, made, results.outputs, strict=True):
            _fill(step, name, array, result)
            values[name] = array


def _buffer(array: DeviceArray) -> Buffer:
    assert isinstance(array.owner, Buffer)
    return array.owner


def _fill(step: SegmentStep, name: str, array: DeviceArray, result: Result) -> None:
    """An output that MIGraphX left elsewhere, such as a parameter that is passed through, is copied to its place."""
    if not result.shape.contiguous:
        raise MigraphxError(
            f"{step.name}: expected output {name} to be contiguous, got strides {result.shape.strides}"
        )
    if result.address != array.pointer and np.prod(result.shape.lengths) != 0:
        _buffer(array).copy_from(result.address)
