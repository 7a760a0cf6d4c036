"""One MIGraphX program: made from ONNX bytes or a file, compiled, run on memory that others own."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import byref, c_char_p, c_size_t, c_void_p
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from zyfa_ort.migraphx import c_api
from zyfa_ort.migraphx.c_api import Owned, Shape, call, quick

Target = Literal["gpu", "ref"]


@dataclass(frozen=True)
class Result:
    """An output of a run: MIGraphX's own memory, or that of a parameter."""

    address: int
    shape: Shape


class Results:
    """Outputs of a run; their memory lives as long as this object and the parameters."""

    def __init__(self, handle: c_void_p) -> None:
        self._handle = handle
        count = c_size_t()
        quick("arguments_size", byref(count), handle)
        self.outputs = [self._output(at) for at in range(count.value)]

    def _output(self, at: int) -> Result:
        argument, shape, buffer = c_void_p(), c_void_p(), c_void_p()
        quick("arguments_get", byref(argument), self._handle, at)
        quick("argument_shape", byref(shape), argument)
        quick("argument_buffer", byref(buffer), argument)
        return Result(buffer.value or 0, c_api.read_shape(shape))

    def __del__(self) -> None:
        c_api.library().migraphx_arguments_destroy(self._handle)


class Program:
    """A program of MIGraphX."""

    def __init__(self, owned: Owned) -> None:
        self._owned = owned

    @classmethod
    def parse(cls, model: bytes) -> Program:
        """Raises MigraphxError: MIGraphX cannot import the model."""
        options = Owned("onnx_options")
        return cls(Owned("program", model, len(model), options.handle, create="parse_onnx_buffer"))

    @classmethod
    def load(cls, path: Path) -> Program:
        """Raises MigraphxError: the file is not of this version of MIGraphX, or damaged."""
        options = Owned("file_options")
        return cls(Owned("program", str(path).encode(), options.handle, create="load", what=path.name))

    def save(self, path: Path) -> None:
        options = Owned("file_options")
        call("save", self._owned.handle, str(path).encode(), options.handle, what=path.name)

    def compile(self, target: Target, *, fast_math: bool, exhaustive_tune: bool, what: str) -> None:
        """For memory of the caller: on the gpu target parameters and outputs are device addresses."""
        made = create_target(target)
        options = Owned("compile_options")
        for name, value in (
            ("offload_copy", False),
            ("fast_math", fast_math),
            ("exhaustive_tune_flag", exhaustive_tune),
        ):
            call(f"compile_options_set_{name}", options.handle, value)
        call("program_compile", self._owned.handle, made.handle, options.handle, what=what)

    def parameters(self) -> dict[str, Shape]:
        """By name. On the gpu target ``main:#output_N`` are the outputs' memory."""
        shapes = Owned("program_parameter_shapes", self._owned.handle, create="program_get_parameter_shapes")
        count = c_size_t()
        call("program_parameter_shapes_size", byref(count), shapes.handle)
        names = (c_char_p * count.value)()
        call("program_parameter_shapes_names", names, shapes.handle)
        found = {}
        for name in names:
            shape = c_void_p()
            call("program_parameter_shapes_get", byref(shape), shapes.handle, name)
            found[(name or b"").decode()] = c_api.read_shape(shape)
        return found

    def outputs(self) -> list[Shape]:
        shapes = Owned("shapes", self._owned.handle, create="program_get_output_shapes")
        count, shape = c_size_t(), c_void_p()
        call("shapes_size", byref(count), shapes.handle)
        found = []
        for at in range(count.value):
            call("shapes_get", byref(shape), shapes.handle, at)
            found.append(c_api.read_shape(shape))
        return found

    def run(self, parameters: Parameters, stream: int | None, what: str) -> Results:
        """On a HIP stream, without waiting for it; without one on the host, until it is done."""
        handle = c_void_p()
        if stream is None:
            quick("program_run", byref(handle), self._owned.handle, parameters.handle, what=what)
        else:
            arguments = (self._owned.handle, parameters.handle, c_void_p(stream), c_api.QUEUE)
            quick("program_run_async", byref(handle), *arguments, what=what)
        return Results(handle)


def create_target(target: Target) -> Owned:
    """Raises MigraphxError: there is no such target, or no GPU."""
    return Owned("target", target.encode(), create="target_create", what=target)


class Parameters:
    """Addresses for a run, by name."""

    def __init__(self, addresses: Mapping[str, int], shapes: Mapping[str, Shape]) -> None:
        self._owned = Owned("program_parameters")
        self._kept: list[Owned] = []
        for name, shape in shapes.items():
            self._add(name, addresses[name], shape)

    @property
    def handle(self) -> c_void_p:
        return self._owned.handle

    def _add(self, name: str, address: int, shape: Shape) -> None:
        described = c_api.described(c_api.type_number(shape.dtype), shape.lengths)
        argument = Owned("argument", described.handle, c_void_p(address))
        quick("program_parameters_add", self.handle, name.encode(), argument.handle)
        self._kept += [described, argument]
