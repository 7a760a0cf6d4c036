"""A compiled program: run it on arrays, launch it on a stream, save it, load it."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from zyfa_ort.errors import InputError
from zyfa_ort.migraphx.device_array import DeviceArray, device_array
from zyfa_ort.migraphx.direct import Gpu
from zyfa_ort.migraphx.gpu import GpuRunner
from zyfa_ort.migraphx.host import HostRunner
from zyfa_ort.migraphx.segment import Target
from zyfa_ort.migraphx.steps import SegmentStep, Signature, Step
from zyfa_ort.migraphx.tensor_type import TensorType


class Program:
    """A model in segments of MIGraphX with our kernels between them. Runs of several threads wait for each other.

    target: "gpu" or "ref". inputs, outputs: types by name.
    """

    def __init__(
        self,
        target: Target,
        gpu: Gpu | None,
        steps: Sequence[Step],
        signature: Signature,
        constants: Mapping[str, NDArray[Any]],
    ) -> None:
        self.target, self.gpu = target, gpu
        self.steps, self.signature, self.constants = tuple(steps), signature, dict(constants)
        self._lock = threading.Lock()
        self._gpu_runner = None if gpu is None else GpuRunner(gpu, self.steps, signature, self.constants)
        self._runner = self._gpu_runner or HostRunner(self.steps, signature, self.constants)

    @property
    def inputs(self) -> dict[str, TensorType]:
        return {name: self.signature.values[name] for name in self.signature.inputs}

    @property
    def outputs(self) -> dict[str, TensorType]:
        return {name: self.signature.values[name] for name in self.signature.outputs}

    def __repr__(self) -> str:
        segments = sum(isinstance(step, SegmentStep) for step in self.steps)
        return f"<MIGraphX program for {self.target}: {segments} segments, {len(self.steps) - segments} nodes of ai.zyfa>"

    def run(self, inputs: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        """Runs on NumPy (or ml_dtypes) arrays and returns new ones by name.

        Raises:
            InputError: an input is missing, unknown, or has another type or shape than the program was compiled for.
            MigraphxError: the run failed.
        """
        self._check_names(inputs)
        arrays = {name: _host_array(name, inputs[name], kind) for name, kind in self.inputs.items()}
        with self._lock:
            return self._runner.run(arrays)

    def launch(self, inputs: Mapping[str, Any], stream: int) -> dict[str, DeviceArray]:
        """Puts a run on a HIP stream and returns at once; the outputs are there when the stream's work is done.

        Args:
            inputs: DeviceArray, or anything with ``__cuda_array_interface__``; they must stay until then.
            stream: a ``hipStream_t`` as a number.

        Raises:
            InputError: as `run`, or the program is not for the gpu target. MigraphxError: nothing could be launched.
        """
        if self._gpu_runner is None:
            raise InputError(
                f"launch: expected a program for target 'gpu', this is for {self.target!r}; use run"
            )
        self._check_names(inputs)
        arrays = {name: device_array(name, inputs[name], kind) for name, kind in self.inputs.items()}
        with self._lock:
            return self._gpu_runner.launch(arrays, stream)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes everything into one file, complete or not at all. Raises MigraphxError: it cannot be written."""
        from zyfa_ort.migraphx.archive import write

        write(self, path)

    def _check_names(self, inputs: Mapping[str, Any]) -> None:
        for name in self.signature.inputs:
            if name not in inputs:
                raise InputError(f"input {name}: required by the program, got none")
        for name in inputs:
            if name not in self.signature.inputs:
                raise InputError(f"input {name}: expected one of {', '.join(self.signature.inputs)}")


def _host_array(name: str, given: Any, wanted: TensorType) -> NDArray[Any]:
    array = np.asarray(given)
    got = TensorType(array.dtype, array.shape)
    if got != wanted:
        raise InputError(
            f"input {name}: expected {wanted}, got {got}; a program has the shapes that it was compiled for"
        )
    return np.ascontiguousarray(array).reshape(array.shape)
