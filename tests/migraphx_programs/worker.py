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

    def chain(
        self, numbers: list[int], inputs: list[dict[str, Any]], renamed: dict[str, str]
    ) -> dict[str, Any]:
        """Launches programs behind each other on one stream; outputs of the first are inputs of the second, renamed."""
        stream = new_stream()
        first = self.programs[numbers[0]].launch(uploaded(inputs[0]), stream)
        kept = {renamed[name]: array for name, array in first.items() if name in renamed}
        given = uploaded(inputs[1]) | kept
        return downloaded(self.programs[numbers[1]].launch(given, stream), stream)

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


def hip(name: str, *arguments: Any) -> None:
    function = getattr(ctypes.CDLL("libamdhip64.so.6"), f"hip{name}")
    assert function(*arguments) == 0


def new_stream() -> int:
    """Apart from the null stream."""
    stream = ctypes.c_void_p()
    hip("StreamCreateWithFlags", ctypes.byref(stream), 1)
    return stream.value or 0


def uploaded(inputs: dict[str, Any]) -> dict[str, zyfa_ort.migraphx.DeviceArray]:
    arrays = {}
    for name, array in inputs.items():
        pointer, size = ctypes.c_void_p(), ctypes.c_size_t(array.nbytes)
        hip("Malloc", ctypes.byref(pointer), ctypes.c_size_t(max(array.nbytes, 1)))
        if array.nbytes:
            hip("Memcpy", pointer, ctypes.c_void_p(array.ctypes.data), size, 1)
        arrays[name] = zyfa_ort.migraphx.DeviceArray(pointer.value or 0, array.shape, array.dtype)
    return arrays


def downloaded(outputs: dict[str, zyfa_ort.migraphx.DeviceArray], stream: int) -> dict[str, Any]:
    hip("StreamSynchronize", ctypes.c_void_p(stream))
    results = {}
    for name, output in outputs.items():
        results[name] = np.empty(output.shape, output.dtype)
        to, size = ctypes.c_void_p(results[name].ctypes.data), ctypes.c_size_t(results[name].nbytes)
        hip("Memcpy", to, ctypes.c_void_p(output.pointer), size, 2)
    return results


def launched(program: zyfa_ort.migraphx.Program, inputs: dict[str, Any], runs: int) -> list[dict[str, Any]]:
    arrays, stream = uploaded(inputs), new_stream()
    made = [program.launch(arrays, stream) for _ in range(runs)]
    return [downloaded(outputs, stream) for outputs in made]


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
