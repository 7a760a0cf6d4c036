"""The process in which MIGraphX is: it does what pickled requests on its standard input say.

It runs under another C library's loader than the tests (debian.py), and ONNX Runtime is never imported in it.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
from typing import Any

import numpy as np
from zyfa_ort.graph_passes.errors import GraphPassError

import zyfa_ort


class Worker:
    """What can be asked for; programs are kept under numbers."""

    def __init__(self) -> None:
        self.programs: list[zyfa_ort.migraphx.Program] = []

    def _kept(self, program: zyfa_ort.migraphx.Program) -> int:
        self.programs.append(program)
        return len(self.programs) - 1

    def compile(self, path: str, options: dict[str, Any]) -> int:
        return self._kept(zyfa_ort.migraphx.compile(path, **options))

    def load(self, path: str) -> int:
        return self._kept(zyfa_ort.migraphx.load(path))

    def save(self, number: int, path: str) -> None:
        self.programs[number].save(path)

    def run(self, number: int, inputs: dict[str, Any]) -> dict[str, Any]:
        return self.programs[number].run(inputs)

    def launch(self, number: int, inputs: dict[str, Any], runs: int) -> list[dict[str, Any]]:
        """Launches on a stream of HIP's own, each run behind the other, with one wait at the end."""
        return launched(self.programs[number], inputs, runs)

    def launch_with(self, number: int, inputs: dict[str, Any], stream: int) -> None:
        """Host arrays, or none, in place of device memory."""
        self.programs[number].launch(inputs, stream)

    def facts(self, number: int) -> dict[str, Any]:
        program = self.programs[number]
        return {
            "text": repr(program),
            "inputs": {name: str(kind) for name, kind in program.inputs.items()},
            "outputs": {name: str(kind) for name, kind in program.outputs.items()},
            "steps": [(type(step).__name__, step.name, step.inputs, step.outputs) for step in program.steps],
            "gpu": program.gpu,
        }

    def emulated_report(self) -> str:
        """What the emulated device has to say: warnings, and refusals."""
        library = ctypes.CDLL("libamdhip64.so.6")
        text = ctypes.create_string_buffer(1 << 16)
        library.zyfa_emulated_last_report.argtypes = (ctypes.c_char_p, ctypes.c_size_t)
        library.zyfa_emulated_last_report(text, len(text))
        return text.value.decode()

    def modules(self) -> list[str]:
        return sorted({name.split(".")[0] for name in sys.modules})

    def mapped(self) -> str:
        with open("/proc/self/maps") as file:  # noqa: PTH123 - pathlib reads it by its size, which is 0
            return file.read()


def launched(program: zyfa_ort.migraphx.Program, inputs: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    hip = ctypes.CDLL("libamdhip64.so.6")
    stream = ctypes.c_void_p()
    assert hip.hipStreamCreateWithFlags(ctypes.byref(stream), 1) == 0
    arrays = {}
    for name, array in inputs.items():
        pointer = ctypes.c_void_p()
        assert hip.hipMalloc(ctypes.byref(pointer), ctypes.c_size_t(array.nbytes)) == 0
        assert (
            hip.hipMemcpy(pointer, ctypes.c_void_p(array.ctypes.data), ctypes.c_size_t(array.nbytes), 1) == 0
        )
        arrays[name] = zyfa_ort.migraphx.DeviceArray(pointer.value or 0, array.shape, array.dtype)
    made = [program.launch(arrays, stream.value or 0) for _ in range(runs)]
    assert hip.hipStreamSynchronize(stream) == 0
    results = []
    for outputs in made:
        results.append({})
        for name, output in outputs.items():
            array = np.empty(output.shape, output.dtype)
            size = ctypes.c_size_t(array.nbytes)
            assert (
                hip.hipMemcpy(ctypes.c_void_p(array.ctypes.data), ctypes.c_void_p(output.pointer), size, 2)
                == 0
            )
            results[-1][name] = array
    return results


def main() -> None:
    answers = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what MIGraphX prints
    requests = os.fdopen(0, "rb")
    worker = Worker()
    while True:
        try:
            method, arguments = pickle.load(requests)
        except EOFError:
            return
        try:
            answer = ("result", getattr(worker, method)(*arguments))
        except (zyfa_ort.errors.ZyfaError, GraphPassError) as error:
            answer = ("refused", f"{type(error).__name__}: {error}")
        except Exception as error:
            answer = ("failed", repr(error))
        pickle.dump(answer, answers)
        answers.flush()


if __name__ == "__main__":
    main()
